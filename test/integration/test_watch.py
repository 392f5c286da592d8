"""What changes is followed as it is published, paged through afterwards, and shown with LIDs and widths."""
import json
import re
import time
import unittest

import lab


class Watching(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lab.require("ibsim", "opensm")
        cls.sim = lab.Ibsim(lab.fabric("fattree2:3,2,3"))
        cls.addClassCleanup(cls.sim.quit)
        cls.manager = lab.OpenSM(cls.sim)
        cls.addClassCleanup(cls.manager.stop)

    def setUp(self):
        self.addCleanup(self.sim.wait_active, "leaf1", 2)
        self.addCleanup(self.sim.relink, "leaf1", 2)
        self.daemon = lab.Fabricd(self.sim, config={"fabricd": {"interval": 0}, "changes": {"flap_count": 0}})
        self.addCleanup(self.daemon.stop)
        self.daemon.wait_ready()

    def unplugged(self):
        self.sim.unlink("leaf1", 2)
        self.daemon.refresh()

    def plugged(self):
        self.sim.relink("leaf1", 2)
        self.sim.wait_active("leaf1", 2)
        self.daemon.refresh()

    def switched_on(self, programs):
        """It says nothing before the first change: changes until it does."""
        while not programs.lines():
            self.unplugged()
            self.plugged()

    def test_words_as_they_are_published(self):
        ctl = [lab.program("fabricctl"), "--rundir", self.daemon.rundir]
        programs = lab.Watch([*ctl, "--format", "json", "watch"])
        people = lab.Watch([*ctl, "watch"])
        self.addCleanup(people.stop)
        self.addCleanup(programs.stop)
        people.wait(r"generation 1 is published; what changes now is told here")
        self.switched_on(programs)
        self.unplugged()
        away = self.daemon.status()["generation"]
        self.plugged()
        back = self.daemon.status()["generation"]
        people.wait(rf"generation {away}: host-missing node0002 HCA-1: there -> missing \(it is not seen")
        people.wait(rf"generation {back}: host-back node0002 HCA-1: missing -> there")
        history = [one for one in self.daemon.control("history")["changes"] if away <= one["generation"] <= back]
        programs.wait(re.escape(json.dumps(history[-1], separators=(",", ":"))))
        told = [json.loads(line) for line in programs.lines()]
        self.assertEqual([one for one in told if away <= one["generation"] <= back], history)

    def test_the_history_says_what_it_leaves_out(self):
        for _ in range(3):
            self.unplugged()
            self.plugged()
        everything = self.daemon.ctl_json("history", "--all")
        n = len(everything)
        self.assertGreater(n, 20)
        self.assertEqual(self.daemon.ctl_json("history"), everything)
        out = self.daemon.ctl("history", "--limit", "5").stdout
        self.assertIn("the latest 5 changes; there are older ones: --all, --limit N or --since TIME", out)
        self.assertNotIn("older ones", self.daemon.ctl("history", "--all").stdout)
        self.assertIn("the latest 1 change;", self.daemon.ctl("history", "node0002", "-n", "1").stdout)
        newest = self.daemon.status()["generation"]
        self.unplugged()
        self.assertEqual(len(self.daemon.control("history", limit=0, to=newest)["changes"]), n)

    def test_since(self):
        self.assertEqual(self.daemon.ctl_json("history", "--since", "2h"), self.daemon.ctl_json("history"))
        self.assertEqual(self.daemon.ctl_json("history", "--since", "2020-01-01"), self.daemon.ctl_json("history"))
        self.assertEqual(self.daemon.ctl_json("history", "--since", "2100-01-01T08:00"), [])
        published = self.daemon.ctl_json("status")["published"]
        time.sleep(1)  # what comes now is of another second
        self.assertGreater(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()), published[:19])
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        self.unplugged()
        kinds = {one["kind"] for one in self.daemon.ctl_json("history", "--since", since)}
        self.assertIn("host-missing", kinds)
        self.assertNotIn("host-added", kinds)

    def test_lids_widths_and_what_is_down(self):
        seen = self.sim.run(["ibnetdiscover"]).stdout
        for switch in self.daemon.ctl_json("switches"):
            self.assertRegex(seen, rf'"{switch["name"]}" .*port 0 lid {switch["lid"]} ')
        self.assertEqual({link["width"] for link in self.daemon.ctl_json("links")}, {"4xHDR"})
        for device in self.daemon.ctl_json("devices"):
            self.assertRegex(seen, rf'\# lid {device["lid"]} lmc 0 "leaf')
        self.unplugged()
        self.assertEqual([d["host"] for d in self.daemon.ctl_json("devices", "--down")], ["node0002"])
        self.assertEqual([link["a"] for link in self.daemon.ctl_json("links", "--down")], ["node0002:HCA-1"])
        self.assertEqual([c["host"] for c in self.daemon.ctl_json("coords", "--down")], ["node0002"])
        self.assertEqual(len(self.daemon.ctl_json("groups", "--down")), 1)
        self.assertRegex(self.daemon.ctl("show", "node0002").stdout, r"(?s)latest changes:.*host-missing")


if __name__ == "__main__":
    unittest.main()
