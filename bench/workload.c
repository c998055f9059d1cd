/* SPDX-License-Identifier: MIT */
#include "workload.h"

#include <stdio.h>

#include "measure.h"
#include "report.h"

#define DEVICES 4u
#define DEVICE_GIB 80u
#define MIN_RESIDENCE 20000u
#define MAX_WAIT 60000u
#define GRACE 1000u
#define ARRIVALS 200000u /* all tasks arrive within that time */

static const struct {
    const char *name;
    unsigned weight; /* how many tasks of 100 */
    unsigned transient, devices, share, gib;
    uint32_t boot, unload, run_from, run_to; /* ms */
} kinds[B_WORK_CLASSES] = {
    { "chat", 50, 0, 1, 5000, 30, 20000, 2000, 2000, 8000 },
    { "draw", 25, 0, 1, 10000, 60, 40000, 4000, 5000, 20000 },
    { "wide", 5, 0, 2, 10000, 60, 30000, 4000, 20000, 40000 },
    { "tool", 20, 1, 1, 2500, 10, 3000, 1000, 1000, 6000 },
};

static uint32_t mean_run(unsigned class)
{
    return (kinds[class].run_from + kinds[class].run_to) / 2;
}

/* ---- tasks ---- */

/* Returns a number from `from` to `to`. */
static uint32_t draw(uint64_t *seed, uint32_t from, uint32_t to)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return from + (uint32_t)((*seed >> 33) % (to - from + 1));
}

static unsigned draw_class(uint64_t *seed)
{
    unsigned class = 0, at = draw(seed, 0, 99);

    while (at >= kinds[class].weight)
        at -= kinds[class++].weight;
    return class;
}

void b_work_draw(struct b_work *w, unsigned number)
{
    uint64_t seed = number;
    uint32_t i;

    for (i = 0; i < B_WORK_TASKS; i++) {
        struct b_work_task *t = &w->task[i];

        t->class = draw_class(&seed);
        t->at = ARRIVALS / B_WORK_TASKS * i;
        t->run = draw(&seed, kinds[t->class].run_from, kinds[t->class].run_to);
        t->limit = 3 * t->run;
    }
}

/* ---- the simulator ---- */

static double seconds(uint32_t ms)
{
    return ms / 1e3;
}

static void write_world(FILE *out)
{
    unsigned i;

    (void)fprintf(out, "{\"devices\": [");
    for (i = 0; i < DEVICES; i++)
        (void)fprintf(out, "%s{\"name\": \"g%u\", \"memory_gib\": %u}", i > 0 ? ", " : "", i,
                      DEVICE_GIB);
    (void)fprintf(out, "], \"classes\": {");
    for (i = 0; i < B_WORK_CLASSES; i++)
        (void)fprintf(out,
                      "%s\"%s\": {\"%s\": true, \"devices\": %u, \"share\": %.4f, \"memory_gib\": "
                      "%u, \"boot_s\": %.3f, \"unload_s\": %.3f, \"run_seed_s\": %.3f, "
                      "\"min_residence_s\": %.3f, \"max_wait_s\": %.3f, \"grace_s\": %.3f}",
                      i > 0 ? ", " : "", kinds[i].name,
                      kinds[i].transient ? "transient" : "resident", kinds[i].devices,
                      kinds[i].share / 1e4, kinds[i].gib, seconds(kinds[i].boot),
                      seconds(kinds[i].unload), seconds(mean_run(i)), seconds(MIN_RESIDENCE),
                      seconds(MAX_WAIT), seconds(GRACE));
    (void)fprintf(out, "}, \"write\": []}\n");
}

int b_work_write_trace(const struct b_work *w, const char *path)
{
    FILE *out = fopen(path, "we");
    unsigned i;

    if (!out)
        return b_complain("a trace could not be written");
    write_world(out);
    for (i = 0; i < B_WORK_TASKS; i++)
        (void)fprintf(out,
                      "{\"at\": %.3f, \"task\": \"t%u\", \"class\": \"%s\", \"run_s\": %.3f, "
                      "\"limit_s\": %.3f}\n",
                      seconds(w->task[i].at), i, kinds[w->task[i].class].name,
                      seconds(w->task[i].run), seconds(w->task[i].limit));
    return fclose(out) ? b_complain("a trace could not be written") : 0;
}

/* ---- the live run ---- */

uint64_t b_work_time(uint32_t ms)
{
    return ms * B_MS / B_WORK_FASTER;
}

int b_work_write_script(const char *path)
{
    FILE *out = fopen(path, "we");

    if (!out)
        return b_complain("a script could not be written");
    (void)fprintf(out, "gpu * memory=%uGiB\n", DEVICE_GIB);
    return fclose(out) ? b_complain("a script could not be written") : 0;
}

void b_work_classes(struct b_pooled_class class[B_WORK_CLASSES])
{
    unsigned i;

    for (i = 0; i < B_WORK_CLASSES; i++)
        class[i] = (struct b_pooled_class){
            .name = kinds[i].name,
            .residence = kinds[i].transient ? GPUD_TRANSIENT : GPUD_RESIDENT,
            .devices = kinds[i].devices,
            .share = kinds[i].share,
            .memory = (uint64_t)kinds[i].gib << 30,
            .sent_ahead = 1, /* the simulator sends no task ahead */
            .boot = b_work_time(kinds[i].boot),
            .unload = b_work_time(kinds[i].unload),
            .run = b_work_time(mean_run(i)),
            .min_residence = b_work_time(MIN_RESIDENCE),
            .max_wait = b_work_time(MAX_WAIT),
            .grace = b_work_time(GRACE)
        };
}
