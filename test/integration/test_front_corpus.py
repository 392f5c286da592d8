"""What ended or held up a front once, and what would without the repairs, is said again to a front of each role.

./dev fuzz front (test/fuzz/fuzz_front.py) finds more of it. FABRICD_NO_REPAIR=1 shows which of it the library alone survives.
"""
import os
import unittest

import fabric_text
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


if __name__ == "__main__":
    unittest.main()
