"""Deliveries through the control socket by other users, and `fabricd --once` of a host. test/sim/test_nodes.py has the rest."""
import json
import os
import unittest

import lab
from machines import CIDR, machine

OUTSIDER = "nobody"


class Nodes(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()

    def record(self, recorded):
        path = os.path.join(self.dir, "machine.json")
        lab.replace_file(path, json.dumps(recorded))
        return path

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_who_may(self):
        lab.require("setpriv")
        capture = os.path.join(self.dir, "fabric.txt")
        lab.replace_file(capture, lab.fabric("fattree2:4,2,4", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}", "host": "scheduler"},
                                     "ethernet": {"storage": CIDR}, "nodes": {"user": OUTSIDER}})
        self.addCleanup(daemon.stop)
        done = lab.run(["sh", "-c", f"'{lab.program('report_tool')}' '{self.record(machine(1))}' | base64 -w0"])
        self.assertEqual(done.returncode, 0, done.stderr)
        code = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
                "s.sendall(sys.stdin.buffer.read()+b'\\n')\nprint(s.makefile().readline())")
        request = os.path.join(self.dir, "request")
        for user, op, good in ((OUTSIDER, "deliver", True), ("daemon", "deliver", False), (OUTSIDER, "forget", False)):
            lab.replace_file(request, json.dumps({"op": op, "bytes": done.stdout, "host": "node0001"}))
            with open(request, encoding="utf-8") as file:
                asked = lab.run(["setpriv", f"--reuid={user}", "--clear-groups", "/usr/bin/python3", "-c", code,
                                 os.path.join(daemon.rundir, "control.sock")], stdin=file)
            self.assertEqual(json.loads(asked.stdout)["ok"], good, (user, op, asked.stdout, asked.stderr))
        daemon.wait_ready(2)
        self.assertEqual([plane["name"] for plane in daemon.ctl_json("planes")], ["ib0", "storage"])

    def test_once(self):
        path = self.record(machine(1, host="scheduler"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": [f"verbs:{path}"], "host": "scheduler"}}, start=False)
        done = daemon.run_once()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(os.path.join(daemon.rundir, "unattached.snap")))
        os.unlink(path)
        self.assertEqual(daemon.run_once().returncode, 1)  # the only probe failed


if __name__ == "__main__":
    unittest.main()
