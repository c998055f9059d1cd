/* SPDX-License-Identifier: MIT */
/*
 * health.c - how a device is judged: every event in every state, with what is told; the ways back and their waits; and
 * properties that hold on any walk.
 */
#include "harness.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "device/health.h"
#include "device/kin.h"
#include "gpudispatch/device.h"

static const struct gpi_health_policy policy = { .passes = 2, .backoff = 10 * GPI_S, .backoff_cap = 300 * GPI_S, .own_kill = 5 * GPI_S, .stale = 5 * GPI_S };
static const struct gpi_health_policy no_canaries = { .passes = 0, .backoff = 10 * GPI_S, .backoff_cap = 300 * GPI_S, .own_kill = 5 * GPI_S, .stale = 5 * GPI_S };

#define START (1000 * GPI_S)

/* ---- what can happen ---- */

static struct gpi_sample good_sample(uint64_t at)
{
    return (struct gpi_sample){ .at = at, .reading = GPI_READ_OK, .recovery = GPI_UNKNOWN32, .remap_failed = GPI_UNKNOWN32, .remap_pending = GPI_UNKNOWN32,
                                .ecc_uncorrected = GPI_UNKNOWN64, .ecc_corrected = GPI_UNKNOWN64 };
}

/* When it asks for something by itself. */
static uint64_t next_of(const struct gpi_health *h)
{
    return gpi_time_min(h->try_at, h->look_at);
}

static bool out_of_use(const struct gpi_health *h)
{
    return h->state == GPUD_HEALTH_QUARANTINED || h->state == GPUD_HEALTH_LOST;
}

static enum gpi_measure incident(struct gpi_health *h, const struct gpi_health_policy *p, uint32_t kind, uint64_t number, uint64_t now)
{
    const struct gpi_incident i = { .kind = kind, .number = number, .at = now };

    return gpi_health_incident(h, p, &i, now);
}

static enum gpi_measure reading(struct gpi_health *h, const struct gpi_health_policy *p, uint32_t what, uint32_t code, uint64_t now)
{
    struct gpi_sample s = good_sample(now);

    s.reading = what;
    s.code = code;
    return gpi_health_sample(h, p, &s, now);
}

static enum gpi_measure ok(struct gpi_health *h, const struct gpi_health_policy *p, uint64_t now)
{
    return reading(h, p, GPI_READ_OK, 0, now);
}

static enum gpi_measure ok_recovery(struct gpi_health *h, const struct gpi_health_policy *p, uint32_t recovery, uint64_t now)
{
    struct gpi_sample s = good_sample(now);

    s.recovery = recovery;
    return gpi_health_sample(h, p, &s, now);
}

static enum gpi_measure ok_remap(struct gpi_health *h, const struct gpi_health_policy *p, uint32_t pending, uint32_t failed, uint64_t now)
{
    struct gpi_sample s = good_sample(now);

    s.remap_pending = pending;
    s.remap_failed = failed;
    return gpi_health_sample(h, p, &s, now);
}

enum event {
    XID_IGNORED, XID_OF_TASK, XID_RESTART, XID_RESET, XID_LOST, XID_UNKNOWN, FELL_OFF, WORD_RESET, WORD_DRAIN, WORD_NONE, DEAF,
    READ_OK, READ_OK_NONE, READ_OK_RESET, READ_OK_REBOOT, READ_OK_P2P, READ_OK_DRAIN, READ_OK_IMEX, READ_OK_PENDING, READ_OK_REMAP, READ_UNKNOWN, READ_LOST, READ_RESET, READ_REVOKED,
    SILENCE, SHORT_SILENCE, MONITOR_GONE, PASSED, FAILED, SUSPECTED, PUT_OUT, RETURNED, EVENTS
};

static const struct gpi_health_policy *by = &policy; /* what is judged by */

static enum gpi_measure happen(struct gpi_health *h, enum event e, uint64_t now)
{
    switch (e) {
    case XID_IGNORED: return incident(h, by, GPI_INCIDENT_XID, 63, now);
    case XID_OF_TASK: return incident(h, by, GPI_INCIDENT_XID, 13, now);
    case XID_RESTART: return incident(h, by, GPI_INCIDENT_XID, 94, now);
    case XID_RESET: return incident(h, by, GPI_INCIDENT_XID, 95, now);
    case XID_LOST: return incident(h, by, GPI_INCIDENT_XID, 79, now);
    case XID_UNKNOWN: return incident(h, by, GPI_INCIDENT_XID, 500, now);
    case FELL_OFF: return incident(h, by, GPI_INCIDENT_LOST, 0, now);
    case WORD_RESET: return incident(h, by, GPI_INCIDENT_RECOVERY, GPUD_RECOVERY_RESET, now);
    case WORD_DRAIN: return incident(h, by, GPI_INCIDENT_RECOVERY, GPUD_RECOVERY_DRAIN_RESET, now);
    case WORD_NONE: return incident(h, by, GPI_INCIDENT_RECOVERY, GPUD_RECOVERY_NONE, now);
    case DEAF: return incident(h, by, GPI_INCIDENT_DEAF, 3, now);
    case READ_OK: return ok(h, by, now);
    case READ_OK_NONE: return ok_recovery(h, by, GPUD_RECOVERY_NONE, now);
    case READ_OK_RESET: return ok_recovery(h, by, GPUD_RECOVERY_RESET, now);
    case READ_OK_REBOOT: return ok_recovery(h, by, GPUD_RECOVERY_REBOOT, now);
    case READ_OK_P2P: return ok_recovery(h, by, GPUD_RECOVERY_DRAIN_P2P, now);
    case READ_OK_DRAIN: return ok_recovery(h, by, GPUD_RECOVERY_DRAIN_RESET, now);
    case READ_OK_IMEX: return ok_recovery(h, by, GPUD_RECOVERY_IMEX, now);
    case READ_OK_PENDING: return ok_remap(h, by, 1, 0, now);
    case READ_OK_REMAP: return ok_remap(h, by, 0, 1, now);
    case READ_UNKNOWN: return reading(h, by, GPI_READ_UNKNOWN, 999, now);
    case READ_LOST: return reading(h, by, GPI_READ_LOST, 15, now);
    case READ_RESET: return reading(h, by, GPI_READ_RESET, 16, now);
    case READ_REVOKED: return reading(h, by, GPI_READ_REVOKED, 999, now);
    case SILENCE: return gpi_health_silence(h, by, now - 7 * GPI_S, now);
    case SHORT_SILENCE: return gpi_health_silence(h, by, now - 4 * GPI_S, now);
    case MONITOR_GONE: return gpi_health_silence(h, by, 0, now);
    case PASSED: return gpi_health_canary(h, by, true, "", now);
    case FAILED: return gpi_health_canary(h, by, false, "17 is not 42", now);
    case SUSPECTED: return gpi_health_suspect(h, by, "3 workers in a row died there while others did well", now);
    case PUT_OUT: return gpi_health_quarantine(h, by, "worker 4711 survives SIGKILL", now);
    case RETURNED: return gpi_health_return(h, by, now);
    default: T_FAIL("no event %d", (int)e);
    }
}

