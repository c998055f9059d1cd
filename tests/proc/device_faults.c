/* SPDX-License-Identifier: MIT */
/*
 * device_faults.c - devices that fail under their workers: how that is seen, what the tasks get,
 * what the device does next, and its way back. Fakes by script stand for the driver.
 */
#include "scripted.h"
#include "verbs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SETUPS };

static int setup(gpud_worker *w, void **ret_state)
{
    *ret_state = w;
    (void)t_word_add(SETUPS);
    return 0;
}

/* Numbers: who runs the task that waits at the gate, by fake. */
static int process(gpud_task *t, void *state)
{
    if (gpud_task_tag(t) >> 32 == T_WAIT_FOR_GATE)
        atomic_store(&t_page->numbers[atoi(gpud_worker_device(state) + strlen("fake:"))],
                     gpud_task_tag(t));
    return t_process(t, state);
}

/* One task at each of two devices, which they do not end before the gate opens; on each one more
 * waits. */
static void occupy(gpud_dispatcher *d, unsigned devices)
{
    t_wait_ready(d, devices);
    for (unsigned i = 0; i < devices; i++)
        T_SUBMIT(d, .tag = T_TAG(T_WAIT_FOR_GATE, i));
    t_word_wait(T_STARTED, devices);
}

static uint64_t runs_on(unsigned fake)
{
    return atomic_load(&t_page->numbers[fake]);
}

static void is_charged_to_the_device(const struct t_log *log, uint64_t tag, const char *device)
{
    const struct gpud_event *e = T_OUTCOME(log, tag, CRASHED);

    T_EQ(e->code, GPUD_EDEVICE);
    T_EQ(e->attempt, 1);
    T_TEXT(e->device, device);
    if (strncmp(e->text, device, strlen(device)) != 0 || !strstr(e->text, " failed: "))
        T_FAIL("the text is \"%s\"", e->text);
}

/* LOST: what ran there is charged to the device, what was sent goes to others, nothing more starts
 * there; the other device goes on. Back when it answers again and canaries have passed. [C2] [C4]
 * [T21] */
T_CASE(lost_and_back)
{
    struct t_log log = { 0 };
    struct gpud_device_info row;
    gpud_dispatcher *d;
    size_t at = 0;
    uint64_t before;

    t_init(setup, process, NULL);
    d = t_fakes(2, "when gone gpu 1 xid 79 lost\nwhen mended gpu 1 back",
                T_OPTIONS(.canary_backoff = T_MS(10), .sent_ahead = 3));
    occupy(d, 2);
    for (uint64_t n = 0; n < 6; n++)
        T_SUBMIT(d, .tag = n); /* two wait at each */
    before = t_now();
    t_trigger("gone");
    T_EQ(t_told_health(d, &log, &at, "fake:1", GPUD_HEALTH_LOST)->xid, 79);
    row = t_device(d, "fake:1");
    T_EQ(row.health, GPUD_HEALTH_LOST);
    T_EQ(row.last_xid, 79);
    T_EQ(row.xids, 1);
    T_CMP(row.since - before, <, T_S(1));
    t_collect(d, &log, 1);
    is_charged_to_the_device(&log, runs_on(1), "fake:1");
    t_wait_slot(d, 1, GPUD_SLOT_QUARANTINED);
    T_EQ(t_stats(d).devices_out, 1);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 8);
    (void)T_OUTCOME(&log, runs_on(0), SUCCESS);
    for (uint64_t n = 0; n < 6; n++)
        T_TEXT(T_OUTCOME(&log, n, SUCCESS)->device, "fake:0");
    T_EQ(t_stats(d).devices_out, 1);
    t_trigger("mended");
    T_OK(gpud_dispatcher_device_return(d, "fake:1"));
    (void)t_told_health(d, &log, &at, "fake:1", GPUD_HEALTH_HEALTHY);
    t_wait_ready(d, 2);
    T_EQ(t_stats(d).canaries, 2);
    T_EQ(t_stats(d).canary_failures, 0);
    T_CMP(t_word(SETUPS), ==, 3);
    T_OK(gpud_dispatcher_device_drain(d, "fake:0"));
    T_TEXT(T_RUN(d, &log, SUCCESS, .tag = 99)->device, "fake:1");
    t_end(&d, &log);
}

