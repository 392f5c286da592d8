#!/bin/sh
# copy.sh ROOT - put a copy of this tree into a root of root.sh, as ROOT/fabricd. Unchanged files keep their times.
set -e
tree=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
rm -rf "$1/fabricd"
mkdir -p "$1/fabricd" "$1/build"
tar -C "$tree" -c --exclude-vcs --exclude='./build' --exclude='./build-*' --exclude=__pycache__ . | tar -C "$1/fabricd" -x
