"""What has no part in a plane's rate: links of aggregation nodes, gateways and routers. And a fabric without any cable."""
import re
import unittest

import sim
from wired import Fabric


class Rate(unittest.TestCase):
    def costs(self, fabric, text=None):
        site = sim.Recorded(text or fabric.text())
        self.addCleanup(site.free)
        (plane,) = site.ctl_json("planes")
        return plane["fastest_gbps"], site.ctl_json("cost", "n1:HCA-1", "n2:HCA-1")["cost"], [f["kind"] for f in site.check()[1]]

    def fabric(self):
        fabric = Fabric(leaves=2)
        fabric.cables = [(*cable[:4], "4xEDR") for cable in fabric.cables]
        for i in range(8):
            fabric.host(f"n{i} HCA-1", 1 + i % 2, 1 + i // 2, "4xEDR")
        return fabric

    def test_faster_links_of_others(self):
        self.assertEqual(self.costs(self.fabric()), (100, 40, []))
        for name, model in (("Mellanox Technologies Aggregation Node", "0xcf09"), ("Mellanox Skyway gateway", "0x101b"),
                            ("GW1 HCA-1", "0x101b"), ("SUN IB QDR GW switch gw-a 10.0.0.1 Bridge 0", "0x5a60")):
            with self.subTest(name):
                fabric = self.fabric()
                fabric.host(name, 1, 40, "4xHDR", model)
                fastest, cost, findings = self.costs(fabric)
                self.assertEqual((fastest, cost), (100, 40))
                self.assertNotIn("slow-link", findings)

    def test_a_router(self):
        fabric = self.fabric()
        fabric.host("router1", 1, 40, "4xHDR")
        guid = f"{fabric.nodes['router1'][0]:016x}"
        text = fabric.text().replace(f"H-{guid}", f"R-{guid}").replace(f'Ca\t1 "R-{guid}"', f'Rt\t1 "R-{guid}"')
        text = text.replace(f"caguid=0x{int(guid, 16):x}", f"rtguid=0x{int(guid, 16):x}")
        self.assertEqual(self.costs(None, text)[:2], (100, 40))

    def test_a_faster_host_has(self):
        fabric = self.fabric()
        fabric.host("fast HCA-1", 1, 40, "4xHDR")
        self.assertEqual(self.costs(fabric)[:2], (200, 80))


class NoCable(unittest.TestCase):
    def test_a_first_sweep_without_any(self):
        fabric = Fabric(leaves=0, spines=0)
        for i in range(2):
            fabric.node(f"n{i} HCA-1", "0x101b")
        cabled = Fabric(leaves=1, spines=0)
        cabled.host("n0 HCA-1", 1, 1)
        cabled.host("n1 HCA-1", 1, 2)
        self.site = sim.Recorded(fabric.text(), {"changes": {"flap_count": 0}})
        self.addCleanup(self.site.free)
        status, findings = self.site.check()
        self.assertEqual((status, [(f["kind"], f["severity"], f["where"]) for f in findings]), (1, [("no-cable", "error", "the fabric")]))
        self.assertTrue(self.site.ctl_json("status")["no_cable"])
        self.assertRegex(self.site.ctl("status").stdout, r"(?m)^NO CABLE +\S")
        self.site.stop()
        self.site.start()
        self.site.refresh()
        self.assertEqual([f["kind"] for f in self.site.check()[1]], ["no-cable"])
        self.site.show(cabled.text())
        self.site.refresh()
        self.assertNotIn("no-cable", [f["kind"] for f in self.site.check()[1]])
        self.assertFalse(self.site.ctl_json("status")["no_cable"])
        self.assertIsNone(re.search("NO CABLE", self.site.ctl("status").stdout))


if __name__ == "__main__":
    unittest.main()
