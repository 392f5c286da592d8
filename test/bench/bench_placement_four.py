"""bench_placement_four - four jobs at once, one after the other by `fabricctl place`, beside random hosts: the slowest job's time in
SimGrid (`fabricctl simulate`)."""
import json
import random
import subprocess
import sys
import tempfile
import unittest

import bench
import bench_placement
import lab

RANDOM, JOBS = 50, 4


def ctl(folder, *args):
    done = lab.run([lab.program("fabricctl"), "--rundir", folder, *args])
    if done.returncode != 0:
        raise lab.LabError(done.stderr)
    return done.stdout


def simulated(folder, pattern, jobs):
    """Seconds until the last of the jobs has ended."""
    lists = ";".join(",".join(hosts) for hosts in jobs)
    return json.loads(ctl(folder, "--json", "simulate", "--pattern", pattern, "--hosts", lists))["seconds"]


def placed(folder, n, hosts, *args):
    """The hosts of each job, in the order of its ranks."""
    free, jobs = list(hosts), []
    for _ in range(JOBS):
        value = json.loads(ctl(folder, "--json", "place", "-n", str(n), "--from", ",".join(free), *args))
        jobs.append(value["hosts"])
        free = [host for host in free if host not in value["hosts"]]
    return jobs


def work():
    if subprocess.run(["sh", "-c", "command -v smpirun"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        raise unittest.SkipTest("SimGrid is not installed (Debian: libsimgrid-dev)")
    dice = random.Random(3)
    for name, kind, n in bench_placement.FABRICS:
        with tempfile.TemporaryDirectory(prefix="four.") as folder:
            subprocess.run([lab.program("mksnap"), kind, folder], check=True)
            hosts = sorted({device["host"] for device in json.loads(ctl(folder, "--json", "devices"))})
            chosen = placed(folder, n, hosts)
            for pattern in ("alltoall", "ring", "halo3", "allreduce"):
                ours, others = simulated(folder, pattern, chosen), []
                for _ in range(RANDOM):
                    some = dice.sample(hosts, JOBS * n)
                    others.append(simulated(folder, pattern, [some[at:at + n] for at in range(0, JOBS * n, n)]))
                bench.report("four", f"{name}, {pattern}: place", ours * 1e3, "ms", "best of 50", min(others) * 1e3, to_reach=1)
                bench.report("four", f"{name}, {pattern}: place", ours * 1e3, "ms", "median of 50", bench.median(others) * 1e3)


if __name__ == "__main__":
    sys.exit(bench.main("placement_four", work))
