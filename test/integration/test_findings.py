"""What looks wrong: the life of a finding, and that each kind is documented."""
import json
import os
import re
import sqlite3
import time
import unittest

import fabric_text
import lab


def document(name):
    with open(os.path.join(lab.ROOT, name), encoding="utf-8") as file:
        return file.read()


def kinds():
    """{name: severity}, as the table in check_kinds.c has them."""
    found = re.findall(r'\{\s*"([a-z-]+)",\s*FAB_SEVERITY_([A-Z]+)', document("libpmixfab/topo/check/check_kinds.c"))
    return {name: severity.lower() for name, severity in found}


SPINES = ("spine1", "spine2", "spine3", "spine4")


class Case(unittest.TestCase):
    def setUp(self):
        self.sim = lab.Ibsim(lab.fabric("fattree2:4,4,2"))
        self.sim.sweep()

    def start(self, **sections):
        self.daemon = lab.Fabricd(self.sim, sections)
        return self.daemon

    def check(self, *args):
        """Status and findings."""
        done = self.daemon.ctl("check", *args, "--format", "json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, json.loads(done.stdout)["findings"]

    def where(self, *kinds):
        return {f["where"]: f for f in self.check()[1] if f["kind"] in kinds}

    def sweep(self):
        self.sim.sweep()
        return self.daemon.refresh()

    def told(self, *words):
        """The log's lines about findings with all of these words."""
        return [line for line in self.daemon.log().splitlines()
                if re.search(r"finding [0-9a-f]{8}: ", line) and all(word in line for word in words)]

    def metric(self, kind, name="fabricd_findings"):
        found = re.search(rf'^{name}{{kind="{kind}",severity="\w+"}} (\d+)$', self.daemon.ctl("metrics").stdout, re.M)
        return int(found.group(1))


class Spines(Case):
    def test_three_of_four_die(self):
        """Nobody forgets them: not the time, not a restart, only the operator."""
        self.start(changes={"retain_seconds": 1, "flap_count": 0})
        self.assertEqual(self.check(), (0, []))
        for spine in SPINES[:3]:
            self.sim.unlink(spine)
        self.sweep()
        status, found = self.check()
        lost = self.where("lost")
        self.assertEqual((status, set(lost)), (1, set(SPINES[:3])))
        self.assertEqual({f["severity"] for f in lost.values()}, {"error"})
        for finding in lost.values():
            self.assertAlmostEqual(finding["bisection_gone"], 0.25)
            self.assertIn("25 % of its plane's bisection is gone with it, 75 % in all", finding["what"])
        lab.wait_for(lambda: len(self.told("error lost")) == 3, what="the log")
        shown = self.daemon.ctl("show", "spine1")  # what is not served any more is known still
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"(?s)^spine1 is not in the fabric now; .*\n\nlatest changes:\n.*switch-lost +spine1 ")
        self.assertEqual(self.daemon.ctl("show", "spine").returncode, 1)  # a part of a name is none
        ids = {where: f["id"] for where, f in lost.items()}
        since = {where: f["since"] for where, f in lost.items()}
        self.daemon.kill9()
        self.daemon.start()
        self.daemon.refresh()
        lost = self.where("lost")
        self.assertEqual({where: f["id"] for where, f in lost.items()}, ids)
        self.assertEqual({where: f["since"] for where, f in lost.items()}, since)
        lab.wait_for(lambda: self.metric("lost") == 3, what="the metric")
        # All is known: by id (a part of it), by name, by kind.
        self.assertEqual(self.daemon.ctl("ack", ids["spine1"][:8], "--for", "30d").returncode, 0)
        self.assertEqual(self.check()[0], 1)
        self.assertEqual(self.daemon.ctl("ack", "lost").returncode, 0)
        self.assertIn(f"3 findings acknowledged by uid {os.getuid()}: lost\n", self.daemon.log())
        status, found = self.check()
        self.assertEqual([f for f in found if f["severity"] != "notice" and f["acked"] is None], [])
        self.assertEqual(status, 0)
        self.assertEqual(self.metric("lost"), 0)
        self.assertEqual(self.metric("lost", "fabricd_acknowledged_findings"), 3)
        self.assertEqual(self.daemon.ctl("ack", "spine2", "--cancel").returncode, 0)
        self.assertEqual(self.check()[0], 1)
        self.daemon.kill9()
        self.daemon.start()
        self.daemon.refresh()
        self.assertEqual({where for where, f in self.where("lost").items() if f["acked"] is None}, {"spine2"})
        # One is given up, two are back.
        self.assertEqual(self.daemon.ctl("forget", "spine2").returncode, 0)
        self.assertEqual(set(self.where("lost")), {"spine1", "spine3"})
        for spine in ("spine1", "spine3"):
            self.sim.relink(spine)
        self.sweep()
        self.assertEqual(self.check(), (0, []))
        lab.wait_for(lambda: len(self.told("gone: error lost")) == 3, what="the log")
        self.sim.relink("spine2") # it was forgotten as a finding, not as what it was
        self.sweep()
        self.assertIn(("switch-back", "spine2"),
                      [(c["kind"], c["what"]) for c in self.daemon.ctl_json("diff")["changes"]])

    def test_a_cable_between_switches(self):
        self.start(changes={"flap_count": 0})
        port = self.sim.cable("leaf1", "spine1")
        self.sim.unlink("leaf1", port)
        self.sweep()
        (where, finding), = self.where("link-lost").items()
        self.assertIn(f"leaf1[{port}]", where)
        self.assertEqual(finding["severity"], "warning")
        self.assertAlmostEqual(finding["bisection_gone"], 1 / 16, delta=0.001)
        self.assertEqual(self.check("--severity", "error"), (0, []))
        self.assertRegex(self.daemon.ctl("check", "--severity", "error").stdout, r"^generation \d+: nothing is an error$")
        shown = self.daemon.ctl("show", f"leaf1[{port}]").stdout
        self.assertRegex(shown, r"(?s)^cables:\n\nlatest changes:\n.*link-lost +leaf1\[")
        self.assertEqual(self.daemon.ctl("forget", finding["id"][:8]).returncode, 0)
        self.assertEqual(self.where("link-lost"), {})
        self.sim.relink("leaf1", port)
        self.sweep()
        self.assertEqual(self.check(), (0, []))

    def test_fewer_uplinks_than_what_is_lost(self):
        """A lost cable is one finding; its switch is told where it has fewer cables beside that."""
        out = [self.sim.cable("leaf1", spine) for spine in ("spine2", "spine1")]
        self.sim.unlink("leaf1", out[0])
        self.sim.sweep()
        self.start(changes={"flap_count": 0})
        less = self.where("few-uplinks")["leaf1"]
        self.assertEqual(less["what"], "3 cables up, 3 of 4 such switches have 4; none to spine2")
        self.sim.unlink("leaf1", out[1])
        self.sim.unlink("leaf2", self.sim.cable("leaf2", "spine1"))
        self.sweep()
        self.assertEqual(sorted(f["kind"] for f in self.check()[1]), ["few-uplinks", "link-lost", "link-lost"])
        more = self.where("few-uplinks")["leaf1"]
        self.assertEqual(more["what"], "counting 1 that is lost or switched off: " + less["what"])
        self.assertEqual([more["id"], more["since"]], [less["id"], less["since"]])
        for port in out:
            self.sim.relink("leaf1", port)
        self.sweep()
        lost, = self.check()[1]
        self.assertEqual(lost["kind"], "link-lost")
        self.assertEqual(self.daemon.ctl("forget", lost["id"][:8]).returncode, 0)  # nobody waits for it
        left, = self.check()[1]
        self.assertEqual((left["kind"], left["where"]), ("few-uplinks", "leaf2"))


