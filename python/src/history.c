/* SPDX-License-Identifier: MIT */
/* history.c - the work on each device in the last ten minutes. */
#include "history.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECONDS = 600,
    LANES = 256,  /* further devices have none */
    CLASSES = 64, /* further ones are the last one, "others" */
    NAME = 64,
    LABEL = 64,
    TEXT = 160,
    ENDS = 64, /* bad ones with their texts */
    FIRST_BAD = GPUD_OUTCOME_ERROR,
    BAD = GPUD_OUTCOME_COUNT - FIRST_BAD
};
#define SECOND UINT64_C(1000000000)

/* A second of a device; pool_moment.py has the same layout. */
struct second {
    uint32_t at;      /* on CLOCK_MONOTONIC, in s; 0 = none */
    uint32_t busy;    /* us of tasks that ended well; those that ran at a time are added up */
    uint32_t most;    /* us of the class that has most of them */
    uint32_t lost;    /* us of tasks that ended badly */
    uint32_t loading; /* us in which a worker started or left */
    uint32_t bad[BAD];
    uint8_t class; /* index of that class */
    uint8_t zero[3];
};
_Static_assert(sizeof(struct second) == 44, "no gaps");

enum use { WORKED, LOST, LOADING };

struct lane {
    char name[NAME];
    struct second second[SECONDS];
};

struct bad_end {
    uint64_t number, at;
    uint32_t outcome;
    uint8_t class;
    char device[NAME], label[LABEL], text[TEXT];
};

struct core_history {
    pthread_mutex_t lock; /* also where there is no GIL */
    struct lane *lane[LANES];
    unsigned lanes, classes;
    char class[CLASSES][NAME];
    uint64_t *loads; /* by slot: since when its worker starts or leaves; 0 = it does neither */
    uint32_t slots;
    uint64_t began;
    uint64_t ends; /* bad ones */
    struct bad_end end[ENDS];
};

struct core_history *core_history_new(uint64_t now)
{
    struct core_history *h = calloc(1, sizeof *h);

    if (!h)
        return NULL;
    (void)pthread_mutex_init(&h->lock, NULL);
    h->began = now;
    return h;
}

void core_history_free(struct core_history *h)
{
    if (!h)
        return;
    for (unsigned i = 0; i < h->lanes; i++)
        free(h->lane[i]);
    free(h->loads);
    (void)pthread_mutex_destroy(&h->lock);
    free(h);
}

/* Copies `n` bytes, or as many as fit; a character that is cut is replaced when it is decoded. */
static void copy(char *to, size_t size, const char *from, size_t n)
{
    n = n < size ? n : size - 1;
    memcpy(to, from, n);
    to[n] = 0;
}

static void copy_text(char *to, size_t size, const char *from)
{
    copy(to, size, from ? from : "", from ? strlen(from) : 0);
}

static struct lane *lane_of(struct core_history *h, const char *name, size_t n)
{
    char text[NAME];
    struct lane *made;

    copy(text, sizeof text, name, n);
    for (unsigned i = 0; i < h->lanes; i++)
        if (!strcmp(h->lane[i]->name, text))
            return h->lane[i];
    if (h->lanes == LANES || !(made = calloc(1, sizeof *made)))
        return NULL;
    memcpy(made->name, text, sizeof text);
    h->lane[h->lanes++] = made;
    return made;
}

static uint8_t class_of(struct core_history *h, const char *name)
{
    char text[NAME];

    copy_text(text, sizeof text, name);
    for (unsigned i = 0; i < h->classes; i++)
        if (!strcmp(h->class[i], text))
            return (uint8_t)i;
    if (h->classes == CLASSES)
        return CLASSES - 1;
    if (h->classes == CLASSES - 1)
        copy_text(text, sizeof text, "others");
    memcpy(h->class[h->classes], text, sizeof text);
    return (uint8_t)h->classes++;
}

/* The place of a second, emptied if an older one has it; NULL if a later one does. */
static struct second *second_of(struct lane *l, uint64_t at)
{
    struct second *s = &l->second[at % SECONDS];

    if (s->at > (uint32_t)at)
        return NULL;
    if (s->at != (uint32_t)at)
        *s = (struct second){ .at = (uint32_t)at };
    return s;
}

static uint32_t sum(uint32_t a, uint64_t b)
{
    return b < UINT32_MAX - a ? a + (uint32_t)b : UINT32_MAX;
}

/* Time of use WORKED has a class, other time has none. */
static void add(struct second *s, uint64_t us, uint8_t class, enum use use)
{
    if (use == LOADING) {
        s->loading = sum(s->loading, us);
        return;
    }
    if (use == LOST) {
        s->lost = sum(s->lost, us);
        return;
    }
    s->busy = sum(s->busy, us);
    if (s->class == class) {
        s->most = sum(s->most, us);
    } else if (us > s->most) {
        s->class = class;
        s->most = (uint32_t)(us < UINT32_MAX ? us : UINT32_MAX);
    }
}

static void add_span(struct lane *l, uint64_t from, uint64_t to, uint8_t class, enum use use)
{
    if (to > SECONDS * SECOND && from < to - SECONDS * SECOND)
        from = to - SECONDS * SECOND;
    while (from < to) {
        const uint64_t next = (from / SECOND + 1) * SECOND, until = next < to ? next : to;
        struct second *s = second_of(l, from / SECOND);
        if (s)
            add(s, (until - from + 999) / 1000, class, use);
        from = until;
    }
}

