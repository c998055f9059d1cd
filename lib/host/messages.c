/* SPDX-License-Identifier: MIT */
/*
 * messages.c - reports of workers other than ends of tasks: end of setup, first claim, progress,
 * log lines.  A frame that no honest worker writes retires the worker (C17).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "host/act.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"
#include "wire/frame.h"

#define READ_FRAMES 64
#define LOG_ROUNDS 4 /* of 16 lines, in one call */

/* ---- news ---- */

static void read_progress(gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t pending = atomic_exchange(&s->ch.page->progress_pending, 0);

    for (uint64_t left = pending & s->inflight; left; left &= left - 1) {
        uint32_t cell = gpi_lowest_bit(left);
        const struct gpi_task *t = &d->task[s->cell_task[cell]];
        struct gpi_note *n;
        if (!gpi_cell_progress(&s->ch.page->extra[cell], &s->progress, s->progress_text))
            continue;
        s->last_progress_task = t->id;
        if (gpi_slot_class(d, s)->set.start_events)
            gpi_see_start(d, s, cell); /* gpi_see_starts misses a task that has ended since */
        n = gpi_note_of_task(d, s, t, GPUD_EVENT_PROGRESS);
        if (!n)
            continue;
        n->progress = s->progress;
        memcpy(n->text, s->progress_text, sizeof s->progress_text);
        gpi_note_push(d, n);
    }
}

static void read_log(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct gpi_page *p = s->ch.page;
    uint32_t at = atomic_load(&p->log_read), written, rounds = 0;

    s->more_log = false;
    while ((written = atomic_load(&p->log_written)) != at) {
        if (rounds++ == LOG_ROUNDS) {
            s->more_log = true; /* a fast writer must not keep the host here */
            s->peek_at = gpi_time_min(s->peek_at, d->now + GPI_MS);
            gpi_slot_timer(d, s);
            return;
        }
        if (written - at > GPI_LOG_LINES)
            at = written - GPI_LOG_LINES; /* an invalid counter: report the lines that are there */
        for (; at != written; at++) {
            char text[GPI_LOG_TEXT_SIZE];
            uint32_t level = p->log[at % GPI_LOG_LINES].level;
            gpi_page_text(text, p->log[at % GPI_LOG_LINES].text, sizeof text);
            gpi_log(d, level >= 1 && level < GPUD_LEVEL_COUNT ? level : GPUD_LEVEL_INFO, s->index,
                    "%s", text);
        }
        atomic_store(&p->log_read, at);
    }
    d->stats.count.events_dropped += atomic_exchange(&p->log_dropped, 0);
}

void gpi_read_more_log(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->more_log)
        read_log(d, s);
}

static void read_news(gpud_dispatcher *d, struct gpi_slot *s, uint32_t news)
{
    if (news & GPI_NEWS_SETUP)
        gpi_slot_check_ready(d, s);
    s->claimed |= (news & GPI_NEWS_CLAIMED) != 0;
    if (news & GPI_NEWS_ROOM)
        gpi_result_wanted(d, s);
    if (news & GPI_NEWS_PROGRESS)
        read_progress(d, s);
    if (news & GPI_NEWS_LOG)
        read_log(d, s);
}

/* ---- pipes ---- */

/* Reads once.  Returns true if there may be more. */
static bool read_looks(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct gpi_frame f[READ_FRAMES];
    ssize_t r = read(s->ch.looks, f, sizeof f);
    uint32_t news = 0;

    if (r == 0)
        gpi_drive_close(
            d, &s->ch.looks); /* the keeper died too; else the pipe's end would wake us */
    if (r <= 0)
        return r < 0 && errno == EINTR;
    if (r % (ssize_t)sizeof f[0])
        gpi_slot_retire(d, s, "a frame is incomplete");
    for (size_t i = 0; i < (size_t)r / sizeof f[0]; i++) {
        if (!gpi_look_valid(&f[i]))
            gpi_slot_retire(d, s, "a frame is invalid");
        else if (f[i].incarnation != s->incarnation)
            d->stats.count.late_dropped++;
        else
            news |= f[i].what;
    }
    if (news & ~GPI_NEWS_ENDED)
        read_news(d, s, news);
    if (news & GPI_NEWS_ENDED)
        gpi_collect(d, s);
    return r == (ssize_t)sizeof f;
}

void gpi_on_looks(gpud_dispatcher *d, struct gpi_slot *s)
{
    while (read_looks(d, s))
        ;
}
