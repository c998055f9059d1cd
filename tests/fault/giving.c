/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "giving.h"
#include "inject.h"

#define TASKS_MAX 1000000u

static unsigned char seen[TASKS_MAX], given[TASKS_MAX], allowed[TASKS_MAX];
static uint32_t sizes[TASKS_MAX];

uint64_t now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void wrong(struct report *r, const char *format, ...)
{
    va_list list;

    atomic_fetch_add(&r->wrong, 1);
    if (r->text[0])
        return;
    va_start(list, format);
    (void)vsnprintf(r->text, sizeof r->text, format, list);
    va_end(list);
}

/* ---- giving ---- */

void check_refusal(struct host *h, const char *call, int code, const struct gpud_error *e)
{
    if (h->strict)
        wrong(h->r, "%s answers %s though nothing was refused: %s", call, gpud_error_name(code),
              e ? e->text : "");
    else if (code != GPUD_ENOMEM && code != GPUD_ESYSTEM && code != GPUD_ESPAWNER &&
             !(code == GPUD_ENOANSWER && fi_page->role == FI_SPAWNER) &&
             /* a monitor without memory for its fakes */
             !(code == GPUD_EDEVICE && e &&
               (strstr(e->text, "driver is ") || strstr(e->text, "the maximum is 0"))))
        wrong(h->r, "%s answers %s, which is not about the system: %s", call, gpud_error_name(code),
              e ? e->text : "");
    if (e && (e->code != code || !e->text[0]))
        wrong(h->r, "%s answers %s, but the error record says %d, \"%s\"", call,
              gpud_error_name(code), e->code, e->text);
}

void expect(struct host *h, uint64_t tag, uint32_t size, unsigned may)
{
    given[tag] = 1;
    allowed[tag] = (unsigned char)may;
    sizes[tag] = size;
    atomic_fetch_add(&h->r->accepted, 1);
}

uint64_t give(struct host *h, struct gpud_task_desc *t, uint64_t wait, unsigned may)
{
    uint64_t id = 0;
    int r = gpud_dispatcher_submit(h->d, t, wait, &id, NULL);

    if (r == GPUD_ENOMEM && !h->strict)
        /* nothing was taken: it may be tried again */
        r = gpud_dispatcher_submit(h->d, t, wait, &id, NULL);
    if (r == GPUD_EFULL)
        return 0;
    if (r) {
        check_refusal(h, "submit", r, NULL);
        atomic_fetch_add(&h->r->refused, 1);
        return 0;
    }
    if (id <= h->last_id)
        wrong(h->r, "an id came twice or fell");
    h->last_id = id;
    expect(h, t->tag, ((const struct order *)t->data)->size, may);
    return id;
}

uint64_t submit(struct host *h, uint64_t tag, enum what what, uint32_t size, uint64_t limit,
                unsigned may)
{
    struct order o = { .tag = tag, .what = what, .size = size };
    struct gpud_task_desc t = GPUD_TASK_DESC_INIT;

    t.data = &o;
    t.size = sizeof o;
    t.tag = tag;
    t.limit = limit;
    t.max_attempts = what == CRASH_ONCE ? 2 : 0;
    return give(h, &t, 0, may);
}

/* ---- learning ---- */

void check_result(struct host *h, const struct gpud_event *e)
{
    const unsigned char *p = e->result;

    if (e->result_size != sizes[e->tag]) {
        wrong(h->r, "task %u: a result of %u bytes, not %u", (unsigned)e->tag,
              (unsigned)e->result_size, sizes[e->tag]);
        return;
    }
    for (uint64_t i = 0; i < e->result_size; i++)
        if (p[i] != byte_of(e->tag, i)) {
            wrong(h->r, "task %u: byte %u of the result is wrong", (unsigned)e->tag, (unsigned)i);
            return;
        }
}

