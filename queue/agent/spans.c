/* SPDX-License-Identifier: MIT */
/* spans.c - writes down where the time of devices and tasks goes. */
#include "queue/agent/spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queue/agent/lookup.h"
#include "queue/agent/now.h"
#include "queue/agent/states.h"
#include "queue/grow.h"

#define SECOND UINT64_C(1000000000)
enum { SUBJECT = 96, REASON = 24, UNWRITTEN = 4096 };

/* Wall time, and CLOCK_BOOTTIME at the same moment. */
struct moment {
    uint64_t wall, boot;
};

/* One row: that of a state, or one that was replaced and is not written yet. */
struct row {
    char kind[16], subject[SUBJECT], reason[REASON], key[GPQ_SPAN_KEY], text[GPQ_SPAN_TEXT];
    char newest[GPQ_SPAN_TEXT]; /* the text by the last look */
    uint64_t started;           /* of a reason: the last start of a task of its shape; 0 = none */
    uint64_t looked;            /* wall time of the last look that saw it */
    struct moment since, until; /* until.wall 0: it goes on */
    uint64_t id;                /* in the store; 0 = not written */
    uint64_t new_id;            /* ... by the transaction in progress */
    bool seen;                  /* by the present look */
    struct row *next;
};

struct gpq_spans {
    struct gpq_agent *a;
    struct row *first; /* rows that go on, or that are not written to their end */
    size_t n;
    bool changed;        /* something is to be written */
    struct moment clock; /* of the last look */
    uint64_t alive;      /* time of the mark; 0 = none */
    uint64_t new_alive;  /* by the transaction in progress */
    uint64_t put_off;    /* wall time of a look; 0 = none */
    bool full;           /* rows were left out for want of memory or of commits */
    struct gpq_states *states;
};

static uint64_t boot_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static struct moment present(void)
{
    return (struct moment){ gpq_wall(), boot_time() };
}

/* ---- Rows ---- */

static struct gpq_span span_of(const struct gpq_agent *a, const struct row *r, const char *text)
{
    return (struct gpq_span){ .id = r->id,
                              .kind = r->kind,
                              .subject = strcmp(r->kind, "life") != 0 ? r->subject : "",
                              .reason = r->reason,
                              .text = text,
                              .since = r->since.wall,
                              .until = r->until.wall,
                              .since_boot = r->since.boot,
                              .until_boot = r->until.boot,
                              .boot = a->boot };
}

static void tell(const struct gpq_spans *s, const struct row *r)
{
    const struct gpq_span span = span_of(s->a, r, r->text);
    gpq_now_span(s->a, &span);
}

/* Commits may be rare and changes many: then the newest ones are lost, and the log says so. */
static struct row *add_row(struct gpq_spans *s, const char *kind, const char *subject,
                           const char *reason, const char *key, const char *text)
{
    struct row *r = s->n < UNWRITTEN ? calloc(1, sizeof(*r)) : NULL;
    if (!r) {
        if (!s->full)
            gpq_log("spans: rows are left out, since too many wait for a commit");
        s->full = true;
        return NULL;
    }
    snprintf(r->kind, sizeof(r->kind), "%s", kind);
    snprintf(r->subject, sizeof(r->subject), "%s", subject);
    snprintf(r->reason, sizeof(r->reason), "%s", reason);
    snprintf(r->key, sizeof(r->key), "%s", key);
    snprintf(r->text, sizeof(r->text), "%s", text);
    snprintf(r->newest, sizeof(r->newest), "%s", text);
    r->since = s->clock;
    struct row **at = &s->first;
    while (*at)
        at = &(*at)->next;
    *at = r;
    s->n++;
    s->changed = true;
    tell(s, r);
    return r;
}

/* No row ends before it begins, though the clock was set back meanwhile.  CLOCK_BOOTTIME knows how
 * long it has lasted. */
