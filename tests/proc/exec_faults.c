/* SPDX-License-Identifier: MIT */
/* exec_faults.c - programs and plugins that are no workers: each its own code and text; and deaths
 * between the start of a program and its gpud_init. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTED, GATE };

static int process(gpud_task *t, void *state)
{
    (void)state;
    return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
}

/* ---- programs that are started as workers ---- */

static const struct gpud_definition one[] = { GPUD_DEFINITION("test", NULL, process, NULL) };
static const struct gpud_definition two[] = { GPUD_DEFINITION("a", NULL, process, NULL),
                                              GPUD_DEFINITION("b", NULL, process, NULL) };

static int init(const struct gpud_definition *all, size_t n)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    int r = gpud_init(all, n, &error);

    (void)fprintf(stderr, "gpud_init: %s: %s\n", gpud_error_name(r), error.text);
    return 41;
}

T_PROGRAM(good)
{
    (void)argc, (void)argv;
    return init(one, 1);
}

T_PROGRAM(good_two)
{
    (void)argc, (void)argv;
    return init(two, 2);
}

T_PROGRAM(exits)
{
    (void)argc, (void)argv;
    (void)fprintf(stderr, "no such model file\n");
    return 3;
}

T_PROGRAM(dies)
{
    (void)argc, (void)argv;
    (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler */
    (void)raise(SIGSEGV);
    return 0;
}

T_PROGRAM(rests)
{
    (void)argc, (void)argv;
    (void)t_word_add(STARTED);
    t_rest();
}

T_PROGRAM(waits)
{
    (void)argc, (void)argv;
    (void)t_word_add(STARTED);
    t_word_wait(GATE, 1);
    return init(one, 1);
}

/* The number of the pipe that the answer goes to. */
static int hello_fd(void)
{
    const char *call = getenv("GPUD_WORKER");
    unsigned protocol;
    int pid, fd;

    return call && sscanf(call, "%u %d %d", &protocol, &pid, &fd) == 3 ? fd : -1;
}

T_PROGRAM(garbage)
{
    (void)argc, (void)argv;
    if (write(hello_fd(), "hello, world", 12) != 12)
        return 1;
    t_rest();
}

/* As a library of another version would answer: the record never changes. */
T_PROGRAM(later)
{
    const uint32_t record[8] = { 0x48445047, 1, 77, 5, 0, 0, 0, 0 };

    (void)argc, (void)argv;
    if (write(hello_fd(), record, sizeof(record)) != sizeof(record))
        return 1;
    t_rest();
}

/* As if a keeper of another version had started us. */
T_PROGRAM(asked_by_later)
{
    char text[300];

    (void)argc, (void)argv;
    (void)snprintf(text, sizeof(text), "999%s and more", strchr(getenv("GPUD_WORKER"), ' '));
    (void)setenv("GPUD_WORKER", text, 1);
    return init(one, 1);
}

T_PROGRAM(closes)
{
    (void)argc, (void)argv;
    (void)syscall(SYS_close_range, 3U, ~0U, 0U);
    return init(one, 1);
}

T_PROGRAM(wraps)
{
    pid_t pid = fork();

    (void)argc, (void)argv;
    if (!pid) {
        struct gpud_error error = GPUD_ERROR_INIT;
        T_CODE(gpud_init(one, 1, &error), EPROTOCOL);
        T_CHECK(strstr(error.text, "exec"));
        (void)t_word_add(STARTED);
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
    t_rest();
}

static void *init_here(void *unused)
{
    (void)unused;
    (void)init(one, 1);
    return NULL;
}

T_PROGRAM(threaded)
{
    pthread_t thread;

    (void)argc, (void)argv;
    (void)pthread_create(&thread, NULL, init_here, NULL);
    (void)pthread_join(thread, NULL);
    return 42;
}

/* As much address space as it has now, and some: enough for the status page or not even that. */
static void limit_memory(rlim_t more)
{
    unsigned long pages = 0;
    FILE *in = fopen("/proc/self/statm", "re");
    struct rlimit r;

    T_CHECK(in && fscanf(in, "%lu", &pages) == 1);
    (void)fclose(in);
    r.rlim_cur = r.rlim_max = pages * 4096UL + more;
    T_EQ(setrlimit(RLIMIT_AS, &r), 0);
}

T_PROGRAM(narrow)
{
    (void)argc, (void)argv;
    limit_memory(1 << 20);
    return init(one, 1);
}

T_PROGRAM(too_narrow)
{
    (void)argc, (void)argv;
    limit_memory(0);
    return init(one, 1);
}

T_PROGRAM(no_process)
{
    const struct gpud_definition bad = GPUD_DEFINITION("test", NULL, NULL, NULL);

    (void)argc, (void)argv;
    return init(&bad, 1);
}

/* ---- the host's side ---- */

static char self[4096];

static const char *own_path(void)
{
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    T_CMP(n, >, 0);
    self[n] = 0;
    return self;
}

#define PROGRAM(name) ((const char *const[]){ own_path(), "--program", (name), NULL })

/* Creates; one task; two starts fail with this code and text; the task has no worker then. */
static void fails(const struct gpud_options *given, int code, const char *part)
{
    struct gpud_options o = *given;
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    o.backoff = T_MS(2);
    o.failures_in_a_row = 2;
    d = t_create(&o);
    (void)T_RUN(d, &log, NO_WORKER, .tag = 1);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 2);
    for (unsigned n = 0; n < 2; n++) {
        const struct gpud_event *e = t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, n);

        if (e->code != code || !strstr(e->text, part)) {
            t_print_event(e);
            T_FAIL("not %s with \"%s\"", gpud_error_name(code), part);
        }
        T_EQ(e->phase, GPUD_PHASE_SETUP);
        T_EQ(e->incarnation, n + 1);
    }
    t_destroy(&d, &log);
}

