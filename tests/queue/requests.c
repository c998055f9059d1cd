/* SPDX-License-Identifier: MIT */
/* requests.c - each request of a client, and each refusal with its text. */
#include "desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/agent/base64.h"

#define SPEC "{'cwd':'/tmp','environment':['A=B'],'limit':60,'priority':3}"
#define TASK "{'spec':0,'argv':['true']}"
#define ALL_OF(verb) "{'do':'" verb "','batch':'1'}"

/* ---- Short forms ---- */

/* The text of one member of the reply, by a path such as "task.state". */
static const char *part(const char *request, const char *path)
{
    static char kept[4][4096];
    static unsigned next;
    char *to = kept[next++ % 4], name[64];
    json_t *reply = t_ask_ok(request), *at = reply;
    while (*path) {
        size_t n = strcspn(path, ".");
        (void)snprintf(name, sizeof(name), "%.*s", (int)n, path);
        at = json_is_array(at) ? json_array_get(at, strtoul(name, NULL, 10))
                               : json_object_get(at, name);
        path += n + (path[n] == '.');
    }
    (void)snprintf(to, sizeof(kept[0]), "%s", at ? t_text_of(at) : "none");
    json_decref(reply);
    return to;
}

static void ok(const char *request)
{
    json_decref(t_ask_ok(request));
}

/* A batch of n tasks, named a. */
static void submit(int n)
{
    char text[8192] = "{'do':'submit','batch':{'name':'a'},'specs':[" SPEC "],'tasks':[";
    for (int i = 0; i < n; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                       "%s{'spec':0,'line':%d,'argv':['echo','%d']}", i ? "," : "", i + 1, i);
    strcat(text, "]}");
    ok(text);
}

static uint32_t claimed(uint64_t task)
{
    struct gpq_error e = { 0 };
    T_EQ(t_desk.store->engine->begin(t_desk.store, &e), 0);
    int64_t n = t_desk.store->engine->claim(t_desk.store, t_desk_time++, task,
                                            "{\"names\":\"gpu:0\"}", "run", &e);
    T_CMP(n, >, 0);
    T_EQ(t_desk.store->engine->commit(t_desk.store, &e), 0);
    return (uint32_t)n;
}

static void ended(uint64_t task, uint32_t attempt, uint32_t outcome, struct gpq_bytes result)
{
    struct gpq_error e = { 0 };
    const struct gpq_end end = { .task = task,
                                 .attempt = attempt,
                                 .outcome = outcome,
                                 .text = "as the test says",
                                 .status = outcome == GPQ_OUTCOME_SUCCESS ? 0 : 1,
                                 .started = t_desk_time,
                                 .ended = t_desk_time + 1,
                                 .result = result,
                                 .result_size = result.size };
    T_EQ(t_desk.store->engine->begin(t_desk.store, &e), 0);
    if (t_desk.store->engine->complete(t_desk.store, &end, &e) < 0)
        T_FAIL("%s", e.text);
    T_EQ(t_desk.store->engine->commit(t_desk.store, &e), 0);
    t_desk_time += 2;
}

static void run(uint64_t task, uint32_t outcome)
{
    ended(task, claimed(task), outcome, (struct gpq_bytes){ 0 });
}

/* ---- submit ---- */

T_CASE(a_submit_and_its_rows)
{
    t_desk_open();
    json_t *reply = t_ask_ok("{'id':7,'do':'submit','request':'r1','batch':{'name':'night'},"
                             "'specs':[" SPEC "],'tasks':[" TASK "," TASK "]}");
    T_TEXT(t_text_of(reply),
           "{'batch':'1','added':2,'joined':0,'again':0,'changed':0,'id':7,'ok':true}");
    json_decref(reply);
    T_TEXT(part("{'do':'tasks','batch':'1','whole':true}", "tasks.1.argv"), "['true']");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.spec.limit"), "60");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.spec.cwd"), "'/tmp'");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.spec.needs.gpus"), "1");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.priority"), "3");
    T_TEXT(part("{'do':'batches'}", "batches.0.states"), "{'ready':2}");
    t_desk_close();
}

/* An ended batch that is asked for by its name is not answered with the next one. */
T_CASE(an_active_batch_of_a_name)
{
    t_desk_open();
    submit(1);
    run(GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS);
    ok("{'do':'submit','batch':{'name':'b'},'specs':[" SPEC "],'tasks':[" TASK "]}");
    T_TEXT(part("{'do':'batches','name':'a','active':true}", "batches"), "[]");
    T_TEXT(part("{'do':'batches','name':'b','active':true}", "batches.0.batch"), "'2'");
    t_desk_close();
}

/* Q1: sent twice, its id makes it one. */
T_CASE(a_submit_that_is_sent_twice)
{
    static const char text[] =
        "{'do':'submit','request':'r1','list':true,'specs':[" SPEC "],'tasks':[" TASK "]}";
    t_desk_open();
    T_TEXT(part(text, "placed"), "[{'how':'added','task':'1.1'}]");
    T_TEXT(part(text, "placed"), "[{'how':'added','task':'1.1'}]");
    T_TEXT(part(text, "repeated"), "true");
    T_TEXT(part("{'do':'batches'}", "batches.1"), "none");
    t_desk_close();
}

