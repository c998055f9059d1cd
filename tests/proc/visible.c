/* SPDX-License-Identifier: MIT */
/*
 * visible.c - what workers find in CUDA_VISIBLE_DEVICES: option visible, on GPUs of the fake
 * libnvidia-ml.so.1 and libcuda.so.1 (the file `machine`, to which this program's rpath leads),
 * which the driver lists in the folder `driver/gpus` (tests/directory.c).
 */
#include "kernel.h"
#include "pooled.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TELL, DIE, FAULT };
/* as the fakes are named without a line of their own */
#define UUID(n) "GPU-fa4e000" n "-0000-4000-8000-00000000000" n
#define MIG(n, i) "MIG-fa4e000" n "-000" i "-4000-8000-00000000000" n

static const char *of(const char *variable)
{
    const char *value = getenv(variable);

    return value ? value : "none";
}

/* "visible|order|UUIDs" */
static int process(gpud_task *t, void *state)
{
    char text[1024];

    (void)state;
    if (gpud_task_tag(t) == DIE)
        (void)raise(SIGKILL);
    if (gpud_task_tag(t) == FAULT)
        t_launch("fails_719", NULL);
    (void)snprintf(text, sizeof(text), "%s|%s|%s", of("CUDA_VISIBLE_DEVICES"),
                   of("CUDA_DEVICE_ORDER"), of("GPUD_DEVICE_UUIDS"));
    return gpud_task_result_set(t, text, strlen(text) + 1);
}

/* ---- the machine ---- */

static void list(const char *pci)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "driver/gpus/%s", pci);
    T_EQ(mkdir(path, 0700), 0);
}

static void unlist(const char *pci)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "driver/gpus/%s", pci);
    T_EQ(rmdir(path), 0);
}

/* What NVML and CUDA find.  A worker that is executed comes by here, too: what the host has laid
 * out is there. */
static void machine(const char *script)
{
    char path[1100];

    if (!getenv("GPUD_WORKER")) {
        (void)unsetenv("CUDA_VISIBLE_DEVICES");
        (void)unsetenv("CUDA_MPS_PIPE_DIRECTORY");
        T_CHECK(getcwd(path, 1024));
        strcat(path, "/machine");
        t_write_script(path, script);
        T_EQ(setenv("FAKE_SCRIPT", path, 1), 0);
        (void)mkdir("driver", 0700);
        (void)mkdir("driver/gpus", 0700);
    }
    t_init(NULL, process, NULL);
}

/* Three GPUs, in the driver's list, too. */
static void three(void)
{
    if (!getenv("GPUD_WORKER")) {
        (void)mkdir("driver", 0700);
        (void)mkdir("driver/gpus", 0700);
        list("0000:01:00.0");
        list("0000:02:00.0");
        list("0000:03:00.0");
    }
    machine("gpus 3\nwhen gone gpu 0 lost\n");
}

static void end(gpud_dispatcher **d, struct t_log *log)
{
    t_destroy(d, log);
    memset(log, 0, sizeof(*log));
}

static void leave(void)
{
    T_OK(gpud_fini());
    T_EQ(unsetenv("FAKE_SCRIPT"), 0);
}

/* What a worker says that runs a task now: text number n of the log. */
static const char *tell(gpud_dispatcher *d, struct t_log *log)
{
    const size_t n = t_log_count(log, GPUD_EVENT_OUTCOME);
    const struct gpud_event *e;

    T_SUBMIT(d, .tag = TELL);
    t_collect(d, log, n + 1);
    e = t_log_at(log, GPUD_EVENT_OUTCOME, n);
    T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
    return e->result;
}

static void die(gpud_dispatcher *d, struct t_log *log)
{
    const size_t n = t_log_count(log, GPUD_EVENT_OUTCOME);

    T_SUBMIT(d, .tag = DIE);
    t_collect(d, log, n + 1);
    T_EQ(t_log_at(log, GPUD_EVENT_OUTCOME, n)->outcome, GPUD_OUTCOME_CRASHED);
}

/* What the first worker of a dispatcher of its own finds. */
static void finds(const struct gpud_options *options, const char *expected)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = t_create(options);

    T_TEXT(tell(d, &log), expected);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    end(&d, &log);
}

