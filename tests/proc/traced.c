/* SPDX-License-Identifier: MIT */
/*
 * traced.c - a process that the worker has forked traces it (ptrace), as crash reporters do, and
 * never lets go: the kernel keeps the dead worker from its keeper.
 */
#include "verbs.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRACED, REFUSED, READY, GATE, SETUP, LEFT }; /* words */
enum { DIED_AT };                                   /* numbers */
enum {
    WORK = 0,
    TRACE = 1,     /* a child traces the worker */
    SESSION = 512, /* from a session of its own */
    LEAVE = 2,     /* the same, and as no child of the worker any more */
    AT_EXIT = 4,   /* and stops it at its exit */
    BY_THREAD = 8, /* with a thread that is not its first one */
    CRASH = 16,    /* then the worker dies by SIGKILL */
    SEGV = 32,     /* or by this signal */
    OTHER = 64,    /* the case itself traces it */
    THREADS = 128, /* another thread of the worker is traced, too */
    CHILD = 256    /* not the worker is traced, but its child */
};
#define SOON T_S(T_SANITIZED ? 10 : 1)

/* ---- in the worker ---- */

static pid_t traced_pid, traced_thread;
static unsigned traced_how;

static void seize(pid_t pid)
{
    const long options = traced_how & AT_EXIT ? PTRACE_O_TRACEEXIT : 0;

    if (ptrace(PTRACE_SEIZE, pid, NULL, options) == 0)
        return;
    (void)t_word_add(REFUSED);
    (void)t_word_add(TRACED);
    _exit(0);
}

static void *trace(void *unused)
{
    siginfo_t si;

    seize(traced_pid);
    if (traced_thread)
        seize(traced_thread);
    (void)t_word_add(TRACED);
    if (traced_how & SEGV) { /* it passes on the signal, and never looks at the end */
        while (waitid(P_PID, (id_t)traced_pid, &si, WSTOPPED | __WALL) && errno == EINTR)
            ;
        (void)ptrace(PTRACE_CONT, traced_pid, NULL, SIGSEGV);
    }
    t_rest();
    return unused;
}

static _Noreturn void become_tracer(void)
{
    pthread_t thread;

    if (traced_how & (SESSION | LEAVE))
        (void)setsid();
    if (traced_how & LEAVE) {
        if (fork())
            _exit(0);
        t_word_wait(LEFT, 1); /* SIGCHLD would stop a process that is traced already */
    }
    if (traced_how & BY_THREAD)
        (void)pthread_create(&thread, NULL, trace, NULL);
    else
        (void)trace(NULL);
    t_rest();
}

static void *second_thread(void *unused)
{
    traced_thread = (pid_t)syscall(SYS_gettid);
    (void)t_word_add(READY);
    t_rest();
    return unused;
}

/* Starts what traces this process, or a child of it, as `how` says; comes back when it does. */
static void begin_tracing(unsigned how)
{
    const uint32_t before = t_word(TRACED);
    pthread_t thread;
    pid_t pid;

    traced_how = how;
    traced_pid = getpid();
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (how & THREADS && pthread_create(&thread, NULL, second_thread, NULL) == 0)
        t_word_wait(READY, 1);
    pid = fork();
    if (pid == 0)
        become_tracer();
    if (how & LEAVE) {
        (void)waitpid(pid, NULL, 0);
        (void)t_word_add(LEFT);
    }
    t_word_wait(TRACED, before + 1);
}

/* The same for a child, which stays until it is killed. */
static void begin_traced_child(unsigned how)
{
    if (fork())
        t_word_wait(TRACED, 1);
    else {
        begin_tracing(how);
        t_rest();
    }
}

static int end_or_hang(unsigned how)
{
    atomic_store(&t_page->numbers[DIED_AT], t_now());
    if (how & SEGV)
        (void)raise(SIGSEGV);
    if (how & CRASH)
        (void)raise(SIGKILL);
    t_rest();
}

