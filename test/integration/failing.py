"""failing - tests that fail or leave something behind, each in a way of its own, for test_lab.py."""
import os
import signal
import socket
import subprocess
import tempfile
import unittest

import lab
import leftovers

SEED = 4711


class Daemon(unittest.TestCase):
    def setUp(self):
        capture = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(capture, lab.fabric("fattree2:4,2,4", "capture"))
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})

    def test_killed(self):
        self.daemon.process.send_signal(signal.SIGKILL if lab.SANITIZE else signal.SIGSEGV)  # a sanitizer catches the latter
        self.daemon.process.wait()
        self.daemon.status()

    def test_ended(self):
        self.daemon.stop()
        self.daemon.status()

    def test_hung(self):
        self.daemon.freeze()
        self.daemon.control("status", timeout=0.2)

    def test_hangs_up(self):
        """It closes the connection without an answer."""
        asked = self.daemon.connect()
        self.daemon.process.kill()
        self.daemon.answer(asked)


class Commands(unittest.TestCase):
    def test_seed(self):
        lab.seed("walk", SEED)
        lab.run(["sh", "-c", "seq 1000; exit 3"])
        self.fail("at the wrong turn")

    def test_parts(self):
        """Evidence is shown once."""
        for part in (1, 2):
            with self.subTest(part):
                self.assertEqual(part, 0)


class Left(unittest.TestCase):
    """The leftovers of an earlier test are removed before a later one."""

    @classmethod
    def setUpClass(cls):
        leftovers.patience_s = 0
        cls.kept = lab.spawn(["sleep", "600"])

    def tearDown(self):
        self.assertIsNone(self.kept.poll())
        self.assertEqual(os.listdir(os.environ["TMPDIR"]), self.left)
        self.left.clear()

    left = []

    def test_a_process(self):
        with subprocess.Popen(["sh", "-c", "setsid sleep 611 >&2 & sleep 612 >&2 & echo up; exec sleep 613 >&2"], stdout=subprocess.PIPE).stdout as said:
            said.readline()

    def test_b_file(self):
        with open(os.path.join(os.environ["TMPDIR"], "forgotten"), "w", encoding="ascii"):
            self.left.append("forgotten")

    def test_c_folder(self):
        tempfile.mkdtemp(prefix="forgotten.")

    def test_d_mount(self):
        lab.require("mount")
        self.left.append("mounted")
        place = os.path.join(os.environ["TMPDIR"], "mounted")
        os.mkdir(place)
        subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)

    def test_e_nothing(self):
        """Processes and folders of the laboratory are no leftovers."""
        lab.spawn(["sh", "-c", "sleep 614 & exec sleep 615"])
        lab.tmpdir()


class LeftByClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.socket = socket.socket(socket.AF_UNIX)
        cls.socket.bind("\0forgotten")

    def test_nothing(self):
        pass


if __name__ == "__main__":
    unittest.main()
