"""bench_slurm - the places that Slurm's own scheduler gives to the same jobs with three topologies: none, one that a script makes from
the names of hosts, and `fabricctl export slurm-tree`.

The site is made up: 1,000 hosts, three levels of switches, leaves of 14 to 20 hosts in 8 pods. It was bought in two parts, so the racks of
a pod are not all next to each other, and one host in 20 is connected to the leaf of a rack nearby instead of its own. The script has a plan
of the racks, without the pods and without these hosts.

slurmctld (select/cons_tres, sched/builtin: first in, first out) chooses the nodes. The nodes are those of a cloud, without a slurmd: a job
holds its nodes until it is cancelled. Time is virtual. In each interval the bench cancels the jobs that have ended, submits those that have
arrived, and lets slurmctld schedule once. A job starts as soon as enough nodes are free, wherever they are. So each topology gets the same
jobs, starts and ends, and the result does not depend on the speed of the machine.
"""
import collections
import concurrent.futures
import dataclasses
import heapq
import itertools
import os
import random
import statistics
import sys

import bench
import lab
import launchers
import test_export_slurm
import test_fabricctl

SEED = 1
HOSTS, PODS, FIRST_RACKS, ELSEWHERE = 1000, 8, 5, 50
MIDDLES = 4  # switches above the leaves of a pod
JOBS, LOAD = 2000, 0.9
# Nodes (from, to) and weight; mean duration in intervals
SIZES = [((1, 1), 30), ((2, 4), 25), ((5, 8), 15), ((16, 16), 10), ((24, 24), 5), ((32, 32), 5), ((48, 48), 3), ((64, 64), 3),
         ((128, 128), 3), ((192, 256), 1)]
DURATION, LONGEST = 60, 600
VARIANTS = ["no topology", "by host names", "slurm-tree"]
# The scheduler runs when the bench asks for it, and at no other time.
CONF = """SchedulerType=sched/builtin
SwitchType=switch/none
SchedulerParameters=batch_sched_delay=1000000,sched_interval=1000000,default_queue_depth=1000
"""


