"""The probe lldp with real lldpd processes: a switch (a namespace with a bridge) and the hosts that are cabled to it."""
import json
import os
import unittest

import hosts
import lab


class Lldp(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        lab.require("lldpd", "lldpctl", "lldpcli")
        lab.require_probe("lldp")
        hosts.need()
        self.addCleanup(lab.cleanup)

    @staticmethod
    def switch(n):
        """A bridge with n hosts on it."""
        switch = hosts.Host("switch")
        around = [hosts.Host(f"host{i}") for i in range(n)]
        switch.do("ip", "link", "add", "br0", "type", "bridge")
        switch.do("ip", "link", "set", "br0", "up")
        for i, host in enumerate(around):
            host.cable(switch, f"10.91.0.{i + 1}", f"10.91.{i + 1}.254")
            switch.do("ip", "link", "set", f"eth{i}", "master", "br0")
        return switch, around

    def test_switch(self):
        switch, around = self.switch(2)
        leaf = hosts.Lldpd(switch, "leaf1", "configure lldp portidsubtype ifname")
        nodes = [hosts.Lldpd(host, f"node{i}") for i, host in enumerate(around)]
        for i, node in enumerate(nodes):
            node.wait("eth0")
            heard = node.heard()["eth0"]
            expected = [{"source": "lldp", "interface": "eth0", "switch-id": heard["chassis.mac"],
                         "switch-name": "leaf1", "switch-port": f"eth{i}"}]
            self.assertEqual(node.items(), expected)
            # What it says can be recorded.
            path = os.path.join(lab.tmpdir(), "recorded")
            with open(path, "w", encoding="utf-8") as file:
                file.write(node.look().stdout)
            self.assertEqual(node.items(f"lldp:{path}"), expected)
            done = node.look("--available", "lldp")
            self.assertEqual(done.stdout, "lldpd answers, switches on 1 interface\n")
        self.assertEqual(len({node.items()[0]["switch-id"] for node in nodes}), 1)
        # The switch hears two hosts, and those are no switches.
        leaf.wait("eth0", "eth1")
        self.assertEqual(leaf.items(), [])
        # A cable that is pulled is gone, the other one stays.
        switch.do("ip", "link", "set", "eth0", "down")
        nodes[0].wait()
        self.assertEqual(nodes[0].items(), [])
        self.assertEqual(len(nodes[1].items()), 1)
        switch.do("ip", "link", "set", "eth0", "up")
        nodes[0].wait("eth0")
        self.assertEqual(nodes[0].items()[0]["switch-port"], "eth0")
        # Without lldpd there is nothing that could be known, and that is said.
        nodes[0].stop()
        done = nodes[0].look()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^lldp: lldpd does not answer: .*start it.*not supported\)\n$")
        self.assertRegex(nodes[0].look("--available", "lldp").stdout, "^lldp: lldpd does not answer: unable to connect")

    def test_other_ids_and_neighbours(self):
        """A chassis that is known by a name, ports by their MAC, a system name of bytes that are no text; and a host on the other cable."""
        switch, (host,) = self.switch(1)
        other = hosts.Host("other")
        host.cable(other, "10.92.0.1", "10.92.0.2")
        hosts.Lldpd(switch, "l\udce9af-\u00fcone", "configure system chassisid rack7", "configure lldp portidsubtype macaddress")
        node, beside = hosts.Lldpd(host, "node0"), hosts.Lldpd(other, "node1")
        node.wait("eth0", "eth1")
        beside.wait("eth0")
        mac = json.loads(switch.do("ip", "-j", "link", "show", "eth0"))[0]["address"]
        item, = node.items()
        self.assertEqual((item["interface"], item["switch-id"], item["switch-port"]), ("eth0", "local rack7", mac))
        self.assertRegex(item["switch-name"], "^l.+af-\u00fcone$")
        self.assertTrue(item["switch-name"].isprintable())
        self.assertEqual(beside.items(), [])
        self.assertIn("the neighbour is not a switch", beside.look().stderr)


if __name__ == "__main__":
    unittest.main()
