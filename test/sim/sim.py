"""sim - the simulation of test/sim for tests in Python: a whole site in this process, deterministic, in virtual time.

    site = sim.Site("fattree2:3,2,2", {"changes": {"retain_seconds": 2}})
    site.pull("leaf1", site.cable("leaf1", "node0002"))
    site.refresh()
    site.advance(2)
    site.ctl_json("devices")
    site.free()

The names are those of lab.Fabricd and lab.Ibsim where they do the same. Nothing waits: refresh() returns when all that
follows at once is done, advance() lets virtual time pass. One site at a time.
"""
import collections
import contextlib
import ctypes
import json
import os
import re
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))

import fabric_text  # for the tests
import failures
import lab
import output_schema

Done = collections.namedtuple("Done", "returncode stdout stderr")
GOOD, FAIL, CRASH, HANG, MISS = range(5)  # how sweeps end
DISK_GOOD, DISK_FULL, DISK_FAILS = range(3)
DOWN, INIT, ARMED, ACTIVE = range(1, 5)  # states of ports
SECOND = 1000000

# A program that fabricd has started: what fabricd calls it, its words, its environment beside that of fabricd, its standard input.
Program = collections.namedtuple("Program", "what argv environ input")
_PROGRAM = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)

_library = None
_current = None


def library():
    global _library
    if _library is None:
        _library = ctypes.CDLL(os.path.join(lab.BUILD, "lib", "libsimlab.so"))
        for name, result, *arguments in (
                ("sim_new", "p", "u64", "s"), ("sim_free", None, "p"), ("sim_configure", None, "p", "s", "s", "s"), ("sim_start", "i", "p"),
                ("sim_stop", None, "p"), ("sim_kill", None, "p", "b"), ("sim_runs", "b", "p"), ("sim_reload", None, "p"), ("sim_folder", "s", "p"),
                ("sim_run_until_idle", None, "p"), ("sim_advance", None, "p", "i64"), ("sim_now", "i64", "p"), ("sim_jump", None, "p", "i64"),
                ("sim_pull", "b", "p", "s", "u"), ("sim_plug", "b", "p", "s", "u"), ("sim_move", "b", "p", "s", "u", "s", "u"),
                ("sim_exchange", "b", "p", "s", "u", "s", "u"), ("sim_disk", None, "p", "i"), ("sim_link", "b", "p", "s", "u", "s", "u"), ("sim_deliver_record", "i", "p", "s"), ("sim_fabric", "s", "s", "s"),
                ("sim_snapshot", None, "s", "b", "s", "s", "u", "u64"), ("sim_on_wait", None, "p", "p"),
                ("sim_replace", "b", "p", "s", "u64"), ("sim_lose", "b", "p", "s"), ("sim_rename", "b", "p", "s", "s"),
                ("sim_rate", "b", "p", "s", "u", "u", "s"), ("sim_state", "b", "p", "s", "u", "u"), ("sim_cable", "u", "p", "s", "s"),
                ("sim_sweeps", None, "p", "i", "s"), ("sim_manager", None, "p", "s"), ("sim_deliver", "i", "p", "s", "s"),
                ("sim_enable", "b", "p", "s", "u", "b"), ("sim_count", "b", "p", "s", "u", "u", "u64"),
                ("sim_home", "b", "p", "s"), ("sim_room", None, "p", "u"), ("sim_second_port", "b", "p", "s", "s"),
                ("sim_light_sweeps", None, "p", "i"), ("sim_afresh", "s", "p"),
                ("sim_settings", "s", "p"), ("sim_sweeps_take", None, "p", "i64"),
                ("sim_node_new", "p", "p", "s"), ("sim_node_configure", None, "p", "s", "s", "s"), ("sim_node_start", "i", "p"),
                ("sim_node_stop", None, "p"), ("sim_node_kill", None, "p"), ("sim_node_runs", "b", "p"), ("sim_node_reload", None, "p"),
                ("sim_node_rundir", "s", "p"), ("sim_node_cut", None, "p", "b"), ("sim_node_munge", None, "p", "b"),
                ("sim_node_device", None, "p"), ("sim_request_of", "s", "p", "s", "s"), ("sim_unresolved", None, "p", "s"), ("sim_lose_everything", None, "p"),
                ("seam_on_point", None, "p", "p"), ("sim_delivery", "s", "s", "s"), ("sim_deliver_from", "i", "p", "s", "s", "u"),
                ("sim_look", None, "p"), ("sim_children", "s", "p"), ("sim_readable", "b", "p", "i", "i64"), ("sim_programs", None, "p", "program"),
                ("sim_program_ends", None, "p", "i", "i64", "s"), ("sim_request", "s", "p", "s"), ("sim_journal", "s", "p"), ("sim_generation", "u64", "p"), ("sim_oracle", None, "p", "u")):
            kinds = {"p": ctypes.c_void_p, "s": ctypes.c_char_p, "i": ctypes.c_int, "u": ctypes.c_uint, "b": ctypes.c_bool,
                     "i64": ctypes.c_int64, "u64": ctypes.c_uint64, "program": _PROGRAM, None: None}
            function = getattr(_library, name)
            function.restype, function.argtypes = kinds[result], [kinds[one] for one in arguments]
    return _library


