/* SPDX-License-Identifier: MIT */
#include "api/options.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/option_kinds.h"
#include "api/shared.h"
#include "base/chunks.h"
#include "base/clock.h"
#include "base/failure.h"
#include "os/headroom.h"
#include "os/memory.h"
#include "sched/event.h"
#include "wire/page.h"

#define QUEUE_MAX 1048576u
#define SHORTEST_NS GPI_US            /* a shorter time, but AT_ONCE, was meant in another unit */
#define LONGEST_NS (GPI_NEVER / 2)    /* a longer one, but NEVER, is a negative number */
#define BATCH_WAIT_MAX (3600 * GPI_S) /* a wait for ever would never run the last ones */

#define CUDA_ALL 31u        /* every bit of enum gpud_cuda */
#define PASSES_MAX 1000u
#define WORKERS_MAX 1023u /* pooled: beside the spare slot */
#define WORKERS_PER_DEVICE 4u
#define WORKERS_FOR_CPUS 64u /* their descriptors fit into the usual limit of 1,024 */
/* a driver takes its time to let go of a dead process: 45 s for one call were seen */
#define KILL_LIMIT_GPU_NS (60 * GPI_S)
/* XIDs 43 and 45 come within a few seconds of a kill; longer, and a fault may hide there */
#define OWN_KILL_NS (5 * GPI_S)
#define STALE_NS (2 * GPI_S)    /* readings are asked for once a second */

/* ---- the options that are numbers ---- */

enum kind {
    NUMBER,
    LIMIT, /* a time */
    WAIT   /* a time, or GPUD_AT_ONCE */
};

/* X(option, its place in the settings, kind, the largest value, the value in place of 0) */
#define OPTIONS(X)                                                               \
    X(drive, pool.drive, NUMBER, GPUD_DRIVE_CALLER, 0)                           \
    X(queue_size, pool.queue_size, NUMBER, QUEUE_MAX, 1024)                      \
    X(sent_ahead, class.sent_ahead, NUMBER, GPI_CELLS, 0)                        \
    X(max_attempts, class.max_attempts, NUMBER, UINT8_MAX, 1)                    \
    X(max_batch, class.max_batch, NUMBER, GPI_CELLS, 1)                          \
    X(max_tasks_per_worker, class.max_tasks_per_worker, NUMBER, UINT32_MAX, 0)   \
    X(retry_causes, class.retry_causes, NUMBER, GPI_RETRY_ALL, GPUD_RETRY_CRASH) \
    X(log_level, pool.log_level, NUMBER, GPUD_LEVEL_DEBUG, GPUD_LEVEL_INFO)      \
    X(devices_per_worker, class.devices_per_worker, NUMBER, GPI_DEVICES, 1)      \
    X(setup_concurrency, pool.setup_concurrency, NUMBER, UINT32_MAX, UINT32_MAX) \
    X(failures_in_a_row, class.restart.failures_in_a_row, NUMBER, UINT32_MAX, 3) \
    X(slot_events, pool.slot_events, NUMBER, 1, 0)                               \
    X(start_events, class.start_events, NUMBER, 1, 0)                            \
    X(cuda, class.cuda, NUMBER, CUDA_ALL, 0)                                     \
    X(visible, class.visible, NUMBER, GPUD_VISIBLE_INDEX, 0)                     \
    X(canary_passes, pool.health.passes, NUMBER, PASSES_MAX, 2)                  \
    X(payload_budget, pool.payload_budget, NUMBER, UINT64_MAX, 0)                \
    X(seed, class.seed, NUMBER, UINT64_MAX, 0)                                   \
    X(batch_wait, class.batch_wait, WAIT, BATCH_WAIT_MAX, 0)                     \
    X(setup_limit, class.setup_limit, LIMIT, GPI_NEVER, 900 * GPI_S)             \
    X(task_limit, class.task_limit, LIMIT, GPI_NEVER, GPI_NEVER)                 \
    X(grace, class.grace, WAIT, GPI_NEVER, 2 * GPI_S)                            \
    X(cleanup_limit, class.cleanup_limit, LIMIT, GPI_NEVER, 10 * GPI_S)          \
    X(close_limit, pool.close_limit, LIMIT, GPI_NEVER, 30 * GPI_S)               \
    X(kill_limit, pool.kill_limit, LIMIT, GPI_NEVER, 10 * GPI_S)                 \
    X(backoff, class.restart.backoff, WAIT, GPI_NEVER, GPI_S)                    \
    X(backoff_cap, class.restart.cap, WAIT, GPI_NEVER, 60 * GPI_S)               \
    X(retry_backoff, class.retry.backoff, WAIT, GPI_NEVER, 0)                    \
    X(retry_backoff_cap, class.retry.cap, WAIT, GPI_NEVER, 60 * GPI_S)           \
    X(expires, class.expires, LIMIT, GPI_NEVER, GPI_NEVER)                       \
    X(stall_limit, class.stall_limit, LIMIT, GPI_NEVER, GPI_NEVER)               \
    X(canary_backoff, pool.health.backoff, WAIT, GPI_NEVER, 10 * GPI_S)          \
    X(canary_backoff_cap, pool.health.backoff_cap, WAIT, GPI_NEVER, 300 * GPI_S) \
    X(memory_wait, pool.memory_wait, WAIT, GPI_NEVER, 30 * GPI_S)                \
    X(result_wait, class.result_wait, WAIT, GPI_NEVER, 0)                        \
    X(stop_limit, class.stop_limit, LIMIT, GPI_NEVER, 60 * GPI_S)                \
    X(pooled, pool.pooled, NUMBER, 1, 0)                                         \
    POOLED_OPTIONS(X)

