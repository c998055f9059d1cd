/* SPDX-License-Identifier: MIT */
#include "keeper/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "keeper/sweep.h"
#include "os/fds.h"
#include "os/memory.h"
#include "os/message.h"
#include "os/process.h"

enum phase { EMPTY, RUNNING, SWEEPING };

struct keeper {
    const struct gpi_keeper_plan *plan;
    const struct gpud_definition *definition;
    struct gpi_page *page;
    const unsigned char *input;
    unsigned char *result;
    int sigchld;
    enum phase phase;
    bool ending;          /* the host is gone or said END */
    pid_t worker;
    uint32_t incarnation;
    struct gpi_control obituary;
    bool told_sweeping;
};

static void tell(struct keeper *k, uint32_t kind, struct gpi_control c)
{
    c.kind = kind;
    c.slot = k->plan->slot;
    c.incarnation = k->incarnation;
    (void)gpi_message_send(k->plan->control, &c, sizeof c, NULL, 0); /* fails only when the host is gone */
}

static void *map_whole(int fd, bool writable, uint64_t *ret_size)
{
    struct stat st;

    if (fstat(fd, &st) || st.st_size <= 0)
        return NULL;
    *ret_size = (uint64_t)st.st_size;
    return gpi_memory_map(fd, *ret_size, writable);
}

/* The maps are made once and inherited by each worker. */
static bool map_all(struct keeper *k)
{
    uint64_t page_size = 0, size;

    k->page = map_whole(k->plan->fds[GPI_MAKE_PAGE], true, &page_size);
    k->input = map_whole(k->plan->fds[GPI_MAKE_INPUT], false, &size);
    k->result = map_whole(k->plan->fds[GPI_MAKE_RESULT], true, &size);
    if (!k->page || !k->input || !k->result || page_size < sizeof(struct gpi_page) ||
        k->page->magic != GPI_PAGE_MAGIC || k->page->version != GPI_PAGE_VERSION ||
        k->page->definition >= k->plan->spawner->n_definitions)
        return false;
    k->definition = &k->plan->spawner->definitions[k->page->definition]; /* now: workers can write there */
    return true;
}

/* ---- starting ---- */

static _Noreturn void become_worker(struct keeper *k, pid_t keeper)
{
    const int *fds = k->plan->fds;
    const struct gpi_worker_plan plan = {
        .definition = k->definition,
        .page = k->page,
        .input = k->input,
        .result = k->result,
        .orders = fds[GPI_MAKE_ORDERS],
        .looks = fds[GPI_MAKE_LOOKS],
        .output = fds[GPI_MAKE_OUTPUT],
        .incarnation = k->incarnation,
        .keeper = keeper,
    };

    k->plan->spawner->worker(&plan);
    _exit(70); /* the worker function does not return */
}

static void start(struct keeper *k, uint32_t incarnation)
{
    pid_t self = getpid(), pid;

    if (k->phase != EMPTY || k->ending)
        return; /* the host asks only after EXITED */
    k->incarnation = incarnation;
    atomic_store(&k->page->stopped_ns, 0);
    atomic_store(&k->page->stopped_since, 0);
    pid = fork();
    if (pid == 0)
        become_worker(k, self);
    if (pid < 0) {
        tell(k, GPI_CTL_STARTED, (struct gpi_control){ .sys_errno = errno });
        return;
    }
    k->worker = pid;
    k->told_sweeping = false;
    k->phase = RUNNING;
    tell(k, GPI_CTL_STARTED, (struct gpi_control){ .pid = pid });
}

/* ---- killing and reaping ---- */

static void kill_worker(const struct keeper *k)
{
    if (k->phase != RUNNING)
        return;
    gpi_process_prompt(k->worker, true); /* dying takes CPU, too */
    kill(-k->worker, SIGKILL);
    kill(k->worker, SIGKILL); /* it may not have made its group yet */
}

/* The worker is a zombie: its number, and its group's, cannot have been recycled. */
static void reap_worker(struct keeper *k)
{
    siginfo_t si = { .si_pid = 0 };

    kill(-k->worker, SIGKILL);
    if (waitid(P_PID, (id_t)k->worker, &si, WEXITED | WNOHANG | __WALL) || si.si_pid == 0)
        return;
    k->obituary = (struct gpi_control){
        .pid = k->worker,
        .exit_kind = si.si_code == CLD_EXITED ? GPUD_EXIT_CODE : GPUD_EXIT_SIGNAL,
        .exit_status = si.si_status,
    };
    k->worker = 0;
    k->phase = SWEEPING;
}

