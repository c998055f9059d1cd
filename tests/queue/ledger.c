/* SPDX-License-Identifier: MIT */
/* ledger.c - what the caller of a store knows from its answers alone. */
#include "ledger.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "harness.h"

static void copy(struct facts *to, const struct facts *from)
{
    memcpy(to->tasks, from->tasks, from->n_tasks * sizeof(*from->tasks));
    memcpy(to->ends, from->ends, from->n_ends * sizeof(*from->ends));
    memcpy(to->open, from->open, sizeof(from->open));
    to->n_tasks = from->n_tasks;
    to->n_ends = from->n_ends;
    to->last_batch = from->last_batch;
    to->sent = from->sent;
    to->purged = from->purged;
}

void ledger_keep(struct ledger *l)
{
    copy(&l->kept, &l->now);
    l->kept_starts = l->n_starts;
}

void ledger_drop(struct ledger *l)
{
    copy(&l->now, &l->kept);
}

struct known_task *ledger_task(struct facts *f, uint64_t id)
{
    for (size_t i = f->n_tasks; i-- > 0;)
        if (f->tasks[i].id == id)
            return &f->tasks[i];
    return NULL;
}

void ledger_add(struct facts *f, uint64_t task, uint32_t content)
{
    T_CMP(f->n_tasks, <, LEDGER_TASKS);
    f->tasks[f->n_tasks++] = (struct known_task){ .id = task, .content = content };
}

void ledger_end(struct facts *f, const struct gpq_end *end)
{
    T_CMP(f->n_ends, <, LEDGER_ENDS);
    f->ends[f->n_ends++] = (struct known_end){
        .task = end->task,
        .attempt = end->attempt,
        .outcome = end->outcome,
        .size = (uint32_t)(end->result_file ? end->result_size : end->result.size),
        .in_file = end->result_file != NULL,
    };
}

void ledger_start(struct ledger *l, uint64_t task, uint32_t attempt)
{
    T_CMP(l->n_starts, <, LEDGER_ENDS);
    l->starts[l->n_starts++] = (struct known_start){ .task = task, .attempt = attempt };
}

void ledger_change(struct facts *f, const struct gpq_change *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct known_task *t = ledger_task(f, c[i].task);
        if (!t)
            T_FAIL("a change of task %u.%u, which no submit has returned", GPQ_BATCH_OF(c[i].task),
                   GPQ_NUMBER_OF(c[i].task));
        if (t->state != c[i].from)
            T_FAIL("a change of task %u.%u from state %u, which is in state %u",
                   GPQ_BATCH_OF(c[i].task), GPQ_NUMBER_OF(c[i].task), c[i].from, t->state);
        t->cancel = c[i].to == GPQ_RUNNING && (c[i].cancel || (t->cancel && c[i].from == c[i].to));
        t->state = c[i].to;
        t->outcome = c[i].to == GPQ_DONE ? c[i].outcome : 0;
    }
}

void ledger_content(uint32_t number, char ret[16])
{
    (void)snprintf(ret, 16, "item-%u", number);
}

void ledger_result(uint64_t task, uint32_t attempt, void *ret, size_t size)
{
    uint64_t seed = task * 31 + attempt;

    for (size_t i = 0; i < size; i++)
        ((uint8_t *)ret)[i] = (uint8_t)(draw(&seed) | 1); /* never 0: a lost sector shows */
}

void ledger_file(uint64_t task, uint32_t attempt, char ret[40])
{
    (void)snprintf(ret, 40, "%u.%u-%u", GPQ_BATCH_OF(task), GPQ_NUMBER_OF(task), attempt);
}

/* ---- Rows of the store ---- */

struct row {
    uint64_t id;
    uint32_t state, outcome, attempt, round;
    bool cancel, known;
    char content[24];
};

struct rows {
    struct row *of;
    size_t n;
};

static int keep_row(const struct gpq_task *t, void *user)
{
    struct rows *rows = user;

    T_CMP(rows->n, <, LEDGER_TASKS);
    struct row *r = &rows->of[rows->n++];
    *r = (struct row){ .id = t->id,
                       .state = t->state,
                       .outcome = t->outcome,
                       .attempt = t->attempt,
                       .round = t->round,
                       .cancel = t->cancel };
    if (t->content.size < sizeof(r->content))
        memcpy(r->content, t->content.data, t->content.size);
    return 0;
}

static int read_rows(struct gpq_store *s, struct rows *rows, struct gpq_error *e)
{
    rows->n = 0;
    rows->of = calloc(LEDGER_TASKS, sizeof(*rows->of));
    T_CHECK(rows->of);
    return s->engine->tasks(s, &(struct gpq_select){ 0 }, 0, true, keep_row, rows, e);
}

static int by_id(const void *a, const void *b)
{
    const struct row *left = a, *right = b;

    return left->id < right->id ? -1 : left->id > right->id;
}

static struct row *find_row(const struct rows *rows, uint64_t id)
{
    return bsearch(&(struct row){ .id = id }, rows->of, rows->n, sizeof(*rows->of), by_id);
}

__attribute__((format(printf, 3, 4))) static int differs(char text[256], uint64_t task,
                                                         const char *format, ...)
{
    va_list list;
    int n = snprintf(text, 256, "task %u.%u ", GPQ_BATCH_OF(task), GPQ_NUMBER_OF(task));

    va_start(list, format);
    (void)vsnprintf(text + n, 256 - (size_t)n, format, list);
    va_end(list);
    return 1;
}

