/* SPDX-License-Identifier: MIT */
/* fake.c - the provider of fake devices: what a script says, as a monitor reads it. */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/provider.h"
#include "gpudispatch/device.h"

static const struct gpi_provider *const fake = &gpi_provider_fake;
static void *state; /* never ended: a monitor's ends with its process */
static struct gpi_driver driver;
static struct gpi_device rows[GPI_GPUS_MAX];

static uint32_t begin(uint32_t n, const char *script)
{
    state = fake->open(n, script, gpi_now(), &driver);
    T_CHECK(state);
    T_EQ(driver.state, GPUD_DRIVER_OK);
    return fake->enumerate(state, rows, GPI_GPUS_MAX, &driver);
}

static void touch(const char *name)
{
    const int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    T_CHECK(fd >= 0);
    (void)close(fd);
}

static struct gpi_sample sample(uint32_t i)
{
    struct gpi_sample x;
    const uint64_t before = gpi_now();

    fake->sample(state, i, &x);
    T_CHECK(x.at >= before && x.at <= gpi_now());
    return x;
}

static void hear(uint32_t kind, uint32_t device, uint64_t number)
{
    struct gpi_incident i;

    T_CHECK(fake->await(state, &i));
    T_EQ(i.kind, kind);
    T_EQ(i.device, device);
    T_EQ(i.number, number);
    T_CMP(i.at, <=, gpi_now());
}

T_CASE(what_there_is)
{
    T_EQ(begin(3, "gpu 1 mig=1g.5gb*2\ngpu 0 denied"), 4);
    T_EQ(driver.gpus, 3);
    T_EQ(driver.unreadable, 1);
    T_TEXT(driver.text,
           "the driver works; 1 of 3 GPUs cannot be opened: number 0 denies access (NVML 4)");
    T_TEXT(rows[0].name, "fake:1");
    T_TEXT(rows[2].name, "fake:1:1");
    T_TEXT(rows[3].name, "fake:2");
    T_EQ(fake->enumerate(state, rows, 2, &driver), 2);
}

T_CASE(driver_states_say_what_to_do)
{
    static const struct {
        const char *word;
        uint32_t driver;
    } states[] = { { "none", GPUD_DRIVER_NONE },
                   { "not-loaded", GPUD_DRIVER_NOT_LOADED },
                   { "mismatch", GPUD_DRIVER_MISMATCH },
                   { "too-old", GPUD_DRIVER_TOO_OLD },
                   { "no-permission", GPUD_DRIVER_NO_PERMISSION },
                   { "revoked", GPUD_DRIVER_REVOKED },
                   { "failed", GPUD_DRIVER_FAILED } };
    char script[64];

    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
        (void)snprintf(script, sizeof(script), "driver state=%s", states[i].word);
        T_CHECK(!fake->open(1, script, gpi_now(), &driver));
        T_EQ(driver.state, states[i].driver);
        T_CMP(strlen(driver.text), >, 20);
    }
}

T_CASE(opening_that_fails)
{
    T_CHECK(!fake->open(1, "driver fail open 9*1", gpi_now(), &driver));
    T_EQ(driver.state, GPUD_DRIVER_NOT_LOADED);
    T_CHECK(!fake->open(1, "gpu 0 lots", gpi_now(), &driver)); /* a host has refused it before */
    T_EQ(driver.state, GPUD_DRIVER_FAILED);
}

T_CASE(awaiting_that_fails)
{
    T_EQ(begin(1, "when broken driver fail await 15\nat 1ms gpu 0 xid 13"), 1);
    hear(GPI_INCIDENT_XID, 0, 13);
    touch("broken");
    hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 15);
    T_CHECK(!fake->await(state, &(struct gpi_incident){ 0 }));
    T_EQ(fake->enumerate(state, rows, GPI_GPUS_MAX, &driver), 1);
    T_EQ(sample(0).reading, GPI_READ_OK);
}