static void note_stop(struct keeper *k, int code)
{
    struct gpi_page *p = k->page;
    uint64_t now = gpi_now(), since = atomic_load(&p->stopped_since);

    if (code == CLD_STOPPED) {
        if (since)
            atomic_fetch_add(&p->stopped_ns, now - since); /* its continue was overtaken */
        atomic_store(&p->stopped_since, now);
        atomic_fetch_add(&p->stops, 1);
    } else if (code == CLD_CONTINUED) {
        if (since)
            atomic_fetch_add(&p->stopped_ns, now - since);
        atomic_store(&p->stopped_since, 0);
        atomic_fetch_add(&p->continues, 1);
    }
}

/* Takes one waiting change of a child; false when there is none. */
static bool take_change(struct keeper *k)
{
    siginfo_t si = { .si_pid = 0 }, gone = { .si_pid = 0 };
    int options = WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT | __WALL;
    bool ended;

    if (waitid(P_ALL, 0, &si, options) || si.si_pid == 0)
        return false;
    ended = si.si_code == CLD_EXITED || si.si_code == CLD_KILLED || si.si_code == CLD_DUMPED;
    if (ended && si.si_pid == k->worker) {
        reap_worker(k);
        return true;
    }
    /* What is taken may be newer than what was seen: a continue that came in between. */
    (void)waitid(P_PID, (id_t)si.si_pid, &gone, (ended ? WEXITED : WSTOPPED | WCONTINUED) | WNOHANG | __WALL);
    if (gone.si_pid == k->worker)
        note_stop(k, gone.si_code);
    return true;
}

static void on_children(struct keeper *k)
{
    struct signalfd_siginfo drop[8];

    while (read(k->sigchld, drop, sizeof drop) > 0)
        ;
    while (take_change(k))
        ;
    if (k->phase != SWEEPING)
        return;
    if (gpi_sweep(NULL, 0) == 0) {
        k->phase = EMPTY;
        tell(k, GPI_CTL_EXITED, k->obituary);
    } else if (!k->told_sweeping) {
        k->told_sweeping = true;
        tell(k, GPI_CTL_SWEEPING, (struct gpi_control){ .kind = 0 });
    }
}

/* A kill for a time limit spares a worker that was stopped without the host's knowledge. */
static void on_kill(struct keeper *k, const struct gpi_control *c)
{
    if (c->incarnation != k->incarnation || k->phase != RUNNING)
        return;
    on_children(k);
    if (!c->force && c->stops != atomic_load(&k->page->stops)) {
        tell(k, GPI_CTL_SPARED, (struct gpi_control){ .pid = k->worker });
        return;
    }
    kill_worker(k);
}

static void on_control(struct keeper *k)
{
    struct gpi_control c;
    int n;

    while ((n = gpi_message_receive(k->plan->control, &c, sizeof c, NULL, 0, NULL)) == (int)sizeof c) {
        if (c.kind == GPI_CTL_START)
            start(k, c.incarnation);
        else if (c.kind == GPI_CTL_KILL)
            on_kill(k, &c);
        else if (c.kind == GPI_CTL_ALARM && c.incarnation == k->incarnation && k->phase == RUNNING)
            (void)syscall(SYS_tgkill, k->worker, k->worker, SIGALRM);
        else if (c.kind == GPI_CTL_END)
            k->ending = true;
    }
    if (n >= 0 || errno != EAGAIN)
        k->ending = true;
}

/* Nothing of ours may outlive us.  Called again at each death until there is no child. */
static void end_all(struct keeper *k)
{
    kill_worker(k);
    if (gpi_sweep(NULL, 0) == 0)
        _exit(0);
}

static void settle(struct keeper *k)
{
    const int *fds = k->plan->fds;
    const int keep[] = { k->plan->control, k->plan->host, k->sigchld, fds[GPI_MAKE_ORDERS], fds[GPI_MAKE_LOOKS], fds[GPI_MAKE_OUTPUT], 0, 1, 2 };

    (void)setsid();
    (void)prctl(PR_SET_NAME, "gpud-keeper");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    gpi_process_prompt(0, true);
    gpi_fd_close_others(keep, sizeof keep / sizeof *keep);
}

_Noreturn void gpi_keeper_run(const struct gpi_keeper_plan *plan)
{
    struct keeper k = { .plan = plan, .sigchld = gpi_process_sigchld_fd() };
    struct pollfd p[3];

    if (k.sigchld < 0 || !map_all(&k))
        _exit(71);
    settle(&k);
    p[0] = (struct pollfd){ .fd = k.sigchld, .events = POLLIN };
    p[1] = (struct pollfd){ .fd = plan->control, .events = POLLIN };
    p[2] = (struct pollfd){ .fd = plan->host, .events = POLLIN };
    for (;;) {
        if (poll(p, k.ending ? 1 : 3, -1) < 0 && errno != EINTR)
            _exit(71);
        on_children(&k); /* first: what happened to the worker bears on what the host asks */
        if (!k.ending && p[1].revents)
            on_control(&k);
        if (!k.ending && p[2].revents)
            k.ending = true;
        if (k.ending)
            end_all(&k);
    }
}
