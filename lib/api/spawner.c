/* SPDX-License-Identifier: MIT */
/* spawner.c - a spawner of its own for a dispatcher that gpud_init's cannot serve; and the end of
 * either kind. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/lookup.h"
#include "api/process.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/refused.h"
#include "base/ways.h"
#include "host/patience.h"
#include "os/fds.h"
#include "os/memory.h"
#include "os/message.h"
#include "os/orphan.h"
#include "wire/control.h"
#include "wire/hello.h"

#define LEAVES_NS (5 * GPI_S)   /* a spawner gives up on what cannot be killed after some 1.2 s */

/* Waits until fd has news or `until`; false with ETIMEDOUT when the time is over, or with what poll
 * says. */
static bool await(int fd, uint64_t until)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    for (;;) {
        uint64_t now = gpi_now();
        int n = poll(&p, 1, now < until ? (int)((until - now) / GPI_MS) + 1 : 0);
        if (n == 0 && now >= until)
            errno = ETIMEDOUT;
        if (n < 0 && errno != EINTR)
            (void)gpi_refused(GPI_SYS_POLL);
        if (n > 0 || (n == 0 && now >= until) || (n < 0 && errno != EINTR))
            return n > 0;
    }
}

/* ---- the end ---- */

static void end_spawner(struct gpi_process *p)
{
    const struct gpi_control quit = { .kind = GPI_CTL_QUIT };

    if (gpi_message_send(p->door, &quit, sizeof quit, NULL, 0))
        (void)gpi_process_kill(p->spawner, p->spawner_pidfd); /* gone already, or not listening */
    /* it kills its keepers, which stay where they are stopped */
    gpi_process_continue(p->spawner, p->spawner_pidfd);
    /* either tells of its end */
    bool ended = await(p->spawner_pidfd >= 0 ? p->spawner_pidfd : p->door, gpi_now() + LEAVES_NS);
    if (!ended) /* somebody keeps it stopped */
        ended = gpi_process_kill(p->spawner, p->spawner_pidfd) != GPI_WAYS;
    /* one that cannot be killed ends when it is continued, or has to be left */
    if (p->orphan || !ended) {
        /* a host that takes orphans has taken this one */
        (void)waitpid(p->spawner, NULL, WNOHANG | __WALL);
        return;
    }
    while (waitpid(p->spawner, NULL, __WALL) < 0 && errno == EINTR)
        ;
}

void gpi_process_release(struct gpi_process *p, bool ours)
{
    if (ours && p->spawner > 0)
        end_spawner(p);
    gpi_fd_close(&p->door);
    gpi_fd_close(&p->spawner_pidfd);
    gpi_fd_close(&p->program);
    if (ours) /* in a forked child inherited dispatchers still look at it */
        gpi_memory_unmap((void *)p->alive, (uint64_t)sysconf(_SC_PAGESIZE));
    free(p->definition);
    free(p->argv);
}

void gpi_process_unspawn(struct gpi_process *p)
{
    bool ours = p && p->alive && atomic_load(p->alive);

    if (!p)
        return;
    gpi_process_release(p, ours);
    if (!ours) /* no other dispatcher looks at this one's */
        gpi_memory_unmap((void *)p->alive, (uint64_t)sysconf(_SC_PAGESIZE));
    free(p);
}

/* ---- the start ---- */

int gpi_process_refused(struct gpud_error *e, int sys_errno)
{
    const int code = sys_errno == ENOMEM ? GPUD_ENOMEM : GPUD_ESYSTEM;

    return gpi_fail(e, code, sys_errno, "", "starting the spawner failed");
}

/* It ended, or does not reply. */
static int silent(struct gpud_error *e, const char *path, const char *how)
{
    if (!path)
        return gpi_fail(e, GPUD_ESPAWNER, 0, "", "the spawner %s", how);
    return gpi_fail(e, GPUD_ENOANSWER, 0, "GPUD_WORKER_PROGRAM",
                    "%.100s, started as spawner, %s", path, how);
}

