/* SPDX-License-Identifier: MIT */
/* versioned.c - a struct of a caller of any version: shorter, longer, with any bytes. */
#include "fuzz.h"

#include "base/versioned.h"
#include "gpudispatch/error.h"

enum { MOST = 64 };

/* And back, to a caller whose record has `given` bytes, at most MOST. */
static void write_back(uint32_t given, const unsigned char *ours, size_t size)
{
    unsigned char to[MOST + 1];
    size_t both = given < size ? given : size;

    memset(to, 0xa5, sizeof(to));
    gpi_versioned_write(to, given, ours, size);
    FUZZ_CHECK(!memcmp(to, &given, sizeof(given)));
    FUZZ_CHECK(!memcmp(to + sizeof(given), ours + sizeof(given), both - sizeof(given)));
    for (size_t i = both; i < given; i++)
        FUZZ_CHECK(to[i] == 0);
    FUZZ_CHECK(to[given] == 0xa5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char sizes[2], to[MOST + 1], before[MOST + 1], *from;
    size_t ours, least, known;
    uint32_t given;
    int r, tail = 0;

    fuzz_take(sizes, sizeof(sizes), &data, &size);
    if (size < sizeof(given))
        return 0;
    ours = sizeof(given) + sizes[0] % (MOST - sizeof(given) + 1);
    least = sizes[1] % (MOST + 1);
    from = malloc(size); /* exactly what the caller says it has */
    FUZZ_CHECK(from);
    memcpy(from, data, size);
    memcpy(&given, from, sizeof(given));
    if (given > size) {
        given = (uint32_t)size;
        memcpy(from, &given, sizeof(given));
    }
    memset(to, 0xa5, sizeof(to));
    memcpy(before, to, sizeof(to));
    r = gpi_versioned_read(to, ours, from, least);
    for (size_t i = ours; i < given; i++)
        tail |= from[i];
    FUZZ_CHECK(r == (given < least || given % 8 ? GPUD_ESTRUCT : tail ? GPUD_EVERSION : 0));
    if (r) {
        FUZZ_CHECK(!memcmp(to, before, sizeof(to)));
    } else {
        known = given < ours ? given : ours;
        FUZZ_CHECK(!memcmp(to, from, known));
        for (size_t i = known; i < ours; i++)
            FUZZ_CHECK(to[i] == 0);
        FUZZ_CHECK(to[ours] == 0xa5);
        if (given >= sizeof(given))
            write_back(given < MOST ? given : MOST, to, ours);
    }
    free(from);
    return 0;
}
