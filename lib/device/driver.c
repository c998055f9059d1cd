/* SPDX-License-Identifier: MIT */
#include "device/driver.h"

#include <stdio.h>
#include <strings.h>
#include <unistd.h>

enum gpi_reading gpi_reading_of(int code)
{
    switch (code) {
    case GPI_NVML_OK:
        return GPI_READ_OK;
    case GPI_NVML_GPU_IS_LOST:
    case GPI_NVML_GPU_NOT_FOUND:
    case GPI_NVML_IRQ_ISSUE:
    case GPI_NVML_INSUFFICIENT_POWER:
        return GPI_READ_LOST;
    case GPI_NVML_RESET_REQUIRED:
        return GPI_READ_RESET;
    case GPI_NVML_UNKNOWN: /* in a container that has lost its devices */
    case GPI_NVML_NO_PERMISSION:
    case GPI_NVML_OPERATING_SYSTEM:
        return GPI_READ_REVOKED;
    default:
        return GPI_READ_UNKNOWN;
    }
}

enum gpud_driver gpi_driver_of(int code)
{
    switch (code) {
    case GPI_NVML_OK:
        return GPUD_DRIVER_OK;
    case GPI_NVML_DRIVER_NOT_LOADED:
        return GPUD_DRIVER_NOT_LOADED;
    case GPI_NVML_VERSION_MISMATCH:
        return GPUD_DRIVER_MISMATCH;
    case GPI_NVML_FUNCTION_NOT_FOUND:
    case GPI_NVML_ARGUMENT_VERSION_MISMATCH:
        return GPUD_DRIVER_TOO_OLD;
    case GPI_NVML_NO_PERMISSION:
    case GPI_NVML_OPERATING_SYSTEM: /* a cgroup that forbids the device files */
        return GPUD_DRIVER_NO_PERMISSION;
    case GPI_NVML_LIBRARY_NOT_FOUND:
        return GPUD_DRIVER_NONE;
    case GPI_NVML_UNKNOWN:
        return GPUD_DRIVER_REVOKED;
    default:
        return GPUD_DRIVER_FAILED;
    }
}

const char *gpi_nvml_advice(int code)
{
    return code == GPI_NVML_NOT_READY
               ? "the system is not ready yet: start the fabric manager; under confidential "
                 "computing: nvidia-smi conf-compute -srs 1"
               : NULL;
}

static bool is_there(const char *root, const char *path)
{
    char name[256];

    (void)snprintf(name, sizeof(name), "%s%s", root, path);
    return access(name, F_OK) == 0;
}

/* Returns whether this is a Tegra ("Tegra234"), also in a container. */
static bool is_tegra(const char *root)
{
    char name[256], family[16] = "";
    FILE *file;

    (void)snprintf(name, sizeof(name), "%s/sys/devices/soc0/family", root);
    file = fopen(name, "re");
    if (file) {
        (void)!fscanf(file, "%15s", family);
        (void)fclose(file);
    }
    return strncasecmp(family, "tegra", 5) == 0 || is_there(root, "/etc/nv_tegra_release");
}

const char *gpi_driver_elsewhere(const char *root)
{
    if (is_there(root, "/dev/dxg"))
        return "this is WSL2, which uses the driver of Windows: update that one, run wsl --update, "
               "and install none in WSL; its libraries are in /usr/lib/wsl/lib";
    if (is_tegra(root))
        return "this is a Jetson (Tegra), which has NVML since JetPack 6: install that, and start "
               "containers with the GPU; cpu:N needs neither";
    return NULL;
}

void gpi_driver_say(struct gpi_driver *d, enum gpud_driver state, const char *what)
{
    static const char *const texts[GPUD_DRIVER_COUNT] = {
        [GPUD_DRIVER_OK] = "the driver works",
        [GPUD_DRIVER_NONE] = "libnvidia-ml.so.1 is missing: install the driver, start the "
                             "container with GPUs, or use cpu:N or fake:N",
        [GPUD_DRIVER_NOT_LOADED] = "the kernel module is not loaded: load it (modprobe nvidia); if "
                                   "that fails, see the kernel log",
        [GPUD_DRIVER_MISMATCH] =
            "library and kernel module have different versions: reload the module or reboot",
        [GPUD_DRIVER_TOO_OLD] = "the driver is too old: install 450 or later",
        [GPUD_DRIVER_NO_PERMISSION] = "permission denied on /dev/nvidia*: check file modes and "
                                      "the container's device rules",
        [GPUD_DRIVER_REVOKED] = "access to the GPUs was revoked (NVML 999), the hardware may work: "
                                "restart the container",
        [GPUD_DRIVER_HUNG] =
            "the driver does not reply: see the kernel log; a reboot may be necessary",
        [GPUD_DRIVER_FAILED] = "the driver reports an error: run nvidia-smi and see the kernel log",
    };

    const int n = snprintf(d->text, sizeof(d->text), "%s", texts[state]);
    const int room = (int)sizeof(d->text) - n - 3;

    d->state = state;
    if (what && *what && room > 0)
        (void)snprintf(d->text + n, sizeof(d->text) - (size_t)n, "; %.*s", room, what);
}

/* ---- GPUs that could not be opened ---- */

void gpi_unopened_add(struct gpi_unopened *u, struct gpi_driver *d, uint32_t number, int code)
{
    const enum gpi_reading reading = gpi_reading_of(code);

    if (u->n < GPI_UNOPENED_NAMED) {
        u->number[u->n] = number;
        u->code[u->n] = code;
    }
    u->n++;
    d->unopened = d->unopened ? d->unopened : (uint32_t)code;
    u->denied += code == GPI_NVML_NO_PERMISSION || code == GPI_NVML_OPERATING_SYSTEM;
    d->unreadable++;
    d->lost += reading == GPI_READ_LOST || reading == GPI_READ_RESET;
}

void gpi_unopened_say(const struct gpi_unopened *u, struct gpi_driver *d)
{
    static const char *const whys[GPI_READ_COUNT] = {
        [GPI_READ_LOST] = "is gone from the bus",
        [GPI_READ_RESET] = "must be reset",
        [GPI_READ_REVOKED] = "denies access",
    };
    char text[160];
    size_t n;

    if (!u->n)
        return;
    if (u->denied == d->gpus) {
        gpi_driver_say(d, GPUD_DRIVER_NO_PERMISSION, NULL);
        return;
    }
    n = (size_t)snprintf(text, sizeof text, "%u of %u GPUs cannot be opened", u->n, d->gpus);
    for (uint32_t i = 0; i < u->n && i < GPI_UNOPENED_NAMED && n < sizeof text; i++) {
        const char *why = whys[gpi_reading_of(u->code[i])];
        n += (size_t)snprintf(text + n, sizeof text - n, "%s number %u %s (NVML %d)", i ? "," : ":",
                              u->number[i], why ? why : "reports an error", u->code[i]);
    }
    if (u->n > GPI_UNOPENED_NAMED && n < sizeof text)
        (void)snprintf(text + n, sizeof text - n, ", and %u more", u->n - GPI_UNOPENED_NAMED);
    gpi_driver_say(d, GPUD_DRIVER_OK, text);
}
