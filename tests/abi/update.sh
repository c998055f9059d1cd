#!/bin/sh
# SPDX-License-Identifier: MIT
# Writes symbols.txt and layout.txt anew, from the headers and a built library; says what changed.
#
#     sh tests/abi/update.sh [BUILD_DIRECTORY]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
exec python3 "$root/tests/abi/abi.py" update "$root" "$build/lib/libgpudispatch.so"
