/* SPDX-License-Identifier: MIT */
/*
 * fault - fails each call of the library in turn, and kills each process at each call, in whole
 * programs; then many calls at random.  Counts, and tells what was lost, doubled, hung or leaked.
 *
 *     fault [--long | --light] [--jobs J] [--only SCENARIO] [--at ROLE/PHASE/CALL[#N]]
 *          [--points] [--storms N] [--seed S] [--seconds T] [--part K/N] [-v]
 *
 * For each place (see inject.h) that a scenario reaches, and each thing that can go wrong there: N
 * = 1, 3, 9, 27 ... (with --long each N), while an earlier run has made N calls there.  --light has
 * fewer kills and storms.  --at tries one place; --seconds begins nothing new after T.  With
 * --part, N runs of this program share the work, and this is the Kth.  -v prints each run.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject.h"
#include "scenario.h"

enum {
    UNITS_MAX = 200000,
    SCENARIOS_MAX = 32,
    JOBS_MAX = 64,
    RUN_S = 30,
    GONE_MS = 3000,
    FAILURES_SHOWN = 30
};

/* Something to try at a place, for all N. */
struct unit {
    uint16_t scenario;
    uint8_t role, phase, call, sticky;
    int16_t action;
    uint32_t count; /* so often was it reached without a fault */
};

static struct {
    bool everything, light, points, verbose;
    unsigned jobs, storms, part, parts;
    double until; /* 0: all of it */
    uint64_t seed;
    const char *only, *place;
} want = { .jobs = 2, .storms = 16, .part = 1, .parts = 1, .seed = 1 };

static struct unit *units;
static uint32_t n_units;

/* What all jobs count together. */
static struct totals {
    _Atomic uint32_t next;
    _Atomic uint64_t injected, runs, tasks;
    _Atomic uint32_t lost, doubled, hung, leaked, wrong, shown;
    _Atomic uint32_t tried[SCENARIOS_MAX], failed[SCENARIOS_MAX]; /* by scenario, the storm last */
} *total;
static struct report *report;

static double seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool time_over(void)
{
    return want.until > 0 && seconds() > want.until;
}

static void *shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        exit(2);
    return p;
}

/* ---- one run ---- */

static const char *action_name(int action)
{
    static char number[80];

    switch (action) {
    case FI_NOTHING: return "nothing";
    case FI_SHORT: return "short";
    case FI_TRUNC: return "descriptors dropped";
    case FI_KILL_BEFORE: return "SIGKILL before";
    case FI_KILL_AFTER: return "SIGKILL after";
    case FI_STALL: return "20 ms late";
    default:
        (void)snprintf(number, sizeof number, "errno %d (%s)", action, strerror(action));
        return number;
    }
}

static bool harmless(const struct unit *u)
{
    if (u->action == FI_NOTHING || u->action == FI_STALL)
        return true;
    for (const int *h = fi_kinds[u->call].harmless; *h; h++)
        if (*h == u->action)
            return true;
    return false;
}

static void note_left(char *to, size_t size)
{
    char path[64], list[512];
    size_t at = strlen(to);
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, list, sizeof list - 1);
    list[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
    for (char *save, *word = strtok_r(list, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char name[32] = "", where[64] = "";
        (void)snprintf(path, sizeof path, "/proc/%s/comm", word);
        if ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
            n = read(fd, name, sizeof name - 1);
            name[n > 0 ? n - 1 : 0] = 0;
            close(fd);
        }
        (void)snprintf(path, sizeof path, "/proc/%s/wchan", word);
        if ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
            n = read(fd, where, sizeof where - 1);
            where[n > 0 ? n : 0] = 0;
            close(fd);
        }
        at += (size_t)snprintf(to + at, size - at, "; %s %s in %s", name, word, where);
        if (at >= size)
            at = size - 1;
        (void)kill((pid_t)atoi(word), SIGKILL);
    }
}

