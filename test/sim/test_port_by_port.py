"""A switch that is replaced while looks go on: its cables come back one by one, in any order.

No device may move, nobody may be lost, and it is one switch that was replaced, told once. Hosts that swap their
places, too, are seen in two steps.
"""
import os
import random
import unittest

import afresh
from site_case import Case

LEAF, OTHER, SPINE = "leaf3", "leaf2", "spine2"
UPLINKS, HOSTS = (3, 4), (1, 2)
GUID = {LEAF: 0x200002, OTHER: 0x200001, SPINE: 0x200005}
WHAT = {"switch-missing", "host-missing", "switch-replaced", "link-lost", "link-back", "host-back"}


class Hands(Case):
    fabric = "fattree2:4,2,2"

    def setUp(self):
        self.start(start=False, flap_count=0, retain_seconds=600)
        self.map = os.path.join(self.site.dir, "names")
        self.name("")
        self.site.configure({"names": {"map": self.map}})
        self.site.start()
        self.whereabouts, self.since = self.places(), self.generation()

    def name(self, line):
        with open(self.map, "a", encoding="utf-8") as file:
            file.write(line)

    def places(self):
        return {host: place[:3] for host, place in super().places().items()}

    def told(self):
        """What changed since the last call."""
        before, self.since = self.since, self.generation()
        return self.site.ctl_json("diff", str(before), str(self.since))["changes"] if before != self.since else []

    def same_indices(self):
        self.assertEqual({host: place[0] for host, place in self.places().items()},
                         {host: place[0] for host, place in self.whereabouts.items()})

    def as_afresh(self):
        newcomer = self.site.afresh()
        self.assertEqual(afresh.costs(self.site), afresh.costs(newcomer))
        self.assertEqual(self.site.ctl_json("matrix")["costs"], newcomer.ctl_json("matrix")["costs"])
        self.assertEqual(self.site.status()["missing"], 0)


class PortByPort(Hands):
    def replace(self, steps, name="", restart=()):
        """steps: (switch, port), in the order in which they come back. All that was told."""
        switches, changes = sorted({switch for switch, _ in steps}), []
        for switch in switches:
            self.site.pull(switch)
        self.site.refresh()
        changes += self.told()
        self.assertEqual(self.places(), self.whereabouts)
        for switch in switches:
            self.site.guid(switch, GUID[switch] + 0x9a0000)
            if name:
                self.name(f'0x{GUID[switch] + 0x9a0000:x} "{switch}{name}"\n')
        for number, (switch, port) in enumerate(steps):
            if number in restart:
                self.again()
            self.plug(switch, port)
            self.assertEqual(self.places(), self.whereabouts, (switch, port))
            self.assertNotIn("duplicate-name", self.site.ctl("check").stdout)
            changes += self.told()
        self.as_afresh()
        return changes

    def once_each(self, changes, switches):
        replaced = [c for c in changes if c["kind"] == "switch-replaced"]
        self.assertEqual(sorted(c["what"] for c in replaced), sorted(switches))
        for change in replaced:
            self.assertIn(f"{GUID[change['what']]:016x}", change["before"])
        self.assertEqual({c["kind"] for c in changes} - WHAT, set())
        lost, back = ([c for c in changes if c["kind"] == kind] for kind in ("link-lost", "link-back"))
        self.assertEqual(len(lost), len(back))

    def test_uplinks_first(self):
        changes = self.replace([(LEAF, port) for port in UPLINKS + HOSTS])
        self.once_each(changes, [LEAF])
        (replaced,) = (c for c in changes if c["kind"] == "switch-replaced")
        self.assertIn("1 of its 4 cables leads to another switch now", replaced["why"])  # hosts are not seen yet
        self.assertEqual([c["what"] for c in changes if c["kind"] == "host-back"], ["node0005 HCA-1", "node0006 HCA-1"])

    def test_hosts_first_and_a_restart(self):
        self.once_each(self.replace([(LEAF, port) for port in HOSTS + UPLINKS], restart={3}), [LEAF])

    def test_mixed_under_another_name(self):
        steps = [(LEAF, port) for port in (4, 2, 3, 1)]
        self.once_each(self.replace(steps, name="new", restart={1, 2, 3}), [LEAF])
        self.assertIn(f"{LEAF}new", self.switches())

    def test_two_leaves_at_once(self):
        """In any order, with a restart anywhere."""
        for seed in range(20, 26):
            with self.subTest(seed=seed):
                if seed > 20:
                    self.setUp()
                dice = random.Random(seed)
                steps = [(switch, port) for switch in (LEAF, OTHER) for port in UPLINKS + HOSTS]
                dice.shuffle(steps)
                self.once_each(self.replace(steps, restart={dice.randrange(len(steps))}), [LEAF, OTHER])

    def test_a_spine(self):
        """It carries nobody, so it is lost at once, and remembered."""
        changes = self.replace([(SPINE, port) for port in (3, 1, 4, 2)], restart={1})
        self.assertEqual([c["kind"] for c in changes], ["switch-lost", "switch-replaced"] + 3 * ["link-back"])

    def test_a_leaf_and_a_spine(self):
        steps = [(LEAF, port) for port in (4, *HOSTS)] + [(SPINE, port) for port in (1, 2, 4)]
        random.Random(22).shuffle(steps)
        changes = self.replace([(LEAF, 3), *steps])  # by the other spine, so that each port comes up
        self.assertEqual(sorted(c["what"] for c in changes if c["kind"] == "switch-replaced"), [LEAF, SPINE])
        self.assertFalse({c["kind"] for c in changes} & {"host-lost", "host-added", "host-moved", "index"})

    def test_its_hosts_in_each_others_ports(self):
        """The first one's place is the second one's now, until that one is seen, too."""
        self.site.pull(LEAF)
        self.site.refresh()
        self.site.guid(LEAF, 0x9a0002)
        self.site.plug(LEAF, 3)
        for port, host in ((1, "node0006"), (2, "node0005")):
            self.site.link(LEAF, port, host, 1)
            self.site.refresh()
            self.same_indices()
        self.plug(LEAF, 4)
        kinds = [c["kind"] for c in self.told()]
        self.assertEqual([kinds.count(kind) for kind in ("switch-replaced", "host-lost", "index")], [1, 0, 0])
        self.as_afresh()


