"""The run directory and the store's file under a running fabricd: as others find them, and as others leave them. (Snapshots that were
removed, and the mark of what is stale: test/sim/test_rundir.py.)"""
import contextlib
import os
import pwd
import shutil
import signal
import stat
import unittest

import fabric_text
import lab
import versions


def mode(*path):
    return stat.S_IMODE(os.stat(os.path.join(*path)).st_mode)


class Case(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.whole = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.path, self.whole)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}}, start=False)
        self.addCleanup(self.daemon.stop)
        self.rundir = self.daemon.rundir

    def slower(self):
        lab.replace_file(self.path, fabric_text.slower(self.whole, "leaf1"))


class Directory(Case):
    def test_modes_do_not_depend_on_who_starts_it(self):
        self.addCleanup(os.umask, os.umask(0o077))
        self.daemon.start()
        self.assertEqual(mode(self.rundir), 0o755)
        for name in ("ib0.snap", "fabricd.uri"):
            self.assertEqual(mode(self.rundir, name), 0o644, name)
        self.slower()
        self.daemon.refresh()
        self.assertEqual(mode(self.rundir, "ib0.snap"), 0o644)
        lab.replace_file(self.path, "no fabric")
        self.assertFalse(self.daemon.control("refresh")["ok"])
        self.assertEqual(mode(self.rundir, "stale"), 0o644)
        # What others could lock is not theirs to open: fabricd would wait, or not start.
        locked = [os.path.join(self.rundir, "lock")] + [self.daemon.store + end for end in ("", "-wal", "-shm", ".lock")]
        self.daemon.kill9()
        for path in locked:  # as a fabricd of before left them
            os.chmod(path, 0o644)
        os.umask(0)
        self.daemon.start(wait=False)
        self.daemon.wait_up()
        self.assertEqual([mode(path) for path in locked], [0o640] * len(locked))
        for path in locked if os.geteuid() == 0 else ():
            done = lab.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "flock", "-n", path, "true"])
            self.assertIn("Permission denied", done.stderr)

    def test_a_private_directory_stays_so_and_keeps_what_is_in_it(self):
        """The PMIx library would open it to all, and remove everything in it at the end."""
        os.mkdir(self.rundir, 0o700)
        os.mkdir(os.path.join(self.rundir, "photos"))
        lab.replace_file(os.path.join(self.rundir, "photos", "one"), "not ours")
        self.daemon.start()
        self.assertEqual(mode(self.rundir), 0o700)
        self.assertEqual(self.daemon.stop(), 0)
        self.assertEqual(sorted(os.listdir(self.rundir)), ["ib0.snap", "lock", "photos"])
        self.assertEqual(os.listdir(os.path.join(self.rundir, "photos")), ["one"])

    def test_what_is_removed(self):
        """A run directory comes back; a store that was moved is not written to."""
        self.daemon.start()
        lab.remove_folder(self.rundir)
        self.daemon.hup()
        self.daemon.until_file(os.path.join(self.rundir, "ib0.snap"))
        self.assertEqual(self.daemon.ctl_json("status")["generation"], 1)
        self.assertEqual(self.daemon.tool("register").returncode, 0)
        aside = self.daemon.store + ".aside"
        os.rename(self.daemon.store, aside)
        self.slower()
        answer = self.daemon.control("refresh")
        self.assertFalse(answer["ok"])
        self.assertIn("moved or removed", answer["message"])
        self.assertEqual(self.daemon.status()["generation"], 1)
        os.rename(aside, self.daemon.store)
        self.assertEqual(self.daemon.refresh()["generation"], 2)

    def test_a_reader_of_a_damaged_snapshot_has_it_written_again(self):
        """Whoever it is, without a sweep; the PMIx server maps the new file at the next sweep at the latest, or when it died of the old."""
        daemon = self.daemon
        daemon.start()
        path = os.path.join(daemon.rundir, "ib0.snap")
        with open(path, "rb") as file:
            before = file.read()
        with open(path, "r+b") as file:
            file.seek(300)
            file.write(b"spoilt")
        self.assertEqual(daemon.ctl("planes", user="nobody" if os.geteuid() == 0 else None).returncode, 0)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)
        os.truncate(path, 0)
        daemon.tool("register")  # which may be the end of the PMIx server
        lab.wait_for(lambda: daemon.tool("register").returncode == 0, what="a PMIx server with the whole snapshot")

        def is_whole():  # a server that had mapped the file before that one needs nothing
            daemon.ctl("planes")
            with open(path, "rb") as file:
                return file.read() == before
        lab.wait_for(is_whole, what="the whole snapshot")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to mount a file system")
    def test_a_full_file_system_does_not_prevent_a_start(self):
        """What is stored is served to fabricctl, and the PMIx server follows when there is room."""
        daemon = self.daemon
        daemon.start()
        for with_snapshot in (True, False):
            daemon.stop()
            with open(os.path.join(daemon.rundir, "ib0.snap"), "rb") as file:
                snapshot = file.read()
            stack = contextlib.ExitStack()
            self.addCleanup(stack.close)
            lab.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "none", daemon.rundir])
            stack.callback(lab.run, ["umount", daemon.rundir])
            stack.callback(daemon.stop)
            if with_snapshot:
                with open(os.path.join(daemon.rundir, "ib0.snap"), "wb") as file:
                    file.write(snapshot)
                os.chmod(os.path.join(daemon.rundir, "ib0.snap"), 0o644)
            fill = os.path.join(daemon.rundir, "fill")
            with open(fill, "wb", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(bytes(4096)) == 4096:
                    pass
            daemon.start(wait=False)
            lab.wait_for(lambda: (answer := daemon.try_control("status")) and answer["generation"] == 1, what="an answer")
            self.assertIn("is full", daemon.log())
            if with_snapshot:
                self.assertEqual(daemon.ctl_json("planes")[0]["generation"], 1)
            os.unlink(fill)
            lab.wait_for(lambda: daemon.refresh() and os.path.exists(daemon.uri_path()), what="the address of the PMIx server")
            self.assertEqual(daemon.ctl_json("planes")[0]["generation"], 1)
            self.assertEqual(daemon.tool("register").returncode, 0)
            stack.close()
            daemon.start()

    def test_the_background_is_no_callers(self):
        """Neither its umask nor its folder; what was named relative to that stays what it was."""
        self.daemon.configure({"fabricd": {"rundir": "run", "store": "fabricd.db", "interval": 0,
                                           "probe": f"file:{os.path.relpath(self.path, self.daemon.dir)}"}})
        self.daemon.conf = os.path.basename(self.daemon.conf)
        self.addCleanup(os.umask, os.umask(0))
        done = self.daemon.run_once("--interval", "0")
        os.umask(0o022)
        self.assertEqual((done.returncode, versions.unwarned(done.stderr)), (0, ""))
        pid = self.daemon.status()["pid"]
        self.addCleanup(lab.Held(pid).signal, signal.SIGTERM)
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            self.assertIn("Umask:\t0022\n", file.read())
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        self.assertEqual((mode(self.daemon.store), mode(self.rundir, "lock")), (0o640, 0o640))
        self.daemon.until("generation", generation=1)
        done = self.daemon.ctl("reload")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.slower()
        self.assertEqual(self.daemon.refresh()["generation"], 2)

    def test_once_ends_with_any_number_of_descriptors(self):
        ended = [lab.run(["prlimit", f"--nofile={n}", *self.daemon.command("--once")], cwd=self.daemon.dir, env=self.daemon.env).returncode
                 for n in range(8, 24, 3)]
        self.assertEqual(set(ended), {0, 1}, ended)
        self.assertEqual(ended, sorted(ended, reverse=True))


class Strangers(Case):
    """What others could have put there, or could put there."""

    def setUp(self):
        super().setUp()
        self.elsewhere = os.path.join(lab.tmpdir(), "elsewhere")
        lab.replace_file(self.elsewhere, "not ours")

    def check_refused(self, *parts, content=()):
        done = self.daemon.run_once("--foreground")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertEqual(sorted(os.listdir(self.rundir)), sorted(content))

    def check_elsewhere(self):
        with open(self.elsewhere, encoding="ascii") as file:
            self.assertEqual(file.read(), "not ours")
        self.assertEqual(mode(self.elsewhere), 0o644)

    @unittest.skipUnless(os.geteuid() == 0, "root only")
    def test_directories_of_others(self):
        """Which others may write to, or own, or may put another one in the place of. In a sticky folder, as /tmp is, nobody may."""
        nobody, above = pwd.getpwnam("nobody"), self.daemon.dir
        os.mkdir(self.rundir)
        os.symlink(self.rundir, self.elsewhere + ".link")
        for path, bits, owner, group, said in (
                *((self.rundir, bits, 0, 0, f"{self.rundir}: others may write to it") for bits in (0o777, 0o1777, 0o775, 0o757)),
                (self.rundir, 0o755, nobody.pw_uid, nobody.pw_gid, f"{self.rundir}: another user owns it"),
                (above, 0o755, nobody.pw_uid, 0, f"{above}: another user owns it"),
                (above, 0o775, 0, nobody.pw_gid, f"{above}: a group may write to it"),
                (above, 0o777, 0, 0, f"{above}: all users may write to it")):
            with self.subTest(said, bits=oct(bits)):
                os.chown(path, owner, group)
                os.chmod(path, bits)
                self.check_refused(said)
                self.assertEqual(mode(path), bits)
                if path == above:
                    self.daemon.args = ["--rundir", self.elsewhere + ".link"]
                    self.check_refused(said)
                    self.daemon.args = []
                os.chown(path, 0, 0)
                os.chmod(path, 0o755)
        os.chmod(above, 0o1777)
        self.daemon.start()

    def test_a_file_is_not_written_through_another_name(self):
        self.daemon.start()
        os.link(self.elsewhere, os.path.join(self.rundir, ".ib0.snap.new"))
        self.slower()
        self.assertEqual(self.daemon.refresh()["generation"], 2)
        snapshot = os.path.join(self.rundir, "ib0.snap")
        os.unlink(snapshot)
        os.symlink(self.elsewhere, snapshot)
        self.daemon.refresh()
        self.assertFalse(os.path.islink(snapshot))
        self.assertEqual(self.daemon.ctl_json("planes")[0]["generation"], 2)
        self.daemon.stop()
        os.link(self.elsewhere, os.path.join(self.rundir, "fabricd.uri.new"))
        os.symlink(self.elsewhere, os.path.join(self.rundir, ".pmix-uri"))  # the PMIx library writes that
        self.daemon.start()
        self.assertEqual(self.daemon.tool("register").returncode, 0)
        self.check_elsewhere()

    def test_a_lock_that_is_another_file(self):
        os.mkdir(self.rundir)
        lock = os.path.join(self.rundir, "lock")
        for make, *said in ((lambda path: os.link(self.elsewhere, path),), (lambda path: os.symlink(self.elsewhere, path),),
                            (os.mkfifo, "remove it")):
            make(lock)
            self.check_refused(lock, *said, content=["lock"])
            self.check_elsewhere()
            os.unlink(lock)
        self.daemon.start()

    def test_a_folder_of_the_librarys_that_is_not(self):
        """It would be opened to all, and emptied of what looks like the library's."""
        os.mkdir(self.rundir)
        folder, pmix = lab.tmpdir(), os.path.join(self.rundir, "pmix")
        os.chmod(folder, 0o700)
        lab.replace_file(os.path.join(folder, "pmix.photos"), "not ours")
        os.symlink(folder, pmix)
        self.daemon.run_once()
        self.check_refused(pmix, "it is a link", content=["ib0.snap", "lock", "pmix"])
        self.assertEqual((os.listdir(folder), mode(folder)), (["pmix.photos"], 0o700))
        os.unlink(pmix)
        if os.geteuid() == 0:
            os.mkdir(pmix)
            lab.replace_file(os.path.join(pmix, "pmix.photos"), "not ours")
            os.chown(pmix, pwd.getpwnam("nobody").pw_uid, 0)
            self.check_refused(pmix, "not a folder of fabricd", content=["ib0.snap", "lock", "pmix"])
            self.assertEqual(os.listdir(pmix), ["pmix.photos"])
            shutil.rmtree(pmix)
        self.daemon.start()


if __name__ == "__main__":
    unittest.main()
