"""What nodes deliver in credentials of a real munge: taken from whom it concerns, refused from everybody else with a reason that both sides
see. test/sim/test_ingest.py and unit.ingest_auth have the rest."""
import os
import re
import unittest

import hosts
import lab

SCHEDULER, NODE, OTHER = "10.91.1.1", "10.91.1.2", "10.91.1.3"
# Names of the node: a host that delivers too often in one test is another one in the next.
NAMES = [f"node{i}" for i in range(1, 30)]
OK, CONFLICT, RANGE, FOREIGN, BUSY, PERM, UNREACH = 0, -6, -7, -9, -13, -14, -16


def deliver(daemon, host, *specs, at=SCHEDULER):
    """The answers to deliveries from a host: [(code, digest, reason)]."""
    done = lab.run([*host.prefix(), lab.program("deliver"), f"{at}:7135", *specs], env=daemon.tool_env(), cwd="/",
                   timeout=120)
    if done.returncode != 0:
        raise lab.LabError(f"deliver {specs}: {done.returncode}: {done.stdout}{done.stderr}\n{daemon.log()[-2000:]}")
    answers = re.findall(r"^(-?\d+) ([0-9a-f]+) (.*)$", done.stdout, re.MULTILINE)
    return [(int(code), int(digest, 16), reason) for code, digest, reason in answers]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hosts.need()
        cls.here, cls.there = hosts.Host("scheduler"), hosts.Host("node")
        cls.munged = []
        for host, address in ((cls.here, SCHEDULER), (cls.there, NODE)):
            cls.addClassCleanup(host.stop)
            if host is cls.there:
                cls.here.cable(cls.there, SCHEDULER, NODE)
            host.knows({"scheduler": SCHEDULER, "other": OTHER, **{name: NODE for name in NAMES}})
        for host, address in ((cls.here, SCHEDULER), (cls.there, NODE)):
            munged = hosts.Munged(host, address, cls.munged[0] if cls.munged else None)
            cls.addClassCleanup(munged.stop)
            munged.show_on(host)
            cls.munged.append(munged)
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,2", "capture"))
        cls.daemon = hosts.Fabricd(cls.here, config={"fabricd": {"probe": f"file:{capture}", "host": "scheduler"},
                                                     "nodes": {"user": "daemon", "debounce_ms": 1000},
                                                     "security": {"remote": "yes"}})
        cls.addClassCleanup(cls.end)
        cls.names = list(NAMES)

    @classmethod
    def end(cls):
        status = cls.daemon.stop()
        if status != 0 or "Sanitizer" in cls.daemon.log():
            raise lab.LabError(f"fabricd ended with {status}:\n{cls.daemon.log()[-5000:]}")

    def setUp(self):
        self.name = self.names.pop()  # another host for each test

    def deliver(self, *specs, host=None):
        return deliver(self.daemon, host or self.there, *(spec.replace("NODE", self.name) for spec in specs))

    def must_refuse(self, spec, code, reason, host=None):
        """The last answer to it is this refusal, and the log says the same."""
        code_got, held, text = self.deliver(spec, host=host)[-1]
        self.assertEqual(code_got, code, text)
        self.assertRegex(text, reason)
        if code != CONFLICT:  # that is how it goes on, and no fault
            self.daemon.logged(re.compile(rf"warning: (intake: refused|nodes: [\d.]+( \S+)?): {re.escape(text)}"))
        self.daemon.check_alive()
        return held

    def held(self, name):
        done = lab.run([*self.there.prefix(), lab.program("deliver"), f"{SCHEDULER}:7135", "orders", name, "1"],
                       env=self.daemon.tool_env(), cwd="/")
        return int(done.stdout.split()[0], 16)


