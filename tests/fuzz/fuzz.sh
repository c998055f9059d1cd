#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the fuzz targets with clang's libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer,
# and runs each for some seconds, starting from its corpus.
#
#     sh tests/fuzz/fuzz.sh [SECONDS] [TARGET...]
#
# A target is a file tests/fuzz/TARGET.c; without one all are run.  0 s: each reads its corpus only.
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
targets=${*:-$(ls "$root/tests/fuzz/corpus")}
build=$root/build-fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
found=0

for target in $targets; do
    if [ ! -d "$root/tests/fuzz/corpus/$target" ]; then
        echo "fuzz.sh: no target $target" >&2
        exit 2
    fi
done
[ ! -f "$build/build.ninja" ] || again=--reconfigure
# Tables of the model of the queue's store begin as NULL.
# shellcheck disable=SC2086 # one word or none
CC=${CLANG:-clang} meson setup ${again:-} "$build" "$root" -Dtests=true -Dfuzzers=true \
    -Dcuda=disabled -Dtop=disabled -Dbuildtype=debugoptimized -Doptimization=1 -Db_lundef=false \
    -Db_sanitize=address,undefined \
    -Dc_args="-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined \
-fno-sanitize=pointer-overflow" >"$work/setup.txt" || {
    cat "$work/setup.txt"
    exit 1
}
# shellcheck disable=SC2046,SC2086 # several words
ninja -C "$build" $(printf 'tests/fuzz/fuzz_%s ' $targets) >"$work/compile.txt" || {
    tail -n 60 "$work/compile.txt"
    exit 1
}
for target in $targets; do
    mkdir "$work/$target.corpus"
    echo "== $target, $seconds s"
    limit=-max_total_time=$seconds
    [ "$seconds" != 0 ] || limit=-runs=0
    if "$build/tests/fuzz/fuzz_$target" "$limit" -max_len=4096 -timeout=10 -print_final_stats=1 \
        "$work/$target.corpus" "$root/tests/fuzz/corpus/$target" >"$work/$target.txt" 2>&1; then
        grep -E '^(Done|stat::number_of_executed_units|#[0-9]+.*DONE)' "$work/$target.txt"
    else
        tail -n 40 "$work/$target.txt"
        found=1
    fi
done
exit $found
