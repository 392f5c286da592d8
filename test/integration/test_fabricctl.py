"""fabricctl as a process: where its output goes, what ends it, and events as they come. test/sim/test_fabricctl_*.py have what it says."""
import json
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import unittest

import lab

LEAVES, SPINES, HOSTS = 4, 2, 4
FABRIC = f"fattree2:{LEAVES},{SPINES},{HOSTS}"
N = LEAVES * HOSTS
COMMANDS = ("status", "planes", "devices", "switches", "links", "groups", "coords", "matrix")


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

    def leftovers(self):
        return sorted(os.listdir(self.rundir))


class Output(Case):
    def test_it_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for command in COMMANDS:
                with self.subTest(command=command):
                    self.ctl(command, status=1, stdout=full)
                    self.assertIn("No space", self.complaint)
        done = subprocess.run(["sh", "-c", '"$0" devices >&- 2>&- <&-', lab.program("fabricctl")],
                              env=dict(os.environ, FABRICD_RUNDIR=self.rundir), check=False)
        self.assertEqual(done.returncode, 1)

    def test_nobody_reads_it(self):
        snapshot("fattree2:30,4,30", self.rundir)
        for form in ("text", "json", "csv"):
            with self.subTest(form):
                reader, writer = os.pipe()
                os.close(reader)
                self.ctl("--format", form, "links", status=1, stdout=writer)
                os.close(writer)

    def test_interrupted(self):
        snapshot("fattree2:50,4,50", self.rundir)
        reader, writer = os.pipe()
        child = self.start("matrix", "-o", "-", stdout=writer, text=False)
        os.close(writer)
        self.assertEqual(os.read(reader, 6), b"\x93NUMPY")  # the rows come next, and fill the pipe
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=lab.HUNG), 1)
        os.close(reader)

    def test_nobody_at_the_uri(self):
        for uri in ("junk", "fabricd.0;tcp4://127.0.0.1:1"):
            with self.subTest(uri):
                # PMIx_tool_init() keeps two strings of its own when it fails (4.2.2)
                self.ctl("--uri", uri, "planes", status=1, env={"ASAN_OPTIONS": "detect_leaks=0"})


class Matrix(Case):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.rundir, "costs.npy")

    def test_a_file_is_replaced_at_once_and_through_links(self):
        link = os.path.join(self.rundir, "link.npy")
        os.symlink("costs.npy", link)
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("old")
        self.ctl("matrix", "-o", link)
        self.assertTrue(os.path.islink(link))
        header, rows = read_npy(self.file)
        self.assertEqual(header, {"descr": "<u2", "fortran_order": False, "shape": (N, N)})
        self.assertEqual(self.value("matrix")["costs"], rows)
        umask = os.umask(0)
        os.umask(umask)
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o666 & ~umask)
        self.assertEqual(self.leftovers(), ["costs.npy", "ib0.snap", "link.npy"])
        child = self.start("matrix", "-o", "-", text=False)
        with open(self.file, "rb") as file:
            self.assertEqual(child.communicate()[0], file.read())

    def test_what_cannot_be_written_leaves_the_old_file_and_no_half_one(self):
        for path, status in (("/dev/full", 1), ("/dev/null", 0)):  # a device stays a device
            self.ctl("matrix", "-o", path, status=status)
            self.assertTrue(stat.S_ISCHR(os.stat(path).st_mode))
        for path in (os.path.join(self.rundir, "nosuch", "x.npy"), self.rundir, "/proc/x.npy"):
            with self.subTest(path):
                self.ctl("matrix", "-o", path, status=1)
        snapshot("fattree2:20,4,20", self.rundir)
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("old")
        self.ctl("matrix", "-o", self.file, status=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        self.assertIn("File too large", self.complaint)
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")
        self.assertEqual(self.leftovers(), ["costs.npy", "ib0.snap"])


class Following(Case):
    """A caller at the control socket follows events, which the test sends."""
    EVENT = {"event": "PMIX_FABRIC_UPDATED", "plane": "ib0", "index": 1, "generation": 4, "time": "2025-01-02T03:04:05Z", "reason": None}

    def setUp(self):
        super().setUp()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.rundir, "control.sock"))
        self.listener.listen()
        self.addCleanup(self.listener.close)

    def follow(self, *form):
        """fabricctl, and the connection that it asks in, which has got the events."""
        child = self.start("events", "--follow", *form)
        connection, _ = self.listener.accept()
        self.addCleanup(connection.close)
        self.assertTrue(json.loads(connection.recv(4096))["follow"])
        for line in ({"ok": True}, self.EVENT, {"of": "a later version"}, dict(self.EVENT, generation=5)):
            connection.sendall(json.dumps(line).encode() + b"\n")
        return child, connection

    def test_lines_come_at_once_and_a_signal_ends_them(self):
        for form, first, number in (("json", None, signal.SIGINT), ("csv", "time,event,plane,index,generation,reason\n", signal.SIGTERM)):
            child, _ = self.follow("--format", form)
            if first:
                self.assertEqual(child.stdout.readline(), first)
                self.assertEqual(child.stdout.readline(), "2025-01-02T03:04:05Z,PMIX_FABRIC_UPDATED,ib0,1,4,\n")
            else:
                self.assertEqual(json.loads(child.stdout.readline()), self.EVENT)
                self.assertEqual(json.loads(child.stdout.readline())["generation"], 5)
            child.send_signal(number)
            self.assertEqual((child.wait(timeout=lab.HUNG), child.stderr.read()), (0, ""))

    def test_one_end_goes(self):
        child, connection = self.follow()
        self.assertIn("PMIX_FABRIC_UPDATED", child.stdout.readline())
        connection.close()
        _, err = child.communicate(timeout=lab.HUNG)
        self.assertEqual((child.returncode, err.count("\n")), (1, 1))
        self.assertIn("closed the connection", err)
        child, _ = self.follow()
        child.stdout.readline()
        child.stdout.close()
        self.assertEqual(child.wait(timeout=lab.HUNG), 1)  # though nothing happens


if __name__ == "__main__":
    unittest.main()
