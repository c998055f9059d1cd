/* SPDX-License-Identifier: MIT */
#include "verbs.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>

int t_process(gpud_task *t, void *state)
{
    const uint64_t verb = gpud_task_tag(t) >> 32;

    (void)state;
    if (verb == T_BLOCKED)
        t_block_signals();
    if (verb == T_WAIT_FOR_GATE || verb == T_UNTIL_CANCELLED || verb == T_BLOCKED)
        (void)t_word_add(T_STARTED);
    switch (verb) {
    case T_WAIT_FOR_GATE:
        t_word_wait(T_GATE, 1);
        return 0;
    case T_UNTIL_CANCELLED:
        while (!gpud_task_cancelled(t))
            (void)poll(NULL, 0, 1000);
        return gpud_task_fail(t, 5, "was cancelled");
    case T_BLOCKED:
        t_rest();
    case T_KILL:
        (void)raise(SIGKILL);
        return -1;
    case T_ABORT:
        abort();
    default:
        return 0;
    }
}

void t_submit_started(gpud_dispatcher *d, const struct gpud_task_desc *task)
{
    const uint32_t before = t_word(T_STARTED);

    (void)t_submit(d, task);
    t_word_wait(T_STARTED, before + 1);
}
