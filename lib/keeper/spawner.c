/* SPDX-License-Identifier: MIT */
#include "keeper/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/keeper.h"
#include "keeper/lookout.h"
#include "keeper/sweep.h"
#include "os/fds.h"
#include "os/message.h"
#include "os/process.h"
#include "wire/control.h"
#include "wire/hello.h"

#define CONNECTIONS_MAX GPI_CONNECTIONS_MAX
#define KEEPERS_MAX GPI_KEEPERS_MAX
#define KEPT_MAX (KEEPERS_MAX + CONNECTIONS_MAX) /* keepers, and one monitor per connection */
#define KEEPER_PATIENCE_MS 300 /* of the second that C11 allows */
#define GIVE_UP_AFTER 3        /* after that many such pauses */
#define OWED_MAX (2 * KEEPERS_MAX) /* of each keeper: MADE and GONE */
#define AGAIN_MS 10
#define FIXED 3             /* pollfds before those of the connections */

_Static_assert(KEPT_MAX <= GPI_SWEEP_SPARED, "all that live are spared");

/* A keeper, or a monitor. */
struct kept {
    pid_t pid; /* 0 = free; negative = dead, the spawner sweeps its remains */
    uint32_t slot;
    int connection; /* index, -1 = its dispatcher is gone */
    bool monitor;   /* no message reports its death */
};

/* A message that could not be sent yet, for lack of memory or of room in the socket. */
struct owed {
    int connection;
    struct gpi_control c;
};

struct spawner {
    const struct gpi_spawner_plan *plan;
    struct gpi_watch host;
    int sigchld;
    bool ending;
    struct owed owed[OWED_MAX]; /* oldest first */
    uint32_t n_owed;
    bool remains;     /* a dead keeper or monitor may have left processes */
    bool sweep_again; /* the last sweep could not list the children */
    struct gpi_lookout look; /* while remains are left */
    struct pollfd p[FIXED + CONNECTIONS_MAX];
    struct kept kept[KEPT_MAX];
};

static int *connection(struct spawner *s, int i)
{
    return &s->p[FIXED + i].fd;
}

/* Counts the places up to the last connection: poll refuses more places than the process may have
 * fds. */
static nfds_t used_places(const struct spawner *s)
{
    nfds_t n = FIXED + CONNECTIONS_MAX;

    while (n > FIXED && s->p[n - 1].fd < 0)
        n--;
    return n;
}

/* ---- messages ---- */

static bool for_now(int err)
{
    return err == EAGAIN || err == ENOBUFS || err == ENOMEM || err == ETOOMANYREFS;
}

/* Sends the owed messages, oldest first, as far as memory and sockets allow now. */
static void say_again(struct spawner *s)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < s->n_owed; i++) {
        struct owed *o = &s->owed[i];
        bool waits = false;
        for (uint32_t k = 0; k < kept; k++)
            waits |= s->owed[k].connection == o->connection;
        if (waits ||
            (*connection(s, o->connection) >= 0 &&
             gpi_message_send(*connection(s, o->connection), &o->c, sizeof o->c, NULL, 0) &&
             for_now(errno)))
            s->owed[kept++] = *o;
    }
    s->n_owed = kept;
}

/* Sends a message now or, without its fd, later.  A MADE without its fd becomes the error it is. */
static void say(struct spawner *s, int conn, struct gpi_control c, int fd)
{
    bool waits = false;

    for (uint32_t i = 0; i < s->n_owed; i++)
        waits |= s->owed[i].connection == conn;
    if (!waits &&
        (gpi_message_send(*connection(s, conn), &c, sizeof c, &fd, fd >= 0 ? 1 : 0) == 0 ||
         !for_now(errno)))
        return;
    if (c.kind == GPI_CTL_MADE && c.sys_errno == 0)
        /* the keeper reads the end of its control socket, and exits */
        c.sys_errno = waits ? ENOBUFS : errno;
    if (s->n_owed < OWED_MAX)
        s->owed[s->n_owed++] = (struct owed){ .connection = conn, .c = c };
}

/* ---- remains ---- */

/* Children that are neither keepers nor monitors are the remains of dead ones. */
static int sweep_remains(const struct spawner *s, bool tracers)
{
    pid_t alive[KEPT_MAX];
    size_t n = 0;

    for (int i = 0; i < KEPT_MAX; i++)
        if (s->kept[i].pid > 0)
            alive[n++] = s->kept[i].pid;
    if (tracers)
        gpi_sweep_tracers(alive, n);
    return gpi_sweep(alive, n, NULL);
}

