"""What a node has said stands when it is restarted and a probe fails then: it keeps its report, and where its run
directory is gone, too, the scheduler does. And a munged that hangs holds up nothing else."""
import json
import os
import shutil
import signal
import time
import unittest

import hosts
import lab
import test_node


class Case(test_node.Case):
    """A node with two probes, of which one can fail."""

    def setUp(self):
        super().setUp()
        self.device = self.scheduler.ctl_json("devices", "node0001")[0]
        self.files = {source: os.path.join(self.dir, f"{source}.json") for source in ("verbs", "ucx")}
        self.says("verbs", firmware="20.1.1")
        self.says("ucx", transport=["rc_mlx5"])
        probes = [f"{source}:{path}" for source, path in self.files.items()]
        self.start_node(probes)
        self.wait_shown(firmware=["20.1.1"], transport=["rc_mlx5"])
        self.generation = self.scheduler.status()["generation"]

    def start_node(self, probes):
        self.one = hosts.Node(self.hosts["node0001"], "node0001", self.uri, config={"fabricd": {"probe": probes}})
        self.addCleanup(self.end, self.one)
        self.one.wait_delivered()

    def says(self, source, **facts):
        item = {"source": source, "name": "mlx5_0", "port": "1", "port-guid": self.device["guid"], **facts}
        lab.replace_file(self.files[source], json.dumps({"host": "node0001", "items": [item]}))

    def fails(self, source):
        lab.replace_file(self.files[source], "{")

    def shown(self, kind):
        device = next(d for d in self.scheduler.ctl_json("devices", "node0001") if d["guid"] == self.device["guid"])
        return [fact["text"] for fact in device["facts"] if fact["kind"] == kind]

    def wait_shown(self, **facts):
        lab.wait_for(lambda: all(self.shown(kind) == texts for kind, texts in facts.items()), 20,
                     f"{facts} to be shown")

    def failed(self):
        return next(n for n in self.scheduler.ctl_json("nodes") if n["host"] == "node0001")["failed"]

    def restart(self, forget=False):
        self.one.kill9()
        if forget:  # as after a reboot
            shutil.rmtree(self.one.rundir)
            os.mkdir(self.one.rundir)
        self.one.start()
        self.one.wait_status(lambda status: status["digest"] and status["delivered"] and not status["delivering"],
                             "to be acknowledged")  # what is held may be more than it knows

    def told(self):
        """Kinds of all changes since the node had delivered at first."""
        last = self.scheduler.status()["generation"]
        if last == self.generation:
            return []
        changes = self.scheduler.control("diff", **{"from": self.generation, "to": last})["changes"]
        return [(c["kind"], c["what"], c["before"], c["after"]) for c in changes]


