"""bench_register - a PMIx tool's way to the fabric: a stock register at 64 hosts, a usable cost at 9,826.

The stock tool times PMIx_Fabric_register() alone. With libpmixfab what is timed is pmixfab_open_pmix(), a first
pmixfab_cost(), and closing; on fabricd's host, where the snapshot's file is mapped, and on another host, where its
bytes come over the wire: a namespace behind a veth cable, which does not see the run directory, through munge.
Each number is the median over runs of a run's median; connecting is not in it.
"""
import os
import unittest

import bench
import lab
import hosts

ROUNDS = 5


def serve(spec, make, **sections):
    """A daemon that serves a generated fabric from its capture."""
    directory = lab.tmpdir()
    capture = os.path.join(directory, "fabric.txt")
    with open(capture, "w", encoding="utf-8") as file:
        file.write(lab.fabric(spec, "capture"))
    return make(config={"fabricd": {"probe": f"file:{capture}"}, **sections}, directory=directory)


def median_of(daemon, program, times, prefix=()):
    """Milliseconds of one call."""
    medians = []
    for _ in range(ROUNDS):
        done = lab.run([*prefix, lab.program(program), daemon.uri(), "time", str(times)], env=daemon.tool_env(),
                       timeout=60, cwd="/")
        if done.returncode != 0:
            raise lab.LabError(f"{program}: {done.stderr.strip()[-300:]}")
        medians.append(float(done.stdout) / 1e3)
    return bench.median(medians)


def on_one_host():
    small = serve("fattree2:4,2,16", lab.Fabricd)
    bench.report("register", "64 hosts, stock PMIx_Fabric_register", median_of(small, "stock_tool", 1000), "ms",
                 to_reach=0.2)
    small.stop()
    large = serve("fattree3:34", lab.Fabricd)
    bench.report("register", "9826 hosts, libpmixfab, same host", median_of(large, "fab_tool", 100), "ms", to_reach=2)
    bench.report("register", "9826 hosts, stock PMIx_Fabric_register", median_of(large, "stock_tool", 100), "ms")
    large.stop()


def over_the_wire():
    hosts.need()
    here, there, munged = hosts.Host("here"), hosts.Host("there"), hosts.Munged()
    here.cable(there, "10.91.0.1", "10.91.0.2")
    for host in here, there:
        munged.show_on(host)
    daemon = serve("fattree3:34", lambda **options: hosts.Fabricd(here, **options), security={"remote": "yes"})
    there.hide(daemon.dir)
    if there.run(["ls", daemon.rundir]).returncode == 0:
        raise lab.LabError("the other host sees the run directory: nothing would come over the wire")
    bench.report("register", "9826 hosts, libpmixfab, over the wire",
                 median_of(daemon, "fab_tool", 20, there.prefix()), "ms", to_reach=20)
    bench.report("register", "9826 hosts, stock, over the wire", median_of(daemon, "stock_tool", 20, there.prefix()),
                 "ms")
    daemon.stop()


def work():
    on_one_host()
    try:
        over_the_wire()
    except unittest.SkipTest as why:
        bench.note(f"register: not over the wire: {why}")


if __name__ == "__main__":
    raise SystemExit(bench.main("register", work))
