#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an agent does beside running commands.

usage: night.py BUILD_DIRECTORY [CASE...]
"""
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from agent import Client  # noqa: E402
from cases import equal, run  # noqa: E402


def saved_socket(agent):
    """The state directory names the socket, wherever XDG_RUNTIME_DIR has put it."""
    saved = pathlib.Path(agent.state, "socket-path")
    agent.start()
    equal(saved.read_text(), os.path.join(agent.state, "socket"))
    equal(agent.stop(), 0)
    equal(saved.exists(), False)
    runtime = os.path.join(agent.directory, "run")
    os.mkdir(runtime, 0o700)
    agent.environment["XDG_RUNTIME_DIR"] = runtime
    agent.start()
    path = saved.read_text()
    equal(os.path.dirname(path), os.path.join(runtime, "gpudispatch"))
    equal(Client(path).ask("status")["state"], agent.state)
    agent.kill()
    del agent.environment["XDG_RUNTIME_DIR"]
    agent.start()
    equal(saved.read_text(), os.path.join(agent.state, "socket"))


CASES = [saved_socket]

if __name__ == "__main__":
    sys.exit(run("queue-night", CASES))
