#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks who calls whom among the files of a folder of lib/ or queue/, in the built objects.

usage: check_floors.py ARCHIVE...

File A calls file B if A needs a symbol that B defines.  FLOORS lists the files of each folder
bottom-up: a file may call only files above its own line in the list, so there is no cycle.  A file
that the list lacks is a fault, and so is a listed file that is not built.  POINTERS lists the calls
upward by pointer.  The objects of lib/sched may need only the symbols in ALLOWED.
"""
import re
import subprocess
import sys

FLOORS = {
    "device": ["directory", "driver", "health_state", "list", "numa", "row", "sample", "xid",
               "health", "kin", "fake/effects", "fake/script", "fake/words", "fake/facts",
               "fake/settings", "fake/grammar", "fake/parse", "fake/fake", "nvml_sample",
               "numbers", "nvml_await", "nvml", "visible", "use", "select"],
    "sched": ["tree", "soon", "learn", "actions", "staff", "memory", "kinds", "shape", "reserve",
              "revoke", "leave", "way", "spare", "ways", "evict", "tenancy", "grant", "plan",
              "explain_rows", "explain_device", "explain", "ring", "queue", "restart", "retry",
              "place", "device", "seat", "own", "spread", "class", "record", "tasks", "behind",
              "limits", "external", "close", "life", "slot_end", "slot", "gates", "pool", "sched",
              "stream", "query", "reason"],
    "log": ["line", "fact_shape", "fact_write", "log_shape", "log", "play"],
    "host": ["attempt", "class", "families", "log_file", "core", "desc", "files", "life",
             "monitor", "names", "patience", "reasons", "wakeup", "sleepers", "timers", "notes",
             "numbers", "facts", "output", "payload", "pool", "grants", "places", "request",
             "devices", "channel", "running", "texts", "endings", "forecast", "vacancy", "exec",
             "slots", "starts", "state", "stops", "cells", "judge", "canary", "monitors", "room",
             "reset", "results", "slot", "death", "readings", "tasks", "external", "close",
             "charge", "completions", "events", "submit", "adopt", "kept_events", "messages",
             "keeper", "stats", "rows", "watch", "act", "classes", "removals", "hotplug", "loop",
             "pollable", "drivers", "create", "poll", "ready", "run", "wait", "explain", "destroy"],
    "keeper": ["lookout", "stops", "surroundings", "sweep", "program", "maker", "keeper",
               "spawner"],
    "worker": ["ahead", "cuda_calls", "runtime", "signals", "canary", "cuda", "limit", "ends",
               "orders", "result", "task", "fault", "stream", "batch", "worker", "birth"],
    "api": ["definitions", "lookup", "names", "process", "script", "shared", "stats",
            "surroundings", "check", "choose", "format", "options", "program", "spawner", "start",
            "class", "create", "devices", "dispatcher", "explain", "external", "init", "monitor"],
}
# The same of the folders of queue/, if the archives have them.
QUEUE_FLOORS = {
    "files": ["files", "fault", "numbers", "names", "pidfd", "save", "filesystem", "lock",
              "stamp", "stopped", "places", "program", "reserve", "statedir", "socket", "tree",
              "out", "publish", "results"],
    "runner": ["run", "plan", "record", "process", "find", "sweep", "start"],
    "sqlite": ["db", "counts", "row", "facts", "migrate", "spec", "select", "states", "settle",
               "round", "join", "submit", "attempt", "change", "purge", "query", "history",
               "check_report",
               "check_batch", "check_file", "check", "open"],
    "config": ["split", "values", "check", "sections", "parse", "config"],
    "jobs": ["texts", "template", "make", "array", "reader", "csv", "jsonl", "lines", "jobs",
             "file"],
    "client": ["clock", "environment", "interrupts", "log", "option", "place", "say", "stay",
               "words", "doctor", "reasons", "start", "session", "config", "ids", "live", "spec",
               "watch", "agent", "marks", "purge", "change", "follow", "records", "results", "show",
               "ls", "submit", "wait", "submit_verbs"],
}
# Calls upward by pointer: the function, its file, the file that sets the pointer, and the reason.
# The functions by which threads tell loop.c that they have waited enough (gpi_done_fn) are static.
POINTERS = [
    ("gpi_act", "host/act", "host/create", "a fact is fed from any file, and its actions follow"),
]
# In lib/sched: only create and class_add allocate memory, and an assertion calls __assert_fail.
ALLOWED = {"memcpy", "memset", "memmove", "__assert_fail", "malloc", "calloc", "free"}
BASE = {"gpi_heap_" + verb for verb in ("init", "fini", "set", "remove", "key", "top_key",
                                        "top_item")}
# Symbols that a compiler's hardening, a sanitizer or coverage adds.
TOOLS = re.compile(r"__stack_chk|__(asan|ubsan|tsan|gcov|sanitizer|llvm|msan)|_GLOBAL_OFFSET_TABLE_"
                   r"|__memcpy_chk|__memset_chk|__memmove_chk")


def read(archive):
    """Returns {member: (defined, needed)} of the members "folder_file.c.o" of an archive, or of the
    members ".._lib_folder_file.c.o" of one that the tests build."""
    text = subprocess.run(["nm", "--extern-only", archive], check=True, capture_output=True,
                          text=True).stdout
    members, now = {}, None
    for line in text.splitlines():
        if line.endswith(":"):
            now = members.setdefault(line[:-1], (set(), set()))
            continue
        found = re.fullmatch(r"[0-9a-f ]* ?([A-Za-z]) (\S+)", line.strip())
        if found and now is not None:
            now[1 if found[1] in "Uuw" else 0].add(found[2])
    return members


def name_of(member, folder):
    found = re.search(rf"(?:^|/|_lib_){folder}_(\w+)\.c\.o$", member)
    return found[1] if found else None


def check_folder(top, folder, order, members, faults):
    order = [name.replace("/", "_") for name in order]
    files = {name_of(m, folder): symbols for m, symbols in members.items() if name_of(m, folder)}
    home = {symbol: name for name, (defined, _) in files.items() for symbol in defined}
    for name in sorted(set(files) - set(order)):
        faults.append(f"{top}/{folder}/{name}.c is in no list: give it a floor in {__file__}")
    calls = 0
    for name in files:
        for symbol in sorted(files[name][1]):
            to = home.get(symbol)
            if to is None or to == name or name not in order or to not in order:
                continue
            calls += 1
            if order.index(to) > order.index(name):
                faults.append(f"{top}/{folder}/{name}.c calls up: {symbol} of {to}.c")
    return files, calls


def check_pointers(built, faults):
    """`built` has the symbols of each file, by "folder/file"."""
    for symbol, home, setter, _ in POINTERS:
        needed_by = {name for name, (_, needed) in built.items() if symbol in needed}
        if home not in built or symbol not in built[home][0] or needed_by != {setter}:
            faults.append(f"{symbol} is to be in {home} and needed by {setter} alone, not by "
                          f"{', '.join(sorted(needed_by - {setter})) or 'none'}")


def check_pure(files, home, faults):
    for name, (_, needed) in sorted(files.items()):
        for symbol in sorted(needed - home - ALLOWED - BASE):
            if not TOOLS.match(symbol):
                faults.append(f"lib/sched/{name}.c needs {symbol}: the core has no such thing")


def main(archives):
    members = {}
    for archive in archives:
        members.update(read(archive))
    faults, built = [], {}
    folders = [("lib", *floors) for floors in FLOORS.items()]
    if any(name_of(m, "sqlite") for m in members):
        folders += [("queue", *floors) for floors in QUEUE_FLOORS.items()]
    for top, folder, order in folders:
        files, calls = check_folder(top, folder, order, members, faults)
        built.update({f"{folder}/{name}": symbols for name, symbols in files.items()})
        if not files:
            faults.append(f"no object of {top}/{folder} in {' '.join(archives)}")
        for name in sorted({name.replace("/", "_") for name in order} - set(files)):
            faults.append(f"{top}/{folder}/{name}.c is listed, and not built")
        if folder == "sched":
            home = {symbol for defined, _ in files.values() for symbol in defined}
            check_pure(files, home, faults)
        print(f"{top}/{folder}: {len(files)} files, {calls} calls between them")
    check_pointers(built, faults)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if len(sys.argv) > 1 else 2)
