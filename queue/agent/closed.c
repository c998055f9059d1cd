/* SPDX-License-Identifier: MIT */
/* closed.c - prints the records of a closed store. */
#include "queue/agent/closed.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "queue/agent/define.h"
#include "queue/agent/fsck.h"
#include "queue/agent/lookup.h"
#include "queue/agent/records.h"
#include "queue/files/lock.h"
#include "queue/files/numbers.h"

/* An id, or the name of a batch. */
static int find_batch(struct gpq_store *s, const char *text, uint32_t *ret, struct gpq_error *e)
{
    if (gpq_numbers_read(text, "", ret, 1, NULL))
        return gpq_batch_read(s, *ret, NULL, NULL, e);
    return s->engine->batch_named(s, text, 0, ret, e);
}

static int print_all(struct gpq_agent *a, const struct gpq_records *r, struct gpq_error *e)
{
    char place[GPQ_RECORDS_PLACE] = "";
    int code;
    do {
        struct gpv_lines lines;
        code = gpq_records_page(a, r, place, &lines, e);
        if (code == 0 && fwrite(lines.text, 1, lines.size, stdout) != lines.size)
            code = gpq_fail(e, GPQ_EIO, "the records cannot be written");
        gpv_lines_free(&lines);
    } while (code == 0 && *place);
    return code == 0 && fflush(stdout) != 0 ? gpq_fail(e, GPQ_EIO, "the records cannot be written")
                                            : code;
}

static int print_batches(struct gpq_agent *a, const struct gpq_settings *s, struct gpq_error *e)
{
    uint32_t *batch = calloc(s->n_batches + 1, sizeof(*batch));
    struct gpq_records r = { .now = gpq_wall(),
                             .since = s->since,
                             .batch = batch,
                             .n_batches = s->n_batches,
                             .most = GPQ_RECORDS,
                             .names = s->names,
                             .closed = true };
    int code = batch ? gpq_mark_look(a->store, "alive", "", &r.alive, e)
                     : gpq_fail(e, GPQ_ENOMEM, "no memory for the records");
    code = code < 0 ? code : 0;
    for (size_t i = 0; code == 0 && i < s->n_batches; i++)
        code = find_batch(a->store, s->batches[i], &batch[i], e);
    if (code == 0) {
        gpq_records_sort(batch, s->n_batches);
        code = print_all(a, &r, e);
    }
    free(batch);
    return code;
}

int gpq_closed_print(const struct gpq_settings *s)
{
    struct gpq_agent a = { .lock = -1, .devices = 1 }; /* by default a worker has a GPU */
    struct gpq_error e = { 0 };
    (void)signal(SIGPIPE, SIG_IGN); /* a reader may have enough */
    int code = gpq_closed_open(s->state, a.state, &a.lock, &a.store, &e);
    if (code == 0)
        code = gpq_classes_list(&a, &s->config, &e);
    if (code == 0)
        code = print_batches(&a, s, &e);
    if (code < 0)
        fprintf(stderr, "gpudispatch-agent: %s\n", e.text);
    gpq_classes_close(&a);
    if (a.store)
        a.store->engine->close(a.store);
    gpq_lock_close(a.lock);
    return code < 0 ? gpq_error_status(code) : 0;
}
