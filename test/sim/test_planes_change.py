"""What changes about a plane as a whole is told: its kind, its shape, and which plane is the default, which stays while it is there."""
import unittest

import sim
from sim import fabric_text
from test_export_interface import capture

HOSTS = [f"n{n}" for n in range(1, 9)]


def rails(spines=(("a1", "a2"), ("b1", "b2")), hosts=(HOSTS, HOSTS)):
    """Two planes, each with two leaves of the same hosts and spines of its own."""
    ports, uplinks = {}, []
    for plane, device in enumerate(("mlx5_0", "mlx5_1")):
        for leaf in range(2):
            name = f"leaf{plane}-{leaf}"
            ports[name] = [(host, device) for host in hosts[plane] if int(host[1:]) % 2 == leaf]
            uplinks += [(name, spine) for spine in spines[plane]]
    return capture(ports, uplinks)


class Case(unittest.TestCase):
    def start(self, text, **settings):
        self.site = sim.Recorded(text, {"fabricd": settings, "changes": {"retain_seconds": 0}})
        self.addCleanup(self.site.free)

    def show(self, text):
        self.site.show(text)
        self.site.ctl("refresh", "--accept-partial")

    def default(self):
        (plane,) = (plane for plane in self.site.ctl_json("planes") if plane["default"])
        return plane["name"]

    def told(self, kind):
        return [(change["what"], change["before"], change["after"]) for change in self.site.control("history")["changes"]
                if change["kind"] == kind]


class Default(Case):
    def test_a_spine_that_dies(self):
        """Of equal planes neither becomes the default by what the other loses, whichever it is; nor by a restart."""
        for dead in ((("a1",), ("b1", "b2")), (("a1", "a2"), ("b1",))):
            self.start(rails())
            before = self.default()
            self.show(rails(dead))
            self.assertEqual(self.default(), before)
            self.show(rails(dead, (HOSTS[:5], HOSTS)))
            self.show(rails(dead, (HOSTS[:5], HOSTS[:3])))
            self.assertEqual((self.default(), self.told("default-plane")), (before, []))
            self.site.kill9()
            self.site.start()
            self.site.refresh()
            self.assertEqual((self.default(), self.told("default-plane")), (before, []))

    def test_another_one_is_configured(self):
        self.start(rails())
        self.assertEqual(self.default(), "ib0")
        self.site.stop()
        self.site.configure({"fabricd": {"default_plane": "ib1"}})
        self.site.start()
        self.site.refresh()
        self.assertEqual((self.default(), self.told("default-plane")), ("ib1", [("ib1", "ib0", "ib1")]))
        self.assertIn("default-plane ib1 ib0 -> ib1; set by [fabricd] default_plane", self.site.journal())

    def test_it_is_gone(self):
        """And when it is back, the new one stays."""
        self.start(rails())
        left = fabric_text.without(rails(), *(f"{host} mlx5_0" for host in HOSTS), "leaf0-0", "leaf0-1", "a1", "a2")
        self.show(left)
        self.assertEqual((self.default(), self.told("default-plane")), ("ib1", [("ib1", "ib0", "ib1")]))
        self.assertIn("default-plane ib1 ib0 -> ib1; plane ib0 is gone", self.site.journal())
        self.show(rails())
        self.assertEqual((self.default(), len(self.site.ctl_json("planes"))), ("ib1", 2))


class Shape(Case):
    def test_kind_and_shape(self):
        self.start(rails())
        self.assertEqual(self.told("plane-kind") + self.told("plane-shape"), [])
        ports = {f"leaf{plane}-{leaf}": [(host, f"mlx5_{plane}") for host in HOSTS if int(host[1:]) % 2 == leaf]
                 for plane in range(2) for leaf in range(2)}
        uplinks = [(f"leaf{plane}-{leaf}", spine) for plane, spines in enumerate((("a1", "a2"), ("b1", "b2"))) for leaf in range(2)
                   for spine in spines] + [("a1", "a2")]
        self.show(capture(ports, uplinks))
        ((what, before, after),) = self.told("plane-kind")
        self.assertEqual((before, after), ("fat-tree-2", "other"))
        reasons = {event.get("reason") for event in self.site.ctl_json("events") if event["plane"] == what}
        self.assertTrue(any(reason and "plane-kind fat-tree-2 -> other" in reason for reason in reasons), reasons)
        self.assertIn(f"plane-kind {what} fat-tree-2 -> other; its logical coordinates are numbered anew", self.site.journal())
        self.assertIn("plane-kind fat-tree-2 -> other", self.site.ctl("events").stdout)

    def test_shape_alone(self):
        self.start(rails())
        self.show(rails(hosts=(HOSTS, [*HOSTS, "n10", "n12"])))
        ((what, before, after),) = self.told("plane-shape")
        self.assertEqual((before.count("x"), self.told("plane-kind")), (2, []))
        self.assertNotEqual(before, after)
        self.assertIn(f"plane-shape {what} {before} -> {after}", self.site.journal())


if __name__ == "__main__":
    sim.lab.main()
