/* SPDX-License-Identifier: MIT */
/*
 * select.c - what the option "devices" chooses on machines with GPUs, MIG instances and fakes,
 * under CUDA_VISIBLE_DEVICES; and how what cannot be had is refused. Lists of CPU slots alone are
 * in devices.c.
 */
#include "harness.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/select.h"
#include "device/visible.h"
#include "gpudispatch/device.h"

enum { MAX = 1024 };

/* ---- machines ---- */

static const struct gpi_driver works = { .state = GPUD_DRIVER_OK, .gpus = 4 };

static struct gpi_device gpu(uint32_t index, const char *uuid, const char *pci)
{
    struct gpi_device d = { .kind = GPUD_DEVICE_GPU, .index = index, .mig_index = GPI_UNKNOWN32 };

    (void)snprintf(d.name, sizeof(d.name), "gpu:%u", index);
    (void)snprintf(d.uuid, sizeof(d.uuid), "%s", uuid);
    (void)snprintf(d.pci, sizeof(d.pci), "%s", pci);
    return d;
}

static struct gpi_device mig(uint32_t index, uint32_t instance, const char *uuid)
{
    struct gpi_device d = { .kind = GPUD_DEVICE_MIG, .index = index, .mig_index = instance };

    (void)snprintf(d.name, sizeof(d.name), "gpu:%u:%u", index, instance);
    (void)snprintf(d.uuid, sizeof(d.uuid), "%s", uuid);
    return d;
}

static struct gpi_device fake(uint32_t index, const char *uuid)
{
    struct gpi_device d = { .kind = GPUD_DEVICE_FAKE, .index = index, .mig_index = GPI_UNKNOWN32 };

    (void)snprintf(d.name, sizeof(d.name), "fake:%u", index);
    (void)snprintf(d.uuid, sizeof(d.uuid), "%s", uuid);
    return d;
}

static struct gpi_device fake_part(uint32_t index, uint32_t instance, const char *uuid)
{
    struct gpi_device d = fake(index, uuid);

    d.mig_index = instance;
    (void)snprintf(d.name, sizeof(d.name), "fake:%u:%u", index, instance);
    return d;
}

static struct gpi_device row[16];

/* Four whole GPUs. */
static struct gpi_device_field four(const char *visible)
{
    row[0] = gpu(0, "GPU-5c10aaaa-0000", "00000000:01:00.0");
    row[1] = gpu(1, "GPU-5c20bbbb-0000", "00000000:41:00.0");
    row[2] = gpu(2, "GPU-77cccccc-0000", "00000000:81:00.0");
    row[3] = gpu(3, "GPU-9ddddddd-0000", "00000000:C1:00.0");
    return (struct gpi_device_field){ .row = row, .n = 4, .driver = &works, .visible = visible };
}

/* Number 1 of three is in MIG mode, with instances 0, 1 and 5. */
static struct gpi_device_field sliced(const char *visible)
{
    row[0] = gpu(0, "GPU-5c10aaaa-0000", "00000000:01:00.0");
    row[1] = gpu(1, "GPU-5c20bbbb-0000", "00000000:41:00.0");
    row[1].mig_parts = 3;
    row[2] = mig(1, 0, "MIG-aa000000-0000");
    row[3] = mig(1, 1, "MIG-ab000000-0000");
    row[4] = mig(1, 5, "MIG-bb000000-0000");
    row[5] = gpu(2, "GPU-77cccccc-0000", "00000000:81:00.0");
    return (struct gpi_device_field){ .row = row, .n = 6, .driver = &works, .visible = visible };
}

static struct gpi_device_field fakes(void)
{
    row[0] = fake(0, "GPU-f0");
    row[1] = fake(1, "GPU-f1");
    row[2] = fake(2, "GPU-f2");
    return (struct gpi_device_field){ .row = row, .n = 3, .driver = &works };
}

/* Four GPUs: the second has 4 GiB of process 77, the third is busy. */
static struct gpi_sample sample[16];

static struct gpi_device_field in_use(void)
{
    struct gpi_device_field f = four(NULL);

    for (uint32_t i = 0; i < f.n; i++) {
        gpi_sample_unknown(&sample[i], 1);
        sample[i].memory_used = 600ull << 20;
        sample[i].users_known = 1;
        sample[i].utilization = i == 2 ? 70 : 0;
    }
    gpi_sample_add_user(&sample[1], 77, 4ull << 30);
    gpi_sample_add_user(&sample[3], 78, 1ull << 30);
    f.sample = sample;
    f.quiet = (struct gpi_quiet){ 1ull << 30, 0 };
    return f;
}

/* ---- what is chosen ---- */

