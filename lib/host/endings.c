/* SPDX-License-Identifier: MIT */
/* endings.c - the texts about ends of external work, as they are about those of workers. */
#include <stdio.h>

#include "base/duration.h"
#include "base/signame.h"
#include "host/device.h"
#include "host/external.h"

#define EXIT_SIZE 64u

/* Describes the end of its process; "" if the host did not report that. */
static const char *exit_text(const struct gpi_detail *det, char to[EXIT_SIZE])
{
    char signal[GPI_SIGNAL_SIZE];

    *to = '\0';
    if (det->exit_kind == GPUD_EXIT_CODE)
        (void)snprintf(to, EXIT_SIZE, "exited with status %d", det->exit_status);
    else if (det->exit_kind == GPUD_EXIT_SIGNAL)
        (void)snprintf(to, EXIT_SIZE, "killed by %s", gpi_signal_text(signal, det->exit_status));
    return to;
}

/* Describes the end of work that the host was to kill. */
static void describe_kill(const gpud_dispatcher *d, const struct gpi_task *t,
                          const struct gpi_sched_end *e, const struct gpi_detail *det, char *to,
                          size_t size)
{
    const struct gpi_grant *g = &d->outside.of[e->task];
    const uint64_t limit = g->n_devices ? gpi_device_kill_limit(d, g->device[0])
                                        : d->set.kill_limit;
    char exit[EXIT_SIZE], time[GPI_DURATION_SIZE];

    (void)t;
    if (e->phase == GPUD_PHASE_KILL)
        (void)snprintf(to, size, "had not ended %s after event REVOKED, HARD (kill_limit)",
                       gpi_duration_text(time, limit));
    else
        (void)snprintf(to, size, "%s", *exit_text(det, exit) ? exit : "killed");
}

static void describe_limit(gpud_dispatcher *d, const struct gpi_task *t,
                           const struct gpi_sched_end *e, const char *said,
                           struct gpi_detail *det)
{
    char limit[96], kill[160], grace[GPI_DURATION_SIZE];

    gpi_words_limit(d, t, e->why == GPI_WHY_STALL, limit, sizeof limit);
    if (e->phase == GPUD_PHASE_PROCESS) {
        (void)snprintf(det->text, sizeof det->text, "%s%s%.*s", limit, *said ? ": " : "",
                       (int)GPI_FAIL_TEXT_SIZE - 2, said);
        return;
    }
    describe_kill(d, t, e, det, kill, sizeof kill);
    (void)snprintf(det->text, sizeof det->text, "%s and the grace of %s (grace), %s", limit,
                   gpi_duration_text(grace, gpi_task_class(d, t)->set.grace), kill);
}

static void describe_cancel(gpud_dispatcher *d, const struct gpi_task *t,
                            const struct gpi_sched_end *e, const char *said,
                            struct gpi_detail *det)
{
    char limit[96], kill[160];

    if (e->phase == GPUD_PHASE_PROCESS) {
        (void)snprintf(det->text, sizeof det->text, "%s", said);
        return;
    }
    describe_kill(d, t, e, det, kill, sizeof kill);
    if (e->why == GPI_WHY_CLOSE && d->close.passed) {
        gpi_close_words(d, limit, sizeof limit);
        (void)snprintf(det->text, sizeof det->text, "killed at the %s, %s", limit, kill);
    } else {
        (void)snprintf(det->text, sizeof det->text, "cancelled, %s", kill);
    }
}

static void describe_device(const gpud_dispatcher *d, const struct gpi_sched_end *e,
                            struct gpi_detail *det)
{
    const struct gpi_grant *g = &d->outside.of[e->task];

    (void)snprintf(det->text, sizeof det->text, "a device of it failed");
    for (uint32_t i = 0; i < g->n_devices; i++) {
        const struct gpi_known_device *k = &d->dev.row[g->device[i]];
        if (gpi_health_starts(&k->health))
            continue;
        (void)snprintf(det->text, sizeof det->text, "device %.128s became %s", k->id.name,
                       gpud_health_name(k->health.state));
        return;
    }
}

static void describe(gpud_dispatcher *d, const struct gpi_task *t, const struct gpi_sched_end *e,
                     const char *said, int32_t code, struct gpi_detail *det)
{
    char exit[EXIT_SIZE];

    if (e->outcome == GPUD_OUTCOME_TIMEOUT)
        describe_limit(d, t, e, said, det);
    else if (e->outcome == GPUD_OUTCOME_CANCELLED)
        describe_cancel(d, t, e, said, det);
    else if (e->why == GPI_WHY_DEVICE)
        describe_device(d, e, det);
    else if (*said || e->outcome == GPUD_OUTCOME_SUCCESS)
        (void)snprintf(det->text, sizeof det->text, "%s", said);
    else if (*exit_text(det, exit))
        (void)snprintf(det->text, sizeof det->text, "%s", exit);
    else if (code == 0)
        (void)snprintf(det->text, sizeof det->text, "crashed");
    else
        gpi_words_value("failed with", code, det->text, sizeof det->text);
}

/* As one of several attempts. */
static void add_to_history(gpud_dispatcher *d, struct gpi_task *t,
                           const struct gpi_sched_end *e)
{
    const char *text = t->detail->text;
    char how[GPI_WORDS_SIZE + 16];

    if (e->outcome == GPUD_OUTCOME_SUCCESS)
        return;
    if (e->outcome == GPUD_OUTCOME_CANCELLED && e->phase == GPUD_PHASE_PROCESS)
        (void)snprintf(how, sizeof how, "cancelled%s%s", *text ? ": " : "", text);
    else
        (void)snprintf(how, sizeof how, "%s", text);
    gpi_attempt_words(d, t, how, e->again);
}

void gpi_ending_words(gpud_dispatcher *d, struct gpi_task *t, const struct gpi_sched_end *e,
                      const struct gpi_ending_outside *x)
{
    char said[GPI_WORDS_SIZE] = "";
    struct gpi_detail *det;

    if (x)
        gpi_task_give_detail(t, x->detail);
    det = x ? t->detail : gpi_task_detail(t, 0);
    if (!det)
        return;
    (void)snprintf(said, sizeof said, "%s", x ? det->text : "");
    describe(d, t, e, said, x ? x->code : 0, det);
    add_to_history(d, t, e);
}
