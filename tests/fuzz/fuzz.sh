#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the fuzz targets with clang's libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer,
# and runs each for some seconds, starting from its corpus.
#
#     sh tests/fuzz/fuzz.sh [SECONDS] [control] [devices] [frame] [hello] [launch] [log] [page]
#                           [plan] [queue_config] [queue_csv] [queue_jsonl] [queue_lines]
#                           [queue_request] [queue_stamp] [queue_template] [queue_values]
#                           [reading] [run_plan] [run_record] [sched] [script] [versioned]
#                           [view_guard] [view_lines] [view_log] [view_snapshot] [xid]
#
# Exit 1 when a target fails.  libFuzzer then writes the input to the current directory (crash-...):
# add it to tests/fuzz/corpus/TARGET together with the repair.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=30
case ${1:-} in
[0-9]*)
    seconds=$1
    shift
    ;;
esac
targets=${*:-control devices frame hello launch log page plan queue_config queue_csv queue_jsonl \
queue_lines queue_request queue_stamp queue_template queue_values reading run_plan run_record \
sched script versioned view_guard view_lines view_log view_snapshot xid}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
clang=${CLANG:-clang}
found=0

# What the names of a run are made of.
numbers="../queue/files/numbers.c ../queue/files/files.c"

# Records of a night, their texts and lines.
view=$(cd "$root/lib" && echo ../view/*.c)

# Prints base/heap.c and the files of lib/ that match the patterns.
files() {
    (cd "$root/lib" && eval "echo base/heap.c $*")
}

for target in $targets; do
    flags=
    libraries=
    case $target in
    control) parts="wire/control.c" ;;
    frame) parts="wire/frame.c" ;;
    hello) parts="wire/hello.c" ;;
    launch) parts="wire/launch.c" ;;
    log | sched)
        flags=-DNDEBUG # what no caller feeds is counted, and changes nothing
        parts=$(files 'sched/*.c log/*.c sim/fact_read.c sim/line_read.c sim/log_read.c' \
            'sim/replay.c')
        ;;
    page) parts="wire/page.c" ;;
    queue_config)
        parts="../queue/config/check.c ../queue/config/config.c ../queue/config/parse.c"
        parts="$parts ../queue/config/sections.c ../queue/config/split.c ../queue/config/values.c"
        parts="$parts ../queue/fail.c ../queue/utf8.c ../tools/cli/near.c"
        ;;
    queue_csv | queue_jsonl | queue_lines)
        parts="$(files '../queue/jobs/*.c' | sed 's/^base.heap.c //') ../queue/fail.c"
        parts="$parts ../queue/utf8.c"
        libraries=-ljansson
        ;;
    queue_template)
        parts="../queue/jobs/template.c ../queue/jobs/texts.c ../queue/utf8.c"
        ;;
    queue_request)
        agent="attached base64 changes classes control explain facts fields first fit history"
        agent="$agent lookup needs page query record_lines records requests results rows select"
        agent="$agent set submit wait"
        parts="$(files '../queue/config/*.c ../tests/queue/memory/*.c' | sed 's/^base.heap.c //')"
        parts="$parts ../tests/queue/memstore.c ../tests/queue/absent.c ../queue/proto/lines.c"
        parts="$parts ../queue/fail.c ../queue/utf8.c ../queue/words.c ../queue/files/stamp.c"
        parts="$parts $numbers ../tools/cli/near.c $view"
        for part in $agent; do
            parts="$parts ../queue/agent/$part.c"
        done
        libraries=-ljansson
        flags=-fno-sanitize=pointer-overflow # tables of the model begin as NULL
        ;;
    queue_stamp) parts="../queue/files/stamp.c $numbers" ;;
    queue_values) parts="../queue/config/values.c ../queue/fail.c" ;;
    plan)
        parts=$(files 'sched/*.c log/fact*.c log/line.c sim/fact*.c sim/line_read.c' \
            'sim/plan_script.c sim/plan_world*.c sim/slow*.c sim/trial.c')
        ;;
    reading) parts="wire/reading.c" ;;
    devices)
        parts="device/kin.c device/list.c device/select.c device/visible.c device/xid.c"
        parts="$parts device/numbers.c base/failure.c base/refused.c"
        ;;
    script)
        parts="device/fake/effects.c device/fake/facts.c device/fake/grammar.c device/fake/parse.c"
        parts="$parts device/fake/script.c device/fake/settings.c device/fake/words.c"
        parts="$parts base/failure.c base/refused.c"
        ;;
    run_plan) parts="../queue/runner/plan.c ../queue/runner/run.c $numbers" ;;
    run_record)
        parts="../queue/runner/record.c ../queue/runner/find.c ../queue/runner/process.c"
        parts="$parts ../queue/runner/run.c ../queue/files/lock.c ../queue/files/save.c $numbers"
        ;;
    versioned) parts="base/versioned.c" ;;
    view_guard) parts="../view/serve/guard.c" ;;
    view_lines) parts=$view ;;
    view_log) parts="$view $(cd "$root/lib" && echo ../view/read/*.c)" ;;
    view_snapshot)
        parts="../view/now/read.c ../view/now/fields.c ../view/now/measures.c"
        parts="$parts ../view/now/snapshot.c ../view/night/use.c ../view/night/waits.c $view"
        libraries=-ljansson
        ;;
    xid) parts="device/xid.c base/failure.c base/refused.c" ;;
    *)
        echo "fuzz.sh: no target $target" >&2
        exit 2
        ;;
    esac
    sources=
    for part in $parts; do
        sources="$sources $root/lib/$part"
    done
    # shellcheck disable=SC2086 # several words
    "$clang" -std=c11 -D_GNU_SOURCE -g -O1 \
        -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined $flags \
        -I "$root" -I "$root/include" -I "$root/lib" -I "$root/tests/fuzz" \
        "$root/tests/fuzz/$target.c" $sources $libraries -o "$work/$target"
    mkdir "$work/$target.corpus"
    echo "== $target, $seconds s"
    if "$work/$target" -max_total_time="$seconds" -max_len=4096 -timeout=10 -print_final_stats=1 \
        "$work/$target.corpus" "$root/tests/fuzz/corpus/$target" >"$work/$target.txt" 2>&1; then
        grep -E '^(Done|stat::number_of_executed_units|#[0-9]+.*DONE)' "$work/$target.txt"
    else
        tail -n 40 "$work/$target.txt"
        found=1
    fi
done
exit $found
