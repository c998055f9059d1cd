/* SPDX-License-Identifier: MIT */
/* log.h - the log of a command: bounded, and never in the way of the command (run.h). */
#ifndef GPQ_RUNNER_LOG_H
#define GPQ_RUNNER_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpq_log {
    int fd;         /* -1: it could not be opened; all bytes are lost */
    uint64_t limit; /* 0 = none */
    uint64_t size;  /* of the file */
    uint64_t freed; /* blocks behind GPQ_LOG_HEAD up to here are freed */
    bool stopped;   /* the file system frees no blocks: at the limit the log ends */
    /* For the end record. */
    uint64_t bytes, lost;
    int error;
};

void gpq_log_open(struct gpq_log *l, const char *path, uint64_t limit);
void gpq_log_write(struct gpq_log *l, const char *data, size_t size);
uint64_t gpq_log_freed(const struct gpq_log *l);
void gpq_log_close(struct gpq_log *l);

#endif
