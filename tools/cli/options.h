/* SPDX-License-Identifier: MIT */
/*
 * options.h - the options of all verbs: one entry each, from which come parsing, help, manual page,
 * completion, columns of jobs files and keys of the configuration.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>

enum option_id {
    OPTION_END, /* ends a list of ids */
    /* What is looked at, and how it is shown. */
    OPTION_HELP,
    OPTION_COMPLETION,
    OPTION_DEVICES,
    OPTION_GPU,
    OPTION_JSON,
    OPTION_MAN,
    OPTION_MARKDOWN,
    OPTION_QUICK,
    OPTION_ROOT,
    OPTION_WAIT,
    OPTION_WATCH,
    /* Of the queue. */
    OPTION_STATE_DIR,
    OPTION_CONFIG,
    /* What a task needs. */
    OPTION_GPUS,
    OPTION_MEMORY,
    OPTION_CPUS,
    OPTION_HOST_MEMORY,
    OPTION_ON,
    OPTION_NOT_ON,
    OPTION_COMPUTE,
    OPTION_OR,
    OPTION_NEEDS,
    OPTION_ALLOW_WAIT,
    /* When it runs, and how often. */
    OPTION_PRIORITY,
    OPTION_LIMIT,
    OPTION_EXPIRES,
    OPTION_BEGIN,
    OPTION_AFTER,
    OPTION_HOLD,
    OPTION_RETRIES,
    OPTION_BACKOFF,
    OPTION_AT_MOST_ONCE,
    /* What it is, and where it runs. */
    OPTION_NAME,
    OPTION_KEY,
    OPTION_CLASS,
    OPTION_CWD,
    OPTION_ENV,
    OPTION_UNSET,
    OPTION_CLEAN_ENV,
    OPTION_SHELL,
    OPTION_NO_CHECK,
    /* A list of tasks. */
    OPTION_BATCH,
    OPTION_EACH,
    OPTION_ARRAY,
    OPTION_FILES,
    OPTION_FORMAT,
    OPTION_FOLLOW_FILE, /* submit --watch */
    OPTION_JOIN,
    OPTION_JOIN_ANYWAY,
    OPTION_FRESH,
    OPTION_AT_ONCE,
    OPTION_MAX_FAILS,
    OPTION_NOTIFY,
    OPTION_DRY_RUN,
    /* What is selected of tasks, and what is done with it. */
    OPTION_STATE,
    OPTION_FAILED,
    OPTION_LOST,
    OPTION_ALL,
    OPTION_LAST,
    OPTION_SHOW_ENV,
    OPTION_ATTEMPT,
    OPTION_FOLLOW,
    OPTION_TIMEOUT,
    OPTION_ATTACHED,
    OPTION_STATUS_FILE,
    OPTION_REASON,
    OPTION_NOW,
    OPTION_FIRST,
    OPTION_OLDER,
    OPTION_KEEP_FAILED,
    OPTION_REPAIR,
    OPTION_ORIGIN,
    /* Of the views of a night. */
    OPTION_SINCE,
    OPTION_FROM,
    OPTION_OUTPUT,
    OPTION_EVERY,
    OPTION_CSV,
    OPTION_JOBLOG,
    OPTION_RECORDS,
    OPTION_ONCE,
    OPTION_ASCII,
    OPTION_AT_MOST_EVERY,
    OPTION_AT,
    OPTION_FILE,
    OPTION_JOB_MAP,
    OPTION_SOCKET,
    OPTION_PORT,
    OPTION_FOR,
    /* Of the agent. */
    OPTION_SLOTS,      /* agent --cpus */
    OPTION_QUEUE_GPUS, /* agent --devices */
    OPTION_FOREGROUND,
    OPTION_DRAIN,
    OPTION_CANCEL,
    OPTION_ALLOW_NETWORK_FS,
    OPTION_COUNT
};

enum value { VALUE_NONE, VALUE_NEEDED, VALUE_OPTIONAL };

struct option_entry {
    const char *name;
    char letter; /* 0 = none */
    enum value value;
    const char *value_name;
    const char *help;
    bool line; /* a column of this name in a jobs file sets it for its line */
};

extern const struct option_entry options[OPTION_COUNT];

/* The option of a jobs file's column; OPTION_END: none. */
enum option_id option_of_column(const char *name);

#endif
