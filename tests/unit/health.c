/* SPDX-License-Identifier: MIT */
/* health.c - how a device is judged: every event in every state, with what is told; the ways back
 * and their waits. */
#include "device_events.h"

#include "harness.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "gpudispatch/device.h"

/* ---- every event in every state ---- */

/* The columns: how the device was before. */
enum column {
    NEW,
    HEALTHY,
    SUSPECT,
    FAULTY /* an XID */,
    TOLD /* the driver asks for a reset */,
    LOST,
    REVOKED,
    COLUMNS
};

static struct gpi_health prepared(enum column c, uint64_t now)
{
    static const struct {
        enum event e;
    } way[COLUMNS] = { [SUSPECT] = { XID_RESTART },
                       [FAULTY] = { XID_RESET },
                       [TOLD] = { READ_OK_RESET },
                       [LOST] = { FELL_OFF },
                       [REVOKED] = { READ_REVOKED } };
    struct gpi_health h;

    gpi_health_init(&h, GPUD_DEVICE_GPU, now - 3 * GPI_S);
    if (c == NEW)
        return h;
    (void)d_ok(&h, &d_policy, now - 2 * GPI_S);
    if (c != HEALTHY)
        (void)d_happen(&h, way[c].e, now - GPI_S);
    return h;
}

/*
 * A cell: the state afterwards (U, H, S, Q, L, R), the measure (- none, r restart, d drain, f
 * fence, b back) and what became of the evidence (= as it was, + the text of the row, * another).
 */
static const struct {
    enum event e;
    const char *name, *cell[COLUMNS], *text;
} matrix[] = {
/*                                             new    healthy suspect faulty told   lost   revoked
 */
    { XID_IGNORED, "XID 63",                 { "U-=", "H-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" },
      "its last reading is good; 1 XID, last 63" },
    { XID_OF_TASK, "XID 13",                 { "U-=", "H-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" },
      "its last reading is good; 1 XID, last 13" },
    { XID_RESTART, "XID 94",                 { "Sr+", "Sr+", "Sr=", "Q-=", "Q-=", "L-=", "R-=" },
      "XID 94 (contained memory error): its workers are replaced, a canary decides" },
    { XID_RESET, "XID 95",                   { "Qf+", "Qf+", "Qf+", "Q-=", "Q-+", "L-=", "Qf+" },
      "XID 95 (uncontained memory error): it needs a reset, unless canaries pass" },
    { XID_LOST, "XID 79",                    { "Lf+", "Lf+", "Lf+", "L-+", "L-+", "L-+", "Lf+" },
      "XID 79 (fallen off the bus): it gets no task until it is readable again and canaries pass" },
    { XID_UNKNOWN, "XID 500",                { "Sd+", "Sd+", "Sd+", "Q-=", "Q-=", "L-=", "R-=" },
      "XID 500: unknown; its workers end and are replaced, a canary decides" },
    { FELL_OFF, "fell off",                  { "Lf+", "Lf+", "Lf+", "L-+", "L-+", "L-=", "Lf+" },
      "it has fallen off the bus: it gets no task until it is readable again and canaries pass" },
    { WORD_RESET, "asks for a reset",        { "Qf+", "Qf+", "Qf+", "Q-+", "Q-=", "L-+", "Qf+" },
      "the driver reports that it must be reset" },
    { WORD_DRAIN, "asks for drain+reset",    { "Qd+", "Qd+", "Qd+", "Q-+", "Q-+", "L-+", "Qd+" },
      "the driver reports that it must be drained and reset" },
    { WORD_NONE, "asks for nothing",         { "U-=", "H-=", "S-=", "Q-=", "Q-=", "L-=", "R-=" },
      "" },
    { DEAF, "deaf",                          { "U-=", "H-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" },
      "its last reading is good; XIDs cannot be received" },
    { READ_OK, "good",                       { "H-+", "H-=", "S-=", "Q-=", "Q-*", "L-*", "Hb+" },
      "its last reading is good" },
    { READ_OK_NONE, "good, nothing needed",  { "H-+", "H-=", "S-=", "Q-*", "Q-*", "L-*", "Hb+" },
      "its last reading is good" },
    { READ_OK_RESET, "reset needed",         { "Qf+", "Qf+", "Qf+", "Q-+", "Q-=", "Q-+", "Qf+" },
      "the driver reports that it must be reset" },
    { READ_OK_REBOOT, "reboot needed",       { "Qf+", "Qf+", "Qf+", "Q-+", "Q-+", "Q-+", "Qf+" },
      "the driver reports that the machine must be rebooted" },
    { READ_OK_P2P, "drain of P2P needed",    { "Qd+", "Qd+", "Qd+", "Q-+", "Q-+", "Q-+", "Qd+" },
      "the driver reports that traffic between its peers must be drained" },
    { READ_OK_DRAIN, "drain+reset needed",   { "Qd+", "Qd+", "Qd+", "Q-+", "Q-+", "Q-+", "Qd+" },
      "the driver reports that it must be drained and reset" },
    { READ_OK_IMEX, "IMEX domain",           { "H-+", "H-+", "S-=", "Q-=", "Q-*", "L-*", "Hb+" },
      "its last reading is good; the driver requests a recovery of the IMEX domain" },
    { READ_OK_PENDING, "remap pending",      { "H-+", "H-+", "S-=", "Q-=", "Q-*", "L-*", "Hb+" },
      "its last reading is good; a row remap waits for the next reset, which does not disturb "
      "work" },
    { READ_OK_REMAP, "remap failed",         { "Qd+", "Qd+", "Qd+", "Q-+", "Q-+", "Q-+", "Qd+" },
      "a row of its memory could not be remapped: its memory is unreliable" },
    { READ_UNKNOWN, "cannot be read",        { "U-+", "U-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" },
      "it cannot be read (NVML code 999); it still gets tasks" },
    { READ_LOST, "reads lost",               { "Lf+", "Lf+", "Lf+", "L-+", "L-+", "L-+", "Lf+" },
      "the driver reports that it is lost (NVML code 15)" },
    { READ_RESET, "reads reset",             { "Qf+", "Qf+", "Qf+", "Q-+", "Q-+", "Q-+", "Qf+" },
      "the driver reports that it must be reset (NVML code 16)" },
    { READ_REVOKED, "access revoked",        { "R-+", "R-+", "R-+", "Q-=", "Q-=", "L-=", "R-=" },
      "access to it was revoked: its tasks go on, no worker starts" },
    { SILENCE, "silence",                    { "U-+", "U-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" },
      "the driver has not replied to a reading for 7 s; it still gets tasks" },
    { SHORT_SILENCE, "short silence",        { "U-=", "H-=", "S-=", "Q-=", "Q-=", "L-=", "R-=" },
      "" },
    { MONITOR_GONE, "no monitor",            { "U-+", "U-+", "S-=", "Q-=", "Q-=", "L-=", "R-=" },
      "the monitor process has died; it still gets tasks" },
    { PASSED, "canary passed",               { "U-=", "H-=", "H-+", "Q-*", "Q-=", "L-=", "R-=" },
      "a canary has passed" },
    /* of a faulty one: 20 s */
    { FAILED, "canary failed",               { "Qd+", "Qd+", "Qd+", "Q-*", "Q-=", "L-=", "R-=" },
      "its canary failed: 17 is not 42; the next one runs in 10 s" },
    { SUSPECTED, "suspected",                { "S-+", "S-+", "S-+", "Q-=", "Q-=", "L-=", "R-=" },
      "3 workers in a row died there while others did well; a canary decides" },
    { PUT_OUT, "put out",                    { "Qd+", "Qd+", "Qd+", "Q-+", "Q-+", "L-+", "Qd+" },
      "worker 4711 survives SIGKILL" },
    { RETURNED, "return",                    { "U-=", "H-=", "S-=", "Q-=", "Q-=", "L-=", "R-=" },
      "" },
};

