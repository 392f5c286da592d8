"""The subnet and what its nodes have, as one: a simulated subnet whose GUIDs are those of described machines, a node
daemon for each of them with all probes, and what comes of it compared with the descriptions.
"""
import glob
import json
import os
import re
import signal
import unittest

import hosts
import lab
import test_chapter as chapter
import whole_machines as whole

SCHEDULER, NODE = "10.91.1.1", "10.91.1.2"
STRANGERS = ("node0040", "node0041")
DATA = os.path.join(lab.ROOT, "test", "data", "hwloc")
# Real machines, where there are any beside the source tree.
OTHERS = sorted(glob.glob(os.path.join(lab.ROOT, "..", "*", "data", "hwloc", "*.xml")))
KEY, STATES = chapter.KEY, chapter.STATES


def difference(got, expected):
    """Of two hosts' devices with their facts, for people."""
    lines = []
    for name in sorted(set(got) | set(expected)):
        one, other = got.get(name, {}), expected.get(name, {})
        lines += [f"{name} {fact}: {sorted(one.get(fact, ()))}, not {sorted(other.get(fact, ()))}"
                  for fact in sorted(set(one) | set(other)) if one.get(fact) != other.get(fact)]
    return "\n".join(lines)


class Site(unittest.TestCase):
    """A scheduler's host and hosts of nodes, each with its munged; a simulated subnet with the machines' GUIDs."""

    @classmethod
    def build(cls, machines, places):
        """places: host -> (the scheduler's address there, its own, names that are this host)"""
        hosts.need()
        lab.require("ibsim", "opensm", "ibnetdiscover")
        cls.machines = {machine.host: machine for machine in machines}
        cls.hosts = {name: hosts.Host(name) for name in ("scheduler", *places)}
        for host in cls.hosts.values():
            cls.addClassCleanup(host.stop)
        known = {"scheduler": SCHEDULER}
        for host, (there, here, names) in places.items():
            cls.hosts["scheduler"].cable(cls.hosts[host], there, here)
            known |= {name: here for name in names}
            if there != SCHEDULER:
                cls.hosts[host].do("ip", "route", "add", f"{SCHEDULER}/32", "via", there)
        cls.munged = {}
        for name, host in cls.hosts.items():
            host.knows(known)
            munged = hosts.Munged(host, places[name][1] if name in places else SCHEDULER,
                                  next(iter(cls.munged.values()), None))
            cls.addClassCleanup(munged.stop)
            munged.show_on(host)
            cls.munged[name] = munged
        cls.simulate(machines)

    @classmethod
    def simulate(cls, machines):
        cls.sim = lab.Ibsim(whole.netfile(machines, STRANGERS), cls.hosts["scheduler"])
        cls.addClassCleanup(cls.sim.quit)
        cls.sim.sweep()
        found = cls.sim.run(["ibnetdiscover"]).stdout
        lids = {f"0x{int(guid, 16):016x}": int(lid) for guid, lid in
                re.findall(r"^\[1\]\((\w+)\).*?# lid (\d+) ", found, re.MULTILINE)}
        for machine in machines:
            machine.lids = {name: lids[item["port-guid"]] for name, item in machine.cabled().items()}
            machine.show()

    @classmethod
    def start_scheduler(cls):
        scheduler = hosts.Fabricd(
            cls.hosts["scheduler"], cls.sim, env={"PMIX_MCA_ptl_tcp_ipv4_port": "24242"},
            config={"fabricd": {"host": "scheduler"}, "security": {"remote": "yes"}, "nodes": {"debounce_ms": 50},
                    "ethernet": {"lan": "10.92.0.0/16"}})
        return scheduler

    @classmethod
    def start_node(cls, machine, on, host=None, **options):
        config = {"fabricd": {"probe": machine.probes()}, "sweep.env": machine.environment(), "node": {"serve": "yes"}}
        return hosts.Node(cls.hosts[on], host or machine.host, SCHEDULER, config=config, **options)

    @staticmethod
    def end(daemon):
        if daemon.alive() and (daemon.stop() != 0 or "Sanitizer" in daemon.log()):
            raise lab.LabError(daemon.log()[-5000:])

    @staticmethod
    def facts(scheduler, host):
        """What fabricctl shows of a host: device -> [fact]."""
        return {device["name"]: device["facts"] for device in scheduler.ctl_json("devices", host)}

    @classmethod
    def shown(cls, scheduler, host):
        """The same as Machine.devices()."""
        return {name: {(fact["kind"], fact["text"]): set(fact["sources"]) for fact in facts}
                for name, facts in cls.facts(scheduler, host).items()}

    @classmethod
    def wait_published(cls, scheduler, host):
        """Until what is served of a host is what its description says."""
        last = {}

        def right():
            try:
                last["shown"] = cls.shown(scheduler, host)
            except lab.LabError:  # not there yet
                return False
            return last["shown"] == cls.machines[host].devices()
        scheduler.until_true(right, "updated", lambda: difference(last.get("shown", {}), cls.machines[host].devices()))

    def texts(self, scheduler, host, kind):
        return {name: [fact["text"] for fact in facts if fact["kind"] == kind]
                for name, facts in self.facts(scheduler, host).items()}


