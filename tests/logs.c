/* SPDX-License-Identifier: MIT */
#include "logs.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/replay.h"

#define LOG_MOST (64 << 20) /* bytes: as lib/host/core.h promises */

static void note(struct t_logs *sum, const char *path, const struct gpi_replay *r, int result)
{
    const char *name = strrchr(path, '/') + 1;

    if (sum->differ++)
        return;
    if (!r)
        (void)snprintf(sum->difference, sizeof(sum->difference), "%s has more than 64 MiB", name);
    else if (result == GPI_REPLAY_BAD)
        (void)snprintf(sum->difference, sizeof(sum->difference), "%s:%u: %s", name, r->line,
                       r->error);
    else
        (void)snprintf(sum->difference, sizeof(sum->difference),
                       "%s:%u: the log has \"%.*s\", a fresh core \"%.*s\"", name, r->line, 150,
                       r->wanted, 150, r->got);
}

/* The process that wrote the log may have been killed. */
static void compare(struct t_logs *sum, const char *path, const char *text, size_t size)
{
    struct gpi_replay r = { .cut = true };
    const enum gpi_replay_result result = gpi_replay(&r, text, size);

    if (result != GPI_REPLAY_EQUAL) {
        note(sum, path, &r, (int)result);
        return;
    }
    sum->equal++;
    sum->lines += r.line;
}

static void compare_file(struct t_logs *sum, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st = { 0 };
    void *text;

    if (fd < 0 || fstat(fd, &st) || st.st_size == 0) {
        (void)close(fd);
        return;
    }
    if (st.st_size > LOG_MOST)
        note(sum, path, NULL, 0);
    text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    if (text == MAP_FAILED)
        return;
    compare(sum, path, text, (size_t)st.st_size);
    (void)munmap(text, (size_t)st.st_size);
}

void t_logs_compare(struct t_logs *sum, const char *directory)
{
    char pattern[512];
    glob_t files;

    (void)snprintf(pattern, sizeof(pattern), "%s/*.log", directory);
    if (glob(pattern, 0, NULL, &files))
        return;
    for (size_t i = 0; i < files.gl_pathc; i++)
        compare_file(sum, files.gl_pathv[i]);
    globfree(&files);
}