static char letter(uint32_t state)
{
    return state < GPUD_HEALTH_COUNT ? "UHSQLR"[state] : '?';
}

static bool check_cell(size_t row, enum column c)
{
    static const char *const columns[COLUMNS] = { "new",  "healthy", "suspect", "faulty",
                                                  "told", "lost",    "revoked" };
    struct gpi_health h = prepared(c, D_START), before = h;
    const char *cell = matrix[row].cell[c];
    const enum gpi_measure m = d_happen(&h, matrix[row].e, D_START);
    const bool same = strcmp(h.evidence, before.evidence) == 0,
               of_row = strcmp(h.evidence, matrix[row].text) == 0;
    char seen[4] = { letter(h.state), "-rdfb"[m], '\0', '\0' };

    seen[2] = same ? '=' : of_row ? '+' : '*';
    if (cell[2] == '+' && of_row)
        seen[2] = '+'; /* it said so before, too */
    if (strcmp(seen, cell) != 0)
        printf("%s, %s: \"%s\", wanted \"%s\": %s\n", matrix[row].name, columns[c], seen, cell,
               h.evidence);
    if (h.since != (h.state == before.state ? before.since : D_START))
        T_FAIL("%s, %s: since", matrix[row].name, columns[c]);
    return strcmp(seen, cell) == 0;
}

T_CASE(every_event_in_every_state)
{
    bool fine = true;

    T_EQ(T_LENGTH(matrix), EVENTS);
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

/* After a fault: a reading is wanted at once, the first canary after 10 s, and two in a row bring
 * it back. */
T_CASE(back_by_canaries)
{
    struct gpi_health h = prepared(HEALTHY, D_START);
    uint64_t now = D_START;

    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_XID, 95, now), GPI_MEASURE_FENCE);
    T_CHECK(!gpi_health_starts(&h) && d_out_of_use(&h));
    expect_times(&h, now, 10, 0);
    T_EQ(d_ok(&h, &d_policy, now + GPI_MS), GPI_MEASURE_NONE);
    expect_times(&h, now, 10, -1);
    now += 10 * GPI_S;
    T_EQ(gpi_health_canary(&h, &d_policy, true, NULL, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED, "1 of 2 canaries in a row have passed");
    expect_times(&h, now, 10, -1);
    T_EQ(h.passes, 1);
    now += 10 * GPI_S;
    T_EQ(gpi_health_canary(&h, &d_policy, true, NULL, now), GPI_MEASURE_RETURN);
    expect(&h, GPUD_HEALTH_HEALTHY, "2 canaries in a row passed");
    expect_times(&h, now, -1, -1);
    T_CHECK(gpi_health_starts(&h) && !h.canary_due);
    T_EQ(h.since, now);
    (void)d_ok(&h, &d_policy, now + GPI_S);
    expect(&h, GPUD_HEALTH_HEALTHY, "its last reading is good; 1 XID, last 95");
    T_EQ(h.since, now);
}

