"""PMIx's own inventory calls: what a node's server collects is in the fabric when the scheduler's server delivers it.

Both servers know nothing but the stock library; the component in their processes does the rest.
"""
import json
import os
import socket
import unittest

import conforms
import lab
import test_pnet
import versions

FABRIC = "fattree2:4,2,4"
HWLOC = os.path.join(lab.ROOT, "test", "data", "hwloc", "places.xml")
FIRMWARE = "20.31.1014"
ENDED = r"^ended \d+$"


class Server:
    """stock_inventory, told what to do."""

    def __init__(self, host, *args, rundir="/nonexistent", probes="", program=None, under=(), **env):
        lab.require_component()
        if versions.NO_ARRAYS:
            raise unittest.SkipTest(versions.NO_ARRAYS)
        env = {"PMIX_MCA_pnet_fabricd_program": program or lab.program("fabricd"),
               "PMIX_MCA_pnet_fabricd_probes": probes, "PMIX_MCA_pnet_base_verbose": "2",
               "PMIX_MCA_pnet_fabricd_inventory_deadline": str(10 * lab.SLOW), **env}
        self.dir = lab.tmpdir()
        self.program = lab.Watch([*under, lab.program("stock_inventory"), host, *args],
                                 test_pnet.environment(rundir, **env), talk=True)
        self.program.wait("^ready$", timeout=60)

    def collect(self, seconds=None):
        """What comes; None: nothing. It is never an error."""
        path = os.path.join(self.dir, "inventory")
        if os.path.exists(path):
            os.unlink(path)
        match = self.program.say(f"collect {path}" + (f" {seconds}" if seconds else ""),
                                 r"^collected (\S+) (\d+) (\d+) \d+$", 60)
        status, infos, size = match.groups()
        if status != "SUCCESS" or int(infos) > 1:
            raise lab.LabError(match.group(0))
        if infos == "0":
            return None
        with open(path, "rb") as file:
            inventory = file.read()
        if len(inventory) != int(size):
            raise lab.LabError(match.group(0))
        return inventory

    def deliver(self, *inventories, how="deliver"):
        """Its status."""
        paths = []
        for i, inventory in enumerate(inventories):
            paths.append(os.path.join(self.dir, f"deliver{i}"))
            with open(paths[-1], "wb") as file:
                file.write(inventory)
        return self.program.say(" ".join([how, *paths]), r"^delivered (\S+)$").group(1)

    def said(self, pattern):
        """What the component prints at verbosity 2."""
        return self.program.wait(r"pnet:fabricd: " + pattern).group(0)

    def left_behind(self):
        match = self.program.say("children", r"^children (\d+) descriptors (\d+) reaped (\d+)$")
        return tuple(int(number) for number in match.groups())

    def quit(self):
        self.program.say("quit", ENDED)
        status = self.program.process.wait(20 * lab.SLOW)
        if status != 0:
            raise lab.LabError(f"it ended with {status}: {self.program.output.text[-3000:]}")

    def stop(self):
        self.program.stop()


