/* SPDX-License-Identifier: MIT */
#include "base/signame.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#define NAME(signal) [signal] = #signal

const char *gpi_signal_text(char to[GPI_SIGNAL_SIZE], int number)
{
    /* The numbers differ between architectures.  musl has no sigabbrev_np, unlike glibc. */
    static const char *const names[] = {
        NAME(SIGHUP),    NAME(SIGINT),  NAME(SIGQUIT), NAME(SIGILL),   NAME(SIGTRAP), NAME(SIGABRT),
        NAME(SIGBUS),    NAME(SIGFPE),  NAME(SIGKILL), NAME(SIGUSR1),  NAME(SIGSEGV), NAME(SIGUSR2),
        NAME(SIGPIPE),   NAME(SIGALRM), NAME(SIGTERM), NAME(SIGCHLD),  NAME(SIGCONT), NAME(SIGSTOP),
        NAME(SIGTSTP),   NAME(SIGTTIN), NAME(SIGTTOU), NAME(SIGURG),   NAME(SIGXCPU), NAME(SIGXFSZ),
        NAME(SIGVTALRM), NAME(SIGPROF), NAME(SIGIO),   NAME(SIGWINCH), NAME(SIGPWR),  NAME(SIGSYS),
    };
    const size_t n = sizeof names / sizeof *names;
    const char *name = number > 0 && (size_t)number < n ? names[number] : NULL;

    if (name)
        (void)snprintf(to, GPI_SIGNAL_SIZE, "signal %d (%s)", number, name);
    else
        (void)snprintf(to, GPI_SIGNAL_SIZE, "signal %d", number);
    return to;
}
