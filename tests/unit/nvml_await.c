/* SPDX-License-Identifier: MIT */
/* nvml_await.c - what the NVML provider hears of devices: XIDs, losses, recovery actions, and waits
 * that fail. */
#include "nvml_scene.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gpudispatch/device.h"

T_CASE(xids)
{
    static const uint64_t stream[] = { 13, 31, 43, 45, 63, 79, 94, 95, 109, 119, 154 };
    char script[512] = N_SIGN "gpus 2\nwhen go gpu 1";

    for (unsigned i = 0; i < 11; i++)
        (void)snprintf(script + strlen(script), sizeof(script) - strlen(script), " xid %u",
                       (unsigned)stream[i]);
    T_EQ(n_begin(script), 2);
    n_registered();
    t_trigger("go");
    for (unsigned i = 0; i < 11; i++)
        n_hear(GPI_INCIDENT_XID, 1, stream[i]);
    n_end();
}

/* What was before we listened is found in the state of the device. */
T_CASE(state_behind_registration)
{
    T_EQ(n_begin("gpus 3\nwhen before gpu 1 lost\ngpu 2 recovery=reboot\ngpu 0 xid 79"), 3);
    t_trigger("before");
    n_hear(GPI_INCIDENT_LOST, 1, 0);
    n_hear(GPI_INCIDENT_RECOVERY, 2, GPUD_RECOVERY_REBOOT);
    n_end();
}

T_CASE(recovery_actions)
{
    T_EQ(n_begin(N_SIGN "gpus 2\nwhen bad gpu 1 xid 62 recovery=reset\nwhen good gpu 1 "
                        "recovery=none\nwhen end gpu 1 xid 154"),
         2);
    n_registered();
    t_trigger("bad");
    n_hear(GPI_INCIDENT_XID, 1, 62);
    n_hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_RESET);
    t_trigger("good");
    n_hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_NONE);
    t_trigger("end");
    /* each was told once, though an event and a look have found it */
    n_hear(GPI_INCIDENT_XID, 1, 154);
    n_end();
}

/* An XID is told before anything else is asked of that device: the question may hang. */
T_CASE(xid_of_a_device_that_hangs)
{
    T_EQ(n_begin(N_SIGN "gpus 2\nwhen go gpu 1 hang sample xid 119"), 2);
    n_registered();
    t_trigger("go");
    n_hear(GPI_INCIDENT_XID, 1, 119);
    n_end();
}

/* A lost GPU makes every wait fail; the others are heard on, and it is heard again when it is back.
 */
T_CASE(lost_and_back)
{
    T_EQ(n_begin(N_SIGN "gpus 3\nwhen lost gpu 1 xid 79 lost\nwhen other gpu 2 xid 94\nwhen back "
                        "gpu 1 back recovery=reset\nwhen again gpu 1 xid 13"),
         3);
    n_registered();
    t_trigger("lost");
    n_hear(GPI_INCIDENT_XID, 1, 79);
    n_hear(GPI_INCIDENT_LOST, 1, 0);
    t_trigger("other");
    n_hear(GPI_INCIDENT_XID, 2, 94);
    t_trigger("back");
    /* its n_state, read behind registration */
    n_hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_RESET);
    t_trigger("again");
    n_hear(GPI_INCIDENT_XID, 1, 13);
    n_end();
}

/* The same without an XID before it: the wait itself says that somebody is lost. */
T_CASE(lost_without_an_xid)
{
    T_EQ(n_begin(N_SIGN "gpus 3\nwhen lost gpu 1 lost\nwhen other gpu 2 xid 94\nwhen back gpu 1 "
                        "back recovery=reset\nwhen again gpu 1 xid 13"),
         3);
    n_registered();
    t_trigger("lost");
    n_hear(GPI_INCIDENT_LOST, 1, 0);
    t_trigger("other");
    n_hear(GPI_INCIDENT_XID, 2, 94);
    t_trigger("back");
    n_hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_RESET);
    t_trigger("again");
    n_hear(GPI_INCIDENT_XID, 1, 13);
    n_end();
}

