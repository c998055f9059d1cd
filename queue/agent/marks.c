/* SPDX-License-Identifier: MIT */
/* marks.c - pauses the queue, and drains and returns devices. */
#include "queue/agent/marks.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/ahead.h"
#include "queue/agent/needs.h"
#include "queue/agent/work.h"
#include "queue/runner/process.h"

enum { DEVICES = 128 };

struct seen {
    struct gpq_agent *a;
    bool paused;
    bool drained[DEVICES], evicted[DEVICES];
    struct gpud_device_info device[DEVICES];
    int n;
};

static bool pauses(const struct gpq_mark *m)
{
    return strcmp(m->kind, "pause") == 0 &&
           (m->subject[0] == 0 || strcmp(m->subject, GPQ_COMMANDS) == 0);
}

static int see_pause(const struct gpq_mark *m, void *user)
{
    bool *paused = user;
    *paused = *paused || pauses(m);
    return 0;
}

void gpq_marks_read_pause(struct gpq_agent *a)
{
    bool paused = false;
    struct gpq_error e;
    if (a->store->engine->marks(a->store, see_pause, &paused, &e) == 0)
        a->paused = paused;
}

static int see(const struct gpq_mark *m, void *user)
{
    struct seen *s = user;
    s->paused = s->paused || pauses(m);
    for (int i = 0; i < s->n; i++) {
        if (strcmp(m->subject, s->device[i].name) != 0 &&
            strcmp(m->subject, s->device[i].uuid) != 0)
            continue;
        s->drained[i] = s->drained[i] || strcmp(m->kind, "drain") == 0;
        s->evicted[i] = s->evicted[i] || strcmp(m->kind, "evict") == 0;
    }
    return 0;
}

/* The names of a grant are separated by commas. */
static bool has_device(const struct gpq_unit *u, const char *name)
{
    json_t *json = u->devices ? json_loads(u->devices, 0, NULL) : NULL;
    const char *at = json_string_value(json_object_get(json, "names"));
    size_t size = strlen(name);
    bool found = false;
    for (; at && *at && !found; at += strcspn(at, ","), at += *at == ',')
        found = strcspn(at, ",") == size && strncmp(at, name, size) == 0;
    json_decref(json);
    return found;
}

static void evict(struct gpq_agent *a, struct gpq_unit *u, void *user)
{
    const struct seen *s = user;
    (void)a;
    for (int i = 0; i < s->n; i++)
        if (s->evicted[i] && u->phase == GPQ_RUNS && !u->evicted &&
            has_device(u, s->device[i].name)) {
            u->evicted = true;
            if (u->runner.fd >= 0)
                (void)gpq_process_signal(u->runner.fd, SIGUSR1);
        }
}

void gpq_marks_apply(struct gpq_agent *a)
{
    struct seen *s = calloc(1, sizeof(*s));
    struct gpq_error e = { 0 };
    if (!s)
        return;
    for (int i = 0; i < DEVICES; i++)
        s->device[i] = (struct gpud_device_info)GPUD_DEVICE_INFO_INIT;
    s->n = gpud_dispatcher_devices(a->dispatcher, s->device, DEVICES);
    if (s->n > DEVICES)
        s->n = DEVICES;
    if (a->store->engine->marks(a->store, see, s, &e) < 0)
        gpq_log("marks: %s", e.text);
    bool resumed = a->held && !s->paused;
    a->paused = a->held = s->paused;
    if (resumed)
        gpq_ahead_again(a);
    for (int i = 0; i < s->n; i++) {
        bool is = s->device[i].draining != 0;
        if (s->drained[i] && !is)
            (void)gpud_dispatcher_device_drain(a->dispatcher, s->device[i].name);
        if (!s->drained[i] && is)
            (void)gpud_dispatcher_device_return(a->dispatcher, s->device[i].name);
    }
    gpq_work_each(a, evict, s);
    free(s);
}