static void refused(const struct gpud_options *o, int code, const char *field, const char *part)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;

    t_check_code(__FILE__, __LINE__, part, gpud_dispatcher_create(&d, o, &error), code);
    T_CHECK(!d);
    T_EQ(error.code, code);
    T_TEXT(error.field, field);
    if (!strstr(error.text, part))
        T_FAIL("the text is \"%s\" and lacks \"%s\"", error.text, part);
}

static void succeeds(const struct gpud_options *o)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = t_create(o);

    for (uint64_t n = 0; n < 20; n++)
        T_SUBMIT(d, .tag = n, .data = &n, .size = sizeof(n));
    t_collect(d, &log, 20);
    for (uint64_t n = 0; n < 20; n++)
        T_EQ(*(const uint64_t *)T_OUTCOME(&log, n, SUCCESS)->result, n);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    t_destroy(&d, &log);
}

/* Writes an executable file into the case's own directory. */
static const char *script(char to[600], const char *name, const char *text, mode_t mode)
{
    char here[500];
    int fd;

    T_CHECK(getcwd(here, sizeof(here)));
    (void)snprintf(to, 600, "%s/%s", here, name);
    fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    T_CMP(fd, >=, 0);
    T_EQ(write(fd, text, strlen(text)), strlen(text));
    T_EQ(fchmod(fd, mode), 0);
    (void)close(fd);
    return to;
}

#define ARGV(...) .argv = (const char *const[]){ __VA_ARGS__, NULL }

