/* SPDX-License-Identifier: MIT */
/* calm.h - a VFS of SQLite that syncs nothing, for tests without power cuts. */
#ifndef T_QUEUE_CALM_H
#define T_QUEUE_CALM_H

/* Returns its name. */
const char *calm_vfs(void);

#endif