class SelfCable(unittest.TestCase):
    def test_a_switch_with_a_cable_to_itself(self):
        """By a sweep of everything, by one of a switch, and by the light sweeps, which have nothing to do."""
        self.sim = lab.Ibsim(lab.fabric("fattree2:2,2,2").replace('Switch 4 "leaf1"', 'Switch 8 "leaf1"'))
        self.sim.sweep()
        self.daemon = lab.Fabricd(self.sim, {"changes": {"light_sweep": 1, "debounce": 0}})
        self.sim.link("leaf1", 7, "leaf1", 8)
        self.sim.sweep()

        def found():
            return [(f["severity"], f["where"], f["what"]) for f in self.daemon.control("check")["findings"]
                    if f["kind"] == "self-cable"]

        lab.wait_for(found, what="the cable")
        self.assertEqual(found(), [("warning", "leaf1", "2 ports are cabled to the same node: 7, 8")])
        self.daemon.refresh()
        self.assertEqual(len(found()), 1)
        self.daemon.refresh(switch="leaf1")
        self.assertEqual(len(found()), 1)
        # A sweep of a simulated subnet may time out on a busy machine: then it is an error, and no answer.
        lab.wait_for(lambda: self.daemon.control("verify").get("changes") == [], 30, "a sweep that equals what is served")
        dirty, looks = self.daemon.status()["light_sweeps_dirty"], self.daemon.status()["light_sweeps"]
        lab.wait_for(lambda: self.daemon.status()["light_sweeps"] > looks + 3, 30, "light sweeps")
        self.assertLessEqual(self.daemon.status()["light_sweeps_dirty"], dirty + 1)
        self.sim.unlink("leaf1", 7)
        self.daemon.refresh()
        self.assertEqual(found(), [])


