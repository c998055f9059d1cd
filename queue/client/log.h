/* SPDX-License-Identifier: MIT */
/* log.h - the output of a command, as the runner has written it. */
#ifndef GPQ_CLIENT_LOG_H
#define GPQ_CLIENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/files/files.h"

/*
 * A log that is printed as it grows.  A part that the runner has dropped is said.  In a file or a
 * pipe, the part of a line before its last carriage return is left out.
 */
struct gpq_log {
    char path[GPQ_PATH];
    int fd;        /* -1: not there yet */
    uint64_t read; /* bytes */
    bool raw;      /* to a terminal: bytes as they are */
    char *line;    /* the present one, if not raw */
    size_t used, room;
    bool returned; /* a carriage return was the last byte */
};

void gpq_log_open(struct gpq_log *l, const char *state, const char *task, int64_t attempt);
/* Prints what has come since the last call.  0, or a negative errno: the file cannot be opened. */
int gpq_log_print(struct gpq_log *l);
/* Prints the rest of a line without a newline, and closes. */
void gpq_log_close(struct gpq_log *l);

/* The last line of a log that is not empty, with its control characters; "" without one. */
void gpq_log_last_line(const char *state, const char *task, int64_t attempt, char *ret,
                       size_t size);

#endif
