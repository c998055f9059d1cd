/* SPDX-License-Identifier: MIT */
/* verbs.c - the table of verbs.  A new verb is an entry here, and a file with its function. */
#include <stdio.h>

#include "metrics.h"
#include "report.h"
#include "serve.h"
#include "top.h"
#include "verbs.h"

#ifdef GPQ_CLIENT
#include "queue/client/verbs.h"
#define QUEUE(name) gpq_verb_##name
#else
#define QUEUE(name) without_queue

static int without_queue(const struct call *call)
{
    fprintf(stderr, "gpudispatch: %s: built without the queue (-Dqueue=enabled)\n",
            call->verb->name);
    return EXIT_FAILED;
}
#endif

const char program_summary[] = "runs tasks on the GPUs of this machine from a durable queue, and "
                               "lists and checks its devices";

#define OPTIONS(...)            \
    (const unsigned char[])     \
    {                           \
        __VA_ARGS__, OPTION_END \
    }
#define QUEUE_OPTIONS OPTION_STATE_DIR, OPTION_CONFIG
#define NEEDS_OPTIONS                                                                      \
    OPTION_GPUS, OPTION_MEMORY, OPTION_CPUS, OPTION_HOST_MEMORY, OPTION_ON, OPTION_NOT_ON, \
        OPTION_COMPUTE, OPTION_OR, OPTION_NEEDS, OPTION_ALLOW_WAIT
#define TASK_OPTIONS                                                                              \
    NEEDS_OPTIONS, OPTION_PRIORITY, OPTION_LIMIT, OPTION_EXPIRES, OPTION_BEGIN, OPTION_AFTER,     \
        OPTION_RETRIES, OPTION_BACKOFF, OPTION_AT_MOST_ONCE, OPTION_NAME, OPTION_KEY, OPTION_CWD, \
        OPTION_ENV, OPTION_UNSET, OPTION_CLEAN_ENV, OPTION_SHELL, OPTION_NO_CHECK, OPTION_BATCH,  \
        OPTION_EACH, OPTION_ARRAY, OPTION_FORMAT, OPTION_JOIN, OPTION_JOIN_ANYWAY, OPTION_FRESH,  \
        OPTION_AT_ONCE, OPTION_MAX_FAILS, OPTION_NOTIFY
#define SELECT_OPTIONS OPTION_STATE, OPTION_FAILED, OPTION_LOST, OPTION_ALL

#define IDS                                                                                       \
    "IDS are batches (12), tasks (12.44) and ranges of them (12.40-49); the name of a batch may " \
    "stand in place of its number: night, night.44."

#define QUEUE_STATUSES                                                          \
    { EXIT_NONE, "no agent runs here, or there is no such task" },              \
        { EXIT_REFUSED, "refused: the text on standard error has the reason" }, \
    {                                                                           \
        EXIT_UNUSABLE, "the state directory cannot be used"                     \
    }

static const struct status_entry doctor_statuses[] = {
    { EXIT_OK, "no PROBLEM; a missing GPU is a PROBLEM only with --gpu" },
    { EXIT_FAILED, "the output could not be written" },
    { EXIT_USAGE, "wrong usage, or an invalid SPEC" },
    { EXIT_WRONG, "at least one PROBLEM" },
    { 0, NULL },
};

static const struct status_entry gpus_statuses[] = {
    { EXIT_OK,
      "the devices were listed, or there are none; with --watch: SIGINT, SIGTERM or the reader "
      "ended it" },
    { EXIT_FAILED,
      "the devices could not be listed: no monitor process, or the output could not be written" },
    { EXIT_USAGE, "wrong usage, or an invalid SPEC" },
    { EXIT_WRONG, "the driver does not work, or a GPU is lost, must be reset, or is QUARANTINED" },
    { 0, NULL },
};