/* One that shares the machine's memory is found lost by another call than that for memory. */
T_CASE(lost_with_the_memory_of_the_machine)
{
    T_EQ(n_begin("gpu * memory=unknown\ngpu 0 recovery=imex\nwhen lost gpu 0 lost fail "
                 "nvmlDeviceGetMemoryInfo 3\nwhen back gpu 0 back recovery=reset"),
         1);
    n_registered();
    t_trigger("lost");
    n_hear(GPI_INCIDENT_LOST, 0, 0);
    t_trigger("back");
    n_hear(GPI_INCIDENT_RECOVERY, 0, GPUD_RECOVERY_RESET);
    n_end();
}

T_CASE(the_only_one_is_lost)
{
    T_EQ(n_begin("gpu 0 recovery=imex\nwhen lost gpu 0 lost\nwhen back gpu 0 back recovery=reset"),
         1);
    n_registered();
    t_trigger("lost");
    n_hear(GPI_INCIDENT_LOST, 0, 0);
    t_trigger("back");
    n_hear(GPI_INCIDENT_RECOVERY, 0, GPUD_RECOVERY_RESET);
    n_end();
}

/* A device that says only that it must be reset says what would bring it back. */
T_CASE(reset_required)
{
    T_EQ(n_begin(N_SIGN "gpus 2\nwhen bad gpu 1 xid 119 needs-reset"), 2);
    n_registered();
    t_trigger("bad");
    n_hear(GPI_INCIDENT_XID, 1, 119);
    n_hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_RESET);
    n_end();
}

/* It is heard again once it has been reset, though no wait fails by it. */
T_CASE(reset_and_back)
{
    T_EQ(n_begin(N_SIGN "gpus 2\nwhen bad gpu 1 xid 119 needs-reset\nwhen good gpu 1 back\nwhen "
                        "again gpu 1 xid 13"),
         2);
    n_registered();
    t_trigger("bad");
    n_hear(GPI_INCIDENT_XID, 1, 119);
    n_hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_RESET);
    t_trigger("good");
    n_hear(GPI_INCIDENT_RECOVERY, 1, GPUD_RECOVERY_NONE);
    t_trigger("again");
    n_hear(GPI_INCIDENT_XID, 1, 13);
    n_end();
}

/* Those refused are asked for again after so long, instead of a minute. */
static void ask_again_after(uint64_t time)
{
    ((struct gpi_nvml_state *)n_state)->ear.again = time;
}

/* Waits fail until `mended`: it may be told once more, and then that all is well again. */
static void hear_of_the_end(void)
{
    struct gpi_incident i;

    t_trigger("mended");
    do
        T_CHECK(gpi_provider_nvml.await(n_state, &i));
    while (i.number);
    T_EQ(i.kind, GPI_INCIDENT_DEAF);
}

/* A wait that goes on saying that somebody is lost, though all are there, is told, and tried again
 * after a while. */
T_CASE(waits_that_lie)
{
    T_EQ(n_begin(N_SIGN "when lies driver fail nvmlEventSetWait_v2 15\nwhen mended driver mend "
                        "nvmlEventSetWait_v2"),
         1);
    ask_again_after(T_MS(50));
    n_registered();
    t_trigger("lies");
    n_hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 15);
    hear_of_the_end();
    n_end();
}

T_CASE(instances)
{
    T_EQ(n_begin(N_SIGN "gpus 2\ngpu 1 mig=1g.5gb*3\nwhen one gpu 1:1 xid 13\nwhen all gpu 1 xid "
                        "62\nwhen lost gpu 1 lost"),
         5);
    n_registered();
    t_trigger("one");
    n_hear(GPI_INCIDENT_XID, 3, 13);
    t_trigger("all");
    n_hear(GPI_INCIDENT_XID, 1, 62); /* of the GPU, and so of all that is on it */
    t_trigger("lost");
    n_hear(GPI_INCIDENT_LOST, 1, 0);
    n_end();
}