class Intake(Case):
    # -- taken

    def test_good_ones_are_kept(self):
        answers = self.deliver("host=NODE,ports=2", "host=NODE,ports=2", "host=NODE,before=2,ports=3")
        self.assertEqual([answer[0::2] for answer in answers], [(OK, "")] * 3)
        self.assertEqual(answers[0], answers[1])
        self.assertNotEqual(answers[1][1], answers[2][1])
        self.daemon.kill9()  # what was acknowledged is there
        self.daemon.start()
        self.assertEqual(self.held(self.name), answers[2][1])
        self.assertEqual(self.deliver("host=NODE,before=3,ports=2"), [answers[0]])
        self.assertEqual(self.must_refuse("host=NODE,before=3,ports=2", CONFLICT, "send the whole report"), answers[0][1])

    # -- refused

    def refused_and_kept(self, spec, code, reason):
        """Refused, and the last good one stays."""
        good = self.deliver("host=NODE,ports=2")[0]
        self.assertEqual(good[0], OK, good)
        self.must_refuse(spec, code, reason)
        self.assertEqual(self.held(self.name), good[1])

    def test_another_host(self):
        self.must_refuse("host=other", PERM, rf"^other: uid 0 on {NODE} may not report for this host, which is {OTHER}: ")
        self.assertEqual(self.held("other"), 0)
        self.assertEqual(self.deliver("host=scheduler", host=self.here)[0][0::2], (OK, ""))  # the scheduler's own
        self.must_refuse("host=scheduler,uid=1", PERM, rf"^scheduler: uid 1 on {NODE} may not report for this host, ")
        # Here no name server answers, so that it may be known to one.
        self.must_refuse("host=nowhere", BUSY, rf"^nowhere: .*cannot resolve this name now .*uid 0 on {NODE}")

    def test_refused(self):
        for spec, code, reason in (
                ("host=NODE,uid=65534", PERM, rf"^{self.name}: uid 65534 on {NODE} may not report for a host: only root and daemon may$"),
                ("host=NODE,ports=5,ttl=1,late=1", PERM, rf"uid 0 on {NODE} has expired: check that the clocks"),
                ("host=NODE,ports=5,alter=1", PERM, "it was altered, or made with another key"),
                ("host=NODE,ports=5,change=1", PERM, rf"the credential of uid 0 on {NODE} seals other content$"),
                ("host=NODE,ports=5,other=1", PERM, rf"uid 0 on {NODE} seals another message, or one of another connection$")):
            self.refused_and_kept(spec, code, reason)
        for spec, code, reason in (
                ("text=hello", FOREIGN, rf"the credential of uid 0 on {NODE} contains no delivery: "),
                ("raw=100", PERM, "munged rejects the credential"),
                ("raw=600000", RANGE, "a credential of 600000 bytes: at most 4096 are accepted"),
                ("host=NODE,hello=65534", PERM, rf"^{self.name}: uid 65534 on {NODE} may not report for a host: only root and daemon may$"),
                ("host=NODE,again=1", PERM, "a message whose number was used before"),
                ("host=NODE,twice=1", PERM, rf"uid 0 on {NODE} was used before")):
            self.must_refuse(spec, code, reason)

    def test_another_key(self):
        stranger = hosts.Host("stranger", network=self.there)
        self.addCleanup(stranger.stop)
        munged = hosts.Munged(stranger, NODE)
        self.addCleanup(munged.stop)
        munged.show_on(stranger)
        self.must_refuse("host=NODE", PERM, "it was altered, or made with another key", host=stranger)  # its first message
        # What it made is brought by another.
        made = stranger.do("sh", "-c", "echo hello | munge").strip()
        self.must_refuse(f"made={made}", PERM, "it was altered, or made with another key")
        made = self.there.do("sh", "-c", "echo hello | munge").strip()
        self.must_refuse(f"made={made}", FOREIGN, "does not seal a message of fabricd")

    def test_a_credential_without_origin(self):
        bare = hosts.Host("bare", network=self.there)
        self.addCleanup(bare.stop)
        munged = hosts.Munged(bare, "127.0.0.1", self.munged[0])
        self.addCleanup(munged.stop)
        munged.show_on(bare)
        bare.knows({"scheduler": SCHEDULER})
        for name in (self.name, "scheduler"):
            self.must_refuse(f"host={name}", PERM, rf"^{name}: .*127\.0\.0\.1.*--origin", host=bare)



class Strangers(Case):
    """Who has not shown who he is holds nobody up."""

    def connect(self, said=b""):
        """A connection from the node's host, by a program that may be anybody's."""
        code = f"""import socket, sys
all = [socket.create_connection(("{SCHEDULER}", 7135)) for _ in range(int(sys.argv[1]))]
for one in all:
    one.sendall({said!r})
print("connected", flush=True)
print(all[-1].recv(1), flush=True)
"""
        watch = lab.Watch([*self.there.prefix(), "/usr/bin/python3", "-c", code, "40"], dict(os.environ))
        self.addCleanup(watch.stop)
        watch.wait("connected")
        return watch

    def test_silent_ones(self):
        self.connect()
        self.daemon.logged(f"nodes: {NODE}: more than 16 connections of this address have no valid credential: one is closed")
        self.assertEqual(self.deliver("host=NODE")[0][0], OK)
        self.assertLessEqual(self.daemon.status()["channel"]["unproven"], 16)

    def test_other_protocols(self):
        for said, why in ((b"GET / HTTP/1.1\r\n\r\n", "it speaks another protocol, which begins with \"GET / HTTP/1.1"),
                          (b"\xff" * 24, "it speaks PMIx: a PMIx tool connects to the address in fabricd.uri, and a node of an older fabricd")):
            self.connect(said).wait(re.escape("b''"))
            self.daemon.logged(f"nodes: {NODE}: {why}")
        self.assertEqual(self.deliver("host=NODE")[0][0], OK)


class WithoutMunge(unittest.TestCase):
    def test_it_is_said(self):
        hosts.need()
        host = hosts.Host("bare")
        self.addCleanup(host.stop)
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,2", "capture"))
        daemon = hosts.Fabricd(host, config={"fabricd": {"probe": f"file:{capture}"}, "nodes": {"listen": "127.0.0.1"}})
        self.addCleanup(daemon.stop)
        code, held, reason = deliver(daemon, host, "raw=100", at="127.0.0.1")[0]
        self.assertEqual((code, held), (UNREACH, 0))
        self.assertRegex(reason, "^no munged answers on the scheduler's host")


if __name__ == "__main__":
    unittest.main()
