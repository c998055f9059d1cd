/* SPDX-License-Identifier: MIT */
/*
 * settings.h - owns the command line.
 */
#ifndef SPECTROGRAM_SETTINGS_H
#define SPECTROGRAM_SETTINGS_H

#include <stdint.h>

#include "spectrum.h"

struct settings {
    const char *devices; /* NULL: all GPUs, or else one CPU slot per processor */
    const char *out_dir;
    const char *sounds_dir;
    uint64_t limit; /* of one file, in ns */
    struct cut cut;
    int compare;
    char **files; /* none: the demo's prompts */
    int n_files;
};

/* Reads the command line.  Returns: 0 and *ret_settings; 1 after --help; 2 after an error message
 * on stderr. */
int settings_read(struct settings *ret_settings, int argc, char **argv);

#endif