def _bytes(value):
    return value.encode() if isinstance(value, str) else value


def fabric(spec, form="net"):
    """The text of a generated fabric, as lab.fabric() has it from a program."""
    return library().sim_fabric(_bytes(spec), _bytes(form)).decode()


def delivery(machine, before=None):
    """The bytes of a delivery of a recorded machine, in base64: the whole, or what has changed since before."""
    return library().sim_delivery(_bytes(json.dumps(machine)), before and _bytes(json.dumps(before))).decode()


def _words(arguments):
    return (ctypes.c_char_p * (len(arguments) + 1))(*map(_bytes, arguments), None)


def ctl_of(rundir, *arguments):
    """fabricctl on a run directory."""
    out, err = ctypes.c_char_p(), ctypes.c_char_p()
    library().sim_ctl_of.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    code = library().sim_ctl_of(_bytes(rundir), _words(arguments), ctypes.byref(out), ctypes.byref(err))
    return Done(code, out.value.decode("utf-8", "replace"), err.value.decode("utf-8", "replace"))


class Channel:
    """A connection to the control socket, and what has come of its answer."""

    def __init__(self, site, *requests, rundir=None):
        self.site, self.bytes, self.ends = site, b"", False
        self.requests = b"".join((json.dumps(request) + "\n").encode() for request in requests)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.path.join(rundir or site.rundir, "control.sock"))
        self.socket.setblocking(False)
        self.send()

    def send(self):
        """As many of the questions as there is room for."""
        with contextlib.suppress(BlockingIOError):
            while self.requests:
                self.requests = self.requests[self.socket.send(self.requests):]
                self.site.look()
        if self.ends and not self.requests:
            self.socket.shutdown(socket.SHUT_WR)
            self.ends = False
        self.site.look()

    def no_more(self):
        """The caller has no other question."""
        self.ends = True
        self.send()

    def line(self, seconds=86400):
        """The next line of the answer, before so much time has passed; None: there is no more."""
        until = self.site.now() + seconds
        while b"\n" not in self.bytes:
            self.send()
            if not self.site._call("sim_readable", self.socket.fileno(), int((until - self.site.now()) * SECOND)):
                raise lab.LabError(f"no line within {seconds} s")
            some = self.socket.recv(1 << 20)
            if not some:
                return None
            self.bytes += some
        line, self.bytes = self.bytes.split(b"\n", 1)
        return json.loads(line)

    def answer(self):
        """The last line of the answer; then the connection is closed."""
        line = self.line()
        while line is not None and "ok" not in line:
            line = self.line()
        self.close()
        return line

    def close(self):
        self.socket.close()
        self.site.look()


def json_of(ctl, *arguments):
    done = ctl("--format", "json", *arguments)
    if done.returncode != 0:
        raise lab.LabError(f"fabricctl {' '.join(arguments)}: status {done.returncode}: {done.stderr.strip()}")
    return output_schema.checked(arguments, json.loads(done.stdout))


def _journal():
    return "" if _current is None else f"journal of the site, seed {_current.seed}:\n{_current.journal()}"


failures.more.append(_journal)


