"""Nodes and schedulers of this version and of the one before, in both orders of an upgrade: what a node delivers is
acknowledged and published, and what is published is mirrored.

FABRICD_BEFORE names a fabricd of the version before; without it `./dev test --all` builds one of the commit below, where
that is in this clone.
"""
import functools
import os
import unittest

import hosts
import lab
import test_node

BEFORE = "b768f91c"  # the last whose nodes were PMIx servers


@functools.lru_cache(None)
def before():
    """The path of its fabricd; SkipTest."""
    if "FABRICD_BEFORE" in os.environ:
        return os.environ["FABRICD_BEFORE"]
    if not lab.ALL:
        raise unittest.SkipTest("FABRICD_BEFORE names no fabricd of the version before (./dev test --all builds one)")
    if lab.run(["git", "-C", lab.ROOT, "cat-file", "-e", f"{BEFORE}^{{commit}}"]).returncode != 0:
        raise unittest.SkipTest(f"the commit {BEFORE} of the version before is not in this clone")
    source, build = lab.tmpdir(), lab.tmpdir()
    archive = os.path.join(build, "source.tar")
    for command in (["git", "-C", lab.ROOT, "archive", "-o", archive, BEFORE], ["tar", "-xf", archive, "-C", source],
                    ["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"],
                    ["cmake", "--build", build, "--target", "fabricd", "modules"]):
        done = lab.run(command, timeout=1800)
        if done.returncode != 0:
            raise lab.LabError(f"{' '.join(command)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return os.path.join(build, "bin", "fabricd")


class Case(test_node.Case):
    @classmethod
    def setUpClass(cls):
        cls.before = before()
        super().setUpClass()

    def setUp(self):
        """Both are of the version before."""
        super().setUp()
        self.end(self.scheduler)
        self.scheduler = hosts.Fabricd(
            self.hosts["scheduler"], env={"PMIX_MCA_ptl_tcp_ipv4_port": "24242"}, start=False,
            config={"fabricd": {"probe": f"file:{self.capture}", "host": "scheduler"}, "security": {"remote": "yes"},
                    "nodes": {"debounce_ms": 20}})
        self.addCleanup(self.end, self.scheduler)
        self.restart(self.scheduler, self.before)
        self.one = self.node(start=False, firmware="20.31.1014")
        self.restart(self.one, self.before)
        self.turn = 0
        self.check()

    def wait_published(self, firmware):
        """The version before has no operation `await`."""
        lab.wait_for(lambda: self.published(firmware), what=f"firmware {firmware} to be published")

    def restart(self, daemon, binary):
        if daemon.process is not None:
            self.assertEqual(daemon.stop(), 0)
        daemon.binary = binary
        daemon.start()

    def check(self):
        """Both ways: from the node to the scheduler, and back."""
        self.turn += 1
        self.record("node0001", f"20.40.{self.turn}")
        self.one.look()
        self.wait_published(f"20.40.{self.turn}")
        self.one.wait_delivered()
        self.equal(self.one)


class Upgrade(Case):
    def test_nodes_first(self):
        """And back, as somebody may; then with a server."""
        new = lab.program("fabricd")
        for binary in (new, self.before, new):
            self.restart(self.one, binary)
            self.check()
        with open(self.one.conf, "a", encoding="utf-8") as file:
            file.write("[node]\nserve = yes\n")
        self.restart(self.one, new)
        for scheduler in (self.before, new):
            self.restart(self.scheduler, scheduler)
            self.check()
            self.assertEqual(test_node.facts(self.tool(self.one, "register")), test_node.facts(self.tool(self.scheduler, "register")))

    def test_the_scheduler_first(self):
        for daemon in (self.scheduler, self.one):
            self.restart(daemon, lab.program("fabricd"))
            self.check()


if __name__ == "__main__":
    unittest.main()
