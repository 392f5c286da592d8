"""The control socket under callers who mean no good, or do not care."""
import base64
import contextlib
import json
import os
import pwd
import re
import socket
import sqlite3
import subprocess
import threading
import unittest

import lab

CONNECT = """
import socket, sys
held = []
for i in range(400):
    caller = socket.socket(socket.AF_UNIX)
    caller.connect(sys.argv[1])
    held.append(caller)
print("holding", flush=True)
sys.stdin.read()
"""


# Asks in many connections, and reads of none; then says how many the daemon has closed.
HOARD = """
import select, socket, sys
held = []
for i in range(32):
    caller = socket.socket(socket.AF_UNIX)
    caller.connect(sys.argv[1])
    caller.sendall(b'{"op":"history"}\\n' * 3)
    held.append(caller)
print("holding", flush=True)
sys.stdin.readline()
poll = select.poll()
for caller in held:
    poll.register(caller, 0)
print(sum(what & select.POLLHUP != 0 for _, what in poll.poll(0)), flush=True)
"""


@contextlib.contextmanager
def stranger(user, script, daemon):
    """Another user's script in a process of its own, with the path of the control socket."""
    account = pwd.getpwnam(user)
    with subprocess.Popen(["/usr/bin/python3", "-c", script, os.path.join(daemon.rundir, "control.sock")],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", user=account.pw_uid,
                          group=account.pw_gid, extra_groups=[]) as process:
        yield process
        process.stdin.close()


class Callers(unittest.TestCase):
    def setUp(self):
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:16,8,4", "capture"))
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        self.addCleanup(self.daemon.stop)

    def connect(self):
        caller = self.daemon.connect(30)
        self.addCleanup(caller.close)
        return caller

    def memory(self):
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))

    def test_who_does_not_read_is_not_answered_for_ever(self):
        before, caller = self.memory(), self.connect()
        caller.settimeout(0.5 * lab.SLOW)
        with self.assertRaises(TimeoutError):
            for _ in range(1000):
                caller.sendall(b'{"op":"history"}\n' * 1000)
        self.assertEqual(self.daemon.status()["generation"], 1)
        if not os.environ.get("FABRICD_SANITIZE"):  # a sanitizer keeps what was freed
            self.assertLess(self.memory() - before, 16 << 10)

    def test_many_questions_at_once_are_all_answered(self):
        caller = self.connect()

        def ask():
            caller.sendall(b'{"op":"history","limit":20}\n' * 1000 + b'{"op":"refresh"}\n')
            caller.shutdown(socket.SHUT_WR)
        asker = threading.Thread(target=ask)
        asker.start()
        with caller.makefile(encoding="utf-8") as answers:
            lines = [json.loads(line) for line in answers]
        asker.join()
        self.assertEqual(sum(len(line.get("changes", [])) == 20 for line in lines), 1000)
        self.assertLessEqual({"generation": 1, "changed": False, "partial": False}.items(), lines[-1].items())

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_readers_cannot_lock_the_operator_out(self):
        with stranger("nobody", CONNECT, self.daemon) as readers:
            self.assertEqual(readers.stdout.readline(), "holding\n")
            self.assertTrue(self.daemon.refresh()["ok"])
            self.assertEqual(self.daemon.log().count("more are refused"), 1)
            lab.wait_for(lambda: self.daemon.connections() == 32, what="those of nobody that have a place to be left")
            self.assertEqual(self.daemon.ctl("status", user="daemon").returncode, 0)  # nor each other
        lab.wait_for(lambda: self.daemon.connections() == 0, what="the readers to be gone")

    @unittest.skipIf(os.environ.get("FABRICD_SANITIZE"), "a sanitizer keeps what was freed")
    def test_tools_that_come_and_go_cost_little(self):
        self.daemon.tool("register")
        before, tools = self.memory(), 60
        for _ in range(tools):
            self.assertEqual(self.daemon.tool("register").returncode, 0)
        self.assertLess((self.memory() - before) / tools, 20)  # KiB; what is left is the library's


@unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
class Unread(unittest.TestCase):
    def test_bytes_that_nobody_reads_are_bounded_in_all(self):
        """Three users leave twice as much unread as all may together: they lose connections, and others are answered."""
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:60,12,20", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        self.addCleanup(daemon.stop)
        with contextlib.ExitStack() as stack:
            hoards = [stack.enter_context(stranger(user, HOARD, daemon)) for user in ("nobody", "daemon", "bin")]
            for hoard in hoards:
                self.assertEqual(hoard.stdout.readline(), "holding\n")
            lab.wait_for(lambda: "answers are not read" in daemon.log(), what="a word about it")
            self.assertEqual(len(daemon.control("history", limit=0)["changes"]), 1273)
            self.assertEqual(daemon.ctl("history", user="games").returncode, 0)
            closed = []
            for hoard in hoards:
                hoard.stdin.write("\n")
                hoard.stdin.flush()
                closed.append(int(hoard.stdout.readline()))
            self.assertTrue(sum(closed) > 0 and max(closed) < 32, closed)
        self.assertEqual(daemon.log().count("answers are not read"), 1)  # once a minute


