/* SPDX-License-Identifier: MIT */
#include "api/options.h"

#include <stdlib.h>
#include <string.h>

#include "api/shared.h"
#include "base/failure.h"
#include "os/headroom.h"
#include "os/memory.h"

#define QUEUE_MAX 1048576u
#define BATCH_WAIT_MAX (3600 * GPI_S) /* a wait for ever would never run the last ones */

#define CUDA_ALL 31u        /* every bit of enum gpud_cuda */
#define PASSES_MAX 1000u
#define KILL_LIMIT_GPU_NS (60 * GPI_S) /* a driver takes its time to let go of a dead process: 45 s for one call were seen */
#define OWN_KILL_NS (5 * GPI_S) /* XIDs 43 and 45 come within a few seconds of a kill; longer, and a fault may hide there */
#define STALE_NS (2 * GPI_S)    /* readings are asked for once a second */

static uint64_t or_default(uint64_t given, uint64_t otherwise)
{
    return given ? given : otherwise;
}

static int too_big(struct gpud_error *e, const char *field, uint64_t value, uint64_t max)
{
    return gpi_fail(e, GPUD_EINVAL, 0, field, "%s is %llu, at most %llu is possible", field, (unsigned long long)value, (unsigned long long)max);
}

int gpi_options_read(struct gpi_settings *ret, const struct gpud_options *o, struct gpud_error *e)
{
    struct gpi_settings s = {
        .drive = o->drive,
        .queue_size = o->queue_size ? o->queue_size : 1024,
        .sent_ahead = o->sent_ahead,
        .max_attempts = o->max_attempts ? o->max_attempts : 1,
        .log_level = o->log_level ? o->log_level : GPUD_LEVEL_INFO,
        .slot_events = o->slot_events,
        .devices_per_worker = o->devices_per_worker ? o->devices_per_worker : 1,
        .setup_concurrency = o->setup_concurrency ? o->setup_concurrency : UINT32_MAX,
        .payload_budget = o->payload_budget,
        .seed = o->seed,
        .setup_limit = or_default(o->setup_limit, 900 * GPI_S),
        .task_limit = or_default(o->task_limit, GPI_NEVER),
        .grace = or_default(o->grace, 2 * GPI_S),
        .cleanup_limit = or_default(o->cleanup_limit, 10 * GPI_S),
        .close_limit = or_default(o->close_limit, 30 * GPI_S),
        .kill_limit = or_default(o->kill_limit, 10 * GPI_S),
        .kill_limit_gpu = or_default(o->kill_limit, KILL_LIMIT_GPU_NS),
        .restart = {
            .backoff = or_default(o->backoff, GPI_S),
            .cap = or_default(o->backoff_cap, 60 * GPI_S),
            .failures_in_a_row = o->failures_in_a_row ? o->failures_in_a_row : 3,
        },
        .expires = or_default(o->expires, GPI_NEVER),
        .max_batch = o->max_batch ? o->max_batch : 1,
        .batch_wait = o->batch_wait,
        .stall_limit = or_default(o->stall_limit, GPI_NEVER),
        .retry_causes = o->retry_causes ? o->retry_causes : GPUD_RETRY_CRASH,
        .cuda = o->cuda,
        .memory_wait = or_default(o->memory_wait, 30 * GPI_S),
        .health = {
            .passes = o->cuda & GPUD_CUDA_NO_CANARY ? 0 : o->canary_passes ? o->canary_passes : 2,
            .backoff = or_default(o->canary_backoff, 10 * GPI_S),
            .backoff_cap = or_default(o->canary_backoff_cap, 300 * GPI_S),
            .own_kill = OWN_KILL_NS,
            .stale = STALE_NS,
        },
        .retry = { .backoff = o->retry_backoff, .cap = or_default(o->retry_backoff_cap, 60 * GPI_S) },
    };
    int r;

    if (o->drive > GPUD_DRIVE_CALLER)
        return too_big(e, "drive", o->drive, GPUD_DRIVE_CALLER);
    if (o->queue_size > QUEUE_MAX)
        return too_big(e, "queue_size", o->queue_size, QUEUE_MAX);
    if (o->sent_ahead > GPI_CELLS)
        return too_big(e, "sent_ahead", o->sent_ahead, GPI_CELLS);
    if (o->max_attempts > UINT8_MAX)
        return too_big(e, "max_attempts", o->max_attempts, UINT8_MAX);
    if (o->max_batch > GPI_CELLS)
        return too_big(e, "max_batch", o->max_batch, GPI_CELLS);
    if (o->batch_wait > BATCH_WAIT_MAX)
        return too_big(e, "batch_wait", o->batch_wait, BATCH_WAIT_MAX);
    if (o->retry_causes > GPI_RETRY_ALL)
        return too_big(e, "retry_causes", o->retry_causes, GPI_RETRY_ALL);
    if (o->log_level > GPUD_LEVEL_DEBUG)
        return too_big(e, "log_level", o->log_level, GPUD_LEVEL_DEBUG);
    if (o->devices_per_worker > GPI_DEVICES)
        return too_big(e, "devices_per_worker", o->devices_per_worker, GPI_DEVICES);
    if (o->slot_events > 1)
        return too_big(e, "slot_events", o->slot_events, 1);
    if (o->cuda > CUDA_ALL)
        return too_big(e, "cuda", o->cuda, CUDA_ALL);
    if (o->canary_passes > PASSES_MAX)
        return too_big(e, "canary_passes", o->canary_passes, PASSES_MAX);
    if (o->setup_size && !o->setup_data)
        return gpi_fail(e, GPUD_EINVAL, 0, "setup_data", "setup_data is NULL and setup_size is %llu", (unsigned long long)o->setup_size);
    if (o->setup_shared && (o->setup_data || o->setup_size))
        return gpi_fail(e, GPUD_EINVAL, 0, "setup_shared", "setup_data and setup_shared are both given: give one");
    if (o->setup_shared && !gpi_shared_ours(o->setup_shared))
        return gpi_fail(e, GPUD_EFORKED, 0, "setup_shared", "setup_shared was made in a process that this one was forked from");
    if (o->setup_data && !o->setup_size)
        return gpi_fail(e, GPUD_EINVAL, 0, "setup_size", "setup_data is given and setup_size is 0");
    if (o->batch_wait && o->max_batch <= 1)
        return gpi_fail(e, GPUD_EINVAL, 0, "batch_wait", "batch_wait is given, but max_batch is %u: no batch is ever formed", s.max_batch);
    if (s.restart.cap < s.restart.backoff)
        s.restart.cap = s.restart.backoff;
    if (s.max_batch > 1) /* by default the next batch is there when one ends */
        s.least_ahead = s.sent_ahead ? s.max_batch : s.max_batch * 2 < GPI_CELLS ? s.max_batch * 2 : GPI_CELLS;
    if (s.retry.cap < s.retry.backoff)
        s.retry.cap = s.retry.backoff;
    if (s.health.backoff_cap < s.health.backoff)
        s.health.backoff_cap = s.health.backoff;
    r = gpi_xid_rules_read(&s.health.xids, o->xid_rules ? o->xid_rules : getenv("GPUD_XID_RULES"), e);
    if (r)
        return r;
    *ret = s;
    return 0;
}

