"""Backups of a store in use, and a store that is restored while readers have seen more than it knows. test/integration/test_backup.py
has what goes on meanwhile; unit.store_restore ends a restore at each of its system calls."""
import contextlib
import json
import os
import shutil
import sqlite3
import stat
import unittest

from store_case import Case, rows


class Backup(Case):
    def test_a_backup_is_a_whole_store_in_one_file(self):
        self.change()
        done = self.site.ctl("--format", "json", "backup", self.backup)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), {"file": self.backup, "bytes": os.path.getsize(self.backup)})
        self.assertEqual(stat.S_IMODE(os.stat(self.backup).st_mode), 0o600)
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("backup")], ["backup.db"])
        self.assertEqual(rows(self.backup, "PRAGMA journal_mode"), [("delete",)])
        self.assertEqual(rows(self.backup, "PRAGMA integrity_check"), [("ok",)])
        sql = "SELECT * FROM change ORDER BY generation, seq"
        self.assertEqual(rows(self.backup, sql), rows(self.site.store, sql))
        self.assertRegex(self.site.log(), f"backup: {self.backup}: \\d+ bytes")

    def test_what_is_refused(self):
        other = os.path.join(self.dir, "other")
        with open(other, "w", encoding="utf-8") as file:
            file.write("not ours" * 100)
        os.symlink(other, os.path.join(self.dir, "link"))
        for file, force, why in (("backup.db", True, "give the whole path"), (other, False, "exists already"),
                                 (other, True, "is not a backup of fabricd"), (self.site.store, True, "the store itself"),
                                 (f"{self.dir}/link", True, "is not a backup"), (self.dir, True, "is not a backup"),
                                 ("/nowhere/backup.db", False, "cannot be created")):
            answer = self.site.control("backup", file=file, force=force)
            self.assertFalse(answer["ok"], file)
            self.assertIn(why, answer["message"])
        with open(other, encoding="utf-8") as file:
            self.assertEqual(file.read(), "not ours" * 100)
        self.assertIn("needs a file", self.site.control("backup")["message"])
        self.assertEqual(self.site.ctl("backup", "relative").returncode, 2)
        self.assertEqual(self.site.ctl("backup", self.backup).returncode, 0)
        self.assertIn("--force to replace it", self.site.ctl("backup", self.backup).stderr)
        self.change()
        self.assertEqual(self.site.ctl("backup", "--force", self.backup).returncode, 0)
        self.assertEqual(rows(self.backup, "SELECT max(generation) FROM generation"), [(2,)])


class Restore(Case):
    def aged(self, generations=3):
        """A daemon that went on for some generations after its backup, stopped."""
        self.change()
        self.assertEqual(self.site.ctl("backup", self.backup).returncode, 0)  # generation 2
        for _ in range(generations):
            self.change()

    def check_above(self, seen):
        """What is served has a number above all that were seen, in the files as on the socket."""
        status = self.site.status()
        self.assertGreater(status["generation"], seen)
        plane = self.site.ctl_json("status")
        self.assertEqual(plane["generation"], status["generation"])
        return status["generation"]

    def test_numbers_go_on_above_what_was_seen(self):
        self.aged()
        self.assertEqual(self.site.status()["generation"], 5)
        self.site.stop()
        said = self.restore()
        self.assertIn(f"is restored from {self.backup}; the old store is kept as fabricd.db.before-restore", said)
        self.assertIn("readers may have seen generations up to 5, the store's newest is 2: it is served as generation 6", self.site.log())
        self.check_above(5)
        kinds = [(change["generation"], change["what"], change["before"], change["after"])
                 for change in self.site.control("history", limit=0)["changes"] if change["what"] == "store"]
        self.assertEqual(kinds, [(6, "store", "generation 2", "generation 6")])
        self.assertEqual({change["generation"] for change in self.site.control("history", limit=0)["changes"]}, {1, 2, 6, 7})
        self.assertEqual(rows(self.site.store + ".before-restore", "SELECT max(generation) FROM generation"), [(5,)])
        self.assertEqual(self.change(), 8)

    def test_also_when_the_run_directory_is_gone(self):
        self.aged()
        self.site.stop()
        for name in os.listdir(self.site.rundir):
            os.unlink(os.path.join(self.site.rundir, name))
        self.restore()  # the old store knows it, too
        self.check_above(5)

    def test_a_copy_that_was_put_in_place_by_hand(self):
        self.aged()
        self.site.stop()
        shutil.move(self.backup, self.site.store)
        self.site.start()
        self.check_above(5)

    def test_a_store_that_is_lost(self):
        self.aged()
        self.site.stop()
        os.unlink(self.site.store)
        self.site.start()
        self.assertEqual(self.check_above(5), 6)
        self.assertEqual(self.change(), 7)

    def test_a_reader_that_watches_sees_numbers_grow(self):
        self.aged()
        self.site.stop()
        seen = []

        def look():
            with open(os.path.join(self.site.rundir, "ib0.snap"), "rb") as file:
                seen.append(int.from_bytes(file.read(64)[40:48], "little"))
        look()
        self.site.at_each_point(look)
        self.restore()
        self.assertEqual(seen, sorted(seen))
        self.assertEqual((min(seen), max(seen)), (5, 7))

    def test_over_a_store_that_is_broken(self):
        self.aged()
        self.site.kill9()
        with open(self.site.store, "r+b") as file:
            file.write(b"\0" * 5000)
        self.restore()
        self.check_above(5)
        self.assertTrue(os.path.exists(self.site.store + ".before-restore"))

    def test_a_snapshot_of_a_generation_that_cannot_be(self):
        self.aged()
        self.site.stop()
        with open(os.path.join(self.site.rundir, "ib0.snap"), "r+b") as file:
            file.seek(40)
            file.write(b"\xff" * 8)  # and its checksum is wrong
        self.site.start()
        self.assertEqual(self.site.status()["generation"], 5)

    def check_refused(self, file, why):
        with open(self.site.store, "rb") as store:
            before = store.read()
        done = self.site.fabricd("--foreground", "--restore", file)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, why)
        with open(self.site.store, "rb") as store:
            self.assertEqual(store.read(), before)
        self.assertEqual([name for name in os.listdir(self.site.dir) if "restor" in name], [])

    def test_what_is_refused(self):
        self.aged()
        other = os.path.join(self.dir, "other.db")
        self.site.stop()
        self.check_refused("/nowhere", "cannot be restored: No such file")
        self.check_refused(self.site.store, "it is the store itself")
        self.check_refused(self.site.save(), "it is not a store of fabricd")
        with contextlib.closing(sqlite3.connect(other)) as store:
            store.execute("CREATE TABLE x (y)")
            store.commit()
        self.check_refused(other, "it is not a store of fabricd")
        with open(self.backup, "rb") as file:
            good = file.read()
        broken = bytearray(good)
        for page in range(2, len(broken) // 4096):
            broken[page * 4096:page * 4096 + 8] = b"\xff" * 8
        with open(other, "wb") as file:
            file.write(broken)
        self.check_refused(other, "cannot be restored: it is broken")
        with open(other, "wb") as file:
            file.write(good)
        with contextlib.closing(sqlite3.connect(other)) as store:
            store.execute("PRAGMA user_version = 1000")
        self.check_refused(other, "written by a newer fabricd")


if __name__ == "__main__":
    unittest.main()