static void account(struct host *h, const struct gpud_event *e)
{
    unsigned may;

    h->outcomes++;
    atomic_fetch_add(&h->r->delivered, 1);
    if (e->tag >= TASKS_MAX || !given[e->tag]) {
        wrong(h->r, "an outcome of a task that nobody gave: tag %u", (unsigned)e->tag);
        return;
    }
    if (seen[e->tag]++) {
        atomic_fetch_add(&h->r->doubled, 1);
        wrong(h->r, "task %u ended twice", (unsigned)e->tag);
    }
    may = allowed[e->tag];
    if (!h->strict)
        /* no worker: a lack of memory for bookkeeping is none */
        may |= BIT(CRASHED) |
               (fi_page->call == FI_realloc && fi_page->role == FI_HOST ? 0 : BIT(NO_WORKER));
    if (!(may >> e->outcome & 1))
        wrong(h->r, "task %u ended %s (code %d, phase %s, \"%s\")", (unsigned)e->tag,
              gpud_outcome_name(e->outcome), e->code, gpud_phase_name(e->phase), e->text);
    if (e->outcome == GPUD_OUTCOME_SUCCESS)
        check_result(h, e);
    if ((e->sent_at && e->sent_at < e->queued_at) ||
        (e->started_at && e->started_at < e->sent_at) || e->ended_at < e->queued_at)
        wrong(h->r, "task %u: times out of order", (unsigned)e->tag);
}

void on_outcome(struct host *h, const struct gpud_event *e)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    account(h, e);
    pthread_mutex_unlock(&lock);
}

void expect_no_more(struct host *h, uint64_t n)
{
    atomic_fetch_sub(&h->r->accepted, 1);
    for (uint64_t tag = 0; tag < n; tag++)
        given[tag] = seen[tag];
}

void unheard(struct host *h, uint64_t tag, int code)
{
    if (h->strict || code != GPUD_ENOMEM)
        wrong(h->r, "wait for task %u answers %s", (unsigned)tag, gpud_error_name(code));
    given[tag] = 0;
    h->unheard++;
    atomic_fetch_sub(&h->r->accepted, 1);
}

static void keep(struct host *h, struct gpud_event *e)
{
    int r;

    if (!h->keep || h->n_kept == KEPT_MAX)
        return;
    r = gpud_event_keep(h->d, e);
    if (r == 0)
        h->kept[h->n_kept++] = *e;
    else if (r != GPUD_ENOMEM || h->strict)
        wrong(h->r, "keep answers %s", gpud_error_name(r));
}

void release(struct host *h, uint32_t left)
{
    while (h->n_kept > left) {
        struct gpud_event *e = &h->kept[--h->n_kept];
        if (e->outcome == GPUD_OUTCOME_SUCCESS)
            check_result(h, e);
        if (gpud_event_release(e))
            wrong(h->r, "release fails");
    }
}

bool look(struct host *h, uint64_t wait)
{
    static struct gpud_event e[64];
    int n;

    e[0].struct_size = sizeof e[0];
    n = gpud_dispatcher_poll(h->d, e, 64, wait);
    if (n < 0) {
        if (n != GPUD_EEND)
            wrong(h->r, "poll answers %s", gpud_error_name(n));
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (e[i].kind == GPUD_EVENT_OUTCOME)
            on_outcome(h, &e[i]), keep(h, &e[i]);
        h->progress += e[i].kind == GPUD_EVENT_PROGRESS;
    }
    if (n || !h->until)
        h->until = now() + PATIENCE_S * MS(1000);
    if (now() > h->until) {
        atomic_fetch_add(&h->r->hung, 1);
        wrong(h->r, "nothing comes any more: %u of %u outcomes", h->outcomes,
              (unsigned)atomic_load(&h->r->accepted));
        _exit(3);
    }
    return true;
}

void collect(struct host *h, uint32_t n)
{
    while (h->outcomes < n && h->outcomes < atomic_load(&h->r->accepted) && look(h, MS(1000)))
        ;
}

void finish(struct host *h, uint32_t how, uint64_t limit)
{
    int r = gpud_dispatcher_close(h->d, how, limit);

    if (r)
        wrong(h->r, "close answers %s", gpud_error_name(r));
    h->closed = true;
}

void count_lost(struct host *h, uint32_t n)
{
    for (uint32_t i = 0; i < TASKS_MAX && i < n; i++)
        if (given[i] && !seen[i]) {
            atomic_fetch_add(&h->r->lost, 1);
            wrong(h->r, "task %u has no outcome", i);
        }
}