T_CASE(an_attached_submit)
{
    static const char spec[] = "{'cwd':'/','attached':true}";
    char text[512];
    t_desk_open();
    (void)snprintf(text, sizeof(text), "{'do':'submit','specs':[%s," SPEC "],'tasks':[" TASK "]}",
                   spec);
    t_ask_refused(text, "EINVAL", "1 of 2 specs have attached");
    (void)snprintf(text, sizeof(text),
                   "{'do':'submit','join':true,'specs':[%s],'tasks':[" TASK "]}", spec);
    t_ask_refused(text, "EINVAL", "join and attached");
    (void)snprintf(text, sizeof(text), "{'do':'submit','specs':[%s],'tasks':[" TASK "," TASK "]}",
                   spec);
    T_TEXT(part(text, "added"), "2");
    T_TEXT(part("{'do':'status'}", "marks"), "[]");
    t_desk_close();
}

/* Q6: the same line of a batch of the same name. */
T_CASE(a_submit_that_joins)
{
    static const char text[] =
        "{'do':'submit','batch':{'name':'a'},'join':true,'list':true,'try':true,'specs':[" SPEC
        "],'tasks':[{'spec':0,'argv':['echo','0']},{'spec':0,'argv':['echo','1']},"
        "{'spec':0,'argv':['echo','x'],'key':'k','stamp':'1','name':'n'}]}";
    t_desk_open();
    submit(2);
    run(GPQ_TASK(1, 2), GPQ_OUTCOME_ERROR);
    T_TEXT(part(text, "placed"), "[{'how':'joined','task':'1.1'},{'how':'again','task':'1.2'},"
                                 "{'how':'added'}]");
    T_TEXT(part(text, "batch"), "none"); /* only tried */
    T_TEXT(part("{'do':'batches','name':'a'}", "batches.0.batch"), "'1'");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.state"), "'done'");
    t_desk_close();
}

T_CASE(an_open_batch)
{
    t_desk_open();
    ok("{'do':'submit','batch':{'name':'a','open':true,'at_once':2,'max_fails':0,"
       "'options':{'notify':'mail'}},'specs':[" SPEC "],'tasks':[" TASK "]}");
    ok("{'do':'submit','batch':{'append':'1'},'specs':[" SPEC "],'tasks':[" TASK "," TASK "]}");
    T_TEXT(part("{'do':'batches'}", "batches.0.total"), "3");
    T_TEXT(part("{'do':'batches'}", "batches.0.options"), "{'notify':'mail'}");
    T_TEXT(part("{'do':'batches'}", "batches.0.max_fails"), "0");
    T_TEXT(part("{'do':'task','task':'1.3'}", "task.holds"), "['turn']");
    ok("{'do':'seal','batch':'1'}");
    t_ask_refused("{'do':'submit','batch':{'append':'1'},'specs':[" SPEC "],'tasks':[" TASK "]}",
                  "EREFUSED", "batch 1 is closed");
    t_ask_refused("{'do':'submit','batch':{'append':'9'},'specs':[],'tasks':[]}", "ENOTFOUND", "9");
    t_ask_refused("{'do':'submit','batch':{'append':'1','open':true},'specs':[],'tasks':[]}",
                  "EINVAL", "batch has append and other members");
    t_ask_refused("{'do':'seal','batch':'7'}", "ENOTFOUND", "7");
    t_ask_refused("{'do':'seal'}", "EINVAL", "has no member \"batch\"");
    t_desk_close();
}

