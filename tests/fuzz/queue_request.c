/* SPDX-License-Identifier: MIT */
/*
 * queue_request.c - any bytes as lines of a client, which arrive in pieces; each line that is JSON
 * as a request to an agent with a store in memory, whose transaction is taken back.
 *
 * Each request has one reply, which is JSON and has its id.
 */
#include "fuzz.h"

#include "../queue/memstore.h"
#include "queue/proto/lines.h"
#include "queue/agent/requests.h"

enum { TASKS = 5 };

static struct gpq_agent agent = { .devices = 8 };

/* ---- What the agent has beside them; its dispatcher is NULL ---- */

int gpq_work_explain(struct gpq_agent *a, const struct gpq_task *task, json_t *array)
{
    (void)a;
    (void)task;
    (void)array;
    return 0;
}

void gpq_work_describe(struct gpq_agent *a, const struct gpq_task *task, json_t *row)
{
    (void)a;
    (void)task;
    (void)row;
}

int gpud_dispatcher_check(gpud_dispatcher *d, const struct gpud_task_desc *task,
                          struct gpud_error *reterr)
{
    (void)d;
    (void)task;
    (void)reterr;
    abort();
}

int gpud_dispatcher_classes(gpud_dispatcher *d, struct gpud_class_stats *rows, size_t n)
{
    (void)d;
    (void)rows;
    (void)n;
    abort();
}

int gpud_dispatcher_devices(gpud_dispatcher *d, struct gpud_device_info *rows, size_t n)
{
    (void)d;
    (void)rows;
    (void)n;
    abort();
}

/* ---- The store ---- */

#define BYTES(text)              \
    {                            \
        (text), sizeof(text) - 1 \
    }

/* A batch of tasks: one has ended, one runs, one is held, and two may start. */
static void fill(struct gpq_store *s)
{
    static const char content[] = "true";
    const struct gpq_spec spec = { .content = BYTES("{\"class\":\"command\",\"cwd\":\"/\"}"),
                                   .shape = BYTES("{\"cpus\":1}"),
                                   .options = BYTES("{}") };
    struct gpq_item item[TASKS];
    const uint64_t held = GPQ_TASK(1, 3);
    const struct gpq_select which = { .tasks = &held, .n_tasks = 1 };
    struct gpq_end end = { .task = GPQ_TASK(1, 1), .outcome = GPQ_OUTCOME_ERROR, .ended = 9 };
    struct gpq_submitted ret;
    struct gpq_error e;

    for (int i = 0; i < TASKS; i++)
        item[i] = (struct gpq_item){ .content = { content, sizeof(content) } };
    const struct gpq_submit what = {
        .name = "a", .specs = &spec, .items = item, .n_specs = 1, .n_items = TASKS, .open = true
    };
    FUZZ_CHECK(s->engine->begin(s, &e) == 0);
    FUZZ_CHECK(s->engine->submit(s, 1, &what, &ret, NULL, &e) == 0);
    end.attempt = (uint32_t)s->engine->claim(s, 2, end.task, "gpu:0", "run", &e);
    FUZZ_CHECK(s->engine->complete(s, &end, &e) == 1);
    FUZZ_CHECK(s->engine->claim(s, 2, GPQ_TASK(1, 2), NULL, NULL, &e) == 1);
    FUZZ_CHECK(s->engine->hold(s, 2, &which, true, &e) == 1);
    FUZZ_CHECK(s->engine->commit(s, &e) == 0);
}

static void open_once(void)
{
    struct gpq_error e;

    if (agent.store)
        return;
    FUZZ_CHECK(mem_open(&(struct gpq_options){ .directory = "." }, &agent.store, &e) == 0);
    fill(agent.store);
}

/* ---- One line ---- */

static void ask(json_t *request)
{
    struct gpq_wish wish = { 0 };
    struct gpq_error e;
    const json_t *id = json_object_get(request, "id");

    FUZZ_CHECK(agent.store->engine->begin(agent.store, &e) == 0);
    json_t *reply = gpq_request(&agent, 1000, request, &wish);
    agent.store->engine->rollback(agent.store);
    FUZZ_CHECK(reply && json_is_boolean(json_object_get(reply, "ok")));
    FUZZ_CHECK(id ? json_equal(id, json_object_get(reply, "id"))
                  : json_is_null(json_object_get(reply, "id")));
    FUZZ_CHECK(json_is_true(json_object_get(reply, "ok")) ||
               json_string_length(json_object_get(reply, "error")) != 0);
    char *text = json_dumps(reply, JSON_COMPACT);
    FUZZ_CHECK(text && !strchr(text, '\n'));
    free(text);
    json_decref(reply);
    gpq_wish_free(&wish);
}

static void take_line(const char *text, size_t size)
{
    json_t *line = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);

    if (json_is_object(line))
        ask(line);
    json_decref(line);
}

/* The pieces are of 1 to 16 bytes, so that lines end at each place of one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpq_buffer in = { 0 };
    const uint8_t *rest = data;
    const char *text;
    size_t length, lines = 0, newlines = 0;

    open_once();
    for (size_t at = 0, piece; at < size; at += piece) {
        piece = 1 + data[at] % 16;
        piece = piece < size - at ? piece : size - at;
        FUZZ_CHECK(gpq_buffer_add(&in, data + at, piece));
        while (gpq_buffer_has_line(&in)) {
            FUZZ_CHECK(gpq_buffer_line(&in, &text, &length) == 1);
            FUZZ_CHECK(!memcmp(text, rest, length) && rest[length] == '\n');
            rest += length + 1;
            lines++;
            take_line(text, length);
        }
        FUZZ_CHECK(gpq_buffer_line(&in, &text, &length) == 0);
        gpq_buffer_take(&in, 0);
    }
    for (size_t i = 0; i < size; i++)
        newlines += data[i] == '\n';
    FUZZ_CHECK(lines == newlines);
    FUZZ_CHECK(gpq_buffer_left(&in) == size - (size_t)(rest - data));
    gpq_buffer_free(&in);
    agent.stop = (struct gpq_stop){ 0 };
    return 0;
}
