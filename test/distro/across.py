"""across - a scheduler on one Debian and nodes on others, each with the packages of its own.

usage: across.py ROOTS SCHEDULER NODE...      the names of suites, whose roots stand below ROOTS (run.sh), as
       across.py build-distro trixie bookworm forky trixie trixie

Each host is a root of root.sh with a layer above it, in a network of its own; a bridge joins them. The packages of
ROOT/build/packages are installed there, munged runs, and fabricd with the configuration of docs/operations.md. Printed
is a line a check, and at last how many passed. Status 0: all; then ROOTS/across-SCHEDULER.json has what was shown.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import fabric_text  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORK = "10.96.0"
PATIENCE = 60  # seconds, until a report has arrived or a job has ended
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LAUNCHED = "/build/tree/bin/stock_launch"  # a job's process, which knows PMIx only
SLURM = """
ClusterName=across
SlurmctldHost=head
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
ReturnToService=2
StateSaveLocation=/tmp/state
SlurmdSpoolDir=/tmp/spool
SlurmctldLogFile=/tmp/slurmctld.log
SlurmdLogFile=/tmp/slurmd.log
SlurmctldPidFile=/tmp/slurmctld.pid
SlurmdPidFile=/tmp/slurmd.pid
"""


class Failed(Exception):
    pass


def run(argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE * 5, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(argv)}: status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def until(condition, what):
    """Poll: what is waited for happens on a host whose events do not come here."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            value = condition()
            if value:
                return value
            error = ""
        except (Failed, ValueError) as failed:
            error = f": {failed}"
        if time.monotonic() > end:
            raise Failed(f"waited {PATIENCE} s for {what}{error}")
        time.sleep(0.2)


