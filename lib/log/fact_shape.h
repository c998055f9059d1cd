/* SPDX-License-Identifier: MIT */
/*
 * fact_shape.h - the shapes of the lines of facts: each kind has a name, and fields with their
 * places in the record.  The reader and the writer use the same shape.
 */
#ifndef GPI_LOG_FACT_SHAPE_H
#define GPI_LOG_FACT_SHAPE_H

#include "log/fact.h"
#include "log/line.h"

#define GPI_FACT_FIELDS_MAX 16u   /* of a line */
#define GPI_FACT_REQUEST_FIELDS 7u
#define GPI_FACT_BYTE_UNITS 4u

enum gpi_fact_form {
    GPI_FACT_NUMBER,              /* uint32_t */
    GPI_FACT_SIGNED,              /* int32_t */
    GPI_FACT_BIG,                 /* uint64_t */
    GPI_FACT_TIME,                /* uint64_t, ns */
    GPI_FACT_BYTES,               /* uint64_t */
    GPI_FACT_WORD,                /* uint32_t: the word's place in a list */
    GPI_FACT_FLAG,                /* bool */
    GPI_FACT_LIST,                /* the devices of the record */
    GPI_FACT_REQUESTS             /* its requests */
};

struct gpi_fact_field {
    const char *name;             /* NULL: the value follows the name of the line */
    enum gpi_fact_form form;
    size_t at;                    /* in struct gpi_fact, or in struct gpi_request */
    bool optional;                /* the writer omits it if it has the value `otherwise` */
    uint64_t otherwise;
    const char *words;            /* of GPI_FACT_WORD, with blanks between them */
};

struct gpi_fact_shape {
    const char *name;
    struct gpi_fact_field field[GPI_FACT_FIELDS_MAX]; /* up to the first one that is all zero */
};

extern const struct gpi_fact_shape gpi_fact_shapes[GPI_FACTS];
extern const struct gpi_fact_field gpi_fact_request_fields[GPI_FACT_REQUEST_FIELDS];

extern const struct gpi_line_unit gpi_fact_byte_units[GPI_FACT_BYTE_UNITS]; /* the largest first */

#define GPI_FACT_RUN_WORDS "one grant"                                /* of enum gpi_plan_run */
#define GPI_FACT_PROMISE_WORDS "first order device class workers" /* of enum gpi_promise */

/* Writes the word of a request: a field "need". */
void gpi_fact_add_request(struct gpi_line *t, const struct gpi_request *r);

bool gpi_fact_is_field(const struct gpi_fact_shape *s, uint32_t i);
/* The value of a field in a record; not of lists and requests. */
uint64_t gpi_fact_value(const void *record, const struct gpi_fact_field *f);
void gpi_fact_put(void *record, const struct gpi_fact_field *f, uint64_t value);

#endif
