/* SPDX-License-Identifier: MIT */
/* submit.c - a submit: its lines become items of the store, and what they share its specs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/base64.h"
#include "queue/agent/needs.h"
#include "queue/agent/payload.h"
#include "queue/agent/requests.h"
#include "queue/files/stamp.h"

enum {
    SPECS_MOST = 1000000,
    TASKS_MOST = 1000000,
    ARGV_MOST = 1000000,
    AFTER_MOST = 100000,
    RETRIES_MOST = 1000000,
    KEY_MOST = 65536,
    CWD_MOST = 4095,
    CLASS_MOST = 63,
};
/* The kernel takes no more of arguments and environment (execve(2)). */
#define EXEC_MOST ((size_t)6 << 20)
#define LINE_MOST ((size_t)16 << 20)

/* ---- Members ---- */

struct request {
    const char *request;
    json_t *batch, *specs, *tasks;
    bool join, join_anyway, try, allow_wait, list;
};

const struct gpq_field gpq_submit_fields[] = {
    GPQ_MEMBER(request, request, TEXT, 1, GPQ_NAME_MOST),
    GPQ_MEMBER(request, batch, OBJECT, 0, 0),
    GPQ_MEMBER(request, join, BOOL, 0, 0),
    GPQ_MEMBER(request, join_anyway, BOOL, 0, 0),
    GPQ_MEMBER(request, try, BOOL, 0, 0),
    GPQ_MEMBER(request, allow_wait, BOOL, 0, 0),
    GPQ_MEMBER(request, list, BOOL, 0, 0),
    GPQ_MEMBER(request, specs, LIST, 0, SPECS_MOST),
    GPQ_MEMBER(request, tasks, LIST, 0, TASKS_MOST),
    { 0 },
};

struct batch {
    const char *name, *notify, *notify_cwd;
    uint32_t append, at_once, max_fails, max_fails_percent;
    bool open;
    json_t *options;
};

static const struct gpq_field batch_fields[] = {
    GPQ_MEMBER(batch, name, TEXT, 1, GPQ_NAME_MOST),
    GPQ_MEMBER(batch, append, BATCH, 0, 0),
    GPQ_MEMBER(batch, open, BOOL, 0, 0),
    GPQ_MEMBER(batch, notify, TEXT, 0, GPQ_ARGUMENT_MOST),
    GPQ_MEMBER(batch, notify_cwd, TEXT, 1, CWD_MOST),
    GPQ_MEMBER(batch, at_once, U32, 0, UINT32_MAX),
    GPQ_MEMBER(batch, max_fails, U32, 0, UINT32_MAX),
    GPQ_MEMBER(batch, max_fails_percent, U32, 0, 100),
    GPQ_MEMBER(batch, options, OBJECT, 0, 0),
    { 0 },
};

struct spec {
    const char *class_name, *cwd;
    json_t *like, *needs, *retries, *after, *environment, *options;
    int32_t priority;
    uint64_t limit, expires, begin, backoff, backoff_cap;
    bool at_most_once, hold, replace, attached, shell;
};

static const struct gpq_field spec_fields[] = {
    GPQ_MEMBER(spec, like, ANY, 0, 0), /* read before the others */
    { "class", GPQ_FIELD_TEXT, offsetof(struct spec, class_name), 1, CLASS_MOST },
    GPQ_MEMBER(spec, cwd, TEXT, 1, CWD_MOST),
    GPQ_MEMBER(spec, needs, OBJECT, 0, 0),
    GPQ_MEMBER(spec, priority, I32, INT32_MIN, INT32_MAX),
    GPQ_MEMBER(spec, limit, U64, 0, INT64_MAX),
    GPQ_MEMBER(spec, expires, U64, 0, INT64_MAX),
    GPQ_MEMBER(spec, begin, U64, 0, INT64_MAX),
    GPQ_MEMBER(spec, retries, OBJECT, 0, 0),
    GPQ_MEMBER(spec, backoff, U64, 0, INT64_MAX),
    GPQ_MEMBER(spec, backoff_cap, U64, 0, INT64_MAX),
    GPQ_MEMBER(spec, after, LIST, 0, AFTER_MOST),
    GPQ_MEMBER(spec, at_most_once, BOOL, 0, 0),
    GPQ_MEMBER(spec, hold, BOOL, 0, 0),
    GPQ_MEMBER(spec, replace, BOOL, 0, 0),
    GPQ_MEMBER(spec, attached, BOOL, 0, 0),
    GPQ_MEMBER(spec, shell, BOOL, 0, 0),
    GPQ_MEMBER(spec, environment, LIST, 0, ARGV_MOST),
    GPQ_MEMBER(spec, options, OBJECT, 0, 0),
    { 0 },
};

