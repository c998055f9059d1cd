/* SPDX-License-Identifier: MIT */
/* fail.c - fills the reason of a failure. */
#include <stdarg.h>
#include <stdio.h>

#include "queue/store.h"

int gpq_fail(struct gpq_error *e, int code, const char *format, ...)
{
    if (!e)
        return code;
    va_list list;
    va_start(list, format);
    e->code = code;
    vsnprintf(e->text, sizeof(e->text), format, list);
    va_end(list);
    return code;
}
