/* SPDX-License-Identifier: MIT */
/* set.c - gives waiting tasks other limits, needs or places. */
#include <stdlib.h>
#include <string.h>

#include "queue/agent/needs.h"
#include "queue/agent/requests.h"
#include "queue/grow.h"

struct set {
    struct gpq_which which;
    json_t *needs, *retries;
    int32_t priority;
    uint64_t limit, expires, backoff, backoff_cap;
    bool at_most_once, front, allow_wait;
};

const struct gpq_field gpq_set_fields[] = {
    GPQ_WHICH_FIELDS,
    GPQ_MEMBER(set, priority, I32, INT32_MIN, INT32_MAX),
    GPQ_MEMBER(set, limit, U64, 0, INT64_MAX),
    GPQ_MEMBER(set, expires, U64, 0, INT64_MAX),
    GPQ_MEMBER(set, retries, OBJECT, 0, 0),
    GPQ_MEMBER(set, backoff, U64, 0, INT64_MAX),
    GPQ_MEMBER(set, backoff_cap, U64, 0, INT64_MAX),
    GPQ_MEMBER(set, at_most_once, BOOL, 0, 0),
    GPQ_MEMBER(set, needs, OBJECT, 0, 0),
    GPQ_MEMBER(set, allow_wait, BOOL, 0, 0),
    GPQ_MEMBER(set, front, BOOL, 0, 0),
    { 0 },
};

static bool has(const struct gpq_call *c, const char *name)
{
    return json_object_get(c->request, name) != NULL;
}

static bool changes_spec(const struct gpq_call *c)
{
    return has(c, "priority") || has(c, "limit") || has(c, "expires") || has(c, "retries") ||
           has(c, "backoff") || has(c, "backoff_cap") || has(c, "at_most_once") || has(c, "needs");
}

/* ---- The specs of the selected tasks ---- */

struct one {
    uint32_t spec;
    uint64_t task;
};

struct found {
    struct gpq_call *c;
    bool listed; /* each task must wait */
    struct one *one;
    size_t n, room;
    uint64_t *task; /* of all `one` */
    uint64_t running;
};

static int note_task(struct found *f, const struct gpq_task *t)
{
    struct one *grown = gpq_grown(f->one, f->n, &f->room, sizeof(*grown));
    if (!grown)
        return gpq_fail(f->c->e, GPQ_ENOMEM, "no memory for the limits of the tasks");
    f->one = grown;
    f->one[f->n++] = (struct one){ t->spec, t->id };
    return 0;
}

static int one_task(const struct gpq_task *t, void *user)
{
    struct found *f = user;
    f->running += t->state == GPQ_RUNNING;
    if (t->state == GPQ_HELD || t->state == GPQ_READY)
        return note_task(f, t);
    if (!f->listed)
        return 0;
    return gpq_fail(f->c->e, GPQ_EREFUSED, "task %u.%u %s: only tasks that wait can be changed",
                    GPQ_BATCH_OF(t->id), GPQ_NUMBER_OF(t->id),
                    t->state == GPQ_RUNNING ? "runs" : "has ended");
}

static int by_spec(const void *left, const void *right)
{
    const struct one *a = left, *b = right;
    if (a->spec != b->spec)
        return a->spec > b->spec ? 1 : -1;
    return (a->task > b->task) - (a->task < b->task);
}

/* Finds the tasks that wait.  Those of one spec are neighbours, in the order of their ids. */
static int find_tasks(struct gpq_call *c, const struct set *asked, struct found *f)
{
    int code =
        c->a->store->engine->tasks(c->a->store, &asked->which.select, 0, false, one_task, f, c->e);
    if (code < 0 || f->n == 0)
        return code;
    f->task = malloc(f->n * sizeof(*f->task));
    if (!f->task)
        return gpq_fail(c->e, GPQ_ENOMEM, "no memory for the limits of the tasks");
    qsort(f->one, f->n, sizeof(*f->one), by_spec);
    for (size_t i = 0; i < f->n; i++)
        f->task[i] = f->one[i].task;
    return 0;
}

