"""The machine that booted.py boots: it is one, it leaves this one alone, and nothing of it stays."""
import os
import shutil
import signal
import socket
import tempfile
import unittest

import booted
import lab


class Places(unittest.TestCase):
    """Folders that a checkout or a build may be in, some of which begin empty in the machine."""

    def test_they_are_visible_wherever_they_are(self):
        booted.need()
        there = {lab.ROOT: "dev", lab.BUILD: "CMakeCache.txt"}
        for above in ("/tmp", "/run", "/dev/shm", "/var/tmp"):
            folder = tempfile.mkdtemp(prefix="fabricd lab, with: signs.", dir=above)
            self.addCleanup(shutil.rmtree, folder)
            there[folder] = "file"
            lab.replace_file(os.path.join(folder, "file"), folder)
        machine = booted.Machine(places=there)
        self.addCleanup(machine.shutdown)
        for place, name in there.items():
            with self.subTest(place):
                with open(os.path.join(place, name), encoding="utf-8") as file:
                    self.assertEqual(machine.read(os.path.join(place, name)), file.read())
                machine.write(f"{place}/written-in-the-machine", "text")
                self.assertFalse(os.path.exists(f"{place}/written-in-the-machine"))


class Booted(unittest.TestCase):
    def setUp(self):
        self.machine = booted.Machine()
        self.addCleanup(self.machine.shutdown)

    def gone(self):
        # A control group that a process is in cannot be removed.
        self.assertFalse(os.path.exists(self.machine.group))

    def test_it_is_a_machine_of_its_own_with_units_and_a_journal(self):
        machine, place = self.machine, f"/usr/share/written-by-{os.getpid()}"
        self.assertEqual(machine.do("cat", "/proc/1/comm").strip(), "systemd")
        self.assertEqual(machine.do("hostname").strip(), "booted")
        self.assertNotEqual(socket.gethostname(), "booted")
        machine.write(place, "text\n", 0o640)
        self.assertEqual((machine.read(place), machine.do("stat", "-c", "%a", place)), ("text\n", "640\n"))
        self.assertFalse(os.path.exists(place))
        self.assertEqual(machine.do("ls", "/sys/class/net").split(), ["lo"])
        self.assertNotEqual(machine.run(["sh", "-c", "echo 1 >/proc/sys/vm/overcommit_memory"]).returncode, 0)
        self.assertEqual(machine.run(["sh", "-c", "echo out; echo err >&2; exit 3"]).returncode, 3)
        self.machine.write("/run/systemd/system/talk.service", "[Service]\nExecStart=sh -c 'echo plain; echo \"<4>odd\"; false'\n")
        self.machine.do("systemctl", "daemon-reload")
        self.machine.do("systemctl", "start", "talk")
        self.assertEqual(self.machine.wait_state("talk", "failed", "inactive"), "failed")
        self.assertEqual(self.machine.show("talk", "ExecMainStatus"), "1")
        lab.wait_for(lambda: self.machine.journal("talk") == [(6, "plain"), (4, "odd")], what="the journal")
        with self.assertRaises(lab.LabError):
            self.machine.do("systemctl", "start", "nowhere")
        self.machine.shutdown()
        self.gone()

    def test_it_ends_when_the_plug_is_pulled(self):
        self.machine.process.send_signal(signal.SIGKILL)
        self.machine.kill()
        self.gone()


if __name__ == "__main__":
    unittest.main()
