/* SPDX-License-Identifier: MIT */
/*
 * log.c - any text as a log of the core.  The reader accepts each line or refuses it with a reason.
 * The writer turns an accepted record into a line that the reader accepts as an equal record.  A
 * replay takes the whole text.
 */
#include "fuzz.h"

#include "log/log.h"
#include "sim/replay.h"

static void check_line(const char *text, size_t size)
{
    struct gpi_log_line a, b;
    char error[GPI_LOG_ERROR_SIZE] = "", first[GPI_LOG_LINE_SIZE], second[GPI_LOG_LINE_SIZE];

    if (!gpi_log_read(&a, text, size, error)) {
        FUZZ_CHECK(*error && memchr(error, 0, sizeof error));
        return;
    }
    if (a.kind == GPI_LOG_COMMENT)
        return;
    (void)gpi_log_write(first, &a);
    FUZZ_CHECK(gpi_log_read(&b, first, strlen(first), error));
    FUZZ_CHECK(a.kind == b.kind && !strcmp(first, gpi_log_write(second, &b)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpi_replay r = { .cut = size & 1 };
    char *text = malloc(size + 1), *end, *line = text; /* malloc(0) may be NULL */

    FUZZ_CHECK(text);
    if (size)
        memcpy(text, data, size);
    for (size_t left = size; left; line = end + 1) {
        end = memchr(line, '\n', left);
        check_line(line, end ? (size_t)(end - line) : left);
        if (!end)
            break;
        left -= (size_t)(end - line) + 1;
    }
    if (gpi_replay(&r, text, size) == GPI_REPLAY_BAD)
        FUZZ_CHECK(*r.error);
    free(text);
    return 0;
}
