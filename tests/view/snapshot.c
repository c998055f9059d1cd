/* SPDX-License-Identifier: MIT */
/* snapshot.c - a snapshot as a line of JSON, in both directions; and what its rows are made of. */
#include "view/now/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "../queue/failing.h"
#include "harness.h"
#include "queue/draw.h"
#include "view/night/findings.h"
#include "view/now/fields.h"

enum { ROUNDS = 1000, LINE = 16384 };

static char *line_of(const struct gpv_snapshot *s)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    T_CHECK(f);
    gpv_snapshot_write(s, f);
    T_EQ(fclose(f), 0);
    T_EQ(strlen(text), size);
    return text;
}

static struct gpv_any_list *list_of(struct gpv_snapshot *s, int list)
{
    return (void *)((char *)s + gpv_now_lists[list].at);
}

/* ---- Random snapshots ---- */

static void draw_text(uint64_t *seed, char *to, size_t size)
{
    static const char *const pieces[] = { "a",  " ",       "\"", "\\",           "</script>", "\n",
                                          "\t", "\x1b[2J", "é",  "\u202e\u20ac", "😀",         "&" };
    char text[512] = "";
    for (uint32_t i = draw_below(seed, 3) ? draw_below(seed, 8) : 0; i > 0; i--)
        strcat(text, pieces[draw_below(seed, T_LENGTH(pieces))]);
    gpv_now_text(to, size, text);
    T_CMP(strlen(to), <, size);
}

static int64_t draw_number(uint64_t *seed, int64_t most)
{
    return draw_chance(seed, 20) ? most : (int64_t)(draw_below(seed, 2000000000) % (uint64_t)most);
}

static void draw_counts(uint64_t *seed, void *at, size_t size)
{
    int64_t *count = at;
    for (size_t i = 0; i < size / sizeof(*count); i++)
        count[i] = draw_chance(seed, 50) ? draw_number(seed, INT64_MAX) : 0;
}

static void draw_field(uint64_t *seed, const struct gpv_field *f, char *at)
{
    struct gpv_histogram histogram = { .sum = 1.5 };
    uint32_t word = 0, small = (uint32_t)draw_number(seed, UINT32_MAX);
    int64_t number = draw_number(seed, INT64_MAX);
    double decimal = (double)draw_below(seed, 1000000) / 64;
    switch (f->kind) {
    case GPV_TEXT:
        draw_text(seed, at, f->size);
        break;
    case GPV_U32:
    case GPV_I32:
        memcpy(at, &small, sizeof(small));
        break;
    case GPV_U64:
    case GPV_I64:
        number = draw_chance(seed, 20) ? f->none : number;
        memcpy(at, &number, sizeof(number));
        break;
    case GPV_TASK_ID:
        number = (int64_t)GPV_TASK(draw_number(seed, UINT32_MAX), small);
        memcpy(at, &number, sizeof(number));
        break;
    case GPV_DECIMAL:
        memcpy(at, &decimal, sizeof(decimal));
        break;
    case GPV_FLAG:
        *at = draw_chance(seed, 50);
        break;
    case GPV_WORD_OF:
        while (strcmp(f->word(word), "?") != 0 && draw_chance(seed, 80))
            word++;
        word = strcmp(f->word(word), "?") == 0 ? word - 1 : word;
        memcpy(at, &word, sizeof(word));
        break;
    case GPV_HISTOGRAM:
        draw_counts(seed, histogram.bucket, sizeof(histogram.bucket));
        histogram.count = 1 + draw_below(seed, 100);
        if (draw_chance(seed, 50))
            memcpy(at, &histogram, sizeof(histogram));
        break;
    case GPV_COUNTS:
    case GPV_USE_TIMES:
        draw_counts(seed, at, f->size);
        break;
    }
}

static void draw_fields(uint64_t *seed, const struct gpv_field *f, void *row)
{
    for (; f->name; f++)
        draw_field(seed, f, (char *)row + f->at);
}

