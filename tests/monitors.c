/* SPDX-License-Identifier: MIT */
#include "monitors.h"

#include "scripted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8 };

gpud_monitor *t_monitor_open(unsigned n, const char *script)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_monitor *m = NULL;
    char devices[64];

    if (script)
        t_write_script("script", script);
    (void)snprintf(devices, sizeof(devices), "fake:%u%s", n, script ? ",script=script" : "");
    if (gpud_monitor_open(&m, devices, &e))
        T_FAIL("%s: %s", gpud_error_name(e.code), e.text);
    return m;
}

struct gpud_device_info *t_monitor_rows(gpud_monitor *m, int wanted, uint64_t max_age,
                                        uint64_t wait)
{
    static struct gpud_device_info rows[ROWS];

    rows[0].struct_size = sizeof(rows[0]);
    T_EQ(gpud_monitor_read(m, rows, ROWS, max_age, wait), wanted);
    return rows;
}

struct gpud_driver_info t_monitor_driver(gpud_monitor *m, uint64_t wait)
{
    struct gpud_driver_info info = GPUD_DRIVER_INFO_INIT;

    T_OK(gpud_monitor_driver(m, &info, wait));
    T_EQ(info.struct_size, sizeof(info));
    return info;
}

void t_monitor_ask_in_vain(gpud_monitor *m, int rows)
{
    (void)t_monitor_driver(m, T_PATIENCE); /* the devices are known then */
    (void)t_monitor_rows(m, rows, 0, T_MS(10));
}

size_t t_monitors(struct t_proc *ret_first)
{
    struct t_procs all;
    char token[128];
    size_t count = 0;

    (void)snprintf(token, sizeof(token), "T_TOKEN=%s", getenv("T_TOKEN"));
    all = t_procs_with_env(token);
    for (size_t i = 0; i < all.count; i++)
        if (!strcmp(all.list[i].comm, "gpud-monitor")) {
            if (ret_first && !count)
                *ret_first = all.list[i];
            count++;
        }
    t_procs_free(&all);
    return count;
}

static int one_monitor(void *ret_p)
{
    return t_monitors(ret_p) == 1;
}

struct t_proc t_the_monitor(void)
{
    struct t_proc p;

    t_wait_until("there is one monitor", one_monitor, &p);
    return p;
}

int t_no_monitor(void *unused)
{
    (void)unused;
    return t_monitors(NULL) == 0;
}

void t_monitor_close_quickly(gpud_monitor **m)
{
    uint64_t start = t_now();

    T_OK(gpud_monitor_close(m));
    T_CHECK(!*m);
    T_CMP(t_now() - start, <, T_AT_ONCE);
}

void t_fini_quickly(void)
{
    uint64_t start = t_now();

    T_OK(gpud_fini());
    T_CMP(t_now() - start, <, T_AT_ONCE);
}