T_CASE(xid_of_nobody)
{
    T_EQ(n_begin(N_SIGN "gpus 2\nwhen go driver xid 119"), 2);
    n_registered();
    t_trigger("go");
    n_hear(GPI_INCIDENT_XID, GPI_UNKNOWN32, 119);
    n_end();
}

T_CASE(interrupted_waits)
{
    T_EQ(n_begin(N_SIGN "driver fail nvmlEventSetWait_v2 10*3\nwhen go gpu 0 xid 31"), 1);
    n_registered();
    t_trigger("go");
    n_hear(GPI_INCIDENT_XID, 0, 31);
    n_end();
}

/* One failed wait is tried again with a new set; a second in a row is told, and tried again after a
 * while. */
T_CASE(waits_that_fail)
{
    struct gpi_incident i;

    T_EQ(n_begin(N_SIGN "when once driver fail nvmlEventSetWait_v2 999*1\nwhen once gpu 0 "
                        "recovery=reset\nwhen go gpu 0 xid 31\n"
                        "when often driver fail nvmlEventSetWait_v2 5\nwhen mended driver mend "
                        "nvmlEventSetWait_v2\nwhen later gpu 0 xid 43"),
         1);
    ask_again_after(T_MS(50));
    n_registered();
    t_trigger("once");
    n_hear(GPI_INCIDENT_RECOVERY, 0, GPUD_RECOVERY_RESET); /* behind the new registration */
    t_trigger("go");
    n_hear(GPI_INCIDENT_XID, 0, 31);
    t_trigger("often");
    n_hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 5);
    hear_of_the_end();
    t_trigger("later");
    do
        T_CHECK(gpi_provider_nvml.await(n_state, &i));
    while (i.kind == GPI_INCIDENT_DEAF);
    T_EQ(i.number, 43);
    n_end();
}

T_CASE(devices_that_cannot_be_heard)
{
    T_EQ(n_begin("gpus 2\ngpu 0 fail nvmlDeviceRegisterEvents 3\nwhen go gpu 1 xid 31"), 2);
    t_trigger("go");
    n_hear(GPI_INCIDENT_DEAF, 0, 3);
    n_end();
}

/* A driver refuses the kinds of events that it calls supported: XIDs alone are heard, and of nobody
 * it is told that it is not. */
T_CASE(xids_alone)
{
    T_EQ(n_begin(N_SIGN "gpus 2\ngpu 1 fail nvmlDeviceRegisterEvents 3*1\nwhen go gpu 1 xid 31"),
         2);
    n_registered();
    t_trigger("go");
    n_hear(GPI_INCIDENT_XID, 1, 31);
    n_end();
}

/* What was refused is asked for again after a while, and that it was allowed is told. */
T_CASE(refused_and_allowed)
{
    T_EQ(n_begin(N_SIGN "gpus 2\ngpu 1 fail nvmlDeviceRegisterEvents 4*4\nwhen go gpu 1 xid "
                        "31\nwhen go gpu 0 xid 13"),
         2);
    ask_again_after(T_MS(50));
    n_hear(GPI_INCIDENT_DEAF, 1, 4);
    n_registered();
    n_hear(GPI_INCIDENT_DEAF, 1, 0);
    t_trigger("go");
    n_hear(GPI_INCIDENT_XID, 1, 31);
    n_hear(GPI_INCIDENT_XID, 0, 13);
    n_end();
}