/* Each canary that fails doubles the wait, up to five minutes; one that passes begins a new row. */
T_CASE(waits_double)
{
    static const int wanted[] = { 20, 40, 80, 160, 300, 300, 300 };
    struct gpi_health h = prepared(FAULTY, D_START);
    uint64_t now = D_START + 9 * GPI_S;

    for (unsigned i = 0; i < T_LENGTH(wanted); i++) {
        char text[160];
        T_EQ(h.try_at, now);
        T_EQ(gpi_health_canary(&h, &d_policy, false, "no context", now), GPI_MEASURE_NONE);
        expect_times(&h, now, wanted[i], -1);
        (void)snprintf(text, sizeof(text),
                       "its canary failed: no context; the next one runs in %d s", wanted[i]);
        expect(&h, GPUD_HEALTH_QUARANTINED, text);
        T_EQ(h.failures, i + 1);
        now = h.try_at;
    }
    (void)gpi_health_canary(&h, &d_policy, true, NULL, now);
    T_EQ(gpi_health_canary(&h, &d_policy, false, NULL, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED,
           "its canary failed: no reason reported; the next one runs in 300 s");
    T_EQ(h.passes, 0);
    (void)gpi_health_canary(&h, &d_policy, true, NULL, now);
    T_EQ(gpi_health_canary(&h, &d_policy, true, NULL, now), GPI_MEASURE_RETURN);
}

static void bring_back(struct gpi_health *h, uint64_t now)
{
    (void)d_ok(h, &d_policy, now);
    (void)gpi_health_canary(h, &d_policy, true, NULL, now);
    T_EQ(gpi_health_canary(h, &d_policy, true, NULL, now), GPI_MEASURE_RETURN);
}

static void bring_back_access(struct gpi_health *h, uint64_t now)
{
    T_EQ(d_ok(h, &d_policy, now), GPI_MEASURE_RETURN);
    (void)d_happen(h, PASSED, now);
}

/* A device that comes back and goes again soon waits longer each time; one that was well for five
 * minutes begins anew. */
T_CASE(flapping)
{
    struct gpi_health h = prepared(FAULTY, D_START);
    uint64_t now = D_START;

    bring_back(&h, now);
    now += 60 * GPI_S;
    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_XID, 95, now), GPI_MEASURE_FENCE);
    expect_times(&h, now, 20, 0);
    now += GPI_S;
    bring_back(&h, now);
    now += 60 * GPI_S;
    (void)d_happen(&h, FAILED, now);
    expect_times(&h, now, 40, -1);
    bring_back(&h, now + GPI_S);
    now += 301 * GPI_S;
    (void)d_incident(&h, &d_policy, GPI_INCIDENT_XID, 95, now);
    expect_times(&h, now, 10, 0);
}

/* The same where it does not go out of use: what waited long once does not when it has been well
 * since. */
T_CASE(waits_begin_anew)
{
    struct gpi_health h = prepared(FAULTY, D_START);
    uint64_t now = D_START;

    for (int i = 0; i < 4; i++)
        (void)d_happen(&h, FAILED, now);
    bring_back(&h, now);
    now += 60 * GPI_S;
    (void)d_happen(&h, SUSPECTED, now);
    expect_times(&h, now, 160, -1);
    (void)d_happen(&h, PASSED, now);
    (void)d_happen(&h, READ_REVOKED, now);
    expect_times(&h, now, -1, 300);
    bring_back_access(&h, now);
    now += 300 * GPI_S;
    (void)d_happen(&h, SUSPECTED, now);
    expect_times(&h, now, 10, -1);
    (void)d_happen(&h, PASSED, now);
    (void)d_happen(&h, READ_REVOKED, now);
    expect_times(&h, now, -1, 10);
}

