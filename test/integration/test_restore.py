"""fabricctl restore: the process begins anew with a backup. fabricd --restore as root. test/sim/test_restore.py has the rest."""
import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import unittest

import lab
import test_backup

OWNER = "nobody"


class Case(test_backup.Case):
    def aged(self):
        """A daemon at generation 5 with a backup of generation 2."""
        daemon = self.daemon()
        self.change(daemon)
        self.assertEqual(daemon.ctl("backup", self.backup).returncode, 0)
        for _ in range(3):
            self.change(daemon)
        self.assertEqual(daemon.status()["generation"], 5)
        return daemon


class Running(Case):
    def give(self, daemon, path, file=None):
        """The channel of a restore that has got the file."""
        channel = daemon.ask("restore", file=file or path)
        self.assertEqual(json.loads(channel.recv(4096)), {"descriptor": True})
        with open(path, "rb") as backup:
            socket.send_fds(channel, [b"x"], [backup.fileno()])
        return channel

    def test_the_daemon_begins_anew_with_it(self):
        daemon = self.aged()
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
        self.assertGreater(told["generation"], 5)
        self.assertEqual(daemon.status()["pid"], pid)  # what started it sees one process
        generation = daemon.wait_ready()["generation"]
        self.assertGreater(generation, 5)
        self.assertGreater(self.change(daemon), generation)
        self.assertLessEqual(len(os.listdir(f"/proc/{pid}/fd")), descriptors + 2)
        with open(f"/proc/{pid}/comm", encoding="ascii") as comm:
            self.assertEqual(comm.read().strip(), "fabricd")
        self.assertEqual(daemon.stop(), 0)

    def test_of_the_background(self):
        daemon = self.daemon(start=False)
        self.assertEqual(daemon.run_once("--interval", "0").returncode, 0)
        self.addCleanup(lambda: lab.Held(daemon.status()["pid"]).signal(signal.SIGTERM))
        pid = lab.wait_for(lambda: daemon.status()["generation"] == 1 and daemon.status()["pid"], what="a generation")
        self.assertEqual(daemon.ctl("backup", self.backup).returncode, 0)
        self.change(daemon)
        self.assertEqual(daemon.ctl("restore", self.backup).returncode, 0)
        self.assertNotEqual(daemon.status()["pid"], pid)  # it goes into the background once more
        self.assertGreater(self.change(daemon), 3)

    def test_whoever_asked_is_gone(self):
        daemon = self.daemon()
        self.grow(daemon, 48)
        self.assertEqual(daemon.ctl("backup", self.backup).returncode, 0)
        pid = daemon.status()["pid"]
        daemon.ask("restore", file=self.backup).close()
        with self.give(daemon, self.backup) as channel:
            self.assertIn("progress", json.loads(channel.recv(65536).splitlines()[0]))
            with contextlib.suppress(OSError):  # where the copy was quicker, the daemon begins anew already
                self.assertEqual(daemon.control("backup", file=self.backup + "2")["error"], -13)  # PMIXFAB_ERR_BUSY
        lab.wait_for(lambda: "given up" in daemon.log() or "beginning anew" in daemon.log(), what="the end of it")
        if "beginning anew" not in daemon.log():
            self.assertFalse(os.path.exists(daemon.store + ".restoring"))
        self.assertEqual(daemon.wait_ready()["pid"], pid)
        self.assertGreater(self.change(daemon), 1)

    def test_killed_after_the_copy(self):
        daemon = self.daemon()
        self.grow(daemon, 48)
        self.assertEqual(daemon.ctl("backup", self.backup).returncode, 0)
        with self.give(daemon, self.backup) as channel:
            self.assertIn("progress", json.loads(channel.recv(65536).splitlines()[0]))
            daemon.kill9()
        daemon.start()
        self.assertEqual(daemon.status()["generation"], 1)
        self.assertFalse(os.path.exists(daemon.store + ".restoring"))


@unittest.skipUnless(os.geteuid() == 0, "root only")
class AsRoot(Case):
    def test_owner_and_mode_stay(self):
        """As a service of its own user has it: what root restores is that user's."""
        daemon = self.aged()
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
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"as root: fabricd --restore {self.backup}", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        for _ in range(2):
            done = daemon.run_once("--restore", self.backup, "--store", store)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = os.stat(store)
            self.assertEqual((found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)), (account.pw_uid, account.pw_gid, 0o640))
            self.assertEqual({os.stat(os.path.join(folder, name)).st_uid for name in os.listdir(folder)}, {account.pw_uid})
            os.unlink(store)  # now the folder says whose it is
            with open(store, "w", encoding="ascii"):
                os.chown(store, account.pw_uid, account.pw_gid)
                os.chmod(store, 0o640)
        os.unlink(store)
        self.assertEqual(daemon.run_once("--restore", self.backup, "--store", store).returncode, 0)
        self.assertEqual(os.stat(store).st_uid, account.pw_uid)


if __name__ == "__main__":
    unittest.main()
