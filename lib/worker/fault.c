/* SPDX-License-Identifier: MIT */
/* fault.c - finds faults of devices before setup and after process, and reports them. */
#include <stdio.h>
#include <string.h>

#include "gpudispatch/dispatch.h"
#include "wire/frame.h"
#include "worker/worker.h"

/* ---- before setup ---- */

static void end_canary(gpud_worker *w, enum gpi_canary_done done, const char *text)
{
    struct gpi_page *p = w->plan.page;

    snprintf(p->canary_text, sizeof p->canary_text, "%s", text);
    atomic_store_explicit(&p->canary_done, done, memory_order_release);
}

static _Noreturn void refuse(gpud_worker *w, const char *text)
{
    struct gpi_page *p = w->plan.page;

    p->setup_code = GPUD_EDEVICE;
    snprintf(p->setup_text, sizeof p->setup_text, "%s", text);
    atomic_store_explicit(&p->setup_done, 2, memory_order_release);
    gpi_worker_tell(w, GPI_NEWS_SETUP);
    gpi_worker_leave(1);
}

/* Reports the canary before setup starts, which may take long. */
static bool pass_canary(gpud_worker *w)
{
    char text[GPI_FAIL_TEXT_SIZE] = "";
    bool passed = !w->cuda || gpi_cuda_canary(w->cuda, text, sizeof text) == 0;

    end_canary(w, passed ? GPI_CANARY_PASSED : GPI_CANARY_FAILED, text);
    gpi_worker_tell(w, GPI_NEWS_SETUP);
    return passed;
}

void gpi_worker_meet_devices(gpud_worker *w)
{
    struct gpi_page *p = w->plan.page;
    const uint32_t canary = p->canary;
    char text[GPI_FAIL_TEXT_SIZE];

    if (gpi_cuda_open(&w->cuda, p, text, sizeof text)) {
        if (canary != GPI_CANARY_NO)
            end_canary(w, GPI_CANARY_FAILED, text); /* without a context the kernel cannot run */
        refuse(w, text);
    }
    if (canary == GPI_CANARY_NO)
        return;
    if (!pass_canary(w) && canary != GPI_CANARY_ONLY)
        refuse(w, p->canary_text);
    if (canary == GPI_CANARY_ONLY)
        gpi_worker_leave(0);
}

static bool pin(gpud_worker *w, const char *what, void *at, uint64_t size, bool read_only)
{
    char text[GPI_LOG_TEXT_SIZE];

    if (size == 0 || gpi_cuda_pin(w->cuda, at, size, read_only))
        return size > 0;
    snprintf(text, sizeof text,
             "memory for %s could not be pinned; copies are slower (cuda, bit PIN)", what);
    gpud_worker_log(w, GPUD_LEVEL_DEBUG, text);
    return false;
}

void gpi_worker_pin(gpud_worker *w)
{
    const struct gpi_page *p = w->plan.page;

    if (!w->cuda || !(p->cuda & GPUD_CUDA_PIN) || !gpi_cuda_on_gpu(p))
        return;
    (void)pin(w, "task data", (void *)(uintptr_t)w->plan.input, p->input_size, true);
    w->pinned = pin(w, "results", w->plan.result, p->result_size, false);
}

/* ---- after process ---- */

/* The text of process itself is first. */
static void charge(struct gpud_task *t, int code, const char *words)
{
    char *text = t->extra->fail_text;
    const size_t size = sizeof t->extra->fail_text, n = t->fail_code ? strnlen(text, size - 1) : 0;

    snprintf(text + n, size - n, n ? " (%s)" : "%s", words);
    if (!t->fail_code)
        t->fail_code = code ? code : GPUD_EDEVICE;
}

/* Blocks the alarm meanwhile: the library must not interrupt a call of the driver. */
static enum gpi_cuda_check look(gpud_worker *w, int32_t *ret_code, char *words, size_t size)
{
    enum gpi_cuda_check found;

    gpi_worker_block_alarm(true);
    found = gpi_cuda_check(w->cuda, ret_code, words, size);
    gpi_worker_block_alarm(false);
    return found;
}

bool gpi_worker_look(gpud_worker *w, int code)
{
    struct gpi_page *p = w->plan.page;
    char words[GPI_FAIL_TEXT_SIZE];
    int32_t cuda = 0;
    enum gpi_cuda_check found = look(w, &cuda, words, sizeof words);

    if (found == GPI_CUDA_FINE)
        return false;
    for (uint32_t i = 0; i < w->members; i++)
        charge(&w->task[i], code, words);
    if (found == GPI_CUDA_ERROR)
        return false;
    snprintf(p->fault_text, sizeof p->fault_text, "%s", words);
    atomic_store_explicit(&p->fault, (uint32_t)cuda, memory_order_release);
    return true;
}
