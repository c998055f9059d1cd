/* SPDX-License-Identifier: MIT */
/*
 * main.c - gpudispatch-agent: opens everything in order, turns until it shall end, closes.
 *
 * settings.h has its options.  Instead, it checks the state directory with --fsck (fsck.h), and
 * prints the records of a closed store with --records (closed.h).
 *
 * SIGTERM and SIGINT end it and leave commands running.  Exit status: 0; 1: it could not start;
 * 2: usage; 75: the state directory is unusable, or another agent owns it.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "queue/agent/adopt.h"
#include "queue/agent/ahead.h"
#include "queue/agent/closed.h"
#include "queue/agent/define.h"
#include "queue/agent/descriptors.h"
#include "queue/agent/dispatch.h"
#include "queue/agent/fsck.h"
#include "queue/agent/forget.h"
#include "queue/agent/marks.h"
#include "queue/agent/notify.h"
#include "queue/agent/now.h"
#include "queue/agent/points.h"
#include "queue/agent/recent.h"
#include "queue/agent/retention.h"
#include "queue/agent/runs.h"
#include "queue/agent/settings.h"
#include "queue/agent/spans.h"
#include "queue/agent/turn.h"
#include "queue/agent/watch.h"
#include "queue/agent/workers.h"
#include "queue/files/lock.h"
#include "queue/files/reserve.h"
#include "queue/files/statedir.h"
#include "queue/files/stopped.h"

/* Set by an agent that has started itself anew: it does so once. */
#define AGAIN "GPUDISPATCH_AGENT_AGAIN"
enum { EVENTS = 64 };
/* For this long a reason why nothing starts is not logged again. */
#define QUIET UINT64_C(60000000000)

uint64_t gpq_wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec +
           (uint64_t)gpq_clock_ahead();
}

uint64_t gpq_monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t gpq_wall_of(uint64_t monotonic)
{
    return monotonic == 0 ? 0 : gpq_wall() + monotonic - gpq_monotonic();
}

/* Of a line in a file such as agent.log (RFC 3339): journals and terminals need none. */
static void put_time(char ret[40])
{
    struct stat st;
    struct tm then;
    time_t now = (time_t)(gpq_wall() / 1000000000);
    size_t n = 0;
    ret[0] = '\0';
    if (fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode) && localtime_r(&now, &then))
        n = strftime(ret, 32, "%Y-%m-%dT%H:%M:%S%z", &then);
    if (n < 5)
        return;
    memmove(ret + n - 1, ret + n - 2, 3); /* +0100 is +01:00 */
    ret[n - 2] = ':';
    memcpy(ret + n + 1, " ", 2);
}

void gpq_log(const char *format, ...)
{
    char text[1024], at[40];
    va_list list;
    put_time(at);
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    fprintf(stderr, "%sgpudispatch-agent: %s\n", at, text);
}

static bool is_reason(const char *text, const char *why)
{
    return strncmp(text, why, GPQ_REASON - 1) == 0;
}

/* A full disk alternates between two reasons, twice a second: each is logged once a minute. */
static bool was_logged(struct gpq_agent *a, const char *why)
{
    uint64_t now = gpq_monotonic();
    for (int i = 0; i < 2; i++)
        if (is_reason(a->logged[i].text, why) && now - a->logged[i].at < QUIET)
            return true;
    struct gpq_logged *older = &a->logged[a->logged[0].at > a->logged[1].at];
    snprintf(older->text, sizeof(older->text), "%s", why);
    older->at = now;
    return false;
}

void gpq_starts_wait(struct gpq_agent *a, const char *why)
{
    a->starts_wait = true;
    if (is_reason(a->wait_text, why))
        return;
    snprintf(a->wait_text, sizeof(a->wait_text), "%s", why);
    if (!was_logged(a, why))
        gpq_log("nothing starts: %s", why);
}

int gpq_watch(struct gpq_agent *a, struct gpq_watched *w, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = w };
    if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, w->fd, &event) == 0 ||
        (errno == EEXIST && epoll_ctl(a->epoll, EPOLL_CTL_MOD, w->fd, &event) == 0))
        return 0;
    return GPQ_ENOMEM;
}

void gpq_unwatch(struct gpq_agent *a, struct gpq_watched *w)
{
    if (w->fd >= 0)
        (void)epoll_ctl(a->epoll, EPOLL_CTL_DEL, w->fd, NULL);
}

