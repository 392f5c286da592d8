"""Functions of a swept card that have GUIDs of their own and that no sweep shows stand where the card's cables are."""
import unittest

import sim
from wired import Fabric


def function(name, node, system, pci="0000:01:00:00", lid=9000, port=1, state="up", socket=0, kind="InfiniBand",
             port_guid=True):
    """An item of a report."""
    item = {"source": "verbs", "name": name, "port": str(port), "node-guid": f"0x{node:016x}", "system-guid": f"0x{system:016x}",
            "port-guid": f"0x{node + 0x100000:016x}", "pci": pci, "type": kind, "state": state, "lid": str(lid),
            "package": str(socket), "numa": str(socket), "cpus": ("0-31", "32-63")[socket], "package-cpus": ("0-31", "32-63")[socket]}
    if not port_guid:
        del item["port-guid"]
    return item


class Case(unittest.TestCase):
    def start(self, fabric):
        self.site = sim.Recorded(fabric.text())
        self.addCleanup(self.site.free)

    def deliver(self, host, *items):
        self.assertEqual(self.site.deliver_items(host, list(items)), 0)
        self.site.advance(30)

    def places(self, host):
        """The switch of each device, its port there, its plane."""
        return {d["name"]: (d["switch"], d["switch_port"], d["plane"]) for d in self.site.ctl_json("devices", host)}

    def not_swept(self):
        return [f["where"] for f in self.site.check()[1] if f["kind"] == "not-swept"]


