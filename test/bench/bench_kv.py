"""bench_kv - what fabric-host's data cost its clients: publish, lookup, and fences beside those of Open MPI's mpirun;
and what many jobs leave behind.

A launch of each takes its turn, so that what else the machine does falls on both. Of one client's figures the best
round counts: who waits for a processor that others use waits for 4 ms or more, with the store and without it.
"""
import os
import random

import bench
import lab
from test_host import OK, Host, said

PUBLISHES, UNDER_WAY, FENCES, PROCESSES, ROUNDS, JOBS = 5000, 16, 200, 64, 9, 1000


def figures(done, action):
    """What rank 0 has measured."""
    what = said(done.stdout).get((0, action), "nothing")
    if done.returncode != 0 or not what.startswith(f"{OK} "):
        raise lab.LabError(f"{action}: {what}: {done.stderr[-500:]}")
    return [float(word) for word in what.split()[1:]]


def publish():
    """One client publishes and looks up: each after the answer to the one before, of what ends with it, with its job, and with
    the session; and several under way at once, as one that has much to publish does. One after the other it is a matter of how
    fast processors wake up, so the library's own questions, which wake the same threads, are asked in between."""
    best, rates, beside = {}, [], []
    for _ in range(ROUNDS):
        for persistence in ("proc", "app", "session"):
            action, many = f"time={PUBLISHES},{persistence}", f"rate={PUBLISHES},{persistence},{UNDER_WAY}"
            done = Host(start=False).run(1, action, many)
            rate, median, slow, questions = figures(done, action)
            others = best.get(persistence, (median, slow))
            best[persistence] = (min(median, others[0]), min(slow, others[1]))
            if persistence == "app":
                rates += figures(done, many)
                beside.append((rate / questions, rate, questions))
    bench.note(f"publish and lookup, {UNDER_WAY} under way: {bench.rounded(rates)}; one after the other, and questions: "
               + ", ".join(f"{rate:.0f} {questions:.0f}" for _, rate, questions in beside))
    bench.report("kv", f"publish and lookup, {UNDER_WAY} under way", max(rates), "1/s", to_reach=10000, at_least=True)
    _, rate, questions = sorted(beside)[len(beside) // 2]
    bench.report("kv", "... one after the other", rate, "1/s", "PMIx_Get of nothing", questions)
    bench.report("kv", "... median", best["app"][0] / 1e3, "ms", to_reach=0.2)
    bench.report("kv", "... 99 of 100, session persistence", best["session"][1] / 1e3, "ms", to_reach=2)
    bench.report("kv", "... and beside what is not stored", best["session"][1] / 1e3, "ms", "not stored", best["proc"][1] / 1e3)


def mpirun(*actions):
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return lab.run(["mpirun", "--oversubscribe", "-np", str(PROCESSES), lab.program("stock_member"), *actions], env=env,
                   cwd=lab.tmpdir())


def fence():
    """mpirun's server is the same library, so what differs is the host. The limit is what two runs of one differ by."""
    for figure, action in ((f"fence of {PROCESSES} clients", f"fencetime={FENCES}"),
                           ("... which put 1 KiB each", f"fencetime={FENCES},1024")):
        times = {True: [], False: []}
        for _ in range(ROUNDS):
            for ours in random.sample((True, False), 2):
                done = (Host(start=False).run(PROCESSES, "fence", action) if ours else mpirun("fence", action))
                times[ours].append(figures(done, action)[0] / 1e3)
        bench.note(f"{figure}: ours {bench.rounded(times[True])}; mpirun {bench.rounded(times[False])}")
        bench.report("kv", figure, bench.median(times[True]), "ms", "mpirun", bench.median(times[False]), to_reach=1.1)


def held(host):
    """What the host holds: KiB of memory, and descriptors."""
    with open(f"/proc/{host.process.pid}/status", encoding="ascii") as file:
        resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
    return resident, len(os.listdir(f"/proc/{host.process.pid}/fd"))


def spawn():
    """Jobs one after the other, by one tool after another; the first ones fill the library's bounded list of events."""
    host = Host()

    def spawn_jobs(n):
        done = host.tool("listen", f"spawns={n},4,-,/bin/true", timeout=600)
        if f"spawns={n},4,-,/bin/true: {OK}" not in done.stdout:
            raise lab.LabError(f"spawn: {done.stdout[-200:]}{done.stderr[-500:]}")
    spawn_jobs(JOBS)
    resident, descriptors = held(host)
    took, _ = bench.timed(lambda: spawn_jobs(JOBS))
    lab.wait_for(lambda: held(host)[1] <= descriptors, what="the descriptors to be as before")
    bench.report("kv", f"{JOBS} jobs of 4 processes, of one", took / JOBS, "ms")
    bench.report("kv", "... memory afterwards", held(host)[0], "KiB", "before", resident, to_reach=1.02)
    bench.report("kv", "... descriptors afterwards", held(host)[1], "", "before", descriptors, to_reach=1)
    host.stop()


def work():
    publish()
    fence()
    spawn()


if __name__ == "__main__":
    raise SystemExit(bench.main("kv", work))