/* The names, a slot each: "gpu:0 gpu:1,gpu:2". */
static const char *chosen(const struct gpi_device_field *f, uint32_t per_worker, const char *text)
{
    static char all[MAX * 8];
    struct gpud_error e = GPUD_ERROR_INIT;
    struct gpi_selection s;
    size_t at = 0;

    if (gpi_device_select(&s, text, per_worker, MAX, f, &e))
        T_FAIL("\"%s\" is refused: %s", text, e.text);
    T_EQ(s.per_worker, per_worker);
    all[0] = '\0';
    for (uint32_t i = 0; i < s.n_slots; i++) {
        char names[GPI_DEVICE_NAMES];
        gpi_selection_names(&s, i, names);
        at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s", i ? " " : "", names);
    }
    for (uint32_t i = 0; i < s.n; i++) {
        const struct gpi_selected *d = &s.device[i];
        T_EQ(d->device.kind == GPUD_DEVICE_CPU, d->place == GPI_NO_ROW);
        T_TEXT(d->device.uuid, d->place == GPI_NO_ROW ? d->device.name : f->row[d->place].uuid);
        for (uint32_t k = 0; k < i; k++)
            T_CHECK(strcmp(s.device[k].device.uuid, d->device.uuid) != 0);
    }
    gpi_selection_fini(&s);
    T_CHECK(!s.device && !s.slot && !s.n);
    return all;
}

static void refused_with(const struct gpi_device_field *f, uint32_t per_worker, const char *text,
                         const char *field, const char *wanted)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    struct gpi_selection s = { .n = 77 };

    T_EQ(gpi_device_select(&s, text, per_worker, MAX, f, &e), GPUD_EDEVICE);
    T_CHECK(!s.n && !s.device && !s.slot && !s.n_slots);
    T_EQ(e.code, GPUD_EDEVICE);
    T_TEXT(e.field, field);
    T_TEXT(e.text, wanted);
    T_EQ(gpi_device_select(&s, text, per_worker, MAX, f, NULL), GPUD_EDEVICE);
}

static void refused(const struct gpi_device_field *f, const char *text, const char *wanted)
{
    refused_with(f, 1, text, "devices", wanted);
}

T_CASE(gpus)
{
    const struct gpi_device_field f = four(NULL);

    T_TEXT(chosen(&f, 1, "all"), "gpu:0 gpu:1 gpu:2 gpu:3");
    T_TEXT(chosen(&f, 1, "all/2"), "gpu:0 gpu:0 gpu:1 gpu:1 gpu:2 gpu:2 gpu:3 gpu:3");
    T_TEXT(chosen(&f, 1, "2"), "gpu:2");
    T_TEXT(chosen(&f, 1, "gpu:2"), "gpu:2");
    T_TEXT(chosen(&f, 1, "3,0/3"), "gpu:3 gpu:0 gpu:0 gpu:0");
    T_TEXT(chosen(&f, 1, " 3 , GPU-5c1 "), "gpu:3 gpu:0");
    T_TEXT(chosen(&f, 1, "gpu:1/2,0"), "gpu:1 gpu:1 gpu:0");
    T_TEXT(chosen(&f, 1, "03"), "gpu:3");
    T_TEXT(chosen(&f, 1, "GPU-77cccccc-0000"), "gpu:2");
    T_TEXT(chosen(&f, 1, "GPU-7"), "gpu:2");
    T_TEXT(chosen(&f, 1, "GPU-77/2,GPU-5c2"), "gpu:2 gpu:2 gpu:1");
    T_TEXT(chosen(&f, 1, "gpu-77CC"), "gpu:2"); /* in any case */
    T_TEXT(chosen(&f, 2, "all"), "gpu:0,gpu:1 gpu:2,gpu:3");
    T_TEXT(chosen(&f, 2, "3,1,0,GPU-77"), "gpu:3,gpu:1 gpu:0,gpu:2");
    T_TEXT(chosen(&f, 2, "0/2,3/2"), "gpu:0,gpu:3 gpu:0,gpu:3");
}

/* A whole UUID that is also the beginning of another. */
T_CASE(whole_uuid)
{
    const struct gpi_device_field f = four("GPU-10,GPU-1");

    (void)snprintf(row[0].uuid, sizeof(row[0].uuid), "GPU-10");
    (void)snprintf(row[1].uuid, sizeof(row[1].uuid), "GPU-1");
    T_TEXT(chosen(&f, 1, "GPU-1,GPU-10"), "gpu:1 gpu:0");
    T_TEXT(chosen(&f, 1, "all"), "gpu:0 gpu:1");
}

/* CPU slots and GPUs in one list: slots of different kinds. */
T_CASE(mixed)
{
    const struct gpi_device_field f = four(NULL);

    T_TEXT(chosen(&f, 1, "cpu:2,1,cpu:1/2,0"), "cpu:0 cpu:1 gpu:1 cpu:2 cpu:2 gpu:0");
    T_TEXT(chosen(&f, 2, "cpu:2,1,0"), "cpu:0,cpu:1 gpu:1,gpu:0");
    refused_with(&f, 2, "cpu:1,0,1,cpu:1", "devices",
                 "entry 2, \"0\", selects GPUs, but its set of 2 begins with CPU slots");
    refused_with(
        &f, 2, "0,1/2", "devices",
        "entry 2, \"1/2\", has 2 workers per device, but the others in its set of 2 have 1");
    refused_with(&f, 3, "all", "devices_per_worker",
                 "the number of devices is 4, expected a multiple of 3 (devices_per_worker)");
}

