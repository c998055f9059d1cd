/* SPDX-License-Identifier: MIT */
/* trace_world.c - the first line of a trace: devices, classes and policy. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/trace_json.h"

#define GIB (1ull << 30)
#define MOST_DEVICES 4096u
#define MOST_CLASSES 256u

static const struct gpi_trace_field world_fields[] = {
    { "devices", GPI_FIELD_LIST },
    { "classes", GPI_FIELD_OBJECT },
    { "policy", GPI_FIELD_OBJECT },
    { "write", GPI_FIELD_LIST },
    { 0 },
};
static const struct gpi_trace_field device_fields[] = {
    { "name", GPI_FIELD_TEXT },
    { "memory_gib", GPI_FIELD_GIB },
    { "cc", GPI_FIELD_TEXT },
    { "resident", GPI_FIELD_TEXT },
    { 0 },
};
static const struct gpi_trace_field class_fields[] = {
    { "resident", GPI_FIELD_FLAG },           { "transient", GPI_FIELD_FLAG },
    { "boot_s", GPI_FIELD_SECONDS },          { "unload_s", GPI_FIELD_SECONDS },
    { "boots_fail", GPI_FIELD_COUNT },        { "pinned", GPI_FIELD_FLAG },
    { "min_workers", GPI_FIELD_COUNT },       { "max_workers", GPI_FIELD_COUNT },
    { "min_residence_s", GPI_FIELD_SECONDS }, { "max_wait_s", GPI_FIELD_SECONDS },
    { "keep_alive_s", GPI_FIELD_SECONDS },    { "run_seed_s", GPI_FIELD_SECONDS },
    { "grace_s", GPI_FIELD_SECONDS },         { 0 },
};
static const struct gpi_trace_field policy_fields[] = {
    { "queue", GPI_FIELD_TEXT },        { "passing", GPI_FIELD_TEXT },
    { "cpus", GPI_FIELD_COUNT },        { "host_memory_gib", GPI_FIELD_GIB },
    { "headroom", GPI_FIELD_PART },     { "foreign_memory_gib", GPI_FIELD_GIB },
    { "foreign_load", GPI_FIELD_PART }, { 0 },
};

/* ---- devices ---- */

static int add_device(struct gpi_trace_reader *r, const json_t *o)
{
    struct gpi_trace *t = r->t;
    struct gpi_trace_device d = { 0 };
    const char *name;

    if (gpi_trace_check(r, o, device_fields, NULL) < 0)
        return -1;
    name = gpi_trace_text(o, "name");
    if (!name)
        return gpi_trace_complain(r, "name", "is missing at a device");
    if (json_object_get(r->devices, name))
        return gpi_trace_complain(r, name, "is the name of two devices");
    if (t->n_devices == MOST_DEVICES)
        return gpi_trace_complain(r, "devices", "are more than 4096");
    d.has.memory = gpi_trace_bytes(o, "memory_gib", 80 * GIB);
    if (gpi_trace_compute(r, o, "cc", &d.has.compute) < 0 ||
        gpi_trace_grow(r, &t->device, t->n_devices, sizeof *t->device) < 0)
        return -1;
    d.name = strdup(name);
    t->device[t->n_devices] = d;
    json_object_set_new(r->devices, name, json_integer(t->n_devices));
    t->n_devices++;
    return 0;
}

static int read_devices(struct gpi_trace_reader *r, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (add_device(r, json_array_get(list, i)) < 0)
            return -1;
    return 0;
}

/* ---- classes ---- */

static enum gpi_residence residence_of(const json_t *o)
{
    if (gpi_trace_flag(o, "resident"))
        return GPI_RESIDENT;
    return gpi_trace_flag(o, "transient") || gpi_trace_seconds(o, "boot_s", 0) ? GPI_TRANSIENT
                                                                               : GPI_EXTERNAL;
}

static int add_class(struct gpi_trace_reader *r, const char *name, const json_t *o)
{
    static const struct gpi_request one_device = { .devices = 1,
                                                   .share = GPI_SHARE_ALL,
                                                   .memory = GPI_MEMORY_ALL };
    struct gpi_trace *t = r->t;
    struct gpi_trace_class c = { .boots_fail = gpi_trace_count(o, "boots_fail", 0) };

    c.set = (struct gpi_plan_class){
        .residence = residence_of(o),
        .grace = gpi_trace_seconds(o, "grace_s", 0),
        .min_workers = gpi_trace_count(o, "min_workers", 0),
        .max_workers = gpi_trace_count(o, "max_workers", UINT32_MAX),
        .pinned = gpi_trace_flag(o, "pinned"),
        .min_residence = gpi_trace_seconds(o, "min_residence_s", 30 * GPI_S),
        .max_wait = gpi_trace_seconds(o, "max_wait_s", 300 * GPI_S),
        .keep_alive = gpi_trace_seconds(o, "keep_alive_s", GPI_NEVER),
        .boot = gpi_trace_seconds(o, "boot_s", 0),
        .unload = gpi_trace_seconds(o, "unload_s", 0),
        .run = gpi_trace_seconds(o, "run_seed_s", GPI_S),
    };
    if (gpi_trace_requests(r, o, &one_device, 1, c.set.need, &c.set.n_needs) < 0 ||
        gpi_trace_grow(r, &t->class, t->n_classes, sizeof *t->class) < 0)
        return -1;
    c.name = strdup(name);
    t->class[t->n_classes] = c;
    json_object_set_new(r->classes, name, json_integer(t->n_classes));
    t->n_classes++;
    return 0;
}

