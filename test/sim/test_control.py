"""The control socket: what is asked for in pages, and many questions at once. test/integration/test_control.py has callers who mean no
good."""
import contextlib
import json
import os
import re
import socket
import sqlite3
import unittest

import sim
from sim import lab


class Callers(unittest.TestCase):
    def test_many_questions_at_once_are_all_answered(self):
        site = sim.Site("fattree2:16,8,4")
        self.addCleanup(site.free)
        channel = sim.Channel(site, *[{"op": "history", "limit": 20}] * 1000, {"op": "refresh"})
        channel.no_more()
        lines = list(iter(channel.line, None))
        channel.close()
        self.assertEqual(sum(len(line.get("changes", [])) == 20 for line in lines), 1000)
        self.assertLessEqual({"generation": 1, "changed": False, "partial": False}.items(), lines[-1].items())


@unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
class Idle(unittest.TestCase):
    def setUp(self):
        self.site = sim.Site("fattree2:4,2,4")
        self.addCleanup(self.site.free)

    def connect(self, uid, *requests):
        """A caller of another user, as the kernel names it."""
        caller, before = socket.socket(socket.AF_UNIX), os.getcwd()
        os.chdir(self.site.rundir)  # which others may enter, but not the folders above it
        os.seteuid(uid)
        try:
            caller.connect("control.sock")
        finally:
            os.seteuid(0)
            os.chdir(before)
        self.addCleanup(caller.close)
        caller.setblocking(False)
        for request in requests:
            caller.sendall(json.dumps(request).encode() + b"\n")
        self.site.look()
        return caller

    def ended(self, caller):
        self.site.look()
        try:
            while caller.recv(1 << 20):
                pass
            return True
        except BlockingIOError:
            return False

    def test_who_asks_nothing_goes_and_who_waits_stays(self):
        idle, root = self.connect(5001), self.connect(0)
        waits = [self.connect(5001, request) for request in ({"op": "watch"}, {"op": "events", "follow": True},
                                                             {"op": "await", "until": "generation", "generation": 9, "deadline": 600})]
        asked = self.connect(5002, {"op": "status"})
        self.site.advance(200)
        asked.sendall(b'{"op":"status"}\n')
        self.site.look()
        self.site.advance(200)
        self.assertEqual([self.ended(caller) for caller in (idle, root, *waits, asked)], [True] + [False] * 5)
        self.site.advance(180)
        self.assertEqual([self.ended(caller) for caller in (root, *waits, asked)], [False] * 4 + [True])

    def test_an_idle_connection_gives_its_place_to_the_same_user(self):
        callers = [self.connect(5001) for _ in range(32)]
        self.assertTrue(self.ended(self.connect(5001)))
        self.site.advance(11)
        self.assertFalse(self.ended(self.connect(5001)))
        self.assertEqual([self.ended(caller) for caller in callers].count(True), 1)

    def test_a_user_with_many_loses_one_to_a_user_with_few(self):
        held = {uid: [self.connect(uid, {"op": "watch"}) for _ in range(32)] for uid in range(5001, 5008)}
        few = [self.connect(6000, {"op": "status"}) for _ in range(2)]
        self.assertEqual([self.ended(caller) for caller in few], [False, False])
        self.assertEqual([sum(map(self.ended, callers)) for callers in held.values()].count(1), 2)  # of two users one each


