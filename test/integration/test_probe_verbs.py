"""The probe `verbs` against a stand-in for libibverbs that describes hosts we do not have, and the real library here."""
import json
import os
import subprocess
import tempfile
import unittest

import hwloc_machines
import lab
import verbs_machines as vm

STANDIN = os.path.join(lab.BUILD, "lib", "standin")


def start(args, machine=None, **options):
    environment = dict(os.environ)
    if machine is not None:
        environment |= {"LD_LIBRARY_PATH": STANDIN, "STANDIN_VERBS": machine}
        options["cwd"] = os.path.dirname(machine)  # a program that crashes may write a core
    return subprocess.run(args, capture_output=True, text=True, check=False, env=environment, **options)


def run(*args, machine=None, timeout=60):
    return start([lab.program("scan_dump"), *args], machine, timeout=timeout * lab.SLOW)


@unittest.skipUnless(lab.probe_built("verbs") and os.path.isdir(STANDIN), "the probe verbs is not built")
class Verbs(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.host = vm.Host(folder.name)

    def look(self):
        """(items by name and port, notes)"""
        done = run("verbs", machine=self.host.file())
        self.assertEqual(done.returncode, 0, done.stderr)
        items = {}
        for item in json.loads(done.stdout)["items"]:
            self.assertEqual(item.pop("source"), "verbs")
            items[item["name"], item.get("port")] = item
        return items, done.stderr

    def refused(self):
        done = run("verbs", machine=self.host.file())
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stderr


class Generations(Verbs):
    def test_connectx6_of_two_ports(self):
        guids = ["0x98039b0300fa1234", "0x98039b0300fa1235"]
        for number, guid in enumerate(guids):
            pci = f"0000:c1:00.{number}"
            self.host.add(f"mlx5_{number}", [vm.ib_port(guid, 17 + number)], pci, "mlx5_core", "0x15b3", guid=guid,
                          system=guids[0], firmware="20.31.1014", part=0x101b, vendor=0x2c9)
            self.host.interface(pci, f"ib{number}", dev_port=0)
        items, notes = self.look()
        self.assertEqual(items, {(f"mlx5_{number}", "1"): {
            "name": f"mlx5_{number}", "port": "1", "interface": f"ib{number}", "node-guid": guid,
            "system-guid": guids[0], "port-guid": guid, "pci": f"0000:c1:00:0{number}", "bus": "PCI",
            "vendor-id": "0x15b3", "part-id": "0x101b", "driver": "mlx5_core", "firmware": "20.31.1014",
            "type": "InfiniBand", "state": "up", "mtu": "4096", "speed": "200000", "lid": str(17 + number),
            "gid": [vm.gid(guid)]} for number, guid in enumerate(guids)})
        self.assertEqual(notes, "")

    def test_vpi_card_with_both_networks(self):
        """ConnectX-3: one function, two ports, told apart by dev_port (and once by dev_id)."""
        mac = "fe80::202:c9ff:fe0e:b74"
        for numbering in ({"dev_port": 1}, {"dev_id": "0x1"}):
            with self.subTest(numbering), tempfile.TemporaryDirectory() as folder:
                self.host = vm.Host(folder)
                self.host.add("mlx4_0", [vm.ib_port("0x0002c903000e0b73", 0, vm.FDR, state=vm.DOWN),
                                         vm.roce_port([mac, mac, "::", "::ffff:10.91.0.2"], vm.FDR10)],
                              "0000:04:00.0", "mlx4_core", "0x15b3", guid="0x0002c903000e0b72", part=4099)
                self.host.interface("0000:04:00.0", "ib0")
                self.host.interface("0000:04:00.0", "eth1", **numbering)
                items, _ = self.look()
                down, up = items["mlx4_0", "1"], items["mlx4_0", "2"]
                self.assertEqual((down["state"], down["interface"], down["type"], down["port-guid"]),
                                 ("down", "ib0", "InfiniBand", "0x0002c903000e0b73"))
                for absent in ("speed", "mtu", "lid"):  # of a port that is down
                    self.assertNotIn(absent, down)
                self.assertEqual((up["state"], up["interface"], up["type"], up["speed"], up["mtu"]),
                                 ("up", "eth1", "Ethernet", "40000", "1024"))
                self.assertEqual(up["gid"], ["::ffff:10.91.0.2", mac])
                self.assertNotIn("port-guid", up)  # that is a MAC in disguise
                self.assertNotIn("system-guid", up)

    def test_interface_by_gid(self):
        self.host.add("siw0", [vm.roce_port(["2::1"], ndev="lo")], transport=vm.IWARP, node=vm.RNIC)
        self.host.add("rxe0", [vm.roce_port(["fe80::5054:ff:fe12:3456"])], guid="0x505400fffe123456")
        self.host.parent("rxe0", "eth0")
        items, _ = self.look()
        self.assertEqual((items["siw0", "1"]["interface"], items["rxe0", "1"]["interface"]), ("lo", "eth0"))
        for item in items.values():
            self.assertEqual((item["bus"], item["software"], item["type"]), ("virtual", "yes", "Ethernet"))
            self.assertNotIn("pci", item)
            self.assertNotIn("part-id", item)

    def test_omni_path(self):
        self.host.add("hfi1_0", [vm.ib_port("0x0011750101791234", 0xbfff, vm.EDR)], "10000:05:00.0", "hfi1", "0x8086",
                      guid="0x0011750101791234", part=0x24f0, vendor=0x1175, firmware="1.27.0")
        item = self.look()[0]["hfi1_0", "1"]
        self.assertEqual((item["speed"], item["lid"], item["pci"], item["vendor-id"], item["driver"]),
                         ("100000", "49151", "10000:05:00:00", "0x8086", "hfi1"))
        self.assertNotIn("interface", item)

    def test_drivers_that_say_little(self):
        """No link layer, old operations only, zeros; an iWARP card of that time; usNIC is neither of the two."""
        port = vm.ib_port("0x0005ad0000012345", 3, vm.SDR) | {"link": 0}
        self.host.add("mthca0", [port], tree=False, old=True, guid="0x0005ad0000012344")
        self.host.add("cxgb3_0", [vm.roce_port(["7:4301:e7f::"]) | {"link": 0}], tree=False, transport=vm.IWARP,
                      node=vm.RNIC)
        self.host.add("usnic_0", [vm.roce_port(["fe80::1"]) | {"link": 0}], tree=False, transport=vm.USNIC)
        items, notes = self.look()
        self.assertEqual(items["mthca0", "1"], {
            "name": "mthca0", "port": "1", "node-guid": "0x0005ad0000012344", "port-guid": "0x0005ad0000012345",
            "type": "InfiniBand", "state": "up", "mtu": "4096", "speed": "10000", "lid": "3",
            "gid": [vm.gid("0x0005ad0000012345")]})
        self.assertEqual(items["cxgb3_0", "1"]["type"], "Ethernet")
        self.assertNotIn("type", items["usnic_0", "1"])
        self.assertEqual(notes, "")

    def test_no_ports_and_many_gids(self):
        self.host.add("mlx5_0", [], guid="0x98039b0300fa1234", tree=False)
        self.host.add("mlx5_1", [vm.roce_port([f"2001:db8::{n // 2 + 1:x}" for n in range(256)])], tree=False)
        items, notes = self.look()
        self.assertEqual(items["mlx5_0", None], {"name": "mlx5_0", "node-guid": "0x98039b0300fa1234"})
        self.assertEqual(sorted(items["mlx5_1", "1"]["gid"], key=lambda gid: int(gid[10:], 16)),
                         [f"2001:db8::{n + 1:x}" for n in range(32)])
        self.assertEqual(notes, "note: mlx5_1: more than 32 GIDs; only the first ones are reported\n")


class Numbers(Verbs):
    def test_speeds_states_and_mtus(self):
        """Also 800 Gbit/s, which only the kernel's text says, and 1 Gbit/s, for which verbs has no word."""
        rows = [(vm.ib_port("0x1", 1, vm.FDR, vm.X4), "56000"), (vm.ib_port("0x1", 1, vm.HDR, vm.X2), "100000"),
                (vm.ib_port("0x1", 1, 3, vm.X4), None), (vm.ib_port("0x1", 1, vm.EDR, 3), None),
                (vm.ib_port("0x1", 1, vm.NDR, rate="800 Gb/sec (4X XDR)"), "800000"), (vm.ib_port("0x1", 1, vm.NDR, rate="rubbish"), "400000"),
                (vm.roce_port(["fe80::1"], vm.EDR, vm.X1), "25000"), (vm.roce_port(["fe80::1"], vm.FDR10, vm.X1), "10000"),
                (vm.roce_port(["fe80::1"], vm.SDR, vm.X1), None)]
        states = [vm.ib_port("0x1", 1, state=state) | {"mtu": state} for state in range(8)]
        mtus = [vm.ib_port("0x1", 1) | {"mtu": number} for number in range(8)]
        self.host.add("mlx5_0", [port for port, _ in rows] + states + mtus, "0000:01:00.0", "mlx5_core")
        items, _ = self.look()
        items = [items["mlx5_0", str(number + 1)] for number in range(len(items))]
        self.assertEqual([item.get("speed") for item in items[:len(rows)]], [speed for _, speed in rows])
        self.assertEqual([item["state"] for item in items[len(rows):][:8]],
                         ["unknown", "down", "down", "down", "up", "down", "unknown", "unknown"])
        self.assertEqual([item.get("mtu") for item in items[-8:]], [None, "256", "512", "1024", "2048", "4096", None, None])

    def test_the_stock_program_sees_the_same(self):
        """So the stand-in is what the library would be."""
        lab.require("ibv_devinfo")
        guid = "0x98039b0300fa1234"
        self.host.add("mlx5_0", [vm.ib_port(guid, 17)], tree=False, guid=guid, system=guid, firmware="20.31.1014",
                      part=4123)
        out = start(["ibv_devinfo", "-v"], self.host.file()).stdout
        for line in ("hca_id:\tmlx5_0", "fw_ver:\t\t\t\t20.31.1014", "node_guid:\t\t\t9803:9b03:00fa:1234",
                     "vendor_part_id:\t\t\t4123", "PORT_ACTIVE (4)", "port_lid:\t\t17", "active_mtu:\t\t4096 (5)",
                     "4X (2)", "50.0 Gbps (64)", "fe80:0000:0000:0000:9803:9b03:00fa:1234"):
            self.assertIn(line, out)


class Failures(Verbs):
    EACCES, EIO, ENOSYS, ENOMEM = 13, 5, 38, 12

    def devices(self, **of_first):
        self.host.add("mlx5_0", [vm.ib_port("0x1", 1)], tree=False, guid="0x1", **of_first)
        self.host.add("mlx5_1", [vm.ib_port("0x2", 2)], tree=False, guid="0x2")

    def test_a_device_that_cannot_be_opened(self):
        for operation in ("open", "query"):
            with self.subTest(operation):
                self.host.machine["devices"] = []
                self.devices(fails={operation: self.EACCES})
                items, notes = self.look()
                self.assertEqual(list(items), [("mlx5_1", "1")])
                self.assertEqual(notes, f"warning: verbs: mlx5_0: cannot {operation} the device: Permission denied; it is left out\n")

        self.host.machine["devices"] = []
        self.host.add("mlx5_0", [], tree=False, fails={"open": self.EACCES})
        self.assertIn("verbs: mlx5_0: cannot open the device: Permission denied (input or output failed)", self.refused())

    def test_ports_that_cannot_be_asked(self):
        ports = [vm.ib_port("0x1", 1, fails={"query": self.EIO}), vm.ib_port("0x2", 2)]
        for old in (False, True):
            self.host.machine["devices"] = []
            self.host.add("mlx5_0", ports, tree=False, guid="0x9", old=old)
            items, notes = self.look()
            self.assertEqual(list(items), [("mlx5_0", "2")])
            self.assertEqual(notes, "warning: verbs: mlx5_0: cannot query port 1: Input/output error\n")
        self.host.machine["devices"] = []
        self.host.add("mlx5_0", [vm.ib_port("0x1", 1, fails={"query": self.EIO})], tree=False, guid="0x9")
        self.host.add("mlx5_1", [vm.ib_port("0x1", 1, fails={"gid": self.EIO})], tree=False, guid="0x9")
        items, notes = self.look()
        self.assertEqual(list(items), [("mlx5_0", None), ("mlx5_1", "1")])
        self.assertNotIn("gid", items["mlx5_1", "1"])
        self.assertEqual(items["mlx5_1", "1"]["lid"], "1")
        self.assertIn("mlx5_1: port 1: cannot read its GIDs", notes)

    def test_lists_that_fail(self):
        none = "verbs: this host has no usable RDMA device: "
        for how in ({}, {"list": self.ENOSYS}):
            self.host.fails(**how)
            self.assertIn(none, self.refused())
            self.assertIn("(not supported)", self.refused())
        self.host.fails(list=self.ENOMEM)
        self.assertIn("verbs: cannot list the RDMA devices: Cannot allocate memory (out of memory)", self.refused())
        self.host.fails(list=self.EACCES)
        self.assertIn("cannot list the RDMA devices: Permission denied", self.refused())

    def test_hang_and_crash(self):
        """That is why it runs in a child: the stand-in can do both."""
        self.devices(fails={"open": "hang"})
        with self.assertRaises(subprocess.TimeoutExpired):
            run("verbs", machine=self.host.file(), timeout=1 / lab.SLOW)
        self.host.machine["devices"] = []
        self.host.add("mlx5_0", [vm.ib_port("0x1", 1, fails={"query": "crash"})], tree=False)
        self.assertLess(run("verbs", machine=self.host.file()).returncode, 0)

    def test_sysfs_that_makes_no_sense(self):
        self.host.add("mlx5_0", [vm.ib_port("0x1", 1)], "platform-nic", "x" * 300, "vendor", guid="0x1")
        vm.write(f"{self.host.sysfs}/devices/pci0000:00/platform-nic/net/{'n' * 100}/dev_port", "0\n")
        item = self.look()[0]["mlx5_0", "1"]
        self.assertEqual(item["bus"], "PCI")
        for absent in ("pci", "vendor-id", "interface"):
            self.assertNotIn(absent, item)


class BesideHwloc(Verbs):
    """What two sources know of one device they say in the same words, or it could not be joined."""

    SAID_BY_BOTH = ("node-guid", "system-guid", "port-guid", "pci", "bus", "vendor-id", "part-id", "state", "lid")

    def test_the_same_words(self):
        compared = 0
        for seed in range(12):
            wanted = [item for item in hwloc_machines.expect(hwloc_machines.machine(seed)[0]) if "name" in item]
            if not wanted:
                continue
            with self.subTest(seed), tempfile.TemporaryDirectory() as folder:
                self.host = vm.of_hwloc(folder, wanted)
                items, _ = self.look()
                self.assertEqual(sorted(items, key=str), sorted(((item["name"], item.get("port")) for item in wanted),
                                                                key=str))
                for item in wanted:
                    seen = items[item["name"], item.get("port")]
                    for key in self.SAID_BY_BOTH:
                        self.assertEqual(seen.get(key), item.get(key), (key, item, seen))
                    self.assertLessEqual(set(item.get("gid", [])), set(seen.get("gid", [])))
                    self.assertEqual(seen.get("type", "InfiniBand"), item.get("type", seen.get("type", "InfiniBand")))
                    compared += 1
        self.assertGreater(compared, 60)


class Recorded(Verbs):
    def test_a_record_is_a_machine(self):
        guid = "0x98039b0300fa1234"
        self.host.add("mlx5_0", [vm.ib_port(guid, 17), vm.roce_port(["fe80::1", "fe80::2"])], "0000:c1:00.0", "mlx5_core",
                      guid=guid)
        first = run("verbs", machine=self.host.file()).stdout
        path = os.path.join(self.host.folder, "record.json")
        vm.write(path, first)
        self.assertEqual(run("verbs:" + path).stdout, first)


class ThisHost(Verbs):
    def test_without_devices(self):
        if os.path.exists("/sys/class/infiniband"):
            self.skipTest("this host has RDMA devices")
        why = "verbs: this host has no usable RDMA device: /sys/class/infiniband is absent"
        done = run("verbs")
        self.assertEqual(done.returncode, 1)
        self.assertIn(why, done.stderr)
        self.assertIn("(not supported)", done.stderr)
        done = run("--available", "verbs")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.startswith(why), done.stdout)

    def test_available_with_the_stand_in(self):
        self.host.add("mlx5_0", [], tree=False).add("mlx5_1", [], tree=False)
        done = run("--available", "verbs", machine=self.host.file())
        self.assertEqual((done.returncode, done.stdout), (0, "2 RDMA devices, the first is mlx5_0\n"))


if __name__ == "__main__":
    unittest.main()
