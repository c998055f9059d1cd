/* SPDX-License-Identifier: MIT */
/* option.c - options of verbs as numbers and times. */
#include "queue/client/option.h"

#include "queue/client/clock.h"
#include "queue/config/values.h"

#define DAY (UINT64_C(24) * 3600 * 1000000000)

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

int gpq_option_time(const struct call *call, enum option_id option, uint64_t after, uint64_t *ret)
{
    struct gpq_error e = { 0 };
    const char *text = call->value[option];
    return judge(call, option, text ? gpq_value_time(text, after, ret, &e) : 0, &e);
}

int gpq_option_since(const struct call *call, enum option_id option, uint64_t *ret)
{
    struct gpq_error e = { 0 };
    const char *text = call->value[option];
    uint64_t now = gpq_now_wall(), time, age;
    if (!text)
        return 0;
    if (gpq_value_duration(text, &age, &e) == 0) {
        *ret = now > age ? now - age : 1;
        return 0;
    }
    /* 22:00 is the next one after the time, which is a day ago. */
    if (*text == '+' || gpq_value_time(text, now - DAY, &time, &e) != 0)
        return usage(call->verb,
                     "%s: --%s: '%s': expected a duration such as 8h, or a time such as 22:00 or "
                     "2026-01-31T22:00",
                     call->verb->name, options[option].name, text);
    if (time > now)
        return usage(call->verb, "%s: --%s: '%s' has not been yet", call->verb->name,
                     options[option].name, text);
    *ret = time;
    return 0;
}
