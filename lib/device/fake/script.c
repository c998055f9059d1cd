/* SPDX-License-Identifier: MIT */
#include "device/fake/script.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/fake/lines.h"
#include "gpudispatch/device.h"

/* ---- devices ---- */

uint32_t gpi_script_gpus(const struct gpi_script *s)
{
    return s->gpus;
}

uint32_t gpi_script_rows(const struct gpi_script *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->gpus; i++)
        n += 1 + s->gpu[i].parts;
    return n;
}

uint32_t gpi_script_row(const struct gpi_script *s, uint32_t gpu, uint32_t part)
{
    uint32_t row = 0;

    if (gpu >= s->gpus || (part != GPI_UNKNOWN32 && part >= s->gpu[gpu].parts))
        return GPI_UNKNOWN32;
    for (uint32_t i = 0; i < gpu; i++)
        row += 1 + s->gpu[i].parts;
    return part == GPI_UNKNOWN32 ? row : row + 1 + part;
}

/* The reverse; `row` must be one of the script's rows. */
static void place_of(const struct gpi_script *s, uint32_t row, uint32_t *ret_gpu,
                     uint32_t *ret_part)
{
    uint32_t gpu = 0;

    for (; gpu + 1 < s->gpus && row > s->gpu[gpu].parts; gpu++)
        row -= 1 + s->gpu[gpu].parts;
    *ret_gpu = gpu;
    *ret_part = row ? row - 1 : GPI_UNKNOWN32;
}

void gpi_script_identity(const struct gpi_script *s, uint32_t row, struct gpi_device *ret)
{
    const struct gpi_script_gpu *g;
    struct gpi_script_state start;
    uint32_t gpu, part;

    place_of(s, row, &gpu, &part);
    g = &s->gpu[gpu];
    gpi_script_state(s, NULL, row, 0, &start);
    *ret = (struct gpi_device){ .kind = GPUD_DEVICE_FAKE,
                                .index = gpu,
                                .mig_index = part,
                                .compute_major = g->major,
                                .compute_minor = g->minor_cc,
                                .compute_mode = start.compute_mode,
                                .numa_node = g->numa,
                                .minor = g->minor == GPI_UNKNOWN32 ? gpu : g->minor,
                                .memory_total = g->memory == GPI_UNKNOWN64 ? 0 : g->memory };
    memcpy(ret->model, g->model, sizeof(ret->model));
    memcpy(ret->pci, g->pci, sizeof(ret->pci));
    if (part == GPI_UNKNOWN32) {
        ret->mig_parts = g->parts;
        (void)snprintf(ret->name, sizeof(ret->name), "fake:%u", gpu);
        memcpy(ret->uuid, g->uuid, sizeof(ret->uuid));
        return;
    }
    (void)snprintf(ret->name, sizeof(ret->name), "fake:%u:%u", gpu, part);
    ret->memory_total = g->part[part].memory;
    memcpy(ret->uuid, g->part[part].uuid, sizeof(ret->uuid));
    memcpy(ret->mig_profile, g->part[part].profile, sizeof(ret->mig_profile));
    memcpy(ret->parent_uuid, g->uuid, sizeof(ret->parent_uuid));
}

/* ---- awaited files ---- */

uint32_t gpi_script_triggers(const struct gpi_script *s)
{
    return s->triggers;
}

bool gpi_script_look(const struct gpi_script *s, uint64_t *fired, uint64_t t)
{
    bool found = false;

    for (uint32_t i = 0; i < s->triggers; i++)
        if (fired[i] == GPI_NEVER && !access(s->trigger[i], F_OK))
            fired[i] = t, found = true;
    return found;
}

/* ---- lines in effect ---- */

/* Returns when a line takes effect. */
static uint64_t time_of(const struct gpi_effect *e, const uint64_t *fired)
{
    if (e->trigger == GPI_UNKNOWN32)
        return e->offset;
    return fired ? gpi_time_add(fired[e->trigger], e->offset) : GPI_NEVER;
}

static bool of_driver(const struct gpi_effect *e)
{
    return e->first == GPI_UNKNOWN32;
}

/* A GPU or instance at a time. */
struct view {
    const struct gpi_script *s;
    const uint64_t *fired;
    uint64_t t;
    uint32_t gpu, part;
};

