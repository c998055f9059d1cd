/* SPDX-License-Identifier: MIT */
/*
 * entry.c - Dispatcher: the first and the last step of each call, and the times of calls that wait.
 */
#include "entry.h"

#include <time.h>

gpud_dispatcher *core_enter(struct core_dispatcher *self)
{
    gpud_dispatcher *d;

    atomic_fetch_add(&self->users, 1);
    d = self->d;
    if (d)
        return d;
    atomic_fetch_sub(&self->users, 1);
    core_raise(state_of(self), GPUD_ECLOSED, NULL);
    return NULL;
}

void core_leave(struct core_dispatcher *self)
{
    atomic_fetch_sub(&self->users, 1);
}

PyObject *core_answer(struct core_dispatcher *self, int r, const struct gpud_error *why)
{
    if (r < 0)
        return core_raise(state_of(self), r, why);
    Py_RETURN_NONE;
}

uint64_t core_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t core_until(uint64_t timeout)
{
    return timeout == GPUD_NEVER ? GPUD_NEVER : core_now() + timeout;
}

uint64_t core_left(uint64_t until)
{
    uint64_t now;

    if (until == GPUD_NEVER)
        return until;
    now = core_now();
    return now < until ? until - now : 0;
}
