"""lab - the harness: a simulated fabric (ibsim), OpenSM, fabricd and fabricctl, for tests and for the tour.

    sim = lab.Ibsim(lab.fabric("fattree2:4,2,4"))   # a netfile, or its text
    sim.sweep()                                     # one run of OpenSM: every port becomes active
    daemon = lab.Fabricd(sim)                       # in its own temporary run directory
    daemon.ctl_json("status")
    sim.unlink("leaf1", 5)
    daemon.refresh()

run_test.py ends the processes of a test at its end, those of a class or module at theirs; the kernel ends them all when the
program ends that started them (processes.py). Nothing waits for a fixed time: Fabricd.until() and its kin
wait for events of the daemon, news.py for those of files, wait_for() asks other programs again and again. A wait of HUNG
seconds is an error. Every instance has names of its own, so tests may run side by side.
"""
import contextlib
import glob
import json
import os
import pwd
import queue
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
import unittest

import failures
import isolate
import news
import output_schema
# pylint: disable=unused-import  # tests use them as lab's
from failures import seed
from processes import (HUNG, SANITIZE, SLOW, Held, LabError, Lines, cleanup, find_command, kill_group, remove_folder, run, spawn, tmpdir,
                       wait_for)

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("FABRICD_BUILD") or os.path.join(ROOT, "build"))
# ./dev test --all: a test that can go on for as long as one likes goes on for longer.
ALL = bool(os.environ.get("FABRICD_ALL"))


def guard():
    """libpmix-guard.so of this build; None: it has none."""
    return next(iter(glob.glob(os.path.join(BUILD, "lib", "**", "libpmix-guard.so"), recursive=True)), None)


# Why fabricd refuses `remote = yes` with this library; None: it serves it. Set by versions.py.
no_remote = None


def program(name):
    """The path of one of our programs."""
    path = os.path.join(BUILD, "bin", name)
    if not os.path.exists(path):
        raise LabError(f"{path} is not built")
    return path


def probe_built(name):
    """Is the module of this local probe there?"""
    return bool(glob.glob(os.path.join(BUILD, "lib*", "**", "fabricd", f"probe_{name}.so"), recursive=True))


def require_probe(name):
    if not probe_built(name):
        raise unittest.SkipTest(f"the probe {name} is not built")


def require_component():
    """Skip the test where PMIx's private headers were missing at the build."""
    if not os.path.exists(os.path.join(BUILD, "lib", "pmix", "pmix_mca_pnet_fabricd.so")):
        raise unittest.SkipTest("the component is not built: PMIx's private headers are missing")


def require(*commands):
    """Skip the test where a command is not installed."""
    for command in commands:
        if find_command(command) is None:
            raise unittest.SkipTest(f"{command} is not installed")


def descriptors(pid):
    """What a process has open: number to what /proc calls it. It may close some of them while they are read."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
    return found


# ---- the fabric ----------------------------------------------------------------------------------------


def fabric(spec, form="net"):
    """The text of a generated fabric (test/fabrics/fabrics.h says which): "net" for ibsim, or "capture"."""
    done = run([program("mkfabric"), spec, form])
    if done.returncode != 0:
        raise LabError(f"mkfabric {spec} {form}: {done.stderr.strip()}")
    return done.stdout


def freeze(pid):
    """A process, with all its threads, does nothing any more."""
    Held(pid).signal(signal.SIGSTOP)

    def stopped():
        with contextlib.suppress(FileNotFoundError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii", errors="replace") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] != "T":
                        return False
        return True
    wait_for(stopped, what=f"process {pid} to stop")


def replace_file(path, text):
    """Put a whole new file in place at once."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)


def stamp(path):
    """What another writing changes, and reading does not."""
    st = os.stat(path)
    return st.st_ino, st.st_mtime_ns, st.st_size


def preload_library():
    """libumad2sim.so: what stands between a program's libibumad and the simulator."""
    found = sorted(glob.glob("/usr/lib/*/umad2sim/libumad2sim.so") + glob.glob("/usr/lib*/umad2sim/libumad2sim.so"))
    if not found:
        raise unittest.SkipTest("libumad2sim is not installed (Debian: ibsim-utils)")
    return found[0]


