/* SPDX-License-Identifier: MIT */
/* nvml_sample.c - reads the state of a GPU: a value that cannot be read is unknown, each on its
 * own. */
#include "device/nvml.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* The result of a call that the driver may lack. */
#define ASK(function, ...) ((function) ? (function)(__VA_ARGS__) : GPI_NVML_FUNCTION_NOT_FOUND)

/* Returns whether a value was read.  A device that is gone returns that from every call, and the
 * whole reading notes it; a value that is not available means nothing. */
static bool is_read(struct gpi_sample *x, int32_t code)
{
    const enum gpi_reading reading = gpi_reading_of(code);

    if (x->reading == GPI_READ_OK && (reading == GPI_READ_LOST || reading == GPI_READ_RESET)) {
        x->reading = reading;
        x->code = (uint32_t)code;
    }
    return !code;
}

/* ---- fields ---- */

static uint64_t field_value(const struct gpi_nvml_field *f)
{
    switch (f->type) {
    case GPI_NVML_DOUBLE:
        return f->value.d >= 0 && f->value.d < 1e18 ? (uint64_t)f->value.d : GPI_UNKNOWN64;
    case GPI_NVML_U32:
        return f->value.u32;
    case GPI_NVML_ULONG:
    case GPI_NVML_U64:
        return f->value.u64;
    case GPI_NVML_I64:
        return f->value.i64 >= 0 ? (uint64_t)f->value.i64 : GPI_UNKNOWN64;
    case GPI_NVML_I32:
        return f->value.i32 >= 0 ? (uint64_t)f->value.i32 : GPI_UNKNOWN64;
    case GPI_NVML_U16:
        return f->value.u16;
    default:
        return GPI_UNKNOWN64;
    }
}

/* Reads up to 8 fields in one call; each stays unknown on its own. */
static int32_t read_fields(const struct gpi_nvml *call, gpi_nvml_device gpu, const uint32_t *ids,
                           uint32_t n, uint32_t *ret)
{
    struct gpi_nvml_field field[8];
    int32_t code;

    memset(field, 0, sizeof(field));
    for (uint32_t i = 0; i < n; i++) {
        field[i].id = ids[i];
        field[i].code = GPI_NVML_NOT_SUPPORTED; /* if the driver leaves it as it is */
        ret[i] = GPI_UNKNOWN32;
    }
    code = ASK(call->fields, gpu, (int32_t)n, field);
    for (uint32_t i = 0; !code && i < n; i++) {
        const uint64_t value = field[i].code ? GPI_UNKNOWN64 : field_value(&field[i]);
        ret[i] = value < GPI_UNKNOWN32 ? (uint32_t)value : GPI_UNKNOWN32;
    }
    return code;
}

uint32_t gpi_nvml_recovery(const struct gpi_nvml *call, gpi_nvml_device gpu)
{
    static const uint32_t id = GPI_FIELD_RECOVERY;
    uint32_t value;

    (void)read_fields(call, gpu, &id, 1, &value);
    return value;
}

/* ---- parts of a sample ---- */

/* A total of 0 is how some drivers report that a GPU uses the machine's memory. */
static void keep_memory(struct gpi_sample *x, uint64_t total, uint64_t free, uint64_t used)
{
    if (!total)
        return;
    x->memory_total = total;
    x->memory_free = free;
    x->memory_used = used;
}

/* Both calls count the driver's reserve as used: a worker can have all that is free. */
static int32_t memory(struct gpi_nvml_state *s, gpi_nvml_device handle, struct gpi_sample *x)
{
    struct gpi_nvml_memory2 two = { .version = GPI_NVML_VERSION(two, 2) };
    struct gpi_nvml_memory one = { 0, 0, 0 };
    int32_t code = s->no_memory2 ? GPI_NVML_FUNCTION_NOT_FOUND : ASK(s->call.memory2, handle, &two);

    if (!code) {
        keep_memory(x, two.total, two.free, two.used + two.reserved);
        return 0;
    }
    if (code == GPI_NVML_FUNCTION_NOT_FOUND || code == GPI_NVML_ARGUMENT_VERSION_MISMATCH)
        s->no_memory2 = true;
    else if (code != GPI_NVML_NOT_SUPPORTED)
        return code;
    code = s->call.memory(handle, &one);
    if (!code)
        keep_memory(x, one.total, one.free, one.used);
    return code;
}

