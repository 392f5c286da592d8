"""bench_export - the whole of `fabricctl export`, process and file included, of a fat tree of 9,826 hosts."""
import os
import statistics
import subprocess
import sys
import time

import bench
import lab

SPEC, TIMES = "fattree3:34", 15
REACH = {"slurm-tree": 50}  # milliseconds; the others are shown


def work():
    rundir = lab.tmpdir()
    subprocess.run([lab.program("mksnap"), SPEC, rundir], check=True)
    for name in ("slurm-tree", "slurm-block", "slurm-yaml", "flux-jgf", "k8s-labels", "volcano", "nodemap", "hostlist",
                 "rankfile"):
        took = []
        for _ in range(TIMES):
            begin = time.monotonic()
            subprocess.run([lab.program("fabricctl"), "--rundir", rundir, "export", name, "-o", os.path.join(rundir, name)],
                           check=True)
            took.append(1000 * (time.monotonic() - begin))
        bench.report("export", f"9826 hosts, {name}", statistics.median(took), "ms", to_reach=REACH.get(name, 0))


if __name__ == "__main__":
    sys.exit(bench.main("export", work))
