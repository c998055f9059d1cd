/* SPDX-License-Identifier: MIT */
/* commands.h - other programs that run short commands, 8 at a time, beside the queue. */
#ifndef BENCH_QUEUE_COMMANDS_H
#define BENCH_QUEUE_COMMANDS_H

#include <stdbool.h>

struct bq_program {
    const char *name, *package; /* of Debian */
    const char *script;         /* for sh; N is the number of the commands */
};

#define BQ_PROGRAMS 3
extern const struct bq_program bq_programs[BQ_PROGRAMS];

/* Returns whether PATH has it. */
bool bq_program_installed(const struct bq_program *p);

#endif
