"""bench_node - what nodes cost: a scan of this host, a crowd that delivers, one that changes, and a daemon that idles.

Probing is `fabricd --record` with the four probes of the libraries, from exec to exit, against the libraries' own
programs, one after the other; the two take turns. The crowd is 1,000 simulated hosts with 8 devices each, all of
them in the swept fabric, each with a connection and a credential of its own, to a scheduler with the
default configuration in another network namespace. Beside it munge's own benchmark: as many credentials made and opened.
"""
import os
import re
import shutil
import subprocess
import tempfile
import time

import bench
import hosts
import lab

ROUNDS, CHANGES = 11, 21
CROWD, RAILS = 1000, 8
FABRIC = "fattree2:250,16,32"  # CROWD * RAILS HCAs
PROGRAMS = {"hwloc": ["lstopo-no-graphics"], "libfabric": ["fi_info"], "ucx": ["ucx_info", "-d"], "verbs": ["ibv_devinfo"]}
NO_DEVICES = {"verbs": 255}  # status of a program on a host without such devices
SCHEDULER, NODE = "10.91.1.1", "10.91.1.2"
MEMORY = "/dev/shm"
IDLE = 30  # seconds
IDLE_MIB, IDLE_PERCENT = 12, 0.1


# ---- probing -------------------------------------------------------------------------------------------


def quietly(argv):
    """Its status. Not by lab.run: with a deadline, Python looks in steps whether a program has ended."""
    return subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode


def stock(*names):
    for name in names:
        if quietly(PROGRAMS[name]) not in (0, NO_DEVICES.get(name)):
            raise lab.LabError(f"{PROGRAMS[name][0]} fails")


def probes(folder, *names):
    argv = [lab.program("fabricd"), "--record", os.path.join(folder, "record.json")]
    if quietly(argv + [f"--probe={name}" for name in names]) != 0:
        raise lab.LabError(f"fabricd --record with {' '.join(names)} fails")


def probing():
    lab.require(*(argv[0] for argv in PROGRAMS.values()))
    folder = lab.tmpdir()
    for names in (*((name,) for name in PROGRAMS), tuple(PROGRAMS)):
        ours, theirs = [], []
        for _ in range(1 + ROUNDS):  # the first of each warms up
            theirs.append(bench.timed(lambda names=names: stock(*names))[0])
            ours.append(bench.timed(lambda names=names: probes(folder, *names))[0])
        whole = len(names) > 1
        bench.report("node", "probing: all four" if whole else f"probing: {names[0]}", bench.median(ours[1:]), "ms",
                     "all four programs" if whole else " ".join(PROGRAMS[names[0]]), bench.median(theirs[1:]),
                     to_reach=1.5 if whole else 0)
        bench.note(f"node, probing {' '.join(names)}: {bench.rounded(ours[1:])}; theirs {bench.rounded(theirs[1:])} ms")


# ---- two hosts -----------------------------------------------------------------------------------------


class Site:
    """A scheduler, by another program of fabricd's where one is named, and a host that all the nodes are."""

    def __init__(self, binary=None):
        self.here, self.there = hosts.Host("scheduler"), hosts.Host("nodes")
        self.here.cable(self.there, SCHEDULER, NODE)
        self.munged = []
        for host, address in ((self.here, SCHEDULER), (self.there, NODE)):
            host.knows({"scheduler": SCHEDULER, **{f"node{i}": NODE for i in range(CROWD)}})
            self.munged.append(hosts.Munged(host, address, self.munged[0] if self.munged else None))
            self.munged[-1].show_on(host)
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, self.fabric())
        self.scheduler = hosts.Fabricd(self.here, config={"fabricd": {"probe": f"file:{capture}", "host": "scheduler"},
                                                          "security": {"remote": "yes"}}, start=False)
        self.scheduler.binary = binary or self.scheduler.binary
        # As /run is, in memory; the store is on the disk.
        self.scheduler.rundir = tempfile.mkdtemp(dir=MEMORY if os.path.isdir(MEMORY) else None)
        self.scheduler.args += ["--rundir", self.scheduler.rundir]
        self.scheduler.start()

    @staticmethod
    def fabric():
        """HCA n of the fabric is device n / CROWD of host n % CROWD."""
        def name(match):
            device, host = divmod(int(match.group(1)) - 1, CROWD)
            return f'"node{host} mlx5_{device}"'
        return re.sub(r'"node(\d+)"', name, lab.fabric(FABRIC, "capture"))

    def stop(self):
        self.scheduler.stop()
        shutil.rmtree(self.scheduler.rundir)
        for one in (*self.munged, self.here, self.there):
            one.stop()


# ---- the crowd -----------------------------------------------------------------------------------------


