/* SPDX-License-Identifier: MIT */
/*
 * loop.c - one turn of the driving thread: it reads all events, lets the core decide, sends tasks,
 * and sleeps until the next time.
 */
#include <assert.h>
#include <sys/epoll.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/refused.h"
#include "host/act.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/log_file.h"
#include "host/slot.h"
#include "os/fds.h"

#define NEWS_MAX 64
#define FDS_PER_SLOT 5u        /* the watched ones: looks, output, errors, keeper, worker */
#define WORKS_WITHOUT_EPOLL 16 /* the most turns that deaths wait while tasks end in a row */

/* ---- one round ---- */

static void handle(gpud_dispatcher *d, uint64_t what)
{
    struct gpi_slot *s = &d->slot[(uint32_t)what % GPI_SLOTS_MAX]; /* for events of a slot */

    switch ((enum gpi_fd_kind)(what >> 32)) {
    case GPI_FD_WAKE:
        gpi_bell_silence(d->loop.wake);
        d->loop.woken = false;
        break;
    case GPI_FD_SPAWNER:
        gpi_on_spawner(d);
        break;
    case GPI_FD_SPAWNER_DEATH:
        gpi_on_spawner(d); /* first: its last messages */
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

/* Output first: the outcome of a task contains the output. */
static void handle_all(gpud_dispatcher *d, const struct epoll_event *news, int n)
{
    d->loop.heard_at = d->now;
    for (int i = 0; i < n; i++)
        if (is_output(news[i].data.u64))
            handle(d, news[i].data.u64);
    for (int i = 0; i < n; i++)
        if (!is_output(news[i].data.u64))
            handle(d, news[i].data.u64);
}

/* Events that were handled go behind the rest, so these rounds reach all fds. */
static void hear_all(gpud_dispatcher *d)
{
    struct epoll_event news[NEWS_MAX];
    int n = NEWS_MAX;

    for (uint32_t rounds = d->n_slots * FDS_PER_SLOT / NEWS_MAX + 2; n == NEWS_MAX && rounds;
         rounds--) {
        n = epoll_wait(d->loop.epoll, news, NEWS_MAX, 0);
        handle_all(d, news, n);
    }
}

/* The function that handles a time also clears it. */
static void run_slot_timer(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->timer = GPI_NEVER;
    gpi_heap_remove(&d->timers, s->index);
    if (s->peek_at <= d->now)
        gpi_slot_peek(d, s);
    if (s->call_at <= d->now)
        gpi_slot_call(d, s);
    if (s->keeper_at <= d->now)
        gpi_keeper_look(d, s);
    if (s->vacant_by <= d->now)
        gpi_vacancy_over(d, s);
    gpi_slot_timer(d, s);
}

static void run_timers(gpud_dispatcher *d)
{
    while (gpi_heap_top_key(&d->timers) <= d->now) {
        const uint32_t i = gpi_heap_top_item(&d->timers);
        if (i == GPI_TIMER_DEVICES)
            gpi_devices_on_timer(d);
        else
            run_slot_timer(d, &d->slot[i]);
    }
}

/* After a delay a time can be due while the message that changes it waits unread: so the host reads
 * all fds first. */
static void pass_time(gpud_dispatcher *d)
{
    hear_all(d);
    run_timers(d); /* reading takes time: the waits of the host end before those of the core */
    if (d->close.at <= d->now && !d->close.passed)
        gpi_close_limit_passed(d);
    gpi_hear(d, (struct gpi_sched_event){ .kind = GPI_EV_TIME });
}

/* Performs the actions that need no event. */
static void work_once(gpud_dispatcher *d)
{
    if (gpi_heap_top_key(&d->timers) <= d->now)
        run_timers(d);
    if (gpi_sched_due(d->core) <= d->now)
        pass_time(d);
    if (d->close.closing || atomic_load_explicit(&d->close.stop_asked, memory_order_relaxed))
        gpi_finish_step(d);
    gpi_decide(d);
    if (d->n_removing)
        gpi_removals_step(d);
}

/* Returns the milliseconds until `until`, rounded up: never early. */
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

/* Returns true if there is an event: the log of decisions has ended before its dispatcher. */
static GPI_RARE bool flush_log(gpud_dispatcher *d)
{
    char buffer[96] = "";
    struct gpi_log_end end;

    if (!gpi_core_flush_log(d, &end))
        return false;
    gpi_log(d, GPUD_LEVEL_WARNING, GPUD_NO_SLOT,
            "decision_log ended after %llu bytes: %s", (unsigned long long)end.size,
            end.error ? gpi_errno_text(end.error, buffer, sizeof buffer)
                      : "the maximum is 1 GiB, or RLIMIT_FSIZE");
    return true;
}

/* The driver sleeps although a task could start.  [S7] */
static bool idles(gpud_dispatcher *d, int ms)
{
    const bool does = ms && gpi_sched_queued(d->core) && gpi_sched_idles(d->core);

    assert(!does);
    return does;
}

static void wait_for_news(gpud_dispatcher *d, int ms)
{
    struct epoll_event news[NEWS_MAX];
    const uint64_t before = d->now;
    bool idle;
    int n;

    if (GPI_SELDOM(d->play) && flush_log(d))
        ms = 0;
    idle = idles(d, ms);
    d->loop.sleepers++;
    pthread_mutex_unlock(&d->lock);
    n = epoll_wait(d->loop.epoll, news, NEWS_MAX, ms);
    pthread_mutex_lock(&d->lock);
    d->loop.sleepers--;
    d->now = gpi_now();
    d->stats.count.idle_with_work += idle ? d->now - before : 0;
    handle_all(d, news, n);
}

/* Performs all actions that need no wait, for tasks that workers have ended meanwhile, too. */
static void work(gpud_dispatcher *d)
{
    work_once(d);
    if (gpi_collect_all(d))
        work_once(d);
    if (d->loop.works_without_epoll++ < WORKS_WITHOUT_EPOLL)
        return;
    d->loop.works_without_epoll = 0;
    wait_for_news(d, 0);
    work_once(d);
}

/* A time stays in the heap when its event is ready, since removing each would cost every task some
 * time.  Before the driver sleeps, it drops such times at the front: they would only wake it. */
uint64_t gpi_drive_next(gpud_dispatcher *d)
{
    uint32_t i;

    while ((i = gpi_heap_top_item(&d->timers)) < GPI_SLOTS_MAX && gpi_slot_retime(d, &d->slot[i]))
        ;
    return gpi_time_min(gpi_heap_top_key(&d->timers), gpi_sched_due(d->core));
}

/* Waits for events, at most until the next timer. */
static void sleep_until(gpud_dispatcher *d, uint64_t until)
{
    bool bells = until > d->now;

    d->loop.works_without_epoll = 0;
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
