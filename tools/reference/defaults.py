# SPDX-License-Identifier: MIT
"""The defaults of options: what the header promises in brackets, and what the code does."""
import re

# Defaults that depend on more than the option: what lib/api/options.c or a place beside it does.
WORKED_OUT = {
    "definition": "the only one",
    "xid_rules": "environment `GPUD_XID_RULES`, else none",
    "devices": '"cpu:1"',
    "sent_ahead": "at least 2 x `max_batch`, at most 64",
    "payload_budget": "a quarter of the memory that is left",
    "setup_concurrency": "no bound",
    "retry_causes": "GPUD_RETRY_CRASH (1)",
    "log_level": "GPUD_LEVEL_INFO (3)",
    "drive": "GPUD_DRIVE_THREAD (0)",
    "start": "GPUD_START_AUTO (0)",
    "stdio": "GPUD_STDIO_TAIL (0)",
    "cwd": "as at `gpud_init`",
    "argv": "the same program again",
    "mode": "GPUD_MODE_BACKFILL (0)",
    "passing": "GPUD_PASSING_LEARNED (0)",
    "cpus": "CPUs that the host may run on",
    "headroom": "1,000, and at least 512 MiB",
    "max_workers": "4 x devices, and at least `cpus`, at most 1,023",
    "host_memory": "the memory that is left",
    "foreign_memory": "1,073,741,824",
}
UNITS = {"ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
NEVER = 2**64 - 1
NO_TIMES = ("payload_budget", "setup_size", "seed", "host_memory", "foreign_memory")


def as_number(text):
    """A default in brackets as a number, where it is one."""
    if text == "GPUD_NEVER":
        return NEVER
    m = re.match(r"([\d,]+)(?: (ms|s|min|h))?(?=$|:)", text)
    return int(m.group(1).replace(",", "")) * UNITS.get(m.group(2), 1) if m else None


def coded(root):
    """The values with which lib/api/options.c replaces zero: numbers, or names of constants."""
    text = (root / "lib/api/options.c").read_text()
    found = {}
    for name, value in re.findall(r"^    X\((\w+), [\w.]+, \w+, \w+, ([^)]+)\)", text, re.M):
        if value == "GPI_NEVER":
            found[name] = NEVER
        elif re.fullmatch(r"(\d+ \* )?GPI_S", value):
            found[name] = int(value.split()[0]) * 10**9 if " " in value else 10**9
        else:
            found[name] = int(value) if value.isdigit() else value
    return found


def shown(value, is_time):
    if value == NEVER:
        return "GPUD_NEVER: no limit"
    if not isinstance(value, int):
        return str(value)
    return f"{value:,} ns" if is_time and value else f"{value:,}"


def of_options(tree):
    """Field, default in brackets, and real value, of every option."""
    known, rows = coded(tree.root), []
    for field in tree.options():
        is_time = field.type() == "uint64_t" and field.name not in NO_TIMES
        value = WORKED_OUT.get(field.name) or (
            shown(known[field.name], is_time) if field.name in known
            else "none" if "*" in field.text else "0")
        rows.append((field.name, field.bracket() or "", value))
    return rows


def of_tasks(tree):
    return [(field.name, field.bracket() or "",
             field.bracket() or ("none" if "*" in field.text else "0"))
            for field in tree.task_fields()]