/* The options that need option pooled.  gpi_options_pool fills in cpus, max_workers and
 * host_memory. */
#define POOLED_OPTIONS(X)                                                        \
    X(mode, pool.mode, NUMBER, GPUD_MODE_STRICT, 0)                              \
    X(passing, pool.passing, NUMBER, GPUD_PASSING_APART, 0)                      \
    X(cpus, pool.cpus, NUMBER, UINT32_MAX, 0)                                    \
    X(headroom, pool.headroom, NUMBER, GPI_SHARE_ALL, 1000)                      \
    X(max_workers, pool.max_workers, NUMBER, WORKERS_MAX, 0)                     \
    X(foreign_load, pool.foreign_load, NUMBER, GPI_SHARE_ALL, 0)                 \
    X(host_memory, pool.host_memory, NUMBER, UINT64_MAX, 0)                      \
    X(foreign_memory, pool.foreign_memory, NUMBER, UINT64_MAX, 1073741824)

/* The place of each option is in the part of the settings that the table of kinds names. */
#define X_KIND(option, kind) KIND_OF_##option = GPI_OPTION_##kind,
enum { GPI_OPTION_KINDS(X_KIND) };
#define X_AGREES(option, place, kind, most, otherwise)                                      \
    _Static_assert(                                                                         \
        ((int)KIND_OF_##option == GPI_OPTION_CLASS ||                                       \
         (int)KIND_OF_##option == GPI_OPTION_TASKS) ==                                      \
            (offsetof(struct gpi_settings, place) >= offsetof(struct gpi_settings, class)), \
        "option " #option " is in the other part of the settings");
OPTIONS(X_AGREES)

/* ---- what is refused ---- */

int gpi_options_time(const char *record, const char *field, uint64_t time, bool waits,
                     struct gpud_error *e)
{
    const unsigned long long ns = time;

    if (time == 0 || time == GPUD_NEVER || (time == GPUD_AT_ONCE && waits) ||
        (time >= SHORTEST_NS && time <= LONGEST_NS))
        return 0;
    if (time > LONGEST_NS)
        return gpi_fail(e, GPUD_EINVAL, 0, field,
                        "%s%s is %llu ns, expected less than 2^63 ns, or GPUD_NEVER", record, field,
                        ns);
    return gpi_fail(e, GPUD_EINVAL, 0, field,
                    "%s%s is %llu ns, the minimum is %llu ns: for %llu s write GPUD_S(%llu)%s",
                    record, field, ns, (unsigned long long)SHORTEST_NS, ns, ns,
                    time == GPUD_AT_ONCE ? "; GPUD_AT_ONCE is for waits, not for limits" : "");
}

static int check_values(const struct gpud_options *o, struct gpud_error *e)
{
#define X_VALUE(option, place, kind, most, otherwise) { #option, o->option, most, kind },
    const struct {
        const char *field;
        uint64_t value, most;
        enum kind kind;
    } values[] = { OPTIONS(X_VALUE) };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof values / sizeof *values; i++)
        if (values[i].value > values[i].most)
            r = gpi_fail_most(e, "", values[i].field, values[i].value, values[i].most);
        else if (values[i].kind != NUMBER)
            r = gpi_options_time("", values[i].field, values[i].value, values[i].kind == WAIT, e);
    return r;
}

/* Refuses the first option of this kind that is set. */
static int check_unset(const struct gpud_options *o, enum gpi_option_kind kind, const char *why,
                       struct gpud_error *e)
{
#define X_SET(option, kind) { #option, GPI_OPTION_##kind, o->option != 0 },
    const struct {
        const char *field;
        enum gpi_option_kind kind;
        bool set;
    } options[] = { GPI_OPTION_KINDS(X_SET) };

    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].kind == kind && options[i].set)
            return gpi_fail(e, GPUD_EINVAL, 0, options[i].field, "%s is set, but %s",
                            options[i].field, why);
    return 0;
}