class SocketDirect(Case):
    """Two ports with a node each; two more functions of the card in the other socket."""

    def setUp(self):
        fabric = Fabric(leaves=2)
        self.system = {}
        for i in range(4):
            for port in (1, 2):
                guid = fabric.host(f"n{i} HCA-{port}", port, 1 + i, system=self.system.get(i))
                self.system.setdefault(i, guid)
        self.fabric, self.swept = fabric, {name: node[0] for name, node in fabric.nodes.items()}
        self.start(fabric)
        system = self.system[0]
        self.own = [function("mlx5_0", self.swept["n0 HCA-1"], system, "0000:17:00:00", fabric.lid("n0 HCA-1"), port_guid=False),
                    function("mlx5_1", self.swept["n0 HCA-2"], system, "0000:17:00:01", fabric.lid("n0 HCA-2"), port_guid=False)]

    def others(self, **keys):
        system = self.system[0]
        # by their GUIDs they would be the other way round
        return [function("mlx5_2", 0x7000002, system, "0000:b1:00:00", socket=1, **keys),
                function("mlx5_3", 0x7000001, system, "0000:b1:00:01", socket=1, **keys)]

    def test_the_other_socket(self):
        self.deliver("n0", *self.own, *self.others())
        self.assertEqual(self.places("n0"), {"mlx5_0": ("leaf1", 1, "ib0"), "mlx5_1": ("leaf2", 1, "ib0"),
                                             "mlx5_2": ("leaf1", 1, "ib0"), "mlx5_3": ("leaf2", 1, "ib0")})
        self.assertEqual(self.not_swept(), [])
        self.assertEqual({p["name"] for p in self.site.ctl_json("planes")}, {"ib0"})
        self.assertEqual(self.site.ctl_json("cost", "n0:mlx5_2", "n1:HCA-1")["cost"], 20)
        self.assertEqual(self.site.ctl_json("cost", "n1:HCA-2", "n0:mlx5_3")["cost"], 20)
        self.assertEqual({d["name"]: d["rate_gbps"] for d in self.site.ctl_json("devices", "n0")}["mlx5_2"], 200)
        ranks = self.site.ctl_json("where", "n0", "0-15", "16-31", "32-47", "48-63")
        self.assertEqual([rank["device"] for rank in ranks], ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"])
        self.assertEqual({node["host"]: node["unseen"] for node in self.site.ctl_json("nodes")}, {"n0": 0})

    def test_their_order_without_pci_addresses(self):
        for item in (others := self.others()):
            del item["pci"]
        self.deliver("n0", *self.own, *others)
        self.assertEqual((self.places("n0")["mlx5_2"][0], self.places("n0")["mlx5_3"][0]), ("leaf2", "leaf1"))

    def test_a_port_of_another_fabric(self):
        """Its LID is one of a node of this fabric; or it is down, or Ethernet."""
        for keys in ({"lid": 1}, {"state": "down"}, {"kind": "Ethernet", "lid": 0}):
            with self.subTest(keys):
                others = self.others(**keys)
                for item in others:
                    if item["lid"] == "0":
                        del item["lid"]
                    if keys.get("lid"):
                        item["lid"] = str(self.fabric.lid("n3 HCA-1"))
                self.deliver("n0", *self.own, *others)
                self.assertEqual({self.places("n0")[name][0] for name in ("mlx5_2", "mlx5_3")}, {None})

    def test_the_second_port_of_a_card(self):
        """It is up, and in a fabric that is not swept."""
        system = self.system[3]
        own = function("mlx5_0", self.swept["n3 HCA-1"], system, "0000:17:00:00", self.fabric.lid("n3 HCA-1"), port_guid=False)
        self.deliver("n3", own, function("mlx5_9", self.swept["n3 HCA-1"] + 1, system, "0000:17:00:01"))
        self.assertEqual(self.not_swept(), ["n3 mlx5_9[1]"])

    def test_of_no_card_here(self):
        for item in (others := self.others()):
            item["system-guid"] = "0x0000000077777777"
        self.deliver("n0", *self.own, *others)
        self.assertEqual(self.not_swept(), ["n0 mlx5_2[1]", "n0 mlx5_3[1]"])

    def test_no_function_is_in_a_wrong_rail(self):
        """In units of two leaves functions of one name hang on one leaf in two hosts and on the other in a third: there is no cable to plug."""
        for host in range(3):
            name, system = f"n{host}", self.system[host]
            own = [function(f"mlx5_{port - 1}", self.swept[f"{name} HCA-{port}"], system, f"0000:17:00:0{port - 1}",
                            self.fabric.lid(f"{name} HCA-{port}"), port_guid=False) for port in (1, 2)]
            more = function("mlx5_2", 0x7000010 + host, system, "0000:b1:00:00", self.fabric.lid(f"{name} HCA-{1 + host // 2}"))
            self.deliver(name, *own, more)
        self.assertEqual([self.places(f"n{host}")["mlx5_2"][0] for host in range(3)], ["leaf1", "leaf1", "leaf2"])
        self.assertEqual(self.site.check()[1], [])

    def test_they_go_with_their_card(self):
        """And a daemon that begins anew has them at the same places."""
        self.deliver("n0", *self.own, *self.others())
        before = self.site.ctl_json("devices")
        self.site.stop()
        self.site.start()
        self.site.refresh()
        self.assertEqual([(d["host"], d["name"], d["switch"], d["index"]) for d in self.site.ctl_json("devices")],
                         [(d["host"], d["name"], d["switch"], d["index"]) for d in before])


class Other(Case):
    def test_multi_host(self):
        """The sweep has the card under the name of one of its hosts; the others have functions of it."""
        fabric = Fabric(leaves=2)
        card = fabric.host("sled1 HCA-1", 1, 7)
        fabric.host("n1 HCA-1", 2, 1)
        self.start(fabric)
        for i in (2, 3):
            self.deliver(f"sled{i}", function("mlx5_0", 0x7000000 + i, card, lid=9000 + i))
            self.assertEqual(self.places(f"sled{i}"), {"mlx5_0": ("leaf1", 7, "ib0")})
        self.assertEqual(self.places("sled1"), {"HCA-1": ("leaf1", 7, "ib0")})
        self.assertEqual(self.site.ctl_json("cost", "sled2:mlx5_0", "n1:HCA-1")["cost"], 40)
        self.assertEqual({group["name"]: group["hosts"] for group in self.site.ctl_json("groups")}["leaf1"], ["sled1", "sled2", "sled3"])
        self.assertEqual(self.not_swept(), [])

    def test_virtual_functions(self):
        """They have the LID of the port whose they are."""
        fabric = Fabric(leaves=2)
        first = fabric.host("n1 HCA-1", 1, 1)
        fabric.host("n1 HCA-2", 2, 1, system=first)
        self.start(fabric)
        lids = [fabric.lid("n1 HCA-1"), fabric.lid("n1 HCA-2")]
        self.deliver("n1", *(function(f"mlx5_{i}", 0x7000000 + i, first, f"0000:17:00:0{i}", lid=lids[i % 2]) for i in range(2, 6)))
        self.assertEqual({name: at[0] for name, at in self.places("n1").items() if name.startswith("mlx5")},
                         {"mlx5_2": "leaf1", "mlx5_3": "leaf2", "mlx5_4": "leaf1", "mlx5_5": "leaf2"})

    def test_cards_cabled_to_each_other(self):
        """Without a switch, both ways."""
        fabric = Fabric(leaves=0, spines=0)
        a = fabric.node("a HCA-1", "0x101b")
        fabric.node("b HCA-1", "0x101b")
        fabric.cable("a HCA-1", 1, "b HCA-1", 1, "4xHDR")
        self.start(fabric)
        self.deliver("a", function("mlx5_9", 0x7000000, a))
        for pair in (("a:mlx5_9", "b:HCA-1"), ("b:HCA-1", "a:mlx5_9")):
            self.assertEqual(self.site.ctl_json("cost", *pair)["cost"], 10)


if __name__ == "__main__":
    unittest.main()
