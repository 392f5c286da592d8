"""Metrics: whoever reads Prometheus' text format can read them, and they say what happened."""
import datetime
import json
import os
import re
import stat
import unittest

import lab
import sim

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'({NAME})(?:\{{({NAME})="((?:[^"\\\n]|\\[\\n"])*)"(?:,severity="\w+")?\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)')


def parse(text):
    """A strict reading: {(name, label value or ""): number}, {name: type}."""
    assert text.endswith("\n") and "\n\n" not in text and "\r" not in text
    samples, types, helps = {}, {}, {}
    current = None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, words = line[7:].split(" ", 1)
            assert name not in helps, f"{name} is described twice"
            assert re.fullmatch(NAME, name) and words.endswith(".") and "\\" not in words, line
            helps[name] = words
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name in helps and name not in types and kind in ("counter", "gauge"), line
            assert (kind == "counter") == name.endswith("_total"), f"{name} is a {kind}"
            assert name.startswith("fabricd_") and not re.search(r"_(ms|milli\w*|kb|mib)(_|$)", name), name
            types[name] = kind
            current = name
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, _, value, number = match.groups()
            assert name == current, f"{name} does not stand below its type"
            assert (name, value or "") not in samples, f"twice: {line}"
            samples[name, value or ""] = float(number)
    assert set(types) == set(helps)
    assert {name for name, _ in samples} <= set(types)
    return samples, types


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


if __name__ == "__main__":
    unittest.main()
