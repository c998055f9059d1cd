/* SPDX-License-Identifier: MIT */
/* define.c - makes classes of the dispatcher from sections of the config file. */
#include "queue/agent/define.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/config/split.h"
#include "queue/config/values.h"

/* A duration of the library is not shorter, but for GPUD_AT_ONCE. */
#define SHORTEST UINT64_C(1000)
enum { CPU_WORKERS = 64 };

/* What a class of the dispatcher is made of, until it is added: the dispatcher copies it. */
struct made {
    const struct gpq_config *config;
    const struct gpq_section *section;
    struct gpud_request needs;
    struct gpud_options options;
    struct gpud_class class;
    char *plugin, *cwd, *program; /* owned */
    char **argv, **env;           /* owned, each one block */
};

/* ---- Values, which were checked when they were read ---- */

static const char *text(const struct made *m, enum gpq_key key)
{
    return gpq_section_get(m->section, key);
}

static uint64_t number(const struct made *m, enum gpq_key key, uint64_t otherwise)
{
    uint64_t n = otherwise;
    if (text(m, key))
        (void)gpq_value_number(text(m, key), 0, UINT64_MAX, &n, NULL);
    return n;
}

static uint64_t size(const struct made *m, enum gpq_key key)
{
    uint64_t bytes = 0;
    if (text(m, key))
        (void)gpq_value_size(text(m, key), &bytes, NULL);
    return bytes;
}

/* `zero` stands for the text "0"; without a text it is 0, the default of the library. */
static uint64_t duration(const struct made *m, enum gpq_key key, uint64_t zero)
{
    uint64_t ns = 0;
    if (!text(m, key))
        return 0;
    (void)gpq_value_duration(text(m, key), &ns, NULL);
    return ns == 0 ? zero : ns < SHORTEST ? SHORTEST : ns;
}

/* ---- Parts ---- */

static void read_needs(struct made *m, uint32_t devices)
{
    struct gpud_request *r = &m->needs;
    uint32_t share = GPQ_VALUE_WHOLE;
    *r = (struct gpud_request)GPUD_REQUEST_INIT;
    r->devices = devices != 0 ? 1 : 0;
    if (text(m, GPQ_KEY_CLASS_GPUS))
        (void)gpq_value_gpus(text(m, GPQ_KEY_CLASS_GPUS), &r->devices, &share, NULL);
    if (r->devices != 0)
        r->share = share;
    r->memory = size(m, GPQ_KEY_CLASS_MEMORY);
    r->cpus = (uint32_t)number(m, GPQ_KEY_CLASS_CPUS, 1);
    r->host_memory = size(m, GPQ_KEY_CLASS_HOST_MEMORY);
    if (text(m, GPQ_KEY_CLASS_COMPUTE))
        (void)gpq_value_compute(text(m, GPQ_KEY_CLASS_COMPUTE), &r->compute, NULL);
    r->on = text(m, GPQ_KEY_CLASS_ON);
    r->not_on = text(m, GPQ_KEY_CLASS_NOT_ON);
}

/* The program or the plugin.  A program without a slash is looked up in PATH. */
static int read_program(struct made *m, struct gpq_error *e)
{
    const char *worker = text(m, GPQ_KEY_WORKER), *plugin = text(m, GPQ_KEY_PLUGIN);
    if (plugin) {
        m->plugin = gpq_config_path(m->config, plugin);
        m->options.plugin = m->plugin;
        return m->plugin ? 0 : gpq_fail(e, GPQ_ENOMEM, "no memory for a class");
    }
    int n = gpq_split_words(worker, &m->argv, e);
    if (n <= 0)
        return n < 0 ? n : gpq_fail(e, GPQ_EINVAL, "worker has no program");
    if (strchr(m->argv[0], '/')) {
        m->program = gpq_config_path(m->config, m->argv[0]);
        if (!m->program)
            return gpq_fail(e, GPQ_ENOMEM, "no memory for a class");
        m->argv[0] = m->program;
    }
    m->options.argv = (const char *const *)m->argv;
    return 0;
}

static int read_place(struct made *m, struct gpq_error *e)
{
    const char *env = text(m, GPQ_KEY_CLASS_ENV), *cwd = text(m, GPQ_KEY_CWD);
    int n = env ? gpq_split_words(env, &m->env, e) : 0;
    if (n < 0)
        return n;
    m->options.env = (const char *const *)m->env;
    m->cwd = cwd ? gpq_config_path(m->config, cwd) : strdup(m->config->directory);
    m->options.cwd = m->cwd;
    return m->cwd ? 0 : gpq_fail(e, GPQ_ENOMEM, "no memory for a class");
}