static void draw_history(uint64_t *seed, struct gpv_snapshot *s)
{
    s->minutes = 1 + draw_below(seed, GPV_MINUTES);
    s->history = calloc(s->gpus.n * s->minutes, sizeof(*s->history));
    T_CHECK(s->history);
    for (size_t i = 0; i < s->gpus.n * s->minutes; i++)
        for (uint32_t use = 0; use < GPV_USES; use++)
            s->history[i].ns[use] = draw_chance(seed, 30) ? draw_below(seed, 60001) * 1000000LL : 0;
}

static void draw_snapshot(uint64_t *seed, struct gpv_snapshot *s)
{
    *s = (struct gpv_snapshot){ 0 };
    draw_fields(seed, gpv_head_fields, s);
    draw_fields(seed, gpv_more_fields, &s->more);
    for (int i = 0; i < GPV_NOW_LISTS; i++)
        for (uint32_t n = draw_below(seed, 4); n > 0; n--) {
            void *row = gpv_now_row(s, &gpv_now_lists[i]);
            T_CHECK(row);
            draw_fields(seed, gpv_now_lists[i].fields, row);
        }
    if (s->gpus.n > 0 && draw_chance(seed, 30))
        draw_history(seed, s);
}

static void same(struct gpv_snapshot *a, struct gpv_snapshot *b)
{
    for (const struct gpv_field *f = gpv_head_fields; f->name; f++)
        T_EQ(memcmp((char *)a + f->at, (char *)b + f->at, f->size), 0);
    T_EQ(memcmp(&a->more, &b->more, sizeof(a->more)), 0);
    for (int i = 0; i < GPV_NOW_LISTS; i++) {
        T_EQ(list_of(a, i)->n, list_of(b, i)->n);
        if (list_of(a, i)->n > 0)
            T_EQ(memcmp(list_of(a, i)->row, list_of(b, i)->row,
                        list_of(a, i)->n * gpv_now_lists[i].size),
                 0);
    }
    T_EQ(a->minutes, b->minutes);
    T_EQ(!a->history, !b->history);
    if (a->history)
        T_EQ(memcmp(a->history, b->history, a->gpus.n * a->minutes * sizeof(*a->history)), 0);
}

T_CASE(round_trip)
{
    for (uint64_t seed = 1, round = 0; round < ROUNDS; round++) {
        struct gpv_snapshot drawn, read;
        draw_snapshot(&seed, &drawn);
        char *line = line_of(&drawn);
        T_EQ(gpv_snapshot_read(&read, line, strlen(line)), 0);
        same(&drawn, &read);
        for (const char *c = line; *c; c++)
            T_CHECK((unsigned char)*c >= ' ' && *c != '<' && *c != '>' && *c != '&');
        gpv_snapshot_free(&drawn);
        gpv_snapshot_free(&read);
        free(line);
    }
}

T_CASE(nothing)
{
    struct gpv_snapshot s = { .least = -1, .most = -1 }, read;
    char *line = line_of(&s);
    T_TEXT(line, "{\"snapshot\":1,\"gpus\":[],\"classes\":[],\"batches\":[],\"findings\":[],"
                 "\"ends\":[],\"more\":{}}");
    T_EQ(gpv_snapshot_read(&read, line, strlen(line)), 0);
    same(&s, &read);
    free(line);
}

T_CASE(bytes_that_are_no_text)
{
    struct gpv_snapshot s = { .least = -1, .most = -1 }, read;
    memcpy(s.host, "a\xff\xc3", 4);
    char *line = line_of(&s);
    T_EQ(gpv_snapshot_read(&read, line, strlen(line)), 0);
    T_TEXT(read.host, "a\uFFFD\uFFFD");
    gpv_snapshot_free(&read);
    free(line);
}

/* ---- What does not fit ---- */

