/* SPDX-License-Identifier: MIT */
/* tinybatch.c - a whole batch tool: runs a command for each line of stdin, some at a time, and says
 * what became of every one. cc -std=c11 -Wall -Wextra tinybatch.c -o tinybatch $(pkg-config
 * --cflags --libs gpudispatch)
 *
 * ls *.wav | ./tinybatch -j 4 -t 60 -r 1 -s night.json 'flac -s "$LINE"'      (workers, seconds,
 * retries, summary) runs a shell command with the line in LINE; without a command the lines are
 * commands. It prints what each printed, as it ends; on stderr which failed, and on a terminal a
 * progress line. A command past its time is killed with all that it has started. SIGINT: what runs
 * may end; once more: all ends. Exit status: 0 all went well, 1 some did not or were not begun, 2
 * usage or trouble. */
#define _GNU_SOURCE
#include <gpudispatch/gpudispatch.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *command = "eval \"$LINE\""; /* set before gpud_init, so workers have it, too */
static gpud_dispatcher *dispatcher;

/* in a worker; its stdout becomes a file in memory */
static int run_line(gpud_task *t, void *state)
{
    int status = close(1) || memfd_create("output", 0) != 1 || setenv("LINE", gpud_task_data(t), 1)
                     ? -1
                     : system(command),
        r = 0;
    off_t size = lseek(1, 0, SEEK_END);

    if (size > 0 && (r = gpud_task_result_alloc(t, (size_t)size, &state)) == 0 &&
        pread(1, state, (size_t)size, 0) != size)
        r = -1;
    /* as a shell has it */
    return r || status == 0      ? r
           : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                 : WEXITSTATUS(status);
}

static int next_line(struct gpud_task_desc *task) /* 0: there is none */
{
    static char *line;
    static size_t room;
    ssize_t n = getline(&line, &room, stdin);

    if (n > 0 && line[n - 1] == '\n')
        line[n - 1] = 0;
    task->data = task->label = line;
    task->size = (uint64_t)n + 1;
    task->tag += n > 0;
    return n > 0;
}

static void interrupt(int number)
{
    static volatile sig_atomic_t again;
    /* may be called here */
    (void)gpud_dispatcher_stop(dispatcher, again ? GPUD_FINISH_NOW : GPUD_FINISH_RUNNING);
    again = number;
}

int main(int argc, char **argv)
{
    static const struct gpud_definition definition = GPUD_DEFINITION("line", NULL, run_line, NULL);
    char devices[32] = "cpu:2";
    struct gpud_options options = { .struct_size = sizeof options,
                                    .devices = devices,
                                    .task_limit = GPUD_NEVER,
                                    .grace = GPUD_AT_ONCE,
                                    .retry_causes =
                                        GPUD_RETRY_CRASH | GPUD_RETRY_ERROR | GPUD_RETRY_TIMEOUT };
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_event e = GPUD_EVENT_INIT;
    struct gpud_stats s = GPUD_STATS_INIT;
    FILE *summary = fopen("/dev/null", "we");
    int c, r = 0, waits = 0, ended = 0; /* a line waits for room in the queue; stdin has ended */

    while ((c = getopt(argc, argv, "j:t:r:s:")) != -1)
        switch (c) {
        case 'j': (void)snprintf(devices, sizeof devices, "cpu:%s", optarg); break;
        case 't':
            options.task_limit =
                strtod(optarg, NULL) > 0 ? (uint64_t)(strtod(optarg, NULL) * 1e9) : 0;
            break;
        case 'r': options.max_attempts = (uint32_t)atoi(optarg) + 1; break;
        case 's': summary = fopen(optarg, "we"); break;
        default:
            return fprintf(stderr, "usage: tinybatch [-j WORKERS] [-t SECONDS] [-r RETRIES] [-s "
                                   "SUMMARY] [COMMAND]\n"),
                   2;
        }
    command = optind < argc ? argv[optind] : command;
    if (!summary || !options.task_limit || gpud_init(&definition, 1, &error) ||
        gpud_dispatcher_create(&dispatcher, &options, &error))
        return fprintf(stderr, "tinybatch: %s\n",
                       !summary             ? "cannot write there"
                       : options.task_limit ? error.text
                                            : "what time?"),
               2;
    (void)sigaction(SIGINT, &(struct sigaction){ .sa_handler = interrupt }, NULL);
    (void)setvbuf(stdin, NULL, _IONBF, 0); /* so that poll(2) sees all that is there */
    while (r >= 0) {
        struct pollfd fds[] = { { waits || ended ? -1 : 0, POLLIN, 0 },
                                { gpud_dispatcher_fd(dispatcher), POLLIN, 0 } };
        if (poll(fds, 2, 200) > 0 && fds[0].revents && !(waits = next_line(&task)))
            ended = gpud_dispatcher_close(dispatcher, GPUD_FINISH_ALL, GPUD_NEVER) == 0;
        if (waits && (waits = gpud_dispatcher_submit(dispatcher, &task, 0, NULL, NULL)) &&
            waits != GPUD_EFULL)
            fprintf(stderr, "line %d: %s: %s\n", (int)task.tag, gpud_error_text(waits), task.label);
        waits = waits == GPUD_EFULL; /* the one error that passes */
        while ((r = gpud_dispatcher_poll(dispatcher, &e, 1, 0)) > 0) {
            (void)fwrite(e.result_size ? e.result : "", 1, e.result_size, stdout);
            if (e.kind == GPUD_EVENT_OUTCOME && e.outcome != GPUD_OUTCOME_SUCCESS)
                fprintf(stderr, "line %d: %s, %s: %s\n", (int)e.tag, gpud_outcome_name(e.outcome),
                        e.text, e.label);
        }
        if (gpud_dispatcher_stats(dispatcher, &s) == 0 && isatty(2))
            fprintf(stderr, "\033[K%d of %d, %.1f/s, %.0f s left\r", (int)s.delivered,
                    (int)s.accepted, s.throughput,
                    s.eta_high == GPUD_NEVER ? 0 : (double)s.eta_high / 1e9);
    }
    fprintf(summary,
            "{\"lines\":%d, \"success\":%d, \"error\":%d, \"timeout\":%d, \"crashed\":%d, "
            "\"cancelled\":%d, \"retried\":%d}",
            (int)task.tag, (int)s.success, (int)s.error, (int)s.timeout, (int)s.crashed,
            (int)s.cancelled, (int)s.retried);
    (void)gpud_dispatcher_destroy(&dispatcher, NULL);
    return gpud_fini() || fclose(summary) || fclose(stdout) || r != GPUD_EEND
               ? 2
               : s.success != task.tag || !ended;
}
