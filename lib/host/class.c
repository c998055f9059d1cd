/* SPDX-License-Identifier: MIT */
/* class.c - the classes of a dispatcher: made, with the start of their workers, and freed. */
#include "host/class.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/chunks.h"
#include "host/dispatcher.h"
#include "os/fds.h"
#include "os/memory.h"

void gpi_class_init(struct gpi_class *c, const struct gpi_class_birth *b)
{
    *c = (struct gpi_class){
        .set = b->set,
        .launch = { .fd = -1, .program_fd = -1, .stdio_fd = { -1, -1 } },
        .setup = { .fd = -1 },
        .plan = b->plan,
        .name = "",
    };
}

int gpi_classes_init(gpud_dispatcher *d, const struct gpi_birth *b)
{
    d->class = calloc(b->set.pooled ? GPI_CLASSES_MAX : 1, sizeof *d->class);
    if (!d->class)
        return -1;
    if (b->set.pooled)
        return 0;
    gpi_class_init(&d->class[0], &b->class);
    d->n_classes = 1;
    return 0;
}

void gpi_class_fini(struct gpi_class *c)
{
    gpi_fd_close(&c->launch.fd);
    gpi_fd_close(&c->launch.program_fd);
    gpi_fd_close(&c->launch.stdio_fd[0]);
    gpi_fd_close(&c->launch.stdio_fd[1]);
    gpi_fd_close(&c->setup.fd);
}

void gpi_classes_fini(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_classes; i++)
        gpi_class_fini(&d->class[i]);
    free(d->class);
    d->class = NULL;
    d->n_classes = 0;
}

int gpi_class_find(const gpud_dispatcher *d, const char *name)
{
    for (uint32_t i = 0; i < d->n_classes; i++)
        if (!d->class[i].removed && strcmp(d->class[i].name, name) == 0)
            return (int)i;
    return -1;
}

bool gpi_classes_pin(const gpud_dispatcher *d)
{
    bool pin = d->set.pooled; /* a later class may */

    for (uint32_t i = 0; i < d->n_classes; i++)
        pin |= (d->class[i].set.cuda & GPUD_CUDA_PIN) != 0;
    return pin;
}

/* ---- setup data ---- */

int gpi_class_copy_setup(gpud_dispatcher *d, struct gpi_class *c, const struct gpi_class_birth *b)
{
    int fresh;

    if (b->setup_size == 0 || b->setup_fd >= 0)
        return 0;
    c->setup.off = gpi_chunks_alloc(&d->arena.input_chunks, b->setup_size, &fresh);
    if (c->setup.off == GPI_CHUNKS_NONE)
        return GPUD_ETOOBIG;
    c->setup.size = b->setup_size;
    memcpy(d->arena.input + c->setup.off, b->setup_data, b->setup_size);
    return 0;
}

int gpi_class_keep_setup(struct gpi_class *c, const struct gpi_class_birth *b)
{
    if (b->setup_fd < 0)
        return 0;
    c->setup.size = b->setup_size;
    c->setup.fd = gpi_fd_lift(fcntl(b->setup_fd, F_DUPFD_CLOEXEC, 3));
    return c->setup.fd < 0 ? GPUD_ESYSTEM : 0;
}

/* ---- how its workers start ---- */

static int share_launch(struct gpi_class *c, const struct gpi_launch *l)
{
    size_t size;
    void *blob, *map = NULL;

    if (gpi_launch_encode(l, &blob, &size))
        return -1;
    c->launch.fd = gpi_memory_create("gpud-launch", size);
    if (c->launch.fd >= 0)
        map = gpi_memory_map(c->launch.fd, size, true);
    if (map)
        memcpy(map, blob, size);
    int err = errno;
    gpi_memory_unmap(map, size);
    free(blob);
    errno = err;
    return map ? 0 : -1;
}

/* A stream that the host has closed goes to /dev/null. */
static int keep_stdio(struct gpi_class *c)
{
    for (int i = 0; i < 2; i++) {
        int fd = fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
        if (fd < 0 && errno == EBADF)
            fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        c->launch.stdio_fd[i] = gpi_fd_lift(fd);
        if (c->launch.stdio_fd[i] < 0)
            return -1;
    }
    return 0;
}

int gpi_class_keep_launch(struct gpi_class *c, const struct gpi_class_birth *b)
{
    const struct gpi_launch *l = b->launch;

    c->launch.executed = l->start == GPUD_START_EXEC;
    c->launch.lines = l->stdio == GPUD_STDIO_EVENTS;
    c->launch.reads_output = c->launch.lines || l->stdio == GPUD_STDIO_TAIL;
    snprintf(c->launch.name, sizeof c->launch.name, "%s", b->name);
    if (c->launch.executed)
        snprintf(c->launch.program, sizeof c->launch.program, "%s",
                 l->program ? l->program : l->argv[0]);
    if (l->stdio == GPUD_STDIO_INHERIT && keep_stdio(c))
        return GPUD_ESYSTEM;
    if (share_launch(c, l))
        return GPUD_ESYSTEM;
    if (b->program_fd < 0)
        return 0;
    c->launch.program_fd = gpi_fd_lift(fcntl(b->program_fd, F_DUPFD_CLOEXEC, 3));
    return c->launch.program_fd < 0 ? GPUD_ESYSTEM : 0;
}