/* A lost device comes back with a reading and canaries: neither is enough alone. */
T_CASE(lost_and_found)
{
    struct gpi_health h = prepared(HEALTHY, D_START);
    uint64_t now = D_START;

    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_LOST, 0, now), GPI_MEASURE_FENCE);
    expect_times(&h, now, -1, 0);
    for (int wait = 10; wait <= 80; wait *= 2) { /* the looks come later and later */
        now = h.look_at + GPI_MS;
        T_EQ(d_reading(&h, &d_policy, GPI_READ_LOST, 15, now), GPI_MEASURE_NONE);
        expect_times(&h, now, -1, wait * 2);
    }
    (void)gpi_health_canary(&h, &d_policy, true, NULL, now);
    (void)gpi_health_canary(&h, &d_policy, true, NULL, now);
    expect(&h, GPUD_HEALTH_LOST,
           "the driver reports that it is lost (NVML code 15), though canaries pass");
    (void)gpi_health_canary(&h, &d_policy, true, NULL, now);
    expect(&h, GPUD_HEALTH_LOST,
           "the driver reports that it is lost (NVML code 15), though canaries pass");
    (void)gpi_health_canary(&h, &d_policy, false, "no device", now);
    now += 500 * GPI_S;
    T_EQ(d_ok(&h, &d_policy, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_LOST,
           "it is readable again; it comes back when 2 canaries in a row have passed");
    expect_times(&h, now, 0, -1);
    T_EQ(gpi_health_canary(&h, &d_policy, true, NULL, now), GPI_MEASURE_NONE);
    T_EQ(gpi_health_canary(&h, &d_policy, true, NULL, now), GPI_MEASURE_RETURN);
    expect(&h, GPUD_HEALTH_HEALTHY, "2 canaries in a row passed");
}

/* Access that was taken away: what runs goes on; a good reading is enough, and the first worker
 * passes a canary. */
T_CASE(revoked_and_granted)
{
    struct gpi_health h = prepared(REVOKED, D_START);

    T_CHECK(!gpi_health_starts(&h));
    T_EQ(h.try_at, GPI_NEVER);
    T_CHECK(h.look_at != GPI_NEVER);
    T_EQ(d_happen(&h, READ_UNKNOWN, D_START), GPI_MEASURE_NONE);
    T_EQ(h.state, GPUD_HEALTH_REVOKED);
    T_EQ(d_happen(&h, RETURNED, D_START), GPI_MEASURE_NONE);
    T_EQ(h.look_at, D_START);
    T_EQ(d_ok(&h, &d_policy, D_START), GPI_MEASURE_RETURN);
    T_CHECK(gpi_health_starts(&h) && h.canary_due);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
}

/* The driver's word goes before the table: while it asks for a reset no canary is tried, and none
 * brings the device back. */
T_CASE(word_forbids)
{
    struct gpi_health h = prepared(FAULTY, D_START);
    uint64_t now = D_START + 5 * GPI_S;

    /* fenced already */
    T_EQ(d_ok_recovery(&h, &d_policy, GPUD_RECOVERY_RESET, now), GPI_MEASURE_NONE);
    T_CHECK(h.speaks_against);
    expect_times(&h, now, -1, 10);
    T_EQ(h.recovery, GPUD_RECOVERY_RESET);
    (void)gpi_health_canary(&h, &d_policy, true, NULL, now);
    T_EQ(gpi_health_canary(&h, &d_policy, true, NULL, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED,
           "the driver reports that it must be reset, though canaries pass");
    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_RECOVERY, GPUD_RECOVERY_NONE, now),
         GPI_MEASURE_NONE);
    T_EQ(h.look_at, now); /* not the incident, the reading decides */
    T_CHECK(h.speaks_against);
    now += GPI_MS;
    T_EQ(d_ok_recovery(&h, &d_policy, GPUD_RECOVERY_NONE, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED,
           "its reading shows no fault any more; it comes back when 2 canaries in a row have "
           "passed");
    expect_times(&h, now, 0, -1);
    T_EQ(gpi_health_canary(&h, &d_policy, true, NULL, now), GPI_MEASURE_RETURN);
}

/* Every recovery action but none and IMEX takes the device out of use, also one that has no name
 * here. */
