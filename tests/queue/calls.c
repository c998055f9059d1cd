/* SPDX-License-Identifier: MIT */
/*
 * calls.c - a module that is loaded before libc, in front of the file calls of the runner.
 *
 * It writes each pwrite and fsync, with the name of the file, to the file that T_CALLS names.
 * A write whose bytes begin with the text in T_REFUSED fails with ENOSPC, as often as T_REFUSALS
 * says, and the first time after half of its bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void note(const char *call, int fd)
{
    char link[64], path[1024] = "", line[1100];
    int out = open(getenv("T_CALLS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    (void)!readlink(link, path, sizeof(path) - 1);
    n = snprintf(line, sizeof(line), "%s %s\n", call,
                 strrchr(path, '/') ? strrchr(path, '/') : "?");
    (void)!write(out, line, (size_t)n);
    (void)close(out);
}

/* Returns how much of a refused write is still written, or -1 for one that is not refused. */
static ssize_t refused(const void *data, size_t size)
{
    static int refusals;
    const char *text = getenv("T_REFUSED"), *most = getenv("T_REFUSALS");

    if (!text || !most || size < strlen(text) || memcmp(data, text, strlen(text)) ||
        refusals == atoi(most))
        return -1;
    return refusals++ ? 0 : (ssize_t)size / 2;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at)
{
    static int rest; /* of a write that was cut: the next one fails */
    ssize_t left = refused(data, size);

    note("write", fd);
    if (rest || left == 0) {
        rest = 0;
        errno = ENOSPC;
        return -1;
    }
    rest = left > 0;
    return syscall(SYS_pwrite64, fd, data, left > 0 ? (size_t)left : size, at);
}

int fsync(int fd)
{
    note("sync", fd);
    return (int)syscall(SYS_fsync, fd);
}