class Site:
    """leaf and pod: {host: name}, of what is connected. racks: the hosts of each, by the plan."""

    def __init__(self, pick):
        self.racks, self.leaf, self.pod = [], {}, {}
        names = [f"node{n:04}" for n in range(1, HOSTS + 1)]
        self.hosts = names
        while names:
            size = pick.randint(14, 20)
            self.racks.append(names[:size])
            names = names[size:]
        later = len(self.racks) - PODS * FIRST_RACKS
        pods = [rack // FIRST_RACKS for rack in range(PODS * FIRST_RACKS)] + [rack * PODS // later for rack in range(later)]
        connected = {host: at for at, rack in enumerate(self.racks) for host in rack}
        for host in pick.sample(self.hosts, ELSEWHERE // 2):
            near = [at for at in range(connected[host] - 2, connected[host] + 3) if 0 <= at < len(self.racks) and at != connected[host]]
            other = pick.choice(self.racks[pick.choice(near)])
            connected[host], connected[other] = connected[other], connected[host]
        for host, at in connected.items():
            self.leaf[host], self.pod[host] = f"leaf{at + 1}", f"pod{pods[at] + 1}"
        self.elsewhere = sum(connected[host] != at for at, rack in enumerate(self.racks) for host in rack)

    def largest(self, place):
        """The number of hosts of the largest leaf or pod."""
        return max(collections.Counter(place.values()).values())

    def capture(self):
        """The text of ibnetdiscover."""
        pod_of = {self.leaf[host]: self.pod[host] for host in self.hosts}
        cables = [(leaf, host) for host, leaf in self.leaf.items()]
        cables += [(leaf, f"middle-{pod}-{middle}") for leaf, pod in pod_of.items() for middle in range(MIDDLES)]
        cables += [(f"middle-{pod}-{middle}", f"core{middle}-{core}") for pod in sorted(set(pod_of.values()))
                   for middle in range(MIDDLES) for core in range(2)]
        return test_export_slurm.fabric(cables)

    def by_names(self):
        """The topology.conf of a script that has the plan."""
        leaves = "".join(f"SwitchName=rack{at} Nodes={','.join(rack)}\n" for at, rack in enumerate(self.racks, 1))
        return leaves + f"SwitchName=root Switches=rack[1-{len(self.racks)}]\n"


class Costs:
    """The costs that fabricd serves, of pairs of hosts."""

    def __init__(self, daemon):
        path = os.path.join(lab.tmpdir(), "costs.npy")
        done = daemon.ctl("matrix", "-o", path)
        if done.returncode != 0:
            raise lab.LabError(f"fabricctl matrix: {done.stderr}")
        self.rows = test_fabricctl.read_npy(path)[1]
        self.at = {device["host"]: device["index"] for device in daemon.ctl_json("devices")}

    def of(self, hosts):
        """(mean, largest) of all pairs."""
        at = [self.at[host] for host in hosts]
        costs = [self.rows[a][b] for a, b in itertools.combinations(at, 2)]
        return statistics.fmean(costs), max(costs)


@dataclasses.dataclass
class Step:
    """An interval in which jobs start; jobs that ended and arrived since the step before."""
    ended: list
    arrived: list
    started: list


def jobs(pick):
    """[(arrival, nodes, duration)] in intervals."""
    ranges, weights = zip(*SIZES)
    mean = sum(sum(sizes) / 2 * weight for sizes, weight in SIZES) / sum(weights)
    found, now = [], 0
    for _ in range(JOBS):
        now += pick.expovariate(LOAD * HOSTS / (mean * DURATION))
        nodes = pick.randint(*pick.choices(ranges, weights)[0])
        found.append((now, nodes, min(max(2, DURATION * pick.lognormvariate(-0.5, 1)), LONGEST)))
    return found


def planned(work):
    """The steps, and the mean share of nodes with a job while jobs arrive. First in, first out: only numbers of nodes matter."""
    steps, busy, free, now = [], [], HOSTS, 0
    arriving, queue, running, step = collections.deque(enumerate(work)), collections.deque(), [], Step([], [], [])
    while arriving or queue:
        now += 1
        while running and running[0][0] <= now:
            job = heapq.heappop(running)[1]
            step.ended.append(job)
            free += work[job][1]
        while arriving and arriving[0][1][0] <= now:
            job = arriving.popleft()[0]
            step.arrived.append(job)
            queue.append(job)
        while queue and work[queue[0]][1] <= free:
            job = queue.popleft()
            step.started.append(job)
            free -= work[job][1]
            heapq.heappush(running, (now + work[job][2], job))
        if step.started:
            steps.append(step)
            step = Step([], [], [])
        if arriving:
            busy.append(1 - free / HOSTS)
    return steps, statistics.fmean(busy)


class Controller(test_export_slurm.Slurm):
    """slurmctld, and what it does with the steps."""

    def shell(self, lines):
        done = lab.run([*self.cluster.head.inside(), "sh", "-e", "-c", "\n".join(lines)], env=self.env(), cwd="/")
        if done.returncode != 0:
            raise lab.LabError(f"{lines}: {done.stderr}")
        return [line.split() for line in done.stdout.splitlines()]

    def replay(self, work, steps):
        """{job: its nodes}. Slurm numbers jobs from 1 in the order of their arrival."""
        places, running = {}, set()
        ask = "squeue -h -t CF,R -o '%A %N'"
        for step in steps:
            lines = [f"scancel {' '.join(str(job + 1) for job in step.ended)}"] if step.ended else []
            lines += [f"sbatch --parsable -N {work[job][1]} -o /dev/null --wrap true" for job in step.arrived]
            told = self.shell([*lines, "scontrol update PartitionName=all State=UP", ask])  # an update starts the scheduler
            if [int(words[0]) - 1 for words in told[:len(step.arrived)]] != step.arrived:
                raise lab.LabError(f"other numbers of jobs: {told}")
            told = told[len(step.arrived):]
            running = running - set(step.ended) | set(step.started)
            if len(told) < len(running):
                told = lab.wait_for(lambda: len(again := self.shell([ask])) >= len(running) and again, what="the jobs to start")
            nodes = {int(words[0]) - 1: words[1] for words in told}
            if set(nodes) != running:
                raise lab.LabError(f"slurmctld runs other jobs than first in, first out would: {sorted(set(nodes) ^ running)}")
            for job in step.started:
                places[job] = test_export_slurm.spelled(nodes[job])
                if len(places[job]) != work[job][1]:
                    raise lab.LabError(f"job {job}: {nodes[job]}")
        return places


def replayed(site, work, steps, plugin, topology):
    cluster = launchers.Cluster([])
    try:
        slurm = Controller(cluster, topology, site.hosts, plugin=plugin, more=CONF)
        return slurm.replay(work, steps)
    finally:
        cluster.stop()


def within(places, place, size):
    """Per cent of the jobs of at most so many nodes that are within one leaf or pod."""
    return 100 * statistics.fmean(len({place[host] for host in hosts}) == 1 for hosts in places if len(hosts) <= size)


def figures(site, costs, places):
    """[(figure, value, unit)], of the jobs of at least two nodes."""
    places = [hosts for hosts in places.values() if len(hosts) > 1]
    means, worst = zip(*(costs.of(hosts) for hosts in places))
    leaf, pod = site.largest(site.leaf), site.largest(site.pod)
    return [("mean cost of a job's pairs", statistics.fmean(means), ""),
            ("cost of a job's worst pair", statistics.fmean(worst), ""),
            ("leaves a job", statistics.fmean(len({site.leaf[host] for host in hosts}) for hosts in places), ""),
            (f"in one leaf, to {leaf} nodes", within(places, site.leaf, leaf), "%"),
            (f"in one pod, to {pod} nodes", within(places, site.pod, pod), "%")]


def work_():
    lab.require("slurmctld", "scontrol", "sbatch", "scancel", "squeue")
    pick = random.Random(SEED)
    site = Site(pick)
    work = jobs(pick)
    steps, busy = planned(work)
    path = os.path.join(lab.tmpdir(), "capture")
    lab.replace_file(path, site.capture())
    daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
    exported = daemon.ctl("export", "slurm-tree").stdout
    costs = Costs(daemon)
    daemon.stop()
    bench.note(f"slurm: {HOSTS} hosts at {len(site.racks)} leaves in {PODS} pods, {site.elsewhere} not at the leaf of the plan; {JOBS} jobs, "
               f"{len(steps)} runs of the scheduler, {100 * busy:.0f} % of the nodes busy")
    variants = [("topology/none", ""), ("topology/tree", site.by_names()), ("topology/tree", exported)]
    with concurrent.futures.ThreadPoolExecutor(len(variants)) as pool:
        done = list(pool.map(lambda variant: replayed(site, work, steps, *variant), variants))
    rows = [figures(site, costs, places) for places in done]
    for figure in zip(*rows):
        for name, (what, value, unit) in zip(VARIANTS, figure):
            first = name == VARIANTS[0]
            bench.report("slurm", f"{what}, {name}", value, unit, None if first else VARIANTS[0], None if first else figure[0][1])
    mean = [row[0][1] for row in rows]
    if mean[2] > min(mean):
        raise lab.LabError(f"mean cost {mean[2]:.4g} with slurm-tree, {min(mean):.4g} with another topology")


if __name__ == "__main__":
    sys.exit(bench.main("slurm", work_))
