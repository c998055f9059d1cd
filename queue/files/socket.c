/* SPDX-License-Identifier: MIT */
/* socket.c - where agent and client find each other. */
#include "queue/files/socket.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/files/statedir.h"

/* FNV-1a.  Two state directories of one user are told apart, no more: the socket is the owner's. */
static uint64_t hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

static bool in_runtime(const struct gpq_places *p)
{
    return p->runtime && p->runtime[0] == '/'; /* XDG: a relative one does not count */
}

int gpq_socket_find(const struct gpq_places *p, const char *real, char path[GPQ_SOCKET_PATH + 1],
                    struct gpq_error *e)
{
    char found[GPQ_PATH + 64];
    size_t length;

    if (in_runtime(p))
        (void)snprintf(found, sizeof(found), "%s/gpudispatch/socket-%016" PRIx64, p->runtime,
                       hash(real));
    else
        (void)snprintf(found, sizeof(found), "%s/socket", real);
    length = strlen(found);
    if (length > GPQ_SOCKET_PATH)
        return gpq_fail(e, GPQ_EUNUSABLE,
                        "socket %.280s: its path has %zu bytes, at most %d; set %s", found, length,
                        GPQ_SOCKET_PATH,
                        in_runtime(p) ? "XDG_RUNTIME_DIR to a shorter path"
                                      : "XDG_RUNTIME_DIR, or --state-dir to a shorter path");
    memcpy(path, found, length + 1);
    return 0;
}

int gpq_socket_make_directory(const struct gpq_places *p, struct gpq_error *e)
{
    char directory[GPQ_PATH];
    struct stat st;

    if (!in_runtime(p)) /* gpq_statedir_make has made it */
        return 0;
    /* "su" leaves the variable of another user. */
    if (!stat(p->runtime, &st) && st.st_uid != geteuid())
        return gpq_fail(e, GPQ_EUNUSABLE,
                        "XDG_RUNTIME_DIR %.280s: owner is uid %u, expected %u; unset it, or set it "
                        "to a directory of your own",
                        p->runtime, (unsigned)st.st_uid, (unsigned)geteuid());
    if (gpq_path(directory, "%s/gpudispatch", p->runtime))
        return gpq_fail(e, GPQ_EUNUSABLE, "XDG_RUNTIME_DIR: its path exceeds %d bytes; unset it",
                        GPQ_PATH - 1);
    return gpq_private_directory(directory, "directory of the socket", e);
}
