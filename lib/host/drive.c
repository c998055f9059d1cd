/* SPDX-License-Identifier: MIT */
/*
 * drive.c - who drives, and one round of driving.
 *
 * One of the user's threads that are inside poll, run, wait or ready drives; the others sleep,
 * each on a condition of its own, until what they wait for has come or the driver leaves: on its
 * way out it calls the one that has slept longest, who drives from then on.  A call for that which
 * finds its thread already served is passed on, and a thread that comes in meanwhile may take the
 * place: so while threads are inside, one drives or has been called to.
 *
 * With DRIVE_THREAD a library thread takes over when none has been inside for 1 ms.  It is in one
 * of three states:
 *
 *   DRIVING  nobody is inside; it waits in epoll like a user would
 *   TICKING  a user came in; it looks every millisecond whether they left for good
 *   DEEP     the same user has been inside for a whole tick; it sleeps until they leave
 *
 * It leaves DRIVING when somebody is inside as it looks, or four have come in within a millisecond.
 * So a program that polls in a loop costs about one wake-up a millisecond, one that waits inside
 * costs none, and an idle program has none at all (C20).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/refused.h"
#include "host/act.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/fds.h"
#include "os/process.h"

#define TAKE_OVER_MS 1
#define VISITS_ENOUGH 4 /* in that time: the user's threads drive, the library thread is not needed */
#define NEWS_MAX 64
#define FDS_PER_SLOT 5u /* that are watched: looks, output, errors, keeper, worker */
#define TURN_AGE_NS (100 * GPI_US)
#define WORKS_WITHOUT_EPOLL 16 /* while tasks end one after the other, deaths wait this long at most */

/* ---- watching ---- */

int gpi_drive_watch(gpud_dispatcher *d, int fd, enum gpi_fd_kind kind, uint32_t slot)
{
    struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)kind << 32 | slot };

    return epoll_ctl(d->drive.epoll, EPOLL_CTL_ADD, fd, &e) ? gpi_refused(GPI_SYS_EPOLL_CTL) : 0;
}

void gpi_drive_unwatch(gpud_dispatcher *d, int fd)
{
    /* A forked child that cleans up must not take it out of the host's set. */
    if (fd >= 0 && *d->alive)
        (void)epoll_ctl(d->drive.epoll, EPOLL_CTL_DEL, fd, NULL);
}

void gpi_drive_close(gpud_dispatcher *d, int *fd)
{
    gpi_drive_unwatch(d, *fd); /* a bare-forked sibling may hold a copy, so closing alone would leave it watched */
    gpi_fd_close(fd);
}

void gpi_drive_wake(gpud_dispatcher *d)
{
    if (d->drive.woken || (!d->drive.sleepers && !d->pollable.calls_out))
        return;
    d->drive.woken = gpi_bell_ring(d->drive.wake);
}