T_CASE(every_recovery_action)
{
    static const struct {
        uint32_t recovery;
        enum gpi_measure measure;
        const char *evidence;
    } rows[] = {
        { GPUD_RECOVERY_RESET, GPI_MEASURE_FENCE, "the driver reports that it must be reset" },
        { GPUD_RECOVERY_REBOOT, GPI_MEASURE_FENCE,
          "the driver reports that the machine must be rebooted" },
        { GPUD_RECOVERY_DRAIN_P2P, GPI_MEASURE_DRAIN,
          "the driver reports that traffic between its peers must be drained" },
        { GPUD_RECOVERY_DRAIN_RESET, GPI_MEASURE_DRAIN,
          "the driver reports that it must be drained and reset" },
        { GPUD_RECOVERY_BUS_RESET, GPI_MEASURE_FENCE,
          "the driver reports that its PCIe bus must be reset" },
        { GPUD_RECOVERY_SYSTEM_REBOOT, GPI_MEASURE_FENCE,
          "the driver reports that the whole system must be rebooted" },
        { 8, GPI_MEASURE_DRAIN,
          "the driver requests recovery action 8, which is unknown: see nvidia-smi -q" },
        { GPI_UNKNOWN32 - 1, GPI_MEASURE_DRAIN,
          "the driver requests recovery action 4294967294, which is unknown: see nvidia-smi -q" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gpi_health read = prepared(NEW, D_START), heard = prepared(NEW, D_START);
        T_EQ(d_ok_recovery(&read, &d_policy, rows[i].recovery, D_START), rows[i].measure);
        expect(&read, GPUD_HEALTH_QUARANTINED, rows[i].evidence);
        T_EQ(d_incident(&heard, &d_policy, GPI_INCIDENT_RECOVERY, rows[i].recovery, D_START),
             rows[i].measure);
        expect(&heard, GPUD_HEALTH_QUARANTINED, rows[i].evidence);
        T_CHECK(gpi_health_waits(&read) && gpi_health_waits(&heard));
    }
}

/* A driver that is not ready yet says so; events that are heard again are no matter any more. */
T_CASE(not_ready_and_heard_again)
{
    struct gpi_health h = prepared(NEW, D_START);

    (void)d_reading(&h, &d_policy, GPI_READ_UNKNOWN, 27, D_START);
    expect(&h, GPUD_HEALTH_UNKNOWN,
           "it cannot be read (NVML code 27: the system is not ready yet); it still gets tasks");
    (void)d_ok(&h, &d_policy, D_START + 1);
    (void)d_incident(&h, &d_policy, GPI_INCIDENT_DEAF, 999, D_START + 1);
    expect(&h, GPUD_HEALTH_HEALTHY, "its last reading is good; XIDs cannot be received");
    (void)d_incident(&h, &d_policy, GPI_INCIDENT_DEAF, 0, D_START + 1);
    expect(&h, GPUD_HEALTH_HEALTHY, "its last reading is good");
}

/* What waits for a reset: out of use by a reading, by an XID that asks for one, or lost; not what a
 * canary alone keeps out. */
T_CASE(waits_for_a_reset)
{
    static const bool waits[COLUMNS] = { [FAULTY] = true, [TOLD] = true, [LOST] = true };

    for (unsigned i = 0; i < COLUMNS; i++) {
        struct gpi_health h = prepared((enum column)i, D_START);
        T_EQ(gpi_health_waits(&h), waits[i]);
        (void)gpi_health_return(&h, &d_policy, D_START); /* a new reading decides */
        T_CHECK(!gpi_health_waits(&h));
    }
    for (unsigned i = 0; i < 2; i++) {
        struct gpi_health h = prepared(HEALTHY, D_START);
        (void)(i ? gpi_health_canary(&h, &d_policy, false, "x", D_START)
                 : gpi_health_quarantine(&h, &d_policy, "survivor", D_START));
        T_EQ(h.state, GPUD_HEALTH_QUARANTINED);
        T_CHECK(!gpi_health_waits(&h));
    }
}

/* It says that nothing is needed after an XID that the table calls a reset: a canary at once. What
 * it said before does not count. */
T_CASE(word_relents)
{
    struct gpi_health h = prepared(NEW, D_START);
    uint64_t now = D_START;

    (void)d_ok_recovery(&h, &d_policy, GPUD_RECOVERY_NONE, now);
    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_XID, 109, now + 2), GPI_MEASURE_FENCE);
    (void)d_ok_recovery(&h, &d_policy, GPUD_RECOVERY_NONE, now + 1);
    expect_times(&h, now + 2, 10, 0);
    now += 10 * GPI_MS;
    T_EQ(d_ok_recovery(&h, &d_policy, GPUD_RECOVERY_NONE, now), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED,
           "the driver reports that no reset is needed; it comes back when 2 canaries in a row "
           "have passed");
    expect_times(&h, now, 0, -1);
    (void)gpi_health_canary(&h, &d_policy, false, "x", now);
    expect_times(&h, now, 20, -1);
    /* said once: the canary that failed knows better */
    (void)d_ok_recovery(&h, &d_policy, GPUD_RECOVERY_NONE, now + GPI_MS);
    expect_times(&h, now, 20, -1);
    bring_back(&h, now + GPI_S);
    now += 5 * GPI_S;
    /* again, so soon: it waits, twice as long as the last time */
    (void)d_incident(&h, &d_policy, GPI_INCIDENT_XID, 109, now);
    (void)d_ok_recovery(&h, &d_policy, GPUD_RECOVERY_NONE, now + 1);
    expect_times(&h, now, 40, -1);
}

/* A reading that was taken before an incident says nothing about it. */
T_CASE(old_readings)
{
    struct gpi_health h = prepared(HEALTHY, D_START);
    struct gpi_sample s = d_good_sample(D_START - 1);

    (void)d_incident(&h, &d_policy, GPI_INCIDENT_LOST, 0, D_START);
    T_EQ(gpi_health_sample(&h, &d_policy, &s, D_START + GPI_S), GPI_MEASURE_NONE);
    T_CHECK(h.speaks_against);
    T_EQ(h.look_at, D_START);
    s.at = D_START;
    (void)gpi_health_sample(&h, &d_policy, &s, D_START + GPI_S);
    T_CHECK(h.speaks_against);
    s.at = D_START + 1;
    (void)gpi_health_sample(&h, &d_policy, &s, D_START + GPI_S);
    T_CHECK(!h.speaks_against);
}

/* The reading that is wanted after an incident is wanted still when a canary was quicker: what the
 * driver asks for is told there alone. */