/* C15: what can be known at create is refused there, with the option and the value. */
T_CASE(refused_at_create)
{
    char plain[600], directory[] = "/";

    (void)script(plain, "plain", "#!/bin/sh\n", 0600);
    refused(T_OPTIONS(ARGV("/no/such/program")), GPUD_ENOPROGRAM, "argv", "/no/such/program");
    refused(T_OPTIONS(ARGV("no-such-program-anywhere")), GPUD_ENOPROGRAM, "argv",
            "no-such-program-anywhere");
    refused(T_OPTIONS(ARGV("./nothing-here")), GPUD_ENOPROGRAM, "argv", "nothing-here");
    refused(T_OPTIONS(ARGV(directory)), GPUD_ENOTEXEC, "argv", "/");
    refused(T_OPTIONS(ARGV(plain)), GPUD_ENOTEXEC, "argv", "plain");
    refused(T_OPTIONS(ARGV("./plain/below")), GPUD_ENOPROGRAM, "argv", "plain");
    refused(T_OPTIONS(ARGV("")), GPUD_EINVAL, "argv", "expected a program");
    refused(T_OPTIONS(.argv = (const char *const[]){ NULL }), GPUD_EINVAL, "argv",
            "expected a program");
    refused(T_OPTIONS(.plugin = ""), GPUD_EINVAL, "plugin", "empty");
    refused(T_OPTIONS(.plugin = "/no/such.so"), GPUD_ENOPROGRAM, "plugin", "/no/such.so");
    refused(T_OPTIONS(.plugin = "/"), GPUD_EPLUGIN, "plugin", "/");
    refused(T_OPTIONS(.plugin = "x", ARGV("y")), GPUD_EINVAL, "plugin", "set one of them");
    refused(T_OPTIONS(.start = GPUD_START_FORK, ARGV("/bin/sh")), GPUD_EINVAL, "argv",
            "start is FORK");
    refused(T_OPTIONS(.start = GPUD_START_FORK, .plugin = "/x"), GPUD_EINVAL, "plugin",
            "start is FORK");
    refused(T_OPTIONS(.start = 3, ARGV("/bin/sh")), GPUD_EINVAL, "start", "3");
    refused(T_OPTIONS(.start = GPUD_START_EXEC), GPUD_ENOINIT, "", "argv or plugin");
    refused(
        T_OPTIONS(.definition = "0123456789012345678901234567890123456789012345678901234567890123",
                  ARGV("/bin/sh")),
        GPUD_ENODEFINITION, "definition", "0123");
}

/* Writes a plugin that begins as this program does, `size` bytes of it, but for one byte. */
static const char *changed_program(char to[600], const char *name, size_t size, size_t at,
                                   unsigned char byte)
{
    unsigned char bytes[4096];
    int fd = open(own_path(), O_RDONLY | O_CLOEXEC);

    T_CMP(fd, >=, 0);
    T_CHECK(size <= sizeof(bytes));
    T_EQ(read(fd, bytes, size), size);
    (void)close(fd);
    bytes[at] = byte;
    (void)script(to, name, "", 0600);
    fd = open(to, O_WRONLY | O_CLOEXEC);
    T_EQ(write(fd, bytes, size), size);
    (void)close(fd);
    return to;
}

static void plugin_refused(const char *path, const char *text)
{
    refused(T_OPTIONS(.plugin = path), GPUD_EPLUGIN, "plugin", text);
}

/* C15: a plugin that no loader takes is refused at create, with its name and what it is. */
T_CASE(plugin_is_no_object)
{
    char path[600];

    plugin_refused(script(path, "text.so", "#!/bin/sh\nexit 0\n", 0700),
                   "text.so is not an ELF file");
    plugin_refused(script(path, "three.so", "\177EL", 0700), "three.so is not an ELF file");
    plugin_refused(script(path, "empty.so", "", 0700), "empty.so is empty");
    plugin_refused(changed_program(path, "short.so", 20, 0, 0x7f),
                   "short.so is too short for an ELF file");
    plugin_refused(changed_program(path, "class.so", 4096, EI_CLASS, 7),
                   "class.so is an ELF file for another machine");
    plugin_refused(changed_program(path, "arch.so", 4096, offsetof(ElfW(Ehdr), e_machine), 0xfe),
                   "arch.so is an ELF file for another machine");
    plugin_refused(changed_program(path, "part.o", 4096, offsetof(ElfW(Ehdr), e_type), ET_REL),
                   "part.o is an object file: link it with -shared");
}

