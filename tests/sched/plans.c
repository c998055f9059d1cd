/* SPDX-License-Identifier: MIT */
/*
 * plans.c - runs random worlds around a plan until they have fed enough facts.
 *
 *     plans [--seeds FROM-TO] [--events N] [--workers | --external] [--with PART] [--without PART]
 *           [--replay] [--sum] [--rule ID]
 *     plans --shrink SEED [--workers | --external] [--with PART] [--without PART]
 *     plans --print SEED ...
 *
 * Without an option it feeds 10^6 facts.  The slow model (sim/slow.h) judges each action and each
 * decision of the plan; an objection begins with the id of the rule or guarantee that is broken.
 * Half of the worlds have classes with workers: --workers and --external make it all or none.  The
 * parts of a world are those of sim/plan_world.h.
 *
 * --replay writes the script of each world and feeds it to a fresh plan, which must have the same
 * actions.                                                                                     [S6]
 * --rule ID counts the objections of one id only, and stops at the first one: for the matrix of
 * mutants in tests/sabotage.
 * --sum prints a number that follows from all actions: builds with and without assertions,
 * optimization or a sanitizer have the same.
 * --shrink searches for fewer facts that break the same rule, and writes plan-SEED.plan, which
 * gpudispatch-sim reads.  --print writes the script of a world to stdout.
 *
 * Exit status: 1 if the slow model objects, a step of the plan allocates memory, a replay differs,
 * or 10^6 facts lead to no action of some kind.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "allocations.h"
#include "sim/plan_script.h"
#include "sim/plan_shrink.h"
#include "sim/plan_world.h"

#define EVENTS 1000000u
#define EVENTS_OF_WORLD 400u
#define FAULTS_TOLD 20u

/* ---- a world ---- */

struct run {
    uint64_t from, to, events_wanted;
    uint64_t always, never, often; /* bits of parts */
    bool replay, sum;
    const char *rule;              /* the only id that counts; NULL: all do */
    uint64_t worlds, faults, seed;
    uint64_t facts, starts, passed, boots, examined, in_steps, sum_of_all;
    uint64_t actions[GPI_TRIAL_ACTIONS];
    uint64_t replays, differences;
};

/* A world, and where its facts and actions go. */
struct stage {
    struct gpi_trial trial;
    struct gpi_plan_world world;
    struct gpi_plan_log log;      /* of no file: none */
    struct gpi_plan_facts *facts; /* NULL: they are not kept */
};

static void note(const struct gpi_plan_action *a, void *user)
{
    struct stage *s = user;

    gpi_plan_world_note(&s->world, a);
    if (s->log.out)
        gpi_plan_log_action(&s->log, a);
}

static void keep(struct stage *s, const struct gpi_fact *f)
{
    if (s->log.out)
        gpi_plan_log_fact(&s->log, f);
    if (s->facts)
        s->facts->at[s->facts->n++] = *f;
}

#define FACTS_MOST (EVENTS_OF_WORLD + 256u) /* with those of the set-up */

static void run_world(const struct run *r, struct stage *s)
{
    struct gpi_fact f;
    uint32_t n = 0;

    s->trial = (struct gpi_trial){
        .alone = s->trial.alone, .action = note, .user = s, .allocations = &allocations
    };
    s->world = (struct gpi_plan_world){
        .source.rng.state = r->seed, .always = r->always, .never = r->never, .often = r->often
    };
    gpi_plan_world_begin(&s->world, &s->trial);
    while (n < EVENTS_OF_WORLD && !s->trial.broken && gpi_plan_world_next(&s->world, &f)) {
        const char *reason = gpi_trial_refuses(&s->trial, &f);
        keep(s, &f);
        if (reason) {
            s->trial.broken = reason; /* a fault of the world */
            break;
        }
        gpi_trial_feed(&s->trial, &f);
        n += s->trial.begun;
    }
}

/* ---- many worlds ---- */

static double seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The current seed: if the plan aborts, the handler prints it, since the plan does not know it. */
static uint64_t seed_now;

static void on_abort(int signal_number)
{
    char text[96];
    const int n = snprintf(text, sizeof text, "plans: the plan aborts in seed %llu\n",
                           (unsigned long long)seed_now);

    (void)signal_number;
    (void)!write(STDOUT_FILENO, text, (size_t)n);
}

static bool counts(const struct run *r, const char *text)
{
    return !r->rule || !strncmp(text, r->rule, strlen(r->rule));
}

/* Feeds the world's script to a fresh plan, which must have the same actions. */
static void replay(struct run *r, const char *text, size_t size)
{
    struct gpi_plan_script s = { .alone = true };
    const enum gpi_plan_script_result result = gpi_plan_script(&s, text, size);

    r->replays++;
    if (result == GPI_PLAN_SCRIPT_EQUAL || !counts(r, "S6") || ++r->differences > FAULTS_TOLD)
        return;
    (void)printf("S6: seed %llu, line %u of its script: wanted %s, got %s%s\n",
                 (unsigned long long)r->seed, s.line, s.wanted, s.got, s.error);
}