static int check_pooled(const struct gpud_options *o, struct gpud_error *e)
{
    const struct {
        const char *field;
        uint64_t value;
    } needs_pool[] = {
#define X_NEEDS_POOL(option, place, kind, most, otherwise) { #option, o->option },
        POOLED_OPTIONS(X_NEEDS_POOL)
    };

    if (o->pooled) {
        static const char why[] = "pooled is 1: set it in the options of a class";
        const int r = check_unset(o, GPI_OPTION_CLASS, why, e);
        return r ? r : check_unset(o, GPI_OPTION_TASKS, why, e);
    }
    for (size_t i = 0; i < sizeof needs_pool / sizeof *needs_pool; i++)
        if (needs_pool[i].value)
            return gpi_fail(e, GPUD_EINVAL, 0, needs_pool[i].field,
                            "%s is %llu, but pooled is 0: set pooled", needs_pool[i].field,
                            (unsigned long long)needs_pool[i].value);
    return 0;
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
    int r = check_pooled(o, e);

    if (r == 0)
        r = check_values(o, e);
    if (r == 0)
        r = check_setup(o, e);
    if (r == 0 && o->batch_wait && o->max_batch <= 1)
        r = gpi_fail(e, GPUD_EINVAL, 0, "batch_wait",
                     "batch_wait is set, but max_batch is 1: set max_batch to form batches");
    return r;
}

/* ---- what holds ---- */

static void complete(struct gpi_settings *ret, const struct gpud_options *o)
{
#define X_SETTING(option, place, kind, most, otherwise) \
    .place = o->option ? o->option : (otherwise),
    *ret = (struct gpi_settings){ OPTIONS(X_SETTING) };
    ret->pool.kill_limit_gpu = o->kill_limit ? o->kill_limit : KILL_LIMIT_GPU_NS;
    if (o->cuda & GPUD_CUDA_NO_CANARY)
        ret->pool.health.passes = 0;
    ret->pool.mode = o->mode == GPUD_MODE_STRICT ? GPI_MODE_STRICT : GPI_MODE_BACKFILL;
    ret->pool.passing = o->passing == GPUD_PASSING_APART ? GPI_PASS_APART : GPI_PASS_LEARNED;
    ret->pool.health.own_kill = OWN_KILL_NS;
    ret->pool.health.stale = STALE_NS;
}

static void at_least(uint64_t *cap, uint64_t backoff)
{
    if (*cap < backoff)
        *cap = backoff;
}

/* Checks and completes all but xid_rules. */
static int read_values(struct gpi_settings *ret, const struct gpud_options *o, struct gpud_error *e)
{
    int r = check(o, e);

    if (r)
        return r;
    complete(ret, o);
    at_least(&ret->class.restart.cap, ret->class.restart.backoff);
    at_least(&ret->class.retry.cap, ret->class.retry.backoff);
    at_least(&ret->pool.health.backoff_cap, ret->pool.health.backoff);
    return 0;
}

int gpi_options_read(struct gpi_settings *ret, const struct gpud_options *o, struct gpud_error *e)
{
    int r = read_values(ret, o, e);

    return r ? r
             : gpi_xid_rules_read(&ret->pool.health.xids,
                                  o->xid_rules ? o->xid_rules : getenv("GPUD_XID_RULES"), e);
}

int gpi_options_read_class(struct gpi_settings *ret, const struct gpud_options *o,
                           struct gpud_error *e)
{
    int r = check_unset(o, GPI_OPTION_POOL,
                        "it is an option of the dispatcher: set it at gpud_dispatcher_create", e);

    if (r)
        return r;
    if (o->devices_per_worker)
        return gpi_fail(e, GPUD_EINVAL, 0, "devices_per_worker",
                        "devices_per_worker is %u, expected 0: the needs of the class have the "
                        "number of devices",
                        o->devices_per_worker);
    return read_values(ret, o, e);
}

int gpi_options_read_external(struct gpi_settings *ret, const struct gpud_options *o,
                              struct gpud_error *e)
{
    const int r = check_unset(o, GPI_OPTION_CLASS, "the class is EXTERNAL, and has no workers", e);

    return r ? r : gpi_options_read_class(ret, o, e);
}

/* ---- defaults of a pooled dispatcher ---- */

/* The CPUs that the calling thread may run on. */
static uint32_t count_cpus(void)
{
    cpu_set_t set[8]; /* one of them is too short for machines with more than 1,024 CPUs */
    long n = 0;

    memset(set, 0, sizeof set);
    if (sched_getaffinity(0, sizeof set, set) == 0)
        n = CPU_COUNT_S(sizeof set, set);
    if (n <= 0)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

void gpi_options_pool(struct gpi_pool_set *s, uint32_t n_devices)
{
    if (s->cpus == 0)
        s->cpus = count_cpus();
    if (s->host_memory == 0)
        s->host_memory = gpi_headroom();
    if (s->max_workers)
        return;
    s->max_workers = s->cpus < WORKERS_FOR_CPUS ? s->cpus : WORKERS_FOR_CPUS;
    if (s->max_workers < WORKERS_PER_DEVICE * n_devices)
        s->max_workers = WORKERS_PER_DEVICE * n_devices;
    if (s->max_workers > WORKERS_MAX)
        s->max_workers = WORKERS_MAX;
}

/* ---- what the budget is divided into ---- */

int gpi_options_share(struct gpi_pool_set *s, uint32_t n_slots, struct gpud_error *e)
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
