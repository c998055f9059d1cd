/* SPDX-License-Identifier: MIT */
/*
 * schema.h - the tables of a store, and every statement on them.  open.c has the settings, and
 * rules.h the statements of a check.
 *
 * A task's rowid is its public id, batch << 32 | number (store.h), so that a batch is a range of
 * rowids and needs no index.  Ids come from batch's AUTOINCREMENT and are never reused.
 *
 *   counter      the places that order tasks: `order` goes up, `low` down
 *   batch        one submit, with the counts of its tasks, and the latest end of one (last_end)
 *   joined       tasks of other batches that count in a batch, too
 *   environment  kept once per distinct bytes
 *   shape        one request, with the number of its ready tasks and of the rows that name it
 *   spec         the properties that tasks of a submit share
 *   task         the fields that change; payload has those that do not
 *   edge         `task` waits for `source`, a task or, with number 0, a batch
 *   attempt      each claim; round: the rounds before the present one, with their results
 *   result       of the present round
 *   request      answers to submits, by the id that the caller chose
 *   mark, span   facts about devices, classes and the queue (store.h)
 *
 * Flags of a task (links): 1 an edge names it as a source, 2 another batch has joined it, 4 it has
 * edges.  not_before is above 0 exactly while it has the hold TIME.
 *
 * Columns that a later version has added are the last ones, as in a file that was migrated.
 */
#ifndef GPQ_SQLITE_SCHEMA_H
#define GPQ_SQLITE_SCHEMA_H

#define GPQ_APPLICATION_ID 0x47505144 /* "GPQD" */
#define GPQ_SCHEMA_VERSION 3

#define GPQ_SCHEMA                                                                               \
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
    " flags INTEGER NOT NULL, options BLOB NOT NULL,"                                            \
    " last_end INTEGER NOT NULL DEFAULT 0) STRICT;"                                              \
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
    " cause INTEGER NOT NULL, key INTEGER, ready INTEGER NOT NULL DEFAULT 0) STRICT;"            \
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
    " ready INTEGER NOT NULL DEFAULT 0, said TEXT,"                                              \
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

#define GPQ_TASK_COLUMNS                                                                    \
    "t.id, t.state, t.holds, t.outcome, t.shape, t.spec, t.priority, t.place, t.round,"     \
    " t.attempt, t.charged, t.losses, t.cancel, t.unmet, t.links, t.not_before, t.expires," \
    " t.ended, t.cause, t.ready"
#define GPQ_ATTEMPT_COLUMNS                                                            \
    "a.task, a.number, a.round, a.outcome, a.returned, a.claimed, a.started, a.ended," \
    " a.returned_at, a.charged, a.status, a.devices, a.run, a.text, a.ready, a.said"
#define GPQ_BATCH_COLUMNS                                                              \
    "id, name, made, ended, numbers, total, joined, busy, held, ready, running, done," \
    " success, error, timeout, crashed, cancelled, no_worker, skipped, lost, at_once," \
    " max_fails, percent, flags, options, last_end"

