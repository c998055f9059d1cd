/* SPDX-License-Identifier: MIT */
#include "user.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"

/* Its arguments, with blanks between them; empty for a kernel thread, and where they are hidden. */
static void read_command(uint32_t pid, char *command, size_t size)
{
    char path[32];
    size_t n = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    f = fopen(path, "re");
    if (f) {
        n = fread(command, 1, size - 1, f);
        (void)fclose(f);
    }
    while (n > 0 && !command[n - 1])
        n--;
    for (size_t i = 0; i < n; i++)
        if (!command[i])
            command[i] = ' ';
    command[n] = '\0';
}

void user_look(struct user *u)
{
    struct passwd *who;
    char path[32];
    uint64_t uid;

    u->name[0] = u->command[0] = '\0';
    (void)snprintf(path, sizeof path, "/proc/%u/status", u->pid);
    if (!u->pid || !file_number(path, "Uid:", &uid))
        return;
    who = getpwuid((uid_t)uid);
    if (who)
        (void)snprintf(u->name, sizeof u->name, "%.31s", who->pw_name);
    else
        (void)snprintf(u->name, sizeof u->name, "uid %llu", (unsigned long long)uid);
    read_command(u->pid, u->command, sizeof u->command);
}

size_t users_of(const struct look *l, const struct gpud_device_info *r,
                struct user user[static USERS_MAX])
{
    struct gpud_process_info row[USERS_MAX] = { GPUD_PROCESS_INFO_INIT };
    const int n = gpud_monitor_processes(l->monitor, r->uuid, row, USERS_MAX);
    size_t i = 0;

    for (; n > 0 && i < (size_t)n && i < USERS_MAX; i++) {
        user[i] = (struct user){ .pid = row[i].pid, .memory = row[i].memory,
                                 .worker = row[i].worker };
        user_look(&user[i]);
    }
    return i;
}

char *user_text(const struct user *u, char *text, size_t size)
{
    const char *command = u->command[0] ? u->command : "?";
    char memory[40] = "memory unknown", pid[24] = "a process";

    if (u->memory != GPUD_UNKNOWN64)
        (void)snprintf(memory, sizeof memory, "%llu MiB", (unsigned long long)(u->memory >> 20));
    if (u->pid)
        (void)snprintf(pid, sizeof pid, "pid %u", u->pid);
    if (u->name[0])
        (void)snprintf(text, size, "%s, %s, %s: %s", pid, u->name, memory, command);
    else
        (void)snprintf(text, size, "%s, %s: ended, or not visible from here", pid, memory);
    return text;
}