class Swapped(Hands):
    """Of two hosts that swap places, the second one's place is the first one's before it is seen again."""
    A, B = "node0002", "node0005"

    def swap(self):
        self.a, self.b = self.pull("leaf1", self.A), self.pull(LEAF, self.B)
        self.put(LEAF, self.b, self.A)
        self.same_indices()

    def put(self, leaf, port, host):
        self.site.link(leaf, port, host, 1)
        self.site.refresh()

    def words(self):
        return [(c["kind"], c["what"], c["before"], c["after"]) for c in self.told() if c["kind"] != "plane-shape"]

    def first_half(self):
        a, b = f"{self.A} HCA-1", f"{self.B} HCA-1"
        return [("host-missing", a, "there", "missing"), ("host-missing", b, "there", "missing"),
                ("link-lost", f"{LEAF}[{self.b}] - {b}[1]", "4xHDR", ""),
                ("host-moved", f"{a}[1]", f"leaf1[{self.a}]", f"{LEAF}[{self.b}]"), ("host-back", a, "missing", "there")]

    def test_two_hosts(self):
        self.swap()
        self.assertEqual(self.words(), self.first_half())
        self.again()
        self.put("leaf1", self.a, self.B)
        self.assertEqual(self.words(), [("host-moved", f"{self.B} HCA-1[1]", f"{LEAF}[{self.b}]", f"leaf1[{self.a}]")])
        self.same_indices()
        self.as_afresh()

    def test_it_comes_back_elsewhere(self):
        self.swap()
        self.told()
        self.put("leaf4", 9, self.B)
        self.assertEqual(self.words(), [("host-moved", f"{self.B} HCA-1[1]", f"{LEAF}[{self.b}], 4xHDR", "leaf4[9], 4xQDR"),
                                        ("host-back", f"{self.B} HCA-1", "missing", "there")])
        self.as_afresh()

    def test_it_comes_back_where_it_was(self):
        self.swap()
        self.told()
        self.site.pull(LEAF, self.b)
        self.site.refresh()
        self.told()
        self.put(LEAF, self.b, self.B)
        self.assertIn(("host-back", f"{self.B} HCA-1", "missing", "there"), self.words())
        self.put("leaf1", self.a, self.A)
        self.same_indices()
        self.as_afresh()

    def test_it_is_forgotten(self):
        self.swap()
        self.told()
        self.assertEqual(self.site.ctl("forget", self.B).returncode, 0)
        self.site.idle()
        self.assertNotIn(self.B, self.devices())
        self.assertIn("host-lost", {c["kind"] for c in self.told()})


class SwappedWhereAllIsFull(Swapped):
    """Each switch has as many ports as cables: the only free one is where the other was."""
    room = 0
    test_it_comes_back_elsewhere = None


del Hands

if __name__ == "__main__":
    unittest.main()
