"""`fabricctl slurm apply` keeps a running slurmctld (Debian's, of whatever version) at the exported file. After each random change
of a fabric, `scontrol show topology` has the hosts of each leaf, and of each part above, that the test's own model of the
fabric has. From 25.05 on no change below the root takes a reconfigure. A job runs through all changes."""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import unittest

import lab
import launchers
import test_export_slurm
from test_export_slurm import spelled

CONF = test_export_slurm.CONF.replace("SuspendTime=-1", "SuspendTime=-1\nSlurmdUser=root\nSlurmdParameters=config_overrides\n"
                                      "TaskPlugin=task/none\nSlurmdSpoolDir={dir}/spool-%n\nSlurmdPidFile={dir}/slurmd-%n.pid\n"
                                      "SlurmdLogFile={dir}/slurmd-%n.log\nReturnToService=2")
REAL = ("na", "nb")  # nodes with a slurmd


def version():
    return tuple(int(part) for part in re.search(r"(\d+)\.(\d+)", lab.run([lab.find_command("slurmctld"), "-V"]).stdout).groups())


class Fabric:
    """Pods of leaves of hosts, in one plane or in two that the hosts have a card each in."""

    def __init__(self, pods, leaves, hosts, planes=1):
        self.guids, self.planes = {}, planes
        self.pods = {f"pod{pod}": [f"leaf{pod}x{leaf}" for leaf in range(leaves)] for pod in range(pods)}
        names = iter(["na", "nb", *(f"n{number:03}" for number in range(1000))])
        self.hosts = {leaf: [next(names) for _ in range(hosts)] for leaves in self.pods.values() for leaf in leaves}
        self.slow = set()  # leaves of which a cable is lost
        self.names = {}    # of renamed switches
        self.away = {}     # leaf: its hosts, of a rack that is gone

    def guid(self, name):
        return self.guids.setdefault(name, 0x1000 + 256 * len(self.guids))

    def cables(self, plane):
        for pod, leaves in self.pods.items():
            for leaf in leaves:
                if leaf not in self.away:
                    for host in self.hosts[leaf]:
                        yield f"{leaf}p{plane}", f"{host} mlx5_{plane}", True
                    for spine in ("s",) if leaf in self.slow else ("s", "t"):
                        yield f"{leaf}p{plane}", f"{spine}{pod}p{plane}", False
            for spine in ("s", "t"):
                if any(leaf not in self.away for leaf in leaves):
                    yield f"{spine}{pod}p{plane}", f"core{spine}p{plane}", False

    def text(self):
        """What ibnetdiscover prints of it."""
        peers, hosts = {}, set()
        for plane in range(self.planes):
            for a, b, host in self.cables(plane):
                ports = [1 + len(peers.setdefault(name, [])) for name in (a, b)]
                peers[a].append((ports[0], b, ports[1]))
                peers[b].append((ports[1], a, ports[0]))
                hosts |= {b} if host else set()
        text = "#\n# Topology file\n"
        for name in sorted(peers, key=self.guid):
            guid, kind = self.guid(name), "Ca" if name in hosts else "Switch"
            shown = self.names.get(name, name)
            text += (f"\nvendid=0x2c9\ndevid=0x101b\nsysimgguid={guid:#x}\n{kind.lower()}guid={guid:#x}" +
                     ("\n" if name in hosts else f"({guid:x})\n") +
                     f'{kind}\t{len(peers[name])} "{kind[0] if kind == "Switch" else "H"}-{guid:016x}"\t\t# "{shown}"' +
                     ("\n" if name in hosts else " enhanced port 0 lid 1 lmc 0\n"))
            for port, peer, at in peers[name]:
                there, host = self.guid(peer), peer in hosts
                text += (f"[{port}]{f'({guid + port:x})' if name in hosts else ''} \t\"{'H' if host else 'S'}-{there:016x}\"[{at}]"
                         f"{f'({there + at:x})' if host else ''} \t\t# {'lid 1 lmc 0 ' if name in hosts else ''}\"{peer}\" lid 1 4xHDR\n")
        return text

    def parts(self):
        """(hosts of each leaf, hosts of each pod with several leaves), as sets; and all."""
        leaves = {leaf: frozenset(hosts) for leaf, hosts in self.hosts.items() if leaf not in self.away and hosts}
        pods = {frozenset().union(*(leaves[leaf] for leaf in pod if leaf in leaves)) for pod in self.pods.values()}
        return set(leaves.values()) | pods | {frozenset().union(*leaves.values())} - {frozenset()}

    def everybody(self):
        return sorted({host for hosts in self.hosts.values() for host in hosts})

    # -- changes

    def change(self, pick):
        """One random change; what it was."""
        here = [leaf for leaf in self.hosts if leaf not in self.away]
        leaf, other = pick.sample(here, 2)
        kind = pick.choice(["move", "move", "leaf", "cable", "rack", "rename"])
        movable = [host for host in self.hosts[leaf] if host not in REAL]
        if kind == "move" and len(self.hosts[leaf]) > 1 and movable:
            host = pick.choice(movable)
            self.hosts[leaf].remove(host)
            self.hosts[other].append(host)
            return f"{host} moves from {leaf} to {other}"
        if kind == "leaf" and len(self.hosts) < 14 and len(movable) > 1 and len(self.hosts[leaf]) > 2:
            pod, new = pick.choice(sorted(self.pods)), f"new{len(self.guids)}"
            self.pods[pod].append(new)
            self.hosts[new] = [movable[0]]
            self.hosts[leaf].remove(movable[0])
            return f"{new} in {pod} gets {movable[0]} from {leaf}"
        if kind == "cable":
            self.slow ^= {leaf}
            return f"a cable of {leaf} is lost or back"
        if kind == "rack" and self.away:
            back = pick.choice(sorted(self.away))
            del self.away[back]
            return f"{back} is back"
        if kind == "rack" and len(here) > 6 and not set(REAL) & set(self.hosts[leaf]):
            self.away[leaf] = True
            return f"{leaf} is gone"
        name = f"{leaf}p0"
        self.names[name] = f"renamed{pick.randrange(1000)}-{self.guid(name)}"
        return f"{leaf} is renamed"


