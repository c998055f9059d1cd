/* SPDX-License-Identifier: MIT */
/* facts.c - what stays noted until it is taken away: the pause of the queue, drained devices. */
#include <stdlib.h>
#include <string.h>

#include "queue/agent/requests.h"

enum { TEXT_MOST = 500, SUBJECT_MOST = 95, DEVICES_MOST = 1024 };

static int note(struct gpq_call *c, const char *kind, const char *subject, const char *text)
{
    const struct gpq_mark m = { kind, subject, text, c->now };
    return c->a->store->engine->mark(c->a->store, &m, c->e);
}

/* False in *ret_was: it was not noted. */
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

json_t *gpq_do_pause(struct gpq_call *c)
{
    struct pause asked = { .class_name = "", .text = "" };
    int code = gpq_call_read(c, gpq_pause_fields, &asked);
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
    int n;
    bool found = false;
    struct gpud_device_info *rows = gpq_devices_read(a, &n);
    for (int i = 0; i < n && !found; i++) {
        found = !strcmp(rows[i].name, name) || !strcmp(rows[i].uuid, name) ||
                has_number(rows[i].name, name);
        if (found)
            *ret = rows[i];
    }
    free(rows);
    return found;
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
        return gpq_fail(c->e, GPQ_ENOTFOUND,
                        "device is \"%.95s\": this agent has no such device; \"gpudispatch gpus\" "
                        "names those that there are",
                        asked->device);
    return 0;
}

json_t *gpq_do_drain(struct gpq_call *c)
{
    struct drain asked = { .text = "" };
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
