/* SPDX-License-Identifier: MIT */
/*
 * guest.c - the library inside somebody else's process: forks, other children, signals, threads,
 * files.  (That dispositions, mask, directory and the rest stay is checked around every case.)
 */
#include "verbs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIST_FILES = T_VERBS, SIGNALS };

/* Writes one line per open file of the worker, except the directory that lists them. */
static int list_files(gpud_task *t)
{
    char text[4000] = "";
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    size_t at = 0;

    while (dir && (entry = readdir(dir)) && at < sizeof(text) - 100) {
        char path[300], target[64];
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        n = readlink(path, target, sizeof(target) - 1);
        if (n <= 0 || atoi(entry->d_name) == dirfd(dir))
            continue;
        target[n] = 0;
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %s\n", entry->d_name, target);
    }
    if (dir)
        (void)closedir(dir);
    return gpud_task_result_set(t, text, at + 1);
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    switch (gpud_task_tag(t) >> 32) {
    case LIST_FILES:
        return list_files(t);
    case SIGNALS: {
        sigset_t mask;

        /* TERM, INT and HUP to the whole service must not end a worker in its task. */
        (void)raise(SIGTERM);
        (void)raise(SIGINT);
        (void)raise(SIGHUP);
        (void)sigprocmask(SIG_SETMASK, NULL, &mask);
        for (int n = 1; n < 32; n++)
            if (sigismember(&mask, n))
                return n;
        return 0;
    }
    default:
        return t_process(t, state);
    }
}

static int no_task(struct gpud_task_desc *task, size_t n, void *user)
{
    (void)n;
    (void)task, (void)user;
    return 0;
}

static void in_a_child(gpud_dispatcher *d, void *buffer)
{
    struct gpud_event event = GPUD_EVENT_INIT;
    struct gpud_stats stats = GPUD_STATS_INIT;
    struct gpud_slot_stats row = { .struct_size = sizeof(row) };
    gpud_dispatcher *other = NULL, *mine = d;
    void *more = NULL;

    T_CODE(gpud_dispatcher_submit(d, T_TASK(0), 0, NULL, NULL), EFORKED);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(0), GPUD_NEVER, NULL, NULL), EFORKED);
    T_CODE(gpud_dispatcher_buffer_alloc(d, 10, &more), EFORKED);
    T_CODE(gpud_dispatcher_buffer_free(d, buffer), EFORKED);
    T_CODE(gpud_dispatcher_poll(d, &event, 1, GPUD_NEVER), EFORKED);
    T_CODE(gpud_dispatcher_run(d, no_task, T_CALLBACKS(0), NULL, NULL), EFORKED);
    T_CODE(gpud_dispatcher_cancel(d, 1, GPUD_CANCEL_HARD), EFORKED);
    T_CODE(gpud_dispatcher_stop(d, GPUD_FINISH_NOW), EFORKED);
    T_CODE(gpud_dispatcher_close(d, GPUD_FINISH_NOW, 1), EFORKED);
    T_CODE(gpud_dispatcher_stats(d, &stats), EFORKED);
    T_CODE(gpud_dispatcher_slots(d, &row, 1), EFORKED);
    T_CODE(gpud_dispatcher_create(&other, T_OPTIONS(0), NULL), EFORKED);
    T_OK(gpud_dispatcher_destroy(&mine, NULL));
    T_CHECK(!mine);
    T_OK(gpud_fini());
}

static void expect_exit_0(pid_t pid)
{
    int status = 0;

    T_EQ(waitpid(pid, &status, 0), pid);
    T_CHECK(WIFEXITED(status));
    T_EQ(WEXITSTATUS(status), 0);
}

/* Every verb answers EFORKED in a forked child; its destroy and fini harm nothing here. [T20] */
T_CASE(forked_child)
{
    struct t_log log = { 0 };
    void *buffer = NULL;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2");
    pid_t pid;

    T_OK(gpud_dispatcher_buffer_alloc(d, 100000, &buffer));
    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    for (int round = 0; round < 3; round++) {
        pid = fork();
        T_CMP(pid, >=, 0);
        if (!pid) {
            in_a_child(d, buffer);
            _exit(0);
        }
        expect_exit_0(pid);
    }
    t_submit_tags(d, 0, 100);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 101);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 101);
    T_OK(gpud_dispatcher_buffer_free(d, buffer));
    t_end(&d, &log);
}

