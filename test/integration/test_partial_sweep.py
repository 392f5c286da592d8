"""Sweeps of a part of the fabric: of one switch, and while hosts are missing; and what their processes leave behind."""
import os
import random
import re
import time
import unittest

import lab
from test_monitor import gone, light_sweeper

SMALL = "fattree2:4,2,4"


class Case(unittest.TestCase):
    def simulate(self, spec=SMALL):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric(spec))
        self.addCleanup(sim.quit)
        sim.sweep()
        return sim

    def start(self, spec=SMALL, **changes):
        """A simulated subnet and a daemon that tells all; it looks at nothing by itself, unless `changes` say so."""
        self.sim = self.simulate(spec)
        self.serve(changes)

    def serve(self, changes=None, probe="ibnetdisc"):
        config = {"fabricd": {"log": "debug", "probe": probe}, "changes": dict({"light_sweep": 0, "flap_count": 0}, **changes or {})}
        self.daemon = lab.Fabricd(self.sim, config=config)
        self.addCleanup(self.daemon.stop)

    def pull(self, switch, other):
        """Pull the cable between the two; its port."""
        port = self.sim.cable(switch, other)
        self.sim.unlink(switch, port)
        return port

    def refresh(self, *args):
        return self.daemon.ctl_json("refresh", *args)

    def switch(self, name, scope="switch"):
        """Sweep that switch only; the changes."""
        answer = self.refresh("--switch", name)
        self.assertEqual((answer["scope"], answer["scope_reason"] is None), (scope, scope == "switch"), answer)
        return [(change["kind"], change["what"]) for change in answer["changes"]]

    def packets(self):
        """How many each sweep has sent so far: those of a part, those of everything."""
        log = self.daemon.log()
        return [[int(n) for n in re.findall(pattern, log)]
                for pattern in (r"\d+ switch(?:es)? read anew with (\d+) packets", r"everything discovered with (\d+) packets")]

    def same(self):
        """Is what is served what a sweep of everything sees?"""
        answer = self.daemon.control("verify")
        self.assertTrue(answer["ok"], answer)
        self.assertEqual(answer["changes"], [])

    def places(self):
        """Where everybody stands, as jobs have it."""
        return {row["host"]: (row["plane"], row["index"], row["logical"], row["physical"])
                for row in self.daemon.ctl_json("devices")}

    def generation(self):
        return self.daemon.status()["generation"]