static void count(struct run *r, const struct gpi_trial *t)
{
    const struct gpi_plan_stats *stats = gpi_plan_stats(t->plan);

    r->worlds++;
    r->facts += t->facts;
    for (uint32_t i = 0; i < GPI_TRIAL_ACTIONS; i++)
        r->actions[i] += t->actions[i];
    r->starts += stats->starts;
    r->passed += stats->passed;
    r->boots += stats->boots;
    r->examined += stats->examined;
    r->in_steps += t->allocations_of_steps;
    r->sum_of_all = (r->sum_of_all ^ t->sum) * 0x100000001b3u;
}

static void tell_fault(const struct run *r, const struct stage *s)
{
    if (r->faults > FAULTS_TOLD)
        return;
    (void)printf("%s: seed %llu, fact %llu, task %d; with", s->trial.broken,
                 (unsigned long long)r->seed, (unsigned long long)s->trial.facts,
                 (int)s->trial.culprit);
    for (uint32_t i = 0; i < GPI_PLAN_PARTS; i++)
        if (s->world.parts >> i & 1)
            (void)printf(" %s", gpi_plan_part_name(i));
    (void)printf("\n");
}

static void run_one(struct run *r, struct stage *s)
{
    char *text = NULL;
    size_t size = 0;

    s->log = (struct gpi_plan_log){ .out = r->replay ? open_memstream(&text, &size) : NULL };
    run_world(r, s);
    if (s->log.out) {
        (void)fclose(s->log.out);
        if (!s->trial.broken)
            replay(r, text, size);
        free(text);
    }
    if (s->trial.broken && counts(r, s->trial.broken) && ++r->faults)
        tell_fault(r, s);
    count(r, &s->trial);
    gpi_trial_fini(&s->trial);
}

/* Returns the number of kinds of actions that no world has had. */
static uint32_t print_actions(const struct run *r)
{
    static const char *const names[GPI_TRIAL_ACTIONS] = {
        "runs", "promises", "boots", "drains", "unloads", "hopeless tasks", "revoked grants"
    };
    uint32_t never = 0;

    (void)printf("actions:");
    for (uint32_t i = 0; i < GPI_TRIAL_ACTIONS; i++) {
        (void)printf("%s %llu %s", i ? "," : "", (unsigned long long)r->actions[i], names[i]);
        never += r->actions[i] == 0;
    }
    (void)printf("\n");
    return never;
}

static void print(const struct run *r, double took)
{
#define N(member) (unsigned long long)r->member
    (void)printf("plans: %llu worlds, %llu facts, %.0f facts/s, %llu faults\n", N(worlds), N(facts),
                 (double)r->facts / (took > 0 ? took : 1), N(faults));
    (void)printf("starts: %llu, %llu of them passed a head; %llu boots; %.2f shapes examined per "
                 "start\n",
                 N(starts), N(passed), N(boots),
                 (double)r->examined / (double)(r->starts ? r->starts : 1));
    if (r->replay)
        (void)printf("replays: %llu scripts, %llu differ\n", N(replays), N(differences));
    if (r->sum)
        (void)printf("sum of all actions: %016llx\n", N(sum_of_all));
    (void)printf("memory: %llu calls of malloc and its kin within steps of the plan\n",
                 N(in_steps));
#undef N
}

static int run(struct run *r)
{
    static struct stage s;
    const double began = seconds();
    uint32_t never;

    for (r->seed = r->from; r->seed <= r->to && r->facts < r->events_wanted &&
                            !(r->rule && (r->faults || r->differences));
         r->seed++) {
        seed_now = r->seed;
        run_one(r, &s);
        (void)fflush(stdout);
    }
    print(r, seconds() - began);
    never = print_actions(r);
    if (r->faults || r->differences)
        return 1;
    return !r->rule && (r->in_steps || allocations == 0 || (r->facts >= EVENTS && never)) ? 1 : 0;
}

/* ---- one world ---- */

static void write_action(const struct gpi_plan_action *a, void *user)
{
    gpi_plan_log_action(user, a);
}

/* With the actions, unless the plan does not survive the facts. */
static void write_script(const struct gpi_plan_facts *facts, bool survives, FILE *out)
{
    struct gpi_plan_log log = { .out = out };
    struct gpi_trial t = { .alone = true, .action = write_action, .user = &log };

    for (size_t i = 0; i < facts->n; i++) {
        gpi_plan_log_fact(&log, &facts->at[i]);
        if (survives)
            gpi_trial_feed(&t, &facts->at[i]);
    }
    gpi_trial_fini(&t);
}

