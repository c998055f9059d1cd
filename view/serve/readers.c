/* SPDX-License-Identifier: MIT */
/* readers.c - streams snapshots to readers. */
#include "view/serve/readers.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define APART (2 * SECOND)
#define SILENCE (30 * SECOND)

enum { BLOCK = 8 * 1024 };

int64_t gpv_monotonic(void)
{
    struct timespec t = { 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

/* When the next bytes are due. */
static int64_t due_at(const struct gpv_reader *r)
{
    const struct gpv_feed *feed = r->all->feed;
    if (feed->number == 0 || r->number == feed->number)
        return r->last + SILENCE;
    return r->number == 0 ? 0 : r->last + APART;
}

static bool take_frame(struct gpv_reader *r)
{
    struct gpv_feed *feed = r->all->feed;
    if (feed->number == 0 || r->number == feed->number)
        return false;
    r->frame = gpv_feed_frame(feed, r->number == 0 || r->minute != feed->minute);
    r->at = 0;
    r->number = feed->number;
    r->minute = feed->minute;
    return r->frame;
}

static ssize_t copy(struct gpv_reader *r, char *to, size_t most)
{
    size_t left = r->frame->size - r->at, n = left < most ? left : most;
    memcpy(to, r->frame->text + r->at, n);
    r->at += n;
    if (r->at == r->frame->size) {
        gpv_frame_drop(r->frame);
        r->frame = NULL;
    }
    return (ssize_t)n;
}

static ssize_t read_events(void *user, uint64_t position, char *to, size_t most)
{
    static const char comment[] = ":\n\n";
    struct gpv_reader *r = user;
    int64_t now = gpv_monotonic();
    (void)position;
    if (!r->all)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!r->frame && now < due_at(r)) {
        r->suspended = true;
        MHD_suspend_connection(r->connection);
        return 0;
    }
    r->last = now;
    if (r->frame || take_frame(r))
        return copy(r, to, most);
    if (most < sizeof(comment) - 1)
        return 0;
    memcpy(to, comment, sizeof(comment) - 1);
    return sizeof(comment) - 1;
}

static void resume(struct gpv_reader *r)
{
    if (r->suspended)
        MHD_resume_connection(r->connection);
    r->suspended = false;
}

/* ---- Places ---- */

static void leave_place(struct gpv_reader *r)
{
    for (int i = 0; r->all && i < GPV_READERS; i++)
        if (r->all->place[i] == r)
            r->all->place[i] = NULL;
    r->all = NULL;
}

static void end_reader(void *user)
{
    struct gpv_reader *r = user;
    leave_place(r);
    gpv_frame_drop(r->frame);
    free(r);
}

/* libmicrohttpd does not notice this while the connection is suspended. */
static bool has_left(const struct gpv_reader *r)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd fd = { .fd = info->connect_fd, .events = POLLRDHUP };
    return poll(&fd, 1, 0) > 0;
}

/* NULL: all places are taken. */
static struct gpv_reader **free_place(struct gpv_readers *all)
{
    for (int i = 0; i < GPV_READERS; i++) {
        struct gpv_reader *r = all->place[i];
        if (r && has_left(r)) {
            leave_place(r);
            resume(r); /* to its end */
        }
        if (!all->place[i])
            return &all->place[i];
    }
    return NULL;
}

struct MHD_Response *gpv_readers_add(struct gpv_readers *all, struct MHD_Connection *connection)
{
    struct gpv_reader **place = free_place(all), *r = place ? malloc(sizeof(*r)) : NULL;
    if (!r)
        return NULL;
    *r = (struct gpv_reader){ connection, .all = all, .last = gpv_monotonic() };
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_events, r, end_reader);
    if (response)
        *place = r;
    else
        free(r);
    return response;
}

/* ---- All of them ---- */

int64_t gpv_readers_wake(struct gpv_readers *all)
{
    int64_t now = gpv_monotonic(), next = -1;
    for (int i = 0; i < GPV_READERS; i++) {
        struct gpv_reader *r = all->place[i];
        if (!r || !r->suspended)
            continue;
        int64_t left = due_at(r) - now;
        if (left <= 0) {
            resume(r);
            left = 0;
        }
        next = next < 0 || left < next ? left : next;
    }
    return next;
}

void gpv_readers_resume(struct gpv_readers *all)
{
    for (int i = 0; i < GPV_READERS; i++)
        if (all->place[i])
            resume(all->place[i]);
}
