/* SPDX-License-Identifier: MIT */
/* readers.c - streams snapshots to readers. */
#include "view/serve/readers.h"

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

static void end_reader(void *user)
{
    struct gpv_reader *r = user;
    gpv_frame_drop(r->frame);
    *r = (struct gpv_reader){ .connection = NULL };
}

struct MHD_Response *gpv_readers_add(struct gpv_readers *r, struct MHD_Connection *connection)
{
    for (int i = 0; i < GPV_READERS; i++) {
        struct gpv_reader *reader = &r->reader[i];
        if (reader->connection)
            continue;
        *reader = (struct gpv_reader){ connection, .all = r, .last = gpv_monotonic() };
        struct MHD_Response *response = MHD_create_response_from_callback(
            MHD_SIZE_UNKNOWN, BLOCK, read_events, reader, end_reader);
        if (!response)
            reader->connection = NULL;
        return response;
    }
    return NULL;
}

int64_t gpv_readers_wake(struct gpv_readers *r)
{
    int64_t now = gpv_monotonic(), next = -1;
    for (int i = 0; i < GPV_READERS; i++) {
        struct gpv_reader *reader = &r->reader[i];
        if (!reader->connection || !reader->suspended)
            continue;
        int64_t left = due_at(reader) - now;
        if (left <= 0) {
            reader->suspended = false;
            MHD_resume_connection(reader->connection);
            left = 0;
        }
        next = next < 0 || left < next ? left : next;
    }
    return next;
}
