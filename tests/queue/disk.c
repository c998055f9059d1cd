/* SPDX-License-Identifier: MIT */
/* disk.c - a disk in memory whose power can be cut, and whose calls can fail. */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "harness.h"
#include "tree.h"

enum { NONE = TREE_NONE, OPENED = 64, KINDS = 10 };

struct opened {
    int node; /* NONE: this number is free */
    int flags;
    size_t position;
};

struct disk {
    struct tree tree;
    struct opened opened[OPENED];
    uint64_t seed, limit, changes, cut_at, calls[KINDS];
    struct disk_fault fault;
    uint64_t met, failed; /* calls of the fault's kinds since it was set; those that failed */
    uint32_t cut_kinds;
    bool dead;
};

static int fail(int error)
{
    errno = error;
    return -1;
}

/* ---- The disk and its power ---- */

struct disk *disk_make(uint64_t seed)
{
    struct disk *d = calloc(1, sizeof(*d));

    T_CHECK(d);
    d->seed = seed;
    for (size_t i = 0; i < OPENED; i++)
        d->opened[i].node = NONE;
    tree_init(&d->tree);
    return d;
}

void disk_free(struct disk *d)
{
    if (!d)
        return;
    tree_fini(&d->tree);
    free(d);
}

struct disk *disk_cut(const struct disk *d, uint64_t seed)
{
    struct disk *after = disk_make(seed);

    tree_cut(&after->tree, &d->tree, &seed);
    return after;
}

void disk_cut_at(struct disk *d, uint64_t nth)
{
    disk_cut_in(d, nth, DISK_ANY);
}

void disk_cut_in(struct disk *d, uint64_t nth, uint32_t kinds)
{
    d->cut_at = nth;
    d->cut_kinds = kinds;
}

uint64_t disk_changes(const struct disk *d)
{
    return d->changes;
}

bool disk_dead(const struct disk *d)
{
    return d->dead;
}

/* ---- Faults ---- */

void disk_fail(struct disk *d, const struct disk_fault *f)
{
    d->fault = f ? *f : (struct disk_fault){ 0 };
    d->met = d->failed = 0;
}

uint64_t disk_failed(const struct disk *d)
{
    return d->failed;
}

void disk_limit(struct disk *d, uint64_t bytes)
{
    d->limit = bytes;
}

uint64_t disk_used(const struct disk *d)
{
    uint64_t used = 0;

    for (size_t i = 0; i < d->tree.n_nodes; i++)
        if (d->tree.nodes[i].links > 0 || d->tree.nodes[i].opens > 0)
            used += d->tree.nodes[i].content.now.size;
    return used;
}

uint64_t disk_calls(const struct disk *d, uint32_t kinds)
{
    uint64_t calls = 0;

    for (unsigned i = 0; i < KINDS; i++)
        if (kinds & (1U << i))
            calls += d->calls[i];
    return calls;
}

/* The fault that a call meets: a number of errno, 0 for half a write, NONE for no fault. */
static int fault_of(struct disk *d, uint32_t kind)
{
    if (!(d->fault.kinds & kind))
        return NONE;
    d->met++;
    if (d->met < d->fault.nth || (d->met > d->fault.nth && !d->fault.forever))
        return NONE;
    d->failed++;
    return d->fault.error;
}

/* Begins a call.  Returns -1 and errno if it fails before it has done anything; 1 if it is to
 * write only half. */
static int enter(struct disk *d, uint32_t kind)
{
    int error;

    if (d->dead)
        return fail(EIO);
    for (unsigned i = 0; i < KINDS; i++)
        if (kind == 1U << i)
            d->calls[i]++;
    error = fault_of(d, kind);
    return error > 0 ? fail(error) : error == 0;
}

/* Counts a change.  Returns true if the power is cut in its middle. */
static bool dies(struct disk *d, uint32_t kind)
{
    d->changes++;
    d->dead = d->cut_at != 0 && d->changes >= d->cut_at && (d->cut_kinds & kind);
    return d->dead;
}

/* ---- Calls on names ---- */

int disk_mkdir(struct disk *d, const char *path)
{
    char name[TREE_NAME];
    int directory;

    if (enter(d, DISK_MKDIR) < 0 || (directory = tree_walk(&d->tree, path, name)) == NONE)
        return -1;
    if (name[0] == '\0' || entries_node(&d->tree.nodes[directory].now, name) != NONE)
        return fail(EEXIST);
    tree_change_entry(&d->tree, tree_begin_change(&d->tree), directory, name,
                      tree_make_node(&d->tree, true));
    return dies(d, DISK_MKDIR) ? fail(EIO) : 0;
}