class Newcomer:
    """The snapshots that another daemon has left."""

    def __init__(self, rundir):
        self.rundir = rundir

    def ctl_json(self, *arguments):
        return json_of(lambda *all_of: ctl_of(self.rundir, *all_of), *arguments)


class Site:
    """A site, and its daemon unless start is False. config: {"section": {"key": value or [values]}}.

    room          each switch has so many ports, or as many as had a cable
    second_ports  (host, other): the cable of the other is in the second port of the host, in place of that one
    """

    def __init__(self, fabric, config=None, seed=0, start=True, room=36, second_ports=()):
        global _current
        if _current is not None:
            _current.free()
        self._raised = self._program = None
        self.seed, self.handle = seed, library().sim_new(seed, _bytes(fabric))
        _current = self
        self.dir = self._call("sim_folder").decode()
        self.rundir, self.store = os.path.join(self.dir, "run"), os.path.join(self.dir, "fabricd.db")
        self.configure(config or {})
        self._call("sim_room", room)
        for host, other in second_ports:
            self._hand("sim_second_port", host, other)
        if start:
            self.start()

    def _call(self, name, *arguments):
        result = getattr(library(), name)(self.handle, *map(_bytes, arguments))
        self._raise()
        return result

    def _raise(self):
        """What a function of the test has raised that the library called."""
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised

    def _hand(self, name, *arguments):
        if not self._call(name, *arguments):
            raise lab.LabError(f"{name}{arguments}: there is no such thing")

    def free(self):
        global _current
        if self.handle is not None:
            self.at_each_point(None)
            library().sim_free(self.handle)
            self.handle = _current = None

    # -- life

    def configure(self, sections):
        """Settings, for the next start or hup()."""
        for section, settings in sections.items():
            for key, value in settings.items():
                if isinstance(value, list):
                    value = "\n".join(map(str, value))
                self._call("sim_configure", section, key, None if value is None else str(value))

    def save(self):
        """Write the settings to the daemon's file, which does not read it; the path."""
        return self._call("sim_settings").decode()

    def start(self):
        if self._call("sim_start") != 0:
            raise lab.LabError(f"fabricd does not start:\n{self.journal()[-2000:]}")
        return self

    def stop(self):
        self._call("sim_stop")

    def kill9(self, power=False):
        self._call("sim_kill", power)

    def lose_everything(self):
        """Stop it, and take away all that it keeps: the next one counts anew."""
        self._call("sim_lose_everything")

    def alive(self):
        return self._call("sim_runs")

    def hup(self):
        self._call("sim_reload")

    def look(self):
        """What callers have sent or closed reaches the daemon."""
        if self.handle is not None:
            self._call("sim_look")

    # -- time

    def idle(self):
        self._call("sim_run_until_idle")

    def advance(self, seconds):
        self._call("sim_advance", int(seconds * SECOND))

    def now(self):
        """Seconds since 1970."""
        return self._call("sim_now") / SECOND

    def jump(self, seconds):
        """The real-time clock alone."""
        self._call("sim_jump", int(seconds * SECOND))

    # -- hands

    def pull(self, node, port=0):
        self._hand("sim_pull", node, port)

    def plug(self, node, port=0):
        self._hand("sim_plug", node, port)

    unlink, relink = pull, plug

    def move(self, node, port, to, to_port):
        """The far end of this cable goes to another port."""
        self._hand("sim_move", node, port, to, to_port)

    def exchange(self, a, a_port, b, b_port):
        """The far ends of these two cables change places."""
        self._hand("sim_exchange", a, a_port, b, b_port)

    def link(self, a, a_port, b, b_port):
        """A new cable between two free ports."""
        self._hand("sim_link", a, a_port, b, b_port)

    def enable(self, node, port, enabled=True):
        self._hand("sim_enable", node, port, enabled)

    def count(self, node, port, counter, value):
        """enum probe_counter."""
        self._hand("sim_count", node, port, counter, value)

    def guid(self, node, guid):
        """Another card or switch in its place."""
        self._hand("sim_replace", node, guid)

    def lose(self, node):
        self._hand("sim_lose", node)

    def rename(self, node, description):
        self._hand("sim_rename", node, description)

    def rate(self, node, port, width, speed):
        self._hand("sim_rate", node, port, width, speed)

    def state(self, node, port, state):
        """enum fab_port_state, of both ends."""
        self._hand("sim_state", node, port, state)

    def cable(self, a, b):
        """The port of `a` that its first cable to `b` is in."""
        port = self._call("sim_cable", a, b)
        if port == 0:
            raise lab.LabError(f"no cable from {a} to {b}")
        return port

    def sweeps(self, how, missed=None):
        self._call("sim_sweeps", how, missed)

    def light_sweeps(self, how):
        self._call("sim_light_sweeps", how)

    def home(self, node):
        """Sweeps are made from there."""
        self._hand("sim_home", node)

    def disk(self, how):
        """The disk of the store works, is full, or fails."""
        self._call("sim_disk", how)

    def sweeps_take(self, seconds):
        self._call("sim_sweeps_take", int(seconds * SECOND))

    def manager(self, node):
        self._call("sim_manager", node)

    def deliver(self, host, firmware="20.31.1014"):
        """The host reports its HCAs; the code of the answer."""
        return self._call("sim_deliver", host, firmware)

    def deliver_from(self, host, delivered, uid=0):
        """A delivery (delivery()) in a credential that was made on this host by this user; the code of the answer and its reason."""
        code = self._call("sim_deliver_from", delivered, host, uid)
        return code, "" if code == 0 else self.journal().rsplit("delivery: refused: ", 1)[1].strip()

    def unresolved(self, host):
        """No name server answers for this host; None: one does for all."""
        self._call("sim_unresolved", host)

    def deliver_items(self, host, items):
        """The host reports these items, as a recorded machine has them; the code of the answer."""
        return self._call("sim_deliver_record", json.dumps({"host": host, "items": items}))

    def snapshot(self, spec, name=None, index=0, generation=0, facts=False):
        """A plane in the run directory, of which no daemon is needed."""
        os.makedirs(self.rundir, exist_ok=True)
        library().sim_snapshot(_bytes(spec), facts, _bytes(self.rundir), _bytes(name), index, generation)

    def children(self):
        """What fabricd calls its children that are under way."""
        return self._call("sim_children").decode().splitlines()

    def programs(self, play):
        """Play the other programs that fabricd starts (but fabricctl): play(Program) is called at the start of each. It returns None,
        or a dict of how it ends: status, seconds (None: it hangs), says (on its standard error)."""
        def begin(what, words, environment, text):
            try:
                end = play(Program(what.decode(), words.decode().split("\n"), dict(line.split("=", 1) for line in environment.decode().split("\n")),
                                   text.decode())) or {}
                takes = end.get("seconds", 0.02)
                library().sim_program_ends(self.handle, end.get("status", 0), -1 if takes is None else int(takes * SECOND),
                                           _bytes(end.get("says", "")))
            except Exception as error:  # of the test's own: for the test, not for the library
                self._raised = self._raised or error
        self._program = _PROGRAM(begin)
        self._call("sim_programs", self._program)

    def at_each_point(self, function):
        """function() is called at each timer, event and thread of the daemon, where another process may look. None: nothing is."""
        self._point = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: function()) if function else None
        library().seam_on_point(ctypes.cast(self._point, ctypes.c_void_p) if function else None, None)

    # -- asking

    def page(self, op, **request):
        return json.loads(self._call("sim_request", json.dumps(dict(request, op=op))))

    def control(self, op, **request):
        """All pages of the answer, as lab.Fabricd puts them together."""
        return lab.Fabricd.whole(self.page, op, **request)

    def ask(self, op, **request):
        """The connection of a caller who does not wait."""
        return Channel(self, dict(request, op=op))

    def status(self):
        return self.control("status")

    def refresh(self, **request):
        answer = self.control("refresh", **request)
        self.idle()
        if not answer["ok"]:
            raise lab.LabError(f"refresh: {answer.get('message')}")
        return answer

    def ctl(self, *arguments):
        """fabricctl on this run directory."""
        done = ctl_of(self.rundir, *arguments)
        self._raise()
        return done

    def while_waiting(self, function=None):
        """What happens when fabricctl waits and nothing is left to do for the daemon at this time: function() says whether it has
        done something. Of a fabricctl that waits without end the reader has left when it has not."""
        self._waiting = function and ctypes.CFUNCTYPE(ctypes.c_bool)(function)
        library().sim_on_wait(self.handle, ctypes.cast(self._waiting, ctypes.c_void_p) if function else None)

    def fabricd(self, *arguments):
        """fabricd beside the daemon, with arguments that make it end by itself (--restore, --check-config); what it logs is stderr."""
        before = len(self.journal())
        library().sim_fabricd.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        code = self._call("sim_fabricd", _words(arguments))
        return Done(code, "", self.journal()[before:])

    def ctl_json(self, *arguments):
        return json_of(self.ctl, *arguments)

    def afresh(self):
        """What a daemon without a past serves of the site as it is now; good until the next call."""
        return Newcomer(self._call("sim_afresh").decode())

    def journal(self):
        return self._call("sim_journal").decode("utf-8", "replace")

    def log(self):
        return self.journal()

    def oracle(self, rows):
        """So many rows of costs are compared with a plain search after each generation."""
        self._call("sim_oracle", rows)

    def generation(self):
        return self._call("sim_generation")

    # -- what the library's harness for real daemons has, too

    def check(self, *arguments):
        """fabricctl check: its status and the findings."""
        done = self.ctl("check", *arguments, "--format", "json")
        return done.returncode, json.loads(done.stdout)["findings"]

    def errors(self):
        """The error lines of the log, without their time."""
        return re.findall(r"^ *\d+d \S+ error: (.*)$", self.journal(), re.MULTILINE)


