"""The simulation for tests in Python: what it is asked it answers, and time passes only when a test says so."""
import unittest

import sim


class Site(unittest.TestCase):
    def setUp(self):
        self.site = sim.Site("fattree2:3,2,2", {"changes": {"retain_seconds": 10}})
        self.addCleanup(self.site.free)

    def test_time_passes_when_it_is_told_to(self):
        self.site.pull("leaf1", self.site.cable("leaf1", "node0002"))
        self.site.refresh()
        self.site.advance(9)
        self.assertEqual(len(self.site.ctl_json("devices")), 6)
        self.site.advance(2)
        self.assertEqual([device["host"] for device in self.site.ctl_json("devices")],
                         ["node0001", "node0003", "node0004", "node0005", "node0006"])

    def test_the_same_hands_make_the_same_journal(self):
        journals = []
        for _ in range(2):
            site = sim.Site("fattree2:3,2,2", seed=7)
            site.guid("node0003", 0x990000)
            site.refresh()
            site.advance(100)
            journals.append(site.journal())
            site.free()
        self.assertEqual(*journals)
        self.assertIn("hca-replaced", journals[0])

    def test_a_killed_daemon_goes_on_from_its_store(self):
        generation = self.site.generation()
        self.site.kill9()
        self.assertFalse(self.site.alive())
        self.site.start()
        self.assertEqual(self.site.generation(), generation)


if __name__ == "__main__":
    unittest.main()
