"""launchers - a cluster on this machine: nodes that go by names of a simulated fabric, and the launchers that people run.

    cluster = Cluster(["node0001", "node0005"])     # skips the test where that cannot be done
    cluster.install(path_of_a_component)            # into the folder of the library, seen by these nodes alone
    cluster.publish(daemon)                         # its run directory stands at /run/fabricd of each node
    for launcher in people_run(cluster):
        launcher.run(8, ["hostname"])
    cluster.stop()

Debian's launchers load Debian's PMIx library. Others, or those of another library (./dev --pmix), are in the folders that
FABRICD_LAUNCHERS names, with colons between them: prefixes that a Slurm or a PRRTE is installed in. Each is taken where it
loads the library that this tree was built with.

A node has a network, a host name, mounts, shared memory and a temporary folder of its own. All processes of the cluster are in one process
namespace: they end with the process that made it, whatever session they have put themselves into.
"""
import contextlib
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import hosts
import lab
import test_pnet
import versions

RUNDIR = "/run/fabricd"  # where a component looks when nobody tells it another place


def library_folder():
    """Where the PMIx library keeps its components."""
    found = test_pnet.own_components()
    if not found:
        raise unittest.SkipTest("the PMIx library's folder of components is not found")
    return found


def parameters():
    """The PMIx library's own file of them."""
    prefix = os.path.join(library_folder(), "..", "..")
    found = [path for path in (os.path.join(prefix, place, "pmix-mca-params.conf") for place in ("share", "etc"))
             if os.path.exists(path)]
    if not found:
        raise unittest.SkipTest("the PMIx library's file of parameters is not found")
    return found[0]


