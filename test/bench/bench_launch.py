"""bench_launch - what a launch costs with the component, and what it saves: Slurm and Open MPI in namespaces, a fabric of
9,826 hosts.

Launches with and without the component take turns, in an order that changes, so that what else the machine does falls
on both. What the processes of a job are told at their start is compared with what they would tell each other.
"""
import os
import random
import time

import bench
import lab
import launchers

FABRIC = "fattree3:34"
NODES = ["node0001", "node5000"]
COMPONENT = os.path.join(lab.BUILD, "lib", "pmix", "pmix_mca_pmdl_fabricd.so")
LAUNCHES = 60


def launch(launcher, processes, command, **options):
    """Milliseconds of a whole launch on the first nodes of the cluster."""
    start = time.monotonic()
    done = launcher.run(processes // len(options.get("nodes") or NODES), command, **options)
    taken = (time.monotonic() - start) * 1e3
    if done.returncode != 0:
        raise lab.LabError(f"{launcher.name}: {done.stderr[-500:]}")
    return taken


def compare(cluster, launcher):
    """16 processes that end at once; medians over pairs of launches."""
    taken = {True: [], False: []}
    for _ in range(LAUNCHES + 2):
        for installed in random.sample((True, False), 2):
            (cluster.install if installed else cluster.remove)(COMPONENT)
            taken[installed].append(launch(launcher, 16, ["/bin/true"]))
    cluster.install(COMPONENT)
    times = {installed: values[2:] for installed, values in taken.items()}
    bench.note(f"launch: {launcher.name} with {bench.rounded(times[True])}\n"
               f"        without {bench.rounded(times[False])}")
    bench.report("launch", f"{launcher.name} -np 16 of a program that ends", bench.median(times[True]), "ms", "without",
                 bench.median(times[False]), to_reach=1.03)


def told(launcher, processes, **options):
    """What stock_exchange has measured in each process: first Get, all Gets, exchange, bytes sent."""
    folder = lab.tmpdir()
    launch(launcher, processes, [lab.program("stock_exchange"), folder], **options)
    rows = []
    for rank in range(processes):
        with open(os.path.join(folder, str(rank)), encoding="ascii") as file:
            rows.append([float(word) for word in file.read().split()])
    return [list(column) for column in zip(*rows)]


def first_get(launcher):
    """A rank on another node, 8 processes on each of two nodes."""
    firsts, sent = [], 0
    for _ in range(5):
        columns = told(launcher, 16)
        firsts += columns[0][:8]  # the others are on the last rank's node
        sent += sum(columns[3])
    bench.report("launch", f"{launcher.name}: first Get of a remote rank's", bench.median(firsts) / 1e3, "ms", to_reach=0.1)
    bench.report("launch", "... bytes sent for all ranks' coordinates", sent, "B")
    if sent != 0:
        raise lab.LabError(f"{launcher.name}: {sent:.0f} bytes were sent for what every process should have")


def instead(launcher):
    """64 processes on one node: what they know, against what they would have to tell each other."""
    known, exchanged = [], []
    for _ in range(5):
        columns = told(launcher, 64, nodes=NODES[:1])
        known.append(bench.median(columns[1]) / 1e3)
        exchanged.append(bench.median(columns[2]) / 1e3)
    bench.report("launch", f"{launcher.name}: 64 local ranks have all coordinates", bench.median(known), "ms", "exchanged",
                 bench.median(exchanged), to_reach=5, at_least=True)


def work():
    cluster = launchers.Cluster(NODES)
    try:
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, lab.fabric(FABRIC, "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})
        cluster.publish(daemon)
        cluster.install(COMPONENT)
        for launcher in (launchers.OpenMpi(cluster), launchers.Slurm(cluster)):
            first_get(launcher)
            instead(launcher)
            compare(cluster, launcher)
        daemon.stop()
    finally:
        cluster.stop()


if __name__ == "__main__":
    raise SystemExit(bench.main("launch", work))
