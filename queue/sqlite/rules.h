/* SPDX-License-Identifier: MIT */
/*
 * rules.h - the statements of a check: each finds the rows that break one rule, or mends one.
 *
 * A rule is (kind of finding, place, how it is mended, search, repair).  The search returns one row
 * for each finding: the id of the place, a text, and up to four numbers.  The repair has the id as
 * ?1, the numbers from ?2 on, and the time of the check as ?9.  It may be several statements.
 *
 * The order matters.  A repair may rely on the rules before it: rows that belong to no task are
 * gone, then tasks fit to their edges and attempts, and then counts are taken from the tasks.
 * Batches are counted by check_batch.c, between GPQ_ROW_RULES and GPQ_END_RULES.
 *
 * The searches go through whole tables, but find related rows by an index.
 */
#ifndef GPQ_SQLITE_RULES_H
#define GPQ_SQLITE_RULES_H

#define GPQ_ID_TEXT(id) "(" id " >> 32) || '.' || (" id " & 4294967295)"
#define GPQ_IS_TASK(id) "EXISTS(SELECT 1 FROM task WHERE task.id = " id ")"
/* An attempt that has neither ended nor returned. */
#define GPQ_LIVES_OF_A "outcome = 0 AND a.returned_at = 0"
#define GPQ_LIVES "outcome = 0 AND returned_at = 0"

/* Rows of a task that is not there. */
#define GPQ_ORPHANS(X, table, column)                                                             \
    X(ORPHAN, TASK, SQL,                                                                          \
      "SELECT DISTINCT " column ", 'is not there, and table " table " has rows of it'"            \
      " FROM " table " WHERE NOT " GPQ_IS_TASK(table "." column),                                 \
      "DELETE FROM " table " WHERE " column " = ?1")

