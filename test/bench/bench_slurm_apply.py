"""bench_slurm_apply - a change of 40 hosts among 2,000: the longest wait of a client of slurmctld while `fabricctl slurm apply`
moves them, beside a reconfigure. With Slurm before 25.05 apply reconfigures as well."""
import os
import sys
import threading
import time

import bench
import lab
import launchers
import test_slurm_kept as kept

LEAVES, HOSTS, MOVED, TIMES = 100, 20, 40, 5


def texts():
    """topology.conf, and the same with the first host of each of 40 leaves at the next leaf."""
    leaves = [[f"n{leaf * HOSTS + host:04}" for host in range(HOSTS)] for leaf in range(LEAVES)]
    moved = [list(leaf) for leaf in leaves]
    for leaf in range(0, 2 * MOVED, 2):
        moved[leaf + 1].append(moved[leaf].pop(0))
    return ["".join(f"SwitchName=leaf{leaf} Nodes={','.join(hosts)}\n" for leaf, hosts in enumerate(of)) +
            f"SwitchName=top Switches=leaf[0-{LEAVES - 1}]\n" for of in (leaves, moved)]


class Client(threading.Thread):
    """Asks slurmctld again and again; the longest wait in milliseconds."""

    def __init__(self, slurm):
        super().__init__()
        self.slurm, self.longest, self.ended = slurm, 0.0, False

    def run(self):
        while not self.ended:
            begin = time.monotonic()
            self.slurm.ask("show", "partition")
            self.longest = max(self.longest, 1000 * (time.monotonic() - begin))

    def during(self, work):
        self.start()
        took, done = bench.timed(work)
        self.ended = True
        self.join()
        return took, self.longest, done


def work():
    lab.require("slurmctld", "scontrol", "munged")
    cluster = launchers.Cluster([])
    try:
        measure(cluster)
    finally:
        cluster.stop()


def measure(cluster):
    text = texts()
    slurm = kept.Controller(cluster, text[0], [f"n{n:04}" for n in range(LEAVES * HOSTS)] + list(kept.REAL))
    exported = os.path.join(lab.tmpdir(), "topology.conf")
    lab.replace_file(exported, text[0])
    slurm.apply(exported)
    quiet, applied, reconfigured = [], [], []
    for number in range(TIMES):
        quiet.append(Client(slurm).during(lambda: time.sleep(1)))
        lab.replace_file(exported, text[(number + 1) % 2])
        applied.append(Client(slurm).during(lambda: slurm.apply(exported, "--rate", "1000")))
        if applied[-1][2].returncode != 0:
            raise lab.LabError(applied[-1][2].stderr)
        reconfigured.append(Client(slurm).during(lambda: slurm.ask("reconfigure")))
    slurm.stop()
    name = "slurm"
    bench.note(f"Slurm {'%d.%02d' % kept.version()}")
    bench.report(name, f"{MOVED} of 2000 hosts move: apply", bench.median(row[0] for row in applied), "ms")
    bench.report(name, "longest wait of a client meanwhile", bench.median(row[1] for row in applied), "ms", "a reconfigure",
                 bench.median(row[1] for row in reconfigured))
    bench.report(name, "... while nothing happens", bench.median(row[1] for row in quiet), "ms")


if __name__ == "__main__":
    sys.exit(bench.main("slurm_apply", work))
