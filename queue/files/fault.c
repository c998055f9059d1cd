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

int gpq_fault(struct gpq_error *e, int number, const char *format, ...)
{
    char subject[sizeof(e->text)];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(subject, sizeof(subject), format, arguments);
    va_end(arguments);
    errno = number < 0 ? -number : number;
    return gpq_fail(e, gpq_code_of_errno(number), "%.380s: %m", subject);
}
