/* SPDX-License-Identifier: MIT */
#include "keeper/keeper.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/refused.h"
#include "base/ways.h"
#include "keeper/lookout.h"
#include "keeper/maker.h"
#include "keeper/stops.h"
#include "keeper/sweep.h"
#include "os/fds.h"
#include "os/message.h"
#include "os/process.h"
#include "wire/hello.h"

#define TELL_TRIES 20
#define TELL_AGAIN_MS 10
#define SWEEP_AGAIN_MS 10

enum phase { EMPTY, RUNNING, SWEEPING };

struct keeper {
    const struct gpi_keeper_plan *plan;
    struct gpi_maker maker;
    struct gpi_page *page; /* the maker's mapping */
    struct gpi_watch host;
    int sigchld;
    enum phase phase;
    bool ending;          /* the host is gone or has sent END */
    pid_t worker;
    uint32_t incarnation;
    struct gpi_control obituary;
    bool told_sweeping;
    int hello;              /* read end, from the start of a program to its handshake; or -1 */
    enum gpi_answer answer;
    struct gpi_hello answered;
    struct gpi_lookout look;
    bool killed;            /* by this keeper */
    /* killed, or the keeper is ending: the worker and all it has started must go */
    bool doomed;
    bool told_denied;
    struct gpi_control due; /* a kill at a later time; at = GPI_NEVER: none */
    bool sweep_again; /* the last sweep could not list the children */
    struct gpi_stops stops;
};

/* For a while the keeper retries a message that it cannot send, for example for lack of memory.  If
 * it still cannot report, it ends, and the spawner reports its death. */
static void tell(struct keeper *k, uint32_t kind, struct gpi_control c)
{
    c.kind = kind;
    c.slot = k->plan->slot;
    c.incarnation = k->incarnation;
    for (int tries = 0; gpi_message_send(k->plan->control, &c, sizeof c, NULL, 0); tries++) {
        struct pollfd gone = { .fd = k->plan->control };
        if ((errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM) || tries == TELL_TRIES) {
            k->ending = true; /* the host is gone or out of reach */
            return;
        }
        (void)poll(&gone, 1, TELL_AGAIN_MS);
    }
}

/* A call that the keeper needs has failed, with errno; UNFIT carries errno and the call to the
 * host. */
static _Noreturn void unfit(const struct keeper *k)
{
    const struct gpi_control c = {
        .kind = GPI_CTL_UNFIT,
        .slot = k->plan->slot,
        .incarnation = k->incarnation,
        .sys_errno = errno,
        .call = gpi_refused_call(errno),
    };

    (void)gpi_message_send(k->plan->control, &c, sizeof c, NULL, 0);
    _exit(71);
}

/* ---- starting ---- */

/* Takes the fds. */
static void start(struct keeper *k, const struct gpi_control *c, const int *fds, size_t n)
{
    pid_t pid;

    if (k->phase != EMPTY) /* the host sends START only after EXITED */
        k->ending = true;
    if (k->ending)
        return;
    k->incarnation = c->incarnation;
    if (n && !gpi_maker_class(&k->maker, fds, n))
        unfit(k);
    atomic_store(&k->page->stopped_ns, 0);
    atomic_store(&k->page->stopped_since, 0);
    k->answer = GPI_ANSWER_NONE;
    k->answered = (struct gpi_hello){ .magic = 0 };
    pid = gpi_maker_fork(&k->maker, k->incarnation, &k->hello);
    if (pid < 0) {
        tell(k, GPI_CTL_STARTED,
             (struct gpi_control){ .sys_errno = errno, .call = gpi_refused_call(errno) });
        return;
    }
    k->worker = pid;
    gpi_stops_reset(&k->stops, c->at);
    k->told_sweeping = k->killed = k->doomed = k->told_denied = false;
    k->due.at = GPI_NEVER;
    k->phase = RUNNING;
    (void)sched_yield(); /* if both share a CPU, the worker is born while the keeper waits */
    tell(k, GPI_CTL_STARTED, (struct gpi_control){ .pid = pid }); /* its first message */
    gpi_lookout_begin(&k->look, pid);
}

/* ---- killing and reaping ---- */

/* If no signal can be sent, the keeper's own end remains: the kernel then sends the signal that the
 * worker has requested at its birth (gpi_process_die_with).  The spawner inherits the worker, reaps
 * it and reports. */
