/* SPDX-License-Identifier: MIT */
/* doctor_driver.c - group driver: hardware, driver, its files; and group environment: the variables
 * that select devices. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "tools/cli/out.h"

#define NVIDIA_VENDOR "0x10de"
#define DISPLAY_CLASS "0x03" /* PCI base class: VGA and 3D controllers */

/* ---- what the machine has ---- */

static unsigned pci_gpus(const struct doctor *d)
{
    char path[512], line[32];
    unsigned n = 0;
    DIR *dir;

    snprintf(path, sizeof path, "%s/sys/bus/pci/devices", d->root);
    dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%.64s/vendor", d->root, e->d_name);
        if (!file_line(path, line, sizeof line) || strcmp(line, NVIDIA_VENDOR) != 0)
            continue;
        snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%.64s/class", d->root, e->d_name);
        n += file_line(path, line, sizeof line) &&
             !strncmp(line, DISPLAY_CLASS, strlen(DISPLAY_CLASS));
    }
    if (dir)
        closedir(dir);
    return n;
}

/* The first word with two dots or one, all digits else: "535.104.05" of "NVRM version: ... Kernel
 * Module  535.104.05  Sat ...". */
static bool kernel_module(const struct doctor *d, char *version, size_t size)
{
    char path[512], line[256];

    snprintf(path, sizeof path, "%s/proc/driver/nvidia/version", d->root);
    if (!file_line(path, line, sizeof line))
        return false;
    for (char *save = NULL, *word = strtok_r(line, " \t", &save); word;
         word = strtok_r(NULL, " \t", &save))
        if (isdigit((unsigned char)word[0]) && strchr(word, '.') &&
            strspn(word, "0123456789.") == strlen(word)) {
            snprintf(version, size, "%s", word);
            return true;
        }
    snprintf(version, size, "?");
    return true;
}

static void check_hardware(struct doctor *d, unsigned gpus)
{
    char version[80];

    if (gpus)
        finding(d, VERDICT_OK, "hardware", NULL, "%u NVIDIA GPU%s on the PCI bus", gpus,
                gpus == 1 ? "" : "s");
    else
        finding(d, VERDICT_OK, "hardware", NULL, "no NVIDIA GPU on the PCI bus");
    if (kernel_module(d, version, sizeof version))
        finding(d, VERDICT_OK, "kernel module", NULL, "%s", version);
    else if (gpus)
        finding(d, VERDICT_PROBLEM, "kernel module",
                "install the driver, or load it: modprobe nvidia (as root; if it fails, see dmesg)",
                "not loaded, although there is hardware for it");
}

/* ---- the driver ---- */

static const char *const driver_remedy[GPUD_DRIVER_COUNT] = {
    [GPUD_DRIVER_NONE] = "install the NVIDIA driver; in a container, start it with GPUs (docker "
                         "run --gpus all, or CDI)",
    [GPUD_DRIVER_NOT_LOADED] = "modprobe nvidia (as root); if it fails, see dmesg",
    [GPUD_DRIVER_MISMATCH] =
        "restart the machine, or unload and load the module; restart containers",
    [GPUD_DRIVER_TOO_OLD] = "install a newer driver",
    [GPUD_DRIVER_NO_PERMISSION] =
        "let this user read and write /dev/nvidia*; in a container, start it with access to them",
    [GPUD_DRIVER_REVOKED] = "restart the container (systemctl daemon-reload on its host revokes "
                            "access, but not to CDI devices)",
    [GPUD_DRIVER_HUNG] =
        "see dmesg for XIDs; end programs that pin much memory; else restart the machine",
    [GPUD_DRIVER_FAILED] = "see dmesg and the output of nvidia-smi",
};

/* Without a GPU it is no fault that no driver is there. */
static enum verdict driver_verdict(uint32_t state, unsigned gpus)
{
    if (state == GPUD_DRIVER_OK)
        return VERDICT_OK;
    return (state == GPUD_DRIVER_NONE || state == GPUD_DRIVER_NOT_LOADED) && !gpus
               ? VERDICT_NOTE
               : VERDICT_PROBLEM;
}

