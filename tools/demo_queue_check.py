# SPDX-License-Identifier: MIT
"""Parts of demo_queue.sh that look at JSON.

demo_queue_check.py paths TRANSCRIPTS SOUNDS   prints the path of each recording
demo_queue_check.py await N PROGRAM            waits until N tasks of batch 1 have ended ok
demo_queue_check.py verdict TRANSCRIPTS SOUNDS RESULTS AGAIN
                                               compares, and prints a line per check
"""
import json
import os
import subprocess
import sys
import time

PATIENCE = 300  # seconds
SUFFIX = ".g722"


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def texts(transcripts):
    return {r["file"]: r["text"] for r in lines(transcripts) if r.get("outcome") == "SUCCESS"}


def paths(transcripts, sounds):
    for name in sorted(texts(transcripts)):
        print(os.path.join(sounds, name + SUFFIX))
    return 0


def await_done(n, program):
    end = time.monotonic() + PATIENCE
    ended = 0
    while ended < int(n) and time.monotonic() < end:
        time.sleep(0.2)
        ended = len(subprocess.run([program, "ls", "1", "--state", "ok", "--json"], check=True,
                                   capture_output=True).stdout.splitlines())
    print(f"{ended} recordings are done")
    return 0 if ended >= int(n) else 1


def checks(transcripts, sounds, results, again):
    """Yields (holds, sentence)."""
    wanted, rows, reply = texts(transcripts), lines(results), lines(again)[0]
    found = {r["payload"]: r.get("text", "") for r in rows}
    same = [n for n, text in wanted.items() if found.get(os.path.join(sounds, n + SUFFIX)) == text]
    good = [r for r in rows if r["outcome"] == "ok"]
    yield len(rows) == len(found) == len(wanted), \
        f"each recording has one result: {len(rows)} of {len(wanted)}"
    yield len(good) == len(wanted), f"ended ok: {len(good)} of {len(wanted)}"
    yield len(same) == len(wanted), f"the text is that of transcribe: {len(same)} of {len(wanted)}"
    yield reply.get("joined") == len(wanted) and reply.get("added") == 0, \
        f"the list submitted again joins: {reply.get('joined')}, added {reply.get('added')}"


def verdict(*files):
    failed = 0
    for holds, sentence in checks(*files):
        print("  ok    " if holds else "  FAIL  ", sentence, sep="")
        failed += not holds
    print("FAILED" if failed else "PASSED")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit({"paths": paths, "await": await_done, "verdict": verdict}[sys.argv[1]](*sys.argv[2:]))
