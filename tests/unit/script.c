/* SPDX-License-Identifier: MIT */
/* script.c - the script of fake devices: what it accepts, where its errors point, and what it says
 * of each moment. */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/fake/script.h"
#include "fakes/cuda_order.h"
#include "gpudispatch/device.h"

static struct gpi_script *parse(const char *text, uint32_t devices)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpi_script *s = NULL;

    if (gpi_script_parse(&s, text, devices, &error))
        T_FAIL("%s", error.text);
    return s;
}

static struct gpi_script_state state(const struct gpi_script *s, const uint64_t *fired,
                                     uint32_t row, uint64_t t)
{
    struct gpi_script_state x;

    gpi_script_state(s, fired, row, t, &x);
    return x;
}

static struct gpi_device identity(const struct gpi_script *s, uint32_t row)
{
    struct gpi_device d;

    gpi_script_identity(s, row, &d);
    return d;
}

T_CASE(no_script)
{
    struct gpi_script *s = parse(NULL, 4);
    struct gpi_script_state x = state(s, NULL, 3, T_S(9));
    const struct gpi_device d = identity(s, 3);
    struct gpi_script_cursor c = { 0, 0, 0 };
    struct gpi_incident i;
    struct gpi_script_driver driver;

    T_EQ(gpi_script_rows(s), 4);
    T_TEXT(d.name, "fake:3");
    T_TEXT(d.uuid, "GPU-fa4e0003-0000-4000-8000-000000000003");
    T_EQ(d.kind, GPUD_DEVICE_FAKE);
    T_EQ(d.memory_total, 16ull << 30);
    T_EQ(d.mig_index, GPI_UNKNOWN32);
    T_EQ(x.sample.reading, GPI_READ_OK);
    T_EQ(x.sample.memory_free, 16ull << 30);
    T_EQ(x.sample.temperature, 40);
    T_EQ(x.canary_fails, 0);
    T_CHECK(!gpi_script_incident(s, NULL, &c, GPI_NEVER, &i));
    T_EQ(gpi_script_next(s, NULL, 0), GPI_NEVER);
    gpi_script_driver(s, NULL, 0, &driver);
    T_EQ(driver.state, GPUD_DRIVER_OK);
    T_EQ(driver.cuda_version, 12080);
    T_EQ(driver.entry_size, 24);
    gpi_script_free(s);
}

