"""Error counters as performance management answers; what becomes of them: test/sim/test_counters.py."""
import unittest

import lab

SMALL = "fattree2:4,2,4"
LEAF, HOST = "leaf1", "node0001"


class Counters(unittest.TestCase):
    def start(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric(SMALL))
        self.addCleanup(self.sim.quit)
        self.sim.sweep()
        self.port = self.sim.cable(LEAF, HOST)
        self.daemon = lab.Fabricd(self.sim)
        self.addCleanup(self.daemon.stop)

    def count(self, counter, value):
        """What the leaf's port towards the host has counted."""
        self.sim.command(f'PerformanceSet "{LEAF}"[{self.port}] PortCounters.{counter}={value}')

    def ask(self, name=None):
        answer = self.daemon.control("counters", **({"name": name} if name else {}))
        self.assertTrue(answer["ok"], answer)
        return {port["port"]: port for port in answer["ports"]}

    def test_a_switch_that_answers_and_then_does_not(self):
        self.start()
        here = f"{LEAF}[{self.port}]"
        for counter, value in (("SymbolErrorCounter", 7), ("PortRcvErrors", 3), ("LinkDownedCounter", 200)):
            self.count(counter, value)
        ports = self.ask(LEAF)
        self.assertEqual(len(ports), 6)
        self.assertEqual({port["state"] for port in ports.values()}, {"read"})
        self.assertEqual([ports[here][key] for key in ("symbol_errors", "receive_errors", "link_downed")], [7, 3, 200])
        self.sim.command(f'Error "{LEAF}" 100')
        self.assertEqual({port["state"] for port in self.ask(LEAF).values()}, {"no-answer"})

    def test_who_refuses(self):
        """Since the last sweep the LID is another device's, whose performance management knows no such port."""
        self.start()
        lids = {switch["name"]: switch["lid"] for switch in self.daemon.ctl_json("switches", LEAF)}
        lids.update({device["host"]: device["lid"] for device in self.daemon.ctl_json("devices", HOST)})
        for name, port, lid in ((LEAF, 0, 999), (HOST, 1, lids[LEAF]), (LEAF, 0, lids[HOST])):
            self.sim.command(f'Baselid "{name}"[{port}] {lid}')
        manager = lab.OpenSM(self.sim)  # which knows nothing of before, and brings the routes up to date
        ports = self.ask(LEAF)
        others = {name: port for name, port in ports.items() if name != f"{LEAF}[1]"}  # the host's port, too, is a first one
        self.assertEqual((len(others), {port["state"] for port in others.values()}), (5, {"no-counters"}))
        self.assertEqual({port["symbol_errors"] for port in others.values()}, {None})
        self.assertRegex(self.daemon.ctl("counters", LEAF).stdout, rf"(?m)^{LEAF}\[2\] +no-counters +- ")
        self.daemon.refresh()
        self.assertEqual({port["state"] for port in self.ask(LEAF).values()}, {"read"})
        manager.stop()


if __name__ == "__main__":
    unittest.main()
