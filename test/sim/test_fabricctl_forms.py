"""fabricctl alone: the forms of what it shows of a run directory, and what it asks of a daemon (played here) and shows of the answers."""
import csv
import io
import os
import re
import unittest

import ctl_case
import sim
from ctl_case import HOSTS, LEAVES, SPINES
from sim import lab

N = LEAVES * HOSTS

# What programs may count on.
KEYS = {
    "planes": ["index", "name", "vendor", "identifier", "devices", "hosts", "switches", "dims", "shape", "kind"],
    "devices": ["index", "id", "plane", "host", "name", "port", "guid", "switch", "switch_port", "rate_gbps", "state",
                "logical", "physical", "type", "seen", "vendor", "firmware", "driver", "pci", "mtu", "numa", "missing"],
    "switches": ["id", "name", "level", "hosts", "missing", "aggregation"],
    "links": ["a", "a_port", "b", "b_port", "rate_gbps", "missing"],
    "groups": ["group", "hosts"],
    "coords": ["index", "plane", "host", "name", "port", "logical", "physical"],
}
STATUS = {"ok": True, "daemon": True, "role": "scheduler", "generation": 8, "published": "2025-01-02T03:04:05Z",
          "stale": False, "sweeping": True, "last_sweep": "2025-01-02T03:04:04Z", "sweep_ms": 12.3, "interval": 60,
          "light_sweep": 2, "light_sweeps": 471, "light_sweeps_dirty": 3, "light_sweep_ms": 0.44, "monitoring": True, "dirty_since": None,
          "missing": 0, "flapping": 0}


def change(generation, what, kind="link-lost"):
    return {"generation": generation, "time": "2025-01-02T03:04:05Z", "kind": kind, "what": what, "before": "4xHDR",
            "after": "", "why": "it was pulled", "planned": False, "first_seen": "2025-01-02T03:04:04Z", "last_seen": None,
            "subjects": ["leaf1", "node7"]}


