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

    snprintf(text, sizeof text, "%s \"%.120s\": %s", option, what, why);
    gpi_page_setup_failed(s->page, GPUD_ESYSTEM, text);
    _exit(1);
}

/* ---- stdio ---- */

/* Copies the path with each {slot} replaced; false if it gets too long. */
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

/* dup2 clears close-on-exec; an fd that is in its place already would keep the flag. */
static void put(const struct gpi_surroundings *s, int fd, int at)
{
    if ((fd == at ? fcntl(fd, F_SETFD, 0) : dup2(fd, at)) < 0)
        failed(s, "stdio", at == 1 ? "stdout" : at == 2 ? "stderr" : "stdin");
}

static void settle_stdio(const struct gpi_surroundings *s)
{
    const bool own = s->launch->stdio == GPUD_STDIO_FILE || s->launch->stdio == GPUD_STDIO_DISCARD;
    int null = open_null(s, O_RDONLY), out = s->output, err = s->errors;

    if (own)
        out = err = s->launch->stdio == GPUD_STDIO_FILE ? open_file(s) : open_null(s, O_WRONLY);
    put(s, out, 1); /* no fd overwrites another: 0 to 2 are always open, so these are above 2 */
    put(s, err, 2);
    put(s, null, 0);
    if (null > 2)
        close(null);
    if (own && out > 2)
        close(out);
}

/* ---- environment ---- */

static char **copy_list(char **list)
{
    size_t n = 0;
    char **copy;

    while (list && list[n])
        n++;
    copy = calloc(n + 1, sizeof *copy);
    if (copy && n)
        memcpy(copy, list, n * sizeof *copy);
    return copy;
}

bool gpi_surroundings_init(struct gpi_surroundings *s, const struct gpi_launch *launch,
                           uint32_t slot)
{
    *s = (struct gpi_surroundings){ .launch = launch, .slot = slot, .output = -1, .errors = -1 };
    s->first = copy_list(environ);
    return s->first;
}

/* setenv changes the list that `environ` points to, or moves to a list of its own: so each class
 * begins with a fresh copy. */
bool gpi_surroundings_reset(struct gpi_surroundings *s)
{
    char **copy = copy_list(s->first);

    if (!copy)
        return false;
    environ = copy;
    free(s->reset);
    s->reset = copy;
    return true;
}

/* Returns whether the environment matches "NAME=VALUE", or lacks "NAME". */
static bool is_set(const char *pair)
{
    const size_t name = strcspn(pair, "=");

    for (char *const *e = environ; e && *e; e++)
        if (strncmp(*e, pair, name) == 0 && (*e)[name] == '=')
            return pair[name] && strcmp(*e + name, pair + name) == 0;
    return !pair[name];
}

/* Returns 0, or -1 with errno. */
static int set_pair(const char *pair)
{
    const char *equals = strchr(pair, '=');
    char *name;
    int r;

    if (!equals)
        return unsetenv(pair);
    name = strndup(pair, (size_t)(equals - pair));
    if (!name)
        return -1;
    r = setenv(name, equals + 1, 1);
    free(name);
    return r;
}

/* Sets the variables that all kinds of devices share: the option's, then the library's, whose text
 * the environment keeps in *s itself.  Leaves right values alone.  Returns NULL, or the entry that
 * failed. */
static const char *set_variables(struct gpi_surroundings *s)
{
    for (const char *const *pair = s->launch->env; pair && *pair; pair++)
        if (!is_set(*pair) && set_pair(*pair))
            return *pair;
    for (size_t i = 0; i < GPI_OUR_VARIABLES; i++)
        if (!is_set(s->ours[i]) && putenv(s->ours[i]))
            return s->ours[i];
    return NULL;
}

static void set(const struct gpi_surroundings *s, const char *name, const char *value)
{
    if (setenv(name, value, 1))
        failed(s, "env", name);
}

/* Lists the worker's devices in the order of their set, by UUID or by number. */
static void list_devices(const struct gpi_surroundings *s, bool by_number, char *all, size_t size)
{
    char one[GPI_DEVICE_UUID_SIZE];
    size_t at = 0;

    all[0] = '\0';
    for (uint32_t i = 0; i < GPI_DEVICES; i++) {
        gpi_page_text(one, s->page->uuid[i], sizeof one);
        if (!*one)
            break;
        if (by_number)
            snprintf(one, sizeof one, "%u", s->page->number[i]);
        at += (size_t)snprintf(all + at, size - at, "%s%s", i ? "," : "", one);
    }
}

/* Returns whether CUDA finds an MPS daemon: then it counts the daemon's GPUs, not the machine's. */
static bool has_mps(void)
{
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/control", directory ? directory : "/tmp/nvidia-mps");
    return access(path, F_OK) == 0;
}

/* A worker sees only its own GPUs, in the order of its set; fakes behave alike.  The driver reads
 * these variables when it is first used, so they are set before any code of the user runs. */
static void show_devices(const struct gpi_surroundings *s)
{
    const uint32_t kind = s->page->device_kind;
    char all[GPI_UUIDS_SIZE];

    if (kind != GPUD_DEVICE_GPU && kind != GPUD_DEVICE_MIG && kind != GPUD_DEVICE_FAKE)
        return;
    if (s->page->visible == GPUD_VISIBLE_AUTO)
        s->page->visible = has_mps() ? GPUD_VISIBLE_UUID : GPUD_VISIBLE_INDEX;
    list_devices(s, s->page->visible == GPUD_VISIBLE_INDEX, all, sizeof all);
    set(s, "CUDA_VISIBLE_DEVICES", all);
    set(s, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
}

/* Runs before each fork.  Each worker repeats a step that fails here, and reports it. */
void gpi_surroundings_prepare(struct gpi_surroundings *s, uint32_t incarnation)
{
    char names[GPI_DEVICE_SIZE], uuids[GPI_UUIDS_SIZE];

    gpi_page_text(names, s->page->device, sizeof names);
    list_devices(s, false, uuids, sizeof uuids);
    snprintf(s->ours[0], sizeof s->ours[0], "GPUD_SLOT=%u", s->slot);
    snprintf(s->ours[1], sizeof s->ours[1], "GPUD_INCARNATION=%u", incarnation);
    snprintf(s->ours[2], sizeof s->ours[2], "GPUD_DEVICES=%s", names);
    snprintf(s->ours[3], sizeof s->ours[3], "GPUD_DEVICE_UUIDS=%s", uuids);
    (void)set_variables(s);
}

void gpi_surroundings_settle(struct gpi_surroundings *s)
{
    const char *broken;

    if (s->launch->cwd && chdir(s->launch->cwd))
        failed(s, "cwd", s->launch->cwd);
    settle_stdio(s); /* after chdir: a relative path starts in that directory */
    /* the keeper has set them, but a handler of pthread_atfork may have changed that */
    broken = set_variables(s);
    if (broken)
        failed(s, "env", broken);
    show_devices(s);
}
