/* SPDX-License-Identifier: MIT */
/*
 * settings.h - owns the command line.
 */
#ifndef TRANSCRIBE_SETTINGS_H
#define TRANSCRIBE_SETTINGS_H

#include <stdint.h>

struct settings {
    const char *sounds_dir;
    const char *model_dir;
    const char *json_path; /* NULL: none; "-": stdout */
    uint32_t workers;
    uint64_t limit;        /* of one file, nanoseconds */
    int all;
    int kill_one;
    char **files;          /* those on the command line */
    int n_files;
};

/*
 * Reads the command line.
 * Returns: 0 to go on; 1 if the program is done (--help); 2 after an error message on stderr.
 */
int settings_read(struct settings *ret_settings, int argc, char **argv);

#endif
