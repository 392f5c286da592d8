"""The operator's hands: verify, check, expect, and refresh of one switch or without waiting."""
import json
import os
import unittest

import fabric_text
import lab
import sim

FABRIC = "fattree2:4,2,3"


class Case(unittest.TestCase):
    def start(self, **settings):
        self.site = sim.Site(FABRIC, settings, start=False)
        self.addCleanup(self.site.free)
        self.site.start()

    def no(self, *args):
        """A command whose answer is no: what it says in JSON."""
        done = self.site.ctl("--format", "json", *args)
        self.assertEqual((done.returncode, done.stderr), (1, ""), done)
        return json.loads(done.stdout)

    def refused(self, *args, status=1):
        """A command that fails: its one line."""
        done = self.site.ctl(*args)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def pull(self, a, b):
        port = self.site.cable(a, b)
        self.site.pull(a, port)
        return port


class Check(Case):
    def findings(self):
        return [(f["severity"], f["kind"], f["where"], f["what"]) for f in self.no("check")["findings"]]

    def test_nothing_is_wrong(self):
        self.start()
        done = self.site.ctl("check")
        self.assertEqual((done.returncode, done.stdout), (0, "generation 1: no findings\n"), done)
        self.assertEqual(self.site.ctl_json("check"), {"generation": 1, "findings": []})

    def test_what_is_wrong_is_found(self):
        self.start()
        port = self.site.cable("leaf2", "spine1")
        self.site.rate("node0002", 1, 4, "EDR")
        self.site.rate("leaf2", port, 1, "HDR")
        self.site.refresh()
        slow = [("warning", "slow-link", "leaf1[2] - node0002 HCA-1[1]",
                 "4xEDR (100 Gb/s); 11 of 12 links of hosts there have 200 Gb/s"),
                ("warning", "slow-link", f"leaf2[{port}] - spine1[2]",
                 "1xHDR (50 Gb/s); 7 of 8 links of switches there have 200 Gb/s")]
        self.assertEqual(self.findings(), slow)
        leaf = self.pull("leaf3", "spine2")
        self.site.refresh()
        slow[1] = (*slow[1][:3], "1xHDR (50 Gb/s); 6 of 7 links of switches there have 200 Gb/s")
        found = self.findings()
        self.assertEqual(found.pop(0)[:3], ("warning", "link-lost", f"leaf3[{leaf}] - spine2[3]"))
        self.assertEqual(found, slow, "the leaf has fewer uplinks, and why is told")
        done = self.site.ctl("check")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"\AID +SEVERITY +KIND +SINCE +COUNT +ACKED +WHERE +WHAT\n"
                                      r"\w{8} +warning +link-lost +2\S+Z +1 +- +leaf3\[\d\] - [^\n]+\n"
                                      r"\w{8} +warning +slow-link [^\n]* leaf1\[2\] - ")
        self.assertRegex(done.stdout, r"\n\nlink-lost: [^\n]+\nslow-link: [^\n]+\n\Z")
        self.assertEqual(len(self.site.ctl("--format", "csv", "check").stdout.splitlines()), 4)
        self.assertEqual(self.site.status()["generation"], 3)  # it changes nothing

    def test_a_host_that_is_gone(self):
        self.start()
        self.pull("leaf1", "node0002")
        self.site.refresh()
        self.assertEqual(self.findings(), [
            ("error", "missing", "node0002 HCA-1", "no longer seen; its place is kept at leaf1[2]")])
        # its place is kept, but what is served is not what is seen
        differs = self.no("verify")
        self.assertEqual((differs["generation"], differs["equal"]), (2, False))
        self.assertEqual([(c["kind"], c["what"], c["before"], c["after"]) for c in differs["changes"]],
                         [("host-missing", "node0002 HCA-1", "missing", "not seen")])
        done = self.site.ctl("verify")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"\Ageneration 2 differs from the fabric as swept now:\nTIME [^\n]+\n[^\n]*"
                                      r"host-missing +node0002 HCA-1[^\n]*missing")

    def test_names_of_two(self):
        names = os.path.join(lab.tmpdir(), "names.map")
        lab.replace_file(names, '0x100000 "node0001 HCA-1"\n0x100002 "node0001 HCA-1"\n')
        self.site = sim.Site(FABRIC, {"names": {"map": names}}, start=False)
        self.addCleanup(self.site.free)
        self.site.rename("node0005", "MT4123 ConnectX6")
        self.site.start()
        found = self.findings()
        self.assertEqual([f[:3] for f in found], [
            ("error", "duplicate-name", "node0001 HCA-1"), ("warning", "many-ports", "node0001"),
            ("notice", "unnamed", found[-1][2])], found)
        self.assertRegex(found[0][3], r"^2 devices have this name: 0x\w{16}, 0x\w{16}$")


