/* SPDX-License-Identifier: MIT */
/* effects.c - the list of effects of a script, while a parser fills it. */
#include <stdlib.h>

#include "base/failure.h"
#include "device/fake/grammar.h"

void gpi_script_push(struct gpi_reader *r, const struct gpi_effect *e)
{
    struct gpi_script *s = r->s;

    if (s->effects == s->room) {
        const size_t room = s->room * 2;
        struct gpi_effect *more = realloc(s->effect, room * sizeof(*more));
        if (!more) {
            r->code = gpi_fail(r->e, GPUD_ENOMEM, 0, "script", "no memory for its lines");
            return;
        }
        s->effect = more;
        s->room = room;
    }
    s->effect[s->effects++] = *e;
}
