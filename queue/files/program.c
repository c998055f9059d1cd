/* SPDX-License-Identifier: MIT */
/* program.c - where the programs of the queue are installed. */
#include "queue/files/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_set(const char *text)
{
    return text && *text;
}

/* 0: a file that may be executed; else an errno. */
static int usable(const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    if (!S_ISREG(st.st_mode))
        return EACCES;
    return access(path, X_OK) ? errno : 0;
}

static int refuse(const struct gpq_program_places *p, const char *path, int number,
                  struct gpq_error *e)
{
    return gpq_fail(e, GPQ_ENOTFOUND, "%.300s: %s; set %s to the path of the program", path,
                    strerror(number), p->variable);
}

static int check_given(const struct gpq_program_places *p, char path[GPQ_PATH], struct gpq_error *e)
{
    int number = -gpq_path_absolute(path, p->given);

    if (!number)
        number = usable(path);
    return number ? gpq_fail(e, GPQ_ENOTFOUND, "%s %.300s: %s", p->variable, p->given,
                             strerror(number))
                  : 0;
}

/* A path through BINDIR has "..", which the real path has not. */
static int check_configured(const struct gpq_program_places *p, const char *name,
                            char path[GPQ_PATH], struct gpq_error *e)
{
    char place[GPQ_PATH];
    int number;

    if (p->from_bin[0] == '/')
        number = -gpq_path(place, "%s/%s", p->from_bin, name);
    else if (p->own)
        number = -gpq_path(place, "%s/%s/%s", p->own, p->from_bin, name);
    else
        return refuse(p, name, ENOENT, e);
    if (!number)
        number = usable(place);
    if (!number && !realpath(place, path))
        number = errno;
    return number ? refuse(p, place, number, e) : 0;
}

int gpq_program_search(const struct gpq_program_places *p, const char *name, char path[GPQ_PATH],
                       struct gpq_error *e)
{
    if (is_set(p->given))
        return check_given(p, path, e);
    if (p->own && gpq_path(path, "%s/%s", p->own, name) == 0 && usable(path) == 0)
        return 0;
    return check_configured(p, name, path, e);
}

/* The kernel appends " (deleted)" to the name of a program that an upgrade has replaced, and the
 * directory stays right. */
static const char *own_directory(char directory[GPQ_PATH])
{
    ssize_t size = readlink("/proc/self/exe", directory, GPQ_PATH - 1);
    char *slash;

    if (size <= 0 || size >= GPQ_PATH - 1)
        return NULL;
    directory[size] = 0;
    slash = strrchr(directory, '/');
    if (!slash)
        return NULL;
    *slash = 0;
    return directory;
}

static const char *variable_of(const char *name)
{
    return strcmp(name, "gpudispatch-agent") == 0   ? "GPUD_AGENT_PROGRAM"
           : strcmp(name, "gpudispatch-serve") == 0 ? "GPUD_SERVE_PROGRAM"
                                                    : "GPUD_RUNNER_PROGRAM";
}

int gpq_program_find(const char *name, char path[GPQ_PATH], struct gpq_error *e)
{
    char directory[GPQ_PATH];
    struct gpq_program_places p = {
        .variable = variable_of(name),
        .own = own_directory(directory),
        .from_bin = GPQ_PROGRAMS_FROM_BIN,
    };

    p.given = getenv(p.variable);
    return gpq_program_search(&p, name, path, e);
}
