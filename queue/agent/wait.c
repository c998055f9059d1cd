/* SPDX-License-Identifier: MIT */
/* wait.c - requests that are answered after a later commit. */
#include <stdlib.h>

#include "queue/agent/requests.h"

const struct gpq_field gpq_wait_fields[] = {
    GPQ_MEMBER(gpq_which, batch, BATCH, 0, 0),
    GPQ_MEMBER(gpq_which, tasks, LIST, 1, GPQ_LIST_MOST),
    { 0 },
};

const struct gpq_field gpq_follow_fields[] = {
    GPQ_MEMBER(gpq_which, batch, BATCH, 0, 0),
    { 0 },
};

static json_t *begin(struct gpq_call *c, const struct gpq_field *fields, enum gpq_wish_kind kind)
{
    struct gpq_which asked = { 0 };
    int code = gpq_call_read(c, fields, &asked);
    if (code == 0)
        code = gpq_which_read(c, &asked);
    json_t *reply = code < 0 ? NULL : gpq_reply_end(c, json_object());
    if (!reply) {
        gpq_which_free(&asked);
        return NULL;
    }
    *c->wish = (struct gpq_wish){
        .kind = kind, .batch = asked.batch, .tasks = asked.id, .n = asked.select.n_tasks
    };
    return reply;
}

json_t *gpq_do_wait(struct gpq_call *c)
{
    return begin(c, gpq_wait_fields, GPQ_WISH_WAIT);
}

json_t *gpq_do_follow(struct gpq_call *c)
{
    return begin(c, gpq_follow_fields, GPQ_WISH_FOLLOW);
}

void gpq_wish_free(struct gpq_wish *wish)
{
    free(wish->tasks);
    free(wish->attached);
    *wish = (struct gpq_wish){ 0 };
}
