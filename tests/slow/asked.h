/* SPDX-License-Identifier: MIT */
/* asked.h - what a long test is asked for: pairs "--name number" of its command line. */
#ifndef T_ASKED_H
#define T_ASKED_H

#include <stddef.h>
#include <stdint.h>

struct asked {
    const char *name;
    uint64_t *value;
};

/* Anything else ends the program with status 2, after the usage. */
void asked_read(int argc, char **argv, const char *usage, const struct asked *all, size_t n);

#endif
