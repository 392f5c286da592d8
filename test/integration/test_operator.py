"""The operator's hands: verify, check, expect, and refresh of one switch or without waiting."""
import json
import os
import re
import unittest

import fabric_text
import lab

FABRIC = "fattree2:4,2,3"


def slower(text, node, port, rate):
    """The netfile with another rate in a node's port and at the other end of its cable."""
    found = re.search(rf'^\w+ \d+ "{node}".*\n(?:\[.*\n)*?(\[{port}\] "([^"]+)"\[(\d+)\].*\n)', text, re.MULTILINE)
    far = re.search(rf'^\w+ \d+ "{found.group(2)}".*\n(?:\[.*\n)*?(\[{found.group(3)}\] .*\n)', text, re.MULTILINE)
    for line in (found, far):
        text = text[:line.start(1)] + re.sub("4xHDR$", rate, line.group(1), flags=re.MULTILINE) + text[line.end(1):]
    return text


class Case(unittest.TestCase):
    def start(self, text=None, **settings):
        """A simulated subnet and a daemon that does nothing by itself."""
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(text or lab.fabric(FABRIC))
        self.addCleanup(self.sim.quit)
        self.sim.sweep()
        self.daemon = lab.Fabricd(self.sim, config=dict(self.config(), **settings))
        self.addCleanup(self.daemon.stop)
        self.daemon.wait_ready()

    @staticmethod
    def config():
        return {"fabricd": {"interval": 0}, "changes": {"light_sweep": 0}}

    def no(self, *args):
        """A command whose answer is no: what it says in JSON."""
        done = self.daemon.ctl("--format", "json", *args)
        self.assertEqual((done.returncode, done.stderr), (1, ""), done)
        return json.loads(done.stdout)

    def refused(self, *args, status=1, **options):
        """A command that fails: its one line."""
        done = self.daemon.ctl(*args, **options)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr


class Check(Case):
    def findings(self):
        return [(f["severity"], f["kind"], f["where"], f["what"]) for f in self.no("check")["findings"]]

    def test_nothing_is_wrong(self):
        self.start()
        done = self.daemon.ctl("check")
        self.assertEqual((done.returncode, done.stdout), (0, "generation 1: nothing looks wrong\n"), done)
        self.assertEqual(self.daemon.ctl_json("check"), {"generation": 1, "findings": []})

    def test_what_is_wrong_is_found(self):
        port = int(re.search(r'^Switch \d+ "leaf2".*\n(?:\[.*\n)*?\[(\d+)\] "spine1"', lab.fabric(FABRIC),
                             re.MULTILINE).group(1))
        text = slower(slower(lab.fabric(FABRIC), "node0002", 1, "4xEDR"), "leaf2", port, "1xHDR")
        self.start(text)
        slow = [("warning", "slow-link", "leaf1[2] - node0002 HCA-1[1]",
                 "4xEDR (100 Gb/s); 11 of 12 links of hosts there have 200 Gb/s"),
                ("warning", "slow-link", f"leaf2[{port}] - spine1[2]",
                 "1xHDR (50 Gb/s); 7 of 8 links of switches there have 200 Gb/s")]
        self.assertEqual(self.findings(), slow)
        leaf = self.sim.cable("leaf3", "spine2")
        self.sim.unlink("leaf3", leaf)
        self.sim.sweep()
        self.daemon.refresh()
        slow[1] = (*slow[1][:3], "1xHDR (50 Gb/s); 6 of 7 links of switches there have 200 Gb/s")
        found = self.findings()
        self.assertEqual(found.pop(0)[:3], ("warning", "link-lost", f"leaf3[{leaf}] - spine2[3]"))
        self.assertEqual(found, slow, "the leaf has fewer uplinks, and why is told")
        done = self.daemon.ctl("check")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"\AID +SEVERITY +KIND +SINCE +COUNT +ACKED +WHERE +WHAT\n"
                                      r"\w{8} +warning +link-lost +2\S+Z +1 +- +leaf3\[\d\] - [^\n]+\n"
                                      r"\w{8} +warning +slow-link [^\n]* leaf1\[2\] - ")
        self.assertRegex(done.stdout, r"\n\nlink-lost: [^\n]+\nslow-link: [^\n]+\n\Z")
        self.assertEqual(len(self.daemon.ctl("--format", "csv", "check").stdout.splitlines()), 4)
        # it is for everybody, and changes nothing
        self.assertEqual(self.daemon.ctl("check", user="nobody").returncode, 1)
        self.assertEqual(self.daemon.status()["generation"], 2)

    def test_a_host_that_is_gone(self):
        self.start()
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "node0002"))
        self.sim.sweep()
        self.daemon.refresh()
        self.assertEqual(self.findings(), [
            ("error", "missing", "node0002 HCA-1", "not seen any more; its place is kept at leaf1[2]")])
        # its place is kept, but what is served is not what is seen
        differs = self.no("verify")
        self.assertEqual((differs["generation"], differs["equal"]), (2, False))
        self.assertEqual([(c["kind"], c["what"], c["before"], c["after"]) for c in differs["changes"]],
                         [("host-missing", "node0002 HCA-1", "missing", "not seen")])
        done = self.daemon.ctl("verify")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"\Ageneration 2 is not what a sweep sees now:\nTIME [^\n]+\n[^\n]*"
                                      r"host-missing +node0002 HCA-1[^\n]*missing")

    def test_names_of_two(self):
        names = os.path.join(lab.tmpdir(), "names.map")
        with open(names, "w", encoding="utf-8") as file:
            file.write('0x100000 "node0001 HCA-1"\n0x100002 "node0001 HCA-1"\n')
        self.start(lab.fabric(FABRIC).replace('"node0005"', '"MT4123 ConnectX6"'), names={"map": names})
        found = self.findings()
        self.assertEqual([f[:3] for f in found], [
            ("error", "duplicate-name", "node0001 HCA-1"), ("warning", "many-ports", "node0001"),
            ("notice", "unnamed", found[-1][2])], found)
        self.assertRegex(found[0][3], r"^2 devices have this name: 0x\w{16}, 0x\w{16}$")


