/* SPDX-License-Identifier: MIT */
/* nvml.c - the NVML provider: who the devices are, the driver's states, and that whatever hangs
 * hangs alone. */
#include "nvml_scene.h"

#include <dlfcn.h>
#include <libintl.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpudispatch/device.h"

/* ---- who they are ---- */

T_CASE(enumeration)
{
    T_EQ(n_begin("gpu * model=\"NVIDIA H100 80GB HBM3\" memory=80GiB\n"
                 "gpu 0 uuid=GPU-01234567-89ab-cdef-0123-456789abcdef pci=00000000:3B:00.0 minor=4 "
                 "mode=exclusive\n"
                 "gpu 1 mig=1g.10gb*2 cc=8.0\n"
                 "gpu 2 cuda=2\n"),
         5);
    T_EQ(n_driver.gpus, 3);
    T_EQ(n_driver.unreadable, 0);
    T_EQ(n_driver.cuda_version, 12080);
    T_TEXT(n_driver.driver_version, "570.86.15");
    T_TEXT(n_driver.nvml_version, "12.570.86.15");
    T_EQ(n_rows[0].kind, GPUD_DEVICE_GPU);
    T_TEXT(n_rows[0].name, "gpu:0");
    T_TEXT(n_rows[0].uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef");
    T_TEXT(n_rows[0].model, "NVIDIA H100 80GB HBM3");
    T_TEXT(n_rows[0].pci, "00000000:3B:00.0");
    T_EQ(n_rows[0].minor, 4);
    T_EQ(n_rows[0].compute_mode, 3);
    T_EQ(n_rows[0].compute_major, 9);
    T_EQ(n_rows[0].memory_total, 80ull << 30);
    T_EQ(n_rows[0].mig_index, GPI_UNKNOWN32);
    T_EQ(n_rows[1].mig_parts, 2);
    T_EQ(n_rows[3].kind, GPUD_DEVICE_MIG);
    T_TEXT(n_rows[3].name, "gpu:1:1");
    T_TEXT(n_rows[3].uuid, "MIG-fa4e0001-0002-4000-8000-000000000001");
    T_TEXT(n_rows[3].parent_uuid, n_rows[1].uuid);
    T_TEXT(n_rows[3].mig_profile, "1g.10gb");
    T_TEXT(n_rows[3].pci, n_rows[1].pci);
    T_EQ(n_rows[3].memory_total, 10ull << 30);
    T_EQ(n_rows[3].compute_major, 8);
    T_EQ(n_rows[3].mig_index, 1);
    T_TEXT(n_rows[4].name, "gpu:2");
    T_EQ(n_rows[4].index, 2);
    n_end();
}

/* Grace: NVML's node is the GPU's own memory, and n_end fails where it was asked for.  No bus has
 * that address. */
T_CASE(node_of_its_own_memory)
{
    T_EQ(n_begin("gpu 0 numa=2 pci=0000dead:3b:00.0 mig=1g.10gb"), 2);
    T_EQ(n_rows[0].numa_node, GPI_UNKNOWN32);
    T_EQ(n_rows[1].numa_node, GPI_UNKNOWN32);
    n_end();
}

/* Only the GPUs of a list are opened, by PCI address; they keep their numbers, and one that is not
 * there is counted. */
T_CASE(only_some_gpus)
{
    /* at a touch */
    n_load("libnvidia-ml.so.1", "gpus 4\ngpu 2 mig=1g.10gb*2\ngpu 0-1 hang enumerate");
    n_state = gpi_provider_nvml.open(0, "00000000:03:00.0 00000000:04:00.0 00000000:77:00.0", 0,
                                     &n_driver);
    T_CHECK(n_state);
    T_EQ(gpi_provider_nvml.enumerate(n_state, n_rows, GPI_GPUS_MAX, &n_driver), 4);
    T_EQ(n_driver.gpus, 3);
    T_EQ(n_driver.unreadable, 1);
    T_TEXT(n_rows[0].name, "gpu:2");
    T_TEXT(n_rows[1].name, "gpu:2:0");
    T_TEXT(n_rows[3].name, "gpu:3");
    T_EQ(n_rows[3].index, 3);
    n_end();
}

/* It runs nothing: it must not be taken for a whole GPU. */
T_CASE(mig_mode_without_instances)
{
    T_EQ(n_begin("gpus 2\ngpu 0 mig=1g.10gb*2\ngpu 0 fail nvmlDeviceGetMigDeviceHandleByIndex 6"),
         2);
    T_EQ(n_rows[0].mig_parts, GPI_UNKNOWN32);
    T_EQ(n_rows[1].mig_parts, 0);
    n_end();
}

T_CASE(mig_mode_that_cannot_be_counted)
{
    T_EQ(n_begin("gpus 1\ngpu 0 mig=1g.10gb*2\ngpu 0 fail nvmlDeviceGetMaxMigDeviceCount 999"), 1);
    T_EQ(n_rows[0].mig_parts, GPI_UNKNOWN32);
    n_end();
}

T_CASE(indices_that_cannot_be_opened)
{
    T_EQ(n_begin("gpus 4\ngpu 1 lost\ngpu 2 denied\nwhen back gpu * back\nwhen none gpu * denied"),
         2);
    T_EQ(n_driver.state, GPUD_DRIVER_OK);
    T_EQ(n_driver.gpus, 4);
    T_EQ(n_driver.unreadable, 2);
    T_TEXT(n_driver.text, "the driver works; 2 of 4 GPUs cannot be opened: number 1 is gone from "
                          "the bus (NVML 15), number 2 denies access (NVML 4)");
    T_TEXT(n_rows[0].name, "gpu:0");
    T_TEXT(n_rows[1].name, "gpu:3");
    t_trigger("back");
    T_EQ(gpi_provider_nvml.enumerate(n_state, n_rows, GPI_GPUS_MAX, &n_driver), 4);
    T_EQ(n_driver.unreadable, 0);
    T_EQ(gpi_provider_nvml.enumerate(n_state, n_rows, 3, &n_driver), 3);
    t_trigger("none");
    T_EQ(gpi_provider_nvml.enumerate(n_state, n_rows, GPI_GPUS_MAX, &n_driver), 0);
    T_EQ(n_driver.state, GPUD_DRIVER_NO_PERMISSION);
    n_end();
}

/* What is not told is left out, and what is told stands; the same answer again is no other
 * enumeration. */
T_CASE(enumeration_with_gaps)
{
    T_EQ(
        n_begin("gpus 3\ngpu 0 mig=1g.10gb+2g.20gb\n"
                "driver fail nvmlSystemGetDriverVersion 999 fail nvmlSystemGetNVMLVersion 999 fail "
                "nvmlSystemGetCudaDriverVersion_v2 999\n"
                "gpu * fail nvmlDeviceGetName 3 fail nvmlDeviceGetMinorNumber 3 fail "
                "nvmlDeviceGetPciInfo_v3 3 fail nvmlDeviceGetCudaComputeCapability 3\n"
                "gpu 0 fail nvmlDeviceGetGpuInstanceId 3 fail nvmlDeviceGetComputeInstanceId 3\n"
                "gpu 1 fail nvmlDeviceGetUUID 15\n"
                "gpu 0:0 fail nvmlDeviceGetUUID 999\nwhen mended gpu 0:0 mend nvmlDeviceGetUUID\n"),
        3);
    T_TEXT(n_driver.driver_version, "");
    T_TEXT(n_driver.nvml_version, "");
    T_EQ(n_driver.cuda_version, 0);
    T_EQ(n_driver.unreadable, 1);
    T_TEXT(n_rows[0].model, "");
    T_TEXT(n_rows[0].pci, "");
    T_EQ(n_rows[0].minor, GPI_UNKNOWN32);
    T_EQ(n_rows[0].compute_major, 0);
    T_EQ(n_rows[0].mig_parts, 1);
    T_TEXT(n_rows[1].mig_profile, "2g.20gb"); /* from what it consists of */
    T_EQ(n_rows[1].mig_index, 1);
    T_TEXT(n_rows[2].name, "gpu:2");
    T_EQ(gpi_provider_nvml.enumerate(n_state, n_rows, GPI_GPUS_MAX, &n_driver), 3);
    T_EQ(n_sample(2).reading, GPI_READ_OK);
    t_trigger("mended");
    T_EQ(gpi_provider_nvml.enumerate(n_state, n_rows, GPI_GPUS_MAX, &n_driver), 4);
    T_EQ(n_rows[0].mig_parts, 2);
    T_TEXT(n_rows[1].name, "gpu:0:0");
    T_EQ(n_sample(3).reading, GPI_READ_OK);
    n_end();
}

T_CASE(driver_states)
{
    static const struct {
        const char *file;
        uint32_t driver;
        const char *words;
    } told[] = {
        { "1", GPUD_DRIVER_NOT_LOADED, "modprobe nvidia" },
        { "2", GPUD_DRIVER_MISMATCH, "reload the module or reboot" },
        { "3", GPUD_DRIVER_NO_PERMISSION, "/dev/nvidia*" },
        { "4", GPUD_DRIVER_REVOKED, "restart the container" },
        { "5", GPUD_DRIVER_FAILED, "NVML 23" },
        { "6", GPUD_DRIVER_NO_PERMISSION, "NVML 17" },
        { "7", GPUD_DRIVER_TOO_OLD, "450 or later" },
        { "8", GPUD_DRIVER_FAILED,
          "nvmlInit: NVML 27: the system is not ready yet: start the fabric manager" },
    };

    n_load("libnvidia-ml.so.1",
           "when 1 driver state=not-loaded\nwhen 2 driver state=mismatch\nwhen 3 driver "
           "state=no-permission\nwhen 4 driver state=revoked\n"
           "when 5 driver state=failed\nwhen 6 driver fail nvmlInit_v2 17\nwhen 7 driver fail "
           "nvmlInit_v2 13\nwhen 8 driver fail nvmlInit_v2 27\n");
    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
        t_trigger(told[i].file);
        T_CHECK(!gpi_provider_nvml.open(0, NULL, 0, &n_driver));
        T_EQ(n_driver.state, told[i].driver);
        if (!strstr(n_driver.text, told[i].words))
            T_FAIL("\"%s\" in \"%s\"", told[i].words, n_driver.text);
    }
    n_end();
}

