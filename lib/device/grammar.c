/* SPDX-License-Identifier: MIT */
/* grammar.c - reads the text of a script (docs/fake-devices.md). */
#include "device/script.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/failure.h"
#include "device/lines.h"
#include "gpudispatch/device.h"

#define WORD_SIZE 256u

struct word {
    char text[WORD_SIZE]; /* without its quotes; "" with column 0: the line has ended */
    uint32_t column;
};

struct reader {
    struct gpi_script *s;
    const char *at, *line_start;
    uint32_t line;
    uint32_t devices; /* given; 0 = the text says how many */
    uint32_t said, highest; /* by "gpus N"; one more than the highest number of a GPU */
    bool counted;
    struct gpud_error *e;
};

/* ---- words ---- */

static int bad(struct reader *r, uint32_t line, uint32_t column, const char *expected, const char *found)
{
    const char *quote = *found ? "\"" : "";

    return gpi_fail(r->e, GPUD_EDEVICE, 0, "script", "line %u, column %u: expected %s, found %s%.40s%s", line, column, expected, quote, *found ? found : "the line's end", quote);
}

static int expected(struct reader *r, const struct word *w, const char *what)
{
    return bad(r, r->line, w->column, what, w->text);
}

/* The value in a word KEY=VALUE, with its own column. */
static struct word value_in(const struct word *w)
{
    const size_t key = (size_t)(strchr(w->text, '=') - w->text) + 1;
    struct word v = { .column = w->column + (uint32_t)key };

    memcpy(v.text, w->text + key, strlen(w->text + key) + 1);
    return v;
}

