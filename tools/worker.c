/* SPDX-License-Identifier: MIT */
/* gpudispatch-worker - the worker program for plugins: a dispatcher with option plugin starts it.
 * By hand it tells whether a plugin is in order. */
#include <stdio.h>
#include <string.h>

#include <gpudispatch/gpudispatch.h>
#include <gpudispatch/plugin.h>

int main(int argc, char **argv)
{
    struct gpud_error error = GPUD_ERROR_INIT;

    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        (void)printf("usage: gpudispatch-worker PLUGIN\nChecks a plugin (see plugin.h); a "
                     "dispatcher with option plugin runs it as its worker.\n");
        return 0;
    }
    if (gpud_worker_main(argc, argv, &error)) {
        (void)fprintf(stderr, "gpudispatch-worker: %s: %s\n", gpud_error_name(error.code),
                      error.text);
        if (error.code == GPUD_EINVAL)
            (void)fprintf(stderr, "usage: gpudispatch-worker PLUGIN\n");
        return 1;
    }
    (void)printf("%s: in order\n", argv[1]);
    return 0;
}
