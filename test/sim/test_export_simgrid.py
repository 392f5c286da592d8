"""`fabricctl export simgrid`: each pair of hosts has a way along cables of the fabric, a shortest one; the ways to one host are a tree; and
uplinks share the hosts behind them evenly. test/integration/test_simulate.py has SimGrid read it."""
import collections
import unittest

import fabric_text
import sim
from simgrid_platform import Platform
from test_export_files import OTHERS, STRANGE, TREES, Case

EVEN = ("fattree2:4,2,4", "fattree3:4", "fattree3:6")  # trees where each uplink can have as many hosts behind it as the next one


class Simgrid(Case):
    def platform(self, *hosts, lost=None):
        text = self.export("simgrid", *hosts)
        if lost is None:
            self.assertEqual(self.complaint, "")
        else:
            self.assertRegex(self.complaint, lost)
        return Platform(text)

    def graph(self):
        """{switch: {neighbour}}, and {cable: Mb/s}, as `links` has them."""
        near, cables = collections.defaultdict(set), {}
        fastest = self.value("planes")[0]["fastest_gbps"]
        for link in self.value("links"):
            if not link["missing"]:
                cables[frozenset([(link["a"], link["a_port"]), (link["b"], link["b_port"])])] = (link["rate_gbps"] or fastest) * 1000
                if link["a_kind"] == link["b_kind"] == "switch":
                    near[link["a"]].add(link["b"])
                    near[link["b"]].add(link["a"])
        return near, cables

    @staticmethod
    def distances(near, start):
        far, edge = {start: 0}, [start]
        for at in edge:
            for other in near[at]:
                if other not in far:
                    far[other] = far[at] + 1
                    edge.append(other)
        return far

    def good(self, platform):
        """The number of hosts whose ways were followed."""
        near, cables = self.graph()
        for cable in platform.cables.values():
            self.assertEqual(cables[frozenset(cable.ends)], cable.mbps, cable)
        self.assertEqual(len({frozenset(cable.ends) for cable in platform.cables.values()}), len(platform.cables))
        following = {}
        for source in platform.hosts:
            for target in platform.hosts:
                if source == target:
                    continue
                steps = [platform.step(*cable) for cable in platform.route(source, target)]
                self.assertEqual((steps[0][0][0].partition(":")[0], steps[-1][1][0].partition(":")[0]), (source, target))
                for before, step in zip(steps, steps[1:]):
                    self.assertEqual(before[1][0], step[0][0], steps)
                    self.assertEqual(following.setdefault((step[0][0], target), step), step)  # a switch has one way to a host
                self.assertEqual(len(steps), self.distances(near, steps[0][1][0])[steps[-1][0][0]] + 2, steps)
        return len(platform.hosts)

    def test_routes(self):
        for spec in (*TREES, *OTHERS, "mesh:3,4:2", "fattree3:6"):
            with self.subTest(spec):
                self.begin(spec)
                several = spec.startswith(("rails", "random"))
                platform = self.platform(lost=r"lost: \d+ hosts have several devices that are up in plane ib0: written with the first one\n$"
                                         if several else None)
                self.assertEqual(self.good(platform), self.value("planes")[0]["hosts"])

    def test_uplinks_share_hosts(self):
        for spec in EVEN:
            with self.subTest(spec):
                self.begin(spec)
                platform = self.platform()
                level = {switch["name"]: switch["level"] for switch in self.value("switches")}
                behind = collections.defaultdict(set)
                for source in platform.hosts:
                    for target in platform.hosts:
                        for cable in platform.route(source, target) if source != target else ():
                            (begin, _), (end, _) = platform.step(*cable)
                            if level.get(end, -1) > level.get(begin, 9):
                                behind[begin, cable].add(target)
                self.assertEqual(len(behind), sum(level.get(link["a"], 9) < level.get(link["b"], -1) for link in self.value("links")) +
                                 sum(level.get(link["b"], 9) < level.get(link["a"], -1) for link in self.value("links")))
                for switch in {begin for begin, _ in behind}:
                    self.assertEqual(len({len(hosts) for (begin, _), hosts in behind.items() if begin == switch}), 1, switch)

    def test_some_hosts(self):
        """The ways are the same, and only their cables are written."""
        self.begin("fattree3:4")
        whole, hosts = self.platform(), ["node0001", "node0002", "node0007", "node0016"]
        part = self.platform("node[0001-0002,0007,0016],node0007")
        self.assertEqual(part.hosts, hosts)
        used = set()
        for source in hosts:
            for target in hosts:
                if source != target:
                    self.assertEqual(part.route(source, target), whole.route(source, target))
                    used |= {cable for cable, _ in part.route(source, target)}
        self.assertEqual(set(part.cables), used)

    def test_rates_and_lost_cables(self):
        whole = sim.fabric("fattree2:4,2,4", "capture")
        self.import_from(None, fabric_text.slower(whole, "spine1"))
        platform = self.platform()
        self.good(platform)
        self.assertEqual({cable.mbps for cable in platform.cables.values() if "spine1" in dict(cable.ends)}, {100000})
        self.import_from(None, fabric_text.without_cables(whole, "leaf1", "spine1"))
        platform = self.platform()
        self.good(platform)
        self.assertEqual(len(platform.cables), 16 + 7)

    def test_hosts_that_cannot_be_written(self):
        whole = sim.fabric("fattree2:4,2,4", "capture")
        self.import_from(None, whole)
        self.site.start()
        self.site.show(fabric_text.without(whole, "leaf2"))
        self.site.refresh()
        self.site.stop()
        platform = self.platform(lost="^(fabricctl: lost: host node000[5-8]: no device is up and connected to a switch, left out\n){4}$")
        self.assertEqual(self.good(platform), 12)
        self.ctl("export", "simgrid", "node[0001,0006]", status=1)
        self.assertEqual(self.complaint, "fabricctl: host node0006: plane ib0: no device is up and connected to a switch\n")
        self.ctl("export", "simgrid", "node0001,x", status=1)
        self.assertEqual(self.complaint, "fabricctl: no host x: plane ib0: see fabricctl devices\n")
        self.ctl("export", "simgrid", "node[0001", status=1)
        self.ctl("export", "simgrid", "--strict", status=1, lines=5)

    def test_two_planes(self):
        """Hosts of two planes are in no platform together."""
        whole = sim.fabric("fattree2:2,1,2", "capture")
        self.import_from(None, fabric_text.without_cables(whole, "leaf1", "spine1"))
        self.assertEqual(self.platform("--plane", "ib1").hosts, ["node0001", "node0002"])
        self.ctl("export", "simgrid", "node[0001,0003]", status=1)
        self.assertEqual(self.complaint, "fabricctl: no host node0001: plane ib0: see fabricctl devices\n")

    def test_strange_hardware(self):
        self.import_from(f"file:{STRANGE}")
        platform = Platform(self.ctl("export", "simgrid"))
        self.assertGreater(len(platform.hosts), 1)
        self.good(platform)

    def test_too_large(self):
        self.begin("fattree3:24")
        self.ctl("export", "simgrid", "node[0001-0400]")
        self.assertEqual(len(self.value("devices")), 3456)
        self.ctl("export", "simgrid")
        self.begin("fattree3:28")
        self.ctl("export", "simgrid", status=1)
        self.assertEqual(self.complaint, "fabricctl: too large: plane ib0: 5488 hosts at 392 switches have 2151296 routes, and at most "
                                         "1000000 are written: give a list of hosts\n")


if __name__ == "__main__":
    unittest.main()
