"""Swaps on a running subnet, one hand at a time, while a stock tool watches; the other kinds: test/sim/test_swaps.py.

After each sweep: the expected words in `fabricctl diff` and no others, one pair of events for the generation and no
other, and the costs of a fabricd that has never seen the fabric before, read in the run directory and over PMIx.
"""
import re
import unittest

import afresh
import lab

HOST, LEAF = "node0003", "leaf2"
ELSEWHERE = ("leaf3", 9)  # a port that nobody uses


class Swap(unittest.TestCase):
    def setUp(self):
        lab.require("ibsim", "opensm")
        net = lab.fabric("fattree2:4,2,2")
        self.sim = lab.Ibsim(re.sub(r"^Switch\s+\d+ ", "Switch 20 ", net, flags=re.MULTILINE))  # room for more cables
        self.addCleanup(self.sim.quit)
        self.manager = lab.OpenSM(self.sim)
        self.addCleanup(self.manager.stop)
        self.daemon = lab.Fabricd(self.sim, {"changes": {"flap_count": 0, "retain_seconds": 600}})
        self.addCleanup(self.daemon.stop)
        self.tool = self.daemon.watch()
        self.addCleanup(self.tool.stop)
        self.tool.wait("^watching$")
        self.generation, self.events = 1, []
        self.indices = self.places()
        self.as_afresh()

    def places(self):
        return {device["host"]: device["index"] for device in self.daemon.ctl_json("devices")}

    def active(self, node, *ports):
        for port in ports:
            self.sim.wait_active(node, port)

    def as_afresh(self):
        newcomer = afresh.newcomer(self.sim)
        self.assertEqual(afresh.costs(self.daemon), afresh.costs(newcomer))
        self.assertEqual(afresh.cables(self.daemon, newcomer), afresh.cables(newcomer))
        self.assertEqual(afresh.told(self.daemon), self.daemon.ctl_json("matrix")["costs"])

    def becomes(self, *words):
        """A sweep now, and what it comes to."""
        self.assertTrue(self.daemon.refresh()["changed"])
        self.generation += 1
        changes = self.daemon.ctl_json("diff")["changes"]
        # the subnet manager deals LIDs as it likes
        self.assertEqual(sorted((c["kind"], c["what"], c["before"], c["after"]) for c in changes if c["kind"] != "lid"),
                         sorted(words))
        self.assertTrue(all(c["why"] for c in changes), changes)
        self.events += [f"PMIX_FABRIC_{name} index 1 generation {self.generation} plane ib0"
                        for name in ("UPDATE_PENDING", "UPDATED")]
        self.tool.wait(f"^PMIX_FABRIC_UPDATED .*generation {self.generation} .*\n")
        self.assertEqual([line for line in self.tool.lines() if line.startswith("PMIX_")], self.events)
        self.assertEqual(self.places(), self.indices)  # nothing here makes anybody move
        self.as_afresh()

    def test_a_host_moves(self):
        port = self.sim.cable(LEAF, HOST)
        self.sim.unlink(LEAF, port)
        self.sim.link(*ELSEWHERE, HOST, 1)
        self.active(*ELSEWHERE)
        # a port that the netfile does not name is one for QDR
        self.becomes(("host-moved", f"{HOST} HCA-1[1]", f"{LEAF}[{port}], 4xHDR", "leaf3[9], 4xQDR"))

    def test_a_leaf_is_replaced_and_swept_meanwhile(self):
        self.sim.unlink(LEAF)
        gone, back, hosts = ("there", "missing"), ("missing", "there"), ("node0003 HCA-1", "node0004 HCA-1")
        self.becomes(("switch-missing", LEAF, *gone), *(("host-missing", host, *gone) for host in hosts))
        self.sim.guid(LEAF, 0x9a0001)
        self.sim.relink(LEAF)
        self.active(LEAF, 1, 2, 3, 4)
        self.becomes(("switch-replaced", LEAF, "0x0000000000200001", "0x00000000009a0001"),
                     *(("host-back", host, *back) for host in hosts))


if __name__ == "__main__":
    unittest.main()