/* Each text names the field, the value and the bound. */
T_CASE(refusals_of_a_submit)
{
    static const struct {
        const char *specs, *tasks, *text;
    } row[] = {
        { "{}", TASK, "specs[0] has no member \"cwd\"" },
        { "{'cwd':'tmp'}", TASK, "specs[0].cwd is \"tmp\", expected an absolute path" },
        { "{'cwd':7}", TASK, "specs[0].cwd is an integer, expected a text" },
        { "{'cwd':'/','colour':1}", TASK, "specs[0] has no member \"colour\", but like, class" },
        { "{'cwd':'/','limit':-1}", TASK, "specs[0].limit is -1, the minimum is 0" },
        { "{'cwd':'/','limit':1.5}", TASK, "is a number with a fraction, expected an integer" },
        { "{'cwd':'/','priority':2147483648}", TASK, "priority is 2147483648, the maximum is" },
        { "{'cwd':'/','begin':9,'expires':9}", TASK, "begin that is not before its expires" },
        { "{'cwd':'/','retries':{'oops':1}}", TASK, "specs[0].retries has no member \"oops\"" },
        { "{'cwd':'/','retries':{'crash':-1}}", TASK, "retries.crash is -1" },
        { "{'cwd':'/','after':[{'id':'1.x'}]}", TASK, "specs[0].after[0].id is \"1.x\", expected" },
        { "{'cwd':'/','after':[{'when':'ok'}]}", TASK, "specs[0].after[0] has no member \"id\"" },
        { "{'cwd':'/','after':[{'id':'1','when':'soon'}]}", TASK,
          "after[0].when is \"soon\", expected one of: ok, ended, failed" },
        { "{'cwd':'/','environment':['A']}", TASK,
          "specs[0].environment[0] is \"A\", expected NAME=VALUE" },
        { "{'cwd':'/','environment':[7]}", TASK, "specs[0].environment[0] is an integer" },
        { "{'cwd':'/','needs':{'gpus':17}}", TASK, "needs.gpus is 17, the maximum is 16" },
        { "{'cwd':'/','needs':{'gpus':0,'memory':5}}", TASK,
          "specs[0].needs has the member \"memory\", which is about GPUs, and gpus is 0" },
        { "{'cwd':'/','needs':{'gpus':0,'cpus':0}}", TASK, "specs[0].needs needs nothing" },
        { "{'cwd':'/','needs':{'gpus':2,'share':5000}}", TASK,
          "needs share is 5000, and gpus is 2" },
        { "{'cwd':'/','needs':{'share':0}}", TASK, "needs.share is 0, the minimum is 1" },
        { "{'cwd':'/','needs':{'or':[{'or':[]}]}}", TASK, "needs.or[0] has no member \"or\"" },
        { "{'cwd':'/','needs':{'or':[{},{},{},{}]}}", TASK,
          "needs.or has 4 items, the maximum is 3" },
        { "{'cwd':'/','needs':{'class':'x'}}", TASK, "has no member \"class\"" },
        { "{'class':'x'}", TASK, "tasks[0] must have the member \"payload\", and not \"argv\"" },
        { "{'class':'x','needs':{'gpus':1}}", "{'spec':0,'payload':'a'}",
          "specs[0] has the member \"needs\": those of class x are in the config file" },
        { "{'class':'x'}", "{'spec':0,'payload':'a','payload_base64':'YQ=='}",
          "tasks[0] has both payload and payload_base64" },
        { "{'class':'x'}", "{'spec':0,'payload_base64':'YQ='}",
          "tasks[0].payload_base64 is no base64" },
        { "{'cwd':'/'}", "{'spec':0}", "tasks[0] must have the member \"argv\"" },
        { "{'cwd':'/'}", "{'spec':1,'argv':['a']}", "tasks[0] spec is 1, and specs has 1 items" },
        { "{'cwd':'/'}", "{'spec':0,'argv':[]}", "tasks[0].argv has 0 items, the minimum is 1" },
        { "{'cwd':'/'}", "{'spec':0,'argv':['']}", "tasks[0].argv[0] is empty" },
        { "{'cwd':'/'}", "{'spec':0,'argv':['a',null]}", "tasks[0].argv[1] is null" },
        { "{'cwd':'/'}", "{'spec':0,'argv':['a'],'line':0}", "tasks[0].line is 0, the minimum" },
        { "{'cwd':'/'}", "{'spec':0,'argv':['a'],'name':''}", "tasks[0].name has 0 bytes" },
        { "{'cwd':'/'}", "[]", "tasks[0] is a list, expected an object" },
        { "7", TASK, "specs[0] is an integer, expected an object" },
    };
    char text[1024];
    t_desk_open();
    for (size_t i = 0; i < T_LENGTH(row); i++) {
        (void)snprintf(text, sizeof(text), "{'do':'submit','specs':[%s],'tasks':[%s]}",
                       row[i].specs, row[i].tasks);
        t_ask_refused(text, "EINVAL", row[i].text);
    }
    t_ask_refused("{'do':'submit','sepcs':[]}", "EINVAL", "the request has no member \"sepcs\"");
    t_ask_refused("{'do':'submit','request':''}", "EINVAL", "request has 0 bytes");
    t_ask_refused("{'do':'submit','batch':[]}", "EINVAL", "batch is a list, expected an object");
    t_ask_refused("{'do':'submit','batch':{'max_fails_percent':101}}", "EINVAL",
                  "batch.max_fails_percent is 101, the maximum is 100");
    t_ask_refused("{'do':'submit','specs':[{'cwd':'/','after':[{'id':'4.4'}]}],'tasks':[]}",
                  "ENOTFOUND", "--after 4.4: there is no task with this id");
    T_TEXT(part("{'do':'batches'}", "batches"), "[]"); /* nothing of it is there */
    t_desk_close();
}

/* An argument that the kernel does not take, and names at their longest. */
T_CASE(long_texts)
{
    static char text[400000];
    char *end = text;
    t_desk_open();
    for (int size = 131071; size <= 131072; size++) {
        end = text + sprintf(text, "{'do':'submit','specs':[" SPEC "],'tasks':[{'spec':0,"
                                   "'argv':['a','");
        memset(end, 'x', (size_t)size);
        strcpy(end + size, "']}]}");
        if (size == 131071)
            ok(text);
        else
            t_ask_refused(text, "EINVAL", "tasks[0].argv[1] has 131072 bytes, the maximum is");
    }
    for (int size = 255; size <= 256; size++) {
        end = text + sprintf(text, "{'do':'submit','specs':[],'tasks':[],'batch':{'name':'");
        memset(end, 'x', (size_t)size);
        strcpy(end + size, "'}}");
        if (size == 255)
            ok(text);
        else
            t_ask_refused(text, "EINVAL", "batch.name has 256 bytes, the maximum is 255");
    }
    t_desk_close();
}

/* ---- Rows ---- */

T_CASE(pages)
{
    t_desk_open();
    submit(5);
    submit(1);
    T_TEXT(part("{'do':'tasks','batch':'1','most':2}", "next"), "'1.2'");
    T_TEXT(part("{'do':'tasks','batch':'1','most':2,'after':'1.2'}", "tasks.0.task"), "'1.3'");
    T_TEXT(part("{'do':'tasks','batch':'1','most':2,'after':'1.3'}", "next"), "none");
    T_TEXT(part("{'do':'tasks','all':true,'most':6}", "tasks.5.task"), "'2.1'");
    T_TEXT(part("{'do':'tasks','batch':'1','first':2,'last':3}", "tasks.1.task"), "'1.3'");
    T_TEXT(part("{'do':'tasks','tasks':['1.5','1.1','1.5']}", "tasks.1.task"), "'1.5'");
    T_TEXT(part("{'do':'batches','most':1}", "next"), "'1'");
    T_TEXT(part("{'do':'batches','most':1,'after':'1'}", "batches.0.batch"), "'2'");
    T_TEXT(part("{'do':'batches','most':1,'after':'1'}", "next"), "none");
    ok("{'do':'cancel','batch':'2'}");
    T_TEXT(part("{'do':'batches','active':true}", "batches.1"), "none");
    T_TEXT(part("{'do':'tasks','all':true,'outcomes':['cancelled']}", "tasks.0.task"), "'2.1'");
    T_TEXT(part("{'do':'tasks','all':true,'states':['ready','held']}", "tasks.5"), "none");
    t_ask_refused("{'do':'batches','name':'none'}", "ENOTFOUND", "no batch named \"none\"");
    t_ask_refused("{'do':'tasks','batch':'1','most':10001}", "EINVAL", "most is 10001");
    t_desk_close();
}

