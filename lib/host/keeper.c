/* SPDX-License-Identifier: MIT */
/*
 * keeper.c - requests and dismisses keepers, and reads the messages of keepers and the spawner.
 *
 * Only the keeper's report proves a worker's death.  The keeper sends it after it has reaped the
 * worker and swept all processes that the worker had started (C8).  The host first accepts the ends
 * of the tasks that the worker had ended.  Tasks that it had not claimed return to the queue.  Then
 * the core charges the remaining claimed tasks (C2).
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/duration.h"
#include "base/refused.h"
#include "base/ways.h"
#include "host/act.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "os/fds.h"
#include "os/message.h"
#include "wire/control.h"

/* ---- request and dismissal ---- */

void gpi_keeper_make(gpud_dispatcher *d, struct gpi_slot *s)
{
    const int err = gpi_channel_make(d, s);

    if (err) {
        gpi_slot_unmade(s, "requesting a keeper failed", err, gpi_refused_call(err));
        gpi_hear_slot(d, s, GPI_EV_KEEPER_NO, 0);
    } else {
        gpi_hear_begun(d, s);
    }
}

void gpi_keeper_dismiss(gpud_dispatcher *d, struct gpi_slot *s)
{
    (void)gpi_channel_tell(s, GPI_CTL_END, true);
    gpi_keeper_look(d, s); /* a stopped keeper does not read that */
}

/* ---- its worker is gone ---- */

/* Returns the facts of a worker's end that its page holds. */
static uint32_t exit_facts(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const uint32_t done = atomic_load(&s->ch.page->canary_done);
    uint32_t facts = 0;

    if (gpi_slot_is_read(d, s) && atomic_load(&s->ch.page->fault))
        facts |= GPI_EXITED_FAULT;
    if (s->canary == GPI_CANARY_NO || (!s->initialised && done == GPI_CANARY_NOT_YET))
        return facts; /* the program did not reach the canary: no fault of the device */
    if (atomic_load(&s->ch.page->miscounted))
        return facts; /* no canary ran: setup failed, since the number named another GPU */
    return facts | (done == GPI_CANARY_PASSED ? GPI_EXITED_PASSED : GPI_EXITED_FAILED);
}

/* Reads the worker's last messages and output, until EAGAIN: the keeper holds the other ends, so no
 * end of file follows.  Takes the ended tasks, and returns the tasks that have not begun to the
 * queue. */
static uint32_t take_leave(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_output_end(d, s); /* first: the outcomes of the ended tasks contain it */
    gpi_on_looks(d, s);
    gpi_collect(d, s); /* the cells are authoritative */
    gpi_collect_rest(d, s);
    return (gpi_slot_give_back(d, s) ? GPI_EXITED_SPOILT : 0) | exit_facts(d, s);
}

/* No report proves the worker's death.  Without keeper and spawner the kernel has killed the worker
 * of a CPU slot. */
static void take_last_leave(gpud_dispatcher *d, struct gpi_slot *s)
{
    const bool died =
        d->spawner.gone && gpi_slot_life(d, s) == GPI_LIFE_LOST && !gpi_slot_is_read(d, s);

    s->last = (struct gpi_obituary){ .kind = died ? GPUD_EXIT_LOST : GPUD_EXIT_NONE };
    (void)take_leave(d, s);
}

/* Feeds SWEEPING first: the worker is dead, so the core must order no action on it when its last
 * task ends. */
static void exited(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_control *c)
{
    const bool doomed = gpi_slot_life(d, s) == GPI_LIFE_DOOMED;
    uint32_t facts;

    s->last = (struct gpi_obituary){
        .kind = c->exit_kind, .status = c->exit_status, .words = *c
    };
    if (gpi_slot_life(d, s) <= GPI_LIFE_END)
        gpi_hear_slot(d, s, GPI_EV_SWEEPING, 0);
    s->killed &= !doomed || c->force; /* else the worker died on its own before the kill */
    facts = take_leave(d, s);
    s->last.at = d->now;
    s->keeper_at = GPI_NEVER; /* the keeper is not stopped: it has reported */
    gpi_hear_slot(d, s, GPI_EV_EXITED, facts | (c->force ? GPI_EXITED_BY_US : 0));
}