#define RETRY(word, cause)                                               \
    {                                                                    \
        word, GPQ_FIELD_U32, sizeof(uint32_t) * (cause), 0, RETRIES_MOST \
    }
const struct gpq_field gpq_retries_fields[] = {
    RETRY("error", GPQ_CAUSE_ERROR),
    RETRY("timeout", GPQ_CAUSE_TIMEOUT),
    RETRY("crash", GPQ_CAUSE_CRASH),
    RETRY("oom", GPQ_CAUSE_OOM),
    { 0 },
};

struct source {
    uint64_t id;
    json_t *when;
};
static const struct gpq_field source_fields[] = {
    GPQ_MEMBER(source, id, SOURCE, 0, 0),
    GPQ_MEMBER(source, when, ANY, 0, 0),
    { 0 },
};

struct task {
    uint32_t spec, line;
    json_t *argv;
    const char *payload, *base64, *name, *key, *stamp;
};

static const struct gpq_field task_fields[] = {
    GPQ_MEMBER(task, spec, U32, 0, UINT32_MAX),
    GPQ_MEMBER(task, argv, LIST, 1, ARGV_MOST),
    GPQ_MEMBER(task, payload, TEXT, 1, INT32_MAX),
    { "payload_base64", GPQ_FIELD_TEXT, offsetof(struct task, base64), 1, INT32_MAX },
    GPQ_MEMBER(task, name, TEXT, 1, GPQ_NAME_MOST),
    GPQ_MEMBER(task, key, TEXT, 1, KEY_MOST),
    GPQ_MEMBER(task, line, U32, 1, UINT32_MAX),
    GPQ_MEMBER(task, stamp, TEXT, 1, KEY_MOST),
    { 0 },
};

const struct gpq_verb gpq_submit_parts[] = {
    { .name = "batch", .fields = batch_fields },
    { .name = "specs", .fields = spec_fields },
    { .name = "after", .fields = source_fields },
    { .name = "retries", .fields = gpq_retries_fields },
    { .name = "tasks", .fields = task_fields },
    { 0 },
};

/* ---- What is built of them, and freed ---- */

/* What a spec of the store refers to. */
struct built {
    struct gpq_needs needs;
    char *content, *shape, *options;
    bool is_command;
    bool shares; /* the environment of an earlier spec */
};

struct submit {
    struct gpq_call *c;
    struct request request;
    struct gpq_submit what;
    struct gpq_spec *specs;
    struct gpq_item *items;
    struct built *built; /* of each spec */
    char *options;       /* of the batch */
    json_t *environment; /* the last list that was read, and the spec that has it */
    size_t environment_of;
    uint32_t n_attached; /* specs */
    struct gpq_attached *attached; /* for the tasks; NULL = they are not attached */
    char **changed;      /* of each task: the first file that has changed; NULL = not wanted */
};

static int no_memory(struct submit *s)
{
    return gpq_fail(s->c->e, GPQ_ENOMEM, "no memory for the submit");
}

static struct gpq_bytes bytes_of(const char *text)
{
    return (struct gpq_bytes){ text, text ? strlen(text) : 0 };
}

/* Members in one order: equal objects have equal bytes. */
static char *canonical(json_t *json)
{
    return json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
}

