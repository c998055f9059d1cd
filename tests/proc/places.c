/* SPDX-License-Identifier: MIT */
/* places.c - many slots, dispatchers and monitors, up to what one spawner has places for. */
#include "fixture.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* ---- many slots ---- */

static int many_are_ready(void *user)
{
    struct gpud_stats stats = t_stats(user);

    return stats.slots_ready == stats.slots;
}

/* C9: more slots than the spawner's socket holds requests, and a spawner that is slow: each gets
 * its keeper in the end, and none counts a failure. */
T_LONG_CASE(many_slots, 120)
{
    struct t_log log = { 0 };
    struct t_proc spawner;
    gpud_dispatcher *d;
    uint64_t until;

    t_init(NULL, t_no_work, NULL);
    spawner = t_stopped_spawner();
    d = t_create(
        T_OPTIONS(.devices = t_raise_descriptors(4096) && !T_SANITIZED ? "cpu:320" : "cpu:60",
                  .drive = GPUD_DRIVE_CALLER, .payload_budget = 1U << 28, .backoff = T_MS(1)));
    (void)t_poll(d, &log, 0);
    t_kill(spawner.pid, SIGCONT);
    until = t_now() + 3 * T_PATIENCE;
    while (!many_are_ready(d)) {
        (void)t_poll(d, &log, T_MS(20));
        T_CMP(t_now(), <, until);
    }
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    T_EQ(t_stats(d).setup_failures, 0);
    t_end(&d, &log);
}

/* ---- many dispatchers ---- */

enum { PLACES = 256, PLACES_NEED = 2048 };

/* C15 C18: the spawner has places for 256 dispatchers and monitors; the next is refused, and no lie
 * is told of the spawner. A place that was left can be taken at once. */
T_LONG_CASE(many_dispatchers, 120)
{
    gpud_dispatcher *first, *d = NULL;
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_monitor *m[PLACES] = { NULL };
    struct t_log log = { 0 };

    if (!t_raise_descriptors(PLACES_NEED))
        t_skip("no room for %d descriptors", PLACES_NEED);
    first = T_BEGIN(NULL, t_no_work, .devices = "cpu:1");
    for (int i = 1; i < PLACES; i++)
        T_OK(gpud_monitor_open(&m[i], "fake:1", &error));
    for (int i = 1; i < 20; i++) {
        T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.devices = "cpu:1"), &error), EFULL);
        T_TEXT(error.text, "this process has 256 dispatchers and monitors, the maximum");
        T_CODE(gpud_monitor_open(&m[0], "fake:1", &error), EFULL);
        T_CHECK(!d && !m[0]);
        T_OK(gpud_monitor_close(&m[i]));
        d = T_CREATE(.devices = "cpu:1");
        (void)T_RUN(d, &log, SUCCESS, .tag = 1);
        t_destroy(&d, &log);
        log = (struct t_log){ 0 };
        T_OK(gpud_monitor_open(&m[i], "fake:1", &error));
    }
    for (int i = 1; i < PLACES; i++)
        T_OK(gpud_monitor_close(&m[i]));
    t_end(&first, NULL);
}

static int is_reaped(void *user)
{
    const struct t_proc *p = user;

    return kill(p->pid, 0) && errno == ESRCH;
}

/* C15 C18: the same where what was left last is a dispatcher that had asked the spawner for
 * something: that, its goodbye and the next one wait for it at the same time. */
T_LONG_CASE(goodbye_behind_a_request, 120)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;
    struct t_proc worker, keeper, spawner;
    gpud_monitor *m[PLACES] = { NULL };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    if (!t_raise_descriptors(PLACES_NEED))
        t_skip("no room for %d descriptors", PLACES_NEED);
    d = T_BEGIN(NULL, t_no_work, .devices = "cpu:1", .close_limit = T_MS(1));
    t_wait_ready(d, 1);
    spawner = t_spawner(); /* before it forks more, which have its name at first */
    for (int i = 1; i < PLACES; i++)
        T_OK(gpud_monitor_open(&m[i], "fake:1", NULL));
    /* all were let in */
    T_EQ(gpud_monitor_read(m[PLACES - 1], &row, 1, GPUD_NEVER, T_PATIENCE), 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    T_OK(gpud_dispatcher_device_remove(d, "cpu:0"));
    /* the last that a keeper does is to continue the spawner */
    t_wait_until("its keeper was reaped", is_reaped, &keeper);
    t_stop(&spawner);
    T_OK(gpud_dispatcher_device_add(d, "cpu:1", NULL));
    t_destroy(&d, NULL);
    d = T_CREATE(.devices = "cpu:1");
    t_kill(spawner.pid, SIGCONT);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    for (int i = 1; i < PLACES; i++)
        T_OK(gpud_monitor_close(&m[i]));
    t_end(&d, &log);
}

/* ---- slots of many dispatchers ---- */

/* A create that is refused in any case, by what is looked at after the places for slots. */
static int answer_to(const char *devices)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    int r = gpud_dispatcher_create(&d, T_OPTIONS(.devices = devices, .payload_budget = 1), &error);

    T_CHECK(!d);
    T_CHECK(strstr(error.text, r == GPUD_EFULL
                                   ? "the maximum is 1024 for all dispatchers of a process"
                                   : "payload_budget is 1"));
    return r;
}

static int has_room_for_1021(void *unused)
{
    (void)unused;
    return answer_to("cpu:1021") == GPUD_EINVAL;
}

/* C15 C18: all dispatchers together have 1,024 slots at most, since their spawner has places for so
 * many keepers; what would be more is refused, and what was removed or destroyed makes room. */
T_CASE(slots_of_all_dispatchers)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *a, *b;

    a = T_BEGIN(NULL, t_no_work, .devices = "cpu:3");
    b = T_CREATE(.devices = "cpu:1");
    for (int i = 0; i < 3; i++) { /* a refused one takes nothing */
        T_CODE(answer_to("cpu:1020"), EINVAL);
        T_CODE(answer_to("cpu:1021"), EFULL);
    }
    T_CODE(gpud_dispatcher_device_add(a, "cpu:1021", &error), EFULL);
    T_TEXT(error.text, "1021 slots more than the 4 there are, the maximum is 1024 for all "
                       "dispatchers of a process");
    T_OK(gpud_dispatcher_device_remove(a, "cpu:1"));
    t_wait_until("a removed slot makes room", has_room_for_1021, NULL);
    T_CODE(answer_to("cpu:1022"), EFULL);
    T_OK(gpud_dispatcher_device_add(a, "cpu:1", NULL));
    T_CODE(answer_to("cpu:1020"), EINVAL);
    T_CODE(answer_to("cpu:1021"), EFULL);
    t_destroy(&b, NULL);
    T_CODE(answer_to("cpu:1021"), EINVAL);
    T_CODE(answer_to("cpu:1022"), EFULL);
    t_end(&a, NULL);
}