static void says(const char *text, const char *part)
{
    if (!strstr(text, part))
        T_FAIL("\"%s\" does not say \"%s\"", text, part);
}

/* ---- numbers ---- */

/* Where all agree a worker finds numbers, in the order of its set; UUID is what it says; UUIDs are
 * there in each case. */
T_CASE(numbers_where_all_agree)
{
    three();
    finds(T_OPTIONS(.devices = "0"), "0|PCI_BUS_ID|" UUID("0"));
    finds(T_OPTIONS(.devices = "2,0", .devices_per_worker = 2),
          "2,0|PCI_BUS_ID|" UUID("2") "," UUID("0"));
    finds(T_OPTIONS(.devices = "2,0", .devices_per_worker = 2, .visible = GPUD_VISIBLE_UUID),
          UUID("2") "," UUID("0") "|PCI_BUS_ID|" UUID("2") "," UUID("0"));
    leave();
}

/* The numbers are the machine's, not places in the host's own list, and not those of CUDA's taste.
 * */
T_CASE(numbers_under_a_list_of_the_host)
{
    three();
    if (!getenv("GPUD_WORKER")) {
        T_EQ(setenv("CUDA_VISIBLE_DEVICES", "2," UUID("1"), 1), 0);
        T_EQ(setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST", 1), 0);
    }
    finds(T_OPTIONS(.devices = "0"), "2|PCI_BUS_ID|" UUID("2"));
    finds(T_OPTIONS(.devices = "1,0", .devices_per_worker = 2),
          "1,2|PCI_BUS_ID|" UUID("1") "," UUID("2"));
    T_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    T_EQ(unsetenv("CUDA_DEVICE_ORDER"), 0);
    leave();
}

/* Where the driver lists more or fewer GPUs before it than NVML, or nothing, there are UUIDs; what
 * lies behind it does not matter. */
T_CASE(driver_lists_others)
{
    static const char *const uuid = UUID("1") "|PCI_BUS_ID|" UUID("1");

    three();
    list("0000:00:1e.0");
    finds(T_OPTIONS(.devices = "1"), uuid);
    unlist("0000:00:1e.0");
    unlist("0000:01:00.0");
    finds(T_OPTIONS(.devices = "1"), uuid);
    list("0000:01:00.0");
    unlist("0000:03:00.0");
    finds(T_OPTIONS(.devices = "1"), "1|PCI_BUS_ID|" UUID("1"));
    T_EQ(rename("driver", "passenger"), 0);
    finds(T_OPTIONS(.devices = "1"), uuid);
    leave();
}

/* The driver lists a GPU that this process may not open: NVML's numbers have it, CUDA's do not. */
T_CASE(gpu_that_cannot_be_opened)
{
    machine("gpus 3\ngpu 0 denied\n");
    if (!getenv("GPUD_WORKER")) {
        list("0000:01:00.0");
        list("0000:02:00.0");
        list("0000:03:00.0");
    }
    finds(T_OPTIONS(.devices = "0"), UUID("1") "|PCI_BUS_ID|" UUID("1"));
    finds(T_OPTIONS(.devices = "0", .visible = GPUD_VISIBLE_INDEX), "0|PCI_BUS_ID|" UUID("1"));
    leave();
}

/* CUDA counts by PCI address, NVML in this machine not: AUTO leaves numbers alone, and INDEX has
 * CUDA's. */
T_CASE(machine_in_another_order)
{
    static const char script[] = "gpu 0 pci=00000000:81:00.0\ngpu 1 pci=00000000:41:00.0\n";

    machine(script);
    if (!getenv("GPUD_WORKER")) {
        list("0000:41:00.0");
        list("0000:81:00.0");
    }
    /* the first by PCI address */
    finds(T_OPTIONS(.devices = "gpu:0", .visible = GPUD_VISIBLE_INDEX), "0|PCI_BUS_ID|" UUID("1"));
    finds(T_OPTIONS(.devices = UUID("0")), UUID("0") "|PCI_BUS_ID|" UUID("0"));
    finds(T_OPTIONS(.devices = UUID("0"), .visible = GPUD_VISIBLE_INDEX),
          "1|PCI_BUS_ID|" UUID("0"));
    leave();
}

/* A daemon has GPUs and numbers of its own: what the worker's environment says of one decides. */
T_CASE(mps_has_numbers_of_its_own)
{
    static const char *const env[] = { "CUDA_MPS_PIPE_DIRECTORY=pipes", NULL };

    three();
    finds(T_OPTIONS(.devices = "1", .env = env), "1|PCI_BUS_ID|" UUID("1"));
    T_EQ(mkdir("pipes", 0700), 0);
    t_write_script("pipes/control", "");
    finds(T_OPTIONS(.devices = "1", .env = env), UUID("1") "|PCI_BUS_ID|" UUID("1"));
    finds(T_OPTIONS(.devices = "1", .env = env, .visible = GPUD_VISIBLE_INDEX),
          "1|PCI_BUS_ID|" UUID("1"));
    T_EQ(mkdir("elsewhere", 0700), 0); /* a path is one of the worker's directory */
    finds(T_OPTIONS(.devices = "1", .env = env, .cwd = "elsewhere"), "1|PCI_BUS_ID|" UUID("1"));
    T_EQ(rename("pipes", "elsewhere/pipes"), 0);
    finds(T_OPTIONS(.devices = "1", .env = env, .cwd = "elsewhere"),
          UUID("1") "|PCI_BUS_ID|" UUID("1"));
    leave();
}

/* ---- each start ---- */

/* What the driver lists when a worker starts counts, not what it has listed before. */
T_CASE(each_start_decides)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    three();
    d = T_CREATE(.devices = "1");
    T_TEXT(tell(d, &log), "1|PCI_BUS_ID|" UUID("1"));
    unlist("0000:01:00.0");
    die(d, &log);
    T_TEXT(tell(d, &log), UUID("1") "|PCI_BUS_ID|" UUID("1"));
    list("0000:01:00.0");
    die(d, &log);
    T_TEXT(tell(d, &log), "1|PCI_BUS_ID|" UUID("1"));
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    end(&d, &log);
    leave();
}

