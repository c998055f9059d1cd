/* SPDX-License-Identifier: MIT */
/* channel.c - a slot's fds and shared memory, and what keeper and spawner say over them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/refused.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/shadow.h"
#include "host/slot.h"
#include "os/fds.h"
#include "os/memory.h"
#include "os/message.h"
#include "wire/control.h"

#define KEEPERS_IN_VAIN 3 /* replaced at once; further ones count as failures of the slot */

/* ---- for the slot's whole life: status page and result arena ---- */

/* Written anew for each life: a worker may have spoilt it for the next. */
void gpi_channel_header(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct gpi_page *p = s->ch.page;

    p->magic = GPI_PAGE_MAGIC;
    p->version = GPI_PAGE_VERSION;
    p->slot = s->index;
    p->definition = d->set.definition;
    p->seed = d->set.seed;
    p->max_batch = d->set.max_batch;
    p->batch_wait = d->set.batch_wait;
    p->result_wait = d->set.result_wait;
    p->start_events = d->set.start_events;
    atomic_store(&p->closing, d->closing);
    p->setup_off = d->setup_off;
    p->setup_size = d->setup_size;
    p->input_size = d->set.input_size;
    p->result_size = d->set.result_size;
    memcpy(p->device, s->device, sizeof p->device);
    gpi_device_header(d, s, p);
    memcpy(p->name, d->name, sizeof p->name);
    atomic_store(&p->share, d->set.result_size);
}

/* A bit for each granule of the result arena. */
static uint64_t hold_size(const gpud_dispatcher *d)
{
    return (d->set.result_size / GPI_GRANULE + 63) / 64 * sizeof(uint64_t);
}

int gpi_channel_init(gpud_dispatcher *d, struct gpi_slot *s)
{
    size_t page_size = gpi_page_size(d->set.result_size);

    s->ch.page_fd = gpi_memory_create("gpud-page", page_size);
    s->ch.result_fd = gpi_memory_create("gpud-result", d->set.result_size);
    if (s->ch.page_fd < 0 || s->ch.result_fd < 0)
        return -1;
    s->hold = gpi_memory_private(hold_size(d)); /* as the slot itself: whoever looks for leaks looks into neither */
    s->ch.page = gpi_memory_map(s->ch.page_fd, page_size, true);
    s->ch.result = gpi_memory_map(s->ch.result_fd, d->set.result_size, false);
    if (!s->ch.page || !s->ch.result || !s->hold)
        return -1;
    gpi_channel_header(d, s);
    return 0;
}

/* What there is for one keeper's life. */
static void unmake(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_fd_close(&s->ch.orders);
    gpi_fd_close(&s->ch.orders_kept);
    gpi_drive_close(d, &s->ch.looks);
    gpi_drive_close(d, &s->ch.output);
    gpi_drive_close(d, &s->ch.errors);
    gpi_drive_close(d, &s->ch.keeper);
    gpi_drive_close(d, &s->ch.worker);
    s->keeper_pid = 0;
    s->keeper_lost = s->keeper_dropped = false;
}

void gpi_channel_fini(gpud_dispatcher *d, struct gpi_slot *s)
{
    unmake(d, s);
    gpi_memory_unmap(s->ch.page, gpi_page_size(d->set.result_size));
    gpi_memory_unmap(s->ch.result, d->set.result_size);
    gpi_fd_close(&s->ch.page_fd);
    gpi_fd_close(&s->ch.result_fd);
    gpi_memory_unmap(s->hold, hold_size(d));
    s->hold = NULL;
}

/* ---- for one keeper's life: pipes and its control socket ---- */

/* A second pipe for stderr: lines are told apart by it. */
static int open_errors(gpud_dispatcher *d, struct gpi_slot *s, int *theirs)
{
    if (gpi_fd_pipe(&s->ch.errors, theirs) || gpi_fd_nonblock(s->ch.errors))
        return -1;
    return gpi_drive_watch(d, s->ch.errors, GPI_FD_ERRORS, s->index);
}

/* Opens the pipes; the worker's ends in theirs[0..3], the last one with option stdio EVENTS. */
static int open_pipes(gpud_dispatcher *d, struct gpi_slot *s, int theirs[4])
{
    if (gpi_fd_pipe(&s->ch.orders_kept, &s->ch.orders) || gpi_fd_pipe(&s->ch.looks, &theirs[1]) ||
        gpi_fd_pipe(&s->ch.output, &theirs[2]))
        return -1;
    theirs[0] = s->ch.orders_kept;
    if (gpi_fd_nonblock(s->ch.orders) || gpi_fd_nonblock(s->ch.looks) || gpi_fd_nonblock(s->ch.output))
        return -1;
    if (gpi_drive_watch(d, s->ch.looks, GPI_FD_LOOKS, s->index) || gpi_drive_watch(d, s->ch.output, GPI_FD_OUTPUT, s->index))
        return -1;
    return d->lines ? open_errors(d, s, &theirs[3]) : 0;
}