/* Counting may fail when loading did not: the driver was changed under us. */
T_CASE(driver_is_gone_later)
{
    T_EQ(n_begin("gpus 2\nwhen gone driver state=mismatch"), 2);
    t_trigger("gone");
    T_EQ(n_sample(0).reading, GPI_READ_UNKNOWN);
    T_EQ(n_sample(0).code, 18);
    T_EQ(gpi_provider_nvml.enumerate(n_state, n_rows, GPI_GPUS_MAX, &n_driver), 0);
    T_EQ(n_driver.state, GPUD_DRIVER_MISMATCH);
    n_end();
}

/* Where no module can be loaded and no package installed the text says what can be done. */
T_CASE(no_common_machine)
{
    FILE *f;

    T_CHECK(!gpi_driver_elsewhere("."));
    T_EQ(mkdir("sys", 0700) | mkdir("sys/devices", 0700) | mkdir("sys/devices/soc0", 0700) |
             mkdir("dev", 0700),
         0);
    f = fopen("sys/devices/soc0/family", "we");
    T_CHECK(f && fputs("jetson\n", f) >= 0 && !fclose(f));
    T_CHECK(!gpi_driver_elsewhere("."));
    f = fopen("sys/devices/soc0/family", "we");
    T_CHECK(f && fputs("Tegra234\n", f) >= 0 && !fclose(f));
    T_CHECK(strstr(gpi_driver_elsewhere("."), "JetPack 6"));
    f = fopen("dev/dxg", "we");
    T_CHECK(f && !fclose(f));
    T_CHECK(strstr(gpi_driver_elsewhere("."), "WSL2"));
    T_CMP(strlen(gpi_driver_elsewhere(".")), <, sizeof n_driver.text);
}

