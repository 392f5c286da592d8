"""The program fabricd-pmix as a child of fabricd: it can be killed, stopped and replaced, and nothing is lost by it."""
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import unittest

import hosts
import lab
import stranger


class Case(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(self.path, lab.fabric("fattree2:2,1,2", "capture"))
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}", "log": "debug"}})
        self.addCleanup(self.daemon.stop)

    def tool(self, *args):
        return self.daemon.tool(*args).stdout

    def pmix_status(self):
        return self.daemon.status()["pmix"]

    def findings(self):
        return [one for one in self.daemon.control("check")["findings"] if one["kind"] == "pmix-replaced"]


class Life(Case):
    def test_before_it_is_lost(self):
        server = self.pmix_status()
        self.assertEqual((server["replaced"], server["last"], server["why"], server["separated"]), (0, None, None, False))
        self.assertEqual((server["filtered"], server["bounded"], server["guarded"]), (True, not lab.SANITIZE, True))
        self.assertIn(f"process {server['pid']}, not separated, filtered, ", self.daemon.ctl("status").stdout)
        self.assertEqual(self.findings(), [])

        def sockets(pid):
            """Of what kind they are, as the kernel's tables tell, and their paths."""
            inodes = {link[8:-1] for link in lab.descriptors(pid).values() if link.startswith("socket:")}
            found = []
            for table, column in (("tcp", 9), ("tcp6", 9), ("udp", 9), ("unix", 6)):
                with open(f"/proc/{pid}/net/{table}", encoding="utf-8", errors="replace") as file:
                    rows = [line.split() for line in file.readlines()[1:]]
                found += [(table, row[7] if table == "unix" and len(row) > 7 else "") for row in rows if row[column] in inodes]
            return set(found)
        with stranger.tool(self.daemon.uri()):  # the process that holds the store has no connection; the port it only keeps
            self.assertIn(("tcp", ""), sockets(server["pid"]))
            self.assertEqual(sockets(self.daemon.process.pid), {("unix", ""), ("unix", os.path.join(self.daemon.rundir, "control.sock")),
                                                                ("tcp", "")})
            inodes = [{path for path in lab.descriptors(pid).values() if path.startswith("socket:")}
                      for pid in (self.daemon.process.pid, server["pid"])]
            self.assertEqual(len(inodes[0] & inodes[1]), 1)
        own = list(lab.descriptors(server["pid"]).values())
        self.assertFalse([path for path in own if "fabricd.db" in path or "lock" in path], own)

    def test_killed(self):
        """While tools are connected: what is left of their connections does not keep its port."""
        uri, before = self.daemon.uri(), self.tool("register")
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(stranger.tool(uri))
            lab.wait_for(lambda: self.pmix_status()["connected"] == 20, what="all to be counted")
            self.assertIn("fabricd_pmix_connections 20\n", self.daemon.ctl("metrics").stdout)
            os.kill(self.daemon.pmix_pid(), signal.SIGKILL)
            server = self.daemon.replaced(1)
        self.assertEqual((server["why"], server["parted"], server["connected"]), ("pmix: the child was killed by signal 9 (Killed)", 20, 0))
        self.assertEqual((self.daemon.uri(), self.tool("register")), (uri, before))
        self.assertIn("pmix: the child was killed by signal 9 (Killed); another one replaces it", self.daemon.log())
        self.assertIn("fabricd_pmix_replaced_total 1\n", self.daemon.ctl("metrics").stdout)
        self.assertRegex(self.daemon.ctl("status").stdout, r"pmix .*replaced once, last at .*signal 9.*; 20 were connected to it")
        finding, = self.findings()
        self.assertEqual((finding["where"], finding["severity"]), ("pmix", "warning"))
        self.assertRegex(finding["what"], "^the child was killed by signal 9 \\(Killed\\) at .*; 1 since the start$")
        self.daemon.ctl("ack", "pmix-replaced")
        self.assertIsNotNone(self.findings()[0]["acked"])

        os.unlink(os.path.join(self.daemon.rundir, "ib0.snap"))  # somebody removed it: what serves goes on
        self.assertEqual(self.tool("register"), before)
        os.kill(self.daemon.pmix_pid(), signal.SIGKILL)
        self.daemon.replaced(2)
        self.assertIsNone(self.findings()[0]["acked"])  # that ends with the next
        self.daemon.refresh()  # the sweep writes it anew
        self.assertEqual(self.tool("register"), before)
        # No name is given twice: who has one of the server before must not be taken for somebody else's plane.
        connected = re.compile(r"pmix: tool (\S+:\d+) connected")
        self.daemon.logged(connected, times=20 + 4)  # the server's lines come by way of the daemon
        names = connected.findall(self.daemon.log())
        self.assertEqual(len(set(names)), len(names))

    def test_one_that_hangs(self):
        """A change meanwhile is published, and the next server serves it."""
        pid = self.daemon.pmix_pid()
        os.kill(pid, signal.SIGSTOP)
        lab.replace_file(self.path, lab.fabric("fattree2:2,1,3", "capture"))
        self.assertEqual(self.daemon.refresh()["generation"], 2)  # it does not wait for a server for long
        server = self.daemon.replaced(1)
        self.assertEqual(server["why"], "pmix: no answer for 2 s: killed")
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertIn("pmixfab.generation uint64 2\n", self.tool("register"))

    def test_one_that_cannot_serve(self):
        """It says why, and another one tries until it can."""
        before, folder = self.tool("register"), os.path.join(self.daemon.rundir, "pmix")
        shutil.rmtree(folder)
        with open(folder, "w", encoding="ascii"):
            os.kill(self.daemon.pmix_pid(), signal.SIGKILL)
        self.daemon.logged("; another one replaces it", times=5)
        server = self.pmix_status()
        self.assertIsNone(server["pid"])
        self.assertIn(f"{folder}: ", server["why"])
        self.assertIn(f"{folder}: ", self.daemon.log())
        self.assertIn("NO PMIX", self.daemon.ctl("status").stdout)
        os.unlink(folder)
        self.daemon.replaced(5)
        self.assertEqual(self.tool("register"), before)

    def test_it_ends_with_the_daemon(self):
        """Which is stopped when the server begins, when it serves, when fabricd does."""
        for moment in ("pmix", "fabricd.uri", "control.sock"):
            self.daemon.stop()
            self.daemon.start(wait=False)
            self.daemon.until_file(os.path.join(self.daemon.rundir, moment))
            self.assertIn(self.daemon.stop(), (0, 1), self.daemon.log())
        self.daemon.start()
        pid = self.daemon.pmix_pid()
        self.daemon.stop()
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.daemon.start()
        self.daemon.kill9()  # which waits for the end of the server

    @unittest.skipUnless(lab.ALL, "takes half a minute")
    def test_a_daemon_that_does_nothing_any_more(self):
        def is_stale():
            """As a program on the host is told over PMIx."""
            done = lab.run([lab.program("fabricctl"), "--uri", self.daemon.uri(), "--format", "json", "status"],
                           env=self.daemon.tool_env())
            return json.loads(done.stdout)["stale"]
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        self.daemon.process.send_signal(signal.SIGSTOP)
        lab.wait_for(is_stale, what="to be marked")
        self.daemon.process.send_signal(signal.SIGCONT)
        lab.wait_for(lambda: not is_stale(), what="the mark to go")
        self.assertEqual(self.pmix_status()["replaced"], 0)


