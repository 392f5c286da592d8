"""bench_change_light_sweep - what a light sweep costs against a sweep, and how soon a pulled cable is known.

A simulated fat tree with 9,826 hosts, every port active, no subnet manager afterwards: it would work at the same
time, on the same processors. Packets and time of a light sweep and of a sweep are the probe's own, in one process each; so
are those of reading anew what one cable has changed. The way from the cable to PMIX_FABRIC_UPDATED is that of a
daemon with the default pace: each time another cable, at a random moment between two light sweeps.
"""
import os
import random
import re
import time

import bench
import lab

FABRIC, NAME = "fattree3:34", "9826 hosts"
ROUNDS = 15


class Tool:
    """monitor_tool (test/integration), command by command."""

    def __init__(self, sim):
        binary = lab.program("monitor_tool")
        self.watch = lab.Watch([binary, "ibnetdisc"], sim.env_for(None, binary), talk=True, cwd=sim.dir)

    def ask(self, command):
        start = len(self.watch.output.text)
        end = self.watch.say(command, r"^\.$", timeout=120).start()
        return self.watch.output.text[start:end]


def number(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    if not found:
        raise lab.LabError(f"no {pattern} in {text[-300:]}")
    return float(found.group(1))


def probe_alone(sim):
    """Milliseconds and packets of a sweep, of a light sweep, and of reading one changed cable anew."""
    tool = Tool(sim)
    tool.ask("run")
    swept = [tool.ask("same") for _ in range(5)]
    looked = [tool.ask("poll") for _ in range(ROUNDS)]
    sweep = bench.median([number(r"^same (\S+)", text) for text in swept])
    packets = number(r"discovered with (\d+) packets", swept[-1])
    look = bench.median([number(r"^poll (\S+)", text) for text in looked])
    most = max(number(r"^poll \S+ (\d+)", text) for text in looked)
    sim.unlink("leaf0-0", sim.cable("leaf0-0", "mid0-0"))
    tool.ask("poll")
    again = number(r"^again (\S+)", tool.ask("again"))
    if not tool.ask("same").lstrip().splitlines()[-1].startswith("same"):
        raise lab.LabError("what was read anew is not what a sweep sees")
    sim.relink("leaf0-0", sim.cable("leaf0-0", "mid0-0"))
    tool.watch.stop()
    sim.sweep(timeout=600)
    return sweep, packets, look, most, again


def processor_seconds(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def idle(daemon, seconds=20):
    """Part of a processor, in percent, that the daemon and its look need where nothing changes."""
    pids = [daemon.process.pid, *children(daemon.process.pid)]
    before = processor_seconds(pids)
    time.sleep(seconds)
    return (processor_seconds(pids) - before) / seconds * 100


def pulled(sim, daemon):
    """Milliseconds from each of some pulled cables to the event in a connected tool."""
    watch = daemon.watch()
    watch.wait("^watching$")
    chance, spent = random.Random(1), []
    for turn in range(ROUNDS):
        generation = daemon.status()["generation"]
        leaf = f"leaf{turn}-{turn}"
        port = sim.cable(leaf, f"mid{turn}-{turn}")
        time.sleep(2.5 + chance.random())  # it is quiet again
        start = time.perf_counter()
        sim.unlink(leaf, port)
        watch.wait(f"^PMIX_FABRIC_UPDATED .*generation {generation + 1} ", timeout=120)
        spent.append((time.perf_counter() - start) * 1e3)
    watch.stop()
    return spent


def work():
    lab.require("ibsim", "opensm")
    sim = lab.Ibsim(lab.fabric(FABRIC))
    sim.sweep(timeout=600)
    sweep, packets, look, most, again = probe_alone(sim)
    bench.report("change", f"{NAME}, packets of a light sweep", most, "", "sweep", packets, 0.1)
    bench.report("change", f"{NAME}, light sweep", look, "ms", "sweep", sweep, 0.1)
    bench.report("change", f"{NAME}, reading one cable anew", again, "ms", "sweep", sweep, 0.1)
    daemon = lab.Fabricd(sim, config={"changes": {"light_sweep": 1}})
    lab.wait_for(lambda: daemon.status()["light_sweeps"] > 1, 60, "light_sweeps")
    spent = pulled(sim, daemon)
    bench.note(f"change, from the cable to UPDATED: {bench.rounded(spent)} ms")
    limit = 1500 + sweep / 10
    bench.report("change", f"{NAME}, cable pulled to UPDATED, median", bench.median(spent), "ms", to_reach=limit)
    bench.report("change", f"{NAME}, cable pulled to UPDATED, worst", max(spent), "ms", to_reach=limit)
    bench.report("change", f"{NAME}, idle, one processor", idle(daemon), "%")
    daemon.stop()
    sim.quit()
    sim = lab.Ibsim(lab.fabric("fattree2:4,2,4"))
    sim.sweep()
    daemon = lab.Fabricd(sim, config={"changes": {"light_sweep": 1}})
    lab.wait_for(lambda: daemon.status()["light_sweeps"] > 1, 60, "light_sweeps")
    bench.report("change", "16 hosts, idle, one processor", idle(daemon), "%", to_reach=1)
    daemon.stop()
    sim.quit()


if __name__ == "__main__":
    raise SystemExit(bench.main("change", work))
