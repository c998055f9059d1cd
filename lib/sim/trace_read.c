/* SPDX-License-Identifier: MIT */
/*
 * trace_read.c - reads the lines of a trace: the world, then events.
 *
 * All lines are read before anything happens.  So the run knows how many tasks there are, and each
 * fault of the file is found first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/trace_json.h"

#define MOST_TASKS 4000000u
#define MOST_TIME (1000000000 * GPI_S)

static const struct gpi_trace_field task_fields[] = {
    { "at", GPI_FIELD_SECONDS },
    { "task", GPI_FIELD_TEXT },
    { "class", GPI_FIELD_TEXT },
    { "priority", GPI_FIELD_INTEGER },
    { "run_s", GPI_FIELD_SECONDS },
    { "limit_s", GPI_FIELD_SECONDS },
    { "fail", GPI_FIELD_TEXT },
    { "max_attempts", GPI_FIELD_COUNT },
    { "keep_alive_s", GPI_FIELD_SECONDS },
    { "repeat", GPI_FIELD_COUNT },
    { "every_s", GPI_FIELD_SECONDS },
    { "batch", GPI_FIELD_LATER },
    { 0 },
};
static const struct gpi_trace_field cancel_fields[] = {
    { "at", GPI_FIELD_SECONDS },
    { "cancel", GPI_FIELD_TEXT },
    { 0 },
};
static const struct gpi_trace_field device_fields[] = {
    { "at", GPI_FIELD_SECONDS },
    { "device", GPI_FIELD_TEXT },
    { "state", GPI_FIELD_TEXT },
    { 0 },
};
static const struct gpi_trace_field reading_fields[] = {
    { "at", GPI_FIELD_SECONDS },
    { "device", GPI_FIELD_TEXT },
    { "foreign_gib", GPI_FIELD_GIB },
    { "load", GPI_FIELD_PART },
    { 0 },
};
static const struct gpi_trace_field set_fields[] = {
    { "at", GPI_FIELD_SECONDS },
    { "class", GPI_FIELD_TEXT },
    { "set", GPI_FIELD_TEXT },
    { 0 },
};
static const struct gpi_trace_field batch_fields[] = {
    { "batch", GPI_FIELD_LATER },
    { "at", GPI_FIELD_SECONDS },
    { "exclusive", GPI_FIELD_LATER },
    { 0 },
};

static int add_fact(struct gpi_trace_reader *r, struct gpi_trace_fact f)
{
    struct gpi_trace *t = r->t;

    f.line = r->line;
    if (gpi_trace_grow(r, &t->fact, t->n_facts, sizeof *t->fact) < 0)
        return -1;
    t->fact[t->n_facts++] = f;
    return 0;
}

/* ---- tasks ---- */

static bool is_same(const struct gpi_request *a, uint32_t n, const struct gpi_plan_class *c)
{
    bool same = n == c->n_needs;

    for (uint32_t i = 0; same && i < n; i++)
        same = gpi_request_same(&a[i], &c->need[i]);
    return same;
}

static int read_request(struct gpi_trace_reader *r, const json_t *o, struct gpi_trace_line *l)
{
    const struct gpi_plan_class *c = &r->t->class[l->class].set;

    if (gpi_trace_requests(r, o, c->need, c->n_needs, l->request, &l->n_requests) < 0)
        return -1;
    if (c->residence == GPI_RESIDENT && !is_same(l->request, l->n_requests, c))
        return gpi_trace_complain(r, "class",
                                  "is resident: its tasks have no request of their own");
    return 0;
}

static int read_end(struct gpi_trace_reader *r, const json_t *o, struct gpi_trace_line *l)
{
    static const char *const fails[] = { "error", "crash", NULL };
    const char *fail = gpi_trace_text(o, "fail");
    const int how = fail ? gpi_trace_word(r, "fail", fail, fails) + 1 : 0;

    if (fail && how == 0)
        return -1;
    l->fail = (enum gpi_trace_fail)how;
    l->run = gpi_trace_seconds(o, "run_s", 0);
    l->limit = gpi_trace_seconds(o, "limit_s", GPI_NEVER);
    l->keep_alive = gpi_trace_seconds(o, "keep_alive_s", 0);
    l->max_attempts = gpi_trace_count(o, "max_attempts", 1);
    return 0;
}

