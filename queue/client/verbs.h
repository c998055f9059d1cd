/* SPDX-License-Identifier: MIT */
/* verbs.h - the verbs of the queue: each returns the exit status of the program. */
#ifndef GPQ_CLIENT_VERBS_H
#define GPQ_CLIENT_VERBS_H

#include "tools/cli/verb.h"

int gpq_verb_submit(const struct call *call);
int gpq_verb_run(const struct call *call);
int gpq_verb_ls(const struct call *call);
int gpq_verb_show(const struct call *call);
int gpq_verb_results(const struct call *call);
int gpq_verb_log(const struct call *call);
int gpq_verb_wait(const struct call *call);
int gpq_verb_explain(const struct call *call);
int gpq_verb_cancel(const struct call *call);
int gpq_verb_retry(const struct call *call);
int gpq_verb_hold(const struct call *call);
int gpq_verb_release(const struct call *call);
int gpq_verb_set(const struct call *call);
int gpq_verb_pause(const struct call *call);
int gpq_verb_resume(const struct call *call);
int gpq_verb_drain(const struct call *call);
int gpq_verb_undrain(const struct call *call);
int gpq_verb_purge(const struct call *call);
int gpq_verb_fsck(const struct call *call);
int gpq_verb_agent(const struct call *call);
int gpq_verb_config(const struct call *call);

#endif
