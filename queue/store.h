/* SPDX-License-Identifier: MIT */
/*
 * store.h - the contract of a store: batches of tasks, and how they change.
 *
 * A store keeps the queue in a state directory.  One process owns the directory, and one
 * thread of it calls the store.  An engine implements the operations: sqlite/ in files,
 * tests/queue/memstore.c in memory as the model of the tests, a server's later.
 *
 * Transactions.  Every change lies between begin and commit.  An operation that is refused
 * has changed nothing, and the transaction goes on.  An operation that fails with
 * GPQ_EFULL, GPQ_ENOMEM, GPQ_EIO or GPQ_EDAMAGED makes the transaction fail: commit
 * returns the same code, and nothing of it remains.  After GPQ_EIO or GPQ_EDAMAGED every
 * later call fails with it until the store is closed, since the state of the disk is
 * unknown after a failed sync.
 *
 * Results.  The result of an operation holds if the commit succeeds.  Until then no caller
 * may show it to a client.                                                        [Q1 Q2]
 *
 * Guarantees of a store.  The agent's and the runner's (Q4, Q5, Q9, Q12) stand in theirs.
 * Q1  A commit that returned 0 survives SIGKILL and a power cut.  A submit of n items is
 *     one change: all or none.  Sent twice, its request id makes it one.  A commit to a file
 *     that was removed or replaced fails with GPQ_EIO.
 * Q2  A claim raises the number of the attempt, and charges it, before the attempt may
 *     start; an outcome counts only after its commit.
 * Q3  A task has at most one running attempt.  An operation on an attempt with another
 *     number than the running one fails with GPQ_ESTALE and changes nothing.  A round has
 *     one outcome; retry opens a new round and keeps the old one.
 * Q6  Joining compares the bytes of content and key, not their hashes.
 * Q7  Ready tasks of a shape come by priority, and then in the order of their submits.  A
 *     task keeps its place over retries, returns, holds and restarts.
 * Q8  A task with --after waits for its conditions.  If one cannot be met any more, it
 *     ends SKIPPED with the cause, and so do the tasks that wait for it, in the same
 *     commit.  No cycle can be made; an unknown id is refused.
 * Q10 Cancelling a waiting task is final.  Cancelling a running one is a durable wish.
 * Q11 The cost of submit, claim and complete does not grow with the number of tasks.
 *
 * Times are ns since 1970 (CLOCK_REALTIME), 0 for none.  Ids are never reused.  Texts are
 * UTF-8 without NUL, NULL for none, and are copied.  Pointers in rows live until the
 * callback returns.
 */
#ifndef GPQ_STORE_H
#define GPQ_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/findings.h"
#include "queue/words.h"

struct gpq_store;
struct gpq_migration; /* sqlite/migrate.h */

struct gpq_bytes {
    const void *data;
    size_t size;
};

/* The reason of a failure, for a person: subject, fact with its value, way out. */
struct gpq_error {
    int code;
    char text[512];
};

/*
 * The id of a task, of which people see "12.44": the 44th task of batch 12.  A batch has
 * at most 2^31 - 1 tasks.
 */
#define GPQ_TASK(batch, number) (((uint64_t)(batch) << 32) | (uint64_t)(number))
#define GPQ_BATCH_OF(task) ((uint32_t)((task) >> 32))
#define GPQ_NUMBER_OF(task) ((uint32_t)(task))

/* ---- Open and close ---- */

struct gpq_options {
    const char *directory; /* exists; its file system can lock and sync (files/statedir.h) */
    const char *vfs;       /* of SQLite; NULL = that of the system.  For tests */
    uint32_t results_inline; /* bytes of a result in the file itself; 0 = 64 KiB */
    bool only_check; /* for check alone: makes nothing, migrates nothing, and leaves the
                        file as it is until a check repairs */
    bool read_only;  /* with only_check: no process can write the directory.  EUNUSABLE if a log
                        beside the file has changes that the file lacks */
    const struct gpq_migration *migration; /* NULL = that of the program.  For tests */
};

/* ---- Submit ---- */

/* The source that a task waits for: a task, or all tasks of a batch (number 0 of its id). */
struct gpq_after {
    uint64_t id;
    uint32_t condition; /* enum gpq_condition */
};

