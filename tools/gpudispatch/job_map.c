/* SPDX-License-Identifier: MIT */
/* job_map.c - a file for each GPU that runs a task. */
#include "job_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view/words.h"

/* The exporter reads no file whose name is not a number. */
static const char temporary[] = ".gpudispatch";

static int fail(const struct job_map *m)
{
    fprintf(stderr, "gpudispatch: metrics: %s: %s\n", m->name, strerror(errno));
    return EXIT_FAILED;
}

int job_map_open(struct job_map *m, const struct call *call)
{
    *m = (struct job_map){ .fd = -1, .name = call->value[OPTION_JOB_MAP] };
    if (!m->name)
        return EXIT_OK;
    m->fd = open(m->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return m->fd < 0 ? fail(m) : EXIT_OK;
}

/* "3", or "3.1" of an instance, whose name is "gpu:3:1".  False: another device. */
static bool file_of(const struct gpv_now_gpu *g, char ret[32])
{
    const char *colon = strchr(g->name, ':'), *instance = colon ? strchr(colon + 1, ':') : NULL;
    uint32_t number;

    if (!*g->profile) {
        snprintf(ret, 32, "%" PRIu32, g->index);
        return g->index != GPV_NONE;
    }
    if (!instance || sscanf(instance + 1, "%5" SCNu32, &number) != 1)
        return false;
    snprintf(ret, 32, "%" PRIu32 ".%" PRIu32, g->index, number);
    return g->index != GPV_NONE;
}

static int write_file(const struct job_map *m, const char *file, uint64_t task)
{
    char id[GPV_WORD];
    int fd = openat(m->fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    int size = snprintf(id, sizeof id, "%" PRIu32 ".%" PRIu32 "\n", GPV_BATCH_OF(task),
                        GPV_NUMBER_OF(task));
    if (fd < 0)
        return fail(m);
    bool whole = write(fd, id, (size_t)size) == size;
    if (close(fd) || !whole || renameat(m->fd, temporary, m->fd, file)) {
        int status = fail(m);
        (void)unlinkat(m->fd, temporary, 0);
        return status;
    }
    return EXIT_OK;
}

static uint64_t task_in(const struct job_map_gpu *gpu, size_t n, const char *file)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(gpu[i].file, file))
            return gpu[i].task;
    return 0;
}

int job_map_write(struct job_map *m, const struct gpv_snapshot *s)
{
    struct job_map_gpu *gpu;
    size_t n = 0;
    int status = EXIT_OK;

    if (m->fd < 0)
        return EXIT_OK;
    gpu = calloc(s->gpus.n + 1, sizeof *gpu);
    if (!gpu)
        return fail(m);
    for (size_t i = 0; i < s->gpus.n; i++) {
        gpu[n].task = s->gpus.row[i].does == GPV_DOES_RUN ? s->gpus.row[i].task : 0;
        if (gpu[n].task && file_of(&s->gpus.row[i], gpu[n].file))
            n++;
    }
    for (size_t i = 0; i < n && status == EXIT_OK; i++)
        if (task_in(m->gpu, m->n, gpu[i].file) != gpu[i].task)
            status = write_file(m, gpu[i].file, gpu[i].task);
    for (size_t i = 0; i < m->n; i++)
        if (!task_in(gpu, n, m->gpu[i].file))
            (void)unlinkat(m->fd, m->gpu[i].file, 0);
    free(m->gpu);
    m->gpu = gpu;
    m->n = n;
    return status;
}

void job_map_close(struct job_map *m, bool keep)
{
    for (size_t i = 0; i < m->n && !keep; i++)
        (void)unlinkat(m->fd, m->gpu[i].file, 0);
    free(m->gpu);
    if (m->fd >= 0)
        (void)close(m->fd);
}
