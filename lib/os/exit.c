/* SPDX-License-Identifier: MIT */
#include "os/exit.h"

#include <stdlib.h>

static void (*first)(int status); /* in a process of its own */

#ifdef GPI_HAVE_ON_EXIT

static void call(int status, void *unused)
{
    (void)unused;
    first(status);
}

void gpi_exit_first(void (*fn)(int status))
{
    first = fn;
    (void)on_exit(call, NULL);
}

#else

static void call(void)
{
    first(EXIT_FAILURE);
}

void gpi_exit_first(void (*fn)(int status))
{
    first = fn;
    (void)atexit(call);
}

#endif
