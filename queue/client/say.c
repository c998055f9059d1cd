/* SPDX-License-Identifier: MIT */
/* say.c - what a verb has to say on standard error. */
#include "queue/client/say.h"

#include <stdarg.h>
#include <stdio.h>

#include "queue/words.h"
#include "tools/cli/verb.h"

enum { SAID = 8192 };

int gpq_say(int status, const char *format, ...)
{
    va_list list;
    char text[SAID];
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    for (char *c = text; *c; c++) /* names of files, and replies, may steer a terminal */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    fflush(stdout);
    fprintf(stderr, "gpudispatch: %s\n", text);
    return status;
}

int gpq_say_config(int code, const struct gpq_error *e)
{
    bool usage = code == GPQ_EINVAL || code == GPQ_ENOTFOUND;
    return gpq_say(usage ? EXIT_USAGE : gpq_error_status(code), "%s", e->text);
}