static void kill_worker(struct keeper *k)
{
    uint32_t denied;

    if (k->phase != RUNNING)
        return;
    k->doomed = true;
    gpi_process_prompt(k->worker, true); /* dying takes CPU time, too */
    denied = gpi_process_kill(k->worker, k->look.pidfd);
    int err = errno;
    (void)kill(-k->worker, SIGKILL); /* a worker that was born just now has no group yet */
    if (denied && !k->told_denied)
        tell(k, GPI_CTL_DENIED,
             (struct gpi_control){ .pid = k->worker, .ways = denied, .sys_errno = err });
    k->told_denied = denied;
    if (denied == GPI_WAYS)
        _exit(72);
    gpi_lookout_soon(&k->look);
}

/* Reads the handshake of the started program, if it has arrived. */
static void hear(struct keeper *k)
{
    unsigned char bytes[sizeof(struct gpi_hello) + 1];
    ssize_t n;

    if (k->hello < 0)
        return;
    do
        n = read(k->hello, bytes, sizeof bytes);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return;
    /* one handshake; if the pipe ends without one, gpud_init is out of reach */
    gpi_fd_close(&k->hello);
    if (n <= 0)
        return;
    k->answer = gpi_hello_read(&k->answered, bytes, (size_t)n);
    if (k->answer == GPI_ANSWER_READY)
        tell(k, GPI_CTL_ANSWERED, (struct gpi_control){ .pid = k->worker });
    else if (k->answer != GPI_ANSWER_STEP) /* after STEP the program exits at once */
        kill_worker(k);
}

/* The worker is a zombie: the kernel cannot have recycled its number, nor its group's. */
static void reap_worker(struct keeper *k)
{
    siginfo_t si = { .si_pid = 0 };

    hear(k); /* before EXITED, which carries the handshake */
    gpi_fd_close(&k->hello); /* a process that the program has started may hold it open */
    kill(-k->worker, SIGKILL);
    if (waitid(P_PID, (id_t)k->worker, &si, WEXITED | WNOHANG | __WALL) || si.si_pid == 0)
        return;
    k->obituary = (struct gpi_control){
        .pid = k->worker,
        .exit_kind = si.si_code == CLD_EXITED ? GPUD_EXIT_CODE : GPUD_EXIT_SIGNAL,
        .exit_status = si.si_status,
        .answer = k->answer,
        .step = k->answered.step,
        .version = k->answered.protocol,
        .api = k->answered.api,
        .sys_errno = k->answered.sys_errno,
        .call = k->answered.call,
        .force = k->killed,
    };
    k->due.at = GPI_NEVER;
    gpi_stops_reset(&k->stops, GPI_NEVER);
    k->worker = 0;
    gpi_lookout_end(&k->look);
    k->phase = SWEEPING;
}

/* ---- stops ---- */

static void tell_of_stop(struct keeper *k, uint32_t word)
{
    if (word)
        tell(k, word, (struct gpi_control){ .pid = k->worker });
}

static void note_stop(struct keeper *k, int code)
{
    struct gpi_page *p = k->page;
    uint64_t now = gpi_now(), since = atomic_load(&p->stopped_since);

    if (code == CLD_STOPPED) {
        if (since)
            atomic_fetch_add(&p->stopped_ns, now - since); /* after an unseen continue */
        atomic_store(&p->stopped_since, now);
        atomic_fetch_add(&p->stops, 1);
        tell_of_stop(k, gpi_stops_begin(&k->stops, now));
    } else if (code == CLD_CONTINUED) {
        if (since)
            atomic_fetch_add(&p->stopped_ns, now - since);
        atomic_store(&p->stopped_since, 0);
        atomic_fetch_add(&p->continues, 1);
        tell_of_stop(k, gpi_stops_end(&k->stops));
    }
}

/* Returns whether the worker is stopped by a signal, not by a debugger, while the host runs.  If
 * the state cannot be read, for lack of /proc, the stop counts: otherwise nothing would end a
 * worker that stops itself. */
static bool stop_counts(const struct keeper *k)
{
    const char worker = gpi_process_state(k->worker), host = gpi_process_state(k->host.pid);

    return (worker == 'T' || worker == 'Z' /* its first thread */ || !worker) &&
           host != 'T' && host != 't';
}

static void on_stop_step(struct keeper *k)
{
    if (gpi_stops_next(&k->stops) > gpi_now() ||
        !gpi_stops_step(&k->stops, gpi_now(), stop_counts(k)))
        return;
    tell(k, GPI_CTL_OVERDUE, (struct gpi_control){ .pid = k->worker });
    kill_worker(k);
}

/* ---- changes ---- */

enum taken { TAKEN, NO_CHANGE, NO_CHILD };