static bool is_end(char c)
{
    return c == '\0' || c == '\n' || c == '#';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the next word of the line. */
static int take(struct reader *r, struct word *w)
{
    size_t n = 0;
    bool quoted = false;

    while (is_blank(*r->at))
        r->at++;
    *w = (struct word){ .column = (uint32_t)(r->at - r->line_start) + 1 };
    while (quoted ? *r->at && *r->at != '\n' : !is_end(*r->at) && !is_blank(*r->at)) {
        const char c = *r->at++;
        if (c == '"') {
            quoted = !quoted;
            continue;
        }
        if ((unsigned char)c < 0x20 || c == 0x7f)
            return bad(r, r->line, (uint32_t)(r->at - r->line_start), "text", "a control character");
        if (n == WORD_SIZE - 1)
            return expected(r, w, "a word of at most 255 bytes");
        w->text[n++] = c;
    }
    if (quoted)
        return expected(r, w, "a \" at the word's end");
    if (!n && !is_end(*r->at))
        return bad(r, r->line, w->column, "a word", "\"\"");
    return 0;
}

static bool is(const struct word *w, const char *text)
{
    return !strcmp(w->text, text);
}

/* ---- values ---- */

struct unit {
    const char *name;
    uint64_t size;
};

static const struct unit time_units[] = { { "ns", 1 }, { "us", GPI_US }, { "ms", GPI_MS }, { "s", GPI_S }, { "min", 60 * GPI_S }, { "h", 3600 * GPI_S }, { NULL, 0 } };
static const struct unit size_units[] = { { "B", 1 }, { "KiB", 1ull << 10 }, { "MiB", 1ull << 20 }, { "GiB", 1ull << 30 }, { "TiB", 1ull << 40 }, { NULL, 0 } };

/* Digits at *at, which moves behind them. */
static bool digits(const char **at, uint64_t *ret)
{
    const char *p = *at;

    *ret = 0;
    while (isdigit((unsigned char)*p))
        if (__builtin_mul_overflow(*ret, 10u, ret) || __builtin_add_overflow(*ret, (uint64_t)(*p++ - '0'), ret))
            return false;
    if (p == *at)
        return false;
    *at = p;
    return true;
}

/* A number of at most `most`, to the text's end. */
static bool whole(const char *text, uint64_t most, uint64_t *ret)
{
    return digits(&text, ret) && !*text && *ret <= most;
}

/* A number with a unit; "0" has none. */
static bool measure(const char *text, const struct unit *units, uint64_t *ret)
{
    uint64_t fraction = 0, parts = 1, more;
    const char *point;

    if (!strcmp(text, "0")) {
        *ret = 0;
        return true;
    }
    if (!digits(&text, ret))
        return false;
    if (*text == '.') {
        point = ++text;
        if (!digits(&text, &fraction) || text - point > 6)
            return false;
        for (; point < text; point++)
            parts *= 10;
    }
    while (units->name && strcmp(units->name, text))
        units++;
    if (!units->name || __builtin_mul_overflow(*ret, units->size, ret))
        return false;
    more = fraction * units->size / parts; /* below 10^6 * 2^40 */
    return !__builtin_add_overflow(*ret, more, ret) && *ret < GPI_NEVER;
}

/* "name" or "name*N": cuts the word. *ret_times is UINT32_MAX without N. */
static bool times_in(char *text, uint64_t *ret_times)
{
    char *star = strchr(text, '*');

    *ret_times = GPI_UNKNOWN32;
    if (!star)
        return true;
    *star = '\0';
    return whole(star + 1, GPI_UNKNOWN32 - 1u, ret_times) && *ret_times > 0;
}

struct choice {
    const char *name;
    uint64_t value;
};

static bool choose(const struct choice *list, const char *text, size_t size, uint64_t *ret)
{
    for (; list->name; list++)
        if (strlen(list->name) == size && !memcmp(list->name, text, size)) {
            *ret = list->value;
            return true;
        }
    return false;
}

static const struct choice yes_no[] = { { "no", 0 }, { "yes", 1 }, { NULL, 0 } };
static const struct choice modes[] = { { "default", 0 }, { "prohibited", 2 }, { "exclusive", 3 }, { NULL, 0 } };
static const struct choice shown[] = { { "shown", 0 }, { "hidden", 1 }, { NULL, 0 } };
static const struct choice recoveries[] = { { "none", GPUD_RECOVERY_NONE }, { "reset", GPUD_RECOVERY_RESET }, { "reboot", GPUD_RECOVERY_REBOOT },
                                            { "drain-p2p", GPUD_RECOVERY_DRAIN_P2P }, { "drain-reset", GPUD_RECOVERY_DRAIN_RESET }, { "imex", GPUD_RECOVERY_IMEX }, { NULL, 0 } };
static const struct choice states[] = { { "ok", GPUD_DRIVER_OK }, { "none", GPUD_DRIVER_NONE }, { "not-loaded", GPUD_DRIVER_NOT_LOADED },
                                        { "mismatch", GPUD_DRIVER_MISMATCH }, { "too-old", GPUD_DRIVER_TOO_OLD }, { "no-permission", GPUD_DRIVER_NO_PERMISSION },
                                        { "revoked", GPUD_DRIVER_REVOKED }, { "hung", GPUD_DRIVER_HUNG }, { "failed", GPUD_DRIVER_FAILED }, { NULL, 0 } };
static const struct choice throttles[] = { { "none", 0 }, { "idle", GPUD_THROTTLE_IDLE }, { "app-clocks", GPUD_THROTTLE_APP_CLOCKS }, { "power-cap", GPUD_THROTTLE_POWER_CAP },
                                           { "hw-slowdown", GPUD_THROTTLE_HW_SLOWDOWN }, { "sync-boost", GPUD_THROTTLE_SYNC_BOOST }, { "sw-thermal", GPUD_THROTTLE_SW_THERMAL },
                                           { "hw-thermal", GPUD_THROTTLE_HW_THERMAL }, { "power-brake", GPUD_THROTTLE_HW_POWER_BRAKE }, { NULL, 0 } };

/* WORD+WORD+... */
static bool throttle(const char *text, uint64_t *ret)
{
    uint64_t bit;
    size_t n;

    for (*ret = 0;; text += n + 1) {
        n = strcspn(text, "+");
        if (!choose(throttles, text, n, &bit))
            return false;
        *ret |= bit;
        if (!text[n])
            return true;
    }
}

static bool canary(char *text, uint64_t *ret)
{
    if (!times_in(text, ret))
        return false;
    if (!strcmp(text, "ok") && *ret == GPI_UNKNOWN32)
        *ret = 0;
    else if (strcmp(text, "fail"))
        return false;
    return true;
}

/* ---- lines ---- */

static int push(struct reader *r, const struct gpi_effect *e)
{
    struct gpi_script *s = r->s;

    if (s->effects == s->room) {
        const size_t room = s->room * 2;
        struct gpi_effect *more = realloc(s->effect, room * sizeof(*more));
        if (!more)
            return gpi_fail(r->e, GPUD_ENOMEM, 0, "script", "no memory for its lines");
        s->effect = more;
        s->room = room;
    }
    s->effect[s->effects++] = *e;
    return 0;
}

enum how { HOW_NONE, HOW_NUMBER, HOW_PERCENT, HOW_WATTS, HOW_SIZE_OR_PERCENT, HOW_YES_NO, HOW_TIME, HOW_THROTTLE, HOW_RECOVERY, HOW_MODE, HOW_CANARY, HOW_STATE, HOW_PROCESSES };

static const struct setting {
    const char *key;
    enum how how;
} settings[] = {
#define X_HOW(name, key, how, otherwise) [GPI_SET_##name] = { key, HOW_##how },
    GPI_SETTING_MAP(X_HOW)
#undef X_HOW
};

/* How each kind of value is told of in an error. */
static const char *const how_texts[] = {
    [HOW_NUMBER] = "a number or unknown", [HOW_PERCENT] = "a percentage from 0 to 100, without %, or unknown", [HOW_WATTS] = "watts, without a unit, or unknown",
    [HOW_SIZE_OR_PERCENT] = "a size such as 20GiB, or a percentage such as 90%", [HOW_YES_NO] = "yes, no or unknown", [HOW_TIME] = "a time such as 50ms",
    [HOW_THROTTLE] = "none, idle, app-clocks, power-cap, hw-slowdown, sync-boost, sw-thermal, hw-thermal, power-brake, several with +, or unknown",
    [HOW_RECOVERY] = "none, reset, reboot, drain-p2p, drain-reset, imex or unknown", [HOW_MODE] = "default, prohibited, exclusive or unknown",
    [HOW_CANARY] = "ok, fail or fail*N", [HOW_STATE] = "ok, none, not-loaded, mismatch, too-old, no-permission, revoked, hung or failed", [HOW_PROCESSES] = "shown or hidden",
};

static bool used(char *text, struct gpi_effect *e)
{
    const size_t n = strlen(text);

    if (n && text[n - 1] == '%') {
        text[n - 1] = '\0';
        e->more = 1;
        return whole(text, 100, &e->value);
    }
    return measure(text, size_units, &e->value);
}

static bool read_value(enum how how, char *text, struct gpi_effect *e)
{
    const bool fixed = how == HOW_SIZE_OR_PERCENT || how == HOW_TIME || how == HOW_CANARY || how == HOW_STATE || how == HOW_PROCESSES;

    if (!fixed && !strcmp(text, "unknown")) {
        e->value = GPI_UNKNOWN64;
        return true;
    }
    switch (how) {
    case HOW_NUMBER:
        return whole(text, GPI_UNKNOWN32 - 1u, &e->value);
    case HOW_PERCENT:
        return whole(text, 100, &e->value);
    case HOW_WATTS:
        if (!whole(text, 1000000, &e->value))
            return false;
        e->value *= 1000; /* NVML's mW */
        return true;
    case HOW_SIZE_OR_PERCENT:
        return used(text, e);
    case HOW_YES_NO:
        return choose(yes_no, text, strlen(text), &e->value);
    case HOW_TIME:
        return measure(text, time_units, &e->value);
    case HOW_THROTTLE:
        return throttle(text, &e->value);
    case HOW_RECOVERY:
        return choose(recoveries, text, strlen(text), &e->value);
    case HOW_MODE:
        return choose(modes, text, strlen(text), &e->value);
    case HOW_CANARY:
        return canary(text, &e->value);
    case HOW_STATE:
        return choose(states, text, strlen(text), &e->value);
    case HOW_PROCESSES:
        return choose(shown, text, strlen(text), &e->value);
    case HOW_NONE:
        break;
    }
    return false;
}

static int set(struct reader *r, struct gpi_effect e, uint32_t which, const struct word *w)
{
    struct word v = value_in(w);
    const struct word found = v;

    e.verb = GPI_VERB_SET;
    e.setting = (uint8_t)which;
    if (!read_value(settings[which].how, v.text, &e))
        return expected(r, &found, how_texts[settings[which].how]);
    return push(r, &e);
}

/* The setting that a word KEY=VALUE names, GPI_SETTINGS = none. */
static uint32_t setting_named(const struct word *w, uint32_t from, uint32_t to)
{
    const size_t n = strcspn(w->text, "=");

    for (uint32_t i = from; i < to; i++)
        if (settings[i].key && strlen(settings[i].key) == n && !memcmp(settings[i].key, w->text, n))
            return i;
    return GPI_SETTINGS;
}

/* ---- what a GPU is ---- */

/* 8-4-4-4-12 hexadecimal digits behind the prefix. */
static bool is_uuid(const char *text, const char *prefix)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    const size_t n = strlen(prefix);

    if (strncmp(text, prefix, n) || strlen(text + n) != sizeof(form) - 1)
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
    return strlen(text) == 8 && isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2]) && text[3] == ':' && isxdigit((unsigned char)text[4]) &&
           isxdigit((unsigned char)text[5]) && text[6] == '.' && text[7] >= '0' && text[7] <= '7';
}

