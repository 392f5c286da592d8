"""fabricctl restore: a running daemon begins anew with a backup. fabricd --restore as root. Stores of older schemas."""
import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import stat
import unittest

import fabric_text
import lab
import test_backup

OWNER = "nobody"
rows = test_backup.rows


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

    def check_goes_on(self, daemon, seen):
        """It serves and publishes, with numbers above those that were seen."""
        generation = daemon.wait_ready()["generation"]
        self.assertGreater(generation, seen)
        self.assertEqual(daemon.ctl_json("status")["generation"], generation)
        self.assertGreater(self.change(daemon), generation)


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
        os.chmod(daemon.store, 0o640)
        pid = daemon.status()["pid"]
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        done = daemon.ctl("--format", "json", "restore", self.backup)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["file"], told["kept"]), (self.backup, daemon.store + ".before-restore"))
        self.assertGreater(told["generation"], 5)
        self.assertEqual(daemon.status()["pid"], pid)  # what started it sees one process
        self.check_goes_on(daemon, 5)
        self.assertEqual({change["generation"] for change in daemon.control("history", limit=0)["changes"]}, {1, 2, 6, 7, 8})
        self.assertEqual(rows(told["kept"], "SELECT max(generation) FROM generation"), [(5,)])
        self.assertEqual(stat.S_IMODE(os.stat(daemon.store).st_mode), 0o640)
        self.assertEqual([name for name in os.listdir(os.path.dirname(daemon.store)) if ".restoring" in name], [])
        self.assertLessEqual(len(os.listdir(f"/proc/{pid}/fd")), descriptors + 2)
        with open(f"/proc/{pid}/comm", encoding="ascii") as comm:
            self.assertEqual(comm.read().strip(), "fabricd")
        self.assertEqual(daemon.stop(), 0)

    def test_again_and_from_what_was_kept(self):
        daemon = self.aged()
        for n, (file, kept) in enumerate(((self.backup, ""), (self.backup, ".2"), (f"{daemon.store}.before-restore", ".3"))):
            seen = daemon.status()["generation"]
            done = daemon.ctl("restore", os.path.relpath(file, "/"))  # it runs in /
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{daemon.store}.before-restore{kept}", done.stdout)
            self.check_goes_on(daemon, seen)
        self.assertEqual(daemon.log().count("beginning anew"), 3)

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

    def check_refused(self, daemon, why, *args, **options):
        """One line, a status, and nothing is changed."""
        pid, generation, folder = daemon.status()["pid"], daemon.status()["generation"], os.path.dirname(daemon.store)
        before, content = sorted(os.listdir(folder)), rows(daemon.store, "SELECT * FROM change")
        done = daemon.ctl("restore", *args, **options)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, why)
        lines = [line for line in done.stderr.splitlines() if not line.startswith(("fabricctl: copied", "fabricctl: checking"))]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertEqual((daemon.status()["pid"], daemon.status()["generation"]), (pid, generation))
        self.assertEqual(sorted(os.listdir(folder)), before)
        self.assertEqual(rows(daemon.store, "SELECT * FROM change"), content)

    def test_what_is_refused(self):
        daemon = self.aged()
        other = os.path.join(self.dir, "other.db")
        self.check_refused(daemon, "cannot be read: /nowhere: No such file", "/nowhere")
        self.check_refused(daemon, "no store of fabricd's", self.capture)
        self.check_refused(daemon, "no store of fabricd's", self.dir)
        with contextlib.closing(sqlite3.connect(daemon.store)) as store:
            store.execute("SELECT count(*) FROM node").fetchall()
            self.check_refused(daemon, "it is a store in use", daemon.store)
        self.change(daemon)  # and its locks hold
        shutil.copy(self.backup, other)
        with contextlib.closing(sqlite3.connect(other)) as store:
            store.execute("PRAGMA user_version = 1000")
        self.check_refused(daemon, "written by a newer fabricd", other)
        with open(self.backup, "rb") as file:
            broken = bytearray(file.read())
        for page in range(2, len(broken) // 4096):
            broken[page * 4096:page * 4096 + 8] = b"\xff" * 8
        with open(other, "wb") as file:
            file.write(broken)
        self.check_refused(daemon, "other.db: cannot be restored: it is broken .*: take another backup", other)
        with open(other, "wb") as file:
            file.write(broken[:8192])
        self.check_refused(daemon, "other.db: cannot be restored: it is broken", other)
        os.chmod(self.backup, 0o644)
        self.check_refused(daemon, "may not do that", self.backup, user=OWNER)
        self.assertIn("needs a file", daemon.control("restore")["message"])
        with daemon.ask("restore", file=self.backup) as channel:
            self.assertTrue(json.loads(channel.recv(4096))["descriptor"])
            channel.send(b"x")
            self.assertIn("needs a file's descriptor", json.loads(channel.recv(4096))["message"])
        with self.give(daemon, daemon.store, "a lie") as channel:
            self.assertIn("it is the store itself", json.loads(channel.recv(4096))["message"])
        with open(daemon.conf, encoding="utf-8") as file:
            good = file.read()
        lab.replace_file(daemon.conf, good + "[changes]\ndebonce = 1\n")  # it would be read when the daemon begins anew
        self.check_refused(daemon, "the configuration has mistakes: .*fabricd.conf:.*debonce", self.backup)
        lab.replace_file(daemon.conf, good)
        self.check_goes_on(daemon, 5)

    def test_during_a_sweep(self):
        feed = lab.Feed()
        daemon = lab.Fabricd(config={"fabricd": {"probe": feed.probe}}, start=False)
        self.addCleanup(daemon.stop)
        daemon.start(wait=False)
        feed.give(self.text)
        daemon.wait_ready()
        self.assertEqual(daemon.ctl("backup", self.backup).returncode, 0)
        with daemon.ask("refresh") as channel:
            lab.wait_for(lambda: daemon.status()["sweeping"], what="a sweep")
            self.check_refused(daemon, "a sweep is under way: try again", self.backup)
            feed.give(self.text)
            self.assertTrue(daemon.answer(channel)["ok"])

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


class AnotherHost(Case):
    def test_numbers_go_on_above_what_the_first_host_gave_out(self):
        first = self.aged()
        second = self.daemon()  # it has a store, and numbers, of its own
        self.assertEqual(second.ctl("restore", self.backup).returncode, 0)
        self.check_goes_on(second, 5)
        third = self.daemon(start=False)  # it has none
        self.assertEqual(third.run_once("--restore", self.backup).returncode, 0)
        third.start()
        self.check_goes_on(third, second.status()["generation"])
        self.assertEqual(first.status()["generation"], 5)
        # And back again, with the last backup.
        self.assertEqual(third.ctl("backup", "--force", self.backup).returncode, 0)
        seen = self.change(third)
        self.assertEqual(first.ctl("restore", self.backup).returncode, 0)
        self.check_goes_on(first, seen)


class Schema(Case):
    def old(self):
        """A daemon with the store that the first fabricd left."""
        daemon = self.daemon(start=False)
        shutil.copy(os.path.join(lab.ROOT, "test", "data", "store_v1.db"), daemon.store)
        return daemon, daemon.store + ".schema-1"

    def test_an_upgrade_is_told_and_the_old_store_kept(self):
        daemon, kept = self.old()
        daemon.start()
        self.assertRegex(daemon.log(), rf"store {daemon.store}: its schema goes from 1 to \d+; as it was it is kept as {kept}\n")
        self.assertEqual(rows(kept, "PRAGMA user_version"), [(1,)])
        self.assertEqual(rows(kept, "SELECT count(*) FROM change"), [(36,)])
        daemon.stop()
        os.unlink(kept)
        daemon.start()
        self.assertEqual(daemon.log().count("its schema goes"), 1)
        self.assertFalse(os.path.exists(kept))

    def test_it_is_removed_after_its_time(self):
        daemon, kept = self.old()
        daemon.start()
        daemon.stop()
        sections = {"fabricd": {"probe": f"file:{self.capture}", "rundir": daemon.rundir, "store": daemon.store, "interval": 0,
                                "log": "debug"}}
        aged = os.stat(kept).st_mtime - 10 * 86400
        os.utime(kept, (aged, aged))
        for days, there in ((0, True), (11, True), (9, False)):
            daemon.configure({**sections, "store": {"keep_days": days}})
            said = len(daemon.log())
            daemon.start()
            lab.wait_for(lambda: "history: a step" in daemon.log()[said:], what="what is looked at after the start")
            self.assertEqual(os.path.exists(kept), there)
            self.assertEqual(f"{kept} is removed for its age" in daemon.log()[said:], not there)
            daemon.stop()

    def test_plane_0_gets_another_number(self):
        """A store of when planes were numbered from 0: no other plane's number changes, and it is told once."""
        self.text = fabric_text.without_cables(lab.fabric("fattree2:3,1,2", "capture"), "leaf3", "spine1")
        lab.replace_file(self.capture, self.text)
        daemon = self.daemon(start=False)
        shutil.copy(os.path.join(lab.ROOT, "test", "data", "store_v11.db"), daemon.store)
        self.assertEqual(rows(daemon.store, "SELECT number, name FROM plane"), [(0, "ib0"), (1, "ib1")])
        daemon.start()
        for _ in range(2):
            self.assertEqual([(plane["name"], plane["index"], plane["devices"]) for plane in daemon.ctl_json("planes")],
                             [("ib0", 2, 4), ("ib1", 1, 2)])
            daemon.refresh()  # 3: what was stored has no names of groups
            self.assertEqual(daemon.status()["generation"], 3)
            self.assertEqual([(c["what"], c["before"], c["after"]) for c in daemon.control("history", limit=0)["changes"]
                              if c["generation"] == 2], [("plane ib0", "number 0", "number 2")])
            self.assertEqual(daemon.log().count("store: plane ib0 was number 0"), 1)
            daemon.stop()
            self.assertEqual(rows(daemon.store, "SELECT number, name FROM plane"), [(1, "ib1"), (2, "ib0")])
            daemon.start()
        self.assertEqual(self.change(daemon), 4)  # and what it publishes next has the same numbers
        self.assertEqual([(plane["name"], plane["index"]) for plane in daemon.ctl_json("planes")], [("ib0", 2), ("ib1", 1)])

    def test_a_restore_of_an_older_store(self):
        daemon, _ = self.old()
        shutil.move(daemon.store, self.backup)
        daemon.start()
        self.assertEqual(daemon.ctl("restore", self.backup).returncode, 0)
        self.check_goes_on(daemon, 1)
        self.assertEqual([name for name in os.listdir(os.path.dirname(daemon.store)) if "schema" in name], [])


if __name__ == "__main__":
    unittest.main()