static void add_rows(struct gpv_snapshot *s, uint32_t gpus, uint32_t batches)
{
    *s = (struct gpv_snapshot){ .time = 1794596400000000000, .since = 1794596400000000000 };
    gpv_now_text(s->host, sizeof(s->host), "ada-box");
    for (uint32_t i = 0; i < gpus; i++) {
        struct gpv_now_gpu *g = gpv_now_gpu(s);
        T_CHECK(g);
        *g = (struct gpv_now_gpu){ .index = i,
                                   .does = GPV_DOES_RUN,
                                   .since = s->time,
                                   .task = GPV_TASK(15, 754),
                                   .attempt = 1,
                                   .tasks = 1,
                                   .memory_used = 15032385536,
                                   .memory_total = 151397597184,
                                   .utilization = 97,
                                   .temperature = 61,
                                   .power = 512000 };
        snprintf(g->name, sizeof(g->name), "gpu:%u", i);
        gpv_now_text(g->uuid, sizeof(g->uuid), "GPU-5fd4f087-86f3-7a43-b711-4771313afc50");
        gpv_now_text(g->model, sizeof(g->model), "NVIDIA H200");
        gpv_now_text(g->pci, sizeof(g->pci), "00000000:1B:00.0");
        gpv_now_text(g->class_name, sizeof(g->class_name), "whisper");
        for (uint32_t use = 0; use < GPV_USES; use++)
            g->uses.ns[use] = 3600000000000 * use;
    }
    for (uint32_t i = 0; i < batches; i++) {
        struct gpv_now_batch *b = gpv_now_batch(s);
        T_CHECK(b);
        *b = (struct gpv_now_batch){ .id = i + 1,
                                     .made = s->time,
                                     .total = 7,
                                     .ok = 1,
                                     .bad = 1,
                                     .why = GPV_WHY_UNSEEN,
                                     .least = -1,
                                     .most = -1 };
        snprintf(b->name, sizeof(b->name), "rec-%u", i);
        if (i % 8 != 0) {
            b->ended = s->time;
            continue;
        }
        b->running = 1;
        b->ready = b->held = 2;
        b->turn = 1;
        b->first = GPV_TASK(i + 1, 3);
        b->why = GPV_WHY_LIMIT;
        b->since = s->time;
        b->per_hour = 41.5;
        gpv_now_text(b->reason, sizeof(b->reason), "SEATS");
        gpv_now_text(b->text, sizeof(b->text), "its limit of 3 workers is reached");
    }
}

static void add_more(struct gpv_snapshot *s, int classes, int findings, int ends)
{
    while (classes-- > 0) {
        struct gpv_now_class *c = gpv_now_class(s);
        T_CHECK(c);
        gpv_now_text(c->name, sizeof(c->name), "whisper");
        for (int64_t ns = 125000000; ns < 100000000000; ns *= 2)
            gpv_histogram_add(&c->run, ns);
    }
    while (findings-- > 0)
        T_CHECK(gpv_now_finding(s));
    while (ends-- > 0)
        T_CHECK(gpv_now_end(s));
}

static void written(const struct gpv_snapshot *s, size_t most, struct gpv_snapshot *read)
{
    char *line = line_of(s);
    T_CMP(strlen(line), <=, most);
    T_EQ(gpv_snapshot_read(read, line, strlen(line)), 0);
    free(line);
}

T_CASE(eight_gpus_and_64_batches_fit)
{
    struct gpv_snapshot s, read;
    add_rows(&s, 8, 64);
    add_more(&s, 3, 6, 6);
    written(&s, LINE, &read);
    same(&s, &read);
    gpv_snapshot_free(&s);
    gpv_snapshot_free(&read);
}

