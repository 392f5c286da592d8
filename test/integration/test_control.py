"""The control socket under callers who mean no good, or do not care."""
import json
import os
import pwd
import socket
import subprocess
import sys
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


class Callers(unittest.TestCase):
    def setUp(self):
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, lab.fabric("fattree2:16,8,4", "capture"))
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}})
        self.addCleanup(self.daemon.stop)

    def connect(self):
        caller = socket.socket(socket.AF_UNIX)
        self.addCleanup(caller.close)
        caller.settimeout(30 * lab.SLOW)
        caller.connect(os.path.join(self.daemon.rundir, "control.sock"))
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
        nobody = pwd.getpwnam("nobody")
        with subprocess.Popen([sys.executable, "-c", CONNECT, os.path.join(self.daemon.rundir, "control.sock")],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
                              user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[]) as readers:
            self.assertEqual(readers.stdout.readline(), "holding\n")
            self.assertTrue(self.daemon.refresh()["ok"])
            self.assertEqual(self.daemon.log().count("more are refused"), 1)
            readers.stdin.close()
        lab.wait_for(lambda: self.daemon.connections() == 0, what="the readers to be gone")

    @unittest.skipIf(os.environ.get("FABRICD_SANITIZE"), "a sanitizer keeps what was freed")
    def test_tools_that_come_and_go_cost_little(self):
        self.daemon.tool("register")
        before, tools = self.memory(), 60
        for _ in range(tools):
            self.assertEqual(self.daemon.tool("register").returncode, 0)
        self.assertLess((self.memory() - before) / tools, 20)  # KiB; what is left is the library's


if __name__ == "__main__":
    unittest.main()
