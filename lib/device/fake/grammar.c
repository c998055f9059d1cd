/* SPDX-License-Identifier: MIT */
/* grammar.c - reads a line of a script (docs/reference/fake-scripts.md): its beginning, its devices
 * and its effects. */
#include "device/fake/grammar.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"

/* ---- effects ---- */

static uint64_t take_number(struct gpi_reader *r, uint64_t most, const char *what)
{
    struct gpi_word w;
    uint64_t n = 0;

    gpi_word_take(r, &w);
    if (!gpi_whole(w.text, most, &n))
        gpi_word_expected(r, &w, what);
    return n;
}

static uint64_t take_quantity(struct gpi_reader *r, const struct gpi_unit *units, const char *what)
{
    struct gpi_word w;
    uint64_t n = 0;

    gpi_word_take(r, &w);
    if (!gpi_quantity(w.text, units, &n))
        gpi_word_expected(r, &w, what);
    return n;
}

static uint64_t take_time(struct gpi_reader *r)
{
    return take_quantity(r, gpi_times, "a time such as 50ms");
}

static bool is_call(const char *text)
{
    static const char *const groups[] = { GPI_SCRIPT_OPEN, GPI_SCRIPT_ENUMERATE, GPI_SCRIPT_SAMPLE,
                                          GPI_SCRIPT_AWAIT, GPI_SCRIPT_KERNEL };

    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
        if (!strcmp(text, groups[i]))
            return true;
    if (strlen(text) >= GPI_SCRIPT_CALL_SIZE ||
        (strncmp(text, "nvml", 4) != 0 && strncmp(text, "cu", 2) != 0))
        return false;
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    return true;
}

static void take_call(struct gpi_reader *r, struct gpi_effect *e)
{
    struct gpi_word w;

    gpi_word_take(r, &w);
    if (!is_call(w.text))
        gpi_word_expected(r, &w,
                          "open, enumerate, sample, await, kernel, or a function of NVML or CUDA");
    (void)snprintf(e->call, sizeof(e->call), "%.*s", (int)sizeof(e->call) - 1, w.text);
}

static void take_code(struct gpi_reader *r, struct gpi_effect *e)
{
    struct gpi_word w, found;

    gpi_word_take(r, &w);
    found = w;
    if (!gpi_times_in(w.text, &e->more) || !gpi_whole(w.text, 999999, &e->value) || e->value == 0)
        gpi_word_expected(r, &found, "an error's number from 1, as in 999 or 999*2");
}

/* Reads hang CALL, slow CALL TIME, fail CALL CODE[*N], mend CALL, xid NUMBER; returns false if the
 * word is no such verb. */
static bool common_verb(struct gpi_reader *r, struct gpi_effect e, const struct gpi_word *w)
{
    static const struct gpi_keyword verbs[] = {
        { "hang", GPI_VERB_HANG }, { "slow", GPI_VERB_SLOW }, { "fail", GPI_VERB_FAIL },
        { "mend", GPI_VERB_MEND }, { "xid", GPI_VERB_XID },   { NULL, 0 }
    };
    uint64_t verb;

    if (!gpi_keyword_read(verbs, w->text, strlen(w->text), &verb))
        return false;
    e.verb = (uint8_t)verb;
    if (verb == GPI_VERB_XID)
        e.value = take_number(r, 999999, "the number of an XID");
    else
        take_call(r, &e);
    if (verb == GPI_VERB_SLOW)
        e.value = take_time(r);
    if (verb == GPI_VERB_FAIL)
        take_code(r, &e);
    gpi_script_push(r, &e);
    return true;
}

/* Reads +SIZE/s, if the next word is one. */
static void growth(struct gpi_reader *r, uint64_t *ret)
{
    const char *before = r->at;
    struct gpi_word w, found;
    size_t n;
    bool rate;

    gpi_word_take(r, &w);
    if (*w.text != '+') {
        r->at = before;
        return;
    }
    found = w;
    n = strlen(w.text);
    rate = n >= 3 && !strcmp(w.text + n - 2, "/s");
    if (rate)
        w.text[n - 2] = '\0';
    if (!rate || !gpi_quantity(w.text + 1, gpi_sizes, ret))
        gpi_word_expected(r, &found, "a growth such as +1GiB/s");
}

static void process(struct gpi_reader *r, struct gpi_effect e, bool comes)
{
    e.pid = (uint32_t)take_number(r, INT32_MAX, "the number of a process");
    e.verb = comes ? GPI_VERB_FOREIGN : GPI_VERB_GONE;
    if (comes) {
        e.value = take_quantity(r, gpi_sizes, "a size such as 20GiB");
        growth(r, &e.more);
    }
    gpi_script_push(r, &e);
}

