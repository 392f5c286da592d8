"""Metrics: whoever reads Prometheus' text format can read them, and they say what happened."""
import contextlib
import datetime
import http.client
import os
import re
import socket
import stat
import time
import unittest

import lab
import news

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None
try:
    from prometheus_client.openmetrics import parser as openmetrics
except ImportError:
    openmetrics = None

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
    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "capture")
        self.text = lab.fabric("fattree2:4,2,4", "capture")
        self.path = os.path.join(self.dir, "fabricd.prom")
        self.n = 0

    def daemon(self, **more):
        lab.replace_file(self.capture, self.text)
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}, "metrics": {"file": self.path}, **more})
        self.addCleanup(daemon.stop)
        return daemon

    def change(self, daemon):
        self.n += 1
        lab.replace_file(self.capture, self.text.replace('"node0001', f'"other{self.n:04}'))
        return daemon.refresh()["generation"]

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

    @staticmethod
    def age(daemon):
        """Seconds since the kernel began the process, to a hundredth."""
        with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as file:
            ticks = int(file.read().rsplit(") ", 1)[1].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")

    def test_they_say_what_happened(self):
        daemon = self.daemon()
        begun = self.age(daemon)
        before = self.metrics(daemon)
        self.assertEqual(before["fabricd_generation", ""], 1)
        self.assertTrue(0 < before["fabricd_uptime_seconds", ""] < self.age(daemon) + 0.02, (begun, before))
        self.assertEqual(before["fabricd_sweeps_total", "ok"], 1)
        self.change(daemon)
        self.change(daemon)
        lab.replace_file(self.capture, "this is no subnet\n")
        with self.assertRaises(lab.LabError):
            daemon.refresh()
        self.assertFalse(daemon.control("deliver", bytes="AAAA")["ok"])
        after = self.metrics(daemon)
        status = daemon.status()
        for name, value, expected in (
                ("generation", "", 3), ("sweeps_total", "ok", 3), ("sweeps_total", "failed", 1), ("stale", "", 1),
                ("publications_total", "", 3), ("plane_hosts", "ib0", 16), ("plane_devices", "ib0", 16),
                ("plane_switches", "ib0", daemon.ctl_json("planes")[0]["switches"]),
                ("plane_links", "ib0", len(daemon.ctl_json("links"))), ("deliveries_refused_total", "malformed", 1),
                ("deliveries_total", "", 0), ("reports", "", 0), ("missing_hcas", "", status["missing"]),
                ("history_changes", "", len(daemon.control("history", limit=0)["changes"])), ("build_info", lab.run([lab.program("fabricd"), "--version"]).stdout.split()[1], 1),
                ("role_info", "scheduler", 1), ("backups_total", "", 0)):
            self.assertEqual(after["fabricd_" + name, value], expected, (name, value))
        kinds = {}
        for change in daemon.control("history", limit=0)["changes"]:
            kinds[change["kind"]] = kinds.get(change["kind"], 0) + 1
        self.assertEqual({value: number for (name, value), number in after.items() if name == "fabricd_changes_total" and number}, kinds)
        self.assertAlmostEqual(after["fabricd_sweep_duration_seconds", ""], status["sweep_ms"] / 1000, 6)
        self.assertGreater(after["fabricd_publish_duration_seconds", ""], 0)
        self.assertGreaterEqual(after["fabricd_store_size_bytes", ""], 4096 * 20)
        self.assertGreater(after["fabricd_control_connections_total", ""], before["fabricd_control_connections_total", ""])
        self.assertAlmostEqual(after["fabricd_published_timestamp_seconds", ""], datetime.datetime.fromisoformat(status["published"]).timestamp(), 2)
        for name, value in before:
            if name.endswith("_total"):
                self.assertGreaterEqual(after[name, value], before[name, value])

    def test_the_file_is_replaced_after_each_sweep(self):
        daemon = self.daemon()
        news.until_file(self.path, lambda: self.file().get(("fabricd_generation", "")) == 1, "the file")
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o644)
        inode = os.stat(self.path).st_ino
        with open(self.path, encoding="utf-8") as old:
            self.change(daemon)
            news.until_file(self.path, lambda: self.file()["fabricd_generation", ""] == 2, "the file of generation 2")
            self.assertNotEqual(os.stat(self.path).st_ino, inode)
            self.assertEqual(parse(old.read())[0]["fabricd_generation", ""], 1)  # who reads it reads one whole
        daemon.refresh()
        news.until_file(self.path, lambda: self.file()["fabricd_sweeps_total", "ok"] == 3, "a sweep without a change")
        self.assertEqual([name for name in os.listdir(self.dir) if "prom" in name], ["fabricd.prom"])

    def test_what_is_counted_between_sweeps_comes_in_time(self):
        daemon = self.daemon()
        news.until_file(self.path, lambda: self.file().get(("fabricd_generation", "")) == 1, "the file")
        self.assertFalse(daemon.control("deliver", bytes="AAAA")["ok"])
        news.until_file(self.path, lambda: self.file()["fabricd_deliveries_refused_total", "malformed"] == 1, "the delivery in the file")

    def test_a_file_that_cannot_be_written_is_a_line(self):
        self.path = os.path.join(self.dir, "nowhere", "fabricd.prom")
        os.mkdir(os.path.dirname(self.path))
        daemon = self.daemon()
        self.assertTrue(os.path.exists(self.path))
        os.unlink(self.path)
        os.rmdir(os.path.dirname(self.path))
        self.change(daemon)
        self.assertEqual(len(re.findall("error: metrics: .* cannot be written: No such file", daemon.log())), 1)
        os.mkdir(os.path.dirname(self.path))
        self.change(daemon)
        news.until_file(self.path, lambda: os.path.exists(self.path) and self.file()["fabricd_generation", ""] == 3, "the file")

    def test_usage(self):
        daemon = self.daemon()
        done = daemon.ctl("--format", "json", "metrics")
        self.assertEqual(done.returncode, 2)
        self.assertIn("Prometheus' text format only", done.stderr)

    def test_a_node(self):
        scheduler = self.daemon()
        path = os.path.join(self.dir, "node.prom")
        node = lab.Fabricd(config={"fabricd": {"role": "node", "scheduler": scheduler.rundir, "store": None, "interval": 3600},
                                   "metrics": {"file": path}}, start=False)
        node.start(wait=False)
        self.addCleanup(node.stop)
        node.wait_up()
        node.until("generation", generation=1)
        node.until("scan", after=0)
        node.until_status(lambda status: not status["stale"])
        samples = self.metrics(node)
        self.assertEqual((samples["fabricd_connected", ""], samples["fabricd_generation", ""]), (1, 1))
        self.assertEqual(samples["fabricd_role_info", "node"], 1)
        self.assertEqual(samples["fabricd_stale", ""], 0)
        with open(path, encoding="utf-8") as file:
            parse(file.read())


