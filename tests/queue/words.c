/* SPDX-License-Identifier: MIT */
/* words.c - the tables of the queue's words. */
#include "harness.h"

#include <gpudispatch/types.h>

#include "queue/words.h"

T_CASE(outcomes_have_the_numbers_of_the_library)
{
    T_EQ(GPQ_OUTCOME_SUCCESS, GPUD_OUTCOME_SUCCESS);
    T_EQ(GPQ_OUTCOME_ERROR, GPUD_OUTCOME_ERROR);
    T_EQ(GPQ_OUTCOME_TIMEOUT, GPUD_OUTCOME_TIMEOUT);
    T_EQ(GPQ_OUTCOME_CRASHED, GPUD_OUTCOME_CRASHED);
    T_EQ(GPQ_OUTCOME_CANCELLED, GPUD_OUTCOME_CANCELLED);
    T_EQ(GPQ_OUTCOME_NO_WORKER, GPUD_OUTCOME_NO_WORKER);
}

T_CASE(texts)
{
    T_TEXT(gpq_state_text(GPQ_READY), "ready");
    T_TEXT(gpq_state_text(0), "?");
    T_TEXT(gpq_outcome_text(GPQ_OUTCOME_SUCCESS), "ok");
    T_TEXT(gpq_cause_text(GPQ_CAUSE_OOM), "oom");
    T_TEXT(gpq_condition_text(GPQ_AFTER_ENDED), "ended");
    T_TEXT(gpq_error_text(GPQ_ESTALE), "the attempt is not the one that runs now");
    T_TEXT(gpq_error_text(-999), "?");
    T_TEXT(gpq_signal_text(9), "SIGKILL");
    T_TEXT(gpq_signal_text(0), "?");
    T_TEXT(gpq_signal_text(4294967295), "?");
    T_EQ(gpq_error_status(GPQ_ENOTFOUND), 4);
    T_EQ(gpq_error_status(GPQ_EIO), 75);
    T_EQ(gpq_error_status(-999), 1);
}
