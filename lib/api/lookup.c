/* SPDX-License-Identifier: MIT */
#include "api/lookup.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "gpudispatch/dispatch.h"
#include "os/fds.h"

#define WORKER_PROGRAM "gpudispatch-worker"

/* ---- one path ---- */

/* directory/name; false when it does not fit. */
static bool join(char to[GPI_PATH_SIZE], const char *directory, size_t length, const char *name)
{
    int n = snprintf(to, GPI_PATH_SIZE, "%.*s%s%s", (int)length, directory,
                     length && directory[length - 1] == '/' ? "" : "/", name);

    return n > 0 && n < GPI_PATH_SIZE;
}

/* From the directory of now.  0 or an errno. */
static int absolute(char to[GPI_PATH_SIZE], const char *name)
{
    char here[GPI_PATH_SIZE];

    if (name[0] == '/')
        return strlen(name) < GPI_PATH_SIZE ? (void)strcpy(to, name), 0 : ENAMETOOLONG;
    if (!getcwd(here, sizeof here))
        return errno;
    return join(to, here, strlen(here), name) ? 0 : ENAMETOOLONG;
}

/* 0, or the errno that using it would meet. */
static int usable(const char *path, int mode)
{
    struct stat st;

    if (stat(path, &st))
        return errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? EISDIR : EACCES;
    return eaccess(path, mode) ? errno : 0;
}

static int refuse(const char *path, int err, const char *field, struct gpud_error *e)
{
    if (err == ENOENT || err == ENOTDIR)
        return gpi_fail(e, GPUD_ENOPROGRAM, err, field, "%.100s", path);
    return gpi_fail(e, err == ENAMETOOLONG ? GPUD_EINVAL : GPUD_ENOTEXEC, err, field, "%.100s",
                    path);
}

/* ---- programs ---- */

/* As a shell finds it: the first that can be executed; else what was wrong with the first there is.
 */
static int search(char to[GPI_PATH_SIZE], const char *name)
{
    const char *path = getenv("PATH"), *at = path && *path ? path : "/usr/local/bin:/usr/bin:/bin";
    int err = ENOENT;

    for (;;) {
        size_t n = strcspn(at, ":");
        char part[GPI_PATH_SIZE];
        if (join(part, n ? at : ".", n ? n : 1, name) && absolute(to, part) == 0) {
            int why = usable(to, X_OK);
            if (why == 0)
                return 0;
            if (why != ENOENT && why != ENOTDIR && err == ENOENT)
                err = why;
        }
        if (!at[n])
            return err;
        at += n + 1;
    }
}

int gpi_lookup_program(char to[GPI_PATH_SIZE], const char *name, const char *field,
                       struct gpud_error *e)
{
    int err;

    if (!strchr(name, '/')) {
        err = search(to, name);
        if (err == ENOENT)
            return gpi_fail(e, GPUD_ENOPROGRAM, err, field, "%.100s, in PATH", name);
        return err ? refuse(name, err, field, e) : 0;
    }
    err = absolute(to, name);
    if (err == 0)
        err = usable(to, X_OK);
    return err ? refuse(name, err, field, e) : 0;
}

/* ---- plugins ---- */

/* The beginning of a file; how many bytes there are, up to all of the header, or -1 and errno. */
static ssize_t read_header(const char *path, ElfW(Ehdr) *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    memset(ret, 0, sizeof *ret);
    if (fd < 0)
        return -1;
    n = pread(fd, ret, sizeof *ret, 0);
    gpi_fd_close(&fd);
    return n;
}

/* The bundled program is built as the library is: what this process cannot load, it cannot. */
static bool is_for_others(const ElfW(Ehdr) *h)
{
    ElfW(Ehdr) own;

    return read_header("/proc/self/exe", &own) == (ssize_t)sizeof own &&
           (h->e_ident[EI_CLASS] != own.e_ident[EI_CLASS] ||
            h->e_ident[EI_DATA] != own.e_ident[EI_DATA] || h->e_machine != own.e_machine);
}

