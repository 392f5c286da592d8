#!/bin/sh
# installed.sh FOLDER - install all packages of FOLDER, and show that what is installed starts: in a root of root.sh.
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get -q update >/dev/null
apt-get -q -y install "$1"/*.deb >/dev/null
fabricd --version
fabricd --available
fabricctl --version
python3 -c 'import pmixfab'
printf '[fabricd]\nrundir = /tmp/run\nstate = /tmp/state\n' >/tmp/fabricd.conf
fabricd --check-config -f /tmp/fabricd.conf 2>/dev/null || fabricd --help | head -n 30
# Installed components must be loaded, and none may be refused: stock tools load all of them.
pmix_info --version || true
apt-get -q -y purge 'fabricd*' 'pmix-fabricd' 'pmix-guard' >/dev/null
