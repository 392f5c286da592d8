"""OpenPMIx's own examples of a scheduler and of a process that knows where it is, built from the folder test/simple of its
sources that FABRICD_PMIX_EXAMPLES names: with the components they find the fabric.

Calls like theirs: test_launch_host.py (stock_simple.c), test_endpoints.py (stock_endpoints.c).
"""
import os
import re
import socket
import subprocess
import unittest

import lab
import news
import test_endpoints
import test_pnet

FOLDER = os.environ.get("FABRICD_PMIX_EXAMPLES", "")
HEADERS = os.path.join(lab.BUILD, "libpmixfab", "pmix-headers")  # the public ones where the private ones look for them


class Examples(test_endpoints.Starters):
    def build(self, name):
        if not os.path.isfile(os.path.join(FOLDER, name)):
            self.skipTest("FABRICD_PMIX_EXAMPLES names no folder test/simple of OpenPMIx's sources")
        lab.require("cc", "pkg-config")
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            lines = [line for line in file if 'putenv("PMIX_MCA_pnet' not in line]  # a component of its own that invents a fabric
        path = os.path.join(lab.tmpdir(), name)
        lab.replace_file(path, "".join(lines))
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "pmix"], capture_output=True, text=True, check=True)
        done = lab.run(["cc", "-D_GNU_SOURCE", "-w", "-I", HEADERS, "-I", FOLDER, path, "-o", path[:-2], *flags.stdout.split()])
        self.assertEqual(done.returncode, 0, done.stderr)
        return path[:-2]

    def test_scheduler(self):
        program = self.build("simpsched.c")
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:4,2,4", "capture").replace("node0007", socket.gethostname()))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        self.addCleanup(daemon.stop)
        done = lab.run([program], env=test_pnet.environment(daemon.rundir, PMIX_MCA_pmdl_fabricd_rundir=daemon.rundir))
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ("Fabric vendor: Mellanox", "Number of fabric vertices: 16", "\tpmix.fabdev:", "Test finished OK!"):
            self.assertIn(line, done.stderr)

    def test_process(self):
        program, out = self.build("simpcoord.c"), os.path.join(lab.tmpdir(), "out")
        node = self.start(PMIX_MCA_pmdl_fabricd_rundir=self.daemon.rundir)
        self.assertTrue(node.say(f"app j {self.app} !endpts=1").startswith("SUCCESS"))
        script = os.path.join(lab.tmpdir(), "script")
        lab.replace_file(script, f"#!/bin/sh\nexec {program} >{out} 2>&1\n")
        os.chmod(script, 0o755)
        for line in (self.register, "local j", f"run j 0 {script} nothing"):
            self.assertEqual(node.say(line), "SUCCESS")

        def said():
            if not os.path.exists(out):
                return ""
            with open(out, encoding="utf-8", errors="replace") as file:
                return file.read()
        news.until_file(out, lambda: "Finalize" in said(), "the example to end")
        device, = [one for one in self.daemon.ctl_json("devices") if one["host"] == "node0001"]
        self.assertIn("was assigned 1 endpts", said())
        self.assertIn(f"ASSIGNED ENDPTS: {device['id']}", said())
        self.assertRegex(said(), re.escape(f"COORD VIEW LOGICAL DIMS 3: {','.join(map(str, device['logical']))}"))


if __name__ == "__main__":
    unittest.main()
