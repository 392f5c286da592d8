#!/usr/bin/env bash
# root.sh - a Debian of another suite in a folder, which is kept and used again.
#
#   root.sh make SUITE ROOT          make it by debootstrap, from the mirror of this machine's apt; nothing, if it is there
#   root.sh enter ROOT [OPTION...] COMMAND...
#       --overlay DIR                what is written goes below DIR, and ROOT stays as it is
#       --bind FROM:TO               FROM of this machine is TO in it; --bind-ro: read-only
#       --hostname NAME
#
# The command has mounts, processes and a host name of its own, and this machine's network. It has no other environment
# than PATH, HOME, the proxy of apt, and the variables in PASS. All ends with it.
set -euo pipefail

die() {
    echo "root.sh: $*" >&2
    exit 1
}

# The lines of a sources.list for SUITE, by what this machine's apt has for its own. The release itself comes first.
sources() { # SUITE
    local own
    own=$(. /etc/os-release && echo "$VERSION_CODENAME")
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
        awk -v own="$own" -v suite="$1" '
            $2 != own && $2 !~ "^" own "-" { next }
            suite !~ /^(bookworm|trixie)$/ && $2 != own { next } # those of a suite before its release are no use
            { sub("^" own, suite, $2); print length($2), "deb", $1, $2, $3 }' | sort -n | uniq | cut -d' ' -f2-
}

proxy() {
    apt-config dump --format '%v%n' Acquire::http::Proxy
}

make_root() { # SUITE ROOT
    local suite=$1 root=$2 lines script=
    [ ! -e "$root/.made" ] || return 0
    [ "$(id -u)" = 0 ] || die "debootstrap needs root"
    lines=$(sources "$suite")
    [ -n "$lines" ] || die "this machine's apt has no mirror of Debian (apt-get update?)"
    [ -e "/usr/share/debootstrap/scripts/$suite" ] || script=/usr/share/debootstrap/scripts/sid
    rm -rf "$root"
    mkdir -p "$root"
    # shellcheck disable=SC2086  # the script may be left out
    http_proxy=$(proxy) debootstrap --variant=minbase "$suite" "$root" "$(awk '{ print $2; exit }' <<<"$lines")" $script ||
        die "debootstrap failed for $suite: see $root/debootstrap/debootstrap.log"
    printf '%s\n' "$lines" >"$root/etc/apt/sources.list"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service starts in it
    chmod 755 "$root/usr/sbin/policy-rc.d"
    # A mirror may be a snapshot of some day.
    printf 'Acquire::Check-Valid-Until "false";\nAcquire::Languages "none";\nAPT::Install-Recommends "false";\n' \
        >"$root/etc/apt/apt.conf.d/90distro"
    touch "$root/.made"
}

# In the new namespaces: mount, change the root, start the command.
inside() { # ROOT OPTION... COMMAND...
    local root=$1 layer= name= binds=() mode from to
    shift
    while :; do
        case ${1:-} in
        --overlay) layer=$2 && shift 2 ;;
        --bind | --bind-ro) binds+=("${1#--bind}:$2") && shift 2 ;;
        --hostname) name=$2 && shift 2 ;;
        *) break ;;
        esac
    done
    if [ -n "$layer" ]; then
        mkdir -p "$layer/upper" "$layer/work" "$layer/root"
        mount -t overlay -o "lowerdir=$root,upperdir=$layer/upper,workdir=$layer/work" overlay "$layer/root"
        root=$layer/root
    else
        mount --bind "$root" "$root"
    fi
    mount -o remount,bind,dev,suid,exec "$root" 2>/dev/null || true
    cd "$root"
    mount -t proc proc proc
    mount --rbind /sys sys
    mount --rbind /dev dev
    mount -t tmpfs -o mode=1777 none dev/shm
    mount -t tmpfs -o mode=755 none run
    for to in "${binds[@]}"; do
        IFS=: read -r mode from to <<<"$to"
        if [ -d "$from" ]; then mkdir -p ".$to"; else mkdir -p ".${to%/*}" && touch ".$to"; fi
        mount --bind "$from" ".$to"
        [ "$mode" != -ro ] || mount -o remount,bind,ro ".$to"
    done
    if [ ! -L etc/resolv.conf ]; then
        cp /etc/resolv.conf etc/resolv.conf
        cp /etc/hosts etc/hosts
    fi
    [ -z "$name" ] || hostname "$name"
    mkdir -p .old
    pivot_root . .old
    umount -l /.old
    cd /
    local pass=() variable
    for variable in http_proxy ${PASS:-}; do
        [ -z "${!variable:-}" ] || pass+=("$variable=${!variable}")
    done
    # Not by exec: the first process of a process namespace has to wait for those whose parent is gone, as this shell does.
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "${pass[@]}" "$@"
}

enter() { # ROOT OPTION... COMMAND...
    http_proxy=$(proxy) exec unshare --mount --propagation private --pid --fork --kill-child --uts \
        "$(readlink -f "${BASH_SOURCE[0]}")" inside "$@"
}

case ${1:-} in
make) make_root "$2" "$(readlink -m "$3")" ;;
enter) enter "$(readlink -e "$2")" "${@:3}" ;;
inside) inside "${@:2}" ;;
*) die "usage: root.sh make SUITE ROOT, or root.sh enter ROOT [OPTION...] COMMAND..." ;;
esac