/* Why no loader takes it, or NULL. */
static const char *object_fault(const ElfW(Ehdr) *h, size_t n)
{
    if (n == 0)
        return "is empty";
    if (n < SELFMAG || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return "is not an ELF file";
    if (n < sizeof *h)
        return "is too short for an ELF file";
    if (is_for_others(h))
        return "is an ELF file for another machine type";
    return h->e_type == ET_REL ? "is an object file: link it with -shared" : NULL;
}

static int check_object(const char *path, const char *name, struct gpud_error *e)
{
    ElfW(Ehdr) h;
    ssize_t n = read_header(path, &h);
    const char *fault = n < 0 ? NULL : object_fault(&h, (size_t)n);

    if (n < 0)
        return gpi_fail(e, GPUD_EPLUGIN, errno, "plugin", "%.100s", name);
    return fault ? gpi_fail(e, GPUD_EPLUGIN, 0, "plugin", "%.100s %s", name, fault) : 0;
}

int gpi_lookup_plugin(char to[GPI_PATH_SIZE], const char *name, struct gpud_error *e)
{
    int err = absolute(to, name);

    if (err == 0)
        err = usable(to, R_OK);
    if (err && err != ENOENT && err != ENOTDIR && err != ENAMETOOLONG)
        return gpi_fail(e, GPUD_EPLUGIN, err, "plugin", "%.100s", name);
    return err ? refuse(name, err, "plugin", e) : check_object(to, name, e);
}

/* ---- the bundled worker program ---- */

/* A line of /proc/self/maps: whether this address lies in it, and the file that is mapped there. */
static bool mapped(char to[GPI_PATH_SIZE], char *line, size_t address)
{
    size_t from, end;
    int at = 0;

    line[strcspn(line, "\n")] = '\0';
    return sscanf(line, "%zx-%zx %*s %*s %*s %*s %n", &from, &end, &at) == 2 && from <= address &&
           address < end && line[at] == '/' && absolute(to, line + at) == 0;
}

/* By what is mapped: the loader knows a program, and a library in a relative directory, only as
 * somebody called it. */
static bool mapped_file(char to[GPI_PATH_SIZE], size_t address)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    bool found = false;
    char *line = NULL;
    size_t size = 0;

    while (maps && !found && getline(&line, &size, maps) > 0)
        found = mapped(to, line, address);
    free(line);
    if (maps)
        (void)fclose(maps);
    return found;
}

/* The file that this code is in: the shared library, or a program that has the library inside. */
static bool own_file(char to[GPI_PATH_SIZE])
{
    size_t here = (size_t)gpi_lookup_worker;
    Dl_info info;

    if (dladdr((void *)here, &info) && info.dli_fname && info.dli_fname[0] == '/')
        return absolute(to, info.dli_fname) == 0;
    return mapped_file(to, here);
}

/* Beside that file, as in a build tree. */
static bool beside_us(char to[GPI_PATH_SIZE], const char *self)
{
    const char *slash = strrchr(self, '/');

    return slash && join(to, self, (size_t)(slash - self), WORKER_PROGRAM);
}

/* In the prefix whose directory of libraries holds that file, wherever the prefix has been moved
 * to. */
static bool in_our_prefix(char to[GPI_PATH_SIZE], const char *self)
{
    static const char inside[] = "/" GPUD_LIBDIR "/libgpudispatch.so";
    const char *at = NULL;

    for (const char *next = self; (next = strstr(next, inside)) != NULL; next++)
        at = next;
    return at && !strchr(at + sizeof inside - 1, '/') &&
           join(to, self, (size_t)(at - self), GPUD_LIBEXECDIR "/" WORKER_PROGRAM);
}

/* As it was configured; an absolute GPUD_LIBEXECDIR is outside the prefix. */
static bool installed(char to[GPI_PATH_SIZE])
{
    return GPUD_LIBEXECDIR[0] == '/'
               ? absolute(to, GPUD_LIBEXECDIR "/" WORKER_PROGRAM) == 0
               : join(to, GPUD_PREFIX, sizeof GPUD_PREFIX - 1, GPUD_LIBEXECDIR "/" WORKER_PROGRAM);
}

int gpi_lookup_worker(char to[GPI_PATH_SIZE], struct gpud_error *e)
{
    const char *given = secure_getenv("GPUD_WORKER_PROGRAM");
    char self[GPI_PATH_SIZE];
    int err;

    if (given && *given)
        return gpi_lookup_program(to, given, "GPUD_WORKER_PROGRAM", e);
    if (own_file(self) && ((beside_us(to, self) && usable(to, X_OK) == 0) ||
                           (in_our_prefix(to, self) && usable(to, X_OK) == 0)))
        return 0;
    err = installed(to) ? usable(to, X_OK) : ENAMETOOLONG;
    return err ? refuse(to, err, "GPUD_WORKER_PROGRAM", e) : 0;
}
