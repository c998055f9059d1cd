/* SPDX-License-Identifier: MIT */
/* main.c - looks for a GPU, runs the cells one after the other, prints what came out. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <gpudispatch/gpudispatch.h>

#include "../measure.h"
#include "../place.h"
#include "../report.h"
#include "cells.h"
#include "kernels.h"
#include "work.h"

/* As test programs say that they were skipped. */
enum { SKIPPED = 77 };

static const struct {
    const char *name;
    g_cell_fn *run;
} cells[] = {
    { "busy", g_cell_busy }, { "trip", g_cell_trip }, { "stream", g_cell_stream }, { "copy",
      g_cell_copy }, { "restart", g_cell_restart },
};
enum { CELLS = sizeof(cells) / sizeof(*cells) };

static int usage(FILE *out, int code)
{
    (void)fputs(
        "usage: gpu-bench [--json] [--rehearse] [--help]\n"
        "Measures the library on the first GPU against bare loops there.\n"
        "  --rehearse  in a build without the CUDA toolkit: run on processors, to see that it "
        "runs;\n"
        "              the figures mean nothing\n"
        "Exit status: 0 measured, 1 a cell failed, 2 wrong usage, 77 no GPU to measure on.\n",
        out);
    return code;
}

/* Says why there is no GPU to measure on, or which one there is.  0 or SKIPPED. */
static int look_for_gpu(void)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;
    struct gpud_driver_info driver = GPUD_DRIVER_INFO_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_monitor *m = NULL;
    int n = 0;

    if (gpud_monitor_open(&m, NULL, &error) || gpud_monitor_driver(m, &driver, 30 * B_S))
        (void)snprintf(driver.text, sizeof(driver.text), "%.*s", (int)sizeof(driver.text) - 1,
                       error.text);
    else
        n = gpud_monitor_read(m, &row, 1, GPUD_NEVER, 30 * B_S);
    (void)gpud_monitor_close(&m);
    if (n < 1) {
        (void)fprintf(stderr, "gpu-bench: skipped: no GPU: %s\n", driver.text);
        return SKIPPED;
    }
    (void)fprintf(stderr, "gpu-bench: %s, driver %s\n", row.model, driver.driver_version);
    return 0;
}

/* Gives the devices to measure on.  0, or the exit status. */
static int choose(int rehearse, const char **ret_devices)
{
    *ret_devices = rehearse ? "cpu:1" : "0";
    if (rehearse && gpu_built) {
        (void)b_complain("--rehearse is for a build without the CUDA toolkit");
        return 2;
    }
    if (rehearse) {
        (void)fputs("gpu-bench: a rehearsal: no figure here is of a GPU\n", stderr);
        return 0;
    }
    if (gpu_built)
        return look_for_gpu();
    (void)fputs("gpu-bench: skipped: built without the CUDA toolkit\n", stderr);
    return SKIPPED;
}

static int measure(const char *devices, int json)
{
    struct b_figure figures[B_KEY_COUNT];
    char wanted[B_KEY_COUNT];
    uint64_t start = b_now();
    int failed = 0;

    for (unsigned i = 0; i < B_KEY_COUNT; i++)
        figures[i] = (struct b_figure){ .key = i, .value = NAN, .raw = NAN, .ours = NAN };
    memset(wanted, 1, sizeof(wanted));
    for (unsigned i = 0; i < CELLS; i++)
        if (cells[i].run(figures, devices)) {
            (void)b_complain("cell %s: failed", cells[i].name);
            failed = 1;
        }
    (json ? b_print_json : b_print_table)(stdout, figures, wanted, (double)(b_now() - start) / 1e9);
    return failed;
}

int main(int argc, char **argv)
{
    const char *devices = NULL;
    int i, json = 0, rehearse = 0, status;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--rehearse") == 0)
            rehearse = 1;
        else if (strcmp(argv[i], "--help") == 0)
            return usage(stdout, 0);
        else
            return usage(stderr, 2);
    }
    b_place_init();
    if (g_init())
        return 1;
    status = choose(rehearse, &devices);
    if (status == 0)
        status = measure(devices, json);
    (void)gpud_fini();
    return status;
}
