/* SPDX-License-Identifier: MIT */
/*
 * denied.c - the call of the library that needs a refused system call names it with its errno; and
 * create names a limit on file descriptors that is too low.                     [C15] [C19]
 */
#include "fixture.h"

#include "seccomp.h"
#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPAWNER "starting the spawner failed: "
#define KEEPER "the keeper process cannot start: "
#define PIPES "requesting a keeper failed: "

/* Which call or event reports it: gpud_init, create, each SETUP_FAILURE; or no call needs it. */
enum where { INIT, CREATE, SETUP, WORKS };

struct row {
    const char *call; /* as the text names it */
    int nr, other;    /* the system call; and another one of that name on other machines, or -1 */
    int err;
    enum where where;
    const char *field, *what; /* of the error, and its text before the call's name */
};

#ifndef SYS_poll
#define SYS_poll (-1)
#endif
#ifndef SYS_epoll_wait
#define SYS_epoll_wait (-1)
#endif
#ifndef SYS_fstat
#define SYS_fstat (-1)
#endif
#ifndef SYS_newfstatat
#define SYS_newfstatat (-1)
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define REFUSED(call, nr, other, where, field, what) \
    { call, nr, other, EPERM, where, field, what }, { call, nr, other, ENOSYS, where, field, what }

static const struct row calls[] = {
    REFUSED("socketpair", SYS_socketpair, -1, INIT, "", SPAWNER),
    REFUSED("signalfd", SYS_signalfd4, -1, INIT, "", SPAWNER),
    REFUSED("ppoll", SYS_ppoll, -1, INIT, "", SPAWNER),
    REFUSED("waitid", SYS_waitid, -1, INIT, "", SPAWNER),
    REFUSED("recvmsg", SYS_recvmsg, -1, INIT, "", SPAWNER),
    REFUSED("fcntl", SYS_fcntl, -1, INIT, "", SPAWNER),
#if SYS_poll >= 0
    REFUSED("poll", SYS_poll, -1, INIT, "", SPAWNER),
#endif
#if !T_SANITIZED /* which need these themselves */
    REFUSED("clone", SYS_clone, -1, INIT, "", SPAWNER),
    REFUSED("read", SYS_read, -1, INIT, "", SPAWNER),
    REFUSED("prctl", SYS_prctl, -1, INIT, "", SPAWNER),
    REFUSED("sigprocmask", SYS_rt_sigprocmask, -1, INIT, "", SPAWNER),
    REFUSED("madvise", SYS_madvise, -1, INIT, "", SPAWNER),
    REFUSED("mmap", SYS_mmap, -1, INIT, "", SPAWNER),
    REFUSED("mprotect", SYS_mprotect, -1, CREATE, "queue_size", "queue_size: "),
    REFUSED("write", SYS_write, -1, CREATE, "event loop", "event loop: "),
#endif
    REFUSED("sendmsg", SYS_sendmsg, -1, CREATE, "", "sending a request to the spawner failed: "),
    REFUSED("memfd_create", SYS_memfd_create, -1, CREATE, "payload_budget", "payload_budget: "),
    REFUSED("ftruncate", SYS_ftruncate, -1, CREATE, "payload_budget", "payload_budget: "),
    REFUSED("epoll_create1", SYS_epoll_create1, -1, CREATE, "event loop", "event loop: "),
    REFUSED("epoll_ctl", SYS_epoll_ctl, -1, CREATE, "event loop", "event loop: "),
    REFUSED("epoll_wait", SYS_epoll_pwait, SYS_epoll_wait, CREATE, "event loop", "event loop: "),
    REFUSED("eventfd", SYS_eventfd2, -1, CREATE, "event loop", "event loop: "),
    REFUSED("pipe2", SYS_pipe2, -1, SETUP, "", PIPES),
    REFUSED("fstat", SYS_newfstatat, SYS_fstat, SETUP, "", KEEPER),
    REFUSED("timer_create", SYS_timer_create, -1, SETUP, "", ""),
    REFUSED("pidfd_open", SYS_pidfd_open, -1, WORKS, "", ""),
    REFUSED("close_range", SYS_close_range, -1, WORKS, "", ""),
    REFUSED("sched_setattr", SYS_sched_setattr, -1, WORKS, "", ""),
};
enum { CALLS = T_LENGTH(calls) };