static void free_submit(struct submit *s)
{
    for (uint32_t i = 0; s->built && s->specs && i < s->what.n_specs; i++) {
        gpq_needs_free(&s->built[i].needs);
        free(s->built[i].content);
        free(s->built[i].shape);
        free(s->built[i].options);
        if (!s->built[i].shares)
            free((void *)s->specs[i].environment.data);
        free((void *)s->specs[i].after);
    }
    for (uint32_t i = 0; s->items && i < s->what.n_items; i++)
        free((void *)s->items[i].content.data);
    for (uint32_t i = 0; s->changed && i < s->what.n_items; i++)
        free(s->changed[i]);
    free(s->changed);
    free(s->attached);
    free(s->built);
    free(s->specs);
    free(s->items);
    free(s->options);
}

/* ---- Batch ---- */

/* The members of a batch that only the agent reads. */
static int write_batch_options(struct submit *s, const struct batch *b)
{
    if (!b->options && !b->notify)
        return 0;
    json_t *all = json_pack("{s:O*, s:s*, s:s*}", "options", b->options, "notify", b->notify,
                            "notify_cwd", b->notify ? b->notify_cwd : NULL);
    s->options = canonical(all);
    json_decref(all);
    return s->options ? 0 : no_memory(s);
}

static int read_batch(struct submit *s)
{
    const struct gpq_at at = { NULL, "batch", GPQ_NO_INDEX };
    struct batch b = { .max_fails = UINT32_MAX };
    s->what.notify = s->c->a->notify_command != NULL;
    if (!s->request.batch)
        return 0;
    int code = gpq_fields_read(s->request.batch, &at, batch_fields, &b, s->c->e);
    if (code < 0)
        return code;
    if (b.append != 0 && json_object_size(s->request.batch) != 1)
        return gpq_at_fail(&at, s->c->e, GPQ_EINVAL,
                           "has append and other members, which are those of batch %u", b.append);
    code = write_batch_options(s, &b);
    if (code < 0)
        return code;
    if (b.notify)
        s->what.notify = *b.notify != '\0';
    s->what.name = b.name;
    s->what.batch = b.append;
    s->what.open = b.open;
    s->what.at_once = b.at_once;
    s->what.fails_limited = json_object_get(s->request.batch, "max_fails") != NULL;
    s->what.max_fails = s->what.fails_limited ? b.max_fails : 0;
    s->what.max_fails_percent = b.max_fails_percent;
    s->what.options = bytes_of(s->options);
    return 0;
}

/* ---- Specs ---- */

static int read_after(struct submit *s, json_t *list, const struct gpq_at *at,
                      struct gpq_spec *spec)
{
    size_t n = json_array_size(list);
    struct gpq_after *after = calloc(n != 0 ? n : 1, sizeof(*after));
    if (!after)
        return no_memory(s);
    spec->after = after;
    for (size_t i = 0; i < n; i++) {
        struct gpq_at here = { at, "after", i }, when = { &here, "when", GPQ_NO_INDEX };
        struct source source = { 0 };
        int code = gpq_fields_read(json_array_get(list, i), &here, source_fields, &source, s->c->e);
        if (code == 0 && source.when)
            code = gpq_word_read(source.when, &when, &gpq_condition_words, &after[i].condition,
                                 s->c->e);
        if (code == 0 && source.id == 0)
            code = gpq_at_fail(&here, s->c->e, GPQ_EINVAL, "has no member \"id\"");
        if (code < 0)
            return code;
        after[i].id = source.id;
    }
    spec->n_after = (uint32_t)n;
    return 0;
}

static int read_environment(struct submit *s, json_t *list, const struct gpq_at *at,
                            struct gpq_spec *spec)
{
    const struct gpq_at all = { at, "environment", GPQ_NO_INDEX };
    size_t i;
    json_t *item;
    int code = gpq_texts_join(list, &all, GPQ_ARGUMENT_MOST, &spec->environment, s->c->e);
    if (code < 0)
        return code;
    json_array_foreach(list, i, item)
    {
        const struct gpq_at here = { at, "environment", i };
        const char *text = json_string_value(item);
        if (*text == '=' || !strchr(text, '='))
            return gpq_at_fail(&here, s->c->e, GPQ_EINVAL, "is \"%.40s\", expected NAME=VALUE",
                               text);
    }
    return 0;
}

