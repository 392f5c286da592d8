"""fabricd on a running subnet (ibsim, OpenSM): what its light sweeps, sweeps of one switch and sweeps of everything see of cables, ports,
subnet managers and error counters, and what becomes of the child that looks. (What follows from it is tested in test/sim.)"""
import re
import signal
import unittest

import lab

SMALL = "fattree2:4,2,4"
LEAF, SPINE, HOST = "leaf1", "spine2", "node0002"


class Case(unittest.TestCase):
    """A subnet, its manager where there is one, and a daemon, for all cases of a class; each puts back what it changes."""
    settings = {"light_sweep": 0, "flap_count": 0, "debounce": 0}
    managed = False

    @classmethod
    def setUpClass(cls):
        lab.require("ibsim", "opensm", "ibportstate", "ibnetdiscover")
        cls.sim = lab.Ibsim(lab.fabric(SMALL))
        cls.addClassCleanup(cls.sim.quit)
        if cls.managed:
            cls.manager = lab.OpenSM(cls.sim)
            cls.addClassCleanup(lambda: cls.manager.stop())
        else:
            cls.sim.sweep()
        cls.daemon = lab.Fabricd(cls.sim, config={"fabricd": {"log": "debug", "deadline": 5}, "changes": cls.settings})
        cls.addClassCleanup(cls.daemon.stop)
        cls.port = cls.sim.cable(LEAF, SPINE)

    def generation(self):
        return self.daemon.status()["generation"]

    def managers(self, good):
        """The subnet manager as `status` has it, once it is so."""
        return self.daemon.until_status(lambda status: [m for m in status["managers"] if good(m)], "light-sweep")["managers"][0]

    def changed(self, kind, since):
        """The changes of this kind after that generation, once there are some."""
        return self.daemon.until_true(lambda: [one for one in self.daemon.control("history")["changes"]
                                               if one["kind"] == kind and one["generation"] > since], "updated")


class Looked(Case):
    """Light sweeps."""
    settings = {"light_sweep": 1, "flap_count": 0, "debounce": 0}
    managed = True

    def looks(self):
        return self.daemon.until("light-sweep", after=-1)["count"]

    def test_a_cable_is_pulled_and_comes_back(self):
        watch = self.daemon.watch()
        self.addCleanup(watch.stop)
        watch.wait("^watching$")
        for generation, hand in enumerate((self.sim.unlink, self.sim.relink), self.generation() + 1):
            hand(LEAF, self.port)
            watch.wait(f"^PMIX_FABRIC_UPDATED .*generation {generation} ")
        self.sim.wait_active(LEAF, self.port)
        self.daemon.until("light-sweep")
        self.daemon.until_status(lambda status: status["dirty_since"] is None, "light-sweep")
        self.daemon.until("idle")
        self.assertFalse(self.daemon.refresh()["changed"], "a sweep of everything sees what looks did not notice")
        self.assertRegex(self.daemon.log(), r"[12] switch(?:es)? read again with \d+ packets")

    def test_a_port_is_disabled_and_one_comes_up_without_a_manager(self):
        port, before = self.sim.cable("leaf4", "node0015"), self.generation()
        # The simulator leaves the other end up; hardware has it down. fabricd sees both at once.
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.sim.unlink("leaf4", port)
        self.sim.set_port("0,1", port, "disable")  # beside the last host
        self.daemon.process.send_signal(signal.SIGCONT)
        missing, = self.changed("host-missing", before)
        self.assertIn(f"leaf4[{port}] is disabled", missing["why"])
        self.assertIn(("port-disabled", f"leaf4[{port}]"), [(f["kind"], f["where"]) for f in self.daemon.control("check")["findings"]])
        first = self.managers(lambda manager: manager["answers"])
        self.assertRegex(first["manager"], rf"^{self.sim.hosts[0]} \S+\[1\] \(LID {first['lid']}\)$")
        self.manager.stop()
        self.managers(lambda manager: not manager["answers"])
        self.sim.set_port("0,1", port, "enable")
        self.sim.relink("leaf4", port)
        inactive = self.changed("inactive", before)
        self.assertIn("node0015", inactive[0]["what"])
        type(self).manager = lab.OpenSM(self.sim, host=self.sim.hosts[1], arguments=["-p", "9"])
        after = self.managers(lambda manager: manager["another"] and manager["answers"])
        self.assertNotEqual(after["guid"], first["guid"])
        self.assertEqual(after["priority"], 9)
        self.assertIn(self.sim.hosts[1], after["manager"])
        self.changed("port-up", before)

    def test_lids_and_widths(self):
        seen = self.sim.run(["ibnetdiscover"]).stdout
        self.daemon.refresh()
        for switch in self.daemon.ctl_json("switches"):
            self.assertRegex(seen, rf'"{switch["name"]}" .*port 0 lid {switch["lid"]} ')
        for device in self.daemon.ctl_json("devices"):
            self.assertRegex(seen, rf'\# lid {device["lid"]} lmc 0 "leaf')
        self.assertEqual({link["width"] for link in self.daemon.ctl_json("links")}, {"4xHDR"})

    def test_the_child_that_looks_is_killed(self):
        (pid,) = self.daemon.children("--monitor-child")
        lab.Held(pid).signal(signal.SIGKILL)
        self.daemon.until_true(lambda: self.daemon.children("--monitor-child") not in ([], [pid]), "light-sweep")
        generation = self.generation()
        for hand in (self.sim.unlink, self.sim.relink):
            generation += 1
            hand(LEAF, self.port)
            self.daemon.until("generation", generation=generation)
        self.assertIn("changes are noticed at sweeps only", self.daemon.log())


