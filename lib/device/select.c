/* SPDX-License-Identifier: MIT */
#include "device/select.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"
#include "device/kin.h"
#include "device/visible.h"
#include "gpudispatch/device.h"

#define COMPUTE_PROHIBITED 2u
#define COMPUTE_EXCLUSIVE 3u

struct choice {
    const struct gpi_device_field *field;
    struct gpi_selection s;
    struct gpi_visible visible;
    bool visible_known;
    uint32_t max_slots, device_room, slot_room;
    uint32_t next_cpu, next_fake;
    uint32_t *owner;        /* per row: the position of the entry that owns it, 0 = none */
    uint32_t set, workers;  /* devices in the unfinished set; workers of each */
    uint32_t set_kind;
};

/* ---- texts ---- */

/* A text that grows up to its size. */
struct words {
    char text[216];
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *w, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    /* NOLINT(clang-analyzer-valist.Uninitialized) ; va_start is the line before */
    n = vsnprintf(w->text + w->n, sizeof w->text - w->n, format, args);
    va_end(args);
    if (n > 0)
        w->n = w->n + (size_t)n < sizeof w->text ? w->n + (size_t)n : sizeof w->text - 1;
}

static int refuse(const struct gpi_device_entry *entry, const struct words *w, struct gpud_error *e)
{
    return gpi_fail(e, GPUD_EDEVICE, 0, "devices", GPI_ENTRY_FORMAT " %s", GPI_ENTRY_ARGS(entry),
                    w->text);
}

static const char *kind_words(uint32_t kind)
{
    switch (kind) {
    case GPUD_DEVICE_CPU: return "CPU slots";
    case GPUD_DEVICE_MIG: return "MIG instances";
    case GPUD_DEVICE_FAKE: return "fakes";
    default: return "GPUs";
    }
}

/* ---- the devices that exist ---- */

static bool in_mig_mode(const struct gpi_device *d)
{
    return !gpi_device_is_instance(d) && d->mig_parts != 0;
}

static uint32_t count_whole(const struct gpi_device_field *f)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->n; i++)
        n += !gpi_device_is_instance(&f->row[i]);
    return n;
}

/* Returns whether no GPU can be chosen at all, and writes why. */
static bool no_gpus(const struct choice *c, struct words *w)
{
    const struct gpi_driver *driver = c->field->driver;
    const uint32_t n = count_whole(c->field);

    if (!driver)
        say(w, "is a GPU, but no GPU was enumerated");
    else if (driver->state != GPUD_DRIVER_OK)
        say(w, "finds no GPU: %s", driver->text[0] ? driver->text : "the driver does not work");
    else if (n == 0 && driver->unreadable)
        say(w, "finds no GPU: the driver has %u, but this process cannot open %s", driver->gpus,
            driver->gpus == 1 ? "it" : "any of them");
    else if (n == 0)
        say(w, "finds no GPU: the driver has none");
    else if (c->visible_known && c->visible.n == 0)
        say(w, "finds no GPU: CUDA_VISIBLE_DEVICES is \"%.32s\", which allows none of %u",
            c->field->visible, n);
    else
        return false;
    return true;
}

/* Writes "there are 4 GPUs, numbers 0 to 3". */
static void say_what_there_is(const struct choice *c, struct words *w)
{
    const uint32_t n = c->visible.n;

    if (c->field->visible)
        say(w, "CUDA_VISIBLE_DEVICES allows %u, ", n);
    else
        say(w, "there %s %u GPU%s, ", n == 1 ? "is" : "are", n, n == 1 ? "" : "s");
    say(w, n == 1 ? "number 0" : "numbers 0 to %u", n - 1);
    if (c->field->driver && c->field->driver->unreadable)
        say(w, " (%u more cannot be opened)", c->field->driver->unreadable);
}

/* Reads CUDA_VISIBLE_DEVICES, once, for the first entry that is a GPU; refuses an entry if no GPU
 * can be chosen. */
static int look(struct choice *c, const struct gpi_device_entry *entry, struct gpud_error *e)
{
    struct words w = { .n = 0 };
    int r = 0;

    if (!no_gpus(c, &w) && !c->visible_known)
        r = gpi_visible_read(&c->visible, c->field->visible, c->field->row, c->field->n, e);
    if (r)
        return r;
    c->visible_known = true;
    return w.n || no_gpus(c, &w) ? refuse(entry, &w, e) : 0;
}

