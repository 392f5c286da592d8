"""bench_placement - expected times of communication patterns, and choices by them, against SimGrid (smpirun -replay).

For each fabric and pattern: hosts of a job at random, its expected time, and the time in a simulation of flows on the routes
of OpenSM, which sweeps the fabric in ibsim. Then the choice of place_for(), that of place(), and the fastest of 50 random
ones. ROUTING=ENGINE in the environment: another routing engine of OpenSM than minhop.
"""
import collections
import os
import random
import subprocess
import sys
import tempfile
import unittest

import bench

import lab

RANDOM, CHOICES, BYTES = 200, 50, 1 << 20
FABRICS = (("tree of 64, 2:1", "fattree2:8,4,8", 16), ("tree of 432", "fattree3:12", 24),
           ("dragonfly of 342", "dragonfly:3,6,3", 24), ("torus of 512", "torus:8,8,8:1", 24))


class Fabric:
    """A plane, and a route by destination for each pair of hosts."""

    def __init__(self, plane, spec):
        self.plane, self.hosts = plane, list(plane.hosts())
        devices = [plane.device(host.devices[0]) for host in self.hosts]
        self.leaf = [device.switch_index for device in devices]
        self.rate = [device.mbps * 125000 for device in devices]
        self.ways, self.rates = collections.defaultdict(list), {}
        for index, link in enumerate(plane.links()):
            if link.a.is_switch and link.b.is_switch:
                self.ways[link.a.index].append((link.a.port, link.b.index, f"{index}a"))
                self.ways[link.b.index].append((link.b.port, link.a.index, f"{index}b"))
                self.rates[f"{index}a"] = self.rates[f"{index}b"] = link.mbps * 125000
        self.next = self.tables(spec)

    def tables(self, spec):
        """For each host, the way that each switch forwards to."""
        sim = lab.Ibsim(lab.fabric(spec))
        engine = ["-R", os.environ["ROUTING"]] if "ROUTING" in os.environ else []
        env = dict(sim.env_for(sim.hosts[0]), OSM_TMP_DIR=sim.dir, OSM_CACHE_DIR=sim.dir)
        done = lab.run([lab.find_command("opensm"), "-o", "-D", "0x43", "-f", os.path.join(sim.dir, "opensm.log"), *engine],
                       env=env, cwd=sim.dir)
        sim.quit()
        if done.returncode != 0:
            raise lab.LabError(f"opensm: {done.stderr[-500:]}")
        host_of = {self.plane.device(host.devices[0]).port_guid: i for i, host in enumerate(self.hosts)}
        switch_of = {switch.guid: switch.index for switch in self.plane.switches()}
        result, ways = [{} for _ in self.hosts], {}
        with open(os.path.join(sim.dir, "opensm-lfts.dump"), encoding="utf-8") as file:
            for line in file:
                words = line.split()
                if line.startswith("Unicast"):
                    switch = switch_of[int(words[words.index("guid") + 1], 16)]
                    ways = {way[0]: way for way in self.ways[switch]}
                elif line.startswith("0x") and "Channel Adapter" in line and int(words[1]) in ways:
                    result[host_of[int(words[words.index("portguid") + 1].rstrip(":"), 16)]][switch] = ways[int(words[1])]
        return result

    def route(self, a, b):
        links, switch = [f"out{a}"], self.leaf[a]
        while switch != self.leaf[b]:
            _, switch, link = self.next[b][switch]
            links.append(link)
        return [*links, f"in{b}"]

    def platform(self, hosts):
        """The part of the platform that these hosts use."""
        routes = {(a, b): self.route(a, b) for a in hosts for b in hosts if a != b}
        links = {link for route in routes.values() for link in route}
        rate = {**self.rates, **{f"{way}{host}": self.rate[host] for host in hosts for way in ("out", "in")}}
        return "".join((
            '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">'
            '<zone id="fabric" routing="Full">\n', *(f'<host id="h{host}" speed="1Gf"/>\n' for host in hosts),
            *(f'<link id="{link}" bandwidth="{rate[link]}Bps" latency="100ns"/>\n' for link in sorted(links)),
            *(f'<route src="h{a}" dst="h{b}" symmetrical="NO">' + "".join(f'<link_ctn id="{link}"/>' for link in route)
              + "</route>\n" for (a, b), route in routes.items()), "</zone></platform>\n"))


def box(n):
    return min(((a, b, c) for a in range(1, n + 1) for b in range(1, a + 1) for c in range(1, b + 1) if a * b * c == n),
               key=lambda s: s[0] * s[1] + s[0] * s[2] + s[1] * s[2])