/* Returns whether a code describes the GPU, rather than a refusal of the call. */
static bool decides(int32_t code)
{
    const enum gpi_reading reading = gpi_reading_of(code);

    return reading == GPI_READ_OK || reading == GPI_READ_LOST || reading == GPI_READ_RESET;
}

static int32_t temperature(const struct gpi_nvml *call, gpi_nvml_device gpu, uint32_t *ret)
{
    struct gpi_nvml_temperature t = { .version = GPI_NVML_VERSION(t, 1) };
    const int32_t code = ASK(call->temperature_v, gpu, &t);

    if (!decides(code))
        return ASK(call->temperature, gpu, 0, ret);
    *ret = t.temperature > 0 ? (uint32_t)t.temperature : 0;
    return code;
}

/* Orin supports few calls, and any other code may be its way to refuse one.  The UUID is last,
 * since the driver may know it without access to the GPU. */
int32_t gpi_nvml_verdict(const struct gpi_nvml *call, gpi_nvml_device gpu, int32_t of_memory)
{
    struct gpi_nvml_utilization u;
    char uuid[GPI_NVML_UUID];
    uint32_t degrees;
    int32_t code;

    if (of_memory != GPI_NVML_NOT_SUPPORTED)
        return of_memory;
    code = temperature(call, gpu, &degrees);
    if (!decides(code))
        code = ASK(call->utilization, gpu, &u);
    return decides(code) ? code : call->uuid(gpu, uuid, sizeof(uuid));
}

static void rates(const struct gpi_nvml *call, const struct gpi_nvml_row *row, struct gpi_sample *x)
{
    struct gpi_nvml_utilization u;
    uint32_t degrees;

    if (!row->in_mig_mode && row->handle == row->gpu &&
        is_read(x, ASK(call->utilization, row->handle, &u))) {
        x->utilization = u.gpu;
        x->memory_utilization = u.memory;
    }
    if (is_read(x, temperature(call, row->gpu, &degrees)))
        x->temperature = degrees;
}

static void power(const struct gpi_nvml *call, gpi_nvml_device gpu, uint32_t by_field,
                  struct gpi_sample *x)
{
    uint32_t value;
    uint64_t reasons;

    x->power = by_field;
    if (by_field == GPI_UNKNOWN32 && is_read(x, ASK(call->power, gpu, &value)))
        x->power = value;
    if (is_read(x, ASK(call->power_limit, gpu, &value)))
        x->power_limit = value;
    if (is_read(x, ASK(call->clock, gpu, 1, &value))) /* of the SMs */
        x->sm_clock = value;
    if (is_read(x, ASK(call->throttle, gpu, &reasons)))
        x->throttle = reasons;
}

static void errors(const struct gpi_nvml *call, gpi_nvml_device gpu, struct gpi_sample *x)
{
    uint32_t corrected, uncorrected, pending, failed;
    uint64_t n;
    int32_t retired;

    if (is_read(x, ASK(call->ecc, gpu, 0, 0, &n))) /* since the driver was loaded */
        x->ecc_corrected = n;
    if (is_read(x, ASK(call->ecc, gpu, 1, 0, &n)))
        x->ecc_uncorrected = n;
    if (is_read(x, ASK(call->remapped, gpu, &corrected, &uncorrected, &pending, &failed))) {
        x->remapped_rows = corrected + uncorrected;
        x->remap_pending = pending != 0;
        x->remap_failed = failed != 0;
    } else if (x->remap_pending == GPI_UNKNOWN32 &&
               is_read(x, ASK(call->retired_pending, gpu, &retired))) {
        x->remap_pending = retired != 0; /* before Ampere pages are retired */
    }
}

/* Reads all values that have a field, in one call. */
static void by_fields(const struct gpi_nvml *call, gpi_nvml_device gpu, struct gpi_sample *x,
                      uint32_t *ret_power)
{
    static const uint32_t ids[] = { GPI_FIELD_REMAPPED_UNCORRECTED, GPI_FIELD_REMAP_PENDING,
                                    GPI_FIELD_REMAP_FAILED, GPI_FIELD_RECOVERY, GPI_FIELD_POWER };
    uint32_t value[5];

    (void)is_read(x, read_fields(call, gpu, ids, 5, value));
    x->remapped_rows = value[0];
    x->remap_pending = value[1];
    x->remap_failed = value[2];
    x->recovery = value[3];
    *ret_power = value[4];
}

/* ---- processes ---- */

/* Above every pid of the kernel (PID_MAX_LIMIT). */
#define PIDS (1u << 22)

