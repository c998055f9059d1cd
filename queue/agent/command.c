/* SPDX-License-Identifier: MIT */
/* command.c - reads commands, and gives them the values of their attempt. */
#include "queue/agent/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/agent/fields.h"
#include "queue/agent/grant.h"
#include "queue/agent/lookup.h"
#include "queue/agent/requests.h"
#include "queue/files/fault.h"
#include "queue/files/save.h"
#include "queue/files/stamp.h"
#include "queue/jobs/template.h"

/* ---- What the store has ---- */

static int read_task(const struct gpq_task *t, void *user)
{
    struct gpq_command *c = user;
    c->argv = gpq_texts_split(t->content);
    c->key = t->key.size != 0 ? strndup(t->key.data, t->key.size) : NULL;
    c->spec = t->spec;
    return (c->argv || !gpq_is_texts(t->content)) && (c->key || t->key.size == 0) ? 0 : GPQ_ENOMEM;
}

static int read_spec(const struct gpq_spec *spec, void *user)
{
    struct gpq_command *c = user;
    json_error_t why = { 0 }; /* jansson sets no code without memory */
    json_t *options = json_loadb(spec->options.data, spec->options.size, 0, &why);
    bool lost = !options && json_error_code(&why) != json_error_invalid_syntax;
    c->shell = json_is_true(json_object_get(options, "shell"));
    json_decref(options);
    why = (json_error_t){ 0 };
    c->content = json_loadb(spec->content.data, spec->content.size, 0, &why);
    c->environment = gpq_texts_split(spec->environment);
    lost = lost || (!c->content && json_error_code(&why) != json_error_invalid_syntax);
    return !lost && (c->environment || !gpq_is_texts(spec->environment)) ? 0 : GPQ_ENOMEM;
}

static int read_rows(struct gpq_agent *a, uint64_t task, struct gpq_command *c, struct gpq_error *e)
{
    int code = gpq_task_read(a->store, task, read_task, c, e);
    if (code == 0)
        code = a->store->engine->spec(a->store, c->spec, read_spec, c, e);
    if (code == GPQ_ENOMEM)
        return gpq_fail(e, code, "no memory for the command");
    if (code == 0 && (!c->argv || !c->argv[0] || !json_is_object(c->content) || !c->environment))
        code = gpq_fail(e, GPQ_EDAMAGED, "task %u.%u has no command", GPQ_BATCH_OF(task),
                        GPQ_NUMBER_OF(task));
    c->cwd = json_string_value(json_object_get(c->content, "cwd"));
    return code;
}

/* ---- Variables ---- */

static void set_variables(struct gpq_command *c, const struct gpq_grant *grant)
{
    bool gpu = *grant->names && strncmp(grant->names, "cpu", 3) != 0;
    snprintf(c->visible, sizeof(c->visible), "CUDA_VISIBLE_DEVICES=%s", gpu ? grant->uuids : "");
    snprintf(c->gpus, sizeof(c->gpus), "GPUDISPATCH_GPUS=%s", gpu ? grant->names : "");
    snprintf(c->cpus, sizeof(c->cpus), "OMP_NUM_THREADS=%u", grant->cpus != 0 ? grant->cpus : 1);
    c->set[0] = c->visible;
    c->set[1] = c->gpus;
    c->set[2] = (char *)(uintptr_t) "CUDA_DEVICE_ORDER=PCI_BUS_ID";
    c->defaults[0] = c->cpus;
    c->defaults[1] = (char *)(uintptr_t) "PYTHONUNBUFFERED=1";
}

/* ---- Names of the start ---- */

/* "4,5" of "gpu:4,gpu:5".  Returns how many there are. */
static unsigned indices_of(const char *names, char *ret)
{
    unsigned n = 0;
    for (const char *at = names; *at; at += *at == ',') {
        size_t size = strcspn(at, ","), kind = strcspn(at, ":");
        size_t skip = kind < size ? kind + 1 : 0;
        if (n++ != 0)
            *ret++ = ',';
        memcpy(ret, at + skip, size - skip);
        ret += size - skip;
        at += size;
    }
    *ret = '\0';
    return n;
}

static int take_port(struct gpq_agent *a, struct gpq_unit *u, struct gpq_error *e)
{
    u->port = gpq_ports_take(&a->ports);
    if (u->port != 0)
        return 0;
    return gpq_fail(e, GPQ_EBUSY, "no TCP port from %u to %u is free for {port}", a->ports.first,
                    a->ports.last);
}

