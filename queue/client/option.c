/* SPDX-License-Identifier: MIT */
/* option.c - options of verbs as numbers and times. */
#include "queue/client/option.h"

#include "queue/config/values.h"

static int judge(const struct call *call, enum option_id option, int code,
                 const struct gpq_error *e)
{
    return code < 0
               ? usage(call->verb, "%s: --%s: %s", call->verb->name, options[option].name, e->text)
               : 0;
}

int gpq_option_number(const struct call *call, enum option_id option, uint64_t least, uint64_t most,
                      uint64_t *ret)
{
    struct gpq_error e = { 0 };
    const char *text = call->value[option];
    return judge(call, option, text ? gpq_value_number(text, least, most, ret, &e) : 0, &e);
}

int gpq_option_duration(const struct call *call, enum option_id option, uint64_t *ret_ns)
{
    struct gpq_error e = { 0 };
    const char *text = call->value[option];
    return judge(call, option, text ? gpq_value_duration(text, ret_ns, &e) : 0, &e);
}
