/* SPDX-License-Identifier: MIT */
/*
 * frame.h - the bells: what the two pipes of a worker carry.  64-byte frames and nothing else.
 *
 * A frame only says "look"; the truth is in the status page.  Whoever is awake looks by itself,
 * so a bell is rung only for one who sleeps (see page.h), and few are ever under way: neither
 * side can block on the other, and since 64 divides a page no frame is torn.
 *
 * Decoding is total: any 64 bytes give a valid frame or false (C17).
 */
#ifndef GPI_WIRE_FRAME_H
#define GPI_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define GPI_FRAME_SIZE 64u

/* Towards the worker. */
#define GPI_ORDER_MAGIC 0x5244524fu
#define GPI_ORDER_TASKS 1u /* look at sent_number */
#define GPI_ORDER_END 2u   /* run cleanup and leave */
#define GPI_ORDER_ROOM 4u  /* look for room in the result arena */
#define GPI_ORDER_ALL 7u

/* Towards the host. */
#define GPI_LOOK_MAGIC 0x4c4f4f4bu
#define GPI_NEWS_ENDED 1u    /* look at the end records */
/* setup, or the canary before it, has ended: look at setup_done, canary_done */
#define GPI_NEWS_SETUP 2u
#define GPI_NEWS_PROGRESS 4u /* look at progress_pending */
#define GPI_NEWS_LOG 8u      /* look at the log lines */
#define GPI_NEWS_ROOM 16u    /* it waits for room: look at room_wanted */
/* its first task is claimed; said here, since it cannot overwrite a pipe */
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
