"""`fabricctl export slurm-tree`, read by Debian's slurmctld: `scontrol show topology` has the same switches and nodes, of generated fabrics, of
two planes, of parts of different depth, and of a capture of a real fabric where one lies beside the project. And lists of hosts, folded as
Slurm folds them. Names that stay: test/sim/test_export_names.py."""
import os
import random
import re
import subprocess
import unittest

import fabric_text
import lab
import launchers
import test_fabricctl

CONF = """
ClusterName=lab
SlurmctldHost=head
SlurmUser=root
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
TopologyPlugin={plugin}
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=-1
StateSaveLocation={dir}/state
SlurmctldPidFile={dir}/slurmctld.pid
SlurmctldLogFile={dir}/slurmctld.log
"""


def spelled(text):
    """The names of a list of hosts, one pair of brackets a name."""
    names = []
    for prefix, inside, suffix in re.findall(r"([^,\[\]]*)(?:\[([^\]]*)\])?([^,]*),?", text):
        if not inside:
            names += [prefix + suffix] if prefix else []
            continue
        for part in inside.split(","):
            first, _, last = part.partition("-")
            names += [f"{prefix}{n:0{len(first)}}{suffix}" for n in range(int(first), int(last or first) + 1)]
    return names


class Slurm:
    """slurmctld alone, on a machine of its own. Its nodes are those of a cloud, which it takes for idle without anybody on them. Debian's,
    or the one that is installed in `prefix`; with a file topology.yaml it has no need of a plugin. more: further lines of slurm.conf."""

    def __init__(self, cluster, topology, nodes, plugin="topology/tree", prefix=None, file="topology.conf", more=""):
        self.cluster, self.dir, self.prefix = cluster, lab.tmpdir(), prefix
        os.makedirs(os.path.join(self.dir, "state"))
        lab.replace_file(os.path.join(self.dir, file), topology)
        conf = CONF.format(dir=self.dir, plugin=plugin) + more
        for at in range(0, len(nodes), 250):
            conf += f"NodeName={','.join(nodes[at:at + 250])} CPUs=4 State=CLOUD\n"
        lab.replace_file(os.path.join(self.dir, "slurm.conf"),
                         conf + "PartitionName=all Nodes=ALL Default=YES OverSubscribe=EXCLUSIVE\n" + more)
        self.daemon = lab.spawn(self.argv("slurmctld", "-D", "-i"), env=self.env(), cwd="/", stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lab.wait_for(self.answers, what="slurmctld")

    def argv(self, name, *args):
        path = os.path.join(self.prefix, "sbin" if name == "slurmctld" else "bin", name) if self.prefix else lab.find_command(name)
        return [*self.cluster.head.inside(), path, *args]

    def env(self):
        return self.cluster.environment(SLURM_CONF=os.path.join(self.dir, "slurm.conf"))

    def ask(self, *args):
        return lab.run(self.argv("scontrol", *args), env=self.env())

    def answers(self):
        if self.daemon.poll() is not None:
            raise AssertionError(f"slurmctld has ended: {self.log()[-2000:]}")
        return self.ask("show", "topology").returncode == 0

    def topology(self, name=None):
        """{switch: (level, its nodes, its switches)}, of a topology that has a name."""
        found = {}
        for line in self.ask("show", "topology", *([name] if name else [])).stdout.splitlines():
            words = dict(word.split("=", 1) for word in line.split())
            found[words["SwitchName"]] = (int(words["Level"]), sorted(spelled(words.get("Nodes", ""))),
                                          sorted(spelled(words.get("Switches", ""))))
        return found

    def chosen(self, nodes, *options):
        """What a job of so many nodes would get; None: Slurm refuses it."""
        done = lab.run(self.argv("sbatch", "--test-only", *options, "-N", str(nodes), "-o", "/dev/null", "--wrap", "true"), env=self.env())
        found = re.search(r"on nodes (\S+)", done.stderr)
        return spelled(found.group(1)) if found else None

    def log(self):
        with open(os.path.join(self.dir, "slurmctld.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self):
        lab.kill_group(self.daemon)
        self.daemon.wait()


class Case(test_fabricctl.Case):
    prefix = None

    @classmethod
    def setUpClass(cls):
        if cls.prefix is None:
            lab.require("slurmctld", "scontrol")
        cls.cluster = launchers.Cluster([])
        cls.addClassCleanup(cls.cluster.stop)

    def read_by_slurm(self, text):
        """What Slurm makes of it; and that this is what stands there."""
        said, leaves = {}, []
        for line in text.splitlines():
            if not line.startswith("#"):
                name, kind, below = re.fullmatch(r"SwitchName=(\S+) (Nodes|Switches)=(\S+)", line).groups()
                said[name] = (kind, sorted(spelled(below)))
                leaves += spelled(below) if kind == "Nodes" else []
        self.assertEqual(len(leaves), len(set(leaves)))
        slurm = Slurm(self.cluster, text, sorted(leaves), prefix=self.prefix)
        try:
            answer, log = slurm.topology(), slurm.log()
        finally:
            slurm.stop()
        self.assertEqual({name: ("Switches", switches) if switches else ("Nodes", nodes)
                          for name, (_, nodes, switches) in answer.items()}, said)
        self.assertNotRegex(log, r"(?i)lack access|invalid hostnames|multiple leaf")
        return answer, log

    def one_root(self, answer, log):
        nodes = sorted(node for level, nodes, _ in answer.values() if level == 0 for node in nodes)
        self.assertEqual([name for name, (_, below, _) in answer.items() if below == nodes],
                         [max(answer, key=lambda name: answer[name][0])])
        self.assertNotIn("no switch can reach all nodes", log)
        return len(nodes)

    def by_hand(self, text):
        path = os.path.join(lab.tmpdir(), "levels")
        lab.replace_file(path, text)
        return path

    def of(self, spec, *args):
        test_fabricctl.snapshot(spec, self.rundir)
        answer, log = self.read_by_slurm(self.ctl("export", "slurm-tree", *args))
        return answer, self.one_root(answer, log)


class Generated(Case):
    def test_generated(self):
        for spec, hosts, levels, switches in (("fattree3:6", 54, 3, 18 + 6 + 1), ("dragonfly:2,4,2", 72, 3, 36 + 9 + 1),
                                              ("fattree2:250,4,20", 5000, 2, 251)):
            with self.subTest(spec):
                answer, n = self.of(spec)
                self.assertEqual((n, 1 + max(level for level, _, _ in answer.values()), len(answer)), (hosts, levels, switches))

    def test_levels_by_hand(self):
        """Above leaves and above pods; of two planes a root over both."""
        answer, n = self.of("fattree3:6", "--above", self.by_hand("row1 = leaf0-*\nrow2 = leaf1-[0-1]\nhall = ib0-pod[2-5]\nhalls = hall ib0-pod0\n"))
        self.assertEqual((n, len(answer)), (54, 18 + 6 + 1 + 4))
        self.assertEqual({name: answer[name][2] for name in ("ib0-pod0", "ib0-pod1", "row2", "hall", "halls", "ib0")},
                         {"ib0-pod0": ["row1"], "ib0-pod1": ["leaf1-2", "row2"], "row2": ["leaf1-0", "leaf1-1"],
                          "hall": [f"ib0-pod{n}" for n in range(2, 6)], "halls": ["hall", "ib0-pod0"], "ib0": ["halls", "ib0-pod1"]})
        test_fabricctl.snapshot("fattree2:30,2,2", self.rundir, "ib1", "2", "3")
        answer, log = self.read_by_slurm(self.ctl("export", "slurm-tree", "--above", self.by_hand("site = ib0 ib1\n")))
        self.assertEqual(answer["site"][2], ["ib0", "ib1"])
        self.assertEqual(self.one_root(answer, log), 60)

    def test_two_planes(self):
        test_fabricctl.snapshot("fattree2:6,2,5", self.rundir, "ib1", "2", "3")
        answer, log = self.read_by_slurm(self.ctl("export", "slurm-tree"))
        self.assertEqual(sorted(node for level, nodes, _ in answer.values() if level == 0 for node in nodes),
                         [f"node{n:04}" for n in range(1, 31)])
        self.assertIn("no switch can reach all nodes", log)


def fabric(cables, guids=()):
    """ibnetdiscover's text of these cables between nodes; what begins with "n" is a host. guids: of some, which has no part
    in those of the others."""
    names = sorted({name for cable in cables for name in cable})
    ports, peers = {name: 0 for name in names}, {name: [] for name in names}
    for a, b in cables:
        ports[a], ports[b] = ports[a] + 1, ports[b] + 1
        peers[a].append((ports[a], b, ports[b]))
        peers[b].append((ports[b], a, ports[a]))
    guid = {name: 0x1000 + 16 * at for at, name in enumerate(name for name in names if name not in guids)} | dict(guids)
    ids = {name: f'"{"H" if name[0] == "n" else "S"}-{guid[name]:016x}"' for name in names}
    text = "#\n# Topology file\n"
    for name in names:
        host = name[0] == "n"
        text += f"\nvendid=0x2c9\ndevid={'0x101b' if host else '0xd2f0'}\nsysimgguid={guid[name]:#x}\n"
        text += f"{'ca' if host else 'switch'}guid={guid[name]:#x}"
        text += "\n" if host else f"({guid[name]:x})\n"
        text += f"{'Ca' if host else 'Switch'}\t{ports[name]} {ids[name]}\t\t# \"{name}\""
        text += "\n" if host else " enhanced port 0 lid 1 lmc 0\n"
        for port, peer, at in peers[name]:
            mine = f"({guid[name] + port:x})" if host else ""
            there = f"({guid[peer] + at:x})" if peer[0] == "n" else ""
            own = "lid 1 lmc 0 " if host else ""
            text += f"[{port}]{mine} \t{ids[peer]}[{at}]{there} \t\t# {own}\"{peer}\" lid 1 4xHDR\n"
    return text


PODS = [cable for pod in "ab" for cable in (
    *((f"leaf{pod}{leaf}", f"n{pod}{leaf}{host}") for leaf in "12" for host in "12"),
    *((f"leaf{pod}{leaf}", f"mid{pod}{mid}") for leaf in "12" for mid in "12"),
    *((f"mid{pod}{mid}", f"core{mid}") for mid in "12"))]


def pods(*sizes):
    """Cables of pods of leaves with so many hosts each: pods((2, 2), (3,)) has two leaves and one."""
    cables = []
    for pod, leaves in enumerate(sizes):
        for leaf, hosts in enumerate(leaves):
            name = f"leaf{pod}x{leaf:02}"
            cables += [(name, f"n{pod}x{leaf:02}x{host:02}") for host in range(hosts)] + [(name, f"spine{pod}")]
        cables.append((f"spine{pod}", "core"))
    return cables


class Captured(Case):
    def capture(self, text):
        file = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(file, text)
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{file}"}})
        self.addCleanup(daemon.stop)
        done = daemon.ctl("export", "slurm-tree")
        self.assertEqual(done.returncode, 0, done.stderr)
        return daemon, self.read_by_slurm(done.stdout)

    def test_mixed_depths(self):
        """Beside two pods a leaf at the core, a host at a switch in the middle of a pod, and one at leaves of both pods."""
        more = [("leafx", "core1"), ("leafx", "core2"), ("leafx", "nx1"), ("mida1", "nm1"), ("leafb2", "na11")]
        daemon, (answer, log) = self.capture(fabric(PODS + more))
        self.one_root(answer, log)
        self.assertEqual({name: switches for name, (level, _, switches) in answer.items() if level > 0},
                         {"ib0": ["ib0-over-leafa1", "ib0-over-leafb1", "leafx"],
                          "ib0-over-leafa1": ["leafa1", "leafa2", "mida1"], "ib0-over-leafb1": ["leafb1", "leafb2"]})
        self.assertEqual([answer[name][1] for name in ("mida1", "leafa1", "leafb2")], [["nm1"], ["na11", "na12"], ["nb21", "nb22"]])
        self.assertIn("lost: plane ib0: 1 host at several leaves, each is written at one (choose with --interface): na11",
                      daemon.ctl("export", "slurm-tree").stderr)
        self.assertEqual(daemon.ctl("export", "slurm-tree", "--strict").returncode, 1)

    def test_names_of_switches(self):
        """Names that Slurm cannot read, two of one name, and a third one that is called as the second of them is written."""
        def renamed(a1, a2):
            return fabric(PODS).replace('"leafa1"', f'"{a1}"').replace('"leafa2"', f'"{a2}"').replace('"leafb2"', '"leafb1"')
        daemon, (answer, _) = self.capture(renamed("leaf=a1", "leafa2"))
        names = {tuple(nodes): name for name, (level, nodes, _) in answer.items() if level == 0}
        second = names["nb21", "nb22"]
        self.assertRegex(names["na11", "na12"], "^s[0-9a-f]+$")
        self.assertEqual(names["nb11", "nb12"], "leafb1")
        self.assertRegex(second, "^leafb1-s[0-9a-f]+$")
        self.assertRegex(daemon.ctl("export", "slurm-tree").stdout, rf"\n# {names['na11', 'na12']} 0x[0-9a-f]{{16}} leaf=a1\n")
        _, (answer, _) = self.capture(renamed("leaf=a1", second))
        self.assertEqual(sorted(len(nodes) for level, nodes, _ in answer.values() if level == 0), [2, 2, 2, 2])

    def test_names_of_inner_vertices(self):
        """Several levels over one leaf, a part at each, as deep as the level is high; and names longer than a name may be."""
        ways = [["na0", "a0", *(f"up{level}" for level in range(1, 6))]]
        ways += [[f"na{level}", *(f"side{level}{step}" for step in range(level)), f"up{level}"] for level in range(1, 6)]
        _, (answer, log) = self.capture(fabric([cable for way in ways for cable in zip(way, way[1:])]))
        self.one_root(answer, log)
        self.assertEqual({name: switches for name, (level, _, switches) in answer.items() if level > 0},
                         {"ib0-over-a0": ["a0", "side10"],
                          **{f"ib0-over-a0-l{height}": [below, f"side{height}0"] for height, below in
                             ((2, "ib0-over-a0"), (3, "ib0-over-a0-l2"), (4, "ib0-over-a0-l3"))},
                          "ib0": ["ib0-over-a0-l4", "side50"]})
        pods = [(f"datacenter1-row12-rack07-quantum2-ufm-l{pod}{leaf}", f"n{pod}{leaf}x") for pod in "1234" for leaf in "12"]
        middles = [(f"datacenter1-row12-rack07-quantum2-ufm-l{pod}{leaf}", f"mid{pod}") for pod in "1234" for leaf in "12"]
        cores = [(f"mid{pod}", "core1") for pod in "1234"] + [("leafx", "core1"), ("leafx", "nx")]
        _, (answer, log) = self.capture(fabric(pods + middles + cores))
        self.one_root(answer, log)
        inner = [name for name, (level, _, _) in answer.items() if level > 0]
        self.assertEqual(len(inner), 5)
        for name in inner:
            self.assertRegex(name, "^ib0(-over-s[0-9a-f]+)?$")

    def test_the_real_one(self):
        """What its README expects of the units, in so far as the hosts have names."""
        if not os.path.exists(fabric_text.REAL):
            self.skipTest("no capture of a real fabric lies beside the project")
        with open(fabric_text.REAL, encoding="utf-8") as file:
            daemon, (answer, log) = self.capture(file.read())
        self.one_root(answer, log)
        units = {name: nodes for name, (level, nodes, _) in answer.items() if level == 0}
        groups = {frozenset(host for host in group["hosts"] if not host.startswith("0x"))
                  for group in daemon.ctl_json("groups") if re.fullmatch(r"unit\d+", group["name"])} - {frozenset()}
        self.assertEqual({frozenset(nodes) for name, nodes in units.items() if "unit" in name}, groups)
        for expected in ("a05-p1-dgx-01-c[03-04]", "a06-p1-dgx-02-c[01-04,07,10-12,14,16,18]", "b05-p1-dgx-05-c[01-18]"):
            self.assertTrue(any(set(spelled(expected)) <= set(nodes) for nodes in units.values()), expected)


class Folding(unittest.TestCase):
    def test_as_slurm_folds(self):
        """Lists of random names: ours is what `scontrol show hostlistsorted` makes of it."""
        lab.require("scontrol")
        env = dict(os.environ, SLURM_CONF=os.path.join(lab.tmpdir(), "slurm.conf"))
        lab.replace_file(env["SLURM_CONF"], CONF.format(dir=lab.tmpdir(), plugin="topology/tree") + "NodeName=n1\n")
        pick = random.Random(5)
        folder = lab.tmpdir()
        for width in (1, 4):
            names = [f"node{n:0{width}}" for n in sorted(pick.sample(range(1, 17 * 8), 60))]
            capture = lab.fabric("fattree2:17,1,8", "capture")
            keep = {f"node{n:04}": f"node{n:0{width}}" for n in range(1, 17 * 8 + 1)}
            lab.replace_file(os.path.join(folder, "capture"), re.sub(r"node\d{4}", lambda m: keep[m.group()], capture))
            daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{folder}/capture"}})
            self.addCleanup(daemon.stop)
            ours = daemon.ctl("export", "hostlist", ",".join(names)).stdout.strip()
            done = lab.run([lab.find_command("scontrol"), "show", "hostlistsorted", ",".join(names)], env=env)
            self.assertEqual(ours, done.stdout.strip())
            self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
