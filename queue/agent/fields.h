/* SPDX-License-Identifier: MIT */
/*
 * fields.h - the members of a JSON object, read by a table into a record.
 *
 * A member that the table does not have is refused, and so is one of another type or out of its
 * range: EINVAL, with a text that names member, value and range.  Members that are not there leave
 * the record as it is.  The texts and values of the record belong to the JSON.
 */
#ifndef GPQ_AGENT_FIELDS_H
#define GPQ_AGENT_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/store.h"

/* The place of a value, for error texts: specs[0].needs. */
struct gpq_at {
    const struct gpq_at *in; /* NULL: the request itself */
    const char *name;
    size_t index; /* GPQ_NO_INDEX: it is no item of a list */
};
#define GPQ_NO_INDEX SIZE_MAX

enum gpq_field_kind {
    GPQ_FIELD_ANY,    /* json_t * */
    GPQ_FIELD_OBJECT, /* json_t * */
    GPQ_FIELD_LIST,   /* json_t *; its length is from `least` to `most` */
    GPQ_FIELD_TEXT,   /* const char *; its bytes are from `least` to `most` */
    GPQ_FIELD_BOOL,   /* bool */
    GPQ_FIELD_U32,    /* uint32_t */
    GPQ_FIELD_I32,    /* int32_t */
    GPQ_FIELD_U64,    /* uint64_t, up to INT64_MAX */
    GPQ_FIELD_BATCH,  /* uint32_t, from a text such as "12" */
    GPQ_FIELD_TASK,   /* uint64_t, from a text such as "12.44" */
    GPQ_FIELD_SOURCE, /* uint64_t, from either; number 0 of a batch */
};

struct gpq_field {
    const char *name;
    enum gpq_field_kind kind;
    size_t offset;
    int64_t least, most;
};

/* The row of a member that has the same name in the record. */
#define GPQ_MEMBER(record, member, k, low, high)                            \
    {                                                                       \
        .name = #member, .kind = GPQ_FIELD_##k, .least = low, .most = high, \
        .offset = offsetof(struct record, member)                           \
    }

/* The names of a table of words, such as the states, by their values. */
struct gpq_words {
    const char *(*text)(uint32_t value);
    uint32_t first, n; /* values from first to n - 1 */
};
extern const struct gpq_words gpq_state_words, gpq_outcome_words, gpq_cause_words,
    gpq_condition_words;

/* Fails with "PLACE FORMAT". */
int gpq_at_fail(const struct gpq_at *at, struct gpq_error *e, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A request itself, whose place is NULL, also has the members "id" and "do". */
int gpq_fields_read(json_t *object, const struct gpq_at *at, const struct gpq_field *table,
                    void *record, struct gpq_error *e);

/* The value of a word.  `json` may be of any type. */
int gpq_word_read(json_t *json, const struct gpq_at *at, const struct gpq_words *words,
                  uint32_t *ret, struct gpq_error *e);
/* A list of words as a mask of 1 << value. */
int gpq_words_read(json_t *list, const struct gpq_at *at, const struct gpq_words *words,
                   uint32_t *ret, struct gpq_error *e);
/* A list of ids of tasks, sorted and each once; the caller frees *ret. */
int gpq_ids_of(json_t *list, const struct gpq_at *at, uint64_t **ret, size_t *ret_n,
               struct gpq_error *e);

/* "12", "12.44"; number 0: the batch. */
json_t *gpq_id_json(uint64_t id);

/* A text for a person, such as that of an error: bytes of a character that was cut become '?'.
 * NULL gives null. */
json_t *gpq_text_json(const char *text);

/*
 * Lists of texts in the store: each ends with a NUL byte.  A list of strings is joined into one
 * block, which the caller frees; no item may exceed `most` bytes.
 */
int gpq_texts_join(json_t *list, const struct gpq_at *at, size_t most, struct gpq_bytes *ret,
                   struct gpq_error *e);
bool gpq_is_texts(struct gpq_bytes bytes);
/* As a list of strings again; NULL: no memory, or bytes that are no such list. */
json_t *gpq_texts_json(struct gpq_bytes bytes);
/* As an array that ends with NULL, in one block with copies of the texts. */
char **gpq_texts_split(struct gpq_bytes bytes);

#endif
