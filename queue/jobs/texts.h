/* SPDX-License-Identifier: MIT */
/*
 * texts.h - a growing list of texts in one piece of memory: fields of a row, arguments of a job.
 *
 * A text is built of pieces and then ended.  A list of zeros is empty and has no memory.
 */
#ifndef GPQ_JOBS_TEXTS_H
#define GPQ_JOBS_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

struct gpq_texts {
    char *data; /* each text ends with a NUL */
    size_t used, room;
    size_t *at; /* where each text begins */
    size_t n, n_room;
    size_t begin; /* of the text that is being built */
};

/* Adds bytes to the text that is being built; false: no memory, and the list is as before. */
bool gpq_texts_add(struct gpq_texts *t, const char *data, size_t size);
bool gpq_texts_fill(struct gpq_texts *t, char c, size_t times);
/* Ends the text that is being built. */
bool gpq_texts_end(struct gpq_texts *t);
/* Adds a whole text. */
bool gpq_texts_put(struct gpq_texts *t, const char *text);
/* Bytes of the text that is being built. */
size_t gpq_texts_open(const struct gpq_texts *t);
/* Forgets the bytes of the text that is being built. */
void gpq_texts_undo(struct gpq_texts *t);
/* An ended text, until the list changes; its size without the NUL. */
char *gpq_texts_get(const struct gpq_texts *t, size_t i);
size_t gpq_texts_size(const struct gpq_texts *t, size_t i);
/* Forgets the texts, and keeps the memory. */
void gpq_texts_clear(struct gpq_texts *t);
void gpq_texts_free(struct gpq_texts *t);

#endif
