/* SPDX-License-Identifier: MIT */
/* watch.h - the snapshots of an agent, for programs that show the present moment. */
#ifndef GPQ_CLIENT_WATCH_H
#define GPQ_CLIENT_WATCH_H

#include "queue/client/session.h"

struct gpq_watching {
    struct gpq_session s;
    json_t *request;
    char *text; /* of the last snapshot */
};

/* what: a list of parts, which it takes; NULL: all but metrics.  every: ns between two snapshots;
 * 0: as often as the agent sends them.  0, or the exit status after saying why.  The caller closes
 * in both cases. */
int gpq_watching_open(struct gpq_watching *w, const struct call *call, enum gpq_agent_wish wish,
                      json_t *what, uint64_t every);
void gpq_watching_close(struct gpq_watching *w);

/* Readable when a snapshot arrives, or the agent has gone.  Another one may be here already: call
 * gpq_watching_next until it is LATE.  It changes with the connection. */
int gpq_watching_fd(const struct gpq_watching *w);

/*
 * Waits for the next snapshot: GPQ_LINE, and *ret is its JSON (view/now/snapshot.h) until the next
 * call.  deadline: as of gpq_session_hear; 1 = no wait.  If the agent is replaced, it connects
 * anew, and the next snapshot is a first one again.  GPQ_CLOSED: no agent answers, which was said;
 * without a wait, the agent has gone, and gpq_watching_again looks for another one.
 * GPQ_STRANGE: the agent has refused, which was said.
 */
enum gpq_heard gpq_watching_next(struct gpq_watching *w, uint64_t deadline, const char **ret);
/* Connects to an agent that runs; false: there is none, which is not said, and none is started. */
bool gpq_watching_again(struct gpq_watching *w);

#endif
