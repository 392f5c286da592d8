"""Untrusted clients of the PMIx server: odd first messages, odd requests and much of both cost them their connection, and
nobody else anything. In the scheduler's daemon and in a node's.

test/fuzz/corpus/listener has what ended or held up a server once, or would without the repairs; ./dev fuzz listener finds more of it.
"""
import contextlib
import os
import random
import re
import resource
import signal
import sys
import threading
import unittest

import fabric_text
import hosts
import isolate
import lab
import sessions
import stranger
import versions

CORPUS = os.path.join(lab.ROOT, "test", "fuzz", "corpus", "listener")
ROUNDS = 20000 if lab.ALL else 500
NOT_SUPPORTED, BAD_PARAM, NOT_AVAILABLE = -47, -27, -64
INDEX = "pmix.fab.idx"


class Beat:
    """A good tool that comes, asks and goes, again and again, beside what a test does."""

    def __init__(self, daemon):
        self.failed, self.answered = None, threading.Event()
        self._uri = daemon.uri()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            with stranger.tool(self._uri, timeout=lab.HUNG) as resident:
                while not self._ended.wait(0.02):
                    self._round(resident)
                    self.answered.set()
        except (EOFError, OSError) as error:
            self.failed = error
            self.answered.set()

    def _round(self, resident):
        self._ask(resident)
        with stranger.Channel(self._uri, timeout=lab.HUNG) as fresh:
            if fresh.knock(stranger.first()).handshake() != 0:
                raise EOFError("not let in")
            self._ask(fresh)

    @staticmethod
    def _ask(channel):
        status = stranger.status_of(channel.ask(stranger.QUERY, stranger.query(INDEX)))
        if status != 0:
            raise EOFError(f"status {status}")

    def stop(self):
        self._ended.set()
        self._thread.join(lab.HUNG)


def in_both_roles(test):
    """test(self, daemon) of a scheduler's and of a node's, where there is one with this library."""
    def run(self):
        for daemon in self.daemons:
            with self.subTest(daemon.status()["role"]):
                test(self, daemon)
    run.__doc__ = test.__doc__
    return run


@contextlib.contextmanager
def munge():
    """A munged, for what the node asks of the scheduler: callers of either server come without one."""
    munged = hosts.Munged(origin="127.0.0.1")
    os.symlink(munged.dir, munged.PLACE)
    try:
        yield
    finally:
        os.unlink(munged.PLACE)
        munged.stop()


def setUpModule():
    """A scheduler and a node for all tests."""
    isolate.need()
    Case.capture = os.path.join(lab.tmpdir(), "capture")
    Case.text = lab.fabric("fattree2:4,2,4", "capture")
    lab.replace_file(Case.capture, Case.text)
    Case.scheduler = lab.Fabricd(config={"fabricd": {"probe": f"file:{Case.capture}"}, "nodes": {"listen": "127.0.0.1", "port": 0}})
    node = lab.Fabricd(config={"fabricd": {"role": "node", "host": "node0001", "scheduler": Case.scheduler.nodes_at(), "store": None},
                               "node": {"serve": "yes"}}, start=False)
    node.start(wait=False)
    node.wait_up()
    with munge():
        node.until_status(lambda status: not status["stale"])
    Case.daemons = [Case.scheduler, node]
    unittest.addModuleCleanup(Case.end)