/* How many tasks have the spec of the i-th one, from this one on. */
static size_t same_spec(const struct found *f, size_t i)
{
    size_t n = 1;
    while (i + n < f->n && f->one[i + n].spec == f->one[i].spec)
        n++;
    return n;
}

/* ---- Another spec ---- */

/* A copy of a spec, whose texts are changed. */
struct copy {
    struct gpq_call *c;
    const struct set *asked;
    struct gpq_spec spec;
    char *content, *shape, *options, *environment; /* of it; freed */
    int code;
};

static char *copy_bytes(struct gpq_bytes *bytes)
{
    char *data = malloc(bytes->size + 1);
    if (!data)
        return NULL;
    if (bytes->size != 0)
        memcpy(data, bytes->data, bytes->size);
    data[bytes->size] = '\0';
    bytes->data = data;
    return data;
}

static int keep_spec(const struct gpq_spec *spec, void *user)
{
    struct copy *copy = user;
    copy->spec = *spec;
    copy->content = copy_bytes(&copy->spec.content);
    copy->shape = copy_bytes(&copy->spec.shape);
    copy->options = copy_bytes(&copy->spec.options);
    copy->environment = copy_bytes(&copy->spec.environment);
    bool whole = copy->content && copy->shape && copy->options && copy->environment;
    copy->code = whole ? 0 : GPQ_ENOMEM;
    return 1;
}

static void free_copy(struct copy *copy)
{
    free(copy->content);
    free(copy->shape);
    free(copy->options);
    free(copy->environment);
}

static int replace(struct copy *copy, char **kept, struct gpq_bytes *bytes, char *text)
{
    if (!text)
        return gpq_fail(copy->c->e, GPQ_ENOMEM, "no memory for the limits of the tasks");
    free(*kept);
    *kept = text;
    *bytes = (struct gpq_bytes){ text, strlen(text) };
    return 0;
}

