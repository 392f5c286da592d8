"""The run directory says what is served now: while sweeps fail, and after somebody removed a snapshot."""
import os
import unittest

import fabric_text
import sim


class Rundir(unittest.TestCase):
    def setUp(self):
        self.site = sim.Site("fattree2:3,2,2")
        self.addCleanup(self.site.free)

    def test_it_is_stale_while_sweeps_fail(self):
        mark = os.path.join(self.site.rundir, "stale")
        self.assertFalse(os.path.exists(mark))
        self.site.sweeps(sim.FAIL)
        self.site.ctl("refresh")
        self.assertTrue(os.path.exists(mark))
        self.site.sweeps(sim.GOOD)
        self.assertFalse(self.site.refresh()["changed"])
        self.assertFalse(os.path.exists(mark))

    def test_a_snapshot_that_was_removed_comes_back(self):
        path = os.path.join(self.site.rundir, "ib0.snap")
        with open(path, "rb") as file:
            before = file.read()
        os.unlink(path)
        self.assertFalse(self.site.refresh()["changed"])
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)

    def read(self, plane):
        with open(self.path(plane), "rb") as file:
            return file.read()

    def path(self, plane):
        return os.path.join(self.site.rundir, plane + ".snap")

    def spoil(self, plane, how):
        path = self.path(plane)
        whole = self.read(plane)
        if how == "hidden":
            os.chmod(path, 0o600)
        elif how == "link":
            os.rename(path, path + ".other")
            os.symlink(path + ".other", path)
        else:
            with open(path, "r+b") as file:
                if how == "flipped":
                    file.seek(len(whole) // 2)
                    file.write(bytes([whole[len(whole) // 2] ^ 4]))
                elif how == "longer":
                    file.write(whole + b"x")
                else:
                    file.truncate({"cut": len(whole) // 3, "empty": 0}[how])

    WAYS = "flipped", "cut", "empty", "longer", "hidden", "link"

    def test_a_snapshot_that_was_damaged_is_written_again_at_the_next_sweep(self):
        before = self.read("ib0")
        for how in self.WAYS:
            self.spoil("ib0", how)
            self.assertFalse(self.site.refresh()["changed"])
            self.assertEqual((how, self.read("ib0"), os.lstat(self.path("ib0")).st_mode), (how, before, 0o100644))
            self.assertIn("ib0.snap", self.site.journal().rsplit("writing it again", 1)[0].rsplit("run directory:", 1)[1])

    def test_also_where_another_plane_changes(self):
        self.site.free()
        self.site = sim.Recorded(fabric_text.without(sim.fabric("rails:2,2,6,1", "capture"), "spine1"))
        self.addCleanup(self.site.free)
        planes = sorted(name[:-5] for name in os.listdir(self.site.rundir) if name.endswith(".snap"))
        before = {plane: self.read(plane) for plane in planes}
        self.assertEqual(len(planes), 4)
        self.site.show(fabric_text.slower(fabric_text.without(sim.fabric("rails:2,2,6,1", "capture"), "spine1"), "leaf1-1"))
        for plane in planes:
            self.spoil(plane, "flipped")
        self.assertTrue(self.site.refresh()["changed"])
        same = [plane for plane in planes if self.read(plane) == before[plane]]
        self.assertTrue(0 < len(same) < 4, same)
        self.assertEqual(len(self.site.ctl_json("planes")), 4)

    def test_a_reader_may_ask_for_it_and_once_a_second(self):
        before = self.read("ib0")
        self.spoil("ib0", "cut")
        self.assertEqual(self.site.control("mend")["mended"], 1)
        self.assertEqual(self.read("ib0"), before)
        self.spoil("ib0", "cut")
        self.assertEqual(self.site.control("mend")["mended"], 0)
        self.site.advance(1)
        self.assertEqual(self.site.control("mend")["mended"], 1)
        self.assertEqual(self.read("ib0"), before)


if __name__ == "__main__":
    unittest.main()
