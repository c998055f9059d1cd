/* SPDX-License-Identifier: MIT */
/* waiting.c - memory of an agent while many tasks wait behind a command that goes on, one client
 * waits for their end, and another one lists all of them. */
#include <stdio.h>
#include <string.h>

#include "../measure.h"
#include "../processes.h"
#include "agent.h"
#include "load.h"
#include "queue/client/ids.h"
#include "rows.h"

#define MIB (1024.0 * 1024)
#define SAMPLE 10000 /* rows between two readings of the memory */

/* Returns tasks with the commands of a load. */
static json_t *tasks_of(const struct bq_load *load, uint32_t n)
{
    json_t *tasks = json_array();

    for (uint32_t i = 0; i < n; i++) {
        const struct gpq_bytes *words = &load->items[i].content;
        const char *word = words->data;
        json_t *argv = json_array();

        for (; word < (const char *)words->data + words->size; word += strlen(word) + 1)
            (void)json_array_append_new(argv, json_string(word));
        (void)json_array_append_new(
            tasks, json_pack("{s:o, s:I}", "argv", argv, "line", (json_int_t)i + 1));
    }
    return tasks;
}

/* Submits n tasks to an open batch, the first ones as that batch. */
static int submit_list(struct bq_agent *a, const struct bq_load *load, uint32_t n, char batch[16])
{
    const struct gpq_bytes *environment = &load->spec.environment;
    json_t *to = *batch ? json_pack("{s:s}", "append", batch) : json_pack("{s:b}", "open", 1);
    json_t *spec = json_pack("{s:s, s:[s+#]}", "cwd", "/", "environment", "E=", environment->data,
                             (int)environment->size);
    json_t *reply = bq_agent_ask(a, json_pack("{s:s, s:o, s:[o], s:o}", "do", "submit", "batch", to,
                                              "specs", spec, "tasks", tasks_of(load, n)));

    if (!reply)
        return -1;
    (void)snprintf(batch, 16, "%s", json_string_value(json_object_get(reply, "batch")));
    json_decref(reply);
    return 0;
}

static int fill(const struct bq_set *set, struct bq_agent *a, char batch[16], double *figures)
{
    uint32_t done = 0, n = 0;
    struct bq_load load;
    int rc = bq_load_open(&load, set->list);

    batch[0] = '\0';
    for (; done < set->tasks && rc == 0; done += n) {
        uint64_t begun;

        n = set->tasks - done < set->list ? set->tasks - done : set->list;
        bq_load_fill(&load, done, n);
        begun = b_now();
        rc = submit_list(a, &load, n, batch);
        figures[BQ_agent_list_s_ROW] = (double)(b_now() - begun) / 1e9;
    }
    bq_load_close(&load);
    return rc;
}

struct listing {
    struct bq_agent *agent;
    uint64_t rows, most; /* most: bytes of memory */
};

static int see_row(json_t *row, void *user)
{
    struct listing *l = user;
    uint64_t resident;

    (void)row;
    if (l->rows++ % SAMPLE)
        return 0;
    resident = b_resident((pid_t)l->agent->session.pid);
    l->most = resident > l->most ? resident : l->most;
    return 0;
}

/* Lists all tasks of a batch as `ls` does, while another connection waits for its end. */
static int list_and_wait(const struct bq_set *set, struct bq_agent *a, const char *batch,
                         double *figures)
{
    struct listing l = { .agent = a };
    struct gpq_session waiter;
    int rc = gpq_session_open(&waiter, &a->call, GPQ_AGENT_RUNNING);

    if (rc == 0)
        rc = gpq_session_send(&waiter, json_pack("{s:s, s:s}", "do", "wait", "batch", batch));
    if (rc == 0)
        rc = gpq_rows(&a->session,
                      json_pack("{s:s, s:s, s:b}", "do", "tasks", "batch", batch, "whole", 1),
                      "tasks", see_row, &l);
    gpq_session_close(&waiter);
    if (rc == 0 && l.rows != set->tasks)
        rc = b_complain("%u tasks were submitted, and %u listed", (unsigned)set->tasks,
                        (unsigned)l.rows);
    figures[BQ_agent_rss_mib_ROW] = (double)l.most / MIB;
    return rc;
}

int bq_waiting(const struct bq_set *set, double *figures)
{
    struct rusage usage = { 0 };
    char first[16], batch[16];
    struct bq_agent a;
    int rc = bq_agent_open(&a, &set->disk, "waiting", "fake:1", "");

    if (rc == 0)
        rc = bq_agent_commands(&a, "sleep", "10000", 1, first);
    if (rc == 0)
        rc = fill(set, &a, batch, figures);
    if (rc == 0)
        rc = list_and_wait(set, &a, batch, figures);
    bq_agent_kill(&a, &usage);
    if (rc == 0)
        figures[BQ_agent_peak_mib_ROW] = (double)usage.ru_maxrss / 1024;
    return rc;
}
