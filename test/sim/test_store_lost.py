"""A store that does not have what was published: what there is is served, marked stale, and it is told what is gone. (Over PMIx, and
on disks without room: test/integration/test_store_faults.py.)"""
import contextlib
import os
import shutil
import sqlite3
import unittest

from store_case import Case as StoreCase


class Case(StoreCase):
    def setUp(self):
        super().setUp()
        self.site.sweeps_take(10)  # what comes before the sweep of a start is looked at

    def remove(self, *files):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.site.store + name)

    def reboot(self):
        shutil.rmtree(self.site.rundir)

    def check_told(self, first, last, *parts, said=0):
        """In the log since then, the status, and a finding of check; and what is served is marked."""
        self.site.start()
        (error,) = [line for line in self.site.log()[said:].splitlines() if "are not in it" in line]
        status = self.site.status()
        (gone,) = status["gone"]
        self.assertEqual((gone["first"], gone["last"], status["stale"]), (first, last, True))
        self.assertIn(f"generations {first} to {last} are not in the store", status["stale_reason"])
        (finding,) = [f for f in self.site.control("check")["findings"] if f["kind"] == "history-gone"]
        self.assertEqual((finding["severity"], finding["where"]), ("error", f"generations {first} to {last}"))
        for part in parts:
            for text in (error, gone["why"], finding["what"]):
                self.assertIn(part, text)
        self.assertIn(f"NOT IN STORE  generations {first} to {last}: {gone['why']}\n", self.site.ctl("status").stdout)

    def check_served(self, generation):
        (plane,) = self.site.ctl_json("planes")
        self.assertEqual((plane["name"], plane["index"], plane["generation"]), ("ib0", 1, generation))
        self.assertEqual(self.site.status()["generation"], generation)

    def check_goes_on(self, generation):
        """A sweep is published above; it is not stale any more, and the next start has nothing to tell anew."""
        self.site.advance(11)
        status = self.site.status()
        self.assertEqual((status["generation"], status["stale"]), (generation, False))
        self.site.stop()
        said = len(self.site.log())
        self.site.start()
        again = self.site.status()
        self.assertEqual((again["generation"], again["stale"], again["gone"]), (generation, False, status["gone"]))
        self.assertNotIn("are not in it", self.site.log()[said:])


class Older(Case):
    def test_a_log_that_is_lost(self):
        self.site.advance(11)
        with contextlib.closing(sqlite3.connect(self.site.store)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self.site.sweeps_take(0.02)  # it is not folded again
        for _ in range(2):
            self.change()
        self.site.sweeps_take(10)
        self.site.kill9()
        self.reboot()  # what was published last was in the log only
        self.remove("-wal")
        self.check_told(2, 3, "the store is older", "its log (-wal) was lost or truncated")
        self.check_served(4)  # what it has, above all that was seen
        self.check_goes_on(5)
        self.site.advance(11)
        self.assertEqual(self.site.ctl("check").returncode, 1)
        self.assertEqual(self.site.ctl("ack", "history-gone").returncode, 0)
        done = self.site.ctl("check")
        self.assertEqual(done.returncode, 0, done.stdout)

    def aged(self, backup=False):
        """A store at generation 1 in the place of one at generation 2."""
        self.site.advance(11)
        self.site.stop()
        old = shutil.copy(self.site.store, self.site.store + ".old")
        self.site.start()
        self.site.advance(11)
        self.change()
        if backup:
            self.assertEqual(self.site.ctl("backup", self.backup).returncode, 0)
        self.site.stop()
        os.rename(old, self.site.store)

    def test_older_than_its_backup(self):
        self.aged(backup=True)
        self.reboot()
        self.check_told(2, 2, f"its backup {self.backup} has generation 2", "another file replaced it")
        self.site.advance(11)
        self.assertEqual(self.site.ctl("restore", self.backup).returncode, 0)  # as the finding says
        self.assertEqual(self.site.status()["gone"], [])

    def test_older_than_the_run_directory(self):
        self.aged()
        self.remove(".lock")
        self.check_told(2, 2, "the store is older; the run directory has a snapshot of generation 2")
        self.check_goes_on(4)


class Empty(Case):
    """A store that is gone altogether: the snapshots of the run directory are served, and their numbers passed."""

    def test_the_newest_snapshots_are_served(self):
        self.site.advance(11)
        self.change()
        for _ in range(2):  # and once more where no sweep came in between
            self.site.kill9()
            self.remove("", "-wal", "-shm", ".lock")
            self.check_told(1, 2, "the store is empty; the run directory has a snapshot of generation 2", said=len(self.site.log()))
            self.check_served(2)
        self.site.kill9()  # the store is there then, and still has nothing
        self.site.start()
        self.assertEqual(len(self.site.status()["gone"]), 1)
        self.check_served(2)
        self.check_goes_on(3)  # the same fabric: the store has it from now on
        self.site.kill9()
        self.reboot()
        self.site.start()
        self.check_served(3)

    def test_it_is_known_without_a_run_directory(self):
        self.site.advance(11)
        self.change()
        self.site.kill9()
        self.remove("", "-wal", "-shm")
        self.reboot()
        self.check_told(1, 2, "the store is empty: it had all of them")
        self.check_goes_on(3)


class Log(Case):
    def test_it_is_folded_when_it_is_quiet(self):
        self.change()
        self.assertGreater(os.path.getsize(self.site.store + "-wal"), 0)
        self.site.advance(10)
        self.assertEqual(os.path.getsize(self.site.store + "-wal"), 0)


if __name__ == "__main__":
    unittest.main()
