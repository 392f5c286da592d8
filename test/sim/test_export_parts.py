"""Parts of a fabric in exports for schedulers: several topologies in one file, only some hosts, levels by hand, blocks that keep
their places, and files that do not shrink."""
import json
import os
import re
import unittest

import ctl_case
import fabric_text
import sim
import yaml
from export_names import FORMATS, of_slurm, paths
from sim import lab
from test_export_slurm import fabric, pods, spelled

HAND = """# rows of the hall
row1 = leaf[1-2]   # two of them
row2 = leaf3,leaf4
hall = row*
"""
SCONTROL = """#!/bin/sh
[ "$*" = "--oneliner --all show nodes" ] || exit 9
[ -z "$WHY" ] || { echo "$WHY" >&2; exit 1; }
cat <<END
NodeName=node0001 Arch=x86_64 AvailableFeatures=gpu,fast ActiveFeatures=gpu
NodeName=node0002 AvailableFeatures=(null)
NodeName=node0009 AvailableFeatures=fast
NodeName=login1 AvailableFeatures=gpu
END
"""


def read_file(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def blocks_of(text):
    """[(block, its hosts)] and the sizes of a topology.conf."""
    lines = [dict(word.split("=", 1) for word in line.split()) for line in text.splitlines() if not line.startswith("#")]
    return ([(line["BlockName"], spelled(line.get("Nodes", ""))) for line in lines if "BlockName" in line],
            [int(size) for line in lines for size in line.get("BlockSizes", "").split(",") if size])


def places(hosts, sizes, request):
    """How many hosts Slurm finds for a request, by its rule: the smallest size that has as many blocks of the first size, and in it
    as many of the next smaller size as would be needed if all were full. hosts: of each block."""
    base, units = sizes[0], [size // sizes[0] for size in sizes]
    blocks = -(-request // base)
    upper = next((unit for unit in units if unit >= blocks), len(hosts))
    lower = max((unit for unit in units if unit < blocks), default=1)
    parts = [[sum(hosts[at:at + lower]) for at in range(begin, min(begin + upper, len(hosts)), lower)] for begin in range(0, len(hosts), upper)]
    return max(sum(sorted(part)[::-1][:-(-request // (lower * base))]) for part in parts)


class Case(ctl_case.Case):
    def setUp(self):
        super().setUp()
        self.out = os.path.join(self.rundir, "out")

    def write(self, text, name="hand"):
        path = os.path.join(self.site.dir, name)
        lab.replace_file(path, text)
        return path

    def refused(self, why, *args, status=1):
        """This is refused, and the file stays."""
        lab.replace_file(self.out, "mine\n")
        self.ctl("export", *args, "-o", self.out, status=status)
        self.assertIn(why, self.complaint)
        self.assertEqual(read_file(self.out), "mine\n")


class Topologies(Case):
    def setUp(self):
        super().setUp()
        self.site.snapshot("fattree3:4", "ib1", 1)
        self.site.snapshot("fattree2:4,1,10", "stor", 2)

    def made(self, text, *args):
        return {entry["topology"]: entry for entry in yaml.safe_load(self.ctl("export", "slurm-yaml", "--topologies", text, *args))}

    @staticmethod
    def tree(entry):
        switches = entry["tree"]["switches"]
        return paths({switch["switch"]: spelled(switch["nodes"]) for switch in switches if "nodes" in switch},
                     {child: switch["switch"] for switch in switches for child in spelled(switch.get("children", ""))})

    def test_each_kind(self):
        found = self.made("compute=tree:ib0 racks=block:ib1,*all=tree:ib[0-1] both=tree:stor+ib0 plain=flat")
        self.assertEqual(list(found), ["compute", "racks", "all", "both", "plain"])
        self.assertEqual([name for name, entry in found.items() if entry["cluster_default"]], ["all"])
        self.assertEqual(self.tree(found["compute"]), of_slurm(self.ctl("export", "slurm-tree", "--plane", "ib0")))
        blocks, sizes = blocks_of(self.ctl("export", "slurm-block", "--plane", "ib1"))
        self.assertEqual(found["racks"]["block"]["block_sizes"], sizes)
        self.assertEqual([(block["block"], spelled(block["nodes"])) for block in found["racks"]["block"]["blocks"]], blocks)
        everything = of_slurm(self.ctl("export", "slurm-tree"))  # hosts of ib0 first, then of ib1, then of stor
        self.assertEqual(self.tree(found["all"]), {host: path for host, path in everything.items() if path[-1] in ("ib0", "ib1")})
        self.assertEqual({host: path[-1] for host, path in self.tree(found["both"]).items()},
                         {f"node{n:04}": "ib0" if n <= 16 else "stor" for n in range(1, 41)})
        self.assertEqual(set(found["plain"]) - {"topology", "cluster_default"}, {"flat"})
        self.assertIs(found["plain"]["flat"], True)

    def test_the_first_is_the_default(self):
        self.assertEqual([entry["cluster_default"] for entry in self.made("a=flat b=tree:ib0").values()], [True, False])

    def test_options_of_blocks(self):
        found = self.made("a=block:ib0", "--block-sizes", "2,8", "--spare", "2")["a"]["block"]
        self.assertEqual(found["block_sizes"], [2, 8])
        self.assertEqual([(block["block"], "nodes" in block) for block in found["blocks"]][-3:],
                         [("leaf4", True), ("spare1", False), ("spare2", False)])

    def test_a_loss_is_told_once(self):
        self.site.snapshot("torus:3,3:2", "ib0", 0)
        self.made("a=tree:ib0 b=block:ib0")
        self.assertEqual(self.complaint.count("lost: plane ib0: its kind is"), 1)

    def test_refused(self):
        for text, why, status in (
                ("a=tree:ib7", "a: no plane ib7: see fabricctl planes", 1), ("a=tree:ib0+x*", "a: no plane x*", 1),
                ("a=cube:ib0", "a=cube:ib0: there are tree, block, flat, ring and torus3d", 2), ("a=tree", "no plane: --topologies: a=tree", 2),
                ("a=tree:+", "no plane: ", 2), ("a", "no topology: --topologies: a: give NAME=", 2), (", ", "no topology: ", 2),
                ("a=flat a=flat", "a name twice: --topologies: a=flat", 2), ("*a=flat *b=flat", "two default ones", 2),
                ("a/b=flat", "no name for a topology: --topologies: a/b=flat", 2), ("=flat", "no name for a topology", 2),
                ("a" * 46 + "=flat", "no name for a topology", 2),
                ("a=ring:ib0", "no ring: plane ib0: its kind is fat-tree-2", 1), ("a=torus3d:ib0", "no torus: plane ib0: its kind is fat-tree-2", 1)):
            with self.subTest(text):
                self.refused(why, "slurm-yaml", "--topologies", text, status=status)
        self.refused("--topologies is for slurm-yaml", "slurm-tree", "--topologies", "a=flat", status=2)
        self.refused("--block-sizes is for slurm-block, and slurm-yaml with --topologies", "slurm-yaml", "--block-sizes", "4", status=2)
        self.refused("--spare is for slurm-block", "slurm-tree", "--spare", "4", status=2)
        self.refused("--slurm is for slurm-block", "slurm-yaml", "--topologies", "a=flat", "--slurm", "24.11", status=2)


class OnlyThese(Case):
    def scontrol(self, text=SCONTROL):
        path = self.write(text, "scontrol")
        os.chmod(path, 0o755)
        os.environ["FABRICD_SCONTROL"] = path
        self.addCleanup(os.environ.pop, "FABRICD_SCONTROL")

    def test_a_list_in_each_format(self):
        for name, read in FORMATS.items():
            whole = read(self.ctl("export", name))
            some = read(self.ctl("export", name, "--nodes", "node[0002-0005],node0002", "--strict"))
            self.assertEqual(some, {host: path for host, path in whole.items() if host in spelled("node[0002-0005]")}, name)
            self.assertEqual(self.complaint, "")

    def test_hosts_that_are_not_there(self):
        self.ctl("export", "slurm-tree", "--nodes", "node[0016-0018],login1", "--strict")
        self.assertEqual(self.complaint, "fabricctl: 3 hosts of --nodes are not in the fabric: node[0017-0018],login1\n")
        self.ctl("export", "slurm-tree", "--nodes", "login1,node0001")
        self.assertEqual(self.complaint, "fabricctl: 1 host of --nodes is not in the fabric: login1\n")
        self.ctl("export", "slurm-tree", "--nodes", "login1", status=1, lines=2)
        self.assertIn("nothing to write: --nodes login1: no such host is connected", self.complaint)
        self.refused("no list of hosts: --nodes node[1", "slurm-tree", "--nodes", "node[1", status=2)
        self.refused("--nodes is for formats that have hosts at leaves", "json", "--nodes", "node0001", status=2)

    def test_the_nodes_of_slurm(self):
        self.scontrol()
        for what, hosts in (("slurm", {"node0001", "node0002", "node0009"}), ("slurm:fast", {"node0001", "node0009"})):
            self.assertEqual(set(of_slurm(self.ctl("export", "slurm-tree", "--nodes", what, "--strict"))), hosts)
            self.assertEqual(self.complaint, "")
        self.refused("nothing to write: --nodes slurm:fas: no such host", "slurm-tree", "--nodes", "slurm:fas")
        self.refused("no feature: --nodes slurm:", "slurm-tree", "--nodes", "slurm:", status=2)
        os.environ["WHY"] = "Unable to contact slurm controller"
        self.addCleanup(os.environ.pop, "WHY")
        self.refused("not written: scontrol --oneliner --all show nodes: Unable to contact slurm controller", "slurm-tree", "--nodes", "slurm")


class Above(Case):
    def test_between_in_each_format(self):
        hand = self.write(HAND)
        for name, read in FORMATS.items():
            before, after = read(self.ctl("export", name)), read(self.ctl("export", name, "--above", hand))
            row = {"leaf1": "row1", "leaf2": "row1", "leaf3": "row2", "leaf4": "row2"}
            between = (lambda leaf: ()) if name == "slurm-block" else lambda leaf: (row[leaf], "hall")
            self.assertEqual(after, {host: (path[0], *between(path[0]), *path[1:]) for host, path in before.items()}, name)

    def test_children_stand_before_their_parents(self):
        seen = set()
        for line in self.ctl("export", "slurm-tree", "--above", self.write(HAND)).splitlines():
            words = dict(word.split("=", 1) for word in line.split()) if not line.startswith("#") else {}
            self.assertLessEqual(set(spelled(words.get("Switches", ""))), seen)
            seen.add(words.get("SwitchName"))

    def test_over_roots_and_pods(self):
        self.site.snapshot("fattree3:4", "ib1", 1)  # its hosts are in ib0, too
        self.site.snapshot("fattree2:2,1,20", "ib2", 2)
        tree = of_slurm(self.ctl("export", "slurm-tree", "--above", self.write("site = ib0 ib2\n")))
        self.assertEqual({path[1:] for path in tree.values()}, {("ib0", "site"), ("ib2", "site")})
        tree = of_slurm(self.ctl("export", "slurm-tree", "--plane", "ib1", "--above", self.write("hall = ib1-pod[0-1]\n")))
        self.assertEqual({path[1:] for path in tree.values()},
                         {("ib1-pod0", "hall", "ib1"), ("ib1-pod1", "hall", "ib1"), ("ib1-pod2", "ib1"), ("ib1-pod3", "ib1")})
        self.refused("hand: line 1: ib1-pod0 is below ib1, and ib1 is below no switch", "slurm-tree", "--plane", "ib1",
                     "--above", self.write("site = ib1*\n"))

    def test_refused(self):
        for text, why in (
                ("a = leaf1 leaf9\n", "hand: line 1: no such leaf, switch of the tree, or line: leaf9"),
                ("\n# x\na = leaf1 spine*x\n", "line 3: no such leaf, switch of the tree, or line: spine*x"),
                ("a = leaf1\nb = leaf[1-2]\n", "line 2: leaf1 is a member in line 1 already"),
                ("a = leaf1 ib0\n", "line 1: leaf1 is below ib0, and ib0 is below no switch"),
                ("a = leaf1\nb = a ib0\n", "line 2: ib0 is below no switch, and a is below ib0"),
                ("a = b\nb = a\n", "line 1: a is its own member"), ("a = a\n", "line 1: a cannot be its own member"),
                ("a = leaf1\na = leaf2\n", "line 2: a is in line 1 already"), ("leaf3 = leaf1\n", "line 1: a switch is called leaf3 already"),
                ("a leaf1\n", "line 1: no level: write NAME = MEMBER"), ("a =\n", "line 1: no level"), ("a b = leaf1\n", "line 1: no level"),
                ("a/b = leaf1\n", "line 1: no name for a switch: a/b"), ("default = leaf1\n", "line 1: no name for a switch: default"),
                ("a = leaf[1\n", "line 1: no list of names: leaf[1"), ("a = leaf1,!\n", "line 1: no pattern: leaf1,!")):
            with self.subTest(text):
                self.refused(why, "slurm-tree", "--above", self.write(text))
        self.refused("not written: /none/x: No such file", "slurm-tree", "--above", "/none/x")
        self.refused("--above is for formats that have hosts at leaves", "csv", "--above", "/dev/null", status=2)

    def test_for_each_topology(self):
        """A member is in one of the trees."""
        self.site.snapshot("fattree3:4", "ib1", 1)
        found = {entry["topology"]: Topologies.tree(entry)
                 for entry in yaml.safe_load(self.ctl("export", "slurm-yaml", "--above", self.write("row = ib0\nhall = ib1-pod[0-3]\n")))}
        self.assertEqual({path[1:] for path in found["ib0"].values()}, {("ib0", "row")})
        self.assertEqual({path[2:] for path in found["ib1"].values()}, {("hall", "ib1")})
        self.refused("leaf0-0 is below ib1-pod0, and leaf1-0 is below ib1-pod1", "slurm-yaml", "--above", self.write("a = leaf0-0 leaf1-0\n"))
        self.ctl("export", "slurm-yaml", "--topologies", "a=flat", "--above", self.write("row = ib0\n"))
        self.refused("hand: line 1: no such leaf", "slurm-yaml", "--above", self.write("a = leaf99\n"))

    def test_a_leaf_without_its_hosts(self):
        """It is no leaf then, and stays a switch of the fabric: its line is no mistake."""
        tree = of_slurm(self.ctl("export", "slurm-tree", "--above", self.write(HAND), "--nodes", "node[0001-0008]"))
        self.assertEqual({path for path in tree.values()}, {("leaf1", "row1", "hall", "ib0"), ("leaf2", "row1", "hall", "ib0")})


class Site(unittest.TestCase):
    """A site of pods of leaves, from which some vanish."""
    settings = {"changes": {"flap_count": 0, "retain_seconds": 0}}

    def start(self, *sizes, settings=None, more=()):
        self.dir = lab.tmpdir()
        self.out = os.path.join(self.dir, "out")
        self.sizes, self.more = sizes, more
        self.site = sim.Recorded(self.text(), settings or self.settings)
        self.addCleanup(self.site.free)

    def text(self, gone=()):
        """Without these leaves and their hosts."""
        cables = [*pods(*self.sizes), *self.more]
        names = {end for cable in cables for end in cable}
        lost = [name for name in names for leaf in gone if name == f"leaf{leaf}" or name.startswith(f"n{leaf}x")]
        return fabric_text.without(fabric(cables, GUIDS), *lost)

    def show(self, *gone):
        self.site.show(self.text(gone))
        self.site.refresh()
        self.site.advance(20)

    def export(self, *args, status=0):
        done = self.site.ctl("export", *args, "-o", self.out)
        self.assertEqual(done.returncode, status, done.stderr)
        self.complaint = done.stderr
        return read_file(self.out)

    def names(self):
        return json.loads(read_file(self.out + ".names"))


NEW = [("leafnew", "nnewx1"), ("leafnew", "nnewx2"), ("leafnew", "spine1")]
GUIDS = {"leafnew": 0x9010, "nnewx1": 0x9020, "nnewx2": 0x9030, "leafmore": 0x9040, "nmore1": 0x9050}
MORE = [("leafmore", "nmore1"), ("leafmore", "spine0")]


class Blocks(Site):
    def blocks(self, *args):
        """[(block, number of its hosts)]"""
        self.found, self.sizes_found = blocks_of(self.export("slurm-block", *args))
        return [(name, len(hosts)) for name, hosts in self.found]

    def right_sizes(self):
        """Each request for which there are hosts has a place, and not with a larger first size."""
        hosts = [len(block[1]) for block in self.found]
        def fit(base):
            sizes = [size // self.sizes_found[0] * base for size in self.sizes_found]
            return all(places(hosts, sizes, n) >= n for n in range(1, sum(hosts) + 1))
        self.assertTrue(fit(self.sizes_found[0]))
        self.assertFalse(fit(self.sizes_found[0] + 1))

    def leaves(self, *names):
        return [(f"leaf{name}", 2) for name in names]

    def start_pods(self, *args):
        """Two pods of four leaves."""
        self.start((2,) * 4, (2,) * 4)
        self.whole = self.leaves("0x00", "0x01", "0x02", "0x03", "1x00", "1x01", "1x02", "1x03")
        spare = [(f"spare{n}", 0) for n in range(1, int(args[1]) + 1)] if args else []
        self.assertEqual(self.blocks(*args), self.whole + spare)
        self.args = args

    def with_gone(self, *gone):
        return [(name, 0 if name in gone else n) for name, n in self.whole]

    def test_a_leaf_goes_and_comes_back(self):
        self.start_pods()
        before = read_file(self.out)
        self.show("0x01", "1x00")
        self.assertEqual(self.blocks(), self.with_gone("leaf0x01", "leaf1x00"))
        self.assertIn("\nBlockName=leaf0x01\n", read_file(self.out))
        self.right_sizes()
        self.export("slurm-block", "--if-changed", status=3)
        self.show("0x01")
        self.assertEqual(self.blocks(), self.with_gone("leaf0x01"))
        self.assertEqual(self.sizes_found, [2, 8, 16])
        self.right_sizes()
        self.show()
        self.blocks()
        self.assertEqual(read_file(self.out), before)

    def test_a_new_leaf_in_the_place_of_its_pod(self):
        """Or of its name; the other pod's place stays empty. A leaf whose place is taken gets another place."""
        self.start_pods()
        self.show("0x01", "1x00", "1x02")
        self.blocks()
        self.more = NEW
        self.show("0x01", "1x00", "1x02")
        after = self.with_gone("leaf0x01", "leaf1x02")
        after[4] = ("leafnew", 2)
        self.assertEqual(self.blocks(), after)
        self.show()
        after = [*self.whole]
        after[4] = ("leafnew", 2)
        self.assertEqual(self.blocks(), after + [("leaf1x00", 2)])
        self.more = ()
        self.show("1x00")
        self.assertEqual(self.blocks()[4], ("leafnew", 0))

    def test_another_switch_of_its_name(self):
        """A swapped switch has another GUID: its block has its place, also if a place before is empty."""
        self.start_pods()
        self.show("1x00", "1x02")
        self.blocks()
        self.more = [(*(end.replace("leafnew", "leaf1x02") for end in cable),) for cable in NEW]
        self.show("1x00")  # the hosts of the old leaf come back, too
        self.assertEqual(self.blocks()[4:7], [("leaf1x00", 0), ("leaf1x01", 2), ("leaf1x02", 4)])

    def test_a_name_that_an_empty_block_has(self):
        self.start_pods()
        names = self.names()
        names["blocks"]["default"].append({"name": "leaf0x00", "pod": "other", "switches": ["0x0000000000009990"]})
        names["blocks"]["default"].append({"name": "bad name"})
        lab.replace_file(self.out + ".names", json.dumps(names))
        self.assertEqual(self.blocks(), self.whole + [("leaf0x00-s9990", 0)])
        self.assertEqual(self.blocks(), self.whole + [("leaf0x00-s9990", 0)])

    def test_placeholders(self):
        """A new leaf gets the first one, with its name; there are as many as before."""
        self.start_pods("--spare", "2")
        self.more = NEW
        self.show()
        taken = self.whole + [("spare1", 2), ("spare2", 0)]
        self.assertEqual(self.blocks(*self.args), taken)
        self.right_sizes()
        self.assertIn("\n# spare1 0x0000000000009010 leafnew\n", read_file(self.out))
        self.assertEqual(self.names()["0x0000000000009010"]["leaf"], "leafnew")
        self.assertEqual(self.names()["blocks"]["default"][8],
                         {"name": "spare1", "spare": True, "pod": "ib0-pod1", "switches": ["0x0000000000009010"]})
        self.more = ()
        self.show()
        self.assertEqual(self.blocks(*self.args), self.whole + [("spare1", 0), ("spare2", 0)])
        self.more = NEW + MORE
        self.show()
        self.assertEqual(self.blocks(*self.args), self.whole + [("spare1", 2), ("spare2", 1)])
        self.assertEqual(self.blocks("--spare", "3"), self.whole + [("spare1", 2), ("spare2", 1), ("spare3", 0)])
        self.assertEqual(self.blocks(), self.whole + [("spare1", 2), ("spare2", 1)])

    def test_at_the_end(self):
        self.start_pods()
        self.more = NEW
        self.show()
        self.assertEqual(self.blocks(), self.whole + [("leafnew", 2)])

    def test_older_versions(self):
        """No empty block: a comment, and a loss if blocks move."""
        self.start_pods("--spare", "1")
        self.show("0x01")
        for version in ("22.05", "24.11"):
            self.assertEqual(self.blocks("--spare", "1", "--slurm", version), [one for one in self.whole if one[0] != "leaf0x01"])
            self.assertIn("\n# BlockName=leaf0x01\n", read_file(self.out))
            self.assertIn("\n# BlockName=spare1\n", read_file(self.out))
            self.assertIn("lost: leaf0x01 has no host, and Slurm before 25.05 takes no block without hosts: the blocks behind it move up",
                          self.complaint)
        self.assertEqual(self.blocks("--spare", "1", "--slurm", "25.05"), self.with_gone("leaf0x01") + [("spare1", 0)])
        self.show()
        self.blocks("--spare", "1", "--slurm", "24.11")
        self.assertEqual(self.complaint, "")  # the placeholder at the end moves nothing
        self.start((4, 4, 4, 1), (4, 4, 4))
        self.blocks("--slurm", "24.11")  # not larger than the smallest block; the last size has room for all hosts
        self.assertEqual((self.sizes_found, self.complaint), ([1, 4, 32], ""))
        for version in ("x", "24", "24.13", "24.11.5", "-4.11"):
            self.export("slurm-block", "--slurm", version, status=2)
            self.assertIn("no version of Slurm: --slurm", self.complaint)

    def test_in_yaml_each_topology_has_its_own(self):
        self.start((2,) * 4, (2,) * 4)
        args = ("slurm-yaml", "--topologies", "a=block:ib0 t=tree:ib0")
        before = yaml.safe_load(self.export(*args))
        self.show("0x01")
        after = yaml.safe_load(self.export(*args))
        self.assertEqual([block["block"] for block in after[0]["block"]["blocks"]], [block["block"] for block in before[0]["block"]["blocks"]])
        self.assertEqual([block["block"] for block in after[0]["block"]["blocks"] if "nodes" not in block], ["leaf0x01"])
        self.assertEqual(set(self.names()["blocks"]), {"a"})


class Members(Site):
    def test_a_leaf_that_is_gone(self):
        """Of a line that had it before: the export goes on."""
        self.start((2,) * 4, (2,) * 4)
        hand = os.path.join(self.dir, "hand")
        lab.replace_file(hand, "row1 = leaf0x0[0-1]\nrow2 = leaf0x02\n")
        self.export("slurm-tree", "--above", hand)
        for _ in range(2):
            self.show("0x01", "0x02")
            self.assertEqual({path for path in of_slurm(self.export("slurm-tree", "--above", hand)).values() if path[0].startswith("leaf0")},
                             {("leaf0x00", "row1", "ib0-pod0", "ib0"), ("leaf0x03", "ib0-pod0", "ib0")})
        self.show()
        self.assertEqual(of_slurm(self.export("slurm-tree", "--above", hand))["n0x02x00"], ("leaf0x02", "row2", "ib0-pod0", "ib0"))
        os.unlink(self.out + ".names")
        self.show("0x01")
        self.export("slurm-tree", "--above", hand, status=1)
        self.assertIn("hand: line 1: no such leaf, switch of the tree, or line: leaf0x01", self.complaint)


class Shrink(Site):
    def test_by_hand(self):
        self.start((6,) * 4, (6,) * 4)  # 48 hosts
        for name in ("slurm-tree", "k8s-labels"):
            self.show()
            self.export(name)
            self.assertEqual(self.names()["hosts"], ",".join(f"n{pod}x{leaf:02}x[00-05]" for pod in "01" for leaf in range(4)))
            self.show("0x00", "0x01")
            before = self.export(name, "--max-shrink", "24", status=1)
            self.assertEqual(self.complaint, f"fabricctl: not written: 12 of 48 hosts would leave {self.out}, more than 24%: if that is right, "
                                             f"run \"fabricctl export {name} ... --max-shrink 100\", or remove the file\n")
            self.assertIn("n0x01x", before)
            self.assertNotIn("n0x01x", self.export(name, "--max-shrink", "25"))
            self.show("0x00", "0x01", "0x02")
            self.export(name, "--max-shrink", "0")  # six only
            self.show("1x00", "1x01", "1x02")
            self.export(name, "--max-shrink", "0", status=1)  # as many come
            os.unlink(self.out)
            self.export(name, "--max-shrink", "0")
            self.show("0x00", "0x01", "0x02", "0x03")
            self.export(name)  # by hand there is no bound
            os.unlink(self.out + ".names")
            os.unlink(self.out)

    def test_refused(self):
        self.start((2,))
        for text in ("101", "-1", "x", "2x"):
            done = self.site.ctl("export", "slurm-tree", "--max-shrink", text)
            self.assertEqual((done.returncode, f"no percentage: --max-shrink {text}: " in done.stderr), (2, True), done.stderr)
        self.assertEqual(self.site.ctl("export", "json", "--max-shrink", "5").returncode, 2)

    def kept(self, **settings):
        folder = lab.tmpdir()
        hand = os.path.join(folder, "hand")
        lab.replace_file(hand, "row = leaf0x0[2-3]\n")
        self.start((6,) * 4, (6,) * 4, settings={
            **self.settings, "exports": {"folder": folder, "pace": 1, **settings}, "groups": {"above": hand},
            "slurm": {"topologies": "a=tree:ib0 *b=block:ib*"},
            "exports.files": {"t": "slurm-tree", "y": "slurm-yaml", "m": "slurm-block --max-shrink 100", "j": "json"}})
        self.site.advance(10)
        return folder

    def failing(self):
        return {one["name"]: one["why"] for one in self.site.status()["exports"] if one["why"]}

    def test_the_daemon_passes_its_settings(self):
        folder = self.kept()
        self.assertEqual(self.failing(), {})
        self.assertEqual(of_slurm(read_file(os.path.join(folder, "t")))["n0x02x00"], ("leaf0x02", "row", "ib0-pod0", "ib0"))
        self.assertEqual([(entry["topology"], entry["cluster_default"]) for entry in yaml.safe_load(read_file(os.path.join(folder, "y")))],
                         [("a", False), ("b", True)])
        self.show("0x00", "0x01", "1x00")  # 18 of 48
        self.assertEqual(set(self.failing()), {"t", "y"})
        self.assertRegex(self.failing()["t"], r"not written: 18 of 48 hosts would leave .*/t, more than 25%")
        self.site.configure({"exports": {"max_shrink": 50}})
        self.site.save()
        self.assertEqual(self.site.ctl("reload").returncode, 0)
        self.site.advance(100)
        self.assertEqual(self.failing(), {})
        self.assertNotIn("n0x00x", read_file(os.path.join(folder, "t")))


if __name__ == "__main__":
    unittest.main()
