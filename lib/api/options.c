/* SPDX-License-Identifier: MIT */
#include "api/options.h"

#include <stdlib.h>

#include "api/shared.h"
#include "base/chunks.h"
#include "base/clock.h"
#include "base/failure.h"
#include "os/headroom.h"
#include "os/memory.h"
#include "wire/page.h"

#define QUEUE_MAX 1048576u
#define SHORTEST_NS GPI_US            /* a shorter time, but AT_ONCE, was meant in another unit */
#define LONGEST_NS (GPI_NEVER / 2)    /* a longer one, but NEVER, is a negative number */
#define BATCH_WAIT_MAX (3600 * GPI_S) /* a wait for ever would never run the last ones */

#define CUDA_ALL 31u        /* every bit of enum gpud_cuda */
#define PASSES_MAX 1000u
/* a driver takes its time to let go of a dead process: 45 s for one call were seen */
#define KILL_LIMIT_GPU_NS (60 * GPI_S)
/* XIDs 43 and 45 come within a few seconds of a kill; longer, and a fault may hide there */
#define OWN_KILL_NS (5 * GPI_S)
#define STALE_NS (2 * GPI_S)    /* readings are asked for once a second */

/* ---- what is refused ---- */

static int check_ranges(const struct gpud_options *o, struct gpud_error *e)
{
    const struct {
        const char *field;
        uint64_t value, most;
    } ranges[] = {
        { "drive", o->drive, GPUD_DRIVE_CALLER },
        { "queue_size", o->queue_size, QUEUE_MAX },
        { "sent_ahead", o->sent_ahead, GPI_CELLS },
        { "max_attempts", o->max_attempts, UINT8_MAX },
        { "max_batch", o->max_batch, GPI_CELLS },
        { "batch_wait", o->batch_wait, BATCH_WAIT_MAX },
        { "retry_causes", o->retry_causes, GPI_RETRY_ALL },
        { "log_level", o->log_level, GPUD_LEVEL_DEBUG },
        { "devices_per_worker", o->devices_per_worker, GPI_DEVICES },
        { "slot_events", o->slot_events, 1 },
        { "start_events", o->start_events, 1 },
        { "cuda", o->cuda, CUDA_ALL },
        { "visible", o->visible, GPUD_VISIBLE_INDEX },
        { "canary_passes", o->canary_passes, PASSES_MAX },
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].value > ranges[i].most)
            return gpi_fail_most(e, "", ranges[i].field, ranges[i].value, ranges[i].most);
    return 0;
}

/* Refuses a time that was meant in another unit, and one that is a negative number. */
static int check_time(const char *field, uint64_t time, bool waits, struct gpud_error *e)
{
    const unsigned long long ns = time;

    if (time == 0 || time == GPUD_NEVER || (time == GPUD_AT_ONCE && waits) ||
        (time >= SHORTEST_NS && time <= LONGEST_NS))
        return 0;
    if (time > LONGEST_NS)
        return gpi_fail(e, GPUD_EINVAL, 0, field,
                        "%s is %llu ns, expected less than 2^63 ns, or GPUD_NEVER", field, ns);
    return gpi_fail(e, GPUD_EINVAL, 0, field,
                    "%s is %llu ns, the minimum is %llu ns: for %llu s write GPUD_S(%llu)%s", field,
                    ns, (unsigned long long)SHORTEST_NS, ns, ns,
                    time == GPUD_AT_ONCE ? "; GPUD_AT_ONCE is for waits, not for limits" : "");
}

static int check_times(const struct gpud_options *o, struct gpud_error *e)
{
    const struct {
        const char *field;
        uint64_t time;
        bool waits; /* may be GPUD_AT_ONCE: a wait, not a limit */
    } times[] = {
        { "setup_limit", o->setup_limit, false },
        { "task_limit", o->task_limit, false },
        { "grace", o->grace, true },
        { "cleanup_limit", o->cleanup_limit, false },
        { "close_limit", o->close_limit, false },
        { "kill_limit", o->kill_limit, false },
        { "backoff", o->backoff, true },
        { "backoff_cap", o->backoff_cap, true },
        { "batch_wait", o->batch_wait, true },
        { "retry_backoff", o->retry_backoff, true },
        { "retry_backoff_cap", o->retry_backoff_cap, true },
        { "expires", o->expires, false },
        { "stall_limit", o->stall_limit, false },
        { "canary_backoff", o->canary_backoff, true },
        { "canary_backoff_cap", o->canary_backoff_cap, true },
        { "memory_wait", o->memory_wait, true },
        { "result_wait", o->result_wait, true },
        { "stop_limit", o->stop_limit, false },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof times / sizeof *times; i++)
        r = check_time(times[i].field, times[i].time, times[i].waits, e);
    return r;
}