/* MIG: the GPU itself runs nothing, "all" takes its instances. */
T_CASE(instances)
{
    const struct gpi_device_field f = sliced(NULL);

    T_TEXT(chosen(&f, 1, "all"), "gpu:0 gpu:1:0 gpu:1:1 gpu:1:5 gpu:2");
    T_TEXT(chosen(&f, 1, "1:0"), "gpu:1:0");
    T_TEXT(chosen(&f, 1, "gpu:1:5/2,2,1:1"), "gpu:1:5 gpu:1:5 gpu:2 gpu:1:1");
    T_TEXT(chosen(&f, 1, "MIG-b,MIG-aa"), "gpu:1:5 gpu:1:0");
    refused(
        &f, "0,1",
        "entry 2, \"1\", is in MIG mode and runs no tasks itself; its instances: 1:0, 1:1, 1:5");
    refused(&f, "GPU-5c2",
            "entry 1, \"GPU-5c2\", is in MIG mode and runs no tasks itself; its instances: 1:0, "
            "1:1, 1:5");
    refused(&f, "1:2",
            "entry 1, \"1:2\", does not exist: gpu:1 is in MIG mode and runs no tasks itself; its "
            "instances: 1:0, 1:1, 1:5");
    refused(&f, "0:0",
            "entry 1, \"0:0\", does not exist: gpu:0 is not in MIG mode and has no instances");
    refused(&f, "3:0", "entry 1, \"3:0\", does not exist: there are 3 GPUs, numbers 0 to 2");
    refused(&f, "MIG-a",
            "entry 1, \"MIG-a\", matches 2 devices: gpu:1:0 (MIG-aa00000...), gpu:1:1 "
            "(MIG-ab00000...)");
    refused(&f, "all,1:1",
            "entry 2, \"1:1\", selects gpu:1:1, which entry 1 already selects (\"/2\" after an "
            "entry makes two workers share its devices)");
    refused_with(&f, 2, "1:0,1:1", "devices",
                 "entry 1, \"1:0\", is a MIG instance, and a process can use only one: "
                 "devices_per_worker is 2");
}

/* As drivers before 470 name them. */
T_CASE(old_names_of_instances)
{
    const struct gpi_device_field f = sliced("0,MIG-GPU-5c20/1/0");

    (void)snprintf(row[2].uuid, sizeof(row[2].uuid), "MIG-GPU-5c20/1/0");
    (void)snprintf(row[3].uuid, sizeof(row[3].uuid), "MIG-GPU-5c20/2/0");
    T_TEXT(chosen(&f, 1, "MIG-GPU-5c20/1/0"), "gpu:1:0");
    T_TEXT(chosen(&f, 1, "MIG-GPU-5c20/1/0/2,0"), "gpu:1:0 gpu:1:0 gpu:0");
    T_TEXT(chosen(&f, 1, "MIG-GPU-5c20/1"), "gpu:1:0");
    T_TEXT(chosen(&f, 1, "MIG-GPU-5"), "gpu:1:0");
    refused(&f, "MIG-GPU-5c20/2/0",
            "entry 1, \"MIG-GPU-5c20/2/0\", is gpu:1:1, which CUDA_VISIBLE_DEVICES "
            "(\"0,MIG-GPU-5c20/1/0\") excludes");
    refused(&f, "MIG-GPU-5c20/1/0/x",
            "entry 1, \"MIG-GPU-5c20/1/0/x\", is not a UUID, or the beginning of one, with an "
            "optional /K from 1 to 1,024");
}

T_CASE(no_instances_yet)
{
    struct gpi_device_field f = four(NULL);

    row[2].mig_parts = GPI_UNKNOWN32;
    T_TEXT(chosen(&f, 1, "all"), "gpu:0 gpu:1 gpu:3");
    refused(&f, "2",
            "entry 1, \"2\", is in MIG mode and runs no tasks itself; it has no instances yet");
    refused(&f, "2:0",
            "entry 1, \"2:0\", does not exist: gpu:2 is in MIG mode and runs no tasks itself; it "
            "has no instances yet");
    row[0].mig_parts = GPI_UNKNOWN32;
    f.n = 1;
    refused(&f, "all",
            "entry 1, \"all\", finds no device: every GPU is in MIG mode and none has an instance");
}

