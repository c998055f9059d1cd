/* SPDX-License-Identifier: MIT */
/* class.c - the classes of work: each has settings, a queue, and shelves for its workers. */
#include <stdlib.h>
#include <string.h>

#include "sched/core.h"

int gpi_classes_make(struct gpi_sched *c)
{
    assert(c->set.classes >= 1 && c->set.classes <= GPI_CLASSES_MOST);
    c->class = calloc(c->set.classes, sizeof *c->class);
    return c->class ? 0 : -1;
}

void gpi_classes_free(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_classes; i++) {
        gpi_spread_free(&c->class[i]);
        gpi_queue_fini(&c->class[i].queue);
        free(c->class[i].place);
    }
    free(c->class);
}

/* A removed class keeps its memory for the next one of its number. */
static void renew(struct gpi_sched *c, struct gpi_sched_class *k,
                  const struct gpi_class_settings *set)
{
    const struct gpi_sched_class old = *k;

    assert(old.removed && old.queue.count == 0 && old.n_takes == 0 && old.unused == 0);
    assert(old.n_own == 0 && old.n_planned == 0);
    *k = (struct gpi_sched_class){ .set = *set,
                                   .queue = old.queue,
                                   .shelf = old.shelf,
                                   .words = old.words,
                                   .moved = old.moved,
                                   .place = old.place };
    memset(k->place, 0, sizeof *k->place * (c->set.devices + 1u));
}

int gpi_classes_add(struct gpi_sched *c, uint32_t class, const struct gpi_class_settings *set)
{
    struct gpi_sched_class *k = &c->class[class];

    assert(class <= c->n_classes && class < c->set.classes);
    assert(set->lead <= set->grace && set->ahead <= GPI_SLOT_CELLS);
    assert(set->batch >= 1 && set->batch <= GPI_SLOT_CELLS);
    if (class < c->n_classes) {
        renew(c, k, set);
        return 0;
    }
    *k = (struct gpi_sched_class){ .set = *set };
    if (c->set.pooled)
        k->place = calloc(c->set.devices + 1u, sizeof *k->place);
    if ((k->place || !c->set.pooled) && gpi_queue_init(&k->queue, c->set.tasks) == 0) {
        if (gpi_spread_make(c, k) == 0) {
            c->n_classes++;
            return 0;
        }
        gpi_queue_fini(&k->queue);
    }
    free(k->place);
    return -1;
}

bool gpi_classes_wait(const struct gpi_sched *c)
{
    uint32_t i = 0;

    while (i < c->n_classes && c->class[i].queue.count + c->class[i].n_own == 0)
        i++;
    return i < c->n_classes;
}
