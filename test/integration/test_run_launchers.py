"""`fabricctl run` and the example of a cli_filter with the launchers that people run, on three nodes of a recorded fabric in which
the second node by its name is on another leaf. Hydra is that of a folder of FABRICD_LAUNCHERS, or the system's."""
import os
import re
import unittest

import lab
import launchers

NODES = ["node0001", "node0002", "node0003"]
NEAR = ["node0001", "node0003", "node0002"]  # in the order of the fabric
SHOW = ["sh", "-c", "echo rank ${PMIX_RANK:-${PMI_RANK:-$SLURM_PROCID}} $(hostname)"]


class Lab:
    """The cluster and the daemon, for all tests of the module."""

    cluster = daemon = None

    @classmethod
    def start(cls):
        cls.cluster = launchers.Cluster(NODES)
        text = lab.fabric("fattree2:4,2,16", "capture")
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, text.replace('"node0002', '"node').replace('"node0034', '"node0002').replace('"node"', '"node0034"'))
        cls.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})

    @classmethod
    def stop(cls):
        if cls.daemon is not None:
            cls.daemon.stop()
        if cls.cluster is not None:
            cls.cluster.stop()


def setUpModule():
    try:
        Lab.start()
    except BaseException:
        Lab.stop()
        raise


def tearDownModule():
    Lab.stop()


def hydra():
    """The prefix of Hydra's programs."""
    for prefix in [*filter(None, os.environ.get("FABRICD_LAUNCHERS", "").split(":")), "/usr"]:
        if os.path.exists(os.path.join(prefix, "bin", "mpiexec.hydra")):
            return prefix
    raise unittest.SkipTest("there is no mpiexec.hydra")


def blocks(slots):
    return [name for name in NEAR for _ in range(slots.get(name, 0))]


class Case(unittest.TestCase):
    def setUp(self):
        self.cluster = Lab.cluster
        folded = Lab.daemon.ctl("order", "-q", ",".join(NODES)).stdout.strip()
        self.assertEqual(folded, "node[0001,0003,0002]")

    def call(self, machine, *argv, env=None, user=None, timeout=None):
        """What each rank says of its host; the whole is self.said."""
        become = ["setpriv", f"--reuid={user}", "--regid=nogroup", "--clear-groups"] if user else []
        program = os.path.dirname(lab.program("fabricctl"))
        done = lab.run([*machine.inside(), *become, *argv], timeout, self.cluster.stacks, cwd="/",
                       env=self.cluster.environment(**{"FABRICD_RUNDIR": Lab.daemon.rundir, "PATH": f"{program}:{os.environ['PATH']}",
                                                       **(env or {})}))
        self.said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, self.said)
        found = [dict((int(rank), host) for rank, host in re.findall(r"(?m)^(?:\d+: )?rank (\d+) (\S+)$", step))
                 for step in done.stdout.split("step\n")]
        for step in found:
            self.assertEqual(sorted(step), list(range(len(step))))
        self.assertEqual([path for path in self.cluster.files() if "fabricctl-run" in path], [])
        return [[step[rank] for rank in sorted(step)] for step in found]


