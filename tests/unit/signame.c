/* SPDX-License-Identifier: MIT */
/* signame.c - signals in texts: the numbers of this system with their names. */
#include "harness.h"

#include <limits.h>
#include <signal.h>
#include <string.h>

#include "base/signame.h"

T_CASE(numbers_and_names)
{
    static const struct {
        int number;
        const char *text;
    } rows[] = {
        { 0, "signal 0" },
        { 1, "signal 1 (SIGHUP)" },
        { 6, "signal 6 (SIGABRT)" },
        { 9, "signal 9 (SIGKILL)" },
        { 11, "signal 11 (SIGSEGV)" },
        { 15, "signal 15 (SIGTERM)" },
        { 64, "signal 64" },
        { -1, "signal -1" },
        { INT_MAX, "signal 2147483647" },
        { INT_MIN, "signal -2147483648" },
    };
    char text[GPI_SIGNAL_SIZE];

    for (size_t i = 0; i < T_LENGTH(rows); i++)
        T_TEXT(gpi_signal_text(text, rows[i].number), rows[i].text);
}

/* The signals of a crash, whose numbers differ between architectures. */
T_CASE(crashes)
{
    static const int numbers[] = { SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSYS, SIGXCPU };
    char text[GPI_SIGNAL_SIZE];

    for (size_t i = 0; i < T_LENGTH(numbers); i++)
        T_CHECK(strstr(gpi_signal_text(text, numbers[i]), " (SIG"));
}
