"""The run directory says what is served now: while sweeps fail, and after somebody removed a snapshot."""
import os
import unittest

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


if __name__ == "__main__":
    unittest.main()
