/* SPDX-License-Identifier: MIT */
/*
 * frame.h - what the two pipes of a worker carry: 64-byte frames and nothing else.
 *
 * A frame only says where to look; the truth is in the cells of the status page.  So one
 * frame may name many tasks: up to 48 sent ones towards the worker, all ended ones (a bit
 * per cell) towards the host.  At most 64 frames can be under way in each direction plus a
 * few flags, which every pipe holds: neither side can block on the other, and since 64
 * divides a page no frame is torn.
 *
 * Decoding is total: any 64 bytes give a valid frame or false (C17).
 */
#ifndef GPI_WIRE_FRAME_H
#define GPI_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define GPI_FRAME_SIZE 64u
#define GPI_FRAME_TASKS_MAX 48u

/* Towards the worker. */
enum gpi_order { GPI_ORDER_TASKS = 0x5401, GPI_ORDER_END = 0x5402 };

struct gpi_order_frame {
    uint32_t order;
    uint32_t count;                   /* TASKS: cells that follow */
    uint64_t number;                  /* send number of the first; the others count up */
    uint8_t cell[GPI_FRAME_TASKS_MAX]; /* where they are; 0 beyond count */
};

/* Towards the host. */
#define GPI_LOOK_MAGIC 0x4c4f4f4bu
#define GPI_NEWS_SETUP 1u    /* setup has ended, look at setup_done */
#define GPI_NEWS_PROGRESS 2u /* look at progress_pending */
#define GPI_NEWS_LOG 4u      /* look at the log lines */
#define GPI_NEWS_ALL 7u

struct gpi_look_frame {
    uint32_t magic;
    uint32_t incarnation;
    uint64_t ended; /* a bit per cell */
    uint32_t news;  /* GPI_NEWS_... */
    uint32_t zero[11];
};

_Static_assert(sizeof(struct gpi_order_frame) == GPI_FRAME_SIZE, "a frame");
_Static_assert(sizeof(struct gpi_look_frame) == GPI_FRAME_SIZE, "a frame");

bool gpi_order_valid(const struct gpi_order_frame *f);
bool gpi_look_valid(const struct gpi_look_frame *f);

#endif
