/* SPDX-License-Identifier: MIT */
/* finding_groups.c - alike rows are one finding: a hash table of them. */
#include <stdlib.h>
#include <string.h>

#include "view/night/finding_parts.h"

enum { ROOM = 32 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The next character of a text, '0' for a run of digits; 0 at the end. */
static char folded(const char **at)
{
    char c = **at;
    if (c == 0)
        return 0;
    if (!is_digit(c)) {
        (*at)++;
        return c;
    }
    while (is_digit(**at))
        (*at)++;
    return '0';
}

static bool alike_texts(const char *a, const char *b)
{
    char c;
    do {
        c = folded(&a);
        if (c != folded(&b))
            return false;
    } while (c != 0);
    return true;
}

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

static uint64_t hash_of(const struct gpv_night *n, const struct gpv_finding_key *k)
{
    const char *at = gpv_text(n, k->text);
    uint64_t hash = mixed(mixed(0, k->kind), k->batch);
    hash = mixed(mixed(mixed(hash, k->gpu), k->what), (uint32_t)k->status);
    for (char c; (c = folded(&at)) != 0;)
        hash = mixed(hash, (unsigned char)c);
    return hash;
}

static bool alike(const struct gpv_night *n, const struct gpv_finding_key *a,
                  const struct gpv_finding_key *b)
{
    return a->kind == b->kind && a->batch == b->batch && a->gpu == b->gpu && a->what == b->what &&
           a->status == b->status &&
           (a->text == b->text || alike_texts(gpv_text(n, a->text), gpv_text(n, b->text)));
}

/* The slot of a key, or the free one where it would be. */
static size_t slot_of(const struct gpv_finding_maker *m, const struct gpv_finding_key *k,
                      uint64_t hash)
{
    size_t at = hash & (m->slots - 1);
    for (; m->slot[at] != 0; at = (at + 1) & (m->slots - 1)) {
        const struct gpv_finding_group *there = &m->groups.row[m->slot[at] - 1];
        if (there->hash == hash && alike(m->n, &there->key, k))
            break;
    }
    return at;
}

/* A table is at most half full. */
static int slot_room(struct gpv_finding_maker *m)
{
    if (m->groups.n < m->slots / 2)
        return 0;
    size_t slots = m->slots != 0 ? 2 * m->slots : (size_t)2 * ROOM;
    uint32_t *slot = calloc(slots, sizeof(*slot));
    if (!slot)
        return -1;
    for (uint32_t i = 0; i < m->groups.n; i++) {
        size_t at = m->groups.row[i].hash & (slots - 1);
        while (slot[at] != 0)
            at = (at + 1) & (slots - 1);
        slot[at] = i + 1;
    }
    free(m->slot);
    m->slot = slot;
    m->slots = slots;
    return 0;
}

/* The list, moved or not; it stays as it is where there is no memory. */
static void *resized(void *list, size_t size, bool *failed)
{
    void *moved = realloc(list, size);
    if (moved)
        return moved;
    *failed = true;
    return list;
}

/* Each list has the same room. */
static int group_room(struct gpv_finding_maker *m)
{
    size_t room = m->groups.room != 0 ? 2 * m->groups.room : ROOM;
    bool failed = false;
    if (m->groups.n < m->groups.room)
        return 0;
    m->f->row = resized(m->f->row, room * sizeof(*m->f->row), &failed);
    m->groups.row = resized(m->groups.row, room * sizeof(*m->groups.row), &failed);
    m->gpus = resized(m->gpus, room * m->words * sizeof(*m->gpus), &failed);
    if (!failed)
        m->groups.room = m->f->room = room;
    return failed ? -1 : 0;
}

struct gpv_finding *gpv_finding_find(struct gpv_finding_maker *m, const struct gpv_finding_key *k)
{
    uint64_t hash = hash_of(m->n, k);
    if (slot_room(m) != 0 || group_room(m) != 0)
        return NULL;
    uint32_t *slot = &m->slot[slot_of(m, k, hash)];
    if (*slot == 0) {
        m->f->row[m->f->n] = (struct gpv_finding){
            .kind = k->kind, .batch = k->batch, .text = k->text, .gpu = k->gpu, .row = GPV_NONE
        };
        memset(m->gpus + m->f->n * m->words, 0, m->words * sizeof(*m->gpus));
        m->groups.row[m->groups.n++] = (struct gpv_finding_group){ *k, hash };
        *slot = (uint32_t)++m->f->n;
    }
    return &m->f->row[*slot - 1];
}

void gpv_finding_note_gpu(struct gpv_finding_maker *m, const struct gpv_finding *f, uint32_t gpu)
{
    uint64_t *bits = m->gpus + (size_t)(f - m->f->row) * m->words;
    if (gpu / 64 < m->words)
        bits[gpu / 64] |= UINT64_C(1) << gpu % 64;
}
