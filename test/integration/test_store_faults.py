"""The store's file and its log, as somebody leaves them behind fabricd's back: nothing is lost unsaid."""
import contextlib
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

    def crashed(self, daemon):
        """A store whose last generations are in its log only, and its daemon is gone."""
        daemon.wait_ready()
        lab.wait_for(lambda: size(daemon.store + "-wal") == 0, 30, "the log to be folded")
        for _ in range(3):
            generation = self.change(daemon)
        daemon.kill9()
        self.assertGreater(size(daemon.store + "-wal"), 0)
        return generation


class Log(Case):
    def test_it_is_folded_when_it_is_quiet(self):
        daemon = self.daemon()
        generation = self.change(daemon)
        self.assertGreater(size(daemon.store + "-wal"), 0)
        lab.wait_for(lambda: size(daemon.store + "-wal") == 0, 30, "the log to be folded")
        daemon.kill9()
        for behind in BESIDE[1:]:
            os.unlink(daemon.store + behind)
        shutil.rmtree(daemon.rundir)
        daemon.start()
        self.assertEqual(daemon.status()["generation"], generation)

    def test_it_is_folded_at_a_stop(self):
        """Also where somebody else has the database open: then SQLite leaves it."""
        daemon = self.daemon()
        generation = self.change(daemon)
        with contextlib.closing(sqlite3.connect(daemon.store)) as other:
            self.assertEqual(other.execute("SELECT max(generation) FROM generation").fetchall(), [(generation,)])
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual(size(daemon.store + "-wal"), 0)

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

    def test_one_that_is_cut_while_it_is_written(self):
        daemon = self.daemon()
        self.change(daemon)
        os.truncate(daemon.store + "-wal", 0)
        self.edit()
        answer = daemon.control("refresh")
        self.assertFalse(answer["ok"])
        self.assertIn("its log (-wal), was cut behind fabricd's back", answer["message"])
        self.assertTrue(daemon.status()["stale"])

    def test_another_process_may_fold_it(self):
        daemon = self.daemon()
        generation = self.change(daemon)
        with contextlib.closing(sqlite3.connect(daemon.store)) as other:
            self.assertEqual(other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0], 0)
        self.assertEqual(size(daemon.store + "-wal"), 0)
        self.assertEqual(self.change(daemon), generation + 1)


class Refused(Case):
    """A store that is not taken stays as it is, byte for byte, with what is beside it."""

    def check_refused(self, daemon, *parts):
        before = content(daemon.store)
        done = daemon.run_once("--foreground")
        self.assertEqual(done.returncode, 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        after = content(daemon.store)
        self.assertEqual(sorted(after), sorted(before))
        for behind, data in before.items():
            self.assertTrue(after[behind] == data, f"{daemon.store}{behind} was changed")

    def variants(self, prepare):
        """Stores that prepare() has written to: closed, and crashed with a log, with its index and without."""
        for left in (None, BESIDE, BESIDE[:2]):
            daemon = self.daemon()
            self.change(daemon)
            daemon.stop()
            with contextlib.closing(sqlite3.connect(daemon.store, isolation_level=None)) as store:
                store.execute("PRAGMA wal_autocheckpoint = 0")
                prepare(store)
                if left is not None:
                    for behind in left:
                        shutil.copy(daemon.store + behind, daemon.store + ".crashed" + behind)
            if left is not None:
                for behind in left:
                    os.rename(daemon.store + ".crashed" + behind, daemon.store + behind)
            yield daemon

    def test_newer(self):
        for daemon in self.variants(lambda store: store.execute("PRAGMA user_version = 1000")):
            self.check_refused(daemon, "written by a newer fabricd (schema 1000")

    def test_another_programs(self):
        for daemon in self.variants(lambda store: store.execute("PRAGMA application_id = 7")):
            self.check_refused(daemon, "of another program (application id 0x00000007)")

    def test_damaged_rows(self):
        for daemon in self.variants(lambda store: store.execute("UPDATE plane SET digest = digest + 1")):
            self.check_refused(daemon, "is not the one that was written", "restore it from a backup")

    def test_damaged_pages(self):
        for daemon in self.variants(lambda store: store.execute("UPDATE plane SET retired = 0")):
            with open(daemon.store, "r+b") as file:
                file.seek(2 * 4096)
                file.write(b"\xff" * 4096 * 3)
            self.check_refused(daemon, "restore it from a backup")

    def test_a_name_that_is_odd(self):
        """Of a store that is taken: its name is no part of an address."""
        daemon = self.daemon(start=False, directory=None)
        odd = os.path.join(daemon.dir, "a?b#c %41")
        os.mkdir(odd)
        daemon.store = os.path.join(odd, "fabricd.db")
        daemon.args = ["--store", daemon.store]
        daemon.start()
        daemon.stop()
        daemon.start()
        self.assertEqual(daemon.status()["generation"], 1)


if __name__ == "__main__":
    unittest.main()
