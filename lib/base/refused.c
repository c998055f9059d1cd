/* SPDX-License-Identifier: MIT */
#include "base/refused.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct {
    enum gpi_sys call;
    int sys_errno;
} last; /* beside errno, and like it */

int gpi_refused(enum gpi_sys call)
{
    last.call = call;
    last.sys_errno = errno;
    return -1;
}

enum gpi_sys gpi_refused_call(int sys_errno)
{
    return sys_errno && last.sys_errno == sys_errno ? last.call : GPI_SYS_NONE;
}

void gpi_refused_forget(void)
{
    last.call = GPI_SYS_NONE;
    last.sys_errno = 0;
}

const char *gpi_errno_text(int sys_errno, char *buffer, size_t size)
{
#if defined(__GLIBC__)
    return strerror_r(sys_errno, buffer, size);
#else
    return strerror_r(sys_errno, buffer, size) ? "?" : buffer;
#endif
}

const char *gpi_refusal_text(char *to, uint32_t call, int sys_errno)
{
    static const char *const name[GPI_SYS_COUNT] = {
        [GPI_SYS_NONE] = "",
#define GPI_SYS_X(id, text) [GPI_SYS_##id] = text ": ",
        GPI_SYS_MAP(GPI_SYS_X)
#undef GPI_SYS_X
    };
    char buffer[96] = "";

    snprintf(to, GPI_REFUSAL_SIZE, "%s%s", name[call < GPI_SYS_COUNT ? call : GPI_SYS_NONE],
             gpi_errno_text(sys_errno, buffer, sizeof buffer));
    return to;
}
