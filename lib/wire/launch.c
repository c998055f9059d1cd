/* SPDX-License-Identifier: MIT */
#include "wire/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x4c445047u /* "GPDL" */
#define VERSION 1u

enum {
    HAS_PROGRAM_FD = 1,
    HAS_PROGRAM = 2,
    HAS_PLUGIN = 4,
    HAS_CWD = 8,
    HAS_STDIO_PATH = 16,
    FLAGS = 31
};

struct head {
    uint32_t magic, version;
    uint32_t start, stdio, flags;
    uint32_t n_argv, n_env;
    uint32_t reserved;
};

/* ---- rules for every record ---- */

static bool absent_or_full(const char *s)
{
    return !s || *s;
}

static bool env_ok(const char *const *env)
{
    for (; env && *env; env++)
        if (!**env || **env == '=')
            return false;
    return true;
}

static bool sensible(const struct gpi_launch *l)
{
    bool args = l->argv && l->argv[0];

    if (l->stdio > GPUD_STDIO_EVENTS || (l->stdio == GPUD_STDIO_FILE) != (l->stdio_path != NULL) ||
        l->has_program > 1)
        return false;
    if (!absent_or_full(l->program) || !absent_or_full(l->plugin) || !absent_or_full(l->cwd) ||
        !absent_or_full(l->stdio_path) || !env_ok(l->env))
        return false;
    if (l->start == GPUD_START_FORK)
        return !args && !l->program && !l->plugin && !l->has_program;
    return l->start == GPUD_START_EXEC && args && (l->program != NULL) != (l->has_program == 1) &&
           (!l->program || l->program[0] == '/');
}

/* ---- to bytes ---- */

static uint32_t count(const char *const *list)
{
    uint32_t n = 0;

    while (list && list[n] && n <= GPI_LAUNCH_STRINGS)
        n++;
    return n;
}

/* Adds one string; with at = NULL it only counts the bytes. */
static void put(char *at, size_t *size, const char *s)
{
    size_t n = s ? strlen(s) + 1 : 0;

    if (at && n)
        memcpy(at + *size, s, n);
    *size += n;
}

static size_t put_all(char *at, const struct gpi_launch *l)
{
    size_t size = sizeof(struct head);

    put(at, &size, l->program);
    put(at, &size, l->plugin);
    put(at, &size, l->cwd);
    put(at, &size, l->stdio_path);
    for (const char *const *s = l->argv; s && *s; s++)
        put(at, &size, *s);
    for (const char *const *s = l->env; s && *s; s++)
        put(at, &size, *s);
    return size;
}

int gpi_launch_encode(const struct gpi_launch *l, void **ret_blob, size_t *ret_size)
{
    struct head h = {
        .magic = MAGIC,
        .version = VERSION,
        .start = l->start,
        .stdio = l->stdio,
        .flags = (l->has_program ? HAS_PROGRAM_FD : 0u) | (l->program ? HAS_PROGRAM : 0u) |
                 (l->plugin ? HAS_PLUGIN : 0u) | (l->cwd ? HAS_CWD : 0u) |
                 (l->stdio_path ? HAS_STDIO_PATH : 0u),
        .n_argv = count(l->argv),
        .n_env = count(l->env),
    };
    size_t size;
    char *blob;

    if (h.n_argv > GPI_LAUNCH_STRINGS || h.n_env > GPI_LAUNCH_STRINGS ||
        (size = put_all(NULL, l)) > GPI_LAUNCH_MAX) {
        errno = E2BIG;
        return -1;
    }
    if (!sensible(l)) {
        errno = EINVAL;
        return -1;
    }
    blob = malloc(size);
    if (!blob)
        return -1;
    memcpy(blob, &h, sizeof h);
    (void)put_all(blob, l);
    *ret_blob = blob;
    *ret_size = size;
    return 0;
}

/* ---- from bytes ---- */

static bool head_ok(const struct head *h, size_t size)
{
    return size <= GPI_LAUNCH_MAX && h->magic == MAGIC && h->version == VERSION &&
           h->flags <= FLAGS && h->reserved == 0 && h->n_argv <= GPI_LAUNCH_STRINGS &&
           h->n_env <= GPI_LAUNCH_STRINGS;
}

/* The next string, or NULL when none ends before `end`. */
static const char *take(const char **at, const char *end)
{
    const char *s = *at, *zero = memchr(s, 0, (size_t)(end - s));

    if (!zero)
        return NULL;
    *at = zero + 1;
    return s;
}

/* Takes a string if the head announces it; false if it is announced and missing. */
static bool take_if(bool there, const char **ret, const char **at, const char *end)
{
    return !there || (*ret = take(at, end)) != NULL;
}

static bool take_list(uint32_t n, const char **list, const char **at, const char *end)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(list[i] = take(at, end)))
            return false;
    list[n] = NULL;
    return true;
}

/* The strings follow the two lists in one block. */
static bool read_block(struct gpi_launch *l, const struct head *h, const char **lists,
                       const char *at, const char *end)
{
    *l = (struct gpi_launch){ .start = h->start,
                              .stdio = h->stdio,
                              .has_program = h->flags & HAS_PROGRAM_FD,
                              .block = lists };
    if (!take_if(h->flags & HAS_PROGRAM, &l->program, &at, end) ||
        !take_if(h->flags & HAS_PLUGIN, &l->plugin, &at, end) ||
        !take_if(h->flags & HAS_CWD, &l->cwd, &at, end) ||
        !take_if(h->flags & HAS_STDIO_PATH, &l->stdio_path, &at, end) ||
        !take_list(h->n_argv, lists, &at, end) ||
        !take_list(h->n_env, lists + h->n_argv + 1, &at, end))
        return false;
    l->argv = h->n_argv ? lists : NULL;
    l->env = h->n_env ? lists + h->n_argv + 1 : NULL;
    return at == end && sensible(l);
}

int gpi_launch_decode(struct gpi_launch *ret, const void *blob, size_t size)
{
    struct gpi_launch l;
    struct head h;
    const char **lists;
    size_t room;

    if (size < sizeof h || (memcpy(&h, blob, sizeof h), !head_ok(&h, size))) {
        errno = EBADMSG;
        return -1;
    }
    size -= sizeof h;
    room = ((size_t)h.n_argv + h.n_env + 2) * sizeof *lists;
    lists = malloc(room + size + 1);
    if (!lists)
        return -1;
    memcpy((char *)lists + room, (const char *)blob + sizeof h, size);
    if (!read_block(&l, &h, lists, (char *)lists + room, (char *)lists + room + size)) {
        free(lists);
        errno = EBADMSG;
        return -1;
    }
    *ret = l;
    return 0;
}
