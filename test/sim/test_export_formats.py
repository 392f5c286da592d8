"""What `fabricctl export` writes for other programs: each format that has switches says the same tree, by the rules of its readers, which
are written down here from their grammars (flux-sched 0.38 to 0.54, Kueue 0.15 to 0.19, Volcano 1.12 to 1.15, topograph 1.0). And which
files are left alone while the fabric stays. test/integration/test_export_slurm.py has Slurm read its own."""
import json
import os
import re
import unittest

import jsonschema
import yaml

import fabric_text
import sim
from ctl_case import FABRIC
from export_names import FORMATS, of_slurm
from sim import lab
from test_export_files import Case
from test_export_slurm import PODS, fabric, pods, spelled

PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
OBJECT = {"type": "string", "pattern": rf"^{PART}(\.{PART})*$", "maxLength": 253}
LABEL = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
VALUE = {"type": "string", "pattern": "^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$", "maxLength": 63}


def closed(**properties):
    """An object with all of these and nothing else."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TOPOLOGY = closed(apiVersion={"const": "kueue.x-k8s.io/v1beta2"}, kind={"const": "Topology"}, metadata=closed(name=OBJECT),
                  spec=closed(levels={"type": "array", "minItems": 1, "maxItems": 16, "uniqueItems": True,
                                      "items": closed(nodeLabel={"type": "string", "pattern": LABEL, "maxLength": 316})}))
NODE = closed(apiVersion={"const": "v1"}, kind={"const": "Node"},
              metadata=closed(name=OBJECT, labels={"type": "object", "minProperties": 1, "additionalProperties": VALUE,
                                                   "propertyNames": {"pattern": LABEL}}))
HYPERNODE = closed(apiVersion={"const": "topology.volcano.sh/v1alpha1"}, kind={"const": "HyperNode"},
                   metadata=closed(name=OBJECT, annotations={"type": "object", "additionalProperties": {"type": "string"}}),
                   spec=closed(tier={"type": "integer", "minimum": 0},
                               members={"type": "array", "minItems": 1,
                                        "items": closed(type={"enum": ["Node", "HyperNode"]},
                                                        selector=closed(exactMatch=closed(name=OBJECT)))}))
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
JGF = closed(graph=closed(
    nodes={"type": "array", "items": closed(id=TEXT, metadata=closed(
        type=TEXT, basename=TEXT, name=TEXT, id=WHOLE, uniq_id=WHOLE, rank=WHOLE, exclusive={"type": "boolean"}, unit=TEXT,
        size=WHOLE, paths=closed(containment=TEXT)))},
    edges={"type": "array", "items": closed(source=TEXT, target=TEXT, metadata=closed(subsystem={"const": "containment"}))}))
MODEL = closed(switches={"type": "object", "additionalProperties": {
                   "type": "object", "properties": {"switches": {"type": "array", "items": TEXT}}, "additionalProperties": False}},
               blocks={"type": "array", "items": closed(switch=TEXT, nodes={"type": "array", "items": TEXT, "minItems": 1})})
GRAPH = closed(instances={"type": "array", "items": closed(id=TEXT, network_layers={"type": "array", "items": TEXT, "minItems": 1})})


class Schemas(Case):
    def documents(self, name):
        return list(yaml.safe_load_all(self.ctl("export", name)))

    def once(self, names):
        self.assertEqual(len(names), len(set(names)))
        return set(names)

    def kueue(self):
        topology, *nodes = self.documents("k8s-labels")
        jsonschema.validate(topology, TOPOLOGY)
        levels = [level["nodeLabel"] for level in topology["spec"]["levels"]]
        self.assertEqual(levels.index("kubernetes.io/hostname"), len(levels) - 1)
        self.once([node["metadata"]["name"] for node in nodes])
        above = {}
        for node in nodes:
            jsonschema.validate(node, NODE)
            self.assertEqual(set(node["metadata"]["labels"]), set(levels[:-1]))
            at = [node["metadata"]["labels"][level] for level in levels[:-1]]
            self.assertEqual(above.setdefault((len(at), at[-1]), at), at)  # what has one label has one above it
        return len(levels)

    def volcano(self):
        objects = self.documents("volcano")
        tiers, parents = {}, []
        for node in objects:
            jsonschema.validate(node, HYPERNODE)
            tiers[node["metadata"]["name"]] = node["spec"]["tier"]
        for node in objects:
            for member in node["spec"]["members"]:
                name = member["selector"]["exactMatch"]["name"]
                parents.append((member["type"], name))
                if member["type"] == "HyperNode":
                    self.assertLess(tiers[name], node["spec"]["tier"])
        self.once(parents)
        self.assertEqual(len(tiers), len(objects))
        return len(tiers)

    def flux(self):
        value = json.loads(self.ctl("export", "flux-jgf"))
        jsonschema.validate(value, JGF)
        vertices = {vertex["id"]: vertex["metadata"] for vertex in value["graph"]["nodes"]}
        self.assertEqual(len(vertices), len(value["graph"]["nodes"]))
        paths = self.once([vertex["paths"]["containment"] for vertex in vertices.values()])
        self.once([vertex["uniq_id"] for vertex in vertices.values()])
        hosts = [vertex["rank"] for vertex in vertices.values() if vertex["type"] == "node"]
        self.assertEqual(sorted(hosts), list(range(len(hosts))))
        self.assertEqual([path for path in paths if path.count("/") == 1], ["/cluster0"])
        edges = [(edge["source"], edge["target"]) for edge in value["graph"]["edges"]]
        self.assertEqual(self.once([target for _, target in edges]), set(vertices) - {"0"})
        for source, target in edges:
            self.assertEqual(vertices[target]["paths"]["containment"],
                             f"{vertices[source]['paths']['containment']}/{vertices[target]['name']}")

    def topograph(self):
        model = yaml.safe_load(self.ctl("export", "topograph"))
        jsonschema.validate(model, MODEL)
        below = self.once([name for switch in model["switches"].values() for name in switch.get("switches", [])])
        known = below | set(model["switches"])
        self.assertLessEqual(self.once([block["switch"] for block in model["blocks"]]), known)
        nodes = [node for block in model["blocks"] for item in block["nodes"] for node in spelled(item)]
        graph = json.loads(self.ctl("export", "topograph-graph"))
        jsonschema.validate(graph, GRAPH)
        self.assertEqual(self.once([instance["id"] for instance in graph["instances"]]), self.once(nodes))
        for instance in graph["instances"]:
            self.assertLessEqual(set(instance["network_layers"]), known)

    def all(self):
        self.flux()
        self.topograph()
        return self.kueue(), self.volcano()

    def test_generated(self):
        """By the rules, and the same tree in each."""
        for spec, levels, objects in (("fattree3:4", 4, 8 + 4 + 1), ("rails:5,4,6,2", 3, 6), ("dragonfly:2,4,2", 4, 36 + 9 + 1),
                                      ("torus:3,3,3:1", 3, 28), ("fattree2:1,1,3", 2, 1)):
            with self.subTest(spec):
                self.fabric(spec)
                self.assertEqual(self.all(), (levels, objects))
                tree = of_slurm(self.ctl("export", "slurm-tree"))
                leaves = {host: path[:1] for host, path in tree.items()}
                for name, read in FORMATS.items():
                    self.assertEqual(read(self.ctl("export", name)), leaves if name == "slurm-block" else tree, name)

    def test_two_planes_and_mixed_depths(self):
        self.fabric("fattree2:6,2,5")
        self.site.snapshot("fattree3:4", "ib1", 2, 3)
        self.all()
        self.import_from(None, fabric(PODS + [("leafx", "core1"), ("leafx", "core2"), ("leafx", "nx1"), ("mida1", "nm1")]))
        self.all()

    def test_names_that_kubernetes_forbids(self):
        """Hosts are left out, told, and with the last of them their HyperNode; switches are called by their GUIDs."""
        text = fabric(PODS)
        for name, other in (("na11", "n.example.org"), ("na12", "n..a"), ("na21", "n_a"), ("na22", "N-A"), ("leafb1", "Leaf_B.-1"),
                            ("leafb2", "leaf..b")):
            text = text.replace(f'"{name}"', f'"{other}"')
        self.import_from(None, text)
        self.flux()
        self.topograph()
        self.kueue()
        self.assertEqual([host for host in ("n..a", "n_a", "N-A", "n.example.org") if f"lost: host {host}: not allowed" in self.complaint],
                         ["n..a", "n_a", "N-A"])
        self.volcano()
        objects = {node["metadata"]["name"]: node for node in self.documents("volcano")}
        self.assertNotIn("leafa2", objects)
        self.assertIn("n.example.org", str(objects["leafa1"]))
        self.assertEqual(len([name for name in objects if name.startswith("s")]), 2)

    def test_more_levels_than_kueue_takes(self):
        """A part at each of 17 levels, as deep as the level is high."""
        ways = [["na0", "a0", *(f"up{level}" for level in range(1, 18))]]
        ways += [[f"na{level}", *(f"side{level}x{step}" for step in range(level)), f"up{level}"] for level in range(1, 18)]
        self.import_from(None, fabric([cable for way in ways for cable in zip(way, way[1:])]))
        levels, _ = self.all()
        self.assertEqual(levels, 16)
        self.ctl("export", "k8s-labels")
        self.assertRegex(self.complaint, r"lost: 1[78] tiers of switches: Kueue accepts 15, those above are left out")


class Tree(Case):
    """slurm-tree."""

    def tree(self, *args):
        """{switch: its switches or nodes as written}"""
        return dict(re.fullmatch(r"SwitchName=(\S+) (?:Nodes|Switches)=(\S+)", line).groups()
                    for line in self.said(self.ctl("export", "slurm-tree", *args)))

    def test_levels(self):
        self.assertIn("\n# leaf1 0x0000000000200000 leaf1\n", self.ctl("export", "slurm-tree"))
        self.assertEqual(self.tree(), {"leaf1": "node[0001-0004]", "leaf2": "node[0005-0008]", "leaf3": "node[0009-0012]",
                                       "leaf4": "node[0013-0016]", "ib0": "leaf[1-4]"})
        self.fabric("fattree3:4")
        tree = self.tree()
        self.assertEqual((tree["ib0"], tree["ib0-pod2"]), ("ib0-pod[0-3]", "leaf2-[0-1]"))
        self.fabric("torus:3,3,3:2")
        self.assertEqual(len(self.tree()), 28)
        self.fabric("rails:3,4,6,2")
        self.assertEqual(self.tree(), {"ib0-unit1": "node[0001-0006]", "ib0-unit2": "node[0007-0012]",
                                       "ib0-unit3": "node[0013-0018]", "ib0": "ib0-unit[1-3]"})

    def test_several_planes(self):
        """Hosts that are in both stand where the plane with the lower index has them."""
        self.site.snapshot("fattree2:2,1,10", "ib1", 2, 3)
        tree = self.tree()
        self.assertIn("plane ib1: 16 hosts written in the place that they have in another plane", self.complaint)
        self.assertIn("two switches are called leaf2", self.complaint)
        self.assertEqual((tree["ib0"], tree["leaf4"]), ("leaf[1-4]", "node[0013-0016]"))
        self.assertEqual([below for name, below in tree.items() if name.startswith("leaf2-s")], ["node[0017-0020]"])
        self.assertEqual(self.tree("--plane", "ib1"), {"leaf1": "node[0001-0010]", "leaf2": "node[0011-0020]",
                                                       "ib1": "leaf[1-2]"})
        (topologies,) = yaml.safe_load_all(self.ctl("export", "slurm-yaml"))
        self.assertEqual([(t["topology"], t["cluster_default"]) for t in topologies], [("ib0", True), ("ib1", False)])
        self.assertEqual(self.complaint, "")  # a host may be in both
        self.assertEqual([entry["switch"] for entry in topologies[1]["tree"]["switches"]], ["leaf1", "leaf2", "ib1"])

    def test_strict_refuses_what_is_lost(self):
        self.fabric("dragonfly:2,4,2")
        lab.replace_file(self.out, "before\n")
        self.ctl("export", "slurm-tree", "--strict", "-o", self.out, status=1, lines=2)
        self.assertRegex(self.complaint, "lost: plane ib0: its kind is dragonfly: .*\n.*not written: slurm-tree")
        self.assertEqual(self.read(), "before\n")
        self.ctl("export", "slurm-tree", "-o", self.out)
        self.assertIn("its kind is dragonfly", self.complaint)
        self.assertIn("SwitchName=ib0-group0 Switches=r0-[0-3]", self.said(self.read()))
        self.fabric("fattree3:4")
        self.ctl("export", "slurm-tree", "--strict", "-o", self.out)
        self.assertEqual(self.complaint, "")


class Writing(Case):
    def test_a_file(self):
        """The previous one is kept beside it, by its mode."""
        text = self.ctl("export", "slurm-tree")
        self.assertEqual(self.ctl("export", "slurm-tree", "-o", "-"), text)
        lab.replace_file(self.out, "# by hand\n")
        os.chmod(self.out, 0o640)
        self.ctl("export", "slurm-tree", "-o", self.out)
        self.assertEqual((self.read(), os.stat(self.out).st_mode & 0o777), (text, 0o640))
        with open(self.out + ".old", encoding="utf-8") as file:
            self.assertEqual(file.read(), "# by hand\n")
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.out))), ["out", "out.names", "out.old"])

    def test_if_changed(self):
        args = ("export", "slurm-tree", "-o", self.out, "--if-changed")
        self.ctl(*args)
        before = lab.stamp(self.out)
        self.ctl(*args, status=3)
        self.assertEqual((lab.stamp(self.out), self.complaint), (before, ""))
        said = self.said(self.read())
        said.remove("SwitchName=leaf2 Nodes=node[0005-0008]")
        lab.replace_file(self.out, "\n".join(["# Ours", "", *reversed(said), " SwitchName=leaf2 \t Nodes=node0006,node0005,"
                                              "node[0008,0007] # the same"]))
        mine = self.read()
        self.ctl(*args, status=3)
        self.assertEqual(self.read(), mine)
        for other in (mine.replace("0008,", ""), mine.replace("SwitchName=leaf2", "SwitchName=leaf9"), "", "\0", "a[b\n"):
            lab.replace_file(self.out, other)
            self.ctl(*args)
            self.assertEqual(self.said(self.read())[1], "SwitchName=leaf2 Nodes=node[0005-0008]")
        for name in ("slurm-yaml", "k8s-labels", "volcano", "topograph"):  # where indentation says something
            text = self.ctl("export", name)
            lab.replace_file(self.out, text.replace(": ", ":  ") + "\n# ours\n")
            self.ctl("export", name, "-o", self.out, "--if-changed", status=3)
            lab.replace_file(self.out, "\n".join(line.strip() for line in text.splitlines()))
            self.ctl("export", name, "-o", self.out, "--if-changed")
            self.assertEqual(self.read(), text)

    def test_what_is_refused(self):
        self.ctl("export", status=2)
        self.ctl("export", "nosuch", status=2)
        self.assertIn("no such format: nosuch: there are slurm-tree", self.complaint)
        for args, status in ((["--if-changed"], 2), (["--if-changed", "-o", "-"], 2), (["--plane", "nosuch", "-o", self.out], 1),
                             (["--block-sizes", "4"], 2), (["node0001"], 2)):
            self.ctl("export", "slurm-tree", *args, status=status)
        self.fabric("fattree3:42")
        for name in ("npy", "csv"):
            self.ctl("export", name, "-o", self.out, status=1)
            self.assertIn("too large to export: plane ib0 has 18522 devices: write it with fabricctl matrix -o", self.complaint)
        self.assertFalse(os.path.exists(self.out))


class Blocks(Case):
    def test_sizes(self):
        self.fabric("fattree3:8")
        self.assertEqual(self.said(self.ctl("export", "slurm-block"))[-1], "BlockSizes=4,16,128")  # a leaf, a pod, all
        self.assertEqual(self.said(self.ctl("export", "slurm-block", "--block-sizes", "2,8,32"))[-1], "BlockSizes=2,8,32")
        for sizes in ("", "0", "x", "4,", "4,4", "4,6", "4,12", "8,4", "-4", "4 8", "1,65536", "99999999999999999999"):
            self.ctl("export", "slurm-block", "--block-sizes", sizes, status=2)
        self.ctl("export", "slurm-block", "--block-sizes", "5,10", "--strict", "-o", self.out, status=1, lines=2)
        self.assertIn("lost: BlockSizes begin with 5: Slurm rejects some requests although there are enough hosts; up to 4 it rejects none",
                      self.complaint)
        self.assertFalse(os.path.exists(self.out))

    def test_order(self):
        """Slurm makes larger blocks of blocks that follow each other: those of a pod do, whatever their hosts' names."""
        def other(match):  # the names of a pod's four hosts are four apart
            pod, at = divmod(int(match.group(1)) - 1, 4)
            return f"node{4 * at + pod + 1:04}"
        self.import_from(None, re.sub(r"node(\d{4})", other, sim.fabric("fattree3:4", "capture")))
        args = ("export", "slurm-block", "-o", self.out)
        self.ctl(*args)
        *blocks, sizes = self.said(self.read())
        self.assertEqual(sizes, "BlockSizes=2,4,16")
        self.assertEqual([block.split()[0] for block in blocks],
                         [f"BlockName=leaf{pod}-{leaf}" for pod in range(4) for leaf in range(2)])
        lab.replace_file(self.out, "\n".join(["# ours", *(block.replace("node0001,node0005", "node0005,node0001") for block in blocks),
                                              sizes]))
        self.ctl(*args, "--if-changed", status=3)
        lab.replace_file(self.out, "\n".join([*blocks[::2], *blocks[1::2], sizes]))
        self.ctl(*args, "--if-changed")

    def test_what_they_cannot_say(self):
        self.fabric("fattree3:12")  # six leaves a pod: four of them are a block, and two are left over
        *blocks, sizes = self.said(self.ctl("export", "slurm-block"))
        self.assertEqual(sizes, "BlockSizes=6,24,768")
        leaves = [re.match(r"BlockName=leaf(\d+)-(\d+) ", block).groups() for block in blocks]
        self.assertEqual(leaves, sorted(((str(pod), str(leaf)) for pod in range(12) for leaf in range(6)),
                                        key=lambda at: (int(at[1]) >= 4, int(at[0]), at[1])))
        self.assertEqual(self.complaint, "fabricctl: lost: BlockSizes 24: 6 blocks of 4 leaves reach over several switches: "
                                         "ib0-pod0, ...\n")
        self.ctl("export", "slurm-block", "--strict", status=1, lines=2)
        self.assertEqual(self.said(self.ctl("export", "slurm-block", "--block-sizes", "6,12"))[-1], "BlockSizes=6,12")
        self.assertEqual(self.complaint, "")

    def test_of_unequal_size(self):
        """One host that is away makes no size smaller; the file says what an older Slurm would not take."""
        self.import_from(None, fabric_text.without(sim.fabric("fattree3:4", "capture"), "node0003"))
        text = self.ctl("export", "slurm-block")
        self.assertEqual((self.said(text)[-1], self.complaint), ("BlockSizes=2,4,16", ""))
        self.assertIn("\n# leaf0-1 has fewer hosts than the first of BlockSizes: Slurm before 25.05 does not start with that\n", text)
        self.import_from(None, fabric(pods((6, 6, 6, 1, 1))))
        self.assertEqual(self.said(self.ctl("export", "slurm-block"))[-1], "BlockSizes=4")
        self.assertEqual(self.complaint, "fabricctl: lost: BlockSizes begin with 4, and most leaves have more hosts: with a larger "
                                         "size Slurm rejects some requests although there are enough hosts\n")