T_CASE(a_reading_is_wanted_until_it_comes)
{
    struct gpi_health h = prepared(HEALTHY, D_START);

    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_XID, 94, D_START), GPI_MEASURE_RESTART);
    (void)d_happen(&h, PASSED, D_START + 1);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    expect_times(&h, D_START, -1, 0);
    (void)d_ok(&h, &d_policy, D_START + 2);
    expect_times(&h, D_START, -1, -1);
    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_XID, 95, D_START + 3), GPI_MEASURE_FENCE);
    (void)d_happen(&h, PASSED, D_START + 4);
    (void)d_incident(&h, &d_policy, GPI_INCIDENT_XID, 63, D_START + 5);
    T_EQ(d_happen(&h, PASSED, D_START + 6), GPI_MEASURE_RETURN);
    T_EQ(h.look_at, D_START + 5);
    T_EQ(d_ok_recovery(&h, &d_policy, GPUD_RECOVERY_RESET, D_START + 7), GPI_MEASURE_FENCE);
}

/* The time of an incident is somebody else's word: one that is still to come makes no later reading
 * an old one. */
T_CASE(an_incident_that_is_still_to_come)
{
    struct gpi_health h = prepared(HEALTHY, D_START);
    const struct gpi_incident i = { .kind = GPI_INCIDENT_XID, .number = 63, .at = UINT64_MAX };

    T_EQ(gpi_health_incident(&h, &d_policy, &i, D_START), GPI_MEASURE_NONE);
    T_EQ(h.look_at, D_START);
    T_EQ(d_reading(&h, &d_policy, GPI_READ_LOST, 15, D_START + 1), GPI_MEASURE_FENCE);
    T_EQ(h.state, GPUD_HEALTH_LOST);
    (void)d_ok(&h, &d_policy, D_START + 2);
    T_CHECK(!h.speaks_against);
}

/* After a kill of ours 43 and 45 are expected, for so long, and nothing else is. */
T_CASE(our_own_kills)
{
    struct gpi_health h = prepared(HEALTHY, D_START);

    gpi_health_killed(&h, d_by, D_START);
    T_CHECK(h.canary_due);
    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_XID, 43, D_START + GPI_MS), GPI_MEASURE_NONE);
    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_XID, 45, D_START + 4 * GPI_S), GPI_MEASURE_NONE);
    T_EQ(h.xids, 0);
    expect(&h, GPUD_HEALTH_HEALTHY, "its last reading is good");
    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_XID, 45, D_START + 5 * GPI_S), GPI_MEASURE_NONE);
    T_EQ(h.xids, 1);
    T_EQ(h.last_xid, 45);
    T_EQ(h.last_xid_at, D_START + 5 * GPI_S);
    gpi_health_killed(&h, d_by, D_START + 6 * GPI_S);
    T_EQ(d_incident(&h, &d_policy, GPI_INCIDENT_XID, 95, D_START + 6 * GPI_S), GPI_MEASURE_FENCE);
    T_EQ(h.xids, 2);
    h = prepared(HEALTHY, D_START);
    (void)d_incident(&h, &d_policy, GPI_INCIDENT_XID, 45, D_START); /* no kill at all */
    T_EQ(h.xids, 1);
    T_CHECK(!h.canary_due);
}

/* The stronger measure is asked for once; a weaker one behind it is not. */
T_CASE(measures)
{
    struct gpi_health h = prepared(HEALTHY, D_START);

    T_EQ(d_happen(&h, READ_OK_DRAIN, D_START), GPI_MEASURE_DRAIN);
    T_EQ(d_happen(&h, READ_OK_DRAIN, D_START + 1), GPI_MEASURE_NONE);
    T_EQ(d_happen(&h, READ_OK_RESET, D_START + 2), GPI_MEASURE_FENCE);
    T_EQ(d_happen(&h, READ_OK_DRAIN, D_START + 3), GPI_MEASURE_NONE);
    T_EQ(d_happen(&h, FELL_OFF, D_START + 4), GPI_MEASURE_NONE);
    bring_back(&h, D_START + 5);
    T_EQ(d_happen(&h, READ_OK_DRAIN, D_START + 6), GPI_MEASURE_DRAIN); /* anew */
    h = prepared(HEALTHY, D_START);
    T_EQ(d_happen(&h, XID_RESTART, D_START), GPI_MEASURE_RESTART);
    /* its successors have met it, too */
    T_EQ(d_happen(&h, XID_RESTART, D_START + 1), GPI_MEASURE_RESTART);
    T_EQ(d_happen(&h, XID_UNKNOWN, D_START + 2), GPI_MEASURE_DRAIN);
}

/* SUSPECT: one canary is enough, the next worker's or one by itself. */
T_CASE(suspicion)
{
    struct gpi_health h = prepared(HEALTHY, D_START);

    T_EQ(d_happen(&h, SUSPECTED, D_START), GPI_MEASURE_NONE);
    T_CHECK(h.canary_due && gpi_health_starts(&h));
    expect_times(&h, D_START, 10, -1);
    (void)d_happen(&h, SUSPECTED, D_START + 4 * GPI_S); /* does not put it off */
    expect_times(&h, D_START, 10, -1);
    (void)d_happen(&h, RETURNED, D_START + 5 * GPI_S);
    expect_times(&h, D_START, 5, -1);
    (void)d_happen(&h, READ_UNKNOWN, D_START + 6 * GPI_S);
    T_EQ(h.state, GPUD_HEALTH_SUSPECT);
    (void)d_happen(&h, PASSED, D_START + 7 * GPI_S);
    expect(&h, GPUD_HEALTH_UNKNOWN, "a canary has passed"); /* not healthy: it cannot be read */
    T_CHECK(!h.canary_due);
    expect_times(&h, D_START, -1, -1);
}