static bool version_in(const char *text, uint32_t *ret_major, uint32_t *ret_minor)
{
    uint64_t major, minor;

    if (!digits(&text, &major) || *text++ != '.' || !whole(text, 99, &minor) || major == 0 || major > 999)
        return false;
    *ret_major = (uint32_t)major;
    *ret_minor = (uint32_t)minor;
    return true;
}

/* "1g.10gb*2": adds instances. */
static bool parts_in(struct gpi_script_gpu *g, char *text)
{
    const char *at = text;
    uint64_t slices, size, times;

    if (!times_in(text, &times) || !digits(&at, &slices) || strncmp(at, "g.", 2))
        return false;
    at += 2;
    if (!digits(&at, &size) || strcmp(at, "gb") || size == 0 || size > 4096 || strlen(text) >= sizeof(g->part[0].profile))
        return false;
    if (times == GPI_UNKNOWN32)
        times = 1;
    if (times > GPI_PARTS_MAX - g->parts)
        return false;
    for (; times > 0; times--) {
        struct gpi_script_part *p = &g->part[g->parts++];
        (void)snprintf(p->profile, sizeof(p->profile), "%s", text);
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

enum what { UUID, MODEL, MEMORY, CC, PCI, NUMA, MINOR, MIG, CUDA, WHATS };
static const struct {
    const char *key, *expected;
} whats[WHATS] = {
    [UUID] = { "uuid", "GPU- or MIG- and 8-4-4-4-12 hexadecimal digits" },
    [MODEL] = { "model", "a text of 1 to 95 bytes" },
    [MEMORY] = { "memory", "a size such as 80GiB" },
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
        return measure(text, size_units, &g->memory) && g->memory > 0 && g->memory <= 1ull << 50;
    case CC:
        return version_in(text, &g->major, &g->minor_cc);
    case PCI:
        (void)snprintf(g->pci, sizeof(g->pci), "%.*s", (int)sizeof(g->pci) - 1, text);
        return is_pci(text);
    case NUMA:
        return whole(text, 65535, &n) && (g->numa = (uint32_t)n, true);
    case MINOR:
        return whole(text, 65535, &n) && (g->minor = (uint32_t)n, true);
    case MIG:
        return mig(g, text);
    case CUDA:
        return whole(text, GPI_GPUS_MAX - 1, &n) && (g->cuda = (uint32_t)n, true);
    case WHATS:
        break;
    }
    return false;
}

static uint32_t what_named(const struct word *w)
{
    const size_t n = strcspn(w->text, "=");
    uint32_t i = 0;

    while (i < WHATS && (strlen(whats[i].key) != n || memcmp(whats[i].key, w->text, n) != 0))
        i++;
    return i;
}

/* An instance has a UUID of its own, and nothing else. */
static int identify_part(struct reader *r, const struct gpi_effect *e, uint32_t which, const struct word *v)
{
    struct gpi_script_part *p = &r->s->gpu[e->first].part[e->part];

    if (which != UUID || !is_uuid(v->text, "MIG-"))
        return expected(r, v, "for an instance only uuid=MIG-... with 8-4-4-4-12 hexadecimal digits");
    (void)snprintf(p->uuid, sizeof(p->uuid), "%.*s", (int)sizeof(p->uuid) - 1, v->text);
    return 0;
}

static int identify(struct reader *r, const struct gpi_effect *e, uint32_t which, const struct word *w)
{
    const struct word value = value_in(w);

    if (e->begins)
        return expected(r, w, "no such word in a line with a beginning: what a GPU is does not change");
    if (e->part != GPI_UNKNOWN32 && e->part >= r->s->gpu[e->first].parts)
        return expected(r, w, "mig= for the GPU in a line above");
    if (e->part != GPI_UNKNOWN32)
        return identify_part(r, e, which, &value);
    if (e->first != e->last && (which == UUID || which == PCI || which == CUDA || which == MINOR))
        return expected(r, w, "one GPU for a word that two cannot share");
    for (uint32_t i = e->first; i <= e->last; i++) {
        struct word v = value;
        if (!read_what(&r->s->gpu[i], (enum what)which, v.text))
            return expected(r, &value, whats[which].expected);
        r->s->gpu[i].line = r->line;
    }
    return 0;
}

/* ---- what happens ---- */

static int take_number(struct reader *r, uint64_t most, uint64_t *ret, const char *what)
{
    struct word w;
    const int code = take(r, &w);

    if (code)
        return code;
    return whole(w.text, most, ret) ? 0 : expected(r, &w, what);
}

static int take_measure(struct reader *r, const struct unit *units, uint64_t *ret, const char *what)
{
    struct word w;
    const int code = take(r, &w);

    if (code)
        return code;
    return measure(w.text, units, ret) ? 0 : expected(r, &w, what);
}

static bool is_call(const char *text)
{
    static const char *const groups[] = { GPI_SCRIPT_OPEN, GPI_SCRIPT_ENUMERATE, GPI_SCRIPT_SAMPLE, GPI_SCRIPT_AWAIT, GPI_SCRIPT_KERNEL };

    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
        if (!strcmp(text, groups[i]))
            return true;
    if (strlen(text) >= GPI_CALL_SIZE || (strncmp(text, "nvml", 4) && strncmp(text, "cu", 2)))
        return false;
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    return true;
}

static int take_call(struct reader *r, struct gpi_effect *e)
{
    struct word w;
    const int code = take(r, &w);

    if (code)
        return code;
    if (!is_call(w.text))
        return expected(r, &w, "open, enumerate, sample, await, kernel, or a function of NVML or CUDA");
    (void)snprintf(e->call, sizeof(e->call), "%.*s", (int)sizeof(e->call) - 1, w.text);
    return 0;
}

static int take_code(struct reader *r, struct gpi_effect *e)
{
    struct word w, found;
    const int code = take(r, &w);

    if (code)
        return code;
    found = w;
    if (!times_in(w.text, &e->more) || !whole(w.text, 999999, &e->value) || e->value == 0)
        return expected(r, &found, "an error's number from 1, as in 999 or 999*2");
    return 0;
}

/* hang CALL, slow CALL TIME, fail CALL CODE[*N], mend CALL; -1: no such verb. */
static int call_verb(struct reader *r, struct gpi_effect e, const struct word *w)
{
    int code;

    if (is(w, "hang"))
        e.verb = GPI_VERB_HANG;
    else if (is(w, "slow"))
        e.verb = GPI_VERB_SLOW;
    else if (is(w, "fail"))
        e.verb = GPI_VERB_FAIL;
    else if (is(w, "mend"))
        e.verb = GPI_VERB_MEND;
    else
        return 1;
    code = take_call(r, &e);
    if (!code && e.verb == GPI_VERB_SLOW)
        code = take_measure(r, time_units, &e.value, "a time such as 50ms");
    if (!code && e.verb == GPI_VERB_FAIL)
        code = take_code(r, &e);
    return code ? code : push(r, &e);
}

static int xid(struct reader *r, struct gpi_effect e)
{
    const int code = take_number(r, 999999, &e.value, "the number of an XID");

    e.verb = GPI_VERB_XID;
    return code ? code : push(r, &e);
}

/* +SIZE/s, if the next word is one */
static int growth(struct reader *r, uint64_t *ret)
{
    const char *before = r->at;
    struct word w, found;
    const int code = take(r, &w);
    size_t n;

    if (code || *w.text != '+') {
        r->at = before;
        return code;
    }
    found = w;
    n = strlen(w.text);
    if (n < 3 || strcmp(w.text + n - 2, "/s") != 0)
        return expected(r, &found, "a growth such as +1GiB/s");
    w.text[n - 2] = '\0';
    return measure(w.text + 1, size_units, ret) ? 0 : expected(r, &found, "a growth such as +1GiB/s");
}

static int process(struct reader *r, struct gpi_effect e, bool comes)
{
    uint64_t pid;
    int code = take_number(r, INT32_MAX, &pid, "the number of a process");

    e.verb = comes ? GPI_VERB_FOREIGN : GPI_VERB_GONE;
    if (!code && comes)
        code = take_measure(r, size_units, &e.value, "a size such as 20GiB");
    if (!code && comes)
        code = growth(r, &e.more);
    if (code)
        return code;
    e.pid = (uint32_t)pid;
    return push(r, &e);
}

static const struct choice accesses[] = { { "back", GPI_ACCESS_OK }, { "denied", GPI_ACCESS_DENIED }, { "lost", GPI_ACCESS_LOST },
                                          { "needs-reset", GPI_ACCESS_RESET }, { "revoked", GPI_ACCESS_REVOKED }, { NULL, 0 } };

static int gpu_verb(struct reader *r, struct gpi_effect e, const struct word *w)
{
    const int code = call_verb(r, e, w);

    if (code <= 0)
        return code;
    if (is(w, "xid"))
        return xid(r, e);
    if (is(w, "foreign") || is(w, "gone"))
        return process(r, e, is(w, "foreign"));
    e.verb = GPI_VERB_SET;
    e.setting = GPI_SET_ACCESS;
    if (choose(accesses, w->text, strlen(w->text), &e.value))
        return push(r, &e);
    return expected(r, w, "KEY=VALUE, xid, lost, needs-reset, revoked, denied, back, foreign, gone, hang, slow, fail or mend");
}

static int gpu_word(struct reader *r, const struct gpi_effect *e, const struct word *w)
{
    uint32_t which;

    if (!strchr(w->text, '='))
        return gpu_verb(r, *e, w);
    which = what_named(w);
    if (which < WHATS)
        return identify(r, e, which, w);
    which = setting_named(w, 0, GPI_SETTINGS_OF_DRIVER);
    if (which < GPI_SETTINGS)
        return set(r, *e, which, w);
    return expected(r, w, "a word that docs/fake-devices.md has for a GPU");
}

/* ---- the driver ---- */

static int driver_fact(struct reader *r, const struct gpi_effect *e, const struct word *w)
{
    const struct word v = value_in(w);
    struct gpi_script *s = r->s;
    uint32_t major, minor;
    char *text = !strncmp(w->text, "version=", 8) ? s->version : !strncmp(w->text, "nvml=", 5) ? s->nvml : NULL;
    const bool cuda = !strncmp(w->text, "cuda=", 5), entries = !strncmp(w->text, "entries=", 8);

    if (!text && !cuda && !entries)
        return expected(r, w, "state=, version=, nvml=, cuda=, processes= or entries=");
    if (e->begins)
        return expected(r, w, "no such word in a line with a beginning: what a driver is does not change");
    if (text) {
        if (!*v.text || strlen(v.text) >= sizeof(s->version))
            return expected(r, &v, "a text of 1 to 79 bytes");
        memset(text, 0, sizeof(s->version));
        memcpy(text, v.text, strlen(v.text));
    } else if (cuda) {
        if (!version_in(v.text, &major, &minor))
            return expected(r, &v, "a version such as 12.8");
        s->cuda_version = major * 1000 + minor * 10;
    } else {
        if (!is(&v, "24") && !is(&v, "32"))
            return expected(r, &v, "24 or 32");
        s->entry_size = is(&v, "24") ? 24 : 32;
    }
    return 0;
}

static int driver_word(struct reader *r, const struct gpi_effect *e, const struct word *w)
{
    struct gpi_effect said = *e;
    uint32_t which;
    int code;

    if (strchr(w->text, '=')) {
        which = setting_named(w, GPI_SETTINGS_OF_DRIVER, GPI_SETTINGS);
        return which < GPI_SETTINGS ? set(r, *e, which, w) : driver_fact(r, e, w);
    }
    code = call_verb(r, *e, w);
    if (code <= 0)
        return code;
    if (is(w, "xid"))
        return xid(r, *e);
    said.verb = GPI_VERB_DEAF;
    return is(w, "deaf") ? push(r, &said) : expected(r, w, "KEY=VALUE, xid, deaf, hang, slow, fail or mend");
}

/* ---- beginnings ---- */

static int trigger(struct reader *r, const char *path, uint32_t *ret)
{
    struct gpi_script *s = r->s;
    uint32_t i = 0;

    while (i < s->triggers && strcmp(s->trigger[i], path) != 0)
        i++;
    if (i == GPI_SCRIPT_TRIGGERS_MAX)
        return gpi_fail(r->e, GPUD_EDEVICE, 0, "script", "line %u: more than %u files are waited for", r->line, GPI_SCRIPT_TRIGGERS_MAX);
    if (i == s->triggers) {
        s->trigger[i] = strdup(path);
        if (!s->trigger[i])
            return gpi_fail(r->e, GPUD_ENOMEM, 0, "script", "no memory for its lines");
        s->triggers++;
    }
    *ret = i;
    return 0;
}

/* at TIME, or when FILE [after TIME]; *w is the word behind it then. */
static int beginning(struct reader *r, struct word *w, struct gpi_effect *e)
{
    int code;

    e->trigger = GPI_UNKNOWN32;
    e->begins = is(w, "at") || is(w, "when");
    if (!e->begins)
        return 0;
    if (is(w, "at")) {
        code = take_measure(r, time_units, &e->offset, "a time such as 50ms");
        return code ? code : take(r, w);
    }
    code = take(r, w);
    if (!code && !*w->text)
        code = expected(r, w, "the name of a file");
    if (!code)
        code = trigger(r, w->text, &e->trigger);
    if (!code)
        code = take(r, w);
    if (code || !is(w, "after"))
        return code;
    code = take_measure(r, time_units, &e->offset, "a time such as 50ms");
    return code ? code : take(r, w);
}

static bool gpu_number(struct reader *r, const char **at, uint32_t *ret)
{
    uint64_t n;

    if (!digits(at, &n) || n >= (r->devices ? r->devices : GPI_GPUS_MAX))
        return false;
    *ret = (uint32_t)n;
    if (r->highest <= *ret)
        r->highest = *ret + 1;
    return true;
}

/* *, N, N-M or N:K */
static int which(struct reader *r, struct gpi_effect *e)
{
    struct word w;
    const char *at = w.text;
    uint64_t part;
    char what[64];
    const int code = take(r, &w);

    if (code)
        return code;
    e->part = GPI_UNKNOWN32;
    e->first = 0;
    e->last = GPI_GPUS_MAX - 1;
    if (is(&w, "*"))
        return 0;
    (void)snprintf(what, sizeof(what), "a GPU from 0 to %u, such as 0, 0-3, 1:0 or *", (r->devices ? r->devices : GPI_GPUS_MAX) - 1);
    if (!gpu_number(r, &at, &e->first))
        return expected(r, &w, what);
    e->last = e->first;
    if (*at == '-' && (at++, !gpu_number(r, &at, &e->last) || e->last < e->first))
        return expected(r, &w, what);
    if (*at == ':' && e->first == e->last) {
        if (!whole(at + 1, GPI_PARTS_MAX - 1, &part))
            return expected(r, &w, "an instance from 0 to 6, such as 1:0");
        e->part = (uint32_t)part;
        return 0;
    }
    return *at ? expected(r, &w, what) : 0;
}

static int gpus(struct reader *r)
{
    uint64_t n;
    struct word w;
    int code = take_number(r, GPI_GPUS_MAX, &n, "a number from 0 to 256");

    if (code)
        return code;
    r->said = (uint32_t)n;
    r->counted = true;
    code = take(r, &w);
    return code || !*w.text ? code : expected(r, &w, "the line's end");
}

/* The words behind "gpu WHICH" or "driver": one at least. */
static int words(struct reader *r, struct gpi_effect *e, int (*word)(struct reader *, const struct gpi_effect *, const struct word *))
{
    struct word w;
    int code = take(r, &w);

    if (!code && !*w.text)
        code = expected(r, &w, "what is said of it");
    while (!code && *w.text) {
        e->line = r->line;
        e->column = w.column;
        code = word(r, e, &w);
        if (!code)
            code = take(r, &w);
    }
    return code;
}

static int line(struct reader *r)
{
    struct gpi_effect e = { .offset = 0 };
    struct word w;
    int code = take(r, &w);

    if (code || !*w.text)
        return code;
    code = beginning(r, &w, &e);
    if (code)
        return code;
    if (is(&w, "driver")) {
        e.first = e.last = e.part = GPI_UNKNOWN32;
        return words(r, &e, driver_word);
    }
    if (is(&w, "gpu")) {
        code = which(r, &e);
        return code ? code : words(r, &e, gpu_word);
    }
    if (is(&w, "gpus") && !e.begins)
        return gpus(r);
    return expected(r, &w, e.begins ? "gpu or driver" : "at, when, gpu, gpus or driver");
}

/* ---- the whole ---- */

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

static void name_parts(struct gpi_script *s)
{
    for (uint32_t i = 0; i < s->gpus; i++)
        for (uint32_t k = 0; k < s->gpu[i].parts; k++)
            if (!*s->gpu[i].part[k].uuid)
                (void)snprintf(s->gpu[i].part[k].uuid, GPI_UUID_SIZE, "MIG-fa4e%04x-%04x-4000-8000-%012x", i, k + 1, i);
}

/* Lines of instances that are not there. */
static int check_parts(struct reader *r)
{
    const struct gpi_script *s = r->s;

    for (const struct gpi_effect *e = s->effect; e < s->effect + s->effects; e++)
        if (e->first != GPI_UNKNOWN32 && e->part != GPI_UNKNOWN32 && e->part >= s->gpu[e->first].parts)
            return gpi_fail(r->e, GPUD_EDEVICE, 0, "script", "line %u, column %u: GPU %u has no instance %u: expected mig= for it", e->line, e->column, e->first, e->part);
    return 0;
}

static int clash(struct reader *r, uint32_t a, uint32_t b, const char *what)
{
    const uint32_t line = r->s->gpu[a].line > r->s->gpu[b].line ? r->s->gpu[a].line : r->s->gpu[b].line;

    return gpi_fail(r->e, GPUD_EDEVICE, 0, "script", "line %u: GPU %u and GPU %u have the same %s, expected different ones", line, a, b, what);
}

static bool share_a_uuid(const struct gpi_script_gpu *a, const struct gpi_script_gpu *b)
{
    for (uint32_t i = 0; i < a->parts; i++)
        for (uint32_t k = 0; k < b->parts; k++)
            if ((a != b || i != k) && !strcasecmp(a->part[i].uuid, b->part[k].uuid))
                return true;
    return a != b && !strcasecmp(a->uuid, b->uuid);
}

static int check_clashes(struct reader *r)
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
            return gpi_fail(r->e, GPUD_EDEVICE, 0, "script", "line %u: cuda=%u with %u GPUs, expected a smaller number", s->gpu[i].line, s->gpu[i].cuda, s->gpus);
    return 0;
}