static int check_sizes(char *const *argv, struct gpq_error *e)
{
    for (size_t i = 0; argv[i]; i++) {
        size_t size = strlen(argv[i]);
        if (size > GPQ_ARGUMENT_MOST)
            return gpq_fail(e, GPQ_EINVAL,
                            "argv[%zu] has %zu bytes at the start, the maximum is %zu", i, size,
                            GPQ_ARGUMENT_MOST);
    }
    return 0;
}

/* Whether one of the arguments has this name of the start. */
static bool has(char *const *argv, enum gpq_start name)
{
    for (; *argv; argv++)
        if (gpq_template_starts(*argv) & 1U << name)
            return true;
    return false;
}

/* The arguments with the values of this attempt, in one block. */
static char **filled(char *const *argv, const char *const values[GPQ_STARTS])
{
    struct gpq_texts texts = { 0 };
    bool whole = true;
    for (; whole && *argv; argv++) {
        char *text = gpq_template_start(*argv, values);
        whole = text && gpq_texts_put(&texts, text);
        free(text);
    }
    char **ret =
        whole ? gpq_texts_split((struct gpq_bytes){ texts.data, texts.used }) : NULL;
    gpq_texts_free(&texts);
    return ret;
}

static int replace(struct gpq_agent *a, struct gpq_unit *u, const char *out, struct gpq_command *c,
                   struct gpq_error *e)
{
    char gpu[sizeof(c->gpus)], gpus[12], port[12], task[24];
    const char *const values[GPQ_STARTS] = { [GPQ_START_GPU] = gpu,
                                             [GPQ_START_GPUS] = gpus,
                                             [GPQ_START_PORT] = port,
                                             [GPQ_START_TASK] = task,
                                             [GPQ_START_OUT] = out };
    int code = has(c->argv, GPQ_START_PORT) ? take_port(a, u, e) : 0;
    if (code < 0)
        return code;
    snprintf(gpus, sizeof(gpus), "%u", indices_of(strchr(c->gpus, '=') + 1, gpu));
    snprintf(port, sizeof(port), "%u", u->port);
    snprintf(task, sizeof(task), "%u.%u", GPQ_BATCH_OF(u->task), GPQ_NUMBER_OF(u->task));
    char **argv = filled(c->argv, values);
    if (!argv)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for the arguments");
    free(c->argv);
    c->argv = argv;
    return 0;
}

/* ---- Long lines ---- */

static bool is_line(char *const *argv)
{
    return argv[1] && !strcmp(argv[1], "-c") && argv[2] && !argv[3];
}

static int write_file(const char *path, const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int fault = gpq_write_all(&gpq_system_files, fd, text, size);
    (void)close(fd);
    return fault;
}

/* Not synced: after a power cut the attempt is another one. */
static int move_line(struct gpq_agent *a, const struct gpq_unit *u, struct gpq_command *c,
                     struct gpq_error *e)
{
    size_t size = is_line(c->argv) ? strlen(c->argv[2]) : 0;
    if (size <= GPQ_ARGUMENT_MOST)
        return 0;
    int fault = gpq_run_beside(c->line, a->state, &u->run, GPQ_RUN_LINE);
    if (fault == 0) {
        c->argv[2][size] = '\n'; /* in place of its NUL byte, which a file does not need */
        fault = write_file(c->line, c->argv[2], size + 1);
    }
    if (fault < 0)
        return gpq_fault(e, fault, "%.300s", c->line);
    c->argv[1] = c->line;
    c->argv[2] = NULL;
    return 0;
}

/* ---- The whole ---- */

int gpq_command_read(struct gpq_agent *a, struct gpq_unit *u, const char *out,
                     struct gpq_command *ret, struct gpq_error *e)
{
    struct gpq_grant grant;
    *ret = (struct gpq_command){ 0 };
    if (!gpq_grant_read(u->devices, &grant))
        return gpq_fail(e, GPQ_ENOMEM, "no memory for the devices");
    set_variables(ret, &grant);
    gpq_grant_free(&grant);
    int code = read_rows(a, u->task, ret, e);
    if (code == 0) {
        ret->words = gpq_stamp_words(ret->argv);
        code = ret->words ? 0 : gpq_fail(e, GPQ_ENOMEM, "no memory for the arguments");
    }
    if (code == 0 && json_is_true(json_object_get(ret->content, "replace")))
        code = replace(a, u, out, ret, e);
    if (code == 0)
        code = move_line(a, u, ret, e);
    return code == 0 ? check_sizes(ret->argv, e) : code;
}

void gpq_command_free(struct gpq_command *c)
{
    json_decref(c->content);
    free(c->argv);
    free(c->environment);
    free(c->key);
    free(c->words);
}
