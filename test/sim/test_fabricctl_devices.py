"""fabricctl alone: what it shows of what hosts report about their devices, and what it asks a daemon for about hosts
(played here)."""
import unittest

import ctl_case as base

KNOWN = ("type", "seen", "vendor", "firmware", "driver", "pci", "mtu", "numa")


class Facts(base.Case):
    facts = True

    @staticmethod
    def believed(facts, kind):
        return [fact["text"] for fact in facts if fact["kind"] == kind and fact["chosen"]]

    def test_columns(self):
        for device in self.value("devices"):
            expected = {"type": "InfiniBand", "seen": "subnet,node", "vendor": "Mellanox Technologies",
                        "firmware": device["firmware"], "driver": "mlx5_core", "pci": "0000:41:00:00", "mtu": 4096,
                        "numa": 0}
            self.assertEqual({key: device[key] for key in KNOWN}, expected)
            self.assertIn(device["firmware"], ("20.28.2006", "20.31.1014"))
            self.assertNotIn("facts", device)

    def test_nothing_is_known(self):
        self.site.snapshot(base.FABRIC)
        (device,) = self.value("devices", "node0002")
        text = self.ctl("devices", "node0002")
        self.assertEqual([device[key] for key in KNOWN], ["InfiniBand", "subnet"] + [None] * 6)
        self.assertEqual(device["facts"], [])
        self.assertEqual(text.count("\n"), 2)  # the table alone

    def test_a_host_with_and_without_its_domain(self):
        self.assertEqual(self.value("devices", "node0002.site"), self.value("devices", "node0002"))
        self.assertEqual(self.ctl("devices", "node0002.site"), self.ctl("devices", "node0002"))
        for name in ("node000", "node00022", "node0002-ib"):
            self.ctl("devices", name, status=1)

    def test_facts_of_a_host(self):
        for device in self.value("devices"):
            (one,) = self.value("devices", device["host"])
            facts = one.pop("facts")
            self.assertEqual(one, device)
            self.assertEqual(list(facts[0]), ["kind", "text", "sources", "chosen", "conflict", "estimate", "software",
                                              "yielded"])
            for key in ("vendor", "firmware", "driver", "pci"):
                self.assertEqual(self.believed(facts, key), [device[key]])
            for key in ("mtu", "numa"):
                self.assertEqual(self.believed(facts, key), [str(device[key])])
            self.assertEqual(self.believed(facts, "speed"), [str(device["rate_gbps"] * 1000)])
            self.assertEqual(self.believed(facts, "transport"), ["rc_mlx5", "ud_mlx5"])
            (latency,) = [fact for fact in facts if fact["kind"] == "latency"]
            self.assertEqual((latency["sources"], latency["estimate"]), (["ucx"], True))
            kinds = [fact["kind"] for fact in facts]
            self.assertEqual([k for i, k in enumerate(kinds) if k not in kinds[:i]],
                             [k for i, k in enumerate(kinds) if i == 0 or k != kinds[i - 1]])  # of a kind: neighbours

    def test_contradictions(self):
        contradicted = 0
        for device in self.value("devices"):
            (one,) = self.value("devices", device["host"])
            speeds = [fact for fact in one["facts"] if fact["kind"] == "speed"]
            text = self.ctl("devices", device["host"])
            if len(speeds) == 1:
                self.assertFalse(speeds[0]["conflict"])
                self.assertRegex(text, r"\n  speed        200000 +subnet, verbs\n")
                continue
            contradicted += 1
            self.assertEqual([(f["sources"], f["chosen"], f["conflict"]) for f in speeds],
                             [(["subnet"], True, True), (["verbs"], False, True)])
            self.assertRegex(text, rf"\n  speed        200000 +subnet +\(verbs: {speeds[1]['text']}\)\n")
        self.assertGreater(contradicted, 0)

    def test_for_people(self):
        text = self.ctl("devices", "node0003")
        table, facts = text.split("\n\n")
        self.assertEqual(len(table.splitlines()), 2)
        lines = facts.splitlines()
        self.assertEqual(lines[0], "node0003:HCA-1:1, plane ib0, fab://0000:0000:0010:0004::0000:0000:0010:0004")
        self.assertRegex(lines[1], r"^  name         mlx5_0 +verbs, hwloc, libfabric, ucx$")
        self.assertRegex(facts, r"\n  latency      600 +ucx +\(estimate\)")
        self.assertRegex(facts, r"\n  provider     verbs +libfabric\n +verbs;ofi_rxm +libfabric\n")
        self.assertNotIn("\n\n", self.ctl("devices"))  # of all hosts, the table alone

    def test_csv_has_no_facts(self):
        for args in ((), ("node0003",)):
            for row in self.rows("devices", *args):
                self.assertNotIn("facts", row)
                self.assertEqual(row["mtu"], "4096")

    def test_two_planes(self):
        self.site.snapshot("fattree2:2,1,2", "ib1", 1, 4, facts=True)
        value = self.value("devices", "node0001")
        self.assertEqual([device["plane"] for device in value], ["ib0", "ib1"])
        self.assertEqual([self.believed(device["facts"], "node-guid") for device in value],
                         [[device["node_guid"]] for device in value])
        text = self.ctl("devices", "node0001")
        self.assertEqual([text.count(f", plane {plane}, fab://") for plane in ("ib0", "ib1")], [1, 1])
        text = self.ctl("--plane", "ib1", "devices", "node0001")
        self.assertEqual([text.count(f", plane {plane}, fab://") for plane in ("ib0", "ib1")], [0, 1])


