/* SPDX-License-Identifier: MIT */
/* words.c - the texts of the tables in words.h and findings.h. */
#include "queue/words.h"

#include <signal.h>

#include "queue/findings.h"

#define TEXT(name, value, text) \
    case value:                 \
        return text;
#define ERROR_TEXT(name, value, status, text) \
    case value:                               \
        return text;
#define ERROR_NAME(name, value, status, text) \
    case value:                               \
        return #name;
#define ERROR_STATUS(name, value, status, text) \
    case value:                                 \
        return status;

const char *gpq_state_text(uint32_t state)
{
    switch (state) {
        GPQ_STATE_MAP(TEXT)
    default:
        return "?";
    }
}

const char *gpq_outcome_text(uint32_t outcome)
{
    switch (outcome) {
        GPQ_OUTCOME_MAP(TEXT)
    default:
        return "?";
    }
}

const char *gpq_cause_text(uint32_t cause)
{
    switch (cause) {
        GPQ_CAUSE_MAP(TEXT)
    default:
        return "?";
    }
}

const char *gpq_return_text(uint32_t why)
{
    switch (why) {
        GPQ_RETURN_MAP(TEXT)
    default:
        return "?";
    }
}

const char *gpq_condition_text(uint32_t condition)
{
    switch (condition) {
        GPQ_AFTER_MAP(TEXT)
    default:
        return "?";
    }
}

const char *gpq_how_text(uint32_t how)
{
    switch (how) {
        GPQ_PLACED_MAP(TEXT)
    default:
        return "?";
    }
}

const char *gpq_finding_text(uint32_t kind)
{
    switch (kind) {
        GPQ_FINDING_MAP(TEXT)
    default:
        return "?";
    }
}

const char *gpq_error_text(int code)
{
    switch (code) {
        GPQ_ERROR_MAP(ERROR_TEXT)
    default:
        return "?";
    }
}

const char *gpq_error_name(int code)
{
    switch (code) {
        GPQ_ERROR_MAP(ERROR_NAME)
    default:
        return "?";
    }
}

#define NAME(signal) [signal] = #signal

const char *gpq_signal_text(uint32_t number)
{
    static const char *const names[] = {
        NAME(SIGHUP),    NAME(SIGINT),  NAME(SIGQUIT), NAME(SIGILL),   NAME(SIGTRAP), NAME(SIGABRT),
        NAME(SIGBUS),    NAME(SIGFPE),  NAME(SIGKILL), NAME(SIGUSR1),  NAME(SIGSEGV), NAME(SIGUSR2),
        NAME(SIGPIPE),   NAME(SIGALRM), NAME(SIGTERM), NAME(SIGCHLD),  NAME(SIGCONT), NAME(SIGSTOP),
        NAME(SIGTSTP),   NAME(SIGTTIN), NAME(SIGTTOU), NAME(SIGURG),   NAME(SIGXCPU), NAME(SIGXFSZ),
        NAME(SIGVTALRM), NAME(SIGPROF), NAME(SIGIO),   NAME(SIGWINCH), NAME(SIGPWR),  NAME(SIGSYS),
    };

    return number < sizeof(names) / sizeof(*names) && names[number] ? names[number] : "?";
}

int gpq_error_status(int code)
{
    switch (code) {
        GPQ_ERROR_MAP(ERROR_STATUS)
    default:
        return 1;
    }
}
