/* SPDX-License-Identifier: MIT */
/* rows.c - rows of the store as JSON. */
#include <string.h>

#include "queue/agent/base64.h"
#include "queue/agent/needs.h"
#include "queue/agent/payload.h"
#include "queue/agent/requests.h"

static const struct {
    uint32_t bit;
    const char *name;
} hold_names[] = { { GPQ_HOLD_AFTER, "after" },
                   { GPQ_HOLD_TIME, "time" },
                   { GPQ_HOLD_USER, "user" },
                   { GPQ_HOLD_TURN, "turn" } };

/* An object that is built member by member; one that has failed stays NULL. */
struct built {
    json_t *json;
};

static void set(struct built *b, const char *name, json_t *value)
{
    if (b->json && json_object_set_new(b->json, name, value) == 0)
        return;
    if (!b->json)
        json_decref(value);
    json_decref(b->json);
    b->json = NULL;
}

static void set_number(struct built *b, const char *name, int64_t value)
{
    set(b, name, json_integer(value));
}

/* Times, ids and counts for which 0 means none are left out. */
static void set_some(struct built *b, const char *name, uint64_t value)
{
    if (value != 0)
        set_number(b, name, (int64_t)value);
}

static void set_text(struct built *b, const char *name, const char *text)
{
    if (text)
        set(b, name, gpq_text_json(text));
}

static void set_true(struct built *b, const char *name, bool value)
{
    if (value)
        set(b, name, json_true());
}

/* Texts of clients, which are UTF-8. */
static void set_bytes(struct built *b, const char *name, struct gpq_bytes bytes)
{
    if (bytes.size != 0)
        set(b, name, json_stringn(bytes.data, bytes.size));
}

/* JSON that the agent wrote. */
static void set_json(struct built *b, const char *name, struct gpq_bytes bytes)
{
    json_t *json =
        bytes.size != 0 ? json_loadb(bytes.data, bytes.size, JSON_DECODE_ANY, NULL) : NULL;
    if (json)
        set(b, name, json);
}

/* The members of an object that the agent wrote. */
static void set_members(struct built *b, struct gpq_bytes bytes)
{
    json_t *json = bytes.size != 0 ? json_loadb(bytes.data, bytes.size, 0, NULL) : NULL;
    if (json && b->json && json_object_update(b->json, json) != 0) {
        json_decref(b->json);
        b->json = NULL;
    }
    json_decref(json);
}

static void set_counts(struct built *b, const char *name, const struct gpq_words *words,
                       const uint32_t *count)
{
    struct built counts = { json_object() };
    for (uint32_t value = words->first; value < words->n; value++)
        if (count[value] != 0)
            set_number(&counts, words->text(value), count[value]);
    set(b, name, counts.json);
}

/* ---- Batches ---- */

json_t *gpq_batch_json(const struct gpq_batch *batch)
{
    struct built b = { json_object() };
    set(&b, "batch", gpq_id_json(GPQ_TASK(batch->id, 0)));
    set_text(&b, "name", batch->name);
    set_number(&b, "made", (int64_t)batch->made);
    set_some(&b, "ended", batch->ended);
    set_number(&b, "total", batch->total);
    set_number(&b, "joined", batch->joined);
    set_counts(&b, "states", &gpq_state_words, batch->state);
    set_counts(&b, "outcomes", &gpq_outcome_words, batch->outcome);
    set_some(&b, "at_once", batch->at_once);
    if (batch->fails_limited)
        set_number(&b, "max_fails", batch->max_fails);
    set_some(&b, "max_fails_percent", batch->max_fails_percent);
    set_true(&b, "open", batch->open);
    set_true(&b, "held", batch->held);
    set_members(&b, batch->options);
    return b.json;
}

/* ---- Tasks ---- */

static void set_holds(struct built *b, uint32_t holds)
{
    struct built list = { json_array() };
    if (holds == 0) {
        json_decref(list.json);
        return;
    }
    for (size_t i = 0; i < sizeof(hold_names) / sizeof(hold_names[0]); i++)
        if (holds & hold_names[i].bit && list.json &&
            json_array_append_new(list.json, json_string(hold_names[i].name)) != 0) {
            json_decref(list.json);
            list.json = NULL;
        }
    set(b, "holds", list.json);
}

