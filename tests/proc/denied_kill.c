/* SPDX-License-Identifier: MIT */
/*
 * denied_kill.c - a filter of system calls, which spawner, keepers and workers inherit, denies the
 * ways in which a keeper kills its worker: each alone, both, and the parent-death signal, too.
 */
#include "monitors.h"
#include "pooled.h"
#include "scripted.h"
#include "verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seccomp.h"

enum { STARTED, GATE, CHILD };                  /* words */
enum { CHILD_PID };                             /* numbers */
enum { PIDFD = 1, KILL = 2, DEATH = 4, ALL = 7 }; /* what is denied */
enum { WORK, HANG, HANG_WITH_CHILD, CRASH_WITH_CHILD, STOP, DIE_AT_GATE };
#define LIMIT T_S(1)
#define GRACE T_MS(50)
#define KILL_LIMIT T_MS(T_SANITIZED ? 3000 : 1000)
#define EXCEEDED \
    "exceeded its time limit of 1.000 s (limit of the task) and the grace of 0.050 s (grace), "
#define BOTH "(pidfd_send_signal, kill: Operation not permitted)"

static void deny(unsigned ways)
{
    int denied = 0;

    if (ways & PIDFD)
        denied |= t_deny(SYS_pidfd_send_signal, EPERM);
    if (ways & KILL)
        denied |= t_deny(SYS_kill, EPERM);
    if (ways & DEATH)
        denied |= t_deny_where(SYS_prctl, 0, PR_SET_PDEATHSIG, EPERM);
    if (denied)
        t_skip("no filter of system calls can be set here: %s", strerror(errno));
}

/* What no signal reaches ends when the case opens the gate. */
static _Noreturn void stay(void)
{
    t_block_signals();
    (void)t_word_wait_for(GATE, 1, 2 * T_PATIENCE);
    _exit(0);
}

static void start_daemon(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)setsid();
        if (fork())
            _exit(0);
        atomic_store(&t_page->numbers[CHILD_PID], (uint64_t)getpid());
        (void)t_word_add(CHILD);
        stay();
    }
    (void)waitpid(pid, NULL, 0);
    t_word_wait(CHILD, 1);
}

static int process(gpud_task *t, void *state)
{
    const uint64_t verb = gpud_task_tag(t) >> 32;

    (void)state;
    if (verb == WORK)
        return 0;
    if (verb == STOP)
        (void)raise(SIGSTOP);
    if (verb == HANG_WITH_CHILD || verb == CRASH_WITH_CHILD)
        start_daemon();
    (void)t_word_add(STARTED);
    if (verb == DIE_AT_GATE)
        t_word_wait(GATE, 1);
    if (verb == CRASH_WITH_CHILD || verb == DIE_AT_GATE)
        abort();
    stay();
}

static gpud_dispatcher *start(unsigned ways)
{
    deny(ways);
    t_init(NULL, process, NULL);
    return T_CREATE(.devices = "cpu:1", .grace = GRACE, .kill_limit = KILL_LIMIT,
                    .close_limit = T_S(1), .backoff = T_MS(5));
}

static size_t warnings(const struct t_log *log)
{
    size_t n = 0;

    for (size_t i = 0; i < t_log_count(log, GPUD_EVENT_LOG); i++)
        n += strstr(t_log_at(log, GPUD_EVENT_LOG, i)->text, "could not be killed") != NULL;
    return n;
}

