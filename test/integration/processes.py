"""processes - start and end the processes and folders of a test.

spawn() starts a process as the leader of a process group; the kernel kills it when this program ends. poll() and wait()
read its exit status without reaping it. Until kill_group() reaps it the kernel gives its number to no other process, so a
signal to the group reaches this group only. end_since(scope) ends the processes and removes the folders that were made
since scope(); cleanup() does so for all.
"""
import atexit
import collections
import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

# A sanitized build is several times slower; deadlines stretch.
SANITIZE = os.environ.get("FABRICD_SANITIZE", "")
SLOW = 6 if SANITIZE else 1
HUNG = 120 * SLOW  # seconds; a wait of this length means "hung"
LINES = 100  # evidence has this many last lines of a log


class LabError(Exception):
    """Something of the laboratory (not of what is tested) did not work, or a wait ran out."""


def find_command(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def wait_for(condition, timeout=0, what="condition"):
    """Ask until the answer is true and return it; LabError after HUNG seconds, or `timeout` (more when sanitized) where that is
    longer, as a bench may need. For conditions of other programs: those of fabricd and of files are events
    (lab.Fabricd.until(), news.until_file())."""
    bound = max(HUNG, timeout * SLOW)
    end = time.monotonic() + bound
    pause = 0.002
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise LabError(f"waited {bound} s for {what}, in vain")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


# ---- scopes -------------------------------------------------------------------------------------------

_made = 0  # the number of processes and folders made so far
_dirs = {}  # path to place in that order
_processes = []  # not reaped yet, in that order
kept = []  # folders that end_since() left
commands = collections.deque(maxlen=50)  # the processes that were reaped last
_owner = os.getpid()


def _number():
    global _made
    _made += 1
    return _made


def tmpdir():
    """A new folder that other users may look into; gone at exit."""
    path = tempfile.mkdtemp(prefix="d.")  # short: the path of a socket has 107 characters
    os.chmod(path, 0o755)
    _dirs[path] = _number()
    return path


def folders():
    """Return the paths of tmpdir() that end_since() has not removed."""
    return list(_dirs)


def started():
    """Return the processes of spawn() that kill_group() has not reaped."""
    return list(_processes)


def scope():
    """Return the present point in the order of processes and folders, for end_since()."""
    return _made


def end_since(since, keep=False):
    """Kill the processes and remove the folders that were made after `since`; with `keep` leave the folders."""
    for process in [process for process in _processes if process.number > since]:
        kill_group(process)
    for path in [path for path, number in _dirs.items() if number > since]:
        if keep:
            kept.append(path)
        else:
            shutil.rmtree(path, ignore_errors=True)
        del _dirs[path]


@atexit.register
def cleanup():
    """End all processes and remove all folders. Also for tearDown of a test that wants a clean table."""
    if os.getpid() == _owner:  # not a forked child of a test
        end_since(0)


def _on_signal(number, _frame):
    sys.exit(128 + number)


for _signal in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(_signal, _on_signal)


# ---- processes -----------------------------------------------------------------------------------------

_prctl = ctypes.CDLL(None).prctl


def _with_parent():
    """In the child: request SIGKILL at the end of the parent."""
    _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Process(subprocess.Popen):
    """The leader of a process group. poll() and wait() set returncode; only reap() reaps it.

    number   its place in the order of processes and folders
    output   a Lines or a text with its output; None where the test reads it
    logs     paths of its log files
    notices  None, or the news.Notices that read what it sends
    more     None, or a function that returns more evidence as text
    """

    def __init__(self, argv, of=None, **options):
        self.number, self.output, self.more, self.notices, self.reaped = _dirs.get(of) or _number(), None, None, None, False
        self.folder = os.path.abspath(options.get("cwd") or ".")
        self.logs = list({file.name for file in (options.get("stdout"), options.get("stderr"))
                          if isinstance(getattr(file, "name", None), str)})
        super().__init__(argv, start_new_session=True, preexec_fn=_with_parent, **options)

    def _look(self, options):
        """Set returncode if the process has ended. options: of waitid()."""
        try:
            end = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | options)
        except ChildProcessError:  # the test reaped it
            self.returncode, self.reaped = 0, True
            return
        if end is not None:
            self.returncode = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status

    def poll(self):
        if self.returncode is None:
            self._look(os.WNOHANG)
        return self.returncode

    def wait(self, timeout=None):
        if self.poll() is None:
            if timeout is not None and not Held(self.pid).ended(timeout):
                raise subprocess.TimeoutExpired(self.args, timeout)
            self._look(0)
        return self.returncode

    def reap(self):
        """Wait for the end of the process and reap it."""
        self.wait()
        if not self.reaped:
            os.waitid(os.P_PID, self.pid, os.WEXITED)
            self.reaped = True
        if self.notices is not None:
            self.notices.close()


