"""Swaps that take longer than a sweep: each hand's two halves are seen one by one, and told as what they are.

What was lost is remembered over a kill: what comes is told as back, moved or in its place, with the generation in
which it was lost. And the history of one thing under several names is one.
"""
import os
import unittest

import afresh
import sim
from sim import lab

HOST, LEAF, SPINE = "node0003", "leaf2", "spine2"
GUID, NEW = "0x0000000000100004", "0x0000000000990001"


def words(changes):
    return sorted((c["kind"], c["what"], c["before"], c["after"]) for c in changes if c["kind"] not in ("lid", "index", "plane-shape"))


class Slow(unittest.TestCase):
    def setUp(self):
        self.site = sim.Site("fattree2:4,2,2", start=False, room=20)
        self.addCleanup(self.site.free)
        self.map = os.path.join(lab.tmpdir(), "names")
        self.call("")

    def begin(self, **changes):
        self.site.configure({"changes": {"flap_count": 0, "debounce": 0, "retain_seconds": 600, **changes}, "names": {"map": self.map}})
        self.site.start()
        self.generation = self.site.status()["generation"]

    def call(self, names):
        lab.replace_file(self.map, names)

    def told(self, *expected):
        """A sweep, and what has changed since the last call; those changes."""
        self.site.refresh()
        before, self.generation = self.generation, self.site.status()["generation"]
        changes = self.site.ctl_json("diff", str(before), str(self.generation))["changes"]
        self.assertEqual(words(changes), sorted(expected))
        return [c for c in changes if c["kind"] not in ("lid", "index", "plane-shape")]

    def again(self):
        """The memory is the store's."""
        self.site.kill9()
        self.site.start()

    def forget(self, *hosts):
        for host in hosts:
            self.assertEqual(self.site.ctl("forget", host).returncode, 0)

    def remembers(self, change, lost):
        """It says what it knows of the loss."""
        self.assertIn(f"lost in generation {lost['generation']}, last seen ", change["why"])
        self.assertEqual(change["last_seen"], lost["last_seen"])
        self.assertLess(change["last_seen"], change["first_seen"])

    def as_afresh(self):
        self.assertEqual(afresh.costs(self.site), afresh.costs(self.site.afresh()))

    def test_a_spine_is_replaced(self):
        self.begin()
        self.site.unlink(SPINE)
        lost = self.told(("switch-lost", SPINE, "0x0000000000200005", ""))[0]
        self.again()
        self.site.guid(SPINE, 0x9a0002)
        self.site.relink(SPINE, 1)
        change = self.told(("switch-replaced", SPINE, "0x0000000000200005", "0x00000000009a0002"))[0]
        self.remembers(change, lost)
        self.assertIn("1 of its 4 cables leads to another switch now", change["why"])
        for port in (2, 3, 4):
            self.site.relink(SPINE, port)
        for change in self.told(*(("link-back", f"leaf{n}[4] - {SPINE}[{n}]", "lost", "4xHDR") for n in (2, 3, 4))):
            self.remembers(change, lost)
        self.as_afresh()
        self.assertEqual([c["kind"] for c in self.site.ctl_json("history", SPINE) if c["generation"] > 1],
                         ["switch-lost", "switch-replaced"] + 3 * ["link-back"])

    def test_a_cable_is_moved_while_looks_see_it(self):
        """Nobody asks for a sweep: at the pace of looks."""
        self.begin(light_sweep=1)
        near, far = self.site.cable(LEAF, SPINE), self.site.cable(SPINE, LEAF)
        self.site.unlink(LEAF, near)
        self.site.advance(2)
        self.assertGreater(self.site.generation(), self.generation)
        cable = f"{LEAF}[{near}] - {SPINE}[{far}]"
        lost = self.told(("link-lost", cable, "4xHDR", ""))[0]
        self.site.link(LEAF, near, SPINE, 9)
        self.site.advance(2)
        self.assertGreater(self.site.generation(), self.generation)
        found = [c for c in self.site.ctl_json("history", LEAF) if c["kind"] == "cable-moved"]
        self.assertEqual(words(found), [("cable-moved", cable, f"{SPINE}[{far}], 4xHDR", f"{SPINE}[9], 4xQDR")])
        self.remembers(found[0], lost)

    def test_an_hca_is_replaced_after_it_was_retired(self):
        self.begin(retain_seconds=2)
        port = self.site.cable(LEAF, HOST)
        self.site.unlink(LEAF, port)
        self.site.refresh()
        self.site.advance(2.1)
        self.assertEqual(self.site.generation(), self.generation + 2)
        lost = self.told(("host-missing", f"{HOST} HCA-1", "there", "missing"),
                         ("host-lost", HOST, f"1 device: {GUID} at {LEAF}[{port}]", ""))
        lost = next(c for c in lost if c["kind"] == "host-lost")
        self.again()
        self.site.guid(HOST, int(NEW, 16))
        self.site.relink(LEAF, port)
        self.remembers(self.told(("hca-replaced", f"{HOST} HCA-1", GUID, NEW))[0], lost)
        self.as_afresh()

    def test_hosts_that_were_forgotten(self):
        self.begin()
        port = self.site.cable(LEAF, HOST)
        missing, lost = ("host-missing", f"{HOST} HCA-1", "there", "missing"), "1 device: {} at {}[{}]"
        place, guid = (LEAF, port), GUID
        for turn, (to, new, expected) in enumerate((
                (("leaf3", 9), None, [("host-moved", f"{HOST} HCA-1[1]", f"{LEAF}[{port}], 4xHDR", "leaf3[9], 4xQDR")]),
                (("leaf3", 9), None, [("host-back", f"{HOST} HCA-1", "lost", "there")]),
                (("leaf3", 9), NEW, [("hca-replaced", f"{HOST} HCA-1", GUID, NEW)]),
                ((LEAF, port), GUID, [("hca-replaced", f"{HOST} HCA-1", NEW, GUID),
                                      ("host-moved", f"{HOST} HCA-1[1]", "leaf3[9], 4xQDR", f"{LEAF}[{port}], 4xHDR")]))):
            with self.subTest(turn=turn):
                self.site.unlink(*place)
                self.told(missing)
                self.forget(HOST)
                self.told(("host-lost", HOST, lost.format(guid, *place), ""))
                if new is not None:
                    guid = new
                    self.site.guid(HOST, int(new, 16))
                place = to
                self.site.link(*place, HOST, 1)
                for change in self.told(*expected):
                    self.assertIn("lost in generation ", change["why"])
        self.as_afresh()

    def test_a_leaf_is_replaced_after_its_hosts_were_forgotten(self):
        self.begin()
        hosts = {host: self.site.cable(LEAF, host) for host in ("node0003", "node0004")}
        self.site.unlink(LEAF)
        self.site.refresh()
        self.forget(*hosts)
        self.again()
        self.site.guid(LEAF, 0x9a0001)
        self.generation = self.site.status()["generation"]
        self.site.relink(LEAF)
        for change in self.told(("switch-replaced", LEAF, "0x0000000000200001", "0x00000000009a0001"),
                                *(("host-back", f"{host} HCA-1", "lost", "there") for host in hosts)):
            self.assertIn("lost in generation ", change["why"])
        self.as_afresh()

    def story(self, what):
        return [(c["generation"], c["kind"]) for c in self.site.ctl_json("history", what) if c["kind"] != "lid"]

    def test_one_history_under_several_names(self):
        self.begin()
        port = self.site.cable(LEAF, HOST)
        self.call(f'{GUID} "gpu17 HCA-1"\n')
        self.told(("name", HOST, HOST, "gpu17"))
        self.site.unlink(LEAF, port)
        self.told(("host-missing", "gpu17 HCA-1", "there", "missing"))
        self.forget("gpu17")
        self.told(("host-lost", "gpu17", f"1 device: {GUID} at {LEAF}[{port}]", ""))
        self.again()
        self.site.guid(HOST, int(NEW, 16))
        self.call(f'{NEW} "gpu18 HCA-1"\n0x9a0001 "swx"\n')
        self.site.relink(LEAF, port)
        self.told(("hca-replaced", "gpu17 HCA-1", f"{GUID} gpu17 HCA-1", f"{NEW} gpu18 HCA-1"))
        whole = [(1, "host-added"), (2, "name"), (3, "host-missing"), (4, "host-lost"), (5, "hca-replaced")]
        for name in (HOST, "gpu17", "gpu18"):
            self.assertEqual(self.story(name), whole)
        text = self.site.ctl("history", "gpu17").stdout
        self.assertIn(f"gpu17: with the history of gpu18 from generation 5 on\n"
                      f"gpu17: with the history of {HOST} up to generation 2\n", text)
        # the name is another host's now: the story that had it before has nothing of that
        self.call(f'{NEW} "gpu18 HCA-1"\n0x100006 "{HOST} HCA-1"\n0x9a0001 "swx"\n')
        self.told(("name", "node0004", "node0004", HOST))
        self.assertEqual(self.story("gpu18"), whole)
        self.assertEqual(self.story("node0004"), [(1, "host-added"), (6, "name")])
        self.assertEqual(self.story(HOST), [(1, "host-added"), *whole, (6, "name")])  # what was asked for: both
        self.site.guid(LEAF, 0x9a0001)
        self.told(("switch-replaced", LEAF, "0x0000000000200001 leaf2", "0x00000000009a0001 swx"))
        self.assertEqual(self.story("swx"), self.story(LEAF))
        self.assertIn((1, "switch-added"), self.story("swx"))


if __name__ == "__main__":
    unittest.main()
