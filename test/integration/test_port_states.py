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
        """Read by light sweeps and sweeps of everything. The rest is in test/sim/test_port_states.py."""
        self.start(changes={"light_sweep": 1})
        lab.wait_for(lambda: self.daemon.status()["light_sweeps"] > 1, 20, "light sweeps")
        # The simulator leaves the other end up; hardware has it down.
        self.sim.unlink(self.leaf, self.port)
        self.hand("disable")
        missing, = lab.wait_for(lambda: self.changes("host-missing"), 20, "the host to be missing")
        self.assertFalse(self.daemon.refresh()["changed"], "a sweep of everything sees the same")
        self.assertIn(f"{self.leaf}[{self.port}] is disabled", missing["why"])
        self.assertEqual(self.findings(), [("port-disabled", f"{self.leaf}[{self.port}]")])
        self.hand("enable")
        self.sim.relink(self.leaf, self.port)
        self.sim.wait_active(self.leaf, self.port)
        lab.wait_for(lambda: self.changes("host-back"), 20, "the host to be back")


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
