"""What hosts claim of each other's devices: a claim takes nobody's device out of what is served."""
import unittest

import sim

NODE = "0x0000000000abcd00"
HCA = "0x0000000000100004"


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
            "h1": ["the node GUID of z is also that of a device of h6, which keeps it (and 3 more)"],
            "h5": ["the MAC of eth0 is also claimed by h1"],
            "h6": ["the node GUID of mlx5_0 is also claimed by h1 (and 2 more)"]})
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
        """An HCA that nobody has named yet: while two hosts claim it, it is nobody's, and check names both."""
        claim = self.without_a_name()
        self.deliver("liar", claim)
        self.assertEqual(self.findings(), [])
        self.assertEqual(self.owner(), ("liar", "ib0"))
        self.deliver("truly", claim)
        self.check_disputed("liar", "truly")
        self.site.stop()
        self.site.start()
        self.site.refresh()
        self.check_disputed("liar", "truly")
        self.assertTrue(self.site.control("forget", host="liar")["ok"])
        self.site.advance(30)
        self.assertEqual(self.findings(), [])
        self.assertEqual(self.owner(), ("truly", "ib0"))
        self.deliver("liar", claim)  # it comes again
        self.check_disputed("liar", "truly")

    def test_a_name_decides_between_two_claims(self):
        claim = self.without_a_name()
        self.deliver("liar", claim)
        self.deliver("truly", claim)
        self.site.show(self.text.replace("MT4123 ConnectX6", "truly mlx5_0"))
        self.site.refresh()
        self.assertEqual((self.owner(), self.findings()), (("truly", "ib0"), []))

    def test_claims_that_come_and_go_move_nothing(self):
        """The third change within an hour is the last one that moves what is served, until it has been quiet."""
        claim = self.without_a_name()
        self.deliver("truly", claim)
        places = []
        for turn in range(6):
            self.deliver("liar", claim if turn % 2 == 0 else [interface(1)])
            places.append((self.owner()[0], [(one["index"], one["node_guid"]) for one in self.site.ctl_json("devices")
                                             if one["plane"] == "ib0"]))
        nobody = places[0]
        self.assertEqual(nobody[0], HCA)
        self.assertEqual([one[0] for one in places], [HCA, "truly", HCA, HCA, HCA, HCA])
        self.assertEqual(places[2:], [nobody] * 4)
        (finding,) = self.findings()
        self.assertIn("truly reports it as its own", finding["what"])
        self.assertIn("again and again", finding["what"])
        before = self.site.generation()
        self.site.advance(600 * 8 - 30)
        self.assertEqual((self.owner()[0], self.site.generation()), (HCA, before))
        self.site.advance(60)
        self.assertEqual((self.owner(), self.findings(), self.site.generation()), (("truly", "ib0"), [], before + 1))

    def without_a_name(self):
        """A fabric with an HCA that has no name, and what a host says that claims it."""
        self.site.free()
        self.text = sim.fabric("fattree2:2,1,2", "capture").replace('# "node0003"', '# "MT4123 ConnectX6"')
        self.site = sim.Recorded(self.text)
        self.addCleanup(self.site.free)
        return [{"source": "verbs", "name": "mlx5_0", "port": "1", "node-guid": HCA, "port-guid": "0x0000000000100005",
                 "type": "InfiniBand", "state": "up"}]

    def owner(self):
        (one,) = (one for one in self.site.ctl_json("devices") if one["node_guid"] == HCA)
        return one["host"], one["plane"]

    def check_disputed(self, *hosts):
        """The HCA stands at its place without a host, and both hosts have a device that stands nowhere."""
        (finding,) = self.findings()
        self.assertEqual((finding["severity"], finding["where"].split()[0]), ("error", HCA))
        for text in ("{} and {} both report it".format(*hosts), HCA, "it belongs to"):
            self.assertIn(text, finding["what"])
        self.assertEqual(self.site.ctl("check").returncode, 1)
        self.assertEqual(self.owner(), (HCA, "ib0"))
        self.assertEqual(sorted(key for key in self.devices(*hosts) if key[1] == "mlx5_0"),
                         [(host, "mlx5_0", "unattached") for host in sorted(hosts)])

    def test_cards_of_one_host_and_of_two_without_a_dispute_are_none(self):
        self.deliver("h5", [interface(5), dict(card("a"), **{"node-guid": NODE}), dict(card("b"), **{"node-guid": NODE, "port-guid": "0x0000000000abcd02"})])
        self.deliver("h6", [interface(6)])
        self.assertEqual(self.findings(), [])
        self.deliver("h1", [interface(5, "x5", 1)])
        (finding,) = self.findings()
        self.assertIn("h5 and h1 both report it as their own (mac 24:57:20:04:20:05)", finding["what"])

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
