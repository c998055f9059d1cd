/* SPDX-License-Identifier: MIT */
/* keys.h - what gpu-bench measures: in place of the list in report.h. */
#ifndef BENCH_GPU_KEYS_H
#define BENCH_GPU_KEYS_H

#define B_KEY_MAP(X)                                                                          \
    X(busy_1ms_vs_bare, "%", B_AT_LEAST, 0.99,                                                \
      "GPU busy with tasks of one 1 ms kernel, over a plain process")                         \
    X(busy_1ms_spin_vs_bare, "%", B_ANY, 0,                                                   \
      "the same with option cuda SPIN, as the plain process does")                            \
    X(busy_1ms_no_check_vs_bare, "%", B_ANY, 0, "the same without the check after each task") \
    X(busy_100us_vs_bare, "%", B_ANY, 0, "the same with kernels of 0.1 ms, with the check")   \
    X(trip_check_vs_none, "us", B_ANY, 0,                                                     \
      "round trip of an empty task: check after it (ours), none (raw)")                       \
    X(trip_gpu_vs_cpu, "us", B_ANY, 0,                                                        \
      "round trip of an empty task: on a GPU (ours), on cpu:1 (raw)")                         \
    X(stream_sync_vs_cuda, "us", B_ANY, 0,                                                    \
      "a 1 ms kernel: gpud_cuda_stream_sync (ours), cudaDeviceSynchronize")                   \
    X(copy_submit_vs_pinned, "GB/s", B_ANY, 0,                                                \
      "256 MiB to the GPU: a submit buffer (ours), pinned memory (raw)")                      \
    X(copy_submit_pin_vs_pinned, "GB/s", B_AT_LEAST, 0.95, "the same with option cuda PIN")   \
    X(restart_vs_fork, "ms", B_ANY, 0,                                                        \
      "killed in a kernel to next task begun; raw: fork, context, one kernel")                \
    X(restart_no_canary_vs_fork, "ms", B_ANY, 0, "the same without the canary")

#endif