/* Each task of the line has an id and a fact. */
static int add_tasks(struct gpi_trace_reader *r, const json_t *o, const struct gpi_trace_line *l)
{
    const uint64_t every = gpi_trace_seconds(o, "every_s", 0);
    struct gpi_trace_fact f = { .at = r->at, .kind = GPI_TRACE_TASK, .detail = r->t->n_lines };
    char id[128];

    for (uint32_t i = 0; i < l->repeat; i++, f.at += every) {
        const int n = l->numbered ? snprintf(id, sizeof id, "%s.%u", l->id, i)
                                  : snprintf(id, sizeof id, "%s", l->id);
        if (n >= (int)sizeof id)
            return gpi_trace_complain(r, "task", "is longer than 100 bytes");
        if (f.at > MOST_TIME)
            return gpi_trace_complain(r, "every_s", "leads beyond 1000000000 seconds");
        if (json_object_get(r->tasks, id))
            return gpi_trace_complain(r, id, "is the id of two tasks");
        f.number = l->first + i;
        if (json_object_set_new(r->tasks, id, json_integer(f.number)) < 0)
            return gpi_trace_complain(r, NULL, "there is no memory left");
        if (add_fact(r, f) < 0)
            return -1;
    }
    return 0;
}

static int read_task(struct gpi_trace_reader *r, const json_t *o)
{
    struct gpi_trace *t = r->t;
    const char *class = gpi_trace_text(o, "class");
    struct gpi_trace_line l = { .first = t->n_tasks };

    if (gpi_trace_check(r, o, task_fields, gpi_trace_request_fields) < 0 ||
        (class && gpi_trace_find(r, r->classes, "class", class, &l.class) < 0) ||
        read_request(r, o, &l) < 0 || read_end(r, o, &l) < 0)
        return -1;
    l.repeat = gpi_trace_count(o, "repeat", 1);
    l.numbered = json_object_get(o, "repeat") != NULL;
    if (l.repeat > MOST_TASKS - t->n_tasks)
        return gpi_trace_complain(r, "repeat", "makes more than 4000000 tasks");
    l.priority = (int32_t)json_integer_value(json_object_get(o, "priority"));
    if (gpi_trace_grow(r, &t->line, t->n_lines, sizeof *t->line) < 0)
        return -1;
    l.id = strdup(gpi_trace_text(o, "task"));
    t->line[t->n_lines] = l;
    if (!l.id || add_tasks(r, o, &l) < 0) {
        free(l.id);
        return -1;
    }
    t->n_lines++;
    t->n_tasks += l.repeat;
    return 0;
}

/* ---- other events ---- */

static int read_cancel(struct gpi_trace_reader *r, const json_t *o)
{
    struct gpi_trace_fact f = { .at = r->at, .kind = GPI_TRACE_CANCEL };

    if (gpi_trace_check(r, o, cancel_fields, NULL) < 0 ||
        gpi_trace_find(r, r->tasks, "cancel", gpi_trace_text(o, "cancel"), &f.number) < 0)
        return -1;
    return add_fact(r, f);
}

static int read_state(struct gpi_trace_reader *r, const json_t *o)
{
    static const char *const states[] = { "offline", "online", "paused", "resumed",
                                          "drained", "gone",   NULL };
    static const enum gpi_plan_may may[] = { GPI_PLAN_OUT, GPI_PLAN_IN,      GPI_PLAN_PAUSED,
                                             GPI_PLAN_IN,  GPI_PLAN_DRAINED, GPI_PLAN_GONE };
    struct gpi_trace_fact f = { .at = r->at, .kind = GPI_TRACE_DEVICE };
    int state;

    if (gpi_trace_check(r, o, device_fields, NULL) < 0 ||
        gpi_trace_find(r, r->devices, "device", gpi_trace_text(o, "device"), &f.number) < 0)
        return -1;
    state = gpi_trace_word(r, "state", gpi_trace_text(o, "state"), states);
    if (state < 0)
        return -1;
    f.detail = may[state];
    return add_fact(r, f);
}

static int read_reading(struct gpi_trace_reader *r, const json_t *o)
{
    struct gpi_trace_fact f = { .at = r->at, .kind = GPI_TRACE_FOREIGN };

    if (gpi_trace_check(r, o, reading_fields, NULL) < 0 ||
        gpi_trace_find(r, r->devices, "device", gpi_trace_text(o, "device"), &f.number) < 0)
        return -1;
    if (!json_object_get(o, "foreign_gib") && !json_object_get(o, "load"))
        return gpi_trace_complain(r, "device", "has neither a state nor a reading");
    f.bytes = gpi_trace_bytes(o, "foreign_gib", 0);
    f.load = gpi_trace_part(o, "load", 0);
    return add_fact(r, f);
}

