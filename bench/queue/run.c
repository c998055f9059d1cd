/* SPDX-License-Identifier: MIT */
/* run.c - gpudispatch-bench --queue: its options, and its cells one after the other, each in a
 * process of its own with a time limit.  What a cell leaves running is killed. */
#include "run.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gpudispatch/gpudispatch.h>

#include "../measure.h"
#include "../ours.h"
#include "../processes.h"
#include "commands.h"
#include "ours.h"
#include "rows.h"

#define MOST_TASKS 10000000u

struct cell {
    const char *name;
    int (*run)(const struct bq_set *set, double *figures);
    unsigned limit; /* s */
};

static const struct cell cells[] = {
    { "rates", bq_rates, 300 },         { "lists", bq_lists, 120 },
    { "blocked", bq_blocked, 120 },     { "many_fill", bq_many_fill, 1200 },
    { "many_open", bq_many_open, 120 }, { "many_use", bq_many_use, 120 },
    { "warm", bq_warm, 120 },           { "adopt", bq_adopt, 120 },
    { "commands", bq_commands, 300 },   { "waiting", bq_waiting, 1200 },
};
#define CELLS (sizeof cells / sizeof *cells)
static const struct cell statements = { "statements", bq_statements, 60 };

struct options {
    struct bq_set set;
    const char *base, *only;
    bool json, statements;
};

static int usage(FILE *out, int code)
{
    (void)fputs("usage: gpudispatch-bench --queue [--json] [--quick] [--tasks N] [--dir DIR]\n"
                "                                  [--only CELL] [--statements]\n"
                "Measures the store of the durable queue beside bare SQLite, and its agent.\n"
                "  --tasks N     of the large store (1000000; 20000 with --quick)\n"
                "  --dir DIR     a file system to write to (default: TMPDIR, else this directory)\n"
                "  --only CELL   rates, lists, blocked, many, warm, adopt, commands or waiting\n"
                "  --statements  instead of figures: what each operation makes SQLite do\n"
                "Exit status: 0 measured, 1 a cell failed, 2 wrong usage.\n",
                out);
    return code;
}

static bool read_tasks(const char *text, uint32_t *ret)
{
    char *end;
    const unsigned long n = strtoul(text, &end, 10);

    *ret = (uint32_t)n;
    return text[0] >= '0' && text[0] <= '9' && !*end && n >= 1 && n <= MOST_TASKS;
}

/* Returns: 0, 1 for --help, or -1. */
static int read_options(int argc, char **argv, struct options *o)
{
    bool good = true;

    *o = (struct options){ 0 };
    for (int i = 1; i < argc && good; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return 1;
        if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            b_effort_quick();
        else if (strcmp(argv[i], "--statements") == 0)
            o->statements = true;
        else if (strcmp(argv[i], "--tasks") == 0 && i + 1 < argc)
            good = read_tasks(argv[++i], &o->set.tasks);
        else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
            o->base = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            o->only = argv[++i];
        else
            good = strcmp(argv[i], "--queue") == 0;
    }
    if (!o->set.tasks)
        o->set.tasks = (uint32_t)b_effort(1000000, 20000);
    o->set.blocked = (uint32_t)b_effort(100000, 2000);
    o->set.list = (uint32_t)b_effort(10000, 1000);
    return good ? 0 : -1;
}

/* ---- The cells ---- */

/* Ctrl-C ends the cell, and then the program removes what it has left. */
static volatile sig_atomic_t stopped;

static void stop(int number)
{
    stopped = number;
}

static int await(pid_t pid, const struct cell *cell)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        if (stopped)
            (void)kill(pid, SIGKILL);
    if (stopped)
        return -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return b_complain("cell %s: killed after %u s", cell->name, cell->limit);
    if (WIFSIGNALED(status))
        return b_complain("cell %s: ended by signal %d", cell->name, WTERMSIG(status));
    return b_complain("cell %s: failed", cell->name);
}

/* Runners and commands outlive their agent, and agents a cell that failed. */
static void end_processes(void)
{
    pid_t pids[256];
    int n;

    while ((n = b_descendants(getpid(), pids, sizeof pids / sizeof *pids)) > 0) {
        for (int i = 0; i < n; i++)
            (void)kill(pids[i], SIGKILL);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        b_sleep(B_MS);
    }
}

static int do_cell(const struct bq_set *set, const struct cell *cell, double *figures)
{
    pid_t pid;
    int rc;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGTERM, SIG_DFL);
        (void)alarm(cell->limit);
        rc = cell->run(set, figures);
        (void)fflush(NULL);
        _exit(rc ? 1 : 0);
    }
    rc = pid < 0 ? b_complain("no process") : await(pid, cell);
    end_processes();
    return rc;
}

static bool is_wanted(const struct options *o, const struct cell *cell)
{
    return !o->only || strncmp(cell->name, o->only, strlen(o->only)) == 0;
}