static const struct status_entry print_statuses[] = {
    { EXIT_OK, "printed" },
    { EXIT_FAILED, "the output could not be written" },
    { EXIT_USAGE, "wrong usage" },
    { 0, NULL },
};

static const struct status_entry done_statuses[] = {
    { EXIT_OK, "done" },
    { EXIT_FAILED, "the output could not be written, or there is no memory" },
    { EXIT_USAGE, "wrong usage" },
    QUEUE_STATUSES,
    { 0, NULL },
};

static const struct status_entry submit_statuses[] = {
    { EXIT_OK, "the tasks are in the queue, and survive a crash and a power cut" },
    { EXIT_FAILED, "the output could not be written, or there is no memory" },
    { EXIT_USAGE, "wrong usage, or a bad line or file: no task was submitted" },
    QUEUE_STATUSES,
    { 0, NULL },
};

static const struct status_entry run_statuses[] = {
    { EXIT_OK, "all tasks ended ok" },
    { EXIT_FAILED, "it could not be done" },
    { EXIT_USAGE, "wrong usage, or a bad line: no task was submitted" },
    { EXIT_WRONG,
      "some tasks did not end ok; of a single command, its own status, or 128 plus the signal" },
    { EXIT_TIMEOUT, "the time of --timeout is over; the tasks go on" },
    QUEUE_STATUSES,
    { 128 + 2, "SIGINT or SIGTERM: the tasks go on, or are cancelled with --attached" },
    { 0, NULL },
};

static const struct status_entry wait_statuses[] = {
    { EXIT_OK, "all tasks ended ok" },
    { EXIT_FAILED, "the output could not be written" },
    { EXIT_USAGE, "wrong usage" },
    { EXIT_WRONG, "some tasks did not end ok" },
    { EXIT_NONE, "no agent runs here, or there is no such task" },
    { EXIT_TIMEOUT, "the time of --timeout is over" },
    { EXIT_UNUSABLE, "the state directory cannot be used" },
    { 0, NULL },
};

static const struct status_entry fsck_statuses[] = {
    { EXIT_OK, "nothing was found, or all of it is repaired" },
    { EXIT_FAILED, "the check could not be made" },
    { EXIT_USAGE, "wrong usage" },
    { EXIT_WRONG, "something is damaged or inconsistent" },
    { EXIT_NONE, "there is no queue here" },
    { EXIT_UNUSABLE, "an agent runs, or the file is damaged" },
    { 0, NULL },
};

static const struct status_entry top_statuses[] = {
    { EXIT_OK, "printed, or ended by the key q" },
    { EXIT_FAILED,
      "the recording, the output or the terminal cannot be used, or there is no memory" },
    { EXIT_USAGE, "wrong usage" },
    { EXIT_NONE, "no agent runs here, or it has ended" },
    { EXIT_UNUSABLE, "the state directory cannot be used" },
    { 0, NULL },
};

static const struct status_entry metrics_statuses[] = {
    { EXIT_OK, "written; with --file or --job-map: SIGINT, SIGTERM or SIGHUP ended it" },
    { EXIT_FAILED, "the recording or the output cannot be used, or there is no memory" },
    { EXIT_USAGE, "wrong usage" },
    { EXIT_NONE, "no agent runs here, or it has ended" },
    { EXIT_UNUSABLE, "the state directory cannot be used" },
    { 0, NULL },
};

static const struct status_entry serve_statuses[] = {
    { EXIT_OK, "ended by SIGINT, SIGTERM, SIGHUP or --for" },
    { EXIT_FAILED,
      "the page cannot be served: its place is taken, its program is missing, or it is built "
      "without web" },
    { EXIT_USAGE, "wrong usage" },
    { EXIT_NONE, "no agent runs here, or it has ended" },
    { EXIT_UNUSABLE, "the state directory cannot be used" },
    { 0, NULL },
};

