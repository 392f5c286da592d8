"""A scheduler's fabricd and what hosts report: deliveries through the control socket, its own local probes, what is published of them and
when, and what is left of it after a kill."""
import base64
import json
import os
import unittest

import sim
from machines import CIDR, machine
from sim import lab

SPEC = "fattree2:4,2,4"  # node0001 .. node0016


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = lab.tmpdir()

    def start(self, probes=(), fabric=None, start=True, config=None):
        settings = {"fabricd": {"host": "scheduler"}, "ethernet": {"storage": CIDR}, **(config or {})}
        self.site = sim.Recorded(fabric or sim.fabric(SPEC, "capture"), settings, start=False)
        self.addCleanup(self.site.free)
        self.site.configure({"fabricd": {"probe": [f"file:{self.site.path}", *probes]}})
        if start:
            self.site.start()
        return self.site

    def record(self, recorded, name="machine.json"):
        path = os.path.join(self.dir, name)
        lab.replace_file(path, json.dumps(recorded))
        return path

    def delivery(self, recorded, before=None):
        """The bytes of a delivery, in base64."""
        return sim.delivery(recorded, before)

    def deliver(self, site, recorded, before=None):
        answer = site.control("deliver", bytes=self.delivery(recorded, before))
        self.assertTrue(answer["ok"], answer)
        return answer

    def published(self, site, generation):
        """The status when the deliveries so far are published, as this generation."""
        site.advance(1)
        status = site.status()
        self.assertEqual(status["generation"], generation)
        return status

    def history(self, site, generation):
        """[(kind, what, before, after)] of one generation."""
        changes = site.control("diff", **{"from": generation - 1, "to": generation})["changes"]
        return [(c["kind"], c["what"], c["before"], c["after"]) for c in changes]

    def planes(self, site):
        return site.ctl_json("planes")

    def names(self, site):
        return [plane["name"] for plane in self.planes(site)]


