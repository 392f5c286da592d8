"""Error counters: read when they are asked for and where a link changed; what grows is a finding."""
import unittest

import sim
from site_case import Case

LEAF, HOST = "leaf1", "node0001"
SYMBOL_ERRORS, LINK_DOWNED, RECEIVE_ERRORS = 0, 2, 3  # enum probe_counter


class Counters(Case):
    fabric = "fattree2:4,2,4"

    def start(self, *args, **changes):
        site = super().start(*args, **changes)
        self.port = site.cable(LEAF, HOST)
        self.here = f"{LEAF}[{self.port}]"
        return site

    def count(self, counter, value):
        """What the leaf's port towards the host has counted."""
        self.site.count(LEAF, self.port, counter, value)

    def ask(self, name=None):
        answer = self.site.control("counters", **({"name": name} if name else {}))
        self.assertTrue(answer["ok"], answer)
        return {port["port"]: port for port in answer["ports"]}

    def grown(self):
        return [(finding["where"], finding["what"]) for finding in self.findings("counters-grow")]


class Asked(Counters):
    def test_a_switch_and_a_host(self):
        self.start()
        self.count(SYMBOL_ERRORS, 7)
        ports = self.ask(LEAF)
        self.assertEqual(len(ports), 6)
        self.assertEqual({port["state"] for port in ports.values()}, {"read"})
        self.assertEqual((ports[self.here]["symbol_errors"], ports[self.here]["grown"]), (7, ""))
        self.assertEqual(self.grown(), [], "what was counted before the first reading is no growth")
        both = self.ask(HOST)
        self.assertEqual(len(both), 2)
        self.assertEqual(both[self.here]["symbol_errors"], 7)
        self.count(SYMBOL_ERRORS, 57)
        self.count(RECEIVE_ERRORS, 3)
        self.assertEqual(self.ask(LEAF)[self.here]["grown"], "symbol errors +50, receive errors +3")
        (where, what), = self.grown()
        self.assertEqual(where, self.here)
        self.assertRegex(what, rf"^symbol errors \+50, receive errors \+3 since \S+; its cable leads to {HOST} ")
        self.count(SYMBOL_ERRORS, 0)  # somebody reset it
        self.assertEqual(self.ask(LEAF)[self.here]["grown"], "symbol errors +50, receive errors +3")
        shown = self.site.ctl("counters", LEAF)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, rf"(?m)^{LEAF}\[{self.port}\] +read +0 ")

    def test_what_is_not_there_or_does_not_answer(self):
        self.start()
        self.assertEqual(self.ask(), {})
        refused = self.site.ctl("counters", "nobody")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no switch or host nobody", refused.stderr)
        self.site.sweeps(sim.MISS, LEAF)
        self.assertEqual({port["state"] for port in self.ask(LEAF).values()}, {"no-answer"})

    def test_a_caller_that_does_not_wait(self):
        self.start()
        for _ in range(5):
            self.site.ask("counters", name=LEAF).close()
        self.assertEqual(len(self.ask("spine1")), 4)

    def test_without_a_probe_that_can(self):
        self.site = sim.Recorded(sim.fabric(self.fabric, "capture"))
        self.addCleanup(self.site.free)
        self.assertIn("no probe that is configured", self.site.control("counters", name=LEAF)["message"])


class Changed(Counters):
    def test_a_link_that_changed_is_read_again_and_again(self):
        self.start(counters=60)
        self.site.pull(LEAF, self.port)
        self.site.refresh()
        self.plug(LEAF, self.port)
        self.site.advance(60)
        self.assertEqual(self.ask()[self.here]["state"], "read")
        self.assertEqual(len(self.ask()), 2, "both ends of that link")
        self.count(LINK_DOWNED, 200)
        self.assertEqual(self.grown(), [])
        self.site.advance(60)
        (_, what), = self.grown()
        self.assertIn("link downed +200", what)


if __name__ == "__main__":
    unittest.main()
