/* SPDX-License-Identifier: MIT */
/* states.c - the states of devices, workers and waiting tasks, as rows of spans.c. */
#include "queue/agent/states.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "queue/agent/classes.h"
#include "queue/agent/look.h"
#include "queue/agent/needs.h"
#include "queue/agent/now.h"
#include "queue/grow.h"

enum { TEXT = GPQ_SPAN_TEXT };

/* ---- Workers that were there ---- */

struct known {
    char device[32], class[GPQ_CLASS_NAME];
    bool died;
};

struct gpq_states {
    struct known *known;
    size_t n, room;
};

struct gpq_states *gpq_states_new(void)
{
    return calloc(1, sizeof(struct gpq_states));
}

void gpq_states_free(struct gpq_states *t)
{
    if (t)
        free(t->known);
    free(t);
}

static struct known *find_known(struct gpq_states *t, const char *device, const char *class)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->known[i].device, device) == 0 && strcmp(t->known[i].class, class) == 0)
            return &t->known[i];
    return NULL;
}

/* Without memory it is forgotten. */
static void know(struct gpq_states *t, const char *device, const char *class, bool died)
{
    struct known *k = find_known(t, device, class);
    struct known *larger = k ? t->known : gpq_grown(t->known, t->n, &t->room, sizeof(*larger));
    if (!larger)
        return;
    t->known = larger;
    if (!k) {
        k = &t->known[t->n++];
        snprintf(k->device, sizeof(k->device), "%s", device);
        snprintf(k->class, sizeof(k->class), "%s", class);
    }
    k->died = died;
}

/* Calls fn for each name of a list with commas. */
static void each_name(const char *list, void (*fn)(const char *name, void *user), void *user)
{
    char name[32];
    for (const char *at = list, *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, ",");
        snprintf(name, sizeof(name), "%.*s", (int)(end - at), at);
        fn(name, user);
    }
}

struct death {
    struct gpq_states *states;
    const char *class;
};

static void note_death(const char *device, void *user)
{
    const struct death *d = user;
    know(d->states, device, d->class, true);
}

void gpq_states_hear(struct gpq_states *t, const struct gpud_event *e)
{
    bool died = e->kind == GPUD_EVENT_SETUP_FAILURE ||
                (e->kind == GPUD_EVENT_OUTCOME && e->exit_kind != GPUD_EXIT_NONE);
    if (died && *e->class_name && strcmp(e->class_name, GPQ_COMMANDS) != 0)
        each_name(e->device, note_death, &(struct death){ t, e->class_name });
}

/* ---- Devices ---- */

int gpq_look_index(const struct gpq_look *l, const char *device)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->device[i].name, device) == 0)
            return i;
    return -1;
}

static const char *subject_of(const struct gpud_device_info *d)
{
    return d->uuid[0] ? d->uuid : d->name;
}

/* The user of a process; this machine's own file of users is enough, and no network is asked. */
static void user_text(uint32_t pid, char *ret, size_t size)
{
    char path[32];
    struct stat st;
    struct passwd *p = NULL;
    snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
    *ret = '\0';
    if (pid == 0 || stat(path, &st) < 0)
        return;
    FILE *file = fopen("/etc/passwd", "re");
    while (file && (p = fgetpwent(file)) && p->pw_uid != st.st_uid)
        continue;
    if (p)
        snprintf(ret, size, "user %.32s, ", p->pw_name);
    else
        snprintf(ret, size, "user %lu, ", (unsigned long)st.st_uid);
    if (file)
        (void)fclose(file);
}

/* "user ben, pid 8123, 41984 MiB"; parts that are not known are left out. */
static void foreign_text(const struct gpud_reason *r, char *ret, size_t size)
{
    char user[64], pid[24] = "";
    user_text(r->pid, user, sizeof(user));
    if (r->pid != 0)
        snprintf(pid, sizeof(pid), "pid %" PRIu32 ", ", r->pid);
    if (r->unit == GPUD_UNIT_BYTES)
        snprintf(ret, size, "%s%s%" PRIu64 " MiB", user, pid, r->have >> 20);
    else
        snprintf(ret, size, "%s%s%" PRIu64 " %% busy", user, pid, r->have / 100);
}

