/* SPDX-License-Identifier: MIT */
/* nvml.c - loads NVML at run time and enumerates the GPUs. */
#include "device/nvml.h"

#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/numa.h"

/* ---- loading ---- */

/* Returns the first symbol that is there, of several, separated by blanks. */
static void *find(void *library, const char *symbols)
{
    char name[80];
    void *found = NULL;

    while (*symbols && !found) {
        const size_t n = strcspn(symbols, " ");
        if (n < sizeof(name)) {
            memcpy(name, symbols, n);
            name[n] = '\0';
            found = dlsym(library, name);
        }
        symbols += n;
        symbols += strspn(symbols, " ");
    }
    return found;
}

/* Fills the table; returns a needed symbol that is missing, or NULL. */
static const char *find_all(void *library, struct gpi_nvml *ret)
{
    const char *missing = NULL;
    void *found;

#define X_FIND(member, symbols, needed, parameters)                 \
    found = find(library, symbols);                                 \
    memcpy(&ret->member, &found, sizeof(found)); /* ISO C has no cast for it */ \
    if ((needed) && !found)                                         \
        missing = symbols;
    GPI_NVML_MAP(X_FIND)
#undef X_FIND
    return missing;
}

/* Returns whether the loader's message means that the library is not here, rather than that it or a
 * library it needs is broken. */
static bool is_absence(const char *why)
{
    static const char of_glibc[] =
        "libnvidia-ml.so.1: cannot open shared object file: No such file";
    static const char of_musl[] = "Error loading shared library libnvidia-ml.so.1: No such file";

    return !strncmp(why, of_glibc, sizeof(of_glibc) - 1) ||
           !strncmp(why, of_musl, sizeof(of_musl) - 1);
}

/* Returns the library, or NULL and the loader's message in the language that is_absence reads: the
 * host may have called setlocale. */
static void *load_library(const char **ret_why)
{
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    *ret_why = library ? NULL : dlerror();
    (void)uselocale(before);
    if (plain)
        freelocale(plain);
    return library;
}

static bool load(struct gpi_nvml *call, struct gpi_driver *d)
{
    const char *why, *missing;
    void *library = load_library(&why);
    char text[160];

    if (!library) {
        const bool here = why && !is_absence(why);
        gpi_driver_say(d, here ? GPUD_DRIVER_FAILED : GPUD_DRIVER_NONE, here ? why : NULL);
        return false;
    }
    missing = find_all(library, call);
    if (missing) {
        (void)snprintf(text, sizeof(text), "its NVML has no %s", missing);
        gpi_driver_say(d, GPUD_DRIVER_TOO_OLD, text);
    }
    return !missing;
}

/* Reads the versions, for people and for one workaround. */
static void read_versions(struct gpi_nvml_state *s)
{
    struct gpi_driver *d = &s->driver;
    unsigned major = 0, minor = 0;
    int32_t cuda = 0;

    if (!s->call.driver_version ||
        s->call.driver_version(d->driver_version, sizeof(d->driver_version)))
        d->driver_version[0] = '\0';
    if (!s->call.nvml_version || s->call.nvml_version(d->nvml_version, sizeof(d->nvml_version)))
        d->nvml_version[0] = '\0';
    d->driver_version[sizeof(d->driver_version) - 1] =
        d->nvml_version[sizeof(d->nvml_version) - 1] = '\0';
    if (s->call.cuda_version && !s->call.cuda_version(&cuda) && cuda > 0)
        d->cuda_version = (uint32_t)cuda;
    if (sscanf(d->driver_version, "%u.%u", &major, &minor) == 2)
        /* XXX the version with the fix is from memory; entries are checked in any case */
        s->second_process_list = major == 535 && minor < 104;
}

static void say_code(struct gpi_driver *d, const char *call, int32_t code)
{
    const char *advice = gpi_nvml_advice(code);
    char text[80];

    (void)snprintf(text, sizeof(text), "%s: NVML %d", call, code);
    gpi_driver_say(d, gpi_driver_of(code), text);
    if (advice)
        (void)snprintf(d->text, sizeof(d->text), "%s: %s", text, advice);
}

