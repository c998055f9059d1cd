/* SPDX-License-Identifier: MIT */
/* trace.c - a night as a trace for Perfetto. */
#include "view/trace/trace.h"

#include "night.h"
#include "output.h"
#include "report.h"

int trace_run(const struct call *call)
{
    const char *name = output_name(call, "gpudispatch-trace.json");
    struct gpv_night *night;
    struct output out;
    int status = night_read(call, SIZE_MAX, &night);

    if (status)
        return status;
    status = output_open(&out, name);
    if (status == 0) {
        if (gpv_trace_write(night, out.f))
            status = night_no_memory(call);
        status = output_close(&out, status);
    }
    gpv_night_free(night);
    if (status == 0)
        output_say(call, name);
    return status;
}
