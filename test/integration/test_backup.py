"""Backups of a store in use, and a store that is restored while readers have seen more than it knows."""
import contextlib
import json
import os
import random
import sqlite3
import stat
import subprocess
import threading
import time
import unittest

import lab


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as store:
        return store.execute(sql).fetchall()


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "capture")
        self.text = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.capture, self.text)
        self.n = 0
        self.random = random.Random(self.id())
        self.backup = os.path.join(self.dir, "backup.db")

    def daemon(self, **options):
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}}, **options)
        self.addCleanup(daemon.stop)
        return daemon

    def change(self, daemon):
        """Publish one more generation."""
        self.n += 1
        lab.replace_file(self.capture, self.text.replace('"node0001', f'"other{self.n:04}'))
        return daemon.refresh()["generation"]

    def grow(self, daemon, mib):
        """Make the store large: rows of history."""
        daemon.stop()
        with contextlib.closing(sqlite3.connect(daemon.store)) as store:
            store.execute("CREATE TABLE filler (id INTEGER PRIMARY KEY, bytes BLOB)")
            store.executemany("INSERT INTO filler (bytes) VALUES (?)", [(os.urandom(1 << 20),)] * mib)
            store.commit()
        daemon.start()

    def restore(self, daemon):
        """As an operator who has stopped it; what is said."""
        done = daemon.run_once("--restore", self.backup)
        self.assertEqual(done.returncode, 0, done.stderr)
        daemon.start()
        return done.stderr


