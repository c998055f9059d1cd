/* SPDX-License-Identifier: MIT */
/*
 * worlds.c - runs random worlds around the core until they have fed enough events.
 *
 *     worlds [--seeds FROM-TO] [--events N] [--scripts PATTERN] [--mutants] [--replay]
 *     worlds --shrink SEED
 *
 * Without an option it feeds 10^6 events.  It prints the number of worlds, the cells of the core's
 * table that they reached, and the rules that the oracles found broken.
 *
 * --scripts counts the cells that the scripts of a pattern reach, too.  --mutants mutes each cell
 * that has a reaction, one cell at a time, and checks whether an oracle objects.  If none does,
 * it checks whether a script fails.  --replay writes the log of each world and feeds it to a fresh
 * core, which must have the same effects.  --shrink searches for a smaller world that breaks the
 * same rule, and writes the script of that world.  `gpudispatch-sim --world` prints that of any.
 *
 * Exit status: 1 if an oracle objects, a step of the core allocates memory, a replay differs, a
 * script fails, no oracle and no script sees a mutant, worlds see less than 90 % of the mutants, or
 * (with --scripts) a cell stays unreached.
 */
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "allocations.h"
#include "sched/event.h"
#include "sched/probe.h"
#include "log/play.h"
#include "sim/replay.h"
#include "sim/world.h"

#define EVENTS 1000000u
#define MUTANT_EVENTS (4 * EVENTS) /* so that worlds reach each cell often enough */
#define INPUTS_MAX 64u
#define SEEDS_KEPT 300u     /* of each cell: worlds that may see its mutant */
#define MORE_WORLDS 30u     /* after the first objection, for the other oracles */
#define CHILD_CPU_S 5u     /* for a mutant whose worlds do not end */
#define CRASHES_MAX 5u

static const char *const life_name[] = {
#define GPI_X_LIFE(name) #name,
    GPI_LIFE_MAP(GPI_X_LIFE)
#undef GPI_X_LIFE
};

/* ---- cells ---- */

struct cell {
    uint64_t reached;
    uint64_t by_scripts;
    uint32_t n_seeds;
    uint64_t seed[SEEDS_KEPT]; /* of worlds that reached it */
};

struct run {
    uint64_t from, to, events_wanted;
    const char *scripts; /* a pattern, or NULL */
    bool mutants, replay;
    uint64_t worlds, events, faults, seed;
    uint64_t replays, lines, differences;
    struct cell (*cell)[INPUTS_MAX]; /* GPI_LIVES of them */
};

static void count_cells(struct gpi_sched *core, void *user)
{
    struct run *r = user;

    for (uint32_t l = 0; l < GPI_LIVES; l++)
        for (uint32_t i = 0; i < gpi_sched_inputs(); i++) {
            struct cell *c = &r->cell[l][i];
            const uint64_t reached = gpi_sched_reached(core, l, i);
            c->reached += reached;
            if (reached && c->n_seeds < SEEDS_KEPT)
                c->seed[c->n_seeds++] = r->seed;
        }
}

static uint32_t print_cells(const struct run *r)
{
    uint32_t can = 0, worlds = 0, scripts = 0, never = 0;

    for (uint32_t l = 0; l < GPI_LIVES; l++)
        for (uint32_t i = 0; i < gpi_sched_inputs(); i++) {
            can += gpi_sched_can_be(l, i);
            worlds += r->cell[l][i].reached > 0;
            scripts += !r->cell[l][i].reached && r->cell[l][i].by_scripts;
        }
    never = can - worlds - scripts;
    (void)printf("table: %u states, %u columns, %u cells; reached by worlds %u, "
                 "by scripts alone %u, never %u:",
                 (unsigned)GPI_LIVES, gpi_sched_inputs(), can, worlds, scripts, never);
    for (uint32_t l = 0; l < GPI_LIVES; l++)
        for (uint32_t i = 0; i < gpi_sched_inputs(); i++)
            if (gpi_sched_can_be(l, i) && !r->cell[l][i].reached && !r->cell[l][i].by_scripts)
                (void)printf(" %sx%s", life_name[l], gpi_sched_input_name(i));
    (void)printf("%s\n", never ? "" : " none");
    return never;
}

/* ---- scripts ---- */

