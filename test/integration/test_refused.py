"""What fabricd refuses: one line that says what, where and what to do; nothing stored, nothing lost."""
import errno
import os
import sqlite3
import unittest

import fabric_text
import lab
import versions

SPEC = "fattree2:4,2,4"


class Case(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.whole = lab.fabric(SPEC, "capture")
        lab.replace_file(self.path, self.whole)

    def make(self, **options):
        """A daemon on the recorded fabric, not started."""
        settings = {"probe": f"file:{self.path}", **options.pop("settings", {})}
        daemon = lab.Fabricd(config={"fabricd": settings, **options.pop("config", {})}, start=False, **options)
        self.addCleanup(lambda: daemon.process and daemon.stop())
        return daemon

    def check_line(self, done, status, *parts):
        """It ended with this status and one line, which has these parts."""
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(versions.unwarned(done.stderr).count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def check_start(self, daemon, *parts, status=1):
        """It does not start, in the foreground or in the background."""
        self.check_line(daemon.run_once("--foreground"), status, *parts)
        self.check_line(daemon.run_once("--interval", "0"), status, *parts)


class CommandLine(Case):
    def fabricd(self, *args):
        return lab.run([lab.program("fabricd"), *args])

    def test_help_and_version(self):
        done = self.fabricd("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("--config", "--rundir", "--store", "--probe", "--interval", "--foreground", "--check-config", "--once",
                     "--role", "--scheduler", "--version", "ibnetdisc", "file"):
            self.assertIn(text, done.stdout)
        done = self.fabricd("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^fabricd \d+\.\d+\.\d+\n$")

    def test_usage(self):
        for args, text in ((["--nonsense"], "--nonsense"), (["word"], "word"), (["--role", "chief"], "role is \"chief\""),
                           (["--interval"], "--interval")):
            done = self.fabricd(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(text, done.stderr)
        for args, text in ((["--interval", "-1"], '"-1"'), (["--interval", "99999999999999999999"], "86400"),
                           (["--probe", "nosuch"], "nosuch"), (["--probe", "file:"], "path"),
                           (["--probe", f"file:{self.path},prefix=x"], "prefix"),
                           (["--config", "/nowhere/fabricd.conf"], "/nowhere/fabricd.conf: cannot be read")):
            self.check_line(self.fabricd("--check-config", "--store", self.path + ".db", *args), 2, text)

    def test_configuration(self):
        daemon = self.make()
        done = daemon.run_once("--check-config")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "the configuration is good\n", ""))
        self.assertFalse(os.path.exists(daemon.rundir) or os.path.exists(daemon.store))  # nothing was touched
        for text, place, why in (("[fabricd]\n interval = soon\n", "2:13", '"soon"'), ("[fabricd]\ndeadline=0\n", "2:10", "1 to"),
                                 ("[fabricd]\nlog = loud\n", "2:7", "debug"), ("\n[fabricd]\ncolour = 1\n", "3:1", "colour"),
                                 ("[colours]\nred = 1\n", "1:1", "[colours]"), ("[fabricd]\nwords\n", "2:1", "name = value"),
                                 ("[fabricd\n", "1:1", "[section]"), ("[fabricd]\nprobe = " + "x" * 5000, "2:1", "too long"),
                                 ("[security]\nremote = maybe\n", "2:10", "yes or no"), ("[fabricd]\nrundir =\n", "2:9", "empty")):
            with self.subTest(text[:40]):
                lab.replace_file(daemon.conf, text)
                self.check_line(daemon.run_once("--check-config", "--store", daemon.store), 2, f"{daemon.conf}:{place}: ", why)
                self.check_line(daemon.run_once("--once"), 2, f"{daemon.conf}:{place}: ")
        for text, why in (("[names]\npattern = [\n", "pattern"), ("[security]\nadmins = root, nosuchuser\n", "nosuchuser"),
                          ("[fabricd]\nprobe = nosuch:1\n", "nosuch")):
            lab.replace_file(daemon.conf, text)
            self.check_line(daemon.run_once("--check-config", "--store", daemon.store), 2, why)


class RunDirectory(Case):
    def test_it_cannot_be_made(self):
        for rundir in (self.path, self.path + "/run", "/proc/fabricd", "/nowhere/fabricd"):
            daemon = self.make(settings={"rundir": rundir})
            self.check_start(daemon, rundir, "cannot be")
            self.assertFalse(os.path.exists(daemon.store))

    @unittest.skipIf(os.geteuid() != 0, "root may write everywhere, and only root can try as another user")
    def test_it_is_not_writable(self):
        daemon = self.make()
        os.mkdir(daemon.rundir, 0o755)
        os.chmod(daemon.dir, 0o1777)
        binary, daemon.env = lab.readable_copy(daemon.binary, daemon.env)
        daemon.binary = binary
        done = daemon.run_once("--foreground", user=65534, group=65534, extra_groups=[])
        self.check_line(done, 1, f"{daemon.rundir}/lock: cannot be written: Permission denied")

    def test_its_path_is_too_long_for_a_socket(self):
        folder = os.path.join(lab.tmpdir(), "x" * 100)
        os.mkdir(folder)
        self.check_start(self.make(settings={"rundir": folder}), folder, "too long for a socket")

    def test_another_daemon_has_it(self):
        first = self.make().start()
        second = self.make(settings={"rundir": first.rundir})
        self.check_start(second, first.rundir, str(first.process.pid))
        self.check_line(second.run_once("--once"), 1, str(first.process.pid))
        self.assertEqual(first.status()["pid"], first.process.pid)  # and is not disturbed
        self.assertTrue(os.path.exists(first.uri_path()))
        self.assertIn("pmixfab.generation uint64 1", first.tool("register").stdout)


class Store(Case):
    def published(self):
        """A stopped daemon that has published one generation."""
        daemon = self.make().start()
        daemon.stop()
        return daemon

    def check_unchanged(self, daemon, *parts):
        with open(daemon.store, "rb") as file:
            before = file.read()
        self.check_start(daemon, daemon.store, *parts)
        with open(daemon.store, "rb") as file:
            self.assertEqual(file.read(), before)

    def sql(self, daemon, text):
        connection = sqlite3.connect(daemon.store, isolation_level=None)
        connection.executescript(text)
        connection.close()

    def test_another_daemon_has_it(self):
        first = self.make().start()
        second = self.make(settings={"store": first.store})
        self.check_start(second, first.store, f"pid {first.process.pid}")
        self.assertEqual(first.refresh()["generation"], 1)

    def test_no_database(self):
        daemon = self.make()
        lab.replace_file(daemon.store, "my diary\n" * 100)
        self.check_unchanged(daemon, "not a database")

    def test_corrupt(self):
        daemon = self.published()
        size = os.path.getsize(daemon.store)
        with open(daemon.store, "r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * (size - 4096))
        self.check_unchanged(daemon, "backup")

    def test_newer(self):
        daemon = self.published()
        self.sql(daemon, "PRAGMA user_version = 1000")
        self.check_unchanged(daemon, "newer fabricd", "1000")

    def test_another_programs(self):
        daemon = self.make()
        self.sql(daemon, "CREATE TABLE songs (name); PRAGMA application_id = 7")
        self.check_unchanged(daemon, "another program")

    def test_no_such_folder(self):
        self.check_start(self.make(settings={"store": "/nowhere/fabricd.db"}), "/nowhere/fabricd.db")
        folder = os.path.join(lab.tmpdir(), "folder")
        os.mkdir(folder)
        self.check_start(self.make(settings={"store": folder}), "Is a directory")

    def test_locked_by_another_program(self):
        daemon = self.published()
        thief = sqlite3.connect(daemon.store, isolation_level=None)
        self.addCleanup(thief.close)
        thief.execute("BEGIN EXCLUSIVE")
        self.check_start(daemon, daemon.store, "locked")
        thief.execute("ROLLBACK")
        daemon.start()
        thief.execute("BEGIN IMMEDIATE")  # while it runs: costs that publication
        lab.replace_file(self.path, fabric_text.slower(self.whole, "leaf1"))
        self.assertIn("locked", daemon.control("refresh")["message"])
        status = daemon.status()
        self.assertEqual((status["generation"], status["stale"], len(daemon.errors())), (1, True, 1))
        thief.execute("ROLLBACK")
        self.assertEqual(daemon.refresh()["generation"], 2)


class Fabric(Case):
    def test_captures(self):
        """Each costs its sweep, and the same one is nothing to begin with."""
        lines = self.whole.splitlines()
        cut = "\n".join(lines[:len(lines) // 2])
        first_switch = next(i for i, line in enumerate(lines, start=1) if line.startswith("Switch"))
        cases = {
            "": "1:1: the file is empty",
            "garbage\n" * 10: "1:1: ",
            "\0\1\2\3" * 1000: "1:1: ",
            cut[:-20]: f"{len(lines) // 2}:20: the file ends inside this line",
            self.whole.replace('Switch\t', 'Switch\tx', 1): f"{first_switch}:8: expected a number",
            self.whole + "\n" + "\n".join(lines[5:12]) + "\n": f"{len(lines) + 6}:10: a second record",
        }
        running = self.make().start()
        for failures, (text, place) in enumerate(cases.items(), start=1):
            with self.subTest(place):
                lab.replace_file(self.path, text)
                answer = running.control("refresh")
                self.assertFalse(answer["ok"])
                self.assertIn(f"{self.path}:{place}", answer["message"])
                self.assertRegex(answer["message"], r"^sweep: \S+:\d+:\d+: ")
                self.assertEqual((running.status()["generation"], len(running.errors())), (1, failures))
                fresh = self.make()
                self.check_line(fresh.run_once("--once"), 1, f"{self.path}:{place}")
                self.assertEqual(sorted(os.listdir(fresh.rundir)), ["lock", "stale"])
        lab.replace_file(self.path, self.whole)
        self.assertFalse(running.refresh()["changed"])

    def test_odd_names(self):
        """Names come from the fabric: nothing in them gets at a terminal, a log or a JSON reader."""
        odd = 'n\u00f6de \x1b[31m \'; DROP TABLE node; -- \\ %s%n'
        lab.replace_file(self.path, self.whole.replace('# "node0001"', f'# "{odd}"').replace('# "leaf2"', '# "le\taf\x07 2"'))
        daemon = self.make().start()
        names = {device["host"] for device in daemon.ctl_json("devices")} | {s["name"] for s in daemon.ctl_json("switches")}
        self.assertEqual(len(names), 16 + 6)
        lab.replace_file(self.path, self.whole)
        daemon.refresh()
        for command in ("devices", "switches", "links", "history", "groups", "diff", "status"):
            done = daemon.ctl(command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotRegex(done.stdout + done.stderr + daemon.log(), "[\x00-\x08\x0b-\x1f\x7f]")
            daemon.ctl_json(command)

    def test_no_file(self):
        os.unlink(self.path)
        self.check_line(self.make().run_once("--once"), 1, f"{self.path}: cannot be opened: No such file or directory")

    def test_no_subnet_manager(self):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric(SPEC))
        self.addCleanup(sim.quit)
        daemon = lab.Fabricd(sim, start=False)
        daemon.start(wait=False)
        self.addCleanup(daemon.stop)
        daemon.wait_up()
        daemon.until("sweep", after=0)
        status = daemon.status()
        self.assertIn("OpenSM", status["stale_reason"])
        self.assertEqual((status["generation"], status["uri"]), (0, daemon.uri()))
        sim.sweep()
        self.assertEqual(daemon.refresh()["generation"], 1)
        port = sim.cable("leaf2", "spine1")  # a part of the fabric that no manager has seen
        sim.unlink("leaf2", port)
        sim.relink("leaf2", port)
        daemon.refresh()
        self.assertEqual(daemon.status()["inactive"], 2)
        self.assertIn("warning: sweep: 2 cabled ports are not active: does a subnet manager run?", daemon.log())
        sim.sweep()
        daemon.refresh()
        self.assertEqual(daemon.status()["inactive"], 0)


@unittest.skipIf(os.geteuid() != 0, "only root can make a small file system")
class FullDisk(Case):
    """A small tmpfs that only the daemon has; it is seen through /proc, and ends with the daemon."""

    def start_on(self, what, size):
        """Start a daemon whose run directory or store is on it."""
        small = lab.tmpdir()
        name = {"rundir": "run", "store": "fabricd.db"}[what]
        daemon = self.make(settings={what: os.path.join(small, name)})
        command = daemon.command
        daemon.command = lambda *args: ["unshare", "--mount", "sh", "-c",
                                        f'mount -t tmpfs -o size={size} none "$0" && exec "$@"', small, *command(*args)]
        daemon.start(wait=False)
        self.small = f"/proc/{daemon.process.pid}/root{small}"
        if what == "rundir":
            daemon.rundir = os.path.join(self.small, name)
        daemon.wait_ready()
        return daemon

    def fill(self):
        """Fill it up; the path of what can be removed again."""
        path = os.path.join(self.small, "filler")
        with open(path, "wb", buffering=0) as file:
            for size in (4096, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError as error:
                    self.assertEqual(error.errno, errno.ENOSPC)
        return path

    def check_costs_one_publication(self, daemon):
        filler = self.fill()
        lab.replace_file(self.path, fabric_text.slower(self.whole, "leaf1"))
        answer = daemon.control("refresh")
        self.assertFalse(answer["ok"])
        self.assertEqual(daemon.errors(), [answer["message"]])
        self.assertTrue(daemon.status()["stale"])
        self.assertEqual(daemon.ctl_json("planes")[0]["generation"], 1)
        self.assertIn("pmixfab.generation uint64 1\n", daemon.tool("register").stdout)
        self.assertEqual(sorted(n for n in os.listdir(daemon.rundir) if "snap" in n), ["ib0.snap"])  # nothing half-done
        os.unlink(filler)
        self.assertEqual(daemon.refresh()["generation"], 2)
        self.assertEqual(daemon.ctl_json("planes")[0]["generation"], 2)
        return answer["message"]

    def test_run_directory(self):
        message = self.check_costs_one_publication(self.start_on("rundir", "256k"))
        self.assertRegex(message, "run/.*: No space left on device")

    def test_store(self):
        message = self.check_costs_one_publication(self.start_on("store", "512k"))
        self.assertRegex(message, "fabricd.db: .*full")


if __name__ == "__main__":
    unittest.main()
