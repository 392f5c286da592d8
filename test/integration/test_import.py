"""Fabrics that somebody wrote down: fabricd serves them, follows the file, and stays with what it has when that is broken."""
import os
import unittest

import lab

LINES = ["host,switch,port,speed", "n1,leaf1,1,200", "n2,leaf1,2,200", "n3,leaf2,1,100", "leaf1,top,,400", "leaf2,top,,400"]
SAID = {
    "nodes": ("\n".join(LINES), "\n".join([*LINES, "n4,leaf2"]), "n4", "n1;leaf1\n", r"/fabric:1:1: a line begins with a host"),
    "slurm": ("SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n3\nSwitchName=top Switches=leaf[1-2]\n",
              "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4]\nSwitchName=top Switches=leaf[1-2]\n", "n4",
              "SwitchName=leaf1 Nodes=n[1-2\n", r"/fabric:1:24: not a list of hosts: character 2: a bracket does not close"),
    "topograph": ("switches: {top: {switches: [leaf1, leaf2]}}\nblocks: [{switch: leaf1, nodes: ['n[1-2]']}, "
                  "{switch: leaf2, nodes: [n3]}]\n",
                  "switches: {top: {switches: [leaf1, leaf2]}}\nblocks: [{switch: leaf1, nodes: ['n[1-2]']}, "
                  "{switch: leaf2, nodes: [n3, n4]}]\n", "n4", "switches: [", r"/fabric:2:1: this is no YAML: "),
}


class Imports(unittest.TestCase):
    def served(self, daemon):
        return {device["host"]: device["switch"] for device in daemon.ctl_json("devices")}

    def test_followed_and_kept(self):
        for probe, (text, more, host, broken, reason) in SAID.items():
            with self.subTest(probe):
                path = os.path.join(lab.tmpdir(), "fabric")
                lab.replace_file(path, text)
                daemon = lab.Fabricd(config={"fabricd": {"probe": f"{probe}:{path}"}, "changes": {"light_sweep": 1, "debounce": 0}})
                self.assertEqual(self.served(daemon), {"n1": "leaf1", "n2": "leaf1", "n3": "leaf2"})
                self.assertEqual(daemon.ctl_json("cost", "n1", "n3")["cost"] > daemon.ctl_json("cost", "n1", "n2")["cost"], True)
                ports = {row["host"]: (row["guid"], row["switch_port"]) for row in daemon.ctl_json("devices")}
                lab.replace_file(path, more)
                daemon.until("generation", generation=2)
                self.assertIn(host, self.served(daemon))
                after = {row["host"]: (row["guid"], row["switch_port"]) for row in daemon.ctl_json("devices")}
                after.pop(host)
                self.assertEqual(after, ports)
                changes = [change["kind"] for change in daemon.ctl_json("history") if change["generation"] == 2]
                self.assertTrue(changes)
                self.assertNotIn("moved", " ".join(changes))
                lab.replace_file(path, broken)
                daemon.until_status(lambda status: status["stale"], "sweep")
                self.assertIn(host, self.served(daemon))
                self.assertRegex(daemon.log(), reason)
                lab.replace_file(path, text)
                daemon.until_status(lambda status: not status["stale"], "sweep")
                daemon.stop()

    def test_an_old_file_is_a_finding(self):
        path = os.path.join(lab.tmpdir(), "fabric")
        lab.replace_file(path, SAID["slurm"][0])
        os.utime(path, (1000, 1000))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"slurm:{path}"}, "check": {"capture_seconds": 3600}})
        self.assertIn("old-capture", daemon.ctl("check").stdout)
        self.assertIn(path, daemon.ctl("check").stdout)

    def test_refused_before_it_runs(self):
        for probe in ("slurm", "topograph", "nodes", "opensm-lst"):
            done = lab.run([lab.program("fabricd"), "--check-config", "--rundir", lab.tmpdir(), "--store",
                            os.path.join(lab.tmpdir(), "db"), "--probe", probe])
            self.assertEqual(done.returncode, 2)
            self.assertIn("needs a colon and the path of a file", done.stderr)


if __name__ == "__main__":
    unittest.main()