class Held:
    """A process that is not a child of this one, held by a descriptor: a signal never reaches the next owner of its number."""

    def __init__(self, pid):
        self._fd = None
        with contextlib.suppress(ProcessLookupError):
            self._fd = os.pidfd_open(pid)

    def __del__(self):
        if self._fd is not None:
            os.close(self._fd)

    def signal(self, number):
        """Send a signal; do nothing if the process has ended."""
        if self._fd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._fd, number)

    def ended(self, timeout=HUNG):
        """Wait for the end of the process, reaped or not. Return False after `timeout` seconds."""
        if self._fd is None:
            return True
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(max(timeout, 0) * 1000))


def ending(pid):
    """Return whether the process has ended, is exiting, or has SIGKILL pending."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat, open(f"/proc/{pid}/status", encoding="ascii",
                                                                                         errors="replace") as status:
            exiting = int(stat.read().rsplit(")", 1)[1].split()[6]) & 4  # PF_EXITING
            pending = int(re.search(r"^ShdPnd:\s*(\w+)", status.read(), re.MULTILINE).group(1), 16)
    except (OSError, AttributeError):
        return True
    return bool(exiting or pending >> (signal.SIGKILL - 1) & 1)


def spawn(argv, of=None, **options):
    """Start a Process. end_since() ends it with the folder `of` (a path of tmpdir()), or, without one, by its own place in
    the order: a daemon that a test restarts belongs to the class that made the folder. The option `user` needs root."""
    if options.get("user") is not None and os.geteuid() != 0:
        raise unittest.SkipTest("needs root, to become somebody else")
    argv = [find_command(argv[0]) or argv[0], *argv[1:]]
    process = Process(argv, of, **options)
    _processes.append(process)
    return process


def kill_group(process, number=signal.SIGKILL):
    """Send a signal to the process group of a process from spawn(). After SIGKILL, wait for the process and reap it."""
    if not process.reaped:  # afterwards its number may be another process's
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
    if number == signal.SIGKILL:
        process.reap()
        if process in _processes:
            _processes.remove(process)
            commands.append(process)


def tail(text, lines=LINES):
    """Return the last lines of a text."""
    end = len(text)
    for _ in range(lines + 1):
        end = text.rfind("\n", 0, end)
        if end < 0:
            return text
    return text[end + 1:]


def run(argv, timeout=None, stuck=lambda: "", **options):
    """subprocess.run with captured text, and with spawn()'s care. Never raises for an exit status. LabError after `timeout`
    seconds (more when sanitized), or HUNG. stuck() has something to say of a command that does not end, before it is killed."""
    bound = HUNG if timeout is None else timeout * SLOW
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    process = spawn(argv, text=True, errors="replace", **options)
    try:
        out, err = process.communicate(timeout=bound)
    except subprocess.TimeoutExpired:
        seen = stuck()
        kill_group(process)
        with contextlib.suppress(subprocess.TimeoutExpired):  # somebody else may hold the other end
            seen += "".join(f"\n{text[-1000:]}" for text in process.communicate(timeout=5) if text)
        process.output = seen
        raise LabError(f"no end after {bound} s: {' '.join(argv)}{seen}") from None
    kill_group(process)
    process.output = tail(out or "") + tail(err or "")
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def remove_folder(path):
    """As rm -r does, in one step for a daemon that writes into it meanwhile."""
    aside = path + ".removed"
    os.rename(path, aside)
    while os.path.exists(aside):
        shutil.rmtree(aside, ignore_errors=True)


class Lines:
    """Reads a process's output in the background, so that its pipe never fills; waits for lines in it."""

    def __init__(self, stream):
        self.text = ""
        self.closed = False
        for process in _processes:
            if stream in (process.stdout, process.stderr):
                process.output = self
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream):
        fd = stream.fileno()
        while True:
            try:
                data = os.read(fd, 65536)
            except OSError:
                data = b""
            with self._changed:
                if data:
                    self.text += data.decode("utf-8", "replace")
                else:
                    self.closed = True
                self._changed.notify_all()
            if not data:
                return

    def lines(self):
        return self.text.splitlines()

    def wait(self, pattern, start=0, timeout=None):
        """The match of a regular expression (multi-line mode) in the output from offset `start` on; LabError as run()."""
        expression = re.compile(pattern, re.MULTILINE)
        bound = HUNG if timeout is None else timeout * SLOW
        end = time.monotonic() + bound
        with self._changed:
            while True:
                match = expression.search(self.text, start)
                if match:
                    return match
                left = end - time.monotonic()
                if self.closed or left <= 0:
                    why = "the output ended" if self.closed else f"waited {bound} s"
                    raise LabError(f"{why} without '{pattern}' in:\n{self.text[start:][-2000:]}")
                self._changed.wait(left)