/* A canary that fails at any time, after a kill for instance, puts the device out of use. */
T_CASE(canary_after_a_kill)
{
    struct gpi_health h = prepared(HEALTHY, D_START);

    gpi_health_killed(&h, d_by, D_START);
    T_EQ(d_happen(&h, PASSED, D_START), GPI_MEASURE_NONE);
    T_CHECK(!h.canary_due);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    gpi_health_killed(&h, d_by, D_START);
    T_EQ(d_happen(&h, FAILED, D_START), GPI_MEASURE_DRAIN);
    T_CHECK(h.canary_due);
    T_EQ(h.state, GPUD_HEALTH_QUARANTINED);
}

/* What cannot be read comes back as UNKNOWN, and is HEALTHY with the first good reading. */
T_CASE(back_without_readings)
{
    struct gpi_health h = prepared(FAULTY, D_START);

    (void)d_happen(&h, MONITOR_GONE, D_START);
    (void)d_happen(&h, PASSED, D_START);
    T_EQ(d_happen(&h, PASSED, D_START), GPI_MEASURE_RETURN);
    expect(&h, GPUD_HEALTH_UNKNOWN, "2 canaries in a row passed");
    (void)d_ok(&h, &d_policy, D_START + 1);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
}

/* Nothing is for ever: what was lost and cannot be read any more may be tried on request, and
 * canaries decide. */
T_CASE(return_on_request)
{
    struct gpi_health h = prepared(LOST, D_START);

    for (int i = 0; i < 8; i++)
        (void)d_happen(&h, READ_LOST, h.look_at);
    (void)d_happen(&h, MONITOR_GONE, h.look_at);
    T_EQ(d_happen(&h, RETURNED, 2 * D_START), GPI_MEASURE_NONE);
    expect_times(&h, 2 * D_START, 0, 0);
    T_EQ(h.state, GPUD_HEALTH_LOST);
    (void)d_happen(&h, PASSED, 2 * D_START);
    T_EQ(d_happen(&h, PASSED, 2 * D_START), GPI_MEASURE_RETURN);
    h = prepared(TOLD, D_START);
    (void)d_happen(&h, RETURNED, D_START);
    (void)d_happen(&h, READ_OK_RESET, D_START); /* it still says so */
    (void)d_happen(&h, PASSED, D_START);
    T_EQ(d_happen(&h, PASSED, D_START), GPI_MEASURE_NONE);
    T_EQ(h.state, GPUD_HEALTH_QUARANTINED);
}

/* Silence while a reading is wanted puts the next look off; it never makes a fault. */
T_CASE(silence)
{
    struct gpi_health h = prepared(HEALTHY, D_START);

    T_EQ(gpi_health_silence(&h, &d_policy, D_START, D_START + 5 * GPI_S - 1), GPI_MEASURE_NONE);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    T_EQ(gpi_health_silence(&h, &d_policy, D_START, D_START + 5 * GPI_S), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_UNKNOWN,
           "the driver has not replied to a reading for 5 s; it still gets tasks");
    T_CHECK(gpi_health_starts(&h) && !h.canary_due);
    T_EQ(h.since, D_START + 5 * GPI_S);
    (void)gpi_health_silence(&h, &d_policy, D_START, D_START + 700 * GPI_S);
    expect(&h, GPUD_HEALTH_UNKNOWN,
           "the driver has not replied to a reading for 700 s; it still gets tasks");
    T_EQ(h.since, D_START + 5 * GPI_S);
    h = prepared(LOST, D_START);
    (void)gpi_health_silence(&h, &d_policy, D_START - GPI_S, D_START + 10 * GPI_S);
    expect_times(&h, D_START + 10 * GPI_S, -1, 20);
}

/* Where there are to be no canaries, readings decide alone: after the wait, or with the driver's
 * word at once. */
T_CASE(without_canaries)
{
    const struct gpi_health_policy *p = &d_no_canaries;
    struct gpi_health h;
    uint64_t now = D_START;

    gpi_health_init(&h, GPUD_DEVICE_GPU, now);
    (void)d_ok(&h, p, now);
    T_EQ(d_incident(&h, p, GPI_INCIDENT_XID, 95, now), GPI_MEASURE_FENCE);
    T_EQ(d_ok(&h, p, now + 1), GPI_MEASURE_NONE);
    expect_times(&h, now, -1, 10);
    T_CHECK(gpi_health_hopes(&h)); /* though no canary is due */
    T_EQ(d_ok(&h, p, now + 9 * GPI_S), GPI_MEASURE_NONE);
    now += 10 * GPI_S;
    T_EQ(d_ok(&h, p, now), GPI_MEASURE_RETURN);
    expect(&h, GPUD_HEALTH_HEALTHY, "its readings are good again (canaries are off)");
    now += 600 * GPI_S;
    (void)d_incident(&h, p, GPI_INCIDENT_XID, 95, now);
    T_EQ(d_ok_recovery(&h, p, GPUD_RECOVERY_NONE, now + 1), GPI_MEASURE_NONE);
    expect(&h, GPUD_HEALTH_QUARANTINED,
           "the driver reports that no reset is needed; it comes back with the next good reading");
    T_EQ(d_ok_recovery(&h, p, GPUD_RECOVERY_NONE, now + 2), GPI_MEASURE_RETURN);
    T_EQ(d_incident(&h, p, GPI_INCIDENT_XID, 94, now + 3), GPI_MEASURE_RESTART);
    T_EQ(h.state, GPUD_HEALTH_SUSPECT);
    T_EQ(d_ok(&h, p, now + 4), GPI_MEASURE_NONE);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    T_CHECK(!h.canary_due);
}