/* Some machines have no module to load and no package to install: writes their remedy. */
static void say_elsewhere(struct gpi_driver *d)
{
    const char *text = gpi_driver_elsewhere("");

    if (text && (d->state == GPUD_DRIVER_NONE || d->state == GPUD_DRIVER_NOT_LOADED))
        (void)snprintf(d->text, sizeof(d->text), "%s", text);
}

/* Initialises NVML once and never shuts it down: repeated cycles fail in some drivers, a shutdown
 * during a query crashes, and the process ends anyway. */
static void *nvml_open(uint32_t n, const char *script, uint64_t zero, struct gpi_driver *ret_driver)
{
    struct gpi_nvml_state *s = calloc(1, sizeof(*s));
    int32_t code = 0;

    (void)n, (void)zero;
    *ret_driver = (struct gpi_driver){ .state = GPUD_DRIVER_FAILED };
    if (s && script && *script)
        s->only = strdup(script);
    if (!s || (script && *script && !s->only)) {
        gpi_driver_say(ret_driver, GPUD_DRIVER_FAILED, "out of memory");
        free(s);
        return NULL;
    }
    s->ear.again = 60 * GPI_S;
    s->ear.again_at = GPI_NEVER;
    if (load(&s->call, ret_driver)) {
        code = s->call.init();
        if (!code) {
            gpi_driver_say(&s->driver, GPUD_DRIVER_OK, NULL);
            read_versions(s);
            *ret_driver = s->driver;
            return s;
        }
        say_code(ret_driver, "nvmlInit", code);
    }
    say_elsewhere(ret_driver);
    free((void *)s->only);
    free(s);
    return NULL;
}

/* ---- identity ---- */

static void read_pci(const struct gpi_nvml *call, gpi_nvml_device gpu, struct gpi_device *d)
{
    struct gpi_nvml_pci pci;

    memset(&pci, 0, sizeof(pci));
    if (!call->pci || call->pci(gpu, &pci))
        return;
    pci.id[sizeof(pci.id) - 1] = '\0';
    (void)snprintf(d->pci, sizeof(d->pci), "%s", pci.id);
}

/* Reads the facts that a GPU and an instance have in common. */
static bool read_common(const struct gpi_nvml *call, gpi_nvml_device handle, struct gpi_device *d,
                        int32_t *ret_code)
{
    struct gpi_nvml_memory memory;
    int32_t mode;

    *ret_code = call->uuid(handle, d->uuid, GPI_NVML_UUID);
    if (*ret_code)
        return false;
    d->uuid[sizeof(d->uuid) - 1] = '\0';
    if (call->name && call->name(handle, d->model, GPI_NVML_NAME))
        d->model[0] = '\0';
    d->model[sizeof(d->model) - 1] = '\0';
    if (!call->memory(handle, &memory))
        d->memory_total = memory.total;
    if (call->compute_mode && !call->compute_mode(handle, &mode) && mode >= 0)
        d->compute_mode = (uint32_t)mode;
    return true;
}

static void read_capability(const struct gpi_nvml *call, gpi_nvml_device gpu, struct gpi_device *d)
{
    int32_t major, minor;

    if (call->capability && !call->capability(gpu, &major, &minor) && major > 0 && minor >= 0) {
        d->compute_major = (uint32_t)major;
        d->compute_minor = (uint32_t)minor;
    }
}

/* Takes "1g.10gb" out of "NVIDIA A100 MIG 1g.10gb", or makes it of the instance's attributes. */
static void profile(const struct gpi_nvml *call, gpi_nvml_device handle, struct gpi_device *d)
{
    const char *at = strstr(d->model, "MIG ");
    struct gpi_nvml_attributes a;

    if (at)
        (void)snprintf(d->mig_profile, sizeof(d->mig_profile), "%.*s",
                       (int)sizeof(d->mig_profile) - 1, at + 4);
    else if (call->attributes && !call->attributes(handle, &a))
        (void)snprintf(d->mig_profile, sizeof(d->mig_profile), "%ug.%llugb", a.gpu_slices,
                       (unsigned long long)((a.memory_mib + 1023) / 1024));
}