/* ---- Start ---- */

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    if (GPQ_CLOCK_SIGNAL != 0)
        sigaddset(&set, GPQ_CLOCK_SIGNAL);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int open_loop(struct gpq_agent *a, struct gpq_watched watched[3], struct gpq_error *e)
{
    a->timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    watched[0] = (struct gpq_watched){ GPQ_SOURCE_SIGNALS, a->signals, NULL };
    watched[1] = (struct gpq_watched){ GPQ_SOURCE_TIMER, a->timer, NULL };
    watched[2] =
        (struct gpq_watched){ GPQ_SOURCE_DISPATCHER, gpud_dispatcher_fd(a->dispatcher), NULL };
    for (int i = 0; i < 3; i++)
        if (watched[i].fd < 0 || gpq_watch(a, &watched[i], EPOLLIN) < 0)
            return gpq_fail(e, GPQ_ENOMEM, "no descriptors: %s", strerror(errno));
    return 0;
}

/* SQLite makes files by the umask, which commands inherit and therefore comes back. */
static int open_store(struct gpq_agent *a, struct gpq_error *e)
{
    mode_t before = umask(077);
    int code = gpq_sqlite_open(&(struct gpq_options){ .directory = a->state }, &a->store, e);
    (void)umask(before);
    return code;
}

/* Makes the reserve where it is not there.  While it cannot, nothing starts.  [Q9] */
static void keep_reserve(struct gpq_agent *a)
{
    if (!gpq_reserve_there(&gpq_system_files, a->state, GPQ_RESERVE) &&
        gpq_reserve_make(&gpq_system_files, a->state, GPQ_RESERVE) < 0)
        gpq_starts_wait(a, "the disk has no space for the reserve");
}

/* Commands are adopted before the dispatcher gets other work, and before a client is heard. */
static int open_all(struct gpq_agent *a, const struct gpq_settings *s,
                    struct gpq_watched watched[3], struct gpq_error *e)
{
    struct gpq_places places;
    char path[GPQ_PATH];
    gpq_places_read(s->state, &places);
    int code = gpq_places_find(&places, path, e);
    if (code == 0)
        code = gpq_statedir_make(path, s->allow_network, a->state, e);
    if (code == 0)
        code = gpq_statedir_own(a->state, &a->lock, e);
    if (code == 0)
        gpq_stopped_clear(a->state);
    if (code == 0 && gpq_boot_read(a->boot) < 0)
        code = gpq_fail(e, GPQ_EIO, "the id of this boot cannot be read");
    if (code == 0)
        code = open_store(a, e);
    if (code == 0 && gpq_work_open(a) < 0)
        code = gpq_fail(e, GPQ_ENOMEM, "no memory");
    if (code == 0)
        code = gpq_dispatch_open(a, s->devices, s->cpus, e);
    if (code == 0)
        code = gpq_classes_open(a, &s->config, e);
    if (code == 0)
        code = open_loop(a, watched, e);
    if (code == 0)
        code = gpq_adopt(a, e);
    if (code == 0)
        code = gpq_forget_open(a, e);
    if (code == 0)
        code = gpq_retention_open(a, e);
    if (code == 0)
        code = gpq_spans_open(a, e);
    if (code == 0)
        code = gpq_now_open(a, e);
    if (code == 0)
        code = gpq_ahead_open(a, e);
    if (code == 0)
        code = gpq_server_open(a, e);
    if (code == 0)
        keep_reserve(a);
    return code;
}

/* A service manager waits for READY=1 (sd_notify(3)). */
static void notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, path, strlen(path));
    if (path[0] == '@')
        to.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to, size);
    close(fd);
}

/* ---- The loop ---- */

/* Runners, notifications, and processes that a killed runner has left to this subreaper. */
static void reap(struct gpq_agent *a)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        gpq_notify_reaped(a, pid, status);
}

/* A run that has not ended all the same is looked at again in a second.  Until then its descriptor
 * is out of the set: that of a reaped process reports its hang-up without being asked. */
static void hear_run(struct gpq_agent *a, struct gpq_unit *u)
{
    if (gpq_runs_ended(a, u))
        return;
    gpq_unwatch(a, &u->runner);
    a->look_again = true;
}

