/* SPDX-License-Identifier: MIT */
#include "base/failure.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/refused.h"

int gpi_fail(struct gpud_error *e, int code, int sys_errno, const char *field, const char *format,
             ...)
{
    va_list args;

    /* whatever is appended behind it */
    if (!e || e->struct_size < offsetof(struct gpud_error, text) + sizeof e->text)
        return code;
    e->code = code;
    e->sys_errno = sys_errno;
    snprintf(e->field, sizeof e->field, "%s", field);
    va_start(args, format);
    /* NOLINT(clang-analyzer-valist.Uninitialized) ; va_start is the line before */
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    if (sys_errno) {
        size_t n = strlen(e->text);
        char why[GPI_REFUSAL_SIZE];
        snprintf(e->text + n, sizeof e->text - n, ": %s",
                 gpi_refusal_text(why, gpi_refused_call(sys_errno), sys_errno));
    }
    return code;
}
