/* SPDX-License-Identifier: MIT */
/* purge.c - forgets tasks that ended long ago. */
#include <stdio.h>
#include <string.h>

#include "queue/client/option.h"
#include "queue/client/session.h"
#include "queue/client/verbs.h"
#include "queue/client/words.h"

/* Tasks of one request: others are served between two of them. */
enum { CHUNK = 1000 };

/* A person who writes 5 means days. */
static bool has_unit(const char *older)
{
    return older[strspn(older, "0123456789.")] != '\0';
}

int gpq_verb_purge(const struct call *call)
{
    struct gpq_session s;
    char number[32];
    uint64_t age = 0, count = 0, now = gpq_now_wall();
    if (!call->value[OPTION_OLDER])
        return usage(call->verb, "purge: --older is missing, such as --older 30d");
    int status = gpq_option_duration(call, OPTION_OLDER, &age);
    if (status != 0)
        return status;
    if (age > 0 && !has_unit(call->value[OPTION_OLDER]))
        return usage(call->verb,
                     "purge: --older: '%s' has no unit: %sd are days and %ss seconds, and what is "
                     "forgotten does not come back",
                     call->value[OPTION_OLDER], call->value[OPTION_OLDER],
                     call->value[OPTION_OLDER]);
    status = gpq_session_open(&s, call, GPQ_AGENT_RESUMED);
    for (bool more = true; status == 0 && more;) {
        json_t *reply;
        status =
            gpq_session_insist(&s,
                               json_pack("{s:s, s:I, s:b, s:i}", "do", "purge", "before",
                                         (json_int_t)(now > age ? now - age : 1), "keep_failed",
                                         (int)call->given[OPTION_KEEP_FAILED], "most", CHUNK),
                               &reply);
        more = gpq_number_of(reply, "count") >= CHUNK;
        count += (uint64_t)gpq_number_of(reply, "count");
        json_decref(reply);
    }
    if (status == 0 && call->given[OPTION_JSON])
        printf("{\"count\":%llu}\n", (unsigned long long)count);
    else if (status == 0)
        printf("%s ended %s forgotten\n", gpq_number_text(count, number), gpq_tasks(count));
    gpq_session_close(&s);
    return status;
}
