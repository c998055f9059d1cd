/* SPDX-License-Identifier: MIT */
/* control.c - the agent itself: how it is, and that it should end. */
#include <string.h>
#include <unistd.h>

#include "queue/agent/requests.h"
#include "queue/agent/settings.h"

/* ---- status ---- */

const struct gpq_field gpq_status_fields[] = { { 0 } };

struct marks {
    struct gpq_agent *a;
    json_t *list;
};

/* Others are notes of the agent for itself. */
static bool is_for_people(const char *kind)
{
    return strcmp(kind, "pause") == 0 || strcmp(kind, "drain") == 0 || strcmp(kind, "evict") == 0;
}

static int one_mark(const struct gpq_mark *m, void *user)
{
    const struct marks *marks = user;
    struct gpud_device_info info = GPUD_DEVICE_INFO_INIT;
    if (!is_for_people(m->kind))
        return 0;
    json_t *row = json_pack("{s:o, s:o, s:o, s:I}", "kind", gpq_text_json(m->kind), "subject",
                            gpq_text_json(m->subject), "reason", gpq_text_json(m->text), "since",
                            (json_int_t)m->since);
    if (row && m->subject && *m->subject && gpq_device_find(marks->a, m->subject, &info))
        (void)json_object_set_new(row, "device", json_string(info.name));
    return json_array_append_new(marks->list, row) == 0 ? 0 : GPQ_ENOMEM;
}

static int one_running(const struct gpq_attempt *a, void *user)
{
    (void)a;
    (*(uint64_t *)user)++;
    return 0;
}

/* The keys that it was started with, each with the place of its value.  NULL: no memory. */
static json_t *settings_json(const struct gpq_settings *s)
{
    json_t *all = json_object();
    for (unsigned k = 0; s && all && k < GPQ_KEYS; k++) {
        const char *value = NULL;
        char where[GPQ_PATH + 32];
        enum gpq_origin origin;
        struct gpq_error e;
        if (gpq_keys[k].section != GPQ_SECTION_TOP || gpq_keys[k].users != GPQ_BY_AGENT ||
            gpq_config_get(&s->config, (enum gpq_key)k, &value, &origin, &e) < 0)
            continue;
        (void)gpq_config_where(&s->config, (enum gpq_key)k, origin, where, sizeof(where));
        json_t *row =
            json_pack("{s:o, s:o}", "value", gpq_text_json(value), "origin", gpq_text_json(where));
        if (row)
            (void)json_object_set_new(all, gpq_keys[k].name, row);
    }
    return all;
}

json_t *gpq_do_status(struct gpq_call *c)
{
    struct gpq_agent *a = c->a;
    uint64_t running = 0;
    int code = gpq_call_read(c, gpq_status_fields, NULL);
    if (code == 0)
        code = a->store->engine->running(a->store, one_running, &running, c->e);
    json_t *marks = code == 0 ? json_array() : NULL;
    if (marks)
        code = a->store->engine->marks(a->store, one_mark, &(struct marks){ a, marks }, c->e);
    if (code < 0) {
        json_decref(marks);
        return c->e->code < 0 ? NULL : gpq_no_memory(c);
    }
    const char *config = a->settings ? a->settings->config_file : NULL;
    return gpq_reply_end(
        c, json_pack("{s:i, s:o, s:I, s:I, s:b, s:b, s:b, s:b, s:o, s:o, s:o, s:o}", "pid",
                     (int)getpid(), "state", gpq_text_json(a->state), "devices",
                     (json_int_t)a->devices, "running", (json_int_t)running, "stopping",
                     (int)a->stop.now, "draining", (int)a->stop.drains, "cancelling",
                     (int)a->stop.cancels, "starts_wait", (int)a->starts_wait, "wait_text",
                     gpq_text_json(a->wait_text), "marks", marks, "settings",
                     settings_json(a->settings), "config", gpq_text_json(config)));
}

/* ---- stop ---- */

struct stop {
    const char *how;
};

const struct gpq_field gpq_stop_fields[] = {
    GPQ_MEMBER(stop, how, TEXT, 0, 64),
    { 0 },
};

json_t *gpq_do_stop(struct gpq_call *c)
{
    struct stop asked = { .how = "leave" };
    if (gpq_call_read(c, gpq_stop_fields, &asked) < 0)
        return NULL;
    bool cancels = !strcmp(asked.how, "cancel"), drains = cancels || !strcmp(asked.how, "drain");
    if (!drains && strcmp(asked.how, "leave") != 0) {
        gpq_fail(c->e, GPQ_EINVAL, "how is \"%.40s\", expected one of: leave, drain, cancel",
                 asked.how);
        return NULL;
    }
    c->a->stop.now = c->a->stop.asked = true;
    c->a->stop.drains = c->a->stop.drains || drains;
    c->a->stop.cancels = c->a->stop.cancels || cancels;
    return gpq_reply_end(c, json_pack("{s:i}", "pid", (int)getpid()));
}
