"""isolate - a test module sees nothing of the services that run on this machine.

    isolate.enter(folder)     # before the process has a second thread, and before it starts another one

A running munged, slurmd, OpenSM, ibsim or lldpd listens in /run, at a port or at an abstract socket. enter() moves the
process into namespaces of its own: /run begins empty, and the network has the loopback interface only, with ports and
abstract sockets of its own. Every process that it starts is there, too. The namespaces end with the last process in them.

Root enters a mount and a network namespace. Another user enters a user namespace first, in which every file of root
has the owner 65534. fabricd refuses a run directory below a folder of another user, so this user gets a root folder
of his own: all folders of this machine are visible there, and /lab0 is the folder for the tests' files.
"""
import contextlib
import ctypes
import fcntl
import itertools
import os
import socket
import struct
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MUNGE = "/run/munge/munge.socket.2"  # compiled into munge's library, and into fabricd
# What stays of /run: the services that the C library asks for users, and where /etc/resolv.conf may point to.
KEPT = ("/run/nscd", "/run/nslcd", "/run/systemd/userdb")
RESOLVER = ("/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/run/connman")

NEWNS, NEWUSER, NEWNET = 0x00020000, 0x10000000, 0x40000000
BIND, REC, PRIVATE, DETACH = 0x1000, 0x4000, 0x40000, 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203}
CAPABILITY_VERSION_3 = 0x20080522
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)
_refused = None
_entered = False


def _check(result, what):
    if result != 0:
        raise OSError(f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source, target, kind=None, flags=0, options=None):
    source, target, kind, options = (None if text is None else os.fsencode(text) for text in (source, target, kind, options))
    _check(_libc.mount(source, target, kind, ctypes.c_ulong(flags), options), f"mount {target}")


def _open(paths):
    """Descriptors of those folders that are below /run, {path: descriptor}."""
    found = {}
    for path in sorted({os.path.realpath(path) for path in paths}):
        with contextlib.suppress(FileNotFoundError):
            if path.startswith("/run/"):
                found[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
    return found


def _fill_run(run, kept, shm):
    """An empty file system becomes what programs expect of /run, with the folders that are kept in it."""
    os.mkdir(f"{run}/lock")
    os.chmod(f"{run}/lock", 0o1777)
    if shm:
        os.symlink("/dev/shm", f"{run}/shm")
    for path, fd in kept.items():
        place = run + path.removeprefix("/run")
        os.makedirs(place, exist_ok=True)
        _mount(f"/proc/self/fd/{fd}", place, flags=BIND | REC)
        os.close(fd)


def _own_root(kept, shm, lab, folder):
    """A root folder of this user, made on /run, which it hides anyway. lab: where the tests' folder is visible in it, whose
    descriptor is `folder`."""
    new = "/run"
    _mount("none", new, "tmpfs", options="mode=755")
    for entry in os.scandir("/"):
        place = new + entry.path
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), place)
        elif entry.name == "run":
            os.mkdir(place)
        elif entry.is_dir():
            os.mkdir(place)
            _mount(entry.path, place, flags=BIND | REC)
    _fill_run(f"{new}/run", kept, shm)
    os.mkdir(new + lab)
    _mount(f"/proc/self/fd/{folder}", new + lab, flags=BIND | REC)
    here = os.getcwd()
    os.chdir(new)
    _check(_libc.syscall(SYS_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", DETACH), "umount /")
    os.chdir(here)


def _map_user(uid, gid):
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _drop_capabilities():
    _check(_libc.capset(struct.pack("=Ii", CAPABILITY_VERSION_3, 0), bytes(24)), "capset")


def _loopback_up():
    with socket.socket() as one:
        fcntl.ioctl(one, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def _enter(folder, network, lab):
    uid, gid, shm = os.geteuid(), os.getegid(), os.path.lexists("/run/shm")
    places = [ROOT, os.environ.get("FABRICD_BUILD") or ROOT, folder, os.getcwd(), *KEPT, *(RESOLVER if network else ())]
    _check(_libc.unshare(NEWNS | (NEWUSER if uid != 0 else 0) | (0 if network else NEWNET)), "unshare")
    if uid != 0:
        _map_user(uid, gid)
    _mount("none", "/", flags=REC | PRIVATE)
    kept = _open(places)
    if uid == 0:
        _mount("none", "/run", "tmpfs", options="mode=755")
        _fill_run("/run", kept, shm)
    else:
        fd = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        _own_root(kept, shm, lab, fd)
        os.close(fd)
    if not network:
        _loopback_up()
    if uid != 0:
        _drop_capabilities()


def _try(*arguments):
    """Let a child enter: None, or why it could not."""
    to_read, to_write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _enter(*arguments)
        except (OSError, KeyError) as error:
            os.write(to_write, str(error).encode())
        finally:
            os._exit(0)
    os.close(to_write)
    with open(to_read, encoding="utf-8", errors="replace") as file:
        said = file.read()
    os.waitpid(child, 0)
    return said or None


def enter(folder, network=False):
    """Isolate this process, or leave it as it is where this machine refuses that. need() then skips tests.

    folder: for the files of the tests; in a user namespace it is also /lab0, and tempfile makes files there
    network: True keeps the machine's network
    """
    global _refused, _entered
    # Another number where the process that started this one is isolated, too.
    lab = next(path for path in map("/lab{}".format, itertools.count()) if not os.path.lexists(path))
    _refused = _try(folder, network, lab)
    if _refused is None:
        _enter(folder, network, lab)
        _entered = True
        if os.geteuid() != 0:
            tempfile.tempdir = lab


def refused():
    """Why this process is not isolated; None: it is, or enter() was not called."""
    return _refused


def entered():
    """Return whether enter() has isolated this process."""
    return _entered


def need():
    """Skip the test where the process is not isolated and the machine's own munged answers: fabricd would use that one."""
    if _refused is not None:
        with socket.socket(socket.AF_UNIX) as channel, contextlib.suppress(OSError):
            channel.connect(MUNGE)
            raise unittest.SkipTest(f"the machine's munged answers, and this user cannot have a /run of his own: {_refused}")
