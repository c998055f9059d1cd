/* SPDX-License-Identifier: MIT */
/*
 * r_limits.c - limits, kills and stops in the situations in which a reader of the code found them
 * to fail: each case here failed before its mend.
 */
#include "verbs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum verb { PLAIN, WAIT, DEAF, HANG };

enum { GATES, STARTED = 8 };

static void block_alarm(int how)
{
    sigset_t set;

    T_EQ(sigemptyset(&set), 0);
    T_EQ(sigaddset(&set, SIGALRM), 0);
    T_EQ(sigprocmask(how, &set, NULL), 0);
}

/* WAIT and DEAF wait for the gate their number names, DEAF with SIGALRM blocked; HANG stays. */
static int process(gpud_task *t, void *state)
{
    uint64_t tag = gpud_task_tag(t);
    unsigned gate = GATES + (unsigned)(tag & 7);

    (void)state;
    (void)t_word_add(STARTED);
    switch ((enum verb)(tag >> 32)) {
    case PLAIN:
        break;
    case WAIT:
        t_word_wait(gate, 1);
        break;
    case DEAF:
        block_alarm(SIG_BLOCK);
        t_word_wait(gate, 1);
        block_alarm(SIG_UNBLOCK);
        break;
    case HANG:
        t_block_signals();
        t_rest();
    }
    return 0;
}

static int is_dead(void *user)
{
    struct t_proc p, *wanted = user;

    return t_proc_read(wanted->pid, &p) || p.state == 'Z';
}

static int goes_on(void *user)
{
    struct t_proc p, *wanted = user;

    return t_proc_read(wanted->pid, &p) || p.state != 'T';
}

/* C2: a kill for one task's limit that comes late (the keeper is slow) does not meet the next task:
 * what had not started was taken back first. */
T_CASE(late_kill_spares_the_next_task)
{
    struct t_proc keeper, worker;
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 2, .grace = T_MS(10));

    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    t_stop(&keeper);
    T_SUBMIT(d, .tag = T_TAG(DEAF, 0), .limit = T_MS(30));
    t_word_wait(STARTED, 1);
    T_SUBMIT(d, .tag = T_TAG(WAIT, 1));
    t_wait_until("the kill is ordered", t_word_waits, NULL);
    T_EQ(t_stats(d).hard_kills, 0); /* one that is spared is never counted: a counter only rises */
    t_word_set(GATES, 1);
    t_collect(d, &log, 1);
    /* late, and by itself */
    T_EQ(T_OUTCOME(&log, T_TAG(DEAF, 0), TIMEOUT)->phase, GPUD_PHASE_PROCESS);
    T_EQ(t_word_wait_for(STARTED, 2, T_MS(20)), -1); /* no other task may start in the kill's way */
    t_kill(keeper.pid, SIGCONT);
    t_word_set(GATES + 1, 1);
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, T_TAG(WAIT, 1), SUCCESS)->attempt, 1);
    /* the task had ended: there was none to kill */
    T_EQ(T_OUTCOME(&log, T_TAG(WAIT, 1), SUCCESS)->incarnation, 1);
    T_EQ(t_word(STARTED), 2);
    T_EQ(t_stats(d).hard_kills, 0);
    t_end(&d, &log);
}

struct driven {
    gpud_dispatcher *d;
    struct gpud_event outcome;
    int ended;
};

static void drive(struct driven *v, uint64_t wait)
{
    if (v->ended)
        return;
    v->outcome.struct_size = (uint32_t)sizeof(v->outcome);
    v->ended = gpud_dispatcher_poll(v->d, &v->outcome, 1, wait);
    T_CMP(v->ended, >=, 0);
}

static int runs_when_driven(void *user)
{
    struct driven *v = user;

    drive(v, 0);
    return v->ended || (t_slot(v->d, 0).task_id != 0 && t_slot(v->d, 0).pid != 0);
}

static int kill_is_ordered(void *user)
{
    struct driven *v = user;

    drive(v, 0);
    return v->ended || t_word_waits(NULL);
}

/* C6: the keeper is told of the hard limit before it passes and keeps it without the host. It is
 * stopped until then, so that its order is seen. */
T_CASE(hard_limit_without_the_host)
{
    const uint64_t limit = T_MS(10), grace = T_MS(50);
    int early = 0;

    for (int i = 0; i < 20 && !early; i++) { /* a host that gets no CPU orders it late */
        struct t_log log = { 0 };
        struct driven v = { .ended = 0 };
        uint64_t ordered;
        v.d =
            T_BEGIN(NULL, process, .drive = GPUD_DRIVE_CALLER, .devices = "cpu:1", .grace = grace);
        T_SUBMIT(v.d, .tag = T_TAG(HANG, i), .limit = limit);
        t_wait_until("the task runs", runs_when_driven, &v);
        if (!v.ended) {
            struct t_proc worker = t_worker(v.d, 0), keeper = t_keeper_of(&worker);
            t_stop(&keeper);
            t_wait_until("the kill is ordered", kill_is_ordered, &v);
            ordered = t_now();
            t_kill(keeper.pid, SIGCONT);
            if (!v.ended)
                t_wait_ended(&worker);
            drive(&v, T_MS(10000));
            T_EQ(v.outcome.outcome, GPUD_OUTCOME_TIMEOUT);
            T_EQ(v.outcome.phase, GPUD_PHASE_HARD);
            T_CMP(v.outcome.ended_at, >=, v.outcome.started_at + limit + grace);
            early = ordered < v.outcome.started_at + limit + grace;
        }
        t_end(&v.d, &log);
    }
    T_EQ(early, 1);
}

