"""bench_pmix_server - what fabricd-pmix costs, the process that strangers meet, and how soon another one takes its place.

FABRICD_BASE names another fabricd, an older one, say: then the ratios are against that, in turns in this run. Without it
the lines that have a ratio to reach say that there is no base.
"""
import contextlib
import os
import random
import re
import signal
import subprocess
import threading
import time
import unittest

import bench
import bench_node
import hosts
import lab
import stranger

KILLS, ROUNDS, TOOLS, REQUESTS, STARTS = 21, 15, 64, 20, 11
CROWDS, ANSWERS = 3, 2000
SMALL, LARGE = "fattree2:16,4,4", "fattree3:34"  # 64 and 9,826 hosts
BASE = os.environ.get("FABRICD_BASE")


def serve(spec, base=False):
    directory = lab.tmpdir()
    capture = os.path.join(directory, "fabric.txt")
    lab.replace_file(capture, lab.fabric(spec, "capture"))
    daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}}, directory=directory, start=False)
    if base:
        daemon.binary = BASE
    return daemon.start()


def both(spec):
    return serve(spec), serve(spec, base=True) if BASE else None


def report(figure, unit, pair, to_reach, at_least=False):
    """A figure against the base's; alone without one."""
    value, base = (bench.median(values) if values else None for values in pair)
    if base is None:
        bench.report("pmix_server", f"{figure} (no base)", value, unit)
    else:
        bench.report("pmix_server", figure, value, unit, "base", base, to_reach=to_reach, at_least=at_least)


def register(pair):
    times = ([], [])
    for _ in range(ROUNDS):
        for daemon, found in zip(pair, times):
            if daemon:
                found.append(float(daemon.tool("time", "1000").stdout) / 1e3)
    report("64 hosts, stock PMIx_Fabric_register", "ms", times, 1.15)


def requests(pair):
    """64 tools at once; each waits for its answer before it asks again."""
    times = ([], [])
    for daemon, found in zip(pair, times):
        if not daemon:
            continue
        tools = [lab.Watch([lab.program("stock_load"), daemon.uri()], daemon.tool_env(), talk=True) for _ in range(TOOLS)]
        for tool in tools:
            tool.wait("^ready$", timeout=60)
        for _ in range(ROUNDS):
            starts, begin = [len(tool.output.text) for tool in tools], time.monotonic()
            for tool in tools:
                tool.process.stdin.write(f"rounds {REQUESTS}\n".encode())
                tool.process.stdin.flush()
            for tool, start in zip(tools, starts):
                tool.wait(r"^errors 0.*\n", start, timeout=120)
            found.append((time.monotonic() - begin) * 1e3 / (TOOLS * REQUESTS * 3))
        for tool in tools:
            tool.process.stdin.close()
            tool.process.wait(20)
    report(f"{TOOLS} tools at once, a request", "ms", times, 1 / 0.85)


def deliveries():
    """Of each of a thousand nodes one, over a connection of its own; in turns with the base."""
    hosts.need()
    times = ([], [])
    for _ in range(CROWDS):
        for binary, found in zip((None, BASE), times):
            if found is times[1] and not BASE:
                continue
            site = bench_node.Site(binary)
            try:
                program = bench_node.gather(site)
                found.append(bench_node.deliver(program)[0] / 1e3)
                program.stop()
            finally:
                site.stop()
    bench.note(f"pmix_server: {bench_node.CROWD} deliveries: {bench.rounded(times[0])} s; base {bench.rounded(times[1])} s")
    report(f"{bench_node.CROWD} deliver at once, all acknowledged", "s", times, 1.2)


def refused():
    """From a new tool's start to its refusal, while munged hangs."""
    hosts.need()
    site = bench_node.Site()
    try:
        site.munged[0].process.send_signal(signal.SIGSTOP)
        took, done = bench.timed(lambda: lab.run([*site.there.prefix(), lab.program("stock_tool"), site.scheduler.uri(), "register"],
                                                 env=site.scheduler.tool_env(), cwd="/"))
        if done.returncode == 0:
            raise lab.LabError("a tool was let in without its credential")
        bench.report("pmix_server", "a new tool, refused while munged hangs", took / 1e3, "s", to_reach=4)  # the guard waits for 3
    finally:
        site.munged[0].process.send_signal(signal.SIGCONT)
        site.stop()