/* ---- one row, in a process of its own ---- */

static int process(gpud_task *t, void *state)
{
    uint64_t n;

    (void)state;
    memcpy(&n, gpud_task_data(t), sizeof(n));
    n *= n;
    return gpud_task_result_set(t, &n, sizeof(n));
}

static const struct gpud_definition definition = GPUD_DEFINITION("test", NULL, process, NULL);

static void deny(const struct row *r)
{
    if ((r->nr >= 0 && t_deny(r->nr, r->err)) || (r->other >= 0 && t_deny(r->other, r->err)))
        t_skip("no filter can be set here: %s", strerror(errno));
}

static void check_error(const struct row *r, const struct gpud_error *e, int code)
{
    char text[216];

    (void)snprintf(text, sizeof(text), "%s%s: %s", r->what, r->call, strerror(r->err));
    T_TEXT(e->text, text);
    T_EQ(code, GPUD_ESYSTEM);
    T_EQ(e->code, code);
    T_EQ(e->sys_errno, r->err);
    T_TEXT(e->field, r->field);
}

static void check_works(gpud_dispatcher *d)
{
    struct t_log log = { 0 };
    uint64_t n = 7;

    T_EQ(
        *(const uint64_t *)T_RUN(d, &log, SUCCESS, .tag = 1, .data = &n, .size = sizeof(n))->result,
        49);
    t_log_free(&log);
}

/* Each attempt says it, and so do ready and the outcome of a task that no worker can run. */
static void check_setup(const struct row *r, gpud_dispatcher *d)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    char text[128], whole[300];
    struct t_log log = { 0 };
    uint64_t n = 7;

    (void)snprintf(text, sizeof(text), "%s%s: %s", r->what, r->call, strerror(r->err));
    T_CODE(gpud_dispatcher_ready(d, 0, T_PATIENCE, &error), ENOWORKER);
    (void)snprintf(whole, sizeof(whole), "0 of 1 workers can become ready; slot 0: %s", text);
    T_TEXT(error.text, whole);
    T_SUBMIT(d, .tag = 1, .data = &n, .size = sizeof(n));
    t_collect(d, &log, 1);
    (void)snprintf(whole, sizeof(whole), "the only slot has failed; slot 0: %s", text);
    T_TEXT(T_OUTCOME(&log, 1, NO_WORKER)->text, whole);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 3);
    for (size_t i = 0; i < 3; i++) {
        T_TEXT(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, i)->text, text);
        T_EQ(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, i)->code, GPUD_ESYSTEM);
    }
    t_log_free(&log);
}

static void live(const struct row *r, const struct gpud_options *o)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    int code = gpud_init(&definition, 1, &error);

    if (r->where == INIT) {
        check_error(r, &error, code);
        return;
    }
    T_EQ(code, 0);
    code = gpud_dispatcher_create(&d, o, &error);
    if (r->where == CREATE) {
        check_error(r, &error, code);
        T_CHECK(!d);
    } else {
        T_EQ(code, 0);
        if (r->where == SETUP)
            check_setup(r, d);
        else
            check_works(d);
        t_destroy(&d, NULL);
    }
    T_OK(gpud_fini());
}

static struct gpud_options options(void)
{
    return *T_OPTIONS(.definition = "test", .devices = "cpu:1", .backoff = T_MS(1),
                      .payload_budget = 16u << 20);
}

/* A snapshot itself needs some of the calls; then at least no child is left. */
static void compare(const struct row *r, struct t_snapshot *before)
{
    static const char *const needed[] = { "fcntl", "fstat", "read", "sigprocmask" };

    for (size_t i = 0; i < T_LENGTH(needed); i++)
        if (!strcmp(r->call, needed[i])) {
            T_EQ(waitpid(-1, NULL, WNOHANG | __WALL), -1);
            T_EQ(errno, ECHILD);
            return;
        }
    t_snapshot_compare(before);
}

/* Nothing is left: neither a child nor a descriptor nor anything else of the host's. */
static void forked(const struct row *r)
{
    const struct gpud_options o = options();
    struct t_snapshot before;

    t_snapshot_take(&before);
    deny(r);
    live(r, &o);
    compare(r, &before);
}

