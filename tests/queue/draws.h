/* SPDX-License-Identifier: MIT */
/*
 * draws.h - the arguments of a random operation: few names and few tasks, so that
 * operations meet.  Each draw adds to w->said.
 */
#ifndef T_QUEUE_DRAWS_H
#define T_QUEUE_DRAWS_H

#include "world.h"

#define PICK(w, list) ((list)[world_below((w), T_LENGTH(list))])
#define ENGINE(w, i) ((w)->store[i]->engine)
#define WAITING ((1U << GPQ_HELD) | (1U << GPQ_READY))
#define ANY (WAITING | (1U << GPQ_RUNNING) | (1U << GPQ_DONE))

struct choice {
    struct gpq_select which;
    uint64_t list[3];
    uint64_t spec_of; /* the spec is that of this task; 0 = any spec */
};

enum { SPECS = 2, ITEMS = 4, AFTERS = 3 };

struct order {
    struct gpq_submit what;
    struct gpq_spec spec[SPECS];
    struct gpq_after after[SPECS][AFTERS];
    struct gpq_item item[ITEMS];
};

struct gpq_bytes draw_bytes(const char *text);
/* A task in one of these states; now and then another one, or none. */
uint64_t draw_task(struct world *w, uint32_t states);
uint32_t draw_batch(struct world *w, bool open);
void draw_choice(struct world *w, struct choice *c, uint32_t states);
/* The same selection for a store: ids of specs are its own. */
const struct gpq_select *draw_chosen(struct world *w, int i, struct choice *c);
/* The task as a store shows it, without texts. */
struct gpq_task draw_seen(struct world *w, int i, uint64_t id);
void draw_spec(struct world *w, struct gpq_spec *spec);
void draw_order(struct world *w, struct order *o);

#endif
