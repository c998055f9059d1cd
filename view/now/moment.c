/* SPDX-License-Identifier: MIT */
/* moment.c - the snapshot that an agent would have made at a time of a night. */
#include "view/now/moment.h"

#include "view/night/part.h"
#include "view/now/filling.h"

#define DAY (INT64_C(24) * 3600 * 1000000000)

bool gpv_agent_runs(const struct gpv_night *p, int64_t *ret_since)
{
    bool runs = !p->lived;
    *ret_since = 0;
    for (size_t i = 0; i < p->lives.n; i++) {
        const struct gpv_life *l = &p->lives.row[i];
        if (l->kind != GPV_LIFE_OPENED || l->until != 0)
            continue;
        *ret_since = l->since;
        runs = true;
    }
    return runs;
}

static void fill_head(struct gpv_snapshot *s, const struct gpv_night *p)
{
    int64_t since;
    *s = (struct gpv_snapshot){ .time = p->to, .since = p->from, .least = -1, .most = -1 };
    gpv_now_text(s->host, sizeof(s->host), gpv_text(p, p->host));
    if (!gpv_agent_runs(p, &since))
        gpv_now_text(s->notice, sizeof(s->notice), "no agent ran");
}

static int fill(struct gpv_snapshot *s, struct gpv_night *p, struct gpv_night *day)
{
    fill_head(s, p);
    if (gpv_fill_gpus(s, p) < 0 || gpv_fill_batches(s, p) < 0 || gpv_fill_left(s, p) < 0 ||
        gpv_fill_classes(s, p) < 0 || gpv_fill_findings(s, day) < 0)
        return -1;
    return gpv_fill_ends(s, p);
}

int gpv_moment(struct gpv_night *n, int64_t time, struct gpv_snapshot *ret)
{
    time = time < n->from ? n->from : time > n->to ? n->to : time;
    int64_t day_before = time - n->from > DAY ? time - DAY : n->from;
    struct gpv_night *p = gpv_night_part(n, n->from, time);
    struct gpv_night *day = p ? gpv_night_part(p, day_before, time) : NULL;
    *ret = (struct gpv_snapshot){ 0 };
    int code = day ? fill(ret, p, day) : -1;
    if (code < 0)
        gpv_snapshot_free(ret);
    gpv_night_free(day);
    gpv_night_free(p);
    return code;
}
