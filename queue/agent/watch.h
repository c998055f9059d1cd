/* SPDX-License-Identifier: MIT */
/*
 * watch.h - clients that watch: each gets snapshots of the present moment.
 *
 * A snapshot is made before the agent sleeps, if something has changed, a client may have one, and
 * it has read all of the last one.  So a slow reader gets the newest state and misses those
 * between, and a stopped one costs a single snapshot, until it is dropped.  All clients of a turn
 * share one snapshot.  Without a change there is no timer.                              [V1 V2]
 */
#ifndef GPQ_AGENT_WATCH_H
#define GPQ_AGENT_WATCH_H

#include "queue/agent/agent.h"

/* name, word */
#define GPQ_WATCH_MAP(X)     \
    X(GPUS, "gpus")          \
    X(CLASSES, "classes")    \
    X(BATCHES, "batches")    \
    X(FINDINGS, "findings")  \
    X(ENDS, "ends")          \
    X(HISTORY, "history")    \
    X(METRICS, "metrics")
#define GPQ_X_WATCH(name, word) GPQ_WATCH_##name,
enum gpq_watch_part { GPQ_WATCH_MAP(GPQ_X_WATCH) GPQ_WATCH_PARTS };
#undef GPQ_X_WATCH

/* A client gets at most four snapshots a second. */
#define GPQ_WATCH_EVERY (UINT64_C(250) * 1000000)

/* The agent has turned, and is about to sleep. */
void gpq_watch_turn(struct gpq_agent *a);
/* Wall time of the next snapshot, or of the end of a client's patience; 0 = none. */
uint64_t gpq_watch_next(struct gpq_agent *a);

/* ---- server.c ---- */

struct gpq_watcher;
bool gpq_server_is_watched(const struct gpq_agent *a);
/* Calls fn for each one that watches.  1: something was sent to it; -1: it is dropped. */
void gpq_server_watchers(struct gpq_agent *a, int (*fn)(struct gpq_watcher *w, void *user),
                         void *user);

#endif
