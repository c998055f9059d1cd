/* SPDX-License-Identifier: MIT */
/* verbs.c - what the verbs that show a night cost: each run is a process, which reads a recording
 * and writes a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../measure.h"
#include "../report.h"
#include "night.h"
#include "rows.h"

enum { ROUNDS = 7, BATCHES = 64 };

uint32_t bv_few(void)
{
    return (uint32_t)b_effort(100000, 5000);
}

uint32_t bv_many(void)
{
    return (uint32_t)b_effort(1000000, 20000);
}

/* ---- One run ---- */

struct cost {
    double seconds, cpu, peak; /* peak: MiB */
};

static double seconds_of(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static _Noreturn void start(char *const argv[])
{
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)dup2(nothing, STDOUT_FILENO);
    (void)execv(BENCH_PROGRAM, argv);
    _exit(127);
}

/* Runs a verb, with an option or NULL, from a recording to a file. */
static int run_once(const char *verb, const char *option, const char *from, const char *to,
                    struct cost *ret)
{
    char *const argv[] = { "gpudispatch", (char *)verb, "--from",       (char *)from,
                           "-o",          (char *)to,   (char *)option, NULL };
    const uint64_t begun = b_now();
    struct rusage use;
    int status = 0;
    const pid_t pid = fork();

    if (pid == 0)
        start(argv);
    while (pid > 0 && wait4(pid, &status, 0, &use) < 0 && errno == EINTR)
        ;
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return b_complain("%s %s: it failed", BENCH_PROGRAM, verb);
    *ret = (struct cost){ (double)(b_now() - begun) / 1e9,
                          seconds_of(&use.ru_utime) + seconds_of(&use.ru_stime),
                          (double)use.ru_maxrss / 1024 };
    return 0;
}

/* ---- Medians ---- */

static int run(const char *verb, const char *option, const char *from, const char *to,
               struct cost *ret)
{
    double seconds[ROUNDS], cpu[ROUNDS], peak[ROUNDS];
    const size_t rounds = b_effort(ROUNDS, 3);

    for (size_t i = 0; i < rounds; i++) {
        struct cost cost = { 0 };
        if (run_once(verb, option, from, to, &cost))
            return -1;
        seconds[i] = cost.seconds;
        cpu[i] = cost.cpu;
        peak[i] = cost.peak;
    }
    *ret =
        (struct cost){ b_median(seconds, rounds), b_median(cpu, rounds), b_median(peak, rounds) };
    return 0;
}

static double mib_of(const char *file)
{
    struct stat s;

    return stat(file, &s) == 0 ? (double)s.st_size / (1 << 20) : -1;
}

static int make_night(const char *file, uint32_t attempts)
{
    FILE *f = fopen(file, "we");
    int rc = f ? bv_night_write(f, attempts, BATCHES) : b_complain("%s: %s", file, strerror(errno));

    if (f && fclose(f) && rc == 0)
        rc = b_complain("%s: %s", file, strerror(errno));
    return rc;
}

static int run_few(const char *from, const char *to, double *figures)
{
    struct cost report = { 0 }, json = { 0 }, csv = { 0 }, trace = { 0 };

    if (make_night(from, bv_few()) || run("report", NULL, from, to, &report))
        return -1;
    figures[BV_report_100k_mib_ROW] = mib_of(to);
    if (run("report", "--json", from, to, &json) || run("report", "--csv", from, to, &csv) ||
        run("trace", NULL, from, to, &trace))
        return -1;
    figures[BV_report_100k_s_ROW] = report.seconds;
    figures[BV_report_100k_cpu_s_ROW] = report.cpu;
    figures[BV_report_100k_peak_mib_ROW] = report.peak;
    figures[BV_json_100k_s_ROW] = json.seconds;
    figures[BV_csv_100k_s_ROW] = csv.seconds;
    figures[BV_trace_100k_s_ROW] = trace.seconds;
    figures[BV_trace_100k_cpu_s_ROW] = trace.cpu;
    figures[BV_trace_beyond_csv_mib_ROW] = trace.peak - csv.peak;
    return 0;
}

static int run_many(const char *from, const char *to, double *figures)
{
    struct cost report = { 0 };

    if (make_night(from, bv_many()) || run("report", NULL, from, to, &report))
        return -1;
    figures[BV_report_1m_s_ROW] = report.seconds;
    figures[BV_report_1m_cpu_s_ROW] = report.cpu;
    figures[BV_report_1m_mib_ROW] = mib_of(to);
    figures[BV_report_1m_peak_mib_ROW] = report.peak;
    return 0;
}

int bv_verbs(struct b_scratch *files, double *figures)
{
    const char *from = b_scratch_path(files, "night"), *to = b_scratch_path(files, "shown");

    if (!from || !to)
        return -1;
    return run_few(from, to, figures) | run_many(from, to, figures) ? -1 : 0;
}
