/* SPDX-License-Identifier: MIT */
/* grammar.c - reads a line of a script (docs/reference/fake-scripts.md): its beginning, its devices
 * and its effects. */
#include "device/fake/grammar.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"

/* ---- effects ---- */

static int take_number(struct gpi_reader *r, uint64_t most, uint64_t *ret, const char *what)
{
    struct gpi_word w;
    const int code = gpi_word_take(r, &w);

    if (code)
        return code;
    return gpi_whole(w.text, most, ret) ? 0 : gpi_word_expected(r, &w, what);
}

static int take_quantity(struct gpi_reader *r, const struct gpi_unit *units, uint64_t *ret,
                         const char *what)
{
    struct gpi_word w;
    const int code = gpi_word_take(r, &w);

    if (code)
        return code;
    return gpi_quantity(w.text, units, ret) ? 0 : gpi_word_expected(r, &w, what);
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

static int take_call(struct gpi_reader *r, struct gpi_effect *e)
{
    struct gpi_word w;
    const int code = gpi_word_take(r, &w);

    if (code)
        return code;
    if (!is_call(w.text))
        return gpi_word_expected(
            r, &w, "open, enumerate, sample, await, kernel, or a function of NVML or CUDA");
    (void)snprintf(e->call, sizeof(e->call), "%.*s", (int)sizeof(e->call) - 1, w.text);
    return 0;
}

static int take_code(struct gpi_reader *r, struct gpi_effect *e)
{
    struct gpi_word w, found;
    const int code = gpi_word_take(r, &w);

    if (code)
        return code;
    found = w;
    if (!gpi_times_in(w.text, &e->more) || !gpi_whole(w.text, 999999, &e->value) || e->value == 0)
        return gpi_word_expected(r, &found, "an error's number from 1, as in 999 or 999*2");
    return 0;
}

/* Reads hang CALL, slow CALL TIME, fail CALL CODE[*N], mend CALL; returns 1 if the word is no such
 * verb. */
static int call_verb(struct gpi_reader *r, struct gpi_effect e, const struct gpi_word *w)
{
    int code;

    if (gpi_word_is(w, "hang"))
        e.verb = GPI_VERB_HANG;
    else if (gpi_word_is(w, "slow"))
        e.verb = GPI_VERB_SLOW;
    else if (gpi_word_is(w, "fail"))
        e.verb = GPI_VERB_FAIL;
    else if (gpi_word_is(w, "mend"))
        e.verb = GPI_VERB_MEND;
    else
        return 1;
    code = take_call(r, &e);
    if (!code && e.verb == GPI_VERB_SLOW)
        code = take_quantity(r, gpi_times, &e.value, "a time such as 50ms");
    if (!code && e.verb == GPI_VERB_FAIL)
        code = take_code(r, &e);
    return code ? code : gpi_script_push(r, &e);
}

static int xid(struct gpi_reader *r, struct gpi_effect e)
{
    const int code = take_number(r, 999999, &e.value, "the number of an XID");

    e.verb = GPI_VERB_XID;
    return code ? code : gpi_script_push(r, &e);
}

/* Reads +SIZE/s, if the next word is one. */
static int growth(struct gpi_reader *r, uint64_t *ret)
{
    const char *before = r->at;
    struct gpi_word w, found;
    const int code = gpi_word_take(r, &w);
    size_t n;

    if (code || *w.text != '+') {
        r->at = before;
        return code;
    }
    found = w;
    n = strlen(w.text);
    if (n < 3 || strcmp(w.text + n - 2, "/s") != 0)
        return gpi_word_expected(r, &found, "a growth such as +1GiB/s");
    w.text[n - 2] = '\0';
    return gpi_quantity(w.text + 1, gpi_sizes, ret)
               ? 0
               : gpi_word_expected(r, &found, "a growth such as +1GiB/s");
}

static int process(struct gpi_reader *r, struct gpi_effect e, bool comes)
{
    uint64_t pid;
    int code = take_number(r, INT32_MAX, &pid, "the number of a process");

    e.verb = comes ? GPI_VERB_FOREIGN : GPI_VERB_GONE;
    if (!code && comes)
        code = take_quantity(r, gpi_sizes, &e.value, "a size such as 20GiB");
    if (!code && comes)
        code = growth(r, &e.more);
    if (code)
        return code;
    e.pid = (uint32_t)pid;
    return gpi_script_push(r, &e);
}

static const struct gpi_keyword accesses[] = {
    { "back", GPI_ACCESS_OK },         { "denied", GPI_ACCESS_DENIED },
    { "lost", GPI_ACCESS_LOST },       { "needs-reset", GPI_ACCESS_RESET },
    { "revoked", GPI_ACCESS_REVOKED }, { NULL, 0 }
};

static int gpu_verb(struct gpi_reader *r, struct gpi_effect e, const struct gpi_word *w)
{
    const int code = call_verb(r, e, w);

    if (code <= 0)
        return code;
    if (gpi_word_is(w, "xid"))
        return xid(r, e);
    if (gpi_word_is(w, "foreign") || gpi_word_is(w, "gone"))
        return process(r, e, gpi_word_is(w, "foreign"));
    e.verb = GPI_VERB_SET;
    e.setting = GPI_SET_ACCESS;
    if (gpi_keyword_read(accesses, w->text, strlen(w->text), &e.value))
        return gpi_script_push(r, &e);
    return gpi_word_expected(r, w,
                             "KEY=VALUE, xid, lost, needs-reset, revoked, denied, back, foreign, "
                             "gone, hang, slow, fail or mend");
}

static int gpu_word(struct gpi_reader *r, const struct gpi_effect *e, const struct gpi_word *w)
{
    uint32_t which;

    if (!strchr(w->text, '='))
        return gpu_verb(r, *e, w);
    which = gpi_fact_named(w);
    if (which < GPI_FACTS)
        return gpi_script_identify(r, e, which, w);
    which = gpi_setting_named(w, 0, GPI_SETTINGS_OF_DRIVER);
    if (which < GPI_SETTINGS)
        return gpi_script_set(r, *e, which, w);
    return gpi_word_expected(r, w, "a KEY of a GPU, such as memory or temperature");
}

/* ---- the driver ---- */

static int driver_fact(struct gpi_reader *r, const struct gpi_effect *e, const struct gpi_word *w)
{
    const struct gpi_word v = gpi_word_value(w);
    struct gpi_script *s = r->s;
    uint32_t major, minor;
    char *text = !strncmp(w->text, "version=", 8) ? s->version
                 : !strncmp(w->text, "nvml=", 5)  ? s->nvml
                                                  : NULL;
    const bool cuda = !strncmp(w->text, "cuda=", 5), entries = !strncmp(w->text, "entries=", 8);

    if (!text && !cuda && !entries)
        return gpi_word_expected(r, w, "state=, version=, nvml=, cuda=, processes= or entries=");
    if (e->begins)
        return gpi_word_expected(r, w, GPI_EXPECTED_SETTING);
    if (text) {
        if (!*v.text || strlen(v.text) >= sizeof(s->version))
            return gpi_word_expected(r, &v, "a text of 1 to 79 bytes");
        memset(text, 0, sizeof(s->version));
        memcpy(text, v.text, strlen(v.text));
    } else if (cuda) {
        if (!gpi_version_in(v.text, &major, &minor))
            return gpi_word_expected(r, &v, "a version such as 12.8");
        /* NOLINT(clang-analyzer-core.NullDereference) ; a script is being read */
        s->cuda_version = major * 1000 + minor * 10;
    } else {
        if (!gpi_word_is(&v, "24") && !gpi_word_is(&v, "32"))
            return gpi_word_expected(r, &v, "24 or 32");
        /* NOLINT(clang-analyzer-core.NullDereference) ; as above */
        s->entry_size = gpi_word_is(&v, "24") ? 24 : 32;
    }
    return 0;
}

static int driver_word(struct gpi_reader *r, const struct gpi_effect *e, const struct gpi_word *w)
{
    struct gpi_effect said = *e;
    uint32_t which;
    int code;

    if (strchr(w->text, '=')) {
        which = gpi_setting_named(w, GPI_SETTINGS_OF_DRIVER, GPI_SETTINGS);
        return which < GPI_SETTINGS ? gpi_script_set(r, *e, which, w) : driver_fact(r, e, w);
    }
    code = call_verb(r, *e, w);
    if (code <= 0)
        return code;
    if (gpi_word_is(w, "xid"))
        return xid(r, *e);
    said.verb = GPI_VERB_DEAF;
    return gpi_word_is(w, "deaf")
               ? gpi_script_push(r, &said)
               : gpi_word_expected(r, w, "KEY=VALUE, xid, deaf, hang, slow, fail or mend");
}

/* ---- beginnings ---- */

static int trigger(struct gpi_reader *r, const char *path, uint32_t *ret)
{
    struct gpi_script *s = r->s;
    uint32_t i = 0;

    while (i < s->triggers && strcmp(s->trigger[i], path) != 0)
        i++;
    if (i == GPI_SCRIPT_TRIGGERS_MAX)
        return gpi_fail(r->e, GPUD_EDEVICE, 0, "script",
                        "line %u: the maximum is %u files after when", r->line,
                        GPI_SCRIPT_TRIGGERS_MAX);
    if (i == s->triggers) {
        s->trigger[i] = strdup(path);
        if (!s->trigger[i])
            return gpi_fail(r->e, GPUD_ENOMEM, 0, "script", "no memory for its lines");
        s->triggers++;
    }
    *ret = i;
    return 0;
}

/* Reads at TIME, or when FILE [after TIME]; then *w is the next word. */
static int beginning(struct gpi_reader *r, struct gpi_word *w, struct gpi_effect *e)
{
    int code;

    e->trigger = GPI_UNKNOWN32;
    e->begins = gpi_word_is(w, "at") || gpi_word_is(w, "when");
    if (!e->begins)
        return 0;
    if (gpi_word_is(w, "at")) {
        code = take_quantity(r, gpi_times, &e->offset, "a time such as 50ms");
        return code ? code : gpi_word_take(r, w);
    }
    code = gpi_word_take(r, w);
    if (!code && !*w->text)
        code = gpi_word_expected(r, w, "the name of a file");
    if (!code)
        code = trigger(r, w->text, &e->trigger);
    if (!code)
        code = gpi_word_take(r, w);
    if (code || !gpi_word_is(w, "after"))
        return code;
    code = take_quantity(r, gpi_times, &e->offset, "a time such as 50ms");
    return code ? code : gpi_word_take(r, w);
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
static int which(struct gpi_reader *r, struct gpi_effect *e)
{
    struct gpi_word w;
    const char *at = w.text;
    uint64_t part;
    char what[64];
    const int code = gpi_word_take(r, &w);

    if (code)
        return code;
    e->part = GPI_UNKNOWN32;
    e->first = 0;
    e->last = GPI_GPUS_MAX - 1;
    if (gpi_word_is(&w, "*"))
        return 0;
    (void)snprintf(what, sizeof(what), "a GPU from 0 to %u, such as 0, 0-3, 1:0 or *",
                   (r->devices ? r->devices : GPI_GPUS_MAX) - 1);
    if (!gpu_number(r, &at, &e->first))
        return gpi_word_expected(r, &w, what);
    e->last = e->first;
    if (*at == '-' && (at++, !gpu_number(r, &at, &e->last) || e->last < e->first))
        return gpi_word_expected(r, &w, what);
    if (*at == ':' && e->first == e->last) {
        if (!gpi_whole(at + 1, GPI_PARTS_MAX - 1, &part))
            return gpi_word_expected(r, &w, "an instance from 0 to 6, such as 1:0");
        e->part = (uint32_t)part;
        return 0;
    }
    return *at ? gpi_word_expected(r, &w, what) : 0;
}

static int gpus(struct gpi_reader *r)
{
    uint64_t n;
    struct gpi_word w;
    int code = take_number(r, GPI_GPUS_MAX, &n, "a number from 0 to 256");

    if (code)
        return code;
    r->said = (uint32_t)n;
    r->counted = true;
    code = gpi_word_take(r, &w);
    return code || !*w.text ? code : gpi_word_expected(r, &w, "the line's end");
}

/* Reads the words behind "gpu WHICH" or "driver": at least one. */
static int words(struct gpi_reader *r, struct gpi_effect *e,
                 int (*word)(struct gpi_reader *, const struct gpi_effect *,
                             const struct gpi_word *))
{
    struct gpi_word w;
    int code = gpi_word_take(r, &w);

    if (!code && !*w.text)
        code = gpi_word_expected(r, &w, "a word about it");
    while (!code && *w.text) {
        e->line = r->line;
        e->column = w.column;
        code = word(r, e, &w);
        if (!code)
            code = gpi_word_take(r, &w);
    }
    return code;
}

int gpi_script_line(struct gpi_reader *r)
{
    struct gpi_effect e = { .offset = 0 };
    struct gpi_word w;
    int code = gpi_word_take(r, &w);

    if (code || !*w.text)
        return code;
    code = beginning(r, &w, &e);
    if (code)
        return code;
    if (gpi_word_is(&w, "driver")) {
        e.first = e.last = e.part = GPI_UNKNOWN32;
        return words(r, &e, driver_word);
    }
    if (gpi_word_is(&w, "gpu")) {
        code = which(r, &e);
        return code ? code : words(r, &e, gpu_word);
    }
    if (gpi_word_is(&w, "gpus") && !e.begins)
        return gpus(r);
    return gpi_word_expected(r, &w, e.begins ? "gpu or driver" : "at, when, gpu, gpus or driver");
}