def credentials(site):
    """Milliseconds that munge's own benchmark needs for as many, in one thread."""
    lab.require("remunge")
    spent, done = bench.timed(lambda: site.there.run(["remunge", "--decode", f"--num-creds={CROWD}", "--num-threads=1",
                                                      "--quiet"], timeout=60))
    if done.returncode != 0:
        raise lab.LabError(f"remunge: {done.stderr.strip()[-300:]}")
    return spent


def gather(site):
    """The crowd, connected."""
    argv = [*site.there.prefix(), lab.program("crowd"), site.scheduler.uri(), f"{SCHEDULER}:7135", str(CROWD), str(RAILS)]
    program = lab.Watch(argv, site.scheduler.tool_env(), talk=True)
    bench.note(f"node: {CROWD} nodes connect")
    program.wait("^ready$", timeout=300)
    return program


def deliver(program):
    """Milliseconds until all of its deliveries are acknowledged, and until they are published."""
    found = program.say("all", r"(?m)^all (\S+) (\S+)$|^crowd: .*$", timeout=60)
    if found.group(1) is None:
        raise lab.LabError(found.group(0))
    return float(found.group(1)), float(found.group(2))


def crowd(site):
    program = gather(site)
    before = site.scheduler.status()["generation"]
    munge = credentials(site)
    acknowledged, updated = deliver(program)
    site.scheduler.refresh()
    bench.report("node", f"{CROWD} deliver at once, all acknowledged", acknowledged / 1e3, "s", to_reach=5)
    bench.report("node", "the same against as many credentials", acknowledged / 1e3, "s", "remunge --decode", munge / 1e3)
    bench.report("node", "and all published", updated / 1e3, "s")
    bench.report("node", "generations for all of them", site.scheduler.status()["generation"] - before, "", to_reach=1)
    changes(program)
    program.stop()


def changes(program):
    """Each of another host: one that delivers again and again has to wait."""
    acknowledged, updated = [], []
    for turn in range(CHANGES):
        found = program.say(f"change {7 + 41 * turn} 20.40.{turn}", r"(?m)^change (\S+) (\S+)$|^crowd: .*$", timeout=60)
        if found.group(1) is None:
            raise lab.LabError(found.group(0))
        acknowledged.append(float(found.group(1)))
        updated.append(float(found.group(2)))
    bench.note(f"node, one of {CROWD} changes: UPDATED after {bench.rounded(updated)} ms")
    bench.report("node", f"one of {CROWD} changes, to UPDATED in a tool", bench.median(updated), "ms", to_reach=50)
    bench.report("node", "slowest of them", max(updated), "ms", to_reach=50)
    bench.report("node", "of it to the acknowledgement", bench.median(acknowledged), "ms")


# ---- idle ----------------------------------------------------------------------------------------------


def processor(pid):
    """Nanoseconds that a process has run, all its threads."""
    spent = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            spent += int(file.read().split()[0])
    return spent


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024


def idles(site, name, **sections):
    """With a mirror of the whole crowd's plane, which is mapped and counts as far as it was read. Per cent of a core and
    MiB of the node, and of its PMIx server where it has one."""
    node = hosts.Node(site.there, name, SCHEDULER, config={
        "fabricd": {"probe": ["hwloc", "verbs", "libfabric", "ucx", "ethernet"], "log": None}, **sections})
    node.wait_delivered()
    site.scheduler.refresh()
    time.sleep(5)  # what the start has begun, and the news of it, is over
    pids = [pid for pid in (node.process.pid, node.pmix_pid()) if pid]
    before, start = [processor(pid) for pid in pids], time.monotonic()
    time.sleep(IDLE)  # it is what is measured
    spent = time.monotonic() - start
    found = [((processor(pid) - ran) / 1e7 / spent, resident(pid)) for pid, ran in zip(pids, before)]
    node.stop()
    return found


def idle(site):
    percent, memory = idles(site, "node0")[0]
    bench.report("node", f"idle for {IDLE} s, of a core", percent, "%", to_reach=IDLE_PERCENT)
    bench.report("node", "resident", memory, "MiB", to_reach=IDLE_MIB)
    percent, memory = idles(site, "node1", node={"serve": "yes"})[1]
    bench.report("node", "the PMIx server of one that serves, of a core", percent, "%", to_reach=IDLE_PERCENT)
    bench.report("node", "its memory", memory, "MiB")


def work():
    probing()
    hosts.need()
    site = Site()
    try:
        crowd(site)
        idle(site)
    except lab.LabError:
        bench.note(site.scheduler.log()[-2000:])
        raise
    finally:
        site.stop()


if __name__ == "__main__":
    raise SystemExit(bench.main("node", work))
