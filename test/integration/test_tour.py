"""The newcomer's tour is a promise: it runs to its end, and shows what the README says it shows."""
import os
import re
import sys
import unittest

import lab
import test_pnet
import versions

TOUR = os.path.join(lab.HERE, "tour.py")


class Tour(unittest.TestCase):
    def test_once(self):
        lab.require("ibsim", "opensm")
        done = lab.run([sys.executable, "-B", TOUR, "--once"], timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)
        story = ["16 switches, 72 hosts", "fat-tree-2", "node[0001-0006]", "node[0001-0010]\n", "\n    20  node0001", "\n    40  node0001",
                 "leaf1[8] - spine2[1]", "slow-link: reseat", "pmix.fab.vndr string Mellanox", "link-lost",
                 "PMIX_FABRIC_UPDATE_PENDING index 1 generation 2", "PMIX_FABRIC_UPDATED index 1 generation 2", "\n    50  node0001",
                 "hca-replaced node0013 HCA-1 0x0000000000100018 -> 0xb8599f0300fa0000",
                 "host-moved", "> SwitchName=leaf3 Nodes=node[0007,0013-0018]", "== 7. What a host adds"]
        if versions.NO_ARRAYS:
            story += [f"not shown: {versions.NO_ARRAYS}"]
        elif os.path.exists(test_pnet.COMPONENT):
            story += ["PMIx_server_deliver_inventory\n    SUCCESS", "mlx5_0    1 leaf1", "subnet,node ", "(subnet: HCA-1)"]
        else:
            story += ["not shown: the component is not built"]
        story += ["Open file:///", "You saw fabricd", "discover 16 switches and 72 hosts"]
        at = 0
        for part in story:
            found = done.stdout.find(part, at)
            self.assertNotEqual(found, -1, f"{part} is missing in, or not in order:\n{done.stdout}")
            at = found + len(part)

    def test_own_hardware(self):
        done = lab.run([sys.executable, "-B", TOUR, "--real", "--once"], timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^    ibnetdisc +(yes|no) ")
        self.assertRegex(done.stdout, r"(?m)^(Found|Not found): ")
        said = dict(re.findall(r"(?m)^    (\w+) +(yes|no) ", done.stdout))
        for probe in ("hwloc", "verbs", "libfabric", "ucx", "ethernet"):
            if said.get(probe) == "yes":
                self.assertRegex(done.stdout, rf"(?m)^    {probe} +(nothing$|\d+: )")
                self.assertIn(f"    probe = {probe}\n", done.stdout)
        if "\n    [ethernet]\n" in done.stdout:  # there is an interface with an address: who says it
            self.assertRegex(done.stdout, r"(?m)^      address +\S+ +.*ethernet")


if __name__ == "__main__":
    unittest.main()
