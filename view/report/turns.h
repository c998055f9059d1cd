/* SPDX-License-Identifier: MIT */
/*
 * turns.h - which batch had a lane at a time.
 *
 * A turn is a stretch of a lane with attempts of one batch, or of several that shared it.  Turns
 * that are too narrow for the number of their batch are joined with their neighbours that are so,
 * too: then they are one turn of several batches.
 */
#ifndef GPV_TURNS_H
#define GPV_TURNS_H

#include "view/report/chart.h"
#include "view/report/lanes.h"
#include "view/report/page.h"

enum { GPV_TURN_BATCHES = 4, GPV_TURN_TEXT = 160 };

struct gpv_turn {
    int64_t from, to;
    uint32_t batch[GPV_TURN_BATCHES]; /* ids, in ascending order */
    uint32_t n;
    bool more;   /* batches that are not in the list */
    bool narrow; /* no number has room on it, or it is joined from such turns */
};

struct gpv_turns {
    GPV_LIST(struct gpv_turn);
};

/* 0, or -1 without memory; the caller frees ret->row in any case. */
int gpv_turns_of(const struct gpv_night *n, const struct gpv_lane *l, const struct gpv_chart *c,
                 struct gpv_turns *ret);
/* "15 rec-11", "12, 15". */
char *gpv_turn_text(const struct gpv_night *n, const struct gpv_turn *t, char ret[GPV_TURN_TEXT]);

/* Writes the texts of turns on a bar, and a line where one turn follows another. */
void gpv_turns_write(FILE *f, const struct gpv_night *n, const struct gpv_turns *turns,
                     const struct gpv_chart *c, unsigned y, unsigned height);

/* Writes the turns of all lanes as a list.  0, or -1 without memory. */
int gpv_turns_in_words(const struct gpv_page *p, const struct gpv_lanes *lanes,
                       const struct gpv_chart *c);

#endif
