"""What hangs on a cause is folded into it: in check, in the counts of status, and for a monitor."""
import json
import re
import unittest

import sim
from sim import fabric_text
from site_case import Case as Site


class Case(Site):
    fabric = "fattree2:4,2,6"

    def status_line(self):
        found = re.search(r"(?m)^findings +(.*)$", self.site.ctl("status").stdout)
        return found and found.group(1)

    def monitor(self, *args):
        done = self.site.ctl("status", "--check", *args)
        return done.returncode, done.stdout

    def shown(self, *args):
        """The places in the text, and all of it."""
        text = self.site.ctl("check", "--no-header", "--columns", "where", *args).stdout
        return text.split("\n")[:-1]

    def folded(self):
        """What hangs on what."""
        where = {finding["id"]: finding["where"] for finding in self.findings()}
        return {finding["where"]: where[finding["cause"]] for finding in self.findings() if finding["cause"]}


class Leaf(Case):
    def test_a_dead_leaf_is_one_error(self):
        self.start(retain_seconds=100, flap_count=0)
        self.assertEqual((self.status_line(), self.monitor()[0]), ("none", 0))
        self.site.pull("leaf3")
        self.site.refresh()
        for kind in ("missing", "lost"):
            leaf, = [f for f in self.findings(kind) if f["cause"] is None]
            self.assertEqual((leaf["where"], leaf["hosts_behind"], leaf["switches_behind"]), ("leaf3", 6, 0))
            self.assertTrue(leaf["what"].endswith("; and 6 hosts behind it"), leaf["what"])
            self.assertEqual(len(self.findings(kind)), 7)
            self.assertEqual(self.status_line(), "1 error")
            self.assertEqual([place.strip() for place in self.shown()], ["leaf3"])
            self.assertEqual(len(self.shown("--all")), 7)
            self.assertIn("6 more follow from these: fabricctl check --all", self.site.ctl("check").stdout)
            self.assertIn("findings      1 error; " + kind + " leaf3: ", self.site.ctl("top").stdout)
            status, line = self.monitor()
            self.assertEqual(status, 2)
            self.assertRegex(line, rf"^CRITICAL - findings: 1 error; {kind} leaf3: [^\n]+ \| errors=1 warnings=0\n$")
            self.site.advance(120)
        summary = self.site.ctl_json("status")["findings"]
        self.assertEqual([summary[key] for key in ("errors", "warnings", "notices", "acknowledged", "folded")], [1, 0, 0, 0, 6])
        self.assertEqual(summary["worst"]["where"], "leaf3")
        self.assertEqual(len(re.findall(r"warning: finding ", self.site.log())), 2, "the leaf, missing and lost")

    def test_the_cause_is_acknowledged(self):
        """Then so is what hangs on it, as long as it does."""
        self.start(flap_count=0)
        lost = self.site.cable("leaf3", "node0014")
        self.site.pull("leaf3")
        self.site.refresh()
        self.assertEqual(self.site.ctl("ack", "leaf3").returncode, 0)
        self.assertEqual(self.site.ctl("check").returncode, 0)
        self.assertEqual((self.status_line(), self.monitor()[0]), ("none; 1 acknowledged", 0))
        self.assertIn('fabricd_findings{kind="missing",severity="error"} 0', self.site.ctl("metrics").stdout)
        self.site.plug("leaf3")
        self.site.pull("leaf3", lost)
        self.site.refresh()
        self.assertEqual((self.shown(), self.status_line()), (["node0014 HCA-1"], "1 error"))
        self.assertRegex(self.site.log(), r"warning: finding \w+: changed: error missing: node0014 HCA-1: ")
        self.assertEqual(self.site.ctl("check").returncode, 1)

    def test_what_is_not_behind_it_stands_for_itself(self):
        self.start(flap_count=0)
        self.pull("leaf1", "node0002")
        self.site.pull("leaf2")
        self.site.refresh()
        self.assertEqual(set(self.folded().values()), {"leaf2"})
        self.assertEqual([place.strip() for place in self.shown()], ["leaf2", "node0002 HCA-1"])
        self.assertEqual(self.status_line(), "2 errors")

    def test_a_leaf_behind_dead_spines(self):
        """All but the leaf that sweeps come from are behind them."""
        self.start(flap_count=0, retain_seconds=5)
        for spine in ("spine1", "spine2"):
            self.site.pull(spine)
        self.site.sweeps(sim.GOOD)
        self.site.refresh(accept_partial=True)
        for _ in range(2):
            self.assertLessEqual({place.strip() for place in self.shown()}, {"spine1", "spine2"} | {f"leaf{n}" for n in range(1, 5)})
            self.assertFalse(any(place.startswith("node") for place in self.shown()))
            self.site.advance(10)

    def test_a_flapping_leaf_and_a_flapping_cable(self):
        self.start(flap_count=3)
        for _ in range(3):
            self.site.pull("leaf2")
            self.site.refresh()
            self.plug("leaf2")
        flapping, = self.findings("flapping")
        self.assertEqual((flapping["hosts_behind"], flapping["switches_behind"]), (6, 0))
        self.assertEqual(self.status_line(), "1 error")
        port = self.site.cable("leaf1", "node0001")
        for _ in range(3):
            self.site.pull("leaf1", port)
            self.site.refresh()
            self.plug("leaf1", port)
        self.assertEqual(self.status_line(), "2 errors")
        self.assertIn("node0001 HCA-1", self.folded())

    def test_behind_ports_that_are_switched_off(self):
        self.start(flap_count=0)
        for spine in ("spine1", "spine2"):
            self.site.enable(spine, self.site.cable(spine, "leaf4"), False)
        self.site.refresh()
        self.assertEqual(set(self.folded()), {"leaf4"} | {f"node{n:04} HCA-1" for n in range(19, 25)})
        self.assertEqual({f["kind"] for f in self.findings() if f["cause"] is None}, {"port-disabled"})
        self.assertEqual(self.monitor()[0], 1)
        # Without the warnings, which are their causes, the errors stand for themselves.
        self.assertIn("leaf4", [place.strip() for place in self.shown("--severity", "error")])
        self.assertEqual(self.site.ctl("check", "--severity", "error").returncode, 1)


