"""The store's file and its log, as somebody leaves them behind fabricd's back: nothing is lost unsaid."""
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


def size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def fold(store):
    """Fold the log, as another process may."""
    with contextlib.closing(sqlite3.connect(store)) as other:
        if other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0] != 0 or size(store + "-wal") != 0:
            raise lab.LabError(f"{store}: its log cannot be folded")


class Case(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.whole = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.path, self.whole)
        self.slow = False

    def daemon(self, start=True, **options):
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}", "log": "debug"}}, start=start, **options)
        self.addCleanup(daemon.stop)
        return daemon

    def edit(self):
        self.slow = not self.slow
        lab.replace_file(self.path, fabric_text.slower(self.whole, "leaf1") if self.slow else self.whole)

    def change(self, daemon):
        self.edit()
        answer = daemon.refresh()
        self.assertTrue(answer["changed"])
        return answer["generation"]


class Log(Case):
    def test_it_is_folded_when_it_is_quiet(self):
        daemon = self.daemon()
        generation = self.change(daemon)
        self.assertGreater(size(daemon.store + "-wal"), 0)
        daemon.until_file(daemon.store + "-wal", lambda: size(daemon.store + "-wal") == 0, "the log to be folded")
        daemon.kill9()
        for behind in BESIDE[1:]:
            os.unlink(daemon.store + behind)
        shutil.rmtree(daemon.rundir)
        daemon.start()
        self.assertEqual(daemon.status()["generation"], generation)

    def test_one_that_is_removed_while_it_is_written(self):
        daemon = self.daemon()
        generation = self.change(daemon)
        os.unlink(daemon.store + "-wal")
        self.edit()
        answer = daemon.control("refresh")
        self.assertFalse(answer["ok"])
        self.assertIn(f"its log ({daemon.store}-wal) was removed while fabricd has it open: restart fabricd", answer["message"])
        status = daemon.status()
        self.assertEqual((status["stale"], status["stale_reason"], status["generation"]), (True, answer["message"], generation))
        self.assertIn("was removed", "".join(f["what"] for f in daemon.control("check")["findings"] if f["kind"] == "stale"))
        self.assertEqual(daemon.stop(), 0)
        daemon.start()
        self.assertEqual(daemon.status()["generation"], generation + 1)
        self.assertEqual({c["generation"] for c in daemon.control("history", limit=0)["changes"]}, set(range(1, generation + 2)))


class Refused(Case):
    """A store that is not taken stays as it is, byte for byte, with what is beside it."""

    def test_a_newer_one(self):
        daemon = self.daemon()
        self.change(daemon)
        daemon.kill9()
        with contextlib.closing(sqlite3.connect(daemon.store, isolation_level=None)) as store:
            store.execute("PRAGMA wal_autocheckpoint = 0")
            store.execute("PRAGMA user_version = 1000")
            for behind in BESIDE:
                shutil.copy(daemon.store + behind, daemon.store + ".crashed" + behind)
        for behind in BESIDE:
            os.rename(daemon.store + ".crashed" + behind, daemon.store + behind)
        before = content(daemon.store)
        done = daemon.run_once("--foreground")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("written by a newer fabricd (schema 1000", done.stderr)
        self.assertTrue(content(daemon.store) == before, "it was changed")


