"""play - the processes of one check: hosts and callers with the library that is looked at, in a folder of their own.

    @fault("C4")
    def silent(scene):
        host = scene.host()
        with scene.connect(host):
            ...
            return there("no tool is answered meanwhile")
"""
import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
import stranger as s  # noqa: E402

INDEX, VENDOR, DEVICES, COUNT = "pmix.fab.idx", "pmix.fab.vndr", "pmix.fab.devs", "pmix.fab.nverts"
LOST_CONNECTION = -61
OUTSIDER = 4711  # the uid of another user
DEADLINE_S = 30  # of a check
ANSWER_S = 3  # for an answer that a server gives at once

Result = collections.namedtuple("Result", "answer why")


def there(why):
    return Result("there", why)


def fixed(why):
    return Result("fixed", why)


def inapplicable(why):
    """Not applicable to this version, or not to this build of it."""
    return Result("n/a", why)


FAULTS = {}  # by name: (function, all names of it)


def fault(*names):
    """A check of these faults; of several, it returns a dictionary of their results."""
    def add(function):
        for name in names:
            assert name not in FAULTS, name
            FAULTS[name] = function, names
        return function
    return add


class Late(Exception):
    """A check that did not come to its question."""


class Process:
    """A program that takes commands, and prints a line for what it has seen."""

    def __init__(self, scene, command, env, user=None):
        self.scene = scene
        self.errors = os.path.join(scene.dir, f"errors{len(scene.processes)}")
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=env, cwd=scene.dir,
                                            start_new_session=True, user=user, group=user, extra_groups=None if user is None else [])
        scene.processes.append(self)
        self.pid, self.lines, self.closed = self.process.pid, [], False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.decode(errors="replace").rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _find(self, pattern, start):
        for line in self.lines[start:]:
            match = re.match(pattern, line)
            if match:
                return match
        return None

    def wait(self, pattern, timeout=ANSWER_S, start=0):
        """The first line from number `start` on that matches; None: there is none within the time."""
        end = time.monotonic() + timeout
        with self._changed:
            while True:
                match = self._find(pattern, start)
                if match or self.closed or time.monotonic() > end:
                    return match
                self._changed.wait(max(0.01, end - time.monotonic()))

    def need(self, pattern, timeout=10, start=0):
        match = self.wait(pattern, timeout, start)
        if match is None:
            state = self.ended() or "which runs"
            raise Late(f"no line {pattern!r} of process {self.pid}, {state}: {self.lines[-5:]} {self.stderr()[-300:]!r}")
        return match

    def tell(self, command):
        """Number of the first line behind the command."""
        start = len(self.lines)
        try:
            self.process.stdin.write((command + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            pass
        return start

    def ask(self, command, pattern, timeout=ANSWER_S):
        return self.wait(pattern, timeout, self.tell(command))

    def must(self, command, pattern, timeout=10):
        return self.need(pattern, timeout, self.tell(command))

    def heap(self):
        """Bytes that it has allocated."""
        return int(self.must("heap", r"heap (\d+)").group(1))

    def stderr(self):
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            return file.read()

    def ended(self, timeout=0.0):
        """How it has ended, in words; None: it runs."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        return signal.Signals(-status).name if status < 0 else f"exit status {status}"

    def memory(self, which="VmRSS"):
        """MiB; 0: it has ended."""
        try:
            with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
                return int(re.search(which + r":\s+(\d+)", file.read()).group(1)) / 1024
        except (OSError, AttributeError):
            return 0

    def kill(self, number=signal.SIGKILL):
        if self.process.poll() is None:
            self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()

    def end(self):
        self.kill()
        self._reader.join(5)
        for stream in (self.process.stdin, self.process.stdout):
            try:
                stream.close()
            except OSError:
                pass


class Host(Process):
    """host.c"""

    def __init__(self, scene, infos, env, user=None):
        self.report = os.path.join(scene.dir, f"uri{len(scene.processes)}")
        self.tmp = env["TMPDIR"]
        name = f"host{len(scene.processes)}"
        super().__init__(scene, [scene.library.program("host"), name, f"pmix.tcp.repuri={self.report}", *infos], env, user)

    def uri(self, timeout=10.0):
        """Its address; None: it has none."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                with open(self.report, encoding="ascii") as file:
                    found = file.readline().strip()
                if found and self.wait("ready", 0):
                    return found
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        return None

    def port(self):
        return int(self.uri().rsplit(":", 1)[1].split(";")[0])

    def serves(self, timeout=ANSWER_S):
        """Is a tool that comes now answered?"""
        try:
            with s.tool(self.uri(), timeout) as channel:
                return s.status_of(channel.ask(s.QUERY, s.query(INDEX))) == 0
        except (EOFError, OSError, AttributeError):
            return False

    def harm(self, timeout=ANSWER_S):
        """How a deed has ended it, in words; None: it lives and answers."""
        if self.serves(timeout) or self.ended() is None and self.serves(timeout):
            return None
        ended = self.ended(1)
        return f"{ended} of the server" if ended else "the server answers no tool"


class Scene:
    """The folder and the processes of one check."""

    def __init__(self, library, name):
        self.library, self.processes, self.channels, self.late = library, [], [], False
        self.dir = tempfile.mkdtemp(prefix=f"upstream-{name}-")

    def __enter__(self):
        self._deadline = threading.Timer(DEADLINE_S, self._end)
        self._deadline.start()
        return self

    def _end(self):
        """What waits for these processes goes on."""
        self.late = True
        for process in self.processes:
            process.kill()

    def __exit__(self, *_):
        self._deadline.cancel()
        for channel in self.channels:
            channel.close()
        for process in reversed(self.processes):
            process.end()
        shutil.rmtree(self.dir, ignore_errors=True)

    def env(self, preload=False, **more):
        tmp = tempfile.mkdtemp(dir=self.dir)  # some of these servers remove all that is in it
        env = {"PATH": os.environ["PATH"], "HOME": self.dir, "TMPDIR": tmp, "LD_LIBRARY_PATH": self.library.libdir}
        if preload:
            env["LD_PRELOAD"] = self.library.program("watch.so")
        return dict(env, **more)

    def bare(self, *infos, preload=False, user=None, **env):
        """A host that may not come up."""
        own = self.env(preload, **env)
        if user is not None:
            for folder in (self.dir, own["TMPDIR"]):
                os.chown(folder, user, user)
        return Host(self, infos, own, user)

    def host(self, *infos, preload=False, user=None, **env):
        host = self.bare(*infos, preload=preload, user=user, **env)
        if host.uri() is None:
            raise Late(f"no host: {host.ended() or 'no address'}: {host.lines[-5:]} {host.stderr()[-300:]!r}")
        return host

    def tool(self, host, **env):
        """A tool with the library itself."""
        tool = Process(self, [self.library.program("tool"), host.uri()], self.env(**env))
        tool.need("init 0", 10)
        return tool

    def job(self, host, name="job", *infos, ranks=2, nodes="here"):
        host.must(" ".join(("job", name, nodes, ",".join(map(str, range(ranks))), str(ranks), *infos)), "job 0")
        for rank in range(ranks):
            host.must(f"client {name} {rank}", "registered 0")

    def environment(self, host, name, rank):
        start = host.tell(f"environment {name} {rank}")
        host.need(r"\. 0", start=start)
        own = self.env()
        own.update(line[4:].split("=", 1) for line in host.lines[start:] if line.startswith("env "))
        return own

    def client(self, host, name="job", rank=0, need=True):
        """A process of that job."""
        client = Process(self, [self.library.program("tool"), "client"], self.environment(host, name, rank))
        if need:
            client.need("init 0")
        return client

    def outsider(self, host, script):
        """Lines of a script that another user runs, with `uri` and stranger as `s`; only root can try."""
        code = f"import sys\nsys.path.insert(1, {os.path.dirname(s.__file__)!r})\nimport stranger as s\nuri = {host.uri()!r}\n{script}"
        python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # which that user may run
        done = subprocess.run([python, "-B", "-c", code], user=OUTSIDER, group=OUTSIDER, extra_groups=[], capture_output=True,
                              text=True, timeout=10, check=False)
        if done.returncode != 0:
            raise Late(done.stderr[-300:])
        return done.stdout.splitlines()

    def stranger(self, host, timeout=ANSWER_S, **options):
        channel = s.tool(host.uri(), timeout, **options)
        self.channels.append(channel)
        return channel

    def knock(self, host, timeout=ANSWER_S, **options):
        channel = s.knock(host.uri(), s.first(**options), timeout)
        self.channels.append(channel)
        return channel

    def refused(self, host, **options):
        """A handshake that cannot succeed. False: the server has ended, or does not answer."""
        try:
            with s.knock(host.uri(), s.first(**options), 1) as channel:
                return channel.ended() and host.ended() is None
        except OSError:
            return False

    def connect(self, host, timeout=ANSWER_S):
        channel = s.Channel(host.uri(), timeout)
        self.channels.append(channel)
        return channel


def answered(channel, *message):
    """The status of an answer; None: there is none."""
    try:
        return s.status_of(channel.ask(*message))
    except (EOFError, OSError):
        return None


def harmed(host, why=None):
    """The result of a deed that ends a server that has the fault."""
    harm = host.harm()
    return fixed(why or "the server lives and answers") if harm is None else there(harm)
