"""A scheduler's fabricd and what hosts report: deliveries through the control socket, its own local probes, what is
published of them and when, and what is left of it after a kill."""
import base64
import json
import os
import random
import time
import unittest

import lab

SPEC = "fattree2:4,2,4"  # node0001 .. node0016
CIDR = "10.91.0.0/16"
OUTSIDER = "nobody"


def machine(number, **changes):
    """What the probes of host `number` of the fabric would record: its HCA, and a network interface. `changes` are
    facts of the HCA as verbs tells them; host, and with extra=N so many HCAs more that have no cable."""
    node = 0x100000 + 2 * (number - 1)
    host, extra = changes.pop("host", f"node{number:04}"), changes.pop("extra", 0)
    hca = {"source": "verbs", "name": "mlx5_0", "port": "1", "node-guid": f"{node:#018x}",
           "port-guid": f"{node + 1:#018x}", "firmware": "20.31.1014", "driver": "mlx5_core", "state": "up"}
    hca.update(changes)
    items = [hca, {"source": "hwloc", "name": "mlx5_0", "pci": "0000:c1:00:00", "numa": "1", "package": "0",
                   "vendor": "Mellanox Technologies"},
             {"source": "ethernet", "interface": "eth0", "mac": f"02:00:00:00:00:{number:02x}", "state": "up",
              "address": [f"10.91.0.{number}/16"], "speed": "10000", "mtu": "1500"}]
    for index in range(1, extra + 1):
        guid = 0xaa000000 + 0x1000 * number + 2 * index
        items.append({"source": "verbs", "name": f"mlx5_{index}", "port": "1", "node-guid": f"{guid:#018x}",
                      "port-guid": f"{guid + 1:#018x}", "state": "down"})
    return {"host": host, "items": items}


class Case(unittest.TestCase):
    config = {}

    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "fabric.txt")
        lab.replace_file(self.capture, lab.fabric(SPEC, "capture"))

    def start(self, probes=(), wait=True, **options):
        config = {"fabricd": {"probe": [f"file:{self.capture}", *probes], "host": "scheduler"},
                  "ethernet": {"storage": CIDR}}
        for section, settings in options.pop("config", {}).items():
            config.setdefault(section, {}).update(settings)
        daemon = lab.Fabricd(config=config, start=False, **options)
        daemon.start(wait)
        self.addCleanup(daemon.stop)
        return daemon

    def record(self, recorded, name="machine.json"):
        path = os.path.join(self.dir, name)
        lab.replace_file(path, json.dumps(recorded))
        return path

    def delivery(self, recorded, before=None):
        """The bytes of a delivery, in base64."""
        paths = [self.record(recorded)] + ([self.record(before, "before.json")] if before else [])
        with open(os.path.join(self.dir, "delivery"), "wb") as out:
            done = lab.run([lab.program("report_tool"), *paths], stdout=out)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.dir, "delivery"), "rb") as file:
            return base64.b64encode(file.read()).decode()

    def deliver(self, daemon, recorded, before=None):
        answer = daemon.control("deliver", bytes=self.delivery(recorded, before))
        self.assertTrue(answer["ok"], answer)
        return answer

    def wait_for(self, daemon, generation):
        """The status when this generation is published."""
        def there():
            daemon.check_alive()
            status = daemon.status()
            return status["generation"] >= generation and status
        status = lab.wait_for(there, 20, f"generation {generation}")
        self.assertEqual(status["generation"], generation)
        return status

    def history(self, daemon, generation):
        """[(kind, what, before, after)] of one generation."""
        changes = daemon.control("diff", **{"from": generation - 1, "to": generation})["changes"]
        return [(c["kind"], c["what"], c["before"], c["after"]) for c in changes]

    def planes(self, daemon):
        return daemon.ctl_json("planes")

    def names(self, daemon):
        return [plane["name"] for plane in self.planes(daemon)]


