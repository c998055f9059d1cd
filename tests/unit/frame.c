/* SPDX-License-Identifier: MIT */
/*
 * frame.c - which 64 bytes are a frame: all that should be, and nothing else.      [C17]
 */
#include "harness.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/frame.h"

struct kind {
    uint32_t magic, all;
    bool (*valid)(const struct gpi_frame *f);
};

static const struct kind kinds[] = {
    { GPI_ORDER_MAGIC, GPI_ORDER_ALL, gpi_order_valid },
    { GPI_LOOK_MAGIC, GPI_NEWS_ALL, gpi_look_valid },
};
enum { KINDS = T_LENGTH(kinds), BITS = 8 * GPI_FRAME_SIZE };

static struct gpi_frame flipped(struct gpi_frame f, unsigned bit)
{
    unsigned char bytes[sizeof(f)];

    memcpy(bytes, &f, sizeof(f));
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    memcpy(&f, bytes, sizeof(f));
    return f;
}

T_CASE(every_valid_frame)
{
    static const uint32_t lives[] = { 0, 1, 77, UINT32_MAX };

    for (size_t k = 0; k < KINDS; k++)
        for (uint32_t what = 1; what <= kinds[k].all; what++)
            for (size_t i = 0; i < T_LENGTH(lives); i++) {
                const struct gpi_frame f = { .magic = kinds[k].magic,
                                             .incarnation = lives[i],
                                             .what = what };

                T_CHECK(kinds[k].valid(&f));
                T_CHECK(!kinds[1 - k].valid(&f)); /* a frame is for one direction */
            }
}

/* Each bit of magic and padding counts; in `what` it must stay within what is known and not be
 * empty; the incarnation may be anything, others compare it. */
T_CASE(every_single_bit)
{
    for (size_t k = 0; k < KINDS; k++)
        for (uint32_t what = 1; what <= kinds[k].all; what++) {
            const struct gpi_frame f = { .magic = kinds[k].magic, .incarnation = 5, .what = what };

            for (unsigned bit = 0; bit < BITS; bit++) {
                const struct gpi_frame g = flipped(f, bit);
                bool expected = g.magic == f.magic && g.what != 0 && g.what <= kinds[k].all;

                for (unsigned i = 0; i < 13; i++)
                    expected = expected && g.zero[i] == 0;
                if (kinds[k].valid(&g) != expected)
                    T_FAIL("magic %#x what %u, bit %u flipped: %s", f.magic, what, bit,
                           expected ? "refused" : "accepted");
            }
        }
}

T_CASE(whatever_else)
{
    struct gpi_frame f;

    for (int byte = 0; byte < 256; byte++) {
        memset(&f, byte, sizeof(f));
        T_CHECK(!gpi_order_valid(&f));
        T_CHECK(!gpi_look_valid(&f));
    }
}
