/* SPDX-License-Identifier: MIT */
/* descriptors.h - the limit of open files: the agent's own, and that of its commands. */
#ifndef GPQ_AGENT_DESCRIPTORS_H
#define GPQ_AGENT_DESCRIPTORS_H

#include <stdint.h>

/* Raises the soft limit to the hard one.  Returns the soft limit from before, with which commands
 * start; 0: it is unknown. */
uint64_t gpq_descriptors_raise(void);
/* Sets the soft limit again, for a program that takes this one's place.  0: does nothing. */
void gpq_descriptors_restore(uint64_t soft);

#endif