/* Returns the number that chooses a GPU, or the GPU of an instance; GPI_NO_ROW: it is not
 * allowed. */
static uint32_t visible_number(const struct choice *c, uint32_t place)
{
    const struct gpi_device *row = c->field->row;

    for (uint32_t i = 0; i < c->visible.n; i++)
        if (c->visible.place[i] == place ||
            gpi_device_is_part_of(&row[place], &row[c->visible.place[i]]))
            return i;
    return GPI_NO_ROW;
}

/* ---- the result grows ---- */

static bool grow(void **array, uint32_t *room, uint32_t used, size_t size)
{
    const uint32_t wanted = *room ? *room * 2 : 16;
    void *p;

    if (used < *room)
        return true;
    p = realloc(*array, wanted * size); /* at most 1,024 slots of 16 devices */
    if (!p)
        return false;
    *array = p;
    *room = wanted;
    return true;
}

static int no_memory(struct gpud_error *e)
{
    return gpi_fail(e, GPUD_ENOMEM, 0, "devices", "no memory for the devices");
}

/* The set is full: makes its slots. */
static int make_slots(struct choice *c, const struct gpi_device_entry *entry, struct gpud_error *e)
{
    struct gpi_selection *s = &c->s;
    struct words w = { .n = 0 };

    if (c->workers > c->max_slots - s->n_slots) {
        say(&w, "makes too many workers, the maximum is %u", c->max_slots);
        return refuse(entry, &w, e);
    }
    for (uint32_t k = 0; k < c->workers; k++) {
        struct gpi_selected_slot *slot;
        if (!grow((void **)&s->slot, &c->slot_room, s->n_slots, sizeof *s->slot))
            return no_memory(e);
        slot = &s->slot[s->n_slots++];
        *slot = (struct gpi_selected_slot){ { 0 } };
        for (uint32_t i = 0; i < s->per_worker; i++)
            slot->device[i] = s->n - s->per_worker + i;
    }
    c->set = 0;
    return 0;
}

/* Returns whether the device may be in the set. */
static bool fits_set(const struct choice *c, const struct gpi_device *d, uint32_t workers,
                     struct words *w)
{
    const uint32_t kind = d->kind;

    if (gpi_device_is_instance(d) && c->s.per_worker > 1)
        say(w, "is a MIG instance, and a process can use only one: devices_per_worker is %u",
            c->s.per_worker);
    else if (c->set && c->set_kind != kind)
        say(w, "selects %s, but its set of %u begins with %s", kind_words(kind), c->s.per_worker,
            kind_words(c->set_kind));
    else if (c->set && c->workers != workers)
        say(w, "has %u workers per device, but the others in its set of %u have %u", workers,
            c->s.per_worker, c->workers);
    else
        return true;
    return false;
}

static int add(struct choice *c, const struct gpi_device_entry *entry,
               const struct gpi_device *device, uint32_t place, struct gpud_error *e)
{
    struct words w = { .n = 0 };

    if (!fits_set(c, device, entry->workers, &w))
        return refuse(entry, &w, e);
    if (!grow((void **)&c->s.device, &c->device_room, c->s.n, sizeof *c->s.device))
        return no_memory(e);
    c->s.device[c->s.n++] = (struct gpi_selected){ *device, place };
    c->set_kind = device->kind;
    c->workers = entry->workers;
    c->set++;
    return c->set == c->s.per_worker ? make_slots(c, entry, e) : 0;
}

/* ---- one device of the enumeration ---- */

static void say_instances(const struct choice *c, uint32_t gpu, struct words *w)
{
    const struct gpi_device *row = c->field->row;
    uint32_t n = 0;

    say(w, "is in MIG mode and runs no tasks itself; ");
    for (uint32_t i = 0; i < c->field->n; i++)
        if (gpi_device_is_part_of(&row[i], &row[gpu]))
            say(w, "%s%u:%u", n++ ? ", " : "its instances: ", visible_number(c, gpu),
                row[i].mig_index);
    if (!n)
        say(w, "it has no instances yet");
}

static bool is_present(const struct gpi_device_field *f, const struct gpi_device *d)
{
    for (uint32_t i = 0; i < f->n_present; i++)
        if (strcmp(f->present[i]->uuid, d->uuid) == 0)
            return true;
    return false;
}

