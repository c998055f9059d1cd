/* SPDX-License-Identifier: MIT */
/* nvml.c - the NVML provider through a fake libnvidia-ml.so.1, in each scripted fault. */
#include "harness.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <libintl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/nvml.h"
#include "gpudispatch/device.h"

static const struct gpi_provider *const nvml = &gpi_provider_nvml;
static void *library, *state, *volatile asked[64]; /* neither is ever ended: a monitor's end with its process */
static struct gpi_driver driver;
static struct gpi_device rows[GPI_GPUS_MAX];

/* A library loaded before is found by its soname. */
static void load(const char *which, const char *script)
{
    FILE *f = fopen("script", "we");
    char path[512];

    T_CHECK(f && fputs(script, f) >= 0 && !fclose(f));
    T_EQ(setenv("FAKE_SCRIPT", "script", 1), 0);
    (void)snprintf(path, sizeof(path), "%s/%s", T_PROGRAMS, which);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        T_FAIL("%s", dlerror());
}

static uint32_t begin_with(const char *which, const char *script)
{
    load(which, script);
    state = nvml->open(0, NULL, 0, &driver);
    if (!state)
        T_FAIL("%s", driver.text);
    T_EQ(driver.state, GPUD_DRIVER_OK);
    return nvml->enumerate(state, rows, GPI_GPUS_MAX, &driver);
}

static uint32_t begin(const char *script)
{
    return begin_with("libnvidia-ml.so.1", script);
}

/* Nothing was called that must never be. */
static void end(void)
{
    const atomic_uint *forbidden = dlsym(library, "fake_nvml_forbidden");

    T_CHECK(forbidden);
    T_EQ(*forbidden, 0);
    T_EQ(unsetenv("FAKE_SCRIPT"), 0);
}

static void touch(const char *name)
{
    const int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    T_CHECK(fd >= 0);
    (void)close(fd);
}

static struct gpi_sample sample(uint32_t i)
{
    const uint64_t before = gpi_now();
    struct gpi_sample x;

    nvml->sample(state, i, &x);
    T_CHECK(x.at >= before && x.at <= gpi_now());
    return x;
}

static void hear(uint32_t kind, uint32_t device, uint64_t number)
{
    struct gpi_incident i;

    T_CHECK(nvml->await(state, &i));
    T_EQ(i.kind, kind);
    T_EQ(i.device, device);
    T_EQ(i.number, number);
    T_CMP(i.at, <=, gpi_now());
}

/* ---- who they are ---- */