static void executed(const struct row *r)
{
    struct gpud_options o = options();

    o.start = GPUD_START_EXEC;
    deny(r);
    live(r, &o);
}

static void fails_without_init(const struct row *r)
{
    static const char *const argv[] = { "/bin/false", NULL };
    struct gpud_options o = options();
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    gpud_monitor *m = NULL;
    struct t_snapshot before;

    o.argv = argv;
    t_snapshot_take(&before);
    deny(r);
    check_error(r, &error, gpud_dispatcher_create(&d, &o, &error));
    check_error(r, &error, gpud_monitor_open(&m, "fake:1", &error));
    T_CHECK(!d && !m);
    compare(r, &before);
}

/* A filter cannot be taken back: each row has its own process. */
static void in_child(void (*run)(const struct row *), const struct row *r)
{
    int status = 0;
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    T_CMP(pid, >=, 0);
    if (!pid) {
        run(r);
        (void)fflush(NULL);
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        _exit(77); /* a skip, with its reason printed */
    if (status)
        T_FAIL("with %s refused (errno %d) the host's wait status is %d", r->call, r->err, status);
}

/* Whichever call of the library finds it, its error names the system call and the errno,
 * and nothing is left. [T26] */
T_LONG_CASE(calls_are_named, 120)
{
    for (size_t i = 0; i < CALLS; i++)
        in_child(forked, &calls[i]);
}

/* The same where workers are programs, for what only workers and keepers do. */
T_LONG_CASE(calls_are_named_of_programs, 60)
{
    if (getenv("GPUD_WORKER")) /* this case again, as the worker */
        (void)gpud_init(&definition, 1, NULL);
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].where >= SETUP)
            in_child(executed, &calls[i]);
}

/* Without gpud_init the spawner is a program, and its reply names the call.  The host itself needs
 * pidfd_open then. */
T_LONG_CASE(calls_are_named_without_init, 60)
{
    static const struct row more[] = {
        REFUSED("pidfd_open", SYS_pidfd_open, -1, CREATE, "", SPAWNER),
        REFUSED("sendmsg", SYS_sendmsg, -1, CREATE, "",
                "sending a request to the spawner failed: "),
    };
    static const char *const here[] = {
        "socketpair", "signalfd", "poll", "ppoll", "waitid", "recvmsg", "fcntl", "madvise", "clone",
        "sigprocmask", "prctl",
    };

    for (size_t i = 0; i < T_LENGTH(more); i++)
        in_child(fails_without_init, &more[i]);
    for (size_t i = 0; i < CALLS; i++)
        for (size_t k = 0; k < T_LENGTH(here); k++)
            if (!strcmp(calls[i].call, here[k]))
                in_child(fails_without_init, &calls[i]);
}

/* ---- what needs a thread ---- */

static void *nothing(void *unused)
{
    return unused;
}

static void no_thread(const struct row *r)
{
    struct gpud_driver_info info = GPUD_DRIVER_INFO_INIT;
    const struct gpud_options o = options();
    gpud_monitor *m = NULL;
    pthread_t thread;
    char text[160];

    deny(r);
    if (pthread_create(&thread, NULL, nothing, NULL) == 0) {
        t_join(thread);
        t_skip("threads are made by another call here");
    }
    live(r, &o);
    T_OK(gpud_monitor_open(&m, "fake:1", NULL)); /* its process finds out later */
    T_OK(gpud_monitor_driver(m, &info, T_PATIENCE));
    T_EQ(info.state, GPUD_DRIVER_FAILED);
    (void)snprintf(text, sizeof(text), "the monitor process could not start: %s: %s", r->call,
                   strerror(r->err));
    T_TEXT(info.text, text);
    T_OK(gpud_monitor_close(&m));
}

/* The error of create names the library thread that cannot be made, the driver's record a
 * monitor's. */
T_CASE(threads_are_named)
{
    static const struct row r = {
        "pthread_create", SYS_clone3, -1, EPERM, CREATE, "drive", "drive: ",
    };

    in_child(no_thread, &r);
}

