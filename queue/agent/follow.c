/* SPDX-License-Identifier: MIT */
/* follow.c - clients that wait until tasks have ended, and those that follow a batch. */
#include "queue/agent/follow.h"

#include <stdlib.h>

#include "queue/agent/client.h"
#include "queue/agent/lookup.h"
#include "queue/agent/requests.h"

/* Changes of one commit that a follower sees one by one; of more it sees the counts. */
enum { EVENTS_OF_COMMIT = 4096 };

struct gpq_watcher *gpq_watcher_new(struct gpq_client *c, json_t *id, struct gpq_wish *wish)
{
    struct gpq_watcher *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->wish = *wish;
    *wish = (struct gpq_wish){ 0 };
    w->client = c;
    w->id = json_incref(id);
    c->watchers++;
    return w;
}

void gpq_watcher_free(struct gpq_watcher *w)
{
    w->client->watchers--;
    json_decref(w->id);
    gpq_wish_free(&w->wish);
    free(w->other);
    free(w);
}

/* ---- Lines ---- */

static void send_error(struct gpq_agent *a, struct gpq_watcher *w, const struct gpq_error *e)
{
    json_t *line = gpq_error_json(w->id, e);
    gpq_client_send(a, w->client, line);
    json_decref(line);
}

/* Takes `value`. */
static void send_line(struct gpq_agent *a, struct gpq_watcher *w, const char *event,
                      const char *name, json_t *value)
{
    json_t *line =
        json_pack("{s:O?, s:b, s:s*, s:o}", "id", w->id, "ok", 1, "event", event, name, value);
    gpq_client_send(a, w->client, line);
    json_decref(line);
}

/* ---- A list of tasks ---- */

struct tally {
    size_t n, ended;
    uint32_t outcome[GPQ_OUTCOMES];
};

static int count_task(const struct gpq_task *t, void *user)
{
    struct tally *tally = user;
    tally->n++;
    tally->ended += t->state == GPQ_DONE;
    tally->outcome[t->outcome < GPQ_OUTCOMES ? t->outcome : 0]++;
    return 0;
}

static int count_list(struct gpq_agent *a, struct gpq_watcher *w, struct tally *ret,
                      struct gpq_error *e)
{
    const struct gpq_select list = { .tasks = w->wish.tasks, .n_tasks = w->wish.n };
    *ret = (struct tally){ 0 };
    return a->store->engine->tasks(a->store, &list, 0, false, count_task, ret, e);
}

static json_t *outcomes_json(const struct tally *tally)
{
    json_t *json = json_object();
    for (uint32_t i = 1; i < GPQ_OUTCOMES; i++)
        if (tally->outcome[i] != 0)
            (void)json_object_set_new(json, gpq_outcome_text(i), json_integer(tally->outcome[i]));
    return json;
}

static int compare(const void *key, const void *item)
{
    uint64_t a = *(const uint64_t *)key, b = *(const uint64_t *)item;
    return (a > b) - (a < b);
}

static bool is_in(uint64_t task, const uint64_t *list, size_t n)
{
    return n != 0 && bsearch(&task, list, n, sizeof(*list), compare) != NULL;
}

/* Each change of a listed task moves the count, so that only an end of all reads the list. */
static bool list_may_be_over(struct gpq_agent *a, struct gpq_watcher *w)
{
    const struct gpq_store *s = a->store;
    for (size_t i = 0; i < s->n_changes; i++) {
        const struct gpq_change *c = &s->changes[i];
        bool was = c->from == GPQ_DONE, is = c->to == GPQ_DONE || c->to == 0;
        if (was != is && is_in(c->task, w->wish.tasks, w->wish.n))
            w->pending += is ? (size_t)-1 : 1;
    }
    return w->pending == 0;
}

static bool look_at_list(struct gpq_agent *a, struct gpq_watcher *w)
{
    struct tally tally;
    struct gpq_error e = { 0 };
    bool over = w->begun && list_may_be_over(a, w);
    if (w->begun && !w->stale && !over)
        return false;
    if (count_list(a, w, &tally, &e) < 0) {
        send_error(a, w, &e);
        return true;
    }
    w->begun = true;
    w->stale = false;
    w->pending = tally.n - tally.ended;
    if (w->pending != 0)
        return false;
    send_line(a, w, NULL, "outcomes", outcomes_json(&tally));
    return true;
}

/* ---- A batch ---- */

struct state {
    json_t *json; /* NULL: not wanted */
    bool wanted, over;
    uint32_t joined;
};

static int read_state(const struct gpq_batch *b, void *user)
{
    struct state *state = user;
    state->over = b->ended != 0;
    state->joined = b->joined;
    if (state->wanted || state->over)
        state->json = gpq_batch_json(b);
    return 1;
}

