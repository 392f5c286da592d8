"""`fabricctl place` and `fabricctl order`: what they print in each form, which lists they take, and what bad ones get. That
the choice is the best one is shown by the unit tests; here costs are counted once more from those of `fabricctl cost`."""
import csv
import io
import itertools
import json
import os
import unittest

import ctl_case
import sim
from sim import fabric_text

PLACED = ["plane", "generation", "hostlist", "hosts", "objective", "value", "bound", "usable", "down", "cost", "ring_cost",
          "switches", "units", "worst", "past_leaf", "past_unit"]
ORDERED = [key for key in PLACED if key not in ("objective", "value", "bound", "usable", "down")]


class Case(ctl_case.Case):
    def placed(self, *args, keys=PLACED):
        answer = json.loads(self.ctl("--format", "json", *args))
        self.assertEqual(list(answer), keys)
        return answer

    def ordered(self, hostlist):
        return self.placed("order", hostlist, keys=ORDERED)


class Place(Case):
    def test_a_job(self):
        """Of two free hosts on each leaf and a whole one: the whole one, and one leaf more."""
        answer = self.placed("place", "-n", "6", "--from", "node[0001-0002,0005-0008,0011,0013-0014]")
        self.assertEqual((answer["plane"], answer["objective"], answer["usable"], answer["down"]), ("ib0", "sum", 9, 0))
        self.assertEqual(answer["hosts"], [f"node{n:04}" for n in (1, 2, 5, 6, 7, 8)])
        self.assertEqual(answer["hostlist"], "node[0001-0002,0005-0008]")
        cost = sum(json.loads(self.ctl("--format", "json", "cost", a, b))["cost"]
                   for a, b in itertools.combinations(answer["hosts"], 2))
        self.assertEqual((answer["value"], answer["bound"], answer["cost"]), (cost, cost, cost))
        self.assertEqual((answer["switches"], answer["units"], answer["past_unit"]), (2, None, None))
        self.assertEqual(answer["worst"], {"a": "node0001", "b": "node0005", "cost": 40, "switches": 3})
        self.assertAlmostEqual(answer["past_leaf"]["all_to_all"], 8 / 15)
        self.assertAlmostEqual(answer["past_leaf"]["ring"], 2 / 6)
        self.assertAlmostEqual(answer["past_leaf"]["recursive_doubling"], 4 / 7)

    def test_for_people(self):
        text = self.ctl("place", "-n", "6", "--from", "node[0001-0002,0005-0008,0011,0013-0014]")
        self.assertEqual(text.splitlines(), [
            "node[0001-0002,0005-0008]",
            "6 hosts of plane ib0, of 9 available",
            "cost 460, 30.7 a pair; by sum none is better",
            "on 2 leaf switches",
            "worst pair node0001 - node0005: cost 40, across 3 switches",
            "past their leaf: 53.3 % of the messages of all to all, 33.3 % of a ring, 57.1 % of recursive doubling"])
        self.assertEqual(self.ctl("place", "-n", "1", "--from", "node0007").splitlines()[1:], [
            "1 host of plane ib0, of 1 available", "cost 0, 0.0 a pair; by sum none is better", "on 1 leaf switch",
            "past their leaf: 0.0 % of the messages of all to all, 0.0 % of a ring, 0.0 % of recursive doubling"])

    def test_for_scripts(self):
        self.assertEqual(self.ctl("place", "--nodes", "3", "--quiet", "--exclude", "node[0001-0012]"), "node[0013-0015]\n")
        rows = list(csv.DictReader(io.StringIO(self.ctl("--format", "csv", "place", "-n", "3", "--exclude", "node[0001-0012]"))))
        self.assertEqual(rows, [{"rank": str(rank), "host": f"node{13 + rank:04}"} for rank in range(3)])

    def test_objectives(self):
        """Few leaves far from each other, or more that are near: pods of two leaves with two hosts each."""
        self.site.snapshot("fattree3:4")
        free = ("--from", "node[0001,0003-0004,0005,0007,0009-0010]")
        by = {what: self.placed("place", "-n", "4", *free, "--objective", what) for what in ("sum", "max", "switches")}
        self.assertEqual({what: answer["value"] for what, answer in by.items()}, {"sum": 280, "max": 60, "switches": 2})
        self.assertEqual(by["switches"]["hostlist"], "node[0003-0004,0009-0010]")
        self.assertEqual(self.placed("place", "-n", "3", *free, "--objective", "max")["value"], 40)
        for answer in by.values():
            self.assertEqual(answer["value"], answer["bound"])

    def test_another_plane(self):
        self.site.snapshot("fattree2:2,1,10", "ib1", 2, 3)
        self.assertEqual(self.placed("place", "-n", "10", "--plane", "ib1")["switches"], 1)
        self.assertEqual(self.placed("place", "-n", "10")["switches"], 3)

    def test_where_it_is_no_tree(self):
        """A better choice may exist, and it says how much better."""
        self.site.snapshot("torus:5,5,5:1")
        answer = self.placed("place", "-n", "40", "--from", ",".join(f"node{n:04}" for n in range(1, 126) if n % 3))
        self.assertGreater(answer["value"], answer["bound"])
        self.assertLess(answer["value"], 1.2 * answer["bound"])
        self.assertIn("another choice is better by ", self.ctl("place", "-n", "40", "--exclude", "node[0001-0030]"))

    def test_a_list_of_thousands_of_ranges(self):
        self.site.snapshot("fattree2:200,4,40")
        ranges = ",".join(f"{n:04}-{n + 1:04}" for n in range(1, 8000, 3))
        answer = self.placed("place", "-n", "100", "--from", f"node[{ranges}]")
        self.assertEqual((answer["usable"], answer["switches"]), (2 * 2667, 4))