/* Returns the number of scripts that differ or are invalid. */
static uint32_t run_scripts(const char *pattern, const struct gpi_replay *how)
{
    glob_t files;
    uint32_t differ = 0;

    if (glob(pattern, 0, NULL, &files))
        exit(66);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct gpi_replay r = *how;
        size_t size;
        char *text = gpi_replay_file(files.gl_pathv[i], &size);
        if (!text)
            exit(66);
        differ += gpi_replay(&r, text, size) != GPI_REPLAY_EQUAL;
        free(text);
    }
    globfree(&files);
    return differ;
}

static void count_script_cells(struct gpi_sched *core, void *user)
{
    struct run *r = user;

    for (uint32_t l = 0; l < GPI_LIVES; l++)
        for (uint32_t i = 0; i < gpi_sched_inputs(); i++)
            r->cell[l][i].by_scripts += gpi_sched_reached(core, l, i);
}

/* ---- worlds around the unchanged core ---- */

static double seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The current seed: if the core aborts, the handler prints it, since the core does not know it. */
static uint64_t seed_now;

static void on_abort(int signal_number)
{
    char text[96];
    const int n = snprintf(text, sizeof text, "worlds: the core aborts in seed %llu\n",
                           (unsigned long long)seed_now);

    (void)signal_number;
    (void)!write(STDOUT_FILENO, text, (size_t)n);
}

/* Feeds the world's log to a fresh core, which must order the same actions. */
static void replay_world(struct run *r, char *text, size_t size)
{
    struct gpi_replay replay = { .cut = false };

    r->replays++;
    if (gpi_replay(&replay, text, size) == GPI_REPLAY_EQUAL) {
        r->lines += replay.line;
        return;
    }
    if (++r->differences <= 5)
        (void)printf("seed %llu, line %u of its log: wanted %s, got %s%s\n",
                     (unsigned long long)r->seed, replay.line, replay.wanted, replay.got,
                     replay.error);
}

static int run_world(struct run *r, struct gpi_world_options *o, struct gpi_world_report *report)
{
    char *text = NULL;
    size_t size = 0;
    int objects;

    o->log = r->replay ? open_memstream(&text, &size) : NULL;
    objects = gpi_world_run(r->seed, o, report);
    if (o->log) {
        (void)fclose(o->log);
        replay_world(r, text, size);
        free(text);
    }
    return objects;
}

static void run_worlds(struct run *r)
{
    struct gpi_world_options o = { .end = count_cells, .user = r };
    const double began = seconds();
    double took;

    for (r->seed = r->from; r->seed <= r->to && r->events < r->events_wanted; r->seed++) {
        struct gpi_world_report report;
        seed_now = r->seed;
        if (run_world(r, &o, &report) && ++r->faults <= 20)
            (void)printf("%s\n", report.text);
        (void)fflush(stdout);
        r->worlds++;
        r->events += report.events;
    }
    took = seconds() - began;
    (void)printf("worlds: %llu worlds, %llu events, %.0f events/s, %llu faults\n",
                 (unsigned long long)r->worlds, (unsigned long long)r->events,
                 (double)r->events / (took > 0 ? took : 1), (unsigned long long)r->faults);
    if (r->replay)
        (void)printf("replays: %llu logs, %llu lines compared, %llu differ\n",
                     (unsigned long long)r->replays, (unsigned long long)r->lines,
                     (unsigned long long)r->differences);
    (void)printf("memory: %llu calls of malloc and its kin, %llu within steps of the core\n",
                 (unsigned long long)allocations,
                 (unsigned long long)gpi_play_allocations_of_steps);
}

/* ---- mutants ---- */

enum { SEEN_ASSERT = 8, SEEN_NO_END = 16, SEEN_KINDS = 5 };
static const char *const seen_name[SEEN_KINDS] = { "safety", "limits", "post-conditions", "assert",
                                                   "no end" };
#define WORLDS_SEE 90u /* percent of the mutants, at least */

/* Shared with the child, which may crash. */
struct finding {
    uint32_t life, input;
    uint32_t objected; /* bits of enum gpi_oracle_kind */
    uint32_t worlds, after; /* number of worlds run, and run after the first objection */
};

static void mute(struct gpi_sched *core, void *user)
{
    const struct finding *f = user;

    gpi_sched_mute(core, f->life, f->input);
}

