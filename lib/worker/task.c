/* SPDX-License-Identifier: MIT */
/* task.c - the gpud_task_ and gpud_worker_ functions, which user code calls inside a worker. */
#include <string.h>

#include "base/clock.h"
#include "wire/frame.h"
#include "worker/worker.h"

const void *gpud_task_data(const gpud_task *t)
{
    return t->data;
}

size_t gpud_task_size(const gpud_task *t)
{
    return t->size;
}

const char *gpud_task_label(const gpud_task *t)
{
    return t->cell->has_label ? (const char *)t->data - GPI_LABEL_SIZE : "";
}

uint64_t gpud_task_id(const gpud_task *t)
{
    return t->cell->task_id;
}

uint64_t gpud_task_tag(const gpud_task *t)
{
    return t->cell->tag;
}

uint32_t gpud_task_attempt(const gpud_task *t)
{
    return t->cell->attempt;
}

gpud_worker *gpud_task_worker(gpud_task *t)
{
    return t->worker;
}

uint64_t gpud_task_deadline(const gpud_task *t)
{
    return atomic_load(&t->worker->limit.deadline);
}

int gpud_task_expired(const gpud_task *t)
{
    return gpi_limit_expired(&t->worker->limit);
}

int gpud_task_cancelled(const gpud_task *t)
{
    struct gpi_page *p = t->worker->plan.page;

    return (int)(atomic_load_explicit(&p->cancel, memory_order_relaxed) >> t->index & 1);
}

/* Copies up to size - 1 bytes and ends them with a zero. */
static void copy_text(char *to, size_t size, const char *from)
{
    size_t n = from ? strnlen(from, size - 1) : 0;

    memcpy(to, from ? from : "", n);
    to[n] = '\0';
}

int gpud_task_progress(gpud_task *t, double fraction, const char *text)
{
    struct gpi_cell_extra *x = t->extra;
    struct gpi_page *p = t->worker->plan.page;
    uint32_t seq = atomic_load_explicit(&x->progress_seq, memory_order_relaxed) | 1;
    uint64_t bits, bit = 1ull << t->index;

    if (!(fraction >= 0.0 && fraction <= 1.0))
        return GPUD_EINVAL;
    if (t->worker->limit.stall != GPI_NEVER) {
        uint64_t now = gpi_limit_pause(&t->worker->limit);
        gpi_worker_note_stall(t->worker, now);
        gpi_limit_progress(&t->worker->limit, now);
    }
    memcpy(&bits, &fraction, sizeof bits);
    atomic_store_explicit(&x->progress_seq, seq, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&x->progress, bits, memory_order_relaxed);
    copy_text(x->progress_text, sizeof x->progress_text, text);
    atomic_store_explicit(&x->progress_seq, seq + 1, memory_order_release);
    if (!(atomic_fetch_or(&p->progress_pending, bit) & bit))
        gpi_worker_tell(t->worker, GPI_NEWS_PROGRESS);
    return 0;
}

/* ---- results ---- */

static void drop_result(gpud_task *t)
{
    if (t->result_place == GPI_PLACE_ARENA)
        gpi_worker_result_undo(t->worker, t->result_off, t->result_size);
    t->result_place = GPI_PLACE_NONE;
    t->result_size = 0;
}

int gpud_task_result_alloc(gpud_task *t, size_t size, void **ret_data)
{
    uint64_t off = 0;

    if (!ret_data)
        return GPUD_EINVAL;
    if (size <= GPI_INLINE_SIZE) {
        drop_result(t);
        t->result_place = size ? GPI_PLACE_CELL : GPI_PLACE_NONE;
        t->result_size = size;
        *ret_data = t->extra->result;
        return 0;
    }
    off = gpi_worker_result_alloc(t->worker, size);
    if (off == UINT64_MAX && t->worker->plan.page->result_wait)
        off = gpi_worker_result_await(t, size);
    if (off == UINT64_MAX)
        return GPUD_ERESULTSPACE;
    drop_result(t);
    t->result_place = GPI_PLACE_ARENA;
    t->result_off = off;
    t->result_size = size;
    *ret_data = t->worker->plan.result + off;
    return 0;
}

int gpud_task_result_set(gpud_task *t, const void *data, size_t size)
{
    void *to;
    int r;

    if (!data && size)
        return GPUD_EINVAL;
    r = gpud_task_result_alloc(t, size, &to);
    if (r == 0 && size)
        memmove(to, data, size); /* data may be in the previous result */
    return r;
}

int gpud_task_fail(gpud_task *t, int code, const char *text)
{
    t->fail_code = code ? code : -1;
    copy_text(t->extra->fail_text, sizeof t->extra->fail_text, text);
    return t->fail_code;
}

/* ---- the worker ---- */

uint32_t gpud_worker_slot(const gpud_worker *w)
{
    return w->plan.page->slot;
}

uint32_t gpud_worker_incarnation(const gpud_worker *w)
{
    return w->plan.incarnation;
}

const char *gpud_worker_device(const gpud_worker *w)
{
    return w->plan.page->device;
}

uint32_t gpud_worker_device_count(const gpud_worker *w)
{
    return w->n_devices;
}

const char *gpud_worker_device_at(const gpud_worker *w, uint32_t i)
{
    return i < w->n_devices ? w->device[i] : NULL;
}

const char *gpud_worker_device_uuid(const gpud_worker *w, uint32_t i)
{
    return i < w->n_devices ? w->uuid[i] : NULL;
}

uint64_t gpud_worker_seed(const gpud_worker *w)
{
    return w->plan.page->seed + w->plan.page->slot;
}

const void *gpud_worker_setup_data(const gpud_worker *w, size_t *ret_size)
{
    if (ret_size)
        *ret_size = w->plan.page->setup_size;
    return w->plan.setup + w->plan.page->setup_off;
}

void gpud_worker_log(gpud_worker *w, uint32_t level, const char *text)
{
    struct gpi_page *p = w->plan.page;
    uint32_t written = atomic_load_explicit(&p->log_written, memory_order_relaxed);
    struct gpi_log_line *line = &p->log[written % GPI_LOG_LINES];

    if (written - atomic_load(&p->log_read) >= GPI_LOG_LINES) {
        atomic_fetch_add_explicit(&p->log_dropped, 1, memory_order_relaxed);
        return;
    }
    line->level = level;
    copy_text(line->text, sizeof line->text, text);
    atomic_store(&p->log_written, written + 1);
    /* the host had read all earlier lines, so it may not read again without a doorbell */
    if (atomic_load(&p->log_read) == written)
        gpi_worker_tell(w, GPI_NEWS_LOG);
}

int gpud_worker_fail(gpud_worker *w, int code, const char *text)
{
    w->plan.page->setup_code = code ? code : -1;
    copy_text(w->plan.page->setup_text, sizeof w->plan.page->setup_text, text);
    return w->plan.page->setup_code;
}