/* What is there is told with what is not. */
T_CASE(not_there)
{
    struct gpi_device_field f = four(NULL);
    struct gpi_driver driver = works;

    refused(&f, "0,4", "entry 2, \"4\", does not exist: there are 4 GPUs, numbers 0 to 3");
    refused(&f, "gpu:17/2",
            "entry 1, \"gpu:17/2\", does not exist: there are 4 GPUs, numbers 0 to 3");
    refused(&f, "4294967296",
            "entry 1, \"4294967296\", does not exist: there are 4 GPUs, numbers 0 to 3");
    refused(&f, "GPU-6", "entry 1, \"GPU-6\", matches no device: there are 4 GPUs, numbers 0 to 3");
    refused(&f, "MIG-5c",
            "entry 1, \"MIG-5c\", matches no device: there are 4 GPUs, numbers 0 to 3");
    refused(
        &f, "GPU-5c",
        "entry 1, \"GPU-5c\", matches 2 devices: gpu:0 (GPU-5c10aaaa...), gpu:1 (GPU-5c20bbbb...)");
    refused(&f, "GPU-",
            "entry 1, \"GPU-\", matches 4 devices: gpu:0 (GPU-5c10aa...), gpu:1 (GPU-5c20bb...), "
            "gpu:2 (GPU-77cccc...) and more");
    driver.unreadable = 3;
    f.driver = &driver;
    f.n = 1;
    refused(&f, "1",
            "entry 1, \"1\", does not exist: there is 1 GPU, number 0 (3 more cannot be opened)");
}

/* No GPU at all: why. */
T_CASE(no_gpus)
{
    struct gpi_driver driver = { .state = GPUD_DRIVER_NOT_LOADED,
                                 .text =
                                     "the kernel module nvidia is not loaded: modprobe nvidia" };
    /* which nobody looks at then */
    struct gpi_device_field f = { .driver = &driver, .visible = "7" };

    refused(
        &f, "all",
        "entry 1, \"all\", finds no GPU: the kernel module nvidia is not loaded: modprobe nvidia");
    refused(
        &f, "cpu:2,0/2",
        "entry 2, \"0/2\", finds no GPU: the kernel module nvidia is not loaded: modprobe nvidia");
    refused(&f, "GPU-5",
            "entry 1, \"GPU-5\", finds no GPU: the kernel module nvidia is not loaded: modprobe "
            "nvidia");
    T_TEXT(chosen(&f, 1, "cpu:2"), "cpu:0 cpu:1"); /* which needs none */
    driver = (struct gpi_driver){ .state = GPUD_DRIVER_OK };
    refused(&f, "all", "entry 1, \"all\", finds no GPU: the driver has none");
    driver.gpus = driver.unreadable = 2;
    refused(&f, "all",
            "entry 1, \"all\", finds no GPU: the driver has 2, but this process cannot open any of "
            "them");
    f.driver = NULL;
    refused(&f, "all", "entry 1, \"all\", is a GPU, but no GPU was enumerated");
}

/* Each device once; a second worker there is "/2". */
T_CASE(twice)
{
    struct gpi_device_field f = four(NULL);
    const struct gpi_device here = row[1], *const present[] = { &here };

    refused(&f, "0,1,gpu:0",
            "entry 3, \"gpu:0\", selects gpu:0, which entry 1 already selects (\"/2\" after an "
            "entry makes two workers share its devices)");
    refused(&f, "0,GPU-5c1",
            "entry 2, \"GPU-5c1\", selects gpu:0, which entry 1 already selects (\"/2\" after an "
            "entry makes two workers share its devices)");
    refused(&f, "3,all",
            "entry 2, \"all\", selects gpu:3, which entry 1 already selects (\"/2\" after an entry "
            "makes two workers share its devices)");
    f.present = present;
    f.n_present = 1;
    refused(&f, "0,1",
            "entry 2, \"1\", selects gpu:1, which is already a device of this dispatcher");
    T_TEXT(chosen(&f, 1, "0,2"), "gpu:0 gpu:2");
}

T_CASE(compute_modes)
{
    struct gpi_device_field f = four(NULL);

    row[0].compute_mode = GPI_UNKNOWN32;
    row[1].compute_mode = 2;
    row[2].compute_mode = 3;
    T_TEXT(chosen(&f, 1, "0/2,2,3"), "gpu:0 gpu:0 gpu:2 gpu:3");
    refused(&f, "1",
            "entry 1, \"1\", selects gpu:1, whose compute mode is PROHIBITED: CUDA cannot use it "
            "(nvidia-smi -c 0 allows it)");
    refused(&f, "all",
            "entry 1, \"all\", selects gpu:1, whose compute mode is PROHIBITED: CUDA cannot use it "
            "(nvidia-smi -c 0 allows it)");
    refused(&f, "2/2",
            "entry 1, \"2/2\", has 2 workers on gpu:2, whose compute mode is EXCLUSIVE_PROCESS: "
            "one process at a time");
}

