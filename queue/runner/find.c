/* SPDX-License-Identifier: MIT */
/* find.c - what a new agent does with a run of which the store knows. */
#include "queue/runner/find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/files/lock.h"
#include "queue/files/save.h"
#include "queue/runner/process.h"

const char *gpq_found_text(uint32_t state)
{
#define TEXT(name, text) text,
    static const char *const texts[] = { GPQ_FOUND_MAP(TEXT) };
#undef TEXT

    return state < GPQ_FOUND_STATES ? texts[state] : "?";
}

enum gpq_found_state gpq_run_judge(const struct gpq_claimed *c, const struct gpq_record *record,
                                   int fault, bool locked, const char *boot)
{
    const bool same_boot = !strcmp(c->boot, boot);
    const bool ours = record->has_head && gpq_run_same(&record->id, &c->id);

    if (locked && same_boot)
        return GPQ_FOUND_RUNNING;
    if (!fault && ours && record->has_end)
        return GPQ_FOUND_ENDED;
    if (!same_boot)
        return GPQ_FOUND_LOST;
    if (fault == -ENOENT || fault == -ENODATA) /* the runner refuses a record without a head */
        return GPQ_FOUND_NEVER_STARTED;
    if (fault || !ours)
        return GPQ_FOUND_LOST;
    if (!record->has_start)
        return GPQ_FOUND_NEVER_STARTED;
    return record->has_stop ? GPQ_FOUND_LOST : GPQ_FOUND_CRASHED;
}

int gpq_run_look(const char *state, const struct gpq_claimed *c, const char *boot,
                 struct gpq_found *ret)
{
    char path[GPQ_PATH];
    void *data;
    size_t size;
    int fault = gpq_run_path(path, state, &c->id), locked;

    if (fault)
        return fault;
    *ret = (struct gpq_found){ 0 };
    /* In this order: the record of a lock that is free does not change any more. */
    locked = gpq_lock_check(path);
    if (locked && locked != -EBUSY)
        return locked;
    fault = gpq_read_whole(&gpq_system_files, path, GPQ_RECORD_MOST, &data, &size);
    if (!fault) {
        ret->fault = gpq_record_read(data, size, &ret->record);
        free(data);
    } else if (fault == -ENOENT || fault == -EFBIG) {
        ret->fault = fault;
    } else {
        return fault;
    }
    ret->state = gpq_run_judge(c, &ret->record, ret->fault, locked != 0, boot);
    return 0;
}

int gpq_run_adopt(const char *state, const struct gpq_found *found, int *ret_pidfd)
{
    const struct gpq_record *r = &found->record;
    char path[GPQ_PATH];
    int pidfd, ret;

    if (!r->has_runner)
        return -EAGAIN;
    ret = gpq_run_path(path, state, &r->id);
    if (ret)
        return ret;
    pidfd = gpq_process_open(r->runner.pid, r->runner.ticks);
    if (pidfd < 0)
        return pidfd;
    ret = gpq_lock_check(path);
    if (ret == -EBUSY) {
        *ret_pidfd = pidfd;
        return 0;
    }
    (void)close(pidfd);
    return ret ? ret : -ESRCH;
}
