"""Backups while the daemon goes on, ends or is killed, and a restore beside it. test/sim/test_backup.py has the rest."""
import contextlib
import json
import os
import sqlite3
import threading
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


class Backup(Case):
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
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("backup")], ["backup.db"])

    def test_a_stop_does_not_wait_for_it(self):
        daemon = self.daemon()
        self.grow(daemon, 48)
        with daemon.ask("backup", file=self.backup):
            self.assertEqual(daemon.stop(), 0)
        self.assertFalse(os.path.exists(self.backup + ".part"))

    def test_restored_when_nobody_has_the_store(self):
        daemon = self.daemon()
        self.assertEqual(daemon.ctl("backup", self.backup).returncode, 0)
        self.change(daemon)
        second = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}", "store": daemon.store}}, start=False)
        done = second.run_once("--foreground", "--restore", self.backup)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"fabricd with pid {daemon.process.pid} has it open", done.stderr)
        self.assertEqual(self.change(daemon), 3)
        node = lab.Fabricd(config={"fabricd": {"role": "node", "scheduler": daemon.rundir}}, start=False)
        done = node.run_once("--check-config", "--restore", self.backup)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a node has no store", done.stderr)
        daemon.stop()
        self.assertEqual(daemon.run_once("--restore", self.backup).returncode, 0)
        daemon.start()
        self.assertGreater(daemon.status()["generation"], 3)


if __name__ == "__main__":
    unittest.main()
