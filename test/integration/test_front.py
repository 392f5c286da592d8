"""The process that strangers meet: it can be killed, stopped and replaced, and nothing is lost by it."""
import contextlib
import json
import os
import re
import shutil
import signal
import struct
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

    def front_status(self):
        return self.daemon.status()["front"]

    def findings(self):
        return [one for one in self.daemon.control("check")["findings"] if one["kind"] == "front-replaced"]


class Life(Case):
    def test_before_it_is_lost(self):
        front = self.front_status()
        self.assertEqual((front["replaced"], front["last"], front["why"], front["separated"]), (0, None, None, False))
        self.assertEqual((front["filtered"], front["bounded"]), (True, not lab.SANITIZE))
        self.assertIn(f"process {front['pid']}, not separated, filtered, ", self.daemon.ctl("status").stdout)
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
        with stranger.tool(self.daemon.uri()):  # the process that holds the store has no socket that a stranger reaches
            self.assertIn(("tcp", ""), sockets(front["pid"]))
            self.assertEqual(sockets(self.daemon.process.pid), {("unix", ""), ("unix", os.path.join(self.daemon.rundir, "control.sock"))})
        own = list(lab.descriptors(front["pid"]).values())
        self.assertFalse([path for path in own if "fabricd.db" in path or "lock" in path], own)

    def test_killed(self):
        """While tools are connected: what is left of their connections does not keep its port."""
        uri, before = self.daemon.uri(), self.tool("register")
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(stranger.tool(uri))
            lab.wait_for(lambda: self.front_status()["connected"] == 20, what="all to be counted")
            self.assertIn("fabricd_front_connections 20\n", self.daemon.ctl("metrics").stdout)
            os.kill(self.daemon.front(), signal.SIGKILL)
            front = self.daemon.replaced(1)
        self.assertEqual((front["why"], front["parted"], front["connected"]), ("front: the child died of signal 9 (Killed)", 20, 0))
        self.assertEqual((self.daemon.uri(), self.tool("register")), (uri, before))
        self.assertIn("front: the child died of signal 9 (Killed); another one takes its place", self.daemon.log())
        self.assertIn("fabricd_front_replaced_total 1\n", self.daemon.ctl("metrics").stdout)
        self.assertRegex(self.daemon.ctl("status").stdout, r"front .*replaced once, last at .*signal 9.*; 20 were connected to it")
        finding, = self.findings()
        self.assertEqual((finding["where"], finding["severity"]), ("front", "warning"))
        self.assertRegex(finding["what"], "^the child died of signal 9 \\(Killed\\) at .*; 1 since the start$")
        self.daemon.ctl("ack", "front-replaced")
        self.assertIsNotNone(self.findings()[0]["acked"])

        os.unlink(os.path.join(self.daemon.rundir, "ib0.snap"))  # somebody removed it: what serves goes on
        self.assertEqual(self.tool("register"), before)
        os.kill(self.daemon.front(), signal.SIGKILL)
        self.daemon.replaced(2)
        self.assertIsNone(self.findings()[0]["acked"])  # that ends with the next
        self.daemon.refresh()  # the sweep writes it anew
        self.assertEqual(self.tool("register"), before)
        # No name is given twice: who has one of the front before must not be taken for somebody else's plane.
        connected = re.compile(r"pmix: tool (\S+:\d+) connected")
        self.daemon.logged(connected, times=20 + 4)  # the front's lines come by way of the daemon
        names = connected.findall(self.daemon.log())
        self.assertEqual(len(set(names)), len(names))

    def test_one_that_hangs(self):
        """A change meanwhile is published, and the next front serves it."""
        pid = self.daemon.front()
        os.kill(pid, signal.SIGSTOP)
        lab.replace_file(self.path, lab.fabric("fattree2:2,1,3", "capture"))
        self.assertEqual(self.daemon.refresh()["generation"], 2)  # it does not wait for a front
        front = self.daemon.replaced(1)
        self.assertEqual(front["why"], "front: it has not answered for 2 s, and was killed")
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertIn("pmixfab.generation uint64 2\n", self.tool("register"))

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
        self.daemon.replaced(5)
        self.assertEqual(self.tool("register"), before)

    def test_it_ends_with_the_daemon(self):
        """Which is stopped when the front begins, when it serves, when fabricd does."""
        for moment in ("pmix", "control.sock", "fabricd.uri"):
            self.daemon.stop()
            self.daemon.start(wait=False)
            self.daemon.until_file(os.path.join(self.daemon.rundir, moment))
            self.assertIn(self.daemon.stop(), (0, 1), self.daemon.log())
        self.daemon.start()
        pid = self.daemon.front()
        self.daemon.stop()
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.daemon.start()
        self.daemon.kill9()  # which waits for the end of the front

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
        self.assertEqual(self.front_status()["replaced"], 0)


@unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
class Refused(Case):
    """On whose message a front was lost is noted in a page that it shares with fabricd; he is refused for a while."""

    STRANGER = 65534

    def page(self):
        """What a front says there: noted, local, uid, and an address in four words."""
        folder = f"/proc/{self.daemon.process.pid}/fd"
        pages = [fd for fd, path in lab.descriptors(self.daemon.process.pid).items() if path.startswith("/memfd:fabricd-front")]
        self.assertEqual(len(pages), 1)
        return open(f"{folder}/{pages[0]}", "r+b", buffering=0)

    def lose(self, *words):
        """The front is lost with that in its note, as if it were taken over; what status says when there is another one.

        It is stopped first: else it may end the message of the caller before, and with it what is noted."""
        times = self.front_status()["replaced"] + 1
        pid = self.daemon.front()
        front = lab.Held(pid)
        lab.freeze(pid)
        with self.page() as page:
            page.write(struct.pack("=7I", *words, *[0] * (7 - len(words))))
        front.signal(signal.SIGKILL)
        return self.daemon.replaced(times)

    def is_served(self):
        code = (f"import os, sys\nos.setuid({self.STRANGER})\nimport stranger\n"
                "try:\n    with stranger.tool(sys.argv[1]) as channel:\n        print('served')\n"
                "except (EOFError, OSError):\n    print('refused')\n")
        done = lab.run(["/usr/bin/python3", "-c", code, self.daemon.uri()], cwd=lab.HERE)
        return {"served\n": True, "refused\n": False}[done.stdout]

    def test_for_a_while(self):
        """By the next fronts, too. Nobody else feels it. (The end of it: test_note.c, test_mca_connections.c.)"""
        self.assertTrue(self.is_served())
        front = self.lose(1, 1, self.STRANGER)
        self.assertEqual(front["origin"], f"uid {self.STRANGER}")
        self.assertEqual([one["origin"] for one in front["refused"]], [f"uid {self.STRANGER}"])
        self.assertIn(f"on a message of uid {self.STRANGER}, who is refused for 10 s; another one", self.daemon.log())
        self.assertIn("fabricd_front_refused 1\n", self.daemon.ctl("metrics").stdout)
        self.assertRegex(self.daemon.ctl("status").stdout, rf"REFUSED +uid {self.STRANGER}, for \d+ s more\n")
        self.assertIsNone(self.lose(0)["origin"])
        self.assertFalse(self.is_served())
        self.assertIn("pmixfab.generation", self.tool("register"))

    def test_on_whose_message(self):
        """The front notes it itself."""
        code = (f"import os, sys\nos.setuid({self.STRANGER})\nimport stranger as s, threading\n"
                "question = s.item(bytes([s.QUERY])) + s.query('pmix.fab.devs', *[s.info('k', s.STRING, s.text('v'))] * 3000)\n"
                "channel = s.tool(sys.argv[1])\ndef ask():\n    while True:\n        channel.post(question)\n"
                "threading.Thread(target=ask, daemon=True).start()\nchannel.answer()\nprint('asking', flush=True)\n"
                "while True:\n    channel.answer()\n")
        flood = lab.Watch(["/usr/bin/python3", "-c", code, self.daemon.uri()], cwd=lab.HERE)
        self.addCleanup(flood.stop)
        flood.wait("asking")
        pid = self.daemon.front()
        front, noted = lab.Held(pid), 0
        while not noted:  # it is stopped until that is in the middle of a message
            front.signal(signal.SIGCONT)
            lab.freeze(pid)
            with self.page() as page:
                noted, = struct.unpack("=I", page.read(4))
        front.signal(signal.SIGKILL)
        self.assertEqual(self.daemon.replaced(1)["origin"], f"uid {self.STRANGER}")

    def test_lies(self):
        """A front that was taken over locks nobody out who matters."""
        for words in ((1, 1, 0), (2, 77, 0, 1, 2, 3)):
            self.assertEqual(self.lose(*words)["refused"], [], words)
        front = self.lose(1, 0, 0, 0, 0, 0xffff0000, 0x0200000a)
        self.assertEqual([one["origin"] for one in front["refused"]], ["10.0.0.2"])
        self.assertIn("pmixfab.generation", self.tool("register"))


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


if __name__ == "__main__":
    unittest.main()
