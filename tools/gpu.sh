#!/bin/sh
# SPDX-License-Identifier: MIT
# Everything that needs a GPU, on a machine that has one: the replies of NVML, the build with nvcc,
# gpudispatch doctor, suite gpu, the examples, the GPU benchmark.  It takes less than nine minutes
# and installs nothing.  It needs a C and a C++ compiler, python3 with its headers, meson and ninja
# (or their Python modules), and nvcc for the steps that run kernels.
#
#     sh tools/gpu.sh [DIRECTORY]      writes into DIRECTORY [build-gpu/results] as it goes
#     sh tools/gpu.sh --rehearse [BUILD]
#
# DIRECTORY has 8 files: results.txt (the steps, each line `gpu-result`, the table of gpu-bench) and
# machine, nvml, holders, xids, build, suite, bench, each .txt; docs/gpu-results.md describes them.
# If a step fails or exceeds its time limit, a line names it, and the next step runs.  The script
# exits with 0 only if no step failed and no case of suite gpu was skipped, but for the one that
# needs torch.
#
# --rehearse runs every step without nvcc, on fakes of NVML and libcuda.  It adds a step that hangs
# and a step that fails, and checks the results.  BUILD [build-rehearsal] is a build directory with
# tests, examples and bench; the script makes it if it is missing.
set -u
here=$PWD
cd "$(dirname "$0")/.." || exit 1
deadline=$(($(date +%s) + 520))
steps=0
failed=0
listener=

give_up() {
    printf 'tools/gpu.sh: %s\n' "$*" >&2
    exit 1
}

say() {
    printf '%s\n' "$*" | tee -a "$out/results.txt"
}

# run_for SECONDS COMMAND...: sets $status to the exit status.  A process that the driver holds may
# survive SIGTERM and SIGKILL: the function leaves it behind, with status "stuck".
run_for() {
    limit=$1
    shift
    ended=$scratch/ended.$steps
    {
        timeout -k 5 "$limit" "$@" </dev/null &
        echo $! >"$scratch/running"
        wait $!
        echo $? >"$ended"
    } &
    over=$(($(date +%s) + limit + 10))
    until [ -s "$ended" ] || [ "$(date +%s)" -gt "$over" ]; do
        sleep 0.1
    done
    status=$(cat "$ended" 2>/dev/null || echo stuck)
    rm -f "$scratch/running"
}

# step FILE SECONDS NAME COMMAND...: appends the command's output to FILE; a line in results.txt
# reports how it ended.
step() {
    file=$out/$1
    seconds=$2
    name=$3
    shift 3
    begun=$(date +%s)
    steps=$((steps + 1))
    left=$((deadline - begun))
    [ "$seconds" -le "$left" ] || seconds=$left
    before=$(($(wc -l <"$file") + 1))
    printf '== %s\n' "$name" >>"$file"
    if [ "$seconds" -le 0 ]; then
        status="not run: out of time"
    else
        run_for "$seconds" "$@" >>"$file" 2>&1
    fi
    took=$(($(date +%s) - begun))
    case $status in
    0)
        say "$(printf 'ok     %4d s  %s' $took "$name")"
        return
        ;;
    124 | 137) why="cut off at its limit of $seconds s" ;;
    stuck) why="survived SIGKILL, left behind" ;;
    not*) why=$status ;;
    *) why="exit status $status" ;;
    esac
    failed=$((failed + 1))
    say "$(printf 'FAILED %4d s  %s: %s' $took "$name" "$why")"
    tail -n "+$before" "$file" | tail -n 20
}

# ---- the steps ----