/* The properties that many tasks of a submit share. */
struct gpq_spec {
    struct gpq_bytes content;     /* part of a task's identity: class, directory, request */
    struct gpq_bytes shape;       /* tasks with equal bytes have one shape */
    struct gpq_bytes options;     /* not of the identity: limits, outputs */
    struct gpq_bytes environment; /* kept once per distinct bytes */
    int32_t priority;             /* the greatest first */
    uint32_t retries[GPQ_CAUSES]; /* an attempt that ended by this cause is followed by
                                     another while the round has had no more than this
                                     many charged attempts */
    uint64_t backoff;             /* ns before the first retry; doubles with each */
    uint64_t backoff_cap;         /* ns; 0 = no cap */
    uint64_t begin;               /* time before which it does not start; 0 = none */
    uint64_t expires;             /* TIMEOUT if not started by then; 0 = never */
    const struct gpq_after *after;
    uint32_t n_after;
    bool at_most_once; /* once it has started it ends LOST instead of returning */
    bool held;         /* USER: until gpq_release */
};

struct gpq_item {
    uint32_t spec;            /* index in the submit's specs */
    uint32_t line;            /* in the user's file; 0 = none */
    const char *name;         /* NULL = none */
    struct gpq_bytes content; /* argv, or the payload for a class */
    struct gpq_bytes key;     /* given by the user; none: the content is the key */
    struct gpq_bytes stamp;   /* state of the files that it names, compared with that of
                                 gpq_complete */
};

struct gpq_submit {
    const char *request; /* an id of the caller's that is never used for another submit */
    const char *name;    /* of the batch */
    uint32_t batch;      /* append to this one; 0 = a new one */
    uint32_t at_once;    /* tasks of the batch that run at a time; 0 = no limit */
    uint32_t max_fails;  /* more failures than this cancel the tasks that wait */
    uint32_t max_fails_percent; /* the same, of the tasks of the batch; 100: no limit.
                                   Both fields 0: no limit */
    struct gpq_bytes options; /* of the batch: notifications */
    bool fails_limited;  /* max_fails holds, also as 0 */
    bool notify;         /* each end of the batch sets the mark "notify" of it, in the same
                            commit; its subject is the batch as text, "12" */
    bool open;           /* more will be appended: the batch does not end before seal */
    bool join;           /* see submit */
    bool join_anyway;    /* also where the stamp differs */
    bool only_try;       /* returns the placements, and changes nothing */
    const struct gpq_spec *specs;
    const struct gpq_item *items;
    uint32_t n_specs, n_items;
    /* Called for each item that is CHANGED, with the stamp of the success.  It calls no store.
     * NULL: none.  A request that was committed before has no such calls. */
    void (*changed)(uint32_t item, struct gpq_bytes stamp, void *user);
    void *user;
};

struct gpq_placed {
    uint64_t task;
    uint32_t how; /* enum gpq_how */
};

struct gpq_submitted {
    uint32_t batch;
    uint32_t count[GPQ_HOWS];
    bool repeated; /* this request id was committed before, and this is its result */
};

/* ---- Selecting tasks ---- */

/*
 * Tasks of a batch, or those of a list; all tasks if both are empty.  A batch without first
 * and last includes the tasks that it has joined.
 * A list is in ascending order, without an id twice; ids that no task has are skipped.
 */
struct gpq_select {
    uint32_t batch;       /* 0 = of any */
    uint32_t first, last; /* numbers in the batch; last 0 = to the end */
    const uint64_t *tasks;
    size_t n_tasks;
    uint32_t states;   /* mask of 1 << enum gpq_state; 0 = any */
    uint32_t outcomes; /* mask of 1 << enum gpq_outcome; 0 = any, and none */
    uint32_t spec;     /* 0 = any */
};

/* ---- Rows ---- */

struct gpq_task {
    uint64_t id;
    uint32_t state, holds, outcome; /* outcome 0 = none yet */
    uint32_t shape, spec;
    int32_t priority;
    int64_t order;      /* place among tasks of one priority */
    uint32_t round;     /* from 1 */
    uint32_t attempt;   /* number of the last claimed attempt of all rounds; 0 = none */
    uint32_t charged;   /* attempts of this round */
    uint32_t losses;    /* returns in a row by LOST and DEVICE */
    bool cancel;        /* wish: end it */
    uint64_t not_before, expires, ended;
    uint64_t ready;     /* since when it is READY; RUNNING: until its claim; DONE: if it was
                           READY when it ended.  0 = it is HELD, or the time is not known */
    uint64_t cause;     /* SKIPPED: one of the tasks or batches whose condition cannot be
                           met; CANCELLED: the batch with too many failures */
    /* From here on only where the call says so. */
    uint32_t line;
    const char *name;
    struct gpq_bytes content, key, stamp;
};

