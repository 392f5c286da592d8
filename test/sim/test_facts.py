"""What a host says of its devices: who sees which of them, which source is believed, and costs within the host.

The host is the machine of facts_machine.py. The sweep sees one of its ports.
"""
import unittest

import facts_machine
import hwloc_machines
import sim
from facts_machine import COSTS, HOST, ITEMS, MACHINE


class Machine(unittest.TestCase):
    mine = True

    def setUp(self):
        self.site = sim.Recorded(facts_machine.sweep(sim.fabric("fattree2:2,1,2", "capture"), self.mine), {"ethernet": {"lan": "10.91.0.0/16"}})
        self.addCleanup(self.site.free)
        with open(MACHINE, encoding="utf-8") as file:
            items = [dict(item, source="hwloc") for item in hwloc_machines.expect(file.read())] + ITEMS
        self.assertEqual(self.site.deliver_items(HOST, items), 0)
        self.site.advance(10)
        self.devices = {(d["host"], d["name"]): d for d in self.site.ctl_json("devices")}


class Sources(Machine):
    def test_who_sees_what(self):
        self.assertEqual({name: device["seen"] for (host, name), device in self.devices.items() if host == HOST},
                         {"mlx5_0": "subnet,node", "eno1": "node"} | {f"mlx5_{i}": "node" for i in range(1, 6)})
        self.assertEqual({d["seen"] for (host, _), d in self.devices.items() if host != HOST}, {"subnet"})
        self.assertEqual({name: d["plane"] for (host, name), d in self.devices.items() if host == HOST},
                         {"mlx5_0": "ib0", "eno1": "lan"} | {f"mlx5_{i}": "unattached" for i in range(1, 6)})

    def test_sources(self):
        devices = {device["name"]: device["facts"] for device in self.site.ctl_json("devices", HOST)}
        mtu = [fact for fact in devices["mlx5_0"] if fact["kind"] == "mtu"]
        self.assertEqual([(fact["text"], fact["sources"], fact["chosen"]) for fact in mtu],
                         [("4096", ["verbs"], True), ("2048", ["libfabric"], False)])
        self.assertEqual([fact["sources"] for fact in devices["mlx5_0"] if fact["kind"] == "node-guid"],
                         [["subnet", "verbs", "hwloc"]])
        self.assertEqual([fact["estimate"] for fact in devices["mlx5_0"] if fact["kind"] == "latency"], [True])
        self.assertRegex(self.site.ctl("devices", HOST).stdout, r"\n  mtu +4096 +verbs +\(libfabric: 2048\)\n")


class Costs(Machine):
    """Here the sweep sees none of the ports, so all of them are in one plane."""
    mine = False

    def test_within_the_host(self):
        for (a, b), cost in COSTS.items():
            for one, two in ((a, b), (b, a)):
                answer = self.site.ctl_json("cost", f"{HOST}:{one}", f"{HOST}:{two}")
                self.assertEqual((answer["cost"], answer["plane"]), (cost, "unattached"), (one, two))


if __name__ == "__main__":
    unittest.main()
