"""A live subnet beside a recorded fabric: what is swept of one of them, and watched, leaves the other as it is."""
import os
import re
import unittest

import lab
from test_partial_sweep import SMALL, Case


class Probes(Case):
    """A live subnet beside a recorded one."""

    def record(self, spec="fattree2:3,2,2", form=lambda text: text):
        """A capture of a fabric that has nothing in common with the simulated one."""
        text = form(lab.fabric(spec, "capture"))
        text = re.sub(r"(sysimgguid=|switchguid=|caguid=)0x", r"\g<1>0xabc000000", text)
        text = re.sub(r'"([SH])-0000', r'"\1-0abc', text)
        text = re.sub(r"\((\w{6})\)", r"(abc000000\1)", text)
        text = text.replace('"leaf', '"east').replace('"spine', '"west').replace('"node', '"rail')
        lab.replace_file(self.path, text)

    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "other.txt")
        self.sim = self.simulate()

    def both(self, **changes):
        self.record()
        self.serve(changes, ["ibnetdisc", f"file:{self.path}"])
        self.assertEqual([row["hosts"] for row in self.daemon.ctl_json("planes")], [16, 6])

    def slow(self, text):
        """The recorded fabric with a change in it."""
        return text.replace("4xHDR", "4xEDR")

    def test_a_switch_of_one_of_them(self):
        self.both()
        places = self.places()
        port = self.pull("leaf1", "spine2")
        self.assertEqual(self.switch("leaf1"), [("link-lost", f"leaf1[{port}] - spine2[1]")])
        self.assertEqual((self.places(), self.generation()), (places, 2))
        self.same()
        part, whole = self.packets()
        self.assertEqual((len(part), len(whole)), (1, 2))
        # the file is asked for its own only, and then nobody else is
        self.record(form=self.slow)
        self.assertEqual(self.switch("leaf1"), [])
        answer = self.refresh("--switch", "east1")
        self.assertEqual((answer["scope"], answer["scope_reason"], answer["changed"]),
                         ("fabric", "a file is read as a whole", True))
        self.assertEqual(self.places(), places)
        part, whole = self.packets()
        self.assertEqual((len(part), len(whole)), (2, 2))
        self.same()

    def test_what_does_not_answer_is_not_needed_for_the_other(self):
        self.both()
        places = self.places()
        os.rename(self.path, self.path + ".away")
        self.pull("leaf1", "spine2")
        self.assertEqual(len(self.switch("leaf1")), 1)
        self.assertEqual(self.places(), places)
        self.assertFalse(self.daemon.control("refresh", switch="east1")["ok"])
        self.assertFalse(self.daemon.control("refresh", switch="leaf1")["ok"])  # after a failure everything is asked
        self.assertEqual(self.places(), places)
        os.rename(self.path + ".away", self.path)
        self.assertEqual(self.switch("leaf1", "fabric"), [])
        self.same()

    def test_both_are_watched(self):
        self.both(light_sweep=1, debounce=0)
        self.daemon.until("light-sweep", after=0)
        places = self.places()
        for hand in (self.sim.unlink, self.sim.relink):
            generation, whole = self.generation(), len(self.packets()[1])
            hand("leaf1", self.sim.cable("leaf1", "spine2"))
            self.daemon.until("generation", generation=generation + 1)
            self.assertEqual(len(self.packets()[1]), whole)
            self.assertEqual(self.places(), places)
        for form in (self.slow, lambda text: text):
            generation = self.generation()
            self.record(form=form)
            self.daemon.until("generation", generation=generation + 1)
            self.assertEqual(self.places(), places)
            self.assertEqual(len(self.packets()[1]), whole)  # which is no reason to ask the subnet
        self.sim.sweep()
        self.daemon.refresh()
        self.same()

    def test_two_that_see_the_same(self):
        """What one of them sees cabled holds, however it was swept."""
        text = lab.fabric(SMALL, "capture")
        lab.replace_file(self.path, text)
        self.serve({}, ["ibnetdisc", "ibnetdisc::1", f"file:{self.path}"])
        self.assertEqual([row["hosts"] for row in self.daemon.ctl_json("planes")], [16])
        self.pull("leaf1", "spine2")
        self.switch("leaf1", "fabric")
        self.assertEqual([len(n) for n in self.packets()], [2, 2])
        self.same()
        self.assertEqual(self.refresh()["changed"], False)


if __name__ == "__main__":
    unittest.main()
