"""Exports for Slurm, read by a newer slurmctld than Debian's: the one that is installed in the folder that FABRICD_SLURM
names (25.05 or later, outside of this project). `scontrol show topology` has the blocks and switches of slurm-block,
slurm-yaml and slurm-tree."""
import contextlib
import os
import re
import unittest

import yaml

import fabric_text
import lab
import test_export_slurm
import test_fabricctl
from test_export_slurm import Slurm, fabric, pods, spelled

PREFIX = os.environ.get("FABRICD_SLURM")


class Newer:
    prefix = PREFIX

    @classmethod
    def setUpClass(cls):
        if not PREFIX:
            raise unittest.SkipTest("FABRICD_SLURM names no folder that a newer Slurm is installed in")
        super().setUpClass()

    def from_capture(self, text):
        """From now on the run directory is of this fabric."""
        path = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(path, text)
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}}, start=False)
        self.assertEqual(daemon.run_once().returncode, 0)
        self.rundir = daemon.rundir

    def from_the_real_one(self):
        if not os.path.exists(fabric_text.REAL):
            self.skipTest("no capture of a real fabric lies beside the project")
        with open(fabric_text.REAL, encoding="utf-8") as file:
            self.from_capture(file.read())


class Trees(Newer, test_export_slurm.Generated):
    pass


class Captured(Newer, test_export_slurm.Captured):
    pass


class Ranks(Newer, test_export_slurm.Case):
    def test_pods_follow_each_other(self):
        """Slurm ranks nodes by the number of their leaf in the file: a pod comes after the other, also if their hosts alternate."""
        self.from_capture(fabric([cable for leaf in range(12) for cable in (
            (f"leaf{leaf:02}", f"n{leaf:02}a"), (f"leaf{leaf:02}", f"n{leaf:02}b"), (f"leaf{leaf:02}", f"spine{leaf % 3}"))] + [
                (f"spine{pod}", "core") for pod in range(3)]))
        text = self.ctl("export", "slurm-tree")
        nodes = [f"n{leaf:02}{host}" for leaf in range(12) for host in "ab"]
        slurm = Slurm(self.cluster, text, nodes, "topology/tree\nTopologyParam=SwitchAsNodeRank", self.prefix)
        try:
            ranked = re.findall(r"(?m)^NodeName=(\S+)", slurm.ask("show", "nodes", "-o").stdout)
        finally:
            slurm.stop()
        self.assertEqual(ranked, [f"n{leaf:02}{host}" for pod in range(3) for leaf in range(pod, 12, 3) for host in "ab"])
        self.assertEqual(ranked, spelled(self.ctl("export", "hostlist").strip()))


