"""bench_launch - what a launch costs with the component, and what it saves: Slurm and Open MPI in namespaces, a fabric of
9,826 hosts.

Launches with and without the component take turns, in an order that changes, so that what else the machine does falls
on both; compared are the lower quartiles, because all that disturbs a launch makes it longer. What the processes of a
job are told at their start is compared with what they would tell each other (stock_exchange.c).
"""
import os
import random
import statistics
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


def quartile(values):
    return statistics.quantiles(values, n=4)[0]


def compare(cluster, launcher):
    """16 processes that end at once."""
    taken = {True: [], False: []}
    for _ in range(LAUNCHES + 2):
        for installed in random.sample((True, False), 2):
            (cluster.install if installed else cluster.remove)(COMPONENT)
            taken[installed].append(launch(launcher, 16, ["/bin/true"]))
    cluster.install(COMPONENT)
    times = {installed: values[2:] for installed, values in taken.items()}
    bench.note(f"launch: {launcher.name} with {bench.rounded(times[True])}\n"
               f"        without {bench.rounded(times[False])}")
    bench.report("launch", f"{launcher.name} -np 16 of a program that ends", quartile(times[True]), "ms", "without",
                 quartile(times[False]), to_reach=1.03)


def told(launcher, processes, **options):
    """What stock_exchange has measured, column by column, a number of each process."""
    folder = lab.tmpdir()
    launch(launcher, processes, [lab.program("stock_exchange"), folder], **options)
    rows = []
    for rank in range(processes):
        with open(os.path.join(folder, str(rank)), encoding="ascii") as file:
            rows.append([float(word) for word in file.read().split()])
    return [list(column) for column in zip(*rows)]


def first_get(launcher):
    """A rank on another node, one process on each of two nodes; and all of 16 ranks, of which nothing may be sent."""
    firsts = [told(launcher, 2)[1][0] for _ in range(21)]
    bench.report("launch", f"{launcher.name}: first Get of a remote rank's", bench.median(firsts) / 1e3, "ms", to_reach=0.1)
    sent = sum(told(launcher, 16)[7])
    bench.report("launch", "... bytes sent for 16 ranks' coordinates", sent, "B")
    if sent != 0:
        raise lab.LabError(f"{launcher.name}: {sent:.0f} bytes were sent for what every process should have")


def instead(launcher):
    """64 processes on one node: when they know, and when they would have told each other."""
    runs = [told(launcher, 64, nodes=NODES[:1]) for _ in range(7)]

    def of(column):
        return bench.median([bench.median(run[column]) / 1e3 for run in runs])
    for when, column in (("64 local ranks' coordinates", 0), ("... all ranks beginning at once", 4)):
        whole, single, exchanged = of(column), of(1) + of(2) if column == 0 else of(5), of(3) if column == 0 else of(6)
        bench.report("launch", f"{launcher.name}: {when}", whole, "ms", "exchanged", exchanged, to_reach=5, at_least=True)
        bench.report("launch", "... by a Get for each rank", single, "ms", "exchanged", exchanged, at_least=True)


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
