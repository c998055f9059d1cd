/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../report.h"

/* The client's archive expects the table of a program.  This name makes it pass --devices and
 * --cpus. */
const char program_summary[] = "the benchmark";
const struct verb verbs[] = { { .name = "agent" }, { 0 } };

static void set_option(struct bq_agent *a, enum option_id option, const char *value)
{
    a->call.given[option] = true;
    a->call.value[option] = value;
}

static int write_config(const struct bq_agent *a, const char *classes)
{
    FILE *f = fopen(a->config, "we");
    int rc = f ? fputs(classes, f) : -1;

    if (f && fclose(f))
        rc = -1;
    return rc < 0 ? b_complain("%s: %s", a->config, strerror(errno)) : 0;
}

int bq_agent_open(struct bq_agent *a, const struct bq_disk *disk, const char *name,
                  const char *devices, const char *classes)
{
    *a = (struct bq_agent){ .call.verb = verbs, .session.fd = -1 };
    if (bq_disk_store(disk, name, a->state))
        return -1;
    (void)snprintf(a->config, sizeof a->config, "%s/config", a->state);
    set_option(a, OPTION_STATE_DIR, a->state);
    set_option(a, OPTION_CONFIG, a->config);
    set_option(a, OPTION_QUEUE_GPUS, devices);
    set_option(a, OPTION_SLOTS, "64");
    /* The programs of this build, unless the environment names others.  The socket is a file in the
     * state directory, which the benchmark removes. */
    (void)setenv("GPUD_AGENT_PROGRAM", BENCH_AGENT, 0);
    (void)unsetenv("XDG_RUNTIME_DIR");
    return write_config(a, classes) ? -1 : bq_agent_start(a);
}

int bq_agent_start(struct bq_agent *a)
{
    return gpq_session_open(&a->session, &a->call, GPQ_AGENT_STARTED) ? -1 : 0;
}

void bq_agent_kill(struct bq_agent *a, struct rusage *ret)
{
    const pid_t pid = (pid_t)a->session.pid;

    gpq_session_close(&a->session);
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL);
    while (wait4(pid, NULL, 0, ret) < 0 && errno == EINTR)
        ;
    a->session.pid = 0;
}

json_t *bq_agent_ask(struct bq_agent *a, json_t *request)
{
    json_t *reply;

    return gpq_session_ask(&a->session, request, &reply) ? NULL : reply;
}

int bq_agent_submit(struct bq_agent *a, json_t *spec, json_t *tasks, char ret_batch[16])
{
    json_t *reply = bq_agent_ask(
        a, json_pack("{s:s, s:[o], s:o}", "do", "submit", "specs", spec, "tasks", tasks));

    if (!reply)
        return -1;
    (void)snprintf(ret_batch, 16, "%s", json_string_value(json_object_get(reply, "batch")));
    json_decref(reply);
    return 0;
}

int bq_agent_commands(struct bq_agent *a, const char *program, const char *argument, uint32_t n,
                      char ret_batch[16])
{
    json_t *spec = json_pack("{s:s, s:[s+]}", "cwd", "/", "environment", "PATH=", getenv("PATH"));
    json_t *tasks = json_array();

    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(
            tasks, json_pack("{s:[s, s*], s:i}", "argv", program, argument, "line", (int)i + 1));
    return bq_agent_submit(a, spec, tasks, ret_batch);
}

int bq_agent_wait(struct bq_agent *a, const char *batch)
{
    json_t *reply = bq_agent_ask(a, json_pack("{s:s, s:s}", "do", "wait", "batch", batch));

    json_decref(reply);
    return reply ? 0 : -1;
}
