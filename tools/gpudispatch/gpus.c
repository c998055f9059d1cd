/* SPDX-License-Identifier: MIT */
/* gpus.c - verb gpus: one row per device, once or again and again. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "look.h"
#include "tools/cli/out.h"
#include "row.h"
#include "user.h"
#include "verbs.h"

#define MIB ((uint64_t)1 << 20)
#define CLEAR "\033[H\033[2J\033[3J"
#define INTERVAL (2 * SECOND)
/* a driver without persistence mode takes seconds to its first answer */
#define PATIENCE (10 * SECOND)
#define FRESH (100000000ull) /* a row this young is as good as a new one */
/* "GPU-5c2c1d3a": mostly enough to tell devices apart; option devices accepts it */
#define UUID_SHOWN 12

/* ---- for people ---- */

/* A terminal of 80 columns has room for those without a number. */
/* clang-format off */
static const struct column column[] = {
    { "DEVICE", false, 0 }, { "UUID", false, 0 }, { "MODEL", false, 1 }, { "USED MiB", true, 0 },
    { "TOTAL MiB", true, 0 }, { "UTIL %", true, 0 }, { "TEMP C", true, 3 }, { "POWER W", true, 4 },
    { "HEALTH", false, 0 }, { "WORKERS", true, 0 }, { "OTHERS", true, 0 }, { "XID", true, 2 },
    { "AGE s", true, 5 },
};
/* clang-format on */

static void cell_number(struct table *t, uint64_t n, bool known)
{
    if (known)
        table_cell(t, "%llu", (unsigned long long)n);
    else
        table_cell(t, "-");
}

static void cell_memory(struct table *t, uint64_t bytes)
{
    cell_number(t, bytes / MIB, bytes != GPUD_UNKNOWN64);
}

/* Evidence where a row is not HEALTHY, and what else belongs to it. */
static void row_notes(struct table *t, const struct gpud_device_info *r)
{
    char text[160];

    if (r->health != GPUD_HEALTH_HEALTHY)
        table_note(t, "%s", r->evidence[0] ? r->evidence : "its state is unknown");
    if (r->mig_profile[0])
        table_note(t, "MIG %s", r->mig_profile);
    for (unsigned i = 0; i < FACT_REMAP_FAILED; i++) /* which is evidence */
        if (row_fact(r, (enum fact)i, text, sizeof text))
            table_note(t, "%s", text);
}

/* Who uses a row: by number, and those that are no workers in lines of their own. */
struct users {
    struct user user[USERS_MAX];
    size_t n;
    uint32_t workers;
};

static void look_at_users(struct users *u, const struct look *l, const struct gpud_device_info *r)
{
    u->n = users_of(l, r, u->user);
    u->workers = 0;
    for (size_t i = 0; i < u->n; i++)
        u->workers += u->user[i].worker;
}

static void user_notes(struct table *t, const struct users *u, const struct gpud_device_info *r)
{
    char text[192];

    for (size_t i = 0; i < u->n; i++)
        if (!u->user[i].worker)
            table_note(t, "%s", user_text(&u->user[i], text, sizeof text));
    if (r->foreign_processes != GPUD_UNKNOWN32 && r->foreign_processes > u->n)
        table_note(t, "and %u more processes", r->foreign_processes - (uint32_t)u->n);
}

/* How much of the UUIDs must be shown so that no two are alike. */
static size_t uuid_shown(const struct look *l)
{
    size_t shown = UUID_SHOWN;

    for (size_t i = 0; i < l->n; i++)
        for (size_t j = 0; j < i; j++)
            while (!strncmp(l->row[i].uuid, l->row[j].uuid, shown) &&
                   strlen(l->row[i].uuid) > shown)
                shown++;
    return shown;
}