/* ---- every event in every state ---- */

/* The columns: how the device was before. */
enum column { NEW, HEALTHY, SUSPECT, FAULTY /* an XID */, TOLD /* the driver asks for a reset */, LOST, REVOKED, COLUMNS };

static struct gpi_health prepared(enum column c, uint64_t now)
{
    static const struct { enum event e; } way[COLUMNS] = { [SUSPECT] = { XID_RESTART }, [FAULTY] = { XID_RESET }, [TOLD] = { READ_OK_RESET }, [LOST] = { FELL_OFF }, [REVOKED] = { READ_REVOKED } };
    struct gpi_health h;

    gpi_health_init(&h, GPUD_DEVICE_GPU, now - 3 * GPI_S);
    if (c == NEW)
        return h;
    (void)ok(&h, &policy, now - 2 * GPI_S);
    if (c != HEALTHY)
        (void)happen(&h, way[c].e, now - GPI_S);
    return h;
}

/*
 * A cell: the state afterwards (U, H, S, Q, L, R), the measure (- none, r restart, d drain, f fence, b back) and what became of the
 * evidence (= as it was, + the text of the row, * another).
 */
static const struct {
    enum event e;
    const char *name, *cell[COLUMNS], *text;
} matrix[] = {
/*                                             new    healthy suspect faulty told   lost   revoked */
    { XID_IGNORED, "XID 63",                 { "U-=", "H-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" }, "its last reading is good; 1 XID seen, last 63" },
    { XID_OF_TASK, "XID 13",                 { "U-=", "H-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" }, "its last reading is good; 1 XID seen, last 13" },
    { XID_RESTART, "XID 94",                 { "Sr+", "Sr+", "Sr=", "Q-=", "Q-=", "L-=", "R-=" }, "XID 94 (contained memory error): its workers are replaced, a canary decides" },
    { XID_RESET, "XID 95",                   { "Qf+", "Qf+", "Qf+", "Q-=", "Q-+", "L-=", "Qf+" }, "XID 95 (uncontained memory error): it needs a reset, or canaries that show that it needs none" },
    { XID_LOST, "XID 79",                    { "Lf+", "Lf+", "Lf+", "L-+", "L-+", "L-+", "Lf+" }, "XID 79 (fallen off the bus): it takes nothing until it answers again and canaries pass" },
    { XID_UNKNOWN, "XID 500",                { "Sd+", "Sd+", "Sd+", "Q-=", "Q-=", "L-=", "R-=" }, "XID 500: not in the table; its workers end and are replaced, a canary decides" },
    { FELL_OFF, "fell off",                  { "Lf+", "Lf+", "Lf+", "L-+", "L-+", "L-=", "Lf+" }, "it has fallen off the bus: it takes nothing until it answers again and canaries pass" },
    { WORD_RESET, "asks for a reset",        { "Qf+", "Qf+", "Qf+", "Q-+", "Q-=", "L-+", "Qf+" }, "the driver says that it must be reset" },
    { WORD_DRAIN, "asks for drain+reset",    { "Qd+", "Qd+", "Qd+", "Q-+", "Q-+", "L-+", "Qd+" }, "the driver says that it must be drained and reset" },
    { WORD_NONE, "asks for nothing",         { "U-=", "H-=", "S-=", "Q-=", "Q-=", "L-=", "R-=" }, "" },
    { DEAF, "deaf",                          { "U-=", "H-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" }, "its last reading is good; XIDs cannot be heard" },
    { READ_OK, "good",                       { "H-+", "H-=", "S-=", "Q-=", "Q-*", "L-*", "Hb+" }, "its last reading is good" },
    { READ_OK_NONE, "good, nothing needed",  { "H-+", "H-=", "S-=", "Q-*", "Q-*", "L-*", "Hb+" }, "its last reading is good" },
    { READ_OK_RESET, "reset needed",         { "Qf+", "Qf+", "Qf+", "Q-+", "Q-=", "Q-+", "Qf+" }, "the driver says that it must be reset" },
    { READ_OK_REBOOT, "reboot needed",       { "Qf+", "Qf+", "Qf+", "Q-+", "Q-+", "Q-+", "Qf+" }, "the driver says that the machine must be rebooted" },
    { READ_OK_P2P, "drain of P2P needed",    { "Qd+", "Qd+", "Qd+", "Q-+", "Q-+", "Q-+", "Qd+" }, "the driver says that traffic between its peers must be drained" },
    { READ_OK_DRAIN, "drain+reset needed",   { "Qd+", "Qd+", "Qd+", "Q-+", "Q-+", "Q-+", "Qd+" }, "the driver says that it must be drained and reset" },
    { READ_OK_IMEX, "IMEX domain",           { "H-+", "H-+", "S-=", "Q-=", "Q-*", "L-*", "Hb+" }, "its last reading is good; the driver asks to recover the IMEX domain" },
    { READ_OK_PENDING, "remap pending",      { "H-+", "H-+", "S-=", "Q-=", "Q-*", "L-*", "Hb+" }, "its last reading is good; a row remap waits for the next reset, which does not disturb work" },
    { READ_OK_REMAP, "remap failed",         { "Qd+", "Qd+", "Qd+", "Q-+", "Q-+", "Q-+", "Qd+" }, "a row of its memory could not be remapped: its memory is not to be trusted" },
    { READ_UNKNOWN, "cannot be read",        { "U-+", "U-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" }, "it cannot be read (NVML code 999); it takes tasks" },
    { READ_LOST, "reads lost",               { "Lf+", "Lf+", "Lf+", "L-+", "L-+", "L-+", "Lf+" }, "the driver says that it is lost (NVML code 15)" },
    { READ_RESET, "reads reset",             { "Qf+", "Qf+", "Qf+", "Q-+", "Q-+", "Q-+", "Qf+" }, "the driver says that it must be reset before it can be used (NVML code 16)" },
    { READ_REVOKED, "access revoked",        { "R-+", "R-+", "R-+", "Q-=", "Q-=", "L-=", "R-=" }, "access to it was taken away: what runs goes on, no worker is started" },
    { SILENCE, "silence",                    { "U-+", "U-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" }, "the driver has not answered a reading for 7 s; it takes tasks" },
    { SHORT_SILENCE, "short silence",        { "U-=", "H-=", "S-=", "Q-=", "Q-=", "L-=", "R-=" }, "" },
    { MONITOR_GONE, "no monitor",            { "U-+", "U-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" }, "the monitor process is gone and nothing is read; it takes tasks" },
    { PASSED, "canary passed",               { "U-=", "H-=", "H-+", "Q-*", "Q-=", "L-=", "R-=" }, "a canary has passed" },
    { FAILED, "canary failed",               { "Qd+", "Qd+", "Qd+", "Q-*", "Q-=", "L-=", "R-=" }, "its canary failed: 17 is not 42; the next one comes in 10 s" }, /* of a faulty one: 20 s */
    { SUSPECTED, "suspected",                { "S-+", "S-+", "S-+", "Q-=", "Q-=", "L-=", "R-=" }, "3 workers in a row died there while others did well; a canary decides" },
    { PUT_OUT, "put out",                    { "Qd+", "Qd+", "Qd+", "Q-+", "Q-+", "L-+", "Qd+" }, "worker 4711 survives SIGKILL" },
    { RETURNED, "return",                    { "U-=", "H-=", "S-=", "Q-=", "Q-=", "L-=", "R-=" }, "" },
};

