/* SPDX-License-Identifier: MIT */
/* places.c - devices and slots of a decision log: GPUs, tenancies, and what is out of use. */
#include <stdio.h>
#include <string.h>

#include "view/line.h"
#include "view/read/parts.h"

/* ---- Devices ---- */

static struct gpv_log_device *device_at(struct gpv_log *l, uint32_t device)
{
    if (device >= GPV_LOG_DEVICES) {
        l->strange = true;
        return NULL;
    }
    if (!GPV_LOG_ROOM(l, l->devices, (size_t)device + 1))
        return NULL;
    return &l->devices.row[device];
}

static struct gpv_log_device *device_of_line(struct gpv_log *l)
{
    uint32_t device;

    return gpv_log_number(l, "d", GPV_LOG_DEVICES - 1, &device) ? device_at(l, device) : NULL;
}

/* A list of GPUs has commas between them. */
static bool is_item(struct gpv_word text)
{
    return text.size != 0 && !memchr(text.at, ',', text.size) && !memchr(text.at, '\\', text.size);
}

void gpv_log_device_fact(struct gpv_log *l, uint32_t device, struct gpv_word word,
                         struct gpv_word text)
{
    static const struct {
        const char *word;
        size_t at;
        bool is_name;
    } facts[] = {
        { "name", offsetof(struct gpv_gpu, name), true },
        { "uuid", offsetof(struct gpv_gpu, uuid), true },
        { "model", offsetof(struct gpv_gpu, model), false },
        { "pci", offsetof(struct gpv_gpu, pci), false },
        { "profile", offsetof(struct gpv_gpu, profile), false },
        { "parent", offsetof(struct gpv_gpu, parent), false },
    };
    struct gpv_log_device *d = device_at(l, device);
    uint64_t index;

    if (!d)
        return;
    if (d->there || gpv_word_is(word, "name")) { /* from here on it may be another one */
        d->there = false;
        d->row = (struct gpv_gpu){ .index = GPV_NONE };
    }
    if (gpv_word_is(word, "index")) {
        l->strange = !gpv_word_number(text, GPV_NONE - 1, &index);
        d->row.index = l->strange ? GPV_NONE : (uint32_t)index;
    }
    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
        uint32_t kept;
        if (!gpv_word_is(word, facts[i].word))
            continue;
        if (facts[i].is_name && !is_item(text)) {
            l->strange = true;
            return;
        }
        kept = gpv_line_keep(l->night, text.at, text.size);
        l->no_memory = l->no_memory || kept == GPV_NONE;
        if (kept != GPV_NONE)
            memcpy((char *)&d->row + facts[i].at, &kept, sizeof(kept));
    }
}

/* A device without facts has its number as its name. */
static uint32_t gpu_of(struct gpv_log *l, uint32_t device)
{
    struct gpv_log_device *d = device_at(l, device);
    char name[32];

    if (!d)
        return GPV_NONE;
    if (d->there)
        return d->gpu;
    if (d->row.name == 0) {
        (void)snprintf(name, sizeof(name), "device %u", (unsigned)device);
        d->row = (struct gpv_gpu){ .name = gpv_log_keep(l, name), .index = GPV_NONE };
    }
    if (l->no_memory)
        return GPV_NONE;
    gpv_log_added(l, gpv_add_gpu(l->night, &d->row));
    d->there = true;
    d->gpu = gpv_find_gpu(l->night, gpv_text(l->night, d->row.uuid ? d->row.uuid : d->row.name));
    return d->gpu;
}

void gpv_log_join(struct gpv_log *l, uint16_t *set, uint32_t device)
{
    const uint32_t gpu = gpu_of(l, device);
    const struct gpv_set old = gpv_set(l->night, *set);
    uint16_t all[GPV_LOG_SET], kept;
    uint32_t at = 0;

    if (gpu == GPV_NONE || gpv_set_has(old, gpu) || old.n == GPV_LOG_SET) {
        l->strange = l->strange || old.n == GPV_LOG_SET;
        return;
    }
    while (at < old.n && old.gpu[at] < gpu)
        at++;
    for (uint32_t i = 0; i < old.n; i++)
        all[i < at ? i : i + 1] = old.gpu[i];
    all[at] = (uint16_t)gpu;
    kept = gpv_keep_set(l->night, all, old.n + 1);
    if (kept == GPV_NONE16)
        gpv_log_added(l, gpv_sets_are_full(l->night) ? 1 : -1);
    else
        *set = kept;
}