T_CASE(unused)
{
    struct gpi_device_field f = in_use();

    T_TEXT(chosen(&f, 1, "free"), "gpu:0 gpu:2 gpu:3");
    T_TEXT(chosen(&f, 1, "free:2"), "gpu:0 gpu:2");
    T_TEXT(chosen(&f, 1, "free:1/2"), "gpu:0 gpu:0");
    T_TEXT(chosen(&f, 1, "3,free:2"), "gpu:3 gpu:0 gpu:2");
    T_TEXT(chosen(&f, 1, "free:1,free:1"), "gpu:0 gpu:2");
    refused(&f, "free:4", "entry 1, \"free:4\", finds 3 free devices; gpu:1: 4096 MiB (pid 77)");
    f.quiet.load = 6999;
    T_TEXT(chosen(&f, 1, "free"), "gpu:0 gpu:3");
    refused(&f, "free:3", "entry 1, \"free:3\", finds 2 free devices; gpu:1: 4096 MiB (pid 77), "
                          "gpu:2: use 70 %");
    f.quiet.load = 7000;
    T_TEXT(chosen(&f, 1, "free"), "gpu:0 gpu:2 gpu:3");
    f.quiet.memory--;
    T_TEXT(chosen(&f, 1, "free"), "gpu:0 gpu:2");
    row[0].compute_mode = 2;
    refused(&f, "free:2", "entry 1, \"free:2\", finds 1 free device; gpu:0: compute mode, "
                          "gpu:1: 4096 MiB (pid 77), gpu:3: 1024 MiB (pid 78)");
    f.visible = "1";
    refused(&f, "free", "entry 1, \"free\", finds 0 free devices; gpu:1: 4096 MiB (pid 77)");
}

/* The driver lists no processes, or not their memory, or has not replied. */
T_CASE(unused_as_far_as_known)
{
    struct gpi_device_field f = in_use();

    sample[0].users_known = sample[3].users_known = 0;
    sample[0].memory_used = 2ull << 30;
    sample[2] = (struct gpi_sample){ .at = 0 };
    T_TEXT(chosen(&f, 1, "free"), "gpu:3");
    refused(&f, "free:2", "entry 1, \"free:2\", finds 1 free device; gpu:0: 2048 MiB, "
                          "gpu:1: 4096 MiB (pid 77), gpu:2: no reading");
    gpi_sample_unknown(&sample[1], 1);
    sample[1].users_known = 1;
    sample[1].memory_used = 3ull << 30;
    gpi_sample_add_user(&sample[1], 0, GPI_UNKNOWN64);
    refused(&f, "free:2", "entry 1, \"free:2\", finds 1 free device; gpu:0: 2048 MiB, "
                          "gpu:1: 3072 MiB, gpu:2: no reading");
}

T_CASE(unused_instances)
{
    struct gpi_device_field f = sliced(NULL);

    for (uint32_t i = 0; i < f.n; i++) {
        gpi_sample_unknown(&sample[i], 1);
        sample[i].users_known = 1;
    }
    gpi_sample_add_user(&sample[3], 77, 4ull << 30);
    f.sample = sample;
    f.quiet = (struct gpi_quiet){ 1ull << 30, 0 };
    T_TEXT(chosen(&f, 1, "free"), "gpu:0 gpu:1:0 gpu:1:5 gpu:2");
}

T_CASE(of_fakes)
{
    struct gpi_device_field f = fakes();

    T_TEXT(chosen(&f, 1, "fake:3"), "fake:0 fake:1 fake:2");
    T_TEXT(chosen(&f, 1, "fake:1/2,fake:2"), "fake:0 fake:0 fake:1 fake:2");
    T_TEXT(chosen(&f, 1, "fake:2,script=a/b.txt,cpu:1"), "fake:0 fake:1 cpu:0");
    T_TEXT(chosen(&f, 1, "fake:1/2,script=/x/2"), "fake:0 fake:0");
    T_TEXT(chosen(&f, 2, "fake:2"), "fake:0,fake:1");
    T_TEXT(chosen(&f, 1, "cpu:1, fake:2,script=a b.txt , fake:1"), "cpu:0 fake:0 fake:1 fake:2");
    refused(&f, "fake:3, script=x",
            "entry 2, \"script=x\", does not follow a fake:N without a script");
    refused(&f, "fake:4", "entry 1, \"fake:4\", is too many fakes, the maximum is 3");
    f.first_fake = 1;
    f.first_cpu = 4;
    T_TEXT(chosen(&f, 1, "fake:2,cpu:2"), "fake:1 fake:2 cpu:4 cpu:5");
    refused(&f, "fake:3", "entry 1, \"fake:3\", is too many fakes, the maximum is 3");
}

