/* SPDX-License-Identifier: MIT */
#include "log/fact_shape.h"

#include <string.h>

#include "base/clock.h"

#define F(form) GPI_FACT_##form
#define AT(member) offsetof(struct gpi_fact, member)
#define OR(value) true, (value)
#define NEEDED false, 0
#define TASK { "t", F(NUMBER), AT(task), NEEDED, NULL }
#define CLASS { "c", F(NUMBER), AT(class), NEEDED, NULL }
#define WORKER { "w", F(NUMBER), AT(worker), NEEDED, NULL }
#define DEVICE { "d", F(NUMBER), AT(device), NEEDED, NULL }
#define GIB (1ull << 30)

#define MODE_WORDS "backfill strict"
#define PASSING_WORDS "learned apart promise naive"
#define RESIDENCE_WORDS "external resident transient"
#define MAY_WORDS "in paused drained out gone"
#define CLASS_SET_WORDS "pause resume drain load unload pin unpin end remove"

const struct gpi_fact_shape gpi_fact_shapes[GPI_FACTS] = {
    [GPI_FACT_PLAN] = { "plan",
        { { "tasks", F(NUMBER), AT(plan.tasks), OR(64), NULL },
          { "shapes", F(NUMBER), AT(plan.shapes), OR(64), NULL },
          { "classes", F(NUMBER), AT(plan.classes), OR(4), NULL },
          { "devices", F(NUMBER), AT(plan.devices), OR(16), NULL },
          { "runs", F(NUMBER), AT(plan.runs), OR(64), NULL },
          { "sets", F(NUMBER), AT(plan.place_sets), OR(0), NULL },
          { "mode", F(WORD), AT(plan.mode), OR(0), MODE_WORDS },
          { "passing", F(WORD), AT(plan.passing), OR(0), PASSING_WORDS },
          { "cpus", F(NUMBER), AT(plan.cpus), OR(0), NULL },
          { "host_memory", F(BYTES), AT(plan.host_memory), OR(0), NULL },
          { "headroom", F(NUMBER), AT(plan.headroom), OR(0), NULL },
          { "least_headroom", F(BYTES), AT(plan.least_headroom), OR(0), NULL },
          { "foreign_memory", F(BYTES), AT(plan.foreign_memory), OR(GIB), NULL },
          { "foreign_load", F(NUMBER), AT(plan.foreign_load), OR(0), NULL } } },
    [GPI_FACT_DEVICE] = { "device",
        { { NULL, F(NUMBER), AT(device), NEEDED, NULL },
          { "memory", F(BYTES), AT(has.memory), OR(0), NULL },
          { "compute", F(NUMBER), AT(has.compute), OR(0), NULL } } },
    [GPI_FACT_PLACES] = { "places",
        { { NULL, F(NUMBER), AT(set), NEEDED, NULL }, { "d", F(LIST), AT(list), OR(0), NULL } } },
    [GPI_FACT_CLASS] = { "class",
        { { NULL, F(NUMBER), AT(class), NEEDED, NULL },
          { "residence", F(WORD), AT(is.residence), OR(GPI_EXTERNAL), RESIDENCE_WORDS },
          { "grace", F(TIME), AT(is.grace), OR(0), NULL },
          { "min_workers", F(NUMBER), AT(is.min_workers), OR(0), NULL },
          { "max_workers", F(NUMBER), AT(is.max_workers), OR(UINT32_MAX), NULL },
          { "pinned", F(FLAG), AT(is.pinned), OR(0), NULL },
          { "min_residence", F(TIME), AT(is.min_residence), OR(0), NULL },
          { "max_wait", F(TIME), AT(is.max_wait), OR(GPI_NEVER), NULL },
          { "keep_alive", F(TIME), AT(is.keep_alive), OR(GPI_NEVER), NULL },
          { "boot", F(TIME), AT(is.boot), OR(0), NULL },
          { "unload", F(TIME), AT(is.unload), OR(0), NULL },
          { "run", F(TIME), AT(is.run), OR(0), NULL },
          { "need", F(REQUESTS), AT(request), OR(0), NULL } } },
    [GPI_FACT_WARM] = { "warm", { CLASS, { "d", F(LIST), AT(list), OR(0), NULL } } },
    [GPI_FACT_SUBMIT] = { "submit",
        { TASK, CLASS,
          { "priority", F(SIGNED), AT(job.priority), OR(0), NULL },
          { "order", F(BIG), AT(job.order), NEEDED, NULL },
          { "limit", F(TIME), AT(job.limit), OR(GPI_NEVER), NULL },
          { "stream", F(FLAG), AT(job.stream), OR(0), NULL },
          { "need", F(REQUESTS), AT(request), OR(0), NULL } } },
    [GPI_FACT_WITHDRAW] = { "withdraw", { TASK } },
    [GPI_FACT_END] = { "end",
        { TASK,
          { "good", F(FLAG), AT(good), OR(1), NULL },
          { "run", F(TIME), AT(run), OR(0), NULL },
          { "keep_alive", F(TIME), AT(keep_alive), OR(0), NULL } } },
    [GPI_FACT_ENDS_BY] = { "ends_by", { TASK, { "at", F(TIME), AT(at), NEEDED, NULL } } },
    [GPI_FACT_UP] = { "up", { WORKER } },
    [GPI_FACT_LEAVES] = { "leaves", { WORKER } },
    [GPI_FACT_GONE] = { "gone", { WORKER, { "again", F(TIME), AT(again), OR(0), NULL } } },
    [GPI_FACT_STATE] = { "state", { DEVICE, { "may", F(WORD), AT(what), NEEDED, MAY_WORDS } } },
    [GPI_FACT_FOREIGN] = { "foreign",
        { DEVICE,
          { "memory", F(BYTES), AT(bytes), OR(0), NULL },
          { "load", F(NUMBER), AT(load), OR(0), NULL } } },
    [GPI_FACT_OBSERVED] = { "observed",
        { WORKER, DEVICE, { "memory", F(BYTES), AT(bytes), NEEDED, NULL } } },
    [GPI_FACT_OBSERVED_OF] = { "observed_of",
        { TASK, DEVICE, { "memory", F(BYTES), AT(bytes), NEEDED, NULL } } },
    [GPI_FACT_ADOPT] = { "adopt",
        { TASK,
          { "c", F(NUMBER), AT(class), OR(0), NULL },
          { "d", F(LIST), AT(list), OR(0), NULL },
          { "limit", F(TIME), AT(job.limit), OR(GPI_NEVER), NULL },
          { "at", F(TIME), AT(at), OR(GPI_NEVER), NULL },
          { "grant", F(NUMBER), AT(grant), OR(1), NULL },
          { "attempts", F(NUMBER), AT(attempts), OR(0), NULL },
          { "given_up", F(FLAG), AT(given_up), OR(0), NULL },
          { "need", F(REQUESTS), AT(request), OR(0), NULL } } },
    [GPI_FACT_CLASS_SET] = { "class_set",
        { CLASS, { "what", F(WORD), AT(what), NEEDED, CLASS_SET_WORDS } } },
    [GPI_FACT_QUEUE] = { "queue",
        { CLASS,
          { "n", F(NUMBER), AT(queued), NEEDED, NULL },
          { "run", F(TIME), AT(run), OR(0), NULL } } },
    [GPI_FACT_DECIDE] = { "decide", { { 0 } } },
};

