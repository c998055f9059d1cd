/* SPDX-License-Identifier: MIT */
/* metrics.c - a snapshot as OpenMetrics text. */
#include "view/metrics/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "view/plain.h"

#define GPV_X_ID(id, name, type, unit, help) id,
enum family { GPV_FAMILY_MAP(GPV_X_ID) FAMILIES };
#undef GPV_X_ID

static const struct {
    const char *name, *type, *unit, *help;
} families[] = {
#define GPV_X_ROW(id, name, type, unit, help) { name, type, unit, help },
    GPV_FAMILY_MAP(GPV_X_ROW)
#undef GPV_X_ROW
};

static void begin(FILE *f, enum family id)
{
    fprintf(f, "# TYPE %s %s\n", families[id].name, families[id].type);
    if (*families[id].unit)
        fprintf(f, "# UNIT %s %s\n", families[id].name, families[id].unit);
    fprintf(f, "# HELP %s %s\n", families[id].name, families[id].help);
}

/* ---- Labels ---- */

enum { LABEL = 3 * 64 }; /* a name of a class; each byte may become U+FFFD */

/* What steers a terminal, or is no character, becomes U+FFFD.  Cut to the size.  [V5] */
static void clean(char *to, size_t size, const char *text)
{
    size_t used = 0;
    while (*text) {
        uint32_t character = 0;
        size_t length = gpv_character(text, &character);
        bool strange = length == 0 || gpv_steers(character);
        const char *put = strange ? "\xef\xbf\xbd" : text;
        size_t n = strange ? 3 : length;
        if (used + n >= size)
            break;
        memcpy(to + used, put, n);
        used += n;
        text += length ? length : 1;
    }
    to[used] = 0;
}

static void put_value(FILE *f, const char *text)
{
    char value[3 * 96];
    clean(value, sizeof(value), text);
    fputc('"', f);
    for (const char *c = value; *c; c++) {
        if (*c == '"' || *c == '\\')
            fputc('\\', f);
        fputc(*c, f);
    }
    fputc('"', f);
}

static void put_label(FILE *f, const char *name, const char *value)
{
    fprintf(f, "%s=", name);
    put_value(f, value);
}

/* "nvidia3" of gpu:3, as the device file is called; "fake3" of a fake one. */
static void put_device(FILE *f, const struct gpv_now_gpu *g)
{
    char device[48];
    bool real = strncmp(g->name, "gpu:", 4) == 0;
    const char *colon = strchr(g->name, ':');
    int number = colon ? (int)strcspn(colon + 1, ":") : 0;
    snprintf(device, sizeof(device), "%.*s%.*s", real ? 6 : (int)strcspn(g->name, ":"),
             real ? "nvidia" : g->name, number, colon ? colon + 1 : "");
    put_label(f, ",device", device);
}

/* As DCGM's exporter has them: of a MIG instance, number and UUID are those of its GPU.
 * XXX The exporter's GPU_I_ID is the id of the GPU instance; a snapshot has the number of the MIG
 * device alone, which differs where an instance was removed.  A reading of both would settle it. */
static void put_gpu(FILE *f, const struct gpv_snapshot *s, const struct gpv_now_gpu *g)
{
    char number[16];
    const char *colon = strchr(g->name, ':'), *instance = colon ? strchr(colon + 1, ':') : NULL;
    snprintf(number, sizeof(number), "%" PRIu32, g->index);
    put_label(f, "gpu", g->index != GPV_NONE ? number : "");
    put_label(f, ",UUID", *g->parent ? g->parent : *g->uuid ? g->uuid : g->name);
    put_label(f, ",pci_bus_id", g->pci);
    put_device(f, g);
    put_label(f, ",modelName", g->model);
    put_label(f, ",Hostname", s->host);
    if (!*g->profile)
        return;
    put_label(f, ",GPU_I_PROFILE", g->profile);
    put_label(f, ",GPU_I_ID", instance ? instance + 1 : "");
}

/* ---- Classes: those with rows of their own, and the sum of the others ---- */

struct class
{
    char label[LABEL];
    struct gpv_now_class sum;
};

struct classes {
    struct class row[GPV_METRIC_CLASSES + 1];
    size_t n, most; /* with rows of their own */
};

static void add_histogram(struct gpv_histogram *to, const struct gpv_histogram *from)
{
    for (int i = 0; i < GPV_BUCKETS; i++)
        to->bucket[i] += from->bucket[i];
    to->count += from->count;
    to->sum += from->sum;
}

