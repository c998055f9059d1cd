/* SPDX-License-Identifier: MIT */
/* doctor_devices.c - group devices: each row, and what speaks against it. */
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "tools/cli/out.h"
#include "row.h"
#include "user.h"

#define CONTEXT ((uint64_t)1 << 29) /* what a CUDA context takes, and a little more */

static bool known64(uint64_t v)
{
    return v != GPUD_UNKNOWN64;
}

static bool set(uint32_t flag)
{
    return flag != 0 && flag != GPUD_UNKNOWN32;
}

/* ---- health ---- */

/* nvidia-smi refuses a reset while any process has the GPU open. */
#define RESET_IT                                                                             \
    "let its tasks end, stop nvidia-persistenced (it holds the GPU, too), then: nvidia-smi " \
    "--gpu-reset -i UUID (as root)"

static const struct {
    enum verdict verdict;
    const char *remedy;
} by_health[GPUD_HEALTH_COUNT] = {
    [GPUD_HEALTH_UNKNOWN] = { VERDICT_NOTE, "see the driver above" },
    [GPUD_HEALTH_HEALTHY] = { VERDICT_OK, NULL },
    [GPUD_HEALTH_SUSPECT] = { VERDICT_NOTE, "none: it gets tasks again after a canary has passed" },
    [GPUD_HEALTH_QUARANTINED] = { VERDICT_PROBLEM, RESET_IT },
    [GPUD_HEALTH_LOST] = { VERDICT_PROBLEM, "restart the machine; if it happens again, check "
                                            "power, cabling and seating" },
    [GPUD_HEALTH_REVOKED] = { VERDICT_PROBLEM, "restart the container" },
};

static void check_health(struct doctor *d, const struct gpud_device_info *r)
{
    uint32_t h = r->health < GPUD_HEALTH_COUNT ? r->health : GPUD_HEALTH_UNKNOWN;
    bool told = h != GPUD_HEALTH_HEALTHY && r->evidence[0];
    bool below = h == GPUD_HEALTH_QUARANTINED && (set(r->recovery) || set(r->remap_failed));
    char total[24] = "memory unknown";

    if (known64(r->memory_total))
        bytes_text(r->memory_total, total);
    finding(d, by_health[h].verdict, r->name,
            below ? "see its recovery or its remap below" : by_health[h].remedy,
            "%s%s%s; %s, %s%s%s", gpud_health_name(r->health), told ? ": " : "",
            told ? r->evidence : "", r->model[0] ? r->model : "unknown model", total,
            r->mig_profile[0] ? ", MIG " : "", r->mig_profile);
}

/* ---- settings ---- */

static void check_mode(struct doctor *d, const struct gpud_device_info *r)
{
    if (r->compute_mode == 2)
        finding(d, VERDICT_PROBLEM, r->name, "nvidia-smi -c DEFAULT -i UUID (as root)",
                "compute mode PROHIBITED: CUDA cannot use it");
    else if (r->compute_mode == 3)
        finding(d, VERDICT_NOTE, r->name, "nvidia-smi -c DEFAULT -i UUID (as root)",
                "compute mode EXCLUSIVE_PROCESS: one process at a time, so a canary and "
                "a worker exclude each other");
}

static void check_mig(struct doctor *d, const struct gpud_device_info *r)
{
    unsigned parts = 0;

    for (size_t i = 0; i < d->look.n; i++)
        parts += d->look.row[i].parent_uuid[0] && !strcmp(d->look.row[i].parent_uuid, r->uuid);
    if (parts)
        finding(d, VERDICT_OK, r->name, NULL, "MIG: %u instance%s, which get the tasks", parts,
                parts == 1 ? "" : "s");
}

/* ---- wear and tear ---- */

static void check_recovery(struct doctor *d, const struct gpud_device_info *r)
{
    static const char *const remedy[] = {
        NULL,
        RESET_IT,
        "drain the machine and restart it",
        "end programs that use peer access to it",
        RESET_IT,
        "recover the IMEX domain",
        "let its tasks end, then reset its PCIe bus or restart the machine",
        "drain the machine and restart it",
    };
    const char *name = recovery_name(r->recovery);
    const enum verdict v = r->recovery == GPUD_RECOVERY_IMEX ? VERDICT_NOTE : VERDICT_PROBLEM;

    if (set(r->recovery) && name)
        finding(d, v, r->name, remedy[r->recovery], "the driver requests recovery: %s", name);
    else if (set(r->recovery))
        finding(d, v, r->name, "see the output of nvidia-smi -q",
                "the driver requests recovery: action %u, which is unknown", r->recovery);
}

