/* SPDX-License-Identifier: MIT */
/*
 * canary.c - a small kernel with a known result.  It is PTX, of an instruction set that every
 * driver in use can translate for every device since sm_50.  If the driver cannot translate (a
 * container without libnvidia-ptxjitcompiler, or translation switched off), the device fills memory
 * instead, and the worker fetches that.
 */
#include <stdio.h>

#include "gpudispatch/error.h"
#include "worker/cuda_state.h"

#define BLOCKS 8u
#define THREADS 128u
#define WORDS ((size_t)BLOCKS * THREADS)
#define ROUNDS 64u
#define SEED 0x67707564u
#define FACTOR 1664525u
#define SUMMAND 1013904223u

/* out[i] = i ^ seed, then ROUNDS times x = x * FACTOR + SUMMAND. */
static const char kernel[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry gpud_canary(.param .u64 out, .param .u32 seed)\n"
    "{\n"
    "    .reg .pred %more;\n"
    "    .reg .b32 %index, %block, %size, %x, %seed, %left;\n"
    "    .reg .b64 %at, %off;\n"
    "    ld.param.u64 %at, [out];\n"
    "    ld.param.u32 %seed, [seed];\n"
    "    cvta.to.global.u64 %at, %at;\n"
    "    mov.u32 %index, %tid.x;\n"
    "    mov.u32 %block, %ctaid.x;\n"
    "    mov.u32 %size, %ntid.x;\n"
    "    mad.lo.u32 %index, %block, %size, %index;\n"
    "    xor.b32 %x, %index, %seed;\n"
    "    mov.u32 %left, 64;\n"
    "again:\n"
    "    mad.lo.u32 %x, %x, 1664525, 1013904223;\n"
    "    sub.u32 %left, %left, 1;\n"
    "    setp.ne.u32 %more, %left, 0;\n"
    "    @%more bra again;\n"
    "    mul.wide.u32 %off, %index, 4;\n"
    "    add.u64 %at, %at, %off;\n"
    "    st.global.u32 [%at], %x;\n"
    "    ret;\n"
    "}\n";

static uint32_t expected(uint32_t index)
{
    uint32_t x = index ^ SEED;

    for (uint32_t i = 0; i < ROUNDS; i++)
        x = x * FACTOR + SUMMAND;
    return x;
}

static int failed(struct gpi_cuda *c, gpi_cu_result r, const char *what, char *text, size_t size)
{
    return r ? gpi_cuda_refuse(&c->call, r, what, text, size) : 0;
}

/* Returns whether the driver cannot translate: no evidence against the device. */
static bool cannot_translate(gpi_cu_result r)
{
    return r == GPI_CU_JIT_COMPILER_NOT_FOUND || r == GPI_CU_JIT_COMPILATION_DISABLED ||
           r == GPI_CU_UNSUPPORTED_PTX_VERSION || r == GPI_CU_NO_BINARY_FOR_GPU;
}

static gpi_cu_result launch(struct gpi_cuda *c, gpi_cu_module module, gpi_cu_pointer out)
{
    unsigned seed = SEED;
    void *parameters[] = { &out, &seed };
    gpi_cu_function function;
    gpi_cu_result r = c->call.module_function(&function, module, "gpud_canary");

    if (r == GPI_CU_OK)
        r = c->call.launch(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL);
    return r ? r : c->call.context_sync();
}

/* Lets the device fill `out`; *ret_plain: with SEED everywhere. */
static gpi_cu_result fill(struct gpi_cuda *c, gpi_cu_pointer out, bool *ret_plain)
{
    gpi_cu_module module;
    gpi_cu_result r = c->call.module_load(&module, kernel);

    *ret_plain = cannot_translate(r);
    if (*ret_plain)
        return c->call.memory_set(out, SEED, WORDS);
    if (r)
        return r;
    r = launch(c, module, out);
    (void)c->call.module_unload(module);
    return r;
}

static int compare(const uint32_t *seen, bool plain, char *text, size_t size)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t right = plain ? SEED : expected(i);
        if (seen[i] == right)
            continue;
        snprintf(text, size, "wrong result: word %u is %08x, expected %08x", i, seen[i], right);
        return GPUD_EDEVICE;
    }
    return 0;
}

int gpi_cuda_canary_run(struct gpi_cuda *c, char *text, size_t size)
{
    static uint32_t seen[WORDS]; /* static: the worker is a process of its own */
    gpi_cu_pointer out;
    bool plain;
    int code = failed(c, c->call.memory_alloc(&out, sizeof seen),
                      "no memory for the kernel's result", text, size);

    if (code)
        return code;
    code = failed(c, fill(c, out, &plain), "the kernel", text, size);
    if (code == 0)
        code = failed(c, c->call.memory_fetch(seen, out, sizeof seen), "the kernel's result", text,
                      size);
    (void)c->call.memory_free(out);
    return code ? code : compare(seen, plain, text, size);
}
