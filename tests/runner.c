/* SPDX-License-Identifier: MIT */
/*
 * runner - runs every case of a test program, each as a process of its own.
 *
 *     runner [--repeat N] [--only CASE] [--load K] [--deadline S] EXE
 *
 * A case gets a scratch directory, a deadline, and a token in its environment that everything
 * it starts inherits.  The runner is the subreaper of it all: 1 s after the case's process has
 * ended, nothing that descends from it or carries the token may live [C11] [C19].
 * In builds with assertions each dispatcher writes the log of its core.  After the case the runner
 * feeds each log to a fresh core, whose actions must be equal (tests/logs.h).  With T_KEEP_LOGS in
 * the environment it keeps the logs of a failed case, for gpudispatch-sim.
 * Exit 0 of a case passes, 77 skips, everything else fails.
 */
#include "logs.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define IN_MEMORY "/dev/shm"
#define MEMORY_LEAST ((uint64_t)2 << 30)

enum { MAX_CASES = 256, MAX_BURNERS = 64, DEADLINE_S = 30, LEFTOVER_MS = 1000, SKIP = 77 };

enum verdict { PASS, FAIL, SKIPPED };

struct test {
    char name[128];
    int deadline_s;
};

static struct {
    const char *exe;      /* absolute */
    const char *exe_name; /* last part */
    const char *only;
    int repeat;
    int load;
    int deadline_s; /* at most, for every case; 0 = its own */
    int child_fd; /* signalfd of SIGCHLD */
    pid_t burners[MAX_BURNERS];
    int burner_count;
    unsigned logs; /* that were replayed as equal */
    uint64_t log_lines;
} run = { .repeat = 1 };

static double seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)fprintf(stderr, "runner: ");
    (void)vfprintf(stderr, format, list);
    (void)fprintf(stderr, "\n");
    va_end(list);
    exit(2);
}

/* ---- scratch directories ---- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    (void)remove(path);
    return 0;
}

/* TMPDIR, else /tmp.  A suite that syncs much sets T_IN_MEMORY: its cases are in memory where there
 * is room and programs may run, as in tests/queue/agent/cases.py. */
static const char *scratch_base(void)
{
    const char *base = getenv("TMPDIR");
    struct statvfs v;

    if (base && *base)
        return base;
    if (getenv("T_IN_MEMORY") && statvfs(IN_MEMORY, &v) == 0 && !(v.f_flag & ST_NOEXEC) &&
        (uint64_t)v.f_bavail * v.f_frsize >= MEMORY_LEAST && access(IN_MEMORY, W_OK) == 0)
        return IN_MEMORY;
    return "/tmp";
}

/* The name is none that t_named_shared_memory counts. */
static void make_scratch(char *ret_path, size_t size)
{
    (void)snprintf(ret_path, size, "%s/scratch-XXXXXX", scratch_base());
    if (!mkdtemp(ret_path))
        die("no scratch directory %s: %s", ret_path, strerror(errno));
}