class Fed(Case):
    def setUp(self):
        super().setUp()
        self.feed = lab.Feed()

    def begin(self, generations=3):
        """A daemon that sweeps when it is fed, and has published so many generations; the folded log is empty."""
        daemon = lab.Fabricd(config={"fabricd": {"probe": self.feed.probe}}, start=False)
        self.addCleanup(daemon.stop)
        daemon.start(wait=False)
        for generation in range(1, generations + 1):
            self.publish(daemon, generation, first=generation == 1)
        return daemon

    def publish(self, daemon, generation, first=False):
        self.edit()
        if not first:
            daemon.look()
        with open(self.path, encoding="utf-8") as file:
            self.feed.give(file.read())
        daemon.wait_ready(generation)

    def check_told(self, daemon, first, last, *parts):
        """In the log, the status, and a finding of check; and what is served is marked."""
        daemon.wait_up()
        (error,) = [line for line in daemon.errors() if "are not in it" in line]
        status = daemon.status()
        (gone,) = status["gone"]
        self.assertEqual((gone["first"], gone["last"]), (first, last))
        self.assertTrue(status["stale"])
        self.assertIn(f"generations {first} to {last} are not in the store", status["stale_reason"])
        done = daemon.ctl("check")
        self.assertEqual(done.returncode, 1, done.stdout)
        (finding,) = [f for f in daemon.control("check")["findings"] if f["kind"] == "history-gone"]
        self.assertEqual((finding["severity"], finding["where"]), ("error", f"generations {first} to {last}"))
        for part in parts:
            for text in (error, gone["why"], finding["what"]):
                self.assertIn(part, text)
        self.assertIn(f"NOT IN STORE  generations {first} to {last}: {gone['why']}\n", daemon.ctl("status").stdout)

    def check_goes_on(self, daemon, above, edit=True):
        """A sweep is published above; it is not stale any more, and the next start has nothing to tell anew."""
        if edit:
            self.edit()
        with open(self.path, encoding="utf-8") as file:
            self.feed.give(file.read())
        status = daemon.wait_ready(above + 1)
        self.assertFalse(status["stale"])
        self.assertEqual(daemon.stop(), 0)
        said = len(daemon.errors())
        daemon.start(wait=False)
        daemon.wait_up()
        again = daemon.status()
        self.assertEqual((again["generation"], again["stale"], again["gone"]), (status["generation"], False, status["gone"]))
        self.assertEqual(daemon.errors()[said:], [])

    def crash(self, daemon, generations):
        """What is published last is in the log only; the run directory is gone, as by a reboot."""
        fold(daemon.store)
        now = daemon.status()["generation"]
        for generation in range(now + 1, now + generations + 1):
            self.publish(daemon, generation)
        daemon.kill9()
        shutil.rmtree(daemon.rundir)
        self.assertGreater(size(daemon.store + "-wal"), 0)


class Older(Fed):
    """A store that does not have what was published: what is there is served, marked stale, and it is told."""

    def test_a_log_that_is_lost(self):
        daemon = self.begin()
        self.crash(daemon, 2)
        os.unlink(daemon.store + "-wal")
        daemon.start(wait=False)
        self.check_told(daemon, 4, 5, "the store is older", "its log (-wal) was lost or cut")
        self.assertEqual(daemon.ctl_json("planes")[0]["generation"], 6)  # what it has, above all that was seen
        self.check_goes_on(daemon, 6)

    def test_older_than_its_backup(self):
        daemon = self.begin(2)
        daemon.stop()
        old = shutil.copy(daemon.store, daemon.store + ".old")
        daemon.start(wait=False)
        daemon.wait_up()
        self.feed.give(self.whole if not self.slow else fabric_text.slower(self.whole, "leaf1"))
        daemon.wait_ready(2)
        self.publish(daemon, 3)
        backup = os.path.join(lab.tmpdir(), "backup.db")
        self.assertEqual(daemon.ctl("backup", backup).returncode, 0)
        daemon.stop()
        shutil.rmtree(daemon.rundir)
        os.rename(old, daemon.store)
        daemon.start(wait=False)
        self.check_told(daemon, 3, 3, f"its backup {backup} has generation 3", "another file was put in its place")
        self.feed.give(self.whole)
        daemon.wait_ready(4)
        self.assertEqual(daemon.ctl("restore", backup).returncode, 0)  # as the finding says
        daemon.wait_up()
        self.assertEqual(daemon.status()["gone"], [])

    def test_older_than_the_run_directory(self):
        daemon = self.begin(2)
        daemon.stop()
        old = shutil.copy(daemon.store, daemon.store + ".old")
        daemon.start(wait=False)
        daemon.wait_up()
        with open(self.path, encoding="utf-8") as file:
            self.feed.give(file.read())
        daemon.wait_ready(2)
        self.publish(daemon, 3)
        daemon.stop()
        os.rename(old, daemon.store)
        os.unlink(daemon.store + ".lock")
        daemon.start(wait=False)
        self.check_told(daemon, 3, 3, "the store is older; the run directory has a snapshot of generation 3")
        self.check_goes_on(daemon, 4, edit=False)

    def test_it_can_be_acknowledged(self):
        daemon = self.begin(2)
        self.crash(daemon, 1)
        os.unlink(daemon.store + "-wal")
        daemon.start(wait=False)
        self.check_told(daemon, 3, 3)
        self.edit()
        with open(self.path, encoding="utf-8") as file:
            self.feed.give(file.read())
        daemon.wait_ready(4)
        self.assertEqual(daemon.ctl("check").returncode, 1)
        self.assertEqual(daemon.ctl("ack", "history-gone").returncode, 0)
        done = daemon.ctl("check")
        self.assertEqual(done.returncode, 0, done.stdout)


