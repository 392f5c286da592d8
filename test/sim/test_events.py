"""A change of the fabric is announced as one pair of events for each plane that it changes, and nothing else is."""
import json
import os
import re
import unittest

import sim
from sim import fabric_text

PENDING, UPDATED = "PMIX_FABRIC_UPDATE_PENDING", "PMIX_FABRIC_UPDATED"
LEAF, SPINE = "leaf1", "spine1"  # the one fast cable of this leaf
NEAR, FAR = "node0001", "node0016"
FAST, SLOW = 40, 50


def pair(generation, index=1, plane="ib0"):
    return [(name, str(index), plane, str(generation)) for name in ("PENDING", "UPDATED")]


class Case(unittest.TestCase):
    def announced(self):
        """What the PMIx server was given to announce since the last call."""
        journal = self.site.journal()
        found = re.findall(r"event: (PENDING|UPDATED) of plane (\d+) (\S+), generation (\d+)", journal[self.read:])
        self.read = len(journal)
        return found

    def refreshed(self):
        self.site.refresh()
        return self.announced()


class Live(Case):
    def setUp(self):
        self.site = sim.Site("fattree2:4,2,4", start=False)
        self.addCleanup(self.site.free)
        self.site.rate(LEAF, self.site.cable(LEAF, "spine2"), 4, "EDR")
        self.port, self.read = self.site.cable(LEAF, SPINE), 0

    def begin(self, **config):
        self.site.configure(config)
        self.site.start()
        self.assertEqual(self.announced(), pair(1))

    def check_costs(self, cost):
        """The cost and the matrix say the same."""
        self.assertEqual(self.site.ctl_json("cost", NEAR, FAR)["cost"], cost)
        rows = self.site.ctl_json("matrix")["costs"]
        self.assertEqual(rows, [list(column) for column in zip(*rows)])
        self.assertEqual([rows[i][i] for i in range(16)], [0] * 16)
        self.assertEqual({rows[a][b] for a in range(4) for b in range(4) if a != b}, {20})
        self.assertEqual({rows[a][b] for a in range(4) for b in range(4, 16)}, {cost})
        self.assertEqual({rows[a][b] for a in range(4, 8) for b in range(8, 16)}, {FAST})

    def test_a_cable_is_pulled_and_put_back(self):
        self.begin()
        self.check_costs(FAST)
        for hand, generation, cost in ((self.site.pull, 2, SLOW), (self.site.plug, 3, FAST)):
            hand(LEAF, self.port)
            self.assertLessEqual({"ok": True, "generation": generation, "changed": True, "partial": False}.items(),
                                 self.site.refresh().items())
            self.assertEqual(self.announced(), pair(generation))
            self.check_costs(cost)

    def test_who_follows(self):
        """fabricctl events --follow prints each as it comes, until its reader has left, which nobody asked for; without --follow: the latest."""
        self.begin()
        hands = [self.site.pull, self.site.plug]

        def next_hand():
            if not hands:
                return False
            hands.pop(0)(LEAF, self.port)
            self.site.refresh()
            return True

        self.site.while_waiting(next_hand)
        done = self.site.ctl("--format", "json", "events", "--follow")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(e["event"], e["plane"], e["generation"]) for e in events],
                         [(name, "ib0", generation) for generation in (2, 3) for name in (PENDING, UPDATED)])
        times = [e["time"] for e in events]
        self.assertEqual(times, sorted(times))
        self.assertRegex(times[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")
        self.site.while_waiting()
        self.assertEqual(self.site.ctl_json("events")[-4:], events)
        shown = self.site.ctl("events", "--follow")  # its reader has left before any event
        self.assertEqual((shown.returncode, shown.stdout, shown.stderr), (1, "", ""))

    def test_no_change_no_event(self):
        self.begin()
        for _ in range(2):
            self.assertLessEqual({"ok": True, "generation": 1, "changed": False, "partial": False}.items(),
                                 self.site.refresh().items())
            self.assertEqual(self.announced(), [])
        self.assertEqual(self.site.status()["generation"], 1)

    def test_a_host_goes_and_comes_back(self):
        self.begin()
        port = self.site.cable(LEAF, NEAR)
        self.site.pull(LEAF, port)
        self.assertEqual(self.refreshed(), pair(2))
        self.assertEqual(self.site.ctl_json("planes")[0]["devices"], 16)  # it keeps its place for a while
        changes = self.site.ctl_json("diff", "1", "2")["changes"]
        self.assertEqual([(change["kind"], change["what"]) for change in changes], [("host-missing", f"{NEAR} HCA-1")])
        self.site.plug(LEAF, port)
        self.assertEqual(self.refreshed(), pair(3))
        self.assertEqual(self.site.ctl_json("planes")[0]["devices"], 16)

    def test_the_sweep_comes_by_itself(self):
        self.begin(fabricd={"interval": 1})
        for hand, generation in ((self.site.pull, 2), (self.site.plug, 3)):
            hand(LEAF, self.port)
            self.site.advance(1.1)
            self.assertEqual(self.announced(), pair(generation))
        self.site.advance(10)
        self.assertEqual(self.announced(), [])
        self.assertEqual(self.site.status()["interval"], 1)


class Planes(Case):
    """A leaf is cut off (in a recorded fabric, which still shows it): it becomes a plane of its own."""

    def setUp(self):
        self.whole = sim.fabric("fattree2:4,2,4", "capture")
        self.cut = self.whole
        for spine in ("spine1", "spine2"):
            self.cut = fabric_text.without_cables(self.cut, LEAF, spine)
        self.site, self.read = sim.Recorded(self.whole), 0
        self.addCleanup(self.site.free)
        self.assertEqual(self.announced(), pair(1))

    def shown(self, capture):
        self.site.show(capture)
        return self.refreshed()

    def names(self):
        return sorted(name for name in os.listdir(self.site.rundir) if name.endswith(".snap"))

    def test_a_pair_for_each_plane(self):
        got = self.shown(self.cut)
        self.assertEqual(sorted(got[:2]), sorted([pair(2)[0], pair(2, 2, "ib1")[0]]))  # all are pending
        self.assertEqual(sorted(got[2:]), sorted([pair(2)[1], pair(2, 2, "ib1")[1]]))  # before one is done
        planes = self.site.ctl_json("planes")
        self.assertEqual([(p["name"], p["index"], p["devices"]) for p in planes], [("ib0", 1, 12), ("ib1", 2, 4)])
        self.assertEqual(self.names(), ["ib0.snap", "ib1.snap"])
        self.assertEqual(self.site.ctl("cost", NEAR, FAR).returncode, 1)
        got = self.shown(self.whole)
        self.assertEqual((len(got), sorted(got)), (4, sorted(pair(3) + pair(3, 2, "ib1"))))
        self.assertEqual(self.names(), ["ib0.snap"])
        self.assertEqual(self.site.ctl_json("cost", NEAR, FAR)["cost"], FAST)

    def test_only_the_plane_that_changed_is_announced(self):
        self.shown(self.cut)
        self.assertEqual(self.shown(fabric_text.without_cables(self.cut, "leaf2", "spine1")), pair(3))
        self.assertEqual(self.shown(self.cut), pair(4))
        self.assertEqual([plane["generation"] for plane in self.site.ctl_json("planes")], [4, 2])

    def test_a_number_is_kept_by_who_had_it(self):
        """Cut off, joined, and cut off again, also over a restart: ib1 is the same part each time."""
        for text in (self.cut, self.whole):
            self.shown(text)
        self.site.stop()
        self.site.show(self.cut)
        self.site.start()
        self.assertEqual(self.site.generation(), 4)
        hosts = {d["host"]: d["plane"] for d in self.site.ctl_json("devices")}
        self.assertEqual({hosts[f"node{i:04}"] for i in range(1, 5)}, {"ib1"})
        self.assertEqual({hosts[f"node{i:04}"] for i in range(5, 17)}, {"ib0"})


if __name__ == "__main__":
    unittest.main()
