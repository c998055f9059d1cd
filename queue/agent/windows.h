/* SPDX-License-Identifier: MIT */
/*
 * windows.h - the shapes that have READY tasks, and which of them come first.
 *
 * Each window is found by its shape.  It is OPEN, or CLOSED, or nowhere; of the closed ones the
 * first is at hand.  Finding and placing cost the logarithm of their number at most.        [Q11]
 */
#ifndef GPQ_AGENT_WINDOWS_H
#define GPQ_AGENT_WINDOWS_H

#include "queue/agent/needs.h"

enum gpq_window_place { GPQ_NOWHERE, GPQ_CLOSED, GPQ_OPEN, GPQ_PLACES };

struct gpq_window {
    uint32_t shape;
    int64_t ready;    /* tasks, those inside included */
    int64_t inside;   /* of them, at the dispatcher */
    bool fill;        /* it has changed */
    bool fresh;       /* a task became READY, which may come before those inside */
    bool bad;         /* its bytes are no needs, or of no class: its tasks stay where they are */
    bool seen;        /* whether it is of a class is read */
    bool known;       /* needs is read */
    bool rests;       /* none of its tasks can go inside until something changes */
    bool stale;       /* another READY task may be its first one */
    bool changed;     /* it is in the list of those */
    int32_t priority; /* of its first READY task */
    int64_t order;    /* the same */
    struct gpq_class *class; /* of workers; NULL: commands, or there is no such class */
    struct gpq_needs *needs; /* NULL: not read.  A closed one has none: there may be 10^6 */
    enum gpq_window_place place;
    size_t at; /* in the array of its place */
    struct gpq_window *next, *next_changed;
};

struct gpq_window_array {
    struct gpq_window **list;
    size_t n;
};

struct gpq_windows {
    struct gpq_window **bucket;
    size_t room; /* a power of two */
    size_t n, most;
    struct gpq_window_array in[GPQ_PLACES]; /* with room for `most` each.  CLOSED is a heap */
    struct gpq_window *changed;
};

int gpq_windows_open(struct gpq_windows *all);
void gpq_windows_close(struct gpq_windows *all);

/* NULL: there is none. */
struct gpq_window *gpq_windows_find(const struct gpq_windows *all, uint32_t shape);
/* The one of this shape, or a new one.  NULL: no memory. */
struct gpq_window *gpq_windows_get(struct gpq_windows *all, uint32_t shape);
/* Frees its needs. */
void gpq_window_forget(struct gpq_window *w);
/* Frees one that is not in the list of changed ones. */
void gpq_windows_drop(struct gpq_windows *all, struct gpq_window *w);

/* Adds it to the list of changed ones. */
void gpq_windows_change(struct gpq_windows *all, struct gpq_window *w);
/* Takes one out of the list; NULL: it is empty. */
struct gpq_window *gpq_windows_changed(struct gpq_windows *all);

/* Puts it there.  A closed one whose first task is another one goes to its place anew. */
void gpq_windows_place(struct gpq_windows *all, struct gpq_window *w, enum gpq_window_place place);
/* Whether the first task of x comes before that of y. */
bool gpq_windows_before(const struct gpq_window *x, const struct gpq_window *y);
/* The closed one whose first task comes first; NULL: none is closed. */
struct gpq_window *gpq_windows_first(const struct gpq_windows *all);

#endif
