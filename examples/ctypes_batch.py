#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ctypes_batch.py - a whole Python host without callbacks: submit, poll, and plugin.c as worker.

cc -std=c11 -Wall -Wextra -shared -fPIC plugin.c -o plugin.so $(pkg-config --cflags gpudispatch)
python3 ctypes_batch.py ./plugin.so PATTERN FILE...

It prints for each file the number of matching lines, such as "12 /etc/services", or the reason why
there is none, such as "/etc/shadow: ERROR Permission denied".  Exit status: 0 if all files were
counted, else 1.  Option argv, in place of plugin, accepts any program that calls gpud_init.
"""
import ctypes
import sys
from ctypes import byref, c_size_t, c_uint64, c_void_p, sizeof

KINDS = {"i": ctypes.c_int32, "u": ctypes.c_uint32, "U": c_uint64, "d": ctypes.c_double,
         "s": ctypes.c_char_p, "p": c_void_p, "32": ctypes.c_char * 32, "216": ctypes.c_char * 216}
NEVER, FINISH_ALL, EEND = 2**64 - 1, 0, -8
OUTCOME, SETUP_FAILURE, SUCCESS = 1, 3, 1


def record(name, text):
    """Makes a struct of the headers, or its beginning.  The text lists the fields in their order: a
    kind with a colon, then the names of fields of this kind."""
    fields, kind = [("struct_size", KINDS["u"])], None
    for word in text.split():
        kind = word[:-1] if word.endswith(":") else kind
        if not word.endswith(":"):
            fields.append((word, KINDS[kind]))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


Error = record("Error", "i: code sys_errno u: reserved 32: field 216: text")
Options = record("Options", """
    u: drive s: definition devices u: queue_size sent_ahead U: payload_budget s: setup_data
    U: setup_size seed setup_limit task_limit grace cleanup_limit close_limit kill_limit backoff
    backoff_cap u: failures_in_a_row max_attempts log_level slot_events start stdio
    devices_per_worker setup_concurrency max_batch retry_causes U: batch_wait retry_backoff
    retry_backoff_cap expires stall_limit p: env s: cwd stdio_path p: argv s: plugin""")
Task = record("Task", "i: priority s: data U: size s: label U: tag limit")
Event = record("Event", """
    u: kind U: task_id tag s: label u: outcome phase i: code u: attempt slot incarnation
    slot_state level exit_kind i: exit_status d: progress s: text device p: result
    U: result_size""")


def load():
    """Loads the library by its soname, and declares the types that ctypes does not assume."""
    lib = ctypes.CDLL("libgpudispatch.so.0")
    lib.gpud_error_text.restype = lib.gpud_outcome_name.restype = ctypes.c_char_p
    lib.gpud_dispatcher_submit.argtypes = [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p]
    lib.gpud_dispatcher_poll.argtypes = [c_void_p, c_void_p, c_size_t, c_uint64]
    lib.gpud_dispatcher_close.argtypes = [c_void_p, ctypes.c_uint32, c_uint64]
    return lib


def create(lib, plugin, pattern, room):
    pattern = pattern.encode() + b"\0"
    options = Options(struct_size=sizeof(Options), plugin=plugin.encode(), definition=b"count",
                      devices=b"cpu:2", queue_size=room, setup_data=pattern,
                      setup_size=len(pattern), failures_in_a_row=1)
    d, error = c_void_p(), Error(struct_size=sizeof(Error))
    if lib.gpud_dispatcher_create(byref(d), byref(options), byref(error)):
        sys.exit(f"ctypes_batch: {error.text.decode()}")
    return d


def check(lib, r):
    if r < 0:
        sys.exit(f"ctypes_batch: {lib.gpud_error_text(r).decode()}")


def main(plugin, pattern, *names):
    lib = load()
    d = create(lib, plugin, pattern, len(names))
    for number, name in enumerate(names):
        data = name.encode() + b"\0"
        task = Task(struct_size=sizeof(Task), data=data, size=len(data), tag=number)
        check(lib, lib.gpud_dispatcher_submit(d, byref(task), 0, None, None))
    check(lib, lib.gpud_dispatcher_close(d, FINISH_ALL, NEVER))
    e, counted = Event(struct_size=sizeof(Event)), 0
    while (r := lib.gpud_dispatcher_poll(d, byref(e), 1, NEVER)) != EEND:
        check(lib, r)
        text = e.text.decode(errors="replace")  # the library may cut a text anywhere
        if e.kind == SETUP_FAILURE:
            print(f"{e.device.decode()} cannot start: {text}", file=sys.stderr)
        elif e.kind == OUTCOME and e.outcome == SUCCESS:
            print(c_uint64.from_address(e.result).value, names[e.tag])
            counted += 1
        elif e.kind == OUTCOME:
            print(f"{names[e.tag]}: {lib.gpud_outcome_name(e.outcome).decode()} {text}")
    lib.gpud_dispatcher_destroy(byref(d), None)
    return 0 if counted == len(names) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) >= 4 else __doc__)
