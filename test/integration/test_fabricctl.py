"""fabricctl alone: what it reads from a run directory without a daemon, and what it asks of one (played here)."""
import csv
import fcntl
import io
import json
import os
import re
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

import lab

LEAVES, SPINES, HOSTS = 4, 2, 4
FABRIC = f"fattree2:{LEAVES},{SPINES},{HOSTS}"
N = LEAVES * HOSTS
COMMANDS = ("status", "planes", "devices", "switches", "links", "groups", "coords", "matrix")

# What programs may count on.
KEYS = {
    "planes": ["index", "name", "vendor", "identifier", "devices", "hosts", "switches", "dims", "shape", "kind"],
    "devices": ["index", "id", "plane", "host", "name", "port", "guid", "switch", "switch_port", "rate_gbps", "state",
                "logical", "physical", "type", "seen", "vendor", "firmware", "driver", "pci", "mtu", "numa", "missing"],
    "switches": ["id", "name", "level", "hosts", "missing", "aggregation"],
    "links": ["a", "a_port", "b", "b_port", "rate_gbps", "missing"],
    "groups": ["group", "hosts"],
    "coords": ["index", "plane", "host", "name", "port", "logical", "physical"],
}


def snapshot(spec, rundir, *more):
    subprocess.run([lab.program("mksnap"), spec, rundir, *more], check=True)


