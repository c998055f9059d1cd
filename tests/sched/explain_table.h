/* SPDX-License-Identifier: MIT */
/* explain_table.h - small worlds, each with the first reason that a task has there. */
#ifndef T_EXPLAIN_TABLE_H
#define T_EXPLAIN_TABLE_H

/* Returns the number of worlds that have another reason, after it has printed them. */
unsigned t_explain_table(void);

#endif
