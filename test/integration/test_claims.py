"""Several devices of one host with one GUID, and of several hosts: the ids that the stock library gives lead to the devices.
(What hosts claim of each other is in test/sim/test_claims.py.)

test/data/hwloc/one_guid.xml is a machine whose three adapters have one node GUID; there are real ones like that.
"""
import base64
import glob
import json
import os
import re
import subprocess
import unittest

import hwloc_machines
import lab

DATA = os.path.join(lab.ROOT, "test", "data", "hwloc")
OTHERS = sorted(glob.glob(os.path.join(lab.ROOT, "..", "*", "data", "hwloc", "*.xml")))


def have(name):
    return glob.glob(os.path.join(lab.BUILD, "lib*", "**", "fabricd", f"probe_{name}.so"), recursive=True)


def found(daemon, uuid, host=None):
    where = [f"pmix.dev.id=s:{uuid}"] + ([f"pmix.hname=s:{host}"] if host else [])
    done = lab.run([lab.program("stock_chapter"), daemon.uri(), "query", "pmix.fabdev", *where], env=daemon.tool_env())
    if done.returncode != 0:
        raise AssertionError(f"{uuid}: {done.stderr}")
    attributes = dict(json.loads(done.stdout)[0][1]["value"]["elements"])
    return attributes["pmix.hname"]["value"], attributes["pmix.fabdev.nm"]["value"]


@unittest.skipUnless(have("hwloc"), "the hwloc probe is not built")
class OneGuidForAll(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()
        capture = os.path.join(self.dir, "fabric.txt")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,2", "capture"))
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": [f"file:{capture}"], "host": "scheduler"},
                                          "ethernet": {"lan": "10.91.0.0/16"}})
        self.addCleanup(self.daemon.stop)

    def deliver(self, host, items):
        """And wait until it is published."""
        path = os.path.join(self.dir, "machine.json")
        lab.replace_file(path, json.dumps({"host": host, "items": items}))
        done = subprocess.run([lab.program("report_tool"), path], capture_output=True, check=True)
        before = self.daemon.status()["generation"]
        answer = self.daemon.control("deliver", bytes=base64.b64encode(done.stdout).decode())
        self.assertTrue(answer["ok"], answer)
        self.daemon.until("generation", generation=before + 1)

    def devices(self, *hosts):
        """By host, name and plane, all that is listed of them but their numbers."""
        listed = self.daemon.ctl_json("devices")
        return {(one["host"], one["name"], one["plane"]): {key: value for key, value in one.items() if key != "index"}
                for one in listed if one["host"] in hosts}

    def facts(self, device, kind):
        host, name = device.split(":")
        one, = (one for one in self.daemon.ctl_json("devices", host) if one["name"] == name)
        return [fact for fact in one["facts"] if fact["kind"] == kind]

    def found(self, uuid, **where):
        """Host and name of the device that a tool gets by an id."""
        return found(self.daemon, uuid, **where)

    def recorded(self, path):
        record = os.path.join(self.dir, "recorded.json")
        done = lab.run([lab.program("fabricd"), "--probe", f"hwloc:{path}", "--record", record])
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(record, encoding="utf-8") as file:
            return json.load(file)["items"]

    def test_a_machine_made_up(self):
        path = os.path.join(DATA, "one_guid.xml")
        items = self.recorded(path)
        names = sorted(item["name"] for item in items if "name" in item)
        self.assertEqual(names, ["usnic_0", "usnic_1", "usnic_2"])
        self.deliver("h1", items)
        alone = self.devices("h1")
        self.deliver("h2", items)
        for host in ("h1", "h2"):
            self.assertEqual(sorted(self.devices(host)), [(host, name, "unattached") for name in names])
        for key, one in self.devices("h1").items():
            self.assertEqual({**one, "facts": None}, {**alone[key], "facts": None})

        done = lab.run([lab.program("stock_distances"), path], env=self.daemon.tool_env())
        stock = {one["osname"]: one["uuid"] for one in json.loads(done.stdout) if one["osname"] in names}
        for host in ("h1", "h2"):
            served = {name: one["id"] for (_, name, _), one in self.devices(host).items()}
            self.assertEqual(served, stock)
        for name, uuid in stock.items():
            self.assertEqual((self.found(uuid), self.found(uuid, host="h2")), (("h1", name), ("h2", name)))

        for host in ("h1", "h2"):
            cost = {(a, b): int(self.daemon.ctl("cost", f"{host}:{a}", f"{host}:{b}").stdout.split()[0])
                    for a in names for b in names}
            self.assertIn(cost["usnic_0", "usnic_1"], (2, 4))
            self.assertEqual((cost["usnic_0", "usnic_2"], cost["usnic_1", "usnic_2"]), (9, 9))
        guids = {item["name"]: item for item in items if "name" in item}["usnic_1"]
        self.deliver("a0", [{"source": "verbs", "name": "x", "port": "1", "node-guid": guids["node-guid"],
                             "system-guid": guids["system-guid"], "state": "up"}])
        self.assertEqual((self.found(stock["usnic_1"]), self.found(stock["usnic_1"], host="a0")),
                         (("h1", "usnic_1"), ("a0", "x")))
        fact, = self.facts("h2:usnic_1", "node-guid")
        self.assertEqual((fact["text"], fact["conflict"]), ("0x020000fffe000000", True))


