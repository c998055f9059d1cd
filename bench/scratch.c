/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "report.h"

/* Returns "directory/name", which the caller frees; NULL after a complaint. */
static char *join(const char *directory, const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%s", directory, name) >= 0)
        return path;
    (void)b_complain("out of memory");
    return NULL;
}

int b_scratch_open(struct b_scratch *s)
{
    const char *base = getenv("TMPDIR");

    s->n = 0;
    s->folder = join(base && *base ? base : "/tmp", "gpudispatch-bench-XXXXXX");
    if (!s->folder)
        return -1;
    if (mkdtemp(s->folder))
        return 0;
    free(s->folder);
    return b_complain("no directory for files in TMPDIR");
}

const char *b_scratch_path(struct b_scratch *s, const char *name)
{
    char *path = s->n < B_SCRATCH_FILES ? join(s->folder, name) : NULL;

    if (path)
        s->path[s->n++] = path;
    return path;
}

void b_scratch_close(struct b_scratch *s)
{
    while (s->n > 0) {
        (void)unlink(s->path[--s->n]);
        free(s->path[s->n]);
    }
    (void)rmdir(s->folder);
    free(s->folder);
}
