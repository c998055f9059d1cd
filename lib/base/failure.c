/* SPDX-License-Identifier: MIT */
#include "base/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int gpi_fail(struct gpud_error *e, int code, int sys_errno, const char *field, const char *format, ...)
{
    va_list args;

    if (!e || e->struct_size < sizeof *e)
        return code;
    e->code = code;
    e->sys_errno = sys_errno;
    snprintf(e->field, sizeof e->field, "%s", field);
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    if (sys_errno) {
        size_t n = strlen(e->text);
        char why[96] = "";
#if defined(__GLIBC__)
        snprintf(why, sizeof why, "%s", strerror_r(sys_errno, why, sizeof why));
#else
        (void)strerror_r(sys_errno, why, sizeof why);
#endif
        snprintf(e->text + n, sizeof e->text - n, ": %s", why);
    }
    return code;
}
