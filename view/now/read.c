/* SPDX-License-Identifier: MIT */
/* read.c - reads a snapshot from its line of JSON: a member of another type counts as left out. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "view/now/fields.h"

enum { ROWS = 4096 /* of a list; further ones are left out */, MINUTE_MS = 60000 };

/* ---- Values ---- */

static void set_number(char *at, size_t size, int64_t number)
{
    uint32_t small = (uint32_t)number;
    if (size == sizeof(small))
        memcpy(at, &small, sizeof(small));
    else
        memcpy(at, &number, sizeof(number));
}

static int64_t count_in(const json_t *value)
{
    json_int_t count = json_integer_value(value);
    return count > 0 ? count : 0;
}

static bool is_in_range(const struct gpv_field *f, int64_t number)
{
    switch (f->kind) {
    case GPV_U32:
        return number >= 0 && number <= UINT32_MAX;
    case GPV_I32:
        return number >= INT32_MIN && number <= INT32_MAX;
    case GPV_U64:
        return number >= 0;
    default:
        return true;
    }
}

static int64_t read_number(const struct gpv_field *f, const json_t *value)
{
    int64_t number = json_is_integer(value) ? json_integer_value(value) : f->none;
    return is_in_range(f, number) ? number : f->none;
}

/* A word of a later version counts as left out. */
static int64_t read_word(const struct gpv_field *f, const char *word)
{
    for (uint32_t i = 0; word && strcmp(f->word(i), "?") != 0; i++)
        if (strcmp(f->word(i), word) == 0)
            return i;
    return f->none >= 0 ? f->none : 0;
}

/* "12.44"; 0: it is no task. */
static int64_t read_task(const char *text)
{
    uint32_t batch, number;
    int used = 0;
    if (!text || text[strspn(text, "0123456789.")] != 0 || strlen(text) > 21)
        return 0;
    if (sscanf(text, "%10" SCNu32 ".%10" SCNu32 "%n", &batch, &number, &used) != 2 || text[used])
        return 0;
    return (int64_t)GPV_TASK(batch, number);
}

static void read_uses(struct gpv_uses *uses, const json_t *value)
{
    for (uint32_t i = 0; i < GPV_USES; i++)
        uses->ns[i] = count_in(json_object_get(value, gpv_use_word(i)));
}

static void read_histogram(struct gpv_histogram *h, const json_t *value)
{
    const json_t *buckets = json_object_get(value, "buckets");
    h->count = (uint64_t)count_in(json_object_get(value, "count"));
    h->sum = json_number_value(json_object_get(value, "sum"));
    for (size_t i = 0; i < GPV_BUCKETS; i++)
        h->bucket[i] = (uint64_t)count_in(json_array_get(buckets, i));
}

/* ---- Fields and lists ---- */

static void read_field(const struct gpv_field *f, char *at, const json_t *value)
{
    const char *text = json_string_value(value);
    double decimal = json_number_value(value);
    switch (f->kind) {
    case GPV_TEXT:
        gpv_now_text(at, f->size, text ? text : "");
        break;
    case GPV_U32:
    case GPV_I32:
    case GPV_U64:
    case GPV_I64:
        set_number(at, f->size, read_number(f, value));
        break;
    case GPV_DECIMAL:
        memcpy(at, &decimal, sizeof(decimal));
        break;
    case GPV_FLAG:
        *at = json_is_true(value);
        break;
    case GPV_TASK_ID:
        set_number(at, f->size, read_task(text));
        break;
    case GPV_WORD_OF:
        set_number(at, f->size, read_word(f, text));
        break;
    case GPV_COUNTS:
        for (uint32_t i = 0; i < f->size / sizeof(uint64_t); i++)
            set_number(at + i * sizeof(uint64_t), sizeof(uint64_t),
                       count_in(json_object_get(value, f->word(i))));
        break;
    case GPV_USE_TIMES:
        read_uses((void *)at, value);
        break;
    case GPV_HISTOGRAM:
        read_histogram((void *)at, value);
        break;
    }
}

static void read_fields(const struct gpv_field *fields, void *row, const json_t *object)
{
    for (const struct gpv_field *f = fields; f->name; f++)
        read_field(f, (char *)row + f->at, json_object_get(object, f->name));
}

static int read_list(struct gpv_snapshot *s, const struct gpv_now_list *list, const json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows) && i < ROWS; i++) {
        void *row = gpv_now_row(s, list);
        if (!row)
            return -1;
        read_fields(list->fields, row, json_array_get(rows, i));
    }
    return 0;
}

static void read_minutes(struct gpv_uses *minute, uint32_t minutes, const json_t *of_gpu)
{
    for (uint32_t use = 0; use < GPV_USES; use++) {
        const json_t *list = json_object_get(of_gpu, gpv_use_word(use));
        for (uint32_t i = 0; i < minutes; i++) {
            int64_t ms = count_in(json_array_get(list, i));
            minute[i].ns[use] = (ms < MINUTE_MS ? ms : MINUTE_MS) * 1000000;
        }
    }
}

static int read_history(struct gpv_snapshot *s, const json_t *object)
{
    const json_t *history = json_object_get(object, "history");
    int64_t minutes = count_in(json_object_get(object, "minutes"));
    if (!json_is_array(history) || minutes == 0 || minutes > GPV_MINUTES || s->gpus.n == 0)
        return 0;
    s->minutes = (uint32_t)minutes;
    s->history = calloc(s->gpus.n * s->minutes, sizeof(*s->history));
    if (!s->history)
        return -1;
    for (size_t gpu = 0; gpu < s->gpus.n; gpu++)
        read_minutes(s->history + gpu * s->minutes, s->minutes, json_array_get(history, gpu));
    return 0;
}

static int read_all(struct gpv_snapshot *s, const json_t *object)
{
    read_fields(gpv_head_fields, s, object);
    read_fields(gpv_more_fields, &s->more, json_object_get(object, "more"));
    for (int i = 0; i < GPV_NOW_LISTS; i++)
        if (read_list(s, &gpv_now_lists[i], json_object_get(object, gpv_now_lists[i].name)) < 0)
            return -1;
    return read_history(s, object);
}

int gpv_snapshot_read(struct gpv_snapshot *s, const char *text, size_t size)
{
    json_t *object = json_loadb(text, size, 0, NULL);
    *s = (struct gpv_snapshot){ 0 };
    int code = json_is_integer(json_object_get(object, "snapshot")) ? read_all(s, object) : -1;
    json_decref(object);
    if (code < 0)
        gpv_snapshot_free(s);
    return code;
}
