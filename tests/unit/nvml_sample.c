/* SPDX-License-Identifier: MIT */
/* nvml_sample.c - the NVML provider's readings: how devices are, and which processes use them. */
#include "nvml_scene.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpudispatch/device.h"

/* ---- how they are ---- */

static const char values[] =
    "gpu 0 memory=80GiB used=8GiB temperature=71 power=350 power-limit=700 utilization=93 "
    "memory-utilization=41 clock=1980\n"
    "gpu 0 throttle=power-cap+sw-thermal ecc-corrected=12 ecc-uncorrected=3 remapped=5 "
    "remap-pending=yes remap-failed=yes recovery=drain-reset\n"
    "gpu 1 mig=1g.5gb temperature=66 power=120 recovery=reset remapped=1\ngpu 1:0 used=1GiB\n"
    "gpu 2 temperature=unknown power=unknown power-limit=unknown clock=unknown throttle=unknown "
    "ecc-corrected=unknown\n"
    "gpu 2 ecc-uncorrected=unknown remapped=unknown remap-pending=unknown remap-failed=unknown "
    "recovery=unknown utilization=unknown mode=unknown\n";

static void check_values(bool old)
{
    struct gpi_sample x = n_sample(0);

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
    x = n_sample(2); /* an instance: what its GPU has alone is its GPU's */
    T_EQ(x.reading, GPI_READ_OK);
    T_EQ(x.memory_used, 1ull << 30);
    T_EQ(x.memory_total, 5ull << 30);
    T_EQ(x.temperature, 66);
    T_EQ(x.power, 120000);
    T_EQ(x.utilization, GPI_UNKNOWN32);
    T_EQ(x.recovery, old ? GPI_UNKNOWN32 : GPUD_RECOVERY_RESET);
    T_EQ(x.remapped_rows, GPI_UNKNOWN32);
    x = n_sample(3); /* what is not available is unknown, and the reading is fine */
    T_EQ(x.reading, GPI_READ_OK);
    T_EQ(n_rows[3].compute_mode, GPI_UNKNOWN32);
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
    T_EQ(n_sample(99).reading, GPI_READ_UNKNOWN);
}

T_CASE(values_of_a_sample)
{
    T_EQ(n_begin(values), 4);
    check_values(false);
    n_end();
}

T_CASE(values_of_an_older_library)
{
    T_EQ(n_begin_with("libnvidia-ml-old.so", values), 4);
    check_values(true);
    n_end();
}

/* Each code of NVML as a reading of memory, and what a device says of itself while memory can be
 * read. */
T_CASE(what_codes_mean)
{
    static const struct {
        int code;
        uint32_t reading;
    } codes[] = { { 15, GPI_READ_LOST },    { 28, GPI_READ_LOST },    { 11, GPI_READ_LOST },
                  { 8, GPI_READ_LOST },     { 16, GPI_READ_RESET },   { 999, GPI_READ_REVOKED },
                  { 4, GPI_READ_REVOKED },  { 17, GPI_READ_REVOKED }, { 9, GPI_READ_UNKNOWN },
                  { 18, GPI_READ_UNKNOWN }, { 10, GPI_READ_UNKNOWN }, { 19, GPI_READ_UNKNOWN },
                  { 27, GPI_READ_UNKNOWN }, { 1, GPI_READ_UNKNOWN } };
    const unsigned n = sizeof(codes) / sizeof(*codes);
    char script[2048] = "gpu 0 temperature=50\n", name[16];
    struct gpi_sample x;

    for (unsigned i = 0; i < n; i++)
        (void)snprintf(script + strlen(script), sizeof(script) - strlen(script),
                       "when %u gpu 0 fail nvmlDeviceGetMemoryInfo_v2 %d\n", i, codes[i].code);
    (void)snprintf(
        script + strlen(script), sizeof(script) - strlen(script),
        "when mended gpu 0 mend nvmlDeviceGetMemoryInfo_v2 fail nvmlDeviceGetTemperatureV 16 fail "
        "nvmlDeviceGetPowerUsage 999\n"
        "when worse gpu 0 mend nvmlDeviceGetTemperatureV fail nvmlDeviceGetFieldValues 15\n");
    T_EQ(n_begin(script), 1);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "%u", i);
        t_trigger(name);
        x = n_sample(0);
        T_EQ(x.reading, codes[i].reading);
        T_EQ(x.code, codes[i].code);
        T_EQ(x.memory_used, GPI_UNKNOWN64);
    }
    t_trigger("mended");
    x = n_sample(0);
    T_EQ(x.reading, GPI_READ_RESET);
    T_EQ(x.code, 16);
    T_CHECK(x.memory_used != GPI_UNKNOWN64);
    t_trigger("worse");
    x = n_sample(0);
    T_EQ(x.reading, GPI_READ_LOST);
    T_EQ(x.temperature, GPI_UNKNOWN32);
    n_end();
}

