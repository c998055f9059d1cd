/* SPDX-License-Identifier: MIT */
/*
 * follow.h - clients that wait until tasks have ended, and those that follow a batch.
 *
 * Nothing polls: a watcher goes through the changes of each commit, and reads the store when one of
 * them may have ended its tasks.
 */
#ifndef GPQ_AGENT_FOLLOW_H
#define GPQ_AGENT_FOLLOW_H

#include <jansson.h>

#include "queue/agent/agent.h"
#include "queue/agent/attached.h"

enum gpq_wish_kind { GPQ_WISH_NONE, GPQ_WISH_WAIT, GPQ_WISH_FOLLOW, GPQ_WISH_WATCH };

/* The part of a request whose reply follows after a commit.  NONE with a batch: the batch may have
 * ended without a change of a task, by its seal. */
struct gpq_wish {
    enum gpq_wish_kind kind;
    uint32_t batch;  /* 0 = the list */
    uint64_t *tasks; /* sorted; its owner frees it */
    size_t n;
    uint32_t parts; /* WATCH: bits of enum gpq_watch_part */
    uint64_t every; /* WATCH: ns between snapshots */
    struct gpq_attached *attached; /* tasks that end with the connection; its owner frees it */
};

struct gpq_watcher {
    struct gpq_wish wish;
    struct gpq_client *client;
    json_t *id;         /* of the request */
    bool begun;
    bool stale;         /* changes were not seen: read the store */
    size_t pending;     /* tasks of the list that have not ended */
    uint32_t joined;    /* tasks of other batches */
    uint64_t *other;    /* FOLLOW: their ids, sorted */
    size_t n_other;
    uint64_t missed;    /* changes that the client has no room for */
    uint64_t shown;     /* WATCH: version of the last snapshot; 0 = none */
    uint64_t shown_at;  /* WATCH: when it was sent, CLOCK_MONOTONIC */
    uint64_t stuck_at;  /* WATCH: since when the client has not read all of it; 0 = it has */
    struct gpq_watcher *next;
};

/* Takes the wish.  NULL: no memory, and nothing was taken. */
struct gpq_watcher *gpq_watcher_new(struct gpq_client *c, json_t *id, struct gpq_wish *wish);
void gpq_watcher_free(struct gpq_watcher *w);
void gpq_wish_free(struct gpq_wish *wish);

/* After a commit: sends lines that the watcher's client may see now.  True: that was the last. */
bool gpq_watcher_look(struct gpq_agent *a, struct gpq_watcher *w);

#endif