def read_npy(path):
    """(header, rows) of a '<u2' matrix, without NumPy."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack_from("<H", data, 8)
    assert (10 + length) % 64 == 0
    header = data[10:10 + length].decode("latin-1")
    assert header.endswith("\n")
    header = eval(header, {"__builtins__": {}})  # as numpy.load does: a literal
    n, m = header["shape"]
    values = struct.unpack(f"<{n * m}H", data[10 + length:])
    return header, [list(values[i * m:(i + 1) * m]) for i in range(n)]


class Case(unittest.TestCase):
    """A run directory of its own with one plane."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fabricctl-")
        self.addCleanup(folder.cleanup)
        self.rundir = folder.name
        snapshot(FABRIC, self.rundir)

    def start(self, *args, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        env = dict(os.environ, FABRICD_RUNDIR=self.rundir, LC_ALL="C.UTF-8", **options.pop("env", {}))
        child = subprocess.Popen([lab.program("fabricctl"), *args], env=env, **options)
        self.addCleanup(self.end, child)
        return child

    @staticmethod
    def end(child):
        if child.poll() is None:
            child.kill()
        child.wait()
        for stream in (child.stdout, child.stderr):
            if stream is not None and not stream.closed:
                stream.close()

    def ctl(self, *args, status=0, lines=1, **options):
        """Run it, look at its status and at the form of what it complains about; standard output."""
        child = self.start(*args, **options)
        out, err = child.communicate(timeout=lab.HUNG)
        self.assertEqual(child.returncode, status, f"{args}: {err}")
        self.complaint = err
        if status != 0 and err:
            self.assertEqual(err.count("\n"), lines, err)
            self.assertTrue(err.startswith("fabricctl: "), err)
        return out

    def value(self, *args, **options):
        return json.loads(self.ctl("--format", "json", *args, **options))

    def rows(self, *args):
        return list(csv.DictReader(io.StringIO(self.ctl("--format", "csv", *args))))

    def leftovers(self):
        return sorted(os.listdir(self.rundir))


class Reading(Case):
    def test_keys(self):
        for command, keys in KEYS.items():
            with self.subTest(command):
                value = self.value(command)
                self.assertIsInstance(value, list)
                for row in value:
                    self.assertEqual([key for key in keys if key not in row], [])

    def test_aggregation_nodes(self):
        """Each is shown as what it is, and at its switch; the fabric's kind and hosts are as without it."""
        rundir = os.path.join(lab.tmpdir(), "run")
        os.mkdir(rundir)
        done = lab.run([lab.program("fabricd"), "--once", "--rundir", rundir, "--store", os.path.join(rundir, "store.db"),
                        "--probe", "file:" + os.path.join(lab.ROOT, "test", "data", "site_mixed.txt")])
        self.assertEqual(done.returncode, 0, done.stderr)

        def value(command):
            return json.loads(lab.run([lab.program("fabricctl"), "--rundir", rundir, "--format", "json", command]).stdout)
        ends = {(link[end], link[end + "_kind"], link[other]) for link in value("links")
                for end, other in (("a", "b"), ("b", "a")) if link[end + "_kind"] not in ("switch", "device")}
        self.assertTrue(ends)
        for name, kind, _ in ends:
            self.assertRegex(name, f"^{kind} 0x[0-9a-f]{{16}}$")
        there = [switch for _, kind, switch in ends if kind == "aggregation node"]
        self.assertTrue(there)
        self.assertEqual({s["name"]: s["aggregation"] for s in value("switches") if s["aggregation"]},
                         {name: there.count(name) for name in there})

    def test_csv_says_what_json_says(self):
        for command in KEYS:
            with self.subTest(command):
                value, rows = self.value(command), self.rows(command)
                self.assertEqual(len(rows), len(value))
                for row, one in zip(rows, value):
                    self.assertEqual(list(row), list(one))
                    for key, cell in row.items():
                        expected = one[key]
                        if isinstance(expected, list):
                            expected = ";".join(str(item) for item in expected)
                        elif isinstance(expected, bool):
                            expected = str(expected).lower()
                        self.assertEqual(cell, "" if expected is None else str(expected))

    def test_planes(self):
        (plane,) = self.value("planes")
        self.assertEqual((plane["name"], plane["kind"]), ("ib0", "fat-tree-2"))
        self.assertEqual((plane["devices"], plane["hosts"], plane["switches"]), (N, N, LEAVES + SPINES))
        self.assertEqual(len(plane["shape"]), plane["dims"])

    def test_devices(self):
        devices = self.value("devices")
        self.assertEqual([device["index"] for device in devices], list(range(N)))
        self.assertEqual(devices[2]["host"], "node0003")
        self.assertEqual(devices[2]["state"], "up")
        self.assertEqual(len({tuple(device["logical"]) for device in devices}), N)
        self.assertRegex(devices[0]["id"], r"^fab://([0-9a-f]{4}:){3}[0-9a-f]{4}::([0-9a-f]{4}:){3}[0-9a-f]{4}$")
        self.assertEqual(self.value("devices", "node0003"), [devices[2] | {"facts": []}])
        self.ctl("devices", "node03", status=1)
        self.assertIn("node03", self.complaint)

    def test_switches_links_groups(self):
        switches = self.value("switches")
        self.assertEqual(sorted(switch["level"] for switch in switches), [0] * LEAVES + [1] * SPINES)
        self.assertEqual(sum(switch["hosts"] for switch in switches), N)
        links = self.value("links")
        self.assertEqual(len(links), N + LEAVES * SPINES)
        names = {switch["name"] for switch in switches} | {f"node{i:04}:HCA-1" for i in range(1, N + 1)}
        self.assertEqual({link[end] for link in links for end in "ab"}, names)
        groups = self.value("groups")
        self.assertEqual([group["group"] for group in groups], list(range(LEAVES)))
        self.assertEqual(groups[1]["hosts"], ["node0005", "node0006", "node0007", "node0008"])
        self.assertIn("node[0005-0008]", self.ctl("groups"))

    def test_cost(self):
        self.assertEqual(self.value("cost", "node0001", "node0001")["cost"], 0)
        self.assertEqual(self.value("cost", "node0001", "node0002")["cost"], 20)
        answer = self.value("cost", "node0001:HCA-1", "node0016:HCA-1:1")
        self.assertEqual((answer["a"], answer["b"], answer["cost"]), ("node0001:HCA-1", "node0016:HCA-1:1", 40))
        device = self.value("devices")[5]
        self.assertEqual(self.value("cost", device["id"], "node0006")["cost"], 0)
        self.assertIn("40", self.ctl("cost", "node0001", "node0016"))
        self.ctl("cost", "node0001", "nobody", status=1)
        self.assertIn("nobody", self.complaint)

    def test_text_has_a_line_for_each(self):
        for command in ("devices", "coords", "switches", "links", "groups", "planes"):
            with self.subTest(command):
                lines = self.ctl(command).splitlines()
                self.assertEqual(len(lines), 1 + len(self.value(command)))

    def test_status_without_a_daemon(self):
        status = self.value("status")
        self.assertEqual((status["generation"], status["daemon"], status["stale"]), (3, False, True))
        self.assertRegex(status["published"], r"^2023-11-14T22:13:20(\.\d+)?Z$")
        self.assertEqual(status["planes"], self.value("planes"))
        self.assertIn("no fabricd answers", status["stale_reason"])
        self.assertIn("STALE", self.ctl("status"))
        self.assertEqual(self.rows("status")[0]["generation"], "3")

    def test_planes_to_choose_from(self):
        snapshot("fattree2:2,1,4", self.rundir, "ib1", "2", "5")
        snapshot("fattree2:6,2,4", self.rundir, "ib2", "3", "4")
        self.assertEqual([plane["name"] for plane in self.value("planes")], ["ib0", "ib1", "ib2"])
        self.assertEqual(self.value("status")["generation"], 5)
        self.assertEqual(len(self.value("devices")), N + 8 + 24)
        self.assertEqual(len(self.value("--plane", "ib1", "devices")), 8)
        self.assertEqual(len(self.value("devices", "--plane", "ib1")), 8)
        self.assertEqual({device["plane"] for device in self.value("devices", "node0001")}, {"ib0", "ib1", "ib2"})
        self.assertEqual(self.value("cost", "node0001", "node0002")["plane"], "ib0")
        self.assertEqual(self.value("cost", "node0001", "node0024")["plane"], "ib2")
        self.assertEqual(len(self.value("matrix")["devices"]), N)
        for name in ("ib9", "0", "1", "+1", "../ib0"):  # no number is a name, and 0 is no plane's number
            self.ctl("planes", "--plane", name, status=1)
            self.assertRegex(self.complaint, f"no plane {re.escape(name)}: .*: there is ib0, ib1, ib2$")

    def test_no_path_is_an_answer_and_it_is_no(self):
        snapshot("fattree2:6,2,4", self.rundir, "ib2", "3", "4")
        here, there = self.value("--plane", "ib0", "devices")[0]["id"], "node0024"  # which only ib2 has
        answer = self.value("cost", here, there, status=1)
        self.assertEqual((answer["a"], answer["b"], answer["cost"]), (here, there, None))
        self.assertEqual(self.complaint, "")
        self.assertIn("no path", self.ctl("cost", here, there, status=1))
        self.assertIn(f"{here},{there},,", self.ctl("cost", here, there, "--format", "csv", status=1))
        self.ctl("--plane", "ib0", "cost", here, there, status=1)
        self.assertIn("no device node0024", self.complaint)

    def test_help_and_version(self):
        text = self.ctl("--help")
        for command in KEYS | {"status": 0, "cost": 0, "matrix": 0, "refresh": 0, "events": 0, "history": 0, "diff": 0}:
            self.assertRegex(text, rf"\n  {command} ")
            self.assertIn(f"fabricctl {command}", self.ctl(command, "--help"))
        self.assertRegex(self.ctl("--version"), r"^fabricctl \d+\.\d+\.\d+\n$")


class Refusing(Case):
    def test_bad_usage(self):
        for args in ([], ["nosuch"], ["planes", "extra"], ["cost", "a"], ["cost", "a", "b", "c"], ["--format", "xml", "planes"],
                     ["planes", "--rundir"], ["--bogus", "planes"], ["planes", "--bogus"], ["-z"], ["matrix", "--follow"],
                     ["planes", "-o", "x"], ["status", "--accept-partial"], ["--uri", "x", "--rundir", "y", "planes"],
                     ["--rundir=", "planes"], ["diff", "x"], ["diff", "5", "3"], ["diff", "1", "2", "3"], ["diff", "-1"],
                     ["history", "--limit", "0"], ["history", "--limit", "1x"], ["events", "--follow=yes"],
                     ["--uri", "x", "refresh"], ["--uri", "x", "events"], ["--format", "", "planes"]):
            with self.subTest(args=args):
                self.assertEqual(self.ctl(*args, status=2), "")

    def test_nothing_published(self):
        with tempfile.TemporaryDirectory() as empty:
            for place in (empty, os.path.join(empty, "nosuch")):
                for command in COMMANDS:
                    with self.subTest(place=place, command=command):
                        self.ctl("--rundir", place, command, status=1)
                        self.assertIn(place, self.complaint)

    def test_damaged_snapshot(self):
        path = os.path.join(self.rundir, "ib0.snap")
        with open(path, "rb") as file:
            good = file.read()
        for bad in (b"", good[:100], b"junk" * 100, good[:600] + bytes([good[600] ^ 1]) + good[601:], good[:-1]):
            with open(path, "wb") as file:
                file.write(bad)
            for command in COMMANDS:
                with self.subTest(size=len(bad), command=command):
                    self.ctl(command, status=1)
                    self.assertIn("ib0.snap", self.complaint)

    def test_a_stranger_beside_good_snapshots_is_told_of(self):
        with open(os.path.join(self.rundir, "other.snap"), "w", encoding="utf-8") as file:
            file.write("junk")
        self.assertEqual(len(self.value("planes")), 1)
        self.assertIn("other.snap", self.complaint)

    def test_nobody_at_the_uri(self):
        for uri in ("junk", "fabricd.0;tcp4://127.0.0.1:1"):
            with self.subTest(uri):
                # PMIx_tool_init() keeps two strings of its own when it fails (4.2.2)
                self.ctl("--uri", uri, "planes", status=1, env={"ASAN_OPTIONS": "detect_leaks=0"})

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for command in COMMANDS:
                for form in ("text", "json", "csv"):
                    with self.subTest(command=command, form=form):
                        self.ctl("--format", form, command, status=1, stdout=full)
                        self.assertIn("No space", self.complaint)

    def test_output_that_nobody_reads(self):
        snapshot("fattree2:30,4,30", self.rundir)
        for form in ("text", "json", "csv"):
            with self.subTest(form):
                reader, writer = os.pipe()
                os.close(reader)
                self.ctl("--format", form, "links", status=1, stdout=writer)
                os.close(writer)

    def test_closed_standard_streams(self):
        done = subprocess.run(["sh", "-c", '"$0" devices >&- 2>&- <&-', lab.program("fabricctl")],
                              env=dict(os.environ, FABRICD_RUNDIR=self.rundir), check=False)
        self.assertEqual(done.returncode, 1)


def waiting(fd):
    """How many bytes can be read."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4), sys.byteorder)


class Matrix(Case):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.rundir, "costs.npy")

    def test_all_forms_agree_with_cost(self):
        self.ctl("matrix", "-o", self.file)
        header, rows = read_npy(self.file)
        self.assertEqual(header, {"descr": "<u2", "fortran_order": False, "shape": (N, N)})
        value = self.value("matrix")
        self.assertEqual(value["costs"], rows)
        lines = list(csv.reader(io.StringIO(self.ctl("matrix", "--format", "csv"))))
        self.assertEqual(lines[0][1:], value["devices"])
        self.assertEqual([[int(cell) for cell in line[1:]] for line in lines[1:]], rows)
        text = [line.split() for line in self.ctl("matrix").splitlines()]
        self.assertEqual([[int(cell) for cell in line[2:]] for line in text], rows)
        for a in (0, 3, N - 1):
            for b in range(N):
                answer = self.value("cost", value["devices"][a], value["devices"][b])
                self.assertEqual(answer["cost"], rows[a][b])

    def test_numpy_reads_it(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        self.ctl("matrix", "-o", self.file)
        matrix = numpy.load(self.file)
        self.assertEqual((matrix.shape, matrix.dtype), ((N, N), numpy.dtype("<u2")))
        self.assertTrue((matrix == matrix.T).all())

    def test_to_standard_output(self):
        self.ctl("matrix", "-o", self.file)
        child = self.start("matrix", "-o", "-", text=False)
        with open(self.file, "rb") as file:
            self.assertEqual(child.communicate()[0], file.read())

    def test_large_ones_are_for_files(self):
        snapshot("fattree2:50,4,50", self.rundir)
        for form in ("text", "json", "csv"):
            self.ctl("matrix", "--format", form, status=1)
            self.assertIn("-o", self.complaint)
        self.ctl("matrix", "-o", self.file)
        self.assertEqual(os.path.getsize(self.file), 128 + 2 * 2500 * 2500)

    def test_replaces_at_once_and_through_links(self):
        link = os.path.join(self.rundir, "link.npy")
        os.symlink("costs.npy", link)
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("old")
        self.ctl("matrix", "-o", link)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(read_npy(self.file)[0]["shape"], (N, N))
        umask = os.umask(0)
        os.umask(umask)
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o666 & ~umask)
        self.assertEqual(self.leftovers(), ["costs.npy", "ib0.snap", "link.npy"])

    def test_a_device_stays_a_device(self):
        self.ctl("matrix", "-o", "/dev/full", status=1)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
        self.ctl("matrix", "-o", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_no_room_leaves_the_old_file_and_no_half_one(self):
        snapshot("fattree2:20,4,20", self.rundir)
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("old")

        def little_room():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        self.ctl("matrix", "-o", self.file, status=1, preexec_fn=little_room)
        self.assertIn("File too large", self.complaint)
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")
        self.assertEqual(self.leftovers(), ["costs.npy", "ib0.snap"])

    def test_impossible_places(self):
        for path in (os.path.join(self.rundir, "nosuch", "x.npy"), self.rundir, "/proc/x.npy"):
            with self.subTest(path):
                self.ctl("matrix", "-o", path, status=1)
        self.ctl("matrix", "-o", "", status=2)
        self.assertEqual(self.leftovers(), ["ib0.snap"])

    def test_interrupted(self):
        snapshot("fattree2:50,4,50", self.rundir)
        reader, writer = os.pipe()
        child = self.start("matrix", "-o", "-", stdout=writer, text=False)
        os.close(writer)
        self.assertEqual(os.read(reader, 6), b"\x93NUMPY")
        lab.wait_for(lambda: waiting(reader) > 32768, what="a full pipe")  # the rows are being written: it hangs there
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=lab.HUNG), 1)
        os.close(reader)


class Daemon:
    """Answers one request a connection, by what `answers` holds for its op: lines, objects, or a function."""

    def __init__(self, rundir, answers):
        self.answers, self.requests = answers, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(rundir, "control.sock"))
        self.listener.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            try:
                with connection, connection.makefile("rwb") as stream:
                    self.answer(json.loads(stream.readline()), stream)
            except (OSError, ValueError):
                pass  # the client went away

    def answer(self, request, stream):
        self.requests.append(request)
        answer = self.answers[request["op"]]
        if callable(answer):
            answer = answer(request, stream)
        for line in answer or []:
            stream.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
            stream.flush()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def change(generation, what, kind="link-lost"):
    return {"generation": generation, "time": "2025-01-02T03:04:05Z", "kind": kind, "what": what, "before": "4xHDR",
            "after": "", "why": "it was pulled", "planned": False, "first_seen": "2025-01-02T03:04:04Z", "last_seen": None,
            "subjects": ["leaf1", "node7"]}


class Asking(Case):
    def daemon(self, **answers):
        daemon = Daemon(self.rundir, answers)
        self.addCleanup(daemon.close)
        return daemon

    def test_no_daemon(self):
        for args in (["refresh"], ["events"], ["events", "--follow"], ["history"], ["diff"]):
            with self.subTest(args=args):
                self.ctl(*args, status=1)
                self.assertIn(f"{self.rundir}/control.sock", self.complaint)
                self.assertIn("is it running?", self.complaint)

    def test_a_socket_that_nobody_listens_at(self):
        left = socket.socket(socket.AF_UNIX)
        left.bind(os.path.join(self.rundir, "control.sock"))
        left.close()
        self.ctl("refresh", status=1)
        self.assertIn("is it running?", self.complaint)
        self.assertFalse(self.value("status")["daemon"])

    def test_status(self):
        told = {"ok": True, "daemon": True, "pid": 4711, "version": "9.9.9", "uri": "x;tcp4://127.0.0.1:1", "generation": 8,
                "published": "2025-01-02T03:04:05Z", "stale": True, "stale_since": "2025-01-02T04:04:05Z",
                "stale_reason": "the sweep \x1b[31mtook longer than 60 s", "partial": True, "dangling": 3, "unnamed": 2,
                "sweeping": False, "last_sweep": None, "sweep_ms": 12.345678, "interval": 60, "newer": "key"}
        self.daemon(status=[told])
        status = self.value("status")
        told["stale_reason"] = "the sweep ?[31mtook longer than 60 s"
        for key, value in told.items():
            if key != "ok":
                self.assertEqual(status[key], value, key)
        self.assertEqual(status["planes"], self.value("planes"))
        text = self.ctl("status")
        self.assertNotIn("\x1b", text)
        self.assertRegex(text, r"STALE +since 2025-01-02T04:04:05Z: the sweep")
        self.assertNotRegex(text, "(?m)^(light sweeps|dirty|missing|flapping) ")  # an older daemon does not say it

    def test_status_between_sweeps(self):
        told = {"ok": True, "daemon": True, "role": "scheduler", "generation": 8, "published": "2025-01-02T03:04:05Z",
                "stale": False, "sweeping": True, "last_sweep": "2025-01-02T03:04:04Z", "sweep_ms": 12.3, "interval": 60,
                "light_sweep": 2, "light_sweeps": 471, "light_sweeps_dirty": 3, "light_sweep_ms": 0.44, "monitoring": True, "dirty_since": None,
                "missing": 0, "flapping": 0}
        quiet = dict(told, sweeping=False)
        storm = dict(told, monitoring=False, dirty_since="2025-01-02T03:05:06Z", missing=1, flapping=2)
        answers = iter([quiet, storm, dict(told, light_sweep=0, monitoring=None)])
        self.daemon(status=lambda request, stream: [next(answers)])
        text = self.ctl("status")
        self.assertRegex(text, r"(?m)^last sweep +2025-01-02T03:04:04Z, took 12.3 ms, every 60 s$")
        self.assertRegex(text, r"(?m)^light sweeps +471, 3 found a change, the last took 0.4 ms, every 2 s$")
        self.assertNotRegex(text, "(?m)^(dirty|missing|flapping) ")
        text = self.ctl("status")
        self.assertRegex(text, r"(?m)^last sweep +.*; sweeping now$")
        self.assertRegex(text, r"(?m)^light sweeps +471, .*, every 2 s; NOT LOOKING NOW: changes are seen at sweeps only$")
        self.assertRegex(text, r"(?m)^dirty +since 2025-01-02T03:05:06Z: swept when it is quiet$")
        self.assertRegex(text, r"(?m)^missing +1 HCA, which keeps its place$")
        self.assertRegex(text, r"(?m)^flapping +2 cables and switches, suppressed$")
        self.assertNotRegex(self.ctl("status"), "(?m)^light sweeps ")

    def test_status_of_a_node(self):
        told = {"ok": True, "daemon": True, "role": "node", "host": "node0001", "generation": 8,
                "published": "2025-01-02T03:04:05Z", "stale": True, "stale_since": "2025-01-02T04:04:05Z",
                "stale_reason": "the scheduler is away", "scheduler": "x", "connected": False, "scanning": True,
                "last_scan": "2025-01-02T03:04:04Z", "scan_ms": 8.25, "interval": 300, "probes": 5, "probes_failed": 1,
                "probe_error": "lldp: nobody answers", "digest": "0a", "held": "0b", "delivered": "2025-01-02T03:00:00Z",
                "delivering": True, "refused": True, "reason": "who are you?"}
        self.daemon(status=[told])
        text = self.ctl("status")
        for line in ("role +node", "host +node0001", "STALE +since 2025-01-02T04:04:05Z: the scheduler is away",
                     "scheduler +x, not connected", "last scan +2025-01-02T03:04:04Z, took 8.2 ms, every 300 s; scanning now",
                     "FAILED PROBES +1 of 5: lldp: nobody answers",
                     "report +0a, which the scheduler does not hold, delivered 2025-01-02T03:00:00Z; delivering now",
                     r"REFUSED +who are you\?"):
            self.assertRegex(text, f"(?m)^{line}$")
        self.assertNotRegex(text, "(?m)^(looks|last sweep) ")

    def test_status_before_anything_is_published(self):
        os.unlink(os.path.join(self.rundir, "ib0.snap"))
        self.daemon(status=[{"ok": True, "generation": 0, "published": None, "stale": False}])
        status = self.value("status")
        self.assertEqual((status["daemon"], status["generation"], status["planes"]), (True, 0, []))
        self.ctl("status")

    @staticmethod
    def told(request):
        """The daemon's answer to `diff`: of one host, what is about it, and whether it is there."""
        answer = {"ok": True, "from": request["from"], "to": request["to"],
                  "changes": [change(9, "leaf1[8] - node0001 HCA-1[1]"), change(9, "leaf2 - spine1")]}
        if "host" in request:
            answer["known"] = request["host"] != "node000"
            answer["changes"] = answer["changes"][:request["host"] == "node0001"]
        return answer

    def test_refresh(self):
        daemon = self.daemon(
            refresh=[{"progress": "sweeping"}, {"progress": "bad \x1b[2J text"},
                     {"ok": True, "generation": 9, "changed": True, "partial": False}],
            diff=lambda request, _: [self.told(request)])
        value = self.value("refresh", "--accept-partial")
        self.assertEqual((value["generation"], value["changed"], value["partial"]), (9, True, False))
        self.assertEqual([one["what"] for one in value["changes"]], ["leaf1[8] - node0001 HCA-1[1]", "leaf2 - spine1"])
        self.assertEqual(self.complaint, "fabricctl: sweeping\nfabricctl: bad ?[2J text\n")
        self.assertEqual(daemon.requests, [{"op": "refresh", "accept_partial": True}, {"op": "diff", "from": 8, "to": 9}])
        self.assertIn("leaf2 - spine1", self.ctl("refresh"))
        self.assertEqual(daemon.requests[2]["accept_partial"], False)
        value = self.value("refresh", "--host", "node0001")
        self.assertEqual(daemon.requests[4]["host"], "node0001")
        self.assertEqual([one["what"] for one in value["changes"]], ["leaf1[8] - node0001 HCA-1[1]"])
        self.assertEqual(self.value("refresh", "--host", "node0002")["changes"], [])
        self.assertEqual(self.ctl("refresh", "--host", "node0002"), "generation 9, published just now\n"
                         "nothing about node0002; 2 other changes: fabricctl diff\n")
        self.assertEqual(self.ctl("refresh", "--switch", "leaf7"), "generation 9, published just now\n"
                         "nothing about leaf7; 2 other changes: fabricctl diff\n")
        self.assertNotIn("nothing about", self.ctl("refresh", "--host", "node0001"))
        self.ctl("refresh", "--host", "node000", status=1, lines=3)
        self.assertIn("node000", self.complaint.splitlines()[-1])

    def test_refresh_that_changed_nothing(self):
        daemon = self.daemon(refresh=[{"ok": True, "generation": 3, "changed": False, "partial": True}])
        self.assertIn("nothing changed", self.ctl("refresh"))
        value = self.value("refresh")
        self.assertLessEqual({"generation": 3, "changed": False, "partial": True, "changes": []}.items(), value.items())
        self.assertEqual({request["op"] for request in daemon.requests}, {"refresh"})

    def test_refusals(self):
        no = {"ok": False, "error": -14, "message": "refresh: uid 65534 may not: ask an administrator\x1b[0m"}
        self.daemon(refresh=[no], history=[no], diff=[no], events=[no])
        for args in (["refresh"], ["history"], ["diff"], ["events"], ["events", "--follow"]):
            with self.subTest(args=args):
                self.assertEqual(self.ctl(*args, status=1), "")
                self.assertEqual(self.complaint, "fabricctl: refresh: uid 65534 may not: ask an administrator?[0m\n")

    def test_answers_that_are_none(self):
        for bad in (b"", b"\n", b"hello\n", b"[]\n", b"{\n", b'{"ok":true}', b'{"ok":\xff}\n', b"\0" * 50 + b"\n"):
            with self.subTest(bad):
                daemon = Daemon(self.rundir, {"history": [bad]})
                try:
                    self.ctl("history", status=1)
                finally:
                    daemon.close()
                    os.unlink(os.path.join(self.rundir, "control.sock"))

    def test_odd_values_in_an_answer_are_no_crash(self):
        self.daemon(history=[{"ok": True, "changes": [{}, 5, None, {"generation": "x", "what": 7, "time": []}]}],
                    diff=[{"ok": True, "changes": {"a": 1}}], events=[{"ok": True, "events": "none"}],
                    status=[{"ok": True, "generation": "many", "stale": 5, "planes": 7, "sweep_ms": {}}],
                    refresh=[{"ok": True, "changed": "yes"}])
        for command in ("history", "diff", "events", "status", "refresh"):
            for form in ("text", "json", "csv"):
                with self.subTest(command=command, form=form):
                    self.ctl(command, "--format", form)

    def test_history(self):
        daemon = self.daemon(history=[{"ok": True, "changes": [change(1, "a, \"b\""), change(2, "c\x1bd")]}])
        value = self.value("history")
        self.assertEqual([one["what"] for one in value], ["a, \"b\"", "c?d"])
        self.assertEqual(set(value[0]), {"generation", "time", "kind", "what", "before", "after", "why", "planned",
                                         "first_seen", "last_seen", "subjects"})
        self.assertEqual([row["what"] for row in self.rows("history", "node1", "--limit", "7")], ["a, \"b\"", "c?d"])
        self.assertEqual(daemon.requests, [{"op": "history"}, {"op": "history", "what": "node1", "limit": 7}])
        self.assertEqual(self.rows("history")[0]["subjects"], "leaf1;node7")
        self.assertEqual(len(self.ctl("history").splitlines()), 3)

    def test_history_for_people(self):
        moved = dict(change(3, "node7 HCA-1[1]", "host-moved"), before="leaf1[2]", after="leaf2[5]", planned=True)
        self.daemon(history=[{"ok": True, "changes": [moved, change(4, "x")]}])
        heads, first, second = [" ".join(line.split()) for line in self.ctl("history").splitlines()]
        self.assertEqual(heads, "TIME GENERATION KIND WHAT CHANGE WHY")
        self.assertEqual(first, "2025-01-02T03:04:05Z 3 host-moved, planned node7 HCA-1[1] "
                         "leaf1[2] -> leaf2[5] it was pulled")
        self.assertEqual(second, "2025-01-02T03:04:05Z 4 link-lost x 4xHDR -> it was pulled")

    def test_history_of_nobody(self):
        self.daemon(history=[{"ok": True, "trimmed": 7, "changes": []}])
        self.assertEqual(self.ctl("history", "nosuch"),
                         "the history has nothing about nosuch\ntrimmed: older than generation 8\n")
        self.assertEqual(self.value("history", "nosuch"), [])  # what programs read stays what it is
        self.assertEqual(self.complaint, "fabricctl: trimmed: older than generation 8\n")
        self.rows("history", "-n", "5")
        self.assertEqual(self.complaint, "")

    def test_history_at_length(self):
        self.daemon(history=[{"ok": True, "changes": [change(3, "x")]}],
                    diff=[{"ok": True, "from": 2, "to": 3, "changes": [change(3, "x")]}])
        for args in (["history", "-l"], ["diff", "--long"]):
            heads, line = [" ".join(line.split()) for line in self.ctl(*args).splitlines()]
            self.assertEqual(heads, "TIME GENERATION KIND WHAT CHANGE LAST-SEEN FIRST-SEEN WHY")
            self.assertEqual(line, "2025-01-02T03:04:05Z 3 link-lost x 4xHDR -> - 2025-01-02T03:04:04Z it was pulled")

    def test_refresh_of_a_host_that_a_change_is_about(self):
        self.daemon(refresh=[{"ok": True, "generation": 9, "changed": True, "partial": False}],
                    diff=[{"ok": True, "from": 8, "to": 9, "changes": [change(9, "leaf1", "switch-replaced")]}])
        self.assertEqual([one["what"] for one in self.value("refresh", "--host", "node7")["changes"]], ["leaf1"])

    def test_a_long_history(self):
        changes = [change(i, f"leaf{i}[1] - spine1[{i}]") for i in range(50000)]
        self.daemon(history=[{"ok": True, "changes": changes}])
        self.assertEqual(self.value("history"), changes)

    def test_diff(self):
        daemon = self.daemon(diff=lambda request, _: [{"ok": True, "from": request.get("from", 6), "to": request.get("to", 7),
                                                       "changes": [change(7, "x")]}])
        self.assertEqual(self.value("diff"), {"from": 6, "to": 7, "changes": [change(7, "x")]})
        self.assertEqual(self.value("diff", "2")["from"], 2)
        self.assertEqual(self.value("diff", "2", "5")["to"], 5)
        self.assertEqual([{key: request[key] for key in request if key != "op"} for request in daemon.requests],
                         [{}, {"from": 2}, {"from": 2, "to": 5}])

    def test_events(self):
        event = {"event": "PMIX_FABRIC_UPDATED", "plane": "ib0", "index": 1, "generation": 4, "time": "2025-01-02T03:04:05Z"}
        self.daemon(events=[{"ok": True, "events": [event, event]}])
        self.assertEqual(self.value("events"), [event, event])
        self.assertEqual(len(self.ctl("events").splitlines()), 3)


class Following(Case):
    EVENT = {"event": "PMIX_FABRIC_UPDATED", "plane": "ib0", "index": 1, "generation": 4, "time": "2025-01-02T03:04:05Z"}

    def setUp(self):
        super().setUp()
        self.stop = threading.Event()
        self.daemon = Daemon(self.rundir, {"events": self.events})
        self.addCleanup(self.daemon.close)
        self.addCleanup(self.stop.set)

    def events(self, request, stream):
        self.assertTrue(request["follow"])
        for line in ({"ok": True}, self.EVENT, {"of": "a later version"}, dict(self.EVENT, generation=5)):
            stream.write(json.dumps(line).encode() + b"\n")
            stream.flush()
        self.stop.wait(lab.HUNG)

    def test_lines_come_at_once_and_interrupt_ends_them(self):
        child = self.start("events", "--follow", "--format", "json")
        self.assertEqual(json.loads(child.stdout.readline()), self.EVENT)
        self.assertEqual(json.loads(child.stdout.readline())["generation"], 5)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=lab.HUNG), 0)
        self.assertEqual(child.stderr.read(), "")

    def test_forms(self):
        child = self.start("events", "-f", "--format", "csv")
        self.assertEqual(child.stdout.readline(), "time,event,plane,index,generation\n")
        self.assertEqual(child.stdout.readline(), "2025-01-02T03:04:05Z,PMIX_FABRIC_UPDATED,ib0,1,4\n")
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(timeout=lab.HUNG), 0)
        self.end(child)
        self.stop.set()

    def test_text(self):
        child = self.start("events", "-f")
        self.assertIn("PMIX_FABRIC_UPDATED", child.stdout.readline())

    def test_daemon_goes(self):
        child = self.start("events", "--follow")
        child.stdout.readline()
        self.stop.set()
        _, err = child.communicate(timeout=lab.HUNG)
        self.assertEqual(child.returncode, 1)
        self.assertIn("closed the connection", err)
        self.assertEqual(err.count("\n"), 1)

    def test_reader_goes(self):
        child = self.start("events", "--follow")
        child.stdout.readline()
        child.stdout.close()
        self.assertEqual(child.wait(timeout=lab.HUNG), 1)  # though nothing happens


if __name__ == "__main__":
    unittest.main()
