/* SPDX-License-Identifier: MIT */
/* format.c - an event, and a reason, as one line of text, for people. */
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/versioned.h"
#include "gpudispatch/error.h"
#include "gpudispatch/external.h"
#include "gpudispatch/sched.h"
#include "gpudispatch/types.h"
#include "os/process.h"

/* A line that is counted beyond the end of its buffer. */
struct line {
    char *to;
    size_t size, n;
};

static void put(struct line *l, char c)
{
    if (l->n < l->size)
        l->to[l->n] = c;
    l->n++;
}

/* A control character would end the line, or command a terminal; U+0080 to U+009F are two bytes. */
static void add(struct line *l, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; p && *p; p++) {
        const bool pair = p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;

        put(l, *p < ' ' || *p == 0x7f || pair ? ' ' : (char)*p);
        p += pair;
    }
}

/* Numbers and names of ours, which are short. */
__attribute__((format(printf, 2, 3))) static void say(struct line *l, const char *format, ...)
{
    char text[96];
    va_list args;

    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) ; va_start is the line before */
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add(l, text);
}

/* Terminates it: where it is cut, before the character that does not fit whole. */
static void end(struct line *l)
{
    size_t at = l->n < l->size ? l->n : l->size - 1;

    if (l->size == 0)
        return;
    for (unsigned i = 0;
         l->n >= l->size && i < 3 && at && ((unsigned char)l->to[at] & 0xc0) == 0x80; i++)
        at--;
    l->to[at] = '\0';
}

static int finish(struct line *l)
{
    end(l);
    return l->n > INT_MAX ? INT_MAX : (int)l->n;
}

/* ---- parts ---- */

static void add_task(struct line *l, const struct gpud_event *e)
{
    say(l, "task %llu ", (unsigned long long)e->task_id);
    if (e->label && *e->label) {
        put(l, '"');
        add(l, e->label);
        add(l, "\" ");
    }
}

/* " on slot 2 (cpu:2)", " on gpu:0,gpu:1" */
static void add_slot(struct line *l, const char *before, const struct gpud_event *e,
                     bool with_device)
{
    if (e->slot == GPUD_NO_SLOT) { /* external work has devices alone */
        if (with_device && e->device && *e->device) {
            add(l, before);
            add(l, e->device);
        }
        return;
    }
    say(l, "%sslot %u", before, e->slot);
    if (!with_device || !e->device || !*e->device)
        return;
    add(l, " (");
    add(l, e->device);
    put(l, ')');
}

static void add_duration(struct line *l, const char *before, const struct gpud_event *e)
{
    char time[GPI_DURATION_SIZE];

    if (e->started_at && e->ended_at >= e->started_at)
        say(l, "%s%s", before, gpi_duration_text(time, e->ended_at - e->started_at));
}

/* The code that each outcome has unless something is to be said says nothing. */
static bool is_usual(const struct gpud_event *e)
{
    switch (e->kind == GPUD_EVENT_OUTCOME ? e->outcome : 0) {
    case GPUD_OUTCOME_TIMEOUT:
        return e->code == GPUD_ETIMEOUT;
    case GPUD_OUTCOME_CRASHED:
        return e->code == GPUD_ECRASHED;
    case GPUD_OUTCOME_CANCELLED:
        return e->code == GPUD_ECANCELLED;
    case GPUD_OUTCOME_NO_WORKER:
        return e->code == GPUD_ENOWORKER;
    default:
        return e->code == 0;
    }
}

static void add_code(struct line *l, const struct gpud_event *e)
{
    const char *name = gpud_error_name(e->code);

    if (is_usual(e))
        return;
    if (e->code < GPUD_EINVAL && name[0] == 'E') /* -1 is what much code returns for any failure */
        say(l, ", %s", name);
    else
        say(l, ", code %d", e->code);
}

static void add_text(struct line *l, const struct gpud_event *e)
{
    if (!e->text || !*e->text)
        return;
    add(l, ": ");
    add(l, e->text);
}

/* ---- kinds ---- */

static void add_success(struct line *l, const struct gpud_event *e)
{
    add_slot(l, " on ", e, true);
    add_duration(l, " in ", e);
    if (e->attempt > 1)
        say(l, ", attempt %u", e->attempt);
}

static void add_failure(struct line *l, const struct gpud_event *e)
{
    add_code(l, e);
    if (e->phase != GPUD_PHASE_NONE)
        say(l, ", phase %s", gpud_phase_name(e->phase));
    add_slot(l, ", ", e, true);
    if (e->attempt)
        say(l, ", attempt %u", e->attempt);
    add_duration(l, ", after ", e);
}

static void add_outcome(struct line *l, const struct gpud_event *e)
{
    add_task(l, e);
    add(l, gpud_outcome_name(e->outcome));
    if (e->outcome == GPUD_OUTCOME_SUCCESS)
        add_success(l, e);
    else
        add_failure(l, e);
}

