/* SPDX-License-Identifier: MIT */
/* init.c - gpud_init and gpud_fini: the definitions, the spawner, and who owns them. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/process.h"
#include "base/failure.h"
#include "keeper/spawner.h"
#include "os/fds.h"
#include "os/memory.h"
#include "os/message.h"
#include "wire/control.h"
#include "worker/worker.h"

#define NAME_MAX_BYTES 63

static struct gpi_process the_process; /* the one static: gpud_init and gpud_fini write it */

struct gpi_process *gpi_process(void)
{
    return the_process.alive && atomic_load_explicit(the_process.alive, memory_order_relaxed) ? &the_process : NULL;
}

bool gpi_process_forked(void)
{
    return the_process.alive && !gpi_process();
}

/* ---- definitions ---- */

static int check_definition(const struct gpud_definition *all, size_t i, struct gpud_error *e)
{
    const struct gpud_definition *d = &all[i];

    if (d->struct_size != sizeof *d)
        return gpi_fail(e, d->struct_size > sizeof *d ? GPUD_EVERSION : GPUD_EINVAL, 0, "struct_size", "definitions[%zu].struct_size is %u", i, d->struct_size);
    if (!d->name || !*d->name || strnlen(d->name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
        return gpi_fail(e, GPUD_EINVAL, 0, "name", "definitions[%zu].name must have 1 to %d bytes", i, NAME_MAX_BYTES);
    if (!d->process)
        return gpi_fail(e, GPUD_EINVAL, 0, "process", "definitions[%zu] (%s) has no process function", i, d->name);
    for (size_t k = 0; k < i; k++)
        if (!strcmp(all[k].name, d->name))
            return gpi_fail(e, GPUD_EINVAL, 0, "name", "definitions[%zu] and [%zu] are both named %s", k, i, d->name);
    return 0;
}

/* A copy of array and names in one block. */
static struct gpud_definition *copy_definitions(const struct gpud_definition *from, size_t n)
{
    struct gpud_definition *to = malloc(n * (sizeof *to + NAME_MAX_BYTES + 1));
    char *names;

    if (!to)
        return NULL;
    names = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].name = names + i * (NAME_MAX_BYTES + 1);
        strcpy(names + i * (NAME_MAX_BYTES + 1), from[i].name);
    }
    return to;
}

/* ---- the spawner ---- */

static int fork_spawner(struct gpi_process *p, struct gpud_error *e)
{
    struct gpi_spawner_plan plan = {
        .definitions = p->definition, .n_definitions = p->n_definitions, .worker = gpi_worker_run, .host = getpid(),
    };
    int pair[2];

    if (gpi_message_pair(pair))
        return gpi_fail(e, GPUD_ESYSTEM, errno, "", "no socket for the spawner");
    plan.door = pair[1];
    p->spawner = gpi_process_fork_quiet();
    if (p->spawner == 0)
        gpi_spawner_run(&plan);
    close(pair[1]);
    if (p->spawner < 0) {
        int err = errno;
        close(pair[0]);
        return gpi_fail(e, GPUD_ESYSTEM, err, "", "the spawner could not be forked");
    }
    p->door = pair[0];
    p->spawner_pidfd = gpi_process_pidfd(p->spawner);
    if (p->spawner_pidfd >= 0)
        return 0;
    int err = errno;
    gpi_fd_close(&p->door); /* ends the spawner */
    (void)waitpid(p->spawner, NULL, __WALL);
    return gpi_fail(e, GPUD_ESYSTEM, err, "", "pidfd_open, which needs Linux 5.3");
}

static int init(struct gpi_process *p, const struct gpud_definition *definitions, size_t n, struct gpud_error *e)
{
    int r;

    memset(p, 0, sizeof *p);
    p->door = p->spawner_pidfd = -1;
    p->definition = copy_definitions(definitions, n);
    p->n_definitions = (uint32_t)n;
    p->alive = gpi_memory_wipeonfork();
    if (!p->definition || !p->alive)
        r = gpi_fail(e, GPUD_ENOMEM, errno, "", "no memory for the definitions");
    else
        r = fork_spawner(p, e);
    if (r) {
        free(p->definition);
        gpi_memory_unmap((void *)p->alive, (uint64_t)sysconf(_SC_PAGESIZE));
        return r;
    }
    gpi_process_credentials(&p->credentials);
    atomic_store(p->alive, 1);
    return 0;
}

int gpud_init(const struct gpud_definition *definitions, size_t n, struct gpud_error *reterr)
{
    struct gpi_process made;
    int r;

    if (gpi_process())
        return gpi_fail(reterr, GPUD_EBUSY, 0, "", "gpud_init was called before in this process");
    if (!definitions || n == 0 || n > 1024)
        return gpi_fail(reterr, GPUD_EINVAL, 0, "definitions", "1 to 1,024 definitions are needed, not %zu", definitions ? n : 0);
    for (size_t i = 0; i < n; i++)
        if ((r = check_definition(definitions, i, reterr)))
            return r;
    r = init(&made, definitions, n, reterr);
    if (r == 0)
        the_process = made;
    return r;
}

int gpud_fini(void)
{
    struct gpi_process *p = &the_process;
    const struct gpi_control quit = { .kind = GPI_CTL_QUIT };
    bool ours = gpi_process() != NULL;

    if (!p->alive)
        return 0;
    if (ours && atomic_load(&p->dispatchers))
        return GPUD_EBUSY;
    if (ours) {
        if (gpi_message_send(p->door, &quit, sizeof quit, NULL, 0))
            gpi_process_kill(p->spawner_pidfd); /* gone already, or not listening */
        while (waitpid(p->spawner, NULL, __WALL) < 0 && errno == EINTR)
            ;
    }
    gpi_fd_close(&p->door);
    gpi_fd_close(&p->spawner_pidfd);
    if (ours) /* in a forked child inherited dispatchers still look at it */
        gpi_memory_unmap((void *)p->alive, (uint64_t)sysconf(_SC_PAGESIZE));
    free(p->definition);
    memset(p, 0, sizeof *p);
    return 0;
}