static void add_class(struct gpv_now_class *to, const struct gpv_now_class *from)
{
    to->evicted += from->evicted;
    to->restarts += from->restarts;
    to->held += from->held;
    for (int i = 0; i < GPV_WHYS; i++)
        to->waiting[i] += from->waiting[i];
    for (int i = 0; i < GPV_OUTCOMES; i++) {
        to->ended_by[i] += from->ended_by[i];
        to->tasks_by[i] += from->tasks_by[i];
    }
    add_histogram(&to->run, &from->run);
    add_histogram(&to->wait, &from->wait);
}

/* Names that read the same are one class: a label of a family is there once. */
static struct class *class_of(struct classes *c, const char *name)
{
    char label[LABEL];
    clean(label, sizeof(label), name);
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->row[i].label, label) == 0)
            return &c->row[i];
    if (c->n >= c->most && strcmp(name, "other") != 0)
        return class_of(c, "other");
    memcpy(c->row[c->n].label, label, sizeof(label));
    return &c->row[c->n++];
}

static void gather(const struct gpv_snapshot *s, size_t most, struct classes *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->most = most;
    for (size_t i = 0; i < s->classes.n; i++)
        add_class(&class_of(ret, s->classes.row[i].name)->sum, &s->classes.row[i]);
}

/* ---- Families ---- */

/* Of attempts, each class has the outcomes up to `always` from the start: the first crash is an
 * increase, which an alert sees.  Further rows are there once they have happened. */
static void put_outcomes(FILE *f, enum family id, const char *class_name,
                         const uint64_t count[GPV_OUTCOMES], enum gpv_outcome always)
{
    for (uint32_t i = GPV_OK; i < GPV_OUTCOMES; i++) {
        if (count[i] == 0 && i > always)
            continue;
        fprintf(f, "%s_total{", families[id].name);
        put_label(f, "class", class_name);
        put_label(f, ",outcome", gpv_outcome_word(i));
        fprintf(f, "} %" PRIu64 "\n", count[i]);
    }
}

static void put_reason(FILE *f, const char *class_name, const char *reason, uint64_t tasks)
{
    fprintf(f, "%s{", families[WAITING].name);
    put_label(f, "class", class_name);
    put_label(f, ",reason", reason);
    fprintf(f, "} %" PRIu64 "\n", tasks);
}

static void put_waiting(FILE *f, const char *class_name, const struct gpv_now_class *c)
{
    for (uint32_t i = 0; i < GPV_WHYS; i++)
        if (c->waiting[i] != 0 || i == GPV_WHY_BUSY) /* this one is always there */
            put_reason(f, class_name, gpv_why_word(i), c->waiting[i]);
    if (c->held != 0)
        put_reason(f, class_name, "held", c->held);
}

static void put_total(FILE *f, enum family id, const char *class_name, uint64_t count)
{
    fprintf(f, "%s_total{", families[id].name);
    put_label(f, "class", class_name);
    fprintf(f, "} %" PRIu64 "\n", count);
}

/* One of three: up to 1 s, 8 s, 64 s, 512 s, 4,096 s, 32,768 s. */
enum { BUCKET_OF_A_SECOND = 3, BUCKETS_APART = 3 };

static void put_buckets(FILE *f, enum family id, const char *class_name,
                        const struct gpv_histogram *h)
{
    uint64_t below = 0;
    for (int i = 0; i < GPV_BUCKETS; i++) {
        below += h->bucket[i];
        if (i % BUCKETS_APART != BUCKET_OF_A_SECOND % BUCKETS_APART || i < BUCKET_OF_A_SECOND)
            continue;
        fprintf(f, "%s_bucket{", families[id].name);
        put_label(f, "class", class_name);
        fprintf(f, ",le=\"%" PRIu64 ".0\"} %" PRIu64 "\n", UINT64_C(1) << (i - BUCKET_OF_A_SECOND),
                below);
    }
}

/* No locale's comma; a sum that a line of JSON made up stays a number. */
static uint64_t ms_of(double seconds)
{
    return seconds > 0 ? seconds < 1e15 ? (uint64_t)(seconds * 1000) : (uint64_t)1e18 : 0;
}