/* The same for the set of them all, and where there is only one that is refused. */
T_CASE(all_refused_and_allowed)
{
    T_EQ(n_begin("gpu 0 fail nvmlDeviceRegisterEvents 4*2\ndriver fail nvmlEventSetCreate "
                 "999*2\nwhen go gpu 0 xid 31"),
         1);
    ask_again_after(T_MS(50));
    n_hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 999);
    n_hear(GPI_INCIDENT_DEAF, 0, 4);
    n_hear(GPI_INCIDENT_DEAF, 0, 0);
    n_hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 0);
    t_trigger("go");
    n_hear(GPI_INCIDENT_XID, 0, 31);
    n_end();
}

/* After code 999 the set is freed: a GPU that spoils it each time is left out, and the others are
 * heard. */
T_CASE(a_set_that_is_spoilt)
{
    T_EQ(n_begin(N_SIGN
                 "gpus 3\ngpu 1 fail nvmlDeviceRegisterEvents 999\ngpu 2 fail "
                 "nvmlDeviceRegisterEvents 999*1\nwhen go gpu 0 xid 31\nwhen go gpu 2 xid 13"),
         3);
    n_hear(GPI_INCIDENT_DEAF, 1, 999);
    n_registered();
    t_trigger("go");
    n_hear(GPI_INCIDENT_XID, 0, 31);
    n_hear(GPI_INCIDENT_XID, 2, 13);
    n_end();
}

static void *await_thread(void *user)
{
    n_hear(GPI_INCIDENT_XID, 0, 31);
    return user;
}

/* Who may not listen does not ask again and again: a GPU that answers otherwise costs nothing while
 * nothing happens. */
T_CASE(a_deaf_device_costs_nothing)
{
    pthread_t thread;
    unsigned before;

    T_EQ(n_begin(N_SIGN "gpus 2\ngpu 1 fail nvmlDeviceRegisterEvents 4\nwhen go gpu 0 xid 31"), 2);
    n_hear(GPI_INCIDENT_DEAF, 1, 4);
    n_registered();
    before = n_calls();
    t_thread(&thread, await_thread, NULL);
    t_pass(T_MS(2500)); /* a look at who is back would have come twice */
    T_CMP(n_calls() - before, <=, 10); /* of this wait, and the look behind registration */
    t_trigger("go");
    t_join(thread);
    n_end();
}

/* A lost one is looked at, once a second, and the others are not. */
T_CASE(a_lost_device_costs_little)
{
    pthread_t thread;
    unsigned before;

    T_EQ(n_begin(N_SIGN "gpus 8\nwhen lost gpu 1 lost\nwhen go gpu 0 xid 31"), 8);
    n_registered();
    t_trigger("lost");
    n_hear(GPI_INCIDENT_LOST, 1, 0);
    before = n_calls();
    t_thread(&thread, await_thread, NULL);
    t_pass(T_MS(2500));
    /* the looks behind the new registration, then a few */
    T_CMP(n_calls() - before, <=, 8 * 4 + 10);
    t_trigger("go");
    t_join(thread);
    n_end();
}

T_CASE(nobody_can_be_heard)
{
    T_EQ(n_begin("gpus 2\ngpu * fail nvmlDeviceGetSupportedEventTypes 3"), 2);
    n_hear(GPI_INCIDENT_DEAF, 0, 3);
    n_hear(GPI_INCIDENT_DEAF, 1, 3);
    n_hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 3);
    T_CHECK(!gpi_provider_nvml.await(n_state, &(struct gpi_incident){ 0 }));
    n_end();
}

T_CASE(no_events_at_all)
{
    T_EQ(n_begin("gpus 1\ndriver fail nvmlEventSetCreate 13"), 1);
    n_hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 13);
    T_CHECK(!gpi_provider_nvml.await(n_state, &(struct gpi_incident){ 0 }));
    n_end();
}

T_CASE(without_gpus)
{
    T_EQ(n_begin("gpus 0"), 0);
    T_EQ(n_driver.state, GPUD_DRIVER_OK);
    T_CHECK(!gpi_provider_nvml.await(n_state, &(struct gpi_incident){ 0 }));
    n_end();
}
