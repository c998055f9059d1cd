#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""worker.py - a worker in Python, with only ctypes.  asyncio_host.py names it in option argv, and
the library starts it once for each slot.

A task is a Python expression as bytes, and its result is the text of the value.  (Never evaluate
expressions of strangers.)  Load models at the comment "setup" below: the library waits 2 minutes
for gpud_init, or setup_limit if that is shorter.  Load slower models in a setup callback.
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
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("name", c_char_p),
                ("setup", c_void_p), ("process", PROCESS), ("cleanup", c_void_p)]


def guarded(function):
    """Makes a callback.  If an exception left it, ctypes would only print the exception and return
    an arbitrary value.  So the callback catches every exception, also that of sys.exit."""
    def process(task, _state):
        try:
            data = ctypes.string_at(lib.gpud_task_data(task), lib.gpud_task_size(task))
            result = function(data)
            return lib.gpud_task_result_set(task, result, len(result))
        except BaseException as e:
            return lib.gpud_task_fail(task, 1, repr(e).encode(errors="replace")[:255])
    return PROCESS(process)


@guarded
def process(data):
    return str(eval(data)).encode()


# setup: load models here, before gpud_init and within 2 minutes
definition = Definition(ctypes.sizeof(Definition), 0, b"evaluate", None, process, None)
sys.exit(lib.gpud_init(ctypes.byref(definition), 1, None))  # does not return in a worker
