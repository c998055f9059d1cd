/* SPDX-License-Identifier: MIT */
/* marks.c - pauses the queue, and drains and returns devices. */
#include "queue/agent/marks.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/grant.h"
#include "queue/agent/needs.h"
#include "queue/agent/workers.h"
#include "queue/runner/process.h"

enum { DEVICES = 128 };

/* ---- Pauses ---- */

struct class_pause {
    const char *name;
    bool paused;
};

static int see_class(const struct gpq_mark *m, void *user)
{
    struct class_pause *c = user;
    c->paused =
        strcmp(m->kind, "pause") == 0 && (m->subject[0] == 0 || strcmp(m->subject, c->name) == 0);
    return c->paused;
}

/* Whether a class is paused; without memory as before. */
static void read_pause(struct gpq_agent *a, const char *name, bool *paused)
{
    struct class_pause c = { .name = name };
    struct gpq_error e;
    if (a->store->engine->marks(a->store, see_class, &c, &e) >= 0)
        *paused = c.paused;
}

void gpq_marks_read_pause(struct gpq_agent *a)
{
    read_pause(a, GPQ_COMMANDS, &a->paused);
    for (size_t i = 0; a->classes && i < a->classes->n; i++)
        read_pause(a, a->classes->list[i].name, &a->classes->list[i].pausing);
}

/* ---- Devices ---- */

struct seen {
    bool drained[DEVICES], evicted[DEVICES];
    struct gpud_device_info *device;
    int n;
};

static int see(const struct gpq_mark *m, void *user)
{
    struct seen *s = user;
    for (int i = 0; i < s->n; i++) {
        if (strcmp(m->subject, s->device[i].name) != 0 &&
            strcmp(m->subject, s->device[i].uuid) != 0)
            continue;
        s->drained[i] = s->drained[i] || strcmp(m->kind, "drain") == 0;
        s->evicted[i] = s->evicted[i] || strcmp(m->kind, "evict") == 0;
    }
    return 0;
}

struct eviction {
    struct gpq_grant grant;
    uint64_t by;
};

static int see_eviction(const struct gpq_mark *m, void *user)
{
    const struct eviction *v = user;
    return strcmp(m->kind, "evict") == 0 && m->since <= v->by &&
           (gpq_list_has(v->grant.uuids, m->subject) || gpq_list_has(v->grant.names, m->subject));
}

int gpq_marks_evicted(struct gpq_agent *a, const char *devices, uint64_t by, struct gpq_error *e)
{
    struct eviction v = { .by = by };
    int found = 0;
    if (devices && gpq_grant_read(devices, &v.grant))
        found = a->store->engine->marks(a->store, see_eviction, &v, e);
    gpq_grant_free(&v.grant);
    return found;
}

static void evict(struct gpq_agent *a, struct gpq_unit *u, void *user)
{
    const struct seen *s = user;
    struct gpq_grant grant;
    (void)a;
    if (u->phase != GPQ_RUNS || u->evicted)
        return;
    (void)gpq_grant_read(u->devices, &grant);
    for (int i = 0; i < s->n && !u->evicted; i++)
        u->evicted = s->evicted[i] && gpq_list_has(grant.uuids, s->device[i].uuid);
    if (u->evicted && u->runner.fd >= 0)
        (void)gpq_process_signal(u->runner.fd, SIGUSR1);
    gpq_grant_free(&grant);
}

static void apply_to_devices(struct gpq_agent *a)
{
    struct seen s = { 0 };
    struct gpq_error e = { 0 };
    s.device = gpq_devices_read(a, &s.n);
    if (s.n > DEVICES)
        s.n = DEVICES;
    if (a->store->engine->marks(a->store, see, &s, &e) < 0) {
        gpq_log("marks: %s", e.text);
        s.n = 0; /* devices stay drained, or not, as they are */
    }
    for (int i = 0; i < s.n; i++) {
        bool is = s.device[i].draining != 0;
        if (s.drained[i] && !is)
            (void)gpud_dispatcher_device_drain(a->dispatcher, s.device[i].name);
        if (!s.drained[i] && is)
            (void)gpud_dispatcher_device_return(a->dispatcher, s.device[i].name);
    }
    gpq_work_each(a, evict, &s);
    for (int i = 0; i < s.n; i++)
        if (s.evicted[i])
            gpq_workers_evict(a, s.device[i].name);
    free(s.device);
}

void gpq_marks_apply(struct gpq_agent *a)
{
    gpq_marks_read_pause(a);
    apply_to_devices(a);
    if (a->stop.now) /* then nothing starts any more */
        return;
    for (size_t i = 0; a->classes && i < a->classes->n; i++)
        gpq_workers_pause(a, &a->classes->list[i], a->classes->list[i].pausing);
}
