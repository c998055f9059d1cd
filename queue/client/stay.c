/* SPDX-License-Identifier: MIT */
/* stay.c - lingering, units and sessions of systemd. */
#include "queue/client/stay.h"

#include <dirent.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/files/files.h"

#define UNIT "gpudispatch-agent"
#define WANTS "systemd/user/default.target.wants/" UNIT ".service"

/* ---- Files ---- */

/* A symbolic link counts, also one that leads nowhere below `root`. */
static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Calls fn with each line of a file. */
static void each_line(const char *path, void (*fn)(const char *line, struct gpq_stay *s),
                      struct gpq_stay *s)
{
    char line[1024];
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        fn(line, s);
    if (f)
        fclose(f);
}

static void read_cgroup(const char *line, struct gpq_stay *s)
{
    s->manager = s->manager || strstr(line, "/user@");
    s->session = s->session || strstr(line, "/session-");
}

/* KillUserProcesses=yes; the last one counts. */
static void read_setting(const char *line, struct gpq_stay *s)
{
    static const char name[] = "KillUserProcesses=";
    if (strncmp(line, name, strlen(name)) == 0)
        s->kills = strchr("yYtT1", line[strlen(name)]) != NULL;
}

static int is_setting(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".conf") == 0;
}

static void read_logind(const char *root, struct gpq_stay *s)
{
    char path[GPQ_PATH], folder[GPQ_PATH];
    struct dirent **list = NULL;
    if (gpq_path(path, "%s/etc/systemd/logind.conf", root) == 0)
        each_line(path, read_setting, s);
    if (gpq_path(folder, "%s/etc/systemd/logind.conf.d", root) < 0)
        return;
    int n = scandir(folder, &list, is_setting, alphasort);
    for (int i = 0; i < n; i++) {
        if (gpq_path(path, "%s/%s", folder, list[i]->d_name) == 0)
            each_line(path, read_setting, s);
        free(list[i]);
    }
    free(list);
}

static bool is_user_unit(const char *root)
{
    char path[GPQ_PATH];
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (gpq_path(path, "%s/etc/" WANTS, root) == 0 && is_there(path))
        return true;
    int code = config && *config == '/' ? gpq_path(path, "%s%s/" WANTS, root, config)
               : home                   ? gpq_path(path, "%s%s/.config/" WANTS, root, home)
                                        : -1;
    return code == 0 && is_there(path);
}

void gpq_stay_read(const char *root, const char *process, struct gpq_stay *ret)
{
    char path[GPQ_PATH];
    const struct passwd *user = getpwuid(geteuid());
    *ret = (struct gpq_stay){ .user_unit = is_user_unit(root) };
    if (gpq_path(path, "%s/proc/%s/cgroup", root, process) == 0)
        each_line(path, read_cgroup, ret);
    read_logind(root, ret);
    if (!user)
        return;
    ret->lingers =
        gpq_path(path, "%s/var/lib/systemd/linger/%s", root, user->pw_name) == 0 && is_there(path);
    ret->system_unit =
        gpq_path(path, "%s/etc/systemd/system/multi-user.target.wants/" UNIT "@%s.service", root,
                 user->pw_name) == 0 &&
        is_there(path);
}

/* ---- Texts ---- */

bool gpq_stay_ends(const struct gpq_stay *s)
{
    return s->manager ? !s->lingers : s->session && s->kills;
}

const char *gpq_stay_logout(const struct gpq_stay *s)
{
    if (!gpq_stay_ends(s))
        return "a logout leaves it running";
    return s->manager ? "a logout ends it and its commands (loginctl enable-linger keeps them)"
                      : "a logout ends it and its commands (KillUserProcesses of logind.conf)";
}

const char *gpq_stay_reboot(const struct gpq_stay *s)
{
    if (s->system_unit || (s->user_unit && s->lingers))
        return "a reboot starts it";
    return s->user_unit ? "after a reboot your login starts it"
                        : "after a reboot the next gpudispatch command starts it";
}
