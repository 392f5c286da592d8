#!/bin/sh
# installed.sh FOLDER - install all packages of FOLDER with apt, show that what is installed works, and remove it again:
# in a root of root.sh.
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get -q update >/dev/null
apt-get -q -y install "$1"/*.deb >/dev/null
/build/tree/bin/mkfabric fattree2:4,2,4 capture >/tmp/fabric.txt
printf '[fabricd]\nprobe = file:/tmp/fabric.txt\nrundir = /tmp/run\nstore = /tmp/store.db\n' >/tmp/fabricd.conf
fabricd --config /tmp/fabricd.conf --check-config
fabricd --config /tmp/fabricd.conf --once
fabricctl --rundir /tmp/run cost node0001 node0005
fabricd --available | grep -i 'pmix_mca' # its components, built for the library that is installed
python3 -c 'import pmixfab; print(pmixfab.open_rundir("/tmp/run").info.n_hosts, "hosts")'
for package in "$1"/*.deb; do dpkg-deb -f "$package" Package; done | xargs dpkg --purge >/dev/null 2>&1
[ ! -e /usr/sbin/fabricd ] && [ ! -e /usr/bin/fabricctl ] && [ ! -e /usr/bin/fabric-host ]
echo "packages: installed, used, removed"