T_CASE(programs)
{
    succeeds(T_OPTIONS(.devices = "cpu:2", .argv = PROGRAM("good")));
    succeeds(T_OPTIONS(.definition = "test", .argv = PROGRAM("good")));
    succeeds(T_OPTIONS(.definition = "b", .argv = PROGRAM("good_two")));
    t_init(NULL, process, NULL); /* the same through gpud_init's spawner */
    succeeds(T_OPTIONS(.definition = "b", .argv = PROGRAM("good_two")));
    succeeds(T_OPTIONS(.start = GPUD_START_EXEC, .argv = PROGRAM("good")));
    T_OK(gpud_fini());
}

/* C9 C15: each way to be no worker has its own code and text, and is charged to the slot. */
static void all_faults(void)
{
    char path[600];

    fails(T_OPTIONS(.argv = PROGRAM("exits")), GPUD_ENOANSWER,
          "exited with status 3 before it called gpud_init");
    fails(T_OPTIONS(.argv = PROGRAM("dies")), GPUD_ENOANSWER,
          "was killed by signal 11 (SIGSEGV) before it called gpud_init");
    fails(T_OPTIONS(.argv = PROGRAM("rests"), .setup_limit = T_MS(100)), GPUD_ENOANSWER,
          "did not call gpud_init within 0.100 s (setup_limit)");
    fails(T_OPTIONS(.argv = PROGRAM("garbage")), GPUD_EPROTOCOL,
          "sent an unexpected reply: is it a gpudispatch worker?");
    fails(T_OPTIONS(.argv = PROGRAM("later")), GPUD_EOTHERVERSION,
          "has protocol 77 of API 5, expected protocol 1 of API 1");
    fails(T_OPTIONS(.argv = PROGRAM("asked_by_later")), GPUD_EOTHERVERSION,
          "has protocol 1 of API 1");
    fails(T_OPTIONS(.argv = PROGRAM("closes")), GPUD_ENOANSWER, "exited with status 76");
    fails(T_OPTIONS(.argv = PROGRAM("wraps")), GPUD_ENOANSWER, "a wrapper must exec");
    fails(T_OPTIONS(.argv = PROGRAM("threaded")), GPUD_ENOANSWER,
          "on a thread other than the main thread");
    fails(T_OPTIONS(.definition = "other", .argv = PROGRAM("good_two")), GPUD_ENODEFINITION,
          "no definition named \"other\"; it has: a, b");
    fails(T_OPTIONS(.argv = PROGRAM("good_two")), GPUD_ENODEFINITION,
          "definition is NULL, expected a name of the worker program: a, b");
    fails(T_OPTIONS(.argv = PROGRAM("no_process")), GPUD_EINVAL,
          "definitions[0] (test): process and process_batch are NULL");
    if (!T_SANITIZED) { /* whose shadow takes all address space */
        fails(T_OPTIONS(.argv = PROGRAM("narrow")), GPUD_ESYSTEM,
              "cannot map its share of the payload budget: mmap: Cannot allocate memory");
        fails(T_OPTIONS(.argv = PROGRAM("too_narrow")), GPUD_ESYSTEM,
              "cannot map the status page: mmap: Cannot allocate memory");
    }
    fails(T_OPTIONS(ARGV(script(path, "no-interpreter", "#!/no/such/interpreter\n", 0700))),
          GPUD_ENOPROGRAM, "its interpreter is missing");
    fails(T_OPTIONS(ARGV(script(path, "no-program", "just text\n", 0700))), GPUD_ENOTEXEC,
          "Exec format error");
    fails(T_OPTIONS(ARGV("true")), GPUD_ENOANSWER,
          "/true exited with status 0 before it called gpud_init");
}

T_LONG_CASE(no_workers, 60)
{
    all_faults();
}

T_LONG_CASE(no_workers_after_init, 60)
{
    t_init(NULL, process, NULL);
    all_faults();
    T_OK(gpud_fini());
}

