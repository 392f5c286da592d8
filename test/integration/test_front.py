"""The process that strangers meet: it can be killed, stopped and replaced, and nothing is lost by it."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

import hosts
import lab
import sessions
import stranger
import test_front_corpus


class Case(unittest.TestCase):
    config = {}

    def setUp(self):
        self.path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(self.path, lab.fabric("fattree2:2,1,2", "capture"))
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.path}", **self.config}})
        self.addCleanup(self.daemon.stop)

    def tool(self, *args):
        return self.daemon.tool(*args).stdout

    def is_stale(self):
        """As a program on the host is told over PMIx."""
        done = lab.run([lab.program("fabricctl"), "--uri", self.daemon.uri(), "--format", "json", "status"],
                       env=self.daemon.tool_env())
        return json.loads(done.stdout)["stale"]

    def front_status(self):
        return self.daemon.status()["front"]

    def replaced(self, times):
        """What status says once so many were replaced and the last one serves."""
        return self.daemon.replaced(times)


class Life(Case):
    def test_it_is_a_process_of_its_own(self):
        front = self.front_status()
        self.assertNotEqual(front["pid"], self.daemon.process.pid)
        self.assertEqual((front["replaced"], front["last"], front["why"], front["separated"]), (0, None, None, False))
        with open(f"/proc/{front['pid']}/status", encoding="ascii") as file:
            status = file.read()
        self.assertRegex(status, r"NoNewPrivs:\t1\n")
        self.assertRegex(status, r"Seccomp:\t2\n")
        self.assertEqual((front["filtered"], front["bounded"]), (True, not lab.SANITIZE))
        self.assertIn(f"process {front['pid']}, not separated, filtered, ", self.daemon.ctl("status").stdout)
        own = list(lab.descriptors(front["pid"]).values())
        self.assertFalse([path for path in own if "fabricd.db" in path or "lock" in path], own)

    def test_killed(self):
        uri, before = self.daemon.uri(), self.tool("register")
        os.kill(self.daemon.front(), signal.SIGKILL)
        front = self.replaced(1)
        self.assertEqual(front["why"], "front: the child died of signal 9 (Killed)")
        self.assertEqual(self.daemon.uri(), uri)
        self.assertEqual(self.tool("register"), before)
        self.assertIn("front: the child died of signal 9 (Killed); another one takes its place", self.daemon.log())
        self.assertIn("fabricd_front_replaced_total 1\n", self.daemon.ctl("metrics").stdout)
        self.assertRegex(self.daemon.ctl("status").stdout, r"front .*replaced once, last at .*signal 9")

    def test_killed_while_tools_are_connected(self):
        """What is left of their connections does not keep its port."""
        uri = self.daemon.uri()
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(stranger.tool(uri))
            os.kill(self.daemon.front(), signal.SIGKILL)
            self.replaced(1)
            self.assertIn("pmixfab.generation uint64 1\n", self.tool("register"))
        self.assertEqual((self.front_status()["replaced"], self.daemon.uri()), (1, uri))

    def test_one_that_hangs(self):
        before, pid = self.tool("register"), self.daemon.front()
        os.kill(pid, signal.SIGSTOP)
        front = self.replaced(1)
        self.assertEqual(front["why"], "front: it has not answered for 2 s, and was killed")
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertEqual(self.tool("register"), before)

    def test_one_that_cannot_serve(self):
        """It says why, and another one tries until it can."""
        before, folder = self.tool("register"), os.path.join(self.daemon.rundir, "pmix")
        shutil.rmtree(folder)
        with open(folder, "w", encoding="ascii"):
            os.kill(self.daemon.front(), signal.SIGKILL)
        self.daemon.logged("; another one takes its place", times=5)
        front = self.front_status()
        self.assertIsNone(front["pid"])
        self.assertIn(f"{folder}: ", front["why"])
        self.assertIn(f"{folder}: ", self.daemon.log())
        self.assertIn("NO FRONT", self.daemon.ctl("status").stdout)
        os.unlink(folder)
        self.replaced(5)
        self.assertEqual(self.tool("register"), before)

    def test_without_snapshots(self):
        """Somebody removed them: what serves goes on; the next front has them when the sweep has written them anew."""
        before = self.tool("register")
        os.unlink(os.path.join(self.daemon.rundir, "ib0.snap"))
        self.assertEqual(self.tool("register"), before)
        os.kill(self.daemon.front(), signal.SIGKILL)
        self.replaced(1)
        self.daemon.refresh()
        self.assertEqual(self.tool("register"), before)

    def test_stopped_while_it_begins(self):
        """When the front begins, when it serves, when fabricd does."""
        for moment in ("pmix", "control.sock", "fabricd.uri"):
            self.daemon.stop()
            self.daemon.start(wait=False)
            self.daemon.until_file(os.path.join(self.daemon.rundir, moment))
            self.assertIn(self.daemon.stop(), (0, 1), self.daemon.log())

    def test_it_ends_with_the_daemon(self):
        front = lab.Held(self.daemon.front())
        self.daemon.kill9()
        self.assertTrue(front.ended())
        self.daemon.start()
        pid = self.daemon.front()
        self.daemon.stop()
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.daemon.start()

    def test_a_change_while_there_is_none(self):
        """It is published, and the next front serves it."""
        pid = self.daemon.front()
        os.kill(pid, signal.SIGSTOP)
        lab.replace_file(self.path, lab.fabric("fattree2:2,1,3", "capture"))
        self.assertEqual(self.daemon.refresh()["generation"], 2)  # it does not wait for a front
        self.replaced(1)
        self.assertIn("pmixfab.generation uint64 2\n", self.tool("register"))

    @unittest.skipUnless(lab.ALL, "takes half a minute")
    def test_a_daemon_that_does_nothing_any_more(self):
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        self.daemon.process.send_signal(signal.SIGSTOP)
        lab.wait_for(self.is_stale, what="to be marked")
        self.daemon.process.send_signal(signal.SIGCONT)
        lab.wait_for(lambda: not self.is_stale(), what="the mark to go")
        self.assertEqual(self.front_status()["replaced"], 0)


class Names(Case):
    config = {"log": "debug"}

    def test_none_is_given_twice(self):
        """Whoever has a name of the front before must not be taken for somebody else's plane."""
        for turn in range(3):
            for _ in range(3):
                self.tool("register")
            os.kill(self.daemon.front(), signal.SIGKILL)
            self.replaced(turn + 1)
        self.tool("register")
        connected = re.compile(r"pmix: tool (\S+:\d+) connected")
        self.daemon.logged(connected, times=10)  # the front's lines come by way of the daemon
        names = connected.findall(self.daemon.log())
        self.assertEqual(len(set(names)), len(names))


