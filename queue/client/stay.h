/* SPDX-License-Identifier: MIT */
/*
 * stay.h - what a logout and a reboot do to an agent of this user, as systemd is set up here.
 */
#ifndef GPQ_CLIENT_STAY_H
#define GPQ_CLIENT_STAY_H

#include <stdbool.h>

struct gpq_stay {
    bool manager;     /* the process belongs to the user's manager, which a logout ends */
    bool session;     /* it belongs to a login session */
    bool lingers;     /* the user's manager stays without a login */
    bool kills;       /* KillUserProcesses: the end of a session ends its processes */
    bool user_unit;   /* gpudispatch-agent.service is enabled for the user */
    bool system_unit; /* gpudispatch-agent@USER.service is enabled */
};

/* Reads the files of systemd below `root` ("" is /), and the cgroup of a process, such as that of
 * the agent: "self" or its pid. */
void gpq_stay_read(const char *root, const char *process, struct gpq_stay *ret);

bool gpq_stay_ends(const struct gpq_stay *s); /* a logout ends the process */
/* "a logout ends it (loginctl enable-linger keeps it)"; "after a reboot ..." */
const char *gpq_stay_logout(const struct gpq_stay *s);
const char *gpq_stay_reboot(const struct gpq_stay *s);

#endif
