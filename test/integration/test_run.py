"""`fabricctl run` with stand-ins of launchers that show their command line: hosts of all sources, mappings, what starts unchanged,
what does not start, and the end of a command. test_run_launchers.py has the launchers that people run."""
import contextlib
import itertools
import os
import random
import re
import signal
import subprocess
import unittest

import lab
import test_fabricctl

LEAVES, HOSTS = 4, 4
SEED = int(os.environ.get("FABRICD_SEED", random.randrange(1 << 32)))
SAYS = """#!/bin/sh
for word; do printf '%s\\n' "$word"; done
for word; do
    case $word in
        --nodelist=/*) cp "${word#*=}" "$SEEN";;
        */fabricctl-run.*/hosts) cp "$word" "$SEEN";;
    esac
done
exit 7
"""
JOB = ("SLURM_", "PBS_", "LSB_", "HYDRA_", "SRUN_")


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.rundir, self.bin, self.tmp = (os.path.join(self.dir, name) for name in ("run", "bin", "tmp dir"))
        for folder in (self.rundir, self.bin, self.tmp):
            os.mkdir(folder)
        test_fabricctl.snapshot(f"fattree2:{LEAVES},2,{HOSTS}", self.rundir)
        for name in ("orterun", "mpiexec.hydra", "srun", "mpirun", "program"):
            self.put(os.path.join(self.bin, name), SAYS)
        self.put(os.path.join(self.bin, "mpirun"), SAYS.replace("exit 7", "exit 7 # prterun"))
        os.symlink("mpiexec.hydra", os.path.join(self.bin, "mpiexec"))
        self.seen = os.path.join(self.dir, "seen")
        self.rng = random.Random(SEED)

    @staticmethod
    def put(path, text):
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, 0o755)

    def file(self, text, name="file"):
        self.put(os.path.join(self.dir, name), text)
        return os.path.join(self.dir, name)

    def environment(self, more):
        env = {key: value for key, value in os.environ.items() if not key.startswith(JOB)}
        return {**env, "PATH": f"{self.bin}:{env['PATH']}", "FABRICD_RUNDIR": self.rundir, "TMPDIR": self.tmp, "SEEN": self.seen, **more}

    def run_it(self, *args, **env):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.seen)
        done = lab.run([lab.program("fabricctl"), "run", *args], env=self.environment(env))
        self.assertEqual(os.listdir(self.tmp), [])
        return done

    def ranks(self, *args, **env):
        """The host of each rank; the command line is self.words."""
        done = self.run_it(*args, **env)
        self.assertEqual((done.returncode, done.stderr), (7, ""), args)
        self.words = done.stdout.splitlines()
        with open(self.seen, encoding="ascii") as file:
            return file.read().split()

    def order(self, slots):
        """As `fabricctl order` has the hosts, each as often as it has slots."""
        done = lab.run([lab.program("fabricctl"), "order", "--json", ",".join(slots)], env=self.environment({}))
        hosts = re.findall(r'"(node\d+)"', done.stdout.split('"hosts"')[1].split("]")[0])
        self.assertEqual(sorted(hosts), sorted(slots))
        return [host for host in hosts for _ in range(slots[host])]

    def draw(self, n=7, most=3):
        """Hosts in any order, with slots."""
        return {f"node{number:04}": self.rng.randint(1, most) for number in self.rng.sample(range(1, LEAVES * HOSTS + 1), n)}

    def unchanged(self, *args, why, **env):
        done = self.run_it(*args, **env)
        words = args[next(i for i, word in enumerate(args) if word[0] != "-"):]
        self.assertEqual((done.returncode, done.stdout.splitlines()), (7, list(words[1:])))
        self.assertRegex(done.stderr, f"^fabricctl: the command starts unchanged: .*{why}.*\n$")
        self.assertEqual(self.run_it("-q", *args, **env).stderr, "")
        self.assertFalse(os.path.exists(self.seen))

    def refused(self, *args, why, **env):
        done = self.run_it(*args, **env)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, f"^fabricctl: .*{why}.*\n$")
        self.assertEqual(done.stderr.count("\n"), 1)


