"""leftovers - find processes, files, mounts and sockets that a test leaves behind.

    before = leftovers.Seen()
    ...                           # run a test, and end the processes and folders of its scope (processes.py)
    before.left()                 # end and remove the leftovers; return ["process 711 (sleep 600)", ...]

A process of a test has a mark in its environment or descends from this process. Descendants of living processes of
lab.spawn(), for example a daemon of the class, are no leftovers.
"""
import contextlib
import gc
import os
import shutil
import signal
import subprocess
import time

import failures
import isolate
import processes

MARK = "FABRICD_TEST"
patience_s = processes.HUNG  # seconds to wait for a process that ends by itself; none after one did not
KTHREADD = 2  # the parent of the kernel's threads
_others = set()  # processes without the mark when they were last read


def begin(folder):
    """Mark the processes of this module, and make `folder` their TMPDIR. The folders of tmpdir() stand beside it, because
    PMIx servers of 5.0.3 to 5.0.5 empty their TMPDIR when they end (docs/upstream.md)."""
    os.environ[MARK] = f"{os.environ.get(MARK, '')}/{os.getpid()}.{time.monotonic_ns()}"
    os.environ["TMPDIR"] = folder
    os.mkdir(folder)
    os.chmod(folder, 0o1777)


def look_again():
    """Read the environment of all processes again: a number may have a new owner."""
    _others.clear()


def _environment(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def marked():
    """Return the living processes with the mark and the descendants of this process."""
    global _others
    mark, own = f"\0{MARK}={os.environ[MARK]}".encode(), os.getpid()
    there = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    found, others = set(failures.children(own)), _others & there
    for pid in there - others - found:
        environment = _environment(pid)
        if mark in b"\0" + environment:
            found.add(pid)
        elif environment or _state(pid)[1] == KTHREADD:  # it is empty during execve(), too
            others.add(pid)
    _others = others
    return {pid for pid in found - {own} if _state(pid)[0] not in "ZX"}


def _state(pid):
    """Return (state, parent, group, session) of a process; ("X", 0, 0, 0) if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return words[0], int(words[1]), int(words[2]), int(words[3])
    except OSError:
        return "X", 0, 0, 0


def _kept(pid, leaders):
    """Return whether the process or an ancestor is one of `leaders` or in the group or session of one."""
    while pid > 1:
        _, parent, group, session = _state(pid)
        if leaders & {pid, group, session}:
            return True
        pid = parent
    return False


def _files():
    """Return the paths in TMPDIR, beside it and in this process's own /run, without those of tmpdir()."""
    own = os.environ["TMPDIR"]
    beside = os.path.dirname(own)
    # mount(8) makes /run/mount, systemd-analyze(1) /run/systemd.
    kept = {own, "/run/mount", "/run/systemd", *processes.folders(), *processes.kept}
    places = (own, beside, "/run") if isolate.entered() else (own, beside)
    return {path for folder in places for path in (os.path.join(folder, name) for name in os.listdir(folder))
            if path not in kept}


def _mounts():
    """Return the mount points of this process's own namespace, or, without one, those in the folder that holds TMPDIR."""
    above = "/" if isolate.entered() else os.path.dirname(os.environ["TMPDIR"]) + "/"
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        places = [line.split()[1].replace("\\040", " ") for line in file]
    return {place for place in places if place.startswith(above)}


def sockets():
    """Return the sockets of this process, inode to descriptor."""
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            name = os.readlink(f"/proc/self/fd/{fd}")
            if name.startswith("socket:"):
                found[name] = int(fd)
    return found


class Seen:
    """The processes, files and mounts before a test."""

    def __init__(self):
        self.processes, self.files, self.mounts = marked(), _files(), _mounts()

    def left(self):
        """End and remove the leftovers; return their names."""
        found, killed = [], set()
        while pids := self._processes() - killed:
            killed |= pids
            found += [f"process {pid} ({failures.command_of(pid)})" for pid in sorted(pids)]
            for pid in pids:
                processes.Held(pid).signal(signal.SIGKILL)
        for place in sorted(_mounts() - self.mounts, reverse=True):
            found.append(f"mount {place}")
            subprocess.run(["umount", "-l", place], check=False)
        for path in sorted(_files() - self.files):
            found.append(f"file {path}")
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        return found

    def _processes(self):
        """Return the new processes that do not end by themselves."""
        global patience_s
        leaders = {process.pid for process in processes.started()}
        while pids := {pid for pid in marked() - self.processes if not _kept(pid, leaders)}:
            dying = set(filter(processes.ending, pids))
            if not processes.Held(min(dying or pids)).ended(processes.HUNG if dying else patience_s):
                patience_s = 0
                break
        return pids


def left_sockets(before):
    """Return the names of the open sockets of this process that are not in `before`, from sockets()."""
    if not sockets().keys() - before.keys():
        return []
    gc.collect()
    names = {}
    with open("/proc/self/net/unix", encoding="utf-8", errors="replace") as file:
        for words in map(str.split, file):
            names[f"socket:[{words[6]}]"] = " ".join(words[7:]) or "without a name"
    return [f"socket {fd} of the test itself ({names.get(inode, inode)})" for inode, fd in sockets().items() if inode not in before]
