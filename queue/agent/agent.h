/* SPDX-License-Identifier: MIT */
/*
 * agent.h - the process that owns a state directory: it keeps the store, and runs its tasks.
 *
 *     client --- socket ---> server.c -> requests.c ---> store (one transaction a turn)
 *                  reply <---- after the commit              | changes
 *                                                            v
 *     dispatcher <--- submit, cancel --- ahead.c: the first READY tasks of each shape
 *         | GRANTED: claim, commit, then start ---> runs.c ---> runner ---> command
 *         | OUTCOME: complete, commit, then show      ^ pidfd
 *         |
 *         +--- tasks of a class of workers: claim, commit, then submit (workers.c)
 *
 * One thread does everything in turns (turn.c).  A turn reads all events, applies them in one
 * transaction, commits, and then acts: replies, starts, submits to the dispatcher.  So nothing is
 * shown or started that a power cut could take back.  The events that gather while a commit syncs
 * share the next one.                                                                   [Q1 Q2]
 *
 * Commands go on while no agent runs.  A new agent adopts those that run, books those that have
 * ended, returns those that never started, and calls the rest LOST (adopt.c), before it claims
 * anything.                                                                                [Q4]
 */
#ifndef GPQ_AGENT_AGENT_H
#define GPQ_AGENT_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <gpudispatch/gpudispatch.h>

#include "queue/agent/ports.h"
#include "queue/files/files.h"
#include "queue/runner/run.h"
#include "queue/store.h"

struct gpq_work;      /* work.h: tasks that the dispatcher has */
struct gpq_ahead;     /* ahead.c */
struct gpq_classes;   /* classes.h */
struct gpq_server;    /* server.c */
struct gpq_notify;    /* notify.c */
struct gpq_retention; /* retention.c */
struct gpq_forget;    /* forget.c */
struct gpq_spans;     /* spans.c */
struct gpq_now;       /* now.h */

/* How long ended tasks are kept. */
struct gpq_keep {
    uint64_t age;   /* ns; 0 = for ever */
    uint64_t tasks; /* how many of them; 0 = all */
};

enum { GPQ_REASON = 256 }; /* bytes of the text why nothing starts */

/* A reason that was logged, and when. */
struct gpq_logged {
    char text[GPQ_REASON];
    uint64_t at; /* CLOCK_MONOTONIC */
};

/* What has happened since the last commit (turn.h). */
struct gpq_notes {
    struct gpq_note *note; /* turn.c */
    size_t n, room;
};

/* How the agent was asked to end. */
struct gpq_stop {
    bool now;     /* nothing is claimed any more */
    bool drains;  /* ... and the agent ends when no task runs */
    bool cancels; /* ... and running tasks are cancelled */
    bool asked;   /* by a request, not by a signal (stopped.h) */
};

struct gpq_agent {
    char state[GPQ_PATH]; /* the state directory, without symbolic links */
    char boot[GPQ_BOOT + 1];
    const char *runner; /* path of gpudispatch-runner */
    const struct gpq_settings *settings; /* with which it was started; NULL in tests */
    uint64_t log_limit; /* bytes of the log of a command */
    int lock;           /* descriptor of the locked file */
    struct gpq_store *store;
    gpud_dispatcher *dispatcher;
    uint32_t devices; /* GPUs that the dispatcher has */
    uint32_t adopted; /* commands of an agent before that run on */
    struct gpq_work *work;
    struct gpq_ahead *ahead;
    struct gpq_classes *classes;
    struct gpq_server *server;
    struct gpq_notes notes;
    struct gpq_ports ports; /* of commands */
    struct gpq_notify *notify;
    struct gpq_retention *retention; /* NULL: all are kept */
    struct gpq_forget *forget;
    struct gpq_spans *spans;
    struct gpq_now *now;
    struct gpq_recent *recent; /* NULL: nobody has read records */
    struct gpq_keep keep;
    const char *notify_command; /* of batches without one of their own; NULL = none */
    uint64_t descriptors;       /* soft limit of commands (descriptors.h) */
    int epoll, timer, signals;
    uint64_t turned;   /* wall time of the last transaction */
    uint64_t next_due; /* wall time; 0 = none */
    uint64_t retry_at; /* when what waits for a second is tried again; 0 = nothing does */
    uint64_t timer_at; /* for which the timer is set */
    bool look_again;   /* at a run that has not ended though its runner has */
    struct gpq_stop stop;
    bool paused;                 /* by a mark: nothing starts */
    bool starts_wait;            /* nothing is claimed for a second, by gpq_starts_wait */
    char wait_text[GPQ_REASON];  /* why, until a start succeeds; "" = nothing was in the way */
    struct gpq_logged logged[2]; /* reasons that were logged last */
    bool trims; /* a long request was read: memory is given back before the next wait */
    bool again; /* the store has failed: the program starts anew */
    bool over;  /* the loop ends */
    int status; /* exit status */
};