T_CASE(enumeration)
{
    T_EQ(begin("gpu * model=\"NVIDIA H100 80GB HBM3\" memory=80GiB\n"
               "gpu 0 uuid=GPU-01234567-89ab-cdef-0123-456789abcdef pci=00000000:3B:00.0 numa=1 minor=4 mode=exclusive\n"
               "gpu 1 mig=1g.10gb*2 cc=8.0\n"
               "gpu 2 numa=0\n"),
         5);
    T_EQ(driver.gpus, 3);
    T_EQ(driver.unreadable, 0);
    T_EQ(driver.cuda_version, 12080);
    T_TEXT(driver.driver_version, "570.86.15");
    T_TEXT(driver.nvml_version, "12.570.86.15");
    T_EQ(rows[0].kind, GPUD_DEVICE_GPU);
    T_TEXT(rows[0].name, "gpu:0");
    T_TEXT(rows[0].uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef");
    T_TEXT(rows[0].model, "NVIDIA H100 80GB HBM3");
    T_TEXT(rows[0].pci, "00000000:3B:00.0");
    T_EQ(rows[0].numa_node, 1);
    T_EQ(rows[0].minor, 4);
    T_EQ(rows[0].compute_mode, 3);
    T_EQ(rows[0].compute_major, 9);
    T_EQ(rows[0].memory_total, 80ull << 30);
    T_EQ(rows[0].mig_index, GPI_UNKNOWN32);
    T_EQ(rows[1].mig_parts, 2);
    T_EQ(rows[3].kind, GPUD_DEVICE_MIG);
    T_TEXT(rows[3].name, "gpu:1:1");
    T_TEXT(rows[3].uuid, "MIG-fa4e0001-0002-4000-8000-000000000001");
    T_TEXT(rows[3].parent_uuid, rows[1].uuid);
    T_TEXT(rows[3].mig_profile, "1g.10gb");
    T_TEXT(rows[3].pci, rows[1].pci);
    T_EQ(rows[3].memory_total, 10ull << 30);
    T_EQ(rows[3].compute_major, 8);
    T_EQ(rows[3].mig_index, 1);
    T_TEXT(rows[4].name, "gpu:2");
    T_EQ(rows[4].index, 2);
    end();
}

/* It runs nothing: it must not be taken for a whole GPU. */
T_CASE(mig_mode_without_instances)
{
    T_EQ(begin("gpus 2\ngpu 0 mig=1g.10gb*2\ngpu 0 fail nvmlDeviceGetMigDeviceHandleByIndex 6"), 2);
    T_EQ(rows[0].mig_parts, GPI_UNKNOWN32);
    T_EQ(rows[1].mig_parts, 0);
    end();
}

T_CASE(mig_mode_that_cannot_be_counted)
{
    T_EQ(begin("gpus 1\ngpu 0 mig=1g.10gb*2\ngpu 0 fail nvmlDeviceGetMaxMigDeviceCount 999"), 1);
    T_EQ(rows[0].mig_parts, GPI_UNKNOWN32);
    end();
}

T_CASE(indices_that_cannot_be_opened)
{
    T_EQ(begin("gpus 4\ngpu 1 lost\ngpu 2 denied\nwhen back gpu * back\nwhen none gpu * denied"), 2);
    T_EQ(driver.state, GPUD_DRIVER_OK);
    T_EQ(driver.gpus, 4);
    T_EQ(driver.unreadable, 2);
    T_TEXT(driver.text, "the driver answers; 2 of 4 GPUs cannot be opened, the last is number 2: no permission (NVML 4)");
    T_TEXT(rows[0].name, "gpu:0");
    T_TEXT(rows[1].name, "gpu:3");
    touch("back");
    T_EQ(nvml->enumerate(state, rows, GPI_GPUS_MAX, &driver), 4);
    T_EQ(driver.unreadable, 0);
    T_EQ(nvml->enumerate(state, rows, 3, &driver), 3);
    touch("none");
    T_EQ(nvml->enumerate(state, rows, GPI_GPUS_MAX, &driver), 0);
    T_EQ(driver.state, GPUD_DRIVER_NO_PERMISSION);
    end();
}

/* What is not told is left out, and what is told stands; the same answer again is no other enumeration. */
T_CASE(enumeration_with_gaps)
{
    T_EQ(begin("gpus 3\ngpu 0 mig=1g.10gb+2g.20gb numa=1\n"
               "driver fail nvmlSystemGetDriverVersion 999 fail nvmlSystemGetNVMLVersion 999 fail nvmlSystemGetCudaDriverVersion_v2 999\n"
               "gpu * fail nvmlDeviceGetName 3 fail nvmlDeviceGetMinorNumber 3 fail nvmlDeviceGetPciInfo_v3 3 fail nvmlDeviceGetCudaComputeCapability 3\n"
               "gpu 0 fail nvmlDeviceGetGpuInstanceId 3 fail nvmlDeviceGetComputeInstanceId 3\n"
               "gpu 1 fail nvmlDeviceGetUUID 15\n"
               "gpu 0:0 fail nvmlDeviceGetUUID 999\nwhen mended gpu 0:0 mend nvmlDeviceGetUUID\n"),
         3);
    T_TEXT(driver.driver_version, "");
    T_TEXT(driver.nvml_version, "");
    T_EQ(driver.cuda_version, 0);
    T_EQ(driver.unreadable, 1);
    T_TEXT(rows[0].model, "");
    T_TEXT(rows[0].pci, "");
    T_EQ(rows[0].minor, GPI_UNKNOWN32);
    T_EQ(rows[0].compute_major, 0);
    T_EQ(rows[0].mig_parts, 1);
    T_TEXT(rows[1].mig_profile, "2g.20gb"); /* from what it consists of */
    T_EQ(rows[1].mig_index, 1);
    T_TEXT(rows[2].name, "gpu:2");
    T_EQ(nvml->enumerate(state, rows, GPI_GPUS_MAX, &driver), 3);
    T_EQ(sample(2).reading, GPI_READ_OK);
    touch("mended");
    T_EQ(nvml->enumerate(state, rows, GPI_GPUS_MAX, &driver), 4);
    T_EQ(rows[0].mig_parts, 2);
    T_TEXT(rows[1].name, "gpu:0:0");
    T_EQ(sample(3).reading, GPI_READ_OK);
    end();
}

T_CASE(driver_states)
{
    static const struct {
        const char *file;
        uint32_t driver;
        const char *words;
    } told[] = {
        { "1", GPUD_DRIVER_NOT_LOADED, "modprobe nvidia" },  { "2", GPUD_DRIVER_MISMATCH, "reload the module or reboot" },
        { "3", GPUD_DRIVER_NO_PERMISSION, "/dev/nvidia*" },  { "4", GPUD_DRIVER_REVOKED, "start the container anew" },
        { "5", GPUD_DRIVER_FAILED, "NVML 23" },              { "6", GPUD_DRIVER_NO_PERMISSION, "NVML 17" },
        { "7", GPUD_DRIVER_TOO_OLD, "450 or later" },
    };

    load("libnvidia-ml.so.1", "when 1 driver state=not-loaded\nwhen 2 driver state=mismatch\nwhen 3 driver state=no-permission\nwhen 4 driver state=revoked\n"
                              "when 5 driver state=failed\nwhen 6 driver fail nvmlInit_v2 17\nwhen 7 driver fail nvmlInit_v2 13\n");
    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
        touch(told[i].file);
        T_CHECK(!nvml->open(0, NULL, 0, &driver));
        T_EQ(driver.state, told[i].driver);
        if (!strstr(driver.text, told[i].words))
            T_FAIL("\"%s\" in \"%s\"", told[i].words, driver.text);
    }
    end();
}

