/* SPDX-License-Identifier: MIT */
/* fields.c - the members of a JSON object, read by a table into a record. */
#include "queue/agent/fields.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/files/numbers.h"

const struct gpq_words gpq_state_words = { gpq_state_text, 1, GPQ_STATES };
const struct gpq_words gpq_outcome_words = { gpq_outcome_text, 1, GPQ_OUTCOMES };
const struct gpq_words gpq_cause_words = { gpq_cause_text, 0, GPQ_CAUSES };
const struct gpq_words gpq_condition_words = { gpq_condition_text, 0, GPQ_CONDITIONS };

/* ---- Failures ---- */

/* Appends to a text that ends with a NUL byte, as far as there is room. */
__attribute__((format(printf, 3, 4))) static void append(char *text, size_t room,
                                                         const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text + used, room - used, format, list);
    va_end(list);
}

static void write_place(const struct gpq_at *at, char *text, size_t room)
{
    if (!at)
        return;
    write_place(at->in, text, room);
    if (at->name)
        append(text, room, "%s%.64s", *text ? "." : "", at->name);
    if (at->index != GPQ_NO_INDEX)
        append(text, room, "[%zu]", at->index);
}

int gpq_at_fail(const struct gpq_at *at, struct gpq_error *e, int code, const char *format, ...)
{
    char place[256] = "", text[384];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    write_place(at, place, sizeof(place));
    return gpq_fail(e, code, "%s %s", *place ? place : "the request", text);
}

/* ---- Types ---- */

static const char *type_of(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    default:
        return "null";
    }
}

static int check_type(const json_t *json, bool right, const char *expected, const struct gpq_at *at,
                      struct gpq_error *e)
{
    return right ? 0
                 : gpq_at_fail(at, e, GPQ_EINVAL, "is %s, expected %s", type_of(json), expected);
}

static int check_size(size_t size, const char *unit, const struct gpq_field *f,
                      const struct gpq_at *at, struct gpq_error *e)
{
    if (size < (size_t)f->least)
        return gpq_at_fail(at, e, GPQ_EINVAL, "has %zu %s, the minimum is %" PRId64, size, unit,
                           f->least);
    if (size > (size_t)f->most)
        return gpq_at_fail(at, e, GPQ_EINVAL, "has %zu %s, the maximum is %" PRId64, size, unit,
                           f->most);
    return 0;
}

static int read_integer(json_t *json, const struct gpq_field *f, const struct gpq_at *at,
                        int64_t *ret, struct gpq_error *e)
{
    int code = check_type(json, json_is_integer(json), "an integer", at, e);
    *ret = json_integer_value(json);
    if (code < 0 || (*ret >= f->least && *ret <= f->most))
        return code;
    return gpq_at_fail(at, e, GPQ_EINVAL, "is %" PRId64 ", the %s is %" PRId64, *ret,
                       *ret < f->least ? "minimum" : "maximum",
                       *ret < f->least ? f->least : f->most);
}

static int read_id(json_t *json, enum gpq_field_kind kind, const struct gpq_at *at, uint64_t *ret,
                   struct gpq_error *e)
{
    const char *expected = kind == GPQ_FIELD_BATCH  ? "the id of a batch, such as \"12\""
                           : kind == GPQ_FIELD_TASK ? "the id of a task, such as \"12.44\""
                                                    : "an id, such as \"12\" or \"12.44\"";
    uint32_t part[2];
    int code = check_type(json, json_is_string(json), expected, at, e);
    const char *text = json_string_value(json);
    if (code < 0)
        return code;
    if (kind != GPQ_FIELD_BATCH && gpq_numbers_read(text, ".", part, 2, NULL) &&
        part[0] <= INT32_MAX && part[1] <= INT32_MAX)
        *ret = GPQ_TASK(part[0], part[1]);
    else if (kind != GPQ_FIELD_TASK && gpq_numbers_read(text, "", part, 1, NULL) &&
             part[0] <= INT32_MAX)
        *ret = GPQ_TASK(part[0], 0);
    else
        code = gpq_at_fail(at, e, GPQ_EINVAL, "is \"%.40s\", expected %s", text, expected);
    return code;
}

