#!/usr/bin/env bash
# run.sh ROOT [REGEX...] - build a copy of this tree in ROOT, a root of root.sh, as packages and for its tests, install
# the packages, and run the tests; with REGEX only those. The copy is ROOT/fabricd, its builds are below ROOT/build and
# stay. The last lines are a table.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
tree=$(readlink -f "$here/../..")
root=$(readlink -e "$1")
shift
"$here/copy.sh" "$root"
in_root() {
    "$here/root.sh" enter "$root" "$@"
}

export PASS="CMAKE_C_COMPILER_LAUNCHER CCACHE_DIR FABRICD_BUILD CI"
export FABRICD_BUILD=/build/tree
in_root /fabricd/dev -y install-deps build package test
if [ $# = 0 ]; then
    rm -rf "$root/build/packages"
    mkdir "$root/build/packages"
    in_root /fabricd/dev package /build/packages
    layer=$(mktemp -d "$root.layer.XXXXXX") # removed below, or with build-distro
    in_root --overlay "$layer" /fabricd/test/distro/installed.sh /build/packages
    rm -rf "$layer"
    in_root /fabricd/dev test || true
else
    in_root /fabricd/dev test "$(IFS='|' && echo "$*")" || true
fi
python3 "$here/../integration/summary.py" --table "$root/build/tree/tests.xml"
! grep -q "<failure" "$root/build/tree/tests.xml" # the exit status
