/* SPDX-License-Identifier: MIT */
/* pool.c - texts and sets of GPUs, each kept once. */
#include "view/pool.h"

#include <stdlib.h>
#include <string.h>

#define NO_TEXT UINT32_MAX
#define NO_SET UINT16_MAX

/* An open hash table of offsets. */
struct table {
    uint32_t *slot; /* 0 = free, else an entry + 1 */
    uint32_t size, used;
};

struct pool {
    char *text;
    size_t size, room;
    struct table texts;
};

struct kept_set {
    uint32_t at, n;
};

struct gpv_pool {
    uint32_t nights; /* that use it */
    struct pool text;
    uint16_t *gpu; /* of all sets */
    size_t gpus, gpus_room;
    GPV_LIST(struct kept_set) sets;
    struct table set_table;
};

static uint32_t hash_of(const void *data, size_t size)
{
    const unsigned char *byte = data;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * 16777619u;
    return hash;
}

typedef uint32_t (*rehash_fn)(const struct gpv_pool *p, uint32_t entry);

/* A table is at most half full. */
static bool table_room(const struct gpv_pool *p, struct table *t, rehash_fn rehash)
{
    if (t->used * 2 < t->size)
        return true;
    struct table larger = { NULL, t->size ? t->size * 2 : 256, t->used };
    larger.slot = t->size < UINT32_MAX / 4 ? calloc(larger.size, sizeof(*larger.slot)) : NULL;
    if (!larger.slot)
        return false;
    for (uint32_t i = 0; i < t->size; i++) {
        if (t->slot[i] == 0)
            continue;
        uint32_t at = rehash(p, t->slot[i] - 1) & (larger.size - 1);
        while (larger.slot[at] != 0)
            at = (at + 1) & (larger.size - 1);
        larger.slot[at] = t->slot[i];
    }
    free(t->slot);
    *t = larger;
    return true;
}

static uint32_t text_hash(const struct gpv_pool *p, uint32_t entry)
{
    const char *text = p->text.text + entry;
    return hash_of(text, strlen(text));
}

/* Room for a text behind the others; SIZE_MAX: no memory, or more than 4 GiB of texts. */
static size_t text_room(struct pool *p, size_t size)
{
    while (p->size + size + 1 > p->room) {
        size_t more = p->room ? p->room * 2 : 4096;
        char *larger = more < UINT32_MAX ? realloc(p->text, more) : NULL;
        if (!larger)
            return SIZE_MAX;
        p->text = larger;
        p->room = more;
    }
    return p->size;
}

/* Where a text is in the table, or where it would be. */
static uint32_t text_slot(const struct gpv_pool *p, const char *text, size_t size)
{
    const struct table *t = &p->text.texts;
    uint32_t at = hash_of(text, size) & (t->size - 1);
    for (; t->slot[at] != 0; at = (at + 1) & (t->size - 1)) {
        const char *there = p->text.text + t->slot[at] - 1;
        if (strncmp(there, text, size) == 0 && there[size] == 0)
            break;
    }
    return at;
}

uint32_t gpv_pool_keep(struct gpv_pool *p, const char *text, size_t size)
{
    struct table *t = &p->text.texts;
    const char *nul = size ? memchr(text, 0, size) : NULL;
    size = nul ? (size_t)(nul - text) : size;
    if (size == 0)
        return 0;
    if (!table_room(p, t, text_hash))
        return NO_TEXT;
    uint32_t at = text_slot(p, text, size);
    if (t->slot[at] != 0)
        return t->slot[at] - 1;
    size_t offset = text_room(&p->text, size);
    if (offset == SIZE_MAX)
        return NO_TEXT;
    memcpy(p->text.text + offset, text, size);
    p->text.text[offset + size] = 0;
    p->text.size += size + 1;
    t->slot[at] = (uint32_t)offset + 1;
    t->used++;
    return (uint32_t)offset;
}

/* The offset of a text that was kept; NO_TEXT: it was not. */
uint32_t gpv_pool_find(const struct gpv_pool *p, const char *text)
{
    const struct table *t = &p->text.texts;
    if (!*text)
        return 0;
    uint32_t at = t->size ? t->slot[text_slot(p, text, strlen(text))] : 0;
    return at != 0 ? at - 1 : NO_TEXT;
}

const char *gpv_pool_text(const struct gpv_pool *p, uint32_t text)
{
    return text < p->text.size ? p->text.text + text : "";
}

static uint32_t set_hash(const struct gpv_pool *p, uint32_t entry)
{
    const struct kept_set *set = &p->sets.row[entry];
    return hash_of(p->gpu + set->at, set->n * sizeof(*p->gpu));
}

uint16_t gpv_pool_keep_set(struct gpv_pool *p, const uint16_t *gpu, uint32_t count)
{
    if (!table_room(p, &p->set_table, set_hash))
        return NO_SET;
    struct table *t = &p->set_table;
    uint32_t at = hash_of(gpu, count * sizeof(*gpu)) & (t->size - 1);
    for (; t->slot[at] != 0; at = (at + 1) & (t->size - 1)) {
        const struct kept_set *there = &p->sets.row[t->slot[at] - 1];
        if (there->n == count &&
            (count == 0 || memcmp(p->gpu + there->at, gpu, count * sizeof(*gpu)) == 0))
            return (uint16_t)(t->slot[at] - 1);
    }
    if (p->sets.n >= NO_SET ||
        !gpv_grow(&p->sets.row, p->sets.n, &p->sets.room, sizeof(*p->sets.row)))
        return NO_SET;
    for (uint32_t i = 0; i < count; i++) {
        if (!gpv_grow(&p->gpu, p->gpus + i, &p->gpus_room, sizeof(*p->gpu)))
            return NO_SET;
        p->gpu[p->gpus + i] = gpu[i];
    }
    p->sets.row[p->sets.n] = (struct kept_set){ (uint32_t)p->gpus, count };
    p->gpus += count;
    t->slot[at] = (uint32_t)++p->sets.n;
    t->used++;
    return (uint16_t)(p->sets.n - 1);
}

bool gpv_pool_is_full(const struct gpv_pool *p)
{
    return p->sets.n >= NO_SET;
}

struct gpv_set gpv_pool_set(const struct gpv_pool *p, uint16_t set)
{
    if (set >= p->sets.n)
        return (struct gpv_set){ NULL, 0 };
    return (struct gpv_set){ p->gpu ? p->gpu + p->sets.row[set].at : NULL, p->sets.row[set].n };
}

/* ---- The pool ---- */

struct gpv_pool *gpv_pool_new(void)
{
    struct gpv_pool *p = calloc(1, sizeof(*p));
    if (p && text_room(&p->text, 0) == 0) {
        p->nights = 1;
        p->text.text[p->text.size++] = 0; /* offset 0 is the empty text */
        return p;
    }
    free(p);
    return NULL;
}

struct gpv_pool *gpv_pool_join(struct gpv_pool *p)
{
    p->nights++;
    return p;
}

void gpv_pool_leave(struct gpv_pool *p)
{
    if (!p || --p->nights > 0)
        return;
    free(p->text.text);
    free(p->text.texts.slot);
    free(p->set_table.slot);
    free(p->sets.row);
    free(p->gpu);
    free(p);
}
