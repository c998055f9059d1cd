/* SPDX-License-Identifier: MIT */
/* adopt.c - the start of an agent whose commands go on after its end, beside one without tasks. */
#include "../measure.h"
#include "../processes.h"
#include "agent.h"
#include "rows.h"

#define COMMANDS 64
#define ROUNDS 15
#define PATIENCE (60 * B_S)

static int count_processes(const struct bq_agent *a)
{
    pid_t pids[4 * COMMANDS];

    return b_descendants((pid_t)a->session.pid, pids, sizeof pids / sizeof *pids);
}

/* Returns once each command has its runner, and its process. */
static int start_commands(struct bq_agent *a)
{
    const int before = count_processes(a);
    const uint64_t late = b_now() + PATIENCE;
    char batch[16];

    if (bq_agent_commands(a, "sleep", "1000", COMMANDS, batch))
        return -1;
    while (count_processes(a) < before + 2 * COMMANDS) {
        if (b_now() > late)
            return b_complain("%u commands are not started within 60 s", COMMANDS);
        b_sleep(10 * B_MS);
    }
    return 0;
}

static double cpu_ms(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1e3 +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e3;
}

/* Kills the agent, and returns the time in ms from the start of the next one until it has reported
 * that `commands` run; -1 after a complaint.  ret_cpu is the CPU time of the killed one. */
static double start_again(struct bq_agent *a, int commands, double *ret_cpu)
{
    struct rusage usage = { 0 };
    json_t *reply;
    uint64_t begun;
    double took;
    int running;

    bq_agent_kill(a, &usage);
    *ret_cpu = cpu_ms(&usage);
    begun = b_now();
    if (bq_agent_start(a) || !(reply = bq_agent_ask(a, json_pack("{s:s}", "do", "status"))))
        return -1;
    took = (double)(b_now() - begun) / 1e6;
    running = (int)json_integer_value(json_object_get(reply, "running"));
    json_decref(reply);
    return running == commands ? took : b_complain("%d commands run, not %d", running, commands);
}

int bq_adopt(const struct bq_set *set, double *figures)
{
    double with[ROUNDS], without[ROUNDS], part[ROUNDS], cpu[ROUNDS], unused;
    const size_t rounds = b_effort(ROUNDS, 2);
    struct bq_agent full, empty;
    int rc = bq_agent_open(&full, &set->disk, "adopt", "fake:64", "") |
             bq_agent_open(&empty, &set->disk, "empty", "fake:64", "");

    if (rc == 0)
        rc = start_commands(&full);
    if (rc == 0 && start_again(&full, COMMANDS, &unused) < 0) /* the first has started commands */
        rc = -1;
    for (size_t i = 0; i < rounds && rc == 0; i++) {
        without[i] = start_again(&empty, 0, &unused);
        with[i] = start_again(&full, COMMANDS, &cpu[i]);
        part[i] = with[i] - without[i];
        rc = without[i] < 0 || with[i] < 0 ? -1 : 0;
    }
    bq_agent_kill(&full, NULL);
    bq_agent_kill(&empty, NULL);
    if (rc)
        return rc;
    figures[BQ_adopt_64_ms_ROW] = b_median(with, rounds);
    figures[BQ_adopt_64_cpu_ms_ROW] = b_median(cpu, rounds);
    figures[BQ_adopt_0_ms_ROW] = b_median(without, rounds);
    figures[BQ_adopt_part_ms_ROW] = b_median(part, rounds);
    return 0;
}
