/* SPDX-License-Identifier: MIT */
/*
 * config.h - the config file: settings of the queue, classes of workers, needs with names.
 *
 *     devices = 0,1
 *     [class whisper]
 *     plugin = libwhisper_worker.so
 *     batch = 8
 *
 * Lines are UTF-8: `key = value`, `[class NAME]`, `[needs NAME]`, comments that begin with #
 * or ;, and empty ones.  A comment may follow a section's ], and none follows a value.
 * Blanks around a value are no part of it.  No line goes on in the next one.
 *
 * Reading fails with EINVAL and "FILE:LINE: ..." for each of these: an unknown key, with the
 * nearest names; a key twice in a section, a section twice, a section of another kind; a key
 * without a value, a value that is not of its kind; NUL bytes, bytes that are not UTF-8, more
 * than 1 MiB or 1,024 sections; a class with both or none of plugin and worker.
 *
 * A setting comes from the command line, else from the environment, else from the file, else
 * it has its default.  Sections have only file and default.
 */
#ifndef GPQ_CONFIG_CONFIG_H
#define GPQ_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/config/keys.h"
#include "queue/store.h"

/* A row of the table of keys. */
struct gpq_key_row {
    enum gpq_section_kind section;
    const char *name;
    enum gpq_key_kind kind;
    uint64_t least, most;  /* of NUMBER */
    const char *value;     /* the default; NULL = none */
    const char *variable;  /* of the environment; NULL = none */
    unsigned users;        /* mask of enum gpq_key_user */
    const char *help;
};
extern const struct gpq_key_row gpq_keys[GPQ_KEYS];
/* "text", "duration", ...  A constant. */
const char *gpq_kind_text(enum gpq_key_kind kind);

struct gpq_entry {
    const char *value; /* NULL: not in the file */
    uint32_t line;
};

/* A section, or the lines before the first one. */
struct gpq_section {
    enum gpq_section_kind kind;
    const char *name; /* "" of the lines before the first section */
    uint32_t line;
    struct gpq_entry entry[GPQ_KEYS]; /* of its keys */
};

enum gpq_origin {
    GPQ_ORIGIN_NONE, /* there is no value */
    GPQ_ORIGIN_DEFAULT,
    GPQ_ORIGIN_FILE,
    GPQ_ORIGIN_ENVIRONMENT,
    GPQ_ORIGIN_FLAG,
};

struct gpq_config {
    char *path;      /* of the file, also if there is none; NULL = it has no place */
    char *directory; /* of the file, absolute; relative paths in it begin there */
    char *text;      /* of the file; values point into it */
    struct gpq_section *section; /* [0]: the lines before the first section */
    size_t n, room;
    const char *flag[GPQ_KEYS]; /* of the command line; not owned */
};

/*
 * Writes the place of the file: `given` (--config), else GPUDISPATCH_CONFIG, else
 * gpudispatch/config in XDG_CONFIG_HOME or in ~/.config; a relative XDG_CONFIG_HOME does not
 * count.  *ret is NULL if none of them is set, and is freed by the caller.  *ret_must: it is
 * named by the first two, so that it must be there.  ENOMEM.
 */
int gpq_config_place(const char *given, char **ret, bool *ret_must, struct gpq_error *e);

/*
 * Reads the file; `given` is that of --config, or NULL.  A file that need not be there is
 * empty.  The caller frees the config with gpq_config_free.  EINVAL: the place or the content
 * is wrong; ENOTFOUND: the named file is not there; EIO: it cannot be read; ENOMEM.
 */
int gpq_config_read(const char *given, struct gpq_config *ret, struct gpq_error *e);
/* The same from the bytes of a file with this path. */
int gpq_config_parse(const char *path, const void *data, size_t size, struct gpq_config *ret,
                     struct gpq_error *e);
void gpq_config_free(struct gpq_config *c); /* one of zeros, too */

/* A flag of the command line: its value is checked as that of the file is.  EINVAL. */
int gpq_config_flag(struct gpq_config *c, enum gpq_key key, const char *value,
                    struct gpq_error *e);
/*
 * The value of a key before the first section; NULL, if it has none.  *ret_origin may be NULL.
 * EINVAL: the value of the variable is not of its kind.
 */
int gpq_config_get(const struct gpq_config *c, enum gpq_key key, const char **ret_value,
                   enum gpq_origin *ret_origin, struct gpq_error *e);
/* Where a value comes from, such as "--devices", "GPUDISPATCH_STATE", "FILE:LINE" or "default".
 * Returns `text`. */
const char *gpq_config_where(const struct gpq_config *c, enum gpq_key key,
                             enum gpq_origin origin, char *text, size_t size);

/* The section with this name; NULL: there is none. */
const struct gpq_section *gpq_config_section(const struct gpq_config *c,
                                             enum gpq_section_kind kind, const char *name);
/* The value of a key of a section, else its default, else NULL. */
const char *gpq_section_get(const struct gpq_section *s, enum gpq_key key);

/* A path of the file as an absolute one: ~/ is that of HOME, a relative one begins at the
 * file.  The caller frees it.  NULL: no memory. */
char *gpq_config_path(const struct gpq_config *c, const char *value);

#endif
