/* SPDX-License-Identifier: MIT */
/* place.c - which state directory a verb means. */
#include "queue/client/place.h"

#include <stdlib.h>
#include <unistd.h>

#include "queue/config/config.h"
#include "queue/files/places.h"

/* *ret is NULL if the file has none. */
static int of_config(const char *given, char **ret, struct gpq_error *e)
{
    struct gpq_config config = { 0 };
    const char *value;
    enum gpq_origin origin;
    int code = gpq_config_read(given, &config, e);
    *ret = NULL;
    if (code == 0)
        code = gpq_config_get(&config, GPQ_KEY_STATE_DIR, &value, &origin, e);
    if (code == 0 && origin == GPQ_ORIGIN_FILE && !(*ret = gpq_config_path(&config, value)))
        code = gpq_fail(e, GPQ_ENOMEM, "no memory");
    gpq_config_free(&config);
    return code;
}

int gpq_place_find(const char *given, const char *config, char path[GPQ_PATH], struct gpq_error *e)
{
    struct gpq_places places;
    char *own = NULL;
    int code = 0;
    gpq_places_read(given, &places);
    bool is_set = (given && *given) || (places.state && *places.state);
    if (config || !is_set) /* a file that is named must be there, and be right */
        code = of_config(config, &own, e);
    if (own && !is_set)
        places.given = own;
    if (code == 0)
        code = gpq_places_find(&places, path, e);
    free(own);
    return code;
}

bool gpq_place_absolute(const char *path, char ret[GPQ_PATH])
{
    char here[GPQ_PATH];
    if (*path == '/')
        return gpq_path(ret, "%s", path) == 0;
    return getcwd(here, sizeof(here)) && gpq_path(ret, "%s/%s", here, path) == 0;
}