static int read_text(json_t *json, const struct gpq_field *f, const struct gpq_at *at,
                     const char **ret, struct gpq_error *e)
{
    int code = check_type(json, json_is_string(json), "a text", at, e);
    if (code == 0)
        code = check_size(json_string_length(json), "bytes", f, at, e);
    if (code == 0)
        *ret = json_string_value(json);
    return code;
}

static int read_field(json_t *json, const struct gpq_field *f, const struct gpq_at *at, void *to,
                      struct gpq_error *e)
{
    int64_t number = 0;
    uint64_t id = 0;
    int code = 0;
    switch (f->kind) {
    case GPQ_FIELD_ANY:
        *(json_t **)to = json;
        return 0;
    case GPQ_FIELD_OBJECT:
        code = check_type(json, json_is_object(json), "an object", at, e);
        *(json_t **)to = json;
        return code;
    case GPQ_FIELD_LIST:
        code = check_type(json, json_is_array(json), "a list", at, e);
        *(json_t **)to = json;
        return code < 0 ? code : check_size(json_array_size(json), "items", f, at, e);
    case GPQ_FIELD_TEXT:
        return read_text(json, f, at, to, e);
    case GPQ_FIELD_BOOL:
        *(bool *)to = json_is_true(json);
        return check_type(json, json_is_boolean(json), "true or false", at, e);
    case GPQ_FIELD_U32:
        code = read_integer(json, f, at, &number, e);
        *(uint32_t *)to = (uint32_t)number;
        return code;
    case GPQ_FIELD_I32:
        code = read_integer(json, f, at, &number, e);
        *(int32_t *)to = (int32_t)number;
        return code;
    case GPQ_FIELD_U64:
        code = read_integer(json, f, at, &number, e);
        *(uint64_t *)to = (uint64_t)number;
        return code;
    case GPQ_FIELD_BATCH:
        code = read_id(json, f->kind, at, &id, e);
        *(uint32_t *)to = GPQ_BATCH_OF(id);
        return code;
    case GPQ_FIELD_TASK:
    case GPQ_FIELD_SOURCE:
        return read_id(json, f->kind, at, to, e);
    }
    return gpq_at_fail(at, e, GPQ_EINVAL, "has no type");
}

static int refuse_unknown(const char *name, const struct gpq_at *at, const struct gpq_field *table,
                          struct gpq_error *e)
{
    char known[256] = "";
    if (!at)
        append(known, sizeof(known), "id, do");
    for (const struct gpq_field *f = table; f->name; f++)
        append(known, sizeof(known), "%s%s", *known ? ", " : "", f->name);
    return gpq_at_fail(at, e, GPQ_EINVAL, "has no member \"%.40s\", but %s", name, known);
}

int gpq_fields_read(json_t *object, const struct gpq_at *at, const struct gpq_field *table,
                    void *record, struct gpq_error *e)
{
    const char *name;
    json_t *value;
    int code = check_type(object, json_is_object(object), "an object", at, e);
    if (code < 0)
        return code;
    json_object_foreach(object, name, value)
    {
        const struct gpq_field *f = table;
        while (f->name && strcmp(f->name, name) != 0)
            f++;
        if (!f->name && !at && (!strcmp(name, "id") || !strcmp(name, "do")))
            continue;
        if (!f->name)
            return refuse_unknown(name, at, table, e);
        struct gpq_at here = { at, f->name, GPQ_NO_INDEX };
        code = read_field(value, f, &here, (char *)record + f->offset, e);
        if (code < 0)
            return code;
    }
    return 0;
}

/* ---- Words ---- */

int gpq_word_read(json_t *json, const struct gpq_at *at, const struct gpq_words *words,
                  uint32_t *ret, struct gpq_error *e)
{
    char known[256] = "";
    for (uint32_t value = words->first; value < words->n; value++) {
        append(known, sizeof(known), "%s%s", *known ? ", " : "", words->text(value));
        if (json_is_string(json) && !strcmp(json_string_value(json), words->text(value))) {
            *ret = value;
            return 0;
        }
    }
    if (!json_is_string(json))
        return gpq_at_fail(at, e, GPQ_EINVAL, "is %s, expected one of: %s", type_of(json), known);
    return gpq_at_fail(at, e, GPQ_EINVAL, "is \"%.40s\", expected one of: %s",
                       json_string_value(json), known);
}