class Deliveries(Case):
    def test_told_and_published(self):
        site = self.start()
        self.assertEqual((site.status()["nodes"], site.status()["role"], site.status()["host"]),
                         (0, "scheduler", "scheduler"))
        answer = self.deliver(site, machine(1))
        self.assertRegex(answer["held"], "^[0-9a-f]{16}$")
        self.assertEqual(self.published(site, 2)["nodes"], 1)
        self.assertEqual(self.history(site, 2), [("report-added", "node0001", "", "2 devices")])
        self.assertEqual(self.names(site), ["ib0", "storage"])
        node, = site.control("nodes")["nodes"]
        self.assertEqual((node["host"], node["devices"], node["unseen"], node["items"], node["digest"], node["uid"],
                          sorted(node["sources"]), node["remarks"]),
                         ("node0001", 2, 1, 3, answer["held"], os.geteuid(), ["ethernet", "hwloc", "verbs"], []))
        self.assertRegex(node["received"], r"^\d{4}-\d\d-\d\dT")

        # The same once more is no news; a change is told as what it is.
        self.assertEqual(self.deliver(site, machine(1))["held"], answer["held"])
        self.deliver(site, machine(1, firmware="20.40.2000"), before=machine(1))
        self.published(site, 3)
        (kind, what, before, after), = self.history(site, 3)
        self.assertEqual((before, after), ("20.31.1014", "20.40.2000"))
        self.assertIn("firmware", kind + what)
        self.assertIn("node0001", what)

        self.assertTrue(site.control("forget", host="node0001")["ok"])
        self.published(site, 4)
        self.assertEqual(self.history(site, 4), [("report-lost", "node0001", "2 devices", "")])
        self.assertEqual((self.names(site), site.control("nodes")["nodes"]), (["ib0"], []))
        self.assertFalse(site.control("forget", host="node0001")["ok"])
        self.assertFalse(site.errors())

    def test_hosts_of_two_domains_are_two_and_a_domain_may_be_left_out(self):
        text = sim.fabric(SPEC, "capture").replace('"node0001"', '"n.a"').replace('"node0002"', '"n.b"')
        site = self.start(fabric=text)
        self.deliver(site, machine(1, host="n.a"))
        self.deliver(site, machine(2, host="n.b", extra=2))
        self.deliver(site, machine(5, host="node0005.cluster"))
        site.advance(1)
        listed = [(n["host"], n["devices"], n["unseen"]) for n in site.control("nodes")["nodes"]]
        self.assertEqual(listed, [("n.a", 2, 1), ("n.b", 4, 3), ("node0005.cluster", 2, 1)])
        self.assertEqual([n["host"] for n in site.control("nodes", host="node0005")["nodes"]], ["node0005.cluster"])

        # One cable less at each of two hosts: what is told of one of them, whatever it is called.
        site.show(text.replace('"n.a"', '"n.c"').replace('"node0003"', '"node0033"'))
        told = site.ctl_json("refresh", "--host", "node0003.cluster")["changes"]
        self.assertTrue(told)
        for one in told:
            self.assertIn("node0003", " ".join(one["subjects"]))
        for name in ("node0004.far.away", "node0003.cluster"):
            done = site.ctl("refresh", "--host", name)
            self.assertEqual((done.returncode, "nothing changed" in done.stdout), (0, True) if "4" in name else (1, False), done)
        done = site.ctl("refresh", "--host", "n.d")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no host n.d", done.stderr)

        # Nobody is forgotten who only may have been meant.
        answer = site.control("forget", host="n")
        self.assertEqual((answer["ok"], answer["error"]), (False, -6))
        self.assertIn("forget: n matches several hosts: give the whole name", answer["message"])
        for name in ("n.b", "node0005"):
            self.assertTrue(site.control("forget", host=name)["ok"])
        self.assertEqual([n["host"] for n in site.control("nodes")["nodes"]], ["n.a"])

    def test_what_cannot_be_taken_changes_nothing(self):
        site = self.start()
        self.deliver(site, machine(1))
        self.published(site, 2)
        whole, delta = self.delivery(machine(1)), self.delivery(machine(1, driver="x"), machine(1, firmware="1"))
        raw = base64.b64decode(whole)
        for text in (whole[:-4], whole + "====", whole.replace("A", "-"), "", "A", "AAAA", None, 7,
                     base64.b64encode(raw[:-3] + b"abc").decode(), delta):
            answer = site.control("deliver", bytes=text)
            self.assertFalse(answer["ok"], text)
            self.assertIn("deliver", answer["message"])
        for host in (None, 3, "", "node0002"):
            self.assertFalse(site.control("forget", host=host)["ok"])
        self.assertEqual([node["host"] for node in site.control("nodes")["nodes"]], ["node0001"])
        self.assertEqual(site.refresh()["generation"], 2)

    def test_a_long_one(self):
        """Longer than any other line may be."""
        site = self.start()
        text = self.delivery(machine(1, extra=1500))
        self.assertGreater(len(text), 2 * 65536)
        self.assertTrue(site.control("deliver", bytes=text)["ok"])
        self.published(site, 2)
        self.assertEqual({plane["name"]: plane["devices"] for plane in self.planes(site)},
                         {"ib0": 16, "storage": 1, "unattached": 1500})

    def test_a_burst_is_one_generation(self):
        site = self.start()
        deliveries = [self.delivery(machine(number)) for number in range(1, 17)]
        channels = [site.ask("deliver", bytes=text) for text in deliveries]
        self.assertTrue(all(channel.answer()["ok"] for channel in channels))
        status = self.published(site, 2)
        self.assertEqual(status["nodes"], 16)
        self.assertEqual(sorted(what for _, what, _, _ in self.history(site, 2)),
                         [f"node{number:04}" for number in range(1, 17)])
        self.assertEqual({plane["name"]: plane["devices"] for plane in self.planes(site)}, {"ib0": 16, "storage": 16})
        self.assertEqual(site.refresh()["generation"], 2)

    def test_claims_of_others_are_remarks(self):
        site = self.start()
        self.deliver(site, machine(1))
        self.published(site, 2)
        self.deliver(site, machine(1, host="node0002"))  # the HCA of node0001, and its MAC

        def about():
            return {node["host"]: node["remarks"] for node in site.control("nodes")["nodes"]}
        self.published(site, 3)  # what is its own is served, the network interface
        remarks = about()
        self.assertEqual(remarks["node0001"], ["the MAC of eth0 is also claimed by node0002"])
        self.assertTrue(any("node0001" in line for line in remarks["node0002"]), remarks)
        said = site.log().count("warning: reports: node0002")
        self.assertEqual(said, len(remarks["node0002"]))
        self.deliver(site, machine(3))
        self.published(site, 4)
        site.refresh()
        self.assertEqual(site.log().count("warning: reports: node0002"), said)  # not at each publication

    def test_unattached_ports_are_a_plane(self):
        site = self.start()
        self.deliver(site, machine(1, extra=20))
        self.published(site, 2)
        planes = {plane["name"]: plane for plane in self.planes(site)}
        self.assertEqual(sorted(planes), ["ib0", "storage", "unattached"])
        self.assertEqual((planes["unattached"]["devices"], planes["unattached"]["default"]), (20, False))
        self.assertEqual(planes["unattached"]["identifier"], "unattached")
        self.assertEqual(planes["storage"]["identifier"], f"Ethernet-{CIDR}")
        numbers = {name: plane["index"] for name, plane in planes.items()}
        self.deliver(site, machine(1))
        self.published(site, 3)
        self.assertEqual(sorted(self.names(site)), ["ib0", "storage"])
        self.deliver(site, machine(1, extra=2))
        self.published(site, 4)
        self.assertEqual({plane["name"]: plane["index"] for plane in self.planes(site)}, numbers)

    def test_refresh_of_a_host_that_does_not_answer(self):
        site = self.start()
        answer = site.control("refresh", host="node0009")  # never reported: only the fabric is asked
        self.assertEqual((answer["ok"], answer["changed"]), (True, False))
        self.deliver(site, machine(1))
        self.published(site, 2)
        channel = site.ask("refresh", host="node0001")
        self.assertIn("scans its devices", channel.line(0)["progress"])
        self.deliver(site, machine(1, firmware="20.40.2000"))  # as it would, when it hears the order
        self.assertEqual(channel.line(), {"progress": "node0001 has delivered"})
        answer = channel.answer()
        self.assertEqual((answer["ok"], answer["generation"]), (True, 3))
        gone = site.ask("refresh", host="node0001")
        gone.close()  # whoever does not wait is forgotten
        self.published(site, 3)
        self.assertEqual(site.children(), [])
        self.assertTrue(site.status()["daemon"])