/* Returns whether a line is about the GPU or instance; a line about the driver is about neither. */
static bool speaks_of(const struct gpi_effect *e, const struct view *v)
{
    if (of_driver(e) || v->gpu < e->first || v->gpu > e->last)
        return false;
    if (e->part == v->part)
        return true;
    return e->part == GPI_UNKNOWN32 && e->verb != GPI_VERB_FOREIGN && e->verb != GPI_VERB_GONE &&
           !(e->verb == GPI_VERB_SET && e->setting == GPI_SET_USED);
}

/* A line, and when it took effect. */
struct dated {
    const struct gpi_effect *line; /* NULL = none yet */
    uint64_t time;
};

/* Moves to the next line that has taken effect: *at is zero before the first call. */
static bool next_line(const struct view *v, struct dated *at)
{
    const struct gpi_effect *e = at->line ? at->line + 1 : v->s->effect;

    for (; e < v->s->effect + v->s->effects; e++) {
        *at = (struct dated){ e, time_of(e, v->fired) };
        if (at->time <= v->t && at->time != GPI_NEVER)
            return true;
    }
    return false;
}

/* Keeps the later of two lines; of two with the same time, the lower one. */
static void take_later(struct dated *l, const struct dated *at)
{
    if (!l->line || at->time > l->time || (at->time == l->time && at->line > l->line))
        *l = *at;
}

static bool is_later(const struct dated *a, const struct dated *b)
{
    if (!a->line || !b->line)
        return a->line;
    return a->time > b->time || (a->time == b->time && a->line > b->line);
}

/* ---- the state at time t ---- */

void gpi_script_driver(const struct gpi_script *s, const uint64_t *fired, uint64_t t,
                       struct gpi_script_driver *ret)
{
    const struct view v = { .s = s, .fired = fired, .t = t };
    struct dated state = { NULL, 0 }, processes = { NULL, 0 }, at = { NULL, 0 };

    *ret =
        (struct gpi_script_driver){ .cuda_version = s->cuda_version, .entry_size = s->entry_size };
    memcpy(ret->version, s->version, sizeof(ret->version));
    memcpy(ret->nvml_version, s->nvml, sizeof(ret->nvml_version));
    while (next_line(&v, &at)) {
        if (!of_driver(at.line))
            continue;
        ret->deaf |= at.line->verb == GPI_VERB_DEAF;
        if (at.line->verb == GPI_VERB_SET)
            take_later(at.line->setting == GPI_SET_STATE ? &state : &processes, &at);
    }
    ret->state = state.line ? (uint32_t)state.line->value : GPUD_DRIVER_OK;
    ret->hides_processes = processes.line && processes.line->value;
}

static void find_settings(const struct view *v, struct dated *set)
{
    struct dated at = { NULL, 0 };

    while (next_line(v, &at))
        if (at.line->verb == GPI_VERB_SET && speaks_of(at.line, v))
            take_later(&set[at.line->setting], &at);
}

static uint64_t value_of(const struct dated *set, enum gpi_setting which)
{
#define GPI_X_OTHERWISE(name, key, how, otherwise) otherwise,
    static const uint64_t otherwise[] = { GPI_SETTING_MAP(GPI_X_OTHERWISE) };
#undef GPI_X_OTHERWISE

    return set[which].line ? set[which].line->value : otherwise[which];
}

static uint32_t small_of(const struct dated *set, enum gpi_setting which)
{
    const uint64_t value = value_of(set, which);

    return value == GPI_UNKNOWN64 ? GPI_UNKNOWN32 : (uint32_t)value;
}

/* Returns the memory that this line's process holds. */
static uint64_t held_at(const struct dated *at, uint64_t t, uint64_t total)
{
    const double bytes =
        (double)at->line->value + (double)at->line->more * ((double)(t - at->time) / (double)GPI_S);

    return bytes < (double)total ? (uint64_t)bytes : total;
}

/* Returns whether no later line is about the same process. */
static bool is_last_of_pid(const struct view *v, const struct dated *it)
{
    struct dated at = { NULL, 0 };

    while (next_line(v, &at))
        if ((at.line->verb == GPI_VERB_FOREIGN || at.line->verb == GPI_VERB_GONE) &&
            at.line->pid == it->line->pid && speaks_of(at.line, v) && is_later(&at, it))
            return false;
    return true;
}