class Switch(Case):
    """fabricctl refresh --switch"""

    def test_what_changed_there_is_found_with_few_packets(self):
        self.start("fattree2:8,4,8")
        here, elsewhere = self.pull("leaf1", "spine2"), self.pull("leaf7", "spine4")
        self.assertEqual(self.switch("leaf1"), [("link-lost", f"leaf1[{here}] - spine2[1]")])
        self.assertEqual([c["what"] for c in self.daemon.ctl_json("diff")["changes"]], [f"leaf1[{here}] - spine2[1]"])
        part, whole = self.packets()
        self.assertEqual((len(part), len(whole)), (1, 1))
        self.assertLess(part[0], whole[0] / 4)  # two switches of twelve, and the hosts of one
        self.assertEqual(self.switch("leaf1"), [])
        self.assertEqual(self.generation(), 2)
        answer = self.refresh()
        self.assertEqual([c["what"] for c in answer["changes"]], [f"leaf7[{elsewhere}] - spine4[7]"])
        self.assertEqual((answer["scope"], answer["scope_reason"]), ("fabric", None))
        # and with what that sweep saw it goes on
        self.sim.relink("leaf7", elsewhere)
        self.sim.sweep()
        self.assertEqual(self.switch("spine4"), [("link-back", f"leaf7[{elsewhere}] - spine4[7]")])
        guid = next(row["id"] for row in self.daemon.ctl_json("switches") if row["name"] == "leaf1")
        self.sim.relink("leaf1", here)
        self.sim.sweep()
        self.assertEqual(self.switch(guid), [("link-back", f"leaf1[{here}] - spine2[1]")])
        self.same()
        self.assertEqual(self.daemon.errors(), [])

    def test_what_hangs_on_it(self):
        self.start()
        port = self.pull("leaf1", "node0002")
        self.assertEqual([kind for kind, _ in self.switch("leaf1")], ["host-missing"])
        self.sim.guid("node0002", 0xabc0)
        self.sim.relink("leaf1", port)
        self.sim.sweep()
        self.assertEqual([kind for kind, _ in self.switch("leaf1")], ["hca-replaced"])
        self.same()

    def test_it_says_what_was_swept(self):
        self.start()
        done = self.daemon.ctl("refresh", "--switch", "leaf2")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, "generation 1, as before: nothing changed (leaf2 was swept, and what hangs on it)\n",
                          "fabricctl: sweeping leaf2 and what hangs on it\n"))
        self.pull("leaf2", "spine1")
        done = self.daemon.ctl("refresh", "--switch", "leaf2", "--wait")
        self.assertRegex(done.stdout, r"\Ageneration 2, published just now \(leaf2 was swept, and what hangs on it\):\n"
                                      r"TIME .*\n.*link-lost.*leaf2\[\d\] - spine1\[2\]")
        done = self.daemon.ctl("refresh", "--switch", "leaf2", "--accept-partial")
        self.assertEqual(done.stdout, "generation 2, as before: nothing changed (everything was swept)\n")
        done = self.daemon.ctl("refresh")
        self.assertEqual((done.stdout, done.stderr), ("generation 2, as before: nothing changed\n", "fabricctl: sweeping\n"))

    def test_unknown(self):
        self.start()
        for name in ("leaf99", "node0001", "0x00000000deadbeef"):
            done = self.daemon.ctl("refresh", "--switch", name)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (
                1, "", f"fabricctl: refresh: no switch {name}: `fabricctl switches` shows those that there are\n"))
        self.assertEqual(self.packets()[0], [])

    def test_without_waiting(self):
        self.start()
        self.pull("leaf3", "spine1")
        self.assertEqual(self.refresh("--switch", "leaf3", "--no-wait"), {"taken": True, "generation": 1})
        lab.wait_for(lambda: self.generation() == 2, what="the sweep that was taken up")
        self.assertEqual([len(n) for n in self.packets()], [1, 1])

    def test_where_a_part_is_not_enough(self):
        self.start()
        self.sim.unlink("spine2")  # nobody's switch is lost at once
        self.assertEqual(len(self.switch("spine2", "fabric")), 1)
        answer = self.daemon.refresh(switch="leaf1")
        self.assertEqual(answer["scope"], "switch")
        self.sim.relink("spine2")
        self.sim.sweep()
        answer = self.daemon.refresh(switch="leaf1")
        self.assertEqual((answer["scope"], answer["changed"]), ("fabric", True))
        self.assertIn("there is a switch that was not there", answer["scope_reason"])
        self.same()
        self.sim.unlink("leaf2")  # a switch that carries hosts keeps its place, and so its name
        self.assertIn(("switch-missing", "leaf2"), self.switch("leaf2", "fabric"))
        self.assertEqual(self.switch("spine1"), [])
        answer = self.daemon.refresh(switch="leaf2")
        self.assertRegex(answer["scope_reason"], "^the last sweep did not see the switch 0x")
        self.sim.relink("leaf2")
        self.sim.sweep()
        self.assertIn(("switch-back", "leaf2"), self.switch("leaf2", "fabric"))
        self.same()

    def test_after_a_sweep_that_failed(self):
        """A part that answers does not say that the rest does."""
        self.start()
        self.sim.command('Error "leaf3" 100')
        self.assertEqual(self.daemon.control("refresh")["error"], -17)
        self.assertEqual(self.daemon.control("refresh", switch="leaf1")["error"], -17)
        self.assertTrue(self.daemon.status()["stale"])
        self.sim.command('Error "leaf3" 0')
        answer = self.daemon.refresh(switch="leaf1")
        self.assertEqual((answer["scope"], answer["scope_reason"]), ("fabric", "the last sweep failed"))
        self.assertFalse(self.daemon.status()["stale"])
        self.assertEqual(self.daemon.refresh(switch="leaf1")["scope"], "switch")

    def test_many_who_ask(self):
        """Each is answered by a sweep that began after the question, and of everything if one of them wants that."""
        self.start()
        asked = [self.daemon.ask("refresh", switch=f"leaf{n}") for n in (1, 2, 3)] + [self.daemon.ask("refresh")]
        self.pull("leaf4", "spine1")
        asked += [self.daemon.ask("refresh", switch="leaf4"), self.daemon.ask("refresh", switch="leaf1")]
        answers = [self.daemon.answer(channel) for channel in asked]
        self.assertTrue(all(answer["ok"] for answer in answers), answers)
        self.assertEqual(answers[3]["scope"], "fabric")
        self.assertEqual(self.generation(), 2)
        self.same()

    def test_random_edits_against_sweeps_of_everything(self):
        self.start(retain_seconds=0)
        dice, pulled = random.Random(11), {}
        home = {self.sim.cable(switch, host) for switch, host in (("leaf1", "node0001"), ("leaf4", self.sim.hosts[-1]))}
        parts, edits = 0, 60 if lab.ALL else 24
        for _ in range(edits):
            switch, port = dice.choice(self.sim.switches), dice.randint(1, 6)
            if switch in ("leaf1", "leaf4") and port in home:
                continue
            try:
                if pulled.pop((switch, port), False):
                    self.sim.relink(switch, port)
                else:
                    self.sim.unlink(switch, port)
                    pulled[switch, port] = True
            except lab.LabError:
                pulled.pop((switch, port), None)
                continue
            self.sim.sweep()
            answer = self.daemon.control("refresh", switch=switch)
            if not answer["ok"]:
                self.daemon.refresh(accept_partial=True)
                continue
            parts += answer["scope"] == "switch"
            self.same()
        self.assertGreater(parts, edits // 6)

    def test_a_file_is_read_as_a_whole(self):
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric(SMALL, "capture"))
        self.sim = None
        self.serve(probe=f"file:{path}")
        self.assertEqual(self.switch("leaf1", "fabric"), [])
        self.assertEqual(self.daemon.ctl("refresh", "--switch", "leaf1").stdout,
                         "generation 1, as before: nothing changed (everything was swept: a file is read as a whole)\n")


