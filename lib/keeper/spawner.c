/* SPDX-License-Identifier: MIT */
#include "keeper/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/keeper.h"
#include "keeper/sweep.h"
#include "os/fds.h"
#include "os/message.h"
#include "os/process.h"
#include "wire/control.h"

#define CONNECTIONS_MAX 256 /* dispatchers of one host at a time */
#define KEEPERS_MAX 1024
#define KEEPER_PATIENCE_MS 300 /* of C11's second */
#define GIVE_UP_AFTER 3        /* such spells */
#define FIXED 3             /* pollfds before the connections */

struct kept {
    pid_t pid; /* 0 = free; negative = dead, its remains are being swept */
    uint32_t slot;
    int connection; /* index, -1 = its dispatcher is gone */
};

struct spawner {
    const struct gpi_spawner_plan *plan;
    int host, sigchld;
    bool ending;
    struct pollfd p[FIXED + CONNECTIONS_MAX];
    struct kept kept[KEEPERS_MAX];
};

static int *connection(struct spawner *s, int i)
{
    return &s->p[FIXED + i].fd;
}

/* Up to the last connection: poll refuses more places than the process may have fds. */
static nfds_t used_places(const struct spawner *s)
{
    nfds_t n = FIXED + CONNECTIONS_MAX;

    while (n > FIXED && s->p[n - 1].fd < 0)
        n--;
    return n;
}

/* ---- keepers ---- */

static struct kept *free_place(struct spawner *s)
{
    for (int i = 0; i < KEEPERS_MAX; i++)
        if (s->kept[i].pid == 0)
            return &s->kept[i];
    return NULL;
}

static _Noreturn void become_keeper(const struct spawner *s, uint32_t slot, int control, const int *fds)
{
    static struct gpi_keeper_plan plan; /* in a process of its own */

    plan = (struct gpi_keeper_plan){ .spawner = s->plan, .slot = slot, .control = control, .host = s->host };
    memcpy(plan.fds, fds, sizeof plan.fds);
    gpi_keeper_run(&plan);
}

/* Forks a keeper; gives its pid and the host's end of its control socket, or an errno. */
static int fork_keeper(struct spawner *s, int conn, uint32_t slot, const int *fds, pid_t *ret_pid, int *ret_control)
{
    struct kept *place = free_place(s);
    int pair[2];
    pid_t pid;

    if (!place)
        return EAGAIN;
    if (gpi_message_pair(pair))
        return errno;
    pid = fork();
    if (pid == 0)
        become_keeper(s, slot, pair[1], fds);
    close(pair[1]);
    if (pid < 0) {
        int err = errno;
        close(pair[0]);
        return err;
    }
    *place = (struct kept){ .pid = pid, .slot = slot, .connection = conn };
    *ret_pid = pid;
    *ret_control = pair[0];
    return 0;
}

static void make(struct spawner *s, int conn, const struct gpi_control *c, const int *fds, size_t n)
{
    struct gpi_control answer = { .kind = GPI_CTL_MADE, .slot = c->slot };
    int control = -1;
    pid_t pid = 0;

    answer.sys_errno = n == GPI_MAKE_FDS ? fork_keeper(s, conn, c->slot, fds, &pid, &control) : EBADF;
    answer.pid = pid;
    (void)gpi_message_send(*connection(s, conn), &answer, sizeof answer, &control, control >= 0 ? 1 : 0);
    gpi_fd_close(&control);
}

/* ---- requests ---- */

static void hang_up(struct spawner *s, int conn)
{
    gpi_fd_close(connection(s, conn));
    for (int i = 0; i < KEEPERS_MAX; i++)
        if (s->kept[i].connection == conn)
            s->kept[i].connection = -1;
}

static void on_connection(struct spawner *s, int conn)
{
    struct gpi_control c;
    int fds[GPI_MESSAGE_FDS];
    size_t n = 0;
    int r = gpi_message_receive(*connection(s, conn), &c, sizeof c, fds, GPI_MESSAGE_FDS, &n);

    if (r < 0 && errno == EAGAIN)
        return;
    if (r == (int)sizeof c && c.kind == GPI_CTL_MAKE)
        make(s, conn, &c, fds, n);
    else
        hang_up(s, conn); /* BYE, the end, or nonsense */
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
}

static void on_door(struct spawner *s)
{
    struct gpi_control c;
    int fd = -1;
    size_t n = 0;
    int r = gpi_message_receive(s->plan->door, &c, sizeof c, &fd, 1, &n);

    if (r < 0 && errno == EAGAIN)
        return;
    if (r != (int)sizeof c || c.kind == GPI_CTL_QUIT) {
        s->ending = true;
    } else if (c.kind == GPI_CTL_CONNECT && n == 1) {
        for (int i = 0; i < CONNECTIONS_MAX; i++)
            if (*connection(s, i) < 0) {
                *connection(s, i) = fd;
                return;
            }
    }
    gpi_fd_close(&fd);
}

