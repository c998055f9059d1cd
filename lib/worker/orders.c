/* SPDX-License-Identifier: MIT */
/* orders.c - the worker sleeps, wakes up at its doorbell, and takes orders. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/frame.h"
#include "worker/worker.h"

/* Waits for the doorbell; returns false when a time, or a signal, is first. */
static bool hears_bell(const gpud_worker *w, uint64_t until, const sigset_t *blocked)
{
    struct pollfd bell = { .fd = w->plan.orders, .events = POLLIN };
    uint64_t now = gpi_now(), left = until > now ? until - now : 0;
    const struct timespec wait = {
        .tv_sec = (time_t)(left / GPI_S),
        .tv_nsec = (long)(left % GPI_S),
    };

    return ppoll(&bell, 1, until == GPI_NEVER ? NULL : &wait, blocked) > 0;
}

/* Waits for the doorbell until a time; returns false when that is first. */
static bool bell_in_time(const gpud_worker *w, uint64_t until)
{
    while (until != GPI_NEVER) {
        if (hears_bell(w, until, NULL))
            return true;
        if (gpi_now() >= until)
            return false;
    }
    return true;
}

/* Takes the orders of the doorbells; waits for one. */
static void take_orders(gpud_worker *w)
{
    struct gpi_frame f[GPI_CELLS];
    ssize_t r;

    do
        r = read(w->plan.orders, f, sizeof f);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        gpi_worker_give_up_refused(w, 73, GPI_SYS_READ);
    if (r == 0 || r % (ssize_t)GPI_FRAME_SIZE)
        gpi_worker_give_up(w, 73, "the pipe of its orders was closed");
    for (size_t i = 0; i < (size_t)r / GPI_FRAME_SIZE; i++) {
        if (!gpi_order_valid(&f[i]))
            gpi_worker_give_up(w, 73, "an order is invalid");
        if (f[i].what & GPI_ORDER_END && f[i].incarnation == w->plan.incarnation)
            w->dismissed = true;
    }
}

void gpi_worker_doze(gpud_worker *w, uint64_t until, const sigset_t *blocked)
{
    if (hears_bell(w, until, blocked))
        take_orders(w);
}

bool gpi_worker_await(gpud_worker *w, uint64_t number, uint64_t until)
{
    struct gpi_page *p = w->plan.page;

    atomic_store(&p->worker_sleeps, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&p->sent_number) >= number || !bell_in_time(w, until)) {
        atomic_store(&p->worker_sleeps, 0); /* a doorbell rung meanwhile is in vain */
        return true;
    }
    take_orders(w);
    return !w->dismissed;
}

void gpi_worker_drop_old_bells(int fd)
{
    char drop[4096];
    struct pollfd p = { .fd = fd, .events = POLLIN };
    int flags = fcntl(fd, F_GETFL);

    if (flags & O_NONBLOCK) /* an earlier worker has set it */
        (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    while (poll(&p, 1, 0) == 1 && (p.revents & POLLIN) && read(fd, drop, sizeof drop) > 0)
        ;
}
