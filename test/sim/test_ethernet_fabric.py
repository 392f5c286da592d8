"""A fabric of Ethernet, as its hosts tell it: groups and costs of what each hears of its switch."""
import unittest

import sim
from simgrid_platform import Platform

LEAVES = {"leaf1": "02:00:00:00:00:f1", "leaf2": "02:00:00:00:00:f2"}


class EthernetFabric(unittest.TestCase):
    def setUp(self):
        self.site = sim.Site("fattree2:2,1,1", {"ethernet": {"roce0": "10.91.0.0/24"}})
        self.addCleanup(self.site.free)

    def hears(self, number, leaf, interface="eth0"):
        """roce1 and so on report this interface, and which switch it hears (None: none)."""
        items = [{"source": "ethernet", "interface": interface, "mac": f"02:00:00:00:0{number}:01", "state": "up", "speed": "100000",
                  "type": "Ethernet", "address": [f"10.91.0.{number}/24"]}]
        if leaf is not None:
            items.append({"source": "lldp", "interface": interface, "switch-id": LEAVES[leaf], "switch-name": leaf, "switch-port": f"eth{number}"})
        self.assertEqual(self.site.deliver_items(f"roce{number}", items), 0)
        self.site.advance(10)

    def groups(self):
        return sorted(tuple(group["hosts"]) for group in self.site.ctl_json("--plane", "roce0", "groups"))

    def cost(self, a, b):
        return self.site.ctl_json("cost", a, b)["cost"]

    def test_groups_and_costs(self):
        for number, leaf in ((1, "leaf1"), (2, "leaf1"), (3, "leaf2")):
            self.hears(number, leaf)
        self.assertEqual(self.groups(), [("roce1", "roce2"), ("roce3",)])
        devices = {device["host"]: device["switch"] for device in self.site.ctl_json("--plane", "roce0", "devices")}
        self.assertEqual(devices, {"roce1": "leaf1", "roce2": "leaf1", "roce3": "leaf2"})
        self.assertLessEqual(set(LEAVES), {switch["name"] for switch in self.site.ctl_json("--plane", "roce0", "switches")})
        near, far = self.cost("roce1", "roce2"), self.cost("roce1", "roce3")
        self.assertTrue(0 < near < far < 65535, (near, far))
        # A host moves to the other leaf: it hears another switch, at another interface.
        self.hears(2, "leaf2", "eth1")
        self.assertEqual(self.groups(), [("roce1",), ("roce2", "roce3")])
        self.assertEqual((self.cost("roce2", "roce3"), self.cost("roce1", "roce2")), (near, far))

    def test_simgrid(self):
        """Its switches take longer than those of InfiniBand."""
        for number, leaf in ((1, "leaf1"), (2, "leaf1"), (3, "leaf2")):
            self.hears(number, leaf)
        done = self.site.ctl("--plane", "roce0", "export", "simgrid")
        platform = Platform(done.stdout)
        self.assertEqual(platform.hosts, ["roce1", "roce2", "roce3"])
        self.assertAlmostEqual(platform.latency("roce1", "roce2"), 2 * 545e-9)
        self.assertAlmostEqual(platform.latency("roce1", "roce3"), 2 * 545e-9 + 2 * 470e-9)

    def test_a_host_that_hears_nothing(self):
        """It is in the plane all the same, and in no group with others; also after it has heard something."""
        for number, leaf in ((1, "leaf1"), (2, "leaf1"), (3, None)):
            self.hears(number, leaf)
        self.assertIn(("roce1", "roce2"), self.groups())
        self.assertNotIn("roce3", [host for group in self.groups() for host in group if len(group) > 1])
        self.hears(3, "leaf1")
        self.assertEqual(self.groups(), [("roce1", "roce2", "roce3")])
        self.hears(3, None)
        self.assertNotIn(("roce1", "roce2", "roce3"), self.groups())
        self.assertEqual({device["host"] for device in self.site.ctl_json("--plane", "roce0", "devices")}, {"roce1", "roce2", "roce3"})


if __name__ == "__main__":
    unittest.main()
