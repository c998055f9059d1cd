/* SPDX-License-Identifier: MIT */
/* tree.c - the directories and files of a disk: what processes see, and what a power cut leaves. */
#include "tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "harness.h"

static int fail(int error)
{
    errno = error;
    return TREE_NONE;
}

/* Returns the array with room for one more. */
static void *grown(void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return array;
    *room = *room * 2 + 8;
    array = realloc(array, *room * size);
    T_CHECK(array);
    return array;
}

/* ---- Entries of directories ---- */

static size_t entries_find(const struct entries *e, const char *name)
{
    size_t i = 0;

    while (i < e->n && strcmp(e->of[i].name, name) != 0)
        i++;
    return i;
}

int entries_node(const struct entries *e, const char *name)
{
    size_t i = entries_find(e, name);

    return i < e->n ? e->of[i].node : TREE_NONE;
}

void entries_set(struct entries *e, const char *name, int node)
{
    size_t i = entries_find(e, name);

    if (node == TREE_NONE && i < e->n) {
        e->of[i] = e->of[--e->n];
    } else if (node != TREE_NONE) {
        if (i == e->n) {
            e->of = grown(e->of, e->n, &e->room, sizeof(*e->of));
            e->n++;
        }
        memcpy(e->of[i].name, name, strlen(name) + 1);
        e->of[i].node = node;
    }
}

/* ---- Nodes and paths ---- */

int tree_make_node(struct tree *t, bool directory)
{
    t->nodes = grown(t->nodes, t->n_nodes, &t->room_nodes, sizeof(*t->nodes));
    t->nodes[t->n_nodes] = (struct node){ .directory = directory };
    return (int)t->n_nodes++;
}

void tree_init(struct tree *t)
{
    *t = (struct tree){ 0 };
    (void)tree_make_node(t, true);
}

void tree_fini(struct tree *t)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        content_free(&t->nodes[i].content);
        free(t->nodes[i].now.of);
        free(t->nodes[i].synced.of);
    }
    free(t->nodes);
    free(t->pending);
}

int tree_walk(const struct tree *t, const char *path, char name[TREE_NAME])
{
    int at = TREE_NONE, next = TREE_ROOT;

    T_CHECK(path[0] == '/');
    name[0] = '\0';
    for (;;) {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        if (length == 0)
            return at == TREE_NONE ? TREE_ROOT : at;
        if (next == TREE_NONE)
            return fail(ENOENT);
        if (!t->nodes[next].directory)
            return fail(ENOTDIR);
        if (length >= TREE_NAME)
            return fail(ENAMETOOLONG);
        at = next;
        memcpy(name, path, length);
        name[length] = '\0';
        next = entries_node(&t->nodes[at].now, name);
        path += length;
    }
}

int tree_find(const struct tree *t, const char *path)
{
    char name[TREE_NAME];
    int directory = tree_walk(t, path, name), node;

    if (directory == TREE_NONE || name[0] == '\0')
        return directory;
    node = entries_node(&t->nodes[directory].now, name);
    return node != TREE_NONE ? node : fail(ENOENT);
}

/* ---- Pending changes of entries ---- */

static void apply_synced(struct tree *t, const struct tree_change *p)
{
    for (unsigned i = 0; i < p->n_slots; i++)
        entries_set(&t->nodes[p->slot[i].directory].synced, p->slot[i].name, p->slot[i].node);
}

static void link_now(struct tree *t, const struct slot *s)
{
    int before = entries_node(&t->nodes[s->directory].now, s->name);

    if (before != TREE_NONE)
        t->nodes[before].links--;
    if (s->node != TREE_NONE)
        t->nodes[s->node].links++;
    entries_set(&t->nodes[s->directory].now, s->name, s->node);
}

struct tree_change *tree_begin_change(struct tree *t)
{
    t->pending = grown(t->pending, t->n_pending, &t->room_pending, sizeof(*t->pending));
    t->pending[t->n_pending] = (struct tree_change){ 0 };
    return &t->pending[t->n_pending++];
}