# What a daemon tells of two hosts.
NODES = [{"host": "node1", "devices": 2, "unseen": 0, "items": 9, "digest": "984d7295c9dc12f4",
          "received": "2025-01-02T03:04:05Z", "age": 12.3456789, "uid": 0, "sources": ["verbs", "hwloc"], "failed": ["ucx"],
          "remarks": []},
         {"host": "node2", "devices": 1, "unseen": 1, "items": 3, "digest": None, "received": None, "age": 0, "uid": 990,
          "sources": [], "failed": [], "remarks": ["node2: port 0x1 is \x1b[31mof node1: not joined", "node2: and another"]}]


class Nodes(base.Case):
    def test_nodes(self):
        daemon = self.daemon(nodes=[{"ok": True, "nodes": NODES}])
        value = self.value("nodes")
        self.assertEqual(list(value[0]), ["host", "devices", "unseen", "items", "sources", "received", "age", "uid",
                                          "digest", "failed", "remarks"])
        self.assertEqual(value[0], NODES[0] | {"age": 12.346})
        self.assertEqual(value[1]["remarks"], ["node2: port 0x1 is ?[31mof node1: not joined", "node2: and another"])
        one, two = self.rows("nodes")
        self.assertEqual((one["sources"], one["age"], one["remarks"]), ("verbs;hwloc", "12.346", ""))
        self.assertEqual((two["digest"], two["uid"]), ("", "990"))
        text = self.ctl("nodes")
        self.assertRegex(text, r"\nnode1 +2 +0 verbs,hwloc +2025-01-02T03:04:05Z +0\n")
        self.assertIn("\n\nnode2: port 0x1 is ?[31mof node1: not joined\nnode2: and another\n", text)
        self.assertEqual(daemon.requests, [{"op": "nodes"}] * 3)

    def test_one_node(self):
        daemon = self.daemon(nodes=[{"ok": True, "nodes": NODES[:1]}])
        self.assertEqual([node["host"] for node in self.value("nodes", "node1")], ["node1"])
        self.assertEqual(daemon.requests, [{"op": "nodes", "host": "node1"}])

    def test_a_node_that_reports_nothing(self):
        self.daemon(nodes=[{"ok": True, "nodes": []}])
        self.assertEqual(self.value("nodes"), [])
        self.ctl("nodes", "node7", status=1)
        self.assertIn("no report of host node7", self.complaint)

    def test_answers_of_another_kind(self):
        for strange in (None, 7, "x", [7], [None], [{"host": 3, "sources": [1, None, ""], "remarks": [1]}]):
            with self.subTest(strange):
                daemon = base.Daemon(self.site, {"nodes": [{"ok": True, "nodes": strange}]})
                try:
                    self.ctl("nodes")
                    self.value("nodes")
                    self.rows("nodes")
                finally:
                    daemon.close()

    def test_forget(self):
        daemon = self.daemon(forget=lambda request: [{"ok": True}] if request["host"] == "node1" else
                             [{"ok": False, "error": -4, "message": "forget: no report of node9: see fabricctl nodes"}])
        self.assertEqual(self.ctl("forget", "node1"), "node1 is forgotten, until it reports again\n")
        self.assertEqual(self.value("forget", "node1"), {"host": "node1", "forgotten": True})
        self.assertEqual(self.rows("forget", "node1"), [{"host": "node1", "forgotten": "true"}])
        self.assertEqual(daemon.requests, [{"op": "forget", "host": "node1"}] * 3)
        self.ctl("forget", "node9", status=1)
        self.assertIn("forget: no report of node9: see fabricctl nodes", self.complaint)
        self.ctl("forget", status=2)

    def test_over_pmix_there_are_none(self):
        for args in (["nodes"], ["forget", "node1"]):
            self.ctl("--uri", "x;tcp4://127.0.0.1:1", *args, status=2)
            self.assertIn("does not work over PMIx", self.complaint)

    def test_a_name_that_is_no_text(self):
        for command in ("nodes", "forget"):
            self.ctl(command, b"node\xff", status=2)

    def test_refresh_of_a_host(self):
        daemon = self.daemon(refresh=[{"progress": "the host scans its devices"}, {"progress": "node0003 has delivered"},
                                      {"progress": "sweeping"}, {"ok": True, "generation": 4, "changed": True,
                                                                 "partial": False}],
                             diff=[{"ok": True, "from": 3, "to": 4, "known": True, "changes": [
                                 {"generation": 4, "time": "2025-01-02T03:04:05Z", "kind": "fact-changed",
                                  "what": "node0003 HCA-1 firmware", "before": "4xHDR", "after": "", "why": "it was pulled",
                                  "planned": False, "first_seen": "2025-01-02T03:04:04Z", "last_seen": None,
                                  "subjects": ["leaf1", "node7"]}]}])
        text = self.ctl("refresh", "--host", "node0003")
        self.assertEqual(daemon.requests, [{"op": "refresh", "accept_partial": False, "host": "node0003"},
                                           {"op": "diff", "from": 3, "to": 4, "host": "node0003"}])
        self.assertIn("node0003 HCA-1 firmware", text)
        self.assertIn("node0003 has delivered", self.complaint)