class Reading(ctl_case.Case):
    def test_lists(self):
        """JSON has the keys, CSV says what JSON says, and text has a line for each."""
        for command, keys in KEYS.items():
            with self.subTest(command):
                value, rows = self.value(command), self.rows(command)
                self.assertEqual(len(rows), len(value))
                self.assertEqual(len(self.ctl(command).splitlines()), 1 + len(value))
                for row, one in zip(rows, value):
                    self.assertEqual([key for key in keys if key not in one], [])
                    self.assertEqual(list(row), list(one))
                    for key, cell in row.items():
                        expected = one[key]
                        if isinstance(expected, list):
                            expected = ";".join(str(item) for item in expected)
                        elif isinstance(expected, bool):
                            expected = str(expected).lower()
                        self.assertEqual(cell, "" if expected is None else str(expected))

    def test_what_they_hold(self):
        (plane,) = self.value("planes")
        self.assertEqual((plane["name"], plane["kind"]), ("ib0", "fat-tree-2"))
        self.assertEqual((plane["devices"], plane["hosts"], plane["switches"]), (N, N, LEAVES + SPINES))
        devices = self.value("devices")
        self.assertEqual([device["index"] for device in devices], list(range(N)))
        self.assertEqual((devices[2]["host"], devices[2]["state"]), ("node0003", "up"))
        self.assertEqual(len({tuple(device["logical"]) for device in devices}), N)
        self.assertRegex(devices[0]["id"], r"^fab://([0-9a-f]{4}:){3}[0-9a-f]{4}::([0-9a-f]{4}:){3}[0-9a-f]{4}$")
        self.assertEqual(self.value("devices", "node0003"), [devices[2] | {"facts": []}])
        self.ctl("devices", "node03", status=1)
        self.assertIn("node03", self.complaint)
        switches, links, groups = self.value("switches"), self.value("links"), self.value("groups")
        self.assertEqual(sorted(switch["level"] for switch in switches), [0] * LEAVES + [1] * SPINES)
        self.assertEqual(sum(switch["hosts"] for switch in switches), N)
        names = {switch["name"] for switch in switches} | {f"node{i:04}:HCA-1" for i in range(1, N + 1)}
        self.assertEqual(({link[end] for link in links for end in "ab"}, len(links)), (names, N + LEAVES * SPINES))
        self.assertEqual([group["group"] for group in groups], list(range(LEAVES)))
        self.assertEqual(groups[1]["hosts"], ["node0005", "node0006", "node0007", "node0008"])
        self.assertIn("node[0001-0004]", self.ctl("groups"))

    def test_aggregation_nodes(self):
        """Each is shown as what it is, and is counted at its switch."""
        with open(os.path.join(lab.ROOT, "test", "data", "site_mixed.txt"), encoding="utf-8") as file:
            site = sim.Recorded(file.read())
        self.addCleanup(site.free)
        ends = {(link[end], link[end + "_kind"], link[other]) for link in site.ctl_json("links")
                for end, other in (("a", "b"), ("b", "a")) if link[end + "_kind"] not in ("switch", "device")}
        for name, kind, _ in ends:
            self.assertRegex(name, f"^{kind} 0x[0-9a-f]{{16}}$")
        there = [switch for _, kind, switch in ends if kind == "aggregation node"]
        self.assertTrue(there)
        self.assertEqual({s["name"]: s["aggregation"] for s in site.ctl_json("switches") if s["aggregation"]},
                         {name: there.count(name) for name in there})

    def test_cost(self):
        for a, b, cost in (("node0001", "node0001", 0), ("node0001", "node0002", 20), ("node0001:HCA-1", "node0016:HCA-1:1", 40),
                           (self.value("devices")[5]["id"], "node0006", 0)):
            answer = self.value("cost", a, b)
            self.assertEqual((answer["a"], answer["b"], answer["cost"]), (a, b, cost))
        self.assertIn("40", self.ctl("cost", "node0001", "node0016"))
        self.ctl("cost", "node0001", "nobody", status=1)
        self.assertIn("nobody", self.complaint)

    def test_planes_to_choose_from(self):
        self.site.snapshot("fattree2:2,1,4", "ib1", 2, 5)
        self.site.snapshot("fattree2:6,2,4", "ib2", 3, 4)
        self.assertEqual([plane["name"] for plane in self.value("planes")], ["ib0", "ib1", "ib2"])
        self.assertEqual(self.value("status")["generation"], 5)
        self.assertEqual(len(self.value("devices")), N + 8 + 24)
        self.assertEqual(len(self.value("--plane", "ib1", "devices")), 8)
        self.assertEqual(len(self.value("devices", "--plane", "ib1")), 8)
        self.assertEqual({device["plane"] for device in self.value("devices", "node0001")}, {"ib0", "ib1", "ib2"})
        self.assertEqual(self.value("cost", "node0001", "node0002")["plane"], "ib0")
        self.assertEqual(self.value("cost", "node0001", "node0024")["plane"], "ib2")
        self.assertEqual(len(self.value("matrix")["devices"]), N)
        for name in ("ib9", "0", "1", "+1", "../ib0"):  # no number is a name, and 0 is no plane's number
            self.ctl("planes", "--plane", name, status=1)
            self.assertRegex(self.complaint, f"no plane {re.escape(name)}: .*: there is ib0, ib1, ib2$")
        # No path is an answer, and it is no: the one end is in ib0, the other in ib2.
        here, there = self.value("--plane", "ib0", "devices")[0]["id"], "node0024"
        answer = self.value("cost", here, there, status=1)
        self.assertEqual((answer["a"], answer["b"], answer["cost"], self.complaint), (here, there, None, ""))
        self.assertIn("no path", self.ctl("cost", here, there, status=1))
        self.assertIn(f"{here},{there},,", self.ctl("cost", here, there, "--format", "csv", status=1))
        self.ctl("--plane", "ib0", "cost", here, there, status=1)
        self.assertIn("no device node0024", self.complaint)

    def test_help(self):
        text = self.ctl("--help")
        for command in KEYS | {"status": 0, "cost": 0, "matrix": 0, "refresh": 0, "events": 0, "history": 0, "diff": 0}:
            self.assertRegex(text, rf"\n  {command} ")
            self.assertIn(f"fabricctl {command}", self.ctl(command, "--help"))
        self.assertRegex(self.ctl("--version"), r"^fabricctl \d+\.\d+\.\d+\n$")

    def test_matrix(self):
        value = self.value("matrix")
        lines = list(csv.reader(io.StringIO(self.ctl("matrix", "--format", "csv"))))
        self.assertEqual(lines[0][1:], value["devices"])
        self.assertEqual([[int(cell) for cell in line[1:]] for line in lines[1:]], value["costs"])
        text = [line.split() for line in self.ctl("matrix").splitlines()]
        self.assertEqual([[int(cell) for cell in line[2:]] for line in text], value["costs"])
        for a in (0, N - 1):
            for b in range(N):
                self.assertEqual(self.value("cost", value["devices"][a], value["devices"][b])["cost"], value["costs"][a][b])
        self.site.snapshot("fattree2:50,4,50")
        for form in ("text", "json", "csv"):
            self.ctl("matrix", "--format", form, status=1)
            self.assertIn("-o", self.complaint)