class Empty(Fed):
    """A store that is gone altogether: the snapshots of the run directory are served, and their numbers passed."""

    def remove(self, daemon, behind=("", ".lock")):
        daemon.kill9()
        for name in (*behind, "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(daemon.store + name)

    def check_served(self, daemon, generation):
        (plane,) = daemon.ctl_json("planes")
        self.assertEqual((plane["name"], plane["index"], plane["generation"]), ("ib0", 1, generation))
        self.assertIn(f"pmixfab.generation uint64 {generation}\n", daemon.tool("register").stdout)
        self.assertEqual(daemon.status()["generation"], generation)

    def test_the_newest_snapshots_are_served(self):
        daemon = self.begin(3)
        with open(os.path.join(daemon.rundir, "ib0.snap"), "rb") as file:
            snapshot = file.read()
        self.remove(daemon)
        for _ in range(2):  # and once more where no sweep came in between
            daemon.start(wait=False)
            self.check_told(daemon, 1, 3, "the store is empty; the run directory has a snapshot of generation 3")
            self.check_served(daemon, 3)
            with open(os.path.join(daemon.rundir, "ib0.snap"), "rb") as file:
                self.assertEqual(file.read(), snapshot)
            daemon.kill9()
            os.truncate(daemon.log_path, 0)
            self.remove(daemon)
        daemon.start(wait=False)
        daemon.wait_up()
        with open(self.path, encoding="utf-8") as file:
            self.feed.give(file.read())  # the same fabric: the store has it from now on
        self.assertFalse(daemon.wait_ready(4)["stale"])
        self.check_served(daemon, 4)
        daemon.kill9()
        shutil.rmtree(daemon.rundir)
        daemon.start(wait=False)
        daemon.wait_up()
        self.check_served(daemon, 4)
        self.publish(daemon, 5, first=True)

    def test_a_start_without_a_sweep_does_not_lose_them(self):
        """The store is there then, and still has nothing."""
        daemon = self.begin(2)
        self.remove(daemon)
        for told in (1, 1):
            daemon.start(wait=False)
            daemon.wait_up()
            self.check_served(daemon, 2)
            self.assertTrue(daemon.status()["stale"])
            self.assertEqual(len(daemon.status()["gone"]), told)
            daemon.kill9()
        daemon.start(wait=False)
        daemon.wait_up()
        self.publish(daemon, 3, first=True)

    def test_it_is_known_without_a_run_directory(self):
        daemon = self.begin(2)
        self.remove(daemon, behind=("",))
        shutil.rmtree(daemon.rundir)
        daemon.start(wait=False)
        self.check_told(daemon, 1, 2, "the store is empty: it had all of them")
        self.publish(daemon, 3, first=True)


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
class NoRoom(Fed):
    """A disk that is full or read-only at a start: what is there is served, marked stale, until there is room."""

    def begin(self, generations=2):
        daemon = lab.Fabricd(config={"fabricd": {"probe": self.feed.probe}}, start=False)
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
        for generation in range(1, generations + 1):
            self.publish(daemon, generation, first=generation == 1)
        return daemon

    def check_served(self, daemon, word, generation=2):
        daemon.wait_up()
        status = daemon.status()
        self.assertEqual((status["generation"], status["stale"]), (generation, True))
        self.assertIn(f"store {daemon.store}: its disk is {word}: what is there is served", status["stale_reason"])
        self.assertEqual(daemon.ctl_json("planes")[0]["generation"], generation)
        self.assertIn(f"pmixfab.generation uint64 {generation}\n", daemon.tool("register").stdout)
        self.assertEqual([f["what"] for f in daemon.control("check")["findings"] if f["kind"] == "stale"],
                         [status["stale_reason"]])
        with daemon.ask("refresh") as channel:  # nothing is published, and it stays so
            self.feed.give(fabric_text.without_cables(self.whole, "leaf2", "spine1"))
            answer = daemon.answer(channel)
        self.assertFalse(answer["ok"])
        self.assertIn(f"its disk is {word}", answer["message"])
        status = daemon.status()
        self.assertEqual((status["generation"], status["stale"]), (generation, True))

    def check_goes_on(self, daemon, generation=3):
        pid = daemon.status()["pid"]
        self.begun_anew(daemon)
        status = daemon.status()
        self.assertEqual((status["pid"], status["stale"]), (pid, False))
        self.publish(daemon, generation, first=True)
        self.assertFalse(daemon.status()["stale"])
        self.assertEqual({c["generation"] for c in daemon.control("history", limit=0)["changes"]}, set(range(1, generation + 1)))

    @staticmethod
    def begun_anew(daemon):
        """Wait until the daemon has noticed that there is room again, and is ready for the second time."""
        daemon.logged("there is room again: beginning anew")
        daemon.notices.wait("READY=1", 2)

    def held(self, daemon):
        """The sweep of the start, which waits to be fed."""
        daemon.wait_up()
        self.feed.give(self.whole)
        daemon.until("sweep", after=0)

    def test_a_full_disk(self):
        for end in ("stop", "kill9"):
            daemon = self.begin()
            getattr(daemon, end)()
            self.disk.fill()
            shutil.rmtree(daemon.rundir)
            daemon.start(wait=False)
            self.held(daemon)
            self.check_served(daemon, "full")
            self.assertEqual({c["generation"] for c in daemon.control("history", limit=0)["changes"]}, {1, 2})
            self.disk.empty()
            self.check_goes_on(daemon)

    def test_a_read_only_disk(self):
        for end in ("stop", "kill9"):
            daemon = self.begin()
            getattr(daemon, end)()
            before = content(self.disk.path("fabricd.db"))
            self.disk.remount("ro")
            shutil.rmtree(daemon.rundir)
            daemon.start(wait=False)
            self.held(daemon)
            self.check_served(daemon, "read-only")
            self.assertEqual(content(self.disk.path("fabricd.db")), before)
            self.disk.remount("rw")
            self.check_goes_on(daemon)

    def test_without_a_store_the_run_directory_is_served(self):
        daemon = self.begin()
        daemon.stop()
        for name in ("fabricd.db", "fabricd.db.lock"):
            os.unlink(self.disk.path(name))
        self.disk.remount("ro")
        daemon.start(wait=False)
        self.held(daemon)
        self.check_served(daemon, "read-only")
        self.disk.remount("rw")
        self.begun_anew(daemon)
        self.assertTrue(daemon.status()["gone"])
        self.assertTrue(daemon.status()["stale"])  # now the store is empty
        self.assertEqual(daemon.status()["generation"], 2)
        self.publish(daemon, 3, first=True)
        self.assertFalse(daemon.status()["stale"])

    def test_a_store_of_an_older_schema(self):
        """It is not brought up to date where there is no room; what was served from it is."""
        daemon = self.begin()
        daemon.stop()
        os.unlink(self.disk.path("fabricd.db"))
        shutil.copy(os.path.join(lab.ROOT, "test", "data", "store_v11.db"), self.disk.path("fabricd.db"))
        self.disk.fill()
        before = content(self.disk.path("fabricd.db"))
        daemon.start(wait=False)
        self.held(daemon)
        self.check_served(daemon, "full")
        self.assertEqual(content(self.disk.path("fabricd.db")), before)
        self.disk.empty()
        daemon.logged("its schema goes from 11 to ")
        daemon.notices.wait("READY=1", 2)

    def test_once_ends(self):
        daemon = self.begin()
        daemon.stop()
        self.disk.remount("ro")
        done = daemon.run_once("--once")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)


