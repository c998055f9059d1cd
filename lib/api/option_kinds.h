/* SPDX-License-Identifier: MIT */
/*
 * option_kinds.h - which options hold for a whole dispatcher, and which for one class of it.  A
 * class is a definition put to use: its name, its limits, and how its workers start.
 *
 * tests/entries.py compares the rows with the fields of struct gpud_options.
 */
#ifndef GPI_API_OPTION_KINDS_H
#define GPI_API_OPTION_KINDS_H

enum gpi_option_kind {
    GPI_OPTION_POOL = 1, /* for the dispatcher: all classes have the same value */
    GPI_OPTION_CLASS,    /* for a class with workers */
    GPI_OPTION_TASKS,    /* for a class with or without workers: it is about tasks */
    GPI_OPTION_BOTH
};

/* X(field, POOL, CLASS, TASKS or BOTH), in the order of the fields.  Reserved fields have no
 * row. */
#define GPI_OPTION_KINDS(X)        \
    X(struct_size, BOTH)           \
    X(drive, POOL)                 \
    X(definition, CLASS)           \
    X(devices, POOL)               \
    X(queue_size, POOL)            \
    X(sent_ahead, CLASS)           \
    X(payload_budget, POOL)        \
    X(setup_data, CLASS)           \
    X(setup_size, CLASS)           \
    X(seed, CLASS)                 \
    X(setup_limit, TASKS)          \
    X(task_limit, TASKS)           \
    X(grace, TASKS)                \
    X(cleanup_limit, CLASS)        \
    X(close_limit, POOL)           \
    X(kill_limit, POOL)            \
    X(backoff, CLASS)              \
    X(backoff_cap, CLASS)          \
    X(failures_in_a_row, CLASS)    \
    X(max_attempts, TASKS)         \
    X(log_level, POOL)             \
    X(slot_events, POOL)           \
    X(start, CLASS)                \
    X(stdio, CLASS)                \
    X(devices_per_worker, CLASS)   \
    X(setup_concurrency, POOL)     \
    X(max_batch, CLASS)            \
    X(retry_causes, TASKS)         \
    X(batch_wait, CLASS)           \
    X(retry_backoff, TASKS)        \
    X(retry_backoff_cap, TASKS)    \
    X(expires, TASKS)              \
    X(stall_limit, TASKS)          \
    X(env, CLASS)                  \
    X(cwd, CLASS)                  \
    X(stdio_path, CLASS)           \
    X(argv, CLASS)                 \
    X(plugin, CLASS)               \
    X(setup_shared, CLASS)         \
    X(cuda, CLASS)                 \
    X(canary_passes, POOL)         \
    X(canary_backoff, POOL)        \
    X(canary_backoff_cap, POOL)    \
    X(memory_wait, POOL)           \
    X(xid_rules, POOL)             \
    X(max_tasks_per_worker, CLASS) \
    X(result_wait, CLASS)          \
    X(stop_limit, CLASS)           \
    X(visible, CLASS)              \
    X(start_events, CLASS)         \
    X(pooled, POOL)                \
    X(mode, POOL)                  \
    X(passing, POOL)               \
    X(cpus, POOL)                  \
    X(headroom, POOL)              \
    X(max_workers, POOL)           \
    X(foreign_load, POOL)          \
    X(host_memory, POOL)           \
    X(foreign_memory, POOL)        \
    X(decision_log, POOL)

#endif
