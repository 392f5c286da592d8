"""Error counters: read when they are asked for and where a link changed; what grows is a finding."""
import unittest

import sim
from site_case import Case

LEAF, HOST = "leaf1", "node0001"
SYMBOL_ERRORS, LINK_DOWNED, RECEIVE_ERRORS, DISCARDS = 0, 2, 3, 7  # enum probe_counter


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
        self.assertIn("no configured probe", self.site.control("counters", name=LEAF)["message"])


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


class All(Counters):
    """Slow rounds over all ports, whether or not their links changed."""
    ROUND = 600

    def start(self, rate=50, seconds=ROUND, **changes):
        changes.setdefault("counters", 0)
        return super().start(config={"check": {"counters_round": seconds, "counters_rate": rate}}, **changes)

    def all_rows(self, *args):
        return self.site.ctl_json("counters", "--all", *args)

    def test_the_worst_first(self):
        site = self.start()
        self.assertEqual(self.all_rows(), [])
        self.assertIn("0 of 48 ports are read so far", site.ctl("counters", "--all").stdout)
        site.count("leaf2", 1, SYMBOL_ERRORS, 11)
        site.count("leaf3", 2, RECEIVE_ERRORS, 400)
        site.count("leaf4", 3, SYMBOL_ERRORS, 10)  # as many as ibqueryerrors allows
        site.count("spine1", 1, DISCARDS, 101)
        site.count("spine2", 1, DISCARDS, 100)
        site.advance(100)
        self.assertEqual(len(self.all_rows()), 48)
        bad = self.all_rows("--errors")
        self.assertEqual([(row["port"], row["above"]) for row in bad],
                         [("leaf3[2]", ["receive_errors"]), ("leaf2[1]", ["symbol_errors"]), ("spine1[1]", ["discards"])])
        self.assertEqual([row["port"] for row in self.all_rows()][:3], [row["port"] for row in bad])
        self.assertEqual([round(row["level"], 2) for row in bad], [40, 1.1, 1.01])
        self.assertEqual(self.grown(), [], "what was counted before the first reading is no growth")
        shown = site.ctl("counters", "--all", "--errors", "--columns", "port,peer").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in shown[1:]], ["leaf3[2]", "leaf2[1]", "spine1[1]"])
        # What grows comes before what has grown.
        site.count("leaf2", 1, SYMBOL_ERRORS, 31)
        site.advance(self.ROUND)
        self.assertEqual([row["port"] for row in self.all_rows("--errors")], ["leaf2[1]", "leaf3[2]", "spine1[1]"])
        (where, what), = self.grown()
        self.assertEqual(where, "leaf2[1]")
        self.assertRegex(what, r"^symbol errors \+20 since \S+; its cable leads to node\d+ HCA-1\[1\]$")

    def test_a_few_errors_are_no_finding(self):
        """Nor are a few more on each day; but what goes on is one, until it has stopped for a day or the link is another one."""
        site = self.start()
        site.advance(100)
        for errors in range(9, 99, 9):
            self.count(SYMBOL_ERRORS, errors)
            site.advance(86400)
            self.assertEqual(self.grown(), [])
        for errors in (110, 121, 132):
            self.count(SYMBOL_ERRORS, errors)
            site.advance(self.ROUND)
        self.assertEqual([where for where, _ in self.grown()], [self.here])
        site.advance(86400 - 4 * self.ROUND)
        self.assertEqual(len(self.grown()), 1)
        site.advance(5 * self.ROUND)
        self.assertEqual(self.grown(), [])
        self.count(SYMBOL_ERRORS, 200)
        site.advance(self.ROUND)
        self.assertEqual(len(self.grown()), 1)
        site.pull(LEAF, self.port)
        site.refresh()
        self.plug(LEAF, self.port)
        self.assertEqual(self.grown(), [])

    def test_the_rate_is_bounded(self):
        """Eight ports each four seconds: 48 ports take 24 s, and the next round begins when it is time."""
        site = self.start(rate=2)
        site.advance(90.5)
        read = [len(self.all_rows())]
        for _ in range(6):
            site.advance(4.03)
            read.append(len(self.all_rows()))
        self.assertEqual(read, [8, 16, 24, 32, 40, 48, 48])
        before = max(row["read"] for row in self.all_rows())
        site.advance(self.ROUND - 60)
        self.assertEqual(max(row["read"] for row in self.all_rows()), before)
        site.advance(90)
        self.assertGreater(min(row["read"] for row in self.all_rows()), before)

    def test_what_is_gone_goes(self):
        site = self.start(retain_seconds=1)
        site.advance(100)
        self.pull(LEAF, HOST)
        site.advance(10)
        self.assertEqual(len(self.all_rows()), 46)
        site.advance(2 * 86400)
        self.assertEqual((len(self.all_rows()), site.control("counters", all=True)["read"]), (46, 46))

    def test_a_leaf_that_does_not_answer(self):
        site = self.start()
        site.sweeps(sim.MISS, LEAF)
        site.advance(100)
        self.assertEqual({row["state"] for row in self.all_rows() if row["port"].startswith(LEAF)}, {"no-answer"})
        self.assertEqual(site.errors(), [])

    def test_none_and_later_some(self):
        site = self.start(seconds=0)
        site.advance(3600)
        self.assertEqual(self.all_rows(), [])
        self.assertIn("counters_round", site.ctl("counters", "--all").stdout)
        site.configure({"check": {"counters_round": 100}})
        site.hup()
        site.advance(100)
        self.assertEqual(len(self.all_rows()), 48)

    def test_usage(self):
        self.start()
        self.assertEqual(self.site.ctl("counters", "--all", LEAF).returncode, 2)
        self.assertFalse(self.site.control("counters", all=True, next="x")["ok"])
        self.count(SYMBOL_ERRORS, 77)
        self.assertEqual([row["port"] for row in self.site.ctl_json("counters", LEAF, "--errors")], [self.here])
        self.assertIn("no port has more", self.site.ctl("counters", "leaf2", "--errors").stdout)


if __name__ == "__main__":
    unittest.main()
