/* SPDX-License-Identifier: MIT */
/*
 * said.h - the last line of an output, which mostly has the reason of a bad end.
 */
#ifndef GPQ_AGENT_SAID_H
#define GPQ_AGENT_SAID_H

#include "queue/agent/agent.h"

/* The last bytes of the log of a run; no bytes where it has none.  The caller frees `data`. */
struct gpq_tail {
    char *data;
    size_t size;
};
struct gpq_tail gpq_tail_read(const struct gpq_agent *a, const struct gpq_run_id *run);

/* The last line that shows a character, without escape sequences, control characters and blanks at
 * both ends, up to GPQ_SAID bytes of UTF-8.  A carriage return ends a line, too: of a progress bar
 * the last state remains.  The caller frees it; NULL: there is none, or no memory. */
char *gpq_said(const char *output, size_t size);
/* The same of the log of a run. */
char *gpq_said_by(const struct gpq_agent *a, const struct gpq_run_id *run);

#endif