static struct gpi_nvml_process entry(const unsigned char *list, size_t stride, uint32_t i)
{
    struct gpi_nvml_process p;

    memcpy(&p, list + i * stride, sizeof(p));
    return p;
}

static bool is_here(uint32_t pid)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%u", pid);
    return !access(path, F_OK);
}

/* Returns how many entries name a process that is here; -1 if one entry cannot be a process. */
static int plausible(const unsigned char *list, size_t stride, uint32_t n)
{
    int here = 0;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t pid = entry(list, stride, i).pid;
        if (pid == 0 || pid > PIDS)
            return -1;
        here += is_here(pid);
    }
    return here;
}

/* Returns the size of an entry: 24, or 32 as in early 535 drivers, which do not report that; 0 when
 * the list makes sense in neither way. */
static size_t stride_of(const unsigned char *list, uint32_t n)
{
    const int narrow = plausible(list, 24, n), wide = n > 1 ? plausible(list, 32, n) : -1;

    if (narrow < 0 && wide < 0)
        return 0;
    return wide > narrow ? 32 : 24;
}

static int32_t list_processes(struct gpi_nvml_state *s, gpi_nvml_device handle, bool mps,
                              uint32_t *ret_n)
{
    const struct gpi_nvml *call = &s->call;
    int32_t code = GPI_NVML_FUNCTION_NOT_FOUND;

    memset(s->processes, 0, sizeof(s->processes));
    *ret_n = GPI_NVML_PROCESSES;
    if (!s->second_process_list)
        code = ASK(mps ? call->mps_processes : call->processes, handle, ret_n, s->processes);
    if (code == GPI_NVML_FUNCTION_NOT_FOUND) {
        *ret_n = GPI_NVML_PROCESSES;
        code = ASK(mps ? call->mps_processes2 : call->processes2, handle, ret_n, s->processes);
    }
    if (!code && *ret_n > GPI_NVML_PROCESSES)
        *ret_n = GPI_NVML_PROCESSES;
    return code;
}

static bool is_listed(const struct gpi_sample *x, uint32_t pid)
{
    for (uint32_t i = 0; i < x->n_users && i < GPI_PROCESSES_MAX; i++)
        if (pid && x->user[i].pid == pid)
            return true;
    return false;
}

/* Adds a list; returns false if the driver does not return it, or it makes no sense. */
static bool processes(struct gpi_nvml_state *s, gpi_nvml_device handle, bool mps,
                      struct gpi_sample *x)
{
    uint32_t n = 0;
    const int32_t code = list_processes(s, handle, mps, &n);
    const size_t stride = code || !n ? 24 : stride_of(s->processes, n);

    if (code == GPI_NVML_INSUFFICIENT_SIZE)
        x->n_users = n; /* more than the list holds */
    if (code || !stride)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct gpi_nvml_process p = entry(s->processes, stride, i);
        if (!mps || !is_listed(x, p.pid))
            /* 0: the process has ended, or is outside this container */
            gpi_sample_add_user(x, is_here(p.pid) ? p.pid : 0, p.memory);
    }
    return true;
}

/* ---- the whole ---- */

/* Memory decides the verdict: every driver can read it, of every GPU that has some.  An instance
 * also has the values of its GPU, since it has no temperature of its own.  The time is that of the
 * first call. */
void gpi_nvml_sample(void *state, uint32_t i, struct gpi_sample *ret)
{
    struct gpi_nvml_state *s = state;
    const struct gpi_nvml_table *table = s->table;
    const struct gpi_nvml_row *row;
    uint32_t by_field = GPI_UNKNOWN32;
    int32_t code;

    gpi_sample_unknown(ret, gpi_now());
    if (!table || i >= table->n) {
        ret->reading = GPI_READ_UNKNOWN;
        return;
    }
    row = &table->row[i];
    code = gpi_nvml_verdict(&s->call, row->gpu, memory(s, row->handle, ret));
    ret->reading = gpi_reading_of(code);
    ret->code = (uint32_t)code;
    by_fields(&s->call, row->gpu, ret, &by_field);
    if (ret->reading == GPI_READ_LOST || ret->reading == GPI_READ_REVOKED)
        return; /* each further call may take its timeout */
    rates(&s->call, row, ret);
    power(&s->call, row->gpu, by_field, ret);
    errors(&s->call, row->gpu, ret);
    ret->users_known = processes(s, row->handle, false, ret);
    (void)processes(s, row->handle, true, ret);
}
