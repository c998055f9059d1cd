/* SPDX-License-Identifier: MIT */
/* live.c - where the live page of a queue is. */
#include "queue/client/live.h"

#include <string.h>

#include "queue/client/session.h"
#include "queue/client/words.h"
#include "queue/files/program.h"

int gpq_live_program(char path[GPQ_PATH])
{
    struct gpq_error e = { 0 };
    int code = gpq_program_find("gpudispatch-serve", path, &e);
    return code < 0 ? gpq_say(EXIT_FAILED, "%s", e.text) : 0;
}

int gpq_live_socket(const struct call *call, char path[GPQ_SOCKET_PATH + 1])
{
    static const char of_agent[] = "socket", own[] = "live";
    struct gpq_places places;
    struct gpq_session s;
    struct gpq_error e = { 0 };
    int status = gpq_session_place(&s, call, false);
    if (status != 0)
        return status;
    gpq_places_read(call->value[OPTION_STATE_DIR], &places);
    if (gpq_socket_find(&places, s.state, path, &e) < 0)
        return gpq_say(EXIT_UNUSABLE, "%s", e.text);
    char *name = strrchr(path, '/') + 1, *rest = name + strlen(of_agent);
    memcpy(name, own, strlen(own));
    memmove(name + strlen(own), rest, strlen(rest) + 1);
    return 0;
}