static int process(gpud_task *t, void *state)
{
    const unsigned how = (unsigned)(gpud_task_tag(t) >> 32);

    (void)state;
    if (how == WORK)
        return 0;
    if (how & OTHER) { /* the case itself traces us */
        (void)t_word_add(READY);
        t_word_wait(GATE, 1);
    } else if (how & CHILD) {
        begin_traced_child(how);
    } else {
        begin_tracing(how);
    }
    return end_or_hang(how);
}

/* ---- cases ---- */

static void skip_if_refused(gpud_dispatcher **d, struct t_log *log)
{
    if (t_word(REFUSED) == 0)
        return;
    t_end(d, log);
    t_skip("no process may trace another here");
}

/* The task was told of within a second of its worker's end, and the slot goes on. */
static void told_soon(gpud_dispatcher *d, struct t_log *log, const struct gpud_event *e,
                      uint64_t from)
{
    T_CMP(e->ended_at, >=, from);
    T_CMP(e->ended_at - from, <, SOON);
    T_SUBMIT(d, .tag = 1000);
    t_collect(d, log, 2);
    T_EQ(T_OUTCOME(log, 1000, SUCCESS)->slot, e->slot);
    T_EQ(t_log_outcomes(log, GPUD_OUTCOME_SUCCESS), 1);
}

/* Without any limit. */
static void crash(unsigned how, int signal_number)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .backoff = T_MS(5));

    T_SUBMIT(d, .tag = T_TAG(how, 0));
    t_collect(d, &log, 1);
    skip_if_refused(&d, &log);
    e = T_OUTCOME(&log, T_TAG(how, 0), CRASHED);
    T_EQ(e->exit_kind, GPUD_EXIT_SIGNAL);
    T_EQ(e->exit_status, signal_number);
    told_soon(d, &log, e, atomic_load(&t_page->numbers[DIED_AT]));
    t_end(&d, &log);
}

/* Killed at its hard limit. */
static void hang(unsigned how)
{
    const uint64_t limit = T_S(1), grace = T_MS(20);
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .grace = grace);

    T_SUBMIT(d, .tag = T_TAG(how, 0), .limit = limit);
    t_collect(d, &log, 1);
    skip_if_refused(&d, &log);
    e = T_OUTCOME(&log, T_TAG(how, 0), TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_EQ(e->exit_status, SIGKILL);
    told_soon(d, &log, e, e->started_at + limit + grace);
    t_end(&d, &log);
}

/* C1 C8: a crash without any limit is told although a child of the worker holds the zombie. [T1]
 * [T25] */
T_CASE(crash_with_a_tracing_child)
{
    crash(TRACE | CRASH, SIGKILL);
}

/* C1 C8: the same with a signal that the tracer passes on. */
T_CASE(crash_that_the_tracer_sees)
{
    crash(TRACE | SEGV, SIGSEGV);
}

/* C1 C8: the tracer is a daemon by then: in a session of its own, and no child of the worker. */
T_CASE(crash_with_a_tracing_daemon)
{
    crash(TRACE | LEAVE | CRASH, SIGKILL);
}

/* C1 C8: a thread of the tracer that is not its first one. */
T_CASE(crash_with_a_tracing_thread)
{
    if (T_THREAD_SANITIZED)
        t_skip("ThreadSanitizer allows no thread in a forked child");
    crash(TRACE | BY_THREAD | LEAVE | CRASH, SIGKILL);
}

/* C1 C10: a killed worker that a child holds is told of as TIMEOUT, and its slot goes on. [T9] */
T_CASE(limit_with_a_tracing_child)
{
    hang(TRACE);
}

T_CASE(limit_with_a_tracing_daemon)
{
    hang(TRACE | LEAVE);
}

/* C1 C10: the tracer stops the killed worker just before its end. */
T_CASE(limit_with_a_tracer_of_exits)
{
    hang(TRACE | LEAVE | AT_EXIT);
}

