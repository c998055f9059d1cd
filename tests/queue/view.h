/* SPDX-License-Identifier: MIT */
/*
 * view.h - the view of a store, as text: two stores agree if their views are the same.
 *
 * Ids of shapes and specs are an engine's own.  A view numbers both in the order of the tasks that
 * have them.
 */
#ifndef T_QUEUE_VIEW_H
#define T_QUEUE_VIEW_H

#include "queue/store.h"

struct view {
    char *text; /* lines */
    size_t size, room;
};

__attribute__((format(printf, 2, 3))) void view_add(struct view *v, const char *format, ...);
void view_clear(struct view *v); /* keeps the memory */
void view_free(struct view *v);

/* All that readers return; attempts, rounds, conditions and results of tasks only if `details`. */
void view_store(struct view *v, struct gpq_store *s, bool details);
/* The changes of the transaction: one line a task, from its first state to its last. */
void view_changes(struct view *v, const struct gpq_store *s);
/* The first line in which they differ, of each; NULL, NULL if they are the same. */
void view_difference(const struct view *a, const struct view *b, const char **ret_a,
                     const char **ret_b);

/* "12.44" in a buffer that lives until some more calls. */
const char *view_id(uint64_t task);

#endif
