/* SPDX-License-Identifier: MIT */
#include "kept.h"

#include "harness.h"
#include "lots.h"

#include <string.h>

uint64_t sum_of(const struct gpud_event *e)
{
    uint64_t sum = e->result_size;

    for (uint64_t i = 0; i < e->result_size; i++)
        sum = sum * 31 + ((const unsigned char *)e->result)[i];
    for (uint64_t i = 0; i < e->output_size; i++)
        sum = sum * 31 + (unsigned char)e->output[i];
    for (const char *p = e->text; *p; p++)
        sum = sum * 31 + (unsigned char)*p;
    for (const char *p = e->label; *p; p++)
        sum = sum * 31 + (unsigned char)*p;
    for (const char *p = e->device_uuid; *p; p++)
        sum = sum * 31 + (unsigned char)*p;
    return sum + strlen(e->device);
}

static void let_go(struct gpud_event *e, uint64_t sum)
{
    if (sum_of(e) != sum)
        T_FAIL("a kept event has changed: kind %u, tag %llu", e->kind, (unsigned long long)e->tag);
    T_EQ(gpud_event_release(e), 0);
    T_EQ(gpud_event_release(e), 0); /* not kept any more */
    T_CHECK(!e->kept && !e->result && !e->result_size);
}

void kept_open(struct kept *k)
{
    (void)pthread_mutex_init(&k->lock, NULL);
    k->n = 0;
}

void kept_add(struct kept *k, const struct gpud_event *e)
{
    struct gpud_event mine = *e;
    uint64_t sum = sum_of(e);
    int has_room;

    (void)pthread_mutex_lock(&k->lock);
    has_room = k->n < KEPT_MAX;
    if (has_room) {
        k->of[k->n].e = mine;
        k->of[k->n++].sum = sum;
    }
    (void)pthread_mutex_unlock(&k->lock);
    if (!has_room)
        let_go(&mine, sum);
}

void kept_release_one(struct kept *k, uint64_t *state)
{
    struct gpud_event e = { .struct_size = 0 };
    uint64_t sum = 0;

    (void)pthread_mutex_lock(&k->lock);
    if (k->n) {
        uint64_t i = below(state, k->n);
        e = k->of[i].e;
        sum = k->of[i].sum;
        k->of[i] = k->of[--k->n];
    }
    (void)pthread_mutex_unlock(&k->lock);
    if (e.struct_size)
        let_go(&e, sum);
}

void kept_close(struct kept *k, uint64_t *state)
{
    while (k->n)
        kept_release_one(k, state);
    (void)pthread_mutex_destroy(&k->lock);
}