class Ended(Case):
    """With a simulator of its own, which has places for ten clients: one that is killed keeps its place."""
    settings = {"light_sweep": 1, "flap_count": 0, "debounce": 0}
    managed = False

    def test_it_ends_with_its_daemon(self):
        for end in (self.daemon.kill9, self.daemon.stop, self.daemon.stop):
            self.daemon.until("light-sweep", after=0)
            (pid,) = self.daemon.children("--monitor-child")
            child = lab.Held(pid)
            if end == self.daemon.stop:
                lab.freeze(pid)  # it hangs
            end()
            self.assertTrue(child.ended())
            self.daemon.start()
        for _ in range(4):
            self.daemon.stop()
            self.daemon.start(wait=False)  # it is stopped while it sweeps
            self.daemon.wait_up()
        self.daemon.stop()
        self.daemon.start()


class Swept(Case):
    """Nothing is looked at but when it is asked for, and no subnet manager is there."""

    def same(self):
        """Is what is served what a sweep of everything sees?"""
        self.assertEqual(self.daemon.ctl("verify").stdout, f"generation {self.generation()} equals the fabric as swept now\n")

    def packets(self):
        """How many each sweep has sent so far: those of a part, those of everything."""
        log = self.daemon.log()
        return [[int(n) for n in re.findall(pattern, log)]
                for pattern in (r"\d+ switch(?:es)? read again with (\d+) packets", r"everything discovered with (\d+) packets")]

    def test_one_switch(self):
        """It is read with few packets; what changed elsewhere waits for a sweep of everything."""
        self.daemon.refresh()
        before = self.packets()
        other = self.sim.cable("leaf3", "spine1")
        self.sim.unlink(LEAF, self.port)
        self.sim.unlink("leaf3", other)
        done = self.daemon.ctl("verify")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(f"{LEAF}[{self.port}] - {SPINE}[1]", done.stdout)
        answer = self.daemon.ctl_json("refresh", "--switch", LEAF)
        self.assertEqual((answer["scope"], answer["scope_reason"]), ("switch", None))
        self.assertEqual([(c["kind"], c["what"]) for c in answer["changes"]], [("link-lost", f"{LEAF}[{self.port}] - {SPINE}[1]")])
        part, whole = self.packets()
        self.assertEqual((len(part), len(whole)), (len(before[0]) + 1, len(before[1]) + 1))  # of everything: by verify
        self.assertLess(part[-1], whole[-1] / 2)
        answer = self.daemon.ctl_json("refresh")
        self.assertEqual([c["what"] for c in answer["changes"]], [f"leaf3[{other}] - spine1[3]"])
        self.assertEqual((answer["scope"], answer["scope_reason"]), ("fabric", None))
        self.sim.relink(LEAF, self.port)
        self.sim.relink("leaf3", other)
        self.sim.sweep()
        guid = next(row["id"] for row in self.daemon.ctl_json("switches") if row["name"] == LEAF)
        for name in (guid, "leaf3"):  # with what that sweep saw it goes on
            changes = self.daemon.ctl_json("refresh", "--switch", name)["changes"]
            self.assertEqual([c["kind"] for c in changes if c["kind"] != "lid"], ["link-back"])
        self.same()

    def test_a_sweep_that_fails(self):
        """A part that answers does not say that the rest does. And two nodes of one GUID are taken for one, with ports that lead nowhere."""
        self.sim.command('Error "leaf3" 100')
        self.assertEqual(self.daemon.control("refresh")["error"], -17)
        self.assertEqual(self.daemon.control("refresh", switch=LEAF)["error"], -17)
        self.assertTrue(self.daemon.status()["stale"])
        self.sim.command('Error "leaf3" 0')
        answer = self.daemon.refresh(switch=LEAF)
        self.assertEqual((answer["scope"], answer["scope_reason"]), ("fabric", "the last sweep failed"))
        self.assertEqual((self.daemon.status()["stale"], self.daemon.refresh(switch=LEAF)["scope"]), (False, "switch"))
        served = [self.daemon.ctl_json(what) for what in ("matrix", "devices", "links")]
        for node, guid, twin in (("spine2", 0x200005, 0x200004), ("node0009", 0x100010, 0x100000)):
            self.sim.guid(node, twin)
            done = self.daemon.ctl("refresh")
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertRegex(done.stderr, r"the sweep is partial: (1 port leads|\d ports lead) nowhere.*still serving generation ")
            self.assertTrue(self.daemon.status()["stale"])
            self.assertEqual([self.daemon.ctl_json(what) for what in ("matrix", "devices", "links")], served)
            self.sim.guid(node, guid)
            self.assertFalse(self.daemon.refresh()["changed"])
        self.assertFalse(self.daemon.status()["stale"])

    def test_counters(self):
        """Of a switch that answers, that does not, and whose LID is another device's since the last sweep."""
        here, port = f"{LEAF}[{self.sim.cable(LEAF, 'node0001')}]", self.sim.cable(LEAF, "node0001")

        def ask():
            return {one["port"]: one for one in self.daemon.control("counters", name=LEAF)["ports"]}
        for counter, value in (("SymbolErrorCounter", 7), ("PortRcvErrors", 3), ("LinkDownedCounter", 200)):
            self.sim.command(f'PerformanceSet "{LEAF}"[{port}] PortCounters.{counter}={value}')
        ports = ask()
        self.assertEqual((len(ports), {one["state"] for one in ports.values()}), (6, {"read"}))
        self.assertEqual([ports[here][key] for key in ("symbol_errors", "receive_errors", "link_downed")], [7, 3, 200])
        self.sim.command(f'Error "{LEAF}" 100')
        self.assertEqual({one["state"] for one in ask().values()}, {"no-answer"})
        self.sim.command(f'Error "{LEAF}" 0')
        lids = {row["name"]: row["lid"] for row in self.daemon.ctl_json("switches", LEAF)}
        lids.update({row["host"]: row["lid"] for row in self.daemon.ctl_json("devices", "node0001")})
        for name, at, lid in ((LEAF, 0, 999), ("node0001", 1, lids[LEAF]), (LEAF, 0, lids["node0001"])):
            self.sim.command(f'Baselid "{name}"[{at}] {lid}')
        manager = lab.OpenSM(self.sim)  # which knows nothing of before, and brings the routes up to date
        self.addCleanup(manager.stop)
        others = {name: one for name, one in ask().items() if name != f"{LEAF}[1]"}  # the host's port, too, is a first one
        self.assertEqual((len(others), {one["state"] for one in others.values()}), (5, {"no-counters"}))
        self.assertRegex(self.daemon.ctl("counters", LEAF).stdout, rf"(?m)^{LEAF}\[2\] +no-counters ")
        self.daemon.refresh()
        self.assertEqual({one["state"] for one in ask().values()}, {"read"})


