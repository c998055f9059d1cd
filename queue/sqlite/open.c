/* SPDX-License-Identifier: MIT */
/* open.c - opens the file of a store. */
#include "queue/store.h"