static int removes(struct disk *d, const char *path, bool of_directory)
{
    char name[TREE_NAME];
    int directory = tree_walk(&d->tree, path, name), node;

    if (directory == NONE)
        return -1;
    node = entries_node(&d->tree.nodes[directory].now, name);
    if (node == NONE)
        return fail(ENOENT);
    if (d->tree.nodes[node].directory != of_directory)
        return fail(of_directory ? ENOTDIR : EISDIR);
    if (of_directory && d->tree.nodes[node].now.n > 0)
        return fail(ENOTEMPTY);
    tree_change_entry(&d->tree, tree_begin_change(&d->tree), directory, name, NONE);
    return dies(d, of_directory ? DISK_RMDIR : DISK_UNLINK) ? fail(EIO) : 0;
}

int disk_unlink(struct disk *d, const char *path)
{
    return enter(d, DISK_UNLINK) < 0 ? -1 : removes(d, path, false);
}

int disk_rmdir(struct disk *d, const char *path)
{
    return enter(d, DISK_RMDIR) < 0 ? -1 : removes(d, path, true);
}

/* Returns 0 if the node may take the place of the other one. */
static int may_replace(const struct disk *d, int node, int other)
{
    if (other == NONE || node == other)
        return 0;
    if (d->tree.nodes[other].directory != d->tree.nodes[node].directory)
        return fail(d->tree.nodes[other].directory ? EISDIR : ENOTDIR);
    return d->tree.nodes[other].now.n > 0 ? fail(ENOTEMPTY) : 0;
}

int disk_rename(struct disk *d, const char *from, const char *to)
{
    char name[TREE_NAME], new_name[TREE_NAME];
    int directory, new_directory, node, other;
    struct tree_change *p;

    if (enter(d, DISK_RENAME) < 0 || (directory = tree_walk(&d->tree, from, name)) == NONE ||
        (new_directory = tree_walk(&d->tree, to, new_name)) == NONE)
        return -1;
    node = entries_node(&d->tree.nodes[directory].now, name);
    other = entries_node(&d->tree.nodes[new_directory].now, new_name);
    if (node == NONE)
        return fail(ENOENT);
    if (may_replace(d, node, other) < 0)
        return -1;
    if (node == other)
        return 0;
    p = tree_begin_change(&d->tree);
    tree_change_entry(&d->tree, p, new_directory, new_name, node);
    tree_change_entry(&d->tree, p, directory, name, NONE);
    return dies(d, DISK_RENAME) ? fail(EIO) : 0;
}

int disk_look(struct disk *d, const char *path, size_t *ret_size)
{
    int node = d->dead ? fail(EIO) : tree_find(&d->tree, path);

    if (node == NONE)
        return -1;
    if (d->tree.nodes[node].directory)
        return 1;
    *ret_size = d->tree.nodes[node].content.now.size;
    return 0;
}

int disk_list(struct disk *d, const char *path, int (*fn)(const char *name, void *user), void *user)
{
    int node = d->dead ? fail(EIO) : tree_find(&d->tree, path), stop = 0;
    struct entries copy = { 0 };

    if (node == NONE)
        return -1;
    if (!d->tree.nodes[node].directory)
        return fail(ENOTDIR);
    for (size_t i = 0; i < d->tree.nodes[node].now.n; i++) /* fn may remove entries */
        entries_set(&copy, d->tree.nodes[node].now.of[i].name, d->tree.nodes[node].now.of[i].node);
    for (size_t i = 0; i < copy.n && stop == 0; i++)
        stop = fn(copy.of[i].name, user);
    free(copy.of);
    return stop;
}

/* ---- Calls on open files ---- */

static struct opened *opened(struct disk *d, int fd)
{
    return fd >= 0 && fd < OPENED && d->opened[fd].node != NONE ? &d->opened[fd] : NULL;
}

static struct content *content(const struct disk *d, int fd)
{
    T_CHECK(fd >= 0 && fd < OPENED && d->opened[fd].node != NONE);
    return &d->tree.nodes[d->opened[fd].node].content;
}

static int take_number(struct disk *d, int node, int flags)
{
    int fd = 0;

    while (fd < OPENED && d->opened[fd].node != NONE)
        fd++;
    if (fd == OPENED)
        return fail(EMFILE);
    d->opened[fd] = (struct opened){ .node = node, .flags = flags };
    d->tree.nodes[node].opens++;
    return fd;
}

/* Returns the node of a new file, or -1. */
static int create(struct disk *d, int directory, const char *name)
{
    int node = tree_make_node(&d->tree, false);

    tree_change_entry(&d->tree, tree_begin_change(&d->tree), directory, name, node);
    return dies(d, DISK_OPEN) ? fail(EIO) : node;
}

static int open_node(struct disk *d, int node, int flags)
{
    if ((flags & O_CREAT) && (flags & O_EXCL))
        return fail(EEXIST);
    if (d->tree.nodes[node].directory)
        return (flags & O_ACCMODE) == O_RDONLY ? node : fail(EISDIR);
    if (flags & O_DIRECTORY)
        return fail(ENOTDIR);
    if ((flags & O_TRUNC) && d->tree.nodes[node].content.now.size > 0) {
        content_truncate(&d->tree.nodes[node].content, 0);
        return dies(d, DISK_OPEN) ? fail(EIO) : node;
    }
    return node;
}

