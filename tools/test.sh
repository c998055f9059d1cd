#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds and tests everything, from any directory: gcc with -Werror, AddressSanitizer with
# UndefinedBehaviorSanitizer, ThreadSanitizer, and a clang build.  The last line says how many
# cases passed, failed and were skipped.
#
#     sh tools/test.sh [normal] [asan] [tsan] [clang]      (all when none is named)
set -u
cd "$(dirname "$0")/.." || exit 1
root=$(pwd)
what=${*:-normal asan tsan clang}
broken=0
jobs=$(($(nproc) + 1)) # most of a test is waiting
results=$(mktemp) || exit 1
trap 'rm -f "$results"' EXIT
trap 'exit 1' HUP INT TERM

say() {
    printf '== %s\n' "$*"
}

complain() {
    printf 'tools/test.sh: %s\n' "$*"
    broken=$((broken + 1))
}

# configure DIRECTORY OPTION...: a build directory with exactly these options.
configure() {
    directory=$1
    shift
    if [ -f "$directory/build.ninja" ]; then
        meson setup --reconfigure "$directory" "$@" >"$directory/setup.txt" 2>&1 && return
        rm -rf "$directory"
    fi
    mkdir -p "$directory"
    meson setup "$directory" "$@" >"$directory/setup.txt" 2>&1 || {
        cat "$directory/setup.txt"
        return 1
    }
}

# compile DIRECTORY: quiet when all is well.
compile() {
    ninja -C "$1" >"$1/compile.txt" 2>&1 || {
        tail -n 60 "$1/compile.txt"
        return 1
    }
}

# check DIRECTORY: all suites but slow and sabotage; what sanitizers found is in DIRECTORY/reports, since
# keepers and workers have nobody's stderr.
check() {
    rm -rf "$1/reports"
    mkdir -p "$1/reports"
    before=$(wc -l <"$results")
    log="log_path=$root/$1/reports/report"
    # A crash is an outcome that tests look for: only the kernel's signal may end a worker.
    signals="handle_segv=0:handle_abort=0:handle_sigbus=0"
    GPUD_TEST_RESULTS=$results \
        ASAN_OPTIONS="$log:$signals:detect_stack_use_after_return=1" \
        UBSAN_OPTIONS="$log:$signals:print_stacktrace=1" \
        TSAN_OPTIONS="$log:$signals:die_after_fork=0:halt_on_error=1" \
        meson test -C "$1" --no-rebuild --num-processes "$jobs" --print-errorlogs --no-suite slow --no-suite sabotage >"$1/test.txt" 2>&1
    status=$?
    [ "$status" != 0 ] || grep -E '^ *[0-9]+/[0-9]+ ' "$1/test.txt"
    if [ "$status" != 0 ]; then
        cat "$1/test.txt"
        complain "meson test in $1 exits $status"
    fi
    if [ "$(wc -l <"$results")" = "$before" ]; then
        complain "no test ran in $1"
    fi
    reports=$(find "$1/reports" -type f | sort)
    if [ -n "$reports" ]; then
        for report in $(printf '%s\n' "$reports" | head -n 3); do
            head -n 60 "$report"
        done
        complain "sanitizers wrote $(printf '%s\n' "$reports" | wc -l) reports in $1/reports"
    fi
}

# count_cuda DIRECTORY: how many CUDA files were compiled there; each is clean under -Wall -Wextra, an error otherwise.
cuda="no CUDA toolkit: 0 CUDA files compiled"
count_cuda() {
    n=$(grep -c '^build .*\.cu\.o: ' "$1/build.ninja")
    [ "$n" = 0 ] || cuda="$n CUDA files compiled"
}

# stage NAME OPTION...: configure, compile, check.
stage() {
    directory=build-$1
    say "$1"
    shift
    if configure "$directory" "$@" && compile "$directory"; then
        count_cuda "$directory"
        check "$directory"
    else
        complain "$directory does not build"
    fi
}

if [ -f tools/install-deps.sh ]; then
    sh tools/install-deps.sh test || complain "tools/install-deps.sh test exits $?"
fi

plain="-Dbuildtype=debugoptimized -Dwerror=true"
lean="$plain -Dexamples=false -Dbench=false"
for name in $what; do
    # shellcheck disable=SC2086 # several words each
    case $name in
    normal) CC=gcc stage test $plain ;;
    asan) CC=gcc stage asan $lean -Db_sanitize=address,undefined -Db_lundef=false ;;
    tsan) CC=gcc stage tsan $lean -Db_sanitize=thread -Db_lundef=false ;;
    clang)
        say clang
        if ! CC=clang configure build-clang $plain || ! compile build-clang; then
            complain "build-clang does not build"
        fi
        ;;
    *) complain "no such stage: $name" ;;
    esac
done

count() {
    grep -c "^$1 " "$results"
}
passed=$(count pass)
failed=$(($(count fail) + broken))
skipped=$(count skip)
grep -E '^(fail|skip) ' "$results" | sort | uniq -c
awk '$1 == "faults" { n += $2 } END { printf "%d faults injected\n", n }' "$results"
printf '%s\n' "$cuda"
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
# clang is a build alone, without cases.
[ "$failed" = 0 ] && { [ "$passed" != 0 ] || [ "$what" = clang ]; }