class Separated(unittest.TestCase):
    """Started by root, where the user fabricd-front exists."""

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
            lab.replace_file(users, file.read() + f"fabricd-front:x:{self.UID}:{self.UID}::/nonexistent:/usr/sbin/nologin\n")
        host.do("mount", "--bind", users, "/etc/passwd")
        lab.replace_file(path, lab.fabric("fattree2:2,1,2", "capture"))
        daemon = hosts.Fabricd(host, config={"fabricd": {"probe": f"file:{path}"}}, directory=directory)
        self.addCleanup(daemon.stop)
        for turn in range(2):
            front = daemon.status()["front"]
            self.assertEqual((front["separated"], front["replaced"]), (True, turn))
            with open(f"/proc/{front['pid']}/status", encoding="ascii") as file:
                status = file.read()
            self.assertRegex(status, rf"(?m)^Uid:\t{self.UID}\t{self.UID}\t{self.UID}\t{self.UID}$")
            self.assertRegex(status, r"(?m)^Groups:\s*$")
            self.assertRegex(status, r"(?m)^CapPrm:\t0+$")
            done = host.run([lab.program("stock_tool"), daemon.uri(), "register"], env=daemon.tool_env())
            self.assertIn("pmixfab.generation uint64 1\n", done.stdout)
            self.assertRegex(daemon.ctl("status").stdout, r"(?m)^front +process \d+, separated, filtered, ")
            with self.assertRaises(OSError):
                self.knock(daemon)
            os.kill(front["pid"], signal.SIGKILL)
            daemon.replaced(turn + 1)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(sorted(os.listdir(daemon.rundir)), ["ib0.snap", "lock"])
        bounded, whole = [lab.find_command("setpriv"), "--bounding-set=-setuid"], daemon.command
        daemon.command = lambda *args: [*host.prefix(), *bounded, *whole(*args)[len(host.prefix()):]]
        daemon.start()
        self.assertFalse(daemon.status()["front"]["separated"])