static void add_progress(struct line *l, const struct gpud_event *e)
{
    const double whole = e->progress * 100 + 0.5;

    add_task(l, e);
    say(l, "at %u %%", whole > 100 ? 100u : whole > 0 ? (unsigned)whole : 0u);
    add_slot(l, " on ", e, true);
}

static void add_started(struct line *l, const struct gpud_event *e)
{
    add_task(l, e);
    add(l, "started");
    add_slot(l, " on ", e, true);
    if (e->attempt > 1)
        say(l, ", attempt %u", e->attempt);
}

/* "slot 3 (cpu:3) SETUP_FAILURE, code 17, incarnation 2" */
static void add_slot_news(struct line *l, const struct gpud_event *e)
{
    add_slot(l, "", e, true);
    if (e->kind == GPUD_EVENT_SLOT)
        say(l, " enters %s", gpud_slot_state_name(e->slot_state));
    else
        say(l, " %s", gpud_event_name(e->kind));
    add_code(l, e);
    if (e->incarnation)
        say(l, ", incarnation %u", e->incarnation);
}

static void add_device(struct line *l, const struct gpud_event *e)
{
    add(l, "device ");
    add(l, e->device);
    if (e->device_uuid && *e->device_uuid &&
        strcmp(e->device_uuid, e->device ? e->device : "") != 0) {
        add(l, " (");
        add(l, e->device_uuid);
        put(l, ')');
    }
    say(l, " %s", gpud_health_name(e->device_health));
    if (e->xid)
        say(l, ", XID %u", e->xid);
}

/* "task 17 of class whisper starts within 12.4 s, FIRST" */
static void add_promise(struct line *l, const struct gpud_event *e)
{
    const uint64_t now = gpi_now();
    char time[GPI_DURATION_SIZE];

    add_task(l, e);
    say(l, "of class %s ", e->class_name ? e->class_name : "");
    if (e->starts_by == 0)
        add(l, "has no promise any more");
    else
        say(l, "starts within %s",
            gpi_duration_round(time, e->starts_by > now ? e->starts_by - now : 0));
    say(l, ", %s", gpud_promise_name(e->promise));
}

static void add_time(struct line *l, const char *before, uint64_t time)
{
    char text[GPI_DURATION_SIZE];

    if (time != GPUD_NEVER)
        say(l, "%s%s", before, gpi_duration_round(text, time));
}

static void add_grant(struct line *l, const struct gpud_event *e)
{
    add_task(l, e);
    say(l, "of class %s %s, attempt %u", e->class_name ? e->class_name : "",
        gpud_event_name(e->kind), e->attempt);
}

/* "task 19 of class jobs GRANTED, attempt 1, on gpu:0,gpu:1, limit 60.0 s" */
static void add_granted(struct line *l, const struct gpud_event *e)
{
    add_grant(l, e);
    if (e->device && *e->device) {
        add(l, ", on ");
        add(l, e->device);
    }
    add_time(l, ", limit ", e->limit);
}

/* "task 19 of class jobs REVOKED, attempt 1, SOFT, LIMIT, within 2.0 s" */
static void add_revoked(struct line *l, const struct gpud_event *e)
{
    static const char *const how[] = { "SOFT", "HARD", "BACK" };
    const uint64_t now = gpi_now();

    add_grant(l, e);
    say(l, ", %s, %s", e->revoke < sizeof how / sizeof *how ? how[e->revoke] : "?",
        gpud_revoked_name(e->revoked));
    if (e->revoke != GPUD_REVOKE_BACK && e->revoke_by != GPUD_NEVER)
        add_time(l, ", within ", e->revoke_by > now ? e->revoke_by - now : 0);
}

static void add_event(struct line *l, const struct gpud_event *e)
{
    switch (e->kind) {
    case GPUD_EVENT_OUTCOME:
        add_outcome(l, e);
        break;
    case GPUD_EVENT_PROGRESS:
        add_progress(l, e);
        break;
    case GPUD_EVENT_STARTED:
        add_started(l, e);
        break;
    case GPUD_EVENT_SETUP_FAILURE:
    case GPUD_EVENT_CLEANUP_FAILURE:
    case GPUD_EVENT_SLOT:
        add_slot_news(l, e);
        break;
    case GPUD_EVENT_LOG:
        add(l, gpud_level_name(e->level));
        add_slot(l, " ", e, false); /* the text names the device where it matters */
        if (e->stream)
            add(l, e->stream == GPUD_STREAM_STDERR ? ", stderr" : ", stdout");
        break;
    case GPUD_EVENT_DEVICE:
        add_device(l, e);
        break;
    case GPUD_EVENT_CLASS:
        say(l, "class %s %s", e->class_name ? e->class_name : "",
            gpud_class_change_name(e->class_change));
        break;
    case GPUD_EVENT_PROMISE:
        add_promise(l, e);
        break;
    case GPUD_EVENT_GRANTED:
        add_granted(l, e);
        break;
    case GPUD_EVENT_REVOKED:
        add_revoked(l, e);
        break;
    default: /* of a later version */
        say(l, "event %u", e->kind);
        add_slot(l, ", ", e, true);
        break;
    }
    add_text(l, e);
}