static int do_cells(const struct options *o, double *figures)
{
    int rc = 0;

    if (o->statements)
        return do_cell(&o->set, &statements, figures);
    for (unsigned i = 0; i < CELLS; i++)
        if (is_wanted(o, &cells[i]) && !stopped)
            rc |= do_cell(&o->set, &cells[i], figures);
    return rc;
}

/* ---- The report ---- */

/* Reads the settings of the engine's connection, as members of a JSON object. */
static void read_settings(const struct bq_set *set, char *text, int size)
{
    char directory[BQ_PATH];
    struct bq_ours o;

    text[0] = '\0';
    if (bq_disk_store(&set->disk, "settings", directory) || bq_ours_open(&o, directory))
        return;
    bq_tap_print(o.db, text, size);
    bq_ours_close(&o);
    bq_disk_remove(directory);
}

/* Prints the programs that cell commands misses, each between a prefix and a suffix. */
static void print_missing(const char *prefix, const char *between, const char *suffix)
{
    const char *before = "";

    for (unsigned i = 0; i < BQ_PROGRAMS; i++) {
        const struct bq_program *p = &bq_programs[i];

        if (bq_program_installed(p))
            continue;
        (void)printf("%s%s%s (package %s)%s", before, prefix, p->name, p->package, suffix);
        before = between;
    }
}

static void print(const struct options *o, const double *figures, double seconds)
{
    const struct bq_disk *disk = &o->set.disk;
    char settings[1024];

    read_settings(&o->set, settings, sizeof settings);
    if (o->json) {
        (void)printf("{\n  \"version\": \"%s\",\n  \"sqlite\": \"%s\",\n  \"tasks\": %u,\n"
                     "  \"file_system\": \"%s\",\n  \"in_memory\": %s,\n  \"settings\": {%s}",
                     gpud_version(), sqlite3_libversion(), o->set.tasks, disk->kind,
                     disk->in_memory ? "true" : "false", settings);
        b_goals_print_number(stdout, 2, "seconds", seconds);
        b_goals_print_json(stdout, &bq_rows, figures);
        (void)printf(",\n  \"not_installed\": [");
        print_missing("\"", ", ", "\"");
        (void)printf("],\n  \"quick\": %s\n}\n", b_effort(0, 1) ? "true" : "false");
        return;
    }
    (void)printf("gpudispatch %s, the store of the queue on %s%s, SQLite %s, %.1f s%s\n%s\n\n",
                 gpud_version(), disk->kind,
                 disk->in_memory ? " (in memory: its syncs cost nothing)" : "",
                 sqlite3_libversion(), seconds,
                 b_effort(0, 1) ? ", --quick: a look, no figures to keep" : "", settings);
    b_goals_print_table(stdout, &bq_rows, figures);
    print_missing("not measured, since it is not installed: ", "", "\n");
}

int bq_run(int argc, char **argv)
{
    const size_t size = BQ_ROW_COUNT * sizeof(double);
    const uint64_t begun = b_now();
    struct options o;
    const int asked = read_options(argc, argv, &o);
    double *figures;
    int rc;

    if (argc > 2 && strcmp(argv[2], B_WORKER_ARGUMENT) == 0)
        return bq_warm_worker();
    if (asked)
        return asked > 0 ? usage(stdout, 0) : usage(stderr, 2);
    if (bq_disk_open(&o.set.disk, o.base))
        return 1;
    if (o.set.disk.in_memory && !b_effort(0, 1)) {
        (void)b_complain("%s is a %s, where a sync costs nothing: choose a disk with --dir, or look"
                         " with --quick",
                         o.set.disk.folder, o.set.disk.kind);
        bq_disk_close(&o.set.disk);
        return 1;
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)sigaction(SIGINT, &(struct sigaction){ .sa_handler = stop }, NULL);
    (void)sigaction(SIGTERM, &(struct sigaction){ .sa_handler = stop }, NULL);
    /* The cells write their figures into memory that they share. */
    figures = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (figures == MAP_FAILED) {
        bq_disk_close(&o.set.disk);
        return b_complain("out of memory") ? 1 : 0;
    }
    for (unsigned i = 0; i < BQ_ROW_COUNT; i++)
        figures[i] = NAN;
    figures[BQ_sync_us_ROW] = bq_disk_sync(&o.set.disk);
    rc = figures[BQ_sync_us_ROW] < 0 ? -1 : do_cells(&o, figures);
    figures[BQ_sync_after_us_ROW] = bq_disk_sync(&o.set.disk);
    if (!o.statements && !stopped)
        print(&o, figures, (double)(b_now() - begun) / 1e9);
    bq_disk_close(&o.set.disk);
    (void)munmap(figures, size);
    return rc ? 1 : 0;
}
