"""Backups and restores of a real process: while it publishes, when it ends or is killed meanwhile, in the background, and as root.
test/sim/test_backup.py and test/sim/test_restore.py have the rest."""
import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import socket
import sqlite3
import stat
import unittest

import lab

OWNER = "nobody"
BUSY = -13  # PMIXFAB_ERR_BUSY


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

    def large(self):
        """A daemon whose store takes a while to copy: it has many free pages."""
        daemon = self.daemon()
        daemon.stop()
        with contextlib.closing(sqlite3.connect(daemon.store)) as store:
            store.execute("CREATE TABLE filler (id INTEGER PRIMARY KEY, bytes BLOB)")
            store.executemany("INSERT INTO filler (bytes) VALUES (?)", [(os.urandom(1 << 20),)] * 48)
            store.commit()
            store.execute("DROP TABLE filler")
            store.commit()
        return daemon.start()

    def change(self, daemon):
        """Publish one more generation."""
        self.n += 1
        lab.replace_file(self.capture, self.text.replace('"node0001', f'"other{self.n:04}'))
        return daemon.refresh()["generation"]

    def save(self, daemon):
        self.assertEqual(daemon.ctl("backup", "--force", self.backup).returncode, 0)

    def progress(self, channel):
        """It is under way."""
        self.assertIn("progress", json.loads(channel.recv(65536).splitlines()[0]))

    def give(self, daemon):
        """The channel of a restore that has got the file."""
        channel = daemon.ask("restore", file=self.backup)
        self.assertEqual(json.loads(channel.recv(4096)), {"descriptor": True})
        with open(self.backup, "rb") as backup:
            socket.send_fds(channel, [b"x"], [backup.fileno()])
        return channel


class Backup(Case):
    def test_publishing_goes_on_meanwhile_and_is_not_in_it(self):
        daemon = self.large()
        with daemon.ask("backup", file=self.backup) as channel:
            self.progress(channel)
            self.assertEqual([self.change(daemon), self.change(daemon)], [2, 3])
            self.assertTrue(daemon.answer(channel)["ok"])
        self.assertEqual(rows(self.backup, "PRAGMA quick_check"), [("ok",)])
        self.assertEqual(rows(self.backup, "SELECT max(generation) FROM generation"), [(1,)])
        self.assertRegex(daemon.ctl("backup", "--force", self.backup).stderr, r"copied \d+ of \d+ MiB")
        # A stop does not wait for one.
        with daemon.ask("backup", file=self.backup + "2"):
            self.assertEqual(daemon.stop(), 0)
        self.assertFalse(os.path.exists(self.backup + "2.part"))

    def test_whoever_asked_is_gone(self):
        """And one at a time is made."""
        daemon = self.large()
        daemon.freeze()  # so that the second request is there before the first one's backup can end
        channels = [daemon.ask("backup", file=self.backup + number) for number in ("", "2")]
        daemon.thaw()
        with channels[0]:
            self.progress(channels[0])
        with channels[1], channels[1].makefile(encoding="utf-8") as lines:
            self.assertEqual(json.loads(lines.readline())["error"], BUSY)
        daemon.until_file(self.backup, lambda: not os.path.exists(self.backup + ".part"), "the end of the backup")
        daemon.until("idle")
        self.save(daemon)

    def test_killed_while_it_replaces_a_backup(self):
        daemon = self.large()
        self.save(daemon)
        self.change(daemon)
        with daemon.ask("backup", file=self.backup, force=True) as channel:
            self.progress(channel)
            daemon.kill9()
        # The one before, or the new one as a whole, where the kill came late.
        self.assertIn(rows(self.backup, "SELECT max(generation) FROM generation"), ([(1,)], [(2,)]))
        self.assertEqual(rows(self.backup, "PRAGMA integrity_check"), [("ok",)])
        daemon.start()
        self.save(daemon)
        self.assertEqual(rows(self.backup, "SELECT max(generation) FROM generation"), [(2,)])
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("backup")], ["backup.db"])


