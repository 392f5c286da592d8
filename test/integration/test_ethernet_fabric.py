"""A fabric of Ethernet, as its hosts tell it: two switches that run lldpd, nodes that report their interfaces and what
lldpd hears, and a scheduler that makes groups and costs of it."""
import json
import unittest

import hosts
import lab

NETWORK, SCHEDULER = "10.91.0.0/24", "10.91.0.100"
LEAVES = {"leaf1": ("roce1", "roce2"), "leaf2": ("roce3",)}
NODES = {"roce1": "10.91.0.1", "roce2": "10.91.0.2", "roce3": "10.91.0.3"}


class EthernetFabric(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        lab.require("lldpd", "lldpctl", "lldpcli", "munged")
        lab.require_probe("lldp")
        hosts.need()
        cls.hosts = {name: hosts.Host(name) for name in (*LEAVES, *NODES, "scheduler")}
        for host in cls.hosts.values():
            cls.addClassCleanup(host.stop)
        for leaf in LEAVES:
            cls.hosts[leaf].do("ip", "link", "add", "br0", "type", "bridge")
            cls.hosts[leaf].do("ip", "link", "set", "br0", "up")
        cls.ports = {}
        for leaf, nodes in LEAVES.items():
            for node in nodes:
                cls.plug(node, NODES[node], leaf)
        cls.plug("scheduler", SCHEDULER, "leaf1")
        cls.plug("leaf2", "10.92.0.1", "leaf1")
        cls.hosts["leaf2"].do("ip", "link", "set", f"eth{cls.hosts['leaf2'].links - 1}", "master", "br0")
        cls.lldpd, munged = {}, None
        for name, host in cls.hosts.items():
            if name != "scheduler":  # it has no lldpd, and is in the plane all the same
                cls.lldpd[name] = hosts.Lldpd(host, name, "configure lldp portidsubtype ifname")
            if name in LEAVES:
                continue
            host.knows({"scheduler": SCHEDULER, **NODES})
            munged = hosts.Munged(host, NODES.get(name, SCHEDULER), munged)
            cls.addClassCleanup(munged.stop)
            munged.show_on(host)

    @classmethod
    def plug(cls, name, address, leaf):
        """A cable from a host to the bridge of a leaf."""
        switch = cls.hosts[leaf]
        cls.ports[name] = f"eth{switch.links}"
        cls.hosts[name].cable(switch, address, f"10.9{switch.links + 3}.0.254")
        switch.do("ip", "link", "set", cls.ports[name], "master", "br0")

    def end(self, daemon):
        if daemon.alive():
            self.assertEqual(daemon.stop(), 0)

    def node(self, name, scheduler):
        node = hosts.Node(self.hosts[name], name, SCHEDULER, config={
            "fabricd": {"probe": ["ethernet", "lldp"]}, "sweep.env": {"LLDPD_SOCKET": self.lldpd[name].socket}})
        self.addCleanup(self.end, node)
        node.wait_delivered()
        return node

    def test_groups_and_costs(self):
        record = lab.tmpdir() + "/nothing.json"
        lab.replace_file(record, json.dumps({"host": "scheduler", "items": [
            {"source": "ethernet", "interface": "eth0", "mac": "02:00:00:00:00:01"}]}))
        scheduler = hosts.Fabricd(self.hosts["scheduler"], config={
            "fabricd": {"probe": f"ethernet:{record}", "host": "scheduler"}, "security": {"remote": "yes"},
            "nodes": {"debounce_ms": 20}, "ethernet": {"roce0": NETWORK}}, start=False)
        scheduler.start(wait=False)
        scheduler.wait_up()
        self.addCleanup(self.end, scheduler)
        for name in NODES:
            self.lldpd[name].wait("eth0")
        nodes = {name: self.node(name, scheduler) for name in NODES}

        def groups():
            told = scheduler.ctl_json("--plane", "roce0", "groups")
            return {tuple(group["hosts"]) for group in told}
        scheduler.until("generation", generation=1)
        wanted = {("roce1", "roce2"), ("roce3",)}
        scheduler.until_true(lambda: groups() == wanted, "updated", lambda: f"groups {wanted}")
        devices = {device["host"]: device for device in scheduler.ctl_json("--plane", "roce0", "devices")}
        self.assertEqual(sorted(devices), sorted(NODES))
        switches = [switch["name"] for switch in scheduler.ctl_json("--plane", "roce0", "switches")]
        self.assertLessEqual(set(LEAVES), set(switches))
        for leaf, names in LEAVES.items():
            for name in names:
                self.assertEqual(devices[name]["switch"], leaf)
        near = scheduler.ctl_json("cost", "roce1", "roce2")["cost"]
        far = scheduler.ctl_json("cost", "roce1", "roce3")["cost"]
        self.assertTrue(0 < near < far < 65535, (near, far))

        # A host moves to the other leaf: its node hears another switch, and says so when it is told to look.
        moved = self.hosts["roce2"]
        self.hosts["leaf1"].do("ip", "link", "set", self.ports["roce2"], "down")
        self.lldpd["roce2"].wait()
        moved.do("ip", "addr", "flush", "dev", "eth0")
        moved.cable(self.hosts["leaf2"], NODES["roce2"], "10.99.0.254")
        self.hosts["leaf2"].do("ip", "link", "set", f"eth{self.hosts['leaf2'].links - 1}", "master", "br0")
        self.lldpd["roce2"].wait("eth1")
        nodes["roce2"].ctl("refresh")
        wanted = {("roce1",), ("roce2", "roce3")}
        scheduler.until_true(lambda: groups() == wanted, "updated", lambda: f"groups {wanted}")


if __name__ == "__main__":
    unittest.main()
