/* SPDX-License-Identifier: MIT */
/* death.c - a worker dies: who is charged, what is told, what comes after. */
#include "seccomp.h"
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum verb {
    EXIT = T_VERBS,
    EXIT_AT_ONCE,
    SEGFAULT,
    KILL_FIRST_TIME,
    LAST_WORDS,
    FLOOD,
    LEAVE_DAEMON,
    LEAVE_CHILD
};

enum { SETUPS, LEFT_ALIVE, HANDLERS, DAEMON };
enum { DAEMON_PID, DAEMON_START };

/* Starts a process that no signal but SIGKILL ends, in its own session, not our child when
 * `daemonise`. */
static void leave_behind(int daemonise)
{
    enum { BALLAST = 64 << 20 };
    struct t_proc p;
    pid_t pid = fork();
    char *ballast = pid ? NULL : malloc(BALLAST);

    if (pid) {
        if (daemonise)
            (void)waitpid(pid, NULL, 0);
        return;
    }
    if (daemonise) {
        (void)setsid();
        if (fork())
            _exit(0);
        (void)setsid();
    }
    if (!ballast)
        _exit(1);
    t_block_signals();
    /* Tearing this down takes the kernel some milliseconds: a sweep that does not wait is seen. */
    memset(ballast, 1, BALLAST);
    if (t_proc_read(getpid(), &p))
        _exit(1);
    atomic_store(&t_page->numbers[DAEMON_PID], (uint64_t)p.pid);
    atomic_store(&t_page->numbers[DAEMON_START], p.start);
    (void)t_word_add(DAEMON);
    t_rest();
}

/* C8: what the last worker left must be gone before the next one's setup. */
static int setup(gpud_worker *w, void **ret_state)
{
    struct t_proc p;

    (void)w, (void)ret_state;
    p.pid = (pid_t)atomic_load(&t_page->numbers[DAEMON_PID]);
    p.start = atomic_load(&t_page->numbers[DAEMON_START]);
    if (p.pid && !t_proc_read(p.pid, &p) && p.start == atomic_load(&t_page->numbers[DAEMON_START]))
        (void)t_word_add(LEFT_ALIVE);
    (void)t_word_add(SETUPS);
    return 0;
}

static volatile uintptr_t nowhere = 8;

static int process(gpud_task *t, void *state)
{
    switch (gpud_task_tag(t) >> 32) {
    case EXIT:
        exit(3);
    case EXIT_AT_ONCE:
        _exit(3);
    case SEGFAULT:
        (void)signal(SIGSEGV, SIG_DFL);
        *(volatile int *)nowhere = 1;
        return -1;
    case KILL_FIRST_TIME:
        if (gpud_task_attempt(t) == 1)
            (void)raise(SIGKILL);
        return 0;
    case LAST_WORDS:
        (void)fprintf(stderr, "the last words: %d\n", 4711);
        printf("a line of stdout\n");
        abort();
    case FLOOD:
        for (int i = 0; i < 3000; i++)
            (void)fprintf(stderr, "line %d of a long story\n", i);
        (void)raise(SIGKILL);
        return -1;
    case LEAVE_DAEMON:
    case LEAVE_CHILD:
        leave_behind(gpud_task_tag(t) >> 32 == LEAVE_DAEMON);
        t_word_wait(DAEMON, 1);
        (void)raise(SIGKILL);
        return -1;
    default:
        return t_process(t, state);
    }
}

/* C2: one task dies in each of these ways among others; it alone is CRASHED, with the right status.
 * [T3] [G1] [G2] */
T_CASE(each_way_to_die)
{
    static const struct {
        unsigned verb;
        uint32_t exit_kind;
        int32_t exit_status;
    } ways[] = {
        { T_KILL, GPUD_EXIT_SIGNAL, SIGKILL },
        { T_ABORT, GPUD_EXIT_SIGNAL, SIGABRT },
        { EXIT, GPUD_EXIT_CODE, 3 },
        { EXIT_AT_ONCE, GPUD_EXIT_CODE, 3 },
        { SEGFAULT, GPUD_EXIT_SIGNAL, SIGSEGV },
    };

    t_init(setup, process, NULL);
    for (size_t i = 0; i < T_LENGTH(ways); i++) {
        struct t_log log = { 0 };
        const struct gpud_event *e;
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:2", .drive = i % 2);
        uint64_t tag = T_TAG(ways[i].verb, 0);

        for (unsigned n = 0; n < 200; n++)
            T_SUBMIT(d, .tag = n == 100 ? tag : n);
        t_collect(d, &log, 200);
        e = T_OUTCOME(&log, tag, CRASHED);
        T_EQ(e->exit_kind, ways[i].exit_kind);
        T_EQ(e->exit_status, ways[i].exit_status);
        T_EQ(e->code, GPUD_ECRASHED);
        T_EQ(e->phase, GPUD_PHASE_PROCESS);
        T_EQ(e->attempt, 1);
        T_EQ(e->incarnation, 1);
        T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 199);
        for (uint64_t n = 0; n < 200; n++)
            if (n != 100)
                T_EQ(T_OUTCOME(&log, n, SUCCESS)->attempt, 1);
        T_EQ(t_stats(d).crashed, 1);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* C3: a crash is tried again up to max_attempts, from the options or from the task; nothing else
 * is. [T5] */
T_CASE(attempts)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1", .max_attempts = 2);
    const struct gpud_event *e;

    T_SUBMIT(d, .tag = T_TAG(KILL_FIRST_TIME, 0));
    T_SUBMIT(d, .tag = T_TAG(T_KILL, 0));
    T_SUBMIT(d, .tag = T_TAG(KILL_FIRST_TIME, 1), .max_attempts = 1);
    T_SUBMIT(d, .tag = T_TAG(T_KILL, 1), .max_attempts = 5);
    t_collect(d, &log, 4);
    T_EQ(T_OUTCOME(&log, T_TAG(KILL_FIRST_TIME, 0), SUCCESS)->attempt, 2);
    e = T_OUTCOME(&log, T_TAG(T_KILL, 0), CRASHED);
    T_EQ(e->attempt, 2);
    T_EQ(e->exit_status, SIGKILL);
    T_EQ(T_OUTCOME(&log, T_TAG(KILL_FIRST_TIME, 1), CRASHED)->attempt, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(T_KILL, 1), CRASHED)->attempt, 5);
    T_EQ(t_stats(d).retried, 1 + 1 + 4);
    T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), 4);
    t_end(&d, &log);
}

