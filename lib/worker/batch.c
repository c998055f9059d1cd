/* SPDX-License-Identifier: MIT */
/*
 * batch.c - several tasks in one call of process_batch.  The worker claims the members when it
 * forms the batch, not while it waits for more.  Until then the host can recall or cancel each of
 * them, and each can expire.
 */
#include "base/clock.h"
#include "worker/worker.h"

/* Returns how many numbers are there to claim; the host may have taken some of the tasks back. */
static uint64_t there(const gpud_worker *w)
{
    uint64_t last = atomic_load_explicit(&w->plan.page->sent_number, memory_order_acquire);

    return last >= w->next ? last - w->next + 1 : 0;
}

static uint8_t order_of(const gpud_worker *w, uint64_t number)
{
    return atomic_load_explicit(&w->plan.page->order[number % GPI_CELLS], memory_order_relaxed);
}

/* Returns whether one of the next n tasks must run alone, or is the last one that this worker gets:
 * then the worker waits for no more. */
static bool one_is_last(const gpud_worker *w, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (order_of(w, w->next + i) & (GPI_ALONE | GPI_LAST))
            return true;
    return false;
}

/* Waits for a full batch, at most batch_wait; returns false when END has arrived. */
static bool gather(gpud_worker *w)
{
    const struct gpi_page *p = w->plan.page;
    uint64_t until = p->batch_wait ? gpi_time_add(gpi_now(), p->batch_wait) : 0, n;
    bool go_on = true;

    while (go_on && (n = there(w)) < p->max_batch && until > gpi_now() && !one_is_last(w, n)) {
        if (w->untold)
            gpi_worker_flush(w);
        go_on = gpi_worker_await(w, w->next + n, until);
    }
    return go_on;
}

/* Returns whether it is too late to start the task.  Such a task is no member of a call that may
 * yet crash or exceed a limit. */
static bool too_late(const struct gpi_cell *c, uint64_t started)
{
    return c->expires_at && started >= c->expires_at;
}

/* Claims up to a batch of the next n tasks; returns how many run.  The worker writes ends in the
 * order of sending: it refuses a task that is too late if that is the first one, else the batch
 * ends there. */
static uint32_t claim(gpud_worker *w, uint64_t n, uint64_t started, gpud_task **ret)
{
    struct gpi_page *p = w->plan.page;

    for (w->members = 0; n > 0 && w->members < p->max_batch && w->members < GPI_CELLS; n--) {
        uint8_t order = order_of(w, w->next);
        struct gpi_cell *c = &p->cell[order % GPI_CELLS];
        struct gpud_task *t = &w->task[w->members];
        if (w->members > 0 && (order & GPI_ALONE || too_late(c, started)))
            break;
        if (!gpi_cell_take(c, w->next++, GPI_CLAIMED))
            continue;
        if (too_late(c, started)) {
            gpi_worker_refuse(w, c, w->next - 1, started);
            continue;
        }
        gpi_worker_task_init(t, w, order % GPI_CELLS, w->next - 1);
        ret[w->members++] = t;
        if (order & GPI_ALONE)
            break;
    }
    return w->members;
}

/* The limit of the call is the earliest of its members', and so is its stall limit. */
static void begin(gpud_worker *w, uint64_t started, gpud_task *const *member, uint32_t n)
{
    uint64_t cells = 0, limit = GPI_NEVER;

    w->limit.stall = GPI_NEVER;
    for (uint32_t i = 0; i < n; i++) {
        cells |= 1ull << member[i]->index;
        limit = gpi_time_min(limit, member[i]->cell->limit);
        w->limit.stall = gpi_time_min(w->limit.stall, member[i]->stall_limit);
    }
    gpi_limit_begin(&w->limit, cells, started, limit, w->last_run > GPI_EXACT_RUN_NS);
    for (uint32_t i = 0; i < n; i++) {
        atomic_store_explicit(&member[i]->cell->stopped_before, w->limit.stopped_before,
                              memory_order_relaxed);
        atomic_store_explicit(&member[i]->cell->started_at, started, memory_order_release);
        member[i]->flags = (uint16_t)(n << GPI_CELL_BATCH | (i ? 0 : GPI_CELL_FIRST));
    }
}

/* In the order of sending, in which the host collects the tasks. */
static void end(gpud_worker *w, int code, uint64_t started, uint64_t ended)
{
    uint64_t deadline = atomic_load_explicit(&w->limit.deadline, memory_order_relaxed);

    for (uint32_t i = 0; i < w->members; i++) {
        struct gpud_task *t = &w->task[i];
        gpi_worker_write_end(w, t, code, ended, gpi_time_add(started, t->cell->limit) != deadline);
    }
}

static void run_batch(gpud_worker *w)
{
    gpud_task *member[GPI_CELLS];
    /* in this order: no task starts before it was sent */
    uint64_t waiting = there(w), started = gpi_worker_before(w, gpi_now()), ended;
    uint32_t n;
    bool sick = false;
    int code = 0;

    n = claim(w, waiting, started, member);
    if (n) {
        gpi_worker_note_claim(w);
        begin(w, started, member, n);
        gpi_worker_note_start(w);
        code = w->plan.definition->process_batch(member, n, w->state);
        gpi_worker_leave_if_forked(w);
        sick = w->cuda && gpi_worker_look(w, code);
    }
    ended = gpi_now();
    if (n) {
        end(w, code, started, ended);
        gpi_limit_end(&w->limit);
        gpi_worker_note_end(w, ended);
    }
    w->last_run = n ? ended - started : 0;
    if (sick)
        gpi_worker_leave_sick(w);
}

void gpi_worker_serve_batches(gpud_worker *w)
{
    bool go_on = true;

    (void)gpi_worker_linger(w, GPI_AFTER_SETUP_NS);
    while (go_on) {
        uint64_t first = w->next;
        while (there(w)) {
            go_on = gather(w) && go_on;
            run_batch(w);
        }
        if (w->untold)
            gpi_worker_flush(w);
        if (w->next - first < GPI_BATCH_TASKS || !gpi_worker_linger(w, GPI_LINGER_NS))
            go_on = go_on && gpi_worker_await(w, w->next, GPI_NEVER);
    }
    while (there(w))
        run_batch(w);
    if (w->untold)
        gpi_worker_flush(w);
}