class Topologies(Newer, test_export_slurm.Case):
    """topology.yaml: a tree for each plane."""

    def read_by_slurm(self, text):
        """{topology: what Slurm says of it}; and that this is what stands there. The default comes without a name, too."""
        said = {entry["topology"]: {switch["switch"]: (sorted(spelled(switch.get("nodes", ""))),
                                                       sorted(spelled(switch.get("children", ""))))
                                    for switch in entry["tree"]["switches"]} for entry in yaml.safe_load(text)}
        nodes = sorted({node for switches in said.values() for below, _ in switches.values() for node in below})
        slurm = Slurm(self.cluster, text, nodes, "topology/flat", self.prefix, "topology.yaml")
        try:
            answer, log = {name: slurm.topology(name) for name in said}, slurm.log()
            default = slurm.topology()
        finally:
            slurm.stop()
        for name, switches in answer.items():
            self.assertEqual({switch: (sorted(below) if not up else [], up) for switch, (_, below, up) in switches.items()},
                             said[name], name)
        self.assertEqual([default], [answer[entry["topology"]] for entry in yaml.safe_load(text) if entry["cluster_default"]])
        self.assertNotRegex(log, r"(?i)invalid hostname|multiple leaf")
        return answer

    def test_one_plane(self):
        for spec, switches in (("fattree3:6", 18 + 6 + 1), ("dragonfly:2,4,2", 46), ("torus:3,3,3:2", 28), ("fattree2:250,4,20", 251)):
            with self.subTest(spec):
                test_fabricctl.snapshot(spec, self.rundir)
                (tree,) = self.read_by_slurm(self.ctl("export", "slurm-yaml")).values()
                self.assertEqual(len(tree), switches)

    def test_two_planes(self):
        test_fabricctl.snapshot("fattree3:4", self.rundir)
        test_fabricctl.snapshot("fattree2:2,1,10", self.rundir, "ib1", "2", "3")
        answer = self.read_by_slurm(self.ctl("export", "slurm-yaml"))
        self.assertEqual({name: sum(len(nodes) for level, nodes, _ in tree.values() if level == 0)
                          for name, tree in answer.items()}, {"ib0": 16, "ib1": 20})

    def test_the_real_one(self):
        self.from_the_real_one()
        self.read_by_slurm(self.ctl("export", "slurm-yaml"))

    def test_kinds_and_partitions(self):
        """A partition has its own topology: tree, block, flat, and a tree of two planes."""
        test_fabricctl.snapshot("fattree3:4", self.rundir)
        test_fabricctl.snapshot("fattree2:10,2,2", self.rundir, "ib1", "2", "3")
        text = self.ctl("export", "slurm-yaml", "--spare", "1", "--topologies",
                        "compute=tree:ib0 racks=block:ib1,*whole=tree:ib[0-1] plain=flat")
        said = {entry["topology"]: entry for entry in yaml.safe_load(text)}
        names = [f"node{n:04}" for n in range(1, 21)]
        partitions = "".join(f"PartitionName={name} Nodes=ALL Topology={name} OverSubscribe=EXCLUSIVE\n" for name in said)
        slurm = Slurm(self.cluster, text, names, "topology/flat", self.prefix, "topology.yaml", partitions)
        try:
            self.assertEqual({name: set(spelled(",".join(below))) for name, (_, below, _) in slurm.topology("whole").items() if name in ("ib0", "ib1")},
                             {"ib0": set(names[:16]), "ib1": set(names[16:])})
            self.assertEqual(slurm.topology(), slurm.topology("whole"))
            self.assertEqual(set(slurm.topology("compute")), {switch["switch"] for switch in said["compute"]["tree"]["switches"]})
            racks = slurm.ask("show", "topology", "racks").stdout
            self.assertEqual(re.findall(r"(?m)^BlockName=(\S+)", racks), [block["block"] for block in said["racks"]["block"]["blocks"]])
            self.assertEqual(set(re.findall(r"(?m)^BlockName=\S+ .*BlockSize=(\d+)", racks)), {str(said["racks"]["block"]["block_sizes"][0])})
            self.assertEqual(len(slurm.chosen(4, "-p", "compute")), 4)
            self.assertEqual(len(slurm.chosen(20, "-p", "racks")), 20)
            self.assertEqual(len(slurm.chosen(20, "-p", "plain")), 20)
            self.assertIsNone(slurm.chosen(17, "-p", "compute"))  # 16 are in its topology
        finally:
            slurm.stop()


