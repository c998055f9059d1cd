/* SPDX-License-Identifier: MIT */
/* log.c - the log of a command. */
#include "queue/runner/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/runner/run.h"

/* Blocks are freed in steps of this size: a multiple of the block of each file system, and large
 * enough that the calls do not count. */
#define STEP (UINT64_C(256) << 10)

static void note(struct gpq_log *l, int error)
{
    if (!l->error)
        l->error = error;
}

void gpq_log_open(struct gpq_log *l, const char *path, uint64_t limit)
{
    struct stat st;

    *l = (struct gpq_log){ .limit = limit, .freed = GPQ_LOG_HEAD };
    l->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (l->fd < 0 || fstat(l->fd, &st))
        note(l, errno);
    else
        l->size = (uint64_t)st.st_size;
}

static uint64_t most(const struct gpq_log *l)
{
    return l->limit > UINT64_MAX - GPQ_LOG_HEAD ? UINT64_MAX : GPQ_LOG_HEAD + l->limit;
}

/* Frees the blocks between the first 1 MiB and the last `limit` bytes. */
static void free_blocks(struct gpq_log *l)
{
    uint64_t until;

    if (!l->limit || l->stopped || l->size <= most(l))
        return;
    until = (l->size - l->limit) / STEP * STEP;
    if (until <= l->freed)
        return;
    if (fallocate(l->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)l->freed,
                  (off_t)(until - l->freed))) {
        note(l, errno);
        l->stopped = true;
        return;
    }
    l->freed = until;
}

void gpq_log_write(struct gpq_log *l, const char *data, size_t size)
{
    l->bytes += size;
    while (size && l->fd >= 0 && !(l->stopped && l->size >= most(l))) {
        ssize_t n = write(l->fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            note(l, n < 0 ? errno : EIO);
            break;
        }
        data += n;
        size -= (size_t)n;
        l->size += (uint64_t)n;
    }
    l->lost += size;
    free_blocks(l);
}

uint64_t gpq_log_freed(const struct gpq_log *l)
{
    return l->freed - GPQ_LOG_HEAD;
}

void gpq_log_close(struct gpq_log *l)
{
    if (l->fd >= 0)
        (void)close(l->fd);
    l->fd = -1;
}
