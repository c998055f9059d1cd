/* SPDX-License-Identifier: MIT */
/*
 * exec.c - workers that are programs (EXEC): which program the keepers execute, how long it may
 * take to call gpud_init, and why it failed to become a worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/refused.h"
#include "base/signame.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "os/fds.h"
#include "os/memory.h"
#include "wire/control.h"
#include "wire/hello.h"

/* ---- the program to start ---- */

static int share_launch(gpud_dispatcher *d, const struct gpi_launch *l)
{
    size_t size;
    void *blob, *map = NULL;

    if (gpi_launch_encode(l, &blob, &size))
        return -1;
    d->launch.fd = gpi_memory_create("gpud-launch", size);
    if (d->launch.fd >= 0)
        map = gpi_memory_map(d->launch.fd, size, true);
    if (map)
        memcpy(map, blob, size);
    int err = errno;
    gpi_memory_unmap(map, size);
    free(blob);
    errno = err;
    return map ? 0 : -1;
}

/* A stream that the host has closed goes to /dev/null. */
static int keep_stdio(gpud_dispatcher *d)
{
    for (int i = 0; i < 2; i++) {
        int fd = fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
        if (fd < 0 && errno == EBADF)
            fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        d->launch.stdio_fd[i] = gpi_fd_lift(fd);
        if (d->launch.stdio_fd[i] < 0)
            return -1;
    }
    return 0;
}

int gpi_start_init(gpud_dispatcher *d, const struct gpi_birth *b)
{
    const struct gpi_launch *l = b->launch;

    d->launch.executed = l->start == GPUD_START_EXEC;
    d->launch.lines = l->stdio == GPUD_STDIO_EVENTS;
    d->launch.reads_output = d->launch.lines || l->stdio == GPUD_STDIO_TAIL;
    snprintf(d->launch.name, sizeof d->launch.name, "%s", b->name);
    if (d->launch.executed)
        snprintf(d->launch.program, sizeof d->launch.program, "%s",
                 l->program ? l->program : l->argv[0]);
    if (l->stdio == GPUD_STDIO_INHERIT && keep_stdio(d))
        return -1;
    if (share_launch(d, l))
        return -1;
    if (b->program_fd < 0)
        return 0;
    d->launch.program_fd = gpi_fd_lift(fcntl(b->program_fd, F_DUPFD_CLOEXEC, 3));
    return d->launch.program_fd < 0 ? -1 : 0;
}

void gpi_start_fini(gpud_dispatcher *d)
{
    gpi_fd_close(&d->launch.fd);
    gpi_fd_close(&d->launch.program_fd);
    gpi_fd_close(&d->launch.stdio_fd[0]);
    gpi_fd_close(&d->launch.stdio_fd[1]);
}

/* ---- how long it may take ---- */

const char *gpi_start_limit_text(const gpud_dispatcher *d, const struct gpi_slot *s, char *to,
                                 size_t size)
{
    const uint64_t limit = gpi_sched_start_limit(d->core, s->index);
    char time[GPI_DURATION_SIZE];

    (void)snprintf(to, size, "%s%s", gpi_duration_text(time, limit),
                   limit == d->class.setup_limit ? " (setup_limit)" : "");
    return to;
}

/* ---- why a program is no worker ---- */

static int32_t step_failed(const gpud_dispatcher *d, const struct gpi_control *c, char *text,
                           size_t size)
{
    static const char *const what[GPI_STEPS] = {
        [GPI_STEP_EXEC] = "the program cannot be executed",
        [GPI_STEP_ENV] = "the environment cannot be built",
        [GPI_STEP_MAP] = "the program cannot map the status page",
        [GPI_STEP_SPAWNER] = "the program started as a spawner", /* no spawner sends it */
    };
    const bool path = strchr(d->launch.program, '/') != NULL;
    const bool missing = c->sys_errno == ENOENT || c->sys_errno == ENOTDIR;
    char buffer[GPI_REFUSAL_SIZE];
    const char *why = gpi_refusal_text(buffer, c->call, c->sys_errno);

    if (c->step != GPI_STEP_EXEC) {
        snprintf(text, size, "%s: %s", what[c->step < GPI_STEPS ? c->step : GPI_STEP_ENV], why);
        return GPUD_ESYSTEM;
    }
    snprintf(text, size, "%s: %s: %s%s", d->launch.program, what[GPI_STEP_EXEC], why,
             missing && path && access(d->launch.program, F_OK) == 0
                 ? " (its interpreter is missing)"
                 : "");
    return missing ? GPUD_ENOPROGRAM : GPUD_ENOTEXEC;
}

static int32_t no_answer(const gpud_dispatcher *d, const struct gpi_slot *s, enum gpi_why why,
                         uint32_t kind, int32_t status, char *text, size_t size)
{
    char limit[64], signal[GPI_SIGNAL_SIZE];

    if (why == GPI_WHY_SETUP)
        snprintf(text, size, "%s did not call gpud_init within %s", d->launch.program,
                 gpi_start_limit_text(d, s, limit, sizeof limit));
    else if (kind == GPUD_EXIT_CODE)
        snprintf(text, size, "%s exited with status %d before it called gpud_init",
                 d->launch.program, status);
    else
        snprintf(text, size, "%s was killed by %s before it called gpud_init%s", d->launch.program,
                 gpi_signal_text(signal, status), gpi_exit_hint(s, kind, status));
    return GPUD_ENOANSWER;
}

int32_t gpi_start_verdict(const gpud_dispatcher *d, const struct gpi_slot *s, enum gpi_why why,
                          uint32_t kind, int32_t status, char *text, size_t size)
{
    const struct gpi_control *c = &s->last.words;

    switch (c->answer) {
    case GPI_ANSWER_STEP:
        return step_failed(d, c, text, size);
    case GPI_ANSWER_VERSION:
        gpi_hello_other_version(text, size, d->launch.program, c->version, c->api);
        return GPUD_EOTHERVERSION;
    case GPI_ANSWER_WRAPPED:
        snprintf(text, size,
                 "gpud_init was called in a child of %s: a wrapper must exec the worker program",
                 d->launch.program);
        return GPUD_ENOANSWER;
    case GPI_ANSWER_THREAD:
        snprintf(text, size, "%s called gpud_init on a thread other than the main thread",
                 d->launch.program);
        return GPUD_ENOANSWER;
    case GPI_ANSWER_GARBAGE:
        snprintf(text, size, "%s " GPI_HELLO_UNEXPECTED, d->launch.program);
        return GPUD_EPROTOCOL;
    default:
        return no_answer(d, s, why, kind, status, text, size);
    }
}
