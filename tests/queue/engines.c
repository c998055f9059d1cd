/* SPDX-License-Identifier: MIT */
/* engines.c - the engines that the tests of the contract run with. */
#include "engines.h"

#include <errno.h>
#include <sys/stat.h>

#include "memstore.h"

static int (*const opener[])(const struct gpq_options *, struct gpq_store **,
                             struct gpq_error *) = {
    [MEMORY] = mem_open,
    [SQLITE] = gpq_sqlite_open,
};

struct gpq_store *engine_open(enum engine_kind kind, const char *directory, const char *vfs)
{
    const struct gpq_options options = { .directory = directory, .vfs = vfs };
    struct gpq_store *s = NULL;
    struct gpq_error e = { 0 };

    T_CHECK(!mkdir(directory, 0700) || errno == EEXIST);
    if (opener[kind](&options, &s, &e))
        T_FAIL("open: %s", e.text);
    return s;
}

void engine_case(enum engine_kind kind, void (*run)(struct gpq_store *s))
{
    struct gpq_store *s = engine_open(kind, "state", NULL);

    run(s);
    s->engine->close(s);
}
