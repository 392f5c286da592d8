"""bench_sweep - a simulated subnet from the start of a sweep to the published snapshot, against ibnetdiscover.

What counts is `fabricd --once` on an empty store, from exec to exit: the sweep in its child process, names, costs,
coordinates, groups, the store with its first generation and the whole fabric as its history, the snapshot in
place. The baseline is ibnetdiscover with its defaults, which discovers and prints to /dev/null. Both take turns on
one simulator. Written down beside it: a running daemon that finds one cable changed, and its sweeps alone.
"""
import os
import subprocess

import bench
import lab

# What to generate, what to call it, a cable between switches, rounds: short runs suffer more from their neighbours.
FABRICS = [("fattree2:64,32,32", "2048 hosts", ("leaf1", "spine1"), 21),
           ("fattree3:34", "9826 hosts", ("leaf0-0", "mid0-0"), 5)]


def ibnetdiscover(sim):
    done = lab.run(["ibnetdiscover"], env=sim.env_for(), stdout=subprocess.DEVNULL, timeout=120, cwd=sim.dir)
    if done.returncode != 0:
        raise lab.LabError(f"ibnetdiscover: {done.stderr.strip()[-300:]}")


def once(daemon):
    done = daemon.run_once(timeout=120)
    if done.returncode != 0 or not os.path.exists(os.path.join(daemon.rundir, "ib0.snap")):
        raise lab.LabError(f"fabricd --once published nothing: {done.stderr.strip()[-300:]}")


def forget(daemon):
    """Leave neither store nor snapshot behind."""
    for path in [daemon.store + ending for ending in ("", "-wal", "-shm")] + [os.path.join(daemon.rundir, "ib0.snap")]:
        if os.path.exists(path):
            os.unlink(path)


def first_publication(sim, rounds):
    """All times of both, in milliseconds."""
    daemon = lab.Fabricd(sim, start=False)
    ours, theirs = [], []
    for _ in range(1 + rounds):
        forget(daemon)
        theirs.append(bench.timed(lambda: ibnetdiscover(sim))[0])
        ours.append(bench.timed(lambda: once(daemon))[0])
    return ours[1:], theirs[1:]  # the first of each warms up


def running_daemon(sim, cable, rounds):
    """All times of refreshes that find one cable changed, and of the sweeps in them alone."""
    daemon = lab.Fabricd(sim, config={"changes": {"flap_count": 0}})
    whole, alone = [], []
    place = cable[0], sim.cable(*cable)
    for turn in range(rounds):
        (sim.relink if turn % 2 else sim.unlink)(*place)
        spent, answer = bench.timed(daemon.refresh)
        if not answer["changed"]:
            raise lab.LabError(f"refresh: the cable between {cable[0]} and {cable[1]} was not seen to change")
        whole.append(spent)
        alone.append(daemon.status()["sweep_ms"])
    daemon.stop()
    return whole, alone


def work():
    lab.require("ibsim", "opensm", "ibnetdiscover")
    for spec, name, cable, rounds in FABRICS:
        sim = lab.Ibsim(lab.fabric(spec))
        sim.sweep(timeout=600)
        ours, theirs = first_publication(sim, rounds)
        bench.note(f"sweep, {name}: fabricd {bench.rounded(ours)}; ibnetdiscover {bench.rounded(theirs)} ms")
        whole, alone = running_daemon(sim, cable, rounds)
        base = bench.median(theirs)
        for figure, values, to_reach in [("fabricd --once, empty store", ours, 0.6),
                                         ("running, one cable changed", whole, 0), ("sweep alone", alone, 0)]:
            bench.report("sweep", f"{name}, {figure}", bench.median(values), "ms", "ibnetdiscover", base, to_reach)
        sim.quit()


if __name__ == "__main__":
    raise SystemExit(bench.main("sweep", work))