T_CASE(selections)
{
    t_desk_open();
    submit(3);
    t_ask_refused("{'do':'tasks'}", "EINVAL", "names none of batch, tasks and all");
    t_ask_refused("{'do':'tasks','batch':'1','all':true}", "EINVAL", "names several of batch");
    t_ask_refused("{'do':'tasks','all':true,'first':1}", "EINVAL", "batch is missing");
    t_ask_refused("{'do':'tasks','batch':'1','first':3,'last':2}", "EINVAL",
                  "first is 3, and last is 2");
    t_ask_refused("{'do':'tasks','batch':'12'}", "ENOTFOUND", "there is no batch 12");
    t_ask_refused("{'do':'tasks','batch':'1.1'}", "EINVAL", "batch is \"1.1\", expected the id");
    t_ask_refused("{'do':'tasks','batch':'01'}", "EINVAL", "batch is \"01\"");
    t_ask_refused("{'do':'tasks','batch':1}", "EINVAL", "batch is an integer, expected the id");
    t_ask_refused("{'do':'cancel','tasks':['1.1','1.4','1.9']}", "ENOTFOUND",
                  "there is no task 1.4: it was purged, or never was");
    t_ask_refused("{'do':'tasks','tasks':['1.1',5]}", "EINVAL", "tasks[1] is an integer");
    t_ask_refused("{'do':'tasks','all':true,'states':['asleep']}", "EINVAL",
                  "states[0] is \"asleep\", expected one of: held, ready, running, done");
    t_ask_refused("{'do':'tasks','all':true,'outcomes':[1]}", "EINVAL",
                  "outcomes[0] is an integer");
    t_ask_refused("{'do':'task','task':'1.4'}", "ENOTFOUND", "there is no task 1.4");
    t_ask_refused("{'do':'task'}", "EINVAL", "has no member \"task\"");
    t_ask_refused("{'do':'task','task':'4294967295.1'}", "EINVAL", "task is \"4294967295.1\"");
    T_TEXT(part("{'do':'task','task':'1.1'}", "task.state"), "'ready'"); /* nothing was cancelled */
    t_desk_close();
}

/* Q12: the environment is shown to the person who asks for it. */
T_CASE(environment_is_shown_on_request_only)
{
    t_desk_open();
    submit(1);
    T_TEXT(part("{'do':'task','task':'1.1'}", "task.spec.environment"), "none");
    T_TEXT(part("{'do':'task','task':'1.1','environment':true}", "task.spec.environment"),
           "['A=B']");
    t_desk_close();
}

/* A page ends before its texts are too many. */
T_CASE(a_page_has_a_bounded_size)
{
    enum { ROWS = 100, SIZE = 100000 };
    char *text = malloc((size_t)ROWS * (SIZE + 100)), *end = text;
    T_CHECK(text);
    t_desk_open();
    end += sprintf(end, "{'do':'submit','specs':[" SPEC "],'tasks':[");
    for (int i = 0; i < ROWS; i++) {
        end += sprintf(end, "%s{'spec':0,'argv':['", i ? "," : "");
        memset(end, 'x', SIZE);
        end += SIZE;
        end += sprintf(end, "']}");
    }
    strcpy(end, "]}");
    ok(text);
    json_t *reply = t_ask_ok("{'do':'tasks','batch':'1','whole':true}");
    T_CMP(json_array_size(json_object_get(reply, "tasks")), <, 50);
    T_CHECK(json_object_get(reply, "next"));
    json_decref(reply);
    reply = t_ask_ok("{'do':'tasks','batch':'1'}");
    T_EQ(json_array_size(json_object_get(reply, "tasks")), ROWS);
    json_decref(reply);
    free(text);
    t_desk_close();
}

T_CASE(results_and_attempts)
{
    t_desk_open();
    submit(4);
    ended(GPQ_TASK(1, 1), claimed(GPQ_TASK(1, 1)), GPQ_OUTCOME_SUCCESS,
          (struct gpq_bytes){ "hello", 5 });
    ended(GPQ_TASK(1, 2), claimed(GPQ_TASK(1, 2)), GPQ_OUTCOME_SUCCESS,
          (struct gpq_bytes){ "\xff\0x", 4 });
    run(GPQ_TASK(1, 3), GPQ_OUTCOME_ERROR);
    T_TEXT(part(ALL_OF("results"), "results.0.text"), "'hello'");
    T_TEXT(part(ALL_OF("results"), "results.0.size"), "5");
    T_TEXT(part(ALL_OF("results"), "results.1.base64"), "'/wB4AA=='");
    T_TEXT(part(ALL_OF("results"), "results.2.outcome"), "'error'");
    T_TEXT(part(ALL_OF("results"), "results.2.size"), "none");
    T_TEXT(part(ALL_OF("results"), "results.3"), "none");
    T_TEXT(part("{'do':'results','batch':'1','most':1}", "next"), "'1.1'");
    ok("{'do':'retry','tasks':['1.3']}");
    run(GPQ_TASK(1, 3), GPQ_OUTCOME_SUCCESS);
    T_TEXT(part("{'do':'attempts','task':'1.3'}", "attempts.0.outcome"), "'error'");
    T_TEXT(part("{'do':'attempts','task':'1.3'}", "attempts.0.devices.names"), "'gpu:0'");
    T_TEXT(part("{'do':'attempts','task':'1.3'}", "attempts.1.text"), "'as the test says'");
    T_TEXT(part("{'do':'attempts','task':'1.3'}", "rounds.0.outcome"), "'error'");
    T_TEXT(part("{'do':'attempts','task':'1.3','most':1}", "next"), "1");
    T_TEXT(part("{'do':'attempts','task':'1.3','after':1}", "attempts.0.attempt"), "2");
    t_ask_refused("{'do':'attempts','task':'1.5'}", "ENOTFOUND", "there is no task 1.5");
    t_desk_close();
}

