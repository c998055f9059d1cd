/* SPDX-License-Identifier: MIT */
/* work.c - two hash tables of the same units. */
#include "queue/agent/work.h"

#include <stdlib.h>
#include <unistd.h>

enum { FIRST_ROOM = 256 };

struct gpq_work {
    struct gpq_unit **by_id, **by_task;
    size_t room, n; /* room: a power of two */
};

static size_t place_of(const struct gpq_work *w, uint64_t number)
{
    return (size_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (w->room - 1);
}

int gpq_work_open(struct gpq_agent *a)
{
    struct gpq_work *w = calloc(1, sizeof(*w));
    if (!w)
        return GPQ_ENOMEM;
    w->room = FIRST_ROOM;
    w->by_id = calloc(w->room, sizeof(struct gpq_unit *));
    w->by_task = calloc(w->room, sizeof(struct gpq_unit *));
    a->work = w;
    return w->by_id && w->by_task ? 0 : GPQ_ENOMEM;
}

static void free_unit(struct gpq_unit *u)
{
    if (u->runner.fd >= 0)
        close(u->runner.fd);
    free(u->devices);
    free(u->stamp);
    free(u->said);
    free(u->result);
    free(u);
}

void gpq_work_close(struct gpq_agent *a)
{
    struct gpq_work *w = a->work;
    if (!w)
        return;
    for (size_t i = 0; w->by_id && i < w->room; i++)
        while (w->by_id[i]) {
            struct gpq_unit *u = w->by_id[i];
            w->by_id[i] = u->next_id;
            free_unit(u);
        }
    free(w->by_id);
    free(w->by_task);
    free(w);
    a->work = NULL;
}

static void link_id(struct gpq_work *w, struct gpq_unit *u)
{
    struct gpq_unit **at = &w->by_id[place_of(w, u->id)];
    u->next_id = *at;
    *at = u;
}

static void link_task(struct gpq_work *w, struct gpq_unit *u)
{
    struct gpq_unit **at = &w->by_task[place_of(w, u->task)];
    u->next_task = *at;
    *at = u;
}

/* Doubles both tables; without memory they stay as they are, and are slower. */
static void widen(struct gpq_work *w)
{
    struct gpq_work wider = { .room = w->room * 2, .n = w->n };
    wider.by_id = calloc(wider.room, sizeof(struct gpq_unit *));
    wider.by_task = calloc(wider.room, sizeof(struct gpq_unit *));
    if (!wider.by_id || !wider.by_task) {
        free(wider.by_id);
        free(wider.by_task);
        return;
    }
    for (size_t i = 0; i < w->room; i++)
        for (struct gpq_unit *u = w->by_id[i], *next; u; u = next) {
            next = u->next_id;
            link_id(&wider, u);
            if (u->phase != GPQ_WITHDRAWN)
                link_task(&wider, u);
        }
    free(w->by_id);
    free(w->by_task);
    *w = wider;
}

struct gpq_unit *gpq_work_add(struct gpq_agent *a, uint64_t id, uint64_t task)
{
    struct gpq_work *w = a->work;
    struct gpq_unit *u = calloc(1, sizeof(*u));
    if (!u)
        return NULL;
    if (w->n >= w->room)
        widen(w);
    u->id = id;
    u->task = task;
    u->runner = (struct gpq_watched){ .source = GPQ_SOURCE_RUN, .fd = -1, .owner = u };
    link_id(w, u);
    link_task(w, u);
    w->n++;
    return u;
}

struct gpq_unit *gpq_work_by_id(struct gpq_agent *a, uint64_t id)
{
    struct gpq_unit *u = a->work->by_id[place_of(a->work, id)];
    while (u && u->id != id)
        u = u->next_id;
    return u;
}

struct gpq_unit *gpq_work_of(struct gpq_agent *a, uint64_t task)
{
    struct gpq_unit *u = a->work->by_task[place_of(a->work, task)];
    while (u && u->task != task)
        u = u->next_task;
    return u;
}

static void unlink_task(struct gpq_work *w, struct gpq_unit *u)
{
    for (struct gpq_unit **at = &w->by_task[place_of(w, u->task)]; *at; at = &(*at)->next_task)
        if (*at == u) {
            *at = u->next_task;
            return;
        }
}

void gpq_work_withdrawn(struct gpq_agent *a, struct gpq_unit *u)
{
    unlink_task(a->work, u);
    u->phase = GPQ_WITHDRAWN;
}

static void unlink_id(struct gpq_work *w, struct gpq_unit *u)
{
    for (struct gpq_unit **at = &w->by_id[place_of(w, u->id)]; *at; at = &(*at)->next_id)
        if (*at == u) {
            *at = u->next_id;
            return;
        }
}

void gpq_work_renumber(struct gpq_agent *a, struct gpq_unit *u, uint64_t id)
{
    unlink_id(a->work, u);
    u->id = id;
    link_id(a->work, u);
}

void gpq_work_remove(struct gpq_agent *a, struct gpq_unit *u)
{
    struct gpq_work *w = a->work;
    unlink_task(w, u);
    unlink_id(w, u);
    w->n--;
    gpq_ports_release(&a->ports, u->port);
    gpq_unwatch(a, &u->runner);
    free_unit(u);
}

size_t gpq_work_started(const struct gpq_agent *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->work->room; i++)
        for (const struct gpq_unit *u = a->work->by_id[i]; u; u = u->next_id)
            n += u->phase >= GPQ_STARTING && u->phase <= GPQ_ENDED;
    return n;
}

void gpq_work_each(struct gpq_agent *a,
                   void (*fn)(struct gpq_agent *a, struct gpq_unit *u, void *user), void *user)
{
    for (size_t i = 0; i < a->work->room; i++)
        for (struct gpq_unit *u = a->work->by_id[i], *next; u; u = next) {
            next = u->next_id;
            fn(a, u, user);
        }
}
