/* SPDX-License-Identifier: MIT */
#include "base/versioned.h"

#include <string.h>

#include "gpudispatch/error.h"

#define MOST 4096u

bool gpi_versioned_sized(uint32_t given, size_t least)
{
    return given >= least && given <= MOST && given % sizeof(uint64_t) == 0;
}

int gpi_versioned_read(void *to, size_t size, const void *from, size_t least)
{
    uint32_t given;

    memcpy(&given, from, sizeof given);
    if (!gpi_versioned_sized(given, least))
        return GPUD_ESTRUCT;
    for (size_t i = size; i < given; i++)
        if (((const unsigned char *)from)[i])
            return GPUD_EVERSION;
    memset(to, 0, size);
    memcpy(to, from, given < size ? given : size);
    return 0;
}

void gpi_versioned_write(void *to, uint32_t given, const void *from, size_t size)
{
    size_t both = given < size ? given : size;

    memcpy(to, from, both);
    memset((char *)to + both, 0, given - both);
    memcpy(to, &given, sizeof given);
}
