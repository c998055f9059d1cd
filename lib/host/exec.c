/* SPDX-License-Identifier: MIT */
/*
 * exec.c - workers that are programs (EXEC): how long a program may take to call gpud_init, and why
 * it failed to become a worker.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/refused.h"
#include "base/signame.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "wire/control.h"
#include "wire/hello.h"

/* ---- how long it may take ---- */

const char *gpi_start_limit_text(const gpud_dispatcher *d, const struct gpi_slot *s, char *to,
                                 size_t size)
{
    const uint64_t limit = gpi_sched_start_limit(d->core, s->index);
    char time[GPI_DURATION_SIZE];

    (void)snprintf(to, size, "%s%s", gpi_duration_text(time, limit),
                   limit == gpi_slot_class(d, s)->set.setup_limit ? " (setup_limit)" : "");
    return to;
}

/* ---- why a program is no worker ---- */

static int32_t step_failed(const char *program, const struct gpi_control *c, char *text,
                           size_t size)
{
    static const char *const what[GPI_STEPS] = {
        [GPI_STEP_EXEC] = "the program cannot be executed",
        [GPI_STEP_ENV] = "the environment cannot be built",
        [GPI_STEP_MAP] = "the program cannot map the status page",
        [GPI_STEP_SPAWNER] = "the program started as a spawner", /* no spawner sends it */
    };
    const bool path = strchr(program, '/') != NULL;
    const bool missing = c->sys_errno == ENOENT || c->sys_errno == ENOTDIR;
    char buffer[GPI_REFUSAL_SIZE];
    const char *why = gpi_refusal_text(buffer, c->call, c->sys_errno);

    if (c->step != GPI_STEP_EXEC) {
        snprintf(text, size, "%s: %s", what[c->step < GPI_STEPS ? c->step : GPI_STEP_ENV], why);
        return GPUD_ESYSTEM;
    }
    snprintf(text, size, "%s: %s: %s%s", program, what[GPI_STEP_EXEC], why,
             missing && path && access(program, F_OK) == 0
                 ? " (its interpreter is missing)"
                 : "");
    return missing ? GPUD_ENOPROGRAM : GPUD_ENOTEXEC;
}

static int32_t no_answer(const gpud_dispatcher *d, const struct gpi_slot *s, enum gpi_why why,
                         uint32_t kind, int32_t status, char *text, size_t size)
{
    const char *program = gpi_slot_class(d, s)->launch.program;
    char limit[64], signal[GPI_SIGNAL_SIZE];

    if (why == GPI_WHY_SETUP)
        snprintf(text, size, "%s did not call gpud_init within %s", program,
                 gpi_start_limit_text(d, s, limit, sizeof limit));
    else if (kind == GPUD_EXIT_CODE)
        snprintf(text, size, "%s exited with status %d before it called gpud_init",
                 program, status);
    else
        snprintf(text, size, "%s was killed by %s before it called gpud_init%s", program,
                 gpi_signal_text(signal, status), gpi_exit_hint(s, kind, status));
    return GPUD_ENOANSWER;
}

int32_t gpi_start_verdict(const gpud_dispatcher *d, const struct gpi_slot *s, enum gpi_why why,
                          uint32_t kind, int32_t status, char *text, size_t size)
{
    const char *program = gpi_slot_class(d, s)->launch.program;
    const struct gpi_control *c = &s->last.words;

    switch (c->answer) {
    case GPI_ANSWER_STEP:
        return step_failed(program, c, text, size);
    case GPI_ANSWER_VERSION:
        gpi_hello_other_version(text, size, program, c->version, c->api);
        return GPUD_EOTHERVERSION;
    case GPI_ANSWER_WRAPPED:
        snprintf(text, size,
                 "gpud_init was called in a child of %s: a wrapper must exec the worker program",
                 program);
        return GPUD_ENOANSWER;
    case GPI_ANSWER_THREAD:
        snprintf(text, size, "%s called gpud_init on a thread other than the main thread",
                 program);
        return GPUD_ENOANSWER;
    case GPI_ANSWER_GARBAGE:
        snprintf(text, size, "%s " GPI_HELLO_UNEXPECTED, program);
        return GPUD_EPROTOCOL;
    default:
        return no_answer(d, s, why, kind, status, text, size);
    }
}
