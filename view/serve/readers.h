/* SPDX-License-Identifier: MIT */
/*
 * readers.h - the event streams that are open.
 *
 * A reader gets the newest snapshot, at most one in 2 s, and none that it missed.  The first one,
 * and the first of each minute, has the history.  After 30 s without one a comment shows whether
 * the reader is still there.  A reader that does not read is dropped after some seconds.    [V2]
 * There are 16 places.  A reader that has left loses its place to the next one that comes.
 */
#ifndef GPV_READERS_H
#define GPV_READERS_H

#include <microhttpd.h>

#include "view/serve/feed.h"

enum { GPV_READERS = 16 };

struct gpv_reader {
    struct MHD_Connection *connection;
    struct gpv_readers *all; /* NULL: it has left, and has no place */
    struct gpv_frame *frame; /* it is in the middle of it; NULL: of none */
    size_t at;
    uint64_t number, minute; /* of the snapshot that it had last; 0: none */
    int64_t last;            /* when it had something, ns of CLOCK_MONOTONIC */
    bool suspended;          /* until something is due */
};

struct gpv_readers {
    struct gpv_feed *feed;
    struct gpv_reader *place[GPV_READERS]; /* NULL: this place is free */
};

/* A response that streams events to the connection; NULL: all places are taken, or no memory. */
struct MHD_Response *gpv_readers_add(struct gpv_readers *r, struct MHD_Connection *connection);

/* Wakes those for which something is due.  Returns ns until this is so again; -1: there is none. */
int64_t gpv_readers_wake(struct gpv_readers *r);

/* Resumes each connection, as libmicrohttpd demands before its end. */
void gpv_readers_resume(struct gpv_readers *r);

int64_t gpv_monotonic(void);

#endif
