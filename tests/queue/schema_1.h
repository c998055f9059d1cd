/* SPDX-License-Identifier: MIT */
/*
 * schema_1.h - the tables of version 1, and a queue in them: what an agent of that version left.
 *
 * Batch 1: 1.1 ended ok, 1.2 runs, 1.3 is ready, 1.4 failed, was retried and is ready again, and
 * 1.5 waits for 1.2.
 */
#ifndef T_QUEUE_SCHEMA_1_H
#define T_QUEUE_SCHEMA_1_H

#define T_SCHEMA_1                                                                               \
    "CREATE TABLE counter(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;" \
    "INSERT INTO counter VALUES('order', 0), ('low', 0);"                                        \
    "CREATE TABLE batch(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT,"                        \
    " made INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0,"                                  \
    " numbers INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0,"                     \
    " joined INTEGER NOT NULL DEFAULT 0, busy INTEGER NOT NULL DEFAULT 0,"                       \
    " held INTEGER NOT NULL DEFAULT 0, ready INTEGER NOT NULL DEFAULT 0,"                        \
    " running INTEGER NOT NULL DEFAULT 0, done INTEGER NOT NULL DEFAULT 0,"                      \
    " success INTEGER NOT NULL DEFAULT 0, error INTEGER NOT NULL DEFAULT 0,"                     \
    " timeout INTEGER NOT NULL DEFAULT 0, crashed INTEGER NOT NULL DEFAULT 0,"                   \
    " cancelled INTEGER NOT NULL DEFAULT 0, no_worker INTEGER NOT NULL DEFAULT 0,"               \
    " skipped INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0,"                      \
    " at_once INTEGER NOT NULL, max_fails INTEGER NOT NULL, percent INTEGER NOT NULL,"           \
    " flags INTEGER NOT NULL, options BLOB NOT NULL) STRICT;"                                    \
    "CREATE INDEX batch_name ON batch(name) WHERE name IS NOT NULL;"                             \
    "CREATE TABLE joined(batch INTEGER NOT NULL, task INTEGER NOT NULL,"                         \
    " PRIMARY KEY(batch, task)) STRICT, WITHOUT ROWID;"                                          \
    "CREATE INDEX joined_task ON joined(task);"                                                  \
    "CREATE TABLE environment(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL,"                    \
    " data BLOB NOT NULL) STRICT;"                                                               \
    "CREATE INDEX environment_hash ON environment(hash);"                                        \
    "CREATE TABLE shape(id INTEGER PRIMARY KEY AUTOINCREMENT, request BLOB NOT NULL UNIQUE,"     \
    " ready INTEGER NOT NULL, uses INTEGER NOT NULL) STRICT;"                                    \
    "CREATE INDEX shape_ready ON shape(id) WHERE ready > 0;"                                     \
    "CREATE TABLE spec(id INTEGER PRIMARY KEY AUTOINCREMENT, uses INTEGER NOT NULL,"             \
    " content BLOB NOT NULL, shape INTEGER NOT NULL, options BLOB NOT NULL,"                     \
    " environment INTEGER NOT NULL, priority INTEGER NOT NULL, on_error INTEGER NOT NULL,"       \
    " on_timeout INTEGER NOT NULL, on_crash INTEGER NOT NULL, on_oom INTEGER NOT NULL,"          \
    " backoff INTEGER NOT NULL, backoff_cap INTEGER NOT NULL, begins INTEGER NOT NULL,"          \
    " expires INTEGER NOT NULL, once INTEGER NOT NULL) STRICT;"                                  \
    "CREATE INDEX spec_environment ON spec(environment);"                                        \
    "CREATE TABLE task(id INTEGER PRIMARY KEY, state INTEGER NOT NULL, holds INTEGER NOT NULL,"  \
    " outcome INTEGER NOT NULL, shape INTEGER NOT NULL, spec INTEGER NOT NULL,"                  \
    " priority INTEGER NOT NULL, place INTEGER NOT NULL, round INTEGER NOT NULL,"                \
    " attempt INTEGER NOT NULL, charged INTEGER NOT NULL, losses INTEGER NOT NULL,"              \
    " cancel INTEGER NOT NULL, unmet INTEGER NOT NULL, links INTEGER NOT NULL,"                  \
    " not_before INTEGER NOT NULL, expires INTEGER NOT NULL, ended INTEGER NOT NULL,"            \
    " cause INTEGER NOT NULL, key INTEGER) STRICT;"                                              \
    "CREATE INDEX task_ready ON task(shape, priority DESC, place) WHERE state = 2;"              \
    "CREATE INDEX task_running ON task(attempt) WHERE state = 3;"                                \
    "CREATE INDEX task_due ON task(not_before) WHERE not_before > 0;"                            \
    "CREATE INDEX task_expires ON task(expires) WHERE expires > 0 AND state < 3;"                \
    "CREATE INDEX task_turn ON task(id >> 32, priority DESC, place) WHERE holds = 8;"            \
    "CREATE INDEX task_key ON task(key) WHERE key IS NOT NULL;"                                  \
    "CREATE TABLE payload(id INTEGER PRIMARY KEY, line INTEGER NOT NULL, name TEXT,"             \
    " content BLOB NOT NULL, key BLOB) STRICT;"                                                  \
    "CREATE TABLE edge(task INTEGER NOT NULL, source INTEGER NOT NULL,"                          \
    " condition INTEGER NOT NULL, met INTEGER NOT NULL, PRIMARY KEY(task, source, condition))"   \
    " STRICT, WITHOUT ROWID;"                                                                    \
    "CREATE INDEX edge_source ON edge(source, met);"                                             \
    "CREATE TABLE attempt(task INTEGER NOT NULL, number INTEGER NOT NULL,"                       \
    " round INTEGER NOT NULL, outcome INTEGER NOT NULL DEFAULT 0,"                               \
    " returned INTEGER NOT NULL DEFAULT 0, claimed INTEGER NOT NULL,"                            \
    " started INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0,"                     \
    " returned_at INTEGER NOT NULL DEFAULT 0, charged INTEGER NOT NULL DEFAULT 1,"               \
    " status INTEGER NOT NULL DEFAULT 0, devices TEXT, run TEXT, text TEXT, stamp BLOB,"         \
    " PRIMARY KEY(task, number)) STRICT, WITHOUT ROWID;"                                         \
    "CREATE TABLE round(task INTEGER NOT NULL, round INTEGER NOT NULL,"                          \
    " outcome INTEGER NOT NULL, attempt INTEGER NOT NULL, ended INTEGER NOT NULL,"               \
    " cause INTEGER NOT NULL, result_attempt INTEGER, size INTEGER, data BLOB, file TEXT,"       \
    " PRIMARY KEY(task, round)) STRICT;"                                                         \
    "CREATE TABLE result(id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL,"                      \
    " size INTEGER NOT NULL, data BLOB, file TEXT) STRICT;"                                      \
    "CREATE TABLE request(id TEXT PRIMARY KEY, made INTEGER NOT NULL, batch INTEGER NOT NULL,"   \
    " added INTEGER NOT NULL, joined INTEGER NOT NULL, again INTEGER NOT NULL,"                  \
    " changed INTEGER NOT NULL, first INTEGER NOT NULL, placed BLOB) STRICT, WITHOUT ROWID;"     \
    "CREATE INDEX request_made ON request(made);"                                                \
    "CREATE TABLE mark(kind TEXT NOT NULL, subject TEXT NOT NULL, text TEXT,"                    \
    " since INTEGER NOT NULL, PRIMARY KEY(kind, subject)) STRICT, WITHOUT ROWID;"                \
    "CREATE TABLE span(id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL,"                \
    " subject TEXT NOT NULL, reason TEXT, text TEXT, since INTEGER NOT NULL,"                    \
    " until INTEGER NOT NULL, since_boot INTEGER NOT NULL, until_boot INTEGER NOT NULL,"         \
    " boot TEXT) STRICT;"                                                                        \
    "CREATE INDEX span_until ON span(until);"