class Backup(Case):
    def test_a_backup_is_a_whole_store_in_one_file(self):
        daemon = self.daemon()
        self.change(daemon)
        done = daemon.ctl("--format", "json", "backup", self.backup)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), {"file": self.backup, "bytes": os.path.getsize(self.backup)})
        self.assertEqual(stat.S_IMODE(os.stat(self.backup).st_mode), 0o600)
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("backup")], ["backup.db"])
        self.assertEqual(rows(self.backup, "PRAGMA journal_mode"), [("delete",)])
        self.assertEqual(rows(self.backup, "PRAGMA integrity_check"), [("ok",)])
        sql = "SELECT * FROM change ORDER BY generation, seq"
        self.assertEqual(rows(self.backup, sql), rows(daemon.store, sql))
        self.assertRegex(daemon.log(), f"backup: {self.backup}: \\d+ bytes")

    def test_what_is_refused(self):
        daemon = self.daemon()
        other = os.path.join(self.dir, "other")
        with open(other, "w", encoding="utf-8") as file:
            file.write("not ours" * 100)
        os.symlink(other, os.path.join(self.dir, "link"))
        for file, force, why in (("backup.db", True, "give the whole path"), (other, False, "is there already"),
                                 (other, True, "is no backup of fabricd's"), (daemon.store, True, "the store itself"),
                                 (f"{self.dir}/link", True, "is no backup"), (self.dir, True, "is no backup"),
                                 ("/nowhere/backup.db", False, "cannot be made")):
            answer = daemon.control("backup", file=file, force=force)
            self.assertFalse(answer["ok"], file)
            self.assertIn(why, answer["message"])
        with open(other, encoding="utf-8") as file:
            self.assertEqual(file.read(), "not ours" * 100)
        self.assertIn("needs a file", daemon.control("backup")["message"])
        self.assertEqual(daemon.ctl("backup", "relative").returncode, 2)
        done = daemon.ctl("backup", self.backup, user="nobody")
        self.assertEqual(done.returncode, 1)
        self.assertIn("may not do that", done.stderr)
        self.assertEqual(daemon.ctl("backup", self.backup).returncode, 0)
        self.assertIn("--force to replace it", daemon.ctl("backup", self.backup).stderr)
        self.change(daemon)
        self.assertEqual(daemon.ctl("backup", "--force", self.backup).returncode, 0)
        self.assertEqual(rows(self.backup, "SELECT max(generation) FROM generation"), [(2,)])

    def test_publishing_goes_on_meanwhile_and_is_not_in_it(self):
        daemon = self.daemon()
        self.grow(daemon, 48)
        answers = []
        thread = threading.Thread(target=lambda: answers.append(daemon.ctl("backup", self.backup)))
        thread.start()
        published = []
        while thread.is_alive():
            published.append(self.change(daemon))
        thread.join()
        self.assertEqual(answers[0].returncode, 0, answers[0].stderr)
        self.assertRegex(answers[0].stderr, r"copied \d+ of \d+ MiB")
        self.assertEqual(published, list(range(2, 2 + len(published))))
        self.assertGreater(len(published), 1)
        self.assertEqual(rows(self.backup, "PRAGMA quick_check"), [("ok",)])
        held = rows(self.backup, "SELECT max(generation) FROM generation")[0][0]
        self.assertLess(held, published[-1])

    def test_whoever_asked_is_gone(self):
        daemon = self.daemon()
        self.grow(daemon, 48)
        daemon.freeze()  # so that the second request is there before the first one's backup can end
        channels = [daemon.ask("backup", file=self.backup + number) for number in ("", "2")]
        daemon.thaw()
        with channels[0], channels[0].makefile(encoding="utf-8") as lines:
            self.assertIn("progress", json.loads(lines.readline()))
        with channels[1], channels[1].makefile(encoding="utf-8") as lines:
            self.assertEqual(json.loads(lines.readline())["error"], -13)  # PMIXFAB_ERR_BUSY
        lab.wait_for(lambda: "given up" in daemon.log() or os.path.exists(self.backup), what="the end of the backup")
        lab.wait_for(lambda: daemon.control("backup", file=self.backup + "3")["ok"], 60, "another backup")
        self.assertFalse(os.path.exists(self.backup + ".part"))

    def test_a_backup_that_was_killed_is_not_in_the_way(self):
        daemon = self.daemon()
        self.grow(daemon, 48)
        channel = daemon.ask("backup", file=self.backup)
        with channel, channel.makefile(encoding="utf-8") as lines:
            self.assertIn("progress", json.loads(lines.readline()))
            daemon.kill9()
        self.assertFalse(os.path.exists(self.backup))
        daemon.start()
        self.assertTrue(daemon.control("backup", file=self.backup)["ok"])
        self.assertEqual(sorted(name for name in os.listdir(self.dir) if name.startswith("backup")), ["backup.db"])

    def test_killed_while_it_replaces_a_backup(self):
        daemon = self.daemon()
        self.assertEqual(daemon.ctl("backup", self.backup).returncode, 0)
        self.change(daemon)
        self.grow(daemon, 48)
        channel = daemon.ask("backup", file=self.backup, force=True)
        with channel, channel.makefile(encoding="utf-8") as lines:
            self.assertIn("progress", json.loads(lines.readline()))
            daemon.kill9()
        self.assertEqual(rows(self.backup, "SELECT max(generation) FROM generation"), [(1,)])  # the one before
        self.assertEqual(rows(self.backup, "PRAGMA integrity_check"), [("ok",)])
        daemon.start()
        self.assertEqual(daemon.status()["generation"], 2)
        self.assertEqual(daemon.ctl("backup", "--force", self.backup).returncode, 0)
        self.assertEqual(rows(self.backup, "SELECT max(generation) FROM generation"), [(2,)])

    def test_a_stop_does_not_wait_for_it(self):
        daemon = self.daemon()
        self.grow(daemon, 48)
        with daemon.ask("backup", file=self.backup):
            self.assertEqual(daemon.stop(timeout=10), 0)
        self.assertFalse(os.path.exists(self.backup + ".part"))