class Pattern(Case):
    """Eight leaves of eight hosts with four uplinks each, two hosts to an uplink."""

    TRAFFIC = ["for", "pattern", "shared", "share", "seconds", "limit"]
    CHOSEN = [key for key in PLACED if key not in ("objective", "value", "bound")]

    def setUp(self):
        super().setUp()
        self.site.snapshot("fattree2:8,4,8")

    def chosen(self, *args):
        keys = [*self.CHOSEN[:4], "traffic", *self.CHOSEN[4:]]
        answer = self.placed("place", "-n", "16", *args, keys=keys)
        self.assertEqual(list(answer["traffic"]), self.TRAFFIC)
        return answer, answer["traffic"]

    def test_rough_times(self):
        """The routes of a mesh or torus are not those of minhop in a tree: people are told."""
        for kind, rough in (("torus:4,4,4:1", True), ("fattree2:4,2,4", False)):
            self.site.snapshot(kind)
            said = self.ctl("place", "-n", "8", "--for", "alltoall")
            self.assertEqual("its routes are guessed, and the time is rough" in said, rough, kind)

    def test_more_leaves_are_faster(self):
        """Two whole leaves put 16 messages on each uplink, and only 15 on a port; four halves put 12 there."""
        answer, traffic = self.chosen("--for", "alltoall")
        self.assertEqual((answer["hostlist"], answer["switches"]), ("node[0001-0004,0009-0012,0017-0020,0025-0028]", 4))
        self.assertEqual((traffic["share"], traffic["shared"], traffic["limit"]), (1, False, None))
        self.assertAlmostEqual(traffic["seconds"], 15 * 2 ** 20 * 8 / 200e9)
        answer, traffic = self.chosen("--for", "alltoall", "--shared")
        self.assertEqual((traffic["share"], traffic["limit"]["from"], traffic["limit"]["cables"]), (15 / 16, "leaf1", 16))

    def test_for_people(self):
        self.assertEqual(self.ctl("place", "-n", "16", "--for", "alltoall").splitlines()[2:7], [
            "cost 4320, 36.0 a pair; by sum a choice has 3680", "on 4 leaf switches",
            "worst pair node0001 - node0009: cost 40, across 3 switches",
            "all to all at 100.0 % of the best possible rate, alone on the links: 0.6291 ms for messages of 1 MiB",
            "the ports of the hosts limit it"])
        self.assertEqual(self.ctl("place", "-n", "16", "--for", "any", "--from", "node[0001-0016]").splitlines()[5:8], [
            "recursive doubling, the slowest pattern, at 80.0 % of the best possible rate, alone on the links: 0.2097 ms for "
            "messages of 1 MiB", "limit: the cable leaf1[9] - spine1[1] and 15 more like it",
            "past their leaf: 53.3 % of the messages of all to all, 12.5 % of a ring, 25.0 % of recursive doubling"])
        self.assertIn("\nhosts with the lowest sum of costs: 93.8 %; others may be faster than these\n",
                      self.ctl("place", "-n", "16", "--for", "alltoall", "--shared"))

    def test_an_order(self):
        text = self.ctl("order", "node[0001-0016]", "--for", "neighbours", "--shared").splitlines()
        self.assertRegex(text[5], r"^neighbours in a box at \d+\.\d % of the best possible rate, with all other hosts busy: ")
        keys = [*ORDERED[:4], "traffic", *ORDERED[4:]]
        self.assertEqual(self.placed("order", "node[0001-0016]", "--for", "ring", keys=keys)["traffic"]["share"], 1)

    def test_bad_input(self):
        for says, args in (("no such pattern: --for broadcast: there are alltoall, ", ("--for", "broadcast")),
                           ("no pattern: --alone and --shared: give --for", ("--shared",)),
                           ("one or the other: --alone and --shared", ("--for", "ring", "--shared", "--alone")),
                           ("one or the other: --objective and --for", ("--for", "ring", "--objective", "sum"))):
            self.assertEqual(self.ctl("place", "-n", "4", *args, status=2), "")
            self.assertIn(says, self.complaint)


