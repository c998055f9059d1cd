/* SPDX-License-Identifier: MIT */
/* children.c - hosts that fork: children of their own at any time, forked hosts, daemons. */
#include "work.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- children at any time ---- */

enum { FORKERS = 4, HELD = 24 };

static _Atomic int stop_forking;

/* Starts children that stay: every other one by fork and exec, the others as bare copies of the
 * host, which hold all its files. The oldest makes room for the next. */
static void *fork_at_any_time(void *arg)
{
    static char *const command[] = { (char *)(uintptr_t)"sleep", (char *)(uintptr_t)"1000", NULL };
    pid_t held[HELD] = { 0 };

    (void)arg;
    for (unsigned n = 0; !atomic_load(&stop_forking); n++) {
        pid_t *place = &held[n % HELD];

        if (*place) {
            (void)kill(*place, SIGKILL);
            (void)waitpid(*place, NULL, 0);
        }
        *place = fork();
        if (!*place) {
            if (n % 2)
                (void)execvp(command[0], command);
            t_rest();
        }
    }
    for (int i = 0; i < HELD; i++)
        if (held[i] > 0) {
            (void)kill(held[i], SIGKILL);
            (void)waitpid(held[i], NULL, 0);
        }
    return NULL;
}

static void fork_and_work(int before_init)
{
    pthread_t threads[FORKERS];
    gpud_dispatcher *d;

    if (!before_init)
        h_init();
    for (int i = 0; i < FORKERS; i++)
        t_thread(&threads[i], fork_at_any_time, NULL);
    if (before_init)
        h_init();
    for (int round = 0; round < 2; round++) {
        d = T_CREATE(.definition = "square", .devices = "cpu:2");
        for (int n = 0; n < 3; n++)
            h_work(d); /* with a death each */
        t_destroy(&d, NULL);
    }
    T_OK(gpud_fini()); /* ends at once, though hundreds of copies hold the door */
    atomic_store(&stop_forking, 1);
    for (int i = 0; i < FORKERS; i++)
        t_join(threads[i]);
}

/* C8: deaths of workers are seen at once though copies of the host hold every file of ours. [T12]
 */
T_LONG_CASE(forks_at_any_time, 60)
{
    fork_and_work(0);
}

T_LONG_CASE(forks_before_init, 60)
{
    fork_and_work(1);
}

/* The host of the case below. */
T_PROGRAM(forking_host)
{
    pthread_t thread;
    gpud_dispatcher *d;

    (void)argc, (void)argv;
    T_EQ(setpgid(0, 0), 0);
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    for (int i = 0; i < FORKERS; i++)
        t_thread(&thread, fork_at_any_time, NULL);
    h_work(d);
    for (uint64_t i = 0; i < 2; i++)
        T_SUBMIT(d, .tag = H_TAG(H_GATE, i));
    t_word_wait(H_STARTED, 2);
    (void)t_word_add(H_READY);
    t_rest();
}

static int only_copies_are_left(void *user)
{
    const struct h_family *f = user;
    struct t_procs left = t_procs_with_env(f->mark);
    int ours = 0;

    for (size_t i = 0; i < left.count; i++)
        ours += !strncmp(left.list[i].comm, "gpud-", 5);
    t_procs_free(&left);
    return !ours;
}

/* C11: the death of such a host is seen too: nothing of ours is left, only its own copies and
 * sleepers. [T12] */
T_CASE(forking_host_dies)
{
    struct h_family f = h_family_start("forking_host", NULL);
    uint64_t died;

    t_word_wait(H_READY, 1);
    t_kill(f.host, SIGKILL);
    (void)h_family_reap(&f);
    died = t_now();
    t_wait_until("nothing of the library is left", only_copies_are_left, &f);
    T_CMP(t_now() - died, <, T_S(1));
    (void)kill(-f.host, SIGKILL); /* by the group: one in the middle of its exec shows no mark */
    h_family_gone(&f, 0);
}

/* ---- forked hosts ---- */

static int no_task(struct gpud_task_desc *task, size_t n, void *user)
{
    (void)n;
    (void)task, (void)user;
    return 0;
}

static void all_verbs_refuse(gpud_dispatcher *d)
{
    struct gpud_event event = GPUD_EVENT_INIT;
    struct gpud_stats stats = GPUD_STATS_INIT;
    struct gpud_slot_stats row = { .struct_size = sizeof(row) };
    void *room = NULL;

    T_CODE(gpud_dispatcher_submit(d, T_TASK(0), GPUD_NEVER, NULL, NULL), EFORKED);
    T_CODE(gpud_dispatcher_buffer_alloc(d, 10, &room), EFORKED);
    T_CODE(gpud_dispatcher_buffer_free(d, &room), EFORKED);
    T_CODE(gpud_dispatcher_poll(d, &event, 1, GPUD_NEVER), EFORKED);
    T_CODE(gpud_dispatcher_run(d, no_task, T_CALLBACKS(0), NULL, NULL), EFORKED);
    T_CODE(gpud_dispatcher_cancel(d, 1, GPUD_CANCEL_HARD), EFORKED);
    T_CODE(gpud_dispatcher_stop(d, GPUD_FINISH_NOW), EFORKED);
    T_CODE(gpud_dispatcher_close(d, GPUD_FINISH_NOW, 1), EFORKED);
    T_CODE(gpud_dispatcher_stats(d, &stats), EFORKED);
    T_CODE(gpud_dispatcher_slots(d, &row, 1), EFORKED);
}

