/* SPDX-License-Identifier: MIT */
#include "stream.h"

#include "measure.h"
#include "report.h"

#define STATS_EVERY (100 * B_MS)

void b_stream_init(struct b_stream *s, struct b_ours *ours, enum b_way way)
{
    int i;

    s->ours = ours;
    s->way = way;
    s->next_stats = 0;
    for (i = 0; i < B_AT_ONCE; i++) {
        b_ours_task(&s->tasks[i], &s->order, B_NOTHING);
        if (ours->n_names > 0)
            s->tasks[i].class_name = ours->names[(unsigned)i % ours->n_names];
    }
}

/* Looks at the clock: takes a snapshot when one is due, ends the flow when its time is over. */
static void look(struct b_stream *s)
{
    struct gpud_stats stats = GPUD_STATS_INIT;
    uint64_t now = b_now();

    if (now >= s->next_stats) {
        (void)gpud_dispatcher_stats(s->ours->d, &stats);
        s->next_stats = now + STATS_EVERY;
    }
    if (now - s->start >= B_ROUND)
        s->over = 1;
}

/* Gives tasks in until the queue is full.  0 or -1. */
static int fill(struct b_stream *s)
{
    size_t taken;
    int rc = 0;

    while (rc == 0) {
        if (s->way == B_BY_MANY) {
            rc = gpud_dispatcher_submit_many(s->ours->d, s->tasks, B_AT_ONCE, 0, NULL, &taken,
                                             NULL);
            s->pulled += taken;
        } else {
            rc = gpud_dispatcher_submit(s->ours->d, &s->tasks[s->pulled % B_AT_ONCE], 0, NULL,
                                        NULL);
            if (rc == 0)
                s->pulled++;
        }
    }
    return rc == GPUD_EFULL ? 0 : b_complain("submit: %s", gpud_error_name(rc));
}

static int flow_by_submit(struct b_stream *s)
{
    int rc;

    while (!s->over || s->ours->ended < s->pulled) {
        if (!s->over && fill(s))
            return -1;
        rc = b_ours_receive(s->ours, GPUD_NEVER);
        if (rc < 0)
            return b_complain("poll: %s", gpud_error_name(rc));
        look(s);
    }
    return 0;
}

static int give_tasks(struct gpud_task_desc *tasks, size_t n, void *user)
{
    struct b_stream *s = user;
    size_t i;

    look(s);
    if (s->over)
        return 0;
    for (i = 0; i < n; i++) {
        tasks[i].data = &s->order;
        tasks[i].size = sizeof(s->order);
    }
    s->pulled += n;
    return (int)n;
}

static int take_event(const struct gpud_event *event, void *user)
{
    struct b_stream *s = user;

    return s->ours->handler(event, s->ours);
}

static int flow_by_run(struct b_stream *s)
{
    struct gpud_callbacks callbacks = GPUD_CALLBACKS_INIT;
    int rc;

    callbacks.on_success = take_event;
    callbacks.on_error = take_event;
    rc = gpud_dispatcher_run(s->ours->d, give_tasks, &callbacks, s, NULL);
    return rc ? b_complain("run: %s", gpud_error_name(rc)) : 0;
}

int b_stream_round(void *user, struct b_round *ret)
{
    struct b_stream *s = user;
    uint64_t cpu = b_cpu(), took;

    s->pulled = 0;
    s->over = 0;
    s->ours->ended = s->ours->failed = 0;
    s->start = b_now();
    if (s->way == B_BY_RUN ? flow_by_run(s) : flow_by_submit(s))
        return -1;
    took = b_now() - s->start;
    if (s->ours->failed > 0 || s->ours->ended != s->pulled)
        return b_complain("of %llu tasks %llu ended, %llu of them badly",
                          (unsigned long long)s->pulled, (unsigned long long)s->ours->ended,
                          (unsigned long long)s->ours->failed);
    ret->value = (double)s->pulled * 1e9 / (double)took;
    ret->cpu = (double)(b_cpu() - cpu) / (double)s->pulled;
    return 0;
}
