#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds and tests, from any directory.  The last line counts the cases:
# "N passed, N failed, N skipped".
#
#     sh tools/test.sh                     one plain build and the functional suites: the check
#                                          before each commit
#     sh tools/test.sh all                 everything but the next two, as CI does: gcc,
#                                          AddressSanitizer with UndefinedBehaviorSanitizer,
#                                          ThreadSanitizer, clang, cppcheck, NVIDIA's nvml.h from
#                                          PyPI, a rehearsal of tools/gpu.sh.  While the tests
#                                          of a part run, the next one is compiled.
#     sh tools/test.sh slow                suite slow: the long runs
#     sh tools/test.sh sabotage [WORD...]  applies known faults to a copy of the tree: the tests
#                                          must notice each
#     sh tools/test.sh PART...             parts of "all": gcc, asan, tsan, clang, cppcheck, nvml,
#                                          rehearsal
#
# "test.sh" alone installs the Debian packages of `install-deps.sh build` and skips cases that need
# more; the others install the set `test`.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$(pwd)
jobs=$(($(nproc) * 3)) # most of a test is waiting
broken=0
lowly="" # before a compiler that only takes the CPU time that tests leave
ahead=""
results=$(mktemp) || exit 1
times=$(mktemp) || exit 1
faults=$(mktemp) || exit 1 # what is said again at the end
trap 'rm -f "$results" "$times" "$faults"' EXIT
trap 'exit 1' HUP INT TERM

say() {
    printf '== %s\n' "$*"
}

complain() {
    printf 'tools/test.sh: %s\n' "$*" | tee -a "$faults"
    broken=$((broken + 1))
}

# timed NAME COMMAND...: runs it; the table at the end has its time.
timed() {
    label=$1
    start=$(date +%s)
    shift
    "$@"
    ended=$?
    printf '%5d s  %s\n' $(($(date +%s) - start)) "$label" >>"$times"
    return $ended
}

install_packages() {
    sh tools/install-deps.sh "$1" || complain "tools/install-deps.sh $1 exits $?"
}

# configure DIRECTORY OPTION...: makes a build directory with exactly these options.  A directory
# with different options is made anew, since Meson keeps an option that the command does not name.
configure() {
    directory=$1
    shift
    wanted="${CC:-} $*"
    if [ "$(cat "$directory/options.txt" 2>/dev/null)" = "$wanted" ]; then
        meson setup --reconfigure "$directory" "$@" >"$directory/setup.txt" 2>&1 && return
    fi
    rm -rf "$directory"
    mkdir -p "$directory"
    meson setup "$directory" "$@" >"$directory/setup.txt" 2>&1 || {
        cat "$directory/setup.txt"
        return 1
    }
    printf '%s\n' "$wanted" >"$directory/options.txt"
}

# compile DIRECTORY [TARGET...]: prints warnings and errors only.
compile() {
    directory=$1
    shift
    $lowly ninja -C "$directory" "$@" >"$directory/compile.txt" 2>&1 || {
        tail -n 60 "$directory/compile.txt"
        return 1
    }
    grep -E -A 4 'warning:' "$directory/compile.txt" || :
}

# compiled_by_clang DIRECTORY: prints the targets of part clang: every object file, and the tool
# with the library.  Nothing runs the other programs.
compiled_by_clang() {
    (cd "$1" && ninja -t targets all | sed -n 's/^\(.*\.o\): .*/\1/p')
    echo tools/gpudispatch/gpudispatch
}

make_clang() {
    CC=clang timed "clang: configure" configure build-clang -Dbuildtype=debug -Ddebug=false \
        -Dwerror=true -Dcuda=disabled -Dtests=true -Dexamples=true -Dbench=true \
        -Dpython=enabled -Dqueue=enabled || return 1
    # shellcheck disable=SC2046 # several words
    timed "clang: compile" compile build-clang $(compiled_by_clang build-clang)
}

# say_failures DIRECTORY: the tests that failed, each with the end of its log.
say_failures() {
    for log in "$1"/meson-logs/testlog*.json; do
        python3 - "$log" <<'END'
import json, sys
for line in open(sys.argv[1]):
    test = json.loads(line)
    if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL"):
        print(f"{test['result']} {test['name']}, {test['duration']:.0f} s")
        said = test.get("stdout", "") + test.get("stderr", "")
        print("\n".join("    " + part[:200] for part in said.splitlines()[-25:]))
END
    done
}

