"""What looks wrong: the life of a finding."""
import json
import os
import re
import sqlite3
import unittest

import sim
from sim import fabric_text, lab


SPINES = ("spine1", "spine2", "spine3", "spine4")
LEAVES = ("leaf1", "leaf2", "leaf3", "leaf4")


class Case(unittest.TestCase):
    FABRIC, ROOM = "fattree2:4,4,2", 0

    def setUp(self):
        self.site = sim.Site(self.FABRIC, start=False, room=self.ROOM)
        self.addCleanup(self.site.free)

    def start(self, **sections):
        self.site.configure(sections)
        self.site.start()

    def again(self):
        self.site.kill9()
        self.site.start()
        self.site.refresh()

    def check(self, *args):
        """Status and findings."""
        return self.site.check(*args)

    def where(self, *kinds):
        return {f["where"]: f for f in self.check()[1] if f["kind"] in kinds}

    def lost_cables(self):
        """Between which nodes."""
        return {frozenset(end["name"] for end in cable["ends"]) for cable in self.site.control("check", lost=True)["lost"]}

    def told(self, *words):
        """The log's lines about findings with all of these words."""
        return [line for line in self.site.log().splitlines()
                if re.search(r"finding [0-9a-f]{8}: ", line) and all(word in line for word in words)]

    def metric(self, kind, name="fabricd_findings"):
        found = re.search(rf'^{name}{{kind="{kind}",severity="\w+"}} (\d+)$', self.site.ctl("metrics").stdout, re.M)
        return int(found.group(1))