static void end_row(struct gpq_spans *s, struct row *r, struct moment end)
{
    r->until = end;
    if (r->until.wall < r->since.wall)
        r->until.wall = r->since.wall;
    s->changed = true;
    tell(s, r);
}

static struct row *find_open(struct gpq_spans *s, const char *kind, const char *subject,
                             const char *reason, const char *key)
{
    for (struct row *r = s->first; r; r = r->next)
        if (r->until.wall == 0 && strcmp(r->kind, kind) == 0 && strcmp(r->subject, subject) == 0 &&
            strcmp(r->reason, reason) == 0 && strcmp(r->key, key) == 0)
            return r;
    return NULL;
}

bool gpq_span_goes_on(struct gpq_spans *s, const char *kind, const char *subject,
                      const char *reason, const char *key)
{
    struct row *r = find_open(s, kind, subject, reason, key);
    if (r)
        r->seen = true;
    return r;
}

void gpq_span_begin(struct gpq_spans *s, const char *kind, const char *subject, const char *reason,
                    const char *key, const char *text)
{
    struct row *r = add_row(s, kind, subject, reason, key, text);
    if (r)
        r->seen = true;
}

void gpq_span_say(struct gpq_spans *s, const char *kind, const char *subject, const char *reason,
                  const char *key, const char *text)
{
    struct row *r = find_open(s, kind, subject, reason, key);
    if (!r) {
        gpq_span_begin(s, kind, subject, reason, key, text);
        return;
    }
    r->seen = true;
    if (strcmp(r->newest, text) == 0)
        return;
    snprintf(r->newest, sizeof(r->newest), "%s", text);
    gpq_now_reworded(s->a);
}

/* ---- A look ---- */

static bool is_reason(const struct row *r)
{
    return strcmp(r->kind, "reason") == 0;
}

/* Another reason follows. */
static bool is_replaced(const struct gpq_spans *s, const struct row *old)
{
    for (const struct row *r = s->first; r; r = r->next)
        if (r != old && r->until.wall == 0 && is_reason(r) && strcmp(r->subject, old->subject) == 0)
            return true;
    return false;
}

/* When no task of a shape waits any more, the last one has started before the look, unless it went
 * in another way: then none has started since the look before.  The clock may have been set since
 * the start, so the row's own begin shows how long it was. */
static struct moment end_of(const struct gpq_spans *s, const struct row *r)
{
    uint64_t waited = r->started - r->since.wall;
    if (r->started <= r->since.wall || r->started < r->looked ||
        waited >= s->clock.boot - r->since.boot || is_replaced(s, r))
        return s->clock;
    return (struct moment){ .wall = r->started, .boot = r->since.boot + waited };
}

static void end_unseen(struct gpq_spans *s)
{
    for (struct row *r = s->first; r; r = r->next)
        if (!r->seen && r->until.wall == 0 && strcmp(r->kind, "life") != 0)
            end_row(s, r, end_of(s, r));
    for (struct row *r = s->first; r; r = r->next) {
        r->looked = r->seen ? s->clock.wall : r->looked;
        r->seen = false;
    }
}

void gpq_spans_started(struct gpq_agent *a, uint32_t shape, uint64_t time)
{
    char subject[16];
    snprintf(subject, sizeof(subject), "%" PRIu32, shape);
    for (struct row *r = a->spans ? a->spans->first : NULL; r; r = r->next)
        if (r->until.wall == 0 && is_reason(r) && strcmp(r->subject, subject) == 0 &&
            time > r->started)
            r->started = time;
}

/* A jump is one row without length; rows keep CLOCK_BOOTTIME beside the wall time. */
static void see_clock(struct gpq_spans *s, struct moment now)
{
    int64_t jump = (int64_t)(now.wall - s->clock.wall) - (int64_t)(now.boot - s->clock.boot);
    char text[64];
    bool jumped = s->clock.wall != 0 && (jump > (int64_t)SECOND || jump < -(int64_t)SECOND);
    s->clock = now;
    if (!jumped)
        return;
    snprintf(text, sizeof(text), "set by %+.3f s", (double)jump / 1e9);
    struct row *r = add_row(s, "life", "clock", "clock", "", text);
    if (r)
        end_row(s, r, s->clock);
}