int gpi_channel_make(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_control c = { .kind = GPI_CTL_MAKE, .slot = s->index };
    const bool inherits = d->stdio_fd[0] >= 0;
    int theirs[4] = { -1, -1, -1, -1 }, err = 0;

    if (open_pipes(d, s, theirs)) {
        err = errno;
    } else {
        const int fds[GPI_MAKE_FDS + 1] = {
            [GPI_MAKE_PAGE] = s->ch.page_fd, [GPI_MAKE_INPUT] = d->input_ro_fd, [GPI_MAKE_RESULT] = s->ch.result_fd,
            [GPI_MAKE_ORDERS] = theirs[0], [GPI_MAKE_LOOKS] = theirs[1],
            [GPI_MAKE_OUTPUT] = inherits ? d->stdio_fd[0] : theirs[2],
            [GPI_MAKE_ERRORS] = inherits ? d->stdio_fd[1] : d->lines ? theirs[3] : theirs[2],
            [GPI_MAKE_LAUNCH] = d->launch_fd, [GPI_MAKE_SETUP] = d->setup_fd >= 0 ? d->setup_fd : d->input_ro_fd,
            [GPI_MAKE_PROGRAM] = d->program_fd,
        };
        if (gpi_message_send(d->spawner, &c, sizeof c, fds, d->program_fd >= 0 ? GPI_MAKE_FDS + 1 : GPI_MAKE_FDS))
            err = errno;
    }
    gpi_fd_close(&theirs[1]);
    gpi_fd_close(&theirs[2]);
    gpi_fd_close(&theirs[3]);
    if (err)
        unmake(d, s);
    else
        s->keeper_asked = true;
    d->makes += !err;
    return err;
}

static int attach(gpud_dispatcher *d, struct gpi_slot *s, int keeper_fd)
{
    s->ch.keeper = keeper_fd;
    return gpi_drive_watch(d, keeper_fd, GPI_FD_KEEPER, s->index);
}

/* What cannot be said now, for a lack of memory say, is not said again: the keeper reads the end
 * of its socket instead, kills what it has and leaves, and that is news of its own.  An alarm is no
 * reason for that: the grace decides. */
int gpi_channel_tell(struct gpi_slot *s, uint32_t kind, bool force)
{
    const struct gpi_control c = {
        .kind = kind,
        .slot = s->index,
        .incarnation = s->incarnation,
        .stops = atomic_load(&s->ch.page->stops),
        .force = force,
    };

    if (s->ch.keeper < 0)
        return -1;
    if (gpi_message_send(s->ch.keeper, &c, sizeof c, NULL, 0) == 0)
        return 0;
    if (kind != GPI_CTL_ALARM)
        gpi_message_hang_up(s->ch.keeper);
    return -1;
}

int gpi_channel_start(const gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_control c = {
        .kind = GPI_CTL_START,
        .slot = s->index,
        .incarnation = s->incarnation,
        .at = d->set.stop_limit,
    };

    if (s->ch.keeper >= 0 && gpi_message_send(s->ch.keeper, &c, sizeof c, NULL, 0) == 0)
        return 0;
    if (s->ch.keeper >= 0)
        gpi_message_hang_up(s->ch.keeper);
    return -1;
}

int gpi_channel_tell_when(struct gpi_slot *s, uint32_t cell, uint64_t at)
{
    const struct gpi_control c = {
        .kind = GPI_CTL_KILL,
        .slot = s->index,
        .incarnation = s->incarnation,
        .stops = atomic_load(&s->ch.page->stops),
        .cell = cell,
        .at = at,
        .number = s->cell_number[cell],
    };

    if (s->ch.keeper < 0)
        return -1;
    if (gpi_message_send(s->ch.keeper, &c, sizeof c, NULL, 0) == 0)
        return 0;
    gpi_message_hang_up(s->ch.keeper);
    return -1;
}

/* ---- what they say ---- */

/* That was to come at the hard limit. */
static void call_off_kill(struct gpi_slot *s)
{
    s->kill = GPI_KILL_NO;
    s->late = 0;
}