class Spines(Case):
    def test_three_of_four_die(self):
        """Nobody forgets them: not the time, not a restart, only the operator."""
        self.start(changes={"retain_seconds": 1, "flap_count": 0})
        self.assertEqual(self.check(), (0, []))
        for spine in SPINES[:3]:
            self.site.pull(spine)
        self.site.refresh()
        status, found = self.check()
        lost = self.where("lost")
        self.assertEqual((status, set(lost)), (1, set(SPINES[:3])))
        self.assertEqual({f["severity"] for f in lost.values()}, {"error"})
        for finding in lost.values():
            self.assertAlmostEqual(finding["bisection_gone"], 0.25)
            self.assertIn("25 % of its plane's bisection went with it, 75 % in all", finding["what"])
        self.assertEqual(len(self.told("error lost")), 3)
        self.assertEqual(self.lost_cables(), {frozenset((leaf, spine)) for leaf in LEAVES for spine in SPINES[:3]})
        shown = self.site.ctl("show", "spine1")  # what is not served any more is known still
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"(?s)^spine1 is not in the fabric now; .*\n\nlatest changes:\n.*switch-lost +spine1 ")
        self.assertEqual(self.site.ctl("show", "spine").returncode, 1)  # a part of a name is none
        ids = {where: f["id"] for where, f in lost.items()}
        since = {where: f["since"] for where, f in lost.items()}
        self.again()
        lost = self.where("lost")
        self.assertEqual({where: f["id"] for where, f in lost.items()}, ids)
        self.assertEqual({where: f["since"] for where, f in lost.items()}, since)
        self.assertEqual(self.metric("lost"), 3)
        # All is known: by id (a part of it), by name, by kind.
        self.assertEqual(self.site.ctl("ack", ids["spine1"][:8], "--for", "30d").returncode, 0)
        self.assertEqual(self.check()[0], 1)
        self.assertEqual(self.site.ctl("ack", "lost").returncode, 0)
        self.assertIn(f"3 findings acknowledged by uid {os.getuid()}: lost\n", self.site.log())
        status, found = self.check()
        self.assertEqual([f for f in found if f["severity"] != "notice" and f["acked"] is None], [])
        self.assertEqual(status, 0)
        self.assertEqual(self.metric("lost"), 0)
        self.assertEqual(self.metric("lost", "fabricd_acknowledged_findings"), 3)
        self.assertEqual(self.site.ctl("ack", "spine2", "--cancel").returncode, 0)
        self.assertEqual(self.check()[0], 1)
        self.again()
        self.assertEqual({where for where, f in self.where("lost").items() if f["acked"] is None}, {"spine2"})
        # One is given up, two are back.
        self.assertEqual(self.site.ctl("forget", "spine2").returncode, 0)
        self.assertEqual(set(self.where("lost")), {"spine1", "spine3"})
        self.assertEqual(self.lost_cables(), {frozenset((leaf, spine)) for leaf in LEAVES for spine in ("spine1", "spine3")})
        for spine in ("spine1", "spine3"):
            self.site.plug(spine)
        self.site.refresh()
        self.assertEqual(self.check(), (0, []))
        self.assertEqual(self.lost_cables(), set())
        self.assertEqual(len(self.told("gone: error lost")), 3)
        self.site.plug("spine2") # it was forgotten as a finding, not as what it was
        self.site.refresh()
        self.assertIn(("switch-back", "spine2"),
                      [(c["kind"], c["what"]) for c in self.site.ctl_json("diff")["changes"]])

    def test_a_cable_between_switches(self):
        self.start(changes={"flap_count": 0})
        port = self.site.cable("leaf1", "spine1")
        self.site.pull("leaf1", port)
        self.site.refresh()
        (where, finding), = self.where("link-lost").items()
        self.assertIn(f"leaf1[{port}]", where)
        self.assertEqual(finding["severity"], "warning")
        self.assertAlmostEqual(finding["bisection_gone"], 1 / 16, delta=0.001)
        answer = self.site.control("check", lost=True)
        (cable,), (told,) = answer["lost"], [f for f in answer["findings"] if f["kind"] == "link-lost"]
        self.assertEqual(told["ends"], [{"guid": end["guid"], "port": end["port"]} for end in cable["ends"]])
        self.assertEqual([(end["name"], end["switch"], end["lost"], end["host"]) for end in cable["ends"]],
                         [("leaf1", True, False, ""), ("spine1", True, False, "")])
        self.assertEqual((cable["ends"][0]["port"], cable["mbps"]), (port, 200000))
        self.assertNotIn("lost", self.site.control("check"))
        self.assertEqual(self.check("--severity", "error"), (0, []))
        self.assertRegex(self.site.ctl("check", "--severity", "error").stdout, r"^generation \d+: no error$")
        shown = self.site.ctl("show", f"leaf1[{port}]").stdout
        self.assertRegex(shown, r"(?s)^cables:\n\nlatest changes:\n.*link-lost +leaf1\[")
        self.assertEqual(self.site.ctl("forget", finding["id"][:8]).returncode, 0)
        self.assertEqual(self.where("link-lost"), {})
        self.site.plug("leaf1", port)
        self.site.refresh()
        self.assertEqual(self.check(), (0, []))

    def test_fewer_uplinks_than_what_is_lost(self):
        """A lost cable is one finding; its switch is told where it has fewer cables beside that."""
        out = [self.site.cable("leaf1", spine) for spine in ("spine2", "spine1")]
        self.site.pull("leaf1", out[0])
        self.start(changes={"flap_count": 0})
        less = self.where("few-uplinks")["leaf1"]
        self.assertEqual(less["what"], "3 cables up, 3 of 4 such switches have 4; none to spine2")
        self.site.pull("leaf1", out[1])
        self.site.pull("leaf2", self.site.cable("leaf2", "spine1"))
        self.site.refresh()
        self.assertEqual(sorted(f["kind"] for f in self.check()[1]), ["few-uplinks", "link-lost", "link-lost"])
        more = self.where("few-uplinks")["leaf1"]
        self.assertEqual(more["what"], "counting 1 that is lost or switched off: " + less["what"])
        self.assertEqual([more["id"], more["since"]], [less["id"], less["since"]])
        for port in out:
            self.site.plug("leaf1", port)
        self.site.refresh()
        lost, = self.check()[1]
        self.assertEqual(lost["kind"], "link-lost")
        self.assertEqual(self.site.ctl("forget", lost["id"][:8]).returncode, 0)  # nobody waits for it
        left, = self.check()[1]
        self.assertEqual((left["kind"], left["where"]), ("few-uplinks", "leaf2"))