/* Takes one waiting change of a child. */
static enum taken take_change(struct keeper *k)
{
    siginfo_t si = { .si_pid = 0 }, gone = { .si_pid = 0 };
    int options = WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT | __WALL;
    bool ended;

    if (waitid(P_ALL, 0, &si, options))
        return errno == ECHILD ? NO_CHILD : NO_CHANGE;
    if (si.si_pid == 0)
        return NO_CHANGE;
    ended = si.si_code == CLD_EXITED || si.si_code == CLD_KILLED || si.si_code == CLD_DUMPED;
    if (ended && si.si_pid == k->worker) {
        reap_worker(k);
        return TAKEN;
    }
    /* This may take a newer change than the one above: a continue that arrived in between. */
    (void)waitid(P_PID, (id_t)si.si_pid, &gone,
                 (ended ? WEXITED : WSTOPPED | WCONTINUED) | WNOHANG | __WALL);
    if (gone.si_pid == k->worker)
        note_stop(k, gone.si_code);
    return TAKEN;
}

static void on_children(struct keeper *k)
{
    struct signalfd_siginfo drop[8];
    bool changes = false;
    enum taken last;
    int left;

    while (read(k->sigchld, drop, sizeof drop) == (ssize_t)sizeof drop)
        ; /* until a read returns fewer than there is room for: the fd is empty */
    while ((last = take_change(k)) == TAKEN)
        changes = true;
    if (k->phase == RUNNING && changes)
        gpi_lookout_soon(&k->look);
    if (k->phase != SWEEPING)
        return;
    left = last == NO_CHILD ? 0 : gpi_sweep(NULL, 0, NULL);
    k->sweep_again = left < 0;
    gpi_lookout_soon(&k->look);
    if (left == 0) {
        gpi_lookout_end(&k->look);
        k->phase = EMPTY;
        tell(k, GPI_CTL_EXITED, k->obituary);
    } else if (!k->told_sweeping) {
        k->told_sweeping = true;
        tell(k, GPI_CTL_SWEEPING, (struct gpi_control){ .kind = 0 });
    }
}

/* The end of the tracers frees the processes they hold; a tracer may be any descendant of the
 * keeper, or be held itself.  The debugger of an administrator is not the keeper's to kill: if one
 * holds the worker, kill_limit decides. */
static void on_look(struct keeper *k)
{
    if (!gpi_lookout_due(&k->look))
        return;
    if (k->phase == RUNNING && !k->doomed && !gpi_lookout_ended(&k->look, k->worker)) {
        gpi_lookout_rarely(&k->look);
        return;
    }
    gpi_sweep_tracers(NULL, 0);
    (void)gpi_sweep(NULL, 0, NULL);
}

/* A kill for a time limit spares a worker with a stop that the host does not know. */
static void on_kill(struct keeper *k, const struct gpi_control *c)
{
    on_children(k);
    if (!c->force && c->stops != atomic_load(&k->page->stops)) {
        tell(k, GPI_CTL_SPARED, (struct gpi_control){ .pid = k->worker });
        return;
    }
    k->killed = true;
    kill_worker(k);
}

/* The host sends this kill ahead of its time, and no further task after it. */
static void on_due(struct keeper *k)
{
    const struct gpi_control c = k->due;

    if (c.at > gpi_now())
        return;
    k->due.at = GPI_NEVER;
    if (atomic_load(&k->page->cell[c.cell].end) >> 8 == c.number)
        tell(k, GPI_CTL_SPARED, (struct gpi_control){ .pid = k->worker });
    else
        on_kill(k, &c);
}

static void on_control(struct keeper *k)
{
    struct gpi_control c;
    int n, fds[GPI_CLASS_FDS_MAX];
    size_t n_fds = 0;

    while ((n = gpi_message_receive(k->plan->control, &c, sizeof c, fds, GPI_CLASS_FDS_MAX,
                                    &n_fds)) > 0 &&
           gpi_control_for_keeper(&c, (size_t)n, n_fds)) {
        if (c.kind == GPI_CTL_START)
            start(k, &c, fds, n_fds);
        else if (c.kind == GPI_CTL_END)
            k->ending = true;
        else if (c.incarnation != k->incarnation || k->phase != RUNNING)
            continue; /* its worker is gone */
        else if (c.kind == GPI_CTL_KILL && c.at)
            k->due = c;
        else if (c.kind == GPI_CTL_KILL)
            on_kill(k, &c);
        else if (c.kind == GPI_CTL_ALARM)
            (void)syscall(SYS_tgkill, k->worker, k->worker, SIGALRM);
        else if (c.kind == GPI_CTL_AWAIT)
            tell_of_stop(k, gpi_stops_awaited(&k->stops));
    }
    if (n >= 0 || errno != EAGAIN)
        k->ending = true;
}

