"""bench_questions - how long the questions of the control socket hold the daemon's loop.

A fat tree of 101,306 hosts, of which 20,000 are lost, and some hundred thousand changes in the history. Each question is asked
once as fabricctl asks it first; what counts is the time that the main thread spends on it.
"""
import os
import re
import statistics
import sys

import bench
import fabric_text
import lab

SPEC, LOST = "fattree3:74", 20000
QUESTIONS = [
    ("status", {}), ("check", {}), ("history", {"limit": 0}), ("history", {"what": "nothing-at-all"}),
    ("history", {"what": "node0001"}), ("diff", {"from": 1}), ("diff", {"from": 1, "host": "nothing-at-all"}), ("ports", {}),
    ("nodes", {}), ("metrics", {}), ("counters", {}), ("expect", {}), ("expect", {"name": "nothing-at-all", "replace": True}),
    ("forget", {"host": "nothing-at-all"}), ("ack", {"finding": "lost"}),
]


def on_cpu(daemon):
    """Milliseconds that its main thread has worked."""
    with open(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e6


def spent(daemon, op, request):
    """And the answer: its first page, and the one behind it."""
    before = on_cpu(daemon)
    answer = daemon.page(op, **request)
    took = on_cpu(daemon) - before
    if "next" in answer:
        before = on_cpu(daemon)
        daemon.page(op, **dict(request, next=answer["next"]))
        took = max(took, on_cpu(daemon) - before)
    return took


def work():
    capture = os.path.join(lab.tmpdir(), "fabric.txt")
    whole = lab.fabric(SPEC, "capture")
    lab.replace_file(capture, whole)
    daemon = lab.Fabricd(start=False, config={"fabricd": {"probe": f"file:{capture}", "log": "warning", "deadline": 300},
                                              "changes": {"retain_seconds": 0, "flap_count": 0}})
    daemon.start(wait=False)
    daemon.wait_ready()
    hosts = re.findall(r'^Ca\s+\d+\s+"[^"]+"\s+# "([^" ]+)', whole, re.MULTILINE)
    few = fabric_text.without(whole, *hosts[::len(hosts) // LOST])
    for text in (few, whole, few):
        lab.replace_file(capture, text)
        daemon.refresh()
    daemon.control("check")  # the look at what was published is a part of publishing it
    for op, request in QUESTIONS:
        figure = " ".join([op, *(str(value) for value in request.values())])
        bench.report("questions", f"101306 hosts, {figure}"[:44], statistics.median(
            spent(daemon, op, request) for _ in range(5)), "ms", to_reach=50)
    daemon.stop()


if __name__ == "__main__":
    sys.exit(bench.main("questions", work))