class Deliveries(Case):
    def test_told_and_published(self):
        daemon = self.start()
        self.assertEqual((daemon.status()["nodes"], daemon.status()["role"], daemon.status()["host"]),
                         (0, "scheduler", "scheduler"))
        answer = self.deliver(daemon, machine(1))
        self.assertRegex(answer["held"], "^[0-9a-f]{16}$")
        self.assertEqual(self.wait_for(daemon, 2)["nodes"], 1)
        self.assertEqual(self.history(daemon, 2), [("report-added", "node0001", "", "2 devices")])
        self.assertEqual(self.names(daemon), ["ib0", "storage"])
        node, = daemon.control("nodes")["nodes"]
        self.assertEqual((node["host"], node["devices"], node["unseen"], node["items"], node["digest"], node["uid"],
                          sorted(node["sources"]), node["remarks"]),
                         ("node0001", 2, 1, 3, answer["held"], os.geteuid(), ["ethernet", "hwloc", "verbs"], []))
        self.assertRegex(node["received"], r"^\d{4}-\d\d-\d\dT")

        # The same once more is no news; a change is told as what it is.
        self.assertEqual(self.deliver(daemon, machine(1))["held"], answer["held"])
        self.deliver(daemon, machine(1, firmware="20.40.2000"), before=machine(1))
        self.wait_for(daemon, 3)
        (kind, what, before, after), = self.history(daemon, 3)
        self.assertEqual((before, after), ("20.31.1014", "20.40.2000"))
        self.assertIn("firmware", kind + what)
        self.assertIn("node0001", what)

        self.assertTrue(daemon.control("forget", host="node0001")["ok"])
        self.wait_for(daemon, 4)
        self.assertEqual(self.history(daemon, 4), [("report-lost", "node0001", "2 devices", "")])
        self.assertEqual((self.names(daemon), daemon.control("nodes")["nodes"]), (["ib0"], []))
        self.assertFalse(daemon.control("forget", host="node0001")["ok"])
        self.assertFalse(daemon.errors())

    def test_hosts_of_two_domains_are_two_and_a_domain_may_be_left_out(self):
        text = lab.fabric(SPEC, "capture").replace('"node0001"', '"n.a"').replace('"node0002"', '"n.b"')
        lab.replace_file(self.capture, text)
        daemon = self.start()
        self.deliver(daemon, machine(1, host="n.a"))
        self.deliver(daemon, machine(2, host="n.b", extra=2))
        self.deliver(daemon, machine(5, host="node0005.cluster"))
        lab.wait_for(lambda: all(n["devices"] for n in daemon.control("nodes")["nodes"]), what="three hosts")
        listed = [(n["host"], n["devices"], n["unseen"]) for n in daemon.control("nodes")["nodes"]]
        self.assertEqual(listed, [("n.a", 2, 1), ("n.b", 4, 3), ("node0005.cluster", 2, 1)])
        self.assertEqual([n["host"] for n in daemon.control("nodes", host="node0005")["nodes"]], ["node0005.cluster"])

        # One cable less at each of two hosts: what is told of one of them, whatever it is called.
        lab.replace_file(self.capture, text.replace('"n.a"', '"n.c"').replace('"node0003"', '"node0033"'))
        told = daemon.ctl_json("refresh", "--host", "node0003.cluster")["changes"]
        self.assertTrue(told)
        for one in told:
            self.assertIn("node0003", " ".join(one["subjects"]))
        for name in ("node0004.far.away", "node0003.cluster"):
            done = daemon.ctl("refresh", "--host", name)
            self.assertEqual((done.returncode, "nothing changed" in done.stdout), (0, True) if "4" in name else (1, False), done)
        done = daemon.ctl("refresh", "--host", "n.d")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no host n.d", done.stderr)

        # Nobody is forgotten who only may have been meant.
        answer = daemon.control("forget", host="n")
        self.assertEqual((answer["ok"], answer["error"]), (False, -6))
        self.assertIn("forget: n can be several hosts: give the whole name", answer["message"])
        for name in ("n.b", "node0005"):
            self.assertTrue(daemon.control("forget", host=name)["ok"])
        self.assertEqual([n["host"] for n in daemon.control("nodes")["nodes"]], ["n.a"])

    def test_what_cannot_be_taken_changes_nothing(self):
        daemon = self.start()
        self.deliver(daemon, machine(1))
        self.wait_for(daemon, 2)
        whole, delta = self.delivery(machine(1)), self.delivery(machine(1, driver="x"), machine(1, firmware="1"))
        raw = base64.b64decode(whole)
        for text in (whole[:-4], whole + "====", whole.replace("A", "-"), "", "A", "AAAA", None, 7,
                     base64.b64encode(raw[:-3] + b"abc").decode(), delta):
            answer = daemon.control("deliver", bytes=text)
            self.assertFalse(answer["ok"], text)
            self.assertIn("deliver", answer["message"])
        for host in (None, 3, "", "node0002"):
            self.assertFalse(daemon.control("forget", host=host)["ok"])
        self.assertEqual([node["host"] for node in daemon.control("nodes")["nodes"]], ["node0001"])
        self.assertEqual(daemon.refresh()["generation"], 2)

    def test_a_long_one(self):
        """Longer than any other line may be."""
        daemon = self.start()
        text = self.delivery(machine(1, extra=1500))
        self.assertGreater(len(text), 2 * 65536)
        self.assertTrue(daemon.control("deliver", bytes=text)["ok"])
        self.wait_for(daemon, 2)
        self.assertEqual({plane["name"]: plane["devices"] for plane in self.planes(daemon)},
                         {"ib0": 16, "storage": 1, "unattached": 1500})

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_who_may(self):
        daemon = self.start(config={"nodes": {"user": OUTSIDER}})
        lab.require("setpriv")

        with open(os.path.join(self.dir, "request"), "w+", encoding="utf-8") as file:
            for user, op, good in ((OUTSIDER, "deliver", True), ("daemon", "deliver", False),
                                   (OUTSIDER, "forget", False)):
                file.seek(0)
                file.truncate()
                json.dump({"op": op, "bytes": self.delivery(machine(1)), "host": "node0001"}, file)
                file.flush()
                file.seek(0)
                code = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
                        "s.sendall(sys.stdin.buffer.read()+b'\\n')\nprint(s.makefile().readline())")
                done = lab.run(["setpriv", f"--reuid={user}", "--clear-groups", "/usr/bin/python3", "-c", code,
                                os.path.join(daemon.rundir, "control.sock")], stdin=file)
                self.assertEqual(json.loads(done.stdout)["ok"], good, (user, op, done.stdout, done.stderr))

    def test_a_burst_is_one_generation(self):
        daemon = self.start()
        deliveries = [self.delivery(machine(number)) for number in range(1, 17)]
        channels = [daemon.ask("deliver", bytes=text) for text in deliveries]
        self.assertTrue(all(daemon.answer(channel)["ok"] for channel in channels))
        status = self.wait_for(daemon, 2)
        self.assertEqual(status["nodes"], 16)
        self.assertEqual(sorted(what for _, what, _, _ in self.history(daemon, 2)),
                         [f"node{number:04}" for number in range(1, 17)])
        self.assertEqual({plane["name"]: plane["devices"] for plane in self.planes(daemon)}, {"ib0": 16, "storage": 16})
        self.assertEqual(daemon.refresh()["generation"], 2)

    def test_claims_of_others_are_remarks(self):
        daemon = self.start()
        self.deliver(daemon, machine(1))
        self.wait_for(daemon, 2)
        self.deliver(daemon, machine(1, host="node0002"))  # the HCA of node0001, and its MAC

        def about():
            return {node["host"]: node["remarks"] for node in daemon.control("nodes")["nodes"]}
        self.wait_for(daemon, 3)  # what is its own is served, the network interface
        remarks = about()
        self.assertEqual(remarks["node0001"], ["the MAC of eth0 is claimed by node0002, too"])
        self.assertTrue(any("node0001" in line for line in remarks["node0002"]), remarks)
        said = daemon.log().count("warning: reports: node0002")
        self.assertEqual(said, len(remarks["node0002"]))
        self.deliver(daemon, machine(3))
        self.wait_for(daemon, 4)
        daemon.refresh()
        self.assertEqual(daemon.log().count("warning: reports: node0002"), said)  # not at each publication

    def test_unattached_ports_are_a_plane(self):
        daemon = self.start()
        self.deliver(daemon, machine(1, extra=20))
        self.wait_for(daemon, 2)
        planes = {plane["name"]: plane for plane in self.planes(daemon)}
        self.assertEqual(sorted(planes), ["ib0", "storage", "unattached"])
        self.assertEqual((planes["unattached"]["devices"], planes["unattached"]["default"]), (20, False))
        self.assertEqual(planes["unattached"]["identifier"], "unattached")
        self.assertEqual(planes["storage"]["identifier"], f"Ethernet-{CIDR}")
        numbers = {name: plane["index"] for name, plane in planes.items()}
        self.deliver(daemon, machine(1))
        self.wait_for(daemon, 3)
        self.assertEqual(sorted(self.names(daemon)), ["ib0", "storage"])
        self.deliver(daemon, machine(1, extra=2))
        self.wait_for(daemon, 4)
        self.assertEqual({plane["name"]: plane["index"] for plane in self.planes(daemon)}, numbers)

    def test_refresh_of_a_host_that_does_not_answer(self):
        daemon = self.start()
        answer = daemon.control("refresh", host="node0009")  # never reported: only the fabric is asked
        self.assertEqual((answer["ok"], answer["changed"]), (True, False))
        self.deliver(daemon, machine(1))
        self.wait_for(daemon, 2)
        channel = daemon.ask("refresh", host="node0001")
        with channel, channel.makefile(encoding="utf-8") as answers:
            first = json.loads(answers.readline())
            self.assertIn("asked to look", first["progress"])
            self.deliver(daemon, machine(1, firmware="20.40.2000"))  # as it would, when it hears the order
            lines = [json.loads(line) for line in (answers.readline() for _ in range(3))]
        self.assertEqual(lines[0], {"progress": "node0001 has delivered"})
        self.assertTrue(lines[-1]["ok"])
        self.assertEqual(lines[-1]["generation"], 3)
        gone = daemon.ask("refresh", host="node0001")
        gone.close()  # whoever does not wait is forgotten
        lab.wait_for(lambda: daemon.connections() == 0, what="the connection to go")
        self.assertTrue(daemon.status()["daemon"])


