/* SPDX-License-Identifier: MIT */
/* left.c - when a batch will be done. */
#include "queue/client/left.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/client/ids.h"
#include "queue/client/words.h"

/* The newest ends that count. */
enum { ENDS = 1000 };

static uint64_t time_of(uint64_t waiting, uint64_t ends, uint64_t from, uint64_t now)
{
    double per_end = (double)(now > from ? now - from : 1) / (double)ends;
    double left = per_end * (double)waiting;
    return left > 1e18 ? UINT64_C(1000000000000000000) : (uint64_t)left;
}

bool gpq_left(const uint64_t *ended, size_t n, uint64_t total, uint64_t from, uint64_t now,
              uint64_t waiting, uint64_t *ret_least, uint64_t *ret_most)
{
    if (n < GPQ_LEFT_LEAST)
        return false;
    size_t half = n / 2, quarter = n / 4;
    const uint64_t left[] = { time_of(waiting, total, from, now),
                              time_of(waiting, n - half, ended[half - 1], now),
                              time_of(waiting, quarter, ended[n - quarter - 1], now) };
    *ret_least = *ret_most = left[0];
    for (int i = 1; i < 3; i++) {
        *ret_least = left[i] < *ret_least ? left[i] : *ret_least;
        *ret_most = left[i] > *ret_most ? left[i] : *ret_most;
    }
    return true;
}

/* ---- Of a batch ---- */

struct ends {
    uint64_t since; /* those before it belong to joined tasks */
    uint64_t at[ENDS];
    size_t n;
};

static int keep_end(json_t *row, void *user)
{
    struct ends *e = user;
    uint64_t ended = (uint64_t)gpq_number_of(row, "ended");
    if (e->n == ENDS)
        return GPQ_ENOUGH;
    if (ended >= e->since)
        e->at[e->n++] = ended;
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* "3-4 h", "40 s", "50 s - 2 min". */
static void put_range(uint64_t least, uint64_t most, char ret[48])
{
    char a[32], b[32];
    gpq_span_text(least, a);
    gpq_span_text(most, b);
    const char *unit_a = strchr(a, ' '), *unit_b = strchr(b, ' ');
    if (!strcmp(a, b))
        snprintf(ret, 48, "%.20s", a);
    else if (unit_a && unit_b && !strcmp(unit_a, unit_b))
        snprintf(ret, 48, "%.*s-%.20s", (int)(unit_a - a), a, b);
    else
        snprintf(ret, 48, "%.20s-%.20s", a, b);
}

/* Tasks start, and mostly end, in the order of their numbers: the last numbers are the newest. */
static json_t *newest_ends(const json_t *batch, uint64_t total)
{
    char id[40];
    json_t *request = json_pack("{s:s, s:s, s:[s], s:i}", "do", "tasks", "batch",
                                gpq_text_of(batch, "batch"), "states", "done", "most", ENDS);
    if (request && total > ENDS) {
        snprintf(id, sizeof(id), "%s.%" PRIu64, gpq_text_of(batch, "batch"), total - ENDS);
        (void)json_object_set_new(request, "after", json_string(id));
    }
    return request;
}

char *gpq_left_of_batch(struct gpq_session *s, const json_t *batch, char ret[48])
{
    struct ends *e = calloc(1, sizeof(*e));
    uint64_t least, most, ended = gpq_ended(json_object_get(batch, "outcomes")),
                          joined = (uint64_t)gpq_number_of(batch, "joined");
    uint64_t total = ended > joined ? ended - joined : 0,
             waiting = gpq_count_of(batch, "states", "held") +
                       gpq_count_of(batch, "states", "ready") +
                       gpq_count_of(batch, "states", "running");
    strcpy(ret, "-");
    if (!e || total < GPQ_LEFT_LEAST) {
        free(e);
        return ret;
    }
    e->since = (uint64_t)gpq_number_of(batch, "made");
    (void)gpq_rows(s, newest_ends(batch, total), "tasks", keep_end, e);
    qsort(e->at, e->n, sizeof(e->at[0]), by_time);
    if (gpq_left(e->at, e->n, total, e->since, gpq_now_wall(), waiting, &least, &most))
        put_range(least, most, ret);
    free(e);
    return ret;
}