class Case(conforms.Shows):
    def setUp(self):
        self.dir = lab.tmpdir()

    def server(self, *args, **options):
        server = Server(*args, **options)
        self.addCleanup(server.stop)
        return server

    def record(self, host, guid, firmware=FIRMWARE):
        """A recorded machine with one HCA; its path."""
        path = os.path.join(self.dir, f"{host}-{firmware}.json")
        item = {"source": "verbs", "name": "mlx5_7", "port": "1", "port-guid": guid, "firmware": firmware}
        lab.replace_file(path, json.dumps({"host": host, "items": [item]}))
        return path

    def program(self, script):
        """In the place of fabricd."""
        path = os.path.join(self.dir, "program")
        lab.replace_file(path, "#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return path


class Collect(Case):
    def test_recorded_machines(self):
        """The same machine, the same bytes, and nothing is left behind; a scheduler is a host as well."""
        record = self.record("node0001", "0x1111111111111111")
        server = self.server("node0001", "scheduler", probes=f"verbs:{record},hwloc:{HWLOC}")
        inventory = server.collect()
        self.assertTrue(inventory.startswith(b"fabgive\n"))
        for text in (b"node0001", b"mlx5_7", b"0x1111111111111111", FIRMWARE.encode()):
            self.assertIn(text, inventory)
        before = server.left_behind()
        for way in (None, "ignore", "reap"):  # hosts that have children of their own
            if way:
                server.program.say(way, r"^\w+ 1$")
            for _ in range(30 if lab.ALL else 3):
                self.assertEqual(server.collect(), inventory)
            self.assertEqual(server.left_behind()[:2], before[:2])
        self.assertEqual(before[0], 0)
        server.quit()
        self.assertLess(len(self.server("node0001", probes=f"verbs:{record}").collect()), len(inventory))

    def test_this_host(self):
        """With all probes, whatever this host has; the same as the program says."""
        server = self.server("this")
        inventory = server.collect()
        done = lab.run([lab.program("fabricd"), "--record", "-"])
        if done.returncode == 0:
            self.assertEqual(inventory is None, not json.loads(done.stdout)["items"])
        server.quit()

    def test_nothing_to_tell(self):
        empty = os.path.join(self.dir, "empty.json")
        lab.replace_file(empty, json.dumps({"host": "node1", "items": []}))
        for options, reason in (
                ({"probes": f"verbs:{empty}"}, "inventory: the probes found no device of node1"),
                ({"probes": f"verbs:{self.dir}/absent.json"}, r"inventory: .*/absent\.json"),
                ({"probes": "ibnetdisc"}, "inventory: there is no probe ibnetdisc of this host"),
                ({"program": "/nonexistent/fabricd"}, "/nonexistent/fabricd: cannot be started: No such file"),
                ({"program": self.program("exit 0")}, "inventory: fabricd ended without output")):
            with self.subTest(reason):
                if lab.SANITIZE == "thread" and "ended" in reason:
                    self.skipTest("the sanitizer that the program would inherit ends a shell")
                server = self.server("node1", **options)
                self.assertIsNone(server.collect())
                server.said(reason)
                server.quit()

    def test_a_probe_that_hangs(self):
        """Its facts are missing; the others' are there before the deadline. A program that hangs is killed."""
        fifo = os.path.join(self.dir, "fifo")
        os.mkfifo(fifo)
        server = self.server("node1", probes=f"verbs:{fifo},hwloc:{HWLOC}", PMIX_MCA_pnet_fabricd_inventory_deadline=str(2 * lab.SLOW))
        whole = self.server("node1", probes=f"hwloc:{HWLOC}").collect()
        inventory = server.collect()
        head = 32 + 8 + 8  # then which sources failed, and which of them are unknown: those of the probe that hangs
        self.assertNotEqual(inventory[head:head + 4], bytes(4))
        self.assertEqual(inventory[head + 2:head + 4], inventory[head:head + 2])
        self.assertEqual(whole[head:head + 4], bytes(4))
        self.assertEqual(inventory[head + 4:], whole[head + 4:])
        server.said(r".*scan verbs: timed out after")
        self.assertEqual(server.left_behind()[0], 0)
        server.quit()
        if lab.SANITIZE != "thread":  # the sanitizer that the program would inherit ends a shell
            server = self.server("node1", program=self.program("sleep 600 &\nwait"), PMIX_MCA_pnet_fabricd_inventory_deadline="60")
            self.assertIsNone(server.collect(seconds=1))  # the caller's PMIX_TIMEOUT
            server.said("inventory: fabricd was killed: not finished after 1 s")
            self.assertEqual(server.left_behind()[0], 0)
            server.quit()


class Site(Case):
    """A fabricd that inventories are delivered to."""

    @classmethod
    def setUpClass(cls):
        cls.capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(cls.capture, lab.fabric(FABRIC, "capture"))

    def setUp(self):
        super().setUp()
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}", "host": "scheduler"},
                                          "nodes": {"debounce_ms": 20}})
        self.addCleanup(self.daemon.stop)
        self.guids = {device["host"]: device["guid"] for device in self.daemon.ctl_json("devices")}

    def inventory(self, host, firmware=FIRMWARE):
        server = self.server(host, probes=f"verbs:{self.record(host, self.guids[host], firmware)}")
        inventory = server.collect()
        server.quit()
        return inventory

    def scheduler(self, **options):
        return self.server("scheduler", "scheduler", rundir=self.daemon.rundir, **options)

    def held(self):
        """Hosts that fabricd has a report of, with when it came."""
        return {node["host"]: node["received"] for node in self.daemon.control("nodes")["nodes"]}

    def wait_held(self, *hosts):
        self.daemon.until_true(lambda: set(self.held()) == set(hosts), "delivery")

    def wait_name(self, host, name="mlx5_7"):
        """fabricctl tells what only the inventory can have told."""
        return self.daemon.until_true(lambda: [device for device in self.daemon.ctl_json("devices", host)
                                               if device["name"] == name], "updated")[0]

    def published(self, firmware):
        """Is this served?"""
        for name in os.listdir(self.daemon.rundir):
            if name.endswith(".snap") and not name.startswith("."):
                with open(os.path.join(self.daemon.rundir, name), "rb") as file:
                    if firmware.encode() + b"\0" in file.read():
                        return True
        return False


