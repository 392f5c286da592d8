"""The role node: hosts that deliver what they have, mirror what is published, and go on when the scheduler is away. What PMIx, munge and
the kernel have to do with it: test/integration/test_node.py."""
import os
import shutil
import unittest

import fabric_text
import node_case
import sim
from node_case import snapshots
from sim import lab

PENDING, UPDATED = "PMIX_FABRIC_UPDATE_PENDING", "PMIX_FABRIC_UPDATED"


class Mirror(node_case.Case):
    def change(self, switch, other):
        port = self.site.cable(switch, other)
        self.site.pull(switch, port)
        return port

    def sweep(self):
        generation = self.site.refresh()["generation"]
        self.site.advance(1)
        return generation

    def test_it_follows(self):
        whole = sim.fabric(node_case.FABRIC, "capture")
        self.site = sim.Recorded(whole)
        self.addCleanup(self.site.free)
        nodes = [self.node(), self.node("node0002")]
        self.equal(*nodes)
        self.site.show(fabric_text.without_cables(fabric_text.without_cables(whole, "leaf1", "spine1"), "leaf1", "spine2"))
        generation = self.sweep()  # two planes
        self.equal(*nodes)
        self.assertEqual(len(snapshots(nodes[0].rundir)), 2)
        events = [(event["event"], event["plane"]) for event in nodes[0].control("events")["events"] if event["generation"] == generation]
        self.assertEqual(sorted(events), sorted((name, plane) for name in (PENDING, UPDATED) for plane in ("ib0", "ib1")))
        self.site.show(whole)
        self.sweep()
        self.equal(*nodes)
        self.assertEqual(list(snapshots(nodes[0].rundir)), ["ib0.snap"])

    def test_a_generation_without_planes(self):
        """That a cable is held is told, while nothing that is served changes: nobody is disturbed, nor left behind."""
        port = self.change("leaf1", "node0003")
        self.sweep()
        self.site.stop()
        self.site.start()  # what came and went until now is not counted
        node = self.node()
        self.site.plug("leaf1", port)
        self.sweep()
        self.site.pull("leaf1", port)
        self.sweep()
        self.site.ctl("forget", "node0003")
        self.site.advance(1)
        self.assertNotIn("node0003", {d["host"] for d in self.site.ctl_json("devices")})
        self.equal(node)
        before = self.site.status()["generation"], snapshots(node.rundir)
        self.site.plug("leaf1", port)
        self.assertEqual(self.sweep(), before[0] + 1)
        self.assertEqual([c["kind"] for c in self.site.ctl_json("diff")["changes"]], ["flapping"])
        self.equal(node)
        self.assertEqual(snapshots(node.rundir), before[1])
        self.assertNotIn(before[0] + 1, [event["generation"] for event in node.control("events")["events"]])
        self.site.ctl("refresh", "--release")
        self.site.advance(1)
        self.assertEqual(self.site.status()["generation"], before[0] + 2)
        self.equal(node)

    def test_the_scheduler_away(self):
        node = self.node()
        before = snapshots(node.rundir)
        self.assertFalse(self.marked(node))
        for away, back in ((self.site.stop, self.site.start), (node.cut, lambda: node.cut(False))):
            away()
            self.site.advance(1)
            status = node.status()
            self.assertEqual((status["stale"], status["connected"]), (True, False))
            self.assertIsNotNone(status["stale_since"])
            self.assertIn("cannot be reached", status["stale_reason"])
            self.assertTrue(self.marked(node))
            self.assertEqual(snapshots(node.rundir), before)
            back()
            self.site.advance(1)
            self.equal(node)
            self.assertFalse(self.marked(node))

    def test_sweeps_fail(self):
        """The scheduler is there, and says that what it serves may be old: so does the node, to all who ask."""
        node = self.node()
        self.site.sweeps(sim.FAIL)
        self.assertFalse(self.site.control("refresh")["ok"])
        self.site.advance(1)
        status = node.status()
        self.assertEqual((status["stale"], status["connected"], status["stale_reason"]), (True, True, "the scheduler's sweeps fail"))
        self.assertTrue(self.marked(node))
        node.kill9()
        node.start()
        self.site.advance(1)
        self.assertEqual(node.status()["stale_reason"], "the scheduler's sweeps fail")
        self.site.sweeps(sim.GOOD)
        self.assertEqual(self.sweep(), status["generation"])
        self.equal(node)
        self.assertFalse(self.marked(node))

    def test_killed_and_started_while_the_scheduler_is_away(self):
        node = self.node()
        before = snapshots(node.rundir)
        node.kill9()
        self.site.kill9()
        lab.replace_file(os.path.join(node.rundir, "rubbish.snap"), "no snapshot")
        node.start()
        self.site.advance(1)
        status = node.status()
        self.assertEqual((status["stale"], status["generation"]), (True, 1))
        self.assertEqual(snapshots(node.rundir), before)
        start = len(node.log())
        self.site.start()
        self.site.advance(1)
        self.equal(node)
        self.assertNotIn("new", node.log()[start:])  # nothing was fetched

    def test_another_history_with_the_same_numbers(self):
        """A scheduler that lost its store and what it served counts anew: equal generations are not equal snapshots."""
        node = self.node()
        before = snapshots(node.rundir)
        for end in (lambda: None, node.kill9):
            end()
            self.site.lose_everything()
            self.site.advance(10)
            self.site.start()
            if not node.alive():
                node.start()
            self.site.advance(1)
            self.assertEqual(self.site.status()["generation"], 1)
            self.assertNotEqual(snapshots(node.rundir), before)
            self.equal(node)
            before = snapshots(node.rundir)

    def test_a_run_directory_that_was_removed(self):
        node = self.node()
        shutil.rmtree(node.rundir)
        node.hup()
        self.site.advance(1)
        self.equal(node)

    def test_the_schedulers_own_run_directory_is_refused(self):
        node = self.node(start=False)
        node.configure({"fabricd": {"rundir": self.site.rundir}})
        with self.assertRaisesRegex(lab.LabError, "another fabricd"):
            node.start()