static int read_classes(struct gpi_trace_reader *r, json_t *classes)
{
    const char *name;
    json_t *o;

    json_object_foreach(classes, name, o)
    {
        if (gpi_trace_check(r, o, class_fields, gpi_trace_request_fields) < 0)
            return -1;
        if (gpi_trace_flag(o, "resident") && gpi_trace_flag(o, "transient"))
            return gpi_trace_complain(r, name, "is resident and transient");
        if (!*name || r->t->n_classes == MOST_CLASSES)
            return gpi_trace_complain(r, "classes",
                                      *name ? "are more than 255" : "have one without a name");
        if (add_class(r, name, o) < 0)
            return -1;
    }
    return 0;
}

/* ---- workers at the start ---- */

static int add_warm(struct gpi_trace_reader *r, const json_t *o, uint32_t device,
                    struct gpi_trace_warm *open)
{
    struct gpi_trace *t = r->t;
    const char *name = gpi_trace_text(o, "resident");
    uint32_t class;

    if (!name)
        return 0;
    if (gpi_trace_find(r, r->classes, "resident", name, &class) < 0)
        return -1;
    if (t->class[class].set.residence != GPI_RESIDENT)
        return gpi_trace_complain(r, "resident", "names a class that is not resident");
    if (t->class[class].set.need[0].devices == 0)
        return gpi_trace_complain(r, "resident", "names a class whose workers have no device");
    open[class].class = class;
    open[class].device[open[class].n++] = (uint16_t)device;
    if (open[class].n < t->class[class].set.need[0].devices)
        return 0;
    if (gpi_trace_grow(r, &t->warm, t->n_warm, sizeof *t->warm) < 0)
        return -1;
    t->warm[t->n_warm++] = open[class];
    open[class].n = 0;
    return 0;
}

/* `open`: of each class the worker that still lacks devices. */
static int read_warm(struct gpi_trace_reader *r, const json_t *list)
{
    struct gpi_trace_warm *open = calloc(r->t->n_classes, sizeof *open);
    int e = open ? 0 : gpi_trace_complain(r, NULL, "there is no memory left");

    for (size_t i = 0; e == 0 && i < json_array_size(list); i++)
        e = add_warm(r, json_array_get(list, i), (uint32_t)i, open);
    for (uint32_t i = 0; e == 0 && i < r->t->n_classes; i++)
        if (open[i].n)
            e = gpi_trace_complain(r, "resident", "names a class on too few devices for a worker");
    free(open);
    return e;
}

/* ---- policy ---- */

static int read_policy(struct gpi_trace_reader *r, const json_t *o)
{
    static const char *const modes[] = { "backfill", "strict", NULL };
    static const char *const passings[] = { "learned", "apart", "promise", "naive", NULL };
    const char *queue = gpi_trace_text(o, "queue"), *passing = gpi_trace_text(o, "passing");
    struct gpi_plan_settings *s = &r->t->set;
    int mode, way;

    if (o && gpi_trace_check(r, o, policy_fields, NULL) < 0)
        return -1;
    mode = gpi_trace_word(r, "queue", queue ? queue : "backfill", modes);
    way = mode < 0 ? -1 : gpi_trace_word(r, "passing", passing ? passing : "learned", passings);
    if (way < 0)
        return -1;
    s->mode = (enum gpi_mode)mode;
    s->passing = (enum gpi_passing)way;
    s->cpus = gpi_trace_count(o, "cpus", 0);
    s->host_memory = gpi_trace_bytes(o, "host_memory_gib", UINT64_MAX / 2);
    s->headroom = gpi_trace_part(o, "headroom", GPI_SHARE_ALL / 10);
    s->least_headroom = s->headroom ? GIB / 2 : 0;
    s->foreign_memory = gpi_trace_bytes(o, "foreign_memory_gib", GIB);
    s->foreign_load = gpi_trace_part(o, "foreign_load", 0);
    return 0;
}

static int read_write(struct gpi_trace_reader *r, const json_t *list)
{
    static const char *const kinds[] = { "devices", "tasks", "promises", NULL };
    int kind;

    r->t->write = list ? 0 : GPI_WRITE_DEVICES | GPI_WRITE_TASKS | GPI_WRITE_PROMISES;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        kind = gpi_trace_word(r, "write", word ? word : "", kinds);
        if (kind < 0)
            return -1;
        r->t->write |= 1u << kind;
    }
    return 0;
}

int gpi_trace_world(struct gpi_trace_reader *r, const json_t *o)
{
    const json_t *devices = json_object_get(o, "devices");
    json_t *classes = json_object_get(o, "classes");

    if (gpi_trace_check(r, o, world_fields, NULL) < 0 ||
        read_policy(r, json_object_get(o, "policy")) < 0 ||
        read_write(r, json_object_get(o, "write")) < 0 || read_devices(r, devices) < 0)
        return -1;
    return add_class(r, "", NULL) < 0 || read_classes(r, classes) < 0 || read_warm(r, devices) < 0
               ? -1
               : 0;
}
