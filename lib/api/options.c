/* SPDX-License-Identifier: MIT */
#include "api/options.h"

#include <string.h>

#include "base/failure.h"
#include "os/memory.h"

#define QUEUE_MAX 1048576u

static uint64_t or_default(uint64_t given, uint64_t otherwise)
{
    return given ? given : otherwise;
}

static int too_big(struct gpud_error *e, const char *field, uint64_t value, uint64_t max)
{
    return gpi_fail(e, GPUD_EINVAL, 0, field, "%s is %llu, at most %llu is possible", field, (unsigned long long)value, (unsigned long long)max);
}

static int find_definition(const struct gpi_process *p, const char *name, uint32_t *ret, struct gpud_error *e)
{
    if (!name) {
        *ret = 0;
        return p->n_definitions == 1 ? 0 : gpi_fail(e, GPUD_EINVAL, 0, "definition", "name one of the %u definitions", p->n_definitions);
    }
    for (uint32_t i = 0; i < p->n_definitions; i++)
        if (!strcmp(p->definition[i].name, name)) {
            *ret = i;
            return 0;
        }
    return gpi_fail(e, GPUD_ENODEFINITION, 0, "definition", "no definition is named \"%.80s\"", name);
}

int gpi_options_read(struct gpi_settings *ret, const struct gpud_options *o, const struct gpi_process *p, struct gpud_error *e)
{
    struct gpi_settings s = {
        .drive = o->drive,
        .queue_size = o->queue_size ? o->queue_size : 1024,
        .sent_ahead = o->sent_ahead,
        .max_attempts = o->max_attempts ? o->max_attempts : 1,
        .log_level = o->log_level ? o->log_level : GPUD_LEVEL_INFO,
        .slot_events = o->slot_events,
        .payload_budget = o->payload_budget,
        .seed = o->seed,
        .setup_limit = or_default(o->setup_limit, 900 * GPI_S),
        .task_limit = or_default(o->task_limit, GPI_NEVER),
        .grace = or_default(o->grace, 2 * GPI_S),
        .cleanup_limit = or_default(o->cleanup_limit, 10 * GPI_S),
        .close_limit = or_default(o->close_limit, 30 * GPI_S),
        .kill_limit = or_default(o->kill_limit, 10 * GPI_S),
        .restart = {
            .backoff = or_default(o->backoff, GPI_S),
            .cap = or_default(o->backoff_cap, 60 * GPI_S),
            .failures_in_a_row = o->failures_in_a_row ? o->failures_in_a_row : 3,
        },
    };
    int r = find_definition(p, o->definition, &s.definition, e);

    if (r)
        return r;
    if (o->drive > GPUD_DRIVE_CALLER)
        return too_big(e, "drive", o->drive, GPUD_DRIVE_CALLER);
    if (o->queue_size > QUEUE_MAX)
        return too_big(e, "queue_size", o->queue_size, QUEUE_MAX);
    if (o->sent_ahead > GPI_CELLS)
        return too_big(e, "sent_ahead", o->sent_ahead, GPI_CELLS);
    if (o->max_attempts > UINT8_MAX)
        return too_big(e, "max_attempts", o->max_attempts, UINT8_MAX);
    if (o->log_level > GPUD_LEVEL_DEBUG)
        return too_big(e, "log_level", o->log_level, GPUD_LEVEL_DEBUG);
    if (o->slot_events > 1)
        return too_big(e, "slot_events", o->slot_events, 1);
    if (o->setup_size && !o->setup_data)
        return gpi_fail(e, GPUD_EINVAL, 0, "setup_data", "setup_data is NULL and setup_size is %llu", (unsigned long long)o->setup_size);
    if (s.restart.cap < s.restart.backoff)
        s.restart.cap = s.restart.backoff;
    *ret = s;
    return 0;
}

int gpi_options_share(struct gpi_settings *s, uint32_t n_slots, struct gpud_error *e)
{
    const uint64_t least = 2 * (2 * GPI_CHUNK + (uint64_t)n_slots * GPI_GRANULE);
    uint64_t file = gpi_memory_file_limit() & ~(GPI_CHUNK - 1);

    if (s->payload_budget == 0) {
        s->payload_budget = gpi_memory_headroom() / 4;
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
