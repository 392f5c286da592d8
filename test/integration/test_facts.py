"""What a host says of its devices, as the standard's attributes, as costs within the host, and by the ids that the stock
library gives the same devices. (Who sees what, and which source is believed, is in test/sim/test_facts.py.)

The host is a recorded machine of six RDMA ports and a network interface, three processors' memory in two packages
(test/data/hwloc/distances.xml) and what verbs and ethernet would say of them. The sweep sees one of the ports.
"""
import glob
import json
import os
import subprocess
import unittest

import facts_machine
import lab
import test_chapter as chapter
import versions
from facts_machine import COSTS, GUID, HOST, ITEMS, MACHINE

KEY = chapter.KEY
PCI = {"mlx5_0": "0000:03:00:00", "mlx5_1": "0000:03:00:01", "mlx5_2": "0000:04:00:00", "mlx5_3": "0000:05:00:00",
       "mlx5_4": "0000:41:00:00", "mlx5_5": "0000:81:00:00"}


def have(*probes):
    return all(glob.glob(os.path.join(lab.BUILD, "lib*", "**", "fabricd", f"probe_{name}.so"), recursive=True)
               for name in probes)


class Machine(chapter.Chapter):
    mine, items = True, ITEMS

    @classmethod
    def setUpClass(cls):
        if not have("hwloc", "verbs", "ucx", "libfabric", "ethernet"):
            raise unittest.SkipTest("not all probes of this host are built")
        folder = lab.tmpdir()
        sweep, record = os.path.join(folder, "fabric.txt"), os.path.join(folder, "machine.json")
        lab.replace_file(sweep, facts_machine.sweep(lab.fabric("fattree2:2,1,2", "capture"), cls.mine))
        lab.replace_file(record, json.dumps({"host": HOST, "items": cls.items}))
        local = ["hwloc:" + MACHINE] + [f"{name}:{record}" for name in ("verbs", "ucx", "libfabric", "ethernet")]
        cls.daemon = lab.Fabricd(config={"fabricd": {"probe": ["file:" + sweep, *local], "host": HOST},
                                         "ethernet": {"lan": "10.91.0.0/16"}})
        cls.addClassCleanup(cls.daemon.stop)
        cls.devices = {(d["host"], d["name"]): d for d in cls.daemon.ctl_json("devices")}
        cls.planes = {plane["name"]: plane for plane in cls.daemon.ctl_json("planes")}

    def device(self, name, host=HOST):
        """Its attributes: by their keys, without their types."""
        device = self.devices[host, name]
        infos = self.query("PMIX_FABRIC_DEVICE", {"PMIX_DEVICE_ID": device["id"]}, "PMIX_DATA_ARRAY")
        self.assertEqual(infos[0][0], KEY["PMIX_DEVICE_ID"])
        self.assertEqual((infos[0][1], dict(infos)[KEY["PMIX_FABRIC_DEVICE_NAME"]]), (device["id"], name))
        return dict(infos)

    def check(self, name, seen, **expected):
        """These attributes (None: there is none), each also as a key of its own."""
        got, where = self.device(name), {"PMIX_DEVICE_ID": self.devices[HOST, name]["id"]}
        self.assertEqual(got[chapter.SEEN], seen)
        self.shows_keys(chapter.told(self.ask("query", chapter.SEEN, *self.directives(where))), {chapter.SEEN: seen}, "query", "tool")
        for short, value in expected.items():
            key = f"PMIX_FABRIC_DEVICE_{short}"
            self.assertEqual(got.get(KEY[key]), value, key)
            type_ = {"MTU": "PMIX_SIZE", "SPEED": "PMIX_SIZE", "STATE": "PMIX_LINK_STATE"}.get(short, "PMIX_STRING")
            if value is None:
                self.assertEqual(self.query(key, where), "NOT-FOUND")
            else:
                self.queried(key, where, type_, value)
        if "STATE" in expected:
            name = {0: "PMIX_LINK_STATE_UNKNOWN", 1: "PMIX_LINK_DOWN", 2: "PMIX_LINK_UP"}[expected["STATE"]]
            self.shows_constant(name, got[KEY["PMIX_FABRIC_DEVICE_STATE"]], "query", "tool")


