/* SPDX-License-Identifier: MIT */
#include "scripted.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void t_write_script(const char *name, const char *text)
{
    FILE *out;

    if (getenv("GPUD_WORKER")) /* an executed worker comes by here again: its host has written it */
        return;
    out = fopen(name, "we");
    T_CHECK(out);
    T_EQ(fwrite(text, 1, strlen(text), out), strlen(text));
    T_EQ(fclose(out), 0);
}

gpud_dispatcher *t_fakes(unsigned n, const char *script, const struct gpud_options *options)
{
    struct gpud_options o = *options;
    char devices[64];

    t_write_script("script", script);
    (void)snprintf(devices, sizeof(devices), "fake:%u,script=script", n);
    o.devices = devices;
    return t_create(&o);
}

void t_trigger(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    T_CMP(fd, >=, 0);
    T_EQ(close(fd), 0);
}

struct gpud_device_info t_device(gpud_dispatcher *d, const char *name)
{
    struct gpud_device_info rows[64] = { { .struct_size = sizeof(rows[0]) } };
    int n = gpud_dispatcher_devices(d, rows, 64);

    for (int i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i];
    T_FAIL("no device is named %s", name);
}

static const struct gpud_event *next_of(gpud_dispatcher *d, struct t_log *log, size_t *at,
                                        const char *device)
{
    for (;;) {
        const struct gpud_event *e;

        t_collect_kind(d, log, GPUD_EVENT_DEVICE, *at + 1);
        e = t_log_at(log, GPUD_EVENT_DEVICE, (*at)++);
        if (strcmp(e->device, device) == 0)
            return e;
    }
}

const struct gpud_event *t_told_health(gpud_dispatcher *d, struct t_log *log, size_t *at,
                                       const char *device, uint32_t health)
{
    const struct gpud_event *e;

    do
        e = next_of(d, log, at, device);
    while (e->device_health != health);
    return e;
}

const struct gpud_event *t_told(gpud_dispatcher *d, struct t_log *log, size_t *at,
                                const char *device, const char *words)
{
    const struct gpud_event *e;

    do
        e = next_of(d, log, at, device);
    while (strncmp(e->text, words, strlen(words)) != 0);
    return e;
}

/* ---- GPUs of the fake libraries ---- */

static void opened(char *to, size_t size, const char *uuid)
{
    const char *script = getenv("FAKE_SCRIPT");

    T_CHECK(script);
    (void)snprintf(to, size, "%s.open%s%s", script, *uuid ? "/" : "", uuid);
}

void t_note_openings(void)
{
    char path[256];

    opened(path, sizeof(path), "");
    (void)mkdir(path, 0700); /* a worker that is executed may find it */
}

static unsigned lines_of(gpud_dispatcher *d, const char *name, bool listens)
{
    char path[256], line[32];
    unsigned n = 0;
    FILE *f;

    opened(path, sizeof(path), t_device(d, name).uuid);
    f = fopen(path, "re");
    if (!f)
        return 0; /* no process has opened it yet */
    while (fgets(line, sizeof(line), f))
        n += (strcmp(line, "listens\n") == 0) == listens;
    (void)fclose(f);
    return n;
}

unsigned t_openings(gpud_dispatcher *d, const char *name)
{
    return lines_of(d, name, false);
}

unsigned t_ears(gpud_dispatcher *d, const char *name)
{
    return lines_of(d, name, true);
}

struct lines {
    gpud_dispatcher *d;
    const char *name;
    bool listens;
    unsigned wanted;
};

static int are_enough(void *user)
{
    const struct lines *l = user;

    return lines_of(l->d, l->name, l->listens) >= l->wanted;
}

void t_wait_for_openings(gpud_dispatcher *d, const char *name, unsigned n)
{
    t_wait_until("a GPU is opened", are_enough, &(struct lines){ d, name, false, n });
}

void t_wait_for_ears(gpud_dispatcher *d, const char *name, unsigned n)
{
    t_wait_until("a monitor listens", are_enough, &(struct lines){ d, name, true, n });
}
