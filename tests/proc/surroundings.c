/* SPDX-License-Identifier: MIT */
/* surroundings.c - options env, cwd, stdio and stdio_path: what workers get, and the host
 * keeps. [C13] */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAY_ENV, SAY_CWD, WRITE, SAY_STDIN, FLOOD, NOTHING, BE_LATE, EXIT };
enum { FLOODING, EXITS };

/* ENV: the value of the variable that the data name.  WRITE: a line each to stdout and stderr. */
static int process(gpud_task *t, void *state)
{
    char cwd[4096];
    const char *value;

    (void)state;
    switch (gpud_task_tag(t) % 8) {
    case SAY_ENV:
        value = getenv(gpud_task_data(t));
        return value ? gpud_task_result_set(t, value, strlen(value) + 1)
                     : gpud_task_fail(t, 3, "unset");
    case SAY_CWD:
        return getcwd(cwd, sizeof(cwd)) ? gpud_task_result_set(t, cwd, strlen(cwd) + 1) : 1;
    case FLOOD:
        memset(cwd, 'x', sizeof(cwd));
        for (unsigned n = 0; !gpud_task_cancelled(t); n++) {
            if (write(1, cwd, sizeof(cwd)) < 0 && errno != EINTR)
                return 1;
            if (n == 64)
                (void)t_word_add(FLOODING);
        }
        return 0;
    case NOTHING:
        return 0;
    case BE_LATE:
        while (!gpud_task_expired(t))
            ;
        return 0;
    case EXIT:
        exit(3);
    case SAY_STDIN:
        return getchar() == EOF ? 0 : 1;
    default:
        (void)printf("out of slot %u\n", gpud_worker_slot(gpud_task_worker(t)));
        (void)fprintf(stderr, "err of slot %u\n", gpud_worker_slot(gpud_task_worker(t)));
        return 0;
    }
}

static const char *ask(gpud_dispatcher *d, struct t_log *log, uint64_t tag, const char *data)
{
    T_SUBMIT(d, .tag = tag, .data = data, .size = data ? strlen(data) + 1 : 0);
    t_collect(d, log, t_log_count(log, GPUD_EVENT_OUTCOME) + 1);
    for (size_t i = log->count; i-- > 0;)
        if (log->list[i].kind == GPUD_EVENT_OUTCOME && log->list[i].tag == tag)
            return log->list[i].outcome == GPUD_OUTCOME_SUCCESS ? log->list[i].result : NULL;
    return NULL;
}

/* Pairs are set and unset in their order; what the library says is always there; the host's stay.
 */
T_CASE(environment)
{
    static const char *const env[] = { "T_GIVEN=one", "T_EMPTY=", "T_EQUALS=a=b=c", "T_GIVEN=two",
                                       "T_GONE",      "T_BACK",   "T_BACK=3",       NULL };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    if (!getenv("GPUD_WORKER")) /* in a worker that is executed this case has begun anew */
        T_EQ(setenv("T_GONE", "x", 1) | setenv("T_BACK", "x", 1) | setenv("T_KEPT", "kept", 1), 0);
    t_init(NULL, process, NULL);
    T_EQ(setenv("T_LATER", "x", 1), 0);
    d = T_CREATE(.devices = "cpu:2", .devices_per_worker = 2, .env = env);
    T_TEXT(ask(d, &log, SAY_ENV, "T_GIVEN"), "two");
    T_TEXT(ask(d, &log, SAY_ENV, "T_EMPTY"), "");
    T_TEXT(ask(d, &log, SAY_ENV, "T_EQUALS"), "a=b=c");
    T_CHECK(!ask(d, &log, SAY_ENV, "T_GONE"));
    T_TEXT(ask(d, &log, SAY_ENV, "T_BACK"), "3");
    T_TEXT(ask(d, &log, SAY_ENV, "T_KEPT"), "kept");
    T_CHECK(!ask(d, &log, SAY_ENV, "T_LATER")); /* workers are as of gpud_init */
    T_TEXT(ask(d, &log, SAY_ENV, "GPUD_SLOT"), "0");
    T_TEXT(ask(d, &log, SAY_ENV, "GPUD_INCARNATION"), "1");
    T_TEXT(ask(d, &log, SAY_ENV, "GPUD_DEVICES"), "cpu:0,cpu:1");
    T_CHECK(!getenv("T_GIVEN") && !getenv("GPUD_SLOT"));
    T_TEXT(getenv("T_GONE"), "x");
    t_end(&d, &log);
    T_EQ(unsetenv("T_GONE") | unsetenv("T_BACK") | unsetenv("T_KEPT") | unsetenv("T_LATER"), 0);
}

