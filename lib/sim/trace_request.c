/* SPDX-License-Identifier: MIT */
/* trace_request.c - the requests of a class or a task, in up to four variants. */
#include <stdlib.h>
#include <string.h>

#include "sim/trace_json.h"

const struct gpi_trace_field gpi_trace_request_fields[] = {
    { "devices", GPI_FIELD_COUNT },
    { "share", GPI_FIELD_PART },
    { "memory_gib", GPI_FIELD_GIB },
    { "cpus", GPI_FIELD_COUNT },
    { "host_memory_gib", GPI_FIELD_GIB },
    { "compute", GPI_FIELD_TEXT },
    { "on", GPI_FIELD_LIST },
    { "not_on", GPI_FIELD_LIST },
    { "variants", GPI_FIELD_LIST },
    { 0 },
};

/* ---- places ---- */

static bool has(const json_t *o, const char *key)
{
    return json_object_get(o, key) != NULL;
}

/* Marks the devices of a list.  Returns: 0; -1 after a message. */
static int mark(const struct gpi_trace_reader *r, const json_t *o, const char *key, bool *marked,
                bool how)
{
    const json_t *list = json_object_get(o, key);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        uint32_t device;
        if (!name)
            return gpi_trace_complain(r, key, "is not a list of names of devices");
        if (gpi_trace_find(r, r->devices, key, name, &device) < 0)
            return -1;
        marked[device] = how;
    }
    return 0;
}

static bool is_same(const struct gpi_trace_places *a, const struct gpi_trace_places *b)
{
    return a->n == b->n && memcmp(a->device, b->device, a->n * sizeof *a->device) == 0;
}

/* Takes the set, and frees it if there is one like it.  Returns its number; 0 after a
 * message. */
static uint32_t number_of(struct gpi_trace_reader *r, struct gpi_trace_places *set)
{
    struct gpi_trace *t = r->t;

    for (uint32_t i = 0; i < t->n_places; i++)
        if (is_same(&t->places[i], set)) {
            free(set->device);
            return i + 1;
        }
    if (gpi_trace_grow(r, &t->places, t->n_places, sizeof *t->places) < 0) {
        free(set->device);
        return 0;
    }
    t->places[t->n_places] = *set;
    return ++t->n_places;
}

static int read_places(struct gpi_trace_reader *r, const json_t *o, uint32_t *ret)
{
    const uint32_t n = r->t->n_devices;
    struct gpi_trace_places set = { 0 };
    bool *marked;

    if (!has(o, "on") && !has(o, "not_on"))
        return 0;
    marked = calloc(n + 1, sizeof *marked);
    set.device = calloc(n + 1, sizeof *set.device);
    for (uint32_t i = 0; marked && i < n; i++)
        marked[i] = !has(o, "on");
    if (!marked || !set.device || mark(r, o, "on", marked, true) < 0 ||
        mark(r, o, "not_on", marked, false) < 0) {
        free(marked);
        free(set.device);
        return -1;
    }
    for (uint32_t i = 0; i < n; i++)
        if (marked[i])
            set.device[set.n++] = (uint16_t)i;
    free(marked);
    *ret = number_of(r, &set);
    return *ret ? 0 : -1;
}

/* ---- one request ---- */

/* A request without devices has CPU slots alone. */
static int read_cpus(const struct gpi_trace_reader *r, const json_t *o, struct gpi_request *q)
{
    static const char *const of_devices[] = { "share", "memory_gib", "compute", "on", "not_on" };

    for (size_t i = 0; i < sizeof of_devices / sizeof *of_devices; i++)
        if (has(o, of_devices[i]) && has(o, "devices"))
            return gpi_trace_complain(r, of_devices[i], "has no meaning without devices");
    q->share = q->compute = 0;
    q->places = GPI_PLACES_ANY;
    q->memory = 0;
    q->cpus = q->cpus ? q->cpus : 1;
    return 0;
}

static int read_devices(struct gpi_trace_reader *r, const json_t *o, struct gpi_request *q)
{
    if (q->devices > GPI_TRACE_WIDTH)
        return gpi_trace_complain(r, "devices", "of one task or worker are more than 16");
    q->share = gpi_trace_part(o, "share", q->share ? q->share : GPI_SHARE_ALL);
    if (q->share == 0)
        return gpi_trace_complain(r, "share", "is less than 1/10000");
    if (q->devices > 1 && q->share < GPI_SHARE_ALL)
        return gpi_trace_complain(r, "share", "is of a single device only");
    q->memory = gpi_trace_bytes(o, "memory_gib", q->memory ? q->memory : GPI_MEMORY_ALL);
    if (q->memory == 0)
        q->memory = GPI_MEMORY_ALL;
    return gpi_trace_compute(r, o, "compute", &q->compute) < 0 || read_places(r, o, &q->places) < 0
               ? -1
               : 0;
}

static int read_one(struct gpi_trace_reader *r, const json_t *o, const struct gpi_request *from,
                    struct gpi_request *ret)
{
    *ret = *from;
    ret->devices = gpi_trace_count(o, "devices", from->devices);
    ret->cpus = gpi_trace_count(o, "cpus", from->cpus);
    ret->host_memory = gpi_trace_bytes(o, "host_memory_gib", from->host_memory);
    return ret->devices ? read_devices(r, o, ret) : read_cpus(r, o, ret);
}

/* ---- variants ---- */

static int read_variants(struct gpi_trace_reader *r, const json_t *o, struct gpi_request *ret,
                         uint32_t *ret_n)
{
    const json_t *list = json_object_get(o, "variants");
    const size_t n = json_array_size(list);
    struct gpi_request base;

    if (n < 1 || n > GPI_VARIANTS)
        return gpi_trace_complain(r, "variants", "are not 1 to 4");
    if (read_one(r, o, &ret[0], &base) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        if (gpi_trace_check(r, v, gpi_trace_request_fields, NULL) < 0)
            return -1;
        if (has(v, "variants"))
            return gpi_trace_complain(r, "variants", "are part of a variant");
        if (read_one(r, v, &base, &ret[i]) < 0)
            return -1;
    }
    *ret_n = (uint32_t)n;
    return 0;
}

int gpi_trace_requests(struct gpi_trace_reader *r, const json_t *o, const struct gpi_request *from,
                       uint32_t n_from, struct gpi_request *ret, uint32_t *ret_n)
{
    ret[0] = from[0];
    if (has(o, "variants"))
        return read_variants(r, o, ret, ret_n);
    *ret_n = n_from;
    for (uint32_t i = 0; i < n_from; i++)
        if (read_one(r, o, &from[i], &ret[i]) < 0)
            return -1;
    return 0;
}
