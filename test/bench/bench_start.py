"""bench_start - from exec of fabricd to serving what its store published last, 9,826 hosts.

The configured capture is absent, so no sweep can bring anything: what is served comes from the store. Serving means
that the PMIx address is written and the control socket tells the stored generation, looked at every millisecond.
Written down beside it: until a stock PMIx tool, started then, has registered. Files are warm in the page cache.
"""
import os
import subprocess
import time

import bench
import lab

ROUNDS = 15
FABRIC = "fattree3:34"


def fill_store(directory):
    """A store that has published the fabric once; its daemon has ended."""
    capture = os.path.join(directory, "fabric.txt")
    with open(capture, "w", encoding="utf-8") as file:
        file.write(lab.fabric(FABRIC, "capture"))
    daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}}, directory=directory, start=False)
    done = daemon.run_once()
    if done.returncode != 0:
        raise lab.LabError(f"fabricd --once: {done.stderr.strip()[-300:]}")
    os.unlink(capture)
    return daemon


def wait_until(daemon, condition):
    end = time.monotonic() + 30
    while not condition():
        daemon.check_alive()
        if time.monotonic() > end:
            raise lab.LabError("fabricd does not come up in 30 s")
        time.sleep(0.001)


def serves(daemon, generation):
    if not os.path.exists(daemon.uri_path()):
        return False
    status = daemon.try_control("status")
    return status is not None and status["generation"] == generation


def start_once(daemon, generation=1):
    """Milliseconds from exec until it serves, and until a stock tool has registered. Then it is stopped."""
    for name in ("fabricd.uri", "control.sock", "ib0.snap"):  # the run directory does not outlive a reboot
        path = os.path.join(daemon.rundir, name)
        if os.path.exists(path):
            os.unlink(path)
    start = time.monotonic()
    daemon.start(wait=False)
    wait_until(daemon, lambda: serves(daemon, generation))
    serving = time.monotonic()
    done = subprocess.run([lab.program("stock_tool"), daemon.uri(), "register"], env=daemon.tool_env(), timeout=30,
                          capture_output=True, text=True, check=False)
    registered = time.monotonic()
    if done.returncode != 0 or "pmix.fab.nverts" not in done.stdout or not os.path.exists(
            os.path.join(daemon.rundir, "ib0.snap")):
        raise lab.LabError(f"the stored generation is not served: {done.stderr.strip()} {done.stdout[:300]}")
    daemon.stop()
    return (serving - start) * 1e3, (registered - start) * 1e3


def work():
    daemon = fill_store(lab.tmpdir())
    times = [start_once(daemon) for _ in range(1 + ROUNDS)][1:]
    serving, registered = ([pair[i] for pair in times] for i in (0, 1))
    bench.note(f"start: {bench.rounded(serving)} ms")
    bench.report("start", "9826 hosts, exec to serving", bench.median(serving), "ms", to_reach=300)
    bench.report("start", "... to a stock tool's first answer", bench.median(registered), "ms")
    bench.report("start", "... slowest of them", max(serving), "ms")


if __name__ == "__main__":
    raise SystemExit(bench.main("start", work))
