/* SPDX-License-Identifier: MIT */
/*
 * drive.c - who drives, and one round of driving.
 *
 * A thread of the user that is inside poll or run drives.  With DRIVE_THREAD a library thread
 * takes over when none has been inside for 1 ms.  The library thread is in one of three states:
 *
 *   DRIVING  nobody is inside; it waits in epoll like a user would
 *   TICKING  a user came in; it looks every millisecond whether they left for good
 *   DEEP     the same user has been inside for a whole tick; it sleeps until they leave
 *
 * so a program that polls in a loop costs one wake-up a millisecond at most, one that waits
 * inside costs none, and an idle program has none at all (C20).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "host/dispatcher.h"
#include "os/fds.h"
#include "os/process.h"

#define TAKE_OVER_MS 1
#define NEWS_MAX 64
#define TURN_AGE_NS (100 * GPI_US)
#define WORKS_WITHOUT_EPOLL 16 /* while tasks end one after the other, deaths wait this long at most */

/* ---- watching ---- */

int gpi_drive_watch(gpud_dispatcher *d, int fd, enum gpi_fd_kind kind, uint32_t slot)
{
    struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)kind << 32 | slot };

    return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &e);
}

void gpi_drive_close(gpud_dispatcher *d, int *fd)
{
    /* A bare-forked sibling may hold a copy, so closing alone would leave it watched; and a
     * forked child that cleans up must not take it out of the host's set. */
    if (*fd >= 0 && *d->alive)
        (void)epoll_ctl(d->epoll, EPOLL_CTL_DEL, *fd, NULL);
    gpi_fd_close(fd);
}

static void ring_bell(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof one);
}

static void silence_bell(int fd)
{
    uint64_t n;

    (void)!read(fd, &n, sizeof n);
}

void gpi_drive_wake(gpud_dispatcher *d)
{
    if (!d->sleepers || d->woken)
        return;
    d->woken = true;
    ring_bell(d->wake);
}

int gpi_drive_init(gpud_dispatcher *d)
{
    d->epoll = gpi_fd_lift(epoll_create1(EPOLL_CLOEXEC));
    d->wake = gpi_fd_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    d->lib_fd = gpi_fd_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (d->epoll < 0 || d->wake < 0 || d->lib_fd < 0)
        return -1;
    return gpi_drive_watch(d, d->wake, GPI_FD_WAKE, 0);
}

/* ---- one round ---- */

static void handle(gpud_dispatcher *d, uint64_t what)
{
    uint32_t slot = (uint32_t)what;
    struct gpi_slot *s = slot < d->n_slots ? &d->slot[slot] : NULL;

    switch ((enum gpi_fd_kind)(what >> 32)) {
    case GPI_FD_WAKE:
        silence_bell(d->wake);
        d->woken = false;
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
        (void)gpi_on_output(d, s);
        break;
    }
}

static void run_timers(gpud_dispatcher *d)
{
    while (gpi_heap_top_key(&d->timers) <= d->now) {
        uint32_t i = gpi_heap_top_item(&d->timers);
        if (i == d->n_slots) {
            gpi_heap_remove(&d->timers, i);
            gpi_close_limit_passed(d);
        } else {
            gpi_slot_on_timer(d, &d->slot[i]);
        }
    }
}

/* What can be done without news. */
static void work_once(gpud_dispatcher *d)
{
    if (gpi_heap_top_key(&d->timers) <= d->now)
        run_timers(d);
    if (d->closing || atomic_load_explicit(&d->stop_asked, memory_order_relaxed))
        gpi_finish_step(d);
    gpi_dispatch(d);
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

    d->sleepers++;
    pthread_mutex_unlock(&d->lock);
    n = epoll_wait(d->epoll, news, NEWS_MAX, ms);
    pthread_mutex_lock(&d->lock);
    d->sleepers--;
    d->now = gpi_now();
    for (int i = 0; i < n; i++)
        handle(d, news[i].data.u64);
}

/* Does what can be done without waiting, with what the workers have ended meanwhile. */
static void work(gpud_dispatcher *d)
{
    work_once(d);
    if (gpi_collect_all(d))
        work_once(d);
    if (d->works_without_epoll++ < WORKS_WITHOUT_EPOLL)
        return;
    d->works_without_epoll = 0;
    wait_for_news(d, 0);
    work_once(d);
}