T_CASE(no_library)
{
    void *real = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    n_state = gpi_provider_nvml.open(0, NULL, 0, &n_driver);
    if (real) { /* this machine has a driver */
        (void)dlclose(real);
        T_CHECK(n_driver.state != GPUD_DRIVER_NONE);
        return;
    }
    T_CHECK(!n_state);
    T_EQ(n_driver.state, GPUD_DRIVER_NONE);
    if (!gpi_driver_elsewhere(""))
        T_CHECK(strstr(n_driver.text, "install the driver"));
}

/* A catalog that has other words for one message of libc's. */
static void write_catalog(const char *path, const char *message, const char *words)
{
    enum { HEAD = 7, TABLES = 4 };
    const uint32_t of_message = (HEAD + TABLES) * sizeof(uint32_t),
                   of_words = of_message + (uint32_t)strlen(message) + 1;
    const uint32_t head[HEAD + TABLES] = { 0x950412de,
                                           0,
                                           1,
                                           HEAD * sizeof(uint32_t),
                                           (HEAD + 2) * sizeof(uint32_t),
                                           0,
                                           0,
                                           (uint32_t)strlen(message),
                                           of_message,
                                           (uint32_t)strlen(words),
                                           of_words };
    FILE *f = fopen(path, "we");

    T_CHECK(f && fwrite(head, sizeof(head), 1, f) == 1 &&
            fprintf(f, "%s%c%s%c", message, 0, words, 0) > 0 && !fclose(f));
}