int gpi_drive_init(gpud_dispatcher *d)
{
    const uint64_t one = 1;
    struct epoll_event e;

    d->drive.epoll = gpi_fd_made(GPI_SYS_EPOLL_CREATE, epoll_create1(EPOLL_CLOEXEC));
    if (d->drive.epoll < 0)
        return -1;
    d->drive.wake = gpi_fd_made(GPI_SYS_EVENTFD, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (d->drive.wake < 0)
        return -1;
    d->drive.lib_fd = gpi_fd_made(GPI_SYS_EVENTFD, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (d->drive.lib_fd < 0)
        return -1;
    /* Where one of these two is refused, the host would miss what it is told, and say nothing. */
    if (epoll_wait(d->drive.epoll, &e, 1, 0) < 0 && errno != EINTR)
        return gpi_refused(GPI_SYS_EPOLL_WAIT);
    if (gpi_fd_write(d->drive.wake, &one, sizeof one))
        return gpi_refused(GPI_SYS_WRITE);
    gpi_bell_silence(d->drive.wake);
    return gpi_drive_watch(d, d->drive.wake, GPI_FD_WAKE, 0);
}

/* ---- one round ---- */

static void handle(gpud_dispatcher *d, uint64_t what)
{
    struct gpi_slot *s = &d->slot[(uint32_t)what % GPI_SLOTS_MAX]; /* where it is about one */

    switch ((enum gpi_fd_kind)(what >> 32)) {
    case GPI_FD_WAKE:
        gpi_bell_silence(d->drive.wake);
        d->drive.woken = false;
        break;
    case GPI_FD_SPAWNER:
        gpi_on_spawner(d);
        break;
    case GPI_FD_SPAWNER_DEATH:
        gpi_on_spawner(d); /* its last words first */
        gpi_spawner_lost(d);
        break;
    case GPI_FD_KEEPER:
        gpi_on_keeper(d, s);
        break;
    case GPI_FD_LOOKS:
        gpi_on_looks(d, s);
        break;
    case GPI_FD_OUTPUT:
        gpi_on_output(d, s);
        break;
    case GPI_FD_ERRORS:
        gpi_on_errors(d, s);
        break;
    case GPI_FD_WORKER:
        gpi_on_worker_end(d, s);
        break;
    case GPI_FD_MONITOR:
        gpi_on_monitor(d, (uint32_t)what);
        break;
    }
}

static bool is_output(uint64_t what)
{
    return what >> 32 == GPI_FD_OUTPUT || what >> 32 == GPI_FD_ERRORS;
}

/* Output first: what a task has printed is to be in its outcome. */
static void handle_all(gpud_dispatcher *d, const struct epoll_event *news, int n)
{
    d->drive.heard_at = d->now;
    for (int i = 0; i < n; i++)
        if (is_output(news[i].data.u64))
            handle(d, news[i].data.u64);
    for (int i = 0; i < n; i++)
        if (!is_output(news[i].data.u64))
            handle(d, news[i].data.u64);
}

/* Whoever has been heard goes behind the others, so that these rounds are enough for all. */
static void hear_all(gpud_dispatcher *d)
{
    struct epoll_event news[NEWS_MAX];
    int n = NEWS_MAX;

    for (uint32_t rounds = d->n_slots * FDS_PER_SLOT / NEWS_MAX + 2; n == NEWS_MAX && rounds; rounds--) {
        n = epoll_wait(d->drive.epoll, news, NEWS_MAX, 0);
        handle_all(d, news, n);
    }
}

static void run_timers(gpud_dispatcher *d)
{
    while (gpi_heap_top_key(&d->timers) <= d->now) {
        const uint32_t i = gpi_heap_top_item(&d->timers);
        if (i == GPI_TIMER_DEVICES)
            gpi_devices_on_timer(d);
        else
            gpi_slot_on_timer(d, &d->slot[i]);
    }
}

/* A host that comes late, or was stopped, finds times passed in which it was told what it has not
 * read yet: that comes first. */
static void pass_time(gpud_dispatcher *d)
{
    hear_all(d);
    run_timers(d); /* reading takes time: the waits of the host end before those of the core */
    if (d->close.at <= d->now && !d->close.passed) {
        d->close.passed = true;
        gpi_close_limit_passed(d);
    }
    gpi_hear(d, (struct gpi_sched_event){ .kind = GPI_EV_TIME });
}

/* What can be done without news. */
static void work_once(gpud_dispatcher *d)
{
    if (gpi_heap_top_key(&d->timers) <= d->now)
        run_timers(d);
    if (gpi_sched_due(d->core) <= d->now)
        pass_time(d);
    if (d->close.closing || atomic_load_explicit(&d->close.stop_asked, memory_order_relaxed))
        gpi_finish_step(d);
    gpi_decide(d);
}

/* Milliseconds until `until`, rounded up: never early. */
static int wait_ms(const gpud_dispatcher *d, uint64_t until)
{
    uint64_t ms;

    if (until == GPI_NEVER)
        return -1;
    if (until <= d->now)
        return 0;
    ms = (until - d->now + GPI_MS - 1) / GPI_MS;
    return ms > 1000000 ? 1000000 : (int)ms;
}

static void wait_for_news(gpud_dispatcher *d, int ms)
{
    struct epoll_event news[NEWS_MAX];
    int n;

    d->drive.sleepers++;
    gpi_core_flush(d);
    pthread_mutex_unlock(&d->lock);
    n = epoll_wait(d->drive.epoll, news, NEWS_MAX, ms);
    pthread_mutex_lock(&d->lock);
    d->drive.sleepers--;
    d->now = gpi_now();
    handle_all(d, news, n);
}

/* Does what can be done without waiting, with what the workers have ended meanwhile. */
static void work(gpud_dispatcher *d)
{
    work_once(d);
    if (gpi_collect_all(d))
        work_once(d);
    if (d->drive.works_without_epoll++ < WORKS_WITHOUT_EPOLL)
        return;
    d->drive.works_without_epoll = 0;
    wait_for_news(d, 0);
    work_once(d);
}

/* Times stay where they are when what they wait for has come, since taking each out would cost
 * every task something.  One who is about to sleep drops those in front: they would only wake
 * it. */
uint64_t gpi_drive_next(gpud_dispatcher *d)
{
    uint32_t i;

    while ((i = gpi_heap_top_item(&d->timers)) < GPI_SLOTS_MAX && gpi_slot_retime(d, &d->slot[i]))
        ;
    return gpi_time_min(gpi_heap_top_key(&d->timers), gpi_sched_due(d->core));
}

/* Waits for news, at most until the next timer. */
static void sleep_until(gpud_dispatcher *d, uint64_t until)
{
    bool bells = until > d->now;

    d->drive.works_without_epoll = 0;
    if (bells && !gpi_go_to_sleep(d))
        until = 0;
    wait_for_news(d, wait_ms(d, gpi_time_min(until, gpi_drive_next(d))));
    if (bells)
        gpi_wake_up(d);
}

bool gpi_drive_until(gpud_dispatcher *d, gpi_done_fn *done, const void *context, uint64_t until)
{
    bool waited = false;

    d->now = gpi_now();
    for (;;) {
        work(d);
        if (done(d, context))
            return true;
        if (waited && d->now >= until)
            return false;
        sleep_until(d, until);
        waited = true;
    }
}

/* ---- the library thread ---- */

static bool others_drive(const gpud_dispatcher *d, const void *unused)
{
    (void)unused;
    return d->drive.inside || d->drive.lib_quit || d->drive.visits >= VISITS_ENOUGH;
}

/* Sleeps without the lock, for a tick or until the bell. */
static void doze(gpud_dispatcher *d, int ms)
{
    struct pollfd p = { .fd = d->drive.lib_fd, .events = POLLIN };

    pthread_mutex_unlock(&d->lock);
    if (poll(&p, 1, ms) > 0)
        gpi_bell_silence(d->drive.lib_fd);
    pthread_mutex_lock(&d->lock);
}

static void *library_thread(void *arg)
{
    gpud_dispatcher *d = arg;

    gpi_process_prompt(0, true); /* limits are kept late behind programs that compute */
    pthread_mutex_lock(&d->lock);
    while (!d->drive.lib_quit) {
        uint64_t entries = d->drive.entries;
        d->drive.lib = GPI_LIB_TICKING;
        doze(d, TAKE_OVER_MS);
        if (d->drive.entries != entries)
            continue;
        if (d->drive.inside) {
            d->drive.lib = GPI_LIB_DEEP;
            doze(d, -1);
            continue;
        }
        d->drive.lib = GPI_LIB_DRIVING;
        d->drive.visits = 0;
        (void)gpi_drive_until(d, others_drive, NULL, GPI_NEVER);
        gpi_drive_wake(d); /* what the last turn found may be what the user waits for */
    }
    d->drive.lib = GPI_LIB_NONE;
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

int gpi_drive_start_thread(gpud_dispatcher *d)
{
    sigset_t all, old;
    int r;

    d->drive.lib = GPI_LIB_TICKING;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&d->drive.lib_thread, NULL, library_thread, d);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0)
        return 0;
    d->drive.lib = GPI_LIB_NONE;
    errno = r;
    return gpi_refused(GPI_SYS_PTHREAD_CREATE);
}

void gpi_drive_fini(gpud_dispatcher *d)
{
    gpi_fd_close(&d->drive.lib_fd);
    gpi_fd_close(&d->drive.wake);
    gpi_fd_close(&d->drive.epoll);
}

/* ---- the user's threads ---- */

/* Threads that come and go while the library thread waits for the lock are never inside when it
 * looks, so their visits are counted. */
static void count_visit(gpud_dispatcher *d)
{
    if (d->now - d->drive.visits_since > TAKE_OVER_MS * GPI_MS) {
        d->drive.visits_since = d->now;
        d->drive.visits = 0;
    }
    d->drive.visits++;
}

void gpi_drive_go_in(gpud_dispatcher *d)
{
    d->drive.inside++;
    d->drive.entries++;
    if (d->drive.lib == GPI_LIB_DRIVING) {
        count_visit(d);
        gpi_drive_wake(d); /* out of its epoll: two would be woken by each event */
    } else if (d->pollable.away) {
        gpi_pollable_back(d);
    }
}

static void go_out(gpud_dispatcher *d)
{
    if (--d->drive.inside)
        return;
    if (d->drive.lib == GPI_LIB_DEEP)
        gpi_bell_ring(d->drive.lib_fd);
    else if (d->drive.lib == GPI_LIB_DRIVING)
        gpi_drive_wake(d); /* still in its epoll from before we came, and we took the bells for ourselves */
    else if (d->pollable.calls_out)
        gpi_pollable_away(d);
}

static void lie_down(gpud_dispatcher *d, struct gpi_sleeper *s)
{
    s->after = NULL;
    s->before = d->drive.last_asleep;
    *(s->before ? &s->before->after : &d->drive.asleep) = s;
    d->drive.last_asleep = s;
    s->asleep = true;
}

static void get_up(gpud_dispatcher *d, struct gpi_sleeper *s)
{
    *(s->before ? &s->before->after : &d->drive.asleep) = s->after;
    *(s->after ? &s->after->before : &d->drive.last_asleep) = s->before;
    s->asleep = s->called = false;
}

/* Sleeps until called; false when the time has come. */
static bool sleep_beside(gpud_dispatcher *d, struct gpi_sleeper *s, uint64_t until)
{
    struct timespec t = { .tv_sec = (time_t)(until / GPI_S), .tv_nsec = (long)(until % GPI_S) };
    pthread_condattr_t a;
    int r = 0;

    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&s->call, &a);
    pthread_condattr_destroy(&a);
    lie_down(d, s);
    if (until == GPI_NEVER)
        pthread_cond_wait(&s->call, &d->lock);
    else
        r = pthread_cond_timedwait(&s->call, &d->lock, &t);
    get_up(d, s);
    pthread_cond_destroy(&s->call); /* whoever calls holds the lock, so none is still at it */
    return r != ETIMEDOUT;
}