@unittest.skipUnless(have("hwloc") and have("ethernet"), "the probes of hwloc and ethernet are not built")
class Ids(unittest.TestCase):
    """Every device that the stock library computes distances of is found by the id that it has there."""

    def test_every_machine(self):
        odd = os.path.join(DATA, "odd.xml"), os.path.join(DATA, "no_network.xml")  # the library has nothing of these
        total = 0
        for path in sorted(set(glob.glob(os.path.join(DATA, "*.xml"))) - set(odd)) + (OTHERS if lab.ALL else []):
            with self.subTest(path=path):
                total += self.check(path)
        self.assertGreater(total, 10)

    def check(self, path):
        with open(path, encoding="utf-8") as file:
            items = [item for item in hwloc_machines.expect(file.read()) if item.get("mac")]
        record = os.path.join(lab.tmpdir(), "machine.json")
        lab.replace_file(record, json.dumps({"host": "h1", "items": [
            {"source": "ethernet", "interface": item["interface"], "mac": item["mac"], "state": "up",
             "address": [f"10.91.0.{number + 2}/16"]} for number, item in enumerate(items) if "interface" in item]}))
        daemon = lab.Fabricd(config={"fabricd": {"probe": [f"hwloc:{path}", f"ethernet:{record}"], "host": "h1"},
                                     "ethernet": {"lan": "10.91.0.0/16"}})
        try:
            done = lab.run([lab.program("stock_distances"), path], env=daemon.tool_env())
            self.assertEqual(done.returncode, 0, done.stderr)
            stock = json.loads(done.stdout)
            served = {one["name"]: one for one in daemon.ctl_json("devices")}
            for one in stock:
                self.check_one(daemon, served, one)
            return len(stock)
        finally:
            daemon.stop()

    def check_one(self, daemon, served, stock):
        name, uuid = stock["osname"], stock["uuid"]
        if name in served:
            self.assertEqual(served[name]["id"].lower(), uuid.lower())
        for text in (uuid, re.sub(r"[0-9A-Fa-f]{2}$", lambda last: last[0].upper(), uuid)):
            _, meant = found(daemon, text)
            if name in served:
                self.assertEqual(meant, name)
            else:  # an interface of an RDMA device: that is meant
                device, = (one for one in daemon.ctl_json("devices", "h1") if one["name"] == meant)
                self.assertIn(name, [fact["text"] for fact in device["facts"] if fact["kind"] == "interface"])


if __name__ == "__main__":
    unittest.main()
