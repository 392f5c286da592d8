"""bench_relay - PMIx_Fabric_register() of a stock tool through a relaying server, against the direct one.

Direct and relayed in turn, on one host, 64 hosts in the fabric; each number is the median over rounds of a round's
median. With --json one object a line.
"""
import os

import bench
import lab

ROUNDS, TIMES = 7, 1000


def once(uri, env):
    """Microseconds of one register, the median of a run."""
    done = lab.run([lab.program("stock_tool"), uri, "time", str(TIMES)], env=env, timeout=60)
    if done.returncode != 0:
        raise lab.LabError(f"stock_tool: {done.stderr.strip()[-300:]}")
    return float(done.stdout)


def work():
    folder = lab.tmpdir()
    capture = os.path.join(folder, "fabric.txt")
    lab.replace_file(capture, lab.fabric("fattree2:4,2,16", "capture"))
    daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})
    host = lab.Watch([lab.program("relay_host"), daemon.rundir], daemon.tool_env(), talk=True)
    host.wait("(?m)^ready$")
    uri = host.wait("(?m)^uri (.*)$").group(1)
    env = daemon.tool_env()
    direct, relayed = [], []
    for _ in range(ROUNDS):
        direct.append(once(daemon.uri(), env))
        relayed.append(once(uri, env))
    bench.note(f"relay: direct {bench.rounded(direct)}, relayed {bench.rounded(relayed)}")
    bench.report("relay", "register through a relay, 64 hosts", bench.median(relayed), "us", "direct",
                 bench.median(direct), to_reach=3)
    host.stop()
    daemon.stop()


if __name__ == "__main__":
    raise SystemExit(bench.main("relay", work))
