"""Each kind of swap, one hand at a time.

After each sweep: the expected words in `fabricctl diff` and no others, one pair of events for the generation and no
other, and the costs of a daemon that has never seen the fabric before.
"""
import re
import unittest

import afresh
from site_case import Case

HOST, LEAF, SPINE = "node0003", "leaf2", "spine2"
GUID, NEW = "0x0000000000100004", "0x0000000000990001"
ELSEWHERE = ("leaf3", 9)  # a port that nobody uses


class Swap(Case):
    fabric = "fattree2:4,2,2"

    def setUp(self):
        self.start(flap_count=0, retain_seconds=600)
        self.expected, self.events = 1, []
        self.watched = len(self.site.journal())
        self.indices = self.places()
        self.as_afresh()

    def places(self):
        return {host: place[0] for host, place in super().places().items()}

    def as_afresh(self):
        newcomer = self.site.afresh()
        self.assertEqual(afresh.costs(self.site), afresh.costs(newcomer))
        self.assertEqual(afresh.cables(self.site, newcomer), afresh.cables(newcomer))

    def becomes(self, *words):
        """A sweep now, and what it comes to."""
        self.assertTrue(self.site.refresh()["changed"])
        self.expected += 1
        changes = [change for change in self.last() if change["kind"] != "plane-shape"]
        self.assertEqual(sorted((c["kind"], c["what"], c["before"], c["after"]) for c in changes), sorted(words))
        self.assertTrue(all(c["why"] for c in changes), changes)
        self.events += [(name, "1 ib0", str(self.expected)) for name in ("PENDING", "UPDATED")]
        self.assertEqual(re.findall(r"event: (\w+) of plane (.*), generation (\d+)", self.site.journal()[self.watched:]),
                         self.events)
        self.assertEqual(self.places(), self.indices)  # nothing here makes anybody move
        self.as_afresh()

    def leaf_goes(self):
        self.site.pull(LEAF)
        gone = ("there", "missing")
        self.becomes(("switch-missing", LEAF, *gone), ("host-missing", "node0003 HCA-1", *gone),
                     ("host-missing", "node0004 HCA-1", *gone))

    def leaf_is_back(self, *words):
        self.site.plug(LEAF)
        back = ("missing", "there")
        self.becomes(*words, ("host-back", "node0003 HCA-1", *back), ("host-back", "node0004 HCA-1", *back))

    def test_an_hca_is_replaced(self):
        self.site.guid(HOST, int(NEW, 16))
        self.becomes(("hca-replaced", f"{HOST} HCA-1", GUID, NEW))

    def test_an_hca_is_replaced_and_swept_meanwhile(self):
        port = self.site.cable(LEAF, HOST)
        self.site.pull(LEAF, port)
        self.becomes(("host-missing", f"{HOST} HCA-1", "there", "missing"))
        self.site.guid(HOST, int(NEW, 16))
        self.site.plug(LEAF, port)
        self.becomes(("hca-replaced", f"{HOST} HCA-1", GUID, NEW))

    def test_a_host_moves(self):
        port = self.site.cable(LEAF, HOST)
        self.site.pull(LEAF, port)
        self.site.link(*ELSEWHERE, HOST, 1)
        self.becomes(("host-moved", f"{HOST} HCA-1[1]", f"{LEAF}[{port}], 4xHDR", "leaf3[9], 4xQDR"))

    def test_two_hosts_change_places(self):
        mine, other = self.site.cable(LEAF, HOST), self.site.cable("leaf3", "node0005")
        self.site.pull(LEAF, mine)
        self.site.pull("leaf3", other)
        self.site.link(LEAF, mine, "node0005", 1)
        self.site.link("leaf3", other, HOST, 1)
        self.becomes(("host-moved", f"{HOST} HCA-1[1]", f"{LEAF}[{mine}]", f"leaf3[{other}]"),
                     ("host-moved", "node0005 HCA-1[1]", f"leaf3[{other}]", f"{LEAF}[{mine}]"))

    def test_a_cable_moves(self):
        near, far = self.site.cable(LEAF, SPINE), self.site.cable(SPINE, LEAF)
        cable = f"{LEAF}[{near}] - {SPINE}[{far}]"
        self.site.pull(LEAF, near)
        self.becomes(("link-lost", cable, "4xHDR", ""))
        self.site.plug(LEAF, near)
        self.becomes(("link-back", cable, "lost", "4xHDR"))
        self.site.pull(LEAF, near)
        self.site.link(LEAF, near, SPINE, 9)
        self.becomes(("cable-moved", cable, f"{SPINE}[{far}], 4xHDR", f"{SPINE}[9], 4xQDR"))

    def test_a_cable_at_another_speed(self):
        near, far = self.site.cable(LEAF, SPINE), self.site.cable(SPINE, LEAF)
        for before, after in (("4xHDR", "4xEDR"), ("4xEDR", "4xHDR")):
            self.site.rate(LEAF, near, 4, after[2:])
            self.becomes(("link-rate", f"{LEAF}[{near}] - {SPINE}[{far}]", before, after))

    def test_a_leaf_restarts(self):
        self.leaf_goes()
        self.leaf_is_back(("switch-back", LEAF, "missing", "there"))

    def test_a_leaf_restarts_as_announced(self):
        """All that comes of it is planned, and stands in the leaf's history."""
        self.site.ctl("expect", LEAF, "--replace")
        self.leaf_goes()
        self.assertTrue(all(c["planned"] for c in self.last()))
        for host in ("node0003", "node0004"):
            self.assertEqual(self.site.ctl("forget", host).returncode, 0)
            self.site.idle()
        self.expected += 2
        told = self.site.ctl_json("diff", str(self.expected - 2), str(self.expected))["changes"]
        self.assertEqual({c["kind"] for c in told}, {"host-lost", "switch-lost", "index"})
        self.plug(LEAF)
        told += self.last()
        self.assertEqual([c for c in told if not c["planned"]], [])
        kinds = [c["kind"] for c in self.site.ctl_json("history", LEAF)]
        self.assertEqual(kinds.count("host-missing"), 2, kinds)

    def test_a_leaf_is_replaced(self):
        self.site.guid(LEAF, 0x9a0001)
        self.becomes(("switch-replaced", LEAF, "0x0000000000200001", "0x00000000009a0001"))

    def test_a_leaf_is_replaced_and_swept_meanwhile(self):
        self.leaf_goes()
        self.site.guid(LEAF, 0x9a0001)
        self.leaf_is_back(("switch-replaced", LEAF, "0x0000000000200001", "0x00000000009a0001"))

    def test_a_spine_is_lost_and_returned(self):
        self.site.pull(SPINE)
        self.becomes(("switch-lost", SPINE, "0x0000000000200005", ""))
        self.site.plug(SPINE)
        self.becomes(("switch-back", SPINE, "lost", "there"))

    def test_a_spine_is_replaced_with_a_cable_less(self):
        self.site.guid(SPINE, 0x9a0002)
        self.site.pull(SPINE, 4)
        self.becomes(("switch-replaced", SPINE, "0x0000000000200005", "0x00000000009a0002"),
                     ("link-lost", f"leaf4[4] - {SPINE}[4]", "4xHDR", ""))


if __name__ == "__main__":
    unittest.main()