class Order(Case):
    def test_open_mpi(self):
        slots = self.draw()
        hosts = [word for host, n in slots.items() for word in ([f"{host}:{n}"] if n != 2 else [host, host])]
        self.rng.shuffle(hosts)
        self.assertEqual(self.ranks("orterun", "--host", ",".join(hosts), "--mca", "a", "b", "-x", "A", "app", "-n", "9"), self.order(slots))
        total = sum(slots.values())
        self.assertEqual([word for word in self.words if not word.startswith("/")],
                         ["--mca", "a", "b", "-x", "A", "--map-by", "seq", "--hostfile", "-n", str(total), "app", "-n", "9"])
        # fewer ranks: the last hosts have none; the wrapper of Open MPI 5 is a program
        self.unchanged("mpirun", "-np", "3", "-H", ",".join(hosts), "app", why="no launcher: mpirun")
        self.put(os.path.join(self.bin, "prte"), SAYS)
        os.symlink("prte", os.path.join(self.bin, "prterun"))
        self.unchanged("prte", "-H", ",".join(hosts), why="no launcher: prte")
        with open(lab.find_command("echo"), "rb") as file:  # it shows its words
            self.put(os.path.join(self.bin, "mpirun"), file.read() + b"prterun")
        done = self.run_it("mpirun", "-np", "3", "-H", ",".join(hosts), "app")
        self.assertRegex(done.stdout, r"^-np 3 --map-by seq --hostfile \S.*/hosts app\n$")
        for more in ((), ("--map-by", "slot")):
            found = self.ranks("prterun", "-np", "3", "-H", ",".join(hosts), *more, "app")
            self.assertEqual(found, self.order(slots)[:3])
        self.assertEqual(self.words[:2], ["-np", "3"])
        for more in (("--map-by", "ppr:2:node"), ("-N", "2"), ("-npernode", "2")):
            self.assertEqual(self.ranks("orterun", *more, "--host", ",".join(hosts), "app"), self.order(dict.fromkeys(slots, 2)))
            self.assertNotIn("ppr:2:node", self.words)
        lines = "".join(f"{host}  slots={n} max_slots=99\n" for host, n in slots.items())
        self.assertEqual(self.ranks("orterun", "--hostfile", self.file("# hosts\n\n" + lines), "app"), self.order(slots))

    def test_hydra(self):
        slots = self.draw()
        listed = ",".join(f"{host}:{n}" for host, n in slots.items())
        found = self.ranks("--", "mpiexec", "-hosts", listed, "-genv", "A", "B", "-l", "app")
        self.assertEqual(found, self.order(slots))
        self.assertEqual([word for word in self.words if word[0] != "/"], ["-genv", "A", "B", "-l", "-f", "-n", str(len(found)), "app"])
        file = self.file("".join(f"{host}:{n} # of the rack\n" for host, n in slots.items()))
        self.assertEqual(self.ranks("mpiexec", "-f", file, "app"), self.order(slots))
        self.assertEqual(self.ranks("mpiexec", "app", HYDRA_HOST_FILE=file), self.order(slots))
        self.assertEqual(self.ranks("mpiexec", "-ppn", "4", "-f", file, "app"), self.order(dict.fromkeys(slots, 4)))
        # more ranks than slots: Hydra would begin again
        self.assertEqual(self.ranks("mpiexec", "-n", str(2 * len(found)), "-f", file, "app"),
                         self.order({host: 2 * n for host, n in slots.items()}))

    def test_srun(self):
        slots = self.draw(5)
        while sum(slots.values()) == 12:  # a step of so many tasks has the job's own numbers of tasks
            slots = self.draw(5)
        env = {"SLURM_JOB_NODELIST": ",".join(slots), "SLURM_TASKS_PER_NODE": ",".join(map(str, slots.values())),
               "SLURM_NTASKS": str(sum(slots.values())), "SLURM_JOB_CPUS_PER_NODE": "4(x5)"}
        self.assertEqual(self.ranks("srun", "-l", "--mpi=pmix", "app", "-n", "3", **env), self.order(slots))
        self.assertEqual(self.words[:4], ["-l", "--mpi=pmix", "-m", "arbitrary"])
        self.assertEqual(self.words[5:], ["-n", env["SLURM_NTASKS"], "app", "-n", "3"])
        names = list(slots)
        evenly = dict(zip(names, (3, 3, 2, 2, 2)))
        for words in (["-ln12"], ["-n", "12", "-N5"], ["--ntasks=12", "--nodes", "5"], ["-n12", "-c1"]):
            self.assertEqual(self.ranks("srun", *words, "app", **env), self.order(evenly))
            self.assertNotRegex(" ".join(self.words), "-N|--nodes")
        self.unchanged("srun", "-lN5", "app", why="-lN5: give -N by itself", **env)
        alone = {"SLURM_JOB_NODELIST": ",".join(slots)}
        self.assertEqual(self.ranks("srun", "--ntasks-per-node=2", "app", **alone), self.order(dict.fromkeys(names, 2)))
        self.assertEqual(self.ranks("srun", "app", **alone), self.order(dict.fromkeys(names, 1)))
        self.unchanged("srun", "--ntasks-per-node=9", "app", why="contradict", **env)
        self.unchanged("srun", "-n12", "-c2", "app", why="do not fit evenly", **env)
        for words in ((), ("--grid", "2")):  # the hosts that Slurm would take
            self.assertEqual(self.ranks(*words, "srun", "-n2", "app", **env), self.order(dict.fromkeys(names[:2], 1)))
        self.assertEqual(self.ranks("srun", "-w", ",".join(names[:2]), "app", **{**env, "SLURM_NTASKS": "2"}), self.order(dict.fromkeys(names[:2], 1)))
        self.assertEqual(self.words[:2], ["-w", ",".join(names[:2])])  # Slurm takes the last list
        for words, why in ((["-N3"], "part of the hosts"), (["-m", "cyclic"], "own mapping: -m"), (["-x", names[0]], "own mapping: -x"),
                           (["-w", "/dev/null"], "own host file"), (["-n", "x"], "not a number: x"), (["-l", "-n"], "no value: -n")):
            self.unchanged("srun", *words, *(["app"] if words[-1] != "-n" else []), why=why, **env)
        self.unchanged("srun", "app", why="own mapping: SLURM_DISTRIBUTION", **env, SLURM_DISTRIBUTION="block")
        self.unchanged("srun", "-N2", "app", why="not inside an allocation")

    def test_hosts_of_the_job(self):
        slots = self.draw()
        lines = [host for host, n in slots.items() for _ in range(n)]
        expected = self.order(slots)
        slurm = {"SLURM_JOB_NODELIST": ",".join(slots), "SLURM_TASKS_PER_NODE": ",".join(map(str, slots.values()))}
        for env in (slurm, {"PBS_NODEFILE": self.file("\n".join(lines) + "\n")}, {"LSB_HOSTS": " ".join(lines)}):
            for launcher in ("orterun", "mpiexec"):
                self.assertEqual(self.ranks(launcher, "app", **env), expected)
        # a domain that the fabric does not know stays in the file
        self.assertEqual(self.ranks("orterun", "app", LSB_HOSTS=" ".join(f"{host}.cluster" for host in lines)),
                         [f"{host}.cluster" for host in expected])
        self.unchanged("orterun", "app", why="hosts of the job are not known")

    def test_unchanged(self):
        hosts = ("--host", "node0001,node0005")
        for words, why in (
                (["program", "-n", "2"], "no launcher: program"),
                (["orterun", "--odd", "value", *hosts, "app"], "--odd"),
                (["orterun", "--map-by", "node", *hosts, "app"], "own mapping: --map-by node"),
                (["orterun", "--rankfile", "x", *hosts, "app"], "own mapping: --rankfile"),
                (["orterun", *hosts, "app", ":", "other"], "several programs"),
                (["orterun", "-np", "3", *hosts, "app"], "more slots"),
                (["orterun", "-np"], "no value: -np"),
                (["orterun", "--hostfile", self.file("node0001\n"), "app"], "slots of a host are not known .*node0001"),
                (["mpiexec", "-f", "/nonexistent", "app"], "cannot read the host file: /nonexistent")):
            with self.subTest(words):
                self.unchanged(*words, why=why)
        self.unchanged("orterun", *hosts, "app", why="no snapshot: /nonexistent", FABRICD_RUNDIR="/nonexistent")
        self.unchanged("orterun", *hosts, "app", why="no temporary folder: /nonexistent", TMPDIR="/nonexistent")
        with open(os.path.join(self.rundir, "ib0.snap"), "r+b") as file:
            file.truncate(1000)
        self.unchanged("orterun", *hosts, "app", why="no snapshot: .*ib0")
        done = self.run_it("/nonexistent/mpirun")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("cannot start /nonexistent/mpirun", done.stderr)

    def test_the_answer_is_late(self):
        slow = {"LD_PRELOAD": lab.preload(lab.sanitizer_library(lab.program("fabricctl")), os.path.join(lab.BUILD, "lib", "slow_order.so"))}
        self.unchanged("orterun", "--host", "node0001,node0005", "app", why="no answer within 100 ms", **slow)

    def test_bad_hosts(self):
        test_fabricctl.snapshot("mesh:2,2:2", self.rundir, "ib1", "1", "7")  # node0001 to node0008
        self.assertEqual(self.ranks("orterun", "--host", "node0016,node0008", "app"), ["node0008", "node0016"])
        self.refused("orterun", "--host", "node0001,node0099", "app", why="no host node0099: .*not started")
        self.refused("orterun", "--host", "node0001,node0001.cluster", "app", why="two names of one host: node0001 and node0001.cluster")
        self.refused("--plane", "ib1", "orterun", "--host", "node0016", "app", why="no host node0016")
        self.refused("--plane", "ib9", "orterun", "--host", "node0016", "app", why="no plane ib9")
        test_fabricctl.snapshot("fattree2:2,1,20", self.rundir, "ib2", "2", "7")
        os.unlink(os.path.join(self.rundir, "ib0.snap"))
        self.assertEqual(self.ranks("orterun", "--host", "node0040,node0039", "app"), ["node0039", "node0040"])

    def test_words_of_fabricctl(self):
        for words, why in ((["--grid", "2x", "x"], "not a grid: --grid 2x"), (["--order", "--grid", "2", "x"], "one or the other"),
                           ([], "too few arguments"), (["--long", "--nodes", "2", "x"], "not an option of run: --nodes"),
                           (["--uri", "x", "--", "x"], "not an option of run: --uri")):
            self.refused(*words, why=why)


