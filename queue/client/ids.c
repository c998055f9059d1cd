/* SPDX-License-Identifier: MIT */
/* ids.c - operands and options as selections of the protocol. */
#include "queue/client/ids.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/client/words.h"

enum { PAGE = 10000 };

/* ---- One id ---- */

/* Digits from 1 to UINT32_MAX; NULL: there are none. */
static const char *read_number(const char *text, uint32_t *ret)
{
    uint64_t n = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && n <= UINT32_MAX; at++)
        n = n * 10 + (uint64_t)(*at - '0');
    if (at == text || n == 0 || n > UINT32_MAX)
        return NULL;
    *ret = (uint32_t)n;
    return at;
}

struct gpq_id gpq_id_read(const char *text)
{
    struct gpq_id id = { GPQ_ID_NONE, 0, 0, 0 };
    const char *at = read_number(text, &id.batch);
    if (!at)
        return id;
    if (!*at) {
        id.kind = GPQ_ID_BATCH;
        return id;
    }
    at = *at == '.' ? read_number(at + 1, &id.first) : NULL;
    if (!at)
        return id;
    id.last = id.first;
    if (!*at)
        id.kind = GPQ_ID_TASK;
    else if (*at == '-' && (at = read_number(at + 1, &id.last)) && !*at && id.last >= id.first)
        id.kind = GPQ_ID_RANGE;
    return id;
}

char *gpq_id_text(const struct gpq_id *id, char ret[32])
{
    int n = snprintf(ret, 32, "%" PRIu32, id->batch);
    if (id->kind == GPQ_ID_TASK)
        snprintf(ret + n, 32 - (size_t)n, ".%" PRIu32, id->first);
    return ret;
}

bool gpq_are_ids(const char *text)
{
    bool ids = true;
    for (const char *at = text; ids && *at;) {
        char one[40];
        size_t length = strcspn(at, ",");
        snprintf(one, sizeof(one), "%.*s", (int)(length < 39 ? length : 39), at);
        ids = length < 39 && gpq_id_read(one).kind != GPQ_ID_NONE;
        at += length + (at[length] == ',');
    }
    return ids;
}

/* ---- Requests ---- */

json_t *gpq_request_of(const char *what, json_t *selection)
{
    json_t *request = json_pack("{s:s}", "do", what);
    if (request && selection && json_object_update(request, selection) != 0) {
        json_decref(request);
        return NULL;
    }
    return request;
}

int gpq_rows(struct gpq_session *s, json_t *request, const char *list,
             int (*fn)(json_t *row, void *user), void *user)
{
    int status = 0;
    bool more = true;
    if (request && !json_object_get(request, "most"))
        (void)json_object_set_new(request, "most", json_integer(PAGE));
    while (status == 0 && more) {
        json_t *reply;
        status = gpq_session_insist(s, json_deep_copy(request), &reply);
        json_t *rows = json_object_get(reply, list), *next = json_object_get(reply, "next");
        for (size_t i = 0; status == 0 && i < json_array_size(rows); i++)
            status = fn(json_array_get(rows, i), user);
        more = next && json_object_set(request, "after", next) == 0;
        json_decref(reply);
    }
    json_decref(request);
    return status == GPQ_ENOUGH ? 0 : status;
}

/* ---- Filters ---- */

static const struct {
    const char *word, *member, *value[5];
} filters[] = {
    { "held", "states", { "held" } },
    { "ready", "states", { "ready" } },
    { "waiting", "states", { "held", "ready" } },
    { "running", "states", { "running" } },
    { "done", "states", { "done" } },
    { "ok", "outcomes", { "ok" } },
    { "failed", "outcomes", { "error", "timeout", "crashed", "no worker" } },
    { "error", "outcomes", { "error" } },
    { "timeout", "outcomes", { "timeout" } },
    { "crashed", "outcomes", { "crashed" } },
    { "cancelled", "outcomes", { "cancelled" } },
    { "no-worker", "outcomes", { "no worker" } },
    { "no worker", "outcomes", { "no worker" } }, /* as ls prints it */
    { "skipped", "outcomes", { "skipped" } },
    { "lost", "outcomes", { "lost" } },
};

static bool add_word(json_t *selection, const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        if (strlen(filters[i].word) != length || strncmp(filters[i].word, word, length) != 0)
            continue;
        json_t *list = json_object_get(selection, filters[i].member);
        if (!list && json_object_set_new(selection, filters[i].member, list = json_array()) != 0)
            return false;
        for (size_t k = 0; k < 5 && filters[i].value[k]; k++)
            (void)json_array_append_new(list, json_string(filters[i].value[k]));
        return true;
    }
    return false;
}