static const struct gpi_keyword accesses[] = {
    { "back", GPI_ACCESS_OK },         { "denied", GPI_ACCESS_DENIED },
    { "lost", GPI_ACCESS_LOST },       { "needs-reset", GPI_ACCESS_RESET },
    { "revoked", GPI_ACCESS_REVOKED }, { NULL, 0 }
};

static void gpu_verb(struct gpi_reader *r, struct gpi_effect e, const struct gpi_word *w)
{
    if (gpi_word_is(w, "foreign") || gpi_word_is(w, "gone")) {
        process(r, e, gpi_word_is(w, "foreign"));
        return;
    }
    e.verb = GPI_VERB_SET;
    e.setting = GPI_SET_ACCESS;
    if (!gpi_keyword_read(accesses, w->text, strlen(w->text), &e.value))
        gpi_word_expected(r, w,
                          "KEY=VALUE, xid, lost, needs-reset, revoked, denied, back, foreign, "
                          "gone, hang, slow, fail or mend");
    gpi_script_push(r, &e);
}

static void gpu_word(struct gpi_reader *r, const struct gpi_effect *e, const struct gpi_word *w)
{
    const bool assigns = strchr(w->text, '=');
    const uint32_t fact = assigns ? gpi_fact_named(w) : GPI_FACTS,
                   setting = gpi_setting_named(w, 0, GPI_SETTINGS_OF_DRIVER);

    if (!assigns)
        gpu_verb(r, *e, w);
    else if (fact < GPI_FACTS)
        gpi_script_identify(r, e, fact, w);
    else if (setting < GPI_SETTINGS)
        gpi_script_set(r, *e, setting, w);
    else
        gpi_word_expected(r, w, "a KEY of a GPU, such as memory or temperature");
}

/* ---- the driver ---- */

static void driver_fact(struct gpi_reader *r, const struct gpi_effect *e, const struct gpi_word *w)
{
    const struct gpi_word v = gpi_word_value(w);
    struct gpi_script *s = r->s;
    uint32_t major, minor;
    char *text = !strncmp(w->text, "version=", 8) ? s->version
                 : !strncmp(w->text, "nvml=", 5)  ? s->nvml
                                                  : NULL;
    const bool cuda = !strncmp(w->text, "cuda=", 5), entries = !strncmp(w->text, "entries=", 8);

    if (!text && !cuda && !entries) {
        gpi_word_expected(r, w, "state=, version=, nvml=, cuda=, processes= or entries=");
    } else if (e->begins) {
        gpi_word_expected(r, w, GPI_EXPECTED_SETTING);
    } else if (text && (!*v.text || strlen(v.text) >= sizeof(s->version))) {
        gpi_word_expected(r, &v, "a text of 1 to 79 bytes");
    } else if (text) {
        memset(text, 0, sizeof(s->version));
        memcpy(text, v.text, strlen(v.text));
    } else if (cuda) {
        if (!gpi_version_in(v.text, &major, &minor))
            gpi_word_expected(r, &v, "a version such as 12.8");
        else
            s->cuda_version = major * 1000 + minor * 10;
    } else {
        if (!gpi_word_is(&v, "24") && !gpi_word_is(&v, "32"))
            gpi_word_expected(r, &v, "24 or 32");
        s->entry_size = gpi_word_is(&v, "24") ? 24 : 32;
    }
}

static void driver_word(struct gpi_reader *r, const struct gpi_effect *e, const struct gpi_word *w)
{
    const uint32_t setting = gpi_setting_named(w, GPI_SETTINGS_OF_DRIVER, GPI_SETTINGS);
    struct gpi_effect said = *e;

    said.verb = GPI_VERB_DEAF;
    if (!strchr(w->text, '=')) {
        if (!gpi_word_is(w, "deaf"))
            gpi_word_expected(r, w, "KEY=VALUE, xid, deaf, hang, slow, fail or mend");
        gpi_script_push(r, &said);
    } else if (setting < GPI_SETTINGS) {
        gpi_script_set(r, *e, setting, w);
    } else {
        driver_fact(r, e, w);
    }
}

/* ---- beginnings ---- */

