"""Findings compare like with like: links and ports of hosts that were built otherwise than most are one notice."""
import unittest

import sim
from wired import Fabric

CARD, OLD = "0x101b", "0x1017"


class Case(unittest.TestCase):
    def found(self, fabric):
        self.site = sim.Recorded(fabric.text())
        self.addCleanup(self.site.free)
        return [(f["kind"], f["where"]) for f in self.site.check()[1]]


class Rates(Case):
    def fabric(self):
        fabric = Fabric()
        for i in range(12):
            fabric.host(f"gpu{i:02} HCA-1", 1 + i % 2, 1 + i // 2)
        return fabric

    def test_another_card(self):
        fabric = self.fabric()
        for i in range(5):
            fabric.host(f"oss{i} HCA-1", 3, 1 + i, "4xEDR", OLD)
        self.assertEqual(self.found(fabric), [("other-kind", "oss[0-4]")])
        self.assertEqual(self.site.check()[0], 0)
        fabric.cables[-1] = (*fabric.cables[-1][:4], "4xFDR")  # one of them is slower than its like
        self.assertEqual(self.found(fabric), [("slow-link", "leaf3[5] - oss4 HCA-1[1]"), ("other-kind", "oss[0-3]")])
        self.assertIn("4 of 5 links of hosts of these models have 100 Gb/s", self.site.check()[1][0]["what"])

    def test_hosts_of_another_name(self):
        """With the same card, that can do more."""
        fabric = self.fabric()
        for i in range(2):
            fabric.host(f"login{i + 1} HCA-1", 3, 1 + i, "4xEDR")
        self.assertEqual(self.found(fabric), [("other-kind", "login[1-2]")])
        fabric = self.fabric()
        fabric.host("login1 HCA-1", 3, 1, "4xEDR")
        self.assertEqual(self.found(fabric), [("slow-link", "leaf3[1] - login1 HCA-1[1]")])

    def test_split_ports(self):
        fabric = self.fabric()
        for i in range(8):
            fabric.host(f"gpu{20 + i} HCA-1", 3, 1 + i, "2xHDR")
        self.assertEqual(self.found(fabric), [("other-kind", "gpu[20-27]")])
        fabric.host("gpu13 HCA-1", 2, 20, "2xHDR")
        self.assertEqual(self.found(fabric)[0], ("slow-link", "leaf2[20] - gpu13 HCA-1[1]"))

    def test_a_device_of_each_host(self):
        fabric = self.fabric()
        for i in range(5):
            fabric.host(f"gpu{i:02} HCA-2", 3, 1 + i, "4xEDR")
        found = self.found(fabric)
        self.assertIn(("other-kind", "gpu[00-04]"), found)
        self.assertNotIn("slow-link", [kind for kind, _ in found])

    def test_switches_of_two_models(self):
        fabric = Fabric(leaves=5)
        fabric.node("old1", "0xcf08", 36)
        fabric.node("old2", "0xcf08", 36)
        for leaf in (1, 2):
            for spine in (1, 2):
                fabric.cable(f"old{leaf}", 30 + spine, f"spine{spine}", 10 + leaf, "4xEDR")
        for i in range(5):
            fabric.host(f"gpu{i} HCA-1", 1 + i, 1)
        self.assertEqual(self.found(fabric), [("other-kind", "old[1-2],spine[1-2]")])
        fabric.cables = [cable if cable[:2] != ("old1", 31) else (*cable[:4], "4xFDR") for cable in fabric.cables]
        self.assertEqual(self.found(fabric)[0], ("slow-link", "spine1[11] - old1[31]"))

    def test_two_planes_have_the_same_kinds(self):
        fabric = self.fabric()
        for i in range(4):
            fabric.host(f"oss{i} HCA-1", 3, 1 + i, "4xEDR", OLD)
        fabric.node("other", "0xd2f0", 40)
        for i in range(6):
            fabric.node(f"gpu{i:02} HCA-9", CARD)
            fabric.cable(f"gpu{i:02} HCA-9", 1, "other", 1 + i, "4xHDR")
        for i in range(4):
            fabric.node(f"oss{i} HCA-9", OLD)
            fabric.cable(f"oss{i} HCA-9", 1, "other", 11 + i, "4xEDR")
        found = [f for f in self.found(fabric) if f[1].startswith("oss")]
        self.assertEqual(found, [("other-kind", "oss[0-3]")])


class Ports(Case):
    def fabric(self, n=12):
        fabric = Fabric()
        for i in range(n):
            fabric.host(f"gpu{i:02} HCA-1", 1 + i % 2, 1 + i // 2)
        return fabric

    def second(self, fabric, *hosts, model=CARD, system=None):
        for k, i in enumerate(hosts):
            fabric.host(f"gpu{i:02} HCA-2", 3, 1 + k, model=model, system=system and fabric.nodes[f"gpu{i:02} HCA-1"][0])

    def test_a_second_card(self):
        fabric = self.fabric()
        self.second(fabric, 0, 1, 2, 3)
        self.assertEqual(self.found(fabric), [("other-kind", "gpu[00-03]")])
        self.assertIn("2 cabled ports each, 8 of 12 such hosts have 1", self.site.check()[1][0]["what"])

    def test_two_hosts_of_one_name(self):
        fabric = self.fabric()
        self.second(fabric, 5)
        self.assertEqual(self.found(fabric), [("many-ports", "gpu05")])

    def test_one_card_is_of_one_host(self):
        fabric = self.fabric()
        self.second(fabric, 5, system=True)
        self.assertEqual(self.found(fabric), [("other-kind", "gpu05")])

    def test_two_generations(self):
        """The old hosts have one card of another model, the new ones two; one of each lacks a port."""
        fabric = self.fabric(9)
        self.second(fabric, *range(9))
        for i in range(4):
            fabric.host(f"gpu{20 + i} HCA-1", 3, 21 + i, model=OLD)
        self.assertEqual(self.found(fabric), [("other-kind", "gpu[20-23]")])
        name = "gpu03 HCA-2"
        fabric.cables = [cable for cable in fabric.cables if cable[0] != name]
        del fabric.nodes[name]
        self.assertEqual(self.found(fabric), [("few-ports", "gpu03"), ("other-kind", "gpu[20-23]")])


if __name__ == "__main__":
    unittest.main()
