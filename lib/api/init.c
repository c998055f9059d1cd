/* SPDX-License-Identifier: MIT */
/* init.c - gpud_init and gpud_fini: the definitions, the spawner, and who owns them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/check.h"
#include "api/definitions.h"
#include "api/process.h"
#include "base/failure.h"
#include "base/refused.h"
#include "keeper/spawner.h"
#include "monitor/monitor.h"
#include "os/cuda.h"
#include "os/fds.h"
#include "os/memory.h"
#include "os/message.h"
#include "os/self.h"
#include "wire/launch.h"
#include "worker/birth.h"
#include "worker/worker.h"

/* ---- the spawner ---- */

static int fork_spawner(struct gpi_process *p, struct gpud_error *e)
{
    struct gpi_spawner_plan plan = {
        .definitions = p->definition,
        .n_definitions = p->n_definitions,
        .prepare = gpi_worker_prepare,
        .worker = gpi_worker_run,
        .monitor = gpi_monitor_run,
        .host = getpid(),
        .host_fd = -1,
    };
    int pair[2], r;

    if (gpi_message_pair(pair))
        return gpi_process_refused(e, errno);
    plan.door = pair[1];
    p->spawner = gpi_process_fork_quiet();
    if (p->spawner == 0)
        gpi_spawner_run(&plan);
    close(pair[1]);
    if (p->spawner < 0) {
        int err = errno;
        close(pair[0]);
        return gpi_process_refused(e, err);
    }
    p->door = pair[0];
    p->spawner_pidfd = gpi_process_pidfd(p->spawner);
    r = p->spawner_pidfd >= 0 || gpi_process_no_pidfds(errno)
            ? gpi_process_hear(p, NULL, e) /* without one, the end of the connections tells */
            : gpi_process_refused(e, errno);
    if (r == 0)
        return 0;
    gpi_process_kill(p->spawner, p->spawner_pidfd); /* it has no child yet */
    while (waitpid(p->spawner, NULL, __WALL) < 0 && errno == EINTR)
        ;
    gpi_fd_close(&p->door);
    gpi_fd_close(&p->spawner_pidfd);
    return r;
}

/* What a later dispatcher has to know about the host as it is now. */
static void look_at_host(struct gpi_process *p)
{
    gpi_process_credentials(&p->credentials);
    p->program = gpi_self_program();
    p->program_errno = p->program < 0 ? errno : 0;
    p->argv = gpi_self_argv(GPI_LAUNCH_MAX / 2);
    if (!p->argv && !p->program_errno)
        p->program_errno = errno;
    p->cuda = gpi_cuda_in_use();
    p->threads = gpi_process_threaded();
    p->resident = gpi_memory_resident();
}

static int init(struct gpi_process *p, const struct gpud_definition *definitions, size_t n,
                struct gpud_error *e)
{
    int r;

    memset(p, 0, sizeof *p);
    p->door = p->spawner_pidfd = p->program = -1;
    r = gpi_definitions_copy(&p->definition, definitions, n, e);
    if (r)
        return r;
    p->n_definitions = (uint32_t)n;
    p->alive = gpi_memory_wipeonfork();
    if (!p->alive)
        r = gpi_process_refused(e, errno);
    else
        r = fork_spawner(p, e);
    if (r) {
        free(p->definition);
        gpi_memory_unmap((void *)p->alive, (uint64_t)sysconf(_SC_PAGESIZE));
        return r;
    }
    look_at_host(p); /* after the fork: the spawner has no use for it */
    atomic_store(p->alive, 1);
    return 0;
}

/* In a program that a keeper has executed: the worker, and no way back. */
static _Noreturn void be_worker(const struct gpi_call *call,
                                const struct gpud_definition *definitions, size_t n)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    struct gpud_definition *copy;
    struct gpi_worker_plan plan;

    gpi_birth_answer(&plan, call);
    if (gpi_definitions_copy(&copy, definitions, n, &e))
        gpi_birth_fail(&plan, e.code, e.text);
    gpi_birth_run(&plan, copy, n);
}

int gpud_init(const struct gpud_definition *definitions, size_t n, struct gpud_error *reterr)
{
    struct gpi_process made;
    struct gpi_call call;
    int r;

    r = gpi_check_place(reterr);
    if (r)
        return r;
    gpi_refused_forget();
    if (gpi_process())
        return gpi_fail(reterr, GPUD_EBUSY, 0, "", "gpud_init was already called in this process");
    if (gpi_birth_called(&call)) {
        if (gpi_birth_ours(&call))
            be_worker(&call, definitions, n);
        gpi_birth_decline(&call);
        return gpi_fail(reterr, GPUD_EPROTOCOL, 0, "",
                        "the worker program is process %d, but a child of it called gpud_init: a "
                        "wrapper must exec the worker program",
                        call.pid);
    }
    r = init(&made, definitions, n, reterr);
    if (r)
        return r;
    if (gpi_process_here()->alive) /* the parent's, in a forked child that never said gpud_fini */
        gpi_process_release(gpi_process_here(), false);
    *gpi_process_here() = made;
    return 0;
}

int gpud_fini(void)
{
    struct gpi_process *p = gpi_process_here();
    bool ours = gpi_process() != NULL;

    if (!p->alive)
        return 0;
    if (ours && atomic_load(&p->dispatchers))
        return GPUD_EBUSY;
    gpi_process_release(p, ours);
    memset(p, 0, sizeof *p);
    return 0;
}