class Machine(hosts.Host):
    """A host with a name and processes of its own; processes: those of another machine."""

    def __init__(self, name, processes=None):
        self.processes = processes
        super().__init__(name)
        self.do("hostname", name)

    def apart(self, _network):
        namespaces = ["unshare", "-n", "-u", "-i", "-m", "--propagation", "private", "--mount-proc", "--fork", "--kill-child"]
        # The first process of a process namespace is asked to wait for those whose parent is gone: a shell does.
        if self.processes is None:
            return [*namespaces, "-p", "sh", "-c", "sleep infinity; :"]
        return [lab.find_command("nsenter"), "--no-fork", f"--pid={self.processes.namespace('pid_for_children')}",
                *namespaces, "sleep", "infinity"]

    def is_apart(self):
        self.inner = self._inner()
        return self.inner is not None

    def _inner(self):
        """The number, in its own process namespace, of the process that holds this machine's namespaces."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            for pid in file.read().split():
                with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as name:
                    if name.read().strip() in ("sh", "sleep"):
                        with open(f"/proc/{pid}/status", encoding="ascii") as status:
                            return next(line.split()[-1] for line in status if line.startswith("NSpid:"))
        return None

    def namespace(self, kind):
        return f"/proc/{self.process.pid}/ns/{kind}"

    def prefix(self):
        return [*super().prefix(), f"--uts={self.namespace('uts')}"]

    def inside(self):
        """prefix() of a command that is to end with the cluster; a signal to it does not reach the command."""
        return [*self.prefix(), f"--pid={self.namespace('pid_for_children')}"]

    def unmount(self, place):
        """Also what a process still has open. Among its processes, since umount looks into /proc."""
        done = lab.run([*self.inside(), "umount", "-l", place])
        if done.returncode != 0:
            raise lab.LabError(f"host {self.name}: {done.stderr.strip()}")


class Cluster:
    """Nodes with cables to the machine "head", where the launchers are called and the scheduler's fabricd runs."""

    HEAD, NETWORK = "10.94.0.100", "10.94.0.0/24"
    PLACES = ("tmp", "shm", "components")

    def __init__(self, names):
        hosts.need()
        if lab.SANITIZE:
            raise unittest.SkipTest("the launchers do not load a sanitized component")
        self.dir = lab.tmpdir()
        self.names = list(names)
        self.hosts = {}
        self.shown = set()  # the machines that see a daemon's run directory
        self.head = Machine("head")
        self.nodes = {name: Machine(name, self.head) for name in names}
        self.machines = {"head": self.head, **self.nodes}
        self.addresses = {"head": self.HEAD, **{name: f"10.94.0.{at}" for at, name in enumerate(names, 1)}}
        self.munged = {}
        self._wire()
        for name, machine in self.machines.items():
            self._furnish(name, machine)

    def _wire(self):
        self.head.do("ip", "link", "add", "br0", "type", "bridge")
        self.head.do("ip", "addr", "add", f"{self.HEAD}/24", "dev", "br0")
        self.head.do("ip", "link", "set", "br0", "up")
        for at, (name, node) in enumerate(self.nodes.items(), 1):
            node.cable(self.head, self.addresses[name], f"10.95.{at}.1")
            self.head.do("ip", "link", "set", f"eth{at - 1}", "master", "br0")

    def _furnish(self, name, machine):
        """Folders of its own: /run with munge's and fabricd's places, the jobs' temporary one, PMIx's components."""
        machine.knows(self.addresses)
        machine.hide("/run")
        machine.do("mkdir", "-p", "/run/munge", RUNDIR)
        first = next(iter(self.munged.values()), None)
        self.munged[name] = hosts.Munged(machine, self.addresses[name], first)
        machine.do("mount", "--bind", self.munged[name].dir, "/run/munge")
        for place in self.PLACES:
            os.makedirs(self.of(name, place))
            os.chmod(self.of(name, place), 0o1777)
        os.makedirs(self.tmp(), exist_ok=True)
        self._own_memory(name, machine)
        machine.do("mount", "--bind", self.of(name, "tmp"), self.tmp())
        lab.replace_file(self.of(name, "params"), "")
        machine.do("mount", "--bind", self.of(name, "params"), parameters())
        for path in glob.glob(os.path.join(library_folder(), "*")):
            if "fabricd" not in os.path.basename(path):  # a fabricd that is installed here is beside the point
                shutil.copy(path, self.of(name, "components"))
        machine.do("mount", "--bind", self.of(name, "components"), library_folder())

    def _own_memory(self, name, machine):
        """Its own /dev/shm, in which the tests' folder stands where it stood, should it stand there."""
        ours, kept = tempfile.gettempdir(), "/run/kept"
        machine.do("mkdir", kept)
        machine.do("mount", "--bind", ours, kept)
        machine.do("mount", "--bind", self.of(name, "shm"), "/dev/shm")
        if ours.startswith("/dev/shm/"):
            machine.do("mkdir", "-p", ours)
            machine.do("mount", "--bind", kept, ours)

    def tmp(self):
        """The temporary folder of jobs, the same path and another folder on each machine."""
        return os.path.join(self.dir, "tmp")

    def scratch(self):
        """A folder that is the same on all machines, and gone with the cluster."""
        path = os.path.join(self.dir, "scratch")
        os.makedirs(path, exist_ok=True)
        return path

    def folder(self, name):
        """One for a launcher, which everybody may look into."""
        path = tempfile.mkdtemp(prefix=f"{name}.", dir=self.dir)
        os.chmod(path, 0o755)
        return path

    def of(self, name, place):
        """A folder of one machine, as it is seen from everywhere."""
        return os.path.join(self.dir, "machines", name, place)

    def environment(self, **more):
        """What a person's shell has on these machines."""
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("PMIX_", "OMPI_", "SLURM_", "PRTE_"))}
        return dict(env, TMPDIR=self.tmp(), **more)

    def outside(self, name):
        """A machine as a host whose processes are not the cluster's: for daemons that a test signals."""
        if name not in self.hosts:
            self.hosts[name] = hosts.Host(name, network=self.machines[name], of=self.dir)
            self.hosts[name].do("mount", "-t", "proc", "none", "/proc")
        return self.hosts[name]

    def agent(self, folder):
        """A program that a launcher starts its daemons on the nodes with, as it would by rsh."""
        path = os.path.join(folder, "rsh")
        cases = "".join(f"{name}) to={node.inner} ;;\n" for name, node in self.nodes.items())
        lab.replace_file(path, f"""#!/bin/sh
# rsh HOST COMMAND..., into the namespaces of a node
case $1 in
{cases}*) echo "no node $1" >&2; exit 1 ;;
esac
shift
exec nsenter --net=/proc/$to/ns/net --uts=/proc/$to/ns/uts --mount=/proc/$to/ns/mnt sh -c "cd / && $*"
""")
        os.chmod(path, 0o755)
        return path

    # -- what is installed

    def install(self, *components, on=None):
        """Put components into the library's folder, of all machines or of those that are named."""
        for name in on or self.machines:
            for component in components:
                path = os.path.join(self.of(name, "components"), os.path.basename(component))
                shutil.copy(component, path + ".new")
                os.rename(path + ".new", path)

    def remove(self, *components, on=None):
        for name in on or self.machines:
            for component in components:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.of(name, "components"), os.path.basename(component)))

    def configure(self, *lines):
        """The library's parameters for all hosts of PMIx on all machines, as they stand in its file of them."""
        for name in self.machines:
            with open(self.of(name, "params"), "w", encoding="ascii") as file:  # this very file is what they see
                file.writelines(line + "\n" for line in lines)

    def publish(self, daemon, on=None):
        """Show a daemon's run directory at the place where a component looks."""
        for name in on or self.machines:
            self.withdraw(on=[name])
            self.machines[name].do("mount", "--bind", daemon.rundir, RUNDIR)
            self.shown.add(name)

    def withdraw(self, on=None):
        """An empty folder stands there again."""
        for name in self.shown & set(on or self.machines):
            self.machines[name].unmount(RUNDIR)
            self.shown.remove(name)

    # -- what is there

    def processes(self):
        """{number: (name, kB of its own memory)} of all processes of the cluster, zombies too."""
        found, mine = {}, os.stat(self.head.namespace("pid_for_children")).st_ino
        for path in glob.glob("/proc/[0-9]*"):
            with contextlib.suppress(OSError):
                if os.stat(f"{path}/ns/pid").st_ino != mine:
                    continue
                with open(f"{path}/status", encoding="utf-8", errors="replace") as file:
                    status = dict(line.rstrip("\n").split(":", 1) for line in file if ":" in line)
                found[int(os.path.basename(path))] = (status["Name"].strip(),
                                                      int(status.get("RssAnon", "0 kB").split()[0]))
        return found

    def stacks(self):
        """Where the processes of the cluster are, all their threads, for people."""
        shown = [lab.run(["ps", "-eo", "pid,ppid,stat,wchan:24,args"]).stdout]
        for pid, (name, _) in sorted(self.processes().items()):
            if shutil.which("gdb") and name not in ("sh", "sleep"):
                done = lab.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"])
                shown.append(f"{pid} {name}:\n{done.stdout}")
        return "\n".join(["", *shown])

    def names_of_processes(self):
        return {name for name, _ in self.processes().values()}

    def files(self):
        """What stands in the temporary folders and in the shared memory of all machines."""
        found = set()
        for name, machine in self.machines.items():
            for place in ("tmp", "shm"):
                for folder, folders, files in os.walk(self.of(name, place)):
                    found |= {os.path.join(folder, entry) for entry in folders + files}
            found |= {f"{name}: {line}" for line in machine.do("ipcs", "-m").splitlines() if line.startswith("0x")}
        return found

    def stop(self):
        """Everything of it ends, whatever it is doing."""
        for host in [*self.munged.values(), *self.hosts.values(), *self.nodes.values(), self.head]:
            host.stop()


