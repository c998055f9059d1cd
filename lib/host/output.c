/* SPDX-License-Identifier: MIT */
/*
 * output.c - the output of workers.  The host keeps the last 8 KiB of each worker, and knows which
 * of these bytes it has read since an attempt started.  With option stdio EVENTS each line is also
 * an event.                                                                                   [C18]
 *
 * While a worker lives, the host reads its pipe only when epoll or poll reports it readable: a
 * silent worker costs no read.  The host finds ends of tasks in the status page without epoll.  So
 * before it takes them, it polls the pipe of each worker that it expects to print: one that printed
 * lately, or is new (gpi_output_expected).
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"

#define READ_SIZE 16384u
#define READS 4        /* 64 KiB, the size of a pipe: all that a task wrote before it ended */
#define LAST_READS 64  /* 1 MiB after a death: the largest size of a pipe */
#define PRINTS_FOR 16u /* tasks without output after which the host expects none */

/* ---- the task that printed ---- */

/* Returns true if the host has seen the task start. */
static bool has_started(const struct gpi_slot *s, uint32_t cell, uint64_t number)
{
    return s->out.start[cell].number == number;
}

/* Checks before each read which attempts have started: they own the bytes read from then on.  A
 * worker claims tasks in the order of sending. */
static void see_starts(struct gpi_slot *s)
{
    for (uint64_t n = s->oldest; s->sent > 0 && n <= s->number; n++) {
        uint32_t cell;
        if (!gpi_slot_sent(s, n, &cell) || has_started(s, cell, n))
            continue;
        if (atomic_load(&s->ch.page->cell[cell].claim) != gpi_claim_word(n, GPI_CLAIMED))
            return;
        s->out.start[cell].number = n;
        s->out.start[cell].from = s->out.read;
    }
}

/* Returns the oldest task that has started and whose end the host has not taken, 0 = none: a line
 * that the host reads now belongs to it. */
static uint64_t running_task(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    uint32_t cell;

    for (uint64_t n = s->oldest; s->sent > 0 && n <= s->number; n++)
        if (gpi_slot_sent(s, n, &cell))
            return has_started(s, cell, n) ? d->task[s->cell_task[cell]].id : 0;
    return 0;
}

/* ---- the last bytes ---- */

uint32_t gpi_output_kept(const struct gpi_slot *s)
{
    return s->out.read < GPI_TAIL_SIZE ? (uint32_t)s->out.read : GPI_TAIL_SIZE;
}

/* Returns how many of the kept bytes the host read after it saw the attempt in this cell start. */
static uint32_t own(const struct gpi_slot *s, uint32_t cell)
{
    uint64_t since = 0;

    if (s->out.start[cell].number == s->cell_number[cell])
        since = s->out.read - s->out.start[cell].from;
    return since < GPI_TAIL_SIZE ? (uint32_t)since : GPI_TAIL_SIZE;
}

static void keep(struct gpi_slot *s, const char *bytes, size_t n)
{
    size_t skip = n > GPI_TAIL_SIZE ? n - GPI_TAIL_SIZE : 0;
    size_t at = (s->out.read + skip) % GPI_TAIL_SIZE;
    size_t first = n - skip < GPI_TAIL_SIZE - at ? n - skip : GPI_TAIL_SIZE - at;

    memcpy(s->out.tail + at, bytes + skip, first);
    memcpy(s->out.tail, bytes + skip + first, n - skip - first);
    s->out.read += n;
}

void gpi_output_copy(const struct gpi_slot *s, char *to, uint32_t size)
{
    size_t at = (s->out.read - size) % GPI_TAIL_SIZE;
    size_t first = size < GPI_TAIL_SIZE - at ? size : GPI_TAIL_SIZE - at;

    memcpy(to, s->out.tail + at, first);
    memcpy(to + first, s->out.tail, size - first);
}

/* ---- lines ---- */

static void end_line(gpud_dispatcher *d, struct gpi_slot *s, uint32_t stream, uint64_t task_id)
{
    gpi_log_line(d, s, stream, task_id, s->out.line[stream - 1].text, s->out.line[stream - 1].size);
    s->out.line[stream - 1].size = 0;
}

/* A full line ends with the byte after it: that may be its newline. */
static void take_lines(gpud_dispatcher *d, struct gpi_slot *s, uint32_t stream, const char *bytes,
                       size_t n)
{
    const uint64_t task_id = running_task(d, s);
    uint32_t *size = &s->out.line[stream - 1].size;

    while (n) {
        const char *newline = memchr(bytes, '\n', n);
        size_t line = newline ? (size_t)(newline - bytes) : n;
        size_t room = GPI_LINE_SIZE - *size, part = line < room ? line : room;
        memcpy(s->out.line[stream - 1].text + *size, bytes, part);
        *size += (uint32_t)part;
        bytes += part;
        n -= part;
        if (n == 0)
            return;
        end_line(d, s, stream, task_id);
        if (part == line) {
            bytes++;
            n--;
        }
    }
}

