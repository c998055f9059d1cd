/* SPDX-License-Identifier: MIT */
/*
 * nvml_await.c - the incidents of GPUs: one blocking wait for the events of all of them.
 *
 * Only events after the registration arrive, so await reads the state of each device once after it.
 * It reports an incident before it calls the driver again, since that call may hang.
 */
#include "device/nvml.h"

#include <string.h>

#include "base/clock.h"

/* A wait ends in time only to see whether a lost device is back.  XXX it is not known whether each
 * driver takes UINT32_MAX as unlimited: an hour is as good. */
enum { PATIENT_MS = 3600 * 1000, RETRY_MS = 1000 };

/* ---- the queue ---- */

static void tell(struct gpi_nvml_ear *ear, uint32_t kind, uint32_t device, uint64_t number)
{
    if (ear->head - ear->tail == GPI_HEARD_MAX)
        return; /* a flood: the earlier incidents report the same */
    ear->queue[ear->head++ % GPI_HEARD_MAX] =
        (struct gpi_incident){ .kind = kind, .device = device, .number = number, .at = gpi_now() };
}

/* ---- the state of a device ---- */

static void tell_recovery(struct gpi_nvml_ear *ear, uint32_t row, uint32_t recovery)
{
    if (recovery == GPI_UNKNOWN32 || recovery == ear->recovery[row])
        return;
    ear->recovery[row] = recovery;
    tell(ear, GPI_INCIDENT_RECOVERY, row, recovery);
}

/* Reads the state of a device, and reports the news in it. */
static void look(struct gpi_nvml_state *s, uint32_t row)
{
    struct gpi_nvml_ear *ear = &s->ear;
    const gpi_nvml_device gpu = ear->table->row[row].handle;
    struct gpi_nvml_memory memory;
    const enum gpi_reading reading =
        gpi_reading_of(gpi_nvml_verdict(&s->call, gpu, s->call.memory(gpu, &memory)));
    const bool was_out = ear->out[row];

    ear->look[row] = false;
    ear->out[row] = reading == GPI_READ_LOST || reading == GPI_READ_RESET;
    ear->missed |= ear->out[row];
    ear->back |= was_out && !ear->out[row];
    if (reading == GPI_READ_LOST && !was_out)
        tell(ear, GPI_INCIDENT_LOST, row, 0);
    else if (reading == GPI_READ_RESET && !was_out)
        tell_recovery(ear, row, GPUD_RECOVERY_RESET);
    else if (!ear->out[row])
        tell_recovery(ear, row, gpi_nvml_recovery(&s->call, gpu));
}

static bool is_whole(const struct gpi_nvml_row *row)
{
    return row->handle == row->gpu;
}

static void look_where_asked(struct gpi_nvml_state *s)
{
    for (uint32_t i = 0; i < s->ear.table->n; i++)
        if (s->ear.look[i])
            look(s, i);
}

/* ---- registration ---- */

enum { ASK_FOR_ALL, ASK_FOR_XIDS, ASK_FOR_NOTHING };

static bool says_out(int32_t code)
{
    return gpi_reading_of(code) == GPI_READ_LOST || gpi_reading_of(code) == GPI_READ_RESET;
}

/* Returns whether the driver has no events at all, and never will. */
static bool is_final(int32_t code)
{
    return code == GPI_NVML_NOT_SUPPORTED || code == GPI_NVML_FUNCTION_NOT_FOUND;
}

/* Registers one GPU.  A driver may refuse a kind of events that it calls supported: then XIDs
 * alone. */
static int32_t register_gpu(struct gpi_nvml_state *s, uint32_t row)
{
    struct gpi_nvml_ear *ear = &s->ear;
    const struct gpi_nvml *call = &s->call;
    const gpi_nvml_device gpu = ear->table->row[row].handle;
    uint64_t types = 0;
    int32_t code =
        call->events_types ? call->events_types(gpu, &types) : GPI_NVML_FUNCTION_NOT_FOUND;

    if (code)
        return code;
    types &= GPI_EVENT_XID | GPI_EVENT_UNAVAILABLE | GPI_EVENT_RECOVERY;
    if (!(types & GPI_EVENT_XID))
        return GPI_NVML_NOT_SUPPORTED;
    if (ear->ask[row] == ASK_FOR_ALL && types != GPI_EVENT_XID) {
        code = call->events_register(gpu, types, ear->set);
        if (!code || code == GPI_NVML_UNKNOWN || says_out(code))
            return code;
        ear->ask[row] = ASK_FOR_XIDS;
    }
    return call->events_register(gpu, GPI_EVENT_XID, ear->set);
}

/* Registers one GPU, or, if it is out, leaves it until it is back.  After code 999 the set is in no
 * known state: the caller makes it anew, with fewer kinds of events for this GPU. */