/* ---- keepers ---- */

static struct kept *free_place(struct spawner *s)
{
    for (int i = 0; i < KEPT_MAX; i++)
        if (s->kept[i].pid == 0)
            return &s->kept[i];
    return NULL;
}

static _Noreturn void become_keeper(const struct spawner *s, pid_t spawner, uint32_t slot,
                                    int control, const int *fds, size_t n)
{
    static struct gpi_keeper_plan plan; /* static: the keeper is a process of its own */

    plan = (struct gpi_keeper_plan){
        .spawner = s->plan, .parent = spawner, .slot = slot, .control = control, .host = s->host
    };
    memcpy(plan.fds, fds, n * sizeof *fds);
    gpi_keeper_run(&plan);
}

/* Forks a keeper.  Returns 0 with its pid and the host's end of its control socket, or an errno. */
static int fork_keeper(struct spawner *s, int conn, uint32_t slot, const int *fds, size_t n,
                       pid_t *ret_pid, int *ret_control)
{
    struct kept *place = free_place(s);
    const pid_t self = getpid();
    int pair[2];
    pid_t pid;

    if (!place)
        return EAGAIN;
    if (gpi_message_pair(pair))
        return errno;
    pid = gpi_process_fork();
    if (pid == 0)
        become_keeper(s, self, slot, pair[1], fds, n);
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

    answer.sys_errno = fork_keeper(s, conn, c->slot, fds, n, &pid, &control);
    answer.call = gpi_refused_call(answer.sys_errno);
    answer.pid = pid;
    say(s, conn, answer, control);
    gpi_fd_close(&control);
}

/* ---- monitors ---- */

static _Noreturn void become_monitor(const struct spawner *s, pid_t spawner, int socket)
{
    (void)setsid();
    if (!gpi_process_die_with(spawner))
        _exit(74);
    s->plan->monitor(socket);
    _exit(70); /* not reached: a monitor does not return */
}

/* Forks a monitor.  Where that fails there is no reply: the host reads the end of the socket. */
static void make_monitor(struct spawner *s, int conn, int socket)
{
    struct kept *place = free_place(s);
    const pid_t self = getpid();
    pid_t pid = place && s->plan->monitor ? fork() : -1;

    if (pid == 0)
        become_monitor(s, self, socket);
    if (pid > 0)
        *place = (struct kept){ .pid = pid, .connection = conn, .monitor = true };
}

/* Kills a monitor; no process waits for its end, since one in D state does not die. */
static void kill_monitor(const struct kept *k)
{
    if (k->monitor && k->pid > 0)
        (void)gpi_process_kill(k->pid, -1);
}

/* Returns whether only monitors are left of all processes below the spawner. */
static bool only_monitors(const struct spawner *s)
{
    for (int i = 0; i < KEPT_MAX; i++)
        if (s->kept[i].pid && !s->kept[i].monitor)
            return false;
    return sweep_remains(s, false) == 0;
}

/* ---- requests ---- */

static void hang_up(struct spawner *s, int conn)
{
    gpi_fd_close(connection(s, conn));
    for (int i = 0; i < KEPT_MAX; i++)
        if (s->kept[i].connection == conn) {
            s->kept[i].connection = -1;
            kill_monitor(&s->kept[i]);
        }
    say_again(s); /* drops the messages owed to it */
}

/* Kills a stopped keeper, which would not end on its own.  Only the spawner reaps it, so its number
 * is no other process's. */
static void drop(const struct spawner *s, int conn, const struct gpi_control *c)
{
    for (int i = 0; i < KEPT_MAX; i++) {
        const struct kept *k = &s->kept[i];
        if (k->pid == c->pid && k->connection == conn && k->slot == c->slot && !k->monitor)
            (void)gpi_process_kill(k->pid, -1);
    }
}