/* A spawner that is stopped would outlive the host, if that is gone: wakes it. */
static void continue_parent(const struct keeper *k)
{
    int fd = gpi_process_pidfd(k->plan->parent);

    if (getppid() == k->plan->parent)
        gpi_process_continue(k->plan->parent, fd);
    gpi_fd_close(&fd);
}

/* No process of the keeper may outlive it.  Called again at each death until no child is left. */
static void end_all(struct keeper *k)
{
    int left, denied;

    kill_worker(k);
    k->doomed = true;
    left = gpi_sweep(NULL, 0, &denied);
    if (left == 0 && getppid() == k->plan->parent)
        continue_parent(k);
    if (left == 0)
        _exit(0);
    if (left > 0 && denied == left)
        _exit(72); /* no signal of the keeper reaches any of them */
    k->sweep_again = left < 0;
    gpi_lookout_soon(&k->look);
}

static void settle(struct keeper *k)
{
    int keep[6 + GPI_MAKE_FDS] = { 0, 1, 2, k->plan->control, k->host.fd, k->sigchld };

    memcpy(keep + 6, k->plan->fds, sizeof k->plan->fds);

    (void)setsid();
    (void)prctl(PR_SET_NAME, "gpud-keeper");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    gpi_process_prompt(0, true);
    gpi_fd_close_others(keep, sizeof keep / sizeof *keep);
}

/* Waits for news, for `pause` milliseconds (-1: indefinitely), or until the next kill, stop step,
 * look or sweep is due. */
static int wait_for_news(const struct keeper *k, struct pollfd *p, int pause)
{
    const uint64_t now = gpi_now();
    uint64_t at = k->look.at, wait;
    struct timespec t;

    if (!k->ending)
        at = gpi_time_min(at, gpi_time_min(k->due.at, gpi_stops_next(&k->stops)));
    if (!k->ending && pause >= 0)
        at = gpi_time_min(at, now + (unsigned)pause * GPI_MS);
    if (k->sweep_again)
        at = gpi_time_min(at, now + SWEEP_AGAIN_MS * GPI_MS);
    wait = at > now ? at - now : 0;
    t = (struct timespec){ .tv_sec = (time_t)(wait / GPI_S), .tv_nsec = (long)(wait % GPI_S) };
    return ppoll(p, k->ending ? 1 : 5, at == GPI_NEVER ? NULL : &t, NULL);
}

_Noreturn void gpi_keeper_run(const struct gpi_keeper_plan *plan)
{
    struct keeper k = {
        .plan = plan,
        .host = plan->host,
        .sigchld = gpi_process_sigchld_fd(),
        .hello = -1,
        .look = GPI_LOOKOUT_NONE,
        .due.at = GPI_NEVER,
        .stops.limit = GPI_NEVER,
    };
    struct pollfd p[5];

    if (k.sigchld < 0 || !gpi_maker_init(&k.maker, plan) || gpi_watch_inherit(&k.host))
        unfit(&k);
    k.page = k.maker.page;
    settle(&k);
    p[0] = (struct pollfd){ .fd = k.sigchld, .events = POLLIN };
    p[1] = (struct pollfd){ .fd = plan->control, .events = POLLIN };
    p[2] = (struct pollfd){ .fd = k.host.fd, .events = POLLIN };
    for (;;) {
        p[3] = (struct pollfd){ .fd = k.hello, .events = POLLIN };
        p[4] = (struct pollfd){ .fd = gpi_lookout_fd(&k.look), .events = POLLIN };
        int n = wait_for_news(&k, p, gpi_watch_pause(&k.host));
        if (n < 0 && errno != EINTR) {
            (void)gpi_refused(GPI_SYS_PPOLL);
            unfit(&k);
        }
        if (k.phase != EMPTY || p[0].revents)
            on_children(&k); /* first: the worker's state bears on the host's requests */
        if (!k.ending && p[4].revents && k.phase == RUNNING)
            gpi_lookout_soon(&k.look);
        on_look(&k);
        if (!k.ending && p[3].revents)
            hear(&k);
        if (!k.ending && p[1].revents)
            on_control(&k);
        if (!k.ending && k.due.at != GPI_NEVER)
            on_due(&k);
        if (!k.ending)
            on_stop_step(&k);
        if (!k.ending && (n == 0 || p[2].revents) && gpi_watch_gone(&k.host))
            k.ending = true;
        if (k.ending)
            end_all(&k);
    }
}