T_CASE(what_a_gpu_is)
{
    struct gpi_script *s = parse("# two GPUs\n"
                                 "gpu * memory=80GiB cc=9.0 model=\"NVIDIA H100 80GB HBM3\"\r\n"
                                 "\n"
                                 "gpu 1 uuid=GPU-01234567-89ab-cdef-0123-456789abcdef "
                                 "pci=0000:3b:00.0 numa=1 minor=7 # and so on\n"
                                 "gpu 1 mig=1g.10gb*2+2g.20gb\n"
                                 "gpu 1:1 uuid=MIG-11234567-89ab-cdef-0123-456789abcdef\n"
                                 "gpu 2 cc=12.1 memory=1.5TiB mode=exclusive\n"
                                 "gpu 3 memory=unknown foreign 4321 20GiB",
                                 0);
    struct gpi_script_state now;
    struct gpi_device d = identity(s, 1);

    T_EQ(gpi_script_gpus(s), 4);
    T_EQ(gpi_script_rows(s), 7);
    T_TEXT(d.uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef");
    T_TEXT(d.model, "NVIDIA H100 80GB HBM3");
    T_TEXT(d.pci, "0000:3b:00.0");
    T_EQ(d.numa_node, 1);
    T_EQ(d.minor, 7);
    T_EQ(d.mig_parts, 3);
    T_EQ(d.memory_total, 80ull << 30);
    d = identity(s, 3);
    T_TEXT(d.name, "fake:1:1");
    T_TEXT(d.uuid, "MIG-11234567-89ab-cdef-0123-456789abcdef");
    T_TEXT(d.parent_uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef");
    T_TEXT(d.mig_profile, "1g.10gb");
    T_EQ(d.mig_index, 1);
    T_EQ(d.index, 1);
    T_EQ(d.memory_total, 10ull << 30);
    d = identity(s, 4);
    T_TEXT(d.mig_profile, "2g.20gb");
    T_TEXT(d.uuid, "MIG-fa4e0001-0003-4000-8000-000000000001");
    d = identity(s, 5);
    T_TEXT(d.name, "fake:2");
    T_EQ(d.compute_major, 12);
    T_EQ(d.compute_minor, 1);
    T_EQ(d.compute_mode, 3);
    T_EQ(d.memory_total, 3ull << 39);
    T_EQ(identity(s, 6).memory_total, 0);
    gpi_script_state(s, NULL, 6, 0, &now);
    T_EQ(now.sample.memory_total, GPI_UNKNOWN64);
    T_EQ(now.sample.memory_used, GPI_UNKNOWN64);
    T_EQ(now.sample.memory_free, GPI_UNKNOWN64);
    T_EQ(now.sample.user[0].memory, 20ull << 30);
    for (uint32_t row = 0; row < 6; row++)
        T_EQ(gpi_script_row(s, identity(s, row).index, identity(s, row).mig_index), row);
    T_EQ(gpi_script_row(s, 1, 3), GPI_UNKNOWN32);
    T_EQ(gpi_script_row(s, 4, GPI_UNKNOWN32), GPI_UNKNOWN32);
    gpi_script_free(s);
}

T_CASE(cuda_has_an_order_of_its_own)
{
    struct gpi_script *s = parse("gpu 0 cuda=2\ngpu 3 cuda=0", 4);
    static const uint32_t order[] = { 3, 1, 0, 2 };

    for (uint32_t i = 0; i < 4; i++)
        T_EQ(fake_cuda_gpu(s, i), order[i]);
    T_EQ(fake_cuda_gpu(s, 4), GPI_UNKNOWN32);
    gpi_script_free(s);
}

T_CASE(errors_say_where)
{
    static const struct {
        const char *text;
        uint32_t devices;
        const char *words;
    } bad[] = {
        { "\n  gpux 1", 0,
          "line 2, column 3: expected at, when, gpu, gpus or driver, found \"gpux\"" },
        { "gpu", 2,
          "line 1, column 4: expected a GPU from 0 to 1, such as 0, 0-3, 1:0 or *, found the "
          "line's end" },
        { "gpu 2 lost", 2,
          "line 1, column 5: expected a GPU from 0 to 1, such as 0, 0-3, 1:0 or *, found \"2\"" },
        { "gpu 3-1 lost", 0,
          "line 1, column 5: expected a GPU from 0 to 255, such as 0, 0-3, 1:0 or *, found "
          "\"3-1\"" },
        { "gpu 0", 0, "line 1, column 6: expected a word about it, found the line's end" },
        { "gpu 0 # lost", 0, "line 1, column 7: expected a word about it, found the line's end" },
        { "gpu 0 memory=80", 0,
          "line 1, column 14: expected a size such as 80GiB, or unknown, found \"80\"" },
        { "gpu 0 memory=80GB", 0,
          "line 1, column 14: expected a size such as 80GiB, or unknown, found \"80GB\"" },
        { "gpu 0 used=101%", 0,
          "line 1, column 12: expected a size such as 20GiB, or a percentage such as 90%, found "
          "\"101%\"" },
        { "gpu 0 temp=80", 0,
          "line 1, column 7: expected a KEY of a GPU, such as memory or temperature, found "
          "\"temp=80\"" },
        { "gpu 0 temperature=80C", 0,
          "line 1, column 19: expected a number or unknown, found \"80C\"" },
        { "gpu 0 recovery=reset-gpu", 0,
          "line 1, column 16: expected none, reset, reboot, drain-p2p, drain-reset, imex, "
          "bus-reset, system-reboot, a number or unknown, found \"reset-gpu\"" },
        { "at 5 gpu 0 lost", 0, "line 1, column 4: expected a time such as 50ms, found \"5\"" },
        { "at 99999999999h gpu 0 lost", 0,
          "line 1, column 4: expected a time such as 50ms, found \"99999999999h\"" },
        { "at 5s gpus 3", 0, "line 1, column 7: expected gpu or driver, found \"gpus\"" },
        { "at 5s gpu 0 memory=1GiB", 0,
          "line 1, column 13: expected a setting that can change after at or when, found "
          "\"memory=1GiB\"" },
        { "when", 0, "line 1, column 5: expected the name of a file, found the line's end" },
        { "gpu 0 model=\"\"", 0,
          "line 1, column 13: expected a text of 1 to 95 bytes, found the line's end" },
        { "gpu 0 \"\"", 0, "line 1, column 7: expected a word, found \"an empty one\"" },
        { "gpu 0 explodes", 0,
          "line 1, column 7: expected KEY=VALUE, xid, lost, needs-reset, revoked, denied, back, "
          "foreign, gone, hang, slow, fail or mend, found \"explodes\"" },
        { "gpu 0 boot=1.1234567s", 0,
          "line 1, column 12: expected a time such as 50ms, found \"1.1234567s\"" },
        { "gpu 0:9 lost", 0,
          "line 1, column 5: expected an instance from 0 to 6, such as 1:0, found \"0:9\"" },
        { "gpu 0:1 numa=0\ngpu 0 mig=1g.5gb*2", 0,
          "line 1, column 9: expected mig= for the GPU in a line above, found \"numa=0\"" },
        { "gpu 0 mig=1g.5gb*2\ngpu 0:1 numa=0", 0,
          "line 2, column 14: expected for an instance only uuid=MIG-... with 8-4-4-4-12 "
          "hexadecimal digits, found \"0\"" },
        { "gpu 1 uuid=GPU-FA4E0000-0000-4000-8000-000000000000", 0,
          "line 1: GPU 1 and GPU 0 have the same UUID, expected different ones" },
        { "gpus 200\ngpu 0-199 mig=1g.5gb", 0,
          "the number of GPUs and instances is 400, the maximum is 256" },
        { "driver vers=1", 0,
          "line 1, column 8: expected state=, version=, nvml=, cuda=, processes= or entries=, "
          "found \"vers=1\"" },
        { "driver version=", 0,
          "line 1, column 16: expected a text of 1 to 79 bytes, found the line's end" },
        { "driver cuda=12", 0, "line 1, column 13: expected a version such as 12.8, found \"12\"" },
        { "driver entries=16", 0, "line 1, column 16: expected 24 or 32, found \"16\"" },
        { "gpu 0 xid", 0,
          "line 1, column 10: expected the number of an XID, found the line's end" },
        { "gpu 0 foreign 7 1GiB +1GiB", 0,
          "line 1, column 22: expected a growth such as +1GiB/s, found \"+1GiB\"" },
        { "gpu 0 hang smaple", 0,
          "line 1, column 12: expected open, enumerate, sample, await, kernel, or a function of "
          "NVML or CUDA, found \"smaple\"" },
        { "gpu 0 fail sample 0", 0,
          "line 1, column 19: expected an error's number from 1, as in 999 or 999*2, found \"0\"" },
        { "gpu 0 canary=fail*0", 0,
          "line 1, column 14: expected ok, fail or fail*N, found \"fail*0\"" },
        { "gpu 0 canary=ok*2", 0,
          "line 1, column 14: expected ok, fail or fail*N, found \"ok*2\"" },
        { "gpu 0 model=\"x", 0,
          "line 1, column 7: expected a \" at the word's end, found \"model=x\"" },
        { "gpu 0 lost \x01", 0, "line 1, column 12: expected text, found \"a control character\"" },
        { "gpu 0-1 uuid=GPU-01234567-89ab-cdef-0123-456789abcdef", 0,
          "line 1, column 9: expected one GPU: this word must differ between GPUs, found "
          "\"uuid=GPU-01234567-89ab-cdef-0123-456789a\"" },
        { "gpu 0 uuid=GPU-1", 0,
          "line 1, column 12: expected GPU- or MIG- and 8-4-4-4-12 hexadecimal digits, found "
          "\"GPU-1\"" },
        { "gpu 0 mig=1g.10gb*8", 0,
          "line 1, column 11: expected at most 7 instances such as 1g.10gb*2+2g.20gb, found "
          "\"1g.10gb*8\"" },
        { "gpu 1:0 lost", 0, "line 1, column 9: GPU 1 has no instance 0: expected mig= for it" },
        { "gpu 0 cuda=1\n\ngpu 1 cuda=1", 0,
          "line 3: GPU 1 and GPU 0 have the same cuda= number, expected different ones" },
        { "gpu 0 pci=00000000:02:00.0", 2,
          "line 1: GPU 1 and GPU 0 have the same PCI address, expected different ones" },
        { "gpu 0 cuda=2", 2, "line 1: cuda=2 with 2 GPUs, expected a smaller number" },
        { "gpus 2\ngpu 2 lost", 0, "GPU 2 is not one of the 2 GPUs that \"gpus\" sets" },
        { "driver lost", 0,
          "line 1, column 8: expected KEY=VALUE, xid, deaf, hang, slow, fail or mend, found "
          "\"lost\"" },
        { "driver state=gone", 0,
          "line 1, column 14: expected ok, none, not-loaded, mismatch, too-old, no-permission, "
          "revoked, hung or failed, found \"gone\"" },
        { "at 1s driver version=1", 0,
          "line 1, column 14: expected a setting that can change after at or when, found "
          "\"version=1\"" },
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct gpud_error error = GPUD_ERROR_INIT;
        struct gpi_script *s = NULL;
        T_EQ(gpi_script_parse(&s, bad[i].text, bad[i].devices, &error), GPUD_EDEVICE);
        T_CHECK(!s);
        T_TEXT(error.text, bad[i].words);
        T_TEXT(error.field, "script");
    }
}

T_CASE(limits)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpi_script *s = NULL;
    char text[8192] = "gpu 0 model=";

    memset(text + strlen(text), 'x', 300);
    T_EQ(gpi_script_parse(&s, text, 1, &error), GPUD_EDEVICE);
    T_CHECK(
        strstr(error.text,
               "line 1, column 7: expected a word, the maximum is 255 bytes, found \"model=xxx"));
    text[0] = '\0';
    for (unsigned i = 0; i <= GPI_SCRIPT_TRIGGERS_MAX; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "when file%u gpu 0 lost\n",
                       i);
    T_EQ(gpi_script_parse(&s, text, 1, &error), GPUD_EDEVICE);
    T_TEXT(error.text, "line 65: the maximum is 64 files after when");
    T_EQ(gpi_script_parse(&s, "", GPI_GPUS_MAX + 1, &error), GPUD_EDEVICE);
    T_TEXT(error.text, "the number of fake devices is 257, the maximum is 256");
    T_CHECK(!s);
}

T_CASE(the_later_line_counts)
{
    struct gpi_script *s =
        parse("at 2s gpu 0 temperature=90 utilization=100\n"
              "gpu * temperature=50 power=200 clock=unknown throttle=idle+hw-thermal\n"
              "at 2s gpu 0 temperature=91\n"
              "at 3s gpu 1 remap-pending=yes recovery=drain-reset\n"
              "at 1s gpu 0 used=50%\n",
              2);
    struct gpi_sample x = state(s, NULL, 0, T_S(2) - 1).sample;

    T_EQ(x.temperature, 50);
    T_EQ(x.utilization, 0);
    T_EQ(x.power, 200000);
    T_EQ(x.sm_clock, GPI_UNKNOWN32);
    T_EQ(x.throttle, GPUD_THROTTLE_IDLE | GPUD_THROTTLE_HW_THERMAL);
    T_EQ(x.memory_used, 8ull << 30);
    x = state(s, NULL, 0, T_S(2)).sample;
    T_EQ(x.temperature, 91);
    T_EQ(x.utilization, 100);
    x = state(s, NULL, 1, T_S(3)).sample;
    T_EQ(x.temperature, 50);
    T_EQ(x.remap_pending, 1);
    T_EQ(x.recovery, GPUD_RECOVERY_DRAIN_RESET);
    T_EQ(gpi_script_next(s, NULL, 0), T_S(1));
    T_EQ(gpi_script_next(s, NULL, T_S(2)), T_S(3));
    T_EQ(gpi_script_next(s, NULL, T_S(3)), GPI_NEVER);
    gpi_script_free(s);
}

T_CASE(access_comes_and_goes)
{
    struct gpi_script *s = parse("gpu 0 denied\nat 1s gpu 0 back\nat 2s gpu 0 needs-reset\nat 3s "
                                 "gpu 0 lost\nat 4s gpu 0 revoked\nat 5s gpu 0 back",
                                 1);
    static const struct {
        uint32_t access, reading, code;
    } wanted[] = {
        { GPI_ACCESS_DENIED, GPI_READ_UNKNOWN, 4 },    { GPI_ACCESS_OK, GPI_READ_OK, 0 },
        { GPI_ACCESS_RESET, GPI_READ_RESET, 16 },      { GPI_ACCESS_LOST, GPI_READ_LOST, 15 },
        { GPI_ACCESS_REVOKED, GPI_READ_REVOKED, 999 }, { GPI_ACCESS_OK, GPI_READ_OK, 0 }
    };

    for (unsigned i = 0; i < 6; i++) {
        const struct gpi_script_state x = state(s, NULL, 0, T_S(i));
        T_EQ(x.access, wanted[i].access);
        T_EQ(x.sample.reading, wanted[i].reading);
        T_EQ(x.sample.code, wanted[i].code);
    }
    gpi_script_free(s);
}

T_CASE(memory_of_others)
{
    struct gpi_script *s = parse("gpu 0 used=1GiB\n"
                                 "at 1s gpu 0 foreign 100 2GiB +1GiB/s foreign 200 3GiB\n"
                                 "at 4s gpu 0 gone 200\n"
                                 "at 5s gpu 0 foreign 100 512MiB\n",
                                 1);
    struct gpi_sample x = state(s, NULL, 0, T_S(1)).sample;

    T_EQ(x.n_users, 2);
    T_EQ(x.user[0].pid, 200);
    T_EQ(x.user[1].memory, 2ull << 30);
    T_EQ(x.memory_used, 6ull << 30);
    x = state(s, NULL, 0, T_MS(3500)).sample;
    T_EQ(x.user[0].pid, 100);
    T_EQ(x.user[0].memory, 9ull << 29);
    T_EQ(x.memory_used + x.memory_free, 16ull << 30);
    x = state(s, NULL, 0, T_S(4)).sample;
    T_EQ(x.n_users, 1);
    T_EQ(x.memory_used, 6ull << 30);
    x = state(s, NULL, 0, T_S(900)).sample;
    T_EQ(x.user[0].memory, 1ull << 29);
    gpi_script_free(s);
}

T_CASE(more_processes_than_are_listed)
{
    char text[4096] = "";
    struct gpi_script *s;
    struct gpi_sample x;

    for (unsigned i = 1; i <= 40; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "gpu 0 foreign %u %uMiB\n",
                       i, (i * 7) % 41);
    s = parse(text, 1);
    x = state(s, NULL, 0, 0).sample;
    T_EQ(x.n_users, 40);
    for (unsigned i = 0; i < GPI_PROCESSES_MAX; i++)
        T_EQ(x.user[i].memory, (uint64_t)(40 - i) << 20);
    T_EQ(x.memory_used, (uint64_t)(40 * 41 / 2) << 20);
    gpi_script_free(s);
}

T_CASE(what_a_gpu_shares_with_its_instances)
{
    struct gpi_script *s = parse(
        "gpu 0 mig=1g.5gb*2 used=10GiB foreign 9 1GiB temperature=77 lost\ngpu 0:1 used=100% back",
        1);
    struct gpi_script_state x = state(s, NULL, 1, 0);

    T_EQ(x.access, GPI_ACCESS_LOST);
    T_EQ(x.sample.temperature, 77);
    T_EQ(x.sample.memory_used, 0);
    T_EQ(x.sample.n_users, 0);
    T_EQ(x.sample.memory_total, 5ull << 30);
    x = state(s, NULL, 2, 0);
    T_EQ(x.access, GPI_ACCESS_OK);
    T_EQ(x.sample.memory_free, 0);
    gpi_script_free(s);
}

static void hear(const struct gpi_script *s, const uint64_t *fired, struct gpi_script_cursor *c,
                 uint64_t until, uint32_t kind, uint32_t device, uint64_t number, uint64_t at)
{
    struct gpi_incident i;

    T_CHECK(gpi_script_incident(s, fired, c, until, &i));
    T_EQ(i.kind, kind);
    T_EQ(i.device, device);
    T_EQ(i.number, number);
    T_EQ(i.at, at);
}

T_CASE(incidents_in_order_of_time)
{
    struct gpi_script *s = parse("at 2s gpu 1-2 xid 79 lost\n"
                                 "at 1s gpu 0 recovery=reset xid 62\n"
                                 "gpu 1 mig=1g.5gb\n"
                                 "at 2s gpu 1:0 xid 13\n"
                                 "at 3s driver xid 119 deaf\n"
                                 "gpu 0 lost recovery=reboot temperature=1\n",
                                 3);
    struct gpi_script_cursor c = { 0, 0, 0 };
    struct gpi_incident i;

    T_CHECK(!gpi_script_incident(s, NULL, &c, T_S(1), &i));
    hear(s, NULL, &c, T_S(2), GPI_INCIDENT_RECOVERY, 0, GPUD_RECOVERY_RESET, T_S(1));
    hear(s, NULL, &c, T_S(2), GPI_INCIDENT_XID, 0, 62, T_S(1));
    T_CHECK(!gpi_script_incident(s, NULL, &c, T_S(2), &i));
    hear(s, NULL, &c, T_S(9), GPI_INCIDENT_XID, 1, 79, T_S(2));
    hear(s, NULL, &c, T_S(9), GPI_INCIDENT_XID, 3, 79, T_S(2));
    hear(s, NULL, &c, T_S(9), GPI_INCIDENT_LOST, 1, 0, T_S(2));
    hear(s, NULL, &c, T_S(9), GPI_INCIDENT_LOST, 3, 0, T_S(2));
    hear(s, NULL, &c, T_S(9), GPI_INCIDENT_XID, 2, 13, T_S(2));
    hear(s, NULL, &c, T_S(9), GPI_INCIDENT_XID, GPI_UNKNOWN32, 119, T_S(3));
    hear(s, NULL, &c, T_S(9), GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 999, T_S(3));
    T_CHECK(!gpi_script_incident(s, NULL, &c, T_S(9), &i));
    gpi_script_free(s);
}

/* A file is seen by look, once, and its lines hold from then on. */
T_CASE(files_are_waited_for)
{
    struct gpi_script *s = parse("when \"a file\" gpu 0 xid 94 temperature=80\n"
                                 "when other after 2s gpu 0 lost\n"
                                 "when \"a file\" after 1s gpu 0 temperature=60\n",
                                 1);
    uint64_t fired[2] = { GPI_NEVER, GPI_NEVER };
    struct gpi_script_cursor c = { 0, 0, 0 };
    struct gpi_incident i;

    T_EQ(gpi_script_triggers(s), 2);
    T_CHECK(!gpi_script_look(s, fired, T_S(1)));
    T_EQ(state(s, fired, 0, T_S(99)).sample.temperature, 40);
    T_CHECK(!gpi_script_incident(s, fired, &c, T_S(3), &i));
    T_CHECK(close(open("a file", O_CREAT | O_WRONLY, 0600)) == 0);
    T_CHECK(gpi_script_look(s, fired, T_S(3)));
    T_CHECK(!gpi_script_look(s, fired, T_S(4)));
    T_CHECK(unlink("a file") == 0);
    T_CHECK(!gpi_script_look(s, fired, T_S(5)));
    T_EQ(fired[0], T_S(3));
    T_EQ(fired[1], GPI_NEVER);
    T_EQ(gpi_script_next(s, fired, T_S(3)), T_S(4));
    T_EQ(state(s, fired, 0, T_S(3)).sample.temperature, 80);
    T_EQ(state(s, fired, 0, T_S(4)).sample.temperature, 60);
    hear(s, fired, &c, T_S(9), GPI_INCIDENT_XID, 0, 94, T_S(3));
    T_CHECK(!gpi_script_incident(s, fired, &c, T_S(9), &i));
    fired[1] = T_S(9);
    hear(s, fired, &c, T_S(12), GPI_INCIDENT_LOST, 0, 0, T_S(11));
    gpi_script_free(s);
}

T_CASE(canaries_are_counted_anew)
{
    struct gpi_script *s = parse("gpu 0 canary=fail*2\nat 1s gpu 0 canary=ok\nat 2s gpu 0 "
                                 "canary=fail*2\nat 3s gpu 0 canary=fail",
                                 1);
    struct gpi_script_canary c = { 0, 0 };
    static const struct {
        uint64_t at;
        bool fails;
    } tries[] = { { 0, true },      { T_MS(500), true }, { T_MS(999), false }, { T_S(1), false },
                  { T_S(2), true }, { T_S(2), true },    { T_S(2), false },    { T_S(3), true },
                  { T_S(4), true }, { T_S(5), true } };

    for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
        const struct gpi_script_state x = state(s, NULL, 0, tries[i].at);
        T_EQ(gpi_script_canary_fails(&c, &x), tries[i].fails);
    }
    gpi_script_free(s);
}

