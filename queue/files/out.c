/* SPDX-License-Identifier: MIT */
/* out.c - the directory of an attempt's outputs: fresh, then whole and durable. */
#include "queue/files/out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "queue/files/fault.h"
#include "queue/files/save.h"
#include "queue/files/tree.h"

#define ID "%" PRIu32 ".%" PRIu32
#define ID_OF(task) GPQ_BATCH_OF(task), GPQ_NUMBER_OF(task)

int gpq_out_work_path(char path[GPQ_PATH], const char *state, uint64_t task, uint32_t attempt)
{
    return gpq_path(path, "%s/work/" ID ".%" PRIu32, state, ID_OF(task), attempt);
}

int gpq_out_path(char path[GPQ_PATH], const char *state, uint64_t task)
{
    return gpq_path(path, "%s/out/" ID, state, ID_OF(task));
}

int gpq_out_make(const struct gpq_files *f, const char *state, uint64_t task, uint32_t attempt,
                 struct gpq_error *e)
{
    char path[GPQ_PATH];
    int ret = gpq_out_work_path(path, state, task, attempt);

    if (ret)
        return gpq_fault(e, ret, "%s/work", state);
    ret = gpq_out_drop(f, state, task, attempt, e);
    if (ret)
        return ret;
    return f->mkdir(f->user, path, 0700) ? gpq_fault(e, errno, "%s: mkdir", path) : 0;
}

int gpq_out_sync(const struct gpq_files *f, const char *state, uint64_t task, uint32_t attempt,
                 struct gpq_error *e)
{
    struct gpq_tree t = { .files = f };
    char work[GPQ_PATH];
    off_t size;
    int ret = gpq_out_work_path(t.path, state, task, attempt), kind = 1;

    if (!ret)
        kind = f->look(f->user, t.path, &size);
    if (!ret && kind != 1)
        ret = kind < 0 ? -errno : -ENOTDIR;
    if (!ret)
        ret = gpq_tree_sync(&t);
    if (ret)
        return gpq_fault(e, ret, "%s: sync", t.path);
    /* Its own name in work/, too: after the commit of SUCCESS it must be there. */
    ret = gpq_path(work, "%s/work", state);
    if (!ret)
        ret = gpq_sync_directory(f, work);
    return ret ? gpq_fault(e, ret, "%s/work: sync", state) : 0;
}

int gpq_out_drop(const struct gpq_files *f, const char *state, uint64_t task, uint32_t attempt,
                 struct gpq_error *e)
{
    char suffix[16];

    (void)snprintf(suffix, sizeof(suffix), ".%" PRIu32, attempt);
    return gpq_out_remove(f, state, task, suffix, e);
}

int gpq_out_remove(const struct gpq_files *f, const char *state, uint64_t task, const char *suffix,
                   struct gpq_error *e)
{
    struct gpq_tree t = { .files = f };
    int ret = gpq_path(t.path, "%s/work/" ID "%s", state, ID_OF(task), suffix);

    if (!ret)
        ret = gpq_tree_remove(&t);
    return ret ? gpq_fault_of_one(e, ret, "%s: remove", t.path) : 0;
}
