/* SPDX-License-Identifier: MIT */
/*
 * log_file.h - the file of a dispatcher's log (log/log.h), with a buffer before it.
 *
 * No fault of the file harms the dispatcher: the first failed write ends the log.  At the bound of
 * its size the log ends with the line "cut", and after a failed write as well, if that line can be
 * written.  A forked child has a copy of the record and writes nothing.
 *
 * Nothing flushes the buffer when the process exits or dies: the log ends with the last flush.
 */
#ifndef GPI_HOST_LOG_FILE_H
#define GPI_HOST_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gpi_log_file {
    int fd;           /* opened with O_APPEND; the owner of the record closes it */
    const char *path; /* NULL, or opened for each write, in place of fd */
    pid_t owner;
    bool over;     /* takes no more lines */
    bool told;     /* gpi_log_file_ended has returned true */
    int error;     /* errno of the write that ended the log; 0 = the log reached its bound */
    uint64_t most; /* bytes of the file; RLIMIT_FSIZE is a bound as well */
    uint64_t size; /* bytes in the file */
    size_t held;   /* bytes in the buffer */
    char buffer[64 * 1024];
};

/* Begins the log with a comment that names the library's version. */
void gpi_log_file_init(struct gpi_log_file *f, int fd, const char *path, uint64_t most);
/* Takes whole lines, 64 KiB at most: a gpi_play_write_fn of log/play.h. */
void gpi_log_file_write(void *file, const char *lines, size_t size);
void gpi_log_file_flush(struct gpi_log_file *f);
/* Adds the last line, and flushes. */
void gpi_log_file_end(struct gpi_log_file *f);

/* Why a log has ended early. */
struct gpi_log_end {
    int error;     /* errno; 0 = it reached its bound */
    uint64_t size; /* bytes before the last line */
};
/* Returns true at the first call after that. */
bool gpi_log_file_ended(struct gpi_log_file *f, struct gpi_log_end *ret);

#endif