/* The kill limit has expired: the worker survives, unless its keeper hangs. */
void gpi_keeper_give_up(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (!gpi_slot_has_worker(d, s) || gpi_keeper_hangs(d, s))
        return;
    take_last_leave(d, s);
    gpi_hear_slot(d, s, GPI_EV_SURVIVED, 0);
}

/* ---- messages of keepers ---- */

static void started(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_control *c)
{
    if (c->sys_errno == 0) {
        gpi_slot_started(d, s, c->pid);
        return;
    }
    gpi_slot_unmade(s, "starting a worker failed", c->sys_errno, c->call);
    gpi_hear_slot(d, s, GPI_EV_START_NO, 0);
}

/* Either the keeper tries other ways, or it exits now: then the kernel kills the worker. */
static void on_denied(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_control *c)
{
    char denied[GPI_HOW_SIZE];

    s->denied = c->ways;
    s->denied_errno = c->sys_errno;
    gpi_describe_denied(s, denied);
    gpi_log(d, GPUD_LEVEL_WARNING, s->index, "worker %d of slot %u could not be killed (%s); %s",
            s->pid, s->index, denied,
            s->denied == GPI_WAYS ? "its keeper exits, which kills it"
                                  : "the system call kill sent the signal");
}

static void on_keeper_word(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_control *c)
{
    if (c->kind == GPI_CTL_UNFIT) { /* the worker's exit follows */
        s->unfit = *c;
        return;
    }
    if (c->incarnation != s->incarnation || !gpi_slot_has_worker(d, s)) {
        d->stats.count.late_dropped++;
        return;
    }
    switch (c->kind) {
    case GPI_CTL_STARTED:
        started(d, s, c);
        break;
    case GPI_CTL_ANSWERED:
        s->initialised = true;
        gpi_hear_slot(d, s, GPI_EV_ANSWERED, 0);
        break;
    case GPI_CTL_EXITED:
        exited(d, s, c);
        break;
    case GPI_CTL_STOPPED:
        gpi_slot_stopped(d, s);
        break;
    case GPI_CTL_CONTINUED:
        gpi_slot_continued(d, s);
        break;
    case GPI_CTL_OVERDUE:
        gpi_slot_overdue(d, s);
        break;
    case GPI_CTL_DENIED:
        on_denied(d, s, c);
        break;
    case GPI_CTL_SWEEPING:
        gpi_hear_slot(d, s, GPI_EV_SWEEPING, 0);
        break;
    case GPI_CTL_SPARED:
        s->killed &= gpi_slot_life(d, s) != GPI_LIFE_DOOMED; /* else another kill was ordered */
        gpi_hear_slot(d, s, GPI_EV_SPARED, 0);
        break;
    default:
        break;
    }
}

/* Reads the keeper's messages.  Returns false if the keeper is gone, or sent an invalid message:
 * then the host closes its socket, and the keeper ends. */
static bool read_keeper(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct gpi_control c;
    int n = -1;

    errno = EAGAIN;
    while (s->ch.keeper >= 0 &&
           (n = gpi_message_receive(s->ch.keeper, &c, sizeof c, NULL, 0, NULL)) > 0) {
        if (!gpi_control_of_keeper(&c, (size_t)n))
            return false;
        on_keeper_word(d, s, &c);
    }
    return s->ch.keeper < 0 || (n < 0 && errno == EAGAIN);
}

/* ---- a keeper is gone ---- */

/* The keeper was stopped when the host requested a start from it. */
static void start_in_vain(gpud_dispatcher *d, struct gpi_slot *s)
{
    char text[128], time[GPI_DURATION_SIZE];

    (void)snprintf(text, sizeof text,
                   "its keeper was stopped and did not start a worker within %s (kill_limit)",
                   gpi_duration_text(time, gpi_kill_limit(d, s)));
    gpi_slot_unmade(s, text, 0, 0);
}