/* ---- deaths ---- */

static bool reap_one(struct spawner *s)
{
    siginfo_t si = { .si_pid = 0 };

    if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | __WALL) || si.si_pid == 0)
        return false;
    for (int i = 0; i < KEEPERS_MAX; i++)
        if (s->kept[i].pid == si.si_pid)
            s->kept[i].pid = -si.si_pid;
    return true;
}

/* Children that are not keepers are the remains of dead keepers. */
static int sweep_remains(struct spawner *s)
{
    pid_t alive[KEEPERS_MAX];
    size_t n = 0;

    for (int i = 0; i < KEEPERS_MAX; i++)
        if (s->kept[i].pid > 0)
            alive[n++] = s->kept[i].pid;
    return gpi_sweep(alive, n);
}

static void tell_gone(struct spawner *s, struct kept *k)
{
    struct gpi_control c = { .kind = GPI_CTL_GONE, .slot = k->slot, .pid = -k->pid };

    if (k->connection >= 0)
        (void)gpi_message_send(*connection(s, k->connection), &c, sizeof c, NULL, 0);
    *k = (struct kept){ .pid = 0, .connection = -1 };
}

static void on_children(struct spawner *s)
{
    struct signalfd_siginfo drop[8];
    bool dead = false;

    while (read(s->sigchld, drop, sizeof drop) > 0)
        ;
    while (reap_one(s))
        ;
    for (int i = 0; i < KEEPERS_MAX; i++)
        dead |= s->kept[i].pid < 0;
    if (!dead || sweep_remains(s) > 0)
        return;
    for (int i = 0; i < KEEPERS_MAX; i++)
        if (s->kept[i].pid < 0)
            tell_gone(s, &s->kept[i]);
}

/* The keepers watch the host by themselves; what a dead one left is ours.  A keeper that does
 * not end in time (somebody stopped it) is killed, and so becomes a dead one. */
static void end_all(struct spawner *s, bool patience)
{
    if (patience)
        (void)sweep_remains(s);
    else
        (void)gpi_sweep(NULL, 0);
    if (gpi_sweep_childless())
        _exit(0);
}

/* ---- birth ---- */

/* A pidfd of the host, or an end if it has gone meanwhile. */
static int watch_host(pid_t host)
{
    int fd = gpi_process_pidfd(host);

    if (getppid() != host)
        _exit(0);
    return fd;
}

static void settle(struct spawner *s)
{
    int null;
    const int keep[] = { s->plan->door, s->host, s->sigchld };

    (void)setsid();
    (void)prctl(PR_SET_NAME, "gpud-spawner");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    __fpurge(stdout); /* what the host had buffered is the host's to write */
    __fpurge(stderr);
    gpi_fd_close_others(keep, sizeof keep / sizeof *keep);
    null = open("/dev/null", O_RDWR);
    if (null == 0) {
        (void)dup2(0, 1);
        (void)dup2(0, 2);
    }
}

_Noreturn void gpi_spawner_run(const struct gpi_spawner_plan *plan)
{
    static struct spawner s; /* in a process of its own */

    gpi_process_signals_default();
    s.plan = plan;
    s.host = watch_host(plan->host);
    s.sigchld = gpi_process_sigchld_fd();
    if (s.host < 0 || s.sigchld < 0)
        _exit(71);
    settle(&s);
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        s.p[FIXED + i] = (struct pollfd){ .fd = -1, .events = POLLIN };
    for (int i = 0; i < KEEPERS_MAX; i++)
        s.kept[i].connection = -1;
    s.p[0] = (struct pollfd){ .fd = s.sigchld, .events = POLLIN };
    s.p[1] = (struct pollfd){ .fd = plan->door, .events = POLLIN };
    s.p[2] = (struct pollfd){ .fd = s.host, .events = POLLIN };
    for (int impatient = 0;;) {
        int n = poll(s.p, s.ending ? 1 : used_places(&s), s.ending ? KEEPER_PATIENCE_MS : -1);
        if (n < 0 && errno != EINTR)
            _exit(71);
        on_children(&s);
        for (int i = 0; i < CONNECTIONS_MAX && !s.ending; i++)
            if (*connection(&s, i) >= 0 && s.p[FIXED + i].revents)
                on_connection(&s, i);
        if (!s.ending && s.p[1].revents)
            on_door(&s);
        if (s.p[2].revents)
            s.ending = true;
        if (s.ending && n == 0 && impatient++ == GIVE_UP_AFTER)
            _exit(1); /* what cannot be killed must not hold up gpud_fini */
        if (s.ending)
            end_all(&s, n != 0);
    }
}