/* A task that hangs is killed at its limit, what it had started is gone, and the slot goes on. */
static void killed_all_the_same(unsigned ways, uint64_t verb, const char *text)
{
    struct t_proc worker, child = { .pid = 0 };
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = start(ways);

    T_SUBMIT(d, .tag = T_TAG(verb, 0), .limit = LIMIT);
    T_SUBMIT(d, .tag = 1);
    t_word_wait(STARTED, 1);
    worker = t_worker(d, 0);
    if (verb == HANG_WITH_CHILD)
        T_EQ(t_proc_read((pid_t)atomic_load(&t_page->numbers[CHILD_PID]), &child), 0);
    t_collect(d, &log, 2);
    e = T_OUTCOME(&log, T_TAG(verb, 0), TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_TEXT(e->text, text);
    T_CHECK(t_proc_ended(&worker));
    T_CHECK(!child.pid || t_proc_ended(&child));
    (void)T_OUTCOME(&log, 1, SUCCESS);
    T_EQ(warnings(&log), ways & PIDFD ? 1 : 0);
    t_end(&d, &log);
}

/* C8: without pidfd_send_signal, kill(2) does it. */
T_CASE(pidfd_denied)
{
    killed_all_the_same(
        PIDFD, HANG_WITH_CHILD,
        EXCEEDED
        "killed by signal 9 (SIGKILL) by kill (pidfd_send_signal: Operation not permitted)");
}

/* C8: without kill(2), the pidfd does it, for what the worker had started, too. */
T_CASE(kill_denied)
{
    killed_all_the_same(KILL, HANG_WITH_CHILD, EXCEEDED "killed by signal 9 (SIGKILL)");
}

T_CASE(parent_death_denied)
{
    killed_all_the_same(DEATH, HANG_WITH_CHILD, EXCEEDED "killed by signal 9 (SIGKILL)");
}

/* C8: without both, the keeper ends and its worker with it; the slot gets others. */
T_CASE(both_signals_denied)
{
    killed_all_the_same(PIDFD | KILL, HANG, EXCEEDED "died with its keeper " BOTH);
}

/* C10: no way is left: the slot is QUARANTINED, and destroy and gpud_fini return. [T9] */
T_CASE(all_ways_denied)
{
    struct t_proc worker;
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = start(ALL);
    uint64_t from;
    char text[256];

    T_SUBMIT(d, .tag = T_TAG(HANG, 0), .limit = LIMIT);
    T_SUBMIT(d, .tag = 1);
    t_word_wait(STARTED, 1);
    worker = t_worker(d, 0);
    t_collect(d, &log, 2);
    e = T_OUTCOME(&log, T_TAG(HANG, 0), TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_KILL);
    (void)snprintf(text, sizeof(text),
                   EXCEEDED "survived the end of its keeper for %d.000 s (kill_limit) " BOTH,
                   (int)(KILL_LIMIT / T_S(1)));
    T_TEXT(e->text, text);
    (void)T_OUTCOME(&log, 1, NO_WORKER);
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_QUARANTINED);
    T_EQ(warnings(&log), 1);
    T_CHECK(!t_proc_ended(&worker));
    from = t_now();
    t_end(&d, &log);
    T_CMP(t_now() - from, <, T_S(5));
    T_CHECK(!t_proc_ended(&worker));
    t_word_set(GATE, 1);
    t_wait_ended(&worker);
}

/* A class is removed although a worker of it survives: its name is free, and the worker keeps only
 * its device and its seat. */
T_CASE(class_of_a_survivor_removed)
{
    const struct gpud_class class = { .struct_size = sizeof(class),
                                      .name = "x",
                                      .options = T_OPTIONS(.grace = GRACE) };
    struct t_proc worker;
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    deny(ALL);
    t_init(NULL, process, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:2", .kill_limit = KILL_LIMIT, .close_limit = T_S(1));
    T_OK(gpud_dispatcher_class_add(d, &class, NULL));
    T_SUBMIT(d, .tag = T_TAG(HANG, 0), .class_name = "x");
    t_word_wait(STARTED, 1);
    worker = t_worker(d, 0);
    T_OK(gpud_dispatcher_class_remove(d, "x", GPUD_FINISH_NOW, NULL));
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(HANG, 0), CANCELLED)->phase, GPUD_PHASE_KILL);
    t_collect_kind(d, &log, GPUD_EVENT_CLASS, 3); /* LOADED UNLOADED REMOVED */
    T_EQ(t_log_at(&log, GPUD_EVENT_CLASS, 2)->class_change, GPUD_CHANGE_REMOVED);
    T_EQ(gpud_dispatcher_classes(d, NULL, 0), 0);
    T_OK(gpud_dispatcher_class_add(d, &class, NULL));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "x");
    T_CHECK(!t_proc_ended(&worker));
    t_end(&d, &log);
    t_word_set(GATE, 1);
    t_wait_ended(&worker);
}

/* A process without the filter.  It stops the process whose number it reads, until the socket is
 * closed. */
struct stopper {
    int fd;
    pid_t pid;
};

static struct stopper start_stopper(void)
{
    struct stopper s;
    int ends[2];
    pid_t pid;

