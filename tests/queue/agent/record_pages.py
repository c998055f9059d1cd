#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pages of records, between which the agent works.

usage: record_pages.py BUILD_DIRECTORY [CASE...]
"""
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from agent import until  # noqa: E402
from cases import equal, run  # noqa: E402
from records import lasting, pages, rows  # noqa: E402


def sizes_of_pages(agent):
    """Pages of any size have the same rows, each once, also of tasks that have several."""
    c = agent.start().client()
    for i in range(6):
        c.submit(["exit $(($GPUDISPATCH_ATTEMPT % 2))"] * 8 + ["exit 1"] * 2, batch=f"b{i}",
                 retries={"error": 2}, needs={"gpus": 1, "memory": (i % 3 + 1) << 28})
    for i in range(6):
        c.ask("wait", batch=str(i + 1))
    for task in ("3.9", "3.10"):
        c.ask("retry", tasks=[task])
    c.ask("wait", batch="3")
    whole = sorted(pages(c, most=10000)[0].splitlines()[:-1])
    equal(pages(c, most=10000)[1], 1)
    equal(sum(x.startswith("attempt\t") for x in whole),
          sum(t["attempt"] for i in range(6) for t in c.tasks(i + 1)))
    few = 1 << 30
    for most in (1, 2, 3, 7, 20, 50, 333):
        text, n = pages(c, most=most)
        shapes_once = [x for x in text.splitlines()
                       if not x.startswith(("shape\t", "now\t"))]
        equal(sorted(shapes_once), [x for x in whole if not x.startswith("shape\t")])
        equal(lasting(text), lasting("\n".join(whole)))
        assert n <= few and (n > 1 or most > 50), (most, n, few)
        few = n


def last_rows(text):
    """The last row of each batch, attempt and end without one."""
    found = {}
    for r in rows(text, "batch", "attempt"):
        key = r.get("id", r.get("task")), r.get("number"), r["ended"] * (r.get("number") == "0")
        found[key] = r
    return found


def moment(text, at):
    program = os.path.join(sys.argv[1], "tests/view/moment_of")
    got = json.loads(subprocess.run([program, at], input=text.encode(), check=True,
                                    capture_output=True).stdout)
    return [got[part] for part in ("classes", "batches", "ends", "findings")]


def work_between_pages(agent):
    """With the last page all that a reader has got is the store at that moment, though tasks start,
    end, are cancelled and retried between the pages before."""
    gate = agent.gate()
    agent.devices = "fake:2"
    c = agent.start().client()
    c.submit(["true", "exit 1"] * 3, batch="a")
    c.ask("wait", batch="1")
    c.submit(["true"] * 3, batch="a", join=True)
    c.submit([f"read x < {gate}"] * 2 + ["true"] * 6, batch="b")
    until(lambda: c.ask("batches")["batches"][2]["states"].get("running") == 2, "two commands")

    def open_gate(n):
        with gate.opened(n):
            c.ask("wait", tasks=[f"3.{i + 1}" for i in range(n)])

    steps = [lambda: c.ask("cancel", tasks=["3.8"]), lambda: c.ask("retry", batch="1"),
             lambda: c.submit(["true"] * 2, batch="new"), lambda: open_gate(2),
             lambda: [c.ask("wait", batch=b) for b in "1234"]]
    text, after = "", {}
    for n in range(1 << 20):
        page = c.ask("records", most=1, **after)
        text += page["lines"]
        if "next" not in page:
            break
        after = {"after": page["next"]}
        if n % 3 == 2 and steps:
            steps.pop(0)()
    equal(steps, [])
    whole = pages(c)[0]
    equal(last_rows(text), last_rows(whole))
    assert len(rows(text, "attempt")) > len(rows(whole, "attempt")), text
    at = rows(whole, "now")[0]["time"]
    equal(moment(text, at), moment(whole, at))


def agents_between_pages(agent):
    """A page begins at the same place for another agent."""
    c = agent.start().client()
    c.submit(["true"] * 100)
    c.ask("wait", batch="1")
    whole = pages(c)[0]
    first = c.ask("records", most=30)
    c.close()
    agent.kill()
    c = agent.start().client()
    text, after = first["lines"], {"after": first["next"]}
    while after:
        page = c.ask("records", most=30, **after)
        text += page["lines"]
        after = {"after": page["next"]} if "next" in page else {}
    equal([x for x in text.splitlines() if x.startswith("attempt")],
          [x for x in whole.splitlines() if x.startswith("attempt")])


def after_another_agent(agent):
    """The next agent repeats what changes from its first page on."""
    c = agent.start().client()
    c.submit(["true"] * 10, hold=True)
    first = c.ask("records", most=1)
    while not rows(first["lines"], "batch"):
        first = c.ask("records", most=1, after=first["next"])
    c.close()
    agent.kill()
    c = agent.start().client()
    c.submit(["true"] * 10, batch="next", hold=True)
    page = c.ask("records", most=1, after=first["next"])
    c.ask("cancel", batch="1")
    text, after = first["lines"] + page["lines"], page["next"]
    while after:
        page = c.ask("records", most=1, after=after)
        text += page["lines"]
        after = page.get("next")
    equal(last_rows(text), last_rows(pages(c)[0]))


def seals_between_pages(agent):
    """A batch to which no task is added any more ends without a change of a task."""
    c = agent.start().client()
    c.ask("submit", batch={"name": "a", "open": True}, specs=[{"cwd": "/"}],
          tasks=[{"spec": 0, "argv": ["true"]}])
    c.ask("wait", tasks=["1.1"])
    c.submit(["true"] * 3, batch="b", hold=True)
    page = c.ask("records", most=1)
    while not rows(page["lines"], "batch"):
        page = c.ask("records", most=1, after=page["next"])
    equal(rows(page["lines"], "batch")[0]["ended"], "")
    c.ask("seal", batch="1")
    page = c.ask("records", most=1, after=page["next"])
    equal([r["id"] for r in rows(page["lines"], "batch") if r["ended"]], ["1"])


def joined_between_pages(agent):
    """A batch that has tasks of others alone changes with them."""
    c = agent.start().client()
    c.submit(["true"] * 2, batch="a", hold=True)
    c.submit(["true"] * 2, batch="a", join=True, hold=True)
    c.submit(["true"] * 3, batch="b", hold=True)
    text = ""
    page = c.ask("records", most=1)
    while "batch\t2\t" not in page["lines"]:
        page = c.ask("records", most=1, after=page["next"])
    c.ask("cancel", batch="1")
    while "next" in page:
        page = c.ask("records", most=1, after=page["next"])
        text += page["lines"]
    equal({r["id"] for r in rows(text, "batch") if r["ends"]}, {"1", "2"})


def many_batches_change(agent):
    """Changes without rows of attempts, each in another batch, make no page long."""
    c = agent.start().client()
    n = 1000
    c.ask("pause")
    for _ in range(n + 1):
        c.submit(["true"])
    text, after = "", {}
    while f"batch\t{n}\t" not in text:
        page = c.ask("records", most=30, **after)
        text += page["lines"]
        after = {"after": page["next"]}
    for batch in range(1, n + 1):
        c.ask("hold", batch=str(batch))
    again, most = "", 0
    while after:
        page = c.ask("records", most=30, **after)
        most = max(most, len(rows(page["lines"], "batch")))
        again += page["lines"]
        after = {"after": page["next"]} if "next" in page else {}
    equal(last_rows(again), last_rows(pages(c)[0]))
    assert most < 20, most


def many_waiting(agent):
    """A batch of many waiting tasks is passed over in parts, and its first task is found."""
    c = agent.start().client()
    c.ask("pause")
    for name in ("a", "b"):
        c.ask("submit", batch={"name": name}, specs=[{"cwd": "/"}],
              tasks=[{"spec": 0, "argv": ["true"]}] * 20000)
    c.ask("cancel", batch="2", first=1, last=19990)
    longest, text, after, n = 0, "", {}, 0
    while n == 0 or after:
        begun = time.monotonic()
        page = c.ask("records", **after)
        longest = max(longest, time.monotonic() - begun)
        text += page["lines"]
        after = {"after": page["next"]} if "next" in page else {}
        n += 1
    equal([r["first"] for r in rows(text, "batch")], ["1", "19991"])
    equal(len(rows(text, "attempt")), 19990)
    assert n > 20, n
    print(f"40,000 tasks in {n} pages, the longest took {longest * 1e3:.1f} ms")

if __name__ == "__main__":
    sys.exit(run("queue-record-pages", [
        sizes_of_pages, work_between_pages, agents_between_pages, after_another_agent,
        seals_between_pages, joined_between_pages, many_batches_change, many_waiting]))
