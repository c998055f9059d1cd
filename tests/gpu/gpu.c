/* SPDX-License-Identifier: MIT */
#include "gpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "scripted.h"

int gpu_process(gpud_task *t, void *state); /* obey.c */
int gpu_setup(gpud_worker *w, void **ret_state);

static gpud_monitor *monitor;

int gpu_rehearsed(void)
{
    return !gpu_built;
}

__attribute__((noreturn, format(printf, 1, 2))) static void no_gpu(const char *format, ...)
{
    char why[512];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(why, sizeof(why), format, list);
    va_end(list);
    gpu_readings_end();
    if (getenv("T_GPU_REQUIRED"))
        T_FAIL("T_GPU_REQUIRED is set, but there is no GPU: %s", why);
    t_skip("%s", why);
}

static void open_monitor(void)
{
    struct gpud_error error = GPUD_ERROR_INIT;

    if (!monitor && gpud_monitor_open(&monitor, NULL, &error))
        T_FAIL("gpud_monitor_open: %s: %s", gpud_error_name(error.code), error.text);
}

/* Whether this row is what device "0" means: the first that CUDA_VISIBLE_DEVICES allows. */
static int is_first(const struct gpud_device_info *row)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char *end;
    unsigned long index;

    if (!visible)
        return 1;
    index = strtoul(visible, &end, 10);
    if (end > visible && (*end == 0 || *end == ','))
        return index == row->index;
    return *visible && !strncmp(row->uuid, visible, strcspn(visible, ","));
}

static struct gpud_device_info first_gpu(uint64_t max_age)
{
    struct gpud_device_info rows[64] = { GPUD_DEVICE_INFO_INIT };
    int n;

    open_monitor();
    n = gpud_monitor_read(monitor, rows, 64, max_age, T_PATIENCE);
    for (int i = 0; i < n && i < 64; i++)
        if (is_first(&rows[i]))
            return rows[i];
    no_gpu("the driver shows %d GPUs, none of which CUDA_VISIBLE_DEVICES allows", n);
}

/* Writes what the fakes read, before a process of the library can. */
static void rehearse_on_fakes(void)
{
    const char *where = getenv("T_GPU_REHEARSE"), *script = getenv("FAKE_SCRIPT");
    char held[256];

    if (!where || strcmp(where, "fake") || !script || *script == '/')
        return;
    t_write_script(script, "gpus 1\nwhen provoked gpu 0 xid 31\n");
    (void)snprintf(held, sizeof(held), "%s.held", script);
    (void)mkdir(held, 0700);
    t_note_openings();
}

void gpu_begin(void)
{
    struct gpud_driver_info driver = GPUD_DRIVER_INFO_INIT;

    if (gpu_rehearsed())
        rehearse_on_fakes();
    t_init(gpu_setup, gpu_process, NULL);
    if (gpu_rehearsed() && getenv("T_GPU_REHEARSE"))
        return;
    if (gpu_rehearsed())
        no_gpu("built without the CUDA toolkit");
    open_monitor();
    T_OK(gpud_monitor_driver(monitor, &driver, T_PATIENCE));
    if (driver.state != GPUD_DRIVER_OK)
        no_gpu("%s: %s", gpud_driver_name(driver.state), driver.text);
    if (driver.gpus == driver.unreadable)
        no_gpu("the driver counts %u GPUs, of which %u may not be opened", driver.gpus,
               driver.unreadable);
    (void)first_gpu(GPUD_NEVER);
}

const char *gpu_devices(unsigned workers)
{
    static char list[32];

    const char *rehearse = getenv("T_GPU_REHEARSE");

    (void)snprintf(list, sizeof(list),
                   gpu_rehearsed() && !strcmp(rehearse, "cpu") ? "cpu:%u" : "0/%u", workers);
    return list;
}

void gpu_submit(gpud_dispatcher *d, uint64_t tag, const struct gpu_order *order, uint64_t limit)
{
    T_SUBMIT(d, .tag = tag, .data = order, .size = sizeof(*order), .limit = limit);
}

struct gpu_answer gpu_answer_of(const struct t_log *log, uint64_t tag)
{
    const struct gpud_event *e = T_OUTCOME(log, tag, SUCCESS);
    struct gpu_answer a;

    T_EQ(e->result_size, sizeof(a));
    memcpy(&a, e->result, sizeof(a));
    T_EQ(a.error, 0);
    return a;
}

uint64_t gpu_memory_used(void)
{
    struct gpud_device_info row;

    if (gpu_rehearsed())
        return 0;
    row = first_gpu(0);
    if (row.memory_used == GPUD_UNKNOWN64)
        T_FAIL("%s: the memory in use cannot be read", row.name);
    return row.memory_used;
}

double gpu_reading_ms(void)
{
    uint64_t start = t_now();

    (void)gpu_memory_used();
    return (double)(t_now() - start) / 1e6;
}

void gpu_readings_end(void)
{
    T_OK(gpud_monitor_close(&monitor));
}

/* The first word of a line: no figure of a rehearsal looks like a GPU's. */
static const char *whose(void)
{
    return gpu_rehearsed() ? "rehearsed" : "gpu";
}

void gpu_result(const char *name, double value, const char *unit)
{
    (void)printf("%s-result %s %.6g %s\n", whose(), name, value, unit);
    (void)fflush(stdout);
}

void gpu_note(const char *format, ...)
{
    char text[512];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    (void)printf("%s-note %s\n", whose(), text);
}