    T_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    s = (struct stopper){ ends[1], fork() };
    if (s.pid == 0) {
        (void)close(ends[1]);
        if (read(ends[0], &pid, sizeof(pid)) == sizeof(pid) && kill(pid, SIGSTOP) == 0 &&
            write(ends[0], &pid, sizeof(pid)) == sizeof(pid) &&
            read(ends[0], &(char){ 0 }, 1) == 0)
            (void)kill(pid, SIGCONT);
        _exit(0);
    }
    (void)close(ends[0]);
    return s;
}

static void stop_by(const struct stopper *s, pid_t pid)
{
    T_EQ(write(s->fd, &pid, sizeof(pid)), (ssize_t)sizeof(pid));
    T_EQ(read(s->fd, &pid, sizeof(pid)), (ssize_t)sizeof(pid));
}

static void end_stopper(const struct stopper *s)
{
    (void)close(s->fd);
    T_EQ(waitpid(s->pid, NULL, 0), s->pid);
}

/* A worker survives, and its device is removed and added again: its memory is not free before it
 * ends, and then at once, also where no reading tells that. */
static void device_returns(const struct stopper *stopper)
{
    const struct gpud_task_desc more = { .struct_size = sizeof(more), .class_name = "x" };
    struct gpud_device_info row;
    struct t_proc worker;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    deny(ALL);
    t_init(NULL, process, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:1", .kill_limit = KILL_LIMIT, .close_limit = T_S(1));
    add(d, T_CLASS(.name = "x", .options = T_OPTIONS(.grace = GRACE)));
    T_SUBMIT(d, .tag = T_TAG(HANG, 0), .class_name = "x", .limit = LIMIT);
    t_word_wait(STARTED, 1);
    worker = t_worker(d, 0);
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(HANG, 0), TIMEOUT)->phase, GPUD_PHASE_KILL);
    T_OK(gpud_dispatcher_device_remove(d, "fake:0"));
    (void)t_told(d, &log, &at, "fake:0", "removed");
    T_OK(gpud_dispatcher_device_add(d, "fake:1", NULL));
    T_TEXT(gpud_reason_name(t_reason(d, &more).kind), "FOREIGN");
    T_SUBMIT(d, .tag = 1, .class_name = "x");
    if (stopper)
        stop_by(stopper, t_the_monitor().pid);
    t_word_set(GATE, 1);
    t_wait_ended(&worker);
    t_collect(d, &log, 2);
    T_TEXT(T_OUTCOME(&log, 1, SUCCESS)->device, "fake:0");
    row = t_device(d, "fake:0");
    T_EQ(row.slots, 1);
    T_TEXT(row.class_name, "x");
    if (stopper)
        end_stopper(stopper);
    t_end(&d, &log);
}

T_CASE(device_of_a_survivor_returns)
{
    device_returns(NULL);
}

T_CASE(device_returns_without_readings)
{
    const struct stopper s = start_stopper();

    device_returns(&s);
}

/* C10: a process that a dead worker has left, and that no signal reaches. */
T_CASE(remains_that_no_signal_reaches)
{
    struct t_proc child;
    struct t_log log = { 0 };
    gpud_dispatcher *d = start(ALL);

    T_EQ(T_RUN(d, &log, CRASHED, .tag = T_TAG(CRASH_WITH_CHILD, 0))->phase, GPUD_PHASE_KILL);
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_QUARANTINED);
    T_EQ(t_proc_read((pid_t)atomic_load(&t_page->numbers[CHILD_PID]), &child), 0);
    t_end(&d, &log);
    t_word_set(GATE, 1);
    t_wait_ended(&child);
}

/* C10 C19: destroy kills what still runs at its limit. */
T_CASE(destroy_with_both_signals_denied)
{
    gpud_dispatcher *d = start(PIDFD | KILL);
    struct t_proc worker;
    uint64_t uncollected = 0;

    T_SUBMIT(d, .tag = T_TAG(HANG, 0));
    t_word_wait(STARTED, 1);
    worker = t_worker(d, 0);
    T_OK(gpud_dispatcher_destroy(&d, &uncollected));
    T_EQ(uncollected, 1);
    T_OK(gpud_fini());
    t_wait_ended(&worker);
}

/* ---- the host dies ---- */

T_PROGRAM(denied_host)
{
    gpud_dispatcher *d = start((unsigned)(argv[1][0] - '0'));

    (void)argc;
    T_SUBMIT(d, .tag = T_TAG(HANG, 0));
    t_rest();
}