/* ---- after the start ---- */

enum { BEGUN, GO };

static int lose_read(gpud_task *t, void *state)
{
    (void)t;
    (void)state;
    return t_deny(SYS_read, EPERM) ? 1 : 0;
}

/* A worker that can no longer read its orders says so beside its exit status. */
T_CASE(worker_says_why_it_left)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, lose_read, .failures_in_a_row = 1);

    T_SUBMIT(d, .tag = 1);
    t_collect(d, &log, 1);
    if (t_log_outcomes(&log, GPUD_OUTCOME_ERROR))
        t_skip("no filter can be set here");
    t_wait_slot(d, 0, GPUD_SLOT_FAILED);
    T_CODE(gpud_dispatcher_ready(d, 0, 0, &error), ENOWORKER);
    T_TEXT(error.text, "0 of 1 workers can become ready; slot 0: exited with status 73 (read: "
                       "Operation not permitted) between tasks");
    t_end(&d, &log);
}

static int wait_for_go(gpud_task *t, void *state)
{
    (void)t;
    (void)state;
    (void)t_word_add(BEGUN);
    t_word_wait(GO, 1);
    return 0;
}

/* ppoll refuses more places than there may be descriptors. */
static void forbid_files(const struct t_proc *p)
{
    struct rlimit r;

    T_EQ(prlimit(p->pid, RLIMIT_NOFILE, NULL, &r), 0);
    r.rlim_cur = 1;
    T_EQ(prlimit(p->pid, RLIMIT_NOFILE, &r, NULL), 0);
}

/* A keeper that cannot go on names the call; its worker dies with it. */
T_CASE(keeper_says_why_it_left)
{
    struct t_proc worker, keeper;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, wait_for_go, 0);

    T_SUBMIT(d, .tag = 1);
    t_word_wait(BEGUN, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    forbid_files(&keeper);
    t_kill(worker.pid, SIGSTOP); /* its keeper wakes */
    t_collect(d, &log, 1);
    T_TEXT(T_OUTCOME(&log, 1, CRASHED)->text, "died with its keeper (ppoll: Invalid argument)");
    t_word_set(GO, 1);
    t_end(&d, &log);
}

#define GONE "the spawner is gone (poll: Invalid argument)"

static int is_logged(const struct t_log *log)
{
    static const char text[] =
        GONE "; the workers go on, but a slot whose keeper dies starts no worker any more";

    for (size_t i = 0; i < log->count; i++)
        if (log->list[i].kind == GPUD_EVENT_LOG && !strcmp(log->list[i].text, text))
            return 1;
    return 0;
}

/* The same of a spawner: each dispatcher logs it, and a slot that needs it has it as the
 * reason. */
T_CASE(spawner_says_why_it_left)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_proc worker, keeper, spawner;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .backoff = T_MS(1));

    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    spawner = t_spawner();
    forbid_files(&spawner);
    t_kill(spawner.pid, SIGCHLD); /* it wakes */
    while (!is_logged(&log))
        t_collect_kind(d, &log, GPUD_EVENT_LOG, t_log_count(&log, GPUD_EVENT_LOG) + 1);
    t_kill(keeper.pid, SIGKILL);
    t_wait_slot(d, 0, GPUD_SLOT_FAILED);
    T_CODE(gpud_dispatcher_ready(d, 0, 0, &error), ENOWORKER);
    T_TEXT(error.text, "0 of 1 workers can become ready; slot 0: " GONE);
    t_end(&d, &log);
}

/* ---- RLIMIT_NOFILE ---- */

static void limit_files(uint64_t n)
{
    struct rlimit r;

    T_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = n;
    T_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
}

static unsigned open_below(unsigned limit)
{
    unsigned n = 0;

    for (unsigned fd = 0; fd < limit; fd++)
        n += fcntl((int)fd, F_GETFD) >= 0;
    return n;
}

/* The lowest limit that leaves so many. */
static unsigned limit_for(unsigned need)
{
    unsigned limit = need;

    while (limit - open_below(limit) < need)
        limit++;
    return limit;
}

struct room {
    struct gpud_options options;
    unsigned slots, passing; /* used only while slots are made */
    uint64_t full;
};