static void crash_among_neighbours(void)
{
    enum { BEFORE = 20, AFTER = 20 };

    t_init(setup, process, NULL);
    for (int round = 0; round < 20; round++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:1", .sent_ahead = 64);

        /* Before the worker is there, so that all go out in one write. */
        t_submit_tags(d, 0, BEFORE);
        T_SUBMIT(d, .tag = T_TAG(T_KILL, 0));
        t_submit_tags(d, BEFORE, BEFORE + AFTER);
        t_collect(d, &log, BEFORE + 1 + AFTER);
        (void)T_OUTCOME(&log, T_TAG(T_KILL, 0), CRASHED);
        for (uint64_t n = 0; n < BEFORE + AFTER; n++) {
            const struct gpud_event *e = T_OUTCOME(&log, n, SUCCESS);

            T_EQ(e->attempt, 1);
            T_EQ(e->incarnation, n < BEFORE ? 1 : 2);
        }
        T_EQ(t_stats(d).deaths, 1);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* C2: what was sent together with a task that crashes: the earlier ones had ended and keep their
 * outcome though nobody had told it yet; the later ones go back, attempts unchanged. [T4] */
T_CASE(neighbours_of_a_crash)
{
    crash_among_neighbours();
}

/* With a pidfd the host sees the worker's death, and reads the cells, before the keeper's message.
 * Without one it must read them when the message comes. */
T_CASE(neighbours_of_a_crash_without_pidfds)
{
    if (t_deny(SYS_pidfd_open, EPERM))
        t_skip("no filter can be set here: %s", strerror(errno));
    crash_among_neighbours();
}

static gpud_dispatcher *dispatcher;

static int is_ready(void *incarnation)
{
    struct gpud_slot_stats row = t_slot(dispatcher, 0);

    return row.incarnation == *(uint32_t *)incarnation && row.state == GPUD_SLOT_READY;
}

/* C9: idle workers die one after the other: the slot is given up, and what would have run there is
 * told of the last of these deaths. */
T_CASE(given_up_while_idle)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    dispatcher = d = T_CREATE(.devices = "cpu:1", .backoff = T_MS(5));
    for (uint32_t i = 1; i <= 3; i++) {
        struct t_proc worker;
        t_wait_until("the next worker is ready", is_ready, &i);
        worker = t_worker(d, 0);
        t_kill(worker.pid, SIGKILL);
        t_wait_ended(&worker);
    }
    t_wait_slot(d, 0, GPUD_SLOT_FAILED);
    T_CHECK(strstr(T_RUN(d, &log, NO_WORKER, .tag = 1)->text,
                   "slot 0: killed by signal 9 (SIGKILL) between tasks; "
                   "out of memory? see the kernel log"));
    t_end(&d, &log);
}

/* C8: with drive THREAD the slot comes back though nobody is inside poll any more, whatever the
 * last poll had just seen. */
T_CASE(replaced_while_nobody_polls)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:2", .backoff = T_MS(2),
                                 .backoff_cap = T_MS(2), .failures_in_a_row = 100000);

    for (uint64_t n = 0; n < 300; n++) {
        struct t_proc worker = t_worker(d, (unsigned)n % 2);

        if (n % 3 == 0)
            t_wait_ready(d, 2);
        (void)kill(worker.pid, SIGKILL);
        T_SUBMIT(d, .tag = n);
        t_collect(d, &log, n + 1);
    }
    t_check_exactly_once(&log, 300);
    t_end(&d, &log);
}

/* With drive THREAD a task runs though nobody is ever inside poll: from create, and while workers
 * are idle. */
