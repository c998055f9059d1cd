/* SPDX-License-Identifier: MIT */
/*
 * places.c - pooled: sets of devices that the needs of a class name, in `on` and `not_on`.
 *
 * A set stays until its place is needed and no class, task or worker names it.  A device that is
 * added later joins the sets that name it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"
#include "host/class.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"

#define NAME_MOST 96u /* bytes of a device's name or UUID */

/* Takes the next name off the list.  Returns NULL behind the last one; "?" if it is no name. */
static const char *next_name(const char **list, char ret[NAME_MOST])
{
    const size_t size = *list ? strcspn(*list, ",") : 0;

    if (!*list)
        return NULL;
    if (size == 0 || size >= NAME_MOST) {
        *list = NULL;
        return "?";
    }
    memcpy(ret, *list, size);
    ret[size] = '\0';
    *list = (*list)[size] ? *list + size + 1 : NULL;
    return ret;
}

static bool names(const char *list, const struct gpi_device *id)
{
    char room[NAME_MOST];
    const char *name;
    bool does = false;

    while (!does && (name = next_name(&list, room)) != NULL)
        does = strcmp(name, id->name) == 0 || strcmp(name, id->uuid) == 0;
    return does;
}

static bool is_here(const gpud_dispatcher *d, const char *name)
{
    for (uint32_t i = 0; i < d->dev.n; i++)
        if (d->dev.row[i].here && names(name, &d->dev.row[i].id))
            return true;
    return false;
}

/* Each name is that of a device which is here: a wrong one is an error, not an empty set. */
static int check(const gpud_dispatcher *d, const char *noun, const char *field, const char *list,
                 struct gpud_error *e)
{
    char room[NAME_MOST];
    const char *name, *left = list;

    while ((name = next_name(&left, room)) != NULL)
        if (!is_here(d, name))
            return gpi_fail(e, GPUD_EDEVICE, 0, field,
                            "%s.%s is \"%.96s\": the dispatcher has no device \"%s\"", noun, field,
                            list, name);
    return 0;
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_of(const gpud_dispatcher *d, uint32_t place, uint32_t device)
{
    const struct gpi_named_set *p = &d->named[place];
    const struct gpi_device *id = &d->dev.row[device].id;

    return (!p->on || names(p->on, id)) && !(p->not_on && names(p->not_on, id));
}

/* The number of the set is one more than its place: 0 is the set of all devices. */
static void join(gpud_dispatcher *d, uint32_t place, uint32_t device)
{
    if (is_of(d, place, device))
        gpi_core_places_add(d, place + 1, device);
}

void gpi_places_join(gpud_dispatcher *d, uint32_t device)
{
    for (uint32_t i = 0; i < d->n_named; i++)
        if (d->named[i].on || d->named[i].not_on)
            join(d, i, device);
}

static void drop(struct gpi_named_set *p)
{
    free(p->on);
    free(p->not_on);
    *p = (struct gpi_named_set){ NULL, NULL, p->spare };
}

void gpi_places_fini(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_named; i++)
        drop(&d->named[i]);
}

/* Returns false without memory. */
static bool make(gpud_dispatcher *d, uint32_t place, const struct gpi_where *where)
{
    struct gpi_named_set p = { where->on ? strdup(where->on) : NULL,
                               where->not_on ? strdup(where->not_on) : NULL, false };

    if ((where->on && !p.on) || (where->not_on && !p.not_on)) {
        drop(&p);
        return false;
    }
    d->named[place] = p;
    d->n_named += place == d->n_named;
    for (uint32_t i = 0; i < d->dev.n; i++)
        if (d->dev.row[i].here)
            join(d, place, i);
    return true;
}

/* Marks the sets that nothing names, `needs` included. */
static void look_for_spare(gpud_dispatcher *d, const struct gpi_needs *needs)
{
    bool used[GPI_PLACES_MOST + 1] = { false };

    gpi_sched_mark_places(d->core, used);
    for (uint32_t i = 0; i < needs->n; i++)
        used[needs->request[i].places] = true;
    for (uint32_t i = 0; i < GPI_PLACES_MOST; i++)
        d->named[i].spare = !used[i + 1];
}

static uint32_t find_spare(const gpud_dispatcher *d)
{
    uint32_t i = 0;

    while (i < GPI_PLACES_MOST && !d->named[i].spare)
        i++;
    return i;
}

/* Returns a place without a set, or PLACES_MOST.  One set at a time is emptied: the plan then
 * examines all waiting tasks that differ. */
static uint32_t free_place(gpud_dispatcher *d, const struct gpi_needs *needs)
{
    uint32_t i = d->n_named < GPI_PLACES_MOST ? d->n_named : find_spare(d);

    if (i == GPI_PLACES_MOST) {
        look_for_spare(d, needs);
        i = find_spare(d);
    }
    if (i < d->n_named) {
        gpi_core_places_empty(d, i + 1);
        drop(&d->named[i]);
    }
    return i;
}

static uint32_t place_of(const gpud_dispatcher *d, const struct gpi_where *where)
{
    uint32_t i = 0;

    while (i < d->n_named &&
           !(same(d->named[i].on, where->on) && same(d->named[i].not_on, where->not_on)))
        i++;
    return i;
}

int gpi_places_find(gpud_dispatcher *d, struct gpi_needs *needs, uint32_t i, struct gpud_error *e)
{
    const struct gpi_where *where = &needs->where[i];
    uint32_t *const ret = &needs->request[i].places, place;
    int r = check(d, needs->noun, "on", where->on, e);

    *ret = GPI_PLACES_ANY;
    if (r == 0)
        r = check(d, needs->noun, "not_on", where->not_on, e);
    if (r || (!where->on && !where->not_on))
        return r;
    place = place_of(d, where);
    if (place == d->n_named) {
        place = free_place(d, needs);
        if (place == GPI_PLACES_MOST)
            return gpi_fail(e, GPUD_EFULL, 0, "on",
                            "all classes and tasks name %u different sets of devices, the maximum",
                            GPI_PLACES_MOST);
        if (!make(d, place, where))
            return gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for a class");
    }
    d->named[place].spare = false;
    *ret = place + 1;
    return 0;
}