class Verify(Case):
    def test_equal_and_not(self):
        self.start()
        done = self.daemon.ctl("verify")
        self.assertEqual((done.returncode, done.stdout), (0, "generation 1 is what a sweep sees now\n"), done)
        self.assertEqual(self.daemon.ctl_json("verify"),
                         {"generation": 1, "equal": True, "changes": [], "suppressed": 0, "suppressed_switches": 0})
        port = self.sim.cable("leaf1", "spine2")
        self.sim.unlink("leaf1", port)
        differs = self.no("verify")
        self.assertEqual((differs["generation"], differs["equal"]), (1, False))
        self.assertEqual([(c["kind"], c["what"], c["generation"]) for c in differs["changes"]],
                         [("link-lost", f"leaf1[{port}] - spine2[1]", None)])
        done = self.daemon.ctl("verify")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"\Ageneration 1 is not what a sweep sees now:\nTIME ")
        # nothing was published, and what is published then is what was told
        self.assertEqual(self.daemon.status()["generation"], 1)
        self.daemon.refresh()
        told = self.daemon.ctl_json("diff")["changes"]
        self.assertEqual([(c["kind"], c["what"], c["why"], c["subjects"]) for c in told],
                         [(c["kind"], c["what"], c["why"], c["subjects"]) for c in differs["changes"]])
        self.assertEqual(self.daemon.ctl_json("verify")["equal"], True)

    def test_many_at_a_time(self):
        """Each gets an answer that is not older than its question."""
        self.start()
        asked = [self.daemon.ask("verify") for _ in range(3)]
        gone = self.daemon.ask("verify")
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "spine2"))
        late = [self.daemon.ask("verify") for _ in range(3)]
        gone.close()
        answers = [self.daemon.answer(channel) for channel in asked + late]
        self.assertTrue(all(answer["ok"] for answer in answers), answers)
        self.assertEqual([answer["equal"] for answer in answers[3:]], [False] * 3)
        self.assertEqual(self.daemon.status()["generation"], 1)
        # one whose asker leaves is given up
        before = len(self.daemon.children())
        self.daemon.ask("verify").close()
        lab.wait_for(lambda: len(self.daemon.children()) <= before, what="the sweep to be given up")
        self.daemon.check_alive()

    def recorded(self, feed):
        """A daemon that sweeps what it is handed."""
        self.daemon = lab.Fabricd(config={"fabricd": {"interval": 0, "probe": feed.probe}}, start=False)
        self.daemon.start(wait=False)
        self.addCleanup(self.daemon.stop)
        feed.give(lab.fabric(FABRIC, "capture"))
        self.daemon.wait_ready()

    def test_progress_after_two_seconds(self):
        feed = lab.Feed()
        self.recorded(feed)
        channel = self.daemon.ask("verify")
        line = b""
        while not line.endswith(b"\n"):
            line += channel.recv(1)
        self.assertRegex(json.loads(line)["progress"], r"^sweeping for [2-9] s; the last sweep took \d+\.\d s$")
        feed.give(lab.fabric(FABRIC, "capture"))
        self.assertTrue(self.daemon.answer(channel)["equal"])

    def test_progress_of_a_refresh(self):
        feed = lab.Feed()
        self.recorded(feed)
        channel = self.daemon.ask("refresh")
        told = []
        while len(told) < 2:
            line = b""
            while not line.endswith(b"\n"):
                line += channel.recv(1)
            told.append(json.loads(line)["progress"])
        self.assertEqual(told[0], "sweeping")
        self.assertRegex(told[1], r"^sweeping for [2-9] s; the last sweep took \d+\.\d s$")
        feed.give(lab.fabric(FABRIC, "capture"))
        self.assertFalse(self.daemon.answer(channel)["changed"])

    def test_a_part_is_no_difference(self):
        """It is a reason why there is no answer."""
        feed = lab.Feed()
        self.recorded(feed)
        channel = self.daemon.ask("verify")
        feed.give(fabric_text.without_record(lab.fabric(FABRIC, "capture"), "leaf2"))
        answer = self.daemon.answer(channel)
        self.assertEqual((answer["ok"], answer["error"]), (False, -17), answer)
        self.assertRegex(answer["message"], "^verify: the sweep is partial: ")
        self.assertFalse(self.daemon.status()["partial"])

    def test_failures(self):
        self.start(fabricd={"interval": 0, "deadline": 5})
        self.assertRegex(self.refused("verify", user="nobody"), r"^fabricctl: verify: uid \d+ may not do that")
        self.sim.quit()
        done = self.daemon.ctl("verify")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertRegex(done.stderr, r"\A(fabricctl: sweeping for \d s; the last [^\n]+\n)*fabricctl: verify: [^\n]+\n\Z")
        self.assertFalse(self.daemon.status()["stale"])  # a round of the daemon's own says that

    def test_a_fabric_that_nobody_sweeps(self):
        self.daemon = lab.Fabricd(None, config={"fabricd": {"interval": 0, "probe": "ethernet"}}, start=False)
        self.daemon.start(wait=False)
        self.addCleanup(self.daemon.stop)
        self.daemon.wait_up()
        self.assertIn("no probe of the fabric is configured", self.refused("verify"))

    def test_stops_in_the_middle(self):
        self.start()
        channel = self.daemon.ask("verify")
        self.addCleanup(channel.close)
        self.assertEqual(self.daemon.stop(), 0)