T_CASE(calls_hang_fail_and_are_mended)
{
    struct gpi_script *s = parse("gpu 1 hang sample slow nvmlDeviceGetUUID 5ms\n"
                                 "at 1s gpu 1 mend sample fail nvmlDeviceGetMemoryInfo 999*3\n"
                                 "at 2s driver hang nvmlDeviceGetMemoryInfo hang open\n"
                                 "at 3s driver mend nvmlDeviceGetMemoryInfo\n"
                                 "gpu 0 fail kernel 700",
                                 2);
    struct gpi_script_call c;

    gpi_script_call(s, NULL, 1, "nvmlDeviceGetMemoryInfo", GPI_SCRIPT_SAMPLE, 0, &c);
    T_CHECK(c.hangs && !c.code);
    gpi_script_call(s, NULL, 0, "nvmlDeviceGetMemoryInfo", GPI_SCRIPT_SAMPLE, 0, &c);
    T_CHECK(!c.hangs);
    gpi_script_call(s, NULL, 1, "nvmlDeviceGetUUID", NULL, 0, &c);
    T_CHECK(!c.hangs && c.delay == T_MS(5));
    gpi_script_call(s, NULL, 1, "nvmlDeviceGetMemoryInfo", GPI_SCRIPT_SAMPLE, T_S(1), &c);
    T_CHECK(!c.hangs && c.code == 999 && c.times == 3 && c.turn);
    gpi_script_call(s, NULL, 0, "nvmlDeviceGetMemoryInfo", GPI_SCRIPT_SAMPLE, T_S(2), &c);
    T_CHECK(c.hangs && !c.code);
    gpi_script_call(s, NULL, 1, "nvmlDeviceGetMemoryInfo", GPI_SCRIPT_SAMPLE, T_S(3), &c);
    T_CHECK(!c.hangs && !c.code);
    gpi_script_call(s, NULL, GPI_UNKNOWN32, "nvmlInit_v2", GPI_SCRIPT_OPEN, T_S(2), &c);
    T_CHECK(c.hangs);
    gpi_script_call(s, NULL, GPI_UNKNOWN32, "kernel", NULL, T_S(2), &c);
    T_CHECK(!c.code);
    gpi_script_call(s, NULL, 0, "kernel", NULL, T_S(2), &c);
    T_CHECK(c.code == 700 && c.times == UINT32_MAX);
    gpi_script_free(s);
}

