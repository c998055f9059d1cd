/* SPDX-License-Identifier: MIT */
/* plan.c - what a runner is to run. */
#include "queue/runner/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/files/numbers.h"
#include "queue/store.h"

#define VERSION "gpudispatch-plan=1"

/* The lists, in their order in the plan. */
enum { ARGV, ENVIRONMENT, VARIABLES, DEFAULTS, WORDS, LISTS };
static const char *const list_names[LISTS] = { "argv", "environment", "variables", "defaults",
                                               "words" };

static char ***list_of(struct gpq_plan *p, unsigned i)
{
    return i == ARGV          ? &p->argv
           : i == ENVIRONMENT ? &p->environment
           : i == VARIABLES   ? &p->variables
           : i == DEFAULTS    ? &p->defaults
                              : &p->words;
}

static size_t count(char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* ---- What holds for each plan ---- */

static bool are_assignments(char *const *list)
{
    if (count(list) > GPQ_PLAN_VARIABLES)
        return false;
    for (; list && *list; list++)
        if (**list == '=' || !strchr(*list, '='))
            return false;
    return true;
}

static bool is_valid(const struct gpq_plan *p)
{
    char tag[GPQ_RUN_TAG];
    struct gpq_run_id id;

    gpq_run_tag(tag, &p->id);
    return gpq_run_tag_read(tag, &id) && p->cwd && *p->cwd == '/' && (!p->out || *p->out == '/') &&
           p->log && *p->log && p->port <= UINT16_MAX && p->argv && p->argv[0] && *p->argv[0] &&
           are_assignments(p->variables) && are_assignments(p->defaults);
}

/* ---- Writing ---- */

struct writer {
    char *data;
    size_t used, room;
    int fault;
};

static void put(struct writer *w, const char *text, size_t size)
{
    if (w->fault)
        return;
    if (size > GPQ_PLAN_MOST - w->used) {
        w->fault = -E2BIG;
        return;
    }
    if (size > w->room - w->used) {
        size_t room = 2 * w->room + size + 4096;
        char *data = realloc(w->data, room);
        if (!data) {
            w->fault = -ENOMEM;
            return;
        }
        w->data = data;
        w->room = room;
    }
    memcpy(w->data + w->used, text, size);
    w->used += size;
}

static void put_text(struct writer *w, const char *text)
{
    put(w, text, strlen(text) + 1);
}

static void put_value(struct writer *w, const char *key, const char *value)
{
    if (!value)
        return;
    put(w, key, strlen(key));
    put(w, "=", 1);
    put_text(w, value);
}

static void put_number(struct writer *w, const char *key, uint64_t number)
{
    char text[21];

    (void)snprintf(text, sizeof(text), "%" PRIu64, number);
    put_value(w, key, text);
}

/* A number that a plan has unless it is 0. */
static void put_some(struct writer *w, const char *key, uint64_t number)
{
    if (number)
        put_number(w, key, number);
}

int gpq_plan_write(const struct gpq_plan *p, void **ret_data, size_t *ret_size)
{
    struct gpq_plan copy = *p;
    struct writer w = { 0 };
    char tag[GPQ_RUN_TAG];

    if (!is_valid(p))
        return -EINVAL;
    gpq_run_tag(tag, &p->id);
    put_text(&w, VERSION);
    put_value(&w, "run", tag);
    put_value(&w, "cwd", p->cwd);
    put_value(&w, "out", p->out);
    put_value(&w, "log", p->log);
    put_value(&w, "key", p->key);
    put_number(&w, "log_limit", p->log_limit);
    put_some(&w, "descriptors", p->descriptors);
    put_some(&w, "port", p->port);
    for (unsigned i = 0; i < LISTS; i++) {
        char **list = *list_of(&copy, i);
        if (i == WORDS)
            put_some(&w, list_names[i], count(list));
        else
            put_number(&w, list_names[i], count(list));
        for (; list && *list; list++)
            put_text(&w, *list);
    }
    put_text(&w, "end");
    if (w.fault) {
        free(w.data);
        return w.fault;
    }
    *ret_data = w.data;
    *ret_size = w.used;
    return 0;
}

/* ---- Reading ---- */

struct reader {
    char *at, *end; /* the last byte is NUL */
};

/* Returns the next text, or NULL behind the last. */
static char *next(struct reader *r)
{
    char *text = r->at;

    if (text == r->end)
        return NULL;
    r->at += strlen(text) + 1;
    return text;
}

/* Returns the value of the next text if that has this key. */
static char *value_of(struct reader *r, const char *key)
{
    size_t n = strlen(key);

    return r->at != r->end && !strncmp(r->at, key, n) && r->at[n] == '=' ? next(r) + n + 1 : NULL;
}

static bool number_of(struct reader *r, const char *key, uint64_t *ret)
{
    const char *text = value_of(r, key), *rest = text ? gpq_decimal_read(text, ret) : NULL;

    return rest && !*rest;
}

/* The number that a plan has unless it is 0. */
static bool some_of(struct reader *r, const char *key, uint64_t most, uint64_t *ret)
{
    *ret = 0;
    if (r->at == r->end || strncmp(r->at, key, strlen(key)) || r->at[strlen(key)] != '=')
        return true;
    return number_of(r, key, ret) && *ret && *ret <= most;
}

/* Reads one list into the pointers at *slots, which has room for one to each text and list. */
static bool list_read(struct reader *r, unsigned i, char ***slots, char ***ret)
{
    const char *key = list_names[i];
    uint64_t n;

    if (!(i == WORDS ? some_of(r, key, UINT64_MAX, &n) : number_of(r, key, &n)))
        return false;
    *ret = *slots;
    for (; n; n--)
        if (!(*(*slots)++ = next(r)))
            return false;
    *(*slots)++ = NULL;
    return true;
}

static bool read_texts(struct reader *r, char **slots, struct gpq_plan *p)
{
    const char *tag = value_of(r, "run"), *end;
    uint64_t port;

    if (!tag || !gpq_run_tag_read(tag, &p->id))
        return false;
    p->cwd = value_of(r, "cwd");
    p->out = value_of(r, "out");
    p->log = value_of(r, "log");
    p->key = value_of(r, "key");
    if (!number_of(r, "log_limit", &p->log_limit) ||
        !some_of(r, "descriptors", UINT64_MAX, &p->descriptors) ||
        !some_of(r, "port", UINT16_MAX, &port))
        return false;
    p->port = (uint32_t)port;
    for (unsigned i = 0; i < LISTS; i++)
        if (!list_read(r, i, &slots, list_of(p, i)))
            return false;
    end = next(r);
    return end && !strcmp(end, "end") && r->at == r->end && is_valid(p);
}

int gpq_plan_read(const void *data, size_t size, struct gpq_plan *ret)
{
    struct gpq_plan p = { 0 };
    struct reader r;
    size_t texts = 0;
    char **slots;

    if (!size || size > GPQ_PLAN_MOST || ((const char *)data)[size - 1])
        return -EBADMSG;
    if (strcmp(data, VERSION)) /* it ends with a NUL byte */
        return strncmp(data, VERSION, strcspn(VERSION, "=") + 1) ? -EBADMSG : -EPROTONOSUPPORT;
    for (size_t i = 0; i < size; i++)
        texts += !((const char *)data)[i];
    slots = malloc((texts + LISTS) * sizeof(*slots) + size);
    if (!slots)
        return -ENOMEM;
    r.at = memcpy(slots + texts + LISTS, data, size);
    r.end = r.at + size;
    p.memory = slots;
    (void)next(&r);
    if (!read_texts(&r, slots, &p)) {
        free(slots);
        return -EBADMSG;
    }
    *ret = p;
    return 0;
}

void gpq_plan_free(struct gpq_plan *p)
{
    free(p->memory);
    *p = (struct gpq_plan){ 0 };
}

/* ---- The environment ---- */

enum { RUN, TASK, ATTEMPT, KEY, OUT, PORT, OURS };
static const char *const our_names[OURS] = { GPQ_RUN_VARIABLE "=",   "GPUDISPATCH_TASK=",
                                             "GPUDISPATCH_ATTEMPT=", "GPUDISPATCH_KEY=",
                                             "GPUDISPATCH_OUT=",     "GPUDISPATCH_PORT=" };

static bool is_ours(const char *assignment)
{
    for (unsigned i = 0; i < OURS; i++)
        if (!strncmp(assignment, our_names[i], strlen(our_names[i])))
            return true;
    return false;
}

/* Whether a list has a variable with the name of this assignment. */
static bool has_name(char *const *list, const char *assignment)
{
    size_t n = strcspn(assignment, "=");

    for (; list && *list; list++)
        if (!strncmp(*list, assignment, n) && (*list)[n] == '=')
            return true;
    return false;
}

/* Writes those of our own behind the pointers at `at`, and returns the end of the pointers. */
static char **put_ours(const struct gpq_plan *p, char **at, char *text, size_t size)
{
    char name[GPQ_RUN_NAME], tag[GPQ_RUN_TAG], attempt[12], port[12];
    const char *values[OURS] = { [RUN] = tag,    [TASK] = name,  [ATTEMPT] = attempt,
                                 [KEY] = p->key, [OUT] = p->out, [PORT] = p->port ? port : NULL };

    gpq_run_tag(tag, &p->id);
    gpq_run_name(name, &p->id);
    *strrchr(name, '.') = 0; /* "12.44" of "12.44.3" */
    (void)snprintf(attempt, sizeof(attempt), "%" PRIu32, p->id.attempt);
    (void)snprintf(port, sizeof(port), "%" PRIu32, p->port);
    for (unsigned i = 0; i < OURS; i++) {
        if (!values[i])
            continue;
        int n = snprintf(text, size, "%s%s", our_names[i], values[i]);
        *at++ = text;
        text += n + 1;
        size -= (size_t)n + 1;
    }
    return at;
}

char **gpq_plan_environment(const struct gpq_plan *p)
{
    size_t slots = OURS + count(p->variables) + count(p->environment) + count(p->defaults) + 1;
    size_t size = 256 + (p->key ? strlen(p->key) : 0) + (p->out ? strlen(p->out) : 0);
    char **ret = malloc(slots * sizeof(*ret) + size), **at;

    if (!ret)
        return NULL;
    at = put_ours(p, ret, (char *)(ret + slots), size);
    for (char **v = p->variables; v && *v; v++)
        if (!is_ours(*v))
            *at++ = *v;
    for (char **v = p->environment; v && *v; v++)
        if (!is_ours(*v) && !has_name(p->variables, *v))
            *at++ = *v;
    for (char **v = p->defaults; v && *v; v++)
        if (!is_ours(*v) && !has_name(p->environment, *v) && !has_name(p->variables, *v))
            *at++ = *v;
    *at = NULL;
    return ret;
}