void gpi_drive_call(struct gpi_sleeper *s)
{
    if (!s->asleep || s->called)
        return;
    s->called = true;
    pthread_cond_signal(&s->call);
}

/* Nobody drives: the one that has slept longest is to, unless it has been called for itself. */
static void hand_over(gpud_dispatcher *d)
{
    struct gpi_sleeper *s = d->drive.asleep;

    while (s && s->called)
        s = s->after;
    if (s)
        pthread_cond_signal(&s->call);
}

bool gpi_drive_together(gpud_dispatcher *d, struct gpi_sleeper *me, gpi_done_fn *done, const void *context, uint64_t until)
{
    bool got = false, in_time = true;

    gpi_drive_go_in(d);
    while (d->drive.driven && !(got = done(d, context)) && until && in_time)
        in_time = sleep_beside(d, me, until);
    if (!d->drive.driven) {
        d->drive.driven = true;
        got = gpi_drive_until(d, done, context, until);
        d->drive.driven = false;
        hand_over(d);
    }
    go_out(d);
    return got;
}

void gpi_drive_tell(gpud_dispatcher *d)
{
    if (d->drive.poller)
        gpi_drive_call(d->drive.poller);
    if (d->pollable.outer >= 0 && !d->drive.occupied) /* else when poll or run is left */
        gpi_pollable_tell(d);
}