static void hear(struct gpi_nvml_state *s, uint32_t row)
{
    struct gpi_nvml_ear *ear = &s->ear;
    int32_t code = GPI_NVML_OK;

    if (ear->out[row])
        look(s, row);
    if (!ear->out[row])
        code = ear->ask[row] == ASK_FOR_NOTHING ? GPI_NVML_UNKNOWN : register_gpu(s, row);
    if (says_out(code))
        look(s, row);
    if (code == GPI_NVML_UNKNOWN && ear->ask[row] != ASK_FOR_NOTHING) {
        ear->ask[row]++;
        ear->spoilt = true;
    }
    ear->refused[row] = ear->out[row] ? GPI_NVML_OK : code;
    ear->look[row] |= !ear->out[row];
    ear->heard += !ear->out[row] && !code;
}

/* Reports, once each time, that a GPU's events cannot arrive, or that they can again. */
static void tell_hearing(struct gpi_nvml_ear *ear, uint32_t row)
{
    const int32_t code = ear->refused[row];

    if (ear->out[row])
        return;
    if ((code != 0) != ear->told_deaf[row])
        tell(ear, GPI_INCIDENT_DEAF, row, (uint64_t)code);
    ear->told_deaf[row] = code != 0;
    if (code && !is_final(code))
        ear->again_at = gpi_time_add(gpi_now(), ear->again);
}

static void free_set(struct gpi_nvml_state *s)
{
    if (s->ear.set && s->call.events_free)
        (void)s->call.events_free(s->ear.set);
    s->ear.set = NULL;
}

static void tell_all_hearing(struct gpi_nvml_ear *ear, int32_t code)
{
    if ((code != 0) != ear->told_all_deaf)
        tell(ear, GPI_INCIDENT_DEAF, GPI_UNKNOWN32, (uint64_t)code);
    ear->told_all_deaf = code != 0;
}

static void give_up(struct gpi_nvml_state *s, int32_t code)
{
    free_set(s);
    s->ear.heard = 0;
    tell_all_hearing(&s->ear, code);
    s->ear.deaf = true;
}

/* Returns whether there is a set; if not, *ret_code has the reason. */
static bool make_set(struct gpi_nvml_state *s, int32_t *ret_code)
{
    const struct gpi_nvml *call = &s->call;
    struct gpi_nvml_ear *ear = &s->ear;

    free_set(s);
    ear->missed = ear->spoilt = false;
    ear->heard = 0;
    *ret_code = GPI_NVML_FUNCTION_NOT_FOUND;
    if (call->events_create && call->events_register && call->events_wait)
        *ret_code = call->events_create(&ear->set);
    if (*ret_code)
        ear->set = NULL;
    return !*ret_code;
}

static void hear_all(struct gpi_nvml_state *s)
{
    for (uint32_t i = 0; i < s->ear.table->n && !s->ear.spoilt; i++)
        if (is_whole(&s->ear.table->row[i]))
            hear(s, i);
}

/* There is no set, or no GPU in it. */
static void refused_all(struct gpi_nvml_state *s, int32_t code)
{
    if (is_final(code) && s->ear.again_at == GPI_NEVER) {
        give_up(s, code);
        return;
    }
    tell_all_hearing(&s->ear, code);
    s->ear.again_at = gpi_time_add(gpi_now(), s->ear.again);
}

static void register_all(struct gpi_nvml_state *s)
{
    struct gpi_nvml_ear *ear = &s->ear;
    int32_t code;

    ear->again_at = GPI_NEVER;
    do { /* each round requests less of some GPU */
        if (!make_set(s, &code)) {
            refused_all(s, code);
            return;
        }
        hear_all(s);
    } while (ear->spoilt);
    for (uint32_t i = 0; i < ear->table->n; i++)
        if (is_whole(&ear->table->row[i]))
            tell_hearing(ear, i);
    ear->back = false;
    if (!ear->table->n)
        ear->deaf = true; /* without GPUs there are no events, which is no news */
    else if (!ear->heard && !ear->missed)
        refused_all(s, GPI_NVML_NOT_SUPPORTED);
    else
        tell_all_hearing(ear, GPI_NVML_OK);
}

/* A registration that the driver refused a minute ago may succeed now. */
static void register_again(struct gpi_nvml_state *s)
{
    for (uint32_t i = 0; i < s->ear.table->n; i++)
        s->ear.ask[i] = ASK_FOR_ALL;
    register_all(s);
}

/* ---- events ---- */

