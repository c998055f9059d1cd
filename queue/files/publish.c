/* SPDX-License-Identifier: MIT */
/* publish.c - renames an attempt's outputs to out/ID, where readers find them. */
#include "queue/files/publish.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "queue/files/fault.h"
#include "queue/files/names.h"
#include "queue/files/numbers.h"
#include "queue/files/out.h"
#include "queue/files/save.h"

/* Behind an ID in work/: outputs of an older round, and those of a task that the store forgets. */
#define OLD ".old"
#define GONE ".gone"

static int exists(const struct gpq_files *f, const char *path)
{
    off_t size;
    return f->look(f->user, path, &size) >= 0;
}

/* Renames a directory; 0 or -errno.  A read-only one cannot get another parent. */
static int move(const struct gpq_files *f, const char *from, const char *to)
{
    if (!f->rename(f->user, from, to))
        return 0;
    if (errno != EACCES || f->chmod(f->user, from, 0700))
        return -errno;
    return f->rename(f->user, from, to) ? -errno : 0;
}

/* The path of work/ID with a suffix. */
static int beside(char path[GPQ_PATH], const char *state, uint64_t task, const char *suffix)
{
    return gpq_path(path, "%s/work/%" PRIu32 ".%" PRIu32 "%s", state, GPQ_BATCH_OF(task),
                    GPQ_NUMBER_OF(task), suffix);
}

/* Makes all renames durable. */
static int sync_both(const struct gpq_files *f, const char *state, struct gpq_error *e)
{
    static const char *const folders[] = { "out", "work" };
    char path[GPQ_PATH];

    for (size_t i = 0; i < 2; i++) {
        int ret = gpq_path(path, "%s/%s", state, folders[i]);
        if (!ret)
            ret = gpq_sync_directory(f, path);
        if (ret)
            return gpq_fault(e, ret, "%s/%s: sync", state, folders[i]);
    }
    return 0;
}

/* ---- One task ---- */

/* The two renames.  If the second fails, the older outputs go back. */
static int put(const struct gpq_files *f, const char *state, uint64_t task, const char *work,
               const char *out, struct gpq_error *e)
{
    char old[GPQ_PATH];
    int aside = exists(f, out), ret = 0;

    if (aside) {
        ret = gpq_out_remove(f, state, task, OLD, e);
        if (ret)
            return ret;
        ret = beside(old, state, task, OLD);
        if (!ret)
            ret = move(f, out, old);
    }
    if (ret)
        return gpq_fault_of_one(e, ret, "%s: rename", out);
    ret = move(f, work, out);
    if (ret && aside)
        (void)f->rename(f->user, old, out); /* where this fails, too, the recovery does it */
    return ret ? gpq_fault_of_one(e, ret, "%s: rename", work) : 0;
}

int gpq_out_publish(const struct gpq_files *f, const char *state, uint64_t task, uint32_t attempt,
                    struct gpq_error *e)
{
    char work[GPQ_PATH], out[GPQ_PATH];
    off_t size;
    int ret = gpq_out_work_path(work, state, task, attempt), kind;

    if (!ret)
        ret = gpq_out_path(out, state, task);
    if (ret)
        return gpq_fault(e, ret, "%s/work", state);
    kind = f->look(f->user, work, &size);
    if (kind == 0 || kind == 2)
        return gpq_out_drop(f, state, task, attempt, e);
    if (kind < 0 && (errno != ENOENT || !exists(f, out)))
        return gpq_fault_of_one(e, errno, "%s", work);
    if (kind == 1)
        ret = put(f, state, task, work, out, e);
    if (!ret)
        ret = sync_both(f, state, e);
    /* Only now: else a power cut could bring back out/ID with a part of the older outputs. */
    return ret ? ret : gpq_out_remove(f, state, task, OLD, e);
}

