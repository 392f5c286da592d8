"""`fabricctl slurm` beside a scontrol that answers badly: each answer gives one clear line, and nothing is changed. The good
answers are recorded from Slurm 22.05, 24.11 and 26.05; a real slurmctld is in test_slurm_kept."""
import json
import os
import random
import re
import unittest

import lab
from test_slurm_kept import Fabric

TREE = """SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[3-4]
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]
"""
FILE = "# a file\nSwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4]\nSwitchName=top Switches=leaf[1-2]\n"
NODES = "".join(f"NodeName=n{n} CoresPerSocket=1 AvailableFeatures=gpu,ib ActiveFeatures=gpu State=IDLE\n" for n in range(1, 5))
SCRIPT = """#!/bin/sh
cd {folder}
echo "$*" >>calls
case "$*" in
*--version*) name=version ;;
reconfigure) name=other ;;
*config*) name=config ;;
*nodes*) name=nodes ;;
*topology*) name=topology ;;
*) name=other ;;
esac
cat $name.err >&2
cat $name
exit $(cat $name.status)
"""


class Answers(unittest.TestCase):
    def setUp(self):
        self.folder = lab.tmpdir()
        self.file = self.path("topology.conf")
        lab.replace_file(self.file, FILE)
        lab.replace_file(self.path("scontrol"), SCRIPT.format(folder=self.folder))
        os.chmod(self.path("scontrol"), 0o755)
        lab.replace_file(self.path("calls"), "")
        for name, text in (("version", "slurm-wlm 26.05.5\n"), ("config", "SLURM_VERSION           = 26.05.5\n"), ("nodes", NODES),
                           ("topology", TREE), ("other", "")):
            self.answer(name, text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def answer(self, name, text, status=0, err=""):
        for suffix, content in (("", text), (".status", str(status)), (".err", err)):
            lab.replace_file(self.path(name + suffix), content)

    def slurm(self, *args, **env):
        return lab.run([lab.program("fabricctl"), "slurm", *args, self.file], env={**os.environ, "FABRICD_SCONTROL": self.path("scontrol"), **env})

    def changes(self):
        """The calls that change Slurm."""
        with open(self.path("calls"), encoding="utf-8") as file:
            return [line for line in file.read().splitlines() if not re.search("show|--version", line)]

    def refused(self, why, *args):
        done = self.slurm("apply", *args)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, rf"^fabricctl: .*{why}.*\n$")
        self.assertEqual(self.changes(), [])

    def test_equal(self):
        old = f"fabricctl: Slurm agrees with {self.file}; default: switch old is empty and not in the file: it goes when slurmctld restarts\n"
        for topology, remark in ((TREE, ""), (TREE.replace(" Nodes=n[1-4]", ""), ""), (TREE + "SwitchName=old Level=0 LinkSpeed=1\n", old)):
            self.answer("topology", topology)
            quiet = self.slurm("diff", "--quiet")
            self.assertEqual((self.slurm("diff").returncode, quiet.returncode, quiet.stderr), (0, 3 if remark else 0, remark))
            self.assertEqual(self.slurm("apply").stdout, "")
        self.assertEqual(self.changes(), [])

    def test_versions(self):
        for text in ("", "slurm\n", "bash: scontrol\n", "slurm x.y\n", "slurm 24.99\n"):
            self.answer("version", text)
            self.refused("scontrol --version: no version in its answer")
        self.answer("version", "slurm 26.05.1\n")
        self.answer("config", "nothing\n")
        self.refused("no SLURM_VERSION in its answer")
        self.answer("config", "SLURM_VERSION = 24.11.5\n")  # the older one counts: no node is moved by an update
        self.answer("topology", TREE.replace("n[1-2]", "n1").replace("n[3-4]", "n[2-4]"))
        for _ in range(3):  # a slurmctld that reads another file: one reconfigure, not one each round
            done = self.slurm("apply")
            self.assertEqual(done.returncode, 1)
            self.assertIn("n2: leaf2 in Slurm, leaf1 in the file, also after a reconfigure", done.stderr)
            self.assertEqual(self.changes(), ["reconfigure"])

    def test_cut_and_garbage(self):
        for topology, why in ((TREE[:-1], "the answer was cut"), ("rubbish\n", "not KEY=VALUE: rubbish"), ("Leaf=a Nodes=b\n", "unknown key: Leaf"),
                              (TREE.replace("leaf[1-2]", "leaf[1-3]"), "top has the switch leaf3, which is not there"),
                              (TREE.replace("leaf2", "leaf1"), "leaf1 is there twice"), (TREE.replace("n[3-4]", "n[3-"), "leaf2"),
                              (TREE + "BlockName=b BlockIndex=0 Nodes=n1 BlockSize=1\n", "another kind than the lines before"),
                              ("SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes\n", "not KEY=VALUE: Nodes")):
            with self.subTest(topology):
                self.answer("topology", topology)
                self.refused(re.escape(why))
        self.answer("topology", TREE)
        self.answer("nodes", NODES[:-1])
        self.refused("show nodes: the answer was cut")

    def test_failures(self):
        self.answer("topology", "", 1, "slurm_load_topo error: Unable to contact slurm controller (connect failure)\n")
        self.refused("scontrol show topology: slurm_load_topo error: Unable to contact slurm controller")
        self.answer("topology", "", 0, "slurm_load_topo error: \x1b[31mred\n")  # some versions exit with 0
        self.refused(r"slurm_load_topo error: \?\[31mred")
        self.answer("topology", "", 7)
        self.refused("exit status 7")
        done = self.slurm("apply", FABRICD_SCONTROL="/nonexistent/scontrol")
        self.assertRegex(done.stderr, "No such file or directory: install Slurm's commands, or set FABRICD_SCONTROL")

    def test_rejected_updates(self):
        """One node is refused: the others move, and the failure names the node that is left."""
        self.answer("topology", TREE.replace("n[1-2]", "n1").replace("n[3-4]", "n[2-4]"))
        self.answer("other", "", 1, "slurm_update error: Invalid node name specified\n")
        done = self.slurm("apply", "--rate", "1000")
        self.assertEqual(done.returncode, 1)
        self.assertIn("n2: leaf2 in Slurm, leaf1 in the file", done.stderr + done.stdout)
        self.assertEqual(self.changes(), ["update NodeName=n2 Topology=default:top:leaf1"])

    def test_warnings(self):
        """Each call warns of a line of slurm.conf. A call that changes Slurm and prints nothing else has succeeded."""
        warning = "scontrol: error: Ignoring obsolete FastSchedule=1 option. Please remove from your configuration.\n"
        self.answer("topology", TREE.replace("top", "root"))
        self.answer("other", "", 0, warning)
        done = self.slurm("apply")
        self.assertIn("also after a reconfigure", done.stderr)
        self.answer("topology", "", 1, warning + "slurm_load_topo error: Unable to contact slurm controller\n")
        self.assertIn("scontrol show topology: slurm_load_topo error", self.slurm("apply").stderr)
        self.answer("topology", "", 0, warning + "scontrol: error: No topology information available\n")
        self.assertIn("topology/flat in Slurm", self.slurm("apply").stderr)
        self.assertEqual(self.changes(), ["reconfigure"])

    def test_hidden_partitions(self):
        self.slurm("diff")
        with open(self.path("calls"), encoding="utf-8") as file:
            self.assertIn("--oneliner --all show nodes\n", file.read())

    def test_repeated_reconfigures(self):
        """slurmctld reads another file: a reconfigure is not repeated for the same difference, also where only nodes differ."""
        for version, topology in (("26.05.5", TREE.replace("top", "root")), ("24.11.5", TREE.replace("top", "root")),
                                  ("24.11.5", TREE.replace("n[1-2]", "n1").replace("n[3-4]", "n[2-4]"))):
            with self.subTest(version, topology=topology):
                self.setUp()
                self.answer("config", f"SLURM_VERSION = {version}\n")
                self.answer("topology", topology)
                for _ in range(3):
                    done = self.slurm("apply")
                    self.assertEqual(done.returncode, 1)
                    self.assertRegex(done.stderr, "also after a reconfigure: see that slurmctld reads .*topology.conf")
                self.assertEqual(self.changes(), ["reconfigure"])
                lab.replace_file(self.file, FILE + "# another file\n")
                self.slurm("apply")
                self.assertEqual(self.changes(), ["reconfigure"] * 2)
                self.answer("topology", TREE)  # the operator makes it read the file
                self.assertIn("agrees with", self.slurm("apply").stdout)
                self.answer("topology", topology)  # and somebody changes it
                self.slurm("apply", "--repair")
                self.assertEqual(self.changes(), ["reconfigure"] * 3)

    def test_rejected_file(self):
        """With a file that it rejects, slurmctld would not start again: its former file comes back."""
        target, former = self.path("target.conf"), "SwitchName=root Nodes=n[1-4]\n"
        lab.replace_file(target, former)
        self.answer("topology", "SwitchName=root Level=0 LinkSpeed=1 Nodes=n[1-4]\n")
        self.answer("other", "", 1, "slurm_reconfigure error: Unspecified error\n")
        for _ in range(2):
            done = self.slurm("apply", "-o", target)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"; {target} has its former content", done.stderr)
            with open(target, encoding="utf-8") as file:
                self.assertEqual(file.read(), former)
        self.assertEqual(self.changes(), ["reconfigure"])
        os.unlink(target + ".state")
        self.answer("other", "")
        self.slurm("apply", "-o", target)
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), FILE)

    def test_failed_reconfigures(self):
        """The new slurmctld does not start, and the old one stays: the next attempt comes later."""
        self.answer("topology", TREE.replace("top", "root"))
        self.answer("other", "", 1, "slurm_reconfigure error: Unspecified error\n")
        self.assertIn("scontrol reconfigure: slurm_reconfigure error: Unspecified error", self.slurm("apply").stderr)
        for _ in range(2):
            self.assertIn("a reconfigure failed: the next one is 15 minutes after it", self.slurm("apply").stderr)
        self.assertEqual(self.changes(), ["reconfigure"])
        with open(self.file + ".state", encoding="utf-8") as file:
            state = json.load(file)
        lab.replace_file(self.file + ".state", json.dumps({**state, "reconfigure_failed_at": state["reconfigure_failed_at"] - 900}))
        self.answer("other", "")
        self.assertIn("also after a reconfigure", self.slurm("apply").stderr)
        self.assertEqual(self.changes(), ["reconfigure"] * 2)

    def test_returns_to_an_older_file(self):
        """A file that Slurm had, another one that it got in part, and the first one again: nobody else has changed Slurm."""
        target = self.path("target")
        self.assertEqual(self.slurm("apply", "-o", target).returncode, 0)
        lab.replace_file(self.file, FILE.replace("n[1-2]", "n1").replace("n[3-4]", "n[2-4]"))
        self.answer("topology", "", 1, "slurm_load_topo error: Unable to contact slurm controller (connect failure)\n")
        self.assertEqual(self.slurm("apply", "-o", target).returncode, 1)
        lab.replace_file(self.file, FILE)
        self.answer("topology", TREE)
        done = self.slurm("apply", "-o", target)
        self.assertEqual((done.returncode, done.stderr, self.changes()), (0, "", []))
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), FILE)

    def test_torus(self):
        """A torus with several regions. slurmctld shows no cells, so a new file is a reconfigure."""
        region = "          - anchor:\n              x: {0}\n              y: 0\n              z: 0\n            dims:\n              x: 2\n" \
                 "              y: 1\n              z: 1\n            nodes: \"{1}\"\n"
        head = "---\n- topology: \"ib0\"\n  cluster_default: true\n  torus3d:\n    toruses:\n      - name: \"ib0\"\n        dims:\n" \
               "          x: 5\n          y: 1\n          z: 1\n        regions:\n"
        self.answer("topology", "TorusName=ib0 Dims=5x1x1 Nodes=n[1-4]\n  TorusName=ib0 PlacementDims=1x1x1(1) Anchors=4\n")
        for nodes, calls in ((("n[1-2]", "n[3-4]"), 1), (("n[1-2]", "n[3-4]"), 1), (("n[3-4]", "n[1-2]"), 2)):
            lab.replace_file(self.file, head + region.format(0, nodes[0]) + region.format(3, nodes[1]))
            self.assertEqual(self.slurm("diff").stdout, f"Slurm agrees with {self.file}\n")
            self.assertEqual(self.slurm("apply").returncode, 0)
            self.assertEqual(self.changes(), ["reconfigure"] * calls)
        lab.replace_file(self.file, head + region.format(0, "n[1-2]") + region.format(3, "n[4,3]"))
        self.answer("other", "", 1, "slurm_reconfigure error: Unspecified error\n")
        self.assertIn("Unspecified error", self.slurm("apply").stderr)
        self.assertIn("topology.conf: Slurm does not show whether it has all of it, and a reconfigure failed", self.slurm("apply").stderr)

    def test_bad_files(self):
        for text, why in (("", "no nodes in it"), ("SwitchName=a Switches=b\n", "a has the switch b, which is not there"),
                          ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "a is there twice"), ("x y\n", "not KEY=VALUE: x"),
                          ("SwitchName=a Nodes=a[1-600000]\nSwitchName=b Nodes=b[1-600000]\n", "more than"),
                          ("SwitchName=a Switches=b,c\nSwitchName=b Switches=a\nSwitchName=c Nodes=n1\n", "a is above itself, or below more than 64 switches"),
                          ("---\n- topology: a\n  tree:\n    switchez:\n", "unknown key: switchez"), ("---\nnodes: a\n", "before the first topology"),
                          ("BlockName=a Nodes=n1\nBlockSizes=0\n", "no size of blocks: 0"), ("SwitchName=a Nodes=n1\0\n", "not a text")):
            with self.subTest(text):
                lab.replace_file(self.file, text)
                self.refused(re.escape(why))
        os.unlink(self.file)
        self.refused("No such file or directory")
        os.symlink("/etc/passwd", self.file)
        self.refused("not a regular file")

    def test_names_in_brackets(self):
        """Hosts that Slurm folds with several brackets, and nodes that it does not have."""
        self.answer("nodes", "".join(f"NodeName=r{r}n{n} State=IDLE\n" for r in (1, 2) for n in (1, 2)))
        self.answer("topology", "SwitchName=a Level=0 LinkSpeed=1 Nodes=r[1-2]n[1-2]\n")
        lab.replace_file(self.file, "SwitchName=a Nodes=r1n[1-2],r2n[1-2],login[1-3]\n")
        done = self.slurm("diff")
        quiet = self.slurm("diff", "--quiet")
        self.assertEqual((quiet.returncode, quiet.stdout), (3, ""))
        self.assertEqual(quiet.stderr, f"fabricctl: Slurm agrees with {self.file}; default: not shown by Slurm: login[1-3]\n")
        self.assertEqual((done.returncode, done.stdout), (0, f"note: default: not shown by Slurm: login[1-3]\nSlurm agrees with {self.file}\n"))

    def test_order_of_names(self):
        """Names without leading zeros are in their natural order, so lists are short."""
        self.answer("nodes", "".join(f"NodeName=n{n} State=IDLE\n" for n in range(1, 13)))
        self.answer("topology", TREE.replace("n[3-4]", "n[3-12]"))
        lab.replace_file(self.file, FILE.replace("n[1-2]", "n[1-12]").replace("n[3-4]", "login[1-12]"))
        done = self.slurm("diff")
        self.assertIn("n[3-12]: leaf2 in Slurm, leaf1 in the file\nnote: default: not shown by Slurm: login[1-12]\n", done.stdout)
        self.slurm("apply", "--rate", "1000")
        self.assertEqual(self.changes(), ["update NodeName=n[3-12] Topology=default:top:leaf1"])

    def test_blocks(self):
        lab.replace_file(self.file, "BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[3-4]\nBlockName=c\nBlockSizes=2,4,8\n")
        good = ("BlockName=a BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b BlockIndex=1 Nodes=n[3-4] BlockSize=2\n"
                "BlockName=c BlockIndex=2 BlockSize=2\nAggregatedBlock=a,b BlockIndex=3 Nodes=n[1-4] BlockSize=4\n"
                "AggregatedBlock=a,b,c BlockIndex=4 Nodes=n[1-4] BlockSize=8\n")
        self.answer("topology", good)
        self.assertEqual(self.slurm("diff").returncode, 0)
        self.answer("topology", good.replace("BlockName=c BlockIndex=2 BlockSize", "BlockName=c BlockIndex=2 Nodes=n4 BlockSize").replace("n[3-4]", "n3"))
        value = json.loads(self.slurm("diff", "--json").stdout)
        self.assertEqual(([(move["node"], move["topology"]) for move in value["moves"]], value["structure"]), ([("n4", "default:b")], []))
        for wrong, why in ((good.replace("BlockName=c", "BlockName=d"), "block 3 is d in Slurm, c in the file"),
                           (good.replace("BlockSize=8", "BlockSize=16"), "the sizes of blocks in Slurm are not those of the file"),
                           (good.replace("BlockName=b", "BlockName=x").replace("BlockName=a", "BlockName=b").replace("BlockName=x", "BlockName=a"),
                            "block 1 is b in Slurm, a in the file")):
            self.answer("topology", wrong)
            value = json.loads(self.slurm("diff", "--json").stdout)
            self.assertEqual((value["structure"], value["reconfigure"]), ([f"default: {why}"], True))

    def test_yaml_of_each_kind(self):
        """What `fabricctl export slurm-yaml` writes, and what Slurm 26.05 shows of it."""
        lab.replace_file(self.file, """# by hand
---
- topology: "b"
  cluster_default: true
  block:
    block_sizes:
      - 2
      - 4
    blocks:
      - block: "x"
        nodes: "n[1-2]"
      - block: "spare1"
- topology: "f"
  cluster_default: false
  flat: true
- topology: "r"
  ring:
    rings:
      - ring: "r"
        nodes: "n[1-4]"
- topology: "t"
  torus3d:
    toruses:
      - name: "t"
        dims:
          x: 2
          y: 2
          z: 1
        nodes: "n[1-4]"
        placements:
          - dims:
              x: 1
              y: 1
              z: 1
""")
        shown = {"b": "BlockName=x BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=spare1 BlockIndex=1 BlockSize=2\n"
                      "AggregatedBlock=spare1,x BlockIndex=2 Nodes=n[1-2] BlockSize=4\n",
                 "f": "", "r": "RingName=r Nodes=n[1-4] RingSize=4\n",
                 "t": "TorusName=t Dims=2x2x1 Nodes=n[1-4]\n  TorusName=t PlacementDims=1x1x1(1) Anchors=4\n"}
        lab.replace_file(self.path("scontrol"), SCRIPT.format(folder=self.folder).replace("*topology*) name=topology", "*topology*) name=topology-$3"))
        os.chmod(self.path("scontrol"), 0o755)

        def difference(**changed):
            for name, text in dict(shown, **changed).items():
                self.answer(f"topology-{name}", text)
            value = json.loads(self.slurm("diff", "--json").stdout)
            return [move["node"] for move in value["moves"]], value["structure"]
        self.assertEqual(difference(), ([], []))
        self.assertEqual(difference(b=shown["b"].replace("n[1-2]", "n1")), (["n2"], []))
        self.assertEqual(difference(r="RingName=r Nodes=n[2,1,3-4] RingSize=4\n"), ([], ["r: ring r has other nodes in Slurm than in the file"]))
        self.assertEqual(difference(t=shown["t"].replace("n[1-4]", "n[1-3]")), ([], ["t: torus3d t has other nodes in Slurm than in the file"]))
        self.assertEqual(difference(f=TREE), ([], ["topology f is topology/tree in Slurm, topology/flat in the file"]))

    def test_a_ring_beside_a_tree(self):
        """An update would take the nodes out of the ring: only the file changes them."""
        lab.replace_file(self.file, '---\n- topology: "t"\n  cluster_default: true\n  tree:\n    switches:\n      - switch: "a"\n'
                         '        nodes: "n[1-3]"\n- topology: "r"\n  ring:\n    rings:\n      - ring: "r"\n        nodes: "n[1-3]"\n')
        self.answer("topology", "SwitchName=a Level=0 LinkSpeed=1 Nodes=n[1-2]\n")
        for _ in range(2):
            self.assertEqual(self.slurm("apply").returncode, 1)
            self.assertEqual(self.changes(), ["reconfigure"])

    def test_held(self):
        self.answer("topology", TREE.replace("n[1-2]", "n1").replace("n[3-4]", "n[2-4]"))
        for hold in ('{"since": "2026-11-20T08:00:00Z", "user": "root", "reason": "recabling"}', "", "[1]", "\x1b"):
            lab.replace_file(self.path("exports.hold"), hold)
            done = self.slurm("apply")
            self.assertEqual((done.returncode, self.changes()), (0, []))
        os.unlink(self.path("exports.hold"))
        os.mkdir(self.path("exports.hold"))  # it cannot be read
        self.slurm("apply")
        self.assertEqual(self.changes(), [])
        os.rmdir(self.path("exports.hold"))
        self.slurm("apply")
        self.assertEqual(len(self.changes()), 1)

    def test_random(self):
        """Trees of random places on both sides: an imitation of Slurm's rule for each call ends at the file's places."""
        pick = random.Random(7)
        for number in range(40):
            leaves = [f"leaf{n}" for n in range(1, pick.randrange(2, 6))]
            nodes = [f"n{n}" for n in range(1, pick.randrange(3, 12))]
            places = [{node: pick.choice([*leaves, None]) for node in nodes} for _ in range(2)]
            text = [{leaf: [node for node in nodes if place[node] == leaf] for leaf in leaves} for place in places]
            lines = lambda text, level: "".join(f"SwitchName={leaf}{level} Nodes={','.join(names)}\n" for leaf, names in text.items() if names)
            lab.replace_file(self.file, lines(text[0], "") + f"SwitchName=top Switches={','.join(leaf for leaf in leaves if text[0][leaf])}\n")
            if not any(text[0].values()) or not any(text[1].values()):
                continue
            self.answer("nodes", "".join(f"NodeName={node} State=IDLE\n" for node in nodes))
            self.answer("topology", lines(text[1], " Level=0 LinkSpeed=1") +
                        f"SwitchName=top Level=1 LinkSpeed=1 Nodes=x Switches={','.join(leaf for leaf in leaves if text[1][leaf])}\n")
            lab.replace_file(self.path("calls"), "")
            for name in ("topology.conf.state",):
                if os.path.exists(self.path(name)):
                    os.unlink(self.path(name))
            self.slurm("apply", "--rate", "1000")
            there = dict(places[1])
            for call in self.changes():
                names, target = re.fullmatch(r"update NodeName=(\S+) Topology=(\S*)", call).groups()
                for node in spell(names):
                    there[node] = target.split(":")[-1] or None
            self.assertEqual(there, places[0], number)

    def test_daemon(self):
        """[slurm] apply: the finding has the reason also after many failures with the same one."""
        self.answer("version", "rubbish\n")
        lab.replace_file(self.path("fabric"), Fabric(2, 2, 3).text())
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path('fabric')}"}, "exports": {"folder": self.path("exports"), "pace": 1},
                                     "exports.files": {"topology.conf": "slurm-tree"}, "slurm": {"round": 1, "apply": "yes"}},
                             env={"FABRICD_SCONTROL": self.path("scontrol")})
        self.addCleanup(daemon.stop)
        calls = lambda: lab.run(["grep", "-c", "version", self.path("calls")]).stdout.strip()
        lab.wait_for(lambda: int(calls()) > 3, what="four runs")
        (finding,) = [one for one in daemon.control("check")["findings"] if one["kind"] == "slurm-differs"]
        self.assertIn("scontrol --version: no version in its answer", finding["what"])


def spell(text):
    names = []
    for prefix, inside in re.findall(r"([^,\[]+)(?:\[([^\]]*)\])?,?", text):
        for part in inside.split(",") if inside else [""]:
            first, _, last = part.partition("-")
            names += [prefix] if not inside else [f"{prefix}{n}" for n in range(int(first), int(last or first) + 1)]
    return names


if __name__ == "__main__":
    unittest.main()