#define GPQ_ROW_RULES(X)                                                                          \
    GPQ_ORPHANS(X, "payload", "id")                                                               \
    GPQ_ORPHANS(X, "attempt", "task")                                                             \
    GPQ_ORPHANS(X, "round", "task")                                                               \
    GPQ_ORPHANS(X, "result", "id")                                                                \
    GPQ_ORPHANS(X, "edge", "task")                                                                \
    GPQ_ORPHANS(X, "joined", "task")                                                              \
    /* Of a batch that is lost, its tasks are not. */                                             \
    X(ORPHAN, BATCH, SQL,                                                                         \
      "SELECT DISTINCT id >> 32, 'is not there, and has tasks' FROM task"                         \
      " WHERE NOT EXISTS(SELECT 1 FROM batch WHERE batch.id = task.id >> 32)",                    \
      "INSERT INTO batch(id, made, at_once, max_fails, percent, flags, options)"                  \
      " VALUES(?1, ?9, 0, 0, 0, 0, x'')")                                                         \
    X(ORPHAN, BATCH, SQL,                                                                         \
      "SELECT DISTINCT batch, 'is not there, and has joined tasks' FROM joined"                   \
      " WHERE NOT EXISTS(SELECT 1 FROM batch WHERE batch.id = joined.batch)",                     \
      "DELETE FROM joined WHERE batch = ?1")                                                      \
    /* How the lost source ended is not known: a person decides about the task. */                \
    X(EDGE, TASK, SQL,                                                                            \
      "SELECT task, 'waits for ' || " GPQ_ID_TEXT("source") " || ', which is not there;"          \
      " a repair holds the task until you release or cancel it', source FROM edge"                \
      " WHERE NOT CASE source & 4294967295 WHEN 0"                                                \
      " THEN EXISTS(SELECT 1 FROM batch WHERE batch.id = edge.source >> 32)"                      \
      " ELSE " GPQ_IS_TASK("edge.source") " END",                                                 \
      "UPDATE task SET holds = (holds & ~8) | 4 WHERE id = ?1 AND state = 1 AND EXISTS"           \
      "(SELECT 1 FROM edge WHERE task = ?1 AND source = ?2 AND met = 0);"                         \
      "DELETE FROM edge WHERE task = ?1 AND source = ?2")                                         \
    X(EDGE, TASK, NONE,                                                                           \
      "SELECT task, 'has condition ' || condition || ' on ' || " GPQ_ID_TEXT("source")            \
      " || ', met ' || met || '; expected are 0 to 2, and 0 or 1' FROM edge"                      \
      " WHERE condition NOT BETWEEN 0 AND 2 OR met NOT BETWEEN 0 AND 1", "")                      \
    /* ---- Tasks ---- */                                                                         \
    X(TASK, TASK, NONE,                                                                           \
      "SELECT id, 'has number ' || (id & 4294967295) || ', expected 1 to 2147483647' FROM task"   \
      " WHERE id & 4294967295 NOT BETWEEN 1 AND 2147483647", "")                                  \
    X(TASK, TASK, NONE,                                                                           \
      "SELECT id, 'has state ' || state || ', expected 1 to 4' FROM task"                         \
      " WHERE state NOT BETWEEN 1 AND 4", "")                                                     \
    X(TASK, TASK, NONE,                                                                           \
      "SELECT id, 'its command or payload is not there' FROM task"                                \
      " WHERE NOT EXISTS(SELECT 1 FROM payload WHERE payload.id = task.id)", "")                  \
    X(SPEC, TASK, NONE,                                                                           \
      "SELECT id, 'its spec ' || spec || ' is not there' FROM task"                               \
      " WHERE NOT EXISTS(SELECT 1 FROM spec WHERE spec.id = task.spec)", "")                      \
    X(SHAPE, TASK, SQL,                                                                           \
      "SELECT t.id, 'its shape ' || t.shape || ' is not there', s.shape FROM task t"              \
      " JOIN spec s ON s.id = t.spec WHERE NOT EXISTS(SELECT 1 FROM shape WHERE id = t.shape)"    \
      " AND EXISTS(SELECT 1 FROM shape WHERE id = s.shape)",                                      \
      "UPDATE task SET shape = ?2 WHERE id = ?1")                                                 \
    X(SHAPE, TASK, NONE,                                                                          \
      "SELECT t.id, 'its shape ' || t.shape || ' is not there' FROM task t"                       \
      " LEFT JOIN spec s ON s.id = t.spec"                                                        \
      " WHERE NOT EXISTS(SELECT 1 FROM shape WHERE id = t.shape)"                                 \
      " AND NOT EXISTS(SELECT 1 FROM shape WHERE id = s.shape)", "")                              \
    /* HELD exactly while something holds it.  Without any reason it is held for its turn, or for \
     * a person. */                                                                               \
    X(TASK, TASK, SQL,                                                                            \
      "SELECT id, 'is held by ' || holds || ' with ' || unmet || ' open conditions and outcome ' " \
      "|| outcome || '; its time and its edges make that ' || want || ', ' || n || ' and 0',"     \
      " want, n FROM (SELECT *, CASE WHEN reasons > 0 THEN reasons WHEN turns > 0 THEN 8 ELSE 4"  \
      " END AS want FROM (SELECT *, (n > 0) + 2 * (not_before > 0) + (holds & 4) AS reasons"      \
      " FROM (SELECT t.*, (SELECT count(*) FROM edge WHERE task = t.id AND met = 0) AS n,"        \
      " (SELECT at_once FROM batch WHERE id = t.id >> 32) AS turns FROM task t WHERE state = 1)))" \
      " WHERE holds <> want OR unmet <> n OR outcome <> 0 OR ended <> 0 OR cause <> 0"            \
      " OR cancel <> 0",                                                                          \
      "UPDATE task SET holds = ?2, unmet = ?3, outcome = 0, ended = 0, cause = 0, cancel = 0"     \
      " WHERE id = ?1")                                                                           \
    X(TASK, TASK, SQL,                                                                            \
      "SELECT id, 'is ready, and ' || n || ' of its conditions are not met', n FROM"              \
      " (SELECT id, (SELECT count(*) FROM edge WHERE task = t.id AND met = 0) AS n FROM task t"   \
      " WHERE state = 2) WHERE n > 0",                                                            \
      "UPDATE task SET state = 1, holds = 1, unmet = ?2, not_before = 0, outcome = 0, ended = 0," \
      " cause = 0, cancel = 0, ready = 0 WHERE id = ?1")                                          \
    X(TASK, TASK, SQL,                                                                            \
      "SELECT id, 'is ready with holds ' || holds || ', time ' || not_before || ', outcome '"     \
      " || outcome || ', end ' || ended || ', cause ' || cause || ', cancel ' || cancel ||"       \
      " ' and ' || unmet || ' open conditions, expected 0 of each' FROM task WHERE state = 2"     \
      " AND (holds <> 0 OR not_before <> 0 OR outcome <> 0 OR ended <> 0 OR cause <> 0"           \
      " OR cancel <> 0 OR unmet <> 0)",                                                           \
      "UPDATE task SET holds = 0, not_before = 0, outcome = 0, ended = 0, cause = 0, cancel = 0," \
      " unmet = 0 WHERE id = ?1")                                                                 \
    X(TASK, TASK, SQL,                                                                            \
      "SELECT id, 'runs with holds ' || holds || ', time ' || not_before || ', outcome '"         \
      " || outcome || ', end ' || ended || ', cause ' || cause || ' and ' || unmet ||"            \
      " ' open conditions, expected 0 of each' FROM task t WHERE state = 3"                       \
      " AND (holds <> 0 OR not_before <> 0 OR outcome <> 0 OR ended <> 0 OR cause <> 0"           \
      " OR unmet <> 0 OR EXISTS(SELECT 1 FROM edge WHERE task = t.id AND met = 0))",              \
      "UPDATE task SET holds = 0, not_before = 0, outcome = 0, ended = 0, cause = 0, unmet = 0"   \
      " WHERE id = ?1; UPDATE edge SET met = 1 WHERE task = ?1 AND met = 0")                      \
    X(TASK, TASK, SQL,                                                                            \
      "SELECT id, 'is done with outcome ' || outcome || ', expected 1 to 8; a repair takes that"  \
      " of its last attempt, or lost', (SELECT CASE WHEN a.outcome BETWEEN 1 AND 6"               \
      " THEN a.outcome END FROM attempt a WHERE a.task = t.id AND a.number = t.attempt)"          \
      " FROM task t WHERE state = 4 AND outcome NOT BETWEEN 1 AND 8",                             \
      "UPDATE task SET outcome = coalesce(?2, 8) WHERE id = ?1")                                  \
    X(TASK, TASK, SQL,                                                                            \
      "SELECT id, 'is done with holds ' || holds || ', time ' || not_before || ' and end '"       \
      " || ended || ', expected 0, 0 and a time' FROM task WHERE state = 4"                       \
      " AND (holds <> 0 OR not_before <> 0 OR ended <= 0)",                                       \
      "UPDATE task SET holds = 0, not_before = 0,"                                                \
      " ended = CASE WHEN ended > 0 THEN ended ELSE ?9 END WHERE id = ?1")                        \
    /* ---- Attempts and rounds ---- */                                                           \
    X(ATTEMPT, TASK, SQL,                                                                         \
      "SELECT t.id, 'has attempt ' || t.attempt || ', and there is an attempt ' || max(number),"  \
      " max(number) FROM attempt a JOIN task t ON t.id = a.task GROUP BY a.task"                  \
      " HAVING max(number) > t.attempt",                                                          \
      "UPDATE task SET attempt = ?2 WHERE id = ?1")                                               \
    X(ATTEMPT, TASK, SQL,                                                                         \
      "SELECT a.task, 'has attempt ' || a.number || ', which has not ended and is not the one"    \
      " that runs', a.number FROM attempt a JOIN task t ON t.id = a.task"                         \
      " WHERE a." GPQ_LIVES_OF_A " AND NOT (t.state = 3 AND t.attempt = a.number)",               \
      "UPDATE attempt SET returned = 2, returned_at = ?9, charged = 0,"                           \
      " text = 'a check found it without an end' WHERE task = ?1 AND number = ?2")                \
    /* Its command may have run: the next agent calls it lost. */                                 \
    X(ATTEMPT, TASK, SQL,                                                                         \
      "SELECT id, 'runs attempt ' || attempt || ', which is not there or has ended; after a"      \
      " repair the next agent calls it lost' FROM task t WHERE state = 3 AND NOT EXISTS"          \
      "(SELECT 1 FROM attempt WHERE task = t.id AND number = t.attempt AND " GPQ_LIVES ")",       \
      "UPDATE task SET attempt = attempt + (attempt = 0 OR EXISTS(SELECT 1 FROM attempt"          \
      " WHERE attempt.task = ?1 AND attempt.number = task.attempt)) WHERE id = ?1;"               \
      "INSERT INTO attempt(task, number, round, claimed, text, ready)"                            \
      " SELECT id, attempt, round, ?9, 'added by a check', ready FROM task WHERE id = ?1")        \
    X(TASK, TASK, SQL,                                                                            \
      "SELECT id, CASE state WHEN 1 THEN 'is held' ELSE 'runs' END || ', and was ready at '"      \
      " || ready || ', expected ' || want, want FROM (SELECT id, state, ready, CASE state"        \
      " WHEN 1 THEN 0 ELSE (SELECT a.ready FROM attempt a WHERE a.task = t.id"                    \
      " AND a.number = t.attempt) END AS want FROM task t WHERE state IN (1, 3))"                 \
      " WHERE ready <> want",                                                                     \
      "UPDATE task SET ready = ?2 WHERE id = ?1")                                                 \
    X(ATTEMPT, TASK, SQL,                                                                         \
      "SELECT task, 'has attempt ' || number || ' with outcome ' || outcome ||"                   \
      " ' and a last line, expected after a bad end only', number FROM attempt"                   \
      " WHERE said IS NOT NULL AND outcome < 2",                                                  \
      "UPDATE attempt SET said = NULL WHERE task = ?1 AND number = ?2")                           \
    X(ROUND, TASK, SQL,                                                                           \
      "SELECT t.id, 'is in round ' || t.round || ', and round ' || max(r.round) || ' is over',"   \
      " max(r.round) + 1 FROM round r JOIN task t ON t.id = r.task GROUP BY r.task"               \
      " HAVING max(r.round) >= t.round",                                                          \
      "UPDATE task SET round = ?2 WHERE id = ?1")                                                 \
    X(ROUND, TASK, SQL,                                                                           \
      "SELECT id, 'is in round ' || round || ', expected 1 or more' FROM task WHERE round < 1",   \
      "UPDATE task SET round = 1 WHERE id = ?1")                                                  \
    X(ROUND, TASK, NONE,                                                                          \
      "SELECT id, 'is in round ' || round || ', and ' || n || ' rounds before it are there' FROM" \
      " (SELECT id, round, (SELECT count(*) FROM round r WHERE r.task = t.id) AS n FROM task t)"  \
      " WHERE n < round - 1", "")                                                                 \
    X(ATTEMPT, TASK, SQL,                                                                         \
      "SELECT a.task, 'has attempt ' || a.number || ' of round ' || a.round ||"                   \
      " ', expected 1 to ' || t.round, a.number FROM attempt a JOIN task t ON t.id = a.task"      \
      " WHERE a.round NOT BETWEEN 1 AND t.round",                                                 \
      "UPDATE attempt SET round = (SELECT round FROM task WHERE id = ?1)"                         \
      " WHERE task = ?1 AND number = ?2")                                                         \
    X(ATTEMPT, TASK, SQL,                                                                         \
      "SELECT id, 'counts ' || charged || ' charged attempts of its round, ' || n ||"             \
      " ' are there', n FROM (SELECT id, charged, (SELECT count(*) FROM attempt a"                \
      " WHERE a.task = t.id AND a.round = t.round AND a.charged <> 0) AS n FROM task t)"          \
      " WHERE charged <> n",                                                                      \
      "UPDATE task SET charged = ?2 WHERE id = ?1")                                               \
    /* ---- Results ---- */                                                                       \
    X(RESULT, TASK, NONE,                                                                         \
      "SELECT t.id, 'has a result, and has not ended; the result of its end will replace it'"     \
      " FROM result r JOIN task t ON t.id = r.id WHERE t.state <> 4", "")                         \
    X(RESULT, TASK, NONE,                                                                         \
      "SELECT r.id, 'its result has ' || coalesce(length(r.data), 0) || ' bytes and the size '"   \
      " || r.size FROM result r WHERE (r.data IS NULL) = (r.file IS NULL)"                        \
      " OR (r.data IS NOT NULL AND length(r.data) <> r.size)", "")                                \
    X(RESULT, TASK, NONE,                                                                         \
      "SELECT r.id, 'its result is of attempt ' || r.attempt || ', expected 1 to ' || t.attempt"  \
      " FROM result r JOIN task t ON t.id = r.id"                                                 \
      " WHERE r.attempt NOT BETWEEN 1 AND t.attempt", "")                                         \
    /* ---- Flags and keys: without them, rows are not found ---- */                              \
    X(FLAG, TASK, SQL,                                                                            \
      "SELECT id, 'tasks wait for it, and its flag for that is not set' FROM task"                \
      " WHERE links & 1 = 0 AND EXISTS(SELECT 1 FROM edge WHERE source = task.id)",               \
      "UPDATE task SET links = links | 1 WHERE id = ?1")                                          \
    X(FLAG, TASK, SQL,                                                                            \
      "SELECT id, 'another batch has joined it, and its flag for that is not set' FROM task"      \
      " WHERE links & 2 = 0 AND EXISTS(SELECT 1 FROM joined WHERE task = task.id)",               \
      "UPDATE task SET links = links | 2 WHERE id = ?1")                                          \
    X(FLAG, TASK, SQL,                                                                            \
      "SELECT id, 'has conditions, and its flag for that is not set' FROM task"                   \
      " WHERE links & 4 = 0 AND EXISTS(SELECT 1 FROM edge WHERE task = task.id)",                 \
      "UPDATE task SET links = links | 4 WHERE id = ?1")                                          \
    X(FLAG, BATCH, SQL,                                                                           \
      "SELECT id, 'tasks wait for its end, and its flag for that is not set' FROM batch"          \
      " WHERE flags & 8 = 0 AND EXISTS(SELECT 1 FROM edge WHERE source = batch.id << 32)",        \
      "UPDATE batch SET flags = flags | 8 WHERE id = ?1")                                         \
    X(KEY, TASK, SQL,                                                                             \
      "SELECT id, 'its key is ' || coalesce(key, 'none') || ', expected '"                        \
      " || coalesce(want, 'none'), want FROM (SELECT t.id, t.key,"                                \
      " gpq_key(b.name, s.content, p.content, p.key) AS want FROM task t"                         \
      " JOIN batch b ON b.id = t.id >> 32 JOIN payload p ON p.id = t.id"                          \
      " JOIN spec s ON s.id = t.spec) WHERE key IS NOT want",                                     \
      "UPDATE task SET key = ?2 WHERE id = ?1")                                                   \
    /* ---- Rows that tasks share ---- */                                                         \
    X(SPEC, SPEC, NONE,                                                                           \
      "SELECT id, 'its environment ' || environment || ' is not there' FROM spec"                 \
      " WHERE NOT EXISTS(SELECT 1 FROM environment e WHERE e.id = spec.environment)", "")         \
    X(SPEC, SPEC, SQL,                                                                            \
      "SELECT s.id, 'counts ' || s.uses || ' tasks, ' || coalesce(g.n, 0) || ' are there',"       \
      " coalesce(g.n, 0) FROM spec s LEFT JOIN (SELECT spec, count(*) AS n FROM task"             \
      " GROUP BY spec) g ON g.spec = s.id WHERE s.uses <> coalesce(g.n, 0) OR s.uses = 0",        \
      "UPDATE spec SET uses = ?2 WHERE id = ?1; DELETE FROM spec WHERE id = ?1 AND ?2 = 0")       \
    X(SPEC, ENVIRONMENT, SQL,                                                                     \
      "SELECT id, 'no spec names it' FROM environment e"                                          \
      " WHERE NOT EXISTS(SELECT 1 FROM spec WHERE environment = e.id)",                           \
      "DELETE FROM environment WHERE id = ?1")                                                    \
    X(SHAPE, SPEC, NONE,                                                                          \
      "SELECT id, 'its shape ' || shape || ' is not there' FROM spec"                             \
      " WHERE NOT EXISTS(SELECT 1 FROM shape WHERE shape.id = spec.shape)", "")                   \
    X(SHAPE, SHAPE, SQL,                                                                          \
      "SELECT id, 'counts ' || ready || ' ready tasks and ' || uses || ' uses, ' || n ||"         \
      " ' and ' || m || ' are there', n, m FROM (SELECT h.id, h.ready, h.uses,"                   \
      " coalesce(t.ready, 0) AS n, coalesce(t.all_of_them, 0) + coalesce(s.specs, 0) AS m"        \
      " FROM shape h LEFT JOIN (SELECT shape, sum(state = 2) AS ready, count(*) AS all_of_them"   \
      " FROM task GROUP BY shape) t ON t.shape = h.id LEFT JOIN (SELECT shape, count(*) AS specs" \
      " FROM spec GROUP BY shape) s ON s.shape = h.id) WHERE ready <> n OR uses <> m OR uses = 0", \
      "UPDATE shape SET ready = ?2, uses = ?3 WHERE id = ?1;"                                     \
      "DELETE FROM shape WHERE id = ?1 AND ?3 = 0")                                               \
    /* ---- Numbers that are given next ---- */                                                   \
    X(COUNTER, FILE, SQL,                                                                         \
      "SELECT 0, 'the last place is ' || coalesce(value, 'not there') || ', and a task has '"     \
      " || most, most FROM (SELECT (SELECT value FROM counter WHERE name = 'order') AS value,"    \
      " max(0, coalesce(max(place), 0)) AS most FROM task) WHERE coalesce(value, -1) < most",     \
      "INSERT OR REPLACE INTO counter VALUES('order', ?2)")                                       \
    X(COUNTER, FILE, SQL,                                                                         \
      "SELECT 0, 'the first place is ' || coalesce(value, 'not there') || ', and a task has '"    \
      " || least, least FROM (SELECT (SELECT value FROM counter WHERE name = 'low') AS value,"    \
      " min(0, coalesce(min(place), 0)) AS least FROM task) WHERE coalesce(value, 1) > least",    \
      "INSERT OR REPLACE INTO counter VALUES('low', ?2)")                                         \
    X(COUNTER, FILE, SQL,                                                                         \
      "SELECT 0, 'the last batch is ' || coalesce(value, 'not there') || ', and there was a"      \
      " batch ' || most, most FROM (SELECT (SELECT seq FROM sqlite_sequence"                      \
      " WHERE name = 'batch') AS value, max(coalesce((SELECT max(id) FROM batch), 0),"            \
      " coalesce((SELECT max(batch) FROM request), 0)) AS most) WHERE coalesce(value, 0) < most", \
      "DELETE FROM sqlite_sequence WHERE name = 'batch';"                                         \
      "INSERT INTO sqlite_sequence VALUES('batch', ?2)")

