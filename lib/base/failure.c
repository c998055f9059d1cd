/* SPDX-License-Identifier: MIT */
#include "base/failure.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/refused.h"

int gpi_fail(struct gpud_error *e, int code, int sys_errno, const char *field, const char *format, ...)
{
    va_list args;

    if (!e || e->struct_size < offsetof(struct gpud_error, text) + sizeof e->text) /* whatever is appended behind it */
        return code;
    e->code = code;
    e->sys_errno = sys_errno;
    snprintf(e->field, sizeof e->field, "%s", field);
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args); /* NOLINT(clang-analyzer-valist.Uninitialized) ; va_start is the line before */
    va_end(args);
    if (sys_errno) {
        size_t n = strlen(e->text);
        char why[GPI_REFUSAL_SIZE];
        snprintf(e->text + n, sizeof e->text - n, ": %s",
                 gpi_refusal_text(why, gpi_refused_call(sys_errno), sys_errno));
    }
    return code;
}
