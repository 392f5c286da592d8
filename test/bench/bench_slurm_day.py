"""bench_slurm_day - the jobs of bench_slurm, placed by Slurm's own tree selection on the exported topology, and by fabricd's
choice among the hosts that are free: the expected time of each job's patterns, and for some of them the time in SimGrid.

Each job alone is on the links. Slurm's ranks stand in the order of its node list, ours in the order of the choice.
"""
import os
import random
import subprocess
import sys
import unittest

import bench
import bench_placement
import bench_slurm
import lab

SIMULATED, LARGEST = 60, 32 # jobs in SimGrid, and their largest number of nodes


def chosen(plane, names, pattern, sharing, jobs, steps):
    """{job: its nodes}, each chosen among the nodes that are free when the job starts."""
    number = {name: at for at, name in enumerate(names)}
    free, places = set(range(len(names))), {}
    for step in steps:
        for job in step.ended:
            free |= {number[name] for name in places[job]}
        for job in step.started:
            hosts, _ = plane.place_for(pattern, jobs[job][1], sorted(free), sharing)
            places[job] = [names[host] for host in hosts]
            free -= set(hosts)
    return places


def patterns(pmixfab):
    return {"alltoall": pmixfab.Pattern.ALL_TO_ALL, "ring": pmixfab.Pattern.RING, "neighbours": pmixfab.Pattern.NEIGHBOURS,
            "allreduce": pmixfab.Pattern.DOUBLING}


def expected(plane, pmixfab, number, places):
    """{pattern: seconds of all jobs}"""
    return {word: sum(plane.traffic([([number[name] for name in hosts], pattern)], pmixfab.Sharing.ALONE).seconds
                      for hosts in places.values() if len(hosts) > 1) for word, pattern in patterns(pmixfab).items()}


def work():
    if subprocess.run(["sh", "-c", "command -v smpirun"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        raise unittest.SkipTest("SimGrid is not installed (Debian: libsimgrid-dev)")
    sys.path.insert(0, os.path.join(os.environ["FABRICD_BUILD"], "python"))
    import pmixfab
    lab.require("slurmctld", "scontrol", "salloc", "scancel", "squeue")
    pick = random.Random(bench_slurm.SEED)
    site = bench_slurm.Site(pick)
    jobs = bench_slurm.random_jobs(pick)
    steps, _ = bench_slurm.planned(jobs)
    path = os.path.join(lab.tmpdir(), "capture")
    lab.replace_file(path, site.capture())
    daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
    exported = daemon.ctl("export", "slurm-tree").stdout
    with pmixfab.open_rundir(daemon.rundir) as plane:
        names = [host.name for host in plane.hosts()]
        number = {name: at for at, name in enumerate(names)}
        slurm = bench_slurm.replayed(site, jobs, steps, "topology/tree", exported)
        ours = chosen(plane, names, pmixfab.Pattern.ANY_PATTERN, pmixfab.Sharing.SHARED, jobs, steps)
        theirs, own = (expected(plane, pmixfab, number, places) for places in (slurm, ours))
        for word, value in own.items():
            bench.report("slurm", f"a day, {word}: expected", value, "s", "Slurm's own", theirs[word])
        bench.report("slurm", "a day, all patterns: expected", sum(own.values()), "s", "Slurm's own", sum(theirs.values()), to_reach=0.8)
        simulate(plane, number, pmixfab, slurm, ours)
    daemon.stop()


def simulate(plane, number, pmixfab, slurm, ours):
    fabric = bench_placement.Fabric(plane)
    some = [job for job in sorted(slurm) if 1 < len(slurm[job]) <= LARGEST]
    some = random.Random(2).sample(some, min(SIMULATED, len(some)))
    times = {"slurm": 0.0, "ours": 0.0}
    for word in patterns(pmixfab):
        for job in some:
            folder = lab.tmpdir()
            bench_placement.traces(folder, word, len(slurm[job]))
            for whose, places in (("slurm", slurm), ("ours", ours)):
                times[whose] += bench_placement.simulated(fabric, folder, [number[name] for name in places[job]])
    bench.report("slurm", f"a day, {len(some)} jobs of all patterns: SimGrid", times["ours"], "s", "Slurm's own", times["slurm"], to_reach=0.8)


if __name__ == "__main__":
    sys.exit(bench.main("slurm_day", work))
