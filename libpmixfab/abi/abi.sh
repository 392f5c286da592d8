#!/usr/bin/env bash
# abi.sh check LIBRARY   compare the library's binary interface with that of the last release; status 1: incompatible
# abi.sh renew LIBRARY VERSION   write the interface of a release, in place of the one before (CONTRIBUTING.md)
# It needs abidiff and abidw (Debian: abigail-tools), and debugging information in the library.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
library=$2
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
cp "$here/../pmixfab.h" "$headers" # types of other headers are private

dump() { # FILE
    abidw --headers-dir "$headers" --drop-private-types --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed \
        --no-parameter-names --exported-interfaces-only --out-file "$1" "$library"
}

case $1 in
check)
    released=$(echo "$here"/pmixfab-*.abi)
    machine=$(sed -n "1s/.* architecture='elf-amd-x86_64' .*/x86_64/p" "$released")
    if [ "$machine" != "$(uname -m)" ]; then
        echo "abi.sh: not compared: ${released##*/} is of another architecture" >&2
        exit 0
    fi
    # Additions are compatible.
    dump "$headers/new.abi"
    if ! abidiff --no-added-syms --suppressions "$here/compatible.ini" "$released" "$headers/new.abi"; then
        echo "abi.sh: $library: incompatible with ${released##*/}: restore the interface, or raise the library's SOVERSION" >&2
        exit 1
    fi
    ;;
renew)
    rm -f "$here"/pmixfab-*.abi
    dump "$here/pmixfab-$3.abi"
    ;;
*)
    sed -n '2,4s/^# //p' "$0" >&2
    exit 2
    ;;
esac