class Restore(Case):
    def test_the_daemon_begins_anew_with_it(self):
        daemon = self.daemon()
        self.save(daemon)
        for _ in range(3):
            self.change(daemon)
        pid = daemon.status()["pid"]
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        os.chmod(self.backup, 0o644)
        refused = daemon.ctl("restore", self.backup, user=OWNER)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("may not do that", refused.stderr)
        done = daemon.ctl("--format", "json", "restore", os.path.relpath(self.backup, "/"))  # it runs in /
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["file"], told["kept"]), (self.backup, daemon.store + ".before-restore"))
        self.assertEqual(daemon.status()["pid"], pid)  # what started it sees one process
        generation = daemon.wait_ready()["generation"]
        self.assertGreater(generation, 4)
        self.assertGreater(self.change(daemon), generation)
        self.assertLessEqual(len(os.listdir(f"/proc/{pid}/fd")), descriptors + 2)
        with open(f"/proc/{pid}/comm", encoding="ascii") as comm:
            self.assertEqual(comm.read().strip(), "fabricd")
        self.assertEqual(daemon.stop(), 0)

    def test_of_the_background(self):
        daemon = self.daemon(start=False)
        self.assertEqual(daemon.run_once("--interval", "0").returncode, 0)
        self.addCleanup(lambda: lab.Held(daemon.status()["pid"]).signal(signal.SIGTERM))
        daemon.until("generation", generation=1)
        pid = daemon.status()["pid"]
        self.save(daemon)
        self.change(daemon)
        self.assertEqual(daemon.ctl("restore", self.backup).returncode, 0)
        self.assertNotEqual(daemon.status()["pid"], pid)  # it goes into the background once more
        self.assertGreater(self.change(daemon), 3)

    def test_killed_after_the_copy(self):
        daemon = self.large()
        self.save(daemon)
        with self.give(daemon) as channel:
            self.progress(channel)
            daemon.kill9()
        daemon.start()
        self.assertIn(daemon.status()["generation"], (1, 2))  # 2: the kill came late, after the restore
        self.assertFalse(os.path.exists(daemon.store + ".restoring"))
        daemon.ask("restore", file=self.backup).close()  # who asked is gone, before the file came and after it
        with self.give(daemon) as channel:
            self.progress(channel)
        daemon.logged(re.compile("cancelled|restarting"))
        daemon.wait_ready()
        self.assertGreater(self.change(daemon), 1)

    @unittest.skipUnless(os.geteuid() == 0, "root only")
    def test_fabricd_restore(self):
        """Of a store that nobody has open; what root restores is the user's whom the service has."""
        daemon = self.daemon()
        self.save(daemon)
        done = daemon.run_once("--foreground", "--restore", self.backup)
        self.assertEqual(done.returncode, 1)
        node = lab.Fabricd(config={"fabricd": {"role": "node", "scheduler": "scheduler"}}, start=False)
        done = node.run_once("--check-config", "--restore", self.backup)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a node has no store", done.stderr)
        second = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}", "store": daemon.store}}, start=False)
        self.assertIn(f"fabricd with pid {daemon.process.pid} has it open", second.run_once("--foreground", "--restore", self.backup).stderr)
        daemon.stop()
        account, folder = pwd.getpwnam(OWNER), os.path.join(self.dir, "state")
        os.mkdir(folder, 0o755)
        store = os.path.join(folder, "fabricd.db")
        shutil.move(daemon.store, store)
        os.chmod(store, 0o640)
        for path in (folder, store):
            os.chown(path, account.pw_uid, account.pw_gid)
        os.chmod(self.backup, 0o600)  # root's own
        done = daemon.ctl("restore", self.backup)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn(f"as root: fabricd --restore {self.backup}", done.stderr)
        done = daemon.run_once("--restore", self.backup, "--store", store)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = os.stat(store)
        self.assertEqual((found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)), (account.pw_uid, account.pw_gid, 0o640))
        self.assertEqual({os.stat(os.path.join(folder, name)).st_uid for name in os.listdir(folder)}, {account.pw_uid})
        os.unlink(store)  # now the folder says whose it is
        self.assertEqual(daemon.run_once("--restore", self.backup, "--store", store).returncode, 0)
        self.assertEqual(os.stat(store).st_uid, account.pw_uid)


if __name__ == "__main__":
    unittest.main()