class Events(Case):
    def test_a_pair_for_each_plane(self):
        daemon = self.start()
        channel = daemon.ask("events", follow=True)
        with channel, channel.makefile(encoding="utf-8") as lines:
            self.assertTrue(json.loads(lines.readline())["ok"])
            self.deliver(daemon, machine(1))
            got = [json.loads(lines.readline()) for _ in range(4)]
        self.assertEqual([(event["event"], event["plane"], event["generation"]) for event in got],
                         [("PMIX_FABRIC_UPDATE_PENDING", "ib0", 2), ("PMIX_FABRIC_UPDATE_PENDING", "storage", 2),
                          ("PMIX_FABRIC_UPDATED", "ib0", 2), ("PMIX_FABRIC_UPDATED", "storage", 2)])


class Sweeps(Case):
    def test_a_failed_sweep_does_not_hold_reports_up(self):
        daemon = self.start()
        os.unlink(self.capture)
        self.assertFalse(daemon.control("refresh")["ok"])
        self.deliver(daemon, machine(1))
        self.assertTrue(self.wait_for(daemon, 2)["stale"])
        self.assertEqual(self.names(daemon), ["ib0", "storage"])

    def test_a_partial_sweep_leaves_the_fabric_and_takes_the_reports(self):
        daemon = self.start()
        whole = lab.fabric(SPEC, "capture")
        lab.replace_file(self.capture, whole[:whole.index("\nCa")].rsplit("\nvendid", 1)[0] + "\n")
        first = daemon.control("refresh")
        self.assertFalse(first["ok"])
        self.deliver(daemon, machine(1))
        self.wait_for(daemon, 2)
        self.assertEqual([plane["devices"] for plane in self.planes(daemon)], [16, 1])

    def test_without_a_first_sweep_reports_wait(self):
        os.unlink(self.capture)
        daemon = self.start(wait=False)
        daemon.wait_up()
        self.deliver(daemon, machine(1))
        self.assertFalse(daemon.control("refresh")["ok"])
        self.assertEqual(daemon.status()["generation"], 0)
        lab.replace_file(self.capture, lab.fabric(SPEC, "capture"))
        self.assertEqual(daemon.refresh()["generation"], 1)
        self.assertEqual(self.names(daemon), ["ib0", "storage"])
        self.assertIn(("report-added", "node0001", "", "2 devices"), self.history(daemon, 1))

    def test_a_report_arrives_while_a_sweep_is_under_way(self):
        feed = lab.Feed()
        daemon = self.start()
        daemon.stop()
        daemon.configure({"fabricd": {"probe": feed.probe, "host": "scheduler", "rundir": daemon.rundir,
                                      "store": daemon.store, "interval": 0}, "ethernet": {"storage": CIDR}})
        daemon.start(wait=False)
        daemon.wait_up()
        self.deliver(daemon, machine(1))
        self.assertTrue(self.wait_for(daemon, 2)["sweeping"])
        feed.give(lab.fabric(SPEC, "capture"))
        lab.wait_for(lambda: not daemon.status()["sweeping"], what="the sweep's end")
        self.assertEqual(daemon.status()["generation"], 2)