/* A GPU that shares the machine's memory (GB10, Thor) has none to tell; Orin tells nothing at all
 * but who it is.  What such a one says with another call is believed, and a refusal is no fault. */
T_CASE(memory_of_the_machine)
{
    struct gpi_sample x;

    T_EQ(n_begin(
             "gpus 2\ngpu * memory=unknown\ngpu 0 temperature=35 foreign 1 4GiB\n"
             "gpu 1 temperature=unknown utilization=unknown power=unknown power-limit=unknown "
             "clock=unknown\n"
             "when odd gpu 1 fail nvmlDeviceGetTemperatureV 999 fail nvmlDeviceGetTemperature 999 "
             "fail nvmlDeviceGetUtilizationRates 4\n"
             "when reset gpu 0 fail nvmlDeviceGetTemperatureV 16 fail nvmlDeviceGetTemperature 16\n"
             "when lost gpu 1 fail nvmlDeviceGetUUID 15\n"),
         2);
    T_EQ(n_rows[0].memory_total, 0);
    x = n_sample(0);
    T_EQ(x.reading, GPI_READ_OK);
    T_EQ(x.code, 0);
    T_EQ(x.memory_total, GPI_UNKNOWN64);
    T_EQ(x.memory_used, GPI_UNKNOWN64);
    T_EQ(x.memory_free, GPI_UNKNOWN64);
    T_EQ(x.temperature, 35);
    T_EQ(x.n_users, 1);
    T_EQ(x.user[0].memory, 4ull << 30);
    T_EQ(n_sample(1).reading, GPI_READ_OK);
    t_trigger("odd");
    T_EQ(n_sample(1).reading, GPI_READ_OK);
    t_trigger("reset");
    T_EQ(n_sample(0).reading, GPI_READ_RESET);
    t_trigger("lost");
    T_EQ(n_sample(1).reading, GPI_READ_LOST);
    n_end();
}

/* Where the second version of a record is not known the first is read, from then on. */
T_CASE(memory_in_its_first_form)
{
    T_EQ(n_begin("gpu 0 memory=10GiB used=1GiB fail nvmlDeviceGetMemoryInfo_v2 25*1\nwhen later "
                 "gpu 0 fail nvmlDeviceGetMemoryInfo_v2 15"),
         1);
    T_EQ(n_sample(0).memory_used, 1ull << 30);
    t_trigger("later");
    T_EQ(n_sample(0).reading, GPI_READ_OK);
    n_end();
}

/* ---- who uses them ---- */

/* Processes that exist, two of them, and one that does not. */
static void users_script(char *to, size_t size, const char *first_line)
{
    (void)snprintf(to, size, "%s\ngpu 0 foreign %d 1GiB foreign %d 3GiB foreign 4194303 2GiB\n",
                   first_line, getpid(), getppid());
}

static void check_users(uint32_t n)
{
    const struct gpi_sample x = n_sample(0);

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
    T_EQ(n_begin(script), 1);
    check_users(3);
    n_end();
}

