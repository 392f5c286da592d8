"""bench_check_findings - how long `check` takes right after a publication, with thousands of findings remembered.

A fat tree with 9,826 hosts, of which 2,000 are lost, and three core switches with them. Each round one more host's
cable is pulled or put back, published, and check is asked at once by a caller of the control socket.
"""
import os
import sqlite3

import bench
import fabric_text
import lab

LOST, CORES, ROUNDS = 2000, 3, 9


def work():
    folder = lab.tmpdir()
    capture = os.path.join(folder, "fabric.txt")
    whole = lab.fabric("fattree3:34", "capture")
    lab.replace_file(capture, whole)
    daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}", "log": "warning"},
                                 "changes": {"retain_seconds": 0, "flap_count": 0}})
    daemon.refresh()
    few = fabric_text.without(whole, *(f"core{i + 1}" for i in range(CORES)))
    many = fabric_text.without(few, *(f"node{i * 4 + 1:04d}" for i in range(LOST)))
    for name, text, least in (("few", few, CORES), ("thousands", many, LOST)):
        states, spent = (text, fabric_text.without_cables(text, "leaf0-0", "node0002")), []
        lab.replace_file(capture, text)
        daemon.refresh()
        daemon.control("check")
        for turn in range(ROUNDS):
            lab.replace_file(capture, states[1 - turn % 2])
            if not daemon.refresh()["changed"]:
                raise lab.LabError("nothing was published")
            took, answer = bench.timed(lambda: daemon.control("check"))
            if len(answer["findings"]) < least:
                raise lab.LabError(f"{len(answer['findings'])} findings")
            spent.append(took)
        bench.note(f"check after a publication, {len(answer['findings'])} findings: {bench.rounded(spent)} ms")
        bench.report("check", f"9826 hosts, {name} of findings, median", bench.median(spent), "ms", to_reach=50)
    with sqlite3.connect(daemon.store) as store:
        bench.note(f"rows in the store: {store.execute('SELECT count(*) FROM finding').fetchone()[0]}")
    daemon.stop()


if __name__ == "__main__":
    raise SystemExit(bench.main("check", work))