/* Whether there are no outputs, nor a rest of some: those of a task that failed. */
static int has_none(const struct gpq_files *f, const char *state, uint64_t task)
{
    char out[GPQ_PATH], old[GPQ_PATH], gone[GPQ_PATH];

    return !gpq_out_path(out, state, task) && !beside(old, state, task, OLD) &&
           !beside(gone, state, task, GONE) && !exists(f, out) && !exists(f, old) &&
           !exists(f, gone);
}

int gpq_out_forget(const struct gpq_files *f, const char *state, uint64_t task, struct gpq_error *e)
{
    char out[GPQ_PATH], gone[GPQ_PATH];

    if (has_none(f, state, task))
        return 0;
    /* Without out/ID, the recovery would take a rest of older outputs for it. */
    int ret = gpq_out_remove(f, state, task, OLD, e);

    if (!ret)
        ret = gpq_out_remove(f, state, task, GONE, e);
    if (!ret)
        ret = sync_both(f, state, e);
    if (ret)
        return ret;
    ret = gpq_out_path(out, state, task);
    if (!ret)
        ret = beside(gone, state, task, GONE);
    if (!ret && exists(f, out))
        ret = move(f, out, gone);
    if (ret)
        return gpq_fault(e, ret, "%s: rename", out);
    ret = sync_both(f, state, e);
    return ret ? ret : gpq_out_remove(f, state, task, GONE, e);
}

/* ---- All tasks ---- */

static int recover_attempt(const struct gpq_files *f, const char *state, const char *name,
                           gpq_out_fn fn, void *user, struct gpq_error *e)
{
    uint32_t n[3];

    if (!gpq_numbers_read(name, "..", n, 3, NULL))
        return 0;
    switch (fn(GPQ_TASK(n[0], n[1]), n[2], user)) {
    case GPQ_OUT_PUBLISH:
        return gpq_out_publish(f, state, GPQ_TASK(n[0], n[1]), n[2], e);
    case GPQ_OUT_DROP:
        return gpq_out_drop(f, state, GPQ_TASK(n[0], n[1]), n[2], e);
    default:
        return 0;
    }
}

static int recover_rest(const struct gpq_files *f, const char *state, const char *name,
                        struct gpq_error *e)
{
    char old[GPQ_PATH], out[GPQ_PATH];
    const char *suffix;
    uint32_t n[2];
    int ret;

    if (!gpq_numbers_read(name, ".", n, 2, &suffix) ||
        (strcmp(suffix, OLD) && strcmp(suffix, GONE)))
        return 0;
    ret = beside(old, state, GPQ_TASK(n[0], n[1]), suffix);
    if (!ret)
        ret = gpq_out_path(out, state, GPQ_TASK(n[0], n[1]));
    if (!ret && (!strcmp(suffix, GONE) || exists(f, out)))
        return gpq_out_remove(f, state, GPQ_TASK(n[0], n[1]), suffix, e);
    /* The crash came between the two renames, and the newer outputs are not wanted any more. */
    if (!ret)
        ret = move(f, old, out);
    return ret ? gpq_fault_of_one(e, ret, "%s: rename", old) : 0;
}

int gpq_out_recover(const struct gpq_files *f, const char *state, gpq_out_fn fn, void *user,
                    struct gpq_error *e)
{
    struct gpq_error later;
    struct gpq_names names = { 0 };
    char work[GPQ_PATH];
    int ret = gpq_path(work, "%s/work", state), first;

    if (!ret)
        ret = gpq_names_read(f, work, &names);
    if (ret)
        return gpq_fault(e, ret, "%s/work", state);
    first = sync_both(f, state, e);
    GPQ_EACH_NAME (&names, name) {
        ret = recover_attempt(f, state, name, fn, user, &later);
        first = gpq_fault_worse(e, first, &later, ret);
    }
    GPQ_EACH_NAME (&names, name) {
        ret = recover_rest(f, state, name, &later);
        first = gpq_fault_worse(e, first, &later, ret);
    }
    gpq_names_free(&names);
    ret = sync_both(f, state, &later);
    return gpq_fault_worse(e, first, &later, ret);
}
