"""What nodes deliver in credentials of a real munge: taken from whom it concerns, refused from everybody else with a reason that both sides
see. test/sim/test_ingest.py and unit.ingest_auth have the rest."""
import os
import re
import signal
import unittest

import hosts
import lab

SCHEDULER, NODE, OTHER = "10.91.1.1", "10.91.1.2", "10.91.1.3"
# Names of the node: a host that delivers too often in one test is another one in the next.
NAMES = [f"node{i}" for i in range(1, 30)]
OK, CONFLICT, RANGE, FOREIGN, BUSY, PERM, UNREACH = 0, -6, -7, -9, -13, -14, -16


def deliver(daemon, host, *specs):
    """The answers to deliveries from a host: [(code, digest, reason)]."""
    done = lab.run([*host.prefix(), lab.program("deliver"), daemon.uri(), *specs], env=daemon.tool_env(), cwd="/",
                   timeout=120)
    if done.returncode != 0:
        raise lab.LabError(f"deliver {specs}: {done.returncode}: {done.stdout}{done.stderr}\n{daemon.log()[-2000:]}")
    answers = re.findall(r"^(-?\d+) ([0-9a-f]+) (.*)$", done.stdout, re.MULTILINE)
    return [(int(code), int(digest, 16), reason) for code, digest, reason in answers]


class Intake(unittest.TestCase):
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
            self.daemon.logged(f"warning: intake: refused: {text}\n")
        self.daemon.check_alive()
        return held

    def held(self, name):
        done = lab.run([*self.there.prefix(), lab.program("deliver"), self.daemon.uri(), "orders", name, "1"],
                       env=self.daemon.tool_env(), cwd="/")
        return int(done.stdout.split()[0], 16)

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
        self.assertEqual(self.must_refuse("host=NODE,before=3,ports=2", CONFLICT, "the whole is needed"), answers[0][1])

    # -- refused

    def refused_and_kept(self, spec, code, reason):
        """Refused, and the last good one stays."""
        good = self.deliver("host=NODE,ports=2")[0]
        self.assertEqual(good[0], OK, good)
        self.must_refuse(spec, code, reason)
        self.assertEqual(self.held(self.name), good[1])

    def test_another_host(self):
        self.must_refuse("host=other", PERM, rf"^other: uid 0 on {NODE} may not describe this host, which is {OTHER}: ")
        self.assertEqual(self.held("other"), 0)
        self.assertEqual(self.deliver("host=scheduler", host=self.here)[0][0::2], (OK, ""))  # the scheduler's own
        self.must_refuse("host=scheduler,uid=1", PERM, rf"^scheduler: uid 1 on {NODE} may not describe this host, ")
        # Here no name server answers, so that it may be known to one.
        self.must_refuse("host=nowhere", BUSY, rf"^nowhere: .*cannot resolve this name now .*uid 0 on {NODE}")

    def test_refused(self):
        for spec, code, reason in (
                ("host=NODE,uid=65534", PERM, rf"^{self.name}: uid 65534 on {NODE} may not describe a host: that is for root and daemon$"),
                ("host=NODE,ports=5,ttl=1,late=1", PERM, rf"uid 0 on {NODE} has expired: are the clocks"),
                ("host=NODE,ports=5,alter=1", PERM, "it was altered, or made with another key")):
            self.refused_and_kept(spec, code, reason)
        for spec, code, reason in (
                ("text=hello", FOREIGN, rf"the credential of uid 0 on {NODE} holds no delivery: "),
                ("raw=100", PERM, "munged does not accept the credential"),
                ("raw=600000", RANGE, "a credential of 600000 bytes: at most 526336 are taken"),
                ("host=NODE,twice=1", PERM, rf"uid 0 on {NODE} was used before")):
            self.must_refuse(spec, code, reason)

    def test_another_key(self):
        stranger = hosts.Host("stranger", network=self.there)
        self.addCleanup(stranger.stop)
        munged = hosts.Munged(stranger, NODE)
        self.addCleanup(munged.stop)
        munged.show_on(stranger)
        # It does not even get a connection: PMIx asks munge, too. What it made is brought by another.
        made = stranger.do("sh", "-c", "echo hello | munge").strip()
        self.must_refuse(f"made={made}", PERM, "it was altered, or made with another key")
        made = self.there.do("sh", "-c", "echo hello | munge").strip()
        self.must_refuse(f"made={made}", FOREIGN, "holds no delivery")

    def test_a_credential_without_origin(self):
        bare = hosts.Host("bare", network=self.there)
        self.addCleanup(bare.stop)
        munged = hosts.Munged(bare, "127.0.0.1", self.munged[0])
        self.addCleanup(munged.stop)
        munged.show_on(bare)
        bare.knows({"scheduler": SCHEDULER})
        for name in (self.name, "scheduler"):
            self.must_refuse(f"host={name}", PERM, rf"^{name}: .*127\.0\.0\.1.*--origin", host=bare)