static void find_memory(const struct view *v, const struct dated *used, struct gpi_sample *x)
{
    const struct gpi_script_gpu *g = &v->s->gpu[v->gpu];
    const uint64_t total = v->part == GPI_UNKNOWN32 ? g->memory : g->part[v->part].memory;
    struct dated at = { NULL, 0 };
    uint64_t sum = 0;

    if (used->line)
        sum = used->line->more
                  ? total / 100 * used->line->value + total % 100 * used->line->value / 100
                  : used->line->value;
    sum = sum < total ? sum : total;
    while (next_line(v, &at)) {
        uint64_t held;
        if (at.line->verb != GPI_VERB_FOREIGN || !speaks_of(at.line, v) || !is_last_of_pid(v, &at))
            continue;
        held = held_at(&at, v->t, total);
        gpi_sample_add_user(x, at.line->pid, held);
        sum = held < total - sum ? sum + held : total;
    }
    x->users_known = 1;
    x->memory_total = total;
    x->memory_used = total == GPI_UNKNOWN64 ? total : sum;
    x->memory_free = total == GPI_UNKNOWN64 ? total : total - sum;
}

static void worth_of(uint32_t access, struct gpi_sample *x)
{
    static const struct { uint32_t reading, code;
    } worth[] = {
        [GPI_ACCESS_OK] = { GPI_READ_OK, 0 },
        [GPI_ACCESS_DENIED] = { GPI_READ_UNKNOWN, 4 },
        [GPI_ACCESS_LOST] = { GPI_READ_LOST, 15 },
        [GPI_ACCESS_RESET] = { GPI_READ_RESET, 16 },
        [GPI_ACCESS_REVOKED] = { GPI_READ_REVOKED, 999 },
    };

    x->reading = worth[access].reading;
    x->code = worth[access].code;
}

void gpi_script_state(const struct gpi_script *s, const uint64_t *fired, uint32_t row, uint64_t t,
                      struct gpi_script_state *ret)
{
    struct view v = { .s = s, .fired = fired, .t = t };
    struct dated set[GPI_SETTINGS] = { { NULL, 0 } };

    place_of(s, row, &v.gpu, &v.part);
    find_settings(&v, set);
    *ret = (struct gpi_script_state){
        .access = small_of(set, GPI_SET_ACCESS),
        .compute_mode = small_of(set, GPI_SET_MODE),
        .boot = value_of(set, GPI_SET_BOOT),
        .late = value_of(set, GPI_SET_LATE),
        .canary_fails = small_of(set, GPI_SET_CANARY),
        .canary_turn = set[GPI_SET_CANARY].line
                           ? (uint32_t)(set[GPI_SET_CANARY].line - s->effect) + 1
                           : 0,
        .sample = {
            .throttle = value_of(set, GPI_SET_THROTTLE),
            .ecc_corrected = value_of(set, GPI_SET_ECC_CORRECTED),
            .ecc_uncorrected = value_of(set, GPI_SET_ECC_UNCORRECTED),
            .utilization = small_of(set, GPI_SET_UTILIZATION),
            .memory_utilization = small_of(set, GPI_SET_MEMORY_UTILIZATION),
            .temperature = small_of(set, GPI_SET_TEMPERATURE),
            .power = small_of(set, GPI_SET_POWER),
            .power_limit = small_of(set, GPI_SET_POWER_LIMIT),
            .sm_clock = small_of(set, GPI_SET_CLOCK),
            .remapped_rows = small_of(set, GPI_SET_REMAPPED),
            .remap_pending = small_of(set, GPI_SET_REMAP_PENDING),
            .remap_failed = small_of(set, GPI_SET_REMAP_FAILED),
            .recovery = small_of(set, GPI_SET_RECOVERY),
        },
    };
    worth_of(ret->access, &ret->sample);
    find_memory(&v, &set[GPI_SET_USED], &ret->sample);
}

bool gpi_script_canary_fails(struct gpi_script_canary *c, const struct gpi_script_state *now)
{
    if (c->turn != now->canary_turn)
        *c = (struct gpi_script_canary){ .turn = now->canary_turn };
    if (now->canary_fails == GPI_UNKNOWN32)
        return true;
    if (c->done >= now->canary_fails)
        return false;
    c->done++;
    return true;
}

