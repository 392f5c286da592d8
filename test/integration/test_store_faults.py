"""The store's file and its log, as somebody leaves them behind fabricd's back: nothing is lost unsaid. (The log itself, damage and
refusals: test/unit/fabricd/store/file; stores that are older: test/sim/test_store_lost.py.)"""
import contextlib
import json
import os
import shutil
import sqlite3
import unittest

import fabric_text
import lab

BESIDE = ("", "-wal", "-shm")


def content(store):
    """The bytes of the store's files, those that are there."""
    files = {}
    for behind in BESIDE:
        with contextlib.suppress(FileNotFoundError), open(store + behind, "rb") as file:
            files[behind] = file.read()
    return files


class Case(unittest.TestCase):
    """A daemon that sweeps when it is fed."""

    def setUp(self):
        self.whole = lab.fabric("fattree2:4,2,4", "capture")
        self.text, self.slow = self.whole, False
        self.feed = lab.Feed()

    def begin(self, generations=2):
        """It has published so many generations."""
        daemon = lab.Fabricd(config={"fabricd": {"probe": self.feed.probe}}, start=False)
        self.addCleanup(daemon.stop)
        daemon.start(wait=False)
        self.publish(daemon, 1, first=True)
        for generation in range(2, generations + 1):
            self.publish(daemon, generation)
        return daemon

    def edit(self):
        self.slow = not self.slow
        self.text = fabric_text.slower(self.whole, "leaf1") if self.slow else self.whole

    def publish(self, daemon, generation, first=False, edit=True):
        """first: of the sweep that it begins with; edit: with a change."""
        if edit:
            self.edit()
        if not first:
            daemon.look()
        self.feed.give(self.text)
        return daemon.wait_ready(generation)

    def generations(self, daemon):
        return {change["generation"] for change in daemon.control("history", limit=0)["changes"]}

    def check_served(self, daemon, generation):
        (plane,) = daemon.ctl_json("planes")
        self.assertEqual((plane["name"], plane["index"], plane["generation"]), ("ib0", 1, generation))
        self.assertIn(f"pmixfab.generation uint64 {generation}\n", daemon.tool("register").stdout)
        self.assertEqual(daemon.status()["generation"], generation)


class Log(Case):
    def test_one_that_is_removed_while_it_is_written(self):
        daemon = self.begin()
        os.unlink(daemon.store + "-wal")
        self.edit()
        with daemon.ask("refresh") as channel:
            self.feed.give(self.text)
            answer = daemon.answer(channel)
        self.assertFalse(answer["ok"])
        self.assertIn(f"its log ({daemon.store}-wal) was removed while fabricd has it open: restart fabricd", answer["message"])
        status = daemon.status()
        self.assertEqual((status["stale"], status["stale_reason"], status["generation"]), (True, answer["message"], 2))
        self.assertIn("was removed", "".join(f["what"] for f in daemon.control("check")["findings"] if f["kind"] == "stale"))
        self.assertEqual(daemon.stop(), 0)
        daemon.start(wait=False)
        self.publish(daemon, 3, first=True, edit=False)
        self.assertEqual(self.generations(daemon), {1, 2, 3})


