# SPDX-License-Identifier: MIT
"""Judges what examples/transcribe wrote: demo_verdict.py JSON_LINES EXPECTED_KILLS.

Prints one line per check.  Exits 0 when all hold.
"""
import json
import sys

ENOUGH = 0.95
KNOWN = {
    "transfer": "please hold while i try that extension",
    "vm-deleted": "message deleted",
}


def read(path):
    """Gives the records of the files, and the summary or {}."""
    with open(path, encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    files = [r for r in records if "file" in r]
    summaries = [r for r in records if r.get("summary")]
    return files, summaries[0] if len(summaries) == 1 else {}


def checks(files, summary, kills):
    """Yields (holds, sentence)."""
    stats = summary.get("stats", {})
    total = summary.get("files", 0)
    names = {r["file"] for r in files}
    good = [r for r in files if r["outcome"] == "SUCCESS" and r["text"]]
    texts = {r["file"]: r.get("text") for r in files}
    yield total > 0 and len(files) == len(names) == total, \
        f"every file accounted for: {len(names)} of {total}, {len(files)} outcomes"
    yield total > 0 and len(good) >= ENOUGH * total, f"SUCCESS with text: {len(good)} of {total}"
    for name, text in KNOWN.items():
        yield texts.get(name) == text, f"{name}: '{texts.get(name)}'"
    if kills:
        again = [r["file"] for r in files if r["attempt"] > 1 or r["outcome"] == "CRASHED"]
        yield summary.get("killed") == kills, f"workers killed: {summary.get('killed')}"
        yield stats.get("restarts") == kills, f"restarts: {stats.get('restarts')}"
        yield len(again) <= kills, f"files that met a dying worker: {', '.join(again) or 'none'}"


def main():
    files, summary = read(sys.argv[1])
    failed = 0
    for holds, sentence in checks(files, summary, int(sys.argv[2])):
        print("  ok    " if holds else "  FAIL  ", sentence, sep="")
        failed += not holds
    print(f"{'FAILED' if failed else 'PASSED'}: {summary.get('wall_s', 0):.0f} s for {len(files)}"
          f" files on {summary.get('workers', 0)} workers")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
