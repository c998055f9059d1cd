#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes docs/monitoring/ from the table of metric families in view/metrics/metrics.h.

    python3 tools/make_monitoring.py [--check]

alerts.yml has rules for Prometheus, dashboard.json a dashboard for Grafana.  A rule or panel names
its families by their ids in the table, so that no name can differ from what the program writes.
--check writes nothing; exit 1 if a file is not what this program makes.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEADER = ROOT / "view/metrics/metrics.h"
FOLDER = ROOT / "docs/monitoring"
SUFFIX = {"counter": "_total", "info": "_info"}

# name, for, severity, expression, summary, description.  {ID} is the sample of a family.
ALERTS = [
    ("GpudispatchTasksCrash", "0m", "warning",
     'sum by (instance, class) (increase({ATTEMPTS}{outcome="crashed"}[15m])) > 5',
     "Tasks of class {{ $labels.class }} crash",
     "More than five attempts crashed in 15 minutes. Next: gpudispatch report"),
    ("GpudispatchGpuOut", "10m", "warning",
     '{STATE}{gpudispatch_gpu_state="out"} == 1',
     "GPU {{ $labels.gpu }} is out of use",
     "The GPU takes no tasks since 10 minutes. Next: gpudispatch gpus"),
    ("GpudispatchGpuIdleWhileTasksWait", "15m", "info",
     'sum by (instance, gpu, UUID) (rate({SECONDS}{use="limited"}[15m])) > 0.9',
     "GPU {{ $labels.gpu }} is idle although tasks wait",
     "The GPU was idle for most of 15 minutes while tasks waited. Next: gpudispatch top"),
    ("GpudispatchTimeLost", "0m", "warning",
     "sum by (instance) (increase({LOST}[1h])) > 0.2 * sum by (instance) "
     '(increase({SECONDS}{use="work"}[1h]))',
     "A fifth of the GPU time is lost",
     "Attempts that did not end ok took a fifth of the GPU time of the last hour. "
     "Next: gpudispatch report --since 1h"),
    ("GpudispatchWorkersRestart", "0m", "warning",
     "sum by (instance, class) (increase({RESTARTS}[15m])) > 5",
     "Workers of class {{ $labels.class }} die",
     "More than five workers were replaced in 15 minutes. Next: gpudispatch report"),
    ("GpudispatchNothingRuns", "15m", "warning",
     'sum by (instance) ({WAITING}{reason!="held"}) > 0 and sum by (instance) ({STATE}'
     '{gpudispatch_gpu_state=~"run|load|leave|kept"}) == 0',
     "Tasks wait, and no GPU works",
     "No task started in 15 minutes. Next: gpudispatch agent status"),
    ("GpudispatchFileIsOld", "0m", "warning",
     'time() - node_textfile_mtime_seconds{file=~".*gpudispatch.*"} > 120',
     "The metrics of gpudispatch are old",
     "gpudispatch metrics --file does not run any more."),
]