void gpv_log_join_all(struct gpv_log *l, uint16_t *set, struct gpv_word list)
{
    const char *end = list.at + list.size;

    for (const char *at = list.at; at < end && !l->strange && !l->no_memory;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const struct gpv_word word = { at, (size_t)((comma ? comma : end) - at) };
        uint64_t device;
        if (gpv_word_number(word, GPV_LOG_DEVICES - 1, &device))
            gpv_log_join(l, set, (uint32_t)device);
        else
            l->strange = true;
        at = comma ? comma + 1 : end;
    }
}

/* ---- Out of use ---- */

static void add_out(struct gpv_log *l, uint32_t gpu, uint32_t kind, int64_t since, int64_t until,
                    uint32_t text)
{
    const struct gpv_out row = { since, until, gpu, text, kind };

    if (gpu != GPV_NONE && since != 0)
        gpv_log_added(l, gpv_add_out(l->night, &row));
}

static void set_out(struct gpv_log *l, struct gpv_log_device *d, uint32_t kind, bool is_out,
                    const char *text)
{
    const uint32_t gpu = gpu_of(l, (uint32_t)(d - l->devices.row));

    if (is_out == (d->out[kind] != 0))
        return;
    if (!is_out)
        add_out(l, gpu, kind, d->out[kind], l->now, d->text[kind]);
    d->out[kind] = is_out ? l->now : 0;
    d->text[kind] = is_out ? gpv_log_keep(l, text) : 0;
}

void gpv_log_device(struct gpv_log *l)
{
    struct gpv_words rest = l->rest;
    struct gpv_log_device *d;
    uint64_t device;

    if (gpv_word_number(gpv_word_next(&rest), GPV_LOG_DEVICES - 1, &device)) {
        (void)gpu_of(l, (uint32_t)device);
        return;
    }
    d = device_of_line(l);
    if (!d)
        return;
    set_out(l, d, GPV_OUT_QUARANTINED, gpv_log_says(l, "how", "out"), "");
    set_out(l, d, GPV_OUT_LOST, gpv_log_says(l, "how", "dead"), "");
}

void gpv_log_pause(struct gpv_log *l)
{
    struct gpv_log_device *d = device_of_line(l);

    if (d)
        set_out(l, d, GPV_OUT_DRAINED, true, "paused");
}

void gpv_log_drain(struct gpv_log *l)
{
    struct gpv_log_device *d = device_of_line(l);

    if (d)
        set_out(l, d, GPV_OUT_DRAINED, true, "");
}

void gpv_log_return(struct gpv_log *l)
{
    struct gpv_log_device *d = device_of_line(l);

    if (d)
        set_out(l, d, GPV_OUT_DRAINED, false, "");
}

void gpv_log_remove(struct gpv_log *l)
{
    struct gpv_log_device *d = device_of_line(l);

    if (d)
        set_out(l, d, GPV_OUT_LOST, true, "removed");
}

void gpv_log_foreign(struct gpv_log *l)
{
    struct gpv_log_device *d = device_of_line(l);
    uint64_t memory = 0, load = 0;
    struct gpv_word word;
    char text[48];

    if (d && gpv_word_of(&l->rest, "memory", &word))
        l->strange = !gpv_word_bytes(word, &memory);
    if (d && gpv_word_of(&l->rest, "load", &word))
        l->strange = l->strange || !gpv_word_number(word, UINT32_MAX, &load);
    if (!d || l->strange)
        return;
    if (memory > l->foreign_memory)
        (void)snprintf(text, sizeof(text), "%llu MiB", (unsigned long long)(memory >> 20));
    else
        (void)snprintf(text, sizeof(text), "%llu %% busy", (unsigned long long)(load / 100));
    set_out(l, d, GPV_OUT_FOREIGN,
            memory > l->foreign_memory || (l->foreign_load != 0 && load > l->foreign_load), text);
}

/* ---- Slots ---- */

