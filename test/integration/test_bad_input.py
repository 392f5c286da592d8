"""What a fabric says that cannot be, or that looks like something else: a documented outcome, and nothing is shrunk.

Others: edits while it sweeps (test_monitor.py), an older store (test_retention.py, test_backup.py), clocks that jump
(unit.retained, unit.damping, unit.planned).
"""
import base64
import csv
import json
import os
import re
import subprocess
import unittest

import fabric_text
import lab

SPEC = "fattree2:2,2,2"  # 8 nodes: 2 leaves, 2 spines, 4 hosts


def words(changes):
    return sorted((c["kind"], c["what"], c["before"], c["after"]) for c in changes)


class Case(unittest.TestCase):
    def served(self):
        daemon = self.daemon
        return daemon.ctl_json("matrix")["costs"], daemon.ctl_json("devices"), daemon.ctl_json("links")

    def refused(self, pattern):
        """A sweep that changes nothing of what is served, and says why."""
        before, generation = self.served(), self.daemon.status()["generation"]
        done = self.daemon.ctl("refresh")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, pattern)
        status = self.daemon.status()
        self.assertEqual((status["generation"], status["stale"]), (generation, True))
        self.assertEqual(self.served(), before)

    def well(self):
        """What was wrong is gone: no generation, no word of it."""
        generation = self.daemon.status()["generation"]
        self.assertFalse(self.daemon.refresh()["changed"])
        status = self.daemon.status()
        self.assertEqual((status["generation"], status["stale"]), (generation, False))


