/* SPDX-License-Identifier: MIT */
/* output.c - writes a file beside its name, and renames it. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


/* The file that is being written, for the handler; "": there is none. */
static char temporary[PATH_MAX];

static void remove_and_end(int number)
{
    (void)unlink(temporary);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* A signal that the parent has set to be ignored stays so. */
static void handle(void (*handler)(int))
{
    static const int ending[] = { SIGHUP, SIGINT, SIGTERM };

    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
        struct sigaction now;
        if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            (void)signal(ending[i], handler);
    }
}

static void forget(struct output *o)
{
    handle(SIG_DFL);
    temporary[0] = '\0';
    free(o->path);
    o->path = NULL;
}

static int fail(struct output *o, int error)
{
    fprintf(stderr, "gpudispatch: %s cannot be written: %s\n", o->name, strerror(error));
    if (*temporary)
        (void)unlink(temporary);
    forget(o);
    return EXIT_FAILED;
}

/* ---- The stream, which keeps the cause of a failure ---- */

static ssize_t write_part(void *cookie, const char *data, size_t size)
{
    struct output *o = cookie;

    for (size_t done = 0; done < size && !o->error;) {
        ssize_t n = write(o->fd, data + done, size - done);
        if (n < 0 && errno != EINTR)
            o->error = errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return o->error ? 0 : (ssize_t)size;
}

static int close_it(void *cookie)
{
    struct output *o = cookie;

    if (close(o->fd) != 0 && !o->error)
        o->error = errno;
    return o->error ? EOF : 0;
}

/* Owns the descriptor, also on failure. */
static int open_stream(struct output *o, int fd)
{
    o->fd = fd;
    o->f = fopencookie(o, "w", (cookie_io_functions_t){ .write = write_part, .close = close_it });
    if (o->f)
        return 0;
    (void)close(fd);
    return fail(o, ENOMEM);
}

/* As of a file that a shell would make, or that of before. */
static mode_t mode_of(const struct stat *before)
{
    mode_t mask;

    if (before)
        return before->st_mode & 07777;
    mask = umask(0);
    (void)umask(mask);
    return 0666 & ~mask;
}

static int open_beside(struct output *o, const struct stat *before)
{
    int n = snprintf(temporary, sizeof temporary, "%s.XXXXXX", o->path), fd;

    if (n < 0 || (size_t)n >= sizeof temporary) {
        temporary[0] = '\0';
        return fail(o, ENAMETOOLONG);
    }
    handle(remove_and_end);
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        n = errno;
        temporary[0] = '\0';
        return fail(o, n);
    }
    (void)fchmod(fd, mode_of(before)); /* a file system without modes has none to set */
    return open_stream(o, fd);
}

const char *output_name(const struct call *call, const char *file)
{
    if (call->given[OPTION_OUTPUT])
        return call->value[OPTION_OUTPUT];
    return isatty(STDOUT_FILENO) ? file : NULL;
}

void output_say(const struct call *call, const char *name)
{
    if (name && !call->given[OPTION_OUTPUT])
        printf("written: %s\n", name);
}

int output_open(struct output *o, const char *name)
{
    struct stat there;
    bool exists;
    int fd;

    *o = (struct output){ .f = stdout };
    if (!name || !strcmp(name, "-"))
        return 0;
    o->name = name;
    exists = stat(name, &there) == 0;
    if (exists && !S_ISREG(there.st_mode)) {
        fd = open(name, O_WRONLY | O_CLOEXEC);
        return fd >= 0 ? open_stream(o, fd) : fail(o, errno);
    }
    o->path = exists ? realpath(name, NULL) : strdup(name);
    if (!o->path)
        return fail(o, errno);
    return open_beside(o, exists ? &there : NULL);
}

int output_close(struct output *o, int status)
{
    if (!o->name)
        return status;
    (void)fclose(o->f);
    if (status == 0 && !o->error && o->path && rename(temporary, o->path) != 0)
        o->error = errno;
    if (status == 0 && o->error)
        return fail(o, o->error);
    if (status && o->path)
        (void)unlink(temporary);
    forget(o);
    return status;
}
