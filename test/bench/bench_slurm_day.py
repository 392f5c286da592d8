"""bench_slurm_day - the jobs of bench_slurm, placed by Slurm's own tree selection on the exported topology, and by fabricd among the
hosts that are free (`place`, and `place --for any --shared`): the times of communication patterns while all running jobs communicate.

The times are those of pmixfab_traffic(), which bench_placement compares with SimGrid, for the jobs that start at every eighth step.
Slurm's ranks stand in the order of its node list, ours in the order of the choice.
"""
import os
import random
import sys

import bench
import bench_slurm
import lab

EVERY = 8  # steps


def chosen(plane, names, jobs, steps, choose):
    """{job: its nodes}, each chosen among the nodes that are free when the job starts."""
    number = {name: at for at, name in enumerate(names)}
    free, places = set(range(len(names))), {}
    for step in steps:
        for job in step.ended:
            free |= {number[name] for name in places[job]}
        for job in step.started:
            hosts = choose(plane, jobs[job][1], sorted(free))
            places[job] = [names[host] for host in hosts]
            free -= set(hosts)
    return places


def moments(steps, places):
    """[(the jobs that start, the hosts of all running jobs)] of some steps."""
    running, found = {}, []
    for at, step in enumerate(steps):
        for job in step.ended:
            running.pop(job, None)
        running.update((job, places[job]) for job in step.started)
        if at % EVERY == EVERY - 1:
            found.append((step.started, {job: hosts for job, hosts in running.items() if len(hosts) > 1}))
    return found


def expected(plane, number, found, pattern):
    """Seconds of all jobs that start, each with the others that run."""
    seconds = 0
    for started, running in found:
        jobs = {job: ([number[name] for name in hosts], pattern) for job, hosts in running.items()}
        for job in set(started) & set(jobs):
            seconds += plane.traffic([jobs[job], *(other for key, other in jobs.items() if key != job)]).seconds
    return seconds


def work():
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
    slurm = bench_slurm.replayed(site, jobs, steps, "topology/tree", daemon.ctl("export", "slurm-tree").stdout)
    patterns = {"alltoall": pmixfab.Pattern.ALL_TO_ALL, "ring": pmixfab.Pattern.RING, "neighbours": pmixfab.Pattern.NEIGHBOURS,
                "allreduce": pmixfab.Pattern.DOUBLING}
    with pmixfab.open_rundir(daemon.rundir) as plane:
        names = [host.name for host in plane.hosts()]
        number = {name: at for at, name in enumerate(names)}
        ways = {"place": lambda plane, n, free: plane.place(n, free).hosts,
                "place --for any --shared": lambda plane, n, free: plane.place_for(pmixfab.Pattern.ANY_PATTERN, n, free,
                                                                                 pmixfab.Sharing.SHARED)[0]}
        theirs = moments(steps, slurm)
        before = {word: expected(plane, number, theirs, pattern) for word, pattern in patterns.items()}
        for way, choose in ways.items():
            ours = moments(steps, chosen(plane, names, jobs, steps, choose))
            times = {word: expected(plane, number, ours, pattern) for word, pattern in patterns.items()}
            for word, value in times.items():
                bench.report("slurm", f"a day, {word}: {way}", value, "s", "Slurm's own", before[word])
            bench.report("slurm", f"a day, all: {way}", sum(times.values()), "s", "Slurm's own", sum(before.values()),
                         to_reach=0.8 if way == "place" else 0)
    daemon.stop()


if __name__ == "__main__":
    sys.exit(bench.main("slurm_day", work))
