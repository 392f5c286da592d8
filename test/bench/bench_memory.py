"""bench_memory - the resident set of fabricd and its PMIx server at 9,826 hosts when nobody asks for the matrix.

It publishes a capture, sweeps again without a change and with one, answers stock PMIx tools, and starts again from
its store; what it holds is read from /proc each time. A sweep's own memory is its child's and ends with it.
"""
import os
import re

import bench
import lab

FABRIC = "fattree3:34"
ROUNDS = 4


def resident(daemon):
    """What is resident now, and the most that ever was, in MiB."""
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
        status = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", file.read(), re.MULTILINE))
    with open(f"/proc/{daemon.pmix_pid()}/status", encoding="ascii") as file:  # and what is its PMIx server's own
        server = int(re.search(r"^RssAnon:\s+(\d+) kB", file.read(), re.MULTILINE).group(1))
    return (int(status["VmRSS"]) + server) / 1024, (int(status["VmHWM"]) + server) / 1024


def without_a_cable(text):
    """The same capture without the first cable from the first switch upwards: a line at each of its ends."""
    line = re.search(r'^\[(\d+)\]\s+"(S-\w+)"\[(\d+)\].*\n', text, re.MULTILINE)
    switch = re.search(r'^Switch\s+\d+\s+"(S-\w+)"', text, re.MULTILINE).group(1)
    port, peer, peer_port = line.groups()
    other = re.search(rf'^\[{peer_port}\]\s+"{switch}"\[{port}\].*\n', text, re.MULTILINE)
    assert other.start() > text.index(f'"{peer}"\t')
    return text[:line.start()] + text[line.end():other.start()] + text[other.end():]


def change(path, text):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)


def use(daemon, capture, states):
    """What a daemon does in its days, in short."""
    for turn in range(ROUNDS):
        for state in (states[turn % 2], states[1 - turn % 2]):
            change(capture, state)
            daemon.refresh()
        daemon.refresh()
        done = daemon.tool("time", "100")
        if done.returncode != 0:
            raise lab.LabError(f"stock_tool: {done.stderr.strip()}")
    if daemon.status()["generation"] < ROUNDS:
        raise lab.LabError("the changes of the fabric were not published")


def work():
    directory = lab.tmpdir()
    capture = os.path.join(directory, "fabric.txt")
    text = lab.fabric(FABRIC, "capture")
    states = text, without_a_cable(text)
    change(capture, text)
    config = {"fabricd": {"probe": f"file:{capture}"}, "changes": {"flap_count": 0}}
    daemon = lab.Fabricd(config=config, directory=directory)
    first, first_peak = resident(daemon)
    use(daemon, capture, states)
    later, later_peak = resident(daemon)
    daemon.stop()
    daemon.start()
    restarted, restarted_peak = resident(daemon)
    daemon.stop()
    bench.report("memory", "9826 hosts, after many changes and callers", later, "MiB", to_reach=64)
    for figure, value in [("its peak", later_peak), ("after the first publication", first), ("its peak", first_peak),
                          ("started from the store", restarted), ("its peak", restarted_peak)]:
        bench.report("memory", f"... {figure}", value, "MiB")


if __name__ == "__main__":
    raise SystemExit(bench.main("memory", work))
