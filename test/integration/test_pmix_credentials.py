"""Credentials and names are asked for by a process of its own: a munged that hangs costs those who wait for it, and nobody
else."""
import os
import signal
import threading
import unittest

import hosts
import lab

SCHEDULER, NODE = "10.91.1.1", "10.91.1.2"
CROWD = 800
# Who knocks with credentials that he was given, one after the other: how each was answered.
KNOCK = """
import sys, stranger
for made in sys.argv[2:]:
    with stranger.knock(sys.argv[1], stranger.first(psec="munge", cred=made.encode().decode("unicode_escape").encode())) as channel:
        try:
            answer = "served" if channel.handshake() == 0 else "refused"
        except EOFError:
            answer = "refused"
        print(answer, flush=True)
"""
# All of them knock before the first is answered: how many are served?
CROWD_AT_ONCE = """
import sys, stranger
crowd = [stranger.knock(sys.argv[1], stranger.first(psec="munge", cred=made.encode() + b"\\0")) for made in sys.argv[2:]]
print(sum(channel.handshake() == 0 for channel in crowd))
"""
# A name server that never answers.
SILENT = """
import socket, sys
taking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taking.bind((sys.argv[1], 53))
print("listens")
while taking.recv(4096):
    print("asked")
"""


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hosts.need()
        cls.here, cls.there = hosts.Host("scheduler"), hosts.Host("node")
        for host in (cls.here, cls.there):
            cls.addClassCleanup(host.stop)
        cls.here.cable(cls.there, SCHEDULER, NODE)
        cls.munged = []
        for host, address in ((cls.here, SCHEDULER), (cls.there, NODE)):
            host.knows({"scheduler": SCHEDULER, "node": NODE})
            munged = hosts.Munged(host, address, cls.munged[0] if cls.munged else None)
            cls.addClassCleanup(munged.stop)
            munged.show_on(host)
            cls.munged.append(munged)
        cls.capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(cls.capture, lab.fabric("fattree2:2,1,2", "capture"))

    def setUp(self):
        self.daemon = hosts.Fabricd(self.here, config={"fabricd": {"probe": f"file:{self.capture}", "host": "scheduler"},
                                                       "security": {"remote": "yes"}})
        self.addCleanup(self.end)

    def end(self):
        self.assertEqual(self.daemon.stop(), 0, self.daemon.log())
        self.assertNotIn("Sanitizer", self.daemon.log())

    def register(self):
        """A new tool on the other host: is it served?"""
        done = lab.run([*self.there.prefix(), lab.program("stock_tool"), self.daemon.uri(), "register"],
                       env=self.daemon.tool_env(), cwd="/")
        return done.returncode == 0 and "pmixfab.generation" in done.stdout

    def credential(self):
        return self.there.do("munge", "-n").strip() + r"\0"

    def answers(self, *credentials):
        """How new connections with these credentials are answered."""
        done = lab.run([*self.there.prefix(), "/usr/bin/python3", "-c", KNOCK, self.daemon.uri(), *credentials],
                       env={**os.environ, "PYTHONPATH": lab.HERE}, cwd="/")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def hang(self):
        munged = self.munged[0].process
        munged.send_signal(signal.SIGSTOP)
        self.addCleanup(munged.send_signal, signal.SIGCONT)
        return munged