class Hosts(Case):
    def test_missing_becomes_lost(self):
        """One finding, and what the operator said of it stays."""
        self.start(changes={"retain_seconds": 4, "flap_count": 0})
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "node0001"))
        self.daemon.refresh()
        (_, missing), = self.where("missing").items()
        self.assertEqual(self.daemon.ctl("ack", "node0001").returncode, 0)
        lab.wait_for(lambda: self.where("lost"), 30, "it to be lost")
        (_, lost), = self.where("lost").items()
        self.assertEqual([lost[key] for key in ("id", "since", "count", "where")],
                         [missing[key] for key in ("id", "since", "count", "where")])
        self.assertIsNotNone(lost["acked"])
        self.assertIsNone(lost["bisection_gone"])
        self.assertEqual(self.daemon.ctl("forget", "node0001").returncode, 0)
        self.assertEqual(self.where("lost", "missing"), {})

    def test_forgotten_while_it_is_missing(self):
        self.start(changes={"flap_count": 0})
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "node0001"))
        self.daemon.refresh()
        self.assertEqual(set(self.where("missing")), {"node0001 HCA-1"})
        self.assertEqual(self.daemon.ctl("forget", "node0001").returncode, 0)
        lab.wait_for(lambda: not self.where("missing", "lost"), what="it to be forgotten")
        self.daemon.kill9()
        self.daemon.start()
        self.daemon.refresh()
        self.assertEqual(self.where("missing", "lost"), {})

    def test_comes_and_goes(self):
        """It is one finding, with a count, and told once."""
        self.start(changes={"flap_count": 0})
        port = self.sim.cable("leaf1", "node0001")
        for _ in range(4):
            self.sim.unlink("leaf1", port)
            self.daemon.refresh()
            last = self.where("missing")["node0001 HCA-1"]
            self.sim.relink("leaf1", port)
            self.sweep()
            self.assertEqual(self.where("missing"), {})
        self.assertEqual(last["count"], 4)
        told = [re.search(r"finding \w+: (.*?):? ?error missing", line).group(1) for line in self.told("error missing")]
        self.assertEqual([line.split(",")[0] for line in told], ["", "gone", "came again"])

    def test_the_hook_hears_of_it(self):
        """With the generation, and also where there is none."""
        folder = lab.tmpdir()
        hook = os.path.join(folder, "hook")
        with open(hook, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{{ cat; echo; }} >> {folder}/told\n")
        os.chmod(hook, 0o755)

        def told():
            if not os.path.exists(f"{folder}/told"):
                return []
            with open(f"{folder}/told", encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("}\n")]

        self.start(changes={"hook": hook, "flap_count": 0}, fabricd={"deadline": 3})
        self.sim.unlink("leaf1", self.sim.cable("leaf1", "node0001"))
        self.daemon.refresh()
        events = lab.wait_for(lambda: [f for t in told() for f in t["findings"]], what="the hook")
        self.assertEqual([(f["event"], f["kind"], f["where"]) for f in events], [("came", "missing", "node0001 HCA-1")])
        self.assertEqual([t["to"] - t["from"] for t in told()], [1, 1])
        self.sim.kill() # no sweep is good now
        self.daemon.try_control("refresh")
        lab.wait_for(lambda: any(f["kind"] == "stale" for t in told() for f in t["findings"]), 30, "the hook")
        last = told()[-1]
        self.assertEqual((last["from"], last["to"], last["changes"], last["planes"]), (2, 2, [], []))


class Asked(Case):
    def test_what_is_not_found(self):
        self.start()
        for which in ("spine1", "0123456789abcdef", "lost", "no such thing", "x" * 5000, "a\nb"):
            done = self.daemon.ctl("ack", which)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"^fabricctl: ack: no finding [^\n]*\n$")
        for request in ({}, {"finding": 7}, {"finding": ""}, {"finding": "x", "seconds": "y"},
                        {"finding": "x", "seconds": -1}, {"finding": "x", "seconds": 1 << 60}):
            self.assertFalse(self.daemon.control("ack", **request)["ok"], request)
        self.assertEqual(self.daemon.ctl("check", "--severity", "loud").returncode, 2)

    def said(self, *args, status=1):
        done = self.daemon.ctl(*args)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status != 2 else done.stderr

    def test_columns(self):
        self.start(changes={"flap_count": 0})
        self.assertEqual(self.said("check", "--no-header", status=0), "")
        self.assertIn("no such column: colour: there are id, severity", self.said("check", "--columns", "colour", status=2))
        self.sim.unlink("spine1")
        self.sweep()
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
            refused = self.daemon.ctl("ack", "spine1", "--for", f"{days}d")
            self.assertEqual(refused.returncode, 1)
            self.assertEqual(refused.stderr, "fabricctl: ack: give a time from 1 second to 3660 days\n")
            refused = self.daemon.ctl("expect", "spine1", "--replace", "--for", f"{days}d")
            self.assertEqual(refused.returncode, 1)
            self.assertRegex(refused.stderr, r"give a time from 1 second to 30 days\n$")
            self.assertEqual(self.said("history", "--since", f"{days}d", status=0), self.said("history", "--all", status=0))
        for text in ("", "d", "0", "3w", "3dd", "-3d"):
            self.assertIn("not a time", self.said("ack", "spine1", f"--for={text}", status=2))
        self.assertEqual(self.said("history", "--since", "3w", status=2).count("\n"), 1)
        of_ack, of_expect = self.said("ack", "--help", status=0), self.said("expect", "--help", status=0)
        self.assertIn("acknowledged", of_ack)
        self.assertNotIn("expect", of_ack.partition("Options of all commands")[0])
        self.assertIn("4h (the default)", of_expect)
        self.assertNotIn("acknowledged", of_expect)

    def test_ten_thousand_acknowledgements(self):
        self.start(changes={"flap_count": 0})
        self.sim.unlink("spine1")
        self.sweep()
        for i in range(200 if not lab.ALL else 10000):
            self.assertTrue(self.daemon.control("ack", finding="spine1", cancel=i % 2 == 1)["ok"])
        self.assertTrue(self.daemon.control("ack", finding="spine1", seconds=2)["ok"])
        self.assertEqual(self.check()[0], 0)
        with sqlite3.connect(self.daemon.store) as store:
            self.assertEqual(store.execute("SELECT count(*) FROM finding WHERE acked != 0").fetchone(), (1,))
        lab.wait_for(lambda: self.check()[0] == 1, what="the acknowledgement to be over")
        self.assertEqual(len(self.told("acknowledgement is over")), 1)


