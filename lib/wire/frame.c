/* SPDX-License-Identifier: MIT */
#include "wire/frame.h"

#include "wire/page.h"

bool gpi_order_valid(const struct gpi_order_frame *f)
{
    if (f->order == GPI_ORDER_END)
        return true;
    if (f->order != GPI_ORDER_TASKS || f->count == 0 || f->count > GPI_FRAME_TASKS_MAX)
        return false;
    for (uint32_t i = 0; i < f->count; i++)
        if (f->cell[i] >= GPI_CELLS)
            return false;
    return true;
}

bool gpi_look_valid(const struct gpi_look_frame *f)
{
    uint32_t rest = 0;

    for (unsigned i = 0; i < 11; i++)
        rest |= f->zero[i];
    return f->magic == GPI_LOOK_MAGIC && rest == 0 && (f->news & ~GPI_NEWS_ALL) == 0;
}
