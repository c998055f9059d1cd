#!/bin/sh
# SPDX-License-Identifier: MIT
# The main job on real input, from nothing: installs what is needed, builds, turns spoken
# prompts into text with one speech engine per worker process, and checks what came out.
# Works from any directory; as root or with sudo where packages are missing.
#
#     sh tools/demo.sh [--all] [--kill-one] [--workers N] [--limit SECONDS]
#
# Exits 0 only if at least 95 % of the files are SUCCESS with text, two known prompts have the
# right text and every file is accounted for; with --kill-one also: exactly one restart.  Then the
# durable queue must give each file the same text, though its agent is killed in the middle.
set -eu
cd "$(dirname "$0")/.."

usage() {
    echo "usage: sh tools/demo.sh [--all] [--kill-one] [--workers N] [--limit SECONDS]" >&2
    exit 2
}

check_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --all | --kill-one) shift ;;
        --workers | --limit)
            [ $# -ge 2 ] || usage
            shift 2
            ;;
        --workers=* | --limit=*) shift ;;
        *) usage ;;
        esac
    done
}

# configure: a fresh look at what is installed, also when the directory is an old one.
configure() {
    options="--buildtype=release -Dexamples=true"
    if [ -f "$build/build.ninja" ]; then
        # shellcheck disable=SC2086 # several words
        meson setup --reconfigure "$build" $options >"$build/setup.txt" 2>&1 && return
        rm -rf "$build"
    fi
    mkdir -p "$build"
    # shellcheck disable=SC2086
    meson setup "$build" $options >"$build/setup.txt" 2>&1
}

give_up() {
    [ ! -f "$1" ] || tail -n 40 "$1" >&2
    echo "tools/demo.sh: $2" >&2
    exit 1
}

check_options "$@"
case " $* " in
*" --kill-one "*) kills=1 ;;
*) kills=0 ;;
esac
build="build-demo"
transcripts=$build/transcripts.json

echo "== packages"
sh tools/install-deps.sh demo

echo "== build"
configure || give_up "$build/setup.txt" "meson setup failed"
ninja -C "$build" >"$build/compile.txt" 2>&1 || give_up "$build/compile.txt" "the build failed"
[ -x "$build/examples/transcribe" ] || give_up "$build/setup.txt" "transcribe was not built"

echo "== transcription"
rm -f "$transcripts"
status=0
"$build/examples/transcribe" --json "$transcripts" "$@" || status=$?
# 1: not every file is SUCCESS, which the verdict is about.
[ "$status" -le 1 ] || give_up /dev/null "transcribe exits $status"

echo "== verdict (transcripts in $transcripts)"
python3 tools/demo_verdict.py "$transcripts" "$kills"

case " $* " in
*" --all "*) echo "== the durable queue: not with --all" ;;
*)
    echo "== the same files by the durable queue, whose agent is killed in the middle"
    sh tools/demo_queue.sh "$build" "$transcripts"
    ;;
esac