/* The needs of a class are in the config file, and no part of what a task is. */
static json_t *content_json(const struct spec *spec, const struct built *b)
{
    if (!b->is_command)
        return json_pack("{s:s, s:s?}", "class", spec->class_name, "cwd", spec->cwd);
    return json_pack("{s:s, s:s?, s:o}", "class", GPQ_COMMANDS, "cwd", spec->cwd, "needs",
                     gpq_needs_json(&b->needs));
}

static int write_content(struct submit *s, const struct spec *spec, struct built *b)
{
    json_t *content = content_json(spec, b);
    json_t *options = json_object();
    int fault = content && options ? 0 : -1;
    if (fault == 0 && spec->replace) /* equal contents of older submits have no such member */
        fault = json_object_set_new(content, "replace", json_true());
    if (fault == 0 && spec->limit != 0)
        fault = json_object_set_new(options, "limit", json_integer((json_int_t)spec->limit));
    if (fault == 0 && spec->shell) /* no part of what is joined */
        fault = json_object_set_new(options, "shell", json_true());
    if (fault == 0 && spec->options)
        fault = json_object_set(options, "options", spec->options);
    if (fault == 0) {
        b->content = canonical(content);
        b->options = canonical(options);
        b->shape = gpq_needs_write(&b->needs);
    }
    json_decref(content);
    json_decref(options);
    return b->content && b->options && b->shape ? 0 : no_memory(s);
}

/* Whether a device that is here could ever hold it. */
static int check_needs(struct submit *s, const struct spec *spec, const struct built *b,
                       const struct gpq_at *at)
{
    return gpq_needs_check(s->c->a, &b->needs, b->is_command ? GPQ_COMMANDS : spec->class_name,
                           s->request.allow_wait, at, s->c->e);
}

static int check_spec(struct submit *s, const struct spec *spec, const struct built *b,
                      const struct gpq_at *at)
{
    const struct gpq_at cwd = { at, "cwd", GPQ_NO_INDEX };
    if (b->is_command && !spec->cwd)
        return gpq_at_fail(at, s->c->e, GPQ_EINVAL, "has no member \"cwd\"");
    if (!b->is_command && (spec->replace || spec->shell))
        return gpq_at_fail(at, s->c->e, GPQ_EINVAL,
                           "has %s, which is for commands, and class \"%.63s\"",
                           spec->replace ? "replace" : "shell", spec->class_name);
    if (spec->cwd && *spec->cwd != '/')
        return gpq_at_fail(&cwd, s->c->e, GPQ_EINVAL, "is \"%.80s\", expected an absolute path",
                           spec->cwd);
    if (!b->is_command && spec->needs)
        return gpq_at_fail(at, s->c->e, GPQ_EINVAL,
                           "has the member \"needs\": those of class %s are in the config file",
                           spec->class_name);
    if (spec->expires != 0 && spec->begin >= spec->expires)
        return gpq_at_fail(at, s->c->e, GPQ_EINVAL,
                           "has a begin that is not before its expires: the tasks would expire "
                           "before they may begin");
    return 0;
}

/* The members that a spec has like an earlier one, in place. */
static int complete(struct submit *s, json_t *spec, size_t index, const struct gpq_at *at)
{
    json_t *like = json_object_get(spec, "like");
    json_int_t n = json_integer_value(like);
    if (!like)
        return 0;
    if (!json_is_integer(like) || n < 0 || (size_t)n >= index)
        return gpq_at_fail(at, s->c->e, GPQ_EINVAL,
                           "has a \"like\" that is no index of an earlier spec");
    (void)json_object_del(spec, "like");
    return json_object_update_missing(spec, json_array_get(s->request.specs, (size_t)n)) == 0
               ? 0
               : no_memory(s);
}