class Missing(Case):
    """Sweeps of a part, and partial ones, while a host is not there."""

    def missing(self):
        return {row["where"].split()[0] for row in self.daemon.control("check")["findings"] if row["kind"] == "missing"}

    def test_it_keeps_its_place(self):
        self.start()
        places, generation = self.places(), self.generation()
        port = self.pull("leaf1", "node0002")
        self.assertEqual([kind for kind, _ in self.switch("leaf1")], ["host-missing"])
        # changes elsewhere are published, and it stays what it is
        other = self.pull("leaf2", "spine1")
        self.assertEqual(len(self.switch("leaf2")), 1)
        self.assertEqual(self.switch("leaf1"), [])
        self.assertEqual((self.places(), self.missing(), self.generation()), (places, {"node0002"}, generation + 2))
        # a part of the fabric that answers takes nothing away, and hides nothing
        self.sim.command('Error "leaf3" 100')
        third = self.pull("leaf4", "spine2")
        for request in ({}, {"switch": "leaf4"}, {"switch": "leaf3"}):
            self.assertEqual(self.daemon.control("refresh", **request)["error"], -17)
        self.assertEqual((self.places(), self.missing(), self.generation()), (places, {"node0002"}, generation + 2))
        self.sim.command('Error "leaf3" 0')
        self.assertEqual(len(self.switch("leaf4", "fabric")), 1)
        self.assertEqual((self.places(), self.missing(), self.generation()), (places, {"node0002"}, generation + 3))
        # it is there again when its switch is asked, not before
        for switch, place in (("leaf2", other), ("leaf4", third), ("leaf1", port)):
            self.sim.relink(switch, place)
        self.sim.sweep()
        self.assertEqual(len(self.switch("leaf2")), 1)
        self.assertEqual((self.places(), self.missing()), (places, {"node0002"}))
        self.assertEqual([kind for kind, _ in self.switch("leaf1")], ["host-back"])
        self.assertEqual(len(self.switch("leaf4")), 1)
        self.assertEqual((self.places(), self.missing(), self.generation()), (places, set(), generation + 6))
        self.same()
        self.daemon.kill9()
        self.daemon.start()
        self.assertEqual((self.places(), self.generation()), (places, generation + 6))

    def test_it_is_retired_in_its_time(self):
        """Not before, however many parts are swept, and not after because of them."""
        self.start(retain_seconds=4)
        places, start = self.places(), time.monotonic()
        self.pull("leaf1", "node0002")
        self.switch("leaf1")
        while time.monotonic() < start + 2:
            self.switch("leaf3")
            self.assertIn("node0002", self.places())
        lab.wait_for(lambda: self.generation() == 3, 20, "its end")
        self.assertGreaterEqual(time.monotonic() - start, 4)
        self.assertEqual(set(places) - set(self.places()), {"node0002"})
        self.switch("leaf1")  # nor does another look at its place bring it back
        self.assertEqual((set(places) - set(self.places()), self.generation()), ({"node0002"}, 3))

    def test_while_only_parts_of_the_fabric_answer_nobody_is_retired(self):
        self.start(retain_seconds=1)
        places = self.places()
        self.sim.command('Error "leaf3" 100')
        self.pull("leaf1", "node0002")
        self.assertEqual(self.daemon.control("refresh")["error"], -17)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            self.assertEqual(self.daemon.control("refresh", switch="leaf1")["error"], -17)
        self.assertEqual((self.places(), self.generation()), (places, 1))