T_CASE(what_does_not_fit_is_counted)
{
    struct gpv_snapshot s, read;
    add_rows(&s, 8, 1000);
    add_more(&s, 35, 200, 200);
    s.more = (struct gpv_now_more){ 1, 2, 3, 4, 5, 6, 7, 4, 8, 9 };
    written(&s, 2 * LINE, &read);
    T_EQ(read.batches.n, GPV_NOW_BATCHES);
    uint32_t rest = 1000 - GPV_NOW_BATCHES, go_on = rest / 8;
    T_EQ(read.more.batches, 1 + rest);
    T_EQ(read.more.total, 2 + 7 * rest);
    T_EQ(read.more.ok, 3 + rest);
    T_EQ(read.more.bad, 4 + rest);
    T_EQ(read.more.running, 5 + go_on);
    T_EQ(read.more.ready, 6 + 2 * go_on);
    T_EQ(read.more.held, 7 + 2 * go_on);
    T_EQ(read.more.turn, 4 + go_on);
    T_EQ(read.findings.n, GPV_NOW_FINDINGS);
    T_EQ(read.more.findings, 8 + 200 - GPV_NOW_FINDINGS);
    T_EQ(read.classes.n, GPV_NOW_CLASSES);
    T_EQ(read.more.classes, 9 + 35 - GPV_NOW_CLASSES);
    T_EQ(read.ends.n, GPV_NOW_ENDS);
    T_EQ(s.more.batches, 1);
    gpv_snapshot_free(&s);
    gpv_snapshot_free(&read);
}

/* Texts that become six times as long. */
T_CASE(large_rows_are_fewer)
{
    struct gpv_snapshot s, read;
    add_rows(&s, 8, 64);
    add_more(&s, 0, 30, 0);
    for (size_t i = 0; i < s.batches.n; i++)
        memset(s.batches.row[i].text, '<', sizeof(s.batches.row[i].text) - 1);
    for (size_t i = 0; i < s.findings.n; i++)
        memset(s.findings.row[i].text, 1, sizeof(s.findings.row[i].text) - 1);
    written(&s, LINE, &read);
    T_CMP(read.batches.n, >, 5);
    T_EQ(read.batches.n + read.more.batches, 64);
    T_EQ(read.findings.n + read.more.findings, 30);
    gpv_snapshot_free(&s);
    gpv_snapshot_free(&read);
}

/* The ms of a minute add up, though none of its parts is a whole number of them. */
T_CASE(history_in_ms)
{
    struct gpv_snapshot s, read;
    add_rows(&s, 1, 0);
    s.minutes = 1;
    s.history = calloc(1, sizeof(*s.history));
    T_CHECK(s.history);
    for (uint32_t use = 0; use < 5; use++)
        s.history[0].ns[use] = 12000000000 + (use % 2 ? -400000 : 400000) - (use == 4 ? 400000 : 0);
    written(&s, LINE, &read);
    int64_t sum = 0;
    for (uint32_t use = 0; use < GPV_USES; use++)
        sum += read.history[0].ns[use];
    T_EQ(sum, 60000000000);
    T_EQ(read.history[0].ns[GPV_USE_IDLE], 0);
    gpv_snapshot_free(&s);
    gpv_snapshot_free(&read);
}

/* ---- Lines of others ---- */

static int read_text(struct gpv_snapshot *s, const char *text)
{
    return gpv_snapshot_read(s, text, strlen(text));
}

T_CASE(no_snapshots)
{
    static const char *const texts[] = { "",   "{}",  "[]",
                                         "1",  "nul", "{\"snapshot\":\"1\"}",
                                         "\"", "[{}", "{\"snapshot\":1}x" };
    for (size_t i = 0; i < T_LENGTH(texts); i++) {
        struct gpv_snapshot s;
        memset(&s, 0x55, sizeof(s));
        T_EQ(read_text(&s, texts[i]), -1);
        T_CHECK(!s.gpus.row && s.gpus.n == 0 && !s.history);
    }
}