/* Specs that are like another one have its very list: 10^5 of them keep one copy. */
static int share_environment(struct submit *s, json_t *list, size_t index, const struct gpq_at *at)
{
    struct gpq_spec *to = &s->specs[index];
    if (list && list == s->environment) {
        to->environment = s->specs[s->environment_of].environment;
        s->built[index].shares = true;
        return 0;
    }
    s->environment = list;
    s->environment_of = index;
    return read_environment(s, list, at, to);
}

static int read_spec(struct submit *s, size_t index)
{
    const struct gpq_at at = { NULL, "specs", index }, needs = { &at, "needs", GPQ_NO_INDEX };
    const struct gpq_at retries = { &at, "retries", GPQ_NO_INDEX };
    struct gpq_spec *to = &s->specs[index];
    struct built *b = &s->built[index];
    struct gpq_error *e = s->c->e;
    struct spec spec = { 0 };
    json_t *object = json_array_get(s->request.specs, index);
    int code = complete(s, object, index, &at);
    if (code == 0)
        code = gpq_fields_read(object, &at, spec_fields, &spec, e);
    s->n_attached += spec.attached;
    b->is_command = !spec.class_name || !strcmp(spec.class_name, GPQ_COMMANDS);
    if (code == 0)
        code = check_spec(s, &spec, b, &at);
    if (code == 0 && spec.needs)
        code = gpq_needs_names(s->c->a, spec.needs, s->request.allow_wait, &needs, e);
    if (code == 0)
        code =
            gpq_needs_read(spec.needs, &needs, b->is_command ? s->c->a->devices : 0, &b->needs, e);
    if (code < 0)
        return code;
    b->needs.class_name = b->is_command ? NULL : spec.class_name;
    if (spec.retries)
        code = gpq_fields_read(spec.retries, &retries, gpq_retries_fields, to->retries, e);
    if (code == 0)
        code = read_after(s, spec.after, &at, to);
    if (code == 0)
        code = share_environment(s, spec.environment, index, &at);
    if (code == 0)
        code = write_content(s, &spec, b);
    if (code == 0)
        code = check_needs(s, &spec, b, &needs);
    to->content = bytes_of(b->content);
    to->shape = bytes_of(b->shape);
    to->options = bytes_of(b->options);
    to->priority = spec.priority;
    to->backoff = spec.backoff;
    to->backoff_cap = spec.backoff_cap;
    to->begin = spec.begin;
    to->expires = spec.expires;
    to->at_most_once = spec.at_most_once;
    to->held = spec.hold;
    return code;
}

/* A joined task is that of another client, too. */
static int check_attached(struct submit *s)
{
    if (s->n_attached != 0 && s->n_attached != s->what.n_specs)
        return gpq_fail(s->c->e, GPQ_EINVAL,
                        "%u of %u specs have attached: set it in all of them, or send two requests",
                        s->n_attached, s->what.n_specs);
    if (s->n_attached != 0 && s->request.join)
        return gpq_fail(s->c->e, GPQ_EINVAL,
                        "the request has join and attached: a task that ends with its connection "
                        "is a new one");
    return 0;
}

/* ---- Tasks ---- */

/* PROGRAM -c LINE, as of a shell: the agent runs a long line from a file. */
static bool is_line(json_t *argv)
{
    const char *option = json_string_value(json_array_get(argv, 1));
    return json_array_size(argv) == 3 && option && !strcmp(option, "-c");
}

static int read_argv(struct submit *s, json_t *argv, const struct gpq_at *at, struct gpq_item *item)
{
    const struct gpq_at list = { at, "argv", GPQ_NO_INDEX }, program = { at, "argv", 0 };
    bool line = is_line(argv);
    int code =
        gpq_texts_join(argv, &list, line ? LINE_MOST : GPQ_ARGUMENT_MOST, &item->content, s->c->e);
    if (code < 0)
        return code;
    size_t size = item->content.size + s->specs[item->spec].environment.size;
    size_t last = line ? json_string_length(json_array_get(argv, 2)) : 0;
    if (last > GPQ_ARGUMENT_MOST)
        size -= last;
    if (size > EXEC_MOST)
        return gpq_at_fail(at, s->c->e, GPQ_EINVAL,
                           "has %zu bytes of argv and environment, the maximum is %zu", size,
                           EXEC_MOST);
    if (*json_string_value(json_array_get(argv, 0)) == '\0')
        return gpq_at_fail(&program, s->c->e, GPQ_EINVAL, "is empty, expected a program");
    return 0;
}

