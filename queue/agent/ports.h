/* SPDX-License-Identifier: MIT */
/*
 * ports.h - TCP ports of commands, for servers and for the processes of a training to meet.
 *
 * Two commands of an agent that run at the same time never have the same port, also after a restart
 * of the agent.  A port is free when a command gets it.  The agent cannot keep it free: until the
 * command has bound it, a program outside of this agent may take it.  Ports are outside of the
 * range from which the kernel takes those of connections, where there is room.
 */
#ifndef GPQ_AGENT_PORTS_H
#define GPQ_AGENT_PORTS_H

#include <stdbool.h>
#include <stdint.h>

struct gpq_ports {
    uint32_t first, last; /* the range, both included; 0: it is not known yet */
    uint32_t next;        /* where the search begins */
    uint8_t used[65536 / 8];
};

/* Sets the range by a text such as "20000-29999".  False: it is none, or has a port below 1024. */
bool gpq_ports_set(struct gpq_ports *p, const char *text);

/* The range for commands beside that of the kernel, in the form of ip_local_port_range: 20000 to
 * 29999, or the wider part beside the kernel's.  If that has less than 1,000 ports, or the text is
 * NULL or no range, 20000 to 29999. */
void gpq_ports_range(const char *kernel, uint32_t *ret_first, uint32_t *ret_last);

/* A port that no command has and that can be bound now; 0: there is none. */
uint16_t gpq_ports_take(struct gpq_ports *p);
/* The same port for a command that has it already. */
void gpq_ports_keep(struct gpq_ports *p, uint16_t port);
/* 0: does nothing. */
void gpq_ports_release(struct gpq_ports *p, uint16_t port);

#endif
