/* SPDX-License-Identifier: MIT */
/* core.c - creates the core, and writes its log in builds with assertions. */
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
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/fds.h"
#include "log/play.h"

#define LOG_MOST (64u << 20) /* bytes */
#define LOG_BUFFER (64u << 10)
#define CUT "cut\n"

/* ---- the file ---- */

/* The file is opened for each write: so the log uses no descriptor of the process, and a program
 * that the process executes inherits none. */
struct log_file {
    pid_t owner; /* a forked child also has the stream, and may flush it */
    size_t size;
    bool over;
    char path[PATH_MAX];
};

/* exit() flushes all streams without their locks, while a thread of a dispatcher may write a line.
 * So the log of a dispatcher that still exists ends with its last whole turn. */
static atomic_bool exits;

__attribute__((destructor)) static void end_logs(void)
{
    atomic_store(&exits, true);
}

/* Returns the size of the whole lines within the first `most` bytes. */
static size_t whole_lines(const char *text, size_t size, size_t most)
{
    const char *end = memrchr(text, '\n', size < most ? size : most);

    return end ? (size_t)(end - text) + 1 : 0;
}

static bool append(const struct log_file *f, const char *text, size_t size)
{
    int fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    bool written;

    if (fd < 0)
        return false;
    written = write(fd, text, size) == (ssize_t)size;
    gpi_fd_close(&fd);
    return written;
}

/* Returns the most bytes that the file may have.  A write beyond RLIMIT_FSIZE raises SIGXFSZ. */
static size_t most_bytes(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur > LOG_MOST)
        return LOG_MOST;
    return (size_t)limit.rlim_cur;
}

/* Writes the lines that have room, and "cut" as the last one. */
static void cut_log(const struct log_file *f, const char *text, size_t size, size_t most)
{
    const size_t left = most - f->size - (sizeof CUT - 1);

    if (f->size + sizeof CUT - 1 <= most && append(f, text, whole_lines(text, size, left)))
        (void)append(f, CUT, sizeof CUT - 1);
}

/* An error ends the log, and has no effect on the dispatcher. */
static ssize_t write_log(void *user, const char *text, size_t size)
{
    struct log_file *f = user;
    const int kept = errno;
    size_t most;

    if (f->over || atomic_load(&exits) || getpid() != f->owner)
        return 0;
    most = most_bytes();
    f->over = f->size + size + sizeof CUT > most;
    if (f->over)
        cut_log(f, text, size, most);
    else
        f->over = !append(f, text, size);
    f->size += size;
    errno = kept;
    return f->over ? 0 : (ssize_t)size;
}

/* Creates the file with the first free number.  Returns false if it cannot. */
static bool create_file(struct log_file *f, const char *directory)
{
    int fd = -1;

    f->owner = getpid();
    for (uint32_t n = 1; fd < 0; n++) {
        (void)snprintf(f->path, sizeof f->path, "%s/%d-%u.log", directory, (int)f->owner, n);
        fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return false;
    }
    gpi_fd_close(&fd);
    return true;
}

static FILE *open_log(struct log_file *f, const char *directory)
{
    FILE *out = NULL;

    if (create_file(f, directory))
        out = fopencookie(f, "w", (cookie_io_functions_t){ .write = write_log });
    if (out)
        (void)setvbuf(out, NULL, _IOFBF, LOG_BUFFER);
    return out;
}

/* ---- the core ---- */

struct logged {
    struct gpi_play play; /* first: d->play points to it */
    struct log_file file;
};

/* Creates a core with a log.  Returns false if no log is wanted, or the file cannot be made. */
static bool create_logged(gpud_dispatcher *d, const struct gpi_sched_settings *set)
{
    const char *directory = getenv("GPI_SCHED_LOG");
    struct logged *l = directory && *directory ? calloc(1, sizeof *l) : NULL;
    FILE *out = l ? open_log(&l->file, directory) : NULL;

    if (out && gpi_play_init(&l->play, set, out)) {
        d->play = &l->play;
        d->core = l->play.core;
        return true;
    }
    if (out)
        (void)fclose(out);
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
    FILE *out = d->play ? d->play->out : NULL;

    if (!d->play) {
        gpi_sched_destroy(d->core);
        return;
    }
    gpi_play_fini(d->play);
    (void)fclose(out);
    free(d->play);
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
