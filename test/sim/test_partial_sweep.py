"""Sweeps of a part of the fabric: of one switch, and while hosts are missing."""
import random
import unittest

import lab
import sim
from site_case import Case

PARTIAL = -17  # PMIXFAB_ERR_PARTIAL


class Parts(Case):
    fabric = "fattree2:4,2,4"

    def start(self, **changes):
        return super().start(**dict({"flap_count": 0}, **changes))

    def unlink(self, switch, other):
        """Pull the cable between the two; its port."""
        port = self.site.cable(switch, other)
        self.site.pull(switch, port)
        return port

    def switch(self, name, scope="switch"):
        """Sweep that switch only; the changes."""
        answer = self.site.ctl_json("refresh", "--switch", name)
        self.assertEqual((answer["scope"], answer["scope_reason"] is None), (scope, scope == "switch"), answer)
        return [(change["kind"], change["what"]) for change in answer["changes"]]

    def same(self):
        """Is what is served what a sweep of everything sees?"""
        answer = self.site.control("verify")
        self.assertTrue(answer["ok"], answer)
        self.assertEqual(answer["changes"], [])


class Switch(Parts):
    """fabricctl refresh --switch"""

    def test_what_changed_there_is_found(self):
        self.fabric = "fattree2:8,4,8"
        self.start()
        here, elsewhere = self.unlink("leaf1", "spine2"), self.unlink("leaf7", "spine4")
        self.assertEqual(self.switch("leaf1"), [("link-lost", f"leaf1[{here}] - spine2[1]")])
        self.assertEqual([c["what"] for c in self.last()], [f"leaf1[{here}] - spine2[1]"])
        self.assertEqual(self.switch("leaf1"), [])
        self.assertEqual(self.generation(), 2)
        answer = self.site.ctl_json("refresh")
        self.assertEqual([c["what"] for c in answer["changes"]], [f"leaf7[{elsewhere}] - spine4[7]"])
        self.assertEqual((answer["scope"], answer["scope_reason"]), ("fabric", None))
        # and with what that sweep saw it goes on
        self.site.plug("leaf7", elsewhere)
        self.assertEqual(self.switch("spine4"), [("link-back", f"leaf7[{elsewhere}] - spine4[7]")])
        guid = next(row["id"] for row in self.site.ctl_json("switches") if row["name"] == "leaf1")
        self.site.plug("leaf1", here)
        self.assertEqual(self.switch(guid), [("link-back", f"leaf1[{here}] - spine2[1]")])
        self.same()
        self.assertEqual(self.site.errors(), [])

    def test_what_hangs_on_it(self):
        self.start()
        port = self.unlink("leaf1", "node0002")
        self.assertEqual([kind for kind, _ in self.switch("leaf1")], ["host-missing"])
        self.site.guid("node0002", 0xabc0)
        self.site.plug("leaf1", port)
        self.assertEqual([kind for kind, _ in self.switch("leaf1")], ["hca-replaced"])
        self.same()

    def test_it_says_what_was_swept(self):
        self.start()
        done = self.site.ctl("refresh", "--switch", "leaf2")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, "generation 1, as before: nothing changed (leaf2 and its neighbours were swept)\n",
                          "fabricctl: sweeping leaf2 and its neighbours\n"))
        self.unlink("leaf2", "spine1")
        done = self.site.ctl("refresh", "--switch", "leaf2", "--wait")
        self.assertRegex(done.stdout, r"\Ageneration 2, published just now \(leaf2 and its neighbours were swept\):\n"
                                      r"TIME .*\n.*link-lost.*leaf2\[\d\] - spine1\[2\]")
        done = self.site.ctl("refresh", "--switch", "leaf2", "--accept-partial")
        self.assertEqual(done.stdout, "generation 2, as before: nothing changed (the whole fabric was swept)\n")
        done = self.site.ctl("refresh")
        self.assertEqual((done.stdout, done.stderr), ("generation 2, as before: nothing changed\n", "fabricctl: sweeping\n"))

    def test_unknown(self):
        self.start()
        for name, near in (("leaf99", "; did you mean leaf1?"), ("node0001", ""), ("0x00000000deadbeef", "")):
            done = self.site.ctl("refresh", "--switch", name)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (
                1, "", f"fabricctl: refresh: no switch {name}: `fabricctl switches` lists them{near}\n"))

    def test_without_waiting(self):
        self.start()
        self.unlink("leaf3", "spine1")
        self.assertEqual(self.site.ctl_json("refresh", "--switch", "leaf3", "--no-wait"), {"taken": True, "generation": 1})
        self.assertEqual(self.generation(), 1)
        self.site.idle()
        self.assertEqual(self.generation(), 2)

    def test_where_a_part_is_not_enough(self):
        self.start()
        self.site.pull("spine2")  # nobody's switch is lost at once
        self.assertEqual(len(self.switch("spine2", "fabric")), 1)
        answer = self.site.refresh(switch="leaf1")
        self.assertEqual(answer["scope"], "switch")
        self.site.plug("spine2")
        answer = self.site.refresh(switch="leaf1")
        self.assertEqual((answer["scope"], answer["changed"]), ("fabric", True))
        self.assertIn("there is a new switch", answer["scope_reason"])
        self.same()
        self.site.pull("leaf2")  # a switch that carries hosts keeps its place, and so its name
        self.assertIn(("switch-missing", "leaf2"), self.switch("leaf2", "fabric"))
        self.assertEqual(self.switch("spine1"), [])
        answer = self.site.refresh(switch="leaf2")
        self.assertRegex(answer["scope_reason"], "^the last sweep did not see the switch 0x")
        self.site.plug("leaf2")
        self.assertIn(("switch-back", "leaf2"), self.switch("leaf2", "fabric"))
        self.same()

    def test_after_a_sweep_that_failed(self):
        """A part that answers does not say that the rest does."""
        self.start()
        self.site.sweeps(sim.MISS, "leaf3")
        self.assertEqual(self.site.control("refresh")["error"], PARTIAL)
        self.assertEqual(self.site.control("refresh", switch="leaf1")["error"], PARTIAL)
        self.assertTrue(self.site.status()["stale"])
        self.site.sweeps(sim.GOOD)
        answer = self.site.refresh(switch="leaf1")
        self.assertEqual((answer["scope"], answer["scope_reason"]), ("fabric", "the last sweep failed"))
        self.assertFalse(self.site.status()["stale"])
        self.assertEqual(self.site.refresh(switch="leaf1")["scope"], "switch")

    def test_many_who_ask(self):
        """Each is answered by a sweep that began after the question, and of everything if one of them wants that."""
        self.start()
        asked = [self.site.ask("refresh", switch=f"leaf{n}") for n in (1, 2, 3)] + [self.site.ask("refresh")]
        self.unlink("leaf4", "spine1")
        asked += [self.site.ask("refresh", switch="leaf4"), self.site.ask("refresh", switch="leaf1")]
        answers = [channel.answer() for channel in asked]
        self.assertTrue(all(answer["ok"] for answer in answers), answers)
        self.assertEqual(answers[3]["scope"], "fabric")
        self.assertEqual(self.generation(), 2)
        self.same()

    def test_random_edits_against_sweeps_of_everything(self):
        parts, edits, seeds = 0, 30, 40 if lab.ALL else 4
        for seed in range(seeds):
            with self.subTest(seed=seed):
                self.start(retain_seconds=0)
                self.site.home("node0001")
                dice, pulled = random.Random(seed), {}
                switches = [f"leaf{n}" for n in range(1, 5)] + ["spine1", "spine2"]
                for _ in range(edits):
                    switch, port = dice.choice(switches), dice.randint(1, 6)
                    if (switch, port) == ("leaf1", 1) or switch.startswith("spine") and port > 4:
                        continue
                    try:
                        (self.site.plug if pulled.pop((switch, port), False) else self.site.pull)(switch, port)
                    except lab.LabError:  # its other end was
                        pulled[switch, port] = True
                        continue
                    answer = self.site.control("refresh", switch=switch)
                    self.site.idle()
                    if not answer["ok"]:
                        self.site.refresh(accept_partial=True)
                        continue
                    parts += answer["scope"] == "switch"
                    self.same()
        self.assertGreater(parts, seeds * edits // 6)

    def test_a_file_is_read_as_a_whole(self):
        self.site = sim.Recorded(sim.fabric(self.fabric, "capture"))
        self.addCleanup(self.site.free)
        self.assertEqual(self.switch("leaf1", "fabric"), [])
        self.assertEqual(self.site.ctl("refresh", "--switch", "leaf1").stdout,
                         "generation 1, as before: nothing changed (the whole fabric was swept: a file is only read as a whole)\n")


class Missing(Parts):
    """Sweeps of a part, and partial ones, while a host is not there."""

    def places(self):
        return {row["host"]: (row["plane"], row["index"], row["logical"], row["physical"]) for row in self.site.ctl_json("devices")}

    def missing(self):
        return {row["where"].split()[0] for row in self.findings("missing")}

    def test_it_keeps_its_place(self):
        self.start()
        places, generation = self.places(), self.generation()
        port = self.unlink("leaf1", "node0002")
        self.assertEqual([kind for kind, _ in self.switch("leaf1")], ["host-missing"])
        # changes elsewhere are published, and it stays what it is
        other = self.unlink("leaf2", "spine1")
        self.assertEqual(len(self.switch("leaf2")), 1)
        self.assertEqual(self.switch("leaf1"), [])
        self.assertEqual((self.places(), self.missing(), self.generation()), (places, {"node0002"}, generation + 2))
        # a part of the fabric that answers takes nothing away, and hides nothing
        self.site.sweeps(sim.MISS, "leaf3")
        third = self.unlink("leaf4", "spine2")
        for request in ({}, {"switch": "leaf4"}, {"switch": "leaf3"}):
            self.assertEqual(self.site.control("refresh", **request)["error"], PARTIAL)
        self.assertEqual((self.places(), self.missing(), self.generation()), (places, {"node0002"}, generation + 2))
        self.site.sweeps(sim.GOOD)
        self.assertEqual(len(self.switch("leaf4", "fabric")), 1)
        self.assertEqual((self.places(), self.missing(), self.generation()), (places, {"node0002"}, generation + 3))
        # it is there again when its switch is asked, not before
        for switch, place in (("leaf2", other), ("leaf4", third), ("leaf1", port)):
            self.site.plug(switch, place)
        self.assertEqual(len(self.switch("leaf2")), 1)
        self.assertEqual((self.places(), self.missing()), (places, {"node0002"}))
        self.assertEqual([kind for kind, _ in self.switch("leaf1")], ["host-back"])
        self.assertEqual(len(self.switch("leaf4")), 1)
        self.assertEqual((self.places(), self.missing(), self.generation()), (places, set(), generation + 6))
        self.same()
        self.again()
        self.assertEqual((self.places(), self.generation()), (places, generation + 6))

    def test_it_is_retired_in_its_time(self):
        """Not before, however many parts are swept, and not after because of them."""
        self.start(retain_seconds=10)
        places = self.places()
        self.unlink("leaf1", "node0002")
        self.switch("leaf1")
        for _ in range(8):
            self.site.advance(1)
            self.switch("leaf3")
            self.assertIn("node0002", self.places())
        self.site.advance(2)
        self.assertEqual(self.generation(), 3)
        self.assertEqual(set(places) - set(self.places()), {"node0002"})
        self.switch("leaf1")  # nor does another look at its place bring it back
        self.assertEqual((set(places) - set(self.places()), self.generation()), ({"node0002"}, 3))

    def test_while_only_parts_of_the_fabric_answer_nobody_is_retired(self):
        self.start(retain_seconds=1)
        places = self.places()
        self.site.sweeps(sim.MISS, "leaf3")
        self.unlink("leaf1", "node0002")
        self.assertEqual(self.site.control("refresh")["error"], PARTIAL)
        for _ in range(10):
            self.site.advance(1)
            self.assertEqual(self.site.control("refresh", switch="leaf1")["error"], PARTIAL)
        self.assertEqual((self.places(), self.generation()), (places, 1))


if __name__ == "__main__":
    unittest.main()
