"""topology/torus3d and topology/ring of slurmctld 26.05, which is installed in the folder that FABRICD_SLURM names: Slurm shows the dimensions,
nodes and order of rings of the file, and allocates boxes and parts of rings. test/sim/test_export_geometry.py has the files themselves."""
import itertools
import math
import re
import unittest

import yaml

import lab
import test_export_slurm
import test_fabricctl
from test_export_slurm import Slurm, fabric, spelled
from test_newer_slurm import Newer


def torus(*dims, hosts=lambda place: 1):
    """Cables of a torus of three dimensions, with so many hosts at the switch of each place."""
    cables = []
    for place in itertools.product(*map(range, dims)):
        name = "s" + "x".join(map(str, place))
        cables += [(name, f"n{name[1:]}x{host}") for host in range(hosts(place))]
        for axis in range(len(dims)):
            peer = [(at + (axis == i)) % dims[i] for i, at in enumerate(place)]
            cables.append((name, "s" + "x".join(map(str, peer))))
    return cables


def ring(*hosts):
    """Cables of a ring of switches with so many hosts each; names do not follow the ring."""
    at = [7 * n % len(hosts) for n in range(len(hosts))]
    return [(f"s{at[n]}", f"s{at[(n + 1) % len(hosts)]}") for n in range(len(hosts))] + [
        (f"s{at[n]}", f"n{(n * 5) % len(hosts)}x{host}") for n, count in enumerate(hosts) for host in range(count)]


