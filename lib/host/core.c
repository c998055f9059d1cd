/* SPDX-License-Identifier: MIT */
/* core.c - creates the core, and its log. */
#include "host/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/log_file.h"
#include "log/play.h"

#define LOG_MOST (1ull << 30) /* bytes: 3 to 5 million tasks */

struct logged {
    struct gpi_play play; /* first: d->play points to it */
    struct gpi_log_file file;
    char *path; /* the caller has not opened the file: a test's log */
};

/* ---- logs of tests ---- */

#ifndef NDEBUG
#include <errno.h>
#include <fcntl.h>

#include "os/fds.h"

#define TEST_LOG_MOST (64u << 20) /* bytes */

/* Creates the file of the first free number.  Returns its path, which the caller frees, or NULL:
 * without the variable, or if the file cannot be created. */
static char *create_test_log(void)
{
    const char *directory = getenv("GPI_SCHED_LOG");
    char *path = NULL;
    int fd = -1;

    if (!directory || !*directory)
        return NULL;
    for (uint32_t n = 1; fd < 0; n++) {
        free(path);
        if (asprintf(&path, "%s/%d-%u.log", directory, (int)getpid(), n) < 0)
            return NULL;
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST) {
            free(path);
            return NULL;
        }
    }
    gpi_fd_close(&fd);
    return path;
}
#else
#define TEST_LOG_MOST 0u

static char *create_test_log(void)
{
    return NULL;
}
#endif

/* ---- the core ---- */

static struct logged *make_log(int fd, char *path)
{
    struct logged *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->path = path;
    gpi_log_file_init(&l->file, fd, path, path ? TEST_LOG_MOST : LOG_MOST);
    return l;
}

/* Where and when: the times of the log are those of CLOCK_MONOTONIC. */
static void note_origin(struct gpi_play *p)
{
    char text[256] = "";
    struct timespec wall;
    const uint64_t now = gpi_now();

    (void)clock_gettime(CLOCK_REALTIME, &wall);
    (void)gethostname(text, sizeof text - 1);
    gpi_play_note(p, "host", 0, "name", text);
    (void)snprintf(text, sizeof text, "%lld%09ld", (long long)wall.tv_sec, wall.tv_nsec);
    gpi_play_note(p, "clock", now, "wall", text);
}

static int create_logged(gpud_dispatcher *d, const struct gpi_sched_settings *set, char *path)
{
    struct logged *l = make_log(d->log_fd, path);

    if (!l || !gpi_play_init(&l->play, set, gpi_log_file_write, &l->file)) {
        free(l);
        free(path);
        return GPUD_ENOMEM;
    }
    d->play = &l->play;
    d->core = l->play.core;
    note_origin(d->play);
    return 0;
}

int gpi_core_create(gpud_dispatcher *d, const struct gpi_sched_settings *set)
{
    char *path = d->log_fd < 0 ? create_test_log() : NULL;

    if (d->log_fd >= 0 || path)
        return create_logged(d, set, path);
    d->core = gpi_sched_create(set);
    return d->core ? 0 : GPUD_ENOMEM;
}

void gpi_core_destroy(gpud_dispatcher *d)
{
    struct logged *l = (struct logged *)d->play;

    if (!l) {
        gpi_sched_destroy(d->core);
        return;
    }
    gpi_log_file_end(&l->file);
    gpi_play_fini(&l->play);
    free(l->path);
    free(l);
}

bool gpi_core_flush_log(gpud_dispatcher *d, struct gpi_log_end *ret)
{
    struct logged *l = (struct logged *)d->play;

    gpi_log_file_flush(&l->file);
    return !l->path && gpi_log_file_ended(&l->file, ret);
}

bool gpi_core_submit_logged(gpud_dispatcher *d, uint32_t task, const struct gpi_sched_task *what)
{
    return gpi_play_submit(d->play, task, what);
}

void gpi_core_success_logged(gpud_dispatcher *d, uint64_t now, uint32_t task, uint64_t run)
{
    gpi_play_success(d->play, now, task, run);
}

uint32_t gpi_core_send_logged(gpud_dispatcher *d, uint64_t now, struct gpi_sched_order *ret,
                              uint32_t most)
{
    uint32_t n = 0;

    while (n < most && gpi_play_send(d->play, now, &ret[n]))
        n++;
    return n;
}
