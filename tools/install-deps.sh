#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the Debian or Ubuntu packages that a set of tools needs; does nothing, and needs no
# rights, when all are there.
#
#     sh tools/install-deps.sh build | python | demo | test
#
#   build  compiler and build tools        demo  build, and what examples/transcribe uses
#   test   build, and further checkers     python  for "pip install ." (pip fetches the build tools)
set -eu

# dpkg-dev: Meson queries it for the directory of libraries.  Without it they go to a directory that
# neither pkg-config nor the loader searches.
# python3-pip: fetches NVIDIA's nvml.h from PyPI.
# libjansson-dev, libsqlite3-dev: for the queue, and jansson for the simulator of traces (lib/sim).
# libncurses-dev: for the screen of gpudispatch top; libmicrohttpd-dev: for the live page.
build="dpkg-dev gcc libc6-dev libjansson-dev libmicrohttpd-dev libncurses-dev libsqlite3-dev meson"
build="$build ninja-build pkg-config python3"
python="gcc libc6-dev libjansson-dev libncurses-dev libsqlite3-dev pkg-config python3-dev"
python="$python python3-venv"
demo="libpocketsphinx-dev pocketsphinx-en-us libspandsp-dev asterisk-core-sounds-en-g722"
# gdb, golang-go, python3-yaml, rustc, systemd: for the pages of docs/howto (tests/pages.py).
# groff-base, man-db, mandoc: for the manual pages (tests/manual.py).
# tmux: for the screens of top (tests/view/terminal.py).
# libpython3.N-testsuite, python3-dev, python3-venv: for the Python package (python/tests).
version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null ||
    echo 3.11)
test="clang cmake cppcheck g++ gdb golang-go groff-base libpython$version-testsuite libuv1-dev"
test="$test make man-db mandoc musl-tools python3-dev python3-pip python3-venv"
test="$test python3-yaml rustc systemd tmux valgrind xz-utils"

fail() {
    printf 'tools/install-deps.sh: %s\n' "$*" >&2
    exit 1
}

case ${1:-} in
build) wanted=$build ;;
python) wanted=$python ;;
demo) wanted="$build $demo" ;;
test) wanted="$build $test" ;;
*) fail "usage: sh tools/install-deps.sh build | python | demo | test" ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "this is neither Debian nor Ubuntu: install the equivalents of these packages: $wanted"
fi

missing() {
    for package in $wanted; do
        # shellcheck disable=SC2016 # dpkg-query's variable, not ours
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$status" = installed ] || printf '%s ' "$package"
    done
}

packages=$(missing)
[ -n "$packages" ] || exit 0

printf 'These packages are missing and will be installed with apt-get: %s\n' "$packages"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
    echo "(with sudo, which may ask for your password)"
else
    fail "not root, and there is no sudo: run as root: apt-get install $packages"
fi

# Waits for another apt-get instead of failing; shows errors only.
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >/dev/null
}

apt update || echo "tools/install-deps.sh: apt-get update failed;" \
    "trying with the package lists of this machine" >&2
# shellcheck disable=SC2086 # a list
apt install --yes --no-install-recommends $packages ||
    fail "apt-get install failed; on Ubuntu some are in universe: add-apt-repository universe"

left=$(missing)
[ -z "$left" ] || fail "still missing after apt-get install: $left"
