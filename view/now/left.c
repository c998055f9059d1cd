/* SPDX-License-Identifier: MIT */
/* left.c - the time left of the batches of a moment. */
#include <stdlib.h>

#include "view/night/left.h"
#include "view/night/lefts.h"
#include "view/now/filling.h"

int gpv_fill_left(struct gpv_snapshot *s, const struct gpv_night *p)
{
    struct gpv_left_of *left = calloc(p->batches.n + 1, sizeof(*left));
    int code = left ? gpv_lefts(p, left) : -1;
    bool known = false;
    for (size_t i = 0; code == 0 && i < s->batches.n; i++) {
        struct gpv_now_batch *row = &s->batches.row[i];
        uint32_t batch = gpv_find_batch(p, row->id);
        if (row->ended != 0 || batch == GPV_NONE)
            continue;
        row->least = left[batch].least;
        row->most = left[batch].most;
        if (!known)
            s->least = s->most = 0;
        known = true;
        gpv_left_join(&s->least, &s->most, row->least, row->most);
    }
    free(left);
    return code;
}