void tree_change_entry(struct tree *t, struct tree_change *p, int directory, const char *name,
                       int node)
{
    struct slot *s = &p->slot[p->n_slots++];

    s->directory = directory;
    s->node = node;
    memcpy(s->name, name, strlen(name) + 1);
    link_now(t, s);
}

static bool same_slot(const struct tree_change *a, const struct tree_change *b)
{
    for (unsigned i = 0; i < a->n_slots; i++)
        for (unsigned k = 0; k < b->n_slots; k++)
            if (a->slot[i].directory == b->slot[k].directory &&
                strcmp(a->slot[i].name, b->slot[k].name) == 0)
                return true;
    return false;
}

static bool touches(const struct tree_change *p, int directory)
{
    for (unsigned i = 0; i < p->n_slots; i++)
        if (p->slot[i].directory == directory)
            return true;
    return false;
}

/* Makes durable what happened in a directory, and what happened before to the same names: with a
 * rename from another directory, also what made the name there. */
void tree_sync(struct tree *t, int directory)
{
    bool *durable = calloc(t->n_pending + 1, sizeof(*durable));
    size_t left = 0;

    T_CHECK(durable);
    for (size_t i = t->n_pending; i-- > 0;) {
        durable[i] = touches(&t->pending[i], directory);
        for (size_t k = i + 1; k < t->n_pending && !durable[i]; k++)
            durable[i] = durable[k] && same_slot(&t->pending[i], &t->pending[k]);
    }
    for (size_t i = 0; i < t->n_pending; i++) {
        if (durable[i])
            apply_synced(t, &t->pending[i]);
        else
            t->pending[left++] = t->pending[i];
    }
    t->n_pending = left;
    free(durable);
}

/* ---- Copies ---- */

/* Returns the entries of all directories after a power cut. */
static struct entries *surviving_entries(const struct tree *t, uint64_t *seed)
{
    static const uint32_t chances[] = { 0, 50, 90, 100 };
    const uint32_t percent = chances[draw_below(seed, T_LENGTH(chances))];
    struct entries *all = calloc(t->n_nodes, sizeof(*all));

    T_CHECK(all);
    for (size_t i = 0; i < t->n_nodes; i++)
        for (size_t k = 0; k < t->nodes[i].synced.n; k++)
            entries_set(&all[i], t->nodes[i].synced.of[k].name, t->nodes[i].synced.of[k].node);
    for (size_t i = 0; i < t->n_pending; i++) {
        const struct tree_change *p = &t->pending[i];
        if (!draw_chance(seed, percent))
            continue;
        for (unsigned k = 0; k < p->n_slots; k++)
            entries_set(&all[p->slot[k].directory], p->slot[k].name, p->slot[k].node);
    }
    return all;
}

static void node_fill(struct node *n, const struct bytes *b)
{
    content_write(&n->content, 0, b->data, b->size);
    content_sync(&n->content);
}

/* Copies what a power cut leaves below a directory. */
static void copy_below(struct tree *to, int into, const struct tree *from, int of,
                       const struct entries *all, uint64_t *seed)
{
    for (size_t i = 0; i < all[of].n; i++) {
        const struct entry *e = &all[of].of[i];
        const struct node *n = &from->nodes[e->node];
        int copy = tree_make_node(to, n->directory);

        entries_set(&to->nodes[into].now, e->name, copy);
        entries_set(&to->nodes[into].synced, e->name, copy);
        to->nodes[copy].links = 1;
        if (n->directory) {
            copy_below(to, copy, from, e->node, all, seed);
        } else {
            struct bytes b = content_survives(&n->content, seed);
            node_fill(&to->nodes[copy], &b);
            free(b.data);
        }
    }
}

void tree_cut(struct tree *to, const struct tree *from, uint64_t *seed)
{
    struct entries *all = surviving_entries(from, seed);

    copy_below(to, TREE_ROOT, from, TREE_ROOT, all, seed);
    for (size_t i = 0; i < from->n_nodes; i++)
        free(all[i].of);
    free(all);
}
