"""Metrics in Prometheus' text format, by the events of a site; the alert rules and the dashboard that are installed."""
import datetime
import glob
import json
import os
import re
import stat
import unittest

import lab
import sim
from metrics_text import parse

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

SYMBOL_ERRORS = 0  # of enum probe_counter
PROMETHEUS = os.path.join(lab.ROOT, "system", "prometheus")


class Metrics(unittest.TestCase):
    def start(self, folder=None):
        self.dir = folder or lab.tmpdir()
        self.path = os.path.join(self.dir, "fabricd.prom")
        self.site = sim.Site("fattree2:4,2,4", {"metrics": {"file": self.path}})
        self.addCleanup(self.site.free)
        self.n = 0
        return self.site

    def change(self):
        self.n += 1
        self.site.rename("node0001", f"other{self.n:04} HCA-1")
        return self.site.refresh()["generation"]

    def metrics(self, daemon):
        done = daemon.ctl("metrics")
        self.assertEqual(done.returncode, 0, done.stderr)
        samples, types = parse(done.stdout)
        if text_string_to_metric_families is not None:
            families = list(text_string_to_metric_families(done.stdout))
            theirs = {(sample.name, next(iter(sample.labels.values()), "")): sample.value
                      for family in families for sample in family.samples}
            self.assertEqual(theirs, samples)
            for family in families:
                self.assertEqual(types[family.name + ("_total" if family.type == "counter" else "")], family.type)
        return samples

    def file(self):
        with open(self.path, encoding="utf-8") as file:
            return parse(file.read())[0]

    def test_the_strict_reader_is_strict(self):
        good = '# HELP fabricd_x_total Words.\n# TYPE fabricd_x_total counter\nfabricd_x_total{a="b\\"\\n"} 1\n'
        self.assertEqual(parse(good), ({("fabricd_x_total", 'b\\"\\n'): 1}, {"fabricd_x_total": "counter"}))
        for old, new in (("counter\n", "gauge\n"), ("} 1", "}  1"), ("} 1", "} one"), ("Words.", "Words"), ('"b', '"b"'),
                         ("# TYPE fabricd_x_total counter\n", ""), ("1\n", "1"), ("fabricd_x_total{", "fabricd_y_total{")):
            with self.assertRaises(AssertionError, msg=(old, new)):
                parse(good.replace(old, new))

    def test_they_say_what_happened(self):
        site = self.start()
        before = self.metrics(site)
        self.assertEqual((before["fabricd_generation", ""], before["fabricd_sweeps_total", "ok"]), (1, 1))
        begun = site.now()
        site.advance(50)
        self.assertAlmostEqual(self.metrics(site)["fabricd_uptime_seconds", ""] - before["fabricd_uptime_seconds", ""],
                               (site.now() - begun), 2)
        self.change()
        self.change()
        site.sweeps(sim.FAIL)
        with self.assertRaises(lab.LabError):
            site.refresh()
        self.assertFalse(site.control("deliver", bytes="AAAA")["ok"])
        after, status = self.metrics(site), site.status()
        changes = site.control("history", limit=0)["changes"]
        for name, value, expected in (
                ("generation", "", 3), ("sweeps_total", "ok", 3), ("sweeps_total", "failed", 1), ("stale", "", 1),
                ("publications_total", "", 3), ("plane_hosts", "ib0", 16), ("plane_devices", "ib0", 16),
                ("plane_switches", "ib0", site.ctl_json("planes")[0]["switches"]),
                ("plane_links", "ib0", len(site.ctl_json("links"))), ("deliveries_refused_total", "malformed", 1),
                ("deliveries_total", "", 0), ("reports", "", 0), ("missing_hcas", "", status["missing"]),
                ("history_changes", "", len(changes)), ("build_info", status["version"], 1),
                ("role_info", "scheduler", 1), ("backups_total", "", 0)):
            self.assertEqual(after["fabricd_" + name, value], expected, (name, value))
        kinds = {}
        for change in changes:
            kinds[change["kind"]] = kinds.get(change["kind"], 0) + 1
        self.assertEqual({value: number for (name, value), number in after.items() if name == "fabricd_changes_total" and number}, kinds)
        self.assertAlmostEqual(after["fabricd_sweep_duration_seconds", ""], status["sweep_ms"] / 1000, 6)
        self.assertGreaterEqual(after["fabricd_store_size_bytes", ""], 4096 * 20)
        self.assertGreater(after["fabricd_control_connections_total", ""], before["fabricd_control_connections_total", ""])
        self.assertAlmostEqual(after["fabricd_published_timestamp_seconds", ""], datetime.datetime.fromisoformat(status["published"]).timestamp(), 2)
        for name, value in before:
            if name.endswith("_total"):
                self.assertGreaterEqual(after[name, value], before[name, value])
        done = site.ctl("--format", "csv", "metrics")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there are text (Prometheus') and json", done.stderr)
        values = {(row["name"], *sorted(row["labels"].items())): row["value"] for row in json.loads(site.ctl("metrics", "-j").stdout)}
        self.assertEqual(values["fabricd_role_info", ("role", "scheduler")], 1)
        self.assertEqual(values["fabricd_findings", ("kind", "missing"), ("severity", "error")], 0)

    def test_the_file_is_replaced_after_each_sweep(self):
        site = self.start()
        self.assertEqual(self.file()["fabricd_generation", ""], 1)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o644)
        inode = os.stat(self.path).st_ino
        with open(self.path, encoding="utf-8") as old:
            self.change()
            self.assertEqual(self.file()["fabricd_generation", ""], 2)
            self.assertNotEqual(os.stat(self.path).st_ino, inode)
            self.assertEqual(parse(old.read())[0]["fabricd_generation", ""], 1)  # who reads it reads one whole
        site.refresh()
        self.assertEqual(self.file()["fabricd_sweeps_total", "ok"], 3)
        self.assertFalse(site.control("deliver", bytes="AAAA")["ok"])
        site.advance(16)  # what is counted between sweeps comes in time
        self.assertEqual(self.file()["fabricd_deliveries_refused_total", "malformed"], 1)
        self.assertEqual([name for name in os.listdir(self.dir) if "prom" in name], ["fabricd.prom"])

    def test_a_file_that_cannot_be_written_is_a_line(self):
        folder = os.path.join(lab.tmpdir(), "nowhere")
        os.mkdir(folder)
        site = self.start(folder)
        os.unlink(self.path)
        os.rmdir(self.dir)
        said = len(site.errors())
        self.change()
        self.assertRegex("\n".join(site.errors()[said:]), "^metrics: .* cannot be written: No such file[^\n]*$")
        os.mkdir(self.dir)
        self.change()
        self.assertEqual(self.file()["fabricd_generation", ""], 3)

    def test_a_node(self):
        site = self.start()
        path = os.path.join(self.dir, "node.prom")
        node = sim.Node(site, "node0001", {"metrics": {"file": path}})
        site.advance(5)
        samples = self.metrics(node)
        self.assertEqual((samples["fabricd_connected", ""], samples["fabricd_generation", ""]), (1, 1))
        self.assertEqual((samples["fabricd_role_info", "node"], samples["fabricd_stale", ""]), (1, 0))
        with open(path, encoding="utf-8") as file:
            parse(file.read())


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