class Restore(Case):
    def aged(self, generations=3):
        """A daemon that went on for some generations after its backup, stopped."""
        daemon = self.daemon()
        self.change(daemon)
        self.assertEqual(daemon.ctl("backup", self.backup).returncode, 0)  # generation 2
        for _ in range(generations):
            self.change(daemon)
        return daemon

    def check_above(self, daemon, seen):
        """What is served has a number above all that were seen, in the files as on the socket."""
        status = daemon.status()
        self.assertGreater(status["generation"], seen)
        plane = daemon.ctl_json("status")
        self.assertEqual(plane["generation"], status["generation"])
        return status["generation"]

    def test_numbers_go_on_above_what_was_seen(self):
        daemon = self.aged()
        self.assertEqual(daemon.status()["generation"], 5)
        daemon.stop()
        said = self.restore(daemon)
        self.assertIn(f"is restored from {self.backup}; what it was is kept as {daemon.store}.before-restore", said)
        self.assertIn("readers may have seen generations up to 5, the store's newest is 2: it is served as generation 6", daemon.log())
        self.check_above(daemon, 5)
        kinds = [(change["generation"], change["what"], change["before"], change["after"])
                 for change in daemon.control("history", limit=0)["changes"] if change["what"] == "store"]
        self.assertEqual(kinds, [(6, "store", "generation 2", "generation 6")])
        self.assertEqual({change["generation"] for change in daemon.control("history", limit=0)["changes"]}, {1, 2, 6, 7})
        self.assertEqual(rows(daemon.store + ".before-restore", "SELECT max(generation) FROM generation"), [(5,)])
        self.assertEqual(self.change(daemon), 8)

    def test_also_when_the_run_directory_is_gone(self):
        daemon = self.aged()
        daemon.stop()
        for name in os.listdir(daemon.rundir):
            os.unlink(os.path.join(daemon.rundir, name))
        self.restore(daemon)  # the old store knows it, too
        self.check_above(daemon, 5)

    def test_a_copy_that_was_put_in_place_by_hand(self):
        daemon = self.aged()
        daemon.stop()
        os.replace(self.backup, daemon.store)
        daemon.start()
        self.check_above(daemon, 5)

    def test_a_store_that_is_lost(self):
        daemon = self.aged()
        daemon.stop()
        os.unlink(daemon.store)
        daemon.start()
        self.assertEqual(self.check_above(daemon, 5), 6)
        self.assertEqual(self.change(daemon), 7)

    def test_a_reader_that_watches_sees_numbers_grow(self):
        daemon = self.aged()
        daemon.stop()
        seen = set()
        names = [name for name in os.listdir(daemon.rundir) if name.endswith(".snap")]
        self.assertTrue(names)
        ended = threading.Event()

        def look():
            while not ended.is_set():
                with contextlib.suppress(FileNotFoundError):
                    with open(os.path.join(daemon.rundir, names[0]), "rb") as file:
                        seen.add(int.from_bytes(file.read(64)[40:48], "little"))
        thread = threading.Thread(target=look)
        thread.start()
        try:
            self.restore(daemon)
        finally:
            ended.set()
            thread.join()
        self.assertEqual(min(seen), 5)
        self.assertGreaterEqual(max(seen), 6)

    def test_restored_twice_keeps_both(self):
        daemon = self.aged()
        daemon.stop()
        self.restore(daemon)
        first = daemon.status()["generation"]
        daemon.stop()
        self.restore(daemon)
        self.check_above(daemon, first)
        self.assertEqual(rows(daemon.store + ".before-restore", "SELECT max(generation) FROM generation"), [(5,)])
        self.assertEqual(rows(daemon.store + ".before-restore.2", "SELECT max(generation) FROM generation"), [(first,)])

    def test_killed_at_any_moment(self):
        """The next start serves the old store or the new one, and no number comes again (unit.store_restore kills it
        before each of its system calls)."""
        daemon = self.aged(1)
        newest, outcomes, took = daemon.status()["generation"], set(), None
        for turn in range(12):
            daemon.kill9()
            start = time.monotonic()
            restore = lab.spawn(daemon.command("--restore", self.backup), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if took is None:  # once to its end
                restore.wait()
                took = time.monotonic() - start
            else:
                if turn > 1:  # the first one at once
                    time.sleep(took * self.random.uniform(0, 1))  # the moment is what is tried
                restore.kill()
            outcomes.add("is restored from" in restore.communicate()[1])
            daemon.start()
            generation = daemon.status()["generation"]
            self.assertGreaterEqual(generation, newest)
            self.assertEqual(rows(daemon.store, "PRAGMA quick_check"), [("ok",)])
            self.assertEqual(os.stat(daemon.store).st_nlink, 1)
            self.assertEqual([name for name in os.listdir(os.path.dirname(daemon.store)) if ".restoring" in name], [])
            newest = self.change(daemon)
            self.assertGreater(newest, generation)
        self.assertEqual(outcomes, {True, False}, "all kills came too early, or too late")
        told = [c["generation"] for c in daemon.control("history", limit=0)["changes"]]
        self.assertEqual(told, sorted(told))

    def test_over_a_store_that_is_broken(self):
        daemon = self.aged()
        daemon.kill9()
        with open(daemon.store, "r+b") as file:
            file.write(b"\0" * 5000)
        self.restore(daemon)
        self.check_above(daemon, 5)
        self.assertTrue(os.path.exists(daemon.store + ".before-restore"))

    def test_a_snapshot_of_a_generation_that_cannot_be(self):
        daemon = self.aged()
        daemon.stop()
        with open(os.path.join(daemon.rundir, "ib0.snap"), "r+b") as file:
            file.seek(40)
            file.write(b"\xff" * 8)  # and its checksum is wrong
        daemon.start()
        self.assertEqual(daemon.status()["generation"], 5)

    def check_refused(self, daemon, file, why):
        with open(daemon.store, "rb") as store:
            before = store.read()
        done = daemon.run_once("--foreground", "--restore", file)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, why)
        with open(daemon.store, "rb") as store:
            self.assertEqual(store.read(), before)
        self.assertEqual([name for name in os.listdir(daemon.dir) if "restor" in name], [])

    def test_what_is_refused(self):
        daemon = self.aged()
        other = os.path.join(self.dir, "other.db")
        running = self.daemon(directory=None)
        running.stop()
        daemon.stop()
        self.check_refused(daemon, "/nowhere", "cannot be restored: No such file")
        self.check_refused(daemon, daemon.store, "it is the store itself")
        self.check_refused(daemon, self.capture, "it is no store of fabricd's")
        with contextlib.closing(sqlite3.connect(other)) as store:
            store.execute("CREATE TABLE x (y)")
            store.commit()
        self.check_refused(daemon, other, "it is no store of fabricd's")
        with open(self.backup, "rb") as file:
            good = file.read()
        broken = bytearray(good)
        for page in range(2, len(broken) // 4096):
            broken[page * 4096:page * 4096 + 8] = b"\xff" * 8
        with open(other, "wb") as file:
            file.write(broken)
        self.check_refused(daemon, other, "cannot be restored: it is broken")
        with open(other, "wb") as file:
            file.write(good)
        with contextlib.closing(sqlite3.connect(other)) as store:
            store.execute("PRAGMA user_version = 1000")
        self.check_refused(daemon, other, "written by a newer fabricd")

    def test_refused_while_another_has_the_store(self):
        daemon = self.aged()
        second = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}", "store": daemon.store}}, start=False)
        done = second.run_once("--foreground", "--restore", self.backup)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"fabricd with pid {daemon.process.pid} has it open", done.stderr)
        self.assertEqual(self.change(daemon), 6)
        node = lab.Fabricd(config={"fabricd": {"role": "node", "scheduler": daemon.rundir}}, start=False)
        done = node.run_once("--check-config", "--restore", self.backup)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a node has no store", done.stderr)


if __name__ == "__main__":
    unittest.main()
