/* SPDX-License-Identifier: MIT */
#include "host/log_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gpudispatch/version.h"
#include "log/log.h"
#include "os/fds.h"

#define CUT "cut\n"
#define CUT_SIZE (sizeof CUT - 1)

/* Returns 0 or an errno. */
static int write_all(int fd, const char *text, size_t size)
{
    while (size) {
        const ssize_t n = write(fd, text, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        text += n;
        size -= (size_t)n;
    }
    return 0;
}

/* A write that fails may have written a part.  The line "cut" replaces it: on a full disk that part
 * has made room. */
static int append_to(int fd, const struct gpi_log_file *f, const char *text, size_t size)
{
    const int error = write_all(fd, text, size);

    if (error && ftruncate(fd, (off_t)f->size) == 0)
        (void)write_all(fd, CUT, CUT_SIZE);
    return error;
}

/* Returns 0 or an errno. */
static int append(const struct gpi_log_file *f, const char *text, size_t size)
{
    int fd, error;

    if (!f->path)
        return append_to(f->fd, f, text, size);
    fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    error = fd < 0 ? errno : append_to(fd, f, text, size);
    gpi_fd_close(&fd);
    return error;
}

/* A write beyond RLIMIT_FSIZE would raise SIGXFSZ. */
static uint64_t most_bytes(const struct gpi_log_file *f)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < f->most ? limit.rlim_cur
                                                                          : f->most;
}

/* Keeps the whole lines of the buffer that have room, and adds "cut". */
static void cut(struct gpi_log_file *f, uint64_t most)
{
    const uint64_t room = most > f->size + CUT_SIZE ? most - f->size - CUT_SIZE : 0;
    const char *end = memrchr(f->buffer, '\n', f->held < room ? f->held : (size_t)room);

    f->over = true;
    f->held = end ? (size_t)(end - f->buffer) + 1 : 0;
    if (f->size + CUT_SIZE > most)
        return;
    assert(f->held + CUT_SIZE <= sizeof f->buffer);
    memcpy(f->buffer + f->held, CUT, CUT_SIZE);
    f->error = append(f, f->buffer, f->held + CUT_SIZE);
    f->size += f->error ? 0 : f->held;
}

void gpi_log_file_flush(struct gpi_log_file *f)
{
    const int kept = errno;
    uint64_t most;

    if (!f->held || f->over || getpid() != f->owner)
        return;
    most = most_bytes(f);
    if (f->size + f->held + CUT_SIZE > most) {
        cut(f, most);
    } else {
        f->error = append(f, f->buffer, f->held);
        f->over = f->error != 0;
        f->size += f->over ? 0 : f->held;
    }
    f->held = 0;
    errno = kept;
}

void gpi_log_file_write(void *file, const char *lines, size_t size)
{
    struct gpi_log_file *f = file;

    /* the buffer has room for "cut", too */
    if (f->held + size + CUT_SIZE > sizeof f->buffer)
        gpi_log_file_flush(f);
    if (f->over || f->held + size > sizeof f->buffer)
        return;
    memcpy(f->buffer + f->held, lines, size);
    f->held += size;
}

void gpi_log_file_init(struct gpi_log_file *f, int fd, const char *path, uint64_t most)
{
    char first[128];
    const int n = snprintf(first, sizeof first, "%s, libgpudispatch %d.%d.%d\n", GPI_LOG_HEADING,
                           GPUD_VERSION_MAJOR, GPUD_VERSION_MINOR, GPUD_VERSION_PATCH);

    f->fd = fd;
    f->path = path;
    f->owner = getpid();
    f->over = f->told = false;
    f->error = 0;
    f->most = most;
    f->size = f->held = 0;
    gpi_log_file_write(f, first, (size_t)n);
}

void gpi_log_file_end(struct gpi_log_file *f)
{
    gpi_log_file_write(f, GPI_LOG_ENDING "\n", sizeof GPI_LOG_ENDING);
    gpi_log_file_flush(f);
}

bool gpi_log_file_ended(struct gpi_log_file *f, struct gpi_log_end *ret)
{
    if (!f->over || f->told)
        return false;
    f->told = true;
    *ret = (struct gpi_log_end){ f->error, f->size };
    return true;
}
