"""fabricctl top on a terminal: what it shows, how it follows, and that the terminal is as it was at the end. (Without one:
test/sim/test_top.py.)"""
import fcntl
import os
import signal
import struct
import subprocess
import termios
import threading
import unittest

import lab
import versions

try:
    import pyte
except ImportError:
    pyte = None

# Its session has no terminal: the first one that its leader opens becomes the one that Ctrl-C speaks to.
ON_TERMINAL = ["sh", "-c", 'exec <"$0" >"$0" 2>&1; exec "$@"']
TAKEN, RETURNED = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A program on a terminal of its own: what is on the screen, and keys."""

    def __init__(self, argv, columns=100, lines=30, term="xterm"):
        self.master, self.slave = os.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.bytes = b""
        self.news = threading.Condition()
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.resize(columns, lines)
        self.process = lab.spawn([*ON_TERMINAL, os.ttyname(self.slave), *argv], stdin=subprocess.DEVNULL,
                                 env={**os.environ, "TERM": term})
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            with self.news:
                self.bytes += data
                self.stream.feed(data)
                self.news.notify_all()

    def resize(self, columns, lines):
        with self.news:
            self.screen.resize(lines, columns)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def display(self):
        return [line.rstrip() for line in self.screen.display]

    def until(self, condition, what):
        """Wait until the program has written what makes this true; its value."""
        with self.news:
            if not self.news.wait_for(condition, lab.HUNG):
                raise AssertionError(f"{what} is not there:\n" + "\n".join(self.display()))
            return condition()

    def shows(self, *words, without=()):
        """Wait until all of these are on the screen, and none of those; the lines."""
        def seen():
            text = "\n".join(self.display())
            return all(word in text for word in words) and not any(word in text for word in without) and self.display()
        return self.until(seen, words)

    def press(self, keys):
        os.write(self.master, keys)

    def ended(self):
        return self.process.wait(10 * lab.SLOW)

    def close(self):
        lab.kill_group(self.process)
        os.close(self.slave)
        os.close(self.master)


class Top(unittest.TestCase):
    def setUp(self):
        if pyte is None:
            self.skipTest("python3-pyte is not installed")
        self.capture = os.path.join(lab.tmpdir(), "capture")
        self.text = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.capture, self.text)
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.capture}"}})
        self.addCleanup(self.daemon.stop)
        self.n = 0

    def change(self):
        self.n += 1
        lab.replace_file(self.capture, self.text.replace('"node0001', f'"other{self.n:04}'))
        return self.daemon.refresh()["generation"]

    def top(self, *args, **options):
        terminal = Terminal([lab.program("fabricctl"), "--rundir", self.daemon.rundir, "top", *args], **options)
        self.addCleanup(terminal.close)
        return terminal

    def test_it_follows_the_daemon_and_outlives_it(self):
        top = self.top()
        status = self.daemon.status()
        lines = top.shows("PLANE", "fat-tree-2", f"fabricd       {status['version']}, role scheduler, on {status['host']}")
        plane = next(line.split() for line in lines if line.startswith("ib0"))
        self.assertEqual(plane[:7], ["ib0", "fat-tree-2", "16", "16", "6", "24", "4"])
        self.assertRegex("\n".join(lines), r"(?m)^generation    1, published \d+ s ago$")
        top.shows(f"took {status['sweep_ms']:.1f} ms, every 0 s", "0 connected over PMIx", "reporting     0 hosts")
        newest = self.change()
        self.assertEqual(newest, 2)
        top.shows("generation    2", "-> other0001", f"took {self.daemon.status()['sweep_ms']:.1f} ms")
        history = [line.split()[:4] for line in self.daemon.ctl("history", "-n", "1").stdout.splitlines()[1:2]]
        top.until(lambda: history[0] in [line.split()[:4] for line in top.display()], history[0])  # one source of facts
        watch = self.daemon.watch()
        self.addCleanup(watch.stop)
        if versions.DOOR:  # what counts them is a repair
            top.shows("1 connected over PMIx")
        lab.replace_file(self.capture, "no fabric")
        self.daemon.try_control("refresh")
        top.shows("STALE")
        lab.replace_file(self.capture, self.text)
        self.daemon.stop()
        top.shows("DOES NOT ANSWER", "ib0", without=["role scheduler"])
        self.daemon.start()
        top.shows("role scheduler", without=["DOES NOT ANSWER"])

    def test_the_terminal_is_as_it_was(self):
        for end in (lambda top: top.press(b"q"), lambda top: top.press(b"\x03"),
                    *(lambda top, n=n: top.process.send_signal(n)
                      for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT))):
            top = self.top()
            top.shows("role scheduler")
            self.assertNotEqual(termios.tcgetattr(top.slave), top.before)
            top.press(b" x")  # no other key ends it
            self.change()
            top.shows(f"other{self.n:04}")
            end(top)
            self.assertEqual(top.ended(), 0)
            self.assertEqual(termios.tcgetattr(top.slave), top.before)
            top.until(lambda: RETURNED in top.bytes, "the first screen")
            self.assertEqual((top.bytes.count(TAKEN), top.bytes.count(RETURNED)), (1, 1))
            self.assertIn(b"\x1b[?25h", top.bytes[-20:])  # the cursor
            self.assertIn(b"\x1b[?7h", top.bytes[-20:])  # and lines wrap again

    def test_suspended_and_back(self):
        """By Ctrl-Z and by kill -TSTP: the shell has the terminal as it was, and with `fg` there is the page again."""
        top = Terminal(["sh", "-mc", '"$@"; while echo "at the shell"; read command && [ $command = fg ]; do fg; done', "sh",
                        lab.program("fabricctl"), "--rundir", self.daemon.rundir, "top"])
        self.addCleanup(top.close)
        stops = (lambda: top.press(b"\x1a"), lambda: os.killpg(os.tcgetpgrp(top.master), signal.SIGTSTP))
        for n, stop in enumerate(stops, 1):
            top.shows("role scheduler")
            self.assertNotEqual(termios.tcgetattr(top.slave), top.before)
            stop()
            top.until(lambda n=n: top.bytes.count(b"at the shell") == n, "the shell")
            self.assertEqual((top.bytes.count(TAKEN), top.bytes.count(RETURNED)), (n, n))
            self.assertEqual(termios.tcgetattr(top.slave), top.before)
            self.change()
            top.press(b"fg\n")
            top.shows(f"other{self.n:04}")
        top.press(b"q")
        top.until(lambda: top.bytes.count(b"at the shell") == 3, "the shell")
        self.assertEqual(top.bytes.count(RETURNED), 3)
        self.assertEqual(termios.tcgetattr(top.slave), top.before)
        top.press(b"exit\n")
        top.ended()

    def test_another_size(self):
        for _ in range(12):
            self.change()
        top = self.top(columns=120, lines=40)
        lines = top.shows("-> other0012", "-> other0001")
        top.resize(60, 16)
        lines = top.shows("fabricd  ", "ib0 ", without=["-> other0001"])
        self.assertTrue(lines[0].startswith("fabricd  "), lines)  # nothing rolled away, nothing was wrapped
        self.assertTrue(all(len(line) <= 60 for line in lines))
        self.assertGreater(len(lines[-1]), 0)
        top.resize(60, 3)
        lines = top.until(lambda: top.display()[2].startswith("last sweep") and top.display(), "a page of three lines")
        self.assertTrue(lines[0].startswith("fabricd  "), lines)
        top.resize(120, 40)
        top.shows("-> other0012", "-> other0001")

    def test_one_page(self):
        self.change()
        for args, term in (["--once"], "xterm"), ([], "dumb"):
            top = self.top(*args, term=term, columns=200)
            self.assertEqual(top.ended(), 0)
            lines = top.shows("generation    2", "ib0", "other0001")
            self.assertNotIn(b"\x1b", top.bytes, lines)


if __name__ == "__main__":
    unittest.main()
