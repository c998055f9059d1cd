/* SPDX-License-Identifier: MIT */
/* requests.c - the table of requests, and what their functions share. */
#include "queue/agent/requests.h"

#include <string.h>

#define VERB(name) { #name, gpq_do_##name, gpq_##name##_fields },
const struct gpq_verb gpq_verbs[] = { GPQ_VERB_MAP(VERB){ 0 } };
#undef VERB

json_t *gpq_error_json(json_t *id, const struct gpq_error *e)
{
    return json_pack("{s:O?, s:b, s:s, s:i, s:o}", "id", id, "ok", 0, "code",
                     gpq_error_name(e->code), "status", gpq_error_status(e->code), "error",
                     gpq_text_json(e->text));
}

json_t *gpq_no_memory(struct gpq_call *c)
{
    gpq_fail(c->e, GPQ_ENOMEM, "no memory for the reply");
    return NULL;
}

bool gpq_reply_set(struct gpq_call *c, json_t *reply, const char *name, json_t *value)
{
    if (json_object_set_new(reply, name, value) == 0)
        return true;
    gpq_no_memory(c);
    return false;
}

int gpq_reply_list(struct gpq_call *c, json_t *reply, const char *name, json_t *list, int code)
{
    if (list && code >= 0 && json_array_size(list) != 0)
        return gpq_reply_set(c, reply, name, list) ? 0 : GPQ_ENOMEM;
    json_decref(list);
    if (!list || code == GPQ_ENOMEM)
        (void)gpq_no_memory(c);
    return list ? (code < 0 ? code : 0) : GPQ_ENOMEM;
}

json_t *gpq_reply_end(struct gpq_call *c, json_t *reply)
{
    if (!reply && c->e->code == 0)
        gpq_no_memory(c);
    if (c->e->code == 0)
        return reply;
    json_decref(reply);
    return NULL;
}

int gpq_call_read(struct gpq_call *c, const struct gpq_field *fields, void *record)
{
    return gpq_fields_read(c->request, NULL, fields, record, c->e);
}

static const struct gpq_verb *find(json_t *request, struct gpq_error *e)
{
    const char *name = json_string_value(json_object_get(request, "do"));
    const struct gpq_verb *v = gpq_verbs;
    if (!json_is_object(request) || !name) {
        gpq_fail(e, GPQ_EINVAL, "the request has no text \"do\", which names what to do");
        return NULL;
    }
    while (v->name && strcmp(v->name, name) != 0)
        v++;
    if (v->name)
        return v;
    gpq_fail(e, GPQ_EINVAL, "do is \"%.40s\": there is no such request", name);
    return NULL;
}

json_t *gpq_request(struct gpq_agent *a, uint64_t now, json_t *request, struct gpq_wish *wish)
{
    struct gpq_error e = { 0 };
    struct gpq_call c = { a, now, request, wish, &e };
    const struct gpq_verb *v = find(request, &e);
    json_t *id = json_object_get(request, "id");
    json_t *reply = v ? gpq_reply_end(&c, v->run(&c)) : NULL;
    if (reply && (json_object_set(reply, "id", id ? id : json_null()) != 0 ||
                  json_object_set_new(reply, "ok", json_true()) != 0)) {
        json_decref(reply);
        reply = NULL;
        gpq_no_memory(&c);
    }
    return reply ? reply : gpq_error_json(id, &e);
}
