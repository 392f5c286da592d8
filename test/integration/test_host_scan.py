"""A host looks at itself: fabricd --record, which runs the local probes as a daemon does, and the files it writes."""
import glob
import json
import os
import shutil
import subprocess
import unittest

import lab

MACHINE = {"host": "node7", "items": [
    {"source": "verbs", "name": "mlx5_0", "port": "1", "node-guid": "0x0002c90300001000", "firmware": "20.31.1014",
     "gid": ["fe80::2:c903:0:1001", "fd00::1"], "state": "up"},
    {"source": "verbs", "name": "mlx5_1", "port": "1", "node-guid": "0x0002c90300002000", "state": "down"},
    {"source": "libfabric", "name": "mlx5_0", "provider": ["verbs", "verbs;ofi_rxm"]},
    {"source": "ucx", "name": "mlx5_0", "port": "1", "transport": ["rc_mlx5", "ud_mlx5"],
     "estimates": {"bandwidth": "98000", "latency": "600"}},
    {"source": "ethernet", "interface": "ens1f0", "mac": "00:21:5e:c4:86:1a", "address": ["10.91.0.2/16"]},
    {"source": "lldp", "interface": "ens1f0", "switch-name": "leaf1", "switch-port": "Ethernet12"},
]}
SOURCES = sorted({item["source"] for item in MACHINE["items"]})


def normal(record):
    """A record in which the order of items and texts says nothing."""
    return sorted(json.dumps({key: sorted(value) if isinstance(value, list) else value for key, value in item.items()},
                             sort_keys=True) for item in record["items"])


def modules():
    """The folder of the modules of this build, and their names."""
    found = glob.glob(os.path.join(lab.BUILD, "lib*", "**", "fabricd", "probe_*.so"), recursive=True)
    return {os.path.basename(path)[len("probe_"):-len(".so")]: path for path in found}


class Record(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        self.path = os.path.join(self.dir, "machine.json")
        lab.replace_file(self.path, json.dumps(MACHINE))
        self.built = [source for source in SOURCES if source in modules()]

    def record(self, *args, to="-", binary=None, **options):
        conf = os.path.join(self.dir, "fabricd.conf")
        lab.replace_file(conf, lab.ini({"fabricd": {"host": "node7"}, **options}))
        return lab.run([binary or lab.program("fabricd"), "--config", conf, "--record", to, *args],
                       env=dict(os.environ, **lab.sanitizer_env()), cwd=self.dir)

    def test_there_and_back(self):
        if not self.built:
            self.skipTest("no module is built")
        want = {"items": [item for item in MACHINE["items"] if item["source"] in self.built]}
        path = self.path
        for i in range(2):  # the second is the record of a record
            written = os.path.join(self.dir, f"again{i}.json")
            done = self.record(*(f"--probe={source}:{path}" for source in self.built), to=written)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            with open(written, encoding="utf-8") as file:
                got = json.load(file)
            self.assertEqual(got["host"], "node7")
            self.assertEqual(normal(got), normal(want))
            path = written
        if len(self.built) > 1:  # a probe that fails costs its own facts
            first, *rest = self.built
            done = self.record(f"--probe={first}:/nowhere.json", *(f"--probe={source}:{self.path}" for source in rest))
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, f"warning: scan {first}: .*/nowhere.json")
            want = {"items": [item for item in MACHINE["items"] if item["source"] in rest]}
            self.assertEqual(normal(json.loads(done.stdout)), normal(want))

    def test_this_machine(self):
        done = self.record()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(" error: ", done.stderr)
        got = json.loads(done.stdout)
        self.assertEqual(got["host"], "node7")
        if "ethernet" in modules():
            interfaces = {item["interface"] for item in got["items"] if item["source"] == "ethernet"}
            self.assertTrue(interfaces <= set(os.listdir("/sys/class/net")), interfaces)

    def test_modules_that_are_not_there_or_none(self):
        """As of a build without their libraries, and as of one that was damaged."""
        binary = os.path.join(self.dir, "prefix", "bin", "fabricd")
        os.makedirs(os.path.dirname(binary))
        shutil.copy(lab.program("fabricd"), binary)
        done = self.record(binary=binary)
        self.assertEqual((done.returncode, json.loads(done.stdout)["items"]), (0, []))
        self.assertIn("info: scan verbs: probe verbs: not built in: there is no ", done.stderr)
        if "ethernet" not in modules():
            return
        place = os.path.join(self.dir, "prefix", os.path.relpath(os.path.dirname(modules()["ethernet"]), lab.BUILD))
        os.makedirs(place)
        shutil.copy(modules()["ethernet"], os.path.join(place, "probe_verbs.so"))  # another one under this name
        lab.replace_file(os.path.join(place, "probe_ucx.so"), "no library")
        done = self.record(f"--probe=verbs:{self.path}", f"--probe=ucx:{self.path}", binary=binary)
        self.assertEqual((done.returncode, json.loads(done.stdout)["items"]), (0, []))
        self.assertRegex(done.stderr, "info: scan verbs: probe verbs: .* is not a probe of this name")
        self.assertRegex(done.stderr, "info: scan ucx: probe ucx: .*probe_ucx.so: ")

    def test_where_it_cannot_be_written(self):
        for place in ("/nowhere/record.json", "/dev/full", self.dir):
            done = self.record("--probe=ethernet", to=place)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, f"error: {place}: cannot be written: ")
        reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
        reader.wait()
        done = subprocess.run([lab.program("fabricd"), "--record", "-", "--probe=ethernet"], stdout=reader.stdin,
                              stderr=subprocess.PIPE, text=True, timeout=lab.HUNG, check=False,
                              env=dict(os.environ, **lab.sanitizer_env()))
        reader.stdin.close()
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_its_child_alone(self):
        for args, status in (([], 2), (["1", "ethernet", "node1"], 1)):  # usage; and it is no child of a fabricd
            done = lab.run([lab.program("fabricd"), "--host-scan-child", *args])
            self.assertEqual((done.returncode, done.stdout), (status, ""))


if __name__ == "__main__":
    unittest.main()