int gpi_options_share(struct gpi_settings *s, uint32_t n_slots, struct gpud_error *e)
{
    const uint64_t least = 2 * (2 * GPI_CHUNK + (uint64_t)n_slots * GPI_GRANULE);
    uint64_t file = gpi_memory_file_limit() & ~(GPI_CHUNK - 1);

    if (s->payload_budget == 0) {
        s->payload_budget = gpi_headroom() / 4;
        s->payload_budget = s->payload_budget < least ? least : s->payload_budget;
    }
    if (s->payload_budget < least)
        return gpi_fail(e, GPUD_EINVAL, 0, "payload_budget", "payload_budget is %llu, at least %llu is needed for %u workers",
                        (unsigned long long)s->payload_budget, (unsigned long long)least, n_slots);
    s->input_size = s->payload_budget / 2 & ~(GPI_CHUNK - 1);
    s->result_size = s->payload_budget / 2 / n_slots & ~(uint64_t)(GPI_GRANULE - 1);
    if (file < s->input_size)
        s->input_size = file;
    if (file < s->result_size)
        s->result_size = file;
    if (s->input_size < GPI_CHUNK || s->result_size < GPI_GRANULE)
        return gpi_fail(e, GPUD_ESYSTEM, 0, "payload_budget", "the file size limit (ulimit -f) leaves no room for shared memory");
    return 0;
}