/* ---- Changes ---- */

/* Q10: a task that waits is over at once; one that runs has the wish, and the answer says so. */
T_CASE(cancel_and_retry)
{
    t_desk_open();
    submit(3);
    (void)claimed(GPQ_TASK(1, 1));
    json_t *reply = t_ask_ok(ALL_OF("cancel"));
    T_TEXT(t_text_of(reply), "{'ended':2,'running':1,'id':null,'ok':true}");
    json_decref(reply);
    T_TEXT(part("{'do':'task','task':'1.1'}", "task.cancel"), "true");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.outcome"), "'cancelled'");
    T_TEXT(part("{'do':'retry','batch':'1','outcomes':['error']}", "count"), "0");
    T_TEXT(part("{'do':'retry','batch':'1','outcomes':['cancelled']}", "count"), "2");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.round"), "2");
    t_desk_close();
}

T_CASE(hold_and_release)
{
    t_desk_open();
    submit(2);
    T_TEXT(part("{'do':'hold','tasks':['1.2']}", "count"), "1");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.holds"), "['user']");
    T_TEXT(part("{'do':'explain','task':'1.2'}", "task.holds"), "['user']");
    T_TEXT(part(ALL_OF("hold"), "count"), "1");
    T_TEXT(part("{'do':'batches'}", "batches.0.held"), "true");
    T_TEXT(part(ALL_OF("release"), "count"), "2");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.state"), "'ready'");
    t_desk_close();
}

T_CASE(set)
{
    t_desk_open();
    submit(4);
    (void)claimed(GPQ_TASK(1, 1));
    json_t *reply =
        t_ask_ok("{'do':'set','batch':'1','priority':-2,'limit':5,'retries':{'crash':2},"
                 "'needs':{'gpus':2,'or':[{'memory':9}]},'backoff':7,'expires':99999999}");
    T_TEXT(t_text_of(reply), "{'count':3,'running':1,'id':null,'ok':true}");
    json_decref(reply);
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.priority"), "-2");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.spec.limit"), "5");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.spec.needs.gpus"), "2");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.spec.needs.or.0.memory"), "9");
    T_TEXT(part("{'do':'task','task':'1.2'}", "task.spec.retries"), "{'crash':2}");
    T_TEXT(part("{'do':'task','task':'1.2','environment':true}", "task.spec.environment"),
           "['A=B']");
    T_TEXT(part("{'do':'task','task':'1.1'}", "task.spec.limit"), "60");
    T_TEXT(part("{'do':'set','tasks':['1.4'],'front':true}", "count"), "1");
    T_TEXT(part("{'do':'explain','task':'1.4'}", "place"), "1");
    T_TEXT(part("{'do':'explain','task':'1.2'}", "place"), "2");
    T_TEXT(part("{'do':'explain','task':'1.2'}", "ready"), "3");
    ok("{'do':'set','tasks':['1.4'],'limit':0}");
    T_TEXT(part("{'do':'task','task':'1.4'}", "task.spec.limit"), "none");
    t_ask_refused("{'do':'set','tasks':['1.1','1.2'],'priority':1}", "EREFUSED",
                  "task 1.1 runs: only tasks that wait can be changed");
    t_ask_refused("{'do':'set','batch':'1','needs':{'gpus':99}}", "EINVAL",
                  "needs.gpus is 99, the maximum is 16");
    t_ask_refused("{'do':'set','batch':'1'}", "EINVAL", "the request changes nothing");
    run(GPQ_TASK(1, 3), GPQ_OUTCOME_SUCCESS);
    t_ask_refused("{'do':'set','tasks':['1.3'],'front':true}", "EREFUSED", "task 1.3 has ended");
    t_desk_close();
}

/* ---- set of many specs ---- */

enum { SPECS = 40 };
static const struct gpq_engine *whole;
static size_t visited;

static int64_t count_visits(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                            const struct gpq_spec *spec, struct gpq_error *e)
{
    visited += which->n_tasks != 0 ? which->n_tasks : 2 * SPECS;
    return whole->respec(s, now, which, spec, e);
}