class Credentials(Case):
    def test_who_is_served(self):
        """Each opens once, for who made it; what is none opens nothing. A munged that was killed leaves its socket; the next one
        is asked."""
        made, good = self.credential(), self.credential()
        self.assertEqual(self.answers(made, made), ["served", "refused"])
        self.assertEqual(self.answers("", r"\0", "MUNGE:", r"MUNGE:\0", good[:-2], r"a\0" + good, "x" * 5000 + r"\0",
                                      good.replace("A", "B") if "A" in good[10:] else good[:20] + r"=\0", good),
                         ["refused"] * 8 + ["served"])
        others = self.there.do("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "munge", "-n").strip() + r"\0"
        self.assertEqual(self.answers(others), ["refused"])
        made = self.credential()
        self.munged[0].stop()
        self.assertEqual(self.answers(made), ["refused"])
        munged = hosts.Munged(self.here, SCHEDULER, self.munged[1])
        self.addClassCleanup(munged.stop)
        munged.show_on(self.here)
        self.munged[0] = munged
        self.assertTrue(self.register())

    def test_a_crowd_at_once(self):
        """As many nodes that start."""
        made = self.there.do("sh", "-c", f"for i in $(seq {CROWD}); do munge -n; done").split()
        done = lab.run([*self.there.prefix(), "/usr/bin/python3", "-c", CROWD_AT_ONCE, self.daemon.uri(), *made], cwd="/",
                       env={**os.environ, "PYTHONPATH": lab.HERE})
        self.assertEqual(done.stdout, f"{CROWD}\n", done.stderr)


class Hangs(Case):
    def test_munged(self):
        """Connected tools are answered as ever while a new one waits for its refusal, which is served when munged goes on."""
        tool = lab.Watch([*self.there.prefix(), lab.program("stock_load"), self.daemon.uri()], self.daemon.tool_env(), talk=True, cwd="/")
        self.addCleanup(tool.stop)
        tool.wait("ready")
        server = self.daemon.pmix_pid()
        munged = self.munged[0].process
        munged.send_signal(signal.SIGSTOP)
        self.addCleanup(munged.send_signal, signal.SIGCONT)
        refused = []
        knock = threading.Thread(target=lambda: refused.extend(self.answers(self.credential())))
        knock.start()
        errors = {tool.say("rounds 20", r"errors (\d+)([ .\d]*)\n").group(1) for _ in iter(knock.is_alive, False)}
        knock.join()
        self.assertEqual((refused, errors), (["refused"], {"0"}))
        lost = lab.Held(self.daemon.pmix_pid())
        lost.signal(signal.SIGKILL)  # the next one does not ask munged when it begins
        self.daemon.replaced(1)
        munged.send_signal(signal.SIGCONT)
        self.assertTrue(self.register())
        self.assertNotEqual(self.daemon.pmix_pid(), server)
        munged.send_signal(signal.SIGSTOP)
        knock = lab.Watch([*self.there.prefix(), lab.program("stock_tool"), self.daemon.uri(), "register"], self.daemon.tool_env(),
                          cwd="/")
        self.addCleanup(knock.stop)
        self.assertEqual(self.daemon.stop(), 0)  # while munged still hangs
        self.daemon.start()  # it does not wait for munged either


class NameServer(Case):
    """One that takes questions and says nothing."""

    def setUp(self):
        folder = lab.tmpdir()
        for name, text in (("resolv.conf", f"nameserver {NODE}\noptions timeout:30\n"), ("nsswitch.conf", "hosts: files dns\n")):
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(text)
            self.here.do("mount", "--bind", os.path.join(folder, name), os.path.join("/etc", name))
            self.addCleanup(self.here.do, "umount", os.path.join("/etc", name))
        self.server = lab.Watch([*self.there.prefix(), "/usr/bin/python3", "-uc", SILENT, NODE])
        self.addCleanup(self.server.stop)
        self.server.wait("listens")
        super().setUp()

    def test_it_hangs(self):
        """The delivery hears that it cannot be believed yet; who connects meanwhile does not wait for that."""
        delivery = lab.Watch([*self.there.prefix(), lab.program("deliver"), f"{SCHEDULER}:7135", "host=nowhere"],
                             self.daemon.tool_env(), cwd="/")
        self.addCleanup(delivery.stop)
        self.server.wait("asked")
        self.assertEqual(self.answers(*[self.credential() for _ in range(8)]), ["served"] * 8)  # the name server is silent still
        self.assertEqual(delivery.wait(r"(?m)^(-?\d+) \d+ nowhere: .*cannot resolve this name now").group(1), "-13")
        self.assertTrue(self.register())


if __name__ == "__main__":
    unittest.main()