class SelfCable(Case):
    FABRIC, ROOM = "fattree2:2,2,2", 8

    def test_a_switch_with_a_cable_to_itself(self):
        """By a sweep of everything, by one of a switch, and by the light sweeps, which have nothing to do."""
        self.start(changes={"light_sweep": 1, "debounce": 0})
        self.site.link("leaf1", 7, "leaf1", 8)
        self.site.advance(2)

        def found():
            return [(f["severity"], f["where"], f["what"]) for f in self.site.control("check")["findings"]
                    if f["kind"] == "self-cable"]

        self.assertEqual(found(), [("warning", "leaf1", "2 ports are cabled to the same node: 7, 8")])
        self.site.refresh()
        self.assertEqual(len(found()), 1)
        self.site.refresh(switch="leaf1")
        self.assertEqual(len(found()), 1)
        self.assertEqual(self.site.control("verify")["changes"], [])
        before = self.site.status()
        self.site.advance(10)
        after = self.site.status()
        self.assertEqual(after["light_sweeps"], before["light_sweeps"] + 10)
        self.assertEqual(after["light_sweeps_dirty"], before["light_sweeps_dirty"])
        self.site.pull("leaf1", 7)
        self.site.refresh()
        self.assertEqual(found(), [])


class Hosts(Case):
    def test_missing_becomes_lost(self):
        """One finding, and what the operator said of it stays."""
        self.start(changes={"retain_seconds": 4, "flap_count": 0})
        self.site.pull("leaf1", self.site.cable("leaf1", "node0001"))
        self.site.refresh()
        (_, missing), = self.where("missing").items()
        self.assertEqual(self.site.ctl("ack", "node0001").returncode, 0)
        self.site.advance(3)
        self.assertEqual(self.where("lost"), {})
        self.site.advance(1.1)
        (_, lost), = self.where("lost").items()
        self.assertEqual([lost[key] for key in ("id", "since", "count", "where")],
                         [missing[key] for key in ("id", "since", "count", "where")])
        self.assertIsNotNone(lost["acked"])
        self.assertIsNone(lost["bisection_gone"])
        self.assertEqual(self.site.ctl("forget", "node0001").returncode, 0)
        self.assertEqual(self.where("lost", "missing"), {})

    def test_forgotten_while_it_is_missing(self):
        self.start(changes={"flap_count": 0})
        self.site.pull("leaf1", self.site.cable("leaf1", "node0001"))
        self.site.refresh()
        self.assertEqual(set(self.where("missing")), {"node0001 HCA-1"})
        self.assertEqual(self.site.ctl("forget", "node0001").returncode, 0)
        self.assertEqual(self.where("missing", "lost"), {})
        self.again()
        self.assertEqual(self.where("missing", "lost"), {})

    def test_comes_and_goes(self):
        """It is one finding, with a count, and told once."""
        self.start(changes={"flap_count": 0})
        port = self.site.cable("leaf1", "node0001")
        for _ in range(4):
            self.site.pull("leaf1", port)
            self.site.refresh()
            last = self.where("missing")["node0001 HCA-1"]
            self.site.plug("leaf1", port)
            self.site.refresh()
            self.assertEqual(self.where("missing"), {})
        self.assertEqual(last["count"], 4)
        told = [re.search(r"finding \w+: (.*?):? ?error missing", line).group(1) for line in self.told("error missing")]
        self.assertEqual([line.split(",")[0] for line in told], ["", "gone", "came again"])


    def test_the_hook_hears_of_it(self):
        """With the generation, and also where there is none."""
        told = []
        self.site.programs(lambda program: told.append(json.loads(program.input)))
        self.start(changes={"hook": "/bin/true", "flap_count": 0})
        self.site.pull("leaf1", self.site.cable("leaf1", "node0001"))
        self.site.refresh()
        self.assertEqual([(f["event"], f["kind"], f["where"]) for t in told for f in t["findings"]],
                         [("came", "missing", "node0001 HCA-1")])
        self.assertEqual([t["to"] - t["from"] for t in told], [1, 1])
        self.site.sweeps(sim.FAIL)
        self.assertFalse(self.site.control("refresh")["ok"])
        self.site.advance(120)
        last = told[-1]
        self.assertEqual([f["kind"] for f in last["findings"]], ["stale"])
        self.assertEqual((last["from"], last["to"], last["changes"], last["planes"]), (2, 2, [], []))