/* A monitor runs no canary: no reading brings back what an XID has put out of use, but a reset that
 * was asked for and is no more. */
T_CASE(a_looker_clears_no_xid)
{
    static const uint64_t xids[] = { 95, 48 };
    struct gpi_health_policy p = d_no_canaries;
    struct gpi_health h;

    p.looks_only = true;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t now = D_START;
        char words[96];
        gpi_health_init(&h, GPUD_DEVICE_GPU, now);
        (void)d_ok(&h, &p, now);
        (void)d_incident(&h, &p, GPI_INCIDENT_XID, xids[i], now);
        snprintf(words, sizeof words, "XID %u (%s): it needs a reset; no canary was run",
                 (unsigned)xids[i], gpi_xid_text(xids[i]));
        expect(&h, GPUD_HEALTH_QUARANTINED, words);
        for (unsigned k = 0; k < 1000; k++) {
            now += GPI_S;
            T_EQ(d_ok_recovery(&h, &p, k % 2 ? GPUD_RECOVERY_NONE : GPI_UNKNOWN32, now),
                 GPI_MEASURE_NONE);
        }
        expect(&h, GPUD_HEALTH_QUARANTINED, words);
        (void)d_ok_recovery(&h, &p, GPUD_RECOVERY_RESET, ++now);
        (void)d_ok_recovery(&h, &p, GPUD_RECOVERY_NONE, ++now);
        T_EQ(d_ok_recovery(&h, &p, GPUD_RECOVERY_NONE, now + 1), GPI_MEASURE_RETURN);
        T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    }
}

T_CASE(rules_of_the_user)
{
    struct gpi_health_policy p = d_policy;
    struct gpi_health h = prepared(HEALTHY, D_START);

    T_EQ(gpi_xid_rules_read(&p.xids, "79=ignore,13=reset", NULL), 0);
    T_EQ(d_incident(&h, &p, GPI_INCIDENT_XID, 79, D_START), GPI_MEASURE_NONE);
    T_EQ(h.state, GPUD_HEALTH_HEALTHY);
    T_EQ(h.xids, 1);
    T_EQ(d_incident(&h, &p, GPI_INCIDENT_XID, 13, D_START), GPI_MEASURE_FENCE);
    T_EQ(h.state, GPUD_HEALTH_QUARANTINED);
}

/* Where XIDs cannot be heard, a rising count of uncorrectable errors is what there is. */
T_CASE(deaf_and_ecc)
{
    struct gpi_health h = prepared(HEALTHY, D_START);
    struct gpi_sample s = d_good_sample(D_START);

    s.ecc_uncorrected = 7;
    T_EQ(gpi_health_sample(&h, &d_policy, &s, D_START), GPI_MEASURE_NONE);
    s.ecc_uncorrected = 8;
    s.at++;
    T_EQ(gpi_health_sample(&h, &d_policy, &s, D_START), GPI_MEASURE_NONE); /* an XID tells it */
    (void)d_happen(&h, DEAF, D_START);
    s.at++;
    T_EQ(gpi_health_sample(&h, &d_policy, &s, D_START), GPI_MEASURE_NONE);
    s.ecc_uncorrected = 9;
    s.at++;
    T_EQ(gpi_health_sample(&h, &d_policy, &s, D_START), GPI_MEASURE_DRAIN);
    T_CHECK(h.deaf);
    expect(&h, GPUD_HEALTH_SUSPECT,
           "9 uncorrectable memory errors, 8 before; its workers end and are replaced, a canary "
           "decides");
    (void)d_happen(&h, MONITOR_GONE, D_START);
    T_CHECK(!h.deaf); /* the next monitor says so itself */
}

/* A CPU slot has nothing that could fail. */
T_CASE(cpu)
{
    struct gpi_health h, before;

    gpi_health_init(&h, GPUD_DEVICE_CPU, D_START);
    expect(&h, GPUD_HEALTH_HEALTHY, "a CPU slot has no readings");
    before = h;
    for (enum event e = 0; e < EVENTS; e++)
        T_EQ(d_happen(&h, e, D_START + e), GPI_MEASURE_NONE);
    gpi_health_killed(&h, d_by, D_START);
    T_CHECK(memcmp(&h, &before, sizeof(h)) == 0);
    T_CHECK(gpi_health_starts(&h));
}
