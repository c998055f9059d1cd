/* SPDX-License-Identifier: MIT */
/* plan_world_make.c - draws the parts, settings, devices, classes and requests of a world. */
#include <string.h>

#include "base/clock.h"
#include "sim/plan_world_parts.h"

uint64_t gpi_plan_below(struct gpi_plan_world *w, uint64_t n)
{
    struct gpi_source *s = &w->source;
    uint64_t number = 0;

    if (!s->data)
        return gpi_random_below(&s->rng, n);
    for (uint64_t most = n - 1; most; most >>= 8) {
        number = number << 8 | (s->left ? *s->data : 0);
        s->data += s->left > 0;
        s->left -= s->left > 0;
    }
    return number % n;
}

/* ---- parts ---- */

#define X_PART(name, percent) { #name, percent },
static const struct {
    const char *name;
    uint32_t percent;
} parts[] = { GPI_PLAN_PART_MAP(X_PART) };
#undef X_PART

const char *gpi_plan_part_name(uint32_t part)
{
    return parts[part].name;
}

static void draw_parts(struct gpi_plan_world *w)
{
    for (uint32_t i = 0; i < GPI_PLAN_PARTS; i++)
        if (gpi_plan_chance(w, w->often >> i & 1 ? 50 : parts[i].percent))
            w->parts |= 1ull << i;
    w->parts = (w->parts | w->always) & ~w->never;
    if (gpi_plan_has(w, GPI_PLAN_PART_WORKERS) && !gpi_plan_has(w, GPI_PLAN_PART_KINDS_WARM))
        w->parts &= ~(1ull << GPI_PLAN_PART_KINDS);
}

/* ---- the set-up ---- */

static void make_host_request(struct gpi_plan_world *w, struct gpi_request *r)
{
    *r = (struct gpi_request){ .cpus = 1 + (uint32_t)gpi_plan_below(w, 4),
                               .host_memory = gpi_plan_in_part(w, GPI_PLAN_PART_HOST, 10)
                                                  ? GIB * gpi_plan_below(w, 8)
                                                  : 0 };
}

static void make_request(struct gpi_plan_world *w, struct gpi_request *r)
{
    const uint32_t most = w->n_devices < 6 ? w->n_devices : 6;

    if (gpi_plan_in_part(w, GPI_PLAN_PART_HOST, 15)) {
        make_host_request(w, r);
        return;
    }
    *r = (struct gpi_request){ .devices = gpi_plan_chance(w, 60)
                                              ? 1
                                              : 1 + (uint32_t)gpi_plan_below(w, most),
                               .share = GPI_SHARE_ALL };
    if (r->devices == 1 && gpi_plan_chance(w, 50))
        r->share = 1000 * (1 + (uint32_t)gpi_plan_below(w, 10));
    r->memory = gpi_plan_chance(w, 30) ? GPI_MEMORY_ALL : GIB * gpi_plan_below(w, 40);
    if (gpi_plan_in_part(w, GPI_PLAN_PART_HOST, 20))
        r->cpus = 1 + (uint32_t)gpi_plan_below(w, 4);
    if (gpi_plan_in_part(w, GPI_PLAN_PART_HOST, 10))
        r->host_memory = GIB * gpi_plan_below(w, 8);
    r->compute = gpi_plan_chance(w, 15) ? 900 : 0;
    if (gpi_plan_in_part(w, GPI_PLAN_PART_PLACES, 40))
        r->places = 1 + (uint32_t)gpi_plan_below(w, w->set.place_sets);
    if (gpi_plan_in_part(w, GPI_PLAN_PART_ODD, 10))
        r->memory = 500 * GIB;
}

/* Two workers with these needs do not fit on a device of 24 GiB, and some not on one of 80 GiB. */
static void make_tight(struct gpi_plan_world *w, struct gpi_request *r)
{
    *r = (struct gpi_request){ .devices = gpi_plan_chance(w, 85) ? 1 : w->n_devices,
                               .share = GPI_SHARE_ALL,
                               .memory = gpi_plan_chance(w, 20)
                                             ? GPI_MEMORY_ALL
                                             : GIB * (12 + gpi_plan_below(w, 8)) };
}