/* One that cannot be opened is left out, as with "all"; the others keep their numbers. */
T_CASE(fakes_left_out)
{
    struct gpi_device_field f = fakes();
    struct gpi_driver driver = { .state = GPUD_DRIVER_OK, .gpus = 4, .unreadable = 1 };

    f.driver = &driver;
    row[1] = row[2];
    row[2] = fake(3, "GPU-f3");
    T_TEXT(chosen(&f, 1, "fake:4"), "fake:0 fake:2 fake:3");
    T_TEXT(chosen(&f, 1, "fake:2,fake:2/2"), "fake:0 fake:2 fake:2 fake:3 fake:3");
    refused(&f, "fake:1,fake:1",
            "entry 2, \"fake:1\", is too many fakes, the maximum is 3 (1 more cannot be opened)");
    refused(&f, "fake:5",
            "entry 1, \"fake:5\", is too many fakes, the maximum is 3 (1 more cannot be opened)");
}

T_CASE(fakes_in_mig_mode)
{
    struct gpi_device_field f = fakes();

    row[1].mig_parts = 2;
    row[3] = row[2];
    row[2] = fake_part(1, 0, "MIG-f0");
    row[4] = row[3];
    row[3] = fake_part(1, 1, "MIG-f1");
    f.n = 5;
    T_TEXT(chosen(&f, 1, "fake:3"), "fake:0 fake:1:0 fake:1:1 fake:2");
    T_TEXT(chosen(&f, 1, "fake:1,fake:1/2"), "fake:0 fake:1:0 fake:1:0 fake:1:1 fake:1:1");
    refused_with(&f, 2, "fake:3", "devices",
                 "entry 1, \"fake:3\", is a MIG instance, and a process can use only one: "
                 "devices_per_worker is 2");
}

/* ---- CUDA_VISIBLE_DEVICES ---- */

static const char *all_of(const char *visible)
{
    const struct gpi_device_field f = four(visible);

    return chosen(&f, 1, "all");
}

/* CUDA's rules: order kept, cut at the first empty or negative entry. */
T_CASE(visible)
{
    const struct gpi_device_field f = four("2,GPU-5c2,0");

    T_TEXT(all_of("0,1,2,3"), "gpu:0 gpu:1 gpu:2 gpu:3");
    T_TEXT(all_of("3"), "gpu:3");
    T_TEXT(all_of("3,1"), "gpu:3 gpu:1");
    T_TEXT(all_of(" 3 ,\t1 "), "gpu:3 gpu:1");
    T_TEXT(all_of("0,2,-1,1"), "gpu:0 gpu:2");
    T_TEXT(all_of("0,2,,1"), "gpu:0 gpu:2");
    T_TEXT(all_of("0,2,"), "gpu:0 gpu:2");
    T_TEXT(all_of("1,-7,nonsense"), "gpu:1");
    T_TEXT(all_of("GPU-77cccccc-0000,GPU-5c1"), "gpu:2 gpu:0");
    T_TEXT(all_of("1,GPU-9"), "gpu:1 gpu:3");
    T_TEXT(chosen(&f, 1, "0,1"), "gpu:2 gpu:1"); /* indices count what it allows */
    T_TEXT(chosen(&f, 1, "gpu:2"), "gpu:0");
    T_TEXT(chosen(&f, 1, "GPU-5c2"), "gpu:1");
    refused(&f, "3",
            "entry 1, \"3\", does not exist: CUDA_VISIBLE_DEVICES allows 3, numbers 0 to 2");
    refused(&f, "GPU-9",
            "entry 1, \"GPU-9\", is gpu:3, which CUDA_VISIBLE_DEVICES (\"2,GPU-5c2,0\") excludes");
    refused(&f, "GPU-8",
            "entry 1, \"GPU-8\", matches no device: CUDA_VISIBLE_DEVICES allows 3, numbers 0 to 2");
}

/* A beginning that fits several fits the one that is allowed. */
T_CASE(visible_makes_unique)
{
    const struct gpi_device_field f = four("1");

    T_TEXT(chosen(&f, 1, "GPU-5c"), "gpu:1");
}

T_CASE(visible_none)
{
    static const char *const none[] = { "", " ", "-1", ",0", "-1,0", "-0" };

    for (size_t i = 0; i < T_LENGTH(none); i++) {
        const struct gpi_device_field f = four(none[i]);
        char wanted[128];
        (void)snprintf(wanted, sizeof(wanted),
                       "entry 2, \"all\", finds no GPU: CUDA_VISIBLE_DEVICES is \"%s\", which "
                       "allows none of 4",
                       none[i]);
        refused(&f, "cpu:1,all", wanted);
        T_TEXT(chosen(&f, 1, "cpu:1"), "cpu:0");
    }
}

/* Stricter than CUDA: what fits nothing is an error that names the variable, the entry and its
 * position. */