#define T_ID_1(number) "4294967296 + " #number
#define T_TASK_1(number, rest) "INSERT INTO task VALUES(" T_ID_1(number) ", " rest ");"
#define T_QUEUE_1                                                                                \
    "INSERT INTO batch VALUES(1, NULL, 100, 0, 5, 5, 0, 3, 1, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0,"  \
    " 0, 0, 0, 0, x'');"                                                                         \
    "INSERT INTO environment VALUES(1, 0, x'');"                                                 \
    "INSERT INTO shape VALUES(1, x'01', 2, 6);"                                                  \
    "INSERT INTO spec VALUES(1, 5, x'02', 1, x'', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);"             \
    "UPDATE counter SET value = 5 WHERE name = 'order';"                                         \
    T_TASK_1(1, "4, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 300, 0, NULL")                  \
    T_TASK_1(2, "3, 0, 0, 1, 1, 0, 2, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, NULL")                    \
    T_TASK_1(3, "2, 0, 0, 1, 1, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL")                    \
    T_TASK_1(4, "2, 0, 0, 1, 1, 0, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL")                    \
    T_TASK_1(5, "1, 1, 0, 1, 1, 0, 5, 1, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, NULL")                    \
    "INSERT INTO payload SELECT id, 0, NULL, x'03', NULL FROM task;"                             \
    "INSERT INTO edge VALUES(" T_ID_1(5) ", " T_ID_1(2) ", 0, 0);"                               \
    "INSERT INTO attempt VALUES"                                                                 \
    "(" T_ID_1(1) ", 1, 1, 1, 0, 200, 201, 300, 0, 1, 0, '0', 'boot', NULL, NULL),"              \
    "(" T_ID_1(2) ", 1, 1, 0, 0, 210, 0, 0, 0, 1, 0, '1', 'boot', NULL, NULL),"                  \
    "(" T_ID_1(4) ", 1, 1, 2, 0, 220, 221, 310, 0, 1, 3, '2', 'boot', 'exit 3', NULL);"          \
    "INSERT INTO round VALUES(" T_ID_1(4) ", 1, 2, 1, 310, 0, NULL, NULL, NULL, NULL);"

#endif
