/* SPDX-License-Identifier: MIT */
/* engines.h - the engines that the tests of the contract run with. */
#ifndef T_QUEUE_ENGINES_H
#define T_QUEUE_ENGINES_H

#include "harness.h"

#include "queue/store.h"

enum engine_kind { MEMORY, SQLITE };

/* Opens the engine's store in this directory, which is made if there is none.  vfs: SQLite's, NULL
 * = that of the system. */
struct gpq_store *engine_open(enum engine_kind kind, const char *directory, const char *vfs);

/* A case for each engine: `BOTH (joins) { ... }` has an empty store `s`. */
#define BOTH(name)                              \
    static void on_##name(struct gpq_store *s); \
    T_CASE(name##_memory)                       \
    {                                           \
        engine_case(MEMORY, on_##name);         \
    }                                           \
    T_CASE(name##_sqlite)                       \
    {                                           \
        engine_case(SQLITE, on_##name);         \
    }                                           \
    static void on_##name(struct gpq_store *s)

void engine_case(enum engine_kind kind, void (*run)(struct gpq_store *s));

#endif