class Asked(Case):
    def test_what_is_not_found(self):
        self.start()
        for which in ("spine1", "0123456789abcdef", "lost", "no such thing", "x" * 5000, "a\nb"):
            done = self.site.ctl("ack", which)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"^fabricctl: ack: no finding [^\n]*\n$")
        for request in ({}, {"finding": 7}, {"finding": ""}, {"finding": "x", "seconds": "y"},
                        {"finding": "x", "seconds": -1}, {"finding": "x", "seconds": 1 << 60}):
            self.assertFalse(self.site.control("ack", **request)["ok"], request)
        self.assertEqual(self.site.ctl("check", "--severity", "loud").returncode, 2)

    def said(self, *args, status=1):
        done = self.site.ctl(*args)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status != 2 else done.stderr

    def test_columns(self):
        self.start(changes={"flap_count": 0})
        self.assertEqual(self.said("check", "--no-header", status=0), "")
        self.assertIn("no such column: colour: there are id, severity", self.said("check", "--columns", "colour", status=2))
        self.site.pull("spine1")
        self.site.refresh()
        wide = ("--columns", "severity,where")
        self.assertEqual(self.said("check", *wide, "--no-header").split(), ["error", "spine1"])
        self.assertRegex(self.said("check", *wide), r"^SEVERITY WHERE *\nerror +spine1 *\n\nlost: ")  # and the hint
        self.assertEqual(self.said("check", *wide, "--format", "csv"), "severity,where\nerror,spine1\n")
        found = json.loads(self.said("check", *wide, "--format", "json"))["findings"]
        self.assertEqual([list(row.items()) for row in found], [[("severity", "error"), ("where", "spine1")]])
        changes = json.loads(self.said("diff", "--columns", "what", "--format", "json", status=0))["changes"]
        self.assertIn({"what": "spine1"}, changes)
        self.assertEqual(self.said("ack", "spine1", "--columns", "where,acked", "--no-header", status=0).split(),
                         ["spine1", "yes"])
        self.assertEqual(self.said("ack", "spine1", "--columns", "where,acked_by", "--format", "csv", status=0),
                         f"where,acked_by\nspine1,{os.getuid()}\n")

    def test_times(self):
        """A time that is too long is refused with the bound, however long it is; the help has the command's own words."""
        self.start()
        for days in (3661, 100000, 10**30):
            refused = self.site.ctl("ack", "spine1", "--for", f"{days}d")
            self.assertEqual(refused.returncode, 1)
            self.assertEqual(refused.stderr, "fabricctl: ack: give a time from 1 second to 3660 days\n")
            refused = self.site.ctl("expect", "spine1", "--replace", "--for", f"{days}d")
            self.assertEqual(refused.returncode, 1)
            self.assertRegex(refused.stderr, r"give a time from 1 second to 30 days\n$")
            self.assertEqual(self.said("history", "--since", f"{days}d", status=0), self.said("history", "--all", status=0))
        for text in ("", "d", "0", "3w", "3dd", "-3d"):
            self.assertIn("not a time", self.said("ack", "spine1", f"--for={text}", status=2))
        self.assertEqual(self.said("history", "--since", "3w", status=2).count("\n"), 1)
        of_ack, of_expect = self.said("ack", "--help", status=0), self.said("expect", "--help", status=0)
        self.assertIn("acknowledge a finding", of_ack)
        self.assertNotIn("expect", of_ack.partition("Options of all commands")[0])
        self.assertIn("4h (the default)", of_expect)
        self.assertNotIn("acknowledge", of_expect)

    def test_a_thousand_acknowledgements(self):
        self.start(changes={"flap_count": 0})
        self.site.pull("spine1")
        self.site.refresh()
        for i in range(1000):
            self.assertTrue(self.site.control("ack", finding="spine1", cancel=i % 2 == 1)["ok"])
        self.assertTrue(self.site.control("ack", finding="spine1", seconds=2)["ok"])
        self.assertEqual(self.check()[0], 0)
        with sqlite3.connect(self.site.store) as store:
            self.assertEqual(store.execute("SELECT count(*) FROM finding WHERE acked != 0").fetchone(), (1,))
        self.site.advance(1)
        self.assertEqual(self.check()[0], 0)
        self.site.advance(1.1)
        self.assertEqual(self.check()[0], 1)
        self.assertEqual(len(self.told("acknowledgement has ended")), 1)


