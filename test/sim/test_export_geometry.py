"""slurm-torus3d and slurm-ring: the text for planes with such a geometry, and the errors for others. test/integration/test_newer_geometry.py has
Slurm read them."""
import itertools
import math
import unittest

import yaml

from test_export_files import Case
from test_export_restarts import shuffled
from test_export_slurm import fabric, spelled
from test_newer_geometry import ring, torus


class Geometry(Case):
    def topology(self, name, *more):
        (topology,) = yaml.safe_load(self.ctl("export", name, *more))
        self.assertEqual((topology["topology"], topology["cluster_default"]), ("ib0", True))
        return topology

    def refused(self, name, message):
        done = self.site.ctl("export", name)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertTrue(done.stderr.splitlines()[-1].startswith(f"fabricctl: {message}"), done.stderr)

    def same_of_any_order(self, name, capture):
        """The text does not depend on the order in which fabricd reads switches and cables."""
        self.import_from("", capture)
        text = self.ctl("export", name)
        for seed in (1, 2):
            self.import_from("", shuffled(capture, seed))
            self.assertEqual(self.ctl("export", name), text)

    def test_where_there_is_none(self):
        for spec in ("fattree2:4,2,4", "fattree2:2,2,2", "dragonfly:2,4,2", "random:12,40,20:3"):
            self.fabric(spec)
            kind = self.value("planes")[0]["kind"]
            self.refused("slurm-torus3d", f"no torus: plane ib0: its kind is {kind}: topology/torus3d needs a mesh or a torus")
            self.refused("slurm-ring", f"no ring: plane ib0: its kind is {kind}: topology/ring needs a ring of switches, or a torus with "
                                       "three switches in a dimension")
        self.fabric("mesh:3,4:1")
        self.refused("slurm-ring", "no ring: plane ib0: its kind is mesh-2d: ")


