"""What is told of a front that was lost: why, on whose message, who is refused because of that, how many were connected."""
import os
import signal
import struct
import unittest

import lab
import stranger
import test_front


class Refused(test_front.Case):
    """On whose message a front was lost is noted in a page that it shares with fabricd; he is refused for a while."""

    STRANGER = 65534

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can try as another user")
        super().setUp()

    def note(self, *words):
        """What a front says there that somebody has taken over: noted, local, uid, and an address in four words."""
        folder = f"/proc/{self.daemon.process.pid}/fd"
        pages = [fd for fd, path in lab.descriptors(self.daemon.process.pid).items() if path.startswith("/memfd:fabricd-front")]
        self.assertEqual(len(pages), 1)
        with open(f"{folder}/{pages[0]}", "r+b", buffering=0) as page:
            page.write(struct.pack("=7I", *words, *[0] * (7 - len(words))))

    def lose(self, *words):
        """The front is lost with that in its note; what status says when there is another one.

        It is stopped first: else it may end the message of the caller before, and with it what is noted."""
        times = self.front_status()["replaced"] + 1
        pid = self.daemon.front()
        front = lab.Held(pid)
        lab.freeze(pid)
        self.note(*words)
        front.signal(signal.SIGKILL)
        return self.replaced(times)

    def as_stranger(self, code, *args):
        """Python that speaks as another user."""
        watch = lab.Watch(["/usr/bin/python3", "-c", f"import os, sys\nos.setuid({self.STRANGER})\n{code}", self.daemon.uri(), *args],
                          env=dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(__file__))))
        self.addCleanup(watch.stop)
        return watch

    def is_served(self):
        code = ("import stranger\ntry:\n    with stranger.tool(sys.argv[1]) as channel:\n        print('served', flush=True)\n"
                "except (EOFError, OSError):\n    print('refused', flush=True)\n")
        return self.as_stranger(code).wait("(served|refused)\n").group(1) == "served"

    def test_for_a_while(self):
        self.assertTrue(self.is_served())
        for seconds in (10, 20) if lab.ALL else (10,):
            front = self.lose(1, 1, self.STRANGER)
            self.assertEqual(front["origin"], f"uid {self.STRANGER}")
            self.assertEqual([one["origin"] for one in front["refused"]], [f"uid {self.STRANGER}"])
            self.assertIn(f"on a message of uid {self.STRANGER}, who is refused for {seconds} s; another one", self.daemon.log())
            self.assertIn("fabricd_front_refused 1\n", self.daemon.ctl("metrics").stdout)
            self.assertRegex(self.daemon.ctl("status").stdout, rf"REFUSED +uid {self.STRANGER}, for \d+ s more\n")
            self.assertFalse(self.is_served())
            self.tool("register")  # which nobody else feels
            lab.wait_for(self.is_served, what="him to be served again")
            self.assertEqual(self.front_status()["refused"], [])

    def test_the_next_fronts_refuse_him_too(self):
        self.lose(1, 1, self.STRANGER)
        front = self.lose(0)
        self.assertIsNone(front["origin"])
        self.assertFalse(self.is_served())

    def test_lies(self):
        """A front that was taken over locks nobody out who matters."""
        for words in ((1, 1, 0), (1, 1, os.geteuid()), (1, 0, 0), (0, 1, self.STRANGER), (2, 77, 0, 1, 2, 3)):
            self.assertEqual(self.lose(*words)["refused"], [], words)
            self.tool("register")
        self.assertEqual([one["origin"] for one in self.lose(*[0xffffffff] * 7)["refused"]], ["uid 4294967295"])
        front = self.lose(1, 0, 0, 0, 0, 0xffff0000, 0x0200000a)
        self.assertEqual([one["origin"] for one in front["refused"]][1:], ["10.0.0.2"])
        self.tool("register")

    def test_who_keeps_it_busy(self):
        """It is noted by the front itself: killed at any moment, it is mostly on a message of whom all its messages are."""
        code = ("import stranger as s, threading\nquestion = s.item(bytes([s.QUERY])) + s.query('pmix.fab.devs', *[s.info('k', s.STRING, s.text('v'))] * 3000)\n"
                "channel = s.tool(sys.argv[1])\ndef ask():\n    while True:\n        channel.post(question)\n"
                "threading.Thread(target=ask, daemon=True).start()\nchannel.answer()\nprint('asking', flush=True)\n"
                "while True:\n    channel.answer()\n")
        for turn in range(10):
            flood = self.as_stranger(code)
            flood.wait("asking")
            os.kill(self.daemon.front(), signal.SIGKILL)
            front = self.replaced(turn + 1)
            flood.stop()
            self.assertIn(front["origin"], (None, f"uid {self.STRANGER}"))
            if front["origin"] is not None:
                return
        self.fail("it was never noted")


class Told(test_front.Case):
    def test_who_was_connected(self):
        with stranger.tool(self.daemon.uri()), stranger.tool(self.daemon.uri()):
            lab.wait_for(lambda: self.front_status()["connected"] == 2, what="two to be counted")
            self.assertIn("fabricd_front_connections 2\n", self.daemon.ctl("metrics").stdout)
            self.assertRegex(self.daemon.ctl("status").stdout, r"front +process \d+,.* 2 connected")
            os.kill(self.daemon.front(), signal.SIGKILL)
            front = self.replaced(1)
        self.assertEqual((front["parted"], front["connected"]), (2, 0))
        self.assertIn("; 2 were connected to it", self.daemon.ctl("status").stdout)

    def test_a_finding(self):
        def found():
            return [one for one in self.daemon.control("check")["findings"] if one["kind"] == "front-replaced"]
        self.assertEqual(found(), [])
        os.kill(self.daemon.front(), signal.SIGKILL)
        self.replaced(1)
        finding = found()[0]
        self.assertEqual((finding["where"], finding["severity"]), ("front", "warning"))
        self.assertRegex(finding["what"], "^the child died of signal 9 \\(Killed\\) at .*; 1 since the start$")
        self.daemon.ctl("ack", "front-replaced")
        self.assertIsNotNone(found()[0]["acked"])
        os.kill(self.daemon.front(), signal.SIGKILL)
        self.replaced(2)
        self.assertIsNone(found()[0]["acked"])  # that ends with the next


if __name__ == "__main__":
    unittest.main()