static int read_payload(struct submit *s, const struct task *t, const struct gpq_at *at,
                        struct gpq_item *item)
{
    const struct gpq_at base64 = { at, "payload_base64", GPQ_NO_INDEX };
    size_t length = strlen(t->base64 ? t->base64 : t->payload), size = length;
    char *copy = malloc(length + 1);
    if (!copy)
        return no_memory(s);
    item->content.data = copy; /* freed with the item */
    if (!t->base64)
        memcpy(copy, t->payload, length);
    else if (!gpq_base64_read(t->base64, length, copy, &size))
        return gpq_at_fail(&base64, s->c->e, GPQ_EINVAL, "is no base64 (RFC 4648, with padding)");
    copy[size] = GPQ_PAYLOAD_END;
    item->content.size = size + 1;
    return 0;
}

static int check_task(struct submit *s, const struct task *t, const struct gpq_at *at)
{
    if (t->spec >= s->what.n_specs)
        return gpq_at_fail(at, s->c->e, GPQ_EINVAL, "spec is %u, and specs has %u items", t->spec,
                           s->what.n_specs);
    bool command = s->built[t->spec].is_command;
    if (t->payload && t->base64)
        return gpq_at_fail(at, s->c->e, GPQ_EINVAL, "has both payload and payload_base64");
    bool payload = t->payload || t->base64;
    if (command ? !t->argv || payload : !payload || t->argv)
        return gpq_at_fail(at, s->c->e, GPQ_EINVAL, "must have the member \"%s\", and not \"%s\"",
                           command ? "argv" : "payload", command ? "payload" : "argv");
    return 0;
}

static int read_task(struct submit *s, size_t index)
{
    const struct gpq_at at = { NULL, "tasks", index };
    struct gpq_item *item = &s->items[index];
    struct task t = { 0 };
    int code =
        gpq_fields_read(json_array_get(s->request.tasks, index), &at, task_fields, &t, s->c->e);
    if (code == 0)
        code = check_task(s, &t, &at);
    if (code < 0)
        return code;
    item->spec = t.spec;
    item->line = t.line;
    item->name = t.name;
    item->key = bytes_of(t.key);
    item->stamp = bytes_of(t.stamp);
    return t.argv ? read_argv(s, t.argv, &at, item) : read_payload(s, &t, &at, item);
}

/* ---- The whole ---- */

static int read_submit(struct submit *s)
{
    int code = gpq_call_read(s->c, gpq_submit_fields, &s->request);
    if (code == 0)
        code = read_batch(s);
    if (code < 0)
        return code;
    s->what.n_specs = (uint32_t)json_array_size(s->request.specs);
    s->what.n_items = (uint32_t)json_array_size(s->request.tasks);
    s->specs = calloc((size_t)s->what.n_specs + 1, sizeof(*s->specs));
    s->built = calloc((size_t)s->what.n_specs + 1, sizeof(*s->built));
    s->items = calloc((size_t)s->what.n_items + 1, sizeof(*s->items));
    if (!s->specs || !s->built || !s->items)
        return no_memory(s);
    for (size_t i = 0; code == 0 && i < s->what.n_specs; i++)
        code = read_spec(s, i);
    if (code == 0)
        code = check_attached(s);
    for (size_t i = 0; code == 0 && i < s->what.n_items; i++)
        code = read_task(s, i);
    s->what.request = s->request.request;
    s->what.only_try = s->request.try;
    s->what.join = s->request.join;
    s->what.join_anyway = s->request.join_anyway;
    s->what.specs = s->specs;
    s->what.items = s->items;
    return code;
}

