#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""abi.py must report each change that breaks a compiled program: changes of a copy of the headers,
and of the library's names.

usage: check_abi.py ROOT SHARED_LIBRARY
"""
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import abi  # noqa: E402

EVENT = "    uint32_t outcome;      /* OUTCOME: enum gpud_outcome */\n"
PHASE = "    uint32_t phase;        /* enum gpud_phase */\n"
# name, header, text, replacement, what the report says
CHANGES = [
    ("an enum's value changes", "types.h", "GPUD_EXIT_LOST = 3 ", "GPUD_EXIT_LOST = 4 ",
     "GPUD_EXIT_LOST 3"),
    ("a field is inserted", "types.h", EVENT, "    uint64_t more;\n" + EVENT,
     "not at the end: field gpud_event.more"),
    ("two fields change places", "types.h", EVENT + PHASE, PHASE + EVENT, "field gpud_event.phase"),
    ("a hole is added", "types.h", EVENT, EVENT + "    uint64_t more;\n",
     "has a hole of 4 bytes before more"),
    ("a field goes", "types.h", PHASE, "", "gone: field gpud_event.phase"),
    ("a field narrows", "types.h", PHASE, PHASE.replace("32", "16"), "field gpud_event.phase"),
]


def main():
    root, library, faults = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], []
    for name, header, text, other, said in CHANGES:
        with tempfile.TemporaryDirectory() as scratch:
            copy, found = pathlib.Path(scratch), []
            shutil.copytree(root / "include", copy / "include")
            (copy / "tests/abi").mkdir(parents=True)
            shutil.copy(root / "tests/abi/layout.txt", copy / "tests/abi")
            path = copy / "include/gpudispatch" / header
            if path.read_text().count(text) != 1:
                faults.append(f"{name}: its text is not once in {header}")
                continue
            path.write_text(path.read_text().replace(text, other))
            abi.check_layout(copy, found)
            if not any(said in line for line in found):
                faults.append(f"{name}: not reported: {found[:3]}")
    names, _ = abi.exported(root, library)
    if not abi.differences("x", names, names - {"gpud_fini"}) or abi.differences("x", names, names):
        faults.append("a name that is gone is not reported")
    listed = " (NEEDED) Shared library: [{}]\n"
    if abi.strangers(listed.format("libc.so.6") + listed.format("libsqlite3.so.0")) != [
            "libsqlite3.so.0"]:
        faults.append("a needed library is not reported")
    found = []
    abi.check_layout(root, found)
    faults += [f"without a change: {x}" for x in found]
    print("\n".join(faults) if faults else f"{len(CHANGES) + 2} changes are reported")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