class Pages(unittest.TestCase):
    """1,200 hosts and more than 1,000 rows of everything that is asked for in pages."""

    @classmethod
    def setUpClass(cls):
        whole = sim.fabric("fattree2:60,12,20", "capture")
        cls.site = sim.Recorded(re.sub(r'# "node\d+"', '# "MT4123 ConnectX6"', whole))  # none says its name
        cls.addClassCleanup(cls.site.free)
        cls.unnamed = cls.pages("check")
        cls.site.show(whole)
        cls.site.refresh()

    @classmethod
    def pages(cls, op, **request):
        """All answers to one question, one after the other."""
        found = [cls.site.page(op, **request)]
        while "next" in found[-1]:
            found.append(cls.site.page(op, **dict(request, next=found[-1]["next"])))
            if not found[-1]["ok"]:
                raise lab.LabError(f"{op}: {found[-1]}")
        return found

    def test_history(self):
        pages = self.pages("history", limit=0)
        sizes = [len(page["changes"]) for page in pages]
        self.assertEqual((sizes[:2], max(sizes), [page["more"] for page in pages]), ([1000, 1000], 1000, [False] * len(pages)))
        rows = [row for page in reversed(pages) for row in page["changes"]]
        with contextlib.closing(sqlite3.connect(self.site.store)) as store:
            stored = list(store.execute("SELECT generation, what FROM change ORDER BY generation, seq"))
        self.assertEqual([(row["generation"], row["what"]) for row in rows], stored)
        self.assertEqual([(row["generation"], row["what"]) for row in self.site.ctl_json("history", "--all")], stored)
        self.assertEqual(self.site.ctl_json("history", "--limit", "1500"), rows[-1500:])
        latest = self.pages("history", limit=1500)
        self.assertEqual(([len(page["changes"]) for page in latest], latest[-1]["more"]), ([1000, 500], True))
        latest = self.pages("history", limit=len(rows))
        self.assertFalse(latest[-1]["more"])
        former = next(row["before"].split()[0] for row in rows if row["after"].split()[:1] == ["node0817"])
        for part, names in (("leaf1[", ["leaf1["]), ("node0817", ["node0817", former])):  # in the texts; under all names
            self.assertEqual(self.site.ctl_json("history", "--all", part), [
                row for row in rows if any(name in row[key] for key in ("what", "before", "after") for name in names)])
        self.assertEqual(self.site.ctl_json("history", "nothing-at-all"), [])

    def test_diff(self):
        pages = self.pages("diff", **{"from": 0})
        self.assertEqual([len(page["changes"]) for page in pages][:2], [1000, 1000])
        rows = [row for page in pages for row in page["changes"]]
        self.assertEqual(rows, self.site.ctl_json("history", "--all"))
        self.assertEqual(self.site.ctl_json("diff", "0", "2")["changes"], rows)
        about = [row for row in rows if "node0817" in row["subjects"]]
        self.assertEqual(self.site.control("diff", **{"from": 0, "host": "node0817.cluster"})["changes"], about)
        self.assertEqual(len(about), 1)

    def test_check(self):
        self.assertEqual([len(page["findings"]) for page in self.unnamed], [1000, 200])
        found = [finding for page in self.unnamed for finding in page["findings"]]
        self.assertEqual(len({finding["id"] for finding in found}), 1200)
        self.assertEqual({finding["kind"] for finding in found}, {"unnamed"})
        self.assertEqual(self.site.control("check")["findings"], [])
        self.assertEqual(self.site.page("check", next=self.unnamed[0]["next"])["findings"], [])  # the rest is gone, too

    def test_ports(self):
        pages = self.pages("ports")
        self.assertGreater(len(pages), 1)
        nodes = [guid for page in pages for guid in page["nodes"]]
        self.assertEqual((len(nodes), len(set(nodes))), (60 + 12 + 1200,) * 2)
        lids = self.site.ctl_json("--columns", "host,lid", "devices")
        self.assertEqual(sum(row["lid"] is not None for row in lids), 1200)

    def test_nodes(self):
        hosts = [f"far{n}" for n in range(1, 1102)]
        for host in hosts:
            self.assertEqual(self.site.deliver_items(host, [{"source": "verbs", "name": "mlx5_0"}]), 0)
        pages = self.pages("nodes")
        self.assertEqual([len(page["nodes"]) for page in pages], [1000, 101])
        self.assertEqual([node["host"] for page in pages for node in page["nodes"]], hosts)
        self.assertEqual([node["host"] for node in self.site.ctl_json("nodes")], hosts)
        self.assertEqual([node["host"] for node in self.site.ctl_json("nodes", "far1101")], ["far1101"])

    def test_what_is_no_place(self):
        for op, text in (("history", "1.2"), ("history", "1.2.x"), ("history", 7), ("diff", "-1.0.2"), ("check", "few-ports"),
                         ("check", "no-kind 1234 node1"), ("ports", 1), ("nodes", [])):
            answer = self.site.page(op, next=text)
            self.assertEqual((answer["ok"], answer.get("error")), (False, -5), (op, text))


if __name__ == "__main__":
    unittest.main()
