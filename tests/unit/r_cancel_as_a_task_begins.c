/* SPDX-License-Identifier: MIT */
/*
 * r_cancel_as_a_task_begins.c - a task is cancelled between its claim and its first instruction: the
 * alarm that came too early for a blocking call comes again, whatever instruction of gpi_limit_begin
 * it met.                                                                                [C6]
 */
#include "harness.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "step.h"
#include "worker/limit.h"

static struct gpi_page page;
static struct gpi_limit l;

struct words {
    _Atomic uint32_t begun;
    _Atomic uint64_t left; /* ns until the timer fires, 0 = never */
    uint64_t limit;
    int exact, armed;
};

static void begin_at_a_mark(void *arg)
{
    struct words *w = arg;
    struct itimerspec t;

    if (gpi_limit_init(&l, &page))
        _exit(1);
    gpi_limit_begin(&l, 1, gpi_now(), w->armed ? 10 * GPI_S : GPI_NEVER, false);
    gpi_limit_end(&l);
    atomic_store(&page.cancel, 2); /* the task that is about to begin */
    t_step_mark();
    gpi_limit_begin(&l, 2, gpi_now(), w->limit, w->exact);
    atomic_store(&w->begun, 1);
    (void)timer_gettime(l.alarm.timer, &t);
    atomic_store(&w->left, (uint64_t)t.it_value.tv_sec * GPI_S + (uint64_t)t.it_value.tv_nsec);
}

/* As in limit.c. */
static int cancel_at(struct words *w, unsigned k)
{
    pid_t pid = t_step_start(begin_at_a_mark, w);
    int status;

    for (unsigned i = 0; i < k && !atomic_load(&w->begun); i++)
        if (t_step(pid, T_PATIENCE) != 1)
            T_FAIL("the process stands still at instruction %u", i);
    if (atomic_load(&w->begun)) {
        (void)kill(pid, SIGKILL);
        T_EQ(waitpid(pid, &status, 0), pid);
        return 0;
    }
    t_step_go(pid, SIGALRM);
    T_EQ(t_step_wait(pid, &status, T_PATIENCE), 0);
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 1;
}

static void cancel_everywhere(uint64_t limit, int exact, int armed)
{
    struct words *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    T_CHECK(w != MAP_FAILED);
    *w = (struct words){ .limit = limit, .exact = exact, .armed = armed };
    for (unsigned k = 0; cancel_at(w, k); k += T_STRIDE) {
        uint64_t left = atomic_load(&w->left);

        if (left == 0 || left > GPI_S)
            T_FAIL("cancelled at instruction %u of begin (%s, timer %s): the next alarm comes after %.3f s (0: never)", k,
                   exact ? "exact" : "lazy", armed ? "armed" : "not armed", (double)left / 1e9);
        atomic_store(&w->begun, 0);
    }
    (void)munmap(w, sizeof(*w));
}

T_LONG_CASE(task_with_a_far_limit, 120)
{
    for (int exact = 0; exact < 2; exact++)
        for (int armed = 0; armed < 2; armed++)
            cancel_everywhere(20 * GPI_S, exact, armed);
}

T_LONG_CASE(task_without_a_limit, 120)
{
    for (int exact = 0; exact < 2; exact++)
        for (int armed = 0; armed < 2; armed++)
            cancel_everywhere(GPI_NEVER, exact, armed);
}