class Verify(Case):
    def test_equal_and_not(self):
        self.start()
        done = self.site.ctl("verify")
        self.assertEqual((done.returncode, done.stdout), (0, "generation 1 equals the fabric as swept now\n"), done)
        self.assertEqual(self.site.ctl_json("verify"),
                         {"generation": 1, "equal": True, "changes": [], "suppressed": 0, "suppressed_switches": 0})
        port = self.pull("leaf1", "spine2")
        differs = self.no("verify")
        self.assertEqual((differs["generation"], differs["equal"]), (1, False))
        self.assertEqual([(c["kind"], c["what"], c["generation"]) for c in differs["changes"]],
                         [("link-lost", f"leaf1[{port}] - spine2[1]", None)])
        done = self.site.ctl("verify")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"\Ageneration 1 differs from the fabric as swept now:\nTIME ")
        # nothing was published, and what is published then is what was told
        self.assertEqual(self.site.status()["generation"], 1)
        self.site.refresh()
        told = self.site.ctl_json("diff")["changes"]
        self.assertEqual([(c["kind"], c["what"], c["why"], c["subjects"]) for c in told],
                         [(c["kind"], c["what"], c["why"], c["subjects"]) for c in differs["changes"]])
        self.assertEqual(self.site.ctl_json("verify")["equal"], True)

    def test_many_at_a_time(self):
        """Each gets an answer that is not older than its question."""
        self.start()
        asked = [self.site.ask("verify") for _ in range(3)]
        gone = self.site.ask("verify")
        self.pull("leaf1", "spine2")
        late = [self.site.ask("verify") for _ in range(3)]
        gone.close()
        answers = [channel.answer() for channel in asked + late]
        self.assertTrue(all(answer["ok"] for answer in answers), answers)
        self.assertEqual([answer["equal"] for answer in answers[3:]], [False] * 3)
        self.assertEqual(self.site.status()["generation"], 1)
        # one whose asker leaves is given up
        self.site.idle()
        self.site.sweeps(sim.HANG)
        leaves = self.site.ask("verify")
        self.assertEqual(self.site.children(), ["sweep"])
        leaves.close()
        self.site.advance(3)  # with the first word of how far it is
        self.site.look()
        self.assertEqual(self.site.children(), [])

    def test_progress_after_two_seconds(self):
        self.start()
        self.site.sweeps_take(15)
        channel = self.site.ask("verify")
        for seconds in (2, 7, 12):
            self.assertEqual(channel.line(), {"progress": f"sweeping for {seconds} s; the last sweep took 0.0 s"})
        self.assertTrue(channel.answer()["equal"])

    def test_progress_of_a_refresh(self):
        self.start()
        self.site.sweeps_take(15)
        channel = self.site.ask("refresh")
        self.assertEqual(channel.line(0), {"progress": "sweeping"})
        for seconds in (2, 7, 12):
            self.assertEqual(channel.line(), {"progress": f"sweeping for {seconds} s; the last sweep took 0.0 s"})
        self.assertFalse(channel.answer()["changed"])

    def test_a_part_is_no_difference(self):
        """It is a reason why there is no answer."""
        capture = sim.fabric(FABRIC, "capture")
        self.site = sim.Recorded(capture)
        self.addCleanup(self.site.free)
        self.site.show(fabric_text.without_record(capture, "leaf2"))
        answer = self.site.control("verify")
        self.assertEqual((answer["ok"], answer["error"]), (False, -17), answer)
        self.assertRegex(answer["message"], "^verify: the sweep is partial: ")
        self.assertFalse(self.site.status()["partial"])

    def test_failures(self):
        self.start(fabricd={"deadline": 5})
        for how, why in ((sim.FAIL, "the port is down"), (sim.CRASH, r"signal 6 \(Aborted\)"), (sim.HANG, "timed out after 5 s: killed")):
            self.site.sweeps(how)
            done = self.site.ctl("verify")
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertRegex(done.stderr, rf"\A(fabricctl: sweeping for \d s; the last [^\n]+\n)*fabricctl: verify: [^\n]*{why}\n\Z")
            self.assertFalse(self.site.status()["stale"])  # a round of the daemon's own says that

    def test_a_fabric_that_nobody_sweeps(self):
        self.start(fabricd={"probe": "ethernet"})
        self.assertIn("no probe of the fabric is configured", self.refused("verify"))

    def test_stops_in_the_middle(self):
        self.start()
        self.site.sweeps(sim.HANG)
        channel = self.site.ask("verify")
        self.site.stop()
        self.assertIsNone(channel.line())
        channel.close()