class Calls(Case):
    """The process that holds the store has no socket that a stranger reaches."""

    def strangers(self):
        """Odd ones and good ones, until they have been answered."""
        with stranger.tool(self.daemon.uri()) as good:
            for name in sorted(os.listdir(test_front_corpus.CORPUS)):
                sessions.Player(self.daemon.uri()).play(sessions.read(os.path.join(test_front_corpus.CORPUS, name)))
                sessions.ping(good)
        self.assertIn("pmixfab.generation", self.tool("register"))

    def test_none_of_its_descriptors_is_a_strangers(self):
        def told(pid):
            """What its sockets are, as the kernel's tables tell: addresses, and paths."""
            inodes = {link[8:-1] for link in lab.descriptors(pid).values() if link.startswith("socket:")}
            found = []
            for table, column in (("tcp", 9), ("tcp6", 9), ("udp", 9), ("unix", 6)):
                with open(f"/proc/{pid}/net/{table}", encoding="utf-8", errors="replace") as file:
                    rows = [line.split() for line in file.readlines()[1:]]
                found += [(table, row[7] if table == "unix" and len(row) > 7 else "") for row in rows if row[column] in inodes]
            return found
        with stranger.tool(self.daemon.uri()):
            self.assertIn("tcp", {table for table, _ in told(self.daemon.front())})
            own = told(self.daemon.process.pid)
        self.assertEqual({table for table, _ in own}, {"unix"}, own)
        self.assertEqual({path for _, path in own}, {"", os.path.join(self.daemon.rundir, "control.sock")}, own)

    def test_none_of_its_calls_is_on_a_strangers(self):
        """Of fabricd itself, all its threads. The front is there already, and is not traced."""
        lab.require("strace")
        out = os.path.join(self.daemon.dir, "calls")
        tracer = lab.spawn(["strace", "-f", "-yy", "-s", "256", "-e", "trace=%network,read,readv,write,writev,close", "-o", out, "-p",
                            str(self.daemon.process.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = lab.Lines(tracer.stderr)
        try:
            said.wait("attached")
        except lab.LabError:
            self.skipTest(f"strace may not look: {said.text.strip()}")
        front = self.daemon.front()
        self.strangers()
        self.daemon.status()
        tracer.send_signal(signal.SIGINT)
        tracer.wait(lab.HUNG)
        self.assertEqual(self.daemon.front(), front)
        with open(out, encoding="utf-8", errors="replace") as file:
            calls = file.read()
        self.assertRegex(calls, r"accept4?\(\d+<UNIX-STREAM:\[\d+,\"[^\"]*/control\.sock\"\]>")  # it sees what there is,
        self.assertRegex(calls, r"(read|recvmsg|recvfrom|readv)\(\d+<UNIX-STREAM:\[\d+->\d+\]>")  # the channel's, too
        self.assertEqual(re.findall(r".*(?:TCP|UDP|AF_INET|NETLINK).*", calls), [])
        for call in re.findall(r".*\b(?:accept4?|bind|listen|connect)\(.*", calls):
            self.assertIn("control.sock", call)


if __name__ == "__main__":
    unittest.main()
