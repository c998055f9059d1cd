/* SPDX-License-Identifier: MIT */
/* launch.c - any bytes as the record that tells a keeper how to start workers. */
#include "fuzz.h"

#include "wire/launch.h"

#include <errno.h>

static size_t walk(const char *const *list)
{
    size_t n = 0;

    for (; list && *list; list++)
        n += strlen(*list) + 1;
    return n;
}

static size_t length(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1); /* exactly as long as it is */
    struct gpi_launch l;
    size_t again_size;
    void *again;

    FUZZ_CHECK(copy);
    if (size)
        memcpy(copy, data, size);
    if (gpi_launch_decode(&l, copy, size)) {
        FUZZ_CHECK(errno == EBADMSG);
        free(copy);
        return 0;
    }
    FUZZ_CHECK(l.start == GPUD_START_FORK || (l.start == GPUD_START_EXEC && l.argv && l.argv[0]));
    FUZZ_CHECK(walk(l.argv) + walk(l.env) + length(l.program) + length(l.plugin) + length(l.cwd) +
                   length(l.stdio_path) + 32 ==
               size);
    /* what comes in could have gone out */
    FUZZ_CHECK(gpi_launch_encode(&l, &again, &again_size) == 0);
    FUZZ_CHECK(again_size == size && !memcmp(again, copy, size));
    free(again);
    free(l.block);
    free(copy);
    return 0;
}
