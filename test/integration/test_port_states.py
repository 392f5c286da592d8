"""States of ports that are no fault of a cable: disabled by hand, up without a subnet manager."""
import unittest

import lab

SMALL = "fattree2:4,2,4"


class States(unittest.TestCase):
    def setUp(self):
        lab.require("ibsim", "opensm", "ibportstate")
        self.sim = lab.Ibsim(lab.fabric(SMALL))
        self.addCleanup(self.sim.quit)
        self.manager = lab.OpenSM(self.sim)
        self.addCleanup(lambda: self.manager.stop())
        self.leaf = next(name for name in self.sim.switches if self.is_at(name, self.sim.hosts[-1]))
        self.host = next(name for name in self.sim.hosts[:-1] if self.is_at(self.leaf, name))
        self.port = self.sim.cable(self.leaf, self.host)

    def is_at(self, switch, host):
        try:
            return bool(self.sim.cable(switch, host))
        except lab.LabError:
            return False

    def start(self, **config):
        self.daemon = lab.Fabricd(self.sim, config=config)
        self.addCleanup(self.daemon.stop)

    def hand(self, what):
        """Disable or enable the host's port at its leaf, which is the one beside this host's HCA."""
        self.sim.set_port("0,1", self.port, what)

    def findings(self):
        return [(finding["kind"], finding["where"]) for finding in self.daemon.control("check")["findings"]]

    def changes(self, kind=None):
        return [change for change in self.daemon.control("history")["changes"] if kind in (None, change["kind"])]


class Disabled(States):
    def test_a_port_that_is_switched_off(self):
        self.start()
        # The simulator leaves the other end up; hardware has it down.
        self.sim.unlink(self.leaf, self.port)
        self.hand("disable")
        self.assertTrue(self.daemon.refresh()["changed"])
        missing = self.changes("host-missing")
        self.assertEqual([change["what"].split()[0] for change in missing], [self.host])
        self.assertIn(f"{self.leaf}[{self.port}] is disabled", missing[0]["why"])
        self.assertEqual(self.findings(), [("port-disabled", f"{self.leaf}[{self.port}]")])
        self.assertFalse(self.daemon.refresh()["changed"])
        self.daemon.stop()
        self.daemon.start()  # it is in the store
        self.assertFalse(self.daemon.refresh()["changed"])
        self.hand("enable")
        self.sim.relink(self.leaf, self.port)
        self.sim.wait_active(self.leaf, self.port)
        self.assertTrue(self.daemon.refresh()["changed"])
        self.assertEqual(len(self.changes("host-back")), 1)

    def test_it_stays_that_when_its_hosts_place_is_given_up(self):
        self.start(changes={"retain_seconds": 1})
        self.sim.unlink(self.leaf, self.port)
        self.hand("disable")
        self.daemon.refresh()
        before, = self.daemon.control("check")["findings"]
        lab.wait_for(lambda: self.changes("host-lost"), 20, "the host to be lost")
        for _ in range(2):  # by its time, and by a sweep
            after, = self.daemon.control("check")["findings"]
            self.assertEqual([after[key] for key in ("kind", "where", "id", "since", "count")],
                             [before[key] for key in ("kind", "where", "id", "since", "count")])
            self.assertIn(f"its cable to {self.host}", after["what"])
            self.daemon.refresh()

    def test_an_uplink_that_is_switched_off(self):
        """It is told as that, not also as what its switch has less of, or has switched off."""
        self.start()
        port = self.sim.cable(self.leaf, "spine1")
        self.sim.unlink(self.leaf, port)
        self.sim.set_port("0,1", port, "disable")
        self.assertTrue(self.daemon.refresh()["changed"])
        self.assertEqual(self.findings(), [("port-disabled", f"{self.leaf}[{port}]")])

    def test_a_port_without_a_cable(self):
        self.sim.unlink(self.leaf, self.port)
        self.start()
        self.assertNotIn("disabled-ports", [kind for kind, _ in self.findings()])
        self.hand("disable")
        self.assertFalse(self.daemon.refresh()["changed"], "nothing that is served")
        self.assertEqual(self.findings(), [("disabled-ports", self.leaf)])
        self.assertEqual(self.daemon.ctl("check").returncode, 0, "a notice does not count")
        self.hand("enable")
        self.daemon.refresh()
        self.assertNotIn("disabled-ports", [kind for kind, _ in self.findings()])

    def test_by_a_light_sweep(self):
        self.start(changes={"light_sweep": 1})
        lab.wait_for(lambda: self.daemon.status()["light_sweeps"] > 1, 20, "light sweeps")
        self.sim.unlink(self.leaf, self.port)
        self.hand("disable")
        lab.wait_for(lambda: self.changes("host-missing"), 20, "the host to be missing")
        self.assertFalse(self.daemon.refresh()["changed"], "a sweep of everything sees the same")


class Inactive(States):
    def test_what_comes_up_without_a_subnet_manager(self):
        self.start(changes={"light_sweep": 1})
        lab.wait_for(lambda: self.daemon.status()["managers"], 20, "the subnet manager")
        self.sim.unlink(self.leaf, self.port)
        lab.wait_for(lambda: self.changes("host-missing"), 20, "the host to be missing")
        self.manager.stop()
        lab.wait_for(lambda: not self.daemon.status()["managers"][0]["answers"], 20, "the subnet manager to be gone")
        self.sim.relink(self.leaf, self.port)
        lab.wait_for(lambda: self.changes("inactive"), 20, "the host to be inactive")
        self.assertIn(self.host, self.changes("inactive")[0]["what"])
        self.assertEqual(self.changes("host-back"), [])
        self.manager = lab.OpenSM(self.sim)
        lab.wait_for(lambda: self.changes("port-up"), 20, "the port to be up")


if __name__ == "__main__":
    unittest.main()