class Http(unittest.TestCase):
    """[metrics] listen: GET /metrics, and nothing else."""

    @staticmethod
    def free_port():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def setUp(self):
        self.capture = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(self.capture, lab.fabric("fattree2:2,1,1", "capture"))
        self.port = self.free_port()

    def sections(self, listen):
        return {"fabricd": {"probe": f"file:{self.capture}", "interval": 0}, "changes": {"light_sweep": 0}, "metrics": {"listen": listen}}

    def start(self, listen=None):
        self.daemon = lab.Fabricd(config=self.sections(listen or f"127.0.0.1:{self.port}"))
        self.addCleanup(self.daemon.stop)

    def request(self, method="GET", path="/metrics", accept=None, port=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=lab.HUNG)
        connection.request(method, path, body, {"Accept": accept} if accept else {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.getheader("Content-Type"), text

    def test_both_formats(self):
        self.start()
        status, kind, text = self.request()
        self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
        self.assertEqual(parse(text)[0]["fabricd_generation", ""], 1)
        status, kind, text = self.request(path="/metrics?x=1", accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
        self.assertEqual((status, kind), (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
        self.assertTrue(text.endswith("\n# EOF\n"))
        self.assertIn("# TYPE fabricd_sweeps counter\nfabricd_sweeps_total{", text)
        if openmetrics is not None:
            names = {sample.name for family in openmetrics.text_string_to_metric_families(text) for sample in family.samples}
            self.assertEqual(names, {name for name, _ in parse(self.request()[2])[0]})

    def test_nothing_else(self):
        self.start()
        for method, path, body in (("GET", "/", None), ("GET", "/metrics/x", None), ("POST", "/metrics", b"x"), ("PUT", "/metrics", None),
                                   ("DELETE", "/metrics", None), ("GET", "/metrics/" + "x" * 20000, None)):
            with self.subTest((method, path[:12])):
                try:
                    status = self.request(method, path, body=body)[0]
                except (http.client.HTTPException, ConnectionError):
                    continue  # it was cut
                self.assertGreaterEqual(status, 400)
        for text in (b"\0" * 100, b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n" + b"a: b\r\n" * 5000 + b"\r\n"):
            with socket.create_connection(("127.0.0.1", self.port)) as stranger:
                with contextlib.suppress(OSError):
                    stranger.sendall(text)
                    stranger.shutdown(socket.SHUT_WR)
                    while stranger.recv(9999):
                        pass
        self.assertEqual(self.request()[0], 200)

    def test_strangers_that_stay_are_few_and_not_for_long(self):
        self.start()

        def files():
            return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))
        before = files()
        strangers = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(60)]
        for stranger in strangers:
            self.addCleanup(stranger.close)
            stranger.sendall(b"GET /metr")
        lab.wait_for(lambda: files() > before, what="connections")
        self.assertLessEqual(files(), before + 20)
        self.assertTrue(self.daemon.ctl_json("status")["daemon"])
        for stranger in strangers:
            stranger.close()
        self.assertEqual(self.request()[0], 200)
        lab.wait_for(lambda: files() <= before, what="their end")

    def test_a_reload_and_an_address_that_is_taken(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = f"127.0.0.1:{other.getsockname()[1]}"
            self.start(taken)
            self.daemon.refresh()
            found = lab.wait_for(lambda: self.daemon.control("check")["findings"], what="a finding")
            self.assertEqual([(f["kind"], f["where"]) for f in found], [("metrics-failed", taken)])
            self.assertEqual(len(re.findall("error: metrics: cannot listen at .*Address already in use", self.daemon.log())), 1)
        self.daemon.refresh()
        lab.wait_for(lambda: not self.daemon.control("check")["findings"], what="its end")
        self.assertEqual(self.request(port=int(taken.split(":")[1]))[0], 200)
        self.daemon.configure({**self.sections(f"127.0.0.1:{self.port}"),
                               "fabricd": {**self.sections("")["fabricd"], "rundir": self.daemon.rundir, "store": self.daemon.store}})
        self.assertEqual(self.daemon.ctl_json("reload")["changed"], ["[metrics] listen"])
        self.assertEqual(self.request()[0], 200)
        with self.assertRaises(ConnectionRefusedError):
            self.request(port=int(taken.split(":")[1]))


if __name__ == "__main__":
    unittest.main()