static int compare_task(const struct known_task *t, const struct row *r, char text[256])
{
    char content[16];

    if (!r || t->state == LEDGER_FORGOTTEN)
        return !r && t->state == LEDGER_FORGOTTEN
                   ? 0
                   : differs(text, t->id, r ? "was purged, and is there" : "is gone");
    ledger_content(t->content, content);
    if (strcmp(r->content, content) != 0)
        return differs(text, t->id, "has the content %s, not %s", r->content, content);
    if (r->state != t->state || r->outcome != t->outcome)
        return differs(text, t->id, "has state %u, outcome %u, not %u, %u", r->state, r->outcome,
                       t->state, t->outcome);
    if (r->attempt != t->attempt)
        return differs(text, t->id, "has attempt %u, not %u", r->attempt, t->attempt);
    if (t->state == GPQ_RUNNING && r->cancel != t->cancel)
        return differs(text, t->id, "has the wish to cancel %d, not %d", r->cancel, t->cancel);
    return 0;
}

static int find_end(const struct gpq_attempt *a, void *user)
{
    const struct known_end *end = user;

    return a->number == end->attempt && a->outcome == end->outcome && a->ended != 0;
}

static int compare_ends(const struct facts *f, const struct rows *rows, struct gpq_store *s,
                        char text[256], struct gpq_error *e)
{
    for (size_t i = 0; i < f->n_ends; i++) {
        struct known_end end = f->ends[i];
        if (!find_row(rows, end.task))
            continue;
        int rc = s->engine->attempts(s, end.task, find_end, &end, e);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return differs(text, end.task, "attempt %u has not its outcome %u", end.attempt,
                           end.outcome);
    }
    return 0;
}

int ledger_compare(const struct facts *f, struct gpq_store *s, char text[256], struct gpq_error *e)
{
    struct rows rows;
    int rc = read_rows(s, &rows, e);

    for (size_t i = 0; i < f->n_tasks && rc == 0; i++) {
        struct row *r = find_row(&rows, f->tasks[i].id);
        rc = compare_task(&f->tasks[i], r, text);
        if (r)
            r->known = true;
    }
    for (size_t i = 0; i < rows.n && rc == 0; i++)
        if (!rows.of[i].known)
            rc = differs(text, rows.of[i].id, "is there, and no submit has returned it");
    if (rc == 0)
        rc = compare_ends(f, &rows, s, text, e);
    free(rows.of);
    return rc;
}

/* ---- Results ---- */

struct search {
    const struct known_end *end;
    const struct gpq_files *files;
    const char *results;
    char *text;
    bool found;
};

/* 0: the file has this data and no more. */
static int compare_file(const struct search *s, const char *name, const uint8_t *data, size_t size)
{
    const struct gpq_files *f = s->files;
    uint8_t there[8192];
    char path[200];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", s->results, name);
    T_CMP(size, <, sizeof(there));
    fd = f->open(f->user, path, O_RDONLY, 0);
    if (fd < 0)
        return differs(s->text, s->end->task, "has a result in %s, which is not there", name);
    n = f->read(f->user, fd, there, sizeof(there));
    (void)f->close(f->user, fd);
    if (n != (ssize_t)size || memcmp(there, data, size) != 0)
        return differs(s->text, s->end->task, "has a result of %zu bytes in %s, %zd are there",
                       size, name, n);
    return 0;
}

static int compare_result(const struct gpq_result *r, void *user)
{
    struct search *s = user;
    uint8_t data[8192];

    s->found = true;
    T_CMP(s->end->size, <, sizeof(data));
    ledger_result(s->end->task, s->end->attempt, data, s->end->size);
    if (r->attempt != s->end->attempt || r->size != s->end->size ||
        (r->file != NULL) != s->end->in_file)
        return differs(s->text, s->end->task, "has a result of attempt %u, %llu bytes, not %u, %u",
                       r->attempt, (unsigned long long)r->size, s->end->attempt, s->end->size);
    if (r->file)
        return compare_file(s, r->file, data, s->end->size);
    if (r->data.size != s->end->size || memcmp(r->data.data, data, r->data.size) != 0)
        return differs(s->text, s->end->task, "has another result of %zu bytes", r->data.size);
    return 0;
}

int ledger_results(const struct facts *f, struct gpq_store *s, const struct gpq_files *files,
                   const char *results, char text[256], struct gpq_error *e)
{
    struct rows rows;
    int rc = read_rows(s, &rows, e);

    for (size_t i = 0; i < f->n_ends && rc == 0; i++) {
        const struct row *r = find_row(&rows, f->ends[i].task);
        struct search search = { &f->ends[i], files, results, text, false };
        if (f->ends[i].size == 0 || !r || r->state != GPQ_DONE ||
            r->outcome != GPQ_OUTCOME_SUCCESS || r->attempt != f->ends[i].attempt)
            continue;
        rc = s->engine->result(s, r->id, compare_result, &search, e);
        if (rc == GPQ_ENOTFOUND || (rc == 0 && !search.found))
            rc = differs(text, r->id, "has no result");
    }
    free(rows.of);
    return rc;
}

int ledger_starts(struct ledger *l, struct gpq_store *s, char text[256], struct gpq_error *e)
{
    struct rows rows;
    int rc = read_rows(s, &rows, e);

    for (size_t i = 0; i < l->n_starts && rc == 0; i++) {
        const struct row *r = find_row(&rows, l->starts[i].task);
        const struct known_task *t = ledger_task(&l->kept, l->starts[i].task);
        if (t && t->state == LEDGER_FORGOTTEN)
            continue;
        if (!r || r->attempt < l->starts[i].attempt)
            rc = differs(text, l->starts[i].task, "was started with attempt %u, the store has %u",
                         l->starts[i].attempt, r ? r->attempt : 0);
    }
    free(rows.of);
    return rc;
}