/* The classes of XIDs: what the running task gets, and what the device is afterwards. */
static void xid(const char *script, const char *rules, uint32_t outcome, uint32_t health,
                unsigned canaries)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    t_init(setup, process, NULL);
    d = t_fakes(1, script, T_OPTIONS(.canary_backoff = T_MS(10), .xid_rules = rules));
    T_EQ(t_device(d, "fake:0").health, GPUD_HEALTH_HEALTHY);
    occupy(d, 1);
    t_trigger("now");
    if (health != GPUD_HEALTH_HEALTHY)
        (void)t_told_health(d, &log, &at, "fake:0", health);
    while (t_device(d, "fake:0").xids == 0)
        (void)t_poll(d, &log, T_MS(1));
    if (outcome == GPUD_OUTCOME_SUCCESS) {
        T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), 0);
        t_word_set(T_GATE, 1);
    }
    t_collect(d, &log, 1);
    if (outcome == GPUD_OUTCOME_SUCCESS)
        (void)T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), SUCCESS);
    else
        is_charged_to_the_device(&log, T_TAG(T_WAIT_FOR_GATE, 0), "fake:0");
    if (health != GPUD_HEALTH_HEALTHY)
        (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_HEALTHY);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    T_EQ(t_stats(d).canaries, canaries);
    T_EQ(t_stats(d).xids, 1);
    T_EQ(t_stats(d).setup_failures, 0);
    t_end(&d, &log);
}

T_CASE(xid_of_a_contained_error)
{
    xid("when now gpu 0 xid 94", NULL, GPUD_OUTCOME_CRASHED, GPUD_HEALTH_SUSPECT, 1);
}

T_CASE(xid_that_nobody_knows)
{
    xid("when now gpu 0 xid 500", NULL, GPUD_OUTCOME_SUCCESS, GPUD_HEALTH_SUSPECT, 1);
}

T_CASE(xid_by_the_users_rule)
{
    xid("when now gpu 0 xid 62", "63=reset,62=ignore", GPUD_OUTCOME_SUCCESS, GPUD_HEALTH_HEALTHY,
        0);
}

T_CASE(xid_by_the_environments_rule)
{
    T_EQ(setenv("GPUD_XID_RULES", "63=reset", 1), 0);
    xid("when now gpu 0 xid 63", NULL, GPUD_OUTCOME_CRASHED, GPUD_HEALTH_QUARANTINED, 2);
    T_EQ(unsetenv("GPUD_XID_RULES"), 0);
}

/* The driver's own word goes before the table: it asks for a drain and a reset, and what runs ends
 * by itself. While that is so no canary is tried, and without another device tasks end NO_WORKER at
 * once. When it asks no more the device proves itself. */
T_CASE(recovery_action)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    t_init(setup, process, NULL);
    d = t_fakes(1, "when now gpu 0 recovery=drain-reset\nwhen mended gpu 0 recovery=none",
                T_OPTIONS(.canary_backoff = T_MS(10), .sent_ahead = 1));
    occupy(d, 1);
    t_trigger("now");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_QUARANTINED);
    T_EQ(t_device(d, "fake:0").recovery, GPUD_RECOVERY_DRAIN_RESET);
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_DRAINING);
    T_SUBMIT(d, .tag = 1);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), SUCCESS);
    T_CHECK(strstr(T_OUTCOME(&log, 1, NO_WORKER)->text, "fake:0 is QUARANTINED"));
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_QUARANTINED);
    T_EQ(t_stats(d).canaries, 0);
    t_trigger("mended");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_HEALTHY);
    (void)T_RUN(d, &log, SUCCESS, .tag = 2);
    t_end(&d, &log);
}

/* Access is taken away: what runs goes on, and takes tasks; a worker that is gone has no successor
 * until it is given back. */
T_CASE(revoked)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    t_init(setup, process, NULL);
    d = t_fakes(1, "when now gpu 0 revoked\nwhen given gpu 0 back",
                T_OPTIONS(.canary_backoff = T_MS(10)));
    t_wait_ready(d, 1);
    t_trigger("now");
    while (t_device(d, "fake:0").health != GPUD_HEALTH_REVOKED)
        (void)t_poll(d, &log, T_MS(20));
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_REVOKED);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    T_EQ(T_RUN(d, &log, CRASHED, .tag = T_TAG(T_KILL, 0))->code, GPUD_ECRASHED);
    t_wait_slot(d, 0, GPUD_SLOT_QUARANTINED);
    t_trigger("given");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_HEALTHY);
    t_wait_ready(d, 1);
    t_end(&d, &log);
}