struct gpq_batch {
    uint32_t id;
    const char *name;
    uint64_t made, ended; /* ended: the latest end of a task, or of what
                             else it went on for; 0 = not over */
    uint32_t total, state[GPQ_STATES], outcome[GPQ_OUTCOMES]; /* counts, joined included */
    uint32_t joined;      /* of the total: tasks of other batches */
    uint32_t at_once, max_fails, max_fails_percent;
    bool fails_limited, open, held, notify;
    struct gpq_bytes options;
};

struct gpq_attempt {
    uint64_t task;
    uint32_t number, round;
    uint32_t outcome;    /* 0 = running, or returned */
    uint32_t returned;   /* enum gpq_return, if returned_at is set */
    uint64_t ready;      /* since when the task was READY; 0 = not known */
    uint64_t claimed, started, ended, returned_at;
    bool charged;
    int32_t status;      /* exit status, or minus the signal */
    const char *devices; /* as text */
    const char *run;     /* identity of the run: nonce, boot id */
    const char *text;    /* why it ended so */
    const char *said;    /* the last line that the task printed */
};

struct gpq_round {
    uint32_t round, outcome, attempt; /* attempt: its last one */
    uint64_t ended, cause;
};

/*
 * A row of the history of a batch: an attempt, or the end of a round by which no attempt
 * ended, such as a task that was cancelled while it waited.  Of such an end the attempt has
 * task, round, outcome and ended, number 0, and ready if the task was READY then.
 */
struct gpq_history {
    struct gpq_attempt attempt;
    uint32_t shape, spec; /* of the task as it is now */
    const char *name;     /* both only with `names` */
    struct gpq_bytes content;
};

struct gpq_result {
    uint64_t task;
    uint32_t attempt;
    uint64_t size;
    struct gpq_bytes data; /* if kept in the file of the store */
    const char *file;      /* else the name below results/ */
};

struct gpq_shape {
    uint32_t id, ready; /* ready: tasks */
    int32_t priority;   /* of its first one */
    int64_t order;
    struct gpq_bytes request;
};

/* A durable fact about a subject, such as a paused queue or a drained device. */
struct gpq_mark {
    const char *kind;    /* "pause", "drain", "evict", "notify" and others */
    const char *subject; /* "" = everything */
    const char *text;
    uint64_t since;
};

/* The state of a device, of a task at the head, or of the agent, for a time. */
struct gpq_span {
    uint64_t id;
    const char *kind, *subject, *reason, *text;
    uint64_t since, until; /* until 0 = goes on */
    uint64_t since_boot, until_boot; /* the same in ns of CLOCK_BOOTTIME, which never jumps */
    const char *boot;      /* id of that boot */
};

/* One change of a task that a transaction made, which followers show after the commit. */
struct gpq_change {
    uint64_t task;
    uint32_t shape;
    uint32_t from_shape; /* that it had before */
    uint8_t from, to; /* enum gpq_state; from 0 = new, to 0 = forgotten by purge */
    uint8_t outcome;  /* if to is DONE */
    bool cancel;      /* a wish that the running attempt ends */
    uint32_t attempt; /* if it is forgotten: the number of its last attempt */
};

struct gpq_end {
    uint64_t task;
    uint32_t attempt;
    uint32_t outcome; /* one of the library's: SUCCESS to NO_WORKER */
    bool oom;         /* it may be retried for this cause, too */
    bool final;       /* no retry */
    int32_t status;
    const char *text;
    const char *said;    /* the last line that it printed, up to GPQ_SAID bytes; not kept of
                            SUCCESS */
    const char *devices; /* if they were not known at the claim; NULL = as they are */
    uint64_t started, ended;
    struct gpq_bytes result; /* inline */
    const char *result_file; /* or a file below results/, whole and synced */
    uint64_t result_size;
    struct gpq_bytes stamp; /* of SUCCESS: the state of the files that the task names */
    struct gpq_bytes shape; /* of the retry, if it asks for more; empty = as before */
};

struct gpq_back {
    uint64_t task;
    uint32_t attempt;
    uint32_t why; /* enum gpq_return */
    const char *text;
    const char *devices; /* if they were not known at the claim; NULL = as they are */
    uint64_t started;    /* 0 = it has not started, or the time is not known */
};