/* CUDA cannot use it, or not in as many processes. */
static bool is_prohibited(const struct gpi_device_entry *entry, const struct gpi_device *d)
{
    return d->compute_mode == COMPUTE_PROHIBITED ||
           (d->compute_mode == COMPUTE_EXCLUSIVE && entry->workers > 1);
}

/* Returns whether this device cannot be chosen, and writes why. */
static bool unusable(const struct choice *c, const struct gpi_device_entry *entry, uint32_t place,
                     struct words *w)
{
    const struct gpi_device *d = &c->field->row[place];

    if (in_mig_mode(d))
        say_instances(c, place, w);
    else if (c->owner[place])
        say(w,
            "selects %s, which entry %u already selects (\"/2\" after an entry makes two workers "
            "share its devices)",
            d->name, c->owner[place]);
    else if (is_present(c->field, d))
        say(w, "selects %s, which is already a device of this dispatcher", d->name);
    else if (d->compute_mode == COMPUTE_PROHIBITED)
        say(w,
            "selects %s, whose compute mode is PROHIBITED: CUDA cannot use it (nvidia-smi -c 0 "
            "allows it)",
            d->name);
    else if (d->compute_mode == COMPUTE_EXCLUSIVE && entry->workers > 1)
        say(w,
            "has %u workers on %s, whose compute mode is EXCLUSIVE_PROCESS: one process at a time",
            entry->workers, d->name);
    else
        return false;
    return true;
}

static int take(struct choice *c, const struct gpi_device_entry *entry, uint32_t place,
                struct gpud_error *e)
{
    struct words w = { .n = 0 };

    if (unusable(c, entry, place, &w))
        return refuse(entry, &w, e);
    c->owner[place] = entry->position;
    return add(c, entry, &c->field->row[place], place, e);
}

/* ---- entries ---- */

static int take_cpus(struct choice *c, const struct gpi_device_entry *entry, struct gpud_error *e)
{
    int r = 0;

    for (uint32_t i = 0; i < entry->n && r == 0; i++) {
        struct gpi_device d = { .kind = GPUD_DEVICE_CPU,
                                .index = c->next_cpu,
                                .mig_index = GPI_UNKNOWN32,
                                .compute_mode = GPI_UNKNOWN32,
                                .numa_node = GPI_UNKNOWN32,
                                .minor = GPI_UNKNOWN32 };
        (void)snprintf(d.name, sizeof d.name, "cpu:%u", c->next_cpu++);
        memcpy(d.uuid, d.name, sizeof d.name);
        r = add(c, entry, &d, GPI_NO_ROW, e);
    }
    return r;
}

/* Takes a device, or the instances of a GPU in MIG mode. */
static int take_whole(struct choice *c, const struct gpi_device_entry *entry, uint32_t place,
                      struct gpud_error *e)
{
    const struct gpi_device *row = c->field->row;
    int r = 0;

    if (!in_mig_mode(&row[place]))
        return take(c, entry, place, e);
    for (uint32_t i = 0; i < c->field->n && r == 0; i++)
        if (gpi_device_is_part_of(&row[i], &row[place]))
            r = take(c, entry, i, e);
    return r;
}

/* Takes the next N by number.  As with "all", fakes that cannot be opened are left out, if some
 * can. */
static int take_fakes(struct choice *c, const struct gpi_device_entry *entry, struct gpud_error *e)
{
    const struct gpi_device_field *f = c->field;
    const uint32_t first = c->next_fake, before = c->s.n,
                   unreadable = f->driver ? f->driver->unreadable : 0;
    uint32_t seen = 0;
    struct words w = { .n = 0 };
    int r = 0;

    for (uint32_t i = 0; i < f->n && r == 0; i++) {
        if (f->row[i].kind != GPUD_DEVICE_FAKE || gpi_device_is_instance(&f->row[i]) ||
            f->row[i].index < first || f->row[i].index - first >= entry->n)
            continue;
        r = take_whole(c, entry, i, e);
        seen++;
    }
    c->next_fake += entry->n;
    if (r || (c->s.n > before && entry->n <= seen + unreadable))
        return r;
    say(&w, "is too many fakes, the maximum is %u", count_whole(f));
    if (unreadable)
        say(&w, " (%u more cannot be opened)", unreadable);
    return refuse(entry, &w, e);
}