class Fresh(unittest.TestCase):
    """Each with a subnet of its own."""

    def start(self, spec):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric(spec))
        self.addCleanup(self.sim.quit)
        self.daemon = lab.Fabricd(self.sim, start=False)
        self.addCleanup(self.daemon.stop)
        return self.sim, self.daemon

    def test_no_subnet_manager(self):
        sim, daemon = self.start("fattree2:2,2,2")
        daemon.start(wait=False)
        daemon.wait_up()
        daemon.until("sweep", after=0)
        status = daemon.status()
        self.assertIn("OpenSM", status["stale_reason"])
        self.assertEqual((status["generation"], status["uri"]), (0, daemon.uri()))
        sim.sweep()
        self.assertEqual(daemon.refresh()["generation"], 1)
        port = sim.cable("leaf2", "spine1")  # a part of the fabric that no manager has seen
        sim.unlink("leaf2", port)
        sim.relink("leaf2", port)
        daemon.refresh()
        self.assertEqual(daemon.status()["inactive"], 2)
        self.assertIn("warning: sweep: 2 cabled ports are not active: check that a subnet manager runs", daemon.log())
        sim.sweep()
        daemon.refresh()
        self.assertEqual(daemon.status()["inactive"], 0)

    def test_a_host_has_left_another_leaf(self):
        """The leaf that had its cable is read, too."""
        sim, daemon = self.start(SMALL)
        sim.sweep()
        daemon.start()
        port = sim.cable(LEAF, HOST)
        sim.unlink(LEAF, port)
        sim.unlink("leaf2", sim.cable("leaf2", "node0006"))
        sim.link(LEAF, port, "node0006", 1)
        sim.sweep()
        changes = daemon.ctl_json("refresh", "--switch", LEAF)["changes"]
        self.assertIn(("host-moved", "node0006 HCA-1[1]"), [(c["kind"], c["what"]) for c in changes])
        self.assertEqual(daemon.ctl_json("refresh")["changes"], [])


if __name__ == "__main__":
    unittest.main()
