"""A node of the version before, whose nodes delivered over PMIx: the scheduler of this version says what to do.

FABRICD_BEFORE names a fabricd of the version before; without it `./dev test --all` builds one of the commit below, where
that is in this clone.
"""
import functools
import os
import unittest

import lab
import test_node

BEFORE = "6193f239"  # the last whose nodes delivered over PMIx


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


class Upgrade(test_node.Case):
    @classmethod
    def setUpClass(cls):
        cls.before = before()
        super().setUpClass()

    def test_the_scheduler_first(self):
        """The old node hears what to do; upgraded, with its old setting, it says so itself; then it delivers."""
        node = self.node(start=False, firmware="20.31.1014", scheduler=self.scheduler.uri())
        node.binary = self.before
        node.start(wait=False)
        node.logged("upgrade fabricd on this node, and set scheduler = HOST there")
        self.assertEqual(node.stop(), 0)
        node.binary = lab.program("fabricd")
        done = node.run_once("--foreground")
        self.assertEqual(done.returncode, 2)
        self.assertIn("give the scheduler's host, as scheduler = HOST or HOST:PORT", done.stderr)
        with open(node.conf, encoding="utf-8") as file:
            text = file.read().replace(self.scheduler.uri(), test_node.SCHEDULER)
        lab.replace_file(node.conf, text)
        node.start()
        node.wait_delivered()
        self.wait_published("20.31.1014")


if __name__ == "__main__":
    unittest.main()