/* C2: a worker that dies by itself between the order to kill it and the time of that has crashed.
 */
T_CASE(death_before_the_ordered_kill)
{
    struct t_proc keeper, worker;
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .grace = T_MS(10));

    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    t_stop(&keeper);
    T_SUBMIT(d, .tag = T_TAG(HANG, 0), .limit = T_MS(30));
    t_wait_until("the kill is ordered", t_word_waits, NULL);
    /* and for ThreadSanitizer: what was looked at is closed later */
    T_EQ(t_stats(d).hard_kills, 0);
    t_kill(worker.pid, SIGKILL);
    t_wait_until("it is dead", is_dead, &worker);
    t_collect(d, &log, 1); /* a stopped keeper is no use then */
    e = T_OUTCOME(&log, T_TAG(HANG, 0), CRASHED);
    T_EQ(e->exit_kind, GPUD_EXIT_LOST);
    t_wait_ended(&keeper);
    T_EQ(t_stats(d).hard_kills, 0);
    t_end(&d, &log);
}

/* ---- stop and continue ---- */

/* The tracee's next system call begins or ends. */
static struct __ptrace_syscall_info next_call(pid_t pid)
{
    struct __ptrace_syscall_info call = { .op = PTRACE_SYSCALL_INFO_NONE };
    int status = 0;

    while (call.op == PTRACE_SYSCALL_INFO_NONE) {
        T_EQ(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
        T_EQ(waitpid(pid, &status, __WALL), pid);
        T_CHECK(WIFSTOPPED(status));
        T_CMP(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(call), &call), >, 0);
    }
    return call;
}

/* Lets the keeper go on until it has seen, and not yet taken, that its worker stopped. */
static void until_it_has_seen_the_stop(pid_t keeper, pid_t worker)
{
    for (;;) {
        struct __ptrace_syscall_info call = next_call(keeper);
        int looks = call.op == PTRACE_SYSCALL_INFO_ENTRY && call.entry.nr == SYS_waitid &&
                    (call.entry.args[3] & WNOWAIT) && (call.entry.args[3] & WSTOPPED);

        if (call.op == PTRACE_SYSCALL_INFO_ENTRY)
            call = next_call(keeper);
        T_EQ(call.op, PTRACE_SYSCALL_INFO_EXIT);
        if (looks && call.exit.rval == 0)
            return;
        if (looks) /* there was nothing: the stop comes now */
            t_kill(worker, SIGSTOP);
    }
}

/* C7: a worker that is continued just when its keeper has seen, and not yet taken, that it stopped
 * does not count as stopped for ever: its next task's hard limit is kept. */
T_CASE(continue_while_the_stop_is_taken)
{
    struct t_proc keeper, worker;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .grace = T_MS(10));
    int status;

    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    if (ptrace(PTRACE_SEIZE, keeper.pid, NULL, PTRACE_O_TRACESYSGOOD))
        t_skip("no ptrace here: errno %d", errno);
    T_EQ(ptrace(PTRACE_INTERRUPT, keeper.pid, NULL, NULL), 0);
    T_EQ(waitpid(keeper.pid, &status, __WALL), keeper.pid);
    t_kill(worker.pid, SIGSTOP);
    until_it_has_seen_the_stop(keeper.pid, worker.pid);
    t_kill(worker.pid, SIGCONT);
    t_wait_until("the worker goes on", goes_on, &worker);
    T_EQ(ptrace(PTRACE_DETACH, keeper.pid, NULL, NULL), 0);
    T_EQ(T_RUN(d, &log, TIMEOUT, .tag = T_TAG(HANG, 0), .limit = T_MS(30))->phase, GPUD_PHASE_HARD);
    t_end(&d, &log);
}

/* The same without a tracer, by the number of tries: few of them meet the moment. */
T_CASE(many_short_stops)
{
    struct t_log log = { 0 };
    struct t_proc worker;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .grace = T_MS(10));

    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    for (int i = 0; i < 2000; i++) {
        t_kill(worker.pid, SIGSTOP);
        t_kill(worker.pid, SIGCONT);
    }
    T_EQ(T_RUN(d, &log, TIMEOUT, .tag = T_TAG(HANG, 0), .limit = T_MS(30))->phase, GPUD_PHASE_HARD);
    t_end(&d, &log);
}
