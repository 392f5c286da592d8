"""The examples of README.md are what fabricctl prints: its lines that stand there, in their order. Those of its man page are run."""
import os
import re
import shlex
import unittest

import sim
from sim import lab


def examples():
    """[command, [line]] of each block that begins with a prompt."""
    with open(os.path.join(lab.ROOT, "README.md"), encoding="utf-8") as file:
        blocks = re.findall(r"(?m)^    \$ (fabricctl .*)\n((?:    (?!\$).*\n)+)", file.read())
    return [(command, [line[4:] for line in text.splitlines()]) for command, text in blocks]


class Readme(unittest.TestCase):
    def test_examples(self):
        site = sim.Site("fattree2:8,4,8")
        self.addCleanup(site.free)
        site.advance(2 * 86400)
        site.rate("leaf5", site.cable("leaf5", "spine2"), 4, "EDR")
        site.guid("node0013", 0xb8599f0300fa0000)
        site.move("node0007", 1, "leaf3", 20)
        site.refresh()
        found = examples()
        self.assertEqual([command.split()[1] for command, _ in found], ["export", "place", "check", "history"])
        for command, lines in found:
            with self.subTest(command):
                shown = site.ctl(*shlex.split(command)[1:]).stdout.splitlines()
                at = 0
                for line in lines:
                    self.assertIn(line.rstrip(), [one.rstrip() for one in shown[at:]], "\n".join(shown))
                    at += [one.rstrip() for one in shown[at:]].index(line.rstrip()) + 1


class Manual(unittest.TestCase):
    def test_examples(self):
        with open(os.path.join(lab.ROOT, "docs", "fabricctl.1"), encoding="utf-8") as file:
            found = re.findall(r"(?m)^(?:\.Dl )?[$#] fabricctl ([^|\n]*)", file.read())
        self.assertGreater(len(found), 10)
        site = sim.Site("fattree2:8,2,4")
        self.addCleanup(site.free)
        for text in found:
            with self.subTest(text):
                words = [os.path.join(lab.tmpdir(), "out") if word.startswith("/") else word for word in shlex.split(text)]
                done = site.ctl(*words)
                # 1: there is no such finding, and no node to scan
                self.assertIn(done.returncode, (0, 1) if words[0] in ("ack", "refresh", "where") else (0,), done.stderr)


if __name__ == "__main__":
    unittest.main()
