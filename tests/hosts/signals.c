/* SPDX-License-Identifier: MIT */
/* signals.c - hosts that use signals and children in their own ways.               [C13] */
#include "work.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic int seen[65];

static void count(int number)
{
    atomic_fetch_add(&seen[number], 1);
}

/* A child of the host's own. */
static pid_t start_own(void)
{
    pid_t pid = fork();

    T_CMP(pid, >=, 0);
    if (!pid)
        _exit(3);
    return pid;
}

/* C13: a host with handlers, and an alarm of its own every 2 ms that ends each of its system calls:
 * SIGALRM comes to its handler only, the others never come. */
static void with_handlers(void *user)
{
    static const int numbers[] = { SIGCHLD, SIGPIPE, SIGCONT, SIGUSR1, SIGURG, SIGXFSZ, SIGBUS };
    const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action = { .sa_handler = count };

    (void)user;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        T_EQ(sigaction(numbers[i], &action, NULL), 0);
    T_EQ(sigaction(SIGALRM, &action, NULL), 0);
    T_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int round = 0; round < 3; round++)
        h_host_untouched();
    T_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    T_CMP(atomic_load(&seen[SIGALRM]), >, 0);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (numbers[i] != SIGCHLD || !T_THREAD_SANITIZED)
            T_EQ(atomic_load(&seen[numbers[i]]), 0);
}

T_CASE(own_handlers)
{
    h_in_child(with_handlers, NULL);
}

/* C13: a host that ignores whatever can be ignored, SIGCHLD and SIGPIPE among it. */
static void deaf(void *user)
{
    (void)user;
    for (int n = 1; n <= 64; n++)
        (void)signal(n, SIG_IGN);
    h_host_untouched();
}

/* All of them, and their dispositions are as they were afterwards. [T13] */
T_CASE(all_signals_ignored)
{
    h_in_child(deaf, NULL);
}

static void *wait_for_word(void *arg)
{
    t_word_wait(0, 1);
    return arg;
}

static void deaf_with_a_thread(void *user)
{
    pthread_t thread;

    t_thread(&thread, wait_for_word, NULL);
    deaf(user);
    t_word_set(0, 1);
    t_join(thread);
}

/* ... with a second thread, so that the spawner is an ordinary child, whose end the kernel
 * swallows. */
T_CASE(all_signals_ignored_with_a_thread)
{
    h_in_child(deaf_with_a_thread, NULL);
}

/* C13: SA_NOCLDWAIT makes children vanish unwaited. */
static void without_zombies(void *user)
{
    struct sigaction action = { .sa_handler = count, .sa_flags = SA_NOCLDWAIT | SA_NOCLDSTOP };

    (void)user;
    T_EQ(sigaction(SIGCHLD, &action, NULL), 0);
    h_host_untouched();
}

T_CASE(no_child_wait)
{
    h_in_child(without_zombies, NULL);
}

T_CASE(all_signals_blocked)
{
    sigset_t all, old;

    (void)sigfillset(&all);
    T_EQ(pthread_sigmask(SIG_SETMASK, &all, &old), 0);
    h_host();
    T_EQ(sigpending(&all), 0);
    for (int n = 1; n <= 64; n++)
        if (sigismember(&all, n) == 1 && !(n == SIGCHLD && T_THREAD_SANITIZED))
            T_FAIL("signal %d is pending", n);
    T_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
}

/* ---- our threads take none of them ---- */

static int square_source(struct gpud_task_desc *task, size_t n, void *user)
{
    uint64_t *next = user;

    (void)n;
    if (*next == 200)
        return 0;
    /* the feeder's thread: this signal ends the process unless all threads block it */
    if (*next == 100) {
        t_kill(getpid(), SIGUSR1);
        t_kill(getpid(), SIGALRM);
    }
    task->tag = H_TAG(H_SQUARE, *next);
    task->data = next;
    task->size = sizeof(*next);
    (*next)++;
    return 1;
}

static int count_success(const struct gpud_event *e, void *user)
{
    T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
    (void)user;
    return 0;
}

/* C13: the library's threads, made while the host blocks nothing, take no signal of the process:
 * what the host blocks later in its one thread stays pending, though its action is to end the
 * process. */