struct gpv_log_slot *gpv_log_slot_of(struct gpv_log *l, uint32_t slot)
{
    if (slot >= GPV_LOG_SLOTS) {
        l->strange = true;
        return NULL;
    }
    return GPV_LOG_ROOM(l, l->slots, (size_t)slot + 1) ? &l->slots.row[slot] : NULL;
}

/* What a state of a slot is for its GPUs; the other states are nothing for them. */
static const struct life {
    const char *name;
    uint32_t tenancy, out;
} lives[] = {
    { "BOOT", GPV_TENANCY_BOOT, 0 },
    { "SETUP", GPV_TENANCY_BOOT, 0 },
    { "END", GPV_TENANCY_UNLOAD, 0 },
    { "KILL", GPV_TENANCY_UNLOAD, 0 },
    { "SWEEP", GPV_TENANCY_UNLOAD, 0 },
    { "LOST", GPV_TENANCY_UNLOAD, 0 },
    { "COOL", GPV_TENANCY_UNLOAD, 0 },
    { "BACKOFF", 0, GPV_OUT_BACKOFF },
    { "FAILED", 0, GPV_OUT_FAILED },
    { "STUCK", 0, GPV_OUT_FAILED },
    { "OFF", 0, 0 },
    { "WAIT", 0, 0 },
    { "UP", 0, 0 },
    { "LEAVE", 0, 0 },
    { "DOOMED", 0, 0 },
    { "PARKED", 0, 0 },
    { "STOPPED", 0, 0 },
    { "REMOVED", 0, 0 },
};

static struct gpv_log_known *known_of(struct gpv_log *l, const struct gpv_log_slot *s)
{
    for (uint32_t i = 0; i < l->n_known; i++)
        if (l->known.row[i].class == s->class && l->known.row[i].set == s->set)
            return &l->known.row[i];
    return NULL;
}

static const char *boot_text(struct gpv_log *l, const struct gpv_log_slot *s)
{
    struct gpv_log_known *k = known_of(l, s);
    const char *text = !k ? "first use" : k->died ? "restart" : "again";

    if (k)
        k->died = false;
    else if (l->n_known < GPV_LOG_SHAPES && GPV_LOG_ROOM(l, l->known, (size_t)l->n_known + 1))
        l->known.row[l->n_known++] = (struct gpv_log_known){ s->class, s->set, false };
    return text;
}

static bool is_draining(const struct gpv_log *l, const struct gpv_log_slot *s)
{
    const struct gpv_set set = gpv_set(l->night, s->set);

    for (size_t i = 0; i < l->devices.n; i++)
        if (l->devices.row[i].there && l->devices.row[i].out[GPV_OUT_DRAINED] != 0 &&
            gpv_set_has(set, l->devices.row[i].gpu))
            return true;
    return false;
}

static const char no_task[] = "no task for it";

/* Only a worker that runs its cleanup first has left. */
static const char *unload_text(struct gpv_log *l, const struct gpv_log_slot *s,
                               const struct life *life)
{
    struct gpv_log_known *k;

    if (strcmp(life->name, "END") == 0)
        return l->is_closing       ? "the dispatcher closes"
               : is_draining(l, s) ? "device drained"
                                   : no_task;
    k = known_of(l, s);
    if (k)
        k->died = true;
    return "it died";
}

static void close_slot(struct gpv_log *l, struct gpv_log_slot *s, int64_t until)
{
    const struct gpv_set set = gpv_set(l->night, s->set);
    const uint32_t class = s->tenancy ? gpv_log_class_of(l, s->class) : GPV_NONE;

    for (uint32_t i = 0; i < set.n && s->tenancy != 0 && s->since != 0 && !l->no_memory; i++) {
        const struct gpv_tenancy row = { s->since, until, set.gpu[i], class, s->text, s->tenancy };
        gpv_log_added(l, gpv_add_tenancy(l->night, &row));
    }
    for (uint32_t i = 0; i < set.n && s->out != 0; i++)
        add_out(l, set.gpu[i], s->out, s->since, until, s->text);
    s->tenancy = s->out = s->text = 0;
}

