/* SPDX-License-Identifier: MIT */
/* options.c - the table of options. */
#include "tools/cli/options.h"

#include <string.h>

#define NONE VALUE_NONE, NULL
#define NEEDS(what) VALUE_NEEDED, what
#define MAY(what) VALUE_OPTIONAL, what

const struct option_entry options[OPTION_COUNT] = {
    [OPTION_HELP] = { "help", 'h', NONE, "print help and exit", false },
    [OPTION_COMPLETION] = { "completion", 0, MAY("SHELL"),
                            "print the completion for bash (the default) or zsh", false },
    [OPTION_DEVICES] = { "devices", 'd', NEEDS("SPEC"),
                         "use these: all (the GPUs of this machine, the default), or "
                         "fake:N[,script=FILE]",
                         false },
    [OPTION_GPU] = { "gpu", 'g', NONE, "require a usable GPU: it is a PROBLEM if there is none",
                     false },
    [OPTION_JSON] = { "json", 'j', NONE, "print JSON: one object per line", false },
    [OPTION_MAN] = { "man", 0, NONE, "print the manual page", false },
    [OPTION_MARKDOWN] = { "markdown", 0, NONE, "print all verbs as a page of Markdown", false },
    [OPTION_QUICK] = { "quick", 'q', NONE, "start no worker and run no task", false },
    [OPTION_ROOT] = { "root", 0, NEEDS("DIR"),
                      "read the driver's files (/dev/nvidia*, /proc/driver/nvidia, /sys/bus/pci) "
                      "below DIR",
                      false },
    [OPTION_WAIT] = { "wait", 0, NEEDS("SECONDS"), "how long to wait for the driver's reply [10]",
                      false },
    [OPTION_WATCH] = { "watch", 'w', MAY("SECONDS"),
                       "repeat after this time [2], until SIGINT, SIGTERM or the reader has "
                       "closed the output",
                       false },

    [OPTION_STATE_DIR] = { "state-dir", 0, NEEDS("DIR"),
                           "the queue in this directory [$GPUDISPATCH_STATE, else "
                           "~/.local/state/gpudispatch]",
                           false },
    [OPTION_CONFIG] = { "config", 0, NEEDS("FILE"),
                        "read this configuration [$GPUDISPATCH_CONFIG, else "
                        "~/.config/gpudispatch/config]",
                        false },

    [OPTION_GPUS] = { "gpus", 'g', NEEDS("N"),
                      "GPUs of a task; 0.5 is a half of one [1 if the machine has any, else 0]",
                      true },
    [OPTION_MEMORY] = { "memory", 'm', NEEDS("SIZE"),
                        "memory on each GPU, such as 40G; without it the task has its GPUs alone",
                        true },
    [OPTION_CPUS] = { "cpus", 'c', NEEDS("N"), "CPU slots of a task [1]", true },
    [OPTION_HOST_MEMORY] = { "host-memory", 0, NEEDS("SIZE"), "memory of the machine [0]", true },
    [OPTION_ON] = { "on", 0, NEEDS("GPUS"), "only on these GPUs: 0,3 or gpu:0,gpu:3 or UUIDs",
                    true },
    [OPTION_NOT_ON] = { "not-on", 0, NEEDS("GPUS"), "not on these GPUs", true },
    [OPTION_COMPUTE] = { "compute", 0, NEEDS("N.M"), "the least compute capability, such as 8.0",
                         true },
    [OPTION_OR] = { "or", 0, NEEDS("OPTIONS"),
                    "another variant of the needs, such as '--gpus 4 --memory 40G'; up to 3",
                    true },
    [OPTION_NEEDS] = { "needs", 0, NEEDS("NAME"),
                       "the needs of section [needs NAME] of the configuration", true },
    [OPTION_ALLOW_WAIT] = { "allow-wait", 0, NONE, "accept needs that no device here can meet",
                            false },

    [OPTION_PRIORITY] = { "priority", 'p', NEEDS("N"),
                          "a task with a higher number starts first [0]", true },
    [OPTION_LIMIT] = { "limit", 'l', NEEDS("TIME"),
                       "how long an attempt may run, such as 90, 30m or 1h30m", true },
    [OPTION_EXPIRES] = { "expires", 0, NEEDS("TIME"),
                         "the task ends TIMEOUT if it has not started by then: +2h, 07:30 or RFC "
                         "3339",
                         true },
    [OPTION_BEGIN] = { "begin", 0, NEEDS("TIME"), "do not start before: +2h, 22:00 or RFC 3339",
                       true },
    [OPTION_AFTER] = { "after", 0, NEEDS("[WHEN:]IDS"),
                       "start after these tasks or batches; WHEN is ok (the default), ended or "
                       "failed",
                       true },
    [OPTION_HOLD] = { "hold", 0, NONE, "hold the tasks until release", false },
    [OPTION_RETRIES] = { "retries", 'r', NEEDS("N[:CAUSES]"),
                         "further attempts; CAUSES are error, timeout, crash (these by default) "
                         "and oom",
                         true },
    [OPTION_BACKOFF] = { "backoff", 0, NEEDS("TIME[:CAP]"),
                         "pause before the first retry; it doubles with each, up to CAP", true },
    [OPTION_AT_MOST_ONCE] = { "at-most-once", 0, NONE,
                              "a loss does not start a task again: LOST after a power cut; "
                              "--retries still applies",
                              false },

    [OPTION_NAME] = { "name", 'n', NEEDS("TEXT"), "a name for people; {COLUMN} is replaced", true },
    [OPTION_KEY] = { "key", 0, NEEDS("TEXT"),
                     "text that identifies a task, in place of its command; {COLUMN} is replaced",
                     true },
    [OPTION_CLASS] = { "class", 0, NEEDS("NAME"),
                       "class [class NAME] of the configuration, whose workers take the files",
                       false },
    [OPTION_CWD] = { "cwd", 'C', NEEDS("DIR"), "directory of the commands [the present one]",
                     true },
    [OPTION_ENV] = { "env", 'e', NEEDS("NAME[=V]"),
                     "set a variable of the commands, or keep it with --clean-env; may be repeated",
                     true },
    [OPTION_UNSET] = { "unset", 0, NEEDS("NAME"), "remove a variable; may be repeated", false },
    [OPTION_CLEAN_ENV] = { "clean-env", 0, NONE, "only PATH, HOME, USER, LANG and TERM", false },
    [OPTION_SHELL] = { "shell", 0, NEEDS("PROGRAM"), "program that runs lines of a file [/bin/sh]",
                       false },
    [OPTION_NO_CHECK] = { "no-check", 0, NONE, "accept programs and directories that are not found",
                          false },

    [OPTION_BATCH] = { "batch", 'b', NEEDS("NAME"),
                       "name of the batch [that of the file, class or program]", false },
    [OPTION_EACH] = { "each", 0, NEEDS("FILE"),
                      "one task per line or row: {} is the line, {COLUMN} a column", false },
    [OPTION_ARRAY] = { "array", 0, NEEDS("N-M[:STEP][%K]"),
                       "one task per number, which is {}; at most K run at a time", false },
    [OPTION_FILES] = { "files", 0, NEEDS("FILE"),
                       "a list of paths, one per line, for --class; - is standard input", false },
    [OPTION_FORMAT] = { "format", 0, NEEDS("FORMAT"),
                        "lines, csv or jsonl [by the name of the file]", false },
    [OPTION_FOLLOW_FILE] = { "watch", 0, NONE,
                             "go on: submit whole lines that are appended to the file, until "
                             "SIGINT",
                             false },
    [OPTION_JOIN] = { "join", 0, NONE, "join an equal task of a batch of this name", false },
    [OPTION_JOIN_ANYWAY] = { "join-anyway", 0, NONE,
                             "join also if files that a command names have changed", false },
    [OPTION_FRESH] = { "fresh", 0, NONE, "make new tasks, and join none", false },
    [OPTION_AT_ONCE] = { "at-once", 0, NEEDS("N"), "at most N tasks of the batch run at a time",
                         false },
    [OPTION_MAX_FAILS] = { "max-fails", 0, NEEDS("N|P%"),
                           "cancel the waiting tasks of the batch after more failures than this",
                           false },
    [OPTION_NOTIFY] = { "notify", 0, NEEDS("COMMAND"),
                        "run once here, when the batch has ended; output in logs/notify-BATCH",
                        false },
    [OPTION_DRY_RUN] = { "dry-run", 0, NONE,
                         "change nothing, and print each task: its line, what would happen, and "
                         "its command",
                         false },

    [OPTION_STATE] = { "state", 's', NEEDS("STATES"),
                       "only tasks in one of these: held, ready, waiting, running, done, failed, "
                       "or an outcome",
                       false },
    [OPTION_FAILED] = { "failed", 0, NONE, "tasks that ended error, timeout, crashed or no worker",
                        false },
    [OPTION_LOST] = { "lost", 0, NONE, "tasks that ended lost", false },
    [OPTION_ALL] = { "all", 'a', NONE, "all of them", false },
    [OPTION_LAST] = { "last", 0, NEEDS("N"), "show at most the N newest [20]", false },
    [OPTION_SHOW_ENV] = { "env", 0, NONE, "show the environment, too", false },
    [OPTION_ATTEMPT] = { "attempt", 0, NEEDS("N"), "of this attempt [the last one]", false },
    [OPTION_FOLLOW] = { "follow", 'f', NONE, "go on until the task has ended", false },
    [OPTION_TIMEOUT] = { "timeout", 't', NEEDS("TIME"), "wait no longer; the exit status is 5",
                         false },
    [OPTION_ATTACHED] = { "attached", 0, NONE, "the tasks end with this program, however it ends",
                          false },
    [OPTION_STATUS_FILE] = { "status-file", 0, NEEDS("FILE"),
                             "write the command's own exit status to FILE", false },
    [OPTION_REASON] = { "reason", 0, NEEDS("TEXT"), "a text for people", false },
    [OPTION_NOW] = { "now", 0, NONE, "tasks that run there return to their places", false },
    [OPTION_FIRST] = { "first", 0, NONE, "before all other tasks of their priority", false },
    [OPTION_OLDER] = { "older", 0, NEEDS("TIME"), "tasks that ended longer ago, such as 30d",
                       false },
    [OPTION_KEEP_FAILED] = { "keep-failed", 0, NONE, "only tasks that ended ok", false },
    [OPTION_REPAIR] = { "repair", 0, NONE, "make the repairs that are possible", false },
    [OPTION_ORIGIN] = { "origin", 0, NONE, "print the source of each value", false },

    [OPTION_SINCE] = { "since", 0, NEEDS("TIME"),
                       "show the time since then: 8h, 2d, 22:00 or RFC 3339 [the tasks of 24h, or "
                       "the time of the batches]",
                       false },
    [OPTION_FROM] = { "from", 0, NEEDS("FILE"),
                      "read a recording of report --records, or a decision_log; - is standard "
                      "input",
                      false },
    [OPTION_OUTPUT] = { "output", 'o', NEEDS("FILE"),
                        "write this file, whole or not at all; - is standard output", false },
    [OPTION_EVERY] = { "every", 0, NEEDS("TIME"),
                       "write the file again after each time of this length, such as 10s", false },
    [OPTION_CSV] = { "csv", 0, NONE, "write a row for each attempt", false },
    [OPTION_JOBLOG] = { "joblog", 0, NONE,
                        "write the columns of GNU parallel's joblog, a row for each task", false },
    [OPTION_RECORDS] = { "records", 0, NONE, "write a recording, for --from", false },
    [OPTION_ONCE] = { "once", 0, NONE, "print one screen, or one line with --json, and end",
                      false },
    [OPTION_ASCII] = { "ascii", 0, NONE,
                       "use characters of ASCII only, as in the locale C: digits for blocks",
                       false },
    [OPTION_AT_MOST_EVERY] = { "at-most-every", 0, NEEDS("TIME"),
                               "time between two snapshots, at least: 250ms to 1h [1s]", false },
    [OPTION_AT] = { "at", 0, NEEDS("TIME"),
                    "show this time of the recording: 02:17 or RFC 3339 [its end]", false },
    [OPTION_FILE] = { "file", 0, NEEDS("FILE"), "write this file again and again, whole each time",
                      false },
    [OPTION_JOB_MAP] = { "job-map", 0, NEEDS("DIR"),
                         "keep a file for each GPU with the id of its task, as the DCGM exporter "
                         "reads it",
                         false },
    [OPTION_SOCKET] = { "socket", 0, NEEDS("PATH"),
                        "listen at this path [live or live-HASH, beside the socket of the agent]",
                        false },
    [OPTION_PORT] = { "port", 0, NEEDS("N"),
                      "listen at this TCP port of 127.0.0.1 and ::1 instead, with a token; "
                      "0 is a free port",
                      false },
    [OPTION_FOR] = { "for", 0, NEEDS("TIME"), "end after this time, such as 12h", false },

    [OPTION_SLOTS] = { "cpus", 'c', NEEDS("N"), "CPU slots for tasks [one per CPU]", false },
    [OPTION_QUEUE_GPUS] = { "devices", 'd', NEEDS("SPEC"),
                            "use these: all (the default), free, a list such as 0,1 or GPU-5c, or "
                            "fake:N",
                            false },
    [OPTION_FOREGROUND] = { "foreground", 0, NONE, "stay in the foreground, as a service does",
                            false },
    [OPTION_DRAIN] = { "drain", 0, NONE, "start nothing, and end after the last running task",
                       false },
    [OPTION_CANCEL] = { "cancel", 0, NONE, "cancel the running tasks", false },
    [OPTION_ALLOW_NETWORK_FS] = { "allow-network-fs", 0, NONE,
                                  "accept a network file system, whose locks and syncs may not "
                                  "hold",
                                  false },
};

enum option_id option_of_column(const char *name)
{
    for (unsigned i = OPTION_END + 1; i < OPTION_COUNT; i++)
        if (options[i].line && !strcmp(options[i].name, name))
            return (enum option_id)i;
    return OPTION_END;
}