class Own(Case):
    """The scheduler's own local probes, which look at a recorded machine."""

    def test_one_generation_of_sweep_and_look(self):
        path = self.record(machine(1, host="scheduler"), "own.json")
        lab.replace_file(self.capture, lab.fabric(SPEC, "capture").replace("node0001", "scheduler"))
        daemon = self.start([f"verbs:{path}", f"ethernet:{path}"])
        self.assertEqual(daemon.status()["generation"], 1)
        self.assertEqual(self.names(daemon), ["ib0", "storage"])
        node, = daemon.control("nodes")["nodes"]
        self.assertEqual((node["host"], node["devices"], sorted(node["sources"])),
                         ("scheduler", 2, ["ethernet", "verbs"]))
        self.record(machine(1, host="scheduler", firmware="20.40.2000"), "own.json")
        self.assertEqual(daemon.refresh()["generation"], 2)
        self.assertEqual(len(self.history(daemon, 2)), 1)
        self.assertEqual(daemon.refresh(host="scheduler")["generation"], 2)

    def test_no_fabric_probe_at_all(self):
        path = self.record(machine(1, host="scheduler", extra=2), "own.json")
        daemon = lab.Fabricd(config={"fabricd": {"probe": [f"verbs:{path}", f"ethernet:{path}"], "host": "scheduler"},
                                     "ethernet": {"storage": CIDR}})
        self.addCleanup(daemon.stop)
        planes = {plane["name"]: plane for plane in self.planes(daemon)}
        self.assertEqual({name: plane["devices"] for name, plane in planes.items()}, {"storage": 1, "unattached": 3})
        self.assertTrue(planes["storage"]["default"])
        self.deliver(daemon, machine(2))
        self.wait_for(daemon, 2)
        daemon.stop()
        daemon.start()
        self.assertEqual(daemon.refresh()["generation"], 2)

    def test_once(self):
        path = self.record(machine(1, host="scheduler"), "own.json")
        daemon = lab.Fabricd(config={"fabricd": {"probe": [f"verbs:{path}"], "host": "scheduler"}}, start=False)
        done = daemon.run_once()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(os.path.join(daemon.rundir, "unattached.snap")))
        os.unlink(path)
        self.assertEqual(daemon.run_once().returncode, 1)  # the only probe failed

    def test_a_fabric_probe_that_is_configured_no_more(self):
        daemon = self.start()
        self.deliver(daemon, machine(1))
        self.wait_for(daemon, 2)
        daemon.stop()
        path = self.record(machine(2), "own.json")
        daemon.configure({"fabricd": {"probe": f"ethernet:{path}", "host": "node0002", "rundir": daemon.rundir,
                                      "store": daemon.store, "interval": 0}, "ethernet": {"storage": CIDR}})
        daemon.start()
        status = self.wait_for(daemon, 3)
        self.assertEqual((status["nodes"], sorted(self.names(daemon))), (2, ["storage", "unattached"]))
        self.assertIn("host-lost", {kind for kind, _, _, _ in self.history(daemon, 3)})