static void enter(struct gpv_log *l, struct gpv_log_slot *s, const struct life *life)
{
    const char *text = "";

    if (s->tenancy == life->tenancy && s->out == life->out)
        return;
    close_slot(l, s, l->now);
    if (life->tenancy == GPV_TENANCY_BOOT)
        text = boot_text(l, s);
    else if (life->tenancy == GPV_TENANCY_UNLOAD)
        text = unload_text(l, s, life);
    s->tenancy = life->tenancy;
    s->out = life->out;
    s->since = l->now;
    s->text = gpv_log_keep(l, text);
}

/* "slot 0 devices=0,1", "slot 0 UP" */
void gpv_log_slot(struct gpv_log *l)
{
    struct gpv_word number = gpv_word_next(&l->rest), word, list;
    struct gpv_words rest = l->rest;
    struct gpv_log_slot *s;
    uint64_t slot;

    l->strange = !gpv_word_number(number, GPV_LOG_SLOTS - 1, &slot);
    s = l->strange ? NULL : gpv_log_slot_of(l, (uint32_t)slot);
    if (!s)
        return;
    word = gpv_word_next(&rest);
    if (word.size == 0 || memchr(word.at, '=', word.size)) {
        s->class = 0;
        if (gpv_word_of(&l->rest, "class", &list))
            (void)gpv_log_number(l, "class", GPV_LOG_CLASSES - 1, &s->class);
        if (gpv_word_of(&l->rest, "devices", &list))
            gpv_log_join_all(l, &s->set, list);
        return;
    }
    for (size_t i = 0; i < sizeof(lives) / sizeof(*lives); i++)
        if (gpv_word_is(word, lives[i].name)) {
            enter(l, s, &lives[i]);
            return;
        }
    l->strange = true;
}

static struct gpv_log_slot *slot_of_line(struct gpv_log *l)
{
    uint32_t slot;

    return gpv_log_number(l, "s", GPV_LOG_SLOTS - 1, &slot) ? gpv_log_slot_of(l, slot) : NULL;
}

void gpv_log_seat(struct gpv_log *l)
{
    struct gpv_log_slot *s = slot_of_line(l);
    uint32_t class;

    if (!s || !gpv_log_number(l, "k", GPV_LOG_CLASSES - 1, &class))
        return;
    close_slot(l, s, l->now);
    s->class = class;
    s->set = 0;
}

enum { NAME = 128 };

/* A worker that has just left for no other reason has left for this class. */
static void note_eviction(struct gpv_log *l, uint32_t gpu, uint32_t class)
{
    const uint32_t plain = gpv_log_keep(l, no_task), by = gpv_log_class_of(l, class);
    const char *name = by != GPV_NONE ? gpv_text(l->night, l->night->classes.row[by].name) : "";
    char text[NAME + 16];

    for (size_t i = l->night->tenancies.n; i > 0; i--) {
        struct gpv_tenancy *t = &l->night->tenancies.row[i - 1];
        if (t->until != l->now || by == GPV_NONE)
            return;
        if (t->gpu != gpu || t->text != plain || t->class == by)
            continue;
        (void)snprintf(text, sizeof(text), "evicted for %s",
                       strlen(name) < NAME ? name : "another class");
        t->text = gpv_log_keep(l, text);
    }
}

void gpv_log_seat_on(struct gpv_log *l)
{
    struct gpv_log_slot *s = slot_of_line(l);
    uint32_t device;

    if (!s || !gpv_log_number(l, "d", GPV_LOG_DEVICES - 1, &device))
        return;
    gpv_log_join(l, &s->set, device);
    if (!l->strange && !l->no_memory)
        note_eviction(l, gpu_of(l, device), s->class);
}

/* ---- The end ---- */

void gpv_log_end_places(struct gpv_log *l)
{
    for (size_t i = 0; i < l->slots.n && !l->no_memory; i++)
        close_slot(l, &l->slots.row[i], 0);
    for (size_t i = 0; i < l->devices.n && !l->no_memory; i++)
        for (uint32_t kind = 1; kind < GPV_OUTS; kind++)
            if (l->devices.row[i].out[kind] != 0)
                add_out(l, gpu_of(l, (uint32_t)i), kind, l->devices.row[i].out[kind], 0,
                        l->devices.row[i].text[kind]);
}