class Controller(test_export_slurm.Slurm):
    """slurmctld with nodes of a cloud, which it takes for idle, and two with a slurmd; fabricctl is run beside it."""

    def __init__(self, cluster, topology, nodes, plugin="topology/tree", file="topology.conf", folder=None):
        self.cluster, self.dir, self.prefix, self.slurmds = cluster, folder or lab.tmpdir(), None, []
        os.chmod(self.dir, 0o755)
        os.makedirs(os.path.join(self.dir, "state"), exist_ok=True)
        self.target = os.path.join(self.dir, file)
        lab.replace_file(self.target, topology)
        cloud = [node for node in nodes if node not in REAL]
        conf = CONF.format(dir=self.dir, plugin=plugin)
        for at in range(0, len(cloud), 250):
            conf += f"NodeName={','.join(cloud[at:at + 250])} CPUs=4 State=CLOUD\n"
        for at, name in enumerate(REAL):
            conf += f"NodeName={name} NodeAddr={cluster.HEAD} NodeHostname=head Port={17000 + at} CPUs=2 State=UNKNOWN\n"
        lab.replace_file(os.path.join(self.dir, "slurm.conf"), conf + "PartitionName=all Nodes=ALL Default=YES OverSubscribe=EXCLUSIVE\n")
        self.begin()
        for name in REAL:
            os.makedirs(os.path.join(self.dir, f"spool-{name}"), exist_ok=True)
            self.slurmds.append(self.spawn("slurmd", "-D", "-N", name))

    def spawn(self, *argv):
        return lab.spawn(self.argv(*argv), env=self.env(), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)

    def argv(self, name, *args):
        return [*self.cluster.head.inside(), lab.find_command(name), *args]

    def begin(self, *args):
        self.daemon = self.spawn("slurmctld", "-D", *args)
        lab.wait_for(self.answers, what="slurmctld")

    def end(self):
        lab.kill_group(self.daemon)
        self.daemon.wait()

    def stop(self):
        for slurmd in self.slurmds:
            lab.kill_group(slurmd)
            slurmd.wait()
        self.end()

    def apply(self, exported, *args, target=True, **env):
        """fabricctl slurm apply, as Slurm's user."""
        to = ["-o", self.target] if target else []
        return lab.run([*self.cluster.head.inside(), lab.program("fabricctl"), "slurm", "apply", exported, *to, *args],
                       env=dict(self.env(), **env), cwd="/")

    def difference(self, exported):
        done = lab.run([*self.cluster.head.inside(), lab.program("fabricctl"), "--json", "slurm", "diff", exported], env=self.env(), cwd="/")
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    def reconfigures(self):
        """How often it was reconfigured, by its own log."""
        return len(re.findall(r"(?m)Processing Reconfiguration Request|: reconfigure: |processing reconfigure request", self.log()))

    def parts(self, name=None):
        """The sets of hosts that its switches have."""
        return {frozenset(nodes) for _, nodes, _ in self.topology(name).values()} - {frozenset()}


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lab.require("slurmctld", "slurmd", "scontrol", "munged")
        cls.cluster = launchers.Cluster([])
        cls.addClassCleanup(cls.cluster.stop)
        cls.version = version()

    def begin(self, fabric, form="slurm-tree", file="topology.conf", plugin="topology/tree", more=()):
        self.fabric, self.form, self.more = fabric, form, more
        self.folder = lab.tmpdir()
        os.chmod(self.folder, 0o755)
        self.exported, self.capture = os.path.join(self.folder, file), os.path.join(self.folder, "capture")
        lab.replace_file(self.capture, fabric.text())
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}, "changes": {"retain_seconds": 0, "flap_count": 0}})
        self.addCleanup(self.daemon.stop)
        self.export()
        with open(self.exported, encoding="utf-8") as file_:
            self.slurm = Controller(self.cluster, file_.read(), fabric.everybody(), plugin, file)
        self.addCleanup(self.slurm.stop)

    def export(self):
        done = self.daemon.ctl("export", self.form, "-o", self.exported, "--if-changed", *self.more)
        self.assertIn(done.returncode, (0, 3), done.stderr)

    def publish(self):
        lab.replace_file(self.capture, self.fabric.text())
        done = self.daemon.ctl("refresh")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.export()

    def applied(self, *args, **more):
        done = self.slurm.apply(self.exported, *args, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def agree(self, what):
        with open(self.exported, encoding="utf-8") as file:
            what = f"{what}\n{file.read()}\n{self.slurm.log()[-1500:]}"
        self.assertEqual(self.slurm.parts(), self.fabric.parts(), what)
        self.assertEqual(self.slurm.difference(self.exported)[0], 0, what)


class RandomChanges(Case):
    def test_each_change(self):
        self.begin(Fabric(3, 3, 4))
        self.assertEqual(self.applied(), "")
        job = lab.run(self.slurm.argv("sbatch", "-w", "na", "-o", "/dev/null", "--wrap", "sleep 1000"), env=self.slurm.env(), cwd="/")
        self.assertEqual(job.returncode, 0, job.stderr)
        jobs = lambda: lab.run(self.slurm.argv("squeue", "-h", "-o", "%i %T %N %S"), env=self.slurm.env(), cwd="/").stdout
        lab.wait_for(lambda: " RUNNING na " in jobs(), what="the job")
        running, pick, structure = jobs(), random.Random(34), 0
        for number in range(100 if lab.ALL else 20):
            what = f"{number}: {self.fabric.change(pick)}"
            before = self.slurm.reconfigures()
            self.publish()
            said = self.applied()
            self.agree(f'{what}: {said}')
            if self.version >= (25, 5):
                self.assertEqual(self.slurm.reconfigures() - before, 0, f"{what}: {said}")
        self.assertEqual(jobs(), running)


class Structure(Case):
    """Changes that slurmctld only reads from its file: one reconfigure, and none afterwards."""

    def reconfigured(self, what):
        before = self.slurm.reconfigures()
        self.publish()
        self.assertIn("reconfigure: ", self.applied(), what)
        self.agree(what)
        self.assertEqual((self.applied(), self.slurm.reconfigures() - before), ("", 1), what)

    def test_levels(self):
        self.begin(Fabric(2, 3, 3))
        self.applied()
        self.fabric.pods["pod0"].append(self.fabric.pods["pod1"].pop())
        self.reconfigured("a leaf is in another pod")
        for leaf in self.fabric.pods.pop("pod1"):
            self.fabric.pods["pod0"].append(leaf)
        self.reconfigured("one pod is left: another root")

    def test_another_plugin(self):
        """TopologyPlugin is read at the start only: no reconfigure is tried."""
        self.begin(Fabric(2, 2, 2), plugin="topology/tree")
        lab.replace_file(self.exported, "BlockName=b1 Nodes=na,nb\nBlockName=b2 Nodes=n[000-001]\nBlockSizes=2\n")
        before = self.slurm.reconfigures()
        done = self.slurm.apply(self.exported)
        self.assertEqual(done.returncode, 1)
        self.assertIn("set TopologyPlugin in slurm.conf, and restart slurmctld", done.stderr)
        self.assertEqual(self.slurm.reconfigures(), before)


class Planes(Case):
    """A topology.yaml with a tree for each plane (25.05)."""

    def setUp(self):
        if self.version < (25, 5):
            self.skipTest("Slurm before 25.05 has one topology")

    def agree(self, what):
        for plane in ("ib0", "ib1"):
            self.assertEqual(self.slurm.parts(plane), self.fabric.parts(), f"{what}: {plane}")
        self.assertEqual(self.slurm.difference(self.exported)[0], 0, what)

    def test_each_change(self):
        self.begin(Fabric(2, 3, 4, planes=2), "slurm-yaml", "topology.yaml", "topology/flat")
        self.assertEqual(self.applied(), "")
        self.agree("at first")
        pick = random.Random(35)
        before = self.slurm.reconfigures()
        for number in range(100 if lab.ALL else 15):
            what = f"{number}: {self.fabric.change(pick)}"
            self.publish()
            said = self.applied()
            self.agree(f"{what}: {said}")
        self.assertEqual(self.slurm.reconfigures(), before)

    def test_kinds(self):
        """A tree, blocks and a flat topology of one plane: each node moves in all of them at once."""
        self.begin(Fabric(2, 3, 4), "slurm-yaml", "topology.yaml", "topology/flat", more=("--topologies", "*t=tree:ib0 b=block:ib0 f=flat"))
        self.assertEqual(self.applied(), "")
        pick = random.Random(37)
        for number in range(100 if lab.ALL else 15):
            what = f"{number}: {self.fabric.change(pick)}"
            self.publish()
            said = self.applied()
            self.assertEqual(self.slurm.parts("t"), self.fabric.parts(), f"{what}: {said}")
            found = re.findall(r"(?m)^BlockName=\S+ BlockIndex=\d+ Nodes=(\S+) ", self.slurm.ask("show", "topology", "b").stdout)
            self.assertEqual({frozenset(spelled(nodes)) for nodes in found},
                             {frozenset(hosts) for leaf, hosts in self.fabric.hosts.items() if leaf not in self.fabric.away and hosts}, what)
            self.assertEqual(self.slurm.difference(self.exported)[0], 0, what)

    def test_a_topology_more(self):
        self.begin(Fabric(2, 2, 2), "slurm-yaml", "topology.yaml", "topology/flat")
        self.applied()
        self.fabric.planes = 2
        before = self.slurm.reconfigures()
        self.publish()
        self.assertIn("reconfigure: topology ib1 is not in Slurm", self.applied())
        self.agree("a plane more")
        self.assertEqual(self.slurm.reconfigures() - before, 1)

    def test_ignored_file(self):
        """slurmctld reads another file: one reconfigure is tried, a second one is not."""
        self.begin(Fabric(2, 2, 2))
        self.export_yaml()
        before = self.slurm.reconfigures()
        for _ in range(2):
            done = self.slurm.apply(self.exported, target=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("topology ib0 is not in Slurm, also after a reconfigure", done.stderr)
        self.assertEqual(self.slurm.reconfigures() - before, 1)

    def export_yaml(self):
        self.exported, self.form = os.path.join(self.folder, "topology.yaml"), "slurm-yaml"
        self.export()


class Blocks(Case):
    """topology/block, from 23.11 on. Before 25.05 a block without hosts, or with fewer than the first of BlockSizes, ends slurmctld."""

    def setUp(self):
        if self.version < (23, 11):
            self.skipTest("Slurm before 23.11 has no blocks")
        self.old = () if self.version >= (25, 5) else ("--slurm", "%d.%02d" % self.version)

    def blocks(self):
        found = re.findall(r"(?m)^BlockName=\S+ BlockIndex=\d+ Nodes=(\S+) ", self.slurm.ask("show", "topology").stdout)
        return {frozenset(spelled(nodes)) for nodes in found}

    def agree(self, what):
        self.assertEqual(self.blocks(), {frozenset(hosts) for leaf, hosts in self.fabric.hosts.items() if leaf not in self.fabric.away and hosts},
                         f"{what}\n{self.slurm.log()[-800:]}")
        self.assertEqual(self.slurm.difference(self.exported)[0], 0, what)

    def test_each_change(self):
        self.begin(Fabric(2, 3, 4), "slurm-block", plugin="topology/block", more=self.old)
        self.applied()
        self.agree("at first")
        pick = random.Random(36)
        for number in range(100 if lab.ALL else 15):
            what = f"{number}: {self.fabric.change(pick)}"
            self.publish()
            said = self.applied()
            self.agree(f"{what}: {said}")
            self.assertEqual(self.applied(), "", what)

    def test_a_rack_that_is_planned(self):
        """A new leaf takes a placeholder, and its hosts move there: Slurm is not reconfigured, and no other block is either."""
        if self.old:
            self.skipTest("Slurm before 25.05 changes no place by scontrol")
        fabric = Fabric(2, 2, 4)
        fabric.away["leaf1x1"] = True
        self.begin(fabric, "slurm-block", plugin="topology/block", more=("--spare", "2", "--block-sizes", "2,4"))
        self.applied()
        before = self.slurm.reconfigures()
        for gone in (False, True, False):
            fabric.away = {"leaf1x1": True} if gone else {}
            self.publish()
            self.applied()
            self.agree(f"the rack is {'gone' if gone else 'there'}")
        self.assertEqual(self.slurm.reconfigures(), before)

    def test_lost_nodes(self):
        """slurmctld loses nodes from their block."""
        if self.old:
            self.skipTest("Slurm before 25.05 changes no place by scontrol")
        self.begin(Fabric(2, 2, 4), "slurm-block", plugin="topology/block")
        self.applied()
        self.assertEqual(self.slurm.ask("update", "NodeName=n[002-003]", "Topology=").returncode, 0)
        status, value = self.slurm.difference(self.exported)
        self.assertEqual((status, [move["node"] for move in value["moves"]]), (1, ["n002", "n003"]))
        self.applied("--repair")
        self.agree("repaired")


class Drift(Case):
    """Somebody changes Slurm, or its file."""

    def setUp(self):
        self.begin(Fabric(2, 2, 3))
        self.applied()

    def left_alone(self, change):
        """It is reported, and only --repair changes it back."""
        done = self.slurm.apply(self.exported)
        self.assertEqual(done.returncode, 1, change)
        self.assertIn(f"was changed and differs from {self.exported}", done.stderr)
        self.assertEqual(self.slurm.apply(self.exported, "--quiet").stderr, "", "a repeated failure")
        self.applied("--repair")
        self.agree(change)
        self.assertEqual(self.applied(), "")

    def test_by_scontrol(self):
        if self.version < (25, 5):
            self.skipTest("Slurm before 25.05 changes no place by scontrol")
        for topology, shown in (("", "in no switch in Slurm"), ("default:leaf1x0p0", "leaf1x0p0 in Slurm")):
            done = self.slurm.ask("update", "NodeName=n000", f"Topology={topology}")
            self.assertEqual(done.returncode, 0, done.stderr)
            status, value = self.slurm.difference(self.exported)
            self.assertEqual((status, value["equal"], value["reconfigure"]), (1, False, False))
            self.assertEqual([(move["node"], move["topology"]) for move in value["moves"]], [("n000", "default:ib0:ib0-pod0:leaf0x0p0")])
            self.assertIn(shown, value["moves"][0]["change"])
            self.left_alone(topology)

    def test_edited_file(self):
        with open(self.slurm.target, encoding="utf-8") as file:
            text = file.read()
        lab.replace_file(self.slurm.target, text.replace("Nodes=n[001-003]", "Nodes=n[001-002]"))
        self.assertEqual(self.slurm.ask("reconfigure").returncode, 0)
        self.left_alone("the file was edited")


class Away(Case):
    """slurmctld is away, slow, restarted in the middle, or refuses."""

    def setUp(self):
        self.begin(Fabric(2, 2, 3))
        self.applied()

    def move(self):
        host = next(host for host in self.fabric.hosts["leaf0x0"] if host not in REAL)
        self.fabric.hosts["leaf0x0"].remove(host)
        self.fabric.hosts["leaf1x0"].append(host)
        self.publish()

    def test_away(self):
        self.slurm.end()
        self.move()
        done = self.slurm.apply(self.exported, "--quiet")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^fabricctl: scontrol show config: .*\n$")
        again = self.slurm.apply(self.exported, "--quiet")
        self.assertEqual((again.returncode, again.stderr), (1, ""))
        self.slurm.begin()  # with the new file
        self.assertIn("Slurm agrees", self.applied("--quiet"))
        self.agree("it is back")

    def test_older_places(self):
        """Places that were set by scontrol live in slurmctld's state, and come back at its start over a newer file."""
        for _ in range(2):
            self.move()
            self.applied()
            self.fabric.hosts["leaf0x0"].append(self.fabric.hosts["leaf1x0"].pop())
        self.slurm.end()
        self.publish()
        self.slurm.begin()
        self.applied()
        self.agree("after its start")

    def test_another_file(self):
        """It starts with a file of somebody else."""
        self.slurm.end()
        lab.replace_file(self.slurm.target, f"SwitchName=other Nodes={','.join(self.fabric.everybody())}\n")
        self.slurm.begin()
        self.assertEqual(self.slurm.apply(self.exported).returncode, 1)
        self.applied("--repair")
        self.agree("another file")

    def test_refused(self):
        """A user who may not change Slurm."""
        self.move()
        folder = lab.tmpdir()
        os.chmod(folder, 0o777)
        lab.run([*self.slurm.cluster.head.inside(), "chmod", "-R", "a+rX", lab.tmpdir()])
        before = self.slurm.parts()
        target = os.path.join(folder, "topology.conf")
        done = lab.run([*self.slurm.cluster.head.inside(), "setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
                        lab.program("fabricctl"), "slurm", "apply", self.exported, "-o", target], env=self.slurm.env(), cwd="/")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"(?i)scontrol (reconfigure|update).*(denied|access|permission|Invalid user)|slurmctld did not take")
        self.assertEqual(self.slurm.parts(), before)

    def test_slow(self):
        """It stops in the middle, and goes on when the call has been killed."""
        self.move()
        os.killpg(self.slurm.daemon.pid, signal.SIGSTOP)
        slow = lab.spawn([*self.slurm.cluster.head.inside(), lab.program("fabricctl"), "slurm", "apply", self.exported, "-o",
                          self.slurm.target], env=self.slurm.env(), cwd="/", stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        other = self.slurm.apply(self.exported)
        self.assertEqual(other.returncode, 1)
        os.killpg(self.slurm.daemon.pid, signal.SIGCONT)
        self.assertIn(slow.wait(timeout=lab.HUNG), (0, 1))
        self.applied()
        self.agree("it goes on")


class Daemon(Case):
    """fabricd itself compares Slurm in rounds, and brings Slurm to the file where it may."""

    def serve(self, fabric, **slurm):
        self.fabric, self.form, self.more, self.folder = fabric, "slurm-tree", (), lab.tmpdir()
        os.chmod(self.folder, 0o755)
        self.exported, self.capture = os.path.join(self.folder, "topology.conf"), os.path.join(self.folder, "capture")
        lab.replace_file(self.capture, fabric.text())
        wrapper = os.path.join(self.folder, "scontrol")
        self.slurm = None
        done = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}}, start=False)
        done.run_once()
        text = done.ctl("export", "slurm-tree").stdout
        self.slurm = Controller(self.cluster, text, fabric.everybody())
        self.addCleanup(self.slurm.stop)
        lab.replace_file(wrapper, f"#!/bin/sh\nSLURM_CONF={self.slurm.dir}/slurm.conf exec {' '.join(self.slurm.argv('scontrol'))} \"$@\"\n")
        os.chmod(wrapper, 0o755)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}, "changes": {"retain_seconds": 0, "flap_count": 0},
                                          "exports": {"folder": self.folder, "pace": 1}, "exports.files": {"topology.conf": "slurm-tree"},
                                          "slurm": {"round": 1, **slurm}}, env={"FABRICD_SCONTROL": wrapper})
        self.addCleanup(self.daemon.stop)
        self.daemon.until("idle")

    def findings(self):
        return {finding["kind"]: finding["what"] for finding in self.daemon.control("check")["findings"] if finding["kind"] in
                ("slurm-differs", "slurm-remark", "exports-held")}

    def change(self):
        self.fabric.hosts["leaf1x0"].append(self.fabric.hosts["leaf0x1"].pop())
        lab.replace_file(self.capture, self.fabric.text())
        self.assertEqual(self.daemon.ctl("refresh").returncode, 0)
        self.daemon.until("idle")

    def install(self):
        """What somebody does by hand."""
        with open(self.exported, encoding="utf-8") as file:
            lab.replace_file(self.slurm.target, file.read())

    def test_compare(self):
        self.serve(Fabric(2, 2, 3))
        self.assertEqual(self.findings(), {})
        self.change()
        lab.wait_for(self.findings, what="the difference")
        self.assertIn("Slurm differs from", self.findings()["slurm-differs"])
        self.assertIn("SLURM DIFFERS", self.daemon.ctl("status").stdout)
        self.applied()
        lab.wait_for(lambda: not self.findings(), what="that Slurm agrees")
        self.assertIn("agrees with", self.daemon.ctl("status").stdout)

    def test_remarks(self):
        """A node of slurm.conf that the fabric does not have."""
        for apply in ("no", "yes"):
            fabric = Fabric(2, 2, 3)
            fabric.hosts["leaf0x0"].remove("nb")
            self.serve(fabric, apply=apply)
            lab.wait_for(lambda: len(self.findings()) == 1, what="the remark")
            self.assertRegex(self.findings()["slurm-remark"], "Slurm agrees with .*; default: without a place in the file: nb$")
            self.assertNotIn("SLURM DIFFERS", self.daemon.ctl("status").stdout)
            self.daemon.stop()
            self.slurm.stop()

    def test_apply_and_hold(self):
        self.serve(Fabric(2, 2, 3), apply="yes")
        os.symlink(self.exported, self.slurm.target + ".new")
        os.rename(self.slurm.target + ".new", self.slurm.target)
        self.change()
        lab.wait_for(lambda: self.slurm.parts() == self.fabric.parts(), what="Slurm's agreement")
        self.assertEqual(self.findings(), {})
        before = self.slurm.parts()
        self.assertEqual(self.daemon.ctl("export", "--hold", "cables are moved").returncode, 0)
        self.assertRegex(self.findings()["exports-held"], "since .* by root, uid 0: cables are moved")
        self.assertIn("EXPORTS HELD", self.daemon.ctl("status").stdout)
        self.change()
        self.daemon.stop()
        self.daemon.start()  # also after a restart
        self.daemon.until("idle")
        self.assertIn("held since", self.slurm.apply(self.exported).stdout)
        self.assertEqual(self.slurm.parts(), before)
        self.assertEqual(self.daemon.ctl("export", "--release").returncode, 0)
        lab.wait_for(lambda: self.slurm.parts() == self.fabric.parts(), what="Slurm's agreement after the hold")
        self.assertEqual((self.findings(), self.daemon.ctl("export", "--release").returncode), ({}, 1))


if __name__ == "__main__":
    unittest.main()
