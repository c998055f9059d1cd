/* SPDX-License-Identifier: MIT */
/* results.c - results that are too large for the store, as files results/BATCH/NUMBER.ATTEMPT. */
#include "queue/files/results.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/files/fault.h"
#include "queue/files/names.h"
#include "queue/files/numbers.h"
#include "queue/files/save.h"

/* The largest result that a reader takes into memory: more than any that a worker sends. */
#define READ_LIMIT ((size_t)4 << 30)

/* Makes results/BATCH.  The sweep at open has made those of before durable. */
static int make_directory(const struct gpq_files *f, const char *state, const char *directory)
{
    char results[GPQ_PATH];

    if (f->mkdir(f->user, directory, 0700))
        return errno == EEXIST ? 0 : -errno;
    int ret = gpq_path(results, "%s/results", state);
    if (!ret)
        ret = gpq_sync_directory(f, results);
    if (ret) /* the next save must not take it for durable */
        (void)f->rmdir(f->user, directory);
    return ret;
}

void gpq_result_name(char ret[GPQ_RESULT_NAME], uint64_t task, uint32_t attempt)
{
    (void)snprintf(ret, GPQ_RESULT_NAME, "%" PRIu32 "/%" PRIu32 ".%" PRIu32, GPQ_BATCH_OF(task),
                   GPQ_NUMBER_OF(task), attempt);
}

int gpq_result_save(const struct gpq_files *f, const char *state, uint64_t task, uint32_t attempt,
                    struct gpq_bytes data, char ret_name[GPQ_RESULT_NAME], struct gpq_error *e)
{
    char directory[GPQ_PATH], name[GPQ_RESULT_NAME];
    int ret = gpq_path(directory, "%s/results/%" PRIu32, state, GPQ_BATCH_OF(task));

    gpq_result_name(name, task, attempt);
    if (!ret)
        ret = make_directory(f, state, directory);
    if (!ret)
        ret = gpq_save(f, directory, strchr(name, '/') + 1, data.data, data.size);
    if (ret)
        return gpq_fault(e, ret, "%s/results/%s: write %zu bytes", state, name, data.size);
    memcpy(ret_name, name, sizeof(name));
    return 0;
}

int gpq_result_read(const struct gpq_files *f, const char *state, const char *name,
                    struct gpq_bytes *ret, struct gpq_error *e)
{
    char path[GPQ_PATH];
    void *data;
    int failed = gpq_path(path, "%s/results/%s", state, name);

    if (!failed)
        failed = gpq_read_whole(f, path, READ_LIMIT, &data, &ret->size);
    if (failed)
        return gpq_fault(e, failed, "%s/results/%s: read", state, name);
    ret->data = data;
    return 0;
}

int gpq_result_drop(const struct gpq_files *f, const char *state, const char *name,
                    struct gpq_error *e)
{
    char path[GPQ_PATH];
    int ret = gpq_path(path, "%s/results/%s", state, name);

    if (!ret && f->unlink(f->user, path) && errno != ENOENT)
        ret = -errno;
    return ret ? gpq_fault_of_one(e, ret, "%s/results/%s: remove", state, name) : 0;
}

/* ---- The sweep ---- */

struct sweep {
    const struct gpq_files *f;
    const char *state;
    gpq_result_used_fn used;
    void *user;
    struct gpq_error *e;
    int first; /* the failure to return */
};

static void note_failure(struct sweep *s, const struct gpq_error *e, int code)
{
    s->first = gpq_fault_worse(s->e, s->first, e, code);
}

/* One file of a batch: its name is "BATCH/NUMBER.ATTEMPT", or the same with more behind it. */
static int sweep_file(const struct sweep *s, const char *name, struct gpq_error *e)
{
    const char *rest;
    uint32_t n[3];

    if (!gpq_numbers_read(name, "/.", n, 3, &rest))
        return 0;
    if (!*rest) {
        int used = s->used(GPQ_TASK(n[0], n[1]), n[2], name, s->user);
        if (used)
            return used < 0
                       ? gpq_fail(e, used, "results/%s: not found out whether it is used", name)
                       : 0;
    } else if (!gpq_is_temporary(rest - 1)) {
        return 0;
    }
    return gpq_result_drop(s->f, s->state, name, e);
}

static int sweep_batch(struct sweep *s, const char *batch, struct gpq_error *e)
{
    struct gpq_names names = { 0 };
    char path[GPQ_PATH], name[GPQ_PATH];
    int ret = gpq_path(path, "%s/results/%s", s->state, batch);

    if (!ret)
        ret = gpq_names_read(s->f, path, &names);
    if (ret)
        return gpq_fault_of_one(e, ret, "%s/results/%s", s->state, batch);
    GPQ_EACH_NAME (&names, file) {
        if (!gpq_path(name, "%s/%s", batch, file))
            note_failure(s, e, sweep_file(s, name, e));
    }
    gpq_names_free(&names);
    if (s->f->rmdir(s->f->user, path) && errno != ENOTEMPTY && errno != EEXIST)
        ret = gpq_fault_of_one(e, errno, "%s: rmdir", path);
    return ret;
}

int gpq_results_sweep(const struct gpq_files *f, const char *state, gpq_result_used_fn used,
                      void *user, struct gpq_error *e)
{
    struct sweep s = { f, state, used, user, e, 0 };
    struct gpq_names names = { 0 };
    struct gpq_error later;
    char results[GPQ_PATH];
    uint32_t batch;
    int ret = gpq_path(results, "%s/results", state);

    if (!ret)
        ret = gpq_names_read(f, results, &names);
    if (ret)
        return gpq_fault(e, ret, "%s/results", state);
    GPQ_EACH_NAME (&names, name) {
        if (gpq_numbers_read(name, "", &batch, 1, NULL))
            note_failure(&s, &later, sweep_batch(&s, name, &later));
    }
    gpq_names_free(&names);
    ret = gpq_sync_directory(f, results);
    if (ret)
        note_failure(&s, &later, gpq_fault(&later, ret, "%s: sync", results));
    return s.first;
}