T_CASE(our_threads_take_no_signal)
{
    uint64_t next = 0;
    gpud_dispatcher *d;
    sigset_t set, old;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGALRM);
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    t_wait_ready(d, 2);
    T_EQ(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
    t_kill(getpid(), SIGUSR1);
    h_work(d);
    T_EQ(sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }), SIGUSR1);
    T_OK(gpud_dispatcher_run(d, square_source, T_CALLBACKS(.on_success = count_success), &next,
                             NULL));
    T_EQ(next, 200);
    T_EQ(sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }), SIGUSR1);
    T_EQ(sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }), SIGALRM);
    T_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    t_end(&d, NULL);
}

/* C13: the signalfd of a host tells of its own child and of none of ours. */
T_CASE(signalfd_of_children)
{
    struct signalfd_siginfo info;
    struct pollfd p = { .events = POLLIN };
    gpud_dispatcher *d;
    sigset_t set, old;
    pid_t own;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    T_EQ(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
    p.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    T_CMP(p.fd, >=, 0);
    h_init();
    d = T_CREATE(.definition = "cube", .devices = "cpu:2");
    h_work(d);
    T_EQ(poll(&p, 1, 0), 0);
    own = start_own();
    T_EQ(poll(&p, 1, 20000), 1);
    T_EQ(read(p.fd, &info, sizeof(info)), sizeof(info));
    T_EQ(info.ssi_pid, own);
    T_EQ(waitpid(own, NULL, 0), own);
    h_work(d);
    t_end(&d, NULL);
    T_EQ(poll(&p, 1, 0), T_THREAD_SANITIZED);
    (void)close(p.fd);
    if (T_THREAD_SANITIZED)
        (void)sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 });
    T_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
}

/* ---- hosts that wait for everybody ---- */

static _Atomic int stop_reaping;
static _Atomic uint32_t reaped;
static _Atomic pid_t last_reaped;

/* What a supervisor does: waits for any child, for ever. */
static void *reap_all(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop_reaping)) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);

        if (pid > 0) {
            atomic_fetch_add(&reaped, 1);
            atomic_store(&last_reaped, pid);
        } else {
            (void)poll(NULL, 0, 1);
        }
    }
    return NULL;
}

static int own_was_reaped(void *user)
{
    return atomic_load(&last_reaped) == *(pid_t *)user;
}

static void with_reaper(int before_init)
{
    gpud_dispatcher *d;
    pthread_t thread;
    pid_t own;

    atomic_store(&stop_reaping, 0);
    atomic_store(&reaped, 0);
    if (before_init)
        t_thread(&thread, reap_all, NULL);
    h_init();
    if (!before_init)
        t_thread(&thread, reap_all, NULL);
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    for (uint32_t round = 1; round <= 5; round++) {
        h_work(d);
        own = start_own();
        t_wait_until("the reaper has met the host's child", own_was_reaped, &own);
        T_EQ(atomic_load(&reaped), round);
    }
    /* with the reaper there: it may have taken the spawner, if that was an ordinary child */
    t_end(&d, NULL);
    atomic_store(&stop_reaping, 1);
    t_join(thread);
    if (!before_init && !T_THREAD_SANITIZED)
        T_EQ(atomic_load(&reaped), 5);
    T_CMP(atomic_load(&reaped), <=, 6);
}

/* C13: a waitpid(-1) loop in a thread that began after gpud_init meets none of ours. [T13] */
T_CASE(reaper_thread)
{
    with_reaper(0);
}

/* ... and one from before may take the spawner's end: gpud_fini returns all the same. */
T_CASE(reaper_thread_before_init)
{
    for (int round = 0; round < 5; round++)
        with_reaper(1);
}

/* C13: while (wait(NULL) > 0) ends with the host's own children. */
T_CASE(wait_for_all)
{
    gpud_dispatcher *d;
    int own = 0;
    pid_t pid;

    if (T_THREAD_SANITIZED)
        t_skip("under ThreadSanitizer the spawner is an ordinary child, which this loop would wait "
               "for");
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2");
    for (int round = 0; round < 3; round++) {
        for (int n = 0; n < 3; n++)
            (void)start_own();
        h_work(d);
        while ((pid = wait(NULL)) > 0)
            own++;
        T_EQ(errno, ECHILD);
        T_EQ(own, 3 * (round + 1));
    }
    t_end(&d, NULL);
}
