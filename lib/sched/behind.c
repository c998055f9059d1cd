/* SPDX-License-Identifier: MIT */
/*
 * behind.c - tasks that wait behind a long task.                                           [C5]
 *
 * Tasks are sent in FIFO order.  If a worker is stuck in a long task, its unclaimed tasks return to
 * their places in the queue, unless every worker is stuck.  If the queue is empty and a worker is
 * idle, it gets the task that was sent last to the worker with most tasks.
 *
 * In a pool they return in any case, and a stuck worker gets no task: the plan may have another
 * worker for these, or boot one.
 *
 * Every decision checks that, without a timer: the host decides each turn, and it wakes up to read
 * the cells.  Two times keep these checks cheap: before `stuck_at` and before `recall_at` no check
 * can find anything.
 */
#include "base/bits.h"
#include "sched/core.h"
#include "sched/place.h"

/* `stuck_at` is at most this far ahead: the mean may change. */
#define CHECK_NS (10 * GPI_MS)

/* ---- stuck workers ---- */

static void find_stuck(struct gpi_sched *c, struct gpi_sched_class *k)
{
    k->patience = gpi_place_stuck_at(k->set.batch_wait, k->mean_run);
    k->stuck_at = k->n_takes ? gpi_time_add(c->now, CHECK_NS) : GPI_NEVER;
    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct gpi_sched_slot *s = &c->slot[i];
        const uint64_t at = gpi_time_add(s->heard, k->patience);
        if (s->class != k || !s->takes || s->sent == 0)
            continue;
        if (s->stuck != (at <= c->now)) /* or no longer: the mean may grow, too */
            gpi_spread_stuck(c, s, !s->stuck);
        if (!s->stuck)
            k->stuck_at = gpi_time_min(k->stuck_at, at);
        k->unfreed |= s->stuck;
    }
}

/* HOLD leaves claimed tasks only.  So the order is not repeated until the worker has got another
 * task. */
static void free_stuck(struct gpi_sched *c, struct gpi_sched_class *k)
{
    for (uint32_t i = 0; i < c->n_slots; i++) {
        const struct gpi_sched_slot *s = &c->slot[i];
        if (s->class == k && s->takes && s->stuck && s->sent >= 2 && s->cells & ~s->claimed)
            gpi_ring_order(c, s, GPI_ACT_HOLD);
    }
    k->unfreed = false;
}

/* ---- idle workers ---- */

/* Returns the number of the task that was sent last and has no RECALL yet; 0 = none, or the worker
 * has claimed it. */
static uint64_t last_sent(const struct gpi_sched_slot *s, const struct gpi_sched *c)
{
    for (uint64_t n = s->number; n >= s->oldest && n; n--) {
        const uint32_t cell = s->order[n % GPI_SLOT_CELLS];
        if (gpi_slot_has_number(s, n) && c->task[s->task[cell]].wish == GPI_WISH_NO)
            return s->claimed >> cell & 1 ? 0 : n;
    }
    return 0;
}

/* Returns the time from which an idle worker may get a task of this worker; or GPI_NEVER. */
static uint64_t may_give_at(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    if (!s->takes || s->sent - s->recalls < 2 || !last_sent(s, c))
        return GPI_NEVER;
    return gpi_time_add(gpi_time_add(s->heard, s->class->set.batch_wait), GPI_PLACE_QUIET_NS);
}

/* Returns the largest number of tasks at a worker from which an idle worker may get one. */
static uint32_t most_tasks(struct gpi_sched *c, struct gpi_sched_class *k)
{
    uint32_t most = 0;

    k->recall_at = GPI_NEVER;
    for (uint32_t i = 0; i < c->n_slots; i++) {
        const struct gpi_sched_slot *s = &c->slot[i];
        const uint64_t at = s->class == k ? may_give_at(c, s) : GPI_NEVER;
        if (at > c->now)
            k->recall_at = gpi_time_min(k->recall_at, at);
        else if (s->sent > most)
            most = s->sent;
    }
    return most;
}

static void recall_last(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const uint64_t n = last_sent(s, c);

    gpi_tasks_recall(c, s->task[s->order[n % GPI_SLOT_CELLS]], GPI_WISH_RETURN);
    s->class->recall_at = 0; /* the worker may have more of them */
}

/* Takes one task back for each idle worker, of the workers with most tasks first. */
static void recall_for_idle(struct gpi_sched *c, struct gpi_sched_class *k)
{
    uint32_t idle = gpi_spread_idle(c, k);

    for (uint32_t n = idle ? most_tasks(c, k) : 0; n >= 2 && idle; n--)
        for (uint32_t i = 0; i < c->n_slots && idle; i++) {
            struct gpi_sched_slot *s = &c->slot[i];
            if (s->class != k || s->sent - s->recalls != n || may_give_at(c, s) > c->now)
                continue;
            recall_last(c, s);
            idle--;
        }
}

static void decide(struct gpi_sched *c, struct gpi_sched_class *k)
{
    if (k->queue.count == 0 && !c->plan) {
        if (k->recall_at <= c->now)
            recall_for_idle(c, k);
        return;
    }
    if (k->stuck_at <= c->now)
        find_stuck(c, k);
    if (k->unfreed && (c->plan || k->n_takes > k->n_stuck))
        free_stuck(c, k);
}

void gpi_behind_decide(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_classes && c->n_slots > 1; i++)
        decide(c, &c->class[i]);
}
