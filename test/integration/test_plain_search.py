"""Costs, groups and coordinates over PMIx and in a scheduler's process, as a plain search in Python finds them in the text of a
recorded fabric. (More fabrics are in test/sim/test_plain_search.py.)"""
import json
import os
import unittest

import conforms
import fabric_text
import lab
import plain_search
import test_pnet
import versions

class Case(conforms.Shows):
    def serve(self, text):
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, text)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        self.addCleanup(self.daemon.stop)
        self.plane, = self.daemon.ctl_json("planes")
        return plain_search.Fabric(text)

    def query(self, *args):
        done = lab.run([lab.program("stock_chapter"), self.daemon.uri(), "query", *args], env=self.daemon.tool_env())
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)[0][1]["value"]

    def check(self, fabric):
        """Costs by the operator's command and through the pointer in a scheduler's process; groups over PMIx."""
        costs = [fabric.costs(host) for host in fabric.order]
        self.assertGreater(len({cost for row in costs for cost in row}), 2)
        self.assertEqual([device["host"] for device in self.daemon.ctl_json("devices")], fabric.order)
        self.assertEqual(self.daemon.ctl_json("matrix")["costs"], costs)
        if not versions.NO_ARRAYS:
            self.check_in_process([cost for row in costs for cost in row])
        self.shows_given("PMIX_FABRIC_GROUPS", "pmix.fab.grps", self.query("pmix.fab.grps"), fabric.groups(), "query", "tool",
                         kind="key of all planes")

    def check_in_process(self, cells):
        scheduler = test_pnet.Scheduler(self.daemon.rundir)
        self.addCleanup(scheduler.stop)
        self.assertEqual(scheduler.status("register 0")[0], "SUCCESS")
        self.shows_given("PMIX_FABRIC_COST_MATRIX", "matrix 0", scheduler.cells(0), cells, "register", "in process", kind="key")

    def coordinates(self, fabric):
        """{host: its logical coordinates}, each once."""
        found = {}
        for host in fabric.order:
            geometry, = self.query("pmix.fab.coord", f"pmix.hname=s:{host}", "pmixfab.view=s:logical")["elements"]
            found[host] = tuple(geometry["coordinates"][0]["coord"])
        self.assertEqual(len(set(found.values())), len(found))
        return found


class Tree(Case):
    def test_with_slow_and_pulled_cables(self):
        """A leaf at half the rate, and one that has lost a cable; a leaf's number is its place among the leaves."""
        text = fabric_text.slower(lab.fabric("fattree2:4,2,3", "capture"), "leaf2")
        fabric = self.serve(fabric_text.without_cables(text, "leaf3", "spine1"))
        self.check(fabric)
        self.assertEqual(self.plane["kind"], "fat-tree-2")
        leaves = sorted({fabric.edge(host)[0] for host in fabric.order}, key=lambda leaf: fabric.names[leaf])
        expected = {host: (0, leaves.index(leaf), port - 1) for host in fabric.order for leaf, port in [fabric.edge(host)]}
        self.shows_given("PMIX_FABRIC_COORDINATES", "pmix.fab.coord", self.coordinates(fabric), expected, "query", "tool", kind="key")


if __name__ == "__main__":
    unittest.main()
