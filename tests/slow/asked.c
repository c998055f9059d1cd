/* SPDX-License-Identifier: MIT */
#include "asked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void asked_read(int argc, char **argv, const char *usage, const struct asked *all, size_t n)
{
    for (int i = 1; i < argc; i += 2) {
        size_t k = 0;

        while (k < n && strcmp(argv[i], all[k].name) != 0)
            k++;
        if (k == n || i + 1 == argc) {
            (void)fprintf(stderr, "usage: %s\n", usage);
            exit(2);
        }
        *all[k].value = strtoull(argv[i + 1], NULL, 10);
    }
}