/* Counting may fail when loading did not: the driver was changed under us. */
T_CASE(driver_is_gone_later)
{
    T_EQ(begin("gpus 2\nwhen gone driver state=mismatch"), 2);
    touch("gone");
    T_EQ(sample(0).reading, GPI_READ_UNKNOWN);
    T_EQ(sample(0).code, 18);
    T_EQ(nvml->enumerate(state, rows, GPI_GPUS_MAX, &driver), 0);
    T_EQ(driver.state, GPUD_DRIVER_MISMATCH);
    end();
}

T_CASE(no_library)
{
    void *real = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    state = nvml->open(0, NULL, 0, &driver);
    if (real) { /* this machine has a driver */
        (void)dlclose(real);
        T_CHECK(driver.state != GPUD_DRIVER_NONE);
        return;
    }
    T_CHECK(!state);
    T_EQ(driver.state, GPUD_DRIVER_NONE);
    T_CHECK(strstr(driver.text, "install the driver"));
}

/* A catalog that has other words for one message of libc's. */
static void write_catalog(const char *path, const char *message, const char *words)
{
    enum { HEAD = 7, TABLES = 4 };
    const uint32_t of_message = (HEAD + TABLES) * sizeof(uint32_t), of_words = of_message + (uint32_t)strlen(message) + 1;
    const uint32_t head[HEAD + TABLES] = { 0x950412de, 0, 1, HEAD * sizeof(uint32_t), (HEAD + 2) * sizeof(uint32_t), 0, 0,
                                           (uint32_t)strlen(message), of_message, (uint32_t)strlen(words), of_words };
    FILE *f = fopen(path, "we");

    T_CHECK(f && fwrite(head, sizeof(head), 1, f) == 1 && fprintf(f, "%s%c%s%c", message, 0, words, 0) > 0 && !fclose(f));
}