/* A GPU falls off the bus: CUDA counts those behind it otherwise, while NVML and the driver's list
 * are as they were. */
T_CASE(gpu_that_is_lost)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    three();
    d = T_CREATE(.devices = "0,1");
    t_wait_ready(d, 2);
    t_trigger("gone");
    (void)t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_LOST);
    T_TEXT(tell(d, &log), "1|PCI_BUS_ID|" UUID("1")); /* it runs since before */
    die(d, &log);
    T_TEXT(tell(d, &log), UUID("1") "|PCI_BUS_ID|" UUID("1"));
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    end(&d, &log);
    leave();
}

/* The same once the dispatcher has let go of it: it is still lost, though another monitor reads it.
 * */
T_CASE(gpu_that_is_lost_and_let_go)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    three();
    d = T_CREATE(.devices = "0,1");
    t_wait_ready(d, 2);
    t_trigger("gone");
    (void)t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_LOST);
    (void)t_told(d, &log, &at, "gpu:0", "this dispatcher has closed it");
    die(d, &log);
    T_TEXT(tell(d, &log), UUID("1") "|PCI_BUS_ID|" UUID("1"));
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    end(&d, &log);
    leave();
}

/* ... and of another monitor: of a GPU that was added. */
T_CASE(gpu_that_is_lost_beside_an_added_one)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    three();
    d = T_CREATE(.devices = "0");
    T_OK(gpud_dispatcher_device_add(d, "1", NULL));
    t_wait_ready(d, 2);
    t_trigger("gone");
    (void)t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_LOST);
    die(d, &log);
    T_TEXT(tell(d, &log), UUID("1") "|PCI_BUS_ID|" UUID("1"));
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    end(&d, &log);
    leave();
}

/* ---- wrong numbers ---- */

/* CUDA counts otherwise than NVML, and nothing has shown it: with INDEX no worker ever comes to
 * setup. [T15] */
T_CASE(wrong_number_runs_nothing)
{
    static const char *const env[] = { "FAKE_SCRIPT=other", NULL };
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    three();
    t_write_script("other", "gpus 3\ngpu 0 denied\n");
    d = T_CREATE(.devices = "1", .visible = GPUD_VISIBLE_INDEX, .env = env, .failures_in_a_row = 2,
                 .backoff = GPUD_AT_ONCE);
    (void)T_RUN(d, &log, NO_WORKER, .tag = TELL);
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 2);
    e = t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 1);
    T_EQ(e->code, GPUD_EDEVICE);
    says(e->text, "CUDA's device 0 is " UUID("2") ", expected " UUID("1") ": CUDA's number 1 ");
    end(&d, &log);
    leave();
}