bool gpi_drive_reenters(const gpud_dispatcher *d)
{
    return d->drive.in_callback && pthread_equal(d->drive.callback_thread, pthread_self());
}

int gpi_drive_enter(gpud_dispatcher *d)
{
    if (gpi_drive_reenters(d))
        return GPUD_EREENTER;
    if (d->drive.occupied)
        return GPUD_EBUSY;
    d->drive.occupied = true;
    return 0;
}

void gpi_drive_leave(gpud_dispatcher *d)
{
    d->drive.occupied = false;
    if (d->pollable.outer < 0)
        return;
    gpi_pollable_tell(d);
    if (d->drive.inside)
        gpi_pollable_quiet(d);
}

/* So many events wait that they fill the caller's array, and the last turn was just now: driving
 * first would only make turns, and the batches that workers get, smaller. */
static bool enough_waits(const gpud_dispatcher *d, size_t n)
{
    uint32_t waiting = gpi_events_waiting(d);

    return (waiting >= n || waiting >= GPI_EVENTS_MAX) && gpi_now() - d->now < TURN_AGE_NS;
}

bool gpi_drive_all_told(const gpud_dispatcher *d)
{
    return d->close.finished && d->intake.live == d->drive.awaited;
}

static bool something_to_tell(const gpud_dispatcher *d, const void *unused)
{
    (void)unused;
    return gpi_events_waiting(d) || gpi_drive_all_told(d);
}

