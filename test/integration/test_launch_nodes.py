"""A job on two nodes under the example launcher (examples/launcher.c): a starter beside the scheduler, a daemon on each node, in
namespaces of their own (launchers.py). What its processes know at their first line, and what ends when one of them fails.
"""
import os
import re
import signal
import unittest

import lab
import launchers
import news
import test_chapter as chapter
import test_launch
import versions

ENDPT = "pmix.fab.endpt"


class Two:
    """The cluster and its launcher, for all tests of the module."""

    nodes = ["node0001", "node0017"]
    cluster = launcher = None


def setUpModule():
    lab.require_component()
    Two.cluster = launchers.Cluster(Two.nodes)
    Two.launcher = launchers.Example(Two.cluster)


def tearDownModule():
    Two.cluster.stop()


class Case(test_launch.Case):
    nodes, per_node = Two.nodes, 2

    def machines(self):
        return Two.cluster, (Two.launcher,)

    def setUp(self):
        super().setUp()
        self.launcher = Two.launcher
        self.cluster.install(test_launch.COMPONENT, test_launch.PNET)

    def pooled(self):
        """The scheduler's fabricd, with numbers for endpoints."""
        return self.daemon(**{"endpoints.pools": {"ib0": "1000-1999"}})


class FirstLine(Case):
    def test_told_by_the_starter_or_by_the_nodes(self):
        """The nodes have no fabricd and no snapshot; each has a fabricd that mirrors the scheduler's. The same, in the same words."""
        for fact in self.start(self.launcher):
            self.assertTrue(test_launch.nothing(fact))
        daemon = self.daemon()
        self.cluster.publish(daemon, on=["head"])
        self.all_know(daemon)
        daemon.stop()
        self.cluster.withdraw()
        self.all_know(self.mirrored())

    def all_know(self, daemon):
        expected = test_launch.Expected(daemon, self.nodes)
        facts = self.start(self.launcher)
        self.assertEqual(len(facts), 2 * self.per_node)
        for fact in facts:
            with self.subTest(rank=fact["rank"]):
                self.check(fact, expected)

    def test_endpoints(self):
        """Each process gets two on each device of its node, and knows those of all others. No two of a node have the same."""
        daemon = self.pooled()
        self.cluster.publish(daemon, on=["head"])
        devices = {name: [device["id"] for device in daemon.ctl_json("devices", name)] for name in self.nodes}
        self.assertEqual([len(ids) for ids in devices.values()], [1, 2])
        facts = self.start(self.launcher, endpoints=2)
        told = [[(one["uuid"], one["endpt"]) for one in chapter.plain(rank[ENDPT])] for rank in facts[0]["ranks"]]
        for fact in facts:
            self.assertEqual([rank[ENDPT] for rank in fact["ranks"]], [rank[ENDPT] for rank in facts[0]["ranks"]])
        for rank, own in enumerate(told):
            node = self.nodes[rank // self.per_node]
            self.shows_given("PMIX_FABRIC_ENDPT", ENDPT, sorted(uuid for uuid, _ in own), sorted(devices[node] * 2), "launch", "launched",
                             kind="key")
            names = {device["id"]: device["name"] for device in daemon.ctl_json("devices", node)}
            self.shows_structure("pmix_endpoint_t", facts[0]["ranks"][rank][ENDPT],
                                 [{"uuid": uuid, "osname": names[uuid], "endpt": number} for uuid, number in own], "launch", "launched")
            self.shows_given("PMIX_ALLOC_NETWORK_ENDPTS", "endpts=2", len(own), 2 * len(devices[node]), "call", "in process")
        for ids in devices.values():
            numbers = [number for own in told for uuid, number in own if uuid == ids[0]]
            self.assertEqual(len(set(numbers)), len(numbers))
            self.assertTrue(all(1000 <= int(number) <= 1999 for number in numbers), numbers)
        self.assertEqual(daemon.control("endpoints")["endpoints"], [])

    def test_no_pool(self):
        """Rather no job than one without what was asked for."""
        self.cluster.publish(self.daemon(), on=["head"])
        done = self.launcher.run(self.per_node, ["/bin/echo", "started"], endpoints=2)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("launcher: PMIx_server_setup_application: ", done.stderr)


class Ends(Case):
    """All are up; then one of them fails, or one of those that started them. The others end, and nothing stays."""

    def setUp(self):
        super().setUp()
        self.scheduler = self.pooled()
        self.cluster.publish(self.scheduler, on=["head"])
        self.before = self.there()

    def there(self):
        """Files and processes of the cluster."""
        return {file for file in self.cluster.files() if not self.is_librarys(file)}, sorted(self.cluster.processes())

    @staticmethod
    def is_librarys(file):
        """From 5.0 on the library keeps the shared memory of a process that was killed (docs/upstream.md, F18)."""
        return versions.PMIX[0] >= 5 and os.path.basename(file).startswith(("pmix-gds-shmem2.", "pmix-gds-shmem3."))

    def job(self, *then):
        """All are up; when the test goes on they do what `then` says, and wait."""
        folder = lab.tmpdir()
        up = [os.path.join(folder, str(rank)) for rank in range(2 * self.per_node)]
        go = os.path.join(folder, "go")
        job = self.launcher.spawn(self.per_node, [
            lab.program("stock_member"), *(f"{rank}:touch={path}" for rank, path in enumerate(up)), f"await={go}", *then,
            f"await={folder}/never"], endpoints=1)
        self.addCleanup(job.stop)
        news.until_file(up[0], lambda: all(map(os.path.exists, up)), "all processes to be up", job.process)
        self.assertEqual(len(self.endpoints()), 1)
        lab.replace_file(go, "")
        return job

    def endpoints(self):
        """What jobs have."""
        return self.scheduler.control("endpoints")["endpoints"]

    def wait_gone(self):
        """Wait for the end of all processes that were not there before."""
        while new := set(self.there()[1]) - set(self.before[1]):
            self.assertTrue(all(lab.Held(pid).ended() for pid in new), new)
        self.assertEqual(self.there()[1], self.before[1])

    def gone(self, job, status):
        """Its status; nothing of it is there any more. What the launcher said, without what its processes did."""
        self.assertEqual(job.process.wait(lab.HUNG), status)
        self.wait_gone()
        self.assertEqual(self.there(), self.before)
        self.assertEqual(self.endpoints(), [])
        return sorted(line for line in job.lines() if line.startswith("launcher: "))

    def test_one_aborts_is_killed_or_fails(self):
        said = self.gone(self.job("3:abort=3,tired"), 1)
        self.assertEqual(said, ["launcher: node0017: rank 3 aborts with 3: tired"])
        for what, how in (("kill=9", "status 0, signal 9"), ("exit=4", "status 4, signal 0")):
            job = self.job("1:pid", f"1:{what}")
            said = self.gone(job, 1)
            pid = re.search(r"^1 pid: SUCCESS (\d+)$", job.output.text, re.MULTILINE).group(1)
            self.assertEqual(said, [f"launcher: node0001: process {pid} ends with {how}"])

    def test_one_of_those_that_started_them_is_killed(self):
        """Only the folders of what was killed stay."""
        for daemon in (False, True):
            job = self.job()
            os.kill(self.launchers_running(daemon)[0], signal.SIGKILL)
            job.process.wait(lab.HUNG)
            self.wait_gone()
            self.assertEqual(self.endpoints(), [])  # fabricd noticed its end before this question

    def launchers_running(self, daemon):
        found = []
        for pid, (name, _) in self.cluster.processes().items():
            if name == "launcher":
                with open(f"/proc/{pid}/cmdline", encoding="ascii") as file:
                    found += [pid] if ("-d" in file.read().split("\0")) == daemon else []
        return found


if __name__ == "__main__":
    unittest.main()
