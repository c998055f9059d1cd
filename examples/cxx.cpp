/* SPDX-License-Identifier: MIT */
/* cxx.cpp - C++17: a destructor ends the dispatcher, error codes become exceptions of the host, and
 * an exception in a worker becomes the ERROR of its task.
 * c++ -std=c++17 -Wall -Wextra cxx.cpp -o cxx $(pkg-config --cflags --libs gpudispatch)
 * It prints in some order: "dispatch" has 8 letters, "" ERROR 1: an empty word, and for the third
 * word ERROR 1: too long. */
#include <gpudispatch/gpudispatch.h>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
int check(int r) { return r < 0 ? throw std::runtime_error(gpud_error_text(r)) : r; }

/* The library is C: an exception that leaves process ends the worker.  Here the task gets ERROR. */
template <typename State, void (*work)(gpud_task *, State &)>
int guarded(gpud_task *t, void *state) noexcept
try {
    work(t, *static_cast<State *>(state));
    return 0;
} catch (const std::exception &e) {
    return gpud_task_fail(t, 1, e.what());
} catch (...) {
    return gpud_task_fail(t, 2, "an exception of unknown type");
}

struct Model { std::size_t longest = 31; }; /* each worker has one; cleanup deletes it */

int setup(gpud_worker *w, void **ret_state) noexcept
try {
    *ret_state = new Model;
    return 0;
} catch (const std::exception &e) {
    return gpud_worker_fail(w, 1, e.what());
}

void cleanup(gpud_worker *, void *state) noexcept { delete static_cast<Model *>(state); }

void count(gpud_task *t, Model &model) /* may throw */
{
    const std::string word(static_cast<const char *>(gpud_task_data(t)), gpud_task_size(t));
    const std::size_t n = word.size();
    if (word.empty())
        throw std::invalid_argument("an empty word");
    if (n > model.longest)
        throw std::length_error("too long");
    check(gpud_task_result_set(t, &n, sizeof n));
}

struct End { void operator()(gpud_dispatcher *d) const { gpud_dispatcher_destroy(&d, nullptr); } };
using Dispatcher = std::unique_ptr<gpud_dispatcher, End>;
Dispatcher make_dispatcher(const gpud_options &options)
{
    gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = nullptr;
    if (gpud_dispatcher_create(&d, &options, &error))
        throw std::runtime_error(error.text);
    return Dispatcher(d);
}

void print(const gpud_event &e)
{
    if (e.outcome == GPUD_OUTCOME_SUCCESS)
        std::printf("\"%s\" has %zu letters\n", e.label, *static_cast<const size_t *>(e.result));
    else
        std::printf("\"%s\" %s %d: %s\n", e.label, gpud_outcome_name(e.outcome), e.code, e.text);
}

void run(const std::vector<std::string> &words)
{
    gpud_options options = GPUD_OPTIONS_INIT;
    options.devices = "cpu:2";
    const Dispatcher d = make_dispatcher(options); /* its workers end after any exception below */
    gpud_event e = GPUD_EVENT_INIT;
    for (const auto &word : words) {
        gpud_task_desc task = GPUD_TASK_DESC_INIT;
        task.data = word.data();
        task.size = word.size();
        task.label = word.c_str();
        check(gpud_dispatcher_submit(d.get(), &task, 0, nullptr, nullptr));
    }
    check(gpud_dispatcher_close(d.get(), GPUD_FINISH_ALL, GPUD_NEVER));
    for (int r; (r = gpud_dispatcher_poll(d.get(), &e, 1, GPUD_NEVER)) != GPUD_EEND;)
        if (check(r) && e.kind == GPUD_EVENT_OUTCOME)
            print(e);
}
} // namespace

int main()
try {
    const gpud_definition def = GPUD_DEFINITION("count", setup, (guarded<Model, count>), cleanup);
    check(gpud_init(&def, 1, nullptr)); /* its spawner ends with the program, if not before */
    run({ "dispatch", "", "supercalifragilisticexpialidocious" });
    return gpud_fini();
} catch (const std::exception &e) {
    return std::fprintf(stderr, "cxx: %s\n", e.what()), 1;
}