T_CASE(visible_bad)
{
    static const struct {
        const char *visible, *text;
    } bad[] = {
        { "NoDevFiles",
          "entry 1, \"NoDevFiles\", is neither a number nor a UUID (GPU-..., MIG-...)" },
        { "0,x", "entry 2, \"x\", is neither a number nor a UUID (GPU-..., MIG-...)" },
        { "0, 1x ", "entry 2, \"1x\", is neither a number nor a UUID (GPU-..., MIG-...)" },
        { "-", "entry 1, \"-\", is neither a number nor a UUID (GPU-..., MIG-...)" },
        { "-1x", "entry 1, \"-1x\", is neither a number nor a UUID (GPU-..., MIG-...)" },
        { "0,1,4", "entry 3, \"4\", is not a GPU of this machine, which has 4, from 0" },
        { "18446744073709551616",
          "entry 1, \"18446744073709551616\", is not a GPU of this machine, which has 4, from 0" },
        { "GPU-6", "entry 1, \"GPU-6\", matches no device of this machine" },
        { "GPU-5c", "entry 1, \"GPU-5c\", matches more than one device" },
        { "0,1,0", "entry 3, \"0\", repeats the device of an earlier entry" },
        { "0,GPU-5c1", "entry 2, \"GPU-5c1\", repeats the device of an earlier entry" },
    };

    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        const struct gpi_device_field f = four(bad[i].visible);
        char wanted[216];
        (void)snprintf(wanted, sizeof(wanted), "CUDA_VISIBLE_DEVICES, %s", bad[i].text);
        refused_with(&f, 1, "all", "CUDA_VISIBLE_DEVICES", wanted);
        T_TEXT(chosen(&f, 1, "cpu:1"), "cpu:0"); /* nobody looks at it */
    }
}

/* Its numbers count GPUs in the order of PCI addresses, whatever the order of the enumeration is.
 */
T_CASE(visible_in_pci_order)
{
    struct gpi_device_field f = four("0,3");

    (void)snprintf(row[0].pci, sizeof(row[0].pci), "00000000:c2:00.0");
    T_TEXT(chosen(&f, 1, "all"), "gpu:1 gpu:0");
    f.visible = NULL;
    T_TEXT(chosen(&f, 1, "all"), "gpu:1 gpu:2 gpu:3 gpu:0");
}

/* An instance that is named is allowed alone; a number or a GPU's UUID stands for all of its
 * instances. */
T_CASE(visible_instances)
{
    struct gpi_device_field f = sliced("MIG-bb,0");

    T_TEXT(chosen(&f, 1, "all"), "gpu:1:5 gpu:0");
    T_TEXT(chosen(&f, 1, "0"), "gpu:1:5");
    refused(&f, "MIG-aa",
            "entry 1, \"MIG-aa\", is gpu:1:0, which CUDA_VISIBLE_DEVICES (\"MIG-bb,0\") excludes");
    refused(&f, "GPU-5c2",
            "entry 1, \"GPU-5c2\", is gpu:1, which CUDA_VISIBLE_DEVICES (\"MIG-bb,0\") excludes");
    refused(&f, "0:5",
            "entry 1, \"0:5\", does not exist: number 0 of CUDA_VISIBLE_DEVICES is itself an "
            "instance, gpu:1:5");
    f.visible = "2,1";
    T_TEXT(chosen(&f, 1, "all"), "gpu:2 gpu:1:0 gpu:1:1 gpu:1:5");
    T_TEXT(chosen(&f, 1, "1:1"), "gpu:1:1");
    refused(
        &f, "1",
        "entry 1, \"1\", is in MIG mode and runs no tasks itself; its instances: 1:0, 1:1, 1:5");
    f.visible = "GPU-5c2";
    T_TEXT(chosen(&f, 1, "all"), "gpu:1:0 gpu:1:1 gpu:1:5");
    T_TEXT(chosen(&f, 1, "0:5"), "gpu:1:5");
    refused(
        &f, "0",
        "entry 1, \"0\", is in MIG mode and runs no tasks itself; its instances: 0:0, 0:1, 0:5");
    f.visible = "1,MIG-bb";
    refused_with(
        &f, 1, "all", "CUDA_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES, entry 2, \"MIG-bb\", repeats the device of an earlier entry");
}

/* Fakes do not go by it. */
T_CASE(visible_and_fakes)
{
    struct gpi_device_field f = fakes();

    f.visible = "";
    T_TEXT(chosen(&f, 1, "fake:2"), "fake:0 fake:1");
}

/* ---- what a list needs, told before ---- */

static struct gpi_device_needs needs_of(const char *text)
{
    struct gpi_device_needs needs = { .cpus = 77 };
    struct gpud_error e = GPUD_ERROR_INIT;

    if (gpi_device_needs(text, &needs, &e))
        T_FAIL("\"%s\" is refused: %s", text, e.text);
    return needs;
}

static void check_needs(const char *text, bool gpus, uint32_t cpus, uint32_t n_fakes,
                        const char *script)
{
    const struct gpi_device_needs n = needs_of(text);

    T_EQ(n.gpus, gpus);
    T_EQ(n.cpus, cpus);
    T_EQ(n.fakes, n_fakes);
    T_EQ(n.script != NULL, script != NULL);
    T_EQ(n.script_length, script ? strlen(script) : 0);
    T_CHECK(!script || strncmp(n.script, script, strlen(script)) == 0);
}

