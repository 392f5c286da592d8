"""The probe `hwloc`: recorded machines, machines made up, damaged ones, and this one."""
import glob
import json
import os
import random
import subprocess
import tempfile
import unittest

import hwloc_machines
import lab

DATA = os.path.join(lab.ROOT, "test", "data", "hwloc")
# Machines of other people that may lie beside the project; compared in addition.
MORE = os.environ.get("FABRICD_HWLOC_MACHINES",
                      os.path.join(os.path.dirname(lab.ROOT), "shared", "data", "hwloc"))


def run(*args, **environment):
    # hwloc's own words for a damaged file are no concern of ours
    return subprocess.run([lab.program("scan_dump"), *args], capture_output=True, text=True, check=False,
                          timeout=lab.HUNG, env=os.environ | environment)


def look(spec, runner=None, **environment):
    """The items that the probe reports, without their source."""
    done = (runner or run)(spec, **environment)
    if done.returncode != 0:
        raise AssertionError(f"{spec}: {done.stderr}")
    items = json.loads(done.stdout)["items"]
    for item in items:
        assert item.pop("source") == "hwloc"
    return items


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def ordered(items):
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


@unittest.skipUnless(lab.probe_built("hwloc"), "the probe hwloc is not built")
class Hwloc(unittest.TestCase):
    maxDiff = None

    def compare(self, path):
        wanted = ordered(hwloc_machines.expect(read(path)))
        self.assertEqual(ordered(look("hwloc:" + path)), wanted)
        self.assertGreater(len(wanted), 0)


