/* SPDX-License-Identifier: MIT */
#include "nvml_scene.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

static void *library;
void *n_state;
struct gpi_driver n_driver;
struct gpi_device n_rows[GPI_GPUS_MAX];

void n_load(const char *which, const char *script)
{
    char path[512];

    t_write_script("script", script);
    T_EQ(setenv("FAKE_SCRIPT", "script", 1), 0);
    (void)snprintf(path, sizeof(path), "%s/%s", T_PROGRAMS, which);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        T_FAIL("%s", dlerror());
}

uint32_t n_begin_with(const char *which, const char *script)
{
    n_load(which, script);
    n_state = gpi_provider_nvml.open(0, NULL, 0, &n_driver);
    if (!n_state)
        T_FAIL("%s", n_driver.text);
    T_EQ(n_driver.state, GPUD_DRIVER_OK);
    return gpi_provider_nvml.enumerate(n_state, n_rows, GPI_GPUS_MAX, &n_driver);
}

uint32_t n_begin(const char *script)
{
    return n_begin_with("libnvidia-ml.so.1", script);
}

void n_end(void)
{
    const atomic_uint *forbidden = dlsym(library, "fake_nvml_forbidden");

    T_CHECK(forbidden);
    T_EQ(*forbidden, 0);
    T_EQ(unsetenv("FAKE_SCRIPT"), 0);
}

struct gpi_sample n_sample(uint32_t i)
{
    const uint64_t before = gpi_now();
    struct gpi_sample x;

    gpi_provider_nvml.sample(n_state, i, &x);
    T_CHECK(x.at >= before && x.at <= gpi_now());
    return x;
}

void n_hear(uint32_t kind, uint32_t device, uint64_t number)
{
    struct gpi_incident i;

    T_CHECK(gpi_provider_nvml.await(n_state, &i));
    T_EQ(i.kind, kind);
    T_EQ(i.device, device);
    T_EQ(i.number, number);
    T_CMP(i.at, <=, gpi_now());
}

unsigned n_calls(void)
{
    return *(const atomic_uint *)dlsym(library, "fake_nvml_calls");
}

void n_registered(void)
{
    n_hear(GPI_INCIDENT_RECOVERY, 0, GPUD_RECOVERY_IMEX);
}