/* Everything that the host had started must end by itself. */
static void all_gone(void)
{
    double until = seconds() + GONE_MS / 1e3;
    bool told = false;

    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG | __WALL);
        if (pid < 0 && errno == ECHILD)
            return;
        if (pid > 0)
            continue;
        if (seconds() > until) {
            if (!told) {
                atomic_fetch_add(&report->leaked, 1);
                if (!report->text[0])
                    (void)snprintf(report->text, sizeof report->text,
                                   "processes are left %d s after the host's end", GONE_MS / 1000);
            }
            told = true;
            note_left(report->text, sizeof report->text);
        }
        (void)poll(NULL, 0, told ? 10 : 1);
    }
}

/* Runs a scenario with what is set in fi_page; the verdict is in *report. */
static void run(const struct scenario *s, bool strict, bool host_may_die, uint32_t storm_tasks,
                int patience_s)
{
    struct pollfd p = { .events = POLLIN };
    int status = 0;
    pid_t pid;

    memset(report, 0, sizeof *report);
    atomic_store(&fi_page->armed, 0);
    atomic_store(&fi_page->met, 0);
    atomic_store(&fi_page->injected, 0);
    atomic_store(&fi_page->daemon, 0);
    atomic_store(&fi_page->overlap, 0);
    memset((void *)fi_page->count, 0, sizeof fi_page->count);
    pid = fork();
    if (pid < 0)
        exit(2);
    if (pid == 0)
        scenario_host(s, report, strict, storm_tasks);
    p.fd = fi_pidfd(pid);
    if (poll(&p, 1, patience_s * 1000) == 0) {
        atomic_fetch_add(&report->hung, 1);
        (void)snprintf(report->text, sizeof report->text, "the host does not end");
        note_left(report->text, sizeof report->text);
        (void)kill(pid, SIGKILL);
    }
    close(p.fd);
    (void)waitpid(pid, &status, 0);
    atomic_store(&fi_page->armed, 0);
    if (WIFSIGNALED(status) && !report->hung && !(host_may_die && WTERMSIG(status) == SIGKILL)) {
        atomic_fetch_add(&report->wrong, 1);
        (void)snprintf(report->text, sizeof report->text, "the host is killed by signal %d",
                       WTERMSIG(status));
    } else if (WIFEXITED(status) && !report->ended && !report->hung) {
        atomic_fetch_add(&report->wrong, 1);
        (void)snprintf(report->text, sizeof report->text, "the host exits with %d",
                       WEXITSTATUS(status));
    }
    all_gone();
    atomic_fetch_add(&total->runs, 1);
    atomic_fetch_add(&total->injected, atomic_load(&fi_page->injected));
    atomic_fetch_add(&total->tasks, atomic_load(&report->delivered));
}

/* Adds a run's verdict to all; prints it when it is bad.  True when it is. */
static bool judge(unsigned scenario, const char *what)
{
    bool bad = report->lost || report->doubled || report->hung || report->leaked || report->wrong;

    if (!bad)
        return false;
    atomic_fetch_add(&total->lost, report->hung ? 0 : atomic_load(&report->lost));
    atomic_fetch_add(&total->doubled, atomic_load(&report->doubled));
    atomic_fetch_add(&total->hung, atomic_load(&report->hung));
    atomic_fetch_add(&total->leaked, atomic_load(&report->leaked));
    atomic_fetch_add(&total->wrong, atomic_load(&report->wrong));
    atomic_fetch_add(&total->failed[scenario], 1);
    if (atomic_fetch_add(&total->shown, 1) < FAILURES_SHOWN)
        printf("FAULT %s: %s\n", what, report->text);
    return true;
}

/* ---- each place in turn ---- */

static void no_fault(void)
{
    memset(fi_page, 0, sizeof *fi_page);
    fi_page->role = fi_page->phase = fi_page->call = FI_CALLS; /* none */
}

/* C2 C8: SIGKILL of a worker before and after each call of its loop is among the actions: nobody
 * may wait for it in vain. [T2] */
