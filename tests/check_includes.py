#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks includes between folders, calls that lib/ never makes, and names of the built symbols.

usage: check_includes.py ROOT [SHARED_LIBRARY [STATIC_LIBRARY [ARCHIVE_OF_THE_QUEUE...]]]

Directions (docs: the tree): api may include everything; host: log, sched, stats, device, wire, os,
base; worker and keeper: wire, os, base; sched: base; log: sched, base; sim: log, sched, base;
device, stats, wire, os: base.  types.h, error.h, version.h and the other public headers may be
included by all of lib, and tools, examples, python and bench include nothing but them; bench/sched,
which measures the core, may include sched, sim and base.  Includes inside lib/ are written
"folder/file.h".

In queue/: agent may include sqlite and files, sqlite files; QUEUE_MAY has the rest.  Every folder
may include the headers of queue/ itself (store.h, words.h).  Public headers are for those folders
only that speak with the library, and sqlite3.h is for sqlite alone.  Nothing in queue/ includes
lib/, and nothing else includes queue/, but tests, bench/queue, and tools, which has the commands of
queue/client.  Includes are written "queue/folder/file.h".

In view/: each folder may include itself, night/ and the headers of view/ itself (such as
records.h), and nothing of lib/, queue/, tools/ or the public headers.  VIEW_USERS has what queue/
includes of it; tools/gpudispatch may include all.  Includes are written "view/folder/file.h".

Calls: code that runs in the host never ends the process, prints or sleeps [C15], waits for no child
but its own, and makes each descriptor close-on-exec from birth [C13]; nothing in lib/ is lockable
by two processes.  Code of queue/ makes its descriptors close-on-exec, too.