class Monitor(Case):
    def test_without_a_daemon(self):
        self.start()
        self.site.stop()
        status, line = self.monitor()
        self.assertEqual(status, 2)
        self.assertRegex(line, r"^CRITICAL - no fabricd answers")
        self.assertEqual(self.site.ctl("status").returncode, 0)
        self.assertEqual(self.site.ctl("status", "--check", "--format", "json").returncode, 2)
        self.assertEqual(self.site.ctl("status", "--check", "--uri", "x;tcp4://127.0.0.1:1").returncode, 2)

    def test_warnings_and_errors(self):
        self.start(flap_count=0)
        self.pull("leaf1", "spine1")
        status, line = self.monitor()
        self.assertEqual(status, 1)
        self.assertRegex(line, r"^WARNING - findings: 1 warning; link-lost leaf1")
        self.assertEqual(json.loads(self.monitor("--format", "json")[1])["findings"]["warnings"], 1)
        self.site.sweeps(sim.FAIL)
        self.assertFalse(self.site.control("refresh")["ok"])
        status, line = self.monitor()
        self.assertEqual(status, 2)
        self.assertRegex(line, r"^CRITICAL - findings: 1 error, 1 warning; stale sweep: ")

    def test_a_node(self):
        self.start()
        node = sim.Node(self.site, "node0003")
        self.site.advance(20)
        done = node.ctl("status", "--check")
        self.assertEqual((done.returncode, done.stdout.split(" ")[0]), (0, "OK"), done.stdout)
        node.cut()
        self.site.advance(700)
        done = node.ctl("status", "--check")
        self.assertEqual((done.returncode, done.stdout.split(" ")[0]), (1, "WARNING"), done.stdout)


def cards(host):
    return [f"{host} HCA-{n}" for n in range(1, 5)]


class Rails(Case):
    """Hosts of four HCAs, each on a leaf of its own."""

    def start(self, capture=None, **changes):
        self.whole = sim.fabric("rails:2,4,6,2", "capture")
        self.site = sim.Recorded(self.whole, {"changes": changes})
        self.addCleanup(self.site.free)

    def without(self, *names):
        self.site.show(fabric_text.without(self.whole, *names))
        self.site.refresh()

    def test_a_dead_host_is_one_error(self):
        self.start(retain_seconds=100)
        self.without(*cards("node0003"))
        for _ in range(2):
            self.assertEqual(set(self.folded().values()), {"node0003 HCA-1"})
            self.assertEqual(self.status_line(), "1 error")
            first, = [f for f in self.findings() if f["cause"] is None]
            self.assertTrue(first["what"].endswith("; and 3 other HCAs of its host"), first["what"])
            self.site.advance(120)

    def test_a_dead_rail_leaf(self):
        """Its hosts have other rails."""
        self.start()
        self.without("leaf1-2")
        first, = [f for f in self.findings() if f["cause"] is None]
        self.assertEqual((first["where"], first["hosts_behind"]), ("leaf1-2", 0))
        self.assertTrue(first["what"].endswith("; and 6 HCAs behind it"), first["what"])

    def test_two_leaves_and_a_host(self):
        self.start()
        self.without("leaf1-2", "leaf1-3", *cards("node0001"))
        self.assertEqual(self.status_line(), "3 errors")
        self.assertEqual(sorted(set(self.folded().values())), ["leaf1-2", "leaf1-3", "node0001 HCA-1"])


if __name__ == "__main__":
    unittest.main()
