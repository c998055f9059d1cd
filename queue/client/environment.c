/* SPDX-License-Identifier: MIT */
/* environment.c - the environment of commands. */
#include "queue/client/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a clean environment keeps. */
static const char *const clean_names[] = { "PATH", "HOME", "USER", "LANG", "TERM" };
/* Set by the agent and its runner for each task. */
static const char *const own_names[] = { "GPUDISPATCH_RUN",     "GPUDISPATCH_TASK",
                                         "GPUDISPATCH_ATTEMPT", "GPUDISPATCH_KEY",
                                         "GPUDISPATCH_OUT",     "GPUDISPATCH_GPUS",
                                         "GPUDISPATCH_PORT",    "NOTIFY_SOCKET" };

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* Variables as members of an object, which sorts and replaces them. */
static int put(json_t *variables, const char *name, const char *value, struct gpq_error *e)
{
    if (json_object_set_new(variables, name, json_string(value)) == 0)
        return 0;
    return gpq_fail(e, GPQ_EINVAL, "'%.80s': the variable is not UTF-8", name);
}

/* Variables that are not UTF-8 cannot be told to the agent: they are left out, with a word. */
static int inherit(json_t *variables, bool clean, struct gpq_error *e)
{
    for (char **v = environ; *v; v++) {
        const char *value = strchr(*v, '=');
        char *name = value ? strndup(*v, (size_t)(value - *v)) : NULL;
        if (value && !name)
            return gpq_fail(e, GPQ_ENOMEM, "no memory");
        if (name && *name && !is_one_of(name, own_names, COUNT(own_names)) &&
            (!clean || is_one_of(name, clean_names, COUNT(clean_names))) &&
            put(variables, name, value + 1, e) < 0)
            fprintf(stderr, "gpudispatch: variable %s is left out: it is not UTF-8\n", name);
        free(name);
    }
    return 0;
}

/* --env NAME=V sets it, --env NAME keeps that of this process. */
static int set_one(json_t *variables, const char *text, struct gpq_error *e)
{
    size_t length = strcspn(text, "=");
    char *name = strndup(text, length);
    int code = 0;
    if (!name)
        return gpq_fail(e, GPQ_ENOMEM, "no memory");
    const char *value = text[length] ? text + length + 1 : getenv(name);
    if (!*name)
        code = gpq_fail(e, GPQ_EINVAL, "--env: '%.80s': expected NAME or NAME=VALUE", text);
    else if (!value)
        code = gpq_fail(e, GPQ_EINVAL, "--env: '%.80s' is not set here; NAME=VALUE sets it", text);
    else if ((code = put(variables, name, value, e)) < 0)
        code = gpq_fail(e, GPQ_EINVAL, "--env: '%.80s': expected UTF-8", name);
    free(name);
    return code;
}

static int apply(json_t *variables, const struct call *call, struct gpq_error *e)
{
    for (size_t i = 0; i < call->n_said; i++) {
        const char *value = call->said[i].value;
        if (call->said[i].option == OPTION_ENV) {
            int code = set_one(variables, value, e);
            if (code < 0)
                return code;
        } else if (call->said[i].option == OPTION_UNSET) {
            if (!*value || strchr(value, '='))
                return gpq_fail(e, GPQ_EINVAL, "--unset: '%.80s': expected a name", value);
            (void)json_object_del(variables, value);
        }
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, as NAME=VALUE. */
static json_t *listed(json_t *variables)
{
    size_t n = json_object_size(variables), i = 0;
    char **texts = calloc(n + 1, sizeof(*texts));
    const char *name;
    json_t *value, *list = texts ? json_array() : NULL;
    bool whole = list != NULL;
    json_object_foreach(variables, name, value)
    {
        if (whole && asprintf(&texts[i], "%s=%s", name, json_string_value(value)) < 0)
            whole = false;
        i += whole;
    }
    if (whole)
        qsort(texts, n, sizeof(*texts), by_text);
    for (size_t k = 0; k < i; k++) {
        whole = whole && json_array_append_new(list, json_string(texts[k])) == 0;
        free(texts[k]);
    }
    free(texts);
    if (whole)
        return list;
    json_decref(list);
    return NULL;
}

int gpq_environment(const struct call *call, bool clean, json_t **ret, struct gpq_error *e)
{
    json_t *variables = json_object();
    int code = variables ? inherit(variables, clean, e) : gpq_fail(e, GPQ_ENOMEM, "no memory");
    *ret = NULL;
    if (code == 0)
        code = apply(variables, call, e);
    if (code == 0 && !(*ret = listed(variables)))
        code = gpq_fail(e, GPQ_ENOMEM, "no memory");
    json_decref(variables);
    return code;
}

static const char *text_at(const json_t *list, size_t i)
{
    return json_string_value(json_array_get(list, i));
}

int gpq_environment_set(json_t *list, const char *text, struct gpq_error *e)
{
    json_t *variables = json_object();
    int code = variables ? set_one(variables, text, e) : gpq_fail(e, GPQ_ENOMEM, "no memory");
    json_t *one = code == 0 ? listed(variables) : NULL;
    json_decref(variables);
    if (!one)
        return code ? code : gpq_fail(e, GPQ_ENOMEM, "no memory");
    const char *line = text_at(one, 0);
    size_t n = json_array_size(list), name = strcspn(line, "=") + 1, i = 0;
    while (i < n && strncmp(text_at(list, i), line, name) != 0)
        i++;
    (void)json_array_remove(list, i); /* the one before, if there is one */
    for (i = 0; i < json_array_size(list) && strcmp(text_at(list, i), line) < 0;)
        i++;
    if (json_array_insert(list, i, json_array_get(one, 0)) != 0)
        code = gpq_fail(e, GPQ_ENOMEM, "no memory");
    json_decref(one);
    return code;
}

const char *gpq_environment_value(const json_t *environment, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < json_array_size(environment); i++) {
        const char *text = json_string_value(json_array_get(environment, i));
        if (text && !strncmp(text, name, length) && text[length] == '=')
            return text + length + 1;
    }
    return NULL;
}