@unittest.skipUnless(os.path.isdir(whole.STANDIN), "the stand-in of libibverbs is not built")
class Machines(Site):
    """Each device of each machine: all of its facts with their sources, and the standard's attributes."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        paths = [os.path.join(DATA, name) for name in ("distances.xml", "switches.xml", "places.xml")] + OTHERS
        if not OTHERS:
            print("no real machines beside this source tree: only those of test/data/hwloc")
        machines = [whole.Machine(f"node{number:04}", number, path) for number, path in enumerate(paths, 1)]
        macs = set()
        for machine in machines:  # one MAC stands in several recordings
            machine.taken_macs = set(macs)
            macs |= {item["mac"] for item in machine.items() if "mac" in item}
        cls.build(machines, {"nodes": (SCHEDULER, NODE, [machine.host for machine in machines])})
        cls.scheduler = cls.start_scheduler()
        cls.addClassCleanup(cls.end, cls.scheduler)
        cls.nodes = {}
        for machine in machines:
            cls.nodes[machine.host] = node = cls.start_node(machine, "nodes")
            cls.addClassCleanup(cls.end, node)
        for node in cls.nodes.values():
            node.wait_delivered()
        for host in cls.nodes:
            cls.wait_published(cls.scheduler, host)
        cls.scheduler.refresh()
        newest = max(plane["generation"] for plane in cls.scheduler.ctl_json("planes"))
        for node in cls.nodes.values():
            node.logged(re.compile(rf"generation {newest} of .* is served"))
        cls.devices = {(d["host"], d["name"]): d for d in cls.scheduler.ctl_json("devices")}

    def test_every_fact_and_who_says_it(self):
        expected = {(host, name) for host, machine in self.machines.items() for name in machine.devices()}
        self.assertEqual(set(self.devices) - {(name, "HCA-1") for name in STRANGERS}, expected)
        self.assertGreater(len(expected), 12)
        self.assertEqual({self.devices[name, "HCA-1"]["seen"] for name in STRANGERS}, {"subnet"})
        shown = {host: self.facts(self.scheduler, host) for host in self.machines}
        contradicted = 0
        for host, machine in self.machines.items():
            for name, facts in machine.devices().items():
                with self.subTest(host=host, device=name):
                    self.check_facts(shown[host][name], facts)
                    contradicted += len({kind for kind, _ in facts if kind not in whole.MANY}) < \
                        len([kind for kind, _ in facts if kind not in whole.MANY])
        self.assertGreater(contradicted, 6)

    def check_facts(self, shown, expected):
        self.assertEqual({(fact["kind"], fact["text"]): set(fact["sources"]) for fact in shown}, expected)
        for kind in {kind for kind, _ in expected}:
            texts = [fact for fact in shown if fact["kind"] == kind]
            self.assertEqual({fact["estimate"] for fact in texts}, {kind in whole.ESTIMATES})
            if kind in whole.MANY:
                self.assertTrue(all(fact["chosen"] for fact in texts), kind)
                continue
            chosen = [fact["text"] for fact in texts if fact["chosen"]]
            self.assertEqual(chosen, [whole.Machine.believed(expected, kind)])
            self.assertEqual({fact["conflict"] for fact in texts}, {len(texts) > 1})

    def expected(self, host, machine, name, facts):
        """The standard's attributes of a device, but for its place in the network."""
        def said(kind):
            return whole.Machine.believed(facts, kind)
        ethernet = not {source for sources in facts.values() for source in sources} - {"ethernet", "hwloc"}
        plane = "ib0" if name in machine.cabled() else "lan" if any(k == "address" for k, _ in facts) else "unattached"
        values = {
            "PMIX_HOSTNAME": host, "PMIX_FABRIC_DEVICE_NAME": name, "PMIX_FABRIC_PLANE": plane,
            "PMIX_FABRIC_DEVICE_VENDOR": said("vendor") or "unknown", "PMIX_FABRIC_DEVICE_VENDORID": said("part-id"),
            "PMIX_FABRIC_DEVICE_DRIVER": said("driver"), "PMIX_FABRIC_DEVICE_FIRMWARE": said("firmware"),
            "PMIX_FABRIC_DEVICE_MTU": int(said("mtu") or 0) or None, "PMIX_FABRIC_DEVICE_TYPE": said("type"),
            "PMIX_FABRIC_DEVICE_SPEED": int(said("speed") or 0) * 10**6 or None,
            "PMIX_FABRIC_DEVICE_BUS_TYPE": said("bus") or "unknown",
            "PMIX_FABRIC_DEVICE_STATE": STATES[said("state")], "PMIX_FABRIC_DEVICE_PCI_DEVID": said("pci"),
            "PMIX_FABRIC_DEVICE_ADDRESS": said("mac") if said("type") == "Ethernet" else said("port-guid"),
            "PMIX_DEVICE_ID": f"ipv4://{said('mac')}" if ethernet else
                              f"fab://{whole.quads(said('node-guid'))}::{whole.quads(said('system-guid'))}",
            chapter.SEEN: "subnet,node" if name in machine.cabled() else "node"}
        return {KEY.get(key, key): value for key, value in values.items() if value is not None}

    PLACE = {KEY[f"PMIX_{key}"]
             for key in ("FABRIC_DEVICE_COORDINATES", "FABRIC_DEVICE_INDEX", "FABRIC_SWITCH", "NODEID")}

    def ask(self, daemon, *args):
        done = lab.run([*daemon.on.prefix(), lab.program("stock_chapter"), daemon.uri(), *args], env=daemon.tool_env(),
                       cwd="/")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def of_host(self, daemon, host):
        """Device name -> attributes, as a stock tool is told."""
        ((_, devices),) = self.ask(daemon, "query", KEY["PMIX_FABRIC_DEVICES"], f"{KEY['PMIX_HOSTNAME']}=s:{host}")
        devices = [dict(infos) for _, infos in chapter.plain(devices)]
        return {device[KEY["PMIX_FABRIC_DEVICE_NAME"]]: device for device in devices}

    def test_every_attribute(self):
        """As a stock tool asks the scheduler, and the node's own daemon."""
        for host, machine in self.machines.items():
            got = self.of_host(self.scheduler, host)
            self.assertEqual(self.of_host(self.nodes[host], host), got)
            for name, facts in machine.devices().items():
                with self.subTest(host=host, device=name):
                    self.assertEqual({key: value for key, value in got[name].items() if key not in self.PLACE},
                                     self.expected(host, machine, name, facts))

    def test_places_in_the_network(self):
        """Pod, leaf and port, as the cables were laid."""
        at_leaf = whole.places(self.machines.values(), STRANGERS)
        ports = {name: (leaf, port) for leaf, hcas in at_leaf.items() for port, (name, *_) in enumerate(hcas)}
        switches = {switch["name"]: switch["id"] for switch in self.scheduler.ctl_json("switches")}
        names = sorted({d["host"] for d in self.devices.values() if d["plane"] == "ib0"})
        for host, machine in self.machines.items():
            got = self.of_host(self.scheduler, host)
            for name in machine.cabled():
                leaf, port = ports[f"{host} {name}"]
                coordinates = {one["view"]: one["coord"]
                               for one in got[name][KEY["PMIX_FABRIC_DEVICE_COORDINATES"]]["coordinates"]}
                self.assertEqual(coordinates, {1: [0, whole.LEAVES.index(leaf), port],
                                               2: [0, whole.LEAVES.index(leaf), port + 1]}, (host, name))
                self.assertEqual(got[name][KEY["PMIX_FABRIC_SWITCH"]], switches[leaf])
                self.assertEqual(got[name][KEY["PMIX_NODEID"]], names.index(host))
        order = sorted((d for d in self.devices.values() if d["plane"] == "ib0"), key=lambda d: (d["host"], d["name"]))
        self.assertEqual([d["index"] for d in order], list(range(len(order))))

    @staticmethod
    def distance(a, b):
        """Of two devices of a host, by what hwloc says of them."""
        def same(*kinds):
            return all(a.get(kind) is not None and a.get(kind) == b.get(kind) for kind in kinds)
        if a["pci"].rpartition(":")[0] == b["pci"].rpartition(":")[0]:
            return 1
        return 2 if same("switch") else 4 if same("numa") else 6 if same("package") else 9

    def test_costs_within_a_host(self):
        seen = set()
        for host, machine in self.machines.items():
            ports = machine.cabled()
            for a in ports:
                for b in set(ports) - {a}:
                    cost = self.scheduler.ctl_json("cost", f"{host}:{a}", f"{host}:{b}")["cost"]
                    self.assertEqual(cost, self.distance(ports[a], ports[b]), (host, a, b))
                    seen.add(cost)
        self.assertEqual(seen, {1, 2, 4, 6, 9})


