"""`fabricctl place` beside a real slurmctld with topology/tree: what Slurm chooses for a compact job is never nearer
together, and the examples (a job_submit script, a wrapper of sbatch) get jobs the hosts that place chooses. The nodes are those
of a cloud, which slurmctld takes for idle without anybody on them."""
import glob
import json
import os
import random
import re
import subprocess
import unittest

import lab
import launchers
import test_fabricctl

LEAVES, HOSTS = 12, 8
CONF = """
ClusterName=lab
SlurmctldHost=head
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TopologyPlugin=topology/tree
JobAcctGatherType=jobacct_gather/none
JobSubmitPlugins=lua
StateSaveLocation={dir}/state
SlurmctldPidFile={dir}/slurmctld.pid
SlurmctldLogFile={dir}/slurmctld.log
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=-1
ResumeTimeout=600
PrivateData=cloud
NodeName=node[{first}-{last}] CPUs=4 State=CLOUD
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=EXCLUSIVE
PartitionName=compact Nodes=ALL State=UP OverSubscribe=EXCLUSIVE
"""


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lab.require("slurmctld", "sinfo", "sbatch", "squeue", "scontrol", "munged")
        if not glob.glob("/usr/lib/*/slurm*/job_submit_lua.so"):
            raise unittest.SkipTest("Slurm has no plugin job_submit/lua here")
        cls.cluster = launchers.Cluster([])
        cls.addClassCleanup(cls.cluster.stop)
        cls.rundir = lab.tmpdir()
        test_fabricctl.snapshot(f"fattree2:{LEAVES},2,{HOSTS}", cls.rundir)
        cls.dir = os.path.join(cls.cluster.dir, "slurm")
        os.makedirs(os.path.join(cls.dir, "state"))
        cls.idle_file = os.path.join(cls.dir, "idle")
        cls.configure()
        cls.daemon = lab.spawn([*cls.cluster.head.inside(), lab.find_command("slurmctld"), "-D", "-i"], env=cls.environment(),
                               cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lab.wait_for(lambda: len(cls.idle()) == LEAVES * HOSTS, what="Slurm's nodes to be idle")

    @classmethod
    def configure(cls):
        lab.replace_file(os.path.join(cls.dir, "slurm.conf"), CONF.format(dir=cls.dir, first="0001", last=f"{LEAVES * HOSTS:04}"))
        lab.replace_file(os.path.join(cls.dir, "topology.conf"), cls.ctl("export", "slurm-tree"))
        with open(os.path.join(lab.ROOT, "system", "slurm-job-submit.lua"), encoding="utf-8") as file:
            cls.lua = file.read()
        lab.replace_file(os.path.join(cls.dir, "job_submit.lua"),
                         cls.lua.replace('"/run/slurm-idle"', f'"{cls.idle_file}"'))

    @classmethod
    def environment(cls):
        path = os.path.dirname(lab.program("fabricctl")) + ":" + os.environ["PATH"]
        return cls.cluster.environment(SLURM_CONF=os.path.join(cls.dir, "slurm.conf"), FABRICD_RUNDIR=cls.rundir, PATH=path)

    @classmethod
    def call(cls, *argv):
        done = lab.run([*cls.cluster.head.inside(), *argv], env=cls.environment())
        if done.returncode != 0:
            raise lab.LabError(f"{argv}: {done.stderr}")
        return done.stdout

    @classmethod
    def ctl(cls, *args):
        done = lab.run([lab.program("fabricctl"), "--rundir", cls.rundir, *args])
        if done.returncode != 0:
            raise lab.LabError(f"{args}: {done.stderr}")
        return done.stdout

    @classmethod
    def idle_list(cls):
        """As the example has it written into its file."""
        return cls.call("sh", "-c", re.search(r"(sinfo .*) > IDLE.new", cls.lua).group(1)).strip()

    @classmethod
    def idle(cls):
        folded = cls.idle_list()
        return cls.call("scontrol", "show", "hostnames", folded).split() if folded else []

    def answer(self, *args):
        return json.loads(self.ctl("--format", "json", *args))

    def nodes_of(self, job):
        """Those that the scheduler has given it."""
        return lab.wait_for(lambda: self.call("squeue", "-h", "-j", job, "-o", "%N").strip(), what="the job to get nodes")

    def submit(self, *argv):
        job = re.search(r"Submitted batch job (\d+)", self.call(*argv)).group(1)
        self.addCleanup(self.call, "scancel", job)
        return job

    def requested(self, job):
        """The nodes that were asked for, by its submitter or by the script."""
        folded = re.search(r"ReqNodeList=(\S+)", self.call("scontrol", "show", "job", job)).group(1)
        return None if folded == "(null)" else self.call("scontrol", "show", "hostnames", folded).split()

    def occupy(self, share, seed):
        """So many of the nodes are drained, anywhere."""
        names = [f"node{n:04}" for n in range(1, LEAVES * HOSTS + 1)]
        away = random.Random(seed).sample(names, int(share * len(names)))
        self.call("scontrol", "update", f"nodename={','.join(away)}", "state=drain", "reason=test")
        self.addCleanup(self.call, "scontrol", "update", f"nodename={','.join(away)}", "state=resume")
        return sorted(set(names) - set(away))

    @staticmethod
    def script(number):
        return ["-o", "/dev/null", "--wrap", f"true {number}"]


class Slurm(Case):
    def test_what_slurm_chooses_is_no_nearer(self):
        for seed, nodes in enumerate((11, 25)):
            free = self.occupy(0.6, seed)
            lab.wait_for(lambda: self.idle() == free, what="the others to be idle")
            (chosen,) = re.findall(r"on nodes (\S+)", lab.run(
                [*self.cluster.head.inside(), "sbatch", "--test-only", "-p", "all", "-N", str(nodes), *self.script(seed)],
                env=self.environment()).stderr)
            theirs, ours = self.answer("order", chosen), self.answer("place", "-n", str(nodes), "--from", ",".join(free))
            self.assertEqual(len(theirs["hosts"]), nodes)
            self.assertEqual(ours["value"], ours["bound"])
            self.assertLessEqual(ours["cost"], theirs["cost"])
            fewest = self.answer("place", "-n", str(nodes), "--from", ",".join(free), "--objective", "switches")
            self.assertLessEqual(fewest["switches"], theirs["switches"])
            self.doCleanups()

    def test_job_submit(self):
        free = self.occupy(0.5, 7)
        lab.wait_for(lambda: self.idle() == free, what="the others to be idle")
        lab.replace_file(self.idle_file, self.idle_list() + "\n")
        best = self.answer("place", "-n", "10", "--from", ",".join(free))
        job = self.submit("sbatch", "-p", "compact", "-N", "10", *self.script(1))
        self.assertEqual(self.requested(job), sorted(best["hosts"]))
        self.assertEqual(self.answer("order", self.nodes_of(job))["hosts"], best["hosts"])
        # of another partition, and with nodes that the user names
        job = self.submit("sbatch", "-p", "all", "--hold", "-N", "10", *self.script(2))
        self.assertIsNone(self.requested(job))
        job = self.submit("sbatch", "-p", "compact", "--hold", "-N", "2", "-w", f"{free[0]},{free[-1]}", *self.script(3))
        self.assertEqual(self.requested(job), [free[0], free[-1]])
        # where there are too few, or nobody writes the file
        job = self.submit("sbatch", "-p", "compact", "--hold", "-N", str(len(free) + 1), *self.script(4))
        self.assertIsNone(self.requested(job))
        os.unlink(self.idle_file)
        job = self.submit("sbatch", "-p", "compact", "--hold", "-N", "4", *self.script(5))
        self.assertIsNone(self.requested(job))

    def test_submitting_a_batch_script(self):
        free = self.occupy(0.5, 8)
        lab.wait_for(lambda: self.idle() == free, what="the others to be idle")
        best = self.answer("place", "-n", "9", "--from", ",".join(free))
        job = self.submit(os.path.join(lab.ROOT, "system", "slurm-place"), "9", *self.script(6))
        self.assertEqual(self.requested(job), sorted(best["hosts"]))
        self.assertEqual(self.answer("order", self.nodes_of(job))["hosts"], best["hosts"])