class Hosts(Case):
    def test_lists(self):
        self.assertEqual(self.ctl("export", "hostlist"), "node[0001-0016]\n")
        self.assertEqual(self.ctl("export", "hostlist", "node[0015,0002],node0016,node0001"), "node[0001-0002,0015-0016]\n")
        self.assertEqual(self.ctl("export", "rankfile", "node0016,node0001"), "rank 0=node0001 slot=0\nrank 1=node0016 slot=0\n")
        for text, says in (("node[0001-0003", "is not closed"), ("node[0001-0099]", "no host node0017: plane ib0"),
                           ("node0001,node0001", "twice"), (",".join(f"x[{n}-{n + 1}]" for n in range(5000)), "no host x0")):
            self.ctl("export", "rankfile", text, "-o", self.out, status=1)
            self.assertIn(says, self.complaint)
        self.assertFalse(os.path.exists(self.out))
        said = dict(re.fullmatch(r'(0x[0-9a-f]{16}) "([^"]+)"', line).groups() for line in self.ctl("export", "nodemap").splitlines())
        self.assertEqual(len(said), 6 + 16)
        self.assertEqual({guid: name for guid, name in said.items() if " " not in name},
                         {switch["id"]: switch["name"] for switch in self.value("switches")})
        self.assertIn("node0016 HCA-1", said.values())

    @staticmethod
    def mpich(text, size):
        """As parse_coord_file() of MPICH (4.2 to 5.0, src/util/mpir_pmi.c) reads it: {rank: [group, switch, port]}."""
        first, _, rest = text.partition("\n")
        words = re.findall(r"-?\d+|:|\n", rest)  # fscanf takes numbers and the colon, and blanks before a number
        assert not first[0].isdigit() and words[1] == ":" and words[2:6].index("\n") == 3
        words = [word for word in words if word != "\n"]
        found = {}
        for _ in range(size):
            rank, colon, *coords = words[:5]
            del words[:5]
            assert colon == ":" and int(rank) < size
            found[int(rank)] = list(map(int, coords))
        return found

    def test_coordinates_for_mpich(self):
        """One line for each rank, in the order of the list; without one, in that of the rankfile."""
        where = {device["host"]: device["logical"] for device in self.value("devices")}
        ranked = dict(re.findall(r"rank (\d+)=(\S+) ", self.ctl("export", "rankfile")))
        self.assertEqual(self.mpich(self.ctl("export", "mpich-coords"), 16), {int(rank): where[host] for rank, host in ranked.items()})
        for text, hosts in (("node0016,node0001", ["node0016", "node0001"]), ("node0002", ["node0002"]),
                            ("node[0001-0002],node0016,node0001:1", ["node0001", "node0002", "node0016", "node0001"]),
                            ("node[0003,0001]:3", ["node0003"] * 3 + ["node0001"] * 3)):
            text = self.ctl("export", "mpich-coords", text, "--strict")
            self.assertEqual(self.mpich(text, len(hosts)), {rank: where[host] for rank, host in enumerate(hosts)})
            self.assertEqual(text.count("\n"), len(hosts) + 1)
        for text, says in (("node0001:0", "no number of ranks"), ("node0001:", "no number of ranks"), ("node0001:2x", "no number of ranks"),
                           ("node0001,x1", "no host x1"), ("node[0001", "is not closed"), ("node[0001-0002]:600000", "more than 1000000 ranks")):
            self.ctl("export", "mpich-coords", text, "-o", self.out, status=1)
            self.assertIn(says, self.complaint)
        self.assertFalse(os.path.exists(self.out))

    def test_hosts_that_are_away(self):
        """Their places are kept; a launcher gets them only where they are asked for."""
        capture = sim.fabric(FABRIC, "capture")
        self.import_from(None, capture)
        self.site.start()
        self.site.show(fabric_text.without(capture, "node0003"))
        self.site.refresh()
        self.assertEqual(self.ctl("export", "hostlist", "--strict"), "node[0001-0002,0004-0016]\n")
        self.assertEqual(self.complaint, "fabricctl: 1 host is down or missing, left out: node0003\n")
        self.assertEqual(self.ctl("export", "rankfile").count("rank"), 15)
        self.assertEqual(self.ctl("export", "hostlist", "node[0002-0003]"), "node[0002-0003]\n")
        self.assertEqual(self.complaint, "fabricctl: 1 host is down or missing, and in the list: node0003\n")

    def topologies(self):
        return [(t["topology"], t["cluster_default"]) for t in yaml.safe_load(self.ctl("export", "slurm-yaml"))]

    def test_the_default_plane_becomes_the_smaller_one(self):
        """It loses two adapters, so that it has fewer devices than the other one: it stays the default, and no switch gets another name."""
        hosts = [f"n{leaf}{host}" for leaf in "12" for host in "123"]
        cables = [(f"{plane}leaf{host[1]}", host) for plane in "ab" for host in hosts]
        cables += [(f"{plane}leaf{leaf}", f"{plane}spine") for plane in "ab" for leaf in "12"] + [("aleaf1", "n14")]
        self.import_from(None, fabric(cables))
        self.site.start()
        default = self.value("planes")[0]["name"]
        self.assertEqual(self.topologies(), [("ib0", True), ("ib1", False)])
        self.site.show(fabric(cables[2:-1]))
        self.site.refresh()
        self.assertEqual([(plane["name"], plane["devices"]) for plane in self.value("planes")], [(default, 4), ("ib1", 6)])
        lines = self.ctl("export", "slurm-tree").splitlines()
        for line in ("SwitchName=aleaf2 Nodes=n[21-23]", "SwitchName=aleaf1 Nodes=n13", "SwitchName=bleaf1 Nodes=n[11-12]",
                     "SwitchName=ib0 Switches=aleaf[1-2]"):
            self.assertIn(line, lines)
        self.assertEqual(self.topologies(), [("ib0", True), ("ib1", False)])

    def test_a_plane_without_named_hosts(self):
        """It is left out of topology.yaml, and told; the others stand there."""
        cables = [("aleaf", "n1"), ("aleaf", "n2"), ("aleaf", "n3"), ("bleaf", "nx"), ("bleaf", "ny")]
        self.import_from(None, fabric(cables).replace('"nx"', '"0x0000000000000005"').replace('"ny"', '"0x0000000000000006"'))
        self.assertEqual(self.topologies(), [("ib0", True)])
        self.assertIn("lost: plane ib1: no host with a name is connected to a switch, left out\n", self.complaint)
        self.ctl("export", "slurm-yaml", "--strict", status=1, lines=3)
        self.ctl("export", "slurm-yaml", "--plane", "ib1", status=1, lines=3)


if __name__ == "__main__":
    unittest.main()
