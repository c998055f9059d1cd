/* SPDX-License-Identifier: MIT */
/*
 * limit_steps.c - a task begins, and an alarm comes at each instruction of that: the timer of the
 * task before, or a cancel.  Afterwards the timer must be set as if it had come before or after.
 *
 * The timer of this program never fires; it tells what was asked of it.               [C6] [C7]
 */
#include "harness.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "step.h"
#include "worker/limit.h"

static struct gpi_page page;
static struct gpi_limit l;
static _Atomic uint64_t set_to; /* house time, 0 = off */

int timer_settime(timer_t timer, int flags, const struct itimerspec *to, struct itimerspec *old)
{
    (void)timer, (void)flags, (void)old;
    atomic_store(&set_to, (uint64_t)to->it_value.tv_sec * GPI_S + (uint64_t)to->it_value.tv_nsec);
    return 0;
}

struct scene {
    uint64_t limit;        /* of the task that begins */
    bool exact;
    bool armed;            /* the timer still stands where the task before had set it */
    bool cancelled;        /* the alarm is the one of a cancel */
    _Atomic uint32_t over; /* begin has returned */
    _Atomic uint64_t began, ended, set_to, armed_to;
};

static void begin_at_a_mark(void *arg)
{
    struct scene *s = arg;
    uint64_t now = gpi_now();

    if (gpi_limit_init(&l, &page))
        _exit(1);
    gpi_limit_begin(&l, 1, now, s->armed ? 10 * GPI_S : GPI_NEVER, false);
    gpi_limit_end(&l);
    atomic_store(&set_to, 0); /* the alarm that comes stands for its firing */
    if (s->cancelled)
        atomic_store(&page.cancel, 2);
    atomic_store(&s->began, now);
    t_step_mark();
    gpi_limit_begin(&l, 2, now, s->limit, s->exact);
    atomic_store(&s->over, 1);
    atomic_store(&s->ended, gpi_now());
    atomic_store(&s->set_to, atomic_load(&set_to));
    atomic_store(&s->armed_to, atomic_load(&l.armed));
}

/* Runs begin up to its k-th instruction, sends the alarm, lets it end.  0 once k is past its end.
 */
static int alarm_at(struct scene *s, unsigned k)
{
    pid_t pid;
    int status;

    atomic_store(&s->over, 0);
    pid = t_step_start(begin_at_a_mark, s);
    for (unsigned i = 0; i < k && !atomic_load(&s->over); i++)
        if (t_step(pid, T_PATIENCE) != 1)
            T_FAIL("the process stands still at instruction %u", i);
    if (atomic_load(&s->over)) {
        (void)kill(pid, SIGKILL);
        T_EQ(waitpid(pid, &status, 0), pid);
        return 0;
    }
    t_step_go(pid, SIGALRM);
    T_EQ(t_step_wait(pid, &status, T_PATIENCE), 0);
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 1;
}

/* Seconds from the begin of the task, for messages. */
static double after(const struct scene *s, uint64_t time)
{
    return time ? ((double)time - (double)atomic_load(&s->began)) / 1e9 : -1;
}

/* Wherever the last alarm came, the next is at the deadline at the latest, soon when the task is
 * cancelled; and no later than the word says by which later tasks judge whether to move the timer.
 */
static void expect_another(struct scene given)
{
    struct scene *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned k = 0;

    T_CHECK(s != MAP_FAILED);
    *s = given;
    for (; alarm_at(s, k); k += t_stride()) {
        uint64_t at = atomic_load(&s->set_to), word = atomic_load(&s->armed_to);
        uint64_t latest = s->cancelled ? atomic_load(&s->ended) + 200 * GPI_MS
                                       : atomic_load(&s->began) + s->limit;

        if (at == 0 || at > latest || at > word)
            T_FAIL("%s at instruction %u of begin (%s, %s): the timer is set to %+.6f s, the word "
                   "to %+.6f s (-1: not)",
                   s->cancelled ? "cancelled" : "an old alarm", k, s->exact ? "exact" : "lazy",
                   s->armed ? "armed before" : "not armed before", after(s, at), after(s, word));
    }
    T_CMP(k, >, 20);
    printf("%s, %s, %s: at every %u. of %u instructions\n",
           s->cancelled ? "cancelled" : "an old alarm", s->exact ? "exact" : "lazy",
           s->armed ? "armed before" : "not armed before", t_stride(), k);
    (void)munmap(s, sizeof(*s));
}

/* A7: the deadline is stored before the armed time is read: whenever the old alarm comes, the timer
 * is set to the new deadline afterwards. */
T_LONG_CASE(alarm_between_any_two_instructions, 120)
{
    for (int exact = 0; exact < 2; exact++)
        expect_another((struct scene){ .limit = 20 * GPI_S, .exact = exact, .armed = true });
}

/* A task that is cancelled as it begins is interrupted soon, and again: it may be about to block.
 */
T_LONG_CASE(cancel_between_any_two_instructions, 120)
{
    for (int exact = 0; exact < 2; exact++)
        for (int armed = 0; armed < 2; armed++)
            expect_another((struct scene){
                .limit = 20 * GPI_S, .exact = exact, .armed = armed, .cancelled = true });
}

T_LONG_CASE(cancel_of_a_task_without_limit, 120)
{
    for (int exact = 0; exact < 2; exact++)
        for (int armed = 0; armed < 2; armed++)
            expect_another((struct scene){
                .limit = GPI_NEVER, .exact = exact, .armed = armed, .cancelled = true });
}
