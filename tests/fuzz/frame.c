/* SPDX-License-Identifier: MIT */
/* frame.c - 64 bytes from a pipe: a frame of one direction or none. */
#include "fuzz.h"

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpi_frame f;
    uint32_t rest = 0;

    fuzz_take(&f, sizeof(f), &data, &size);
    for (unsigned i = 0; i < 13; i++)
        rest |= f.zero[i];
    FUZZ_CHECK(gpi_order_valid(&f) ==
               (f.magic == GPI_ORDER_MAGIC && f.what >= 1 && f.what <= GPI_ORDER_ALL && !rest));
    FUZZ_CHECK(gpi_look_valid(&f) ==
               (f.magic == GPI_LOOK_MAGIC && f.what >= 1 && f.what <= GPI_NEWS_ALL && !rest));
    return 0;
}
