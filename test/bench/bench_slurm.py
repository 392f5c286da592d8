"""bench_slurm - the places that Slurm's own scheduler gives to the same jobs with three topologies: none, one that a script makes from
the names of hosts, and `fabricctl export slurm-tree`.

The site is made up: 1,000 hosts, three levels of switches, leaves of 14 to 20 hosts in 8 pods. It was bought in two parts, so the racks of
a pod are not all next to each other, and one host in 20 is connected to the leaf of a rack nearby instead of its own. The script has a plan
of the racks, without the pods and without these hosts.

slurmctld (select/cons_tres) chooses the nodes of each job among those that are free. The nodes are those of a cloud, without a slurmd: a
job holds its nodes until it is cancelled. Time is virtual, and jobs start in the order of their arrival, as soon as enough nodes are free.
So each topology gets the same jobs, starts and ends, and the result does not depend on the speed of the machine. Jobs do not wait in
Slurm's own queue: its scheduler looks there only once a second.
"""
import collections
import concurrent.futures
import dataclasses
import heapq
import itertools
import os
import random
import re
import statistics
import subprocess
import sys

import bench
import lab
import launchers
import test_export_slurm
import test_fabricctl

SEED = int(os.environ.get("FABRICD_SEED", "1"))
HOSTS, PODS, FIRST_RACKS, ELSEWHERE = 1000, 8, 5, 50
MIDDLES = 4  # switches above the leaves of a pod
JOBS, LOAD = 2000, 0.9
# Nodes (from, to) and weight; mean duration in intervals
SIZES = [((1, 1), 30), ((2, 4), 25), ((5, 8), 15), ((16, 16), 10), ((24, 24), 5), ((32, 32), 5), ((48, 48), 3), ((64, 64), 3),
         ((128, 128), 3), ((192, 256), 1)]
DURATION, LONGEST = 60, 600
VARIANTS = ["no topology", "by host names", "slurm-tree"]
CONF = "SchedulerType=sched/builtin\nSwitchType=switch/none\n"


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
    """The jobs that start in an interval, and those that have ended since the step before."""
    ended: list
    started: list


def random_jobs(pick):
    """[(arrival, nodes, duration)] in intervals."""
    ranges, weights = zip(*SIZES)
    mean = sum(sum(sizes) / 2 * weight for sizes, weight in SIZES) / sum(weights)
    found, now = [], 0
    for _ in range(JOBS):
        now += pick.expovariate(LOAD * HOSTS / (mean * DURATION))
        nodes = pick.randint(*pick.choices(ranges, weights)[0])
        found.append((now, nodes, min(max(2, DURATION * pick.lognormvariate(-0.5, 1)), LONGEST)))
    return found


def planned(jobs):
    """The steps, and the mean share of nodes with a job while jobs arrive. First in, first out: only numbers of nodes matter."""
    steps, busy, free, now = [], [], HOSTS, 0
    arriving, queue, running, step = collections.deque(enumerate(jobs)), collections.deque(), [], Step([], [])
    while arriving or queue:
        now += 1
        while running and running[0][0] <= now:
            job = heapq.heappop(running)[1]
            step.ended.append(job)
            free += jobs[job][1]
        while arriving and arriving[0][1][0] <= now:
            job = arriving.popleft()[0]
            queue.append(job)
        while queue and jobs[queue[0]][1] <= free:
            job = queue.popleft()
            step.started.append(job)
            free -= jobs[job][1]
            heapq.heappush(running, (now + jobs[job][2], job))
        if step.started:
            steps.append(step)
            step = Step([], [])
        if arriving:
            busy.append(1 - free / HOSTS)
    return steps, statistics.fmean(busy)


