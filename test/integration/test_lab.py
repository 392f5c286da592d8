"""The laboratory itself: what every other integration test takes for granted."""
import os
import signal
import subprocess
import sys
import unittest

import lab

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
    def setUp(self):
        lab.require("ibsim", "opensm", "ibnetdiscover")
        self.sim = lab.Ibsim(NET)
        self.addCleanup(self.sim.quit)

    def test_reads_the_netfile(self):
        self.assertEqual(self.sim.hosts, ["node001", "node002", "node003"])
        self.assertEqual(self.sim.switches, ["leaf1", "leaf2", "spine1", "spine2"])
        self.assertEqual(self.sim.cable("leaf2", "spine1"), 8)
        self.assertEqual(self.sim.cable("spine1", "leaf2"), 2)
        with self.assertRaises(lab.LabError):
            self.sim.cable("leaf1", "spine2")

    def test_a_pulled_cable_is_seen_by_the_next_discovery(self):
        self.assertEqual(nodes(self.sim), 7)
        self.sim.unlink("leaf1", 8)
        self.assertEqual(nodes(self.sim, "node001"), 3)
        self.assertEqual(nodes(self.sim, "node003"), 4)
        self.sim.relink("leaf1", 8)
        self.assertEqual(nodes(self.sim, "node001"), 7)

    def test_a_new_cable_and_a_new_guid(self):
        self.sim.link("leaf1", 7, "spine2", 1)
        self.sim.unlink("leaf1", 8)
        self.assertEqual(nodes(self.sim, "node001"), 7)
        self.sim.guid("node002", 0xABCDEF)
        self.assertIn("0x0000000000abcdef", self.sim.run(["ibnetdiscover", "-l"]).stdout)

    def test_what_is_not_there_is_an_error(self):
        with self.assertRaises(lab.LabError):
            self.sim.unlink("leaf9", 1)

    def test_one_sweep_of_opensm_makes_ports_active(self):
        self.sim.sweep()
        self.assertRegex(self.sim.command('Dump "leaf1"'), r"\[8\].*Active/LinkUp")

    def test_opensm_that_stays_brings_a_relinked_port_up(self):
        manager = lab.OpenSM(self.sim)
        self.addCleanup(manager.stop)
        self.sim.unlink("leaf1", 8)
        self.sim.relink("leaf1", 8)
        lab.wait_for(lambda: "Active/LinkUp" in
                     next(line for line in self.sim.command('Dump "leaf1"').splitlines() if "[8]" in line),
                     what="the port to become active")

    def test_two_at_a_time(self):
        other = lab.Ibsim(NET)
        self.addCleanup(other.quit)
        other.unlink("leaf1", 8)
        self.assertEqual(nodes(self.sim, "node001"), 7)
        self.assertEqual(nodes(other, "node001"), 3)

    def test_kill_and_restart(self):
        self.sim.kill()
        self.sim.restart()
        self.assertEqual(nodes(self.sim), 7)


class Cleanup(unittest.TestCase):
    def script(self, tail):
        text = (f"import sys; sys.path.insert(0, {lab.HERE!r}); import lab, os, time\n"
                "p = lab.spawn(['sleep', '600']); d = lab.tmpdir(); print(p.pid, d, flush=True)\n" + tail)
        process = lab.spawn([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
        pid, folder = process.stdout.readline().split()
        return process, int(pid), folder

    def gone(self, pid):
        lab.wait_for(lambda: not os.path.exists(f"/proc/{pid}") or
                     open(f"/proc/{pid}/stat", encoding="ascii").read().split()[2] == "Z", what="a child's end")

    def test_at_exit(self):
        process, pid, folder = self.script("")
        process.wait()
        self.gone(pid)
        self.assertFalse(os.path.exists(folder))

    def test_on_sigterm(self):
        process, pid, folder = self.script("time.sleep(600)")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 128 + signal.SIGTERM)
        self.gone(pid)
        self.assertFalse(os.path.exists(folder))

    def test_on_sigkill(self):
        process, pid, folder = self.script("time.sleep(600)")
        process.kill()
        process.wait()
        self.gone(pid)
        os.rmdir(folder)


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

    def test_condition(self):
        tries = []
        lab.wait_for(lambda: tries.append(1) or len(tries) > 3)
        self.assertEqual(len(tries), 4)


if __name__ == "__main__":
    unittest.main()
