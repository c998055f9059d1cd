/* SPDX-License-Identifier: MIT */
/*
 * queue_stamp.c - any bytes as the arguments of a command whose words may name files, and as two
 * stamps.
 */
#include "fuzz.h"

#include "queue/files/stamp.h"

enum { ARGUMENTS = 6 };

static void check_words(char *const *argv)
{
    char **words = gpq_stamp_words(argv), *stamp;
    size_t n = 0;

    FUZZ_CHECK(words);
    for (; words[n]; n++) {
        FUZZ_CHECK(*words[n] && *words[n] != '-' && strlen(words[n]) < GPQ_STAMP_NAME);
        FUZZ_CHECK(!strpbrk(words[n], "\n\t\r"));
    }
    FUZZ_CHECK(n <= GPQ_STAMP_WORDS);
    stamp = gpq_stamp_make(words, "/nonexistent");
    FUZZ_CHECK(stamp && !strncmp(stamp, GPQ_STAMP_NONE, strlen(GPQ_STAMP_NONE)));
    FUZZ_CHECK(strlen(stamp) <= GPQ_STAMP_MOST);
    free(stamp);
    free(words);
}

static void check_stamps(const char *data, size_t size)
{
    const struct gpq_bytes before = { data, size / 2 };
    const struct gpq_bytes after = { data + size / 2, size - size / 2 };
    char name[GPQ_STAMP_NAME];
    bool same =
        before.size == after.size && (!size || !memcmp(before.data, after.data, after.size));

    memset(name, 'x', sizeof(name));
    FUZZ_CHECK(gpq_stamp_differs(before, after, name) == !same);
    FUZZ_CHECK(same || memchr(name, 0, sizeof(name)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1), *argv[ARGUMENTS + 1] = { NULL };
    char *exact = malloc(size ? size : 1); /* exactly as long as it is */
    size_t at = 0;

    FUZZ_CHECK(copy && exact);
    if (size) {
        memcpy(copy, data, size);
        memcpy(exact, data, size);
    }
    copy[size] = 0;
    for (size_t i = 0; i < ARGUMENTS && at <= size; i++) {
        argv[i] = copy + at;
        at += strlen(copy + at) + 1;
    }
    check_words(argv);
    check_stamps(exact, size);
    free(exact);
    free(copy);
    return 0;
}