/* A call that is not for this process: it is declined, taken out of the way, and not followed. */
T_CASE(call_for_another)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    uint32_t record[8];
    char text[200];
    int fds[2];

    T_EQ(pipe(fds), 0);
    (void)snprintf(text, sizeof(text), "1 1 %d 1 1 %d %d %d %d %d %d", fds[1], fds[0], fds[0],
                   fds[0], fds[0], fds[0], fds[0]);
    T_EQ(setenv("GPUD_WORKER", text, 1), 0);
    T_CODE(gpud_init(one, 1, &error), EPROTOCOL);
    T_CHECK(strstr(error.text, "exec"));
    T_CHECK(!getenv("GPUD_WORKER"));
    T_EQ(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    T_EQ(read(fds[0], record, sizeof(record)), sizeof(record));
    T_EQ(record[1], 4); /* GPI_ANSWER_WRAPPED */
    T_EQ(record[5], getpid());
    (void)close(fds[0]);
    T_EQ(setenv("GPUD_WORKER", "somebody else's", 1), 0);
    T_OK(gpud_init(one, 1, &error));
    T_TEXT(getenv("GPUD_WORKER"), "somebody else's");
    T_OK(gpud_fini());
    T_EQ(unsetenv("GPUD_WORKER"), 0);
}

/* What a program that ends early had printed comes with the event. */
T_CASE(last_words)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_CREATE(.argv = PROGRAM("exits"), .failures_in_a_row = 1);
    const struct gpud_event *e;

    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 1);
    e = t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0);
    T_EQ(e->exit_kind, GPUD_EXIT_CODE);
    T_EQ(e->exit_status, 3);
    T_CHECK(e->output && strstr(e->output, "no such model file"));
    t_destroy(&d, &log);
}

/* A program that was there at create, and is gone when it is wanted again. */
T_CASE(gone_later)
{
    struct t_log log = { 0 };
    char path[600], command[5000];
    struct t_proc worker;
    gpud_dispatcher *d;

    (void)snprintf(command, sizeof(command), "#!/bin/sh\nexec %s --program good\n", own_path());
    (void)script(path, "wrapper", command, 0700);
    d = T_CREATE(ARGV(path), .failures_in_a_row = 3, .backoff = T_MS(2));
    t_wait_ready(d, 1);
    T_EQ(unlink(path), 0);
    worker = t_worker(d, 0);
    t_kill(worker.pid, SIGKILL);
    /* its death between tasks was the first */
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 2);
    T_EQ(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0)->code, GPUD_ENOPROGRAM);
    T_CHECK(strstr(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0)->text, "No such file"));
    t_destroy(&d, &log);
}

/* ---- plugins ---- */

#define PLUGIN(name) T_PROGRAMS "/plugin_" name ".so"

T_LONG_CASE(plugins, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    succeeds(T_OPTIONS(.devices = "cpu:2", .definition = "echo", .plugin = PLUGIN("good")));
    d = t_create(
        T_OPTIONS(.definition = "twice", .plugin = PLUGIN("good"), .start = GPUD_START_EXEC));
    T_EQ(T_RUN(d, &log, SUCCESS, .tag = 1, .data = "ab", .size = 2)->result_size, 4);
    T_EQ(memcmp(T_OUTCOME(&log, 1, SUCCESS)->result, "abab", 4), 0);
    t_destroy(&d, &log);
    fails(T_OPTIONS(.plugin = PLUGIN("good")), GPUD_ENODEFINITION, "echo, twice");
    fails(T_OPTIONS(.definition = "other", .plugin = PLUGIN("good")), GPUD_ENODEFINITION,
          "no definition named \"other\"; it has: echo, twice");
    fails(T_OPTIONS(.plugin = PLUGIN("no_symbol")), GPUD_EPLUGIN, "has no symbol gpud_plugin");
    fails(T_OPTIONS(.plugin = PLUGIN("other_abi")), GPUD_EPLUGIN, "has plugin ABI 77, expected 1");
    fails(T_OPTIONS(.plugin = PLUGIN("bad_size")), GPUD_EPLUGIN, "gpud_plugin.struct_size is 8");
    fails(T_OPTIONS(.plugin = PLUGIN("no_process")), GPUD_EPLUGIN,
          "definitions[0] (empty): process and process_batch are NULL");
    fails(T_OPTIONS(.plugin = PLUGIN("unresolved")), GPUD_EPLUGIN, "nobody_has_this");
    fails(T_OPTIONS(.plugin = own_path()), GPUD_EPLUGIN, "exec_faults");
    fails(T_OPTIONS(.plugin = PLUGIN("dies")), GPUD_ECRASHED, "exited with status 9");
}

