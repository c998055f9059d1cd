/* SPDX-License-Identifier: MIT */
/*
 * plugin.h - workers from a shared object.
 *
 * A plugin suits hosts that are not written in C, that already use CUDA and threads, or
 * that want to exchange the code of their workers.
 *
 * The host names the object in option `plugin`.  gpud_dispatcher_create refuses a file
 * that is no ELF file for this machine with GPUD_EPLUGIN.  The library executes its
 * bundled worker program, gpudispatch-worker.  That program loads the object, finds the
 * one symbol `gpud_plugin`, and runs the definition that option `definition` names.  The
 * host needs no gpud_init.
 *
 * Smallest use: compile this as a shared object, which need not be linked with
 * libgpudispatch,
 *
 *     #include <gpudispatch/gpudispatch.h>
 *     #include <gpudispatch/plugin.h>
 *     static int process(gpud_task *t, void *state)
 *     {
 *         return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
 *     }
 *     static const struct gpud_definition definitions[] = {
 *         GPUD_DEFINITION("echo", NULL, process, NULL) };
 *     GPUD_PLUGIN(definitions);
 *
 * and name it in the host:
 *
 *     o.plugin = "/opt/me/echo.so"; o.devices = "cpu:4";
 *     gpud_dispatcher_create(&d, &o, NULL);
 *
 * By hand, the program that `pkg-config --variable=worker_program gpudispatch` names
 * checks an object: its one argument is the file.
 *
 * The mistake people make: -fvisibility=hidden with a plain struct in place of
 * GPUD_PLUGIN, which leaves the symbol out of the object.
 *
 * gpudispatch.h does not include this header, since only plugins and worker programs need
 * it.
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_PLUGIN_H
#define GPUDISPATCH_PLUGIN_H

#include "error.h"
#include "worker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of struct gpud_plugin's layout, and of the calls its definitions make. */
#define GPUD_PLUGIN_ABI 1

/* The contents of a plugin: its definitions. */
struct gpud_plugin {
    uint32_t struct_size;   /* set by GPUD_PLUGIN */
    uint32_t abi;           /* GPUD_PLUGIN_ABI of the plugin's header */
    const struct gpud_definition *definitions; /* valid as long as the process */
    uint32_t n_definitions; /* 1 to 1,024 */
    uint32_t reserved;      /* 0 */
};

/* Exports the symbol also where -fvisibility=hidden is set. */
#if defined(__GNUC__)
#define GPUD_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define GPUD_PLUGIN_EXPORT
#endif

/*
 * The one symbol that gpudispatch-worker finds.
 *
 * Each plugin defines it; the library has none.
 */
extern GPUD_PLUGIN_EXPORT const struct gpud_plugin gpud_plugin;

/* Defines the symbol gpud_plugin from an array of definitions. */
#define GPUD_PLUGIN(array)                                                               \
    const struct gpud_plugin gpud_plugin = {                                             \
        (uint32_t)sizeof(struct gpud_plugin), GPUD_PLUGIN_ABI, (array),                  \
        (uint32_t)(sizeof(array) / sizeof((array)[0])), 0                                \
    }

/*
 * Runs the bundled worker program, with argv[1] as the plugin.
 *
 * The main function of gpudispatch-worker calls it.  A program that takes the place of
 * gpudispatch-worker (environment variable GPUD_WORKER_PROGRAM) may call it too.
 *
 * In a process that a dispatcher has executed the call does not return: the process
 * becomes the worker.  There a failure is a failed setup with a code and a text.  The
 * code is GPUD_EPLUGIN if the object cannot be loaded (dlopen with RTLD_NOW and
 * RTLD_LOCAL), has no symbol gpud_plugin, or has another ABI.  In any other process the
 * call checks the object.
 *
 * Parameters:
 *   argc    as in main
 *   argv    as in main: argv[1] is the path of the plugin
 *   reterr  filled on failure; may be NULL
 * Returns: 0, the object is in order.
 * Errors:
 *   GPUD_EINVAL   argv does not have exactly one argument (argc is not 2)
 *   GPUD_EPLUGIN  argv[1] cannot be loaded, has no symbol gpud_plugin, has another ABI,
 *                 or its definitions are ones that gpud_init refuses
 * Owns: the object stays loaded; its code is the worker.
 * Thread: the main one.  Process: worker.  Since: 1.
 * See: GPUD_PLUGIN, option plugin.
 */
GPUD_API int gpud_worker_main(int argc, char **argv, struct gpud_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