class Many(Case):
    FABRIC, LOST = "fattree2:101,2,100", 10000  # all hosts but those of one leaf

    def setUp(self):
        pass  # a file is the fabric

    def acked(self):
        found = self.daemon.control("check")["findings"]
        return {f["id"] for f in found if f["acked"] is not None}, {f["id"] for f in found}

    def test_ten_thousand_findings_acknowledged(self):
        """At once by their kind, and one by one; none of it is lost by a restart."""
        self.sim = None
        whole = lab.fabric(self.FABRIC, "capture")
        left = fabric_text.without(whole, *(f"node{i + 1:04d}" for i in range(self.LOST)))
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, whole)
        self.start(fabricd={"probe": f"file:{capture}", "interval": 0}, changes={"flap_count": 0})
        self.daemon.refresh()
        lab.replace_file(capture, left)
        self.daemon.refresh()
        acked, found = self.acked()
        self.assertEqual((len(acked), len(found)), (0, self.LOST))
        one_by_one = sorted(found)[:2000 if lab.ALL else 50]
        for identity in one_by_one:
            self.assertTrue(self.daemon.control("ack", finding=identity)["ok"])
        self.assertEqual(self.acked()[0], set(one_by_one))
        started = time.monotonic()
        answer = self.daemon.control("ack", finding="missing")
        self.assertEqual({f["id"] for f in answer["findings"]}, found)
        self.assertLess(time.monotonic() - started, 20)  # on an idle machine a tenth of a second
        self.assertEqual(self.check()[0], 0)
        self.assertEqual(self.metric("missing", "fabricd_acknowledged_findings"), self.LOST)
        self.daemon.kill9()
        self.daemon.start()
        self.assertEqual(self.acked(), (found, found))
        with sqlite3.connect(self.daemon.store) as store:
            self.assertEqual(store.execute("SELECT count(*) FROM finding WHERE acked != 0").fetchone(), (self.LOST,))
        self.assertTrue(self.daemon.control("ack", finding=one_by_one[0], cancel=True)["ok"])
        self.assertEqual(self.acked()[0], found - {one_by_one[0]})
        self.assertEqual(self.check()[0], 1)


