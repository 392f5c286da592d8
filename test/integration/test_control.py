"""The control socket under callers who mean no good, or do not care. test/sim/test_control.py has its pages."""
import contextlib
import os
import pwd
import re
import subprocess
import sys
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


# Sends many questions ahead in many connections, and reads the answers.
FLOOD = """
import selectors, socket, sys
poll = selectors.DefaultSelector()
for i in range(32):
    caller = socket.socket(socket.AF_UNIX)
    caller.connect(sys.argv[1])
    caller.sendall(b'{"op":"history","what":"zzzz"}\\n' * 1500)
    poll.register(caller, selectors.EVENT_READ)
print("holding", flush=True)
poll.register(sys.stdin, selectors.EVENT_READ)
lines = 0
while True:
    for key, _ in poll.select():
        if key.fileobj is sys.stdin:
            print(lines, flush=True)
            sys.exit()
        lines += key.fileobj.recv(1 << 20).count(b"\\n")
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

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_readers_cannot_lock_the_operator_out(self):
        with stranger("nobody", CONNECT, self.daemon) as readers:
            self.assertEqual(readers.stdout.readline(), "holding\n")
            self.assertTrue(self.daemon.refresh()["ok"])
            self.assertEqual(self.daemon.log().count("further ones are refused"), 1)
            lab.wait_for(lambda: self.daemon.connections() == 32, what="those of nobody that have a place to be left")
            self.assertEqual(self.daemon.ctl("status", user="daemon").returncode, 0)  # nor each other
        lab.wait_for(lambda: self.daemon.connections() == 0, what="the readers to be gone")


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
            daemon.logged("answers are unread")
            self.assertEqual(len(daemon.control("history", limit=0)["changes"]), 1273)
            self.assertEqual(daemon.ctl("history", user="games").returncode, 0)
            closed = []
            for hoard in hoards:
                hoard.stdin.write("\n")
                hoard.stdin.flush()
                closed.append(int(hoard.stdout.readline()))
            self.assertTrue(sum(closed) > 0 and max(closed) < 32, closed)
        self.assertEqual(daemon.log().count("answers are unread"), 1)  # once a minute


@unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
class Ahead(unittest.TestCase):
    def test_questions_sent_ahead_delay_nobody_else(self):
        """The others have a part of the time; root, another user and the end of the daemon do not wait for all that was sent."""
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:60,12,20", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        self.addCleanup(daemon.stop)
        with contextlib.ExitStack() as stack:
            floods = [stack.enter_context(stranger(user, FLOOD, daemon)) for user in ("nobody", "bin")]
            for flood in floods:
                self.assertEqual(flood.stdout.readline(), "holding\n")
            for user in (None, "games"):
                for _ in range(3):
                    self.assertEqual(daemon.ctl("status", user=user).returncode, 0)
            for flood in floods:
                flood.stdin.write("\n")
                flood.stdin.flush()
            answered = [int(flood.stdout.readline()) for flood in floods]
            self.assertTrue(0 < min(answered) and max(answered) < 32 * 1500, answered)  # the others waited for a part of it only
            self.assertLess(max(answered), 3 * min(answered) + 1000)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
class Places(unittest.TestCase):
    USERS = "nobody", "bin", "sys", "games", "man", "lp", "mail"

    def test_users_who_may_change_things_have_places_of_their_own(self):
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:4,2,4", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}, "security": {"admins": "news"}, "nodes": {"user": "uucp"}})
        self.addCleanup(daemon.stop)
        with contextlib.ExitStack() as stack:
            for user in self.USERS:
                self.assertEqual(stack.enter_context(stranger(user, CONNECT, daemon)).stdout.readline(), "holding\n")
            lab.wait_for(lambda: daemon.connections() == 7 * 32, what="seven users to have all the other places")
            for user in (None, "news", "uucp", "proxy"):  # and an eighth user, of whom one of the seven loses a connection
                self.assertEqual(daemon.ctl("status", user=user).returncode, 0, user)
            self.assertTrue(daemon.alive())


class Page(unittest.TestCase):
    """docs/control.md"""

    def setUp(self):
        with open(os.path.join(lab.ROOT, "docs", "control.md"), encoding="utf-8") as file:
            self.page = file.read()

    def test_each_operation_has_a_section_and_its_callers(self):
        tables = ("fabricd/operations/ops.c", "fabricd/node/node_control.c")
        named = set()
        for path in tables:
            with open(os.path.join(lab.ROOT, path), encoding="utf-8") as file:
                named.update(re.findall(r'\{"([a-z]+)", \w+\}', file.read()))
        self.assertIn("await", named)
        self.assertEqual(sorted(named), re.findall(r"(?m)^### (\S+)$", self.page))
        self.assertLessEqual(named, set(re.findall(r"`([a-z]+)`", self.page.partition("## Who may do what")[2].partition("## Op")[0])))

    def test_each_error_has_its_number(self):
        with open(os.path.join(lab.ROOT, "libpmixfab", "pmixfab.h"), encoding="utf-8") as file:
            codes = re.findall(r"PMIXFAB_ERR_(\w+) = (-\d+)", file.read())
        self.assertEqual({name: int(code) for code, name in re.findall(r"(-\d+) ([A-Z]+)\b", self.page.partition("\n## Errors")[2])},
                         {name: int(code) for name, code in codes})

    def test_the_program(self):
        program = re.search(r"(?ms)^```python\n(.*?)^```", self.page).group(1)
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:4,2,4", "capture").replace('"node0001"', '"leaf1"'))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        self.addCleanup(daemon.stop)
        self.assertEqual(program.count("/run/fabricd/"), 1)
        done = lab.run([sys.executable, "-c", program.replace("/run/fabricd/", f"{daemon.rundir}/")])
        findings = daemon.control("check")["findings"]
        self.assertEqual((done.stderr, done.stdout.splitlines()), ("", [str(row) for row in findings]))
        self.assertEqual([row["kind"] for row in findings], ["same-name"])


if __name__ == "__main__":
    unittest.main()
