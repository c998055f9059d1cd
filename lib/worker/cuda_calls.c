/* SPDX-License-Identifier: MIT */
#include "worker/cuda_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpudispatch/error.h"

#define LIBRARY "libcuda.so.1"
#define CONTROL_FILE "/dev/nvidiactl" /* every use of the driver opens it */

struct known {
    gpi_cu_result code;
    bool sticky;
    const char *name, *advice;
};

#define X_KNOWN(code, name, sticky, advice) { code, sticky, "cudaError" #name, advice },
static const struct known known[] = { GPI_CU_ERRORS(X_KNOWN) };
#undef X_KNOWN

static const struct known *find(gpi_cu_result code)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return &known[i];
    return NULL;
}

bool gpi_cuda_is_sticky(gpi_cu_result code)
{
    const struct known *k = find(code);

    return k && k->sticky;
}

void gpi_cuda_words(const struct gpi_cuda_calls *call, gpi_cu_result code, char *text, size_t size)
{
    const struct known *k = find(code);
    const char *name = k ? k->name : NULL, *words = NULL;

    if (!name && call->error_name(code, &name))
        name = NULL;
    if (call->error_text(code, &words))
        words = NULL;
    snprintf(text, size, "%s (%d)%s%s", name ? name : "CUDA error", code, words ? ": " : "",
             words ? words : "");
}

/* Returns why an installed driver does not work, as far as this file shows; NULL if it is fine. */
static const char *look_at_control(void)
{
    if (access(CONTROL_FILE, R_OK | W_OK) == 0)
        return NULL;
    if (errno == EACCES || errno == EPERM)
        return "no permission to open " CONTROL_FILE;
    return errno == ENOENT ? "there is no " CONTROL_FILE
                             ": load the kernel module, or start the container with GPUs"
                           : NULL;
}

int gpi_cuda_refuse(const struct gpi_cuda_calls *call, gpi_cu_result code, const char *what,
                    char *text, size_t size)
{
    const struct known *k = find(code);
    const char *advice = k ? k->advice : "", *control = NULL;
    char words[160];

    if (code == GPI_CU_NO_DEVICE || code == GPI_CU_OPERATING_SYSTEM || code == GPI_CU_UNKNOWN)
        control = look_at_control();
    advice = control ? control : advice;
    gpi_cuda_words(call, code, words, sizeof words);
    snprintf(text, size, "%s: %s%s%s", what, words, *advice ? "; " : "", advice);
    return GPUD_EDEVICE;
}

/* ---- loading ---- */

static void *find_symbol(void *library, const char *symbol, const char *older)
{
    void *at = dlsym(library, symbol);

    return at || !*older ? at : dlsym(library, older);
}

/* Returns NULL, or the first missing call. */
static const char *find_all(struct gpi_cuda_calls *c, void *library)
{
    void *at;

#define X_FIND(member, symbol, older, parameters)          \
    if (!(at = find_symbol(library, #symbol, older)))      \
        return #symbol;                                    \
    memcpy(&c->member, &at, sizeof at);
    GPI_CU_CALLS(X_FIND)
#undef X_FIND
    c->mig_blind = !dlsym(library, "cuDeviceGetUuid_v2");
    return NULL;
}

int gpi_cuda_load(struct gpi_cuda_calls *c, char *text, size_t size)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* open as long as this process */
    const char *missing, *why;

    if (!library) {
        why = dlerror();
        snprintf(text, size, "no NVIDIA driver: %s", why ? why : LIBRARY " does not load");
        return GPUD_EDEVICE;
    }
    missing = find_all(c, library);
    if (!missing)
        return 0;
    snprintf(text, size, "the driver is too old: its " LIBRARY " has no %s", missing);
    return GPUD_EDEVICE;
}
