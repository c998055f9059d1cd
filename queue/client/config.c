/* SPDX-License-Identifier: MIT */
/* config.c - shows the configuration. */
#include "queue/config/config.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "queue/client/session.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "tools/cli/out.h"

enum { WHERE = GPQ_PATH + 32 };

struct shown {
    const struct call *call;
    const struct gpq_config *config;
    json_t *agent; /* the settings of the one that runs; NULL: none does */
    struct table table;
    size_t n;
};

static void show_json(const char *section, const char *key, const char *value, const char *where)
{
    json_t *row = json_pack("{s:s, s:s, s:s?, s:s}", "section", section, "key", key, "value", value,
                            "origin", where);
    gpq_print_json(row);
    json_decref(row);
}

static void show(struct shown *s, const char *section, const char *key, const char *value,
                 const char *where)
{
    const char *only = s->call->operand[0];
    if (only && strcmp(only, key) != 0)
        return;
    s->n++;
    if (s->call->given[OPTION_JSON]) {
        show_json(section, key, value, where);
        return;
    }
    if (only && !s->call->given[OPTION_ORIGIN]) {
        put_plain(value ? value : "");
        putchar('\n');
        return;
    }
    table_cell(&s->table, "%s%s%s", section, *section ? " " : "", key);
    if (s->call->given[OPTION_ORIGIN])
        table_cell(&s->table, "%s", where);
    table_cell(&s->table, "%s", value ? value : "-");
}

/* An agent keeps the values with which it was started. */
static void show_key(struct shown *s, unsigned k, const char *value, const char *where)
{
    char text[WHERE];
    const json_t *row = json_object_get(s->agent, gpq_keys[k].name);
    const char *running = json_string_value(json_object_get(row, "value"));
    if (!row || strcmp(running ? running : "", value ? value : "") == 0) {
        show(s, "", gpq_keys[k].name, value, where);
        return;
    }
    snprintf(text, sizeof(text), "agent: %s", gpq_text_of(row, "origin"));
    show(s, "", gpq_keys[k].name, running, text);
}

static int show_top(struct shown *s, struct gpq_error *e)
{
    char where[WHERE];
    for (unsigned k = 0; k < GPQ_KEYS; k++) {
        const char *value;
        enum gpq_origin origin;
        if (gpq_keys[k].section != GPQ_SECTION_TOP)
            continue;
        int code = gpq_config_get(s->config, (enum gpq_key)k, &value, &origin, e);
        if (code < 0)
            return code;
        show_key(s, k, value,
                 gpq_config_where(s->config, (enum gpq_key)k, origin, where, sizeof(where)));
    }
    return 0;
}

/* The keys that the file sets. */
static void show_sections(struct shown *s)
{
    char name[128], where[WHERE];
    for (size_t i = 1; i < s->config->n; i++) {
        const struct gpq_section *section = &s->config->section[i];
        snprintf(name, sizeof(name), "[%s %.100s]",
                 section->kind == GPQ_SECTION_CLASS ? "class" : "needs", section->name);
        for (unsigned k = 0; k < GPQ_KEYS; k++) {
            const struct gpq_entry *entry = &section->entry[k];
            if (!entry->value)
                continue;
            snprintf(where, sizeof(where), "%s:%u", s->config->path, entry->line);
            show(s, name, gpq_keys[k].name, entry->value, where);
        }
    }
}

static int set_flags(const struct call *call, struct gpq_config *config, struct gpq_error *e)
{
    const char *state = call->value[OPTION_STATE_DIR];
    return state ? gpq_config_flag(config, GPQ_KEY_STATE_DIR, state, e) : 0;
}

static json_t *ask_agent(const struct call *call)
{
    struct gpq_session session;
    json_t *reply = NULL, *ret = NULL;
    if (gpq_session_try(&session, call) &&
        gpq_session_ask(&session, json_pack("{s:s}", "do", "status"), &reply) == 0)
        ret = json_incref(json_object_get(reply, "settings"));
    json_decref(reply);
    gpq_session_close(&session);
    return ret;
}

int gpq_verb_config(const struct call *call)
{
    static const struct column plain[] = { { "KEY", false }, { "VALUE", false } };
    static const struct column origin[] = { { "KEY", false },
                                            { "ORIGIN", false },
                                            { "VALUE", false } };
    struct gpq_config config = { 0 };
    struct gpq_error e = { 0 };
    struct shown s = { .call = call, .config = &config };
    int code = gpq_config_read(call->value[OPTION_CONFIG], &config, &e);
    if (code == 0)
        code = set_flags(call, &config, &e);
    bool with_origin = call->given[OPTION_ORIGIN];
    table_init(&s.table, with_origin ? origin : plain, with_origin ? 3 : 2);
    if (code == 0)
        s.agent = ask_agent(call);
    if (code == 0)
        code = show_top(&s, &e);
    json_decref(s.agent);
    if (code == 0)
        show_sections(&s);
    if (code == 0 && s.table.cells > 0)
        table_print(&s.table);
    gpq_config_free(&config);
    if (code < 0)
        return gpq_say_config(code, &e);
    return s.n == 0 ? gpq_say(EXIT_NONE, "there is no key %s", call->operand[0]) : 0;
}
