/* SPDX-License-Identifier: MIT */
/* records.c - reads records from the agent, or from the agent's program where none runs. */
#include "queue/client/records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/client/ids.h"
#include "queue/client/interrupts.h"
#include "queue/client/start.h"

enum { READ = 262144 };

struct reading {
    const struct call *call;
    uint64_t since;
    bool names;
    json_t *batches; /* texts: ids, or names */
    gpq_records_fn fn;
    void *user;
};

/* ---- Operands ---- */

static int no_memory(void)
{
    return gpq_say(EXIT_FAILED, "no memory");
}

static int add_batch(struct reading *r, const char *text)
{
    enum gpq_id_kind kind = gpq_id_read(text).kind;
    if (kind == GPQ_ID_TASK || kind == GPQ_ID_RANGE)
        return usage(r->call->verb, "%s: '%s' is not a batch, expected an id such as 12, or a name",
                     r->call->verb->name, text);
    if (json_array_append_new(r->batches, json_string(text)) == 0)
        return 0;
    return gpq_say(EXIT_USAGE, "'%.80s': expected ids or the name of a batch, in UTF-8", text);
}

/* "12,13" are two batches; a name may have commas, too. */
static int add_operand(struct reading *r, const char *operand)
{
    char *copy = strdup(operand), *rest = copy;
    int status = copy ? 0 : no_memory();
    if (copy && !gpq_are_ids(operand))
        status = add_batch(r, operand);
    else
        for (char *one; status == 0 && (one = strsep(&rest, ","));)
            status = *one ? add_batch(r, one) : 0;
    free(copy);
    return status;
}

/* ---- An agent that runs ---- */

/* Replaces names by ids.  There must be such batches. */
static int find_batches(struct gpq_session *s, const struct reading *r)
{
    int status = 0;
    for (size_t i = 0; status == 0 && i < json_array_size(r->batches); i++) {
        struct gpq_id id;
        char text[32];
        json_t *row;
        status = gpq_id_find(s, json_string_value(json_array_get(r->batches, i)), &id);
        if (status == 0)
            status = gpq_batch_row(s, gpq_id_text(&id, text), &row);
        if (status == 0) {
            json_decref(row);
            status = json_array_set_new(r->batches, i, json_string(text)) == 0 ? 0 : no_memory();
        }
    }
    return status;
}

static json_t *request_of(const struct reading *r)
{
    json_t *request = json_pack("{s:s, s:I, s:b}", "do", "records", "since", (json_int_t)r->since,
                                "names", (int)r->names);
    if (json_array_size(r->batches) != 0 && json_object_set(request, "batches", r->batches) != 0) {
        json_decref(request);
        return NULL;
    }
    return request;
}

/* The reply to a request that was sent.  After a loss of the connection it is sent again: a page
 * begins at the same place for each agent. */
static int await_page(struct gpq_session *s, json_t *request, json_t **ret)
{
    enum gpq_heard heard;
    while ((heard = gpq_session_hear(s, 0, ret)) == GPQ_INTERRUPTED)
        if (gpq_interrupted())
            return -1;
    if (heard == GPQ_CLOSED)
        return gpq_session_insist(s, json_incref(request), ret);
    if (heard != GPQ_LINE)
        return EXIT_FAILED;
    int status = gpq_session_judge(*ret);
    if (status == 0 && !json_is_string(json_object_get(*ret, "lines")))
        return gpq_say(EXIT_FAILED, "the agent has sent no records");
    return status;
}

/* While fn has the lines of a page, the agent makes those of the next one. */
static int read_pages(struct gpq_session *s, const struct reading *r, json_t *request)
{
    int status = request ? gpq_session_send(s, json_incref(request)) : no_memory();
    bool more = status == 0 || status == EXIT_NONE; /* closed: it is sent again */
    while (more) {
        json_t *reply = NULL;
        status = await_page(s, request, &reply);
        json_t *next = json_object_get(reply, "next"), *lines = json_object_get(reply, "lines");
        more = status == 0 && next;
        if (more && json_object_set(request, "after", next) == 0)
            (void)gpq_session_send(s, json_incref(request)); /* the wait sees a closed connection */
        if (status == 0)
            status = r->fn(json_string_value(lines), json_string_length(lines), r->user);
        json_decref(reply);
        more = more && status == 0;
    }
    return status;
}

static int read_agent(struct gpq_session *s, const struct reading *r)
{
    int status = find_batches(s, r);
    if (status != 0)
        return status;
    json_t *request = request_of(r);
    status = read_pages(s, r, request);
    json_decref(request);
    return status;
}

/* ---- A closed store ---- */

/* Hands over the whole lines of the buffer. */
static int hand_over(struct gpq_buffer *in, const struct reading *r)
{
    const char *begin = in->data + in->taken;
    size_t left = gpq_buffer_left(in);
    const char *last = left != 0 ? memrchr(begin, '\n', left) : NULL;
    if (!last)
        return 0;
    size_t size = (size_t)(last - begin) + 1;
    int status = r->fn(begin, size, r->user);
    gpq_buffer_take(in, size);
    return status;
}

static int read_output(int fd, const struct reading *r)
{
    struct gpq_buffer in = { 0 };
    int status = 0;
    for (bool more = true; status == 0 && more;) {
        char *room = gpq_buffer_room(&in, READ);
        ssize_t n = room ? read(fd, room, READ) : -1;
        if (n < 0 && room && errno == EINTR && !gpq_interrupted())
            continue;
        more = n > 0;
        in.used += more ? (size_t)n : 0;
        status = n < 0 ? (room ? -1 : no_memory()) : hand_over(&in, r);
    }
    gpq_buffer_free(&in);
    return status;
}

static int read_closed(const char *state, const struct reading *r)
{
    size_t n = 0, batches = json_array_size(r->batches);
    const char **argument = calloc(batches + 6, sizeof(*argument));
    char since[24];
    int fd = -1, ended = 0;
    if (!argument)
        return no_memory();
    snprintf(since, sizeof(since), "%" PRIu64, r->since);
    argument[n++] = "--records";
    argument[n++] = "--since";
    argument[n++] = since;
    if (r->names)
        argument[n++] = "--names";
    argument[n++] = "--";
    for (size_t i = 0; i < batches; i++)
        argument[n++] = json_string_value(json_array_get(r->batches, i));
    pid_t pid = gpq_agent_reads(r->call, state, argument, n, &fd);
    free(argument);
    if (pid < 0)
        return EXIT_FAILED;
    int status = read_output(fd, r);
    close(fd);
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        continue;
    if (status != 0)
        return status;
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : EXIT_FAILED;
}

/* ---- Both ---- */

int gpq_records_read(const struct call *call, uint64_t since, bool names, gpq_records_fn fn,
                     void *user)
{
    struct gpq_session s;
    struct reading r = { call, since, names, json_array(), fn, user };
    int status = r.batches ? gpq_session_place(&s, call, false) : no_memory();
    for (size_t i = 0; status == 0 && i < call->operands; i++)
        status = add_operand(&r, call->operand[i]);
    if (status == 0 && gpq_session_try(&s, call))
        status = read_agent(&s, &r);
    else if (status == 0)
        status = read_closed(s.state, &r);
    if (r.batches)
        gpq_session_close(&s);
    json_decref(r.batches);
    return status;
}
