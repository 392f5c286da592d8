"""A question about "this node" that is asked on a node is about that node."""
import json
import unittest

import lab
import test_node as base
import versions

DEVICES, COORDINATES, NUMBER, PLANE = "pmix.fab.devs", "pmix.fab.coord", "pmix.fab.nverts", "pmix.fab.plane"


def values(answer):
    """[(key, the array's elements or the plain value)]"""
    return [(key, value["value"]["elements"] if isinstance(value["value"], dict) else value["value"])
            for key, value in answer]


class Local(base.Case):
    def ask(self, node, *args):
        return values(json.loads(self.tool(node, "query", *args, program="stock_chapter")))

    @staticmethod
    def hosts_of(devices):
        return [dict((key, value["value"]) for key, value in one["value"]["elements"])["pmix.hname"]
                for _, one in devices]

    def check(self, node, host):
        ((key, devices),) = self.ask(node, DEVICES)
        self.assertEqual((key, self.hosts_of(devices)), (DEVICES, [host]))
        ((_, coordinates),) = self.ask(node, COORDINATES)
        self.assertEqual(coordinates, self.ask(node, COORDINATES, f"pmix.hname=s:{host}")[0][1])
        self.assertEqual(len(coordinates), 1)

    def test_of_each_node(self):
        nodes = {name: self.node(name, firmware=f"{name}.1", serve=True) for name in ("node0001", "node0002")}
        for name, node in nodes.items():
            self.wait_published(f"{name}.1")
            node.wait_ready()
            self.check(node, name)

    def test_beside_other_keys(self):
        """Which are about a plane, and stay so, in the order of the question."""
        node = self.node("node0001", serve=True)
        node.wait_ready()
        answer = self.ask(node, ",".join((NUMBER, DEVICES, PLANE, COORDINATES, NUMBER)))
        self.assertEqual([key for key, _ in answer], [NUMBER, DEVICES, PLANE, COORDINATES, NUMBER])
        self.assertEqual((answer[0][1], answer[4][1]), (64, 64))
        self.assertEqual(self.hosts_of(answer[1][1]), ["node0001"])
        self.assertEqual(len(answer[3][1]), 1)

    def test_a_node_that_is_named(self):
        node = self.node("node0001", serve=True)
        node.wait_ready()
        ((_, devices),) = self.ask(node, DEVICES, "pmix.hname=s:node0007")
        self.assertEqual(self.hosts_of(devices), ["node0007"])

    def test_very_many_keys_and_qualifiers(self):
        """They cost who asks an answer without anything in it."""
        node = self.node("node0001", serve=True)
        node.wait_ready()
        n = 100 if versions.LATER else 1000  # a caller's library from 5.0 on sends each key as a query of its own
        done = lab.run([*node.on.prefix(), lab.program("stock_chapter"), node.uri(), "query", f"{n}*{DEVICES}",
                        f"{n}*some.key=s:x"], env=node.tool_env(), cwd="/", timeout=60)
        self.assertNotIn("pmix.hname", done.stdout)
        self.check(node, "node0001")

    def test_without_the_scheduler(self):
        node = self.node("node0001", serve=True)
        node.wait_ready()
        self.check(node, "node0001")
        self.scheduler.stop()
        self.check(node, "node0001")


if __name__ == "__main__":
    unittest.main()