/* Workers that have one device or several, most of them whole. */
static void make_wide(struct gpi_plan_world *w, struct gpi_request *r)
{
    *r = (struct gpi_request){ .devices = 1 + (uint32_t)gpi_plan_below(w, 3),
                               .share = GPI_SHARE_ALL,
                               .memory = GIB * (gpi_plan_chance(w, 70) ? 20 : 8) };
}

static void make_requests(struct gpi_plan_world *w)
{
    for (uint32_t i = 0; i < GPI_PLAN_WORLD_REQUESTS; i++) {
        w->n_made[i] = 1;
        if (gpi_plan_in_part(w, GPI_PLAN_PART_VARIANTS, 40))
            w->n_made[i] += (uint32_t)gpi_plan_below(w, GPI_VARIANTS);
        for (uint32_t j = 0; j < w->n_made[i]; j++)
            if (gpi_plan_in_part(w, GPI_PLAN_PART_TIGHT, 85))
                make_tight(w, &w->made[i][j]);
            else if (gpi_plan_in_part(w, GPI_PLAN_PART_WIDE, 85))
                make_wide(w, &w->made[i][j]);
            else
                make_request(w, &w->made[i][j]);
    }
}

static void make_settings(struct gpi_plan_world *w)
{
    const uint32_t tasks = gpi_plan_has(w, GPI_PLAN_PART_FEW) ? 8 : GPI_PLAN_WORLD_TASKS;
    const bool is_tight = gpi_plan_has(w, GPI_PLAN_PART_TIGHT);
    const uint32_t most = is_tight ? 2 : gpi_plan_has(w, GPI_PLAN_PART_WIDE) ? 6 : 12;

    w->n_devices = gpi_plan_has(w, GPI_PLAN_PART_KINDS)
                       ? GPI_PLAN_WORLD_DEVICES - (uint32_t)gpi_plan_below(w, 30)
                       : 1 + (uint32_t)gpi_plan_below(w, most);
    w->n_classes = 1 + (uint32_t)gpi_plan_below(w, GPI_PLAN_WORLD_CLASSES);
    w->unit = gpi_plan_has(w, GPI_PLAN_PART_LONG) ? 1000 : 1;
    w->set = (struct gpi_plan_settings){
        .tasks = tasks,
        .classes = w->n_classes,
        .devices = w->n_devices,
        .shapes =
            gpi_plan_has(w, GPI_PLAN_PART_SHAPES) ? 1 + (uint32_t)gpi_plan_below(w, 8) : tasks,
        .runs = gpi_plan_has(w, GPI_PLAN_PART_SEATS)
                    ? 1 + (uint32_t)gpi_plan_below(w, gpi_plan_chance(w, 70) ? 6 : tasks)
                    : tasks + GPI_PLAN_WORLD_RUNS - GPI_PLAN_WORLD_TASKS,
        .place_sets =
            gpi_plan_has(w, GPI_PLAN_PART_PLACES) ? 1 + (uint32_t)gpi_plan_below(w, 3) : 0,
        .mode = gpi_plan_has(w, GPI_PLAN_PART_STRICT) ? GPI_MODE_STRICT : GPI_MODE_BACKFILL,
        .passing = (enum gpi_passing)gpi_plan_below(w, 4),
        .cpus = (uint32_t)gpi_plan_below(w, 12),
        .host_memory = 16 * GIB,
        .headroom = 1000,
        .least_headroom = GIB / 2,
        .foreign_memory = GIB,
        .foreign_load = gpi_plan_has(w, GPI_PLAN_PART_LOAD) ? 5000 : 0,
    };
}

static void make_device(struct gpi_plan_world *w, struct gpi_fact *f)
{
    f->kind = GPI_FACT_DEVICE;
    f->has.memory = gpi_plan_chance(w, 50) ? 24 * GIB : 80 * GIB;
    f->has.compute = gpi_plan_chance(w, 50) ? 900 : 806;
    if (gpi_plan_has(w, GPI_PLAN_PART_KINDS))
        f->has.memory += f->device * GIB / 4;
}

