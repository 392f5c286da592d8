"""Rail-optimised fabrics: groups by unit, names that stay, which rail is what, and cables in the wrong one. On a
generated fabric of cards with and without names; and on a capture of a real one, where that lies beside the project."""
import os
import re
import unittest

import sim
from sim import fabric_text

REAL = fabric_text.REAL


class Case(unittest.TestCase):
    def start(self, capture, **settings):
        self.site = sim.Recorded(capture, {"fabricd": settings})
        self.addCleanup(self.site.free)

    def change(self, capture):
        self.site.show(capture)
        self.site.refresh()

    def groups(self):
        return {group["name"]: group["hosts"] for group in self.site.ctl_json("groups")}

    def findings(self):
        return [(f["where"], f["what"]) for f in self.site.check()[1] if f["kind"] == "wrong-rail"]

    def rails(self):
        return {(rail["plane"], rail["rail"]): rail for rail in self.site.ctl_json("rails")}


def hosts(first, last):
    return [f"node{n:04}" for n in range(first, last + 1)]


class Generated(Case):
    FABRIC = "rails:3,4,6,2"

    def test_units_are_groups(self):
        self.start(sim.fabric(self.FABRIC, "capture"))
        self.assertEqual(self.groups(), {"unit1": hosts(1, 6), "unit2": hosts(7, 12), "unit3": hosts(13, 18)})
        for device in self.site.ctl_json("devices"):
            self.assertEqual(f"HCA-{device['rail']}", device["name"])
        self.assertRegex(self.site.ctl("devices").stdout, r"(?m)^INDEX .* RAIL LID$")
        rails = self.rails()
        self.assertEqual(sorted(rails), [("ib0", n) for n in range(1, 5)])
        for (_, number), rail in rails.items():
            self.assertEqual(rail["switches"], [f"leaf{unit}-{number}" for unit in (1, 2, 3)])
            self.assertEqual((rail["devices"], rail["whole_plane"], rail["n_misplaced"]), (18, False, 0))
        self.assertEqual(self.site.ctl_json("rails", "rail4", "rail2"), [rails["ib0", 2], rails["ib0", 4]])
        self.assertEqual(self.site.ctl_json("show", "rail2"), [rails["ib0", 2]])
        shown = self.site.ctl("show", "rail2").stdout
        self.assertRegex(shown, r"^rail:\nRAIL .*\n +2 ib0 .* leaf1-2,leaf2-2,leaf3-2 .*\n$")
        for unknown in (("rails", "rail5"), ("show", "rail5"), ("show", "rail")):
            self.assertEqual(self.site.ctl(*unknown).returncode, 1)
        switches = {switch["name"]: (switch["unit"], switch["rail"]) for switch in self.site.ctl_json("switches")}
        self.assertEqual((switches["leaf2-3"], switches["spine1"]), ((2, 3), (None, None)))
        self.assertEqual(self.findings(), [])

    def test_what_is_asked_for(self):
        for by, names in (("leaf", ["leaf1-1", "leaf1-2"]), ("pod", ["pod0"]), ("unit", ["unit1", "unit2"])):
            with self.subTest(by):
                self.start(sim.fabric(self.FABRIC, "capture"), groups=by)
                self.assertEqual(list(self.groups())[:2], names)

    def test_names_stay(self):
        """A unit comes that stands before the others, and the daemon begins anew."""
        whole = sim.fabric(self.FABRIC, "capture")
        part = whole
        for n in range(1, 5):
            part = fabric_text.without(part, f"leaf1-{n}")
        self.start(part)
        before = {"unit1": hosts(7, 12), "unit2": hosts(13, 18)}
        self.assertEqual({name: of for name, of in self.groups().items() if name.startswith("unit")}, before)
        self.change(whole)
        self.assertEqual(self.groups(), dict(before, unit3=hosts(1, 6)))
        self.site.stop()
        self.site.start()
        self.assertEqual(self.groups(), dict(before, unit3=hosts(1, 6)))

    def test_in_the_wrong_rail(self):
        right = sim.fabric(self.FABRIC, "capture")
        self.start(fabric_text.swapped(right, "node0008 HCA-2", "node0008 HCA-3"))
        self.assertEqual(self.findings(), [
            ("leaf2-2[2] - node0008 HCA-3[1]", "most HCA-3 of its unit's hosts are on leaf2-3"),
            ("leaf2-3[2] - node0008 HCA-2[1]", "most HCA-2 of its unit's hosts are on leaf2-2")])
        self.assertEqual(self.rails()["ib0", 2]["misplaced"], ["node0008:HCA-3"])
        self.assertRegex(self.site.ctl("rails").stdout, r"(?m)^ *2 ib0 .* node0008:HCA-3$")
        self.change(fabric_text.swapped(right, "node0002 HCA-1", "node0008 HCA-1"))
        self.assertEqual([where for where, _ in self.findings()],
                         ["leaf1-1[2] - node0008 HCA-1[1]", "leaf2-1[2] - node0002 HCA-1[1]"])
        self.change(right)
        self.assertEqual(self.findings(), [])

    def test_default_names_mixed_in(self):
        """Cards without a name, another driver's names, cards and leaves that are not there."""
        self.start(sim.fabric("rails:6,8,20,3:5", "capture"))
        groups = self.groups()
        self.assertEqual(list(sorted(groups)), [f"unit{n}" for n in range(1, 7)])
        unnamed = 0
        for unit in range(6):
            named = [host for host in groups[f"unit{unit + 1}"] if host.startswith("node")]
            unnamed += len(groups[f"unit{unit + 1}"]) - len(named)
            self.assertLessEqual(set(named), set(hosts(20 * unit + 1, 20 * unit + 20)))
            self.assertGreater(len(named), 12)
        self.assertGreater(unnamed, 8)
        for (_, number), rail in self.rails().items():
            self.assertLessEqual(set(rail["switches"]), {f"leaf{unit}-{number}" for unit in range(1, 7)})
        self.assertEqual(self.findings(), [])

    def test_planes_that_are_rails(self):
        """Rails that are wired apart: each is a plane."""
        self.start(fabric_text.without(sim.fabric("rails:2,2,6,1", "capture"), "spine1"))
        planes = {plane["name"]: plane["index"] for plane in self.site.ctl_json("planes")}
        self.assertEqual(len(planes), 4)
        rails = self.rails()
        self.assertEqual({plane: number for plane, number in rails}, planes)
        self.assertTrue(all(rail["whole_plane"] and rail["devices"] == 6 for rail in rails.values()))
        for device in self.site.ctl_json("devices"):
            self.assertEqual(device["rail"], planes[device["plane"]])

    def test_plain_trees_have_none(self):
        self.start(sim.fabric("fattree2:4,2,3", "capture"))
        self.assertEqual(list(self.groups()), ["leaf1", "leaf2", "leaf3", "leaf4"])
        self.assertEqual(self.site.ctl_json("rails"), [])
        self.assertTrue(all(device["rail"] is None for device in self.site.ctl_json("devices")))