def peers(pattern, n):
    """Of each round, for each rank the ranks that it sends to and receives from."""
    if pattern == "alltoall":
        return [[([q for q in range(n) if q != r],) * 2 for r in range(n)]]
    if pattern == "ring":
        return [[([(r + 1) % n], [(r - 1) % n]) for r in range(n)]]
    if pattern == "allreduce":
        return [[([r ^ 1 << k],) * 2 if r ^ 1 << k < n else ([], []) for r in range(n)] for k in range((n - 1).bit_length())]
    _, b, c = box(n)
    place = [(r // c // b, r // c % b, r % c) for r in range(n)]
    near = [[q for q in range(n) if sum(abs(x - y) for x, y in zip(place[r], place[q])) == 1] for r in range(n)]
    return [[(near[r],) * 2 for r in range(n)]]


def traces(folder, pattern, n):
    """Each rank receives and sends all messages of a round at the same time."""
    for r in range(n):
        with open(os.path.join(folder, f"rank{r}"), "w", encoding="ascii") as file:
            file.write(f"{r} init\n")
            for one in peers(pattern, n):
                to, sources = one[r]
                file.writelines(f"{r} irecv {q} 0 {BYTES} 6\n" for q in sources)
                file.writelines(f"{r} isend {q} 0 {BYTES} 6\n" for q in to)
                file.write(f"{r} waitall\n")
            file.write(f"{r} finalize\n")
    with open(os.path.join(folder, "traces"), "w", encoding="ascii") as file:
        file.writelines(os.path.join(folder, f"rank{r}") + "\n" for r in range(n))


def simulated(fabric, folder, hosts):
    """Seconds of the traces on these hosts."""
    for name, text in (("platform.xml", fabric.platform(hosts)), ("hosts", "".join(f"h{host}\n" for host in hosts))):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)
    # with its other ways to update flows, SimGrid 3.32 puts more on a link than the link's rate
    done = subprocess.run(["smpirun", "--cfg=network/optim:Full", "-np", str(len(hosts)), "-hostfile", "hosts", "-platform", "platform.xml",
                           "--cfg=smpi/host-speed:1Gf", "--cfg=network/crosstraffic:0", "-replay", os.path.join(folder, "traces")],
                          cwd=folder, capture_output=True, text=True, check=False)
    times = [line.split()[-1] for line in done.stderr.splitlines() + done.stdout.splitlines() if "Simulation time" in line]
    if done.returncode != 0 or len(times) != 1:
        raise lab.LabError(f"smpirun: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    return float(times[0])


def some_hosts(fabric, n, dice):
    """Hosts out of a run of consecutive ones or of a random number of leaves, at random or in the order of order()."""
    leaves = sorted(set(fabric.leaf))
    of = {leaf: [host for host, at in enumerate(fabric.leaf) if at == leaf] for leaf in leaves}
    size = max(len(hosts) for hosts in of.values())
    free = []
    while len(free) < n:
        if dice.random() < 0.5:
            first, length = dice.randrange(len(fabric.leaf)), round(n * 4 ** dice.random())
            free = range(first, min(first + length, len(fabric.leaf)))
        else:
            used = dice.sample(leaves, min(len(leaves), round(n / size * size ** dice.random() + 0.5)))
            free = [host for leaf in used for host in of[leaf]]
    hosts = dice.sample(free, n)
    return fabric.plane.order(hosts) if dice.random() < 0.5 else hosts


def ranks(values):
    """Equal values get their mean rank."""
    order, result = sorted(range(len(values)), key=values.__getitem__), [0.0] * len(values)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] > values[order[start]] * (1 + 1e-6):
            for i in order[start:end]:
                result[i] = (start + end - 1) / 2
            start = end
    return result


def correlation(a, b):
    """Spearman's; None if all values of one are equal."""
    x, y = ranks(a), ranks(b)
    middle = (len(a) - 1) / 2
    spread = [sum((v - middle) ** 2 for v in values) for values in (x, y)]
    return None if 0 in spread else sum((v - middle) * (w - middle) for v, w in zip(x, y)) / (spread[0] * spread[1]) ** 0.5


def measure(fabric, name, word, pattern, n, folder, dice, random_jobs):
    import pmixfab
    traces(folder, word, n)
    jobs = [some_hosts(fabric, n, dice) for _ in range(random_jobs)]
    expected = [fabric.plane.traffic([(hosts, pattern)], pmixfab.Sharing.ALONE, BYTES).seconds for hosts in jobs]
    measured = [simulated(fabric, folder, hosts) for hosts in jobs]
    rho = correlation(expected, measured)
    bench.report("placement", f"{name}, {word}: rank correlation", 1 if rho is None else rho, "", to_reach=0.9, at_least=True)
    bench.note(f"{name}, {word}: {len(set(f'{v:.4g}' for v in expected))} different expected times, simulated "
               f"{min(measured) * 1e3:.3g} to {max(measured) * 1e3:.3g} ms, simulated / expected "
               f"{bench.rounded(sorted(m / e for m, e in zip(measured, expected))[::max(1, random_jobs // 4)])}")
    hosts, _ = fabric.plane.place_for(pattern, n)
    ours, by_sum = simulated(fabric, folder, hosts), simulated(fabric, folder, fabric.plane.place(n).hosts)
    best = min(measured[:CHOICES])
    bench.report("placement", f"{name}, {word}: place --for", ours * 1e3, "ms", "best of 50", best * 1e3, to_reach=1.05)
    bench.report("placement", f"{name}, {word}: place --for", ours * 1e3, "ms", "best known",
                 min(ours, by_sum, *measured) * 1e3, to_reach=1.05)
    bench.report("placement", f"{name}, {word}: place --for", ours * 1e3, "ms", "place", by_sum * 1e3)


def work():
    if subprocess.run(["sh", "-c", "command -v smpirun"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        raise unittest.SkipTest("SimGrid is not installed (Debian: libsimgrid-dev)")
    lab.require("opensm")
    lab.require("ibsim")
    sys.path.insert(0, os.path.join(os.environ["FABRICD_BUILD"], "python"))
    import pmixfab
    patterns = {"alltoall": pmixfab.Pattern.ALL_TO_ALL, "ring": pmixfab.Pattern.RING,
                "neighbours": pmixfab.Pattern.NEIGHBOURS, "allreduce": pmixfab.Pattern.DOUBLING}
    dice, random_jobs = random.Random(5), int(os.environ.get("PLACEMENTS", RANDOM))
    for name, kind, n in FABRICS:
        with tempfile.TemporaryDirectory(prefix="placement.") as folder:
            subprocess.run([lab.program("mksnap"), kind, folder], check=True)
            with pmixfab.open_rundir(folder) as plane:
                fabric = Fabric(plane, kind)
                for word, pattern in patterns.items():
                    measure(fabric, name, word, pattern, n, folder, dice, random_jobs)


if __name__ == "__main__":
    sys.exit(bench.main("placement", work))