static const char *out_reason(const struct gpud_device_info *d, const struct gpq_told *t)
{
    if (d->health == GPUD_HEALTH_LOST)
        return "lost";
    if (d->state == GPUD_DEVICE_STATE_QUARANTINED)
        return "quarantined";
    if (d->state == GPUD_DEVICE_STATE_FAILED)
        return "failed";
    if (d->draining != 0)
        return "drained";
    if (d->state == GPUD_DEVICE_STATE_BACKOFF)
        return "backoff";
    return t->foreign.kind == GPUD_REASON_FOREIGN ? "foreign" : NULL;
}

struct drain {
    const struct gpud_device_info *device;
    char *why;
    size_t size;
};

static int read_drain(const struct gpq_mark *m, void *user)
{
    struct drain *d = user;
    if (strcmp(m->kind, "drain") != 0 || strcmp(m->subject, subject_of(d->device)) != 0)
        return 0;
    snprintf(d->why, d->size, "%s", m->text ? m->text : "");
    return 1;
}

/* The reason that a person gave, or none. */
static void drain_text(const struct gpq_agent *a, const struct gpud_device_info *device, char *ret,
                       size_t size)
{
    struct drain d = { device, ret, size };
    struct gpq_error e;
    ret[0] = 0;
    (void)a->store->engine->marks(a->store, read_drain, &d, &e);
}

static void see_out(struct gpq_agent *a, struct gpq_look *l, int i)
{
    const struct gpud_device_info *d = &l->device[i];
    const char *reason = out_reason(d, &l->told[i]);
    char text[TEXT], why[160];
    if (!reason || gpq_span_goes_on(l->spans, "device", subject_of(d), reason, ""))
        return;
    snprintf(why, sizeof(why), "%s", d->evidence);
    if (strcmp(reason, "foreign") == 0)
        foreign_text(&l->told[i].foreign, why, sizeof(why));
    if (strcmp(reason, "drained") == 0)
        drain_text(a, d, why, sizeof(why));
    snprintf(text, sizeof(text), "%s%s%s", d->name, *why ? ": " : "", why);
    gpq_span_begin(l->spans, "device", subject_of(d), reason, "", text);
}

static void see_kept(struct gpq_look *l, int i)
{
    const struct gpq_told *t = &l->told[i];
    const char *subject = subject_of(&l->device[i]);
    char key[16], text[TEXT];
    if (t->kept_for == 0)
        return;
    snprintf(key, sizeof(key), "%" PRIu32, t->kept_shape);
    if (gpq_span_goes_on(l->spans, "tenancy", subject, "kept", key))
        return;
    snprintf(text, sizeof(text), "%u.%u: held for %" PRIu32 " GPUs", GPQ_BATCH_OF(t->kept_for),
             GPQ_NUMBER_OF(t->kept_for), t->gpus);
    gpq_span_begin(l->spans, "tenancy", subject, "kept", key, text);
}

/* ---- Workers ---- */

static const char *boot_text(struct gpq_states *t, const char *device, const char *class)
{
    const struct known *k = find_known(t, device, class);
    const char *why = !k ? "first use" : k->died ? "restart" : "again";
    know(t, device, class, false);
    return why;
}

static void see_boot(struct gpq_look *l, struct gpq_states *t, int i, const char *class,
                     const char *key)
{
    const char *subject = subject_of(&l->device[i]);
    char text[TEXT];
    if (gpq_span_goes_on(l->spans, "tenancy", subject, "boot", key))
        return;
    snprintf(text, sizeof(text), "%s: %s", class, boot_text(t, l->device[i].name, class));
    gpq_span_begin(l->spans, "tenancy", subject, "boot", key, text);
}