/* ---- enumeration ---- */

/* A count above this is wrong: no machine has that many GPUs, and to try each index would take too
 * long. */
#define INDICES 4096u

/* An enumeration that is under way. */
struct listing {
    struct gpi_nvml_state *s;
    struct gpi_nvml_table *table;
    struct gpi_device *rows;
    uint32_t max;
    struct gpi_unopened unopened;
};

static struct gpi_device *add(struct listing *l, gpi_nvml_device handle, gpi_nvml_device gpu,
                              uint32_t index)
{
    struct gpi_nvml_row *row = &l->table->row[l->table->n];
    struct gpi_device *d = &l->rows[l->table->n];

    *row = (struct gpi_nvml_row){ .handle = handle,
                                  .gpu = gpu,
                                  .gpu_instance = GPI_NVML_NO_INSTANCE,
                                  .compute_instance = GPI_NVML_NO_INSTANCE };
    *d = (struct gpi_device){ .kind = GPUD_DEVICE_GPU,
                              .index = index,
                              .mig_index = GPI_UNKNOWN32,
                              .compute_mode = GPI_UNKNOWN32,
                              .numa_node = GPI_UNKNOWN32,
                              .minor = GPI_UNKNOWN32 };
    l->table->n++;
    return d;
}

static void keep_uuid(struct listing *l, const struct gpi_device *d)
{
    memcpy(l->table->row[l->table->n - 1].uuid, d->uuid, sizeof(d->uuid));
}

static void list_instance(struct listing *l, gpi_nvml_device gpu, const struct gpi_device *parent,
                          uint32_t k, uint32_t *ret_parts)
{
    const struct gpi_nvml *call = &l->s->call;
    struct gpi_nvml_row *row;
    struct gpi_device *d;
    gpi_nvml_device handle;
    int32_t code;

    if (l->table->n == l->max || call->mig_by_index(gpu, k, &handle))
        return; /* an index without an instance returns an error */
    d = add(l, handle, gpu, parent->index);
    row = &l->table->row[l->table->n - 1];
    d->kind = GPUD_DEVICE_MIG;
    d->mig_index = k;
    if (!read_common(call, handle, d, &code)) {
        l->table->n--;
        return;
    }
    keep_uuid(l, d);
    d->compute_major = parent->compute_major;
    d->compute_minor = parent->compute_minor;
    d->numa_node = parent->numa_node;
    d->minor = parent->minor;
    memcpy(d->pci, parent->pci, sizeof(d->pci));
    memcpy(d->parent_uuid, parent->uuid, sizeof(d->parent_uuid));
    profile(call, handle, d);
    (void)snprintf(d->name, sizeof(d->name), "gpu:%u:%u", parent->index, k);
    if (!call->gpu_instance || call->gpu_instance(handle, &row->gpu_instance))
        row->gpu_instance = GPI_NVML_NO_INSTANCE;
    if (!call->compute_instance || call->compute_instance(handle, &row->compute_instance))
        row->compute_instance = GPI_NVML_NO_INSTANCE;
    ++*ret_parts;
}

static void list_instances(struct listing *l, gpi_nvml_device gpu, struct gpi_device *parent)
{
    const struct gpi_nvml *call = &l->s->call;
    uint32_t mode, pending, count, parts = 0;

    if (!call->mig_mode || !call->mig_count || !call->mig_by_index ||
        call->mig_mode(gpu, &mode, &pending) || mode != 1)
        return;
    l->table->row[l->table->n - 1].in_mig_mode = true;
    parent->mig_parts = GPI_UNKNOWN32; /* until it has some it runs nothing */
    if (call->mig_count(gpu, &count))
        return;
    for (uint32_t k = 0; k < count && k < GPI_GPUS_MAX; k++)
        list_instance(l, gpu, parent, k, &parts);
    if (parts)
        parent->mig_parts = parts;
}

