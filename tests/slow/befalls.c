/* SPDX-License-Identifier: MIT */
#include "befalls.h"

#include "harness.h"
#include "lots.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const befalls[] = {
    "xid 79 lost", "lost", "needs-reset", "revoked", "denied", "back", "back recovery=none",
    "xid 94", "xid 62 recovery=reset", "xid 95", "xid 48",
    "xid 13", "xid 31", "xid 43", "xid 45", "xid 63", "xid 64", "xid 92", "xid 109", "xid 119",
    "xid 154 recovery=none", "xid 154 recovery=reset", "xid 999",
    "recovery=reset", "recovery=none", "recovery=drain-p2p", "recovery=drain-reset",
    "recovery=bus-reset", "recovery=23", "recovery=unknown", "remap-failed=yes", "remap-failed=no",
    "remap-pending=yes", "remap-failed=unknown", "canary=fail", "canary=fail*2", "canary=ok",
    "hang sample", "mend sample", "slow sample 200ms", "fail sample 15",
    "fail sample 999*3", "fail sample 15*2", "used=100%", "used=0B", "used=50%",
    "foreign 4321 7GiB", "foreign 77 1GiB +1GiB/s", "gone 4321", "gone 77",
    "ecc-uncorrected=3", "ecc-uncorrected=9", "mode=prohibited", "mode=default", "boot=200ms",
    "boot=0", "temperature=unknown", "hang enumerate", "mend enumerate",
};
static const char *const driver_befalls[] = {
    "hang sample", "mend sample", "hang await", "mend await", "deaf", "hang enumerate",
    "mend enumerate", "hang open", "mend open", "xid 79", "xid 94", "xid 999",
    "state=hung", "state=ok", "state=mismatch", "state=none", "state=revoked", "fail await 15*2",
    "slow await 50ms", "slow sample 100ms", "processes=hidden", "processes=shown",
    "fail enumerate 999", "fail open 9",
};

static const char *after(uint64_t *state, char *room, size_t size)
{
    if (once_in(state, 2))
        (void)snprintf(room, size, "at %" PRIu64 "ms", 1 + below(state, 900));
    else if (once_in(state, 3))
        (void)snprintf(room, size, "when trigger%" PRIu64 " after %" PRIu64 "ms",
                       below(state, TRIGGERS), 1 + below(state, 100));
    else
        (void)snprintf(room, size, "when trigger%" PRIu64, below(state, TRIGGERS));
    return room;
}

void write_befalls(const char *name, uint64_t *state, const struct befalls *b)
{
    FILE *out = fopen(name, "we");
    uint64_t lines = below(state, 24), n = b->gpus;
    char when[64];

    T_CHECK(out);
    (void)fprintf(out, "gpu * memory=8GiB boot=%" PRIu64 "ms\n",
                  once_in(state, 3) ? below(state, 60) : 0);
    if (b->drivers)
        (void)fprintf(out, "gpus %" PRIu64 "\n", n);
    if (n > 1 && !b->sets && once_in(state, 6))
        (void)fprintf(out, "gpu 1 mig=1g.10gb*2\n");
    if (b->drivers && once_in(state, 3))
        (void)fprintf(out, "gpu * late=%" PRIu64 "ms\n", below(state, 100));
    for (uint64_t i = 0; i < lines; i++) {
        if (once_in(state, 12))
            (void)fprintf(out, "%s driver %s\n", after(state, when, sizeof when),
                          PICK(state, driver_befalls));
        else if (once_in(state, 8))
            (void)fprintf(out, "%s gpu * %s\n", after(state, when, sizeof when),
                          PICK(state, befalls));
        else
            (void)fprintf(out, "%s gpu %" PRIu64 " %s\n", after(state, when, sizeof when),
                          below(state, n), PICK(state, befalls));
    }
    T_EQ(fclose(out), 0);
}