/* The keeper makes them once: what differs from life to life is that life's. */
T_CASE(next_lives)
{
    static const char *const env[] = { "T_GIVEN=one", NULL };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .env = env, .backoff = T_MS(1));

    for (int life = 1; life <= 3; life++) {
        const char number[] = { (char)('0' + life), '\0' };
        struct t_proc worker;
        T_TEXT(ask(d, &log, SAY_ENV, "GPUD_INCARNATION"), number);
        T_TEXT(ask(d, &log, SAY_ENV, "GPUD_SLOT"), "0");
        T_TEXT(ask(d, &log, SAY_ENV, "GPUD_DEVICES"), "cpu:0");
        T_TEXT(ask(d, &log, SAY_ENV, "T_GIVEN"), "one");
        (void)ask(d, &log, SAY_STDIN, NULL);
        T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), (size_t)life * 5);
        worker = t_worker(d, 0);
        t_kill(worker.pid, SIGKILL);
        t_wait_ended(&worker);
    }
    t_end(&d, &log);
}

static void at_exit(void)
{
    (void)t_word_add(EXITS);
}

/* What a library of the host may do in each process that is forked: all of it undoes something of
 * ours. */
static void undo(void)
{
    (void)signal(SIGALRM, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    (void)unsetenv("GPUD_SLOT");
    (void)setenv("GPUD_INCARNATION", "77", 1);
    (void)unsetenv("T_GIVEN");
    (void)close(0);
    (void)dup2(2, 1);
    (void)atexit(at_exit);
}

/* Handlers of pthread_atfork run in the keeper's children, too: what is ours is set after them. */
T_CASE(handlers_of_fork)
{
    static const char *const env[] = { "T_GIVEN=one", "T_GONE", NULL };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    if (!getenv("GPUD_WORKER"))
        T_EQ(setenv("T_GONE", "x", 1), 0);
    T_EQ(pthread_atfork(NULL, NULL, undo), 0);
    d = T_BEGIN(NULL, process, .devices = "cpu:1", .env = env, .backoff = GPUD_AT_ONCE);
    for (int life = 1; life <= 2; life++) {
        const char number[] = { (char)('0' + life), '\0' };
        const struct gpud_event *e;

        T_TEXT(ask(d, &log, SAY_ENV, "GPUD_INCARNATION"), number);
        T_TEXT(ask(d, &log, SAY_ENV, "GPUD_SLOT"), "0");
        T_TEXT(ask(d, &log, SAY_ENV, "T_GIVEN"), "one");
        T_CHECK(!ask(d, &log, SAY_ENV, "T_GONE"));
        (void)ask(d, &log, SAY_STDIN, NULL);
        (void)ask(d, &log, WRITE, NULL);
        e = t_log_at(&log, GPUD_EVENT_OUTCOME, t_log_count(&log, GPUD_EVENT_OUTCOME) - 1);
        T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
        T_CHECK(strstr(e->output, "out of slot 0") && strstr(e->output, "err of slot 0"));
        t_kill(t_worker(d, 0).pid, SIGTERM);
        T_SUBMIT(d, .tag = BE_LATE, .limit = T_MS(50));
        t_collect(d, &log, t_log_count(&log, GPUD_EVENT_OUTCOME) + 1);
        (void)ask(d, &log, EXIT, NULL);
    }
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_TIMEOUT), 2);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_CRASHED), 2);
    T_EQ(unsetenv("T_GONE"), 0);
    t_end(&d, &log);
    T_EQ(t_word(EXITS), 0);
}

static char *make_folder(char *path)
{
    (void)strcpy(path, "/tmp/gpud-test-XXXXXX");
    T_CHECK(mkdtemp(path));
    return path;
}

static void read_whole(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t n;

    if (!f)
        T_FAIL("%s: %s", path, strerror(errno));
    n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    T_EQ(fclose(f), 0);
}

/* The directory, a file per slot in it that is appended to, and stdin that is at its end. */
T_CASE(directory_and_files)
{
    char folder[64], path[128], text[256];
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    (void)make_folder(folder);
    for (int life = 0; life < 2; life++) {
        d = T_CREATE(.cwd = folder, .stdio = GPUD_STDIO_FILE,
                     .stdio_path = "{slot}-worker{slot}.log");
        T_TEXT(ask(d, &log, SAY_CWD, NULL), folder);
        (void)ask(d, &log, WRITE, NULL);
        (void)ask(d, &log, SAY_STDIN, NULL);
        T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 3);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
    (void)snprintf(path, sizeof(path), "%s/0-worker0.log", folder);
    read_whole(path, text, sizeof(text));
    T_TEXT(text, "out of slot 0\nerr of slot 0\nout of slot 0\nerr of slot 0\n");
    T_EQ(unlink(path), 0);
    T_EQ(rmdir(folder), 0);
}

