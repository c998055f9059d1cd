/* SPDX-License-Identifier: MIT */
/*
 * log_shape.h - the shapes of a log's lines: each kind of line has a name, and fields with their
 * places in the record.  The reader and the writer use the same shape.
 */
#ifndef GPI_LOG_LOG_SHAPE_H
#define GPI_LOG_LOG_SHAPE_H

#include "log/line.h"
#include "log/log.h"

#define GPI_LOG_FIELDS_MAX 11u /* of a shape: those of submit */
#define GPI_LOG_NAME_SIZE 32u /* of an event, more than the longest */

enum gpi_log_form {
    GPI_FORM_NUMBER, /* uint32_t */
    GPI_FORM_SIGNED, /* int32_t */
    GPI_FORM_BIG,    /* uint64_t */
    GPI_FORM_TIME,   /* uint64_t, ns */
    GPI_FORM_FLAG,   /* bool */
    GPI_FORM_MARK,   /* bool: if it is true, the line has the name alone */
    GPI_FORM_WORD,   /* uint32_t: the word's place in a list */
    GPI_FORM_BITS,   /* uint32_t: bit per word */
    GPI_FORM_DEVICES, /* the devices of a slot */
    GPI_FORM_REQUESTS /* the requests of a task, a field for each */
};

struct gpi_log_field {
    const char *name;
    const char *words; /* of GPI_FORM_WORD and GPI_FORM_BITS, with blanks between them */
    size_t at;         /* offset in the record */
    enum gpi_log_form form;
    bool placed;   /* the line has the value at a fixed place, without the name */
    bool optional; /* the writer omits it if it has the value `otherwise` */
    uint64_t otherwise;
    uint32_t least, most; /* of GPI_FORM_NUMBER */
};

struct gpi_log_shape {
    uint32_t kind;  /* enum gpi_log_kind */
    uint32_t which; /* event or action */
    uint32_t n;
    const char *noun; /* before its name in errors */
    const char *name;
    struct gpi_log_field field[GPI_LOG_FIELDS_MAX];
};

extern const struct gpi_log_field gpi_log_settings[];
extern const size_t gpi_log_n_settings;

/* Finds the matching shape among the shapes of this name, else the last of them.  `placed`: number
 * of the line's words without a name: a line of a device has one, an event `device` has none. */
bool gpi_log_shape_named(struct gpi_log_shape *ret, struct gpi_line_word name, uint32_t placed);
/* Returns false for an unknown kind, which only a faulty caller or core produces. */
bool gpi_log_shape_of(struct gpi_log_shape *ret, const struct gpi_log_line *l);
/* Writes the shape's name as a line has it.  Returns `to`. */
const char *gpi_log_name(char to[GPI_LOG_NAME_SIZE], const struct gpi_log_shape *s);

/* The value of a field in a record. */
uint64_t gpi_log_value(const void *record, const struct gpi_log_field *f);
void gpi_log_put(void *record, const struct gpi_log_field *f, uint64_t value);

#endif
