/* SPDX-License-Identifier: MIT */
/*
 * places.c - pooled: sets of devices that the needs of a class name, in `on` and `not_on`.
 *
 * A set stays as long as the dispatcher.  A device that is added later joins the sets that name it.
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
        join(d, i, device);
}

void gpi_places_fini(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_named; i++) {
        free(d->named[i].on);
        free(d->named[i].not_on);
    }
}

/* Returns false without memory. */
static bool make(gpud_dispatcher *d, const char *on, const char *not_on)
{
    struct gpi_named_set p = { on ? strdup(on) : NULL, not_on ? strdup(not_on) : NULL };

    if ((on && !p.on) || (not_on && !p.not_on)) {
        free(p.on);
        free(p.not_on);
        return false;
    }
    d->named[d->n_named++] = p;
    for (uint32_t i = 0; i < d->dev.n; i++)
        if (d->dev.row[i].here)
            join(d, d->n_named - 1, i);
    return true;
}

int gpi_places_find(gpud_dispatcher *d, const char *noun, const struct gpi_where *where,
                    uint32_t *ret, struct gpud_error *e)
{
    const char *on = where->on, *not_on = where->not_on;
    int r = check(d, noun, "on", on, e);

    *ret = GPI_PLACES_ANY;
    if (r == 0)
        r = check(d, noun, "not_on", not_on, e);
    if (r || (!on && !not_on))
        return r;
    while (*ret < d->n_named &&
           !(same(d->named[*ret].on, on) && same(d->named[*ret].not_on, not_on)))
        ++*ret;
    if (*ret == GPI_PLACES_MOST)
        return gpi_fail(e, GPUD_EFULL, 0, "on",
                        "all classes and tasks name %u different sets of devices, the maximum",
                        GPI_PLACES_MOST);
    if (*ret == d->n_named && !make(d, on, not_on))
        return gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for a class");
    ++*ret;
    return 0;
}
