"""node_case - a scheduler and nodes of its site, and what their cases ask of them."""
import json
import os
import unittest
import unittest.mock

import sim
from sim import lab

FABRIC = "fattree2:4,2,16"


def snapshots(rundir):
    """What stands in a run directory, by file."""
    found = {}
    for name in os.listdir(rundir):
        if name.endswith(".snap"):
            with open(os.path.join(rundir, name), "rb") as file:
                found[name] = file.read()
    return found


class Case(unittest.TestCase):
    def setUp(self):
        debug = unittest.mock.patch.dict(os.environ, SIM_DEBUG="1")
        debug.start()
        self.addCleanup(debug.stop)
        self.dir = lab.tmpdir()
        self.site = sim.Site(FABRIC, {"nodes": {"debounce_ms": 20}})
        self.addCleanup(self.site.free)

    def record(self, name, firmware=None, source="verbs", **facts):
        """A recorded machine; with a firmware one that has an HCA, that of the swept fabric. Its path."""
        path = os.path.join(self.dir, f"{name}.{source}.json")
        guid = f"{0x100000 + 2 * (int(name[-4:]) - 1) + 1:#018x}"
        item = {"source": source, "name": "mlx5_0", "port": "1", "port-guid": guid, **facts}
        if firmware:
            item["firmware"] = firmware
        lab.replace_file(path, json.dumps({"host": name, "items": [item] if firmware or facts else []}))
        return path

    def node(self, name="node0001", start=True, firmware=None, **config):
        config = {"fabricd": {"probe": f"verbs:{self.record(name, firmware)}"}, **config}
        node = sim.Node(self.site, name, config, start)
        self.site.advance(1)
        return node

    def look(self, node):
        answer = node.control("refresh")
        self.site.advance(1)
        return answer

    def published(self, firmware):
        """Is this served by the scheduler?"""
        return any(firmware.encode() + b"\0" in snapshot for snapshot in snapshots(self.site.rundir).values())

    def delivered(self, node):
        """The scheduler has acknowledged what it has."""
        status = node.status()
        self.assertTrue(status["digest"])
        self.assertEqual((status["held"], status["delivering"]), (status["digest"], False))
        return status

    def equal(self, *nodes):
        """Each node's files are the scheduler's, byte by byte."""
        for node in nodes:
            status = node.status()
            self.assertEqual((status["generation"], status["stale"]), (self.site.status()["generation"], False))
            self.assertEqual(snapshots(node.rundir), snapshots(self.site.rundir))
        self.assertTrue(snapshots(self.site.rundir))

    def marked(self, node):
        """As who reads the run directory is told."""
        return os.path.exists(os.path.join(node.rundir, "stale"))
