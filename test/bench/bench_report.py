"""bench_report - the page of a large fabric: how long it takes to write, how large it is, and how soon one can use it.

Usable means: Chromium, started already, has opened the file, drawn it, and found a host by a search.
"""
import os
import subprocess
import sys

import bench
import browser
import lab

FABRICS = [("fattree3:34", "9826 hosts of a fat tree", "node9826"), ("rails:77,8,128,16", "9856 hosts of 8 rails", "node9856"),
           ("dragonfly:8,16,8", "16512 hosts of a dragonfly", "node16512")]
TIMES = 5


def opened(chromium, path, host):
    """Milliseconds until the host is found."""
    page = browser.Page(chromium, path)

    def search():
        page.press("/")
        page.type(host)
        page.press("Enter")
        return page.value("document.activeElement.getAttribute('aria-label')")
    try:
        took, found = bench.timed(search)
        if found != f"host {host}":
            raise lab.LabError(f"{path}: searched for {host}, found {found}")
        return page.milliseconds + took
    finally:
        page.close()


def work():
    chromium = browser.Browser()
    for spec, figure, host in FABRICS:
        rundir = lab.tmpdir()
        path, to_reach = os.path.join(rundir, "page.html"), spec == FABRICS[0][0]
        subprocess.run([lab.program("mksnap"), spec, rundir], check=True)
        command = [lab.program("fabricctl"), "--rundir", rundir, "report", "-o", path]
        wrote = [bench.timed(lambda: lab.run(command))[0] for _ in range(TIMES)]
        bench.report("report", f"{figure}: written", bench.median(wrote) / 1e3, "s", to_reach=to_reach and 1)
        bench.report("report", f"{figure}: the page", os.path.getsize(path) / 1e6, "MB", to_reach=to_reach and 5)
        bench.report("report", f"{figure}: found a host", bench.median([opened(chromium, path, host) for _ in range(TIMES)]) / 1e3, "s",
                     to_reach=to_reach and 2)


if __name__ == "__main__":
    sys.exit(bench.main("report", work))
