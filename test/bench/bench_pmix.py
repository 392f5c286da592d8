"""bench_pmix - 64 tools at once: how many requests a second, how even, and how soon each hears of a change."""
import os
import sys
import time

import bench

import fabric_text
import lab

TOOLS, ROUNDS, CHANGES = 64, 40, 15
FABRIC = "fattree2:16,4,4"  # 64 hosts


def tools_of(daemon):
    tools = [lab.Watch([lab.program("stock_load"), daemon.uri()], daemon.tool_env(), talk=True) for _ in range(TOOLS)]
    for tool in tools:
        tool.wait("^ready$", timeout=60)
    return tools


def requests(tools):
    """All at once; each waits for its answer before it asks again."""
    starts = [len(tool.output.text) for tool in tools]
    begin = time.monotonic()
    for tool in tools:
        tool.process.stdin.write(f"rounds {ROUNDS}\n".encode())
        tool.process.stdin.flush()
    lines = [tool.wait(r"^errors .*\n", start, timeout=120).group(0).split() for tool, start in zip(tools, starts)]
    seconds = time.monotonic() - begin
    errors = sum(int(line[1]) for line in lines)
    took = sorted(float(word) for line in lines for word in line[2:])
    assert len(took) == TOOLS * ROUNDS * 3, len(took)
    median = bench.median(took)
    bench.report("pmix", f"{TOOLS} tools: register + update + query", len(took) / seconds, "1/s")
    bench.report("pmix", "... errors (to reach: none)", errors, "", to_reach=0.5)
    bench.report("pmix", "... median answer", median / 1e3, "ms")
    bench.report("pmix", "... slowest answer", took[-1] / 1e3, "ms", "median", median / 1e3, to_reach=50)


def published(daemon):
    """When the newest generation was published: microseconds since 1970."""
    text = daemon.tool("query", "pmixfab.published").stdout
    return int(text.split()[-1])


def events(daemon, tools, path, texts):
    last = []
    for change in range(CHANGES):
        starts = [len(tool.output.text) for tool in tools]
        lab.replace_file(path, texts[(change + 1) % 2])
        generation = daemon.refresh()["generation"]
        arrivals = [int(tool.wait(rf"^updated {generation} (\d+)\n", start).group(1))
                    for tool, start in zip(tools, starts)]
        last.append((max(arrivals) - published(daemon)) / 1e3)
    bench.note(f"bench_pmix: milliseconds to the last tool: {bench.rounded(last)}")
    bench.report("pmix", f"published generation to UPDATED in {TOOLS} tools", bench.median(last), "ms", to_reach=20)
    bench.report("pmix", f"... the slowest of {CHANGES} changes", max(last), "ms")


def work():
    path = os.path.join(lab.tmpdir(), "fabric.txt")
    whole = lab.fabric(FABRIC, "capture")
    lab.replace_file(path, whole)
    daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}, "changes": {"flap_count": 0}})
    tools = tools_of(daemon)
    requests(tools)
    events(daemon, tools, path, [whole, fabric_text.without_cables(whole, "leaf1", "spine1")])
    for tool in tools:
        tool.stop()
    daemon.stop()


if __name__ == "__main__":
    sys.exit(bench.main("pmix", work))
