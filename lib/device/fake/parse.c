/* SPDX-License-Identifier: MIT */
/* parse.c - makes a script of its text: defaults, then line after line, then the checks across
 * lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/failure.h"
#include "device/fake/grammar.h"

/* ---- defaults ---- */

static void defaults(struct gpi_script *s)
{
    (void)snprintf(s->version, sizeof(s->version), "570.86.15");
    (void)snprintf(s->nvml, sizeof(s->nvml), "12.570.86.15");
    s->cuda_version = 12080;
    s->entry_size = 24;
    for (uint32_t i = 0; i < GPI_GPUS_MAX; i++) {
        struct gpi_script_gpu *g = &s->gpu[i];
        g->memory = 16ull << 30;
        g->major = 9;
        g->numa = g->minor = g->cuda = GPI_UNKNOWN32;
        (void)snprintf(g->uuid, sizeof(g->uuid), "GPU-fa4e%04x-0000-4000-8000-%012x", i, i);
        (void)snprintf(g->model, sizeof(g->model), "Fake GPU");
        (void)snprintf(g->pci, sizeof(g->pci), "%08X:%02X:00.0", (i + 1) >> 8, (i + 1) & 0xff);
    }
}

static struct gpi_script *create(void)
{
    struct gpi_script *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->room = 16;
    s->effect = malloc(s->room * sizeof(*s->effect));
    if (!s->effect) {
        free(s);
        return NULL;
    }
    defaults(s);
    return s;
}

/* ---- checks across lines ---- */

static void name_parts(struct gpi_script *s)
{
    for (uint32_t i = 0; i < s->gpus; i++)
        for (uint32_t k = 0; k < s->gpu[i].parts; k++)
            if (!*s->gpu[i].part[k].uuid)
                (void)snprintf(s->gpu[i].part[k].uuid, GPI_UUID_SIZE,
                               "MIG-fa4e%04x-%04x-4000-8000-%012x", i, k + 1, i);
}

/* Refuses lines about instances that do not exist. */
static int check_parts(struct gpi_reader *r)
{
    const struct gpi_script *s = r->s;

    for (const struct gpi_effect *e = s->effect; e < s->effect + s->effects; e++)
        if (e->first != GPI_UNKNOWN32 && e->part != GPI_UNKNOWN32 &&
            e->part >= s->gpu[e->first].parts)
            return gpi_fail(r->e, GPUD_EDEVICE, 0, "script",
                            "line %u, column %u: GPU %u has no instance %u: expected mig= for it",
                            e->line, e->column, e->first, e->part);
    return 0;
}

static int clash(struct gpi_reader *r, uint32_t a, uint32_t b, const char *what)
{
    const uint32_t line =
        r->s->gpu[a].line > r->s->gpu[b].line ? r->s->gpu[a].line : r->s->gpu[b].line;

    return gpi_fail(r->e, GPUD_EDEVICE, 0, "script",
                    "line %u: GPU %u and GPU %u have the same %s, expected different ones", line, a,
                    b, what);
}

static bool share_a_uuid(const struct gpi_script_gpu *a, const struct gpi_script_gpu *b)
{
    for (uint32_t i = 0; i < a->parts; i++)
        for (uint32_t k = 0; k < b->parts; k++)
            if ((a != b || i != k) && !strcasecmp(a->part[i].uuid, b->part[k].uuid))
                return true;
    return a != b && !strcasecmp(a->uuid, b->uuid);
}

static int check_clashes(struct gpi_reader *r)
{
    const struct gpi_script *s = r->s;

    for (uint32_t i = 0; i < s->gpus; i++)
        for (uint32_t k = 0; k <= i; k++) {
            if (share_a_uuid(&s->gpu[i], &s->gpu[k]))
                return clash(r, i, k, "UUID");
            if (i != k && !strcasecmp(s->gpu[i].pci, s->gpu[k].pci))
                return clash(r, i, k, "PCI address");
            if (i != k && s->gpu[i].cuda != GPI_UNKNOWN32 && s->gpu[i].cuda == s->gpu[k].cuda)
                return clash(r, i, k, "cuda= number");
        }
    for (uint32_t i = 0; i < s->gpus; i++)
        if (s->gpu[i].cuda != GPI_UNKNOWN32 && s->gpu[i].cuda >= s->gpus)
            return gpi_fail(r->e, GPUD_EDEVICE, 0, "script",
                            "line %u: cuda=%u with %u GPUs, expected a smaller number",
                            s->gpu[i].line, s->gpu[i].cuda, s->gpus);
    return 0;
}

static int finish(struct gpi_reader *r)
{
    struct gpi_script *s = r->s;
    int code;

    s->gpus = r->devices ? r->devices : r->counted ? r->said : r->highest;
    if (r->highest > s->gpus)
        return gpi_fail(r->e, GPUD_EDEVICE, 0, "script",
                        "GPU %u is not one of the %u GPUs that \"gpus\" sets", r->highest - 1,
                        s->gpus);
    if (gpi_script_rows(s) > GPI_GPUS_MAX)
        return gpi_fail(r->e, GPUD_EDEVICE, 0, "script",
                        "the number of GPUs and instances is %u, the maximum is %u",
                        gpi_script_rows(s), GPI_GPUS_MAX);
    code = check_parts(r);
    if (code)
        return code;
    name_parts(s);
    return check_clashes(r);
}

/* ---- the whole ---- */

static int read_all(struct gpi_reader *r)
{
    do {
        r->line_start = r->at;
        r->line++;
        gpi_script_line(r);
        r->at += strcspn(r->at, "\n"); /* a comment */
    } while (!r->code && *r->at++);
    return r->code ? r->code : finish(r);
}

int gpi_script_parse(struct gpi_script **ret, const char *text, uint32_t devices,
                     struct gpud_error *e)
{
    struct gpi_reader r = { .s = create(), .at = text ? text : "", .devices = devices, .e = e };
    int code;

    if (!r.s)
        return gpi_fail(e, GPUD_ENOMEM, 0, "script", "no memory for its lines");
    code = devices > GPI_GPUS_MAX ? gpi_fail(e, GPUD_EDEVICE, 0, "script",
                                             "the number of fake devices is %u, the maximum is %u",
                                             devices, GPI_GPUS_MAX)
                                  : read_all(&r);
    if (code)
        gpi_script_free(r.s);
    else
        *ret = r.s;
    return code;
}

void gpi_script_free(struct gpi_script *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->triggers; i++)
        free(s->trigger[i]);
    free(s->effect);
    free(s);
}