/* What a loader says is translated where the host has said setlocale: that the library is not here is known all the same. */
T_CASE(no_library_in_another_language)
{
    void *real = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    char here[512];
    const char *words;

    if (real) {
        (void)dlclose(real);
        t_skip("this machine has a driver");
    }
    T_CHECK(getcwd(here, sizeof(here)) && !mkdir("xx", 0700) && !mkdir("xx/LC_MESSAGES", 0700));
    write_catalog("xx/LC_MESSAGES/libc.mo", "cannot open shared object file", "Datei ist nicht da");
    T_CHECK(bindtextdomain("libc", here) && setlocale(LC_ALL, "C.UTF-8") && !setenv("LANGUAGE", "xx", 1));
    T_CHECK(!dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
    words = dlerror();
    if (!words || !strstr(words, "Datei ist nicht da"))
        t_skip("this loader is not translated: %s", words ? words : "no words");
    T_CHECK(!nvml->open(0, NULL, 0, &driver));
    T_EQ(driver.state, GPUD_DRIVER_NONE);
    T_CHECK(!dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
    T_CHECK(strstr(dlerror(), "Datei ist nicht da")); /* the locale is as it was */
    T_CHECK(!unsetenv("LANGUAGE") && setlocale(LC_ALL, "C"));
}

T_CASE(library_that_is_too_old)
{
    load("libnvidia-ml-ancient.so", "");
    T_CHECK(!nvml->open(0, NULL, 0, &driver));
    T_EQ(driver.state, GPUD_DRIVER_TOO_OLD);
    T_CHECK(strstr(driver.text, "its NVML lacks nvmlInit_v2"));
    T_EQ(unsetenv("FAKE_SCRIPT"), 0);
}

/* ---- how they are ---- */

static const char values[] = "gpu 0 memory=80GiB used=8GiB temperature=71 power=350 power-limit=700 utilization=93 memory-utilization=41 clock=1980\n"
                             "gpu 0 throttle=power-cap+sw-thermal ecc-corrected=12 ecc-uncorrected=3 remapped=5 remap-pending=yes remap-failed=yes recovery=drain-reset\n"
                             "gpu 1 mig=1g.5gb temperature=66 power=120 recovery=reset remapped=1\ngpu 1:0 used=1GiB\n"
                             "gpu 2 temperature=unknown power=unknown power-limit=unknown clock=unknown throttle=unknown ecc-corrected=unknown\n"
                             "gpu 2 ecc-uncorrected=unknown remapped=unknown remap-pending=unknown remap-failed=unknown recovery=unknown utilization=unknown mode=unknown\n";

static void check_values(bool old)
{
    struct gpi_sample x = sample(0);

    T_EQ(x.reading, GPI_READ_OK);
    T_EQ(x.memory_total, 80ull << 30);
    T_EQ(x.memory_used, 8ull << 30);
    T_EQ(x.memory_free, 72ull << 30);
    T_EQ(x.temperature, 71);
    T_EQ(x.power, 350000);
    T_EQ(x.power_limit, 700000);
    T_EQ(x.utilization, 93);
    T_EQ(x.memory_utilization, 41);
    T_EQ(x.sm_clock, 1980);
    T_EQ(x.throttle, GPUD_THROTTLE_POWER_CAP | GPUD_THROTTLE_SW_THERMAL);
    T_EQ(x.ecc_corrected, 12);
    T_EQ(x.ecc_uncorrected, 3);
    T_EQ(x.remapped_rows, old ? GPI_UNKNOWN32 : 5);
    T_EQ(x.remap_pending, 1);
    T_EQ(x.remap_failed, old ? GPI_UNKNOWN32 : 1);
    T_EQ(x.recovery, old ? GPI_UNKNOWN32 : GPUD_RECOVERY_DRAIN_RESET);
    x = sample(2); /* an instance: what its GPU has alone is its GPU's */
    T_EQ(x.reading, GPI_READ_OK);
    T_EQ(x.memory_used, 1ull << 30);
    T_EQ(x.memory_total, 5ull << 30);
    T_EQ(x.temperature, 66);
    T_EQ(x.power, 120000);
    T_EQ(x.utilization, GPI_UNKNOWN32);
    T_EQ(x.recovery, old ? GPI_UNKNOWN32 : GPUD_RECOVERY_RESET);
    T_EQ(x.remapped_rows, GPI_UNKNOWN32);
    x = sample(3); /* what is not available is unknown, and the reading is fine */
    T_EQ(x.reading, GPI_READ_OK);
    T_EQ(rows[3].compute_mode, GPI_UNKNOWN32);
    T_EQ(x.temperature, GPI_UNKNOWN32);
    T_EQ(x.power, GPI_UNKNOWN32);
    T_EQ(x.power_limit, GPI_UNKNOWN32);
    T_EQ(x.sm_clock, GPI_UNKNOWN32);
    T_EQ(x.throttle, GPI_UNKNOWN64);
    T_EQ(x.ecc_corrected, GPI_UNKNOWN64);
    T_EQ(x.ecc_uncorrected, GPI_UNKNOWN64);
    T_EQ(x.remapped_rows, GPI_UNKNOWN32);
    T_EQ(x.remap_pending, GPI_UNKNOWN32);
    T_EQ(x.remap_failed, GPI_UNKNOWN32);
    T_EQ(x.recovery, GPI_UNKNOWN32);
    T_EQ(x.utilization, GPI_UNKNOWN32);
    T_EQ(sample(99).reading, GPI_READ_UNKNOWN);
}

T_CASE(values_of_a_sample)
{
    T_EQ(begin(values), 4);
    check_values(false);
    end();
}

T_CASE(values_of_an_older_library)
{
    T_EQ(begin_with("libnvidia-ml-old.so", values), 4);
    check_values(true);
    end();
}

/* Each code of NVML as a reading of memory, and what a device says of itself while memory can be read. */
T_CASE(what_codes_mean)
{
    static const struct {
        int code;
        uint32_t reading;
    } codes[] = { { 15, GPI_READ_LOST },     { 28, GPI_READ_LOST },     { 11, GPI_READ_LOST },     { 8, GPI_READ_LOST },    { 16, GPI_READ_RESET },
                  { 999, GPI_READ_REVOKED }, { 4, GPI_READ_REVOKED },   { 17, GPI_READ_REVOKED },  { 9, GPI_READ_UNKNOWN }, { 18, GPI_READ_UNKNOWN },
                  { 10, GPI_READ_UNKNOWN },  { 19, GPI_READ_UNKNOWN },  { 27, GPI_READ_UNKNOWN },  { 1, GPI_READ_UNKNOWN } };
    const unsigned n = sizeof(codes) / sizeof(*codes);
    char script[2048] = "gpu 0 temperature=50\n", name[16];
    struct gpi_sample x;

    for (unsigned i = 0; i < n; i++)
        (void)snprintf(script + strlen(script), sizeof(script) - strlen(script), "when %u gpu 0 fail nvmlDeviceGetMemoryInfo_v2 %d\n", i, codes[i].code);
    (void)snprintf(script + strlen(script), sizeof(script) - strlen(script),
                   "when mended gpu 0 mend nvmlDeviceGetMemoryInfo_v2 fail nvmlDeviceGetTemperatureV 16 fail nvmlDeviceGetPowerUsage 999\n"
                   "when worse gpu 0 mend nvmlDeviceGetTemperatureV fail nvmlDeviceGetFieldValues 15\n");
    T_EQ(begin(script), 1);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "%u", i);
        touch(name);
        x = sample(0);
        T_EQ(x.reading, codes[i].reading);
        T_EQ(x.code, codes[i].code);
        T_EQ(x.memory_used, GPI_UNKNOWN64);
    }
    touch("mended");
    x = sample(0);
    T_EQ(x.reading, GPI_READ_RESET);
    T_EQ(x.code, 16);
    T_CHECK(x.memory_used != GPI_UNKNOWN64);
    touch("worse");
    x = sample(0);
    T_EQ(x.reading, GPI_READ_LOST);
    T_EQ(x.temperature, GPI_UNKNOWN32);
    end();
}

