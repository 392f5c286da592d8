"""fabricctl restore: a running daemon begins anew with a backup. Stores of other hosts and of older schemas.

The process that stays the same, what goes on during the copy, and fabricd --restore as root: test/integration/test_restore.py.
"""
import contextlib
import json
import os
import shutil
import socket
import sqlite3
import stat
import unittest

import fabric_text
import lab
import sim
import store_case
from store_case import rows

class Case(store_case.Case):
    def aged(self):
        """A daemon at generation 5 with a backup of generation 2."""
        self.change()
        self.assertEqual(self.site.ctl("backup", self.backup).returncode, 0)
        for _ in range(3):
            self.change()
        self.assertEqual(self.site.status()["generation"], 5)

    def check_goes_on(self, seen):
        """It serves and publishes, with numbers above those that were seen."""
        self.site.idle()
        generation = self.site.status()["generation"]
        self.assertGreater(generation, seen)
        self.assertEqual(self.site.ctl_json("status")["generation"], generation)
        self.assertGreater(self.change(), generation)


class Running(Case):
    def give(self, path, file=None):
        """The channel of a restore that has got the file."""
        channel = self.site.ask("restore", file=file or path)
        self.assertEqual(channel.line(), {"descriptor": True})
        with open(path, "rb") as backup:
            socket.send_fds(channel.socket, [b"x"], [backup.fileno()])
        self.site.look()
        return channel

    def test_the_daemon_begins_anew_with_it(self):
        self.aged()
        os.chmod(self.site.store, 0o640)
        told = self.site.ctl_json("restore", self.backup)
        self.assertEqual((told["file"], told["kept"]), (self.backup, self.site.store + ".before-restore"))
        self.assertGreater(told["generation"], 5)
        self.check_goes_on(5)
        self.assertEqual({change["generation"] for change in self.site.control("history", limit=0)["changes"]}, {1, 2, 6, 7, 8})
        self.assertEqual(rows(told["kept"], "SELECT max(generation) FROM generation"), [(5,)])
        self.assertEqual(stat.S_IMODE(os.stat(self.site.store).st_mode), 0o640)
        self.assertEqual([name for name in os.listdir(self.site.dir) if ".restoring" in name], [])

    def test_again_and_from_what_was_kept(self):
        self.aged()
        for file, kept in ((self.backup, ""), (self.backup, ".2"), (f"{self.site.store}.before-restore", ".3")):
            seen = self.site.status()["generation"]
            done = self.site.ctl("restore", file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{self.site.store}.before-restore{kept}", done.stdout)
            self.check_goes_on(seen)
        self.assertEqual(self.site.log().count(" replaces the store: restarting"), 3)

    OWN = ("CREATE TRIGGER own AFTER INSERT ON generation BEGIN DELETE FROM change; END",
           "CREATE TRIGGER own AFTER UPDATE ON plane BEGIN SELECT raise(abort, 'no'); END",
           "CREATE TABLE own (x REFERENCES change (kind))",
           "ALTER TABLE plane ADD COLUMN own INTEGER NOT NULL DEFAULT 7 CHECK (own < 8)",
           "DROP INDEX {index}")
    HARMLESS = ("CREATE TABLE own (x)", "CREATE INDEX another ON change (what)",
                "CREATE VIEW endless AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")

    def alter(self, path, sql):
        with contextlib.closing(sqlite3.connect(path)) as store, store:
            index = store.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").fetchone()
            store.execute(sql.format(index=index[0]))

    def test_a_backup_with_another_schema_is_not_restored(self):
        self.aged()
        for sql in self.OWN + self.HARMLESS:
            shutil.copy(self.backup, self.backup + ".own")
            self.alter(self.backup + ".own", sql)
            done = self.site.ctl("restore", self.backup + ".own")
            self.assertEqual(done.returncode, 1, sql)
            self.assertRegex(done.stderr, r"is not fabricd's|as fabricd made it|is missing", sql)
            self.assertEqual(len({change["generation"] for change in self.site.control("history", limit=0)["changes"]}), 5, sql)
        self.assertEqual(self.site.ctl("restore", self.backup).returncode, 0)

    def test_nor_is_such_a_store_opened(self):
        """An operator's own table, index or view does nothing by itself."""
        self.aged()
        self.site.stop()
        for sql in self.OWN:
            shutil.copy(self.site.store, self.site.store + ".good")
            self.alter(self.site.store, sql)
            with self.assertRaises(lab.LabError, msg=sql):
                self.site.start()
            os.replace(self.site.store + ".good", self.site.store)
        for sql in self.HARMLESS:
            self.alter(self.site.store, sql)
        self.site.start()
        self.assertEqual(len({change["generation"] for change in self.site.control("history", limit=0)["changes"]}), 5)

    def check_refused(self, why, file):
        """One line, a status, and nothing is changed."""
        generation = self.site.status()["generation"]
        before, content = sorted(os.listdir(self.site.dir)), rows(self.site.store, "SELECT * FROM change")
        done = self.site.ctl("restore", file)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, why)
        lines = [line for line in done.stderr.splitlines() if not line.startswith(("fabricctl: copied", "fabricctl: checking"))]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertEqual(self.site.status()["generation"], generation)
        self.assertEqual(sorted(os.listdir(self.site.dir)), before)
        self.assertEqual(rows(self.site.store, "SELECT * FROM change"), content)

    def test_what_is_refused(self):
        self.aged()
        other = os.path.join(self.dir, "other.db")
        self.check_refused("cannot read: /nowhere: No such file", "/nowhere")
        self.check_refused("not a store of fabricd", self.site.save())
        self.check_refused("not a store of fabricd", self.dir)
        with contextlib.closing(sqlite3.connect(self.site.store)) as store:
            store.execute("SELECT count(*) FROM node").fetchall()
            self.check_refused("it is a store in use", self.site.store)
        self.change()  # and its locks hold
        shutil.copy(self.backup, other)
        with contextlib.closing(sqlite3.connect(other)) as store:
            store.execute("PRAGMA user_version = 1000")
        self.check_refused("written by a newer fabricd", other)
        with open(self.backup, "rb") as file:
            broken = bytearray(file.read())
        for page in range(2, len(broken) // 4096):
            broken[page * 4096:page * 4096 + 8] = b"\xff" * 8
        with open(other, "wb") as file:
            file.write(broken)
        self.check_refused("other.db: cannot be restored: it is broken .*: take another backup", other)
        with open(other, "wb") as file:
            file.write(broken[:8192])
        self.check_refused("other.db: cannot be restored: it is broken", other)
        self.assertIn("needs a file", self.site.control("restore")["message"])
        channel = self.site.ask("restore", file=self.backup)
        self.assertTrue(channel.line()["descriptor"])
        channel.socket.send(b"x")
        self.assertIn("needs a file's descriptor", channel.answer()["message"])
        self.assertIn("it is the store itself", self.give(self.site.store, "a lie").answer()["message"])
        self.site.configure({"changes": {"debonce": 1}})  # it would be read when the daemon begins anew
        self.site.save()
        self.check_refused("the configuration has mistakes: .*fabricd.conf:.*debonce", self.backup)
        self.site.configure({"changes": {"debonce": None}})
        self.site.save()
        self.check_goes_on(5)

    def test_during_a_sweep(self):
        self.assertEqual(self.site.ctl("backup", self.backup).returncode, 0)
        self.site.sweeps_take(10)
        channel = self.site.ask("refresh")
        self.assertTrue(self.site.status()["sweeping"])
        self.check_refused("a sweep is running: try again", self.backup)
        self.assertTrue(channel.answer()["ok"])


class AnotherHost(Case):
    host = "first"

    def move_to(self, host):
        """The daemon ends here, and another host has a store, a run directory and a daemon of its own."""
        self.site.stop()
        shutil.copytree(self.site.dir, os.path.join(self.dir, self.host), dirs_exist_ok=True)
        now = self.site.now()
        self.site = sim.Site("fattree2:4,2,4", start=False)
        self.addCleanup(self.site.free)
        self.site.jump(now - self.site.now())
        self.host = host
        if os.path.exists(os.path.join(self.dir, host)):
            shutil.copytree(os.path.join(self.dir, host), self.site.dir, dirs_exist_ok=True)

    def test_numbers_go_on_above_what_the_first_host_gave_out(self):
        self.aged()
        self.move_to("second")
        self.site.start()  # it has a store, and numbers, of its own
        self.assertEqual(self.site.generation(), 1)
        self.assertEqual(self.site.ctl("restore", self.backup).returncode, 0)
        self.check_goes_on(5)
        seen = self.site.generation()
        self.move_to("third")  # it has none
        self.restore()
        self.check_goes_on(seen)
        # And back again, with the last backup.
        self.assertEqual(self.site.ctl("backup", "--force", self.backup).returncode, 0)
        seen = self.change()
        self.move_to("first")
        self.site.start()
        self.assertEqual(self.site.ctl("restore", self.backup).returncode, 0)
        self.check_goes_on(seen)


class Schema(Case):
    def old(self, version=1, config=None, site=None):
        """A site with the store that an older fabricd left."""
        self.site = site or sim.Site("fattree2:4,2,4", config, start=False)
        self.addCleanup(self.site.free)
        shutil.copy(os.path.join(lab.ROOT, "test", "data", f"store_v{version}.db"), self.site.store)
        return self.site.store + ".schema-1"

    def test_an_upgrade_is_told_and_the_old_store_kept(self):
        kept = self.old()
        self.site.start()
        self.assertRegex(self.site.log(), r"store fabricd.db: its schema is migrated from 1 to \d+; the old store is kept as fabricd.db.schema-1\n")
        self.assertEqual(rows(kept, "PRAGMA user_version"), [(1,)])
        self.assertEqual(rows(kept, "SELECT count(*) FROM change"), [(36,)])
        self.site.stop()
        os.unlink(kept)
        self.site.start()
        self.assertEqual(self.site.log().count("its schema is migrated"), 1)
        self.assertFalse(os.path.exists(kept))

    def test_it_is_removed_after_its_time(self):
        kept = self.old()
        self.site.start()
        aged = self.site.now() - 10 * 86400
        os.utime(kept, (aged, aged))
        for days, there in ((0, True), (11, True), (9, False)):
            self.site.stop()
            self.site.configure({"store": {"keep_days": days}})
            said = len(self.site.log())
            self.site.start()
            self.site.advance(60)
            self.assertEqual(os.path.exists(kept), there)
            self.assertEqual("fabricd.db.schema-1 is removed for its age" in self.site.log()[said:], not there)

    def test_plane_0_gets_another_number(self):
        """A store of when planes were numbered from 0: no other plane's number changes, and it is told once."""
        text = fabric_text.without_cables(sim.fabric("fattree2:3,1,2", "capture"), "leaf3", "spine1")
        self.old(11, site=sim.Recorded(text, start=False))
        self.assertEqual(rows(self.site.store, "SELECT number, name FROM plane"), [(0, "ib0"), (1, "ib1")])
        self.site.start()
        for _ in range(2):
            self.assertEqual([(plane["name"], plane["index"], plane["devices"]) for plane in self.site.ctl_json("planes")],
                             [("ib0", 2, 4), ("ib1", 1, 2)])
            self.site.refresh()  # 3: what was stored has no names of groups
            self.assertEqual(self.site.status()["generation"], 3)
            self.assertEqual([(c["what"], c["before"], c["after"]) for c in self.site.control("history", limit=0)["changes"]
                              if c["generation"] == 2], [("plane ib0", "number 0", "number 2")])
            self.assertEqual(self.site.log().count("store: plane ib0 had number 0"), 1)
            self.site.stop()
            self.assertEqual(rows(self.site.store, "SELECT number, name FROM plane"), [(1, "ib1"), (2, "ib0")])
            self.site.start()
        self.site.show(text.replace('"node0001', '"other0001'))
        self.assertEqual(self.site.refresh()["generation"], 4)  # and what it publishes next has the same numbers
        self.assertEqual([(plane["name"], plane["index"]) for plane in self.site.ctl_json("planes")], [("ib0", 2), ("ib1", 1)])

    def test_a_restore_of_an_older_store(self):
        self.old()
        shutil.move(self.site.store, self.backup)
        self.site.start()
        self.assertEqual(self.site.ctl("restore", self.backup).returncode, 0)
        self.check_goes_on(1)
        self.assertEqual([name for name in os.listdir(self.site.dir) if "schema" in name], [])


if __name__ == "__main__":
    unittest.main()
