/* SPDX-License-Identifier: MIT */
/* tinybatch.c - a whole batch tool, which runs a shell command for each line of stdin.
 * cc -std=c11 -Wall -Wextra tinybatch.c -o tinybatch $(pkg-config --cflags --libs gpudispatch)
 * Try: ls *.wav | ./tinybatch -j 4 -t 60 -r 1 -s night.json 'flac -s "$LINE"'
 * This has 4 workers, a limit of 60 s, 1 retry, and a summary; LINE is the line.  Without a command
 * each line is a command.  It prints each output when the command ends, failures on stderr, and on
 * a terminal a progress line.  A late command is killed with all its processes.  SIGINT: running
 * commands may end; a second SIGINT kills them.  Exit: 0 all succeeded, 1 not all, 2 an error. */
#define _GNU_SOURCE
#include <gpudispatch/gpudispatch.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static const char *command = "eval \"$LINE\""; /* set before gpud_init, so workers have it too */
static gpud_dispatcher *d;

static int run_line(gpud_task *t, void *state) /* runs in a worker; a file in memory is stdout */
{
    int r = 0, status = -1;
    off_t size;
    if (!close(1) && memfd_create("output", 0) == 1 && !setenv("LINE", gpud_task_data(t), 1))
        status = system(command);
    size = lseek(1, 0, SEEK_END);
    if (size > 0 && (r = gpud_task_result_alloc(t, (size_t)size, &state)) == 0)
        r = pread(1, state, (size_t)size, 0) == size ? 0 : -1;
    return r ? r : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int next_line(struct gpud_task_desc *task) /* returns 0 at the end of stdin */
{
    static char *line;
    static size_t room;
    ssize_t n = getline(&line, &room, stdin);
    if (n > 0 && line[n - 1] == '\n')
        line[n - 1] = 0;
    task->data = task->label = line;
    task->size = (uint64_t)n + 1;
    return n > 0 && ++task->tag;
}

static void interrupt(int number)
{
    static volatile sig_atomic_t times; /* a signal handler may call stop */
    (void)number, (void)gpud_dispatcher_stop(d, times++ ? GPUD_FINISH_NOW : GPUD_FINISH_RUNNING);
}

int main(int argc, char **argv)
{
    struct gpud_definition definition = GPUD_DEFINITION("line", NULL, run_line, NULL);
    char devices[32] = "cpu:2";
    struct gpud_options o = { .struct_size = sizeof o, .devices = devices, .grace = GPUD_AT_ONCE };
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_event e = GPUD_EVENT_INIT;
    struct gpud_stats s = GPUD_STATS_INIT;
    FILE *summary = fopen("/dev/null", "we");
    int c, r = 0, waits = 0, ended = 0; /* a line waits for room in the queue; stdin has ended */
    while ((c = getopt(argc, argv, "j:t:r:s:")) != -1)
        switch (c) {
        case 'j': (void)snprintf(devices, sizeof devices, "cpu:%s", optarg); break;
        case 'r': o.max_attempts = (uint32_t)atoi(optarg) + 1; break;
        case 's': if ((summary = fopen(optarg, "we"))) break; return perror(optarg), 2;
        case 't': o.task_limit = (uint64_t)(int64_t)(atof(optarg) * 1e9) | 1; break; /* not 0 */
        default: return fprintf(stderr, "usage: tinybatch [-j WORKERS] [-t SECONDS] [-r RETRIES] "
                                        "[-s SUMMARY] [COMMAND]\n"), 2;
        }
    command = optind < argc ? argv[optind] : command;
    o.retry_causes = GPUD_RETRY_CRASH | GPUD_RETRY_ERROR | GPUD_RETRY_TIMEOUT;
    if (gpud_init(&definition, 1, &error) || gpud_dispatcher_create(&d, &o, &error))
        return fprintf(stderr, "tinybatch: %s\n", error.text), 2;
    (void)sigaction(SIGINT, &(struct sigaction){ .sa_handler = interrupt }, NULL);
    (void)setvbuf(stdin, NULL, _IONBF, 0); /* so that poll(2) sees all input */
    while (r >= 0) {
        struct pollfd f[] = { { gpud_dispatcher_fd(d), POLLIN, 0 }, { 0, POLLIN, 0 } };
        if (poll(f, waits || ended ? 1 : 2, 200) > 0 && f[1].revents && !(waits = next_line(&task)))
            ended = gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER) == 0;
        c = waits ? gpud_dispatcher_submit(d, &task, 0, NULL, NULL) : 0;
        if ((waits = c == GPUD_EFULL) == 0 && c)
            fprintf(stderr, "line %d: %s: %s\n", (int)task.tag, gpud_error_text(c), task.label);
        while ((r = gpud_dispatcher_poll(d, &e, 1, 0)) > 0) {
            (void)fwrite(e.result_size ? e.result : "", 1, e.result_size, stdout);
            if (e.kind == GPUD_EVENT_OUTCOME && e.outcome != GPUD_OUTCOME_SUCCESS)
                fprintf(stderr, "line %d: %s, %s: %s\n", (int)e.tag, gpud_outcome_name(e.outcome),
                        e.text, e.label);
        }
        if (gpud_dispatcher_stats(d, &s) == 0 && isatty(2))
            fprintf(stderr, "\033[K%d of %d, %.1f/s, %.0f s left\r", (int)s.delivered,
                    (int)s.accepted, s.throughput,
                    s.eta_high == GPUD_NEVER ? 0 : (double)s.eta_high / 1e9);
    }
    fprintf(summary, "{\"lines\":%d, \"success\":%d, \"error\":%d, \"timeout\":%d, \"crashed\":%d, "
            "\"cancelled\":%d, \"retried\":%d}", (int)task.tag, (int)s.success, (int)s.error,
            (int)s.timeout, (int)s.crashed, (int)s.cancelled, (int)s.retried);
    r = gpud_dispatcher_destroy(&d, NULL) || gpud_fini() || r != GPUD_EEND;
    return r || fclose(summary) || fclose(stdout) ? 2 : s.success != task.tag || !ended;
}
