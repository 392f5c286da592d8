"""What changes is followed as it is published (fabricctl watch), and paged through afterwards (fabricctl history)."""
import datetime
import json
import unittest

from site_case import Case


class Watching(Case):
    fabric = "fattree2:3,2,3"

    def setUp(self):
        self.start(flap_count=0)
        self.port = self.site.cable("leaf1", "node0002")

    def change(self, hand):
        hand("leaf1", self.port)
        self.site.ask("refresh").answer()

    def watch(self, *form):
        """What it says while a cable is pulled and put back, and the generations of that."""
        hands = [self.site.pull, self.site.plug]

        def next_hand():
            if not hands:
                return False
            self.change(hands.pop(0))
            return True
        self.site.while_waiting(next_hand)
        said = self.site.ctl(*form, "watch").stdout.splitlines()
        self.site.while_waiting()
        return said, self.site.generation() - 1, self.site.generation()

    def test_words_as_they_are_published(self):
        said, away, back = self.watch()
        self.assertEqual(said[0], f"generation {away - 1} is published; new changes follow")
        self.assertRegex(said[1], rf"Z  generation {away}: host-missing node0002 HCA-1: there -> missing \(it is no longer seen")
        self.assertRegex(said[-1], rf"Z  generation {back}: host-back node0002 HCA-1: missing -> there")
        said, away, back = self.watch("--format", "json")
        history = [one for one in self.site.control("history")["changes"] if away <= one["generation"] <= back]
        self.assertEqual([json.loads(line) for line in said], history)

    def test_the_history_says_what_it_leaves_out(self):
        for hand in (self.site.pull, self.site.plug) * 3:
            self.change(hand)
        everything = self.site.ctl_json("history", "--all")
        self.assertGreater(len(everything), 20)
        self.assertEqual(self.site.ctl_json("history"), everything)
        out = self.site.ctl("history", "--limit", "5").stdout
        self.assertIn("the latest 5 changes; for older ones give --all, --limit N or --since TIME", out)
        self.assertNotIn("older ones", self.site.ctl("history", "--all").stdout)
        self.assertIn("the latest 1 change;", self.site.ctl("history", "node0002", "-n", "1").stdout)
        newest = self.site.generation()
        self.change(self.site.pull)
        self.assertEqual(len(self.site.control("history", limit=0, to=newest)["changes"]), len(everything))
        self.assertEqual([one["a"] for one in self.site.ctl_json("links", "--down")], ["node0002:HCA-1"])
        for command in ("devices", "coords"):
            self.assertEqual([one["host"] for one in self.site.ctl_json(command, "--down")], ["node0002"])
        self.assertEqual(len(self.site.ctl_json("groups", "--down")), 1)
        self.assertRegex(self.site.ctl("show", "node0002").stdout, r"(?s)latest changes:.*host-missing")

    def test_since(self):
        everything = self.site.ctl_json("history")
        for since, told in (("2h", everything), ("2020-01-01", everything), ("2100-01-01T08:00", [])):
            self.assertEqual(self.site.ctl_json("history", "--since", since), told)
        self.site.advance(10)
        now = datetime.datetime.fromtimestamp(self.site.now(), datetime.timezone.utc)
        self.change(self.site.pull)
        kinds = {one["kind"] for one in self.site.ctl_json("history", "--since", now.strftime("%Y-%m-%dT%H:%M:%S"))}
        self.assertIn("host-missing", kinds)
        self.assertNotIn("host-added", kinds)


if __name__ == "__main__":
    unittest.main()