enum { GPQ_PURGE_LOOKS = 16, GPQ_SAID = 200 };

/* One thing that is not as it has to be (findings.h). */
struct gpq_finding {
    uint32_t kind;
    const char *place; /* "task 12.44", "batch 12", "queue.db" */
    const char *text;  /* the fact, with its numbers */
    bool repairable;   /* a check with `repair` mends it */
    bool repaired;     /* and has done so, durably */
};

typedef int (*gpq_finding_fn)(const struct gpq_finding *f, void *user);
typedef int (*gpq_task_fn)(const struct gpq_task *t, void *user);
typedef int (*gpq_batch_fn)(const struct gpq_batch *b, void *user);
typedef int (*gpq_attempt_fn)(const struct gpq_attempt *a, void *user);
typedef int (*gpq_history_fn)(const struct gpq_history *h, void *user);
typedef int (*gpq_round_fn)(const struct gpq_round *r, void *user);
typedef int (*gpq_result_fn)(const struct gpq_result *r, void *user);
typedef int (*gpq_shape_fn)(const struct gpq_shape *s, void *user);
typedef int (*gpq_mark_fn)(const struct gpq_mark *m, void *user);
typedef int (*gpq_span_fn)(const struct gpq_span *s, void *user);

/*
 * The operations of an engine.  Each returns 0 or a count, or a negative GPQ_E code with
 * *e filled.  Those that take `now` note it as the time of their changes.
 *
 * Readers call their function for each row in the order that is named, until it returns
 * another value than 0, which the reader then returns.  The function calls no store.
 */
struct gpq_engine {
    const char *name;
    void (*close)(struct gpq_store *s);
    int (*begin)(struct gpq_store *s, struct gpq_error *e);
    int (*commit)(struct gpq_store *s, struct gpq_error *e);
    void (*rollback)(struct gpq_store *s);

    /* Adds tasks, or joins them.  placed has n_items entries, or is NULL.
     *
     * With `join`, an item joins the last task that has the same key in a batch of the same
     * name.  The key of an item is its `key`, or else content of spec and item.  A given
     * key joins given keys only, and both contents must be equal, else EKEY.  A task
     * that has not ended, or ended SUCCESS, is JOINED as it is.  If it ended SUCCESS with
     * another stamp than the item's, and both have one, a new task is made: CHANGED.  If it
     * ended otherwise, a new round of it begins with the item's spec, but with its own
     * conditions: AGAIN.  A task that is joined counts in both batches.
     *
     * A task whose conditions are met at once does not wait; if one cannot be met, it ends
     * SKIPPED at once.
     *
     * Errors: EKEY, ENOTFOUND (batch, --after), EFULL, EINVAL (a spec's index, more
     * than 2^31 - 1 tasks).  EREFUSED: the batch to append to is not open; or tasks wait
     * for its end, and a spec has conditions, or an item joins a task that has some; or a
     * spec waits for the batch to append to.  If the error is about an item with a line,
     * e->text begins with "line N: ". */
    int (*submit)(struct gpq_store *s, uint64_t now, const struct gpq_submit *what,
                  struct gpq_submitted *ret, struct gpq_placed *placed, struct gpq_error *e);
    /* Ends an open batch: nothing is appended any more.  Errors: ENOTFOUND. */
    int (*seal)(struct gpq_store *s, uint64_t now, uint32_t batch, struct gpq_error *e);

    /* Begins an attempt of a READY task: READY -> RUNNING.  [Q2]
     * Returns the number of the attempt.  Errors: ENOTFOUND; ESTALE: it is not READY. */
    int64_t (*claim)(struct gpq_store *s, uint64_t now, uint64_t task, const char *devices,
                     const char *run, struct gpq_error *e);
    /* Ends an attempt: RUNNING -> DONE, or a retry: READY, or HELD until its backoff has
     * passed.  Returns 1 if the task is DONE, else 0.  With the wish to cancel it is not
     * retried.  The time is end->ended, which is not 0.  Errors: ENOTFOUND, ESTALE, EINVAL:
     * outcome, ended, or the size of the result or of said.  [Q3] */
    int (*complete)(struct gpq_store *s, const struct gpq_end *end, struct gpq_error *e);
    /* Returns a claimed attempt uncharged: RUNNING -> READY, at its place.  The third in
     * a row that is LOST or DEVICE ends the task LOST, and with at_most_once any return but
     * UNSTARTED does.  The wish to cancel ends it CANCELLED.  Returns 1 if the task is
     * DONE, else 0.  Errors: ENOTFOUND, ESTALE, EINVAL: why, or started.  [Q4] */
    int (*give_back)(struct gpq_store *s, uint64_t now, const struct gpq_back *back,
                     struct gpq_error *e);

