/* SPDX-License-Identifier: MIT */
/* trace_field.c - the fields of a JSON object: their names, types and values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/trace_json.h"

#define MOST_SECONDS 1e9
#define MOST_GIB 1048576.0
#define MOST_COUNT 1000000000
#define GIB 1073741824.0

int gpi_trace_complain(const struct gpi_trace_reader *r, const char *name, const char *what)
{
    (void)fprintf(stderr, "%s:%u: ", r->t->path, r->line);
    if (name)
        (void)fprintf(stderr, "\"%s\" ", name);
    (void)fprintf(stderr, "%s\n", what);
    return -1;
}

/* ---- types ---- */

static bool is_between(const json_t *v, double least, double most)
{
    return json_is_number(v) && json_number_value(v) >= least && json_number_value(v) <= most;
}

static bool is_of(const json_t *v, enum gpi_trace_type type)
{
    switch (type) {
    case GPI_FIELD_TEXT:
        return json_is_string(v);
    case GPI_FIELD_FLAG:
        return json_is_boolean(v);
    case GPI_FIELD_COUNT:
        return json_is_integer(v) && is_between(v, 0, MOST_COUNT);
    case GPI_FIELD_INTEGER:
        return json_is_integer(v) && is_between(v, -MOST_COUNT, MOST_COUNT);
    case GPI_FIELD_SECONDS:
        return is_between(v, 0, MOST_SECONDS);
    case GPI_FIELD_GIB:
        return is_between(v, 0, MOST_GIB);
    case GPI_FIELD_PART:
        return is_between(v, 0, 1);
    case GPI_FIELD_LIST:
        return json_is_array(v);
    case GPI_FIELD_OBJECT:
        return json_is_object(v);
    case GPI_FIELD_LATER:
        break;
    }
    return false;
}

static const char *const wanted[] = {
    [GPI_FIELD_TEXT] = "is not a text",
    [GPI_FIELD_FLAG] = "is neither true nor false",
    [GPI_FIELD_COUNT] = "is not a whole number from 0 to 1000000000",
    [GPI_FIELD_INTEGER] = "is not a whole number from -1000000000 to 1000000000",
    [GPI_FIELD_SECONDS] = "is not a number of seconds from 0 to 1000000000",
    [GPI_FIELD_GIB] = "is not a number of GiB from 0 to 1048576",
    [GPI_FIELD_PART] = "is not a number from 0 to 1",
    [GPI_FIELD_LIST] = "is not a list",
    [GPI_FIELD_OBJECT] = "is not an object",
    [GPI_FIELD_LATER] = "is not supported: the plan has no exclusive batches yet",
};

static const struct gpi_trace_field *find(const struct gpi_trace_field *fields, const char *name)
{
    for (; fields && fields->name; fields++)
        if (strcmp(fields->name, name) == 0)
            return fields;
    return NULL;
}

int gpi_trace_check(const struct gpi_trace_reader *r, const json_t *o,
                    const struct gpi_trace_field *fields, const struct gpi_trace_field *more)
{
    void *i;

    if (!json_is_object(o))
        return gpi_trace_complain(r, NULL, "an object is expected");
    for (i = json_object_iter((json_t *)o); i; i = json_object_iter_next((json_t *)o, i)) {
        const char *name = json_object_iter_key(i);
        const struct gpi_trace_field *f = find(fields, name);

        if (!f)
            f = find(more, name);
        if (!f)
            return gpi_trace_complain(r, name, "is no field of this object");
        if (!is_of(json_object_iter_value(i), f->type))
            return gpi_trace_complain(r, name, wanted[f->type]);
    }
    return 0;
}

/* ---- values ---- */

const char *gpi_trace_text(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

bool gpi_trace_flag(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

uint32_t gpi_trace_count(const json_t *o, const char *key, uint32_t otherwise)
{
    const json_t *v = json_object_get(o, key);

    return v ? (uint32_t)json_integer_value(v) : otherwise;
}

static uint64_t scaled(const json_t *o, const char *key, double unit, uint64_t otherwise)
{
    const json_t *v = json_object_get(o, key);

    return v ? (uint64_t)llround(json_number_value(v) * unit) : otherwise;
}

uint64_t gpi_trace_seconds(const json_t *o, const char *key, uint64_t otherwise)
{
    return scaled(o, key, (double)GPI_S, otherwise);
}

uint64_t gpi_trace_bytes(const json_t *o, const char *key, uint64_t otherwise)
{
    return scaled(o, key, GIB, otherwise);
}

uint32_t gpi_trace_part(const json_t *o, const char *key, uint32_t otherwise)
{
    return (uint32_t)scaled(o, key, GPI_SHARE_ALL, otherwise);
}

int gpi_trace_word(const struct gpi_trace_reader *r, const char *field, const char *word,
                   const char *const *words)
{
    char text[160] = "is not one of";

    for (int i = 0; words[i]; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    for (int i = 0; words[i]; i++) {
        const size_t n = strlen(text);
        (void)snprintf(text + n, sizeof text - n, "%s %s", i ? "," : "", words[i]);
    }
    return gpi_trace_complain(r, field, text);
}

int gpi_trace_find(const struct gpi_trace_reader *r, const json_t *names, const char *field,
                   const char *name, uint32_t *ret)
{
    const json_t *number = json_object_get(names, name);
    char text[160];

    if (number) {
        *ret = (uint32_t)json_integer_value(number);
        return 0;
    }
    (void)snprintf(text, sizeof text, "names %.100s, which is unknown", name);
    return gpi_trace_complain(r, field, text);
}

int gpi_trace_compute(const struct gpi_trace_reader *r, const json_t *o, const char *key,
                      uint32_t *ret)
{
    const char *text = gpi_trace_text(o, key);
    unsigned major, minor;
    char rest;

    if (!text)
        return 0;
    if (sscanf(text, "%u.%u%c", &major, &minor, &rest) != 2 || major > 999 || minor > 99)
        return gpi_trace_complain(r, key, "is no compute capability such as \"9.0\"");
    *ret = major * 100 + minor;
    return 0;
}

int gpi_trace_grow(const struct gpi_trace_reader *r, void *array, uint32_t n, size_t size)
{
    void *old, *grown;

    if (n & (n - 1)) /* its size is the next power of two */
        return 0;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, (n ? 2 * (size_t)n : 1) * size);
    if (!grown)
        return gpi_trace_complain(r, NULL, "there is no memory left");
    memcpy(array, &grown, sizeof grown);
    /* cppcheck-suppress memleak ; `array` has it */
    return 0;
}