/* Ends from which something has not followed: the engine makes it follow, with the counts that are
 * right by now. */
#define GPQ_END_RULES(X)                                                                          \
    X(END, BATCH, SQL,                                                                            \
      "SELECT id, 'has ended, and goes on: ' || done || ' of ' || total || ' tasks are done'"     \
      " FROM batch WHERE ended <> 0 AND (flags & 1 OR done <> total)",                            \
      "UPDATE batch SET ended = 0 WHERE id = ?1")                                                 \
    X(END, BATCH, ENDS_BATCH,                                                                     \
      "SELECT id, 'all its ' || total || ' tasks are done, and it has not ended' FROM batch"      \
      " WHERE ended = 0 AND flags & 1 = 0 AND done = total", "")                                  \
    X(END, TASK, FOLLOWS,                                                                         \
      "SELECT DISTINCT e.source, 'has ended, and a task still waits for that' FROM edge e"        \
      " JOIN task t ON t.id = e.task JOIN task s ON s.id = e.source"                              \
      " WHERE e.met = 0 AND t.state = 1 AND s.state = 4", "")                                     \
    X(END, BATCH_ID, FOLLOWS,                                                                     \
      "SELECT DISTINCT e.source, 'has ended, and a task still waits for that' FROM edge e"        \
      " JOIN task t ON t.id = e.task JOIN batch s ON s.id = e.source >> 32"                       \
      " WHERE e.met = 0 AND t.state = 1 AND e.source & 4294967295 = 0 AND s.ended <> 0", "")      \
    X(END, BATCH, TURN,                                                                           \
      "SELECT id, 'has ' || busy || ' tasks ready or running of ' || at_once || ' at a time,"     \
      " and others wait for their turn' FROM batch b WHERE busy < at_once AND EXISTS"             \
      "(SELECT 1 FROM task WHERE holds = 8 AND id >> 32 = b.id)", "")

#endif