static void drive_for_events(gpud_dispatcher *d, size_t n, uint64_t wait, bool released)
{
    struct gpi_sleeper me = { .asleep = false };

    if (wait == 0 && d->pollable.outer >= 0 && !d->pollable.calls_out) {
        if (released && gpi_sched_queued(d->core))
            gpi_drive_wake(d); /* the library thread drives: a loop that looks in must not send it away */
    } else if (enough_waits(d, n)) {
        gpi_drive_go_in(d);
        go_out(d);
        if (d->pollable.calls_out)
            gpi_drive_wake(d); /* not driven: the fd asks for it */
    } else {
        d->drive.poller = &me;
        (void)gpi_drive_together(d, &me, something_to_tell, NULL, wait == 0 || wait == GPI_NEVER ? wait : gpi_time_add(gpi_now(), wait));
        d->drive.poller = NULL;
    }
}

int gpi_poll(gpud_dispatcher *d, struct gpud_event *events, size_t stride, size_t n, uint64_t wait)
{
    int r;

    pthread_mutex_lock(&d->lock);
    r = gpi_drive_enter(d);
    if (r) {
        pthread_mutex_unlock(&d->lock);
        return r;
    }
    drive_for_events(d, n, wait, gpi_lent_release(d));
    r = gpi_events_take(d, events, stride, n);
    if (r == 0 && gpi_drive_all_told(d))
        r = GPUD_EEND;
    gpi_drive_leave(d);
    pthread_mutex_unlock(&d->lock);
    return r;
}