# check DIRECTORY OPTION...: meson test with these options.  It collects the reports of sanitizers
# from DIRECTORY/reports: the stderr of keepers and workers does not reach the log of the tests.
check() {
    directory=$1
    shift
    rm -rf "$directory/reports" "$directory"/meson-logs/testlog*
    mkdir -p "$directory/reports"
    before=$(wc -l <"$results")
    log="log_path=$root/$directory/reports/report"
    # A crash is an outcome that tests look for: only the kernel's signal may end a worker.
    signals="handle_segv=0:handle_abort=0:handle_sigbus=0"
    GPUD_TEST_RESULTS=$results \
        ASAN_OPTIONS="$log:$signals:detect_stack_use_after_return=1" \
        UBSAN_OPTIONS="$log:$signals:print_stacktrace=1" \
        TSAN_OPTIONS="$log:$signals:die_after_fork=0:halt_on_error=1" \
        meson test -C "$directory" --no-rebuild --num-processes "$jobs" --print-errorlogs "$@" \
            >"$directory/test.txt" 2>&1
    status=$?
    if [ "$status" = 0 ]; then
        grep -E '^ *[0-9]+/[0-9]+ ' "$directory/test.txt"
    else
        cat "$directory/test.txt"
        say_failures "$directory" >>"$faults"
        complain "meson test in $directory exits $status"
    fi
    if [ "$(wc -l <"$results")" = "$before" ]; then
        complain "no test ran in $directory"
    fi
    reports=$(find "$directory/reports" -type f | sort)
    if [ -n "$reports" ]; then
        for report in $(printf '%s\n' "$reports" | head -n 3); do
            head -n 60 "$report"
        done | tee -a "$faults"
        written=$(printf '%s\n' "$reports" | wc -l)
        complain "sanitizers wrote $written reports in $directory/reports"
    fi
    return 0
}

# suite_times DIRECTORY: the time of all tests of a suite, which run side by side.
suite_times() {
    sed -n 's/^ *[0-9]*\/[0-9]* \(gpudispatch:\)\{0,1\}\([a-z]*\).* \([0-9.]*\)s.*/\2 \3/p' \
        "$1/test.txt" |
        awk '{ sum[$1] += $2 } END { for (s in sum) printf "%9.0f s  of suite %s\n", sum[s], s }' |
        sort -k4 >>"$times"
}

# await_begun NAME: waits for the build that `begin` has begun.
await_begun() {
    [ -z "$ahead" ] || timed "$1: the rest of what began before" wait "$ahead"
    ahead=""
}

# build NAME OPTION...: configures and compiles build-NAME.
build() {
    built=$1
    shift
    say "$built"
    await_begun "$built"
    timed "$built: configure" configure "build-$built" "$@" &&
        timed "$built: compile" compile "build-$built" && return
    complain "build-$built does not build"
    return 1
}

# begin COMMAND...: makes a build beside the tests that run next.  Where it fails, it is made again
# in its own part, which prints why.
begin() {
    (
        lowly="nice -n 19"
        ahead=""
        # shellcheck disable=SC2317 # "$@" calls it
        timed() {
            shift
            "$@"
        }
        "$@"
    ) >/dev/null 2>&1 &
    ahead=$!
}

# make_next NAME: begins the build of the part that follows NAME in "all".
make_next() {
    [ "$what" = all ] || return 0
    # shellcheck disable=SC2086 # several words
    case $1 in
    gcc) CC=gcc begin build asan $sanitized -Db_sanitize=address,undefined ;;
    asan) CC=gcc begin build tsan $sanitized -Db_sanitize=thread ;;
    tsan) begin make_clang ;;
    esac
}

# stage SETUP NAME OPTION...: builds, and runs the tests of this setup of meson's.
stage() {
    setup=$1
    stage=$2
    shift
    if build "$@"; then
        make_next "$stage"
        logs=$(count logs)
        timed "$stage: tests" check "build-$stage" --setup "$setup"
        # In builds with assertions the runner replays the logs of all dispatchers.
        [ "$(count logs)" != "$logs" ] || complain "no log of a core was compared in build-$stage"
        suite_times "build-$stage"
    fi
}

analyse() {
    say cppcheck
    timed cppcheck cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability \
        --inline-suppr -j "$(nproc)" --std=c11 -Ilib -Iinclude -I. -D_GNU_SOURCE -DGPUD_BUILDING \
        lib queue tools/cli tools/gpudispatch || complain "cppcheck exits $?"
    timed "cppcheck: python" cppcheck --quiet --error-exitcode=1 \
        --enable=warning,performance,portability --inline-suppr --std=c11 --library=python \
        -Iinclude -D_GNU_SOURCE -DPy_LIMITED_API=0x030b0000 '-DPy_BEGIN_ALLOW_THREADS={' \
        '-DPy_END_ALLOW_THREADS=}' '-DPy_RETURN_NONE=return 0' python/src ||
        complain "cppcheck of python/src exits $?"
}

# Our declarations of NVML against NVIDIA's, which pip leaves in build-nvml.
compare_nvml() {
    say nvml
    GPUD_TEST_RESULTS=$results timed "nvml: headers" \
        python3 tests/declarations/nvml.py --fetch build-nvml ||
        complain "tests/declarations/nvml.py exits $?"
}

# tools/gpu.sh on fakes, in the build of part gcc.
rehearse() {
    say rehearsal
    mkdir -p build-gcc
    timed "rehearsal of tools/gpu.sh" \
        sh tools/gpu.sh --rehearse build-gcc >build-gcc/rehearsal.txt 2>&1 && {
        echo "pass rehearsal/gpu.sh" >>"$results"
        return
    }
    cat build-gcc/rehearsal.txt
    complain "tools/gpu.sh --rehearse fails"
}