T_CASE(limit_with_a_tracing_thread)
{
    if (T_THREAD_SANITIZED)
        t_skip("ThreadSanitizer allows no thread in a forked child");
    hang(TRACE | BY_THREAD | LEAVE | AT_EXIT);
}

/* C1 C10: each thread of the worker is traced. */
T_CASE(limit_with_all_threads_traced)
{
    hang(TRACE | LEAVE | THREADS);
}

/* C8: a child of the worker is held at its exit, by a child of its own. */
T_CASE(traced_child_is_swept)
{
    crash(CHILD | SESSION | AT_EXIT | CRASH, SIGKILL);
}

/* C8: the keeper dies, and so the worker would: a child of the worker holds it at its exit. */
T_CASE(keeper_dies_with_a_traced_worker)
{
    const unsigned how = TRACE | SESSION | AT_EXIT;
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct t_proc worker, keeper;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .backoff = T_MS(5));
    uint64_t from;

    T_SUBMIT(d, .tag = T_TAG(how, 0));
    t_word_wait(TRACED, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    from = t_now();
    t_kill(keeper.pid, SIGKILL);
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, T_TAG(how, 0), CRASHED);
    T_EQ(e->exit_kind, GPUD_EXIT_LOST);
    told_soon(d, &log, e, from);
    t_end(&d, &log);
}

/* ---- PID namespaces ---- */

/* The host is PID 1 of a namespace, and /proc is still that of the outer one. */
static void in_namespace(void (*run)(unsigned how), unsigned how)
{
    const pid_t case_pid = getpid();
    int status = 0;
    pid_t pid;

    if (T_THREAD_SANITIZED)
        t_skip("ThreadSanitizer allows no thread in a forked child");
    pid = fork(); /* the case stays outside: LeakSanitizer starts a process at its end */
    if (pid == 0 && unshare(CLONE_NEWPID))
        _exit(77);
    if (pid == 0 && (pid = fork()) == 0) {
        T_EQ(getpid(), 1);
        run(how);
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    if (getpid() != case_pid)
        _exit(status ? 1 : 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        t_skip("no PID namespace can be made here");
    T_EQ(status, 0);
}

static void crash_killed(unsigned how)
{
    crash(how, SIGKILL);
}

/* C1 C8: the numbers that /proc gives are not those with which the keeper kills. */
T_CASE(crash_in_a_namespace)
{
    in_namespace(crash_killed, TRACE | LEAVE | CRASH);
}

T_CASE(limit_in_a_namespace)
{
    in_namespace(hang, TRACE | LEAVE | AT_EXIT);
}

/* ---- setup and cleanup ---- */

static int traced_setup(gpud_worker *w, void **ret_state)
{
    (void)w;
    (void)ret_state;
    if (t_word_add(SETUP) > 1)
        return 0;
    begin_tracing(TRACE | LEAVE | (unsigned)t_word(GATE));
    return end_or_hang((unsigned)t_word(GATE));
}

static void setup_fails(unsigned how, int code)
{
    const uint64_t limit = code == GPUD_ETIMEOUT ? T_MS(500) : GPUD_NEVER;
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    t_word_set(GATE, how);
    d = T_BEGIN(traced_setup, process, .devices = "cpu:1", .setup_limit = limit,
                .backoff = T_MS(5));
    T_SUBMIT(d, .tag = 0);
    t_collect(d, &log, 1);
    skip_if_refused(&d, &log);
    (void)T_OUTCOME(&log, 0, SUCCESS);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 1);
    e = t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0);
    T_EQ(e->code, code);
    t_end(&d, &log);
}

/* C9: a setup that crashes, or exceeds its limit, is told although a daemon of its own holds it. */
T_CASE(setup_crashes_traced)
{
    setup_fails(CRASH, GPUD_ECRASHED);
}

T_CASE(setup_limit_traced)
{
    setup_fails(0, GPUD_ETIMEOUT);
}

