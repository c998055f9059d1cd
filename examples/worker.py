#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""worker.py - a worker in Python, with nothing but ctypes: what asyncio_host.py starts by option argv, once for each slot.

Its tasks are Python expressions, as bytes; the result is the value in words.  (Never do that with what strangers send.)  Load models
where the comment says so: that is the setup, and setup_limit covers it.
"""
import ctypes
import sys
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_void_p

PROCESS = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
lib = ctypes.CDLL("libgpudispatch.so.0")
lib.gpud_task_data.restype, lib.gpud_task_data.argtypes = c_void_p, [c_void_p]
lib.gpud_task_size.restype, lib.gpud_task_size.argtypes = c_size_t, [c_void_p]
lib.gpud_task_result_set.argtypes = [c_void_p, c_void_p, c_size_t]
lib.gpud_task_fail.argtypes = [c_void_p, c_int, c_char_p]


class Definition(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("name", c_char_p), ("setup", c_void_p), ("process", PROCESS),
                ("cleanup", c_void_p)]


def guarded(function):
    """As a callback.  ctypes prints an exception that leaves a callback and returns anything: so none does, sys.exit included."""
    def process(task, _state):
        try:
            result = function(ctypes.string_at(lib.gpud_task_data(task), lib.gpud_task_size(task)))
            return lib.gpud_task_result_set(task, result, len(result))
        except BaseException as e:
            return lib.gpud_task_fail(task, 1, repr(e).encode(errors="replace")[:255])
    return PROCESS(process)


@guarded
def process(data):
    return str(eval(data)).encode()


# Here models are loaded.
definition = Definition(ctypes.sizeof(Definition), 0, b"evaluate", None, process, None)
sys.exit(lib.gpud_init(ctypes.byref(definition), 1, None))  # in a worker it does not return
