/* SPDX-License-Identifier: MIT */
/* doctor.c - checks of the queue for verb doctor. */
#include "queue/client/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/client/place.h"
#include "queue/client/stay.h"
#include "queue/files/filesystem.h"
#include "queue/files/program.h"
#include "queue/files/socket.h"
#include "queue/files/statedir.h"
#include "queue/files/stopped.h"

/* Below the first a submit may be refused; below the second a night may end so. */
#define SPACE_LEAST (UINT64_C(64) << 20)
#define SPACE_SMALL (UINT64_C(1) << 30)

static void find(const struct gpq_doctor *d, enum gpq_verdict verdict, const char *name,
                 const char *remedy, const char *format, ...) __attribute__((format(printf, 5, 6)));

static void find(const struct gpq_doctor *d, enum gpq_verdict verdict, const char *name,
                 const char *remedy, const char *format, ...)
{
    char text[GPQ_PATH + 256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    d->finding(verdict, name, remedy, text, d->user);
}

static void check_programs(const struct gpq_doctor *d)
{
    struct gpq_error e = { 0 };
    char agent[GPQ_PATH], runner[GPQ_PATH];
    if (gpq_program_find("gpudispatch-agent", agent, &e) < 0 ||
        gpq_program_find("gpudispatch-runner", runner, &e) < 0)
        find(d, GPQ_NOTE, "programs", "install the package gpudispatch-queue", "%s", e.text);
    else
        find(d, GPQ_OK, "programs", NULL, "the agent is %s", agent);
}

/* The file system of the directory, or of the nearest one above it that is there. */
static void check_disk(const struct gpq_doctor *d, const char *path)
{
    char there[GPQ_PATH], *slash;
    const char *network = NULL;
    struct gpq_space space;
    if (gpq_path(there, "%s", path) < 0)
        return;
    while (access(there, F_OK) < 0 && (slash = strrchr(there, '/')) && slash > there)
        *slash = '\0';
    if (gpq_filesystem_look(there, &network) == 0 && network)
        find(d, GPQ_PROBLEM, "file system", GPQ_ANOTHER_STATEDIR,
             "%s, a network file system: locks and syncs may not hold", network);
    if (gpq_space_look(there, &space) < 0)
        return;
    find(d,
         space.bytes < SPACE_LEAST   ? GPQ_PROBLEM
         : space.bytes < SPACE_SMALL ? GPQ_NOTE
                                     : GPQ_OK,
         "space", space.bytes < SPACE_SMALL ? "free space there, or " GPQ_ANOTHER_STATEDIR : NULL,
         "%" PRIu64 " MiB free for queue, outputs and logs", space.bytes >> 20);
}

/* The process at the other end of the socket. */
static int agent_pid(const struct gpq_places *places, const char *state)
{
    struct gpq_error e = { 0 };
    struct ucred peer = { .pid = 0 };
    socklen_t size = sizeof(peer);
    int fd = -1;
    if (gpq_socket_connect(places, state, &fd, &e) < 0)
        return 0;
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    close(fd);
    return peer.pid;
}

static void check_agent(const struct gpq_doctor *d, const char *state, int pid)
{
    char path[GPQ_PATH];
    struct stat st;
    bool queue = gpq_path(path, "%s/queue.db", state) == 0 && stat(path, &st) == 0;
    if (pid > 0)
        find(d, GPQ_OK, "agent", NULL, "it runs (pid %d)", pid);
    else if (!queue)
        find(d, GPQ_OK, "agent", NULL, "none: the first submit starts it");
    else if (gpq_stopped(state))
        find(d, GPQ_NOTE, "agent", "gpudispatch agent", "it was stopped: no task starts");
    else
        find(d, GPQ_NOTE, "agent", "gpudispatch agent",
             "it does not run; the next command of the queue starts it");
}

static void check_stay(const struct gpq_doctor *d, int pid)
{
    char process[16] = "self";
    struct gpq_stay stay;
    if (pid > 0)
        snprintf(process, sizeof(process), "%d", pid);
    gpq_stay_read(d->root, process, &stay);
    find(d, gpq_stay_ends(&stay) ? GPQ_NOTE : GPQ_OK, "logout",
         gpq_stay_ends(&stay) ? "enable gpudispatch-agent.service and lingering, see "
                                "docs/howto/systemd.md"
                              : NULL,
         "%s", gpq_stay_logout(&stay));
    find(d, GPQ_OK, "reboot", NULL, "%s", gpq_stay_reboot(&stay));
}

void gpq_doctor(const struct gpq_doctor *d)
{
    struct gpq_places places;
    struct gpq_error e = { 0 };
    char path[GPQ_PATH], state[GPQ_PATH];
    int pid = 0;
    check_programs(d);
    gpq_places_read(NULL, &places);
    int code = gpq_place_find(NULL, NULL, path, &e);
    bool has_path = code == 0; /* without one the config file may be what is not found */
    if (has_path && (code = gpq_statedir_check(path, state, &e)) == 0) {
        pid = agent_pid(&places, state);
        find(d, GPQ_OK, "state directory", NULL, "%s", state);
        check_disk(d, state);
        check_agent(d, state, pid);
    } else if (has_path && code == GPQ_ENOTFOUND) {
        find(d, GPQ_OK, "state directory", NULL, "%s: the first submit makes it", path);
        check_disk(d, path);
    } else {
        find(d, GPQ_PROBLEM, "state directory", GPQ_ANOTHER_STATEDIR, "%s", e.text);
    }
    check_stay(d, pid);
}