/* With AUTO it costs one start; then there are UUIDs. */
T_CASE(wrong_number_is_not_tried_again)
{
    static const char *const env[] = { "FAKE_SCRIPT=other", NULL };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    three();
    t_write_script("other", "gpus 3\ngpu 0 denied\n");
    for (int gpu = 1; gpu < 3; gpu++) { /* the second has a number that CUDA has not */
        const char *text;
        d = t_create(
            T_OPTIONS(.devices = gpu == 1 ? "1" : "2", .env = env, .backoff = GPUD_AT_ONCE));
        T_TEXT(tell(d, &log),
               gpu == 1 ? UUID("1") "|PCI_BUS_ID|" UUID("1") : UUID("2") "|PCI_BUS_ID|" UUID("2"));
        T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 1);
        text = t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0)->text;
        says(text, gpu == 1 ? UUID("1") ": CUDA's number 1 is another GPU"
                            : "CUDA has no GPU with number 2, expected " UUID("2"));
        die(d, &log);
        T_CHECK(strncmp(tell(d, &log), "GPU-", 4) == 0);
        T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 1);
        end(&d, &log);
    }
    leave();
}

/* Nor is it a failure of a canary: that says nothing of the GPU. */
T_CASE(wrong_number_is_no_failed_canary)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    three();
    d = T_CREATE(.devices = "2", .backoff = GPUD_AT_ONCE, .canary_passes = 1);
    T_TEXT(tell(d, &log), "2|PCI_BUS_ID|" UUID("2"));
    t_trigger("gone"); /* no event tells this dispatcher: it is not its own */
    T_SUBMIT(d, .tag = FAULT);
    (void)t_told_health(d, &log, &at, "gpu:2", GPUD_HEALTH_SUSPECT);
    (void)t_told_health(d, &log, &at, "gpu:2", GPUD_HEALTH_HEALTHY);
    T_TEXT(tell(d, &log), UUID("2") "|PCI_BUS_ID|" UUID("2"));
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 1);
    T_EQ(t_log_count(&log, GPUD_EVENT_DEVICE), 2);
    T_EQ(t_stats(d).canary_failures, 0);
    end(&d, &log);
    leave();
}

/* Nor when another monitor has taken over meanwhile, which has not counted anew. */
T_CASE(wrong_number_is_remembered_by_the_next_monitor)
{
    static const char *const env[] = { "FAKE_SCRIPT=other", NULL };
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    uint64_t failures;
    size_t at = 0;

    three();
    t_write_script("machine", "gpus 3\nwhen gone gpu 2 recovery=reset\n");
    t_write_script("other", "gpus 3\ngpu 0 pci=00000000:04:00.0\n");
    d = T_CREATE(.devices = "all", .env = env, .backoff = GPUD_AT_ONCE);
    t_wait_ready(d, 3);
    t_trigger("gone");
    (void)t_told(d, &log, &at, "gpu:2", "this dispatcher has closed it");
    failures = t_stats(d).setup_failures;
    T_CMP(failures, >, 0);
    die(d, &log);
    for (int i = 0; i < 8; i++)
        T_CHECK(strncmp(tell(d, &log), "GPU-", 4) == 0);
    t_wait_ready(d, 2);
    T_EQ(t_stats(d).setup_failures, failures);
    end(&d, &log);
    leave();
}

/* A driver that does not start is no wrong number. */
T_CASE(failed_driver_is_no_wrong_number)
{
    static const char *const env[] = { "FAKE_SCRIPT=other", NULL };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    three();
    t_write_script("other", "gpus 3\ndriver fail cuInit 802\nwhen mended driver mend cuInit\n");
    d = T_CREATE(.devices = "1", .env = env, .failures_in_a_row = 1000, .backoff = T_MS(5),
                 .backoff_cap = T_MS(20));
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 2);
    t_trigger("mended");
    T_TEXT(tell(d, &log), "1|PCI_BUS_ID|" UUID("1"));
    end(&d, &log);
    leave();
}

/* ---- what has no number ---- */

/* An instance is named by its UUID; beside one no GPU has a number; INDEX is refused where there is
 * one. */
