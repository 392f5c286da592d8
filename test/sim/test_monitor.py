"""Changes between sweeps: the light sweep notices them, what it leads to is what a sweep of everything would see."""
import os
import random
import re
import unittest

import lab
import sim
from site_case import Case, moment

LEAF, SPINE = "leaf1", "spine1"


class Light(Case):
    fabric = "fattree2:4,2,4"

    def start(self, config=None, **changes):
        """There is a subnet manager, and light sweeps have begun."""
        super().start(start=False, config=config, **dict({"light_sweep": 1}, **changes))
        self.site.manager("node0001")
        self.site.start()
        self.site.advance(2)

    def settled(self):
        """All is noticed and swept."""
        self.site.advance(10)
        self.assertFalse(self.site.refresh()["changed"], "a sweep of everything sees what looks did not notice")

    def updated(self):
        """The generations whose events were sent."""
        return re.findall(r"event: UPDATED .*generation (\d+)", self.site.journal())


class Noticed(Light):
    def test_a_cable_is_pulled_and_comes_back(self):
        self.start()
        port = self.site.cable(LEAF, SPINE)
        for number, hand in enumerate((self.site.pull, self.site.plug), 2):
            self.assertEqual(self.generation(), number - 1)
            hand(LEAF, port)
            self.site.advance(1.1)  # the next light sweep, and the sweep that it leads to
            self.assertEqual(self.generation(), number)
            self.settled()
        self.assertEqual(self.updated(), ["1", "2", "3"])
        self.assertEqual(self.site.errors(), [])

    def test_a_host_is_swapped(self):
        self.start()
        generation, port = self.generation(), self.site.cable(LEAF, "node0002")
        self.site.pull(LEAF, port)
        self.site.guid("node0002", 0xabc0)
        self.site.plug(LEAF, port)
        self.settled()
        self.assertEqual(self.generation(), generation + 1)
        self.assertEqual([c["kind"] for c in self.last()], ["hca-replaced"])

    def test_a_spine_restarts(self):
        """Its cables come back over some light sweeps: that is told in two generations."""
        self.fabric = "fattree2:8,4,2"
        self.start(debounce=3)
        generation = self.generation()
        self.site.pull("spine2")
        self.site.advance(1.5)
        for port in range(1, 9):
            self.site.plug("spine2", port)
            self.site.advance(.3)
        self.settled()
        self.assertEqual(self.generation(), generation + 2)
        self.assertEqual(self.updated(), [str(number) for number in range(1, generation + 3)])

    def test_a_hundred_changes_in_a_second(self):
        self.fabric = "fattree2:16,8,8"
        self.start(debounce=2)
        generation = self.generation()
        pulled = [(leaf, port) for leaf in range(2, 15) for port in range(9, 17)][:100]
        for leaf, port in pulled:
            self.site.pull(f"leaf{leaf}", port)
            self.site.advance(.01)
        self.settled()
        self.assertIn(self.generation() - generation, (1, 2))
        changes = self.site.ctl_json("diff", str(generation), str(self.generation()))["changes"]
        self.assertGreaterEqual(len(changes), 100)

    def test_since_when_a_storm_is_seen(self):
        """Its changes wait until it is quiet, and say when the first of them was noticed."""
        self.fabric = "fattree2:8,4,4"
        self.start(debounce=6)
        self.settled()
        generation = self.generation()
        self.assertIsNone(self.site.status()["dirty_since"])
        self.site.pull("leaf1", self.site.cable("leaf1", "spine1"))
        self.site.advance(1.1)
        self.assertEqual(self.generation(), generation + 1)
        self.site.pull("leaf1", self.site.cable("leaf1", "spine2"))
        self.site.advance(1)
        since = self.site.status()["dirty_since"]
        self.assertIn(f"dirty         since {since[:16]}", self.site.ctl("status").stdout)
        self.assertEqual(self.generation(), generation + 1)
        self.site.pull("leaf2", self.site.cable("leaf2", "spine1"))
        self.site.advance(8)
        self.assertEqual(self.generation(), generation + 2)
        self.assertIsNone(self.site.status()["dirty_since"])
        at_once, gathered = [self.site.ctl_json("diff", str(one), str(one + 1))["changes"]
                             for one in (generation, generation + 1)]
        self.assertLess(moment(at_once[0]["time"]) - moment(at_once[0]["first_seen"]), .1)
        self.assertGreaterEqual(len(gathered), 2)
        for one in gathered:
            self.assertEqual(one["first_seen"], since)
            self.assertGreaterEqual(moment(one["time"]) - moment(one["first_seen"]), 6)
            self.assertLessEqual(one["last_seen"], one["first_seen"])

    def test_the_subnet_manager_dies_and_returns(self):
        self.start()
        self.site.manager(None)
        generation, port = self.generation(), self.site.cable(LEAF, SPINE)
        self.site.pull(LEAF, port)
        self.site.advance(1.1)
        self.assertEqual(self.generation(), generation + 1)
        self.site.plug(LEAF, port)
        self.site.state(LEAF, port, sim.INIT)
        self.site.advance(2)
        self.site.manager("node0001")
        self.site.state(LEAF, port, sim.ACTIVE)
        self.settled()
        generation = self.generation()
        self.site.pull(LEAF, port)
        self.site.advance(1.1)
        self.assertEqual(self.generation(), generation + 1)

    def test_edits_while_it_sweeps(self):
        """Random hands, some of them between the beginning of a sweep and its end."""
        for seed in range(20 if lab.ALL else 5):
            with self.subTest(seed=seed):
                self.fabric = "fattree2:8,4,4"
                self.start(flap_count=0)
                dice = random.Random(seed)
                for _ in range(60):
                    self.edit(dice)
                    if dice.random() < .2:
                        self.site.control("refresh", wait=False)
                    self.site.advance(dice.choice((0, .005, .3, 2)))
                for node in [f"leaf{n}" for n in range(1, 9)] + [f"spine{n}" for n in range(1, 5)]:
                    self.maybe(self.site.plug, node)
                self.site.refresh(accept_partial=True)
                self.settled()

    def edit(self, dice):
        switch, port = dice.choice([f"leaf{n}" for n in range(1, 9)] + [f"spine{n}" for n in range(1, 5)]), dice.randint(1, 8)
        what = dice.random()
        if what < .45:
            self.maybe(self.site.pull, switch, port)
        elif what < .85:
            self.maybe(self.site.plug, switch, port)
        elif what < .87:
            self.maybe(self.site.pull, switch)
        elif what < .92:
            self.maybe(self.site.plug, switch)
        else:
            self.maybe(self.site.link, switch, port, f"node{dice.randint(1, 32):04}", 1)

    def maybe(self, hand, *where):
        try:
            hand(*where)
        except lab.LabError:
            pass  # what is not there, or taken

    def test_off(self):
        self.start(light_sweep=0)
        self.assertEqual((self.site.status()["light_sweep"], self.site.status()["light_sweeps"]), (0, 0))
        self.site.pull(LEAF, self.site.cable(LEAF, SPINE))
        self.site.advance(100)
        self.assertEqual((self.generation(), self.site.status()["light_sweeps"]), (1, 0))


