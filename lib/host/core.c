/* SPDX-License-Identifier: MIT */
/* core.c - creates the core, and its log. */
#include "host/core.h"

#ifdef NDEBUG

int gpi_core_create(gpud_dispatcher *d, const struct gpi_sched_settings *set)
{
    d->core = gpi_sched_create(set);
    return d->core ? 0 : GPUD_ENOMEM;
}

void gpi_core_destroy(gpud_dispatcher *d)
{
    gpi_sched_destroy(d->core);
}

#else

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/log_file.h"
#include "log/play.h"
#include "os/fds.h"

#define LOG_MOST (64u << 20) /* bytes */

struct logged {
    struct gpi_play play; /* first: d->play points to it */
    struct gpi_log_file file;
    char path[PATH_MAX];
};

/* Creates the file with the first free number.  It is opened for each write: so the log uses no
 * descriptor of the process.  Returns false if it cannot. */
static bool create_file(struct logged *l, const char *directory)
{
    int fd = -1;

    for (uint32_t n = 1; fd < 0; n++) {
        (void)snprintf(l->path, sizeof l->path, "%s/%d-%u.log", directory, (int)getpid(), n);
        fd = open(l->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return false;
    }
    gpi_fd_close(&fd);
    gpi_log_file_init(&l->file, -1, l->path, LOG_MOST);
    return true;
}

/* Creates a core with a log.  Returns false if no log is wanted, or the file cannot be made. */
static bool create_logged(gpud_dispatcher *d, const struct gpi_sched_settings *set)
{
    const char *directory = getenv("GPI_SCHED_LOG");
    struct logged *l = directory && *directory ? calloc(1, sizeof *l) : NULL;

    if (l && create_file(l, directory) &&
        gpi_play_init(&l->play, set, gpi_log_file_write, &l->file)) {
        d->play = &l->play;
        d->core = l->play.core;
        return true;
    }
    free(l);
    return false;
}

int gpi_core_create(gpud_dispatcher *d, const struct gpi_sched_settings *set)
{
    if (!create_logged(d, set))
        d->core = gpi_sched_create(set);
    return d->core ? 0 : GPUD_ENOMEM;
}

void gpi_core_destroy(gpud_dispatcher *d)
{
    if (!d->play) {
        gpi_sched_destroy(d->core);
        return;
    }
    gpi_core_flush(d);
    gpi_play_fini(d->play);
    free(d->play);
}

void gpi_core_flush_log(gpud_dispatcher *d)
{
    gpi_log_file_flush(&((struct logged *)d->play)->file);
}

uint32_t gpi_core_send_logged(gpud_dispatcher *d, uint64_t now, struct gpi_sched_order *ret,
                              uint32_t most)
{
    uint32_t n = 0;

    while (n < most && gpi_play_send(d->play, now, &ret[n]))
        n++;
    return n;
}

#endif
