/* SPDX-License-Identifier: MIT */
/*
 * payload.c - places the data of tasks: in their records' own blocks, or in blocks of the input
 * arena, copied there or lent to the user before.                                             [C18]
 */
#include <string.h>

#include "base/failure.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/task.h"
#include "os/headroom.h"
#include "os/memory.h"

#define COPY_UNLOCKED 4096u /* the lock is released for larger payloads, to copy and populate */

static uint64_t own_block(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return d->arena.own_off + (uint64_t)gpi_task_index(d, t) * GPI_OWN_SIZE;
}

void gpi_payload_free(gpud_dispatcher *d, struct gpi_task *t)
{
    if (!t->has_block)
        return;
    gpi_chunks_free(&d->arena.input_chunks, t->data_off - (t->has_head ? GPI_LABEL_SIZE : 0));
    t->has_block = 0;
}

/* For example a small result that the user has: it is copied like any other memory. */
static bool in_own_blocks(const gpud_dispatcher *d, const void *data)
{
    const unsigned char *p = data, *own = d->arena.input + d->arena.own_off;

    return p >= own && p < own + (uint64_t)d->n_tasks * GPI_OWN_SIZE;
}

/* While the user has a buffer, the label's room before it holds this mark. */
#define LENT_MARK 0x6675622064757067ull

static void mark_buffer(const gpud_dispatcher *d, uint64_t off, uint64_t mark)
{
    memcpy(d->arena.input + off - GPI_LABEL_SIZE, &mark, sizeof mark);
}

/* Returns the block behind an address of buffer_alloc that no task has taken since, or NONE. */
static uint64_t buffer_offset(const gpud_dispatcher *d, const void *data)
{
    uint64_t off, mark;

    if (!gpi_payload_is_ours(d, data))
        return GPI_CHUNKS_NONE;
    off = (uint64_t)((const unsigned char *)data - d->arena.input);
    if (off < GPI_LABEL_SIZE ||
        gpi_chunks_capacity(&d->arena.input_chunks, off - GPI_LABEL_SIZE) == 0)
        return GPI_CHUNKS_NONE;
    memcpy(&mark, d->arena.input + off - GPI_LABEL_SIZE, sizeof mark);
    return mark == LENT_MARK ? off : GPI_CHUNKS_NONE;
}

/* Returns unused memory to the system.  If a device has pinned it, the system keeps it: the device
 * would go on using the pinned pages, and the host new ones.  The blocks count as without
 * memory all the same: the next block there first checks that there is enough memory. */
static void cool(gpud_dispatcher *d)
{
    uint64_t off, size;

    while ((off = gpi_chunks_cool(&d->arena.input_chunks, &size)) != GPI_CHUNKS_NONE)
        if (!gpi_classes_pin(d))
            gpi_memory_punch(d->arena.input_fd, off, size);
}

/* Results need memory, too: as much as task data hold, less the memory in their arenas. */
static uint64_t due_to_results(const gpud_dispatcher *d)
{
    uint64_t data = gpi_chunks_touched(&d->arena.input_chunks), results = 0;

    for (uint32_t i = 0; i < d->n_slots; i++) {
        uint64_t used = (uint64_t)atomic_load(&d->slot[i].ch.page->granules_used) * GPI_GRANULE;
        results += used < d->set.result_size ? used : d->set.result_size;
    }
    return data > results ? data - results : 0;
}

void gpi_go_away(gpud_dispatcher *d)
{
    d->intake.n_away++;
    d->intake.went_away++;
    pthread_mutex_unlock(&d->lock);
}

void gpi_come_back(gpud_dispatcher *d)
{
    pthread_mutex_lock(&d->lock);
    if (--d->intake.n_away == 0 && d->close.ending)
        pthread_cond_broadcast(&d->intake.room);
}

/* Takes `grown` bytes from the system for a new block, if there is enough left, and populates the
 * pages of a fresh large block.  This thread does that without the lock. */