class Blocks(Newer, test_export_slurm.Case):
    @contextlib.contextmanager
    def controller(self, text):
        nodes = sorted(node for _, nodes in self.said(text) for node in spelled(nodes))
        slurm = Slurm(self.cluster, text, nodes, "topology/block", self.prefix)
        try:
            yield slurm
        finally:
            slurm.stop()

    @staticmethod
    def said(text):
        """[(block, its nodes)]"""
        return re.findall(r"(?m)^BlockName=(\S+)(?: Nodes=(\S+))?$", text)

    def chosen(self, text, requests):
        """What jobs of so many nodes would get."""
        with self.controller(text) as slurm:
            return {nodes: slurm.chosen(nodes) for nodes in requests}

    def read_by_slurm(self, text):
        """{block: its nodes} and {the nodes of a larger block: its size}; and that this is what stands there."""
        said = {name: sorted(spelled(nodes)) for name, nodes in self.said(text)}
        with self.controller(text) as slurm:
            answer, log = slurm.ask("show", "topology").stdout, slurm.log()
        found = re.findall(r"(?m)^(BlockName|AggregatedBlock)=(\S+) BlockIndex=\d+(?: Nodes=(\S*))? BlockSize=(\d+)$", answer)
        blocks = {name: sorted(spelled(nodes)) for kind, name, nodes, _ in found if kind == "BlockName"}
        self.assertEqual(len(found), len(answer.splitlines()))
        self.assertEqual(blocks, said)
        self.assertEqual({int(size) for kind, _, _, size in found if kind == "BlockName"},
                         {int(re.search(r"(?m)^BlockSizes=(\d+)", text).group(1))})
        self.assertNotRegex(log, r"(?i)lack access|invalid hostname")
        return blocks, {tuple(sorted(spelled(nodes))): int(size) for kind, _, nodes, size in found if kind != "BlockName"}

    def of(self, spec, *args):
        test_fabricctl.snapshot(spec, self.rundir)
        return self.read_by_slurm(self.ctl("export", "slurm-block", *args))

    def test_generated(self):
        for spec, leaves, base in (("rails:5,4,6,2", 5, 6), ("dragonfly:2,4,2", 36, 2), ("fattree2:250,4,20", 250, 20)):
            with self.subTest(spec):
                blocks, _ = self.of(spec)
                self.assertEqual((len(blocks), {len(nodes) for nodes in blocks.values()}), (leaves, {base}))
        _, larger = self.of("fattree3:8")  # pods are larger blocks
        self.assertEqual(larger, {**{tuple(f"node{16 * pod + n:04}" for n in range(1, 17)): 16 for pod in range(8)},
                                  tuple(f"node{n:04}" for n in range(1, 129)): 128})

    def test_the_real_one(self):
        self.from_the_real_one()
        self.read_by_slurm(self.ctl("export", "slurm-block"))

    def test_pods_of_odd_sizes(self):
        """Blocks of four leaves lie within a pod of four to seven; what is left over stands at the end."""
        self.from_capture(fabric(pods((2,) * 4, (2,) * 5, (2,) * 7, (2,) * 3)))
        blocks, larger = self.read_by_slurm(self.ctl("export", "slurm-block"))
        self.assertEqual(list(blocks)[12:], ["leaf1x04", "leaf2x04", "leaf2x05", "leaf2x06", "leaf3x00", "leaf3x01", "leaf3x02"])
        self.assertEqual([{node[:2] for node in nodes} for nodes in larger], [{"n0"}, {"n1"}, {"n2"}, {"n1", "n2"}, {"n3"}, {"n0", "n1", "n2", "n3"}])
        self.assertEqual(self.complaint, "fabricctl: lost: BlockSizes 8: 1 block of 4 leaves reaches over several switches: ib0-pod1\n")

    def test_every_request_has_a_place(self):
        """Leaves of unequal size: with the first size that is inferred each request finds blocks that there are nodes for;
        with the next larger one, which `export` warns of, some does not."""
        for of, base, more in (([(6, 6, 6, 2)], 6, ["7"]), ([(6, 6, 1, 1)], 4, ["5"]), ([(4, 4), (4, 3), (4, 4)], 4, []),
                               ([(5, 4, 4, 4), (4, 4, 4, 3)], 4, ["5,20"]), ([(1, 6), (6, 6), (6, 6, 6)], 5, ["6,12"]),
                               ([(6, 6, 7), (6, 2), (7, 2)], 4, ["5,10"]), ([(1, 6, 6), (2, 1, 1, 1)], 3, ["4,16"])):
            with self.subTest(of):
                cables = pods(*of)
                self.from_capture(fabric(cables))
                requests = range(1, sum(cable[1][0] == "n" for cable in cables) + 1)
                text = self.ctl("export", "slurm-block")
                self.assertRegex(text, rf"(?m)^BlockSizes={base}\b")
                self.assertEqual({nodes: len(got or []) for nodes, got in self.chosen(text, requests).items()},
                                 {nodes: nodes for nodes in requests})
                for sizes in more:
                    text = self.ctl("export", "slurm-block", "--block-sizes", sizes)
                    self.assertIn(f"Slurm rejects some requests although there are enough hosts; up to {base} ", self.complaint)
                    self.assertIn(None, self.chosen(text, requests).values())

    def kept(self, cables, out, gone, *args):
        """The text of a file that stays, of the fabric without these leaves and their hosts."""
        hosts = {host for leaf, host in cables if leaf in gone and host[0] == "n"}
        self.from_capture(fabric_text.without(fabric(cables), *gone, *hosts))
        self.ctl("export", "slurm-block", "-o", out, *args)
        with open(out, encoding="utf-8") as file:
            return file.read()

    def test_every_request_has_a_place_beside_empty_blocks(self):
        """Leaves that are gone leave their blocks empty, and placeholders stand at the end: slurmctld starts with that, has the other
        blocks in their places, and each request for which there are nodes finds some."""
        for of, gone, spare in (([(2,) * 4] * 2, ["leaf0x01"], 0), ([(4,) * 4] * 2, ["leaf0x01", "leaf1x00"], 3),
                                ([(6, 6, 6, 2), (6,) * 4], ["leaf0x00", "leaf0x03"], 1), ([(4, 4), (4, 3), (4, 4)], ["leaf1x00"], 2),
                                ([(5,) * 5], ["leaf0x00", "leaf0x04"], 4),
                                ([(2,) * 4] * 5, ["leaf0x00", "leaf1x01", "leaf2x03"], 0), ([(3,) * 4] * 3, ["leaf1x00", "leaf1x01", "leaf1x02", "leaf1x03"], 0)):
            with self.subTest(of):
                cables, out = pods(*of), os.path.join(lab.tmpdir(), "topology.conf")
                whole = self.said(self.kept(cables, out, (), "--spare", str(spare)))
                text = self.kept(cables, out, gone, "--spare", str(spare))
                self.assertEqual(self.said(text), [(name, "" if name in gone else nodes) for name, nodes in whole])
                self.assertEqual([name for name, nodes in whole if not nodes], [f"spare{n + 1}" for n in range(spare)])
                requests = range(1, sum(len(spelled(nodes)) for _, nodes in self.said(text)) + 1)
                self.read_by_slurm(text)
                self.assertEqual({nodes: len(got or []) for nodes, got in self.chosen(text, requests).items()}, {nodes: nodes for nodes in requests})

    def test_sizes_by_hand_and_an_empty_block(self):
        """Slurm gives up at a block without nodes in a larger block, where it has to choose some of several larger blocks."""
        cables, out = pods(*[(4,) * 4] * 2), os.path.join(lab.tmpdir(), "topology.conf")
        args = ("--spare", "3", "--block-sizes", "3,12,48")
        self.kept(cables, out, (), *args)
        self.assertNotIn("has no host", self.complaint)
        text = self.kept(cables, out, ["leaf0x01", "leaf1x00"], *args)
        self.assertIn("lost: BlockSizes: leaf0x01 has no host: Slurm rejects some requests over several larger blocks", self.complaint)
        self.assertIn(None, self.chosen(text, range(13, 25)).values())
        text = self.kept(cables, out, ["leaf0x01", "leaf1x00"], "--spare", "3", "--block-sizes", "3,12,24,48")
        self.assertNotIn("has no host", self.complaint)
        self.assertEqual({nodes: len(got or []) for nodes, got in self.chosen(text, range(13, 25)).items()}, {nodes: nodes for nodes in range(13, 25)})

    def test_requests_beyond_the_last_size(self):
        """Slurm counts whole blocks of the last size only: what is inferred ends with a size that holds all."""
        self.from_capture(fabric(pods(*[(3, 3)] * 3, (3,))))
        everything = range(18, 22)
        text = self.ctl("export", "slurm-block")
        self.assertRegex(text, "(?m)^BlockSizes=3,6,24$")
        self.assertEqual([len(got) for got in self.chosen(text, everything).values()], list(everything))
        text = self.ctl("export", "slurm-block", "--block-sizes", "3,6")
        self.assertIn("lost: BlockSizes end with 6: Slurm rejects requests that need the last 1 of 7 leaves, which are no whole block: "
                      "add a size of at least 21", self.complaint)
        self.assertEqual([nodes for nodes, got in self.chosen(text, everything).items() if got is None], [19, 20, 21])

    def test_beside_place(self):
        """What fits into a leaf is in one leaf, and what fits into a pod in one pod, as `place` has it."""
        test_fabricctl.snapshot("fattree3:8", self.rundir)
        for nodes, got in self.chosen(self.ctl("export", "slurm-block"), (1, 3, 4, 5, 16, 20, 40)).items():
            theirs = self.value("order", ",".join(got))
            ours = self.value("place", "-n", str(nodes), "--objective", "switches")
            self.assertEqual(theirs["switches"], ours["switches"], nodes)
            if nodes <= 16:
                self.assertGreaterEqual(theirs["cost"], self.value("place", "-n", str(nodes))["cost"])


if __name__ == "__main__":
    unittest.main()