static void check_facts(struct doctor *d, const struct gpud_device_info *r)
{
    static const struct {
        enum verdict verdict;
        const char *remedy;
    } of[FACT_COUNT] = {
        [FACT_REMAP_FAILED] = { VERDICT_PROBLEM,
                                "run the maker's field diagnosis, then replace it" },
        [FACT_REMAP_PENDING] = { VERDICT_NOTE, "reset it when it is idle: nvidia-smi --gpu-reset "
                                               "-i UUID (as root)" },
        [FACT_ERRORS] = { VERDICT_NOTE, "watch it, and replace it if the number grows" },
        [FACT_HEAT] = { VERDICT_NOTE, "check cooling and power supply" },
    };
    char text[160];

    for (unsigned i = 0; i < FACT_COUNT; i++)
        if (row_fact(r, (enum fact)i, text, sizeof text))
            finding(d, of[i].verdict, r->name, of[i].remedy, "%s", text);
}

static void check_xid(struct doctor *d, const struct gpud_device_info *r)
{
    if (r->last_xid)
        finding(d, VERDICT_NOTE, r->name, "see dmesg, which names the process",
                "XID %u; XIDs received during this check: %u", r->last_xid, r->xids);
}

/* ---- others ---- */

/* Workers of this library are no left-overs while their host lives, and end with it. */
static void check_others(struct doctor *d, const struct gpud_device_info *r)
{
    struct user user[USERS_MAX];
    const struct user *most = NULL;
    const size_t n = set(r->foreign_processes) ? users_of(&d->look, r, user) : 0;
    uint32_t others = n ? r->foreign_processes : 0;
    char text[192];

    for (size_t i = 0; i < n; i++) {
        others -= user[i].worker;
        if (!user[i].worker && !most)
            most = &user[i];
    }
    if (most)
        finding(d, VERDICT_NOTE, r->name, "end them if they are left over (ps -p PID)",
                "%u other process%s it; most memory: %s", others, others == 1 ? " uses" : "es use",
                user_text(most, text, sizeof text));
}

static void check_room(struct doctor *d, const struct gpud_device_info *r)
{
    char size[24];

    if (known64(r->memory_free) && r->memory_free < CONTEXT && !row_is_parent(&d->look, r))
        finding(d, VERDICT_PROBLEM, r->name, "end programs that use its memory",
                "%s of memory free: not enough for a CUDA context",
                bytes_text(r->memory_free, size));
}

/* How many GPUs can take tasks, as far as a look can tell. */
static unsigned usable(const struct look *l)
{
    unsigned n = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct gpud_device_info *r = &l->row[i];
        n += (r->health == GPUD_HEALTH_HEALTHY || r->health == GPUD_HEALTH_SUSPECT) &&
             r->compute_mode != 2 && !row_is_parent(l, r) && r->memory_free >= CONTEXT;
    }
    return n;
}

void check_devices(struct doctor *d)
{
    static void (*const check[])(struct doctor *d, const struct gpud_device_info *r) = {
        check_health, check_mode, check_mig,    check_recovery,
        check_facts,  check_xid,  check_others, check_room,
    };

    if (!d->looked || !d->look.n) {
        finding(d, d->gpu ? VERDICT_PROBLEM : VERDICT_NOTE, "GPUs",
                d->gpu ? "see the driver above" : NULL, "none%s",
                d->looked ? ": only cpu:N and fake:N devices can be used" : " can be read");
        return;
    }
    for (size_t i = 0; i < d->look.n; i++)
        for (size_t j = 0; j < sizeof check / sizeof check[0]; j++)
            check[j](d, &d->look.row[i]);
    if (d->gpu && !usable(&d->look))
        finding(d, VERDICT_PROBLEM, "GPUs", "see each GPU above",
                "none is usable, but --gpu requires one");
}
