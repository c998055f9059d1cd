/* SPDX-License-Identifier: MIT */
/* befalls.h - a script for devices, drawn by lot: what befalls them, at times or when the file
 * trigger0 ... is there. */
#ifndef T_BEFALLS_H
#define T_BEFALLS_H

#include <stdint.h>

enum { TRIGGERS = 6 };

struct befalls {
    uint64_t gpus;
    int drivers; /* for the libraries of the driver, not for fakes */
    int sets;    /* workers own several: none is in MIG mode */
};
void write_befalls(const char *name, uint64_t *state, const struct befalls *b);

#endif