int gpi_process_hear(struct gpi_process *p, const char *path, struct gpud_error *e)
{
    uint64_t until = gpi_now() + gpi_spawner_patience;
    const char *program = path ? path : "the fork";
    unsigned char bytes[sizeof(struct gpi_hello) + 1];
    struct gpi_hello h;
    enum gpi_answer a;
    int r;

    while ((r = gpi_message_receive(p->door, bytes, sizeof bytes, NULL, 0, NULL)) < 0 &&
           errno == EAGAIN)
        if (!await(p->door, until))
            return errno == ETIMEDOUT ? silent(e, path, "sent no reply")
                                      : gpi_process_refused(e, errno);
    if (r < 0)
        return gpi_process_refused(e, errno);
    if (r == 0)
        return silent(e, path, "exited without a reply");
    a = gpi_hello_read(&h, bytes, (size_t)r);
    if (a == GPI_ANSWER_STEP) {
        errno = h.sys_errno;
        (void)gpi_refused(h.call < GPI_SYS_COUNT ? (enum gpi_sys)h.call : GPI_SYS_NONE);
        return gpi_process_refused(e, h.sys_errno);
    }
    if (a == GPI_ANSWER_VERSION) {
        char text[sizeof e->text];
        gpi_hello_other_version(text, sizeof text, program, h.protocol, h.api);
        return gpi_fail(e, GPUD_EOTHERVERSION, 0, "GPUD_WORKER_PROGRAM", "%s", text);
    }
    if (a != GPI_ANSWER_READY)
        return gpi_fail(e, GPUD_EPROTOCOL, 0, "GPUD_WORKER_PROGRAM",
                        "%.100s, started as spawner, " GPI_HELLO_UNEXPECTED, program);
    return 0;
}

/* What an exec may lack whatever the program is. */
static bool lacking(int err)
{
    return err == EAGAIN || err == ENOMEM || err == EMFILE || err == ENFILE;
}

static int start(struct gpi_process *p, struct gpud_error *e)
{
    char path[GPI_PATH_SIZE], fds[32], option[] = "--spawner";
    char *const argv[] = { path, option, fds, NULL };
    int keep[2], pair[2], err, r = gpi_lookup_worker(path, e);

    if (r)
        return r;
    if (gpi_message_pair(pair))
        return gpi_process_refused(e, errno);
    p->door = pair[0];
    keep[0] = pair[1];
    keep[1] = gpi_process_pidfd(getpid());
    err = errno;
    if (keep[1] >= 0) {
        snprintf(fds, sizeof fds, "%d %d", keep[0], keep[1]);
        err = gpi_orphan_start(path, argv, keep, 2, &p->spawner, &p->spawner_pidfd);
    }
    gpi_fd_close(&keep[0]);
    gpi_fd_close(&keep[1]);
    if (err && (gpi_refused_call(err) != GPI_SYS_EXECVE || lacking(err)))
        return gpi_process_refused(e, err);
    if (err)
        return gpi_fail(e, GPUD_ENOTEXEC, err, "GPUD_WORKER_PROGRAM", "%.100s", path);
    return gpi_process_hear(p, path, e);
}

int gpi_process_spawn(struct gpi_process **ret, struct gpud_error *e)
{
    struct gpi_process *p = calloc(1, sizeof *p);
    int r;

    if (!p)
        return gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for a spawner");
    p->door = p->spawner_pidfd = p->program = -1;
    p->orphan = true;
    p->alive = gpi_memory_wipeonfork();
    if (p->alive)
        atomic_store(p->alive, 1);
    r = p->alive ? start(p, e) : gpi_process_refused(e, errno);
    if (r == 0) {
        *ret = p;
        return 0;
    }
    if (p->spawner_pidfd >= 0)
        (void)gpi_process_kill(p->spawner, p->spawner_pidfd);
    gpi_process_unspawn(p);
    return r;
}
