/* SPDX-License-Identifier: MIT */
/*
 * requests_memory.c - requests, and commands of tasks, whose Nth allocation fails, for each N.
 *
 * A request that is refused has changed nothing, or the transaction has failed with it.  A command
 * has all of its variables, or there is none.  Nothing leaks (AddressSanitizer sees it).  The
 * allocations of SQLite fail in faults.c.
 */
#include "desk.h"
#include "failing.h"

#include <stdlib.h>
#include <string.h>

#include "queue/agent/command.h"

/* A change may be kept whose reply has no memory: the client asks again. */
static bool is_reply_lost(const json_t *reply)
{
    const char *text = json_string_value(json_object_get(reply, "error"));
    return !reply || (text && !strcmp(text, "no memory for the reply"));
}

/* Carries out a request, and takes its changes back.  False: no allocation has failed. */
static bool try_request(json_t *request, unsigned n, const char *text)
{
    const struct gpq_engine *o = t_desk.store->engine;
    struct gpq_error e = { 0 };
    struct gpq_wish wish = { 0 };
    uint64_t next;
    json_t *copy = json_deep_copy(request);
    T_EQ(o->begin(t_desk.store, &e), 0);
    fail_at = n;
    json_t *reply = gpq_request(&t_desk, t_desk_time, copy, &wish);
    bool failed = fail_at == 0;
    fail_at = 0;
    bool ok = json_is_true(json_object_get(reply, "ok"));
    bool kept = o->due(t_desk.store, 0, &next, &e) >= 0 && t_desk.store->n_changes != 0;
    if (!ok && !failed)
        T_FAIL("%s: %s", text, t_text_of(reply));
    if (!ok && kept && !is_reply_lost(reply))
        T_FAIL("%s: allocation %u: %s, and %zu changes", text, n, t_text_of(reply),
               t_desk.store->n_changes);
    o->rollback(t_desk.store);
    gpq_wish_free(&wish);
    json_decref(reply);
    json_decref(copy);
    return failed;
}

static void fail_each(const char *text, unsigned least)
{
    json_t *request = t_json(text);
    unsigned n = 1;
    while (try_request(request, n, text))
        n++;
    T_CMP(n, >, least);
    json_decref(request);
}

#define SUBMIT "'do':'submit','batch':{'name':'a','notify':'true'}"
#define SPEC "'cwd':'/','environment':['A=1'],'retries':{'error':2},'limit':5,'options':{'a':1}"

/* 1.1, and 2.1, which waits for it. */
static void open_with_tasks(void)
{
    json_set_alloc_funcs(malloc, free);
    t_desk_open();
    json_decref(t_ask_ok("{" SUBMIT ",'specs':[{" SPEC "}],"
                         "'tasks':[{'argv':['a','b'],'key':'k'}]}"));
    json_decref(t_ask_ok("{" SUBMIT ",'specs':[{" SPEC ",'after':[{'id':'1.1'}]}],"
                         "'tasks':[{'argv':['c']}]}"));
}

T_CASE(each_allocation_fails)
{
    open_with_tasks();
    fail_each("{" SUBMIT ",'list':true,'specs':[{" SPEC "},{'like':0,'priority':1}],"
              "'tasks':[{'argv':['x'],'stamp':'s'},{'spec':1,'argv':['y']}]}",
              50);
    fail_each("{" SUBMIT ",'join':true,'list':true,'specs':[{" SPEC "}],"
              "'tasks':[{'argv':['a','b'],'key':'k'}]}",
              30);
    fail_each("{" SUBMIT ",'specs':[{" SPEC ",'attached':true}],'tasks':[{'argv':['x']}]}", 30);
    fail_each("{'do':'submit','specs':[{'class':'w'}],'tasks':[{'payload_base64':'YWJj'}]}", 20);
    fail_each("{'do':'set','batch':'1','limit':7,'needs':{'gpus':2},'front':true}", 50);
    fail_each("{'do':'cancel','batch':'1'}", 3);
    fail_each("{'do':'hold','tasks':['1.1','2.1'],'states':['ready','held']}", 3);
    fail_each("{'do':'release','all':true}", 2);
    fail_each("{'do':'retry','batch':'1','outcomes':['error']}", 2);
    fail_each("{'do':'purge','before':1}", 1);
    fail_each("{'do':'pause','reason':'r'}", 1);
    fail_each("{'do':'resume'}", 1);
    fail_each("{'do':'drain','device':'gpu:1','now':true}", 1);
    fail_each("{'do':'undrain','device':'gpu:1'}", 1);
    t_desk_close();
}

T_CASE(each_allocation_of_a_reader_fails)
{
    open_with_tasks();
    json_decref(t_ask_ok("{'do':'cancel','tasks':['1.1']}"));
    json_decref(t_ask_ok("{'do':'retry','tasks':['1.1']}"));
    json_decref(t_ask_ok("{'do':'cancel','tasks':['1.1']}"));
    fail_each("{'do':'batches'}", 20);
    fail_each("{'do':'tasks','batch':'1','whole':true}", 30);
    fail_each("{'do':'task','task':'2.1','environment':true}", 30);
    fail_each("{'do':'results','tasks':['1.1']}", 20);
    fail_each("{'do':'attempts','task':'1.1'}", 10);
    fail_each("{'do':'explain','task':'2.1'}", 20);
    fail_each("{'do':'wait','tasks':['1.1','2.1']}", 2);
    fail_each("{'do':'follow','batch':'1'}", 2);
    fail_each("{'do':'status'}", 10);
    fail_each("{'do':'classes'}", 3);
    fail_each("{'do':'spans','kinds':['device']}", 3);
    fail_each("{'do':'records','batches':['1','2'],'names':true}", 20);
    fail_each("{'do':'stop','how':'drain'}", 1);
    t_desk_close();
}

/* Reads the command of task 1.1.  False: no allocation has failed.  *damaged counts the cases in
 * which jansson reports that the text is no JSON, as it may without memory. */
static bool try_command(unsigned n, unsigned *damaged)
{
    char devices[] = "{\"names\":\"gpu:1\",\"uuids\":\"GPU-1\",\"cpus\":2}";
    struct gpq_unit u = { .task = GPQ_TASK(1, 1), .devices = devices };
    struct gpq_command c;
    struct gpq_error e = { 0 };
    fail_at = n;
    int code = gpq_command_read(&t_desk, &u, "/out", &c, &e);
    bool failed = fail_at == 0;
    fail_at = 0;
    if (code == 0) {
        T_TEXT(c.key, "k");
        T_TEXT(c.visible, "CUDA_VISIBLE_DEVICES=GPU-1");
        T_TEXT(c.argv[1], "b");
        T_TEXT(c.environment[0], "A=1");
    } else if (code == GPQ_EDAMAGED) {
        ++*damaged;
    } else if (!failed || code != GPQ_ENOMEM) {
        T_FAIL("allocation %u: %d: %s", n, code, e.text);
    }
    gpq_command_free(&c);
    return failed;
}

T_CASE(each_allocation_of_a_command_fails)
{
    unsigned n = 1, damaged = 0;
    open_with_tasks();
    while (try_command(n, &damaged))
        n++;
    T_CMP(n, >, 10);
    T_CMP(damaged, <, 20); /* in the lexer of jansson; 43 with those of our own */
    t_desk_close();
}