class Deliver(Site):
    def test_from_the_node_to_the_fabric(self):
        host = "node0002"
        before = self.daemon.ctl_json("devices", host)[0]
        self.assertNotEqual(before["name"], "mlx5_7")
        inventory = self.inventory(host)
        self.shows_call("PMIx_server_collect_inventory", "collect", FIRMWARE.encode() in inventory, True, "in process")
        scheduler = self.scheduler()
        self.shows_call("PMIx_server_deliver_inventory", "deliver", (scheduler.deliver(inventory), self.wait_name(host)["name"]),
                        ("SUCCESS", "mlx5_7"), "in process")
        after = self.wait_name(host)
        self.assertEqual((after["guid"], after["index"]), (before["guid"], before["index"]))
        self.assertTrue(self.published(FIRMWARE))
        scheduler.quit()

    def test_in_every_form(self):
        hosts = [f"node000{i}" for i in range(1, 7)]
        inventories = {host: self.inventory(host) for host in hosts}
        scheduler = self.scheduler()
        self.assertEqual(scheduler.deliver(inventories["node0001"], inventories["node0002"], how="nested"), "SUCCESS")
        self.assertEqual(scheduler.deliver(inventories["node0003"], inventories["node0004"], how="array"), "SUCCESS")
        self.assertEqual(scheduler.deliver(inventories["node0005"], how="deliver"), "SUCCESS")
        self.assertEqual(scheduler.deliver(inventories["node0006"], how="wait"), "OPERATION-SUCCEEDED")
        self.wait_held(*hosts)
        for host in hosts:
            self.wait_name(host)
        scheduler.quit()

    def test_what_is_no_inventory(self):
        good = self.inventory("node0001")
        flipped = bytearray(good)
        flipped[len(good) // 2] ^= 1
        scheduler = self.scheduler()
        for bad in (b"", b"x", b"garbage of some length, which is no inventory at all", good[:-1], good[:40],
                    good + b"x", bytes(flipped), os.urandom(5000)):
            with self.subTest(bad[:20]):
                self.assertEqual(scheduler.deliver(bad), "SUCCESS")  # it is not an error of the host's
                self.assertEqual(scheduler.deliver(bad, bad, how="nested"), "SUCCESS")
        self.assertEqual(scheduler.deliver(how="strange"), "SUCCESS")
        scheduler.said("inventory refused: pmixfab.inventory holds no bytes")
        scheduler.program.wait("(?s)(inventory refused: .*){20}")  # each: the child that delivers says it in its own time
        self.assertEqual(self.held(), {})
        # Beside a bad one a good one is taken.
        self.assertEqual(scheduler.deliver(bytes(flipped), good, b"x"), "SUCCESS")
        self.wait_held("node0001")
        self.daemon.check_alive()
        scheduler.quit()

    def test_fabricd_refuses(self):
        """It is not tried again. (Here the test answers in the place of fabricd.)"""
        good = self.inventory("node0001")
        scheduler = self.scheduler()
        self.daemon.stop()
        path = os.path.join(self.daemon.rundir, "control.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.settimeout(20 * lab.SLOW)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen()
        self.assertEqual(scheduler.deliver(good), "SUCCESS")
        channel, _ = listener.accept()
        with channel, channel.makefile("rwb") as file:
            request = json.loads(file.readline())
            self.assertEqual(request["op"], "deliver")
            file.write(b'{"ok":false,"error":-14,"message":"deliver: uid 7 may not do that"}\n')
            file.flush()
            scheduler.said("inventory of node0001 refused: deliver: uid 7 may not do that")
        scheduler.quit()  # nothing is left to deliver
        self.assertNotIn("dropped", scheduler.program.output.text)

    def test_fabricd_is_away(self):
        older, newer = self.inventory("node0001", "1.1.1"), self.inventory("node0001", "2.2.2")
        other = self.inventory("node0002")
        scheduler = self.scheduler()
        self.assertEqual(self.daemon.stop(), 0)
        for inventory in (older, other, newer):
            self.assertEqual(scheduler.deliver(inventory), "SUCCESS")
        scheduler.said("inventory of node0001 waits: .*check that fabricd is running")
        self.daemon.start()
        self.wait_held("node0001", "node0002")
        scheduler.said("inventory of .* accepted by fabricd")
        self.wait_name("node0001")
        self.assertEqual((self.published("1.1.1"), self.published("2.2.2")), (False, True))
        # And once more, over a connection that is dead by now.
        self.daemon.kill9()
        self.assertEqual(scheduler.deliver(older), "SUCCESS")
        self.daemon.start()
        self.daemon.until_true(lambda: self.published("1.1.1"), "updated")
        scheduler.quit()

    def test_the_end(self):
        """What was delivered last still arrives; while fabricd is away it is dropped, and that is said."""
        inventory = self.inventory("node0001")
        scheduler = self.scheduler()
        self.assertEqual(scheduler.deliver(inventory), "SUCCESS")
        scheduler.quit()
        self.wait_held("node0001")
        scheduler = self.scheduler()
        self.daemon.stop()
        self.assertEqual(scheduler.deliver(inventory), "SUCCESS")
        scheduler.said("inventory of node0001 waits")
        scheduler.quit()
        self.assertIn("inventories dropped, not accepted by fabricd: 1", scheduler.program.output.text)


if __name__ == "__main__":
    unittest.main()
