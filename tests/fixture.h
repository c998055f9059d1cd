/* SPDX-License-Identifier: MIT */
/*
 * fixture.h - the steps most process tests share: make a dispatcher, give it tasks, keep what
 * it tells, end it.  Everything that is not meant to fail is checked here.
 *
 *     gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:4");
 *     T_RUN(d, &log, SUCCESS, .tag = 7);
 *     t_end(&d, &log);
 */
#ifndef T_FIXTURE_H
#define T_FIXTURE_H

#include "harness.h"

#include "process.h"

#include <gpudispatch/gpudispatch.h>

/* ---- codes ---- */

void t_check_code(const char *file, int line, const char *call, int code, int wanted);
/* Checks what a call answers: T_CODE(gpud_dispatcher_stop(d, 9), EINVAL). */
#define T_CODE(call, name) t_check_code(__FILE__, __LINE__, #call, (call), GPUD_##name)
#define T_OK(call) T_CODE(call, OK)

/* ---- life ---- */

/* gpud_init with one definition named "test". */
void t_init(gpud_setup_fn *setup, gpud_process_fn *process, gpud_cleanup_fn *cleanup);

#define T_OPTIONS(...) \
    (&(struct gpud_options){ .struct_size = sizeof(struct gpud_options), __VA_ARGS__ })
#define T_TASK(...) \
    (&(struct gpud_task_desc){ .struct_size = sizeof(struct gpud_task_desc), __VA_ARGS__ })
#define T_CALLBACKS(...) \
    (&(struct gpud_callbacks){ .struct_size = sizeof(struct gpud_callbacks),   \
                               .task_size = sizeof(struct gpud_task_desc), __VA_ARGS__ })

/* A loop over both values of option drive. */
#define T_EACH_DRIVE(drive) \
    for (uint32_t drive = GPUD_DRIVE_THREAD; (drive) <= GPUD_DRIVE_CALLER; (drive)++)

/* A process function that does nothing. */
int t_no_work(gpud_task *t, void *state);
gpud_dispatcher *t_create(const struct gpud_options *options);
#define T_CREATE(...) t_create(T_OPTIONS(__VA_ARGS__))
/* t_init without cleanup, and t_create: T_BEGIN(NULL, process, .devices = "cpu:4"). The twin of
 * t_end. */
gpud_dispatcher *t_begin(gpud_setup_fn *setup, gpud_process_fn *process,
                         const struct gpud_options *options);
#define T_BEGIN(setup, process, ...) t_begin((setup), (process), T_OPTIONS(__VA_ARGS__))
/* Submits without waiting; gives the id. */
uint64_t t_submit(gpud_dispatcher *d, const struct gpud_task_desc *task);
/* The same where nobody needs the id: T_SUBMIT(d, .tag = 7). */
#define T_SUBMIT(d, ...) ((void)t_submit((d), T_TASK(__VA_ARGS__)))
/* Submits a task for each of the tags from..to-1. */
void t_submit_tags(gpud_dispatcher *d, uint64_t from, uint64_t to);
/* Waits until so many slots take tasks. */
void t_wait_ready(gpud_dispatcher *d, unsigned slots);
struct gpud_slot_stats t_slot(gpud_dispatcher *d, unsigned slot);
/* Waits until a slot has entered a state (needs drive THREAD, or a thread that drives). */
void t_wait_slot(gpud_dispatcher *d, unsigned slot, uint32_t state);
struct gpud_stats t_stats(gpud_dispatcher *d);
/* Whether no task of the dispatcher is queued.  For t_wait_until. */
int t_none_queued(void *dispatcher);

/* ---- what has been told ---- */

/* Copies of events, with all they point to. */
struct t_log {
    struct gpud_event *list;
    size_t count, room;
};

/* Copies an event, after checks that hold for any of its kind.  A gpud_event_fn; user is the log.
 */
int t_log_add(const struct gpud_event *e, void *log);
void t_log_free(struct t_log *log);
size_t t_log_count(const struct t_log *log, uint32_t kind);
size_t t_log_outcomes(const struct t_log *log, uint32_t outcome);
/* Number n (from 0) of a kind; NULL when there are not as many. */
const struct gpud_event *t_log_at(const struct t_log *log, uint32_t kind, size_t n);

/* One poll; gives its answer (a count or EEND; others fail). */
int t_poll(gpud_dispatcher *d, struct t_log *log, uint64_t wait);
/* Polls until the log holds `n` outcomes in all. */
void t_collect(gpud_dispatcher *d, struct t_log *log, size_t n);
/* Polls until the log holds `n` events of a kind. */
void t_collect_kind(gpud_dispatcher *d, struct t_log *log, uint32_t kind, size_t n);
/* Polls until the log holds a LOG event whose text contains these words. */
void t_collect_log(gpud_dispatcher *d, struct t_log *log, const char *words);
/* Polls until EEND: after close. */
void t_collect_rest(gpud_dispatcher *d, struct t_log *log);

void t_print_event(const struct gpud_event *e);
/* Finds the one outcome of this tag, and checks what it is (0: any). */
const struct gpud_event *t_check_outcome(const char *file, int line, const struct t_log *log,
                                         uint64_t tag, uint32_t outcome);
#define T_OUTCOME(log, tag, name) \
    t_check_outcome(__FILE__, __LINE__, (log), (tag), GPUD_OUTCOME_##name)

/* Submits a task, polls until the log has its outcome, and checks that one:
 * T_RUN(d, &log, SUCCESS, .tag = 7). */
const struct gpud_event *t_run(const char *file, int line, gpud_dispatcher *d, struct t_log *log,
                               uint32_t outcome, const struct gpud_task_desc *task);
#define T_RUN(d, log, name, ...) \
    t_run(__FILE__, __LINE__, (d), (log), GPUD_OUTCOME_##name, T_TASK(__VA_ARGS__))

/* Checks that each tag 0..n-1 has exactly one outcome and nothing else has. */
void t_check_exactly_once(const struct t_log *log, uint64_t n);

/* Ends the dispatcher, which has nothing uncollected; frees the log (may be NULL); gpud_fini. */
void t_end(gpud_dispatcher **d, struct t_log *log);
/* The same without gpud_fini. */
void t_destroy(gpud_dispatcher **d, struct t_log *log);

/* ---- processes of the library ---- */

/* Gives the worker's process of a slot that has one. */
struct t_proc t_worker(gpud_dispatcher *d, unsigned slot);
/* Gives the keeper of a worker: its parent. */
struct t_proc t_keeper_of(const struct t_proc *worker);
/* Whether a process of the library has not read yet what we have said to it: one that is
 * stopped. For t_wait_until. */
int t_word_waits(void *unused);
/* Gives the one spawner below this process. */
struct t_proc t_spawner(void);
/* Waits until it has ended. */
void t_wait_ended(const struct t_proc *p);
/* Whether the thread sleeps whose number is in this word of the page.  For t_wait_until. */
int t_thread_sleeps(void *word);
/* Stops it, and waits until it stands still: until then it may still do what it was about to do. */
void t_stop(const struct t_proc *p);
/* Stops the spawner of t_init, once it has served a dispatcher. */
struct t_proc t_stopped_spawner(void);

/* ---- limits ---- */

/* Raises the soft limit of open files (often 1,024) to `n` for the rest of the case. Returns 1, or
 * 0 where the hard limit is lower. */
int t_raise_descriptors(unsigned n);

#endif