T_CASE(members_of_a_later_version)
{
    struct gpv_snapshot s;
    T_EQ(read_text(&s, "{\"snapshot\":2,\"new\":[{}],\"host\":\"box\",\"gpus\":[{\"gpu\":\"gpu:0\","
                       "\"does\":\"dance\",\"new\":{\"a\":1}}],\"batches\":[{\"why\":\"moon\"}]}"),
         0);
    T_TEXT(s.host, "box");
    T_TEXT(s.gpus.row[0].name, "gpu:0");
    T_EQ(s.gpus.row[0].does, GPV_DOES_IDLE);
    T_EQ(s.gpus.row[0].memory_used, UINT64_MAX);
    T_EQ(s.gpus.row[0].power, GPV_NONE);
    T_EQ(s.batches.row[0].why, GPV_WHY_UNSEEN);
    T_EQ(s.batches.row[0].least, -1);
    gpv_snapshot_free(&s);
}

T_CASE(members_of_other_types)
{
    struct gpv_snapshot s;
    T_EQ(read_text(&s, "{\"snapshot\":1,\"host\":[],\"pid\":\"7\",\"time\":1.5,\"gpus\":[7,"
                       "{\"does\":\"?\",\"index\":-1,\"power\":4294967296,\"task\":\"1.x\","
                       "\"asleep\":1,\"uses\":{\"ok\":-5,\"lost\":\"a\"},\"memory_used\":-7}],"
                       "\"classes\":{},\"batches\":[{\"first\":\"99999999999.1\",\"per_hour\":[],"
                       "\"priority\":3000000000}],\"more\":[],\"minutes\":2,\"history\":[1,{\"ok\":"
                       "[1,70000,-3,4]}]}"),
         0);
    T_TEXT(s.host, "");
    T_EQ(s.pid, 0);
    T_EQ(s.time, 0);
    T_EQ(s.gpus.n, 2);
    T_EQ(s.gpus.row[1].does, GPV_DOES_IDLE);
    T_EQ(s.gpus.row[1].index, GPV_NONE);
    T_EQ(s.gpus.row[1].power, GPV_NONE);
    T_EQ(s.gpus.row[1].task, 0);
    T_CHECK(!s.gpus.row[1].asleep);
    T_EQ(s.gpus.row[1].uses.ns[GPV_USE_OK], 0);
    T_EQ(s.gpus.row[1].memory_used, UINT64_MAX);
    T_EQ(s.classes.n, 0);
    T_EQ(s.batches.row[0].first, 0);
    T_EQ(s.batches.row[0].priority, 0);
    T_EQ(s.minutes, 2);
    T_EQ(s.history[2].ns[GPV_USE_OK], 1000000);
    T_EQ(s.history[3].ns[GPV_USE_OK], 60000000000);
    gpv_snapshot_free(&s);
}

T_CASE(lines_that_were_cut)
{
    struct gpv_snapshot s, read;
    add_rows(&s, 1, 2);
    char *line = line_of(&s);
    for (size_t i = 0; i < strlen(line); i++)
        T_EQ(gpv_snapshot_read(&read, line, i), -1);
    gpv_snapshot_free(&s);
    free(line);
}

T_CASE(no_memory)
{
    struct gpv_snapshot s, read;
    add_rows(&s, 2, 2);
    s.minutes = 1;
    s.history = calloc(2, sizeof(*s.history));
    T_CHECK(s.history);
    char *line = line_of(&s);
    for (unsigned i = 1; i <= 3; i++) {
        fail_at = i;
        T_EQ(gpv_snapshot_read(&read, line, strlen(line)), -1);
        T_CHECK(!read.gpus.row);
    }
    fail_at = 4;
    T_EQ(gpv_snapshot_read(&read, line, strlen(line)), 0);
    T_EQ(fail_at, 1);
    fail_at = 0;
    gpv_snapshot_free(&s);
    gpv_snapshot_free(&read);
    free(line);
}

