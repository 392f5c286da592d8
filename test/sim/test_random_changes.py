"""Random changes of a site, fabricd killed in between: what happened is in the history, all and once."""
import unittest

import afresh
import operator_hands
import sim
from sim import failures, lab


class Run(operator_hands.Run):
    operator_of = operator_hands.Operator
    changes_wanted, kills_wanted = (5000, 100) if lab.ALL else (500, 10)

    def setUp(self):
        seed = failures.seed("the hands", 5)
        self.site = sim.Site(operator_hands.FABRIC, {"changes": {"flap_count": 0, "debounce": 0}}, seed=seed, start=False)
        self.addCleanup(self.site.free)
        operator = self.operator_of(self.site, sim.fabric(operator_hands.FABRIC), seed)
        self.site.configure(operator.config)
        self.site.start()
        self.begin(self.site, operator, seed)

    def kill(self):
        """At a random moment of a sweep and of what follows, or between them; by a power failure, too."""
        if self.dice.random() < .7:
            self.site.control("refresh", wait=False)
            self.site.advance(self.dice.random() * .03)
        self.site.kill9(power=self.dice.random() < .3)
        self.site.start()

    def as_afresh(self):
        newcomer = self.site.afresh()
        self.assertEqual(afresh.costs(self.site), afresh.costs(newcomer))
        self.assertEqual(afresh.cables(self.site, newcomer), afresh.cables(newcomer))


class Random(Run, unittest.TestCase):
    def test_the_history_is_complete(self):
        self.check_history()


class Slow(Run, unittest.TestCase):
    """Hands of two halves, in any order."""
    operator_of = operator_hands.Hands
    managed = (*operator_hands.MANAGED, "index")

    def swept(self, told, generation):
        """Those who were taken away are forgotten at once."""
        if not self.operator.to_forget:
            return super().swept(told, generation)
        self.daemon.refresh()
        for host in self.operator.to_forget:
            self.assertEqual(self.daemon.ctl("forget", host).returncode, 0)
        self.operator.to_forget.clear()
        return super().swept(told, generation)

    def test_the_history_is_complete(self):
        generation = self.daemon.status()["generation"]
        while self.changes < self.changes_wanted:
            told = self.operator.spine() if self.dice.random() < .2 else []
            told = told or self.some_changes()
            if told:
                generation = self.swept(told, generation)
        self.assertEqual(self.kills, self.kills_wanted)
        self.whole_history()
        kinds = {word[0] for _, _, told in self.told for word in told}
        self.assertLessEqual({"hca-replaced", "host-moved", "host-back", "cable-moved", "link-back", "switch-replaced",
                              "switch-back", "name"}, kinds)
        for host, about in self.operator.about.items():
            if len({word[1] for word in about if word[0] == "name"}) > 60:  # a history follows 64 names
                continue
            names = {self.operator.name(host), host}
            for name in names:  # by its first name, and by its last
                mine = {word[1] for word in about}
                story = [operator_hands.normal(c) for c in self.daemon.ctl_json("history", name)
                         if c["generation"] > 1 and c["kind"] not in self.managed and c["what"] in mine]
                self.assertEqual(story, about, f"seed {self.seed}: history of {name}")
        self.assertEqual(self.daemon.errors(), [])


if __name__ == "__main__":
    unittest.main()