static void remove_scratch(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- children ---- */

static int is_burner(pid_t pid)
{
    for (int i = 0; i < run.burner_count; i++)
        if (run.burners[i] == pid)
            return 1;
    return 0;
}

/* Reaps what has ended; returns 1 when the case's own process was among it. */
static int reap(pid_t wanted, int *ret_status)
{
    int status, found = 0;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
        if (pid == wanted) {
            *ret_status = status;
            found = 1;
        }
    return found;
}

static void wait_for_child(double until)
{
    struct signalfd_siginfo info;
    struct pollfd p = { .fd = run.child_fd, .events = POLLIN };
    double left = until - seconds();

    if (left > 0 && poll(&p, 1, (int)(left * 1000) + 1) > 0)
        (void)read(run.child_fd, &info, sizeof(info));
}

/* All that is left of a case: our descendants, and whoever carries the token.  An orphan of a case
 * becomes our child, so where we have no child there is nothing to search for. */
static struct t_procs leftovers(const char *token)
{
    struct t_procs below, tagged, sum = { NULL, 0 };
    size_t i, j;

    if (!t_has_children())
        return sum;
    below = t_procs_below(getpid());
    tagged = t_procs_with_env(token);
    sum.list = calloc(below.count + tagged.count + 1, sizeof(*sum.list));
    sum.count = 0;
    for (i = 0; sum.list && i < below.count; i++)
        if (!is_burner(below.list[i].pid))
            sum.list[sum.count++] = below.list[i];
    for (i = 0; sum.list && i < tagged.count; i++) {
        for (j = 0; j < sum.count && sum.list[j].pid != tagged.list[i].pid; j++)
            ;
        if (j == sum.count)
            sum.list[sum.count++] = tagged.list[i];
    }
    t_procs_free(&below);
    t_procs_free(&tagged);
    return sum;
}

static void describe(const struct t_procs *left)
{
    char path[64], where[64];
    ssize_t n;
    size_t i;
    int fd;

    for (i = 0; i < left->count; i++) {
        const struct t_proc *p = &left->list[i];

        (void)snprintf(path, sizeof(path), "/proc/%d/wchan", (int)p->pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? 0 : read(fd, where, sizeof(where) - 1);
        where[n > 0 ? n : 0] = 0;
        if (fd >= 0)
            (void)close(fd);
        printf("    left: pid %d, %s, state %c, parent %d, in %s\n", (int)p->pid, p->comm, p->state,
               (int)p->parent, *where ? where : "?");
    }
}

/* Kills until nothing is left; what reparents meanwhile is met in the next round. */
static void sweep(const char *token)
{
    double until = seconds() + 5;
    int status;

    for (;;) {
        struct t_procs left = leftovers(token);
        size_t count = left.count;

        for (size_t i = 0; i < count; i++)
            (void)kill(left.list[i].pid, SIGKILL);
        t_procs_free(&left);
        if (!count || seconds() > until)
            return;
        wait_for_child(seconds() + 0.005);
        (void)reap(0, &status);
    }
}

/* Gives what the case left the time it has; prints and kills what is still there. Returns how many.
 */
static size_t check_leftovers(const char *token)
{
    double until = seconds() + LEFTOVER_MS / 1000.0;
    int status;

    for (;;) {
        struct t_procs left;
        size_t count;

        (void)reap(0, &status);
        left = leftovers(token);
        count = left.count;
        if (count && seconds() > until)
            describe(&left);
        t_procs_free(&left);
        if (!count)
            return 0;
        if (seconds() > until) {
            sweep(token);
            return count;
        }
        wait_for_child(seconds() + 0.005);
    }
}

/* ---- one case ---- */

static void be_case(const struct test *t, const char *scratch, const char *logs, const char *token,
                    int output)
{
    sigset_t none;
    int in = open("/dev/null", O_RDONLY);

    (void)setsid();
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)dup2(in, 0);
    (void)dup2(output, 1);
    (void)dup2(output, 2);
    (void)syscall(SYS_close_range, 3U, ~0U, 0U);
    (void)setenv("T_TOKEN", token, 1);
    (void)setenv("GPI_SCHED_LOG", logs, 1);
    if (chdir(scratch))
        _exit(126);
    (void)execl(run.exe, run.exe, t->name, (char *)NULL);
    _exit(127);
}

static void last_line(const char *text, char *ret_line, size_t size)
{
    size_t end = strlen(text), start;

    while (end && text[end - 1] == '\n')
        end--;
    for (start = end; start && text[start - 1] != '\n'; start--)
        ;
    (void)snprintf(ret_line, size, "%.*s", (int)(end - start), text + start);
}

static char *read_output(int fd)
{
    struct stat st = { 0 };
    char *text;
    ssize_t n;

    (void)fstat(fd, &st);
    text = calloc(1, (size_t)st.st_size + 1);
    if (!text)
        die("out of memory");
    n = pread(fd, text, (size_t)st.st_size, 0);
    text[n > 0 ? n : 0] = 0;
    return text;
}

/* Returns true if no log of the case differs. */
static int check_logs(const char *directory, char *ret_reason, size_t size)
{
    struct t_logs logs = { 0 };

    t_logs_compare(&logs, directory);
    run.logs += logs.equal;
    run.log_lines += logs.lines;
    if (!logs.differ)
        return 1;
    (void)snprintf(ret_reason, size, "%s", logs.difference);
    return 0;
}

static enum verdict run_case(const struct test *t, char *ret_reason, size_t size)
{
    static unsigned serial;
    char scratch[256], logs[256], token[64], assignment[96], line[512];
    double until = seconds() + t->deadline_s;
    enum verdict verdict = FAIL;
    int status = 0, ended = 0, output;
    char *text;
    size_t left;
    pid_t pid;

    make_scratch(scratch, sizeof(scratch));
    make_scratch(logs, sizeof(logs));
    (void)snprintf(token, sizeof(token), "%d.%u.%llx", (int)getpid(), ++serial,
                   (unsigned long long)(seconds() * 1e9));
    (void)snprintf(assignment, sizeof(assignment), "T_TOKEN=%s", token);
    output = memfd_create("t-output", MFD_CLOEXEC);
    (void)fflush(NULL);
    pid = fork();
    if (pid < 0 || output < 0)
        die("cannot start %s: %s", t->name, strerror(errno));
    if (!pid)
        be_case(t, scratch, logs, token, output);

    while (!(ended = reap(pid, &status)) && seconds() < until)
        wait_for_child(until);
    if (!ended) {
        struct t_procs all = leftovers(assignment);

        printf("  %s: deadline; at that time there were:\n", t->name);
        describe(&all);
        t_procs_free(&all);
        sweep(assignment);
        left = 0;
    } else {
        left = check_leftovers(assignment);
    }

    text = read_output(output);
    last_line(text, line, sizeof(line));
    if (!ended)
        (void)snprintf(ret_reason, size, "not over after %d s; last line: %s", t->deadline_s, line);
    else if (WIFSIGNALED(status))
        (void)snprintf(ret_reason, size, "killed by signal %d; last line: %s", WTERMSIG(status),
                       line);
    else if (WEXITSTATUS(status) == SKIP && !left) {
        (void)snprintf(ret_reason, size, "%s", line);
        verdict = SKIPPED;
    } else if (WEXITSTATUS(status))
        (void)snprintf(ret_reason, size, "exit %d: %s", WEXITSTATUS(status), line);
    else if (left)
        (void)snprintf(ret_reason, size, "%zu processes left after 1 s", left);
    else if (check_logs(logs, ret_reason, size))
        verdict = PASS;
    if (verdict == FAIL && *text)
        printf("  output of %s:\n%s%s", t->name, text, text[strlen(text) - 1] == '\n' ? "" : "\n");
    else if (getenv("T_VERBOSE") && *text)
        printf("%s", text);
    free(text);
    (void)close(output);
    remove_scratch(scratch);
    if (verdict == FAIL && getenv("T_KEEP_LOGS"))
        printf("  logs of its cores: %s\n", logs);
    else
        remove_scratch(logs);
    return verdict;
}

/* ---- all cases ---- */

static size_t list_cases(struct test *tests)
{
    char command[4096], line[256];
    size_t count = 0;
    FILE *in;

    (void)snprintf(command, sizeof(command), "'%s' --list", run.exe);
    in = popen(command, "re");
    if (!in)
        die("cannot run %s", command);
    while (fgets(line, sizeof(line), in) && count < MAX_CASES) {
        struct test *t = &tests[count];

        t->deadline_s = 0;
        if (sscanf(line, "%127s %d", t->name, &t->deadline_s) < 1)
            continue;
        if (t->deadline_s <= 0)
            t->deadline_s = DEADLINE_S;
        if (run.deadline_s > 0 && t->deadline_s > run.deadline_s)
            t->deadline_s = run.deadline_s;
        count++;
    }
    if (pclose(in) || !count)
        die("%s --list names no case", run.exe);
    return count;
}

/* For tools/test.sh. */
static void append_result(const char *line)
{
    const char *path = getenv("GPUD_TEST_RESULTS");
    const size_t n = strlen(line);
    int fd;

    if (!path || !*path)
        return;
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, line, n) != (ssize_t)n)
        die("cannot write %s: %s", path, strerror(errno));
    (void)close(fd);
}

