/* SPDX-License-Identifier: MIT */
/* windows.c - a hash table of windows, and a heap of the closed ones. */
#include "queue/agent/windows.h"

#include <stdlib.h>

enum { FIRST_ROOM = 4096 };

int gpq_windows_open(struct gpq_windows *all)
{
    *all = (struct gpq_windows){ .room = FIRST_ROOM };
    all->bucket = calloc(all->room, sizeof(struct gpq_window *));
    return all->bucket ? 0 : GPQ_ENOMEM;
}

void gpq_window_forget(struct gpq_window *w)
{
    if (w->needs)
        gpq_needs_free(w->needs);
    free(w->needs);
    w->needs = NULL;
}

static void free_window(struct gpq_window *w)
{
    gpq_window_forget(w);
    free(w);
}

void gpq_windows_close(struct gpq_windows *all)
{
    for (size_t i = 0; all->bucket && i < all->room; i++)
        for (struct gpq_window *w = all->bucket[i], *next; w; w = next) {
            next = w->next;
            free_window(w);
        }
    free(all->bucket);
    for (int i = 0; i < GPQ_PLACES; i++)
        free(all->in[i].list);
    *all = (struct gpq_windows){ 0 };
}

/* ---- The table ---- */

static struct gpq_window **bucket_of(const struct gpq_windows *all, uint32_t shape)
{
    return &all->bucket[shape & (all->room - 1)];
}

struct gpq_window *gpq_windows_find(const struct gpq_windows *all, uint32_t shape)
{
    struct gpq_window *w = *bucket_of(all, shape);
    while (w && w->shape != shape)
        w = w->next;
    return w;
}

/* Doubles the table; without memory it stays as it is, and is slower. */
static void widen(struct gpq_windows *all)
{
    const struct gpq_windows before = *all;
    struct gpq_window **wider = calloc(2 * all->room, sizeof(struct gpq_window *));
    if (!wider)
        return;
    all->bucket = wider;
    all->room *= 2;
    for (size_t i = 0; i < before.room; i++)
        for (struct gpq_window *w = before.bucket[i], *next; w; w = next) {
            struct gpq_window **at = bucket_of(all, w->shape);
            next = w->next;
            w->next = *at;
            *at = w;
        }
    free(before.bucket);
}

/* Each array has room for all windows, so that placing one needs no memory. */
static bool make_room(struct gpq_windows *all)
{
    size_t most = all->most != 0 ? 2 * all->most : 64;
    if (all->n < all->most)
        return true;
    for (int i = GPQ_CLOSED; i < GPQ_PLACES; i++) {
        struct gpq_window **list = realloc(all->in[i].list, most * sizeof(struct gpq_window *));
        if (!list)
            return false;
        all->in[i].list = list;
    }
    all->most = most;
    return true;
}

struct gpq_window *gpq_windows_get(struct gpq_windows *all, uint32_t shape)
{
    struct gpq_window *w = gpq_windows_find(all, shape);
    if (w)
        return w;
    w = make_room(all) ? calloc(1, sizeof(*w)) : NULL;
    if (!w)
        return NULL;
    if (all->n >= all->room)
        widen(all);
    struct gpq_window **at = bucket_of(all, shape);
    w->shape = shape;
    w->stale = true;
    w->next = *at;
    *at = w;
    all->n++;
    return w;
}

void gpq_windows_drop(struct gpq_windows *all, struct gpq_window *w)
{
    struct gpq_window **at = bucket_of(all, w->shape);
    gpq_windows_place(all, w, GPQ_NOWHERE);
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    all->n--;
    free_window(w);
}

/* ---- Those that have changed ---- */

void gpq_windows_change(struct gpq_windows *all, struct gpq_window *w)
{
    if (w->changed)
        return;
    w->changed = true;
    w->next_changed = all->changed;
    all->changed = w;
}

struct gpq_window *gpq_windows_changed(struct gpq_windows *all)
{
    struct gpq_window *w = all->changed;
    if (!w)
        return NULL;
    all->changed = w->next_changed;
    w->changed = false;
    return w;
}

/* ---- Places ---- */

bool gpq_windows_before(const struct gpq_window *x, const struct gpq_window *y)
{
    return x->priority != y->priority ? x->priority > y->priority : x->order < y->order;
}

static void set(struct gpq_window_array *in, size_t at, struct gpq_window *w)
{
    in->list[at] = w;
    w->at = at;
}

/* Moves a window of the heap to its place, from that at which it is. */
static void sift(struct gpq_window_array *heap, struct gpq_window *w)
{
    size_t at = w->at;
    for (; at > 0 && gpq_windows_before(w, heap->list[(at - 1) / 2]); at = (at - 1) / 2)
        set(heap, at, heap->list[(at - 1) / 2]);
    for (size_t child; (child = 2 * at + 1) < heap->n; at = child) {
        if (child + 1 < heap->n && gpq_windows_before(heap->list[child + 1], heap->list[child]))
            child++;
        if (!gpq_windows_before(heap->list[child], w))
            break;
        set(heap, at, heap->list[child]);
    }
    set(heap, at, w);
}

/* The last one of the array takes its place. */
static void take_out(struct gpq_windows *all, const struct gpq_window *w)
{
    struct gpq_window_array *in = &all->in[w->place];
    struct gpq_window *last = in->list[--in->n];
    if (last == w)
        return;
    set(in, w->at, last);
    if (w->place == GPQ_CLOSED)
        sift(in, last);
}

void gpq_windows_place(struct gpq_windows *all, struct gpq_window *w, enum gpq_window_place place)
{
    if (w->place != place) {
        if (w->place != GPQ_NOWHERE)
            take_out(all, w);
        w->place = place;
        if (place != GPQ_NOWHERE)
            set(&all->in[place], all->in[place].n++, w);
    }
    if (place == GPQ_CLOSED)
        sift(&all->in[place], w);
}

struct gpq_window *gpq_windows_first(const struct gpq_windows *all)
{
    return all->in[GPQ_CLOSED].n != 0 ? all->in[GPQ_CLOSED].list[0] : NULL;
}
