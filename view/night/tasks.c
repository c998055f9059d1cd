/* SPDX-License-Identifier: MIT */
/* tasks.c - sets of numbers of tasks, as ranges. */
#include "view/night/tasks.h"

#include <stdlib.h>

enum { ROOM = 64 };

/* Makes a range longer by a number, or returns false: it neither has it nor touches it. */
static bool extend(struct gpv_task_range *r, uint32_t owner, uint32_t number)
{
    if (r->owner != owner || (uint64_t)number + 1 < r->from || number > (uint64_t)r->to + 1)
        return false;
    if (number < r->from)
        r->from = number;
    if (number > r->to)
        r->to = number;
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct gpv_task_range *a = left, *b = right;
    if (a->owner != b->owner)
        return a->owner < b->owner ? -1 : 1;
    return (a->from > b->from) - (a->from < b->from);
}

void gpv_tasks_join(struct gpv_tasks *r)
{
    size_t n = 0;
    if (r->n > 1)
        qsort(r->row, r->n, sizeof(r->row[0]), compare);
    for (size_t i = 0; i < r->n; i++) {
        const struct gpv_task_range one = r->row[i];
        struct gpv_task_range *last = n > 0 ? &r->row[n - 1] : NULL;
        if (!last || !extend(last, one.owner, one.from))
            r->row[n++] = one;
        else if (one.to > last->to)
            last->to = one.to;
    }
    r->n = n;
}

/* A full list is joined first: it grows only if that leaves more than half of it. */
static int make_room(struct gpv_tasks *r)
{
    if (r->n < r->room)
        return 0;
    gpv_tasks_join(r);
    if (r->room != 0 && r->n <= r->room / 2)
        return 0;
    size_t room = r->room != 0 ? 2 * r->room : ROOM;
    struct gpv_task_range *row = realloc(r->row, room * sizeof(row[0]));
    if (!row)
        return -1;
    r->row = row;
    r->room = room;
    return 0;
}

int gpv_tasks_add(struct gpv_tasks *r, uint32_t owner, uint32_t number)
{
    if (r->n > 0 && extend(&r->row[r->n - 1], owner, number))
        return 0;
    return gpv_tasks_add_range(r, owner, number, number);
}

int gpv_tasks_add_range(struct gpv_tasks *r, uint32_t owner, uint32_t from, uint32_t to)
{
    if (make_room(r) != 0)
        return -1;
    r->row[r->n++] = (struct gpv_task_range){ owner, from, to };
    return 0;
}

/* The first range of the owner that does not end before a number. */
static size_t lower_bound(const struct gpv_tasks *r, uint32_t owner, uint32_t number)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gpv_task_range *one = &r->row[middle];
        if (one->owner < owner || (one->owner == owner && one->to < number))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t gpv_tasks_among(const struct gpv_tasks *r, uint32_t owner, uint32_t from, uint32_t to,
                         uint32_t *ret_lowest)
{
    uint64_t sum = 0;
    for (size_t i = lower_bound(r, owner, from); i < r->n; i++) {
        const struct gpv_task_range *one = &r->row[i];
        if (one->owner != owner || one->from > to)
            break;
        uint32_t low = one->from > from ? one->from : from, high = one->to < to ? one->to : to;
        if (sum == 0)
            *ret_lowest = low;
        sum += (uint64_t)high - low + 1;
    }
    return sum;
}

void gpv_tasks_free(struct gpv_tasks *r)
{
    free(r->row);
    *r = (struct gpv_tasks){ 0 };
}