static void look_again(struct gpq_agent *a, struct gpq_unit *u, void *user)
{
    (void)user;
    if (u->phase != GPQ_RUNS || u->class)
        return;
    if (u->runner.fd < 0)
        hear_run(a, u);
    else if (gpq_watch(a, &u->runner, EPOLLIN) < 0)
        a->look_again = true;
}

static void hear_timer(struct gpq_agent *a)
{
    bool again = a->look_again;
    a->timer_at = a->retry_at = 0;
    if (a->starts_wait) {
        a->starts_wait = false;
        keep_reserve(a); /* space may have come back */
        gpq_ahead_again(a);
    }
    a->look_again = false;
    gpq_notify_time(a);
    gpq_retention_time(a);
    if (again)
        gpq_work_each(a, look_again, NULL);
}

static void hear_signals(struct gpq_agent *a)
{
    struct signalfd_siginfo info;
    while (read(a->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo == SIGCHLD)
            reap(a);
        else if (GPQ_CLOCK_SIGNAL != 0 && info.ssi_signo == GPQ_CLOCK_SIGNAL)
            hear_timer(a);
        else
            a->stop.now = a->over = true;
}

static void hear(struct gpq_agent *a, const struct epoll_event *event)
{
    struct gpq_watched *w = event->data.ptr;
    uint64_t expired;
    switch (w->source) {
    case GPQ_SOURCE_SIGNALS:
        hear_signals(a);
        break;
    case GPQ_SOURCE_TIMER:
        (void)!read(a->timer, &expired, sizeof(expired)); /* or the clock was set: ECANCELED */
        hear_timer(a);
        break;
    case GPQ_SOURCE_RUN:
        hear_run(a, w->owner);
        break;
    case GPQ_SOURCE_LISTENER:
    case GPQ_SOURCE_CLIENT:
        gpq_server_ready(a, w, event->events);
        break;
    default: /* of the dispatcher: each turn reads its events */
        break;
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The timer is for the store's next time and those of notifications and retention, or a second
 * ahead where something is tried again. */
static void set_timer(struct gpq_agent *a)
{
    uint64_t at = a->next_due, now = gpq_wall(), soon = now + UINT64_C(1000000000);
    if (!a->look_again && !a->starts_wait)
        a->retry_at = 0;
    else if (a->retry_at == 0 || a->retry_at > soon) /* or the clock was set back */
        a->retry_at = soon;
    if (a->retry_at != 0 && (at == 0 || at > a->retry_at || at <= now))
        at = a->retry_at;
    at = earlier(at, earlier(gpq_notify_next(a), gpq_retention_next(a)));
    at = earlier(at, gpq_spans_next(a));
    at = earlier(at, gpq_watch_next(a));
    if (at == a->timer_at)
        return;
    uint64_t real = at != 0 ? at - (uint64_t)gpq_clock_ahead() : 0;
    struct itimerspec when = { .it_value = { (time_t)(real / 1000000000),
                                             (long)(real % 1000000000) } };
    (void)timerfd_settime(a->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL);
    a->timer_at = at;
}

static void cancel_run(struct gpq_agent *a, struct gpq_unit *u, void *user)
{
    (void)user;
    if (u->phase == GPQ_RUNS && (!u->class || gpq_workers_run(a, u)))
        gpq_runs_cancel(a, u);
}

/* `agent stop`: when the files of purged tasks are removed, and at once or when the commands have
 * ended. */
static void check_stop(struct gpq_agent *a)
{
    if (!a->stop.now || a->over)
        return;
    gpq_workers_drain(a);
    if (a->stop.cancels)
        gpq_work_each(a, cancel_run, NULL);
    if (gpq_forget_waits(a))
        return;
    if ((!a->stop.drains && !a->stop.cancels) || gpq_work_started(a) == 0)
        a->over = true;
}

/* Work for further turns, between which clients are heard. */
static bool has_more(const struct gpq_agent *a)
{
    return gpq_forget_waits(a) || gpq_now_goes_on(a) ||
           (gpq_retention_goes_on(a) && !a->starts_wait);
}

/* Items of a long request lie between others, so that free alone keeps their pages.  [Q11] */
static void give_back_memory(struct gpq_agent *a)
{
    if (a->trims)
        (void)malloc_trim(0);
    a->trims = false;
}

static void loop(struct gpq_agent *a)
{
    struct epoll_event events[EVENTS];
    gpq_marks_apply(a);
    gpq_notify_look(a);
    gpq_ahead_fill(a);
    while (!a->over) {
        while (gpq_turn(a) && !a->over)
            continue;
        check_stop(a);
        if (a->over)
            break;
        gpq_spans_look(a);
        gpq_watch_turn(a);
        if (gpq_server_waits(a))
            continue;
        if (gpq_now_goes_on(a))
            gpq_now_some(a);
        give_back_memory(a);
        set_timer(a);
        int n = epoll_wait(a->epoll, events, EVENTS, has_more(a) ? 0 : -1);
        for (int i = 0; i < n; i++)
            hear(a, &events[i]);
    }
    if (a->status == 0)
        gpq_forget_last(a);
}

static void close_all(struct gpq_agent *a)
{
    if (a->server)
        gpq_server_close(a);
    gpq_notify_close(a);
    gpq_now_close(a);
    gpq_recent_close(a);
    gpq_spans_close(a);
    gpq_retention_close(a);
    gpq_forget_close(a);
    gpq_classes_close(a);
    gpq_dispatch_close(a);
    gpq_ahead_close(a);
    gpq_work_close(a);
    gpq_turn_free(a);
    if (a->store)
        a->store->engine->close(a->store);
    if (a->lock >= 0)
        gpq_lock_close(a->lock);
}

/* Returns only if it fails. */
static void start_anew(const struct gpq_agent *a, char **argv)
{
    gpq_descriptors_restore(a->descriptors);
    (void)execv("/proc/self/exe", argv);
}

/* Checks a store, or prints its records, instead of the agent's work. */
static int serve_once(struct gpq_settings *s)
{
    int status = s->fsck ? gpq_fsck(&(struct gpq_fsck){ s->state, s->repair, s->json })
                         : gpq_closed_print(s);
    gpq_settings_free(s);
    return status;
}

int main(int argc, char **argv)
{
    struct gpq_settings s;
    struct gpq_watched watched[3];
    struct gpq_error e = { 0 };
    struct gpq_agent a = { .lock = -1, .epoll = -1, .timer = -1, .signals = -1 };
    int code = gpq_settings_read(argc, argv, &s, &e);
    if (code == 0 && s.ports && !gpq_ports_set(&a.ports, s.ports))
        code = gpq_fail(&e, GPQ_EINVAL, "ports: '%.40s': expected a range such as 20000-29999",
                        s.ports);
    if (code < 0) {
        gpq_log("%s", e.text);
        gpq_settings_free(&s);
        return gpq_error_status(code);
    }
    if (s.fsck || s.records)
        return serve_once(&s);
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10); /* long requests return their memory */
    unsetenv(GPQ_RUN_VARIABLE); /* the agent is no part of the command that has started it */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    a.runner = s.runner;
    a.settings = &s;
    a.log_limit = s.log_limit;
    a.keep = (struct gpq_keep){ s.keep_age, s.keep_tasks };
    a.notify_command = s.notify && *s.notify ? s.notify : NULL;
    a.descriptors = gpq_descriptors_raise();
    a.signals = open_signals();
    a.epoll = epoll_create1(EPOLL_CLOEXEC);
    code = open_all(&a, &s, watched, &e);
    if (code < 0) {
        bool more =
            code == GPQ_EFULL && a.lock >= 0 && gpq_reserve_give_up(&gpq_system_files, a.state) > 0;
        gpq_log("%s", e.text);
        if (code == GPQ_EBUSY)
            notify("ERRNO=16"); /* EBUSY, for a client that has started this agent */
        close_all(&a);
        gpq_settings_free(&s);
        if (more) /* what it had adopted is adopted anew */
            start_anew(&a, argv);
        return gpq_error_status(code);
    }
    notify("READY=1");
    loop(&a);
    bool again = a.again && !getenv(AGAIN);
    if (!again)
        notify("STOPPING=1");
    if (!again && a.stop.asked)
        (void)gpq_stopped_set(a.state);
    close_all(&a);
    gpq_settings_free(&s);
    if (again) {
        (void)setenv(AGAIN, "1", 1);
        start_anew(&a, argv);
    }
    return a.status;
}
