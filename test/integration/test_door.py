"""Strangers at the PMIx server's door: odd first messages, odd requests and much of both cost them their connection, and
nobody else anything. In the scheduler's daemon and in a node's."""
import contextlib
import os
import random
import re
import resource
import signal
import threading
import time
import unittest

import fabric_text
import hosts
import lab
import stranger
import versions

ROUNDS = 20000 if lab.ALL else 1500
HUGE = 1 << 40
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
    roles = ("scheduler",) if versions.reason("test_node.Node") else ("scheduler", "node")

    def run(self):
        for role in roles:
            with self.subTest(role):
                test(self, self.scheduler if role == "scheduler" else self.node())
    run.__doc__ = test.__doc__
    return run


class Case(unittest.TestCase):
    FABRIC = "fattree2:4,2,4"

    def setUp(self):
        self.capture = os.path.join(lab.tmpdir(), "capture")
        self.text = lab.fabric(self.FABRIC, "capture")
        lab.replace_file(self.capture, self.text)
        self.scheduler = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}})
        self.addCleanup(self.end, self.scheduler)

    def end(self, daemon):
        if daemon.alive():
            self.assertEqual(daemon.stop(), 0, daemon.log()[-2000:])

    def node(self):
        node = lab.Fabricd(config={"fabricd": {"role": "node", "host": "node0001", "scheduler": self.scheduler.uri(), "store": None},
                                  "node": {"serve": "yes"}},
                           start=False)
        node.start(wait=False)
        self.addCleanup(self.end, node)
        node.wait_up()
        node.until_status(lambda status: not status["stale"])
        return node

    @staticmethod
    def resident(daemon):
        """MiB that it holds, and its front."""
        kb = 0
        for pid in (daemon.process.pid, daemon.front()):
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                kb += int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
        return kb / 1024

    @contextlib.contextmanager
    def unharmed(self, daemon, grows=None, changes=False):
        """What is done in it: the daemon is the same one afterwards, with the same generation (unless it changes that), answered
        others throughout, and holds not much more memory."""
        before, front, held = daemon.status(), daemon.front(), self.resident(daemon)
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
        self.assertEqual(daemon.front(), front)
        self.assertIsNone(beat.failed, daemon.log()[-1000:])
        if grows is not None and not lab.SANITIZE:
            self.assertLess(self.resident(daemon) - held, grows)

    @staticmethod
    def ask(uri, command, *parts):
        with stranger.tool(uri) as channel:
            return stranger.status_of(channel.ask(command, *parts))


    @staticmethod
    def used(daemon):
        """Seconds of a processor that its front has had."""
        total = 0
        for task in os.listdir(f"/proc/{daemon.front()}/task"):
            with open(f"/proc/{daemon.front()}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total / 1e9


class FirstMessages(Case):
    def refused(self, uri, message):
        """Ended without a word."""
        with stranger.knock(uri, message) as channel:
            with self.assertRaises(EOFError, msg=message):
                channel.read(1)

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
    def test_kinds_and_modules_that_are_not(self, daemon):
        clients = [] if versions.PMIX < (5, 0, 9) else [{"kind": stranger.SINGLETON, "name": (daemon.uri().split(".")[0], 0)}]
        with self.unharmed(daemon):
            for options in ({"kind": stranger.CLIENT}, {"kind": stranger.OLD_TOOL}, {"kind": stranger.OLD_LAUNCHER}, {"kind": 10},
                            {"kind": 255}, {"psec": "nosuch"}, {"psec": ""}, {"bfrops": "v12"}, {"bfrops": "nosuch"},
                            {"gds": "nosuch"}, {"buffer": 0}, {"buffer": 7}, {"version": "2.0.0"}, {"version": "4"},
                            {"kind": stranger.NAMED_TOOL, "name": ("", 0)}, *clients, {"more": b"\2\xff\xff\xff\x7f"}, {"more": b"x"}):
                self.refused(daemon.uri(), stranger.first(**options))

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

    def test_the_hole_of_the_stock_library(self):
        """Without the repair a few failed handshakes end the server, or it hangs: of clients up to 5.0.8, of tools from 5.0.9 on.
        When this fails the library has learned it."""
        kind = stranger.CLIENT if versions.PMIX < (5, 0, 9) else stranger.TOOL
        if lab.SANITIZE:
            self.skipTest("the library's crash is not ours to look at")
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}}, env={"FABRICD_NO_REPAIR": "1"})
        self.addCleanup(lambda: daemon.alive() and daemon.kill9())
        with self.assertRaises((EOFError, OSError)), \
                stranger.tool(daemon.uri(), kind=stranger.NAMED_TOOL, name=("victim", 0), timeout=3) as victim:
            for _ in range(20):
                with stranger.knock(daemon.uri(), stranger.first(kind=kind, name=("victim", 0), psec="nosuch"), 3) as channel:
                    channel.ended()
                with stranger.tool(daemon.uri(), timeout=3) as channel:
                    channel.ask(stranger.QUERY, stranger.query(INDEX))
            victim.ask(stranger.QUERY, stranger.query(INDEX))

    @in_both_roles
    def test_lengths(self, daemon):
        with self.unharmed(daemon, grows=16):
            for nbytes in (0, 1, 10240, 10241, 1 << 20, 1 << 31, (1 << 32) - 1):
                with stranger.knock(daemon.uri(), b"x", nbytes=nbytes) as channel:
                    if nbytes not in (1, 10240):  # these may still come; for two seconds
                        self.assertTrue(channel.ended())

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

    @in_both_roles
    def test_who_goes_leaves_nothing_behind(self, daemon):
        def churn():
            for i in range(ROUNDS // 2):
                with stranger.tool(daemon.uri(), kind=stranger.NAMED_TOOL, name=(f"stranger{i}", i)) as channel:
                    if i % 2 == 0:
                        channel.ask(stranger.FINALIZE)
            return self.resident(daemon)
        with self.unharmed(daemon):
            first = churn()
            if not lab.SANITIZE:
                self.assertLess(churn() - first, 8 + ROUNDS / 400)  # it was 58 KB each

    @in_both_roles
    def test_tools_come_and_go(self, daemon):
        """The library gathered their ends as long as there was no second without one, and copied all of them for each."""
        with self.unharmed(daemon, grows=5):
            for _ in range(ROUNDS * 2):
                with stranger.tool(daemon.uri()):
                    pass

    @in_both_roles
    def test_many_end_at_once(self, daemon):
        def end(n):
            held = [stranger.tool(daemon.uri()) for _ in range(n)]
            begin = self.used(daemon)
            front = lab.Held(daemon.front())
            front.signal(signal.SIGSTOP)
            try:
                for channel in held:
                    channel.close(abruptly=True)
            finally:
                front.signal(signal.SIGCONT)
            lab.wait_for(lambda: len(os.listdir(f"/proc/{daemon.front()}/fd")) < 100, what="their end")
            return self.used(daemon) - begin
        self.assertLess(end(2000), 10 * end(500) + 0.05)  # it was 20 times

    @unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
    @in_both_roles
    def test_places(self, daemon):
        """One user takes an eighth of them, and root is served."""
        before = resource.prlimit(daemon.front(), resource.RLIMIT_NOFILE, (800, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        self.addCleanup(lambda: daemon.alive() and resource.prlimit(daemon.front(), resource.RLIMIT_NOFILE, before))
        script = ("import os, sys\nos.setuid(65534)\nimport stranger\nheld, refused = [], 0\n"
                  "for i in range(150):\n    try:\n        held.append(stranger.tool(sys.argv[1]))\n"
                  "    except (EOFError, OSError):\n        refused += 1\n"
                  "print(len(held), refused, flush=True)\nsys.stdin.read()\n")
        with self.unharmed(daemon):
            for _ in range(2):  # once more when these have gone
                crowd = lab.Watch(["/usr/bin/python3", "-c", script, daemon.uri()], cwd=os.path.dirname(os.path.abspath(__file__)),
                                  talk=True)
                self.assertEqual(crowd.wait(r"(?m)^(\d+ \d+)$").group(1), "100 50")
                with stranger.tool(daemon.uri()) as channel:
                    self.assertEqual(stranger.status_of(channel.ask(stranger.QUERY, stranger.query(INDEX))), 0)
                crowd.stop()
                lab.wait_for(lambda: self.connected(daemon) < 10, what="the crowd to go")

    @staticmethod
    def connected(daemon):
        port = int(daemon.uri().rsplit(":", 1)[1])
        with open("/proc/net/tcp", encoding="ascii") as file:
            return sum(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "01" for line in file)


class Requests(Case):
    @in_both_roles
    def test_commands_that_are_not_answered(self, daemon):
        answered = {stranger.REQ, stranger.GET, stranger.FINALIZE, stranger.LOOKUP, stranger.REGEVENTS, stranger.DEREGEVENTS,
                    stranger.QUERY, stranger.FABRIC_REGISTER, stranger.FABRIC_UPDATE}
        with self.unharmed(daemon):
            for command in set(range(256)) - answered:
                for parts in ((), (stranger.size(HUGE),), (stranger.infos(),)):
                    self.assertEqual(self.ask(daemon.uri(), command, *parts), NOT_SUPPORTED, command)

    @in_both_roles
    def test_counts(self, daemon):
        s = stranger
        cases = ((s.GET, s.item(s.text("nobody")), s.item(s.flex(0)), s.size(HUGE)),
                 (s.GET, s.item(s.text("fabricd")), s.item(s.flex(0)), s.size(0), s.item(s.text(None))),
                 (s.LOOKUP, s.item(s.flex(0)), s.size(1), s.item(s.text(None)), s.size(0)),
                 (s.LOOKUP, s.item(s.flex(0)), s.size(HUGE)), (s.LOOKUP, s.item(s.flex(0)), s.size(0), s.size(HUGE)),
                 (s.REGEVENTS, s.size(HUGE)), (s.REGEVENTS, s.size(1), s.item(s.signed(-175)), s.size(HUGE)),
                 (s.REGEVENTS, s.size(1), s.item(s.signed(-175)), s.infos(s.info("pmix.evproc", s.BOOL, b"\1"))),
                 (s.REGEVENTS, s.size(1), s.item(s.signed(-175)), s.infos(s.info("pmix.evaffected", s.SIZE, s.flex(HUGE)))),
                 (s.QUERY, s.size(HUGE)), (s.QUERY, s.size(1), s.item(s.signed(1 << 30))),
                 (s.QUERY, s.query(INDEX, s.info("a", s.DATA_ARRAY, s.flex(s.INFO) + s.flex(HUGE)))),
                 (s.QUERY, s.query(INDEX, s.info("a", s.STRING, s.signed(1 << 30)))),
                 (s.QUERY, s.query(INDEX, s.info("a", s.STRING, s.signed(4) + b"abcd"))),  # no end
                 (s.FABRIC_REGISTER, s.size(HUGE)), (s.FABRIC_REGISTER, s.size((1 << 64) - 1)), (s.FABRIC_UPDATE,))
        with self.unharmed(daemon, grows=16):
            for command, *parts in cases:
                for _ in range(3):
                    expected = s.UNREACH if command == s.FABRIC_REGISTER else BAD_PARAM
                    self.assertEqual(self.ask(daemon.uri(), command, *parts), expected, (command, parts))

    @in_both_roles
    def test_a_gigabyte_is_announced(self, daemon):
        with self.unharmed(daemon, grows=32):
            for nbytes in (1 << 30, (1 << 32) - 1, 1 << 20):
                with stranger.tool(daemon.uri()) as channel:
                    channel.post(b"x", nbytes=nbytes)
                    self.assertTrue(channel.ended())
            for _ in range(200):  # as much as is allowed, and most of it never comes
                with stranger.tool(daemon.uri()) as channel:
                    channel.post(b"x", nbytes=500000)

    @in_both_roles
    def test_a_header_in_pieces(self, daemon):
        with stranger.tool(daemon.uri()) as channel:
            parts = stranger.item(bytes([stranger.QUERY])) + stranger.query(INDEX)
            head = stranger.struct.pack("!iIII", 0, 500, len(parts), 0)
            for byte in head:
                channel.send(bytes([byte]))
                time.sleep(0.002)
            channel.send(parts)
            tag, data = channel.answer()
            self.assertEqual((tag, stranger.status_of(data)), (500, 0))
        with self.unharmed(daemon), stranger.tool(daemon.uri()) as channel:
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
            generation = self.change(daemon)
            self.assertEqual(s.event_of(channel.answer()[1])[::2], (s.UPDATED, generation))
            channel.post(s.item(bytes([s.DEREGEVENTS])) + s.item(s.signed(s.PENDING)) + s.item(s.signed(s.UPDATED)))
            channel.ask(s.QUERY, s.query(INDEX))
            self.change(daemon)
            self.assertEqual(s.status_of(channel.ask(s.REGEVENTS, codes)), 0)  # nothing came before this answer
            generation = self.change(daemon)
            self.assertEqual(s.event_of(channel.answer()[1])[::2], (s.UPDATED, generation))

    def change(self, daemon):
        """Another generation, when it is served there: the cables of a leaf are slower, or as they were."""
        with open(self.capture, encoding="utf-8") as file:
            same = file.read() == self.text
        lab.replace_file(self.capture, fabric_text.slower(self.text, "leaf1") if same else self.text)
        generation = self.scheduler.refresh()["generation"]
        daemon.until_status(lambda status: status["generation"] == generation)
        return generation

    @unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
    @in_both_roles
    def test_many_codes_over_many_connections(self, daemon):
        """A list of all codes of all connections, looked through for each of them, was the end of the front in seconds."""
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
            self.change(daemon)
            times = []
            for _ in range(21):
                asked = time.monotonic()
                self.assertEqual(stranger.status_of(channel.ask(stranger.QUERY, stranger.query(INDEX))), 0)
                times.append(time.monotonic() - asked)
            if not lab.SANITIZE:
                self.assertLess(sorted(times)[10], 0.1)
                self.assertLess(self.used(daemon) - begin, 1.5)  # seconds of a processor; it was 40
            crowd.stop()

    def test_questions_that_wait(self):
        """Eight of a name, and they end with its connection."""
        s = stranger
        question = (s.item(bytes([s.LOOKUP])) + s.item(s.flex(0)) + s.size(1) + s.item(s.text("pmixfab.relay.scan_requests")) +
                    s.infos(s.info("pmix.hname", s.STRING, s.text("nowhere")), s.info("pmixfab.relay.digest", 15, s.flex(0))))
        def eight():
            """Until the library has noticed that the one before is gone, its questions wait under this name."""
            with s.tool(self.scheduler.uri(), kind=s.NAMED_TOOL, name=("waiting", 1)) as channel:
                tags = [channel.post(question) for _ in range(20)]
                refused = dict(channel.answer() for _ in range(12))
                self.assertEqual({s.status_of(data) for data in refused.values()}, {NOT_AVAILABLE})
                return list(refused) == tags[8:]
        for _ in range(3):
            lab.wait_for(eight, what="eight places")

    @in_both_roles
    def test_who_does_not_read_his_answers(self, daemon):
        with self.unharmed(daemon), stranger.tool(daemon.uri()) as channel:
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
        lab.replace_file(self.capture, fabric_text.slower(self.text, "leaf1"))
        generation = self.scheduler.refresh()["generation"]
        watch.wait(f"PMIX_FABRIC_UPDATED index 1 generation {generation}")
        self.assertEqual(len(re.findall("PMIX_FABRIC_UPDATED ", watch.output.text)), 1, watch.output.text)
        lab.replace_file(self.capture, self.text)
        self.scheduler.refresh()

    def test_the_holes_of_the_stock_library(self):
        """Without the repairs one message ends the server. When this fails the library has learned it."""
        if lab.SANITIZE:
            self.skipTest("the library's crash is not ours to look at")
        for message in ((stranger.LOOKUP, stranger.item(stranger.flex(0)), stranger.size(1), stranger.item(stranger.text(None)),
                         stranger.size(0)),
                        (stranger.REGEVENTS, stranger.size(1), stranger.item(stranger.signed(-175)),
                         stranger.infos(stranger.info("pmix.evproc", stranger.BOOL, b"\1")))):
            daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}}, env={"FABRICD_NO_REPAIR": "1"})
            with self.assertRaises((EOFError, OSError)):
                self.ask(daemon.uri(), *message)
            daemon.replaced(1)
            daemon.stop()


