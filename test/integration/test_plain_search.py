"""Costs, groups and coordinates as a plain search in Python finds them in the text of a recorded fabric, which knows nothing
of how fabricd does it."""
import heapq
import json
import os
import re
import unittest

import conforms
import fabric_text
import lab
import test_pnet
import versions

RATES = {"HDR": 200, "EDR": 100}  # of four lanes, as the recorded fabrics have them


class Fabric:
    """What stands in a capture: {switch or HCA: {port: (neighbour, its port, Gb/s)}}, and what they are called."""

    def __init__(self, text):
        self.ports, self.names, self.hosts = {}, {}, {}
        for record in text.split("\n\n"):
            node = re.search(r'^(Switch|Ca)\s+\d+ "(\S+)"\s+# "(\S+)', record, re.MULTILINE)
            if node is None:
                continue
            kind, node_id, name = node.groups()
            self.names[node_id] = name.rstrip('"')
            self.ports[node_id] = {
                int(port): (other, int(other_port), RATES[rate])
                for port, other, other_port, rate in re.findall(
                    r'^\[(\d+)\](?:\([0-9a-f]+\))?\s+"(\S+)"\[(\d+)\].* 4x(\w+)$', record, re.MULTILINE)}
            if kind == "Ca":
                self.hosts[self.names[node_id]] = node_id
        self.order = sorted(self.hosts, key=lambda host: int(re.sub(r"\D", "", host)))

    def is_switch(self, node):
        return node not in self.hosts.values()

    def edge(self, host):
        """The switch that a host is on, and the port of it."""
        (switch, port, _), = self.ports[self.hosts[host]].values()
        return switch, port

    def costs(self, host):
        """Dijkstra's search, from one host to all: 10 for a link of the fastest rate, in proportion more for others."""
        fastest = max(rate for ports in self.ports.values() for _, _, rate in ports.values())
        found, queue = {}, [(0, self.hosts[host])]
        while queue:
            cost, node = heapq.heappop(queue)
            if node in found:
                continue
            found[node] = cost
            for other, _, rate in self.ports[node].values():
                heapq.heappush(queue, (cost + -(-10 * fastest // rate), other))
        return [found[self.hosts[other]] for other in self.order]

    def groups(self):
        """Hosts by their switch, in the order of the first of them."""
        on = {}
        for host in self.order:
            on.setdefault(self.edge(host)[0], []).append(host)
        return ";".join(f"{number}:{','.join(hosts)}" for number, hosts in enumerate(on.values()))


class Case(conforms.Shows):
    def serve(self, text):
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, text)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        self.addCleanup(self.daemon.stop)
        self.plane, = self.daemon.ctl_json("planes")
        return Fabric(text)

    def query(self, *args):
        done = lab.run([lab.program("stock_chapter"), self.daemon.uri(), "query", *args], env=self.daemon.tool_env())
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)[0][1]["value"]

    def check(self, fabric):
        """Costs by the operator's command and through the pointer in a scheduler's process; groups over PMIx."""
        costs = [fabric.costs(host) for host in fabric.order]
        self.assertGreater(len({cost for row in costs for cost in row}), 2)
        self.assertEqual([device["host"] for device in self.daemon.ctl_json("devices")], fabric.order)
        self.assertEqual(self.daemon.ctl_json("matrix")["costs"], costs)
        if not versions.NO_ARRAYS:
            self.check_in_process([cost for row in costs for cost in row])
        self.shows_given("PMIX_FABRIC_GROUPS", "pmix.fab.grps", self.query("pmix.fab.grps"), fabric.groups(), "query", "tool",
                         kind="key of all planes")

    def check_in_process(self, cells):
        scheduler = test_pnet.Scheduler(self.daemon.rundir)
        self.addCleanup(scheduler.stop)
        self.assertEqual(scheduler.status("register 0")[0], "SUCCESS")
        self.shows_given("PMIX_FABRIC_COST_MATRIX", "matrix 0", scheduler.cells(0), cells, "register", "in process", kind="key")

    def coordinates(self, fabric):
        """{host: its logical coordinates}, each once."""
        found = {}
        for host in fabric.order:
            geometry, = self.query("pmix.fab.coord", f"pmix.hname=s:{host}", "pmixfab.view=s:logical")["elements"]
            found[host] = tuple(geometry["coordinates"][0]["coord"])
        self.assertEqual(len(set(found.values())), len(found))
        return found


class Tree(Case):
    def test_with_slow_and_pulled_cables(self):
        """A leaf at half the rate, and one that has lost a cable; a leaf's number is its place among the leaves."""
        text = fabric_text.slower(lab.fabric("fattree2:4,2,3", "capture"), "leaf2")
        fabric = self.serve(fabric_text.without_cables(text, "leaf3", "spine1"))
        self.check(fabric)
        self.assertEqual(self.plane["kind"], "fat-tree-2")
        leaves = sorted({fabric.edge(host)[0] for host in fabric.order}, key=lambda leaf: fabric.names[leaf])
        expected = {host: (0, leaves.index(leaf), port - 1) for host in fabric.order for leaf, port in [fabric.edge(host)]}
        self.shows_given("PMIX_FABRIC_COORDINATES", "pmix.fab.coord", self.coordinates(fabric), expected, "query", "tool", kind="key")


class Dragonfly(Case):
    def test_groups_and_routers(self):
        """The generator has called the routers "rGROUP-ROUTER"; fabricd looks at cables only."""
        fabric = self.serve(lab.fabric("dragonfly:2,4,2", "capture"))
        self.check(fabric)
        self.assertEqual(self.plane["kind"], "dragonfly")
        for host, coordinates in self.coordinates(fabric).items():
            router, port = fabric.edge(host)
            self.assertEqual(coordinates, (*map(int, re.findall(r"\d+", fabric.names[router])), port - 1))


class Torus(Case):
    def test_places(self):
        """Who is cabled to whom is one step away in one dimension, and nobody else is."""
        fabric = self.serve(lab.fabric("torus:5,3:1", "capture"))
        self.check(fabric)
        self.assertEqual((self.plane["kind"], self.plane["shape"]), ("torus-2d", [5, 3]))
        at = {fabric.edge(host)[0]: place for host, place in self.coordinates(fabric).items()}
        self.assertEqual(at[min(at)], (0, 0))  # the lowest GUID is the origin
        for switch, place in at.items():
            steps = {tuple((place[i] + step * (i == dimension)) % size for i, size in enumerate((5, 3)))
                     for dimension in (0, 1) for step in (1, -1)}
            self.assertEqual({at[other] for other, _, _ in fabric.ports[switch].values() if fabric.is_switch(other)}, steps)


if __name__ == "__main__":
    unittest.main()
