/* SPDX-License-Identifier: MIT */
#include "open_gpu.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { GPUS = 64, UUID = 96 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char opened[GPUS][UUID];

/* Whether this process opens it for the first time. */
static bool is_first(const char *uuid)
{
    bool first = false;

    (void)pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < GPUS && strcmp(opened[i], uuid) != 0; i++)
        if (!opened[i][0]) {
            (void)snprintf(opened[i], UUID, "%s", uuid);
            first = true;
            break;
        }
    (void)pthread_mutex_unlock(&lock);
    return first;
}

/* -1: there is no such folder. */
static int open_file(const char *uuid)
{
    const char *script = getenv("FAKE_SCRIPT");
    char path[4096];
    int fd;

    (void)snprintf(path, sizeof path, "%s.open", script ? script : "");
    if (!script || access(path, W_OK))
        return -1;
    (void)snprintf(path, sizeof path, "%s.open/%s", script, uuid);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        abort();
    return fd;
}

void fake_open_gpu(const char *uuid)
{
    const int fd = open_file(uuid);

    if (fd < 0)
        return;
    if (!is_first(uuid)) {
        (void)close(fd);
        return;
    }
    if (flock(fd, LOCK_SH))
        abort();
    (void)dprintf(fd, "%d\n", (int)getpid()); /* fd stays, as a driver's does */
}

void fake_listen_to_gpu(const char *uuid)
{
    const int fd = open_file(uuid);

    if (fd < 0)
        return;
    (void)dprintf(fd, "listens\n");
    (void)close(fd);
}