/* Returns how the keeper ended.  If it never made a worker, the reason for that decides. */
static enum gpi_gone how_gone(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_control *c = &s->unfit;
    const bool ordered = gpi_slot_has_worker(d, s); /* else the host has not sent START */

    if (ordered && (s->pid || s->killed))
        return GPI_GONE_PLAIN;
    if (c->kind) {
        gpi_slot_unmade(s, "the keeper process cannot start", c->sys_errno, c->call);
        return GPI_GONE_UNFIT;
    }
    if (!ordered || !s->keeper_dropped)
        return GPI_GONE_PLAIN;
    start_in_vain(d, s);
    return GPI_GONE_VAIN;
}

static void lose(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (gpi_slot_life(d, s) != GPI_LIFE_LOST)
        gpi_hear_slot(d, s, GPI_EV_KEEPER_LOST, GPI_LOST_PLAIN);
}

/* The keeper and all processes that it had started are gone for good. */
static void keeper_gone(gpud_dispatcher *d, struct gpi_slot *s)
{
    enum gpi_gone how;
    uint32_t facts;

    if (gpi_slot_has_worker(d, s))
        lose(d, s);
    how = how_gone(d, s);
    if (how == GPI_GONE_PLAIN && gpi_slot_has_worker(d, s)) {
        s->last = (struct gpi_obituary){ .kind = GPUD_EXIT_LOST };
        facts = take_leave(d, s); /* the host still has the worker's pipes */
        s->last.at = d->now;
        gpi_hear_slot(d, s, GPI_EV_EXITED, facts);
    } else if (how == GPI_GONE_PLAIN) {
        gpi_slot_unmade(s, "keepers die before they can start a worker", EPIPE, 0);
    }
    gpi_channel_unmake(d, s); /* the next worker gets a new keeper and new pipes */
    gpi_hear_slot(d, s, GPI_EV_KEEPER_GONE, how);
}

/* The keeper's channel has ended.  The spawner sweeps the processes that the keeper left, and then
 * sends GONE: before that the host reports no end of a worker. */
void gpi_on_keeper(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (read_keeper(d, s))
        return;
    gpi_drive_close(d, &s->ch.keeper);
    if (!gpi_slot_has_worker(d, s)) {
        keeper_gone(d, s);
        return;
    }
    lose(d, s);
    if (d->spawner.gone)
        gpi_channel_unmake(d, s);
}

static bool is_readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return fd >= 0 && poll(&p, 1, 0) == 1;
}

void gpi_on_worker_end(gpud_dispatcher *d, struct gpi_slot *s)
{
    const uint32_t incarnation = s->incarnation;

    if (!is_readable(s->ch.worker))
        return; /* a stale event: it was about the worker before */
    gpi_drive_close(d, &s->ch.worker);
    if (s->ch.keeper >= 0)
        gpi_on_keeper(d, s); /* the keeper may have reported the exit already */
    if (gpi_slot_life(d, s) == GPI_LIFE_STUCK) {
        s->pid = 0; /* another process may get the number */
        for (uint32_t i = 0; i < s->n_devices; i++)
            gpi_device_released(d, s->devices[i]);
        return;
    }
    if (!gpi_slot_has_worker(d, s) || s->incarnation != incarnation)
        return;
    s->ended = true;
    gpi_hear_slot(d, s, GPI_EV_STILL, true);
    gpi_keeper_look(d, s);
}

/* ---- messages of the spawner ---- */

static void not_made(gpud_dispatcher *d, struct gpi_slot *s, const char *what, int sys_errno,
                     uint32_t call)
{
    gpi_channel_unmake(d, s);
    gpi_slot_unmade(s, what, sys_errno, call);
    gpi_hear_slot(d, s, GPI_EV_KEEPER_NO, 0);
}

