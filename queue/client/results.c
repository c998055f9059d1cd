/* SPDX-License-Identifier: MIT */
/* results.c - what ended tasks have left. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "queue/client/ids.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "tools/cli/out.h"

/* Whether the directory of its outputs has anything. */
static bool has_outputs(const struct gpq_session *s, const json_t *row, char path[GPQ_PATH])
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
    if (has_outputs(s, row, path))
        (void)json_object_set_new(row, "out", json_string(path));
}

static void print_line(const json_t *row)
{
    static const char *const members[] = { "text", "file", "base64", "out" };
    char state[64];
    const char *text = "";
    for (size_t i = 0; !*text && i < sizeof(members) / sizeof(members[0]); i++)
        text = gpq_text_of(row, members[i]);
    printf("%s\t%s\t", gpq_text_of(row, "task"), gpq_state_text_of(row, state));
    put_plain(text);
    putchar('\n');
}

static int print_result(json_t *row, void *user)
{
    struct gpq_session *s = user;
    add_paths(s, row);
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
