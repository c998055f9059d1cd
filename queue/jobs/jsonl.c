/* SPDX-License-Identifier: MIT */
/* jsonl.c - a JSON object as a job. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/jobs/reader.h"
#include "queue/jobs/template.h"
#include "tools/cli/near.h"

enum { NUMBER = 40 };

/* Writes the shortest text that is this number, in any locale with a point. */
static const char *real_text(double value, char text[NUMBER])
{
    char *to = text;
    bool whole = true;

    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, NUMBER, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    for (const char *at = text; *at; at++) {
        bool plain = strchr("0123456789+-e", *at), other = !plain && whole;
        if (plain || other)
            *to++ = plain ? *at : '.';
        whole = whole && plain && *at != 'e';
    }
    (void)snprintf(to, 3, "%s", whole ? ".0" : "");
    return text;
}

/* Returns the text of a text, number or boolean, in `text` or in the value; NULL for another. */
static const char *scalar(const json_t *json, char text[NUMBER])
{
    if (json_is_string(json))
        return json_string_value(json);
    if (json_is_boolean(json))
        return json_is_true(json) ? "true" : "false";
    if (json_is_real(json))
        return real_text(json_real_value(json), text);
    if (!json_is_integer(json))
        return NULL;
    (void)snprintf(text, NUMBER, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
    return text;
}

static const char *kind(const json_t *json)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",  [JSON_NULL] = "null",
    };

    return names[json_typeof(json)];
}

/* ---- Options ---- */

static int set_one(struct gpq_make *m, const char *name, const json_t *value, struct gpq_error *e)
{
    char number[NUMBER];
    const char *text = scalar(value, number);

    if (!text)
        return gpq_fail(e, GPQ_EINVAL, "%s is %s, expected a text, a number or a boolean", name,
                        kind(value));
    return gpq_make_option(m, name, text, e);
}

/* A list sets the option once for each of its values; null leaves it unset. */
static int set_option(struct gpq_make *m, const char *name, const json_t *value,
                      struct gpq_error *e)
{
    const json_t *one;
    size_t i;
    int code = 0;

    if (json_is_null(value))
        return 0;
    if (!json_is_array(value))
        return set_one(m, name, value, e);
    json_array_foreach(value, i, one) if (code == 0) code = set_one(m, name, one, e);
    return code;
}

/* ---- The command of the object ---- */

static int take_argv(struct gpq_make *m, const json_t *argv, struct gpq_error *e)
{
    const json_t *argument;
    size_t i;
    int code = 0;

    if (!json_is_array(argv))
        return gpq_fail(e, GPQ_EINVAL, "argv is %s, expected a list of texts", kind(argv));
    json_array_foreach(argv, i, argument)
    {
        if (code)
            break;
        code =
            json_is_string(argument)
                ? gpq_make_argument(m, json_string_value(argument), json_string_length(argument), e)
                : gpq_fail(e, GPQ_EINVAL, "argv[%zu] is %s, expected a text", i, kind(argument));
    }
    return code;
}

static int take_command(struct gpq_make *m, const json_t *command, struct gpq_error *e)
{
    const char *text = json_string_value(command);

    if (!text)
        return gpq_fail(e, GPQ_EINVAL, "command is %s, expected a text; argv is a list of texts",
                        kind(command));
    if (text[strspn(text, " \t\r\n")] == 0)
        return gpq_fail(e, GPQ_EINVAL, "command is empty");
    return gpq_make_line(m, text, json_string_length(command), e);
}

static int unknown_member(struct gpq_make *m, const char *name, struct gpq_error *e)
{
    char list[300];
    struct near near = { .word = name };
    size_t n = gpq_make_known_count(m);

    near_add(&near, "command");
    near_add(&near, "argv");
    for (size_t i = 0; i < n; i++)
        near_add(&near, m->how->known[i]);
    near_text(&near, "", list, sizeof(list));
    if (*list)
        return gpq_fail(e, GPQ_EINVAL, "unknown member '%.60s'%s", name, list);
    gpq_reader_list(list, sizeof(list), m->how->known, n);
    return gpq_fail(e, GPQ_EINVAL,
                    "unknown member '%.60s'; an object has argv or command, and options%s%s", name,
                    n ? ": " : "", list);
}