/* Q11: the tasks of one spec are visited for it, and no other ones. */
T_CASE(set_of_many_specs)
{
    char text[16384] = "{'do':'submit','batch':{'name':'a'},'specs':[";
    char limit[16];
    struct gpq_engine counts;
    t_desk_open();
    for (int i = 0; i < SPECS; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                       "%s{'cwd':'/tmp','limit':%d}", i ? "," : "", i + 1);
    strcat(text, "],'tasks':[");
    for (int i = 0; i < 2 * SPECS; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                       "%s{'spec':%d,'argv':['echo','%d']}", i ? "," : "", i % SPECS, i);
    strcat(text, "]}");
    ok(text);
    (void)claimed(GPQ_TASK(1, 2));
    whole = t_desk.store->engine;
    counts = *whole;
    counts.respec = count_visits;
    t_desk.store->engine = &counts;
    T_TEXT(part("{'do':'set','batch':'1','priority':9}", "count"), "79");
    t_desk.store->engine = whole;
    T_EQ(visited, 79);
    for (uint32_t i = 1; i <= 2 * SPECS; i++) {
        (void)snprintf(text, sizeof(text), "{'do':'task','task':'1.%u'}", i);
        T_TEXT(part(text, "task.priority"), i == 2 ? "0" : "9");
        (void)snprintf(limit, sizeof(limit), "%u", (i - 1) % SPECS + 1);
        T_TEXT(part(text, "task.spec.limit"), limit);
    }
    t_desk_close();
}

/* Q6: what it needs is a part of what it is: other needs do not hide it from its line. */
T_CASE(a_task_with_other_needs_is_joined)
{
    t_desk_open();
    submit(1);
    ok("{'do':'set','batch':'1','needs':{'gpus':2}}");
    T_TEXT(part("{'do':'submit','batch':{'name':'a'},'join':true,'specs':[" SPEC
                "],'tasks':[{'spec':0,'argv':['echo','0']}]}",
                "joined"),
           "1");
    t_desk_close();
}

T_CASE(purge)
{
    t_desk_open();
    submit(2);
    run(GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS);
    run(GPQ_TASK(1, 2), GPQ_OUTCOME_ERROR);
    T_TEXT(part("{'do':'purge','before':1}", "count"), "0");
    T_TEXT(part("{'do':'purge','before':9999999,'keep_failed':true}", "count"), "1");
    t_ask_refused("{'do':'task','task':'1.1'}", "ENOTFOUND", "it was purged, or never was");
    T_TEXT(part("{'do':'purge','before':9999999,'most':5}", "count"), "1");
    t_ask_refused("{'do':'purge'}", "EINVAL", "has no member \"before\"");
    t_desk_close();
}

/* Q7: a pause and a drain stay until they are taken away. */
T_CASE(pause_and_drain)
{
    t_desk_open();
    submit(1);
    ok("{'do':'pause','reason':'lunch'}");
    T_TEXT(part("{'do':'explain','task':'1.1'}", "pauses.0.reason"), "'lunch'");
    ok("{'do':'pause'}"); /* the reason stays */
    T_TEXT(part("{'do':'explain','task':'1.1'}", "pauses.0.reason"), "'lunch'");
    t_ask_refused("{'do':'pause','class':'foo'}", "ENOTFOUND", "class is \"foo\": ");
    ok("{'do':'pause','class':'command'}");
    T_TEXT(part("{'do':'resume','class':'command'}", "was_paused"), "true");
    T_TEXT(part("{'do':'status'}", "marks.0.kind"), "'pause'");
    T_TEXT(part("{'do':'resume'}", "was_paused"), "true");
    T_TEXT(part("{'do':'resume'}", "was_paused"), "false");
    ok("{'do':'drain','device':'gpu:4','reason':'ECC','now':true}");
    T_TEXT(part("{'do':'status'}", "marks.0.subject"), "'gpu:4'");
    T_TEXT(part("{'do':'status'}", "marks.1.kind"), "'evict'");
    T_TEXT(part("{'do':'undrain','device':'gpu:4'}", "was_drained"), "true");
    T_TEXT(part("{'do':'undrain','device':'gpu:4'}", "was_drained"), "false");
    T_TEXT(part("{'do':'status'}", "marks"), "[]");
    t_ask_refused("{'do':'drain'}", "EINVAL", "has no member \"device\"");
    t_ask_refused("{'do':'pause','reason':7}", "EINVAL", "reason is an integer");
    t_desk_close();
}

/* Q8: the conditions that are not met. */
T_CASE(explain)
{
    t_desk_open();
    submit(1);
    ok("{'do':'submit','specs':[{'cwd':'/','after':[{'id':'1.1','when':'ended'},{'id':'1'}]}],"
       "'tasks':[" TASK "]}");
    T_TEXT(part("{'do':'explain','task':'2.1'}", "after"),
           "[{'id':'1','when':'ok'},{'id':'1.1','when':'ended'}]");
    T_TEXT(part("{'do':'explain','task':'2.1'}", "place"), "none");
    T_TEXT(part("{'do':'task','task':'2.1'}", "task.after.1.met"), "false");
    T_TEXT(part("{'do':'explain','task':'1.1'}", "place"), "1");
    T_TEXT(part("{'do':'explain','task':'1.1'}", "reasons.0.reason"), "'SHARE'");
    t_ask_refused("{'do':'explain','task':'3.1'}", "ENOTFOUND", "there is no task 3.1");
    t_desk_close();
}

/* ---- The agent ---- */

T_CASE(stop)
{
    t_desk_open();
    t_ask_refused("{'do':'stop','how':'now'}", "EINVAL", "how is \"now\", expected one of: leave");
    T_CHECK(!t_desk.stop.now);
    ok("{'do':'stop'}");
    T_CHECK(t_desk.stop.now && !t_desk.stop.drains && !t_desk.stop.cancels);
    ok("{'do':'stop','how':'drain'}");
    T_CHECK(t_desk.stop.drains && !t_desk.stop.cancels);
    ok("{'do':'stop','how':'cancel'}");
    T_CHECK(t_desk.stop.cancels);
    T_TEXT(part("{'do':'status'}", "cancelling"), "true");
    t_desk_close();
}