T_CASE(the_driver)
{
    struct gpi_script *s =
        parse("driver version=535.54.03 nvml=\"12.535 x\" cuda=12.2 entries=32 "
              "processes=hidden\nat 1s driver state=mismatch processes=shown\nat 2s driver deaf",
              1);
    struct gpi_script_driver d;

    gpi_script_driver(s, NULL, 0, &d);
    T_TEXT(d.version, "535.54.03");
    T_TEXT(d.nvml_version, "12.535 x");
    T_EQ(d.cuda_version, 12020);
    T_EQ(d.entry_size, 32);
    T_CHECK(d.hides_processes && !d.deaf && d.state == GPUD_DRIVER_OK);
    gpi_script_driver(s, NULL, T_S(2), &d);
    T_CHECK(!d.hides_processes && d.deaf && d.state == GPUD_DRIVER_MISMATCH);
    gpi_script_free(s);
}

/* The number of devices is the caller's where it gives one, else the script's. */
T_CASE(how_many)
{
    static const struct {
        const char *text;
        uint32_t devices, gpus;
    } cases[] = { { "", 0, 0 },           { "gpus 5", 0, 5 },
                  { "gpu 3 lost", 0, 4 }, { "gpus 5\ngpu 3 lost", 0, 5 },
                  { "gpu 1 lost", 8, 8 }, { "gpu * lost", 256, 256 } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gpi_script *s = parse(cases[i].text, cases[i].devices);
        T_EQ(gpi_script_gpus(s), cases[i].gpus);
        gpi_script_free(s);
    }
}
