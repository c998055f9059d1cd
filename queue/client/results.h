/* SPDX-License-Identifier: MIT */
/* results.h - the outputs of a task. */
#ifndef GPQ_CLIENT_RESULTS_H
#define GPQ_CLIENT_RESULTS_H

#include "queue/client/session.h"

/* Whether the directory of the outputs of a task has anything.  `path` gets its path. */
bool gpq_has_outputs(const struct gpq_session *s, const json_t *row, char path[GPQ_PATH]);

#endif
