"""Sweeps of one switch, as the probe makes them, and what its processes leave behind. The rest: test/sim/test_partial_sweep.py."""
import re
import unittest

import lab
from test_monitor import gone, light_sweeper

SMALL = "fattree2:4,2,4"


class Case(unittest.TestCase):
    def simulate(self, spec=SMALL):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric(spec))
        self.addCleanup(sim.quit)
        sim.sweep()
        return sim

    def start(self, spec=SMALL, **changes):
        """A simulated subnet and a daemon that tells all; it looks at nothing by itself, unless `changes` say so."""
        self.sim = self.simulate(spec)
        self.serve(changes)

    def serve(self, changes=None, probe="ibnetdisc"):
        config = {"fabricd": {"log": "debug", "probe": probe}, "changes": dict({"light_sweep": 0, "flap_count": 0}, **changes or {})}
        self.daemon = lab.Fabricd(self.sim, config=config)
        self.addCleanup(self.daemon.stop)

    def pull(self, switch, other):
        """Pull the cable between the two; its port."""
        port = self.sim.cable(switch, other)
        self.sim.unlink(switch, port)
        return port

    def refresh(self, *args):
        return self.daemon.ctl_json("refresh", *args)

    def switch(self, name, scope="switch"):
        """Sweep that switch only; the changes."""
        answer = self.refresh("--switch", name)
        self.assertEqual((answer["scope"], answer["scope_reason"] is None), (scope, scope == "switch"), answer)
        return [(change["kind"], change["what"]) for change in answer["changes"]]

    def packets(self):
        """How many each sweep has sent so far: those of a part, those of everything."""
        log = self.daemon.log()
        return [[int(n) for n in re.findall(pattern, log)]
                for pattern in (r"\d+ switch(?:es)? read anew with (\d+) packets", r"everything discovered with (\d+) packets")]

    def same(self):
        """Is what is served what a sweep of everything sees?"""
        answer = self.daemon.control("verify")
        self.assertTrue(answer["ok"], answer)
        self.assertEqual(answer["changes"], [])

    def places(self):
        """Where everybody stands, as jobs have it."""
        return {row["host"]: (row["plane"], row["index"], row["logical"], row["physical"])
                for row in self.daemon.ctl_json("devices")}

    def generation(self):
        return self.daemon.status()["generation"]


class Switch(Case):
    """fabricctl refresh --switch"""

    def test_what_changed_there_is_found_with_few_packets(self):
        self.start("fattree2:8,4,8")
        here, elsewhere = self.pull("leaf1", "spine2"), self.pull("leaf7", "spine4")
        self.assertEqual(self.switch("leaf1"), [("link-lost", f"leaf1[{here}] - spine2[1]")])
        self.assertEqual([c["what"] for c in self.daemon.ctl_json("diff")["changes"]], [f"leaf1[{here}] - spine2[1]"])
        part, whole = self.packets()
        self.assertEqual((len(part), len(whole)), (1, 1))
        self.assertLess(part[0], whole[0] / 4)  # two switches of twelve, and the hosts of one
        self.assertEqual(self.switch("leaf1"), [])
        self.assertEqual(self.generation(), 2)
        answer = self.refresh()
        self.assertEqual([c["what"] for c in answer["changes"]], [f"leaf7[{elsewhere}] - spine4[7]"])
        self.assertEqual((answer["scope"], answer["scope_reason"]), ("fabric", None))
        # and with what that sweep saw it goes on
        self.sim.relink("leaf7", elsewhere)
        self.sim.sweep()
        self.assertEqual(self.switch("spine4"), [("link-back", f"leaf7[{elsewhere}] - spine4[7]")])
        guid = next(row["id"] for row in self.daemon.ctl_json("switches") if row["name"] == "leaf1")
        self.sim.relink("leaf1", here)
        self.sim.sweep()
        self.assertEqual(self.switch(guid), [("link-back", f"leaf1[{here}] - spine2[1]")])
        self.same()
        self.assertEqual(self.daemon.errors(), [])

    def test_a_host_has_left_another_leaf(self):
        """The leaf that had its cable is read, too."""
        self.start()
        port = self.pull("leaf1", "node0002")
        self.pull("leaf2", "node0006")
        self.sim.link("leaf1", port, "node0006", 1)
        self.sim.sweep()
        self.assertIn(("host-moved", "node0006 HCA-1[1]"), self.switch("leaf1"))
        self.assertEqual(self.refresh()["changes"], [])

    def test_after_a_sweep_that_failed(self):
        """A part that answers does not say that the rest does."""
        self.start()
        self.sim.command('Error "leaf3" 100')
        self.assertEqual(self.daemon.control("refresh")["error"], -17)
        self.assertEqual(self.daemon.control("refresh", switch="leaf1")["error"], -17)
        self.assertTrue(self.daemon.status()["stale"])
        self.sim.command('Error "leaf3" 0')
        answer = self.daemon.refresh(switch="leaf1")
        self.assertEqual((answer["scope"], answer["scope_reason"]), ("fabric", "the last sweep failed"))
        self.assertFalse(self.daemon.status()["stale"])
        self.assertEqual(self.daemon.refresh(switch="leaf1")["scope"], "switch")


class Stops(Case):
    """The simulator has places for ten clients, and one that is killed keeps its place."""

    def test_no_place_is_left_taken(self):
        sim = self.simulate()
        daemon = lab.Fabricd(sim, config={"changes": {"light_sweep": 1}}, start=False)
        self.addCleanup(daemon.stop)
        for turn in range(14):
            daemon.start(wait=turn % 2 == 0)  # else it is stopped while it sweeps, or looks for the first time
            if turn % 2 == 0:
                lab.wait_for(lambda: daemon.status()["light_sweeps"] > 0, 20, "a light sweep")
            else:
                daemon.wait_up()
                if turn % 4 == 1:
                    lab.wait_for(lambda: daemon.status()["sweeping"] or daemon.status()["last_sweep"], what="a sweep")
            self.assertEqual(daemon.stop(), 0)
        daemon.start()
        lab.wait_for(lambda: daemon.status()["light_sweeps"] > 0, 20, "a light sweep")
        self.assertEqual(daemon.errors(), [])

    def test_one_that_hangs_is_killed(self):
        self.start(light_sweep=1)
        pid = lab.wait_for(lambda: light_sweeper(self.daemon), what="the light sweeps' child")
        lab.freeze(pid)
        self.assertEqual(self.daemon.stop(), 0)
        self.assertTrue(gone(pid))


if __name__ == "__main__":
    unittest.main()
