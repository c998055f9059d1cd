/* SPDX-License-Identifier: MIT */
/*
 * accidents_cpu.c - the accidents on a processor: a segmentation fault, an endless loop, abort.
 */
#include <signal.h>
#include <stdlib.h>

#include "accidents.h"

static int sum_squares(gpud_task *t)
{
    uint64_t sum = 0;
    for (uint64_t i = 1; i <= SQUARES; i++)
        sum += i * i;
    return gpud_task_result_set(t, &sum, sizeof sum);
}

static int write_nowhere(void)
{
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
    return 0;
}

/* Blocks SIGALRM, to be as unresponsive as a thread that waits for a kernel. */
_Noreturn static void loop(void)
{
    volatile uint64_t turns = 0;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;)
        turns++;
}

int accident_cpu(gpud_task *t, uint32_t which, char *text)
{
    (void)text;
    switch (which) {
    case ACCIDENT_ADDRESS:
        return write_nowhere();
    case ACCIDENT_ENDLESS:
        loop();
    case ACCIDENT_ASSERT:
        abort();
    default:
        return sum_squares(t);
    }
}