static void put_histogram(FILE *f, enum family id, const char *class_name,
                          const struct gpv_histogram *h)
{
    uint64_t ms = ms_of(h->sum);
    put_buckets(f, id, class_name, h);
    fprintf(f, "%s_bucket{", families[id].name);
    put_label(f, "class", class_name);
    fprintf(f, ",le=\"+Inf\"} %" PRIu64 "\n%s_sum{", h->count, families[id].name);
    put_label(f, "class", class_name);
    fprintf(f, "} %" PRIu64 ".%03" PRIu64 "\n%s_count{", ms / 1000, ms % 1000, families[id].name);
    put_label(f, "class", class_name);
    fprintf(f, "} %" PRIu64 "\n", h->count);
}

static void put_states(FILE *f, const struct gpv_snapshot *s, const struct gpv_now_gpu *g)
{
    for (uint32_t i = 0; i < GPV_DOES; i++) {
        fprintf(f, "%s{", families[STATE].name);
        put_gpu(f, s, g);
        put_label(f, ",gpudispatch_gpu_state", gpv_does_word(i));
        fprintf(f, "} %d\n", g->does == i);
    }
}

static void put_seconds(FILE *f, int64_t ns)
{
    ns = ns > 0 ? ns : 0;
    fprintf(f, "} %" PRIi64 ".%09" PRIi64 "\n", ns / 1000000000, ns % 1000000000);
}

static void put_uses(FILE *f, const struct gpv_snapshot *s, const struct gpv_now_gpu *g)
{
    for (uint32_t i = 0; i < GPV_USES; i++) {
        if (i == GPV_USE_LOST)
            continue;
        bool work = i == GPV_USE_OK;
        fprintf(f, "%s_total{", families[SECONDS].name);
        put_gpu(f, s, g);
        put_label(f, ",use", work ? "work" : gpv_use_word(i));
        put_seconds(f, g->uses.ns[i] + (work ? g->uses.ns[GPV_USE_LOST] : 0));
    }
}

static void put_lost(FILE *f, const struct gpv_snapshot *s, const struct gpv_now_gpu *g)
{
    fprintf(f, "%s_total{", families[LOST].name);
    put_gpu(f, s, g);
    put_seconds(f, g->uses.ns[GPV_USE_LOST]);
}

static void put_class(FILE *f, enum family id, const char *label, const struct gpv_now_class *c)
{
    if (id == TASKS)
        put_outcomes(f, id, label, c->tasks_by, GPV_OK);
    else if (id == ATTEMPTS)
        put_outcomes(f, id, label, c->ended_by, GPV_CRASHED);
    else if (id == WAITING)
        put_waiting(f, label, c);
    else if (id == EVICTIONS || id == RESTARTS)
        put_total(f, id, label, id == EVICTIONS ? c->evicted : c->restarts);
    else
        put_histogram(f, id, label, id == RUN ? &c->run : &c->wait);
}

static void put_classes(FILE *f, enum family id, const struct gpv_snapshot *s)
{
    bool is_histogram = id == RUN || id == WAIT;
    struct classes c;
    gather(s, is_histogram ? GPV_METRIC_HISTOGRAMS : GPV_METRIC_CLASSES, &c);
    begin(f, id);
    for (size_t i = 0; i < c.n; i++)
        put_class(f, id, c.row[i].label, &c.row[i].sum);
}

static void put_gpus(FILE *f, enum family id, const struct gpv_snapshot *s)
{
    begin(f, id);
    for (size_t i = 0; i < s->gpus.n; i++) {
        if (id == STATE)
            put_states(f, s, &s->gpus.row[i]);
        else if (id == SECONDS)
            put_uses(f, s, &s->gpus.row[i]);
        else
            put_lost(f, s, &s->gpus.row[i]);
    }
}

static void put_build(FILE *f, const struct gpv_snapshot *s)
{
    begin(f, BUILD);
    fprintf(f, "%s_info{", families[BUILD].name);
    put_label(f, "version", s->version);
    fputs("} 1\n", f);
}

void gpv_metrics_write(const struct gpv_snapshot *s, FILE *f)
{
    for (int id = 0; id < FAMILIES; id++) {
        if (id == STATE || id == SECONDS || id == LOST)
            put_gpus(f, (enum family)id, s);
        else if (id == BUILD)
            put_build(f, s);
        else
            put_classes(f, (enum family)id, s);
    }
    fputs("# EOF\n", f);
}
