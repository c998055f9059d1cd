/* SPDX-License-Identifier: MIT */
/* results.c - what ended tasks have left. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "queue/client/follow.h"
#include "queue/client/ids.h"
#include "queue/client/results.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "tools/cli/out.h"

bool gpq_has_outputs(const struct gpq_session *s, const json_t *row, char path[GPQ_PATH])
{
    const struct dirent *entry;
    bool has = false;
    if (gpq_path(path, "%s/out/%s", s->state, gpq_text_of(row, "task")) < 0)
        return false;
    DIR *dir = opendir(path);
    while (dir && !has && (entry = readdir(dir)))
        has = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return has;
}

/* Adds the absolute paths. */
static void add_paths(const struct gpq_session *s, json_t *row)
{
    char path[GPQ_PATH];
    const char *file = json_string_value(json_object_get(row, "file"));
    if (file && *file != '/' && gpq_path(path, "%s/%s", s->state, file) == 0)
        (void)json_object_set_new(row, "file", json_string(path));
    if (gpq_has_outputs(s, row, path))
        (void)json_object_set_new(row, "out", json_string(path));
}

/* Of a task that failed: how its last attempt ended. */
static void add_reason(struct gpq_session *s, json_t *row)
{
    const char *outcome = gpq_text_of(row, "outcome");
    if (strcmp(outcome, "ok") == 0 || strcmp(outcome, "cancelled") == 0 ||
        strcmp(outcome, "skipped") == 0)
        return;
    json_t *attempt = gpq_last_attempt(s, row);
    if (*gpq_text_of(attempt, "text"))
        (void)json_object_set(row, "reason", json_object_get(attempt, "text"));
    json_decref(attempt);
}

static void print_line(const json_t *row)
{
    static const char *const members[] = { "text", "file", "base64", "out", "reason" };
    char state[64];
    const char *text = "";
    char cause[96];
    for (size_t i = 0; !*text && i < sizeof(members) / sizeof(members[0]); i++)
        text = gpq_text_of(row, members[i]);
    if (!*text)
        text = gpq_because(row, cause);
    printf("%s\t%s\t", gpq_text_of(row, "task"), gpq_state_text_of(row, state));
    put_plain(text);
    putchar('\n');
}

static int print_result(json_t *row, void *user)
{
    struct gpq_session *s = user;
    add_paths(s, row);
    add_reason(s, row);
    if (s->call->given[OPTION_JSON])
        gpq_print_json(row);
    else
        print_line(row);
    return out_reader_gone() ? GPQ_ENOUGH : 0;
}

static int print_results(struct gpq_session *s, json_t *selection, void *user)
{
    (void)user;
    return gpq_rows(s, gpq_request_of("results", selection), "results", print_result, s);
}

int gpq_verb_results(const struct call *call)
{
    return gpq_each_selection(call, print_results, NULL);
}