class Files(unittest.TestCase):
    def test_name_map_and_capture(self):
        folder = lab.tmpdir()
        capture, names = os.path.join(folder, "fabric.txt"), os.path.join(folder, "names")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,1", "capture"))
        lab.replace_file(names, "")
        self.daemon = lab.Fabricd(None, {"fabricd": {"probe": f"file:{capture}", "interval": 0},
                                         "names": {"map": names}, "check": {"capture_seconds": 3600}})

        def kinds():
            return [(f["kind"], f["where"]) for f in self.daemon.control("check")["findings"]]

        self.daemon.refresh()
        self.assertEqual(kinds(), [])
        lab.replace_file(names, "0x1 a b c\n")
        os.utime(capture, (1000000000, 1000000000))
        self.daemon.refresh()
        self.assertEqual(kinds(), [("name-map", "[names]"), ("old-capture", capture)])
        lab.replace_file(names, "")
        os.utime(capture)
        self.daemon.refresh()
        self.assertEqual(kinds(), [])


class Documented(unittest.TestCase):
    def test_manual(self):
        """FINDINGS of fabricctl(1) has each kind, with its severity, and no other."""
        text = document("docs/fabricctl.1").partition(".Sh FINDINGS")[2].partition(".Sh ")[0]
        told = {name: severity for names, severity in re.findall(r"(?m)^\.It Cm (.+) No \((\w+)\)$", text)
                for name in names.split(" , ")}
        self.assertEqual(told, kinds())
        self.assertGreater(len(told), 15)

    def test_what_wakes_you(self):
        """Every error is in the page, and what is no error is not."""
        text = document("docs/operations.md").partition("## What wakes you")[2].partition("\n## ")[0]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
                if line.startswith("| `")]
        self.assertEqual({row[0].strip("`") for row in rows},
                         {name for name, severity in kinds().items() if severity == "error"})
        for row in rows:
            self.assertEqual(len(row), 3, row)
            self.assertTrue(all(row), row)


if __name__ == "__main__":
    unittest.main()