class Refusing(ctl_case.Case):
    def test_usage(self):
        for args in ([], ["nosuch"], ["planes", "extra"], ["cost", "a"], ["cost", "a", "b", "c"], ["--format", "xml", "planes"],
                     ["planes", "--rundir"], ["--bogus", "planes"], ["planes", "--bogus"], ["-z"], ["matrix", "--follow"],
                     ["planes", "-o", "x"], ["status", "--accept-partial"], ["--uri", "x", "--rundir", "y", "planes"],
                     ["--rundir=", "planes"], ["diff", "x"], ["diff", "5", "3"], ["diff", "1", "2", "3"], ["diff", "-1"],
                     ["history", "--limit", "0"], ["history", "--limit", "1x"], ["events", "--follow=yes"],
                     ["--uri", "x", "refresh"], ["--uri", "x", "events"], ["--format", "", "planes"], ["matrix", "-o", ""]):
            with self.subTest(args=args):
                self.assertEqual(self.ctl(*args, status=2), "")

    def test_snapshots_that_are_none(self):
        for place in (self.site.dir, os.path.join(self.site.dir, "nosuch")):
            for command in (*KEYS, "status", "matrix"):
                self.ctl("--rundir", place, command, status=1)
                self.assertIn(place, self.complaint)
        path = os.path.join(self.rundir, "ib0.snap")
        with open(path, "rb") as file:
            good = file.read()
        with open(os.path.join(self.rundir, "other.snap"), "w", encoding="utf-8") as file:
            file.write("junk")
        self.assertEqual(len(self.value("planes")), 1)  # beside a good one it is told of
        self.assertIn("other.snap", self.complaint)
        os.unlink(file.name)
        for bad in (b"", good[:100], b"junk" * 100, good[:600] + bytes([good[600] ^ 1]) + good[601:], good[:-1]):
            with open(path, "wb") as file:
                file.write(bad)
            for command in (*KEYS, "status", "matrix"):
                self.ctl(command, status=1)
                self.assertIn("ib0.snap", self.complaint)