#define IN(member) offsetof(struct gpi_request, member)
const struct gpi_fact_field gpi_fact_request_fields[GPI_FACT_REQUEST_FIELDS] = {
    { "devices", F(NUMBER), IN(devices), NEEDED, NULL },
    { "share", F(NUMBER), IN(share), OR(GPI_SHARE_ALL), NULL },
    { "cpus", F(NUMBER), IN(cpus), OR(0), NULL },
    { "compute", F(NUMBER), IN(compute), OR(0), NULL },
    { "places", F(NUMBER), IN(places), OR(GPI_PLACES_ANY), NULL },
    { "memory", F(BYTES), IN(memory), OR(GPI_MEMORY_ALL), NULL },
    { "host_memory", F(BYTES), IN(host_memory), OR(0), NULL },
};

const struct gpi_line_unit gpi_fact_byte_units[GPI_FACT_BYTE_UNITS] = {
    { "GiB", GIB }, { "MiB", 1ull << 20 }, { "KiB", 1024 }, { "", 1 }
};

/* ---- values in records ---- */

static bool is_wide(enum gpi_fact_form form)
{
    return form == GPI_FACT_BIG || form == GPI_FACT_TIME || form == GPI_FACT_BYTES;
}

uint64_t gpi_fact_value(const void *record, const struct gpi_fact_field *f)
{
    const unsigned char *at = (const unsigned char *)record + f->at;
    uint64_t wide = 0;
    uint32_t number = 0;

    if (f->form == GPI_FACT_FLAG)
        return *(const bool *)at;
    if (is_wide(f->form))
        memcpy(&wide, at, sizeof wide);
    else
        memcpy(&number, at, sizeof number);
    return is_wide(f->form) ? wide : number;
}

void gpi_fact_put(void *record, const struct gpi_fact_field *f, uint64_t value)
{
    unsigned char *at = (unsigned char *)record + f->at;
    const uint32_t number = (uint32_t)value;

    if (f->form == GPI_FACT_FLAG)
        *(bool *)at = value;
    else if (is_wide(f->form))
        memcpy(at, &value, sizeof value);
    else
        memcpy(at, &number, sizeof number);
}

bool gpi_fact_is_field(const struct gpi_fact_shape *s, uint32_t i)
{
    return i < GPI_FACT_FIELDS_MAX && (s->field[i].name || s->field[i].at);
}

/* ---- classes ---- */

struct gpi_plan_class gpi_fact_class(const struct gpi_fact *f)
{
    struct gpi_plan_class c = f->is;

    memcpy(c.need, f->request, sizeof c.need);
    c.n_needs = f->n_requests;
    return c;
}

struct gpi_fact gpi_fact_of_class(uint32_t class, const struct gpi_plan_class *set)
{
    struct gpi_fact f = { .kind = GPI_FACT_CLASS, .class = class, .n_requests = set->n_needs };

    f.is = *set;
    memcpy(f.request, set->need, sizeof f.request);
    return f;
}