class Mapping(Case):
    def setUp(self):
        super().setUp()
        path = os.path.join(self.dir, "costs.npy")
        lab.run([lab.program("fabricctl"), "matrix", "-o", path], env=self.environment({}))
        self.costs = test_fabricctl.read_npy(path)[1]  # a device of each host, in the order of their names

    def cost(self, hosts, messages):
        at = [int(host[4:]) - 1 for host in hosts]
        return sum(n * self.costs[at[a]][at[b]] for a, b, n in messages if at[a] != at[b])

    @staticmethod
    def neighbours(*dims):
        points = {point: rank for rank, point in enumerate(itertools.product(*map(range, dims)))}
        for point, rank in points.items():
            for d in range(len(dims)):
                other = points.get((*point[:d], point[d] + 1, *point[d + 1:]))
                if other is not None:
                    yield rank, other, 1

    def hosts(self, slots):
        return "-hosts", ",".join(f"{host}:{n}" for host, n in slots.items())

    def test_grid(self):
        """A leaf has the ranks of 4 x 1 or 2 x 2 points: 12 pairs of neighbours leave their leaves, or 8."""
        slots = {f"node{n:04}": 1 for n in range(1, 17)}
        messages = list(self.neighbours(4, 4))
        plain, found = self.ranks("mpiexec", *self.hosts(slots), "app"), self.ranks("--grid", "4x4", "mpiexec", *self.hosts(slots), "app")
        self.assertEqual(sorted(found), sorted(plain))
        self.assertEqual(sum((int(found[a][4:]) - 1) // HOSTS != (int(found[b][4:]) - 1) // HOSTS for a, b, _ in messages), 8)
        self.assertLess(self.cost(found, messages), self.cost(plain, messages))

    def test_never_worse_than_the_order(self):
        for dims in ((24,), (4, 6), (2, 3, 4), (12, 2)):
            slots = self.draw(12, 4)
            slots = {host: n for host, n in slots.items() if n}
            while sum(slots.values()) < 24:
                slots[self.rng.choice(list(slots))] += 1
            words = ("mpiexec", "-n", "24", *self.hosts(slots), "app")
            matrix = [(self.rng.randrange(24), self.rng.randrange(24), self.rng.randrange(1, 999)) for _ in range(60)]
            lines = self.file("# bytes\n" + "".join("%d\t%d %d\n" % message for message in matrix))
            plain = self.ranks(*words)
            for messages, option in ((list(self.neighbours(*dims)), ("--grid", "x".join(map(str, dims)))), (matrix, ("--matrix", lines))):
                with self.subTest(seed=SEED, option=option):
                    found = self.ranks(*option, *words)
                    self.assertEqual(sorted(found), sorted(plain))
                    self.assertLessEqual(self.cost(found, messages), self.cost(plain, messages))
                    self.assertEqual(self.ranks(*option, *words), found)

    def test_files(self):
        """Ranks 0 and 3, 1 and 2 talk."""
        words = ("mpiexec", "-hosts", "node0001:2,node0005:2", "app")
        expected = ["node0001", "node0005", "node0005", "node0001"]
        lines = "0 1 1\n0 3 90\n1 1 7\n1 2 80.5\n3 0 2e0\n"
        for text in (lines, lines.replace("\n", " # x\n\n"), lines.replace("\n", "\r\n"), lines.replace(" ", "\t ")):
            found = self.ranks("--matrix", self.file(text), *words)
            self.assertIn(found, (expected, ["node0005" if host == "node0001" else "node0001" for host in expected]))

    def test_bad_files(self):
        words = ("mpiexec", "-hosts", "node0001:2,node0005:1", "app")
        for text, why in (
                ("0 1 5\n1 2 x\n", "line 2: not \"FROM TO BYTES\" with ranks below 3"), ("0 1\n", "line 1"), ("0 1 -5\n", "line 1"),
                ("0 1 inf\n", "line 1"), ("0 1 5 5\n", "line 1"), ("0 1 5\n0 3 5\n", "line 2: .*with ranks below 3"), ("-1 2 5\n", "line 1"),
                ("0 1 5\n1 2", "cut off"), ("", "no communication"), ("# nothing\n", "no communication"), (b"0 1 5\n\0\n", "not a text")):
            with self.subTest(text=text):
                self.refused("--matrix", self.file(text), *words, why=why)
        self.refused("--matrix", "/nonexistent", *words, why="cannot read --matrix /nonexistent")
        self.refused("--matrix", self.dir, *words, why="cannot read --matrix")
        self.refused("--grid", "2x2", *words, why="--grid 2x2 has 4 points, but the job has 3 ranks")

    def test_output(self):
        """-o starts nothing."""
        words = ("mpiexec", "-hosts", "node0005:1,node0001:2", "app")
        done = self.run_it("-o", "-", *words)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "node0001\nnode0001\nnode0005\n", ""))
        path = os.path.join(self.dir, "hosts")
        self.assertEqual(self.run_it("-o", path, *words).returncode, 0)
        with open(path, encoding="ascii") as file:
            self.assertEqual(file.read(), done.stdout)
        for output, env, why in (("/nonexistent/x", {}, "cannot write /nonexistent/x"), ("-", {"FABRICD_RUNDIR": "/nonexistent"}, "no snapshot")):
            done = self.run_it("-o", output, *words, **env)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, f"^fabricctl: no order: {why}.*\n$")