/* One line; a skip with its reason. */
static void record(enum verdict verdict, const char *name, const char *reason)
{
    static const char *const words[] = { "pass", "fail", "skip" };
    char line[2048];

    (void)snprintf(line, sizeof(line), "%s %.200s/%.200s%s%.600s\n", words[verdict], run.exe_name,
                   name, verdict == SKIPPED ? ": " : "", verdict == SKIPPED ? reason : "");
    append_result(line);
}

/* For tools/test.sh, too: how many logs were compared. */
static void record_logs(void)
{
    char line[96];

    if (!run.logs)
        return;
    (void)snprintf(line, sizeof(line), "logs %u %llu\n", run.logs,
                   (unsigned long long)run.log_lines);
    printf("%s", line);
    append_result(line);
}

/* Runs one case as often as asked; returns 1 when it failed. */
static int run_repeated(const struct test *t)
{
    char reason[640] = "";
    enum verdict verdict = PASS;
    double start = seconds();
    int failures = 0, i;

    for (i = 0; i < run.repeat && verdict != SKIPPED; i++) {
        char why[600];

        verdict = run_case(t, why, sizeof(why));
        if (verdict == SKIPPED || (verdict == FAIL && !failures++))
            (void)snprintf(reason, sizeof(reason), "%s", why);
        (void)fflush(stdout);
    }
    if (failures)
        verdict = FAIL;
    if (verdict == PASS && run.repeat == 1)
        printf("ok %s (%.2f s)\n", t->name, seconds() - start);
    else if (verdict == PASS)
        printf("ok %s (%d times, %.2f s)\n", t->name, run.repeat, seconds() - start);
    else if (verdict == SKIPPED)
        printf("skip %s: %s\n", t->name, reason);
    else if (run.repeat == 1)
        printf("FAIL %s: %s\n", t->name, reason);
    else
        printf("FAIL %s: %d of %d times: %s\n", t->name, failures, run.repeat, reason);
    (void)fflush(stdout);
    record(verdict, t->name, reason);
    return verdict == FAIL;
}

