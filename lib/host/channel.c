/* SPDX-License-Identifier: MIT */
/* channel.c - a slot's fds and shared memory, and the messages that the host sends over them. */
#include <errno.h>
#include <string.h>

#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/slot.h"
#include "os/fds.h"
#include "os/memory.h"
#include "os/message.h"
#include "wire/control.h"

/* ---- for the slot's whole life: status page and result arena ---- */

/* The host writes the header anew for each life: the last worker may have overwritten it. */
void gpi_channel_header(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_class *c = gpi_slot_class(d, s);
    struct gpi_page *p = s->ch.page;

    p->magic = GPI_PAGE_MAGIC;
    p->version = GPI_PAGE_VERSION;
    p->slot = s->index;
    p->definition = c->set.definition;
    p->seed = c->set.seed;
    p->max_batch = c->set.max_batch;
    p->batch_wait = c->set.batch_wait;
    p->result_wait = c->set.result_wait;
    p->start_events = c->set.start_events;
    atomic_store(&p->closing, d->close.closing);
    p->setup_off = c->setup.off;
    p->setup_size = c->setup.size;
    p->input_size = d->set.input_size;
    p->result_size = d->set.result_size;
    memcpy(p->device, s->device, sizeof p->device);
    gpi_device_header(d, s, p);
    memcpy(p->name, c->launch.name, sizeof p->name);
    atomic_store(&p->share, d->set.result_size);
}

/* One bit for each granule of the result arena. */
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
    s->hold = gpi_memory_private(hold_size(d)); /* as for slots: leak checkers search neither */
    s->ch.page = gpi_memory_map(s->ch.page_fd, page_size, true);
    s->ch.result = gpi_memory_map(s->ch.result_fd, d->set.result_size, false);
    if (!s->ch.page || !s->ch.result || !s->hold)
        return -1;
    gpi_channel_header(d, s);
    return 0;
}

/* Closes the fds that live as long as one keeper. */
void gpi_channel_unmake(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_fd_close(&s->ch.orders);
    gpi_fd_close(&s->ch.orders_kept);
    gpi_drive_close(d, &s->ch.looks);
    gpi_drive_close(d, &s->ch.output);
    gpi_drive_close(d, &s->ch.errors);
    gpi_drive_close(d, &s->ch.keeper);
    gpi_drive_close(d, &s->ch.worker);
    s->ch.class = GPI_NONE;
    s->keeper_pid = 0;
    s->keeper_dropped = false;
}

void gpi_channel_fini(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_channel_unmake(d, s);
    gpi_memory_unmap(s->ch.page, gpi_page_size(d->set.result_size));
    gpi_memory_unmap(s->ch.result, d->set.result_size);
    gpi_fd_close(&s->ch.page_fd);
    gpi_fd_close(&s->ch.result_fd);
    gpi_memory_unmap(s->hold, hold_size(d));
    s->hold = NULL;
}

/* ---- for one keeper's life: pipes and its control socket ---- */

/* A second pipe for stderr keeps the lines of the two streams apart. */
static int open_errors(gpud_dispatcher *d, struct gpi_slot *s, int *theirs)
{
    if (gpi_fd_pipe(&s->ch.errors, theirs) || gpi_fd_nonblock(s->ch.errors))
        return -1;
    return gpi_drive_watch(d, s->ch.errors, GPI_FD_ERRORS, s->index);
}

/* Opens the pipes.  theirs[0..3] has the worker's ends, the last one if a class may need it. */
static int open_pipes(gpud_dispatcher *d, struct gpi_slot *s, int theirs[4])
{
    if (gpi_fd_pipe(&s->ch.orders_kept, &s->ch.orders) || gpi_fd_pipe(&s->ch.looks, &theirs[1]) ||
        gpi_fd_pipe(&s->ch.output, &theirs[2]))
        return -1;
    theirs[0] = s->ch.orders_kept;
    if (gpi_fd_nonblock(s->ch.orders) || gpi_fd_nonblock(s->ch.looks) ||
        gpi_fd_nonblock(s->ch.output))
        return -1;
    if (gpi_drive_watch(d, s->ch.looks, GPI_FD_LOOKS, s->index) ||
        gpi_drive_watch(d, s->ch.output, GPI_FD_OUTPUT, s->index))
        return -1;
    return d->set.pooled || gpi_slot_class(d, s)->launch.lines ? open_errors(d, s, &theirs[3]) : 0;
}

