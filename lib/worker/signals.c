/* SPDX-License-Identifier: MIT */
#include "worker/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "base/refused.h"

/* Static, since handlers of pthread_atfork get no argument: the handlers to undo, and the mask of
 * the thread that forks. */
static struct {
    int signo;
    void (*handler)(int);
} ours[8];
static size_t n_ours;
static _Thread_local sigset_t mask;

void gpi_signals_handle(int signo, void (*handler)(int), int flags)
{
    struct sigaction sa;
    size_t i = 0;

    memset(&sa, 0, sizeof sa);
    sa.sa_handler = handler;
    sa.sa_flags = flags;
    while (i < n_ours && ours[i].signo != signo)
        i++;
    if (i == sizeof ours / sizeof ours[0] || sigaction(signo, &sa, NULL))
        return;
    ours[i].signo = signo;
    ours[i].handler = handler;
    n_ours += i == n_ours;
}

static void before_fork(void)
{
    sigset_t all;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &mask);
}

static void in_parent(void)
{
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void in_child(void)
{
    const struct sigaction dfl = { .sa_handler = SIG_DFL };
    struct sigaction now;

    for (size_t i = 0; i < n_ours; i++)
        if (sigaction(ours[i].signo, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
            now.sa_handler == ours[i].handler)
            (void)sigaction(ours[i].signo, &dfl, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void ignore(int signo)
{
    (void)signo; /* a handler and not SIG_IGN, which programs would inherit */
}

int gpi_signals_init(void)
{
    int err = pthread_atfork(before_fork, in_parent, in_child);

    if (err) {
        errno = err;
        return gpi_refused(GPI_SYS_PTHREAD_ATFORK);
    }
    gpi_signals_handle(SIGINT, ignore, SA_RESTART);
    gpi_signals_handle(SIGTERM, ignore, SA_RESTART);
    gpi_signals_handle(SIGHUP, ignore, SA_RESTART);
    return 0;
}