    /* Each changes all selected tasks to which it applies, and returns their number. */
    /* Waiting tasks end CANCELLED; running ones get the wish.  A whole batch that is open is
     * sealed.  [Q10] */
    int64_t (*cancel)(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                      struct gpq_error *e);
    /* Opens a new round of tasks that are DONE, and were not SUCCESS unless which->outcomes
     * names it.  Conditions of --after count anew, when all rounds are open; those whose
     * source was purged are gone.  A begin or an expiry that has passed does not count, and
     * a shape of gpq_end is that of the spec again. */
    int64_t (*retry)(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                     struct gpq_error *e);
    /* Holds waiting tasks, or lets them go on.  A selection of a whole batch also holds
     * for tasks that are appended later. */
    int64_t (*hold)(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                    bool held, struct gpq_error *e);
    /* Gives waiting tasks another spec.  Its begin, after and held are not used, and its
     * content must be that which the tasks have, else EINVAL. */
    int64_t (*respec)(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                      const struct gpq_spec *spec, struct gpq_error *e);
    /* Puts waiting tasks before all others of their priority, and keeps their order. */
    int64_t (*first)(struct gpq_store *s, const struct gpq_select *which,
                     struct gpq_error *e);
    /* Makes tasks READY whose time has come, and ends those that have expired.
     * *ret_next: the next time at which something will be due, 0 = none. */
    int64_t (*due)(struct gpq_store *s, uint64_t now, uint64_t *ret_next,
                   struct gpq_error *e);
    /* Forgets up to `most` tasks that ended before `before`, those with the lowest ids, with
     * keep_failed only those of SUCCESS; never a task of a batch that goes on, or for which
     * another one waits.  Then batches that have no task left, and rows that nothing names
     * any more; spans that had ended before it, and before the first batch was made, so that
     * each attempt keeps those of its time.  The caller removes the files of the forgotten
     * tasks after the commit.
     *
     * With `from` it looks only at the GPQ_PURGE_LOOKS * most tasks behind *from, and at
     * their batches, and sets *from to the last one that it has looked at, 0 at the end: a
     * caller that goes through all of them has short transactions. */
    int64_t (*purge)(struct gpq_store *s, uint64_t before, bool keep_failed, uint32_t most,
                     uint64_t *from, struct gpq_error *e);

    int (*mark)(struct gpq_store *s, const struct gpq_mark *m, struct gpq_error *e);
    int (*unmark)(struct gpq_store *s, const char *kind, const char *subject,
                  struct gpq_error *e);
    int (*span_begin)(struct gpq_store *s, const struct gpq_span *span, uint64_t *ret_id,
                      struct gpq_error *e);
    int (*span_end)(struct gpq_store *s, uint64_t id, uint64_t until, uint64_t until_boot,
                    struct gpq_error *e);

