/* SPDX-License-Identifier: MIT */
/* source.c - snapshots of an agent, or of a recording. */
#include "source.h"

#include <stdio.h>
#include <string.h>

#include "night.h"
#include "view/now/moment.h"
#include "view/words.h"

#ifdef GPQ_CLIENT
#include "queue/client/option.h"
#include "queue/client/watch.h"
#else
static int gpq_option_time(const struct call *call, enum option_id option, uint64_t after,
                           uint64_t *ret)
{
    (void)after;
    (void)ret;
    return call->given[option]
               ? usage(call->verb, "%s: --%s: built without the queue (-Dqueue=enabled)",
                       call->verb->name, options[option].name)
               : 0;
}
#endif

/* ---- A recording: one snapshot ---- */

static int next_of_recording(struct source *s, bool wait, struct gpv_snapshot *ret)
{
    struct gpv_snapshot *moment = s->user;

    (void)wait;
    if (!moment || moment->time == 0) {
        snprintf(s->end, sizeof s->end, "the recording has one moment");
        return -1;
    }
    *ret = *moment;
    *moment = (struct gpv_snapshot){ 0 };
    return 1;
}

static void close_recording(struct source *s)
{
    gpv_snapshot_free(s->user);
}

static int read_moment(const struct call *call, struct gpv_snapshot *ret)
{
    struct gpv_night *night = NULL;
    uint64_t at;
    char from[GPV_WORD], to[GPV_WORD];
    int status = night_read(call, 0, &night);

    if (status)
        return status;
    at = (uint64_t)night->to;
    if (at == 0) {
        fprintf(stderr, "gpudispatch: %s: the recording has no row with a time\n",
                call->verb->name);
        gpv_night_free(night);
        return EXIT_FAILED;
    }
    status = gpq_option_time(call, OPTION_AT, (uint64_t)night->from, &at);
    if (status == 0 && (at < (uint64_t)night->from || at > (uint64_t)night->to))
        status = usage(call->verb, "%s: --at: '%s' is not in the recording, from %s to %s",
                       call->verb->name, call->value[OPTION_AT], gpv_date_clock(night->from, from),
                       gpv_date_clock(night->to, to));
    if (status == 0 && gpv_moment(night, (int64_t)at, ret))
        status = night_no_memory(call);
    gpv_night_free(night);
    return status;
}

static int open_recording(struct source *s, const struct call *call)
{
    static struct gpv_snapshot moment;
    int status = read_moment(call, &moment);

    *s = (struct source){ .next = next_of_recording,
                          .close = close_recording,
                          .fd = -1,
                          .still = true,
                          .user = &moment };
    return status;
}

/* ---- An agent ---- */

#ifdef GPQ_CLIENT
enum { NO_WAIT = 1 }; /* gpq_watching_next */

/* A snapshot that cannot be read, of a later version, is passed over. */
static enum gpq_heard hear(struct source *s, uint64_t deadline, struct gpv_snapshot *ret)
{
    struct gpq_watching *w = s->user;
    const char *line;
    enum gpq_heard heard;

    do
        heard = gpq_watching_next(w, deadline, &line);
    while (heard == GPQ_LINE && gpv_snapshot_read(ret, line, strlen(line)) < 0);
    s->fd = gpq_watching_fd(w); /* of the next agent, if this one was replaced */
    return heard;
}

/* An agent that has gone is awaited, or it is lost. */
static enum gpq_heard replace(struct source *s, struct gpv_snapshot *ret)
{
    if (!s->seeks)
        return hear(s, 0, ret);
    s->lost = true;
    s->fd = -1;
    return GPQ_LATE;
}

static bool find_agent(struct source *s)
{
    s->lost = !gpq_watching_again(s->user);
    return !s->lost;
}

static int next_of_agent(struct source *s, bool wait, struct gpv_snapshot *ret)
{
    enum gpq_heard heard;

    if (s->lost && !find_agent(s))
        return 0;
    do
        heard = hear(s, wait ? 0 : NO_WAIT, ret);
    while (wait && heard == GPQ_LATE);
    if (heard == GPQ_CLOSED && !wait)
        heard = replace(s, ret);
    if (heard == GPQ_LINE)
        return 1;
    if (heard == GPQ_LATE || heard == GPQ_INTERRUPTED)
        return 0;
    snprintf(s->end, sizeof s->end, "the agent has ended");
    return -1;
}

static void close_agent(struct source *s)
{
    gpq_watching_close(s->user);
}

static int open_agent(struct source *s, const struct call *call, const char *const *what,
                      uint64_t every)
{
    static struct gpq_watching watching;
    json_t *parts = what ? json_array() : NULL;
    int status;

    for (; what && *what; what++)
        (void)json_array_append_new(parts, json_string(*what));
    status = gpq_watching_open(&watching, call, GPQ_AGENT_RUNNING, parts, every);
    *s = (struct source){ .next = next_of_agent,
                          .close = close_agent,
                          .fd = gpq_watching_fd(&watching),
                          .user = &watching };
    return status;
}
#else
static int open_agent(struct source *s, const struct call *call, const char *const *what,
                      uint64_t every)
{
    (void)s, (void)what, (void)every;
    fprintf(stderr,
            "gpudispatch: %s: built without the queue (-Dqueue=enabled); --from reads a "
            "recording\n",
            call->verb->name);
    return EXIT_FAILED;
}
#endif

/* ---- Either ---- */

static void close_nothing(struct source *s)
{
    (void)s;
}

int source_open(struct source *s, const struct call *call, const char *const *what, uint64_t every)
{
    *s = (struct source){ .close = close_nothing, .fd = -1 };
    if (call->given[OPTION_FROM])
        return open_recording(s, call);
    if (call->given[OPTION_AT])
        return usage(call->verb, "%s: --at needs --from FILE", call->verb->name);
    return open_agent(s, call, what, every);
}