int gpi_channel_make(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_control make = { .kind = GPI_CTL_MAKE, .slot = s->index };
    int theirs[4] = { -1, -1, -1, -1 }, err = 0;

    if (open_pipes(d, s, theirs)) {
        err = errno;
    } else {
        const int fds[GPI_MAKE_FDS] = {
            [GPI_MAKE_PAGE] = s->ch.page_fd,
            [GPI_MAKE_INPUT] = d->arena.input_ro_fd,
            [GPI_MAKE_RESULT] = s->ch.result_fd,
            [GPI_MAKE_ORDERS] = theirs[0],
            [GPI_MAKE_LOOKS] = theirs[1],
            [GPI_MAKE_OUTPUT] = theirs[2],
            [GPI_MAKE_ERRORS] = theirs[3] >= 0 ? theirs[3] : theirs[2],
        };
        if (gpi_message_send(d->spawner.fd, &make, sizeof make, fds, GPI_MAKE_FDS))
            err = errno;
    }
    gpi_fd_close(&theirs[1]);
    gpi_fd_close(&theirs[2]);
    gpi_fd_close(&theirs[3]);
    if (err)
        gpi_channel_unmake(d, s);
    d->spawner.makes += !err;
    return err;
}

int gpi_channel_attach(gpud_dispatcher *d, struct gpi_slot *s, int keeper_fd)
{
    s->ch.keeper = keeper_fd;
    return gpi_drive_watch(d, keeper_fd, GPI_FD_KEEPER, s->index);
}

/* If the host cannot send a message now, for example for lack of memory, it shuts the socket down:
 * the keeper reads end of file, kills its worker and exits, and the host learns of that exit.  A
 * failed ALARM is no reason for that: the kill after `grace` follows. */
static int tell_with(const struct gpi_slot *s, struct gpi_control c, const int *fds, size_t n)
{
    c.slot = s->index;
    c.incarnation = s->incarnation;
    if (s->ch.keeper < 0)
        return -1;
    if (gpi_message_send(s->ch.keeper, &c, sizeof c, fds, n) == 0)
        return 0;
    if (c.kind != GPI_CTL_ALARM)
        gpi_message_hang_up(s->ch.keeper);
    return -1;
}

static int tell(const struct gpi_slot *s, struct gpi_control c)
{
    return tell_with(s, c, NULL, 0);
}

int gpi_channel_tell(const struct gpi_slot *s, uint32_t kind, bool force)
{
    return tell(s, (struct gpi_control){
                       .kind = kind, .stops = atomic_load(&s->ch.page->stops), .force = force });
}

/* The files from which the keeper makes workers of the class.  Returns their number. */
static size_t class_files(const gpud_dispatcher *d, const struct gpi_class *c, int *ret)
{
    size_t n = GPI_CLASS_FDS;

    ret[GPI_CLASS_LAUNCH] = c->launch.fd;
    ret[GPI_CLASS_SETUP] = c->setup.fd >= 0 ? c->setup.fd : d->arena.input_ro_fd;
    if (c->launch.stdio_fd[0] >= 0) {
        ret[n++] = c->launch.stdio_fd[0];
        ret[n++] = c->launch.stdio_fd[1];
    }
    if (c->launch.program_fd >= 0)
        ret[n++] = c->launch.program_fd;
    return n;
}

int gpi_channel_start(const gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_class *c = gpi_slot_class(d, s);
    const bool knows = s->ch.class == s->class;
    int fds[GPI_CLASS_FDS_MAX];
    const size_t n = knows ? 0 : class_files(d, c, fds);

    s->ch.class = s->class;
    return tell_with(
        s, (struct gpi_control){ .kind = GPI_CTL_START, .at = c->set.stop_limit, .force = !knows },
        fds, n);
}

int gpi_channel_tell_when(const struct gpi_slot *s, uint32_t cell, uint64_t at)
{
    return tell(s, (struct gpi_control){ .kind = GPI_CTL_KILL,
                                         .stops = atomic_load(&s->ch.page->stops),
                                         .cell = cell,
                                         .at = at,
                                         .number = s->cell_number[cell] });
}
