"""`fabricctl slurm apply` keeps a running slurmctld (Debian's, of whatever version) at the exported file. After each random change
of a fabric, `scontrol show topology` has the hosts of each leaf, and of each part above, that the test's own model of the
fabric has. From 25.05 on no change below the root takes a reconfigure. A job runs through all changes."""
import contextlib
import json
import os
import random
import re
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


if __name__ == "__main__":
    unittest.main()