# What is not there says so.
machine='
date -u "+date %Y-%m-%d %H:%M UTC"
uname -a
printf "%s CPUs, %s\n" "$(nproc)" "$(grep MemAvailable /proc/meminfo)"
cat /etc/os-release /proc/driver/nvidia/version /proc/driver/nvidia/gpus/*/information \
    /proc/self/cgroup
ls -l /dev/nvidia* /proc/self/ns
env | grep -E "^(CUDA|NVIDIA|GPUD|LD_LIBRARY)"
nvcc --version
dmesg | grep -i -E "nvrm|nvidia" | tail -n 40
nvidia-smi
nvidia-smi --format=csv,noheader \
    --query-gpu=name,driver_version,memory.total,compute_mode,persistence_mode,mig.mode.current
true'

# Sets how meson and ninja are called: as programs, or as modules of Python.
find_tools() {
    PATH=$PATH:$HOME/.local/bin:/usr/local/cuda/bin
    export PATH
    nvcc=$(command -v nvcc)
    meson=meson
    ninja=$(command -v ninja || command -v ninja-build ||
        python3 -c 'import ninja; print(ninja.BIN_DIR + "/ninja")' 2>/dev/null) ||
        give_up "no ninja: sh tools/install-deps.sh build, or python3 -m pip install ninja"
    command -v meson >/dev/null || meson="python3 -m mesonbuild.mesonmain"
    $meson --version >/dev/null 2>&1 ||
        give_up "no meson: sh tools/install-deps.sh build, or python3 -m pip install meson"
    NINJA=$ninja
    export NINJA
}

build_all() {
    mkdir -p "$build"
    if [ -z "$rehearsal" ]; then
        cuda=$([ -n "$nvcc" ] && echo enabled || echo disabled)
        again=$([ ! -f "$build/build.ninja" ] || echo --reconfigure)
        # shellcheck disable=SC2086 # several words, or none
        step build.txt 60 "meson setup" $meson setup $again "$build" --buildtype=release \
            -Dtests=true -Dexamples=true -Dbench=true -Dpython=auto "-Dcuda=$cuda"
    fi
    targets="lib/gpudispatch-worker tools/gpudispatch/gpudispatch tests/runner bench/gpu/$bench
        examples/cuda/spectrogram examples/cuda/crash-course"
    for program in $programs; do
        targets="$targets tests/gpu/gpu_$program"
    done
    if has_package; then
        targets="$targets python-package"
    fi
    # shellcheck disable=SC2086 # a list
    step build.txt 150 "ninja -k 0" "$ninja" -C "$build" -k 0 $targets
}

# Whether the build has the Python package.
has_package() {
    grep -q '^build python-package:' "$build/build.ninja"
}

run_suite() {
    for program in $programs; do
        executable=$build/tests/gpu/gpu_$program
        only=$([ -z "$rehearsal" ] || first_case "$executable")
        # shellcheck disable=SC2086 # two words, or none
        step suite.txt 120 "suite gpu: $program" env T_GPU_REQUIRED=1 T_VERBOSE=1 \
            "$build/tests/runner" --deadline 40 $only "$executable"
    done
    if has_package; then
        step suite.txt 120 "suite gpu: python" env T_GPU_REQUIRED=1 \
            python3 python/tests/gpu.py "$build"
    elif [ -z "$rehearsal" ]; then
        step suite.txt 120 "suite gpu: python" \
            python3 tests/wants.py python3-dev python/tests/gpu.py
    fi
}

# In a rehearsal one case of each program is enough: the tests of meson rehearse all.
first_case() {
    "$1" --list | sed -n '1s/ .*//; 1s/^/--only /p'
}

run_examples() {
    for example in spectrogram crash-course; do
        step suite.txt 60 "$example" $no_fakes python3 "examples/cuda/tests/$example.py" \
            "$build/examples/cuda/$example" "$device"
    done
}

everything() {
    step machine.txt 30 "machine" sh -c "$machine"
    step holders.txt 20 "holders before" python3 tools/gpu_nvml.py holders
    step nvml.txt 40 "answers of NVML" python3 tools/gpu_nvml.py answers
    # The script is for the fake NVML of a rehearsal.
    FAKE_SCRIPT=$scratch/xid.txt python3 tools/gpu_nvml.py listen >"$out/xids.txt" 2>&1 &
    listener=$!
    build_all
    step nvml.txt 40 "gpudispatch gpus" "$build/tools/gpudispatch/gpudispatch" gpus
    step nvml.txt 60 "gpudispatch doctor" "$build/tools/gpudispatch/gpudispatch" doctor $look
    run_suite
    [ -z "$rehearsal" ] || provoke_failures
    step holders.txt 20 "holders after the suite" python3 tools/gpu_nvml.py holders
    run_examples
    step bench.txt 150 "gpu-bench" "$build/bench/gpu/$bench" $rehearsal
    kill "$listener" 2>/dev/null # where there is no NVML it has ended
    listener=
}

report() {
    skipped=$(grep '^skip ' "$out/suite.txt" | grep -vc ': torch ')
    grep '^skip ' "$out/suite.txt" | tee -a "$out/results.txt"
    say "XIDs received: $(grep -c ': XID ' "$out/xids.txt")"
    grep -E '^(gpu|rehearsed)-(result|note) ' "$out/suite.txt" | sort -u | tee -a "$out/results.txt"
    sed -n '/^key /,$p' "$out/bench.txt" | tee -a "$out/results.txt"
    results=$(grep -c '^gpu-result ' "$out/results.txt")
    say "$steps steps, $failed failed, $skipped cases skipped; $results results of a GPU"
    [ "$failed" = 0 ] && [ "$skipped" = 0 ]
}

