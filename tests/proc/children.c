/* SPDX-License-Identifier: MIT */
/* children.c - children that user code forks in a worker: whoever forked them can end them as
 * anywhere else. */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FORKS = 100 };
enum verb { END_BY, END_BY_FROM_A_THREAD, OWN_HANDLER, FORK_AND_SLEEP };
#define TAG(verb, signo) ((uint64_t)(verb) << 32 | (uint64_t)(signo))

/* What is ended at once, maybe before its first instruction, and what ended it; -1: it could not be
 * forked. */
static int ended_by(int signo)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        for (;;)
            (void)pause();
    if (child < 0 || kill(child, signo))
        return -1;
    while (waitpid(child, &status, 0) != child)
        if (errno != EINTR) /* a limit may pass meanwhile */
            return -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static bool same(const sigset_t *a, const sigset_t *b)
{
    for (int signo = 1; signo <= SIGRTMAX; signo++)
        if (sigismember(a, signo) != sigismember(b, signo))
            return false;
    return true;
}

static int all_end(int signo)
{
    sigset_t before, after;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    for (int i = 0; i < FORKS; i++)
        if (ended_by(signo) != signo)
            return 1;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    return same(&before, &after) ? 0 : 2;
}

static void *thread(void *arg)
{
    int *signo = arg;

    *signo = all_end(*signo);
    return NULL;
}

static volatile sig_atomic_t seen;

static void on_signal(int signo)
{
    seen = signo;
}

/* A handler of the user's is inherited, as always. */
static int keeps_handler(int signo)
{
    struct sigaction sa = { .sa_handler = on_signal };
    pid_t child;
    int status;

    if (sigaction(signo, &sa, NULL) || (child = fork()) < 0)
        return 1;
    if (child == 0) {
        (void)raise(signo);
        _exit(seen == signo ? 7 : 8);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0
                                                                                                : 2;
}

static int process(gpud_task *t, void *state)
{
    const struct timespec long_nap = { .tv_sec = 100 };
    uint64_t tag = gpud_task_tag(t);
    int signo = (int)(tag & 0xffffffffU);
    pthread_t id;

    (void)state;
    switch ((enum verb)(tag >> 32)) {
    case END_BY:
        return all_end(signo);
    case END_BY_FROM_A_THREAD:
        if (pthread_create(&id, NULL, thread, &signo) || pthread_join(id, NULL))
            return 9;
        return signo;
    case OWN_HANDLER:
        return keeps_handler(signo);
    case FORK_AND_SLEEP:
        if (ended_by(SIGTERM) != SIGTERM)
            return 1;
        if (nanosleep(&long_nap, NULL) < 0 && errno == EINTR && gpud_task_expired(t))
            return gpud_task_result_set(t, "woken", 5);
        return 2;
    }
    return 8;
}

/* A worker survives these signals, a child of it does not: it has the default actions from its
 * birth on. */
T_CASE(ended_by_signals)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGALRM };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    for (uint64_t i = 0; i < 4; i++)
        T_SUBMIT(d, .tag = TAG(END_BY, signals[i]));
    T_SUBMIT(d, .tag = TAG(END_BY_FROM_A_THREAD, SIGTERM));
    T_SUBMIT(d, .tag = TAG(OWN_HANDLER, SIGHUP));
    t_collect(d, &log, 6);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 6);
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}

/* C6: a worker that has forked keeps its own handlers: the soft limit ends a blocking call. */
T_CASE(limit_after_a_fork)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .grace = GPUD_NEVER);

    e = T_RUN(d, &log, TIMEOUT, .tag = TAG(FORK_AND_SLEEP, 0), .limit = T_MS(200));
    T_EQ(e->phase, GPUD_PHASE_PROCESS);
    T_EQ(e->result_size, 5);
    t_end(&d, &log);
}
