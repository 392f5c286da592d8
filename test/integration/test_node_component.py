"""The component in PMIx servers of a node, which knows the mirrored run directory only: it serves a scheduler there as at
the scheduler's own host, and leaves other servers to their own `fabric` function."""
import unittest

import fabric_text
import lab
import test_node
import test_pnet
import versions

STATUS = r"^(?:registered|updated) (\S+) (-?\d+) (.*)$"


class Case(test_node.Case):
    def setUp(self):
        lab.require_component()
        super().setUp()
        self.one = self.node()
        self.equal(self.one)

    def server(self, *args):
        server = lab.Watch([*self.one.on.prefix(), lab.program("stock_scheduler"), *args],
                           test_pnet.environment(self.one.rundir, PMIX_MCA_pnet_base_verbose="2"), talk=True)
        self.addCleanup(server.stop)
        server.wait("^uri (.*)$")
        return server

    def test_a_scheduler(self):
        server = self.server()
        self.assertEqual(server.say("register 0", STATUS).group(1), "SUCCESS")
        generation = self.one.status()["generation"]
        self.change(fabric_text.without_cables(self.whole, "leaf1", "spine1"))
        self.one.wait_status(lambda status: status["generation"] > generation, "to follow")
        self.assertEqual(server.say("update 0", STATUS).group(1), "OPERATION-SUCCEEDED")

    def test_the_scheduler_away(self):
        server = self.server()
        self.assertEqual(self.scheduler.stop(), 0)
        self.one.wait_status(lambda status: status["stale"], "to notice")
        self.assertEqual(server.say("register 0", STATUS).group(1), "SUCCESS")
        self.one.kill9()  # and the node's own daemon
        self.assertEqual(server.say("register 1", STATUS).group(1), "SUCCESS")

    def test_other_servers(self):
        plain = self.server("plain")
        self.assertNotEqual(plain.say("register 0", STATUS).group(1), "SUCCESS")
        self.assertIn("not the scheduler", plain.output.text)
        answered = self.server("plain", "host").say("register 0", STATUS).group(1)
        # From 5 on the library does not ask a server's function for what the server itself registers.
        self.assertEqual(answered, "SUCCESS" if versions.PMIX[0] < 5 else "NOT-FOUND")


if __name__ == "__main__":
    unittest.main()
