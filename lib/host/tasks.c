/* SPDX-License-Identifier: MIT */
/* tasks.c - task records: finds, ends, cancels and frees them. */
#include <stdlib.h>

#include "base/clock.h"
#include "host/act.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/external.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/memory.h"

int gpi_tasks_init(gpud_dispatcher *d)
{
    while ((1u << d->id_bits) < d->n_tasks)
        d->id_bits++;
    d->free_task = GPI_NONE;
    d->task = gpi_memory_private((d->n_tasks + 1ull) * sizeof *d->task); /* one more for d->plain */
    d->stall_limit = gpi_memory_private((uint64_t)d->n_tasks * sizeof *d->stall_limit);
    d->expires = gpi_memory_private((uint64_t)d->n_tasks * sizeof *d->expires);
    if (d->set.pooled)
        d->ran_on = gpi_memory_private((uint64_t)d->n_tasks * sizeof *d->ran_on);
    return d->task && d->stall_limit && d->expires && (d->ran_on || !d->set.pooled) ? 0 : -1;
}

void gpi_tasks_fini(gpud_dispatcher *d)
{
    for (uint32_t i = 0; d->task && i < d->never_used; i++) {
        gpi_detail_free(&d->task[i]);
        if (d->task[i].result_place == GPI_RESULT_HEAP)
            free((void *)(uintptr_t)d->task[i].result_off);
    }
    gpi_grants_fini(d);
    gpi_memory_unmap(d->task, (d->n_tasks + 1ull) * sizeof *d->task);
    gpi_memory_unmap(d->ran_on, (uint64_t)d->n_tasks * sizeof *d->ran_on);
    gpi_memory_unmap(d->stall_limit, (uint64_t)d->n_tasks * sizeof *d->stall_limit);
    gpi_memory_unmap(d->expires, (uint64_t)d->n_tasks * sizeof *d->expires);
}

/* ---- records ---- */

struct gpi_task *gpi_task_find(gpud_dispatcher *d, uint64_t id)
{
    uint64_t i = id & ((1ull << d->id_bits) - 1);

    if (i >= d->never_used || d->task[i].id != id)
        return NULL;
    return &d->task[i];
}

void gpi_task_free_parts(gpud_dispatcher *d, struct gpi_task *t)
{
    if (t->has_block)
        gpi_payload_free(d, t);
    if (t->result_place == GPI_RESULT_HEAP) {
        t->result_place = GPI_RESULT_NONE; /* first: a forked child would free it as well */
        free((void *)(uintptr_t)t->result_off);
    }
    if (t->result_place == GPI_RESULT_POOL)
        gpi_chunks_free(&d->arena.pool_chunks, t->result_off);
    else if (t->result_place == GPI_RESULT_ARENA)
        gpi_result_release(d, t->slot, t->result_off, t->size);
    if (t->detail)
        gpi_detail_free(t);
}

/* ---- ending ---- */

void gpi_task_end(gpud_dispatcher *d, struct gpi_task *t, uint32_t outcome, uint32_t phase,
                  int32_t code)
{
    if (outcome == GPUD_OUTCOME_NO_WORKER)
        gpi_task_note_why(d, t);
    gpi_task_settle(d, t, outcome, phase, code);
}

void gpi_task_free_block(gpud_dispatcher *d, struct gpi_task *t)
{
    gpi_payload_free(d, t);
    gpi_room_made(d); /* the budget has room, if not the queue */
}

int gpi_task_cancel(gpud_dispatcher *d, uint64_t id, uint32_t how)
{
    struct gpi_task *t = gpi_task_find(d, id);

    if (!t || (t->state != GPI_TASK_QUEUED && t->state != GPI_TASK_SENT))
        return GPUD_ENOTFOUND;
    d->now = gpi_now();
    gpi_hear_task(d, t, GPI_EV_CANCEL,
                  how == GPUD_CANCEL_HARD ? GPI_CANCEL_HARD : GPI_CANCEL_SOFT);
    gpi_drive_wake(d);
    return 0;
}
