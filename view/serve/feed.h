/* SPDX-License-Identifier: MIT */
/*
 * feed.h - snapshots from standard input, a line each, and the newest one as frames of an event
 * stream.
 *
 * A frame is made when a reader first needs it.  Readers share it, and each keeps the one that it
 * is in the middle of: a slow reader costs one frame, however many snapshots pass.        [V2]
 */
#ifndef GPV_FEED_H
#define GPV_FEED_H

#include "view/now/snapshot.h"

/* "data: {...}\n\n" */
struct gpv_frame {
    char *text;
    size_t size;
    unsigned users;
};
/* Ends a use; NULL counts as none. */
void gpv_frame_drop(struct gpv_frame *frame);

struct gpv_feed {
    struct gpv_snapshot newest; /* with its history; time 0: there is none yet */
    uint64_t number;            /* of snapshots so far */
    uint64_t minute;            /* of the newest one: the history has changed with it */
    char token[64];             /* the first line; "" = none is asked */
    struct gpv_frame *small, *full; /* of the newest one; NULL: not made yet */
    char *line;
    size_t used, room;
    bool begun, skips; /* the first line was there; the rest of a line that is too long */
};

/* Reads all that is there, up to 4 MiB.  1: further lines may come; 0: the input has ended; -1: no memory. */
int gpv_feed_read(struct gpv_feed *f, int fd);
void gpv_feed_free(struct gpv_feed *f);

/* The newest snapshot, with or without its history.  The caller drops it.  NULL: no memory. */
struct gpv_frame *gpv_feed_frame(struct gpv_feed *f, bool full);

#endif