static int set_limit(struct copy *copy)
{
    json_t *options = json_loadb(copy->options, copy->spec.options.size, 0, NULL);
    if (!options)
        options = json_object();
    int fault =
        copy->asked->limit == 0
            ? (json_object_del(options, "limit"), 0)
            : json_object_set_new(options, "limit", json_integer((json_int_t)copy->asked->limit));
    char *text = fault == 0 ? json_dumps(options, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(options);
    return replace(copy, &copy->options, &copy->spec.options, text);
}

/* The content stays: a later submit of the same line must still join the task. */
static int set_needs(struct copy *copy)
{
    const struct gpq_at at = { NULL, "needs", GPQ_NO_INDEX };
    struct gpq_call *c = copy->c;
    struct gpq_needs before, after;
    int code = gpq_needs_parse(copy->spec.shape, &before, c->e);
    if (code < 0)
        return code;
    if (before.class_name) {
        code = gpq_fail(c->e, GPQ_EREFUSED, "needs: those of class %s are in the config file",
                        before.class_name);
        gpq_needs_free(&before);
        return code;
    }
    code = gpq_needs_names(c->a, copy->asked->needs, copy->asked->allow_wait, &at, c->e);
    if (code < 0) {
        gpq_needs_free(&before);
        return code;
    }
    code = gpq_needs_read(copy->asked->needs, &at, c->a->devices, &after, c->e);
    if (code == 0) {
        code = gpq_needs_check(c->a, &after, GPQ_COMMANDS, copy->asked->allow_wait, &at, c->e);
        if (code == 0)
            code = replace(copy, &copy->shape, &copy->spec.shape, gpq_needs_write(&after));
        gpq_needs_free(&after);
    }
    gpq_needs_free(&before);
    return code;
}

static int change(struct copy *copy)
{
    const struct gpq_at retries = { NULL, "retries", GPQ_NO_INDEX };
    struct gpq_call *c = copy->c;
    const struct set *asked = copy->asked;
    struct gpq_spec *spec = &copy->spec;
    int code = 0;
    if (has(c, "priority"))
        spec->priority = asked->priority;
    if (has(c, "expires"))
        spec->expires = asked->expires;
    if (has(c, "backoff"))
        spec->backoff = asked->backoff;
    if (has(c, "backoff_cap"))
        spec->backoff_cap = asked->backoff_cap;
    if (has(c, "at_most_once"))
        spec->at_most_once = asked->at_most_once;
    if (has(c, "retries")) {
        memset(spec->retries, 0, sizeof(spec->retries));
        code = gpq_fields_read(asked->retries, &retries, gpq_retries_fields, spec->retries, c->e);
    }
    if (code == 0 && has(c, "limit"))
        code = set_limit(copy);
    return code == 0 && has(c, "needs") ? set_needs(copy) : code;
}

/* The n tasks from the i-th one on, which have one spec; or only whether it can be changed.  The
 * store visits these tasks alone: the cost of all specs is that of all tasks. */
static int64_t respec(struct gpq_call *c, const struct set *asked, const struct found *f, size_t i,
                      size_t n, bool only_try)
{
    const struct gpq_engine *engine = c->a->store->engine;
    struct copy copy = { .c = c, .asked = asked, .code = GPQ_ENOTFOUND };
    const struct gpq_select which = { .tasks = f->task + i, .n_tasks = n };
    int64_t count = engine->spec(c->a->store, f->one[i].spec, keep_spec, &copy, c->e);
    if (count >= 0)
        count = copy.code;
    if (count == GPQ_ENOMEM)
        gpq_fail(c->e, GPQ_ENOMEM, "no memory for the limits of the tasks");
    if (count == 0)
        count = change(&copy);
    if (count == 0 && !only_try)
        count = engine->respec(c->a->store, c->now, &which, &copy.spec, c->e);
    free_copy(&copy);
    return count;
}

static int64_t respec_all(struct gpq_call *c, const struct set *asked, const struct found *f,
                          bool only_try)
{
    int64_t count = 0, code = 0;
    for (size_t i = 0, n; code >= 0 && i < f->n; i += n) {
        n = same_spec(f, i);
        code = respec(c, asked, f, i, n, only_try);
        count += code;
    }
    return code < 0 ? code : count;
}

/* ---- The whole ---- */

static int64_t apply(struct gpq_call *c, const struct set *asked, const struct found *f)
{
    bool changes = changes_spec(c);
    int64_t count = 0, n = 0;
    /* All or none: what is refused is found before anything changes. */
    if (changes)
        n = respec_all(c, asked, f, true);
    if (n >= 0 && changes)
        n = count = respec_all(c, asked, f, false);
    if (n >= 0 && asked->front) {
        n = c->a->store->engine->first(c->a->store, &asked->which.select, c->e);
        count = changes ? count : n;
    }
    return n < 0 ? n : count;
}

json_t *gpq_do_set(struct gpq_call *c)
{
    struct set asked = { 0 };
    int64_t n = gpq_call_read(c, gpq_set_fields, &asked);
    if (n == 0 && !changes_spec(c) && !asked.front)
        n = gpq_fail(c->e, GPQ_EINVAL,
                     "the request changes nothing: set priority, limit, expires, "
                     "retries, backoff, at_most_once, needs or front");
    if (n == 0)
        n = gpq_which_read(c, &asked.which);
    struct found f = { .c = c, .listed = asked.which.tasks != NULL };
    if (n == 0)
        n = find_tasks(c, &asked, &f);
    if (n == 0)
        n = apply(c, &asked, &f);
    free(f.one);
    free(f.task);
    gpq_which_free(&asked.which);
    return n < 0 ? NULL
                 : gpq_reply_end(c, json_pack("{s:I, s:I}", "count", (json_int_t)n, "running",
                                              (json_int_t)f.running));
}
