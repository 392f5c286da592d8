"""Exports that fabricd keeps right, as real processes: fabricctl writes the file, the site's command is told of it, and one that hangs is
ended with all that it started. test/sim/test_kept_exports.py has the rest, test_slurm_topology.py has them in the service."""
import os
import unittest

import lab
import test_hooks

FILE = "topology.conf"


class Kept(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "capture")
        self.text = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.capture, self.text)
        self.folder = os.path.join(self.dir, "exports")
        self.file, self.told = os.path.join(self.folder, FILE), os.path.join(self.dir, "told")

    def start(self, body, deadline=60):
        command = test_hooks.script(self.dir, "command", body)
        self.daemon = lab.Fabricd(config={
            "fabricd": {"probe": f"file:{self.capture}"}, "exports": {"folder": self.folder, "pace": 1, "deadline": deadline},
            "exports.files": {FILE: "slurm-tree --plane ib0"}, "exports.commands": {FILE: command}})
        self.addCleanup(self.daemon.stop)

    def wait_export(self, **wanted):
        def said():
            (seen,) = self.daemon.status()["exports"]
            return all(seen[key] == value for key, value in wanted.items()) and seen
        return lab.wait_for(said, 60, f"the export to be {wanted}")

    def test_each_generation_and_the_command_after_a_real_change(self):
        self.start(f'echo $FABRICD_GENERATION $(grep -o "other[0-9]*" {self.file}) >>{self.told}\n')
        self.wait_export(generation=1)
        lab.replace_file(self.capture, self.text.replace('"node0001', '"other0001'))
        self.wait_export(generation=self.daemon.refresh()["generation"])
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.daemon.ctl("export", "slurm-tree", "--plane", "ib0").stdout)
        with open(self.told, encoding="utf-8") as file:
            self.assertEqual(file.read(), "1\n2 other0001\n")

    def test_a_command_that_hangs_is_ended_with_all_it_started(self):
        self.start(f"sleep 300 & echo $! >{self.told}; wait", deadline=1)
        self.wait_export(why=f"command of export {FILE}: not done after 1 s, killed")
        with open(self.told, encoding="utf-8") as file:
            self.assertTrue(lab.Held(int(file.read())).ended())


if __name__ == "__main__":
    unittest.main()