static char letter(uint32_t state)
{
    return state < GPUD_HEALTH_COUNT ? "UHSQLR"[state] : '?';
}

static bool check_cell(size_t row, enum column c)
{
    static const char *const columns[COLUMNS] = { "new", "healthy", "suspect", "faulty", "told", "lost", "revoked" };
    struct gpi_health h = prepared(c, START), before = h;
    const char *cell = matrix[row].cell[c];
    const enum gpi_measure m = happen(&h, matrix[row].e, START);
    const bool same = strcmp(h.evidence, before.evidence) == 0, of_row = strcmp(h.evidence, matrix[row].text) == 0;
    char seen[4] = { letter(h.state), "-rdfb"[m], '\0', '\0' };

    seen[2] = same ? '=' : of_row ? '+' : '*';
    if (cell[2] == '+' && of_row)
        seen[2] = '+'; /* it said so before, too */
    if (strcmp(seen, cell) != 0)
        printf("%s, %s: \"%s\", wanted \"%s\": %s\n", matrix[row].name, columns[c], seen, cell, h.evidence);
    if (h.since != (h.state == before.state ? before.since : START))
        T_FAIL("%s, %s: since", matrix[row].name, columns[c]);
    return strcmp(seen, cell) == 0;
}

T_CASE(every_event_in_every_state)
{
    bool fine = true;

    T_EQ(sizeof(matrix) / sizeof(matrix[0]), EVENTS);
    for (size_t row = 0; row < EVENTS; row++) {
        T_EQ(matrix[row].e, row);
        for (enum column c = NEW; c < COLUMNS; c++)
            fine &= check_cell(row, c);
    }
    T_CHECK(fine);
}

/* ---- ways back ---- */

static void expect(const struct gpi_health *h, uint32_t state, const char *text)
{
    if (h->state != state)
        T_FAIL("%c, not %c: %s", letter(h->state), letter(state), h->evidence);
    T_TEXT(h->evidence, text);
}

/* The times are told as seconds from `from`; -1 = never. */
static void expect_times(const struct gpi_health *h, uint64_t from, int64_t try_s, int64_t look_s)
{
    T_EQ(h->try_at == GPI_NEVER ? -1 : (int64_t)(h->try_at - from) / (int64_t)GPI_S, try_s);
    T_EQ(h->look_at == GPI_NEVER ? -1 : (int64_t)(h->look_at - from) / (int64_t)GPI_S, look_s);
}

