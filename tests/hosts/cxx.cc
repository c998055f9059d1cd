/* SPDX-License-Identifier: MIT */
/*
 * cxx.cc - a C++17 host with exceptions, static and thread-local objects; and what becomes of them
 * in its workers.  A program of its own, without the C harness; the runner starts `cxx CASE`.
 */
#include <gpudispatch/gpudispatch.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            std::fprintf(stderr, "cxx.cc:%d: not so: %s\n", __LINE__, #condition); \
            std::_Exit(1);                                                      \
        }                                                                       \
    } while (0)

namespace {

/* Adds a line to a file when it is destroyed. */
struct Witness {
    const char *name;
    explicit Witness(const char *n) : name(n) {}
    ~Witness()
    {
        const int fd = open("destroyed", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        const std::string line = std::string(name) + "\n";

        (void)!write(fd, line.data(), line.size());
        close(fd);
    }
};

Witness a_static("static");
thread_local std::unique_ptr<Witness> of_thread;
std::map<std::string, int> numbers{ { "one", 1 }, { "two", 2 } };

enum : uint64_t { sum, caught, uncaught, leaves };

struct State {
    std::vector<double> model;
};

int setup(gpud_worker *w, void **ret_state)
try {
    *ret_state = new State{ std::vector<double>(1000, 0.5) };
    return 0;
} catch (const std::bad_alloc &) {
    return gpud_worker_fail(w, -1, "no memory for the model");
}

void cleanup(gpud_worker *, void *state)
{
    delete static_cast<State *>(state);
}

int process(gpud_task *t, void *state)
{
    try {
        const std::string text(static_cast<const char *>(gpud_task_data(t)), gpud_task_size(t));
        const auto &model = static_cast<State *>(state)->model;

        switch (gpud_task_tag(t) >> 32) {
        case caught:
            return numbers.at("three"); /* throws */
        case leaves:
            std::exit(3);
        case uncaught:
            break;
        default: {
            const std::string answer =
                text + ":" + std::to_string(std::accumulate(model.begin(), model.end(), 0.0));

            return gpud_task_result_set(t, answer.data(), answer.size());
        }
        }
    } catch (const std::out_of_range &e) {
        return gpud_task_fail(t, 42, e.what());
    }
    (void)signal(SIGABRT, SIG_DFL);
    throw std::runtime_error("nobody catches this"); /* terminate: SIGABRT */
}

struct Dispatcher {
    gpud_dispatcher *d = nullptr;
    Dispatcher()
    {
        gpud_options options = GPUD_OPTIONS_INIT;
        gpud_error error = GPUD_ERROR_INIT;

        options.devices = "cpu:2";
        if (gpud_dispatcher_create(&d, &options, &error))
            throw std::runtime_error(error.text);
    }
    ~Dispatcher() { gpud_dispatcher_destroy(&d, nullptr); }
    Dispatcher(const Dispatcher &) = delete;
    Dispatcher &operator=(const Dispatcher &) = delete;
    void submit(uint64_t tag, const std::string &text)
    {
        gpud_task_desc task = GPUD_TASK_DESC_INIT;

        task.data = text.data();
        task.size = text.size();
        task.tag = tag;
        CHECK(gpud_dispatcher_submit(d, &task, 0, nullptr, NULL) == 0);
    }
};

void check(const gpud_event &e, std::vector<int> &seen)
{
    const std::string result(static_cast<const char *>(e.result), e.result_size);

    switch (e.tag >> 32) {
    case caught:
        CHECK(e.outcome == GPUD_OUTCOME_ERROR && e.code == 42 && *e.text);
        break;
    case uncaught:
        CHECK(e.outcome == GPUD_OUTCOME_CRASHED && e.exit_status == SIGABRT);
        break;
    case leaves:
        CHECK(e.outcome == GPUD_OUTCOME_CRASHED && e.exit_status == 3);
        break;
    default:
        CHECK(e.outcome == GPUD_OUTCOME_SUCCESS);
        CHECK(result == "task " + std::to_string(e.tag) + ":500.000000");
    }
    seen.at(static_cast<size_t>((e.tag >> 32) * 1000 + (e.tag & 0xffffffff)))++;
}

void host()
{
    const gpud_definition definition = GPUD_DEFINITION("cxx", setup, process, cleanup);
    std::vector<int> seen(4000);
    int outcomes = 0;

    of_thread = std::make_unique<Witness>("thread-local");
    CHECK(gpud_init(&definition, 1, nullptr) == 0);
    try {
        Dispatcher dispatcher;

        for (uint64_t n = 0; n < 200; n++)
            dispatcher.submit(n, "task " + std::to_string(n));
        dispatcher.submit(caught << 32, "");
        dispatcher.submit(uncaught << 32, "");
        dispatcher.submit(leaves << 32, "");
        while (outcomes < 203) {
            gpud_event e[16];
            e[0].struct_size = sizeof e[0];
            const int n = gpud_dispatcher_poll(dispatcher.d, e, 16, 20000000000u);

            CHECK(n > 0);
            for (int i = 0; i < n; i++)
                if (e[i].kind == GPUD_EVENT_OUTCOME) {
                    check(e[i], seen);
                    outcomes++;
                }
        }
        CHECK(std::accumulate(seen.begin(), seen.end(), 0) == 203);
        throw std::logic_error("unwinds through the dispatcher");
    } catch (const std::logic_error &) {
        /* ~Dispatcher has run */
    }
    CHECK(gpud_fini() == 0);
}

std::string read_file(const char *name)
{
    char text[500] = "";
    const int fd = open(name, O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK(read(fd, text, sizeof text - 1) >= 0);
    close(fd);
    return text;
}

/* 200 tasks on objects of setup; an exception that is caught, one that is not, exit() in a worker;
 * one that unwinds through the host. Static objects are destroyed once, in the host. (exit()
 * destroys the calling thread's thread_local objects before any exit handler: those it destroys in
 * the worker as well.) */
void objects_and_exceptions()
{
    const pid_t pid = fork();
    int status = 0;

    CHECK(pid >= 0);
    if (!pid) {
        host();
        std::exit(5);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    CHECK(read_file("destroyed") == "thread-local\nthread-local\nstatic\n");
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 2 && !std::strcmp(argv[1], "--list"))
        std::puts("objects_and_exceptions 60");
    else if (argc == 2 && !std::strcmp(argv[1], "objects_and_exceptions"))
        objects_and_exceptions();
    else
        return 2;
    std::fflush(stdout);
    std::_Exit(0);
}