/* A forked child may become a host of its own, while the parent's goes on. */
T_CASE(forked_child_inits_anew)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .drive = GPUD_DRIVE_CALLER);
    pid_t pid;

    pid = fork();
    T_CMP(pid, >=, 0);
    if (!pid) {
        struct t_log mine = { 0 };
        gpud_dispatcher *own;

        T_OK(gpud_dispatcher_destroy(&d, NULL));
        T_OK(gpud_fini());
        own = T_BEGIN(NULL, process, .devices = "cpu:2", .drive = GPUD_DRIVE_CALLER);
        for (uint64_t n = 0; n < 20; n++)
            T_SUBMIT(own, .tag = n);
        t_collect(own, &mine, 20);
        T_EQ(t_log_outcomes(&mine, GPUD_OUTCOME_SUCCESS), 20);
        t_end(&own, &mine);
        _exit(0);
    }
    t_submit_tags(d, 0, 20);
    t_collect(d, &log, 20);
    expect_exit_0(pid);
    t_end(&d, &log);
}

/* C13: a host that waits for all its children never meets ours, and gets no SIGCHLD for them. */
static _Atomic int child_signals;

static void on_child(int number)
{
    (void)number;
    atomic_fetch_add(&child_signals, 1);
}

/* C13: a handler of its own, and waitpid(-1). [T13] */
T_CASE(host_waits_for_all_children)
{
    struct sigaction action = { .sa_handler = on_child }, old;
    struct t_log log = { 0 };
    struct t_proc worker;
    gpud_dispatcher *d;

    T_EQ(sigaction(SIGCHLD, &action, &old), 0);
    d = T_BEGIN(NULL, process, .devices = "cpu:2", .backoff = T_MS(5), .failures_in_a_row = 1000);
    for (uint64_t n = 0; n < 10; n++) {
        T_SUBMIT(d, .tag = n);
        t_collect(d, &log, n + 1);
        worker = t_worker(d, (unsigned)n % 2);
        t_kill(worker.pid, SIGKILL);
        t_wait_ended(&worker);
        if (T_THREAD_SANITIZED)
            continue;
        errno = 0;
        T_EQ(waitpid(-1, NULL, WNOHANG), -1);
        T_EQ(errno, ECHILD);
    }
    t_end(&d, &log);
    T_EQ(child_signals, T_THREAD_SANITIZED ? child_signals : 0);
    T_EQ(sigaction(SIGCHLD, &old, NULL), 0);
}

/* C13: a host that ignores SIGCHLD and SIGPIPE, or has them blocked. */
static void odd_host(void)
{
    struct t_log log = { 0 };
    struct t_proc worker;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .backoff = T_MS(5));

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    for (unsigned slot = 0; slot < 2; slot++)
        if (t_slot(d, slot).task_id) {
            worker = t_worker(d, slot);
            t_kill(worker.pid, SIGKILL);
        }
    T_SUBMIT(d, .tag = T_TAG(SIGNALS, 0));
    t_submit_tags(d, 0, 20);
    t_collect(d, &log, 22);
    (void)T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), CRASHED);
    (void)T_OUTCOME(&log, T_TAG(SIGNALS, 0), SUCCESS);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 21);
    t_end(&d, &log);
}

/* C13: SIGCHLD and SIGPIPE are ignored. [T13] */
T_CASE(host_ignores_signals)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN }, old[2];

    T_EQ(sigaction(SIGCHLD, &ignore, &old[0]), 0);
    T_EQ(sigaction(SIGPIPE, &ignore, &old[1]), 0);
    odd_host();
    T_EQ(sigaction(SIGCHLD, &old[0], NULL), 0);
    T_EQ(sigaction(SIGPIPE, &old[1], NULL), 0);
}

T_CASE(host_blocks_signals)
{
    sigset_t all, old;

    (void)sigfillset(&all);
    T_EQ(pthread_sigmask(SIG_SETMASK, &all, &old), 0);
    odd_host();
    T_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
}

/* C13: every file of ours is close-on-exec; a worker has stdio and its own, none of another's.
 * [T12] */