int gpud_event_format(const struct gpud_event *event, char *buffer, size_t size)
{
    struct line l = { .to = buffer, .size = size };
    struct gpud_event e;

    if (!event || (!buffer && size))
        return GPUD_EINVAL;
    if (!gpi_versioned_sized(event->struct_size, offsetof(struct gpud_event, label)))
        return GPUD_ESTRUCT;
    gpi_versioned_write(&e, sizeof e, event, event->struct_size);
    if (event->struct_size < offsetof(struct gpud_event, slot) + sizeof e.slot)
        e.slot = GPUD_NO_SLOT;
    add_event(&l, &e);
    return finish(&l);
}

/* ---- reasons ---- */

static void add_amount(struct line *l, uint64_t n, uint32_t unit)
{
    const unsigned long long amount = n, mib = amount >> 20;
    const char *plural = n == 1 ? "" : "s";

    switch (unit) {
    case GPUD_UNIT_BYTES:
        say(l, mib ? "%llu MiB" : "%llu bytes", mib ? mib : amount);
        break;
    case GPUD_UNIT_SHARE:
        say(l, "%llu of 10000", amount);
        break;
    case GPUD_UNIT_CPUS:
        say(l, "%llu CPU%s", amount, plural);
        break;
    case GPUD_UNIT_WORKERS:
        say(l, "%llu worker%s", amount, plural);
        break;
    case GPUD_UNIT_DEVICES:
        say(l, "%llu device%s", amount, plural);
        break;
    case GPUD_UNIT_COMPUTE:
        say(l, "compute %llu", amount);
        break;
    default: /* of a later version */
        say(l, "%llu", amount);
        break;
    }
}

static void add_amounts(struct line *l, const struct gpud_reason *r)
{
    if (r->unit == GPUD_UNIT_NONE)
        return;
    add(l, r->kind == GPUD_REASON_FOREIGN ? ", they have " : ", has ");
    add_amount(l, r->have, r->unit);
    add(l, r->kind == GPUD_REASON_FOREIGN ? ", at most " : ", needs ");
    add_amount(l, r->need, r->unit);
}

/* Its user and its command, if it is there to read. */
static void add_process(struct line *l, uint32_t pid)
{
    char path[32], name[GPI_PROCESS_NAME];
    struct stat st;

    say(l, ", pid %u", pid);
    snprintf(path, sizeof path, "/proc/%u", pid);
    if (stat(path, &st))
        return;
    gpi_process_name(pid, name);
    say(l, " (user %u, ", (unsigned)st.st_uid);
    add(l, name);
    add(l, ")");
}

/* The task, the class or the process in the way. */
static void add_other(struct line *l, const struct gpud_reason *r)
{
    if (r->task_id)
        say(l, ", task %llu", (unsigned long long)r->task_id);
    if (*r->class_name) {
        add(l, r->task_id ? " of class " : ", class ");
        add(l, r->class_name);
    }
    if (r->pid)
        add_process(l, r->pid);
}

static void add_time_left(struct line *l, uint64_t until)
{
    const uint64_t now = gpi_now();
    char time[GPI_DURATION_SIZE];

    if (until > now)
        say(l, ", until in %s", gpi_duration_round(time, until - now));
    else if (until)
        add(l, ", until now");
}

#define X(name, value, text) \
    case value: \
        return text;
static const char *sentence_of(uint32_t kind)
{
    switch (kind) {
        GPUD_REASON_MAP(X)
    default: /* of a later version */
        return "?";
    }
}
#undef X

/* "max_workers 3 of class whisper is reached" */
static void add_limit(struct line *l, const struct gpud_reason *r)
{
    say(l, "max_workers %llu of ", (unsigned long long)r->have);
    add(l, *r->class_name ? "class " : "the dispatcher");
    add(l, r->class_name);
    add(l, " is reached");
}

static void add_reason(struct line *l, const struct gpud_reason *r)
{
    const bool is_limit = r->kind == GPUD_REASON_SEATS && r->have;

    add(l, gpud_reason_name(r->kind));
    if (*r->device) {
        add(l, " on ");
        add(l, r->device);
    }
    if (r->variant)
        say(l, ", variant %u", r->variant);
    if (!is_limit) {
        add_amounts(l, r);
        add_other(l, r);
    }
    add_time_left(l, r->until);
    add(l, ": ");
    if (is_limit)
        add_limit(l, r);
    else
        add(l, sentence_of(r->kind));
}

int gpud_reason_format(const struct gpud_reason *reason, char *buffer, size_t size)
{
    struct line l = { .to = buffer, .size = size };
    struct gpud_reason r;

    if (!reason || (!buffer && size))
        return GPUD_EINVAL;
    if (!gpi_versioned_sized(reason->struct_size, offsetof(struct gpud_reason, task_id)))
        return GPUD_ESTRUCT;
    gpi_versioned_write(&r, sizeof r, reason, reason->struct_size);
    r.device[sizeof r.device - 1] = r.class_name[sizeof r.class_name - 1] = '\0';
    add_reason(&l, &r);
    return finish(&l);
}