static int add_filters(const struct call *call, json_t *selection)
{
    if (call->given[OPTION_STATE] && (call->given[OPTION_FAILED] || call->given[OPTION_LOST]))
        return usage(call->verb,
                     "%s: --%s and --state exclude one another; --state takes several: --state "
                     "failed,lost",
                     call->verb->name, call->given[OPTION_FAILED] ? "failed" : "lost");
    if (call->given[OPTION_FAILED])
        (void)add_word(selection, "failed", 6);
    if (call->given[OPTION_LOST])
        (void)add_word(selection, "lost", 4);
    for (const char *at = call->value[OPTION_STATE]; at && *at;) {
        size_t length = strcspn(at, ",");
        if (!add_word(selection, at, length))
            return usage(call->verb,
                         "%s: --state is '%.*s', expected held, ready, waiting, running, done, ok, "
                         "failed, error, timeout, crashed, cancelled, no-worker, skipped or lost",
                         call->verb->name, (int)length, at);
        at += length + (at[length] == ',');
    }
    return 0;
}

/* ---- Operands ---- */

/* Replaces the name of a batch by its id.  The name is the whole text or the part before .44 or
 * .40-49; it may end like that itself: the whole text counts first. */
static int id_of_name(struct gpq_session *s, const char *text, struct gpq_id *ret)
{
    const char *dot = strrchr(text, '.');
    char name[256], numbers[40];
    json_t *reply = NULL, *request = json_pack("{s:s, s:s}", "do", "batches", "name", text);
    if (!request || !*text)
        return gpq_say(EXIT_USAGE, "'%.80s': expected ids or the name of a batch, in UTF-8", text);
    int status = gpq_session_hear_reply(s, request, &reply);
    bool found = status == 0 && json_is_true(json_object_get(reply, "ok"));
    *ret = (struct gpq_id){ GPQ_ID_BATCH, 0, 0, 0 };
    if (status == 0 && !found && dot > text && strlen(dot) < 36 && dot - text < 256) {
        snprintf(numbers, sizeof(numbers), "1%s", dot);
        *ret = gpq_id_read(numbers);
    }
    if (ret->kind == GPQ_ID_TASK || ret->kind == GPQ_ID_RANGE) {
        json_decref(reply);
        snprintf(name, sizeof(name), "%.*s", (int)(dot - text), text);
        status = gpq_session_insist(s,
                                    json_pack("{s:s, s:s, s:I}", "do", "batches", "name", name,
                                              "number", (json_int_t)ret->first),
                                    &reply);
    } else if (status == 0) {
        status = gpq_session_judge(reply);
    }
    if (status == 0)
        ret->batch =
            gpq_id_read(gpq_text_of(json_array_get(json_object_get(reply, "batches"), 0), "batch"))
                .batch;
    json_decref(reply);
    return status;
}

int gpq_id_find(struct gpq_session *s, const char *text, struct gpq_id *ret)
{
    *ret = gpq_id_read(text);
    return ret->kind == GPQ_ID_NONE ? id_of_name(s, text, ret) : 0;
}

/* The selections so far, and the one of all single tasks among them. */
struct found {
    json_t *list, *tasks;
};

static int no_memory(void)
{
    return gpq_say(EXIT_FAILED, "no memory");
}

static int add_task(struct found *f, const char *text)
{
    if (!f->tasks) {
        json_t *one = json_pack("{s:[]}", "tasks");
        f->tasks = json_object_get(one, "tasks");
        if (json_array_append_new(f->list, one) != 0)
            return no_memory();
    }
    return json_array_append_new(f->tasks, json_string(text)) == 0 ? 0 : no_memory();
}

static int add_id(struct gpq_session *s, struct found *f, const char *text)
{
    struct gpq_id id;
    char text_of[32];
    int status = gpq_id_find(s, text, &id);
    if (status != 0)
        return status;
    (void)gpq_id_text(&id, text_of);
    if (id.kind == GPQ_ID_TASK)
        return add_task(f, text_of);
    json_t *one = json_pack("{s:s}", "batch", text_of);
    if (one && id.kind == GPQ_ID_RANGE &&
        (json_object_set_new(one, "first", json_integer(id.first)) != 0 ||
         json_object_set_new(one, "last", json_integer(id.last)) != 0)) {
        json_decref(one);
        one = NULL;
    }
    return json_array_append_new(f->list, one) == 0 ? 0 : no_memory();
}