static void try_unit(const struct unit *u)
{
    const struct scenario *s = &scenarios[u->scenario];
    uint32_t last = u->sticky ? 2 : u->count * 2 + 8, most = u->count, only = 0, step;

    atomic_fetch_add(&total->tried[u->scenario], 1);
    if (want.place && strchr(want.place, '#'))
        only = (uint32_t)atoi(strchr(want.place, '#') + 1);
    for (uint32_t n = only ? only : 1; only ? n == only : n <= last && n <= most; n += step) {
        char what[160];
        double start = seconds();

        step = want.everything ? 1 : 2 * n;
        no_fault();
        fi_page->role = u->role;
        fi_page->phase = u->phase;
        fi_page->call = u->call;
        fi_page->action = u->action;
        fi_page->sticky = u->sticky;
        fi_page->nth = n;
        (void)snprintf(what, sizeof what, "%s %s/%s/%s#%u%s %s", s->name, fi_roles[u->role],
                       fi_phases[u->phase], fi_kinds[u->call].name, n, u->sticky ? "+" : "",
                       action_name(u->action));
        run(s, harmless(u),
            u->role == FI_HOST && (u->action == FI_KILL_BEFORE || u->action == FI_KILL_AFTER), 0,
            RUN_S);
        if (want.verbose)
            printf("%s: %.3f s, %s\n", what, seconds() - start, report->text);
        else if (seconds() - start > 12)
            printf("slow: %s: %.1f s\n", what, seconds() - start);
        if (judge(u->scenario, what) || fi_page->met < n || time_over())
            return;
        if (fi_page->met > most)
            most = fi_page->met;
    }
}

static void add(struct unit u)
{
    if (n_units < UNITS_MAX)
        units[n_units++] = u;
}

/* Returns true if the library waits for many seconds when this call fails for ever: of a spawner or
 * a monitor that can never send anything, and of a host that can never read what a monitor sent. */
static bool waited_for(unsigned role, unsigned phase, unsigned call)
{
    if (role == FI_HOST)
        return phase == FI_CREATE && call == FI_recvmsg;
    return call == FI_sendmsg && (role == FI_SPAWNER || (role == FI_KEEPER && phase == FI_BIRTH));
}

static void add_place(unsigned scenario, unsigned role, unsigned phase, unsigned call,
                      uint32_t count)
{
    struct unit u = { .scenario = (uint16_t)scenario,
                      .role = (uint8_t)role,
                      .phase = (uint8_t)phase,
                      .call = (uint8_t)call,
                      .count = count };
    const struct fi_kind *k = &fi_kinds[call];
    bool sticky = want.everything || !waited_for(role, phase, call);

    sticky = sticky && call != FI_write && call != FI_poll; /* bells that can never be rung */
    for (const int *e = k->hard; *e; e++) {
        u.action = (int16_t)*e;
        add(u);
        u.sticky = 1;
        if (sticky)
            add(u);
        u.sticky = 0;
    }
    for (const int *e = k->harmless; *e; e++) {
        u.action = (int16_t)*e;
        add(u);
    }
    u.action = FI_KILL_BEFORE;
    add(u);
    if (call != FI_user && (want.everything || role != FI_HOST) && !want.light &&
        !scenarios[scenario].light) {
        u.action = FI_KILL_AFTER;
        add(u);
    }
    if (want.everything || call == FI_sendmsg || call == FI_fork || call == FI_write ||
        call == FI_user) {
        u.action = FI_STALL;
        add(u);
    }
}

static bool wanted(const char *place)
{
    size_t n = want.place ? strcspn(want.place, "#") : 0;

    return !want.place || (!strncmp(place, want.place, n) && (place[n] == 0 || place[n] == '/'));
}

/* Returns true if the scenario comes to this place as an earlier scenario does: in gpud_init and
 * gpud_fini, and in create with the same options.  What follows a fault there is one and the same
 * refusal. */
