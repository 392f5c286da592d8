"""What nodes deliver: kept where it is good; refused with a reason, which the log has, too, while the last good report stays. Each refusal by
itself: unit.ingest_auth; real credentials: test/integration/test_ingest.py."""
import re
import unittest

import node_case
import sim
from machines import machine

OK, CONFLICT, BUSY, PERM = 0, -6, -13, -14
HOST, OTHER = "node0001", "node0002"


class Intake(unittest.TestCase):
    def setUp(self):
        self.site = sim.Site("fattree2:2,1,2", {"nodes": {"user": "daemon"}})
        self.addCleanup(self.site.free)

    def deliver(self, recorded, host=HOST, uid=0, before=None):
        return self.site.deliver_from(host, sim.delivery(recorded, before), uid)

    def held(self, host=HOST):
        return next((node["digest"] for node in self.site.control("nodes")["nodes"] if node["host"] == host), None)

    def test_good_ones_are_kept(self):
        two, three = machine(1, extra=1), machine(1, extra=2)
        self.assertEqual(self.held(), None)
        self.assertEqual(self.deliver(two), (OK, ""))
        first = self.held()
        self.assertEqual(self.deliver(two), (OK, ""))
        self.assertEqual(self.held(), first)
        self.assertEqual(self.deliver(three, before=two), (OK, ""))
        self.assertNotEqual(self.held(), first)
        self.site.kill9()  # what was acknowledged is there
        self.site.start()
        self.assertEqual(self.deliver(two, before=three, uid=1), (OK, ""))  # by the configured user
        self.assertEqual(self.held(), first)
        code, reason = self.deliver(two, before=three)
        self.assertEqual(code, CONFLICT)
        self.assertIn("send the whole report", reason)
        self.assertEqual(self.held(), first)

    def test_refused_and_the_last_good_one_stays(self):
        self.deliver(machine(1))
        good = self.held()
        got, reason = self.deliver(machine(1, extra=1), OTHER)
        self.assertEqual(got, PERM)
        self.assertRegex(reason, r"^node0001: uid 0 on 10\.0\.0\.2 may not report for this host, which is 10\.0\.0\.1")
        self.assertIn(f"warning: intake: refused: {reason}\n", self.site.log())
        self.assertEqual(self.held(), good)
        self.site.unresolved(OTHER)  # it may be known to a name server
        code, reason = self.deliver(machine(2), HOST)
        self.assertEqual(code, BUSY)
        self.assertIn("cannot resolve this name now", reason)
        self.assertEqual(self.held(OTHER), None)

    def test_too_many(self):
        answers = [self.deliver(machine(1, firmware=f"20.{n}")) for n in range(40)]
        refused = [reason for code, reason in answers if code == BUSY]
        self.assertTrue(8 <= len(answers) - len(refused) <= 30, answers)
        for reason in refused:
            self.assertIn("node0001 delivers more often than", reason)
        self.assertEqual(self.deliver(machine(2), OTHER), (OK, ""))  # which another does not feel
        self.assertLess(self.site.log().count("warning: intake: refused: node0001"), 3)
        self.site.advance(60)
        self.assertEqual(self.deliver(machine(1, firmware="20.99")), (OK, ""))


class Crowd(node_case.Case):
    def test_a_crowd_is_one_generation(self):
        """All nodes start at the same moment, connect and deliver."""
        self.site.stop()
        self.site.configure({"nodes": {"debounce_ms": 1000}})
        self.site.start()
        nodes = [self.node(f"node{number:04}", firmware=f"20.31.{number}", start=False) for number in range(1, 61)]
        for node in nodes:
            node.start()
        self.site.advance(5)
        for node in nodes:
            self.delivered(node)
            self.assertTrue(self.published(f"20.31.{int(node.host[-4:])}"))
        self.equal(*nodes)
        self.assertEqual(self.site.status()["generation"], 2)
        self.assertEqual(len(re.findall("report-added", str(self.site.control("diff", **{"from": 1, "to": 2})["changes"]))), 60)


if __name__ == "__main__":
    unittest.main()