class Mpi(Case):
    def mpirun(self, launcher, hosts, *options, run=()):
        """By the launcher's own words of this lab, with hosts and options of the test."""
        argv = launcher.argv(1, SHOW)
        at = argv.index(launcher.command(launcher.name))
        named = ("--host", "-np", "--map-by")
        words, kept = argv[at + 1:-len(SHOW)], []
        while words:
            if words[0] in named:
                words = words[2:]
            else:
                kept.append(words.pop(0))
        (ranks,) = self.call(self.cluster.nodes[NODES[0]], lab.program("fabricctl"), "run", *run, argv[at], "--host", hosts, *options, *kept,
                             *SHOW, env=launcher.environment())
        return ranks

    def test_open_mpi(self):
        found = [launcher for launcher in (launchers.OpenMpi, launchers.Prrte) if lab.find_command(launcher.name) and lab.find_command(launcher.on_nodes)]
        if not found:
            self.skipTest("Open MPI is not installed")
        for kind in found:
            launcher = kind(self.cluster)
            with self.subTest(launcher.name):
                self.assertEqual(self.mpirun(launcher, "node0002:2,node0001:1,node0003:2"), blocks({"node0001": 1, "node0002": 2, "node0003": 2}))
                self.assertEqual(self.mpirun(launcher, "node0002:2,node0001:1,node0003:2", "-np", "4"),
                                 blocks({"node0001": 1, "node0003": 2, "node0002": 1}))
                self.assertEqual(self.mpirun(launcher, "node0002:4,node0001:4,node0003:4", "--map-by", "ppr:2:node"), blocks(dict.fromkeys(NODES, 2)))
                ranks = self.mpirun(launcher, "node0002:2,node0001:2,node0003:2", run=("--grid", "3x2"))
                self.assertEqual(ranks, blocks(dict.fromkeys(NODES, 2)))
                # ranks 0 and 5, 1 and 4, 2 and 3 talk
                matrix = os.path.join(lab.tmpdir(), "matrix")
                lab.replace_file(matrix, "0 5 100\n4 1 100\n2 3 100\n")
                ranks = self.mpirun(launcher, "node0002:2,node0001:2,node0003:2", run=("--matrix", matrix))
                self.assertEqual((ranks[0], ranks[1], ranks[2]), (ranks[5], ranks[4], ranks[3]))
                self.assertEqual(sorted(ranks), sorted(blocks(dict.fromkeys(NODES, 2))))

    def test_hydra(self):
        prefix, folder = hydra(), self.cluster.folder("hydra")
        agent, wrapper = self.cluster.agent(folder), os.path.join(folder, "ssh")
        lab.replace_file(wrapper, f'#!/bin/sh\n[ "$1" = -x ] && shift\nexec {agent} "$@"\n')
        os.chmod(wrapper, 0o755)

        def mpiexec(hosts, *options, run=()):
            (ranks,) = self.call(self.cluster.nodes[NODES[0]], lab.program("fabricctl"), "run", *run, os.path.join(prefix, "bin", "mpiexec.hydra"),
                                 "-launcher", "ssh", "-launcher-exec", wrapper, "-hosts", hosts, *options, *SHOW,
                                 env={"LD_LIBRARY_PATH": os.path.join(prefix, "lib", "x86_64-linux-gnu")})
            return ranks
        self.assertEqual(mpiexec("node0002:2,node0001:1,node0003:2"), blocks({"node0001": 1, "node0002": 2, "node0003": 2}))
        self.assertEqual(mpiexec("node0002,node0001,node0003", "-n", "6"), blocks(dict.fromkeys(NODES, 2)))
        self.assertEqual(mpiexec("node0002,node0001,node0003", "-ppn", "2", "-n", "5"), blocks({"node0001": 2, "node0003": 2, "node0002": 1}))
        matrix = os.path.join(lab.tmpdir(), "matrix")
        lab.replace_file(matrix, "0 5 100\n4 1 100\n2 3 100\n")
        ranks = mpiexec("node0002:2,node0001:2,node0003:2", run=("--matrix", matrix))
        self.assertEqual((ranks[0], ranks[1], ranks[2]), (ranks[5], ranks[4], ranks[3]))