static void make_places(struct gpi_plan_world *w, struct gpi_fact *f)
{
    f->kind = GPI_FACT_PLACES;
    for (uint32_t d = 0; d < w->n_devices; d++)
        if (gpi_plan_chance(w, 50))
            f->list[f->n_devices++] = (uint16_t)d;
}

static enum gpi_residence make_residence(struct gpi_plan_world *w)
{
    const bool tight = gpi_plan_has(w, GPI_PLAN_PART_TIGHT) || gpi_plan_has(w, GPI_PLAN_PART_WIDE);

    if (!gpi_plan_in_part(w, GPI_PLAN_PART_WORKERS, tight ? 95 : 70))
        return GPI_EXTERNAL;
    return gpi_plan_chance(w, tight ? 95 : 60) ? GPI_RESIDENT : GPI_TRANSIENT;
}

static void make_class(struct gpi_plan_world *w, struct gpi_fact *f)
{
    f->kind = GPI_FACT_CLASS;
    f->is = (struct gpi_plan_class){
        .residence = make_residence(w),
        .grace = GRACE * w->unit,
        .max_workers = 1 + (uint32_t)gpi_plan_below(w, 4),
        .pinned = gpi_plan_in_part(w, GPI_PLAN_PART_PINNED, 25),
        .min_residence = gpi_plan_units(w, 20000),
        .max_wait = gpi_plan_below(w, 40) * (w->unit == 1 ? GPI_MS : GPI_US),
        .keep_alive = GPI_NEVER,
        .boot = 20000 * w->unit,
        .unload = 1000 * w->unit,
        .run = 5000 * w->unit,
        .min_workers = gpi_plan_in_part(w, GPI_PLAN_PART_MIN_WORKERS, 50),
    };
    if (gpi_plan_in_part(w, GPI_PLAN_PART_KEEP_ALIVE, 70))
        f->is.keep_alive = 1 + gpi_plan_units(w, 50000);
    if (gpi_plan_in_part(w, GPI_PLAN_PART_TIGHT, 70))
        f->is.max_wait = gpi_plan_units(w, 40000);
    if (gpi_plan_in_part(w, GPI_PLAN_PART_WIDE, 80))
        f->is.max_wait = gpi_plan_units(w, 400000);
    f->n_requests = w->n_made[f->class];
    memcpy(f->request, w->made[f->class], sizeof f->request);
}

/* A warm worker of the class on the first devices that can hold it. */
static bool make_warm(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const struct gpi_fact *c = &w->trial->class[f->class];

    f->kind = GPI_FACT_WARM;
    if (!gpi_plan_in_part(w, GPI_PLAN_PART_WARM, 50) || c->is.residence != GPI_RESIDENT)
        return false;
    for (uint32_t d = 0; d < w->n_devices && f->n_devices < c->request[0].devices; d++) {
        struct gpi_fact alone = *f;
        alone.list[alone.n_devices++] = (uint16_t)d;
        if (!w->trial->device[d].warm && gpi_trial_could_warm(w->trial, d, &c->request[0]))
            *f = alone;
    }
    return !gpi_trial_refuses(w->trial, f);
}

bool gpi_plan_world_set_up(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const uint32_t devices = 1 + w->n_devices, sets = devices + w->set.place_sets;
    const uint32_t classes = sets + w->n_classes;
    uint32_t i;

    while ((i = w->step) < classes + w->n_classes) {
        *f = (struct gpi_fact){ .kind = GPI_FACT_PLAN, .plan = w->set };
        w->step++;
        if (i == 0)
            return true;
        *f = (struct gpi_fact){ 0 };
        if (i < devices)
            return f->device = i - 1, make_device(w, f), true;
        if (i < sets)
            return f->set = 1 + i - devices, make_places(w, f), true;
        f->class = (i - sets) % w->n_classes;
        if (i < classes)
            return make_class(w, f), true;
        if (make_warm(w, f))
            return true;
    }
    return false;
}

void gpi_plan_world_begin(struct gpi_plan_world *w, struct gpi_trial *t)
{
    w->trial = t;
    draw_parts(w);
    make_settings(w);
    make_requests(w);
}