int gpq_words_read(json_t *list, const struct gpq_at *at, const struct gpq_words *words,
                   uint32_t *ret, struct gpq_error *e)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct gpq_at here = { at->in, at->name, i };
        uint32_t value;
        int code = gpq_word_read(json_array_get(list, i), &here, words, &value, e);
        if (code < 0)
            return code;
        mask |= 1U << value;
    }
    *ret = mask;
    return 0;
}

/* ---- Ids ---- */

static int by_id(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

int gpq_ids_of(json_t *list, const struct gpq_at *at, uint64_t **ret, size_t *ret_n,
               struct gpq_error *e)
{
    size_t n = json_array_size(list), kept = 0;
    int code = 0;
    uint64_t *id = calloc(n != 0 ? n : 1, sizeof(*id));
    if (!id)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for %zu ids", n);
    for (size_t i = 0; code == 0 && i < n; i++) {
        struct gpq_at here = { at->in, at->name, i };
        code = read_id(json_array_get(list, i), GPQ_FIELD_TASK, &here, &id[i], e);
    }
    if (code < 0) {
        free(id);
        return code;
    }
    qsort(id, n, sizeof(*id), by_id);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || id[i] != id[kept - 1])
            id[kept++] = id[i];
    *ret = id;
    *ret_n = kept;
    return 0;
}

json_t *gpq_id_json(uint64_t id)
{
    char text[24];
    if (GPQ_NUMBER_OF(id) == 0)
        (void)snprintf(text, sizeof(text), "%u", GPQ_BATCH_OF(id));
    else
        (void)snprintf(text, sizeof(text), "%u.%u", GPQ_BATCH_OF(id), GPQ_NUMBER_OF(id));
    return json_string(text);
}

/* ---- Lists of texts ---- */

json_t *gpq_text_json(const char *text)
{
    json_t *json = text ? json_string(text) : json_null();
    char *copy = json ? NULL : strdup(text);
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    if (copy)
        json = json_string(copy);
    free(copy);
    return json;
}

int gpq_texts_join(json_t *list, const struct gpq_at *at, size_t most, struct gpq_bytes *ret,
                   struct gpq_error *e)
{
    const struct gpq_field item = { .least = 0, .most = (int64_t)most };
    size_t size = 0, i;
    json_t *json;
    json_array_foreach(list, i, json)
    {
        struct gpq_at here = { at->in, at->name, i };
        const char *text;
        int code = read_text(json, &item, &here, &text, e);
        if (code < 0)
            return code;
        size += json_string_length(json) + 1;
    }
    char *data = malloc(size != 0 ? size : 1);
    if (!data)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for %zu bytes", size);
    size = 0;
    json_array_foreach(list, i, json)
    {
        memcpy(data + size, json_string_value(json), json_string_length(json) + 1);
        size += json_string_length(json) + 1;
    }
    *ret = (struct gpq_bytes){ data, size };
    return 0;
}

bool gpq_is_texts(struct gpq_bytes b)
{
    return b.size == 0 || ((const char *)b.data)[b.size - 1] == '\0';
}

json_t *gpq_texts_json(struct gpq_bytes b)
{
    json_t *list = gpq_is_texts(b) ? json_array() : NULL;
    const char *text = b.data;
    for (size_t at = 0; list && at < b.size; at += strlen(text + at) + 1)
        if (json_array_append_new(list, json_string(text + at)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

char **gpq_texts_split(struct gpq_bytes b)
{
    size_t n = 0, i = 0;
    if (!gpq_is_texts(b))
        return NULL;
    for (size_t at = 0; at < b.size; at += strlen((const char *)b.data + at) + 1)
        n++;
    char **ret = malloc((n + 1) * sizeof(*ret) + b.size);
    if (!ret)
        return NULL;
    char *text = (char *)(ret + n + 1);
    if (b.size != 0)
        memcpy(text, b.data, b.size);
    for (; i < n; i++, text += strlen(text) + 1)
        ret[i] = text;
    ret[n] = NULL;
    return ret;
}
