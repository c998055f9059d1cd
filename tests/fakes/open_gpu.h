/* SPDX-License-Identifier: MIT */
/*
 * open_gpu.h - which processes have a GPU open, as a driver counts them.  Where there is a folder
 * FAKE_SCRIPT.open, a process that opens a GPU appends its pid to the file UUID there and keeps it
 * open, with a shared lock, to its end.  A test that can lock that file exclusively knows that no
 * process has the GPU open, and can "reset" it: a process that opens it then waits.  A second kind
 * of line, "listens", says that from then on events of the GPU are heard.
 */
#ifndef FAKE_OPEN_GPU_H
#define FAKE_OPEN_GPU_H

void fake_open_gpu(const char *uuid);
void fake_listen_to_gpu(const char *uuid);

#endif
