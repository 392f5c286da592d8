"""fabricctl where: which of the devices of a machine of two sockets, with two HCAs each, each rank is to use."""
import csv
import io
import json
import unittest

import ctl_case
import hwloc_machines
import sim

KEYS = ["rank", "cpus", "host", "plane", "index", "id", "device", "port", "distance", "equal", "why"]


class Machine(unittest.TestCase):
    """node0001 has reported, node0002 has not."""
    shape = {}

    def setUp(self):
        self.site = sim.Site("rails:1,4,2,1", start=False)
        self.addCleanup(self.site.free)
        items = [dict(item, source="hwloc") for item in hwloc_machines.expect(hwloc_machines.two_sockets(**self.shape))]
        for rail, item in enumerate(items, 1):
            self.site.guid("node0001" if rail == 1 else f"node0001-{rail}", int(item["node-guid"], 16))
        self.site.start()
        self.assertEqual(self.site.deliver_items("node0001", items), 0)
        self.site.advance(10)

    def where(self, *args, status=0):
        done = self.site.ctl("--format", "json", "where", *args)
        self.assertEqual(done.returncode, status, done.stderr)
        rows = json.loads(done.stdout)
        for row in rows:
            self.assertEqual(list(row), KEYS)
        return rows

    def chosen(self, *args):
        return [int(row["device"].removeprefix("mlx5_")) for row in self.where(*args)]


class Where(Machine):
    def test_twelve_ranks(self):
        pairs = [f"{2 * n}-{2 * n + 1},{2 * n + 24}-{2 * n + 25}" for n in range(12)]
        rows = self.where("node0001:12", *pairs)
        self.assertEqual([row["device"] for row in rows], [f"mlx5_{n}" for n in (0, 1) * 3 + (2, 3) * 3])
        devices = {device["name"]: device for device in self.site.ctl_json("devices", "node0001")}
        for number, row in enumerate(rows):
            device = devices[row["device"]]
            self.assertEqual((row["rank"], row["cpus"], row["host"], row["plane"]), (number, pairs[number], "node0001", "ib0"))
            self.assertEqual((row["index"], row["id"], row["port"]), (device["index"], device["id"], device["port"]))
            self.assertEqual((row["distance"], row["equal"]), (4, 2))
            self.assertEqual(row["why"], "attached to its processors, in turn with 1 more")

    def test_ranks_across_the_sockets(self):
        self.assertEqual(self.chosen("node0001", *[f"{n // 2 + 12 * (n % 2)}" for n in range(12)]), [0, 2, 1, 3] * 3)

    def test_ranks_that_are_not_bound(self):
        self.assertEqual(self.chosen("node0001"), [0, 1, 2, 3])  # one for each device
        self.assertEqual(self.chosen("node0001.cluster:6"), [0, 1, 2, 3, 0, 1])
        (row,) = self.where("node0001:1")
        self.assertEqual((row["cpus"], row["distance"], row["why"]), (None, None, "not bound, in turn with 3 more"))

    def test_for_people_and_tables(self):
        text = self.site.ctl("where", "node0001", "0", "13").stdout.splitlines()
        self.assertEqual(text[0].split(), ["RANK", "CPUS", "PLANE", "DEVICE", "PORT", "DISTANCE", "WHY"])
        self.assertEqual(text[2].split(None, 6),
                         ["1", "13", "ib0", "mlx5_3", "1", "4", "attached to its processors, in turn with 1 more"])
        table = list(csv.DictReader(io.StringIO(self.site.ctl("--format", "csv", "where", "node0001", "0", "13").stdout)))
        self.assertEqual(table, [{key: "" if value is None else str(value) for key, value in row.items()}
                                 for row in self.where("node0001", "0", "13")])

    def test_a_host_that_does_not_report(self):
        (row,) = self.where("node0002", "3")
        self.assertEqual((row["distance"], row["why"]), (5, "the place of the device in its host is unknown, in turn with 3 more"))


class Interleaved(Machine):
    shape = {"interleaved": True}

    def test_twelve_ranks(self):
        self.assertEqual(self.chosen("node0001", *[str(n) for n in range(12)]), [0, 2, 1, 3] * 3)


class Pulled(Machine):
    def test_cables(self):
        self.site.pull("node0001")
        for rail in ("", "-2", "-3", "-4"):
            self.site.pull("node0002" + rail)
        self.site.refresh()
        rows = self.where("node0001", "0", "1", "12")
        self.assertEqual([(row["device"], row["equal"]) for row in rows], [("mlx5_1", 1), ("mlx5_1", 1), ("mlx5_2", 2)])
        self.assertEqual(rows[0]["why"], "attached to its processors")
        rows = self.where("node0002:2", status=1)
        self.assertEqual([(row["device"], row["why"]) for row in rows], [(None, "no device of the host is up")] * 2)


class Asking(ctl_case.Case):
    def test_several_planes(self):
        self.site.snapshot("fattree2:2,1,4", "ib1", 1, 5)
        self.assertEqual({row["plane"] for row in self.value("where", "node0001")}, {"ib0"})
        self.assertEqual({row["plane"] for row in self.value("--plane", "ib1", "where", "node0001")}, {"ib1"})

    def test_refused(self):
        for args in (["node0001:0"], ["node0001:x"], ["node0001:"], ["node0001:65537"], ["node0001:-1"],
                     ["node0001:2", "0"], ["node0001", "x"], ["node0001", "0-"], ["node0001", "4096"], []):
            with self.subTest(args=args):
                self.assertEqual(self.ctl("where", *args, status=2), "")
        self.ctl("where", "node9999:2", status=1)
        self.assertIn("no host node9999", self.complaint)
        self.assertEqual(len(self.value("where", "node0001:65536")), 65536)


if __name__ == "__main__":
    unittest.main()