class Expect(Case):
    def names(self):
        return [row["name"] for row in self.daemon.ctl_json("expect")]

    def test_a_planned_swap(self):
        self.start()
        self.assertEqual(self.daemon.ctl("expect").stdout, "no swap is announced\n")
        row, = self.daemon.ctl_json("expect", "node0002", "--replace")
        self.assertEqual(row["name"], "node0002")
        self.assertLess(row["since"], row["until"])
        self.daemon.ctl_json("expect", "spine2", "--replace", "--for", "30m")
        self.assertEqual(self.names(), ["node0002", "spine2"])
        self.daemon.kill9()  # they are known after anything
        self.daemon.start()
        self.assertEqual(self.names(), ["node0002", "spine2"])
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "node0002"))
        self.sim.unlink("leaf2", self.sim.cable("leaf2", "node0005"))
        self.sim.unlink("leaf3", self.sim.cable("leaf3", "spine2"))
        self.sim.unlink("leaf3", self.sim.cable("leaf3", "spine1"))
        verified = self.no("verify")["changes"]
        self.daemon.refresh(accept_partial=True)
        changes = self.daemon.ctl_json("diff")["changes"]
        for one in changes + verified:
            self.assertEqual(one["planned"], bool({"node0002", "spine2"} & set(one["subjects"])), one)
        self.assertIn(True, [one["planned"] for one in changes])
        self.assertIn(False, [one["planned"] for one in changes])
        self.assertIn(", planned", self.daemon.ctl("history", "node0002").stdout)
        self.assertEqual(self.daemon.ctl_json("expect", "spine2", "--cancel"), [])
        self.assertEqual(self.names(), ["node0002"])
        self.assertEqual(self.daemon.ctl("expect", "node0002", "--cancel").stdout,
                         "node0002 is not expected to change any more\n")
        self.assertEqual(self.names(), [])

    def test_its_time_is_over(self):
        self.start()
        self.daemon.ctl_json("expect", "node0002", "--replace", "--for", "1")
        lab.wait_for(lambda: self.names() == [], what="the announcement to be over")
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "node0002"))
        self.daemon.refresh()
        self.assertEqual({c["planned"] for c in self.daemon.ctl_json("diff")["changes"]}, {False})

    def test_refusals(self):
        self.start()
        self.assertIn("no host or switch nobody", self.refused("expect", "nobody", "--replace"))
        self.assertIn("node0001 is not expected", self.refused("expect", "node0001", "--cancel"))
        self.assertIn("uid", self.refused("expect", "node0001", "--replace", user="nobody"))
        for days in ("31d", "99999999d"):
            self.assertIn("1 second to 30 days", self.refused("expect", "node0001", "--replace", "--for", days))
        for args in (["--replace"], ["--cancel"], ["node0001", "--replace", "--cancel"], ["node0001", "--for", "1h"],
                     ["node0001", "--replace", "--for", "soon"], ["node0001", "--replace", "--for", "0"],
                     ["node0001", "--replace", "--for", "4hh"]):
            self.refused("expect", *args, status=2)
        for request in ({"name": 5, "replace": True}, {"name": "", "replace": True}, {"replace": True},
                        {"name": "node0001", "replace": True, "seconds": -1},
                        {"name": "node0001", "replace": True, "seconds": 1 << 40}):
            self.assertFalse(self.daemon.control("expect", **request)["ok"], request)
        self.assertEqual(self.names(), [])