def sanitizer_library(binary):
    """The sanitizer runtime that a program is linked with, or None; it must stay the first library loaded."""
    if not SANITIZE:
        return None
    done = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)
    match = re.search(r"lib[at]san\S* => (\S+)", done.stdout)
    return match.group(1) if match else None


def plain(path):
    """A path to the same file without blanks and colons, for lists and command lines that these separate: through a link."""
    if re.search(r"[\s:]", path):
        link = os.path.join(tmpdir(), "folder")
        os.symlink(os.path.dirname(path), link)
        return os.path.join(link, os.path.basename(path))
    return path


def preload(*libraries):
    """LD_PRELOAD for these libraries, without those that are None."""
    return ":".join(plain(path) for path in libraries if path is not None)


class Ibsim:
    """A simulated subnet. Commands return when the simulator has carried them out.

    on: the host that it and its clients run on (hosts.py), since its sockets are those of one network namespace
    """

    _count = 0

    def __init__(self, netfile, on=None):
        require("ibsim")
        self.prefix = on.prefix() if on else []
        Ibsim._count += 1
        self.manager = None  # the OpenSM that stays
        self.dir = tmpdir()
        self.socket = f"fabricd-{os.getpid()}-{Ibsim._count}-{time.monotonic_ns() % 1000000}"
        if "\n" in netfile:
            self.text, self.netfile = netfile, os.path.join(self.dir, "fabric.net")
            with open(self.netfile, "w", encoding="utf-8") as file:
                file.write(netfile)
        else:
            self.netfile = netfile
            with open(netfile, encoding="utf-8") as file:
                self.text = file.read()
        self.hosts = re.findall(r'^(?:Hca|Ca)\s+\d+\s+"([^"]+)"', self.text, re.MULTILINE | re.IGNORECASE)
        self.switches = re.findall(r'^Switch\s+\d+\s+"([^"]+)"', self.text, re.MULTILINE)
        self._start()

    def _limits(self):
        ports = sum(int(n) + 1 for n in re.findall(r"^(?:Switch|Hca|Ca)\s+(\d+)", self.text, re.M | re.I))
        nodes = len(self.hosts) + len(self.switches)
        return ["-N", str(nodes + 64), "-S", str(len(self.switches) + 64), "-P", str(ports + 1024)] + (
            ["-L", "49151"] if nodes > 30000 else [])

    def _start(self):
        # The console reads a FIFO, so that people can write to it, too. Held open for both, it never ends.
        self.console = os.path.join(self.dir, "console")
        if not os.path.exists(self.console):
            os.mkfifo(self.console, 0o600)
            self._input = os.open(self.console, os.O_RDWR | os.O_CLOEXEC)
        self.process = spawn([*self.prefix, find_command("ibsim"), "-s", *self._limits(), self.netfile], of=self.dir,
                             stdin=self._input, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.dir,
                             env=dict(os.environ, IBSIM_SOCKNAME=self.socket))
        self.output = Lines(self.process.stdout)
        self.output.wait(r"^sim> ")

    def cable(self, a, b):
        """The port of switch `a` that its first cable to `b` is in."""
        block = re.search(rf'^Switch\s+\d+\s+"{re.escape(a)}".*?(?=\n\s*\n|\Z)', self.text, re.MULTILINE | re.DOTALL)
        port = block and re.search(rf'^\[(\d+)\]\s+"{re.escape(b)}"', block.group(0), re.MULTILINE)
        if not port:
            raise LabError(f"{self.netfile}: no cable from {a} to {b}")
        return int(port.group(1))

    # -- console

    def command(self, text):
        """Give the console a command; its answer. LabError when it names something that is not there."""
        start = len(self.output.text)
        os.write(self._input, (text + "\n").encode())
        end = self.output.wait(r"sim> ", start).start()
        answer = self.output.text[start:end]
        if "not found" in answer or "can't" in answer:
            raise LabError(f"ibsim: {text}: {answer.strip()}")
        return answer

    @staticmethod
    def _place(node, port):
        return f'"{node}"' if port is None else f'"{node}"[{port}]'

    def unlink(self, node, port=None):
        """Pull one cable, or all cables of a node."""
        return self.command(f"Unlink {self._place(node, port)}")

    def relink(self, node, port=None):
        return self.command(f"ReLink {self._place(node, port)}")

    def wait_active(self, node, port):
        """Wait until a subnet manager has brought a relinked port up. Where an OpenSM stays here, it is told every 2 s to look,
        too: among many changes it misses a trap now and then."""
        state, told = re.compile(rf"^\w+\s+\[{port}\]\s.*Active/LinkUp", re.MULTILINE), time.monotonic()

        def up():
            nonlocal told
            if self.manager and time.monotonic() > told + 2 * SLOW:
                self.manager.look()
                told = time.monotonic()
            return state.search(self.command(f'Dump "{node}"'))
        wait_for(up, what=f"{node} port {port} to become active")

    def link(self, a, a_port, b, b_port):
        return self.command(f"Link {self._place(a, a_port)} {self._place(b, b_port)}")

    def set_port(self, path, port, what, host=None):
        """ibportstate: disable or enable a port of the node at the end of this directed route (as "0,1", from `host`)."""
        done = self.run(["ibportstate", "-D", path, str(port), what], host=host)
        if done.returncode != 0:
            raise LabError(f"ibportstate -D {path} {port} {what}: {done.stderr.strip()}")

    def clear(self, node, port=None):
        return self.command(f"Clear {self._place(node, port)}")

    def guid(self, node, guid):
        return self.command(f'Guid "{node}" {guid:#x}')

    def quit(self):
        """End it in an orderly way."""
        if self.process.poll() is None:
            os.write(self._input, b"quit\n")
            self.process.wait(HUNG)
        kill_group(self.process)

    def kill(self):
        """End it in the middle of whatever it does."""
        kill_group(self.process)

    def restart(self):
        """Start again (after quit or kill) on the netfile, under the same socket name."""
        self._start()

    # -- clients

    def client_env(self, host=None, binary=None):
        """The settings with which a program sees this subnet, from `host` (default: the last one)."""
        runtime = sanitizer_library(binary) if binary else None
        env = {"IBSIM_SOCKNAME": self.socket, "SIM_HOST": host or self.hosts[-1],
               "LD_PRELOAD": preload(runtime, preload_library())}
        return env

    def env_for(self, host=None, binary=None):
        """A whole environment with client_env() in it; `binary` where the program is one of ours."""
        return dict(os.environ, **sanitizer_env(), **self.client_env(host, binary))

    def run(self, argv, host=None, **options):
        """Run a command (ibnetdiscover, iblinkinfo, one of ours by its path) on a host of this subnet."""
        require(argv[0])
        options.setdefault("cwd", self.dir)  # the preload of a client that is killed leaves folders behind
        return run([*self.prefix, find_command(argv[0]), *argv[1:]], env=self.env_for(host, find_command(argv[0])), **options)

    def sweep(self, timeout=None):
        """One sweep of OpenSM, from the first host."""
        require("opensm")
        log = os.path.join(self.dir, "opensm-once.log")
        env = dict(self.env_for(self.hosts[0]), OSM_TMP_DIR=self.dir, OSM_CACHE_DIR=self.dir)
        done = run([*self.prefix, find_command("opensm"), "-o", "-f", log], env=env, cwd=self.dir, timeout=timeout)
        if done.returncode != 0:
            raise LabError(f"opensm: {done.stdout[-500:]}{done.stderr[-500:]}")