class Events(Case):
    def test_a_pair_for_each_plane(self):
        site = self.start()
        channel = site.ask("events", follow=True)
        self.assertTrue(channel.line()["ok"])
        self.deliver(site, machine(1))
        got = [channel.line() for _ in range(4)]
        channel.close()
        self.assertEqual([(event["event"], event["plane"], event["generation"]) for event in got],
                         [("PMIX_FABRIC_UPDATE_PENDING", "ib0", 2), ("PMIX_FABRIC_UPDATE_PENDING", "storage", 2),
                          ("PMIX_FABRIC_UPDATED", "ib0", 2), ("PMIX_FABRIC_UPDATED", "storage", 2)])


class Sweeps(Case):
    def test_a_failed_sweep_does_not_hold_reports_up(self):
        site = self.start()
        os.unlink(site.path)
        self.assertFalse(site.control("refresh")["ok"])
        self.deliver(site, machine(1))
        self.assertTrue(self.published(site, 2)["stale"])
        self.assertEqual(self.names(site), ["ib0", "storage"])

    def test_a_partial_sweep_leaves_the_fabric_and_takes_the_reports(self):
        site = self.start()
        whole = sim.fabric(SPEC, "capture")
        site.show(whole[:whole.index("\nCa")].rsplit("\nvendid", 1)[0] + "\n")
        first = site.control("refresh")
        self.assertFalse(first["ok"])
        self.deliver(site, machine(1))
        self.published(site, 2)
        self.assertEqual([plane["devices"] for plane in self.planes(site)], [16, 1])

    def test_without_a_first_sweep_reports_wait(self):
        site = self.start(start=False)
        os.unlink(site.path)
        site.start()
        self.deliver(site, machine(1))
        self.assertFalse(site.control("refresh")["ok"])
        self.assertEqual(site.status()["generation"], 0)
        site.show(sim.fabric(SPEC, "capture"))
        self.assertEqual(site.refresh()["generation"], 1)
        self.assertEqual(self.names(site), ["ib0", "storage"])
        self.assertIn(("report-added", "node0001", "", "2 devices"), self.history(site, 1))

    def test_a_report_arrives_while_a_sweep_is_under_way(self):
        site = self.start()
        site.sweeps_take(5)
        sweep = site.ask("refresh")
        self.deliver(site, machine(1))
        self.assertTrue(self.published(site, 2)["sweeping"])
        self.assertEqual(sweep.answer()["generation"], 2)
        self.assertFalse(site.status()["sweeping"])