void gpq_spans_look(struct gpq_agent *a)
{
    struct gpq_spans *s = a->spans;
    struct moment now = present();
    if (!s)
        return;
    if (s->clock.boot != 0 && now.boot - s->clock.boot < SECOND) {
        if (s->put_off == 0)
            s->put_off = now.wall + SECOND;
        return;
    }
    s->put_off = 0;
    see_clock(s, now);
    gpq_states_look(a, s, s->states);
    end_unseen(s);
}

void gpq_spans_note(struct gpq_agent *a, const char *kind, const char *subject, const char *text)
{
    struct gpq_spans *s = a->spans;
    const struct moment before = s ? s->clock : (struct moment){ 0 };
    if (!s)
        return;
    s->clock = present();
    struct row *r = add_row(s, kind, subject, "", "", text);
    if (r)
        end_row(s, r, s->clock);
    s->clock = before;
}

void gpq_spans_hear(struct gpq_agent *a, const struct gpud_event *event)
{
    if (a->spans)
        gpq_states_hear(a->spans->states, event);
}

uint64_t gpq_spans_next(const struct gpq_agent *a)
{
    return a->spans ? a->spans->put_off : 0;
}

/* ---- The store ---- */

/* The store keeps the text of the begin. */
static const char *text_now(const struct row *r)
{
    return r->until.wall == 0 ? r->newest : r->text;
}

int gpq_spans_each(struct gpq_agent *a, gpq_span_fn fn, void *user)
{
    int code = 0;
    for (const struct row *r = a->spans ? a->spans->first : NULL; code == 0 && r; r = r->next) {
        const struct gpq_span span = span_of(a, r, text_now(r));
        code = fn(&span, user);
    }
    return code;
}

void gpq_spans_bring_up(const struct gpq_agent *a, struct gpq_span *span)
{
    for (const struct row *r = a->spans ? a->spans->first : NULL; r; r = r->next)
        if (r->id == span->id) {
            span->until = r->until.wall;
            span->text = text_now(r);
            return;
        }
}

static int store_row(struct gpq_agent *a, struct row *r, struct gpq_error *e)
{
    const struct gpq_engine *o = a->store->engine;
    if (r->id != 0)
        return r->until.wall != 0 ? o->span_end(a->store, r->id, r->until.wall, r->until.boot, e)
                                  : 0;
    const struct gpq_span span = span_of(a, r, r->text);
    return o->span_begin(a->store, &span, &r->new_id, e);
}

/* Only where something else is written: a turn without changes would sync for it. */
int gpq_spans_store(struct gpq_agent *a, uint64_t now, struct gpq_error *e)
{
    struct gpq_spans *s = a->spans;
    const struct gpq_mark alive = { "alive", "", NULL, now };
    int code = 0;
    if (!s || a->store->n_changes == 0)
        return 0;
    s->new_alive = s->alive;
    if (now - s->alive >= SECOND) { /* also of a clock that was set back */
        code = a->store->engine->mark(a->store, &alive, e);
        s->new_alive = now;
    }
    for (struct row *r = s->first; code == 0 && s->changed && r; r = r->next)
        code = store_row(a, r, e);
    return code < 0 ? code : 0;
}

/* After the commit. */
static void settle_rows(struct gpq_spans *s)
{
    for (struct row **at = &s->first; *at;) {
        struct row *r = *at;
        r->id = r->id != 0 ? r->id : r->new_id;
        if (r->until.wall == 0) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        s->n--;
        free(r);
    }
    s->changed = s->full = false;
}

void gpq_spans_stored(struct gpq_agent *a)
{
    struct gpq_spans *s = a->spans;
    if (!s || a->store->n_changes == 0)
        return;
    s->alive = s->new_alive;
    settle_rows(s);
}

