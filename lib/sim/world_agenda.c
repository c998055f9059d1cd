/* SPDX-License-Identifier: MIT */
/* world_agenda.c - the future facts of a world in the order of time: a binary heap. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/world_state.h"

static bool is_before(const struct gpi_fact *a, const struct gpi_fact *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(struct gpi_fact *a, struct gpi_fact *b)
{
    const struct gpi_fact c = *a;

    *a = *b;
    *b = c;
}

void gpi_agenda_add(struct gpi_world *w, struct gpi_fact f)
{
    struct gpi_agenda *a = &w->agenda;
    uint32_t i = a->n;

    if (a->n == a->room) {
        a->room = a->room ? 2 * a->room : 64;
        a->fact = realloc(a->fact, sizeof *a->fact * a->room);
        if (!a->fact) {
            perror("world");
            exit(70);
        }
    }
    f.order = ++a->order;
    a->fact[a->n++] = f;
    for (; i > 0 && is_before(&a->fact[i], &a->fact[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&a->fact[i], &a->fact[(i - 1) / 2]);
}

static void sink(struct gpi_agenda *a)
{
    uint32_t i = 0, least = 0;

    do {
        swap(&a->fact[i], &a->fact[least]);
        i = least;
        for (uint32_t k = 2 * i + 1; k <= 2 * i + 2 && k < a->n; k++)
            if (is_before(&a->fact[k], &a->fact[least]))
                least = k;
    } while (least != i);
}

uint64_t gpi_agenda_next(const struct gpi_world *w)
{
    return w->agenda.n ? w->agenda.fact[0].at : GPI_NEVER;
}

bool gpi_agenda_take(struct gpi_world *w, uint64_t until, struct gpi_fact *ret)
{
    struct gpi_agenda *a = &w->agenda;

    if (gpi_agenda_next(w) > until)
        return false;
    *ret = a->fact[0];
    a->fact[0] = a->fact[--a->n];
    sink(a);
    return true;
}

void gpi_agenda_fini(struct gpi_world *w)
{
    free(w->agenda.fact);
    free(w->missed);
}

void gpi_world_soon(struct gpi_world *w, enum gpi_fact_kind kind, uint32_t slot, uint32_t token,
                    uint64_t wait)
{
    if (wait != GPI_NEVER)
        gpi_agenda_add(w, (struct gpi_fact){ .at = gpi_time_add(w->now, wait),
                                             .kind = kind,
                                             .slot = slot,
                                             .token = token });
}
