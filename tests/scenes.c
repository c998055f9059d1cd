/* SPDX-License-Identifier: MIT */
#include "scenes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- in the workers ---- */

static unsigned class_of(gpud_worker *w)
{
    size_t size = 0;
    const char *digit = gpud_worker_setup_data(w, &size);

    return size == 1 ? (unsigned)(*digit - '0') : 0;
}

static void pass_gate(unsigned word)
{
    if (t_word(word) == T_CLOSED)
        t_word_wait(word, T_OPEN);
}

static int setup(gpud_worker *w, void **ret_state)
{
    const unsigned class = class_of(w);

    *ret_state = w;
    t_word_add(T_BOOTS + class);
    pass_gate(T_BOOT_GATE + class);
    t_word_add(T_UPS + class);
    return 0;
}

static void cleanup(gpud_worker *w, void *state)
{
    const unsigned class = class_of(w);

    (void)state;
    t_word_add(T_DOWNS + class);
    pass_gate(T_DOWN_GATE + class);
}

static void count_in(unsigned device)
{
    const uint32_t now = t_word_add(T_NOW + device);

    for (uint32_t most = t_word(T_MOST + device); most < now;)
        if (atomic_compare_exchange_weak(&t_page->words[T_MOST + device], &most, now))
            break;
}

/* Its result is the number of its start, and its devices: "3 fake:0". */
static int process(gpud_task *t, void *state)
{
    const char *devices = gpud_worker_device(state);
    const uint64_t tag = gpud_task_tag(t);
    const unsigned device = strncmp(devices, "fake:", 5) == 0 ? (unsigned)atoi(devices + 5) : 0;
    char text[256];
    int n;

    n = snprintf(text, sizeof(text), "%u %s", t_word_add(T_STARTS), devices);
    count_in(device);
    if (tag >= T_SLOW)
        t_pass(T_MS(2));
    else if (tag >= T_GATED)
        t_word_wait(T_TASK_GATE, (uint32_t)(tag - T_GATED));
    (void)atomic_fetch_sub(&t_page->words[T_NOW + device], 1);
    return gpud_task_result_set(t, text, (uint64_t)n + 1);
}

/* ---- in the case ---- */

void t_scene_init(void)
{
    t_init(setup, process, cleanup);
}

struct question {
    gpud_dispatcher *d;
    uint64_t id;
    uint32_t kind;
    struct gpud_reason first;
};

static int is_first(void *user)
{
    struct question *q = user;
    size_t n = 0;

    q->first = (struct gpud_reason)GPUD_REASON_INIT;
    T_OK(gpud_dispatcher_explain(q->d, q->id, NULL, &q->first, 1, &n, NULL));
    return n > 0 && q->first.kind == q->kind;
}

struct gpud_reason t_waits_for(gpud_dispatcher *d, uint64_t id, uint32_t kind)
{
    struct question q = { .d = d, .id = id, .kind = kind };
    char line[256];

    t_wait_until(gpud_reason_name(kind), is_first, &q);
    (void)gpud_reason_format(&q.first, line, sizeof(line));
    printf("  %s\n", line);
    return q.first;
}

uint32_t t_start_of(const struct t_log *log, uint64_t tag)
{
    return (uint32_t)atoi((const char *)T_OUTCOME(log, tag, SUCCESS)->result);
}

const char *t_devices_of(const struct t_log *log, uint64_t tag)
{
    return strchr((const char *)T_OUTCOME(log, tag, SUCCESS)->result, ' ') + 1;
}

void t_open_all(gpud_dispatcher *d, struct t_log *log, size_t n)
{
    t_word_set(T_TASK_GATE, T_SLOW);
    t_collect(d, log, n);
}

const struct gpud_event *t_changed(gpud_dispatcher *d, struct t_log *log, const char *name,
                                   uint32_t change, size_t n)
{
    size_t at = 0;

    for (;; at++) {
        const struct gpud_event *e;

        t_collect_kind(d, log, GPUD_EVENT_CLASS, at + 1);
        e = t_log_at(log, GPUD_EVENT_CLASS, at);
        n -= strcmp(e->class_name, name) == 0 && e->class_change == change;
        if (n == 0)
            return e;
    }
}