class History(Case):
    """fabricctl check --store: the history, and the first generation of it that is not as it was."""

    def check_good(self, daemon, generations, more=""):
        done = daemon.ctl("check", "--store")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        several = "s" if generations != 1 else ""
        self.assertEqual(done.stdout, f"the history is as it was published: {generations} generation{several} compared{more}\n")

    def test_what_was_changed_is_found(self):
        """What is written behind fabricd's back, in a copy that is put in place while it is away."""
        daemon = self.daemon()
        for _ in range(2):
            self.change(daemon)
        self.check_good(daemon, 3)
        done = daemon.ctl("--format", "json", "check", "--store")
        self.assertEqual(json.loads(done.stdout), {"compared": 3, "without": 0})
        daemon.stop()
        with contextlib.closing(sqlite3.connect(daemon.store, isolation_level=None)) as store:
            store.execute("UPDATE change SET after = 'nothing' WHERE generation = 2")
        daemon.start()
        done = daemon.ctl("check", "--store")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"fabricctl: store {daemon.store}: its history was changed: generation 2 is not as "
                         "it was published; restore it from a backup\n")

    def test_a_history_of_before(self):
        daemon = self.daemon(start=False)
        shutil.copy(os.path.join(lab.ROOT, "test", "data", "store_v11.db"), daemon.store)
        with contextlib.closing(sqlite3.connect(daemon.store)) as store:
            (before,), = store.execute("SELECT max(generation) FROM generation").fetchall()
        daemon.start()
        generations = daemon.wait_ready(before + 1)["generation"]
        self.check_good(daemon, generations - before, more=f"; {before} before them, of an older fabricd, cannot be")

    @unittest.skipUnless(os.geteuid() == 0, "root only")
    def test_it_is_for_administrators(self):
        done = self.daemon().ctl("check", "--store", user="nobody")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("may not do that", done.stderr)


if __name__ == "__main__":
    unittest.main()
