#!/bin/sh
# SPDX-License-Identifier: MIT
# The main job by the durable queue: the recordings as files of a class of workers, each of which
# loads one speech engine.  The agent is killed in the middle, and the list submitted again at the
# end.
#
#     sh tools/demo_queue.sh BUILD TRANSCRIPTS
#
# TRANSCRIPTS is what examples/transcribe wrote about the same recordings.  Exits 0 only if every
# recording has the same text there and here, in one result each, and the second submit joins all.
set -eu
build=$(cd "$1" && pwd)
transcripts=$2
sounds=/usr/share/asterisk/sounds/en_US_f_Allison # of the Debian packages
model=/usr/share/pocketsphinx/model
here=$(dirname "$0")
work=$build/queue-demo
results=$work/results.jsonl

gpudispatch() {
    "$build/tools/gpudispatch/gpudispatch" "$@"
}

pid_of_agent() {
    gpudispatch agent status --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])'
}

stop() {
    gpudispatch agent stop --cancel >/dev/null 2>&1 || true
}

rm -rf "$work"
mkdir -p "$work"
cat >"$work/config" <<END
devices = all
[class speech]
plugin = $build/examples/transcribe_worker.so
setup = $model
gpus = 0
cpus = 1
END
export LD_LIBRARY_PATH="$build/lib" GPUD_WORKER_PROGRAM="$build/lib/gpudispatch-worker"
export GPUD_AGENT_PROGRAM="$build/queue/gpudispatch-agent"
export GPUD_RUNNER_PROGRAM="$build/queue/gpudispatch-runner"
export GPUDISPATCH_STATE="$work/state" GPUDISPATCH_CONFIG="$work/config"
unset XDG_RUNTIME_DIR || true
trap stop EXIT

python3 "$here/demo_queue_check.py" paths "$transcripts" "$sounds" >"$work/recordings.txt"
gpudispatch submit --class speech --files "$work/recordings.txt" --batch recordings
# The agent dies once some are done; what ran returns to its place.
python3 "$here/demo_queue_check.py" await 10 "$build/tools/gpudispatch/gpudispatch"
kill -KILL "$(pid_of_agent)"
echo "agent killed"
gpudispatch wait recordings || true
gpudispatch results recordings --json >"$results"
gpudispatch submit --class speech --files "$work/recordings.txt" --batch recordings --json \
    >"$work/again.json"
python3 "$here/demo_queue_check.py" verdict "$transcripts" "$sounds" "$results" \
    "$work/again.json"
# What ran where, as a page to open in a browser.
gpudispatch report recordings -o "$work/report.html"
echo "report: $work/report.html"
