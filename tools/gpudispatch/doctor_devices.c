/* SPDX-License-Identifier: MIT */
/* doctor_devices.c - group devices: each row, and what speaks against it. */
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "out.h"

#define HOT (GPUD_THROTTLE_HW_SLOWDOWN | GPUD_THROTTLE_HW_THERMAL | GPUD_THROTTLE_HW_POWER_BRAKE | GPUD_THROTTLE_SW_THERMAL)
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

static const struct {
    enum verdict verdict;
    const char *remedy;
} by_health[GPUD_HEALTH_COUNT] = {
    [GPUD_HEALTH_UNKNOWN] = { VERDICT_NOTE, "see the driver above" },
    [GPUD_HEALTH_HEALTHY] = { VERDICT_OK, NULL },
    [GPUD_HEALTH_SUSPECT] = { VERDICT_NOTE, "nothing: it takes tasks again once a canary has passed" },
    [GPUD_HEALTH_QUARANTINED] = { VERDICT_PROBLEM,
                                  "drain it and reset it: nvidia-smi --gpu-reset -i UUID (as root, with no process on it)" },
    [GPUD_HEALTH_LOST] = { VERDICT_PROBLEM, "restart the machine; if it happens again: power, cabling, seating" },
    [GPUD_HEALTH_REVOKED] = { VERDICT_PROBLEM, "start the container anew" },
};

static void check_health(struct doctor *d, const struct gpud_device_info *r)
{
    uint32_t h = r->health < GPUD_HEALTH_COUNT ? r->health : GPUD_HEALTH_UNKNOWN;
    bool told = h != GPUD_HEALTH_HEALTHY && r->evidence[0];
    char total[24] = "memory unknown";

    if (known64(r->memory_total))
        bytes_text(r->memory_total, total);
    finding(d, by_health[h].verdict, r->name, by_health[h].remedy, "%s%s%s; %s, %s%s%s", gpud_health_name(r->health), told ? ": " : "",
            told ? r->evidence : "", r->model[0] ? r->model : "unknown model", total, r->mig_profile[0] ? ", MIG " : "", r->mig_profile);
}

/* ---- settings ---- */

static void check_mode(struct doctor *d, const struct gpud_device_info *r)
{
    if (r->compute_mode == 2)
        finding(d, VERDICT_PROBLEM, r->name, "nvidia-smi -c DEFAULT -i UUID (as root)", "compute mode PROHIBITED: CUDA may not use it");
    else if (r->compute_mode == 3)
        finding(d, VERDICT_NOTE, r->name, "nvidia-smi -c DEFAULT -i UUID (as root) where several workers are wanted",
                "compute mode EXCLUSIVE_PROCESS: one process at a time");
}

static void check_mig(struct doctor *d, const struct gpud_device_info *r)
{
    unsigned parts = 0;

    for (size_t i = 0; i < d->look.n; i++)
        parts += d->look.row[i].parent_uuid[0] && !strcmp(d->look.row[i].parent_uuid, r->uuid);
    if (parts)
        finding(d, VERDICT_OK, r->name, NULL, "MIG: %u instance%s; work goes to these", parts, parts == 1 ? "" : "s");
}

/* ---- wear and tear ---- */

static void check_recovery(struct doctor *d, const struct gpud_device_info *r)
{
    static const char *const remedy[] = {
        NULL,
        "drain it and reset it: nvidia-smi --gpu-reset -i UUID (as root)",
        "drain the machine and restart it",
        "end what uses peer access to it",
        "let what runs end, then reset it: nvidia-smi --gpu-reset -i UUID (as root)",
        "recover the IMEX domain",
    };
    const char *name = recovery_name(r->recovery);

    if (set(r->recovery))
        finding(d, VERDICT_PROBLEM, r->name, name ? remedy[r->recovery] : "see what nvidia-smi -q says", "the driver asks for recovery: %s",
                name ? name : "of a kind not known here");
}

static void check_memory_faults(struct doctor *d, const struct gpud_device_info *r)
{
    if (set(r->remap_failed))
        finding(d, VERDICT_PROBLEM, r->name, "replace it: run the maker's field diagnosis", "a remap of memory rows has failed");
    if (set(r->remap_pending))
        finding(d, VERDICT_NOTE, r->name, "reset it when it is idle: nvidia-smi --gpu-reset -i UUID (as root)",
                "a remap of memory rows waits for a reset; work may go on");
    if (known64(r->ecc_uncorrected) && r->ecc_uncorrected)
        finding(d, VERDICT_NOTE, r->name, "watch it: more of them, and it should be replaced",
                "%llu uncorrected memory errors since the driver was loaded", (unsigned long long)r->ecc_uncorrected);
}

static void check_xid(struct doctor *d, const struct gpud_device_info *r)
{
    if (r->last_xid)
        finding(d, VERDICT_NOTE, r->name, "see dmesg for the process it names", "XID %u, %u seen while this looked", r->last_xid, r->xids);
}

static void check_heat(struct doctor *d, const struct gpud_device_info *r)
{
    uint64_t why = known64(r->throttle) ? r->throttle & HOT : 0;
    char text[160] = "";

    for (unsigned i = 0; i < 64; i++)
        if (why >> i & 1 && throttle_name(i)) {
            strncat(text, text[0] ? ", " : "", sizeof text - strlen(text) - 1);
            strncat(text, throttle_name(i), sizeof text - strlen(text) - 1);
        }
    if (why && r->temperature != GPUD_UNKNOWN32)
        finding(d, VERDICT_NOTE, r->name, "see to cooling and power supply", "its clocks are held down (%s) at %u C", text, r->temperature);
    else if (why)
        finding(d, VERDICT_NOTE, r->name, "see to cooling and power supply", "its clocks are held down (%s)", text);
}

/* ---- others ---- */

static void check_others(struct doctor *d, const struct gpud_device_info *r)
{
    char size[24] = "memory unknown", who[40] = "";

    if (!set(r->foreign_processes))
        return;
    if (known64(r->memory_foreign))
        bytes_text(r->memory_foreign, size);
    if (r->foreign_pid)
        snprintf(who, sizeof who, ", most by pid %u", r->foreign_pid);
    finding(d, VERDICT_NOTE, r->name, "end them where they are left-overs (ps -p PID)", "%u other process%s it: %s%s",
            r->foreign_processes, r->foreign_processes == 1 ? " uses" : "es use", size, who);
}

static void check_room(struct doctor *d, const struct gpud_device_info *r)
{
    char size[24];

    if (known64(r->memory_free) && r->memory_free < CONTEXT && !row_is_parent(&d->look, r))
        finding(d, VERDICT_PROBLEM, r->name, "end what uses its memory", "%s of memory free: not enough for a CUDA context",
                bytes_text(r->memory_free, size));
}

void check_devices(struct doctor *d)
{
    static void (*const check[])(struct doctor *d, const struct gpud_device_info *r) = {
        check_health, check_mode, check_mig, check_recovery, check_memory_faults, check_xid, check_heat, check_others, check_room,
    };

    if (!d->looked || !d->look.n) {
        finding(d, VERDICT_NOTE, "GPUs", NULL, "none%s", d->looked ? ": only cpu:N and fake:N devices can be used" : " can be looked at");
        return;
    }
    for (size_t i = 0; i < d->look.n; i++)
        for (size_t j = 0; j < sizeof check / sizeof check[0]; j++)
            check[j](d, &d->look.row[i]);
}
