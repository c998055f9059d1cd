/* SPDX-License-Identifier: MIT */
/* socket.c - where agent and client find each other. */
#include "queue/files/socket.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "queue/files/fault.h"
#include "queue/files/save.h"
#include "queue/files/statedir.h"

#define SAVED "socket-path"

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

/* ---- The saved path ---- */

int gpq_socket_save(const char *real, const char *path, struct gpq_error *e)
{
    int ret = gpq_save(&gpq_system_files, real, SAVED, path, strlen(path));
    return ret ? gpq_fault(e, ret, "%.300s/" SAVED, real) : 0;
}

int gpq_socket_saved(const char *real, char path[GPQ_SOCKET_PATH + 1], struct gpq_error *e)
{
    char file[GPQ_PATH];
    void *data = NULL;
    size_t size = 0;
    int ret = gpq_path(file, "%s/" SAVED, real);

    if (!ret)
        ret = gpq_read_whole(&gpq_system_files, file, GPQ_SOCKET_PATH, &data, &size);
    if (ret && ret != -EFBIG)
        return gpq_fault(e, ret, "%.300s", file);
    if (ret || !size || strlen(data) != size || *(const char *)data != '/') {
        free(data);
        return gpq_fail(e, GPQ_EUNUSABLE,
                        "%.300s: not the path of a socket; remove the file, and start the agent "
                        "anew",
                        file);
    }
    memcpy(path, data, size + 1);
    free(data);
    return 0;
}

void gpq_socket_forget(const char *real, const char *path)
{
    char saved[GPQ_SOCKET_PATH + 1], file[GPQ_PATH];
    struct gpq_error e;

    if (!gpq_socket_saved(real, saved, &e) && !strcmp(saved, path) &&
        !gpq_path(file, "%s/" SAVED, real))
        (void)unlink(file);
}

/* ---- Clients ---- */

/* What a listener's own process was when it began to listen (unix(7)). */
static int check_listener(int fd, const char *path, struct gpq_error *e)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
        return gpq_fault(e, errno, "socket %.200s", path);
    if (peer.uid != geteuid())
        return gpq_fail(e, GPQ_EUNUSABLE,
                        "socket %.200s: its listener has uid %u, expected %u; set XDG_RUNTIME_DIR "
                        "to a directory of your own",
                        path, (unsigned)peer.uid, (unsigned)geteuid());
    return 0;
}

static int connect_to(const char *path, int *ret_fd, struct gpq_error *e)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;

    if (fd < 0)
        return gpq_fault(e, errno, "socket %.200s", path);
    memcpy(to.sun_path, path, strlen(path) + 1);
    do
        ret = connect(fd, (struct sockaddr *)&to, sizeof(to)) ? errno : 0;
    while (ret == EINTR);
    if (ret == ENOENT || ret == ECONNREFUSED)
        ret = gpq_fail(e, GPQ_ENOTFOUND, "socket %.200s: no agent listens", path);
    else
        ret = ret ? gpq_fault(e, ret, "socket %.200s", path) : check_listener(fd, path, e);
    if (ret) {
        (void)close(fd);
        return ret;
    }
    *ret_fd = fd;
    return 0;
}

int gpq_socket_connect(const struct gpq_places *p, const char *real, int *ret_fd,
                       struct gpq_error *e)
{
    char path[GPQ_SOCKET_PATH + 1];
    struct gpq_error second = { 0 };
    int ret = gpq_socket_find(p, real, path, e);

    if (!ret)
        ret = connect_to(path, ret_fd, e);
    if (!ret || gpq_socket_saved(real, path, &second))
        return ret;
    int other = connect_to(path, ret_fd, &second);
    if (other && other != GPQ_ENOTFOUND)
        *e = second;
    return other == GPQ_ENOTFOUND ? ret : other;
}
