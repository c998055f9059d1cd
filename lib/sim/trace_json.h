/* SPDX-License-Identifier: MIT */
/* trace_json.h - how the reader of a trace reads JSON.  Private to its files. */
#ifndef GPI_SIM_TRACE_JSON_H
#define GPI_SIM_TRACE_JSON_H

#include <jansson.h>

#include "sim/trace_parts.h"

struct gpi_trace_reader {
    struct gpi_trace *t;
    uint32_t line;
    uint64_t at;                       /* of the last event */
    json_t *classes, *devices, *tasks; /* names to numbers; of tasks: ids to numbers of lines */
};

/* ---- trace_field.c: fields ---- */

enum gpi_trace_type {
    GPI_FIELD_TEXT,
    GPI_FIELD_FLAG,
    GPI_FIELD_COUNT,
    GPI_FIELD_INTEGER,
    GPI_FIELD_SECONDS,
    GPI_FIELD_GIB,
    GPI_FIELD_PART, /* from 0 to 1 */
    GPI_FIELD_LIST,
    GPI_FIELD_OBJECT,
    GPI_FIELD_LATER /* the plan cannot do it yet */
};

struct gpi_trace_field {
    const char *name;
    enum gpi_trace_type type;
};

/* Prints the place, the name unless that is NULL, and the message.  Returns -1. */
int gpi_trace_complain(const struct gpi_trace_reader *r, const char *name, const char *what);
/* Returns: 0 if the object has none but these fields, each of its type; else -1 after a message.
 * The lists end with an empty field; `more` may be NULL. */
int gpi_trace_check(const struct gpi_trace_reader *r, const json_t *o,
                    const struct gpi_trace_field *fields, const struct gpi_trace_field *more);

/* These return the value of a checked field, or `otherwise` for a field that is left out. */
const char *gpi_trace_text(const json_t *o, const char *key);
bool gpi_trace_flag(const json_t *o, const char *key);
uint32_t gpi_trace_count(const json_t *o, const char *key, uint32_t otherwise);
uint64_t gpi_trace_seconds(const json_t *o, const char *key, uint64_t otherwise);
uint64_t gpi_trace_bytes(const json_t *o, const char *key, uint64_t otherwise);
uint32_t gpi_trace_part(const json_t *o, const char *key, uint32_t otherwise);

/* Returns the number of the word in the list, which ends with NULL; or, after a message, -1. */
int gpi_trace_word(const struct gpi_trace_reader *r, const char *field, const char *word,
                   const char *const *words);
/* Finds the number of a name.  Returns: 0; -1 after a message. */
int gpi_trace_find(const struct gpi_trace_reader *r, const json_t *names, const char *field,
                   const char *name, uint32_t *ret);
/* A compute capability such as "9.0".  Returns: 0; -1 after a message. */
int gpi_trace_compute(const struct gpi_trace_reader *r, const json_t *o, const char *key,
                      uint32_t *ret);
/* Makes room for one more item of an array.  Returns: 0; -1 after a message. */
int gpi_trace_grow(const struct gpi_trace_reader *r, void *array, uint32_t n, size_t size);

/* ---- trace_request.c: requests ---- */

extern const struct gpi_trace_field gpi_trace_request_fields[];

/* Reads the requests of an object, whose other values are `from`.  Returns: 0; -1 after a
 * message. */
int gpi_trace_requests(struct gpi_trace_reader *r, const json_t *o, const struct gpi_request *from,
                       uint32_t n_from, struct gpi_request *ret, uint32_t *ret_n);

/* ---- trace_world.c: the first line ---- */

int gpi_trace_world(struct gpi_trace_reader *r, const json_t *o);

#endif
