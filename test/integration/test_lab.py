"""The laboratory itself: what every other integration test takes for granted."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import lab
import run_test

# Two leaves, two spines; leaf1 reaches spine1 only.
NET = """\
Switch 8 "leaf1"  # "leaf1" enhanced port 0 lid 0 lmc 0
[1] "node001"[1]  # "node001" lid 0 4xHDR
[2] "node002"[1]  # "node002" lid 0 4xHDR
[8] "spine1"[1]  # "spine1" lid 0 4xHDR

Switch 8 "leaf2"  # "leaf2" enhanced port 0 lid 0 lmc 0
[1] "node003"[1]  # "node003" lid 0 4xHDR
[7] "spine2"[2]  # "spine2" lid 0 4xHDR
[8] "spine1"[2]  # "spine1" lid 0 4xHDR

Switch 8 "spine1"  # "spine1" enhanced port 0 lid 0 lmc 0
[1] "leaf1"[8]  # "leaf1" lid 0 4xHDR
[2] "leaf2"[8]  # "leaf2" lid 0 4xHDR

Switch 8 "spine2"  # "spine2" enhanced port 0 lid 0 lmc 0
[2] "leaf2"[7]  # "leaf2" lid 0 4xHDR

Ca 1 "node001"  # "node001"
[1] "leaf1"[1]  # "leaf1" lid 0 4xHDR

Ca 1 "node002"  # "node002"
[1] "leaf1"[2]  # "leaf1" lid 0 4xHDR

