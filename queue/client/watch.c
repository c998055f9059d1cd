/* SPDX-License-Identifier: MIT */
/* watch.c - asks the agent for snapshots, and receives them. */
#include "queue/client/watch.h"

#include <stdlib.h>

int gpq_watching_open(struct gpq_watching *w, const struct call *call, enum gpq_agent_wish wish,
                      json_t *what, uint64_t every)
{
    *w = (struct gpq_watching){ .s.fd = -1,
                                .request =
                                    json_pack("{s:s, s:I, s:o*}", "do", "watch", "at_most_every",
                                              (json_int_t)every, "what", what) };
    int status = gpq_session_open(&w->s, call, wish);
    return status != 0 ? status : gpq_session_send(&w->s, json_incref(w->request));
}

void gpq_watching_close(struct gpq_watching *w)
{
    gpq_session_close(&w->s);
    json_decref(w->request);
    free(w->text);
    *w = (struct gpq_watching){ .s.fd = -1 };
}

int gpq_watching_fd(const struct gpq_watching *w)
{
    return w->s.fd;
}

static bool connect_again(struct gpq_watching *w)
{
    return gpq_session_again(&w->s) == 0 && gpq_session_send(&w->s, json_incref(w->request)) == 0;
}

/* Takes the line. */
static enum gpq_heard take(struct gpq_watching *w, json_t *line, const char **ret)
{
    const json_t *snapshot = json_object_get(line, "snapshot");
    bool refused = gpq_session_judge(line) != 0;
    free(w->text);
    w->text = refused ? NULL : json_dumps(snapshot, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(line);
    *ret = w->text;
    if (!w->text && !refused)
        (void)gpq_say(EXIT_FAILED, "no memory for a snapshot, or the agent sent none");
    return w->text ? GPQ_LINE : GPQ_STRANGE;
}

enum gpq_heard gpq_watching_next(struct gpq_watching *w, uint64_t deadline, const char **ret)
{
    json_t *line;
    enum gpq_heard heard;
    *ret = NULL;
    while ((heard = gpq_session_hear(&w->s, deadline, &line)) == GPQ_CLOSED)
        if (deadline == 1 || !connect_again(w))
            return GPQ_CLOSED;
    return heard == GPQ_LINE ? take(w, line, ret) : heard;
}

bool gpq_watching_again(struct gpq_watching *w)
{
    const struct call *call = w->s.call;
    gpq_session_close(&w->s);
    return gpq_session_try(&w->s, call) && gpq_session_send(&w->s, json_incref(w->request)) == 0;
}