static void on_keeper_word(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_control *c)
{
    if (c->kind == GPI_CTL_UNFIT) { /* its end comes next */
        s->unfit = *c;
        return;
    }
    if (c->incarnation != s->incarnation || !s->started || s->survivor) {
        d->count.late_dropped++;
        return;
    }
    switch (c->kind) {
    case GPI_CTL_STARTED:
        if (c->sys_errno) {
            gpi_shadow_slot(d, s, GPI_EV_START_NO, 0);
            gpi_slot_unmade(d, s, "starting a worker failed", c->sys_errno, c->call);
        } else
            gpi_slot_started(d, s, c->pid);
        break;
    case GPI_CTL_ANSWERED:
        gpi_start_answered(d, s);
        break;
    case GPI_CTL_EXITED:
        if (s->kill == GPI_KILL_HARD && !c->force) /* it died by itself before its time */
            call_off_kill(s);
        s->obituary = *c;
        gpi_slot_died(d, s, c->exit_kind, c->exit_status);
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
        gpi_slot_denied(d, s, c);
        break;
    case GPI_CTL_SWEEPING: /* if that takes longer than the kill limit, the slot is lost */
        if (s->kill == GPI_KILL_NO) {
            gpi_shadow_slot(d, s, GPI_EV_SWEEPING, 0);
            s->sweeping = true;
            s->state_deadline = gpi_time_add(d->now, gpi_kill_limit(d, s));
            gpi_slot_timer(d, s);
        }
        break;
    case GPI_CTL_SPARED: /* judge again */
        if (s->kill == GPI_KILL_HARD) {
            gpi_shadow_slot(d, s, GPI_EV_SPARED, 0);
            call_off_kill(s);
            if (!gpi_slot_dies(s))
                s->state_deadline = GPI_NEVER;
            s->check_at = d->now;
            gpi_slot_timer(d, s);
        }
        break;
    default:
        break;
    }
}

/* Reads what there is; false when the keeper is gone, or talks nonsense: it ends when we close its socket. */
static bool read_keeper(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct gpi_control c;
    int n = -1;

    errno = EAGAIN;
    while (s->ch.keeper >= 0 && (n = gpi_message_receive(s->ch.keeper, &c, sizeof c, NULL, 0, NULL)) > 0) {
        if (!gpi_control_of_keeper(&c, (size_t)n))
            return false;
        on_keeper_word(d, s, &c);
    }
    return s->ch.keeper < 0 || (n < 0 && errno == EAGAIN);
}

/* It was stopped when a start was asked of it. */
static void start_in_vain(gpud_dispatcher *d, struct gpi_slot *s)
{
    char text[128], time[GPI_DURATION_SIZE];

    (void)snprintf(text, sizeof text,
                   "its keeper was stopped and did not start a worker within %s (kill_limit)",
                   gpi_duration_text(time, gpi_kill_limit(d, s)));
    gpi_slot_unmade(d, s, text, 0, 0);
}

/* The keeper, and what it had started, is gone for good. */
static void keeper_gone(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_control *c = &s->unfit;
    const bool unfit = c->kind && !s->pid && s->state == GPUD_SLOT_STARTING &&
                       s->kill == GPI_KILL_NO; /* no worker was ever made */
    const bool had_worker = s->started && !s->survivor && !unfit;
    const bool in_vain = had_worker && !s->pid && s->keeper_dropped && s->kill == GPI_KILL_NO;

    if (had_worker)
        gpi_drain(d, s); /* while its pipes are still ours */
    unmake(d, s);        /* the next worker gets a new keeper and new pipes */
    if (!had_worker || in_vain)
        gpi_shadow_gone(d, s, unfit ? GPI_GONE_UNFIT : in_vain ? GPI_GONE_VAIN : GPI_GONE_PLAIN);
    if (unfit)
        gpi_slot_unmade(d, s, "the keeper process cannot start", c->sys_errno, c->call);
    else if (in_vain)
        start_in_vain(d, s);
    else if (had_worker)
        gpi_slot_died(d, s, GPUD_EXIT_LOST, 0);
    else if (s->state == GPUD_SLOT_STARTING && s->keepers_in_vain++ < KEEPERS_IN_VAIN)
        gpi_slot_start(d, s);
    else if (s->state == GPUD_SLOT_STARTING)
        gpi_slot_unmade(d, s, "keepers die before they can start a worker", EPIPE, 0);
}

void gpi_on_keeper(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (read_keeper(d, s))
        return;
    gpi_drive_close(d, &s->ch.keeper);
    if (d->spawner_gone || !s->started || s->survivor) {
        keeper_gone(d, s);
        return;
    }
    /* The spawner sweeps what it left and then says GONE.  Until then nothing is judged. */
    gpi_shadow_slot(d, s, GPI_EV_KEEPER_LOST, 0);
    s->keeper_lost = true;
    s->state_deadline = gpi_time_add(d->now, gpi_kill_limit(d, s));
    gpi_slot_timer(d, s);
}

