"""The formats of `fabricctl export` beside slurm-tree (test_export.py): what they say is the tree, read as their programs
read it; and which of them are left alone while the fabric stays."""
import json
import os
import re
import unittest

import yaml

import fabric_text
import lab
import test_export
import test_fabricctl
from test_export_slurm import fabric, pods, spelled


class Formats(test_export.Case):
    def tree(self):
        """{switch: (its nodes, its switches)} as slurm-tree has it."""
        found = {}
        for line in self.said(self.ctl("export", "slurm-tree")):
            name, kind, below = re.fullmatch(r"SwitchName=(\S+) (Nodes|Switches)=(\S+)", line).groups()
            found[name] = (spelled(below), []) if kind == "Nodes" else ([], spelled(below))
        return found

    def documents(self, name):
        return list(yaml.safe_load_all(self.ctl("export", name)))

    def test_slurm_yaml(self):
        self.fabric("fattree3:4")
        (topology,), = self.documents("slurm-yaml")
        self.assertEqual(list(topology), ["topology", "cluster_default", "tree"])
        self.assertEqual((topology["topology"], topology["cluster_default"]), ("ib0", True))
        self.assertEqual({entry["switch"]: (spelled(entry.get("nodes", "")), spelled(entry.get("children", "")))
                          for entry in topology["tree"]["switches"]}, self.tree())
        test_fabricctl.snapshot("fattree2:2,1,10", self.rundir, "ib1", "2", "3")
        topologies, = self.documents("slurm-yaml")
        self.assertEqual([(t["topology"], t["cluster_default"]) for t in topologies], [("ib0", True), ("ib1", False)])
        self.assertEqual(self.complaint, "")  # a host may be in both
        self.assertEqual([entry["switch"] for entry in topologies[1]["tree"]["switches"]], ["leaf1", "leaf2", "ib1"])

    def test_slurm_block(self):
        self.fabric("fattree3:8")
        lines = self.said(self.ctl("export", "slurm-block"))
        self.assertEqual(lines[-1], "BlockSizes=4,16,128")  # a leaf, a pod, all
        blocks = dict(re.fullmatch(r"BlockName=(\S+) Nodes=(\S+)", line).groups() for line in lines[:-1])
        self.assertEqual({name: spelled(nodes) for name, nodes in blocks.items()},
                         {name: nodes for name, (nodes, _) in self.tree().items() if nodes})
        self.assertEqual(self.said(self.ctl("export", "slurm-block", "--block-sizes", "2,8,32"))[-1], "BlockSizes=2,8,32")
        for sizes in ("", "0", "x", "4,", "4,4", "4,6", "4,12", "8,4", "-4", "4 8", "1,65536", "99999999999999999999"):
            self.ctl("export", "slurm-block", "--block-sizes", sizes, status=2)
        self.ctl("export", "slurm-block", "--block-sizes", "5,10", "--strict", "-o", self.out, status=1, lines=2)
        self.assertIn("lost: BlockSizes begin with 5: Slurm refuses some requests that there are hosts for; up to 4 it refuses none",
                      self.complaint)
        self.assertFalse(os.path.exists(self.out))
        self.ctl("export", "slurm-tree", "--block-sizes", "4", status=2)

    def test_order_of_blocks(self):
        """Slurm makes larger blocks of blocks that follow each other: those of a pod do, whatever their hosts' names."""
        def other(match):  # the names of a pod's four hosts are four apart
            pod, at = divmod(int(match.group(1)) - 1, 4)
            return f"node{4 * at + pod + 1:04}"
        lab.replace_file(self.out, re.sub(r"node(\d{4})", other, lab.fabric("fattree3:4", "capture")))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.out}"}}, start=False)
        self.assertEqual(daemon.run_once().returncode, 0)
        self.rundir = daemon.rundir
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

    def captured(self, text):
        lab.replace_file(self.out, text)
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.out}"}}, start=False)
        self.assertEqual(daemon.run_once().returncode, 0)
        self.rundir = daemon.rundir

    def test_what_blocks_cannot_say(self):
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

    def test_blocks_of_unequal_size(self):
        """One host that is away makes no size smaller; the file says what an older Slurm would not take."""
        self.captured(fabric_text.without(lab.fabric("fattree3:4", "capture"), "node0003"))
        text = self.ctl("export", "slurm-block")
        self.assertEqual((self.said(text)[-1], self.complaint), ("BlockSizes=2,4,16", ""))
        self.assertIn("\n# leaf0-1 has fewer hosts than BlockSizes begin with: Slurm before 25.05 does not start with that\n", text)
        self.captured(fabric(pods((6, 6, 6, 1, 1))))
        self.assertEqual(self.said(self.ctl("export", "slurm-block"))[-1], "BlockSizes=4")
        self.assertEqual(self.complaint, "fabricctl: lost: BlockSizes begin with 4, and most leaves have more hosts: with a larger "
                                         "size Slurm refuses some requests that there are hosts for\n")

    def test_a_matrix_that_is_too_large(self):
        self.fabric("fattree3:42")
        for name in ("npy", "csv"):
            self.ctl("export", name, "-o", self.out, status=1)
            self.assertIn("too large to export: plane ib0 has 18522 devices: write it with fabricctl matrix -o", self.complaint)
        self.assertFalse(os.path.exists(self.out))

    def test_indentation_says_something(self):
        for name in ("slurm-yaml", "k8s-labels", "volcano", "topograph"):
            text = self.ctl("export", name)
            lab.replace_file(self.out, text.replace(": ", ":  ") + "\n# ours\n")
            self.ctl("export", name, "-o", self.out, "--if-changed", status=3)
            lab.replace_file(self.out, "\n".join(line.strip() for line in text.splitlines()))
            self.ctl("export", name, "-o", self.out, "--if-changed")
            self.assertEqual(self.read(), text)

    def test_kubernetes(self):
        self.fabric("fattree3:4")
        topology, *nodes = self.documents("k8s-labels")
        levels = [level["nodeLabel"] for level in topology["spec"]["levels"]]
        self.assertEqual((topology["kind"], levels), ("Topology", ["fabricd/tier-2", "fabricd/tier-1", "fabricd/tier-0",
                                                                   "kubernetes.io/hostname"]))
        tree = self.tree()
        above = {child: name for name, (_, below) in tree.items() for child in below}
        self.assertEqual(len(nodes), 16)
        for node in nodes:
            leaf = next(name for name, (hosts, _) in tree.items() if node["metadata"]["name"] in hosts)
            self.assertEqual(node["metadata"]["labels"], {"fabricd/tier-0": leaf, "fabricd/tier-1": above[leaf],
                                                          "fabricd/tier-2": "ib0"})

    def test_volcano(self):
        self.fabric("fattree3:4")
        found = {}
        for node in self.documents("volcano"):
            self.assertEqual((node["apiVersion"], node["kind"]), ("topology.volcano.sh/v1alpha1", "HyperNode"))
            members = [(member["type"], member["selector"]["exactMatch"]["name"]) for member in node["spec"]["members"]]
            found[node["metadata"]["name"]] = (node["spec"]["tier"], [name for kind, name in members if kind == "Node"],
                                               [name for kind, name in members if kind == "HyperNode"])
        tree = self.tree()
        self.assertEqual({name: below for name, (_, *below) in found.items()}, {n: list(b) for n, b in tree.items()})
        self.assertEqual({name: tier for name, (tier, *_) in found.items()},
                         {name: 3 if name == "ib0" else 2 if "pod" in name else 1 for name in tree})

    def test_flux(self):
        self.fabric("fattree3:4")
        graph = json.loads(self.ctl("export", "flux-jgf"))["graph"]
        nodes = {node["id"]: node["metadata"] for node in graph["nodes"]}
        self.assertEqual(len({node["paths"]["containment"] for node in nodes.values()}), len(nodes))
        tree, below = self.tree(), {}
        for edge in graph["edges"]:
            source, target = nodes[edge["source"]], nodes[edge["target"]]
            self.assertEqual(target["paths"]["containment"], f"{source['paths']['containment']}/{target['name']}")
            below.setdefault(source["name"], []).append(target["name"])
        self.assertEqual({name: sorted(names) for name, names in below.items()},
                         {"cluster0": ["ib0"], **{name: sorted(hosts + switches) for name, (hosts, switches) in tree.items()}})
        self.assertEqual(sorted(node["rank"] for node in nodes.values() if node["type"] == "node"), list(range(16)))

    def test_hosts(self):
        self.assertEqual(self.ctl("export", "hostlist"), "node[0001-0016]\n")
        self.assertEqual(self.ctl("export", "hostlist", "node[0015,0002],node0016,node0001"), "node[0001-0002,0015-0016]\n")
        self.assertEqual(self.ctl("export", "rankfile", "node0016,node0001"), "rank 0=node0001 slot=0\nrank 1=node0016 slot=0\n")
        for text, says in (("node[0001-0003", "does not close"), ("node[0001-0099]", "no host node0017: plane ib0"),
                           ("node0001,node0001", "twice"), (",".join(f"x[{n}-{n + 1}]" for n in range(5000)), "no host x0")):
            self.ctl("export", "rankfile", text, "-o", self.out, status=1)
            self.assertIn(says, self.complaint)
        self.ctl("export", "slurm-tree", "node0001", status=2)
        self.assertFalse(os.path.exists(self.out))

    def test_hosts_that_are_away(self):
        """Their places are kept; a launcher gets them only where they are asked for."""
        capture = lab.fabric(test_fabricctl.FABRIC, "capture")
        lab.replace_file(self.out, capture)
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.out}"}})
        self.addCleanup(daemon.stop)
        self.rundir = daemon.rundir
        lab.replace_file(self.out, fabric_text.without(capture, "node0003"))
        daemon.refresh()
        self.assertEqual(self.ctl("export", "hostlist", "--strict"), "node[0001-0002,0004-0016]\n")
        self.assertEqual(self.complaint, "fabricctl: 1 host is down or missing, left out: node0003\n")
        self.assertEqual(self.ctl("export", "rankfile").count("rank"), 15)
        self.assertEqual(self.ctl("export", "hostlist", "node[0002-0003]"), "node[0002-0003]\n")
        self.assertEqual(self.complaint, "fabricctl: 1 host is down or missing, and in the list: node0003\n")

    def test_nodemap(self):
        said = dict(re.fullmatch(r'(0x[0-9a-f]{16}) "([^"]+)"', line).groups()
                    for line in self.ctl("export", "nodemap").splitlines())
        self.assertEqual(len(said), 6 + 16)
        self.assertEqual({guid: name for guid, name in said.items() if " " not in name},
                         {switch["id"]: switch["name"] for switch in self.value("switches")})
        self.assertIn("node0016 HCA-1", said.values())