/* Each statement is prepared once, at its first use. */
#define GPQ_SQL_MAP(X)                                                                           \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                  \
    X(COMMIT, "COMMIT")                                                                          \
    X(ROLLBACK, "ROLLBACK")                                                                      \
    X(SAVEPOINT, "SAVEPOINT submit")                                                             \
    X(SAVEPOINT_UNDO, "ROLLBACK TO submit")                                                      \
    X(SAVEPOINT_END, "RELEASE submit")                                                           \
    X(COUNTER_READ, "SELECT value FROM counter WHERE name = ?1")                                 \
    X(COUNTER_WRITE, "UPDATE counter SET value = ?2 WHERE name = ?1")                            \
    X(BATCH_MAKE, "INSERT INTO batch(name, made, at_once, max_fails, percent, flags, options)"   \
                  " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                         \
    X(BATCH_READ, "SELECT " GPQ_BATCH_COLUMNS " FROM batch WHERE id = ?1")                       \
    X(BATCH_WRITE, "UPDATE batch SET ended = ?2, numbers = ?3, total = ?4, joined = ?5,"         \
                   " busy = ?6, held = ?7, ready = ?8, running = ?9, done = ?10,"                \
                   " success = ?11, error = ?12, timeout = ?13, crashed = ?14,"                  \
                   " cancelled = ?15, no_worker = ?16, skipped = ?17, lost = ?18, flags = ?19,"  \
                   " last_end = ?20 WHERE id = ?1")                                              \
    X(BATCH_NAMED, "SELECT id FROM batch b WHERE name = ?1 AND (?2 = 0 OR EXISTS("               \
                   "SELECT 1 FROM task WHERE id = (b.id << 32) + ?2)) ORDER BY id DESC LIMIT 1") \
    X(BATCHES, "SELECT " GPQ_BATCH_COLUMNS " FROM batch WHERE id >= ?1 ORDER BY id")             \
    X(BATCH_FORGET, "DELETE FROM batch WHERE id = ?1")                                           \
    X(BATCHES_OVER, "SELECT id FROM batch WHERE ended > 0 AND ended < ?1"                        \
                    " AND id BETWEEN ?2 AND ?3")                                                 \
    X(BATCH_HAS_TASK, "SELECT 1 FROM task WHERE id BETWEEN ?1 AND ?2 LIMIT 1")                   \
    X(JOINED_ADD, "INSERT OR IGNORE INTO joined VALUES(?1, ?2)")                                 \
    X(JOINED_BY, "SELECT batch FROM joined WHERE task = ?1")                                     \
    X(JOINED_HAS, "SELECT 1 FROM joined WHERE batch = ?1 LIMIT 1")                               \
    X(JOINED_FORGET, "DELETE FROM joined WHERE task = ?1")                                       \
    X(ENVIRONMENT_FIND, "SELECT id, data FROM environment WHERE hash = ?1")                      \
    X(ENVIRONMENT_MAKE, "INSERT INTO environment(hash, data) VALUES(?1, ?2)")                    \
    X(ENVIRONMENT_READ, "SELECT data FROM environment WHERE id = ?1")                            \
    X(ENVIRONMENT_FORGET, "DELETE FROM environment WHERE id = ?1 AND NOT EXISTS"                 \
                          "(SELECT 1 FROM spec WHERE environment = ?1)")                         \
    X(SHAPE_FIND, "SELECT id FROM shape WHERE request = ?1")                                     \
    X(SHAPE_MAKE, "INSERT INTO shape(request, ready, uses) VALUES(?1, 0, 0)")                    \
    X(SHAPE_READ, "SELECT ready, uses, request FROM shape WHERE id = ?1")                        \
    X(SHAPE_WRITE, "UPDATE shape SET ready = ?2, uses = ?3 WHERE id = ?1")                       \
    X(SHAPE_FORGET, "DELETE FROM shape WHERE id = ?1")                                           \
    X(SHAPES, "SELECT id, ready, request FROM shape WHERE ready > 0 ORDER BY id")                \
    X(SPEC_MAKE, "INSERT INTO spec(uses, content, shape, options, environment, priority,"        \
                 " on_error, on_timeout, on_crash, on_oom, backoff, backoff_cap, begins,"        \
                 " expires, once)"                                                               \
                 " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)")    \
    X(SPEC_READ, "SELECT content, shape, options, environment, priority, on_error, on_timeout,"  \
                 " on_crash, on_oom, backoff, backoff_cap, begins, expires, once, uses"          \
                 " FROM spec WHERE id = ?1")                                                     \
    X(SPEC_USES, "UPDATE spec SET uses = uses + ?2 WHERE id = ?1")                               \
    X(SPEC_FORGET, "DELETE FROM spec WHERE id = ?1")                                             \
    X(TASK_ADD, "INSERT INTO task VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"     \
                " ?13, ?14, ?15, ?16, ?17, ?18, ?19, nullif(?20, 0), ?21)")                      \
    X(TASK_READ, "SELECT " GPQ_TASK_COLUMNS " FROM task t WHERE id = ?1")                        \
    X(TASK_WRITE, "UPDATE task SET state = ?2, holds = ?3, outcome = ?4, round = ?5,"            \
                  " attempt = ?6, charged = ?7, losses = ?8, cancel = ?9, unmet = ?10,"          \
                  " not_before = ?11, ended = ?12, cause = ?13, ready = ?14 WHERE id = ?1")      \
    X(TASK_CLAIM, "UPDATE task SET state = 3, attempt = ?2, charged = ?3 WHERE id = ?1")         \
    X(TASK_PLACE, "UPDATE task SET shape = ?2, spec = ?3, priority = ?4, place = ?5,"            \
                  " expires = ?6 WHERE id = ?1")                                                 \
    X(TASK_LINK, "UPDATE task SET links = links | ?2 WHERE id = ?1 AND links & ?2 <> ?2")        \
    X(TASK_FORGET, "DELETE FROM task WHERE id = ?1")                                             \
    X(TASK_TURN, "SELECT " GPQ_TASK_COLUMNS " FROM task t WHERE holds = 8 AND id >> 32 = ?1"     \
                 " ORDER BY priority DESC, place LIMIT 1")                                       \
    X(TASK_DUE, "SELECT id FROM task WHERE not_before > 0 AND not_before <= ?1")                 \
    X(TASK_NEXT_DUE, "SELECT min(not_before) FROM task WHERE not_before > 0")                    \
    X(TASK_EXPIRED, "SELECT id FROM task WHERE expires > 0 AND state < 3 AND expires <= ?1")     \
    X(TASK_NEXT_EXPIRY, "SELECT min(expires) FROM task WHERE expires > 0 AND state < 3")         \
    X(TASK_IDS, "SELECT id FROM task WHERE id BETWEEN ?1 AND ?2 ORDER BY id")                    \
    X(TASK_ENDS, "SELECT id, state, ended FROM task WHERE id > ?1 ORDER BY id LIMIT ?2")         \
    X(TASKS, "SELECT " GPQ_TASK_COLUMNS " FROM task t WHERE id BETWEEN ?1 AND ?2 ORDER BY id")   \
    X(TASKS_WHOLE, "SELECT " GPQ_TASK_COLUMNS ", p.line, p.name, p.content, p.key, a.stamp"      \
                   " FROM task t JOIN payload p ON p.id = t.id LEFT JOIN attempt a"              \
                   " ON a.task = t.id AND a.number = t.attempt AND t.outcome = 1"                \
                   " WHERE t.id BETWEEN ?1 AND ?2 ORDER BY t.id")                                \
    X(MEMBERS, "SELECT id FROM task WHERE id > ?1 AND id BETWEEN ?2 AND ?3"                      \
               " UNION ALL SELECT task FROM joined WHERE batch = ?4 AND task > ?1 ORDER BY 1")   \
    X(READY_SAME, "SELECT " GPQ_TASK_COLUMNS " FROM task t WHERE state = 2 AND shape = ?1"       \
                  " AND priority = ?2 AND place > ?3 ORDER BY place LIMIT ?4")                   \
    X(READY_LESS, "SELECT " GPQ_TASK_COLUMNS " FROM task t WHERE state = 2 AND shape = ?1"       \
                  " AND priority < ?2 ORDER BY priority DESC, place LIMIT ?4")                   \
    X(PAYLOAD_ADD, "INSERT INTO payload VALUES(?1, ?2, ?3, ?4, ?5)")                             \
    X(ATTEMPT_STAMP, "SELECT stamp FROM attempt WHERE task = ?1 AND number = ?2")                \
    X(PAYLOAD_FORGET, "DELETE FROM payload WHERE id = ?1")                                       \
    X(JOIN_FIND, "SELECT id FROM task WHERE key = ?1 ORDER BY id DESC")                          \
    X(JOIN_READ, "SELECT b.name, p.key, p.content, s.content FROM task t"                        \
                 " CROSS JOIN batch b ON b.id = t.id >> 32 CROSS JOIN payload p ON p.id = t.id"  \
                 " CROSS JOIN spec s ON s.id = t.spec WHERE t.id = ?1")                          \
    X(EDGE_ADD, "INSERT OR IGNORE INTO edge VALUES(?1, ?2, ?3, ?4)")                             \
    X(EDGE_MET, "UPDATE edge SET met = ?4 WHERE task = ?1 AND source = ?2 AND condition = ?3")   \
    X(EDGES_OF, "SELECT source, condition, met FROM edge WHERE task = ?1"                        \
                " ORDER BY source, condition")                                                   \
    X(EDGES_FROM, "SELECT 1 FROM edge WHERE source = ?1 LIMIT 1")                                \
    X(EDGES_UNMET, "SELECT task, condition FROM edge WHERE source = ?1 AND met = 0"              \
                   " ORDER BY task, condition")                                                  \
    X(EDGES_WAITING, "SELECT 1 FROM edge e JOIN task t ON t.id = e.task"                         \
                     " WHERE e.source = ?1 AND e.met = 0 AND t.state = 1 LIMIT 1")               \
    X(EDGES_FORGET, "DELETE FROM edge WHERE task = ?1")                                          \
    X(EDGES_FORGET_SOURCE, "DELETE FROM edge WHERE source = ?1")                                 \
    X(ATTEMPT_ADD, "INSERT INTO attempt(task, number, round, claimed, devices, run, ready)"      \
                   " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                        \
    X(ATTEMPT_END, "UPDATE attempt SET outcome = ?3, started = ?4, ended = ?5, status = ?6,"     \
                   " text = ?7, stamp = ?8, devices = coalesce(?9, devices), said = ?10"         \
                   " WHERE task = ?1 AND number = ?2")                                           \
    X(ATTEMPT_RETURN, "UPDATE attempt SET returned = ?3, returned_at = ?4, charged = 0,"         \
                      " text = ?5, devices = coalesce(?6, devices), started = ?7"                \
                      " WHERE task = ?1 AND number = ?2")                                        \
    X(ATTEMPTS, "SELECT " GPQ_ATTEMPT_COLUMNS " FROM attempt a WHERE task = ?1 ORDER BY number") \
    X(ATTEMPTS_RUNNING, "SELECT " GPQ_ATTEMPT_COLUMNS " FROM task t INDEXED BY task_running"     \
                        " CROSS JOIN attempt a ON a.task = t.id AND a.number = t.attempt"        \
                        " WHERE t.state = 3 ORDER BY t.id")                                      \
    X(HISTORY, "SELECT " GPQ_ATTEMPT_COLUMNS ", t.id, t.state, t.outcome, t.round, t.attempt,"   \
               " t.ended, t.ready, t.shape, t.spec, p.name, p.content FROM task t"               \
               " LEFT JOIN attempt a ON a.task = t.id"                                           \
               " LEFT JOIN payload p ON p.id = iif(?3, t.id, NULL)"                              \
               " WHERE t.id BETWEEN ?1 AND ?2 ORDER BY t.id, a.number")                          \
    X(HISTORY_ROUNDS, "SELECT task, round, outcome, ended, attempt FROM round"                   \
                      " WHERE task BETWEEN ?1 AND ?2 ORDER BY task, round")                      \
    X(ATTEMPTS_FORGET, "DELETE FROM attempt WHERE task = ?1")                                    \
    X(ROUND_KEEP, "INSERT INTO round SELECT ?1, ?2, ?3,"                                         \
                  " (SELECT coalesce(max(number), 0) FROM attempt"                               \
                  " WHERE task = ?1 AND round = ?2),"                                            \
                  " ?4, ?5, r.attempt, r.size, r.data, r.file"                                   \
                  " FROM (SELECT 1) LEFT JOIN result r ON r.id = ?1")                            \
    X(ROUNDS, "SELECT round, outcome, attempt, ended, cause FROM round WHERE task = ?1"          \
              " ORDER BY round")                                                                 \
    X(ROUNDS_FORGET, "DELETE FROM round WHERE task = ?1")                                        \
    X(RESULT_ADD, "INSERT OR REPLACE INTO result VALUES(?1, ?2, ?3, ?4, ?5)")                    \
    X(RESULT_READ, "SELECT id, attempt, size, data, file FROM result WHERE id = ?1")             \
    X(RESULT_IS_FILE, "SELECT 1 FROM result WHERE id = ?1 AND attempt = ?2 AND file IS NOT NULL" \
                      " UNION ALL SELECT 1 FROM round WHERE task = ?1"                           \
                      " AND result_attempt = ?2 AND file IS NOT NULL LIMIT 1")                   \
    X(RESULT_FILES, "SELECT id, attempt, size, NULL, file FROM result WHERE file IS NOT NULL"    \
                    " UNION ALL SELECT task, result_attempt, size, NULL, file FROM round"        \
                    " WHERE file IS NOT NULL")                                                   \
    X(RESULT_FORGET, "DELETE FROM result WHERE id = ?1")                                         \
    X(REQUEST_ADD, "INSERT INTO request VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")             \
    X(REQUEST_READ, "SELECT batch, added, joined, again, changed, first, placed FROM request"    \
                    " WHERE id = ?1")                                                            \
    X(REQUEST_FORGET, "DELETE FROM request WHERE made < ?1")                                     \
    X(MARK_SET, "INSERT OR REPLACE INTO mark VALUES(?1, ?2, ?3, ?4)")                            \
    X(MARK_FORGET, "DELETE FROM mark WHERE kind = ?1 AND subject = ?2")                          \
    X(MARKS, "SELECT kind, subject, text, since FROM mark ORDER BY kind, subject")               \
    X(SPAN_ADD, "INSERT INTO span(kind, subject, reason, text, since, until, since_boot,"        \
                " until_boot, boot) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                 \
    X(SPAN_END, "UPDATE span SET until = ?2, until_boot = ?3 WHERE id = ?1 AND until = 0")       \
    X(SPANS, "SELECT id, kind, subject, reason, text, since, until, since_boot, until_boot,"     \
             " boot FROM span WHERE id > ?2 AND (until = 0 OR until >= ?1) ORDER BY id")         \
    X(SPAN_FORGET,                                                                               \
      "DELETE FROM span WHERE until > 0 AND until < ?1 AND until <"                              \
      " coalesce((SELECT made FROM batch WHERE id = (SELECT min(id) FROM batch)), ?1)")

#define GPQ_X_SQL(name, text) GPQ_SQL_##name,
enum gpq_sql { GPQ_SQL_MAP(GPQ_X_SQL) GPQ_SQLS };
#undef GPQ_X_SQL

#endif