class Status(ctl_case.Case):
    def test_without_a_daemon(self):
        status = self.value("status")
        self.assertEqual((status["generation"], status["daemon"], status["stale"]), (3, False, True))
        self.assertRegex(status["published"], r"^2023-11-14T22:13:20(\.\d+)?Z$")
        self.assertEqual(status["planes"], self.value("planes"))
        self.assertIn("no fabricd answers", status["stale_reason"])
        self.assertIn("STALE", self.ctl("status"))
        self.assertEqual(self.rows("status")[0]["generation"], "3")

    def test_of_a_daemon(self):
        told = {"ok": True, "daemon": True, "pid": 4711, "version": "9.9.9", "uri": "x;tcp4://127.0.0.1:1", "generation": 8,
                "published": "2025-01-02T03:04:05Z", "stale": True, "stale_since": "2025-01-02T04:04:05Z",
                "stale_reason": "the sweep \x1b[31mtook longer than 60 s", "partial": True, "dangling": 3, "unnamed": 2,
                "sweeping": False, "last_sweep": None, "sweep_ms": 12.345678, "interval": 60, "newer": "key"}
        self.daemon(status=[told])
        status = self.value("status")
        told["stale_reason"] = "the sweep ?[31mtook longer than 60 s"
        for key, value in told.items():
            if key != "ok":
                self.assertEqual(status[key], value, key)
        self.assertEqual(status["planes"], self.value("planes"))
        text = self.ctl("status")
        self.assertNotIn("\x1b", text)
        self.assertRegex(text, r"STALE +since 2025-01-02T04:04:05Z: the sweep")
        self.assertNotRegex(text, "(?m)^(light sweeps|dirty|missing|flapping) ")  # an older daemon does not say it

    def test_between_sweeps(self):
        storm = dict(STATUS, monitoring=False, dirty_since="2025-01-02T03:05:06Z", missing=1, flapping=2)
        answers = iter([dict(STATUS, sweeping=False), storm, dict(STATUS, light_sweep=0, monitoring=None)])
        self.daemon(status=lambda request: [next(answers)])
        quiet, storm, off = (self.ctl("status") for _ in range(3))
        self.assertRegex(quiet, r"(?m)^last sweep +2025-01-02T03:04:04Z, took 12.3 ms, every 60 s$")
        self.assertRegex(quiet, r"(?m)^light sweeps +471, 3 found a change, the last took 0.4 ms, every 2 s$")
        self.assertNotRegex(quiet, "(?m)^(dirty|missing|flapping) ")
        for line in (r"last sweep +.*; sweeping now", r"light sweeps +471, .*, every 2 s; NOT RUNNING NOW: changes are seen at sweeps only",
                     r"dirty +since 2025-01-02T03:05:06Z: swept when the fabric is quiet", r"missing +1 HCA, which keeps its place",
                     r"flapping +2 cables and switches, suppressed"):
            self.assertRegex(storm, f"(?m)^{line}$")
        self.assertNotRegex(off, "(?m)^light sweeps ")

    def test_of_a_node(self):
        self.daemon(status=[dict(STATUS, role="node", host="node0001", scheduler="x", connected=False, scanning=True,
                                 last_scan="2025-01-02T03:04:04Z", scan_ms=8.25, probes=5, probes_failed=1,
                                 probe_error="lldp: nobody answers", digest="0a", held="0b", delivered="2025-01-02T03:00:00Z",
                                 delivering=True, refused=True, reason="who are you?")])
        text = self.ctl("status")
        for line in ("role +node", "host +node0001", "scheduler +x, not connected",
                     "last scan +2025-01-02T03:04:04Z, took 8.2 ms, every 60 s; scanning now", "FAILED PROBES +1 of 5: lldp: nobody answers",
                     "report +0a, which the scheduler does not hold, delivered 2025-01-02T03:00:00Z; delivering now",
                     r"REFUSED +who are you\?"):
            self.assertRegex(text, f"(?m)^{line}$")
        self.assertNotRegex(text, "(?m)^(light sweeps|last sweep) ")

    def test_before_anything_is_published(self):
        os.unlink(os.path.join(self.rundir, "ib0.snap"))
        self.daemon(status=[{"ok": True, "generation": 0, "published": None, "stale": False}])
        status = self.value("status")
        self.assertEqual((status["daemon"], status["generation"], status["planes"]), (True, 0, []))
        self.ctl("status")