static void start_burners(void)
{
    for (int i = 0; i < run.load && i < MAX_BURNERS; i++) {
        pid_t parent = getpid(), pid = fork();

        if (pid < 0)
            die("cannot start a burner: %s", strerror(errno));
        if (!pid) {
            volatile unsigned long spin = 0;

            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (getppid() == parent)
                for (int n = 0; n < 1000000; n++)
                    spin++;
            _exit(0);
        }
        run.burners[run.burner_count++] = pid;
    }
}

static void parse(int argc, char **argv)
{
    static char path[4096];
    int i;

    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (i + 1 >= argc)
            die("%s wants a value", argv[i]);
        if (!strcmp(argv[i], "--repeat"))
            run.repeat = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--load"))
            run.load = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--only"))
            run.only = argv[++i];
        else if (!strcmp(argv[i], "--deadline"))
            run.deadline_s = atoi(argv[++i]);
        else
            die("unknown option %s", argv[i]);
    }
    if (i + 1 != argc || run.repeat < 1)
        die("usage: runner [--repeat N] [--only CASE] [--load K] [--deadline S] EXE");
    if (!realpath(argv[i], path))
        die("no program %s", argv[i]);
    run.exe = path;
    run.exe_name = strrchr(path, '/') + 1;
}

int main(int argc, char **argv)
{
    static struct test tests[MAX_CASES];
    int failed = 0, ran = 0, i;
    size_t count, n;
    sigset_t set;

    parse(argc, argv);
    count = list_cases(tests);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    run.child_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (run.child_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1))
        die("signalfd or subreaper: %s", strerror(errno));
    start_burners();
    for (n = 0; n < count; n++)
        if (!run.only || !strcmp(run.only, tests[n].name)) {
            failed += run_repeated(&tests[n]);
            ran++;
        }
    record_logs();
    for (i = 0; i < run.burner_count; i++)
        (void)kill(run.burners[i], SIGKILL);
    if (!ran)
        die("no case named %s", run.only);
    return failed ? 1 : 0;
}