class Restarts(Case):
    def test_everything_is_there_again(self):
        daemon = self.start()
        self.deliver(daemon, machine(1))
        self.wait_for(daemon, 2)
        nodes, planes = daemon.control("nodes")["nodes"], self.planes(daemon)
        daemon.stop()
        os.unlink(self.capture)  # what is served comes of the store, before and without a sweep
        daemon.start(wait=False)
        daemon.wait_up()
        self.assertEqual(self.planes(daemon), planes)
        again = daemon.control("nodes")["nodes"]
        self.assertEqual([(node["host"], node["digest"], node["received"]) for node in again],
                         [(node["host"], node["digest"], node["received"]) for node in nodes])
        lab.replace_file(self.capture, lab.fabric(SPEC, "capture"))
        self.assertEqual(daemon.refresh()["generation"], 2)
        self.assertEqual(self.planes(daemon), planes)

    def test_killed_between_the_store_and_publishing(self):
        """Delivered and acknowledged, and killed before it was published: the next one publishes and tells it."""
        daemon = self.start(config={"nodes": {"debounce_ms": 60000}})  # milliseconds: it stays unpublished
        self.deliver(daemon, machine(1))
        self.assertEqual(daemon.status()["generation"], 1)
        daemon.kill9()
        daemon.start(wait=False)
        self.wait_for_up(daemon, 2)
        self.assertEqual(self.history(daemon, 2), [("report-added", "node0001", "", "2 devices")])
        # Three deliveries of one host, of which only the last is published: one change, from what was published.
        for firmware in ("20.32.0", "20.33.0", "20.34.0"):
            self.deliver(daemon, machine(2))
            self.deliver(daemon, machine(1, firmware=firmware))
        daemon.kill9()
        daemon.start(wait=False)
        generation = self.wait_for_up(daemon, 3)["generation"]
        told = [(before, after) for number in range(3, generation + 1)
                for kind, what, before, after in self.history(daemon, number) if "firmware" in kind + what]
        self.assertEqual(told[0][0], "20.31.1014")
        self.assertEqual(told[-1][1], "20.34.0")
        for earlier, later in zip(told, told[1:]):
            self.assertEqual(earlier[1], later[0])

    def wait_for_up(self, daemon, generation):
        daemon.wait_up()
        return daemon.wait_ready(generation)

    def test_killed_at_any_moment(self):
        """What was acknowledged is never lost, and the history tells each change once: its steps join."""
        moments = random.Random(self.id())
        daemon = self.start(config={"nodes": {"debounce_ms": 20}})
        last = "20.31.1014"
        self.deliver(daemon, machine(1))
        for kill in range(12):
            firmware = f"20.50.{kill}"
            self.deliver(daemon, machine(1, firmware=firmware))
            last = firmware
            time.sleep(moments.uniform(0, 0.04))  # the moment is what is tried
            daemon.kill9()
            daemon.start(wait=False)
            daemon.wait_up()
        daemon.wait_ready()
        self.deliver(daemon, machine(1, firmware="99.99"))
        lab.wait_for(lambda: any(change["after"] == "99.99" for change in daemon.control("history")["changes"]), 20,
                     "the last change")
        changes = daemon.control("history", limit=100000)["changes"]
        told = [(change["before"], change["after"]) for change in changes if change["after"].startswith(("20.", "99."))]
        for (_, after), (before, _) in zip(told, told[1:]):
            self.assertEqual(after, before, told)
        self.assertEqual(told[-1], (last, "99.99"))
        self.assertEqual(len(set(told)), len(told))
        self.assertEqual(sum(change["kind"] == "report-added" for change in changes), 1)


if __name__ == "__main__":
    unittest.main()