T_CASE(readings)
{
    T_EQ(begin(2, "gpu 0 used=25% temperature=81 foreign 77 1GiB\n"
                  "when lost gpu 0 lost\n"
                  "gpu 1 fail sample 999*2\n"
                  "when hidden driver processes=hidden\n"
                  "when gone driver state=not-loaded\n"),
         2);
    T_EQ(sample(0).reading, GPI_READ_OK);
    T_EQ(sample(0).memory_used, 5ull << 30);
    T_EQ(sample(0).temperature, 81);
    T_EQ(sample(0).user[0].pid, 77);
    T_EQ(sample(1).reading, GPI_READ_REVOKED);
    T_EQ(sample(1).code, 999);
    T_EQ(sample(1).reading, GPI_READ_OK);
    touch("lost");
    T_EQ(sample(0).reading, GPI_READ_LOST);
    T_EQ(sample(1).reading, GPI_READ_OK);
    touch("hidden");
    T_EQ(sample(0).users_known, 0);
    T_EQ(sample(0).n_users, 0);
    touch("gone");
    T_EQ(sample(1).reading, GPI_READ_UNKNOWN);
    T_EQ(sample(1).code, 9);
    T_EQ(sample(2).reading, GPI_READ_UNKNOWN);
}

T_CASE(incidents)
{
    T_EQ(begin(3, "gpu 1 mig=1g.5gb*2\ngpu 0 denied\n"
                  "at 1ms gpu * xid 62\n"
                  "at 2ms gpu 1:1 xid 13\n"
                  "when go gpu 0 lost\n"
                  "when go gpu 2 xid 79 lost\n"
                  "when go after 1ms driver xid 119 deaf\n"),
         4);
    /* of a GPU, and so of what is on it; the denied one is not there */
    hear(GPI_INCIDENT_XID, 0, 62);
    hear(GPI_INCIDENT_XID, 3, 62);
    hear(GPI_INCIDENT_XID, 2, 13);
    touch("go");
    hear(GPI_INCIDENT_XID, 3, 79);
    hear(GPI_INCIDENT_LOST, 3, 0);
    hear(GPI_INCIDENT_XID, GPI_UNKNOWN32, 119);
    hear(GPI_INCIDENT_DEAF, GPI_UNKNOWN32, 999);
    T_CHECK(!fake->await(state, &(struct gpi_incident){ 0 }));
}

/* A script counts from a time that is given, so that all who read it agree. */
T_CASE(counts_from_its_zero)
{
    const uint64_t zero = gpi_now() - T_S(100);
    struct gpi_incident i;

    state = fake->open(1, "at 99s gpu 0 temperature=80 xid 94", zero, &driver);
    T_CHECK(state);
    T_EQ(fake->enumerate(state, rows, GPI_GPUS_MAX, &driver), 1);
    T_EQ(sample(0).temperature, 80);
    T_CHECK(fake->await(state, &i));
    T_EQ(i.at - zero, T_S(99));
}

/* Await rests until the next line: it neither looks nor ends before. */
T_CASE(await_comes_when_it_is_due)
{
    const uint64_t before = gpi_now();
    struct gpi_incident i;

    T_EQ(begin(1, "at 120ms gpu 0 xid 94"), 1);
    T_CHECK(fake->await(state, &i));
    T_CMP(i.at - before, >=, T_MS(120));
    T_CMP(gpi_now(), >=, i.at);
}

static void *sample_in_thread(void *user)
{
    (void)user;
    (void)sample(0);
    t_word_set(1, 1);
    return NULL;
}

/* Hanging ends when the script says so, and other devices are read meanwhile. */
T_CASE(hanging_until_mended)
{
    pthread_t thread;

    T_EQ(begin(2, "gpu 0 hang sample\nwhen mended gpu 0 mend sample"), 2);
    t_thread(&thread, sample_in_thread, NULL);
    T_EQ(t_word_wait_for(1, 1, T_MS(50)), -1);
    touch("mended");
    t_join(thread);
    T_EQ(t_word(1), 1);
}

T_CASE(slow_opening)
{
    const uint64_t before = gpi_now();

    T_EQ(begin(1, "driver slow open 30ms\ndriver state=hung\nat 60ms driver state=ok"), 1);
    T_CMP(gpi_now() - before, >=, T_MS(60));
}
