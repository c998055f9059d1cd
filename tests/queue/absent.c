/* SPDX-License-Identifier: MIT */
/* absent.c - the parts of an agent that the tests of its requests do without. */
#include "queue/agent/agent.h"
#include "queue/agent/now.h"
#include "queue/agent/spans.h"

uint64_t gpq_work_since(struct gpq_agent *a, uint64_t task, char devices[512])
{
    (void)a;
    (void)task;
    devices[0] = '\0';
    return 0;
}

void gpq_now_left(struct gpq_agent *a, const struct gpq_batch *b, int64_t *ret_least,
                  int64_t *ret_most)
{
    (void)a;
    (void)b;
    *ret_least = *ret_most = -1;
}

uint32_t gpq_now_joined(const struct gpq_agent *a, uint32_t behind)
{
    (void)a;
    (void)behind;
    return 0;
}

void gpq_now_batch_changed(struct gpq_agent *a, uint32_t batch)
{
    (void)a;
    (void)batch;
}

void gpq_spans_bring_up(const struct gpq_agent *a, struct gpq_span *span)
{
    (void)a;
    (void)span;
}

int gpq_spans_each(struct gpq_agent *a, gpq_span_fn fn, void *user)
{
    (void)a;
    (void)fn;
    (void)user;
    return 0;
}
