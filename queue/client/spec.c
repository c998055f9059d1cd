/* SPDX-License-Identifier: MIT */
/* spec.c - options as members of the protocol. */
#include "queue/client/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/client/ids.h"
#include "queue/client/place.h"
#include "queue/config/split.h"
#include "queue/config/values.h"

enum { AFTER_MOST = 1000 }; /* tasks of a range */

/* Takes the value. */
static int set(json_t *object, const char *name, json_t *value, struct gpq_error *e)
{
    if (json_object_set_new(object, name, value) == 0)
        return 0;
    return gpq_fail(e, GPQ_ENOMEM, "no memory");
}

static int set_number(json_t *object, const char *name, uint64_t value, struct gpq_error *e)
{
    return set(object, name, json_integer((json_int_t)value), e);
}

static int set_text(json_t *object, const char *name, const char *text, struct gpq_error *e)
{
    json_t *value = json_string(text);
    return value ? set(object, name, value, e)
                 : gpq_fail(e, GPQ_EINVAL, "'%.80s': expected UTF-8", text);
}

/* ---- Needs ---- */

static const struct need {
    enum option_id option;
    enum gpq_key key; /* of a section [needs NAME] */
    const char *member;
    enum { GPUS, SIZE, COUNT, COMPUTE, TEXT } kind;
} all_needs[] = {
    { OPTION_GPUS, GPQ_KEY_NEEDS_GPUS, "gpus", GPUS },
    { OPTION_MEMORY, GPQ_KEY_NEEDS_MEMORY, "memory", SIZE },
    { OPTION_CPUS, GPQ_KEY_NEEDS_CPUS, "cpus", COUNT },
    { OPTION_HOST_MEMORY, GPQ_KEY_NEEDS_HOST_MEMORY, "host_memory", SIZE },
    { OPTION_COMPUTE, GPQ_KEY_NEEDS_COMPUTE, "compute", COMPUTE },
    { OPTION_ON, GPQ_KEY_NEEDS_ON, "on", TEXT },
    { OPTION_NOT_ON, GPQ_KEY_NEEDS_NOT_ON, "not_on", TEXT },
};
enum { NEEDS_COUNT = sizeof(all_needs) / sizeof(all_needs[0]) };

static int set_gpus(json_t *needs, const char *text, struct gpq_error *e)
{
    uint32_t gpus, share;
    int code = gpq_value_gpus(text, &gpus, &share, e);
    if (code == 0)
        code = set_number(needs, "gpus", gpus, e);
    (void)json_object_del(needs, "share");
    if (code == 0 && share != GPQ_VALUE_WHOLE)
        code = set_number(needs, "share", share, e);
    return code;
}

static int set_need(json_t *needs, const struct need *n, const char *text, struct gpq_error *e)
{
    uint64_t value = 0;
    uint32_t compute = 0;
    int code;
    switch (n->kind) {
    case GPUS:
        return set_gpus(needs, text, e);
    case TEXT:
        return set_text(needs, n->member, text, e);
    case SIZE:
        code = gpq_value_size(text, &value, e);
        break;
    case COMPUTE:
        code = gpq_value_compute(text, &compute, e);
        value = compute;
        break;
    default:
        code = gpq_value_number(text, 0, 65536, &value, e);
    }
    return code < 0 ? code : set_number(needs, n->member, value, e);
}

/* NULL: the option is none of them. */
static const struct need *find_need(enum option_id option)
{
    for (size_t i = 0; i < NEEDS_COUNT; i++)
        if (all_needs[i].option == option)
            return &all_needs[i];
    return NULL;
}

/* A word --NAME, or --NAME=VALUE with the value in place; -g and its like are not known here. */
static const struct need *need_of_word(const char *word, const char **value)
{
    size_t length = strcspn(word, "=");
    *value = word[length] ? word + length + 1 : NULL;
    for (size_t i = 0; strncmp(word, "--", 2) == 0 && i < NEEDS_COUNT; i++) {
        const char *name = options[all_needs[i].option].name;
        if (strlen(name) == length - 2 && strncmp(name, word + 2, length - 2) == 0)
            return &all_needs[i];
    }
    return NULL;
}

/* --or '--gpus 4 --memory 40G' */
static int read_variant(const char *text, json_t *needs, struct gpq_error *e)
{
    char **words;
    int n = gpq_split_words(text, &words, e), code = n < 0 ? n : 0;
    for (int i = 0; code == 0 && i < n; i++) {
        const char *value;
        const struct need *need = need_of_word(words[i], &value);
        if (need && !value && i + 1 < n)
            value = words[++i];
        if (!need || !value)
            code = gpq_fail(e, GPQ_EINVAL,
                            "'%.80s': expected needs such as '--gpus 4 --memory 40G'", text);
        else
            code = set_need(needs, need, value, e);
    }
    if (n >= 0)
        free(words);
    return code;
}