static int take_all(struct choice *c, const struct gpi_device_entry *entry, struct gpud_error *e)
{
    const uint32_t before = c->s.n;
    struct words w = { .n = 0 };
    int r = 0;

    for (uint32_t i = 0; i < c->visible.n && r == 0; i++)
        r = take_whole(c, entry, c->visible.place[i], e);
    if (r || c->s.n > before)
        return r;
    say(&w, "finds no device: every GPU is in MIG mode and none has an instance");
    return refuse(entry, &w, e);
}

/* ---- devices that no process uses ---- */

/* Takes the device if it is free, unless the entry has its N devices since `before`.  If processes
 * use it, it adds that to `w`. */
static int take_free(struct choice *c, const struct gpi_device_entry *entry, uint32_t place,
                     uint32_t before, struct words *w, struct gpud_error *e)
{
    const struct gpi_device_field *f = c->field;
    const struct gpi_device *d = &f->row[place];
    char use[64];

    if ((entry->n && c->s.n - before == entry->n) || c->owner[place] || is_present(f, d))
        return 0;
    if (is_prohibited(entry, d)) {
        say(w, "%s%s: compute mode", w->n ? ", " : "; ", d->name);
        return 0;
    }
    if (gpi_sample_is_free(&f->sample[place], &f->quiet))
        return take(c, entry, place, e);
    say(w, "%s%s: %s", w->n ? ", " : "; ", d->name,
        gpi_sample_use(&f->sample[place], &f->quiet, use, sizeof use));
    return 0;
}

static int take_free_of(struct choice *c, const struct gpi_device_entry *entry, uint32_t gpu,
                        uint32_t before, struct words *w, struct gpud_error *e)
{
    const struct gpi_device *row = c->field->row;
    int r = 0;

    if (!in_mig_mode(&row[gpu]))
        return take_free(c, entry, gpu, before, w, e);
    for (uint32_t i = 0; i < c->field->n && r == 0; i++)
        if (gpi_device_is_part_of(&row[i], &row[gpu]))
            r = take_free(c, entry, i, before, w, e);
    return r;
}

static int take_unused(struct choice *c, const struct gpi_device_entry *entry, struct gpud_error *e)
{
    const uint32_t before = c->s.n, wanted = entry->n ? entry->n : 1;
    struct words others = { .n = 0 }, w = { .n = 0 };
    int r = 0;

    for (uint32_t i = 0; i < c->visible.n && r == 0; i++)
        r = take_free_of(c, entry, c->visible.place[i], before, &others, e);
    if (r || c->s.n - before >= wanted)
        return r;
    say(&w, "finds %u free device%s%s", c->s.n - before, c->s.n - before == 1 ? "" : "s",
        others.text);
    return refuse(entry, &w, e);
}

static int take_index(struct choice *c, const struct gpi_device_entry *entry, struct gpud_error *e)
{
    const struct gpi_device *row = c->field->row, *gpu;
    struct words w = { .n = 0 };

    if (entry->n >= c->visible.n) {
        say(&w, "does not exist: ");
        say_what_there_is(c, &w);
        return refuse(entry, &w, e);
    }
    if (entry->kind == GPI_ENTRY_INDEX)
        return take(c, entry, c->visible.place[entry->n], e);
    gpu = &row[c->visible.place[entry->n]];
    for (uint32_t i = 0; i < c->field->n; i++)
        if (gpi_device_is_part_of(&row[i], gpu) && row[i].mig_index == entry->instance)
            return take(c, entry, i, e);
    if (gpu->kind == GPUD_DEVICE_MIG)
        say(&w, "does not exist: number %u of CUDA_VISIBLE_DEVICES is itself an instance, %s",
            entry->n, gpu->name);
    else if (in_mig_mode(gpu)) {
        say(&w, "does not exist: %s ", gpu->name);
        say_instances(c, c->visible.place[entry->n], &w);
    } else
        say(&w, "does not exist: %s is not in MIG mode and has no instances", gpu->name);
    return refuse(entry, &w, e);
}

