/* SPDX-License-Identifier: MIT */
#include "base/failure.h"

#include <stdarg.h>
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

int gpi_fail_null(struct gpud_error *e, const char *field)
{
    return gpi_fail(e, GPUD_EINVAL, 0, field, "%s is NULL", field);
}

int gpi_fail_most(struct gpud_error *e, const char *record, const char *field, uint64_t value,
                  uint64_t most)
{
    return gpi_fail(e, GPUD_EINVAL, 0, field, "%s%s is %llu, the maximum is %llu", record, field,
                    (unsigned long long)value, (unsigned long long)most);
}

int gpi_fail_size(struct gpud_error *e, int code, const char *record, uint32_t given,
                  size_t expected)
{
    return gpi_fail(e, code, 0, "struct_size", "%s.struct_size is %u, expected %zu%s", record,
                    given, expected,
                    code == GPUD_EVERSION ? ": the bytes after these are not zero" : "");
}
