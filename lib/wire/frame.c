/* SPDX-License-Identifier: MIT */
#include "wire/frame.h"

static bool valid(const struct gpi_frame *f, uint32_t magic, uint32_t all)
{
    uint32_t rest = 0;

    for (unsigned i = 0; i < 13; i++)
        rest |= f->zero[i];
    return f->magic == magic && rest == 0 && f->what != 0 && (f->what & ~all) == 0;
}

bool gpi_order_valid(const struct gpi_frame *f)
{
    return valid(f, GPI_ORDER_MAGIC, GPI_ORDER_ALL);
}

bool gpi_look_valid(const struct gpi_frame *f)
{
    return valid(f, GPI_LOOK_MAGIC, GPI_NEWS_ALL);
}
