/* SPDX-License-Identifier: MIT */
/* requests.c - each request of a client, and each refusal with its text. */
#include "desk.h"

#include <string.h>

#define SPEC "{'cwd':'/tmp','environment':['A=B']}"
#define TASK "{'spec':0,'argv':['true']}"

T_CASE(a_submit_and_its_rows)
{
    t_desk_open();
    json_t *reply = t_ask_ok("{'id':7,'do':'submit','request':'r1','batch':{'name':'night'},"
                             "'specs':[" SPEC "],'tasks':[" TASK "," TASK "]}");
    T_TEXT(t_text_of(reply),
           "{'batch':'1','added':2,'joined':0,'again':0,'changed':0,'id':7,'ok':true}");
    json_decref(reply);
    reply = t_ask_ok("{'do':'tasks','batch':'1','whole':true}");
    printf("%s\n", t_text_of(reply));
    json_decref(reply);
    reply = t_ask_ok("{'do':'task','task':'1.1','environment':true}");
    printf("%s\n", t_text_of(reply));
    json_decref(reply);
    reply = t_ask_ok("{'do':'batches'}");
    printf("%s\n", t_text_of(reply));
    json_decref(reply);
    reply = t_ask_ok("{'do':'status'}");
    printf("%s\n", t_text_of(reply));
    json_decref(reply);
    reply = t_ask_ok("{'do':'cancel','tasks':['1.1']}");
    printf("%s\n", t_text_of(reply));
    json_decref(reply);
    t_ask_refused("{'do':'cancel','tasks':['1.9']}", "ENOTFOUND", "there is no task 1.9");
    t_desk_close();
}