static bool is_known(unsigned scenario, unsigned role, unsigned phase)
{
    const struct scenario *s = &scenarios[scenario];

    if (want.everything || want.only || s->other_program)
        return false;
    if (phase == FI_INIT || phase == FI_FINI || (role == FI_SPAWNER && phase == FI_BIRTH))
        return scenario > 0;
    for (unsigned i = 0; i < scenario && phase == FI_CREATE && !s->tune; i++)
        if (!scenarios[i].tune && scenarios[i].drive == s->drive)
            return true;
    return false;
}

/* A run without faults says which places there are. */
static void list_places(unsigned scenario)
{
    uint64_t counts = 0;

    no_fault();
    run(&scenarios[scenario], true, false, 0, RUN_S);
    if (judge(scenario, scenarios[scenario].name))
        return;
    for (unsigned role = 0; role < FI_ROLES; role++)
        for (unsigned phase = 0; phase < FI_PHASES; phase++)
            for (unsigned call = 0; call < FI_CALLS; call++) {
                uint32_t count = fi_page->count[role][phase][call];
                char place[96];
                (void)snprintf(place, sizeof place, "%s/%s/%s", fi_roles[role], fi_phases[phase],
                               fi_kinds[call].name);
                if (!count || role == FI_OTHER || !wanted(place) ||
                    is_known(scenario, role, phase))
                    continue;
                counts += count;
                if (want.points)
                    printf("%s %s#1..%u\n", scenarios[scenario].name, place, count);
                else
                    add_place(scenario, role, phase, call, count);
            }
    if (want.points)
        printf("%s: %" PRIu64 " points\n", scenarios[scenario].name, counts);
}

/* ---- many at random ---- */

static void storm(unsigned number)
{
    static const struct {
        const char *name;
        uint32_t tasks, harmless, hard, kills;
    } kinds[] = {
        { "every second call interrupted or short", 40000, 32768, 0, 0 },
        { "one call in a thousand refused", 20000, 8192, 64, 0 },
        { "one call in a thousand kills", 20000, 8192, 0, 64 },
        { "refusals and kills", 20000, 8192, 20, 20 },
    };
    unsigned kind = number % (sizeof kinds / sizeof *kinds);
    char what[160];
    double start = seconds();

    atomic_fetch_add(&total->tried[n_scenarios], 1);
    no_fault();
    fi_page->call = -1;
    fi_page->harmless = kinds[kind].harmless;
    fi_page->hard = kinds[kind].hard;
    fi_page->kills = kinds[kind].kills;
    fi_page->seed = want.seed + number;
    (void)snprintf(what, sizeof what, "storm %u, %s, seed %" PRIu64, number, kinds[kind].name,
                   want.seed);
    run(&storm_scenarios[number / 4 % 2], !kinds[kind].hard && !kinds[kind].kills, false,
        kinds[kind].tasks, 300);
    if (want.verbose)
        printf("%s: %.1f s, %" PRIu64 " faults, %" PRIu64 " outcomes, %s\n", what,
               seconds() - start, atomic_load(&fi_page->injected), atomic_load(&report->delivered),
               report->text);
    (void)judge(n_scenarios, what);
}

/* ---- jobs ---- */

/* Whether thing number n belongs to this part. By what it is, not by its number: which places a run
 * comes to differs a little from one run to the next, and each part has listed them itself. */
static bool in_part(uint32_t n)
{
    const struct unit *u = n < want.storms ? NULL : &units[n - want.storms];
    const uint32_t words[] = {
        u ? u->scenario : n, u ? u->role : 0,   u ? u->phase : 0,
        u ? u->call : 0,     u ? u->sticky : 0, u ? (uint16_t)u->action : 0
    };
    uint32_t hash = 2166136261u; /* FNV-1a, by words */

    for (size_t i = 0; u && i < sizeof words / sizeof *words; i++)
        hash = (hash ^ words[i]) * 16777619u;
    return (u ? (hash ^ hash >> 16) : n) % want.parts == want.part - 1;
}