class Controller(test_export_slurm.Slurm):
    """slurmctld, and what it does with the steps."""

    def allocate(self, nodes):
        """The number of a job that gets so many nodes at once. salloc would wait for the nodes to boot, so it is killed; the job stays."""
        command = [*self.cluster.head.prefix(), lab.find_command("salloc"), "--immediate", "--no-shell", "-N", str(nodes)]
        process = lab.spawn(command, env=self.env(), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True)
        with process.stderr as told:
            line = told.readline()
        lab.kill_group(process)
        granted = re.fullmatch(r"salloc: Granted job allocation (\d+)\n", line)
        if not granted:
            raise lab.LabError(f"{nodes} nodes: {line}")
        return granted.group(1)

    def call(self, name, *args):
        done = lab.run(self.argv(name, *args), env=self.env(), cwd="/")
        if done.returncode != 0:
            raise lab.LabError(f"{name}: {done.stderr}")
        return done.stdout

    def look(self, jobs, numbers, places):
        """Add the nodes of the running jobs to places."""
        nodes = dict(line.split() for line in self.call("squeue", "-h", "-o", "%i %N").splitlines())
        if set(nodes) != set(numbers.values()):
            raise lab.LabError(f"other jobs than these have nodes: {sorted(set(nodes) ^ set(numbers.values()))}")
        for job in set(numbers) - set(places):
            places[job] = test_export_slurm.spelled(nodes[numbers[job]])
            if len(places[job]) != jobs[job][1]:
                raise lab.LabError(f"job {numbers[job]}: {jobs[job][1]} nodes, got {nodes[numbers[job]]}")

    def replay(self, jobs, steps):
        """{job: its nodes}"""
        numbers, places = {}, {}
        for step in steps:
            if not set(step.ended) <= set(places):
                self.look(jobs, numbers, places)
            if step.ended:
                self.call("scancel", *(numbers.pop(job) for job in step.ended))
            for job in step.started:
                numbers[job] = self.allocate(jobs[job][1])
        self.look(jobs, numbers, places)
        return places


def replayed(site, jobs, steps, plugin, topology):
    cluster = launchers.Cluster([])
    try:
        # slurmctld sends the end of a job to the nodes, too. A closed port refuses it at once; a name without address would not.
        cluster.head.knows({**cluster.addresses, **dict.fromkeys(site.hosts, "127.0.0.1")})
        slurm = Controller(cluster, topology, site.hosts, plugin=plugin, more=CONF)
        return slurm.replay(jobs, steps)
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


def work():
    lab.require("slurmctld", "scontrol", "salloc", "scancel", "squeue")
    pick = random.Random(SEED)
    site = Site(pick)
    jobs = random_jobs(pick)
    steps, busy = planned(jobs)
    path = os.path.join(lab.tmpdir(), "capture")
    lab.replace_file(path, site.capture())
    daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
    exported = daemon.ctl("export", "slurm-tree").stdout
    costs = Costs(daemon)
    daemon.stop()
    bench.note(f"slurm: {HOSTS} hosts at {len(site.racks)} leaves in {PODS} pods, {site.elsewhere} not at the leaf of the plan; {JOBS} jobs, "
               f"{len(steps)} times when jobs start, {100 * busy:.0f} % of the nodes busy")
    variants = [("topology/none", ""), ("topology/tree", site.by_names()), ("topology/tree", exported)]
    with concurrent.futures.ThreadPoolExecutor(len(variants)) as pool:
        done = list(pool.map(lambda variant: replayed(site, jobs, steps, *variant), variants))
    rows = [figures(site, costs, places) for places in done]
    for number, (first, *others) in enumerate(zip(*rows)):
        what, baseline, unit = first
        bench.report("slurm", f"{what}, {VARIANTS[0]}", baseline, unit)
        for name, (_, value, _) in zip(VARIANTS[1:], others):
            bench.report("slurm", f"{what}, {name}", value, unit, VARIANTS[0], baseline,
                         to_reach=1 if number == 0 and name == VARIANTS[2] else 0)
    means = [row[0][1] for row in rows]
    if means[2] > min(means):
        raise lab.LabError(f"mean cost {means[2]:.4g} with {VARIANTS[2]}, and {min(means):.4g} with another topology")


if __name__ == "__main__":
    sys.exit(bench.main("slurm", work))
