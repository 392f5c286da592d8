"""[metrics] listen: the metrics over HTTP."""
import contextlib
import http.client
import os
import re
import socket
import unittest

import lab
from metrics_text import parse

try:
    from prometheus_client.openmetrics import parser as openmetrics
except ImportError:
    openmetrics = None


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