static void put_row(struct table *t, const struct look *l, const struct gpud_device_info *r,
                    size_t shown)
{
    const bool told = r->foreign_processes != GPUD_UNKNOWN32;
    uint64_t at = now();
    struct users u;

    look_at_users(&u, l, r);

    table_cell(t, "%s", r->name);
    table_cell(t, "%.*s", (int)shown, r->uuid[0] ? r->uuid : "-");
    table_cell(t, "%s", r->model[0] ? r->model : "-");
    cell_memory(t, r->memory_used);
    cell_memory(t, r->memory_total);
    cell_number(t, r->utilization, r->utilization != GPUD_UNKNOWN32);
    cell_number(t, r->temperature, r->temperature != GPUD_UNKNOWN32);
    cell_number(t, (r->power + 500u) / 1000, r->power != GPUD_UNKNOWN32);
    table_cell(t, "%s", gpud_health_name(r->health));
    cell_number(t, u.workers, told);
    cell_number(t, told ? r->foreign_processes - u.workers : 0, told);
    cell_number(t, r->last_xid, r->last_xid != 0);
    if (r->sampled_at)
        table_cell(t, "%.1f", (double)(at > r->sampled_at ? at - r->sampled_at : 0) / 1e9);
    else
        table_cell(t, "-");
    row_notes(t, r);
    user_notes(t, &u, r);
}

static void put_none(const struct look *l)
{
    if (l->driver.state == GPUD_DRIVER_OK && !l->driver.unreadable)
        printf("No GPU: the driver works and has none\n");
    else {
        fputs("No GPU: ", stdout);
        put_plain(driver_sentence(&l->driver));
        putchar('\n');
    }
}

static void put_versions(const struct gpud_driver_info *d)
{
    if (!d->driver_version[0])
        return;
    fputs("Driver ", stdout);
    put_plain(d->driver_version);
    if (d->cuda_version)
        printf(", CUDA up to %u.%u", d->cuda_version / 1000, d->cuda_version % 1000 / 10);
    putchar('\n');
}

static void put_table(const struct look *l)
{
    struct table t;

    put_versions(&l->driver);
    if (!l->n) {
        put_none(l);
        return;
    }
    table_init(&t, column, sizeof column / sizeof column[0]);
    t.most = out_width();
    for (size_t i = 0; i < l->n; i++)
        put_row(&t, l, &l->row[i], uuid_shown(l));
    table_print(&t);
    if (l->driver.state != GPUD_DRIVER_OK || l->driver.unreadable) {
        fputs("The driver: ", stdout);
        put_plain(driver_sentence(&l->driver));
        putchar('\n');
    }
}

/* ---- for programs ---- */

static void json_user(const struct user *u)
{
    doc_open(NULL, '{');
    if (u->pid)
        doc_number("pid", u->pid);
    else
        doc_null("pid");
    doc_text("user", u->name[0] ? u->name : NULL);
    doc_text("command", u->command[0] ? u->command : NULL);
    if (u->memory == GPUD_UNKNOWN64)
        doc_null("memory");
    else
        doc_number("memory", u->memory);
    doc_bool("worker", u->worker);
    doc_close('}');
}

static char *wall_time(char *text, size_t size, const char *format, bool utc)
{
    time_t t = time(NULL);
    struct tm tm;

    strftime(text, size, format, utc ? gmtime_r(&t, &tm) : localtime_r(&t, &tm));
    return text;
}

static void json_row(const struct look *l, const struct gpud_device_info *r)
{
    struct users u;

    look_at_users(&u, l, r);
    doc_open(NULL, '{');
    json_device(r);
    doc_open("processes", '[');
    for (size_t i = 0; i < u.n; i++)
        json_user(&u.user[i]);
    doc_close(']');
    doc_close('}');
}