/* ---- What rows are made of ---- */

T_CASE(texts_are_cut_between_characters)
{
    char text[5];
    gpv_now_text(text, sizeof(text), "abcde");
    T_TEXT(text, "abcd");
    gpv_now_text(text, sizeof(text), "ab€");
    T_TEXT(text, "ab");
    gpv_now_text(text, sizeof(text), "a€");
    T_TEXT(text, "a€");
    gpv_now_text(text, sizeof(text), "\xff\xff\xff\xff\xff");
    T_TEXT(text, "\xff\xff\xff\xff");
    gpv_now_text(text, sizeof(text), "");
    T_TEXT(text, "");
}

T_CASE(tasks_of_a_finding)
{
    struct gpv_finding f = {
        .kind = GPV_FINDING_BAD, .batch = 15, .n_ranges = 2, .range = { { 4, 4 }, { 610, 631 } }
    };
    char text[26];
    gpv_now_whose(text, sizeof(text), "rec-11", &f);
    T_TEXT(text, "15 rec-11 4, 610-631");
    f.more = 1;
    gpv_now_whose(text, sizeof(text), "rec", &f);
    T_TEXT(text, "15 rec 4, 610-631 ...");
    gpv_now_whose(text, sizeof(text), "a-name-that-is-very-long", &f);
    T_TEXT(text, "15 a-name-that-is-very-lo");
    f.kind = GPV_FINDING_OUT;
    gpv_now_whose(text, sizeof(text), "rec-11", &f);
    T_TEXT(text, "");
}

T_CASE(gpus_of_a_finding)
{
    static const char *const name[] = { "gpu:0", "gpu:2", "gpu:3", "gpu:4", "mig:1", "gpu:6" };
    char text[48];
    gpv_now_gpus(text, sizeof(text), name, 6);
    T_TEXT(text, "0, 2-4, mig:1, 6");
    gpv_now_gpus(text, sizeof(text), name, 0);
    T_TEXT(text, "");
    gpv_now_gpus(text, 10, name, 6);
    T_TEXT(text, "0 ...");
}

T_CASE(order_of_batches)
{
    struct gpv_now_batch b[] = { { .id = 1, .ended = 10 },    { .id = 2 },
                                 { .id = 3, .priority = 5 },  { .id = 4, .ended = 20 },
                                 { .id = 5, .priority = -1 }, { .id = 6 } };
    static const uint32_t wanted[] = { 3, 2, 6, 5, 4, 1 };
    gpv_now_sort_batches(b, T_LENGTH(b));
    for (size_t i = 0; i < T_LENGTH(b); i++)
        T_EQ(b[i].id, wanted[i]);
}

T_CASE(measures)
{
    struct gpv_histogram h = { 0 };
    struct gpv_lengths l = { 0 };
    T_EQ(gpv_lengths_p50(&l), -1);
    static const int64_t ns[] = { 0,          125000000,      125000001,
                                  1000000000, 65536000000000, 65536000000001 };
    for (size_t i = 0; i < T_LENGTH(ns); i++)
        gpv_histogram_add(&h, ns[i]);
    T_EQ(h.bucket[0], 2);
    T_EQ(h.bucket[1], 1);
    T_EQ(h.bucket[3], 1);
    T_EQ(h.bucket[19], 1);
    T_EQ(h.count, 6);
    T_CHECK(h.sum > 131073.249 && h.sum < 131073.251);
    for (int64_t i = 1; i <= 4; i++)
        gpv_lengths_add(&l, 5 - i);
    T_EQ(gpv_lengths_p50(&l), 2);
    for (int i = 0; i < 33; i++)
        gpv_lengths_add(&l, 7);
    T_EQ(gpv_lengths_p50(&l), 7);
    for (int64_t i = 0; i < 64; i++)
        gpv_lengths_add(&l, i);
    T_EQ(gpv_lengths_p50(&l), 31);
}
