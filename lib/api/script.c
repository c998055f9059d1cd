/* SPDX-License-Identifier: MIT */
#include "api/script.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "device/fake/script.h"
#include "os/fds.h"
#include "wire/reading.h"

/* For `what`, or for an errno, whose words follow by themselves. */
static int unusable(struct gpud_error *e, int err, const char *name, const char *what)
{
    return gpi_fail(e, GPUD_EDEVICE, err, "devices", "script %.120s%s%s", name, what ? ": " : "",
                    what ? what : "");
}

/* All that is in it, zero-terminated; an errno. */
static int read_all(int fd, char *to, size_t room, size_t *ret_n)
{
    size_t n = 0;

    while (n < room) {
        ssize_t r = read(fd, to + n, room - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return errno;
        if (r == 0)
            break;
        n += (size_t)r;
    }
    *ret_n = n;
    return 0;
}

static int take(char *text, int fd, const char *name, struct gpud_error *e)
{
    struct stat st;
    size_t n = 0;
    int err;

    if (fstat(fd, &st))
        return unusable(e, errno, name, NULL);
    if (!S_ISREG(st.st_mode))
        return unusable(e, 0, name, "is not a regular file");
    err = read_all(fd, text, GPI_SCRIPT_MAX + 1, &n);
    if (err)
        return unusable(e, err, name, NULL);
    if (n > GPI_SCRIPT_MAX)
        return unusable(e, 0, name, "is too long, the maximum is 64 KiB");
    if (memchr(text, 0, n))
        return unusable(e, 0, name, "is not a text: it contains a zero byte");
    text[n] = 0;
    return 0;
}

static int check(const char *text, uint32_t devices, struct gpud_error *e)
{
    struct gpi_script *s = NULL;
    int r = gpi_script_parse(&s, text, devices, e);

    if (r == 0)
        gpi_script_free(s);
    return r;
}

int gpi_script_load(char **ret, const char *name, size_t length, uint32_t devices,
                    struct gpud_error *e)
{
    char path[PATH_MAX], *text;
    int fd, r;

    if (length >= sizeof path)
        return gpi_fail(e, GPUD_EDEVICE, ENAMETOOLONG, "devices",
                        "the name of the script is too long, the maximum is %zu bytes",
                        sizeof path - 1);
    memcpy(path, name, length);
    path[length] = 0;
    /* a pipe is not waited for */
    fd = gpi_fd_lift(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (fd < 0)
        return unusable(e, errno, path, NULL);
    text = malloc(GPI_SCRIPT_MAX + 1);
    r = text ? take(text, fd, path, e)
             : gpi_fail(e, GPUD_ENOMEM, 0, "devices", "no memory for a script");
    gpi_fd_close(&fd);
    if (r == 0)
        r = check(text, devices, e);
    if (r)
        free(text);
    else
        *ret = text;
    return r;
}
