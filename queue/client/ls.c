/* SPDX-License-Identifier: MIT */
/* ls.c - lists batches, or tasks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/client/ids.h"
#include "queue/client/option.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"
#include "tools/cli/out.h"

enum { NEWEST = 20, NEWEST_MOST = 1000000 };

static int print_row(json_t *row, void *user)
{
    (void)user;
    gpq_print_json(row);
    return out_reader_gone() ? GPQ_ENOUGH : 0;
}

/* ---- Batches ---- */

/* Those that go on, and the newest others. */
struct batches {
    json_t *list;
    size_t newest, left_out;
};

static bool goes_on(const json_t *row)
{
    return gpq_number_of(row, "ended") == 0;
}

/* Keeps the row, and forgets the oldest one that has ended if there are too many. */
static int keep_batch(json_t *row, void *user)
{
    struct batches *b = user;
    if (json_array_append(b->list, row) != 0)
        return gpq_say(EXIT_FAILED, "no memory");
    if (json_array_size(b->list) <= b->newest)
        return 0;
    for (size_t i = 0; i < json_array_size(b->list) - b->newest; i++)
        if (!goes_on(json_array_get(b->list, i))) {
            b->left_out++;
            return json_array_remove(b->list, i) == 0 ? 0 : EXIT_FAILED;
        }
    return 0;
}

static const char *batch_state(const json_t *row)
{
    if (!goes_on(row))
        return "ended";
    if (gpq_count_of(row, "states", "running") > 0)
        return "running";
    if (json_is_true(json_object_get(row, "held")))
        return "held";
    bool waits = gpq_count_of(row, "states", "held") + gpq_count_of(row, "states", "ready") > 0;
    return waits ? "waiting" : "open"; /* for further tasks, until its seal */
}

static void batch_cells(struct table *t, const json_t *row, uint64_t now)
{
    char age[32], left[48], done[32], total[32];
    const json_t *outcomes = json_object_get(row, "outcomes");
    uint64_t made = (uint64_t)gpq_number_of(row, "made");
    table_cell(t, "%s", gpq_text_of(row, "batch"));
    table_cell(t, "%s", batch_state(row));
    table_cell(t, "%s/%s", gpq_number_text(gpq_ended(outcomes), done),
               gpq_number_text((uint64_t)gpq_number_of(row, "total"), total));
    table_cell(t, "%" PRIi64, gpq_number_of(outcomes, "ok"));
    table_cell(t, "%" PRIu64, gpq_bad(outcomes));
    table_cell(t, "%" PRIu64, gpq_count_of(row, "states", "running"));
    table_cell(t, "%s", gpq_age_text(now > made ? now - made : 0, age));
    table_cell(t, "%s", gpq_left_text(row, left));
    table_cell(t, "%s", gpq_text_of(row, "name"));
}

static void print_batches(json_t *list)
{
    static const struct column columns[] = {
        { "ID", true },  { "STATE", false }, { "DONE", true }, { "OK", true },   { "BAD", true },
        { "RUN", true }, { "AGE", true },    { "LEFT", true }, { "NAME", false }
    };
    struct table t;
    uint64_t now = gpq_now_wall();
    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    t.most = gpq_width();
    for (size_t i = 0; i < json_array_size(list); i++)
        batch_cells(&t, json_array_get(list, i), now);
    table_print(&t);
}

static int read_newest(const struct call *call, size_t *ret)
{
    uint64_t n = NEWEST;
    int status = gpq_option_number(call, OPTION_LAST, 0, NEWEST_MOST, &n);
    *ret = call->given[OPTION_ALL] ? SIZE_MAX : (size_t)n;
    return status;
}

static int list_batches(struct gpq_session *s, size_t newest)
{
    const struct call *call = s->call;
    struct batches b = { json_array(), newest, 0 };
    char number[32];
    int status = gpq_rows(s, json_pack("{s:s}", "do", "batches"), "batches", keep_batch, &b);
    if (status == 0 && call->given[OPTION_JSON])
        for (size_t i = 0; i < json_array_size(b.list); i++)
            (void)print_row(json_array_get(b.list, i), NULL);
    else if (status == 0 && json_array_size(b.list) == 0)
        puts("no batches; gpudispatch submit makes one");
    else if (status == 0)
        print_batches(b.list);
    if (status == 0 && b.left_out > 0 && !call->given[OPTION_JSON])
        printf("%s older %s not shown; --all shows all\n", gpq_number_text(b.left_out, number),
               b.left_out == 1 ? "batch is" : "batches are");
    json_decref(b.list);
    return status;
}

/* ---- Tasks ---- */

static int task_cells(json_t *row, void *user)
{
    char state[64], name[512], ended[32], gpus[32];
    const char *devices = gpq_text_of(row, "devices"); /* while it runs */
    struct table *t = user;
    uint64_t at = (uint64_t)gpq_number_of(row, "ended");
    table_cell(t, "%s", gpq_text_of(row, "task"));
    table_cell(t, "%s", gpq_state_text_of(row, state));
    table_cell(t, "%" PRIi64, gpq_number_of(row, "attempt"));
    if (*devices)
        table_cell(t, "on %s", gpq_gpus_text(devices, gpus));
    else
        table_cell(t, "%s", at ? gpq_time_text(at, ended) : "-");
    table_cell(t, "%s", gpq_task_text(row, name, sizeof(name)));
    return 0;
}

static json_t *tasks_request(json_t *selection)
{
    json_t *request = gpq_request_of("tasks", selection);
    (void)json_object_set_new(request, "whole", json_true());
    return request;
}

static int list_tasks(struct gpq_session *s, json_t *list)
{
    static const struct column columns[] = { { "TASK", false },
                                             { "STATE", false },
                                             { "TRIES", true },
                                             { "ENDED", false },
                                             { "NAME", false } };
    struct table t;
    int status = 0;
    bool json = s->call->given[OPTION_JSON];
    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    t.most = gpq_width();
    for (size_t i = 0; status == 0 && i < json_array_size(list); i++)
        status = gpq_rows(s, tasks_request(json_array_get(list, i)), "tasks",
                          json ? print_row : task_cells, &t);
    if (!json && (status == 0 || t.cells > 0))
        table_print(&t);
    return status;
}

int gpq_verb_ls(const struct call *call)
{
    struct gpq_session s;
    json_t *list = NULL;
    bool tasks = call->operands > 0 || call->given[OPTION_STATE] || call->given[OPTION_FAILED] ||
                 call->given[OPTION_LOST];
    struct call all = *call;
    size_t newest = NEWEST;
    int status = read_newest(call, &newest);
    if (status != 0)
        return status;
    if (tasks && call->operands == 0)
        all.given[OPTION_ALL] = true;
    status = gpq_session_open(&s, &all, GPQ_AGENT_RESUMED);
    if (status == 0 && !tasks)
        status = list_batches(&s, newest);
    if (status == 0 && tasks)
        status = gpq_selections(&s, &list);
    if (status == 0 && tasks)
        status = list_tasks(&s, list);
    json_decref(list);
    gpq_session_close(&s);
    return status;
}
