"""Switches and devices that share a name: wherever one of them is named, its GUID stands beside the name."""
import re
import unittest

import sim
from sim import fabric_text

FACTORY = "Quantum Mellanox Technologies"


def factory_named(capture, *switches):
    """A capture in which these switches have the name that they came with."""
    for switch in switches:
        capture = capture.replace(f'"{switch}"', f'"{FACTORY}"')
    return capture


def guids(capture):
    """GUIDs of switches by name."""
    return {name: "0x" + guid for guid, name in re.findall(r'^Switch\s+\d+\s+"S-([0-9a-f]+)"\s+# "([^"]+)"', capture, re.M)}


class Case(unittest.TestCase):
    def start(self, capture):
        self.site = sim.Recorded(capture, {"changes": {"flap_count": 0, "retain_seconds": 1}})
        self.addCleanup(self.site.free)

    def findings(self, *kinds):
        return {f["where"]: f for f in self.site.check()[1] if f["kind"] in kinds}


class Tree(Case):
    SHARE = "leaf1", "leaf2", "leaf3", "spine1", "spine2"

    def setUp(self):
        self.whole = sim.fabric("fattree2:4,3,3", "capture")
        self.guid = guids(self.whole)
        self.capture = factory_named(self.whole, *self.SHARE)

    def called(self, switch):
        return f"{FACTORY} ({self.guid[switch]})"

    def test_a_slow_cable_is_one_cable(self):
        self.start(factory_named(fabric_text.slower_cables(self.whole, "leaf2", "spine2", "1xHDR"), *self.SHARE))
        (where, finding), = self.findings("slow-link").items()
        self.assertRegex(where, rf"^{re.escape(self.called('leaf2'))}\[\d+\] - {re.escape(self.called('spine2'))}\[\d+\]$")
        self.assertEqual(set(self.findings("unnamed")), {FACTORY})
        shown = self.site.ctl("show", where)  # as it was copied from there
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, rf"(?m)^ib0 +{re.escape(self.called('leaf2'))} .* 50 ")
        self.assertEqual(shown.stdout.count("ib0 "), 1)
        self.assertEqual(self.site.ctl("ack", self.guid["spine2"]).returncode, 0)
        self.assertIsNotNone(self.findings("slow-link")[where]["acked"])
        self.assertEqual(self.findings("slow-link")[where]["id"], finding["id"])

    def test_lists(self):
        self.start(self.capture)
        groups = self.site.ctl("groups").stdout
        for leaf in ("leaf1", "leaf2", "leaf3"):
            self.assertIn(self.called(leaf), groups)
        self.assertRegex(groups, r"(?m)^ +\d leaf4 +ib0")  # which is its own
        self.assertEqual({g["switch_guid"] for g in self.site.ctl_json("groups")}, {self.guid[f"leaf{n}"] for n in range(1, 5)})
        self.assertEqual({g["name"] for g in self.site.ctl_json("groups")}, {FACTORY, "leaf4"})
        self.assertEqual(len(self.site.ctl_json("groups", self.called("leaf2"))), 1)
        self.assertEqual(len(self.site.ctl_json("groups", self.guid["leaf2"])), 1)
        links = self.site.ctl("links").stdout
        self.assertEqual(links.count(self.called("leaf1")), 6)
        self.assertEqual(links.count(f"{FACTORY} "), links.count(f"{FACTORY} (0x"))
        self.assertIn(self.called("leaf3"), self.site.ctl("devices", "node0007").stdout)
        self.assertEqual({d["switch"] for d in self.site.ctl_json("devices", "node0007")}, {FACTORY})
        self.assertEqual([s["id"] for s in self.site.ctl_json("switches", self.called("spine2"))], [self.guid["spine2"]])

    def test_what_is_lost(self):
        """Also where no other one of that name is there any more."""
        self.start(self.capture)
        self.site.show(factory_named(fabric_text.without(fabric_text.without(self.whole, "spine1"), "spine2"), *self.SHARE))
        self.site.refresh()
        self.assertEqual(set(self.findings("lost")), {self.called("spine1"), self.called("spine2")})
        self.assertEqual(self.site.ctl("forget", self.guid["spine1"]).returncode, 0)
        self.assertEqual(set(self.findings("lost")), {self.called("spine2")})


class Rails(Case):
    def test_the_leaves_of_a_rail(self):
        whole = sim.fabric("rails:2,3,6,2", "capture")
        guid = guids(whole)
        leaves = [f"leaf{unit}-{rail}" for unit in (1, 2) for rail in (1, 2, 3)]
        self.start(factory_named(fabric_text.swapped(whole, "node0008 HCA-2", "node0008 HCA-3"), *leaves))
        found = self.findings("wrong-rail")
        self.assertEqual(len(found), 2)
        for where, finding in found.items():
            self.assertRegex(where, rf"^{FACTORY} \(0x[0-9a-f]{{16}}\)\[2\] - node0008 HCA-[23]\[1\]$")
            self.assertIn(guid[f"leaf2-{finding['what'][9]}"], finding["what"])
        rails = {r["rail"]: r for r in self.site.ctl_json("rails")}
        self.assertEqual({frozenset(r["switch_guids"]) for r in rails.values()},
                         {frozenset((guid[f"leaf1-{n}"], guid[f"leaf2-{n}"])) for n in (1, 2, 3)})
        shown = self.site.ctl("rails").stdout
        for leaf in leaves:
            self.assertIn(guid[leaf], shown)


class Devices(Case):
    def test_devices_of_one_name(self):
        """Hosts that boot are all called localhost."""
        capture = sim.fabric("fattree2:2,1,2", "capture")
        for host in ("node0001", "node0003"):
            capture = capture.replace(f'"{host}"', '"localhost mlx5_0"')
        self.start(capture)
        where = set(self.findings("unnamed"))
        self.assertEqual(len(where), 2)
        for one in where:
            self.assertRegex(one, r"^localhost mlx5_0 \(0x[0-9a-f]{16}\)$")
        self.assertEqual(len(re.findall(r"localhost:mlx5_0 \(0x[0-9a-f]{16}\)", self.site.ctl("links").stdout)), 2)


if __name__ == "__main__":
    unittest.main()