static uint32_t trigger(struct gpi_reader *r, const char *path)
{
    struct gpi_script *s = r->s;
    uint32_t i = 0;

    while (i < s->triggers && strcmp(s->trigger[i], path) != 0)
        i++;
    if (i == GPI_SCRIPT_TRIGGERS_MAX) {
        r->code =
            gpi_fail(r->e, GPUD_EDEVICE, 0, "script", "line %u: the maximum is %u files after when",
                     r->line, GPI_SCRIPT_TRIGGERS_MAX);
    } else if (i == s->triggers) {
        s->trigger[i] = strdup(path);
        if (s->trigger[i])
            s->triggers++;
        else
            r->code = gpi_fail(r->e, GPUD_ENOMEM, 0, "script", "no memory for its lines");
    }
    return i;
}

/* Reads at TIME, or when FILE [after TIME]; then *w is the next word. */
static void beginning(struct gpi_reader *r, struct gpi_word *w, struct gpi_effect *e)
{
    const bool when = gpi_word_is(w, "when");
    bool timed = gpi_word_is(w, "at");

    e->trigger = GPI_UNKNOWN32;
    e->begins = timed || when;
    if (when) {
        gpi_word_take(r, w);
        if (!*w->text)
            gpi_word_expected(r, w, "the name of a file");
        else
            e->trigger = trigger(r, w->text);
        gpi_word_take(r, w);
        timed = gpi_word_is(w, "after");
    }
    if (timed) {
        e->offset = take_time(r);
        gpi_word_take(r, w);
    }
}

static bool gpu_number(struct gpi_reader *r, const char **at, uint32_t *ret)
{
    uint64_t n;

    if (!gpi_digits(at, &n) || n >= (r->devices ? r->devices : GPI_GPUS_MAX))
        return false;
    *ret = (uint32_t)n;
    if (r->highest <= *ret)
        r->highest = *ret + 1;
    return true;
}

/* Reads *, N, N-M or N:K. */
static void which(struct gpi_reader *r, struct gpi_effect *e)
{
    struct gpi_word w;
    const char *at = w.text;
    uint64_t part = 0;
    char what[64];
    bool fine;

    gpi_word_take(r, &w);
    e->part = GPI_UNKNOWN32;
    e->last = GPI_GPUS_MAX - 1;
    if (gpi_word_is(&w, "*"))
        return;
    (void)snprintf(what, sizeof(what), "a GPU from 0 to %u, such as 0, 0-3, 1:0 or *",
                   (r->devices ? r->devices : GPI_GPUS_MAX) - 1);
    fine = gpu_number(r, &at, &e->first);
    e->last = e->first;
    if (fine && *at == '-') {
        at++;
        fine = gpu_number(r, &at, &e->last) && e->last >= e->first;
    }
    if (fine && *at == ':' && e->first == e->last) {
        if (!gpi_whole(at + 1, GPI_PARTS_MAX - 1, &part))
            gpi_word_expected(r, &w, "an instance from 0 to 6, such as 1:0");
        e->part = (uint32_t)part;
    } else if (!fine || *at) {
        gpi_word_expected(r, &w, what);
    }
}

static void gpus(struct gpi_reader *r)
{
    struct gpi_word w;

    r->said = (uint32_t)take_number(r, GPI_GPUS_MAX, "a number from 0 to 256");
    r->counted = true;
    gpi_word_take(r, &w);
    if (*w.text)
        gpi_word_expected(r, &w, "the line's end");
}

/* Reads the words behind "gpu WHICH" or "driver": at least one. */
static void words(struct gpi_reader *r, struct gpi_effect *e,
                  void (*word)(struct gpi_reader *, const struct gpi_effect *,
                               const struct gpi_word *))
{
    struct gpi_word w;

    gpi_word_take(r, &w);
    if (!*w.text)
        gpi_word_expected(r, &w, "a word about it");
    for (; *w.text; gpi_word_take(r, &w)) {
        e->line = r->line;
        e->column = w.column;
        if (!common_verb(r, *e, &w))
            word(r, e, &w);
    }
}

void gpi_script_line(struct gpi_reader *r)
{
    struct gpi_effect e = { .offset = 0 };
    struct gpi_word w;

    gpi_word_take(r, &w);
    if (!*w.text)
        return;
    beginning(r, &w, &e);
    if (gpi_word_is(&w, "driver")) {
        e.first = e.last = e.part = GPI_UNKNOWN32;
        words(r, &e, driver_word);
    } else if (gpi_word_is(&w, "gpu")) {
        which(r, &e);
        words(r, &e, gpu_word);
    } else if (gpi_word_is(&w, "gpus") && !e.begins) {
        gpus(r);
    } else {
        gpi_word_expected(r, &w, e.begins ? "gpu or driver" : "at, when, gpu, gpus or driver");
    }
}