/* ---- Start and end ---- */

/* Open rows of a killed agent. */
struct left_row {
    uint64_t id, since;
};
struct left {
    struct left_row *row;
    size_t n, room;
    uint64_t alive;
};

static int see_left(const struct gpq_span *span, void *user)
{
    struct left *l = user;
    if (span->until != 0)
        return 0;
    struct left_row *larger = gpq_grown(l->row, l->n, &l->room, sizeof(*larger));
    if (!larger)
        return GPQ_ENOMEM;
    l->row = larger;
    l->row[l->n++] = (struct left_row){ span->id, span->since };
    return 0;
}

/* Rows of a killed agent end when it was last known to live; until_boot 0: it is not known. */
static int end_left(struct gpq_agent *a, const struct left *l, struct gpq_error *e)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < l->n; i++) {
        uint64_t since = l->row[i].since, end = since > l->alive ? since : l->alive;
        code = a->store->engine->span_end(a->store, l->row[i].id, end, 0, e);
    }
    return code;
}

static int store_rows(struct gpq_agent *a, struct gpq_error *e)
{
    int code = 0;
    for (struct row *r = a->spans->first; code == 0 && r; r = r->next)
        code = store_row(a, r, e);
    return code;
}

/* A commit of its own. */
static int commit_rows(struct gpq_agent *a, const struct left *l, struct gpq_error *e)
{
    const struct gpq_engine *o = a->store->engine;
    int code = o->begin(a->store, e);
    if (code < 0)
        return code;
    if (l)
        code = end_left(a, l, e);
    if (code == 0)
        code = store_rows(a, e);
    if (code == 0)
        return o->commit(a->store, e);
    o->rollback(a->store);
    return code;
}

static void begin_life(struct gpq_agent *a)
{
    struct gpq_spans *s = a->spans;
    char text[64];
    s->clock = present();
    (void)add_row(s, "life", "", "opened", "", "");
    if (a->adopted == 0)
        return;
    snprintf(text, sizeof(text), "%" PRIu32 " command%s", a->adopted, a->adopted == 1 ? "" : "s");
    struct row *r = add_row(s, "life", "", "adopted", "", text);
    if (r)
        end_row(s, r, s->clock);
}

int gpq_spans_open(struct gpq_agent *a, struct gpq_error *e)
{
    struct left left = { 0 };
    a->spans = calloc(1, sizeof(*a->spans));
    if (!a->spans || !(a->spans->states = gpq_states_new()))
        return gpq_fail(e, GPQ_ENOMEM, "no memory");
    a->spans->a = a;
    int code = gpq_mark_look(a->store, "alive", "", &left.alive, e);
    if (code >= 0)
        code = a->store->engine->spans(a->store, UINT64_MAX >> 1, 0, see_left, &left, e);
    begin_life(a);
    if (code >= 0)
        code = commit_rows(a, &left, e);
    if (code == 0)
        settle_rows(a->spans);
    else if (code == GPQ_EFULL && left.n == 0)
        code = 0; /* they are written with the first commit that succeeds */
    free(left.row);
    a->spans->clock = (struct moment){ 0 }; /* the first look is not put off */
    return code < 0 ? code : 0;
}

void gpq_spans_close(struct gpq_agent *a)
{
    struct gpq_spans *s = a->spans;
    struct gpq_error e = { 0 };
    if (!s)
        return;
    s->clock = present();
    for (struct row *r = s->first; r; r = r->next)
        if (r->until.wall == 0)
            end_row(s, r, s->clock);
    if (a->status == 0 && commit_rows(a, NULL, &e) < 0)
        gpq_log("spans: %s", e.text);
    for (struct row *r; (r = s->first);) {
        s->first = r->next;
        free(r);
    }
    gpq_states_free(s->states);
    free(s);
    a->spans = NULL;
}
