/* SPDX-License-Identifier: MIT */
/* doctor_queue.c - group queue: programs, state directory, agent; what a logout and a reboot do. */
#include "doctor.h"

#ifdef GPQ_CLIENT
#include "queue/client/doctor.h"

static void report(enum gpq_verdict verdict, const char *name, const char *remedy, const char *text,
                   void *user)
{
    static const enum verdict verdicts[] = {
        [GPQ_OK] = VERDICT_OK, [GPQ_NOTE] = VERDICT_NOTE, [GPQ_PROBLEM] = VERDICT_PROBLEM
    };
    finding(user, verdicts[verdict], name, remedy, "%s", text);
}

void check_queue(struct doctor *d)
{
    const struct gpq_doctor checks = { .root = d->root, .finding = report, .user = d };

    gpq_doctor(&checks);
}
#else
void check_queue(struct doctor *d)
{
    finding(d, VERDICT_OK, "queue", NULL, "built without the queue (-Dqueue=enabled)");
}
#endif