/* A name for which there is no memory is left out. */
static void note_changed(uint32_t item, struct gpq_bytes stamp, void *user)
{
    struct submit *s = user;
    char name[GPQ_STAMP_NAME];
    if (gpq_stamp_differs(stamp, s->items[item].stamp, name) && *name && !s->changed[item])
        s->changed[item] = strdup(name);
}

/* How each task was placed, in the order of the request.  A try has no ids for new ones. */
static json_t *placed_json(const struct gpq_placed *placed, char *const *changed, uint32_t n,
                           bool tried)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < n; i++) {
        bool is_old = placed[i].how == GPQ_PLACED_JOINED || placed[i].how == GPQ_PLACED_AGAIN;
        json_t *row = json_pack("{s:s}", "how", gpq_how_text(placed[i].how));
        int fault = row ? 0 : -1;
        if (fault == 0 && placed[i].task != 0 && (is_old || !tried))
            fault = json_object_set_new(row, "task", gpq_id_json(placed[i].task));
        if (fault == 0 && changed[i])
            fault = json_object_set_new(row, "file", gpq_text_json(changed[i]));
        if (fault != 0 || json_array_append(list, row) != 0) {
            json_decref(list);
            list = NULL;
        }
        json_decref(row);
    }
    return list;
}

static json_t *reply_of(struct submit *s, const struct gpq_submitted *ret,
                        const struct gpq_placed *placed)
{
    json_t *reply = json_object();
    bool tried = s->request.try && !ret->repeated, done = reply != NULL;
    if (done && !tried) /* the number of a try is nobody's */
        done = gpq_reply_set(s->c, reply, "batch", gpq_id_json(GPQ_TASK(ret->batch, 0)));
    for (uint32_t how = 0; done && how < GPQ_HOWS; how++)
        done = gpq_reply_set(s->c, reply, gpq_how_text(how), json_integer(ret->count[how]));
    if (done && ret->repeated)
        done = gpq_reply_set(s->c, reply, "repeated", json_true());
    if (done && s->request.list)
        (void)gpq_reply_set(s->c, reply, "placed",
                            placed_json(placed, s->changed, s->what.n_items, tried));
    return gpq_reply_end(s->c, reply);
}

/* The tasks of one submit have numbers in a row. */
static int attach(struct submit *s, const struct gpq_submitted *ret,
                  const struct gpq_placed *placed)
{
    struct gpq_attached *attached = s->attached;
    if (!attached || ret->repeated)
        return 0;
    *attached = (struct gpq_attached){ .batch = ret->batch,
                                       .first = GPQ_NUMBER_OF(placed[0].task),
                                       .last = GPQ_NUMBER_OF(placed[s->what.n_items - 1].task) };
    s->attached = NULL;
    s->c->wish->attached = attached;
    return gpq_attached_note(s->c->a->store, s->c->now, attached, s->c->e);
}

json_t *gpq_do_submit(struct gpq_call *c)
{
    struct submit s = { .c = c };
    struct gpq_submitted ret = { 0 };
    struct gpq_placed *placed = NULL;
    json_t *reply = NULL;
    int code = read_submit(&s);
    if (code == 0 && (s.request.list || s.n_attached != 0)) {
        placed = calloc((size_t)s.what.n_items + 1, sizeof(*placed));
        s.changed = calloc((size_t)s.what.n_items + 1, sizeof(*s.changed));
        code = placed && s.changed ? 0 : no_memory(&s);
        s.what.changed = note_changed;
        s.what.user = &s;
    }
    if (code == 0 && s.n_attached != 0 && s.what.n_items != 0 && !s.request.try) {
        s.attached = malloc(sizeof(*s.attached)); /* now: the tasks must not stay without a note */
        code = s.attached ? 0 : no_memory(&s);
    }
    if (code == 0)
        code = c->a->store->engine->submit(c->a->store, c->now, &s.what, &ret, placed, c->e);
    if (code == 0 && !s.request.try) /* a batch of joined tasks alone changes no task */
        c->wish->batch = ret.batch;
    if (code == 0)
        code = attach(&s, &ret, placed);
    if (code == 0)
        reply = reply_of(&s, &ret, placed);
    free(placed);
    free_submit(&s);
    return reply;
}