class Asking(ctl_case.Case):
    def test_no_daemon(self):
        for args in (["refresh"], ["events"], ["events", "--follow"], ["history"], ["diff"]):
            self.ctl(*args, status=1)
            self.assertIn(f"{self.rundir}/control.sock", self.complaint)
            self.assertIn("check that it runs", self.complaint)

    @staticmethod
    def told(request):
        """The daemon's answer to `diff`: of one host, what is about it, and whether it is there."""
        answer = {"ok": True, "from": request["from"], "to": request["to"],
                  "changes": [change(9, "leaf1[8] - node0001 HCA-1[1]"), change(9, "leaf2 - spine1")]}
        if "host" in request:
            answer["known"] = request["host"] != "node000"
            answer["changes"] = answer["changes"][:request["host"] == "node0001"]
        return answer

    def test_refresh(self):
        daemon = self.daemon(
            refresh=[{"progress": "sweeping"}, {"progress": "bad \x1b[2J text"},
                     {"ok": True, "generation": 9, "changed": True, "partial": False}],
            diff=lambda request: [self.told(request)])
        value = self.value("refresh", "--accept-partial")
        self.assertEqual((value["generation"], value["changed"], value["partial"]), (9, True, False))
        self.assertEqual([one["what"] for one in value["changes"]], ["leaf1[8] - node0001 HCA-1[1]", "leaf2 - spine1"])
        self.assertEqual(self.complaint, "fabricctl: sweeping\nfabricctl: bad ?[2J text\n")
        self.assertEqual(daemon.requests, [{"op": "refresh", "accept_partial": True}, {"op": "diff", "from": 8, "to": 9}])
        self.assertIn("leaf2 - spine1", self.ctl("refresh"))
        self.assertEqual(daemon.requests[2]["accept_partial"], False)
        value = self.value("refresh", "--host", "node0001")
        self.assertEqual(daemon.requests[4]["host"], "node0001")
        self.assertEqual([one["what"] for one in value["changes"]], ["leaf1[8] - node0001 HCA-1[1]"])
        self.assertEqual(self.value("refresh", "--host", "node0002")["changes"], [])
        for args in (["--host", "node0002"], ["--switch", "leaf7"]):
            self.assertEqual(self.ctl("refresh", *args), "generation 9, published just now\n"
                             f"no change of {args[1]}; 2 other changes: see fabricctl diff\n")
        self.assertNotIn("no change of", self.ctl("refresh", "--host", "node0001"))
        self.ctl("refresh", "--host", "node000", status=1, lines=3)
        self.assertIn("node000", self.complaint.splitlines()[-1])
        daemon.close()
        daemon = self.daemon(refresh=[{"ok": True, "generation": 3, "changed": False, "partial": True}])
        self.assertIn("nothing changed", self.ctl("refresh"))
        self.assertLessEqual({"generation": 3, "changed": False, "partial": True, "changes": []}.items(), self.value("refresh").items())
        self.assertEqual({request["op"] for request in daemon.requests}, {"refresh"})
        daemon.close()
        self.daemon(refresh=[{"ok": True, "generation": 9, "changed": True, "partial": False}],
                    diff=[{"ok": True, "from": 8, "to": 9, "changes": [change(9, "leaf1", "switch-replaced")]}])
        self.assertEqual([one["what"] for one in self.value("refresh", "--host", "node7")["changes"]], ["leaf1"])

    def test_refusals_and_odd_answers(self):
        no = {"ok": False, "error": -14, "message": "refresh: uid 65534 may not: ask an administrator\x1b[0m"}
        daemon = self.daemon(refresh=[no], history=[no], diff=[no], events=[no])
        for args in (["refresh"], ["history"], ["diff"], ["events"], ["events", "--follow"]):
            with self.subTest(args=args):
                self.assertEqual(self.ctl(*args, status=1), "")
                self.assertEqual(self.complaint, "fabricctl: refresh: uid 65534 may not: ask an administrator?[0m\n")
        daemon.close()
        self.daemon(history=[{"ok": True, "changes": [{}, 5, None, {"generation": "x", "what": 7, "time": []}]}],
                    diff=[{"ok": True, "changes": {"a": 1}}], events=[{"ok": True, "events": "none"}],
                    status=[{"ok": True, "generation": "many", "stale": 5, "planes": 7, "sweep_ms": {}}],
                    refresh=[{"ok": True, "changed": "yes"}])
        for command in ("history", "diff", "events", "status", "refresh"):
            for form in ("text", "json", "csv"):
                with self.subTest(command=command, form=form):
                    self.ctl(command, "--format", form)

    def test_history(self):
        daemon = self.daemon(history=[{"ok": True, "changes": [change(1, "a, \"b\""), change(2, "c\x1bd")]}])
        value = self.value("history")
        self.assertEqual([one["what"] for one in value], ["a, \"b\"", "c?d"])
        self.assertEqual(set(value[0]), {"generation", "time", "kind", "what", "before", "after", "why", "planned",
                                         "first_seen", "last_seen", "subjects"})
        self.assertEqual([row["what"] for row in self.rows("history", "node1", "--limit", "7")], ["a, \"b\"", "c?d"])
        self.assertEqual(daemon.requests, [{"op": "history"}, {"op": "history", "what": "node1", "limit": 7}])
        self.assertEqual(self.rows("history")[0]["subjects"], "leaf1;node7")
        daemon.close()
        moved = dict(change(3, "node7 HCA-1[1]", "host-moved"), before="leaf1[2]", after="leaf2[5]", planned=True)
        daemon = self.daemon(history=[{"ok": True, "changes": [moved, change(4, "x")]}])
        for args, lines in (([], ["TIME GENERATION KIND WHAT CHANGE WHY",
                                  "2025-01-02T03:04:05Z 3 host-moved, planned node7 HCA-1[1] leaf1[2] -> leaf2[5] it was pulled",
                                  "2025-01-02T03:04:05Z 4 link-lost x 4xHDR -> it was pulled"]),
                            (["-l"], ["TIME GENERATION KIND WHAT CHANGE LAST-SEEN FIRST-SEEN WHY",
                                      "2025-01-02T03:04:05Z 3 host-moved, planned node7 HCA-1[1] leaf1[2] -> leaf2[5] - "
                                      "2025-01-02T03:04:04Z it was pulled",
                                      "2025-01-02T03:04:05Z 4 link-lost x 4xHDR -> - 2025-01-02T03:04:04Z it was pulled"])):
            self.assertEqual([" ".join(line.split()) for line in self.ctl("history", *args).splitlines()], lines)
        daemon.close()
        daemon = self.daemon(history=[{"ok": True, "trimmed": 7, "changes": []}])
        self.assertEqual(self.ctl("history", "nosuch"),
                         "no changes in the history about nosuch\ntrimmed: older than generation 8\n")
        self.assertEqual(self.value("history", "nosuch"), [])  # what programs read stays what it is
        self.assertEqual(self.complaint, "fabricctl: trimmed: older than generation 8\n")
        self.rows("history", "-n", "5")
        self.assertEqual(self.complaint, "")
        daemon.close()
        changes = [change(i, f"leaf{i}[1] - spine1[{i}]") for i in range(500)]
        self.daemon(history=[{"ok": True, "changes": changes}])
        self.assertEqual(self.value("history"), changes)

    def test_diff_and_events(self):
        event = {"event": "PMIX_FABRIC_UPDATED", "plane": "ib0", "index": 1, "generation": 4, "time": "2025-01-02T03:04:05Z", "reason": None}
        daemon = self.daemon(diff=lambda request: [{"ok": True, "from": request.get("from", 6), "to": request.get("to", 7),
                                                    "changes": [change(7, "x")]}], events=[{"ok": True, "events": [event, event]}])
        self.assertEqual(self.value("diff"), {"from": 6, "to": 7, "changes": [change(7, "x")]})
        self.assertEqual(self.value("diff", "2")["from"], 2)
        self.assertEqual(self.value("diff", "2", "5")["to"], 5)
        self.assertEqual([{key: request[key] for key in request if key != "op"} for request in daemon.requests],
                         [{}, {"from": 2}, {"from": 2, "to": 5}])
        self.assertIn("FIRST-SEEN", self.ctl("diff", "--long"))
        self.assertEqual(self.value("events"), [event, event])
        self.assertEqual(len(self.ctl("events").splitlines()), 3)


if __name__ == "__main__":
    unittest.main()