static void run_mutant(struct finding *f, const struct cell *c)
{
    const struct gpi_world_options o = {
        .begin = mute, .user = f, .go_on = true, .objected = &f->objected
    };
    const uint32_t all = GPI_ORACLE_SAFETY | GPI_ORACLE_LIMITS | GPI_ORACLE_AFTER;

    while (f->worlds < c->n_seeds && f->after < MORE_WORLDS && f->objected != all) {
        struct gpi_world_report report;
        (void)gpi_world_run(c->seed[f->worlds++], &o, &report);
        f->objected |= report.objected;
        f->after += f->objected != 0;
    }
}

static _Noreturn void be_child(struct finding *f, const struct cell *c)
{
    const struct rlimit cpu = { .rlim_cur = CHILD_CPU_S, .rlim_max = CHILD_CPU_S + 1 };
    const struct rlimit none = { 0 };

    (void)signal(SIGABRT, SIG_DFL);
    (void)setrlimit(RLIMIT_CPU, &cpu);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)!freopen("/dev/null", "w", stderr);
    run_mutant(f, c);
    _exit(0);
}

/* Runs a mutant.  Returns bits of enum gpi_oracle_kind, SEEN_ASSERT and SEEN_NO_END. */
static uint32_t try_mutant(struct finding *f, const struct cell *c)
{
    uint32_t seen = 0;

    for (uint32_t crashes = 0; crashes < CRASHES_MAX; crashes++) {
        int status;
        pid_t pid;
        (void)fflush(stdout);
        pid = fork();
        if (pid == 0)
            be_child(f, c);
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            exit(70);
        seen |= f->objected;
        if (WIFEXITED(status))
            break;
        seen |= WTERMSIG(status) == SIGXCPU ? SEEN_NO_END : SEEN_ASSERT;
        if (seen & SEEN_NO_END)
            break;
    }
    return seen;
}

/* Returns whether a script differs, or the core aborts, with this cell muted. */
static bool scripts_see(const char *pattern, struct finding *f)
{
    const struct gpi_replay how = { .begin = mute, .user = f };
    const struct rlimit none = { 0 };
    int status;
    pid_t pid;

    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)!freopen("/dev/null", "w", stderr);
        _exit(run_scripts(pattern, &how) > 0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        exit(70);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

struct tally {
    uint32_t mutants, seen, by[SEEN_KINDS], only[SEEN_KINDS], by_scripts, unseen;
    char list[8192]; /* mutants that no oracle and no script sees */
    char only_list[SEEN_KINDS][8192];
};

static void append(char list[8192], uint32_t life, uint32_t input)
{
    const size_t n = strlen(list);

    (void)snprintf(list + n, 8192 - n, " %sx%s", life_name[life], gpi_sched_input_name(input));
}

static void count_mutant(struct tally *t, struct finding *f, uint32_t seen, const char *scripts)
{
    t->mutants++;
    t->seen += seen != 0;
    if (!seen && scripts && scripts_see(scripts, f)) {
        t->by_scripts++;
    } else if (!seen) {
        t->unseen++;
        append(t->list, f->life, f->input);
    }
    for (uint32_t k = 0; k < SEEN_KINDS; k++) {
        t->by[k] += seen >> k & 1;
        if (seen != 1u << k)
            continue;
        t->only[k]++;
        append(t->only_list[k], f->life, f->input);
    }
}

static void print_tally(const struct tally *t)
{
    (void)printf("mutants: %u; worlds see %u (%u %%), by", t->mutants, t->seen,
                 t->mutants ? t->seen * 100 / t->mutants : 0);
    for (uint32_t k = 0; k < SEEN_KINDS; k++)
        (void)printf("%s %s %u", k ? "," : "", seen_name[k], t->by[k]);
    (void)printf("; scripts see %u more; unseen:%s\n", t->by_scripts,
                 t->unseen ? t->list : " none");
    for (uint32_t k = 0; k < SEEN_KINDS; k++)
        if (t->only[k])
            (void)printf("  only %s: %u:%s\n", seen_name[k], t->only[k], t->only_list[k]);
}

static uint32_t run_mutants(const struct run *r)
{
    struct tally *t = calloc(1, sizeof *t);
    struct finding *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                             -1, 0);
    uint32_t unseen;

    if (!t || f == MAP_FAILED)
        exit(70);
    for (uint32_t l = 0; l < GPI_LIVES; l++)
        for (uint32_t i = 0; i < gpi_sched_inputs(); i++) {
            if (!gpi_sched_reacts(l, i))
                continue;
            *f = (struct finding){ .life = l, .input = i };
            count_mutant(t, f, try_mutant(f, &r->cell[l][i]), r->scripts);
        }
    print_tally(t);
    unseen = t->unseen + (t->seen * 100 < t->mutants * WORLDS_SEE);
    (void)munmap(f, sizeof *f);
    free(t);
    return unseen;
}