@unittest.skipIf(lab.SANITIZE, "where nothing is optimised, the library's inline functions stay, with what they call")
class Linked(unittest.TestCase):
    def test_fabricd_has_no_libpmix(self):
        """In neither role: a fault of the library, and what it loads, cost no more than fabricd-pmix."""
        needed = {name: lab.run(["ldd", lab.program(name)]).stdout for name in ("fabricd", "fabricd-pmix")}
        self.assertNotIn("libpmix", needed["fabricd"])
        self.assertIn("libpmix", needed["fabricd-pmix"])


class Separated(unittest.TestCase):
    """Started by root, where the user fabricd-pmix exists."""

    UID = 64123

    def knock(self, daemon):
        """What the control socket answers to that user."""
        code = ("import os, socket, sys; os.setresuid(*[int(sys.argv[2])] * 3); s = socket.socket(socket.AF_UNIX); "
                "s.connect(sys.argv[1]); s.sendall(b'{\"op\": \"status\"}\\n'); print(s.recv(10).decode())")
        done = lab.run([sys.executable, "-c", code, os.path.join(daemon.rundir, "control.sock"), str(self.UID)])
        if not done.stdout.strip():
            raise OSError(done.stderr)
        return done.stdout

    def test_it_is_of_that_user(self):
        hosts.need()
        host = hosts.Host("head")
        self.addCleanup(host.stop)
        directory = lab.tmpdir()
        os.chmod(directory, 0o755)
        users, path = os.path.join(directory, "passwd"), os.path.join(directory, "fabric.txt")
        with open("/etc/passwd", encoding="utf-8") as file:
            lab.replace_file(users, file.read() + f"fabricd-pmix:x:{self.UID}:{self.UID}::/nonexistent:/usr/sbin/nologin\n")
        host.do("mount", "--bind", users, "/etc/passwd")
        lab.replace_file(path, lab.fabric("fattree2:2,1,2", "capture"))
        daemon = hosts.Fabricd(host, config={"fabricd": {"probe": f"file:{path}"}}, directory=directory)
        self.addCleanup(daemon.stop)
        for turn in range(2):
            server = daemon.status()["pmix"]
            self.assertEqual((server["separated"], server["replaced"]), (True, turn))
            with open(f"/proc/{server['pid']}/status", encoding="ascii") as file:
                status = file.read()
            self.assertRegex(status, rf"(?m)^Uid:\t{self.UID}\t{self.UID}\t{self.UID}\t{self.UID}$")
            self.assertRegex(status, r"(?m)^Groups:\s*$")
            self.assertRegex(status, r"(?m)^CapPrm:\t0+$")
            done = host.run([lab.program("stock_tool"), daemon.uri(), "register"], env=daemon.tool_env())
            self.assertIn("pmixfab.generation uint64 1\n", done.stdout)
            self.assertRegex(daemon.ctl("status").stdout, r"(?m)^pmix +process \d+, separated, filtered, ")
            with self.assertRaises(OSError):
                self.knock(daemon)
            os.kill(server["pid"], signal.SIGKILL)
            daemon.replaced(turn + 1)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(sorted(os.listdir(daemon.rundir)), ["ib0.snap", "lock"])
        bounded, whole = [lab.find_command("setpriv"), "--bounding-set=-setuid"], daemon.command
        daemon.command = lambda *args: [*host.prefix(), *bounded, *whole(*args)[len(host.prefix()):]]
        daemon.start()
        self.assertFalse(daemon.status()["pmix"]["separated"])


if __name__ == "__main__":
    unittest.main()