@unittest.skipUnless(os.path.isdir(whole.STANDIN), "the stand-in of libibverbs is not built")
class Lives(Site):
    """Two nodes and a scheduler, each on a host of its own, and what may happen to them."""

    @classmethod
    def setUpClass(cls):
        machines = [whole.Machine("node0001", 1, os.path.join(DATA, "distances.xml")),
                    whole.Machine("node0002", 2, os.path.join(DATA, "switches.xml"))]
        cls.build(machines, {"node0001": (SCHEDULER, NODE, ["node0001"]),
                             "node0002": ("10.91.2.1", "10.91.2.2", ["node0002"])})

    def setUp(self):
        for machine in self.machines.values():
            machine.gone, machine.firmware = set(), {}
            machine.show()
        self.scheduler = self.start_scheduler()
        self.addCleanup(self.end, self.scheduler)
        self.nodes = {}
        for host, machine in self.machines.items():
            self.nodes[host] = self.start_node(machine, host)
            self.addCleanup(self.end, self.nodes[host])
        for host in self.machines:
            self.nodes[host].wait_delivered()
            self.wait_published(self.scheduler, host)
        self.machine, self.node = self.machines["node0001"], self.nodes["node0001"]
        self.generation = self.scheduler.status()["generation"]

    def change(self, firmware):
        self.machine.firmware["mlx5_0"] = firmware
        self.machine.show()

    def look_again(self, node=None):
        """Not waiting for the answer."""
        (node or self.node).look()

    def history(self):
        changes = self.scheduler.control("diff", **{"from": self.generation})["changes"]
        return [(c["kind"], c["what"], c["before"], c["after"]) for c in changes]

    def test_a_device_is_gone_and_another_has_new_firmware(self):
        self.machine.gone, self.machine.firmware = {"mlx5_5"}, {"mlx5_1": "20.40.2000"}
        self.machine.show()
        self.look_again()
        self.scheduler.until_true(lambda: self.texts(self.scheduler, "node0001", "firmware")["mlx5_1"] == ["20.40.2000"], "updated")
        shown = {d["name"]: d for d in self.scheduler.ctl_json("devices", "node0001")}
        # The subnet goes on seeing its port: under the name that this has there.
        self.assertEqual(shown["mlx5_5"]["seen"], "subnet")
        self.assertEqual({source for fact in shown["mlx5_5"]["facts"] for source in fact["sources"]}, {"subnet"})
        self.assertEqual(shown["mlx5_5"]["firmware"], None)
        self.assertEqual(shown["mlx5_0"]["seen"], "subnet,node")
        told = self.history()
        self.assertTrue(any("mlx5_1" in what and (before, after) == (whole.FIRMWARE, "20.40.2000")
                            for _, what, before, after in told), told)
        self.assertTrue(any("mlx5_5" in what for _, what, _, _ in told), told)
        # A scan that was under way may have seen the half of it.
        self.assertIn(self.scheduler.status()["generation"] - self.generation, (1, 2))
        machine = self.machines["node0002"]  # of an uncabled one, which only its node sees, nothing is left
        self.assertIn("mlx5_2", self.facts(self.scheduler, "node0002"))
        machine.gone = {"mlx5_2"}
        machine.show()
        self.look_again(self.nodes["node0002"])
        self.wait_published(self.scheduler, "node0002")
        self.assertNotIn("mlx5_2", self.facts(self.scheduler, "node0002"))

    def typed(self, daemon, *args):
        done = daemon.ctl(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_what_an_operator_types(self):
        """The commands of docs/operations.md, "Compute nodes", and the lines that it explains."""
        self.assertRegex(self.typed(self.scheduler, "nodes"),
                         r"(?m)^node0001 +\d+ +\d+ +verbs,hwloc,libfabric,ucx,ethernet ")
        self.change("20.41.1000")
        self.typed(self.scheduler, "refresh", "--host", "node0001")
        self.wait_published(self.scheduler, "node0001")
        self.assertIn("20.41.1000", self.typed(self.scheduler, "devices", "node0001"))
        lab.replace_file(os.path.join(self.machine.folder, "ucx.json"), "{")
        self.typed(self.node, "refresh")
        self.assertRegex(self.typed(self.node, "status"), r"FAILED PROBES +1 of 5")
        self.wait_published(self.scheduler, "node0001")  # what it said before stands
        self.node.kill9()
        self.typed(self.scheduler, "forget", "node0001")
        self.scheduler.until_true(lambda: {device["seen"] for device in self.scheduler.ctl_json("devices", "node0001")} == {"subnet"},
                                  "updated")
        self.assertNotIn("node0001", self.typed(self.scheduler, "nodes"))
        liar = self.start_node(self.machine, "node0001", host="node0002")
        self.addCleanup(self.end, liar)
        reason = liar.wait_status(lambda status: status["refused"], "to be refused")["reason"]
        self.assertRegex(reason, rf"^node0002: uid 0 on {NODE} may not report for this host, which is 10\.91\.2\.2: ")
        self.assertIn(f"intake: refused: {reason}\n", self.scheduler.log())
        self.assertRegex(self.typed(liar, "status"), r"REFUSED.*node0002: uid 0 on")
        self.assertEqual(self.scheduler.stop(), 0)
        other = self.nodes["node0002"]
        other.wait_status(lambda status: status["stale"], "to notice")
        self.assertIn("the scheduler cannot be reached", self.typed(other, "status"))

    def test_the_scheduler_is_killed_in_the_middle_of_a_delivery(self):
        """It has the bytes, and will never read them."""
        self.scheduler.process.send_signal(signal.SIGSTOP)
        self.change("20.43.1000")
        self.look_again()
        self.node.wait_status(lambda status: status["delivering"], "to deliver")
        self.assertNotEqual(self.node.status()["held"], self.node.status()["digest"])
        self.scheduler.kill9()
        self.scheduler.start()
        for node in self.nodes.values():
            node.wait_delivered()
        self.wait_published(self.scheduler, "node0001")
        self.assertEqual(self.scheduler.status()["nodes"], 2)


if __name__ == "__main__":
    unittest.main()
