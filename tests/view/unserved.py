# SPDX-License-Identifier: MIT
"""The verb serve of a build without web, or without the queue.

Arguments: PROGRAM ROOT SANITIZER OPTION, the last one being what it was built without.
"""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from tool import equal, run  # noqa: E402

OPTION = sys.argv.pop()


def test_refused(tool):
    name = "web" if OPTION == "web" else "the queue"
    equal(tool.run("serve"),
          (1, "", f"gpudispatch: serve: built without {name} (-D{OPTION}=enabled)\n"))


run(globals(), suite="view")