class Stops(Case):
    """The simulator has places for ten clients, and one that is killed keeps its place."""

    def test_no_place_is_left_taken(self):
        sim = self.simulate()
        daemon = lab.Fabricd(sim, config={"changes": {"light_sweep": 1}}, start=False)
        self.addCleanup(daemon.stop)
        took = []
        for turn in range(14):
            daemon.start(wait=turn % 2 == 0)  # else it is stopped while it sweeps, or looks for the first time
            if turn % 2 == 0:
                lab.wait_for(lambda: daemon.status()["light_sweeps"] > 0, 20, "a light sweep")
            else:
                daemon.wait_up()
                if turn % 4 == 1:
                    lab.wait_for(lambda: daemon.status()["sweeping"] or daemon.status()["last_sweep"], what="a sweep")
            start = time.monotonic()
            self.assertEqual(daemon.stop(), 0)
            took.append(time.monotonic() - start)
        daemon.start()
        lab.wait_for(lambda: daemon.status()["light_sweeps"] > 0, 20, "a light sweep")
        self.assertEqual(daemon.errors(), [])
        self.assertLess(sorted(took)[len(took) // 2], .5 * lab.SLOW, took)

    def test_one_that_hangs_is_killed(self):
        self.start(light_sweep=1)
        pid = lab.wait_for(lambda: light_sweeper(self.daemon), what="the light sweeps' child")
        lab.freeze(pid)
        start = time.monotonic()
        self.assertEqual(self.daemon.stop(), 0)
        self.assertLess(time.monotonic() - start, 3 * lab.SLOW)
        self.assertTrue(gone(pid))


if __name__ == "__main__":
    unittest.main()
