"""Error counters: read when they are asked for and where a link changed; what grows is a finding."""
import unittest

import lab

SMALL = "fattree2:4,2,4"
LEAF, HOST = "leaf1", "node0001"


class Counters(unittest.TestCase):
    def start(self, **config):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric(SMALL))
        self.addCleanup(self.sim.quit)
        self.sim.sweep()
        self.port = self.sim.cable(LEAF, HOST)
        self.daemon = lab.Fabricd(self.sim, config=config)
        self.addCleanup(self.daemon.stop)

    def count(self, counter, value):
        """What the leaf's port towards the host has counted."""
        self.sim.command(f'PerformanceSet "{LEAF}"[{self.port}] PortCounters.{counter}={value}')

    def ask(self, name=None):
        answer = self.daemon.control("counters", **({"name": name} if name else {}))
        self.assertTrue(answer["ok"], answer)
        return {port["port"]: port for port in answer["ports"]}

    def findings(self):
        return [(finding["where"], finding["what"]) for finding in self.daemon.control("check")["findings"]
                if finding["kind"] == "counters-grow"]


class Asked(Counters):
    def test_a_switch_and_a_host(self):
        self.start()
        here = f"{LEAF}[{self.port}]"
        self.count("SymbolErrorCounter", 7)
        ports = self.ask(LEAF)
        self.assertEqual(len(ports), 6)
        self.assertEqual({port["state"] for port in ports.values()}, {"read"})
        self.assertEqual((ports[here]["symbol_errors"], ports[here]["grown"]), (7, ""))
        self.assertEqual(self.findings(), [], "what was counted before the first reading is no growth")
        both = self.ask(HOST)
        self.assertEqual(len(both), 2)
        self.assertEqual(both[here]["symbol_errors"], 7)
        self.count("SymbolErrorCounter", 57)
        self.count("PortRcvErrors", 3)
        self.assertEqual(self.ask(LEAF)[here]["grown"], "symbol errors +50, receive errors +3")
        (where, what), = self.findings()
        self.assertEqual(where, here)
        self.assertRegex(what, rf"^symbol errors \+50, receive errors \+3 since \S+; its cable leads to {HOST} ")
        self.count("SymbolErrorCounter", 0)  # somebody reset it
        self.assertEqual(self.ask(LEAF)[here]["grown"], "symbol errors +50, receive errors +3")
        shown = self.daemon.ctl("counters", LEAF)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, rf"(?m)^{LEAF}\[{self.port}\] +read +0 ")

    def test_what_is_not_there_or_does_not_answer(self):
        self.start()
        self.assertEqual(self.ask(), {})
        refused = self.daemon.ctl("counters", "nobody")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no switch or host nobody", refused.stderr)
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
        self.assertEqual(self.findings(), [])
        manager.stop()

    def test_a_caller_that_does_not_wait(self):
        self.start()
        for _ in range(5):
            self.daemon.ask("counters", name=LEAF).close()
        self.assertEqual(len(self.ask("spine1")), 4)

    def test_without_a_probe_that_can(self):
        self.start()
        capture = self.sim.run(["ibnetdiscover"]).stdout
        file = lab.tmpdir() + "/capture"
        lab.replace_file(file, capture)
        other = lab.Fabricd(config={"fabricd": {"probe": f"file:{file}"}})
        self.addCleanup(other.stop)
        self.assertIn("no probe that is configured", other.control("counters", name=LEAF)["message"])


class Changed(Counters):
    def test_a_link_that_changed_is_read_again_and_again(self):
        self.start(changes={"counters": 1})
        here = f"{LEAF}[{self.port}]"
        self.sim.unlink(LEAF, self.port)
        self.daemon.refresh()
        self.sim.relink(LEAF, self.port)
        self.sim.sweep()
        self.daemon.refresh()
        lab.wait_for(lambda: self.ask().get(here, {}).get("state") == "read", 10, "the first reading")
        self.assertEqual(len(self.ask()), 2, "both ends of that link")
        self.count("LinkDownedCounter", 200)
        lab.wait_for(self.findings, 10, "the finding")
        self.assertIn("link downed +", self.findings()[0][1])


if __name__ == "__main__":
    unittest.main()
