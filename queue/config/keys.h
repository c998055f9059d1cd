/* SPDX-License-Identifier: MIT */
/*
 * keys.h - the keys of the config file, each listed once.
 *
 * docs/reference/config.md has a row for each of them, and a test checks that it does.
 *
 * Columns: enumerator, section, name, kind of value, least and most of a number, default
 * (NULL = none), variable of the environment, users, help.
 */
#ifndef GPQ_CONFIG_KEYS_H
#define GPQ_CONFIG_KEYS_H

/* Sections: of the whole queue, before the first [..] line; of a class; of needs. */
enum gpq_section_kind { GPQ_SECTION_TOP, GPQ_SECTION_CLASS, GPQ_SECTION_NEEDS, GPQ_SECTIONS };

/* Kinds of values, which values.h and split.h read. */
#define GPQ_KIND_MAP(X)           \
    X(TEXT, "text")               \
    X(NUMBER, "number")           \
    X(DURATION, "duration")       \
    X(SIZE, "size")               \
    X(BOOL, "yes or no")          \
    X(GPUS, "GPUs")               \
    X(COMPUTE, "compute capability") \
    X(ENV, "whole or clean")      \
    X(PATH, "path")               \
    X(WORDS, "words")

/* Programs that use a key: a mask. */
enum gpq_key_user { GPQ_BY_AGENT = 1, GPQ_BY_CLIENT = 2 };
#define GPQ_BY_BOTH (GPQ_BY_AGENT | GPQ_BY_CLIENT)