class Pages(unittest.TestCase):
    """1,200 hosts and more than 1,000 rows of everything that is asked for in pages."""

    @classmethod
    def setUpClass(cls):
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        whole = lab.fabric("fattree2:60,12,20", "capture")
        lab.replace_file(path, re.sub(r'# "node\d+"', '# "MT4123 ConnectX6"', whole))  # none says its name
        cls.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        cls.addClassCleanup(cls.daemon.stop)
        cls.unnamed = cls.pages("check")
        lab.replace_file(path, whole)
        cls.daemon.refresh()

    @classmethod
    def pages(cls, op, **request):
        """All answers to one question, one after the other."""
        found = [cls.daemon.page(op, **request)]
        while "next" in found[-1]:
            found.append(cls.daemon.page(op, **dict(request, next=found[-1]["next"])))
            if not found[-1]["ok"]:
                raise lab.LabError(f"{op}: {found[-1]}")
        return found

    def test_history(self):
        pages = self.pages("history", limit=0)
        sizes = [len(page["changes"]) for page in pages]
        self.assertEqual((sizes[:2], max(sizes), [page["more"] for page in pages]), ([1000, 1000], 1000, [False] * len(pages)))
        rows = [row for page in reversed(pages) for row in page["changes"]]
        with contextlib.closing(sqlite3.connect(self.daemon.store)) as store:
            stored = list(store.execute("SELECT generation, what FROM change ORDER BY generation, seq"))
        self.assertEqual([(row["generation"], row["what"]) for row in rows], stored)
        self.assertEqual([(row["generation"], row["what"]) for row in self.daemon.ctl_json("history", "--all")], stored)
        self.assertEqual(self.daemon.ctl_json("history", "--limit", "1500"), rows[-1500:])
        latest = self.pages("history", limit=1500)
        self.assertEqual(([len(page["changes"]) for page in latest], latest[-1]["more"]), ([1000, 500], True))
        latest = self.pages("history", limit=len(rows))
        self.assertFalse(latest[-1]["more"])
        former = next(row["before"].split()[0] for row in rows if row["after"].split()[:1] == ["node0817"])
        for part, names in (("leaf1[", ["leaf1["]), ("node0817", ["node0817", former])):  # in the texts; under all names
            self.assertEqual(self.daemon.ctl_json("history", "--all", part), [
                row for row in rows if any(name in row[key] for key in ("what", "before", "after") for name in names)])
        self.assertEqual(self.daemon.ctl_json("history", "nothing-at-all"), [])

    def test_diff(self):
        pages = self.pages("diff", **{"from": 0})
        self.assertEqual([len(page["changes"]) for page in pages][:2], [1000, 1000])
        rows = [row for page in pages for row in page["changes"]]
        self.assertEqual(rows, self.daemon.ctl_json("history", "--all"))
        self.assertEqual(self.daemon.ctl_json("diff", "0", "2")["changes"], rows)
        about = [row for row in rows if "node0817" in row["subjects"]]
        self.assertEqual(self.daemon.control("diff", **{"from": 0, "host": "node0817.cluster"})["changes"], about)
        self.assertEqual(len(about), 1)

    def test_check(self):
        self.assertEqual([len(page["findings"]) for page in self.unnamed], [1000, 200])
        found = [finding for page in self.unnamed for finding in page["findings"]]
        self.assertEqual(len({finding["id"] for finding in found}), 1200)
        self.assertEqual({finding["kind"] for finding in found}, {"unnamed"})
        self.assertEqual(self.daemon.control("check")["findings"], [])
        self.assertEqual(self.daemon.page("check", next=self.unnamed[0]["next"])["findings"], [])  # the rest is gone, too

    def test_ports(self):
        pages = self.pages("ports")
        self.assertGreater(len(pages), 1)
        nodes = [guid for page in pages for guid in page["nodes"]]
        self.assertEqual((len(nodes), len(set(nodes))), (60 + 12 + 1200,) * 2)
        lids = self.daemon.ctl_json("--columns", "host,lid", "devices")
        self.assertEqual(sum(row["lid"] is not None for row in lids), 1200)

    def test_nodes(self):
        path = os.path.join(lab.tmpdir(), "machine.json")
        hosts = [f"far{n}" for n in range(1, 1102)]
        with self.daemon.connect() as caller:
            with caller.makefile(encoding="utf-8") as answers:
                for host in hosts:
                    lab.replace_file(path, json.dumps({"host": host, "items": [{"source": "verbs", "name": "mlx5_0"}]}))
                    done = subprocess.run([lab.program("report_tool"), path], stdout=subprocess.PIPE, check=True)
                    caller.sendall((json.dumps({"op": "deliver", "bytes": base64.b64encode(done.stdout).decode()}) + "\n").encode())
                    self.assertTrue(json.loads(answers.readline())["ok"])
        pages = self.pages("nodes")
        self.assertEqual([len(page["nodes"]) for page in pages], [1000, 101])
        self.assertEqual([node["host"] for page in pages for node in page["nodes"]], hosts)
        self.assertEqual([node["host"] for node in self.daemon.ctl_json("nodes")], hosts)
        self.assertEqual([node["host"] for node in self.daemon.ctl_json("nodes", "far1101")], ["far1101"])

    def test_what_is_no_place(self):
        for op, text in (("history", "1.2"), ("history", "1.2.x"), ("history", 7), ("diff", "-1.0.2"), ("check", "few-ports"),
                         ("check", "no-kind 1234 node1"), ("ports", 1), ("nodes", [])):
            answer = self.daemon.page(op, next=text)
            self.assertEqual((answer["ok"], answer.get("error")), (False, -5), (op, text))


if __name__ == "__main__":
    unittest.main()
