"""A live subnet beside a recorded fabric: what is swept of one of them, and watched, leaves the other as it is."""
import os
import re
import unittest

import lab

SMALL = "fattree2:4,2,4"


class Probes(unittest.TestCase):
    def setUp(self):
        lab.require("ibsim", "opensm")
        self.path = os.path.join(lab.tmpdir(), "other.txt")
        self.sim = lab.Ibsim(lab.fabric(SMALL))
        self.addCleanup(self.sim.quit)
        self.sim.sweep()
        self.port = self.sim.cable("leaf1", "spine2")

    def serve(self, probes, hosts, **changes):
        config = {"fabricd": {"log": "debug", "probe": probes}, "changes": {"light_sweep": 0, "flap_count": 0, **changes}}
        self.daemon = lab.Fabricd(self.sim, config=config)
        self.addCleanup(self.daemon.stop)
        self.assertEqual([row["hosts"] for row in self.daemon.ctl_json("planes")], hosts)

    def record(self, form=lambda text: text):
        """A capture of a fabric that has nothing in common with the simulated one."""
        text = form(lab.fabric("fattree2:3,2,2", "capture"))
        text = re.sub(r"(sysimgguid=|switchguid=|caguid=)0x", r"\g<1>0xabc000000", text)
        text = re.sub(r'"([SH])-0000', r'"\1-0abc', text)
        text = re.sub(r"\((\w{6})\)", r"(abc000000\1)", text)
        text = text.replace('"leaf', '"east').replace('"spine', '"west').replace('"node', '"rail')
        lab.replace_file(self.path, text)

    def slow(self, text):
        """The recorded fabric with a change in it."""
        return text.replace("4xHDR", "4xEDR")

    def refresh(self, *args):
        answer = self.daemon.ctl_json("refresh", *args)
        return answer["scope"], answer["scope_reason"], [change["what"] for change in answer["changes"]]

    def packets(self):
        """How many sweeps there were: of a part of the subnet, and of everything."""
        log = self.daemon.log()
        return len(re.findall(r"read again with \d+ packets", log)), len(re.findall(r"everything discovered with \d+ packets", log))

    def places(self):
        """Where everybody stands, as jobs have it."""
        return {row["host"]: (row["plane"], row["index"], row["logical"], row["physical"]) for row in self.daemon.ctl_json("devices")}

    def same(self):
        """What is served is what a sweep of everything sees."""
        self.assertEqual(self.daemon.control("verify")["changes"], [])

    def test_one_of_them_is_asked_or_does_not_answer(self):
        self.record()
        self.serve(["ibnetdisc", f"file:{self.path}"], [16, 6])
        places = self.places()
        self.sim.unlink("leaf1", self.port)
        self.assertEqual(self.refresh("--switch", "leaf1"), ("switch", None, [f"leaf1[{self.port}] - spine2[1]"]))
        self.assertEqual(self.packets(), (1, 1))
        # the file is asked for its own only, and then nobody else is
        self.record(self.slow)
        self.assertEqual(self.refresh("--switch", "leaf1")[2], [])
        scope, reason, changes = self.refresh("--switch", "east1")
        self.assertEqual((scope, reason, bool(changes)), ("fabric", "a file is only read as a whole", True))
        self.assertEqual((self.places(), self.packets()), (places, (2, 1)))
        self.same()
        os.rename(self.path, self.path + ".away")
        self.sim.relink("leaf1", self.port)
        self.assertEqual(len(self.refresh("--switch", "leaf1")[2]), 1)  # the file is not needed for it
        self.assertFalse(self.daemon.control("refresh", switch="east1")["ok"])
        self.assertFalse(self.daemon.control("refresh", switch="leaf1")["ok"])  # after a failure everything is asked
        self.assertEqual(self.places(), places)
        os.rename(self.path + ".away", self.path)
        self.assertEqual(self.refresh("--switch", "leaf1")[0], "fabric")
        self.same()

    def test_both_are_watched(self):
        self.record()
        self.serve(["ibnetdisc", f"file:{self.path}"], [16, 6], light_sweep=1, debounce=0)
        self.daemon.until("light-sweep", after=0)
        places, generation, whole = self.places(), 1, self.packets()[1]
        for hand in (lambda: self.sim.unlink("leaf1", self.port), lambda: self.record(self.slow)):
            generation += 1
            hand()
            self.daemon.until("generation", generation=generation)
            self.assertEqual((self.places(), self.packets()[1]), (places, whole))  # a file is no reason to ask the subnet

    def test_two_that_see_the_same(self):
        """What one of them sees cabled holds, however it was swept."""
        lab.replace_file(self.path, lab.fabric(SMALL, "capture"))
        self.serve(["ibnetdisc", "ibnetdisc::1", f"file:{self.path}"], [16])
        self.sim.unlink("leaf1", self.port)
        self.assertEqual(self.refresh("--switch", "leaf1")[0], "fabric")
        self.assertEqual(self.packets(), (2, 2))
        self.same()


if __name__ == "__main__":
    unittest.main()