class Many(Case):
    FABRIC, LOST = "fattree2:101,2,100", 10000  # all hosts but those of one leaf

    def setUp(self):
        pass  # a text is the fabric

    def acked(self):
        found = self.site.control("check")["findings"]
        return {f["id"] for f in found if f["acked"] is not None}, {f["id"] for f in found}

    def test_ten_thousand_findings_acknowledged(self):
        """At once by their kind, and one by one; none of it is lost by a restart."""
        whole = sim.fabric(self.FABRIC, "capture")
        self.site = sim.Recorded(whole, {"changes": {"flap_count": 0}})
        self.addCleanup(self.site.free)
        self.site.show(fabric_text.without(whole, *(f"node{i + 1:04d}" for i in range(self.LOST))))
        self.site.refresh()
        acked, found = self.acked()
        self.assertEqual((len(acked), len(found)), (0, self.LOST))
        one_by_one = sorted(found)[:50]
        for identity in one_by_one:
            self.assertTrue(self.site.control("ack", finding=identity)["ok"])
        self.assertEqual(self.acked()[0], set(one_by_one))
        answer = self.site.control("ack", finding="missing")
        self.assertEqual({f["id"] for f in answer["findings"]}, found)
        self.assertEqual(self.check()[0], 0)
        self.assertEqual(self.metric("missing", "fabricd_acknowledged_findings"), self.LOST)
        self.site.kill9()
        self.site.start()
        self.assertEqual(self.acked(), (found, found))
        with sqlite3.connect(self.site.store) as store:
            self.assertEqual(store.execute("SELECT count(*) FROM finding WHERE acked != 0").fetchone(), (self.LOST,))
        self.assertTrue(self.site.control("ack", finding=one_by_one[0], cancel=True)["ok"])
        self.assertEqual(self.acked()[0], found - {one_by_one[0]})
        self.assertEqual(self.check()[0], 1)


class Files(unittest.TestCase):
    def test_name_map_and_capture(self):
        """A capture is as old as its file; times of files are those of the machine, so the site's clock is set to them."""
        names = os.path.join(lab.tmpdir(), "names")
        lab.replace_file(names, "")
        site = sim.Recorded(sim.fabric("fattree2:2,1,1", "capture"), {"names": {"map": names}, "check": {"capture_seconds": 3600}})
        self.addCleanup(site.free)

        def kinds(age):
            os.utime(site.path, (site.now() - age,) * 2)
            site.refresh()
            return [(f["kind"], f["where"]) for f in site.control("check")["findings"]]

        self.assertEqual(kinds(3500), [])
        lab.replace_file(names, "0x1 a b c\n")
        self.assertEqual(kinds(3700), [("name-map", "[names]"), ("old-capture", site.path)])
        lab.replace_file(names, "")
        self.assertEqual(kinds(0), [])


if __name__ == "__main__":
    unittest.main()
