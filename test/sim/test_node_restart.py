"""What a node has said stands when it is restarted and a probe fails then: it keeps its report, and where its run directory is gone, too,
the scheduler does."""
import os
import random
import shutil
import unittest

import node_case
from sim import lab


class Restarted(node_case.Case):
    """A node with two probes, of which one can fail."""

    def setUp(self):
        super().setUp()
        self.files = {"verbs": self.record("node0001", "20.1.1"), "ucx": self.record("node0001", source="ucx", transport=["rc_mlx5"])}
        self.one = self.node(firmware="20.1.1", fabricd={"probe": [f"{source}:{path}" for source, path in self.files.items()]})
        self.assertEqual((self.shown("firmware"), self.shown("transport")), (["20.1.1"], ["rc_mlx5"]))
        self.generation = self.site.status()["generation"]

    def fails(self, source):
        lab.replace_file(self.files[source], "{")

    def shown(self, kind):
        (device,) = self.site.ctl_json("devices", "node0001")
        return [fact["text"] for fact in device["facts"] if fact["kind"] == kind]

    def failed(self):
        return next(n for n in self.site.ctl_json("nodes") if n["host"] == "node0001")["failed"]

    def restart(self, forget=False):
        self.one.kill9()
        if forget:  # as after a reboot
            shutil.rmtree(self.one.rundir)
            os.mkdir(self.one.rundir)
        self.one.start()
        self.site.advance(5)
        status = self.one.status()
        self.assertTrue(status["digest"] and status["delivered"] and not status["delivering"], status)

    def told(self):
        """Kinds of all changes since the node had delivered at first."""
        last = self.site.status()["generation"]
        if last == self.generation:
            return []
        changes = self.site.control("diff", **{"from": self.generation, "to": last})["changes"]
        return [(c["kind"], c["what"], c["before"], c["after"]) for c in changes]

    def check(self, forget):
        self.fails("ucx")
        self.restart(forget)
        self.record("node0001", "20.1.2")
        self.look(self.one)
        self.assertEqual((self.shown("firmware"), self.shown("transport"), self.failed()), (["20.1.2"], ["rc_mlx5"], ["ucx"]))
        self.assertEqual(self.one.status()["unknown"], "ucx" if forget else None)
        self.assertIn("completes" if forget else "delivered", self.one.ctl("status").stdout)
        self.assertNotIn("does not hold", self.one.ctl("status").stdout)
        self.assertIn("node0001: failed probes: ucx; their earlier data is kept", self.site.log())
        self.assertIn("node0001: failed probes: ucx", self.site.ctl("nodes").stdout)
        self.record("node0001", source="ucx", transport=["ud_mlx5"])
        self.look(self.one)
        self.assertEqual((self.shown("transport"), self.failed()), (["ud_mlx5"], []))
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
        self.record("node0001", "20.1.3")
        start = len(self.one.log())
        self.one.start()
        self.site.advance(5)
        self.assertEqual(self.shown("firmware"), ["20.1.3"])
        self.delivered(self.one)
        self.assertNotIn("is skipped", self.one.log()[start:])

    def test_a_damaged_file(self):
        path = os.path.join(self.one.rundir, "node.report")
        with open(path, "rb") as file:
            good = file.read()
        for i, damaged in enumerate((good[:-1], good[:100] + bytes([good[100] ^ 1]) + good[101:], b"", b"x" * 400000)):
            self.one.kill9()
            with open(path, "wb") as file:
                file.write(damaged)
            self.fails("ucx")
            self.record("node0001", f"20.2.{i}")
            start = len(self.one.log())
            self.one.start()
            self.site.advance(5)
            self.assertEqual((self.shown("firmware"), self.shown("transport")), ([f"20.2.{i}"], ["rc_mlx5"]))
            self.assertRegex(self.one.log()[start:], "node.report is skipped: ")

    def test_the_scheduler_is_told_again(self):
        self.fails("ucx")
        self.look(self.one)
        self.assertEqual(self.failed(), ["ucx"])
        self.site.kill9()
        self.site.start()
        self.assertEqual(self.failed(), [])
        self.site.advance(60)
        self.assertEqual((self.failed(), self.shown("transport")), (["ucx"], ["rc_mlx5"]))
        self.record("node0001", source="ucx", transport=["rc_mlx5"])  # as before: no change, but no failure either
        self.look(self.one)
        self.assertEqual(self.failed(), [])
        self.assertEqual(self.told(), [])

    def test_whatever_goes_wrong_at_random(self):
        """In the end both have the same, however connections, munged, probes, the file and both daemons failed on the way."""
        random_hands = random.Random(815)
        beside = os.path.join(self.one.rundir, ".node.report.new")
        for turn in range(1, 400):
            hand = random_hands.randrange(12)
            if hand < 3:
                self.record("node0001", f"20.{turn}.1")
                self.one.device()
            elif hand == 3:
                self.fails("ucx")
                self.one.device()
            elif hand == 4:
                self.record("node0001", source="ucx", transport=[random_hands.choice(("rc_mlx5", "ud_mlx5"))])
                self.one.device()
            elif hand == 5:
                self.one.cut(random_hands.random() < .5)
            elif hand == 6:
                self.one.munge(random_hands.random() < .5)
            elif hand == 7:
                self.site.ctl("forget", "node0001")
            elif hand == 8:
                self.site.kill9()
                self.site.start()
            elif hand == 9:
                self.one.kill9()
                self.one.start()
            elif hand == 10 and os.path.isdir(beside):
                os.rmdir(beside)
            elif hand == 10:
                os.mkdir(beside)  # nothing can be written
            self.site.advance(random_hands.choice((0, .01, .5, 20)))
            if turn % 20 == 0:
                self.all_is_well(f"20.{turn}.2")

    def all_is_well(self, firmware):
        self.one.cut(False)
        self.one.munge(False)
        self.record("node0001", firmware)
        self.record("node0001", source="ucx", transport=["rc_mlx5"])
        self.one.device()
        self.site.advance(120)
        self.delivered(self.one)
        self.assertEqual((self.shown("firmware"), self.shown("transport"), self.failed()), ([firmware], ["rc_mlx5"], []))


if __name__ == "__main__":
    unittest.main()
