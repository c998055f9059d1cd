/* SPDX-License-Identifier: MIT */
/* tree.c - a directory with all that lies below it, as a command has left it. */
#include "queue/files/tree.h"

#include <errno.h>
#include <string.h>

#include "queue/files/names.h"
#include "queue/files/save.h"

/* Appends "/name" to the path.  Returns the length of before, or -errno. */
static int enter(struct gpq_tree *t, const char *name)
{
    size_t length = strlen(t->path), more = strlen(name);

    if (length + 1 + more >= sizeof(t->path))
        return -ENAMETOOLONG;
    t->path[length] = '/';
    memcpy(t->path + length + 1, name, more + 1);
    return (int)length;
}

static int sync_children(struct gpq_tree *t)
{
    struct gpq_names names;
    int ret = gpq_names_read(t->files, t->path, &names), length;

    if (ret)
        return ret;
    GPQ_EACH_NAME (&names, name) {
        length = enter(t, name);
        ret = length < 0 ? length : gpq_tree_sync(t);
        ret = ret == -ENOENT ? 0 : ret; /* another process has removed it */
        if (ret)
            break;
        t->path[length] = 0;
    }
    gpq_names_free(&names);
    return ret;
}

int gpq_tree_sync(struct gpq_tree *t)
{
    off_t size;
    int kind = t->files->look(t->files->user, t->path, &size), ret;

    if (kind < 0)
        return -errno;
    if (kind == 0)
        return gpq_sync_file(t->files, t->path);
    if (kind == 2) /* its name is the directory's */
        return 0;
    ret = sync_children(t);
    return ret ? ret : gpq_sync_directory(t->files, t->path);
}

/* ---- Removal ---- */

/* Longest path below the top that is entered. */
enum { DEPTH = 1024 };

struct removal {
    struct gpq_tree *tree;
    struct gpq_tree failed; /* its path is that of the first failure */
    size_t top;             /* length of the path of the top */
    unsigned name;          /* the next one for a directory that is moved to the top */
    bool moved;
};

/* Returns the errno of the first failure. */
static int remove_below(struct removal *r);

/* Moves a deep directory to the top, where a next round finds it.  So neither a path nor the stack
 * limits the depth of a tree. */
static int move_to_top(struct removal *r)
{
    struct gpq_tree *t = r->tree;
    char to[GPQ_PATH];
    off_t size;

    do {
        int ret = gpq_path(to, "%.*s/deep.%u", (int)r->top, t->path, r->name++);
        if (ret)
            return ret;
    } while (t->files->look(t->files->user, to, &size) >= 0);
    /* A read-only directory cannot get another parent. */
    (void)t->files->chmod(t->files->user, t->path, 0700);
    if (t->files->rename(t->files->user, t->path, to))
        return -errno;
    r->moved = true;
    return 0;
}

static int remove_children(struct removal *r)
{
    struct gpq_tree *t = r->tree;
    struct gpq_names names;
    int ret, first;

    /* Without this the names of a read-only directory cannot be removed. */
    (void)t->files->chmod(t->files->user, t->path, 0700);
    first = gpq_names_read(t->files, t->path, &names);
    if (first)
        return first;
    GPQ_EACH_NAME (&names, name) {
        int length = enter(t, name);
        ret = length < 0 ? length : remove_below(r);
        first = first ? first : ret;
        if (length >= 0)
            t->path[length] = 0;
    }
    gpq_names_free(&names);
    return first;
}

static int remove_below(struct removal *r)
{
    struct gpq_tree *t = r->tree;
    const struct gpq_files *f = t->files;
    bool deep = strlen(t->path) > r->top + DEPTH;
    off_t size;
    int kind = f->look(f->user, t->path, &size), ret = 0;

    if (kind < 0)
        ret = -errno;
    else if (kind == 1 && deep)
        ret = move_to_top(r);
    else if (kind == 1)
        ret = remove_children(r);
    if (!ret && !(kind == 1 && deep) &&
        (kind == 1 ? f->rmdir(f->user, t->path) : f->unlink(f->user, t->path)))
        ret = -errno;
    if (ret == -ENOENT) /* another process has removed it */
        return 0;
    if (ret && !r->failed.path[0])
        memcpy(r->failed.path, t->path, sizeof(t->path));
    return ret;
}

int gpq_tree_remove(struct gpq_tree *t)
{
    struct removal r = { .tree = t, .top = strlen(t->path) };
    int ret = 0;

    do {
        r.moved = false;
        r.failed.path[0] = 0;
        ret = remove_below(&r);
    } while (r.moved);
    if (ret)
        memcpy(t->path, r.failed.path, sizeof(t->path));
    return ret;
}