/* Nothing starts for a second, for want of something that the machine should have.  The reason is
 * logged when it is another one than before, at most once a minute, and shown by status and
 * explain. */
void gpq_starts_wait(struct gpq_agent *a, const char *why);

/* Descriptors in the epoll set, each with the part of the agent that handles it. */
enum gpq_source {
    GPQ_SOURCE_SIGNALS,
    GPQ_SOURCE_TIMER,
    GPQ_SOURCE_DISPATCHER,
    GPQ_SOURCE_RUN,
    GPQ_SOURCE_LISTENER,
    GPQ_SOURCE_CLIENT
};
struct gpq_watched {
    enum gpq_source source;
    int fd;
    void *owner;
};
/* Adds it, or changes its events, which may be 0.  Level-triggered.  0, or a GPQ_E code. */
int gpq_watch(struct gpq_agent *a, struct gpq_watched *w, uint32_t events);
/* Takes it out of the set, and closes nothing. */
void gpq_unwatch(struct gpq_agent *a, struct gpq_watched *w);

uint64_t gpq_wall(void);      /* CLOCK_REALTIME, ns */
uint64_t gpq_monotonic(void); /* CLOCK_MONOTONIC, ns */
/* The wall time of a point of CLOCK_MONOTONIC; 0 of 0. */
uint64_t gpq_wall_of(uint64_t monotonic);
void gpq_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The rows of all devices, which the caller frees.  NULL: there are none, or no memory. */
struct gpud_device_info *gpq_devices_read(const struct gpq_agent *a, int *ret_n);

/* ---- server.c: clients and their lines ---- */

int gpq_server_open(struct gpq_agent *a, struct gpq_error *e);
void gpq_server_close(struct gpq_agent *a);
/* The listener or a client is ready: accepts, reads, keeps whole lines as requests. */
void gpq_server_ready(struct gpq_agent *a, struct gpq_watched *w, uint32_t events);
/* Whether requests wait for the transaction of this turn, or clients for gpq_server_settle. */
bool gpq_server_waits(const struct gpq_agent *a);
/* Inside the transaction: applies all waiting requests, and keeps their replies. */
void gpq_server_apply(struct gpq_agent *a, uint64_t now);
/* Once after each commit: sends the replies; or, with a failed one, its error in place of each of
 * them.  Then the changes of the store to clients that wait for them.  It frees clients: the events
 * that epoll returned before are done with.  Lines that had to wait become requests here, so that
 * the turn asks gpq_server_waits before it sleeps. */
void gpq_server_settle(struct gpq_agent *a, int code, const struct gpq_error *e);

/* ---- requests ---- */

/*
 * Carries out one request inside the transaction.  Returns the reply, whose members "ok", "error"
 * and "code" say how it went; never NULL but without memory.  Work outside the store follows
 * from its changes and marks.  *wish: the replies that follow after a later commit (follow.h).
 */
struct gpq_wish;
json_t *gpq_request(struct gpq_agent *a, uint64_t now, json_t *request, struct gpq_wish *wish);

/* Appends to `array` why the dispatcher does not start a task, whether it has it or not
 * (reasons.h).  GPQ_ENOMEM. */
int gpq_work_explain(struct gpq_agent *a, const struct gpq_task *t, json_t *array);
/* Time left of a batch, as a range in ns; -1: unknown (now.h). */
void gpq_now_left(struct gpq_agent *a, const struct gpq_batch *b, int64_t *ret_least,
                  int64_t *ret_most);
/* Adds to the row of a task that runs its `devices` and when it was `started`, if known. */
void gpq_work_describe(struct gpq_agent *a, const struct gpq_task *t, json_t *row);
/* When the attempt of a task that runs was started, 0 = not known, and for a task of a class the
 * names of its devices. */
uint64_t gpq_work_since(struct gpq_agent *a, uint64_t task, char devices[512]);

#endif