class Restarted(Case):
    def check(self, forget):
        self.fails("ucx")
        self.restart(forget)
        self.says("verbs", firmware="20.1.2")
        self.one.look()
        self.wait_shown(firmware=["20.1.2"])
        self.assertEqual(self.shown("transport"), ["rc_mlx5"])
        self.assertEqual(self.failed(), ["ucx"])
        self.assertEqual(self.one.status()["unknown"], "ucx" if forget else None)
        self.assertIn("completes" if forget else "delivered", self.one.ctl("status").stdout)
        self.assertNotIn("does not hold", self.one.ctl("status").stdout)
        self.assertIn("node0001: probes that failed there: ucx; what they said before stands", self.scheduler.log())
        self.assertIn("node0001: probes that failed there: ucx", self.scheduler.ctl("nodes").stdout)
        self.says("ucx", transport=["ud_mlx5"])
        self.one.look()
        self.wait_shown(transport=["ud_mlx5"])
        self.assertEqual(self.failed(), [])
        for change in self.told():  # nothing was lost meanwhile, and came back
            self.assertNotIn("rc_mlx5", (change[3] or ""), self.told())
            self.assertTrue(change[2] and change[3], self.told())

    def test_killed(self):
        self.check(False)

    def test_rebooted(self):
        self.check(True)

    def test_every_probe_fails(self):
        for source in self.files:
            self.fails(source)
        self.restart()
        self.assertEqual((self.shown("firmware"), self.shown("transport")), (["20.1.1"], ["rc_mlx5"]))
        self.assertEqual(self.failed(), ["verbs", "ucx"])
        self.assertEqual(self.told(), [])

    def test_what_changed_since_is_delivered_as_that(self):
        self.one.kill9()
        self.says("verbs", firmware="20.1.3")
        start = len(self.one.log())
        self.one.start()
        self.wait_shown(firmware=["20.1.3"])
        self.one.wait_delivered()
        self.assertNotIn("left out", self.one.log()[start:])

    def test_a_damaged_file(self):
        path = os.path.join(self.one.rundir, "node.report")
        with open(path, "rb") as file:
            good = file.read()
        for i, damaged in enumerate((good[:-1], good[:100] + bytes([good[100] ^ 1]) + good[101:], b"", b"x" * 400000)):
            self.one.kill9()
            with open(path, "wb") as file:
                file.write(damaged)
            self.fails("ucx")
            self.says("verbs", firmware=f"20.2.{i}")
            start = len(self.one.log())
            self.one.start()
            self.wait_shown(firmware=[f"20.2.{i}"], transport=["rc_mlx5"])
            self.assertIn(f"{path} is left out: ", self.one.log()[start:])

    def test_the_scheduler_is_told_again(self):
        self.fails("ucx")
        self.one.look()
        lab.wait_for(lambda: self.failed() == ["ucx"], 20, "the failure to be told")
        self.scheduler.kill9()
        self.scheduler.start()
        lab.wait_for(lambda: self.failed() == ["ucx"], 30, "the failure to be told again")
        self.assertEqual(self.shown("transport"), ["rc_mlx5"])
        self.says("ucx", transport=["rc_mlx5"])  # as before: no change, but no failure either
        self.one.look()
        lab.wait_for(lambda: self.failed() == [], 20, "the failure to be over")
        self.assertEqual(self.told(), [])


class Munged(Case):
    def test_it_hangs(self):
        munged = self.munged["node0001"].process
        munged.send_signal(signal.SIGSTOP)
        self.addCleanup(munged.send_signal, signal.SIGCONT)
        self.says("verbs", firmware="20.1.2")
        self.one.look()
        self.one.wait_status(lambda status: status["delivering"], "to deliver")
        slowest = 0
        for _ in range(20):
            start = time.monotonic()
            self.one.status()
            slowest = max(slowest, time.monotonic() - start)
        self.assertLess(slowest, 2)
        self.assertEqual(self.shown("firmware"), ["20.1.1"])
        munged.send_signal(signal.SIGCONT)
        self.wait_shown(firmware=["20.1.2"])
        self.one.wait_delivered()

    def test_the_schedulers_hangs(self):
        """The connected node's delivery waits, and is acknowledged when munged goes on."""
        front, munged = self.scheduler.front(), self.munged["scheduler"].process
        munged.send_signal(signal.SIGSTOP)
        self.addCleanup(munged.send_signal, signal.SIGCONT)
        self.says("verbs", firmware="20.1.2")
        self.one.look()
        lab.wait_for(lambda: self.scheduler.status()["checker"]["replaced"] > 0, 20, "the checker to be replaced")
        self.assertEqual(self.shown("firmware"), ["20.1.1"])
        self.assertIn("no munged answers on the scheduler's host", self.one.log())
        munged.send_signal(signal.SIGCONT)
        self.wait_shown(firmware=["20.1.2"])
        self.one.wait_delivered()
        self.assertEqual(self.scheduler.front(), front)

    def test_a_node_is_stopped_meanwhile(self):
        munged = self.munged["node0001"].process
        munged.send_signal(signal.SIGSTOP)
        self.addCleanup(munged.send_signal, signal.SIGCONT)
        self.says("verbs", firmware="20.1.2")
        self.one.look()
        self.one.wait_status(lambda status: status["delivering"], "to deliver")
        start = time.monotonic()
        self.assertEqual(self.one.stop(), 0)
        self.assertLess(time.monotonic() - start, 5)


if __name__ == "__main__":
    unittest.main()
