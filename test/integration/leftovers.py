"""leftovers - what a test leaves behind: processes, files, mounts, sockets.

    before = leftovers.Seen()
    ...                           # a test, and the end of all that the laboratory made for it
    before.left()                 # ["process 711 (sleep 600)", ...]; all of it is ended and removed now

Processes are found by a mark in their environment, and as descendants of this one. A descendant of a process that the
laboratory keeps (a daemon of the whole class) is no leftover.
"""
import contextlib
import gc
import os
import shutil
import signal
import subprocess
import time

import failures
import processes

MARK = "FABRICD_TEST"
patience_s = processes.HUNG  # so long all tests of a module together wait for what ends by itself
_others = set()  # processes that are no test's of this module


def begin(folder):
    """Mark all that this process starts. folder: a new one for their temporary files, beside the laboratory's. It is apart,
    since PMIx servers of 5.0.3 to 5.0.5 empty theirs when they end (docs/upstream.md)."""
    os.environ[MARK] = f"{os.environ.get(MARK, '')}/{os.getpid()}.{time.monotonic_ns()}"
    os.environ["TMPDIR"] = folder
    os.mkdir(folder)
    os.chmod(folder, 0o1777)


def look_again():
    """Look at processes, too, that were another's when they were last seen."""
    _others.clear()


def _environment(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def marked():
    """The living processes with the mark, and the descendants of this one."""
    global _others
    mark, own = f"\0{MARK}={os.environ[MARK]}".encode(), os.getpid()
    there = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    found, others = set(failures.children(own)), _others & there
    for pid in there - others - found:
        environment = _environment(pid)
        if mark in b"\0" + environment:
            found.add(pid)
        elif environment:  # one without may be in the middle of execve()
            others.add(pid)
    _others = others
    return {pid for pid in found - {own} if _state(pid)[0] not in "ZX"}


def _state(pid):
    """(state, parent, group, session) of a process; ("X", 0, 0, 0) where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return words[0], int(words[1]), int(words[2]), int(words[3])
    except OSError:
        return "X", 0, 0, 0


def _kept(pid, leaders):
    """Is it a process of the laboratory's, or of one of these?"""
    while pid > 1:
        _, parent, group, session = _state(pid)
        if leaders & {pid, group, session}:
            return True
        pid = parent
    return False


def _files():
    """What is in the folder for temporary files, and beside it."""
    own = os.environ["TMPDIR"]
    beside = os.path.dirname(own)
    kept = {own, *processes.folders(), *processes.kept}
    return {path for folder in (own, beside) for path in (os.path.join(folder, name) for name in os.listdir(folder))
            if path not in kept}


def _mounts():
    """The mounts below the folder for temporary files."""
    above = os.path.dirname(os.environ["TMPDIR"]) + "/"
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        places = [line.split()[1].replace("\\040", " ") for line in file]
    return {place for place in places if place.startswith(above)}


def sockets():
    """The sockets of this process: inode to descriptor."""
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            name = os.readlink(f"/proc/self/fd/{fd}")
            if name.startswith("socket:"):
                found[name] = int(fd)
    return found


class Seen:
    """What is there before a test."""

    def __init__(self):
        self.processes, self.files, self.mounts = marked(), _files(), _mounts()

    def left(self):
        """The names of what is there now and was not; all of it is ended and removed."""
        found = []
        while pids := self._processes():
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
        """Those that do not end by themselves."""
        global patience_s
        leaders = {process.pid for process in processes.started()}
        while True:
            pids = {pid for pid in marked() - self.processes if not _kept(pid, leaders)}
            dying = set(filter(processes.ending, pids))
            if not dying and (not pids or patience_s <= 0):
                return pids
            begun = time.monotonic()
            processes.Held(min(dying or pids)).ended(processes.HUNG if dying else patience_s)
            patience_s -= time.monotonic() - begun


def left_sockets(before):
    """The names of the sockets that this process has opened since sockets() was `before`, and keeps."""
    if not sockets().keys() - before.keys():
        return []
    gc.collect()
    names = {}
    with open("/proc/self/net/unix", encoding="utf-8", errors="replace") as file:
        for words in map(str.split, file):
            names[f"socket:[{words[6]}]"] = " ".join(words[7:]) or "without a name"
    return [f"socket {fd} of the test itself ({names.get(inode, inode)})" for inode, fd in sockets().items() if inode not in before]