class Torus(Geometry):
    def torus(self):
        (entry,) = self.topology("slurm-torus3d")["torus3d"]["toruses"]
        return entry

    def cells(self, entry):
        """{host: its coordinates}; each cell of a region has a host, and no other cell has one."""
        size, found = [entry["dims"][axis] for axis in "xyz"], {}
        regions = entry.get("regions", [{"anchor": {"x": 0, "y": 0, "z": 0}, **entry}])
        for region in regions:
            at, dims = ([region[key][axis] for axis in "xyz"] for key in ("anchor", "dims"))
            self.assertTrue(all(a + n <= end for a, n, end in zip(at, dims, size)))
            hosts = spelled(region["nodes"])
            self.assertEqual(len(hosts), math.prod(dims))
            for i, host in enumerate(hosts):
                found[host] = (at[0] + i % dims[0], at[1] + i // dims[0] % dims[1], at[2] + i // dims[0] // dims[1])
        self.assertEqual(len(set(found.values())), sum(len(spelled(region["nodes"])) for region in regions))
        return found

    def check_cells(self, entry):
        """The hosts of a switch are neighbours along x, at the coordinates of the switch."""
        cells = self.cells(entry)
        (plane,) = self.value("planes")
        n = 3 if plane["kind"].endswith("3d") else 2
        most = entry["dims"]["x"] // plane["shape"][0]
        where = {device["host"]: (*device["logical"][:n], *[0] * (3 - n)) for device in self.value("devices")}
        self.assertEqual({host: (x // most, y, z) for host, (x, y, z) in cells.items()}, where)
        return cells

    def test_generated(self):
        for spec in ("torus:3,4,5:1", "torus:3,3,4:2", "torus:4,3:3", "mesh:2,3,4:1", "mesh:3,3:2", "torus:2,2,3:1"):
            with self.subTest(spec):
                self.fabric(spec)
                entry = self.torus()
                self.assertEqual(len(self.check_cells(entry)), math.prod(entry["dims"].values()))
                self.assertNotIn("regions", entry)

    def test_boxes(self):
        """All boxes of whole switches, or of an equal part of each, that fill the torus; for each further size the most compact box."""
        self.fabric("torus:4,3:2")
        boxes = [(tuple(box["dims"].values()), tuple(box.get("anchor_spacing", {}).values())) for box in self.torus()["placements"]]
        self.assertEqual([dims for dims, spacing in boxes if not spacing],
                         sorted(itertools.product((1, 2, 4, 8), (1, 3), (1,)), key=math.prod))
        self.assertEqual([box for box in boxes if box[1]],
                         [((5, 1, 1), (4, 1, 1)), ((7, 1, 1), (4, 1, 1)), ((3, 3, 1), (2, 3, 1)), ((5, 2, 1), (4, 1, 1)),
                          ((7, 2, 1), (4, 1, 1)), ((5, 3, 1), (4, 3, 1)), ((8, 2, 1), (8, 1, 1)), ((6, 3, 1), (4, 3, 1)),
                          ((7, 3, 1), (4, 3, 1))])
        self.assertIn("Slurm rejects jobs of these numbers of hosts, which fill no box of the file: 11,13,17,19-20,22-23\n", self.complaint)

    def test_a_mesh_has_no_box_over_its_end(self):
        self.fabric("mesh:3,4:1")
        for box in self.torus()["placements"]:
            self.assertNotIn("anchor_spacing", box)
            self.assertEqual([4 % box["dims"]["x"], 3 % box["dims"]["y"]], [0, 0])

    def test_cells_without_hosts(self):
        """Regions; a box stands there only if it has a place where each cell has a host."""
        for empty in ([(0, 0, 0)], [(1, 1, 1), (2, 1, 1)], [(x, y, 0) for x in range(3) for y in range(3)]):
            with self.subTest(empty):
                self.import_from("", fabric(torus(3, 3, 3, hosts=lambda place, empty=empty: 0 if place in empty else 1)))
                entry = self.torus()
                self.assertIn(f"{len(empty)} of 27 cells of topology/torus3d have no host", self.complaint)
                cells = set(self.check_cells(entry).values())
                for box in entry["placements"]:
                    dims, step = ([box.get(key, box["dims"])[axis] for axis in "xyz"] for key in ("dims", "anchor_spacing"))
                    self.assertTrue(any(cells >= {tuple((a + i) % 3 for a, i in zip(at, inside)) for inside in itertools.product(*map(range, dims))}
                                        for at in itertools.product(*(range(0, 3, n) for n in step))), box)
                self.assertNotIn(27, [math.prod(box["dims"].values()) for box in entry["placements"]])

    def test_mostly_without_hosts(self):
        self.import_from("", fabric(torus(3, 3, 3, hosts=lambda place: 9 if place == (0, 0, 0) else 1)))
        self.refused("slurm-torus3d", "no torus of Slurm: plane ib0: its switches have up to 9 hosts, so 35 hosts fill less than half of 27 x 3 x 3 cells")

    def test_order_and_strict(self):
        self.same_of_any_order("slurm-torus3d", fabric(torus(3, 4, 3, hosts=lambda place: 1 + (place[0] != 1))))
        self.ctl("export", "slurm-torus3d", "--strict", status=1, lines=3)

    def test_a_large_one(self):
        """The places of all boxes take at most 256 MiB of slurmctld; small sizes come first."""
        self.fabric("torus:16,16,16:4")
        entry = self.torus()
        size = [entry["dims"][axis] for axis in "xyz"]
        places = 0
        for box in entry["placements"]:
            places += math.prod(n // box.get("anchor_spacing", box["dims"])[axis] for n, axis in zip(size, "xyz"))
        self.assertLess(places * math.prod(size) / 8, 256 << 20)
        sizes = {math.prod(box["dims"].values()) for box in entry["placements"]}
        self.assertTrue(sizes >= {2 ** n for n in range(15)})


class Ring(Geometry):
    def rings(self, *more):
        return {entry["ring"]: spelled(entry["nodes"]) for entry in self.topology("slurm-ring", *more)["ring"]["rings"]}

    def test_a_ring_of_switches(self):
        for hosts in ((1, 1, 1), (2, 0, 3, 1), (1,) * 16, (4, 4, 4, 4)):
            with self.subTest(hosts):
                capture = fabric(ring(*hosts))
                self.same_of_any_order("slurm-ring", capture)
                ((name, nodes),) = self.rings("--strict").items()
                self.assertEqual((name, len(nodes)), ("ib0-ring0", sum(hosts)))
                switch = {device["host"]: device["switch"] for device in self.value("devices")}
                around = [key for key, _ in itertools.groupby(nodes, key=switch.get)]
                self.assertEqual(len(around), len(set(switch.values())))
                cables = {frozenset((link["a"], link["b"])) for link in self.value("links")}
                steps = [frozenset(pair) in cables for pair in zip(around, around[1:] + around[:1])]
                self.assertEqual(steps.count(False), hosts.count(0))

    def test_rings_of_a_torus(self):
        """Of the dimension with the longest rings of at most 16 hosts."""
        for spec, length, others in (("torus:4,5,3:3", 5, 12), ("torus:20,3:1", 3, 20), ("torus:4,6,3:4", 4, 18), ("torus:3,3:5", 3, 3)):
            with self.subTest(spec):
                self.fabric(spec)
                per_switch = int(spec.rpartition(":")[2])
                rings = self.rings()
                self.assertRegex(self.complaint, rf"rejects jobs of more than {length * per_switch} hosts without --segment\n$")
                (plane,) = self.value("planes")
                n = 3 if plane["kind"].endswith("3d") else 2
                where = {device["host"]: device["logical"][:n] for device in self.value("devices")}
                self.assertEqual({len(nodes) for nodes in rings.values()}, {length * per_switch})
                self.assertEqual(len(rings), others)
                self.assertEqual(len(set(itertools.chain(*rings.values()))), len(where))
                axis = plane["shape"].index(length)
                for nodes in rings.values():
                    self.assertEqual([where[host][axis] for host in nodes], [at for at in range(length) for _ in range(per_switch)])
                    self.assertEqual(len({tuple(at for i, at in enumerate(where[host]) if i != axis) for host in nodes}), 1)

    def test_too_long(self):
        self.import_from("", fabric(ring(*(1,) * 17)))
        self.refused("slurm-ring", "no ring of Slurm: plane ib0: its ring has 17 hosts, and topology/ring permits at most 16")
        self.fabric("torus:3,4,5:6")
        self.refused("slurm-ring", "no ring of Slurm: plane ib0: a ring of 3 switches with up to 6 hosts has more than 16 hosts, the most that "
                                   "topology/ring permits")

    def test_a_chain_is_none(self):
        self.import_from("", fabric(ring(1, 1, 1, 1, 1)[1:]))
        self.refused("slurm-ring", "no ring: plane ib0: its kind is ")


if __name__ == "__main__":
    unittest.main()
