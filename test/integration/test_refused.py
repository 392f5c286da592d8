"""What fabricd refuses: one line that says what, where and what to do; nothing stored, nothing lost. (Mistakes of the configuration,
damaged stores and captures: unit tests.)"""
import errno
import os
import sqlite3
import unittest

import fabric_text
import lab
import versions


class Case(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.whole = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.path, self.whole)

    def make(self, **settings):
        """A daemon on the recorded fabric, not started."""
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}", **settings}}, start=False)
        self.addCleanup(lambda: daemon.process and daemon.stop())
        return daemon

    def check_line(self, done, status, *parts):
        """It ended with this status and one line, which has these parts."""
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(versions.unwarned(done.stderr).count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def check_start(self, daemon, *parts):
        """It does not start, in the foreground or in the background."""
        self.check_line(daemon.run_once("--foreground"), 1, *parts)
        self.check_line(daemon.run_once("--interval", "0"), 1, *parts)


class CommandLine(Case):
    def test_usage(self):
        def fabricd(*args):
            return lab.run([lab.program("fabricd"), *args])
        done = fabricd("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("--config", "--rundir", "--store", "--probe", "--interval", "--foreground", "--check-config", "--once",
                     "--role", "--scheduler", "--version", "ibnetdisc", "file"):
            self.assertIn(text, done.stdout)
        self.assertRegex(fabricd("--version").stdout, r"^fabricd \d+\.\d+\.\d+\n$")
        for args, text in ((["--nonsense"], "--nonsense"), (["word"], "word"), (["--role", "chief"], "role is \"chief\""),
                           (["--interval"], "--interval")):
            done = fabricd(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(text, done.stderr)
        for args, text in ((["--interval", "-1"], '"-1"'), (["--interval", "99999999999999999999"], "86400"),
                           (["--probe", "nosuch"], "nosuch"), (["--probe", "file:"], "path"),
                           (["--probe", f"file:{self.path},prefix=x"], "prefix"),
                           (["--config", "/nowhere/fabricd.conf"], "/nowhere/fabricd.conf: cannot be read")):
            self.check_line(fabricd("--check-config", "--store", self.path + ".db", *args), 2, text)
        daemon = self.make()
        done = daemon.run_once("--check-config")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "the configuration is good\n", ""))
        self.assertFalse(os.path.exists(daemon.rundir) or os.path.exists(daemon.store))  # nothing was touched
        lab.replace_file(daemon.conf, "[fabricd]\n interval = soon\n")
        for arg in ("--check-config", "--once"):
            self.check_line(daemon.run_once(arg, "--store", daemon.store), 2, f'{daemon.conf}:2:13: ', '"soon"')


class Places(Case):
    def test_run_directories(self):
        for rundir, why in ((self.path, "not a folder"), (self.path + "/run", "cannot be"), ("/proc/fabricd", "cannot be"),
                            ("/nowhere/fabricd", "cannot be")):
            daemon = self.make(rundir=rundir)
            self.check_start(daemon, rundir, why)
            self.assertFalse(os.path.exists(daemon.store))
        folder = os.path.join(lab.tmpdir(), "x" * 100)
        os.mkdir(folder)
        self.check_start(self.make(rundir=folder), folder, "too long for a socket")

    @unittest.skipIf(os.geteuid() != 0, "root may write everywhere, and only root can try as another user")
    def test_a_run_directory_that_is_not_writable(self):
        daemon = self.make()
        os.mkdir(daemon.rundir, 0o755)
        os.chmod(daemon.dir, 0o1777)
        daemon.binary, daemon.env = lab.readable_copy(daemon.binary, daemon.env)
        done = daemon.run_once("--foreground", user=65534, group=65534, extra_groups=[])
        self.check_line(done, 1, f"{daemon.rundir}/lock: cannot be written: Permission denied")

    def test_another_daemon_has_them(self):
        first = self.make().start()
        second = self.make(rundir=first.rundir)
        self.check_start(second, first.rundir, str(first.process.pid))
        self.check_line(second.run_once("--once"), 1, str(first.process.pid))
        self.check_start(self.make(store=first.store), first.store, f"pid {first.process.pid}")
        self.assertEqual(first.status()["pid"], first.process.pid)  # and is not disturbed
        self.assertIn("pmixfab.generation uint64 1", first.tool("register").stdout)
        self.assertEqual(first.refresh()["generation"], 1)

    def test_stores(self):
        """What is not taken stays as it is, byte for byte."""
        self.check_start(self.make(store="/nowhere/fabricd.db"), "/nowhere/fabricd.db")
        folder = os.path.join(lab.tmpdir(), "folder")
        os.mkdir(folder)
        self.check_start(self.make(store=folder), "Is a directory")
        garbage, newer = self.make(), self.make()
        lab.replace_file(garbage.store, "my diary\n" * 100)
        self.assertEqual(newer.run_once().returncode, 0)
        connection = sqlite3.connect(newer.store, isolation_level=None)
        connection.executescript("PRAGMA user_version = 1000")
        connection.close()
        for daemon, parts in ((garbage, ["not a database"]), (newer, ["newer fabricd", "1000"])):
            with open(daemon.store, "rb") as file:
                before = file.read()
            self.check_start(daemon, daemon.store, *parts)
            with open(daemon.store, "rb") as file:
                self.assertEqual(file.read(), before)