class OpenSM:
    """An OpenSM that stays, on the first host: it brings relinked ports up by itself."""

    def __init__(self, sim, host=None, arguments=()):
        require("opensm")
        self.dir = tmpdir()
        self.log = os.path.join(self.dir, "opensm.log")
        # -d2: each line of the log at once; its "SUBNET UP" is what tells
        env = dict(sim.env_for(host or sim.hosts[0]), OSM_TMP_DIR=self.dir, OSM_CACHE_DIR=self.dir)
        self.process = spawn(["opensm", "-d2", "-f", self.log, *arguments], env=env, cwd=self.dir, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.process.logs.append(self.log)
        self.wait_up()
        self.sim, sim.manager = sim, self

    def _log(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def wait_up(self, times=1):
        """Wait until it has brought the subnet up so many times."""
        news.until_file(self.log, lambda: self._log().count("SUBNET UP") >= times, "OpenSM", self.process)

    def look(self):
        """Tell it to sweep everything."""
        self.process.send_signal(signal.SIGHUP)

    def stop(self):
        if self.sim.manager is self:
            self.sim.manager = None
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=5 * SLOW)
            except subprocess.TimeoutExpired:
                pass
        kill_group(self.process)


# ---- the daemon and its command ------------------------------------------------------------------------


def sanitizer_env():
    """What a sanitized program of ours needs beside the options that are set: the runtime is not the first library
    that is loaded, and some of the libraries have faults of their own (test/san)."""
    if not SANITIZE:
        return {}
    folder = os.path.join(ROOT, "test", "san")
    more = {"ASAN_OPTIONS": f"verify_asan_link_order=0:suppressions='{folder}/asan.supp'",
            "LSAN_OPTIONS": f"suppressions='{folder}/lsan.supp':print_suppressions=0",
            "TSAN_OPTIONS": f"suppressions='{folder}/tsan.supp'"}
    return {name: ":".join(filter(None, [os.environ.get(name), value])) for name, value in more.items()}


def ini(sections):
    """{"section": {"key": value or [values]}} as a configuration file."""
    text = ""
    for section, settings in sections.items():
        text += f"[{section}]\n"
        for key, values in settings.items():
            for value in values if isinstance(values, list) else [values]:
                text += f"{key} = {value}\n"
    return text


class Fabricd:
    """fabricd in the scheduler role, with run directory, store and configuration in a folder of its own.

    sim     the subnet that its probe ibnetdisc sees; None: give a probe in `config`
    config  settings over the harness's, {"section": {"key": value or [values]}}; a value None removes one
    args    more command-line arguments
    start   False: only write the configuration
    """

    def __init__(self, sim=None, config=None, args=(), start=True, directory=None, host=None, env=None, binary=None):
        isolate.need()
        self.dir = directory or tmpdir()
        self.rundir = os.path.join(self.dir, "run")
        self.store = os.path.join(self.dir, "fabricd.db")
        self.conf = os.path.join(self.dir, "fabricd.conf")
        self.log_path = os.path.join(self.dir, "fabricd.log")
        self.args = list(args)
        self.binary = binary or program("fabricd")
        self.process = self.notices = None
        self.frozen = []
        self.env = dict(os.environ, TMPDIR=self.dir, **sanitizer_env(), **(env or {}))
        # It sweeps when a test says so, and only then.
        sections = {"fabricd": {"rundir": self.rundir, "store": self.store, "interval": 0}, "changes": {"light_sweep": 0}}
        if sim is not None:
            sections["fabricd"]["probe"] = "ibnetdisc"
            sections["sweep.env"] = sim.client_env(host, self.binary)
        for section, settings in (config or {}).items():
            sections.setdefault(section, {}).update(settings)
        self.configure({section: {key: value for key, value in settings.items() if value is not None}
                        for section, settings in sections.items()})
        if start:
            self.start()

    def configure(self, sections):
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write(ini(sections))

    # -- life

    def command(self, *args):
        return [self.binary, "--config", self.conf, *self.args, *args]

    def start(self, wait=True):
        """Start it, and wait until it serves a first generation (wait=False: not even until it is up)."""
        with open(self.conf, encoding="utf-8") as file:
            if no_remote and re.search("(?m)^remote = yes$", file.read()):
                raise unittest.SkipTest(no_remote)
        with open(self.log_path, "ab") as log:
            self.notices = news.Notices(self.dir)
            self.process = spawn(self.command("--foreground"), of=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 cwd=self.dir, env=dict(self.env, NOTIFY_SOCKET=self.notices.path))
            self.notices.follow(self.process)
        if wait:
            self.wait_ready()
        return self

    def run_once(self, *args, **options):
        """fabricd --once (or other arguments that make it end by itself)."""
        return run(self.command(*(args or ("--once",))), cwd=self.dir, env=self.env, **options)

    def wait_up(self):
        """Until it is ready (the control socket answers, and the PMIx address is written), also after it began anew."""
        times = 0
        while True:
            try:
                times = self.notices.wait("READY=1", times + 1)
            except LabError as error:
                raise LabError(f"{error}\n{self.story()}") from None
            if self.try_control("status") is not None:
                return

    def wait_ready(self, generation=1):
        """Until it has published this generation, and its first sweep has ended. Its status."""
        self.wait_up()
        if self.binary != program("fabricd"):  # an older one, which has no operation `await`
            return wait_for(lambda: (status := self.status())["generation"] >= generation and not status["sweeping"] and status,
                            what=f"generation {generation}")
        self.until("generation", generation=generation)
        status = self.status()
        if status["role"] == "scheduler":
            self.until("sweep", after=0)
            status = self.status()
        return status

    def until(self, what, **request):
        """Wait for what the operation `await` waits for: "idle", "generation", or the next event of a kind. Its answer."""
        answer = self.control("await", timeout=HUNG + 10, until=what, deadline=min(HUNG, 600), **request)
        if not answer["ok"]:
            raise LabError(f"{answer['message']}\n{self.story()}")
        return answer

    def until_true(self, condition, event=None, what=lambda: "a condition"):
        """Evaluate the condition now, and after each event of this kind (of `await`) or each notice; its value when it is true."""
        while True:
            count = self.until(event, after=-1)["count"] if event else self.notices.count(None)
            value = condition()
            if value:
                return value
            try:
                if event:
                    self.until(event, after=count)
                else:
                    self.notices.wait(None, count + 1)
            except LabError as error:
                raise LabError(f"{error}\n{what()}\n{self.story()}") from None

    def until_status(self, condition, event=None):
        """The same of condition(status); the status."""
        def right():
            status = self.status()
            return status if condition(status) else None
        return self.until_true(right, event, lambda: json.dumps(self.try_control("status")))

    def replaced(self, times):
        """Wait until so many PMIx servers were replaced and another one serves; the server in its status."""
        return self.until_status(lambda status: status["pmix"]["replaced"] >= times and status["pmix"]["pid"], "pmix")["pmix"]

    def until_file(self, path, condition=None, what=None):
        """Wait until the file is there, or until the condition is true after a change in its folder, while fabricd lives."""
        try:
            return news.until_file(path, condition or (lambda: os.path.exists(path)), what or path, self.process)
        except LabError as error:
            raise LabError(f"{error}\n{self.story()}") from None

    def logged(self, text, times=1, start=0):
        """Wait until this text (or a match, of a compiled expression) stands in the log so many times, from offset `start` on."""
        def found():
            log = self.log()[start:]
            return (log.count(text) if isinstance(text, str) else len(text.findall(log))) >= times
        return self.until_file(self.log_path, found, f"{text!r} in the log")

    def stop(self, timeout=HUNG):
        """SIGTERM; its exit status."""
        if self.process is None:
            return None
        self.process.terminate()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise LabError(f"fabricd does not stop: {self.story()}") from None
        kill_group(self.process)
        return self.process.returncode

    def kill9(self):
        """SIGKILL to the daemon alone (its sweeping child must notice by itself); without it its PMIx server ends, too."""
        servers = [Held(pid) for pid in self.children("--child-of")]
        self.process.kill()
        self.process.wait()
        if not all(server.ended() for server in servers):
            raise LabError("fabricd was killed, and its PMIx server does not end")

    def pmix_pid(self):
        """The process that hosts its PMIx server. None: none serves now, or never."""
        return (self.status()["pmix"] or {"pid": None})["pid"]

    def freeze(self):
        """It does nothing any more, and its connections stay; thaw() ends that."""
        pids = list(filter(None, (self.process.pid, self.pmix_pid())))
        self.frozen = [Held(pid) for pid in pids]
        for pid in pids:
            freeze(pid)

    def thaw(self):
        for process in self.frozen:
            process.signal(signal.SIGCONT)

    def hup(self):
        """It reads its configuration again; wait until it has."""
        times = self.notices.count("READY=1")
        self.process.send_signal(signal.SIGHUP)
        self.notices.wait("READY=1", times + 1)

    def look(self):
        """Have it sweep (a node: scan), without waiting for what comes of it."""
        self.ask("refresh", wait=False).close()

    def check_alive(self):
        if self.process.poll() is not None:
            raise LabError(self.story())

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def errors(self):
        """The error lines of the log, without time and name."""
        return re.findall(r"^\S+ \S+ fabricd error: (.*)$", self.log(), re.MULTILINE)

    def children(self, which="--sweep-child"):
        """Process ids of its sweeping children that have begun (not of one that is just being made), or of others."""
        found, gone = [], (FileNotFoundError, ProcessLookupError)
        with contextlib.suppress(*gone), open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            for pid in file.read().split():
                # one that ends meanwhile hides no other
                with contextlib.suppress(*gone), open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as command:
                    if which in command.read():
                        found.append(int(pid))
        return found

    def connections(self):
        """How many callers are connected to its control socket."""
        path = os.path.join(self.rundir, "control.sock")
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:  # state 03: connected
            return sum(line.split()[5] == "03" for line in file if line.rstrip("\n").endswith(" " + path))

    # -- talking to it

    def nodes_at(self, host="127.0.0.1"):
        """Where nodes connect, as their setting `scheduler` has it."""
        return f"{host}:{self.status()['channel']['port']}"

    def uri_path(self):
        return os.path.join(self.rundir, "fabricd.uri")

    def uri(self):
        with open(self.uri_path(), encoding="utf-8") as file:
            return file.read().strip()

    def ask(self, op, timeout=HUNG, **request):
        """Send a request over the control socket; the connection, for answer()."""
        channel = self.connect(timeout)
        with self.talk(channel):
            channel.sendall((json.dumps(dict(request, op=op)) + "\n").encode())
        return channel

    def connect(self, timeout=HUNG):
        """Connect to the control socket. An OSError has the outcome and the log of fabricd."""
        channel = socket.socket(socket.AF_UNIX)
        with self.talk(channel):
            channel.connect(os.path.join(self.rundir, "control.sock"))
            channel.settimeout(timeout)  # after it: with a full queue, it would fail at once
        return channel

    @contextlib.contextmanager
    def talk(self, channel):
        """Handle an OSError of the connection: close it, and add the outcome and the log of fabricd to the error."""
        try:
            yield
        except OSError as error:
            channel.close()
            text = f"{error.strerror or error}\n{self.story()}"
            raise (OSError(error.errno, text) if error.errno else type(error)(text)) from None

    def story(self):
        """Return the outcome of the process and the last lines of its log."""
        return failures.story(self.process) if self.process else "fabricd was not started"

    def answer(self, channel):
        """The last line of the answer to ask() as a dictionary."""
        with self.talk(channel), channel, channel.makefile(encoding="utf-8") as answers:
            for line in answers:
                answer = json.loads(line)
                if "ok" in answer:
                    return answer
        raise LabError(f"fabricd closed the connection before it answered\n{self.story()}")

    def page(self, op, timeout=HUNG, **request):
        """One request over the control socket; the last line of its answer as a dictionary, which may go on."""
        return self.answer(self.ask(op, timeout, **request))

    def control(self, op, timeout=HUNG, **request):
        """The same with all of its pages put together."""
        return self.whole(self.page, op, timeout=timeout, **request)

    @staticmethod
    def whole(ask, op, **request):
        """All pages of an answer; ask() gets one."""
        answer = ask(op, **request)
        while answer.get("next"):
            page = ask(op, **dict(request, next=answer.pop("next")))
            for key, value in page.items():
                if isinstance(value, list) and key in answer:
                    value = value + answer[key] if op == "history" else answer[key] + value
                elif isinstance(value, dict) and key in answer:
                    value = dict(answer[key], **value)
                answer[key] = value
        return answer

    def try_control(self, op, **request):
        """As control(), but None where nobody answers."""
        try:
            return self.control(op, **request)
        except (OSError, ValueError, LabError):
            return None

    def status(self):
        return self.control("status")

    def refresh(self, **request):
        """Ask for a sweep and wait for it; LabError when it failed."""
        answer = self.control("refresh", **request)
        if not answer["ok"]:
            raise LabError(f"refresh: {answer.get('message')}")
        return answer

    def ctl(self, *args, user=None, **options):
        """fabricctl on this run directory, also as another user; CompletedProcess."""
        binary, env = program("fabricctl"), dict(os.environ)
        if user is not None:
            binary, env = readable_copy(binary, env)
            account = pwd.getpwnam(user)
            options.update(user=account.pw_uid, group=account.pw_gid, extra_groups=[])
        return run([binary, "--rundir", self.rundir, *args], env=env, cwd="/", **options)

    def ctl_json(self, *args):
        """fabricctl --format json; the value. LabError when it fails."""
        done = self.ctl("--format", "json", *args)
        if done.returncode != 0:
            raise LabError(f"fabricctl {' '.join(args)}: status {done.returncode}: {done.stderr.strip()}")
        return output_schema.checked(args, json.loads(done.stdout))

    def tool(self, *args, **options):
        """A run of stock_tool, which knows nothing but PMIx, to its end; CompletedProcess."""
        return run([program("stock_tool"), self.uri(), *args], env=self.tool_env(), **options)

    def watch(self, *args):
        """stock_tool that prints the events it gets; Watch."""
        return Watch([program("stock_tool"), self.uri(), "watch", *args], self.tool_env())

    def tool_env(self):
        """The environment of a PMIx tool: as a person's, with nothing of another PMIx in it."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("PMIX_")}
        env = dict(env, TMPDIR=self.dir, **sanitizer_env())
        if "ASAN_OPTIONS" in env:  # libc keeps no frame pointers: behind it, what the PMIx library loses is not told apart
            env["ASAN_OPTIONS"] += ":fast_unwind_on_malloc=0"
        return env


class Feed:
    """A recorded fabric that a sweep gets when the test hands it over: until then the probe waits."""

    def __init__(self):
        self.path = os.path.join(tmpdir(), "fabric.fifo")
        self.probe = f"file:{self.path}"
        os.mkfifo(self.path)

    def give(self, text):
        """Hand a capture to the sweep that waits for it, or begins to."""
        opened = queue.Queue()
        threading.Thread(target=lambda: opened.put(os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)), daemon=True).start()
        try:
            fd = opened.get(timeout=HUNG)  # open() returns when somebody reads
        except queue.Empty:
            os.close(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK))
            raise LabError("no sweep asks for the recorded fabric") from None
        with open(fd, "w", encoding="utf-8") as pipe:
            pipe.write(text)


class Watch:
    """A program that runs and prints a line now and then; with `talk`, one that is told things with say()."""

    def __init__(self, argv, env=None, talk=False, cwd=None):
        self.process = spawn(argv, env=env, cwd=cwd, stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.output = Lines(self.process.stdout)

    def say(self, text, until, timeout=None):
        """Tell it a line; the match of `until` in what it prints then."""
        start = len(self.output.text)
        self.process.stdin.write((text + "\n").encode())
        self.process.stdin.flush()
        return self.wait(until, start, timeout)

    def wait(self, pattern, start=0, timeout=None):
        return self.output.wait(pattern, start, timeout)

    def lines(self):
        return self.output.lines()

    def stop(self):
        kill_group(self.process, signal.SIGTERM)
        try:
            self.process.wait(timeout=5 * SLOW)
        except subprocess.TimeoutExpired:
            pass
        kill_group(self.process)
        return self.lines()


def readable_copy(binary, env, folder=None):
    """A copy of a program of ours where every user may run it (a source tree may stand in a private home)."""
    folder = folder or tmpdir()
    copy = shutil.copy(binary, folder)
    os.chmod(copy, os.stat(copy).st_mode | stat.S_IXOTH | stat.S_IROTH)
    if os.path.basename(binary) == "fabricd":
        readable_copy(program("fabricd-pmix"), env, folder)
    for library in glob.glob(os.path.join(BUILD, "lib", "libpmixfab.so*")):
        shutil.copy(library, folder)
    return copy, dict(env, LD_LIBRARY_PATH=folder)
