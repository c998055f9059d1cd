/* SPDX-License-Identifier: MIT */
/* facts.c - reads the facts of a fake GPU that do not change. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "device/fake/grammar.h"

/* Returns whether the text is the prefix and 8-4-4-4-12 hexadecimal digits. */
static bool is_uuid(const char *text, const char *prefix)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    const size_t n = strlen(prefix);

    if (strncmp(text, prefix, n) != 0 || strlen(text + n) != sizeof(form) - 1)
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '-' ? text[n + i] != '-' : !isxdigit((unsigned char)text[n + i]))
            return false;
    return true;
}

/* DDDDDDDD:BB:DD.F, or with 4 digits of domain */
static bool is_pci(const char *text)
{
    const size_t domain = strcspn(text, ":");

    if (domain != 4 && domain != 8)
        return false;
    for (size_t i = 0; i < domain; i++)
        if (!isxdigit((unsigned char)text[i]))
            return false;
    text += domain;
    return strlen(text) == 8 && isxdigit((unsigned char)text[1]) &&
           isxdigit((unsigned char)text[2]) && text[3] == ':' && isxdigit((unsigned char)text[4]) &&
           isxdigit((unsigned char)text[5]) && text[6] == '.' && text[7] >= '0' && text[7] <= '7';
}

/* "1g.10gb*2": adds instances. */
static bool parts_in(struct gpi_script_gpu *g, char *text)
{
    const char *at = text;
    uint64_t slices, size, times;

    if (!gpi_times_in(text, &times) || !gpi_digits(&at, &slices) || strncmp(at, "g.", 2) != 0)
        return false;
    at += 2;
    if (!gpi_digits(&at, &size) || strcmp(at, "gb") != 0 || size == 0 || size > 4096 ||
        strlen(text) >= sizeof(g->part[0].profile))
        return false;
    if (times == GPI_UNKNOWN32)
        times = 1;
    if (times > GPI_PARTS_MAX - g->parts)
        return false;
    for (; times > 0; times--) {
        struct gpi_script_part *p = &g->part[g->parts++];
        (void)snprintf(p->profile, sizeof(p->profile), "%.*s", (int)sizeof(p->profile) - 1, text);
        p->memory = size << 30;
    }
    return true;
}

static bool mig(struct gpi_script_gpu *g, char *text)
{
    char *next;

    memset(g->part, 0, sizeof(g->part));
    for (g->parts = 0; text; text = next) {
        next = strchr(text, '+');
        if (next)
            *next++ = '\0';
        if (!parts_in(g, text))
            return false;
    }
    return true;
}

enum what { UUID, MODEL, MEMORY, CC, PCI, NUMA, MINOR, MIG, CUDA };
static const struct {
    const char *key, *expected;
} whats[GPI_FACTS] = {
    [UUID] = { "uuid", "GPU- or MIG- and 8-4-4-4-12 hexadecimal digits" },
    [MODEL] = { "model", "a text of 1 to 95 bytes" },
    [MEMORY] = { "memory", "a size such as 80GiB, or unknown" },
    [CC] = { "cc", "a version such as 9.0" },
    [PCI] = { "pci", "an address such as 00000000:3b:00.0" },
    [NUMA] = { "numa", "a number" },
    [MINOR] = { "minor", "a number" },
    [MIG] = { "mig", "at most 7 instances such as 1g.10gb*2+2g.20gb" },
    [CUDA] = { "cuda", "a number below 256" },
};

static bool read_what(struct gpi_script_gpu *g, enum what which, char *text)
{
    uint64_t n = 0;

    switch (which) {
    case UUID:
        (void)snprintf(g->uuid, sizeof(g->uuid), "%.*s", (int)sizeof(g->uuid) - 1, text);
        return is_uuid(text, "GPU-");
    case MODEL:
        if (strlen(text) >= sizeof(g->model) || !*text)
            return false;
        memset(g->model, 0, sizeof(g->model));
        memcpy(g->model, text, strlen(text));
        return true;
    case MEMORY:
        if (!strcmp(text, "unknown")) {
            g->memory = GPI_UNKNOWN64; /* the GPU has none of its own */
            return true;
        }
        return gpi_quantity(text, gpi_sizes, &g->memory) && g->memory > 0 &&
               g->memory <= 1ull << 50;
    case CC:
        return gpi_version_in(text, &g->major, &g->minor_cc);
    case PCI:
        (void)snprintf(g->pci, sizeof(g->pci), "%.*s", (int)sizeof(g->pci) - 1, text);
        return is_pci(text);
    case NUMA:
        return gpi_whole(text, 65535, &n) && (g->numa = (uint32_t)n, true);
    case MINOR:
        return gpi_whole(text, 65535, &n) && (g->minor = (uint32_t)n, true);
    case MIG:
        return mig(g, text);
    case CUDA:
        return gpi_whole(text, GPI_GPUS_MAX - 1, &n) && (g->cuda = (uint32_t)n, true);
    }
    return false;
}

uint32_t gpi_fact_named(const struct gpi_word *w)
{
    const size_t n = strcspn(w->text, "=");
    uint32_t i = 0;

    while (i < GPI_FACTS && (strlen(whats[i].key) != n || memcmp(whats[i].key, w->text, n) != 0))
        i++;
    return i;
}

/* An instance has a UUID of its own, and no other fact. */
static void identify_part(struct gpi_reader *r, const struct gpi_effect *e, uint32_t which,
                          const struct gpi_word *v)
{
    struct gpi_script_part *p = &r->s->gpu[e->first].part[e->part];

    if (which != UUID || !is_uuid(v->text, "MIG-"))
        gpi_word_expected(r, v,
                          "for an instance only uuid=MIG-... with 8-4-4-4-12 hexadecimal digits");
    (void)snprintf(p->uuid, sizeof(p->uuid), "%.*s", (int)sizeof(p->uuid) - 1, v->text);
}

void gpi_script_identify(struct gpi_reader *r, const struct gpi_effect *e, uint32_t which,
                         const struct gpi_word *w)
{
    const struct gpi_word value = gpi_word_value(w);
    const bool unique = which == UUID || which == PCI || which == CUDA || which == MINOR;

    if (e->begins)
        gpi_word_expected(r, w, GPI_EXPECTED_SETTING);
    else if (e->part != GPI_UNKNOWN32 && e->part >= r->s->gpu[e->first].parts)
        gpi_word_expected(r, w, "mig= for the GPU in a line above");
    else if (e->part != GPI_UNKNOWN32)
        identify_part(r, e, which, &value);
    else if (e->first != e->last && unique)
        gpi_word_expected(r, w, "one GPU: this word must differ between GPUs");
    else
        for (uint32_t i = e->first; i <= e->last && !r->code; i++) {
            struct gpi_word v = value;
            if (!read_what(&r->s->gpu[i], (enum what)which, v.text))
                gpi_word_expected(r, &value, whats[which].expected);
            r->s->gpu[i].line = r->line;
        }
}