/* What a loader says is translated where the host has said setlocale: that the library is not here
 * is known all the same. */
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
    T_CHECK(bindtextdomain("libc", here) && setlocale(LC_ALL, "C.UTF-8") &&
            !setenv("LANGUAGE", "xx", 1));
    T_CHECK(!dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
    words = dlerror();
    if (!words || !strstr(words, "Datei ist nicht da"))
        t_skip("this loader is not translated: %s", words ? words : "no words");
    T_CHECK(!gpi_provider_nvml.open(0, NULL, 0, &n_driver));
    T_EQ(n_driver.state, GPUD_DRIVER_NONE);
    T_CHECK(!dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
    T_CHECK(strstr(dlerror(), "Datei ist nicht da")); /* the locale is as it was */
    T_CHECK(!unsetenv("LANGUAGE") && setlocale(LC_ALL, "C"));
}

T_CASE(library_that_is_too_old)
{
    n_load("libnvidia-ml-ancient.so", "");
    T_CHECK(!gpi_provider_nvml.open(0, NULL, 0, &n_driver));
    T_EQ(n_driver.state, GPUD_DRIVER_TOO_OLD);
    T_CHECK(strstr(n_driver.text, "its NVML has no nvmlInit_v2"));
    T_EQ(unsetenv("FAKE_SCRIPT"), 0);
}

/* ---- hanging ---- */

static void *sample_thread(void *user)
{
    (void)n_sample((uint32_t)(uintptr_t)user);
    t_word_add(1);
    return NULL;
}

/* Whatever hangs, hangs alone: no lock of ours is held meanwhile. */
T_CASE(hanging_alone)
{
    pthread_t thread;

    T_EQ(n_begin(N_SIGN "gpus 2\nwhen hang gpu 1 hang nvmlDeviceGetPowerUsage hang "
                        "nvmlDeviceGetFieldValues\nwhen go gpu 0 xid 31\nwhen mended driver mend "
                        "nvmlDeviceGetFieldValues mend nvmlDeviceGetPowerUsage"),
         2);
    n_registered();
    t_trigger("hang");
    t_thread(&thread, sample_thread, (void *)(uintptr_t)1);
    T_EQ(t_word_wait_for(1, 1, T_MS(30)), -1);
    t_trigger("go");
    n_hear(GPI_INCIDENT_XID, 0, 31);
    T_EQ(t_word(1), 0);
    t_trigger("mended");
    t_join(thread);
    T_EQ(t_word(1), 1);
    n_end();
}

/* All that a monitor's first thread does. */
static void *ask_all(void *user)
{
    n_state = gpi_provider_nvml.open(0, NULL, 0, &n_driver);
    T_CHECK(n_state);
    T_EQ(gpi_provider_nvml.enumerate(n_state, n_rows, GPI_GPUS_MAX, &n_driver), 3);
    for (uint32_t i = 0; i < 3; i++)
        T_EQ(n_sample(i).reading, GPI_READ_OK);
    t_word_add(1);
    return user;
}

/* Its second, up to the first that it hears. */
static void *await_sign(void *user)
{
    n_state = gpi_provider_nvml.open(0, NULL, 0, &n_driver);
    T_CHECK(n_state);
    T_EQ(gpi_provider_nvml.enumerate(n_state, n_rows, GPI_GPUS_MAX, &n_driver), 1);
    n_registered();
    t_word_add(1);
    return user;
}

static void *volatile kept[64]; /* states that are never ended: for who looks for leaks */

/* Each call in turn does not return until it is mended; then all goes on as if nothing had been. */
static void hang_each(const char *const *calls, unsigned n, const char *base, void *(*run)(void *))
{
    char script[8192], name[16];
    pthread_t thread;

    (void)snprintf(script, sizeof(script), "%s\n", base);
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(script + strlen(script), sizeof(script) - strlen(script),
                       "when h%u driver hang %s\nwhen m%u driver mend %s\n", i, calls[i], i,
                       calls[i]);
    n_load("libnvidia-ml.so.1", script);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "h%u", i);
        t_trigger(name);
        t_thread(&thread, run, NULL);
        if (!t_word_wait_for(1, i + 1, T_MS(20)))
            T_FAIL("%s is not called", calls[i]);
        (void)snprintf(name, sizeof(name), "m%u", i);
        t_trigger(name);
        t_join(thread);
        T_EQ(t_word(1), i + 1);
        kept[i] = n_state;
    }
}

T_CASE(hanging_in_any_call)
{
    static const char *const calls[] = {
        "nvmlInit_v2",
        "nvmlSystemGetDriverVersion",
        "nvmlSystemGetNVMLVersion",
        "nvmlSystemGetCudaDriverVersion_v2",
        "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetName",
        "nvmlDeviceGetPciInfo_v3",
        "nvmlDeviceGetMinorNumber",
        "nvmlDeviceGetCudaComputeCapability",
        "nvmlDeviceGetComputeMode",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetMigDeviceHandleByIndex",
        "nvmlDeviceGetGpuInstanceId",
        "nvmlDeviceGetComputeInstanceId",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetTotalEccErrors",
        "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    };

    hang_each(calls, sizeof(calls) / sizeof(*calls), "gpus 2\ngpu 1 mig=1g.5gb", ask_all);
    n_end();
}

T_CASE(hanging_in_any_call_of_await)
{
    static const char *const calls[] = { "nvmlEventSetCreate", "nvmlDeviceGetSupportedEventTypes",
                                         "nvmlDeviceRegisterEvents" };

    hang_each(calls, sizeof(calls) / sizeof(*calls), N_SIGN, await_sign);
    n_end();
}