class Host:
    def __init__(self, folder, roots, suite, name, number):
        self.suite, self.name, self.address = suite, name, f"{NETWORK}.{number}"
        self.root = os.path.join(roots, suite)
        if not os.path.isdir(os.path.join(self.root, "build", "packages")):
            raise Failed(f"{self.root}: run \"./dev distro {suite}\" first: it makes the packages")
        self.layer = os.path.join(folder, name)
        self.processes = [subprocess.Popen(
            ["unshare", "--net", os.path.join(HERE, "root.sh"), "enter", self.root, "--overlay", self.layer, "--hostname", name,
             "--bind", f"{folder}/shared:/shared", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE, text=True)]
        self.processes[0].stdout.readline()
        with open(f"/proc/{self.processes[0].pid}/task/{self.processes[0].pid}/children", encoding="ascii") as file:
            self.inner = file.read().split()[0]

    def prefix(self):
        return ["nsenter", "-t", self.inner, "-m", "-u", "-n", "-p", "-r", "-w", "env", "-i", f"PATH={PATH}", "HOME=/root",
                "LC_ALL=C.UTF-8", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PRTE_ALLOW_RUN_AS_ROOT=1",
                "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1", "SLURM_CONF=/tmp/slurm.conf"]

    def do(self, *argv):
        return run([*self.prefix(), *argv])

    def sh(self, text):
        return self.do("sh", "-c", text)

    def start(self, *argv):
        self.processes.append(subprocess.Popen([*self.prefix(), *argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                               stderr=subprocess.DEVNULL))

    def write(self, path, text, mode=0o644):
        full = os.path.join(self.layer, "root", path.lstrip("/"))
        run([*self.prefix(), "sh", "-c", f"cat >{path} && chmod {mode:o} {path}"], input=text)
        return full

    def cable(self, head):
        """To the bridge of the head."""
        run(["nsenter", f"--net=/proc/{head.inner}/ns/net", "ip", "link", "add", f"to{self.name}"[:15], "type", "veth", "peer", "name",
             "eth0", "netns", f"/proc/{self.inner}/ns/net"])
        head.do("ip", "link", "set", f"to{self.name}"[:15], "up", "master", "br0")
        self.sh(f"ip addr add {self.address}/24 dev eth0 && ip link set eth0 up && ip link set lo up")

    def furnish(self, hosts, key):
        self.write("/etc/hosts", "127.0.0.1 localhost\n" + "".join(f"{host.address} {host.name}\n" for host in hosts))
        self.sh("cat /shared/key >/etc/munge/munge.key && chown munge:munge /etc/munge/munge.key && chmod 400 /etc/munge/munge.key"
                " && mkdir -p /run/munge && chown munge:munge /run/munge")
        self.start("munged", "--foreground", "--force", f"--origin={self.address}")
        # All that they depend on is in the root already.
        self.sh("dpkg --force-confnew -i /build/packages/*.deb >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; exit 1; }")

    def json(self, *argv):
        return json.loads(self.do("fabricctl", "--format", "json", *argv))

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


class Site:
    def __init__(self, folder, roots, scheduler, nodes):
        self.folder, self.passed, self.launched = folder, 0, set()
        os.makedirs(f"{folder}/shared")
        with open(f"{folder}/shared/key", "wb") as file:
            file.write(os.urandom(1024))
        self.head = Host(folder, roots, scheduler, "head", 100)
        self.hosts = [self.head]
        self.nodes = []
        for number, suite in enumerate(nodes):  # of four leaves with 16 hosts each, on leaves in turn
            node = Host(folder, roots, suite, f"node{16 * (number % 4) + number // 4 + 1:04}", number + 1)
            self.hosts.append(node)
            self.nodes.append(node)

    def start(self):
        self.head.sh(f"ip link add br0 type bridge && ip addr add {self.head.address}/24 dev br0 && ip link set br0 up && ip link set lo up")
        for node in self.nodes:
            node.cable(self.head)
        for host in self.hosts:
            host.furnish(self.hosts, None)
        self.head.sh("/build/tree/bin/mkfabric fattree2:4,2,16 capture >/shared/fabric.txt")
        self.head.write("/etc/fabricd.conf", "[fabricd]\nprobe = file:/shared/fabric.txt\nhost = head\n[nodes]\nlisten = *\n")
        for node in self.nodes:
            node.write("/etc/fabricd.conf", f"[fabricd]\nrole = node\nscheduler = head\nhost = {node.name}\n")
        for host in self.hosts:
            host.start("sh", "-c", "exec fabricd --foreground >/tmp/fabricd.log 2>&1")

    def check(self, what, good, shown=""):
        print(f"{'ok' if good else 'FAILED'}: {what}{'' if good else f': {shown}'}", flush=True)
        if not good:
            raise Failed(what)
        self.passed += 1

    def everywhere(self):
        """All nodes have delivered, and serve what the scheduler serves."""
        names = sorted(node.name for node in self.nodes)
        until(lambda: sorted(node["host"] for node in self.head.json("nodes")) == names, "the reports of all nodes")
        generation = until(lambda: self.head.json("status")["generation"], "a generation of the scheduler")
        costs = self.head.sh("fabricctl matrix | sha256sum")
        coordinates = self.head.json("coords")
        for node in self.nodes:
            until(lambda node=node: node.json("status")["generation"] >= generation, f"the scheduler's generation on {node.name}")
            until(lambda node=node: node.sh("fabricctl matrix | sha256sum") == self.head.sh("fabricctl matrix | sha256sum"),
                  f"the scheduler's costs on {node.name}")
            self.check(f"{node.name} ({node.suite}) serves the costs and coordinates of head ({self.head.suite})",
                       node.json("coords") == self.head.json("coords") == coordinates and costs.split()[0] != "")

    def job(self, launcher, argv, at, names, ranks):
        """Each rank was told the coordinates that the scheduler has for its host."""
        folder = f"/shared/{launcher}-{at.name}"
        at.sh(f"mkdir -p {folder} && chmod 777 {folder}")
        at.do(*argv, LAUNCHED, folder, *names)
        self.launched.add(f"{launcher} on {at.suite}")
        device = {}
        for one in self.head.json("devices"):
            device.setdefault(one["host"], one)
        for rank in range(ranks):
            with open(f"{self.folder}/shared/{os.path.basename(folder)}/{rank}", encoding="utf-8") as file:
                told = json.loads(file.readline())
            for name in names:
                value = told["nodes"][name]["pmix.fab.coord"].get("value")
                seen = value.get("coord", value) if isinstance(value, dict) else value
                wanted = device[name]["logical"]
                self.check(f"{launcher} on {at.suite}: rank {rank} knows {name} at {wanted}", json.dumps(wanted) in json.dumps(seen),
                           json.dumps(told["nodes"][name])[:300])

    def jobs(self):
        for node in {node.suite: node for node in self.nodes}.values():
            mpirun = [*"mpirun -np 2 --host".split(), f"{node.name}:2", "--bind-to", "none"]
            self.job("mpirun", mpirun, node, [node.name], 2)
        slurm = [node for node in self.nodes if node.suite == self.head.suite]
        if slurm and self.head.sh("ls /usr/lib/*/slurm*/mpi_pmix.so 2>/dev/null || true"):
            self.slurm(slurm)

    def slurm(self, nodes):
        names = ",".join(node.name for node in nodes)
        conf = SLURM + "".join(f"NodeName={node.name} NodeAddr={node.address} CPUs=8 State=UNKNOWN\n" for node in nodes) + \
            f"PartitionName=all Nodes={names} Default=YES State=UP\n"
        for host in (self.head, *nodes):
            host.write("/tmp/slurm.conf", conf)
            host.sh("mkdir -p /tmp/state /tmp/spool")
        self.head.start("slurmctld", "-D", "-i", "-f", "/tmp/slurm.conf")
        for node in nodes:
            node.start("slurmd", "-D", "-f", "/tmp/slurm.conf", "-N", node.name)
        until(lambda: self.head.do("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * len(nodes), "Slurm's nodes")
        version = self.head.do("srun", "--version").split()[-1]
        self.job(f"srun-{version}", ["srun", "--quiet", "--mpi=pmix", "-D", "/", "-N", str(len(nodes)), "-n", str(2 * len(nodes))], self.head,
                 [node.name for node in nodes], 2 * len(nodes))

    def change(self):
        """A cable runs at half its rate: the costs change, on all hosts alike."""
        before = self.head.sh("fabricctl matrix | sha256sum")
        path = f"{self.folder}/shared/fabric.txt"
        with open(path, encoding="utf-8") as file:
            slow = fabric_text.slower(file.read(), "node0001")
        with open(path, "w", encoding="utf-8") as file:
            file.write(slow)
        self.head.do("fabricctl", "refresh")
        self.check("a slower cable changes the costs", self.head.sh("fabricctl matrix | sha256sum") != before)

    def end(self):
        for host in reversed(self.hosts):
            host.end()


def main():
    roots, scheduler, *nodes = sys.argv[1:]
    folder = tempfile.mkdtemp(prefix="across.", dir=os.path.abspath(roots))
    site = None
    try:
        site = Site(folder, os.path.abspath(roots), scheduler, nodes)
        site.start()
        site.everywhere()
        site.jobs()
        site.change()
        site.everywhere()
        print(f"{site.passed} passed, 0 failed")
        with open(os.path.join(roots, f"across-{scheduler}.json"), "w", encoding="ascii") as file:
            json.dump({"scheduler": scheduler, "nodes": sorted(set(nodes)), "launched": sorted(site.launched)}, file)
        return 0
    except Failed as failed:
        print(failed)
        for host in site.hosts if site else ():
            print(f"--- {host.name} ({host.suite})")
            subprocess.run([*host.prefix(), "tail", "-n", "15", "/tmp/fabricd.log"], check=False)
        print(f"{site.passed if site else 0} passed, 1 failed")
        return 1
    finally:
        if site:
            site.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