T_CASE(refusals_of_any_request)
{
    t_desk_open();
    t_ask_refused("{}", "EINVAL", "the request has no text \"do\"");
    t_ask_refused("{'do':7}", "EINVAL", "the request has no text \"do\"");
    t_ask_refused("{'do':'dance'}", "EINVAL", "do is \"dance\": there is no such request");
    t_ask_refused("{'do':'status','x':1}", "EINVAL", "the request has no member \"x\", but id, do");
    t_ask_refused("{'do':'wait'}", "EINVAL", "names none of batch, tasks and all");
    t_ask_refused("{'do':'wait','batch':'5'}", "ENOTFOUND", "there is no batch 5");
    t_ask_refused("{'do':'follow','batch':'5'}", "ENOTFOUND", "there is no batch 5");
    json_t *reply = t_ask("{'id':{'mine':[1]},'do':'dance'}");
    T_TEXT(t_text_of(json_object_get(reply, "id")), "{'mine':[1]}");
    T_EQ(json_integer_value(json_object_get(reply, "status")), 2);
    json_decref(reply);
    t_desk_close();
}

/* ---- Texts in the store ---- */

T_CASE(lists_of_texts)
{
    const struct gpq_at at = { NULL, "argv", GPQ_NO_INDEX };
    struct gpq_bytes b;
    struct gpq_error e;
    json_t *list = t_json("['a','','bc']");
    T_EQ(gpq_texts_join(list, &at, 9, &b, &e), 0);
    T_EQ(b.size, 6);
    char **split = gpq_texts_split(b);
    T_TEXT(split[0], "a");
    T_TEXT(split[1], "");
    T_TEXT(split[2], "bc");
    T_CHECK(!split[3]);
    json_t *again = gpq_texts_json(b);
    T_CHECK(json_equal(again, list));
    T_CHECK(!gpq_texts_split((struct gpq_bytes){ "abc", 2 }));
    free((void *)b.data);
    free(split);
    json_decref(list);
    json_decref(again);
}

T_CASE(base64)
{
    static const char *const wrong[] = {
        "A",        "AA",   "AAA",  "AAAAA", "A===",  "AA=A", "=AAA",
        "AA==AAAA", "AB==", "AAB=", "AA-_",  "AA \n", "AA=",  "===="
    };
    char bytes[64], again[64];
    size_t size = 0;
    for (size_t n = 0; n < sizeof(bytes); n++) {
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(i * 37 + n * 101);
        json_t *json = gpq_base64_json((struct gpq_bytes){ bytes, n });
        const char *text = json_string_value(json);
        T_CHECK(gpq_base64_read(text, strlen(text), again, &size));
        T_EQ(size, n);
        T_CHECK(!memcmp(bytes, again, n));
        json_decref(json);
    }
    for (size_t i = 0; i < T_LENGTH(wrong); i++)
        T_CHECK(!gpq_base64_read(wrong[i], strlen(wrong[i]), again, &size));
}

/* What a shape says is read as it was written. */
T_CASE(needs_are_read_as_they_were_written)
{
    static const char *const text[] = {
        "{}", "{'gpus':0}", "{'gpus':3,'memory':5,'cpus':0,'compute':806,'on':'gpu:1,gpu:2'}",
        "{'share':2500,'or':[{'gpus':0,'host_memory':7},{'not_on':'gpu:0'},{'share':10000}]}"
    };
    const struct gpq_at at = { NULL, "needs", GPQ_NO_INDEX };
    for (size_t i = 0; i < 2 * T_LENGTH(text); i++) {
        struct gpq_needs n, again;
        struct gpq_error e;
        json_t *json = t_json(text[i / 2]);
        T_EQ(gpq_needs_read(json, &at, i % 2 ? 8 : 0, &n, &e) < 0, i % 2 == 0 && i / 2 == 3);
        if (i % 2 == 0 && i / 2 == 3) { /* a share of a GPU on a machine that has none */
            json_decref(json);
            continue;
        }
        n.class_name = i % 3 ? NULL : "whisper";
        char *shape = gpq_needs_write(&n);
        T_EQ(gpq_needs_parse((struct gpq_bytes){ shape, strlen(shape) }, &again, &e), 0);
        char *shape_again = gpq_needs_write(&again);
        T_TEXT(shape, shape_again);
        T_EQ(again.n, n.n);
        T_EQ(again.request[0].next != NULL, n.n > 1);
        free(shape);
        free(shape_again);
        gpq_needs_free(&n);
        gpq_needs_free(&again);
        json_decref(json);
    }
}

/* ---- Documents ---- */

/* The section below a heading, up to the next one of its level; freed by the caller. */
static char *section(const char *page, const char *heading)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "\n### %s\n", heading);
    const char *from = strstr(page, text);
    if (!from)
        T_FAIL("the page has no heading \"### %s\"", heading);
    from += strlen(text);
    const char *end = from;
    while (*end && strncmp(end, "\n## ", 4) != 0 && strncmp(end, "\n### ", 5) != 0)
        end++;
    return strndup(from, (size_t)(end - from));
}

static void expect_members(const char *name, const struct gpq_field *f, const char *text,
                           const char *selections)
{
    char member[64];
    bool selects = strstr(text, "[selection](#selections)") != NULL;
    for (; f->name; f++) {
        (void)snprintf(member, sizeof(member), "`%s`", f->name);
        if (!strcmp(f->name, "id") || !strcmp(f->name, "do") || strstr(text, member))
            continue;
        if (!selects || !strstr(selections, member))
            T_FAIL("docs/reference/queue-protocol.md: %s has no %s", name, member);
    }
}