T_CASE(instances_have_no_number)
{
    struct gpud_error e = { .struct_size = sizeof(e) };
    struct t_log log = { 0 };
    gpud_dispatcher *d = NULL;

    machine("gpus 2\ngpu 1 mig=1g.10gb*2\n");
    if (!getenv("GPUD_WORKER")) {
        list("0000:01:00.0");
        list("0000:02:00.0");
    }
    finds(T_OPTIONS(.devices = "1:1"), MIG("1", "2") "|PCI_BUS_ID|" MIG("1", "2"));
    finds(T_OPTIONS(.devices = "0"), UUID("0") "|PCI_BUS_ID|" UUID("0"));
    T_CODE(
        gpud_dispatcher_create(&d, T_OPTIONS(.devices = "all", .visible = GPUD_VISIBLE_INDEX), &e),
        EINVAL);
    T_TEXT(e.field, "visible");
    says(e.text, "visible is INDEX, but gpu:1:0 is a MIG instance");
    d = T_CREATE(.devices = "0", .visible = GPUD_VISIBLE_INDEX);
    T_TEXT(tell(d, &log), "0|PCI_BUS_ID|" UUID("0"));
    T_CODE(gpud_dispatcher_device_add(d, "1:0", &e), EINVAL);
    T_TEXT(e.field, "visible");
    end(&d, &log);
    leave();
}

/* In a pool any class may get a worker on a device that is added. */
T_CASE(instance_added_to_a_pool)
{
    struct gpud_error e = { .struct_size = sizeof(e) };
    gpud_dispatcher *d = NULL;

    machine("gpus 2\ngpu 1 mig=1g.10gb*2\n");
    if (!getenv("GPUD_WORKER")) {
        list("0000:01:00.0");
        list("0000:02:00.0");
    }
    /* not T_CREATE, which may set start: in a pool that is an option of a class */
    T_OK(gpud_dispatcher_create(&d, T_OPTIONS(.pooled = 1, .devices = "0"), NULL));
    add(d, T_CLASS(.name = "auto", .options = T_OPTIONS(.definition = "test")));
    T_OK(gpud_dispatcher_device_add(d, "1:0", &e));
    T_OK(gpud_dispatcher_device_remove(d, "gpu:1:0"));
    add(d, T_CLASS(.name = "index", .options = T_OPTIONS(.definition = "test",
                                                         .visible = GPUD_VISIBLE_INDEX)));
    T_CODE(gpud_dispatcher_device_add(d, "1:1", &e), EINVAL);
    T_TEXT(e.field, "visible");
    says(e.text, "visible is INDEX for class index, but gpu:1:1 is a MIG instance");
    T_OK(gpud_dispatcher_class_remove(d, "index", GPUD_FINISH_NOW, NULL));
    t_destroy(&d, NULL);
    leave();
}

/* Fakes have numbers where they are asked for; CPU slots have the host's variable, and their names.
 * */
T_CASE(fakes_and_cpu_slots)
{
    machine("gpus 1\n");
    finds(T_OPTIONS(.devices = "fake:2", .devices_per_worker = 2),
          UUID("0") "," UUID("1") "|PCI_BUS_ID|" UUID("0") "," UUID("1"));
    finds(T_OPTIONS(.devices = "fake:2", .devices_per_worker = 2, .visible = GPUD_VISIBLE_INDEX),
          "0,1|PCI_BUS_ID|" UUID("0") "," UUID("1"));
    finds(T_OPTIONS(.devices = "cpu:2", .devices_per_worker = 2, .visible = GPUD_VISIBLE_INDEX),
          "none|none|cpu:0,cpu:1");
    leave();
}

/* C15: what is no value of the option, and a variable of ours, are refused. */
T_CASE(values_that_are_refused)
{
    static const char *const env[] = { "GPUD_DEVICE_UUIDS=GPU-1", NULL };
    struct gpud_error e = { .struct_size = sizeof(e) };
    gpud_dispatcher *d = NULL;

    machine("gpus 1\n");
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.visible = 3), &e), EINVAL);
    T_TEXT(e.field, "visible");
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.env = env), &e), EINVAL);
    says(e.text, "env[0], \"GPUD_DEVICE_UUIDS=GPU-1\"");
    leave();
}
