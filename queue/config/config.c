/* SPDX-License-Identifier: MIT */
/* config.c - where the config file is, and what its settings are. */
#include "queue/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/config/check.h"

#define VARIABLE "GPUDISPATCH_CONFIG"
enum { FILE_MOST = 1 << 20 };

static int no_memory(struct gpq_error *e)
{
    return gpq_fail(e, GPQ_ENOMEM, "no memory for the config");
}

/* A variable of the environment; NULL, if it is not set or empty. */
static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* ---- The file ---- */

/* As seen from the root.  NULL: no memory. */
static char *absolute(const char *path)
{
    char *here = *path == '/' ? NULL : getcwd(NULL, 0), *ret = NULL;
    if (*path == '/')
        return strdup(path);
    if (here && asprintf(&ret, "%s/%s", here, path) < 0)
        ret = NULL;
    free(here);
    return ret;
}

int gpq_config_place(const char *given, char **ret, bool *ret_must, struct gpq_error *e)
{
    const char *named = given ? given : variable(VARIABLE);
    const char *folder = variable("XDG_CONFIG_HOME"), *home = variable("HOME");
    *ret = NULL;
    *ret_must = named != NULL;
    if (named) {
        *ret = absolute(named);
        return *ret ? 0 : no_memory(e);
    }
    bool has_folder = folder && *folder == '/';
    if (!has_folder && (!home || *home != '/'))
        return 0;
    if (asprintf(ret, "%s%s/gpudispatch/config", has_folder ? folder : home,
                 has_folder ? "" : "/.config") >= 0)
        return 0;
    *ret = NULL;
    return no_memory(e);
}

static int read_file(int fd, char *text, size_t *ret)
{
    ssize_t n;
    *ret = 0;
    do {
        n = read(fd, text + *ret, FILE_MOST + 1 - *ret);
        *ret += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && *ret <= FILE_MOST) || (n < 0 && errno == EINTR));
    return n < 0 ? -errno : 0;
}

static int load(const char *path, int fd, struct gpq_config *ret, struct gpq_error *e)
{
    char *text = malloc(FILE_MOST + 1);
    size_t size = 0;
    if (!text)
        return no_memory(e);
    int code = read_file(fd, text, &size);
    if (code < 0)
        code = gpq_fail(e, GPQ_EIO, "%.200s: %s", path, strerror(-code));
    else if (size > FILE_MOST)
        code = gpq_fail(e, GPQ_EINVAL, "%.200s: more than %d bytes: is it a config file?", path,
                        FILE_MOST);
    else
        code = gpq_config_parse(path, text, size, ret, e);
    free(text);
    return code;
}

int gpq_config_read(const char *given, struct gpq_config *ret, struct gpq_error *e)
{
    char *path;
    bool must;
    *ret = (struct gpq_config){ 0 };
    int code = gpq_config_place(given, &path, &must, e);
    if (code < 0)
        return code;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        code = load(path, fd, ret, e);
        close(fd);
    } else if (!path || (!must && (errno == ENOENT || errno == ENOTDIR))) {
        code = gpq_config_parse(path ? path : "/", "", 0, ret, e);
        if (code == 0 && !path) {
            free(ret->path);
            ret->path = NULL;
        }
    } else {
        code = gpq_fail(e, errno == ENOENT ? GPQ_ENOTFOUND : GPQ_EIO, "%.200s: %s", path,
                        strerror(errno));
    }
    free(path);
    return code;
}

/* ---- Settings ---- */

int gpq_config_flag(struct gpq_config *c, enum gpq_key key, const char *value, struct gpq_error *e)
{
    struct gpq_error why;
    int code = gpq_key_check(key, value, &why);
    if (code < 0)
        return gpq_fail(e, code, "--%s: %s", gpq_keys[key].name, why.text);
    c->flag[key] = value;
    return 0;
}

static int read_variable(enum gpq_key key, const char **ret, struct gpq_error *e)
{
    struct gpq_error why;
    const char *name = gpq_keys[key].variable;
    *ret = name ? variable(name) : NULL;
    int code = *ret ? gpq_key_check(key, *ret, &why) : 0;
    return code < 0 ? gpq_fail(e, code, "%s: %s", name, why.text) : 0;
}

int gpq_config_get(const struct gpq_config *c, enum gpq_key key, const char **ret_value,
                   enum gpq_origin *ret_origin, struct gpq_error *e)
{
    const char *by_variable = NULL;
    int code = c->flag[key] ? 0 : read_variable(key, &by_variable, e);
    if (code < 0)
        return code;
    const char *const values[] = {
        [GPQ_ORIGIN_FLAG] = c->flag[key],
        [GPQ_ORIGIN_ENVIRONMENT] = by_variable,
        [GPQ_ORIGIN_FILE] = c->n != 0 ? c->section[0].entry[key].value : NULL,
        [GPQ_ORIGIN_DEFAULT] = gpq_keys[key].value,
        [GPQ_ORIGIN_NONE] = NULL,
    };
    int origin = GPQ_ORIGIN_FLAG;
    while (origin > GPQ_ORIGIN_NONE && !values[origin])
        origin--;
    *ret_value = values[origin];
    if (ret_origin)
        *ret_origin = (enum gpq_origin)origin;
    return 0;
}

const char *gpq_config_where(const struct gpq_config *c, enum gpq_key key, enum gpq_origin origin,
                             char *text, size_t size)
{
    if (origin == GPQ_ORIGIN_FLAG)
        (void)snprintf(text, size, "--%s", gpq_keys[key].name);
    else if (origin == GPQ_ORIGIN_ENVIRONMENT)
        (void)snprintf(text, size, "%s", gpq_keys[key].variable);
    else if (origin == GPQ_ORIGIN_FILE)
        (void)snprintf(text, size, "%s:%u", c->path, c->section[0].entry[key].line);
    else
        (void)snprintf(text, size, "%s", origin == GPQ_ORIGIN_DEFAULT ? "default" : "not set");
    return text;
}

char *gpq_config_path(const struct gpq_config *c, const char *value)
{
    const char *home = variable("HOME");
    char *ret = NULL;
    if (*value == '/')
        return strdup(value);
    bool at_home = value[0] == '~' && value[1] == '/' && home;
    if (asprintf(&ret, "%s/%s", at_home ? home : c->directory, at_home ? value + 2 : value) < 0)
        return NULL;
    return ret;
}
