#!/bin/sh
# SPDX-License-Identifier: MIT
# Everything that needs a GPU, on a machine that has one: builds with nvcc, runs gpudispatch doctor, the examples, suite
# gpu and the GPU benchmark, and prints date, chip, driver and each line `gpu-result`.  Takes less than nine minutes.
# Installs nothing: it needs nvcc, a C and a C++ compiler, python3, meson and ninja.
#
#     sh tools/gpu.sh
#
# What it prints is in build-gpu/results.txt afterwards, ready for docs/gpu-results.md.
# Exits 0 only if nothing failed and no case of suite gpu was skipped.
set -u
cd "$(dirname "$0")/.." || exit 1
build="build-gpu"
deadline=$(($(date +%s) + 520))
failed=0

give_up() {
    printf 'tools/gpu.sh: %s\n' "$*" >&2
    exit 1
}

say() {
    printf '== %s\n' "$*"
}

# within COMMAND...: runs it for what is left of the time.
within() {
    left=$((deadline - $(date +%s)))
    [ "$left" -gt 0 ] || left=1
    timeout -k 10 "$left" "$@"
}

# must NAME COMMAND...: the same; counts a failure and goes on.
must() {
    name=$1
    shift
    within "$@"
    status=$?
    [ "$status" = 0 ] || {
        failed=$((failed + 1))
        printf 'FAILED: %s: exit status %s%s\n' "$name" "$status" "$([ "$status" != 124 ] || echo ' (the time is over)')"
    }
}

# Meson and ninja as programs, or as modules of Python.
PATH=$PATH:$HOME/.local/bin:/usr/local/cuda/bin
export PATH
command -v nvcc >/dev/null || give_up "no nvcc in PATH or /usr/local/cuda/bin"
if command -v meson >/dev/null; then
    meson() { command meson "$@"; }
elif python3 -c 'import mesonbuild' 2>/dev/null; then
    meson() { python3 -m mesonbuild.mesonmain "$@"; }
else
    give_up "no meson: sh tools/install-deps.sh build, or python3 -m pip install meson ninja"
fi
if ! command -v ninja >/dev/null && ! command -v ninja-build >/dev/null; then
    scripts=$(python3 -c 'import ninja; print(ninja.BIN_DIR)' 2>/dev/null) || give_up "no ninja: sh tools/install-deps.sh build, or python3 -m pip install ninja"
    PATH=$PATH:$scripts
fi

everything() {
    say "machine"
    date -u '+date %Y-%m-%d %H:%M UTC'
    printf 'kernel %s, %s CPUs\n' "$(uname -r)" "$(nproc)"
    nvcc --version | grep release || true
    if command -v nvidia-smi >/dev/null; then
        within nvidia-smi --query-gpu=name,driver_version,memory.total,compute_mode,persistence_mode --format=csv,noheader
    fi

    say "build"
    mkdir -p "$build"
    if [ -f "$build/build.ninja" ]; then
        set -- --reconfigure
    else
        set --
    fi
    meson setup "$@" "$build" --buildtype=release -Dtests=true -Dexamples=true -Dbench=true -Dcuda=enabled >"$build/setup.txt" 2>&1 || {
        tail -n 30 "$build/setup.txt"
        echo "FAILED: meson setup"
        return 1
    }
    targets="lib/gpudispatch-worker tests/runner bench/gpu/gpu-bench examples/cuda/spectrogram examples/cuda/crash-course
        tools/gpudispatch/gpudispatch"
    for name in faults limits signals cost; do
        targets="$targets tests/gpu/gpu_$name"
    done
    # shellcheck disable=SC2086 # a list
    within ninja -C "$build" $targets >"$build/compile.txt" 2>&1 || {
        tail -n 40 "$build/compile.txt"
        echo "FAILED: the build"
        return 1
    }
    printf '%s CUDA files compiled\n' "$(grep -c '^build .*\.cu\.o: ' "$build/build.ninja")"
    GPUD_WORKER_PROGRAM=$PWD/$build/lib/gpudispatch-worker
    export GPUD_WORKER_PROGRAM

    say "what gpudispatch sees"
    must "gpudispatch doctor" "$build/tools/gpudispatch/gpudispatch" doctor
    must "gpudispatch gpus" "$build/tools/gpudispatch/gpudispatch" gpus

    why=$(within "$build/tests/runner" --only out_of_memory "$build/tests/gpu/gpu_faults" 2>&1 | grep '^skip ')
    if [ -n "$why" ]; then
        printf 'FAILED: no GPU: %s\n' "${why#*: }"
        return 1
    fi

    say "examples"
    must "spectrogram on a GPU" python3 examples/cuda/tests/spectrogram.py "$build/examples/cuda/spectrogram" 0
    must crash-course "$build/examples/cuda/crash-course" --devices 0

    say "suite gpu"
    for name in faults limits signals cost; do
        must "gpu_$name" env T_GPU_REQUIRED=1 "$build/tests/runner" "$build/tests/gpu/gpu_$name"
    done

    say "benchmark"
    must gpu-bench "$build/bench/gpu/gpu-bench"
    [ "$failed" = 0 ]
}

mkdir -p "$build" || give_up "$build cannot be made"
{
    everything
    echo $? >"$build/status"
} 2>&1 | tee "$build/results.txt"
say "results" | tee -a "$build/results.txt"
grep -h '^gpu-result ' "$build/results.txt" | sort -u >"$build/lines.txt"
skipped=$(grep -c '^skip ' "$build/results.txt")
{
    cat "$build/lines.txt"
    printf '%s results, %s skipped, %s failures\n' "$(wc -l <"$build/lines.txt")" "$skipped" \
        "$(grep -c '^FAIL' "$build/results.txt")"
} | tee -a "$build/results.txt"
[ "$(cat "$build/status")" = 0 ] && [ "$skipped" = 0 ]