@unittest.skipUnless(os.path.exists(REAL), "no capture of a real multi-rail cluster beside the project")
class Real(Case):
    # what the tool that the capture is of expects of it: a list of hosts for each unit
    EXPECTED = {"a05-p1-dgx-01": (3, 4), "a06-p1-dgx-02": (1, 2, 3, 4, 7, 10, 11, 12, 14, 16, 18),
                "b05-p1-dgx-05": tuple(range(1, 19))}

    def test_hosts_of_each_unit(self):
        with open(REAL, encoding="utf-8") as file:
            self.start(file.read())
        groups = self.groups()
        self.assertEqual(sorted(groups), [f"unit{n}" for n in range(1, 9)])
        units = {}
        for name, members in groups.items():
            for host in members:
                found = re.match(r"([ab]0[5-8]-p1-dgx-0\d)-c(\d\d)$", host)
                if found:
                    units.setdefault(found.group(1), {}).setdefault(name, set()).add(int(found.group(2)))
        self.assertEqual([len(of) for of in units.values()], [1] * 8)  # the hosts of a unit are in one group
        for prefix, expected in self.EXPECTED.items():
            (members,) = units[prefix].values()
            self.assertLessEqual(set(expected), members)
        for prefix in ("a06-p1-dgx-02", "b05-p1-dgx-05"):  # all that have names
            (members,) = units[prefix].values()
            self.assertEqual(members, set(self.EXPECTED[prefix]))
        for (_, number), rail in self.rails().items():
            for switch in rail["switches"]:
                self.assertIn(f"IBLEAF-{number:02}-", switch)
        self.assertEqual(sorted(where.rpartition(" - ")[2][:13] for where, _ in self.findings()),
                         ["b08-p1-dgx-08", "b08-p1-dgx-08"])


if __name__ == "__main__":
    unittest.main()
