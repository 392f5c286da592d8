"""bench_check_counters - how soon the counters of a leaf's ports are there, and how soon a dead subnet manager is told.

A simulated fat tree with 9,826 hosts, whose leaves have 34 ports. The counters by a caller of the control socket, each
time of another leaf; the subnet manager is killed at a random moment, in a fabric of 16 hosts, since it is one
question whatever the fabric, and an OpenSM of the large one needs the processors.
"""
import random
import time

import bench
import lab

ROUNDS = 15


def counters():
    sim = lab.Ibsim(lab.fabric("fattree3:34"))
    sim.sweep(timeout=600)
    daemon = lab.Fabricd(sim)
    spent = []
    for turn in range(ROUNDS):
        took, answer = bench.timed(lambda leaf=f"leaf{turn}-{turn}": daemon.control("counters", name=leaf))
        if not answer["ok"] or {port["state"] for port in answer["ports"]} != {"read"}:
            raise lab.LabError(f"counters: {answer}"[:300])
        spent.append(took)
    bench.note(f"check, counters of {len(answer['ports'])} ports: {bench.rounded(spent)} ms")
    bench.report("check", "9826 hosts, counters of a leaf, median", bench.median(spent), "ms", to_reach=100)
    daemon.stop()
    sim.quit()


def manager():
    sim = lab.Ibsim(lab.fabric("fattree2:4,2,4"))
    opensm = lab.OpenSM(sim)
    daemon = lab.Fabricd(sim, config={"changes": {"light_sweep": None}})
    chance, spent = random.Random(1), []
    for _ in range(5):
        lab.wait_for(lambda: daemon.status()["managers"] and daemon.status()["managers"][0]["answers"], 30, "the manager")
        time.sleep(chance.random())
        start = time.perf_counter()
        opensm.stop()
        lab.wait_for(lambda: not daemon.status()["managers"][0]["answers"], 30, "the manager to be gone")
        spent.append(time.perf_counter() - start)
        opensm = lab.OpenSM(sim)
    bench.note(f"check, dead subnet manager told after: {bench.rounded(spent)} s")
    bench.report("check", "dead subnet manager told, worst", max(spent), "s", to_reach=5)
    daemon.stop()
    opensm.stop()
    sim.quit()


def work():
    lab.require("ibsim", "opensm")
    manager()
    counters()


if __name__ == "__main__":
    raise SystemExit(bench.main("check", work))