static void traced_cleanup(gpud_worker *w, void *state)
{
    (void)w;
    (void)state;
    begin_tracing(TRACE | LEAVE);
    (void)end_or_hang(CRASH);
}

/* C12: the same in cleanup. */
T_CASE(cleanup_crashes_traced)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, traced_cleanup);
    d = T_CREATE(.devices = "cpu:1", .cleanup_limit = GPUD_NEVER);
    T_SUBMIT(d, .tag = 0);
    t_collect(d, &log, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER));
    t_collect_rest(d, &log);
    skip_if_refused(&d, &log);
    T_EQ(t_log_count(&log, GPUD_EVENT_CLEANUP_FAILURE), 1);
    t_end(&d, &log);
}

/* ---- a tracer from elsewhere ---- */

static struct t_proc trace_by_case(gpud_dispatcher *d)
{
    struct t_proc worker;

    t_word_wait(READY, 1);
    worker = t_worker(d, 0);
    if (ptrace(PTRACE_SEIZE, worker.pid, NULL, NULL))
        t_skip("no process may trace another here: errno %d", errno);
    t_word_set(GATE, 1);
    return worker;
}

static int is_zombie(void *user)
{
    struct t_proc *p = user;

    return t_proc_read(p->pid, p) == 0 && p->state == 'Z';
}

/* C1: a debugger is left alone; the death is told when it lets go. */
T_CASE(crash_under_a_debugger)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct t_proc worker;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .backoff = T_MS(5));
    uint64_t from;

    T_SUBMIT(d, .tag = T_TAG(OTHER | CRASH, 0));
    worker = trace_by_case(d);
    t_wait_until("the worker is a zombie", is_zombie, &worker);
    T_EQ(t_poll(d, &log, T_MS(100)), 0);
    T_EQ(t_log_outcomes(&log, 0), 0);
    from = t_now();
    T_EQ(waitpid(worker.pid, NULL, __WALL), worker.pid);
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, T_TAG(OTHER | CRASH, 0), CRASHED);
    T_EQ(e->exit_status, SIGKILL);
    told_soon(d, &log, e, from);
    t_end(&d, &log);
}

/* C10: the same at a limit: the kill limit decides. */
T_CASE(limit_under_a_debugger)
{
    struct t_log log = { 0 };
    struct t_proc worker;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .grace = T_MS(20), .kill_limit = T_MS(300));

    T_SUBMIT(d, .tag = T_TAG(OTHER, 0), .limit = T_S(1));
    worker = trace_by_case(d);
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(OTHER, 0), TIMEOUT)->phase, GPUD_PHASE_KILL);
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_QUARANTINED);
    T_EQ(waitpid(worker.pid, NULL, __WALL), worker.pid);
    t_wait_ended(&worker);
    t_end(&d, &log);
}

/* ---- the host dies ---- */

T_PROGRAM(traced_host)
{
    gpud_dispatcher *d;

    (void)argc, (void)argv;
    d = T_BEGIN(NULL, process, .devices = "cpu:1");
    T_SUBMIT(d, .tag = T_TAG(TRACE | LEAVE | AT_EXIT, 0));
    t_rest();
}

/* C11: a worker that is held, and the process that holds it, are gone when the host is. [T10] */
T_CASE(host_dies_with_a_traced_worker)
{
    pid_t host = t_program_start("traced_host", NULL, NULL);
    struct t_procs all;

    t_word_wait(TRACED, 1);
    if (t_word(REFUSED)) {
        t_kill(host, SIGKILL);
        (void)waitpid(host, NULL, 0);
        t_skip("no process may trace another here");
    }
    all = t_procs_below(host);
    T_CMP(all.count, >=, 4); /* spawner, keeper, worker, tracer */
    t_kill(host, SIGKILL);
    T_EQ(waitpid(host, NULL, 0), host);
    for (size_t i = 0; i < all.count; i++)
        t_wait_ended(&all.list[i]);
    t_procs_free(&all);
}