/* Waits for news, at most until the next timer. */
static void sleep_until(gpud_dispatcher *d, uint64_t until)
{
    d->works_without_epoll = 0;
    if (until > d->now && !gpi_go_to_sleep(d))
        until = 0;
    wait_for_news(d, wait_ms(d, gpi_time_min(until, gpi_heap_top_key(&d->timers))));
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
    return d->inside || d->lib_quit;
}

/* Sleeps without the lock, for a tick or until the bell. */
static void doze(gpud_dispatcher *d, int ms)
{
    struct pollfd p = { .fd = d->lib_fd, .events = POLLIN };

    pthread_mutex_unlock(&d->lock);
    if (poll(&p, 1, ms) > 0)
        silence_bell(d->lib_fd);
    pthread_mutex_lock(&d->lock);
}

static void *library_thread(void *arg)
{
    gpud_dispatcher *d = arg;

    gpi_process_prompt(0, true); /* limits are kept late behind programs that compute */
    pthread_mutex_lock(&d->lock);
    while (!d->lib_quit) {
        uint64_t entries = d->entries;
        d->lib = GPI_LIB_TICKING;
        doze(d, TAKE_OVER_MS);
        if (d->entries != entries)
            continue;
        if (d->inside) {
            d->lib = GPI_LIB_DEEP;
            doze(d, -1);
            continue;
        }
        d->lib = GPI_LIB_DRIVING;
        (void)gpi_drive_until(d, others_drive, NULL, GPI_NEVER);
        gpi_drive_wake(d); /* what the last turn found may be what the user waits for */
    }
    d->lib = GPI_LIB_NONE;
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

int gpi_drive_start_thread(gpud_dispatcher *d)
{
    sigset_t all, old;
    int r;

    d->lib = GPI_LIB_TICKING;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&d->lib_thread, NULL, library_thread, d);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r)
        d->lib = GPI_LIB_NONE;
    errno = r;
    return r ? -1 : 0;
}

void gpi_drive_fini(gpud_dispatcher *d)
{
    gpi_fd_close(&d->lib_fd);
    gpi_fd_close(&d->wake);
    gpi_fd_close(&d->epoll);
}

/* ---- the user's threads ---- */

void gpi_drive_go_in(gpud_dispatcher *d)
{
    d->inside = true;
    d->entries++;
    if (d->lib == GPI_LIB_DRIVING)
        gpi_drive_wake(d); /* out of its epoll: two would be woken by each event */
}

void gpi_drive_go_out(gpud_dispatcher *d)
{
    d->inside = false;
    if (d->lib == GPI_LIB_DEEP)
        ring_bell(d->lib_fd);
    else if (d->lib == GPI_LIB_DRIVING)
        gpi_drive_wake(d); /* still in its epoll from before we came, and we took the bells for ourselves */
}

int gpi_drive_enter(gpud_dispatcher *d)
{
    if (d->in_callback && pthread_equal(d->callback_thread, pthread_self()))
        return GPUD_EREENTER;
    if (d->occupied)
        return GPUD_EBUSY;
    d->occupied = true;
    gpi_drive_go_in(d);
    return 0;
}

void gpi_drive_leave(gpud_dispatcher *d)
{
    gpi_drive_go_out(d);
    d->occupied = false;
}

/* So many events wait that they fill the caller's array, and the last turn was just now: driving
 * first would only make turns, and the batches that workers get, smaller. */
static bool enough_waits(const gpud_dispatcher *d, size_t n)
{
    uint32_t waiting = gpi_events_waiting(d);

    return (waiting >= n || waiting >= GPI_EVENTS_MAX) && gpi_now() - d->now < TURN_AGE_NS;
}

static bool all_told(const gpud_dispatcher *d)
{
    return d->finished && d->live == 0;
}

static bool something_to_tell(const gpud_dispatcher *d, const void *unused)
{
    (void)unused;
    return gpi_events_waiting(d) || all_told(d);
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
    gpi_lent_release(d);
    if (!enough_waits(d, n)) {
        uint64_t until = wait == 0 || wait == GPI_NEVER ? wait : gpi_time_add(gpi_now(), wait);
        (void)gpi_drive_until(d, something_to_tell, NULL, until);
    }
    r = gpi_events_take(d, events, stride, n);
    if (r == 0 && all_told(d))
        r = GPUD_EEND;
    gpi_drive_leave(d);
    pthread_mutex_unlock(&d->lock);
    return r;
}