static int shrink(struct run *r, struct gpi_plan_facts *facts, const char *id)
{
    const size_t before = facts->n;
    const uint32_t attempts = gpi_plan_shrink(facts);
    char path[64];
    FILE *out;

    (void)snprintf(path, sizeof path, "plan-%llu.plan", (unsigned long long)r->seed);
    out = fopen(path, "we");
    if (!out) {
        perror(path);
        return 66;
    }
    write_script(facts, strlen(id) == 2, out);
    (void)fclose(out);
    (void)printf("%s: %s; %zu facts of %zu, after %u attempts\n", path, id, facts->n, before,
                 attempts);
    return 1;
}

/* Feeds the facts of the seed in a process of its own, whose plan may abort, and returns them. */
static void make_facts(struct run *r, struct gpi_plan_facts *ret)
{
    static struct stage s;
    int status;
    pid_t pid;

    ret->n = 0;
    ret->at = mmap(NULL, sizeof *ret->at * FACTS_MOST, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ret->at == MAP_FAILED)
        exit(70);
    s.facts = ret;
    pid = fork();
    if (pid == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        run_world(r, &s);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        exit(70);
    while (ret->n < FACTS_MOST && (ret->at[ret->n].kind != GPI_FACT_PLAN || ret->n == 0))
        ret->n++;
}

static int run_seed(struct run *r, bool shrinks)
{
    struct gpi_plan_facts facts;
    char id[GPI_PLAN_ID_SIZE];

    make_facts(r, &facts);
    gpi_plan_judge(&facts, id);
    if (shrinks && *id)
        return shrink(r, &facts, id);
    if (!shrinks)
        write_script(&facts, strlen(id) == 2 || !*id, stdout);
    (void)printf("# seed %llu, %zu facts: %s\n", (unsigned long long)r->seed, facts.n,
                 *id ? id : "nothing is broken");
    return *id ? 1 : 0;
}

/* ---- the command line ---- */

static _Noreturn void usage(void)
{
    (void)fprintf(stderr, "usage: plans [--seeds FROM-TO] [--events N] [--workers | --external]\n"
                          "             [--with PART] [--without PART] [--replay] [--sum]\n"
                          "             [--rule ID]\n"
                          "       plans --shrink SEED | --print SEED ...\nparts:");
    for (uint32_t i = 0; i < GPI_PLAN_PARTS; i++)
        (void)fprintf(stderr, " %s", gpi_plan_part_name(i));
    (void)fprintf(stderr, "\n");
    exit(64);
}

static uint64_t number(const char *text)
{
    if (!text)
        usage();
    return strtoull(text, NULL, 0);
}

static uint64_t part(const char *text)
{
    for (uint32_t i = 0; text && i < GPI_PLAN_PARTS; i++)
        if (!strcmp(text, gpi_plan_part_name(i)))
            return 1ull << i;
    usage();
}

static void set_seeds(struct run *r, const char *text)
{
    const char *to = text ? strchr(text, '-') : NULL;

    r->from = number(text);
    r->to = to ? number(to + 1) : r->from;
    r->events_wanted = r->events_wanted ? r->events_wanted : UINT64_MAX;
}

/* Returns true if the option has no value. */
static bool set_flag(struct run *r, const char *option)
{
    const uint64_t workers = 1ull << GPI_PLAN_PART_WORKERS;

    if (!strcmp(option, "--replay"))
        r->replay = true;
    else if (!strcmp(option, "--sum"))
        r->sum = true;
    else if (!strcmp(option, "--workers"))
        r->always |= workers;
    else if (!strcmp(option, "--external"))
        r->never |= workers;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct run r = { .from = 1, .to = UINT64_MAX };
    bool shrinks = false, prints = false;

    (void)signal(SIGABRT, on_abort);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (set_flag(&r, argv[i]))
            continue;
        shrinks |= !strcmp(argv[i], "--shrink");
        prints |= !strcmp(argv[i], "--print");
        if (!strcmp(argv[i], "--seeds") || !strcmp(argv[i], "--shrink") ||
            !strcmp(argv[i], "--print"))
            set_seeds(&r, value);
        else if (!strcmp(argv[i], "--events"))
            r.events_wanted = number(value);
        else if (!strcmp(argv[i], "--rule"))
            r.rule = value;
        else if (!strcmp(argv[i], "--with"))
            r.often |= part(value);
        else if (!strcmp(argv[i], "--without"))
            r.never |= part(value);
        else
            usage();
        i++;
    }
    r.events_wanted = r.events_wanted ? r.events_wanted : EVENTS;
    r.seed = r.from;
    return shrinks || prints ? run_seed(&r, shrinks) : run(&r);
}