/* Where the second version of a record is not known the first is read, from then on. */
T_CASE(memory_in_its_first_form)
{
    T_EQ(begin("gpu 0 memory=10GiB used=1GiB fail nvmlDeviceGetMemoryInfo_v2 25*1\nwhen later gpu 0 fail nvmlDeviceGetMemoryInfo_v2 15"), 1);
    T_EQ(sample(0).memory_used, 1ull << 30);
    touch("later");
    T_EQ(sample(0).reading, GPI_READ_OK);
    end();
}

/* ---- who uses them ---- */

/* Processes that exist, two of them, and one that does not. */
static void users_script(char *to, size_t size, const char *first_line)
{
    (void)snprintf(to, size, "%s\ngpu 0 foreign %d 1GiB foreign %d 3GiB foreign 4194303 2GiB\n", first_line, getpid(), getppid());
}

static void check_users(uint32_t n)
{
    const struct gpi_sample x = sample(0);

    T_EQ(x.users_known, 1);
    T_EQ(x.n_users, n);
    T_EQ(x.user[0].pid, getppid());
    T_EQ(x.user[0].memory, 3ull << 30);
    T_EQ(x.user[1].pid, 0); /* not to be found here */
    T_EQ(x.user[1].memory, 2ull << 30);
    T_EQ(x.user[2].pid, getpid());
    T_EQ(x.user[2].memory, 1ull << 30);
}

T_CASE(processes)
{
    char script[512];

    users_script(script, sizeof(script), "");
    T_EQ(begin(script), 1);
    check_users(3);
    end();
}

/* More than a sample has room for: all are counted, those with most memory listed. */
T_CASE(many_processes)
{
    char path[160];
    FILE *f;

    T_EQ(mkdir("script.held", 0700), 0);
    for (unsigned i = 0; i < 30; i++) { /* this process under several names: with leading zeros */
        (void)snprintf(path, sizeof(path), "script.held/GPU-fa4e0000-0000-4000-8000-000000000000.%0*d", (int)(10 + i), (int)getpid());
        f = fopen(path, "we");
        T_CHECK(f && fprintf(f, "%u", (i * 7 % 30 + 1) << 20) > 0 && !fclose(f));
    }
    T_EQ(begin(""), 1);
    const struct gpi_sample x = sample(0);
    T_EQ(x.users_known, 1);
    T_EQ(x.n_users, 30);
    for (unsigned i = 0; i < GPI_PROCESSES_MAX; i++)
        T_EQ(x.user[i].memory, (uint64_t)(30 - i) << 20);
    for (unsigned i = 0; i < 30; i++) {
        (void)snprintf(path, sizeof(path), "script.held/GPU-fa4e0000-0000-4000-8000-000000000000.%0*d", (int)(10 + i), (int)getpid());
        T_EQ(unlink(path), 0);
    }
    T_EQ(rmdir("script.held"), 0);
    end();
}

/* Wrong entries without a word about it, as by early 535 drivers; a version from which nothing can be concluded. */
T_CASE(processes_in_32_bytes)
{
    char script[512];

    users_script(script, sizeof(script), "driver entries=32 version=550.1");
    T_EQ(begin(script), 1);
    check_users(3);
    end();
}

/* The versions known for it are asked in the second form only. */
T_CASE(processes_of_535)
{
    char script[512];

    users_script(script, sizeof(script), "driver entries=32 version=535.54.03\ndriver hang nvmlDeviceGetComputeRunningProcesses_v3 hang nvmlDeviceGetMPSComputeRunningProcesses_v3");
    T_EQ(begin(script), 1);
    check_users(3);
    end();
}

T_CASE(processes_of_an_older_library)
{
    char script[512];

    users_script(script, sizeof(script), "");
    T_EQ(begin_with("libnvidia-ml-old.so", script), 1);
    check_users(3);
    end();
}

/* Entries in which no layout makes sense say nothing. */
T_CASE(processes_that_are_nonsense)
{
    T_EQ(begin("gpu 0 foreign 0 1GiB foreign 2147483647 1GiB"), 1);
    T_EQ(sample(0).reading, GPI_READ_OK);
    T_EQ(sample(0).users_known, 0);
    T_EQ(sample(0).n_users, 0);
    end();
}

T_CASE(processes_that_are_not_told)
{
    T_EQ(begin("driver processes=hidden\ngpu 0 used=4GiB foreign 1 2GiB\nwhen many driver processes=shown\nwhen many gpu 0 fail nvmlDeviceGetComputeRunningProcesses_v3 7"), 1);
    T_EQ(sample(0).reading, GPI_READ_OK);
    T_EQ(sample(0).users_known, 0);
    T_EQ(sample(0).memory_used, 6ull << 30);
    touch("many");
    T_EQ(sample(0).users_known, 0);
    T_CMP(sample(0).n_users, >, 0);
    end();
}

