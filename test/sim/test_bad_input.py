"""What a fabric says that cannot be, or that looks like something else: a documented outcome, and nothing is shrunk.

Others: edits while it sweeps (test_monitor.py), an older store (test_retention.py, test_backup.py), clocks that jump
(unit.retained, unit.damping, unit.planned), one GUID twice and PMIx (test/integration/test_bad_input.py).
"""
import csv
import json
import os
import re
import unittest

import fabric_text
import lab
import sim

SPEC = "fattree2:2,2,2"  # 8 nodes: 2 leaves, 2 spines, 4 hosts


def words(changes):
    return sorted((c["kind"], c["what"], c["before"], c["after"]) for c in changes)


class Recorded(unittest.TestCase):
    def served(self):
        return self.site.ctl_json("matrix")["costs"], self.site.ctl_json("devices"), self.site.ctl_json("links")

    def refused(self, pattern):
        """A sweep that changes nothing of what is served, and says why."""
        before, generation = self.served(), self.site.status()["generation"]
        done = self.site.ctl("refresh")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, pattern)
        status = self.site.status()
        self.assertEqual((status["generation"], status["stale"]), (generation, True))
        self.assertEqual(self.served(), before)

    def well(self):
        """What was wrong is gone: no generation, no word of it."""
        generation = self.site.status()["generation"]
        self.assertFalse(self.site.refresh()["changed"])
        status = self.site.status()
        self.assertEqual((status["generation"], status["stale"]), (generation, False))

    def setUp(self):
        self.whole = sim.fabric(SPEC, "capture")
        self.start(self.whole)

    def start(self, text, **config):
        # Three hands at one cable within a minute are nothing that counts as flapping here.
        self.site = sim.Recorded(text, {"changes": {"flap_count": 0}, **config})
        self.addCleanup(self.site.free)

    def becomes(self, text, *expected):
        self.site.show(text)
        generation = self.site.status()["generation"]
        self.assertEqual(self.site.refresh()["generation"], generation + 1)
        changes = self.site.ctl_json("diff")["changes"]
        self.assertEqual(words(changes), sorted(expected))
        return changes

    def swapped(self, a, b):
        return self.whole.replace(a, "TAKEN").replace(b, a).replace("TAKEN", b)

    def test_guids_that_swap_places(self):
        """The places are what counts for jobs: no index, no cost moves."""
        costs, devices = self.served()[:2]
        one, other = "0x0000000000200000", "0x0000000000200001"
        self.becomes(self.swapped("200000", "200001"), ("switch-replaced", "leaf1", one, other),
                     ("switch-replaced", "leaf2", other, one))
        self.becomes(self.whole, ("switch-replaced", "leaf1", other, one), ("switch-replaced", "leaf2", one, other))
        one, other = "0x0000000000100002", "0x0000000000100006"
        self.becomes(self.swapped("100002", "100006").replace("100003", "TAKEN").replace("100007", "100003")
                     .replace("TAKEN", "100007"), ("hca-replaced", "node0002 HCA-1", one, other),
                     ("hca-replaced", "node0004 HCA-1", other, one))
        self.assertEqual(self.served()[0], costs)
        self.assertEqual([d["host"] for d in self.served()[1]], [d["host"] for d in devices])

    def test_two_hosts_claim_one_name(self):
        """fabricd does not choose: both stay, at their places, and `check` says so."""
        named = re.sub(r'"(node\d+)"', r'"\1 mlx5_0"', self.whole)
        self.site.show(named)
        self.site.refresh()
        devices = self.site.ctl_json("devices")
        changes = self.becomes(named.replace('"node0004 ', '"node0003 '),
                               ("name", "node0004 mlx5_0", "node0004 mlx5_0", "node0003 mlx5_0"))
        self.assertEqual(changes[0]["why"], "two hosts claim the name node0003: 0x0000000000100006 at leaf2[2], and "
                                            "0x0000000000100004 at leaf2[1]")
        for host in ("node0003", "node0004"):  # it is in the story of both
            self.assertIn("two hosts claim the name node0003", self.site.ctl("history", host).stdout)
        after = self.site.ctl_json("devices")
        self.assertEqual([d["host"] for d in after], ["node0001", "node0002", "node0003", "node0003"])
        self.assertEqual([(d["guid"], d["switch_port"]) for d in after],
                         [(d["guid"], d["switch_port"]) for d in devices])
        self.assertIn("duplicate-name", self.site.ctl("check").stdout)
        changes = self.becomes(named, ("name", "node0003 mlx5_0 (0x0000000000100006)", "node0003 mlx5_0", "node0004 mlx5_0"))
        self.assertEqual(changes[0]["why"], "two hosts claimed the name node0003: 0x0000000000100006 at leaf2[2] has its "
                                            "own now")
        self.assertEqual(self.site.ctl_json("devices"), devices)

    def test_names_that_show_as_others(self):
        """Nobody is shown, told or written what turns the direction of writing or has no width, wherever it comes out."""
        odd = {"node0001": "no\u202e1000ed HCA-1", "node0002": "node\u200b0002 HCA-1", "node0003": "=HYPERLINK(1) HCA-1",
               "leaf1": "le\u2066af\ufeff1"}
        named = self.whole
        for old, new in odd.items():
            named = named.replace(f'"{old}"', f'"{new}"')
        self.start(named, names={"pattern": "^(.*) (HCA-1)$"})
        devices = self.site.ctl_json("devices")
        self.assertEqual(sorted(d["host"] for d in devices), ["0x0000000000100006", "=HYPERLINK(1)", "no?1000ed", "node?0002"])
        self.assertIn("le?af?1", [s["name"] for s in self.site.ctl_json("switches")])
        shown = [self.site.ctl(*words).stdout for words in (
            ["devices"], ["switches"], ["links"], ["history"], ["groups"], ["show", "no?1000ed"], ["check"],
            ["--format", "csv", "devices"], ["--format", "json", "history"])] + [self.site.log()]
        for text in (*shown, *(json.dumps(self.site.control(op), ensure_ascii=False)
                                     for op in ("history", "diff", "check", "status"))):
            self.assertNotRegex(text, "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
        self.assertIn("no?1000ed", shown[0])
        rows = list(csv.DictReader(self.site.ctl("--format", "csv", "devices").stdout.splitlines()))
        self.assertIn("'=HYPERLINK(1)", [row["host"] for row in rows])  # a text to a spreadsheet
        self.assertNotRegex(self.site.ctl("--format", "csv", "history").stdout, "(?m)(^|,)\"?[=+@-][^0-9]")

    def test_hosts_whose_names_are_taken_for_others(self):
        self.site.show(self.whole.replace('"node0002"', '"NODE0001"').replace('"node0003"', '"10.0.0.7"'))
        self.site.refresh()
        found = {f["where"]: f for f in self.site.control("check")["findings"] if f["kind"] == "confusing-name"}
        self.assertEqual(sorted(found), ["10.0.0.7", "node0001"])
        self.assertIn("differs from that of NODE0001 by case only", found["node0001"]["what"])
        for host, part in (("node9", None), ("Node9", "Node9 differs by case only from node9, which reports"),
                           ("10.1", "10.1 is an address, not a host name")):
            code = self.site.deliver_items(host, [{"source": "verbs", "name": "mlx5_0"}])
            self.assertEqual(code, -14 if part else 0)
            self.assertIn(part or "", self.site.log().splitlines()[-1])
        self.assertEqual([n["host"] for n in self.site.control("nodes")["nodes"]], ["node9"])

    def test_hosts_that_are_called_as_something_else(self):
        self.site.show(self.whole.replace('"node0002"', '"spine2"').replace('"node0003"', '"ib0"'))
        self.site.refresh()
        found = {f["where"]: f["what"] for f in self.site.control("check")["findings"] if f["kind"] == "same-name"}
        self.assertEqual(sorted(found), ["ib0", "spine2"])
        self.assertIn("a host and a plane have this name", found["ib0"])
        self.assertIn("a host and the switch 0x", found["spine2"])
        self.assertIn("same-name", self.site.ctl("check").stdout)
        self.site.show(self.whole)
        self.site.refresh()
        self.assertNotIn("same-name", self.site.ctl("check").stdout)

    def test_a_map_with_models_behind_names(self):
        guids = re.findall(r'^Ca\s+1 "H-(\w+)"', self.whole, re.MULTILINE)
        path = os.path.join(lab.tmpdir(), "names.map")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f'0x{guid} "hpc{n}  MT4123 ConnectX6"\n' for n, guid in enumerate(guids[1:], 1)))
            file.write(f'0x{guids[0]} "login 1"\n')
        self.start(self.whole, names={"map": path})
        hosts = {d["host"] for d in self.site.ctl_json("devices")}
        self.assertEqual(hosts, {"login 1", *(f"hpc{n}" for n in range(1, len(guids)))})
        self.assertIn("Nodes=hpc", self.site.ctl("export", "slurm-tree").stdout)
        found = [f["where"] for f in self.site.control("check")["findings"] if f["kind"] == "confusing-name"]
        self.assertEqual(found, ["login 1"])

    def test_a_switch_that_appears_twice(self):
        record = next(text for text in self.whole.split("\n\n") if re.search(r'^Switch.*# "leaf1"', text, re.MULTILINE))
        self.site.show(f"{self.whole.rstrip()}\n\n{record}\n")
        self.refused("a second record of node 0x0000000000200000, the first is in line 10; remove one")
        self.site.show(self.whole)
        self.well()
        self.site.show(self.whole.replace("200003", "200002"))  # both spines by one GUID
        self.refused("a second record of node 0x0000000000200002")
        self.site.show(self.whole)
        self.well()

    def test_five_of_eight_nodes_answer(self):
        part = self.whole
        for node in ("leaf2", "node0003", "node0004"):
            part = fabric_text.without_record(part, node)
        self.site.show(part)
        for _ in range(3):  # however often
            self.refused(r"the sweep is partial: 2 ports lead nowhere or did not answer \(spine1\[2\] \(to leaf2\[3\]\), "
                         r"spine2\[2\] \(to leaf2\[4\]\)\), .*still serving generation 1 ")
        done = self.site.ctl("--format", "json", "check")
        self.assertEqual(done.returncode, 1, done)
        stale, *partial = json.loads(done.stdout)["findings"]
        self.assertEqual((stale["severity"], stale["kind"]), ("error", "stale"))
        self.assertEqual(stale["what"], self.site.status()["stale_reason"])
        self.assertEqual([(f["kind"], f["where"], f["what"]) for f in partial], [
            ("partial", f"spine{k}[2]",
             f"leads nowhere now, or did not answer; served as leading to leaf2[{k + 2}]") for k in (1, 2)])
        self.assertEqual(self.site.status()["missing"], 0)  # nobody's time begins
        self.site.show(self.whole)
        self.well()
        self.assertEqual(self.site.ctl_json("check")["findings"], [])


if __name__ == "__main__":
    unittest.main()
