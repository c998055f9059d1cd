/* SPDX-License-Identifier: MIT */
/* wait.c - requests that are answered after a later commit. */
#include <stdlib.h>
#include <string.h>

#include "queue/agent/requests.h"
#include "queue/agent/watch.h"

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

/* ---- watch ---- */

struct watch {
    json_t *what;
    uint64_t every;
};

const struct gpq_field gpq_watch_fields[] = {
    GPQ_MEMBER(watch, what, LIST, 1, GPQ_WATCH_PARTS),
    { "at_most_every", GPQ_FIELD_U64, offsetof(struct watch, every), 0, INT64_MAX },
    { 0 },
};

static bool find_part(const char *word, uint32_t *parts)
{
#define GPQ_X_WORD(name, word) word,
    static const char *const words[] = { GPQ_WATCH_MAP(GPQ_X_WORD) };
#undef GPQ_X_WORD
    for (uint32_t i = 0; word && i < GPQ_WATCH_PARTS; i++)
        if (strcmp(words[i], word) == 0) {
            *parts |= UINT32_C(1) << i;
            return true;
        }
    return false;
}

static int read_parts(struct gpq_call *c, json_t *what, uint32_t *parts)
{
    const struct gpq_at at = { NULL, "what", GPQ_NO_INDEX };
    size_t i;
    json_t *part;
    *parts = what ? 0 : (UINT32_C(1) << GPQ_WATCH_PARTS) - 1 - (UINT32_C(1) << GPQ_WATCH_METRICS);
    json_array_foreach(what, i, part)
    {
        if (!find_part(json_string_value(part), parts))
            return gpq_at_fail(&at, c->e, GPQ_EINVAL,
                               "has an item that is none of: gpus, classes, batches, findings, "
                               "ends, history, metrics");
    }
    return 0;
}

json_t *gpq_do_watch(struct gpq_call *c)
{
    struct watch asked = { 0 };
    uint32_t parts = 0;
    int code = gpq_call_read(c, gpq_watch_fields, &asked);
    if (code == 0)
        code = read_parts(c, asked.what, &parts);
    json_t *reply = code < 0 ? NULL : gpq_reply_end(c, json_object());
    if (reply)
        *c->wish = (struct gpq_wish){
            .kind = GPQ_WISH_WATCH,
            .parts = parts,
            .every = asked.every > GPQ_WATCH_EVERY ? asked.every : GPQ_WATCH_EVERY,
        };
    return reply;
}

void gpq_wish_free(struct gpq_wish *wish)
{
    free(wish->tasks);
    free(wish->attached);
    *wish = (struct gpq_wish){ 0 };
}