static int is_back(void *user)
{
    (void)user;
    return sample(0).memory_used == 0;
}

/* Memory of a process that has died comes back when the driver gets to it. */
T_CASE(memory_comes_back_late)
{
    const pid_t pid = fork();
    char path[160];
    uint64_t died;
    FILE *f;

    if (!pid)
        for (;;)
            (void)pause();
    T_CHECK(pid > 0);
    T_EQ(mkdir("script.held", 0700), 0);
    (void)snprintf(path, sizeof(path), "script.held/GPU-fa4e0000-0000-4000-8000-000000000000.%d", (int)pid);
    f = fopen(path, "we");
    T_CHECK(f && fprintf(f, "%llu", 2ull << 30) > 0 && !fclose(f));
    T_EQ(begin("gpu 0 late=150ms"), 1);
    T_EQ(sample(0).memory_used, 2ull << 30);
    T_EQ(sample(0).user[0].pid, pid);
    T_EQ(kill(pid, SIGKILL), 0);
    T_EQ(waitpid(pid, NULL, 0), pid);
    died = gpi_now();
    T_EQ(sample(0).memory_used, 2ull << 30);
    T_EQ(sample(0).n_users, 0);
    t_wait_until("memory is back", is_back, NULL);
    T_CMP(gpi_now() - died, >=, T_MS(150));
    T_EQ(unlink(path), 0);
    T_EQ(rmdir("script.held"), 0);
    end();
}

/* ---- what happens to them ---- */

/* Whose state is told behind registration: from then on events are heard. */
#define SIGN "gpu 0 recovery=imex\n"

static void registered(void)
{
    hear(GPI_INCIDENT_RECOVERY, 0, GPUD_RECOVERY_IMEX);
}

T_CASE(xids)
{
    static const uint64_t stream[] = { 13, 31, 43, 45, 63, 79, 94, 95, 109, 119, 154 };
    char script[512] = SIGN "gpus 2\nwhen go gpu 1";

    for (unsigned i = 0; i < 11; i++)
        (void)snprintf(script + strlen(script), sizeof(script) - strlen(script), " xid %u", (unsigned)stream[i]);
    T_EQ(begin(script), 2);
    registered();
    touch("go");
    for (unsigned i = 0; i < 11; i++)
        hear(GPI_INCIDENT_XID, 1, stream[i]);
    end();
}

/* What was before we listened is found in the state of the device. */
T_CASE(state_behind_registration)
{
    T_EQ(begin("gpus 3\nwhen before gpu 1 lost\ngpu 2 recovery=reboot\ngpu 0 xid 79"), 3);
    touch("before");
    hear(GPI_INCIDENT_LOST, 1, 0);
    hear(GPI_INCIDENT_RECOVERY, 2, GPUD_RECOVERY_REBOOT);
    end();
}

T_CASE(recovery_actions)
{
    T_EQ(begin(SIGN "gpus 2\nwhen bad gpu 1 xid 62 recovery=reset\nwhen good gpu 1 recovery=none\nwhen end gpu 1 xid 154"), 2);
    registered();
    touch("bad");
    hear(GPI_INCIDENT_XID, 1, 62);
    hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_RESET);
    touch("good");
    hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_NONE);
    touch("end");
    hear(GPI_INCIDENT_XID, 1, 154); /* each was told once, though an event and a look have found it */
    end();
}

/* An XID is told before anything else is asked of that device: the question may hang. */
T_CASE(xid_of_a_device_that_hangs)
{
    T_EQ(begin(SIGN "gpus 2\nwhen go gpu 1 hang sample xid 119"), 2);
    registered();
    touch("go");
    hear(GPI_INCIDENT_XID, 1, 119);
    end();
}

/* A lost GPU makes every wait fail; the others are heard on, and it is heard again when it is back. */
T_CASE(lost_and_back)
{
    T_EQ(begin(SIGN "gpus 3\nwhen lost gpu 1 xid 79 lost\nwhen other gpu 2 xid 94\nwhen back gpu 1 back recovery=reset\nwhen again gpu 1 xid 13"), 3);
    registered();
    touch("lost");
    hear(GPI_INCIDENT_XID, 1, 79);
    hear(GPI_INCIDENT_LOST, 1, 0);
    touch("other");
    hear(GPI_INCIDENT_XID, 2, 94);
    touch("back");
    hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_RESET); /* its state, read behind registration */
    touch("again");
    hear(GPI_INCIDENT_XID, 1, 13);
    end();
}

/* The same without an XID before it: the wait itself says that somebody is lost. */
T_CASE(lost_without_an_xid)
{
    T_EQ(begin(SIGN "gpus 3\nwhen lost gpu 1 lost\nwhen other gpu 2 xid 94\nwhen back gpu 1 back recovery=reset\nwhen again gpu 1 xid 13"), 3);
    registered();
    touch("lost");
    hear(GPI_INCIDENT_LOST, 1, 0);
    touch("other");
    hear(GPI_INCIDENT_XID, 2, 94);
    touch("back");
    hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_RESET);
    touch("again");
    hear(GPI_INCIDENT_XID, 1, 13);
    end();
}