static json_t *list_of(json_t *object, const char *name)
{
    json_t *list = json_object_get(object, name);
    if (!list && json_object_set_new(object, name, json_array()) == 0)
        list = json_object_get(object, name);
    return list;
}

/* Takes the variant, which was read with this code. */
static int add_variant(json_t *needs, json_t *variant, int code, struct gpq_error *e)
{
    if (code == 0 && json_array_append(list_of(needs, "or"), variant) != 0)
        code = gpq_fail(e, GPQ_ENOMEM, "no memory");
    json_decref(variant);
    return code;
}

static int add_or(json_t *needs, const char *text, struct gpq_error *e)
{
    json_t *variant = json_object();
    return add_variant(needs, variant, read_variant(text, variant, e), e);
}

/* ---- Needs of the configuration ---- */

static int read_section(const struct gpq_config *config, const char *name, json_t *needs,
                        const struct gpq_section **ret, struct gpq_error *e)
{
    const struct gpq_section *s = gpq_config_section(config, GPQ_SECTION_NEEDS, name);
    int code = 0;
    *ret = s;
    if (!s)
        return gpq_fail(e, GPQ_EINVAL, "'%.80s': there is no section [needs %.80s] in %s", name,
                        name, config->path ? config->path : "the configuration");
    for (size_t i = 0; code == 0 && i < NEEDS_COUNT; i++) {
        const char *value = gpq_section_get(s, all_needs[i].key);
        if (value)
            code = set_need(needs, &all_needs[i], value, e);
    }
    return code;
}

static int set_section(struct gpq_members *m, json_t *needs, const char *name, struct gpq_error *e)
{
    const struct gpq_section *s, *other;
    char **words = NULL;
    int code = read_section(m->config, name, needs, &s, e);
    const char *names = code == 0 ? gpq_section_get(s, GPQ_KEY_NEEDS_OR) : NULL;
    int n = names ? gpq_split_words(names, &words, e) : 0;
    if (n < 0)
        return n;
    for (int i = 0; code == 0 && i < n; i++) {
        json_t *variant = json_object();
        code = read_section(m->config, words[i], variant, &other, e);
        code = add_variant(needs, variant, code, e);
    }
    free(words);
    return code;
}

static json_t *needs_of(json_t *spec)
{
    json_t *needs = json_object_get(spec, "needs");
    if (!needs && json_object_set_new(spec, "needs", json_object()) == 0)
        needs = json_object_get(spec, "needs");
    return needs;
}

/* ---- Other members of specs ---- */

static int set_retries(json_t *spec, const char *text, struct gpq_error *e)
{
    static const char *const names[GPQ_CAUSES] = { [GPQ_CAUSE_ERROR] = "error",
                                                   [GPQ_CAUSE_TIMEOUT] = "timeout",
                                                   [GPQ_CAUSE_CRASH] = "crash",
                                                   [GPQ_CAUSE_OOM] = "oom" };
    uint32_t retries[GPQ_CAUSES] = { 0 };
    json_t *object = json_object();
    int code = gpq_value_retries(text, retries, e);
    for (int i = 0; code == 0 && i < GPQ_CAUSES; i++)
        if (retries[i] != 0)
            code = set_number(object, names[i], retries[i], e);
    if (code == 0)
        return set(spec, "retries", object, e);
    json_decref(object);
    return code;
}

static int set_duration(json_t *spec, const char *name, const char *text, struct gpq_error *e)
{
    uint64_t ns;
    int code = gpq_value_duration(text, &ns, e);
    return code < 0 ? code : set_number(spec, name, ns, e);
}

/* FIRST[:CAP] */
static int set_backoff(json_t *spec, const char *text, struct gpq_error *e)
{
    const char *colon = strchr(text, ':');
    char *first = colon ? strndup(text, (size_t)(colon - text)) : strdup(text);
    int code =
        first ? set_duration(spec, "backoff", first, e) : gpq_fail(e, GPQ_ENOMEM, "no memory");
    free(first);
    if (code == 0 && colon)
        code = set_duration(spec, "backoff_cap", colon + 1, e);
    return code;
}

static int set_time(const struct gpq_members *m, const char *name, const char *text,
                    struct gpq_error *e)
{
    uint64_t ns;
    int code = gpq_value_time(text, m->now, &ns, e);
    return code < 0 ? code : set_number(m->spec, name, ns, e);
}

static int add_condition(json_t *spec, const char *id, const char *when, struct gpq_error *e)
{
    json_t *one = json_pack("{s:s, s:s}", "id", id, "when", when);
    return json_array_append_new(list_of(spec, "after"), one) == 0
               ? 0
               : gpq_fail(e, GPQ_EINVAL, "expected UTF-8");
}

/* One id: a batch, a task, or the tasks of a range.  A name, which does not begin with a digit,
 * stays until the submit. */