T_CASE(needs)
{
    check_needs("cpu:4,cpu:2/3", false, 6, 0, NULL);
    check_needs("all", true, 0, 0, NULL);
    check_needs("cpu:1,0", true, 1, 0, NULL);
    check_needs("gpu:0:1/2", true, 0, 0, NULL);
    check_needs("GPU-1", true, 0, 0, NULL);
    check_needs("MIG-1/3,cpu:2", true, 2, 0, NULL);
    check_needs("fake:8", false, 0, 8, NULL);
    check_needs("fake:8,script=x", false, 0, 8, "x");
    check_needs("fake:2,cpu:1,fake:3/2,script=/a/b 1,cpu:4", false, 5, 5, "/a/b 1");
    check_needs("fake:255,fake:1", false, 0, 256, NULL);
}

/* What can be refused before anything is looked at. */
T_CASE(needs_refuse)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "fake:1,0",
          "entry 2, \"0\", is a GPU in a list with fakes: one monitor cannot read both" },
        { "all,fake:1",
          "entry 2, \"fake:1\", is a fake in a list with GPUs: one monitor cannot read both" },
        { "fake:1,GPU-1",
          "entry 2, \"GPU-1\", is a GPU in a list with fakes: one monitor cannot read both" },
        { "fake:1,script=a,fake:1,script=b",
          "entry 2, \"fake:1,script=b\", has a second script, the maximum is one for all fakes" },
        { "fake:1,script=a,script=b",
          "entry 2, \"script=b\", does not follow a fake:N without a script" },
        { "cpu:1,script=a", "entry 2, \"script=a\", does not follow a fake:N without a script" },
        { "script=a", "entry 1, \"script=a\", does not follow a fake:N without a script" },
        { "fake:1,script=,cpu:1", "entry 1, \"fake:1,script=\", has no file name after script=" },
        { "fake:0", "entry 1, \"fake:0\", is not fake:N[/K][,script=FILE] with N from 1 to 256 and "
                    "K from 1 to 1,024" },
        { "fake:257", "N from 1 to 256" },
        { "fake:200,fake:57", "entry 2, \"fake:57\", is too many fakes, the maximum is 256" },
        { "fake:1/0", "K from 1 to 1,024" },
        { "fake:1x,script=a", "entry 1, \"fake:1x,script=a\", is not fake:N[/K][,script=FILE], "
                              "with /K directly after N" },
        { "0/0", "entry 1, \"0/0\", is not [gpu:]INDEX[:INSTANCE][/K] with K from 1 to 1,024" },
        { "gpu:", "entry 1, \"gpu:\", is not [gpu:]INDEX[:INSTANCE]" },
        { "gpu:x", "is not [gpu:]INDEX[:INSTANCE]" },
        { "0:", "is not [gpu:]INDEX[:INSTANCE]" },
        { "0:1:2", "is not [gpu:]INDEX[:INSTANCE]" },
        { "0:1/", "is not [gpu:]INDEX[:INSTANCE]" },
        { "7a", "is not [gpu:]INDEX[:INSTANCE]" },
        { "0/1025", "is not [gpu:]INDEX[:INSTANCE]" },
        { "GPU-1/0", "entry 1, \"GPU-1/0\", is not a UUID, or the beginning of one, with an "
                     "optional /K from 1 to 1,024" },
        { "GPU-1/2/3", "is not a UUID" },
        { "all/0", "entry 1, \"all/0\", is not one of all, free, free:N, INDEX, gpu:INDEX, "
                   "INDEX:INSTANCE, GPU-..., MIG-..., cpu:N, fake:N; each may end in /K" },
        { "free:", "entry 1, \"free:\", is not free[:N][/K] with N and K from 1 to 1,024" },
        { "free:0", "is not free[:N]" },
        { "free:1025", "is not free[:N]" },
        { "free2", "is not free[:N]" },
        { "free:2/0", "is not free[:N]" },
        { "all2", "is not one of" },
        { "ALL", "is not one of" },
        { "-1", "is not one of" },
        { "cuda:0", "is not one of" },
        { "cpu:2/x", "entry 1, \"cpu:2/x\", is not cpu:N or cpu:N/K with N and K from 1 to 1,024" },
    };

    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        struct gpi_device_needs needs = { .cpus = 77 };
        struct gpud_error e = GPUD_ERROR_INIT;
        const struct gpi_device_field f = four(NULL);

        T_EQ(gpi_device_needs(bad[i].text, &needs, &e), GPUD_EDEVICE);
        T_EQ(needs.cpus, 77);
        T_TEXT(e.field, "devices");
        if (!strstr(e.text, bad[i].words))
            T_FAIL("\"%s\": the text is \"%s\"", bad[i].text, e.text);
        refused(&f, bad[i].text, e.text); /* and so does the choice */
    }
}