/* Whether a change may concern it: one of its own tasks, or one of those that it has joined. */
static bool may_concern(const struct gpq_agent *a, const struct gpq_watcher *w)
{
    const struct gpq_store *s = a->store;
    for (size_t i = 0; i < s->n_changes; i++)
        if (w->joined != 0 || GPQ_BATCH_OF(s->changes[i].task) == w->wish.batch)
            return true;
    return false;
}

struct others {
    uint32_t batch;
    uint64_t *id;
    size_t n, room;
};

static int one_other(const struct gpq_task *t, void *user)
{
    struct others *o = user;
    if (GPQ_BATCH_OF(t->id) == o->batch)
        return 0;
    if (o->n == o->room)
        return 1;
    o->id[o->n++] = t->id;
    return 0;
}

/* The ids of tasks that the batch has joined: a follower shows their changes, too. */
static void read_others(struct gpq_agent *a, struct gpq_watcher *w, uint32_t joined)
{
    const struct gpq_select all = { .batch = w->wish.batch };
    struct others o = { w->wish.batch, calloc(joined, sizeof(*o.id)), 0, joined };
    struct gpq_error e;
    if (!o.id || a->store->engine->tasks(a->store, &all, 0, false, one_other, &o, &e) < 0)
        o.n = 0; /* the counts are right without them */
    free(w->other);
    w->other = o.id;
    w->n_other = o.n;
}

static bool is_of(const struct gpq_watcher *w, uint64_t task)
{
    return GPQ_BATCH_OF(task) == w->wish.batch || is_in(task, w->other, w->n_other);
}

static void send_change(struct gpq_agent *a, struct gpq_watcher *w, const struct gpq_change *c)
{
    json_t *line =
        json_pack("{s:O?, s:b, s:s, s:o, s:s}", "id", w->id, "ok", 1, "event", "task", "task",
                  gpq_id_json(c->task), "state", c->to == 0 ? "forgotten" : gpq_state_text(c->to));
    if (line && c->to == GPQ_DONE)
        (void)json_object_set_new(line, "outcome", json_string(gpq_outcome_text(c->outcome)));
    if (line && c->cancel)
        (void)json_object_set_new(line, "cancel", json_true());
    gpq_client_send(a, w->client, line);
    json_decref(line);
}

/* Changes for which a slow client has no room are counted, and it sees the counts later. */
static void send_changes(struct gpq_agent *a, struct gpq_watcher *w)
{
    const struct gpq_store *s = a->store;
    uint32_t sent = 0;
    for (size_t i = 0; i < s->n_changes; i++) {
        if (!is_of(w, s->changes[i].task))
            continue;
        if (w->missed != 0 || sent == EVENTS_OF_COMMIT || !gpq_client_has_room(w->client)) {
            w->missed++;
            continue;
        }
        send_change(a, w, &s->changes[i]);
        sent++;
    }
}

/* The counts, after which the client has missed nothing. */
static void send_counts(struct gpq_agent *a, struct gpq_watcher *w, struct state *state)
{
    json_t *line = json_pack("{s:O?, s:b, s:s, s:o}", "id", w->id, "ok", 1, "event",
                             state->over ? "end" : "batch", "batch", state->json);
    if (line && w->missed != 0)
        (void)json_object_set_new(line, "missed", json_integer((json_int_t)w->missed));
    gpq_client_send(a, w->client, line);
    json_decref(line);
    w->missed = 0;
    state->json = NULL;
}

static bool look_at_batch(struct gpq_agent *a, struct gpq_watcher *w)
{
    bool follows = w->wish.kind == GPQ_WISH_FOLLOW;
    struct state state = { 0 };
    struct gpq_error e = { 0 };
    bool behind = w->missed != 0 && gpq_client_has_room(w->client);
    if (w->begun && !behind && !w->stale && !may_concern(a, w))
        return false;
    state.wanted = follows && (!w->begun || w->stale || behind);
    w->stale = false;
    if (gpq_batch_read(a->store, w->wish.batch, read_state, &state, &e) < 0) {
        send_error(a, w, &e);
        return true;
    }
    if (follows && state.joined != w->joined)
        read_others(a, w, state.joined);
    w->joined = state.joined;
    if (follows && w->begun)
        send_changes(a, w);
    w->begun = true;
    if (follows && (state.wanted || state.over))
        send_counts(a, w, &state);
    else if (state.over)
        send_line(a, w, NULL, "batch", state.json);
    return state.over;
}

bool gpq_watcher_look(struct gpq_agent *a, struct gpq_watcher *w)
{
    if (w->wish.kind == GPQ_WISH_WATCH)
        return false; /* watch.c */
    return w->wish.batch != 0 ? look_at_batch(a, w) : look_at_list(a, w);
}
