/* SPDX-License-Identifier: MIT */
/* interrupts.c - SIGINT and SIGTERM, between two waits. */
#include "queue/client/interrupts.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static volatile sig_atomic_t interrupted;
static sigset_t outside; /* the mask while gpq_poll waits */
static bool caught;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

bool gpq_interrupted(void)
{
    return interrupted != 0;
}

void gpq_interrupts_catch(void)
{
    static const int numbers[] = { SIGINT, SIGTERM };
    struct sigaction action = { .sa_handler = interrupt }, before;
    sigset_t ours;
    if (caught)
        return;
    sigemptyset(&action.sa_mask);
    sigemptyset(&ours);
    for (int i = 0; i < 2; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            sigaction(numbers[i], &action, NULL);
            sigaddset(&ours, numbers[i]);
        }
    sigprocmask(SIG_BLOCK, &ours, &outside);
    sigdelset(&outside, SIGINT);
    sigdelset(&outside, SIGTERM);
    caught = true;
}

int gpq_poll(struct pollfd *p, unsigned n, int ms)
{
    const struct timespec t = { ms / 1000, ms % 1000 * 1000000L };
    return ppoll(p, n, ms < 0 ? NULL : &t, caught ? &outside : NULL);
}

void gpq_interrupts_release(void)
{
    if (caught)
        sigprocmask(SIG_SETMASK, &outside, NULL);
}
