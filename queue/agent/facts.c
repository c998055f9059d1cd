/* SPDX-License-Identifier: MIT */
/* facts.c - what stays noted until it is taken away: the pause of the queue, drained devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/classes.h"
#include "queue/agent/needs.h"
#include "queue/agent/requests.h"

enum { TEXT_MOST = 500, SUBJECT_MOST = 95, DEVICES_MOST = 1024 };

/* An earlier mark of the same subject. */
struct earlier {
    const char *kind, *subject;
    char text[TEXT_MOST + 1];
    uint64_t since;
};

static int see_earlier(const struct gpq_mark *m, void *user)
{
    struct earlier *e = user;
    if (strcmp(m->kind, e->kind) != 0 || strcmp(m->subject, e->subject) != 0)
        return 0;
    (void)snprintf(e->text, sizeof(e->text), "%s", m->text ? m->text : "");
    e->since = m->since;
    return 1;
}

/* Notes a pause or a drain.  One that is there keeps its time and, without another one, its
 * reason. */
static int note(struct gpq_call *c, const char *kind, const char *subject, const char *text)
{
    const struct gpq_engine *engine = c->a->store->engine;
    struct earlier e = { .kind = kind, .subject = subject, .since = c->now };
    int code = engine->marks(c->a->store, see_earlier, &e, c->e);
    const struct gpq_mark m = { kind, subject, text ? text : e.text, e.since };
    return code < 0 ? code : engine->mark(c->a->store, &m, c->e);
}

/* Takes it away.  False in *ret_was: it was not there. */
static int forget(struct gpq_call *c, const char *kind, const char *subject, bool *ret_was)
{
    struct gpq_error e = { 0 };
    int code = c->a->store->engine->unmark(c->a->store, kind, subject, &e);
    *ret_was = code == 0;
    if (code < 0 && code != GPQ_ENOTFOUND)
        return gpq_fail(c->e, code, "%s", e.text);
    return 0;
}

/* ---- pause and resume ---- */

struct pause {
    const char *class_name, *text;
};

const struct gpq_field gpq_pause_fields[] = {
    { "class", GPQ_FIELD_TEXT, offsetof(struct pause, class_name), 1, 63 },
    { "reason", GPQ_FIELD_TEXT, offsetof(struct pause, text), 0, TEXT_MOST },
    { 0 },
};
const struct gpq_field gpq_resume_fields[] = {
    { "class", GPQ_FIELD_TEXT, offsetof(struct pause, class_name), 1, 63 },
    { 0 },
};

/* The classes of the config file, and those of tasks whose class it has no more. */
struct known {
    const char *name;
    bool is;
};

static int see_shape(const struct gpq_shape *shape, void *user)
{
    struct known *k = user;
    struct gpq_needs needs;
    struct gpq_error e;
    if (gpq_needs_parse(shape->request, &needs, &e) < 0)
        return 0;
    k->is = needs.class_name && strcmp(needs.class_name, k->name) == 0;
    gpq_needs_free(&needs);
    return k->is;
}

static int check_class(struct gpq_call *c, const char *name)
{
    char why[384];
    struct known k = { name, !*name || strcmp(name, GPQ_COMMANDS) == 0 };
    if (k.is || gpq_class_find(c->a, name))
        return 0;
    int code = c->a->store->engine->shapes(c->a->store, see_shape, &k, c->e);
    if (code < 0 || k.is)
        return code < 0 ? code : 0;
    (void)gpq_class_usable(c->a, name, why, sizeof(why));
    return gpq_fail(c->e, GPQ_ENOTFOUND, "class is \"%.63s\": %s, and no task that waits has it",
                    name, why);
}

json_t *gpq_do_pause(struct gpq_call *c)
{
    struct pause asked = { .class_name = "" };
    int code = gpq_call_read(c, gpq_pause_fields, &asked);
    if (code == 0)
        code = check_class(c, asked.class_name);
    if (code == 0)
        code = note(c, "pause", asked.class_name, asked.text);
    return code < 0 ? NULL : gpq_reply_end(c, json_object());
}

json_t *gpq_do_resume(struct gpq_call *c)
{
    struct pause asked = { .class_name = "" };
    bool was = false;
    int code = gpq_call_read(c, gpq_resume_fields, &asked);
    if (code == 0)
        code = forget(c, "pause", asked.class_name, &was);
    return code < 0 ? NULL : gpq_reply_end(c, json_pack("{s:b}", "was_paused", (int)was));
}

/* ---- drain and undrain ---- */

struct drain {
    const char *device, *text;
    bool now;
};

const struct gpq_field gpq_drain_fields[] = {
    GPQ_MEMBER(drain, device, TEXT, 1, SUBJECT_MOST),
    { "reason", GPQ_FIELD_TEXT, offsetof(struct drain, text), 0, TEXT_MOST },
    GPQ_MEMBER(drain, now, BOOL, 0, 0),
    { 0 },
};
const struct gpq_field gpq_undrain_fields[] = {
    GPQ_MEMBER(drain, device, TEXT, 1, SUBJECT_MOST),
    { 0 },
};

/* 4 is gpu:4, or fake:4. */
static bool has_number(const char *name, const char *number)
{
    const char *colon = strchr(name, ':');
    return *number >= '0' && *number <= '9' && colon && !strcmp(colon + 1, number);
}

