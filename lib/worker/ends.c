/* SPDX-License-Identifier: MIT */
/* ends.c - the end of a task, reports to the host, and the end of the process. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/refused.h"
#include "wire/frame.h"
#include "worker/worker.h"

/* ---- the process ---- */

_Noreturn void gpi_worker_leave(int status)
{
    (void)fflush(stdout);
    (void)fflush(stderr);
    _exit(status);
}

_Noreturn void gpi_worker_give_up(gpud_worker *w, int status, const char *why)
{
    struct gpi_page *p = w->plan.page;

    snprintf(p->leave_text, sizeof p->leave_text, "%s", why);
    _exit(status);
}

_Noreturn void gpi_worker_give_up_refused(gpud_worker *w, int status, enum gpi_sys call)
{
    char why[GPI_REFUSAL_SIZE];

    gpi_worker_give_up(w, status, gpi_refusal_text(why, call, errno));
}

/* ---- reports ---- */

void gpi_worker_tell(gpud_worker *w, uint32_t news)
{
    struct gpi_frame f = { .magic = GPI_LOOK_MAGIC,
                           .incarnation = w->plan.incarnation,
                           .what = news };
    ssize_t r;

    do
        r = write(w->plan.looks, &f, sizeof f);
    while (r < 0 && errno == EINTR);
    if (r != (ssize_t)sizeof f)
        /* or the host is gone, as the keeper will notice */
        gpi_worker_give_up_refused(w, 72, GPI_SYS_WRITE);
}

void gpi_worker_flush(gpud_worker *w)
{
    w->untold = false;
    if (gpi_page_must_ring(&w->plan.page->host_sleeps))
        gpi_worker_tell(w, GPI_NEWS_ENDED);
}

/* ---- one task ---- */

void gpi_worker_block_alarm(bool block)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    (void)sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void gpi_worker_task_init(struct gpud_task *t, gpud_worker *w, uint32_t index, uint64_t number)
{
    struct gpi_cell *c = &w->plan.page->cell[index];

    t->worker = w;
    t->cell = c;
    t->extra = &w->plan.page->extra[index];
    t->data = w->plan.input + atomic_load_explicit(&c->data_off, memory_order_relaxed);
    t->size = c->data_size;
    t->number = number;
    t->result_place = GPI_PLACE_NONE;
    t->result_size = 0;
    t->index = index;
    t->fail_code = 0;
    t->flags = 0;
    t->stall_limit = c->stalls ? t->extra->stall_limit : GPI_NEVER;
    t->stalled_at = 0;
}

void gpi_worker_note_stall(gpud_worker *w, uint64_t now)
{
    uint64_t stopped, quiet = gpi_limit_quiet(&w->limit, now, &stopped);

    for (struct gpud_task *t = w->task; t < w->task + w->members; t++)
        if (quiet >= t->stall_limit && !t->stalled_at)
            t->stalled_at = now - (quiet - t->stall_limit);
}

void gpi_worker_write_end(gpud_worker *w, struct gpud_task *t, int code, uint64_t ended_at,
                          bool later)
{
    struct gpi_cell *c = t->cell;

    bool expired = atomic_load_explicit(&w->limit.expired, memory_order_relaxed);

    if (t->fail_code)
        code = t->fail_code;
    if (!code)
        t->flags &= (uint16_t)~GPI_CELL_TEXT;
    if (w->limit.stall != GPI_NEVER) {
        gpi_worker_note_stall(w, ended_at);
        t->extra->stalled_at = t->stalled_at;
    }
    c->ended_at = ended_at;
    c->stopped = gpi_limit_stopped(&w->limit, ended_at, later);
    c->result_off = t->result_off;
    c->result_size = t->result_size;
    c->result_place = (uint16_t)t->result_place;
    c->code = code;
    c->flags = (uint16_t)((expired ? GPI_CELL_EXPIRED : 0) | (t->fail_code ? GPI_CELL_TEXT : 0) |
                          t->flags);
    atomic_store_explicit(&c->end, gpi_end_word(t->number, code ? GPI_END_FAILED : GPI_END_OK),
                          memory_order_release);
}

/* Ends a claimed task that must not start any more, since it has expired, whether or not the host
 * has noticed. */
void gpi_worker_refuse(gpud_worker *w, struct gpi_cell *c, uint64_t number, uint64_t now)
{
    atomic_store_explicit(&c->started_at, now, memory_order_relaxed);
    c->ended_at = now;
    c->stopped = c->result_size = 0;
    c->result_place = GPI_PLACE_NONE;
    c->code = 0;
    c->flags = 0;
    atomic_store_explicit(&c->end, gpi_end_word(number, GPI_END_EXPIRED), memory_order_release);
    gpi_worker_note_end(w, now);
}

/* Reports the ended tasks; the remaining ones are for the next worker. */
_Noreturn void gpi_worker_leave_sick(gpud_worker *w)
{
    gpi_worker_flush(w);
    gpi_worker_leave(GPI_EXIT_FAULT);
}
