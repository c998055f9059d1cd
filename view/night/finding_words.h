/* SPDX-License-Identifier: MIT */
/* finding_words.h - the command of a finding that is complete otherwise. */
#ifndef GPV_FINDING_WORDS_H
#define GPV_FINDING_WORDS_H

#include "view/night/findings.h"

void gpv_finding_command(const struct gpv_night *n, struct gpv_finding *f);

#endif
