/* SPDX-License-Identifier: MIT */
/* watch.c - sends snapshots to clients that watch. */
#include "queue/agent/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/client.h"
#include "queue/agent/follow.h"
#include "queue/agent/now.h"
#include "queue/agent/points.h"

#define SECOND UINT64_C(1000000000)
/* A client that does not read for this long is dropped. */
#define PATIENCE (30 * SECOND)
enum { TEXTS = 8 };

#define PART(name) (UINT32_C(1) << GPQ_WATCH_##name)

/* The parts of a snapshot as a text, which several clients get. */
struct text {
    uint32_t parts;
    char *text;
    size_t size;
};

struct turn {
    struct gpq_agent *a;
    uint64_t now, version;
    bool made, history; /* the snapshot is there, and has the history */
    struct gpv_snapshot s;
    struct text text[TEXTS];
    size_t n;
};

/* ---- Texts ---- */

/* Rows of classes without their histograms, which the caller frees.  NULL: no memory. */
static struct gpv_now_class *without_metrics(const struct gpv_snapshot *s)
{
    struct gpv_now_class *row = calloc(s->classes.n + 1, sizeof(*row));
    for (size_t i = 0; row && i < s->classes.n; i++) {
        row[i] = s->classes.row[i];
        row[i].run.count = row[i].wait.count = 0; /* not written */
    }
    return row;
}

static bool write_parts(const struct gpv_snapshot *s, uint32_t parts, FILE *f)
{
    struct gpv_snapshot some = *s;
    struct gpv_now_class *bare = parts & PART(METRICS) ? NULL : without_metrics(s);
    if (!(parts & PART(METRICS)) && !bare)
        return false;
    some.classes.row = bare ? bare : s->classes.row;
    some.gpus.n = parts & PART(GPUS) || parts & PART(HISTORY) ? s->gpus.n : 0;
    some.classes.n = parts & (PART(CLASSES) | PART(METRICS)) ? s->classes.n : 0;
    some.batches.n = parts & PART(BATCHES) ? s->batches.n : 0;
    some.findings.n = parts & PART(FINDINGS) ? s->findings.n : 0;
    some.ends.n = parts & PART(ENDS) ? s->ends.n : 0;
    some.history = parts & PART(HISTORY) ? s->history : NULL;
    some.minutes = some.history ? s->minutes : 0;
    gpv_snapshot_write(&some, f);
    free(bare);
    return true;
}

static bool make(struct turn *t, bool history)
{
    if (t->made && (t->history || !history))
        return true;
    if (t->made)
        gpv_snapshot_free(&t->s);
    t->made = gpq_now_show(t->a, history, &t->s) == 0;
    t->history = history;
    return t->made;
}

/* NULL: no memory. */
static const struct text *text_of(struct turn *t, uint32_t parts)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->text[i].text && t->text[i].parts == parts)
            return &t->text[i];
    if (!make(t, parts & PART(HISTORY)))
        return NULL;
    struct text *text = &t->text[t->n < TEXTS ? t->n++ : TEXTS - 1];
    free(text->text);
    *text = (struct text){ .parts = parts };
    FILE *f = open_memstream(&text->text, &text->size);
    if (!f)
        return NULL;
    bool whole = write_parts(&t->s, parts, f) && !ferror(f);
    if (fclose(f) == 0 && whole)
        return text;
    free(text->text); /* no other client gets a part of it */
    text->text = NULL;
    return NULL;
}

static bool send_text(struct turn *t, struct gpq_watcher *w, const struct text *text)
{
    static const char middle[] = ",\"ok\":true,\"event\":\"snapshot\",\"snapshot\":";
    char *id = json_dumps(w->id ? w->id : json_null(), JSON_COMPACT | JSON_ENCODE_ANY);
    size_t size = (id ? strlen(id) : 0) + sizeof(middle) + text->size + 16;
    char *line = id ? malloc(size) : NULL;
    bool there = line;
    if (there) {
        int length = snprintf(line, size, "{\"id\":%s%s%s}", id, middle, text->text);
        gpq_client_send_text(t->a, w->client, line, (size_t)length);
    }
    free(line);
    free(id);
    return there;
}

/* ---- Clients ---- */

static uint64_t patience(void)
{
    return gpq_watch_limit(PATIENCE);
}

/* When the client may have a snapshot that it has not; 0: there is none. */
static uint64_t due(const struct gpq_agent *a, const struct gpq_watcher *w, uint64_t version)
{
    bool first = w->shown == 0;
    if (version == 0)
        return 0;
    if (first)
        return 1;
    if (w->shown != version)
        return w->shown_at + w->wish.every;
    uint64_t soon = w->shown_at + w->wish.every,
             owed = w->wish.parts & PART(FINDINGS) ? gpq_now_owes(a) : 0;
    if (owed != 0)
        return owed > soon ? owed : soon;
    if (w->wish.parts & PART(GPUS) && gpq_now_has_readings(a))
        return w->wish.every > SECOND ? soon : w->shown_at + SECOND;
    return 0;
}

static bool has_read(const struct gpq_watcher *w)
{
    return gpq_buffer_left(&w->client->out) == 0;
}

static int show(struct gpq_watcher *w, void *user)
{
    struct turn *t = user;
    uint64_t at = due(t->a, w, t->version);
    uint32_t parts = w->wish.parts & (w->shown == 0 ? ~0U : ~PART(HISTORY));
    if (!has_read(w)) {
        w->stuck_at = w->stuck_at != 0 ? w->stuck_at : t->now;
        if (t->now - w->stuck_at < patience())
            return 0;
        gpq_log("a client that watches was dropped: it has not read a snapshot for %.0f s",
                (double)(t->now - w->stuck_at) / 1e9);
        return -1;
    }
    w->stuck_at = 0;
    if (at == 0 || at > t->now)
        return 0;
    const struct text *text = text_of(t, parts);
    if (!text || !send_text(t, w, text))
        return -1;
    w->shown = t->version;
    w->shown_at = t->now;
    return 1;
}

void gpq_watch_turn(struct gpq_agent *a)
{
    struct turn t = { .a = a, .now = gpq_monotonic() };
    if (!gpq_server_is_watched(a))
        return;
    t.version = gpq_now_version(a);
    gpq_server_watchers(a, show, &t);
    if (t.made)
        gpv_snapshot_free(&t.s);
    for (size_t i = 0; i < t.n; i++)
        free(t.text[i].text);
}

/* ---- Time ---- */

struct next {
    struct gpq_agent *a;
    uint64_t at, version;
};

static int find_next(struct gpq_watcher *w, void *user)
{
    struct next *n = user;
    uint64_t at = has_read(w) ? due(n->a, w, n->version)
                              : (w->stuck_at != 0 ? w->stuck_at : gpq_monotonic()) + patience();
    if (at != 0 && (n->at == 0 || at < n->at))
        n->at = at;
    return 0;
}

uint64_t gpq_watch_next(struct gpq_agent *a)
{
    struct next n = { .a = a };
    if (!gpq_server_is_watched(a))
        return 0;
    n.version = gpq_now_version(a);
    gpq_server_watchers(a, find_next, &n);
    return gpq_wall_of(n.at);
}
