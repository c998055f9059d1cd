/* SPDX-License-Identifier: MIT */
#include "os/self.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/fds.h"

int gpi_self_program(void)
{
    return gpi_fd_lift(open("/proc/self/exe", O_PATH | O_CLOEXEC));
}

/* All of a file in a block that grows; its size, or -1 with errno. */
static ssize_t read_all(int fd, char **ret, size_t max)
{
    size_t size = 0, room = 0;
    char *text = NULL;

    for (;;) {
        char *more = size == room ? realloc(text, room = 2 * room + 4096) : text;
        ssize_t n = more ? read(fd, more + size, room - size) : -1;
        text = more ? more : text;
        if (n > 0)
            size += (size_t)n;
        if (size > max)
            errno = E2BIG;
        if (size > max || (n < 0 && errno != EINTR)) {
            free(text);
            return -1;
        }
        if (n == 0) {
            *ret = text;
            return (ssize_t)size;
        }
    }
}

/* The list before, the text behind. */
static char **split(const char *text, size_t size)
{
    size_t n = 0;
    char **list, *copy;

    for (size_t i = 0; i < size; i++)
        n += !text[i];
    list = malloc((n + 1) * sizeof *list + size);
    if (!list)
        return NULL;
    copy = (char *)(list + n + 1);
    memcpy(copy, text, size);
    for (size_t i = 0; i < n; i++) {
        list[i] = copy;
        copy += strlen(copy) + 1;
    }
    list[n] = NULL;
    return list;
}

char **gpi_self_argv(size_t max)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    char *text = NULL, **list = NULL;
    ssize_t size;

    if (fd < 0)
        return NULL;
    size = read_all(fd, &text, max);
    if (size > 0 && text[size - 1] == '\0')
        list = split(text, (size_t)size);
    else if (size >= 0)
        errno = ENOENT; /* a program that has written over it */
    int err = errno;
    free(text);
    close(fd);
    errno = err;
    return list;
}
