"""Another host takes the scheduler's place with its last backup: nodes and tools find it, and no number goes back."""
import os
import re
import unittest

import hosts
import lab
import test_node

STANDBY = "10.91.3.1"
PORT = {"PMIX_MCA_ptl_tcp_ipv4_port": "24242"}


class Standby(test_node.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        standby = cls.hosts["standby"] = hosts.Host("standby")
        cls.addClassCleanup(standby.stop)
        standby.cable(cls.hosts["node0001"], STANDBY, "10.91.3.2")
        standby.cable(cls.hosts["node0002"], "10.91.4.1", "10.91.4.2")
        cls.hosts["node0002"].do("ip", "route", "add", "10.91.3.0/24", "via", "10.91.4.1")
        standby.knows({"standby": STANDBY, **test_node.NODES})
        munged = hosts.Munged(standby, STANDBY, cls.munged["scheduler"])
        cls.addClassCleanup(munged.stop)
        munged.show_on(standby)

    def fabric_is(self, address):
        """What an operator may change for all nodes: the address that a name has."""
        host = self.hosts["node0001"]
        host.knows({"fabric": address, **test_node.NODES})
        self.addCleanup(host.do, "umount", "/etc/hosts")

    def numbers(self, node):
        """The generations that its readers have seen, in their order."""
        return [int(number) for number in re.findall(r"mirror: generation (\d+)", node.log())]

    def test_it_takes_the_schedulers_place(self):
        self.fabric_is(test_node.SCHEDULER)
        both = f"{test_node.SCHEDULER}, {STANDBY}:7135"  # whichever of them is there
        nodes = [self.node("node0001", scheduler="fabric", firmware="20.1.1"), self.node("node0002", scheduler=both)]
        for node in nodes:
            node.wait_delivered()
        backup = os.path.join(self.dir, "backup.db")
        self.assertEqual(self.scheduler.ctl("backup", backup).returncode, 0)
        for n in range(3):
            seen = self.change(self.whole.replace('"node0009', f'"other{n}'))
        self.equal(*nodes)
        self.scheduler.kill9()
        for node in nodes:
            node.wait_status(lambda status: status["stale"], "to miss the scheduler")

        first, self.scheduler = self.scheduler, hosts.Fabricd(
            self.hosts["standby"], env=PORT, start=False,
            config={"fabricd": {"probe": f"file:{self.capture}", "host": "standby"}, "security": {"remote": "yes"}})
        self.addCleanup(self.end, self.scheduler)
        self.assertEqual(self.scheduler.run_once("--restore", backup).returncode, 0)
        self.scheduler.start()
        self.assertEqual(self.scheduler.uri(), f"fabricd.0;tcp4://{STANDBY}:24242")
        self.fabric_is(STANDBY)
        self.equal(*nodes)
        for node in nodes:
            node.wait_delivered()
            self.assertGreater(node.status()["generation"], seen)
            self.assertEqual(self.numbers(node), sorted(set(self.numbers(node))), "a number went back")
            self.assertIn(seen, self.numbers(node))
        self.assertIn("pmixfab.generation", self.tool_of(nodes[0], self.scheduler.uri()))

        # And back, as soon as the first one has the standby's last backup.
        seen = self.change(self.whole)
        self.assertEqual(self.scheduler.ctl("backup", "--force", backup).returncode, 0)
        self.scheduler.stop()
        self.assertEqual(first.run_once("--restore", backup).returncode, 0)  # before nodes find it again
        first.start()
        self.scheduler = first
        self.assertGreater(first.wait_ready()["generation"], seen)
        self.fabric_is(test_node.SCHEDULER)
        self.equal(*nodes)
        for node in nodes:
            self.assertEqual(self.numbers(node), sorted(set(self.numbers(node))), "a number went back")

    def tool_of(self, node, uri):
        """A stock tool on a node's host asks the scheduler itself."""
        done = node.on.run([lab.program("stock_tool"), uri, "register"], env=node.tool_env(), cwd="/", timeout=20)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