# title, kind, unit, queries of (expression, legend).
PANELS = [
    ("GPUs by state", "timeseries", "short",
     [("sum by (gpudispatch_gpu_state) ({STATE})", "{{gpudispatch_gpu_state}}")]),
    ("Waiting tasks by reason", "timeseries", "short",
     [("sum by (reason) ({WAITING})", "{{reason}}")]),
    ("Use of the GPU time", "timeseries", "percentunit",
     [("sum by (use) (rate({SECONDS}[$__rate_interval])) / ignoring(use) group_left sum"
       "(rate({SECONDS}[$__rate_interval]))", "{{use}}")]),
    ("Tasks that ended, per minute", "timeseries", "short",
     [("60 * sum by (class, outcome) (rate({TASKS}[$__rate_interval]))",
       "{{class}} {{outcome}}")]),
    ("Bad ends of attempts, per minute", "timeseries", "short",
     [('60 * sum by (class, outcome) (rate({ATTEMPTS}{outcome!="ok"}[$__rate_interval]))',
       "{{class}} {{outcome}}")]),
    ("Run time of half of the attempts", "timeseries", "s",
     [("histogram_quantile(0.5, sum by (class, le) (rate({RUN}_bucket[1h])))", "{{class}}")]),
    ("Waiting time of half of the attempts", "timeseries", "s",
     [("histogram_quantile(0.5, sum by (class, le) (rate({WAIT}_bucket[1h])))", "{{class}}")]),
    ("Workers that were evicted or restarted, per hour", "timeseries", "short",
     [("3600 * sum by (class) (rate({EVICTIONS}[1h]))", "{{class}} evicted"),
      ("3600 * sum by (class) (rate({RESTARTS}[1h]))", "{{class}} restarted")]),
    ("GPU time lost, part of the work", "timeseries", "percentunit",
     [('sum(rate({LOST}[1h])) / sum(rate({SECONDS}{use="work"}[1h]))', "lost")]),
    ("Versions", "table", "short", [("{BUILD}", "")]),
]


def families():
    """The samples of each family by its id: a counter's name ends in _total."""
    text = re.sub(r"\\\n", " ", HEADER.read_text())
    table = re.search(r"#define GPV_FAMILY_MAP\(X\)(.*)\n", text)[1]
    rows = re.findall(r'X\((\w+),\s*"(\w+)",\s*"(\w+)"', table)
    return {name: family + SUFFIX.get(kind, "") for name, family, kind in rows}


def filled(text, names):
    """{ID} as the sample of the family; an id that is none is an error."""
    return re.sub(r"\{([A-Z]+)\}", lambda m: names[m[1]], text)


def alerts(names):
    out = ["# SPDX-License-Identifier: MIT", "# Made by tools/make_monitoring.py.",
           "groups:", "- name: gpudispatch", "  rules:"]
    for name, wait, severity, expression, summary, description in ALERTS:
        out += [f"  - alert: {name}", f"    expr: {json.dumps(filled(expression, names))}",
                f"    for: {wait}", "    labels:", f"      severity: {severity}",
                "    annotations:", f"      summary: {json.dumps(summary)}",
                f"      description: {json.dumps(description)}"]
    return "\n".join(out) + "\n"


def panel(number, title, kind, unit, queries, names):
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "id": number + 1, "title": title, "type": kind, "datasource": source,
        "gridPos": {"x": 12 * (number % 2), "y": 8 * (number // 2), "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "ABC"[i], "datasource": source, "expr": filled(expr, names),
                     "legendFormat": legend, "instant": kind == "table",
                     **({"format": "table"} if kind == "table" else {})}
                    for i, (expr, legend) in enumerate(queries)]}


def dashboard(names):
    return json.dumps({
        "title": "gpudispatch", "uid": "gpudispatch", "schemaVersion": 39, "refresh": "30s",
        "time": {"from": "now-12h", "to": "now"}, "timezone": "browser", "tags": ["gpudispatch"],
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus",
                                 "label": "Prometheus"}]},
        "panels": [panel(i, *row, names) for i, row in enumerate(PANELS)]}, indent=1) + "\n"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: make_monitoring.py [--check]")
    names = families()
    used = {i for row in ALERTS + PANELS for i in re.findall(r"\{([A-Z]+)\}", str(row))}
    if used != set(names):
        sys.exit(f"families without a rule or panel, or the reverse: {used ^ set(names)}")
    old = []
    for name, text in (("alerts.yml", alerts(names)), ("dashboard.json", dashboard(names))):
        path = FOLDER / name
        if not path.is_file() or path.read_text() != text:
            old.append(str(path.relative_to(ROOT)))
        if not sys.argv[1:]:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text)
    if sys.argv[1:] and old:
        sys.exit(f"not made by tools/make_monitoring.py: {', '.join(old)}")


main()