class Recorded(Hwloc):
    def test_every_attribute(self):
        for path in [os.path.join(DATA, name) for name in ("switches.xml", "places.xml", "odd.xml")] + sorted(glob.glob(os.path.join(MORE, "*.xml"))):
            with self.subTest(os.path.basename(path)):
                self.compare(path)

    def test_processors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "machine.xml")
            for interleaved, cpus in ((False, ("0-11,24-35", "12-23,36-47")), (True, ("0-46:2", "1-47:2"))):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(hwloc_machines.two_sockets(interleaved=interleaved))
                self.compare(path)
                self.assertEqual({item["name"]: (item["numa"], item["cpus"], item["package-cpus"])
                                  for item in look("hwloc:" + path)},
                                 {f"mlx5_{n}": (str(n // 2), cpus[n // 2], cpus[n // 2]) for n in range(4)})

    def test_by_environment(self):
        path = os.path.join(DATA, "switches.xml")
        self.assertEqual(look("hwloc", HWLOC_XMLFILE=path), look("hwloc:" + path))
        self.assertEqual(look("hwloc:" + path, HWLOC_XMLFILE="/nonexistent"), look("hwloc:" + path))
        done = run("hwloc", HWLOC_XMLFILE="/nonexistent")  # hwloc would take this host instead
        self.assertEqual(done.returncode, 1)
        self.assertIn("hwloc: /nonexistent: No such file or directory", done.stderr)

    def test_made_up(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "machine.xml")
            switches = devices = 0
            for seed in range(240 if lab.ALL else 24):
                with self.subTest(seed):
                    text, built = hwloc_machines.machine(seed)
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
                    wanted = hwloc_machines.expect(text)
                    if wanted:
                        self.assertEqual(ordered(look("hwloc:" + path)), ordered(wanted))
                    for item in wanted:
                        self.assertEqual(item.get("switch"), built.get(item.get("pci")))
                    devices += len(wanted)
                    switches += sum("switch" in item for item in wanted)
            self.assertGreater(devices, 150)
            self.assertGreater(switches, 30)


class Places(Hwloc):
    """By hand, so that a mistake in the expectations is noticed."""

    def items(self, name):
        return {item.get("name") or item.get("interface"): item for item in look("hwloc:" + os.path.join(DATA, name))}

    def test_switches(self):
        items = self.items("switches.xml")
        switch = {name: item.get("switch") for name, item in items.items()}
        # one switch, and one behind it
        self.assertEqual({switch[name] for name in ("mlx5_0", "mlx5_1", "mlx5_2", "ib0", "ens1f1")}, {"0000:01:00:00"})
        # two functions of a card in a slot; two chips behind the bridge of a card
        self.assertEqual({switch[name] for name in ("eno1", "eno2", "ens5f0", "ens5f1")}, {None})
        # no root port is seen
        self.assertEqual({switch["mlx5_3"], switch["eth3"]}, {"0000:80:01:00"})

    def test_numa_and_package(self):
        items = self.items("places.xml")
        self.assertEqual({name: (item.get("numa"), item.get("package")) for name, item in items.items()}, {
            "near": ("0", "0"),       # the half of a package
            "package": (None, "0"),   # two NUMA nodes of different processors
            "memories": ("2", "1"),   # three memories of the same ones
            "anywhere": (None, None), "wlan0": (None, None), "usb0": (None, None), "veth0": (None, None),
            "rxe0": (None, None)})
        self.assertEqual({name: item.get("bus") for name, item in items.items() if item.get("bus") != "PCI"},
                         {"usb0": None, "veth0": "virtual", "rxe0": "virtual"})

    def test_ports(self):
        items = self.items("switches.xml")
        self.assertEqual(items["mlx5_0"]["gid"], ["fe80::b859:9f03:fa:1234", "fec0::b859:9f03:fa:1234"])
        self.assertEqual((items["mlx5_0"]["port-guid"], items["mlx5_0"]["slot-speed"]), ("0xb8599f0300fa1234", "252062"))
        self.assertNotIn("port-guid", items["mlx5_1"])  # it would be a MAC
        items = self.items("odd.xml")
        self.assertEqual(items["ib0"]["port-guid"], "0x0002c903000e0b73")
        self.assertNotIn("mac", items["ib0"])


class Refused(Hwloc):
    def test_nothing_to_see(self):
        done = run("hwloc:" + os.path.join(DATA, "no_network.xml"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no network and no RDMA device (not supported)", done.stderr)

    def test_no_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.xml")
            for text in ("", "no machine", "<topology/>", '<?xml version="1.0"?><a></a>', "\0" * 100):
                with self.subTest(text):
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
                    done = run("hwloc:" + path)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn(f"hwloc: {path}: not a machine", done.stderr)
        self.assertIn("No such file", run("hwloc:/nonexistent.xml").stderr)
        self.assertIn("the file of a recorded machine is missing", run("hwloc:").stderr)

    def test_what_hwloc_crashes_on(self):
        """Objects without the sets that hwloc 2.9 counts on; a library that has learned it may read or refuse them."""
        whole = read(os.path.join(DATA, "switches.xml"))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.xml")
            for damage in (("complete_nodeset", "x"), ("complete_cpuset", "x"), (' nodeset="0x00000001"', "")):
                with self.subTest(damage):
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(whole.replace(*damage))
                    done = run("hwloc:" + path)
                    self.assertIn(done.returncode, (0, 1), done.stderr)
                    if done.returncode == 1:
                        self.assertIn(f"hwloc: {path}: ", done.stderr)

    def test_damaged(self):
        """Cut off, and bytes changed: an error or a report, and never a crash. By both of hwloc's parsers."""
        rolls = random.Random(3)
        outcomes = {0: 0, 1: 0}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.xml")
            for round_ in range(450 if lab.ALL else 48):
                whole = read(os.path.join(DATA, rolls.choice(["switches.xml", "places.xml", "odd.xml"])))
                data = bytearray(whole.encode())
                if round_ % 3 == 0:
                    del data[rolls.randrange(len(data)):]
                else:
                    for _ in range(rolls.choice([1, 1, 3, 20])):
                        data[rolls.randrange(len(data))] = rolls.choice(b"0123456789abcdef-<>\"/ \0\xff")
                with open(path, "wb") as file:
                    file.write(data)
                done = run("hwloc:" + path, HWLOC_LIBXML_IMPORT=str(round_ % 2))
                self.assertIn(done.returncode, (0, 1), f"round {round_}: {done.stderr}")
                outcomes[done.returncode] += 1
        self.assertGreater(min(outcomes.values()), 3, outcomes)


def run_here(*args):
    """Without leaks: libpciaccess, which hwloc reads the names of PCI devices with, never frees them."""
    return run(*args, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")


class ThisHost(Hwloc):
    def setUp(self):
        if os.environ.get("HWLOC_XMLFILE"):
            self.skipTest("HWLOC_XMLFILE is set")

    def test_as_lstopo_has_it(self):
        lab.require("lstopo-no-graphics")
        xml = subprocess.run(["lstopo-no-graphics", "--of", "xml"], capture_output=True, text=True, check=True).stdout
        wanted = hwloc_machines.expect(xml)
        if not wanted:
            self.skipTest("this host has no network device that hwloc knows")
        self.assertEqual(ordered(look("hwloc", run_here)), ordered(wanted))

    def test_available(self):
        done = run_here("--available", "hwloc")
        self.assertRegex(done.stdout, r"^(\d+ network interfaces? and \d+ RDMA devices?|hwloc: .*)\n$")


if __name__ == "__main__":
    unittest.main()
