"""bench_change_start - does a year of history make a start slower? From exec of fabricd to serving, 9,826 hosts.

As bench_start: the stored generation is served, no sweep can bring anything. One store holds what was published once;
the other one as well, and 525,600 changes more, one a minute (bench_change_history writes them as fabricd does). They
are started in turn.
"""
import os
import subprocess

import bench
import bench_start
import lab

ROUNDS = 11


def fill_history(daemon):
    """How many generations the store has then."""
    done = subprocess.run([lab.program("bench_change_history"), "--fill", daemon.store], timeout=600,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise lab.LabError(f"bench_change_history --fill: {done.stderr.strip()}")
    return int(done.stdout)


def work():
    short, long = (bench_start.fill_store(lab.tmpdir()) for _ in range(2))
    generation = fill_history(long)
    bench.note(f"change: a store of {os.path.getsize(long.store) >> 20} MiB, {generation} generations, against "
               f"{os.path.getsize(short.store) >> 20} MiB")
    times = [(bench_start.start_once(short), bench_start.start_once(long, generation)) for _ in range(1 + ROUNDS)][1:]
    for i, what in enumerate(("start to serving", "start to a stock tool's answer")):
        without, beside = ([pair[which][i] for pair in times] for which in (0, 1))
        bench.note(f"change, {what}: {bench.rounded(beside)} ms; without history: {bench.rounded(without)} ms")
        bench.report("change", f"a year of history: {what}", bench.median(beside), "ms", "without history",
                     bench.median(without), 1.1 if i == 0 else 0)


if __name__ == "__main__":
    raise SystemExit(bench.main("change_start", work))