/* ---- the bundled worker program ---- */

T_CASE(bundled_program)
{
    char path[600];
    const struct gpud_options *o = T_OPTIONS(.definition = "echo", .plugin = PLUGIN("good"));

    T_EQ(setenv("GPUD_WORKER_PROGRAM", "/no/such/worker", 1), 0);
    refused(o, GPUD_ENOPROGRAM, "GPUD_WORKER_PROGRAM", "/no/such/worker");
    T_EQ(setenv("GPUD_WORKER_PROGRAM", script(path, "text", "text\n", 0600), 1), 0);
    refused(o, GPUD_ENOTEXEC, "GPUD_WORKER_PROGRAM", "text");
    T_EQ(setenv("GPUD_WORKER_PROGRAM", script(path, "text", "text\n", 0700), 1), 0);
    refused(o, GPUD_ENOTEXEC, "GPUD_WORKER_PROGRAM", "Exec format error");
    T_EQ(setenv("GPUD_WORKER_PROGRAM", "/bin/true", 1), 0);
    refused(o, GPUD_ENOANSWER, "GPUD_WORKER_PROGRAM", "exited without a reply");
    T_EQ(unsetenv("GPUD_WORKER_PROGRAM"), 0);
    succeeds(o);
}

/* ---- deaths before gpud_init ---- */

/* The worker dies, its keeper dies, the host closes: while a program is on its way to gpud_init. */
T_CASE(deaths_before_init)
{
    struct t_log log = { 0 };
    struct t_proc worker, keeper;
    gpud_dispatcher *d =
        T_CREATE(.argv = PROGRAM("waits"), .backoff = T_MS(2), .failures_in_a_row = 10);

    t_word_wait(STARTED, 1);
    worker = t_worker(d, 0);
    t_kill(worker.pid, SIGKILL);
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 1);
    T_EQ(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0)->code, GPUD_ENOANSWER);
    T_CHECK(
        strstr(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0)->text, "killed by signal 9 (SIGKILL)"));
    t_word_wait(STARTED, 2);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    t_kill(keeper.pid, SIGKILL);
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 2);
    T_EQ(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 1)->code, GPUD_ECRASHED);
    T_EQ(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 1)->exit_kind, GPUD_EXIT_LOST);
    t_wait_ended(&worker);
    t_word_wait(STARTED, 3);
    T_SUBMIT(d, .tag = 1);
    t_word_set(GATE, 1);
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, 1, SUCCESS);
    t_destroy(&d, &log);

    t_word_set(STARTED, 0);
    d = T_CREATE(.argv = PROGRAM("rests"));
    t_word_wait(STARTED, 1);
    t_destroy(&d, NULL);
}

/* A program that is to be a worker, and makes a dispatcher whose workers are itself, would go on
 * for ever. */
T_CASE(host_that_names_itself)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    char text[200];

    (void)snprintf(text, sizeof(text), "1 %d 5 1 1 5 5 5 5 5 5", (int)getpid());
    T_EQ(setenv("GPUD_WORKER", text, 1), 0);
    for (int again = 0; again < 2; again++) {
        T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.argv = PROGRAM("answers")), &error),
               EPROTOCOL);
        T_CHECK(strstr(error.text, "gpud_init"));
        T_CHECK(!d);
    }
    T_EQ(unsetenv("GPUD_WORKER"), 0);
}