static void take_rest(gpud_dispatcher *d, struct gpi_slot *s)
{
    for (uint32_t stream = GPUD_STREAM_STDOUT; stream <= GPUD_STREAM_STDERR; stream++)
        if (s->out.line[stream - 1].size)
            end_line(d, s, stream, running_task(d, s));
}

/* ---- reading ---- */

static void tell_once(gpud_dispatcher *d, const struct gpi_slot *s)
{
    struct gpi_class *c = gpi_slot_class(d, s);

    if (c->launch.told_output || c->launch.lines)
        return;
    c->launch.told_output = true;
    gpi_log(d, GPUD_LEVEL_INFO, s->index,
            "the worker of slot %u prints; each outcome carries the last %u bytes, the host prints "
            "none of them (stdio)",
            s->index, GPI_TAIL_SIZE);
}

/* Reads once.  Returns true if there may be more. */
static bool read_once(gpud_dispatcher *d, struct gpi_slot *s, int *fd, uint32_t stream)
{
    char buffer[READ_SIZE];
    ssize_t r;

    if (*fd < 0)
        return false;
    see_starts(s);
    d->stats.count.output_reads++;
    r = read(*fd, buffer, sizeof buffer);
    if (r == 0)
        gpi_drive_close(d, fd);
    if (r <= 0)
        return false;
    s->out.prints = PRINTS_FOR;
    tell_once(d, s);
    keep(s, buffer, (size_t)r);
    if (gpi_slot_class(d, s)->launch.lines)
        take_lines(d, s, stream, buffer, (size_t)r);
    return r == (ssize_t)sizeof buffer;
}

static void read_some(gpud_dispatcher *d, struct gpi_slot *s, int *fd, uint32_t stream, int reads)
{
    while (reads-- > 0 && read_once(d, s, fd, stream))
        ;
}

void gpi_on_output(gpud_dispatcher *d, struct gpi_slot *s)
{
    read_some(d, s, &s->ch.output, GPUD_STREAM_STDOUT, READS);
}

void gpi_on_errors(gpud_dispatcher *d, struct gpi_slot *s)
{
    read_some(d, s, &s->ch.errors, GPUD_STREAM_STDERR, READS);
}

void gpi_output_begin(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->out.prints = gpi_slot_class(d, s)->launch.reads_output ? PRINTS_FOR : 0;
    s->out.read = 0;
    s->out.line[0].size = s->out.line[1].size = 0;
}

/* Reads until EAGAIN, not until end of file: the keeper holds the other ends. */
void gpi_output_end(gpud_dispatcher *d, struct gpi_slot *s)
{
    read_some(d, s, &s->ch.output, GPUD_STREAM_STDOUT, LAST_READS);
    read_some(d, s, &s->ch.errors, GPUD_STREAM_STDERR, LAST_READS);
    take_rest(d, s);
}

/* ---- with the ends of tasks ---- */

/* Reads only if poll reports the pipe readable. */
void gpi_output_look(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct pollfd p[] = { { .fd = s->ch.output, .events = POLLIN },
                          { .fd = s->ch.errors, .events = POLLIN } };

    s->out.looked_at = d->now;
    d->stats.count.output_polls++;
    if (poll(p, sizeof p / sizeof *p, 0) <= 0)
        return;
    if (p[0].revents)
        gpi_on_output(d, s);
    if (p[1].revents)
        gpi_on_errors(d, s);
}

bool gpi_output_ended(struct gpi_slot *s, uint32_t cell, uint32_t outcome)
{
    bool printed = own(s, cell) > 0;

    if (!printed && s->out.prints)
        s->out.prints--;
    return printed || (outcome != GPUD_OUTCOME_SUCCESS && s->out.read);
}

struct gpi_detail *gpi_output_detail(const struct gpi_slot *s, struct gpi_task *t, uint32_t cell,
                                     uint32_t outcome)
{
    uint32_t size = own(s, cell);
    uint32_t all = size || outcome != GPUD_OUTCOME_SUCCESS ? gpi_output_kept(s) : 0;
    struct gpi_detail *det = gpi_task_detail(t, all);

    if (!det || det->before_size + det->output_size != all)
        return det; /* of an earlier attempt: malloc failed */
    gpi_output_copy(s, det->output, all);
    det->before_size = all - size;
    det->output_size = size;
    return det;
}
