/* SPDX-License-Identifier: MIT */
#include "worker/limit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define AGAIN_NS (50 * GPI_MS)          /* a blocking call entered right after the alarm must end too */
#define ACCOUNT_WAIT_NS (100 * GPI_MS)  /* for the keeper's account of a stop */
#define ACCOUNT_LOOK_NS (GPI_MS / 2)

/* The one static: a signal handler is given nothing else.  Set once, before the handlers. */
static struct gpi_limit *watched;

static void arm(struct gpi_limit *l, uint64_t when)
{
    atomic_store(&l->armed, when);
    gpi_alarm_at(&l->alarm, when);
}

/* The same from outside the handler, which may run in between and want another time. */
static void arm_from_task(struct gpi_limit *l, uint64_t when)
{
    do {
        arm(l, when);
        atomic_signal_fence(memory_order_seq_cst);
    } while (atomic_load(&l->armed) != when && (when = atomic_load(&l->armed)) != 0);
}

static void disarm(struct gpi_limit *l)
{
    atomic_store(&l->armed, 0);
    gpi_alarm_off(&l->alarm);
}

static uint64_t stopped_so_far(struct gpi_limit *l)
{
    return atomic_load(&l->page->stopped_ns) - l->stopped_before;
}

/* Whether we were continued and the keeper has not accounted for it yet. */
static bool account_open(struct gpi_limit *l, uint64_t now)
{
    uint32_t ours = atomic_load(&l->continued), theirs = atomic_load(&l->page->continues);

    if ((int32_t)(ours - theirs) <= 0)
        return false;
    if (now - atomic_load(&l->continued_at) < ACCOUNT_WAIT_NS)
        return true;
    atomic_store(&l->continued, theirs); /* it missed one: such stops count in full */
    return false;
}

enum verdict { IN_TIME, LATE, UNKNOWN };

static enum verdict judge(struct gpi_limit *l, uint64_t now, uint64_t *ret_deadline)
{
    uint64_t deadline = atomic_load(&l->deadline);

    *ret_deadline = deadline;
    if (deadline == GPI_NEVER || now < deadline)
        return IN_TIME;
    if (account_open(l, now))
        return UNKNOWN;
    *ret_deadline = gpi_time_add(deadline, stopped_so_far(l));
    return now < *ret_deadline ? IN_TIME : LATE;
}

static void set_expired(struct gpi_limit *l)
{
    if (atomic_load(&l->expired))
        return;
    l->stopped_expired = stopped_so_far(l);
    atomic_store(&l->expired, 1);
}

static void on_alarm(int signo)
{
    struct gpi_limit *l = watched;
    int err = errno;
    uint64_t now = gpi_now(), deadline;

    (void)signo;
    atomic_store(&l->armed, 0);
    if (gpi_limit_cancelled(l)) {
        arm(l, now + AGAIN_NS);
    } else {
        switch (judge(l, now, &deadline)) {
        case LATE:
            set_expired(l);
            arm(l, now + AGAIN_NS);
            break;
        case UNKNOWN:
            arm(l, now + ACCOUNT_LOOK_NS);
            break;
        case IN_TIME:
            if (deadline != GPI_NEVER)
                arm(l, deadline);
            break;
        }
    }
    errno = err;
}

static void on_continue(int signo)
{
    (void)signo;
    atomic_store(&watched->continued_at, gpi_now());
    atomic_fetch_add(&watched->continued, 1);
}

static void on_term(int signo)
{
    (void)signo; /* workers end by command: a TERM to the whole service lets the host drain */
}

static void handle(int signo, void (*handler)(int), int flags)
{
    struct sigaction sa;

    memset(&sa, 0, sizeof sa);
    sa.sa_handler = handler;
    sa.sa_flags = flags;
    (void)sigaction(signo, &sa, NULL);
}

int gpi_limit_init(struct gpi_limit *l, struct gpi_page *page)
{
    memset(l, 0, sizeof *l);
    l->page = page;
    atomic_store(&l->deadline, GPI_NEVER);
    atomic_store(&l->continued, atomic_load(&page->continues));
    if (gpi_alarm_init(&l->alarm))
        return -1;
    watched = l;
    handle(SIGALRM, on_alarm, 0); /* no SA_RESTART: blocking calls of a late task end with EINTR */
    handle(SIGCONT, on_continue, SA_RESTART);
    handle(SIGINT, on_term, SA_RESTART);
    handle(SIGTERM, on_term, SA_RESTART);
    handle(SIGHUP, on_term, SA_RESTART);
    return 0;
}

void gpi_limit_begin(struct gpi_limit *l, uint64_t number, uint64_t started_at, uint64_t limit, bool exact)
{
    uint64_t deadline = gpi_time_add(started_at, limit), armed;

    l->stopped_before = atomic_load_explicit(&l->page->stopped_ns, memory_order_relaxed);
    atomic_store_explicit(&l->expired, 0, memory_order_relaxed);
    atomic_store_explicit(&l->number, number, memory_order_relaxed);
    atomic_store_explicit(&l->deadline, deadline, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    armed = atomic_load_explicit(&l->armed, memory_order_relaxed);
    if (deadline != GPI_NEVER && (armed == 0 || armed > deadline || (exact && armed < deadline)))
        arm_from_task(l, deadline);
    else if (deadline == GPI_NEVER && armed && exact)
        disarm(l);
    if (gpi_limit_cancelled(l))
        arm_from_task(l, started_at + AGAIN_NS); /* its signal may have come before we knew whose it was */
}

void gpi_limit_end(struct gpi_limit *l)
{
    atomic_store_explicit(&l->deadline, GPI_NEVER, memory_order_relaxed);
    atomic_store_explicit(&l->number, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

bool gpi_limit_cancelled(struct gpi_limit *l)
{
    uint64_t number = atomic_load_explicit(&l->number, memory_order_relaxed);

    return number && atomic_load_explicit(&l->page->cancel, memory_order_relaxed) == number;
}

bool gpi_limit_expired(struct gpi_limit *l)
{
    uint64_t deadline;

    if (atomic_load_explicit(&l->expired, memory_order_relaxed))
        return true;
    if (atomic_load_explicit(&l->deadline, memory_order_relaxed) == GPI_NEVER)
        return false;
    if (judge(l, gpi_now(), &deadline) == LATE)
        set_expired(l);
    return atomic_load_explicit(&l->expired, memory_order_relaxed);
}

uint64_t gpi_limit_stopped(struct gpi_limit *l, uint64_t ended_at)
{
    struct timespec pause = { .tv_nsec = (long)ACCOUNT_LOOK_NS };

    if (atomic_load_explicit(&l->expired, memory_order_relaxed))
        return l->stopped_expired;
    if (ended_at >= atomic_load_explicit(&l->deadline, memory_order_relaxed)) {
        uint64_t until = gpi_now() + ACCOUNT_WAIT_NS;
        /* We run: if the keeper says stopped, its account is open whatever our handler has counted. */
        while ((account_open(l, gpi_now()) || atomic_load(&l->page->stopped_since)) && gpi_now() < until)
            nanosleep(&pause, NULL);
    }
    return stopped_so_far(l);
}
