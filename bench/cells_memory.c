/* SPDX-License-Identifier: MIT */
/* cells_memory.c - what a queued task costs the host beside its payload. */
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
    before = b_resident();
    for (i = 0; i < QUEUED; i++) {
        rc = gpud_dispatcher_submit(ours->d, &task, 0, NULL);
        if (rc)
            return b_complain("submit number %d: %s", i, gpud_error_name(rc));
    }
    (void)b_ours_receive(ours, 0);
    after = b_resident();
    if (before == 0 || after < before)
        return b_complain("the resident memory is unknown");
    if (gpud_dispatcher_stats(ours->d, &s) || s.queued + s.sent < QUEUED)
        return b_complain("only %llu tasks wait", (unsigned long long)(s.queued + s.sent));
    each = (double)(after - before) / QUEUED - (double)sizeof(order);
    b_report(B_KEY_bytes_per_queued_task, each, (double)sizeof(order), each + (double)sizeof(order));
    return 0;
}

int b_cell_memory(const struct b_cell *cell)
{
    struct b_ours_options options = {
        .workers = HELD, .cpu = -1, .drive = GPUD_DRIVE_CALLER, .queue_size = QUEUE_SIZE, .task_limit = 3600 * B_S
    };
    struct b_ours ours;
    int rc;

    (void)cell;
    if (b_ours_open(&ours, &options))
        return -1;
    rc = hold_workers(&ours) ? -1 : fill(&ours);
    b_ours_close(&ours);
    return rc;
}
