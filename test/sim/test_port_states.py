"""States of ports that are no fault of a cable: disabled by hand, up without a subnet manager."""
import unittest

import sim
from site_case import Case

LEAF, HOST = "leaf1", "node0002"


class States(Case):
    fabric = "fattree2:4,2,4"

    def start(self, *args, **changes):
        site = super().start(*args, **changes)
        self.port = site.cable(LEAF, HOST)
        return site

    def off(self, port=None):
        self.site.enable(LEAF, port or self.port, False)

    def kinds_found(self):
        return [(finding["kind"], finding["where"]) for finding in self.findings()]


class Disabled(States):
    def test_a_port_that_is_switched_off(self):
        self.start()
        self.off()
        self.assertTrue(self.site.refresh()["changed"])
        missing, = self.history("host-missing")
        self.assertEqual(missing["what"].split()[0], HOST)
        self.assertIn(f"{LEAF}[{self.port}] is disabled", missing["why"])
        self.assertEqual(self.kinds_found(), [("port-disabled", f"{LEAF}[{self.port}]")])
        self.assertFalse(self.site.refresh()["changed"])
        self.site.stop()
        self.site.start()  # it is in the store
        self.assertFalse(self.site.refresh()["changed"])
        self.site.enable(LEAF, self.port)
        self.assertTrue(self.site.refresh()["changed"])
        self.assertEqual(len(self.history("host-back")), 1)

    def test_it_stays_that_when_its_hosts_place_is_given_up(self):
        self.start(retain_seconds=10)
        self.off()
        self.site.refresh()
        before, = self.findings()
        self.site.advance(10)
        self.assertEqual(len(self.history("host-lost")), 1)
        for _ in range(2):  # by its time, and by a sweep
            after, = self.findings()
            self.assertEqual([after[key] for key in ("kind", "where", "id", "since", "count")],
                             [before[key] for key in ("kind", "where", "id", "since", "count")])
            self.assertIn(f"its cable to {HOST}", after["what"])
            self.site.refresh()

    def test_an_uplink_that_is_switched_off(self):
        """It is told as that, not also as what its switch has less of, or has switched off."""
        self.start()
        port = self.site.cable(LEAF, "spine1")
        self.off(port)
        self.assertTrue(self.site.refresh()["changed"])
        self.assertEqual(self.kinds_found(), [("port-disabled", f"{LEAF}[{port}]")])

    def test_a_port_without_a_cable(self):
        self.start(start=False)
        self.site.pull(LEAF, self.port)
        self.site.start()
        self.assertNotIn("disabled-ports", [kind for kind, _ in self.kinds_found()])
        self.off()
        self.assertFalse(self.site.refresh()["changed"], "nothing that is served")
        self.assertEqual(self.kinds_found(), [("disabled-ports", LEAF)])
        self.assertEqual(self.site.ctl("check").returncode, 0, "a notice does not count")
        self.site.enable(LEAF, self.port)
        self.site.refresh()
        self.assertNotIn("disabled-ports", [kind for kind, _ in self.kinds_found()])

    def test_by_a_light_sweep(self):
        self.start(light_sweep=1)
        self.site.advance(2)
        self.assertGreater(self.site.status()["light_sweeps"], 1)
        self.off()
        self.site.advance(1.1)
        self.assertEqual(len(self.history("host-missing")), 1)
        self.assertFalse(self.site.refresh()["changed"], "a sweep of everything sees the same")


class Inactive(States):
    def test_what_comes_up_without_a_subnet_manager(self):
        self.start(start=False, light_sweep=1)
        self.site.manager("node0001")
        self.site.start()
        self.site.advance(2)
        manager, = self.site.status()["managers"]
        self.assertTrue(manager["answers"])
        self.site.pull(LEAF, self.port)
        self.site.advance(2)
        self.assertEqual(len(self.history("host-missing")), 1)
        self.site.manager(None)
        self.site.advance(5)
        self.assertFalse(self.site.status()["managers"][0]["answers"])
        self.site.plug(LEAF, self.port)
        self.site.state(LEAF, self.port, sim.INIT)
        self.site.advance(2)
        inactive, = self.history("inactive")
        self.assertIn(HOST, inactive["what"])
        self.assertEqual(self.history("host-back"), [])
        self.site.manager("node0001")
        self.site.state(LEAF, self.port, sim.ACTIVE)
        self.site.advance(2)
        self.assertEqual(len(self.history("port-up")), 1)


if __name__ == "__main__":
    unittest.main()