Ca 1 "node003"  # "node003"
[1] "leaf2"[1]  # "leaf2" lid 0 4xHDR
"""


def nodes(sim, host=None):
    done = sim.run(["ibnetdiscover", "-l"], host)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return sum(line.split()[0] in ("Ca", "Switch") for line in done.stdout.splitlines() if line.strip())


class Simulator(unittest.TestCase):
    def test_hands(self):
        """What a hand changes is seen by the next discovery, in this subnet alone; what is not there is an error."""
        lab.require("ibsim", "opensm", "ibnetdiscover")
        sim, other = lab.Ibsim(NET), lab.Ibsim(NET)
        self.addCleanup(sim.quit)
        self.addCleanup(other.quit)
        self.assertEqual((sim.hosts, sim.switches), (["node001", "node002", "node003"], ["leaf1", "leaf2", "spine1", "spine2"]))
        self.assertEqual((sim.cable("leaf2", "spine1"), sim.cable("spine1", "leaf2")), (8, 2))
        for wrong in (lambda: sim.cable("leaf1", "spine2"), lambda: sim.unlink("leaf9", 1)):
            self.assertRaises(lab.LabError, wrong)
        sim.sweep()
        self.assertRegex(sim.command('Dump "leaf1"'), r"\[8\].*Active/LinkUp")
        self.assertEqual(nodes(sim), 7)
        sim.unlink("leaf1", 8)
        self.assertEqual((nodes(sim, "node001"), nodes(sim, "node003"), nodes(other)), (3, 4, 7))
        sim.link("leaf1", 7, "spine2", 1)
        self.assertEqual(nodes(sim, "node001"), 7)
        sim.guid("node002", 0xABCDEF)
        self.assertIn("0x0000000000abcdef", sim.run(["ibnetdiscover", "-l"]).stdout)
        manager = lab.OpenSM(sim)
        self.addCleanup(manager.stop)
        sim.relink("leaf1", 8)
        sim.wait_active("leaf1", 8)
        other.kill()
        other.restart()
        self.assertEqual(nodes(other), 7)


class Cleanup(unittest.TestCase):
    def script(self, tail):
        text = (f"import sys; sys.path.insert(0, {lab.HERE!r}); import lab, os, time\n"
                "p = lab.spawn(['sleep', '600']); d = lab.tmpdir(); print(p.pid, d, flush=True)\n" + tail)
        process = lab.spawn([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
        pid, folder = process.stdout.readline().split()
        return process, int(pid), folder

    def test_nothing_outlives_a_program(self):
        for tail, number in (("", None), ("time.sleep(600)", signal.SIGTERM), ("time.sleep(600)", signal.SIGKILL)):
            with self.subTest(number):
                process, pid, folder = self.script(tail)
                child = lab.Held(pid)
                if number is not None:
                    process.send_signal(number)
                self.assertEqual(process.wait(), {None: 0, signal.SIGTERM: 128 + signal.SIGTERM, signal.SIGKILL: -signal.SIGKILL}[number])
                self.assertTrue(child.ended())
                if number == signal.SIGKILL:
                    os.rmdir(folder)
                self.assertFalse(os.path.exists(folder))


class Waiting(unittest.TestCase):
    def test_output_that_ends(self):
        watch = lab.Watch(["echo", "one"])
        self.assertEqual(watch.wait("^o(ne)$").group(1), "ne")
        with self.assertRaises(lab.LabError):
            watch.wait("two")

    def test_no_end(self):
        """What a command had said until then is told."""
        with self.assertRaisesRegex(lab.LabError, "(?s)no end after .* sh -c .*\nhalf a word"):
            lab.run(["sh", "-c", "printf 'half a word'; sleep 60"], timeout=0.5)


class Groups(unittest.TestCase):
    def test_a_number_is_kept_until_the_group_has_ended(self):
        """The leader has ended, and a member of its group lives: no other process gets the number."""
        process = lab.spawn(["sh", "-c", "sleep 600 & echo $!"], stdout=subprocess.PIPE, text=True)
        with process.stdout as said:
            member = int(said.readline())
        self.assertEqual((process.wait(), process.poll(), process.reaped), (0, 0, False))
        self.assertTrue(os.path.exists(f"/proc/{process.pid}"))
        self.assertEqual(os.getpgid(member), process.pid)
        held = lab.Held(member)
        lab.kill_group(process)
        self.assertTrue(process.reaped)
        self.assertFalse(os.path.exists(f"/proc/{process.pid}"))
        self.assertTrue(held.ended(), "the member ends with the group")

    def test_nothing_is_sent_to_a_number_that_was_given_back(self):
        process = lab.spawn(["true"])
        lab.kill_group(process)
        with mock.patch("os.killpg") as sent:
            lab.kill_group(process)
            lab.cleanup()
        sent.assert_not_called()

    def test_exit_statuses(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9), ("kill -TERM $$", -15)):
            with self.subTest(script):
                process = lab.spawn(["sh", "-c", script])
                self.assertEqual((process.wait(lab.HUNG), process.returncode), (status, status))
                lab.kill_group(process)
                self.assertEqual(process.returncode, status)
        process = lab.spawn(["sleep", "600"])
        self.assertIsNone(process.poll())
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(0)
        lab.kill_group(process)
        self.assertEqual(process.returncode, -signal.SIGKILL)


def own_build():
    """The folder of a build with the programs of this one, and records of what conforms of its own."""
    folder = lab.tmpdir()
    for name in os.listdir(lab.BUILD):
        if name == "bin" or name.startswith("lib"):
            os.symlink(os.path.join(lab.BUILD, name), os.path.join(folder, name))
    return folder


class Numbers(unittest.TestCase):
    MODULES = ["small_space.py", "small_space.py", "test_events.py", "test_subnet.py"]

    def test_no_module_kills_a_process_of_another(self):
        """Four modules run side by side in a PID namespace with 700 numbers."""
        if os.geteuid() != 0:
            self.skipTest("PID namespaces need root")
        if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 14):
            self.skipTest("before Linux 6.14 all PID namespaces share one pid_max")
        lab.require("unshare", "ibsim", "opensm")
        space = [sys.executable, "-B", os.path.join(lab.HERE, "small_space.py"), *self.MODULES]
        done = lab.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *space], env=dict(os.environ, FABRICD_BUILD=own_build()),
                       timeout=3 * lab.HUNG)  # of four modules
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual((said["status"], said["died"]), ([0] * len(self.MODULES), 0), done.stderr[-3000:])
        self.assertGreater(said["rounds"], 0)



class Bound(unittest.TestCase):
    def test_a_module_that_hangs(self):
        """It prints its evidence before ctest kills it."""
        env = dict(os.environ, FABRICD_BUILD=own_build(), FABRICD_FAILURES="", FABRICD_TIMEOUT=str(run_test.EVIDENCE_S + 1))
        done = lab.run([sys.executable, "-B", os.path.join(lab.HERE, "run_test.py"), "hanging.py"], env=env, timeout=lab.HUNG)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"(?s)Hung: the module has run for 1 s\n.*process \d+ \(.*sleep 616\) is alive\n.*\nwchan: ")
        self.assertRegex(done.stderr, "(?m)^cases: 0 passed, 1 failed, 0 skipped$")


class Evidence(unittest.TestCase):
    """The output of run_test.py for tests that fail in known ways (failing.py)."""

    @classmethod
    def setUpClass(cls):
        cls.folder = own_build()
        cls.places = os.path.join(cls.folder, "failures")
        env = dict(os.environ, FABRICD_BUILD=cls.folder, FABRICD_FAILURES=cls.places, FABRICD_KEEP="1",
                   TMPDIR=tempfile.gettempdir())  # a folder further down the paths of sockets would be too long
        env.pop("FABRICD_SEED", None)
        cls.done = lab.run([sys.executable, "-B", os.path.join(lab.HERE, "run_test.py"), "failing.py"], env=env, timeout=lab.HUNG)
        (cls.kept,) = re.findall("(?m)^kept: (.*)$", cls.done.stderr.rsplit("\ncases: ", 1)[1])
        cls.addClassCleanup(shutil.rmtree, cls.kept)
        shown = re.split(r"^={70}\n", cls.done.stderr, flags=re.MULTILINE)[1:]
        cls.shown = {re.match(r"\w+: (\w+)", text).group(1): text for text in shown}

    def folder_of(self, test):
        (found,) = glob.glob(os.path.join(self.places, f"*.{test}"))
        return found

    def check(self, test, *patterns):
        """Look for patterns in the printed and the written evidence."""
        with open(os.path.join(self.folder_of(test), "evidence.txt"), encoding="utf-8") as file:
            written = file.read()
        for pattern in patterns:
            for place, text in (("printed", self.shown[test]), ("written", written)):
                self.assertTrue(re.search(pattern, text), f"not in what is {place} of {test}: {pattern}")

    def test_the_counts(self):
        self.assertEqual(self.done.returncode, 1)
        self.assertRegex(self.done.stderr, "(?m)^cases: 2 passed, 11 failed, 0 skipped$")

    def test_of_each_failure(self):
        for test, *patterns in (
                ("test_killed", r"ConnectionRefusedError: .* Connection refused\nprocess \d+ \(.*fabricd.*\) was killed by SIG(SEGV|KILL)\n.* serving ",
                 r"process \d+ \(.*mkfabric.*\) ended with status 0"),
                ("test_ended", r"FileNotFoundError: .*\nprocess \d+ \(.*\) ended with status 0\n(.*\n)*.*SIGTERM: stopping"),
                ("test_hung", r"TimeoutError: timed out\nprocess \d+ \(.*\) is alive\n.* serving ", r"\nState:\tT \(stopped\)",
                 r"\nwchan: ", r"\nstack: ", r"\nfd \d+: socket:"),
                ("test_hangs_up", r"(LabError|ConnectionResetError): .*\nprocess \d+ \(.*\) was killed by SIGKILL\n.* serving "),
                ("test_seed", "AssertionError: at the wrong turn", r"seed of walk: 4711 \(FABRICD_SEED=4711 ",
                 r"process \d+ \(/.*/sh -c seq .*\) ended with status 3\n", "(?m)^901\n(.*\n)*1000$")):
            with self.subTest(test):
                self.check(test, *patterns)
        self.assertNotRegex(self.shown["test_seed"], "(?m)^900$")
        with open(os.path.join(self.folder_of("test_killed"), "1-fabricd.log"), encoding="utf-8") as file:
            self.assertIn("generation 1: ", file.read())
        self.assertEqual(len(glob.glob(os.path.join(self.kept, "*", "fabricd.log"))), 4)

    @unittest.skipIf(lab.SANITIZE, "sanitizers write no cores")
    def test_a_core_and_a_stack(self):
        lab.require("gdb")
        self.check("test_hung", r"stack of \d+:\n(?s:.)*\n#\d+ .*\bfabricd_main \(")
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
            if not re.match(r"[^|/]", file.read()):
                self.skipTest("the kernel writes no core files into the folder of the process")
        self.check("test_killed", r"(?m)^/.*/core.*:\n(?s:.)*^#\d+ .*\bfabricd_main \(")

    def test_what_is_left_behind(self):
        for test, left in (("test_a_process", "; ".join([r"process \d+ \(\w.*\)"] * 3)),  # a child may be a shell yet
                           ("test_b_file", "file /.*/forgotten"), ("test_c_folder", r"file /.*/forgotten\.\w+")):
            with self.subTest(test):
                self.assertRegex(self.shown[test], rf"(?m)^\w*\.?LeftBehind: left behind: {left}$")
        self.assertRegex(self.shown["tearDownClass"], r"LeftBehind: left behind: socket \d+ of the test itself \(@forgotten\)")
        self.assertEqual(subprocess.run(["pgrep", "-f", "^sleep 61[1-5]$"], capture_output=True, text=True, check=False).stdout, "")
        if os.geteuid() == 0:
            self.assertRegex(self.shown["test_d_mount"], r"left behind: mount (/.*/mounted); file \1\n")


if __name__ == "__main__":
    unittest.main()