NODE = {"ok": True, "daemon": True, "role": "node", "pid": 4712, "version": "0.1.0", "uri": "x;tcp4://127.0.0.1:1",
        "host": "node0003", "scheduler": "s;tcp4://10.0.0.1:2", "connected": True, "generation": 3,
        "published": "2025-01-02T03:04:05Z", "stale": False, "stale_since": None, "stale_reason": None, "scanning": False,
        "last_scan": "2025-01-02T03:00:00Z", "scan_ms": 17, "interval": 600, "probes": 5, "probes_failed": 0,
        "probe_error": None, "digest": "984d7295c9dc12f4", "held": "984d7295c9dc12f4", "delivered": "2025-01-02T03:00:01Z",
        "delivering": False, "refused": False, "reason": None}


class OnANode(base.Case):
    def test_status(self):
        self.daemon(status=[NODE])
        status = self.value("status")
        for key, value in NODE.items():
            if key != "ok":
                self.assertEqual(status[key], value, key)
        text = self.ctl("status")
        self.assertRegex(text, r"(?m)^role +node$")
        self.assertRegex(text, r"(?m)^scheduler +s;tcp4://10.0.0.1:2, connected$")
        self.assertRegex(text, r"(?m)^report +984d7295c9dc12f4, delivered 2025-01-02T03:00:01Z$")
        for absent in ("last sweep", "REFUSED", "FAILED", "not delivered"):
            self.assertNotIn(absent, text)

    def test_status_in_trouble(self):
        told = NODE | {"connected": False, "held": None, "refused": True, "reason": "of\x1b another host",
                       "probes_failed": 2, "probe_error": "verbs: no device"}
        self.daemon(status=[told])
        text = self.ctl("status")
        self.assertRegex(text, r"(?m)^scheduler .*, not connected$")
        self.assertRegex(text, r"(?m)^FAILED PROBES +2 of 5: verbs: no device$")
        self.assertRegex(text, r"(?m)^report +984d7295c9dc12f4, which the scheduler does not hold, delivered")
        self.assertRegex(text, r"(?m)^REFUSED +of\? another host$")

    def test_refresh(self):
        self.daemon(refresh=[{"progress": "scanning"}, {"ok": True, "generation": 3, "digest": "984d7295c9dc12f4",
                                                       "probes_failed": 1}])
        self.assertEqual(self.value("refresh"), {"generation": 3, "digest": "984d7295c9dc12f4", "probes_failed": 1})
        self.assertRegex(self.ctl("refresh"), "report 984d7295c9dc12f4; 1 probe failed")
        self.assertEqual(self.rows("refresh"), [])

    def test_of_a_scheduler_there_is_null(self):
        self.daemon(status=[{"ok": True, "daemon": True, "role": "scheduler", "generation": 3, "nodes": 7}])
        status = self.value("status")
        self.assertEqual((status["nodes"], status["connected"], status["held"]), (7, None, None))
        self.assertRegex(self.ctl("status"), r"(?m)^reporting +7$")


if __name__ == "__main__":
    unittest.main()