class Own(Case):
    """The scheduler's own local probes, which look at a recorded machine."""

    def test_one_generation_of_sweep_and_look(self):
        path = self.record(machine(1, host="scheduler"), "own.json")
        site = self.start([f"verbs:{path}", f"ethernet:{path}"], sim.fabric(SPEC, "capture").replace("node0001", "scheduler"))
        self.assertEqual(site.status()["generation"], 1)
        self.assertEqual(self.names(site), ["ib0", "storage"])
        node, = site.control("nodes")["nodes"]
        self.assertEqual((node["host"], node["devices"], sorted(node["sources"])),
                         ("scheduler", 2, ["ethernet", "verbs"]))
        self.record(machine(1, host="scheduler", firmware="20.40.2000"), "own.json")
        self.assertEqual(site.refresh()["generation"], 2)
        self.assertEqual(len(self.history(site, 2)), 1)
        self.assertEqual(site.refresh(host="scheduler")["generation"], 2)

    def test_no_fabric_probe_at_all(self):
        path = self.record(machine(1, host="scheduler", extra=2), "own.json")
        site = self.start(start=False)
        site.configure({"fabricd": {"probe": [f"verbs:{path}", f"ethernet:{path}"]}})
        site.start()
        planes = {plane["name"]: plane for plane in self.planes(site)}
        self.assertEqual({name: plane["devices"] for name, plane in planes.items()}, {"storage": 1, "unattached": 3})
        self.assertTrue(planes["storage"]["default"])
        self.deliver(site, machine(2))
        self.published(site, 2)
        site.stop()
        site.start()
        self.assertEqual(site.refresh()["generation"], 2)

    def test_a_fabric_probe_that_is_configured_no_more(self):
        site = self.start()
        self.deliver(site, machine(1))
        self.published(site, 2)
        site.stop()
        path = self.record(machine(2), "own.json")
        site.configure({"fabricd": {"probe": f"ethernet:{path}", "host": "node0002"}})
        site.start()
        status = self.published(site, 3)
        self.assertEqual((status["nodes"], sorted(self.names(site))), (2, ["storage", "unattached"]))
        self.assertIn("host-lost", {kind for kind, _, _, _ in self.history(site, 3)})


class Restarts(Case):
    def test_everything_is_there_again(self):
        site = self.start()
        self.deliver(site, machine(1))
        self.published(site, 2)
        nodes, planes = site.control("nodes")["nodes"], self.planes(site)
        site.stop()
        os.unlink(site.path)  # what is served comes of the store, before and without a sweep
        site.start()
        self.assertEqual(self.planes(site), planes)
        again = site.control("nodes")["nodes"]
        self.assertEqual([(node["host"], node["digest"], node["received"]) for node in again],
                         [(node["host"], node["digest"], node["received"]) for node in nodes])
        site.show(sim.fabric(SPEC, "capture"))
        self.assertEqual(site.refresh()["generation"], 2)
        self.assertEqual(self.planes(site), planes)

    def test_killed_between_the_store_and_publishing(self):
        """Delivered and acknowledged, and killed before it was published: the next one publishes and tells it."""
        site = self.start(config={"nodes": {"debounce_ms": 60000}})  # milliseconds: it stays unpublished
        self.deliver(site, machine(1))
        self.assertEqual(site.status()["generation"], 1)
        site.kill9()
        site.start()
        self.assertEqual(site.status()["generation"], 2)
        self.assertEqual(self.history(site, 2), [("report-added", "node0001", "", "2 devices")])
        # Three deliveries of one host, of which only the last is published: one change, from what was published.
        for firmware in ("20.32.0", "20.33.0", "20.34.0"):
            self.deliver(site, machine(2))
            self.deliver(site, machine(1, firmware=firmware))
        site.kill9()
        site.start()
        generation = site.status()["generation"]
        self.assertGreaterEqual(generation, 3)
        told = [(before, after) for number in range(3, generation + 1)
                for kind, what, before, after in self.history(site, number) if "firmware" in kind + what]
        self.assertEqual(told[0][0], "20.31.1014")
        self.assertEqual(told[-1][1], "20.34.0")
        for earlier, later in zip(told, told[1:]):
            self.assertEqual(earlier[1], later[0])

    def test_killed_at_any_moment(self):
        """What was acknowledged is never lost, and the history tells each change once: its steps join."""
        site = self.start(config={"nodes": {"debounce_ms": 20}})
        last = "20.31.1014"
        self.deliver(site, machine(1))
        for milliseconds in range(41):
            last = f"20.50.{milliseconds}"
            self.deliver(site, machine(1, firmware=last))
            site.advance(milliseconds / 1000)
            site.kill9()
            site.start()
        self.deliver(site, machine(1, firmware="99.99"))
        site.advance(1)
        changes = site.control("history", limit=100000)["changes"]
        told = [(change["before"], change["after"]) for change in changes if change["after"].startswith(("20.", "99."))]
        for (_, after), (before, _) in zip(told, told[1:]):
            self.assertEqual(after, before, told)
        self.assertEqual(told[-1], (last, "99.99"))
        self.assertEqual(len(set(told)), len(told))
        self.assertEqual(sum(change["kind"] == "report-added" for change in changes), 1)


if __name__ == "__main__":
    unittest.main()
