/* SPDX-License-Identifier: MIT */
/* attached.c - notes of attached tasks in the store. */
#include "queue/agent/attached.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/files/numbers.h"

#define KIND "attached"
enum { SUBJECT = 40 };

/* "12.1-24" */
static void write_subject(char ret[SUBJECT], const struct gpq_attached *which)
{
    (void)snprintf(ret, SUBJECT, "%u.%u-%u", which->batch, which->first, which->last);
}

bool gpq_attached_is(const struct gpq_mark *m)
{
    return strcmp(m->kind, KIND) == 0;
}

int gpq_attached_note(struct gpq_store *s, uint64_t now, const struct gpq_attached *which,
                      struct gpq_error *e)
{
    char subject[SUBJECT];
    write_subject(subject, which);
    const struct gpq_mark m = { KIND, subject, "", now };
    return s->engine->mark(s, &m, e);
}

/* The batch may have been purged, and its note with an earlier cancel. */
int gpq_attached_end(struct gpq_store *s, uint64_t now, const struct gpq_attached *which,
                     struct gpq_error *e)
{
    const struct gpq_select tasks = { .batch = which->batch,
                                      .first = which->first,
                                      .last = which->last };
    char subject[SUBJECT];
    int64_t n = s->engine->cancel(s, now, &tasks, e);
    if (n < 0 && n != GPQ_ENOTFOUND)
        return (int)n;
    write_subject(subject, which);
    int code = s->engine->unmark(s, KIND, subject, e);
    return code == GPQ_ENOTFOUND ? 0 : code;
}

/* ---- All of them ---- */

static int add(const struct gpq_mark *m, void *user)
{
    struct gpq_attached **list = user;
    uint32_t n[3];
    if (!gpq_attached_is(m) || !gpq_numbers_read(m->subject, ".-", n, 3, NULL))
        return 0;
    struct gpq_attached *one = malloc(sizeof(*one));
    if (!one)
        return GPQ_ENOMEM;
    *one = (struct gpq_attached){ .batch = n[0], .first = n[1], .last = n[2], .next = *list };
    *list = one;
    return 0;
}

int gpq_attached_end_all(struct gpq_store *s, uint64_t now, struct gpq_error *e)
{
    struct gpq_attached *list = NULL;
    int code = s->engine->marks(s, add, &list, e);
    if (code == GPQ_ENOMEM)
        gpq_fail(e, code, "no memory for attached tasks");
    for (struct gpq_attached *one; (one = list);) {
        list = one->next;
        if (code == 0)
            code = gpq_attached_end(s, now, one, e);
        free(one);
    }
    return code;
}