static void on_connection(struct spawner *s, int conn)
{
    struct gpi_control c;
    int fds[GPI_MESSAGE_FDS];
    size_t n = 0;
    int r = gpi_message_receive(*connection(s, conn), &c, sizeof c, fds, GPI_MESSAGE_FDS, &n);

    if (r < 0 && errno == EAGAIN)
        return;
    /* a MAKE that has lost its fds on the way */
    if (r == (int)sizeof c && c.kind == GPI_CTL_MAKE && !gpi_control_for_spawner(&c, (size_t)r, n))
        say(s, conn,
            (struct gpi_control){ .kind = GPI_CTL_MADE, .slot = c.slot, .sys_errno = EBADF }, -1);
    else if (r > 0 && gpi_control_for_spawner(&c, (size_t)r, n) && c.kind == GPI_CTL_MAKE)
        make(s, conn, &c, fds, n);
    else if (r > 0 && gpi_control_for_spawner(&c, (size_t)r, n) && c.kind == GPI_CTL_DROP)
        drop(s, conn, &c);
    /* n = 0: it has lost its fd on the way, which ends that socket */
    else if (r == (int)sizeof c && c.kind == GPI_CTL_MONITOR && n <= 1) {
        if (n)
            make_monitor(s, conn, fds[0]);
    } else
        hang_up(s, conn); /* BYE, the end, or no valid message */
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

static void tell_gone(struct spawner *s, struct kept *k)
{
    struct gpi_control c = { .kind = GPI_CTL_GONE, .slot = k->slot, .pid = -k->pid };

    if (k->connection >= 0)
        say(s, k->connection, c, -1);
    *k = (struct kept){ .pid = 0, .connection = -1 };
}

static bool reap_one(struct spawner *s)
{
    siginfo_t si = { .si_pid = 0 };

    if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | __WALL) || si.si_pid == 0)
        return false;
    for (int i = 0; i < KEPT_MAX; i++) {
        struct kept *k = &s->kept[i];
        if (k->pid != si.si_pid)
            continue;
        s->remains = true;
        if (k->monitor)
            *k = (struct kept){ .pid = 0, .connection = -1 };
        else
            k->pid = -k->pid;
    }
    return true;
}

static void on_children(struct spawner *s)
{
    struct signalfd_siginfo drop[8];
    int left;

    while (read(s->sigchld, drop, sizeof drop) > 0)
        ;
    while (reap_one(s))
        ;
    if (!s->remains)
        return;
    left = sweep_remains(s, gpi_lookout_due(&s->look));
    s->sweep_again = left < 0;
    s->remains = left != 0;
    if (left)
        gpi_lookout_soon(&s->look);
    else
        gpi_lookout_end(&s->look);
    for (int i = 0; i < KEPT_MAX && !left; i++)
        if (s->kept[i].pid < 0)
            tell_gone(s, &s->kept[i]);
}

/* Each keeper watches the host itself; the spawner sweeps the remains of a dead keeper.  A keeper
 * that does not end in time, since it is stopped, is killed, and so becomes a dead one. */
static void end_all(struct spawner *s, bool patience)
{
    for (int i = 0; i < KEPT_MAX; i++) {
        kill_monitor(&s->kept[i]);
        if (s->host.hint && s->kept[i].pid > 0)
            kill(s->kept[i].pid, SIGHUP); /* without pidfds a signal wakes them */
    }
    if (patience) {
        (void)sweep_remains(s, false);
    } else {
        gpi_sweep_tracers(NULL, 0);
        (void)gpi_sweep(NULL, 0, NULL);
    }
    if (gpi_sweep_childless())
        _exit(0);
}

/* ---- birth ---- */

/* Sends the handshake: the only message to the process that has started the spawner. */
static bool reply(const struct gpi_spawner_plan *plan, enum gpi_answer what, int sys_errno)
{
    const struct gpi_hello h = {
        .magic = GPI_HELLO_MAGIC, .answer = what, .protocol = GPI_PROTOCOL, .api = GPUD_API_NUMBER,
        .sys_errno = sys_errno, .pid = getpid(), .step = GPI_STEP_SPAWNER,
        .call = gpi_refused_call(sys_errno),
    };

    return gpi_message_send(plan->door, &h, sizeof h, NULL, 0) == 0 ||
           write(plan->door, &h, sizeof h) == (ssize_t)sizeof h; /* a filter may refuse sendmsg */
}

static _Noreturn void unfit(const struct gpi_spawner_plan *plan)
{
    (void)reply(plan, GPI_ANSWER_STEP, errno);
    _exit(71);
}

/* Ends a spawner that cannot go on; UNFIT carries the cause to each dispatcher. */
static _Noreturn void fail(struct spawner *s)
{
    const struct gpi_control c = {
        .kind = GPI_CTL_UNFIT, .sys_errno = errno, .call = GPI_SYS_POLL
    };

    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (*connection(s, i) >= 0)
            (void)gpi_message_send(*connection(s, i), &c, sizeof c, NULL, 0);
    _exit(71);
}

/* Tries the calls that the spawner and its keepers need to serve: later such a failure would mean
 * silence, or a process that spins. */