class Node:
    """fabricd in the role node on a host of the site, with a recorded machine; it looks when it is asked to. config: as of a Site."""

    def __init__(self, site, host, config=None, start=True):
        self.site, self.host = site, host
        self.handle = library().sim_node_new(site.handle, _bytes(host))
        self.rundir = self._call("sim_node_rundir").decode()
        self.configure({"nodes": {"mirror_delay_ms": 0}})
        self.configure(config or {})
        if start:
            self.start()

    def _call(self, name, *arguments):
        return getattr(library(), name)(self.handle, *map(_bytes, arguments))

    def configure(self, sections):
        for section, settings in sections.items():
            for key, value in settings.items():
                if isinstance(value, list):
                    value = "\n".join(map(str, value))
                self._call("sim_node_configure", section, key, None if value is None else str(value))

    def start(self):
        if self._call("sim_node_start") != 0:
            raise lab.LabError(f"the node does not start:\n{self.site.journal()[-2000:]}")
        return self

    def stop(self):
        self._call("sim_node_stop")

    def kill9(self):
        self._call("sim_node_kill")

    def alive(self):
        return self._call("sim_node_runs")

    def hup(self):
        self._call("sim_node_reload")

    def cut(self, cut=True):
        """Its way to the scheduler."""
        self._call("sim_node_cut", cut)

    def munge(self, hangs):
        self._call("sim_node_munge", hangs)

    def device(self):
        """The kernel tells of a device."""
        self._call("sim_node_device")

    def page(self, op, **request):
        return json.loads(library().sim_request_of(self.site.handle, _bytes(self.rundir), _bytes(json.dumps(dict(request, op=op)))))

    def control(self, op, **request):
        return lab.Fabricd.whole(self.page, op, **request)

    def status(self):
        return self.control("status")

    def ask(self, op, **request):
        return Channel(self.site, dict(request, op=op), rundir=self.rundir)

    def ctl(self, *arguments):
        return ctl_of(self.rundir, *arguments)

    def log(self):
        """Its lines of the journal."""
        return "\n".join(line for line in self.site.journal().splitlines() if line[18:].startswith(f"{self.host}: "))


class Recorded(Site):
    """A site whose fabric is a capture, as a text; what it is at the next sweep say show() and a sweep."""

    def __init__(self, capture, config=None, **options):
        config = {section: dict(settings) for section, settings in (config or {}).items()}
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.show(capture)
        config.setdefault("fabricd", {}).setdefault("probe", f"file:{self.path}")
        super().__init__("fattree2:2,1,2", config, **options)

    def show(self, capture):
        lab.replace_file(self.path, capture)
