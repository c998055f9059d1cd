/* SPDX-License-Identifier: MIT */
/* report.c - a night as a page for people, as numbers, or as rows. */
#include "report.h"

#include <string.h>
#include <time.h>

#include "night.h"
#include "output.h"
#include "view/line.h"
#include "view/report/formats.h"
#include "view/report/report.h"

#define NS_PER_SECOND UINT64_C(1000000000)

#ifdef GPQ_CLIENT
#include "queue/client/option.h"
#else
static int gpq_option_duration(const struct call *call, enum option_id option, uint64_t *ret_ns)
{
    (void)ret_ns;
    return call->given[option]
               ? usage(call->verb, "%s: --%s: built without the queue (-Dqueue=enabled)",
                       call->verb->name, options[option].name)
               : 0;
}
#endif

struct report {
    const struct call *call;
    struct gpv_night *night;
    uint64_t every; /* ns; 0: once */
};

/* ---- Formats ---- */

static int write_page(const struct report *r, FILE *f)
{
    struct gpv_report_options o = {
        .reload = r->night->over ? 0 : (unsigned)(r->every / NS_PER_SECOND),
        .all = r->call->given[OPTION_ALL],
    };

    return gpv_report_write(r->night, &o, f);
}

static int write_json(const struct report *r, FILE *f)
{
    return gpv_report_json(r->night, f);
}

static int write_csv(const struct report *r, FILE *f)
{
    gpv_report_csv(r->night, f);
    return 0;
}

static int write_joblog(const struct report *r, FILE *f)
{
    gpv_report_joblog(r->night, f);
    return 0;
}

static int write_records(const struct report *r, FILE *f)
{
    struct gpv_lines lines = { 0 };
    bool whole = gpv_night_write(r->night, &lines);

    if (whole)
        fwrite(lines.text, 1, lines.size, f);
    gpv_lines_free(&lines);
    return whole ? 0 : -1;
}

static const struct format {
    enum option_id option; /* OPTION_END: none of them */
    int (*write)(const struct report *r, FILE *f);
    size_t names; /* of attempts, that it needs */
} formats[] = {
    { OPTION_JSON, write_json, 0 },
    { OPTION_CSV, write_csv, SIZE_MAX },
    { OPTION_JOBLOG, write_joblog, SIZE_MAX },
    { OPTION_RECORDS, write_records, SIZE_MAX },
    { OPTION_END, write_page, GPV_REPORT_NAMES },
};

/* 0, or EXIT_USAGE: several. */
static int format_of(const struct call *call, const struct format **ret)
{
    const struct format *f = formats;

    while (f->option != OPTION_END && !call->given[f->option])
        f++;
    *ret = f;
    while (f->option != OPTION_END)
        if (call->given[(++f)->option])
            return usage(call->verb, "%s: --%s and --%s exclude one another", call->verb->name,
                         options[(*ret)->option].name, options[f->option].name);
    return 0;
}

/* ---- The verb ---- */

static int write_once(const struct report *r, const struct format *format, const char *name)
{
    struct output out;
    int status = output_open(&out, name);

    if (status)
        return status;
    if (format->write(r, out.f) && !ferror(out.f))
        status = night_no_memory(r->call);
    return output_close(&out, status);
}

/* A night that is over is written once more, and so its page does not load itself again. */
static int write_all(struct report *r, const struct format *format, const char *name)
{
    struct timespec wait = { (time_t)(r->every / NS_PER_SECOND), (long)(r->every % NS_PER_SECOND) };

    for (;;) {
        int status = night_read(r->call, format->names, &r->night);
        if (status)
            return status;
        bool ends = r->every == 0 || r->night->over;
        status = write_once(r, format, name);
        gpv_night_free(r->night);
        if (status || ends)
            return status;
        (void)nanosleep(&wait, NULL);
    }
}

static int read_every(const struct call *call, const char *name, uint64_t *ret)
{
    int status = gpq_option_duration(call, OPTION_EVERY, ret);

    if (status || !call->given[OPTION_EVERY])
        return status;
    if (*ret < NS_PER_SECOND)
        return usage(call->verb, "report: --every is '%s', expected 1s or more",
                     call->value[OPTION_EVERY]);
    if (call->given[OPTION_FROM])
        return usage(call->verb, "report: --every and --from exclude one another");
    if (!name || !strcmp(name, "-"))
        return usage(call->verb, "report: --every writes a file: -o FILE is missing");
    return 0;
}

int report_run(const struct call *call)
{
    struct report r = { .call = call };
    const struct format *format;
    const char *name;
    int status = format_of(call, &format);

    if (status)
        return status;
    name = output_name(call, format->option == OPTION_END ? "gpudispatch-report.html" : NULL);
    status = read_every(call, name, &r.every);
    if (status == 0)
        status = write_all(&r, format, name);
    if (status == 0)
        output_say(call, name);
    return status;
}
