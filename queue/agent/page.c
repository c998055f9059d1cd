/* SPDX-License-Identifier: MIT */
/* page.c - a list of rows that ends after some rows or bytes. */
#include "queue/agent/page.h"

bool gpq_page_begin(struct gpq_page *p, struct gpq_call *c, uint32_t most)
{
    *p = (struct gpq_page){ .c = c, .rows = json_array(), .most = most != 0 ? most : GPQ_ROWS };
    if (!p->rows)
        (void)gpq_no_memory(c);
    return p->rows != NULL;
}

bool gpq_page_is_full(struct gpq_page *p)
{
    size_t n = json_array_size(p->rows);
    p->more = n >= p->most || (n != 0 && p->bytes >= GPQ_PAGE_BYTES);
    return p->more;
}

int gpq_page_add(struct gpq_page *p, uint64_t id, json_t *row, size_t bytes)
{
    if (json_array_append_new(p->rows, row) != 0) {
        (void)gpq_no_memory(p->c);
        return GPQ_ENOMEM;
    }
    p->last = id;
    p->bytes += bytes;
    return 0;
}

json_t *gpq_page_end(struct gpq_page *p, const char *name, int code)
{
    json_t *reply = code < 0 ? NULL : json_object();
    if (!reply) {
        json_decref(p->rows);
        return code < 0 ? NULL : gpq_no_memory(p->c);
    }
    if (gpq_reply_set(p->c, reply, name, p->rows) && p->more)
        (void)gpq_reply_set(p->c, reply, "next", gpq_id_json(p->last));
    return gpq_reply_end(p->c, reply);
}
