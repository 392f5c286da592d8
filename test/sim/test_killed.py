"""Whatever becomes of a sweep, what was served goes on being served, and it is said since when it may be old. test_crash.c ends the daemon
wherever it can end; test/integration/test_killed.py has a real subnet and real children."""
import unittest

import sim


class Sweeps(unittest.TestCase):
    def test_that_fail_are_said_and_nothing_else_changes(self):
        site = sim.Site("fattree3:4", {"fabricd": {"deadline": 5}})
        self.addCleanup(site.free)
        served = site.ctl_json("matrix"), site.ctl_json("devices")
        for how, why in ((sim.FAIL, "the port is down"), (sim.CRASH, r"signal 6 \(Aborted\)"), (sim.HANG, "timed out after 5 s: killed")):
            with self.subTest(why):
                errors = len(site.errors())
                site.sweeps(how)
                answer = site.control("refresh")
                self.assertFalse(answer["ok"])
                self.assertRegex(answer["message"], why)
                self.assertEqual(site.errors()[errors:], [answer["message"]])
                status = site.status()
                self.assertEqual((status["stale"], status["stale_reason"], status["generation"]), (True, answer["message"], 1))
                self.assertRegex(status["stale_since"], r"^\d{4}-\d\d-\d\dT")
                self.assertEqual((site.ctl_json("matrix"), site.ctl_json("devices")), served)
                site.advance(1)
                self.assertFalse(site.control("refresh")["ok"])
                self.assertEqual(site.status()["stale_since"], status["stale_since"])  # since the first that failed
                self.assertEqual(len(site.errors()), errors + 2)
                site.sweeps(sim.GOOD)
                self.assertLessEqual({"ok": True, "generation": 1, "changed": False, "partial": False}.items(), site.refresh().items())
                status = site.status()
                self.assertEqual((status["stale"], status["stale_since"]), (False, None))


if __name__ == "__main__":
    unittest.main()
