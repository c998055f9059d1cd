/* SPDX-License-Identifier: MIT */
/*
 * ahead.c - the work that a worker does early.  It polls for more tasks for a moment before it
 * sleeps, and it prefetches the memory of the next tasks before it reaches them.
 */
#include <sched.h>

#include "base/clock.h"
#include "worker/worker.h"

/* A cache line that the host has written takes 100 to 200 ns to arrive; prefetched this many tasks
 * ahead, it is here in time. */
#define CELLS_AHEAD 6u
#define DATA_AHEAD 3u

/* Returns whether the host runs on another CPU, where it may be about to send.  On this CPU it can
 * run only when the worker lets it. */
static bool host_is_elsewhere(const struct gpi_page *p)
{
    int cpu = sched_getcpu();

    return cpu >= 0 && atomic_load_explicit(&p->host_cpu, memory_order_relaxed) != (uint32_t)cpu;
}

bool gpi_worker_linger(const gpud_worker *w, uint64_t ns)
{
    const struct gpi_page *p = w->plan.page;
    uint64_t until = gpi_time_add(gpi_now(), ns);

    do {
        (void)sched_yield();
        if (atomic_load_explicit(&p->sent_number, memory_order_relaxed) >= w->next)
            return true;
    } while (host_is_elsewhere(p) && gpi_now() < until);
    return false;
}

/* Prefetches for writing: both lines of a cell, and the data's block once the task has ended, are
 * written before they go back. */
static void ask_for(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

static struct gpi_cell *cell_of(const gpud_worker *w, uint64_t number)
{
    struct gpi_page *p = w->plan.page;

    return &p->cell[atomic_load_explicit(&p->order[number % GPI_CELLS], memory_order_relaxed) %
                    GPI_CELLS];
}

void gpi_worker_ask_ahead(const gpud_worker *w, uint64_t last)
{
    if (w->next + CELLS_AHEAD <= last) {
        const struct gpi_cell *c = cell_of(w, w->next + CELLS_AHEAD);
        ask_for(&c->claim);
        ask_for(&c->end);
    }
    if (w->next + DATA_AHEAD <= last) {
        /* only an address: the worker has not claimed this task, and the host may have taken it
         * back */
        const struct gpi_cell *c = cell_of(w, w->next + DATA_AHEAD);
        ask_for(w->plan.input + atomic_load_explicit(&c->data_off, memory_order_relaxed));
    }
}
