/* SPDX-License-Identifier: MIT */
/*
 * plugin.h - workers from a shared object: for hosts that are not written in C, that use CUDA and
 * threads already, or that want to exchange the code of their workers.
 *
 * The host names the object in option `plugin`.  gpud_dispatcher_create refuses a file that is no
 * ELF file for this machine with GPUD_EPLUGIN.  The library executes its bundled worker program,
 * gpudispatch-worker, which loads the object, looks up the one symbol `gpud_plugin`, and runs the
 * definition that option `definition` names.  The host needs no gpud_init for that.
 *
 * Smallest use: a shared object made of
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
 * as a shared object, which need not be linked with libgpudispatch, and in the host
 *
 *     o.plugin = "/opt/me/echo.so"; o.devices = "cpu:4";
 *     gpud_dispatcher_create(&d, &o, NULL);
 *
 * `gpudispatch-worker echo.so` by hand tells whether the object is in order.
 *
 * The mistake people make: -fvisibility=hidden with a plain struct in place of GPUD_PLUGIN, which
 * leaves the symbol out of the object.
 *
 * gpudispatch.h does not include this header; only plugins and worker programs need it.
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

/* Number of the layout of struct gpud_plugin and of what its definitions may call. */
#define GPUD_PLUGIN_ABI 1

/* What a plugin shows. */
struct gpud_plugin {
    uint32_t struct_size;
    uint32_t abi;           /* GPUD_PLUGIN_ABI of the header the plugin was compiled with */
    const struct gpud_definition *definitions; /* must stay as long as the process */
    uint32_t n_definitions; /* 1 to 1,024 */
    uint32_t reserved;
};

#if defined(__GNUC__)
#define GPUD_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define GPUD_PLUGIN_EXPORT
#endif

/* The one symbol that is looked up.  Each plugin defines it; the library has none. */
extern GPUD_PLUGIN_EXPORT const struct gpud_plugin gpud_plugin;

/* Defines it, from an array of definitions. */
#define GPUD_PLUGIN(array)                                                                      \
    const struct gpud_plugin gpud_plugin = { (uint32_t)sizeof(struct gpud_plugin), GPUD_PLUGIN_ABI, (array), \
                                             (uint32_t)(sizeof(array) / sizeof((array)[0])), 0 }

/*
 * Is the bundled worker program: what its main calls, and may be called by a program that wants to
 * take its place (environment GPUD_WORKER_PROGRAM).  `argv[1]` is the plugin.
 * In a process that a dispatcher has executed it does not return: an object that cannot be loaded
 * (dlopen with RTLD_NOW and RTLD_LOCAL), has no symbol gpud_plugin, or another ABI, is a failed
 * setup with code GPUD_EPLUGIN and a text.  Called by hand it checks the object.
 * Returns: 0 when the object is in order; GPUD_EINVAL (not one argument), GPUD_EPLUGIN,
 * GPUD_ESYSTEM.
 * Thread: the main one.  Process: worker.  Since: 1.
 */
GPUD_API int gpud_worker_main(int argc, char **argv, struct gpud_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