class Slurm(Case):
    """Steps of one allocation; "step" stands between their lines."""

    @classmethod
    def setUpClass(cls):
        cls.slurm = launchers.slurm(Lab.cluster, conf="CliFilterPlugins=lua\n")
        lab.replace_file(os.path.join(cls.slurm.dir, "cli_filter.lua"), cls.script())

    @staticmethod
    def script():
        with open(os.path.join(lab.ROOT, "system", "slurm-cli-filter.lua"), encoding="utf-8") as file:
            return file.read()

    def steps(self, *commands, ranks=6, env=None, **options):
        show = " ".join(SHOW[:2]) + f" '{SHOW[2]}'"
        script = "\necho step\n".join(f"{command} {show}" for command in commands)
        return self.call(self.cluster.head, self.slurm.command("salloc"), "-Q", "-N", "3", "-n", str(ranks), "--ntasks-per-node", str(ranks // 3),
                         "--exclusive", "sh", "-c", script, env={**self.slurm.environment(), **(env or {})}, **options)

    def test_srun(self):
        ctl = lab.program("fabricctl")
        two = dict.fromkeys(NODES, 2)
        self.assertEqual(self.steps("srun", f"{ctl} run srun", f"{ctl} run -- srun -n 3", f"{ctl} run srun -N 3 -n 7 -c 2",
                                    f"{ctl} run srun --ntasks-per-node=2", f"{ctl} run -q srun -N 1 -n 2", user="nobody"),
                         [[name for name in NODES for _ in range(2)], blocks(two), NEAR, blocks({**two, "node0001": 3}), blocks(two), ["node0001"] * 2])
        # 0 and 5, 1 and 4, 2 and 3 talk
        matrix = os.path.join(lab.tmpdir(), "matrix")
        lab.replace_file(matrix, "0 5 100\n4 1 100\n2 3 100\n")
        ((*ranks,),) = self.steps(f"{ctl} run --matrix {matrix} srun")
        self.assertEqual((ranks[0], ranks[1], ranks[2]), (ranks[5], ranks[4], ranks[3]))

    def test_cli_filter(self):
        two, slurms = dict.fromkeys(NODES, 2), [name for name in NODES for _ in range(2)]
        order = {"FABRICD_RUN": "--order"}
        self.assertEqual(self.steps("srun", "FABRICD_RUN=off srun", "srun -n 3", "srun -ln7 -c 2", "srun -N 3",
                                    "srun -m cyclic", "srun -N 1 -n 2", "srun -w node0002,node0003 -N 2 -n 2", env=order, user="nobody"),
                         [blocks(two), slurms, NEAR, blocks({**two, "node0001": 3}), slurms, NODES * 2, ["node0001"] * 2, NODES[1:]])
        self.assertNotIn("error", self.said)
        # a job is never refused: of another size, of no fabric, without fabricctl, of another word
        self.assertEqual(self.steps("FABRICD_RUN='--grid 2x2' srun", "FABRICD_RUNDIR=/nonexistent srun", "PATH=/usr/bin:/bin srun",
                                    "FABRICD_RUN='--order; exit' srun", "FABRICD_RUN='--grid 6' srun", env=order),
                         [slurms] * 4 + [blocks(two)])
        # without an allocation Slurm chooses the hosts later
        (found,) = self.call(self.cluster.head, self.slurm.command("srun"), "-Q", "-N", "3", "-n", "3", *SHOW, env={**self.slurm.environment(), **order})
        self.assertEqual(found, NODES)
        lab.replace_file(os.path.join(self.slurm.dir, "cli_filter.lua"), self.script().replace('DEFAULT = "off"', 'DEFAULT = "--order"'))
        self.assertEqual(self.steps("srun"), [blocks(two)])
        lab.replace_file(os.path.join(self.slurm.dir, "cli_filter.lua"), self.script())

    def test_mpirun_in_an_allocation(self):
        """Open MPI takes hosts and slots from Slurm, and so does fabricctl."""
        if not lab.find_command("orted"):
            self.skipTest("Open MPI 4 is not installed")
        mpi = launchers.OpenMpi(self.cluster)
        words = (f"{lab.program('fabricctl')} run mpirun --mca plm rsh --mca plm_rsh_agent {mpi.agent} --mca oob_tcp_if_include {self.cluster.NETWORK}")
        env = {**mpi.environment(), "PMIX_MCA_ptl_tcp_if_include": self.cluster.NETWORK}
        self.assertEqual(self.steps(words, f"{words} -np 5", env=env), [blocks(dict.fromkeys(NODES, 2)), blocks(dict.fromkeys(NODES, 2))[:5]])


if __name__ == "__main__":
    unittest.main()