class Deliver(node_case.Case):
    def test_delivered_and_published(self):
        nodes = [self.node(name, firmware=f"20.31.{name[-4:]}") for name in ("node0001", "node0002")]
        for node in nodes:
            self.delivered(node)
            self.assertTrue(self.published(f"20.31.{node.host[-4:]}"))
        self.equal(*nodes)

    def test_what_changed_is_delivered_as_that(self):
        node = self.node(firmware="20.31.1014")
        self.assertTrue(self.published("20.31.1014"))
        start = len(node.log())
        self.record("node0001", "20.40.2000")
        self.look(node)
        self.assertTrue(self.published("20.40.2000"))
        self.delivered(node)
        self.assertIn("deliver: a delta", node.log()[start:])
        self.equal(node)

    def test_both_are_killed(self):
        node = self.node(firmware="20.31.1014")
        self.delivered(node)
        self.site.kill9()
        self.record("node0001", "20.40.2000")
        answer = node.control("refresh")
        self.assertFalse(answer["ok"])
        self.assertIn("cannot be reached", answer["message"])
        self.site.start()
        self.site.advance(60)
        self.delivered(node)
        self.assertTrue(self.published("20.40.2000"))
        node.kill9()
        self.record("node0001", "20.50.3000")
        node.start()
        self.site.advance(1)
        self.delivered(node)
        self.assertTrue(self.published("20.50.3000"))

    def test_a_scheduler_that_has_forgotten(self):
        node = self.node(firmware="20.31.1014")
        self.delivered(node)
        self.site.stop()
        os.unlink(self.site.store)
        self.site.start()
        self.site.advance(60)
        self.assertTrue(self.published("20.31.1014"))
        self.delivered(node)

    def test_refresh(self):
        node = self.node(firmware="20.31.1014")
        before = self.delivered(node)["delivered"]
        self.site.advance(1)
        answer = node.control("refresh")
        self.assertTrue(answer["ok"], answer)
        self.assertEqual(answer["digest"], node.status()["held"])
        self.assertGreater(node.status()["delivered"], before)

    def test_the_scheduler_asks_for_a_look(self):
        node = self.node(firmware="20.31.1014")
        self.delivered(node)
        self.record("node0001", "20.40.2000")
        self.assertTrue(self.site.control("refresh", host="node0001")["ok"])
        self.assertIn("the scheduler requests a scan", node.log())
        self.site.advance(1)
        self.assertTrue(self.published("20.40.2000"))

    def test_a_device_changes(self):
        node = self.node(firmware="20.31.1014")
        self.record("node0001", "20.40.2000")
        node.device()
        self.site.advance(1)
        self.assertTrue(self.published("20.40.2000"))

    def test_a_host_that_is_another(self):
        """Its credential says where it was made."""
        path = self.record("node0002", "20.66.6666")
        node = self.node(fabricd={"host": "node0002", "probe": f"verbs:{path}"})
        status = node.status()
        self.assertTrue(status["refused"])
        self.assertIn("node0002", status["reason"])
        self.site.refresh()
        self.assertFalse(self.published("20.66.6666"))
        self.assertFalse(status["stale"])  # it is served all the same

    def test_a_node_that_cannot_be_resolved_now(self):
        self.site.unresolved("node0001")
        node = self.node(firmware="20.1.1")
        status = node.status()
        self.assertIn("cannot resolve this name now", status["reason"])
        self.assertFalse(status["refused"])  # it tries again soon
        self.site.unresolved(None)
        self.site.advance(60)
        self.delivered(node)
        self.assertTrue(self.published("20.1.1"))


class Munged(node_case.Case):
    def test_it_hangs(self):
        node = self.node(firmware="20.1.1")
        node.munge(True)
        self.record("node0001", "20.1.2")
        asked = node.ask("refresh")
        self.site.advance(5)
        self.assertTrue(node.status()["delivering"])
        self.assertFalse(self.published("20.1.2"))
        node.munge(False)
        self.site.advance(1)
        self.assertTrue(asked.answer()["ok"])
        self.assertTrue(self.published("20.1.2"))
        self.delivered(node)

    def test_a_node_is_stopped_meanwhile(self):
        node = self.node(firmware="20.1.1")
        node.munge(True)
        self.record("node0001", "20.1.2")
        asked = node.ask("refresh")
        self.site.advance(5)
        self.assertTrue(node.status()["delivering"])
        node.stop()
        asked.close()
        self.assertFalse(node.alive())


if __name__ == "__main__":
    unittest.main()