class Case(Newer, test_export_slurm.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        version = lab.run([f"{cls.prefix}/sbin/slurmctld", "-V"]).stdout
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < (26, 5):
            raise unittest.SkipTest(f"{version.strip()}: topology/torus3d and topology/ring need 26.05")

    running = None

    def stop(self):
        if self.running is not None:
            self.running.stop()
        self.running = None

    def controller(self, text):
        """slurmctld with this file, and the one topology of the file."""
        self.stop()
        (topology,) = yaml.safe_load(text)
        nodes = sorted({node for nodes in re.findall(r'nodes: "(\S+)"', text) for node in spelled(nodes)})
        slurm = self.running = Slurm(self.cluster, text, nodes, "topology/flat", self.prefix, "topology.yaml")
        self.addCleanup(self.stop)
        self.assertNotRegex(slurm.log(), r"(?i)invalid hostname|lack access|error: .*torus|fatal")
        return slurm, topology, nodes

    def shown(self, slurm, topology):
        """The lines of `scontrol show topology NAME`."""
        return [dict(word.split("=", 1) for word in line.split())
                for line in slurm.ask("show", "topology", topology["topology"]).stdout.splitlines()]

    def drain(self, slurm, nodes):
        done = slurm.ask("update", f"NodeName={','.join(nodes)}", "State=DRAIN", "Reason=test")
        self.assertEqual(done.returncode, 0, done.stderr)


class Torus(Case):
    def places(self):
        """{host: the coordinates of its switch}, and the dimensions."""
        (plane,) = self.value("planes")
        n = 3 if plane["kind"].endswith("3d") else 2
        return {device["host"]: tuple(device["logical"][:n]) for device in self.value("devices")}, plane["shape"][:n], plane["kind"]

    def read_by_slurm(self, slurm, topology, nodes):
        """The torus of the file; and that Slurm shows its dimensions, nodes, boxes, and how many places they have."""
        (entry,) = topology["torus3d"]["toruses"]
        size = [entry["dims"][axis] for axis in "xyz"]
        boxes = []
        for box in entry["placements"]:
            of, spacing = ([box.get(key, box["dims"])[axis] for axis in "xyz"] for key in ("dims", "anchor_spacing"))
            self.assertEqual([n % step for n, step in zip(size, spacing)], [0, 0, 0])
            boxes.append(("{}x{}x{}({})".format(*of, math.prod(of)), str(math.prod(size) // math.prod(spacing))))
        line, *more = self.shown(slurm, topology)
        self.assertEqual((line["TorusName"], line["Dims"], sorted(spelled(line["Nodes"]))), (entry["name"], "{}x{}x{}".format(*size), nodes))
        self.assertEqual([(line["PlacementDims"], line["Anchors"]) for line in more], boxes)
        return entry, {math.prod(box["dims"].values()) for box in entry["placements"]}

    def is_box(self, hosts, where, dims, wraps):
        """The switches of these hosts fill a box of a mesh or torus."""
        switches = {where[host] for host in hosts}
        lengths = []
        for axis, size in enumerate(dims):
            used = {place[axis] for place in switches}
            starts = [at for at in used if (at - 1) % size not in used] if wraps else [min(used)]
            if len(used) == size:
                starts = [0]
            self.assertEqual(len(starts), 1, (hosts, axis))
            self.assertEqual({(starts[0] + i) % size for i in range(len(used))}, used, (hosts, axis))
            lengths.append(len(used))
        self.assertEqual(len(switches), math.prod(lengths), hosts)

    def jobs(self, text, rejected):
        """Each number of hosts gets a box, and Slurm rejects only the numbers that `lost:` lists."""
        slurm, topology, nodes = self.controller(text)
        entry, sizes = self.read_by_slurm(slurm, topology, nodes)
        where, dims, kind = self.places()
        self.assertEqual(sizes, set(range(1, len(nodes) + 1)) - set(rejected))
        for size in range(1, len(nodes) + 1):
            got = slurm.chosen(size)
            self.assertEqual(got is not None, size in sizes, size)
            if got is not None:
                self.assertEqual(len(got), size)
                self.is_box(got, where, dims, kind.startswith("torus"))
        return slurm, entry

    def of(self, spec):
        test_fabricctl.snapshot(spec, self.rundir)
        text = self.ctl("export", "slurm-torus3d")
        found = re.search(r"no box of the file: (\S+)$", self.complaint)
        self.assertFalse(found.group(1).endswith("..."))
        return self.jobs(text, [int(n) for n in spelled(f"[{found.group(1)}]")])

    def test_generated(self):
        for spec, dims in (("torus:3,4,3:1", (4, 3, 3)), ("torus:4,4:2", (8, 4, 1)), ("torus:3,5:1", (5, 3, 1)), ("mesh:2,3,4:1", (4, 3, 2))):
            with self.subTest(spec):
                _, entry = self.of(spec)
                self.assertEqual(tuple(entry["dims"][axis] for axis in "xyz"), dims)

    def test_the_nodes_are_where_they_are(self):
        """topology/torus3d has each node at the coordinates that fabricd has."""
        test_fabricctl.snapshot("torus:3,4,3:1", self.rundir)
        slurm, _, nodes = self.controller(self.ctl("export", "slurm-torus3d"))
        where, dims, _ = self.places()
        for drained in (nodes[:1], nodes[5:7], nodes[::5]):
            self.drain(slurm, drained)
        for size in (2, 3, 4, 6):
            got = slurm.chosen(size)
            if got is not None:
                self.is_box(got, where, dims, True)
                self.assertFalse({*nodes[::5], *nodes[5:7]} & set(got))
        self.assertIsNotNone(slurm.chosen(2))

    def test_over_the_end(self):
        """A box that is not aligned begins at another place, and so can reach over the end."""
        test_fabricctl.snapshot("torus:5,3:1", self.rundir)
        slurm, _, _ = self.controller(self.ctl("export", "slurm-torus3d"))
        where, dims, _ = self.places()
        self.drain(slurm, [host for host, place in where.items() if place[0] in (1, 2)])
        got = slurm.chosen(6)
        self.assertEqual({where[host][0] for host in got} & {1, 2}, set())
        self.is_box(got, where, dims, True)

    def test_switches_with_fewer_hosts(self):
        """Slurm places no job at their cells; the others are regions."""
        self.from_capture(fabric(torus(3, 3, 3, hosts=lambda place: {(0, 0, 0): 0, (1, 2, 1): 1}.get(place, 2))))
        text = self.ctl("export", "slurm-torus3d")
        self.assertIn("lost: plane ib0: 3 of 54 cells of topology/torus3d have no host: Slurm places no job there\n", self.complaint)
        slurm, topology, nodes = self.controller(text)
        self.assertEqual(len(nodes), 51)
        _, sizes = self.read_by_slurm(slurm, topology, nodes)
        where, dims, _ = self.places()
        self.assertGreater(max(sizes), 17)
        for size in sorted(sizes):
            got = slurm.chosen(size)
            self.assertEqual(len(got or []), size)
            self.is_box(got, where, dims, True)


class Ring(Case):
    def in_order(self, slurm, topology):
        rings = {entry["ring"]: spelled(entry["nodes"]) for entry in topology["ring"]["rings"]}
        self.assertEqual({line["RingName"]: (spelled(line["Nodes"]), int(line["RingSize"])) for line in self.shown(slurm, topology)},
                         {name: (nodes, len(nodes)) for name, nodes in rings.items()})
        return rings

    def is_part(self, got, nodes):
        """The nodes follow each other around the ring."""
        starts = [n for n, node in enumerate(nodes) if node in got and nodes[n - 1] not in got]
        self.assertEqual(len(starts), 0 if len(got) == len(nodes) else 1, (got, nodes))

    def test_switches_around(self):
        self.from_capture(fabric(ring(2, 3, 1, 0, 4, 2)))
        slurm, topology, _ = self.controller(self.ctl("export", "slurm-ring", "--strict"))
        (nodes,) = self.in_order(slurm, topology).values()
        switch = {device["host"]: device["switch"] for device in self.value("devices")}
        cables = {frozenset((link["a"], link["b"])) for link in self.value("links")}
        around = [key for key, _ in itertools.groupby(nodes, key=switch.get)]
        self.assertEqual(len(around), 5)
        gaps = [pair for pair in zip(around, around[1:] + around[:1]) if frozenset(pair) not in cables]
        self.assertEqual(len(gaps), 1)  # the switch without hosts
        for size in range(1, len(nodes) + 1):
            got = slurm.chosen(size)
            self.assertEqual(len(got), size)
            self.is_part(got, nodes)
        self.drain(slurm, nodes[3:8])
        got = slurm.chosen(len(nodes) - 5)
        self.assertEqual(sorted(got), sorted(nodes[:3] + nodes[8:]))

    def test_rings_of_a_torus(self):
        test_fabricctl.snapshot("torus:4,5,3:3", self.rundir)
        slurm, topology, nodes = self.controller(self.ctl("export", "slurm-ring"))
        self.assertIn("Slurm rejects jobs of more than 15 hosts without --segment", self.complaint)
        rings = self.in_order(slurm, topology)
        self.assertEqual({len(hosts) for hosts in rings.values()}, {15})
        self.assertEqual(sorted(itertools.chain(*rings.values())), nodes)
        for size in (1, 2, 7, 15):
            got = slurm.chosen(size)
            (of,) = [hosts for hosts in rings.values() if set(got) <= set(hosts)]
            self.is_part(got, of)
        self.assertIsNone(slurm.chosen(16))


if __name__ == "__main__":
    unittest.main()
