/* SPDX-License-Identifier: MIT */
/* trace_write.c - the output of a trace: JSON lines with exact numbers. */
#include <stdlib.h>
#include <string.h>

#include "sim/trace_run.h"

#define GPI_X_OUTCOME(name) #name,
static const char *const outcome_names[] = { GPI_OUTCOME_MAP(GPI_X_OUTCOME) };
#undef GPI_X_OUTCOME

/* ---- values ---- */

/* Seconds with as many decimals as they have. */
static void put_time(FILE *out, uint64_t t)
{
    char decimals[16];
    int n;

    (void)fprintf(out, "%llu", (unsigned long long)(t / GPI_S));
    if (t % GPI_S == 0)
        return;
    (void)snprintf(decimals, sizeof decimals, ".%09llu", (unsigned long long)(t % GPI_S));
    for (n = (int)strlen(decimals); decimals[n - 1] == '0'; n--)
        ;
    (void)fprintf(out, "%.*s", n, decimals);
}

static void put_text(FILE *out, const char *text)
{
    (void)putc('"', out);
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20)
            (void)fprintf(out, "\\u%04x", (unsigned char)*text);
        else
            (void)fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    (void)putc('"', out);
}

struct name {
    char text[160];
};

static struct name id_of(const struct gpi_trace_run *r, uint32_t task)
{
    const struct gpi_trace_line *l = gpi_line_of(r, task);
    struct name id;

    if (l->numbered)
        (void)snprintf(id.text, sizeof id.text, "%s.%u", l->id, task - l->first);
    else
        (void)snprintf(id.text, sizeof id.text, "%s", l->id);
    return id;
}

static void put_id(const struct gpi_trace_run *r, uint32_t task)
{
    const struct name id = id_of(r, task);

    put_text(r->options.out, id.text);
}

static void begin(const struct gpi_trace_run *r, const char *what)
{
    (void)fputs("{\"t\": ", r->options.out);
    put_time(r->options.out, r->now);
    (void)fprintf(r->options.out, ", \"%s\": ", what);
}

static void put_named_time(FILE *out, const char *name, uint64_t t)
{
    if (t == GPI_NEVER)
        return;
    (void)fprintf(out, ", \"%s\": ", name);
    put_time(out, t);
}

/* ---- reasons ---- */

enum other { NOBODY, TASK, CLASS };

static const struct {
    const char *word;
    enum other other; /* that is named */
} reasons[] = {
    [GPI_REASON_PASSED_OVER_BY] = { "behind", TASK },
    [GPI_REASON_MEMORY] = { "memory", NOBODY },
    [GPI_REASON_SHARE] = { "share", NOBODY },
    [GPI_REASON_CPUS] = { "cpus", NOBODY },
    [GPI_REASON_HEAD_HOLDS] = { "head", TASK },
    [GPI_REASON_DRAINED] = { "drained", CLASS },
    [GPI_REASON_PAUSED] = { "paused", CLASS },
    [GPI_REASON_FAULT] = { "fault", CLASS },
    [GPI_REASON_FOREIGN] = { "foreign", NOBODY },
    [GPI_REASON_MIN_RESIDENCE] = { "min_residence", CLASS },
    [GPI_REASON_MAX_WAIT] = { "max_wait", CLASS },
    [GPI_REASON_PINNED] = { "pinned", CLASS },
    [GPI_REASON_SEATS] = { "seats", CLASS },
    [GPI_REASON_BOOTING] = { "boot", CLASS },
    [GPI_REASON_UNLOADING] = { "unload", CLASS },
    [GPI_REASON_BUSY] = { "busy", TASK },
    [GPI_REASON_OCCUPIED] = { "occupied", CLASS },
    [GPI_REASON_NEVER] = { "never", NOBODY },
};

/* A task from the number of tasks on loads a worker of a class. */
static struct name other_of(const struct gpi_trace_run *r, const struct gpi_plan_reason *why)
{
    const uint32_t tasks = r->trace->n_tasks + 1; /* this many the plan has */
    const bool loads = reasons[why->kind].other == TASK && why->other >= tasks;
    struct name name = { "" };

