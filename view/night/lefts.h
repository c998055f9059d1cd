/* SPDX-License-Identifier: MIT */
/* lefts.h - the time left of the batches of a night at its end, played from its rows. */
#ifndef GPV_LEFTS_H
#define GPV_LEFTS_H

#include "view/records.h"

/* Why a range is not known. */
enum gpv_left_why {
    GPV_LEFT_KNOWN,
    GPV_LEFT_FEW,    /* too few tasks have ended */
    GPV_LEFT_STANDS, /* tasks wait, and none has run for long */
    GPV_LEFT_MORE    /* tasks are held or may be added: the most is not known, and if none of the
                        others waits or runs, the least is not either */
};

struct gpv_left_of {
    int64_t least, most; /* ns from the end of the night; -1: unknown */
    enum gpv_left_why why;
};

/* Of each row of n->batches; 0 and 0 of a batch that has ended.  0, or -1 without memory. */
int gpv_lefts(const struct gpv_night *n, struct gpv_left_of *ret);

#endif