class Planes(unittest.TestCase):
    """Which of them is the default, and which has hosts."""

    def test_the_default_plane_becomes_the_smaller_one(self):
        """It loses two adapters, so that it has fewer devices than the other one: it stays the default, and no switch gets another
        name."""
        hosts = [f"n{leaf}{host}" for leaf in "12" for host in "123"]
        cables = [(f"{plane}leaf{host[1]}", host) for plane in "ab" for host in hosts]
        cables += [(f"{plane}leaf{leaf}", f"{plane}spine") for plane in "ab" for leaf in "12"] + [("aleaf1", "n14")]
        file = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(file, fabric(cables))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{file}"}})
        self.addCleanup(daemon.stop)
        default = daemon.ctl_json("planes")[0]["name"]
        topologies = yaml.safe_load(daemon.ctl("export", "slurm-yaml").stdout)
        self.assertEqual([(t["topology"], t["cluster_default"]) for t in topologies], [("ib0", True), ("ib1", False)])
        lab.replace_file(file, fabric(cables[2:-1]))
        daemon.refresh()
        self.assertEqual([(plane["name"], plane["devices"]) for plane in daemon.ctl_json("planes")], [(default, 4), ("ib1", 6)])
        lines = daemon.ctl("export", "slurm-tree").stdout.splitlines()
        for line in ("SwitchName=aleaf2 Nodes=n[21-23]", "SwitchName=aleaf1 Nodes=n13", "SwitchName=bleaf1 Nodes=n[11-12]",
                     "SwitchName=ib0 Switches=aleaf[1-2]"):
            self.assertIn(line, lines)
        topologies = yaml.safe_load(daemon.ctl("export", "slurm-yaml").stdout)
        self.assertEqual([(t["topology"], t["cluster_default"]) for t in topologies], [("ib0", True), ("ib1", False)])

    def test_a_plane_without_named_hosts(self):
        """It is left out of topology.yaml, and told; the others stand there."""
        cables = [("aleaf", "n1"), ("aleaf", "n2"), ("aleaf", "n3"), ("bleaf", "nx"), ("bleaf", "ny")]
        file = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(file, fabric(cables).replace('"nx"', '"0x0000000000000005"').replace('"ny"', '"0x0000000000000006"'))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{file}"}})
        self.addCleanup(daemon.stop)
        done = daemon.ctl("export", "slurm-yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([t["topology"] for t in yaml.safe_load(done.stdout)], ["ib0"])
        self.assertIn("lost: plane ib1: no host with a name is at a switch, left out\n", done.stderr)
        self.assertEqual(daemon.ctl("export", "slurm-yaml", "--strict").returncode, 1)
        self.assertEqual(daemon.ctl("export", "slurm-yaml", "--plane", "ib1").returncode, 1)


if __name__ == "__main__":
    unittest.main()