/* A payload is shown as text, if it is one that JSON can hold. */
static void set_content(struct built *b, struct gpq_bytes content)
{
    if (gpq_is_argv(content)) {
        set(b, "argv", gpq_texts_json(content));
        return;
    }
    struct gpq_bytes payload = gpq_payload_of(content);
    json_t *text = payload.size != 0 ? gpq_bytes_text(payload) : NULL;
    if (text)
        set(b, "payload", text);
    else
        set(b, "payload_base64", gpq_base64_json(payload));
}

json_t *gpq_task_json(const struct gpq_task *t, bool whole)
{
    struct built b = { json_object() };
    set(&b, "task", gpq_id_json(t->id));
    set_text(&b, "state", gpq_state_text(t->state));
    set_holds(&b, t->holds);
    if (t->outcome != 0)
        set_text(&b, "outcome", gpq_outcome_text(t->outcome));
    set_number(&b, "priority", t->priority);
    set_number(&b, "round", t->round);
    set_number(&b, "attempt", t->attempt);
    set_number(&b, "charged", t->charged);
    set_some(&b, "losses", t->losses);
    set_true(&b, "cancel", t->cancel);
    set_some(&b, "not_before", t->not_before);
    set_some(&b, "expires", t->expires);
    set_some(&b, "ended", t->ended);
    if (t->cause != 0)
        set(&b, "cause", gpq_id_json(t->cause));
    if (!whole)
        return b.json;
    set_some(&b, "line", t->line);
    set_text(&b, "name", t->name);
    set_content(&b, t->content);
    set_bytes(&b, "key", t->key);
    return b.json;
}

/* ---- Specs ---- */

static void set_retries(struct built *b, const uint32_t retries[GPQ_CAUSES])
{
    set_counts(b, "retries", &gpq_cause_words, retries);
}

/* Members of `content` are those of the row: class and cwd.  The needs of a command are those of
 * the shape, which a change may have replaced. */
static void set_content_of_spec(struct built *b, const struct gpq_spec *spec)
{
    json_t *content = json_loadb(spec->content.data, spec->content.size, 0, NULL), *value;
    const char *name;
    json_object_foreach(content, name, value) if (strcmp(name, "needs") != 0)
        set(b, name, json_incref(value));
    const char *class_name = json_string_value(json_object_get(content, "class"));
    bool is_command = class_name && !strcmp(class_name, GPQ_COMMANDS);
    json_decref(content);
    if (is_command)
        set_json(b, "needs", spec->shape);
}

json_t *gpq_spec_json(const struct gpq_spec *spec, bool with_environment)
{
    struct built b = { json_object() };
    set_content_of_spec(&b, spec);
    set_members(&b, spec->options);
    set_number(&b, "priority", spec->priority);
    set_retries(&b, spec->retries);
    set_some(&b, "backoff", spec->backoff);
    set_some(&b, "backoff_cap", spec->backoff_cap);
    set_some(&b, "begin", spec->begin);
    set_some(&b, "expires", spec->expires);
    set_true(&b, "at_most_once", spec->at_most_once);
    if (with_environment)
        set(&b, "environment", gpq_texts_json(spec->environment));
    return b.json;
}

/* ---- Attempts ---- */

json_t *gpq_attempt_json(const struct gpq_attempt *a)
{
    struct built b = { json_object() };
    set_number(&b, "attempt", a->number);
    set_number(&b, "round", a->round);
    if (a->outcome != 0)
        set_text(&b, "outcome", gpq_outcome_text(a->outcome));
    if (a->returned_at != 0) {
        set_text(&b, "returned", gpq_return_text(a->returned));
        set_number(&b, "returned_at", (int64_t)a->returned_at);
    }
    set_number(&b, "claimed", (int64_t)a->claimed);
    set_some(&b, "started", a->started);
    set_some(&b, "ended", a->ended);
    set(&b, "charged", json_boolean(a->charged));
    if (a->outcome != 0)
        set_number(&b, "status", a->status);
    if (a->devices)
        set_json(&b, "devices", (struct gpq_bytes){ a->devices, strlen(a->devices) });
    set_text(&b, "run", a->run);
    set_text(&b, "text", a->text);
    set_text(&b, "said", a->said);
    return b.json;
}