class Case(unittest.TestCase):
    scheduler = daemons = capture = text = None

    @classmethod
    def end(cls):
        for daemon in reversed(cls.daemons):
            if daemon.stop() != 0:
                raise lab.LabError(daemon.story())

    @staticmethod
    def resident(daemon):
        """MiB that it holds, and its PMIx server."""
        kb = 0
        for pid in (daemon.process.pid, daemon.pmix_pid()):
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                kb += int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
        return kb / 1024

    @contextlib.contextmanager
    def unharmed(self, daemon, grows=None, changes=False):
        """What is done in it: the daemon is the same one afterwards, with the same generation (unless it changes that), answered
        others throughout, and holds not much more memory."""
        before, server, held = daemon.status(), daemon.pmix_pid(), self.resident(daemon)
        beat = Beat(daemon)
        try:
            yield
            self.assertTrue(beat.answered.wait(lab.HUNG))
        finally:
            beat.stop()
        daemon.check_alive()
        after = daemon.status()
        self.assertEqual(after["pid"], before["pid"])
        if not changes:
            self.assertEqual(after["generation"], before["generation"])
        self.assertEqual(daemon.pmix_pid(), server)
        self.assertIsNone(beat.failed, daemon.log()[-1000:])
        if grows is not None and not lab.SANITIZE:
            self.assertLess(self.resident(daemon) - held, grows)

    def publish(self, text):
        """Make this the fabric, wherever it is served; its generation."""
        lab.replace_file(self.capture, text)
        with munge():
            generation = self.scheduler.refresh()["generation"]
            for daemon in self.daemons:
                daemon.until("generation", generation=generation)
        return generation

    @staticmethod
    def ask(uri, command, *parts):
        with stranger.tool(uri) as channel:
            return stranger.status_of(channel.ask(command, *parts))


    @staticmethod
    def used(daemon):
        """Seconds of a processor that its PMIx server has had."""
        total = 0
        for task in os.listdir(f"/proc/{daemon.pmix_pid()}/task"):
            with open(f"/proc/{daemon.pmix_pid()}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total / 1e9


class FirstMessages(Case):
    """What is refused, one by one: test/unit/guard/test_guard_messages.c."""

    @in_both_roles
    def test_served(self, daemon):
        singletons = (stranger.SINGLETON,) if versions.PMIX < (5, 0, 9) else ()  # from 5.0.9 on the library takes one for a client
        for kind in (stranger.TOOL, stranger.NAMED_TOOL, stranger.STARTED_TOOL, stranger.LAUNCHER, stranger.NAMED_LAUNCHER,
                     stranger.STARTED_LAUNCHER, *singletons):
            for _ in range(2):  # the same name twice
                with stranger.tool(daemon.uri(), kind=kind, name=("job", 3)) as channel:
                    status = stranger.status_of(channel.ask(stranger.QUERY, stranger.query(INDEX)))
                    self.assertEqual(status, 0, kind)

    @in_both_roles
    def test_a_handshake_that_fails(self, daemon):
        """The library gave back twice what it knew of a tool whose name a client of another module took, and of one that
        said that a server had started it."""
        with self.unharmed(daemon), stranger.tool(daemon.uri(), kind=stranger.NAMED_TOOL, name=("victim", 0)) as victim:
            for _ in range(10):
                for kind in (stranger.CLIENT, stranger.STARTED_TOOL, stranger.STARTED_LAUNCHER, stranger.NAMED_TOOL):
                    for more in ({"psec": "nosuch"}, {"bfrops": "nosuch"}, {"cred": b"12345678"}, {"cred": b""}):
                        with stranger.knock(daemon.uri(), stranger.first(kind=kind, name=("victim", 0), **more)) as channel:
                            with contextlib.suppress(EOFError):
                                self.assertNotEqual(channel.handshake(named=True), 0)
            status = stranger.status_of(victim.ask(stranger.QUERY, stranger.query(INDEX)))
            self.assertEqual(status, 0)

    @in_both_roles
    def test_altered(self, daemon):
        rng = random.Random(1)
        with self.unharmed(daemon, grows=32):
            for _ in range(ROUNDS):
                whole = stranger.first(kind=rng.randrange(11), name=(rng.choice(("a", "fabricd", "fabricd.tool")), rng.randrange(3)),
                                       buffer=rng.choice((1, 1, 2)), more=stranger.infos(stranger.info("k", stranger.BOOL, b"\1")))
                message = stranger.altered(whole, rng)
                with stranger.knock(daemon.uri(), message) as channel:
                    if rng.randrange(4) == 0:
                        channel.close(abruptly=True)
                    else:
                        with contextlib.suppress(EOFError):
                            channel.status()


class Connections(Case):
    @in_both_roles
    def test_nobody_elses_descriptor_is_closed(self, daemon):
        """The library closed the one of a failed handshake twice: now and then a newcomer's, who had its number by then."""
        for _ in range(ROUNDS):
            with stranger.knock(daemon.uri(), stranger.first(cred=b"12345678")) as channel:
                if versions.PMIX < (5,):
                    self.assertNotEqual(channel.handshake(), 0)
                else:  # the library is not asked
                    self.assertTrue(channel.ended())

    def test_who_goes_leaves_nothing_behind(self):
        def churn():
            for i in range(ROUNDS // 2):
                with stranger.tool(self.scheduler.uri(), kind=stranger.NAMED_TOOL, name=(f"stranger{i}", i)) as channel:
                    if i % 2 == 0:
                        channel.ask(stranger.FINALIZE)
            return self.resident(self.scheduler)
        with self.unharmed(self.scheduler):
            first = churn()
            if not lab.SANITIZE:
                self.assertLess(churn() - first, 8 + ROUNDS / 400)  # it was 58 KB each

    @in_both_roles
    def test_tools_come_and_go(self, daemon):
        """The library gathered their ends as long as there was no second without one, and copied all of them for each."""
        with self.unharmed(daemon, grows=5):
            for _ in range(max(3000, ROUNDS)):
                with stranger.tool(daemon.uri()):
                    pass

    @in_both_roles
    def test_many_end_at_once(self, daemon):
        def end(n):
            held = [stranger.tool(daemon.uri()) for _ in range(n)]
            begin = self.used(daemon)
            server = lab.Held(daemon.pmix_pid())
            server.signal(signal.SIGSTOP)
            try:
                for channel in held:
                    channel.close(abruptly=True)
            finally:
                server.signal(signal.SIGCONT)
            lab.wait_for(lambda: len(os.listdir(f"/proc/{daemon.pmix_pid()}/fd")) < 100, what="their end")
            return self.used(daemon) - begin
        many, few = end(2000), end(500)
        if not lab.SANITIZE:
            self.assertLess(many, 10 * few + 0.05)  # it was 20 times

    @unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
    def test_places(self):
        """One user takes an eighth of them, and root is served."""
        before = resource.prlimit(self.scheduler.pmix_pid(), resource.RLIMIT_NOFILE, (800, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        self.addCleanup(lambda: self.scheduler.alive() and resource.prlimit(self.scheduler.pmix_pid(), resource.RLIMIT_NOFILE, before))
        script = ("import os, sys\nos.setuid(65534)\nimport stranger\nheld, refused = [], 0\n"
                  "for i in range(150):\n    try:\n        held.append(stranger.tool(sys.argv[1]))\n"
                  "    except (EOFError, OSError):\n        refused += 1\n"
                  "print(len(held), refused, flush=True)\nsys.stdin.read()\n")
        with self.unharmed(self.scheduler):
            for _ in range(2):  # once more when these have gone
                crowd = lab.Watch(["/usr/bin/python3", "-c", script, self.scheduler.uri()], cwd=lab.HERE,
                                  talk=True)
                self.assertEqual(crowd.wait(r"(?m)^(\d+ \d+)$").group(1), "100 50")
                with stranger.tool(self.scheduler.uri()) as channel:
                    self.assertEqual(stranger.status_of(channel.ask(stranger.QUERY, stranger.query(INDEX))), 0)
                crowd.stop()
                lab.wait_for(lambda: self.connected(self.scheduler) < 10, what="the crowd to go")

    @staticmethod
    def connected(daemon):
        port = int(daemon.uri().rsplit(":", 1)[1])
        with open("/proc/net/tcp", encoding="ascii") as file:
            return sum(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "01" for line in file)


class Requests(Case):
    def test_a_gigabyte_is_announced(self):
        with self.unharmed(self.scheduler, grows=32):
            for nbytes in (1 << 30, (1 << 32) - 1, 1 << 20):
                with stranger.tool(self.scheduler.uri()) as channel:
                    channel.post(b"x", nbytes=nbytes)
                    self.assertTrue(channel.ended())
            for _ in range(200):  # as much as is allowed, and most of it never comes
                with stranger.tool(self.scheduler.uri()) as channel:
                    channel.post(b"x", nbytes=500000)

    def test_a_header_in_pieces(self):
        uri = self.scheduler.uri()
        with stranger.tool(uri) as channel, stranger.tool(uri) as other:
            parts = stranger.item(bytes([stranger.QUERY])) + stranger.query(INDEX)
            for byte in stranger.struct.pack("!iIII", 0, 500, len(parts), 0):
                channel.send(bytes([byte]))
                sessions.ping(other)  # its answer comes after that byte was read
            channel.send(parts)
            tag, data = channel.answer()
            self.assertEqual((tag, stranger.status_of(data)), (500, 0))
        with self.unharmed(self.scheduler), stranger.tool(uri) as channel:
            channel.send(b"\0\0\0")  # and ends there

    @in_both_roles
    def test_altered(self, daemon):
        s = stranger
        qualifiers = (s.info("pmix.fab.plane", s.STRING, s.text("ib0")), s.info("pmix.fab.idx", s.SIZE, s.flex(1)))
        array = s.info("list", s.DATA_ARRAY, s.flex(s.INFO) + s.flex(2) + b"".join(qualifiers))
        whole = ((s.QUERY, s.query(INDEX, *qualifiers, array)), (s.FABRIC_REGISTER, s.infos(*qualifiers)), (s.FABRIC_UPDATE, s.size(1)),
                 (s.GET, s.item(s.text("x")) + s.item(s.flex(0)) + s.infos(*qualifiers) + s.item(s.text(INDEX))),
                 (s.LOOKUP, s.item(s.flex(0)) + s.size(1) + s.item(s.text("pmixfab.relay.query")) + s.infos(array)),
                 (s.REGEVENTS, s.size(2) + s.item(s.signed(-175) + s.signed(-176), 2) + s.infos(*qualifiers)),
                 (s.DEREGEVENTS, s.item(s.signed(-175))), (s.REQ, b""), (s.FINALIZE, b""))
        rng = random.Random(2)
        with self.unharmed(daemon, grows=64):
            channel = s.tool(daemon.uri())
            for i in range(ROUNDS):
                if i % 50 == 49 or rng.randrange(20) == 0:
                    channel.close(abruptly=rng.randrange(2) == 0)
                    channel = s.tool(daemon.uri(), buffer=rng.choice((1, 1, 2)))
                command, data = rng.choice(whole)
                message = s.item(bytes([command])) + data
                channel.post(s.altered(message, rng) or b"\0", tag=rng.choice((None, None, 0, 1, 2, 101, 0xffffffff)))
            channel.close()

    @in_both_roles
    def test_registrations_for_events(self, daemon):
        """The library looked at each of them with each event, and made no end of them: it gets those that are raised, once."""
        s = stranger
        codes = s.size(100) + s.item(s.signed(s.UPDATED) * 100, 100) + s.infos()
        with self.unharmed(daemon, changes=True), s.tool(daemon.uri()) as channel:
            self.assertEqual([s.status_of(channel.ask(s.REGEVENTS, codes)) for _ in range(20)], [0] * 20)
            self.assertEqual(s.status_of(channel.ask(s.REGEVENTS, s.size(0) + s.infos())), 0)
            self.assertEqual(s.status_of(channel.ask(s.REGEVENTS, s.size(1) + s.item(s.signed(-231)) + s.infos())), NOT_SUPPORTED)
            generation = self.change()
            self.assertEqual(s.event_of(channel.answer()[1])[::2], (s.UPDATED, generation))
            channel.post(s.item(bytes([s.DEREGEVENTS])) + s.item(s.signed(s.PENDING)) + s.item(s.signed(s.UPDATED)))
            channel.ask(s.QUERY, s.query(INDEX))
            self.change()
            self.assertEqual(s.status_of(channel.ask(s.REGEVENTS, codes)), 0)  # nothing came before this answer
            generation = self.change()
            self.assertEqual(s.event_of(channel.answer()[1])[::2], (s.UPDATED, generation))

    def change(self):
        """Another generation, when it is served everywhere: the cables of a leaf are slower, or as they were."""
        with open(self.capture, encoding="utf-8") as file:
            same = file.read() == self.text
        return self.publish(fabric_text.slower(self.text, "leaf1") if same else self.text)

    @unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
    @in_both_roles
    def test_many_codes_over_many_connections(self, daemon):
        """A list of all codes of all connections, looked through for each of them, was the end of the server in seconds."""
        script = ("import os, sys\nos.setuid(65534)\nimport stranger as s\nchannels = [s.tool(sys.argv[1]) for _ in range(200)]\n"
                  "for first in range(0, 1000, 250):\n    for i, channel in enumerate(channels):\n"
                  "        codes = b''.join(s.signed(-1000 * (i + 1) - first - k) for k in range(248))\n"
                  "        codes += s.signed(s.UPDATED) + s.signed(s.PENDING)\n"
                  "        channel.post(s.item(bytes([s.REGEVENTS])) + s.size(250) + s.item(codes, 250) + s.infos())\n"
                  "for channel in channels:\n    print(*[s.status_of(channel.answer()[1]) for _ in range(4)])\n"
                  "print('registered', flush=True)\nsys.stdin.read()\n")
        with self.unharmed(daemon, grows=16, changes=True), stranger.tool(daemon.uri()) as channel:
            begin = self.used(daemon)
            crowd = lab.Watch(["/usr/bin/python3", "-c", script, daemon.uri()], cwd=os.path.dirname(os.path.abspath(__file__)), talk=True)
            crowd.wait("registered", timeout=lab.HUNG)
            self.assertEqual(set(crowd.output.text.split()), {"0", "registered"})
            self.change()
            self.assertEqual(stranger.status_of(channel.ask(stranger.QUERY, stranger.query(INDEX))), 0)
            if not lab.SANITIZE:
                self.assertLess(self.used(daemon) - begin, 1.5)  # seconds of a processor; it was 40
            crowd.stop()

    def test_questions_that_wait(self):
        """Eight of a name, and they end with its connection."""
        s = stranger
        with s.tool(self.scheduler.uri()) as channel:
            known = [s.value_of(channel.ask(s.QUERY, s.query(key)), key) for key in ("pmixfab.generation", "pmixfab.published")]
        question = (s.item(bytes([s.LOOKUP])) + s.item(s.flex(0)) + s.size(1) + s.item(s.text("pmixfab.relay.subscribe")) +
                    s.infos(s.info("pmixfab.generation", 15, s.flex(known[0])), s.info("pmixfab.published", 10, s.signed(known[1]))))
        def eight():
            """Until the library has noticed that the one before is gone, its questions wait under this name."""
            with s.tool(self.scheduler.uri(), kind=s.NAMED_TOOL, name=("waiting", 1)) as channel:
                tags = [channel.post(question) for _ in range(20)]
                refused = dict(channel.answer() for _ in range(12))
                self.assertEqual({s.status_of(data) for data in refused.values()}, {NOT_AVAILABLE})
                return list(refused) == tags[8:]
        for _ in range(3):
            lab.wait_for(eight, what="eight places")

    def test_who_does_not_read_his_answers(self):
        with self.unharmed(self.scheduler), stranger.tool(self.scheduler.uri()) as channel:
            channel.socket.settimeout(lab.HUNG)
            question = stranger.item(bytes([stranger.QUERY])) + stranger.query("pmix.fab.devs")
            with self.assertRaises(ConnectionError):
                while True:
                    channel.post(question)

    @in_both_roles
    def test_no_events_from_tools(self, daemon):
        watch = daemon.watch()
        self.addCleanup(watch.stop)
        watch.wait("watching")
        for code in (-175, -176, -1000):
            for where in range(10):
                status = self.ask(daemon.uri(), stranger.NOTIFY, stranger.item(stranger.signed(code)), stranger.item(bytes([where])),
                                  stranger.infos(stranger.info(INDEX, stranger.SIZE, stranger.flex(1))))
                self.assertEqual(status, NOT_SUPPORTED)
        generation = self.publish(fabric_text.slower(self.text, "leaf1"))
        watch.wait(f"PMIX_FABRIC_UPDATED index 1 generation {generation}")
        self.assertEqual(len(re.findall("PMIX_FABRIC_UPDATED ", watch.output.text)), 1, watch.output.text)
        self.publish(self.text)


class LargeAnswers(Case):
    @unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
    def test_who_does_not_read_over_many_connections(self):
        """They share one bound: 20 times that of one would be more than the server may have. Of 4,000 hosts, whose groups are 37 KB."""
        capture = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(capture, lab.fabric("fattree2:125,8,32", "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})
        self.addCleanup(daemon.stop)
        script = ("import os, sys\nos.setuid(65534)\nimport stranger as s\n"
                  "question = s.item(bytes([s.QUERY])) + s.query('pmix.fab.grps')\n"
                  "channels = [s.tool(sys.argv[1], timeout=60) for _ in range(20)]\n"
                  "try:\n    while True:\n        for channel in channels:\n            channel.post(question)\n"
                  "except ConnectionError:\n    print('ended', flush=True)\nsys.stdin.read()\n")
        held = self.resident(daemon)
        with self.unharmed(daemon):
            crowd = lab.Watch(["/usr/bin/python3", "-c", script, daemon.uri()], cwd=lab.HERE, talk=True)
            crowd.wait("ended")
            if not lab.SANITIZE:
                self.assertLess(self.resident(daemon) - held, 192)
            crowd.stop()


@unittest.skipIf(lab.SANITIZE, "the library's crash is not ours to look at")
class Holes(Case):
    """Without the repairs a message or a few failed handshakes end the server, or it hangs. When this fails the library has
    learned it."""

    def setUp(self):
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}}, env={"FABRICD_NO_REPAIR": "1"})
        self.addCleanup(lambda: self.daemon.alive() and self.daemon.kill9())

    def test_messages(self):
        s = stranger
        for times, message in enumerate((
                (s.LOOKUP, s.item(s.flex(0)), s.size(1), s.item(s.text(None)), s.size(0)),
                (s.REGEVENTS, s.size(1), s.item(s.signed(-175)), s.infos(s.info("pmix.evproc", s.BOOL, b"\1")))), start=1):
            self.assertEqual(self.ask(self.scheduler.uri(), *message), BAD_PARAM)
            with self.assertRaises((EOFError, OSError)):
                self.ask(self.daemon.uri(), *message)
            self.daemon.replaced(times)

    def test_handshakes(self):
        """Of clients up to 5.0.8, of tools from 5.0.9 on."""
        kind, uri = stranger.CLIENT if versions.PMIX < (5, 0, 9) else stranger.TOOL, self.daemon.uri()
        with self.assertRaises((EOFError, OSError)), \
                stranger.tool(uri, kind=stranger.NAMED_TOOL, name=("victim", 0), timeout=3) as victim:
            for _ in range(20):
                with stranger.knock(uri, stranger.first(kind=kind, name=("victim", 0), psec="nosuch"), 3) as channel:
                    channel.ended()
                with stranger.tool(uri, timeout=3) as channel:
                    channel.ask(stranger.QUERY, stranger.query(INDEX))
            victim.ask(stranger.QUERY, stranger.query(INDEX))


class Corpus(Case):
    @in_both_roles
    def test_said_again(self, daemon):
        names, texts = sorted(os.listdir(CORPUS)), [self.text, fabric_text.slower(self.text, "leaf1")]
        self.assertGreater(len(names), 20)

        def change():
            texts.reverse()
            self.publish(texts[0])
        player = sessions.Player(daemon.uri(), change)
        with self.unharmed(daemon, grows=64, changes=True):
            for name in names:
                player.play(sessions.read(os.path.join(CORPUS, name)))
                with self.subTest(name), sessions.resident(daemon.uri(), 10) as channel:
                    sessions.ping(channel)
        self.assertGreater(player.sent, 200)
        self.publish(self.text)


class FromAnotherHost(unittest.TestCase):
    """Without a munge key. The server takes munge only."""

    ROUNDS = 20 if lab.ALL else 1
    SAID = """
import os, random, sys
import sessions, stranger
player = sessions.Player(sys.argv[1], timeout=0.5)
for turn in range(int(sys.argv[3])):
    for name in sorted(os.listdir(sys.argv[2])):
        player.play(sessions.read(os.path.join(sys.argv[2], name)))
    rng = random.Random(turn)
    for _ in range(300):
        first = stranger.first(kind=rng.randrange(11), psec=rng.choice(("native", "munge")), cred=rng.choice((None, b"MUNGE:AwQDAAB:", b"")))
        with stranger.knock(sys.argv[1], stranger.altered(first, rng) if rng.randrange(4) else first) as channel:
            channel.close(abruptly=rng.randrange(2) == 0)
print("sent", player.sent)
"""

    def test_said_there(self):
        hosts.need()
        here, there = hosts.Host("here"), hosts.Host("there")
        self.addCleanup(here.stop)
        self.addCleanup(there.stop)
        here.cable(there, "10.91.0.1", "10.91.0.2")
        munged = hosts.Munged()
        self.addCleanup(munged.stop)
        munged.show_on(here)
        capture = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(capture, lab.fabric("fattree2:4,2,4", "capture"))
        daemon = hosts.Fabricd(here, config={"fabricd": {"probe": f"file:{capture}"}, "security": {"remote": "yes"}})
        self.addCleanup(daemon.stop)
        good = lab.Watch([*here.prefix(), lab.program("stock_load"), daemon.uri()], daemon.tool_env(), talk=True)
        self.addCleanup(good.stop)
        good.wait("^ready$")
        before = daemon.status()
        bad = lab.Watch([*there.prefix(), sys.executable, "-c", self.SAID, daemon.uri(), CORPUS, str(self.ROUNDS)],
                        dict(os.environ, PYTHONPATH=lab.HERE))
        while not bad.output.closed:
            self.assertEqual(good.say("rounds 100", r"^errors (\d+)(.*)\n").group(1), "0")
        self.assertGreater(int(bad.wait(r"^sent (\d+)").group(1)), 100)
        after = daemon.status()
        self.assertEqual((after["pid"], after["pmix"]["pid"], after["generation"]),
                         (before["pid"], before["pmix"]["pid"], before["generation"]),
                         re.sub(r"(?m)^.*write failed.*\n", "", daemon.log())[-2000:])
        done = here.run([lab.program("stock_tool"), daemon.uri(), "register"], env=daemon.tool_env())
        self.assertIn("pmixfab.generation", done.stdout)


if __name__ == "__main__":
    unittest.main()
