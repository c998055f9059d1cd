/* SPDX-License-Identifier: MIT */
#include "keeper/surroundings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/refused.h"
#include "gpudispatch/device.h"
#include "gpudispatch/dispatch.h"

static _Noreturn void failed(const struct gpi_surroundings *s, const char *option, const char *what)
{
    char buffer[96], text[GPI_FAIL_TEXT_SIZE];
    const char *why = gpi_errno_text(errno, buffer, sizeof buffer);

    snprintf(text, sizeof text, "option %s: \"%.120s\": %s", option, what, why);
    gpi_page_setup_failed(s->page, GPUD_ESYSTEM, text);
    _exit(1);
}

/* ---- stdio ---- */

/* The path with each {slot} replaced; false when it gets too long. */
static bool expand(char *to, size_t size, const char *path, uint32_t slot)
{
    static const char word[] = "{slot}";
    size_t n = 0;

    while (*path && n < size) {
        if (strncmp(path, word, sizeof word - 1) != 0) {
            to[n++] = *path++;
            continue;
        }
        n += (size_t)snprintf(to + n, size - n, "%u", slot);
        path += sizeof word - 1;
    }
    if (n >= size)
        return false;
    to[n] = '\0';
    return true;
}

static int open_file(const struct gpi_surroundings *s)
{
    char path[PATH_MAX];
    int fd;

    if (!expand(path, sizeof path, s->launch->stdio_path, s->slot)) {
        errno = ENAMETOOLONG;
        failed(s, "stdio_path", s->launch->stdio_path);
    }
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0)
        failed(s, "stdio_path", path);
    return fd;
}

static int open_null(const struct gpi_surroundings *s, int how)
{
    int fd = open("/dev/null", how | O_CLOEXEC);

    if (fd < 0)
        failed(s, "stdio", "/dev/null");
    return fd;
}

/* dup2 takes close-on-exec away; what is there already would keep it. */
static bool put(int fd, int at)
{
    return (fd == at ? fcntl(fd, F_SETFD, 0) : dup2(fd, at)) >= 0;
}

static void put_or_fail(const struct gpi_surroundings *s, int fd, int at)
{
    if (!put(fd, at))
        failed(s, "stdio", at == 1 ? "stdout" : at == 2 ? "stderr" : "stdin");
}

static bool has_own(const struct gpi_surroundings *s)
{
    return s->launch->stdio == GPUD_STDIO_FILE || s->launch->stdio == GPUD_STDIO_DISCARD;
}

static void settle_stdio(const struct gpi_surroundings *s)
{
    int null = s->stdio_ready ? -1 : open_null(s, O_RDONLY), out = s->output, err = s->errors;

    if (has_own(s))
        out = err = s->launch->stdio == GPUD_STDIO_FILE ? open_file(s) : open_null(s, O_WRONLY);
    if (has_own(s) || !s->stdio_ready) {
        put_or_fail(s, out, 1); /* what is open here is above 2: 0 to 2 are, always */
        put_or_fail(s, err, 2);
    }
    if (!s->stdio_ready)
        put_or_fail(s, null, 0);
    if (null > 2)
        close(null);
    if (has_own(s) && out > 2)
        close(out);
}

/* What all its workers have alike the keeper takes once, and they inherit it.  It prints
 * nothing. */
static bool take_stdio(const struct gpi_surroundings *s)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool taken = null >= 0 && put(null, 0);

    if (!has_own(s))
        taken = taken && put(s->output, 1) && put(s->errors, 2);
    if (null > 2)
        close(null);
    return taken;
}

/* ---- environment, in the keeper ---- */

/* Setting what is set already would use memory in each life. */
static int set(const char *name, const char *value)
{
    const char *now = getenv(name);

    return now && !strcmp(now, value) ? 0 : setenv(name, value, 1);
}

static int set_pair(const char *pair)
{
    const char *equals = strchr(pair, '=');
    char *name;
    int rc;

    if (!equals)
        return unsetenv(pair);
    name = strndup(pair, (size_t)(equals - pair));
    if (!name)
        return -1;
    rc = setenv(name, equals + 1, 1);
    free(name);
    return rc;
}

static int take_pairs(const struct gpi_surroundings *s)
{
    char text[16];

    for (const char *const *pair = s->launch->env; pair && *pair; pair++)
        if (set_pair(*pair))
            return -1;
    snprintf(text, sizeof text, "%u", s->slot);
    return set("GPUD_SLOT", text);
}

/* A variable with its devices in the order of its set, by UUID or by number. */
static int set_devices(const struct gpi_surroundings *s, const char *name, bool by_number)
{
    char all[GPI_DEVICES * GPI_DEVICE_UUID_SIZE] = "", one[GPI_DEVICE_UUID_SIZE];
    size_t at = 0;

    for (uint32_t i = 0; i < GPI_DEVICES; i++) {
        gpi_page_text(one, s->page->uuid[i], sizeof one);
        if (!*one)
            break;
        if (by_number)
            snprintf(one, sizeof one, "%u", s->page->number[i]);
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i ? "," : "", one);
    }
    return set(name, all);
}

/* Whether CUDA finds an MPS daemon: then it counts the daemon's GPUs, not the machine's.  It looks
 * in the worker's directory, which is not ours. */
static bool has_mps(const struct gpi_surroundings *s)
{
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY"), *from = s->launch->cwd;
    char path[PATH_MAX];

    if (!directory)
        directory = "/tmp/nvidia-mps";
    if (!from || *directory == '/')
        from = "";
    snprintf(path, sizeof path, "%s%s%s/control", from, *from ? "/" : "", directory);
    return access(path, F_OK) == 0;
}

/* A worker sees its own GPUs and no others, in the order of its set; fakes behave alike.  The
 * driver reads these when it is first used, so they are here before any code of the user's. */
static int show_devices(const struct gpi_surroundings *s)
{
    const uint32_t kind = s->page->device_kind;

    if (kind != GPUD_DEVICE_GPU && kind != GPUD_DEVICE_MIG && kind != GPUD_DEVICE_FAKE)
        return 0;
    if (s->page->visible == GPUD_VISIBLE_AUTO)
        s->page->visible = has_mps(s) ? GPUD_VISIBLE_UUID : GPUD_VISIBLE_INDEX;
    if (set_devices(s, "CUDA_VISIBLE_DEVICES", s->page->visible == GPUD_VISIBLE_INDEX))
        return -1;
    return set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
}

/* The one of these that differs in each life: written where it stands in the environment. */
static int write_incarnation(struct gpi_surroundings *s, uint32_t incarnation)
{
    static const char name[] = "GPUD_INCARNATION=";

    snprintf(s->life, sizeof s->life, "%s%u", name, incarnation);
    return s->env_ready ? 0 : putenv(s->life);
}

int gpi_surroundings_prepare(struct gpi_surroundings *s, uint32_t incarnation)
{
    char text[GPI_DEVICE_SIZE];

    gpi_page_text(text, s->page->device, sizeof text);
    if ((!s->env_ready && take_pairs(s)) || write_incarnation(s, incarnation) || set("GPUD_DEVICES", text) ||
        set_devices(s, "GPUD_DEVICE_UUIDS", false) || show_devices(s))
        return -1;
    if (!s->env_ready)
        s->stdio_ready = take_stdio(s); /* else each worker tries, and tells what fails */
    s->env_ready = true;
    return 0;
}

void gpi_surroundings_settle(const struct gpi_surroundings *s)
{
    if (s->launch->cwd && chdir(s->launch->cwd))
        failed(s, "cwd", s->launch->cwd);
    settle_stdio(s); /* a relative path is one of that directory */
}
