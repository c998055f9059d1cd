/* SPDX-License-Identifier: MIT */
/*
 * tree.h - the directories and files of a disk: as processes see them, and after a power cut.
 *
 * A node is a file or a directory, and its number is its identity.  Each directory has the entries
 * that processes see, and those that are durable.  The changes that no sync has made durable stand
 * in one list.  A power cut keeps or drops each of them for itself.
 */
#ifndef T_TREE_H
#define T_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content.h"

enum { TREE_NAME = 64, TREE_NONE = -1, TREE_ROOT = 0 };

struct entry {
    char name[TREE_NAME];
    int node;
};

struct entries {
    struct entry *of;
    size_t n, room;
};

struct node {
    bool directory;
    unsigned links, opens; /* as processes see it: without any, it takes no space */
    struct content content;
    struct entries now, synced;
};

/* One name in one directory gets this node, or none. */
struct slot {
    int directory, node;
    char name[TREE_NAME];
};

/* A change of one entry, or of the two of a rename. */
struct tree_change {
    struct slot slot[2];
    unsigned n_slots;
};

struct tree {
    struct node *nodes;
    size_t n_nodes, room_nodes;
    struct tree_change *pending; /* in their order */
    size_t n_pending, room_pending;
};

/* Makes a tree of one directory, the root. */
void tree_init(struct tree *t);
void tree_fini(struct tree *t);
int tree_make_node(struct tree *t, bool directory);
/* Returns the directory in which the last name of a path stands, or TREE_NONE and errno.  The root
 * has the name "". */
int tree_walk(const struct tree *t, const char *path, char name[TREE_NAME]);
/* Returns the node, or TREE_NONE and errno. */
int tree_find(const struct tree *t, const char *path);
int entries_node(const struct entries *e, const char *name);
void entries_set(struct entries *e, const char *name, int node);
/* Changes one entry, or with a second call for the same change another one. */
struct tree_change *tree_begin_change(struct tree *t);
void tree_change_entry(struct tree *t, struct tree_change *c, int directory, const char *name,
                       int node);
/* Makes the entries of a directory durable. */
void tree_sync(struct tree *t, int directory);
/* Makes in an empty tree the nodes that a power cut leaves of another one. */
void tree_cut(struct tree *to, const struct tree *from, uint64_t *seed);

#endif