# ---- the rehearsal ----

prepare_rehearsal() {
    if [ ! -f "$build/build.ninja" ]; then
        $meson setup "$build" -Dbuildtype=debug -Dcuda=disabled -Dtests=true -Dexamples=true \
            -Dbench=true -Dpython=auto >"$scratch/setup.txt" 2>&1 ||
            give_up "$build cannot be set up: $(tail -n 5 "$scratch/setup.txt")"
    fi
    "$ninja" -C "$build" test-programs >"$scratch/fakes.txt" 2>&1 ||
        give_up "the fakes do not build: $(tail -n 20 "$scratch/fakes.txt")"
    echo "at 1s gpu 0 xid 31" >"$scratch/xid.txt"
    LD_LIBRARY_PATH=$build/tests/programs
    FAKE_SCRIPT=gpu.txt
    T_GPU_REHEARSE=fake
    export LD_LIBRARY_PATH FAKE_SCRIPT T_GPU_REHEARSE
}

provoke_failures() {
    # Should all of this be killed now, what was learnt so far is in the files.
    step suite.txt 1 "hangs" sh -c 'grep Name "$1"; sleep 600' sh "$out/nvml.txt"
    step suite.txt 5 "fails" false
}

wants() {
    grep -q "$2" "$out/$1" || {
        printf 'tools/gpu.sh --rehearse: %s lacks "%s":\n' "$1" "$2"
        cat "$out/$1"
        wrong=1
    }
}

check_rehearsal() {
    wrong=0
    wants results.txt '^FAILED .* hangs: cut off at its limit of 1 s$'
    wants results.txt '^FAILED .* fails: exit status 1$'
    wants results.txt "^$steps steps, 2 failed, 0 cases skipped"
    wants results.txt '^rehearsed-result xid_heard 31 XID$'
    wants results.txt '^busy_1ms_vs_bare '
    wants machine.txt '^date '
    wants holders.txt '^these are all'
    wants nvml.txt '^nvmlDeviceGetName: 0: Fake GPU'
    wants nvml.txt '^gpu:0 .*HEALTHY'
    wants xids.txt ': XID 31 '
    wants build.txt '^== ninja'
    wants suite.txt '^ok illegal_address '
    ! has_package || wants suite.txt '^pass gpu_python_rehearsed/killed$'
    wants suite.txt '^nvmlDeviceGetName: 0: Fake GPU' # seen while a step hung
    wants bench.txt '^restart_vs_fork '
    [ "$(find "$out" -type f | wc -l)" = 8 ] || { ls "$out" && wrong=1; }
    [ "$wrong" = 0 ]
}

# ---- main ----

# Ended by a signal, it leaves no step on the GPU: timeout passes the signal on.
leave() {
    [ -z "$listener" ] || kill "$listener" 2>/dev/null
    [ ! -s "$scratch/running" ] || kill "$(cat "$scratch/running")" 2>/dev/null
    rm -rf "$scratch"
}

trap leave EXIT
trap 'exit 1' HUP INT TERM
scratch=$(mktemp -d) || exit 1
rehearsal=
look=
no_fakes=
programs="faults nvml limits signals cost"
bench=gpu-bench
device=0
build=$PWD/build-gpu
out=build-gpu/results
find_tools
case ${1:-} in
--rehearse)
    rehearsal=--rehearse
    nvcc=
    programs=$(printf '%s_rehearsed ' $programs)
    bench=gpu-bench-rehearsed
    device=cpu:1
    look="--quick --devices=fake:1"
    no_fakes="env -u LD_LIBRARY_PATH"
    build=$PWD/build-rehearsal
    case ${2:-} in
    /*) build=$2 ;;
    ?*) build=$here/$2 ;;
    esac
    out=$scratch/results
    ;;
-*) give_up "usage: sh tools/gpu.sh [DIRECTORY] | --rehearse [BUILD]" ;;
/*) out=$1 ;;
?*) out=$here/$1 ;;
esac
GPUD_WORKER_PROGRAM=$build/lib/gpudispatch-worker
export GPUD_WORKER_PROGRAM
mkdir -p "$out" || give_up "cannot create $out"
for name in results machine nvml holders xids build suite bench; do
    : >"$out/$name.txt" || exit 1
done
[ -z "$rehearsal" ] || prepare_rehearsal
everything
report
verdict=$?
[ -z "$rehearsal" ] || {
    check_rehearsal
    verdict=$?
}
exit $verdict