/* A file stands in for the host's stdout and another for its stderr. */
T_CASE(inherited_and_discarded)
{
    char folder[64], out[128], err[128], text[256];
    int kept[2] = { fcntl(1, F_DUPFD_CLOEXEC, 900), fcntl(2, F_DUPFD_CLOEXEC, 900) }, fd[2];
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    (void)make_folder(folder);
    (void)snprintf(out, sizeof(out), "%s/out", folder);
    (void)snprintf(err, sizeof(err), "%s/err", folder);
    fd[0] = open(out, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    fd[1] = open(err, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    T_CHECK(dup2(fd[0], 1) == 1 && dup2(fd[1], 2) == 2);
    d = T_CREATE(.stdio = GPUD_STDIO_INHERIT);
    T_CHECK(dup2(kept[0], 1) == 1 && dup2(kept[1], 2) == 2);
    (void)ask(d, &log, WRITE, NULL);
    t_destroy(&d, &log);
    d = T_CREATE(.stdio = GPUD_STDIO_DISCARD);
    (void)ask(d, &log, WRITE, NULL);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 1);
    t_end(&d, &log);
    read_whole(out, text, sizeof(text));
    T_TEXT(text, "out of slot 0\n");
    read_whole(err, text, sizeof(text));
    T_TEXT(text, "err of slot 0\n");
    T_EQ(unlink(out) | unlink(err) | rmdir(folder), 0);
    T_EQ(close(fd[0]) | close(fd[1]) | close(kept[0]) | close(kept[1]), 0);
}

static void fails(const struct gpud_options *options, const char *words, const char *more)
{
    gpud_dispatcher *d = t_create(options);
    struct t_log log = { 0 };
    const struct gpud_event *e;

    (void)T_RUN(d, &log, NO_WORKER, .tag = SAY_CWD);
    e = t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0);
    T_EQ(e->code, GPUD_ESYSTEM);
    if (!strstr(e->text, words) || !strstr(e->text, more))
        T_FAIL("the text is \"%s\"", e->text);
    t_destroy(&d, &log);
}

/* What is missing when a worker starts is told with its name and errno, and tried again like any
 * setup. */
T_CASE(missing)
{
    t_init(NULL, process, NULL);
    fails(T_OPTIONS(.cwd = "/no/such/folder", .backoff = T_MS(1)), "cwd \"/no/such/folder\"",
          strerror(ENOENT));
    fails(T_OPTIONS(.cwd = "/dev/null", .backoff = T_MS(1)), "cwd \"/dev/null\"",
          strerror(ENOTDIR));
    fails(T_OPTIONS(.stdio = GPUD_STDIO_FILE, .stdio_path = "/no/such/{slot}.log",
                    .backoff = T_MS(1)),
          "stdio_path \"/no/such/0.log\"", strerror(ENOENT));
    T_OK(gpud_fini());
}

/* C15. */
T_CASE(refused)
{
    static const char *const nameless[] = { "A=1", "=2", NULL }, *const empty[] = { "", NULL },
                             *const ours[] = { "A", "B", "GPUD_SLOT=7", NULL };
    const struct {
        const char *field, *words;
        struct gpud_options options;
    } bad[] = {
        { "env", "env[1], \"=2\"",
          { .struct_size = sizeof(struct gpud_options), .env = nameless } },
        { "env", "env[0], \"\"", { .struct_size = sizeof(struct gpud_options), .env = empty } },
        { "env", "env[2], \"GPUD_SLOT=7\"",
          { .struct_size = sizeof(struct gpud_options), .env = ours } },
        { "cwd", "empty", { .struct_size = sizeof(struct gpud_options), .cwd = "" } },
        { "stdio", "stdio is 5, the maximum is 4",
          { .struct_size = sizeof(struct gpud_options), .stdio = 5 } },
        { "stdio_path", "NULL",
          { .struct_size = sizeof(struct gpud_options), .stdio = GPUD_STDIO_FILE } },
        { "stdio_path", "empty",
          { .struct_size = sizeof(struct gpud_options),
            .stdio = GPUD_STDIO_FILE,
            .stdio_path = "" } },
        { "stdio_path", "\"x\"",
          { .struct_size = sizeof(struct gpud_options), .stdio_path = "x" } },
    };

    t_init(NULL, process, NULL);
    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        struct gpud_error e = GPUD_ERROR_INIT;
        gpud_dispatcher *d = NULL;
        T_EQ(gpud_dispatcher_create(&d, &bad[i].options, &e), GPUD_EINVAL);
        T_TEXT(e.field, bad[i].field);
        if (!strstr(e.text, bad[i].words))
            T_FAIL("row %zu: the text is \"%s\"", i, e.text);
        T_CHECK(!d);
    }
    T_OK(gpud_fini());
}

static long resident_pages(void)
{
    char text[128];
    long total = 0, pages = 0;

    read_whole("/proc/self/statm", text, sizeof(text));
    T_EQ(sscanf(text, "%ld %ld", &total, &pages), 2);
    return pages;
}

/* A worker that prints without end: the tasks of the others go on, and the host does not grow. */
T_CASE(endless_output)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2");
    uint64_t id;
    long before;

    t_wait_ready(d, 2);
    id = t_submit(d, T_TASK(.tag = FLOOD));
    t_word_wait(FLOODING, 1);
    before = resident_pages();
    for (unsigned round = 0; round < 20; round++) {
        for (uint64_t i = 0; i < 50; i++)
            T_SUBMIT(d, .tag = 8 * (50 * round + i + 1) + NOTHING);
        t_collect(d, &log, 50 * (round + 1));
    }
    if (!T_SANITIZED)
        T_CMP(resident_pages() - before, <, (8 << 20) / sysconf(_SC_PAGESIZE));
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 1000);
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_HARD));
    t_collect(d, &log, 1001);
    (void)T_OUTCOME(&log, FLOOD, CANCELLED);
    t_end(&d, &log);
}