/* Names the first of these, with a part of their UUIDs that distinguishes them in most cases. */
static void say_candidates(const struct choice *c, const struct gpi_device_entry *entry,
                           const uint32_t *places, uint32_t n, struct words *w)
{
    enum { SHOWN = 3, MORE = 6 };
    const int length = (int)(entry->word_length + MORE < 40 ? entry->word_length + MORE : 40);

    say(w, "matches %u devices: ", n);
    for (uint32_t i = 0; i < n && i < SHOWN; i++)
        say(w, "%s%s (%.*s...)", i ? ", " : "", c->field->row[places[i]].name, length,
            c->field->row[places[i]].uuid);
    if (n > SHOWN)
        say(w, " and more");
}

static int take_uuid(struct choice *c, const struct gpi_device_entry *entry, struct gpud_error *e)
{
    uint32_t places[GPI_GPUS_MAX], allowed = 0;
    uint32_t n = gpi_uuid_find(entry->text, entry->word_length, c->field->row, c->field->n, places,
                               GPI_GPUS_MAX);
    const uint32_t found = n < GPI_GPUS_MAX ? n : GPI_GPUS_MAX;
    struct words w = { .n = 0 };

    for (uint32_t i = 0; i < found; i++)
        if (visible_number(c, places[i]) != GPI_NO_ROW)
            places[allowed++] = places[i];
    if (allowed == 1)
        return take(c, entry, places[0], e);
    if (allowed > 1)
        say_candidates(c, entry, places, allowed, &w);
    else if (found)
        say(&w, "is %s, which CUDA_VISIBLE_DEVICES (\"%.32s\") excludes",
            c->field->row[places[0]].name, c->field->visible ? c->field->visible : "");
    else {
        say(&w, "matches no device: ");
        say_what_there_is(c, &w);
    }
    return refuse(entry, &w, e);
}

static int take_entry(struct choice *c, const struct gpi_device_entry *entry, struct gpud_error *e)
{
    int r;

    if (entry->kind == GPI_ENTRY_CPU)
        return take_cpus(c, entry, e);
    if (entry->kind == GPI_ENTRY_FAKE)
        return take_fakes(c, entry, e);
    r = look(c, entry, e);
    if (r)
        return r;
    if (entry->kind == GPI_ENTRY_ALL)
        return take_all(c, entry, e);
    if (entry->kind == GPI_ENTRY_FREE)
        return take_unused(c, entry, e);
    return entry->kind == GPI_ENTRY_UUID ? take_uuid(c, entry, e) : take_index(c, entry, e);
}

static int choose(struct choice *c, const char *text, struct gpud_error *e)
{
    struct gpi_device_needs needs;
    struct gpi_device_entry entry, *before = NULL;
    int r = gpi_device_needs(text, &needs, e);

    for (const char *at = text; at && r == 0; before = &entry) {
        r = gpi_device_entry(&at, before, &entry, e);
        if (r == 0)
            r = take_entry(c, &entry, e);
    }
    if (r)
        return r;
    return c->set
               ? gpi_fail(
                     e, GPUD_EDEVICE, 0, "devices_per_worker",
                     "the number of devices is %u, expected a multiple of %u (devices_per_worker)",
                     c->s.n, c->s.per_worker)
               : 0;
}

int gpi_device_select(struct gpi_selection *ret, const char *text, uint32_t per_worker,
                      uint32_t max_slots, const struct gpi_device_field *field,
                      struct gpud_error *e)
{
    struct choice c = { .field = field,
                        .s = { .per_worker = per_worker },
                        .max_slots = max_slots,
                        .next_cpu = field->first_cpu,
                        .next_fake = field->first_fake };
    int r;

    *ret = (struct gpi_selection){ .n = 0 };
    c.owner = calloc(field->n + 1, sizeof *c.owner);
    if (!c.owner)
        return no_memory(e);
    r = choose(&c, text, e);
    free(c.owner);
    if (r)
        gpi_selection_fini(&c.s);
    else
        *ret = c.s;
    return r;
}

void gpi_selection_fini(struct gpi_selection *s)
{
    free(s->device);
    free(s->slot);
    *s = (struct gpi_selection){ .n = 0 };
}

void gpi_selection_names(const struct gpi_selection *s, uint32_t slot, char names[GPI_DEVICE_NAMES])
{
    size_t n = 0;

    names[0] = '\0';
    for (uint32_t i = 0; i < s->per_worker; i++)
        n += (size_t)snprintf(names + n, GPI_DEVICE_NAMES - n, "%s%s", i ? "," : "",
                              s->device[s->slot[slot].device[i]].device.name);
}
