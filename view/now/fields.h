/* SPDX-License-Identifier: MIT */
/* fields.h - the members of a snapshot in JSON: one table for writing and reading. */
#ifndef GPV_FIELDS_H
#define GPV_FIELDS_H

#include "view/now/snapshot.h"

enum gpv_field_kind {
    GPV_TEXT,
    GPV_U32,
    GPV_I32,
    GPV_U64, /* below 2^63 in JSON */
    GPV_I64,
    GPV_DECIMAL,
    GPV_FLAG,
    GPV_TASK_ID,
    GPV_WORD_OF, /* a uint32_t as a word */
    GPV_COUNTS,  /* uint64_t[] as an object of words */
    GPV_USE_TIMES,
    GPV_HISTOGRAM
};

/* A member of a row.  A number or word with the value `none` is left out, and has that value if it
 * is; a word is always there if `none` is no value of it. */
struct gpv_field {
    const char *name;
    enum gpv_field_kind kind;
    size_t at, size;
    int64_t none;
    const char *(*word)(uint32_t); /* "?" for a value that is none; values have no gaps */
};

/* Each table ends with a field without a name. */
extern const struct gpv_field gpv_head_fields[], gpv_more_fields[];

/* A GPV_LIST of rows as all lists are. */
struct gpv_any_list {
    void *row;
    size_t n, room;
};

enum { GPV_GPUS, GPV_CLASSES, GPV_BATCHES, GPV_FINDINGS, GPV_ENDS, GPV_NOW_LISTS };
struct gpv_now_list {
    const char *name;
    const struct gpv_field *fields;
    size_t at, size;    /* of the list in the snapshot; of a row */
    size_t rows, bytes; /* that a line has at most; 0 = as many as there are */
};
extern const struct gpv_now_list gpv_now_lists[GPV_NOW_LISTS];

/* Room for one more row, all bytes 0; NULL: no memory. */
void *gpv_now_row(struct gpv_snapshot *s, const struct gpv_now_list *list);

/* An integer of 4 or 8 bytes. */
int64_t gpv_number_in(const void *at, size_t size);

#endif
