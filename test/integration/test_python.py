"""A tool in Python, with the PMIx bindings that Debian ships, reads the same facts."""
import json
import os
import subprocess
import sys
import unittest

import conforms
import fabric_text
import lab

PMIX_ERR_NOT_FOUND = -46


class Bindings(conforms.Shows):
    def setUp(self):
        found = subprocess.run([sys.executable, "-c", "import pmix"], capture_output=True, check=False)
        if found.returncode != 0:
            raise unittest.SkipTest("the Python bindings of PMIx are not installed (Debian: python3-pmix)")
        text = lab.fabric("fattree2:4,2,4", "capture")
        for spine in ("spine1", "spine2"):
            text = fabric_text.without_cables(text, "leaf1", spine)
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, text)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        self.addCleanup(self.daemon.stop)

    def tool(self, *args):
        done = lab.run([sys.executable, os.path.join(lab.HERE, "python_tool.py"), self.daemon.uri(), *args],
                       env=self.daemon.tool_env())
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check(self, told, call, plane):
        """A call gives what fabricctl says of the plane."""
        status, infos = told[call]
        self.shows_call(f"PMIx_Fabric_{call}", call, (status, infos.get("pmix.fab.plane")), (0, plane["name"]), "tool")
        shape = {"type": 14, "array": plane["shape"]}  # 14: PMIX_UINT32
        self.shows_keys(infos, {f"PMIX_FABRIC_{name}": value for name, value in {
            "PLANE": plane["name"], "VENDOR": plane["vendor"], "IDENTIFIER": plane["identifier"], "NUM_DEVICES": plane["devices"],
            "INDEX": plane["index"], "DIMS": plane["dims"], "SHAPE": shape,
            "SHAPE_STRING": "x".join(map(str, plane["shape"]))}.items()}, "register", "tool")

    def test_the_same_facts(self):
        planes = self.daemon.ctl_json("planes")
        switches = [switch["id"] for switch in self.daemon.ctl_json("switches")]
        devices = {device["host"]: device for device in self.daemon.ctl_json("devices")}
        for plane in planes:
            told = self.tool(plane["name"])
            groups = self.daemon.ctl_json("groups", "--plane", plane["name"])
            self.check(told, "register", plane)
            self.check(told, "update", plane)
            self.assertEqual(told["planes"], [0, {"pmix.fab.plane": {"type": 3, "array": ["ib0", "ib1"]}}])
            self.assertEqual(told["switches"], [0, {"pmix.fab.switch": {"type": 3, "array": switches}}])
            self.assertEqual(told["dims"], [0, {"pmix.fab.dims": plane["dims"]}])
            self.assertEqual(told["groups"], [0, {"pmix.fab.grps": ";".join(
                f"{group['group']}:{','.join(group['hosts'])}" for group in groups)}])
            self.assertEqual(told["index"], [0, {"pmix.fabdev.idx": devices["node0006"]["index"]}])
            self.assertEqual(told["nothing"], [PMIX_ERR_NOT_FOUND, {}])


if __name__ == "__main__":
    unittest.main()
