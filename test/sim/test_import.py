"""Fabrics that somebody wrote down: fabricd serves them, follows the file, and stays with what it has when that is broken."""
import os
import unittest

import lab
import sim

LINES = ["host,switch,port,speed", "n1,leaf1,1,200", "n2,leaf1,2,200", "n3,leaf2,1,100", "leaf1,top,,400", "leaf2,top,,400"]
SAID = {
    "nodes": ("\n".join(LINES), "\n".join([*LINES, "n4,leaf2"]), "n4", "n1;leaf1\n", r"/fabric:1:1: a line begins with a host"),
    "slurm": ("SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n3\nSwitchName=top Switches=leaf[1-2]\n",
              "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4]\nSwitchName=top Switches=leaf[1-2]\n", "n4",
              "SwitchName=leaf1 Nodes=n[1-2\n", r"/fabric:1:24: not a list of hosts: character 2: a bracket is not closed"),
    "topograph": ("switches: {top: {switches: [leaf1, leaf2]}}\nblocks: [{switch: leaf1, nodes: ['n[1-2]']}, "
                  "{switch: leaf2, nodes: [n3]}]\n",
                  "switches: {top: {switches: [leaf1, leaf2]}}\nblocks: [{switch: leaf1, nodes: ['n[1-2]']}, "
                  "{switch: leaf2, nodes: [n3, n4]}]\n", "n4", "switches: [", r"/fabric:2:1: not valid YAML: "),
}


class Imports(unittest.TestCase):
    def start(self, probe, path, **config):
        self.site = sim.Site("fattree2:2,1,1", {"fabricd": {"probe": f"{probe}:{path}"}, "changes": {"light_sweep": 1, "debounce": 0}, **config})
        self.addCleanup(self.site.free)
        return self.site

    def served(self):
        return {device["host"]: device["switch"] for device in self.site.ctl_json("devices")}

    def ports(self):
        return {row["host"]: (row["guid"], row["switch_port"]) for row in self.site.ctl_json("devices")}

    def test_followed_and_kept(self):
        for probe, (text, more, host, broken, reason) in SAID.items():
            with self.subTest(probe):
                path = os.path.join(lab.tmpdir(), "fabric")
                lab.replace_file(path, text)
                site = self.start(probe, path)
                self.assertEqual(self.served(), {"n1": "leaf1", "n2": "leaf1", "n3": "leaf2"})
                self.assertGreater(site.ctl_json("cost", "n1", "n3")["cost"], site.ctl_json("cost", "n1", "n2")["cost"])
                ports = self.ports()
                for text, generation, stale in ((more, 2, False), (broken, 2, True), (text, 3, False)):
                    lab.replace_file(path, text)
                    site.advance(3)  # a light sweep sees that the file is another
                    status = site.status()
                    self.assertEqual((status["generation"], status["stale"]), (generation, stale))
                    self.assertIn(host, self.served())  # missing in the end, its place is kept
                    self.assertEqual({name: at for name, at in self.ports().items() if name != host}, ports)
                self.assertRegex(site.log(), reason)
                changes = [change["kind"] for change in site.ctl_json("history") if change["generation"] == 2]
                self.assertTrue(changes)
                self.assertNotIn("moved", " ".join(changes))
                site.free()

    def test_an_old_file_is_a_finding(self):
        path = os.path.join(lab.tmpdir(), "fabric")
        lab.replace_file(path, SAID["slurm"][0])
        os.utime(path, (1000, 1000))
        site = self.start("slurm", path, check={"capture_seconds": 3600})
        self.assertRegex(site.ctl("check").stdout, f"old-capture .*{path}")

    def test_refused_before_it_runs(self):
        site = self.start("slurm", "/dev/null")
        for probe in ("slurm", "topograph", "nodes", "opensm-lst"):
            done = site.fabricd("--check-config", "--probe", probe)
            self.assertEqual(done.returncode, 2)
            self.assertIn("needs a colon and the path of a file", done.stderr)


if __name__ == "__main__":
    unittest.main()