static void create_refuses(void)
{
    gpud_dispatcher *other = NULL;

    T_CODE(gpud_dispatcher_create(&other, T_OPTIONS(.definition = "square"), NULL), EFORKED);
    T_CHECK(!other);
}

static bool is_pidfd(int fd)
{
    char path[32], to[32] = "";

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, to, sizeof to - 1) > 0 && strcmp(to, "anon_inode:[pidfd]") == 0;
}

/* A pidfd of a worker that the host was starting at the fork is not counted: the child has a copy
 * that nothing knows of, as the number was in a register of the host's thread.  It holds nothing
 * back. */
static unsigned files_of_ours(void)
{
    unsigned count = 0, pidfds = 0;

    for (int fd = 700; fd < 1200; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        if (is_pidfd(fd))
            pidfds++;
        else
            count++;
    }
    T_CMP(pidfds, <=, 1);
    return count;
}

/* Asks everything and becomes a host of its own beside the inherited dispatcher, which it destroys
 * at the end. */
static void second_host(void *inherited)
{
    gpud_dispatcher *d = inherited;

    all_verbs_refuse(d);
    create_refuses();
    h_host();
    all_verbs_refuse(d);
    T_OK(gpud_dispatcher_destroy(&d, NULL));
    T_EQ(files_of_ours(), 0);
}

struct forks {
    gpud_dispatcher *d;
    _Atomic int stop;
};

static void *fork_hosts(void *arg)
{
    struct forks *f = arg;

    while (!atomic_load(&f->stop))
        h_in_child(second_host, f->d);
    return NULL;
}

/* Children that call us, destroy ours and become hosts of their own, from four threads and while
 * the host works: it notices nothing. */
T_LONG_CASE(forked_hosts, 60)
{
    struct forks f = { .stop = 0 };
    pthread_t threads[4];

    /* gcc 12's AddressSanitizer does not free its allocator's locks in a child as malloc does;
     * ThreadSanitizer does not follow threads of a process forked from one with threads. */
    if (T_SANITIZED)
        t_skip("a sanitizer's allocator may be locked in a process forked from one with threads");
    h_init();
    f.d = T_CREATE(.definition = "cube", .devices = "cpu:2");
    t_wait_ready(f.d, 2); /* no descriptor is on its way any more, that a fork could copy unseen */
    for (int i = 0; i < 4; i++)
        t_thread(&threads[i], fork_hosts, &f);
    for (int round = 0; round < 10; round++)
        h_work(f.d);
    atomic_store(&f.stop, 1);
    for (int i = 0; i < 4; i++)
        t_join(threads[i]);
    T_EQ(t_stats(f.d).deaths, 10); /* those of the work, no others */
    t_end(&f.d, NULL);
}

/* ---- daemons ---- */

enum { DAEMON_ENDED = 1, PARENT_GONE };

/* What daemon(3) does, but the child waits until its parent is really gone. */
static void daemonise(void)
{
    pid_t parent = getpid(), pid = fork();

    T_CMP(pid, >=, 0);
    if (pid)
        _exit(0);
    (void)setsid();
    while (getppid() == parent)
        (void)poll(NULL, 0, 1);
    T_EQ(chdir("/"), 0);
    (void)close(0);
    T_EQ(open("/dev/null", O_RDWR), 0);
}

T_PROGRAM(early_daemon)
{
    (void)argc, (void)argv;
    daemonise();
    h_host_untouched();
    (void)t_word_add(DAEMON_ENDED);
    return 0;
}

/* A host that daemonises before gpud_init works as any other. */
T_CASE(daemonises_before_init)
{
    struct h_family f = h_family_start("early_daemon", NULL);

    T_EQ(h_family_reap(&f), 0);
    t_word_wait(DAEMON_ENDED, 1);
    h_family_gone(&f, 0);
}

static int workers_are_gone(void *user)
{
    struct t_proc p;

    for (int i = 0; i < 2; i++)
        if (!t_proc_read((pid_t)atomic_load(&t_page->numbers[i]), &p) && !t_proc_ended(&p))
            return 0;
    (void)user;
    return 1;
}

T_PROGRAM(late_daemon)
{
    gpud_dispatcher *d;

    (void)argc, (void)argv;
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    h_work(d);
    for (unsigned i = 0; i < 2; i++)
        atomic_store(&t_page->numbers[i], (uint64_t)t_worker(d, i).pid);
    for (uint64_t i = 0; i < 2; i++)
        T_SUBMIT(d, .tag = H_TAG(H_GATE, i));
    t_word_wait(H_STARTED, 2);
    daemonise();
    all_verbs_refuse(d);
    create_refuses();
    t_wait_until("the workers are gone", workers_are_gone, NULL);
    T_OK(gpud_dispatcher_destroy(&d, NULL));
    T_OK(gpud_fini());
    /* which does not follow threads of a process forked from one with threads */
    if (!T_THREAD_SANITIZED)
        h_host(); /* and now it is a host of its own */
    (void)t_word_add(DAEMON_ENDED);
    /* exit would have LeakSanitizer look for the library thread of the process it was forked
     * from */
    _exit(0);
}

/* One that daemonises after create is refused in the daemon, the workers end with the process that
 * made them, and the daemon may begin anew. */
T_CASE(daemonises_after_create)
{
    struct h_family f = h_family_start("late_daemon", NULL);

    T_EQ(h_family_reap(&f), 0);
    t_word_wait(DAEMON_ENDED, 1);
    h_family_gone(&f, 0);
}