def processes(daemon):
    """Of the daemon and of all that it has started."""
    found, todo = [], [daemon.process.pid]
    while todo:
        found.append(todo.pop())
        for task in os.listdir(f"/proc/{found[-1]}/task"):
            with open(f"/proc/{found[-1]}/task/{task}/children", encoding="ascii") as file:
                todo += [int(pid) for pid in file.read().split()]
    return found


def own_memory(pids):
    kb = 0
    for pid in pids:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            kb += int(re.search(r"^RssAnon:\s+(\d+)", file.read(), re.MULTILINE).group(1))
    return kb / 1024


def killed(daemon):
    """From the kill to the first answer that a new tool gets; the start of the tool that gets it is in it."""
    times = []
    for turn in range(KILLS):
        lab.wait_for(daemon.pmix_pid, what="a PMIx server")
        start = time.monotonic()
        os.kill(daemon.pmix_pid(), signal.SIGKILL)
        while True:
            done = subprocess.run([lab.program("stock_tool"), daemon.uri(), "register"], env=daemon.tool_env(), timeout=30,
                                  capture_output=True, text=True, check=False)
            if "pmixfab.generation" in done.stdout:
                break
            if time.monotonic() - start > 60:
                raise lab.LabError("no answer after a minute")
        times.append((time.monotonic() - start) * 1e3)
        if turn % 3 == 2:
            daemon.stop()  # kills in a row come with pauses; this is about one
            daemon.start(wait=False)
            daemon.wait_up()
    bench.note(f"pmix_server: killed to the first answer: {bench.rounded(times)} ms")
    bench.report("pmix_server", "64 hosts, killed to a tool's first answer", bench.median(times), "ms", to_reach=100)
    bench.report("pmix_server", "... slowest of them", max(times), "ms", to_reach=300)


def beside_strangers(daemon):
    """How long a good tool waits for an answer while a stranger sends altered first messages, one after the other."""
    over, rng, whole = threading.Event(), random.Random(1), stranger.first()

    def strange():
        while not over.is_set():
            with contextlib.suppress(EOFError, OSError), stranger.knock(daemon.uri(), stranger.altered(whole, rng)) as channel:
                channel.status()
    thread, times = threading.Thread(target=strange), []
    thread.start()
    try:
        with stranger.tool(daemon.uri()) as good:
            for _ in range(ANSWERS):
                start = time.monotonic()
                good.ask(stranger.QUERY, stranger.query("pmix.fab.idx"))
                times.append((time.monotonic() - start) * 1e3)
    finally:
        over.set()
        thread.join()
    bench.report("pmix_server", "64 hosts, slowest answer beside a stranger", max(times), "ms", to_reach=1000)


def started(daemon):
    times = []
    for _ in range(STARTS):
        daemon.stop()
        start = time.monotonic()
        daemon.start(wait=False)
        while not os.path.exists(daemon.uri_path()):
            daemon.check_alive()
            time.sleep(0.001)
        times.append((time.monotonic() - start) * 1e3)
    bench.report("pmix_server", "64 hosts, exec to serving", bench.median(times), "ms", to_reach=120)


def work():
    pair = both(SMALL)
    register(pair)
    requests(pair)
    killed(pair[0])
    beside_strangers(pair[0])
    started(pair[0])
    for daemon in filter(None, pair):
        daemon.stop()
    large = serve(LARGE)
    large.tool("time", "100")
    pids = processes(large)
    bench.report("pmix_server", f"9826 hosts, own memory of all {len(pids)} processes", own_memory(pids), "MiB", to_reach=40)
    large.stop()
    try:
        deliveries()
        refused()
    except unittest.SkipTest as why:
        bench.note(f"pmix_server: no deliveries: {why}")


if __name__ == "__main__":
    raise SystemExit(bench.main("pmix_server", work))