/* Two canaries fail, with a wait that doubles, then two pass. */
T_CASE(canary_fails_then_passes)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    t_init(setup, process, NULL);
    d = t_fakes(1, "when broken gpu 0 xid 62 canary=fail*2", T_OPTIONS(.canary_backoff = T_MS(20)));
    t_wait_ready(d, 1);
    T_SUBMIT(d, .tag = 0);
    t_collect(d, &log, 1);
    t_trigger("broken");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_QUARANTINED);
    T_SUBMIT(d, .tag = 1); /* it waits: the device may come back by itself */
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_HEALTHY);
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, 1, SUCCESS);
    T_EQ(t_stats(d).canaries, 4);
    T_EQ(t_stats(d).canary_failures, 2);
    T_EQ(t_device(d, "fake:0").canary_failures, 2);
    T_EQ(t_word(SETUPS), 2);
    T_EQ(t_stats(d).setup_failures, 0);
    t_end(&d, &log);
}

/* Nor is a try ever due then, and tasks wait for the good reading all the same: the device was the
 * only one. */
T_CASE(tasks_wait_for_a_good_reading)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    t_init(setup, process, NULL);
    d = t_fakes(
        1, "gpu 0 recovery=unknown\nwhen broken gpu 0 xid 62",
        T_OPTIONS(.canary_backoff = T_MS(50), .cuda = GPUD_CUDA_NO_CANARY, .sent_ahead = 2));
    occupy(d, 1);
    T_SUBMIT(d, .tag = 1); /* sent, behind the one at the gate */
    T_SUBMIT(d, .tag = 2); /* in the queue */
    t_trigger("broken");
    t_collect(d, &log, 1);
    is_charged_to_the_device(&log, runs_on(0), "fake:0");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_QUARANTINED);
    T_EQ(t_device(d, "fake:0").canary_at, 0);
    T_SUBMIT(d, .tag = 3); /* as it is out of use, or is back already */
    t_collect(d, &log, 4);
    for (uint64_t n = 1; n <= 3; n++)
        T_EQ(T_OUTCOME(&log, n, SUCCESS)->incarnation, 2);
    T_EQ(t_device(d, "fake:0").health, GPUD_HEALTH_HEALTHY);
    T_EQ(t_stats(d).canaries, 0);
    T_EQ(t_stats(d).slots_failed, 0);
    t_end(&d, &log);
}

/* The user asks that a quarantined device is tried now, and not when its wait is over. */
T_CASE(returned_by_the_user)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    t_init(setup, process, NULL);
    /* else the driver's word that no reset is needed would do the same */
    d = t_fakes(1, "gpu 0 recovery=unknown\nwhen broken gpu 0 xid 62",
                T_OPTIONS(.canary_backoff = T_S(3600), .canary_passes = 1));
    t_wait_ready(d, 1);
    t_trigger("broken");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_QUARANTINED);
    t_wait_slot(d, 0, GPUD_SLOT_BACKOFF);
    T_CMP(t_device(d, "fake:0").canary_at, >, t_now() + T_S(3000));
    T_OK(gpud_dispatcher_device_return(d, "fake:0"));
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_HEALTHY);
    t_wait_ready(d, 1);
    t_end(&d, &log);
}

/* Setup of a device that boots slowly: a worker is ready after that, and its limit counts it. */
T_CASE(slow_boot)
{
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_fakes(1, "gpu 0 boot=150ms", T_OPTIONS(.devices = NULL));
    t_wait_ready(d, 1);
    T_CMP(t_slot(d, 0).setup_time, >=, T_MS(150));
    t_end(&d, NULL);
}

/* A canary that is not over in time says so, and not which signal we have killed it with. */
T_CASE(canary_that_takes_too_long)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    t_init(setup, process, NULL);
    d = t_fakes(1, "when broken gpu 0 boot=10min xid 94",
                T_OPTIONS(.canary_backoff = T_MS(20), .setup_limit = T_MS(500)));
    t_wait_ready(d, 1);
    t_trigger("broken");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_SUSPECT);
    (void)t_told(d, &log, &at, "fake:0",
                 "its canary failed: did not end within 0.500 s (setup_limit)");
    t_end(&d, &log);
}

/* An XID of a GPU is one XID of each of its instances; one of an instance is one of those whom it
 * concerns. */
T_CASE(an_xid_is_counted_once)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    t_init(setup, process, NULL);
    d = t_fakes(1, "gpu 0 mig=1g.10gb*3\nwhen gone gpu 0 xid 63\nwhen gone gpu 0:1 xid 63 xid 79",
                T_OPTIONS(.canary_backoff = T_S(3600)));
    t_wait_ready(d, 3);
    t_trigger("gone");
    (void)t_told_health(d, &log, &at, "fake:0:2", GPUD_HEALTH_LOST);
    T_EQ(t_device(d, "fake:0:0").xids, 2);
    T_EQ(t_device(d, "fake:0:1").xids, 3);
    T_EQ(t_device(d, "fake:0:2").xids, 2);
    T_EQ(t_stats(d).xids, 3);
    t_end(&d, &log);
}
