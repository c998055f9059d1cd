/* SPDX-License-Identifier: MIT */
/*
 * frame.h - the doorbells: the frames of 64 bytes that the two pipes of a worker carry.
 *
 * A doorbell only wakes the other side; the data are in the status page.  A process that is awake
 * checks the page without help, so the other side rings only for a sleeper (see page.h).  Few
 * frames are ever under way: neither side can block on the other.  Since 64 divides a page, the
 * kernel tears no frame.
 *
 * Decoding is total: any 64 bytes are a valid frame, or the result is false (C17).
 */
#ifndef GPI_WIRE_FRAME_H
#define GPI_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define GPI_FRAME_SIZE 64u

/* From the host to the worker. */
#define GPI_ORDER_MAGIC 0x5244524fu
#define GPI_ORDER_TASKS 1u /* check sent_number */
#define GPI_ORDER_END 2u   /* run cleanup and leave */
#define GPI_ORDER_ROOM 4u  /* check the result arena for room */
#define GPI_ORDER_ALL 7u

/* From the worker to the host. */
#define GPI_LOOK_MAGIC 0x4c4f4f4bu
#define GPI_NEWS_ENDED 1u    /* check the end records */
/* setup, or the canary before it, has ended: check setup_done and canary_done */
#define GPI_NEWS_SETUP 2u
#define GPI_NEWS_PROGRESS 4u /* check progress_pending */
#define GPI_NEWS_LOG 8u      /* read the log lines */
#define GPI_NEWS_ROOM 16u    /* the worker waits for room: check room_wanted */
/* the worker has claimed its first task; in the pipe, since that task cannot overwrite a pipe.
 * With option start_events: any task of the worker has started, check the claims */
#define GPI_NEWS_CLAIMED 32u
#define GPI_NEWS_ALL 63u

struct gpi_frame {
    uint32_t magic;
    uint32_t incarnation;
    uint32_t what; /* GPI_ORDER_... or GPI_NEWS_... */
    uint32_t zero[13];
};

_Static_assert(sizeof(struct gpi_frame) == GPI_FRAME_SIZE, "a frame");

bool gpi_order_valid(const struct gpi_frame *f);
bool gpi_look_valid(const struct gpi_frame *f);

#endif