class Attributes(Machine):
    OF_MLX5_0 = {"PMIX_FABRIC_DEVICE_VENDORID": "0x101b", "PMIX_FABRIC_DEVICE_DRIVER": "mlx5_core",
                 "PMIX_FABRIC_DEVICE_FIRMWARE": "20.31.1014", "PMIX_FABRIC_DEVICE_MTU": 4096,
                 "PMIX_FABRIC_DEVICE_PCI_DEVID": "0000:03:00:00"}

    def test_a_port_that_both_see(self):
        self.check("mlx5_0", "subnet,node", VENDOR="Mellanox Technologies", VENDORID="0x101b", BUS_TYPE="PCI",
                   PCI_DEVID="0000:03:00:00", DRIVER="mlx5_core", FIRMWARE="20.31.1014", ADDRESS="0x" + GUID, MTU=4096,
                   SPEED=200 * 10**9, STATE=2, TYPE="InfiniBand")
        got = self.device("mlx5_0")
        self.assertEqual(got[KEY["PMIX_HOSTNAME"]], HOST)
        self.assertEqual(got[KEY["PMIX_FABRIC_PLANE"]], "ib0")
        self.assertIn(KEY["PMIX_FABRIC_SWITCH"], got)

    def test_a_port_that_only_its_host_sees(self):
        """It has a row in the matrix of what is unattached, and the plane is named beside the row's number."""
        self.check("mlx5_1", "node", VENDORID="0x101b", PCI_DEVID="0000:03:00:01", FIRMWARE="20.31.1014", MTU=4096,
                   SPEED=100 * 10**9, STATE=2, TYPE="InfiniBand", ADDRESS="0xb8599f0300fd0001")
        self.check("mlx5_5", "node", DRIVER=None, FIRMWARE=None, MTU=None, SPEED=None, BUS_TYPE="PCI", STATE=1)
        got, device = self.device("mlx5_1"), self.devices[HOST, "mlx5_1"]
        self.assertEqual(got[KEY["PMIX_FABRIC_PLANE"]], "unattached")
        self.assertEqual(got[KEY["PMIX_FABRIC_DEVICE_INDEX"]], device["index"])
        self.assertNotIn(KEY["PMIX_FABRIC_SWITCH"], got)

    def test_a_port_that_only_the_subnet_sees(self):
        got = self.device("HCA-1", "node0003")
        self.assertEqual(got[chapter.SEEN], "subnet")
        self.assertEqual(got[KEY["PMIX_FABRIC_DEVICE_BUS_TYPE"]], "unknown")
        self.assertEqual(got[KEY["PMIX_FABRIC_DEVICE_VENDOR"]], self.planes["ib0"]["vendor"])
        self.assertEqual(chapter.OF_THE_HOST & {name for name in KEY if KEY[name] in got}, set())

    def test_a_network_interface(self):
        self.check("eno1", "node", VENDOR="Intel Corporation", VENDORID="0x1521", PCI_DEVID="0000:82:00:00", DRIVER="igb",
                   FIRMWARE="1.63, 0x800009fa", ADDRESS="a4:93:4c:aa:61:1e", MTU=9000, SPEED=10**9, STATE=2,
                   TYPE="Ethernet", BUS_TYPE="PCI")
        self.assertEqual(self.device("eno1")[KEY["PMIX_FABRIC_PLANE"]], "lan")

    def test_the_devices_of_this_node(self):
        """All of them, plane by plane; with a register those of its plane."""
        devices = self.query("PMIX_FABRIC_DEVICES", expect="PMIX_DATA_ARRAY")
        names = [dict(infos)[KEY["PMIX_FABRIC_DEVICE_NAME"]] for _, infos in devices]
        self.assertEqual(sorted(names), ["eno1", *PCI])
        got = self.register({"PMIX_FABRIC_PLANE": "unattached", "PMIX_FABRIC_DEVICES": True})
        devices = {d[KEY["PMIX_FABRIC_DEVICE_NAME"]]: d
                   for d in (dict(infos) for _, infos in chapter.plain(got[KEY["PMIX_FABRIC_DEVICES"]]))}
        self.assertEqual(devices.keys(), PCI.keys() - {"mlx5_0"})
        for name, device in devices.items():
            self.assertEqual(device[KEY["PMIX_FABRIC_DEVICE_PCI_DEVID"]], PCI[name])

    def test_the_same_over_get(self):
        for name, value in self.OF_MLX5_0.items():
            answer = self.ask("get", KEY[name], f"pmix.dev.id=s:{self.devices[HOST, 'mlx5_0']['id']}")
            self.shows_given(name, KEY[name], chapter.plain(answer[0]), value, "get", "tool", kind="key")

    def test_the_same_through_a_relay(self):
        relay = lab.Watch([lab.program("relay_host"), self.daemon.rundir], self.daemon.tool_env(), talk=True)
        self.addCleanup(relay.stop)
        uri = relay.wait("(?m)^uri (.*)$").group(1)
        def asked(where, key="PMIX_FABRIC_DEVICE"):
            """None: the relay's first attempt to connect has failed, and it makes another one."""
            done = lab.run([lab.program("stock_chapter"), uri, "query", KEY[key], where],
                           env=self.daemon.tool_env(), timeout=60)
            return None if "UNREACHABLE" in done.stderr else done

        for name in ("mlx5_0", "mlx5_1", "eno1"):
            where = f"pmix.dev.id=s:{self.devices[HOST, name]['id']}"
            done = lab.wait_for(lambda where=where: asked(where), 20, "the relay to be connected")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.shows_keys(chapter.told(json.loads(done.stdout)), {"PMIX_FABRIC_DEVICE": self.device(name)}, "query", "relay")
        where = f"pmix.dev.id=s:{self.devices[HOST, 'mlx5_0']['id']}"
        for key, value in self.OF_MLX5_0.items():
            self.shows_keys(chapter.told(json.loads(asked(where, key).stdout)), {key: value}, "query", "relay")

    def test_what_fabricctl_says(self):
        for (host, name), device in self.devices.items():
            got = self.device(name, host)
            for column, key in (("type", "TYPE"), ("firmware", "FIRMWARE"), ("driver", "DRIVER"), ("pci", "PCI_DEVID"),
                                ("mtu", "MTU")):
                self.assertEqual(device[column], got.get(KEY[f"PMIX_FABRIC_DEVICE_{key}"]), (name, column))
            self.assertEqual(device["seen"], got[chapter.SEEN])

    def test_ids(self):
        """The stock library gives the devices of this machine the ids that they are served under, so that
        PMIX_DEVICE_DISTANCES and everything here join."""
        stock = self.distances(MACHINE)
        served = {device["name"]: device["id"] for (host, _), device in self.devices.items() if host == HOST}
        self.assertEqual({one["osname"]: one["uuid"] for one in stock}, served)
        for one in stock:
            self.shows_given("PMIX_DEVICE_ID", f"pmix.dev.id=s:{one['uuid']}", self.query("PMIX_FABRIC_DEVICE_NAME", {"PMIX_DEVICE_ID": one["uuid"]}),
                             {"type": "PMIX_STRING", "value": one["osname"]}, "query", "tool", kind="qualifier")

    def test_they_grow_with_the_distance(self):
        """From the first package; the library counts levels of the machine, as the costs here do."""
        far = {one["osname"]: one["min"] for one in self.distances(MACHINE)}
        if versions.PMIX < (7,):  # later ones count the bridges between a device and its package, too
            self.assertEqual(far["mlx5_0"], far["mlx5_3"])
        self.assertLess(max(far["mlx5_0"], far["mlx5_3"]), far["mlx5_4"])
        self.assertLess(far["mlx5_4"], far["mlx5_5"])

    def test_ids_of_a_host_and_a_name(self):
        """Those that the library has from 7 on for devices without a GUID or an address."""
        for given, name in ((f"fab://{HOST}::mlx5_0", "mlx5_0"), (f"net://{HOST}::eno1", "eno1"),
                            (f"fab://0000:0000:0000:0000::0000:0000:0000:0000::{HOST}::mlx5_4", "mlx5_4")):
            self.assertEqual(self.query("PMIX_FABRIC_DEVICE_NAME", {"PMIX_DEVICE_ID": given}, "PMIX_STRING"), name)
        self.assertEqual(self.query("PMIX_FABRIC_DEVICE_NAME", {"PMIX_DEVICE_ID": f"fab://{HOST}::mlx5_99"}), "NOT-FOUND")

    def distances(self, path):
        done = subprocess.run([lab.program("stock_distances"), path], env=self.daemon.tool_env(), capture_output=True,
                              text=True, check=False, timeout=60 * lab.SLOW)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class Untold(Machine):
    """One more port, of whose state its host says nothing."""
    items = [*ITEMS, {"source": "verbs", "name": "mlx5_9", "port": "1", "node-guid": "0xb8599f0300fd0900",
                      "port-guid": "0xb8599f0300fd0900"}]

    def test_a_port_whose_state_nobody_tells(self):
        self.assertEqual(self.devices[HOST, "mlx5_9"]["state"], "unknown")
        self.check("mlx5_9", "node", STATE=0, ADDRESS="0xb8599f0300fd0900")


class Costs(Machine):
    """Here the sweep sees none of the ports, so all of them are in one plane."""
    mine = False

    def test_in_the_matrix(self):
        """As a program has it that registers the fabric, each cell compared with the call for one cost."""
        program = lab.Watch([lab.program("client_tool"), self.daemon.uri()], self.daemon.tool_env(), talk=True)
        self.addCleanup(program.stop)
        program.wait("^ready$")
        answer = program.say("register 0 plane=unattached", "^register .*$", timeout=40).group(0)
        self.assertRegex(answer, r"^register 0 plane unattached .* devices 6 .* wrong 0$")
        for (a, b), cost in COSTS.items():
            answer = program.say(f"cost 0 {HOST}:{a} {HOST}:{b}", "^cost .*$").group(0)
            self.shows_given("PMIX_FABRIC_COST_MATRIX", "cost", answer, f"cost 0 {cost}", "libpmixfab", "tool", kind="key")


if __name__ == "__main__":
    unittest.main()