int disk_open(struct disk *d, const char *path, int flags)
{
    char name[TREE_NAME];
    int directory, node;

    if (enter(d, DISK_OPEN) < 0 || (directory = tree_walk(&d->tree, path, name)) == NONE)
        return -1;
    node = name[0] == '\0' ? TREE_ROOT : entries_node(&d->tree.nodes[directory].now, name);
    if (node != NONE)
        node = open_node(d, node, flags);
    else if (flags & O_CREAT)
        node = create(d, directory, name);
    else
        return fail(ENOENT);
    return node == NONE ? -1 : take_number(d, node, flags);
}

int disk_close(struct disk *d, int fd)
{
    struct opened *o = opened(d, fd);

    if (!o)
        return fail(EBADF);
    d->tree.nodes[o->node].opens--;
    o->node = NONE;
    return 0;
}

ssize_t disk_read_at(struct disk *d, int fd, void *data, size_t size, size_t offset)
{
    const struct bytes *b;

    if (!opened(d, fd))
        return fail(EBADF);
    if (enter(d, DISK_READ) < 0)
        return -1;
    b = &content(d, fd)->now;
    if (offset >= b->size)
        return 0;
    if (size > b->size - offset)
        size = b->size - offset;
    memcpy(data, b->data + offset, size);
    return (ssize_t)size;
}

/* How many bytes of a write there is space for. */
static size_t fits(const struct disk *d, const struct bytes *b, size_t offset, size_t size)
{
    uint64_t used, room;

    if (d->limit == 0 || offset + size <= b->size)
        return size;
    used = disk_used(d);
    room = used < d->limit ? d->limit - used : 0;
    if (b->size + room >= offset + size)
        return size;
    return b->size + room > offset ? b->size + room - offset : 0;
}

ssize_t disk_write_at(struct disk *d, int fd, const void *data, size_t size, size_t offset)
{
    const struct opened *o = opened(d, fd);
    int half;

    if (!o || (o->flags & O_ACCMODE) == O_RDONLY)
        return fail(EBADF);
    half = enter(d, DISK_WRITE);
    if (half < 0)
        return -1;
    if (half && size > 1)
        size /= 2;
    size_t fit = fits(d, &content(d, fd)->now, offset, size);
    if (fit == 0 && size > 0)
        return fail(ENOSPC);
    content_write(content(d, fd), offset, data, fit);
    return dies(d, DISK_WRITE) ? fail(EIO) : (ssize_t)fit;
}

ssize_t disk_read(struct disk *d, int fd, void *data, size_t size)
{
    struct opened *o = opened(d, fd);
    ssize_t done = disk_read_at(d, fd, data, size, o ? o->position : 0);

    if (done > 0)
        o->position += (size_t)done;
    return done;
}

ssize_t disk_write(struct disk *d, int fd, const void *data, size_t size)
{
    struct opened *o = opened(d, fd);
    ssize_t done;

    if (o && (o->flags & O_APPEND))
        o->position = disk_size(d, fd);
    done = disk_write_at(d, fd, data, size, o ? o->position : 0);
    if (done > 0)
        o->position += (size_t)done;
    return done;
}

int disk_truncate(struct disk *d, int fd, size_t size)
{
    const struct opened *o = opened(d, fd);

    if (!o || (o->flags & O_ACCMODE) == O_RDONLY)
        return fail(EBADF);
    if (enter(d, DISK_TRUNCATE) < 0)
        return -1;
    content_truncate(content(d, fd), size);
    return dies(d, DISK_TRUNCATE) ? fail(EIO) : 0;
}

static int sync_file(struct disk *d, struct content *c)
{
    if (enter(d, DISK_SYNC) < 0) {
        int error = errno;
        if (!d->dead)
            content_sync_fails(c, &d->seed);
        return fail(error);
    }
    if (!dies(d, DISK_SYNC)) {
        content_sync(c);
        return 0;
    }
    if (draw_chance(&d->seed, 33)) /* it was over, but nobody knows */
        content_sync(c);
    return fail(EIO);
}

int disk_sync(struct disk *d, int fd)
{
    const struct opened *o = opened(d, fd);

    if (!o)
        return fail(EBADF);
    if (!d->tree.nodes[o->node].directory)
        return sync_file(d, content(d, fd));
    if (enter(d, DISK_SYNC_DIRECTORY) < 0)
        return -1;
    if (dies(d, DISK_SYNC_DIRECTORY))
        return fail(EIO);
    tree_sync(&d->tree, o->node);
    return 0;
}

uint64_t disk_identity(const struct disk *d, int fd)
{
    T_CHECK(fd >= 0 && fd < OPENED && d->opened[fd].node != NONE);
    return (uint64_t)d->opened[fd].node;
}

size_t disk_size(const struct disk *d, int fd)
{
    return content(d, fd)->now.size;
}

bool disk_is_directory(const struct disk *d, int fd)
{
    return fd >= 0 && fd < OPENED && d->opened[fd].node != NONE &&
           d->tree.nodes[d->opened[fd].node].directory;
}