static void put_json(const struct look *l)
{
    char text[40];

    doc_open(NULL, '{');
    doc_text("version", gpud_version());
    doc_text("time", wall_time(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", true));
    doc_number("now", now());
    json_driver("driver", &l->driver);
    doc_open("devices", '[');
    for (size_t i = 0; i < l->n; i++)
        json_row(l, &l->row[i]);
    doc_close(']');
    doc_close('}');
    doc_end();
}

/* ---- the verb ---- */

static int answered(const struct look *l)
{
    uint32_t s = l->driver.state;

    for (size_t i = 0; i < l->n; i++)
        if (row_is_out(&l->row[i]))
            return EXIT_WRONG;
    if (l->driver.lost)
        return EXIT_WRONG;
    return s == GPUD_DRIVER_OK || s == GPUD_DRIVER_NONE || s == GPUD_DRIVER_NOT_LOADED ? EXIT_OK
                                                                                       : EXIT_WRONG;
}

static int fail(int code)
{
    fprintf(stderr, "gpudispatch: %s\n", gpud_error_text(code));
    return EXIT_FAILED;
}

static int put(const struct call *call, const struct look *l)
{
    if (call->given[OPTION_JSON])
        put_json(l);
    else
        put_table(l);
    return out_flush();
}

static int once(const struct call *call, struct look *l, uint64_t wait)
{
    int r = look_again(l, 0, wait);

    if (r)
        return fail(r);
    return put(call, l) ? EXIT_FAILED : answered(l);
}

/* ---- again and again ---- */

static void on_signal(int number)
{
    (void)number;
    _exit(EXIT_OK); /* nothing is half printed; the monitor ends by itself */
}

static void end_on(int number)
{
    struct sigaction now, action = { .sa_handler = on_signal };

    sigemptyset(&action.sa_mask);
    /* as in the background of a script */
    if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

static void put_head(const struct call *call, bool first)
{
    char text[40];

    if (call->given[OPTION_JSON])
        return;
    if (out_terminal())
        fputs(CLEAR, stdout);
    else if (!first)
        putchar('\n');
    puts(wall_time(text, sizeof text, "%Y-%m-%d %H:%M:%S", false));
}

/* Signals wait until all of it is printed. */
static int put_whole(const struct call *call, const struct look *l, bool first)
{
    sigset_t ends, before;
    int r;

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, &before);
    put_head(call, first);
    r = put(call, l);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* False: the reader has gone. */
static bool wait_until(uint64_t until)
{
    struct pollfd out = { .fd = STDOUT_FILENO };
    uint64_t t;

    while ((t = now()) < until) {
        struct timespec wait = { (time_t)((until - t) / SECOND), (long)((until - t) % SECOND) };
        if (ppoll(&out, 1, &wait, NULL) > 0)
            return false;
    }
    return !out_reader_gone();
}

static int again_and_again(const struct call *call, struct look *l, uint64_t interval,
                           uint64_t wait)
{
    uint64_t at = now();
    bool first = true;
    int r;

    end_on(SIGINT);
    end_on(SIGTERM);
    do {
        r = look_again(l, first ? 0 : FRESH, first || wait < interval ? wait : interval);
        if (r)
            return fail(r);
        r = put_whole(call, l, first);
        if (r)
            return r;
        first = false;
        at += interval;
        if (at < now())
            at = now() + interval; /* the driver was slow: no round is made up for */
    } while (wait_until(at));
    return EXIT_OK;
}

int gpus_run(const struct call *call)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    uint64_t interval, wait;
    struct look l;
    int r = seconds_read(call, OPTION_WATCH, 0.1, 86400, INTERVAL, &interval);

    r = r ? r : seconds_read(call, OPTION_WAIT, 0, 3600, PATIENCE, &wait);
    if (r)
        return r;
    if (look_open(&l, call->value[OPTION_DEVICES], &e)) {
        fprintf(stderr, "gpudispatch: %s\n", e.text);
        return e.code == GPUD_EDEVICE || e.code == GPUD_EINVAL ? EXIT_USAGE : EXIT_FAILED;
    }
    r = call->given[OPTION_WATCH] ? again_and_again(call, &l, interval, wait)
                                  : once(call, &l, wait);
    look_close(&l);
    return r;
}