static void read_options(struct made *m)
{
    struct gpud_options *o = &m->options;
    const char *setup = text(m, GPQ_KEY_SETUP);
    o->definition = text(m, GPQ_KEY_DEFINITION);
    o->setup_data = setup;
    o->setup_size = setup ? strlen(setup) + 1 : 0;
    o->max_batch = (uint32_t)number(m, GPQ_KEY_BATCH, 1);
    o->batch_wait = o->max_batch > 1 ? duration(m, GPQ_KEY_BATCH_WAIT, 0) : 0;
    o->setup_limit = duration(m, GPQ_KEY_SETUP_LIMIT, GPUD_NEVER);
    o->task_limit = duration(m, GPQ_KEY_LIMIT, GPUD_NEVER);
    o->stall_limit = duration(m, GPQ_KEY_STALL_LIMIT, GPUD_NEVER);
    o->grace = duration(m, GPQ_KEY_GRACE, GPUD_AT_ONCE);
    o->max_tasks_per_worker = (uint32_t)number(m, GPQ_KEY_TASKS_PER_WORKER, 0);
}

static void read_class(struct made *m)
{
    struct gpud_class *c = &m->class;
    *c = (struct gpud_class)GPUD_CLASS_INIT;
    c->name = m->section->name;
    c->needs = &m->needs;
    c->options = &m->options;
    c->min_workers = (uint32_t)number(m, GPQ_KEY_MIN_WORKERS, 0);
    c->max_workers = (uint32_t)number(m, GPQ_KEY_MAX_WORKERS, 0);
    c->keep_alive = duration(m, GPQ_KEY_UNLOAD_AFTER, GPUD_AT_ONCE);
    c->min_residence = duration(m, GPQ_KEY_MIN_RESIDENCE, GPUD_AT_ONCE);
    c->max_wait = duration(m, GPQ_KEY_MAX_WAIT, GPUD_AT_ONCE);
}

static int make(struct made *m, uint32_t devices, struct gpq_error *e)
{
    m->options = (struct gpud_options)GPUD_OPTIONS_INIT;
    read_needs(m, devices);
    read_options(m);
    read_class(m);
    int code = read_program(m, e);
    return code == 0 ? read_place(m, e) : code;
}

static void free_made(struct made *m)
{
    free(m->plugin);
    free(m->program);
    free(m->cwd);
    free(m->argv);
    free(m->env);
}

/* ---- Classes ---- */

static uint32_t fit_of(const struct made *m, uint32_t devices)
{
    uint32_t most = m->class.max_workers;
    uint64_t fit = m->needs.devices == 0 ? CPU_WORKERS : devices / m->needs.devices;
    if (m->needs.share != 0)
        fit = fit * GPQ_VALUE_WHOLE / m->needs.share;
    fit = fit == 0 ? 1 : fit;
    return most != 0 && most < fit ? most : (uint32_t)fit;
}

static int add(struct gpq_agent *a, struct made *m, struct gpq_class *ret, struct gpq_error *e)
{
    struct gpud_error why = GPUD_ERROR_INIT;
    int code = make(m, a->devices, e);
    if (code == GPQ_ENOMEM)
        return code;
    ret->batch = m->options.max_batch;
    ret->fit = fit_of(m, a->devices);
    if (code < 0)
        snprintf(ret->text, sizeof(ret->text), "%.255s", e->text);
    else if (gpud_dispatcher_class_add(a->dispatcher, &m->class, &why) < 0)
        snprintf(ret->text, sizeof(ret->text), "%.255s", why.text);
    else
        ret->there = true;
    if (!ret->there)
        gpq_log("%s:%u: class %s: %s; its tasks wait", m->config->path, m->section->line, ret->name,
                ret->text);
    return 0;
}

int gpq_classes_list(struct gpq_agent *a, const struct gpq_config *config, struct gpq_error *e)
{
    struct gpq_classes *all = calloc(1, sizeof(*all));
    if (all)
        all->list = calloc(config->n, sizeof(*all->list));
    a->classes = all;
    if (!all || !all->list)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for the classes");
    all->path = config->path;
    for (size_t i = 0; i < config->n; i++) {
        struct made m = { .config = config, .section = &config->section[i] };
        if (m.section->kind != GPQ_SECTION_CLASS)
            continue;
        read_needs(&m, a->devices);
        all->list[all->n++] =
            (struct gpq_class){ .name = m.section->name, .gpus = m.needs.devices };
    }
    return 0;
}

int gpq_classes_open(struct gpq_agent *a, const struct gpq_config *config, struct gpq_error *e)
{
    int code = gpq_classes_list(a, config, e);
    size_t n = 0;
    for (size_t i = 0; code == 0 && i < config->n; i++) {
        struct made m = { .config = config, .section = &config->section[i] };
        if (m.section->kind != GPQ_SECTION_CLASS)
            continue;
        code = add(a, &m, &a->classes->list[n++], e);
        free_made(&m);
    }
    return code;
}

void gpq_classes_close(struct gpq_agent *a)
{
    if (!a->classes)
        return;
    for (size_t i = 0; i < a->classes->n; i++)
        if (a->classes->list[i].there)
            (void)gpud_dispatcher_class_remove(a->dispatcher, a->classes->list[i].name,
                                               GPUD_FINISH_NOW, NULL);
    free(a->classes->list);
    free(a->classes);
    a->classes = NULL;
}