/* After a fault: a reading is wanted at once, the first canary after 10 s, and two in a row bring it back. */
T_CASE(back_by_canaries)
{
    struct gpi_health h = prepared(HEALTHY, START);
    uint64_t now = START;

    T_EQ(incident(&h, &policy, GPI_INCIDENT_XID, 95, now), GPI_MEASURE_FENCE);
    T_CHECK(!gpi_health_starts(&h) && out_of_use(&h));
    expect_times(&h, now, 10, 0);
    T_EQ(ok(&h, &policy, now + GPI_MS), GPI_MEASURE_NONE);
    expect_times(&h, now, 10, -1);
    now += 10 * GPI_S;
    T_EQ(gpi_health_canary(&h, &policy, true, NULL, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED, "1 of 2 canaries in a row have passed");
    expect_times(&h, now, 10, -1);
    T_EQ(h.passes, 1);
    now += 10 * GPI_S;
    T_EQ(gpi_health_canary(&h, &policy, true, NULL, now), GPI_MEASURE_RETURN);
    expect(&h, GPUD_HEALTH_HEALTHY, "2 canaries in a row passed");
    expect_times(&h, now, -1, -1);
    T_CHECK(gpi_health_starts(&h) && !h.canary_due);
    T_EQ(h.since, now);
    (void)ok(&h, &policy, now + GPI_S);
    expect(&h, GPUD_HEALTH_HEALTHY, "its last reading is good; 1 XID seen, last 95");
    T_EQ(h.since, now);
}

/* Each canary that fails doubles the wait, up to five minutes; one that passes begins a new row. */
T_CASE(waits_double)
{
    static const int wanted[] = { 20, 40, 80, 160, 300, 300, 300 };
    struct gpi_health h = prepared(FAULTY, START);
    uint64_t now = START + 9 * GPI_S;

    for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        char text[160];
        T_EQ(h.try_at, now);
        T_EQ(gpi_health_canary(&h, &policy, false, "no context", now), GPI_MEASURE_NONE);
        expect_times(&h, now, wanted[i], -1);
        (void)snprintf(text, sizeof(text), "its canary failed: no context; the next one comes in %d s", wanted[i]);
        expect(&h, GPUD_HEALTH_QUARANTINED, text);
        T_EQ(h.failures, i + 1);
        now = h.try_at;
    }
    (void)gpi_health_canary(&h, &policy, true, NULL, now);
    T_EQ(gpi_health_canary(&h, &policy, false, NULL, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED, "its canary failed: no reason given; the next one comes in 300 s");
    T_EQ(h.passes, 0);
    (void)gpi_health_canary(&h, &policy, true, NULL, now);
    T_EQ(gpi_health_canary(&h, &policy, true, NULL, now), GPI_MEASURE_RETURN);
}

static void bring_back(struct gpi_health *h, uint64_t now)
{
    (void)ok(h, &policy, now);
    (void)gpi_health_canary(h, &policy, true, NULL, now);
    T_EQ(gpi_health_canary(h, &policy, true, NULL, now), GPI_MEASURE_RETURN);
}

static void bring_back_access(struct gpi_health *h, uint64_t now)
{
    T_EQ(ok(h, &policy, now), GPI_MEASURE_RETURN);
    (void)happen(h, PASSED, now);
}

/* A device that comes back and goes again soon waits longer each time; one that was well for five minutes begins anew. */
T_CASE(flapping)
{
    struct gpi_health h = prepared(FAULTY, START);
    uint64_t now = START;

    bring_back(&h, now);
    now += 60 * GPI_S;
    T_EQ(incident(&h, &policy, GPI_INCIDENT_XID, 95, now), GPI_MEASURE_FENCE);
    expect_times(&h, now, 20, 0);
    now += GPI_S;
    bring_back(&h, now);
    now += 60 * GPI_S;
    (void)happen(&h, FAILED, now);
    expect_times(&h, now, 40, -1);
    bring_back(&h, now + GPI_S);
    now += 301 * GPI_S;
    (void)incident(&h, &policy, GPI_INCIDENT_XID, 95, now);
    expect_times(&h, now, 10, 0);
}

/* The same where it does not go out of use: what waited long once does not when it has been well since. */
T_CASE(waits_begin_anew)
{
    struct gpi_health h = prepared(FAULTY, START);
    uint64_t now = START;

    for (int i = 0; i < 4; i++)
        (void)happen(&h, FAILED, now);
    bring_back(&h, now);
    now += 60 * GPI_S;
    (void)happen(&h, SUSPECTED, now);
    expect_times(&h, now, 160, -1);
    (void)happen(&h, PASSED, now);
    (void)happen(&h, READ_REVOKED, now);
    expect_times(&h, now, -1, 300);
    bring_back_access(&h, now);
    now += 300 * GPI_S;
    (void)happen(&h, SUSPECTED, now);
    expect_times(&h, now, 10, -1);
    (void)happen(&h, PASSED, now);
    (void)happen(&h, READ_REVOKED, now);
    expect_times(&h, now, -1, 10);
}

/* A lost device comes back with a reading and canaries: neither is enough alone. */
T_CASE(lost_and_found)
{
    struct gpi_health h = prepared(HEALTHY, START);
    uint64_t now = START;

    T_EQ(incident(&h, &policy, GPI_INCIDENT_LOST, 0, now), GPI_MEASURE_FENCE);
    expect_times(&h, now, -1, 0);
    for (int wait = 10; wait <= 80; wait *= 2) { /* the looks come later and later */
        now = h.look_at + GPI_MS;
        T_EQ(reading(&h, &policy, GPI_READ_LOST, 15, now), GPI_MEASURE_NONE);
        expect_times(&h, now, -1, wait * 2);
    }
    (void)gpi_health_canary(&h, &policy, true, NULL, now);
    (void)gpi_health_canary(&h, &policy, true, NULL, now);
    expect(&h, GPUD_HEALTH_LOST, "the driver says that it is lost (NVML code 15), though canaries pass");
    (void)gpi_health_canary(&h, &policy, true, NULL, now);
    expect(&h, GPUD_HEALTH_LOST, "the driver says that it is lost (NVML code 15), though canaries pass");
    (void)gpi_health_canary(&h, &policy, false, "no device", now);
    now += 500 * GPI_S;
    T_EQ(ok(&h, &policy, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_LOST, "it answers again; it comes back when 2 canaries in a row have passed");
    expect_times(&h, now, 0, -1);
    T_EQ(gpi_health_canary(&h, &policy, true, NULL, now), GPI_MEASURE_NONE);
    T_EQ(gpi_health_canary(&h, &policy, true, NULL, now), GPI_MEASURE_RETURN);
    expect(&h, GPUD_HEALTH_HEALTHY, "2 canaries in a row passed");
}

/* Access that was taken away: what runs goes on; a good reading is enough, and the first worker passes a canary. */
T_CASE(revoked_and_granted)
{
    struct gpi_health h = prepared(REVOKED, START);

    T_CHECK(!gpi_health_starts(&h));
    T_EQ(h.try_at, GPI_NEVER);
    T_CHECK(h.look_at != GPI_NEVER);
    T_EQ(happen(&h, READ_UNKNOWN, START), GPI_MEASURE_NONE);
    T_EQ(h.state, GPUD_HEALTH_REVOKED);
    T_EQ(happen(&h, RETURNED, START), GPI_MEASURE_NONE);
    T_EQ(h.look_at, START);
    T_EQ(ok(&h, &policy, START), GPI_MEASURE_RETURN);
    T_CHECK(gpi_health_starts(&h) && h.canary_due);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
}

/* The driver's word goes before the table: while it asks for a reset no canary is tried, and none brings the device back. */
T_CASE(word_forbids)
{
    struct gpi_health h = prepared(FAULTY, START);
    uint64_t now = START + 5 * GPI_S;

    T_EQ(ok_recovery(&h, &policy, GPUD_RECOVERY_RESET, now), GPI_MEASURE_NONE); /* fenced already */
    T_CHECK(h.speaks_against);
    expect_times(&h, now, -1, 10);
    T_EQ(h.recovery, GPUD_RECOVERY_RESET);
    (void)gpi_health_canary(&h, &policy, true, NULL, now);
    T_EQ(gpi_health_canary(&h, &policy, true, NULL, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED, "the driver says that it must be reset, though canaries pass");
    T_EQ(incident(&h, &policy, GPI_INCIDENT_RECOVERY, GPUD_RECOVERY_NONE, now), GPI_MEASURE_NONE);
    T_EQ(h.look_at, now); /* not the incident, the reading decides */
    T_CHECK(h.speaks_against);
    now += GPI_MS;
    T_EQ(ok_recovery(&h, &policy, GPUD_RECOVERY_NONE, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED, "its reading speaks against it no more; it comes back when 2 canaries in a row have passed");
    expect_times(&h, now, 0, -1);
    T_EQ(gpi_health_canary(&h, &policy, true, NULL, now), GPI_MEASURE_RETURN);
}

/* It says that nothing is needed after an XID that the table calls a reset: a canary at once.  What it said before does not count. */
T_CASE(word_relents)
{
    struct gpi_health h = prepared(NEW, START);
    uint64_t now = START;

    (void)ok_recovery(&h, &policy, GPUD_RECOVERY_NONE, now);
    T_EQ(incident(&h, &policy, GPI_INCIDENT_XID, 109, now + 2), GPI_MEASURE_FENCE);
    (void)ok_recovery(&h, &policy, GPUD_RECOVERY_NONE, now + 1);
    expect_times(&h, now + 2, 10, 0);
    now += 10 * GPI_MS;
    T_EQ(ok_recovery(&h, &policy, GPUD_RECOVERY_NONE, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED, "the driver says that no reset is needed; it comes back when 2 canaries in a row have passed");
    expect_times(&h, now, 0, -1);
    (void)gpi_health_canary(&h, &policy, false, "x", now);
    expect_times(&h, now, 20, -1);
    (void)ok_recovery(&h, &policy, GPUD_RECOVERY_NONE, now + GPI_MS); /* said once: the canary that failed knows better */
    expect_times(&h, now, 20, -1);
    bring_back(&h, now + GPI_S);
    now += 5 * GPI_S;
    (void)incident(&h, &policy, GPI_INCIDENT_XID, 109, now); /* again, so soon: it waits, twice as long as the last time */
    (void)ok_recovery(&h, &policy, GPUD_RECOVERY_NONE, now + 1);
    expect_times(&h, now, 40, -1);
}

/* A reading that was taken before an incident says nothing about it. */
T_CASE(old_readings)
{
    struct gpi_health h = prepared(HEALTHY, START);
    struct gpi_sample s = good_sample(START - 1);

    (void)incident(&h, &policy, GPI_INCIDENT_LOST, 0, START);
    T_EQ(gpi_health_sample(&h, &policy, &s, START + GPI_S), GPI_MEASURE_NONE);
    T_CHECK(h.speaks_against);
    T_EQ(h.look_at, START);
    s.at = START;
    (void)gpi_health_sample(&h, &policy, &s, START + GPI_S);
    T_CHECK(h.speaks_against);
    s.at = START + 1;
    (void)gpi_health_sample(&h, &policy, &s, START + GPI_S);
    T_CHECK(!h.speaks_against);
}

/* The reading that is wanted after an incident is wanted still when a canary was quicker: what the driver asks for is told there alone. */
T_CASE(a_reading_is_wanted_until_it_comes)
{
    struct gpi_health h = prepared(HEALTHY, START);

    T_EQ(incident(&h, &policy, GPI_INCIDENT_XID, 94, START), GPI_MEASURE_RESTART);
    (void)happen(&h, PASSED, START + 1);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    expect_times(&h, START, -1, 0);
    (void)ok(&h, &policy, START + 2);
    expect_times(&h, START, -1, -1);
    T_EQ(incident(&h, &policy, GPI_INCIDENT_XID, 95, START + 3), GPI_MEASURE_FENCE);
    (void)happen(&h, PASSED, START + 4);
    (void)incident(&h, &policy, GPI_INCIDENT_XID, 63, START + 5);
    T_EQ(happen(&h, PASSED, START + 6), GPI_MEASURE_RETURN);
    T_EQ(h.look_at, START + 5);
    T_EQ(ok_recovery(&h, &policy, GPUD_RECOVERY_RESET, START + 7), GPI_MEASURE_FENCE);
}

/* The time of an incident is somebody else's word: one that is still to come makes no later reading an old one. */
T_CASE(an_incident_that_is_still_to_come)
{
    struct gpi_health h = prepared(HEALTHY, START);
    const struct gpi_incident i = { .kind = GPI_INCIDENT_XID, .number = 63, .at = UINT64_MAX };

    T_EQ(gpi_health_incident(&h, &policy, &i, START), GPI_MEASURE_NONE);
    T_EQ(h.look_at, START);
    T_EQ(reading(&h, &policy, GPI_READ_LOST, 15, START + 1), GPI_MEASURE_FENCE);
    T_EQ(h.state, GPUD_HEALTH_LOST);
    (void)ok(&h, &policy, START + 2);
    T_CHECK(!h.speaks_against);
}

/* After a kill of ours 43 and 45 are expected, for so long, and nothing else is. */
T_CASE(our_own_kills)
{
    struct gpi_health h = prepared(HEALTHY, START);

    gpi_health_killed(&h, by, START);
    T_CHECK(h.canary_due);
    T_EQ(incident(&h, &policy, GPI_INCIDENT_XID, 43, START + GPI_MS), GPI_MEASURE_NONE);
    T_EQ(incident(&h, &policy, GPI_INCIDENT_XID, 45, START + 4 * GPI_S), GPI_MEASURE_NONE);
    T_EQ(h.xids, 0);
    expect(&h, GPUD_HEALTH_HEALTHY, "its last reading is good");
    T_EQ(incident(&h, &policy, GPI_INCIDENT_XID, 45, START + 5 * GPI_S), GPI_MEASURE_NONE);
    T_EQ(h.xids, 1);
    T_EQ(h.last_xid, 45);
    T_EQ(h.last_xid_at, START + 5 * GPI_S);
    gpi_health_killed(&h, by, START + 6 * GPI_S);
    T_EQ(incident(&h, &policy, GPI_INCIDENT_XID, 95, START + 6 * GPI_S), GPI_MEASURE_FENCE);
    T_EQ(h.xids, 2);
    h = prepared(HEALTHY, START);
    (void)incident(&h, &policy, GPI_INCIDENT_XID, 45, START); /* no kill at all */
    T_EQ(h.xids, 1);
    T_CHECK(!h.canary_due);
}

/* The stronger measure is asked for once; a weaker one behind it is not. */
T_CASE(measures)
{
    struct gpi_health h = prepared(HEALTHY, START);

    T_EQ(happen(&h, READ_OK_DRAIN, START), GPI_MEASURE_DRAIN);
    T_EQ(happen(&h, READ_OK_DRAIN, START + 1), GPI_MEASURE_NONE);
    T_EQ(happen(&h, READ_OK_RESET, START + 2), GPI_MEASURE_FENCE);
    T_EQ(happen(&h, READ_OK_DRAIN, START + 3), GPI_MEASURE_NONE);
    T_EQ(happen(&h, FELL_OFF, START + 4), GPI_MEASURE_NONE);
    bring_back(&h, START + 5);
    T_EQ(happen(&h, READ_OK_DRAIN, START + 6), GPI_MEASURE_DRAIN); /* anew */
    h = prepared(HEALTHY, START);
    T_EQ(happen(&h, XID_RESTART, START), GPI_MEASURE_RESTART);
    T_EQ(happen(&h, XID_RESTART, START + 1), GPI_MEASURE_RESTART); /* its successors have met it, too */
    T_EQ(happen(&h, XID_UNKNOWN, START + 2), GPI_MEASURE_DRAIN);
}

/* SUSPECT: one canary is enough, the next worker's or one by itself. */
T_CASE(suspicion)
{
    struct gpi_health h = prepared(HEALTHY, START);

    T_EQ(happen(&h, SUSPECTED, START), GPI_MEASURE_NONE);
    T_CHECK(h.canary_due && gpi_health_starts(&h));
    expect_times(&h, START, 10, -1);
    (void)happen(&h, SUSPECTED, START + 4 * GPI_S); /* does not put it off */
    expect_times(&h, START, 10, -1);
    (void)happen(&h, RETURNED, START + 5 * GPI_S);
    expect_times(&h, START, 5, -1);
    (void)happen(&h, READ_UNKNOWN, START + 6 * GPI_S);
    T_EQ(h.state, GPUD_HEALTH_SUSPECT);
    (void)happen(&h, PASSED, START + 7 * GPI_S);
    expect(&h, GPUD_HEALTH_UNKNOWN, "a canary has passed"); /* not healthy: it cannot be read */
    T_CHECK(!h.canary_due);
    expect_times(&h, START, -1, -1);
}

/* A canary that fails at any time, after a kill for instance, puts the device out of use. */
T_CASE(canary_after_a_kill)
{
    struct gpi_health h = prepared(HEALTHY, START);

    gpi_health_killed(&h, by, START);
    T_EQ(happen(&h, PASSED, START), GPI_MEASURE_NONE);
    T_CHECK(!h.canary_due);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    gpi_health_killed(&h, by, START);
    T_EQ(happen(&h, FAILED, START), GPI_MEASURE_DRAIN);
    T_CHECK(h.canary_due);
    T_EQ(h.state, GPUD_HEALTH_QUARANTINED);
}

/* What cannot be read comes back as UNKNOWN, and is HEALTHY with the first good reading. */
T_CASE(back_without_readings)
{
    struct gpi_health h = prepared(FAULTY, START);

    (void)happen(&h, MONITOR_GONE, START);
    (void)happen(&h, PASSED, START);
    T_EQ(happen(&h, PASSED, START), GPI_MEASURE_RETURN);
    expect(&h, GPUD_HEALTH_UNKNOWN, "2 canaries in a row passed");
    (void)ok(&h, &policy, START + 1);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
}

/* Nothing is for ever: what was lost and cannot be read any more may be tried on request, and canaries decide. */
T_CASE(return_on_request)
{
    struct gpi_health h = prepared(LOST, START);

    for (int i = 0; i < 8; i++)
        (void)happen(&h, READ_LOST, h.look_at);
    (void)happen(&h, MONITOR_GONE, h.look_at);
    T_EQ(happen(&h, RETURNED, 2 * START), GPI_MEASURE_NONE);
    expect_times(&h, 2 * START, 0, 0);
    T_EQ(h.state, GPUD_HEALTH_LOST);
    (void)happen(&h, PASSED, 2 * START);
    T_EQ(happen(&h, PASSED, 2 * START), GPI_MEASURE_RETURN);
    h = prepared(TOLD, START);
    (void)happen(&h, RETURNED, START);
    (void)happen(&h, READ_OK_RESET, START); /* it still says so */
    (void)happen(&h, PASSED, START);
    T_EQ(happen(&h, PASSED, START), GPI_MEASURE_NONE);
    T_EQ(h.state, GPUD_HEALTH_QUARANTINED);
}

/* Silence while a reading is wanted puts the next look off; it never makes a fault. */
T_CASE(silence)
{
    struct gpi_health h = prepared(HEALTHY, START);

    T_EQ(gpi_health_silence(&h, &policy, START, START + 5 * GPI_S - 1), GPI_MEASURE_NONE);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    T_EQ(gpi_health_silence(&h, &policy, START, START + 5 * GPI_S), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_UNKNOWN, "the driver has not answered a reading for 5 s; it takes tasks");
    T_CHECK(gpi_health_starts(&h) && !h.canary_due);
    T_EQ(h.since, START + 5 * GPI_S);
    (void)gpi_health_silence(&h, &policy, START, START + 700 * GPI_S);
    expect(&h, GPUD_HEALTH_UNKNOWN, "the driver has not answered a reading for 700 s; it takes tasks");
    T_EQ(h.since, START + 5 * GPI_S);
    h = prepared(LOST, START);
    (void)gpi_health_silence(&h, &policy, START - GPI_S, START + 10 * GPI_S);
    expect_times(&h, START + 10 * GPI_S, -1, 20);
}

/* Where there are to be no canaries, readings decide alone: after the wait, or with the driver's word at once. */
T_CASE(without_canaries)
{
    const struct gpi_health_policy *p = &no_canaries;
    struct gpi_health h;
    uint64_t now = START;

    gpi_health_init(&h, GPUD_DEVICE_GPU, now);
    (void)ok(&h, p, now);
    T_EQ(incident(&h, p, GPI_INCIDENT_XID, 95, now), GPI_MEASURE_FENCE);
    T_EQ(ok(&h, p, now + 1), GPI_MEASURE_NONE);
    expect_times(&h, now, -1, 10);
    T_CHECK(gpi_health_hopes(&h)); /* though no canary is due */
    T_EQ(ok(&h, p, now + 9 * GPI_S), GPI_MEASURE_NONE);
    now += 10 * GPI_S;
    T_EQ(ok(&h, p, now), GPI_MEASURE_RETURN);
    expect(&h, GPUD_HEALTH_HEALTHY, "its readings are good again (no canary was asked for)");
    now += 600 * GPI_S;
    (void)incident(&h, p, GPI_INCIDENT_XID, 95, now);
    T_EQ(ok_recovery(&h, p, GPUD_RECOVERY_NONE, now + 1), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED, "the driver says that no reset is needed; it comes back with the next good reading");
    T_EQ(ok_recovery(&h, p, GPUD_RECOVERY_NONE, now + 2), GPI_MEASURE_RETURN);
    T_EQ(incident(&h, p, GPI_INCIDENT_XID, 94, now + 3), GPI_MEASURE_RESTART);
    T_EQ(h.state, GPUD_HEALTH_SUSPECT);
    T_EQ(ok(&h, p, now + 4), GPI_MEASURE_NONE);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    T_CHECK(!h.canary_due);
}

T_CASE(rules_of_the_user)
{
    struct gpi_health_policy p = policy;
    struct gpi_health h = prepared(HEALTHY, START);

    T_EQ(gpi_xid_rules_read(&p.xids, "79=ignore,13=reset", NULL), 0);
    T_EQ(incident(&h, &p, GPI_INCIDENT_XID, 79, START), GPI_MEASURE_NONE);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    T_EQ(h.xids, 1);
    T_EQ(incident(&h, &p, GPI_INCIDENT_XID, 13, START), GPI_MEASURE_FENCE);
    T_EQ(h.state, GPUD_HEALTH_QUARANTINED);
}

/* Where XIDs cannot be heard, a rising count of uncorrectable errors is what there is. */
T_CASE(deaf_and_ecc)
{
    struct gpi_health h = prepared(HEALTHY, START);
    struct gpi_sample s = good_sample(START);

    s.ecc_uncorrected = 7;
    T_EQ(gpi_health_sample(&h, &policy, &s, START), GPI_MEASURE_NONE);
    s.ecc_uncorrected = 8;
    s.at++;
    T_EQ(gpi_health_sample(&h, &policy, &s, START), GPI_MEASURE_NONE); /* an XID tells it */
    (void)happen(&h, DEAF, START);
    s.at++;
    T_EQ(gpi_health_sample(&h, &policy, &s, START), GPI_MEASURE_NONE);
    s.ecc_uncorrected = 9;
    s.at++;
    T_EQ(gpi_health_sample(&h, &policy, &s, START), GPI_MEASURE_DRAIN);
    T_CHECK(h.deaf);
    expect(&h, GPUD_HEALTH_SUSPECT, "9 uncorrectable memory errors, 8 before; its workers end and are replaced, a canary decides");
    (void)happen(&h, MONITOR_GONE, START);
    T_CHECK(!h.deaf); /* the next monitor says so itself */
}

/* A CPU slot has nothing that could fail. */
T_CASE(cpu)
{
    struct gpi_health h, before;

    gpi_health_init(&h, GPUD_DEVICE_CPU, START);
    expect(&h, GPUD_HEALTH_HEALTHY, "a CPU slot has nothing to read");
    before = h;
    for (enum event e = 0; e < EVENTS; e++)
        T_EQ(happen(&h, e, START + e), GPI_MEASURE_NONE);
    gpi_health_killed(&h, by, START);
    T_CHECK(memcmp(&h, &before, sizeof(h)) == 0);
    T_CHECK(gpi_health_starts(&h));
}

/* ---- whom it concerns ---- */

static struct gpi_device device(uint32_t kind, uint32_t index, uint32_t mig, const char *uuid)
{
    struct gpi_device d = { .kind = kind, .index = index, .mig_index = mig };

    (void)snprintf(d.uuid, sizeof(d.uuid), "%s", uuid);
    return d;
}

/* A lost device marks every handle on that physical GPU; a contained fault its instance alone. */
T_CASE(concerns)
{
    const struct gpi_device gpu = device(GPUD_DEVICE_GPU, 0, GPI_UNKNOWN32, "GPU-0"), other = device(GPUD_DEVICE_GPU, 1, GPI_UNKNOWN32, "GPU-1"),
                            a = device(GPUD_DEVICE_MIG, 0, 0, "MIG-a"), b = device(GPUD_DEVICE_MIG, 0, 1, "MIG-b"), cpu = device(GPUD_DEVICE_CPU, 0, 0, "cpu:0"),
                            fake = device(GPUD_DEVICE_FAKE, 0, GPI_UNKNOWN32, "GPU-f0"), fake2 = device(GPUD_DEVICE_FAKE, 1, GPI_UNKNOWN32, "GPU-f1"),
                            part = device(GPUD_DEVICE_FAKE, 1, 0, "MIG-f0"), part2 = device(GPUD_DEVICE_FAKE, 1, 1, "MIG-f1");
    const struct gpi_incident contained = { .kind = GPI_INCIDENT_XID, .number = 94 }, uncontained = { .kind = GPI_INCIDENT_XID, .number = 95 },
                              lost = { .kind = GPI_INCIDENT_LOST }, fell = { .kind = GPI_INCIDENT_XID, .number = 79 }, word = { .kind = GPI_INCIDENT_RECOVERY, .number = 1 };
    struct gpi_xid_rules rules;

    T_CHECK(gpi_incident_concerns(&contained, NULL, &a, &a));
    T_CHECK(!gpi_incident_concerns(&contained, NULL, &a, &b));
    T_CHECK(!gpi_incident_concerns(&contained, NULL, &a, &gpu));
    T_CHECK(gpi_incident_concerns(&contained, NULL, &gpu, &a)); /* told of the whole GPU */
    T_CHECK(gpi_incident_concerns(&uncontained, NULL, &a, &b));
    T_CHECK(gpi_incident_concerns(&fell, NULL, &a, &b));
    T_CHECK(gpi_incident_concerns(&lost, NULL, &a, &b));
    T_CHECK(gpi_incident_concerns(&word, NULL, &a, &b));
    T_CHECK(!gpi_incident_concerns(&lost, NULL, &gpu, &other));
    T_CHECK(!gpi_incident_concerns(&lost, NULL, &other, &a));
    T_CHECK(gpi_incident_concerns(&contained, NULL, NULL, &a)); /* nobody knows where: all */
    T_CHECK(gpi_incident_concerns(&lost, NULL, NULL, &fake));
    T_CHECK(!gpi_incident_concerns(&lost, NULL, NULL, &cpu));
    T_CHECK(gpi_incident_concerns(&lost, NULL, &fake, &fake));
    T_CHECK(!gpi_incident_concerns(&lost, NULL, &fake, &fake2));
    T_CHECK(!gpi_incident_concerns(&lost, NULL, &fake, &gpu));
    T_CHECK(gpi_incident_concerns(&lost, NULL, &part, &part2));
    T_CHECK(!gpi_incident_concerns(&contained, NULL, &part, &part2));
    T_CHECK(gpi_incident_concerns(&contained, NULL, &fake2, &part2));
    T_EQ(gpi_xid_rules_read(&rules, "94=reset,95=restart", NULL), 0);
    T_CHECK(gpi_incident_concerns(&contained, &rules, &a, &b));
    T_CHECK(!gpi_incident_concerns(&uncontained, &rules, &a, &b));
}

/* ---- any walk ---- */

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* What must hold after each step, whatever came before. */
static void check_step(const struct gpi_health *before, const struct gpi_health *h, enum gpi_measure m, bool last_reading_ok, uint64_t now)
{
    T_CHECK(h->state < GPUD_HEALTH_COUNT);
    T_CHECK(h->state != GPUD_HEALTH_HEALTHY || last_reading_ok);
    T_CHECK(h->evidence[0] && memchr(h->evidence, '\0', sizeof(h->evidence)));
    T_EQ(h->since, h->state == before->state ? before->since : now);
    T_EQ(gpi_health_starts(h), !out_of_use(h) && h->state != GPUD_HEALTH_REVOKED);
    /* nothing is for ever: there is a next try or a next look, within the longest wait */
    if (!gpi_health_starts(h))
        T_CMP(next_of(h), <=, now + policy.backoff_cap);
    T_EQ(gpi_health_hopes(h), gpi_health_starts(h) || h->try_at != GPI_NEVER);
    if (h->state == GPUD_HEALTH_SUSPECT)
        T_CHECK(h->canary_due && h->try_at != GPI_NEVER);
    T_CHECK(h->try_at == GPI_NEVER || out_of_use(h) || h->state == GPUD_HEALTH_SUSPECT);
    T_CHECK(h->try_at == GPI_NEVER || !h->speaks_against);
    T_CMP(h->passes, <=, out_of_use(h) ? 1000 : 0);
    /* measures: who leaves is drained or fenced, who comes is returned, and nobody is returned who was there */
    if (m == GPI_MEASURE_RETURN)
        T_CHECK(!gpi_health_starts(before) && gpi_health_starts(h) && !h->speaks_against);
    else
        T_CHECK(gpi_health_starts(before) || !gpi_health_starts(h));
    if (!out_of_use(before) && out_of_use(h))
        T_CHECK(m == GPI_MEASURE_DRAIN || m == GPI_MEASURE_FENCE);
    if (m == GPI_MEASURE_FENCE)
        T_CHECK(out_of_use(h));
    if (m == GPI_MEASURE_DRAIN)
        T_CHECK(out_of_use(h) || h->state == GPUD_HEALTH_SUSPECT);
    if (m == GPI_MEASURE_RESTART)
        T_EQ(h->state, GPUD_HEALTH_SUSPECT);
    if (out_of_use(before) && m == GPI_MEASURE_RETURN)
        T_CMP(before->passes + 1, >=, policy.passes);
}

/* Moves that come of the waits: a try or a look when its time has come, or whatever it may be. */
static enum event next_event(const struct gpi_health *h, uint64_t now, uint64_t *seed)
{
    if (draw(seed) % 4 == 0 && h->try_at <= now)
        return draw(seed) % 3 ? PASSED : FAILED;
    return (enum event)(draw(seed) % EVENTS);
}

T_LONG_CASE(random_walks, 120)
{
    uint64_t seed = 0x9e3779b97f4a7c15U;
    unsigned seen[GPUD_HEALTH_COUNT] = { 0 }, returns = 0;

    for (int walk = 0; walk < 4000; walk++) {
        struct gpi_health h;
        uint64_t now = START;
        bool readable = false;

        gpi_health_init(&h, walk % 2 ? GPUD_DEVICE_GPU : GPUD_DEVICE_FAKE, now);
        for (int step = 0; step < 200; step++) {
            const struct gpi_health before = h;
            enum event e;
            enum gpi_measure m;
            now += 1 + draw(&seed) % (draw(&seed) % 8 ? 2 * GPI_S : 400 * GPI_S);
            if (draw(&seed) % 16 == 0) {
                gpi_health_killed(&h, by, now);
                continue;
            }
            e = next_event(&h, now, &seed);
            m = happen(&h, e, now);
            if (e >= READ_OK && e <= READ_REVOKED)
                readable = e < READ_UNKNOWN;
            else if (e == SILENCE || e == MONITOR_GONE)
                readable = false;
            check_step(&before, &h, m, readable, now);
            seen[h.state]++;
            returns += m == GPI_MEASURE_RETURN;
        }
    }
    for (unsigned i = 0; i < GPUD_HEALTH_COUNT; i++)
        T_CMP(seen[i], >, 1000);
    T_CMP(returns, >, 1000);
}

/* From wherever a walk has led, a device that is well again comes back within its waits, by what it asks for itself. */
T_LONG_CASE(a_way_back_from_anywhere, 120)
{
    uint64_t seed = 0x2545f4914f6cdd1dU;

    for (int walk = 0; walk < 20000; walk++) {
        struct gpi_health h;
        uint64_t now = START;

        gpi_health_init(&h, GPUD_DEVICE_GPU, now);
        for (uint64_t step = draw(&seed) % 40; step > 0; step--) {
            now += 1 + draw(&seed) % (100 * GPI_S);
            (void)happen(&h, next_event(&h, now, &seed), now);
        }
        for (int step = 0; !gpi_health_starts(&h); step++) {
            const uint64_t next = next_of(&h);
            T_CMP(step, <, 8);
            now = 1 + (next > now ? next : now);
            if (h.try_at <= now)
                (void)happen(&h, PASSED, now);
            else
                (void)ok(&h, &policy, now);
        }
    }
}

/* The same where there are no canaries: readings alone lead back. */
T_LONG_CASE(a_way_back_without_canaries, 120)
{
    uint64_t seed = 0x9e3779b97f4a7c15U;

    by = &no_canaries;
    for (int walk = 0; walk < 20000; walk++) {
        struct gpi_health h;
        uint64_t now = START;

        gpi_health_init(&h, GPUD_DEVICE_GPU, now);
        for (uint64_t step = draw(&seed) % 40; step > 0; step--) {
            enum event e = (enum event)(draw(&seed) % EVENTS);
            now += 1 + draw(&seed) % (100 * GPI_S);
            (void)happen(&h, e, now);
            T_EQ(h.try_at, GPI_NEVER);
            if (draw(&seed) % 16 == 0)
                gpi_health_killed(&h, by, now);
            T_CHECK(!h.canary_due); /* nobody could ever pass it */
            if (!gpi_health_starts(&h) || h.state == GPUD_HEALTH_SUSPECT)
                T_CMP(h.look_at, <=, now + by->backoff_cap);
        }
        for (int step = 0; !gpi_health_starts(&h) || h.state == GPUD_HEALTH_SUSPECT; step++) {
            const uint64_t next = next_of(&h);
            T_CMP(step, <, 4);
            now = 1 + (next > now ? next : now);
            (void)ok(&h, by, now);
        }
        T_EQ(h.state == GPUD_HEALTH_HEALTHY, h.readable);
    }
}
