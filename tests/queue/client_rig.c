/* SPDX-License-Identifier: MIT */
/* client_rig.c - what the program gpudispatch has beside the archive of its verbs. */
#include "tools/cli/verb.h"

const char program_summary[] = "a test";
const struct verb verbs[] = { { 0 } };