class Launcher:
    """run() of a command, so many of it on each node. prefix: where it is installed; None: with the system."""

    def __init__(self, cluster, prefix=None):
        self.cluster, self.prefix = cluster, prefix

    def command(self, name):
        """The path of a program of it; None: it is not there."""
        return shutil.which(name, path=f"{self.prefix}/bin:{self.prefix}/sbin") if self.prefix else lab.find_command(name)

    def require(self, *commands):
        for name in commands:
            if self.command(name) is None:
                raise unittest.SkipTest(f"{name} is not installed")

    def argv(self, per_node, command, **options):
        raise NotImplementedError

    def environment(self):
        raise NotImplementedError

    def spawn(self, per_node, command, env=None, **options):
        """Start it; Watch."""
        return lab.Watch(self.argv(per_node, command, **options), self.cluster.environment(**self.environment(), **(env or {})),
                         cwd="/")

    def run(self, per_node, command, env=None, timeout=None, **options):
        """The whole launch; CompletedProcess. Of one that does not end the stacks of all processes are shown."""
        return lab.run(self.argv(per_node, command, **options), timeout, self.cluster.stacks,
                       env=self.cluster.environment(**self.environment(), **(env or {})), cwd="/")


class Slurm(Launcher):
    """slurmctld on the head, slurmd on each node, and srun with Slurm's own PMIx plugin."""

    name, on_nodes = "srun", "slurmstepd"
    PLUGIN = f"pmix_v{versions.PMIX[0]}"
    CONF = """
ClusterName=lab
SlurmctldHost=head
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin={task}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
ReturnToService=2
SlurmdParameters=config_overrides
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd-%n.log
CompleteWait=0
MinJobAge=10
KillWait=5
"""

    def __init__(self, cluster, task="task/none", conf="", prefix=None):
        super().__init__(cluster, prefix)
        lab.require("munged")
        self.require("slurmctld", "slurmd", "srun", "sinfo")
        if not self.plugin_in(prefix or "/usr"):
            raise unittest.SkipTest(f"Slurm has no plugin {self.PLUGIN} here")
        self.dir = cluster.folder("slurm")
        os.makedirs(os.path.join(self.dir, "state"))
        self.conf = os.path.join(self.dir, "slurm.conf")
        lab.replace_file(self.conf, self.CONF.format(dir=self.dir, task=task) + "".join(
            f"NodeName={name} NodeAddr={cluster.addresses[name]} CPUs=64 State=UNKNOWN\n" for name in cluster.names) +
            f"PartitionName=all Nodes={','.join(cluster.names)} Default=YES State=UP MaxTime=INFINITE\n" + conf)
        lab.replace_file(os.path.join(self.dir, "mpi.conf"), f"PMIxCliTmpDirBase={cluster.tmp()}\n")
        self.daemons = {"head": self.start(cluster.head, "slurmctld", "-D", "-i", "-f", self.conf)}
        for name, node in cluster.nodes.items():
            self.daemons[name] = self.start(node, "slurmd", "-D", "-f", self.conf, "-N", name)
        lab.wait_for(self.idle, what="Slurm's nodes to come up")

    @classmethod
    def plugin_in(cls, prefix):
        """The file of the plugin for this tree's library, "" where there is none."""
        found = [path for place in ("slurm", "*/slurm*") for path in glob.glob(f"{prefix}/lib/{place}/mpi_{cls.PLUGIN}.so")]
        return found[0] if found else ""

    def environment(self):
        return {"SLURM_CONF": self.conf}

    def start(self, machine, *argv):
        env = self.cluster.environment(**self.environment())
        return lab.spawn([*machine.inside(), self.command(argv[0]), *argv[1:]], env=env, cwd="/",
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def idle(self):
        """Are all nodes up, without a job?"""
        done = self.call("sinfo", "-h", "-N", "-o", "%T")
        return done.returncode == 0 and done.stdout.split() == ["idle"] * len(self.cluster.names)

    def call(self, *argv):
        return lab.run([*self.cluster.head.inside(), self.command(argv[0]), *argv[1:]],
                       env=self.cluster.environment(**self.environment()))

    def argv(self, per_node, command, nodes=None, more=(), user=None, listed=False):
        """listed: each rank's node is in the file $SLURM_HOSTFILE."""
        number = len(nodes or self.cluster.names)
        where = ["--distribution=arbitrary"] if listed else ["-N", str(number), "--ntasks-per-node", str(per_node),
                                                             "-w", ",".join(nodes or self.cluster.names)]
        become = ["setpriv", f"--reuid={user}", "--regid=nogroup", "--clear-groups"] if user else []
        return [*self.cluster.head.inside(), *become, self.command("srun"), "--quiet", f"--mpi={self.PLUGIN}", "-n",
                str(number * per_node), *where, "-D", "/", *more, *command]

    def log(self, name):
        path = os.path.join(self.dir, "slurmctld.log" if name == "head" else f"slurmd-{name}.log")
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()


class ByAgent(Launcher):
    """A command on the first node, which starts its daemons on the others by an agent, as it would by rsh."""

    def __init__(self, cluster, prefix=None):
        super().__init__(cluster, prefix)
        self.require(self.name, self.on_nodes)
        self.agent = cluster.agent(cluster.folder(self.name))

    def rankfile(self, ranks):
        """As fabricctl export rankfile writes it."""
        path = os.path.join(self.cluster.folder("rankfile"), "ranks")
        slots = [ranks[:rank].count(node) for rank, node in enumerate(ranks)]
        lab.replace_file(path, "".join(f"rank {rank}={node} slot={slot}\n" for rank, (node, slot) in enumerate(zip(ranks, slots))))
        return path

    def run(self, *args, **options):
        done = super().run(*args, **options)
        # Said when an agent that it has started was quicker than itself; and, by Open MPI 5, for each query of a job.
        done.stderr = re.sub(r"^(\[\S+\] plm:[rs]sh: Warning: setpgid|Query for unrecognized attribute: ).*\n", "", done.stderr,
                             flags=re.MULTILINE)
        return done


class OpenMpi(ByAgent):
    """mpirun on the first node, and its daemons on the others, which it reaches as it would by rsh."""

    name, on_nodes = "mpirun", "orted"

    def environment(self):
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def run(self, *args, ranks=None, **options):
        """With a rankfile, one of some 200 launches of Open MPI 4.1.4 stops before all ranks are started, with and without our
        component: such a one is begun again."""
        for _ in range(3 if ranks else 0):
            with contextlib.suppress(lab.LabError):
                return super().run(*args, ranks=ranks, timeout=30, **options)
        return super().run(*args, ranks=ranks, **options)

    def argv(self, per_node, command, nodes=None, more=(), at=None, ranks=None):
        """at: another machine to call it on. ranks: the node of each rank, for a rankfile."""
        nodes = nodes or self.cluster.names
        where = ",".join(f"{name}:{per_node}" for name in nodes)
        mapped = ["--rankfile", self.rankfile(ranks)] if ranks else ["--map-by", f"ppr:{per_node}:node", "--bind-to", "none"]
        return [*self.cluster.machines[at or nodes[0]].inside(), self.command("mpirun"), "--host", where, "-np",
                str(per_node * len(nodes)), *mapped, "--mca", "plm", "rsh",
                "--mca", "plm_rsh_agent", self.agent, "--mca", "oob_tcp_if_include", self.cluster.NETWORK,
                "--mca", "ras", "^slurm", *more, *command]


class Prrte(ByAgent):
    """prterun, which is what the mpirun of Open MPI 5 is."""

    name, on_nodes = "prterun", "prted"

    def environment(self):
        return {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def argv(self, per_node, command, nodes=None, more=(), at=None, ranks=None):
        """As that of OpenMpi."""
        nodes = nodes or self.cluster.names
        where = ",".join(f"{name}:{per_node}" for name in nodes)
        mapped = ["--map-by", f"rankfile:file={self.rankfile(ranks)}" if ranks else f"ppr:{per_node}:node", "--bind-to", "none"]
        return [*self.cluster.machines[at or nodes[0]].inside(), self.command("prterun"), "--host", where, "-np", str(per_node * len(nodes)),
                *mapped, "--prtemca", "plm", "ssh",
                "--prtemca", "plm_ssh_agent", self.agent, "--prtemca", "prte_if_include", self.cluster.NETWORK,
                "--prtemca", "ras", "^slurm", *more, *command]


class Example(Launcher):
    """examples/launcher.c: the starter on the head, its daemons on the nodes."""

    name = "launcher"

    def __init__(self, cluster):
        super().__init__(cluster)
        self.agent = cluster.agent(cluster.folder("example"))

    def environment(self):
        return {}

    def argv(self, per_node, command, nodes=None, endpoints=0):
        nodes = nodes or self.cluster.names
        # The agent has a shell put the command line together, as rsh does.
        return [*self.cluster.head.inside(), lab.plain(lab.program("launcher")), self.agent, ",".join(nodes), str(endpoints),
                str(per_node), lab.plain(command[0]), *command[1:]]


NONE_GIVEN = "FABRICD_LAUNCHERS names no folder of a launcher that loads this PMIx library"


def of_our_library(path):
    """Does this program or plugin load the PMIx library of this tree? Each is built with the folder where it looks."""
    folder = re.escape(os.path.dirname(library_folder()).encode())
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        return re.search(rb"[\0:]" + folder + rb"/?[\0:]", file.read()) is not None
    return False


def given(place):
    """The folders of FABRICD_LAUNCHERS with a launcher that loads this tree's library: place(folder) is its program or plugin."""
    folders = filter(None, os.environ.get("FABRICD_LAUNCHERS", "").split(":"))
    return [folder for folder in folders if of_our_library(place(folder))]


def with_the_system():
    """Is this tree's library that of the launchers which are installed with the system?"""
    return library_folder().startswith("/usr/lib/")


def slurm(cluster, **options):
    """One of those that are given, or the system's: two would have the same ports."""
    found = given(Slurm.plugin_in)
    if not found and not with_the_system():
        raise unittest.SkipTest(NONE_GIVEN)
    return Slurm(cluster, prefix=found[0] if found else None, **options)


def people_run(cluster):
    """The launchers that there are for this tree's library."""
    found = [Prrte(cluster, folder) for folder in given(lambda folder: os.path.join(folder, "bin", "prterun"))]
    if with_the_system():  # Open MPI starts jobs by its own orted before version 5, and by PRRTE from then on
        found.append(OpenMpi(cluster) if lab.find_command("orted") else Prrte(cluster))
    if given(Slurm.plugin_in) or with_the_system() and Slurm.plugin_in("/usr"):
        found.append(slurm(cluster))
    if not found:
        raise unittest.SkipTest(NONE_GIVEN)
    return found