/* The needs of a task or of a worker; `by` are their users. */
#define GPQ_NEEDS_KEY_MAP(X, p, section, by)                                               \
    X(p##GPUS, section, "gpus", GPUS, 0, 0, NULL, NULL, by,                                \
      "GPUs, up to 16, or a part of one such as 0.5 [1, without GPUs 0]")                  \
    X(p##MEMORY, section, "memory", SIZE, 0, 0, NULL, NULL, by,                            \
      "memory on each GPU; without it nothing else runs there")                            \
    X(p##CPUS, section, "cpus", NUMBER, 0, 1 << 20, NULL, NULL, by, "CPU slots [1]")       \
    X(p##HOST_MEMORY, section, "host-memory", SIZE, 0, 0, NULL, NULL, by,                  \
      "memory of the machine")                                                             \
    X(p##COMPUTE, section, "compute", COMPUTE, 0, 0, NULL, NULL, by,                       \
      "the least compute capability, such as 8.6")                                         \
    X(p##ON, section, "on", TEXT, 0, 0, NULL, NULL, by,                                    \
      "GPUs that it may have: names or UUIDs, separated by commas")                        \
    X(p##NOT_ON, section, "not-on", TEXT, 0, 0, NULL, NULL, by, "GPUs that it never has")

#define GPQ_KEY_MAP(X)                                                                     \
    X(DEVICES, TOP, "devices", TEXT, 0, 0, "all", NULL, GPQ_BY_AGENT,                      \
      "GPUs of the agent: all, free, or a list such as 0,1 or GPU-5c")                     \
    X(CPUS, TOP, "cpus", NUMBER, 1, 65536, NULL, NULL, GPQ_BY_AGENT,                       \
      "CPU slots of the agent [those of the machine]")                                     \
    X(STATE_DIR, TOP, "state-dir", PATH, 0, 0, NULL, "GPUDISPATCH_STATE", GPQ_BY_BOTH,     \
      "state directory [gpudispatch in XDG_STATE_HOME or ~/.local/state]")                 \
    X(ALLOW_NETWORK_FS, TOP, "allow-network-fs", BOOL, 0, 0, "no", NULL, GPQ_BY_AGENT,     \
      "accepts a state directory on a network file system")                                \
    X(ENV, TOP, "env", ENV, 0, 0, "whole", NULL, GPQ_BY_CLIENT,                            \
      "environment of a command: that of its submit, or PATH, HOME, USER, LANG, TERM")     \
    X(SHELL, TOP, "shell", PATH, 0, 0, "/bin/sh", NULL, GPQ_BY_CLIENT,                     \
      "shell of the lines in a jobs file")                                                 \
    X(NOTIFY, TOP, "notify", TEXT, 0, 0, NULL, NULL, GPQ_BY_AGENT,                         \
      "command line that runs once at the end of each batch, in the state directory")      \
    X(KEEP_AGE, TOP, "keep-age", DURATION, 0, 0, "90d", NULL, GPQ_BY_AGENT,                \
      "how long ended tasks are kept; 0: as long as keep-tasks lets them")                 \
    X(KEEP_TASKS, TOP, "keep-tasks", NUMBER, 0, INT32_MAX, "1000000", NULL, GPQ_BY_AGENT,  \
      "how many ended tasks are kept; 0: any number")                                      \
    X(LOG_LIMIT, TOP, "log-limit", SIZE, 0, 0, "256M", NULL, GPQ_BY_AGENT,                 \
      "end of a log that is kept, behind its first 1 MiB; 0: all of it")                   \
    X(PORTS, TOP, "ports", TEXT, 0, 0, NULL, NULL, GPQ_BY_AGENT,                           \
      "TCP ports that {port} stands for, FIRST-LAST [20000-29999]")                        \
    X(PLUGIN, CLASS, "plugin", PATH, 0, 0, NULL, NULL, GPQ_BY_AGENT,                       \
      "shared object with the code of the workers")                                        \
    X(WORKER, CLASS, "worker", WORDS, 0, 0, NULL, NULL, GPQ_BY_AGENT,                      \
      "program of the workers and its arguments, in place of plugin")                      \
    X(DEFINITION, CLASS, "definition", TEXT, 0, 0, NULL, NULL, GPQ_BY_AGENT,               \
      "name of its definition [the only one]")                                             \
    X(SETUP, CLASS, "setup", TEXT, 0, 0, NULL, NULL, GPQ_BY_AGENT,                         \
      "text that each worker gets for its setup, such as the path of a model")             \
    X(CLASS_ENV, CLASS, "env", WORDS, 0, 0, NULL, NULL, GPQ_BY_AGENT,                      \
      "NAME=VALUE sets a variable of its workers, NAME removes it")                        \
    X(CWD, CLASS, "cwd", PATH, 0, 0, NULL, NULL, GPQ_BY_AGENT,                             \
      "directory of the workers [that of the config file]")                                \
    GPQ_NEEDS_KEY_MAP(X, CLASS_, CLASS, GPQ_BY_AGENT)                                      \
    X(BATCH, CLASS, "batch", NUMBER, 1, 64, "1", NULL, GPQ_BY_AGENT,                       \
      "tasks that a worker takes in one call of process_batch")                            \
    X(BATCH_WAIT, CLASS, "batch-wait", DURATION, 0, 0, "0", NULL, GPQ_BY_AGENT,            \
      "how long a worker waits for more tasks of a batch")                                 \
    X(SETUP_LIMIT, CLASS, "setup-limit", DURATION, 0, 0, "15m", NULL, GPQ_BY_AGENT,        \
      "how long the setup of a worker may take; 0: no limit")                              \
    X(LIMIT, CLASS, "limit", DURATION, 0, 0, "0", NULL, GPQ_BY_AGENT,                      \
      "limit of a task that has none of its own; 0: no limit")                             \
    X(STALL_LIMIT, CLASS, "stall-limit", DURATION, 0, 0, "0", NULL, GPQ_BY_AGENT,          \
      "how long a task may run without a report of its progress; 0: no limit")             \
    X(GRACE, CLASS, "grace", DURATION, 0, 0, "2s", NULL, GPQ_BY_AGENT,                     \
      "time from the limit of a task to the kill of its worker")                           \
    X(MIN_WORKERS, CLASS, "min-workers", NUMBER, 0, 1024, "0", NULL, GPQ_BY_AGENT,         \
      "workers that start with the agent, and stay")                                       \
    X(MAX_WORKERS, CLASS, "max-workers", NUMBER, 1, 1024, NULL, NULL, GPQ_BY_AGENT,        \
      "workers at a time [as many as fit]")                                                \
    X(UNLOAD_AFTER, CLASS, "unload-after", DURATION, 0, 0, NULL, NULL, GPQ_BY_AGENT,       \
      "an idle worker leaves after this time [when another class needs its GPU]")          \
    X(MIN_RESIDENCE, CLASS, "min-residence", DURATION, 0, 0, "30s", NULL, GPQ_BY_AGENT,    \
      "a worker stays this long before it leaves for another class")                       \
    X(MAX_WAIT, CLASS, "max-wait", DURATION, 0, 0, "5m", NULL, GPQ_BY_AGENT,               \
      "a task that waits this long takes the place of a worker of another class")          \
    X(TASKS_PER_WORKER, CLASS, "tasks-per-worker", NUMBER, 0, UINT32_MAX, "0", NULL,       \
      GPQ_BY_AGENT, "a worker is replaced after this many tasks; 0: never")                \
    GPQ_NEEDS_KEY_MAP(X, NEEDS_, NEEDS, GPQ_BY_CLIENT)                                     \
    X(NEEDS_OR, NEEDS, "or", WORDS, 0, 0, NULL, NULL, GPQ_BY_CLIENT,                       \
      "up to 3 names of other needs, in order of preference")

#define GPQ_X_KIND(name, text) GPQ_KIND_##name,
enum gpq_key_kind { GPQ_KIND_MAP(GPQ_X_KIND) GPQ_KINDS };
#undef GPQ_X_KIND
#define GPQ_X_KEY(id, section, name, kind, least, most, value, variable, by, help) GPQ_KEY_##id,
enum gpq_key { GPQ_KEY_MAP(GPQ_X_KEY) GPQ_KEYS };
#undef GPQ_X_KEY

#endif
