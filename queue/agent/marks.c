/* SPDX-License-Identifier: MIT */
/* marks.c - pauses the queue, and drains and returns devices. */
#include "queue/agent/marks.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES = 128 };

struct seen {
    struct gpq_agent *a;
    bool paused;
    bool drained[DEVICES];
    struct gpud_device_info device[DEVICES];
    int n;
};

static int see(const struct gpq_mark *m, void *user)
{
    struct seen *s = user;
    if (strcmp(m->kind, "pause") == 0 && m->subject[0] == 0)
        s->paused = true;
    for (int i = 0; i < s->n; i++)
        if (strcmp(m->kind, "drain") == 0 && (strcmp(m->subject, s->device[i].name) == 0 ||
                                              strcmp(m->subject, s->device[i].uuid) == 0))
            s->drained[i] = true;
    return 0;
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
    a->paused = s->paused;
    for (int i = 0; i < s->n; i++) {
        bool is = s->device[i].draining != 0;
        if (s->drained[i] && !is)
            (void)gpud_dispatcher_device_drain(a->dispatcher, s->device[i].name);
        if (!s->drained[i] && is)
            (void)gpud_dispatcher_device_return(a->dispatcher, s->device[i].name);
    }
    free(s);
}
