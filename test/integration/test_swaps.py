"""Each kind of swap on a running subnet, one hand at a time, while a stock tool watches.

After each sweep: the expected words in `fabricctl diff` and no others, one pair of events for the generation and no
other, and the costs of a fabricd that has never seen the fabric before, read in the run directory and over PMIx.
"""
import re
import unittest

import afresh
import lab

HOST, LEAF, SPINE = "node0003", "leaf2", "spine2"
GUID, NEW = "0x0000000000100004", "0x0000000000990001"
ELSEWHERE = ("leaf3", 9)  # a port that nobody uses


class Swap(unittest.TestCase):
    def setUp(self):
        lab.require("ibsim", "opensm")
        net = lab.fabric("fattree2:4,2,2")
        self.net = re.sub(r"^Switch\s+\d+ ", "Switch 20 ", net, flags=re.MULTILINE)  # room for more cables
        self.sim = lab.Ibsim(self.net)
        self.addCleanup(self.sim.quit)
        self.manager = lab.OpenSM(self.sim)
        self.addCleanup(lambda: self.manager.stop())
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

    def leaf_goes(self):
        self.sim.unlink(LEAF)
        gone = ("there", "missing")
        self.becomes(("switch-missing", LEAF, *gone), ("host-missing", "node0003 HCA-1", *gone),
                     ("host-missing", "node0004 HCA-1", *gone))

    def leaf_is_back(self, *words):
        self.sim.relink(LEAF)
        self.active(LEAF, 1, 2, 3, 4)
        back = ("missing", "there")
        self.becomes(*words, ("host-back", "node0003 HCA-1", *back), ("host-back", "node0004 HCA-1", *back))

    def test_an_hca_is_replaced(self):
        self.sim.guid(HOST, int(NEW, 16))
        self.becomes(("hca-replaced", f"{HOST} HCA-1", GUID, NEW))

    def test_an_hca_is_replaced_and_swept_meanwhile(self):
        port = self.sim.cable(LEAF, HOST)
        self.sim.unlink(LEAF, port)
        self.becomes(("host-missing", f"{HOST} HCA-1", "there", "missing"))
        self.sim.guid(HOST, int(NEW, 16))
        self.sim.relink(LEAF, port)
        self.active(LEAF, port)
        self.becomes(("hca-replaced", f"{HOST} HCA-1", GUID, NEW))

    def test_a_host_moves(self):
        port = self.sim.cable(LEAF, HOST)
        self.sim.unlink(LEAF, port)
        self.sim.link(*ELSEWHERE, HOST, 1)
        self.active(*ELSEWHERE)
        # a port that the netfile does not name is one for QDR
        self.becomes(("host-moved", f"{HOST} HCA-1[1]", f"{LEAF}[{port}], 4xHDR", "leaf3[9], 4xQDR"))

    def test_two_hosts_change_places(self):
        mine, other = self.sim.cable(LEAF, HOST), self.sim.cable("leaf3", "node0005")
        self.sim.unlink(LEAF, mine)
        self.sim.unlink("leaf3", other)
        self.sim.link(LEAF, mine, "node0005", 1)
        self.sim.link("leaf3", other, HOST, 1)
        self.active(LEAF, mine)
        self.active("leaf3", other)
        self.becomes(("host-moved", f"{HOST} HCA-1[1]", f"{LEAF}[{mine}]", f"leaf3[{other}]"),
                     ("host-moved", "node0005 HCA-1[1]", f"leaf3[{other}]", f"{LEAF}[{mine}]"))

    def test_a_cable_moves(self):
        near, far = self.sim.cable(LEAF, SPINE), self.sim.cable(SPINE, LEAF)
        cable = f"{LEAF}[{near}] - {SPINE}[{far}]"
        self.sim.unlink(LEAF, near)
        self.becomes(("link-lost", cable, "4xHDR", ""))
        self.sim.relink(LEAF, near)
        self.active(LEAF, near)
        self.becomes(("link-back", cable, "lost", "4xHDR"))
        self.sim.unlink(LEAF, near)
        self.sim.link(LEAF, near, SPINE, 9)
        self.active(LEAF, near)
        self.becomes(("cable-moved", cable, f"{SPINE}[{far}], 4xHDR", f"{SPINE}[9], 4xQDR"))

    def test_a_cable_at_another_speed(self):
        near, far = self.sim.cable(LEAF, SPINE), self.sim.cable(SPINE, LEAF)
        for before, after in (("4xHDR", "4xEDR"), ("4xEDR", "4xHDR")):
            self.manager.stop()
            self.sim.quit()
            for end in (f'[{near}] "{SPINE}"[{far}]', f'[{far}] "{LEAF}"[{near}]'):
                self.net = re.sub(rf"(?m)^({re.escape(end)} .*) {before}$", rf"\1 {after}", self.net)
            lab.replace_file(self.sim.netfile, self.net)
            self.sim.restart()
            self.manager = lab.OpenSM(self.sim)
            self.becomes(("link-rate", f"{LEAF}[{near}] - {SPINE}[{far}]", before, after))

    def test_a_leaf_restarts(self):
        self.leaf_goes()
        self.leaf_is_back(("switch-back", LEAF, "missing", "there"))

    def test_a_leaf_restarts_as_announced(self):
        """All that comes of it is planned, and stands in the leaf's history."""
        self.daemon.ctl("expect", LEAF, "--replace")
        self.leaf_goes()
        self.assertTrue(all(c["planned"] for c in self.daemon.ctl_json("diff")["changes"]))
        for host in ("node0003", "node0004"):
            self.assertEqual(self.daemon.ctl("forget", host).returncode, 0)
        self.generation += 2
        told = self.daemon.ctl_json("diff", str(self.generation - 2), str(self.generation))["changes"]
        self.assertEqual({c["kind"] for c in told}, {"host-lost", "switch-lost", "index"})
        self.sim.relink(LEAF)
        self.active(LEAF, 1, 2, 3, 4)
        self.daemon.refresh()
        told += self.daemon.ctl_json("diff")["changes"]
        self.assertEqual([c for c in told if not c["planned"] and c["kind"] != "lid"], [])
        kinds = [c["kind"] for c in self.daemon.ctl_json("history", LEAF)]
        self.assertEqual(kinds.count("host-missing"), 2, kinds)

    def test_a_leaf_is_replaced(self):
        self.sim.guid(LEAF, 0x9a0001)
        self.becomes(("switch-replaced", LEAF, "0x0000000000200001", "0x00000000009a0001"))

    def test_a_leaf_is_replaced_and_swept_meanwhile(self):
        self.leaf_goes()
        self.sim.guid(LEAF, 0x9a0001)
        self.leaf_is_back(("switch-replaced", LEAF, "0x0000000000200001", "0x00000000009a0001"))

    def test_a_spine_is_lost_and_returned(self):
        self.sim.unlink(SPINE)
        self.becomes(("switch-lost", SPINE, "0x0000000000200005", ""))
        self.sim.relink(SPINE)
        self.active(SPINE, 1, 2, 3, 4)
        self.becomes(("switch-back", SPINE, "lost", "there"))

    def test_a_spine_is_replaced_with_a_cable_less(self):
        self.manager.stop()  # or it takes the ports of the new one down for a moment, as the sweep may see
        self.sim.guid(SPINE, 0x9a0002)
        self.sim.unlink(SPINE, 4)
        self.becomes(("switch-replaced", SPINE, "0x0000000000200005", "0x00000000009a0002"),
                     ("link-lost", f"leaf4[4] - {SPINE}[4]", "4xHDR", ""))


if __name__ == "__main__":
    unittest.main()