/* Each request of the table stands in the reference, with each of its members. */
T_CASE(each_request_is_documented)
{
    static char page[1 << 17];
    FILE *in = fopen(T_PROTOCOL_PAGE, "re");
    T_CHECK(in);
    T_CMP(fread(page, 1, sizeof(page) - 1, in), <, sizeof(page) - 1);
    T_EQ(fclose(in), 0);
    char *selections = section(page, "Selections"), *submit_text = section(page, "submit");
    for (const struct gpq_verb *v = gpq_verbs; v->name; v++) {
        char *text = section(page, v->name);
        expect_members(v->name, v->fields, text, selections);
        free(text);
    }
    for (const struct gpq_verb *v = gpq_submit_parts; v->name; v++)
        expect_members(v->name, v->fields, submit_text, "");
    free(selections);
    free(submit_text);
}

/* ---- With a dispatcher ---- */

static void begin_dispatcher(const char *devices)
{
    struct gpud_options o = GPUD_OPTIONS_INIT, per_task = GPUD_OPTIONS_INIT;
    struct gpud_class c = GPUD_CLASS_INIT;
    struct gpud_error why = GPUD_ERROR_INIT;
    o.pooled = 1;
    o.devices = devices;
    c.name = GPQ_COMMANDS;
    c.residence = GPUD_EXTERNAL;
    c.options = &per_task;
    if (gpud_dispatcher_create(&t_desk.dispatcher, &o, &why) != 0 ||
        gpud_dispatcher_class_add(t_desk.dispatcher, &c, &why) != 0)
        T_FAIL("%s", why.text);
}

static void end_dispatcher(void)
{
    T_EQ(gpud_dispatcher_close(t_desk.dispatcher, GPUD_FINISH_LEAVE, 0), 0);
    T_EQ(gpud_dispatcher_destroy(&t_desk.dispatcher, NULL), 0);
}

/* Refused with the numbers, unless devices may come. */
T_CASE(needs_that_no_device_can_meet)
{
    static const struct {
        const char *spec, *code, *text;
    } row[] = {
        { "{'cwd':'/','needs':{'gpus':9}}", "EREFUSED",
          "specs[0].needs.gpus is 9: this machine has 2; --allow-wait accepts" },
        { "{'cwd':'/','needs':{'memory':99999999999999}}", "EREFUSED",
          "needs.memory is 99999999999999: the largest GPU here has " },
        { "{'cwd':'/','needs':{'on':'gpu:7'}}", "EREFUSED",
          "specs[0].needs.on is \"gpu:7\": the agent has no such GPU, or several; it has fake:0, "
          "fake:1; --allow-wait" },
        { "{'cwd':'/','needs':{'compute':1000}}", "EREFUSED",
          "needs.compute is 10.0: the highest compute capability of a GPU here is 9.0" },
        { "{'cwd':'/','needs':{'gpus':2,'on':'1'}}", "EREFUSED",
          "needs are --gpus 2, --cpus 1, --on \"fake:1\": each of them can be met alone" },
        { "{'cwd':'/','needs':{'gpus':0,'cpus':100000}}", "EREFUSED", "needs.cpus is 100000: " },
        { "{'cwd':'/','needs':{'gpus':0,'host_memory':1099511627776000}}", "EREFUSED",
          "needs.host_memory is 1000T: the machine has " },
        { "{'class':'whisper'}", "EREFUSED",
          "specs[0] class is \"whisper\": no such class; the config file of the agent has none" },
    };
    char text[512];
    t_desk_open();
    begin_dispatcher("fake:2");
    for (size_t i = 0; i < T_LENGTH(row); i++) {
        (void)snprintf(text, sizeof(text), "{'do':'submit','specs':[%s],'tasks':[]}", row[i].spec);
        t_ask_refused(text, row[i].code, row[i].text);
    }
    ok("{'do':'submit','allow_wait':true,'specs':[{'cwd':'/','needs':{'gpus':9}}],'tasks':[" TASK
       "]}");
    ok("{'do':'submit','specs':[{'cwd':'/','needs':{'gpus':9,'or':[{'gpus':2}]}}],'tasks':[]}");
    t_ask_refused("{'do':'set','batch':'1','needs':{'gpus':3}}", "EREFUSED",
                  "needs.gpus is 3: this machine has 2");
    ok("{'do':'set','batch':'1','needs':{'gpus':2}}");
    end_dispatcher();
    t_desk_close();
}

/* The mark has the UUID of the device: names count anew after a reboot. */
T_CASE(drain_of_a_device)
{
    t_desk_open();
    begin_dispatcher("fake:2");
    t_ask_refused("{'do':'drain','device':'gpu:7'}", "ENOTFOUND", "device is \"gpu:7\"");
    ok("{'do':'drain','device':'fake:1'}");
    T_CHECK(strstr(part("{'do':'status'}", "marks.0.subject"), "GPU-"));
    T_TEXT(part("{'do':'status'}", "marks.0.device"), "'fake:1'");
    T_TEXT(part("{'do':'undrain','device':'fake:1'}", "was_drained"), "true");
    ok("{'do':'drain','device':'GPU-fa4e0001'}");
    T_TEXT(part("{'do':'undrain','device':'1'}", "was_drained"), "true");
    t_ask_refused("{'do':'drain','device':'GPU-fa4e'}", "ENOTFOUND",
                  "no such device, or several; it has fake:0, fake:1");
    end_dispatcher();
    t_desk_close();
}
