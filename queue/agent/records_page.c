/* SPDX-License-Identifier: MIT */
/* records_page.c - the request `records`: one page. */
#include <stdlib.h>
#include <string.h>

#include "queue/agent/fields.h"
#include "queue/agent/records.h"
#include "queue/agent/requests.h"
#include "queue/files/numbers.h"

struct asked {
    uint64_t since;
    json_t *batches;
    const char *after;
    uint32_t most;
    bool names;
};

const struct gpq_field gpq_records_fields[] = {
    GPQ_MEMBER(asked, since, U64, 0, INT64_MAX),
    GPQ_MEMBER(asked, batches, LIST, 1, GPQ_ROWS_MOST),
    GPQ_MEMBER(asked, names, BOOL, 0, 0),
    GPQ_MEMBER(asked, after, TEXT, 1, GPQ_RECORDS_PLACE - 1),
    GPQ_MEMBER(asked, most, U32, 1, GPQ_ROWS_MOST),
    { 0 },
};

static int read_batches(struct gpq_call *c, json_t *list, uint32_t **ret)
{
    const struct gpq_at at = { NULL, "batches", GPQ_NO_INDEX };
    size_t i, n = json_array_size(list);
    json_t *json;
    uint32_t *ids = n != 0 ? calloc(n, sizeof(*ids)) : NULL;
    if (n != 0 && !ids)
        return gpq_fail(c->e, GPQ_ENOMEM, "no memory for the request");
    *ret = ids;
    json_array_foreach(list, i, json)
    {
        const char *text = json_string_value(json);
        if (!text || !gpq_numbers_read(text, "", &ids[i], 1, NULL))
            return gpq_at_fail(&at, c->e, GPQ_EINVAL, "has an item that is no id of a batch");
    }
    gpq_records_sort(ids, n);
    return 0;
}

json_t *gpq_do_records(struct gpq_call *c)
{
    struct asked asked = { .most = GPQ_RECORDS };
    char place[GPQ_RECORDS_PLACE] = "";
    uint32_t *batches = NULL;
    struct gpv_lines lines = { 0 };
    int code = gpq_call_read(c, gpq_records_fields, &asked);
    if (code == 0)
        code = read_batches(c, asked.batches, &batches);
    if (code == 0 && asked.after)
        memcpy(place, asked.after, strlen(asked.after) + 1);
    const struct gpq_records r = { .now = c->now,
                                   .since = asked.since,
                                   .batch = batches,
                                   .n_batches = json_array_size(asked.batches),
                                   .most = asked.most,
                                   .names = asked.names,
                                   .again = true };
    if (code == 0)
        code = gpq_records_page(c->a, &r, place, &lines, c->e);
    json_t *reply = code == 0 ? json_object() : NULL;
    if (reply && gpq_reply_set(c, reply, "lines", json_stringn_nocheck(lines.text, lines.size)) &&
        *place)
        (void)gpq_reply_set(c, reply, "next", json_string(place));
    gpv_lines_free(&lines);
    free(batches);
    return gpq_reply_end(c, reply);
}
