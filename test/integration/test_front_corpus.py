"""What ended or held up a front once, and what would without the repairs, is said again to a front of each role.

./dev fuzz front (test/fuzz/fuzz_front.py) finds more of it. FABRICD_NO_REPAIR=1 shows which of it the library alone survives.
"""
import os
import re
import sys
import unittest

import fabric_text
import hosts
import lab
import sessions
import test_door

CORPUS = os.path.join(lab.ROOT, "test", "fuzz", "corpus", "front")


class Replay(test_door.Case):
    @test_door.in_both_roles
    def test_said_again(self, daemon):
        names, texts = sorted(os.listdir(CORPUS)), [self.text, fabric_text.slower(self.text, "leaf1")]
        self.assertGreater(len(names), 20)

        def change():
            texts.reverse()
            lab.replace_file(self.capture, texts[0])
            self.scheduler.refresh()
        player = sessions.Player(daemon.uri(), change)
        with self.unharmed(daemon, grows=64, changes=True):
            for name in names:
                player.play(sessions.read(os.path.join(CORPUS, name)))
                with self.subTest(name), sessions.resident(daemon.uri(), 10) as channel:
                    sessions.ping(channel)
        self.assertGreater(player.sent, 200)


class FromAnotherHost(unittest.TestCase):
    """Without a munge key. The server takes munge only."""

    ROUNDS = 20 if lab.ALL else 2
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
        self.assertEqual((after["pid"], after["front"]["pid"], after["generation"]),
                         (before["pid"], before["front"]["pid"], before["generation"]),
                         re.sub(r"(?m)^.*write failed.*\n", "", daemon.log())[-2000:])
        done = here.run([lab.program("stock_tool"), daemon.uri(), "register"], env=daemon.tool_env())
        self.assertIn("pmixfab.generation", done.stdout)


if __name__ == "__main__":
    unittest.main()