static void on_made(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_control *c, int fd)
{
    d->spawner.makes--;
    if (c->sys_errno || fd < 0) {
        not_made(d, s, "starting a keeper failed", c->sys_errno ? c->sys_errno : EBADF, c->call);
        return;
    }
    s->keeper_pid = c->pid;
    s->unfit = (struct gpi_control){ .kind = 0 };
    if (gpi_channel_attach(d, s, fd)) {
        const int err = errno;
        not_made(d, s, "watching a keeper failed", err, gpi_refused_call(err));
        return;
    }
    gpi_hear_slot(d, s, GPI_EV_KEEPER_UP, 0);
    if (d->close.finished)
        gpi_keeper_dismiss(d, s);
}

static void on_gone(gpud_dispatcher *d, struct gpi_slot *s)
{
    const int32_t pid = s->keeper_pid;

    /* The core must order no action on this worker while the host reads its last messages.  But
     * they may report that a worker with a later kill time died on its own: `exited` reads that in
     * DOOMED. */
    if (gpi_slot_has_worker(d, s) && gpi_slot_life(d, s) != GPI_LIFE_DOOMED)
        lose(d, s);
    if (read_keeper(d, s)) /* the keeper's last messages may still wait in the socket */
        gpi_drive_close(d, &s->ch.keeper);
    if (s->keeper_pid == pid)
        keeper_gone(d, s);
}

static void on_spawner_word(gpud_dispatcher *d, const struct gpi_control *c, int fd)
{
    struct gpi_slot *s = &d->slot[c->slot];

    if (c->kind == GPI_CTL_MADE) {
        on_made(d, s, c, fd);
        return;
    }
    gpi_fd_close(&fd);
    if (c->kind == GPI_CTL_UNFIT) {
        d->spawner.call = c->call;
        d->spawner.error = c->sys_errno;
    } else if (c->pid == s->keeper_pid) { /* GONE */
        on_gone(d, s);
    }
}

void gpi_on_spawner(gpud_dispatcher *d)
{
    struct gpi_control c;
    size_t n = 0;
    int fd = -1, r;

    while ((r = gpi_message_receive(d->spawner.fd, &c, sizeof c, &fd, 1, &n)) > 0 &&
           gpi_control_of_spawner(&c, (size_t)r, d->n_slots)) {
        on_spawner_word(d, &c, n ? fd : -1);
        fd = -1;
        n = 0;
    }
    if (r > 0 && n)
        gpi_fd_close(&fd);
    if (r >= 0 || errno != EAGAIN)
        gpi_spawner_lost(d);
}

/* ---- the spawner is gone ---- */

/* No process is left to report that a lost keeper is gone, or that a new one is made. */
static void orphan(gpud_dispatcher *d, struct gpi_slot *s, const char *gone)
{
    gpi_slot_unmade(s, gone, -1, 0);
    if (gpi_slot_life(d, s) == GPI_LIFE_LOST)
        take_last_leave(d, s);
    if (!gpi_sched_has_keeper(d->core, s->index))
        gpi_channel_unmake(d, s);
}

/* No process can make a new keeper.  The living keepers continue. */
void gpi_spawner_lost(gpud_dispatcher *d)
{
    char gone[GPI_HOW_SIZE];

    if (d->spawner.gone)
        return;
    (void)gpi_spawner_gone_text(d, gone, sizeof gone);
    d->spawner.gone = true;
    d->spawner.makes = 0;
    gpi_drive_close(d, &d->spawner.fd);
    gpi_drive_close(d, &d->spawner.pidfd);
    gpi_log(d, GPUD_LEVEL_ERROR, GPUD_NO_SLOT,
            "%s; the workers go on, but a slot whose keeper dies starts no worker any more", gone);
    for (uint32_t i = 0; i < d->n_slots; i++)
        orphan(d, &d->slot[i], gone);
    gpi_hear(d, (struct gpi_sched_event){ .kind = GPI_EV_SPAWNER_GONE });
}
