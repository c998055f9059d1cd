# SPDX-License-Identifier: MIT
"""Faults in lib/os/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- time ----
    Sabotage(
        "memory is taken without asking for it", "lib/os/headroom.c",
        "return room > RESERVE && size <= room - RESERVE;",
        "return room > 0 || size > 0;",
        "hosts/memory.more_than_the_cgroup_has"),
    # ---- kinds of hosts ----
    Sabotage(
        "the host's wait meets the spawner", "lib/os/process.c",
        "(pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL)",
        "(pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL)",
        "hosts/signals.wait_for_all"),
    Sabotage(
        "the host's dispositions are inherited", "lib/os/process.c",
        "(void)sigaction(s, &dfl, NULL); /* KILL,",
        "(void)dfl; /* KILL,",
        "hosts/signals.all_signals_ignored"),
    Sabotage(
        "descriptors at low numbers", "lib/os/fds.c",
        "up = fcntl(fd, F_DUPFD_CLOEXEC, fd_floor());",
        "up = fcntl(fd, F_DUPFD_CLOEXEC, 3 + 0 * fd_floor());",
        "hosts/files.closes_3_to_699"),
    Sabotage(
        "the limit on files is not looked at", "lib/os/memory.c",
        "if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY)",
        "if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur >= 1)",
        "hosts/rlimits.file_size"),
    Sabotage(
        "a host that locks its memory gets all of it", "lib/os/memory.c",
        "void *p = mmap(NULL, (size_t)size, PROT_NONE, flags | MAP_NORESERVE, fd, 0);",
        "void *p = mmap(NULL, (size_t)size, access, flags | MAP_NORESERVE, fd, 0);",
        "hosts/memory.locked_memory"),
    # ---- workers that are programs ----
    Sabotage(
        "a stub of CUDA counts as in use", "lib/os/cuda.c",
        "return r != NOT_INITIALIZED && r != STUB_LIBRARY;",
        "return r != NOT_INITIALIZED;",
        "proc/exec_hosts.auto_looks_at_cuda"),
    Sabotage(
        "the spawner program is an ordinary child", "lib/os/orphan.c",
        "    first = clone(start_second, stacks + STACK, CLONE_VM | CLONE_VFORK | CLONE_FILES, o);",
        "    first = clone(execute, stacks + STACK, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, "
        "o, &o->pidfd), o->pid = first;\n"
        "    (void)start_second;\n    if (first > 0)\n        return o->err;",
        "proc/exec_hosts.no_children"),
]
