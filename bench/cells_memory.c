/* SPDX-License-Identifier: MIT */
/* cells_memory.c - what a queued task costs the host beside its payload, and that an endless source
 * costs nothing. */
#include <unistd.h>

#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "place.h"
#include "processes.h"
#include "report.h"

#define HELD 2
#define QUEUED 200000
#define QUEUE_SIZE 262144

static int hold_workers(struct b_ours *ours)
{
    uint64_t ids[HELD], started;
    int64_t pid;
    int i;

    for (i = 0; i < HELD; i++)
        if (b_ours_start(ours, B_HOLD, 0, &ids[i]))
            return -1;
    for (i = 0; i < HELD; i++)
        if (b_ours_running(ours, ids[i], &pid, &started))
            return -1;
    return 0;
}

static int fill(struct b_ours *ours)
{
    struct gpud_stats s = GPUD_STATS_INIT;
    struct gpud_task_desc task;
    struct b_order order;
    uint64_t before, after;
    double each;
    int i, rc;

    b_ours_task(&task, &order, B_NOTHING);
    (void)gpud_dispatcher_stats(ours->d, &s);
    before = b_resident(getpid());
    for (i = 0; i < QUEUED; i++) {
        rc = gpud_dispatcher_submit(ours->d, &task, 0, NULL, NULL);
        if (rc)
            return b_complain("submit number %d: %s", i, gpud_error_name(rc));
    }
    (void)b_ours_receive(ours, 0);
    after = b_resident(getpid());
    if (before == 0 || after < before)
        return b_complain("the resident memory is unknown");
    if (gpud_dispatcher_stats(ours->d, &s) || s.queued + s.sent < QUEUED)
        return b_complain("only %llu tasks wait", (unsigned long long)(s.queued + s.sent));
    each = (double)(after - before) / QUEUED - (double)sizeof(order);
    b_report(B_KEY_bytes_per_queued_task, each, (double)sizeof(order),
             each + (double)sizeof(order));
    return 0;
}

int b_cell_memory(const struct b_cell *cell)
{
    struct b_ours_options options = { .workers = HELD,
                                      .cpu = -1,
                                      .drive = GPUD_DRIVE_CALLER,
                                      .queue_size = QUEUE_SIZE,
                                      .task_limit = 3600 * B_S };
    struct b_ours ours;
    int rc;

    (void)cell;
    if (b_ours_open(&ours, &options))
        return -1;
    rc = hold_workers(&ours) ? -1 : fill(&ours);
    b_ours_close(&ours);
    return rc;
}

/* ---- an endless source ---- */

#define WARM 1000000
#define QUICK_WARM 300000
#define ENDLESS 8000000
#define QUICK_ENDLESS 300000

struct flood {
    struct b_ours *ours;
    struct b_order order;
    uint64_t pulled, warm, last, before, after;
};

static int give_task(struct gpud_task_desc *task, size_t n, void *user)
{
    struct flood *f = user;

    (void)n;
    if (f->pulled == f->warm / 2)
        (void)b_data_of_tree(); /* so that the looking itself needs no fresh page later */
    if (f->pulled == f->warm)
        f->before = b_data_of_tree();
    if (f->pulled == f->last) {
        f->after = b_data_of_tree();
        return 0;
    }
    f->pulled++;
    task->data = &f->order;
    task->size = sizeof(f->order);
    return 1;
}

static int take_event(const struct gpud_event *event, void *user)
{
    struct flood *f = user;

    return f->ours->handler(event, f->ours);
}

/* Fills the queue, collects, and fills it again while those are lent: from here on every record has
 * been used. */
static int use_all_records(struct b_ours *ours, const struct gpud_task_desc *task)
{
    int i, n, rc;

    for (i = 0; i < 8; i++) {
        do {
            rc = gpud_dispatcher_submit(ours->d, task, 0, NULL, NULL);
        } while (rc == 0);
        n = rc == GPUD_EFULL ? b_ours_receive(ours, B_S) : rc;
        if (n < 0)
            return b_complain("the queue did not fill: %s", gpud_error_name(n));
    }
    do {
        n = b_ours_receive(ours, 100 * B_MS);
    } while (n > 0);
    return n;
}

int b_cell_endless(const struct b_cell *cell)
{
    /* Few cells, so that all have been used when the counting begins. */
    struct b_ours_options options = { .workers = HELD,
                                      .cpu = -1,
                                      .drive = GPUD_DRIVE_THREAD,
                                      .sent_ahead = 8,
                                      .task_limit = 10 * B_S };
    struct gpud_callbacks callbacks = GPUD_CALLBACKS_INIT;
    struct gpud_task_desc task;
    struct flood f = { .warm = b_effort(WARM, QUICK_WARM) };
    struct b_ours ours;
    int rc;

    (void)cell;
    if (b_ours_open(&ours, &options))
        return -1;
    f.ours = &ours;
    f.last = f.warm + b_effort(ENDLESS, QUICK_ENDLESS);
    b_ours_task(&task, &f.order, B_ECHO);
    callbacks.on_success = take_event;
    callbacks.on_error = take_event;
    if (use_all_records(&ours, &task)) {
        b_ours_close(&ours);
        return -1;
    }
    ours.ended = 0;
    rc = gpud_dispatcher_run(ours.d, give_task, &callbacks, &f, NULL);
    b_ours_close(&ours);
    if (rc)
        return b_complain("run: %s", gpud_error_name(rc));
    if (ours.failed > 0 || ours.ended != f.last || f.before == 0 || f.after == 0)
        return b_complain("%llu tasks ended, %llu badly, or the resident memory is unknown",
                          (unsigned long long)ours.ended, (unsigned long long)ours.failed);
    b_report(B_KEY_endless_growth_kib, ((double)f.after - (double)f.before) / 1024,
             (double)f.before / 1024, (double)f.after / 1024);
    return 0;
}
