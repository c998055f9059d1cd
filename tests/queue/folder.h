/* SPDX-License-Identifier: MIT */
/* folder.h - how many names a directory of the system has. */
#ifndef T_FOLDER_H
#define T_FOLDER_H

#include "harness.h"

#include "queue/files/names.h"

static inline unsigned count_names(const char *path)
{
    struct gpq_names names;
    unsigned n = 0;

    T_EQ(gpq_names_read(&gpq_system_files, path, &names), 0);
    GPQ_EACH_NAME (&names, name)
        n += name[0] != 0;
    gpq_names_free(&names);
    return n;
}

#endif
