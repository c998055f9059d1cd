/* SPDX-License-Identifier: MIT */
/* names.c - the names in a directory, read before any of them changes. */
#include "queue/files/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns 1, which ends the list, where there is no memory. */
static int add(const char *name, void *user)
{
    struct gpq_names *n = user;
    size_t size = strlen(name) + 1;

    if (n->room - n->used < size) {
        size_t room = 2 * n->room + size + 1024;
        char *text = realloc(n->text, room);
        if (!text)
            return 1;
        n->text = text;
        n->room = room;
    }
    memcpy(n->text + n->used, name, size);
    n->used += size;
    return 0;
}

int gpq_names_read(const struct gpq_files *f, const char *path, struct gpq_names *ret)
{
    struct gpq_names n = { 0 };
    int listed = f->list(f->user, path, add, &n);

    if (listed) {
        listed = listed > 0 ? -ENOMEM : -errno;
        gpq_names_free(&n);
        return listed;
    }
    *ret = n;
    return 0;
}

void gpq_names_free(struct gpq_names *n)
{
    free(n->text);
    *n = (struct gpq_names){ 0 };
}

const char *gpq_names_next(const struct gpq_names *n, const char *name)
{
    const char *next = name ? name + strlen(name) + 1 : n->text;

    return next && next < n->text + n->used ? next : NULL;
}
