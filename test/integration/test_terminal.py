"""Tables on a terminal are as wide as it is; completion for bash, and the options that both programs have."""
import fcntl
import os
import pty
import struct
import subprocess
import termios
import unittest

import fabric_text
import lab

FABRICCTL = os.path.join(lab.BUILD, "bin", "fabricctl")


def on_terminal(columns, *words):
    """The lines that it writes to a terminal of that width, and its status."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(ours, "rb", buffering=0) as screen:
        program = lab.spawn(words, stdin=its, stdout=its, stderr=its, env=dict(os.environ, TERM="xterm"))
        os.close(its)
        shown = b""
        try:
            while some := screen.read(65536):
                shown += some
        except OSError:  # nobody has the terminal any more
            pass
    return shown.decode().replace("\r\n", "\n").splitlines(), program.wait()


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        capture = os.path.join(lab.tmpdir(), "capture")
        whole = lab.fabric("fattree2:6,3,6", "capture").replace('"node0009 HCA-1"', '"a-host-with-a-long-name-\u00e4\u00f6\u00fc HCA-1"')
        lab.replace_file(capture, whole)
        cls.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})
        lab.replace_file(capture, fabric_text.slower(fabric_text.without(whole, "leaf4", "node0001 HCA-1"), "leaf2"))
        cls.daemon.refresh()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()

    def table(self, columns, *words):
        """The table alone: hints and other lines are no part of it."""
        lines, _ = on_terminal(columns, FABRICCTL, "--rundir", self.daemon.rundir, *words)
        at = next((i for i, line in enumerate(lines) if line.isupper()), 0)
        end = next((i for i, line in enumerate(lines[at:], at) if line == "" or line.startswith("the latest ")), len(lines))
        return lines[at:end]

    def test_as_wide_as_the_terminal(self):
        for command in (["check"], ["history"], ["devices"], ["links"], ["switches"], ["groups"], ["planes"], ["status"], ["diff"]):
            for columns in (60, 80, 120, 200):
                shown = self.table(columns, *command)
                self.assertGreater(len(shown), 1, command)
                self.assertLessEqual(max(map(len, shown)), columns, (command, columns))
            whole = self.table(80, *command, "--long")
            self.assertEqual([line.rstrip() for line in whole], [line.rstrip() for line in self.piped(*command, "--long")][:len(whole)])

    def piped(self, *words):
        lines = self.daemon.ctl(*words).stdout.splitlines()
        return lines[next((i for i, line in enumerate(lines) if line.isupper()), 0):]

    def test_wide_enough_is_whole(self):
        for command in (["check"], ["history"], ["devices"]):
            shown = self.table(400, *command)
            self.assertEqual([line.rstrip() for line in shown], [line.rstrip() for line in self.piped(*command)][:len(shown)])

    def test_what_is_no_terminal(self):
        self.assertIn("no longer seen; the places of its 9 cables are kept", self.daemon.ctl("check").stdout)


class Completion(unittest.TestCase):
    def complete(self, *words):
        """What bash offers for the last word."""
        path = os.path.join(lab.tmpdir(), "completion")
        with open(path, "w", encoding="utf-8") as file:
            subprocess.run(["sh", os.path.join(lab.ROOT, "system", "completion.sh"), "bash", FABRICCTL], stdout=file, check=True)
        script = f'. {lab.plain(path)}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fabricctl; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", script, "bash", *words], stdout=subprocess.PIPE, text=True, check=True,
                              env=dict(os.environ, PATH=f"{os.path.dirname(FABRICCTL)}:{os.environ['PATH']}", FABRICD_RUNDIR=self.rundir))
        return done.stdout.split()

    def setUp(self):
        capture = os.path.join(lab.tmpdir(), "capture")
        lab.replace_file(capture, lab.fabric("fattree2:2,1,3", "capture"))
        self.daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{capture}"}})
        self.addCleanup(self.daemon.stop)
        self.rundir = self.daemon.rundir

    def test_of_bash(self):
        self.assertEqual(self.complete("fabricctl", "--format", ""), ["text", "json", "csv"])
        self.assertEqual(self.complete("fabricctl", "--format", "=", "j"), ["json"])
        self.assertEqual(self.complete("fabricctl", "--format", "="), ["text", "json", "csv"])
        self.assertEqual(self.complete("fabricctl", "check", "--severity", "w"), ["warning"])
        self.assertEqual(self.complete("fabricctl", "switches", "l"), ["leaf1", "leaf2"])
        self.assertEqual(self.complete("fabricctl", "show", "node000"), [f"node{n:04}" for n in range(1, 7)])
        self.assertEqual(self.complete("fabricctl", "refresh", "--switch", "sp"), ["spine1"])
        self.assertEqual(self.complete("fabricctl", "export", "slurm-tr"), ["slurm-tree"])
        self.assertEqual(self.complete("fabricctl", "log", "d"), ["debug"])
        self.assertEqual(self.complete("fabricctl", "devices", "--dow"), ["--down"])
        self.assertEqual(self.complete("fabricctl", "sw"), ["switches"])
        self.assertEqual(self.complete("fabricctl", "restore", ""), [])  # files, which bash has


class Options(unittest.TestCase):
    def test_both_programs(self):
        """Help and version by the same words."""
        for program in ("fabricctl", "fabricd"):
            path = os.path.join(lab.BUILD, "bin", program)
            told = [subprocess.run([path, word], stdout=subprocess.PIPE, text=True, check=True).stdout for word in ("-h", "--help", "-V", "--version")]
            self.assertEqual((told[0], told[2]), (told[1], told[3]))
            self.assertRegex(told[0], rf"^Usage: .*{program} ")
            self.assertRegex(told[0], r"(?m)^ +-h, --help +this help")


if __name__ == "__main__":
    unittest.main()