/* GPU-5c of GPU-5c31...: as tables print UUIDs, or shorter. */
static bool begins(const char *uuid, const char *name)
{
    size_t n = strlen(name);
    return n > 4 && (!strncmp(name, "GPU-", 4) || !strncmp(name, "MIG-", 4)) &&
           !strncmp(uuid, name, n);
}

struct gpud_device_info *gpq_devices_read(const struct gpq_agent *a, int *ret_n)
{
    int n = a->dispatcher ? gpud_dispatcher_devices(a->dispatcher, NULL, 0) : 0;
    struct gpud_device_info *rows =
        n > 0 && n <= DEVICES_MOST ? calloc((size_t)n, sizeof(*rows)) : NULL;
    *ret_n = 0;
    if (!rows)
        return NULL;
    for (int i = 0; i < n; i++)
        rows[i] = (struct gpud_device_info)GPUD_DEVICE_INFO_INIT;
    int there = gpud_dispatcher_devices(a->dispatcher, rows, (size_t)n);
    *ret_n = there < n ? there : n;
    return rows;
}

bool gpq_device_find(struct gpq_agent *a, const char *name, struct gpud_device_info *ret)
{
    int n, begun = 0;
    bool found = false;
    struct gpud_device_info *rows = gpq_devices_read(a, &n);
    for (int i = 0; i < n && !found; i++) {
        found = !strcmp(rows[i].name, name) || !strcmp(rows[i].uuid, name) ||
                has_number(rows[i].name, name);
        begun += !found && begins(rows[i].uuid, name);
        if (found || (begun == 1 && begins(rows[i].uuid, name)))
            *ret = rows[i];
    }
    free(rows);
    return found || begun == 1;
}

/* Whether the names are those of one kind, in a row. */
static bool in_a_row(const struct gpud_device_info *rows, int n)
{
    size_t kind = strcspn(rows[0].name, ":");
    unsigned first, number;
    bool ret = n > 2 && sscanf(rows[0].name + kind, ":%u", &first) == 1;
    for (int i = 1; ret && i < n; i++)
        ret = !strncmp(rows[i].name, rows[0].name, kind + 1) &&
              sscanf(rows[i].name + kind, ":%u", &number) == 1 && number == first + (unsigned)i &&
              !strchr(rows[i].name + kind + 1, ':');
    return ret;
}

void gpq_devices_text(struct gpq_agent *a, char *ret, size_t room)
{
    int n;
    size_t used = 0;
    struct gpud_device_info *rows = gpq_devices_read(a, &n);
    (void)snprintf(ret, room, "none");
    if (n > 0 && in_a_row(rows, n)) {
        (void)snprintf(ret, room, "%s to %s", rows[0].name, rows[n - 1].name);
        n = 0;
    }
    for (int i = 0; i < n && used < room; i++) {
        int more = snprintf(ret + used, room - used, "%s%s", i > 0 ? ", " : "", rows[i].name);
        used += more > 0 ? (size_t)more : 0;
    }
    free(rows);
}

static int refuse_device(struct gpq_call *c, const char *device)
{
    char all[256];
    gpq_devices_text(c->a, all, sizeof(all));
    return gpq_fail(c->e, GPQ_ENOTFOUND,
                    "device is \"%.95s\": this agent has no such device, or several; it has %s",
                    device, all);
}

/* The subject of its marks: the UUID, since names count anew after a reboot. */
static int subject_of(struct gpq_call *c, const struct drain *asked, bool must_be_there,
                      char subject[SUBJECT_MOST + 1])
{
    struct gpud_device_info info = GPUD_DEVICE_INFO_INIT;
    if (!asked->device)
        return gpq_fail(c->e, GPQ_EINVAL, "the request has no member \"device\"");
    strcpy(subject, asked->device); /* checked: SUBJECT_MOST */
    if (gpq_device_find(c->a, asked->device, &info))
        strcpy(subject, info.uuid[0] ? info.uuid : info.name);
    else if (must_be_there && c->a->dispatcher)
        return refuse_device(c, asked->device);
    return 0;
}

json_t *gpq_do_drain(struct gpq_call *c)
{
    struct drain asked = { 0 };
    char subject[SUBJECT_MOST + 1];
    int code = gpq_call_read(c, gpq_drain_fields, &asked);
    if (code == 0)
        code = subject_of(c, &asked, true, subject);
    if (code == 0)
        code = note(c, "drain", subject, asked.text);
    if (code == 0 && asked.now)
        code = note(c, "evict", subject, asked.text);
    return code < 0 ? NULL : gpq_reply_end(c, json_object());
}

json_t *gpq_do_undrain(struct gpq_call *c)
{
    struct drain asked = { 0 };
    char subject[SUBJECT_MOST + 1];
    bool was = false; /* drained */
    int code = gpq_call_read(c, gpq_undrain_fields, &asked);
    if (code == 0)
        code = subject_of(c, &asked, false, subject);
    if (code == 0)
        code = forget(c, "evict", subject, &was);
    if (code == 0)
        code = forget(c, "drain", subject, &was);
    return code < 0 ? NULL : gpq_reply_end(c, json_pack("{s:b}", "was_drained", (int)was));
}