class Empty(Case):
    def test_the_newest_snapshots_are_served(self):
        """Without a store. (What is told of it, and stores that are older: test/sim/test_store_lost.py.)"""
        daemon = self.begin(2)
        daemon.kill9()
        for behind in (*BESIDE, ".lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(daemon.store + behind)
        daemon.start(wait=False)
        daemon.wait_up()
        self.check_served(daemon, 2)
        self.assertIn("generations 1 to 2 are not in the store", daemon.status()["stale_reason"])
        self.assertFalse(self.publish(daemon, 3, first=True, edit=False)["stale"])  # the same fabric: the store has it from now on


class Disk:
    """A small file system, mounted in a namespace of its own; it goes with the process that holds it."""

    def __init__(self, folder):
        lab.require("unshare", "nsenter", "mount")
        if lab.run(["unshare", "-m", "true"]).returncode != 0:
            raise unittest.SkipTest("the kernel gives no mount namespace here")
        self.folder = folder
        mount = 'mount -t tmpfs -o size=8m,mode=755 none "$0" && echo up && exec sleep infinity'
        self.holder = lab.Watch(["unshare", "-m", "--propagation", "private", "sh", "-c", mount, folder])
        self.holder.wait("^up$")
        self.prefix = ["nsenter", f"--mount=/proc/{self.holder.process.pid}/ns/mnt"]

    def path(self, name):
        return f"/proc/{self.holder.process.pid}/root{self.folder}/{name}"

    def fill(self):
        with contextlib.suppress(OSError), open(self.path("filler"), "wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass

    def empty(self):
        os.unlink(self.path("filler"))

    def remount(self, how):
        done = lab.run([*self.prefix, "mount", "-o", f"remount,{how}", self.folder])
        if done.returncode != 0:
            raise lab.LabError(done.stderr)


@unittest.skipUnless(os.geteuid() == 0, "root only")
class NoRoom(Case):
    """A disk that is full or read-only at a start: what is there is served, marked stale, until there is room."""

    def setUp(self):
        super().setUp()
        self.daemon = daemon = lab.Fabricd(config={"fabricd": {"probe": self.feed.probe}}, start=False)
        folder = os.path.join(daemon.dir, "state")
        os.mkdir(folder)
        self.disk = Disk(folder)
        self.addCleanup(self.disk.holder.stop)
        daemon.store = os.path.join(folder, "fabricd.db")
        daemon.args = ["--store", daemon.store]
        command = daemon.command
        daemon.command = lambda *args: [*self.disk.prefix, *command(*args)]
        self.addCleanup(daemon.stop)
        daemon.start(wait=False)
        self.publish(daemon, 1, first=True)
        self.publish(daemon, 2)

    def start(self, word):
        """Start it: the newest generation is served, nothing is published, and it stays so."""
        daemon = self.daemon
        daemon.start(wait=False)
        daemon.wait_up()
        self.feed.give(self.whole)
        daemon.until("sweep", after=0)
        self.check_served(daemon, 2)
        status = daemon.status()
        self.assertTrue(status["stale"])
        self.assertIn(f"store {daemon.store}: its disk is {word}: fabricd serves the stored state", status["stale_reason"])
        self.assertEqual([f["what"] for f in daemon.control("check")["findings"] if f["kind"] == "stale"],
                         [status["stale_reason"]])
        with daemon.ask("refresh") as channel:
            self.feed.give(fabric_text.without_cables(self.whole, "leaf2", "spine1"))
            answer = daemon.answer(channel)
        self.assertFalse(answer["ok"])
        self.assertIn(f"its disk is {word}", answer["message"])
        self.assertEqual((daemon.status()["generation"], daemon.status()["stale"]), (2, True))

    def begun_anew(self):
        """Wait until the daemon has noticed that there is room again, and is ready for the second time."""
        self.daemon.logged("there is room again: restarting")
        self.daemon.notices.wait("READY=1", 2)

    def test_stopped_and_killed(self):
        daemon, generation = self.daemon, 2
        daemon.kill9()
        before = content(self.disk.path("fabricd.db"))
        self.disk.remount("ro")
        shutil.rmtree(daemon.rundir)
        self.start("read-only")
        self.assertEqual(content(self.disk.path("fabricd.db")), before)
        pid = daemon.status()["pid"]
        self.disk.remount("rw")
        self.begun_anew()
        self.assertEqual((daemon.status()["pid"], daemon.status()["stale"]), (pid, False))
        self.publish(daemon, generation, first=True, edit=False)
        daemon.stop()
        self.disk.fill()
        self.start("full")
        self.assertEqual(self.generations(daemon), {1, 2})
        self.disk.empty()
        self.begun_anew()
        self.publish(daemon, 3, first=True)
        self.assertEqual(self.generations(daemon), {1, 2, 3})

    def test_without_a_store_the_run_directory_is_served(self):
        daemon = self.daemon
        daemon.stop()
        for name in ("fabricd.db", "fabricd.db.lock"):
            os.unlink(self.disk.path(name))
        self.disk.remount("ro")
        done = daemon.run_once("--once")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.start("read-only")
        self.disk.remount("rw")
        self.begun_anew()
        self.assertTrue(daemon.status()["gone"])
        self.assertEqual((daemon.status()["generation"], daemon.status()["stale"]), (2, True))  # now the store is empty
        self.assertFalse(self.publish(daemon, 3, first=True)["stale"])

    def test_a_store_of_an_older_schema(self):
        """It is not brought up to date where there is no room; what was served from it is."""
        daemon = self.daemon
        daemon.stop()
        os.unlink(self.disk.path("fabricd.db"))
        shutil.copy(os.path.join(lab.ROOT, "test", "data", "store_v11.db"), self.disk.path("fabricd.db"))
        self.disk.fill()
        before = content(self.disk.path("fabricd.db"))
        self.start("full")
        self.assertEqual(content(self.disk.path("fabricd.db")), before)
        self.disk.empty()
        daemon.logged("its schema is migrated from 11 to ")
        daemon.notices.wait("READY=1", 2)


class History(Case):
    """fabricctl check --store: the history, and the first generation of it that is not as it was."""

    def test_what_was_changed_is_found(self):
        """What is written behind fabricd's back, in a copy that is put in place while it is away."""
        daemon = self.begin(2)
        done = daemon.ctl("check", "--store")
        self.assertEqual((done.returncode, done.stderr, done.stdout),
                         (0, "", "the history is as it was published: 2 generations compared\n"))
        self.assertEqual(json.loads(daemon.ctl("--format", "json", "check", "--store").stdout), {"compared": 2, "without": 0})
        if os.geteuid() == 0:
            self.assertIn("may not do that", daemon.ctl("check", "--store", user="nobody").stderr)
        daemon.stop()
        with contextlib.closing(sqlite3.connect(daemon.store, isolation_level=None)) as store:
            store.execute("UPDATE change SET after = 'nothing' WHERE generation = 2")
        daemon.start(wait=False)
        daemon.wait_up()
        done = daemon.ctl("check", "--store")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"fabricctl: store {daemon.store}: its history was changed: generation 2 does not "
                         "match its digest; restore it from a backup\n")
        self.feed.give(self.text)

    def test_a_history_of_before(self):
        daemon = lab.Fabricd(config={"fabricd": {"probe": self.feed.probe}}, start=False)
        self.addCleanup(daemon.stop)
        shutil.copy(os.path.join(lab.ROOT, "test", "data", "store_v11.db"), daemon.store)
        with contextlib.closing(sqlite3.connect(daemon.store)) as store:
            (before,), = store.execute("SELECT max(generation) FROM generation").fetchall()
        daemon.start(wait=False)
        generations = self.publish(daemon, before + 1, first=True)["generation"]
        several = "s" if generations - before != 1 else ""
        self.assertEqual(daemon.ctl("check", "--store").stdout, "the history is as it was published: "
                         f"{generations - before} generation{several} compared; {before} before them, of an older fabricd, have no digest to compare\n")


if __name__ == "__main__":
    unittest.main()
