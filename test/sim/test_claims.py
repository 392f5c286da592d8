"""What hosts claim of each other's devices: a claim takes nobody's device out of what is served."""
import unittest

import sim

NODE = "0x0000000000abcd00"


def interface(number, name="eth0", network=0):
    return {"source": "ethernet", "interface": name, "mac": f"24:57:20:04:20:{number:02x}", "state": "up",
            "address": [f"10.91.{network}.{number}/16"]}


def card(name):
    return {"source": "verbs", "name": name, "port": "1", "node-guid": NODE, "port-guid": "0x0000000000abcd01",
            "type": "Ethernet", "state": "up"}


class Claims(unittest.TestCase):
    def setUp(self):
        self.site = sim.Recorded(sim.fabric("fattree2:2,1,2", "capture"), {"fabricd": {"host": "scheduler"},
                                                                           "ethernet": {"lan": "10.91.0.0/16"}})
        self.addCleanup(self.site.free)

    def deliver(self, host, items):
        """It is published."""
        before = self.site.generation()
        self.assertEqual(self.site.deliver_items(host, items), 0)
        self.site.advance(10)
        self.assertEqual(self.site.generation(), before + 1)

    def devices(self, *hosts):
        """By host, name and plane, all that is listed of them but their numbers."""
        listed = self.site.ctl_json("devices")
        return {(one["host"], one["name"], one["plane"]): {key: value for key, value in one.items() if key != "index"}
                for one in listed if one["host"] in hosts}

    def all(self):
        """Everything that is listed, with its facts, and what it costs."""
        listed = [self.site.ctl_json(what) for what in ("devices", "switches", "links", "coords", "groups")]
        facts = [self.site.ctl_json("devices", host) for host in ("h1", "h5", "h6")]
        costs = [self.site.ctl("cost", a, b).stdout for a in ("h1", "h5", "h6") for b in ("h1", "h5", "h6")]
        return listed, facts, costs

    def remarks(self):
        return {node["host"]: node["remarks"] for node in self.site.control("nodes")["nodes"]}

    def facts(self, device, kind):
        host, name = device.split(":")
        one, = (one for one in self.site.ctl_json("devices", host) if one["name"] == name)
        return [fact for fact in one["facts"] if fact["kind"] == kind]

    def test_a_liar_comes_and_goes(self):
        self.deliver("h5", [interface(5)])
        self.deliver("h6", [interface(6), card("mlx5_0")])
        self.deliver("h1", [interface(1)])  # it comes before them in every order
        before, everything = self.devices("h5", "h6"), self.all()
        self.assertEqual(sorted(before), [("h5", "eth0", "lan"), ("h6", "eth0", "lan"), ("h6", "mlx5_0", "unattached")])

        self.deliver("h1", [interface(1), interface(5, "x5", 1), interface(6, "x6", 1), card("z")])
        self.check_beside_the_liar(before)
        self.assertEqual(self.remarks(), {
            "h1": ["the node GUID of z is that of a device of h6, too, which keeps it (and 3 more)"],
            "h5": ["the MAC of eth0 is claimed by h1, too"],
            "h6": ["the node GUID of mlx5_0 is claimed by h1, too (and 2 more)"]})
        self.site.stop()
        self.site.start()  # who had what is known from the store
        self.site.refresh()
        self.check_beside_the_liar(before)
        self.deliver("h5", [dict(interface(5), mtu="9000")])
        self.check_beside_the_liar(before)
        self.deliver("h5", [interface(5)])

        self.deliver("h1", [interface(1)])
        self.assertEqual(self.devices("h5", "h6"), before)
        self.assertEqual(self.all(), everything)
        self.assertFalse(self.site.errors())

    def check_beside_the_liar(self, before):
        """All that the others have is served as it was, under its ids, and says that somebody claims it, too."""
        now = self.devices("h5", "h6")
        self.assertEqual(sorted(now), sorted(before))
        for key, one in now.items():
            was = before[key]
            for name in ("id", "node_guid", "port_guid", "state", "seen"):
                self.assertEqual(one.get(name), was.get(name), (key, name))
            self.assertEqual(self.site.ctl_json("cost", one["id"], ":".join(key[:2]))["cost"], 0)
        self.assertEqual(sorted(self.devices("h1")), [("h1", "eth0", "lan"), ("h1", "x5", "lan"), ("h1", "x6", "lan"),
                                                      ("h1", "z", "unattached")])
        for device, kind, yielded in (("h5:eth0", "mac", False), ("h1:x5", "mac", True), ("h6:mlx5_0", "node-guid", False),
                                      ("h1:z", "node-guid", True), ("h1:z", "port-guid", True)):
            fact, = self.facts(device, kind)
            self.assertEqual((fact["chosen"], fact["conflict"], fact["yielded"]), (True, True, yielded), device)
        self.assertRegex(self.site.ctl("devices", "h1").stdout, rf"node-guid +{NODE} +verbs +\(another host's\)")
        self.assertRegex(self.site.ctl("devices", "h6").stdout, rf"node-guid +{NODE} +verbs +\(contradicted\)")

    def findings(self):
        return [one for one in self.site.control("check")["findings"] if one["kind"] == "claimed-twice"]

    def test_two_claims_are_an_error_and_the_first_is_not_believed_for_ever(self):
        """An HCA that nobody has named yet: who comes first has it, check names both, and an operator decides."""
        self.site.free()
        self.site = sim.Recorded(sim.fabric("fattree2:2,1,2", "capture").replace('# "node0003"', '# "MT4123 ConnectX6"'))
        self.addCleanup(self.site.free)
        (hca,) = (one for one in self.site.ctl_json("devices") if one["node_guid"] == "0x0000000000100004")
        claim = [{"source": "verbs", "name": "mlx5_0", "port": "1", "node-guid": hca["node_guid"], "port-guid": "0x0000000000100005",
                  "type": "InfiniBand", "state": "up"}]
        self.deliver("liar", claim)
        self.assertEqual(self.findings(), [])
        self.deliver("truly", claim)
        (finding,) = self.findings()
        self.assertEqual(finding["severity"], "error")
        for text in ("liar and truly both report it", hca["node_guid"]):
            self.assertIn(text, finding["what"])
        self.assertIn("liar", finding["where"])
        self.assertEqual(self.site.ctl("check").returncode, 1)
        self.assertTrue(self.site.control("forget", host="liar")["ok"])
        self.site.advance(30)
        self.site.refresh()
        self.assertEqual(self.findings(), [])
        self.assertEqual([one["host"] for one in self.site.ctl_json("devices") if one["node_guid"] == hca["node_guid"]], ["truly"])
        self.deliver("liar", claim)  # it comes again, and takes nothing
        (finding,) = self.findings()
        self.assertIn("truly", finding["where"])
        self.assertIn("truly and liar both report it", finding["what"])

    def test_cards_of_one_host_and_of_two_without_a_dispute_are_none(self):
        self.deliver("h5", [interface(5), dict(card("a"), **{"node-guid": NODE}), dict(card("b"), **{"node-guid": NODE, "port-guid": "0x0000000000abcd02"})])
        self.deliver("h6", [interface(6)])
        self.assertEqual(self.findings(), [])
        self.deliver("h1", [interface(5, "x5", 1)])
        (finding,) = self.findings()
        self.assertIn("h5 and h1 both report it as theirs (mac 24:57:20:04:20:05)", finding["what"])

    def test_ways_that_are_software(self):
        """They are marked, and make no software of the device."""
        self.deliver("h5", [interface(5),
                            {"source": "libfabric", "interface": "eth0", "provider": ["tcp", "udp"], "software": "yes"},
                            {"source": "libfabric", "interface": "eth0", "provider": ["efa"]},
                            {"source": "ucx", "interface": "eth0", "transport": ["tcp"], "software": "yes",
                             "estimates": {"latency": "5000"}}])
        self.assertEqual({fact["text"]: fact["software"] for fact in self.facts("h5:eth0", "provider")},
                         {"efa": False, "tcp": True, "udp": True})
        self.assertEqual(self.facts("h5:eth0", "software"), [])
        text = self.site.ctl("devices", "h5").stdout
        for line in (r"provider +efa +libfabric\n", r" +tcp +libfabric +\(software\)\n", r" +udp +libfabric +\(software\)\n",
                     r"transport +tcp +ucx +\(software\)\n", r"latency +5000 +ucx +\(estimate\)\n"):
            self.assertRegex(text, line)


if __name__ == "__main__":
    unittest.main()