class Recorded(Case):
    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        self.whole = lab.fabric(SPEC, "capture")
        lab.replace_file(self.path, self.whole)
        # Three hands at one cable within a minute are nothing that counts as flapping here.
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}, "changes": {"flap_count": 0}})
        self.addCleanup(self.daemon.stop)

    def becomes(self, text, *expected):
        lab.replace_file(self.path, text)
        generation = self.daemon.status()["generation"]
        self.assertEqual(self.daemon.refresh()["generation"], generation + 1)
        changes = self.daemon.ctl_json("diff")["changes"]
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
        lab.replace_file(self.path, named)
        self.daemon.refresh()
        devices = self.daemon.ctl_json("devices")
        changes = self.becomes(named.replace('"node0004 ', '"node0003 '),
                               ("name", "node0004 mlx5_0", "node0004 mlx5_0", "node0003 mlx5_0"))
        self.assertEqual(changes[0]["why"], "two hosts claim the name node0003: 0x0000000000100006 at leaf2[2], and "
                                            "0x0000000000100004 at leaf2[1]")
        for host in ("node0003", "node0004"):  # it is in the story of both
            self.assertIn("two hosts claim the name node0003", self.daemon.ctl("history", host).stdout)
        after = self.daemon.ctl_json("devices")
        self.assertEqual([d["host"] for d in after], ["node0001", "node0002", "node0003", "node0003"])
        self.assertEqual([(d["guid"], d["switch_port"]) for d in after],
                         [(d["guid"], d["switch_port"]) for d in devices])
        self.assertIn("duplicate-name", self.daemon.ctl("check").stdout)
        changes = self.becomes(named, ("name", "node0003 mlx5_0", "node0003 mlx5_0", "node0004 mlx5_0"))
        self.assertEqual(changes[0]["why"], "two hosts claimed the name node0003: 0x0000000000100006 at leaf2[2] has its "
                                            "own now")
        self.assertEqual(self.daemon.ctl_json("devices"), devices)

    def test_names_that_show_as_others(self):
        """Nobody is shown, told or written what turns the direction of writing or has no width, wherever it comes out."""
        odd = {"node0001": "no\u202e1000ed HCA-1", "node0002": "node\u200b0002 HCA-1", "node0003": "=HYPERLINK(1) HCA-1",
               "leaf1": "le\u2066af\ufeff1"}
        named = self.whole
        for old, new in odd.items():
            named = named.replace(f'"{old}"', f'"{new}"')
        lab.replace_file(self.path, named)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}"}, "names": {"pattern": "^(.*) (HCA-1)$"}})
        self.addCleanup(self.daemon.stop)
        devices = self.daemon.ctl_json("devices")
        self.assertEqual(sorted(d["host"] for d in devices), ["0x0000000000100006", "=HYPERLINK(1)", "no?1000ed", "node?0002"])
        self.assertIn("le?af?1", [s["name"] for s in self.daemon.ctl_json("switches")])
        shown = [self.daemon.ctl(*words).stdout for words in (
            ["devices"], ["switches"], ["links"], ["history"], ["groups"], ["show", "no?1000ed"], ["check"],
            ["--format", "csv", "devices"], ["--format", "json", "history"])] + [self.daemon.log()]
        told = self.daemon.tool("info").stdout
        for text in (*shown, told, *(json.dumps(self.daemon.control(op), ensure_ascii=False)
                                     for op in ("history", "diff", "check", "status"))):
            self.assertNotRegex(text, "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
        self.assertIn("no?1000ed", shown[0])
        rows = list(csv.DictReader(self.daemon.ctl("--format", "csv", "devices").stdout.splitlines()))
        self.assertIn("'=HYPERLINK(1)", [row["host"] for row in rows])  # a text to a spreadsheet
        self.assertNotRegex(self.daemon.ctl("--format", "csv", "history").stdout, "(?m)(^|,)\"?[=+@-][^0-9]")

    def test_hosts_whose_names_are_taken_for_others(self):
        lab.replace_file(self.path, self.whole.replace('"node0002"', '"NODE0001"').replace('"node0003"', '"10.0.0.7"'))
        self.daemon.refresh()
        found = {f["where"]: f for f in self.daemon.control("check")["findings"] if f["kind"] == "confusing-name"}
        self.assertEqual(sorted(found), ["10.0.0.7", "node0001"])
        self.assertIn("differs from that of NODE0001 by case only", found["node0001"]["what"])
        machine = {"items": [{"source": "verbs", "name": "mlx5_0"}]}
        for host, part in (("node9", None), ("Node9", "Node9 differs by case only from node9, which reports"),
                           ("10.1", "10.1 is an address and no host's name")):
            path = os.path.join(lab.tmpdir(), "machine.json")
            lab.replace_file(path, json.dumps(dict(machine, host=host)))
            with open(path + ".bytes", "wb") as out:
                subprocess.run([lab.program("report_tool"), path], stdout=out, check=True)
            with open(path + ".bytes", "rb") as file:
                answer = self.daemon.control("deliver", bytes=base64.b64encode(file.read()).decode())
            self.assertEqual(answer["ok"], part is None, answer)
            if part:
                self.assertEqual(answer["error"], -14)
                self.assertIn(part, answer["message"])
        self.assertEqual([n["host"] for n in self.daemon.control("nodes")["nodes"]], ["node9"])

    def test_a_switch_that_appears_twice(self):
        record = next(text for text in self.whole.split("\n\n") if re.search(r'^Switch.*# "leaf1"', text, re.MULTILINE))
        lab.replace_file(self.path, f"{self.whole.rstrip()}\n\n{record}\n")
        self.refused("a second record of node 0x0000000000200000, the first is in line 10; remove one")
        lab.replace_file(self.path, self.whole)
        self.well()
        lab.replace_file(self.path, self.whole.replace("200003", "200002"))  # both spines by one GUID
        self.refused("a second record of node 0x0000000000200002")
        lab.replace_file(self.path, self.whole)
        self.well()

    def test_five_of_eight_nodes_answer(self):
        part = self.whole
        for node in ("leaf2", "node0003", "node0004"):
            part = fabric_text.without_record(part, node)
        lab.replace_file(self.path, part)
        for _ in range(3):  # however often
            self.refused(r"the sweep is partial: 2 ports lead nowhere or did not answer \(spine1\[2\] \(to leaf2\[3\]\), "
                         r"spine2\[2\] \(to leaf2\[4\]\)\), .*still serving generation 1 ")
        done = self.daemon.ctl("--format", "json", "check")
        self.assertEqual(done.returncode, 1, done)
        stale, *partial = json.loads(done.stdout)["findings"]
        self.assertEqual((stale["severity"], stale["kind"]), ("error", "stale"))
        self.assertEqual(stale["what"], self.daemon.status()["stale_reason"])
        self.assertEqual([(f["kind"], f["where"], f["what"]) for f in partial], [
            ("partial", f"spine{k}[2]",
             f"leads nowhere now, or did not answer; served as leading to leaf2[{k + 2}]") for k in (1, 2)])
        self.assertEqual(self.daemon.status()["missing"], 0)  # nobody's time begins
        lab.replace_file(self.path, self.whole)
        self.well()
        self.assertEqual(self.daemon.ctl_json("check")["findings"], [])


class Live(Case):
    def setUp(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric(SPEC))
        self.addCleanup(self.sim.quit)
        self.sim.sweep()
        self.daemon = lab.Fabricd(self.sim)
        self.addCleanup(self.daemon.stop)

    def test_one_guid_twice(self):
        """A discovery takes two nodes of one GUID for one, with ports that lead nowhere."""
        for node, guid, other in (("spine2", 0x200003, 0x200002), ("node0003", 0x100004, 0x100000)):
            self.sim.guid(node, other)
            self.refused("the sweep is partial: (1 port leads|2 ports lead) nowhere.*still serving generation 1 ")
            self.sim.guid(node, guid)
            self.well()


if __name__ == "__main__":
    unittest.main()
