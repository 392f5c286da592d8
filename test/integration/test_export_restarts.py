"""Exports of all formats of a discovered fabric stay as they are: from whichever host it is discovered, and whatever its ports count.
test/sim/test_export_restarts.py has the rest."""
import os
import re
import unittest

import lab
from test_configuration import FORMATS

EXPORTS = FORMATS.split(", ")


class Exports(unittest.TestCase):
    def setUp(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric("fattree3:4"))
        self.addCleanup(self.sim.quit)
        self.sim.sweep()
        self.folder = lab.tmpdir()
        self.daemon = lab.Fabricd(self.sim)
        self.addCleanup(self.daemon.stop)

    def write(self, name, *more):
        done = self.daemon.ctl("export", name, "-o", os.path.join(self.folder, name), *more)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.returncode

    def unchanged(self):
        """They say the same, and nobody has touched them."""
        files = {entry.name: lab.stamp(entry.path) for entry in os.scandir(self.folder)}
        self.assertEqual([name for name in EXPORTS if self.write(name, "--if-changed") != 3], [])
        self.assertEqual({entry.name: lab.stamp(entry.path) for entry in os.scandir(self.folder)}, files)

    def test_a_discovered_fabric(self):
        for name in EXPORTS:
            self.assertEqual(self.write(name), 0)
        for host in self.sim.hosts if lab.ALL else self.sim.hosts[-1:]:  # it is discovered from there
            self.daemon.stop()
            with open(self.daemon.conf, encoding="utf-8") as file:
                text = file.read()
            lab.replace_file(self.daemon.conf, re.sub(r"(?m)^SIM_HOST = .*$", f"SIM_HOST = {host}", text))
            self.daemon.start()
            self.unchanged()
        (leaf, port), *_ = [(link["a"], link["a_port"]) for link in self.daemon.ctl_json("links") if link["a_kind"] == "switch"]
        for count in (7, 70):
            self.sim.command(f'PerformanceSet "{leaf}"[{port}] PortCounters.SymbolErrorCounter={count}')
            self.assertEqual(self.daemon.ctl("counters", leaf).returncode, 0)
        self.assertIn("counters-grow", self.daemon.ctl("check").stdout)
        self.daemon.refresh()
        self.unchanged()


if __name__ == "__main__":
    unittest.main()