Records: struct gpud_dispatcher has one for each noun.  Its comment in lib/host/dispatcher.h names
the files that write it.  create.c may, too: it sets the first values.  The same holds for the
records of struct gpi_class in lib/host/class.h.
"""
import os
import pathlib
import re
import subprocess
import sys

MAY = {
    "api": {"api", "host", "worker", "keeper", "monitor", "log", "sched", "stats", "device", "wire",
            "os", "base"},
    "host": {"host", "log", "sched", "stats", "device", "wire", "os", "base"},
    "worker": {"worker", "device", "wire", "os", "base"},
    "keeper": {"keeper", "wire", "os", "base"},
    "monitor": {"monitor", "device", "wire", "os", "base"},
    "sched": {"sched", "base"},
    "log": {"log", "sched", "base"},
    "sim": {"sim", "log", "sched", "base"},
    "device": {"device", "base"},
    "stats": {"stats", "base"},
    "wire": {"wire", "device", "base"},
    "os": {"os", "base"},
    "base": {"base"},
}
# The same for queue/; "" are its own headers.  The runner has libc only.
QUEUE_MAY = {
    "": {""},
    "files": {"files", ""},
    "sqlite": {"sqlite", "files", ""},
    "proto": {"proto", "files", ""},
    "jobs": {"jobs", "files", ""},
    "config": {"config", "files", ""},
    "runner": {"runner", "files", ""},
    "agent": {"agent", "runner", "sqlite", "proto", "jobs", "config", "files", ""},
    "client": {"client", "proto", "jobs", "config", "files", ""},
}
# The same for view/.
VIEW_MAY = {
    "": {""},
    "night": {"night", ""},
    "now": {"now", "night", ""},
    "metrics": {"metrics", "now", "night", ""},
    "read": {"read", ""},
    "report": {"report", "night", ""},
    "serve": {"serve", "metrics", "report", "now", "night", ""},
    "top": {"top", "now", "night", ""},
    "trace": {"trace", "night", ""},
}
# What queue/ includes of it; tools/gpudispatch may include all.
VIEW_USERS = {"queue/agent": {"now", "night", ""}, "queue/client": {""}}
# Its verbs have arguments and output like all others; names of keys and columns are misspelt, too.
QUEUE_TOOLS = {"client": "tools/cli/", "config": "tools/cli/near.h", "jobs": "tools/cli/near.h"}
QUEUE_PUBLIC = {"agent", "client"}  # the folders that may include public headers
QUEUE_LIBRARIES = {"sqlite3.h": {"sqlite"}, "jansson.h": {"proto", "jobs", "agent", "client"}}
# The public headers that the core may include.
CORE_PUBLIC = {"types.h", "error.h"}
IN_HOST = {"api", "base", "device", "host", "log", "os", "sched", "stats", "wire"}
# In the host: a name that must not be called at all, or a call that must name its flag:
# close-on-exec from creation. [T12]
NEVER = re.compile(r"(?<![\w.>])(abort|_?exit|_Exit|printf|puts|perror|putchar|vprintf|syslog|sleep"
                   r"|usleep|signal|sigwait|wait|wait3|popen|system|alarm|setenv|putenv|chdir|umask"
                   r"|setlocale|siglongjmp|longjmp)\s*\(")
FLAGGED = {"open": "O_CLOEXEC", "openat": "O_CLOEXEC", "pipe2": "O_CLOEXEC",
           "socket": "SOCK_CLOEXEC", "socketpair": "SOCK_CLOEXEC", "accept4": "SOCK_CLOEXEC",
           "memfd_create": "MFD_CLOEXEC", "eventfd": "EFD_CLOEXEC",
           "epoll_create1": "EPOLL_CLOEXEC", "signalfd": "SFD_CLOEXEC",
           "timerfd_create": "TFD_CLOEXEC", "recvmsg": "MSG_CMSG_CLOEXEC"}
UNFLAGGED = re.compile(r"(?<![\w.>])(pipe|accept|dup|dup2|epoll_create|creat|F_DUPFD)\s*[(,]")
# Nothing in lib/ is lockable by two processes. [T2]
SHARED_LOCK = re.compile(
    r"PTHREAD_PROCESS_SHARED|\bsem_open\b|\bflock\s*\(|\bF_SETLKW?\b|\blockf\s*\(")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
OUTSIDE = ["tools", "examples", "python", "bench"]
OUTSIDE_MAY = {"bench/sched": {"sched", "sim", "base"}}
OUTSIDE_QUEUE = {"tools/gpudispatch": "queue/client/", "bench/queue": "queue/"}
OUTSIDE_VIEW = {"tools/gpudispatch", "bench/view"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# A write to a record of a dispatcher d, or of a class c.
RECORD_WRITE = (r"\b{0}->(\w+)(?:\.\w+|\[[^]]*\])+\s*(?:=(?!=)|[-+|&]=|\+\+|--)"
                r"|(?:\+\+|--){0}->(\w+)\.")
SOURCES = {".c", ".h", ".cc", ".cpp", ".hpp", ".cu"}
# What the tool chain itself puts into a shared library.
TOOLCHAIN = {"_init", "_fini", "__bss_start", "_edata", "_end"}


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SOURCES and p.is_file())


def check_lib(root, faults):
    lib = root / "lib"
    for path in sources(lib):
        folder = path.relative_to(lib).parts[0]
        if folder not in MAY:
            faults.append(f"{path.relative_to(root)}: no such folder in the tree: {folder}")
            continue
        for kind, name in INCLUDE.findall(path.read_text()):
            first, _, rest = name.partition("/")
            if first == "gpudispatch" and (root / "include" / name).is_file():
                if folder == "sched" and rest not in CORE_PUBLIC:
                    faults.append(f"{path.relative_to(root)}: sched/ must not include {name}")
                continue
            if kind == "<" and first not in MAY:
                continue
            if kind == "<" or not rest or not (lib / name).is_file():
                faults.append(f'{path.relative_to(root)}: "{name}" is not written "folder/file.h"'
                              ' of lib/')
            elif first not in MAY[folder]:
                faults.append(f"{path.relative_to(root)}: {folder}/ must not include {name}")


def check_queue(root, faults):
    for path in sources(root / "queue"):
        folder = path.parent.relative_to(root / "queue").as_posix().removeprefix(".")
        where = path.relative_to(root)
        if folder not in QUEUE_MAY:
            faults.append(f"{where}: no such folder in the tree: queue/{folder}")
            continue
        for kind, name in INCLUDE.findall(path.read_text()):
            parts = pathlib.PurePosixPath(name).parts
            if parts[0] == "gpudispatch":
                if folder not in QUEUE_PUBLIC:
                    faults.append(f"{where}: queue/{folder} must not include {name}")
            elif kind == "<":
                if folder not in QUEUE_LIBRARIES.get(name, {folder}):
                    faults.append(f"{where}: queue/{folder} must not include <{name}>")
            elif name.startswith(QUEUE_TOOLS.get(folder, "none")) and (root / name).is_file():
                continue
            elif parts[0] == "view" and (root / name).is_file():
                if "/".join(parts[1:-1]) not in VIEW_USERS.get(f"queue/{folder}", ()):
                    faults.append(f"{where}: queue/{folder} must not include {name}")
            elif parts[0] != "queue" or not (root / name).is_file():
                faults.append(f'{where}: "{name}" is not written "queue/folder/file.h"')
            elif "/".join(parts[1:-1]) not in QUEUE_MAY[folder]:
                faults.append(f"{where}: queue/{folder} must not include {name}")


def check_view(root, faults):
    for path in sources(root / "view"):
        folder = path.parent.relative_to(root / "view").as_posix().removeprefix(".")
        where = path.relative_to(root)
        if folder not in VIEW_MAY:
            faults.append(f"{where}: no such folder in the tree: view/{folder}")
            continue
        for kind, name in INCLUDE.findall(path.read_text()):
            parts = pathlib.PurePosixPath(name).parts
            if kind == "<" and parts[0] != "gpudispatch":
                continue
            if parts[0] != "view" or not (root / name).is_file() and not name.endswith(".inc"):
                faults.append(f'{where}: "{name}" is not written "view/folder/file.h"')
            elif "/".join(parts[1:-1]) not in VIEW_MAY[folder]:
                faults.append(f"{where}: view/{folder} must not include {name}")


def check_descriptors(text, fault):
    """Each descriptor is close-on-exec from birth."""
    for m in UNFLAGGED.finditer(text):
        fault(m.start(), f"{m.group(1)} makes a descriptor that is not close-on-exec")
    for name, flag in FLAGGED.items():
        for m in re.finditer(r"(?<![\w.>])" + name + r"\s*\(([^;]*);", text):
            if flag not in m.group(1):
                fault(m.start(), f"{name} without {flag}")


def check_calls(root, faults):
    for path in sources(root / "lib") + sources(root / "queue") + sources(root / "view"):
        # Comments and strings go, line numbers stay.
        text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text())

        def fault(at, what):
            faults.append(f"{path.relative_to(root)}:{text.count(chr(10), 0, at) + 1}: {what}")

        if not path.is_relative_to(root / "lib"):
            check_descriptors(text, fault)
            continue
        for m in SHARED_LOCK.finditer(text):
            fault(m.start(), f"{m.group()} is a lock between processes")
        if path.relative_to(root / "lib").parts[0] not in IN_HOST:
            continue
        for m in NEVER.finditer(text):
            fault(m.start(), f"{m.group(1)} must not be called in the host")
        check_descriptors(text, fault)
        for m in re.finditer(r"\bwaitp?id\s*\(\s*(-1|P_ALL)", text):
            fault(m.start(), "waits for children that are not ours")


def check_outside(root, faults):
    internal = {p.relative_to(root / "lib").as_posix() for p in sources(root / "lib")}
    for top in OUTSIDE:
        for path in sources(root / top) if (root / top).is_dir() else []:
            folder = path.parent.relative_to(root).as_posix()
            may = OUTSIDE_MAY.get(folder, ())
            for _, name in INCLUDE.findall(path.read_text()):
                reached = (path.parent / name).resolve()
                if name.partition("/")[0] in may:
                    continue
                queue = name.startswith("queue/") and not reached.is_file()
                if (queue and not name.startswith(OUTSIDE_QUEUE.get(folder, "none"))
                        or (root / "queue") in reached.parents):
                    faults.append(f"{path.relative_to(root)}: {top}/ must not include {name}")
                view = name.startswith("view/") and not reached.is_file()
                if (view and folder not in OUTSIDE_VIEW or (root / "view") in reached.parents):
                    faults.append(f"{path.relative_to(root)}: {top}/ must not include {name}")
                if name in internal or (root / "lib") in reached.parents:
                    faults.append(f"{path.relative_to(root)}: {top}/ must not include {name}")


def check_public(root, faults):
    for path in sources(root / "include"):
        for kind, name in INCLUDE.findall(path.read_text()):
            if kind == "<" and name not in {"stddef.h", "stdint.h"}:
                faults.append(f"{path.relative_to(root)}: a public header must not include"
                              f" <{name}>")
            if kind == '"' and not (path.parent / name).is_file():
                faults.append(f'{path.relative_to(root)}: "{name}" is no public header')


def defined(library, options):
    listed = subprocess.check_output(["nm", *options, "--defined-only", library], text=True)
    names = set()
    for fields in map(str.split, listed.splitlines()):
        if len(fields) == 3 and fields[1].isupper() and fields[1] != "A":
            names.add(fields[2].split("@")[0])
    # Sanitizers and coverage add symbols of their own.
    added = re.compile(r"__(asan|tsan|ubsan|odr_asan|gcov|llvm|start|stop)")
    return {n for n in names - TOOLCHAIN if not added.match(n)}


def check_records(root, name, variable, first, least, faults):
    """A record of a header is written by the files that its comment names, and by no other."""
    header = (root / "lib/host" / name).read_text()
    named = {kind: set(re.findall(r"[\w.]+\.[ch]\b", comment))
             for comment, kind in re.findall(r"/\*((?:(?!\*/).)*)\*/\nstruct (gpi_\w+) {", header,
                                             flags=re.S)}
    member = {record: kind for kind, record in re.findall(r"    struct (gpi_\w+) (\w+);", header)
              if named.get(kind)}
    wrote, write = {}, re.compile(RECORD_WRITE.format(variable))
    for path in sorted((root / "lib/host").glob("*.[ch]")):
        for after, before in write.findall(COMMENT.sub(" ", path.read_text())):
            wrote.setdefault(after or before, set()).add(path.name)
    for record, kind in member.items():
        for stranger in sorted(wrote.get(record, set()) - named[kind] - first):
            faults.append(f"lib/host/{stranger} writes {variable}->{record}, which is not its"
                          " record")
        for silent in sorted(named[kind] - wrote.get(record, set())):
            faults.append(f"lib/host/{silent} is named for {variable}->{record}, and does not"
                          " write it")
    if len(member) < least:
        faults.append(f"lib/host/{name}: its records are not found")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    faults = []
    check_lib(root, faults)
    check_queue(root, faults)
    check_view(root, faults)
    check_calls(root, faults)
    check_outside(root, faults)
    check_public(root, faults)
    check_records(root, "dispatcher.h", "d", {"create.c"}, 10, faults)
    check_records(root, "class.h", "c", set(), 2, faults)
    if len(sys.argv) > 2:
        for name in sorted(defined(sys.argv[2], ["-D"])):
            if not name.startswith("gpud_"):
                faults.append(f"the shared library exports {name}")
    if len(sys.argv) > 3:
        for name in sorted(defined(sys.argv[3], [])):
            if not name.startswith(("gpud_", "gpi_")):
                faults.append(f"a symbol shared between files is not named gpi_ or gpud_: {name}")
    for archive in sys.argv[4:]:
        for name in sorted(defined(archive, [])):
            if not name.startswith(("gpq_", "gpv_")):
                faults.append(f"{pathlib.Path(archive).name}: a symbol shared between files is not"
                              f" named gpq_ or gpv_: {name}")
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if faults else 'pass'} check/includes\n")
    print("\n".join(faults) if faults else "includes, calls and names are in order")
    return 1 if faults else 0


sys.exit(main())