static int32_t list_gpu(struct listing *l, gpi_nvml_device handle, uint32_t index)
{
    const struct gpi_nvml *call = &l->s->call;
    struct gpi_device *d = add(l, handle, handle, index);
    int32_t code;

    if (!read_common(call, handle, d, &code)) {
        l->table->n--;
        return code;
    }
    keep_uuid(l, d);
    (void)snprintf(d->name, sizeof(d->name), "gpu:%u", index);
    if (call->minor && call->minor(handle, &d->minor))
        d->minor = GPI_UNKNOWN32;
    read_capability(call, handle, d);
    read_pci(call, handle, d);
    d->numa_node = gpi_numa_node("", d->pci);
    list_instances(l, handle, d);
    return 0;
}

/* Lists a GPU that was opened, or counts one that was not. */
static void list_opened(struct listing *l, gpi_nvml_device handle, uint32_t index, int32_t code)
{
    if (!code)
        code = list_gpu(l, handle, index);
    if (code)
        gpi_unopened_add(&l->unopened, &l->s->driver, index, code);
}

/* By index, never by UUID: such a search would open all GPUs, and fail when any of them is lost. */
static void list_all(struct listing *l, uint32_t gpus)
{
    gpi_nvml_device handle;

    l->s->driver.gpus = gpus;
    for (uint32_t i = 0; i < gpus && l->table->n < l->max; i++) {
        const int32_t code = l->s->call.by_index(i, &handle);
        list_opened(l, handle, i, code);
    }
}

/* By PCI address, which opens no other GPU: a GPU that waits for a reset must not be open
 * anywhere. */
static void list_only(struct listing *l)
{
    const struct gpi_nvml *call = &l->s->call;
    gpi_nvml_device handle;
    char pci[32];
    int n;

    for (const char *at = l->s->only; sscanf(at, "%31s%n", pci, &n) == 1 && l->table->n < l->max;
         at += n) {
        const int32_t code =
            call->by_pci ? call->by_pci(pci, &handle) : GPI_NVML_FUNCTION_NOT_FOUND;
        uint32_t index = l->s->driver.gpus++;
        if (!code && call->index)
            (void)call->index(handle, &index);
        list_opened(l, handle, index, code);
    }
}

static uint32_t nvml_enumerate(void *state, struct gpi_device *rows, uint32_t max,
                               struct gpi_driver *ret_driver)
{
    struct gpi_nvml_state *s = state;
    struct listing l = { .s = s, .rows = rows, .max = max < GPI_GPUS_MAX ? max : GPI_GPUS_MAX };
    uint32_t gpus = 0;
    int32_t code;

    l.table = calloc(1, sizeof(*l.table) + l.max * sizeof(*l.table->row));
    code = l.table ? s->call.count(&gpus) : 0;
    if (l.table && !code) {
        gpi_driver_say(&s->driver, GPUD_DRIVER_OK, NULL);
        s->driver.gpus = s->driver.unreadable = s->driver.lost = s->driver.unopened = 0;
        if (s->only)
            list_only(&l);
        else
            list_all(&l, gpus < INDICES ? gpus : INDICES);
        gpi_unopened_say(&l.unopened, &s->driver);
    } else if (code) {
        say_code(&s->driver, "nvmlDeviceGetCount", code);
    } else {
        gpi_driver_say(&s->driver, GPUD_DRIVER_FAILED, "out of memory");
    }
    *ret_driver = s->driver;
    free(s->table);
    s->table = l.table;
    return l.table ? l.table->n : 0;
}

const struct gpi_provider gpi_provider_nvml = {
    .open = nvml_open,
    .enumerate = nvml_enumerate,
    .sample = gpi_nvml_sample,
    .listen = gpi_nvml_listen,
    .await = gpi_nvml_await,
};
