/* SPDX-License-Identifier: MIT */
/* settings.c - reads options by the table of keys. */
#include "queue/agent/settings.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "queue/config/values.h"
#include "queue/files/program.h"

/* Values of getopt_long: keys have their own number. */
enum { CONFIG = GPQ_KEYS, RUNNER, FOREGROUND, FSCK, REPAIR, JSON, RECORDS, SINCE, NAMES, OPTIONS };

static const char usage[] =
    "usage: gpudispatch-agent [--config FILE] [--state-dir DIR] [--devices LIST] [--cpus N]"
    " [--notify COMMAND] [--keep-age DURATION] [--keep-tasks N] [--log-limit SIZE]"
    " [--ports FIRST-LAST] [--allow-network-fs] [--runner PROGRAM] [--foreground]\n"
    "       gpudispatch-agent --fsck [--repair] [--json] [--state-dir DIR]\n"
    "       gpudispatch-agent --records [--since NS] [--names] [--state-dir DIR] [BATCH...]";

static bool is_option(int key)
{
    return gpq_keys[key].section == GPQ_SECTION_TOP && gpq_keys[key].users & GPQ_BY_AGENT;
}

static void list_options(struct option list[OPTIONS + 1])
{
    int n = 0;
    for (int key = 0; key < GPQ_KEYS; key++)
        if (is_option(key))
            list[n++] = (struct option){ gpq_keys[key].name,
                                         gpq_keys[key].kind == GPQ_KIND_BOOL ? no_argument
                                                                             : required_argument,
                                         NULL, key };
    list[n++] = (struct option){ "config", required_argument, NULL, CONFIG };
    list[n++] = (struct option){ "runner", required_argument, NULL, RUNNER };
    list[n++] = (struct option){ "foreground", no_argument, NULL, FOREGROUND };
    list[n++] = (struct option){ "fsck", no_argument, NULL, FSCK };
    list[n++] = (struct option){ "repair", no_argument, NULL, REPAIR };
    list[n++] = (struct option){ "json", no_argument, NULL, JSON };
    list[n++] = (struct option){ "records", no_argument, NULL, RECORDS };
    list[n++] = (struct option){ "since", required_argument, NULL, SINCE };
    list[n++] = (struct option){ "names", no_argument, NULL, NAMES };
    list[n] = (struct option){ 0 };
}

/* What the command line has; NULL: nothing. */
struct given {
    const char *config, *runner, *since, *key[GPQ_KEYS];
    bool flag[OPTIONS - GPQ_KEYS]; /* from CONFIG on */
};

static int read_options(int argc, char **argv, struct given *g, struct gpq_error *e)
{
    struct option list[OPTIONS + 1];
    list_options(list);
    for (int c; (c = getopt_long(argc, argv, "", list, NULL)) != -1;) {
        if (c < 0 || c >= OPTIONS || c == '?')
            return gpq_fail(e, GPQ_EINVAL, "%s", usage);
        if (c < GPQ_KEYS)
            g->key[c] = optarg ? optarg : "yes";
        else
            g->flag[c - CONFIG] = true; /* --foreground: it never leaves it */
        if (c == CONFIG)
            g->config = optarg;
        if (c == RUNNER)
            g->runner = optarg;
        if (c == SINCE)
            g->since = optarg;
    }
    bool checks = g->flag[FSCK - CONFIG], prints = g->flag[RECORDS - CONFIG];
    if ((checks && prints) || (optind < argc && !prints) ||
        (!checks && (g->flag[REPAIR - CONFIG] || g->flag[JSON - CONFIG])) ||
        (!prints && (g->since || g->flag[NAMES - CONFIG])))
        return gpq_fail(e, GPQ_EINVAL, "%s", usage);
    return 0;
}

static const char *text_of(const struct gpq_settings *s, enum gpq_key key, int *code,
                           struct gpq_error *e)
{
    const char *text = NULL;
    if (*code == 0)
        *code = gpq_config_get(&s->config, key, &text, NULL, e);
    return text;
}

static int read_state(struct gpq_settings *s, struct gpq_error *e)
{
    enum gpq_origin origin;
    int code = gpq_config_get(&s->config, GPQ_KEY_STATE_DIR, &s->state, &origin, e);
    if (code < 0 || origin != GPQ_ORIGIN_FILE)
        return code;
    s->own_state = gpq_config_path(&s->config, s->state);
    s->state = s->own_state;
    return s->state ? 0 : gpq_fail(e, GPQ_ENOMEM, "no memory for the settings");
}

/* The values were checked when they were read. */
static int read_values(struct gpq_settings *s, struct gpq_error *e)
{
    int code = read_state(s, e);
    uint64_t cpus = 0;
    const char *text = text_of(s, GPQ_KEY_CPUS, &code, e);
    if (text)
        (void)gpq_value_number(text, 0, UINT32_MAX, &cpus, NULL);
    s->cpus = (uint32_t)cpus;
    s->devices = text_of(s, GPQ_KEY_DEVICES, &code, e);
    s->notify = text_of(s, GPQ_KEY_NOTIFY, &code, e);
    s->ports = text_of(s, GPQ_KEY_PORTS, &code, e);
    const char *age = text_of(s, GPQ_KEY_KEEP_AGE, &code, e);
    const char *tasks = text_of(s, GPQ_KEY_KEEP_TASKS, &code, e);
    const char *limit = text_of(s, GPQ_KEY_LOG_LIMIT, &code, e);
    const char *network = text_of(s, GPQ_KEY_ALLOW_NETWORK_FS, &code, e);
    if (code < 0)
        return code;
    (void)gpq_value_duration(age, &s->keep_age, NULL);
    (void)gpq_value_number(tasks, 0, INT32_MAX, &s->keep_tasks, NULL);
    (void)gpq_value_size(limit, &s->log_limit, NULL);
    (void)gpq_value_bool(network, &s->allow_network, NULL);
    return 0;
}

int gpq_settings_read(int argc, char **argv, struct gpq_settings *ret, struct gpq_error *e)
{
    struct given given = { 0 };
    *ret = (struct gpq_settings){ 0 };
    int code = read_options(argc, argv, &given, e);
    if (code == 0)
        code = gpq_config_read(given.config, &ret->config, e);
    for (int key = 0; code == 0 && key < GPQ_KEYS; key++)
        if (given.key[key])
            code = gpq_config_flag(&ret->config, (enum gpq_key)key, given.key[key], e);
    if (code == 0)
        code = read_values(ret, e);
    ret->fsck = given.flag[FSCK - CONFIG];
    ret->repair = given.flag[REPAIR - CONFIG];
    ret->json = given.flag[JSON - CONFIG];
    ret->records = given.flag[RECORDS - CONFIG];
    ret->names = given.flag[NAMES - CONFIG];
    ret->batches = argv + optind;
    ret->n_batches = (size_t)(argc - optind);
    if (code == 0 && given.since && gpq_value_number(given.since, 0, INT64_MAX, &ret->since, e) < 0)
        code = gpq_fail(e, GPQ_EINVAL, "since: '%.40s': expected ns since 1970", given.since);
    ret->runner = given.runner;
    ret->config_file = given.config;
    if (code == 0 && !ret->runner && !ret->fsck && !ret->records) {
        code = gpq_program_find("gpudispatch-runner", ret->found, e);
        ret->runner = ret->found;
    }
    return code;
}

void gpq_settings_free(struct gpq_settings *s)
{
    gpq_config_free(&s->config);
    free(s->own_state);
}