T_CASE(the_only_one_is_lost)
{
    T_EQ(begin("gpu 0 recovery=imex\nwhen lost gpu 0 lost\nwhen back gpu 0 back recovery=reset"), 1);
    registered();
    touch("lost");
    hear(GPI_INCIDENT_LOST, 0, 0);
    touch("back");
    hear(GPI_INCIDENT_RECOVERY, 0, GPUD_RECOVERY_RESET);
    end();
}

/* A device that says only that it must be reset says what would bring it back. */
T_CASE(reset_required)
{
    T_EQ(begin(SIGN "gpus 2\nwhen bad gpu 1 xid 119 needs-reset"), 2);
    registered();
    touch("bad");
    hear(GPI_INCIDENT_XID, 1, 119);
    hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_RESET);
    end();
}

/* A wait that goes on saying that somebody is lost, though all are there, is told and left. */
T_CASE(waits_that_lie)
{
    T_EQ(begin(SIGN "when lies driver fail nvmlEventSetWait_v2 15"), 1);
    registered();
    touch("lies");
    hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 15);
    T_CHECK(!nvml->await(state, &(struct gpi_incident){ 0 }));
    end();
}

T_CASE(instances)
{
    T_EQ(begin(SIGN "gpus 2\ngpu 1 mig=1g.5gb*3\nwhen one gpu 1:1 xid 13\nwhen all gpu 1 xid 62\nwhen lost gpu 1 lost"), 5);
    registered();
    touch("one");
    hear(GPI_INCIDENT_XID, 3, 13);
    touch("all");
    hear(GPI_INCIDENT_XID, 1, 62); /* of the GPU, and so of all that is on it */
    touch("lost");
    hear(GPI_INCIDENT_LOST, 1, 0);
    end();
}

T_CASE(xid_of_nobody)
{
    T_EQ(begin(SIGN "gpus 2\nwhen go driver xid 119"), 2);
    registered();
    touch("go");
    hear(GPI_INCIDENT_XID, GPI_UNKNOWN32, 119);
    end();
}

T_CASE(interrupted_waits)
{
    T_EQ(begin(SIGN "driver fail nvmlEventSetWait_v2 10*3\nwhen go gpu 0 xid 31"), 1);
    registered();
    touch("go");
    hear(GPI_INCIDENT_XID, 0, 31);
    end();
}

/* One failed wait is tried again with a new set; a second in a row is told. */
T_CASE(waits_that_fail)
{
    T_EQ(begin(SIGN "when once driver fail nvmlEventSetWait_v2 999*1\nwhen once gpu 0 recovery=reset\nwhen go gpu 0 xid 31\nwhen often driver fail nvmlEventSetWait_v2 5"), 1);
    registered();
    touch("once");
    hear(GPI_INCIDENT_RECOVERY, 0, GPUD_RECOVERY_RESET); /* behind the new registration */
    touch("go");
    hear(GPI_INCIDENT_XID, 0, 31);
    touch("often");
    hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 5);
    T_CHECK(!nvml->await(state, &(struct gpi_incident){ 0 }));
    T_CHECK(!nvml->await(state, &(struct gpi_incident){ 0 }));
    end();
}

T_CASE(devices_that_cannot_be_heard)
{
    T_EQ(begin("gpus 2\ngpu 0 fail nvmlDeviceRegisterEvents 3\nwhen go gpu 1 xid 31"), 2);
    touch("go");
    hear(GPI_INCIDENT_DEAF, 0, 3);
    end();
}

static unsigned calls(void)
{
    return *(const atomic_uint *)dlsym(library, "fake_nvml_calls");
}

static void *await_thread(void *user)
{
    hear(GPI_INCIDENT_XID, 0, 31);
    return user;
}

/* Who may not listen does not ask again and again: a GPU that answers otherwise costs nothing while nothing happens. */
T_CASE(a_deaf_device_costs_nothing)
{
    pthread_t thread;
    unsigned before;

    T_EQ(begin(SIGN "gpus 2\ngpu 1 fail nvmlDeviceRegisterEvents 4\nwhen go gpu 0 xid 31"), 2);
    hear(GPI_INCIDENT_DEAF, 1, 4);
    registered();
    before = calls();
    T_EQ(pthread_create(&thread, NULL, await_thread, NULL), 0);
    t_pass(T_MS(2500)); /* a look at who is back would have come twice */
    T_CMP(calls() - before, <=, 10); /* of this wait, and the look behind registration */
    touch("go");
    T_EQ(pthread_join(thread, NULL), 0);
    end();
}

