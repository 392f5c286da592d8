"""What fabricctl says to people: short times, names that may be meant, lists without rows, a way to JSON for each command."""
import json
import unittest

import sim
from site_case import Case as Site

WHOLE, SECONDS = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class Case(Site):
    fabric = "fattree2:3,2,4"

    def ctl(self, *args, status=0):
        done = self.site.ctl(*args)
        self.assertEqual(done.returncode, status, (args, done.stderr))
        return done.stdout if status == 0 else done.stderr


class Times(Case):
    def test_to_the_second_or_whole(self):
        self.start(flap_count=0)
        self.pull("leaf1", "node0002")
        self.site.ctl("ack", "node0002", "--for", "2h")
        self.ctl("expect", "leaf2", "--replace")
        for command in (["status"], ["history"], ["events"], ["diff"], ["expect"], ["check"]):
            shown, whole = (self.site.ctl(*command, *more).stdout for more in ([], ["--long"]))
            self.assertRegex(shown, SECONDS, command)
            self.assertNotRegex(shown, WHOLE, command)
            self.assertRegex(whole, WHOLE, command)
            for form in ("json", "csv"):
                self.assertEqual(self.site.ctl(*command, "--format", form).stdout, self.site.ctl(*command, "--format", form, "--long").stdout)
        self.assertRegex(self.ctl("status", "-j"), WHOLE)

    def test_long_stays_what_it_was_of_changes(self):
        self.start(flap_count=0)
        self.pull("leaf1", "node0002")
        self.assertIn("LAST-SEEN", self.ctl("history", "-l"))
        self.assertNotIn("LAST-SEEN", self.ctl("history"))


class Costs(Case):
    def test_to_what_is_missing(self):
        self.start(flap_count=0)
        self.assertEqual(self.ctl("cost", "node0001", "node0005"), "40  node0001:HCA-1:1 - node0005:HCA-1:1, plane ib0\n")
        self.pull("leaf2", "node0005")
        for ends, told in ((("node0001", "node0005"), "node0005:HCA-1:1"), (("node0005", "node0001"), "node0005:HCA-1:1")):
            self.assertRegex(self.ctl("cost", *ends, status=1), rf"^fabricctl: {told} is missing: [^\n]*\n$")
        answer = json.loads(self.site.ctl("cost", "node0005", "node0001", "--json").stdout)
        self.assertEqual((answer["cost"], answer["a_missing"], answer["b_missing"]), (40, True, False))
        self.assertIn("node0004", self.ctl("cost", "node0004", "node0001"))


class Names(Case):
    def test_what_may_be_meant(self):
        self.start()
        for command, near in ((["switches", "laef2"], "leaf2"), (["devices", "node2"], "node0002"), (["show", "Node0007"], "node0007"),
                              (["show", "spin1"], "spine1"), (["links", "lef1"], "leaf1"), (["groups", "laef1"], "leaf1"),
                              (["cost", "nod0001", "node0002"], "node0001"), (["cost", "node0001", "node0002:HCA1"], "node0002:HCA-1"),
                              (["coords", "node11"], "node0011"), (["where", "nodee0001"], "node0001"),
                              (["counters", "lesf1"], "leaf1"), (["expect", "laef1", "--replace"], "leaf1"),
                              (["refresh", "--switch", "leaff1"], "leaf1"), (["refresh", "--host", "node3"], "node0003")):
            told = self.ctl(*command, status=1)
            self.assertRegex(told, rf"did you mean {near}\?\n$", command)
            self.assertEqual(told.count("did you mean"), 1)
        self.assertNotIn("did you mean", self.ctl("switches", "node0001", status=1))  # it is a host
        self.assertNotIn("did you mean", self.ctl("show", "something-else", status=1))

    def test_commands_and_options(self):
        self.start()
        self.assertIn("did you mean switches?", self.ctl("swiches", status=2))
        self.assertIn("did you mean --severity?", self.ctl("check", "--severty", "error", status=2))
        self.assertIn("did you mean --severity?", self.ctl("check", "--severty=error", status=2))
        self.assertNotIn("did you mean", self.ctl("xyz", status=2))

    def test_for_completion(self):
        self.start()
        for of, words in (("--format", "text json csv"), ("--severity", "error warning notice"), ("log", "error warning info debug"),
                          ("switches", "leaf1 leaf2 leaf3 spine1 spine2"), ("--plane", "ib0"), ("status", ""), ("no such thing", "")):
            self.assertEqual(self.ctl("--values", of).split(), words.split(), of)
        hosts = [f"node{n:04}" for n in range(1, 13)]
        self.assertEqual(self.ctl("--values", "--host").split(), hosts)
        self.assertLessEqual({*hosts, "leaf1", "spine2"}, set(self.ctl("--values", "show").split()))
        self.assertIn("slurm-tree", self.ctl("--values", "export").split())
        self.assertNotIn("--values", self.ctl("--help"))


class Lists(Case):
    def test_without_rows(self):
        self.start()
        self.assertEqual(self.ctl("nodes"), "no host reports its devices\n")
        for command in ("devices", "switches", "links", "groups", "coords"):
            self.assertEqual(self.ctl(command, "--down"), "nothing is down or missing\n")
            self.assertEqual(self.ctl(command, "--down", "--no-header"), "")
            self.assertEqual(self.ctl(command, "--down", "--json"), "[]\n")
        self.assertEqual(self.ctl("rails"), "the fabric has no rails\n")
        self.assertEqual(self.ctl("nodes", "--json"), "[]\n")
        self.assertEqual(self.site.ctl("switches", "nothing").stdout, "")

    def test_json_of_each(self):
        """A short option, the same as --format json."""
        self.start()
        for command in ("status", "planes", "devices", "switches", "links", "groups", "rails", "coords", "matrix", "nodes", "check", "counters",
                        "expect", "history", "events", "diff", "endpoints", "config", "metrics", "top"):
            value = json.loads(self.ctl(command, "-j"))
            if command not in ("status", "top", "metrics"):  # which count what is asked
                self.assertEqual(value, json.loads(self.ctl("--format", "json", command)), command)
        counted = {(row["name"], row["labels"].get("kind")): row["value"] for row in json.loads(self.ctl("metrics", "--json"))}
        self.assertEqual(counted["fabricd_generation", None], 1)
        self.assertEqual(counted["fabricd_findings", "lost"], 0)


class Groups(unittest.TestCase):
    def test_by_a_leaf_of_a_rail(self):
        """A leaf stands for the hosts at it: their unit."""
        site = sim.Recorded(sim.fabric("rails:3,2,4,2", "capture"))
        self.addCleanup(site.free)
        for leaf in ("leaf2-1", "leaf2-2"):
            self.assertEqual([group["name"] for group in site.ctl_json("groups", leaf)], ["unit2"])
        self.assertEqual([group["name"] for group in site.ctl_json("groups", "leaf1-1", "leaf3-2")], ["unit1", "unit3"])
        self.assertEqual(site.ctl("groups", "spine1").returncode, 1)  # no host is at it
        self.assertEqual(len(site.ctl("groups").stdout.splitlines()), 4)


if __name__ == "__main__":
    unittest.main()