/* Returns the row of an event: that of the instance it names, else that of its GPU. */
static uint32_t row_of(struct gpi_nvml_state *s, const struct gpi_nvml_event *e)
{
    const struct gpi_nvml_table *table = s->ear.table;
    char uuid[GPI_UUID_SIZE] = "";
    uint32_t gpu = GPI_UNKNOWN32;

    for (uint32_t i = 0; i < table->n; i++) {
        const struct gpi_nvml_row *row = &table->row[i];
        if (row->gpu != e->device)
            continue;
        if (is_whole(row))
            gpu = i;
        else if (row->gpu_instance == e->gpu_instance &&
                 row->gpu_instance != GPI_NVML_NO_INSTANCE &&
                 (row->compute_instance == e->compute_instance ||
                  e->compute_instance == GPI_NVML_NO_INSTANCE))
            return i;
    }
    if (gpu != GPI_UNKNOWN32 || s->call.uuid(e->device, uuid, GPI_NVML_UUID))
        return gpu;
    for (uint32_t i = 0; i < table->n; i++) /* the GPU has another handle */
        if (!strcmp(table->row[i].uuid, uuid))
            return i;
    return GPI_UNKNOWN32;
}

static void take(struct gpi_nvml_state *s, const struct gpi_nvml_event *e)
{
    struct gpi_nvml_ear *ear = &s->ear;
    const uint32_t row = row_of(s, e);

    if (e->type & GPI_EVENT_XID)
        tell(ear, GPI_INCIDENT_XID, row, e->data);
    for (uint32_t i = 0; i < ear->table->n; i++) /* a recovery action, or loss, may accompany it */
        if (is_whole(&ear->table->row[i]) &&
            (row == GPI_UNKNOWN32 || ear->table->row[i].handle == ear->table->row[row].gpu))
            ear->look[i] = true;
}

/* Reads all GPUs; returns whether one is out that was not. */
static bool look_at_all(struct gpi_nvml_state *s)
{
    struct gpi_nvml_ear *ear = &s->ear;
    bool found = false;

    for (uint32_t i = 0; i < ear->table->n; i++) {
        const bool was_out = ear->out[i];
        if (!is_whole(&ear->table->row[i]))
            continue;
        look(s, i);
        found |= ear->out[i] && !was_out;
    }
    return found;
}

/* A wait has failed: tries again without the GPUs that are out.  If none is newly out it does so
 * only once, and then after a minute. */
static void wait_failed(struct gpi_nvml_state *s, int32_t code)
{
    struct gpi_nvml_ear *ear = &s->ear;
    const bool found = look_at_all(s);

    if (!found && ear->failed_before) {
        free_set(s);
        ear->heard = 0;
        refused_all(s, code);
        return;
    }
    ear->failed_before = !found;
    register_all(s);
}

/* Returns how long await has no duty but to wait for events. */
static uint64_t patience(const struct gpi_nvml_ear *ear)
{
    const uint64_t most = (ear->missed ? RETRY_MS : PATIENT_MS) * GPI_MS, now = gpi_now();

    if (ear->again_at <= now)
        return 0;
    return gpi_time_min(most, ear->again_at - now);
}

/* Waits for an event.  If no GPU is registered the driver's wait may not block, so await sleeps
 * instead. */
static int32_t wait_for_event(struct gpi_nvml_state *s, struct gpi_nvml_event *ret)
{
    const uint64_t time = patience(&s->ear);
    const struct timespec pause = { (time_t)(time / GPI_S), (long)(time % GPI_S) };

    if (s->ear.heard)
        return s->call.events_wait(s->ear.set, ret, (uint32_t)((time + GPI_MS - 1) / GPI_MS));
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    return GPI_NVML_TIMEOUT;
}

static void look_at_those_out(struct gpi_nvml_state *s)
{
    for (uint32_t i = 0; i < s->ear.table->n; i++)
        if (s->ear.out[i])
            look(s, i);
}

static void wait_once(struct gpi_nvml_state *s)
{
    struct gpi_nvml_ear *ear = &s->ear;
    struct gpi_nvml_event e = { .gpu_instance = GPI_NVML_NO_INSTANCE,
                                .compute_instance = GPI_NVML_NO_INSTANCE };
    const int32_t code = wait_for_event(s, &e);

    if (code && code != GPI_NVML_TIMEOUT) {
        wait_failed(s, code);
        return;
    }
    ear->failed_before = false;
    if (!code)
        take(s, &e);
    else
        look_at_those_out(s);
}

void gpi_nvml_listen(void *state)
{
    struct gpi_nvml_state *s = state;

    if (s->ear.table)
        return;
    s->ear.table = s->table;
    register_all(s);
}

bool gpi_nvml_await(void *state, struct gpi_incident *ret)
{
    struct gpi_nvml_state *s = state;
    struct gpi_nvml_ear *ear = &s->ear;

    gpi_nvml_listen(s);
    while (ear->head == ear->tail) {
        if (ear->deaf)
            return false;
        look_where_asked(s);
        if (ear->head == ear->tail && !ear->back)
            wait_once(s);
        if (ear->again_at <= gpi_now())
            register_again(s);
        else if (ear->back)
            register_all(s); /* before the report: the next incident of that GPU must arrive */
    }
    *ret = ear->queue[ear->tail++ % GPI_HEARD_MAX];
    return true;
}