/* One of the slots that wait to ask the spawner. */
static void ask_for_next(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (s->state == GPUD_SLOT_STARTING && !s->keeper_asked && !s->keeper_pid && !s->keeper_lost) {
            gpi_slot_start(d, s);
            return;
        }
    }
}

/* A slot that was parked or removed since it requested a keeper needs none: no failure. */
static void not_made(gpud_dispatcher *d, struct gpi_slot *s, const char *what, int sys_errno,
                     uint32_t call)
{
    unmake(d, s);
    if (s->state == GPUD_SLOT_STARTING)
        gpi_slot_unmade(d, s, what, sys_errno, call);
}

static void on_made(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_control *c, int fd)
{
    s->keeper_asked = false;
    s->state_deadline = GPI_NEVER;
    d->makes--;
    if (c->sys_errno || fd < 0) {
        gpi_shadow_slot(d, s, GPI_EV_KEEPER_NO, 0);
        not_made(d, s, "starting a keeper failed", c->sys_errno ? c->sys_errno : EBADF, c->call);
        return;
    }
    s->keeper_pid = c->pid;
    s->unfit = (struct gpi_control){ .kind = 0 };
    if (attach(d, s, fd)) {
        int err = errno;
        gpi_shadow_slot(d, s, GPI_EV_KEEPER_NO, 0);
        not_made(d, s, "watching a keeper failed", err, gpi_refused_call(err));
        return;
    }
    gpi_shadow_slot(d, s, GPI_EV_KEEPER_UP, 0);
    if (s->removed || d->finished) { /* it was parked meanwhile */
        (void)gpi_channel_tell(s, GPI_CTL_END, true);
        s->keeper_lost = true;
    }
    if (s->state == GPUD_SLOT_STARTING)
        gpi_slot_start(d, s);
}

static void on_spawner_word(gpud_dispatcher *d, const struct gpi_control *c, int fd)
{
    struct gpi_slot *s = &d->slot[c->slot];

    if (c->kind == GPI_CTL_UNFIT) {
        gpi_fd_close(&fd);
        d->spawner_call = c->call;
        d->spawner_errno = c->sys_errno;
        return;
    }
    if (c->kind == GPI_CTL_MADE) {
        on_made(d, s, c, fd);
        ask_for_next(d);
        return;
    }
    gpi_fd_close(&fd);
    if (c->pid == s->keeper_pid) { /* GONE */
        s->keeper_lost = true; /* what its last words bring about must not be asked of it */
        if (read_keeper(d, s)) /* its last words may still wait in the socket */
            gpi_drive_close(d, &s->ch.keeper);
        if (s->keeper_pid == c->pid)
            keeper_gone(d, s);
    }
}

void gpi_on_spawner(gpud_dispatcher *d)
{
    struct gpi_control c;
    size_t n = 0;
    int fd = -1, r;

    while ((r = gpi_message_receive(d->spawner, &c, sizeof c, &fd, 1, &n)) > 0 && gpi_control_of_spawner(&c, (size_t)r, d->n_slots)) {
        on_spawner_word(d, &c, n ? fd : -1);
        fd = -1;
        n = 0;
    }
    if (r > 0 && n)
        gpi_fd_close(&fd);
    if (r >= 0 || errno != EAGAIN)
        gpi_spawner_lost(d);
}

const char *gpi_spawner_gone_text(const gpud_dispatcher *d, char *to, size_t size)
{
    char why[GPI_REFUSAL_SIZE];

    if (d->spawner_errno)
        snprintf(to, size, "the spawner is gone (%s)",
                 gpi_refusal_text(why, d->spawner_call, d->spawner_errno));
    else
        snprintf(to, size, "the spawner is gone");
    return to;
}

/* No new keeper can be made; those that live go on. */
void gpi_spawner_lost(gpud_dispatcher *d)
{
    char gone[GPI_HOW_SIZE];

    if (d->spawner_gone)
        return;
    (void)gpi_spawner_gone_text(d, gone, sizeof gone);
    d->spawner_gone = true;
    gpi_shadow_event(d, GPI_EV_SPAWNER_GONE);
    d->makes = 0;
    gpi_drive_close(d, &d->spawner);
    gpi_drive_close(d, &d->spawner_pidfd);
    gpi_log(d, GPUD_LEVEL_ERROR, GPUD_NO_SLOT,
            "%s; the workers go on, but a slot whose keeper dies starts no worker any more", gone);
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (s->keeper_asked) {
            s->keeper_asked = false;
            not_made(d, s, gone, -1, 0);
        } else if (s->keeper_lost) {
            keeper_gone(d, s);
        } else if (s->state == GPUD_SLOT_STARTING && !s->keeper_pid) {
            gpi_slot_unmade(d, s, gone, -1, 0); /* it was waiting for its turn */
        }
    }
}