static void check_answer(struct doctor *d, unsigned gpus)
{
    const struct gpud_driver_info *i = &d->look.driver;
    enum verdict verdict = driver_verdict(i->state, gpus);
    const char *remedy = i->state < GPUD_DRIVER_COUNT ? driver_remedy[i->state] : NULL;

    finding(d, verdict, "driver", verdict == VERDICT_PROBLEM ? remedy : NULL, "%s: %s",
            gpud_driver_name(i->state), driver_sentence(i));
    if (i->driver_version[0] || i->nvml_version[0])
        finding(d, VERDICT_OK, "versions", NULL, "driver %s, NVML %s, CUDA up to %u.%u",
                i->driver_version[0] ? i->driver_version : "?",
                i->nvml_version[0] ? i->nvml_version : "?", i->cuda_version / 1000,
                i->cuda_version % 1000 / 10);
    if (i->lost)
        finding(d, VERDICT_PROBLEM, "lost",
                "reset them (nvidia-smi --gpu-reset, as root), else restart the machine; see dmesg "
                "for XIDs",
                "%u of %u GPUs are gone from the bus, or must be reset", i->lost, i->gpus);
    if (i->unreadable > i->lost)
        finding(d, VERDICT_NOTE, "access",
                "in a container, start it with these GPUs if it needs them",
                "%u of %u GPUs cannot be opened here", i->unreadable - i->lost, i->gpus);
}

static void check_versions(struct doctor *d)
{
    const char *library = d->look.driver.driver_version;
    char module[80];

    if (library[0] && kernel_module(d, module, sizeof module) && module[0] != '?' &&
        strcmp(module, library) != 0)
        finding(d, VERDICT_PROBLEM, "module", driver_remedy[GPUD_DRIVER_MISMATCH],
                "the kernel module is %s, the library is %s", module, library);
}

/* ---- its files ---- */

static void check_file(struct doctor *d, const char *name, const char *missing)
{
    char path[512];

    snprintf(path, sizeof path, "%s/dev/%s", d->root, name);
    if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0)
        finding(d, VERDICT_OK, name, NULL, "readable and writable");
    else if (errno == ENOENT)
        finding(d, VERDICT_PROBLEM, name, missing, "/dev/%s does not exist", name);
    else
        finding(d, VERDICT_PROBLEM, name,
                "give this user read and write permission (udev rule, or group video or render)",
                "/dev/%s: %s", name, strerror(errno));
}

static bool is_gpu_file(const char *name)
{
    return !strncmp(name, "nvidia", 6) && name[6] &&
           strspn(name + 6, "0123456789") == strlen(name + 6);
}

static void check_gpu_files(struct doctor *d)
{
    char path[512];
    unsigned n = 0;
    DIR *dir;

    snprintf(path, sizeof path, "%s/dev", d->root);
    dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (is_gpu_file(e->d_name)) {
            check_file(d, e->d_name, NULL);
            n++;
        }
    if (dir)
        closedir(dir);
    if (!n)
        finding(d, VERDICT_PROBLEM, "device files",
                "nvidia-modprobe (as root); in a container, start it with GPUs",
                "/dev/nvidia0, /dev/nvidia1, ... do not exist");
}

/* They are not opened: with a driver in trouble that may never return. */
static void check_driver_files(struct doctor *d)
{
    char path[512];

    snprintf(path, sizeof path, "%s/dev/dxg", d->root);
    if (access(path, F_OK) == 0) {
        finding(d, VERDICT_OK, "device files", NULL, "/dev/dxg: WSL2 uses the driver of Windows");
        return;
    }
    check_file(d, "nvidiactl", "nvidia-modprobe (as root); in a container, start it with GPUs");
    check_file(d, "nvidia-uvm", "nvidia-modprobe -u -c 0 (as root): without it CUDA cannot start");
    check_gpu_files(d);
    snprintf(path, sizeof path, "%s/run/nvidia-persistenced/socket", d->root);
    if (access(path, F_OK) == 0)
        finding(d, VERDICT_OK, "persistence", NULL,
                "nvidia-persistenced runs; it holds every GPU, so stop it to reset one");
    else
        finding(
            d, VERDICT_NOTE, "persistence",
            "run nvidia-persistenced; in a container: on its host, where it may already run",
            "nvidia-persistenced has no socket here: the first use after a pause may take seconds");
}

void check_driver(struct doctor *d)
{
    unsigned gpus = d->fakes ? 0 : pci_gpus(d);
    char version[80];
    int r = d->opened ? d->opened : look_again(&d->look, 0, d->wait);

    if (!d->fakes)
        check_hardware(d, gpus);
    if (r) {
        finding(d, VERDICT_PROBLEM, "monitor", "see the worker program below",
                "the devices cannot be read: %s", d->opened ? d->why.text : gpud_error_text(r));
        return;
    }
    d->looked = true;
    check_answer(d, gpus);
    if (d->fakes)
        return;
    check_versions(d);
    if (gpus || kernel_module(d, version, sizeof version) || d->look.n)
        check_driver_files(d);
}

/* ---- group environment ---- */