class Order(Case):
    def test_an_order(self):
        answer = self.ordered("node[0016,0001,0015,0005,0002]")
        self.assertEqual(answer["hosts"], [f"node{n:04}" for n in (1, 2, 5, 15, 16)])
        self.assertEqual(answer["ring_cost"], 20 + 40 + 40 + 20 + 40)
        self.assertEqual(self.ctl("order", "-q", "node[0016,0001,0015]"), "node[0001,0015-0016]\n")
        self.assertEqual(self.ctl("order", "node[0016,0001,0015]").splitlines()[1:3],
                         ["3 hosts of plane ib0", "cost 100, 33.3 a pair; 33.3 from each to the next"])

    def test_names_that_say_nothing_of_places(self):
        """In a torus row by row, there and back, so that each is the neighbour of the next one."""
        self.site.snapshot("torus:4,4:1")
        self.assertEqual(self.ordered("node[0001-0016]")["ring_cost"], 16 * 30)


class BadInput(Case):
    def refused(self, says, *args, status=1):
        self.assertEqual(self.ctl(*args, status=status), "")
        self.assertIn(says, self.complaint)

    def test_lists(self):
        self.refused("--from: not a list of hosts: character 5: a bracket is not closed", "place", "-n", "2", "--from",
                     "node[0001-0004", status=2)
        self.refused("the list: not a list of hosts", "order", "node[0004-0001]", status=2)
        self.refused("no hosts: --exclude: the list is empty", "place", "-n", "2", "--exclude", " ", status=2)
        self.refused("no host nodeX: --from: plane ib0 does not have it, nor 1 more of the list", "place", "-n", "2", "--from",
                     "node[0001-0004],nodeX,nodeY")
        self.refused("no host node0017: --exclude", "place", "-n", "2", "--exclude", "node[0016-0017]")
        self.refused("twice in the list: node0003", "order", "node[0003-0004],node0003")

    def test_numbers(self):
        self.refused("cannot place 17 hosts: plane ib0: there are 16 to choose from", "place", "-n", "17")
        self.refused("there are 3 to choose from", "place", "-n", "1000000000", "--from", "node[0001-0003]")
        self.refused("cannot place 3 hosts: plane ib0: 2 are available, and 0 are down", "place", "-n", "3", "--from",
                     "node0001,node0002,node0001")
        for number in ("0", "x", "-1", "1.5", ""):
            self.refused("", "place", "-n", number, status=2)
        self.refused("give -n NODES", "place", status=2)

    def test_usage(self):
        self.refused("one or the other: --from and --exclude", "place", "-n", "1", "--from", "a", "--exclude", "b", status=2)
        self.refused("there are sum, max and switches", "place", "-n", "1", "--objective", "best", status=2)
        self.refused("too few arguments", "order", status=2)
        self.refused("no plane nosuch", "place", "-n", "1", "--plane", "nosuch")


class Capture(unittest.TestCase):
    """A real rail-optimised fabric, whose units its README tells of."""

    def test_units(self):
        if not os.path.exists(fabric_text.REAL):
            self.skipTest("no capture of a real multi-rail cluster beside the project")
        site = sim.Recorded("", {"fabricd": {"probe": f"file:{fabric_text.REAL}"}})
        self.addCleanup(site.free)
        answer = site.ctl_json("place", "-n", "8")
        self.assertEqual((answer["units"], answer["value"]), (1, answer["bound"]))
        self.assertEqual(answer["past_unit"]["all_to_all"], 0)
        # its 69 HCAs without a name would be the cheapest of hosts; no scheduler knows them
        self.assertEqual(answer["usable"], 191 - 69)
        done = site.ctl("place", "-n", "123")
        self.assertEqual(done.stderr.splitlines()[0],
                         "fabricctl: left out: 69 hosts of plane ib0 that have only a GUID: name them with --from")
        self.assertIn("there are 122 to choose from", done.stderr)
        guids = [row["host"] for row in site.ctl_json("devices") if row["host"].startswith("0x")]
        self.assertEqual(site.ctl_json("place", "-n", "2", "--from", ",".join(guids))["usable"], 69)


if __name__ == "__main__":
    unittest.main()