class End(Case):
    """The end of the command."""

    def start(self, script):
        """The launcher is a script that says "ready" when it is."""
        self.put(os.path.join(self.bin, "orterun"), "#!/bin/sh\n" + script)
        child = subprocess.Popen([lab.program("fabricctl"), "run", "orterun", "--host", "node0001,node0005", "app"], text=True,
                                 env=self.environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(test_fabricctl.Case.end, child)
        self.assertEqual(child.stdout.readline(), "ready\n")
        return child

    def ended(self, child):
        out, err = child.communicate()
        self.assertEqual(os.listdir(self.tmp), [])
        return child.returncode, out, err

    def test_signals_reach_the_command(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT):
            child = self.start(f"trap 'echo got; exit 5' {number.value}\necho ready\nwhile :; do sleep 0.01; done\n")
            self.assertEqual(len(os.listdir(self.tmp)), 1)
            mode = os.stat(os.path.join(self.tmp, os.listdir(self.tmp)[0])).st_mode
            self.assertEqual(mode & 0o777, 0o700)
            child.send_signal(number)
            self.assertEqual(self.ended(child), (5, "got\n", ""))

    def test_signals_before_the_command(self):
        """It does not start, and leaves no folder."""
        preload = lab.preload(lab.sanitizer_library(lab.program("fabricctl")), os.path.join(lab.BUILD, "lib", "slow_order.so"))
        for number in (signal.SIGTERM, signal.SIGINT):
            child = subprocess.Popen([lab.program("fabricctl"), "run", "--grid", "2", "orterun", "--host", "node0001,node0005", "app"], text=True,
                                     env={**self.environment({}), "LD_PRELOAD": preload}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     process_group=0)
            self.addCleanup(test_fabricctl.Case.end, child)
            lab.wait_for(lambda: os.listdir(self.tmp), what="the folder")
            os.killpg(child.pid, number)
            self.assertEqual(self.ended(child), (-number, "", ""))

    def test_a_command_that_dies(self):
        self.assertEqual(self.ended(self.start("echo ready\nkill -KILL $$\n")), (128 + 9, "", ""))
        self.assertEqual(self.ended(self.start("echo ready\nexit 0\n")), (0, "", ""))

    def test_what_the_command_inherits(self):
        """Its signals are those of fabricctl's caller (but two of the C library's own), and it has no descriptors of fabricctl."""
        shown = "sed -n 's/^Sig[BI][lg][kn]:.*\\(.......\\)$/\\1/p' /proc/self/status; ls -l /proc/self/fd | wc -l"
        plain = lab.run(["sh", "-c", shown]).stdout
        self.assertEqual(self.ended(self.start(f"echo ready\n{shown}\n")), (0, plain, ""))
        done = self.run_it("-q", "sh", "-c", shown)
        self.assertEqual(done.stdout, plain)


if __name__ == "__main__":
    unittest.main()