void gpi_script_call(const struct gpi_script *s, const uint64_t *fired, uint32_t row,
                     const char *call, const char *group, uint64_t t, struct gpi_script_call *ret)
{
    struct view v = { .s = s, .fired = fired, .t = t };
    struct dated said[GPI_VERB_DEAF + 1] = { { NULL, 0 } }, at = { NULL, 0 };
    const struct dated *const mend = &said[GPI_VERB_MEND];

    if (row != GPI_UNKNOWN32)
        place_of(s, row, &v.gpu, &v.part);
    while (next_line(&v, &at)) {
        const struct gpi_effect *e = at.line;
        if (!*e->call || (strcmp(e->call, call) != 0 && (!group || strcmp(e->call, group) != 0)))
            continue;
        if (of_driver(e) || (row != GPI_UNKNOWN32 && speaks_of(e, &v)))
            take_later(&said[e->verb], &at);
    }
    *ret = (struct gpi_script_call){ .hangs = is_later(&said[GPI_VERB_HANG], mend) };
    if (is_later(&said[GPI_VERB_SLOW], mend))
        ret->delay = said[GPI_VERB_SLOW].line->value;
    if (is_later(&said[GPI_VERB_FAIL], mend)) {
        ret->code = (int32_t)said[GPI_VERB_FAIL].line->value;
        ret->times = (uint32_t)said[GPI_VERB_FAIL].line->more;
        ret->turn = (uint32_t)(said[GPI_VERB_FAIL].line - s->effect) + 1;
    }
}

/* ---- incidents ---- */

/* Returns the incident that a line makes; kind 0 = none. */
static struct gpi_incident told_by(const struct gpi_effect *e)
{
    struct gpi_incident i = { .device = GPI_UNKNOWN32 };

    if (e->verb == GPI_VERB_XID)
        i.kind = GPI_INCIDENT_XID, i.number = e->value;
    else if (e->verb == GPI_VERB_DEAF)
        i.kind = GPI_INCIDENT_DEAF, i.number = 999;
    else if (e->verb == GPI_VERB_SET && e->begins && e->setting == GPI_SET_ACCESS &&
             e->value == GPI_ACCESS_LOST)
        i.kind = GPI_INCIDENT_LOST;
    else if (e->verb == GPI_VERB_SET && e->begins && e->setting == GPI_SET_RECOVERY &&
             e->value != GPI_UNKNOWN64)
        i.kind = GPI_INCIDENT_RECOVERY, i.number = e->value;
    return i;
}

static bool is_before(const struct gpi_script_cursor *a, const struct gpi_script_cursor *b)
{
    if (a->time != b->time)
        return a->time < b->time;
    return a->line != b->line ? a->line < b->line : a->row < b->row;
}

/* Finds the first place at or behind the cursor where this line makes an incident: of the driver at
 * row 0, of a GPU at its number.  Returns false if there is none. */
static bool next_of(const struct gpi_script *s, const struct gpi_effect *e, const uint64_t *fired,
                    const struct gpi_script_cursor *c, struct gpi_script_cursor *ret)
{
    const uint32_t line = (uint32_t)(e - s->effect), first = of_driver(e) ? 0 : e->first,
                   last = of_driver(e) ? 0 : e->last;

    *ret = (struct gpi_script_cursor){ .time = time_of(e, fired), .line = line, .row = first };
    if (ret->time == GPI_NEVER || !told_by(e).kind)
        return false;
    if (is_before(ret, c))
        ret->row = ret->time == c->time && ret->line == c->line ? c->row : GPI_UNKNOWN32;
    return ret->row <= last && (of_driver(e) || ret->row < s->gpus);
}

bool gpi_script_incident(const struct gpi_script *s, const uint64_t *fired,
                         struct gpi_script_cursor *c, uint64_t until, struct gpi_incident *ret)
{
    struct gpi_script_cursor best = { .time = until }, at;
    const struct gpi_effect *e;

    for (e = s->effect; e < s->effect + s->effects; e++)
        if (next_of(s, e, fired, c, &at) && is_before(&at, &best))
            best = at;
    if (best.time >= until) {
        *c = is_before(c, &best) ? best : *c;
        return false;
    }
    e = &s->effect[best.line];
    *ret = told_by(e);
    ret->at = best.time;
    if (!of_driver(e))
        ret->device = gpi_script_row(s, best.row, e->part);
    best.row++;
    *c = best;
    return true;
}

uint64_t gpi_script_next(const struct gpi_script *s, const uint64_t *fired, uint64_t t)
{
    uint64_t next = GPI_NEVER;

    for (const struct gpi_effect *e = s->effect; e < s->effect + s->effects; e++) {
        const uint64_t time = time_of(e, fired);
        if (time > t)
            next = gpi_time_min(next, time);
    }
    return next;
}