class Expect(Case):
    def names(self):
        return [row["name"] for row in self.site.ctl_json("expect")]

    def test_a_planned_swap(self):
        self.start()
        self.assertEqual(self.site.ctl("expect").stdout, "no swap is announced\n")
        row, = self.site.ctl_json("expect", "node0002", "--replace")
        self.assertEqual(row["name"], "node0002")
        self.assertLess(row["since"], row["until"])
        self.site.ctl_json("expect", "spine2", "--replace", "--for", "30m")
        self.assertEqual(self.names(), ["node0002", "spine2"])
        self.site.kill9()  # they are known after anything
        self.site.start()
        self.assertEqual(self.names(), ["node0002", "spine2"])
        for pair in (("leaf1", "node0002"), ("leaf2", "node0005"), ("leaf3", "spine2"), ("leaf3", "spine1")):
            self.pull(*pair)
        verified = self.no("verify")["changes"]
        self.site.refresh(accept_partial=True)
        changes = self.site.ctl_json("diff")["changes"]
        for one in changes + verified:
            self.assertEqual(one["planned"], bool({"node0002", "spine2"} & set(one["subjects"])), one)
        self.assertIn(True, [one["planned"] for one in changes])
        self.assertIn(False, [one["planned"] for one in changes])
        self.assertIn(", planned", self.site.ctl("history", "node0002").stdout)
        self.assertEqual(self.site.ctl_json("expect", "spine2", "--cancel"), [])
        self.assertEqual(self.names(), ["node0002"])
        self.assertEqual(self.site.ctl("expect", "node0002", "--cancel").stdout,
                         "the announcement of node0002 is withdrawn\n")
        self.assertEqual(self.names(), [])

    def test_its_time_is_over(self):
        self.start()
        self.site.ctl_json("expect", "node0002", "--replace", "--for", "1")
        self.site.advance(0.9)
        self.assertEqual(self.names(), ["node0002"])
        self.site.advance(0.2)
        self.assertEqual(self.names(), [])
        self.pull("leaf1", "node0002")
        self.site.refresh()
        self.assertEqual({c["planned"] for c in self.site.ctl_json("diff")["changes"]}, {False})

    def test_refusals(self):
        self.start()
        self.assertIn("no host or switch nobody", self.refused("expect", "nobody", "--replace"))
        self.assertIn("no swap of node0001 is announced", self.refused("expect", "node0001", "--cancel"))
        for days in ("31d", "99999999d"):
            self.assertIn("1 second to 30 days", self.refused("expect", "node0001", "--replace", "--for", days))
        for args in (["--replace"], ["--cancel"], ["node0001", "--replace", "--cancel"], ["node0001", "--for", "1h"],
                     ["node0001", "--replace", "--for", "soon"], ["node0001", "--replace", "--for", "0"],
                     ["node0001", "--replace", "--for", "4hh"]):
            self.refused("expect", *args, status=2)
        for request in ({"name": 5, "replace": True}, {"name": "", "replace": True}, {"replace": True},
                        {"name": "node0001", "replace": True, "seconds": -1},
                        {"name": "node0001", "replace": True, "seconds": 1 << 40}):
            self.assertFalse(self.site.control("expect", **request)["ok"], request)
        self.assertEqual(self.names(), [])


class Refresh(Case):
    def test_one_switch(self):
        self.start()
        self.pull("leaf1", "spine2")
        self.pull("leaf3", "spine2")
        answer = self.site.ctl_json("refresh", "--switch", "leaf1", "--wait")
        self.assertEqual((answer["generation"], answer["changed"]), (2, True))
        self.assertEqual(len(answer["changes"]), 1, answer)
        self.assertIn("leaf1[", answer["changes"][0]["what"])
        self.assertEqual(len(self.site.ctl_json("diff")["changes"]), 2)
        self.assertEqual(self.site.ctl_json("refresh", "--switch", "0x0000000000200000")["changed"], False)
        self.assertIn("no switch leaf99", self.refused("refresh", "--switch", "leaf99"))
        self.assertIn("no switch node0001", self.refused("refresh", "--switch", "node0001"))

    def test_without_waiting(self):
        self.start()
        self.pull("leaf1", "spine2")
        self.assertEqual(self.site.ctl_json("refresh", "--no-wait"), {"taken": True, "generation": 1})
        self.site.idle()
        status = self.site.status()
        self.assertEqual((status["generation"], status["sweeping"]), (2, False))
        done = self.site.ctl("refresh", "--no-wait", "--host", "node0001")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "accepted; generation 2 is served now\n", ""))
        self.assertRegex(self.site.ctl("refresh").stdout, r"\Ageneration 2, as before: nothing changed")

    def test_usage(self):
        self.start()
        for args in (["--host", "node0001", "--switch", "leaf1"], ["--wait", "--no-wait"], ["--switch", ""]):
            self.refused("refresh", *args, status=2)
        for request in ({"switch": 7}, {"host": ["node0001"]}, {"host": ""}):
            self.assertFalse(self.site.control("refresh", **request)["ok"], request)


if __name__ == "__main__":
    unittest.main()
