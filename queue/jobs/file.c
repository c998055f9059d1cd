/* SPDX-License-Identifier: MIT */
/* file.c - a whole file of jobs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/jobs/reader.h"

enum { PIECE = 256 * 1024 };

static int read_all(int fd, const char *path, struct gpq_jobs *r, struct gpq_error *e)
{
    char *piece = malloc(PIECE);
    ssize_t n = -1;

    if (!piece)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for a file of jobs");
    do {
        n = read(fd, piece, PIECE);
        if (n > 0) /* the end reports faults */
            (void)gpq_jobs_feed(r, piece, (size_t)n, e);
    } while (!r->broken && (n > 0 || (n < 0 && errno == EINTR)));
    int code = n < 0 ? gpq_fail(e, GPQ_EINVAL, "cannot read %s: %s", path, strerror(errno)) : 0;
    free(piece);
    return code;
}

int gpq_jobs_file(const char *path, const struct gpq_jobs_how *how, gpq_job_fn fn, void *user,
                  struct gpq_jobs_counts *ret, struct gpq_error *e)
{
    bool is_input = !strcmp(path, "-");
    int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct gpq_jobs *r;

    if (fd < 0)
        return gpq_fail(e, GPQ_EINVAL, "cannot read %s: %s", path, strerror(errno));
    int code = gpq_jobs_open(how, fn, user, &r, e);
    if (code == 0) {
        code = read_all(fd, is_input ? "the standard input" : path, r, e);
        if (code == 0)
            code = gpq_jobs_end(r, ret, e);
        gpq_jobs_close(r);
    }
    if (!is_input)
        (void)close(fd);
    return code;
}