static void job(void)
{
    uint32_t n;

    report = shared(sizeof *report);
    fi_map();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    while ((n = atomic_fetch_add(&total->next, 1)) < n_units + want.storms) {
        if (!in_part(n))
            continue;
        if (n < want.storms) /* the long ones first */
            storm(n);
        else
            try_unit(&units[n - want.storms]);
        (void)fflush(stdout);
        if (total->shown >= FAILURES_SHOWN || time_over())
            break;
    }
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (!strcmp(argv[i], "--long"))
            want.everything = true, want.storms = 100;
        else if (!strcmp(argv[i], "--light"))
            want.light = true, want.storms = 4;
        else if (!strcmp(argv[i], "--points"))
            want.points = true, want.storms = 0;
        else if (!strcmp(argv[i], "-v"))
            want.verbose = true;
        else if (!value)
            break;
        else if (!strcmp(argv[i], "--only"))
            want.only = argv[++i];
        else if (!strcmp(argv[i], "--at"))
            want.place = argv[++i];
        else if (!strcmp(argv[i], "--jobs"))
            want.jobs = (unsigned)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--storms"))
            want.storms = (unsigned)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--part")) {
            if (sscanf(argv[++i], "%u/%u", &want.part, &want.parts) != 2)
                exit(2);
        } else if (!strcmp(argv[i], "--seconds"))
            want.until = seconds() + atof(argv[++i]);
        else if (!strcmp(argv[i], "--seed"))
            want.seed = strtoull(argv[++i], NULL, 10);
        else
            exit(2);
    }
    if (!want.jobs || want.jobs > JOBS_MAX || !want.part || want.part > want.parts)
        exit(2);
}

/* For tools/test.sh: one line for each scenario that was tried. */
static void tell_results(void)
{
    const char *path = getenv("GPUD_TEST_RESULTS");
    FILE *f = path && *path ? fopen(path, "ae") : NULL;

    for (unsigned i = 0; f && i <= n_scenarios; i++) {
        if (!total->tried[i] && !total->failed[i])
            continue;
        fprintf(f, "%s fault/%s, part %u of %u\n", total->failed[i] ? "fail" : "pass",
                i < n_scenarios ? scenarios[i].name : "storm", want.part, want.parts);
    }
    if (f)
        fprintf(f, "faults %" PRIu64 "\n", atomic_load(&total->injected));
    if (f)
        (void)fclose(f);
}

int main(int argc, char **argv)
{
    double start = seconds();
    pid_t jobs[JOBS_MAX];
    bool bad = false;

    if (fi_executed())
        scenario_worker();
    parse(argc, argv);
    if (n_scenarios >= SCENARIOS_MAX)
        exit(2);
    total = shared(sizeof *total);
    units = shared(sizeof *units * UNITS_MAX);
    report = shared(sizeof *report);
    fi_map();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (unsigned i = 0; i < n_scenarios; i++)
        if (!want.only || !strcmp(want.only, scenarios[i].name))
            list_places(i);
    (void)fflush(stdout);
    if (want.points)
        return 0;
    for (unsigned i = 0; i < want.jobs; i++)
        if ((jobs[i] = fork()) == 0) {
            job();
            _exit(0);
        }
    for (unsigned i = 0; i < want.jobs; i++) {
        int status = -1;
        if (jobs[i] < 0 || waitpid(jobs[i], &status, 0) != jobs[i] || status != 0) {
            printf("a job has not come to its end: status %#x\n", (unsigned)status);
            bad = true;
        }
    }
    while (wait(NULL) > 0)
        ;
    tell_results();
    bad = bad || total->lost || total->doubled || total->hung || total->leaked || total->wrong;
    if (time_over())
        printf("ended early: %u of %u things begun\n", total->next, n_units + want.storms);
    printf("%" PRIu64 " runs, %u things to try at places, %" PRIu64 " outcomes, %.1f s\n",
           total->runs, n_units, total->tasks, seconds() - start);
    printf("faults injected: %" PRIu64
           ", lost %u, doubled %u, hung %u, leaked %u, otherwise wrong %u\n",
           total->injected, total->lost, total->doubled, total->hung, total->leaked, total->wrong);
    return bad || !total->injected;
}
