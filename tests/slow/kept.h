/* SPDX-License-Identifier: MIT */
/*
 * kept.h - events that threads keep and release at random: each reads the same until it is
 * released, after destroy as well.
 *
 *     kept_open(&k);
 *     if (gpud_event_keep(d, &e) == 0)
 *         kept_add(&k, &e);
 *     kept_release_one(&k, &state);
 *     kept_close(&k, &state);
 */
#ifndef T_KEPT_H
#define T_KEPT_H

#include <gpudispatch/gpudispatch.h>
#include <pthread.h>

enum { KEPT_MAX = 64 };

struct kept {
    pthread_mutex_t lock;
    struct {
        struct gpud_event e;
        uint64_t sum;
    } of[KEPT_MAX];
    unsigned n;
};

void kept_open(struct kept *k);
/* Takes a kept event; releases it where there is no room. */
void kept_add(struct kept *k, const struct gpud_event *e);
/* Releases any of them, if there is one. */
void kept_release_one(struct kept *k, uint64_t *state);
/* Releases all. */
void kept_close(struct kept *k, uint64_t *state);

/* Reads all that an event points to. */
uint64_t sum_of(const struct gpud_event *e);

#endif