    /* Readers, inside a transaction or outside. */
    int (*batches)(struct gpq_store *s, uint32_t from, gpq_batch_fn fn, void *user,
                   struct gpq_error *e); /* by id, from this one on */
    int (*batch_named)(struct gpq_store *s, const char *name, uint32_t number, uint32_t *ret_batch,
                       struct gpq_error *e); /* the last one with this
                       name, and with a task of its own of this number; 0 = any */
    int (*tasks)(struct gpq_store *s, const struct gpq_select *which, uint64_t after,
                 bool whole, gpq_task_fn fn, void *user,
                 struct gpq_error *e); /* by id, above `after`; whole: all fields */
    int (*ready)(struct gpq_store *s, uint32_t shape, int32_t priority, int64_t order,
                 uint32_t most, gpq_task_fn fn, void *user,
                 struct gpq_error *e); /* READY tasks in the order of Q7, behind this place;
                                          INT32_MAX, INT64_MIN: from the first on */
    int (*turn)(struct gpq_store *s, uint32_t batch, gpq_task_fn fn, void *user,
                struct gpq_error *e); /* the task of this batch that gets its next turn, if one
                                         waits for nothing but a turn (at_once) */
    int (*shapes)(struct gpq_store *s, gpq_shape_fn fn, void *user,
                  struct gpq_error *e); /* those with a READY task, by id */
    int (*shape)(struct gpq_store *s, uint32_t id, gpq_shape_fn fn, void *user,
                 struct gpq_error *e); /* id and request of the shape of any task; ENOTFOUND */
    int (*running)(struct gpq_store *s, gpq_attempt_fn fn, void *user,
                   struct gpq_error *e); /* attempts of RUNNING tasks, by task */
    int (*attempts)(struct gpq_store *s, uint64_t task, gpq_attempt_fn fn, void *user,
                    struct gpq_error *e); /* by number */
    /* The attempts of the batch's own tasks, and the ends of their rounds by which no attempt
     * ended: those where the last attempt of the round has not the outcome of the round.  An
     * attempt whose return ended the round has its outcome here.
     * Rows that ended before `since` are left out; an attempt that runs is always in.  By
     * task, then by round, then by number, where number 0, the end of the round, is last.
     * The rows behind a row, of which task, round and number count, so that a reader goes on
     * behind the last row that it has seen; NULL: all rows.  last: the greatest number of a
     * task, 0 = that of the batch; the cost grows with the tasks, also where none has a row. */
    int (*history)(struct gpq_store *s, uint32_t batch, uint32_t last, uint64_t since,
                   const struct gpq_attempt *behind, bool names, gpq_history_fn fn, void *user,
                   struct gpq_error *e);
    int (*rounds)(struct gpq_store *s, uint64_t task, gpq_round_fn fn, void *user,
                  struct gpq_error *e); /* those before the present one */
    int (*after)(struct gpq_store *s, uint64_t task,
                 int (*fn)(const struct gpq_after *a, bool met, void *user), void *user,
                 struct gpq_error *e);
    int (*spec)(struct gpq_store *s, uint32_t id,
                int (*fn)(const struct gpq_spec *spec, void *user), void *user,
                struct gpq_error *e); /* without after and held */
    int (*result)(struct gpq_store *s, uint64_t task, gpq_result_fn fn, void *user,
                  struct gpq_error *e);
    int (*names_file)(struct gpq_store *s, uint64_t task, uint32_t attempt,
                      struct gpq_error *e); /* 1: a result of this attempt, of any round,
                                               is a file */
    int (*result_files)(struct gpq_store *s, gpq_result_fn fn, void *user,
                        struct gpq_error *e); /* all results that are files, of any round */
    int (*marks)(struct gpq_store *s, gpq_mark_fn fn, void *user, struct gpq_error *e);
    int (*spans)(struct gpq_store *s, uint64_t since, uint64_t from, gpq_span_fn fn,
                 void *user, struct gpq_error *e); /* that had not ended before `since`, by
                                                      id, above `from` */

    /* Checks the whole store, outside a transaction: the file, each row against the rows
     * that belong to it, and the counts against a recount.  A store that only the operations
     * above have changed has no finding, also after a crash or a power cut.
     *
     * With `repair`, each repair is part of one transaction, after whose commit it is
     * reported as repaired.  Then the check starts anew, and reports the findings that are
     * left.  Without it, and where the file is damaged, it writes nothing.  After repairs
     * the caller closes the store.  Returns the number of findings that are left.
     * EDAMAGED: SQLite finds the file damaged; the findings say where. */
    int64_t (*check)(struct gpq_store *s, uint64_t now, bool repair, gpq_finding_fn fn,
                     void *user, struct gpq_error *e);
};

/* The first member of each engine's store. */
struct gpq_store {
    const struct gpq_engine *engine;
    struct gpq_change *changes; /* of this or the last transaction, until the next begin */
    size_t n_changes;
    bool notes; /* this or the last transaction has set a mark "notify" */
};

/*
 * Opens the store in options->directory, and makes it if there is none.
 *
 * A file of a newer version is not opened, and stays as it is.  A file of an older version
 * is copied to queue.db.vN, N being its version, and then migrated in one transaction.
 *
 * Errors: EBUSY, EVERSION, EDAMAGED, EIO, EFULL (also: no space for the copy), ENOMEM,
 * EINVAL (the path is too long).  With only_check: ENOTFOUND, and EVERSION also for an
 * older file.
 */
int gpq_sqlite_open(const struct gpq_options *options, struct gpq_store **ret,
                    struct gpq_error *e);

/* Fills *e; returns code. */
int gpq_fail(struct gpq_error *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