class Fabric(Case):
    def test_captures(self):
        """Each costs its sweep, and the same one is nothing to begin with."""
        lines = self.whole.splitlines()
        cut = "\n".join(lines[:len(lines) // 2])
        first_switch = next(i for i, line in enumerate(lines, start=1) if line.startswith("Switch"))
        cases = {"": "1:1: the file is empty", cut[:-20]: f"{len(lines) // 2}:20: the file ends inside this line",
                 self.whole.replace('Switch\t', 'Switch\tx', 1): f"{first_switch}:8: expected a number"}
        running = self.make().start()
        for failures, (text, place) in enumerate(cases.items(), start=1):
            with self.subTest(place):
                lab.replace_file(self.path, text)
                answer = running.control("refresh")
                self.assertRegex(answer["message"], r"^sweep: \S+:\d+:\d+: ")
                self.assertIn(f"{self.path}:{place}", answer["message"])
                self.assertEqual((running.status()["generation"], len(running.errors())), (1, failures))
                fresh = self.make()
                self.check_line(fresh.run_once("--once"), 1, f"{self.path}:{place}")
                self.assertEqual(sorted(os.listdir(fresh.rundir)), ["lock", "stale"])
        os.unlink(self.path)
        self.check_line(self.make().run_once("--once"), 1, f"{self.path}: cannot be opened: No such file or directory")
        lab.replace_file(self.path, self.whole)
        self.assertFalse(running.refresh()["changed"])

    def test_odd_names(self):
        """Names come from the fabric: nothing in them gets at a terminal, a log, a JSON reader or a program over PMIx."""
        odd = 'n\u00f6de\u202e \x1b[31m \'; DROP TABLE node; -- \\ %s%n'
        lab.replace_file(self.path, self.whole.replace('# "node0001"', f'# "{odd}"').replace('# "leaf2"', '# "le\taf\x07\ufeff 2"'))
        daemon = self.make().start()
        names = {device["host"] for device in daemon.ctl_json("devices")} | {s["name"] for s in daemon.ctl_json("switches")}
        self.assertEqual(len(names), 16 + 6)
        told = daemon.tool("register").stdout
        self.assertNotRegex(told, "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
        lab.replace_file(self.path, self.whole)
        daemon.refresh()
        for command in ("devices", "switches", "links", "history", "groups", "diff", "status"):
            done = daemon.ctl(command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotRegex(done.stdout + done.stderr + daemon.log(), "[\x00-\x08\x0b-\x1f\x7f]")
            daemon.ctl_json(command)


@unittest.skipIf(os.geteuid() != 0, "only root can make a small file system")
class FullDisk(Case):
    """A small tmpfs that only the daemon has; it is seen through /proc, and ends with the daemon."""

    def start_on(self, what, size):
        """Start a daemon whose run directory or store is on it; the folder, and the daemon."""
        small = lab.tmpdir()
        name = {"rundir": "run", "store": "fabricd.db"}[what]
        daemon = self.make(**{what: os.path.join(small, name)})
        command = daemon.command
        daemon.command = lambda *args: ["unshare", "--mount", "sh", "-c",
                                        f'mount -t tmpfs -o size={size} none "$0" && exec "$@"', small, *command(*args)]
        daemon.start(wait=False)
        small = f"/proc/{daemon.process.pid}/root{small}"
        if what == "rundir":
            daemon.rundir = os.path.join(small, name)
        daemon.wait_ready()
        return small, daemon

    def fill(self, path):
        with open(path, "wb", buffering=0) as file:
            for size in (4096, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError as error:
                    self.assertEqual(error.errno, errno.ENOSPC)

    def test_it_costs_one_publication(self):
        for what, size, reason in (("rundir", "256k", "run/.*: No space left on device"), ("store", "512k", "fabricd.db: .*full")):
            lab.replace_file(self.path, self.whole)
            small, daemon = self.start_on(what, size)
            filler = os.path.join(small, "filler")
            self.fill(filler)
            lab.replace_file(self.path, fabric_text.slower(self.whole, "leaf1"))
            answer = daemon.control("refresh")
            self.assertFalse(answer["ok"])
            self.assertRegex(answer["message"], reason)
            self.assertEqual(daemon.errors(), [answer["message"]])
            self.assertTrue(daemon.status()["stale"])
            self.assertEqual(daemon.ctl_json("planes")[0]["generation"], 1)
            self.assertIn("pmixfab.generation uint64 1\n", daemon.tool("register").stdout)
            self.assertEqual(sorted(n for n in os.listdir(daemon.rundir) if "snap" in n), ["ib0.snap"])  # nothing half-done
            os.unlink(filler)
            self.assertEqual(daemon.refresh()["generation"], 2)
            self.assertEqual(daemon.ctl_json("planes")[0]["generation"], 2)


if __name__ == "__main__":
    unittest.main()