class Refresh(Case):
    def test_one_switch(self):
        self.start()
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "spine2"))
        self.sim.unlink("leaf3", self.sim.cable("leaf3", "spine2"))
        answer = self.daemon.ctl_json("refresh", "--switch", "leaf1", "--wait")
        self.assertEqual((answer["generation"], answer["changed"]), (2, True))
        self.assertEqual(len(answer["changes"]), 1, answer)
        self.assertIn("leaf1[", answer["changes"][0]["what"])
        self.assertEqual(len(self.daemon.ctl_json("diff")["changes"]), 2)
        self.assertEqual(self.daemon.ctl_json("refresh", "--switch", "0x0000000000200000")["changed"], False)
        self.assertIn("no switch leaf99", self.refused("refresh", "--switch", "leaf99"))
        self.assertIn("no switch node0001", self.refused("refresh", "--switch", "node0001"))

    def test_without_waiting(self):
        self.start()
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "spine2"))
        self.assertEqual(self.daemon.ctl_json("refresh", "--no-wait"), {"taken": True, "generation": 1})
        lab.wait_for(lambda: self.daemon.status()["generation"] == 2, what="the sweep that was taken up")
        lab.wait_for(lambda: not self.daemon.status()["sweeping"], what="its end")
        done = self.daemon.ctl("refresh", "--no-wait", "--host", "node0001")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "taken up; generation 2 is served now\n", ""))
        self.assertRegex(self.daemon.ctl("refresh").stdout, r"\Ageneration 2, as before: nothing changed")

    def test_usage(self):
        self.start()
        for args in (["--host", "node0001", "--switch", "leaf1"], ["--wait", "--no-wait"], ["--switch", ""]):
            self.refused("refresh", *args, status=2)
        for request in ({"switch": 7}, {"host": ["node0001"]}, {"host": ""}):
            self.assertFalse(self.daemon.control("refresh", **request)["ok"], request)


if __name__ == "__main__":
    unittest.main()
