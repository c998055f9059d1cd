/* SPDX-License-Identifier: MIT */
/* texts.c - a growing list of texts. */
#include "queue/jobs/texts.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 256 };

/* Makes room for `more` bytes, and one for the NUL of each text. */
static bool grow(struct gpq_texts *t, size_t more)
{
    if (t->room - t->used > more)
        return true;
    size_t room = t->used + more + 1 > 2 * t->room ? t->used + more + 1 : 2 * t->room;
    char *data = realloc(t->data, room > LEAST ? room : LEAST);
    if (!data)
        return false;
    t->data = data;
    t->room = room > LEAST ? room : LEAST;
    return true;
}

bool gpq_texts_add(struct gpq_texts *t, const char *data, size_t size)
{
    if (!grow(t, size))
        return false;
    if (size != 0)
        memcpy(t->data + t->used, data, size);
    t->used += size;
    return true;
}

bool gpq_texts_fill(struct gpq_texts *t, char c, size_t times)
{
    if (!grow(t, times))
        return false;
    memset(t->data + t->used, c, times);
    t->used += times;
    return true;
}

bool gpq_texts_end(struct gpq_texts *t)
{
    if (t->n == t->n_room) {
        size_t room = t->n_room ? 2 * t->n_room : 16;
        size_t *at = realloc(t->at, room * sizeof(*at));
        if (!at)
            return false;
        t->at = at;
        t->n_room = room;
    }
    if (!grow(t, 0))
        return false;
    t->data[t->used++] = 0;
    t->at[t->n++] = t->begin;
    t->begin = t->used;
    return true;
}

bool gpq_texts_put(struct gpq_texts *t, const char *text)
{
    return gpq_texts_add(t, text, strlen(text)) && gpq_texts_end(t);
}

size_t gpq_texts_open(const struct gpq_texts *t)
{
    return t->used - t->begin;
}

void gpq_texts_undo(struct gpq_texts *t)
{
    t->used = t->begin;
}

char *gpq_texts_get(const struct gpq_texts *t, size_t i)
{
    return t->data + t->at[i];
}

size_t gpq_texts_size(const struct gpq_texts *t, size_t i)
{
    return (i + 1 < t->n ? t->at[i + 1] : t->begin) - t->at[i] - 1;
}

void gpq_texts_clear(struct gpq_texts *t)
{
    t->used = 0;
    t->begin = 0;
    t->n = 0;
}

void gpq_texts_free(struct gpq_texts *t)
{
    free(t->data);
    free(t->at);
    *t = (struct gpq_texts){ 0 };
}
