/* SPDX-License-Identifier: MIT */
/* user.h - a process that uses a device: whose it is and what it runs, as /proc tells. */
#ifndef USER_H
#define USER_H

#include <stdbool.h>
#include <stddef.h>

#include "look.h"

#define USERS_MAX 24u /* as many as the library lists */

struct user {
    uint32_t pid;    /* 0: not visible here */
    uint64_t memory; /* bytes; GPUD_UNKNOWN64 */
    bool worker;     /* of this library */
    char name[32];   /* who runs it; "" = not visible here */
    char command[96];
};

/* Those of one row, as of its last reading.  How many. */
size_t users_of(const struct look *l, const struct gpud_device_info *r,
                struct user user[static USERS_MAX]);

/* Fills name and command. */
void user_look(struct user *u);

/* "pid 4321, alice, 2048 MiB: python3 train.py" */
char *user_text(const struct user *u, char *text, size_t size);

#endif