/* How many rows an entry of CUDA_VISIBLE_DEVICES means: by number, which counts the GPUs that can
 * be opened, or by a beginning of the UUID. */
static unsigned rows_of(const struct look *l, const char *entry)
{
    bool is_number = strspn(entry, "0123456789") == strlen(entry);
    unsigned long number = is_number ? strtoul(entry, NULL, 10) : 0, gpus = 0;
    unsigned found = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct gpud_device_info *r = &l->row[i];
        if (is_number)
            found += r->kind == GPUD_DEVICE_GPU && gpus++ == number;
        else if (strlen(entry) > 4 && !strncasecmp(r->uuid, entry, strlen(entry)))
            found++;
    }
    return found;
}

/* CUDA cuts the list at such an entry, and so does the library. */
static bool ends_list(const char *entry)
{
    return !*entry || (entry[0] == '-' && isdigit((unsigned char)entry[1]));
}

static char *trimmed(char *text)
{
    char *end = text + strlen(text);

    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

/* One entry; false: the others do not count. */
static bool check_entry(struct doctor *d, const char *entry, unsigned number, unsigned *good)
{
    unsigned n = ends_list(entry) ? 0 : rows_of(&d->look, entry);

    if (n == 1)
        ++*good;
    else if (!ends_list(entry))
        finding(d, d->look.n ? VERDICT_PROBLEM : VERDICT_NOTE, "visible devices",
                "list UUIDs (gpudispatch gpus shows them), or unset CUDA_VISIBLE_DEVICES",
                "CUDA_VISIBLE_DEVICES, entry %u, '%.60s', %s; CUDA ignores it and all later "
                "entries, the library refuses it",
                number, entry, n ? "matches several devices" : "matches no device");
    return n == 1;
}

static void check_visible(struct doctor *d)
{
    const char *value = getenv("CUDA_VISIBLE_DEVICES");
    char *copy = strdup(value ? value : ""), *rest = copy, *entry;
    unsigned number = 0, good = 0;

    while (copy && (entry = strsep(&rest, ",")) && check_entry(d, trimmed(entry), ++number, &good))
        ;
    free(copy);
    if (!value)
        finding(d, VERDICT_OK, "visible devices", NULL,
                "CUDA_VISIBLE_DEVICES is not set: all are visible");
    else if (good)
        finding(d, VERDICT_OK, "visible devices", NULL, "CUDA_VISIBLE_DEVICES allows %u of %zu",
                good, d->look.n);
    else
        finding(d, d->gpu ? VERDICT_PROBLEM : VERDICT_NOTE, "visible devices",
                "unset CUDA_VISIBLE_DEVICES to use GPUs",
                "CUDA_VISIBLE_DEVICES (%.60s) allows none", *value ? value : "empty");
}

/* Numbers mean other devices to CUDA than to us, where it orders them by speed. */
static void check_order(struct doctor *d)
{
    const char *order = getenv("CUDA_DEVICE_ORDER"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    bool numbers = visible && isdigit((unsigned char)visible[0]), mixed = false;

    for (size_t i = 1; i < d->look.n; i++)
        mixed = mixed || strcmp(d->look.row[i].model, d->look.row[0].model) != 0;
    if (numbers && mixed && (!order || strcmp(order, "PCI_BUS_ID") != 0))
        finding(d, VERDICT_NOTE, "device order", "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or list UUIDs",
                "CUDA numbers GPUs by speed, this library by PCI address: a number in "
                "CUDA_VISIBLE_DEVICES may select another GPU in CUDA");
}

static void check_mps(struct doctor *d)
{
    const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char path[512];

    snprintf(path, sizeof path, "%s%s/control", dir ? "" : d->root, dir ? dir : "/tmp/nvidia-mps");
    if (access(path, F_OK) == 0)
        finding(d, VERDICT_NOTE, "MPS",
                "use it only where workers share a GPU; else: echo quit | nvidia-cuda-mps-control",
                "MPS is on (%.200s): a fault of one worker ends all workers on that GPU", path);
    else if (dir)
        finding(d, VERDICT_NOTE, "MPS",
                "start nvidia-cuda-mps-control -d, or unset CUDA_MPS_PIPE_DIRECTORY",
                "CUDA_MPS_PIPE_DIRECTORY is %.200s, but no MPS server listens there", dir);
    else
        finding(d, VERDICT_OK, "MPS", NULL, "off");
}

void check_environment(struct doctor *d)
{
    if (!d->fakes) { /* for these the variables mean nothing */
        check_visible(d);
        check_order(d);
    }
    check_mps(d);
}