/* The ids of one operand; a name may have commas, too. */
static int add_operand(struct gpq_session *s, struct found *f, const char *operand)
{
    char *copy = strdup(operand), *rest = copy;
    bool ids = copy && gpq_are_ids(operand);
    int status = copy ? 0 : no_memory();
    if (!ids && status == 0)
        status = add_id(s, f, operand);
    for (char *one; ids && status == 0 && (one = strsep(&rest, ","));)
        status = *one ? add_id(s, f, one) : 0;
    free(copy);
    return status;
}

int gpq_selections(struct gpq_session *s, json_t **ret)
{
    const struct call *call = s->call;
    struct found f = { json_array(), NULL };
    int status = f.list ? 0 : no_memory();
    *ret = NULL;
    if (call->given[OPTION_ALL] && call->operands > 0)
        status = usage(call->verb, "%s: --all takes no IDS", call->verb->name);
    if (status == 0 && call->given[OPTION_ALL] &&
        json_array_append_new(f.list, json_pack("{s:b}", "all", 1)) != 0)
        status = no_memory();
    for (size_t i = 0; status == 0 && i < call->operands; i++)
        status = add_operand(s, &f, call->operand[i]);
    for (size_t i = 0; status == 0 && i < json_array_size(f.list); i++)
        status = add_filters(call, json_array_get(f.list, i));
    if (status == 0 && json_array_size(f.list) == 0)
        status = usage(call->verb, "%s: expected IDS, or --all", call->verb->name);
    if (status == 0)
        *ret = f.list;
    else
        json_decref(f.list);
    return status;
}

enum { SEVERAL = -2 };

static int first_task(json_t *row, void *user)
{
    char *ret = user;
    if (*ret)
        return SEVERAL;
    snprintf(ret, 32, "%s", gpq_text_of(row, "task"));
    return 0;
}

int gpq_one_task(struct gpq_session *s, char ret[32])
{
    const char *text = s->call->operand[0];
    struct gpq_id id;
    char batch[32];
    int status = gpq_id_find(s, text, &id);
    ret[0] = '\0';
    if (status != 0)
        return status;
    if (id.kind == GPQ_ID_TASK) {
        (void)gpq_id_text(&id, ret);
        return 0;
    }
    if (id.kind == GPQ_ID_RANGE)
        return usage(s->call->verb, "%s: '%s' is a range, expected a task such as 12.44",
                     s->call->verb->name, text);
    (void)gpq_id_text(&id, batch);
    status = gpq_rows(s, json_pack("{s:s, s:s, s:i}", "do", "tasks", "batch", batch, "most", 2),
                      "tasks", first_task, ret);
    if (status == 0 && !*ret)
        return gpq_say(EXIT_NONE, "batch %s has no tasks", batch);
    if (status != SEVERAL)
        return status;
    return usage(s->call->verb, "%s: batch %s has several tasks; name one, such as %s.1",
                 s->call->verb->name, batch, batch);
}

int gpq_batch_row(struct gpq_session *s, const char *batch, json_t **ret)
{
    char before[16];
    json_t *reply, *request = json_pack("{s:s, s:i}", "do", "batches", "most", 1);
    snprintf(before, sizeof(before), "%" PRIu32, gpq_id_read(batch).batch - 1);
    if (strcmp(before, "0") != 0)
        (void)json_object_set_new(request, "after", json_string(before));
    int status = gpq_session_insist(s, request, &reply);
    json_t *row = json_array_get(json_object_get(reply, "batches"), 0);
    *ret = NULL;
    if (status == 0 && strcmp(gpq_text_of(row, "batch"), batch) != 0)
        status = gpq_say(EXIT_NONE, "there is no batch %s", batch); /* it was purged */
    if (status == 0)
        *ret = json_incref(row);
    json_decref(reply);
    return status;
}

int gpq_each_selection(const struct call *call,
                       int (*fn)(struct gpq_session *s, json_t *selection, void *user), void *user)
{
    struct gpq_session s;
    json_t *list = NULL;
    int status = gpq_session_open(&s, call, GPQ_AGENT_RESUMED);
    if (status == 0)
        status = gpq_selections(&s, &list);
    for (size_t i = 0; status == 0 && i < json_array_size(list); i++)
        status = fn(&s, json_array_get(list, i), user);
    json_decref(list);
    gpq_session_close(&s);
    return status;
}
