"""The run directory and the store's file under a running fabricd: as others find them, and as others leave them."""
import os
import shutil
import stat
import unittest

import fabric_text
import lab


def mode(*path):
    return stat.S_IMODE(os.stat(os.path.join(*path)).st_mode)


class Directory(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.whole = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.path, self.whole)

    def start(self, **options):
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}}, start=False)
        self.addCleanup(daemon.stop)
        before = os.umask(options.get("umask", 0o022))
        self.addCleanup(os.umask, before)
        if "directory" in options:
            os.mkdir(daemon.rundir)
            os.chmod(daemon.rundir, options["directory"])
        daemon.start()
        os.umask(before)
        return daemon

    def test_a_narrow_umask_does_not_keep_readers_out(self):
        daemon = self.start(umask=0o077)
        self.assertEqual(mode(daemon.rundir), 0o755)
        for name in ("ib0.snap", "fabricd.uri"):
            self.assertEqual(mode(daemon.rundir, name), 0o644, name)
        lab.replace_file(self.path, fabric_text.slower(self.whole, "leaf1"))
        daemon.refresh()
        self.assertEqual(mode(daemon.rundir, "ib0.snap"), 0o644)

    def test_a_private_directory_stays_so_and_keeps_what_is_in_it(self):
        """The PMIx library would open it to all, and remove everything in it at the end."""
        daemon = self.start(directory=0o700)
        os.mkdir(os.path.join(daemon.rundir, "photos"))
        lab.replace_file(os.path.join(daemon.rundir, "photos", "one"), "not ours")
        self.assertEqual(mode(daemon.rundir), 0o700)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(sorted(os.listdir(daemon.rundir)), ["ib0.snap", "lock", "photos"])
        self.assertEqual(os.listdir(os.path.join(daemon.rundir, "photos")), ["one"])

    def test_a_snapshot_that_was_removed_comes_back(self):
        daemon = self.start()
        os.unlink(os.path.join(daemon.rundir, "ib0.snap"))
        self.assertLessEqual({"ok": True, "generation": 1, "changed": False, "partial": False}.items(),
                             daemon.refresh().items())
        self.assertEqual(daemon.ctl_json("planes")[0]["generation"], 1)

    def test_a_run_directory_that_was_removed_comes_back(self):
        daemon = self.start()
        shutil.rmtree(daemon.rundir)
        daemon.hup()
        lab.wait_for(lambda: os.path.exists(os.path.join(daemon.rundir, "ib0.snap")), what="the snapshot")
        self.assertEqual(daemon.ctl_json("status")["generation"], 1)
        self.assertEqual(daemon.tool("register").returncode, 0)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(sorted(os.listdir(daemon.rundir)), ["ib0.snap", "lock"])

    def test_a_store_that_was_removed_is_not_written_to(self):
        daemon = self.start()
        aside = daemon.store + ".aside"
        os.rename(daemon.store, aside)
        lab.replace_file(self.path, fabric_text.slower(self.whole, "leaf1"))
        answer = daemon.control("refresh")
        self.assertFalse(answer["ok"])
        self.assertIn("moved or removed", answer["message"])
        self.assertEqual(daemon.status()["generation"], 1)
        os.rename(aside, daemon.store)
        self.assertEqual(daemon.refresh()["generation"], 2)

    def test_once_ends_with_any_number_of_descriptors(self):
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}}, start=False)
        ended = [lab.run(["prlimit", f"--nofile={n}", *daemon.command("--once")], cwd=daemon.dir, env=daemon.env,
                         timeout=10).returncode for n in range(8, 24)]
        self.assertEqual(set(ended), {0, 1}, ended)
        self.assertEqual(ended, sorted(ended, reverse=True))


if __name__ == "__main__":
    unittest.main()