/* A lost one is looked at, once a second, and the others are not. */
T_CASE(a_lost_device_costs_little)
{
    pthread_t thread;
    unsigned before;

    T_EQ(begin(SIGN "gpus 8\nwhen lost gpu 1 lost\nwhen go gpu 0 xid 31"), 8);
    registered();
    touch("lost");
    hear(GPI_INCIDENT_LOST, 1, 0);
    before = calls();
    T_EQ(pthread_create(&thread, NULL, await_thread, NULL), 0);
    t_pass(T_MS(2500));
    T_CMP(calls() - before, <=, 8 * 4 + 10); /* the looks behind the new registration, then a few */
    touch("go");
    T_EQ(pthread_join(thread, NULL), 0);
    end();
}

T_CASE(nobody_can_be_heard)
{
    T_EQ(begin("gpus 2\ngpu * fail nvmlDeviceGetSupportedEventTypes 3"), 2);
    hear(GPI_INCIDENT_DEAF, 0, 3);
    hear(GPI_INCIDENT_DEAF, 1, 3);
    hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 3);
    T_CHECK(!nvml->await(state, &(struct gpi_incident){ 0 }));
    end();
}

T_CASE(no_events_at_all)
{
    T_EQ(begin("gpus 1\ndriver fail nvmlEventSetCreate 13"), 1);
    hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 13);
    T_CHECK(!nvml->await(state, &(struct gpi_incident){ 0 }));
    end();
}

T_CASE(without_gpus)
{
    T_EQ(begin("gpus 0"), 0);
    T_EQ(driver.state, GPUD_DRIVER_OK);
    T_CHECK(!nvml->await(state, &(struct gpi_incident){ 0 }));
    end();
}

/* ---- hanging ---- */

static void *sample_thread(void *user)
{
    (void)sample((uint32_t)(uintptr_t)user);
    t_word_add(1);
    return NULL;
}

/* Whatever hangs, hangs alone: no lock of ours is held meanwhile. */
T_CASE(hanging_alone)
{
    pthread_t thread;

    T_EQ(begin(SIGN "gpus 2\nwhen hang gpu 1 hang nvmlDeviceGetPowerUsage hang nvmlDeviceGetFieldValues\nwhen go gpu 0 xid 31\nwhen mended driver mend nvmlDeviceGetFieldValues mend nvmlDeviceGetPowerUsage"), 2);
    registered();
    touch("hang");
    T_EQ(pthread_create(&thread, NULL, sample_thread, (void *)(uintptr_t)1), 0);
    T_EQ(t_word_wait_for(1, 1, T_MS(30)), -1);
    touch("go");
    hear(GPI_INCIDENT_XID, 0, 31);
    T_EQ(t_word(1), 0);
    touch("mended");
    T_EQ(pthread_join(thread, NULL), 0);
    T_EQ(t_word(1), 1);
    end();
}

/* All that a monitor's first thread does. */
static void *ask_all(void *user)
{
    state = nvml->open(0, NULL, 0, &driver);
    T_CHECK(state);
    T_EQ(nvml->enumerate(state, rows, GPI_GPUS_MAX, &driver), 3);
    for (uint32_t i = 0; i < 3; i++)
        T_EQ(sample(i).reading, GPI_READ_OK);
    t_word_add(1);
    return user;
}

/* Its second, up to the first that it hears. */
static void *await_sign(void *user)
{
    state = nvml->open(0, NULL, 0, &driver);
    T_CHECK(state);
    T_EQ(nvml->enumerate(state, rows, GPI_GPUS_MAX, &driver), 1);
    registered();
    t_word_add(1);
    return user;
}

/* Each call in turn does not return until it is mended; then all goes on as if nothing had been. */
static void hang_each(const char *const *calls, unsigned n, const char *base, void *(*run)(void *))
{
    char script[8192], name[16];
    pthread_t thread;

    (void)snprintf(script, sizeof(script), "%s\n", base);
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(script + strlen(script), sizeof(script) - strlen(script), "when h%u driver hang %s\nwhen m%u driver mend %s\n", i, calls[i], i, calls[i]);
    load("libnvidia-ml.so.1", script);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "h%u", i);
        touch(name);
        T_EQ(pthread_create(&thread, NULL, run, NULL), 0);
        if (!t_word_wait_for(1, i + 1, T_MS(20)))
            T_FAIL("%s is not called", calls[i]);
        (void)snprintf(name, sizeof(name), "m%u", i);
        touch(name);
        T_EQ(pthread_join(thread, NULL), 0);
        T_EQ(t_word(1), i + 1);
        asked[i] = state; /* not ended either */
    }
}

T_CASE(hanging_in_any_call)
{
    static const char *const calls[] = {
        "nvmlInit_v2", "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion", "nvmlSystemGetCudaDriverVersion_v2", "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMinorNumber",
        "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetComputeMode", "nvmlDeviceGetNumaNodeId", "nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetFieldValues", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperatureV", "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetClockInfo", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    };

    hang_each(calls, sizeof(calls) / sizeof(*calls), "gpus 2\ngpu 1 mig=1g.5gb", ask_all);
    end();
}

T_CASE(hanging_in_any_call_of_await)
{
    static const char *const calls[] = { "nvmlEventSetCreate", "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents" };

    hang_each(calls, sizeof(calls) / sizeof(*calls), SIGN, await_sign);
    end();
}