static int rehearse(struct spawner *s)
{
    const struct timespec at_once = { .tv_sec = 0 };
    struct signalfd_siginfo drop[8];
    siginfo_t si;

    if (poll(s->p, used_places(s), 0) < 0 && errno != EINTR)
        return gpi_refused(GPI_SYS_POLL);
    if (ppoll(s->p, used_places(s), &at_once, NULL) < 0 && errno != EINTR)
        return gpi_refused(GPI_SYS_PPOLL);
    if (read(s->sigchld, drop, sizeof drop) < 0 && errno != EAGAIN && errno != EINTR &&
        errno != EINVAL) /* for a buffer too small, as in the fault suite; no filter returns it */
        return gpi_refused(GPI_SYS_READ);
    if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) && errno != ECHILD)
        return gpi_refused(GPI_SYS_WAITID);
    return 0;
}

static int settle(struct spawner *s)
{
    int null;
    const int keep[] = { s->plan->door, s->host.fd, s->sigchld };

    (void)setsid();
    (void)prctl(PR_SET_NAME, "gpud-spawner");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1)) /* without it orphans of its workers are out of reach */
        return gpi_refused(GPI_SYS_PRCTL);
    __fpurge(stdout); /* text that the host has buffered is the host's to write */
    __fpurge(stderr);
    gpi_fd_close_others(keep, sizeof keep / sizeof *keep);
    null = open("/dev/null", O_RDWR);
    if (null == 0) {
        (void)dup2(0, 1);
        (void)dup2(0, 2);
    }
    return 0;
}

static int watch_host(struct spawner *s)
{
    if (s->plan->host_fd < 0)
        return gpi_watch_parent(&s->host, s->plan->host);
    s->host = (struct gpi_watch){ .fd = s->plan->host_fd };
    return 0;
}

static void lay_out(struct spawner *s)
{
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        s->p[FIXED + i] = (struct pollfd){ .fd = -1, .events = POLLIN };
    for (int i = 0; i < KEPT_MAX; i++)
        s->kept[i].connection = -1;
    s->p[0] = (struct pollfd){ .fd = s->sigchld, .events = POLLIN };
    s->p[1] = (struct pollfd){ .fd = s->plan->door, .events = POLLIN };
    s->p[2] = (struct pollfd){ .fd = s->host.fd, .events = POLLIN };
}

static bool has_room(struct spawner *s)
{
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (*connection(s, i) < 0)
            return true;
    return false;
}

/* Handles one message of each connection that has one. */
static bool hear_connections(struct spawner *s)
{
    bool heard = false;

    for (int i = 0; i < CONNECTIONS_MAX && !s->ending; i++)
        if (*connection(s, i) >= 0 && s->p[FIXED + i].revents) {
            on_connection(s, i);
            heard = true;
        }
    return heard;
}

static int pause_ms(const struct spawner *s)
{
    if (s->ending)
        return KEEPER_PATIENCE_MS;
    if (s->n_owed || s->sweep_again)
        return AGAIN_MS;
    return gpi_lookout_ms(&s->look, gpi_watch_pause(&s->host));
}

_Noreturn void gpi_spawner_run(const struct gpi_spawner_plan *plan)
{
    static struct spawner s; /* static: the spawner is a process of its own */

    s.plan = plan;
    s.look = (struct gpi_lookout)GPI_LOOKOUT_NONE;
    if (gpi_process_signals_default() || (s.sigchld = gpi_process_sigchld_fd()) < 0 ||
        watch_host(&s) || settle(&s))
        unfit(plan);
    lay_out(&s);
    if (rehearse(&s))
        unfit(plan);
    if (!reply(plan, GPI_ANSWER_READY, 0))
        _exit(71); /* the host reads the end of the door */
    for (int impatient = 0;;) {
        bool heard;
        int n = poll(s.p, s.ending ? 1 : used_places(&s), pause_ms(&s));
        if (n < 0 && errno != EINTR)
            fail(&s);
        if (s.n_owed && !s.ending)
            say_again(&s);
        on_children(&s);
        heard = hear_connections(&s);
        /* if places are short, first serve the connections: the next message may be a BYE */
        if (!s.ending && s.p[1].revents && (!heard || has_room(&s)))
            on_door(&s);
        if (!s.ending && (n == 0 || s.p[2].revents) && gpi_watch_gone(&s.host))
            s.ending = true, n = 1;
        if (s.ending && n == 0 && (only_monitors(&s) || impatient++ == GIVE_UP_AFTER))
            _exit(1); /* a process that nothing can kill must not hold up gpud_fini */
        if (s.ending)
            end_all(&s, n != 0);
    }
}