static const struct status_entry view_statuses[] = {
    { EXIT_OK, "written" },
    { EXIT_FAILED,
      "the records could not be read, the output could not be written, or there is no memory" },
    { EXIT_USAGE, "wrong usage" },
    { EXIT_NONE, "there is no queue here, or no such batch" },
    { EXIT_UNUSABLE, "the state directory cannot be used" },
    { 0, NULL },
};

const struct verb verbs[] = {
    /* ---- tasks ---- */
    { "submit", "[FILE]", 0, OPERANDS_ANY, true, "put tasks into the queue",
      "Submits one command behind --, or the commands of a FILE (- is standard input): lines for a "
      "shell, rows of a CSV file or objects of a JSON Lines file. With --each or --array the "
      "command behind -- is a template for each line or number; with --class, each of any "
      "number of FILEs is the data of a task. An agent is started if none runs. All tasks are "
      "submitted, or none.\n"
      "The tasks of a list join equal ones of the same batch name that wait, run or have ended ok: "
      "submit the same list again, and only the new and the failed lines run. A single command is "
      "always a new task, unless --key or --join is given.\n"
      "In a command, {gpu}, {gpus}, {port}, {task} and {out} are replaced when it starts: the "
      "numbers of its GPUs, how many, a free TCP port, its id, and the directory of its outputs.",
      OPTIONS(TASK_OPTIONS, OPTION_HOLD, OPTION_CLASS, OPTION_FILES, OPTION_FOLLOW_FILE,
              OPTION_DRY_RUN, OPTION_JSON, QUEUE_OPTIONS),
      QUEUE(submit), submit_statuses },
    { "run", "[FILE]", 0, 1, true, "submit tasks, follow them, and report how they ended",
      "Submits as submit does, and follows the tasks until they have ended. A single command's "
      "output is shown, and its status becomes that of this program; the last line on standard "
      "error has both. SIGINT ends the following only: the tasks go on. With "
      "--attached they end with this program.",
      OPTIONS(TASK_OPTIONS, OPTION_ATTACHED, OPTION_STATUS_FILE, OPTION_TIMEOUT, OPTION_JSON,
              QUEUE_OPTIONS),
      QUEUE(run), run_statuses },
    { "ls", "[IDS]", 0, OPERANDS_ANY, false, "list batches, or the tasks of some",
      "Without IDS it lists the batches that go on and the newest ended ones. " IDS,
      OPTIONS(SELECT_OPTIONS, OPTION_LAST, OPTION_JSON, QUEUE_OPTIONS), QUEUE(ls), done_statuses },
    { "show", "IDS", 1, OPERANDS_ANY, false, "show tasks or batches in full",
      "Shows command, needs, conditions, attempts and files of tasks, and counts of batches. " IDS,
      OPTIONS(OPTION_SHOW_ENV, OPTION_JSON, QUEUE_OPTIONS), QUEUE(show), done_statuses },
    { "results", "IDS", 0, OPERANDS_ANY, false, "print the results of ended tasks",
      "Prints a line per ended task, with tabs between id, outcome, and result, path of its "
      "outputs or reason of its failure. " IDS,
      OPTIONS(SELECT_OPTIONS, OPTION_JSON, QUEUE_OPTIONS), QUEUE(results), done_statuses },
    { "log", "TASK", 1, 1, false, "print the output of a task",
      "Prints the standard output and the standard error of the command. In a file or a "
      "pipe, a line that was overwritten by carriage returns has its last state.",
      OPTIONS(OPTION_FOLLOW, OPTION_ATTEMPT, QUEUE_OPTIONS), QUEUE(log), done_statuses },
    { "wait", "IDS", 1, OPERANDS_ANY, false, "wait until tasks have ended",
      "Waits for all of them, shows progress on a terminal, and prints how they ended. " IDS,
      OPTIONS(OPTION_TIMEOUT, OPTION_JSON, QUEUE_OPTIONS), QUEUE(wait), wait_statuses },
    { "explain", "TASK", 1, 1, false, "print why a task waits",
      "Prints the reasons why the task does not start: other tasks, a time, a pause, devices.",
      OPTIONS(OPTION_JSON, QUEUE_OPTIONS), QUEUE(explain), done_statuses },
    { "cancel", "IDS", 0, OPERANDS_ANY, false, "cancel tasks",
      "A waiting task ends at once. A running one gets SIGTERM, and SIGKILL later; its outcome is "
      "whichever comes first. " IDS,
      OPTIONS(SELECT_OPTIONS, OPTION_JSON, QUEUE_OPTIONS), QUEUE(cancel), done_statuses },
    { "retry", "IDS", 0, OPERANDS_ANY, false, "run ended tasks again",
      "Opens a new round of tasks that did not end ok, or of the selected ones. The old outcomes "
      "are "
      "kept. " IDS,
      OPTIONS(SELECT_OPTIONS, OPTION_JSON, QUEUE_OPTIONS), QUEUE(retry), done_statuses },
    { "hold", "IDS", 0, OPERANDS_ANY, false, "hold waiting tasks",
      "They do not start until release, also after a restart. Of a batch, tasks that are appended "
      "later are held, too. " IDS,
      OPTIONS(SELECT_OPTIONS, OPTION_JSON, QUEUE_OPTIONS), QUEUE(hold), done_statuses },
    { "release", "IDS", 0, OPERANDS_ANY, false, "end hold of tasks", "Ends hold. " IDS,
      OPTIONS(SELECT_OPTIONS, OPTION_JSON, QUEUE_OPTIONS), QUEUE(release), done_statuses },
    { "set", "IDS", 1, OPERANDS_ANY, false, "change waiting tasks",
      "Changes the given properties of waiting tasks. A running task is refused. " IDS,
      OPTIONS(NEEDS_OPTIONS, OPTION_PRIORITY, OPTION_LIMIT, OPTION_EXPIRES, OPTION_RETRIES,
              OPTION_BACKOFF, OPTION_FIRST, OPTION_JSON, QUEUE_OPTIONS),
      QUEUE(set), done_statuses },
    /* ---- a night ---- */
    { "top", NULL, 0, 0, false, "show the running work on a terminal",
      "Shows the work of each GPU, why the first task of each batch waits, the faults of the last "
      "24 hours, and when all of it is done, as a range. ? lists the keys. Nothing can be changed "
      "here.\n"
      "In a pipe, and with --once, it prints one screen; a pipe has 80 columns unless COLUMNS is "
      "set, and as many lines as needed unless LINES is set. --json prints each snapshot as a line "
      "of JSON. If the terminal has no entry in the terminfo database, a screen is printed every "
      "5 seconds.",
      OPTIONS(OPTION_ONCE, OPTION_JSON, OPTION_ASCII, OPTION_AT_MOST_EVERY, OPTION_FROM, OPTION_AT,
              QUEUE_OPTIONS),
      top_run, top_statuses },
    { "report", "[BATCH...]", 0, OPERANDS_ANY, false, "write the work of a night as a page",
      "Writes one HTML file: the work of each GPU, why tasks waited, the faults and the commands "
      "to type next. It needs no other file and no network. Without BATCH it shows the tasks of "
      "the last 24 hours, else the time in which the named batches ran. The page goes to standard "
      "output, or, where that is a terminal, to the file gpudispatch-report.html.\n"
      "With --every the page loads itself again, until its batches have ended, or all tasks "
      "without BATCH. A page of more than 200,000 attempts can zoom and search with --all only. "
      "--json writes the numbers of the page, --csv its attempts, and --records a recording of all "
      "that it shows. No agent needs to run. Nothing is changed.",
      OPTIONS(OPTION_SINCE, OPTION_OUTPUT, OPTION_EVERY, OPTION_ALL, OPTION_JSON, OPTION_CSV,
              OPTION_JOBLOG, OPTION_RECORDS, OPTION_FROM, QUEUE_OPTIONS),
      report_run, view_statuses },
    { "trace", "[BATCH...]", 0, OPERANDS_ANY, false, "write a night as a trace for Perfetto",
      "Writes JSON of the Chrome trace event format, which https://ui.perfetto.dev opens: a "
      "process for each GPU with tracks of its tasks, its worker and its device, a mark for each "
      "bad end, and the number of waiting tasks of each batch. It has the tasks of report. The "
      "trace goes to standard output, or, where that is a terminal, to the file "
      "gpudispatch-trace.json.",
      OPTIONS(OPTION_SINCE, OPTION_OUTPUT, OPTION_FROM, QUEUE_OPTIONS), trace_run, view_statuses },
    { "metrics", NULL, 0, 0, false, "write the present moment for Prometheus",
      "Writes OpenMetrics text: ends of tasks, waiting tasks and times of each class, state and "
      "use of each GPU. Labels of GPUs are those of NVIDIA's DCGM exporter. No task, batch or user "
      "is a label.\n"
      "With --file it writes a file every 15 seconds, as node_exporter's textfile collector reads "
      "it; the name must end in .prom for that. With --job-map the DCGM exporter adds the task to "
      "its own metrics of each GPU. Both go on until a signal ends them.",
      OPTIONS(OPTION_FILE, OPTION_EVERY, OPTION_JOB_MAP, OPTION_FROM, OPTION_AT, QUEUE_OPTIONS),
      metrics_run, metrics_statuses },
    { "serve", NULL, 0, 0, false, "show the present moment as a page in a browser",
      "Serves one page, which follows the queue: GPUs with the last four hours, batches and why "
      "they wait, the faults and the commands to type next. Nothing can be changed there, and "
      "logs and environments are not shown.\n"
      "It listens at a socket that only this user can open; ssh -L brings it to a browser. With "
      "--port it listens at a port of this machine, which every user of the machine can open: then "
      "each request needs the token that is printed once. At most 16 pages are open. Scripts find "
      "the newest snapshot at /data, snapshots at /events, and /metrics for Prometheus.",
      OPTIONS(OPTION_SOCKET, OPTION_PORT, OPTION_FOR, OPTION_FROM, OPTION_AT, QUEUE_OPTIONS),
      serve_run, serve_statuses },
    /* ---- the queue ---- */
    { "pause", NULL, 0, 0, false, "start no further tasks",
      "Running tasks go on. It holds until resume, also after a restart.",
      OPTIONS(OPTION_CLASS, OPTION_REASON, OPTION_JSON, QUEUE_OPTIONS), QUEUE(pause),
      done_statuses },
    { "resume", NULL, 0, 0, false, "end pause", "Ends pause.",
      OPTIONS(OPTION_CLASS, OPTION_JSON, QUEUE_OPTIONS), QUEUE(resume), done_statuses },
    { "drain", "GPU", 1, 1, false, "start no further tasks on a GPU",
      "GPU is a number, a name such as gpu:4, or a UUID or its beginning. It holds until undrain, "
      "also after a "
      "reboot. With --now its tasks return to their places, not charged.",
      OPTIONS(OPTION_REASON, OPTION_NOW, OPTION_JSON, QUEUE_OPTIONS), QUEUE(drain), done_statuses },
    { "undrain", "GPU", 1, 1, false, "end drain of a GPU", "Ends drain.",
      OPTIONS(OPTION_JSON, QUEUE_OPTIONS), QUEUE(undrain), done_statuses },
    { "purge", NULL, 0, 0, false, "forget tasks that ended long ago",
      "Forgets them with their results, outputs and logs; tasks that wait or run stay.",
      OPTIONS(OPTION_OLDER, OPTION_KEEP_FAILED, OPTION_JSON, QUEUE_OPTIONS), QUEUE(purge),
      done_statuses },
    { "fsck", NULL, 0, 0, false, "check the queue's files, while no agent runs",
      "Checks file, counters, conditions, results, outputs and records of runs. A damaged file is "
      "never written.",
      OPTIONS(OPTION_REPAIR, OPTION_JSON, QUEUE_OPTIONS), QUEUE(fsck), fsck_statuses },
    { "agent", "[start|stop|status]", 0, 1, false, "start, stop or show the agent of the queue",
      "start (the default) starts the agent in the background if none runs; with --foreground "
      "this process becomes the agent. Without other options it has those of the last start. If an "
      "agent with other options runs, start is refused. stop leaves running commands alone, and "
      "the next agent "
      "adopts them; with --drain it waits for them, with --cancel it ends them. status shows "
      "how it is.",
      OPTIONS(OPTION_QUEUE_GPUS, OPTION_SLOTS, OPTION_FOREGROUND, OPTION_DRAIN, OPTION_CANCEL,
              OPTION_ALLOW_NETWORK_FS, OPTION_JSON, QUEUE_OPTIONS),
      QUEUE(agent), done_statuses },
    { "config", "[KEY]", 0, 1, false, "show the configuration",
      "Prints the keys and values that hold; with --origin also where each comes from: option, "
      "environment, file or default. A key of an agent that runs has the value with which it was "
      "started.",
      OPTIONS(OPTION_ORIGIN, OPTION_JSON, QUEUE_OPTIONS), QUEUE(config), done_statuses },
    /* ---- the machine ---- */
    { "doctor", NULL, 0, 0, false,
      "check system, limits, queue, driver, devices and tasks, and name remedies",
      "Checks the system, its limits, the library, the queue, the driver and each device, then "
      "runs "
      "tasks. On "
      "a CPU slot: one that succeeds, one that crashes and one that ignores its time limit. On "
      "each GPU: a task, one that is killed, the canary and a task of the successor. Each check is "
      "\"ok\", \"note\" (worth knowing) or \"PROBLEM\", and names a remedy.\n"
      "On each GPU a worker has a CUDA context for a moment, which takes some hundred MB. With "
      "--quick no task runs.",
      OPTIONS(OPTION_DEVICES, OPTION_GPU, OPTION_JSON, OPTION_QUICK, OPTION_ROOT, OPTION_WAIT),
      doctor_run, doctor_statuses },
    { "gpus", NULL, 0, 0, false, "list GPUs and MIG instances with their health and use",
      "Prints the versions of driver and CUDA, then one row per device: its health (with evidence "
      "unless it is HEALTHY; heat, memory errors and pending remaps always), how many workers of "
      "this library use it, which other processes do (pid, user, memory and command), and the age "
      "of the reading. \"-\" marks an unknown value. A device that cannot be read is UNKNOWN, "
      "never HEALTHY. CUDA_VISIBLE_DEVICES has no effect.\n"
      "The JSON document has all fields of struct gpud_device_info and struct gpud_driver_info "
      "(device.h) under their names, but those about the use by a dispatcher (from state on), "
      "null for unknown values, and times in nanoseconds of CLOCK_MONOTONIC beside \"now\". Each "
      "device has the list of its processes. With --watch there is one document per line.",
      OPTIONS(OPTION_DEVICES, OPTION_JSON, OPTION_WAIT, OPTION_WATCH), gpus_run, gpus_statuses },
    { "help", "[VERB]", 0, 1, false, "explain the program, or one verb",
      "Help, manual page and completion come from one table in the program.",
      OPTIONS(OPTION_COMPLETION, OPTION_MAN, OPTION_MARKDOWN), help_run, print_statuses },
    { "version", NULL, 0, 0, false, "print the versions of program and library",
      "Prints one line: the version of the program, that of the library, and its API number.",
      (const unsigned char[]){ OPTION_END }, version_run, print_statuses },
    { 0 },
};
