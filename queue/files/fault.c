/* SPDX-License-Identifier: MIT */
/* fault.c - a failed file call as an error of the queue. */
#include "queue/files/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int gpq_code_of_errno(int number)
{
    switch (number < 0 ? -number : number) {
    case 0:
        return 0;
    case ENOSPC:
    case EDQUOT:
        return GPQ_EFULL;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return GPQ_ENOMEM;
    case ENOENT:
        return GPQ_ENOTFOUND;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case EFBIG:
        return GPQ_EREFUSED;
    default:
        return GPQ_EIO;
    }
}

static int fill(struct gpq_error *e, int code, int number, const char *format, va_list arguments)
{
    char subject[sizeof(e->text)];

    (void)vsnprintf(subject, sizeof(subject), format, arguments);
    errno = number < 0 ? -number : number;
    return gpq_fail(e, code, "%.380s: %m", subject);
}

int gpq_fault(struct gpq_error *e, int number, const char *format, ...)
{
    va_list arguments;
    int code;

    va_start(arguments, format);
    code = fill(e, gpq_code_of_errno(number), number, format, arguments);
    va_end(arguments);
    return code;
}

int gpq_fault_of_one(struct gpq_error *e, int number, const char *format, ...)
{
    int code = gpq_code_of_errno(number);
    va_list arguments;

    va_start(arguments, format);
    code = fill(e, code == GPQ_EIO ? GPQ_EREFUSED : code, number, format, arguments);
    va_end(arguments);
    return code;
}

bool gpq_fault_of_all(int code)
{
    return code == GPQ_EIO || code == GPQ_ENOMEM || code == GPQ_EDAMAGED;
}

int gpq_fault_worse(struct gpq_error *e, int first, const struct gpq_error *later, int code)
{
    if (!code || (first && (gpq_fault_of_all(first) || !gpq_fault_of_all(code))))
        return first;
    *e = *later;
    return code;
}