/* More than a sample has room for: all are counted, those with most memory listed. */
T_CASE(many_processes)
{
    char path[160];
    FILE *f;

    T_EQ(mkdir("script.held", 0700), 0);
    for (unsigned i = 0; i < 30; i++) { /* this process under several names: with leading zeros */
        (void)snprintf(path, sizeof(path),
                       "script.held/GPU-fa4e0000-0000-4000-8000-000000000000.%0*d", (int)(10 + i),
                       (int)getpid());
        f = fopen(path, "we");
        T_CHECK(f && fprintf(f, "%u", (i * 7 % 30 + 1) << 20) > 0 && !fclose(f));
    }
    T_EQ(n_begin(""), 1);
    const struct gpi_sample x = n_sample(0);
    T_EQ(x.users_known, 1);
    T_EQ(x.n_users, 30);
    for (unsigned i = 0; i < GPI_PROCESSES_MAX; i++)
        T_EQ(x.user[i].memory, (uint64_t)(30 - i) << 20);
    for (unsigned i = 0; i < 30; i++) {
        (void)snprintf(path, sizeof(path),
                       "script.held/GPU-fa4e0000-0000-4000-8000-000000000000.%0*d", (int)(10 + i),
                       (int)getpid());
        T_EQ(unlink(path), 0);
    }
    T_EQ(rmdir("script.held"), 0);
    n_end();
}

/* Wrong entries without a word about it, as by early 535 drivers; a version from which nothing can
 * be concluded. */
T_CASE(processes_in_32_bytes)
{
    char script[512];

    users_script(script, sizeof(script), "driver entries=32 version=550.1");
    T_EQ(n_begin(script), 1);
    check_users(3);
    n_end();
}

/* The versions known for it are asked in the second form only. */
T_CASE(processes_of_535)
{
    char script[512];

    users_script(
        script, sizeof(script),
        "driver entries=32 version=535.54.03\ndriver hang nvmlDeviceGetComputeRunningProcesses_v3 "
        "hang nvmlDeviceGetMPSComputeRunningProcesses_v3");
    T_EQ(n_begin(script), 1);
    check_users(3);
    n_end();
}

T_CASE(processes_of_an_older_library)
{
    char script[512];

    users_script(script, sizeof(script), "");
    T_EQ(n_begin_with("libnvidia-ml-old.so", script), 1);
    check_users(3);
    n_end();
}

/* Entries in which no layout makes sense say nothing. */
T_CASE(processes_that_are_nonsense)
{
    T_EQ(n_begin("gpu 0 foreign 0 1GiB foreign 2147483647 1GiB"), 1);
    T_EQ(n_sample(0).reading, GPI_READ_OK);
    T_EQ(n_sample(0).users_known, 0);
    T_EQ(n_sample(0).n_users, 0);
    n_end();
}

T_CASE(processes_that_are_not_told)
{
    T_EQ(n_begin("driver processes=hidden\ngpu 0 used=4GiB foreign 1 2GiB\nwhen many driver "
                 "processes=shown\nwhen many gpu 0 fail nvmlDeviceGetComputeRunningProcesses_v3 7"),
         1);
    T_EQ(n_sample(0).reading, GPI_READ_OK);
    T_EQ(n_sample(0).users_known, 0);
    T_EQ(n_sample(0).memory_used, 6ull << 30);
    t_trigger("many");
    T_EQ(n_sample(0).users_known, 0);
    T_CMP(n_sample(0).n_users, >, 0);
    n_end();
}

static int is_back(void *user)
{
    (void)user;
    return n_sample(0).memory_used == 0;
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
    (void)snprintf(path, sizeof(path), "script.held/GPU-fa4e0000-0000-4000-8000-000000000000.%d",
                   (int)pid);
    f = fopen(path, "we");
    T_CHECK(f && fprintf(f, "%llu", 2ull << 30) > 0 && !fclose(f));
    T_EQ(n_begin("gpu 0 late=1s"), 1);
    T_EQ(n_sample(0).memory_used, 2ull << 30);
    T_EQ(n_sample(0).user[0].pid, pid);
    t_kill(pid, SIGKILL);
    T_EQ(waitpid(pid, NULL, 0), pid);
    died = gpi_now();
    T_EQ(n_sample(0).memory_used, 2ull << 30);
    T_EQ(n_sample(0).n_users, 0);
    t_wait_until("memory is back", is_back, NULL);
    T_CMP(gpi_now() - died, >=, T_S(1));
    T_EQ(unlink(path), 0);
    T_EQ(rmdir("script.held"), 0);
    n_end();
}