static int is_worker(const struct t_proc *p)
{
    return strncmp(p->comm, "gpud-w", 6) == 0;
}

/* All of the library end with the host; a worker that no way reaches, when its task returns. */
static void host_dies(unsigned ways)
{
    const char argument[2] = { (char)('0' + ways), '\0' };
    pid_t host = t_program_start("denied_host", argument, NULL);
    struct t_procs all;

    t_word_wait(STARTED, 1);
    all = t_procs_below(host);
    T_EQ(all.count, 3); /* spawner, keeper, worker */
    t_kill(host, SIGKILL);
    T_EQ(waitpid(host, NULL, 0), host);
    for (size_t i = 0; i < all.count; i++)
        if (ways != ALL || !is_worker(&all.list[i]))
            t_wait_ended(&all.list[i]);
    t_word_set(GATE, 1);
    for (size_t i = 0; i < all.count; i++)
        t_wait_ended(&all.list[i]);
    t_procs_free(&all);
}

/* C11 [T10] */
T_CASE(host_dies_pidfd_denied)
{
    host_dies(PIDFD);
}

/* C11 [T10] */
T_CASE(host_dies_kill_denied)
{
    host_dies(KILL);
}

/* C11 [T10] */
T_CASE(host_dies_both_denied)
{
    host_dies(PIDFD | KILL);
}

/* C11: the worker alone is left, until its task returns. */
T_CASE(host_dies_all_denied)
{
    host_dies(ALL);
}

/* ---- other reasons for a kill ---- */

/* One that stops itself: the text has the limit and the calls. */
T_LONG_CASE(stopped_with_both_signals_denied, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    deny(PIDFD | KILL);
    d = T_BEGIN(NULL, process, .devices = "cpu:1", .stop_limit = T_S(1), .backoff = T_MS(5));
    T_SUBMIT(d, .tag = T_TAG(STOP, 0));
    T_SUBMIT(d, .tag = 1);
    t_collect(d, &log, 2);
    T_TEXT(T_OUTCOME(&log, T_TAG(STOP, 0), TIMEOUT)->text,
           "stopped for 1.000 s (stop_limit), died with its keeper " BOTH);
    (void)T_OUTCOME(&log, 1, SUCCESS);
    t_end(&d, &log);
}

T_LONG_CASE(close_limit_with_both_signals_denied, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = start(PIDFD | KILL);

    T_SUBMIT(d, .tag = T_TAG(HANG, 0));
    t_word_wait(STARTED, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, T_MS(100)));
    t_collect_rest(d, &log);
    T_TEXT(
        T_OUTCOME(&log, T_TAG(HANG, 0), CANCELLED)->text,
        "killed at the close limit of 0.100 s (gpud_dispatcher_close), died with its keeper " BOTH);
    t_end(&d, &log);
}

static int stands_still(void *user)
{
    struct t_proc now;

    return t_proc_read(((struct t_proc *)user)->pid, &now) == 0 && now.state == 'T';
}

/* A stopped keeper is killed through a pidfd, too.  Another process, without the filter, stops it.
 */
T_LONG_CASE(stopped_keeper_kill_denied, 60)
{
    struct t_proc worker, keeper;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    int ask[2], status;
    pid_t helper;

    T_EQ(pipe(ask), 0);
    helper = fork();
    if (helper == 0) {
        pid_t pid = 0;
        (void)close(ask[1]);
        _exit(read(ask[0], &pid, sizeof(pid)) == sizeof(pid) && kill(pid, SIGSTOP) == 0 ? 0 : 1);
    }
    (void)close(ask[0]);
    d = start(KILL);
    T_SUBMIT(d, .tag = T_TAG(DIE_AT_GATE, 0));
    t_word_wait(STARTED, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    T_EQ(write(ask[1], &keeper.pid, sizeof(keeper.pid)), (ssize_t)sizeof(keeper.pid));
    T_EQ(waitpid(helper, &status, 0), helper);
    T_EQ(status, 0);
    t_wait_until("the keeper stands still", stands_still, &keeper);
    t_word_set(GATE, 1);
    T_SUBMIT(d, .tag = 1);
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, T_TAG(DIE_AT_GATE, 0), CRASHED)->exit_kind, GPUD_EXIT_LOST);
    (void)T_OUTCOME(&log, 1, SUCCESS);
    t_wait_ended(&keeper);
    (void)close(ask[1]);
    t_end(&d, &log);
}