/* ---- one world ---- */

static FILE *create(const char *path)
{
    FILE *f = fopen(path, "w");

    if (f)
        return f;
    (void)fprintf(stderr, "worlds: %s: %s\n", path, strerror(errno));
    exit(66);
}

static int write_world(uint64_t seed, struct gpi_world_options *o, const char *path)
{
    struct gpi_world_report report;
    int r;

    o->log = create(path);
    seed_now = seed;
    r = gpi_world_run(seed, o, &report);
    (void)fclose(o->log);
    (void)printf("%s: %llu events; %s\n", path, (unsigned long long)report.events,
                 r ? report.text : "no oracle objects");
    return r;
}

static int shrink(uint64_t seed)
{
    struct gpi_world_options o = { .slots = 0 };
    struct gpi_world_report report;
    char path[64];
    uint32_t tried;

    if (!gpi_world_run(seed, &o, &report)) {
        (void)printf("seed %llu: no oracle objects\n", (unsigned long long)seed);
        return 0;
    }
    tried = gpi_world_shrink(seed, &o, &report);
    (void)printf("%s\n%u worlds tried; slots %u, devices %u, tasks %u, length %.3f s; with",
                 report.text, tried, o.slots, o.devices, o.tasks, (double)o.length / 1e9);
    for (uint32_t i = 0; i < GPI_TROUBLES; i++)
        if (!(o.without >> i & 1))
            (void)printf(" %s", gpi_trouble_name(i));
    (void)printf("\n");
    (void)snprintf(path, sizeof path, "world-%llu.txt", (unsigned long long)seed);
    return write_world(seed, &o, path);
}

/* ---- the command line ---- */

static _Noreturn void usage(void)
{
    (void)fprintf(stderr, "usage: worlds [--seeds FROM-TO] [--events N] [--scripts PATTERN] "
                          "[--mutants] [--replay]\n"
                          "       worlds --shrink SEED\n");
    exit(64);
}

static uint64_t number(const char *text)
{
    if (!text)
        usage();
    return strtoull(text, NULL, 0);
}

static void set_seeds(struct run *r, const char *text)
{
    const char *to = text ? strchr(text, '-') : NULL;

    r->from = number(text);
    r->to = to ? number(to + 1) : r->from;
    r->events_wanted = UINT64_MAX;
}

static int run(struct run *r)
{
    const struct gpi_replay count = { .end = count_script_cells, .user = r };
    uint32_t unseen = 0, bad_scripts = 0, never;
    bool allocates;

    gpi_play_allocations = &allocations;
    r->cell = calloc(GPI_LIVES, sizeof *r->cell);
    if (!r->cell || gpi_sched_inputs() > INPUTS_MAX)
        return 70;
    run_worlds(r);
    allocates = allocations == 0 || gpi_play_allocations_of_steps;
    if (r->scripts)
        bad_scripts = run_scripts(r->scripts, &count);
    never = print_cells(r);
    if (r->mutants && r->faults)
        (void)printf("mutants: not tried, since an oracle objects without them\n");
    else if (r->mutants)
        unseen = run_mutants(r);
    free(r->cell);
    return r->faults || allocates || unseen || bad_scripts || r->differences ||
                   (r->scripts && never)
               ? 1
               : 0;
}

int main(int argc, char **argv)
{
    struct run r = { .from = 1, .to = UINT64_MAX };

    (void)signal(SIGABRT, on_abort);
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--mutants") == 0)
            r.mutants = true;
        else if (strcmp(argv[i], "--replay") == 0)
            r.replay = true;
        else if (strcmp(argv[i], "--scripts") == 0 && next)
            r.scripts = next;
        else if (strcmp(argv[i], "--seeds") == 0)
            set_seeds(&r, next);
        else if (strcmp(argv[i], "--events") == 0)
            r.events_wanted = number(next);
        else if (strcmp(argv[i], "--shrink") == 0)
            return shrink(number(next));
        else
            usage();
        i += strcmp(argv[i], "--mutants") != 0 && strcmp(argv[i], "--replay") != 0;
    }
    if (!r.events_wanted)
        r.events_wanted = r.mutants ? MUTANT_EVENTS : EVENTS;
    return run(&r);
}
