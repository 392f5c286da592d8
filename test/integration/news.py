"""news - wait for events of the kernel and of a daemon, without polling.

    notices = news.Notices(folder)             # the service manager of one daemon (sd_notify(3))
    process = spawn(..., env={..., "NOTIFY_SOCKET": notices.path})
    notices.follow(process)
    notices.wait("READY=1")
    news.until_file(path, lambda: os.path.exists(path), "the file")
"""
import ctypes
import os
import select
import socket
import threading
import time

from processes import HUNG, LabError

_IN_ANY = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # a file or folder changes, comes, goes
_libc = ctypes.CDLL(None, use_errno=True)


class Notices:
    """Read the notices of a daemon until it ends."""

    _count = 0

    def __init__(self, folder):
        Notices._count += 1
        self.path = os.path.join(folder, f"notify.{os.getpid()}.{Notices._count}")
        self.ended = False
        self._lines = []
        self._changed = threading.Condition(threading.RLock())
        self._thread = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(self.path)
        os.chmod(self.path, 0o666)  # the daemon may have a user of its own

    def follow(self, process):
        """Begin to read, up to the end of this process. Its reap() waits for that."""
        process.notices = self
        self._thread = threading.Thread(target=self._read, args=(os.pidfd_open(process.pid),), daemon=True)
        self._thread.start()

    def _read(self, pidfd):
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.register(pidfd, select.POLLIN)
        while not self.ended:
            ended = any(fd == pidfd for fd, _ in poll.poll())
            lines = []
            try:
                while True:
                    lines += self._socket.recv(4096).decode("utf-8", "replace").splitlines()
            except OSError:  # none is left
                pass
            if ended:
                self._socket.close()
                os.close(pidfd)
                os.unlink(self.path)
            with self._changed:
                self._lines += lines
                self.ended = ended
                self._changed.notify_all()

    def close(self):
        """Wait for the end of the reading, which the end of the process brings."""
        self._thread.join()

    def count(self, notice):
        """Return how often the daemon has sent this line (None: any)."""
        with self._changed:
            return len(self._lines) if notice is None else self._lines.count(notice)

    def wait(self, notice, times=1):
        """Wait until the daemon has sent this line (None: any) so many times; return how often it has. LabError if it ends
        before."""
        end = time.monotonic() + HUNG
        with self._changed:
            while self.count(notice) < times:
                if self.ended or not self._changed.wait(end - time.monotonic()):
                    why = "the daemon ended" if self.ended else f"waited {HUNG} s"
                    raise LabError(f"{why} without {notice or 'a notice'}; the last notices: {self._lines[-5:]}")
            return self.count(notice)


class _Folder:
    """inotify on the folder of a path, or on the nearest folder above it that is there."""

    def __init__(self, path):
        self.fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        folder = os.path.dirname(os.path.abspath(path))
        while _libc.inotify_add_watch(self.fd, os.fsencode(folder), _IN_ANY) < 0:
            if folder == "/":
                raise OSError(ctypes.get_errno(), f"inotify_add_watch {path}")
            folder = os.path.dirname(folder)

    def close(self):
        os.close(self.fd)


def until_file(path, condition, what="a file", process=None):
    """Evaluate the condition, which is about this file, now and whenever something changes in its folder; return its value
    when that is true. process: LabError as soon as this one of spawn() has ended, and the condition is false."""
    end = time.monotonic() + HUNG
    pidfd = os.pidfd_open(process.pid) if process is not None and not process.reaped else None
    try:
        while True:
            folder = _Folder(path)  # before the condition: no change is missed. Each time: the folder itself may come or go
            try:
                ended = process is not None and process.poll() is not None
                value = condition()
                if value:
                    return value
                if ended:
                    raise LabError(f"the process ended without {what}")
                left = end - time.monotonic()
                if left <= 0:
                    raise LabError(f"waited {HUNG} s for {what}, in vain")
                select.select([folder.fd, *([] if pidfd is None else [pidfd])], [], [], left)
            finally:
                folder.close()
    finally:
        if pidfd is not None:
            os.close(pidfd)