class Crowd(unittest.TestCase):
    """Four tools of one user deliver as much as they can: that is an eighth of what may be under way, beside which there is room."""

    SIZE = 20000
    SHARE = (64 << 20) // 8 // SIZE

    # stranger.py as a user: four tools deliver rubbish, and say what became of it
    TOOLS = """
import os, selectors, sys
import stranger as s
uri, uid, times, size, rounds = sys.argv[1], *map(int, sys.argv[2:])
os.setuid(uid)
message = (s.item(bytes([s.LOOKUP])) + s.item(s.flex(0)) + s.size(1) + s.item(s.text("pmixfab.relay.deliver")) +
           s.infos(s.info("pmixfab.relay.credential", s.STRING, s.text("MUNGE:" + "x" * (size - 6)))))
tools = [s.tool(uri, timeout=120) for _ in range(4)]
ways = selectors.DefaultSelector()
for tool in tools:
    ways.register(tool.socket, selectors.EVENT_READ, tool)
for _ in range(rounds):
    seen = {}
    for _ in range(times):
        for tool in tools:
            tool.post(message)
    print("posted", flush=True)
    while sum(seen.values()) < 4 * times:
        for key, _ in ways.select():
            status = s.status_of(key.data.answer()[1])
            seen[status] = seen.get(status, 0) + 1
            if sum(seen.values()) == seen.get(-64, 0):
                print("refused", seen[-64], flush=True)
    print("answered", sorted(seen.items()), flush=True)
"""

    def setUp(self):
        hosts.need()
        self.host = hosts.Host("scheduler")
        self.addCleanup(self.host.stop)
        self.munged = hosts.Munged(self.host, "127.0.0.1")
        self.addCleanup(self.munged.stop)
        self.munged.show_on(self.host)
        self.host.knows({"scheduler": "127.0.0.1"})
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,2", "capture"))
        self.daemon = hosts.Fabricd(self.host, config={"fabricd": {"probe": f"file:{capture}", "host": "scheduler"}})
        self.addCleanup(self.daemon.stop)

    def tools(self, uid, times, rounds=1, size=SIZE):
        watch = lab.Watch([*self.host.prefix(), "/usr/bin/python3", "-c", self.TOOLS, self.daemon.uri(), str(uid), str(times), str(size),
                           str(rounds)], env=dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(__file__))))
        self.addCleanup(watch.stop)
        return watch

    def test_while_none_is_answered(self):
        """munged hangs, so all that is let in waits: theirs is their share, and root's has room beside it."""
        os.kill(self.munged.process.pid, signal.SIGSTOP)
        crowd = self.tools(65534, 200)
        crowd.wait(f"refused {800 - self.SHARE}\\n", timeout=60)
        own = self.tools(0, 150)
        own.wait("posted")
        os.kill(self.munged.process.pid, signal.SIGCONT)
        crowd.wait(re.escape(f"answered [(-64, {800 - self.SHARE}), (0, {self.SHARE})]"), timeout=120)
        own.wait(re.escape("answered [(0, 600)]"), timeout=120)


class WithoutMunge(unittest.TestCase):
    def test_it_is_said(self):
        hosts.need()
        host = hosts.Host("bare")
        self.addCleanup(host.stop)
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,2", "capture"))
        daemon = hosts.Fabricd(host, config={"fabricd": {"probe": f"file:{capture}"}})
        self.addCleanup(daemon.stop)
        code, held, reason = deliver(daemon, host, "raw=100")[0]
        self.assertEqual((code, held), (UNREACH, 0))
        self.assertRegex(reason, "^no munged answers on the scheduler's host")


if __name__ == "__main__":
    unittest.main()