class LargeAnswers(Case):
    FABRIC = "fattree2:125,8,32"  # 4,000 hosts, whose groups are 37 KB

    @unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
    @in_both_roles
    def test_who_does_not_read_over_many_connections(self, daemon):
        """They share one bound: 20 times that of one would be more than the front may have."""
        script = ("import os, sys\nos.setuid(65534)\nimport stranger as s\n"
                  "question = s.item(bytes([s.QUERY])) + s.query('pmix.fab.grps')\n"
                  "channels = [s.tool(sys.argv[1], timeout=60) for _ in range(20)]\n"
                  "try:\n    while True:\n        for channel in channels:\n            channel.post(question)\n"
                  "except ConnectionError:\n    print('ended', flush=True)\nsys.stdin.read()\n")
        held = self.resident(daemon)
        with self.unharmed(daemon):
            crowd = lab.Watch(["/usr/bin/python3", "-c", script, daemon.uri()], cwd=os.path.dirname(os.path.abspath(__file__)),
                              talk=True)
            crowd.wait("ended")
            if not lab.SANITIZE:
                self.assertLess(self.resident(daemon) - held, 192)
            crowd.stop()

    @unittest.skipIf(os.geteuid() != 0, "only root can try as another user")
    def test_who_does_not_read_and_asks_no_more(self):
        """What a connection is told after its last question counts when others ask."""
        hosts.need()
        host = hosts.Host("small")
        self.addCleanup(host.stop)
        host.do("sysctl", "-qw", "net.ipv4.tcp_wmem=4096 16384 32768", "net.ipv4.tcp_rmem=4096 16384 32768")  # what the kernel holds
        daemon = hosts.Fabricd(host, config={"fabricd": {"probe": f"file:{self.capture}"}})
        self.addCleanup(self.end, daemon)
        resource.prlimit(daemon.front(), resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        script = ("import os, sys\nos.setuid(65534)\nimport stranger as s\n"
                  "question = s.item(bytes([s.QUERY])) + s.size(1) + s.item(s.signed(32) + s.text('pmix.fab.grps') * 32 + s.flex(0))\n"
                  "channels = []\nfor _ in range(400):\n    channels.append(s.tool(sys.argv[1], timeout=60))\n"
                  "    channels[-1].post(question)\n    channels[-1].read(1)\n"
                  "print('asked', flush=True)\nsys.stdin.read()\n")
        held, front = self.resident(daemon), daemon.front()
        crowd = lab.Watch([*host.prefix(), "/usr/bin/python3", "-c", script, daemon.uri()], talk=True,
                          env=dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(__file__))))
        crowd.wait("asked")
        if not lab.SANITIZE:
            self.assertLess(self.resident(daemon) - held, 192)
        crowd.stop()
        self.assertEqual(daemon.front(), front)


if __name__ == "__main__":
    unittest.main()