static int add_after_id(json_t *spec, const char *text, const char *when, struct gpq_error *e)
{
    struct gpq_id id = gpq_id_read(text);
    char one[32];
    uint32_t count = id.kind == GPQ_ID_RANGE ? id.last - id.first + 1 : 1;
    int code = 0;
    if (id.kind == GPQ_ID_BATCH ||
        (id.kind == GPQ_ID_NONE && *text && !strchr("0123456789", *text)))
        return add_condition(spec, text, when, e);
    if (id.kind == GPQ_ID_NONE)
        return gpq_fail(e, GPQ_EINVAL, "expected ids such as 12, 12.44 or 12.40-49");
    if (count > AFTER_MOST)
        return gpq_fail(e, GPQ_EINVAL, "expected up to %d tasks of a range, or its whole batch",
                        AFTER_MOST);
    id.kind = GPQ_ID_TASK;
    for (; code == 0 && count > 0; count--, id.first++)
        code = add_condition(spec, gpq_id_text(&id, one), when, e);
    return code;
}

/* [WHEN:]IDS, added to those before. */
static int add_after(json_t *spec, const char *text, struct gpq_error *e)
{
    char when[16] = "ok", id[256];
    struct gpq_error why;
    size_t length = strcspn(text, ":");
    const char *at = text;
    int code = 0;
    if (text[length]) {
        snprintf(when, sizeof(when), "%.*s", (int)(length < 15 ? length : 15), text);
        at = text + length + 1;
    }
    if (strcmp(when, "ok") != 0 && strcmp(when, "ended") != 0 && strcmp(when, "failed") != 0)
        return gpq_fail(e, GPQ_EINVAL, "'%.80s': expected ok, ended or failed before the colon",
                        text);
    do {
        length = strcspn(at, ",");
        snprintf(id, sizeof(id), "%.*s", (int)(length < 255 ? length : 255), at);
        code = add_after_id(spec, id, when, &why);
        at += length;
    } while (code == 0 && *at++ == ',');
    return code < 0 ? gpq_fail(e, code, "'%.80s': %s", text, why.text) : 0;
}

static int set_cwd(json_t *spec, const char *text, struct gpq_error *e)
{
    char path[GPQ_PATH], *real = realpath(text, NULL);
    if (!real && !gpq_place_absolute(text, path))
        return gpq_fail(e, GPQ_EINVAL, "'%.80s': the present directory cannot be read", text);
    /* As getcwd returns the present one: it is a part of what is joined. */
    int code = set_text(spec, "cwd", real ? real : path, e);
    free(real);
    return code;
}

static int set_priority(json_t *spec, const char *text, struct gpq_error *e)
{
    char *end;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end || n < INT32_MIN || n > INT32_MAX)
        return gpq_fail(e, GPQ_EINVAL, "'%.80s': expected a whole number from %d to %d", text,
                        INT32_MIN, INT32_MAX);
    return set(spec, "priority", json_integer(n), e);
}

static int set_of_spec(struct gpq_members *m, enum option_id option, const char *value,
                       struct gpq_error *e)
{
    const struct need *need = find_need(option);
    if (need)
        return set_need(needs_of(m->spec), need, value, e);
    switch (option) {
    case OPTION_OR:
        return add_or(needs_of(m->spec), value, e);
    case OPTION_NEEDS:
        return set_section(m, needs_of(m->spec), value, e);
    case OPTION_PRIORITY:
        return set_priority(m->spec, value, e);
    case OPTION_LIMIT:
        return set_duration(m->spec, "limit", value, e);
    case OPTION_EXPIRES:
        return set_time(m, "expires", value, e);
    case OPTION_BEGIN:
        return set_time(m, "begin", value, e);
    case OPTION_AFTER:
        return add_after(m->spec, value, e);
    case OPTION_HOLD:
        return set(m->spec, "hold", json_true(), e);
    case OPTION_RETRIES:
        return set_retries(m->spec, value, e);
    case OPTION_BACKOFF:
        return set_backoff(m->spec, value, e);
    case OPTION_AT_MOST_ONCE:
        return set(m->spec, "at_most_once", json_true(), e);
    case OPTION_CWD:
        return set_cwd(m->spec, value, e);
    case OPTION_CLASS:
        return set_text(m->spec, "class", value, e);
    case OPTION_ATTACHED:
        return set(m->spec, "attached", json_true(), e);
    default:
        return 0;
    }
}

int gpq_member_set(struct gpq_members *m, enum option_id option, const char *value,
                   struct gpq_error *e)
{
    struct gpq_error why = { 0 };
    int code = 0;
    if (option == OPTION_NAME || option == OPTION_KEY)
        code = m->task ? set_text(m->task, options[option].name, value, &why) : 0;
    else if (m->spec)
        code = set_of_spec(m, option, value, &why);
    return code < 0 ? gpq_fail(e, code, "--%s: %s", options[option].name, why.text) : 0;
}

int gpq_members_of_call(struct gpq_members *m, const struct call *call, struct gpq_error *e)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < call->n_said; i++)
        code = gpq_member_set(m, call->said[i].option, call->said[i].value, e);
    return code;
}