class Hurt(Light):
    """The child that looks dies, hangs, or the subnet under it is away."""
    warning = "changes are noticed at sweeps only"

    def noticed(self):
        generation = self.generation()
        self.site.pull(LEAF, self.site.cable(LEAF, SPINE))
        self.site.advance(1.1)
        self.assertEqual(self.generation(), generation + 1)

    def test_one_that_dies_again_and_again(self):
        """Another one is started after 1 s, and 2, and 4; it is said once."""
        self.start()
        self.site.light_sweeps(sim.CRASH)
        self.site.advance(1)
        begun = self.site.now()
        self.assertEqual(self.site.journal().count(self.warning), 1)
        self.site.advance(7)
        self.site.light_sweeps(sim.GOOD)
        looks = self.site.status()["light_sweeps"]
        self.site.advance(9)
        self.assertGreater(self.site.status()["light_sweeps"], looks, self.site.now() - begun)
        self.assertEqual(self.site.journal().count(self.warning), 1)
        self.noticed()

    def test_one_that_hangs(self):
        """It costs what looks would have noticed, and the daemon nothing; with another inventory there is another one."""
        self.start()
        self.site.light_sweeps(sim.HANG)
        self.site.advance(1)
        self.site.pull(LEAF, self.site.cable(LEAF, "node0002"))
        looks = self.site.status()["light_sweeps"]
        self.site.advance(5)
        self.assertEqual((self.generation(), self.site.status()["light_sweeps"]), (1, looks))
        self.site.light_sweeps(sim.GOOD)
        self.assertTrue(self.site.refresh()["changed"])
        self.site.advance(4)
        self.assertGreater(self.site.status()["light_sweeps"], looks)
        self.noticed()

    def test_one_that_hangs_for_as_long_as_a_sweep_may_take(self):
        self.start(config={"fabricd": {"deadline": 30}})
        self.site.light_sweeps(sim.HANG)
        self.site.advance(30)
        self.assertNotIn("light sweep: timed out: killed", self.site.journal())
        self.site.light_sweeps(sim.GOOD)
        self.site.advance(3)
        self.assertIn("light sweep: timed out: killed", self.site.journal())
        self.noticed()

    def test_the_sweep_of_a_change_fails(self):
        """The change is not reported again, so everything is swept soon."""
        self.start()
        self.site.sweeps(sim.CRASH)
        self.site.pull(LEAF, self.site.cable(LEAF, SPINE))
        self.site.advance(1.1)
        self.assertEqual((self.generation(), self.site.status()["stale"]), (1, True))
        self.site.sweeps(sim.GOOD)
        self.site.advance(5)
        self.assertEqual((self.generation(), self.site.status()["stale"]), (2, False))

    def test_the_subnet_is_away_for_a_while(self):
        self.start()
        generation = self.generation()
        self.site.sweeps(sim.FAIL)
        self.site.advance(10)
        self.assertEqual(self.generation(), generation)
        self.site.sweeps(sim.GOOD)
        looks = self.site.status()["light_sweeps"]
        self.site.advance(16)
        self.assertGreater(self.site.status()["light_sweeps"], looks)
        self.assertEqual(self.site.journal().count(self.warning), 1)
        self.noticed()


class File(Light):
    """A recorded fabric: it is looked at as a file."""

    def setUp(self):
        self.site = sim.Recorded(sim.fabric(self.fabric, "capture"), {"changes": {"light_sweep": 1}})
        self.addCleanup(self.site.free)
        self.site.advance(2)

    def test_replaced(self):
        self.assertGreater(self.site.status()["light_sweeps"], 0)
        self.site.show(sim.fabric("fattree2:5,2,4", "capture"))
        self.site.advance(3)
        self.assertEqual(self.generation(), 2)
        self.site.show(sim.fabric(self.fabric, "capture"))
        self.site.advance(3)
        self.assertEqual(self.generation(), 3)

    def test_taken_away_and_put_back(self):
        os.unlink(self.site.path)
        self.site.advance(3)
        self.assertTrue(self.site.status()["stale"])
        self.site.show(sim.fabric(self.fabric, "capture"))
        self.site.advance(100)
        self.assertFalse(self.site.status()["stale"])


if __name__ == "__main__":
    unittest.main()