/* On each device of a list such as "gpu:0,gpu:1". */
static void add_everywhere(struct core_history *h, const char *devices, uint64_t from, uint64_t to,
                           uint8_t class, enum use use)
{
    for (const char *at = devices; at && *at;) {
        const size_t n = strcspn(at, ",");
        struct lane *l = lane_of(h, at, n);
        if (l)
            add_span(l, from, to, class, use);
        at += n + (at[n] == ',');
    }
}

/* A bad end is counted once: on its first device. */
static void add_bad(struct core_history *h, const struct gpud_event *e, uint64_t at, uint8_t class)
{
    const char *device = e->device ? e->device : "";
    struct lane *l = lane_of(h, device, strcspn(device, ","));
    struct second *s = l ? second_of(l, at / SECOND) : NULL;
    struct bad_end *end = &h->end[h->ends++ % ENDS];

    if (s)
        s->bad[e->outcome - FIRST_BAD]++;
    *end = (struct bad_end){ h->ends, at, e->outcome, class, "", "", "" };
    copy_text(end->device, sizeof end->device, device);
    copy_text(end->label, sizeof end->label, e->label);
    copy_text(end->text, sizeof end->text, e->text);
}

static void take_outcome(struct core_history *h, const struct gpud_event *e, uint64_t now)
{
    const uint64_t end = e->ended_at ? e->ended_at : now;
    const uint8_t class = class_of(h, e->class_name);
    const bool bad = e->outcome >= FIRST_BAD && e->outcome < GPUD_OUTCOME_COUNT;

    if (e->started_at)
        add_everywhere(h, e->device, e->started_at, end, class, bad ? LOST : WORKED);
    if (bad)
        add_bad(h, e, end, class);
}

static void take_slot(struct core_history *h, const struct gpud_event *e, uint64_t now)
{
    const bool loads = e->slot_state == GPUD_SLOT_STARTING ||
                       e->slot_state == GPUD_SLOT_UNLOADING || e->slot_state == GPUD_SLOT_COOLING;

    if (e->slot >= h->slots) {
        const uint32_t n = e->slot + 8;
        uint64_t *more = realloc(h->loads, n * sizeof *more);
        if (!more)
            return;
        memset(more + h->slots, 0, (n - h->slots) * sizeof *more);
        h->loads = more;
        h->slots = n;
    }
    if (h->loads[e->slot])
        add_everywhere(h, e->device, h->loads[e->slot], now, 0, LOADING);
    h->loads[e->slot] = loads ? now : 0;
    if (loads)
        (void)class_of(h, e->class_name); /* in the order of their loads, textures stay theirs */
}

void core_history_take(struct core_history *h, const struct gpud_event *events, int n, uint64_t now)
{
    (void)pthread_mutex_lock(&h->lock);
    for (int i = 0; i < n; i++) {
        if (events[i].kind == GPUD_EVENT_OUTCOME)
            take_outcome(h, &events[i], now);
        else if (events[i].kind == GPUD_EVENT_SLOT && events[i].slot != GPUD_NO_SLOT)
            take_slot(h, &events[i], now);
    }
    (void)pthread_mutex_unlock(&h->lock);
}

/* ---- rows ---- */

static PyObject *text_of(const char *s)
{
    return PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "replace");
}

static int append(PyObject *list, PyObject *made)
{
    const int r = made ? PyList_Append(list, made) : -1;

    Py_XDECREF(made);
    return r;
}

static int append_end(PyObject *list, const struct bad_end *e)
{
    return append(list, Py_BuildValue("KKIINNN", (unsigned long long)e->number,
                                      (unsigned long long)e->at, e->outcome, (unsigned)e->class,
                                      text_of(e->device), text_of(e->label), text_of(e->text)));
}

static PyObject *rows_of(const struct core_history *h)
{
    PyObject *classes = PyList_New(0), *lanes = PyList_New(0), *ends = PyList_New(0);
    const uint64_t kept = h->ends < ENDS ? h->ends : ENDS;
    bool whole = classes && lanes && ends;

    for (unsigned i = 0; whole && i < h->classes; i++)
        whole = append(classes, text_of(h->class[i])) == 0;
    for (unsigned i = 0; whole && i < h->lanes; i++)
        whole = append(lanes, Py_BuildValue("Ny#", text_of(h->lane[i]->name),
                                            (const char *)h->lane[i]->second,
                                            (Py_ssize_t)sizeof h->lane[i]->second)) == 0;
    for (uint64_t i = h->ends - kept; whole && i < h->ends; i++)
        whole = append_end(ends, &h->end[i % ENDS]) == 0;
    if (whole)
        return Py_BuildValue("KNNNK", (unsigned long long)h->began, classes, lanes, ends,
                             (unsigned long long)h->ends);
    Py_XDECREF(classes);
    Py_XDECREF(lanes);
    Py_XDECREF(ends);
    return NULL;
}

/* Objects are made of a copy: making one may run a garbage collection, and so any code. */
PyObject *core_history_rows(struct core_history *h)
{
    struct core_history *now = core_history_new(h->began);
    bool whole = true;
    PyObject *r;

    if (!now)
        return PyErr_NoMemory();
    (void)pthread_mutex_lock(&h->lock);
    memcpy(now->class, h->class, sizeof now->class);
    memcpy(now->end, h->end, sizeof now->end);
    now->classes = h->classes;
    now->ends = h->ends;
    for (unsigned i = 0; i < h->lanes; i++) {
        whole = (now->lane[i] = malloc(sizeof *now->lane[i])) != NULL;
        if (!whole)
            break;
        memcpy(now->lane[i], h->lane[i], sizeof *now->lane[i]);
        now->lanes++;
    }
    (void)pthread_mutex_unlock(&h->lock);
    r = whole ? rows_of(now) : PyErr_NoMemory();
    core_history_free(now);
    return r;
}