static int read_set(struct gpi_trace_reader *r, const json_t *o)
{
    /* As in enum gpi_plan_class_what. */
    static const char *const words[] = { "pause",  "resume", "drain", "load",
                                         "unload", "pin",    "unpin", NULL };
    struct gpi_trace_fact f = { .at = r->at, .kind = GPI_TRACE_CLASS };
    int what;

    if (gpi_trace_check(r, o, set_fields, NULL) < 0 ||
        gpi_trace_find(r, r->classes, "class", gpi_trace_text(o, "class"), &f.number) < 0)
        return -1;
    what = gpi_trace_word(r, "set", gpi_trace_text(o, "set"), words);
    if (what < 0)
        return -1;
    f.detail = (uint32_t)what;
    return add_fact(r, f);
}

/* ---- lines ---- */

static bool has(const json_t *o, const char *key)
{
    return json_object_get(o, key) != NULL;
}

static int read_event(struct gpi_trace_reader *r, const json_t *o)
{
    uint64_t at;

    if (!json_is_number(json_object_get(o, "at")))
        return gpi_trace_complain(r, "at", "is missing, or no number of seconds");
    at = gpi_trace_seconds(o, "at", 0);
    if (at < r->at)
        return gpi_trace_complain(r, "at", "is earlier than in the line before");
    r->at = at;
    if (has(o, "task"))
        return read_task(r, o);
    if (has(o, "cancel"))
        return read_cancel(r, o);
    if (has(o, "device"))
        return has(o, "state") ? read_state(r, o) : read_reading(r, o);
    if (has(o, "class") && has(o, "set"))
        return read_set(r, o);
    if (has(o, "batch"))
        return gpi_trace_check(r, o, batch_fields, NULL);
    return gpi_trace_complain(r, NULL, "is no task, cancel, device, or class with \"set\"");
}

static int read_line(struct gpi_trace_reader *r, const char *text, bool *begun)
{
    json_error_t e;
    json_t *o;
    int failed;

    if (text[strspn(text, " \t\r\n")] == '\0' || *text == '#')
        return 0;
    o = json_loads(text, JSON_REJECT_DUPLICATES, &e);
    if (!o)
        failed = gpi_trace_complain(r, NULL, e.text);
    else
        failed = *begun ? read_event(r, o) : gpi_trace_world(r, o);
    *begun = true;
    json_decref(o);
    return failed;
}

static int read_lines(struct gpi_trace_reader *r, FILE *in)
{
    char *text = NULL;
    size_t size = 0;
    bool begun = false;
    int failed = 0;

    while (failed == 0 && getline(&text, &size, in) > 0) {
        r->line++;
        failed = read_line(r, text, &begun);
    }
    free(text);
    if (failed == 0 && (ferror(in) || !begun))
        failed = gpi_trace_complain(r, NULL, begun ? strerror(errno) : "the trace has no world");
    return failed;
}

/* ---- the trace ---- */

static int compare(const void *a, const void *b)
{
    const struct gpi_trace_fact *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

int gpi_trace_read(struct gpi_trace *t, const char *path)
{
    struct gpi_trace_reader r = {
        .t = t, .classes = json_object(), .devices = json_object(), .tasks = json_object()
    };
    FILE *in = fopen(path, "re");
    int failed = -1;

    *t = (struct gpi_trace){ .path = path };
    if (!in)
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
    else
        failed = read_lines(&r, in);
    if (in)
        (void)fclose(in);
    json_decref(r.classes);
    json_decref(r.devices);
    json_decref(r.tasks);
    if (failed == 0 && t->n_facts) /* `every_s` has put tasks behind later lines */
        qsort(t->fact, t->n_facts, sizeof *t->fact, compare);
    if (failed)
        gpi_trace_free(t);
    return failed;
}

void gpi_trace_free(struct gpi_trace *t)
{
    for (uint32_t i = 0; i < t->n_classes; i++)
        free(t->class[i].name);
    for (uint32_t i = 0; i < t->n_devices; i++)
        free(t->device[i].name);
    for (uint32_t i = 0; i < t->n_places; i++)
        free(t->places[i].device);
    for (uint32_t i = 0; i < t->n_lines; i++)
        free(t->line[i].id);
    free(t->class);
    free(t->device);
    free(t->warm);
    free(t->places);
    free(t->line);
    free(t->fact);
}