static int check_setup(const struct gpud_options *o, struct gpud_error *e)
{
    if (o->setup_size && !o->setup_data)
        return gpi_fail(e, GPUD_EINVAL, 0, "setup_data",
                        "setup_data is NULL, but setup_size is %llu",
                        (unsigned long long)o->setup_size);
    if (o->setup_shared && (o->setup_data || o->setup_size))
        return gpi_fail(e, GPUD_EINVAL, 0, "setup_shared",
                        "setup_data and setup_shared are both set: set one of them");
    if (o->setup_shared && !gpi_shared_ours(o->setup_shared))
        return gpi_fail(e, GPUD_EFORKED, 0, "setup_shared",
                        "setup_shared belongs to the parent process: create it in this process");
    if (o->setup_data && !o->setup_size)
        return gpi_fail(e, GPUD_EINVAL, 0, "setup_size", "setup_data is set, but setup_size is 0");
    return 0;
}

static int check(const struct gpud_options *o, struct gpud_error *e)
{
    int r = check_ranges(o, e);

    if (r == 0)
        r = check_times(o, e);
    if (r == 0)
        r = check_setup(o, e);
    if (r == 0 && o->batch_wait && o->max_batch <= 1)
        r = gpi_fail(e, GPUD_EINVAL, 0, "batch_wait",
                     "batch_wait is set, but max_batch is 1: set max_batch to form batches");
    return r;
}

/* ---- what holds ---- */

static uint64_t or_default(uint64_t given, uint64_t otherwise)
{
    return given ? given : otherwise;
}

static void complete(struct gpi_settings *ret, const struct gpud_options *o)
{
    *ret = (struct gpi_settings){
        .drive = o->drive,
        .queue_size = o->queue_size ? o->queue_size : 1024,
        .sent_ahead = o->sent_ahead,
        .max_attempts = o->max_attempts ? o->max_attempts : 1,
        .log_level = o->log_level ? o->log_level : GPUD_LEVEL_INFO,
        .slot_events = o->slot_events,
        .start_events = o->start_events,
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
        .max_tasks_per_worker = o->max_tasks_per_worker,
        .result_wait = o->result_wait,
        .stall_limit = or_default(o->stall_limit, GPI_NEVER),
        .stop_limit = or_default(o->stop_limit, 60 * GPI_S),
        .retry_causes = o->retry_causes ? o->retry_causes : GPUD_RETRY_CRASH,
        .cuda = o->cuda,
        .visible = o->visible,
        .memory_wait = or_default(o->memory_wait, 30 * GPI_S),
        .health = {
            .passes = o->cuda & GPUD_CUDA_NO_CANARY ? 0 : o->canary_passes ? o->canary_passes : 2,
            .backoff = or_default(o->canary_backoff, 10 * GPI_S),
            .backoff_cap = or_default(o->canary_backoff_cap, 300 * GPI_S),
            .own_kill = OWN_KILL_NS,
            .stale = STALE_NS,
        },
        .retry = { .backoff = o->retry_backoff,
                   .cap = or_default(o->retry_backoff_cap, 60 * GPI_S) },
    };
}

/* By default the next batch is there when one ends. */
static uint32_t least_ahead(const struct gpi_settings *s)
{
    if (s->max_batch == 1)
        return 0;
    return s->sent_ahead                  ? s->max_batch
           : s->max_batch * 2 < GPI_CELLS ? s->max_batch * 2
                                          : GPI_CELLS;
}

static void at_least(uint64_t *cap, uint64_t backoff)
{
    if (*cap < backoff)
        *cap = backoff;
}

int gpi_options_read(struct gpi_settings *ret, const struct gpud_options *o, struct gpud_error *e)
{
    int r = check(o, e);

    if (r)
        return r;
    complete(ret, o);
    ret->least_ahead = least_ahead(ret);
    at_least(&ret->restart.cap, ret->restart.backoff);
    at_least(&ret->retry.cap, ret->retry.backoff);
    at_least(&ret->health.backoff_cap, ret->health.backoff);
    return gpi_xid_rules_read(&ret->health.xids,
                              o->xid_rules ? o->xid_rules : getenv("GPUD_XID_RULES"), e);
}

/* ---- what the budget is divided into ---- */

int gpi_options_share(struct gpi_settings *s, uint32_t n_slots, struct gpud_error *e)
{
    const uint64_t least = 2 * (2 * GPI_CHUNK + (uint64_t)n_slots * GPI_GRANULE);
    uint64_t file = gpi_memory_file_limit() & ~(GPI_CHUNK - 1);

    if (s->payload_budget == 0) {
        s->payload_budget = gpi_headroom() / 4;
        s->payload_budget = s->payload_budget < least ? least : s->payload_budget;
    }
    if (s->payload_budget < least)
        return gpi_fail(e, GPUD_EINVAL, 0, "payload_budget",
                        "payload_budget is %llu, the minimum is %llu for %u workers",
                        (unsigned long long)s->payload_budget, (unsigned long long)least, n_slots);
    s->input_size = s->payload_budget / 2 & ~(GPI_CHUNK - 1);
    s->result_size = s->payload_budget / 2 / n_slots & ~(uint64_t)(GPI_GRANULE - 1);
    if (file < s->input_size)
        s->input_size = file;
    if (file < s->result_size)
        s->result_size = file;
    if (s->input_size < GPI_CHUNK || s->result_size < GPI_GRANULE)
        return gpi_fail(e, GPUD_ESYSTEM, 0, "payload_budget",
                        "the file size limit is too small for shared memory: raise it (ulimit -f)");
    return 0;
}