    if (reasons[why->kind].other == NOBODY || why->other == GPI_NOWHERE)
        return name;
    if (reasons[why->kind].other == TASK && !loads)
        return id_of(r, why->other);
    (void)snprintf(name.text, sizeof name.text, "%s",
                   r->trace->class[loads ? why->other - tasks : why->other].name);
    return name;
}

/* A word; the task or class; the device: "share g0", "boot llm on g0", "behind first". */
static void put_reason(const struct gpi_trace_run *r, const struct gpi_plan_reason *why)
{
    const struct name other = other_of(r, why);
    const bool enough = why->kind == GPI_REASON_BUSY && why->other == GPI_NOWHERE;
    const bool on_device = why->device != GPI_NOWHERE;
    char text[512];

    (void)snprintf(text, sizeof text, "%s%s%s%s%s", enough ? "enough" : reasons[why->kind].word,
                   *other.text ? " " : "", other.text,
                   !on_device    ? ""
                   : *other.text ? " on "
                                 : " ",
                   on_device ? r->trace->device[why->device].name : "");
    put_text(r->options.out, text);
}

/* ---- lines ---- */

void gpi_trace_write_state(const struct gpi_trace_run *r, uint32_t device)
{
    const struct gpi_spot *s = &r->spot[device];
    FILE *out = r->options.out;

    if (!(r->trace->write & GPI_WRITE_DEVICES))
        return;
    begin(r, "device");
    put_text(out, r->trace->device[device].name);
    (void)fprintf(out, ", \"state\": \"%s\"", s->told);
    if (s->told_class != GPI_TRACE_NONE) {
        (void)fputs(", \"class\": ", out);
        put_text(out, r->trace->class[s->told_class].name);
    }
    (void)fputs("}\n", out);
}

void gpi_trace_write_task(const struct gpi_trace_run *r, uint32_t task)
{
    const struct gpi_job *j = &r->job[task];
    const bool done = j->state == GPI_JOB_DONE;
    FILE *out = r->options.out;

    if (!(r->trace->write & GPI_WRITE_TASKS))
        return;
    begin(r, "task");
    put_id(r, task);
    put_named_time(out, "queued", j->queued);
    put_named_time(out, "start", j->begun);
    put_named_time(out, "end", done ? j->ended : GPI_NEVER);
    (void)fputs(", \"devices\": [", out);
    for (uint32_t i = 0; i < j->n_devices; i++) {
        (void)fputs(i ? ", " : "", out);
        put_text(out, r->trace->device[j->device[i]].name);
    }
    (void)fprintf(out, "], \"attempt\": %u, \"outcome\": \"%s\"", j->attempt,
                  outcome_names[j->outcome]);
    if (j->waited) {
        (void)fputs(", \"waited_for\": ", out);
        put_reason(r, &j->waited_for);
    }
    (void)fputs("}\n", out);
}

void gpi_trace_write_promise(const struct gpi_trace_run *r, const struct gpi_plan_action *a)
{
    static const char *const causes[] = { [GPI_PROMISE_FIRST] = "first",
                                          [GPI_PROMISE_ORDER] = "order",
                                          [GPI_PROMISE_DEVICE] = "device",
                                          [GPI_PROMISE_CLASS] = "class",
                                          [GPI_PROMISE_WORKERS] = "workers" };
    FILE *out = r->options.out;

    if (!(r->trace->write & GPI_WRITE_PROMISES))
        return;
    begin(r, "task");
    put_id(r, a->task);
    (void)fputs(", \"promise\": ", out);
    if (a->at == GPI_NEVER)
        (void)fputs("null", out);
    else
        put_time(out, a->at);
    (void)fprintf(out, ", \"why\": \"%s\"}\n", causes[a->how]);
}

/* ---- the summary ---- */

