"""bench_change_events - how soon a change that is swept is told, and what a storm of a hundred changes comes to.

A simulated fat tree with 9,826 hosts, every port active. One cable: pulled or put back, then a sweep by request;
measured is from the moment at which the daemon has the finished sweep (last_sweep of its status) to the event in a
connected tool that knows nothing but PMIx. The storm: a hundred cables of as many leaves pulled within one second under
the default light sweep and debounce, and put back; counted are generations, changes told, and the daemon's memory. A
first storm is not counted: it is what the memory is compared with.
"""
import datetime
import re
import time

import bench
import lab

FABRIC, NAME = "fattree3:34", "9826 hosts"
ROUNDS, STORM = 11, 100


def seconds(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc).timestamp()


def memory(daemon):
    """MiB that are the daemon's own."""
    with open(f"/proc/{daemon.process.pid}/smaps_rollup", encoding="ascii") as file:
        return int(re.search(r"^Private_Dirty: +(\d+)", file.read(), re.MULTILINE).group(1)) / 1024


def told(sim, daemon):
    """Milliseconds from each finished sweep to the event."""
    watch = daemon.watch()
    watch.wait("^watching$")
    port, spent = sim.cable("leaf0-0", "mid0-0"), []
    for turn in range(ROUNDS + 1):
        generation, start = daemon.status()["generation"], len(watch.output.text)
        (sim.relink if turn % 2 else sim.unlink)("leaf0-0", port)
        asked = daemon.ask("refresh", 120)
        watch.wait(f"^PMIX_FABRIC_UPDATED .*generation {generation + 1} ", start, 120)
        now = time.time()
        daemon.answer(asked)
        spent.append((now - seconds(daemon.status()["last_sweep"])) * 1e3)
    watch.stop()
    return spent[1:]  # the first warms up


def storm(sim, daemon, hand, cables, kind):
    """Cables pulled or put back within a second: how many generations it made. LabError where one is not told."""
    first = daemon.status()["generation"]
    spent, _ = bench.timed(lambda: [hand(*cable) for cable in cables])
    if spent > 1000:
        bench.note(f"change: the simulator needed {spent:.0f} ms for {len(cables)} changes")

    def all_told():
        now = daemon.status()["generation"]
        changes = daemon.ctl_json("diff", str(first), str(now))["changes"] if now > first else []
        return sum(change["kind"] == kind for change in changes) >= len(cables) and (now, changes)
    now, changes = lab.wait_for(all_told, 120, f"{len(cables)} changes")
    if len(changes) != len(cables):
        raise lab.LabError(f"{len(cables)} cables are told as {len(changes)} changes")
    time.sleep(3)  # nothing comes after it
    if daemon.status()["generation"] != now:
        raise lab.LabError("something more was published after the storm")
    return now - first


def work():
    lab.require("ibsim", "opensm")
    sim = lab.Ibsim(lab.fabric(FABRIC))
    sim.sweep(timeout=600)
    daemon = lab.Fabricd(sim, config={"changes": {"flap_count": 0}})
    spent = told(sim, daemon)
    bench.note(f"change, from the finished sweep to UPDATED: {bench.rounded(spent)} ms")
    bench.report("change", f"{NAME}, finished sweep to UPDATED", bench.median(spent), "ms", to_reach=40)
    daemon.stop()

    daemon = lab.Fabricd(sim, config={"changes": {"light_sweep": 1, "flap_count": 0}})
    lab.wait_for(lambda: daemon.status()["light_sweeps"] > 1, 60, "light_sweeps")
    cables = [(f"leaf{turn // 17}-{turn % 17}", 18 + turn % 17) for turn in range(STORM)]
    generations, used = [], []
    for _ in range(3):
        generations.append(storm(sim, daemon, sim.unlink, cables, "link-lost"))
        generations.append(storm(sim, daemon, sim.relink, cables, "inactive"))  # no subnet manager runs
        used.append(memory(daemon))
    bench.report("change", f"{NAME}, {STORM} changes in 1 s: generations", max(generations), "", to_reach=2)
    bench.report("change", f"{NAME}, {STORM} changes in 1 s: memory", max(used[1:]), "MiB", "a storm before", used[0], 1.1)
    daemon.stop()
    sim.quit()


if __name__ == "__main__":
    raise SystemExit(bench.main("change_told", work))
