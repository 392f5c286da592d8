"""Metrics by what happens at a site; the alert rules and the dashboard that are installed, by what fabricd tells."""
import glob
import json
import os
import re
import unittest

import lab
import sim

SYMBOL_ERRORS = 0  # of enum probe_counter
PROMETHEUS = os.path.join(lab.ROOT, "system", "prometheus")


def metrics(site):
    """{(name, label's value): number}."""
    done = site.ctl("metrics")
    assert done.returncode == 0, done.stderr
    return {(name, label): float(number) for name, label, number in
            re.findall(r'(?m)^(\w+)(?:\{\w+="([^"]*)".*\})? (\S+)$', done.stdout)}


class Told(unittest.TestCase):
    def site(self, spec, **sections):
        site = sim.Site(spec, sections)
        self.addCleanup(site.free)
        site.refresh()
        return site

    def test_what_is_left_of_the_bisection(self):
        site = self.site("fattree2:4,4,2", changes={"retain_seconds": 0})
        self.assertEqual(metrics(site)["fabricd_bisection_left_ratio", ""], 1)
        for n, left in ((1, 0.75), (2, 0.5)):
            site.lose(f"spine{n}")
            site.refresh()
            site.advance(2)
            self.assertAlmostEqual(metrics(site)["fabricd_bisection_left_ratio", ""], left)
        site.ctl("forget", "spine1")
        site.refresh()
        site.advance(2)
        self.assertAlmostEqual(metrics(site)["fabricd_bisection_left_ratio", ""], 2 / 3)

    def test_devices_that_are_down(self):
        site = self.site("fattree2:2,2,3")
        self.assertEqual(metrics(site)["fabricd_plane_devices_down", "ib0"], 0)
        site.pull("leaf1", site.cable("leaf1", "node0002"))
        site.refresh()
        self.assertEqual(metrics(site)["fabricd_plane_devices_down", "ib0"], 1)

    def test_errors_of_ports(self):
        site = self.site("fattree2:2,2,3")
        port = site.cable("leaf1", "spine1")
        site.pull("leaf1", port)
        site.refresh()
        site.plug("leaf1", port)
        site.refresh()
        site.advance(1)
        before = metrics(site)
        self.assertEqual(sum(number for (name, _), number in before.items() if name == "fabricd_port_errors_total"), 0)
        site.count("leaf1", port, SYMBOL_ERRORS, 7)
        site.advance(61)
        site.count("leaf1", port, SYMBOL_ERRORS, 9)
        site.advance(61)
        after = metrics(site)
        self.assertEqual({label: number for (name, label), number in after.items()
                          if name == "fabricd_port_errors_total" and number}, {"symbol_errors": 9})

    def test_a_file_that_cannot_be_written_is_a_finding(self):
        folder = lab.tmpdir()
        path = os.path.join(folder, "there", "fabricd.prom")
        os.mkdir(os.path.dirname(path))
        site = self.site("fattree2:2,1,1", metrics={"file": path})

        def found():
            site.refresh()
            return [(f["kind"], f["severity"], f["where"], f["what"]) for f in site.control("check")["findings"]]
        self.assertEqual(found(), [])
        os.rename(os.path.dirname(path), folder + "/away")
        self.assertEqual(found(), [("metrics-failed", "warning", path, "cannot be written: No such file or directory")])
        self.assertEqual(metrics(site)["fabricd_findings", "metrics-failed"], 1)
        os.rename(folder + "/away", os.path.dirname(path))
        self.assertEqual(found(), [])


class Installed(unittest.TestCase):
    def test_names_are_those_of_fabricd(self):
        site = sim.Site("fattree2:2,1,1", {})
        self.addCleanup(site.free)
        site.refresh()
        known = set(re.findall(r"(?m)^# TYPE (\w+) ", site.ctl("metrics").stdout))
        for path in glob.glob(f"{PROMETHEUS}/*"):
            with open(path, encoding="utf-8") as file:
                used = set(re.findall(r"fabricd_\w+", file.read()))
            self.assertGreater(len(used), 10)
            self.assertEqual(used - known, set(), path)

    def test_dashboard(self):
        with open(f"{PROMETHEUS}/fabricd-dashboard.json", encoding="utf-8") as file:
            board = json.load(file)
        numbers = [panel["id"] for panel in board["panels"]]
        self.assertEqual(len(numbers), len(set(numbers)))
        places = {(x, y) for at in (panel["gridPos"] for panel in board["panels"])
                  for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        self.assertEqual(len(places), sum(at["w"] * at["h"] for at in (panel["gridPos"] for panel in board["panels"])))
        self.assertLess(max(x for x, _ in places), 24)

    def test_rules(self):
        """Each is one for some row of the manual's table, and fires when it should."""
        lab.require("promtool")
        test = os.path.join(lab.ROOT, "test", "data", "alerts_test.yml")
        done = lab.run(["promtool", "test", "rules", test])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