# The virtual environment of python/tests, which pip fills while the compiler runs; the tests wait.
prepare_python() {
    mkdir -p build-python
    python3 python/tests/environment.py build-python/venv >build-python/venv.txt 2>&1 &
}

# part gcc | asan | tsan | clang | cppcheck | nvml | rehearsal
part() {
    # With asserts.  Parts gcc and clang make warnings errors; with a sanitizer at -O1, gcc warns of
    # cases that cannot occur.  Reports name lines, not variables (-g1); clang only compiles.  Part
    # gcc has the CUDA files: nvcc compiles them in the same way everywhere.
    sanitized="-Dbuildtype=debug -Doptimization=1 -Dc_args=-g1 -Dtests=true -Db_lundef=false"
    sanitized="$sanitized -Dcuda=disabled -Dqueue=enabled"
    # shellcheck disable=SC2086 # several words
    case $1 in
    gcc)
        prepare_python
        CC=gcc stage all gcc -Dbuildtype=debugoptimized -Dc_args=-g1 -Dwerror=true \
            -Dtests=true -Dexamples=true -Dbench=true -Dpython=enabled -Dqueue=enabled
        # nvcc's warnings are errors, too.
        cuda=$(grep -c '^build .*\.cu\.o: ' build-gcc/build.ninja)
        cuda="$cuda CUDA files compiled (none without nvcc)"
        ;;
    asan) CC=gcc stage all asan $sanitized -Db_sanitize=address,undefined ;;
    tsan) CC=gcc stage all tsan $sanitized -Db_sanitize=thread ;;
    clang)
        say clang
        await_begun clang
        make_clang || complain "build-clang does not build"
        ;;
    cppcheck) analyse ;;
    nvml) compare_nvml ;;
    rehearsal) rehearse ;;
    *) complain "no such part: $1" ;;
    esac
}

count() {
    grep -c "^$1 " "$results"
}

# finish: what was skipped, the times, what failed, the counts: of a long output the end is read.
finish() {
    grep '^skip ' "$results" | sort | uniq -c
    sed -n 's/^note //p' "$results" | sort -u
    awk '$1 == "faults" { n += $2 } END { if (n) printf "%d faults injected\n", n }' "$results"
    awk '$1 == "logs" { n += $2; lines += $3 }
        END { if (n) printf "%d logs of cores replayed as equal, %d lines\n", n, lines }' "$results"
    [ -z "$cuda" ] || printf '%s\n' "$cuda"
    cat "$times"
    lacking=$(sed -n 's/^skip .*: needs the package //p' "$results" | sort | uniq -c |
        sed 's/^ *\([0-9]*\) /, \1 need /')
    if [ -n "$lacking" ]; then
        printf 'skipped since a package is missing: %s (sh tools/install-deps.sh test)\n' \
            "$(printf '%s' "$lacking" | tr -d '\n' | cut -c 3-)"
        [ "$what" = quick ] || complain "packages are missing"
    fi
    if grep -q '^skip .*: needs the Python index' "$results" && [ "$what" != quick ]; then
        complain "pip cannot install a list of python/tests, requirements*.txt"
    fi
    cat "$faults"
    grep '^fail ' "$results" | sort | uniq -c
    passed=$(count pass)
    failed=$(($(count fail) + broken))
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$(count skip)"
    [ "$failed" = 0 ]
}

usage() {
    echo "usage: sh tools/test.sh [all | slow | sabotage [WORD...] | gcc | asan | tsan | clang |" \
        "cppcheck | nvml | rehearsal]" >&2
    exit 2
}

cuda=""
what=${1:-quick}
case $what in
all | slow) [ $# = 1 ] || usage ;;
esac
case $what in
quick)
    timed packages install_packages build
    stage quick quick -Dbuildtype=debug -Dtests=true -Dcuda=disabled -Dpython=auto \
        -Dqueue=enabled
    ;;
all)
    timed packages install_packages test
    for name in gcc asan tsan; do
        part "$name"
    done
    # Most of a rehearsal is waiting.
    before=$broken
    (part rehearsal && [ "$broken" = "$before" ]) &
    beside=$!
    for name in clang cppcheck nvml; do
        part "$name"
    done
    wait "$beside" || broken=$((broken + 1))
    ;;
slow)
    timed packages install_packages test
    timed "packages of the demo" install_packages demo
    prepare_python
    if build slow -Dbuildtype=release -Dtests=true -Dexamples=true -Dpython=enabled \
        -Dqueue=enabled; then
        timed "slow: tests" check build-slow --suite slow
    fi
    ;;
sabotage)
    timed packages install_packages test
    shift
    say sabotage
    GPUD_TEST_RESULTS=$results timed sabotage python3 tests/sabotage/run.py "$@" ||
        complain "tests/sabotage/run.py exits $?"
    ;;
gcc | asan | tsan | clang | cppcheck | nvml | rehearsal)
    timed packages install_packages test
    for name in "$@"; do
        part "$name"
    done
    ;;
*) usage ;;
esac
finish