static int finish(struct reader *r)
{
    struct gpi_script *s = r->s;
    int code;

    s->gpus = r->devices ? r->devices : r->counted ? r->said : r->highest;
    if (r->highest > s->gpus)
        return gpi_fail(r->e, GPUD_EDEVICE, 0, "script", "it speaks of GPU %u, expected one below %u, as \"gpus\" says", r->highest - 1, s->gpus);
    if (gpi_script_rows(s) > GPI_GPUS_MAX)
        return gpi_fail(r->e, GPUD_EDEVICE, 0, "script", "%u GPUs and instances, expected at most %u", gpi_script_rows(s), GPI_GPUS_MAX);
    code = check_parts(r);
    if (code)
        return code;
    name_parts(s);
    return check_clashes(r);
}

static int read_all(struct reader *r)
{
    int code = 0;

    while (!code) {
        r->line_start = r->at;
        r->line++;
        code = line(r);
        if (code)
            return code;
        r->at += strcspn(r->at, "\n"); /* a comment */
        if (!*r->at++)
            break;
    }
    return finish(r);
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

int gpi_script_parse(struct gpi_script **ret, const char *text, uint32_t devices, struct gpud_error *e)
{
    struct reader r = { .s = create(), .at = text ? text : "", .devices = devices, .e = e };
    int code;

    if (!r.s)
        return gpi_fail(e, GPUD_ENOMEM, 0, "script", "no memory for its lines");
    code = devices > GPI_GPUS_MAX ? gpi_fail(e, GPUD_EDEVICE, 0, "script", "%u fake devices, expected at most %u", devices, GPI_GPUS_MAX) : read_all(&r);
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