T_CASE(runs_while_nobody_polls)
{
    const uint32_t rounds = (uint32_t)t_rounds(100, 50);

    t_init(setup, process, NULL);
    t_word_set(T_GATE, 1);
    for (uint32_t round = 0; round < rounds; round++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:2");

        for (uint64_t n = 0; n < 4; n++) {
            T_SUBMIT(d, .tag = T_TAG(T_WAIT_FOR_GATE, n));
            t_word_wait(T_STARTED, 4 * round + (uint32_t)n + 1);
        }
        t_collect(d, &log, 4);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

static int six_are_sent(void *user)
{
    return t_stats(user).sent == 6;
}

/* C2: SIGKILL from outside while a task runs and others wait behind it. [T4] */
T_CASE(killed_from_outside)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct t_proc worker;
    uint64_t before, last = 0;
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1", .sent_ahead = 6);

    T_SUBMIT(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0), .label = "victim");
    t_submit_tags(d, 0, 10);
    t_word_wait(T_STARTED, 1);
    t_wait_until("six tasks are at the worker", six_are_sent, d);
    worker = t_worker(d, 0);
    before = t_now();
    t_kill(worker.pid, SIGKILL);
    t_collect(d, &log, 11);
    e = T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), CRASHED);
    T_TEXT(e->label, "victim");
    T_EQ(e->exit_kind, GPUD_EXIT_SIGNAL);
    T_EQ(e->exit_status, SIGKILL);
    T_CMP(e->started_at, <, before);
    T_CMP(e->ended_at, >=, before);
    printf("death was seen after %.3f ms\n", (double)(e->ended_at - before) / 1e6);
    /* Those that had been sent come back before those that had not. */
    for (uint64_t n = 0; n < 10; n++) {
        e = T_OUTCOME(&log, n, SUCCESS);
        T_EQ(e->attempt, 1);
        T_CMP(e->started_at, >=, last);
        last = e->started_at;
    }
    T_EQ(t_stats(d).returned, 5);
    t_end(&d, &log);
}

/* What the worker wrote last arrives with its death; bounded, the end of it. */
T_CASE(last_words)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    static const char end[] = "line 2999 of a long story\n";
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1");

    T_SUBMIT(d, .tag = T_TAG(LAST_WORDS, 0));
    T_SUBMIT(d, .tag = T_TAG(FLOOD, 0));
    T_SUBMIT(d, .tag = T_TAG(T_KILL, 0));
    t_collect(d, &log, 3);
    e = T_OUTCOME(&log, T_TAG(LAST_WORDS, 0), CRASHED);
    T_CHECK(strstr(e->output, "the last words: 4711\n"));
    T_CHECK(strstr(e->output, "a line of stdout\n"));
    e = T_OUTCOME(&log, T_TAG(FLOOD, 0), CRASHED);
    T_CMP(e->output_size, >, 4000);
    T_CMP(e->output_size, <=, 8192);
    T_CHECK(!memcmp(e->output + e->output_size - strlen(end), end, strlen(end)));
    /* The words of a former life are not shown again. */
    e = T_OUTCOME(&log, T_TAG(T_KILL, 0), CRASHED);
    T_CHECK(!strstr(e->output, "story"));
    t_end(&d, &log);
}

static void leave(enum verb verb)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1");

    T_SUBMIT(d, .tag = T_TAG(verb, 0));
    T_SUBMIT(d, .tag = 1);
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, T_TAG(verb, 0), CRASHED);
    T_EQ(T_OUTCOME(&log, 1, SUCCESS)->incarnation, 2);
    T_EQ(t_word(SETUPS), 2);
    T_EQ(t_word(DAEMON), 1);
    T_EQ(t_word(LEFT_ALIVE), 0);
    t_end(&d, &log);
}

/* C8: a daemonised process of a dead worker is gone before the replacement's setup. [T17] */
T_CASE(daemon_of_a_dead_worker)
{
    leave(LEAVE_DAEMON);
}

/* C8: so is a plain child. */
T_CASE(child_of_a_dead_worker)
{
    leave(LEAVE_CHILD);
}

static pid_t host;

static void at_exit(void)
{
    if (getpid() != host)
        (void)t_word_add(HANDLERS);
}

/* exit() in process runs no atexit handler of the host and writes none of its buffered text. */
T_CASE(exit_runs_nothing_of_the_host)
{
    struct t_log log = { 0 };
    struct stat st;
    gpud_dispatcher *d;
    FILE *out = fopen("buffered", "we");

    T_CHECK(out);
    host = getpid();
    T_EQ(atexit(at_exit), 0);
    T_CMP(fprintf(out, "not written yet"), >, 0);
    d = T_BEGIN(setup, process, .devices = "cpu:2");
    for (uint64_t n = 0; n < 6; n++)
        T_SUBMIT(d, .tag = T_TAG(EXIT, n));
    t_collect(d, &log, 6);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_CRASHED), 6);
    t_end(&d, &log);
    T_EQ(t_word(HANDLERS), 0);
    T_EQ(stat("buffered", &st), 0);
    T_EQ(st.st_size, 0);
    T_EQ(fclose(out), 0);
}