/* A new keeper needs no more than the one before. */
static void lose_a_keeper(gpud_dispatcher *d)
{
    struct t_proc worker = t_worker(d, 0), keeper = t_keeper_of(&worker);
    uint64_t restarts = t_stats(d).restarts;

    t_kill(keeper.pid, SIGKILL);
    t_wait_ended(&keeper);
    check_works(d);
    while (t_stats(d).restarts == restarts)
        check_works(d);
}

static void try_room(struct room *x)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    unsigned need = 0, limit, before;
    gpud_dispatcher *d = NULL;
    char text[216];

    limit_files(limit_for(5));
    T_CODE(gpud_dispatcher_create(&d, &x->options, &error), ESYSTEM);
    T_EQ(sscanf(error.text, "%*u %*s %*s %u file", &need), 1);
    limit = limit_for(need);
    limit_files(limit - 1);
    T_CODE(gpud_dispatcher_create(&d, &x->options, &error), ESYSTEM);
    (void)snprintf(text, sizeof(text),
                   "%u %s %u file descriptors, %u of %u are left (RLIMIT_NOFILE, ulimit -n): %s",
                   x->slots, x->slots > 1 ? "slots need" : "slot needs", need, need - 1, limit - 1,
                   strerror(EMFILE));
    T_TEXT(error.text, text);
    T_TEXT(error.field, "devices");
    T_EQ(error.sys_errno, EMFILE);
    limit_files(limit);
    before = open_below(limit);
    d = t_create(&x->options);
    t_wait_ready(d, x->slots);
    T_EQ(open_below(limit) - before, need - x->passing);
    if (x->options.stdio == GPUD_STDIO_TAIL) {
        limit_files(limit + 1); /* for its connection to the spawner */
        T_CODE(gpud_dispatcher_device_add(d, "cpu:1", &error), ESYSTEM);
        T_CHECK(strstr(error.text, "1 slot needs 9 file descriptors, 2 of "));
    }
    lose_a_keeper(d);
    t_destroy(&d, NULL);
    limit_files(x->full);
    T_EQ(open_below(limit), before);
    if (x->options.decision_log)
        T_EQ(unlink(x->options.decision_log), 0);
}

/* The slots of a pool follow from max_workers. */
T_CASE(descriptors_of_a_pool)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    struct rlimit r;

    T_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    t_init(NULL, process, NULL);
    limit_files(limit_for(20));
    T_CODE(gpud_dispatcher_create(
               &d, T_OPTIONS(.pooled = 1, .devices = "fake:1", .max_workers = 40), &error),
           ESYSTEM);
    T_CHECK(strstr(error.text, "41 slots need "));
    T_TEXT(error.field, "max_workers");
    T_EQ(error.sys_errno, EMFILE);
    limit_files((unsigned)r.rlim_cur);
    T_OK(gpud_fini());
}

/* Create refuses a limit that is too low, with the need and the descriptors left.  With
 * exactly the need the dispatcher works, and has as many open as it said. */
T_LONG_CASE(descriptors_needed, 60)
{
    static const char *const devices[] = { "cpu:1", "cpu:3", "cpu:20" };
    static const unsigned slots[] = { 1, 3, 20 };
    static const uint32_t stdio[] = { GPUD_STDIO_TAIL, GPUD_STDIO_EVENTS, GPUD_STDIO_INHERIT };
    struct rlimit r;

    if (getenv("GPUD_WORKER")) /* this case again, as the worker */
        (void)gpud_init(&definition, 1, NULL);
    T_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    t_init(NULL, process, NULL);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++)
            for (uint32_t start = GPUD_START_FORK; start <= GPUD_START_EXEC; start++) {
                struct room x = { .slots = slots[i], .passing = 1, .full = r.rlim_cur };

                x.passing += stdio[k] == GPUD_STDIO_EVENTS;
                x.options = options();
                x.options.devices = devices[i];
                x.options.stdio = stdio[k];
                x.options.start = start;
                x.options.payload_budget = 64u << 20;
                try_room(&x);
                x.options.decision_log = "decisions"; /* one more */
                if (i == 0)
                    try_room(&x);
            }
    T_OK(gpud_fini());
}