/* The memory of a dead worker may take a while to be free. */
static void unload_text(const struct gpq_look *l, struct gpq_states *t, int i,
                        const struct gpud_slot_stats *slot, char ret[TEXT])
{
    const struct known *k = find_known(t, l->device[i].name, slot->class_name);
    const char *by = l->told[i].wanted_by, *why = "no task for it";
    if (slot->state == GPUD_SLOT_COOLING && k && k->died) {
        why = "it died";
        by = "";
    } else if (*by) {
        why = "evicted for ";
    } else if (l->device[i].draining != 0) {
        why = "device drained";
    }
    snprintf(ret, TEXT, "%s: %s%s", slot->class_name, why, by);
}

static void see_unload(struct gpq_look *l, struct gpq_states *t, int i,
                       const struct gpud_slot_stats *slot, const char *key)
{
    const char *subject = subject_of(&l->device[i]);
    char text[TEXT];
    if (gpq_span_goes_on(l->spans, "tenancy", subject, "unload", key))
        return;
    unload_text(l, t, i, slot, text);
    gpq_span_begin(l->spans, "tenancy", subject, "unload", key, text);
}

struct seat {
    struct gpq_look *look;
    struct gpq_states *states;
    const struct gpud_slot_stats *slot;
};

/* Each worker has rows of its own. */
static void see_seat(const char *device, void *user)
{
    const struct seat *s = user;
    const char *class = s->slot->class_name;
    char key[32];
    int i = gpq_look_index(s->look, device);
    snprintf(key, sizeof(key), "%" PRIu32 ".%" PRIu32, s->slot->slot, s->slot->incarnation);
    if (i < 0 || s->look->device[i].kind == GPUD_DEVICE_CPU)
        return;
    if (s->slot->state == GPUD_SLOT_STARTING)
        see_boot(s->look, s->states, i, class, key);
    else if (s->slot->state == GPUD_SLOT_UNLOADING || s->slot->state == GPUD_SLOT_COOLING)
        see_unload(s->look, s->states, i, s->slot, key);
    else if (s->slot->state == GPUD_SLOT_READY || s->slot->state == GPUD_SLOT_BUSY)
        know(s->states, device, class, false);
}

static void see_workers(struct gpq_agent *a, struct gpq_look *l, struct gpq_states *t)
{
    int n = gpud_dispatcher_slots(a->dispatcher, NULL, 0);
    struct gpud_slot_stats *slots = n > 0 ? calloc((size_t)n, sizeof(*slots)) : NULL;
    gpq_now_slot(a, NULL);
    if (!slots)
        return;
    slots[0] = (struct gpud_slot_stats)GPUD_SLOT_STATS_INIT;
    int there = gpud_dispatcher_slots(a->dispatcher, slots, (size_t)n);
    for (int i = 0; i < there && i < n; i++)
        if (*slots[i].class_name) {
            gpq_now_slot(a, &slots[i]);
            each_name(slots[i].devices, see_seat, &(struct seat){ l, t, &slots[i] });
        }
    free(slots);
}

/* ---- All ---- */

static void look(struct gpq_agent *a, struct gpq_look *l, struct gpq_states *t)
{
    if (!a->stop.now)
        gpq_waiting_look(a, l);
    for (int i = 0; i < l->n; i++)
        if (l->device[i].kind != GPUD_DEVICE_CPU) {
            see_out(a, l, i);
            see_kept(l, i);
        }
    if (a->classes && a->classes->n != 0)
        see_workers(a, l, t);
}

/* Without memory nothing is seen. */
void gpq_states_look(struct gpq_agent *a, struct gpq_spans *s, struct gpq_states *t)
{
    struct gpq_look l = { .spans = s };
    l.device = gpq_devices_read(a, &l.n);
    l.told = l.device ? calloc((size_t)l.n, sizeof(*l.told)) : NULL;
    if (!l.told)
        l.n = 0;
    look(a, &l, t);
    free(l.told);
    free(l.device);
}