static int take_members(struct gpq_make *m, json_t *object, struct gpq_error *e)
{
    json_t *argv = json_object_get(object, "argv"), *value;
    json_t *command = json_object_get(object, "command");
    const char *key;
    int code;

    if (!argv == !command)
        return gpq_fail(e, GPQ_EINVAL,
                        argv ? "the object has both argv and command"
                             : "the object has no argv and no command; with --each FILE -- COMMAND "
                               "members replace {NAME}");
    code = argv ? take_argv(m, argv, e) : take_command(m, command, e);
    if (code == 0)
        code = gpq_make_starts(m, e);
    json_object_foreach(object, key, value)
    {
        if (code || value == argv || value == command)
            continue;
        const char *name = gpq_make_known(m, key);
        code = name ? set_option(m, name, value, e) : unknown_member(m, key, e);
    }
    return code;
}

/* ---- The values of a template ---- */

static int no_member(json_t *object, const char *name, struct gpq_error *e)
{
    const char *keys[16], *key;
    char list[200], why[256];
    json_t *value;
    size_t n = 0;

    json_object_foreach(object, key, value) if (n < 16) keys[n++] = key;
    gpq_reader_list(list, sizeof(list), keys, n);
    (void)snprintf(why, sizeof(why), "no such member; the object has %s", n ? list : "none");
    return gpq_make_unknown(name, why, e);
}

/* Keeps the text of the value of a slot; *ret_left: the start of the attempt replaces it. */
static int keep_value(struct gpq_make *m, json_t *object, const char *name, bool *ret_left,
                      struct gpq_error *e)
{
    const json_t *value = json_object_get(object, name);
    char number[NUMBER], why[64];
    const char *text = scalar(value, number);

    *ret_left = false;
    if (!value || json_is_null(value)) {
        *ret_left = gpq_start_named(name, strlen(name)) != GPQ_STARTS;
        return *ret_left ? 0 : no_member(object, name, e);
    }
    (void)snprintf(why, sizeof(why), "the member is %s", kind(value));
    if (!text)
        return gpq_make_unknown(name, why, e);
    return gpq_texts_put(&m->kept, text) ? 0 : gpq_fail(e, GPQ_ENOMEM, "no memory for a value");
}

static int take_values(struct gpq_make *m, json_t *object, struct gpq_error *e)
{
    size_t kept = 0;
    const char *key;
    json_t *value;
    bool left;
    int code = 0;

    gpq_texts_clear(&m->kept);
    for (size_t i = 0; code == 0 && i < m->n_slots; i++) {
        code = keep_value(m, object, m->slots[i], &left, e);
        m->values[i] = left ? NULL : m->slots[i];
    }
    if (code)
        return code;
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->values[i])
            m->values[i] = gpq_texts_get(&m->kept, kept++);
    code = gpq_make_fill(m, e);
    json_object_foreach(object, key, value)
    {
        const char *name = gpq_make_known(m, key);
        if (code == 0 && name)
            code = set_option(m, name, value, e);
    }
    return code;
}

static void not_read(struct gpq_jobs *r, const json_error_t *fault)
{
    struct gpq_error e;

    if (!*fault->text) { /* jansson has a text for all else */
        (void)gpq_fail(&e, GPQ_ENOMEM, "no memory for an object");
        gpq_reader_stop(r, r->line, &e);
        return;
    }
    switch (json_error_code(fault)) {
    case json_error_null_character:
        gpq_reader_bad(r, r->line, "byte %d: \\u0000 is NUL, which no command can have",
                       fault->position);
        break;
    case json_error_numeric_overflow:
        gpq_reader_bad(r, r->line, "byte %d: the number is too large; write it as a text",
                       fault->position);
        break;
    default:
        gpq_reader_bad(r, r->line, "expected a JSON object: %.200s (byte %d)", fault->text,
                       fault->position);
    }
}

void gpq_json_line(struct gpq_jobs *r, const char *text, size_t size)
{
    json_error_t fault;
    struct gpq_error e = { 0 };
    int code;

    json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &fault);
    if (!object) {
        not_read(r, &fault);
        return;
    }
    gpq_make_clear(&r->make);
    if (!json_is_object(object))
        code = gpq_fail(&e, GPQ_EINVAL, "expected a JSON object, this is %s", kind(object));
    else
        code = (r->how.command ? take_values : take_members)(&r->make, object, &e);
    gpq_reader_job(r, r->line, code, &e);
    json_decref(object);
}