static bool take_memory(gpud_dispatcher *d, uint64_t off, uint64_t grown, bool fresh)
{
    uint64_t all = gpi_chunks_capacity(&d->arena.input_chunks, off), due = due_to_results(d);
    bool enough;

    gpi_go_away(d);
    enough = grown == 0 || gpi_headroom_for(grown + due);
    if (enough && fresh)
        gpi_memory_populate(d->arena.input + off, all);
    gpi_come_back(d);
    return enough;
}

static void note_shortage(gpud_dispatcher *d, bool is_short)
{
    const bool news = is_short && !d->intake.short_of_memory;

    d->intake.short_of_memory = is_short;
    if (!news)
        return;
    gpi_log(d, GPUD_LEVEL_WARNING, GPUD_NO_SLOT,
            "the machine or memory cgroup has too little memory left for more task data; submit "
            "returns EFULL or waits");
    gpi_room_made(d); /* the refused task's place is free; waiting threads now check on a timer */
}

/* Returns a block for task data, or NONE if the budget or the memory is used up. */
static uint64_t alloc_block(gpud_dispatcher *d, uint64_t size)
{
    for (int round = 0; round < 2; round++) {
        int fresh = 0;
        uint64_t before = gpi_chunks_touched(&d->arena.input_chunks);
        uint64_t off = gpi_chunks_alloc(&d->arena.input_chunks, size, &fresh);
        uint64_t grown = gpi_chunks_touched(&d->arena.input_chunks) - before;
        if (off == GPI_CHUNKS_NONE || (grown == 0 && !fresh))
            return off; /* NONE in the first round only: memory freed since is available again */
        if (take_memory(d, off, grown, fresh)) {
            note_shortage(d, false);
            return off;
        }
        gpi_chunks_free(&d->arena.input_chunks, off);
        cool(d); /* also marks this block as without memory */
    }
    note_shortage(d, true);
    return GPI_CHUNKS_NONE;
}

int gpi_buffer_alloc(gpud_dispatcher *d, uint64_t size, void **ret_data)
{
    uint64_t off;

    if (size > d->arena.most - GPI_LABEL_SIZE)
        return GPUD_ETOOBIG;
    pthread_mutex_lock(&d->lock);
    off = alloc_block(d, size + GPI_LABEL_SIZE);
    if (off != GPI_CHUNKS_NONE)
        mark_buffer(d, off + GPI_LABEL_SIZE, LENT_MARK);
    pthread_mutex_unlock(&d->lock);
    if (off == GPI_CHUNKS_NONE)
        return GPUD_EFULL;
    *ret_data = d->arena.input + off + GPI_LABEL_SIZE;
    return 0;
}

void gpi_room_made(gpud_dispatcher *d)
{
    if (d->intake.waiting_for_room)
        pthread_cond_broadcast(&d->intake.room);
}

int gpi_buffer_free(gpud_dispatcher *d, void *data)
{
    int r = GPUD_EINVAL;
    uint64_t off;

    pthread_mutex_lock(&d->lock);
    off = buffer_offset(d, data);
    if (off != GPI_CHUNKS_NONE) {
        mark_buffer(d, off, 0);
        gpi_chunks_free(&d->arena.input_chunks, off - GPI_LABEL_SIZE);
        gpi_room_made(d);
        r = 0;
    }
    pthread_mutex_unlock(&d->lock);
    return r;
}

static int check_buffer(const gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t off,
                        struct gpud_error *e)
{
    uint64_t capacity;

    if (off == GPI_CHUNKS_NONE)
        return gpi_fail(e, GPUD_EINVAL, 0, "data",
                        "task.data points into the payload memory, but not to a buffer of "
                        "gpud_dispatcher_buffer_alloc");
    capacity = gpi_chunks_capacity(&d->arena.input_chunks, off - GPI_LABEL_SIZE) - GPI_LABEL_SIZE;
    if (desc->size > capacity)
        return gpi_fail(e, GPUD_EINVAL, 0, "size",
                        "task.size is %llu, the maximum is %llu, the size of its buffer",
                        (unsigned long long)desc->size, (unsigned long long)capacity);
    return 0;
}