T_CASE(files)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    unsigned before[1024] = { 0 };
    gpud_dispatcher *d;
    char first[4096];
    int fd, inherited = open("/dev/zero", O_RDONLY); /* the host's own, not close-on-exec */

    T_CMP(inherited, >=, 0);
    for (fd = 0; fd < 1024; fd++)
        before[fd] = fcntl(fd, F_GETFD) >= 0;
    d = T_BEGIN(NULL, process, .devices = "cpu:4");
    t_wait_ready(d, 4);
    for (fd = 0; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0 && !before[fd] && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            T_FAIL("file %d is not close-on-exec", fd);
    for (uint64_t n = 0; n < 4; n++)
        T_SUBMIT(d, .tag = T_TAG(LIST_FILES, n));
    t_collect(d, &log, 4);
    for (uint64_t n = 0; n < 4; n++) {
        unsigned pipes = 0, sockets = 0;

        e = T_OUTCOME(&log, T_TAG(LIST_FILES, n), SUCCESS);
        (void)snprintf(first, sizeof(first), "%s", (const char *)e->result);
        for (char *line = strtok(first, "\n"); line; line = strtok(NULL, "\n")) {
            pipes += strstr(line, "pipe:") != NULL;
            sockets += strstr(line, "socket:") != NULL;
            if (strstr(line, "pidfd") || strstr(line, "eventpoll") ||
                (strstr(line, "/dev/null") && atoi(line) > 2) ||
                /* one that is executed opens it for itself */
                (strstr(line, "/dev/zero") && !getenv("T_START_EXEC")))
                T_FAIL("a worker has %s", line);
        }
        /* tasks, events, and one pipe or two for stdout and stderr */
        T_CMP(pipes, <=, 4);
        T_CMP(sockets, <=, 1);
    }
    t_end(&d, &log);
    (void)close(inherited);
}

/* The thread that created the dispatcher ends; its workers do not. */
struct creation {
    gpud_dispatcher *d;
    pid_t thread;
};

static void *create_and_leave(void *arg)
{
    struct creation *c = arg;

    c->thread = gettid();
    c->d = T_CREATE(.devices = "cpu:2");
    return NULL;
}

static int thread_is_gone(void *user)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d",
                   (int)((struct creation *)user)->thread);
    return access(path, F_OK) != 0;
}

/* The same: the thread is gone before its workers are ready. [T11] */
T_CASE(creating_thread_ends)
{
    struct t_log log = { 0 };
    struct creation c;
    pthread_t thread;

    t_init(NULL, process, NULL);
    t_thread(&thread, create_and_leave, &c);
    t_join(thread);
    t_wait_until("the thread is gone", thread_is_gone, &c);
    t_wait_ready(c.d, 2);
    for (uint64_t n = 0; n < 20; n++)
        T_SUBMIT(c.d, .tag = n);
    t_collect(c.d, &log, 20);
    for (uint64_t n = 0; n < 20; n++)
        T_EQ(T_OUTCOME(&log, n, SUCCESS)->incarnation, 1);
    t_end(&c.d, &log);
}

/* Other threads fork and exec while workers die and are born; nothing is missed. */
static _Atomic int keep_forking = 1;

static void *fork_others(void *arg)
{
    static char *const command[] = { (char *)(uintptr_t)"true", NULL };

    (void)arg;
    while (atomic_load(&keep_forking)) {
        pid_t pid = fork();

        if (!pid) {
            (void)execvp(command[0], command);
            _exit(1);
        }
        if (pid > 0)
            (void)waitpid(pid, NULL, 0);
    }
    return NULL;
}

/* C8: forty deaths, each seen. [T12] */
T_CASE(other_threads_fork)
{
    enum { THREADS = 3, DEATHS = 40 };
    pthread_t threads[THREADS];
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    for (int i = 0; i < THREADS; i++)
        t_thread(&threads[i], fork_others, NULL);
    d = T_CREATE(.devices = "cpu:2", .backoff = T_MS(1), .backoff_cap = T_MS(5),
                 .failures_in_a_row = 1000);
    for (uint64_t n = 0; n < DEATHS; n++) {
        struct t_proc worker = t_worker(d, (unsigned)n % 2);

        t_wait_ready(d, 1);
        (void)kill(worker.pid, SIGKILL);
        T_SUBMIT(d, .tag = n);
        t_collect(d, &log, n + 1);
    }
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_collect_rest(d, &log);
    atomic_store(&keep_forking, 0);
    for (int i = 0; i < THREADS; i++)
        t_join(threads[i]);
    t_check_exactly_once(&log, DEATHS);
    t_end(&d, &log);
}