static int compare(const void *a, const void *b)
{
    uint64_t x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

/* The smallest wait that this part of all tasks does not exceed. */
static uint64_t percentile(const uint64_t *sorted, uint32_t n, uint32_t percent)
{
    return sorted[(uint32_t)(((uint64_t)n * percent + 99) / 100) - 1];
}

static bool counts(const struct gpi_trace_run *r, uint32_t task, uint32_t devices)
{
    return r->job[task].first != GPI_NEVER && r->job[task].state != GPI_JOB_FUTURE &&
           (devices == GPI_TRACE_NONE || gpi_line_of(r, task)->request[0].devices == devices);
}

static void put_waits(const struct gpi_trace_run *r, const char *name, uint32_t devices,
                      uint64_t *wait)
{
    static const uint32_t percents[] = { 50, 99, 100 };
    static const char *const names[] = { "p50", "p99", "max" };
    FILE *out = r->options.out;
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->trace->n_tasks; i++)
        if (counts(r, i, devices))
            wait[n++] = r->job[i].first - r->job[i].queued;
    if (n == 0)
        return;
    qsort(wait, n, sizeof *wait, compare);
    (void)fprintf(out, "%s\"%s\": {\"n\": %u", devices == GPI_TRACE_NONE ? "" : ", ", name, n);
    for (uint32_t i = 0; i < 3; i++)
        put_named_time(out, names[i], percentile(wait, n, percents[i]));
    (void)putc('}', out);
}

static void put_all_waits(const struct gpi_trace_run *r)
{
    uint64_t *wait = calloc(r->trace->n_tasks + 1, sizeof *wait);
    char name[16];

    (void)fputs(", \"wait\": {", r->options.out);
    if (wait)
        put_waits(r, "all", GPI_TRACE_NONE, wait);
    for (uint32_t n = 0; n <= GPI_TRACE_WIDTH && wait; n++) {
        (void)snprintf(name, sizeof name, "%u", n);
        put_waits(r, name, n, wait);
    }
    (void)putc('}', r->options.out);
    free(wait);
}

static void put_outcomes(const struct gpi_trace_run *r)
{
    const char *between = "";
    FILE *out = r->options.out;
    uint32_t n[GPI_TRACE_OUTCOMES] = { 0 };

    for (uint32_t i = 0; i < r->trace->n_tasks; i++)
        if (r->job[i].state != GPI_JOB_FUTURE)
            n[r->job[i].outcome]++;
    (void)fprintf(out, ", \"tasks\": %u, \"outcomes\": {", r->trace->n_tasks);
    for (uint32_t i = 0; i < GPI_TRACE_OUTCOMES; i++)
        if (n[i]) {
            (void)fprintf(out, "%s\"%s\": %u", between, outcome_names[i], n[i]);
            between = ", ";
        }
    (void)putc('}', out);
}

static void put_utilisation(const struct gpi_trace_run *r)
{
    FILE *out = r->options.out;

    (void)fputs(", \"utilisation\": {", out);
    for (uint32_t i = 0; i < r->trace->n_devices; i++) {
        (void)fputs(i ? ", " : "", out);
        put_text(out, r->trace->device[i].name);
        (void)fprintf(out, ": %.4f",
                      r->makespan ? (double)r->spot[i].busy / (double)r->makespan : 0);
    }
    (void)putc('}', out);
}

void gpi_trace_write_summary(const struct gpi_trace_run *r)
{
    const struct gpi_plan_stats *s = gpi_plan_stats(r->plan);
    FILE *out = r->options.out;

    (void)fputs("{\"makespan\": ", out);
    put_time(out, r->makespan);
    put_outcomes(r);
    put_utilisation(r);
    put_all_waits(r);
    (void)fprintf(out,
                  ", \"boots\": %llu, \"evictions\": %llu, \"passed\": %llu, "
                  "\"promise_renewed\": %llu, \"decisions\": %llu, \"scans\": %llu",
                  (unsigned long long)s->boots, (unsigned long long)s->unloads,
                  (unsigned long long)s->passed, (unsigned long long)r->renewed,
                  (unsigned long long)s->decisions, (unsigned long long)s->examined);
    if (r->options.time)
        (void)fprintf(out, ", \"ns_per_decision\": %llu",
                      (unsigned long long)(s->decisions ? r->ns / s->decisions : 0));
    (void)fputs("}\n", out);
}