/* Takes a buffer of buffer_alloc as it is. */
static int take_buffer(gpud_dispatcher *d, const struct gpud_task_desc *desc, struct gpi_task *t,
                       struct gpud_error *e)
{
    const uint64_t off = buffer_offset(d, desc->data);
    const int r = check_buffer(d, desc, off, e);

    if (r)
        return r;
    mark_buffer(d, off, 0);
    t->data_off = off;
    t->has_head = t->has_block = 1;
    return 0;
}

/* A submit that fails takes no buffer. */
void gpi_payload_give_back(const gpud_dispatcher *d, struct gpi_task *t)
{
    mark_buffer(d, t->data_off, LENT_MARK);
    t->has_block = 0;
}

static int check_size(const gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t head,
                      struct gpud_error *e)
{
    if (desc->size <= d->arena.most - head)
        return 0;
    return gpi_fail(e, GPUD_ETOOBIG, 0, "size",
                    "task.size is %llu, the maximum is %llu with this payload_budget (%llu)",
                    (unsigned long long)desc->size, (unsigned long long)(d->arena.most - head),
                    (unsigned long long)d->set.payload_budget);
}

static int copy_to_block(gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t head,
                         struct gpi_task *t, struct gpud_error *e)
{
    const int r = check_size(d, desc, head, e);
    uint64_t off;

    if (r)
        return r;
    off = alloc_block(d, desc->size + head);
    if (off == GPI_CHUNKS_NONE)
        return GPUD_EFULL;
    t->data_off = off + head;
    t->has_head = head > 0;
    t->has_block = 1;
    if (desc->size > COPY_UNLOCKED) {
        gpi_go_away(d);
        memcpy(d->arena.input + t->data_off, desc->data, desc->size);
        gpi_come_back(d);
    } else if (desc->size) {
        memcpy(d->arena.input + t->data_off, desc->data, desc->size);
    }
    return 0;
}

/* Returns true if the data lie in a buffer of gpud_dispatcher_buffer_alloc. */
static bool is_buffer(const gpud_dispatcher *d, const struct gpud_task_desc *desc)
{
    return gpi_payload_is_ours(d, desc->data) && !in_own_blocks(d, desc->data);
}

/* Returns true if the data fit into the record's own block. */
static bool is_small(const struct gpud_task_desc *desc, size_t label)
{
    return !label && desc->size <= GPI_OWN_SIZE;
}

int gpi_payload_check(const gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label,
                      struct gpud_error *e)
{
    if (is_buffer(d, desc))
        return check_buffer(d, desc, buffer_offset(d, desc->data), e);
    return is_small(desc, label) ? 0 : check_size(d, desc, label ? GPI_LABEL_SIZE : 0, e);
}

static void prepare(struct gpi_task *t, const struct gpud_task_desc *desc, size_t label)
{
    t->has_head = t->has_block = 0;
    t->has_label = label > 0;
    t->size = desc->size;
}

int gpi_payload_place(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label,
                      struct gpi_task *t, struct gpud_error *e)
{
    prepare(t, desc, label);
    if (is_buffer(d, desc))
        return take_buffer(d, desc, t, e);
    if (!is_small(desc, label))
        return copy_to_block(d, desc, label ? GPI_LABEL_SIZE : 0, t, e);
    t->data_off = own_block(d, t);
    if (desc->size)
        memcpy(d->arena.input + t->data_off, desc->data, desc->size);
    return 0;
}

/* A label lies in the record's own block. */
int gpi_payload_forgo(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label,
                      struct gpi_task *t, struct gpud_error *e)
{
    prepare(t, desc, label);
    if (is_buffer(d, desc))
        return take_buffer(d, desc, t, e);
    t->data_off = own_block(d, t) + GPI_LABEL_SIZE;
    return 0;
}
