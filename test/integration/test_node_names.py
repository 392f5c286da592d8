"""A name server that is away on the scheduler's host: no node is refused for that, and none holds up others."""
import os
import time
import unittest

import hosts
import lab
import test_node


class Case(test_node.Case):
    def no_name_server(self):
        """Questions get lost, and time out after 2 s."""
        path = os.path.join(lab.tmpdir(), "resolv.conf")
        lab.replace_file(path, "nameserver 10.91.1.99\noptions timeout:1 attempts:2\n")
        center = self.hosts["scheduler"]
        center.do("mount", "--bind", path, "/etc/resolv.conf")
        self.addCleanup(center.do, "umount", "/etc/resolv.conf")

    def deliver(self, spec):
        watch = lab.Watch([*self.hosts["node0002"].prefix(), lab.program("deliver"), self.uri, spec],
                          {**os.environ, "PMIX_MCA_psec": "munge"})
        self.addCleanup(watch.stop)
        return watch

    def test_names_of_nobody(self):
        node = self.node(firmware="20.31.1014")
        node.wait_delivered()
        self.no_name_server()
        many = self.deliver("host=nowhere#,times=8,at_once=1")
        start = time.monotonic()
        self.record("node0001", "20.40.2000")
        node.look()
        self.wait_published("20.40.2000")
        self.assertLess(time.monotonic() - start, 8 * lab.SLOW)  # one of them was waited for, not eight
        for _ in range(8):
            many.wait(r"^-13 0 nowhere\d: ")
        self.assertNotIn("-14", many.output.text)

    def test_a_node_that_cannot_be_resolved_now(self):
        self.no_name_server()
        node = hosts.Node(self.hosts["node0001"], "node0009", self.uri, start=False,
                          config={"fabricd": {"probe": f"verbs:{self.record('node0001', '20.1.1')}"}})
        self.addCleanup(self.end, node)
        node.start(wait=False)
        status = node.wait_status(lambda status: "cannot resolve this name now" in (status["reason"] or ""),
                                  "to be turned away")
        self.assertFalse(status["refused"])  # it tries again soon
        self.hosts["scheduler"].knows({"scheduler": test_node.SCHEDULER, "node0009": test_node.NODES["node0001"]})
        self.addCleanup(self.hosts["scheduler"].do, "umount", "/etc/hosts")
        node.wait_delivered()


if __name__ == "__main__":
    unittest.main()
